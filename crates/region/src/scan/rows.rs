//! A region's rows, one step at a time: the asked families side by side, the filter in HBase's order of calls, limits.
//!
//! Families that the filter can do without are read only for rows that it has passed. A row may be delivered in
//! pieces; between the pieces all state stays here, so a step may end anywhere. Follows: `RegionScannerImpl`.

mod fill;
mod start;

use super::backoff::AttemptBackoff;
use super::limits::{Limits, Progress, Reason};
use super::source::AnyRun;
use super::store_scanner::StoreScanner;
use super::taking::{Copying, Showing, Viewer};
use super::walk::{Walk, Walked};
use crate::core::RegionCore;
use crate::error::{RegionError, Result};
use crate::row_reads::RowCount;
use base::effort::GATHERED_STEP_BYTES;
use base::{Clock, ReadPoint};
use bytes::Bytes;
use cell::{CellBuffer, Order};
use fill::{Filled, pause, sort_cells};
use filter::Evaluator;
use hfile::Residency;
use model::Scan;
use std::cmp::Ordering;
use std::sync::Arc;

/// Bytes read one block at a time before a scan goes over to streaming (`hbase.storescanner.pread.max.bytes`).
const PREAD_MAX_BYTES: u64 = 4 * 64 * 1024;

/// Rows at most that are judged without looking whether they are plain, where the last ones were not.
const MOST_ROWS_UNTRIED: u32 = 64;

/// Cells that a filter judges between two pauses.
const CELLS_PER_CHECK_OF_FILTER: u64 = 1024;
/// Cells that a filter with a regular expression judges between two pauses.
const CELLS_PER_CHECK_OF_REGEX: u64 = 8;

/// Where in a row the reader is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    BetweenRows,
    Essential,
    Joined,
}

/// Reads rows; does not hold the region, see [`super::region_scanner::RegionScanner`].
pub(crate) struct RowReader {
    clock: Arc<dyn Clock>,
    region_name: Arc<str>,
    order: Order,
    reversed: bool,
    is_get: bool,
    stop_row: Bytes,
    include_stop_row: bool,
    pub read_point: ReadPoint,
    filter: Option<Evaluator>,
    has_filter_row: bool,
    essential: Vec<StoreScanner>,
    joined: Vec<StoreScanner>,
    place: Place,
    row: Vec<u8>,
    row_bytes: u64,
    /// Of these were said to be gathered.
    gathered_bytes: u64,
    max_row_bytes: u64,
    /// Rows of more bytes are not walked over but judged, for that is where what is gathered is said.
    max_walked_row_bytes: u64,
    cells_per_check: u64,
    budget: u64,
    /// Files may be streamed.
    streams: bool,
    /// Bytes until streaming begins; `None` when it began or never will.
    pread_left: Option<u64>,
    ended: bool,
    /// Rows may be walked over; see [`super::walk`].
    may_walk: bool,
    /// Rows to be judged before the next walk, and how many they were the last time.
    backoff: AttemptBackoff,
    /// When the budget is used up the reader gives up rather than going on.
    gives_up: bool,
    tried: Tried,
    /// Rows begun since the reader was made.
    pub rows_scanned: u64,
    /// Rows dropped by the filter or empty, since the reader was made.
    pub rows_filtered: u64,
}

/// Where a reader stood before it tried to go on from memory.
#[derive(Default)]
struct Tried {
    row: Vec<u8>,
    rows_scanned: u64,
    rows_filtered: u64,
}

