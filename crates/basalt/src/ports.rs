//! The ports: ZooKeeper, master, region server and status pages. They are opened before a file is touched, so that one that is in use is
//! noticed first.

use crate::settings;
use crate::status::Pages;
use crate::traces::Tracing;
use anyhow::{Result, anyhow};
use assembly::{MasterPort, RegionServerPort, Services};
use base::{Clock, Config, Ledger, Rng};
use coordination::{Endpoint, EndpointOptions};
use model::ServerName;
use regionserver::ReadConfig;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Of eight parts of all descriptors so many are for connections to the master,
pub const MASTER_EIGHTHS: u64 = 1;
/// and to the region server.
pub const REGION_SERVER_EIGHTHS: u64 = 3;

/// Everything that listens.
pub struct Ports {
    /// Until it is run.
    pub endpoint: Option<Endpoint>,
    /// The members of the ensemble that takes the endpoint's place.
    pub ensemble: Option<String>,
    /// Port of the endpoint, or of the ensemble.
    pub zk_port: u16,
    /// What answers calls.
    pub services: Arc<Services>,
    /// Takes calls for the master.
    pub master_port: rpc::Server,
    /// Takes calls for the region server.
    pub region_port: rpc::Server,
    /// What the status pages show.
    pub pages: Arc<Pages>,
    /// Until it is run; `None` without pages, too.
    pub info_server: Option<web::Server>,
    /// The master as clients find it.
    pub master_name: ServerName,
    /// The region server as clients find it.
    pub server_name: ServerName,
    /// Gateways that listen, by name.
    pub gateways: Vec<(&'static str, u16)>,
    /// Traces calls to both.
    pub tracing: Tracing,
    info_port: Option<u16>,
    /// Descriptors that the process may have open.
    descriptors: u64,
}

/// The members of the ensemble that nodes go to; `None`: to an endpoint of this process.
fn ensemble(config: &Config) -> Option<String> {
    #[cfg(feature = "zookeeper")]
    return crate::quorum::connect_string(config);
    #[cfg(not(feature = "zookeeper"))]
    {
        let _ = config;
        None
    }
}

impl Ports {
    /// Opens them all.
    ///
    /// # Errors
    /// A sentence that names the port, and how to choose another.
    pub async fn bind(
        config: &Config,
        root: &str,
        clock: &Arc<dyn Clock>,
        rng: &Arc<Rng>,
        ledger: &Arc<Ledger>,
    ) -> Result<Ports> {
        let zk_key = "hbase.zookeeper.property.clientPort";
        let zk_address =
            listen_address(config, settings::ZOOKEEPER_ADDRESS.key, config.get(&coordination::settings::CLIENT_PORT))?;
        let options = EndpointOptions::from_config(config);
        let ensemble = ensemble(config);
        let endpoint = if ensemble.is_none() {
            let endpoint = Endpoint::bind(zk_address, options, clock.clone(), rng.clone())
                .await
                .map_err(|error| port_error("the ZooKeeper endpoint", zk_key, zk_address, &error))?;
            Some(endpoint)
        } else {
            None
        };
        let zk_port = match &endpoint {
            Some(endpoint) => endpoint.local_addr()?.port(),
            None => zk_address.port(),
        };
        let services = Arc::new(Services::default());
        let descriptors = raise_descriptor_limit();
        let limits = |eighths: u64| rpc_limits(config, ledger, descriptors / 8 * eighths);
        let master_address = listen_address(config, settings::MASTER_ADDRESS.key, config.get(&settings::MASTER_PORT))?;
        let master_port = rpc::Server::bind(
            master_address,
            Arc::new(MasterPort(services.clone())),
            clock.clone(),
            limits(MASTER_EIGHTHS),
        )
        .map_err(|error| port_error("the master", "hbase.master.port", master_address, &error))?;
        let region_address =
            listen_address(config, settings::REGION_SERVER_ADDRESS.key, config.get(&settings::REGION_SERVER_PORT))?;
        let region_port = rpc::Server::bind(
            region_address,
            Arc::new(RegionServerPort(services.clone())),
            clock.clone(),
            limits(REGION_SERVER_EIGHTHS),
        )
        .map_err(|error| port_error("the region server", "hbase.regionserver.port", region_address, &error))?;
        let tracing = Tracing::start(config, clock)?;
        tracing.trace(&master_port);
        tracing.trace(&region_port);
        let pages = Arc::new(Pages::new(config.clone(), clock.clone(), root));
        let info_server = bind_info_server(config, clock, &pages)?;
        let start_code = u64::try_from(clock.now_ms().0).unwrap_or_default();
        let name = |key: &str, bound: SocketAddr| {
            let set = config.text(key).map(|name| name.trim().to_owned());
            let host = set.unwrap_or_else(|| advertised_host(bound.ip()));
            ServerName::new(&host, bound.port(), start_code)
        };
        Ok(Ports {
            endpoint,
            ensemble,
            zk_port,
            services,
            master_name: name(settings::MASTER_HOSTNAME.key, master_port.local_addr()),
            server_name: name(settings::REGION_SERVER_HOSTNAME.key, region_port.local_addr()),
            master_port,
            region_port,
            pages,
            info_port: info_server.as_ref().map(|server| server.local_addr().port()),
            info_server,
            tracing,
            gateways: Vec::new(),
            descriptors,
        })
    }

