//! The nodes that HBase's clients and servers look for, with HBase's bytes in them.
//!
//! A value is `FF idLen(4) id payload`: the id names the writing process and ends in 8 random bytes; the payload is
//! `PBUF` and a message, but for namespaces, whose message stands bare. Some clients insist on the prefix, so it is
//! always written. Follows `RecoverableZooKeeper#appendMetaData`, `ZNodePaths`.

use crate::store::ZnodeStore;
use crate::tree::TreeError;
use base::Rng;
use bytes::{BufMut, Bytes, BytesMut};
use convert::to_proto;
use model::{ServerName, TableName};
use proto::{Message, magic, pb};
use std::collections::BTreeMap;
use std::sync::Arc;

/// First byte of a value that has a prefix.
const PREFIX_MAGIC: u8 = 0xFF;
/// Random bytes behind the writer's name.
const SALT_BYTES: usize = 8;

/// State of a table as clients of version 1.x read it.
pub use proto::pb::deprecated_table_state::State as TableState;
/// State of the region of hbase:meta.
pub use proto::pb::region_state::State as RegionState;

/// Writes HBase's nodes. Cheap to clone.
#[derive(Clone)]
pub struct HBaseZnodes {
    tree: Arc<dyn ZnodeStore>,
    parent: Arc<str>,
    writer: Arc<str>,
    rng: Arc<Rng>,
}

/// `FF idLen(4) writer salt(8) payload`.
pub fn with_prefix(writer: &str, salt: [u8; SALT_BYTES], payload: &[u8]) -> Bytes {
    let id_len = writer.len() + SALT_BYTES;
    let mut out = BytesMut::with_capacity(5 + id_len + payload.len());
    out.put_u8(PREFIX_MAGIC);
    out.put_u32(u32::try_from(id_len).expect("a process name is short"));
    out.put_slice(writer.as_bytes());
    out.put_slice(&salt);
    out.put_slice(payload);
    out.freeze()
}

/// The payload of a value with or without the prefix; `None` where the prefix is cut short.
pub fn strip_prefix(value: &Bytes) -> Option<Bytes> {
    if value.first() != Some(&PREFIX_MAGIC) {
        return Some(value.clone());
    }
    let id_len = u32::from_be_bytes(*value.get(1..)?.first_chunk::<4>()?) as usize;
    let start = id_len.checked_add(5)?;
    (start <= value.len()).then(|| value.slice(start..))
}

/// The master that a value of the node `master` names; `None` where it is not HBase's.
pub fn read_master(value: &Bytes) -> Option<ServerName> {
    let node = magic::decode::<pb::Master>(&strip_prefix(value)?)?.ok()?;
    convert::from_proto::server_name(&node.master).ok()
}

/// Path and value of the node of a live region server: `rs/host,port,startcode` below `parent`.
pub fn region_server_node(
    parent: &str,
    server: &ServerName,
    info_port: Option<u16>,
    version_info: Option<pb::VersionInfo>,
    salt: [u8; SALT_BYTES],
) -> (String, Bytes) {
    let node = pb::RegionServerInfo { info_port: Some(info_port.map_or(-1, i32::from)), version_info };
    let writer = format!("regionserver:{}", server.port);
    (format!("{parent}/rs/{server}"), with_prefix(&writer, salt, &magic::encode(&node)))
}

/// The version that a region server says it has in its node's value; `None` where it says none.
pub fn read_region_server_version(value: &Bytes) -> Option<String> {
    let node = magic::decode::<pb::RegionServerInfo>(&strip_prefix(value)?)?.ok()?;
    Some(node.version_info?.version).filter(|version| !version.is_empty())
}

/// The id in a value of the node `hbaseid`; `None` where it is not HBase's.
pub fn read_cluster_id(value: &Bytes) -> Option<String> {
    Some(magic::decode::<pb::ClusterId>(&strip_prefix(value)?)?.ok()?.cluster_id)
}

/// Where a value of the node `meta-region-server` says that hbase:meta is open; `None` where it is on its way, or the value is not HBase's.
pub fn read_meta_location(value: &Bytes) -> Option<ServerName> {
    let node = magic::decode::<pb::MetaRegionServer>(&strip_prefix(value)?)?.ok()?;
    let is_open = node.state.is_none() || node.state == Some(RegionState::Open as i32);
    is_open.then(|| convert::from_proto::server_name(&node.server).ok()).flatten()
}

/// The server that a value of the node `meta-region-server` names, whether hbase:meta is open there or on its way; `None` where the value is
/// not HBase's.
pub fn read_meta_server(value: &Bytes) -> Option<ServerName> {
    let node = magic::decode::<pb::MetaRegionServer>(&strip_prefix(value)?)?.ok()?;
    convert::from_proto::server_name(&node.server).ok()
}

/// The number of the read replica of hbase:meta that a node is of, by the node's name: `meta-region-server-1`. Follows: `ZNodePaths#getMetaReplicaIdFromZNode`.
pub fn meta_replica_of(node: &str) -> Option<u32> {
    let id = node.strip_prefix("meta-region-server-")?;
    id.parse().ok().filter(|number| *number > 0 && id.as_bytes().iter().all(u8::is_ascii_digit))
}

