//! What can go wrong with a log.

use fs::FilePath;
use std::sync::Arc;

/// Result of a log operation.
pub type Result<T> = std::result::Result<T, Error>;

/// A failed log operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file operation failed.
    #[error(transparent)]
    Io(#[from] fs::Error),
    /// Bytes of a log file are not what they must be, and it is not its torn end.
    #[error(
        "{path} is damaged at offset {offset}: {what}; set the file aside or restore it, entries from there on are unread"
    )]
    Corrupt {
        /// The file.
        path: FilePath,
        /// Where the entry that cannot be read begins.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// The file needs something that Basalt does not do.
    #[error("{path} cannot be read: {what}")]
    Unsupported {
        /// The file.
        path: FilePath,
        /// What it needs.
        what: String,
    },
    /// The disk is full: nothing was appended. Goes on by itself when there is room and [`crate::Log::sync_once`] is called.
    #[error(
        "the log cannot grow because the disk is full; free some space (waiting to be written: {waiting_bytes} bytes)"
    )]
    Full {
        /// Bytes in memory that wait for room.
        waiting_bytes: u64,
    },
    /// Too much waits to be synced: nothing was appended; try again soon.
    #[error("{waiting_bytes} bytes of log wait to be synced, the limit is {limit_bytes}; try again")]
    Busy {
        /// Bytes appended and not yet synced.
        waiting_bytes: u64,
        /// [`crate::LogOptions::max_waiting_bytes`].
        limit_bytes: u64,
    },
    /// The log has failed for good; the server must stop.
    #[error(transparent)]
    Failed(#[from] SyncFailed),
    /// The file may still be written to by the process that is said to be dead; to be tried again in a while.
    #[error("{path} is not settled yet: its last writer has not been shut out; try again")]
    Unsettled {
        /// The file.
        path: FilePath,
    },
    /// The log was closed.
    #[error("the log in {dir} is closed")]
    Closed {
        /// The log's directory.
        dir: FilePath,
    },
}

impl Error {
    pub(crate) fn corrupt(path: &FilePath, offset: u64, what: impl Into<String>) -> Error {
        Error::Corrupt { path: path.clone(), offset, what: what.into() }
    }

    /// Whether the disk is full.
    pub fn is_full(&self) -> bool {
        match self {
            Error::Full { .. } => true,
            Error::Io(e) => e.is_full(),
            Error::Failed(e) => e.is_full(),
            _ => false,
        }
    }
}

/// Why an entry is not known to be durable. The entry's fate is open: it may be on the disk and come back at recovery, so
/// a client must not be told that its write did not happen. Cheap to clone.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the log could not be made durable{}: {message}", if *.full { "" } else { "; the server must stop and recover" })]
pub struct SyncFailed {
    message: Arc<str>,
    full: bool,
}

impl SyncFailed {
    pub(crate) fn new(message: impl Into<Arc<str>>) -> SyncFailed {
        SyncFailed { message: message.into(), full: false }
    }

    pub(crate) fn disk_full(message: impl Into<Arc<str>>) -> SyncFailed {
        SyncFailed { message: message.into(), full: true }
    }

    /// Whether the disk is only full. Then the entry is still waiting and the ticket can be waited for again; otherwise
    /// the log is poisoned.
    pub fn is_full(&self) -> bool {
        self.full
    }
}
