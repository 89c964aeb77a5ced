//! The status pages of a gateway that is a process of its own. Follows: the info servers of `RESTServer` and `ThriftServer`.

use crate::pages_port;
use crate::process::OwnProcess;
use crate::status::{holders, properties};
use anyhow::Result;
use base::metrics::{Registry, Sample};
use base::{Clock as _, Config, Ledger, Setting, SystemClock, TextSetting};
use std::net::SocketAddr;
use std::sync::Arc;
use web::Status;
use web::details::ProcessDetails;
use web::status::{Gateway, GatewayKind, Property, Requests};

/// Reads a counter of the gateway; called for each page and each sample of rates.
pub type Count = Box<dyn Fn() -> u64 + Send + Sync>;

/// What is behind the pages.
pub struct Source {
    config: Config,
    gateway: Gateway,
    started_ms: i64,
    requests: Count,
    connections: Count,
    ledger: Arc<Ledger>,
    registry: Arc<Registry>,
    process: OwnProcess,
}

impl Source {
    /// Of a gateway whose numbers are in `registry`.
    pub fn new(
        config: &Config,
        gateway: Gateway,
        (requests, connections): (Count, Count),
        ledger: &Arc<Ledger>,
        registry: Arc<Registry>,
    ) -> Source {
        let started_ms = SystemClock::new().now_ms().0;
        let (config, ledger, process) = (config.clone(), ledger.clone(), OwnProcess::new(started_ms));
        process.set_ledger(&ledger);
        process.register(&registry);
        Source { config, gateway, started_ms, requests, connections, ledger, registry, process }
    }
}

impl web::StatusSource for Source {
    fn status(&self) -> Status {
        let mut status = Status::unknown(env!("CARGO_PKG_VERSION"), self.started_ms);
        status.requests = self.requests();
        status.rpc.connections = (self.connections)();
        status.memory.resident_bytes = crate::memory::resident_bytes();
        status.holders = holders(&self.ledger);
        status
    }

    fn requests(&self) -> Requests {
        Requests { total: (self.requests)(), ..Requests::default() }
    }

    fn metrics(&self, now_ms: i64) -> Vec<Sample> {
        self.registry.read(now_ms)
    }

    fn configuration(&self) -> Vec<Property> {
        properties(&self.config)
    }

    fn process(&self) -> Option<&dyn ProcessDetails> {
        Some(&self.process)
    }

    fn gateway(&self) -> Option<Gateway> {
        Some(self.gateway.clone())
    }
}

/// What a gateway's page says of it.
pub fn gateway(kind: GatewayKind, address: SocketAddr, mut facts: Vec<(&'static str, String)>) -> Gateway {
    facts.insert(0, ("Listens on", address.to_string()));
    Gateway { kind, facts }
}

/// Where a gateway's pages are: the settings of their port and address.
pub type Place = (&'static Setting<i32>, &'static TextSetting);

/// Opens the port of the pages; `None` where none are wanted, or nothing is said and the port is another's.
///
/// # Errors
/// A port that is asked for cannot be had.
pub fn bind(config: &Config, (port, address): Place, source: Source) -> Result<Option<web::Server>> {
    let of = ("the gateway's status pages", port.key);
    let at = |number| {
        let ip = crate::gateways::listen_on(config, address.key, crate::gateways::EVERYWHERE)?;
        Ok(SocketAddr::new(ip, number))
    };
    pages_port::bind(config, of, config.get(port), at, Arc::new(source), Arc::new(SystemClock::new()))
}
