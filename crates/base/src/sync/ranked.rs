//! A mutex with a place in the order of locks: debug builds panic where a thread takes them in another one, whether or not another thread is in
//! the way just then.

use super::{Condvar, Mutex, MutexGuard};
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// A mutex that is only waited for by threads which hold none of the same or a higher rank.
#[derive(Debug, Default)]
pub struct RankedMutex<T> {
    rank: u8,
    mutex: Mutex<T>,
}

/// The lock on a [`RankedMutex`].
#[derive(Debug)]
pub struct RankedGuard<'a, T> {
    guard: MutexGuard<'a, T>,
    _held: Held,
}

impl<T> RankedMutex<T> {
    /// `rank`: locks of higher ones may be taken under it.
    pub const fn new(rank: u8, value: T) -> RankedMutex<T> {
        RankedMutex { rank, mutex: Mutex::new(value) }
    }

    /// Waits for the lock.
    ///
    /// # Panics
    /// In a debug build, when this thread holds one of the same or a higher rank.
    #[inline]
    pub fn lock(&self) -> RankedGuard<'_, T> {
        held::check(self.rank);
        RankedGuard { guard: self.mutex.lock(), _held: Held::new(self.rank) }
    }

    /// The lock if it is free. Nobody waits, so any order is right.
    #[inline]
    pub fn try_lock(&self) -> Option<RankedGuard<'_, T>> {
        self.mutex.try_lock().map(|guard| RankedGuard { guard, _held: Held::new(self.rank) })
    }
}

impl<T> RankedGuard<'_, T> {
    /// Gives the lock away until `condvar` is notified.
    pub fn wait(&mut self, condvar: &Condvar) {
        condvar.wait(&mut self.guard);
    }

    /// As [`RankedGuard::wait`], no longer than `timeout`; whether that is over.
    pub fn wait_for(&mut self, condvar: &Condvar, timeout: Duration) -> bool {
        condvar.wait_for(&mut self.guard, timeout).timed_out()
    }
}

impl<T> Deref for RankedGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for RankedGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// That this thread holds a lock of a rank.
#[derive(Debug)]
struct Held {
    #[cfg(debug_assertions)]
    rank: u8,
}

impl Held {
    #[inline]
    #[cfg_attr(not(debug_assertions), allow(unused_variables, reason = "only debug builds count"))]
    fn new(rank: u8) -> Held {
        #[cfg(debug_assertions)]
        held::add(rank, 1);
        Held {
            #[cfg(debug_assertions)]
            rank,
        }
    }
}

#[cfg(debug_assertions)]
impl Drop for Held {
    fn drop(&mut self) {
        held::add(self.rank, -1);
    }
}

#[cfg(debug_assertions)]
mod held {
    use std::cell::RefCell;

    /// Ranks above it are one.
    const RANKS: usize = 8;

    crate::sync::thread_local! {
        /// How many locks of each rank this thread holds.
        static COUNTS: RefCell<[i32; RANKS]> = const { RefCell::new([0; RANKS]) };
    }

    fn at(rank: u8) -> usize {
        usize::from(rank).min(RANKS - 1)
    }

    pub(super) fn add(rank: u8, by: i32) {
        COUNTS.with(|counts| counts.borrow_mut()[at(rank)] += by);
    }

    pub(super) fn check(rank: u8) {
        let higher = COUNTS.with(|counts| counts.borrow()[at(rank)..].iter().any(|count| *count > 0));
        assert!(!higher, "a lock of rank {rank} is waited for under one that comes after it");
    }
}

#[cfg(not(debug_assertions))]
mod held {
    #[inline]
    pub(super) fn check(_rank: u8) {}
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn locks_are_taken_in_the_order_of_their_ranks() {
        let (outer, inner) = (RankedMutex::new(1, ()), RankedMutex::new(2, ()));
        let first = outer.lock();
        drop(inner.lock());
        let second = inner.lock();
        drop(first);
        drop(second);
        let second = inner.lock();
        assert!(outer.try_lock().is_some(), "nobody waits for it");
        drop(second);
        drop(outer.lock());
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic = "a lock of rank 1 is waited for"]
    fn the_wrong_order_is_told_aloud() {
        let (outer, inner) = (RankedMutex::new(1, ()), RankedMutex::new(2, ()));
        let _second = inner.lock();
        let _first = outer.lock();
    }
}
