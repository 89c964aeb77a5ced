//! A write that is in the log's buffer and in the memstores, and not yet visible.
//!
//! The caller waits for the log as long as the write's durability asks, then completes the commit: the read point
//! passes and the reply may leave. Row locks are long free by then, so a hot row commits in groups.

use crate::error::{RegionError, Result};
use crate::mvcc::Mvcc;
use base::SeqId;
use std::sync::{Arc, OnceLock};
use wal::{Level, Ticket};

/// Remembers why the region must not go on. That a write was lost by the log: memory shows what nothing can bring back. That what failed
/// could not be undone: the next opening shows what clients were told is not there.
#[derive(Debug)]
pub(crate) struct Poison {
    region: Arc<str>,
    why: OnceLock<RegionError>,
}

impl Poison {
    pub(crate) fn new(region: Arc<str>) -> Poison {
        Poison { region, why: OnceLock::new() }
    }

    /// The log lost this write. The first reason counts, here and below.
    pub(crate) fn lost(&self, seq_id: SeqId) {
        let _ = self.why.set(RegionError::Poisoned { region: self.region.clone(), seq_id });
    }

    /// `what` can be neither finished nor undone; the error that says so, and stops the server.
    pub(crate) fn rollback_failed(&self, what: &'static str, source: fs::Error) -> RegionError {
        let error = RegionError::RollbackFailed { region: self.region.clone(), what, source: Arc::new(source) };
        let _ = self.why.set(error.clone());
        error
    }

    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        match self.why.get() {
            None => Ok(()),
            Some(why) => Err(why.clone()),
        }
    }
}

/// What a region appended to the log last. Under a lock of its own from taking a sequence id to appending its entry, so that the log sees ids
/// in order.
#[derive(Debug, Default)]
pub(crate) struct LastAppended {
    pub seq_id: SeqId,
    pub ticket: Option<Ticket>,
    /// The last entry that must be synced before anybody sees it, on whatever log.
    pub synced_first: Option<Ticket>,
}

impl LastAppended {
    /// What to wait for until all that was appended so far may be visible.
    pub(crate) fn wait(&self) -> Option<(Ticket, Level)> {
        self.ticket.clone().map(|ticket| (ticket.clone(), self.level_for(&ticket)))
    }

    /// How safe the log must have what is visible once `ticket` is done. Writes become visible in the order of their ids: on an unsynced log, too,
    /// one that comes after a write which waits for its sync waits with it.
    pub(crate) fn level_for(&self, ticket: &Ticket) -> Level {
        match &self.synced_first {
            Some(earlier) if !earlier.is_done_at(Level::Synced) => Level::Synced,
            _ => ticket.default_level(),
        }
    }
}

/// A write on its way to being visible; see the module. May cover several log entries of one call.
#[derive(Debug)]
#[must_use = "complete it when the log has it"]
pub struct Commit {
    /// Empty when nothing was written.
    seq_ids: Vec<SeqId>,
    mvcc: Arc<Mvcc>,
    poison: Arc<Poison>,
    wait: Option<(Ticket, Level)>,
    /// The last write of others that the answer rests on.
    seen: Option<SeqId>,
    /// What it has in the log's buffer is written when it is gone, whoever forgets it.
    batch: Option<wal::Batch>,
}

impl Commit {
    pub(crate) fn new(mvcc: &Arc<Mvcc>, poison: &Arc<Poison>) -> Commit {
        Commit { seq_ids: Vec::new(), mvcc: mvcc.clone(), poison: poison.clone(), wait: None, seen: None, batch: None }
    }

    /// Nothing was written, but the answer rests on writes up to `seen`, which `wait` covers: the log must have them, and
    /// every later read must see them, before anybody hears of it.
    pub(crate) fn after(mut self, seen: SeqId, wait: Option<(Ticket, Level)>) -> Commit {
        (self.seen, self.wait) = (Some(seen), wait);
        self
    }

    pub(crate) fn add(&mut self, seq_id: SeqId, wait: Option<(Ticket, Level)>) {
        self.seq_ids.push(seq_id);
        // One log: a later position covers the earlier ones. The strongest level counts.
        if let Some((ticket, level)) = wait {
            let level = self.wait.take().map_or(level, |(_, earlier)| earlier.max(level));
            self.wait = Some((ticket, level));
        }
    }

    /// Appends through it are written together, when the commit is waited for or handed on.
    pub(crate) fn batch(&mut self, log: &Arc<wal::Log>) -> &mut wal::Batch {
        self.batch.get_or_insert_with(|| log.batch())
    }

