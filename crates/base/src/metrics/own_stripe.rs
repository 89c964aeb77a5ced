//! A number for each thread that no other living thread has, so that it may count in memory that it alone writes.
//!
//! Always true: of two threads that have had the same number the later one sees everything that the earlier one wrote, for the number went
//! through a lock between them.

use parking_lot::Mutex;
use std::cell::Cell;

/// Threads with a number of their own. Further ones share [`SHARED`].
pub(super) const OWNERS: usize = 15;
/// The number of all other threads.
pub(super) const SHARED: usize = OWNERS;

/// The thread has not asked yet.
const UNASKED: usize = usize::MAX;

/// Numbers that nobody has, as bits.
static FREE: Mutex<u32> = Mutex::new((1 << OWNERS) - 1);

/// Gives the thread's number back when the thread ends.
struct Owned(usize);

impl Drop for Owned {
    fn drop(&mut self) {
        // What the thread still counts while it ends is counted as that of many.
        let _ = NUMBER.try_with(|number| number.set(SHARED));
        if self.0 < OWNERS {
            *FREE.lock() |= 1 << self.0;
        }
    }
}

std::thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(UNASKED) };
    static OWNED: Owned = Owned(take());
}

fn take() -> usize {
    let mut free = FREE.lock();
    let number = free.trailing_zeros() as usize;
    if number >= OWNERS {
        return SHARED;
    }
    *free &= !(1 << number);
    number
}

/// This thread's number: below [`OWNERS`] it is its alone until it ends.
#[inline]
pub(super) fn number() -> usize {
    match NUMBER.try_with(Cell::get) {
        Ok(UNASKED) => ask(),
        Ok(number) => number,
        Err(_) => SHARED,
    }
}

#[cold]
fn ask() -> usize {
    // Where the thread is ending already, nobody would give the number back.
    let number = OWNED.try_with(|owned| owned.0).unwrap_or(SHARED);
    let _ = NUMBER.try_with(|kept| kept.set(number));
    number
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn threads_that_live_at_once_share_no_number_but_the_last() {
        const THREADS: usize = OWNERS + 5;
        let all_have_one = Barrier::new(THREADS);
        let mut numbers: Vec<usize> = std::thread::scope(|scope| {
            let one = || {
                let number = number();
                assert_eq!(number, super::number());
                all_have_one.wait();
                number
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(one)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        numbers.retain(|number| *number != SHARED);
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count);
        assert!(count <= OWNERS);
        // Other tests of this process may have some; those of threads that have ended can be had again.
        let owned = std::thread::scope(|scope| scope.spawn(|| number() != SHARED).join().expect("no panic"));
        assert!(owned || count < OWNERS);
    }
}
