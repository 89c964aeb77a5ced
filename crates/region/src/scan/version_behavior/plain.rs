//! Arrival order as `NewVersionBehaviorTracker` keeps it: a set of puts for each version marker and each epoch. It costs up to the product of
//! markers and puts. For rows in which it matters that a version marker is in a later epoch than it arrived in: what it took away
//! counts still at the end of the epoch in which it arrived. And it is what the tests hold the other way against.

use cell::{CellRef, CellType};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

#[derive(Clone)]
struct Epoch {
    /// Puts at or before it that arrived in this epoch are masked.
    timestamp: i64,
    /// Timestamps of version markers, each with the sequence ids at which it was deleted.
    versions_deleted: BTreeMap<i64, BTreeSet<u64>>,
    /// For the end of the epoch and each version marker in it: the puts that counted when it arrived.
    counted: BTreeMap<u64, BTreeSet<u64>>,
}

impl Epoch {
    fn new(timestamp: i64) -> Epoch {
        Epoch { timestamp, versions_deleted: BTreeMap::new(), counted: BTreeMap::from([(u64::MAX, BTreeSet::new())]) }
    }

    fn delete_version(&mut self, timestamp: i64, seq_id: u64) {
        self.versions_deleted.entry(timestamp).or_default().insert(seq_id);
        let earlier: BTreeSet<u64> = self
            .counted
            .range(seq_id..)
            .next()
            .map(|(_, puts)| puts.range(..seq_id).copied().collect())
            .unwrap_or_default();
        self.counted.insert(seq_id, earlier);
    }
}

fn delete_version(epochs: &mut BTreeMap<u64, Epoch>, timestamp: i64, seq_id: u64) {
    if let Some((_, epoch)) = epochs.range_mut(seq_id..).next() {
        epoch.delete_version(timestamp, seq_id);
    }
}

pub(super) struct Plain {
    max_versions: usize,
    family: BTreeMap<u64, Epoch>,
    column: BTreeMap<u64, Epoch>,
    has_last: bool,
    last_qualifier: Vec<u8>,
    last_timestamp: i64,
    last_seq_id: u64,
    last_type: u8,
}

impl Plain {
    pub(super) fn new(max_versions: u32) -> Plain {
        let mut tracker = Plain {
            max_versions: max_versions as usize,
            family: BTreeMap::new(),
            column: BTreeMap::new(),
            has_last: false,
            last_qualifier: Vec::new(),
            last_timestamp: 0,
            last_seq_id: 0,
            last_type: 0,
        };
        tracker.reset();
        tracker
    }

    /// In a row whose column without a name is read: `family` are the family's markers in it.
    pub(super) fn after(max_versions: u32, family: &[(CellType, i64, u64)]) -> Plain {
        let mut tracker = Plain::new(max_versions);
        for (kind, timestamp, seq_id) in family {
            match kind {
                CellType::DeleteFamily => drop(tracker.family.insert(*seq_id, Epoch::new(*timestamp))),
                _ => delete_version(&mut tracker.family, *timestamp, *seq_id),
            }
        }
        tracker
    }

    pub(super) fn reset(&mut self) {
        self.column.clear();
        self.family.clear();
        self.family.insert(u64::MAX, Epoch::new(i64::MIN));
        self.has_last = false;
    }

    /// Returns the sequence id of the put that this one repeats, if the cell before had the same coordinates.
    fn prepare(&mut self, cell: CellRef<'_>) -> Option<u64> {
        let key = cell.key();
        let (qualifier, type_code) = (key.qualifier(), key.type_code());
        if !self.has_last || self.last_qualifier != qualifier {
            self.column = self.family.clone();
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

    pub(super) fn add(&mut self, cell: CellRef<'_>) {
        self.prepare(cell);
        let (timestamp, seq_id) = (cell.timestamp(), cell.seq_id().0);
        match CellType::from_code(cell.type_code()) {
            // Family markers stand in the column with the empty qualifier and count there as in all that follow.
            Some(CellType::DeleteFamily) => {
                self.family.insert(seq_id, Epoch::new(timestamp));
                self.column.insert(seq_id, Epoch::new(timestamp));
            }
            Some(CellType::DeleteFamilyVersion) => {
                delete_version(&mut self.family, timestamp, seq_id);
                delete_version(&mut self.column, timestamp, seq_id);
            }
            Some(CellType::DeleteColumn) => {
                self.column.insert(seq_id, Epoch::new(timestamp));
            }
            Some(CellType::Delete) => delete_version(&mut self.column, timestamp, seq_id),
            _ => {}
        }
    }

    /// Whether a marker or newer versions mask this put. Counts it, so it is asked once per put.
    pub(super) fn is_deleted(&mut self, cell: CellRef<'_>) -> bool {
        let repeats = self.prepare(cell);
        let (timestamp, seq_id) = (cell.timestamp(), cell.seq_id().0);
        for (_, epoch) in self.column.range_mut(seq_id..) {
            let deleted_at = epoch
                .versions_deleted
                .get(&timestamp)
                .and_then(|ids| ids.range((Bound::Included(seq_id), Bound::Unbounded)).next().copied());
            let until = repeats.unwrap_or(u64::MAX).min(deleted_at.unwrap_or(u64::MAX));
            if until >= seq_id {
                for (_, puts) in epoch.counted.range_mut(seq_id..=until) {
                    if puts.len() >= self.max_versions {
                        return true;
                    }
                    puts.insert(seq_id);
                }
            }
            if deleted_at.is_some() || timestamp <= epoch.timestamp {
                return true;
            }
        }
        repeats.is_some()
    }
}