impl RowReader {
    pub(super) fn new(
        region: &RegionCore,
        scan: &Scan,
        read_point: ReadPoint,
        filter: Option<Evaluator>,
        essential: Vec<StoreScanner>,
        joined: Vec<StoreScanner>,
    ) -> RowReader {
        let cells_per_check = match &scan.filter {
            None => region.settings.cells_per_heartbeat_check,
            // A match of a regular expression may take milliseconds.
            Some(filter) if filter.compiled_bytes() > 0 => CELLS_PER_CHECK_OF_REGEX,
            Some(_) => region.settings.cells_per_heartbeat_check.min(CELLS_PER_CHECK_OF_FILTER),
        };
        let may_walk = essential.len() == 1
            && joined.is_empty()
            && !scan.reversed
            && !scan.is_get
            && filter.as_ref().is_none_or(Evaluator::is_restartable_per_row);
        let streams = !scan.pread && !scan.is_get;
        RowReader {
            clock: region.env.clock.clone(),
            region_name: region.name().clone(),
            order: region.order(),
            reversed: scan.reversed,
            is_get: scan.is_get,
            stop_row: scan.stop_row.clone(),
            include_stop_row: scan.include_stop_row,
            read_point,
            has_filter_row: filter.as_ref().is_some_and(Evaluator::has_filter_row),
            filter,
            essential,
            joined,
            place: Place::BetweenRows,
            row: Vec::new(),
            row_bytes: 0,
            gathered_bytes: 0,
            max_row_bytes: region.settings.max_row_size_bytes,
            max_walked_row_bytes: region.settings.max_row_size_bytes,
            cells_per_check,
            budget: cells_per_check,
            streams,
            pread_left: streams.then_some(PREAD_MAX_BYTES),
            ended: false,
            may_walk,
            backoff: AttemptBackoff::new(MOST_ROWS_UNTRIED),
            gives_up: false,
            tried: Tried::default(),
            rows_scanned: 0,
            rows_filtered: 0,
        }
    }

    /// After so many cells every step is [`RegionError::WouldBlock`].
    pub(crate) fn limit_effort(&mut self, cells: u64) {
        (self.budget, self.gives_up) = (cells, true);
        self.row_counts().for_each(RowCount::try_on);
    }

    /// Has the pause point told of what is gathered of a row, wherever the row is read ([`base::PausePoint::gathered`]).
    pub(super) fn say_what_is_gathered(&mut self) {
        self.max_walked_row_bytes = self.max_row_bytes.min(GATHERED_STEP_BYTES);
    }

    /// Cells that may be looked at before the next check, or at all after [`RowReader::limit_effort`].
    pub(super) fn budget(&self) -> u64 {
        self.budget
    }

    /// Ends the limits of a reader that was to read from memory alone.
    pub(crate) fn may_read(&mut self) {
        (self.budget, self.gives_up) = (self.cells_per_check, false);
        self.row_counts().for_each(RowCount::is_sure);
        self.set_residency(Residency::MayRead);
    }

    /// Whether misses in the cache are read now.
    pub(super) fn residency(&self) -> Residency {
        if self.gives_up { Residency::CachedOnly } else { Residency::MayRead }
    }

    /// Whether files are read on rather than block by block.
    pub(super) fn is_streaming(&self) -> bool {
        self.streams && self.pread_left.is_none()
    }

    pub(super) fn scanners_mut(&mut self) -> impl Iterator<Item = &mut StoreScanner> {
        self.essential.iter_mut().chain(&mut self.joined)
    }

    fn row_counts(&mut self) -> impl Iterator<Item = &mut RowCount> {
        self.scanners_mut().filter_map(StoreScanner::row_count)
    }

    fn set_residency(&mut self, residency: Residency) {
        for scanner in self.essential.iter_mut().chain(&mut self.joined) {
            scanner.set_residency(residency);
        }
    }

    /// The next steps read from memory alone and look at so many cells at most: else they are [`RegionError::WouldBlock`], and
    /// [`RowReader::begin_again`] must follow. False, and nothing is changed, where one could not begin again: in a row, before the first
    /// one, backwards, and with a filter, which may remember what it has seen.
    pub(crate) fn try_from_memory(&mut self, cells: u64) -> bool {
        let can = self.filter.is_none()
            && !self.reversed
            && !self.is_get
            && !self.ended
            && self.place == Place::BetweenRows
            && !self.row.is_empty();
        if can {
            self.tried.row.clone_from(&self.row);
            (self.tried.rows_scanned, self.tried.rows_filtered) = (self.rows_scanned, self.rows_filtered);
            self.limit_effort(cells);
            self.set_residency(Residency::CachedOnly);
        }
        can
    }

    /// As it was before [`RowReader::try_from_memory`]; files may be read.
    pub(crate) fn begin_again(&mut self) -> Result<()> {
        self.may_read();
        self.row.clone_from(&self.tried.row);
        (self.rows_scanned, self.rows_filtered) = (self.tried.rows_scanned, self.tried.rows_filtered);
        (self.place, self.ended) = (Place::BetweenRows, false);
        self.essential.iter_mut().try_for_each(|scanner| scanner.begin_after(&self.row))
    }

    /// Whether the filter wants nothing more.
    pub(crate) fn is_filter_done(&self) -> bool {
        self.filter.as_ref().is_some_and(Evaluator::filter_all_remaining)
    }

