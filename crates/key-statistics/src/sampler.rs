//! Picks operations as they pass, on whichever thread.

use crate::column::{Column, KeyRange, Load, MAX_KEY_BYTES};
use model::TableName;
use parking_lot::Mutex;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

/// Samples that are held between two calls of [`KeySampler::take`]: about a megabyte and a half with the longest keys.
pub const MAX_SAMPLES: usize = 16_384;

/// Of the operations of one call (the rows of a scan's step, a batch) so many are looked at.
const MAX_OF_A_CALL: u32 = 16;

/// What was done to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It was read.
    Read,
    /// It was written.
    Write,
}

/// Picks one of so many operations. Costs a subtraction for those that are passed over, a lock and a copy of the key for the others.
#[derive(Debug)]
pub struct KeySampler {
    /// Operations that one sample stands for; 0: none is taken.
    interval: AtomicU32,
    samples: Mutex<Samples>,
}

#[derive(Debug, Default)]
struct Samples {
    all: Vec<Sample>,
    keys: Vec<u8>,
}

#[derive(Debug)]
struct Sample {
    table: TableName,
    key_at: usize,
    key_len: usize,
    kind: Kind,
    /// Operations that it stands for.
    weight: u32,
    bytes: u64,
}

thread_local! {
    /// Operations until the next that is picked, of all samplers: which of them come here is no matter of keys.
    static LEFT: Cell<u32> = const { Cell::new(1) };
    static RANDOM: Cell<u32> = const { Cell::new(0x9e37_79b9) };
}

/// xorshift32 (Marsaglia 2003): what it decides is no more than which of many like operations is looked at.
fn random_below(bound: u32) -> u32 {
    RANDOM.with(|state| {
        let mut x = state.get();
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        state.set(x);
        u32::try_from((u64::from(x) * u64::from(bound)) >> 32).unwrap_or(0)
    })
}

impl KeySampler {
    /// One that picks every operation until there are many.
    pub fn new() -> KeySampler {
        KeySampler { interval: AtomicU32::new(1), samples: Mutex::default() }
    }

    /// One that picks none.
    pub fn off() -> KeySampler {
        KeySampler { interval: AtomicU32::new(0), samples: Mutex::default() }
    }

    /// Whether it picks any.
    pub fn is_on(&self) -> bool {
        self.interval.load(Ordering::Relaxed) != 0
    }

    /// `operations` were done to rows of `table`; `row` gives the key of each and the bytes that were read or written.
    #[inline]
    pub fn passed<'a>(
        &self,
        table: &TableName,
        kind: Kind,
        operations: usize,
        row: impl Fn(usize) -> (&'a [u8], usize),
    ) {
        let operations = u32::try_from(operations).unwrap_or(u32::MAX);
        let left = LEFT.get();
        if operations < left {
            LEFT.set(left - operations);
            return;
        }
        self.pick(table, kind, operations, left, row);
    }

    #[cold]
    fn pick<'a>(
        &self,
        table: &TableName,
        kind: Kind,
        operations: u32,
        left: u32,
        row: impl Fn(usize) -> (&'a [u8], usize),
    ) {
        let interval = self.interval.load(Ordering::Relaxed);
        if interval == 0 {
            // Others of this thread may pick.
            LEFT.set(1);
            return;
        }
        LEFT.set(1 + random_below(interval.saturating_mul(2).saturating_sub(1)));
        if operations == 0 {
            return;
        }
        // How many would have been picked one by one, and how many of them are.
        let due = 1 + operations.saturating_sub(left.max(1)) / interval;
        let picked = due.min(MAX_OF_A_CALL);
        let weight = u32::try_from(u64::from(due) * u64::from(interval) / u64::from(picked)).unwrap_or(u32::MAX);
        let mut samples = self.samples.lock();
        for number in 0..picked {
            let at = if picked == 1 {
                left.max(1) - 1
            } else {
                let part = |number: u32| u64::from(operations) * u64::from(number) / u64::from(picked);
                let (from, to) = (part(number), part(number + 1));
                let width = u32::try_from(to - from).unwrap_or(u32::MAX);
                u32::try_from(from).unwrap_or(u32::MAX) + random_below(width.max(1))
            };
            let (key, bytes) = row(at.min(operations - 1) as usize);
            if samples.all.len() == MAX_SAMPLES {
                samples.thin_out();
                // A sample stands for twice as many from now on.
                let _ = self.interval.compare_exchange(
                    interval,
                    interval.saturating_mul(2),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
            }
            samples.push(table, kind, key, weight, bytes as u64);
        }
    }

    /// What was picked since the last call, as a column for each table. Cost: sorts at most [`MAX_SAMPLES`] keys.
    pub fn take(&self) -> BTreeMap<TableName, Column> {
        let samples = std::mem::take(&mut *self.samples.lock());
        let interval = self.interval.load(Ordering::Relaxed);
        // With half as many operations as fit, twice as many are picked.
        let fits = u32::try_from(MAX_SAMPLES / 2 / samples.all.len().max(1)).unwrap_or(u32::MAX);
        if fits > 1 && interval > 1 {
            let next = (interval / fits).max(1);
            let _ = self.interval.compare_exchange(interval, next, Ordering::Relaxed, Ordering::Relaxed);
        }
        samples.into_columns()
    }
}

impl Default for KeySampler {
    fn default() -> KeySampler {
        KeySampler::new()
    }
}

impl Samples {
    fn push(&mut self, table: &TableName, kind: Kind, key: &[u8], weight: u32, bytes: u64) {
        let key = &key[..key.len().min(MAX_KEY_BYTES)];
        let (key_at, key_len) = (self.keys.len(), key.len());
        self.keys.extend_from_slice(key);
        self.all.push(Sample { table: table.clone(), key_at, key_len, kind, weight, bytes });
    }

