//! A dense table of row prefixes beside sorted keys: a binary search that stays in a few cache lines and leaves only the
//! keys that could not be told apart to be compared in full.

use crate::data_block::prefetch_lines;
use cell::Order;

/// Prefixes of a table that is brought near before a search: a kilobyte.
const MOST_BROUGHT_NEAR: usize = 128;

/// Eight bytes of each row, taken after what all rows share.
#[derive(Debug, Default)]
pub(crate) struct RowWindow {
    shared: Box<[u8]>,
    /// One for each key, in the keys' order; none when rows are not ordered as bytes.
    prefixes: Box<[u64]>,
}

impl RowWindow {
    /// The table for `count` keys in order; `row(i)` is the row of key number `i`, `last` that of the last key searched among.
    pub fn new<'a>(order: Order, count: usize, row: impl Fn(usize) -> &'a [u8], last: &'a [u8]) -> RowWindow {
        if order != Order::User || count < 2 {
            return RowWindow::default();
        }
        let first = row(0);
        let shared_len = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let shared = &first[..shared_len];
        let prefixes = (0..count).map(|i| prefix(row(i).get(shared_len..).unwrap_or_default())).collect();
        RowWindow { shared: shared.into(), prefixes }
    }

    pub fn heap_bytes(&self) -> usize {
        self.shared.len() + self.prefixes.len() * size_of::<u64>()
    }

    /// Has the processor bring the table near, if it is as small as that of a block of large cells: a search meets a line of it after the other.
    #[inline]
    pub fn prefetch(&self) {
        if self.prefixes.len() <= MOST_BROUGHT_NEAR {
            self.prefixes.iter().step_by(16).for_each(|prefix| prefetch_lines(std::ptr::from_ref(prefix).cast()));
        }
    }

    /// Keys before the first number have rows before `row`; keys from the second number on have rows after it. `count` is
    /// the number of keys.
    #[inline]
    pub fn around(&self, row: &[u8], count: usize) -> (usize, usize) {
        if self.prefixes.len() != count {
            return (0, count);
        }
        let Some((head, rest)) = row.split_at_checked(self.shared.len()) else {
            // Shorter than what all rows share: before them all, or after.
            return if *row <= *self.shared { (0, 0) } else { (count, count) };
        };
        match head.cmp(&self.shared) {
            std::cmp::Ordering::Less => return (0, 0),
            std::cmp::Ordering::Greater => return (count, count),
            std::cmp::Ordering::Equal => {}
        }
        let wanted = prefix(rest);
        let low = self.prefixes.partition_point(|prefix| *prefix < wanted);
        let same = self.prefixes[low..].iter().take(4).take_while(|prefix| **prefix == wanted).count();
        let high = if same < 4 { low + same } else { low + self.prefixes[low..].partition_point(|p| *p == wanted) };
        (low, high)
    }
}

/// The first eight bytes as a number that orders as they do; what is missing counts as zeros.
#[inline]
fn prefix(rest: &[u8]) -> u64 {
    match rest.first_chunk::<8>() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; 8];
            bytes[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    #[test]
    fn the_window_never_hides_a_row() {
        let rng = Rng::seeded(3);
        for round in 0..300 {
            let shared = vec![b'r'; rng.below(5) as usize];
            let mut rows: Vec<Vec<u8>> = (0..2 + rng.below(60))
                .map(|_| {
                    let tail = (0..rng.below(12)).map(|_| [0, 1, b'a', 255][rng.below(4) as usize]);
                    shared.iter().copied().chain(tail).collect()
                })
                .collect();
            rows.sort();
            let last = rows[rows.len() - 1].clone();
            let window = RowWindow::new(Order::User, rows.len(), |i| &rows[i], &last);
            for _ in 0..50 {
                let mut row = rows[rng.below(rows.len() as u64) as usize].clone();
                match rng.below(4) {
                    0 => row.push(rng.below(3) as u8),
                    1 => row.truncate(rng.below(row.len() as u64 + 1) as usize),
                    2 if !row.is_empty() => {
                        let at = rng.below(row.len() as u64) as usize;
                        row[at] = row[at].wrapping_add(1);
                    }
                    _ => {}
                }
                let (low, high) = window.around(&row, rows.len());
                assert!(rows[..low].iter().all(|r| *r < row), "round {round}: {row:?} {low}");
                assert!(rows[high..].iter().all(|r| *r > row), "round {round}: {row:?} {high}");
            }
        }
    }
}
