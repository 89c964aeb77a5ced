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
    family_version_stamps: Vec<i64>,
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
            self.family_version_stamps.push(timestamp);
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
        if self.family_version_stamps.contains(&timestamp) {
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
}
