//! How often blocks were asked for lately, those that the cache does not hold included: an estimate in little room (a count-min sketch), for
//! [`crate::CachePolicy::TinyLfu`] and for the second level. Follows: Caffeine's `FrequencySketch`.
//!
//! Always true: an estimate is never below the count, as far as threads did not count the same key at once, and no more than [`MOST`].

use base::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use rustc_hash::FxBuildHasher;
use std::hash::{BuildHasher, Hash};

/// No key is counted further than this.
const MOST: u8 = 15;
/// A key has a counter in each of so many rows; the smallest is the estimate.
const ROWS: usize = 4;
/// One counter of a row for so many bytes of the cache: four for a block of the usual size.
const BYTES_PER_COUNTER: u64 = 16 << 10;
const FEWEST_COUNTERS: u64 = 1 << 10;
/// All counts are halved when there were so many lookups for each counter of a row.
const LOOKUPS_PER_COUNTER: u64 = 10;

pub(crate) struct Frequencies {
    /// Row after row.
    counters: Box<[AtomicU8]>,
    /// Counters of a row, a power of two.
    row_len: usize,
    lookups: AtomicU64,
}

impl Frequencies {
    /// For a cache of so many bytes; takes a 4096th of them, and 4 KiB at least.
    pub fn for_bytes(bytes: u64) -> Frequencies {
        let row_len = (bytes / BYTES_PER_COUNTER).max(FEWEST_COUNTERS).next_power_of_two() as usize;
        let counters = (0..row_len * ROWS).map(|_| AtomicU8::new(0)).collect();
        Frequencies { counters, row_len, lookups: AtomicU64::new(0) }
    }

    /// What it takes.
    pub fn memory_bytes(&self) -> u64 {
        self.counters.len() as u64
    }

    fn counters_of(&self, key: impl Hash) -> [&AtomicU8; ROWS] {
        let hash = FxBuildHasher.hash_one(key);
        // Two halves make as many hashes as are wanted.
        let (first, step) = (hash as u32, (hash >> 32) as u32 | 1);
        std::array::from_fn(|row| {
            let at = (first.wrapping_add(step.wrapping_mul(row as u32)) as usize).wrapping_mul(0x9E37_79B1) >> 8;
            &self.counters[row * self.row_len + (at & (self.row_len - 1))]
        })
    }

    /// The key was asked for. Of two threads that count one key at once, one may count for nothing.
    pub fn count(&self, key: impl Hash) {
        for counter in self.counters_of(key) {
            let count = counter.load(Ordering::Relaxed);
            if count < MOST {
                counter.store(count + 1, Ordering::Relaxed);
            }
        }
        self.lookups.fetch_add(1, Ordering::Relaxed);
    }

    /// How often the key was asked for lately.
    pub fn of(&self, key: impl Hash) -> u8 {
        self.counters_of(key).iter().map(|counter| counter.load(Ordering::Relaxed)).min().unwrap_or(0)
    }

    /// Halves all counts when it is time to; one caller at a time, and what is counted at the same moment may count for nothing. Costs a look at each
    /// counter then.
    pub fn age(&self) {
        if self.lookups.load(Ordering::Relaxed) < self.row_len as u64 * LOOKUPS_PER_COUNTER {
            return;
        }
        self.lookups.store(0, Ordering::Relaxed);
        for counter in &self.counters {
            counter.store(counter.load(Ordering::Relaxed) / 2, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_more_counts_more_and_old_counts_fade() {
        let frequencies = Frequencies::for_bytes(1 << 20);
        for block in 0..200_u64 {
            for _ in 0..=block % 3 {
                frequencies.count((7_u64, block * 65_536));
            }
        }
        frequencies.age();
        for block in 0..200_u64 {
            assert!(u64::from(frequencies.of((7_u64, block * 65_536))) > block % 3, "never below the count");
        }
        let exact = (0..200_u64).filter(|block| u64::from(frequencies.of((7_u64, block * 65_536))) == block % 3 + 1);
        assert!(exact.count() > 190, "few share all their counters with others");
        for _ in 0..20_000 {
            frequencies.count((1_u64, 1_u64));
        }
        assert_eq!(frequencies.of((1_u64, 1_u64)), MOST);
        frequencies.age();
        assert_eq!(frequencies.of((1_u64, 1_u64)), MOST / 2);
    }
}
