//! How a table's rows are spread over its keys, as far as its region servers say: for estimates of how many rows ranges of keys have.

use bytes::Bytes;
use client::Table;
use futures::{StreamExt, TryStreamExt};
use proto::Message;
use proto::histogram::{METHOD, Request, Response, SERVICE};

use crate::error::{SqlError, SqlState};
use crate::predicate::KeyRange;

/// Parts of a region.
const PARTS_OF_A_REGION: u32 = 64;
/// Regions that are asked at a time.
const REGIONS_AT_A_TIME: usize = 16;

/// Rows and bytes before compression, about.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Amount {
    /// Rows.
    pub rows: f64,
    /// Bytes of their cells.
    pub bytes: f64,
}

/// A part of the keys.
#[derive(Debug, Clone, PartialEq)]
struct Part {
    start: Bytes,
    /// Just after its last key.
    stop: Bytes,
    amount: Amount,
}

/// The parts of a table's keys, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Histogram(Vec<Part>);

impl Histogram {
    /// Asks all regions.
    ///
    /// # Errors
    /// A server does not answer, or has no such endpoint, as Apache HBase's have none.
    pub async fn of(table: &Table) -> Result<Histogram, SqlError> {
        let regions = table.start_end_keys().await?;
        let request = Bytes::from(Request { most_parts: PARTS_OF_A_REGION }.encode_to_vec());
        let asked = regions.into_iter().map(|(start, _)| {
            let request = request.clone();
            async move { table.coprocessor_raw(&start, SERVICE, METHOD, request).await }
        });
        let malformed = |e| SqlError::new(SqlState::INTERNAL_ERROR, format!("a key histogram cannot be read: {e}"));
        let mut answers = futures::stream::iter(asked).buffered(REGIONS_AT_A_TIME);
        let mut parts = Vec::new();
        while let Some(answer) = answers.try_next().await? {
            let Response { parts: of_region, last_row, .. } = Response::decode(answer).map_err(malformed)?;
            let last = Bytes::from([&last_row[..], &[0]].concat());
            for (at, part) in of_region.iter().enumerate() {
                let stop = of_region.get(at + 1).map_or(&last, |next| &next.start_row).clone();
                let amount = Amount { rows: part.rows as f64, bytes: part.bytes as f64 };
                parts.push(Part { start: part.start_row.clone(), stop, amount });
            }
        }
        Ok(Histogram(parts))
    }

    /// Of the whole table.
    pub fn all(&self) -> Amount {
        self.sum(self.0.iter().map(|part| (part, 1.0)))
    }

    /// Of some ranges, which are sorted.
    pub fn within(&self, ranges: &[KeyRange]) -> Amount {
        self.sum(ranges.iter().flat_map(|range| {
            let first = self.0.partition_point(|part| part.stop[..] <= range.start[..]);
            let overlaps = |part: &&Part| range.stop.is_empty() || part.start[..] < range.stop[..];
            self.0[first..].iter().take_while(overlaps).map(|part| (part, part.share(range)))
        }))
    }

    /// Keys at which some ranges, which are sorted, fall into so many pieces of about as many rows each; fewer where it knows too few keys.
    pub fn cuts(&self, ranges: &[KeyRange], pieces: usize) -> Vec<Bytes> {
        if pieces < 2 {
            return Vec::new();
        }
        let share = self.within(ranges).rows / pieces as f64;
        let (mut cuts, mut before) = (Vec::new(), 0.0);
        for part in &self.0 {
            let rows: f64 = ranges.iter().map(|range| part.rows_of(range)).sum();
            if rows > 0.0 && before >= share * (cuts.len() + 1) as f64 && cuts.len() + 1 < pieces {
                cuts.push(part.start.clone());
            }
            before += rows;
        }
        cuts
    }

    fn sum<'a>(&self, shares: impl Iterator<Item = (&'a Part, f64)>) -> Amount {
        shares.fold(Amount::default(), |sum, (Part { amount, .. }, share)| Amount {
            rows: sum.rows + amount.rows * share,
            bytes: sum.bytes + amount.bytes * share,
        })
    }
}

impl Part {
    /// How many of its rows a range has.
    fn rows_of(&self, range: &KeyRange) -> f64 {
        if range.within(&self.start, &self.stop).is_none() { 0.0 } else { self.amount.rows * self.share(range) }
    }

    /// How much of it a range has, as if its keys were spread evenly.
    fn share(&self, range: &KeyRange) -> f64 {
        if range.is_one_key() {
            return 1.0 / self.amount.rows.max(1.0);
        }
        let low = self.place(&range.start);
        let high = if range.stop.is_empty() { 1.0 } else { self.place(&range.stop) };
        (high - low).max(0.0)
    }

