//! Rows in one of several ranges (`MultiRowRangeFilter`).

use crate::{Error, ErrorKind, RowRange, Verdict, hint};
use std::cmp::Ordering;

#[derive(Debug)]
pub(super) struct Ranges {
    /// Sorted, not touching each other.
    ranges: Vec<RowRange>,
    reversed: bool,
    /// The range of the last row, or the next one after it.
    at: usize,
    verdict: Option<Verdict>,
    done: bool,
}

/// What the constructor of HBase refuses.
pub(crate) fn check(ranges: &[RowRange]) -> Result<(), Error> {
    if ranges.is_empty() {
        return Err(Error::illegal("No ranges found."));
    }
    let bad: Vec<&RowRange> = ranges.iter().filter(|range| !is_valid(range)).collect();
    if bad.is_empty() {
        return Ok(());
    }
    let mut message = format!("{} invaild ranges.\n", bad.len());
    for range in bad {
        let (start, stop) = (String::from_utf8_lossy(&range.start_row), String::from_utf8_lossy(&range.stop_row));
        message.push_str(&format!("Invalid range: start row => {start}, stop row => {stop}\n"));
    }
    Err(Error::illegal(message))
}

fn is_valid(range: &RowRange) -> bool {
    range.start_row.is_empty()
        || range.stop_row.is_empty()
        || match range.start_row.cmp(&range.stop_row) {
            Ordering::Less => true,
            Ordering::Equal => range.stop_inclusive,
            Ordering::Greater => false,
        }
}

fn is_before(row: &[u8], range: &RowRange) -> bool {
    row < &range.start_row[..] || row == &range.start_row[..] && !range.start_inclusive
}

fn is_after(row: &[u8], range: &RowRange) -> bool {
    !range.stop_row.is_empty() && (row > &range.stop_row[..] || row == &range.stop_row[..] && !range.stop_inclusive)
}

fn contains(range: &RowRange, row: &[u8]) -> bool {
    !is_before(row, range) && !is_after(row, range)
}

/// Sorted, with ranges that overlap or touch made one. (HBase's own merge loses the start row of a range that
/// begins where another, exclusive, one begins.)
fn merge(ranges: &[RowRange]) -> Vec<RowRange> {
    let mut sorted: Vec<RowRange> = ranges.to_vec();
    sorted.sort_by(|a, b| a.start_row.cmp(&b.start_row).then_with(|| b.start_inclusive.cmp(&a.start_inclusive)));
    let mut merged: Vec<RowRange> = Vec::with_capacity(sorted.len());
    for range in sorted {
        let Some(last) = merged.last_mut() else {
            merged.push(range);
            continue;
        };
        let open = last.stop_row.is_empty();
        let joined = open
            || match last.stop_row.cmp(&range.start_row) {
                Ordering::Greater => true,
                Ordering::Equal => last.stop_inclusive || range.start_inclusive,
                Ordering::Less => false,
            };
        if !joined {
            merged.push(range);
        } else if !open {
            match range.stop_row.cmp(&last.stop_row) {
                Ordering::Equal => last.stop_inclusive |= range.stop_inclusive,
                Ordering::Less if !range.stop_row.is_empty() => {}
                _ => (last.stop_row, last.stop_inclusive) = (range.stop_row, range.stop_inclusive),
            }
        }
    }
    merged
}

impl Ranges {
    pub(super) fn new(ranges: &[RowRange], reversed: bool) -> Ranges {
        Ranges { ranges: merge(ranges), reversed, at: 0, verdict: None, done: false }
    }

    pub(super) fn done(&self) -> bool {
        self.done
    }

    /// Never skips a row by its key, except when the scan is over: the cells' verdict sends the scanner ahead.
    pub(super) fn row_key(&mut self, row: &[u8]) -> bool {
        if self.done {
            return true;
        }
        let inside = |range: &RowRange| contains(range, row);
        if !self.ranges.get(self.at).is_some_and(inside) {
            let next = if self.reversed {
                self.next_reversed(row)
            } else {
                Some(self.ranges.partition_point(|range| is_after(row, range))).filter(|at| *at < self.ranges.len())
            };
            let Some(next) = next else {
                self.done = true;
                self.verdict = Some(Verdict::NextRow);
                return false;
            };
            self.at = next;
        }
        let range = &self.ranges[self.at];
        self.verdict = Some(if inside(range) {
            Verdict::Include
        } else if row == self.hint_row() {
            // An exclusive bound: the row after it may be inside.
            Verdict::NextRow
        } else {
            Verdict::SeekNextUsingHint
        });
        false
    }

    /// The range of `row`, or the next one below it. HBase searches the ranges by halving them, ordered by their stop
    /// rows; an open stop row is first of them but sorts as the least, so that rows which halving compares with it
    /// are sent there, and the ranges between are lost [seen in a real scan].
    fn next_reversed(&self, row: &[u8]) -> Option<usize> {
        let count = self.ranges.len();
        let flipped = |i: usize| count - 1 - i;
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = (low + high - 1) / 2;
            match row.cmp(&self.ranges[flipped(middle)].stop_row) {
                Ordering::Equal => return Some(flipped(middle)),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        let before = low.checked_sub(1).map(flipped).filter(|at| contains(&self.ranges[*at], row));
        before.or((low < count).then(|| flipped(low)))
    }

    pub(super) fn cell(&self) -> Result<Verdict, Error> {
        // Inside a SkipFilter no row is announced; HBase trips over that too.
        self.verdict.ok_or_else(|| Error::new(ErrorKind::NullPointer, "MultiRowRangeFilter was not told of the row"))
    }

    fn hint_row(&self) -> &[u8] {
        let range = &self.ranges[self.at];
        if self.reversed { &range.stop_row } else { &range.start_row }
    }

    pub(super) fn hint(&self, out: &mut Vec<u8>) -> bool {
        self.at < self.ranges.len() && hint::first_on_row(out, self.hint_row())
    }
}
