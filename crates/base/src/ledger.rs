//! The memory ledger: who holds how much of the one budget, and who may have more.
//!
//! A holder has a floor, which it may always take, a cap, and between the two what it is granted now. What somebody needs beyond its grant
//! comes out of the block cache's, at once, as long as that is above its floor ([`Ledger::allows`]); what is not needed any more goes
//! back there, and memstores and cache move room between them with the load ([`Ledger::rebalance`]).
//!
//! Always true:
//!  1. Every [`Charge`] is given back exactly once, when it is dropped; what a holder is said to hold is the sum of its charges (or the
//!     last reading, for holders that count themselves).
//!  2. A charge that was asked for with [`Ledger::try_charge`] never takes a holder over its grant, nor that over its cap.
//!  3. The grants come to no more than the budget, if the floors do. Who holds more than its grant (a cache that has not shrunk yet, memory
//!     that was counted without being asked for) gets no more; such memory takes room from the others as if it had been granted.
//!
//! Knows numbers only: who waits for room, and what is said to a client for whom there is none, is for others to decide.

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

/// Who holds memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Holder {
    /// Cells of all memstores, flushed ones included while readers hold them.
    Memstores,
    /// Cached blocks.
    BlockCache,
    /// Requests from their first byte to their answer, with what they are decoded and inflated to.
    Requests,
    /// Replies from being made until the socket has them.
    Replies,
    /// Open scanners.
    Scanners,
    /// Nonces of increments and appends.
    Nonces,
    /// How long each user's operations took.
    Users,
    /// Entries of logs of dead servers that are being split.
    WalSplitting,
}

impl Holder {
    /// All of them.
    pub const ALL: [Holder; 8] = [
        Holder::Memstores,
        Holder::BlockCache,
        Holder::Requests,
        Holder::Replies,
        Holder::Scanners,
        Holder::Nonces,
        Holder::Users,
        Holder::WalSplitting,
    ];
    /// Those whose memory comes and goes with calls and orders: what they are granted follows what they hold.
    pub const PASSING: [Holder; 5] =
        [Holder::Requests, Holder::Replies, Holder::Scanners, Holder::Nonces, Holder::WalSplitting];

    /// Name in metrics and on the status page.
    pub const fn name(self) -> &'static str {
        match self {
            Holder::Memstores => "memstores",
            Holder::BlockCache => "block_cache",
            Holder::Requests => "requests",
            Holder::Replies => "replies",
            Holder::Scanners => "scanners",
            Holder::Nonces => "nonces",
            Holder::Users => "users",
            Holder::WalSplitting => "wal_splitting",
        }
    }
}

/// One holder's line.
#[derive(Debug, Default)]
struct Account {
    held_bytes: AtomicU64,
    highest_bytes: AtomicU64,
    floor_bytes: AtomicU64,
    granted_bytes: AtomicU64,
    cap_bytes: AtomicU64,
}

/// How much a holder may have, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// It may always have so much.
    pub floor_bytes: u64,
    /// What it is granted at first; of the block cache: the most that it is granted at first.
    pub start_bytes: u64,
    /// It never has more.
    pub cap_bytes: u64,
}

impl Share {
    /// One that does not move.
    pub fn fixed(bytes: u64) -> Share {
        Share { floor_bytes: bytes, start_bytes: bytes, cap_bytes: bytes }
    }
}

/// Who could make good use of more memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Demand {
    /// Memstores were flushed for want of memory, or writes were held up.
    pub memstores: bool,
    /// Blocks were read again that had been pushed out of the cache shortly before.
    pub block_cache: bool,
}

/// What the ledger says of one holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Who.
    pub holder: Holder,
    /// Bytes held now.
    pub held_bytes: u64,
    /// Most bytes held at any moment.
    pub highest_bytes: u64,
    /// Bytes that the holder may have now.
    pub granted_bytes: u64,
    /// Most bytes that the holder is ever granted.
    pub cap_bytes: u64,
}

/// A reply of a gateway with less is counted, and always made.
const FEW_REPLY_BYTES: u64 = 16 << 10;

/// Called when bytes of a holder for which somebody waits were given back.
type OnRelease = Box<dyn Fn() + Send + Sync>;

/// The accounts of one server.
pub struct Ledger {
    budget_bytes: u64,
    accounts: [Account; Holder::ALL.len()],
    /// Held while grants move.
    moves: Mutex<()>,
    /// Memstores' grant at the start: where both want more, they move towards it.
    memstores_start_bytes: AtomicU64,
    /// Somebody waits for room.
    is_awaited: AtomicBool,
    on_release: OnceLock<OnRelease>,
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ledger").field("entries", &self.entries()).finish_non_exhaustive()
    }
}

