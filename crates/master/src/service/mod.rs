//! The master's services: each request decoded, done, answered. What only looks is answered at once; what changes
//! something, or asks the region server, later. Follows: `MasterRpcServices`.

mod ddl;
mod look;
mod operate;
mod registry;
mod status;

use crate::master::Master;
use crate::procedure::Caller;
use crate::{ErrorKind, MasterError, Result, convert};
use bytes::Bytes;
use model::{Nonce, RegionInfo, TableName};
use parking_lot::Mutex;
use proto::Message;
use proto::methods::{Method, Service};
use proto::pb;
use rpc::{Call, Exception, Handler, Outcome, Reply};
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
    rate: Mutex<status::RequestRate>,
}

/// Who asks.
fn caller(call: &Call, nonce_group: Option<u64>, nonce: Option<u64>) -> Caller {
    let nonce = match (nonce_group.unwrap_or(0), nonce.unwrap_or(0)) {
        (0, 0) => None,
        (group, number) => Some(Nonce { group, number }),
    };
    Caller { user: call.user.to_string(), nonce }
}

fn ready<M: Message>(result: Result<M>) -> Outcome {
    Outcome::Ready(match result {
        Ok(message) => Ok(Reply::new(&message)),
        Err(error) => Err(error.into()),
    })
}

fn later<M: Message + 'static>(work: impl Future<Output = Result<M>> + Send + 'static) -> Outcome {
    Outcome::later(async move {
        match work.await {
            Ok(message) => Ok(Reply::new(&message)),
            Err(error) => Err(error.into()),
        }
    })
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

/// The names that a request's pattern picks, as Java's `Pattern#matches` would: the whole name must match.
fn pattern(regex: &str) -> Result<regex::Regex> {
    regex::RegexBuilder::new(&format!(r"\A(?:{regex})\z"))
        .size_limit(1 << 20)
        .build()
        .map_err(|error| MasterError::do_not_retry(format!("the pattern {regex:?} cannot be used: {error}")))
}

fn table_of(message: &pb::TableName) -> Result<TableName> {
    convert::table_name(message)
}

impl MasterHandler {
    /// The services of `master`.
    pub fn new(master: Arc<Master>) -> MasterHandler {
        MasterHandler { master, old_flushes: Arc::default(), rate: Mutex::default() }
    }

    /// Answers a call of ClientMetaService or BootstrapNodeService; for the region server's port too.
    pub fn registry(&self, call: &Call) -> Option<Outcome> {
        registry::answer(&self.master, call)
    }

    fn master_service(&self, call: &Call) -> std::result::Result<Option<Outcome>, Exception> {
        // One after the other; each knows its own methods.
        if let Some(outcome) = self.look(call)? {
            return Ok(Some(outcome));
        }
        if let Some(outcome) = self.ddl(call)? {
            return Ok(Some(outcome));
        }
        self.operate(call)
    }

    fn answer(&self, call: &Call) -> std::result::Result<Outcome, Exception> {
        let answered = match call.service {
            Service::Master => {
                if !self.may_ask_before_start(call.method.method) && !self.master.is_initialized() {
                    return Err(MasterError::new(ErrorKind::PleaseHold, "Master is initializing").into());
                }
                self.master_service(call)?
            }
            Service::ClientMeta | Service::BootstrapNode => self.registry(call),
            _ => None,
        };
        Ok(answered.unwrap_or_else(|| Exception::unsupported(call.method).into()))
    }

    fn may_ask_before_start(&self, method: Method) -> bool {
        matches!(method, Method::MasterIsMasterRunning | Method::MasterGetClusterStatus | Method::MasterShutdown)
    }
}

impl Handler for MasterHandler {
    fn call(&self, call: Call) -> Outcome {
        self.answer(&call).unwrap_or_else(Outcome::from)
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

fn bytes_of(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}
