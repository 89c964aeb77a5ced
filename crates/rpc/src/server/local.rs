//! A server's services called from the same process: no connection, no frames, no copy of what is asked and answered.
//!
//! A call over [`LocalConnection`] is handed to the handler on the caller's thread, as a connection's task does it; its bytes count on the same
//! ledger as those of calls over sockets, so that a gateway in the server's process is bounded like any other client.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use base::{Clock, Ledger};
use bytes::Bytes;
use proto::methods::{MethodInfo, Service};
use proto::pb;
use trace::CallTrace;

use super::Counters;
use super::answers::{Inbox, end};
use super::connection::{CatchPanic, admit, panicked};
use super::estimate;
use crate::call::{Call, CallResult, ConnInfo, IncomingCells, Outcome, Reply};
use crate::observer::{CallReads, KeptCall};
use crate::{CellCodec, Exception, Handler, Kind};

/// Numbers of local connections, far from those that a [`crate::Server`] gives: fair turns are taken by number.
static NEXT_CONNECTION_ID: AtomicU64 = AtomicU64::new(1 << 48);

/// The services of one server, for callers in its process. What [`crate::Server`] is to sockets.
#[derive(Clone)]
pub struct Local {
    handler: Arc<dyn Handler>,
    clock: Arc<dyn Clock>,
    ledger: Arc<Ledger>,
    counters: Arc<Counters>,
}

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Local").finish_non_exhaustive()
    }
}

impl Local {
    /// The services behind `handler`; requests and replies under way are counted on `ledger`.
    pub fn new(handler: Arc<dyn Handler>, clock: Arc<dyn Clock>, ledger: Arc<Ledger>) -> Local {
        Local { handler, clock, ledger, counters: Arc::default() }
    }

    /// Calls to one of the services on behalf of `user`, with cells in `codec`.
    ///
    /// # Errors
    /// The server has no such service.
    pub fn connect(&self, service: &str, user: &str, codec: CellCodec) -> Result<LocalConnection, Exception> {
        let found = Service::from_name(service).filter(|service| self.handler.serves(*service));
        let service = found
            .ok_or_else(|| Exception::new(Kind::UnknownService, format!("Unknown service class name {service:?}")))?;
        let version = pb::VersionInfo {
            version: "2.6.4".to_owned(),
            version_major: Some(2),
            version_minor: Some(6),
            ..pb::VersionInfo::default()
        };
        let conn = ConnInfo {
            id: NEXT_CONNECTION_ID.fetch_add(1, Ordering::Relaxed),
            peer: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            user: Arc::from(user),
            service,
            codec: Some(codec),
            compressor: None,
            version: Some(version),
            attributes: Vec::new(),
            load: std::sync::OnceLock::new(),
        };
        Ok(LocalConnection { local: self.clone(), conn: Arc::new(conn) })
    }
}

/// A request as a caller in the process makes it.
#[derive(Debug, Clone)]
pub struct LocalRequest {
    /// What is asked for.
    pub method: &'static MethodInfo,
    /// The encoded message.
    pub message: Bytes,
    /// Cells, in the connection's codec.
    pub cells: Bytes,
    /// The client's hint: 0 ordinary, 200 system tables and the like.
    pub priority: u32,
    /// How long the client waits.
    pub timeout: Duration,
    /// What the client attached to this call.
    pub attributes: Vec<pb::NameBytesPair>,
}

/// Calls to one service of a server in this process. Any number may be under way.
#[derive(Debug)]
pub struct LocalConnection {
    local: Local,
    conn: Arc<ConnInfo>,
}

