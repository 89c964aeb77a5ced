//! Sets up a read: pins each asked store's picture, chooses the segments and files that can have something to say, and
//! positions them.
//!
//! Pinning and the read point go together: if no store's picture has changed between pinning it and taking the read
//! point, the pinned cells include all that the read point shows, and nothing in the files was dropped that it should
//! show. So nobody has to keep a list of the readers and their read points.

use super::matcher::Matcher;
use super::merge::Merge;
use super::rows::RowReader;
use super::source::{Source, write_first_on_row, write_last_on_row};
use super::store_scanner::{RowLimits, StoreScanner};
use crate::core::RegionCore;
use crate::error::{RegionError, Result};
use crate::mob::read::MobReads;
use crate::store::{Store, StoreView};
use crate::store_file::StoreFile;
use base::ReadPoint;
use bytes::Bytes;
use cell::{CellType, KeyRef};
use hfile::{Residency, ScanOptions};
use memstore::Segment;
use model::{Scan, TimeRange};
use std::cmp::Ordering;
use std::sync::Arc;

/// One family of a read.
struct Asked<'a> {
    store: &'a Store,
    columns: Option<Arc<[Bytes]>>,
    view: Arc<StoreView>,
}

/// Reads from a region.
#[derive(Clone, Copy)]
pub(crate) struct RegionReader<'r> {
    pub(super) core: &'r RegionCore,
}

impl<'r> RegionReader<'r> {
    pub(crate) fn new(core: &'r RegionCore) -> Self {
        RegionReader { core }
    }

    /// A reader over the rows of `scan`. `read_point` overrides what the scan asks for.
    pub(crate) fn open_rows(
        &self,
        scan: &Scan,
        read_point: Option<ReadPoint>,
        residency: Residency,
    ) -> Result<RowReader> {
        let mut asked = self.asked(scan)?;
        let current = loop {
            let current = self.core.read_point();
            let mut changed = false;
            for ask in &mut asked {
                if !ask.store.is_current(&ask.view) {
                    ask.view = ask.store.view();
                    changed = true;
                }
            }
            if !changed {
                break current;
            }
        };
        let own =
            if scan.read_uncommitted { ReadPoint::ALL } else { self.resumed(scan, &asked, current).unwrap_or(current) };
        let read_point = read_point.unwrap_or(own);
        let now = self.core.env.clock.now_ms().0;
        let filter = scan.filter.as_ref().map(|filter| filter.evaluator(scan.reversed, &self.core.env.rng));
        let on_demand =
            filter.is_some() && scan.load_column_families_on_demand.unwrap_or(self.core.settings.on_demand_families);
        let (mut essential, mut joined) = (Vec::with_capacity(asked.len()), Vec::new());
        for ask in &asked {
            let late = on_demand && filter.as_ref().is_some_and(|filter| !filter.is_family_essential(&ask.store.name));
            let scanner = self.open_store(scan, ask, read_point, now, residency)?;
            if late { joined.push(scanner) } else { essential.push(scanner) }
        }
        Ok(RowReader::new(self.core, scan, read_point, filter, essential, joined))
    }