    /// More is to be written for the same answer, perhaps much later: what has been written becomes visible as soon as the log has it, and
    /// the answer waits for that, too.
    pub(crate) fn let_go(&mut self) {
        let Some(last) = self.seq_id() else { return };
        let seq_ids = std::mem::take(&mut self.seq_ids);
        // Dropping it arranges what is left to do.
        drop(Commit {
            seq_ids,
            mvcc: self.mvcc.clone(),
            poison: self.poison.clone(),
            wait: self.wait.clone(),
            seen: None,
            batch: self.batch.take(),
        });
        if self.wait.is_some() {
            self.seen = Some(last);
        }
    }

    /// The highest sequence id written; `None` when nothing was.
    pub fn seq_id(&self) -> Option<SeqId> {
        self.seq_ids.last().copied()
    }

    /// What to wait for; `None`: nothing.
    pub fn ticket(&self) -> Option<&Ticket> {
        self.wait.as_ref().map(|(ticket, _)| ticket)
    }

    /// How safe the ticket must be.
    pub fn level(&self) -> Option<Level> {
        self.wait.as_ref().map(|(_, level)| *level)
    }

    /// Whether [`Commit::complete`] may be called now.
    pub fn is_durable(&self) -> bool {
        self.wait.as_ref().is_none_or(|(ticket, level)| ticket.is_done_at(*level))
    }

    /// The ticket has succeeded: the write becomes visible. When this returns every later read sees it. Never waits for
    /// the disk.
    pub fn complete(mut self) {
        self.finish();
    }

    fn finish(&mut self) {
        // It is written, or waits for somebody who is.
        self.leave_batch();
        let logged = self.wait.is_some();
        for seq_id in std::mem::take(&mut self.seq_ids) {
            self.mvcc.complete(seq_id, logged);
        }
        if let Some(seen) = self.seen.take() {
            self.mvcc.complete(seen, true);
        }
    }

    /// Waits for the log, then completes. Blocks.
    ///
    /// # Errors
    /// [`RegionError::Log`]: the write's fate is open. Unless the disk is only full, the region is poisoned.
    pub fn wait(mut self) -> Result<()> {
        if let Some((ticket, level)) = &self.wait
            && let Err(failed) = ticket.wait_for(*level)
        {
            // Dropping arranges the rest.
            return Err(RegionError::log(&self.poison.region, failed.into()));
        }
        self.finish();
        Ok(())
    }

    /// Calls `done` when the write is visible or lost: on this thread when there is nothing to wait for, or when a `write`
    /// to the log is enough and the log is free; else from the thread that syncs the log. Keep it short.
    pub fn on_done(self, done: impl FnOnce(Result<()>) + Send + 'static) {
        let ticket = self.ticket().cloned();
        self.on_done_deferred(done);
        if let Some(ticket) = ticket {
            ticket.write_pending();
        }
    }

    /// As [`Commit::on_done`], for several writes that are written together: the caller holds a [`wal::Batch`] of the log, or answers for a
    /// later [`wal::Log::write_pending`].
    pub fn on_done_deferred(mut self, done: impl FnOnce(Result<()>) + Send + 'static) {
        self.leave_batch();
        match self.wait.clone() {
            None => {
                self.finish();
                done(Ok(()));
            }
            Some((ticket, level)) => ticket.on_done_deferred(level, move |result| match result {
                Ok(()) => {
                    self.finish();
                    done(Ok(()));
                }
                Err(failed) => {
                    let region = self.poison.region.clone();
                    if !failed.is_full() {
                        self.lose();
                    }
                    done(Err(RegionError::log(&region, failed.into())));
                }
            }),
        }
    }

    fn leave_batch(&mut self) {
        if let Some(batch) = self.batch.take() {
            batch.leave_pending();
        }
    }

    fn lose(&mut self) {
        if let Some(seq_id) = std::mem::take(&mut self.seq_ids).first() {
            self.poison.lost(*seq_id);
        }
    }
}

impl Drop for Commit {
    /// Nobody waits any more, but the write is in the memstores: it must become visible when the log has it.
    fn drop(&mut self) {
        if self.seq_ids.is_empty() {
            return;
        }
        let Some((ticket, level)) = self.wait.take() else {
            let seq_ids = std::mem::take(&mut self.seq_ids);
            seq_ids.into_iter().for_each(|seq_id| self.mvcc.complete(seq_id, false));
            return;
        };
        let (seq_ids, mvcc, poison) = (std::mem::take(&mut self.seq_ids), self.mvcc.clone(), self.poison.clone());
        ticket.on_done_at(level, move |result| match result {
            Ok(()) => seq_ids.into_iter().for_each(|seq_id| mvcc.complete(seq_id, true)),
            Err(_) => {
                if let Some(seq_id) = seq_ids.first() {
                    poison.lost(*seq_id);
                }
            }
        });
    }
}
