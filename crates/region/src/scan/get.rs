//! Reads of one row.

use super::limits::Limits;
use super::open::RegionReader;
use crate::error::Result;
use base::{EffortBudget, PausePoint, ReadMode, ReadPoint};
use cell::CellBuffer;
use hfile::Residency;
use key_statistics::Kind;
use model::Get;

/// What finding a row counts besides its cells.
const CELLS_OF_A_POINT_READ: u64 = 4;

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

impl RegionReader<'_> {
    /// Adds the cells that `get` asks for to `out`, within what a call on the network's thread may do.
    pub(crate) fn get(&self, get: &Get, out: &mut CellBuffer, residency: Residency) -> Result<()> {
        let budget = EffortBudget::of_network_thread();
        self.get_within(get, out, mode_of(residency, &budget))
    }

    /// As [`RegionReader::get`], within a budget that several reads share or with pauses.
    pub(crate) fn get_within(&self, get: &Get, out: &mut CellBuffer, mode: ReadMode<'_>) -> Result<()> {
        self.core.check_open()?;
        self.core.check_row(&get.row, "Get")?;
        let (from, bytes_before) = (out.len(), out.bytes().len());
        let result = self.read_row(get, None, mode, out);
        match result {
            Ok(()) => {
                self.core.counters.read_rows(1, 0);
                self.core.rows_passed(Kind::Read, 1, |_| (&get.row, out.bytes().len() - bytes_before));
            }
            Err(_) => out.truncate(from),
        }
        result
    }

    /// Whether [`RegionReader::get_within`] would find a cell.
    pub(crate) fn exists(&self, get: &Get, mode: ReadMode<'_>) -> Result<bool> {
        self.core.check_open()?;
        self.core.check_row(&get.row, "Get")?;
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
        self.core.counters.read_rows(1, 0);
        self.core.rows_passed(Kind::Read, 1, |_| (&get.row, 0));
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
        if self.read_point_row(get, read_point, residency, (budget, pause), out)? {
            return Ok(());
        }
        let mut rows = self.open_rows(&get.to_scan(), read_point, residency)?;
        if let Some(budget) = budget {
            rows.limit_effort(budget.left());
        }
        rows.say_what_is_gathered();
        rows.next(&mut Limits { pause, ..Limits::NONE }, out)?;
        if let Some(budget) = budget {
            budget.spend(budget.left().saturating_sub(rows.budget()));
        }
        Ok(())
    }
}
