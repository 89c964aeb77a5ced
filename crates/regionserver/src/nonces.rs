//! Nonces of increments and appends: a retry counts once. Follows: `ServerNonceManager`.
//!
//! Always true:
//!  1. For one nonce, at most one operation runs at a time, and after one succeeded none runs until the nonce is forgotten. A failed
//!     operation leaves no trace; one that panics has failed.
//!  2. A finished nonce is remembered for the given time, and no longer than twice that. Only where more finish than the given bytes hold
//!     are the oldest forgotten sooner.
//!  3. Finished nonces take no more than the given bytes, and the ledger knows how many.

use base::{Charge, Clock, Holder, Ledger};
use model::Nonce;
use parking_lot::Mutex;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::sync::oneshot;

/// Nonces of one generation of a shard: as many as a table of 1,024 places holds before it grows.
const GENERATION: usize = 896;
/// A place of a hash table: the nonce and a byte of the table's own.
const PLACE_BYTES: usize = size_of::<Nonce>() + 1;
/// Most bytes of a shard: two full generations.
const SHARD_BYTES: usize = 2 * 1024 * PLACE_BYTES;
/// Fewer shards would be waited for.
const LEAST_SHARDS: usize = 16;

/// A part of the nonces, by their hash.
struct Shard {
    /// Operations that run, with those who wait for their end.
    running: FxHashMap<Nonce, Vec<oneshot::Sender<()>>>,
    /// Finished since `turned_us`.
    young: FxHashSet<Nonce>,
    /// Finished before.
    old: FxHashSet<Nonce>,
    turned_us: u64,
    charge: Charge,
}

impl Shard {
    /// The young become old, and the old are forgotten.
    fn turn(&mut self, now_us: u64) {
        std::mem::swap(&mut self.young, &mut self.old);
        self.young.clear();
        self.turned_us = now_us;
    }

    /// Forgets what has been remembered long enough, and gives its memory back.
    fn forget(&mut self, now_us: u64, remember_us: u64) {
        if now_us.saturating_sub(self.turned_us) < remember_us {
            return;
        }
        if self.young.is_empty() && self.old.capacity() == 0 {
            self.turned_us = now_us;
            return;
        }
        self.turn(now_us);
        self.young = FxHashSet::default();
        self.weigh();
    }

    fn is_done(&self, nonce: &Nonce) -> bool {
        self.young.contains(nonce) || self.old.contains(nonce)
    }

    /// Remembers one that finished; whether some were forgotten for it before their time.
    fn finish(&mut self, nonce: Nonce, now_us: u64) -> bool {
        let is_full = self.young.len() >= GENERATION;
        let is_early = is_full && !self.old.is_empty();
        if is_full {
            self.turn(now_us);
        }
        let before = self.young.capacity();
        self.young.insert(nonce);
        if self.young.capacity() != before {
            self.weigh();
        }
        is_early
    }

    fn weigh(&mut self) {
        // A table is filled to seven eighths.
        let places = (self.young.capacity() + self.old.capacity()) * 8 / 7;
        self.charge.resize((places * PLACE_BYTES) as u64);
    }
}

/// The nonces that this server has seen lately.
pub struct Nonces {
    shards: Box<[Mutex<Shard>]>,
    clock: Arc<dyn Clock>,
    remember_us: u64,
    forgotten_early: AtomicU64,
}

/// What to do with an operation that has a nonce.
pub enum Begin {
    /// Run it, then [`Running::end`].
    Proceed(Running),
    /// It has succeeded before: answer with what is there.
    AlreadyDone,
    /// It runs right now: ask again when this resolves.
    Wait(oneshot::Receiver<()>),
}

/// The right to run an operation. Dropped without an end it has failed: a retry may run.
#[must_use = "dropped at once, the operation counts as failed"]
pub struct Running {
    /// `None`: the operation has no nonce, or has ended.
    nonce: Option<(Arc<Nonces>, Nonce)>,
}

impl Running {
    /// Of an operation without a nonce.
    pub fn without_nonce() -> Running {
        Running { nonce: None }
    }

    /// The operation has ended.
    pub fn end(mut self, succeeded: bool) {
        if let Some((nonces, nonce)) = self.nonce.take() {
            nonces.end(nonce, succeeded);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some((nonces, nonce)) = self.nonce.take() {
            nonces.end(nonce, false);
        }
    }
}

impl Nonces {
    /// None seen. Finished ones are remembered for `remember_ms`, and take as many bytes as `ledger` lets them.
    pub fn new(clock: Arc<dyn Clock>, remember_ms: u64, ledger: &Arc<Ledger>) -> Arc<Nonces> {
        let most = usize::try_from(ledger.cap_bytes(Holder::Nonces)).unwrap_or(usize::MAX) / SHARD_BYTES;
        let turned_us = clock.monotonic_us();
        let shards = (0..most.clamp(LEAST_SHARDS, 1 << 14)).map(|_| {
            Mutex::new(Shard {
                running: FxHashMap::default(),
                young: FxHashSet::default(),
                old: FxHashSet::default(),
                turned_us,
                charge: ledger.charge(Holder::Nonces, 0),
            })
        });
        let shards = shards.collect();
        Arc::new(Nonces { shards, clock, remember_us: remember_ms * 1000, forgotten_early: AtomicU64::new(0) })
    }

    fn shard(&self, nonce: &Nonce) -> &Mutex<Shard> {
        // The tables take the lowest and the highest bits of the hash.
        let hash = (FxBuildHasher.hash_one(nonce) >> 20) as usize;
        &self.shards[hash % self.shards.len()]
    }