impl Ledger {
    /// A ledger for `budget_bytes` in all. Grants begin without a limit.
    pub fn new(budget_bytes: u64) -> Arc<Ledger> {
        let accounts: [Account; Holder::ALL.len()] = Default::default();
        for account in &accounts {
            account.granted_bytes.store(u64::MAX, Relaxed);
            account.cap_bytes.store(u64::MAX, Relaxed);
        }
        Arc::new(Ledger {
            budget_bytes,
            accounts,
            moves: Mutex::new(()),
            memstores_start_bytes: AtomicU64::new(0),
            is_awaited: AtomicBool::new(false),
            on_release: OnceLock::new(),
        })
    }

    /// The whole budget in bytes.
    pub fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }

    fn account(&self, holder: Holder) -> &Account {
        &self.accounts[holder as usize]
    }

    /// Sets what a holder may have, from its start on. To be called for all before anybody holds anything, the block cache last: of what is
    /// left for it at first.
    pub fn set_share(&self, holder: Holder, share: Share) {
        let _alone = self.moves.lock();
        let account = self.account(holder);
        account.floor_bytes.store(share.floor_bytes, Relaxed);
        account.cap_bytes.store(share.cap_bytes, Relaxed);
        account.granted_bytes.store(share.start_bytes, Relaxed);
        match holder {
            Holder::Memstores => self.memstores_start_bytes.store(share.start_bytes, Relaxed),
            Holder::BlockCache => {
                let left = self.budget_bytes.saturating_sub(self.taken_beside_cache());
                account.granted_bytes.store(left.min(share.start_bytes).max(share.floor_bytes), Relaxed);
            }
            _ => {}
        }
    }

    /// The most that a holder is ever granted.
    pub fn cap_bytes(&self, holder: Holder) -> u64 {
        self.account(holder).cap_bytes.load(Relaxed)
    }

    /// The most that a holder may have now.
    pub fn granted_bytes(&self, holder: Holder) -> u64 {
        self.account(holder).granted_bytes.load(Relaxed)
    }

    /// Whether a holder may have so much in all: it is granted that, or the block cache can give what is missing. Cost: a load, or a lock
    /// where room has to move.
    #[inline]
    pub fn allows(&self, holder: Holder, total_bytes: u64) -> bool {
        total_bytes <= self.granted_bytes(holder) || self.take_room(holder, total_bytes)
    }

    /// Moves room to a holder until it may have `total_bytes`; false, and nothing is changed, when there is not enough that can move.
    #[cold]
    fn take_room(&self, holder: Holder, total_bytes: u64) -> bool {
        let account = self.account(holder);
        let cap = account.cap_bytes.load(Relaxed);
        if holder == Holder::BlockCache || total_bytes > cap {
            return false;
        }
        let _alone = self.moves.lock();
        let granted = account.granted_bytes.load(Relaxed);
        let missing = total_bytes.saturating_sub(granted);
        let cache = self.account(Holder::BlockCache);
        let of_cache = cache.granted_bytes.load(Relaxed);
        let room = self.free_bytes().saturating_add(of_cache.saturating_sub(cache.floor_bytes.load(Relaxed)));
        if missing > room {
            return false;
        }
        // Somewhat more, so that the next need not ask again.
        let moved = missing.max((cap - granted) / 4).min(room).min(cap - granted);
        cache.granted_bytes.store(of_cache - moved.saturating_sub(self.free_bytes()), Relaxed);
        account.granted_bytes.store(granted + moved, Relaxed);
        true
    }

    /// What nobody is granted, or holds without being granted it. The block cache counts with its grant: it gives back what it has beyond.
    fn free_bytes(&self) -> u64 {
        let taken = Holder::ALL.iter().map(|holder| match (self.granted_bytes(*holder), holder) {
            (granted, Holder::BlockCache) => granted,
            (granted, holder) => granted.max(self.held_bytes(*holder)),
        });
        self.budget_bytes.saturating_sub(taken.fold(0, u64::saturating_add))
    }

    /// Moves room with the load, a little at a time; to be called every some hundred milliseconds. What calls do not need any more goes
    /// back to the block cache. Memstores that want more get `step_bytes` out of the cache, and the reverse; where both do, they move
    /// towards where they began. The cache is granted what is left, within its bounds.
    pub fn rebalance(&self, demand: Demand, step_bytes: u64) {
        let _alone = self.moves.lock();
        for holder in Holder::PASSING {
            let account = self.account(holder);
            let granted = account.granted_bytes.load(Relaxed);
            // Half as much again as it holds stays with it; the rest goes back by halves.
            let held = account.held_bytes.load(Relaxed);
            let kept = (held + held / 2).max(account.floor_bytes.load(Relaxed));
            if granted > kept && granted != u64::MAX {
                account.granted_bytes.store(granted - (granted - kept).div_ceil(2), Relaxed);
            }
        }
        self.move_memstores(demand, step_bytes);
        let cache = self.account(Holder::BlockCache);
        let (floor, cap) = (cache.floor_bytes.load(Relaxed), cache.cap_bytes.load(Relaxed));
        let left = self.budget_bytes.saturating_sub(self.taken_beside_cache());
        cache.granted_bytes.store(left.clamp(floor, cap.max(floor)), Relaxed);
    }

    /// Granted to, or held by, all but the block cache.
    fn taken_beside_cache(&self) -> u64 {
        let others = Holder::ALL.iter().filter(|holder| **holder != Holder::BlockCache);
        others.map(|holder| self.granted_bytes(*holder).max(self.held_bytes(*holder))).fold(0, u64::saturating_add)
    }

    fn move_memstores(&self, demand: Demand, step_bytes: u64) {
        let memstores = self.account(Holder::Memstores);
        let granted = memstores.granted_bytes.load(Relaxed);
        if granted == u64::MAX {
            return;
        }
        let start = self.memstores_start_bytes.load(Relaxed);
        let (more, less) = match demand {
            Demand { memstores: true, block_cache: true } => (start > granted, start < granted),
            Demand { memstores, block_cache } => (memstores, block_cache),
        };
        let towards = if demand.memstores && demand.block_cache { start.abs_diff(granted) } else { u64::MAX };
        let step = step_bytes.min(towards);
        let moved = if more {
            let floor_of_cache = self.account(Holder::BlockCache).floor_bytes.load(Relaxed);
            let most = self.budget_bytes.saturating_sub(self.taken_beside_cache().saturating_add(floor_of_cache));
            (granted + step.min(most)).min(memstores.cap_bytes.load(Relaxed).max(granted))
        } else if less {
            // What cells lie in is not taken: for that they would have to be flushed.
            let least = memstores.floor_bytes.load(Relaxed).max(memstores.held_bytes.load(Relaxed));
            granted.saturating_sub(step).max(least.min(granted))
        } else {
            granted
        };
        memstores.granted_bytes.store(moved, Relaxed);
    }

    /// What a holder has.
    pub fn held_bytes(&self, holder: Holder) -> u64 {
        self.account(holder).held_bytes.load(Relaxed)
    }

    /// What all holders have.
    pub fn total_bytes(&self) -> u64 {
        Holder::ALL.iter().map(|holder| self.held_bytes(*holder)).fold(0, u64::saturating_add)
    }

    /// All lines.
    pub fn entries(&self) -> Vec<Entry> {
        Holder::ALL
            .into_iter()
            .map(|holder| {
                let account = self.account(holder);
                Entry {
                    holder,
                    held_bytes: account.held_bytes.load(Relaxed),
                    highest_bytes: account.highest_bytes.load(Relaxed),
                    granted_bytes: account.granted_bytes.load(Relaxed),
                    cap_bytes: account.cap_bytes.load(Relaxed),
                }
            })
            .collect()
    }

    /// What a holder that counts itself has now.
    pub fn report(&self, holder: Holder, bytes: u64) {
        let account = self.account(holder);
        account.held_bytes.store(bytes, Relaxed);
        account.highest_bytes.fetch_max(bytes, Relaxed);
    }

    /// Counts bytes that are held already, whatever is granted.
    pub fn charge(self: &Arc<Self>, holder: Holder, bytes: u64) -> Charge {
        self.add(holder, bytes);
        Charge { ledger: self.clone(), holder, bytes }
    }

    /// Counts bytes that are to be held, if the holder may have them.
    pub fn try_charge(self: &Arc<Self>, holder: Holder, bytes: u64) -> Option<Charge> {
        self.try_add(holder, bytes, 0).then(|| Charge { ledger: self.clone(), holder, bytes })
    }

    /// As [`Ledger::try_charge`] where as much again stays free for others: whoever asks for much is refused first, and small requests find
    /// room beside those who give nothing back. Source: the dynamic threshold of Choudhury and Hahne (1998), by which switches share a
    /// buffer.
    pub fn try_charge_share(self: &Arc<Self>, holder: Holder, bytes: u64) -> Option<Charge> {
        let mut charge = self.charge(holder, 0);
        charge.try_grow_share(bytes).then_some(charge)
    }

    /// Counts a gateway's reply as [`Ledger::try_charge_share`] does. One of few bytes is never refused: it costs less than to say that there is no
    /// room, and connections are bounded.
    pub fn try_charge_reply(self: &Arc<Self>, bytes: u64) -> Option<Charge> {
        if bytes < FEW_REPLY_BYTES {
            return Some(self.charge(Holder::Replies, bytes));
        }
        self.try_charge_share(Holder::Replies, bytes)
    }

    /// Counts bytes, whatever is granted, for those who give them back by a guard of their own ([`Ledger::take`]). What the holder has then.
    pub fn add(&self, holder: Holder, bytes: u64) -> u64 {
        let account = self.account(holder);
        let held = account.held_bytes.fetch_add(bytes, Relaxed) + bytes;
        if held > account.highest_bytes.load(Relaxed) {
            account.highest_bytes.fetch_max(held, Relaxed);
        }
        held
    }

    /// Counts bytes if the holder may have them and `spare_bytes` more.
    fn try_add(&self, holder: Holder, bytes: u64, spare_bytes: u64) -> bool {
        let account = self.account(holder);
        let allowed = |all: &u64| self.allows(holder, all.saturating_add(spare_bytes));
        let added = account.held_bytes.fetch_update(SeqCst, Relaxed, |held| held.checked_add(bytes).filter(allowed));
        if let Ok(before) = added {
            account.highest_bytes.fetch_max(before + bytes, Relaxed);
        }
        added.is_ok()
    }

    /// Gives back what [`Ledger::add`] counted. May call whoever waits for room: not to be called under a lock that this one takes.
    pub fn take(&self, holder: Holder, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let before = self.account(holder).held_bytes.fetch_sub(bytes, SeqCst);
        debug_assert!(before >= bytes, "{} gave back {bytes} of {before} bytes", holder.name());
        if self.is_awaited.load(SeqCst)
            && self.is_awaited.swap(false, SeqCst)
            && let Some(on_release) = self.on_release.get()
        {
            on_release();
        }
    }

    /// Says who is told, on the thread that gives bytes back, when there is room for those who [`Ledger::await_release`]. The first call counts.
    pub fn set_on_release(&self, on_release: impl Fn() + Send + Sync + 'static) {
        let _ = self.on_release.set(Box::new(on_release));
    }

    /// Somebody waits: the next bytes that are given back are told of once. To be called before a last attempt, so that none is missed.
    pub fn await_release(&self) {
        self.is_awaited.store(true, SeqCst);
    }
}

