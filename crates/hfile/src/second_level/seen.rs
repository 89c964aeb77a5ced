//! What was read lately: two Bloom filters that take turns.

use super::BlockKey;
use base::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;

/// Blocks are believed to be no smaller than this on the average, as they lie in files.
const BLOCK_BYTES: u64 = 16 << 10;
const BITS_PER_BLOCK: u64 = 8;

/// Remembers the last so many blocks, and up to as many before them. Forgets by turns; wrong in a few of a hundred.
pub(super) struct Seen {
    filters: [Box<[AtomicU64]>; 2],
    /// Which of them is written now.
    now: AtomicUsize,
    added: AtomicU64,
    most: u64,
}

impl Seen {
    /// For a cache of so many bytes.
    pub fn new(capacity_bytes: u64) -> Seen {
        let most = (capacity_bytes / BLOCK_BYTES).max(1024);
        let words = (most * BITS_PER_BLOCK / 64).next_power_of_two();
        let filter = || (0..words).map(|_| AtomicU64::new(0)).collect();
        Seen { filters: [filter(), filter()], now: AtomicUsize::new(0), added: AtomicU64::new(0), most }
    }

    pub fn memory_bytes(&self) -> u64 {
        self.filters.iter().map(|filter| filter.len() as u64 * 8).sum()
    }

    fn bits(&self, key: BlockKey) -> [(usize, u64); 3] {
        let hash = FxBuildHasher.hash_one(key);
        let mixed = (hash ^ (hash >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        [mixed >> 8, mixed.rotate_left(23) >> 8, mixed.rotate_left(43) >> 8].map(|bits| {
            let words = self.filters[0].len();
            ((bits >> 6) as usize & (words - 1), 1 << (bits & 63))
        })
    }

    /// Whether the block was seen before; it is from now on.
    pub fn again(&self, key: BlockKey) -> bool {
        let bits = self.bits(key);
        let now = self.now.load(Ordering::Relaxed) & 1;
        let has =
            |filter: &[AtomicU64]| bits.iter().all(|(word, bit)| filter[*word].load(Ordering::Relaxed) & bit != 0);
        if has(&self.filters[now]) {
            return true;
        }
        let before = has(&self.filters[1 - now]);
        for (word, bit) in bits {
            self.filters[now][word].fetch_or(bit, Ordering::Relaxed);
        }
        if self.added.fetch_add(1, Ordering::Relaxed) + 1 == self.most {
            // Half a megabyte at most for each 4 GiB: microseconds.
            self.filters[1 - now].iter().for_each(|word| word.store(0, Ordering::Relaxed));
            self.added.store(0, Ordering::Relaxed);
            self.now.store(1 - now, Ordering::Relaxed);
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_known_for_a_while_and_then_forgotten() {
        let seen = Seen::new(32 << 20);
        assert_eq!(seen.most, 2048);
        let file = 0x1234_5678_u128 << 64;
        let new = (0..1500).filter(|n| !seen.again((file, n * 65_536))).count();
        assert!(new >= 1450, "{new} of 1500 are new");
        assert!((0..1500).all(|n| seen.again((file, n * 65_536))), "all are known");
        for n in 0..20_000 {
            seen.again((file + 1, n * 100));
        }
        let forgotten = (0..1500).filter(|n| !seen.again((file, n * 65_536))).count();
        assert!(forgotten >= 1200, "{forgotten} of 1500 are forgotten");
    }
}
