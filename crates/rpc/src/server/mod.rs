//! The server end: a listener, and a task for each connection.
//!
//! A connection's task reads requests, runs the handler inline and writes replies, so that many connections cost few
//! threads and a request that needs no I/O is answered without a hop. Replies are gathered while whole requests are
//! still buffered and leave in one write. Replies to come ([`Responder`]) arrive in the connection's inbox, from whichever
//! thread or task; a thread that answers many at once ([`answer_together`]) sends them itself where the connection sleeps.
//!
//! Back-pressure is the socket's: a connection with too many calls in flight, or too many reply bytes unsent, is not
//! read from until they are gone.

mod answers;
mod connection;
mod counters;
mod estimate;
mod handshake;
mod local;
mod output;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use base::metrics::{Bean, Registry};
use base::{Clock, Config, Holder, Ledger, LogThrottle, Share};
use tokio::net::TcpListener;
use tokio::sync::watch;
use trace::Tracer;

pub(crate) use answers::Inbox;
pub use answers::{Direct, Responder, answer_together};
pub use counters::{CallTimes, Counters, LONG_HOLD_US};
pub use local::{Local, LocalCall, LocalConnection, LocalRequest};

use crate::transport::Transport;
use crate::{Handler, settings, socket};

/// Limits of a server, read from its settings.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Largest request frame.
    pub max_request_bytes: u64,
    /// Where requests are counted from their first bytes to their answers, with what they are decoded and inflated to, and replies until the
    /// socket has them. Its caps bound both over all connections, and over all servers that share it.
    pub ledger: Arc<Ledger>,
    /// Calls in flight per connection.
    pub max_calls: usize,
    /// Reply bytes unsent per connection.
    pub max_unsent_bytes: usize,
    /// Largest decompressed cell block.
    pub max_decompressed_bytes: u64,
    /// Connections at once.
    pub max_connections: usize,
    /// Time for preamble and header.
    pub handshake_timeout: Duration,
    /// Time without progress in the middle of a request or reply.
    pub stall_timeout: Duration,
    /// Time without calls.
    pub idle_timeout: Duration,
}

impl Limits {
    /// The limits that `config` gives.
    pub fn from_config(config: &Config) -> Self {
        Self {
            max_request_bytes: config.get(&settings::MAX_REQUEST_SIZE),
            ledger: capped_ledger(config.get(&settings::MAX_CALL_QUEUE_SIZE)),
            max_calls: config.get(&settings::MAX_CALLS_PER_CONNECTION) as usize,
            max_unsent_bytes: usize::try_from(config.get(&settings::MAX_UNSENT_PER_CONNECTION)).unwrap_or(usize::MAX),
            max_decompressed_bytes: config.get(&settings::MAX_DECOMPRESSED_SIZE),
            max_connections: match config.get(&settings::MAX_CONNECTIONS) {
                0 => usize::MAX,
                given => given as usize,
            },
            handshake_timeout: Duration::from_millis(config.get(&settings::HANDSHAKE_TIMEOUT)),
            stall_timeout: Duration::from_millis(config.get(&settings::STALL_TIMEOUT)),
            idle_timeout: Duration::from_millis(config.get(&settings::IDLE_TIMEOUT)),
        }
    }

    /// Counts on `ledger`, which may be shared, and lets no request be larger than what its cap leaves room for beside others.
    pub fn within(&mut self, ledger: &Arc<Ledger>) {
        let half = ledger.cap_bytes(Holder::Requests) / 2;
        self.max_request_bytes = self.max_request_bytes.min(half);
        self.max_decompressed_bytes = self.max_decompressed_bytes.min(half);
        self.ledger = ledger.clone();
    }
}

/// A ledger that knows no budget, with `cap_bytes` for requests and as many for replies.
pub fn capped_ledger(cap_bytes: u64) -> Arc<Ledger> {
    let ledger = Ledger::new(u64::MAX);
    ledger.set_share(Holder::Requests, Share::fixed(cap_bytes));
    ledger.set_share(Holder::Replies, Share::fixed(cap_bytes));
    ledger
}

