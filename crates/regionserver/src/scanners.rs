//! Open scanners by id: their leases, call numbers, and the memory of those that closed themselves.
//!
//! Always true:
//!  1. A scanner is checked out by at most one call at a time, and its lease does not run meanwhile.
//!  2. The open call carries no number; the first `next` carries 0; a mismatch leaves scanner and lease as they were.
//!  3. A scanner that ended by itself answers one late call or close with an empty reply, as HBase does.
//!
//! Knows nothing of what a scanner scans. Follows: `RSRpcServices#getRegionScanner`, `LeaseManager`.

use base::Clock;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// Most closed scanners that are remembered.
const CLOSED_REMEMBERED: usize = 10_000;

/// Why a scanner cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScannerError {
    /// Never existed, or its lease ran out (UnknownScannerException).
    Unknown(u64),
    /// The call is not the one that was expected next (OutOfOrderScannerNextException).
    OutOfOrder {
        /// What was expected.
        expected: u64,
        /// What came.
        got: u64,
    },
    /// Another call has it at this moment (LeaseException).
    Busy(u64),
    /// It closed itself; answer with nothing.
    AlreadyClosed,
}

struct Entry<S> {
    scanner: Arc<S>,
    next_call_seq: u64,
    expires_us: u64,
    checked_out: bool,
}

struct State<S> {
    open: FxHashMap<u64, Entry<S>>,
    /// Of those that closed themselves, which call would have been next.
    closed: FxHashMap<u64, u64>,
    /// The same by the time at which they are forgotten.
    closed_order: VecDeque<(u64, u64)>,
}

impl<S> State<S> {
    fn forget_oldest(&mut self) {
        if let Some((_, id)) = self.closed_order.pop_front() {
            self.closed.remove(&id);
        }
    }
}

/// The open scanners of a server.
pub struct Scanners<S> {
    state: Mutex<State<S>>,
    clock: Arc<dyn Clock>,
    lease_us: u64,
    next_id: std::sync::atomic::AtomicU64,
}

impl<S> Scanners<S> {
    /// None open. Ids begin at `first_id`, which should differ from one life of the server to the next, so that a
    /// client's old id is unknown rather than somebody else's.
    pub fn new(clock: Arc<dyn Clock>, lease_ms: u64, first_id: u64) -> Scanners<S> {
        let state = State { open: FxHashMap::default(), closed: FxHashMap::default(), closed_order: VecDeque::new() };
        Scanners { state: Mutex::new(state), clock, lease_us: lease_ms * 1000, next_id: first_id.into() }
    }

    /// Lease of each scanner in milliseconds.
    pub fn lease_ms(&self) -> u64 {
        self.lease_us / 1000
    }

    /// Registers a scanner, checked out by the caller.
    pub fn open(&self, scanner: Arc<S>) -> u64 {
        let id = self.next_id.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let entry = Entry { scanner, next_call_seq: 0, expires_us: u64::MAX, checked_out: true };
        self.state.lock().open.insert(id, entry);
        id
    }

    /// Takes a scanner for one call; [`Scanners::check_in`] or [`Scanners::close`] gives it back.
    ///
    /// # Errors
    /// [`ScannerError`]; nothing has changed then.
    pub fn check_out(&self, id: u64, call_seq: Option<u64>) -> Result<Arc<S>, ScannerError> {
        let mut state = self.state.lock();
        let Some(entry) = state.open.get_mut(&id) else {
            return Err(match state.closed.get(&id) {
                Some(next_call_seq) => match call_seq {
                    // One more than was next when it closed: so HBase counts.
                    Some(got) if got != next_call_seq + 1 => {
                        ScannerError::OutOfOrder { expected: next_call_seq + 1, got }
                    }
                    _ => ScannerError::AlreadyClosed,
                },
                None => ScannerError::Unknown(id),
            });
        };
        if entry.checked_out {
            return Err(ScannerError::Busy(id));
        }
        if let Some(got) = call_seq {
            if got != entry.next_call_seq {
                entry.expires_us = self.clock.monotonic_us() + self.lease_us;
                return Err(ScannerError::OutOfOrder { expected: entry.next_call_seq, got });
            }
            entry.next_call_seq += 1;
        }
        entry.checked_out = true;
        Ok(entry.scanner.clone())
    }

