//! `fs::Volume` on HDFS.
//!
//! Always true:
//!  1. No call waits for ever: threads that may block hand their work to the client's own, and fail where it has no answer within the
//!     deadline.
//!  2. A file's directory is never made by the way: `create` fails where the directory is gone. A server whose log directory was
//!     renamed by the one that took its work over can make no new log.
//!  3. What `flush` acknowledged (hflush) is in the memory of every DataNode of the pipeline, what `sync` did (hsync) on their disks.
//!     Neither is lost with the process that wrote it: [`fs::Volume::settle`] recovers the file's lease and with it the bytes.
//!  4. An appender that failed once refuses every further call. A file whose appender is gone is closed, or its lease is recovered by
//!     who opens it next.
//!
//! Must not know: HBase; what the files mean.

mod appender;
mod bridge;
mod error;
mod location;
mod lock;
mod reader;
mod volume;

pub use location::{Location, LocationError};
pub use lock::{RootLock, lock_root};
pub use volume::{HdfsVolume, Settings};
