//! Files, behind one trait: the local disk in the server, several disks under one tree of names, a faulty memory in tests.
//!
//! Always true:
//!  1. Paths are [`FilePath`]s: relative to the volume's root, `/`-separated, no `.` or `..`, never absolute.
//!  2. Nothing is durable until it is synced: a file's bytes by [`Appender::sync`], a directory's entries (creation,
//!     rename, removal) by [`Volume::sync_dir`]. The memory volume forgets the rest at a crash, and tests live on that.
//!  3. After a failed [`Appender::sync`] nobody knows which bytes are on the disk; the appender refuses to go on.
//!  4. Every error names the operation and the path.
//!  5. What differs between volumes is data ([`Capabilities`]) or a hint that may be left out ([`hints`]): there is one way through the
//!     storage crates.
//!
//! Must not know: HBase. What the files mean is the business of `hfile`, `wal` and `region`.

mod below;
mod blocks;
mod error;
pub mod hints;
pub mod local;
pub mod mem;
mod path;
mod placement;
mod slow;
pub mod tiered;
mod volume;

pub use below::Below;
pub use blocks::{BlockHosts, FilePart, HostBytes, LOCALHOST, Replica};
pub use error::{Error, RemoteFailure, Result};
pub use hints::{AppendHints, Behind, Copies, HedgedReads, ReadHints, VolumeHints};
pub use local::{DirectoryLock, LocalVolume};
pub use mem::{CrashPolicy, FaultKind, MemVolume};
pub use path::FilePath;
pub use placement::{FileKind, Placement};
pub use slow::{SlowVolume, Trouble};
pub use tiered::TieredVolume;
pub use volume::{Appender, Capabilities, DirEntry, ReadAt, Settled, TEMPORARY_PREFIX, Volume, publish_all, sync_dirs};
