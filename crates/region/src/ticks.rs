//! Ticks: the milliseconds that the server's own stamps are made of, and which of them a row must not use again.
//!
//! A marker hides what is not newer than it is, whichever came first. So a put that follows a delete of its row within
//! a millisecond would be hidden. Here it takes the next tick: no two commits of one row share a tick where their order
//! would be lost. A table of the newest ticks keeps what that needs: for each row with a marker of late, the marker's
//! tick and the last tick that the row used. Only deletes fill it, and those who had to take a tick ahead of the clock;
//! an entry counts until the clock has passed it. Rows that share a place count as one row then: they may take a later
//! tick for nothing, never the same for a conflict.
//!
//! One table serves all regions of a server, by table name and row: it outlives the closing of a region, its split and
//! its reopening. What a log brings back is entered too.

mod region;

use model::Mutation;
use parking_lot::Mutex;
use rustc_hash::FxHasher;
use std::hash::Hasher;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

pub(crate) use region::RegionTicks;

/// Places in the table. With 32 bytes each they are 128 KiB, which a server without deletes does not have.
const PLACES_LOG2: u32 = 12;
/// How far ahead of the clock a commit may be stamped without waiting.
pub(crate) const MOST_AHEAD_MS: i64 = 1;
/// A clock further behind than that was set back, and does not come back within a useful time: nobody waits for it.
const LONGEST_WAIT_MS: i64 = 100;

/// The ticks that rows used of late; see the module.
#[derive(Debug)]
pub struct RecentTicks {
    places: OnceLock<Box<[Mutex<Place>]>>,
    /// No entry is later.
    newest: AtomicI64,
}

/// What is known of a row, or of several that share the place.
#[derive(Clone, Copy, Debug)]
struct Place {
    row: RowKey,
    /// Several rows are meant.
    is_shared: bool,
    /// The tick of the newest marker; no put may have it.
    marker: i64,
    /// The last tick used; not before `marker`. No commit may have an earlier one.
    last: i64,
}

/// A row of a table, as a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct RowKey(u64);

/// A commit's tick as it goes into the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub row: RowKey,
    /// `None`: it leaves no marker that hides a put of now or later.
    pub marker: Option<i64>,
    pub tick: i64,
}

/// The moment of a commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// Milliseconds; never less than in an earlier commit of the region.
    pub now: i64,
    /// The last tick that may be taken without waiting.
    pub limit: i64,
}

impl Moment {
    /// Of a region that stamped `last_stamp` before, when the clock shows `clock`.
    pub(crate) fn of(clock: i64, last_stamp: i64) -> Moment {
        let now = clock.max(last_stamp);
        let limit = if now - clock > LONGEST_WAIT_MS { i64::MAX } else { now.saturating_add(MOST_AHEAD_MS) };
        Moment { now, limit }
    }
}

impl RowKey {
    /// `table` is the hash of the table's name.
    pub(crate) fn of(table: u64, row: &[u8]) -> RowKey {
        let mut hasher = FxHasher::default();
        hasher.write_u64(table);
        hasher.write(row);
        // Multiplied once more, so that the highest bits depend on every byte.
        RowKey(hasher.finish().wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn place(self) -> usize {
        (self.0 >> (64 - PLACES_LOG2)) as usize
    }
}

/// A table's name as the first half of [`RowKey::of`].
fn table_hash(name: &str) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(name.as_bytes());
    hasher.finish()
}

impl Default for RecentTicks {
    fn default() -> RecentTicks {
        RecentTicks { places: OnceLock::new(), newest: AtomicI64::new(i64::MIN) }
    }
}

impl RecentTicks {
    /// No entry is later.
    pub(crate) fn newest(&self) -> i64 {
        self.newest.load(Ordering::Acquire)
    }

    /// The first tick that a commit of `row` may have. The caller holds the row's lock.
    pub(crate) fn next(&self, row: RowKey, now: i64, puts: bool) -> i64 {
        let Some(places) = self.places.get() else { return now };
        let place = *places[row.place()].lock();
        if place.last < now || (place.row != row && !place.is_shared) {
            return now;
        }
        let after_marker = if puts { place.marker.saturating_add(1) } else { i64::MIN };
        now.max(place.last).max(after_marker)
    }