    /// The read point that a client brings from a scanner it has lost, if it can still be served. It is older than what
    /// flushes and compactions keep, or of an earlier opening of the region, when rows were written again since: they would
    /// be missed. HBase misses them; here such a scan goes on with what is there now. (A row of which the client has a
    /// part may then go on with a later state.) One that is ahead is of an earlier opening too, whose last ids were lost with the end of its log:
    /// they are those of writes now that are not done. Follows otherwise: `RegionScannerImpl`'s constructor.
    fn resumed(&self, scan: &Scan, asked: &[Asked<'_>], current: ReadPoint) -> Option<ReadPoint> {
        let of_this_opening = |point: &ReadPoint| point.0 + 1 >= self.core.open_seq_id.0 && *point <= current;
        let whole = |point: &ReadPoint| asked.iter().all(|ask| ask.view.whole_from <= *point);
        scan.read_point.filter(|point| of_this_opening(point) && whole(point))
    }

    fn asked<'a>(&'a self, scan: &Scan) -> Result<Vec<Asked<'a>>> {
        if scan.columns.is_empty() {
            return Ok(self
                .core
                .stores
                .iter()
                .map(|store| Asked { store, columns: None, view: store.view() })
                .collect());
        }
        let mut asked = Vec::with_capacity(scan.columns.len());
        // A family that is not there is worse than a raw scan's columns, whichever comes first.
        if let Some(family) = scan.columns.keys().find(|family| self.core.store(family).is_none()) {
            return Err(self.core.no_such_family(family));
        }
        for (family, qualifiers) in &scan.columns {
            let store = self.core.store(family).ok_or_else(|| self.core.no_such_family(family))?;
            if scan.raw && !qualifiers.is_empty() {
                return Err(RegionError::DoNotRetry("Cannot specify any column for a raw scan".into()));
            }
            asked.push(Asked { store, columns: sorted_columns(qualifiers), view: store.view() });
        }
        Ok(asked)
    }

    fn open_store(
        &self,
        scan: &Scan,
        ask: &Asked<'_>,
        read_point: ReadPoint,
        now: i64,
        residency: Residency,
    ) -> Result<StoreScanner> {
        let store = ask.store;
        let matcher = Matcher::user(&store.rules, scan, &store.name, ask.columns.clone(), now);
        let selection = Selection {
            scan,
            columns: ask.columns.as_deref(),
            // Versions out of the range push others out when they go by arrival: where they lie must not matter.
            time_range: match store.rules.new_version_behavior && !scan.raw {
                true => TimeRange::ALL,
                false => scan.time_range_of(&store.name),
            },
            expired_before: matcher.expired_before(),
            order: self.core.order(),
            residency,
        };
        let options = ScanOptions {
            cache_blocks: scan.cache_blocks && store.caches_blocks,
            pread: true,
            residency,
            ..ScanOptions::default()
        };
        let wrap = |error| RegionError::file(self.core.name(), error);
        let mut sources = Vec::with_capacity(ask.view.files.len() + 2);
        let mut starts = Starts::new(scan, ask);
        for (rank, file) in ask.view.files.iter().enumerate() {
            if file.is_visible_at(read_point) && selection.wants_file(file).map_err(wrap)? {
                let mut source = Source::file(&file.reader, options, read_point, rank as u32);
                let has_family_deletes = selection.may_have_family_deletes(file).map_err(wrap)?;
                starts.position(&mut source, has_family_deletes).map_err(wrap)?;
                sources.push(source);
            }
        }
        let newest_rank = ask.view.files.len() as u32 + 2;
        for (i, segment) in ask.view.memory.segments().enumerate() {
            if selection.wants_segment(segment) {
                let mut source = Source::memory(segment, read_point, newest_rank - i as u32);
                starts.position(&mut source, segment.has_deletes()).map_err(wrap)?;
                sources.push(source);
            }
        }
        let mut merge = Merge::new(self.core.order(), sources);
        if scan.reversed {
            let start = (!scan.start_row.is_empty()).then_some(&scan.start_row[..]);
            merge.seek_row_back(start, scan.include_start_row).map_err(wrap)?;
        } else {
            merge.sources_moved().map_err(wrap)?;
        }
        let limits = RowLimits {
            is_single_row: is_single_row(scan),
            reversed: scan.reversed,
            offset: scan.store_offset,
            limit: scan.store_limit,
            last_row: (scan.include_stop_row && !scan.stop_row.is_empty()).then(|| scan.stop_row.clone()),
        };
        let mob = store.mob.as_ref().map(|mob| MobReads { store: mob.clone(), how: scan.mob, residency });
        Ok(StoreScanner::new(self.core.name().clone(), merge, matcher, limits).with_mob(mob))
    }
}

fn is_single_row(scan: &Scan) -> bool {
    scan.is_get
        || (scan.include_start_row
            && scan.include_stop_row
            && !scan.start_row.is_empty()
            && scan.start_row == scan.stop_row)
}

/// Whether cells with timestamps from `min` to `max` can matter to a read that does not look at those before `expired_before`.
#[inline]
pub(super) fn wants_times(time_range: &TimeRange, expired_before: i64, min: i64, max: i64) -> bool {
    max >= expired_before && max >= time_range.min && (min < time_range.max || time_range.max == i64::MAX)
}

