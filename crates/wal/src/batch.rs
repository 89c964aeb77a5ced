//! Entries that come together and are written together.

use crate::{EntryKey, Log, Result, Ticket};
use std::fmt;
use std::sync::Arc;

/// Appends entries that are written when it is dropped, in one piece with whatever else waits then. Nobody is woken before; so those who
/// append first register what is to be done when their entries are safe, and one `write` answers them all. However its holder leaves, the
/// entries are written.
#[must_use = "what is appended through it is written when it is dropped"]
pub struct Batch {
    /// None: somebody else writes.
    log: Option<Arc<Log>>,
}

impl Batch {
    pub(crate) fn new(log: &Arc<Log>) -> Batch {
        Batch { log: Some(Arc::clone(log)) }
    }

    /// As [`Log::append`], but wakes nobody.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub fn append(&mut self, key: &EntryKey<'_>, run: &[u8], count: usize) -> Result<Ticket> {
        self.log.as_ref().expect("the log stays until the batch ends").append_deferred(key, run, count)
    }

    /// Ends the batch without writing: its entries are safe already, or they belong to a larger one, whose holder writes them.
    pub fn leave_pending(mut self) {
        self.log = None;
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if let Some(log) = &self.log {
            log.write_pending();
        }
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("is_left", &self.log.is_none()).finish()
    }
}
