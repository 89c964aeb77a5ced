//! How a server tells its master what became of an order.

use proto::pb;
use std::pin::Pin;

/// Done when a master has taken it; an error is its refusal, or that there is no way to a master any more.
pub type Report<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// The way to whoever is master.
pub trait MasterReports: Send + Sync + 'static {
    /// A region was opened, was not, or was closed; or is to be split.
    fn region_transition(&self, transition: pb::RegionStateTransition) -> Report<'_>;

    /// A procedure of the master's has ended here.
    fn procedure_done(&self, result: pb::RemoteProcedureResult) -> Report<'_>;
}

/// Whoever reads hbase:quota for a server whose master is another process.
pub trait QuotaSource: Send + Sync + 'static {
    /// Reads it anew. Done when calls are limited by what it says now; an error says why they are not.
    fn reload(&self) -> Report<'_>;
}
