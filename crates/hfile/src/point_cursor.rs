//! A look at one place of a file, for reads of a single row: no scanner is made, nothing but the block is held.

use crate::data_block::{CellAt, DataBlock};
use crate::source::Fetch;
use crate::{Reader, Residency, Result};
use base::SeqId;
use cell::{CellRef, KeyRef};
use std::sync::Arc;

/// What [`Reader::look`] has found.
#[derive(Debug)]
pub enum Found {
    /// The file has nothing at or after the key in its row.
    Nothing,
    /// Cells of the row.
    Cells(PointCursor),
    /// It takes a [`crate::Scanner`] to say.
    NeedsScanner,
}

/// Stands at a cell; moves within its block.
#[derive(Debug)]
pub struct PointCursor {
    block: Arc<DataBlock>,
    at: CellAt,
    goes_on: bool,
    /// See `Reader::seq_id`.
    seq_ids: SeqIds,
}

/// Which sequence ids cells are read with.
#[derive(Clone, Copy, Debug)]
enum SeqIds {
    Stored,
    All(u64),
}

impl PointCursor {
    /// The cell here.
    #[inline]
    pub fn cell(&self) -> CellRef<'_> {
        let seq_id = match self.seq_ids {
            SeqIds::Stored => self.at.seq_id,
            SeqIds::All(id) => id,
        };
        self.block.cell(self.at).with_seq_id(SeqId(seq_id))
    }

    /// One cell on; false, and nothing is changed, at the end of the block.
    #[inline]
    pub fn step(&mut self) -> bool {
        match self.block.after(self.at) {
            Some(next) => {
                self.at = next;
                self.block.prefetch_after(next);
                true
            }
            None => false,
        }
    }

    /// Whether the row may go on behind the end of the block.
    #[inline]
    pub fn goes_on(&self) -> bool {
        self.goes_on
    }
}

impl Reader {
    /// The cells of the row of `key` from `key` on, as far as they lie in one block; `keep`: a block that is read goes to the cache.
    ///
    /// # Errors
    /// `WouldBlock` when a block is not cached and must not be read; `Io` and `Corrupt` of the blocks on the way.
    pub fn look(&self, key: KeyRef<'_>, residency: Residency, keep: bool) -> Result<Found> {
        if self.half.is_some() {
            return Ok(Found::NeedsScanner);
        }
        if self.root.len() == 0 {
            return Ok(Found::Nothing);
        }
        let (order, row) = (self.order(), key.row());
        let levels = self.index_levels() as usize;
        let entry = self.root.find(order, key);
        let mut at = self.root.block(entry);
        // Keys in an index are at or before the first cell of their block, and after all cells of the block before.
        let mut goes_on = entry + 1 < self.root.len() && self.root.key(entry + 1).row() == row;
        for level in 1..levels {
            let index = self.source.index(at, level + 1 == levels, Fetch { residency, keep: true })?;
            let entry = index.find(order, key);
            at = index.block(entry);
            if entry + 1 < index.len() {
                goes_on = index.key(entry + 1).row() == row;
            }
        }
        let block = self.source.data(at, Fetch { residency, keep }, None)?;
        let seq_ids = match self.override_seq_id() {
            Some(id) => SeqIds::All(id.0),
            None if self.max_memstore_ts() == 0 => SeqIds::All(0),
            None => SeqIds::Stored,
        };
        Ok(match block.seek_to_copy(order, key) {
            Some(at) if block.key(at).row() == row => Found::Cells(PointCursor { block, at, goes_on, seq_ids }),
            None if goes_on => Found::NeedsScanner,
            _ => Found::Nothing,
        })
    }
}