/// Where a value of the node `meta-region-server-<n>` says that a read replica is, and how it stands; `None` where the value is not HBase's.
pub fn read_meta_replica(value: &Bytes) -> Option<(ServerName, RegionState)> {
    let node = magic::decode::<pb::MetaRegionServer>(&strip_prefix(value)?)?.ok()?;
    let state = node.state.map_or(Some(RegionState::Open), |state| RegionState::try_from(state).ok())?;
    Some((convert::from_proto::server_name(&node.server).ok()?, state))
}

/// Whether the node `replication/peers/<id>/peer-state` says that the peer is enabled. What cannot be read counts as enabled.
pub fn is_peer_enabled(value: &Bytes) -> bool {
    let state = strip_prefix(value).and_then(|value| magic::decode::<pb::ReplicationState>(&value)?.ok());
    state.is_none_or(|state| state.state == pb::replication_state::State::Enabled as i32)
}

/// What the node `rpc-throttle` says: whether quotas of requests count. Follows: `Bytes#toBoolean`; what cannot be read leaves them on.
pub fn read_rpc_throttle(value: &Bytes) -> bool {
    strip_prefix(value).is_none_or(|value| *value != [0][..])
}

impl HBaseZnodes {
    /// Nodes below `parent` (`zookeeper.znode.parent`), written by the master that listens on `master_port`.
    pub fn new(tree: Arc<dyn ZnodeStore>, parent: &str, master_port: u16, rng: Arc<Rng>) -> HBaseZnodes {
        let writer = Arc::from(format!("master:{master_port}"));
        HBaseZnodes { tree, parent: Arc::from(parent), writer, rng }
    }