pub(super) fn sorted_columns(qualifiers: &[Bytes]) -> Option<Arc<[Bytes]>> {
    if qualifiers.is_empty() {
        return None;
    }
    if qualifiers.windows(2).all(|pair| pair[0] < pair[1]) {
        return Some(Arc::from(qualifiers));
    }
    let mut sorted = qualifiers.to_vec();
    sorted.sort();
    sorted.dedup();
    Some(Arc::from(sorted))
}

/// Which segments and files can matter.
struct Selection<'a> {
    scan: &'a Scan,
    columns: Option<&'a [Bytes]>,
    time_range: TimeRange,
    expired_before: i64,
    order: cell::Order,
    residency: Residency,
}

impl Selection<'_> {
    fn wants_times(&self, min: i64, max: i64) -> bool {
        wants_times(&self.time_range, self.expired_before, min, max)
    }

    fn wants_segment(&self, segment: &Segment) -> bool {
        // A segment may be empty now and hold cells at the next step, but those are newer than the read point: only a
        // reader that sees everything could meet them, and it is not promised that.
        match segment.time_range() {
            Some(range) => self.wants_times(range.min_ms, range.max_ms),
            None => false,
        }
    }

    /// Follows: `StoreFileScanner#shouldUseScanner`.
    fn wants_file(&self, file: &StoreFile) -> hfile::Result<bool> {
        let reader = &file.reader;
        if let Some((min, max)) = reader.time_range()
            && !self.wants_times(min, max)
        {
            return Ok(false);
        }
        let (Some(first), Some(last)) = (reader.first_key(), reader.last_key()) else { return Ok(false) };
        let scan = self.scan;
        let (low, high) =
            if scan.reversed { (&scan.stop_row, &scan.start_row) } else { (&scan.start_row, &scan.stop_row) };
        if !low.is_empty() && self.order.rows(last.row(), low) == Ordering::Less {
            return Ok(false);
        }
        if !high.is_empty() && self.order.rows(first.row(), high) == Ordering::Greater {
            return Ok(false);
        }
        if !is_single_row(scan) {
            return Ok(true);
        }
        // Files before the read's: see whether the filter knows better.
        let row = &scan.start_row[..];
        if let (Some(columns), true) = (self.columns, reader.bloom_type() == hfile::BloomType::RowCol) {
            for column in columns {
                if reader.may_contain_row_col(row, column, self.residency)? {
                    return Ok(true);
                }
            }
            return reader.may_contain_delete_family(row, self.residency);
        }
        reader.may_contain_row(row, self.residency)
    }

    /// Whether markers that mask the asked columns may stand at the start of the row.
    fn may_have_family_deletes(&self, file: &StoreFile) -> hfile::Result<bool> {
        if self.columns.is_none() || !is_single_row(self.scan) || file.reader.delete_family_count() == 0 {
            return Ok(file.reader.delete_family_count() > 0);
        }
        file.reader.may_contain_delete_family(&self.scan.start_row, self.residency)
    }
}

/// Where sources start.
struct Starts {
    /// The start of the first row; empty for the start of everything. Not used when reversed.
    row: Vec<u8>,
    /// In a single row, the first asked column: where a source without family markers may start.
    column: Option<Vec<u8>>,
    reversed: bool,
}

impl Starts {
    fn new(scan: &Scan, ask: &Asked<'_>) -> Starts {
        let mut row = Vec::new();
        let mut column = None;
        if !scan.start_row.is_empty() && !scan.reversed {
            if scan.include_start_row {
                write_first_on_row(&mut row, &scan.start_row);
            } else {
                write_last_on_row(&mut row, &scan.start_row);
            }
            if is_single_row(scan)
                && let Some(first) = ask.columns.as_ref().and_then(|columns| columns.first())
                && !first.is_empty()
            {
                let mut key = Vec::new();
                KeyRef::write(&mut key, &scan.start_row, &ask.store.name, first, i64::MAX, CellType::Maximum.code());
                column = Some(key);
            }
        }
        Starts { row, column, reversed: scan.reversed }
    }

    fn position(&mut self, source: &mut Source, has_family_deletes: bool) -> hfile::Result<()> {
        if self.reversed {
            return Ok(());
        }
        match &self.column {
            Some(column) if !has_family_deletes => source.lazy_seek(KeyRef::from_checked(column)),
            _ if self.row.is_empty() => source.seek_to_first(),
            _ => source.seek(KeyRef::from_checked(&self.row)),
        }
    }
}
