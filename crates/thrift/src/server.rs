//! The port of a gateway.

use crate::dispatch::Service;
use crate::impersonation::{Impersonation, Rules};
use crate::metrics::{Metrics, Stopwatch};
use crate::protocol::Protocol;
use crate::scanners::Scanners;
use crate::transport::Connection;
use crate::{http, settings, v1, v2};
use base::metrics::Registry;
use base::{Clock, Config, Ledger};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use trace::{Tracer, TracerCell};

/// How long it waits when the system gives it no connection, descriptors being short.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often scanners are looked at.
const SCANNER_CHECK: Duration = Duration::from_secs(1);

/// How long a stop waits for increments that were answered and are not written yet.
const LAST_INCREMENTS: Duration = Duration::from_secs(5);

/// Which IDL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// `Hbase.thrift`.
    One,
    /// `hbase.thrift`.
    Two,
}

/// How a gateway speaks, and its bounds.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The encoding.
    pub protocol: Protocol,
    /// Whether messages come in frames.
    pub framed: bool,
    /// Whether messages come over HTTP, in the binary protocol and without frames.
    pub http: bool,
    /// Whether increments are written later, those of a counter together (Thrift 1).
    pub coalesce_increments: bool,
    /// Largest frame.
    pub max_frame_bytes: usize,
    /// Largest message without a frame, and largest reply.
    pub max_message_bytes: usize,
    /// Connections at a time.
    pub max_connections: usize,
    /// How long a client may do nothing.
    pub socket_timeout: Duration,
    /// Whether what writes to tables is refused (Thrift 2).
    pub read_only: bool,
    /// How long a scanner waits for its client.
    pub scanner_timeout_ms: u64,
    /// Calls that take longer count as slow ones.
    pub slow_after: Duration,
    /// On whose behalf calls may be made over HTTP.
    pub proxy_users: Rules,
}

impl ServerOptions {
    /// As the settings have it, for a gateway that calls as `user`.
    pub fn from_config(config: &Config, user: &str) -> ServerOptions {
        let is_compact = config.get(&settings::COMPACT);
        let (http, proxy_user) = (config.get(&settings::HTTP), config.get(&settings::PROXY_USER));
        if proxy_user && !http {
            let (one, other) = (settings::PROXY_USER.key, settings::HTTP.key);
            tracing::warn!(
                "{one} has no effect: only over HTTP can a call say on whose behalf it is, and {other} is false"
            );
        }
        let scanner_timeout = config.text(settings::SCANNER_TIMEOUT_KEY).and_then(|text| text.trim().parse().ok());
        ServerOptions {
            protocol: if is_compact { Protocol::Compact } else { Protocol::Binary },
            framed: config.get(&settings::FRAMED) || settings::is_always_framed(config),
            http,
            coalesce_increments: config.get(&settings::COALESCE_INCREMENT),
            max_frame_bytes: (config.get(&settings::MAX_FRAME_MIB) as usize) << 20,
            max_message_bytes: usize::try_from(config.get(&settings::MAX_MESSAGE_SIZE)).unwrap_or(usize::MAX),
            max_connections: config.get(&settings::MAX_CONNECTIONS) as usize,
            socket_timeout: Duration::from_millis(config.get(&settings::SOCKET_TIMEOUT_MS)),
            read_only: config.get(&settings::READ_ONLY),
            scanner_timeout_ms: scanner_timeout.unwrap_or(60_000),
            slow_after: Duration::from_nanos(config.get(&settings::SLOW_RESPONSE_NS)),
            proxy_users: Rules::from_config(config, user),
        }
    }
}

/// A port that is open.
pub struct Server {
    listener: TcpListener,
    version: Version,
    options: Arc<ServerOptions>,
    metrics: Arc<Metrics>,
    tracer: TracerCell,
}

impl Server {
    /// Opens the port.
    ///
    /// # Errors
    /// The system does not give it.
    pub async fn bind(address: SocketAddr, version: Version, options: ServerOptions) -> io::Result<Server> {
        let listener = TcpListener::bind(address).await?;
        let metrics = Arc::new(Metrics::new(options.slow_after));
        Ok(Server { listener, version, options: Arc::new(options), metrics, tracer: TracerCell::default() })
    }

    /// Calls are traced by `tracer`. Only the first counts.
    pub fn trace_by(&self, tracer: Arc<Tracer>) {
        self.tracer.set(tracer);
    }

    /// What it counts.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Shows what it counts in `registry`.
    pub fn register_metrics(&self, registry: &Registry) {
        self.metrics.register(registry, self.version);
    }