    /// Begins an operation.
    pub fn begin(self: &Arc<Self>, nonce: Nonce) -> Begin {
        let mut shard = self.shard(&nonce).lock();
        shard.forget(self.clock.monotonic_us(), self.remember_us);
        if let Some(waiting) = shard.running.get_mut(&nonce) {
            let (sender, receiver) = oneshot::channel();
            waiting.push(sender);
            return Begin::Wait(receiver);
        }
        if shard.is_done(&nonce) {
            return Begin::AlreadyDone;
        }
        shard.running.insert(nonce, Vec::new());
        Begin::Proceed(Running { nonce: Some((self.clone(), nonce)) })
    }

    fn end(&self, nonce: Nonce, succeeded: bool) {
        let mut shard = self.shard(&nonce).lock();
        let waiting = shard.running.remove(&nonce);
        if succeeded && !base::inject!("regionserver.nonce.forgotten") && shard.finish(nonce, self.clock.monotonic_us())
        {
            self.forgotten_early.fetch_add(GENERATION as u64, Relaxed);
        }
        drop(shard);
        // Somebody who does not wait any more is no trouble.
        waiting.into_iter().flatten().for_each(|sender| _ = sender.send(()));
    }

    /// Remembers an operation that a log showed to have succeeded in an earlier life.
    pub fn recovered(&self, nonce: Nonce) {
        let mut shard = self.shard(&nonce).lock();
        if !shard.is_done(&nonce) && shard.finish(nonce, self.clock.monotonic_us()) {
            self.forgotten_early.fetch_add(GENERATION as u64, Relaxed);
        }
    }

    /// Forgets what has been remembered long enough, also where nothing begins any more.
    pub fn forget_old(&self) {
        let now_us = self.clock.monotonic_us();
        self.shards.iter().for_each(|shard| shard.lock().forget(now_us, self.remember_us));
    }

    /// How many were forgotten before their time since this was asked last, because more finished than there is memory for.
    pub fn take_forgotten_early(&self) -> u64 {
        self.forgotten_early.swap(0, Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ManualClock;

    fn nonces(clock: &Arc<ManualClock>, remember_ms: u64, cap_bytes: u64) -> (Arc<Nonces>, Arc<Ledger>) {
        let ledger = Ledger::new(cap_bytes * 16);
        ledger.set_share(Holder::Nonces, base::Share::fixed(cap_bytes));
        (Nonces::new(clock.clone(), remember_ms, &ledger), ledger)
    }

    fn run(nonces: &Arc<Nonces>, nonce: Nonce) -> bool {
        match nonces.begin(nonce) {
            Begin::Proceed(running) => {
                running.end(true);
                true
            }
            _ => false,
        }
    }

    #[test]
    fn a_nonce_counts_once_until_it_is_forgotten() {
        let clock = Arc::new(ManualClock::new(0));
        let (nonces, ledger) = nonces(&clock, 1000, 4 << 20);
        let nonce = Nonce { group: 1, number: 2 };
        let Begin::Proceed(running) = nonces.begin(nonce) else { panic!("it is new") };
        let Begin::Wait(mut waiting) = nonces.begin(nonce) else { panic!("it runs") };
        running.end(false);
        assert!(waiting.try_recv().is_ok(), "told that it ended");
        assert!(run(&nonces, nonce), "it failed, so it may run again");
        clock.advance_ms(999);
        assert!(matches!(nonces.begin(nonce), Begin::AlreadyDone));
        clock.advance_ms(1001);
        nonces.forget_old();
        clock.advance_ms(1001);
        nonces.forget_old();
        assert_eq!(ledger.held_bytes(Holder::Nonces), 0);
        assert!(run(&nonces, nonce), "forgotten");
    }

    #[test]
    fn an_operation_that_panics_lets_its_retry_run() {
        let clock = Arc::new(ManualClock::new(0));
        let (nonces, _ledger) = nonces(&clock, 1000, 4 << 20);
        let nonce = Nonce { group: 1, number: 2 };
        let Begin::Proceed(running) = nonces.begin(nonce) else { panic!("it is new") };
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _running = running;
            panic!("as asked");
        }));
        assert!(panicked.is_err());
        assert!(run(&nonces, nonce));
    }

    /// 200 million in a day, at 2,315 a second, would be 4.2 million in half an hour. A thousandth of the day's number of operations is
    /// run, with a thousandth of the memory for them, and what is there is checked all the time.
    #[test]
    fn the_nonces_of_a_busy_day_stay_within_their_bytes() {
        let clock = Arc::new(ManualClock::new(0));
        let cap_bytes = (LEAST_SHARDS * SHARD_BYTES) as u64;
        let (nonces, ledger) = nonces(&clock, 30 * 60_000, cap_bytes);
        for number in 0..200_000 {
            clock.advance_ms(432);
            assert!(run(&nonces, Nonce { group: 7, number }));
            assert!(ledger.held_bytes(Holder::Nonces) <= cap_bytes);
            if let Some(retried) = number.checked_sub(4_000) {
                assert!(!run(&nonces, Nonce { group: 7, number: retried }), "28 minutes are remembered");
            }
        }
        assert_eq!(nonces.take_forgotten_early(), 0);
        // A flood: the latest are remembered, the oldest give way.
        for number in 0..200_000 {
            assert!(run(&nonces, Nonce { group: 8, number }));
            assert!(ledger.held_bytes(Holder::Nonces) <= cap_bytes);
            if let Some(retried) = number.checked_sub(8_000) {
                assert!(!run(&nonces, Nonce { group: 8, number: retried }));
            }
        }
        assert!(nonces.take_forgotten_early() > 0);
    }
}
