//! Decides about each cell of a row in one family: take it, pass it, and where to go next. It knows delete markers,
//! versions, time to live, columns and the time range, for reads and for the rewriting of files.
//!
//! Order of the tests for a user's read: expired by its own TTL or the family's; a delete marker (remembered);
//! deleted; outside the time range; not an asked column; a duplicate of the same timestamp; over the versions; then
//! the filter, and the versions again for what the filter let through.
//! Follows: `UserScanQueryMatcher`, `RawScanQueryMatcher`, `MinorCompactionScanQueryMatcher`,
//! `MajorCompactionScanQueryMatcher` and the column trackers they use.

mod rules;
mod versions;

use super::deletes::{DeleteTracker, Masked};
use super::version_behavior::VersionBehavior;
use crate::stripes::RowRange;
use base::ReadPoint;
use bytes::Bytes;
use cell::key::same_bytes;
use cell::{CellRef, CellType, KeyRef, tag};
use filter::{Evaluator, Verdict};
use model::{KeepDeletedCells, Scan, TimeRange};
use std::sync::Arc;

pub(crate) use rules::FamilyRules;

/// What becomes of a cell and where the scanner goes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Code {
    Include,
    IncludeNextCol,
    IncludeNextRow,
    Skip,
    NextCol,
    NextRow,
    Hint,
    DoneScan,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Normal,
    Raw,
    /// Flush and minor compaction: delete markers stay.
    RetainDeletes,
    /// Major compaction.
    DropDeletes,
}

/// One family's matcher in one scanner.
pub(crate) struct Matcher {
    mode: Mode,
    now_ms: i64,
    oldest_unexpired: i64,
    min_versions: u32,
    /// Versions let through to the filter (or to the result when there is none).
    max_versions: u32,
    /// Versions let through by the filter.
    versions_after_filter: u32,
    time_range: TimeRange,
    see_past_deletes: bool,
    keep_deleted: KeepDeletedCells,
    purge_deletes_ms: i64,
    earliest_put_ts: i64,
    /// Rewriting: cells newer than this are kept as they are and mask nothing.
    read_point: ReadPoint,
    /// Asked columns in order; `None` for all.
    columns: Option<Arc<[Bytes]>>,
    deletes: DeleteTracker,
    version_behavior: Option<Box<VersionBehavior>>,
    /// Rewriting a part of the store: the rows of which all is rewritten, and only of them delete markers go.
    drops_in: Option<RowRange>,

    // State within a row.
    column_index: usize,
    /// The column that is being counted, for wildcard reads.
    column: Vec<u8>,
    has_column: bool,
    count: u32,
    last_timestamp: i64,
    last_type: u8,
    filtered_column: Vec<u8>,
    has_filtered_column: bool,
    filtered_count: u32,
}

const NO_TYPE: u8 = 0;

impl Matcher {
    fn new(mode: Mode, rules: &FamilyRules, now_ms: i64, columns: Option<Arc<[Bytes]>>) -> Matcher {
        Matcher {
            mode,
            now_ms,
            oldest_unexpired: rules.oldest_unexpired(now_ms),
            min_versions: rules.min_versions,
            max_versions: rules.max_versions,
            versions_after_filter: 0,
            time_range: TimeRange::ALL,
            see_past_deletes: rules.keep_deleted != KeepDeletedCells::False,
            keep_deleted: rules.keep_deleted,
            purge_deletes_ms: rules.time_to_purge_deletes_ms,
            earliest_put_ts: i64::MIN,
            read_point: ReadPoint::ALL,
            columns,
            deletes: DeleteTracker::default(),
            version_behavior: None,
            drops_in: None,
            column_index: 0,
            column: Vec::new(),
            has_column: false,
            count: 0,
            last_timestamp: i64::MAX,
            last_type: NO_TYPE,
            filtered_column: Vec::new(),
            has_filtered_column: false,
            filtered_count: 0,
        }
    }

