//! The type byte of a key (`KeyValue.Type`).

/// What a cell says. The numbers are on disk and on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum CellType {
    /// Sorts last at its timestamp; only in search keys.
    Minimum = 0,
    /// A value.
    Put = 4,
    /// Hides exactly its timestamp in its column.
    Delete = 8,
    /// Hides exactly its timestamp in every column of the family.
    DeleteFamilyVersion = 10,
    /// Hides its column up to its timestamp.
    DeleteColumn = 12,
    /// Hides the family up to its timestamp.
    DeleteFamily = 14,
    /// Sorts first at its timestamp; only in search keys.
    Maximum = 255,
}

impl CellType {
    /// The type with `code`, if HBase has one.
    pub fn from_code(code: u8) -> Option<CellType> {
        Some(match code {
            0 => CellType::Minimum,
            4 => CellType::Put,
            8 => CellType::Delete,
            10 => CellType::DeleteFamilyVersion,
            12 => CellType::DeleteColumn,
            14 => CellType::DeleteFamily,
            255 => CellType::Maximum,
            _ => return None,
        })
    }

    /// The byte in the key.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Whether `code` is one of the four delete markers.
    pub fn is_delete(code: u8) -> bool {
        matches!(code, 8 | 10 | 12 | 14)
    }
}
