//! The port of a region server that is a member of a cluster, and the name that it asks for.

use crate::ports::{REGION_SERVER_EIGHTHS, anywhere, listen_address, port_error, raise_descriptor_limit, rpc_limits};
use crate::settings;
use crate::traces::Tracing;
use anyhow::Result;
use assembly::{RegionServerPort, Services};
use base::{Clock, Config, Ledger};
use membership::Candidate;
use regionserver::ReadConfig;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// What listens.
pub struct RegionPort {
    /// What answers calls.
    pub services: Arc<Services>,
    /// Takes them.
    pub server: rpc::Server,
    /// Traces them.
    pub tracing: Tracing,
    descriptors: u64,
}

impl RegionPort {
    /// Opens it; calls are told to come back until the server serves.
    ///
    /// # Errors
    /// A sentence that names the port, and how to choose another.
    pub fn bind(config: &Config, clock: &Arc<dyn Clock>, ledger: &Arc<Ledger>) -> Result<RegionPort> {
        let address = own_listen_address(config)?;
        let services = Arc::new(Services::default());
        let descriptors = raise_descriptor_limit();
        let limits = rpc_limits(config, ledger, descriptors / 8 * REGION_SERVER_EIGHTHS);
        let handler = Arc::new(RegionServerPort(services.clone()));
        let server = rpc::Server::bind(address, handler, clock.clone(), limits)
            .map_err(|error| port_error("the region server", settings::REGION_SERVER_PORT.key, address, &error))?;
        let tracing = Tracing::start(config, clock)?;
        tracing.trace(&server);
        Ok(RegionPort { services, server, tracing, descriptors })
    }

    /// What the server says of itself to the master.
    pub fn candidate(&self, config: &Config, clock: &dyn Clock) -> Candidate {
        let text = |key: &str| config.text(key).map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        Candidate {
            host: text(settings::REGION_SERVER_HOSTNAME.key),
            version: text(membership::settings::VERSION.key),
            port: self.server.local_addr().port(),
            start_code: u64::try_from(clock.now_ms().0).unwrap_or_default(),
        }
    }

    /// `read`, and the limits of the port follow what it reads.
    pub fn read_config(&self, read: ReadConfig, ledger: &Arc<Ledger>) -> ReadConfig {
        let (limits, ledger, descriptors) = (self.server.limits(), ledger.clone(), self.descriptors);
        Arc::new(move || {
            let config = read()?;
            limits.set(rpc_limits(&config, &ledger, descriptors / 8 * REGION_SERVER_EIGHTHS));
            Ok(config)
        })
    }
}

fn own_listen_address(config: &Config) -> Result<SocketAddr> {
    listen_address(&anywhere(config), settings::REGION_SERVER_ADDRESS.key, config.get(&settings::REGION_SERVER_PORT))
}

/// Where a process of this machine reaches its region server.
pub fn own_address(config: &Config) -> Result<SocketAddr> {
    let mut address = own_listen_address(config)?;
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    Ok(address)
}
