//! The master: tables, regions, namespaces, region servers, replication peers, and the procedures that change them.
//!
//! [`Master`] is put together from nouns with few dependencies each: tables, namespaces, assignment, servers, the
//! catalog (the way to hbase:meta), peers, switches, and the engine of procedures. What clients ask for begins in
//! `admin.rs` or `service/` and is done in `procedure/`, a file for each kind.
//!
//! Always true:
//!  1. hbase:meta, hbase:namespace and the descriptor files are the truth; [`cluster::Cluster`] is a picture of them
//!     that is changed after them.
//!  2. What has several steps is a procedure: on disk before its first step, every step repeatable, its locks held
//!     until its end is on disk; DDL is one at a time per table.
//!  3. No region of a server that crashed is opened before the server's logs are split.
//!  4. A refusal leaves nothing behind and says HBase's sentence.
//!  5. A store file leaves `data` only for the archive, with proof that nobody needs it where it is, and the archive
//!     only with proof that nobody needs it at all.
//!
//! It talks to region servers, by name, through [`RegionHost`], and to files through `fs::Volume`; it must not know
//! what is inside a region. Not here: splitting logs (those of earlier runs are split between
//! [`rootdir::root::prepare`] and [`Master::start`], those of a server that crashes by a [`LogSplitter`]), the
//! coordination nodes (an [`Observer`] copies states there). Follows HBase's `HMaster`, `MasterRpcServices`,
//! `AssignmentManager`.

mod admin;
mod assignment;
mod balancing;
mod catalog;
mod check;
mod chores;
mod cleaner;
mod client_locks;
pub mod cluster;
pub mod consistency;
mod error;
mod files;
mod groups;
mod handover;
pub mod hbck;
pub mod healing;
mod host;
mod janitor;
mod latch;
mod lifetime;
mod locality;
mod locks;
mod master;
mod master_state;
mod master_store;
pub mod meta;
mod meta_writer;
mod metrics;
mod namespaces;
mod normalizer;
mod peers;
mod procedure;
mod quotas;
mod reports;
mod resolved;
mod servers;
mod service;
pub mod settings;
mod slow_log;
mod snapshot_sizes;
mod snapshots;
mod start;
mod switches;
mod tables;
mod takeover;
mod trackers;
mod views;

pub use balancing::LastRun;
pub use cleaner::Cleaned;
pub use error::{ErrorKind, HostError, MasterError, Result};
pub use files::off_worker;
pub use groups::{GroupMapping, NoGroupMapping};
pub use host::{
    BoxFuture, Inherited, LogSplitter, Memory, Observer, PeerNodes, RecoveredAtStart, RegionHost, ServerLogs,
    Unobserved,
};
pub use latch::Latch;
pub use locality::{DEFAULT_RACK, OneRack, RackMapping};
pub use master::{Master, MasterEnv};
pub use master_store::StoreError;
pub use peers::PeersError;
pub use procedure::for_hbase::{ForHBase, Order};
#[cfg(feature = "fuzzing")]
pub use procedure::read_record;
pub use procedure::{Caller, Outcome, ProcedureStoreError};
pub use service::{HBASE_VERSION, MasterHandler};
pub use snapshot_sizes::SnapshotSizes;
pub use start::{StartError, Starting};
pub use switches::{Switches, SwitchesError};
pub use views::{GroupOfServers, HeldLock, Views};