    /// Renews the lease without a call: its number counts like that of any other call.
    ///
    /// # Errors
    /// As [`Scanners::check_out`].
    pub fn renew(&self, id: u64, call_seq: Option<u64>) -> Result<(), ScannerError> {
        self.check_out(id, call_seq)?;
        self.check_in(id);
        Ok(())
    }

    /// The open scanner of that id, without checking it out: its lease runs on, and no call number is used up.
    pub fn peek(&self, id: u64) -> Option<Arc<S>> {
        self.state.lock().open.get(&id).map(|entry| entry.scanner.clone())
    }

    /// Gives a scanner back; its lease begins anew.
    pub fn check_in(&self, id: u64) {
        let expires_us = self.clock.monotonic_us() + self.lease_us;
        if let Some(entry) = self.state.lock().open.get_mut(&id) {
            entry.checked_out = false;
            entry.expires_us = expires_us;
        }
    }

    /// Closes a scanner. With `remember`, a late call for it is answered with nothing rather than an error.
    pub fn close(&self, id: u64, remember: bool) {
        let mut state = self.state.lock();
        let Some(entry) = state.open.remove(&id) else { return };
        if remember {
            let forget_us = self.clock.monotonic_us() + self.lease_us;
            state.closed.insert(id, entry.next_call_seq);
            state.closed_order.push_back((forget_us, id));
            if state.closed_order.len() > CLOSED_REMEMBERED {
                state.forget_oldest();
            }
        }
        drop(state);
        drop(entry);
    }

    /// Closes a scanner that a call has not given back.
    pub fn close_if_checked_out(&self, id: u64) {
        let mut state = self.state.lock();
        let entry =
            if state.open.get(&id).is_some_and(|entry| entry.checked_out) { state.open.remove(&id) } else { None };
        drop(state);
        drop(entry);
    }

    /// Closes scanners whose lease ran out and forgets old closed ones; returns how many expired.
    pub fn expire(&self) -> usize {
        let now_us = self.clock.monotonic_us();
        let mut state = self.state.lock();
        while state.closed_order.front().is_some_and(|(forget_us, _)| *forget_us <= now_us) {
            state.forget_oldest();
        }
        let expired: Vec<u64> =
            state.open.iter().filter(|(_, e)| !e.checked_out && e.expires_us <= now_us).map(|(id, _)| *id).collect();
        let entries: Vec<_> = expired.iter().filter_map(|id| state.open.remove(id)).collect();
        drop(state);
        entries.len()
    }

    /// Closes every scanner that `which` names (those of a region that goes away) and is not in a call.
    pub fn close_where(&self, which: impl Fn(&S) -> bool) {
        let mut state = self.state.lock();
        let ids: Vec<u64> =
            state.open.iter().filter(|(_, e)| !e.checked_out && which(&e.scanner)).map(|(id, _)| *id).collect();
        let entries: Vec<_> = ids.iter().filter_map(|id| state.open.remove(id)).collect();
        drop(state);
        drop(entries);
    }

    /// Closes scanners that no call has used for `idle_ms`, the longest unused first, as long as `go_on`; returns how many. Their clients
    /// open new ones where they were.
    pub fn close_idle(&self, idle_ms: u64, go_on: impl Fn() -> bool) -> usize {
        let used_before_us = (self.clock.monotonic_us() + self.lease_us).saturating_sub(idle_ms * 1000);
        let mut idle: Vec<(u64, u64)> = {
            let state = self.state.lock();
            let unused = state.open.iter().filter(|(_, e)| !e.checked_out && e.expires_us <= used_before_us);
            unused.map(|(id, e)| (e.expires_us, *id)).collect()
        };
        idle.sort_unstable();
        let mut closed = 0;
        for (expires_us, id) in idle {
            if !go_on() {
                break;
            }
            let mut state = self.state.lock();
            let is_unused = state.open.get(&id).is_some_and(|e| !e.checked_out && e.expires_us == expires_us);
            let entry = if is_unused { state.open.remove(&id) } else { None };
            drop(state);
            closed += usize::from(entry.is_some());
            drop(entry);
        }
        closed
    }

    /// Up to `most` scanners that are in no call and that `wants` takes. It is asked under the lock that a call needs to have a scanner: what
    /// it marks, a later call sees.
    pub fn idle_where(&self, most: usize, wants: impl Fn(&S) -> bool) -> Vec<Arc<S>> {
        let state = self.state.lock();
        let idle = state.open.values().filter(|e| !e.checked_out && wants(&e.scanner));
        idle.take(most).map(|e| e.scanner.clone()).collect()
    }

