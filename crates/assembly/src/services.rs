//! Which service answers on which port, and to callers in the same process. Both ports are open before anything else happens, so that a port
//! in use is noticed before a file is touched; until the servers are ready, calls are told to come back.

use base::{Clock, Ledger};
use model::ServerName;
use proto::methods::Service;
use regionserver::RegionService;
use rpc::{AnsweredCall, Call, Exception, Handler, Local, Outcome};
use std::sync::{Arc, OnceLock};

/// What the two ports share.
#[derive(Default)]
pub struct Services {
    region: OnceLock<RegionService>,
    master: OnceLock<Arc<dyn Handler>>,
    cluster_id: OnceLock<String>,
    /// Name of the region server, for messages before it is ready.
    server_name: OnceLock<ServerName>,
}

impl Services {
    /// The cluster's id is known.
    pub fn set_cluster_id(&self, cluster_id: String, server_name: ServerName) {
        let _ = self.cluster_id.set(cluster_id);
        let _ = self.server_name.set(server_name);
    }

    /// The region server takes calls from now on.
    pub fn set_region(&self, service: RegionService) {
        let _ = self.region.set(service);
    }

    /// The master takes calls from now on.
    pub fn set_master(&self, handler: Arc<dyn Handler>) {
        let _ = self.master.set(handler);
    }

    fn on_batch_end(&self) {
        if let Some(service) = self.region.get() {
            service.on_batch_end();
        }
    }

    fn on_answered_at_once(&self, call: &AnsweredCall<'_>) {
        if let Some(service) = self.region.get() {
            service.on_answered_at_once(call);
        }
    }

    fn call(&self, call: Call) -> Outcome {
        let not_yet = || {
            let name = self.server_name.get().map_or_else(|| "this server".to_owned(), ToString::to_string);
            Outcome::from(Exception::server_not_running_yet(format!("Server {name} is not running yet")))
        };
        match call.service {
            Service::Client | Service::Admin => match self.region.get() {
                Some(service) => service.call(call),
                None => not_yet(),
            },
            _ => match self.master.get() {
                Some(handler) => handler.call(call),
                None => not_yet(),
            },
        }
    }
}

/// The port of the region server: everything but the master's own services.
pub struct RegionServerPort(pub Arc<Services>);

/// The port of the master: everything, since hbase:meta may be asked for here too.
pub struct MasterPort(pub Arc<Services>);

impl Handler for RegionServerPort {
    fn call(&self, call: Call) -> Outcome {
        self.0.call(call)
    }

    fn on_batch_end(&self) {
        self.0.on_batch_end();
    }

    fn on_answered_at_once(&self, call: &AnsweredCall<'_>) {
        self.0.on_answered_at_once(call);
    }

    fn cluster_id(&self) -> Option<String> {
        self.0.cluster_id.get().cloned()
    }

    fn serves(&self, service: Service) -> bool {
        matches!(service, Service::Client | Service::Admin | Service::ClientMeta | Service::BootstrapNode)
    }
}

impl Handler for MasterPort {
    fn call(&self, call: Call) -> Outcome {
        self.0.call(call)
    }

    fn on_batch_end(&self) {
        self.0.on_batch_end();
    }

    fn on_answered_at_once(&self, call: &AnsweredCall<'_>) {
        self.0.on_answered_at_once(call);
    }

    fn cluster_id(&self) -> Option<String> {
        self.0.cluster_id.get().cloned()
    }
}

/// Both servers for clients in this process, each under the address by which the cluster knows it. What is under way counts on `ledger`, which
/// the ports may share.
pub fn local_servers(
    services: &Arc<Services>,
    (region_server, master): (&ServerName, &ServerName),
    clock: &Arc<dyn Clock>,
    ledger: &Arc<Ledger>,
) -> [(String, Local); 2] {
    let local = |handler: Arc<dyn Handler>| Local::new(handler, clock.clone(), ledger.clone());
    [
        (region_server.address(), local(Arc::new(RegionServerPort(services.clone())))),
        (master.address(), local(Arc::new(MasterPort(services.clone())))),
    ]
}