    /// For a Get or a Scan.
    pub(crate) fn user(
        rules: &FamilyRules,
        scan: &Scan,
        family: &[u8],
        columns: Option<Arc<[Bytes]>>,
        now_ms: i64,
    ) -> Matcher {
        let mut matcher = Matcher::new(if scan.raw { Mode::Raw } else { Mode::Normal }, rules, now_ms, columns);
        let family_versions = if scan.raw { u32::MAX } else { rules.max_versions };
        let result_versions = scan.max_versions.min(family_versions);
        matcher.max_versions = match &scan.filter {
            Some(_) => family_versions,
            None => result_versions,
        };
        matcher.versions_after_filter = result_versions;
        matcher.time_range = scan.time_range_of(family);
        if scan.raw {
            // A raw scan shows expired cells too, as long as they are there.
            matcher.oldest_unexpired = 0;
        }
        if rules.new_version_behavior && !scan.raw {
            matcher.version_behavior = Some(Box::new(VersionBehavior::new(rules.max_versions, result_versions)));
        }
        matcher
    }

    /// For a flush or a compaction. `read_point`: what every reader to come can see; `earliest_put_ts`: no put in the
    /// inputs is older. `drops_deletes`: all files of the store are rewritten.
    pub(crate) fn rewrite(
        rules: &FamilyRules,
        drops_deletes: bool,
        read_point: ReadPoint,
        earliest_put_ts: i64,
        now_ms: i64,
    ) -> Matcher {
        let mode = if drops_deletes { Mode::DropDeletes } else { Mode::RetainDeletes };
        let mut matcher = Matcher::new(mode, rules, now_ms, None);
        matcher.read_point = read_point;
        matcher.earliest_put_ts = earliest_put_ts;
        if rules.new_version_behavior {
            matcher.version_behavior = Some(Box::new(VersionBehavior::new(rules.max_versions, rules.max_versions)));
        }
        matcher
    }

    /// As [`Matcher::rewrite`]: of `rows` all files of the store that can have them are rewritten, of others only some.
    pub(crate) fn rewrite_in(
        rules: &FamilyRules,
        rows: RowRange,
        read_point: ReadPoint,
        earliest_put_ts: i64,
        now_ms: i64,
    ) -> Matcher {
        let matcher = Matcher::rewrite(rules, false, read_point, earliest_put_ts, now_ms);
        Matcher { drops_in: Some(rows), ..matcher }
    }

    /// Whether expired cells of a store file need not even be looked at.
    pub(crate) fn expired_before(&self) -> i64 {
        if self.min_versions == 0 { self.oldest_unexpired } else { i64::MIN }
    }

    /// Whether [`Matcher::takes_newest`] may be asked before judging: in a user's read.
    pub(crate) fn is_simple(&self) -> bool {
        self.mode == Mode::Normal
            && self.version_behavior.is_none()
            && self.max_versions > 0
            && self.versions_after_filter > 0
    }

    /// Whether [`Matcher::takes_newest`] may be asked before judging: in a flush or compaction.
    pub(crate) fn is_simple_rewrite(&self) -> bool {
        matches!(self.mode, Mode::RetainDeletes | Mode::DropDeletes)
            && self.version_behavior.is_none()
            && self.columns.is_none()
            && self.max_versions > 0
    }

    /// The asked columns in order; `None` for all.
    #[inline]
    pub(crate) fn asked_columns(&self) -> Option<&[Bytes]> {
        self.columns.as_deref()
    }

    /// Whether nothing more of a column is wanted after its first version, be that taken or refused by the filter.
    #[inline]
    pub(crate) fn takes_one_version(&self) -> bool {
        self.max_versions == 1
    }

    /// Whether a cell that is the first of its column, in a row of nothing but such cells, is simply one to take. The matcher must be
    /// simple; it remembers nothing. False says nothing: such a row is to be judged.
    #[inline]
    pub(crate) fn takes_newest(&self, cell: CellRef<'_>) -> bool {
        cell.type_code() == CellType::Put.code()
            && cell.timestamp() >= self.oldest_unexpired
            && self.time_range.contains(cell.timestamp())
            && cell.tags().is_empty()
    }

