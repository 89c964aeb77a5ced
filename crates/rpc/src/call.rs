//! What a server's services see of a call, and what they give back.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use base::metrics::Histogram;
use base::{Adder, Charge, Holder};
use bytes::Bytes;
use cell::{CellBlock, CellBuffer};
use proto::methods::{MethodInfo, Service};
use proto::pb;

use crate::cell_block::CellBlockError;
use crate::observer::{AnsweredCall, CallObserver, CallReads, KeptCall};
use crate::server::Inbox;
use crate::{CellCodec, Compressor, Direct, Exception, Kind, Responder};
use trace::CallTrace;

/// What a connection said about itself. One per connection.
#[derive(Debug, Clone)]
pub struct ConnInfo {
    /// Number of the connection in this process.
    pub id: u64,
    /// Where it comes from.
    pub peer: SocketAddr,
    /// Who calls (the effective user); empty when the client did not say.
    pub user: Arc<str>,
    /// The service all its calls go to.
    pub service: Service,
    /// How cells travel; `None` means inside the protobuf messages.
    pub codec: Option<CellCodec>,
    /// How cell blocks are compressed.
    pub compressor: Option<Compressor>,
    /// Version of the client, if it told.
    pub version: Option<pb::VersionInfo>,
    /// What else the client attached to its connection.
    pub attributes: Vec<pb::NameBytesPair>,
    /// Where a service counts what comes over the connection, once it has looked that up.
    pub load: OnceLock<Arc<ClientLoad>>,
}

/// What a client has read and written, over all its connections.
#[derive(Debug, Default)]
pub struct ClientLoad {
    /// Rows, or pieces of rows, that were read for it.
    pub reads: Adder,
    /// Rows that its filters refused.
    pub filtered_reads: Adder,
    /// Its mutations.
    pub writes: Adder,
    /// What is measured of its user, where it is.
    pub user: Option<Arc<UserLoad>>,
}

/// How long the operations of a user took, over all his clients. What stands where in `times` is the server's business.
#[derive(Debug)]
pub struct UserLoad {
    /// Microseconds, by kind of operation.
    pub times: [Histogram; UserLoad::KINDS],
    /// Bytes of data blocks that were gone through for him.
    pub block_bytes: Adder,
    _charge: base::Charge,
}

impl UserLoad {
    /// Kinds of operations.
    pub const KINDS: usize = 7;
    /// Bytes that one may come to.
    pub const BYTES: u64 = Histogram::SHARED_BYTES * UserLoad::KINDS as u64;

    /// Nothing measured yet; `charge` pays for [`UserLoad::BYTES`].
    pub fn new(charge: base::Charge) -> UserLoad {
        let times = std::array::from_fn(|_| Histogram::shared(base::metrics::Unit::Micros));
        UserLoad { times, block_bytes: Adder::default(), _charge: charge }
    }
}

