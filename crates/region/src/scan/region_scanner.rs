//! What a server holds for an open scan, and Gets.

use super::limits::{Limits, Progress};
use super::rows::RowReader;
use crate::error::Result;
use crate::region::Region;
use base::{EffortBudget, PausePoint, ReadMode, ReadPoint};
use cell::CellBuffer;
use hfile::Residency;
use model::{Get, Scan};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Cells that a scan which is to be answered at once may look at: about a millisecond's work.
const CELLS_FROM_MEMORY: u64 = base::effort::NETWORK_THREAD_UNITS;
/// What finding a row counts besides its cells.
const CELLS_OF_A_POINT_READ: u64 = 4;

/// An open scan of one region. Sees the region as it was when it was opened, whatever is flushed or compacted meanwhile;
/// holds the files and memory that it needs for that. Runs where it may block.
pub struct RegionScanner {
    region: Arc<Region>,
    rows: RowReader,
}

impl std::fmt::Debug for RegionScanner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegionScanner").field("region", self.region.name()).finish_non_exhaustive()
    }
}

impl RegionScanner {
    /// From now on the scanner may read files and take its time.
    pub fn may_read(&mut self) {
        self.rows.may_read();
    }

    /// The next steps touch no file and look at some thousand cells at the most, until [`RegionScanner::may_read`] is called; a step that
    /// would have to do more is [`crate::RegionError::WouldBlock`], and [`RegionScanner::begin_again`] must follow. False, and nothing is
    /// changed, where that is not possible: before the first row, in one, backwards, with a filter.
    pub fn try_from_memory(&mut self) -> bool {
        self.rows.try_from_memory(CELLS_FROM_MEMORY)
    }

    /// Back to where the scanner was when [`RegionScanner::try_from_memory`] was called; from now on it may read. Reads what is needed to
    /// get there.
    ///
    /// # Errors
    /// As [`RegionScanner::next`].
    pub fn begin_again(&mut self) -> Result<()> {
        self.rows.begin_again()
    }

    /// The region.
    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// What the scan sees.
    pub fn read_point(&self) -> ReadPoint {
        self.rows.read_point
    }

    /// The row that was returned last (whole or in part) or passed over last: a heartbeat's cursor.
    pub fn last_row(&self) -> &[u8] {
        self.rows.row()
    }

    /// Whether the filter wants nothing more: the whole scan ends, not just this region's part.
    pub fn is_filter_done(&self) -> bool {
        self.rows.is_filter_done()
    }

    /// Rows that were returned or passed over so far.
    pub fn rows_scanned(&self) -> u64 {
        self.rows.rows_scanned
    }

    /// Rows of these that the filter dropped.
    pub fn rows_filtered(&self) -> u64 {
        self.rows.rows_filtered
    }

    /// Adds the cells of the next row, or of a piece of it, to `out`. After an error `out` is as before and the scanner
    /// is not to be used again.
    ///
    /// # Errors
    /// When the region was closed, a file cannot be read, or the filter fails.
    pub fn next(&mut self, limits: &mut Limits, out: &mut CellBuffer) -> Result<Progress> {
        self.next_rows(limits, out, 1, &mut Vec::new())
    }

    /// As [`RegionScanner::next`], or as so many calls of it at most that give a whole row each, where that is cheaper. What is said is said of
    /// the last one; where it and those after the first begin in `out` is added to `row_offsets`.
    ///
    /// # Errors
    /// As [`RegionScanner::next`]; `row_offsets` is undefined then.
    pub fn next_rows(
        &mut self,
        limits: &mut Limits,
        out: &mut CellBuffer,
        max_rows: usize,
        row_offsets: &mut Vec<usize>,
    ) -> Result<Progress> {
        self.region.check_open()?;
        debug_assert!(row_offsets.is_empty(), "what is there is of an earlier step");
        let (from, filtered_before) = (out.len(), self.rows.rows_filtered);
        let progress = self.rows.next_rows(limits, out, max_rows, row_offsets);
        let counters = &self.region.counters;
        counters.reads.add(1 + row_offsets.len() as u64);
        let filtered = self.rows.rows_filtered - filtered_before;
        if filtered > 0 {
            counters.rows_filtered.fetch_add(filtered, Ordering::Relaxed);
        }
        if progress.is_err() {
            out.truncate(from);
        }
        progress
    }
}

/// What a mode says of files, effort and pauses.
type Parts<'a> = (Residency, Option<&'a EffortBudget>, Option<&'a dyn PausePoint>);

/// # Errors
/// The effort is used up already.
fn parts_of(mode: ReadMode<'_>) -> Result<Parts<'_>> {
    match mode {
        ReadMode::FromMemory(budget) if budget.is_exhausted() => Err(crate::RegionError::WouldBlock),
        ReadMode::FromMemory(budget) => Ok((Residency::CachedOnly, Some(budget), None)),
        ReadMode::MayRead(pause) => Ok((Residency::MayRead, None, Some(pause))),
    }
}

/// The mode of one read alone.
fn mode_of(residency: Residency, budget: &EffortBudget) -> ReadMode<'_> {
    match residency {
        Residency::CachedOnly => ReadMode::FromMemory(budget),
        Residency::MayRead => ReadMode::UNPACED,
    }
}

