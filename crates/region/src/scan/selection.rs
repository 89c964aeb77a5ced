//! Which segments and files of a store a read looks at, and where in them it begins.

use super::merge::Merge;
use super::open::Asked;
use super::source::{Source, write_first_on_row, write_last_on_row};
use crate::store::StoreView;
use crate::store_file::StoreFile;
use base::ReadPoint;
use bytes::Bytes;
use cell::{CellType, KeyRef};
use hfile::{Residency, ScanOptions};
use memstore::Segment;
use model::{Scan, TimeRange};
use std::cmp::Ordering;
use std::sync::Arc;

pub(super) fn is_single_row(scan: &Scan) -> bool {
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

/// Which segments and files of a store can matter to a read: at its start, and again when what it holds has been flushed.
pub(crate) struct Selection {
    family: Bytes,
    /// The rows between which the read is, lowest first; empty where it has no bound.
    low: Bytes,
    high: Bytes,
    is_single_row: bool,
    columns: Option<Arc<[Bytes]>>,
    time_range: TimeRange,
    expired_before: i64,
    order: cell::Order,
    cache_blocks: bool,
}

impl Selection {
    pub(super) fn new(scan: &Scan, ask: &Asked<'_>, expired_before: i64, order: cell::Order) -> Selection {
        let store = ask.store;
        let (low, high) =
            if scan.reversed { (&scan.stop_row, &scan.start_row) } else { (&scan.start_row, &scan.stop_row) };
        Selection {
            family: store.name.clone(),
            low: low.clone(),
            high: high.clone(),
            is_single_row: is_single_row(scan),
            columns: ask.columns.clone(),
            // Versions out of the range push others out when they go by arrival: where they lie must not matter.
            time_range: match store.rules.new_version_behavior && !scan.raw {
                true => TimeRange::ALL,
                false => scan.time_range_of(&store.name),
            },
            expired_before,
            order,
            cache_blocks: scan.cache_blocks && store.caches_blocks,
        }
    }

    /// The family.
    pub(crate) fn family(&self) -> &Bytes {
        &self.family
    }

    /// The sources of `view` that can matter, each moved by `position`, which is told whether markers over the whole family may be in it.
    pub(crate) fn open(
        &self,
        view: &StoreView,
        read_point: ReadPoint,
        residency: Residency,
        mut position: impl FnMut(&mut Source, bool) -> hfile::Result<()>,
    ) -> hfile::Result<Merge> {
        let options = ScanOptions { cache_blocks: self.cache_blocks, pread: true, residency, ..ScanOptions::default() };
        let files = if self.is_single_row { view.files_of(&self.low) } else { &view.files[..] };
        let mut sources = Vec::with_capacity(files.len() + 2);
        for (rank, file) in files.iter().enumerate() {
            if file.is_visible_at(read_point) && self.wants_file(file, residency)? {
                let mut source = Source::file(&file.reader, options, read_point, rank as u32);
                position(&mut source, self.may_have_family_deletes(file, residency)?)?;
                sources.push(source);
            }
        }
        let newest_rank = files.len() as u32 + 2;
        for (i, segment) in view.memory.segments().enumerate() {
            if self.wants_segment(segment) {
                let mut source = Source::memory(segment, read_point, newest_rank - i as u32);
                position(&mut source, segment.has_deletes())?;
                sources.push(source);
            }
        }
        Ok(Merge::new(self.order, sources))
    }

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
    fn wants_file(&self, file: &StoreFile, residency: Residency) -> hfile::Result<bool> {
        let reader = &file.reader;
        if let Some((min, max)) = reader.time_range()
            && !self.wants_times(min, max)
        {
            return Ok(false);
        }
        let (Some(first), Some(last)) = (reader.first_key(), reader.last_key()) else { return Ok(false) };
        let (low, high) = (&self.low, &self.high);
        if !low.is_empty() && self.order.rows(last.row(), low) == Ordering::Less {
            return Ok(false);
        }
        if !high.is_empty() && self.order.rows(first.row(), high) == Ordering::Greater {
            return Ok(false);
        }
        if !self.is_single_row {
            return Ok(true);
        }
        // Files before the read's: see whether the filter knows better.
        let row = &low[..];
        if let (Some(columns), true) = (&self.columns, reader.bloom_type() == hfile::BloomType::RowCol) {
            for column in columns.iter() {
                if reader.may_contain_row_col(row, column, residency)? {
                    return Ok(true);
                }
            }
            return reader.may_contain_delete_family(row, residency);
        }
        reader.may_contain_row(row, residency)
    }

    /// Whether markers that mask the asked columns may stand at the start of the row.
    fn may_have_family_deletes(&self, file: &StoreFile, residency: Residency) -> hfile::Result<bool> {
        if self.columns.is_none() || !self.is_single_row || file.reader.delete_family_count() == 0 {
            return Ok(file.reader.delete_family_count() > 0);
        }
        file.reader.may_contain_delete_family(&self.low, residency)
    }
}

/// Where sources start.
pub(super) struct Starts {
    /// The start of the first row; empty for the start of everything. Not used when reversed.
    row: Vec<u8>,
    /// In a single row, the first asked column: where a source without family markers may start.
    column: Option<Vec<u8>>,
    reversed: bool,
}

impl Starts {
    pub(super) fn new(scan: &Scan, ask: &Asked<'_>) -> Starts {
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

    pub(super) fn position(&mut self, source: &mut Source, has_family_deletes: bool) -> hfile::Result<()> {
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
