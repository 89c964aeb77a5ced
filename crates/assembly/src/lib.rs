//! The composition root: a master and a region server in one process, how they are started and stopped ([`Node`]), how the one calls the
//! other, which service answers where ([`Services`]), and how logs are recovered before both start. The binary and the simulator share it, so that what is tested is what runs.
//!
//! Always true:
//!  1. Regions open only when the logs of earlier servers were read.
//!  2. The master keeps the region server, never the reverse: a node that was stopped and dropped is gone.
//!
//! Must not know: threads, sockets, signals. Who runs work that blocks ([`Runner`]), who syncs the logs ([`Syncer`]) and who is told of
//! changes is handed in.

mod fence;
mod host;
mod member;
mod node;
mod recovery;
mod server;
mod services;
pub mod znodes;

pub use host::{LocalHost, Runner};
pub use member::{Member, MemberParts};
pub use node::{Node, NodeError, OnRegionServer, Parts, StopError, Syncer};
pub use recovery::{ForEach, Recovered, Recovery, recover_logs};
pub use services::{MasterPort, RegionServerPort, Services, local_servers};