impl ConnInfo {
    /// Whether the client is at least version `major.minor`; not when it did not tell.
    pub fn has_version(&self, major: u32, minor: u32) -> bool {
        self.version.as_ref().is_some_and(|v| match (v.version_major, v.version_minor) {
            (Some(ma), Some(mi)) => (ma, mi) >= (major, minor),
            _ => {
                let mut parts = v.version.split(['.', '-']).map_while(|p| p.parse::<u32>().ok());
                (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (major, minor)
            }
        })
    }
}

/// A request, with its message still encoded.
#[derive(Debug)]
pub struct Call {
    /// Its number on its connection.
    pub id: u32,
    /// The service of the connection.
    pub service: Service,
    /// What is asked for.
    pub method: &'static MethodInfo,
    /// The encoded message; see [`Call::decode`].
    pub param: Bytes,
    pub(crate) cells: IncomingCells,
    /// When the client stops waiting, on [`base::Clock::monotonic_us`]; `None` when it did not say.
    pub deadline_us: Option<u64>,
    /// When it came, on [`base::Clock::monotonic_us`].
    pub received_at_us: u64,
    /// The client's hint: 0 ordinary, 200 system tables and the like.
    pub priority: u32,
    /// Who calls.
    pub user: Arc<str>,
    /// The connection it came over.
    pub conn: Arc<ConnInfo>,
    /// Bytes of the whole request.
    pub size_bytes: usize,
    /// What it takes in memory until it is answered: the request, and what it is decoded and inflated to.
    pub(crate) held_bytes: usize,
    /// What the client attached to this call.
    pub attributes: Vec<pb::NameBytesPair>,
    pub(crate) inbox: Arc<Inbox>,
    /// Where it is traced.
    pub(crate) trace: Option<Arc<CallTrace>>,
    pub(crate) in_batch: bool,
}

impl Call {
    /// A call that comes over no connection, for tests and simulations; `conn` says on whose behalf.
    pub fn direct(
        conn: Arc<ConnInfo>,
        method: &'static MethodInfo,
        param: Bytes,
        received_at_us: u64,
    ) -> (Call, Direct) {
        let attributes = Vec::new();
        let kept =
            KeptCall { method, param: param.clone(), conn: conn.clone(), attributes, reads: CallReads::default() };
        let (direct, inbox) = Direct::new(kept);
        let call = Call {
            id: 1,
            service: conn.service,
            method,
            size_bytes: param.len(),
            held_bytes: param.len(),
            param,
            cells: IncomingCells::default(),
            deadline_us: None,
            received_at_us,
            priority: 0,
            user: conn.user.clone(),
            conn,
            attributes: Vec::new(),
            inbox,
            trace: None,
            in_batch: false,
        };
        (call, direct)
    }

    /// What it is estimated to take when it is decoded, beyond its own bytes.
    pub fn decoded_bytes(&self) -> usize {
        self.held_bytes.saturating_sub(self.size_bytes)
    }

    /// Whether [`Handler::on_batch_end`] follows soon when it defers a reply: what many calls share may wait until then.
    pub fn is_in_batch(&self) -> bool {
        self.in_batch
    }

    /// Takes it on to answer this call later, from any thread; the handler then returns [`Outcome::Deferred`]. At most once.
    pub fn responder(&self) -> Responder {
        let mut responder = self.inbox.responder(self.id, self.received_at_us, self.held_bytes);
        responder.watched = self.inbox.is_observed().then(|| self.kept());
        responder.trace = self.trace.clone();
        responder
    }

    /// The trace that it is a part of, for work on it on other threads: on the one that hands it in that is entered already.
    pub fn trace(&self) -> Option<&Arc<CallTrace>> {
        self.trace.as_ref()
    }

    /// Has an observer told of the reply where that is not given at once. The first call of a connection says who observes them all.
    pub fn observe(&self, observer: impl FnOnce() -> Arc<dyn CallObserver>) {
        self.inbox.observe(observer);
    }

    fn kept(&self) -> KeptCall {
        KeptCall {
            method: self.method,
            param: self.param.clone(),
            conn: self.conn.clone(),
            attributes: self.attributes.clone(),
            reads: CallReads::default(),
        }
    }

    /// Says, also after the call is gone, whether its client is.
    pub fn cancellation(&self) -> Cancellation {
        Cancellation(self.inbox.clone())
    }

    /// Gives a call that came over no connection its cells.
    pub fn set_cells(&mut self, cells: CellBlock) {
        self.cells = IncomingCells { plain: Some(cells), ..IncomingCells::default() };
    }

    /// The cells that came with it: inflated where they are compressed, and checked. What they are inflated to counts until the call is gone.
    /// Cost: one pass over them, each time; large ones are better asked for away from the network threads.
    ///
    /// # Errors
    /// They are damaged, or are no cells, or there is no room for them now.
    pub fn cells(&self) -> Result<CellBlock, Exception> {
        if let Some(plain) = &self.cells.plain {
            return Ok(plain.clone());
        }
        if self.cells.bytes.is_empty() {
            return Ok(CellBlock::default());
        }
        let unreadable = |what: String| unreadable(self.cells.address, &self.conn, &what);
        let codec = self.conn.codec.ok_or_else(|| unreadable("a cell block without a cell codec".to_owned()))?;
        let plain = match self.conn.compressor {
            Some(compressor) => {
                let plain = compressor
                    .decompress(&self.cells.bytes, self.cells.max_inflated_bytes)
                    .map_err(|error| unreadable(error.to_string()))?;
                let charge = self.inbox.ledger().try_charge(Holder::Requests, plain.len() as u64);
                let charge = charge.ok_or_else(|| queue_is_full(self.cells.address))?;
                // Asked for twice they are counted once: nobody keeps both.
                let _ = self.cells.inflated.set(charge);
                plain
            }
            None => self.cells.bytes.clone(),
        };
        codec.decode(plain).map_err(|error| match error {
            // Follows `BaseDecoder`; what HBase makes of a KeyValue that is cut short has no class of its own.
            CellBlockError::Truncated { .. } => Exception::new(Kind::Eof, "Partial cell read"),
            error => unreadable(error.to_string()),
        })
    }

