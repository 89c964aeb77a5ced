//! What a server holds for an open scan, and Gets.

use super::limits::{Limits, Progress};
use super::rows::RowReader;
use crate::error::Result;
use crate::region::Region;
use base::ReadPoint;
use cell::CellBuffer;
use hfile::Residency;
use model::{Get, Scan};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Cells that a scan which is to be answered at once may look at: about a millisecond's work.
const CELLS_FROM_MEMORY: u64 = 2048;

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
    /// the last one; where it and those after the first begin in `out` is added to `starts`.
    ///
    /// # Errors
    /// As [`RegionScanner::next`]; `starts` is undefined then.
    pub fn next_rows(
        &mut self,
        limits: &mut Limits,
        out: &mut CellBuffer,
        most: usize,
        starts: &mut Vec<usize>,
    ) -> Result<Progress> {
        self.region.check_open()?;
        debug_assert!(starts.is_empty(), "what is there is of an earlier step");
        let (from, filtered_before) = (out.len(), self.rows.rows_filtered);
        let progress = self.rows.next_rows(limits, out, most, starts);
        let counters = &self.region.counters;
        counters.reads.add(1 + starts.len() as u64);
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
        let result = self.read_row(get, None, residency, out);
        match result {
            Ok(()) => {
                self.counters.reads.add(1);
            }
            Err(_) => out.truncate(from),
        }
        result
    }

    /// Whether [`Region::get`] would find a cell.
    ///
    /// # Errors
    /// As [`Region::get`].
    pub fn exists(&self, get: &Get, residency: Residency) -> Result<bool> {
        self.check_open()?;
        self.check_row(&get.row, "Get")?;
        let mut rows = self.open_rows(&get.to_scan(), None, residency)?;
        // One cell says it all, unless a filter wants to see the row.
        let batch_cells = u32::from(get.filter.is_none());
        let mut out = CellBuffer::new();
        rows.next(&mut Limits { batch_cells, ..Limits::NONE }, &mut out)?;
        self.counters.reads.add(1);
        Ok(!out.is_empty())
    }

    /// Reads one row. `read_point` overrides what the Get asks for.
    pub(crate) fn read_row(
        &self,
        get: &Get,
        read_point: impl Into<Option<ReadPoint>>,
        residency: Residency,
        out: &mut CellBuffer,
    ) -> Result<()> {
        let read_point = read_point.into();
        if self.read_point_row(get, read_point, residency, out)? {
            return Ok(());
        }
        let mut rows = self.open_rows(&get.to_scan(), read_point, residency)?;
        rows.next(&mut Limits::NONE.clone(), out)?;
        Ok(())
    }
}