    /// A new row begins.
    pub(crate) fn start_row(&mut self, row: &[u8]) {
        if let Some(rows) = &self.drops_in {
            self.mode = if rows.contains(row) { Mode::DropDeletes } else { Mode::RetainDeletes };
        }
        self.column_index = 0;
        self.has_column = false;
        self.has_filtered_column = false;
        self.count = 0;
        self.reset_last();
        self.deletes.reset();
        if let Some(tracker) = &mut self.version_behavior {
            tracker.reset();
        }
    }

    /// Whether no asked column is left in the row.
    #[inline]
    fn columns_done(&self) -> bool {
        self.columns.as_ref().is_some_and(|columns| self.column_index >= columns.len())
    }

    /// The next asked column; `None` when all are or none is left.
    pub(crate) fn next_column(&self) -> Option<&[u8]> {
        self.columns.as_ref().and_then(|columns| columns.get(self.column_index)).map(|column| &column[..])
    }

    /// Matches the next cell of the row: whether it is in the result, and where to go on.
    #[inline]
    pub(crate) fn match_cell(
        &mut self,
        cell: CellRef<'_>,
        filter: Option<&mut Evaluator>,
    ) -> Result<Code, filter::Error> {
        if let Some(filter) = &filter
            && filter.filter_all_remaining()
        {
            return Ok(Code::DoneScan);
        }
        if self.mode == Mode::RetainDeletes && self.version_behavior.is_some() {
            // Masking needs the order of arrival of everything in the store: nothing is dropped before all is seen, not
            // even what has expired.
            return Ok(Code::Include);
        }
        if self.columns_done() {
            return Ok(Code::NextRow);
        }
        let key = cell.key();
        let timestamp = key.timestamp();
        if self.min_versions == 0 && timestamp < self.oldest_unexpired && self.version_behavior.is_none() {
            return Ok(self.pass_column(key));
        }
        if !cell.tags().is_empty() && self.is_cell_expired(cell, timestamp) {
            return Ok(Code::Skip);
        }
        match self.mode {
            Mode::Normal => {
                if cell.is_delete() {
                    let remember = if self.see_past_deletes {
                        self.time_range.contains(timestamp)
                    } else {
                        // A marker before the range cannot mask anything inside.
                        timestamp >= self.time_range.min
                    };
                    if remember {
                        self.remember_delete(cell);
                    }
                    return Ok(Code::Skip);
                }
                if let Some(code) = self.check_deleted(cell) {
                    return Ok(code);
                }
                self.match_column(cell, key, timestamp, filter)
            }
            Mode::Raw => self.match_column(cell, key, timestamp, filter),
            Mode::RetainDeletes => Ok(self.judge_retaining(cell, timestamp)),
            Mode::DropDeletes => Ok(self.judge_dropping(cell, timestamp)),
        }
    }

    fn is_cell_expired(&self, cell: CellRef<'_>, timestamp: i64) -> bool {
        tag::ttl_ms(cell.tags()).is_some_and(|ttl| timestamp.saturating_add(ttl) < self.now_ms)
    }

    fn judge_retaining(&mut self, cell: CellRef<'_>, timestamp: i64) -> Code {
        let newer = cell.seq_id().0 > self.read_point.0;
        if cell.is_delete() {
            if !newer {
                self.track_delete(cell, timestamp);
            }
            return Code::Include;
        }
        if let Some(code) = self.check_deleted(cell) {
            return code;
        }
        self.check_versions_all(cell, timestamp, newer)
    }

    fn judge_dropping(&mut self, cell: CellRef<'_>, timestamp: i64) -> Code {
        let newer = cell.seq_id().0 > self.read_point.0;
        if cell.is_delete() {
            if newer {
                return Code::Include;
            }
            self.track_delete(cell, timestamp);
            if self.purge_deletes_ms > 0 && self.now_ms.saturating_sub(timestamp) <= self.purge_deletes_ms {
                return Code::Include;
            }
            if !self.keeps_deleted_at(timestamp) {
                return Code::Skip;
            }
            // Kept like a version, unless no put is old enough to be masked by it.
            if timestamp < self.earliest_put_ts {
                return self.pass_column(cell.key());
            }
        } else if let Some(code) = self.check_deleted(cell) {
            return code;
        }
        self.check_versions_all(cell, timestamp, newer)
    }

