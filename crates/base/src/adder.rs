//! Counts that many threads add to at once.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Threads that add without disturbing each other: about the cores there are; more share.
const STRIPES: usize = 4;

/// A sum kept in pieces, each on a cache line of its own, so that cores which count for every call do not wait for each other's line.
/// 512 bytes. Follows: `LongAdder`.
#[derive(Debug, Default)]
pub struct Adder {
    stripes: [Stripe; STRIPES],
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe(AtomicU64);

/// Threads that have added so far.
static THREADS: AtomicUsize = AtomicUsize::new(0);

std::thread_local! {
    static STRIPE: usize = THREADS.fetch_add(1, Relaxed) % STRIPES;
}

/// The stripe of this thread, below [`STRIPES`].
#[inline]
fn stripe() -> usize {
    STRIPE.try_with(|stripe| *stripe).unwrap_or(0)
}

impl Adder {
    /// Adds.
    #[inline]
    pub fn add(&self, number: u64) {
        self.stripes[stripe()].0.fetch_add(number, Relaxed);
    }

    /// What was added, as far as it can be seen.
    pub fn sum(&self) -> u64 {
        self.stripes.iter().map(|stripe| stripe.0.load(Relaxed)).fold(0, u64::wrapping_add)
    }
}

/// Two sums kept as an [`Adder`] keeps one, in the same 512 bytes: for what is counted either as this or as that.
#[derive(Debug, Default)]
pub struct PairAdder {
    stripes: [PairStripe; STRIPES],
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct PairStripe([AtomicU64; 2]);

impl PairAdder {
    /// Adds to the one and the other; what is 0 costs nothing.
    #[inline]
    pub fn add(&self, first: u64, second: u64) {
        let stripe = &self.stripes[stripe()].0;
        for (sum, number) in stripe.iter().zip([first, second]) {
            if number > 0 {
                sum.fetch_add(number, Relaxed);
            }
        }
    }

    /// What was added, as far as it can be seen.
    pub fn sums(&self) -> (u64, u64) {
        let sum = |of: usize| self.stripes.iter().map(|stripe| stripe.0[of].load(Relaxed)).fold(0, u64::wrapping_add);
        (sum(0), sum(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_threads_add_is_lost() {
        let adder = Adder::default();
        std::thread::scope(|scope| {
            for thread in 0..9 {
                let adder = &adder;
                scope.spawn(move || (0..1000).for_each(|_| adder.add(thread)));
            }
        });
        assert_eq!(adder.sum(), 36_000);
        let pair = PairAdder::default();
        std::thread::scope(|scope| {
            for thread in 0..9 {
                let pair = &pair;
                scope.spawn(move || (0..1000).for_each(|n| pair.add(thread, n % 2)));
            }
        });
        assert_eq!(pair.sums(), (36_000, 4500));
    }
}
