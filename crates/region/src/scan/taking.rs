//! What becomes of the rows that a [walk](super::walk) takes: they are copied, as they leave, or shown where they lie to whoever makes something
//! of them at once.

use super::limits::estimated_bytes;
use cell::{CellBuffer, CellRef};
use filter::Evaluator;

/// Takes rows, one after the other; nothing of a row counts before it is [taken](Taking::take).
pub(super) trait Taking<'a> {
    /// The cells to come are another row's.
    fn begin_row(&mut self);

    /// A cell of the row, as `filter` lets it be seen.
    fn add(&mut self, cell: CellRef<'a>, filter: Option<&Evaluator>);

    /// Whether the row has no cells so far.
    fn has_none(&self) -> bool;

    /// The row has no more cells: its bytes as [`estimated_bytes`] counts them, which are `bytes` without the filter; `None`, and nothing is
    /// left of it, where the filter refuses it.
    fn finish(&mut self, filter: &mut Evaluator, bytes: u64) -> Option<u64>;

    /// Forgets the row's cells.
    fn give_back(&mut self);

    /// The row is a result.
    fn take(&mut self);
}

/// Rows are copied.
pub(super) struct Copying<'o> {
    pub out: &'o mut CellBuffer,
    /// Where in it the second row and each later one begins.
    pub row_offsets: &'o mut Vec<usize>,
    start: usize,
    is_first: bool,
}

impl<'o> Copying<'o> {
    pub(super) fn new(out: &'o mut CellBuffer, row_offsets: &'o mut Vec<usize>) -> Copying<'o> {
        Copying { start: out.len(), out, row_offsets, is_first: true }
    }
}

impl<'a> Taking<'a> for Copying<'_> {
    #[inline]
    fn begin_row(&mut self) {
        self.start = self.out.len();
    }

    #[inline]
    fn add(&mut self, cell: CellRef<'a>, filter: Option<&Evaluator>) {
        match filter {
            Some(filter) if filter.transforms() => filter.transform_cell(cell, self.out),
            _ => self.out.push(cell),
        }
    }

    #[inline]
    fn has_none(&self) -> bool {
        self.out.len() == self.start
    }

    fn finish(&mut self, filter: &mut Evaluator, bytes: u64) -> Option<u64> {
        if filter.finish_row(self.out, self.start) || self.has_none() {
            return None;
        }
        if filter.has_filter_row() {
            return Some(self.out.iter_from(self.start).map(estimated_bytes).sum());
        }
        Some(bytes)
    }

    #[inline]
    fn give_back(&mut self) {
        self.out.truncate(self.start);
    }

    #[inline]
    fn take(&mut self) {
        if !std::mem::take(&mut self.is_first) {
            self.row_offsets.push(self.start);
        }
    }
}

/// Sees rows where they lie.
pub type Viewer<'v> = dyn FnMut(&[CellRef<'_>]) + 'v;

/// Rows are shown.
pub(super) struct Showing<'a, 'v> {
    cells: Vec<CellRef<'a>>,
    viewer: &'v mut Viewer<'v>,
}

impl<'a, 'v> Showing<'a, 'v> {
    /// `None` where a filter has cells changed, or its say about which of a row's are left.
    pub(super) fn new(filter: Option<&Evaluator>, viewer: &'v mut Viewer<'v>) -> Option<Showing<'a, 'v>> {
        let sees_all = filter.is_none_or(|filter| !filter.transforms() && !filter.has_filter_row());
        sees_all.then(|| Showing { cells: Vec::new(), viewer })
    }
}

impl<'a> Taking<'a> for Showing<'a, '_> {
    #[inline]
    fn begin_row(&mut self) {
        self.cells.clear();
    }

    #[inline]
    fn add(&mut self, cell: CellRef<'a>, _filter: Option<&Evaluator>) {
        self.cells.push(cell);
    }

    #[inline]
    fn has_none(&self) -> bool {
        self.cells.is_empty()
    }

    fn finish(&mut self, filter: &mut Evaluator, bytes: u64) -> Option<u64> {
        (!filter.filter_row()).then_some(bytes)
    }

    #[inline]
    fn give_back(&mut self) {
        self.cells.clear();
    }

    #[inline]
    fn take(&mut self) {
        (self.viewer)(&self.cells);
    }
}