    /// How it speaks, in words.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let ServerOptions { protocol, framed, http, read_only, .. } = &*self.options;
        let transport = match (http, framed) {
            (true, _) => "HTTP",
            (false, true) => "frames",
            (false, false) => "buffered",
        };
        let protocol = if *http { Protocol::Binary } else { *protocol };
        vec![
            ("Interface", format!("Thrift {}", if self.version == Version::One { 1 } else { 2 })),
            ("Protocol", format!("{protocol:?}").to_lowercase()),
            ("Transport", transport.to_owned()),
            ("Only reads", (*read_only && self.version == Version::Two).to_string()),
        ]
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system does not know.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves calls through `connection` until `stop` is done. What clients hold counts on `ledger`.
    pub async fn run(
        self,
        connection: client::Connection,
        clock: Arc<dyn Clock>,
        ledger: Arc<Ledger>,
        stop: impl Future<Output = ()> + Send,
    ) {
        let max_bytes = self.options.max_message_bytes as u64;
        let scanners =
            Arc::new(Scanners::new(self.options.scanner_timeout_ms, max_bytes, clock.clone(), ledger.clone()));
        let one = v1::Handler::new(connection.clone(), scanners.clone(), &self.options, &ledger, &self.metrics);
        let coalescer = one.coalescer();
        let writing = coalescer.clone().map(|coalescer| tokio::spawn(coalescer.run()));
        let service = if self.version == Version::One { "Hbase" } else { "THBaseService" };
        let tracing = self.tracer.get().map(|tracer| (tracer.clone(), service));
        let gateway = Arc::new(Gateway {
            one,
            two: v2::Handler::new(connection.clone(), scanners.clone(), self.options.read_only),
            version: self.version,
            impersonation: Impersonation::new(self.options.proxy_users.clone(), connection, clock.clone()),
            stopwatch: Stopwatch::new(self.metrics.clone(), clock, tracing),
            options: self.options,
            ledger,
            metrics: self.metrics,
        });
        let mut connections = JoinSet::new();
        let mut check = tokio::time::interval(SCANNER_CHECK);
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                _ = check.tick() => scanners.expire(),
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                accepted = self.listener.accept() => match accepted {
                    Ok((_, peer)) if connections.len() >= gateway.options.max_connections => {
                        let most = settings::MAX_CONNECTIONS.key;
                        tracing::debug!("Thrift connection of {peer} closed: there are as many as {most} allows");
                    }
                    Ok((socket, peer)) => {
                        connections.spawn(gateway.clone().attend(socket, peer));
                    }
                    Err(error) => {
                        tracing::warn!("the Thrift gateway gets no connection: {error}");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        connections.shutdown().await;
        if let (Some(coalescer), Some(writing)) = (coalescer, writing) {
            coalescer.close();
            if tokio::time::timeout(LAST_INCREMENTS, writing).await.is_err() {
                tracing::error!(
                    "increments that were answered are lost: they could not be written in {LAST_INCREMENTS:?}"
                );
            }
        }
    }
}

/// What connections share.
pub(crate) struct Gateway {
    version: Version,
    one: v1::Handler,
    two: v2::Handler,
    pub(crate) options: Arc<ServerOptions>,
    pub(crate) ledger: Arc<Ledger>,
    metrics: Arc<Metrics>,
    pub(crate) stopwatch: Stopwatch,
    pub(crate) impersonation: Impersonation,
}

impl Gateway {
    async fn attend(self: Arc<Self>, socket: TcpStream, peer: SocketAddr) {
        // A reply is one write, and small: it is not to wait for more.
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!("{peer}: {error}");
        }
        let _connected = self.metrics.connected();
        let from = |with_class| http::From { peer: peer.ip(), with_class };
        let ended = match self.version {
            Version::One => self.serve(socket, &self.one, from(true)).await,
            Version::Two => self.serve(socket, &self.two, from(false)).await,
        };
        if let Err(why) = ended {
            tracing::info!("Thrift connection of {peer} closed: {why}");
        }
    }

    async fn serve<S: Service>(&self, socket: TcpStream, service: &S, from: http::From) -> Result<(), String> {
        let Gateway { options, ledger, stopwatch, .. } = self;
        if options.http {
            return http::serve(socket, self, service, from).await.map_err(|error| error.to_string());
        }
        let connection = Connection::new(socket, options.clone(), ledger.clone(), stopwatch.clone());
        connection.run(service, from.with_class).await.map_err(|error| error.to_string())
    }
}