impl Region {
    /// Opens a scan.
    ///
    /// # Errors
    /// An unknown family, columns in a raw scan, a closed region, an unreadable file.
    pub fn scanner(self: &Arc<Region>, scan: &Scan) -> Result<RegionScanner> {
        self.scanner_with(scan, Residency::MayRead)
    }

    /// As [`Region::scanner`]; with [`Residency::CachedOnly`] neither this nor the scanner touches a file or looks at more than
    /// some thousand cells, until [`RegionScanner::may_read`] is called.
    ///
    /// # Errors
    /// [`crate::RegionError::WouldBlock`], here or from the scanner's steps, of no scanner else: the scan may be opened anew with
    /// [`Residency::MayRead`].
    pub fn scanner_with(self: &Arc<Region>, scan: &Scan, residency: Residency) -> Result<RegionScanner> {
        self.check_open()?;
        let mut rows = self.open_rows(scan, None, residency)?;
        if residency == Residency::CachedOnly {
            rows.limit_effort(CELLS_FROM_MEMORY);
        }
        Ok(RegionScanner { region: self.clone(), rows })
    }

    /// Adds the cells that `get` asks for to `out`. On an error `out` is as before; after
    /// [`crate::RegionError::WouldBlock`] the same call may be made again with [`Residency::MayRead`].
    ///
    /// # Errors
    /// A row outside the region, an unknown family, a closed region, an unreadable file, a failing filter.
    pub fn get(&self, get: &Get, out: &mut CellBuffer, residency: Residency) -> Result<()> {
        self.check_open()?;
        self.check_row(&get.row, "Get")?;
        let from = out.len();
        let budget = EffortBudget::of_network_thread();
        self.get_with(get, from, out, mode_of(residency, &budget))
    }

    /// As [`Region::get`], within a budget that several reads share or with pauses.
    ///
    /// # Errors
    /// As [`Region::get`]; [`crate::RegionError::WouldBlock`] also when the budget is used up, [`crate::RegionError::Interrupted`] at a pause.
    pub fn get_within(&self, get: &Get, out: &mut CellBuffer, mode: ReadMode<'_>) -> Result<()> {
        self.check_open()?;
        self.check_row(&get.row, "Get")?;
        let from = out.len();
        self.get_with(get, from, out, mode)
    }

    fn get_with(&self, get: &Get, from: usize, out: &mut CellBuffer, mode: ReadMode<'_>) -> Result<()> {
        let result = self.read_row(get, None, mode, out);
        match result {
            Ok(()) => self.counters.reads.add(1),
            Err(_) => out.truncate(from),
        }
        result
    }

    /// Whether [`Region::get`] would find a cell.
    ///
    /// # Errors
    /// As [`Region::get`].
    pub fn exists(&self, get: &Get, residency: Residency) -> Result<bool> {
        let budget = EffortBudget::of_network_thread();
        self.exists_within(get, mode_of(residency, &budget))
    }

    /// As [`Region::exists`], within a budget that several reads share or with pauses.
    ///
    /// # Errors
    /// As [`Region::get_within`].
    pub fn exists_within(&self, get: &Get, mode: ReadMode<'_>) -> Result<bool> {
        self.check_open()?;
        self.check_row(&get.row, "Get")?;
        let (residency, budget, pause) = parts_of(mode)?;
        let mut rows = self.open_rows(&get.to_scan(), None, residency)?;
        if let Some(budget) = budget {
            rows.limit_effort(budget.left());
        }
        // One cell says it all, unless a filter wants to see the row.
        let batch_cells = u32::from(get.filter.is_none());
        let mut out = CellBuffer::new();
        rows.next(&mut Limits { batch_cells, pause, ..Limits::NONE }, &mut out)?;
        if let Some(budget) = budget {
            budget.spend(CELLS_OF_A_POINT_READ + budget.left().saturating_sub(rows.budget()));
        }
        self.counters.reads.add(1);
        Ok(!out.is_empty())
    }

    /// Reads one row in `mode`. `read_point` overrides what the Get asks for.
    pub(crate) fn read_row(
        &self,
        get: &Get,
        read_point: impl Into<Option<ReadPoint>>,
        mode: ReadMode<'_>,
        out: &mut CellBuffer,
    ) -> Result<()> {
        let read_point = read_point.into();
        let (residency, budget, pause) = parts_of(mode)?;
        if budget.is_some_and(|budget| !budget.spend(CELLS_OF_A_POINT_READ)) {
            return Err(crate::RegionError::WouldBlock);
        }
        if self.read_point_row(get, read_point, residency, budget, out)? {
            return Ok(());
        }
        let mut rows = self.open_rows(&get.to_scan(), read_point, residency)?;
        if let Some(budget) = budget {
            rows.limit_effort(budget.left());
        }
        rows.next(&mut Limits { pause, ..Limits::NONE }, out)?;
        if let Some(budget) = budget {
            budget.spend(budget.left().saturating_sub(rows.budget()));
        }
        Ok(())
    }
}
