//! The order of a region's writes, in one place: ids are given out, entries appended and writes made visible in the same order.
//!
//! Always true:
//!  1. The log sees ids in growing order: from taking an id to appending its entry one [`Turn`] is held, and there is one at a time.
//!  2. What is visible is in the log as surely as its writer asked, and so is all before it.
//!  3. After the log lost a write, or something half done could not be undone, nothing is served or written any more ([`Poison`]).

use crate::commit::{Commit, LastAppended, Poison};
use crate::error::{RegionError, Result};
use crate::mvcc::Mvcc;
use base::{ReadPoint, SeqId};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use wal::{Level, Ticket};

/// Sequence ids, the log's order, and what is visible.
#[derive(Debug)]
pub(crate) struct Sequencer {
    mvcc: Arc<Mvcc>,
    poison: Arc<Poison>,
    last: Mutex<LastAppended>,
}

impl Sequencer {
    /// Ids after `last` are given out; all up to it is visible.
    pub(crate) fn new(region: Arc<str>, last: SeqId) -> Sequencer {
        Sequencer { mvcc: Arc::new(Mvcc::new(last)), poison: Arc::new(Poison::new(region)), last: Mutex::default() }
    }

    /// What a read that starts now may see.
    #[inline]
    pub(crate) fn read_point(&self) -> ReadPoint {
        self.mvcc.read_point()
    }

    /// All up to `point` is visible: of a read replica, whose primary has given out the ids.
    pub(crate) fn follow(&self, point: ReadPoint) {
        self.mvcc.follow(point);
    }

    /// The highest id given out.
    pub(crate) fn last_seq_id(&self) -> SeqId {
        self.mvcc.last_seq_id()
    }

    /// Why the region must not go on, if it must not.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        self.poison.check()
    }

    /// `what` can be neither finished nor undone; the error that says so, and stops the server.
    pub(crate) fn rollback_failed(&self, what: &'static str, source: fs::Error) -> RegionError {
        self.poison.rollback_failed(what, source)
    }

    /// A write that nothing belongs to yet.
    pub(crate) fn commit(&self) -> Commit {
        Commit::new(&self.mvcc, &self.poison)
    }

    /// The next id, and the right to append under it.
    pub(crate) fn turn(&self) -> Turn<'_> {
        let last = self.last.lock();
        let seq_id = self.mvcc.begin();
        debug_assert!(last.seq_id < seq_id, "ids grow: {seq_id} is appended after {}", last.seq_id);
        Turn { sequencer: self, last, seq_id, is_pending: false }
    }

    /// The next id, for a write without an entry in the log, and what it waits for.
    pub(crate) fn unlogged(&self) -> (SeqId, Option<(Ticket, Level)>) {
        let seq_id = self.mvcc.begin();
        (seq_id, self.wait_for_earlier(seq_id))
    }

    /// The cells of `seq_id` are in the memstores.
    pub(crate) fn inserted(&self, seq_id: SeqId) {
        self.mvcc.inserted(seq_id);
    }

    /// Takes an id that nothing gets.
    pub(crate) fn skip(&self) -> SeqId {
        self.turn().seq_id
    }

    /// A write that need not wait for its own sake still becomes visible only after those before it.
    pub(crate) fn wait_for_earlier(&self, seq_id: SeqId) -> Option<(Ticket, Level)> {
        let seq_id = seq_id.min(SeqId(self.mvcc.last_seq_id().0 + 1));
        if self.mvcc.read_point().0 + 1 >= seq_id.0 {
            return None;
        }
        self.last.lock().wait()
    }

    /// The last write begun, and what to wait for until the log has all up to it.
    pub(crate) fn all_so_far(&self) -> (SeqId, Option<(Ticket, Level)>) {
        let last = self.last.lock();
        let seq_id = self.mvcc.last_seq_id();
        if self.mvcc.read_point().0 >= seq_id.0 {
            return (seq_id, None);
        }
        (seq_id, last.wait())
    }
}

/// The right to append the next entry; nobody else has one meanwhile. An id under which nothing was appended that is still to become
/// visible ([`Turn::appended`]) is skipped when the turn ends.
pub(crate) struct Turn<'a> {
    sequencer: &'a Sequencer,
    last: MutexGuard<'a, LastAppended>,
    seq_id: SeqId,
    /// The write is completed by its commit.
    is_pending: bool,
}

impl Turn<'_> {
    pub(crate) fn seq_id(&self) -> SeqId {
        self.seq_id
    }

    /// A write's entry was appended, or not: then nothing is visible under the id. Returns how safe the entry must be before the write is
    /// visible. `synced_first`: it must be synced before anybody sees it, and so must what comes after it.
    pub(crate) fn appended(
        &mut self,
        outcome: wal::Result<Ticket>,
        synced_first: bool,
    ) -> wal::Result<(Ticket, Level)> {
        let ticket = outcome?;
        let level = self.last.level_for(&ticket);
        self.note(&ticket);
        if synced_first {
            self.last.synced_first = Some(ticket.clone());
        }
        self.is_pending = true;
        Ok((ticket, level))
    }

    /// An entry without cells was appended, or not; its id is visible at once.
    pub(crate) fn marked(mut self, outcome: wal::Result<Ticket>) -> wal::Result<(SeqId, Ticket)> {
        let ticket = outcome?;
        self.note(&ticket);
        Ok((self.seq_id, ticket))
    }

    fn note(&mut self, ticket: &Ticket) {
        self.last.ticket = Some(ticket.clone());
        self.last.seq_id = self.seq_id;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.is_pending {
            self.sequencer.mvcc.skip(self.seq_id);
        }
    }
}
