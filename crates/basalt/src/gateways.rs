//! Gateways: doors for clients of other protocols. Each stands on the native client, as a process of its own or in the server's.

use crate::logging::tell;
use crate::traces::Tracing;
use crate::{gateway_pages, settings};
use anyhow::{Context, Result, anyhow};
use base::metrics::Registry;
use base::{Clock, Config, Holder, Ledger, Share, SystemClock};
use client::{Connection, Options};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use web::status::GatewayKind;

/// Where a gateway of its own process listens unless something is said: as HBase's, on every address.
pub const EVERYWHERE: &str = "0.0.0.0";

/// The gateways of the server's process.
pub struct Gateways {
    rest: Option<rest::Server>,
    thrift: Vec<(&'static str, u16, thrift::Server)>,
}

/// What gateways share with the process.
pub struct Means {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Who holds how much memory.
    pub ledger: Arc<Ledger>,
}

impl Gateways {
    /// Opens the ports of those that are asked for.
    ///
    /// # Errors
    /// A sentence that names the port.
    pub async fn bind(config: &Config) -> Result<Gateways> {
        let key = rest::settings::SERVER_PORT.key;
        let rest = match u16::try_from(config.get(&rest::settings::SERVER_PORT)) {
            Ok(port) => Some(bind_rest(config, key, port, settings::BIND.default)?),
            Err(_) => None,
        };
        let versions = [
            ("Thrift", &thrift::settings::IN_PROCESS_PORT, thrift::Version::One),
            ("Thrift2", &thrift::settings::IN_PROCESS_PORT_2, thrift::Version::Two),
        ];
        let mut thrift = Vec::new();
        for (name, setting, version) in versions {
            if let Ok(port) = u16::try_from(config.get(setting)) {
                let server = bind_thrift(config, (setting.key, port), version, settings::BIND.default).await?;
                thrift.push((name, server.local_addr()?.port(), server));
            }
        }
        Ok(Gateways { rest, thrift })
    }

    /// What listens where.
    pub fn listening(&self) -> Vec<(&'static str, u16)> {
        let rest = self.rest.iter().map(|server| ("REST", server.local_addr().port()));
        rest.chain(self.thrift.iter().map(|(name, port, _)| (*name, *port))).collect()
    }