/// Bytes on a ledger, given back on drop.
#[must_use = "dropped at once, it counts nothing"]
pub struct Charge {
    ledger: Arc<Ledger>,
    holder: Holder,
    bytes: u64,
}

impl std::fmt::Debug for Charge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Charge({}, {})", self.holder.name(), self.bytes)
    }
}

impl Charge {
    /// Bytes counted.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes it count `bytes`, more or less than before, whatever is granted.
    pub fn resize(&mut self, bytes: u64) {
        if bytes > self.bytes {
            self.ledger.add(self.holder, bytes - self.bytes);
        } else {
            self.ledger.take(self.holder, self.bytes - bytes);
        }
        self.bytes = bytes;
    }

    /// Makes it count `bytes` if it does so already or the holder may have the difference.
    pub fn try_grow(&mut self, bytes: u64) -> bool {
        self.grow(bytes, 0)
    }

    /// As [`Charge::try_grow`] where as much as it then counts stays free for others ([`Ledger::try_charge_share`]).
    pub fn try_grow_share(&mut self, bytes: u64) -> bool {
        self.grow(bytes, bytes)
    }

    fn grow(&mut self, bytes: u64, spare_bytes: u64) -> bool {
        if bytes > self.bytes {
            if !self.ledger.try_add(self.holder, bytes - self.bytes, spare_bytes) {
                return false;
            }
            self.bytes = bytes;
        }
        true
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.ledger.take(self.holder, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn a_charge_is_given_back_once_and_a_cap_holds() {
        let ledger = Ledger::new(1000);
        ledger.set_share(Holder::Replies, Share::fixed(100));
        let mut first = ledger.try_charge(Holder::Replies, 60).expect("there is room");
        assert!(ledger.try_charge(Holder::Replies, 41).is_none());
        assert!(first.try_grow(100) && !first.try_grow(101));
        assert_eq!(first.bytes(), 100);
        first.resize(30);
        let second = ledger.charge(Holder::Replies, 200);
        assert_eq!((ledger.held_bytes(Holder::Replies), ledger.total_bytes()), (230, 230));
        drop((first, second));
        let entry = ledger.entries()[Holder::Replies as usize];
        assert_eq!((entry.held_bytes, entry.highest_bytes, entry.cap_bytes), (0, 230, 100));
    }

    #[test]
    fn whoever_asks_for_much_leaves_room_for_those_who_ask_for_little() {
        let ledger = Ledger::new(1000);
        ledger.set_share(Holder::Replies, Share::fixed(100));
        assert!(ledger.try_charge_share(Holder::Replies, 51).is_none());
        let mut held: Vec<Charge> =
            std::iter::from_fn(|| ledger.try_charge_share(Holder::Replies, 20)).take(100).collect();
        assert_eq!((held.len(), ledger.held_bytes(Holder::Replies)), (4, 80));
        assert!(!held[0].try_grow_share(21) && held[0].try_grow_share(20));
        assert!(ledger.try_charge_share(Holder::Replies, 10).is_some());
        // What it has already is its own share: it grows as long as so much is free.
        let mut one = ledger.try_charge_share(Holder::Replies, 5).expect("room for little");
        assert!(one.try_grow_share(10) && !one.try_grow_share(11));
    }

    #[test]
    fn a_small_reply_is_made_however_much_others_hold() {
        let ledger = Ledger::new(1000);
        ledger.set_share(Holder::Replies, Share::fixed(1 << 20));
        let others = ledger.charge(Holder::Replies, 2 << 20);
        assert!(ledger.try_charge_reply(16 << 10).is_none());
        let small = ledger.try_charge_reply((16 << 10) - 1).expect("always");
        assert_eq!(ledger.held_bytes(Holder::Replies), (2 << 20) + (16 << 10) - 1);
        drop((others, small));
        assert!(ledger.try_charge_reply(16 << 10).is_some());
        assert_eq!(ledger.held_bytes(Holder::Replies), 0);
    }

    /// A server's shares of 1,000: what calls hold is granted 190 at first, memstores 400, the cache the rest.
    fn server() -> Arc<Ledger> {
        let ledger = Ledger::new(1000);
        let share = |floor_bytes, start_bytes, cap_bytes| Share { floor_bytes, start_bytes, cap_bytes };
        ledger.set_share(Holder::Requests, share(60, 60, 250));
        ledger.set_share(Holder::Replies, share(60, 60, 125));
        ledger.set_share(Holder::Scanners, share(35, 35, 60));
        ledger.set_share(Holder::Nonces, share(35, 35, 60));
        ledger.set_share(Holder::Users, share(0, 0, 0));
        ledger.set_share(Holder::WalSplitting, share(0, 0, 125));
        ledger.set_share(Holder::Memstores, share(100, 400, 600));
        ledger.set_share(Holder::BlockCache, share(100, 700, 700));
        ledger
    }

    fn granted(ledger: &Ledger) -> [u64; 8] {
        Holder::ALL.map(|holder| ledger.granted_bytes(holder))
    }

    #[test]
    fn what_calls_need_comes_out_of_the_cache_and_goes_back() {
        let ledger = server();
        assert_eq!(granted(&ledger), [400, 410, 60, 60, 35, 35, 0, 0]);
        let requests = ledger.try_charge(Holder::Requests, 240).expect("the cache gives it");
        assert_eq!(granted(&ledger), [400, 230, 240, 60, 35, 35, 0, 0]);
        assert!(!ledger.allows(Holder::Requests, 251), "over the cap");
        assert!(ledger.allows(Holder::Replies, 125) && ledger.allows(Holder::Nonces, 60));
        assert_eq!(granted(&ledger), [400, 140, 240, 125, 35, 60, 0, 0]);
        assert!(ledger.allows(Holder::Scanners, 60));
        assert_eq!(ledger.granted_bytes(Holder::BlockCache), 115);
        ledger.rebalance(Demand::default(), 10);
        assert!(ledger.granted_bytes(Holder::BlockCache) > 115, "replies, scanners and nonces were not taken");
        let split = ledger.try_charge(Holder::WalSplitting, 60).expect("the cache gives it");
        assert!(!ledger.allows(Holder::WalSplitting, 126), "over the cap");
        drop((requests, split));
        (0..10).for_each(|_| ledger.rebalance(Demand::default(), 10));
        assert_eq!(granted(&ledger), [400, 410, 60, 60, 35, 35, 0, 0]);
    }

    #[test]
    fn memstores_and_cache_move_room_with_the_load_step_by_step() {
        let ledger = server();
        let rounds = |memstores, block_cache, count| {
            (0..count).for_each(|_| ledger.rebalance(Demand { memstores, block_cache }, 10));
            (ledger.granted_bytes(Holder::Memstores), ledger.granted_bytes(Holder::BlockCache))
        };
        assert_eq!(rounds(true, false, 1), (410, 400), "a write-heavy server");
        assert_eq!(rounds(true, false, 100), (600, 210));
        assert_eq!(rounds(false, false, 100), (600, 210), "nobody wants anything");
        assert_eq!(rounds(true, true, 5), (550, 260));
        assert_eq!(rounds(true, true, 100), (400, 410), "both: as at the start");
        ledger.report(Holder::Memstores, 300);
        assert_eq!(rounds(false, true, 100), (300, 510), "cells that are there stay");
        ledger.report(Holder::Memstores, 0);
        assert_eq!(rounds(false, true, 100), (110 - 10, 700), "a server that is read");
        assert_eq!(rounds(true, true, 100), (400, 410));
        // A cache that is at its floor has nothing to give.
        let _held = [(Holder::Requests, 250), (Holder::Replies, 125), (Holder::Nonces, 60)].map(|(holder, bytes)| {
            assert!(ledger.allows(holder, bytes));
            ledger.charge(holder, bytes)
        });
        assert_eq!(rounds(true, false, 100), (430, 100));
        assert!(!ledger.allows(Holder::Scanners, 60));
    }

    /// Anybody asks for and gives back anything, in any order. Replay: BASALT_SEED=<seed> cargo test -p base --lib ledger.
    #[test]
    fn grants_never_come_to_more_than_the_budget() {
        let seed = std::env::var("BASALT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20);
        println!("BASALT_SEED={seed}");
        let rng = crate::Rng::seeded(seed);
        let ledger = server();
        let mut charges: Vec<Charge> = Vec::new();
        let mut most_charges = 0;
        for _ in 0..20_000 {
            match rng.below(8) {
                0..3 => {
                    let holder = Holder::PASSING[rng.below(Holder::PASSING.len() as u64) as usize];
                    charges.extend(ledger.try_charge(holder, rng.below(120)));
                }
                3..6 if !charges.is_empty() => {
                    let charge = charges.swap_remove(rng.below(charges.len() as u64) as usize);
                    drop(charge);
                }
                6 => ledger.report(Holder::Memstores, rng.below(ledger.granted_bytes(Holder::Memstores) + 1)),
                _ => {
                    let demand = Demand { memstores: rng.below(2) == 0, block_cache: rng.below(2) == 0 };
                    ledger.rebalance(demand, 1 + rng.below(40));
                    ledger.report(Holder::BlockCache, ledger.granted_bytes(Holder::BlockCache));
                }
            }
            most_charges = most_charges.max(charges.len());
            let entries = ledger.entries();
            let all: u64 = entries.iter().map(|entry| entry.granted_bytes).sum();
            assert!(all <= 1000, "{entries:?}");
            for (entry, account) in entries.iter().zip(&ledger.accounts) {
                let floor = account.floor_bytes.load(Relaxed);
                assert!((floor..=entry.cap_bytes).contains(&entry.granted_bytes), "{entry:?}");
                assert!(entry.holder == Holder::BlockCache || entry.held_bytes <= entry.granted_bytes, "{entry:?}");
            }
        }
        assert!(most_charges > 5, "{most_charges} at a time");
    }

    #[test]
    fn who_waits_is_told_once() {
        let ledger = Ledger::new(1000);
        let told = Arc::new(AtomicUsize::new(0));
        let counts = told.clone();
        ledger.set_on_release(move || _ = counts.fetch_add(1, SeqCst));
        drop(ledger.charge(Holder::Requests, 1));
        assert_eq!(told.load(SeqCst), 0, "nobody waited");
        ledger.await_release();
        let (one, other) = (ledger.charge(Holder::Requests, 1), ledger.charge(Holder::Requests, 1));
        drop(one);
        drop(other);
        assert_eq!(told.load(SeqCst), 1);
    }
}