    /// Enters what a commit took. The caller holds the row's lock.
    pub(crate) fn enter(&self, taken: Taken, now: i64) {
        let places = self.places.get_or_init(|| {
            let empty = Place { row: RowKey(0), is_shared: false, marker: i64::MIN, last: i64::MIN };
            (0..1 << PLACES_LOG2).map(|_| Mutex::new(empty)).collect()
        });
        let last = taken.tick.max(taken.marker.unwrap_or(i64::MIN));
        let mut place = places[taken.row.place()].lock();
        if place.last < now {
            *place = Place { row: taken.row, is_shared: false, marker: i64::MIN, last: i64::MIN };
        }
        place.is_shared |= place.row != taken.row;
        place.last = place.last.max(last);
        place.marker = place.marker.max(taken.marker.unwrap_or(i64::MIN));
        drop(place);
        self.newest.fetch_max(last, Ordering::AcqRel);
    }
}

/// What the server stamps of a mutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamps {
    /// A put's cell, or the result of an increment or append.
    pub puts: bool,
    /// A delete marker.
    pub marks: bool,
}

impl Stamps {
    /// Of `mutation`.
    pub(crate) fn of(mutation: &Mutation) -> Stamps {
        use model::MutationKind;
        let latest = |deletes| mutation.cells.iter().any(|c| c.timestamp() == i64::MAX && c.is_delete() == deletes);
        match mutation.kind {
            MutationKind::Increment | MutationKind::Append => Stamps { puts: true, marks: false },
            MutationKind::Put => Stamps { puts: latest(false), marks: latest(true) },
            MutationKind::Delete if mutation.cells.is_empty() => {
                Stamps { puts: false, marks: mutation.timestamp == i64::MAX }
            }
            MutationKind::Delete => Stamps { puts: false, marks: latest(true) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(ticks: &RecentTicks, row: RowKey, tick: i64, now: i64) {
        ticks.enter(Taken { row, marker: Some(tick), tick }, now);
    }

    #[test]
    fn a_put_comes_after_the_marker_and_a_delete_not_before_the_put() {
        let ticks = RecentTicks::default();
        let row = RowKey::of(1, b"r");
        assert_eq!(ticks.next(row, 5, true), 5);
        marked(&ticks, row, 5, 5);
        assert_eq!((ticks.next(row, 5, true), ticks.next(row, 5, false)), (6, 5));
        ticks.enter(Taken { row, marker: None, tick: 6 }, 5);
        assert_eq!((ticks.next(row, 5, true), ticks.next(row, 5, false)), (6, 6));
        assert_eq!((ticks.next(row, 6, true), ticks.next(row, 7, true)), (6, 7));
    }

    #[test]
    fn rows_that_share_a_place_count_as_one_until_the_clock_has_passed() {
        let ticks = RecentTicks::default();
        let (one, other) = (RowKey(7), RowKey(8));
        assert_eq!(one.place(), other.place());
        marked(&ticks, one, 5, 5);
        assert_eq!(ticks.next(other, 5, true), 5);
        marked(&ticks, other, 5, 5);
        assert_eq!((ticks.next(one, 5, true), ticks.next(other, 5, true)), (6, 6));
        marked(&ticks, other, 6, 6);
        assert_eq!((ticks.next(one, 6, true), ticks.next(other, 6, true)), (6, 7));
    }

    #[test]
    fn nobody_waits_for_a_clock_that_was_set_back() {
        assert_eq!((Moment::of(10, 0).now, Moment::of(10, 0).limit), (10, 11));
        assert_eq!((Moment::of(10, 12).now, Moment::of(10, 12).limit), (12, 13));
        assert_eq!((Moment::of(10, 1000).now, Moment::of(10, 1000).limit), (1000, i64::MAX));
    }
}
