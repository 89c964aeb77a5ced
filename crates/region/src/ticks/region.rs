//! One region's view of the server's table of ticks: when a write is, which tick it may have, and what it took.

use super::{LONGEST_WAIT_MS, MOST_AHEAD_MS, Moment, RecentTicks, RowKey, Stamps, Taken, table_hash};
use crate::error::RegionError;
use crate::{RegionEnv, RegionSettings};
use base::Clock;
use cell::CellRef;
use model::{Mutation, RegionInfo};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Ticks for the rows of one region.
pub(crate) struct RegionTicks {
    clock: Arc<dyn Clock>,
    recent: Arc<RecentTicks>,
    region: Arc<str>,
    /// No LATEST is stamped earlier, though the clock may step back.
    last_stamp: AtomicI64,
    /// No tick that a row of this region must look out for is later.
    newest: AtomicI64,
    /// Of the table's name, for [`RowKey`].
    table_hash: u64,
    /// The server writes such tables itself, in its turn, and never often.
    is_system: bool,
    /// Rows may share ticks, as in HBase: nothing is remembered.
    has_hbase_semantics: bool,
}

impl std::fmt::Debug for RegionTicks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegionTicks").field("newest", &self.newest).finish_non_exhaustive()
    }
}

impl RegionTicks {
    pub(crate) fn new(env: &RegionEnv, info: &RegionInfo, settings: &RegionSettings) -> RegionTicks {
        RegionTicks {
            clock: env.clock.clone(),
            recent: env.ticks.clone(),
            region: info.encoded_name().clone(),
            last_stamp: AtomicI64::new(0),
            newest: AtomicI64::new(env.ticks.newest()),
            table_hash: table_hash(info.table.as_str()),
            is_system: info.table.is_system(),
            has_hbase_semantics: settings.hbase_tick_semantics,
        }
    }

    /// Whether rows may share ticks, as in HBase.
    pub(crate) fn has_hbase_semantics(&self) -> bool {
        self.has_hbase_semantics
    }

    /// The moment of a write that begins now.
    pub(crate) fn moment(&self) -> Moment {
        let clock = self.clock.now_ms().0;
        let mut moment = Moment::of(clock, self.last_stamp.fetch_max(clock, Ordering::Relaxed));
        if self.is_system {
            moment.limit = i64::MAX;
        }
        moment
    }

    pub(crate) fn row_key(&self, row: &[u8]) -> RowKey {
        RowKey::of(self.table_hash, row)
    }

    /// The tick that the server's stamps in `mutation` must have. The caller holds the row's lock, or writes nothing.
    pub(crate) fn tick_of(&self, mutation: &Mutation, moment: Moment) -> i64 {
        if self.newest.load(Ordering::Relaxed) < moment.now {
            return moment.now;
        }
        match Stamps::of(mutation) {
            Stamps { puts: false, marks: false } => moment.now,
            Stamps { puts, .. } => self.recent.next(self.row_key(&mutation.row), moment.now, puts),
        }
    }

    /// # Errors
    /// The clock is still to come to `tick`.
    pub(crate) fn check_reached(&self, tick: i64, moment: Moment) -> Result<(), RegionError> {
        match tick.checked_sub(moment.limit) {
            Some(wait_ms @ 1..=LONGEST_WAIT_MS) => {
                Err(RegionError::AheadOfClock { region: self.region.clone(), wait_ms: wait_ms as u64 })
            }
            _ => Ok(()),
        }
    }

    /// What a mutation of `row` that has `tick` and left `marker` takes, if later writes must look out for it.
    pub(crate) fn taken(&self, row: &[u8], tick: i64, marker: Option<i64>, moment: Moment) -> Option<Taken> {
        let counts = !self.has_hbase_semantics && (marker.is_some() || tick > moment.now);
        counts.then(|| Taken { row: self.row_key(row), marker, tick })
    }

    /// Remembers the ticks that later writes of the same rows must look out for. The caller holds the rows' locks.
    pub(crate) fn enter(&self, taken: &[Taken], now: i64) {
        for taken in taken {
            self.recent.enter(*taken, now);
            self.newest.fetch_max(taken.tick, Ordering::Relaxed);
        }
    }

    /// Remembers what the log brings back of a moment that the clock has not passed.
    pub(crate) fn enter_replayed(&self, cell: CellRef<'_>, now: i64) {
        let tick = cell.timestamp();
        if !self.has_hbase_semantics && cell.is_delete() && (now..=now + MOST_AHEAD_MS).contains(&tick) {
            self.enter(&[Taken { row: self.row_key(cell.row()), marker: Some(tick), tick }], now);
        }
    }
}