    /// `read`, and the limits of the RPC ports follow what it reads.
    pub fn read_config(&self, read: ReadConfig, ledger: &Arc<Ledger>) -> ReadConfig {
        let ports = [(self.master_port.limits(), MASTER_EIGHTHS), (self.region_port.limits(), REGION_SERVER_EIGHTHS)];
        let (ledger, descriptors) = (ledger.clone(), self.descriptors);
        Arc::new(move || {
            let config = read()?;
            for (port, eighths) in &ports {
                port.set(rpc_limits(&config, &ledger, descriptors / 8 * eighths));
            }
            Ok(config)
        })
    }

    /// Port of the status pages, if there are any.
    pub fn info_port(&self) -> Option<u16> {
        self.info_port
    }

    /// What listens where, the status pages apart.
    pub fn listening(&self) -> Vec<(&'static str, u16)> {
        let endpoint = self.ensemble.is_none().then_some(("ZooKeeper", self.zk_port));
        let own = [("master", self.master_name.port), ("region server", self.server_name.port)];
        endpoint.into_iter().chain(own).collect()
    }

    /// Where metrics are put that the status pages show.
    pub fn registry(&self) -> &base::metrics::Registry {
        self.pages.registry()
    }

    /// From now on the status pages show `node`.
    pub fn show_pages_of<S: assembly::Syncer>(&self, node: &assembly::Node<S>) {
        self.region_port.register_metrics(self.pages.registry(), base::metrics::IPC);
        self.master_port.register_metrics(self.pages.registry(), base::metrics::MASTER_IPC);
        let counters = vec![self.region_port.counters().clone(), self.master_port.counters().clone()];
        self.pages.set_ready(node.server(), node.master(), &self.listening(), self.info_port, counters);
    }
}

#[cfg(feature = "zookeeper")]
/// Everywhere, as HBase's: other machines are to find a server of a cluster.
const EVERYWHERE: &str = "0.0.0.0";

#[cfg(feature = "zookeeper")]
/// The configuration with everywhere as the address where none is said.
pub fn anywhere(config: &Config) -> Config {
    let mut config = config.clone();
    if config.text(settings::BIND.key).is_none() {
        config.set(settings::BIND.key, EVERYWHERE);
    }
    config
}

/// One half of the descriptors is for the two RPC ports, mostly for that of data; the other for files and what else is opened.
pub fn rpc_limits(config: &Config, ledger: &Arc<Ledger>, descriptors: u64) -> rpc::Limits {
    let mut limits = rpc::Limits::from_config(config);
    limits.max_connections = limits.max_connections.min(usize::try_from(descriptors).unwrap_or(usize::MAX).max(16));
    // Requests and replies are memory, too: one account for both ports.
    limits.within(ledger);
    limits
}

fn bind_info_server(config: &Config, clock: &Arc<dyn Clock>, pages: &Arc<Pages>) -> Result<Option<web::Server>> {
    let also = u16::try_from(config.get(&web::settings::REGION_SERVER_INFO_PORT)).ok();
    let first = u16::try_from(config.get(&web::settings::INFO_PORT)).ok();
    let of_master = (web::settings::INFO_PORT.key, web::settings::INFO_BIND_ADDRESS.key);
    let of_region_server =
        (web::settings::REGION_SERVER_INFO_PORT.key, web::settings::REGION_SERVER_INFO_BIND_ADDRESS.key);
    let ((key, address_key), port, also) = match (first, also) {
        (Some(port), also) => (of_master, port, also),
        (None, Some(port)) => (of_region_server, port, None),
        (None, None) => return Ok(None),
    };
    let address = listen_address(config, address_key, port)?;
    let source: Arc<dyn web::StatusSource> = pages.clone();
    let metrics = web::settings::MetricsPages::from_config(config);
    let mut server = web::Server::bind_with(address, source, clock.clone(), metrics)
        .map_err(|error| port_error("the status pages", key, address, &error))?;
    if let Some(port) = also {
        let (key, address_key) = of_region_server;
        let address = listen_address(config, address_key, port)?;
        let bound = server
            .listen_also(address)
            .map_err(|error| port_error("the region server's status pages", key, address, &error))?;
        tracing::info!("the region server's status pages listen on {bound}");
    }
    Ok(Some(server))
}

/// Raises the soft limit of open descriptors to the hard one, as the JVM does; returns what it is now.
pub fn raise_descriptor_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: maximum, maximum };
    match (current, setrlimit(Resource::Nofile, wanted)) {
        (_, Ok(())) => maximum.unwrap_or(u64::MAX),
        // As it was: it serves with what it has.
        (current, Err(_)) => current.unwrap_or(u64::MAX),
    }
}

