//! A region server's membership in a cluster whose master is another process, HBase's own or another: how it finds the master, is let in,
//! reports, reads its quotas, and learns that it is to end.
//!
//! Always true:
//!  1. Everything about the cluster is learned from the coordination nodes and from the master's answers; the name under which the master
//!     knows this server is the one that it answered.
//!  2. A report is tried until a master has answered it, over failovers of any length. What a master refuses is never taken for done.
//!  3. Whoever runs the server is told at once when it must end: the session is over, or the master takes it for dead. Nothing may be served then.
//!
//! Must not know: regions, files, how a server is made. Follows: `HRegionServer#reportForDuty`, `#tryRegionServerReport`,
//! `#reportRegionStateTransition`.

mod join;
mod lease;
mod link;
mod nodes;
mod quotas;
mod registry;
mod replicas;
mod report;
mod reporter;
pub mod settings;
#[cfg(test)]
mod tests;

pub use join::{Admitted, Candidate, JoinError, join};
pub use lease::{keep_lease, lease_term};
pub use link::{LinkError, MasterLink};
pub use nodes::{ClusterNodes, Registry};
pub use quotas::QuotaReader;
pub use registry::RegistryService;
pub use replicas::{Asked, ReplicaRoutes, ReplicaShipper};
pub use report::{Expelled, keep_reporting};
pub use reporter::Reporter;
