//! Remembers the delete markers of a row and says which cells they mask: by timestamp, not by arrival.
//!
//! Markers come before what they mask: family markers have the empty qualifier, column markers sort before puts of
//! the same timestamp. Follows: `ScanDeleteTracker`.

use cell::{CellRef, CellType, KeyRef};

/// Whether and how far a cell is masked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Masked {
    No,
    /// This cell is.
    Version,
    /// This cell and all older ones of its column are.
    RestOfColumn,
}

#[derive(Default)]
pub(crate) struct DeleteTracker {
    family_stamp: Option<i64>,
    /// Newest first, each once: a row may have any number of them, and every cell asks.
    family_version_stamps: Vec<i64>,
    #[cfg(test)]
    steps: std::cell::Cell<usize>,
    has_column: bool,
    qualifier: Vec<u8>,
    column_type: u8,
    column_stamp: i64,
}

impl DeleteTracker {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_column && self.family_stamp.is_none() && self.family_version_stamps.is_empty()
    }

    pub(crate) fn reset(&mut self) {
        self.family_stamp = None;
        self.family_version_stamps.clear();
        self.has_column = false;
    }

    pub(crate) fn add(&mut self, cell: CellRef<'_>) {
        let key = cell.key();
        let (timestamp, type_code) = (key.timestamp(), key.type_code());
        if self.family_stamp.is_some_and(|stamp| timestamp <= stamp) {
            return;
        }
        if type_code == CellType::DeleteFamily.code() {
            self.family_stamp = Some(timestamp);
            return;
        }
        if type_code == CellType::DeleteFamilyVersion.code() {
            let at = self.newer_family_versions(timestamp);
            // They come newest first, so this is the end, or the same marker from another file.
            if self.family_version_stamps.get(at) != Some(&timestamp) {
                self.family_version_stamps.insert(at, timestamp);
            }
            return;
        }
        if self.has_column && type_code < self.column_type && key.qualifier() == self.qualifier {
            // The column is deleted already, further than this version.
            return;
        }
        self.has_column = true;
        self.qualifier.clear();
        self.qualifier.extend_from_slice(key.qualifier());
        self.column_type = type_code;
        self.column_stamp = timestamp;
    }

    pub(crate) fn masks(&mut self, key: KeyRef<'_>) -> Masked {
        let timestamp = key.timestamp();
        if self.family_stamp.is_some_and(|stamp| timestamp <= stamp) {
            return Masked::RestOfColumn;
        }
        if !self.family_version_stamps.is_empty()
            && self.family_version_stamps.get(self.newer_family_versions(timestamp)) == Some(&timestamp)
        {
            return Masked::Version;
        }
        if self.has_column {
            if key.qualifier() != self.qualifier {
                self.has_column = false;
            } else if self.column_type == CellType::DeleteColumn.code() {
                return Masked::RestOfColumn;
            } else if timestamp == self.column_stamp {
                return Masked::Version;
            } else {
                self.has_column = false;
            }
        }
        Masked::No
    }

    /// How many family version markers are newer: where in the list one of `timestamp` is or would be.
    fn newer_family_versions(&self, timestamp: i64) -> usize {
        self.family_version_stamps.partition_point(|stamp| {
            #[cfg(test)]
            self.steps.set(self.steps.get() + 1);
            *stamp > timestamp
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::SeqId;
    use cell::{CellBuffer, CellSpec};

    /// A row with thousands of family version markers: each cell finds its own in a few steps.
    #[test]
    fn many_family_version_markers_are_not_searched_one_by_one() {
        const MARKERS: i64 = 4000;
        let mut cells = CellBuffer::new();
        let mut push = |qualifier: &[u8], timestamp: i64, cell_type: CellType| {
            let spec = CellSpec {
                row: b"r",
                family: b"f",
                qualifier,
                timestamp,
                type_code: cell_type.code(),
                value: b"",
                tags: b"",
            };
            cells.push_spec(&spec, SeqId(1));
        };
        for i in (1..=MARKERS).rev() {
            push(b"", 2 * i, CellType::DeleteFamilyVersion);
            push(b"", 2 * i, CellType::DeleteFamilyVersion);
        }
        let puts_from = 2 * MARKERS as usize;
        for timestamp in (1..=2 * MARKERS + 1).rev() {
            push(b"q", timestamp, CellType::Put);
        }
        let mut tracker = DeleteTracker::default();
        cells.iter_from(0).take(puts_from).for_each(|cell| tracker.add(cell));
        assert_eq!(tracker.family_version_stamps.len(), MARKERS as usize);
        for cell in cells.iter_from(puts_from) {
            let expected = if cell.timestamp() % 2 == 0 { Masked::Version } else { Masked::No };
            assert_eq!(tracker.masks(cell.key()), expected, "{}", cell.timestamp());
        }
        let steps = tracker.steps.get();
        assert!(steps <= cells.len() * 16, "{steps} steps for {} cells", cells.len());
    }
}