/// Where to listen: as `key` says, else as `basalt.bind` does, else for this machine alone.
pub fn listen_address(config: &Config, key: &str, port: u16) -> Result<SocketAddr> {
    let (key, text) = match (config.text(key), config.text(settings::BIND.key)) {
        (Some(text), _) => (key, text.trim()),
        (None, Some(text)) => (settings::BIND.key, text.trim()),
        (None, None) => (settings::BIND.key, settings::BIND.default),
    };
    let ip: IpAddr = match text {
        "localhost" => IpAddr::from([127, 0, 0, 1]),
        other => other.parse().map_err(|_| anyhow!("{key} = {other} is not an IP address"))?,
    };
    Ok(SocketAddr::new(ip, port))
}

/// The name under which clients find what listens on `ip`.
pub fn advertised_host(ip: IpAddr) -> String {
    if ip.is_loopback() {
        return "localhost".to_owned();
    }
    if !ip.is_unspecified() {
        return ip.to_string();
    }
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    // A name that nobody can look up, here at least, is of no use elsewhere.
    let is_known =
        std::net::ToSocketAddrs::to_socket_addrs(&(own.as_str(), 0)).is_ok_and(|mut all| all.next().is_some());
    if is_known {
        return own;
    }
    tracing::warn!(
        "the name of this machine, {own}, has no address: clients elsewhere need hbase.master.hostname and \
         hbase.unsafe.regionserver.hostname"
    );
    "localhost".to_owned()
}

/// A port that cannot be had, in a sentence.
pub fn port_error(what: &str, key: &str, address: SocketAddr, error: &std::io::Error) -> anyhow::Error {
    if error.kind() == std::io::ErrorKind::AddrInUse {
        anyhow!("port {} for {what} is in use: stop what uses it, or choose another with -D {key}=PORT", address.port())
    } else {
        anyhow!("cannot listen on {address} for {what}: {error}")
    }
}
