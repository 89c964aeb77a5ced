//! The master of a standalone server: tables, regions, namespaces, and the procedures that change them.
//!
//! Always true:
//!  1. hbase:meta, hbase:namespace and the descriptor files are the truth; [`cluster::Cluster`] is a picture of them that
//!     is changed after them.
//!  2. DDL is a procedure: on disk before its first step, every step repeatable, one at a time per table.
//!  3. A refusal leaves nothing behind and says HBase's sentence.
//!  4. A store file leaves `data` only for the archive, with proof that nobody needs it where it is, and the archive
//!     only with proof that nobody needs it at all.
//!
//! It talks to its region server through [`RegionHost`] and to files through `fs::Volume`; it must not know what is
//! inside a region. Not here: splitting the logs of earlier lives (the caller does it between [`rootdir::root::prepare`] and
//! [`Master::start`]), the coordination nodes (an [`Observer`] copies states there). Follows HBase's `HMaster`,
//! `MasterRpcServices`, `AssignmentManager`.

mod admin;
mod assignment;
mod catalog;
mod check;
mod chores;
mod cleaner;
mod client_locks;
pub mod cluster;
mod error;
mod files;
mod host;
mod janitor;
mod lifetime;
mod locks;
mod master;
mod master_store;
pub mod meta;
mod meta_writer;
mod metrics;
mod namespaces;
mod procedure;
mod quotas;
mod resolved;
mod servers;
mod service;
pub mod settings;
mod snapshots;
mod start;
mod switches;
mod tables;

pub use cleaner::Cleaned;
pub use error::{ErrorKind, HostError, MasterError, Result};
pub use host::{BoxFuture, LogSplitter, Memory, Observer, RecoveredAtStart, RegionHost, ServerLogs, Unobserved};
pub use master::{Master, MasterEnv};
pub use master_store::StoreError;
#[cfg(feature = "fuzzing")]
pub use procedure::read_record;
pub use procedure::{Caller, Outcome, ProcedureStoreError};
pub use service::{HBASE_VERSION, MasterHandler};
pub use start::StartError;
pub use switches::{Switches, SwitchesError};
