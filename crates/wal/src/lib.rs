//! The write-ahead log: one per server, in HBase's file format, with group commit.
//!
//! Appenders copy their entry into a buffer under one short lock and get a [`Ticket`]; whoever syncs takes the whole buffer,
//! writes and syncs it outside that lock, and all tickets in it are done. Nothing sleeps and nothing runs by
//! itself: a waiter leads a group ([`Ticket::wait`]), whoever has appended a [`Batch`] writes it when no sync is due ([`Log::write_pending`]), or the
//! shell lends a thread ([`Log::run_syncer`]).
//!
//! Always true:
//!  1. A ticket that succeeded at [`Level::Synced`] is on the disk: the file's bytes and its name.
//!  2. The log's order is the order of appends. A region's sequence ids must be appended in growing order.
//!  3. A file whose sync or write failed is never written again. What was not acknowledged moves to a fresh file under the same
//!     ids; when that fails too the log is poisoned, and the server must stop.
//!  4. A full disk is not a failure: entries wait, new ones are refused ([`Error::Full`]), [`Log::sync_once`] tries again.
//!  5. Reading never invents: entries that Basalt wrote carry a checksum that covers their place in the file. Damage before
//!     bytes that are known to have been synced is an error with path and offset; a torn end is the end.
//!  6. What is left of a log is its beginning: an unsynced log goes on in the next file while the one before is being synced, and what a power
//!     failure leaves of the next one counts only if the one before is whole ([`quarantine_orphaned_log`]).
//!  7. A file of a dead server that the log took over ([`Log::adopt_recovered`]) stays until all its edits are in store files or in recovered edits.
//!
//! Must not know: regions, stores, memstores; where regions live (a callback says). Follows `AbstractFSWAL`,
//! `SequenceIdAccounting`, `ProtobufLogWriter`, `AbstractProtobufWALReader`, `WALCellCodec`, `WALSplitter`.

mod accounting;
mod batch;
mod compress;
mod dictionary;
mod error;
mod header;
mod key;
mod log;
mod low_replication;
pub mod marker;
mod options;
mod order;
mod reader;
mod recovered_logs;
mod seal;
pub mod settings;
mod slow_syncs;
mod source;
mod split;
mod ticket;
mod writer;

pub use accounting::SequenceIdAccounting;
pub use batch::Batch;
pub use error::{Error, Result, SyncFailed};
pub use key::{ClusterId, Entry, EntryKey, Key, ReplicationScope};
pub use log::{Inherited, Log, LogFile, LogStats, RegionToFlush, Rolled};
pub use low_replication::LowReplicationOptions;
pub use options::{LogOptions, SyncMode};
pub use order::{Quarantined, quarantine_orphaned_log};
pub use reader::Reader;
pub use recovered_logs::{Gathered, HoldBudget, InheritedEdit, ReadLog, RecoveredLogs, gather};
pub use slow_syncs::SlowSyncOptions;
pub use split::{
    SplitDestination, SplitOptions, SplitReport, SplitTarget, archive_log, recovered_edits, split_directory, split_file,
};
pub use ticket::{Level, Ticket};
pub use writer::FileWriter;