    /// The row that was read last, whole or in part, or passed over.
    pub(crate) fn row(&self) -> &[u8] {
        &self.row
    }

    /// The next row or piece of one.
    pub(crate) fn next(&mut self, limits: &mut Limits, out: &mut CellBuffer) -> Result<Progress> {
        self.next_rows(limits, out, 1, &mut Vec::new())
    }

    /// As [`RowReader::next`], or as so many calls of it at most that give a whole row each. What is said is said of the last one; where it and
    /// those after the first begin in `out` is added to `row_offsets`.
    pub(crate) fn next_rows(
        &mut self,
        limits: &mut Limits,
        out: &mut CellBuffer,
        max_rows: usize,
        row_offsets: &mut Vec<usize>,
    ) -> Result<Progress> {
        self.view_rows(limits, out, max_rows, row_offsets, None)
    }

    /// The same; where rows can be seen where they lie they are shown to the viewer and not added to `out`.
    pub(crate) fn view_rows(
        &mut self,
        limits: &mut Limits,
        out: &mut CellBuffer,
        max_rows: usize,
        row_offsets: &mut Vec<usize>,
        viewer: Option<&mut Viewer<'_>>,
    ) -> Result<Progress> {
        let read = self.read_rows(limits, out, max_rows, row_offsets, viewer);
        if read.is_err() {
            // What was read is given up.
            self.row_counts().for_each(RowCount::forget);
        }
        read
    }

    fn read_rows(
        &mut self,
        limits: &mut Limits,
        out: &mut CellBuffer,
        max_rows: usize,
        row_offsets: &mut Vec<usize>,
        mut viewer: Option<&mut Viewer<'_>>,
    ) -> Result<Progress> {
        let from = out.len();
        let used_before = limits.used_bytes;
        // What counts is what is gathered at once: a row of any size may be read in pieces.
        self.row_bytes = 0;
        self.gathered_bytes = 0;
        loop {
            if self.ended {
                return Ok(Progress { cells: 0, partial: false, more: false, reason: Reason::End });
            }
            if self.may_walk
                && self.place == Place::BetweenRows
                && limits.batch_cells == 0
                && let Some(bytes) = self.walk(limits, out, max_rows, row_offsets, viewer.as_deref_mut())
            {
                self.note_bytes(bytes);
                let reason = if limits.is_full() { Reason::Size } else { Reason::RowDone };
                let start = row_offsets.last().copied().unwrap_or(from);
                return Ok(self.progress(out.len() - start, false, reason));
            }
            if self.gives_up && self.budget == 0 {
                return Err(RegionError::WouldBlock);
            }
            if self.place == Place::BetweenRows {
                if self.budget == 0 {
                    pause(limits)?;
                }
                if self.is_late(limits) {
                    // The next call looks at some cells before it looks at the clock again.
                    self.budget = self.cells_per_check;
                    return Ok(self.progress(out.len() - from, false, Reason::Time));
                }
                if !self.start_row()? {
                    continue;
                }
            }
            if self.place == Place::Essential {
                match self.fill(false, limits, from, out)? {
                    Filled::Cut(reason) => return self.cut(reason, out.len() - from),
                    Filled::Whole => {}
                }
                if !self.keep_row(from, used_before, limits, out) {
                    continue;
                }
                self.place = Place::Joined;
                self.start_joined()?;
            }
            let essential_cells = out.len();
            let filled = self.fill(true, limits, from, out)?;
            if essential_cells > from && out.len() > essential_cells {
                sort_cells(out, from, self.order);
            }
            if let Filled::Cut(reason) = filled {
                return self.cut(reason, out.len() - from);
            }
            self.end_row();
            let cells = out.len() - from;
            if cells == 0 {
                // The filter took every cell and kept the row: there is nothing to send.
                self.rows_filtered += 1;
                continue;
            }
            let reason = if limits.is_full() { Reason::Size } else { Reason::RowDone };
            return Ok(self.progress(cells, false, reason));
        }
    }