    /// Keeps one of each pair, whichever (every other one would be blind to a load that comes in turns), which stands for twice as many.
    fn thin_out(&mut self) {
        let old = std::mem::take(self);
        for pair in old.all.chunks(2) {
            let sample = &pair[random_below(2) as usize % pair.len()];
            let key = old.key(sample);
            self.push(&sample.table, sample.kind, key, sample.weight.saturating_mul(2), sample.bytes);
        }
    }

    fn key(&self, sample: &Sample) -> &[u8] {
        &self.keys[sample.key_at..sample.key_at + sample.key_len]
    }

    fn into_columns(self) -> BTreeMap<TableName, Column> {
        let mut tables: BTreeMap<TableName, BTreeMap<&[u8], Load>> = BTreeMap::new();
        for sample in &self.all {
            let keys = match tables.get_mut(&sample.table) {
                Some(keys) => keys,
                None => tables.entry(sample.table.clone()).or_default(),
            };
            keys.entry(self.key(sample)).or_default().add(sample.kind, sample.weight.into(), sample.bytes);
        }
        let column = |keys: BTreeMap<&[u8], Load>| {
            Column::of(
                keys.into_iter().map(|(key, load)| KeyRange { first: key.into(), last: key.into(), load }).collect(),
            )
        };
        tables.into_iter().map(|(table, keys)| (table, column(keys))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TableName {
        TableName::parse("t").expect("a name")
    }

    fn total(column: &Column) -> Load {
        column.ranges().iter().fold(Load::default(), |sum, range| sum.and(range.load))
    }

    #[test]
    fn few_operations_are_all_counted() {
        let sampler = KeySampler::new();
        for n in 0..100_u8 {
            sampler.passed(&table(), Kind::Read, 1, |_| (if n < 90 { b"hot" } else { b"cold" }, 10));
        }
        sampler.passed(&table(), Kind::Write, 3, |at| ([b"a" as &[u8], b"b", b"c"][at], 7));
        let columns = sampler.take();
        let column = &columns[&table()];
        let hot = column.ranges().iter().find(|range| *range.first == *b"hot").expect("the hot key");
        assert_eq!((hot.load.reads, hot.load.read_bytes), (90, 900));
        assert_eq!(total(column), Load { reads: 100, writes: 3, read_bytes: 1000, written_bytes: 21 });
        assert!(sampler.take().is_empty());
    }

    #[test]
    fn of_many_some_stand_for_all() {
        let sampler = KeySampler::new();
        let operations = 3_000_000_u32;
        for n in 0..operations {
            let key = (n % 1000).to_be_bytes();
            sampler.passed(&table(), Kind::Read, 1, |_| (if n % 4 == 0 { b"hot" } else { &key[..] }, 100));
        }
        let columns = sampler.take();
        let column = &columns[&table()];
        let sum = total(column);
        assert!(sum.reads.abs_diff(operations.into()) < u64::from(operations) / 10, "{sum:?}");
        let hot = column.ranges().iter().find(|range| *range.first == *b"hot").expect("the hot key").load.reads;
        assert!(hot.abs_diff(u64::from(operations) / 4) < u64::from(operations) / 40, "{hot}");
        // A quiet time later all are looked at again.
        for _ in 0..40 {
            sampler.take();
        }
        assert_eq!(sampler.interval.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn the_rows_of_a_step_are_spread_and_sum_up() {
        let sampler = KeySampler::new();
        let rows: Vec<[u8; 4]> = (0..1000_u32).map(u32::to_be_bytes).collect();
        for _ in 0..10 {
            sampler.passed(&table(), Kind::Read, rows.len(), |at| (&rows[at], 1));
        }
        let columns = sampler.take();
        let sum = total(&columns[&table()]);
        assert!(sum.reads.abs_diff(10_000) < 200, "{sum:?}");
        assert!(columns[&table()].ranges().len() > 30);
    }

    #[test]
    fn one_that_is_off_takes_nothing() {
        let sampler = KeySampler::off();
        sampler.passed(&table(), Kind::Read, 1000, |_| panic!("nobody looks"));
        assert!(sampler.take().is_empty() && !sampler.is_on());
    }
}
