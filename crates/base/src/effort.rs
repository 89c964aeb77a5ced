//! How much work one attempt may do, and where long work pauses.
//!
//! Work on a network thread has an [`EffortBudget`]: what exceeds it gives way and is done on a thread of a pool. Work on such a
//! thread has a [`PausePoint`]: it asks there, every few thousand cells, whether it may go on. See docs/decisions/0020.

use std::cell::Cell;

/// What work on a network thread may cost, all together: about half a millisecond of a processor.
pub const NETWORK_THREAD_UNITS: u64 = 2048;

/// Bytes that are copied for one unit of effort.
pub const BYTES_PER_UNIT: u64 = 512;

/// What one Get alone may cost there: many clients may ask for large rows at once, and a lane takes the row over for less than this.
const LONE_GET_UNITS: u64 = NETWORK_THREAD_UNITS / 2;

/// Bytes of a Get's cells for one unit of effort: the memory that they are gathered in is fresh, and costs more than the copying. A row of
/// more than 128 KiB is read on a lane.
pub const GET_BYTES_PER_UNIT: u64 = 128;

/// The effort that is left to one call on a network thread. One unit is a cell looked at, [`BYTES_PER_UNIT`] bytes copied, or one step of a
/// filter that compares: a fraction of a microsecond. Shared by everything the call does, so that a batch of a thousand Gets has no more of
/// it than one Get. Not for several threads.
#[derive(Debug)]
pub struct EffortBudget {
    left: Cell<u64>,
}

impl EffortBudget {
    /// So many units.
    pub const fn new(units: u64) -> EffortBudget {
        EffortBudget { left: Cell::new(units) }
    }

    /// What one call on a network thread has.
    pub const fn of_network_thread() -> EffortBudget {
        EffortBudget::new(NETWORK_THREAD_UNITS)
    }

    /// What a Get has there that comes alone.
    pub const fn of_lone_get() -> EffortBudget {
        EffortBudget::new(LONE_GET_UNITS)
    }

    /// Units left.
    #[inline]
    pub fn left(&self) -> u64 {
        self.left.get()
    }

    /// Uses `units` up, or all there are; false when that was more than there were.
    #[inline]
    pub fn spend(&self, units: u64) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(units));
        units <= left
    }

    /// As [`EffortBudget::spend`] for bytes of cells that a Get gathers.
    #[inline]
    pub fn spend_bytes(&self, bytes: u64) -> bool {
        self.spend(bytes / GET_BYTES_PER_UNIT)
    }

    /// Whether nothing is left.
    #[inline]
    pub fn is_exhausted(&self) -> bool {
        self.left.get() == 0
    }
}

/// Why work that was under way is to end without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Interrupted {
    /// The client has stopped waiting by now.
    #[error("the deadline of the call has passed")]
    DeadlinePassed,
    /// The client's connection is closed.
    #[error("the client has closed its connection")]
    ClientGone,
    /// The server stops, or the region closes.
    #[error("the server is stopping")]
    Stopping,
    /// What is gathered has become too large beside what others hold.
    #[error("the memory for replies is used up")]
    NoRoom,
}

/// Work that gathers one large result says so each time that it has so many bytes more ([`PausePoint::gathered`]).
pub const GATHERED_STEP_BYTES: u64 = 64 << 10;

/// Where long work asks whether it may go on. It may be made to wait there, so that others get their turn; no lock is held meanwhile that
/// others need.
pub trait PausePoint {
    /// Returns when the work may go on.
    ///
    /// # Errors
    /// It is to end now.
    fn pause(&self) -> Result<(), Interrupted>;

    /// As [`PausePoint::pause`], but returns at once: for who waits for something else.
    ///
    /// # Errors
    /// As there.
    fn check(&self) -> Result<(), Interrupted>;

    /// One row that is read has `bytes` by now, which are held until it is sent.
    ///
    /// # Errors
    /// There is no room for more: the read is to be given up, and may be tried again later.
    fn gathered(&self, bytes: u64) -> Result<(), Interrupted> {
        let _ = bytes;
        Ok(())
    }
}

impl std::fmt::Debug for dyn PausePoint + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PausePoint")
    }
}

/// Work that nobody paces: of background threads and of tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unpaced;

impl PausePoint for Unpaced {
    fn pause(&self) -> Result<(), Interrupted> {
        Ok(())
    }

    fn check(&self) -> Result<(), Interrupted> {
        Ok(())
    }
}

/// How work that reads may go about it.
#[derive(Clone, Copy)]
pub enum ReadMode<'a> {
    /// From memory, within a budget: what exceeds it, or would have to read a file, gives way and has changed nothing.
    FromMemory(&'a EffortBudget),
    /// On a thread that may wait for a disk, and for its turn.
    MayRead(&'a dyn PausePoint),
}

impl ReadMode<'static> {
    /// On a thread that may wait, with nobody to pace it.
    pub const UNPACED: ReadMode<'static> = ReadMode::MayRead(&Unpaced);
}

impl std::fmt::Debug for ReadMode<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReadMode::FromMemory(budget) => f.debug_tuple("FromMemory").field(budget).finish(),
            ReadMode::MayRead(_) => f.write_str("MayRead"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_used_up_once() {
        let budget = EffortBudget::new(10);
        assert!(budget.spend(9) && !budget.is_exhausted());
        assert!(budget.spend_bytes(GET_BYTES_PER_UNIT), "the last unit");
        assert!(budget.is_exhausted() && !budget.spend(1));
        assert!(budget.spend(0));
    }
}