    /// Number of open scanners.
    pub fn len(&self) -> usize {
        self.state.lock().open.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ManualClock;

    fn scanners() -> (Arc<ManualClock>, Scanners<&'static str>) {
        let clock = Arc::new(ManualClock::new(0));
        (clock.clone(), Scanners::new(clock, 60_000, 1000))
    }

    #[test]
    fn calls_come_in_order_or_not_at_all() {
        let (_, scanners) = scanners();
        let id = scanners.open(Arc::new("s"));
        assert_eq!(scanners.check_out(id, Some(0)).err(), Some(ScannerError::Busy(id)), "the open call still has it");
        scanners.check_in(id);
        assert_eq!(scanners.check_out(id, Some(1)).err(), Some(ScannerError::OutOfOrder { expected: 0, got: 1 }));
        assert!(scanners.check_out(id, Some(0)).is_ok());
        scanners.check_in(id);
        assert_eq!(scanners.check_out(id, Some(0)).err(), Some(ScannerError::OutOfOrder { expected: 1, got: 0 }));
        assert!(scanners.check_out(id, Some(1)).is_ok());
        scanners.close(id, true);
        assert_eq!(scanners.check_out(id, Some(3)).err(), Some(ScannerError::AlreadyClosed), "as HBase counts");
        assert_eq!(scanners.check_out(id, None).err(), Some(ScannerError::AlreadyClosed));
        assert_eq!(scanners.check_out(id, Some(5)).err(), Some(ScannerError::OutOfOrder { expected: 3, got: 5 }));
        assert_eq!(scanners.check_out(7, None).err(), Some(ScannerError::Unknown(7)));
    }

    #[test]
    fn a_scanner_that_ended_in_its_open_call_takes_a_first_next() {
        let (_, scanners) = scanners();
        let id = scanners.open(Arc::new("s"));
        scanners.close(id, true);
        assert_eq!(scanners.check_out(id, Some(1)).err(), Some(ScannerError::AlreadyClosed));
    }

    #[test]
    fn a_lease_runs_out_unless_renewed_or_in_a_call() {
        let (clock, scanners) = scanners();
        let (a, b) = (scanners.open(Arc::new("a")), scanners.open(Arc::new("b")));
        scanners.check_in(a);
        clock.advance_ms(40_000);
        scanners.renew(a, Some(0)).expect("renewed in time");
        clock.advance_ms(40_000);
        assert_eq!(scanners.expire(), 0);
        clock.advance_ms(20_000);
        assert_eq!(scanners.expire(), 1, "a ran out; b is still in its call");
        assert_eq!(scanners.check_out(a, Some(1)).err(), Some(ScannerError::Unknown(a)));
        scanners.check_in(b);
        assert_eq!(scanners.len(), 1);
    }

    #[test]
    fn scanners_in_a_call_are_not_idle() {
        let (_, scanners) = scanners();
        let ids: Vec<u64> = ["a", "b", "c"].map(|name| scanners.open(Arc::new(name))).to_vec();
        ids[..2].iter().for_each(|id| scanners.check_in(*id));
        let idle = |most: usize, wants: fn(&&'static str) -> bool| scanners.idle_where(most, wants).len();
        assert_eq!((idle(9, |_| true), idle(1, |_| true), idle(9, |name| *name == "b")), (2, 1, 1));
        assert!(scanners.check_out(ids[0], None).is_ok());
        assert_eq!(idle(9, |_| true), 1);
    }

    #[test]
    fn the_longest_unused_scanners_are_closed_first_and_no_more_than_need_be() {
        let (clock, scanners) = scanners();
        let ids: Vec<u64> = ["a", "b", "c", "d"].map(|name| scanners.open(Arc::new(name))).to_vec();
        for id in &ids[..3] {
            scanners.check_in(*id);
            clock.advance_ms(1000);
        }
        scanners.renew(ids[0], None).expect("it is there");
        assert_eq!(scanners.close_idle(500, || scanners.len() > 3), 1);
        assert_eq!(scanners.check_out(ids[1], None).err(), Some(ScannerError::Unknown(ids[1])));
        clock.advance_ms(400);
        assert_eq!(scanners.close_idle(500, || true), 1, "a was used lately, and d is in a call");
        assert_eq!(scanners.len(), 2);
    }
}
