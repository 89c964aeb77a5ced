//! What went to which keys in one piece of time.

use crate::sampler::Kind;

/// Longer keys are cut off.
pub const MAX_KEY_BYTES: usize = 64;

/// Ranges of a column at most.
pub const MAX_RANGES: usize = 96;

/// Operations and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Rows read.
    pub reads: u64,
    /// Rows written.
    pub writes: u64,
    /// Bytes of what was read.
    pub read_bytes: u64,
    /// Bytes of what was written.
    pub written_bytes: u64,
}

impl Load {
    /// Counts operations of so many bytes each.
    pub(crate) fn add(&mut self, kind: Kind, operations: u64, bytes_each: u64) {
        let (count, bytes) = match kind {
            Kind::Read => (&mut self.reads, &mut self.read_bytes),
            Kind::Write => (&mut self.writes, &mut self.written_bytes),
        };
        *count = count.saturating_add(operations);
        *bytes = bytes.saturating_add(operations.saturating_mul(bytes_each));
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Load) -> Load {
        Load {
            reads: self.reads.saturating_add(other.reads),
            writes: self.writes.saturating_add(other.writes),
            read_bytes: self.read_bytes.saturating_add(other.read_bytes),
            written_bytes: self.written_bytes.saturating_add(other.written_bytes),
        }
    }

    /// How much it counts when ranges are to be about equal: an operation as much as a KiB.
    pub(crate) fn weight(&self) -> u64 {
        let bytes = self.read_bytes.saturating_add(self.written_bytes);
        self.reads.saturating_add(self.writes).saturating_add(bytes / 1024)
    }
}

/// Keys from the first to the last that were seen, and what went to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// The lowest key that was seen, cut off at 64 bytes.
    pub first: Box<[u8]>,
    /// The highest; equal to the first where it is one key.
    pub last: Box<[u8]>,
    /// What went to them.
    pub load: Load,
}

impl KeyRange {
    /// Bytes of memory.
    pub(crate) fn size_bytes(&self) -> usize {
        size_of::<KeyRange>() + self.first.len() + self.last.len()
    }
}

/// Ranges in the order of their first keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    ranges: Vec<KeyRange>,
}

impl Column {
    /// Of ranges in any order: neighbours are joined until there are few. A key to which much goes stays alone.
    pub fn of(mut ranges: Vec<KeyRange>) -> Column {
        ranges.sort_by(|a, b| (&a.first, &a.last).cmp(&(&b.first, &b.last)));
        Column { ranges: joined(ranges, MAX_RANGES) }
    }

    /// The ranges.
    pub fn ranges(&self) -> &[KeyRange] {
        &self.ranges
    }

    /// Everything that went to the table.
    pub fn load(&self) -> Load {
        self.ranges.iter().fold(Load::default(), |sum, range| sum.and(range.load))
    }

    /// Both times together.
    #[must_use]
    pub fn and(self, other: Column) -> Column {
        let mut ranges = self.ranges;
        ranges.extend(other.ranges);
        Column::of(ranges)
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.ranges.iter().map(KeyRange::size_bytes).sum()
    }
}

/// Ranges that are sorted, joined to at most so many of about equal weight.
pub(crate) fn joined(ranges: Vec<KeyRange>, most: usize) -> Vec<KeyRange> {
    let mut out: Vec<KeyRange> = Vec::with_capacity(ranges.len().min(most));
    // Of two neighbours that were not joined, one key or together more than this: there are twice the quotient at most, and one.
    let total: u64 = ranges.iter().fold(0, |sum, range| sum.saturating_add(range.load.weight()));
    let limit = if ranges.len() <= most { 0 } else { (total / (most as u64 / 2)).max(1) };
    for range in ranges {
        let Some(before) = out.last_mut() else {
            out.push(range);
            continue;
        };
        let is_same = before.first == range.first && before.last == range.last;
        if is_same || before.load.weight().saturating_add(range.load.weight()) <= limit || out.len() == most {
            let before = out.last_mut().expect("there is one");
            before.load = before.load.and(range.load);
            before.last = std::mem::take(&mut before.last).max(range.last);
        } else {
            out.push(range);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: &str, last: &str, reads: u64) -> KeyRange {
        KeyRange {
            first: first.as_bytes().into(),
            last: last.as_bytes().into(),
            load: Load { reads, ..Load::default() },
        }
    }

    #[test]
    fn a_few_ranges_stay_as_they_are_and_equal_ones_become_one() {
        let column = Column::of(vec![range("b", "b", 2), range("a", "a", 1), range("b", "b", 3)]);
        assert_eq!(column.ranges(), [range("a", "a", 1), range("b", "b", 5)]);
    }

    #[test]
    fn many_are_joined_and_a_hot_key_stays_alone() {
        let mut ranges: Vec<_> = (0..5000).map(|n| range(&format!("k{n:05}"), &format!("k{n:05}"), 1)).collect();
        ranges[2500].load.reads = 4000;
        let column = Column::of(ranges);
        assert!(column.ranges().len() <= MAX_RANGES, "{}", column.ranges().len());
        assert!(column.ranges().len() > MAX_RANGES / 4, "{}", column.ranges().len());
        assert_eq!(column.load().reads, 8999);
        let hot = column.ranges().iter().find(|range| range.load.reads >= 4000).expect("the hot key");
        assert_eq!((&*hot.first, &*hot.last), (&b"k02500"[..], &b"k02500"[..]));
    }

    #[test]
    fn a_range_within_another_leaves_the_highest_key() {
        let wide: Vec<_> = (0..200).map(|n| range(&format!("{n:03}"), "999", 1)).collect();
        let column = Column::of(wide);
        assert!(column.ranges().iter().all(|range| *range.last == *b"999"));
        assert_eq!(column.load().reads, 200);
    }
}
