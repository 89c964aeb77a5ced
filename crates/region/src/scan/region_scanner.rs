//! What a server holds for an open scan.

use super::limits::{Limits, Progress};
use super::open::RegionReader;
use super::rows::RowReader;
use super::taking::Viewer;
use crate::error::{RegionError, Result};
use crate::region::Region;
use base::ReadPoint;
use cell::{CellBuffer, CellRef};
use hfile::Residency;
use key_statistics::Kind;
use model::Scan;
use std::sync::Arc;

/// Cells that a scan which is to be answered at once may look at: about a millisecond's work.
const CELLS_FROM_MEMORY: u64 = base::effort::NETWORK_THREAD_UNITS;

/// An open scan of one region. Sees the region as it was when it was opened, whatever is flushed or compacted meanwhile;
/// holds the files and memory that it needs for that. Runs where it may block.
pub struct RegionScanner {
    region: Arc<Region>,
    rows: RowReader,
    /// It could not be moved to other files, and stands nowhere.
    failed: Option<RegionError>,
}

impl std::fmt::Debug for RegionScanner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegionScanner").field("region", self.region.name()).finish_non_exhaustive()
    }
}

impl Drop for RegionScanner {
    fn drop(&mut self) {
        self.region.core().scanner_read_points.remove(self.rows.read_point);
    }
}

impl RegionScanner {
    pub(crate) fn open(region: &Arc<Region>, scan: &Scan, residency: Residency) -> Result<RegionScanner> {
        let core = region.core();
        core.check_open()?;
        let mut rows = RegionReader::new(core).open_rows(scan, None, residency)?;
        if residency == Residency::CachedOnly {
            rows.limit_effort(CELLS_FROM_MEMORY);
        }
        core.scanner_read_points.add(rows.read_point);
        Ok(RegionScanner { region: region.clone(), rows, failed: None })
    }

    /// Between two steps: goes on from store files where it has held memstore segments that have been flushed, and lets go of these. May
    /// read. False where some must stay until the scanner is closed.
    ///
    /// # Errors
    /// When the region was closed or a file cannot be read: the steps to come fail, too.
    pub fn update_readers(&mut self) -> Result<bool> {
        let core = self.region.core();
        core.check_open()?;
        let updated = self.rows.update_readers(core);
        self.failed = updated.as_ref().err().cloned();
        updated
    }

    /// Whether it keeps memstore segments in memory that have been flushed.
    pub fn holds_flushed(&mut self) -> bool {
        self.rows.holds_flushed(self.region.core())
    }

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
        self.region.core().check_open()?;
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        debug_assert!(row_offsets.is_empty(), "what is there is of an earlier step");
        let (from, bytes_before, filtered_before) = (out.len(), out.bytes().len(), self.rows.rows_filtered);
        let progress = self.rows.next_rows(limits, out, max_rows, row_offsets);
        let filtered = self.rows.rows_filtered - filtered_before;
        self.region.core().counters.read_rows(1 + row_offsets.len() as u64, filtered);
        if progress.is_err() {
            out.truncate(from);
        } else {
            self.told_of_rows(out, from, bytes_before, row_offsets);
        }
        progress
    }

    /// As [`RegionScanner::next_rows`], for who makes something of rows at once: where that can be, rows are shown to `viewer` where they lie,
    /// each whole and once, and nothing is added to `out`. Whether any were.
    ///
    /// # Errors
    /// As [`RegionScanner::next_rows`]. What was shown before counts.
    pub fn view_rows(
        &mut self,
        limits: &mut Limits,
        out: &mut CellBuffer,
        viewer: &mut Viewer<'_>,
        max_rows: usize,
        row_offsets: &mut Vec<usize>,
    ) -> Result<(Progress, bool)> {
        self.region.core().check_open()?;
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let (from, bytes_before, filtered_before) = (out.len(), out.bytes().len(), self.rows.rows_filtered);
        let core = self.region.core();
        let mut shown = 0;
        let mut show = |cells: &[CellRef<'_>]| {
            shown += 1;
            let bytes = || cells.iter().map(|cell| cell.bytes().len()).sum();
            core.rows_passed(Kind::Read, 1, |_| (cells[0].row(), bytes()));
            viewer(cells);
        };
        let progress = self.rows.view_rows(limits, out, max_rows, row_offsets, Some(&mut show));
        let filtered = self.rows.rows_filtered - filtered_before;
        core.counters.read_rows(shown.max(1 + row_offsets.len() as u64), filtered);
        if progress.is_err() {
            out.truncate(from);
        } else if shown == 0 {
            self.told_of_rows(out, from, bytes_before, row_offsets);
        }
        progress.map(|progress| (progress, shown > 0))
    }

    /// The rows from cell `from` on have passed; the second and those after it begin at `row_offsets`.
    fn told_of_rows(&self, out: &CellBuffer, from: usize, bytes_before: usize, row_offsets: &[usize]) {
        // The last step may have found no row.
        let begun = 1 + row_offsets.len() - usize::from(*row_offsets.last().unwrap_or(&from) == out.len());
        let bytes_each = (out.bytes().len() - bytes_before).checked_div(begun).unwrap_or(0);
        let start = |number: usize| if number == 0 { from } else { row_offsets[number - 1] };
        self.region.core().rows_passed(Kind::Read, begun, |number| (out.get(start(number)).row(), bytes_each));
    }
}