/// What all connections of a server share.
struct Shared {
    handler: Arc<dyn Handler>,
    clock: Arc<dyn Clock>,
    /// May be exchanged while the server runs; its ledger may not.
    limits: ArcSwap<Limits>,
    ledger: Arc<Ledger>,
    /// Traces calls, if they are traced.
    tracer: OnceLock<Arc<Tracer>>,
    counters: Arc<Counters>,
    inboxes: Arc<answers::Inboxes>,
    /// Shown in messages: `host/address:port` of the listener.
    address: SocketAddr,
    next_connection_id: AtomicU64,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A listening server. Dropping it stops the listener and its connections.
pub struct Server {
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    /// Each connection holds a receiver; when all are gone, all connections are.
    /// `None`: it does not listen.
    acceptor: Option<tokio::task::JoinHandle<()>>,
}

impl Server {
    /// Binds `address` and serves connections until [`Server::shutdown`] or drop. Needs a Tokio runtime.
    ///
    /// # Errors
    /// The address cannot be bound; the error names it.
    pub fn bind(
        address: SocketAddr,
        handler: Arc<dyn Handler>,
        clock: Arc<dyn Clock>,
        limits: Limits,
    ) -> io::Result<Self> {
        let listener = listen(address)
            .map_err(|e| io::Error::new(e.kind(), format!("cannot listen on {address} for RPC: {e}")))?;
        Self::serve(listener, handler, clock, limits)
    }

    /// As [`Server::bind`], on a listener that is there already.
    ///
    /// # Errors
    /// The listener has no address.
    pub fn serve(
        listener: TcpListener,
        handler: Arc<dyn Handler>,
        clock: Arc<dyn Clock>,
        limits: Limits,
    ) -> io::Result<Self> {
        let mut server = Self::unbound(listener.local_addr()?, handler, clock, limits);
        server.acceptor = Some(tokio::spawn(accept(listener, server.shared.clone(), server.stop.subscribe())));
        Ok(server)
    }

    /// One that does not listen, but has connections that are attached ([`Server::attach`]); messages call it by `address`. Needs a Tokio
    /// runtime.
    pub fn unbound(address: SocketAddr, handler: Arc<dyn Handler>, clock: Arc<dyn Clock>, limits: Limits) -> Self {
        let counters = Arc::default();
        let next_connection_id = AtomicU64::new(1);
        let (ledger, limits) = (limits.ledger.clone(), ArcSwap::from_pointee(limits));
        let shared = Arc::new(Shared {
            handler,
            clock,
            ledger,
            limits,
            tracer: OnceLock::new(),
            counters,
            inboxes: Arc::default(),
            address,
            next_connection_id,
        });
        Self { shared, stop: watch::Sender::new(false), acceptor: None }
    }

    /// Where it listens; the port is a real one even when 0 was asked for.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.address
    }

    /// From now on calls are traced by `tracer`. Only the first counts.
    pub fn trace_by(&self, tracer: Arc<Tracer>) {
        let _ = self.shared.tracer.set(tracer);
    }

    /// Changes its limits while it runs, from wherever it is kept.
    pub fn limits(&self) -> LimitsHandle {
        LimitsHandle(Arc::downgrade(&self.shared))
    }

    /// Where its requests and replies are counted.
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.shared.ledger
    }

    /// Serves a connection that came by another way than the listener, until either side ends it or the server stops. It counts among the
    /// server's connections, but is never refused for their number.
    pub fn attach(&self, transport: impl Transport, peer: SocketAddr) {
        self.shared.counters.connections.fetch_add(1, Ordering::Relaxed);
        spawn(self.shared.clone(), transport, peer, self.stop.subscribe());
    }

    /// What it has counted.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.shared.counters
    }

    /// Puts what the port counts into `registry` as metrics of `bean`.
    pub fn register_metrics(&self, registry: &Registry, bean: Bean) {
        let (counters, inboxes) = (self.shared.counters.clone(), self.shared.inboxes.clone());
        registry.collect(move |sink, now_ms| {
            counters.collect(sink.bean(bean), now_ms);
            sink.gauge("nettyMaxPendingOutboundBytes", inboxes.most_held_bytes());
        });
    }

    /// Stops listening, answers what has been received, and closes every connection. Waits at most `patience`;
    /// returns whether all connections ended by themselves.
    pub async fn shutdown(self, patience: Duration) -> bool {
        // Receivers live in the acceptor and in each connection; `closed` waits until the last one is gone.
        self.stop.send_replace(true);
        tokio::time::timeout(patience, self.stop.closed()).await.is_ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(acceptor) = &self.acceptor {
            acceptor.abort();
        }
    }
}

