//! What region servers of other processes tell the master without having been asked. What was asked for is answered to who asked
//! ([`RegionHost`](crate::RegionHost)).

use crate::Result;
use crate::chores;
use crate::cluster::{RegionState, TableState};
use crate::host::RegionHost;
use crate::master::Master;
use crate::procedure::{Caller, region_locks};
use bytes::Bytes;
use model::ServerName;
use std::sync::Arc;

impl Master {
    /// A server takes regions from now on; false where it is known already, or to be dead.
    pub fn server_joined(self: &Arc<Self>, host: Arc<dyn RegionHost>) -> bool {
        let is_new = self.servers.add(host);
        if is_new {
            // Perhaps regions wait for a server of their group.
            chores::wake_failed_opens(self);
            // Read replicas are to be opened by racks before the balancer asks for them.
            let master = Arc::clone(self);
            tokio::spawn(async move { master.localities.find_racks(&master.servers.names()).await });
        }
        is_new
    }

    /// These masters wait to lead, by name.
    pub fn set_backup_masters(&self, names: Vec<ServerName>) {
        *self.backup_masters.write() = names;
    }

    /// Somebody else has said that a server gets no regions from now on, or gets some again: an earlier master, or who wrote the node.
    pub fn set_draining(&self, server: &ServerName, draining: bool) {
        if self.servers.set_draining(server, draining) {
            let what = if draining { "gets no regions any more" } else { "gets regions again" };
            tracing::info!("{server} {what}");
        }
    }

    /// Whether that server is where the region is, or is to be opened. A server may serve a region only if so.
    pub fn has_region_on(&self, encoded_name: &str, server: &ServerName) -> bool {
        let cluster = self.cluster.read();
        let node = cluster.region(encoded_name);
        let moves = |state| matches!(state, RegionState::Open | RegionState::Opening | RegionState::Closing);
        node.is_some_and(|node| moves(node.state) && node.location.as_ref() == Some(server))
    }

    /// Whether hbase:meta was read: before that, where regions are is not known.
    pub fn knows_regions(&self) -> bool {
        self.meta_loaded.is_set()
    }

    /// A server closed a region that was open for all that is known here, as an earlier master had ordered: it is opened again. The report may
    /// have been on its way for long, and the region be open there again since: the server closes it first, if it has it.
    ///
    /// # Errors
    /// It cannot be opened now, or hbase:meta cannot be written; the server has died meanwhile.
    pub async fn region_closed_unasked(self: &Arc<Self>, encoded_name: &str, server: &ServerName) -> Result<()> {
        // It may have been deleted since, with its table.
        let Ok(info) = self.assignment.known_region(encoded_name) else { return Ok(()) };
        let _locks = self.procedures.locks.lock(region_locks(std::slice::from_ref(&info))).await;
        let (is_there, serves) = {
            let cluster = self.cluster.read();
            let node = cluster.region(encoded_name);
            let is_there = node.is_some_and(|node| {
                node.state == RegionState::Open && node.is_live() && node.location.as_ref() == Some(server)
            });
            (is_there, cluster.state(&info.table) == Some(TableState::Enabled))
        };
        if !is_there {
            return Ok(());
        }
        // Who recovers a dead server opens what it had.
        let Ok(host) = self.servers.get(server) else { return Ok(()) };
        tracing::warn!(region = %info.name_string(), %server, "closed by an order of an earlier master: it is opened again");
        self.assignment.close_on(&*host, &info).await?;
        self.assignment.record_closed(&info).await?;
        if serves { self.assignment.assign(vec![info]).await } else { Ok(()) }
    }

    /// A server asks for a region to be split.
    ///
    /// # Errors
    /// As [`Master::split_region`].
    pub async fn split_asked(self: &Arc<Self>, encoded_name: &str, row: Bytes) -> Result<()> {
        self.split_region(encoded_name, Some(row), &Caller::default()).await.map(drop)
    }
}
