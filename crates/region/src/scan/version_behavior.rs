//! Deletes and versions by order of arrival, for families with NEW_VERSION_BEHAVIOR: a marker masks only what arrived
//! before it, and a version that was pushed out by newer ones when it was overwritten stays out.
//!
//! A put counts, among the versions of its column, from its arrival until something hides it. It is looked whether there was room for it at
//! the moments that matter: when a marker took one version away, and at the end. Cells come by timestamp, the newest first, so whatever pushes
//! a put out has been counted before it. Markers and puts cost less than their number each: [`counts`], [`family_markers`].
//!
//! Follows: `NewVersionBehaviorTracker`; unlike it, a family marker also counts for the column with the empty qualifier.

mod counts;
mod family_markers;
mod plain;

use super::matcher::Code;
use cell::{CellRef, CellType};
use counts::{Counts, END};
use family_markers::FamilyMarkers;
use plain::Plain;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// The puts of one batch in a column: they count as one.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    /// Whether they count at the marker that came in the same batch.
    at_own: bool,
    /// The last moment after that at which they count.
    until: Option<u64>,
}

/// What is known of the column that is read.
#[derive(Default)]
struct Column {
    /// What arrived up to here is gone: a marker over the column or family was passed.
    gone_until: Option<u64>,
    /// Sequence ids of the markers of one version, of the timestamp that is read.
    deleted: BTreeSet<u64>,
    deleted_timestamp: i64,
    counts: Counts,
    batches: FxHashMap<u64, Batch>,
    /// Batches that count at some moment after their own, in order.
    counted: Counted,
}

impl Column {
    fn clear(&mut self) {
        self.gone_until = None;
        self.deleted.clear();
        self.counts.clear();
        self.batches.clear();
        self.counted.0.clear();
    }
}

/// Sequence ids in order, in blocks: how many lie between two is found without passing them one by one.
#[derive(Default)]
struct Counted(Vec<Vec<u64>>);

impl Counted {
    const BLOCK: usize = 256;

    fn insert(&mut self, seq_id: u64) {
        let block = self.0.partition_point(|block| block.last().is_some_and(|last| *last < seq_id));
        let Some(ids) = self.0.get_mut(block).filter(|ids| !ids.is_empty()) else {
            match self.0.last_mut() {
                Some(ids) if ids.len() < Counted::BLOCK => ids.push(seq_id),
                _ => self.0.push(vec![seq_id]),
            }
            return;
        };
        let Err(at) = ids.binary_search(&seq_id) else { return };
        ids.insert(at, seq_id);
        if ids.len() > Counted::BLOCK {
            let upper = ids.split_off(Counted::BLOCK / 2);
            self.0.insert(block + 1, upper);
        }
    }

    /// How many are `from` or higher and lower than `to`.
    fn between(&self, from: u64, to: u64) -> usize {
        let first = self.0.partition_point(|block| block.last().is_some_and(|last| *last < from));
        let blocks = self.0[first..].iter().take_while(|block| block.first().is_some_and(|first| *first < to));
        blocks.map(|block| block.partition_point(|id| *id < to) - block.partition_point(|id| *id < from)).sum()
    }
}

pub(crate) struct VersionBehavior {
    max_versions: u32,
    result_versions: u32,
    family: FamilyMarkers,
    column: Column,
    /// Takes the rest of a row in which markers have strayed.
    plain: Option<Box<Plain>>,
    has_last: bool,
    last_qualifier: Vec<u8>,
    last_timestamp: i64,
    last_seq_id: u64,
    last_type: u8,
    count: u32,
}

impl VersionBehavior {
    pub(crate) fn new(max_versions: u32, result_versions: u32) -> VersionBehavior {
        VersionBehavior {
            max_versions,
            result_versions,
            family: FamilyMarkers::default(),
            column: Column::default(),
            plain: None,
            has_last: false,
            last_qualifier: Vec::new(),
            last_timestamp: 0,
            last_seq_id: 0,
            last_type: 0,
            count: 0,
        }
    }

    pub(crate) fn reset(&mut self) {
        self.family.clear();
        self.plain = None;
        self.has_last = false;
        self.count = 0;
    }

    /// Returns the sequence id of the put that this one repeats, if the cell before had the same coordinates.
    fn prepare(&mut self, cell: CellRef<'_>) -> Option<u64> {
        let key = cell.key();
        let (qualifier, type_code) = (key.qualifier(), key.type_code());
        if !self.has_last || self.last_qualifier != qualifier {
            self.column.clear();
            // Among the puts of the column without a name the family's markers still come, and are taken for the column's own.
            if !qualifier.is_empty() {
                self.family.seal();
                if self.family.has_strays() && self.plain.is_none() {
                    self.plain = Some(Box::new(Plain::after(self.max_versions, self.family.read())));
                }
            }
            self.count = 0;
        } else if type_code == self.last_type
            && !CellType::is_delete(type_code)
            && key.timestamp() == self.last_timestamp
        {
            return Some(self.last_seq_id);
        }
        self.has_last = true;
        self.last_qualifier.clear();
        self.last_qualifier.extend_from_slice(qualifier);
        self.last_timestamp = key.timestamp();
        self.last_seq_id = cell.seq_id().0;
        self.last_type = type_code;
        None
    }

