//! Gateways: doors for clients of other protocols. Each stands on the native client, as a process of its own or in the server's.

use crate::settings;
use anyhow::{Context, Result, anyhow};
use base::Config;
use client::{Connection, Options};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Where a gateway of its own process listens unless something is said: as HBase's, on every address.
const EVERYWHERE: &str = "0.0.0.0";

/// The gateways of the server's process.
pub struct Gateways {
    rest: Option<rest::Server>,
}

impl Gateways {
    /// Opens the ports of those that are asked for.
    ///
    /// # Errors
    /// A sentence that names the port.
    pub fn bind(config: &Config) -> Result<Gateways> {
        let key = rest::settings::SERVER_PORT.key;
        let rest = match u16::try_from(config.get(&rest::settings::SERVER_PORT)) {
            Ok(port) => Some(bind_rest(config, key, port, settings::BIND.default)?),
            Err(_) => None,
        };
        Ok(Gateways { rest })
    }

    /// What listens where.
    pub fn listening(&self) -> Vec<(&'static str, u16)> {
        self.rest.iter().map(|server| ("REST", server.local_addr().port())).collect()
    }

    /// Serves until `stopping` says so.
    pub fn run(
        self,
        connection: &Connection,
        config: &Config,
        stopping: &watch::Receiver<bool>,
    ) -> Vec<JoinHandle<std::io::Result<()>>> {
        let mut stopping = stopping.clone();
        let serve = |server: rest::Server| {
            let gateway = Arc::new(rest::Gateway::new(connection.clone(), config));
            tokio::spawn(server.run(gateway, async move { drop(stopping.wait_for(|stop| *stop).await) }))
        };
        self.rest.map(serve).into_iter().collect()
    }
}

/// `basalt rest`: a REST gateway to the cluster that the configuration names, until it is told to stop.
///
/// # Errors
/// A sentence saying why it could not start.
pub fn run_rest(config: &Config) -> Result<()> {
    crate::standalone::log_to_stderr();
    config.check(&settings::rows())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("rest-worker")
        .build()
        .context("cannot start threads")?;
    let served = runtime.block_on(async {
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let key = rest::settings::PORT.key;
        let server = bind_rest(config, key, config.get(&rest::settings::PORT), EVERYWHERE)?;
        println!("Basalt {} REST gateway is ready on {}.", env!("CARGO_PKG_VERSION"), server.local_addr());
        let gateway = Arc::new(rest::Gateway::new(Connection::open(Options::from_config(config)), config));
        let told = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        server.run(gateway, told).await.context("cannot serve")
    });
    runtime.shutdown_background();
    served
}

fn bind_rest(config: &Config, key: &str, port: u16, default: &str) -> Result<rest::Server> {
    let host_key = rest::settings::HOST.key;
    let text = config.text(host_key).or_else(|| config.text(settings::BIND.key)).unwrap_or(default).trim();
    let ip: IpAddr = match text {
        "localhost" => IpAddr::from([127, 0, 0, 1]),
        other => other.parse().map_err(|_| anyhow!("{host_key} = {other} is not an IP address"))?,
    };
    let address = SocketAddr::new(ip, port);
    rest::Server::bind(address, config)
        .map_err(|error| crate::ports::port_error("the REST gateway", key, address, &error))
}