    /// The base node and the empty ones that servers and tools expect. Clients read them from the start.
    ///
    /// # Errors
    /// A parent that is no path.
    pub fn create_base_nodes(&self) -> Result<(), TreeError> {
        self.tree.ensure(&self.parent)?;
        let empty = [
            "backup-masters",
            "draining",
            "flush-table-proc/abort",
            "flush-table-proc/acquired",
            "flush-table-proc/reached",
            "master-maintenance",
            "namespace",
            "online-snapshot/abort",
            "online-snapshot/acquired",
            "online-snapshot/reached",
            "rs",
            "splitWAL",
            "table",
        ];
        empty.iter().try_for_each(|name| self.tree.ensure(&self.path(name)))
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.parent)
    }

    fn put(&self, writer: &str, name: &str, payload: &[u8], ephemeral: bool) -> Result<(), TreeError> {
        let salt = self.rng.next_u64().to_be_bytes();
        self.tree.publish(&self.path(name), with_prefix(writer, salt, payload), ephemeral)
    }

    /// `hbaseid`: the cluster's id.
    ///
    /// # Errors
    /// As [`TreeHandle::publish`], here and below.
    pub fn set_cluster_id(&self, cluster_id: &str) -> Result<(), TreeError> {
        let id = pb::ClusterId { cluster_id: cluster_id.to_owned() };
        self.put(&self.writer, "hbaseid", &magic::encode(&id), false)
    }

    /// `running`: the cluster is up since `start_date` (`Sat Nov 21 00:04:14 UTC 2026`).
    pub fn set_running(&self, start_date: &str) -> Result<(), TreeError> {
        let up = pb::ClusterUp { start_date: start_date.to_owned() };
        self.put(&self.writer, "running", &magic::encode(&up), false)
    }

    /// `master`: the active master; `info_port` `None` when it has no pages.
    pub fn set_master(&self, master: &ServerName, info_port: Option<u16>) -> Result<(), TreeError> {
        let (path, value) = self.master_node(master, info_port);
        self.tree.publish(&path, value, true)
    }

    /// Path and value of the node by which a master that waits is known: `backup-masters/host,port,startcode`.
    pub fn backup_master_node(&self, master: &ServerName, info_port: Option<u16>) -> (String, Bytes) {
        let (_, value) = self.master_node(master, info_port);
        (self.path(&format!("backup-masters/{master}")), value)
    }

    /// Path and value of the node that makes a master the active one: for who must first see whether it can be had.
    pub fn master_node(&self, master: &ServerName, info_port: Option<u16>) -> (String, Bytes) {
        let node = pb::Master {
            master: to_proto::server_name(master),
            rpc_version: Some(0),
            info_port: Some(info_port.map_or(u32::MAX, u32::from)),
        };
        let salt = self.rng.next_u64().to_be_bytes();
        (self.path("master"), with_prefix(&self.writer, salt, &magic::encode(&node)))
    }

    /// `meta-region-server`: where the region of hbase:meta is, or is going to be.
    pub fn set_meta_location(&self, server: &ServerName, state: RegionState) -> Result<(), TreeError> {
        self.put_meta("meta-region-server", server, state)
    }

    /// `meta-region-server-<n>`: where read replica `id` of hbase:meta is, or is going to be. Follows: `RegionStateStore#mirrorMetaLocation`.
    pub fn set_meta_replica(&self, id: u32, server: &ServerName, state: RegionState) -> Result<(), TreeError> {
        self.put_meta(&format!("meta-region-server-{id}"), server, state)
    }

    /// There is no such read replica of hbase:meta any more.
    pub fn remove_meta_replica(&self, id: u32) -> Result<(), TreeError> {
        self.tree.delete(&self.path(&format!("meta-region-server-{id}")))
    }

    fn put_meta(&self, name: &str, server: &ServerName, state: RegionState) -> Result<(), TreeError> {
        let node = pb::MetaRegionServer {
            server: to_proto::server_name(server),
            rpc_version: Some(0),
            state: Some(state as i32),
        };
        self.put(&self.writer, name, &magic::encode(&node), false)
    }

    /// `rs/host,port,startcode`: a live region server; `info_port` `None` when it has no pages.
    pub fn add_region_server(
        &self,
        server: &ServerName,
        info_port: Option<u16>,
        version: Option<pb::VersionInfo>,
    ) -> Result<(), TreeError> {
        let salt = self.rng.next_u64().to_be_bytes();
        let (path, value) = region_server_node(&self.parent, server, info_port, version, salt);
        self.tree.publish(&path, value, true)
    }

    /// Takes a region server's node away.
    pub fn remove_region_server(&self, server: &ServerName) -> Result<(), TreeError> {
        self.tree.delete(&self.path(&format!("rs/{server}")))
    }

    /// `draining/host,port,startcode`: a region server that gets no regions. Follows: `HMaster#decommissionRegionServers`.
    ///
    /// # Errors
    /// The tree is full.
    pub fn set_draining(&self, server: &ServerName, draining: bool) -> Result<(), TreeError> {
        let path = self.path(&format!("draining/{server}"));
        if draining { self.tree.ensure(&path) } else { self.tree.delete(&path) }
    }

    /// `table/<name>`: a copy of the table's state for clients of version 1.x.
    pub fn set_table_state(&self, table: &TableName, state: TableState) -> Result<(), TreeError> {
        let node = pb::DeprecatedTableState { state: state as i32 };
        self.put(&self.writer, &format!("table/{table}"), &magic::encode(&node), false)
    }

    /// The table is gone.
    pub fn remove_table(&self, table: &TableName) -> Result<(), TreeError> {
        self.tree.delete(&self.path(&format!("table/{table}")))
    }

    /// `namespace/<name>`: a copy of the namespace.
    pub fn set_namespace(&self, name: &str, configuration: &BTreeMap<String, String>) -> Result<(), TreeError> {
        let node = to_proto::namespace(name, configuration).encode_to_vec();
        self.put(&self.writer, &format!("namespace/{name}"), &node, false)
    }

    /// `rpc-throttle`: whether quotas of requests count. Follows: `RpcThrottleStorage`, `Bytes#toBytes(boolean)`.
    pub fn set_rpc_throttle(&self, on: bool) -> Result<(), TreeError> {
        self.put(&self.writer, "rpc-throttle", if on { b"\xFF" } else { b"\0" }, false)
    }

    /// `rsgroup/<name>`: a copy of the group of region servers, by which a master of HBase's places regions before it has read hbase:rsgroup.
    ///
    /// # Errors
    /// The tree is full.
    pub fn set_region_server_group(&self, name: &str, node: &[u8]) -> Result<(), TreeError> {
        self.tree.ensure(&self.path("rsgroup"))?;
        self.put(&self.writer, &format!("rsgroup/{name}"), node, false)
    }

    /// The group of region servers is gone.
    ///
    /// # Errors
    /// It was not there.
    pub fn remove_region_server_group(&self, name: &str) -> Result<(), TreeError> {
        self.tree.delete(&self.path(&format!("rsgroup/{name}")))
    }

    /// The namespace is gone.
    pub fn remove_namespace(&self, name: &str) -> Result<(), TreeError> {
        self.tree.delete(&self.path(&format!("namespace/{name}")))
    }

    /// `replication/peers/<id>` and its state: a copy of a replication peer.
    ///
    /// # Errors
    /// The tree is full.
    pub fn set_peer(&self, id: &str, config: &[u8], state: &[u8]) -> Result<(), TreeError> {
        self.tree.ensure(&self.path("replication/peers"))?;
        self.put(&self.writer, &format!("replication/peers/{id}"), config, false)?;
        self.put(&self.writer, &format!("replication/peers/{id}/peer-state"), state, false)
    }

    /// The replication peer is gone.
    ///
    /// # Errors
    /// It was not there.
    pub fn remove_peer(&self, id: &str) -> Result<(), TreeError> {
        self.tree.delete(&self.path(&format!("replication/peers/{id}/peer-state")))?;
        self.tree.delete(&self.path(&format!("replication/peers/{id}")))
    }

    /// The cluster goes down: `running` and the servers' nodes go.
    pub fn clear_running(&self, master: bool) -> Result<(), TreeError> {
        if master {
            self.tree.delete(&self.path("master"))?;
        }
        self.tree.delete(&self.path("running"))
    }
}
