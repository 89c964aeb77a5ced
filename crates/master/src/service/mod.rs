//! The master's services: each request done and answered. What only reads is answered at once; what changes something,
//! or asks a region server, later. [`methods`] says which function answers which RPC. Follows: `MasterRpcServices`.

mod client_locks;
mod cluster;
mod decommission;
mod groups;
mod hbck;
mod logs;
mod maintenance;
mod methods;
mod namespaces;
mod peers;
mod permissions;
mod procedures;
mod quotas;
mod regions;
mod registry;
mod snapshots;
mod switches;
mod tables;

use crate::master::Master;
use crate::procedure::Caller;
use crate::{ErrorKind, MasterError, Result};
use bytes::Bytes;
use convert::from_proto;
use model::{Nonce, RegionInfo, ServerName, TableName};
use parking_lot::Mutex;
use proto::Message;
use proto::methods::{Method, Service};
use proto::pb;
use rpc::service::{
    Answer, BootstrapNodeService, ClientMetaService, HbckService, LockService, MasterService,
    RegionServerStatusService, Response,
};
use rpc::{Call, Exception, Handler, Outcome};
use std::collections::HashMap;
use std::sync::Arc;

/// The version of HBase that clients are told: the one whose protocol and files these are.
pub const HBASE_VERSION: &str = "2.6.4";

/// The services of a master's port: MasterService, ClientMetaService and what else masters answer.
#[derive(Debug)]
pub struct MasterHandler {
    master: Arc<Master>,
    /// Flushes that were asked for in the old way (`flush-table-proc`), by table.
    old_flushes: Arc<Mutex<HashMap<String, u64>>>,
    /// The procedures of snapshots that clients without nonces ask for by name.
    named_snapshots: Arc<Mutex<HashMap<String, u64>>>,
    rates: Mutex<HashMap<ServerName, cluster::RequestRate>>,
}

/// Who asks.
fn caller(call: &Call, nonce_group: Option<u64>, nonce: Option<u64>) -> Caller {
    let nonce = match (nonce_group.unwrap_or(0), nonce.unwrap_or(0)) {
        (0, 0) => None,
        (group, number) => Some(Nonce { group, number }),
    };
    Caller { user: call.user.to_string(), nonce }
}

/// An answer to come.
fn later<M: Message>(work: impl Future<Output = Result<M>> + Send + 'static) -> Answer<M> {
    Ok(Response::future(work))
}

/// The region that a request names: by its full name, or by its encoded name.
fn region_of(master: &Master, region: &pb::RegionSpecifier) -> Result<RegionInfo> {
    let by_name = RegionInfo::encoded_from_name(&region.value);
    let encoded = std::str::from_utf8(&region.value).unwrap_or_default();
    let cluster = master.cluster();
    let node = cluster.region(encoded).or_else(|| cluster.region(&by_name));
    node.map(|node| node.info.clone())
        .ok_or_else(|| MasterError::new(ErrorKind::UnknownRegion, cell::print::to_string_binary(&region.value)))
}

fn table_of(message: &pb::TableName) -> Result<TableName> {
    Ok(from_proto::table_name(message)?)
}

/// A copy, so that what lives on does not keep the whole request alive.
fn own(bytes: &Bytes) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

impl MasterHandler {
    /// The services of `master`.
    pub fn new(master: Arc<Master>) -> MasterHandler {
        MasterHandler { master, old_flushes: Arc::default(), named_snapshots: Arc::default(), rates: Mutex::default() }
    }

    fn may_ask_before_start(&self, method: Method) -> bool {
        use Method::{MasterGetClusterStatus, MasterIsMasterInMaintenanceMode, MasterIsMasterRunning, MasterShutdown};
        matches!(
            method,
            MasterIsMasterRunning | MasterIsMasterInMaintenanceMode | MasterGetClusterStatus | MasterShutdown
        )
    }
}

impl Handler for MasterHandler {
    fn call(&self, call: Call) -> Outcome {
        match call.service {
            Service::Master if !self.may_ask_before_start(call.method.method) && !self.master.is_initialized() => {
                Exception::please_hold().into()
            }
            Service::Master => MasterService::dispatch(self, call),
            Service::ClientMeta => ClientMetaService::dispatch(self, call),
            Service::BootstrapNode => BootstrapNodeService::dispatch(self, call),
            Service::Lock => LockService::dispatch(self, call),
            Service::Hbck => HbckService::dispatch(self, call),
            Service::RegionServerStatus => RegionServerStatusService::dispatch(self, call),
            _ => Exception::unsupported(call.method).into(),
        }
    }

    fn cluster_id(&self) -> Option<String> {
        Some(self.master.cluster_id().to_owned())
    }
}

impl Master {
    /// The services of the master's port.
    pub fn handler(self: &Arc<Self>) -> Arc<MasterHandler> {
        Arc::new(MasterHandler::new(Arc::clone(self)))
    }
}
