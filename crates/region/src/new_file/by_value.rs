//! Rows in files by the value of one of their columns: those with old values in one, those with new ones in another. Follows:
//! `CustomTieringMultiFileWriter`, `CustomCellTieringValueProvider`.
//!
//! Always true: a cell says in a tag by which value it was put where it is, and keeps that in later compactions; a row without the column counts as the newest.

use super::{Draft, Sink, Windows};
use crate::error::Result;
use base::SeqId;
use cell::{CellRef, CellSpec, tag};

/// Of a row whose value was not met yet so many cells, or bytes, are held back. HBase looks for it among as many as a compaction reads at a time.
const HELD_CELLS: usize = 1000;
const HELD_BYTES: usize = 1 << 20;
/// The value of a row that has none.
const NONE: i64 = i64::MAX;

/// A cell that waits for its row's value.
struct Held {
    bytes: Vec<u8>,
    seq_id: SeqId,
    is_wanted: bool,
}

/// One draft for each window of values.
pub(super) struct ByValue<'r, 'w> {
    pub files: Windows<'r, 'w>,
    /// The column with the value.
    pub qualifier: &'w [u8],
    /// The least and the greatest value in each draft.
    pub values: Vec<Option<(i64, i64)>>,
    row: Vec<u8>,
    value: Option<i64>,
    held: Vec<Held>,
    held_bytes: usize,
    tags: Vec<u8>,
    cell: Vec<u8>,
}

impl<'r, 'w> ByValue<'r, 'w> {
    pub fn new(files: Windows<'r, 'w>, qualifier: &'w [u8]) -> ByValue<'r, 'w> {
        let values = vec![None; files.windows.len()];
        let (row, held, tags, cell) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        ByValue { files, qualifier, values, row, value: None, held, held_bytes: 0, tags, cell }
    }

    /// What was held back goes where `value` belongs.
    pub fn release(&mut self, value: i64) -> Result<()> {
        self.held_bytes = 0;
        let mut held = std::mem::take(&mut self.held);
        let outcome = held
            .iter()
            .try_for_each(|held| self.put(CellRef::from_checked(&held.bytes, held.seq_id), held.is_wanted, value));
        held.clear();
        self.held = held;
        outcome
    }

    /// The last row is over.
    pub fn end(&mut self) -> Result<()> {
        self.release(NONE)
    }

    fn put(&mut self, cell: CellRef<'_>, is_wanted: bool, value: i64) -> Result<()> {
        if let Some(earlier) = tag::tiering_value(cell.tags()) {
            return self.put_as_it_is(cell, is_wanted, earlier);
        }
        self.tags.clear();
        self.tags.extend_from_slice(cell.tags());
        tag::write(&mut self.tags, tag::CELL_VALUE_TIERING, &value.to_be_bytes());
        let spec = CellSpec {
            row: cell.row(),
            family: cell.family(),
            qualifier: cell.qualifier(),
            timestamp: cell.timestamp(),
            type_code: cell.type_code(),
            value: cell.value(),
            tags: &self.tags,
        };
        if !spec.has_room() {
            return self.put_as_it_is(cell, is_wanted, value);
        }
        let mut bytes = std::mem::take(&mut self.cell);
        bytes.clear();
        spec.write(&mut bytes);
        let outcome = self.put_as_it_is(CellRef::from_checked(&bytes, cell.seq_id()), is_wanted, value);
        self.cell = bytes;
        outcome
    }

    fn put_as_it_is(&mut self, cell: CellRef<'_>, is_wanted: bool, value: i64) -> Result<()> {
        let at = self.files.window_of(value);
        let (least, greatest) = self.values[at].unwrap_or((value, value));
        self.values[at] = Some((least.min(value), greatest.max(value)));
        self.files.draft(at)?.take(cell, is_wanted)
    }

    /// The value that the row has by this cell.
    fn value_of(&self, cell: CellRef<'_>) -> Option<i64> {
        let is_it = cell.qualifier() == self.qualifier && !cell.is_delete();
        is_it.then(|| cell.value().try_into().map_or(NONE, i64::from_be_bytes))
    }
}

impl Sink for ByValue<'_, '_> {
    fn take(&mut self, cell: CellRef<'_>, is_wanted: bool) -> Result<()> {
        if cell.row() != self.row {
            self.release(NONE)?;
            self.row.clear();
            self.row.extend_from_slice(cell.row());
            self.value = None;
        }
        if self.value.is_none()
            && let Some(value) = self.value_of(cell)
        {
            self.value = Some(value);
            self.release(value)?;
        }
        if let Some(value) = self.value {
            return self.put(cell, is_wanted, value);
        }
        self.held_bytes += cell.bytes().len();
        self.held.push(Held { bytes: cell.bytes().to_vec(), seq_id: cell.seq_id(), is_wanted });
        if self.held.len() >= HELD_CELLS || self.held_bytes >= HELD_BYTES { self.release(NONE) } else { Ok(()) }
    }

    fn written_bytes(&self) -> u64 {
        self.files.drafts.iter().flatten().map(Draft::written_bytes).sum()
    }
}