    /// Walks over plain rows up to some that are taken: their cells are added to `out`, or shown, and counted in `limits`, their bytes
    /// returned. The row after them, or one that is not plain, is next.
    #[inline]
    fn walk(
        &mut self,
        limits: &mut Limits,
        out: &mut CellBuffer,
        max_rows: usize,
        row_offsets: &mut Vec<usize>,
        viewer: Option<&mut Viewer<'_>>,
    ) -> Option<u64> {
        if !self.backoff.is_due() {
            return None;
        }
        let scanner = self.essential.first_mut()?;
        let (run, others_from, matcher) = scanner.run()?;
        let showing = viewer.and_then(|viewer| Showing::new(self.filter.as_ref(), viewer));
        let walk = Walk {
            matcher,
            others_from,
            filter: self.filter.as_mut(),
            budget: &mut self.budget,
            gives_up: self.gives_up,
            limits,
            max_rows,
            max_row_bytes: self.max_walked_row_bytes,
            order: self.order,
            stop_row: &self.stop_row,
            include_stop_row: self.include_stop_row,
        };
        let last_row = &mut self.row;
        let (walked, are_in_memory) = match (run, showing) {
            (AnyRun::File(run), None) => (walk.rows(run, &mut Copying::new(out, row_offsets), last_row), false),
            (AnyRun::Memory(run), None) => (walk.rows(run, &mut Copying::new(out, row_offsets), last_row), true),
            (AnyRun::File(run), Some(mut showing)) => (walk.rows(run, &mut showing, last_row), false),
            (AnyRun::Memory(run), Some(mut showing)) => (walk.rows(run, &mut showing, last_row), true),
        };
        let Walked { refused, taken, taken_bytes, is_unclear } = walked;
        let passed = refused + taken as u64;
        if passed > 0 {
            scanner.run_moved();
        }
        if let Some(count) = scanner.row_count() {
            count.rows(taken as u64, are_in_memory);
        }
        self.rows_scanned += passed;
        self.rows_filtered += refused;
        if passed > 0 {
            self.backoff.succeeded();
        } else if is_unclear {
            self.backoff.failed();
        }
        (taken > 0).then_some(taken_bytes)
    }

    fn progress(&mut self, cells: usize, partial: bool, reason: Reason) -> Progress {
        let more = partial || self.has_more();
        Progress { cells, partial, more, reason: if more { reason } else { Reason::End } }
    }

    fn cut(&mut self, reason: Reason, cells: usize) -> Result<Progress> {
        if self.has_filter_row {
            return Err(RegionError::IncompatibleFilter(
                "Filter whose hasFilterRow() returns true is incompatible with scans that must  stop mid-row because \
                 of a limit."
                    .into(),
            ));
        }
        Ok(self.progress(cells, true, reason))
    }

    /// Whether a row is left that the scan wants, as far as can be told without reading on.
    fn has_more(&mut self) -> bool {
        if self.ended || self.is_get {
            return false;
        }
        let wanted = next_row(&self.essential, self.order, self.reversed)
            .is_some_and(|at| !self.is_past_stop(self.essential[at].peek_row().unwrap_or_default()));
        if !wanted || self.filter.as_ref().is_some_and(Evaluator::filter_all_remaining) {
            self.ended = true;
        }
        !self.ended
    }

    fn is_past_stop(&self, row: &[u8]) -> bool {
        if self.stop_row.is_empty() {
            return false;
        }
        match (self.order.rows(row, &self.stop_row), self.reversed) {
            (Ordering::Equal, _) => !self.include_stop_row,
            (Ordering::Greater, reversed) => !reversed,
            (Ordering::Less, reversed) => reversed,
        }
    }

    fn is_late(&self, limits: &Limits) -> bool {
        self.budget == 0 && limits.deadline_us.is_some_and(|deadline| self.clock.monotonic_us() >= deadline)
    }

    fn end_row(&mut self) {
        self.place = Place::BetweenRows;
        self.rows_scanned += 1;
        if let Some(filter) = &mut self.filter {
            filter.reset();
        }
        if self.is_get {
            self.ended = true;
        }
    }
}

/// Which scanner has the next row.
#[inline]
fn next_row(scanners: &[StoreScanner], order: Order, reversed: bool) -> Option<usize> {
    if let [only] = scanners {
        return only.peek().map(|_| 0);
    }
    let mut best: Option<(usize, &[u8])> = None;
    for (at, scanner) in scanners.iter().enumerate() {
        let Some(row) = scanner.peek_row() else { continue };
        let better = best.is_none_or(|(_, best)| match order.rows(row, best) {
            Ordering::Less => !reversed,
            Ordering::Greater => reversed,
            Ordering::Equal => false,
        });
        if better {
            best = Some((at, row));
        }
    }
    best.map(|(at, _)| at)
}
