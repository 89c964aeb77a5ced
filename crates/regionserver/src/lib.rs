//! The region server: ClientService and AdminService over the regions that are open here, and the background work
//! that keeps them healthy (flushes, compactions, log rolls, leases).
//!
//! Always true:
//!  1. A call that memory can answer is answered on the connection's worker; one that must read or write a file runs on
//!     the blocking pool. No worker waits for a disk.
//!  2. A write is acknowledged only after the log did what its durability asks; no lock is held meanwhile.
//!  3. A region is in the map of online regions from the end of its opening to the beginning of its closing.
//!
//! Must not know: the master's insides (it calls [`RegionServer`]'s public methods), ZooKeeper, sockets. Follows:
//! `HRegionServer`, `RSRpcServices`, `MemStoreFlusher`, `CompactSplit`.

mod background;
mod blocking;
mod bulk_load;
mod endpoints;
mod errors;
mod handlers;
mod idle_scanners;
mod keys;
mod large_writes;
mod lease;
mod lifecycle;
mod load_report;
mod maintenance;
mod memory;
mod metrics;
mod nonces;
mod online;
mod operations;
mod orders;
mod pressure;
mod region_requests;
mod replicas;
mod resolved;
mod rpc_quotas;
mod scanners;
mod server;
mod sessions;
pub mod settings;
mod slow_log;
mod snapshot;
mod space_quotas;
mod staffing;
mod status;
mod stop_signal;
mod traces;
mod users;
mod views;
mod volumes;
mod work_queue;

pub use bulk_load::BulkLoadFiles;
pub use errors::exception_of;
pub use handlers::RegionService;
pub use keys::sampler as key_sampler;
pub use lease::ServeLease;
pub use lifecycle::OpenedRegion;
pub use load_report::LoadReports;
pub use memory::ledger;
pub use orders::{MasterReports, Orders, QuotaSource, Report};
pub use replicas::{ReplicaEntries, ReplicaSender, ReplicaSource, StoreFileRefresher, WaitingReplica};
pub use rpc_quotas::RpcQuotas;
pub use server::{ReadConfig, RegionServer, RegionServerParts, ServerError, SplitRequests};
pub use slow_log::slow_log;
pub use space_quotas::SpaceQuotas;
pub use status::ServerStatus;
pub use views::RunningWork;