    /// The message as the type that belongs to the method.
    ///
    /// # Errors
    /// The bytes are no such message; the client is told not to send them again.
    pub fn decode<M: prost::Message + Default>(&self) -> Result<M, Exception> {
        M::decode(self.param.clone()).map_err(|error| {
            Exception::do_not_retry(format!("cannot read the {} of {}: {error}", self.method.request, self.method.name))
        })
    }

    /// Whether results may travel in a cell block; otherwise they must be put into the message.
    pub fn has_codec(&self) -> bool {
        self.conn.codec.is_some()
    }
}

/// The cells of a call as they came.
#[derive(Debug, Default)]
pub(crate) struct IncomingCells {
    pub bytes: Bytes,
    /// The server's address, for messages.
    pub address: Option<SocketAddr>,
    pub max_inflated_bytes: u64,
    /// What they are inflated to, once that was done.
    pub inflated: OnceLock<Charge>,
    /// Of a call over no connection.
    pub plain: Option<CellBlock>,
}

/// The exception for a request that cannot be read.
pub(crate) fn unreadable(address: Option<SocketAddr>, conn: &ConnInfo, what: &str) -> Exception {
    let message = format!("{} is unable to read call parameter from client {}; {what}", shown(address), conn.peer.ip());
    Exception::bare(Kind::DoNotRetry, message)
}

fn shown(address: Option<SocketAddr>) -> String {
    address.map_or_else(|| "this server".to_owned(), |address| address.to_string())
}

/// The exception for a request for which there is no room now.
pub(crate) fn queue_is_full(address: Option<SocketAddr>) -> Exception {
    let address = shown(address);
    let message = format!("Call queue is full on {address}, is hbase.ipc.server.max.callqueue.size too small?");
    Exception::bare(Kind::CallQueueTooBig, message)
}

/// Whether anybody still waits for the answer to a call. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Cancellation(Arc<Inbox>);

impl Cancellation {
    /// Whether the connection that the call came over is closed, by either side.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_abandoned()
    }

    /// Whether the peer of that connection has so many bytes of replies to take that no more is to be made for it. Takes no lock. After a
    /// true the ledger tells when bytes leave ([`base::Ledger::set_on_release`]).
    pub fn is_backlogged(&self) -> bool {
        self.0.is_backlogged()
    }

    /// Whether a reply that had `bytes` when it was given up for want of room may be tried again. After a false as for
    /// [`Cancellation::is_backlogged`].
    pub fn has_room_again(&self, bytes: u64) -> bool {
        self.0.has_room_again(bytes.saturating_mul(2))
    }

    /// A large reply to the call is begun.
    pub fn making(&self) -> Making {
        Making::of(self.0.clone())
    }
}

/// A reply that is being made: its bytes count for its connection and in the ledger until it is dropped, when the reply goes or is given up.
#[derive(Debug)]
pub struct Making {
    inbox: Arc<Inbox>,
    bytes: AtomicU64,
}

impl Making {
    /// One that has nothing yet.
    pub(crate) fn of(inbox: Arc<Inbox>) -> Making {
        Making { inbox, bytes: AtomicU64::new(0) }
    }

    /// The reply has `bytes` by now. Whether it should grow on: false when replies hold as much memory as they may have, or this one and others of
    /// its connection as much as that may have.
    pub fn has(&self, bytes: u64) -> bool {
        let before = self.bytes.fetch_max(bytes, Ordering::Relaxed);
        self.inbox.reply_grew(before, before.max(bytes))
    }

