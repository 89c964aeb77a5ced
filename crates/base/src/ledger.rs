//! The memory ledger: who holds how much of the one budget, and who may have more.
//!
//! Always true:
//!  1. Every [`Charge`] is given back exactly once, when it is dropped; what a holder is said to hold is the sum of its charges (or the
//!     last reading, for holders that count themselves).
//!  2. A charge that was asked for with [`Ledger::try_charge`] never takes a holder over its cap.
//!
//! Knows numbers only: who waits for room, and what is said to a client for whom there is none, is for others to decide.

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
}

impl Holder {
    /// All of them.
    pub const ALL: [Holder; 6] =
        [Holder::Memstores, Holder::BlockCache, Holder::Requests, Holder::Replies, Holder::Scanners, Holder::Nonces];

    /// Name in metrics and on the status page.
    pub const fn name(self) -> &'static str {
        match self {
            Holder::Memstores => "memstores",
            Holder::BlockCache => "block_cache",
            Holder::Requests => "requests",
            Holder::Replies => "replies",
            Holder::Scanners => "scanners",
            Holder::Nonces => "nonces",
        }
    }
}

/// One holder's line.
#[derive(Debug, Default)]
struct Account {
    held_bytes: AtomicU64,
    highest_bytes: AtomicU64,
    cap_bytes: AtomicU64,
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
    /// Most bytes that the holder may have.
    pub cap_bytes: u64,
}

/// Called when bytes of a holder for which somebody waits were given back.
type OnRelease = Box<dyn Fn() + Send + Sync>;

/// The accounts of one server.
pub struct Ledger {
    budget_bytes: u64,
    accounts: [Account; Holder::ALL.len()],
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
    /// A ledger for `budget_bytes` in all. Caps begin without a limit.
    pub fn new(budget_bytes: u64) -> Arc<Ledger> {
        let accounts: [Account; Holder::ALL.len()] = Default::default();
        accounts.iter().for_each(|account| account.cap_bytes.store(u64::MAX, Relaxed));
        Arc::new(Ledger { budget_bytes, accounts, is_awaited: AtomicBool::new(false), on_release: OnceLock::new() })
    }

    /// The whole budget in bytes.
    pub fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }

    fn account(&self, holder: Holder) -> &Account {
        &self.accounts[holder as usize]
    }

    /// Sets the most that a holder may have. One that has more keeps it, and gets no more.
    pub fn set_cap(&self, holder: Holder, bytes: u64) {
        self.account(holder).cap_bytes.store(bytes, Relaxed);
    }

    /// The most that a holder may have.
    pub fn cap_bytes(&self, holder: Holder) -> u64 {
        self.account(holder).cap_bytes.load(Relaxed)
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

    /// Counts bytes that are held already, whatever the cap says.
    pub fn charge(self: &Arc<Self>, holder: Holder, bytes: u64) -> Charge {
        self.add(holder, bytes);
        Charge { ledger: self.clone(), holder, bytes }
    }

    /// Counts bytes that are to be held, if the holder may have them.
    pub fn try_charge(self: &Arc<Self>, holder: Holder, bytes: u64) -> Option<Charge> {
        self.try_add(holder, bytes).then(|| Charge { ledger: self.clone(), holder, bytes })
    }

    /// Counts bytes, whatever the cap says, for those who give them back by a guard of their own ([`Ledger::take`]). What the holder has then.
    pub fn add(&self, holder: Holder, bytes: u64) -> u64 {
        let account = self.account(holder);
        let held = account.held_bytes.fetch_add(bytes, Relaxed) + bytes;
        if held > account.highest_bytes.load(Relaxed) {
            account.highest_bytes.fetch_max(held, Relaxed);
        }
        held
    }

    fn try_add(&self, holder: Holder, bytes: u64) -> bool {
        let account = self.account(holder);
        let cap = account.cap_bytes.load(Relaxed);
        let added = account
            .held_bytes
            .fetch_update(SeqCst, Relaxed, |held| held.checked_add(bytes).filter(|held| *held <= cap));
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

    /// Makes it count `bytes`, more or less than before, whatever the cap says.
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
        if bytes > self.bytes {
            if !self.ledger.try_add(self.holder, bytes - self.bytes) {
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
        ledger.set_cap(Holder::Replies, 100);
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