impl LocalConnection {
    /// Hands a call to its service. It is under way when this returns, and often done. Needs a Tokio runtime.
    pub fn call(&self, request: LocalRequest) -> LocalCall {
        let Local { handler, ledger, clock, counters } = &self.local;
        let size_bytes = request.message.len() + request.cells.len();
        let decoded_bytes = estimate::decoded_bytes(request.method.method, &request.message);
        let inbox = Inbox::new(counters.clone(), Some(clock.clone()), ledger.clone(), usize::MAX);
        if let Err(refused) = admit(ledger, &self.conn, None, size_bytes as u64 + decoded_bytes) {
            return LocalCall { inbox, ready: Some(Err(refused)), codec: self.codec() };
        }
        let held_bytes = size_bytes + decoded_bytes as usize;
        let received_at_us = clock.monotonic_us();
        let call = Call {
            id: 0,
            service: self.conn.service,
            method: request.method,
            param: request.message,
            cells: IncomingCells { bytes: request.cells, max_inflated_bytes: u64::MAX, ..IncomingCells::default() },
            deadline_us: Some(received_at_us + request.timeout.as_micros() as u64),
            received_at_us,
            priority: request.priority,
            user: self.conn.user.clone(),
            conn: self.conn.clone(),
            size_bytes,
            held_bytes,
            attributes: request.attributes,
            inbox: inbox.clone(),
            trace: CallTrace::here(self.conn.service.name(), request.method.name, received_at_us),
            in_batch: false,
        };
        let trace = call.trace.clone();
        let method = call.method;
        let asked = KeptCall {
            method,
            param: call.param.clone(),
            conn: call.conn.clone(),
            attributes: call.attributes.clone(),
            reads: CallReads::default(),
        };
        let outcome = {
            let _traced = trace::enter(trace.as_ref());
            catch_unwind(AssertUnwindSafe(|| handler.call(call)))
                .unwrap_or_else(|panic| Err(panicked(method.name, panic.as_ref())).into())
        };
        if inbox.deferred() > 0 {
            // Whatever came back: the one who took the responder answers, and nobody else.
            return LocalCall { inbox, ready: None, codec: self.codec() };
        }
        let ready = match outcome {
            Outcome::Ready(result) => {
                if let Some(trace) = trace {
                    end(&trace, received_at_us, &result);
                }
                let took_us = clock.monotonic_us().saturating_sub(received_at_us);
                handler.on_answered_at_once(&asked.answered((0, took_us), &result));
                Some(result)
            }
            Outcome::Future(later) => {
                let mut responder = inbox.responder(0, received_at_us, held_bytes);
                responder.watched = inbox.is_observed().then_some(asked);
                let place = trace.as_ref().map(|trace| trace.place());
                responder.trace = trace;
                tokio::spawn(async move { responder.answer(trace::within(place, CatchPanic(later)).await) });
                None
            }
            Outcome::Deferred => Some(Err(Exception::io("internal error: deferred without a responder"))),
        };
        LocalCall { inbox, ready, codec: self.codec() }
    }

    /// How cells travel.
    pub fn codec(&self) -> CellCodec {
        self.conn.codec.unwrap_or(CellCodec::KeyValueWithTags)
    }
}

/// A call under way. Dropped, its client has left: what the call still has to do is not worth going on with.
#[derive(Debug)]
pub struct LocalCall {
    inbox: Arc<Inbox>,
    ready: Option<CallResult>,
    codec: CellCodec,
}

impl LocalCall {
    /// The answer with its cells in the connection's codec.
    fn encoded(&self, result: CallResult) -> CallResult {
        result.map(|reply| Reply { cells: self.codec.encode(reply.cells, reply.may_have_tags), ..reply })
    }
}

impl Future for LocalCall {
    type Output = CallResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CallResult> {
        if let Some(result) = self.ready.take() {
            return Poll::Ready(self.encoded(result));
        }
        if self.inbox.poll_any(cx).is_pending() {
            return Poll::Pending;
        }
        let mut answers = Vec::new();
        self.inbox.take(&mut answers);
        let result = answers.pop().map_or_else(|| Err(Exception::io("no answer to a promise")), |(_, result)| result);
        Poll::Ready(self.encoded(result))
    }
}

impl Drop for LocalCall {
    fn drop(&mut self) {
        self.inbox.close();
    }
}
