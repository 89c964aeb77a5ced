//! What an append returns: a place in the log to wait for.

use crate::{Log, SyncFailed, SyncMode};
use std::fmt;
use std::sync::Arc;

/// How safe an entry is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// The operating system has it.
    Written,
    /// It is on the disk.
    Synced,
}

/// What is called when a ticket is done.
pub(crate) type Done = Box<dyn FnOnce(Result<(), SyncFailed>) + Send>;

/// An entry's place in the log, to wait for. Cheap to clone; dropping it cancels nothing.
#[derive(Clone)]
pub struct Ticket {
    pub(crate) log: Arc<Log>,
    pub(crate) position: u64,
}

impl Ticket {
    /// Where the entry ends, in bytes since the log was made, over all its files.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The level that the log's mode asks for.
    pub fn default_level(&self) -> Level {
        match self.log.options().sync_mode {
            SyncMode::Synced => Level::Synced,
            SyncMode::Written => Level::Written,
        }
    }

    /// Waits at the log's own level; without a syncer thread the caller may do the work for all who wait.
    ///
    /// # Errors
    /// When the entry's fate is open, see [`SyncFailed`].
    pub fn wait(&self) -> Result<(), SyncFailed> {
        self.wait_for(self.default_level())
    }

    /// Waits until the entry is as safe as `level`.
    ///
    /// # Errors
    /// When the entry's fate is open, see [`SyncFailed`]; after a full disk one may wait again.
    pub fn wait_for(&self, level: Level) -> Result<(), SyncFailed> {
        self.log.wait(self.position, level)
    }

    /// Whether the entry is safe at the log's own level.
    pub fn is_done(&self) -> bool {
        self.is_done_at(self.default_level())
    }

    /// Whether the entry is as safe as `level`.
    pub fn is_done_at(&self, level: Level) -> bool {
        self.log.reached(self.position, level)
    }

    /// Calls `done` once when the entry is safe at the log's own level or the log has failed: on this thread if that is so already or can be
    /// had by a `write` ([`Log::write_pending`]), else on the thread that syncs. Keep it short and wait for no ticket in it. Somebody must sync: a
    /// syncer thread, a waiter, [`Log::sync_once`].
    pub fn on_done(&self, done: impl FnOnce(Result<(), SyncFailed>) + Send + 'static) {
        self.on_done_at(self.default_level(), done);
    }

    /// As [`Ticket::on_done`] with a level.
    pub fn on_done_at(&self, level: Level, done: impl FnOnce(Result<(), SyncFailed>) + Send + 'static) {
        self.log.call_when_done(self.position, level, Box::new(done));
        self.log.write_pending();
    }

    /// As [`Ticket::on_done_at`], but only registers `done`: whoever holds the entry's [`crate::Batch`] sees to the write.
    pub fn on_done_deferred(&self, level: Level, done: impl FnOnce(Result<(), SyncFailed>) + Send + 'static) {
        self.log.call_when_done(self.position, level, Box::new(done));
    }
}

impl Ticket {
    /// [`Log::write_pending`].
    pub fn write_pending(&self) {
        self.log.write_pending();
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({})", self.position)
    }
}
