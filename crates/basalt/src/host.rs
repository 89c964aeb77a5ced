//! The region server as the master sees it: the same process, a call away.

use bytes::Bytes;
use cell::CellBuffer;
use master::{HostError, Later, RegionHost};
use model::status::RegionLoad;
use model::{Mutation, RegionInfo, Scan, ServerName, TableDescriptor};
use region::Remedy;
use regionserver::{RegionServer, ServerError};
use std::sync::Arc;

/// A region server in this process.
pub struct LocalHost {
    server: Arc<RegionServer>,
}

impl LocalHost {
    /// The host over `server`.
    pub fn new(server: Arc<RegionServer>) -> LocalHost {
        LocalHost { server }
    }

    /// Runs `work`, which blocks, away from the workers.
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&RegionServer) -> Result<T, ServerError> + Send + 'static,
    ) -> Later<'_, Result<T, HostError>> {
        let server = self.server.clone();
        Box::pin(async move {
            match tokio::task::spawn_blocking(move || work(&server)).await {
                Ok(result) => result.map_err(host_error),
                Err(error) => Err(HostError::Failed(format!("the region server failed inside: {error}"))),
            }
        })
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
        ServerError::NotOnline(_) | ServerError::InTransition(_) => HostError::Failed(error.to_string()),
    }
}

impl RegionHost for LocalHost {
    fn server_name(&self) -> ServerName {
        self.server.name().clone()
    }

    fn open_region(&self, info: RegionInfo, table: Arc<TableDescriptor>) -> Later<'_, Result<u64, HostError>> {
        self.run(move |server| server.open_region(&info, table))
    }

    fn close_region(&self, encoded_name: &str) -> Later<'_, Result<(), HostError>> {
        let name = encoded_name.to_owned();
        self.run(move |server| server.close_region(&name))
    }

    fn flush_region(&self, encoded_name: &str, families: Vec<Bytes>) -> Later<'_, Result<(), HostError>> {
        let name = encoded_name.to_owned();
        self.run(move |server| server.flush_region(&name, families).map(|_| ()))
    }

    fn compact_region(
        &self,
        encoded_name: &str,
        family: Option<Bytes>,
        major: bool,
    ) -> Later<'_, Result<(), HostError>> {
        let name = encoded_name.to_owned();
        self.run(move |server| server.request_compaction(&name, family, major))
    }

    fn split_point(&self, encoded_name: &str) -> Later<'_, Result<Option<Bytes>, HostError>> {
        let name = encoded_name.to_owned();
        self.run(move |server| server.split_point(&name))
    }

    fn split_region_files(
        &self,
        parent: &RegionInfo,
        table: Arc<TableDescriptor>,
        daughters: [RegionInfo; 2],
    ) -> Later<'_, Result<(), HostError>> {
        let parent = parent.clone();
        self.run(move |server| server.split_region_files(&parent, &table, [&daughters[0], &daughters[1]]))
    }

    fn mutate(&self, encoded_name: &str, mutations: Vec<Mutation>) -> Later<'_, Result<(), HostError>> {
        let name = encoded_name.to_owned();
        self.run(move |server| server.mutate(&name, &mutations))
    }

    fn scan(&self, encoded_name: &str, scan: Scan) -> Later<'_, Result<CellBuffer, HostError>> {
        let name = encoded_name.to_owned();
        self.run(move |server| server.scan(&name, &scan))
    }

    fn memory(&self) -> master::Memory {
        let env = self.server.env();
        let used_bytes = env.memory.memstore_bytes() + env.cache.stats().used_bytes;
        master::Memory { used_bytes, max_bytes: self.server.status().memory_budget_bytes }
    }

    fn region_loads(&self) -> Vec<RegionLoad> {
        self.server.status().regions
    }
}

/// Mirrors what the master knows into the nodes that older clients read, and passes on requests to stop.
pub struct Mirror {
    znodes: Arc<coordination::HBaseZnodes>,
    stop: Box<dyn Fn(String) + Send + Sync>,
}

impl Mirror {
    /// The mirror into `znodes`.
    pub fn new(znodes: Arc<coordination::HBaseZnodes>, stop: impl Fn(String) + Send + Sync + 'static) -> Mirror {
        Mirror { znodes, stop: Box::new(stop) }
    }
}

fn report(result: Result<(), coordination::TreeError>) {
    if let Err(error) = result {
        tracing::warn!("a coordination node could not be updated: {error:?}");
    }
}

impl master::Observer for Mirror {
    fn table_state(&self, table: &model::TableName, state: Option<master::cluster::TableState>) {
        use coordination::hbase_znodes::TableState as Node;
        let node = match state {
            None => return report(self.znodes.remove_table(table)),
            Some(master::cluster::TableState::Enabled) => Node::Enabled,
            Some(master::cluster::TableState::Disabled) => Node::Disabled,
            Some(master::cluster::TableState::Disabling) => Node::Disabling,
            Some(master::cluster::TableState::Enabling) => Node::Enabling,
        };
        report(self.znodes.set_table_state(table, node));
    }

    fn namespace(&self, name: &str, configuration: Option<&[(String, String)]>) {
        report(match configuration {
            Some(configuration) => self.znodes.set_namespace(name, configuration),
            None => self.znodes.remove_namespace(name),
        });
    }

    fn stop_requested(&self, whole_cluster: bool) {
        (self.stop)(format!("asked to stop {} by a client", if whole_cluster { "the cluster" } else { "the master" }));
    }
}
