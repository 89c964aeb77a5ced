//! Filters at work: an [`Evaluator`] answers a scanner's questions in HBase's order (see the crate's header).

use crate::{Error, Filter, ListOperator, Verdict};
use base::Rng;
use cell::{CellBuffer, CellRef, CellSpec, KeyRef, Order};
use std::sync::Arc;

mod fuzzy;
mod list;
mod node;
mod ranges;

pub(crate) use fuzzy::check as check_fuzzy;
pub(crate) use ranges::check as check_ranges;

use node::{Node, ValueForm};
use std::cmp::Ordering;

/// The state of one filter in one region scanner.
#[derive(Debug)]
pub struct Evaluator {
    node: Node,
    reversed: bool,
    transforms: bool,
    has_filter_row: bool,
    ends_by_cells: bool,
    is_restartable_per_row: bool,
    takes_first: bool,
}

impl Filter {
    /// Whether all it does is to take a row's first cell, or that cell's key.
    fn takes_first(&self) -> bool {
        match self {
            Filter::FirstKeyOnly => true,
            Filter::List { operator: ListOperator::MustPassAll, filters } => {
                filters.contains(&Filter::FirstKeyOnly)
                    && filters.iter().all(|filter| matches!(filter, Filter::FirstKeyOnly | Filter::KeyOnly { .. }))
            }
            _ => false,
        }
    }

    /// A fresh evaluator for one region scanner. `reversed`: rows come in descending order (cells of a row ascend
    /// either way). [`Filter::RandomRow`] draws from `rng`.
    pub fn evaluator(&self, reversed: bool, rng: &Arc<Rng>) -> Evaluator {
        let node = Node::new(self, reversed, rng);
        Evaluator {
            reversed,
            transforms: node.transforms(),
            has_filter_row: node.has_filter_row(),
            ends_by_cells: node.ends_by_cells(),
            is_restartable_per_row: node.is_restartable_per_row(),
            takes_first: self.takes_first(),
            node,
        }
    }
}

impl Evaluator {
    /// A new row begins.
    #[inline]
    pub fn reset(&mut self) {
        self.node.reset();
    }

    /// Whether nothing more of this region is wanted. A store asks it before every cell, not only the region before
    /// every row: a yes closes that store for the rest of the scan (`ColumnCountGet` lives by it: its yes does not
    /// survive the reset at the end of the row).
    #[inline]
    pub fn filter_all_remaining(&self) -> bool {
        self.node.all_remaining()
    }

    /// Whether a cell can make [`Evaluator::filter_all_remaining`] true. Such a filter is shown the cells of rows too
    /// that [`Evaluator::filter_row_key`] skips, when the scan goes forwards: HBase leaves a row cell by cell.
    #[inline]
    pub fn ends_by_cells(&self) -> bool {
        self.ends_by_cells
    }

    /// Whether the filter judges cells and finished rows alone, remembers of a row at most that it was finished, and gives no hints:
    /// only a finished row makes [`Evaluator::filter_all_remaining`] true, [`Evaluator::filter_row_key`] is true only with it, and a row
    /// that was begun can be begun again after a [`Evaluator::reset`].
    #[inline]
    pub fn is_restartable_per_row(&self) -> bool {
        self.is_restartable_per_row
    }

    /// Whether the first cell that it is asked about is all that it lets pass of each row, whatever it is, and it refuses no row: it need not be
    /// asked then.
    #[inline]
    pub fn takes_first(&self) -> bool {
        self.takes_first
    }

    /// Whether the row of `first_cell` is skipped. Ask [`Evaluator::filter_all_remaining`] again after a yes.
    ///
    /// # Errors
    /// What a comparator says of a row of the wrong shape.
    pub fn filter_row_key(&mut self, first_cell: CellRef<'_>) -> Result<bool, Error> {
        if self.node.all_remaining() {
            return Ok(true);
        }
        self.node.row_key(first_cell.key())
    }

