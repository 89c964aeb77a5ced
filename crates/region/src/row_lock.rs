//! Row locks: writers of one row wait for each other.
//!
//! A row hashes to one of 64 slots and locking a row locks its slot. A batch locks the slots of all its rows in slot
//! order, so two batches cannot wait for each other in a circle, and it costs no memory per row. Locks are held
//! for memory work only: nobody waits for the disk under one (a read that would is done before and tried again).
//! Follows: `HRegion#getRowLock`; coarser by choice.

use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHasher;
use std::hash::Hasher;

/// The locks of one region.
#[derive(Debug)]
pub struct RowLocks {
    slots: [Mutex<()>; 64],
}

/// A set of slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowSet(u64);

/// Held locks.
#[derive(Debug)]
pub enum RowGuards<'a> {
    /// Of one row.
    One(#[allow(dead_code, reason = "held, not read")] MutexGuard<'a, ()>),
    /// Of several rows, in slot order.
    Many(#[allow(dead_code, reason = "held, not read")] Vec<MutexGuard<'a, ()>>),
}

impl RowSet {
    /// Adds `row`.
    #[inline]
    pub fn add(&mut self, row: &[u8]) {
        self.0 |= RowSet::bit(row);
    }

    /// Whether `row` may be among the rows (it shares a slot with one).
    #[inline]
    pub fn overlaps(self, row: &[u8]) -> bool {
        self.0 & RowSet::bit(row) != 0
    }

    #[inline]
    fn bit(row: &[u8]) -> u64 {
        let mut hasher = FxHasher::default();
        hasher.write(row);
        // The multiplication mixes upwards: the highest bits depend on every byte.
        1 << (hasher.finish().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58)
    }
}

impl Default for RowLocks {
    fn default() -> RowLocks {
        RowLocks { slots: [const { Mutex::new(()) }; 64] }
    }
}

impl RowLocks {
    /// Locks all rows of `set`.
    pub fn lock(&self, set: RowSet) -> RowGuards<'_> {
        if set.0.count_ones() == 1 {
            return RowGuards::One(self.slots[set.0.trailing_zeros() as usize].lock());
        }
        let mut guards = Vec::with_capacity(set.0.count_ones() as usize);
        let mut rest = set.0;
        while rest != 0 {
            guards.push(self.slots[rest.trailing_zeros() as usize].lock());
            rest &= rest - 1;
        }
        RowGuards::Many(guards)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn overlapping_batches_exclude_each_other_and_end() {
        let locks = RowLocks::default();
        let inside = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for t in 0..4u32 {
                let (locks, inside) = (&locks, &inside);
                scope.spawn(move || {
                    for i in 0..500u32 {
                        let mut set = RowSet::default();
                        (0..10u32).for_each(|k| set.add(&(t * 7 + i * k).to_be_bytes()));
                        set.add(b"shared");
                        let _guards = locks.lock(set);
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
    }
}