    fn keeps_deleted_at(&self, timestamp: i64) -> bool {
        match self.keep_deleted {
            KeepDeletedCells::False => false,
            KeepDeletedCells::True => true,
            KeepDeletedCells::Ttl => timestamp >= self.oldest_unexpired,
        }
    }

    fn track_delete(&mut self, cell: CellRef<'_>, timestamp: i64) {
        if !self.keeps_deleted_at(timestamp) {
            self.remember_delete(cell);
        }
    }

    fn remember_delete(&mut self, cell: CellRef<'_>) {
        match &mut self.version_behavior {
            Some(tracker) => tracker.add(cell),
            None => self.deletes.add(cell),
        }
    }

    #[inline]
    fn check_deleted(&mut self, cell: CellRef<'_>) -> Option<Code> {
        if let Some(tracker) = &mut self.version_behavior {
            return tracker.is_deleted(cell).then_some(Code::Skip);
        }
        if self.deletes.is_empty() {
            return None;
        }
        match self.deletes.masks(cell.key()) {
            Masked::No => None,
            Masked::Version => Some(Code::Skip),
            Masked::RestOfColumn => Some(self.pass_column(cell.key())),
        }
    }

    fn match_column(
        &mut self,
        cell: CellRef<'_>,
        key: KeyRef<'_>,
        timestamp: i64,
        filter: Option<&mut Evaluator>,
    ) -> Result<Code, filter::Error> {
        if !self.time_range.contains(timestamp) {
            return Ok(if timestamp >= self.time_range.min { Code::Skip } else { self.pass_column(key) });
        }
        let code = if self.version_behavior.is_some() {
            self.check_by_arrival(key, timestamp)
        } else if self.columns.is_some() {
            self.check_asked(key, timestamp)
        } else {
            self.check_versions_all(cell, timestamp, false)
        };
        match (filter, code) {
            (Some(filter), Code::Include | Code::IncludeNextCol | Code::IncludeNextRow) => {
                let verdict = filter.filter_cell(cell)?;
                Ok(self.merge_verdict(key, code, verdict))
            }
            _ => Ok(code),
        }
    }

    /// Follows: `UserScanQueryMatcher#mergeFilterResponse`.
    fn merge_verdict(&mut self, key: KeyRef<'_>, code: Code, verdict: Verdict) -> Code {
        let mut code = match verdict {
            Verdict::Skip => {
                return match code {
                    Code::IncludeNextCol => Code::NextCol,
                    Code::IncludeNextRow => Code::NextRow,
                    _ => Code::Skip,
                };
            }
            Verdict::NextCol => {
                return if code == Code::IncludeNextRow { Code::NextRow } else { self.pass_column(key) };
            }
            Verdict::NextRow => return Code::NextRow,
            Verdict::SeekNextUsingHint => return Code::Hint,
            Verdict::Include => code,
            Verdict::IncludeAndNextCol if code == Code::Include => Code::IncludeNextCol,
            Verdict::IncludeAndNextCol => code,
            Verdict::IncludeAndSeekNextRow => Code::IncludeNextRow,
        };
        let qualifier = key.qualifier();
        if !self.has_filtered_column || !same_bytes(&self.filtered_column, qualifier) {
            self.has_filtered_column = true;
            self.filtered_column.clear();
            self.filtered_column.extend_from_slice(qualifier);
            self.filtered_count = 0;
        }
        self.filtered_count += 1;
        if self.filtered_count > self.versions_after_filter {
            code = if code == Code::IncludeNextRow { Code::NextRow } else { Code::NextCol };
        }
        if matches!(code, Code::IncludeNextCol | Code::NextCol) {
            self.done_with_column(qualifier);
        }
        code
    }
}
