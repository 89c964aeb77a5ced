//! The region: one key range of a table. Memstores, store files, flush, compaction, MVCC, row locks, reads, writes,
//! files loaded in bulk, large values in MOB files.
//!
//! A write is put into the server's log and into the memstores under its row's lock and comes back as a [`Commit`]: not
//! yet visible. The caller waits for the log as the write's durability asks and completes the commit. A read pins what
//! it reads and sees one moment of the region, whatever happens meanwhile.
//!
//! Always true:
//!  1. Sequence ids grow, over re-openings too; the log sees a region's ids in order.
//!  2. A cell is visible only when the log has it as surely as its writer asked, and all cells of an entry at once.
//!  3. A store's files and memstore together hold every edit; each change of what they are is published in one step.
//!     A file is named to readers only when it and its directory entry are durable.
//!  4. What a read returns does not depend on when flushes and compactions ran, except where HBase's own rules say so
//!     (what a delete marker hides stays hidden until a major compaction drops the marker).
//!  5. Nobody holds a row lock or the update lock while waiting for the disk, but for the read of a value that is not
//!     in memory and could not be brought there in some attempts.
//!  6. Writes of one row that the server stamps are read in the order of their commits, unless HBase's semantics are asked for.
//!
//! Parts: [`Region`] is what a server asks, and does nothing itself. What an open region is lies in `core::RegionCore` (names, stores, the
//! sequencer, locks, counts); the parts over it are `open::OpenRegion`, `write::Writer`, `scan::open::RegionReader`, `flush::Flusher`,
//! `compact::Compactor` with `compact::RetiredFiles`, `new_file::FileWriter`, `replay::Replayer`, `bulk_load::BulkLoader` and
//! [`Splitter`]. Each borrows the core for one call and keeps nothing; none knows the face.
//!
//! No threads, clock, randomness or files of its own: [`RegionEnv`] hands them in. Must not know: the network, clients, other
//! regions, when to flush or compact (it says what it wants; the server decides). Follows: `HRegion`, `HStore`.

mod accounting;
pub mod backpressure;
mod bulk_load;
mod close;
mod commit;
mod compact;
mod core;
mod deleted_families;
mod directories;
mod env;
mod error;
mod flush;
mod flush_policy;
mod flushed;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod key_histogram;
mod marker;
mod mob;
pub mod mvcc;
mod new_file;
mod open;
mod outbox;
mod prefetch;
mod recovered_files;
mod region;
mod replay;
mod replica;
pub mod row_lock;
mod row_reads;
mod scan;
mod sequencer;
pub mod settings;
pub mod snapshot;
pub mod split;
mod stats;
mod store;
mod store_file;
mod stripes;
mod ticks;
mod tracker;
mod write;

pub use bulk_load::{BulkLoad, BulkLoaded, LoadFile, Place};
pub use close::CloseMode;
pub use commit::Commit;
pub use compact::{CompactionJob, CompactionKind, CompactionOutcome, Throttle, Unthrottled};
pub use directories::RegionDirectories;
pub use env::{MemoryMeter, RegionEnv};
pub use error::{ErrorKind, RegionError, Remedy, Result};
pub use flush::{FlushOutcome, FlushReason, FlushRequest};
pub use flushed::flushed_seq_ids;
pub use key_histogram::{KeyHistogram, KeyPart};
pub use key_statistics::KeySampler;
pub use memstore::{prefault_chunks, release_pooled_chunks, set_chunk_pool_limit, wake_prefaulters};
pub use mob::MobStats;
pub use mob::clean::clean_mob_files;
pub use open::OpenRegion;
pub use outbox::{Outbox, Outgoing};
pub use region::{RecoveredNonce, Region};
pub use scan::limits::{Limits, Progress, Reason, estimated_bytes};
pub use scan::region_scanner::RegionScanner;
pub use settings::RegionSettings;
pub use split::Splitter;
pub use stats::{FileStats, FileTimes, RegionStats, StoreStats};
pub use store_file::{StoreFile, reference_bytes};
pub use ticks::RecentTicks;
pub use write::{Applied, Checked, WritePace, Written, effort_units};
