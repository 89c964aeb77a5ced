//! What a read brings back. Follows: `Result`.

use cell::{CellBlock, CellIter, CellRef};

/// The cells of one row, or none. Cloning shares the bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    cells: CellBlock,
    exists: Option<bool>,
    pub(crate) stale: bool,
}

impl Row {
    pub(crate) fn new(cells: CellBlock) -> Row {
        Row { cells, exists: None, stale: false }
    }

    pub(crate) fn of_existence(exists: bool) -> Row {
        Row { exists: Some(exists), ..Row::default() }
    }

    /// The cells, in HBase's order.
    pub fn cells(&self) -> &CellBlock {
        &self.cells
    }

    /// The cells, one after the other.
    pub fn iter(&self) -> CellIter<'_> {
        self.cells.iter()
    }

    /// Whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Bytes of the cells as they travelled.
    pub fn byte_len(&self) -> usize {
        self.cells.bytes().len()
    }

    /// The answer to a Get that only asks for existence; else whether there are cells.
    pub fn exists(&self) -> bool {
        self.exists.unwrap_or(!self.cells.is_empty())
    }

    /// Whether a read replica answered.
    pub fn is_stale(&self) -> bool {
        self.stale
    }

    /// The row's key; empty when there are no cells.
    pub fn row(&self) -> &[u8] {
        self.iter().next().map(CellRef::row).unwrap_or_default()
    }

    /// The newest cell of a column. Looks from the first cell on.
    pub fn cell(&self, family: &[u8], qualifier: &[u8]) -> Option<CellRef<'_>> {
        self.iter().find(|cell| cell.family() == family && cell.qualifier() == qualifier)
    }

    /// The newest value of a column.
    pub fn value(&self, family: &[u8], qualifier: &[u8]) -> Option<&[u8]> {
        self.cell(family, qualifier).map(CellRef::value)
    }
}

impl<'a> IntoIterator for &'a Row {
    type Item = CellRef<'a>;
    type IntoIter = CellIter<'a>;
    fn into_iter(self) -> CellIter<'a> {
        self.iter()
    }
}