    /// What becomes of `cell`.
    ///
    /// # Errors
    /// What a comparator says of a part of the wrong shape.
    #[inline]
    pub fn filter_cell(&mut self, cell: CellRef<'_>) -> Result<Verdict, Error> {
        self.node.cell(cell)
    }

    /// After [`Verdict::SeekNextUsingHint`] on `cell`: writes the flat key to go on from (`out` is cleared first).
    /// Forwards the key is after `cell`. In a reversed scan it is the first key of a lower row: go on with the
    /// greatest row that is not above it (hints within a row are of no use there, and HBase ignores them too).
    /// False: there is no such hint, go on with the next cell. Rows are compared as bytes; a scanner of hbase:meta
    /// checks the hint itself.
    pub fn next_cell_hint(&mut self, cell: CellRef<'_>, out: &mut Vec<u8>) -> bool {
        out.clear();
        if !self.node.hint(cell.key(), out) {
            return false;
        }
        let hint = KeyRef::from_checked(out);
        if self.reversed { hint.row() < cell.row() } else { Order::User.keys(hint, cell.key()) == Ordering::Greater }
    }

    /// Whether [`Evaluator::transform_cell`] may change cells.
    #[inline]
    pub fn transforms(&self) -> bool {
        self.transforms
    }

    /// Whether the cell that was included last keeps its value.
    pub fn keeps_value(&self) -> bool {
        !self.transforms || matches!(self.node.value_form(ValueForm::Whole, 0), ValueForm::Whole)
    }

    /// Appends `cell`, which was included, as the client is to see it.
    pub fn transform_cell(&self, cell: CellRef<'_>, out: &mut CellBuffer) {
        let length;
        let value: &[u8] = match self.node.value_form(ValueForm::Whole, cell.value().len()) {
            ValueForm::Whole => return out.push(cell),
            ValueForm::Empty => b"",
            ValueForm::Length(of_value) => {
                length = of_value.to_be_bytes();
                &length
            }
        };
        // HBase's key-only cells have no tags either.
        let spec = CellSpec {
            row: cell.row(),
            family: cell.family(),
            qualifier: cell.qualifier(),
            timestamp: cell.timestamp(),
            type_code: cell.type_code(),
            value,
            tags: b"",
        };
        out.push_spec(&spec, cell.seq_id());
    }

    /// Whether rows must be whole before the filter can judge them. Such a filter is not for scans with a batch, and
    /// a server's limits may not cut its rows.
    #[inline]
    pub fn has_filter_row(&self) -> bool {
        self.has_filter_row
    }

    /// Takes cells from a finished row, which are those in `cells` from number `from` on.
    pub fn filter_row_cells(&mut self, cells: &mut CellBuffer, from: usize) {
        self.node.row_cells(cells, from);
    }

    /// Whether the finished row is dropped. Not to be asked of rows without cells: filters count.
    #[inline]
    pub fn filter_row(&mut self) -> bool {
        self.node.row()
    }

    /// The end of a row whose cells are those in `cells` from number `from` on: [`Evaluator::filter_row_cells`] and
    /// [`Evaluator::filter_row`], each when HBase asks them. True: the row is dropped and its cells are taken back.
    /// False leaves a row that may have become empty; cells of families that were not essential come after this.
    pub fn finish_row(&mut self, cells: &mut CellBuffer, from: usize) -> bool {
        let was_empty = cells.len() == from;
        let dropped = if self.has_filter_row {
            self.node.row_cells(cells, from);
            cells.len() > from && self.node.row()
        } else {
            !was_empty && self.node.row()
        };
        if dropped {
            cells.truncate(from);
        }
        was_empty || dropped
    }

    /// Whether the filter must see `family` to decide about a row; other families may be read after it has passed.
    pub fn is_family_essential(&self, family: &[u8]) -> bool {
        self.node.is_family_essential(family)
    }
}
