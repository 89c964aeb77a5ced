//! The region server as the master sees it: in the same process, a call away.

use base::Task;
use bytes::Bytes;
use cell::CellBuffer;
use master::{BoxFuture, HostError, RegionHost};
use model::status::RegionLoad;
use model::{Mutation, RegionInfo, Scan, ServerName, TableDescriptor};
use region::Remedy;
use regionserver::{RegionServer, ServerError};
use std::sync::Arc;

/// How a call to the region server is made: its work blocks.
pub trait Runner: Send + Sync + 'static {
    /// Runs `work` from now on; the answer comes when it is done.
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, HostError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, HostError>>;
}

/// A region server in this process.
pub struct LocalHost<R> {
    server: Arc<RegionServer>,
    runner: Arc<R>,
}

impl<R: Runner> LocalHost<R> {
    /// The host over `server`, whose work is done by `runner`.
    pub fn new(server: Arc<RegionServer>, runner: Arc<R>) -> LocalHost<R> {
        LocalHost { server, runner }
    }

    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&RegionServer) -> Result<T, ServerError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, HostError>> {
        let server = self.server.clone();
        self.runner.run(move || work(&server).map_err(host_error))
    }
}

fn host_error(error: ServerError) -> HostError {
    match &error {
        ServerError::Stopping(_) => HostError::Stopping,
        ServerError::Region(inner) => match inner.remedy() {
            Remedy::Reject => HostError::Refused(error.to_string()),
            Remedy::StopServer => HostError::Stopping,
            Remedy::RetryHere | Remedy::RetryElsewhere => HostError::Failed(error.to_string()),
        },
        ServerError::NotOnline(_) | ServerError::InTransition(_) | ServerError::SnapshotTimeout { .. } => {
            HostError::Failed(error.to_string())
        }
    }
}

impl<R: Runner> RegionHost for LocalHost<R> {
    fn server_name(&self) -> ServerName {
        self.server.name().clone()
    }

    fn open_region(&self, info: RegionInfo, table: Arc<TableDescriptor>) -> BoxFuture<'_, Result<u64, HostError>> {
        self.run(move |server| server.open_region(&info, table))
    }

    fn close_region(&self, encoded_name: &str) -> BoxFuture<'_, Result<(), HostError>> {
        let name = encoded_name.to_owned();
        self.run(move |server| server.close_region(&name))
    }

    fn flush_region(&self, encoded_name: &str, families: Vec<Bytes>) -> BoxFuture<'_, Result<(), HostError>> {
        let name = encoded_name.to_owned();
        self.run(move |server| server.flush_region(&name, families).map(|_| ()))
    }

    fn compact_region(
        &self,
        encoded_name: &str,
        family: Option<Bytes>,
        major: bool,
    ) -> BoxFuture<'_, Result<(), HostError>> {
        let name = encoded_name.to_owned();
        self.run(move |server| server.request_compaction(&name, family, major))
    }

    fn split_point(&self, encoded_name: &str) -> BoxFuture<'_, Result<Option<Bytes>, HostError>> {
        let name = encoded_name.to_owned();
        self.run(move |server| server.split_point(&name))
    }

    fn split_region_files(
        &self,
        parent: &RegionInfo,
        table: Arc<TableDescriptor>,
        daughters: [RegionInfo; 2],
    ) -> BoxFuture<'_, Result<(), HostError>> {
        let parent = parent.clone();
        self.run(move |server| server.split_region_files(&parent, &table, [&daughters[0], &daughters[1]]))
    }

    fn snapshot_region(&self, encoded_name: &str, snapshot: &str, flush: bool) -> BoxFuture<'_, Result<(), HostError>> {
        let (name, snapshot) = (encoded_name.to_owned(), snapshot.to_owned());
        self.run(move |server| server.snapshot_region(&name, &snapshot, flush))
    }

    fn snapshot_closed_region(
        &self,
        info: RegionInfo,
        table: Arc<TableDescriptor>,
        snapshot: &str,
    ) -> BoxFuture<'_, Result<(), HostError>> {
        let snapshot = snapshot.to_owned();
        self.run(move |server| server.snapshot_closed_region(&info, &table, &snapshot))
    }

    fn mutate(&self, encoded_name: &str, mutations: Vec<Mutation>) -> BoxFuture<'_, Result<(), HostError>> {
        let name = encoded_name.to_owned();
        self.run(move |server| server.mutate(&name, mutations))
    }

    fn scan(&self, encoded_name: &str, scan: Scan) -> BoxFuture<'_, Result<CellBuffer, HostError>> {
        let name = encoded_name.to_owned();
        self.run(move |server| server.scan(&name, &scan))
    }

    fn refresh_quotas(&self, refresh: quota::Refresh) {
        self.server.quotas().refresh(&refresh);
    }

    fn refresh_space_quotas(&self, snapshots: quota::TableSnapshots) {
        self.server.space_quotas().refresh(snapshots);
    }

    fn region_sizes(&self) -> Vec<(RegionInfo, u64)> {
        self.server.region_sizes()
    }

    fn switch_rpc_throttle(&self, on: bool) {
        self.server.quotas().switch(on);
    }

    fn memory(&self) -> master::Memory {
        let env = self.server.env();
        let used_bytes = env.memory.memstore_bytes() + env.cache.stats().used_bytes;
        master::Memory { used_bytes, max_bytes: self.server.memory_budget_bytes() }
    }

    fn region_loads(&self) -> Vec<RegionLoad> {
        self.server.status().regions
    }

    fn tasks(&self) -> Vec<Task> {
        self.server.tasks()
    }

    fn user_loads(&self) -> Vec<proto::pb::UserLoad> {
        self.server.user_loads()
    }
}
