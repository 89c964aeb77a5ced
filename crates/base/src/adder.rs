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
    }
}
