//! What the master needs of a region server, and whom it tells of changes. The binary implements both; the master
//! knows nothing of their insides.

use crate::HostError;
use crate::cluster::{NamespaceConfiguration, RegionState, TableState};
use base::Task;
use bytes::Bytes;
use cell::CellBuffer;
use model::status::RegionLoad;
use model::{Mutation, RegionInfo, Scan, ServerName, TableDescriptor, TableName};
use proto::pb;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;

/// An answer that comes later.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Memory of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// In use.
    pub used_bytes: u64,
    /// To be used at most.
    pub max_bytes: u64,
}

/// A region server, as its master sees it. The master knows it by [`RegionHost::server_name`].
pub trait RegionHost: Send + Sync + 'static {
    /// Its name in this life.
    fn server_name(&self) -> ServerName;
    /// Opens a region; its directory is made where it is missing. Opening an open region (with the same descriptor) is
    /// no error. Answers the sequence number that the region opened at.
    fn open_region(&self, info: RegionInfo, table: Arc<TableDescriptor>) -> BoxFuture<'_, Result<u64, HostError>>;
    /// Flushes and closes a region; nothing happens when it is not open.
    fn close_region(&self, encoded_name: &str) -> BoxFuture<'_, Result<(), HostError>>;
    /// Writes a region's memstores out; no families means all.
    fn flush_region(&self, encoded_name: &str, families: Vec<Bytes>) -> BoxFuture<'_, Result<(), HostError>>;
    /// Asks for a compaction; does not wait for it.
    fn compact_region(
        &self,
        encoded_name: &str,
        family: Option<Bytes>,
        major: bool,
    ) -> BoxFuture<'_, Result<(), HostError>>;
    /// The row that would split an open region evenly; `None` when it is too small or may not be split (references).
    fn split_point(&self, encoded_name: &str) -> BoxFuture<'_, Result<Option<Bytes>, HostError>>;
    /// Writes the daughters' directories with references to the files of `parent`, which is closed. May be repeated.
    fn split_region_files(
        &self,
        parent: &RegionInfo,
        table: Arc<TableDescriptor>,
        daughters: [RegionInfo; 2],
    ) -> BoxFuture<'_, Result<(), HostError>>;
    /// Writes the names of an open region's store files into the working directory of a snapshot, after a flush if it is to have one. May
    /// be repeated.
    fn snapshot_region(&self, encoded_name: &str, snapshot: &str, flush: bool) -> BoxFuture<'_, Result<(), HostError>>;
    /// The same of a region that is open nowhere.
    fn snapshot_closed_region(
        &self,
        info: RegionInfo,
        table: Arc<TableDescriptor>,
        snapshot: &str,
    ) -> BoxFuture<'_, Result<(), HostError>>;
    /// Writes to a region of hbase:meta or hbase:namespace, durably: all of `mutations` or none, in one log entry.
    fn mutate(&self, encoded_name: &str, mutations: Vec<Mutation>) -> BoxFuture<'_, Result<(), HostError>>;
    /// Reads such a region.
    fn scan(&self, encoded_name: &str, scan: Scan) -> BoxFuture<'_, Result<CellBuffer, HostError>>;
    /// The newest slow calls, and then calls with large answers, that the server keeps: so many of each at most.
    fn slow_calls(&self, most: u32) -> BoxFuture<'_, Result<Vec<pb::SlowLogPayload>, HostError>> {
        let _ = most;
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
    /// What hbase:quota says now, which is what its calls are limited by from now on.
    fn refresh_quotas(&self, _refresh: quota::Refresh) {}
    /// How tables stand to their quotas of space, which it holds them to from now on.
    fn refresh_space_quotas(&self, _snapshots: quota::TableSnapshots) {}
    /// Bytes of the store files of each open region. One whose server reports by itself is not asked.
    fn region_sizes(&self) -> Vec<(RegionInfo, u64)> {
        Vec::new()
    }
    /// Whether its calls are limited at all.
    fn switch_rpc_throttle(&self, _on: bool) {}
    /// Has a server of another process read hbase:quota anew. Done when it has.
    fn order_quotas(&self) -> BoxFuture<'_, Result<(), HostError>> {
        Box::pin(std::future::ready(Ok(())))
    }
    /// The same as [`RegionHost::switch_rpc_throttle`] for a server of another process.
    fn order_rpc_throttle(&self, _on: bool) -> BoxFuture<'_, Result<(), HostError>> {
        Box::pin(std::future::ready(Ok(())))
    }
    /// A replication peer has changed: a server of another process reads its nodes anew. Done when it has.
    fn order_peer(&self, _id: &str, _change: pb::PeerModificationType) -> BoxFuture<'_, Result<(), HostError>> {
        Box::pin(std::future::ready(Ok(())))
    }
    /// What each open region holds and does.
    fn region_loads(&self) -> Vec<RegionLoad>;
    /// Whether it is another process, which lives on when this one ends: before it is asked to open a region hbase:meta says so, for the next
    /// master to know.
    fn is_remote(&self) -> bool {
        false
    }
    /// Encoded names of the regions that are open there.
    fn online_regions(&self) -> BoxFuture<'_, Result<BTreeSet<String>, HostError>> {
        Box::pin(std::future::ready(Ok(BTreeSet::new())))
    }
    /// What it reported last, if it reports.
    fn reported_load(&self) -> Option<pb::ServerLoad> {
        None
    }
    /// It is dead: calls that wait for it end.
    fn died(&self) {}
    /// What it is busy with, and was within the last minute. One whose server reports by itself is not asked.
    fn tasks(&self) -> Vec<Task> {
        Vec::new()
    }
    /// What each user's clients read and wrote. One whose server reports by itself is not asked.
    fn user_loads(&self) -> Vec<pb::UserLoad> {
        Vec::new()
    }
    /// Memory in use and to be used at most, for status pages.
    fn memory(&self) -> Memory {
        Memory::default()
    }
}