    pub(crate) fn add(&mut self, cell: CellRef<'_>) {
        self.prepare(cell);
        if let Some(plain) = &mut self.plain {
            return plain.add(cell);
        }
        let (timestamp, seq_id) = (cell.timestamp(), cell.seq_id().0);
        // Family markers stand in the column with the empty qualifier and count there as in all that follow.
        match CellType::from_code(cell.type_code()) {
            Some(CellType::DeleteFamily) => {
                self.family.add_epoch(timestamp, seq_id);
                self.column.gone_until = self.column.gone_until.max(Some(seq_id));
            }
            Some(CellType::DeleteFamilyVersion) => {
                self.family.add_version(timestamp, seq_id);
                self.delete_version(timestamp, seq_id);
            }
            Some(CellType::DeleteColumn) => self.column.gone_until = self.column.gone_until.max(Some(seq_id)),
            Some(CellType::Delete) => self.delete_version(timestamp, seq_id),
            _ => {}
        }
    }

    /// A marker of one version stands in the column.
    fn delete_version(&mut self, timestamp: i64, seq_id: u64) {
        let family = self.family.moments();
        let column = &mut self.column;
        if column.deleted.is_empty() || column.deleted_timestamp != timestamp {
            column.deleted.clear();
            column.deleted_timestamp = timestamp;
        }
        column.deleted.insert(seq_id);
        // Here counts what counts at the next moment and had arrived: of its own batch nothing that was read so far.
        let next = column.counts.first_from(seq_id, family);
        let came_later = column.counted.between(seq_id, next);
        let came_then = column.batches.get(&next).is_some_and(|batch| batch.at_own);
        let count = column.counts.at(next) as usize - came_later - usize::from(came_then);
        if let Some(own) = column.batches.get_mut(&seq_id) {
            own.at_own = false;
        }
        column.counts.add_moment(seq_id, count as u32, family);
    }

    /// Whether a marker or newer versions mask this put. Counts it, so it is asked once per put.
    pub(crate) fn is_deleted(&mut self, cell: CellRef<'_>) -> bool {
        let repeats = self.prepare(cell);
        if let Some(plain) = &mut self.plain {
            return plain.is_deleted(cell);
        }
        let (timestamp, seq_id) = (cell.timestamp(), cell.seq_id().0);
        if self.column.gone_until.is_some_and(|until| seq_id <= until) {
            // Nor does it matter for what is still to come, whether that is gone as well or arrived later.
            return true;
        }
        let hidden = self.first_that_hides(timestamp, seq_id);
        let last = match repeats {
            // The one that takes its place counts from there on.
            Some(repeated) => hidden.unwrap_or(END).min(repeated).min(END - 1),
            None => hidden.unwrap_or(END),
        };
        let is_full = last >= seq_id && self.count_until(last, seq_id);
        is_full || hidden.is_some() || repeats.is_some()
    }

    /// The moment of the first marker that hides a put.
    fn first_that_hides(&self, timestamp: i64, seq_id: u64) -> Option<u64> {
        let column = &self.column;
        let own = if column.deleted_timestamp == timestamp { column.deleted.range(seq_id..).next() } else { None };
        let of_family =
            [self.family.version_that_hides(timestamp, seq_id), self.family.epoch_that_hides(timestamp, seq_id)];
        of_family.into_iter().flatten().chain(own.copied()).min()
    }

    /// Counts a put of `seq_id` at the moments until `last`. Whether there was one at which there was no room; it does not count from there
    /// on.
    fn count_until(&mut self, last: u64, seq_id: u64) -> bool {
        let family = self.family.moments();
        let Column { counts, batches, counted, .. } = &mut self.column;
        let batch = batches.entry(seq_id).or_default();
        if counts.first_from(seq_id, family) == seq_id {
            if counts.at(seq_id) >= self.max_versions {
                return true;
            }
            if !std::mem::replace(&mut batch.at_own, true) {
                counts.add(seq_id.checked_sub(1), seq_id, family);
            }
        }
        if last == seq_id {
            return false;
        }
        let full = counts.first_full(Some(seq_id), last, self.max_versions, family);
        let end = full.map_or(last, |moment| moment - 1);
        let after = batch.until.unwrap_or(seq_id);
        if end > after
            && let Some(last) = counts.add(Some(after), end, family)
        {
            batch.until = Some(last);
            counted.insert(seq_id);
        }
        full.is_some()
    }

    pub(crate) fn check_version(&mut self, expired: bool, min_versions: u32) -> Code {
        self.count += 1;
        if expired {
            if self.count == min_versions {
                return Code::IncludeNextCol;
            }
            if self.count > min_versions {
                return Code::NextCol;
            }
        }
        match self.count.cmp(&self.result_versions) {
            std::cmp::Ordering::Equal => Code::IncludeNextCol,
            std::cmp::Ordering::Greater => Code::NextCol,
            std::cmp::Ordering::Less => Code::Include,
        }
    }
}

#[cfg(test)]
mod tests;
