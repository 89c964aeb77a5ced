//! Where the cells of rows that were read came from: from memory alone, or from files, too. Follows: `HStore#updateMetricsStore`, `StoreScanner#next`.
//!
//! Counted by row and family, wherever at least one cell of it was wanted. A scanner gathers what it has counted and adds it up now and then, so
//! that a row costs no atomic operation; what was read in a try that is given up is not counted.

use base::PairAdder;
use std::sync::Arc;

/// Of one family of a region, since it was opened.
#[derive(Debug, Default)]
pub(crate) struct RowReads(PairAdder);

impl RowReads {
    /// A row was read.
    #[inline]
    pub fn read(&self, with_files: bool) {
        self.0.add(u64::from(!with_files), u64::from(with_files));
    }

    /// Rows all of whose cells came from memory, and others.
    pub fn sums(&self) -> (u64, u64) {
        self.0.sums()
    }
}

/// So many rows are gathered before they are added up.
const GATHERED_ROWS: u64 = 128;

/// What a scanner counts; adds it up when it is dropped.
#[derive(Debug)]
pub(crate) struct RowCount {
    of: Arc<RowReads>,
    /// Of the row that is being read.
    from_memory: bool,
    from_file: bool,
    only_memory: u64,
    mixed: u64,
    is_trying: bool,
}

impl RowCount {
    pub fn new(of: Arc<RowReads>) -> RowCount {
        RowCount { of, from_memory: false, from_file: false, only_memory: 0, mixed: 0, is_trying: false }
    }

    /// A cell is wanted.
    #[inline]
    pub fn cell(&mut self, is_in_memory: bool) {
        self.from_memory |= is_in_memory;
        self.from_file |= !is_in_memory;
    }

    /// So many rows were taken as they lay in one source.
    #[inline]
    pub fn rows(&mut self, rows: u64, are_in_memory: bool) {
        if are_in_memory {
            self.only_memory += rows;
        } else {
            self.mixed += rows;
        }
    }

    /// Another row begins.
    #[inline]
    pub fn row_begins(&mut self) {
        self.only_memory += u64::from(self.from_memory && !self.from_file);
        self.mixed += u64::from(self.from_file);
        (self.from_memory, self.from_file) = (false, false);
        if self.only_memory + self.mixed >= GATHERED_ROWS && !self.is_trying {
            self.add_up();
        }
    }

    /// What follows may be given up.
    pub fn try_on(&mut self) {
        self.row_begins();
        self.add_up();
        self.is_trying = true;
    }

    /// What was read since [`RowCount::try_on`], or since it was last added up, does not count.
    pub fn forget(&mut self) {
        (self.from_memory, self.from_file, self.only_memory, self.mixed) = (false, false, 0, 0);
    }

    /// Nothing is tried any more.
    pub fn is_sure(&mut self) {
        self.is_trying = false;
    }

    fn add_up(&mut self) {
        if self.only_memory + self.mixed > 0 {
            self.of.0.add(std::mem::take(&mut self.only_memory), std::mem::take(&mut self.mixed));
        }
    }
}

impl Drop for RowCount {
    fn drop(&mut self) {
        self.row_begins();
        self.add_up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_up_does_not_count() {
        let of = Arc::new(RowReads::default());
        let mut count = RowCount::new(of.clone());
        count.cell(true);
        count.row_begins();
        count.cell(true);
        count.cell(false);
        count.try_on();
        assert_eq!(of.sums(), (1, 1));
        count.rows(GATHERED_ROWS, true);
        count.cell(false);
        count.row_begins();
        assert_eq!(of.sums(), (1, 1), "it is only a try");
        count.forget();
        count.is_sure();
        count.rows(3, false);
        count.cell(true);
        drop(count);
        of.read(true);
        of.read(false);
        assert_eq!(of.sums(), (3, 5));
    }
}