    /// As [`Making::has`] for a reply that cannot be cut: the largest of all may grow on, whatever is held, so that one of several always
    /// comes to its end.
    pub fn may_be_gathered(&self, bytes: u64) -> bool {
        self.has(bytes) || self.inbox.reply_is_most(bytes)
    }

    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Another reply to the same call, which has nothing yet.
    pub fn another(&self) -> Making {
        Making::of(self.inbox.clone())
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        if bytes > 0 {
            self.inbox.reply_is_made(bytes);
        }
    }
}

/// An answer.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    /// The encoded message, without a length.
    pub message: Bytes,
    /// Cells in cell-block layout, tags included. Must be empty when the connection has no codec.
    pub cells: Bytes,
    /// Whether any of the cells may have tags, so that they are looked for where the codec drops them.
    pub may_have_tags: bool,
    /// What its call has read, for whoever is told of the answer.
    pub reads: CallReads,
}

impl Reply {
    /// An answer without cells.
    pub fn new(message: &impl prost::Message) -> Self {
        Self { message: Bytes::from(message.encode_to_vec()), ..Self::default() }
    }

    /// An answer with cells. The buffer is not copied.
    pub fn with_cells(message: &impl prost::Message, cells: CellBuffer) -> Self {
        let may_have_tags = cells.has_tags();
        let cells = Bytes::from(cells.into_bytes());
        Self { message: Bytes::from(message.encode_to_vec()), cells, may_have_tags, ..Self::default() }
    }
}

/// How a call ended.
pub type CallResult = Result<Reply, Exception>;

/// An answer to come that is worked out step by step. It runs in a task of its own and is always run to its end, even when the client is gone.
pub type BoxFuture = Pin<Box<dyn Future<Output = CallResult> + Send>>;

/// An answer now or later.
pub enum Outcome {
    /// Now: nothing had to be waited for.
    Ready(CallResult),
    /// Ready later: a log, a disk or another server is waited for.
    Future(BoxFuture),
    /// Answered later, by the [`Responder`] that the handler took. Cheapest where nothing but an event is waited for.
    Deferred,
}

impl Outcome {
    /// An answer now, without cells.
    pub fn reply(message: &impl prost::Message) -> Self {
        Self::Ready(Ok(Reply::new(message)))
    }

    /// An answer to come.
    pub fn later(future: impl Future<Output = CallResult> + Send + 'static) -> Self {
        Self::Future(Box::pin(future))
    }
}

impl From<Exception> for Outcome {
    fn from(exception: Exception) -> Self {
        Self::Ready(Err(exception))
    }
}

impl From<CallResult> for Outcome {
    fn from(result: CallResult) -> Self {
        Self::Ready(result)
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready(result) => f.debug_tuple("Ready").field(result).finish(),
            Self::Future(_) => f.write_str("Future"),
            Self::Deferred => f.write_str("Deferred"),
        }
    }
}

/// The services behind a listener.
pub trait Handler: Send + Sync + 'static {
    /// Answers a call. Runs on the connection's own task and must not block: what has to wait goes into
    /// [`Outcome::Future`] or is [`Outcome::Deferred`]. A panic is caught and becomes an exception of this call.
    fn call(&self, call: Call) -> Outcome;

    /// Called on the connection's task after the calls that came together ([`Call::is_in_batch`]), if the reply to any of them was deferred:
    /// what these calls have in common (a group of log entries) is to be done now. Must not block for long.
    fn on_batch_end(&self) {}

    /// A call was answered at once. Called for each of them, so it must cost next to nothing.
    fn on_answered_at_once(&self, call: &AnsweredCall<'_>) {
        let _ = call;
    }

    /// The cluster's id, for clients that ask before they log in; `None` while it is not known.
    fn cluster_id(&self) -> Option<String>;

    /// Whether connections to `service` are taken. All direct services by default.
    fn serves(&self, service: Service) -> bool {
        is_direct(service)
    }
}

/// Whether a service is called over connections of its own, rather than through a coprocessor.
pub fn is_direct(service: Service) -> bool {
    use Service as S;
    matches!(
        service,
        S::Client
            | S::Admin
            | S::Master
            | S::ClientMeta
            | S::Lock
            | S::Hbck
            | S::RegionServerStatus
            | S::BootstrapNode
            | S::ConnectionRegistry
    )
}
