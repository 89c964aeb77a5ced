//! The region server as the master sees it, with a pause before and after each call, in which clients go on: a step of a
//! procedure takes time.

use crate::trace::Trace;
use base::Dice;
use bytes::Bytes;
use cell::CellBuffer;
use master::{HostError, Later, RegionHost};
use model::status::RegionLoad;
use model::{Mutation, RegionInfo, Scan, ServerName, TableDescriptor};
use region::Remedy;
use regionserver::{RegionServer, ServerError};
use std::sync::Arc;
use std::time::Duration;

/// A region server a call away.
pub struct Host {
    server: Arc<RegionServer>,
    dice: Arc<Dice>,
    trace: Arc<Trace>,
}

impl Host {
    /// The host over `server`; `dice` say how long calls take.
    pub fn new(server: Arc<RegionServer>, dice: Arc<Dice>, trace: Arc<Trace>) -> Host {
        Host { server, dice, trace }
    }

    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&RegionServer) -> Result<T, ServerError> + Send + 'static,
    ) -> Later<'_, Result<T, HostError>> {
        Box::pin(async move {
            self.pause().await;
            let result = work(&self.server).map_err(host_error);
            if let Err(error) = &result {
                self.trace.note(&format!("the region server refuses: {error}"));
            }
            self.pause().await;
            result
        })
    }

    async fn pause(&self) {
        if self.dice.one_in(4) {
            tokio::time::sleep(Duration::from_millis(self.dice.below(6))).await;
        }
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

impl RegionHost for Host {
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

    fn region_loads(&self) -> Vec<RegionLoad> {
        self.server.status().regions
    }
}
