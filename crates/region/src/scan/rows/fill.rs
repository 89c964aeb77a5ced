//! Taking a row's cells, up to its end or to a limit, and what becomes of a row that is taken.

use super::RowReader;
use crate::error::{RegionError, Result};
use crate::scan::limits::{Limits, Reason, estimated_bytes};
use crate::scan::store_scanner::{Step, StoreScanner};
use base::effort::{BYTES_PER_UNIT, GATHERED_STEP_BYTES, GET_BYTES_PER_UNIT};
use cell::{CellBuffer, Order};

/// How filling a row ended.
pub(super) enum Filled {
    Whole,
    Cut(Reason),
}

impl RowReader {
    /// Takes the row's cells of one group of families.
    pub(super) fn fill(
        &mut self,
        joined: bool,
        limits: &mut Limits,
        from: usize,
        out: &mut CellBuffer,
    ) -> Result<Filled> {
        let count = if joined { self.joined.len() } else { self.essential.len() };
        for at in 0..count {
            loop {
                let scanner = if joined { &mut self.joined[at] } else { &mut self.essential[at] };
                if !scanner.in_row() {
                    break;
                }
                match scanner.step(self.filter.as_mut(), &mut self.budget)? {
                    Step::RowEnd | Step::End => break,
                    Step::Pause if self.gives_up => return Err(RegionError::WouldBlock),
                    Step::Pause => {
                        if limits.partial_rows && !self.has_filter_row && self.is_late(limits) {
                            self.budget = self.cells_per_check;
                            return Ok(Filled::Cut(Reason::Time));
                        }
                        pause(limits)?;
                        self.budget = self.cells_per_check;
                    }
                    Step::Cell => {
                        let cell = scanner.cell();
                        match &self.filter {
                            Some(filter) if filter.transforms() => filter.transform_cell(cell, out),
                            _ => out.push(cell),
                        }
                        let bytes = estimated_bytes(cell);
                        if self.gives_up {
                            let bytes_per_unit = if self.is_get { GET_BYTES_PER_UNIT } else { BYTES_PER_UNIT };
                            self.budget = self.budget.saturating_sub(bytes / bytes_per_unit);
                        }
                        self.row_bytes += bytes;
                        limits.used_bytes += bytes;
                        self.note_bytes(bytes);
                        if self.row_bytes >= self.gathered_bytes + GATHERED_STEP_BYTES {
                            self.gathered_bytes = self.row_bytes;
                            limits.pause.map_or(Ok(()), |pause| pause.gathered(self.row_bytes))?;
                        }
                        if self.row_bytes > self.max_row_bytes {
                            return Err(self.row_too_big(out.len() - from));
                        }
                        let batch_full = limits.batch_cells > 0 && out.len() - from >= limits.batch_cells as usize;
                        let size_full = limits.is_full() && limits.partial_rows && !self.has_filter_row;
                        if (batch_full || size_full) && self.row_goes_on(joined, at)? {
                            return Ok(Filled::Cut(if batch_full { Reason::Batch } else { Reason::Size }));
                        }
                    }
                }
            }
        }
        Ok(Filled::Whole)
    }

    /// Whether any family may have more cells of the row; they are not judged yet.
    fn row_goes_on(&mut self, joined: bool, at: usize) -> Result<bool> {
        let scanner = if joined { &mut self.joined[at] } else { &mut self.essential[at] };
        scanner.finish_step()?;
        let row = &self.row[..];
        let here = |scanner: &StoreScanner| scanner.in_row() && scanner.peek_row() == Some(row);
        if joined {
            return Ok(self.joined[at..].iter().any(here));
        }
        // Families on demand are looked at only when the row is kept; they may have something.
        let late = self.joined.iter().any(|scanner| scanner.peek_row().is_some());
        Ok(self.essential[at..].iter().any(here) || late)
    }

    fn row_too_big(&self, cells: usize) -> RegionError {
        RegionError::RowTooBig(format!(
            "Max row size allowed: {}, but the row is bigger than that ({} bytes so far; the limit is \
             hbase.table.max.rowsize, or a sixteenth of basalt.memory.size where that is less), the row info: {}, \
             already have process row cells = {cells}, it belong to region = {}",
            self.max_row_bytes,
            self.row_bytes,
            cell::print::to_string_binary(&self.row),
            self.region_name
        ))
    }

    pub(super) fn note_bytes(&mut self, bytes: u64) {
        if let Some(left) = &mut self.pread_left {
            *left = left.saturating_sub(bytes);
            if *left == 0 {
                self.pread_left = None;
                for scanner in self.essential.iter_mut().chain(&mut self.joined) {
                    for source in scanner.merge_mut().sources_mut() {
                        source.set_pread(false);
                    }
                }
            }
        }
    }

    /// The essential families are read: whether the row is kept. A row that is not is taken back.
    pub(super) fn keep_row(
        &mut self,
        from: usize,
        used_before: u64,
        limits: &mut Limits,
        out: &mut CellBuffer,
    ) -> bool {
        let is_empty = out.len() == from;
        let dropped = match &mut self.filter {
            Some(filter) if !is_empty || self.has_filter_row => filter.finish_row(out, from),
            _ => false,
        };
        if self.has_filter_row {
            limits.used_bytes = used_before + out.iter_from(from).map(estimated_bytes).sum::<u64>();
        }
        if !is_empty && !dropped {
            return true;
        }
        out.truncate(from);
        limits.used_bytes = used_before;
        self.rows_filtered += 1;
        self.end_row();
        false
    }
}

/// Lets others go on, if the caller wants that.
pub(super) fn pause(limits: &Limits<'_>) -> Result<()> {
    limits.pause.map_or(Ok(()), |pause| Ok(pause.pause()?))
}

/// Puts the cells from number `from` on into order: families read on demand came last.
pub(super) fn sort_cells(out: &mut CellBuffer, from: usize, order: Order) {
    let mut sorted: Vec<usize> = (from..out.len()).collect();
    sorted.sort_by(|a, b| order.cells(out.get(*a), out.get(*b)));
    let mut cells = CellBuffer::new();
    sorted.into_iter().for_each(|at| cells.push(out.get(at)));
    out.truncate(from);
    cells.iter_from(0).for_each(|cell| out.push(cell));
}
