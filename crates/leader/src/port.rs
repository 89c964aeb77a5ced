//! Which service answers on the port of a master of a cluster, from before it is active on.

use crate::status::StatusService;
use model::ServerName;
use proto::methods::{Method, Service};
use rpc::service::RegionServerStatusService;
use rpc::{Call, Exception, Handler, Outcome};
use std::sync::{Arc, OnceLock};

/// The port of a master that is active, or waits to be. Until it is active everybody is told so.
#[derive(Default)]
pub struct LeaderPort {
    name: OnceLock<ServerName>,
    registry: OnceLock<Arc<dyn Handler>>,
    status: OnceLock<Arc<StatusService>>,
    master: OnceLock<Arc<dyn Handler>>,
    cluster_id: OnceLock<String>,
}

impl LeaderPort {
    /// It is that of the master of this name.
    pub fn set_name(&self, name: ServerName) {
        let _ = self.name.set(name);
    }

    /// What clients may ask any server of the cluster is answered by `registry` from now on.
    pub fn set_registry(&self, registry: Arc<dyn Handler>) {
        let _ = self.registry.set(registry);
    }

    /// The cluster's id is known.
    pub(crate) fn set_cluster_id(&self, id: &str) {
        let _ = self.cluster_id.set(id.to_owned());
    }

    /// Region servers may report from now on.
    pub(crate) fn set_status(&self, status: Arc<StatusService>) {
        let _ = self.status.set(status);
    }

    /// The master takes calls from now on.
    pub(crate) fn set_master(&self, master: Arc<dyn Handler>) {
        let _ = self.master.set(master);
    }
}

impl Handler for LeaderPort {
    fn call(&self, call: Call) -> Outcome {
        let not_yet = || {
            let name = self.name.get().map_or_else(|| "this master".to_owned(), ToString::to_string);
            Outcome::from(Exception::server_not_running_yet(format!("Server {name} is not running yet")))
        };
        match call.service {
            // What quotas of space are counted by.
            Service::RegionServerStatus
                if matches!(
                    call.method.method,
                    Method::RegionServerStatusReportRegionSpaceUse | Method::RegionServerStatusReportFileArchival
                ) =>
            {
                self.master.get().map_or_else(not_yet, |master| master.call(call))
            }
            Service::RegionServerStatus => match self.status.get() {
                Some(status) => RegionServerStatusService::dispatch(&**status, call),
                // As `status::held` says.
                None if call.method.method == Method::RegionServerStatusReportRegionStateTransition => {
                    Outcome::from(Exception::io("The master takes the cluster over: report it again"))
                }
                None => not_yet(),
            },
            Service::ClientMeta | Service::BootstrapNode => match self.registry.get() {
                Some(registry) => registry.call(call),
                None => not_yet(),
            },
            _ => match self.master.get() {
                Some(master) => master.call(call),
                None => not_yet(),
            },
        }
    }

    fn cluster_id(&self) -> Option<String> {
        self.cluster_id.get().cloned()
    }

    fn serves(&self, service: Service) -> bool {
        !matches!(service, Service::Client | Service::Admin)
    }
}