    /// Serves until `stopping` says so. What the gateways count is shown in `registry`, and what is asked of them traced.
    pub fn run(
        self,
        connection: &Connection,
        config: &Config,
        means: &Means,
        (registry, tracing): (&Registry, &Tracing),
        stopping: &watch::Receiver<bool>,
    ) -> Vec<JoinHandle<std::io::Result<()>>> {
        let waiting = stopping;
        let mut stopping = stopping.clone();
        let serve = |server: rest::Server| {
            let gateway = Arc::new(rest::Gateway::new(connection.clone(), config, means.ledger.clone()));
            gateway.metrics().register(registry);
            if let Some(tracer) = tracing.tracer() {
                gateway.trace_by(tracer);
            }
            tokio::spawn(server.run(gateway, async move { drop(stopping.wait_for(|stop| *stop).await) }))
        };
        let mut running: Vec<_> = self.rest.map(serve).into_iter().collect();
        for (_, _, server) in self.thrift {
            let (connection, mut stopping) = (connection.clone(), waiting.clone());
            server.register_metrics(registry);
            if let Some(tracer) = tracing.tracer() {
                server.trace_by(tracer);
            }
            let Means { clock, ledger } = means;
            let (clock, ledger) = (clock.clone(), ledger.clone());
            running.push(tokio::spawn(async move {
                server.run(connection, clock, ledger, async { drop(stopping.wait_for(|stop| *stop).await) }).await;
                Ok(())
            }));
        }
        running
    }
}

/// `basalt rest`: a REST gateway to the cluster that the configuration names, until it is told to stop.
///
/// # Errors
/// A sentence saying why it could not start.
pub fn run_rest(config: &Config) -> Result<()> {
    crate::logging::to_stderr();
    config.check(&settings::rows())?;
    crate::unheeded::of(config, &settings::rows())?.warn();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("rest-worker")
        .build()
        .context("cannot start threads")?;
    let served = runtime.block_on(async {
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let key = rest::settings::PORT.key;
        let server = bind_rest(config, key, config.get(&rest::settings::PORT), EVERYWHERE)?;
        tell(&format!("Basalt {} REST gateway is ready on {}.\n", env!("CARGO_PKG_VERSION"), server.local_addr()));
        let ledger = own_ledger(config.get(&rest::settings::MEMORY_SIZE));
        let connection = Connection::open(Options::from_config(config));
        let facts =
            vec![("Cluster", cluster(&connection)), ("Only reads", config.get(&rest::settings::READ_ONLY).to_string())];
        let gateway = Arc::new(rest::Gateway::new(connection, config, ledger.clone()));
        let mut tracing = Tracing::start(config, &(Arc::new(SystemClock::new()) as Arc<dyn Clock>))?;
        if let Some(tracer) = tracing.tracer() {
            gateway.trace_by(tracer);
        }
        let registry = Registry::new();
        gateway.metrics().register(&registry);
        let (metrics, open) = (gateway.metrics().clone(), server.connections());
        let counts: (gateway_pages::Count, gateway_pages::Count) =
            (Box::new(move || metrics.requests()), Box::new(move || open() as u64));
        let of = gateway_pages::gateway(GatewayKind::Rest, server.local_addr(), facts);
        let source = gateway_pages::Source::new(config, of, counts, &ledger, registry);
        let place = (&rest::settings::INFO_PORT, &rest::settings::INFO_BIND_ADDRESS);
        show(gateway_pages::bind(config, place, source)?);
        let told = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        let served = server.run(gateway, told).await.context("cannot serve");
        tracing.end().await;
        served
    });
    runtime.shutdown_background();
    served
}

/// `basalt thrift`, `basalt thrift2`: a Thrift gateway to the cluster that the configuration names, until it is told to stop.
///
/// # Errors
/// A sentence saying why it could not start.
pub fn run_thrift(config: &Config, version: thrift::Version) -> Result<()> {
    crate::logging::to_stderr();
    config.check(&settings::rows())?;
    crate::unheeded::of(config, &settings::rows())?.warn();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("thrift-worker")
        .build()
        .context("cannot start threads")?;
    let served = runtime.block_on(async {
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let port = (thrift::settings::PORT.key, config.get(&thrift::settings::PORT));
        let server = bind_thrift(config, port, version, EVERYWHERE).await?;
        tell(&format!("Basalt {} Thrift gateway is ready on {}.\n", env!("CARGO_PKG_VERSION"), server.local_addr()?));
        let ledger = own_ledger(config.get(&thrift::settings::MEMORY_SIZE));
        let connection = Connection::open(Options::from_config(config));
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let mut tracing = Tracing::start(config, &clock)?;
        if let Some(tracer) = tracing.tracer() {
            server.trace_by(tracer);
        }
        let registry = Registry::new();
        server.register_metrics(&registry);
        let (calls, open) = (server.metrics().clone(), server.metrics().clone());
        let counts: (gateway_pages::Count, gateway_pages::Count) =
            (Box::new(move || calls.calls()), Box::new(move || open.connections() as u64));
        let mut facts = server.facts();
        facts.push(("Cluster", cluster(&connection)));
        let of = gateway_pages::gateway(GatewayKind::Thrift, server.local_addr()?, facts);
        let source = gateway_pages::Source::new(config, of, counts, &ledger, registry);
        let place = (&thrift::settings::INFO_PORT, &thrift::settings::INFO_BIND_ADDRESS);
        show(gateway_pages::bind(config, place, source)?);
        let told = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        server.run(connection, clock, ledger, told).await;
        tracing.end().await;
        Ok(())
    });
    runtime.shutdown_background();
    served
}

/// Where a gateway's clients' calls go.
fn cluster(connection: &Connection) -> String {
    match &connection.options().registry {
        client::Registry::ZooKeeper { quorum, znode_parent } => format!("{}{znode_parent}", quorum.join(",")),
        client::Registry::Rpc { bootstrap } => bootstrap.join(","),
    }
}

/// Serves the pages of a gateway until its process ends, and says where they are.
fn show(pages: Option<web::Server>) {
    let Some(pages) = pages else { return };
    tracing::info!("the status pages are at http://{}/", pages.local_addr());
    tokio::spawn(async move {
        if let Err(error) = pages.run(std::future::pending()).await {
            tracing::warn!("the status pages have stopped: {error}");
        }
    });
}

/// The ledger of a process that is a gateway and nothing else.
fn own_ledger(budget_bytes: u64) -> Arc<Ledger> {
    let ledger = Ledger::new(budget_bytes);
    for holder in [Holder::Requests, Holder::Replies, Holder::Scanners] {
        ledger.set_share(holder, Share::fixed(budget_bytes / 3));
    }
    ledger
}

async fn bind_thrift(
    config: &Config,
    (key, port): (&str, u16),
    version: thrift::Version,
    default: &str,
) -> Result<thrift::Server> {
    let address_key = thrift::settings::BIND_ADDRESS.key;
    let address = SocketAddr::new(listen_on(config, address_key, default)?, port);
    thrift::Server::bind(
        address,
        version,
        thrift::ServerOptions::from_config(config, &Options::from_config(config).user),
    )
    .await
    .map_err(|error| crate::ports::port_error("the Thrift gateway", key, address, &error))
}

/// Where a gateway listens: as `key` says, else as `basalt.bind` does.
pub fn listen_on(config: &Config, key: &str, default: &str) -> Result<IpAddr> {
    match config.text(key).or_else(|| config.text(settings::BIND.key)).unwrap_or(default).trim() {
        "localhost" => Ok(IpAddr::from([127, 0, 0, 1])),
        other => other.parse().map_err(|_| anyhow!("{key} = {other} is not an IP address")),
    }
}

fn bind_rest(config: &Config, key: &str, port: u16, default: &str) -> Result<rest::Server> {
    let address = SocketAddr::new(listen_on(config, rest::settings::HOST.key, default)?, port);
    rest::Server::bind(address, config)
        .map_err(|error| crate::ports::port_error("the REST gateway", key, address, &error))
}