    /// Where a key is, from 0 at the start to 1 at the stop: by the first bytes that the two do not share.
    fn place(&self, key: &[u8]) -> f64 {
        if *key <= self.start[..] {
            return 0.0;
        }
        if *key >= self.stop[..] {
            return 1.0;
        }
        let shared = self.start.iter().zip(&self.stop).take_while(|(a, b)| a == b).count();
        let [start, stop, key] =
            [&self.start[..], &self.stop[..], key].map(|key| key.get(shared..).unwrap_or_default());
        let digits = Digits::of(&[start, stop, key]);
        let [start, stop, key] = [start, stop, key].map(|key| digits.fraction(key));
        if stop > start { ((key - start) / (stop - start)).clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// What bytes of keys are taken to be the digits of: a number between 0 and 1. Follows: PostgreSQL's `convert_string_to_scalar`.
struct Digits {
    lowest: u8,
    highest: u8,
}

impl Digits {
    /// Bytes that make a difference.
    const MOST: usize = 12;

    /// Those of some keys: of texts the kinds of characters that are in them, else all bytes.
    fn of(keys: &[&[u8]]) -> Digits {
        let bytes = || keys.iter().flat_map(|key| key.iter().take(Digits::MOST).copied());
        if !bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return Digits { lowest: 0, highest: 255 };
        }
        let (mut lowest, mut highest) = (bytes().min().unwrap_or(b' '), bytes().max().unwrap_or(b'~'));
        for (first, last) in [(b'0', b'9'), (b'A', b'Z'), (b'a', b'z')] {
            if bytes().any(|byte| (first..=last).contains(&byte)) {
                (lowest, highest) = (lowest.min(first), highest.max(last));
            }
        }
        Digits { lowest, highest }
    }

    fn fraction(&self, key: &[u8]) -> f64 {
        let base = f64::from(self.highest - self.lowest) + 1.0;
        let digit = |byte: &u8| f64::from(byte.saturating_sub(self.lowest));
        key.iter().take(Digits::MOST).rev().fold(0.0, |sum, byte| (sum + digit(byte)) / base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys of 8 bytes, a thousand rows in each part.
    fn of(parts: &[std::ops::Range<u64>]) -> Histogram {
        let key = |number: u64| Bytes::copy_from_slice(&(number | 1 << 63).to_be_bytes());
        let part = |range: &std::ops::Range<u64>| {
            let amount = Amount { rows: 1000.0, bytes: 200_000.0 };
            Part { start: key(range.start), stop: key(range.end), amount }
        };
        Histogram(parts.iter().map(part).collect())
    }

    fn range(start: u64, stop: u64) -> KeyRange {
        let key = |number: u64| (number | 1 << 63).to_be_bytes().to_vec();
        KeyRange { start: key(start), stop: key(stop) }
    }

    #[test]
    fn ranges_have_their_shares_of_parts() {
        let histogram = of(&[0..1000, 1000..5000, 9000..10_000]);
        let rows = |ranges: &[KeyRange]| histogram.within(ranges).rows.round();
        let whole = KeyRange { start: Vec::new(), stop: Vec::new() };
        assert_eq!(histogram.all(), Amount { rows: 3000.0, bytes: 600_000.0 });
        assert_eq!(histogram.within(&[whole]), histogram.all());
        assert_eq!(rows(&[range(0, 500)]), 500.0);
        assert_eq!(rows(&[range(500, 3000)]), 1000.0);
        assert_eq!(rows(&[range(6000, 7000)]), 0.0);
        assert_eq!(rows(&[range(100, 200), range(9900, 100_000)]), 200.0);
        assert_eq!(rows(&[KeyRange { start: range(5000, 5001).start, stop: Vec::new() }]), 1000.0);
        assert_eq!(rows(&[]), 0.0);
    }

    #[test]
    fn ranges_are_cut_into_pieces_of_as_many_rows() {
        let histogram = of(&[0..1000, 1000..5000, 5000..6000, 9000..10_000]);
        let key = |number: u64| Bytes::copy_from_slice(&(number | 1 << 63).to_be_bytes());
        let whole = [KeyRange { start: Vec::new(), stop: Vec::new() }];
        assert_eq!(histogram.cuts(&whole, 2), [key(5000)]);
        assert_eq!(histogram.cuts(&whole, 4), [key(1000), key(5000), key(9000)]);
        assert_eq!(histogram.cuts(&whole, 100).len(), 3);
        assert!(histogram.cuts(&whole, 1).is_empty());
        assert_eq!(histogram.cuts(&[range(0, 100), range(5000, 6000), range(9000, 9900)], 2), [key(9000)]);
    }

    #[test]
    fn one_key_is_one_row() {
        let whole = 0..1000;
        let histogram = of(std::slice::from_ref(&whole));
        let one = |number| {
            let start = range(number, 0).start;
            KeyRange { stop: [&start[..], &[0]].concat(), start }
        };
        assert_eq!(histogram.within(&[one(5), one(7)]).rows.round(), 2.0);
    }

    #[test]
    fn keys_of_text_are_placed_by_the_bytes_that_differ() {
        let part = Part { start: "row100".into(), stop: "row200".into(), amount: Amount { rows: 100.0, bytes: 0.0 } };
        let histogram = Histogram(vec![part]);
        let middle = KeyRange { start: b"row150".to_vec(), stop: Vec::new() };
        let rows = histogram.within(&[middle]).rows;
        assert!((30.0..70.0).contains(&rows), "{rows}");
    }
}