/// The logs of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerLogs {
    /// That of hbase:meta.
    Meta,
    /// Those of all other regions.
    Others,
}

/// Brings what the logs of a crashed server hold to the directories of its regions, and the logs out of the way.
pub trait LogSplitter: Send + Sync + 'static {
    /// Splits logs; may be repeated. There may be none.
    fn split_logs(&self, server: &ServerName, which: ServerLogs) -> BoxFuture<'_, Result<(), HostError>>;
}

/// In a standalone server no other server can crash while it runs: the logs of earlier ones were recovered before the
/// master started.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecoveredAtStart;

impl LogSplitter for RecoveredAtStart {
    fn split_logs(&self, _server: &ServerName, _which: ServerLogs) -> BoxFuture<'_, Result<(), HostError>> {
        Box::pin(async { Ok(()) })
    }
}

/// What a master of a cluster knows of its region servers before it reads hbase:meta. Nothing where it starts with its only server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inherited {
    /// Where hbase:meta was last, or was on its way to.
    pub meta_location: Option<ServerName>,
    /// Read replicas of hbase:meta that were somewhere or on their way, by their numbers.
    pub meta_replicas: Vec<(u32, ServerName, RegionState)>,
    /// Servers that live no more and have left logs.
    pub dead: Vec<ServerName>,
    /// What the nodes of groups of region servers hold: HBase's `RSGroupInfo` each.
    pub groups: Vec<Bytes>,
    /// Replication peers by their ids, as their nodes have them, where HBase's master keeps them. `None` where no nodes were read.
    pub peers: Option<BTreeMap<String, PeerNodes>>,
}

/// What the coordination nodes of a replication peer hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerNodes {
    /// Of `replication/peers/<id>`: HBase's `ReplicationPeer`.
    pub config: Bytes,
    /// Of `replication/peers/<id>/peer-state`: HBase's `ReplicationState`.
    pub state: Bytes,
}

/// Told of what others keep a copy of (coordination nodes) and of requests to stop. Called without locks held; must
/// not block.
pub trait Observer: Send + Sync + 'static {
    /// A table has this state now; `None` when it is gone.
    fn table_state(&self, _table: &TableName, _state: Option<TableState>) {}
    /// A namespace has this configuration now; `None` when it is gone.
    fn namespace(&self, _name: &str, _configuration: Option<&NamespaceConfiguration>) {}
    /// hbase:meta is on that server now, or on its way there.
    fn meta_location(&self, _server: &ServerName, _is_open: bool) {}
    /// Ends when whoever is the master next reads that hbase:meta is on `server`, or on its way there, as [`Observer::meta_location`] has said.
    ///
    /// # Errors
    /// It cannot be said, and this process is the master no more.
    fn meta_location_is_kept<'a>(&'a self, _server: &'a ServerName) -> BoxFuture<'a, std::result::Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }
    /// Read replica `id` of hbase:meta is on that server now, in that state; `None` when there is no such replica any more.
    fn meta_replica(&self, _id: u32, _at: Option<(&ServerName, RegionState)>) {}
    /// A server gets no regions from now on, or gets some again.
    fn draining(&self, _server: &ServerName, _on: bool) {}
    /// Quotas of requests count from now on, or do not.
    fn rpc_throttle(&self, _on: bool) {}
    /// A replication peer has these nodes now; `None` when it is gone.
    fn peer(&self, _id: &str, _nodes: Option<&PeerNodes>) {}
    /// A group of region servers is so now, as its znode has it; `None` when it is gone.
    fn region_server_group(&self, _name: &str, _node: Option<&[u8]>) {}
    /// A client asked to stop the master, or the whole cluster.
    fn stop_requested(&self, _whole_cluster: bool) {}
}

/// An observer that does nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}
