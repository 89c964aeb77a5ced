//! When an attempt at a fast path is worth it.

/// Tries less and less often where attempts keep failing: looking at the same rows twice is wasted.
#[derive(Debug)]
pub(super) struct AttemptBackoff {
    /// Rows to go without an attempt, and how many it were last time.
    left: u32,
    last: u32,
    /// No more than so many in a row.
    max_rows: u32,
}

impl AttemptBackoff {
    pub(super) fn new(max_rows: u32) -> AttemptBackoff {
        AttemptBackoff { left: 0, last: 0, max_rows }
    }

    /// Whether to try at this row.
    #[inline]
    pub(super) fn is_due(&mut self) -> bool {
        let is_due = self.left == 0;
        self.left = self.left.saturating_sub(1);
        is_due
    }

    #[inline]
    pub(super) fn succeeded(&mut self) {
        self.last = 0;
    }

    /// A single failure means little: each block's last row is one.
    #[inline]
    pub(super) fn failed(&mut self) {
        self.left = self.last;
        self.last = (2 * self.last + 1).min(self.max_rows);
    }
}