/// Changes the limits of a server while it runs. Does not keep the server.
#[derive(Debug, Clone)]
pub struct LimitsHandle(Weak<Shared>);

impl LimitsHandle {
    /// From now on `limits` hold: for requests and handshakes to come, for connections that are open at their next tick. The ledger stays that of
    /// the start, and so does what a connection that is open may have unsent before no more is made for it.
    pub fn set(&self, limits: Limits) {
        if let Some(shared) = self.0.upgrade() {
            shared.limits.store(Arc::new(Limits { ledger: shared.ledger.clone(), ..limits }));
        }
    }
}

/// Gives a connection of its own `input`, `chunk` bytes at a time, without a socket, and throws the replies away. Answers
/// the connection's header, if there was a whole one. For fuzzers.
#[cfg(feature = "fuzzing")]
pub fn converse(
    handler: Arc<dyn Handler>,
    clock: Arc<dyn Clock>,
    limits: Limits,
    input: &[u8],
    chunk: usize,
) -> Option<Arc<crate::ConnInfo>> {
    let address = SocketAddr::from(([127, 0, 0, 1], 16020));
    let counters = Arc::default();
    let shared = Arc::new(Shared {
        handler,
        clock,
        ledger: limits.ledger.clone(),
        tracer: OnceLock::new(),
        limits: ArcSwap::from_pointee(limits),
        counters,
        inboxes: Arc::default(),
        address,
        next_connection_id: AtomicU64::new(1),
    });
    connection::converse(&shared, input, chunk)
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    use socket2::{Domain, Protocol, Socket, Type};
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // Restart on the same port while old connections linger in TIME_WAIT.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    TcpListener::from_std(socket.into())
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, mut stopped: watch::Receiver<bool>) {
    // A flood of connections must not become one of log lines.
    let throttle = LogThrottle::every_us(REPEAT_MESSAGE_US);
    let warn = |what: std::fmt::Arguments<'_>| {
        if throttle.allow(&*shared.clock) {
            tracing::warn!(address = %shared.address, "{what}");
        }
    };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.wait_for(|stop| *stop) => return,
        };
        match accepted {
            Ok((stream, peer)) => {
                // Counted here: a task that has not run yet is a connection, too.
                let open = shared.counters.connections.fetch_add(1, Ordering::Relaxed) + 1;
                if open > shared.limits.load().max_connections {
                    shared.counters.connections.fetch_sub(1, Ordering::Relaxed);
                    let refused = shared.counters.refused_connections.fetch_add(1, Ordering::Relaxed) + 1;
                    drop(stream);
                    warn(format_args!(
                        "{} connections are open, as many as basalt.ipc.max.connections allows: {peer} was refused, \
                         {refused} so far",
                        open - 1
                    ));
                    continue;
                }
                socket::prepare(&stream);
                spawn(shared.clone(), stream, peer, stopped.clone());
            }
            Err(error) => {
                // Out of file descriptors, most likely: connections that end give some back.
                warn(format_args!("cannot accept a connection: {error}"));
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Serves a connection, which has been counted, in a task of its own.
fn spawn(shared: Arc<Shared>, transport: impl Transport, peer: SocketAddr, stopped: watch::Receiver<bool>) {
    tokio::spawn(async move {
        let _gone = Decrement(&shared.counters.connections);
        connection::run(transport, peer, &shared, stopped).await;
    });
}

/// How soon a message about refused connections is repeated.
const REPEAT_MESSAGE_US: u64 = 10_000_000;

struct Decrement<'a>(&'a AtomicUsize);

impl Drop for Decrement<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
