//! Evaluates filters (interface; being filled in).

use crate::{Error, Filter, Verdict};
use base::Dice;
use cell::{CellBuffer, CellRef};
use std::sync::Arc;

/// The state of one filter in one region scanner.
#[derive(Debug)]
pub struct Evaluator {
    _private: (),
}

impl Filter {
    /// A fresh evaluator for one region scanner. `reversed`: rows come in descending order. `dice` is thrown by
    /// [`Filter::RandomRow`].
    pub fn evaluator(&self, reversed: bool, dice: &Arc<Dice>) -> Evaluator {
        let _ = (reversed, dice);
        Evaluator { _private: () }
    }
}

impl Evaluator {
    /// A new row begins.
    pub fn reset(&mut self) {}

    /// Whether nothing more of this region is wanted.
    pub fn filter_all_remaining(&self) -> bool {
        false
    }

    /// Whether the row of `first_cell` is skipped.
    ///
    /// # Errors
    /// What a comparator says of a row of the wrong shape.
    pub fn filter_row_key(&mut self, first_cell: CellRef<'_>) -> Result<bool, Error> {
        let _ = first_cell;
        Ok(false)
    }

    /// What becomes of `cell`.
    ///
    /// # Errors
    /// What a comparator says of a part of the wrong shape.
    pub fn filter_cell(&mut self, cell: CellRef<'_>) -> Result<Verdict, Error> {
        let _ = cell;
        Ok(Verdict::Include)
    }

    /// After [`Verdict::SeekNextUsingHint`] on `cell`: writes the flat key to go on from (`out` is cleared first).
    /// False: there is no hint, go on with the next cell.
    pub fn next_cell_hint(&mut self, cell: CellRef<'_>, out: &mut Vec<u8>) -> bool {
        let _ = (cell, out);
        false
    }

    /// Whether [`Evaluator::transform_cell`] may change cells.
    pub fn transforms(&self) -> bool {
        false
    }

    /// Appends `cell`, which was included, as the client is to see it.
    pub fn transform_cell(&self, cell: CellRef<'_>, out: &mut CellBuffer) {
        out.push(cell);
    }

    /// Whether [`Evaluator::filter_row_cells`] needs to see whole rows. Such a filter is not for scans with a batch.
    pub fn has_filter_row(&self) -> bool {
        false
    }

    /// Takes cells from a finished row, which are those in `cells` from number `from` on.
    pub fn filter_row_cells(&mut self, cells: &mut CellBuffer, from: usize) {
        let _ = (cells, from);
    }

    /// Whether the finished row is dropped.
    pub fn filter_row(&mut self) -> bool {
        false
    }

    /// Whether the filter must see `family` to decide about a row; other families may be read after it has passed.
    pub fn is_family_essential(&self, family: &[u8]) -> bool {
        let _ = family;
        true
    }
}
