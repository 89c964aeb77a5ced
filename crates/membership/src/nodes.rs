//! The nodes of a cluster that a member reads.

use bytes::Bytes;
use coordination::hbase_znodes::{
    is_peer_enabled, meta_replica_of, read_cluster_id, read_master, read_meta_location, read_region_server_version,
    read_rpc_throttle,
};
use coordination::{Coordinator, SessionOver};
use model::ServerName;
use parking_lot::RwLock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::task::Poll;

/// The nodes below `zookeeper.znode.parent`.
#[derive(Clone)]
pub struct ClusterNodes {
    coordinator: Arc<dyn Coordinator>,
    parent: Arc<str>,
}

impl ClusterNodes {
    /// The nodes below `parent`.
    pub fn new(coordinator: Arc<dyn Coordinator>, parent: &str) -> ClusterNodes {
        ClusterNodes { coordinator, parent: Arc::from(parent) }
    }

    /// The session.
    pub fn coordinator(&self) -> &Arc<dyn Coordinator> {
        &self.coordinator
    }

    /// Where they are: `/hbase`.
    pub fn parent(&self) -> &str {
        &self.parent
    }

    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.parent)
    }

    /// Waits until the node is there; its value.
    pub(crate) async fn awaited(&self, name: &str) -> Result<Bytes, SessionOver> {
        let path = self.path(name);
        let mut seen = None;
        loop {
            seen = self.coordinator.value_other_than(&path, seen).await?;
            if let Some(value) = &seen {
                return Ok(value.clone());
            }
        }
    }

    /// The active master, once there is one.
    ///
    /// # Errors
    /// The session is over.
    pub async fn active_master(&self) -> Result<ServerName, SessionOver> {
        let path = self.path("master");
        let mut seen = None;
        loop {
            seen = self.coordinator.value_other_than(&path, seen).await?;
            match seen.as_ref().map(read_master) {
                Some(Some(master)) => return Ok(master),
                Some(None) => tracing::error!("the node {path} is not HBase's: look at zookeeper.znode.parent"),
                None => {}
            }
        }
    }

    /// Ends when the cluster goes down: its master has removed the node `running`.
    ///
    /// # Errors
    /// The session is over.
    pub async fn cluster_shutdown(&self) -> Result<(), SessionOver> {
        let path = self.path("running");
        let mut seen = self.coordinator.value(&path).await?;
        while seen.is_some() {
            seen = self.coordinator.value_other_than(&path, seen).await?;
        }
        Ok(())
    }

    /// The name of a replication peer that is enabled, if there is one.
    ///
    /// # Errors
    /// The session is over.
    pub async fn enabled_peer(&self) -> Result<Option<String>, SessionOver> {
        for peer in self.coordinator.children(&self.path("replication/peers")).await? {
            // HBase's way to tell read replicas, which goes another way here.
            if peer == "region_replica_replication" {
                continue;
            }
            let state = self.coordinator.value(&self.path(&format!("replication/peers/{peer}/peer-state"))).await?;
            if state.as_ref().is_none_or(is_peer_enabled) {
                return Ok(Some(peer));
            }
        }
        Ok(None)
    }

    /// The cluster's id, once it is there; `None` where the node is not HBase's.
    ///
    /// # Errors
    /// The session is over.
    pub async fn cluster_id(&self) -> Result<Option<String>, SessionOver> {
        Ok(read_cluster_id(&self.awaited("hbaseid").await?))
    }

    /// Names of the region servers that live.
    ///
    /// # Errors
    /// The session is over.
    pub async fn live_servers(&self) -> Result<Vec<ServerName>, SessionOver> {
        let names = self.coordinator.children(&self.path("rs")).await?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }

    /// Whether quotas of requests count: they do unless the node says that they do not. Follows: `RpcThrottleStorage`, `Bytes#toBoolean`.
    ///
    /// # Errors
    /// The session is over.
    pub(crate) async fn rpc_throttle(&self) -> Result<bool, SessionOver> {
        let value = self.coordinator.value(&self.path("rpc-throttle")).await?;
        Ok(value.is_none_or(|value| read_rpc_throttle(&value)))
    }

    /// The version of a server that lives; `None` where none says one.
    pub(crate) async fn version_of_another(&self) -> Result<Option<String>, SessionOver> {
        for name in self.coordinator.children(&self.path("rs")).await? {
            let value = self.coordinator.value(&self.path(&format!("rs/{name}"))).await?;
            if let Some(version) = value.as_ref().and_then(read_region_server_version) {
                return Ok(Some(version));
            }
        }
        Ok(None)
    }

    /// Keeps `registry` as the nodes are. Ends with the session.
    pub async fn watch(&self, registry: &Registry) -> SessionOver {
        let masters = self.follow("master", |value| *registry.master.write() = value.and_then(read_master));
        let meta =
            self.follow("meta-region-server", |value| *registry.meta.write() = value.and_then(read_meta_location));
        tokio::select! {
            biased;
            over = masters => over,
            over = meta => over,
            over = self.follow_meta_replicas(registry) => over,
        }
    }

    /// Follows: `MetaRegionLocationCache#loadMetaLocationsFromZk`.
    async fn follow_meta_replicas(&self, registry: &Registry) -> SessionOver {
        let mut names = match self.coordinator.children(&self.parent).await {
            Ok(names) => names,
            Err(over) => return over,
        };
        loop {
            let ids: BTreeSet<u32> = names.iter().filter_map(|name| meta_replica_of(name)).collect();
            registry.meta_replicas.write().retain(|id, _| ids.contains(id));
            let mut replicas: Vec<_> = ids.iter().map(|id| Box::pin(self.follow_meta_replica(*id, registry))).collect();
            let any_over = std::future::poll_fn(|context| {
                let over = replicas.iter_mut().find_map(|replica| match replica.as_mut().poll(context) {
                    Poll::Ready(over) => Some(over),
                    Poll::Pending => None,
                });
                over.map_or(Poll::Pending, Poll::Ready)
            });
            let changed = tokio::select! {
                biased;
                changed = self.coordinator.children_other_than(&self.parent, names.clone()) => changed,
                over = any_over => Err(over),
            };
            names = match changed {
                Ok(names) => names,
                Err(over) => return over,
            };
        }
    }

    async fn follow_meta_replica(&self, id: u32, registry: &Registry) -> SessionOver {
        let name = format!("meta-region-server-{id}");
        self.follow(&name, |value| {
            let mut replicas = registry.meta_replicas.write();
            match value.and_then(read_meta_location) {
                Some(server) => drop(replicas.insert(id, server)),
                None => drop(replicas.remove(&id)),
            }
        })
        .await
    }

    async fn follow(&self, name: &str, tell: impl Fn(Option<&Bytes>)) -> SessionOver {
        let path = self.path(name);
        let mut seen = match self.coordinator.value(&path).await {
            Ok(value) => value,
            Err(over) => return over,
        };
        loop {
            tell(seen.as_ref());
            seen = match self.coordinator.value_other_than(&path, seen).await {
                Ok(value) => value,
                Err(over) => return over,
            };
        }
    }
}

/// What clients ask any server of the cluster for, as the nodes had it last.
#[derive(Debug, Default)]
pub struct Registry {
    master: RwLock<Option<ServerName>>,
    meta: RwLock<Option<ServerName>>,
    meta_replicas: RwLock<BTreeMap<u32, ServerName>>,
}

impl Registry {
    /// The active master.
    pub fn master(&self) -> Option<ServerName> {
        self.master.read().clone()
    }

    /// The server that has hbase:meta open.
    pub fn meta(&self) -> Option<ServerName> {
        self.meta.read().clone()
    }

    /// The servers that have read replicas of hbase:meta open, by the replicas' numbers.
    pub fn meta_replicas(&self) -> Vec<(u32, ServerName)> {
        self.meta_replicas.read().iter().map(|(id, server)| (*id, server.clone())).collect()
    }
}
