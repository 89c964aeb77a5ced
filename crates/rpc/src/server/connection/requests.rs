//! A request: from its frame to the handler, and what is refused before.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use base::{Holder, Ledger};
use bytes::{Bytes, BytesMut};
use proto::methods::MethodInfo;
use proto::{Message, pb};
use trace::{CallTrace, TraceParent};

use super::super::answers::end;
use super::{Connection, MAX_HEAD_BYTES, count};
use crate::call::{BoxFuture, Call, CallResult, ConnInfo, IncomingCells, Outcome, queue_is_full, unreadable};
use crate::frame::{Body, FrameError, RequestHead, split_body, take_delimited};
use crate::observer::{AnsweredCall, CallReads, KeptCall, response_bytes};
use crate::server::estimate;
use crate::{Exception, Kind, Responder};

/// Clients that say they wait less are taken to wait this long. `hbase.ipc.min.client.request.timeout`.
const MIN_TIMEOUT_MS: u32 = 20;

/// What was asked, kept while the handler has the call. The message is shared, not copied.
struct Asked {
    method: &'static MethodInfo,
    param: Bytes,
    attributes: Vec<pb::NameBytesPair>,
}

/// A request whose answer is in the output.
pub(super) struct AnsweredAtOnce {
    asked: Asked,
    response_bytes: Option<u64>,
    reads: CallReads,
}

impl AnsweredAtOnce {
    /// For whoever is told of it; it took so long.
    pub(super) fn as_call<'a>(&'a self, conn: &'a ConnInfo, processed_us: u64) -> AnsweredCall<'a> {
        let Asked { method, param, attributes } = &self.asked;
        let (response_bytes, reads) = (self.response_bytes, self.reads);
        AnsweredCall { method, param, conn, attributes, queued_us: 0, processed_us, response_bytes, reads }
    }
}

impl Connection {
    /// Has the handler carry out a request. What was asked, if the answer is in the output now; `None` also where the request named no method.
    pub(super) fn request(
        &mut self,
        mut frame: Bytes,
        received_at_us: u64,
    ) -> Result<Option<AnsweredAtOnce>, FrameError> {
        let size_bytes = frame.len();
        self.shared.counters.calls.add(1);
        self.shared.counters.request_sizes.record(size_bytes as u64);
        let head = RequestHead::decode(take_delimited(&mut frame)?)?;
        let id = head.call_id;
        let deferred = self.inbox.deferred();
        let mut held_bytes = size_bytes;
        let mut asked = None;
        let mut trace = None;
        let outcome = match self.prepare(head, frame, size_bytes, received_at_us) {
            Ok(call) => {
                held_bytes = call.held_bytes;
                let called = call.method;
                asked = Some(Asked { method: called, param: call.param.clone(), attributes: call.attributes.clone() });
                trace.clone_from(&call.trace);
                let _traced = trace::enter(trace.as_ref());
                catch_unwind(AssertUnwindSafe(|| self.shared.handler.call(call)))
                    .unwrap_or_else(|panic| Err(panicked(called.name, panic.as_ref())).into())
            }
            Err(exception) => exception.into(),
        };
        if self.inbox.deferred() > deferred {
            // Whatever came back, a panic even: the one who took the responder answers, and nobody else.
            self.in_flight += 1;
            self.replies_pending = true;
            return Ok(None);
        }
        let result = match outcome {
            Outcome::Ready(result) => result,
            Outcome::Future(later) => {
                let responder = self.inbox.responder(id, received_at_us, held_bytes);
                self.spawn(later, responder, asked, trace);
                return Ok(None);
            }
            Outcome::Deferred => Err(Exception::io("internal error: deferred without a responder")),
        };
        if let Some(trace) = trace {
            end(&trace, received_at_us, &result);
        }
        let response_bytes = response_bytes(&result);
        let reads = result.as_ref().map(|reply| reply.reads).unwrap_or_default();
        self.put(id, result);
        Ok(asked.map(|asked| AnsweredAtOnce { asked, response_bytes, reads }))
    }

    fn prepare(
        &self,
        head: RequestHead,
        rest: Bytes,
        size_bytes: usize,
        received_at_us: u64,
    ) -> Result<Call, Exception> {
        let (shared, conn) = (&self.shared, &self.conn);
        let address = Some(shared.address);
        let unreadable = |what: String| unreadable(address, conn, &what);
        if !head.request_param {
            return Err(unreadable(format!(
                "Invalid request header: call_id: {}, should have param set in it",
                head.call_id
            )));
        }
        let name = std::str::from_utf8(&head.method_name).unwrap_or_default();
        let Some(method) = conn.service.method(name) else {
            return Err(unreadable(Exception::unknown_method(name).message().to_owned()));
        };
        let Body { message, cell_block } =
            split_body(rest, true, head.cell_block_len).map_err(|e| unreadable(e.to_string()))?;
        let decoded_bytes = estimate::decoded_bytes(method.method, &message);
        admit(&shared.ledger, conn, address, size_bytes as u64 + decoded_bytes)?;
        let held_bytes = size_bytes + decoded_bytes as usize;
        let cells = match (cell_block.is_empty(), conn.codec) {
            (true, _) => IncomingCells::default(),
            (false, None) => return Err(unreadable("a cell block without a cell codec".to_owned())),
            (false, Some(_)) => IncomingCells {
                bytes: cell_block,
                address,
                max_inflated_bytes: shared.limits.load().max_decompressed_bytes,
                ..IncomingCells::default()
            },
        };
        let timeout_us = u64::from(head.timeout_ms.max(MIN_TIMEOUT_MS)) * 1000;
        Ok(Call {
            id: head.call_id,
            service: conn.service,
            method,
            param: message,
            cells,
            deadline_us: (head.timeout_ms > 0).then(|| received_at_us + timeout_us),
            received_at_us,
            priority: head.priority,
            user: conn.user.clone(),
            conn: conn.clone(),
            size_bytes,
            held_bytes,
            attributes: head.attributes,
            inbox: self.inbox.clone(),
            trace: self.trace_of(&head.trace_info, method, received_at_us),
            in_batch: true,
        })
    }

    /// The trace of a call, if it is traced. What a client says that is no parent is as if it had said nothing.
    fn trace_of(&self, info: &[u8], method: &MethodInfo, received_at_us: u64) -> Option<Arc<CallTrace>> {
        let tracer = self.shared.tracer.get()?;
        let info = pb::RpctInfo::decode(info).ok();
        let parent = info.and_then(|info| TraceParent::parse(info.headers.get(TraceParent::HEADER)?));
        tracer.call(parent, method.service.name(), method.name, received_at_us)
    }

    fn spawn(
        &mut self,
        later: BoxFuture,
        mut responder: Responder,
        asked: Option<Asked>,
        trace: Option<Arc<CallTrace>>,
    ) {
        self.in_flight += 1;
        let place = trace.as_ref().map(|trace| trace.place());
        responder.trace = trace;
        responder.watched = asked.filter(|_| self.inbox.is_observed()).map(|Asked { method, param, attributes }| {
            KeptCall { method, param, conn: self.conn.clone(), attributes, reads: CallReads::default() }
        });
        tokio::spawn(async move { responder.answer(trace::within(place, CatchPanic(later)).await) });
    }

    /// Answers a frame that is not to be read any further, once its header has come; then the connection ends. `false`: not yet.
    pub(super) fn refuse_unread(&mut self, why: impl FnOnce(&Self) -> Exception) -> io::Result<bool> {
        let mut rest = Bytes::copy_from_slice(&self.input[4..self.input.len().min(4 + MAX_HEAD_BYTES)]);
        let head = match take_delimited(&mut rest) {
            Ok(head) => RequestHead::decode(head).map_err(malformed)?,
            Err(_) if self.input.len() < MAX_HEAD_BYTES => return Ok(false),
            Err(error) => return Err(malformed(error)),
        };
        self.put(head.call_id, Err(why(self)));
        self.input = BytesMut::new();
        // At once, not when the peer has gone: else those that were refused would have others refused.
        count(&self.shared.ledger, Holder::Requests, &mut self.held_bytes, 0);
        self.closing = true;
        Ok(true)
    }

    pub(super) fn too_long(&self, len: u64) -> Exception {
        let message = format!(
            "RPC data length of {len} received from {} is greater than max allowed {}. Set \
             \"hbase.ipc.max.request.size\" on server to override this limit (not recommended)",
            self.conn.peer.ip(),
            self.shared.limits.load().max_request_bytes
        );
        tracing::warn!(peer = %self.conn.peer, "{message}");
        // Older clients do not know the class.
        let kind = if self.conn.has_version(1, 3) { Kind::RequestTooBig } else { Kind::DoNotRetry };
        Exception::bare(kind, message)
    }

    pub(super) fn queue_is_full(&self) -> Exception {
        queue_is_full(Some(self.shared.address))
    }
}

/// Whether a request that takes so many bytes, decoded and inflated, may be held until it is answered.
pub(in crate::server) fn admit(
    ledger: &Ledger,
    conn: &ConnInfo,
    address: Option<SocketAddr>,
    bytes: u64,
) -> Result<(), Exception> {
    let cap = ledger.cap_bytes(Holder::Requests);
    if bytes > cap {
        let message = format!(
            "a request of {} takes {bytes} bytes of memory; all requests together may have {cap}, a part of basalt.memory.size and at \
             most hbase.ipc.server.max.callqueue.size: send smaller batches, or raise what is set",
            conn.peer.ip(),
        );
        let kind = if conn.has_version(1, 3) { Kind::RequestTooBig } else { Kind::DoNotRetry };
        return Err(Exception::bare(kind, message));
    }
    let held = ledger.held_bytes(Holder::Requests);
    if ledger.allows(Holder::Requests, held + bytes) { Ok(()) } else { Err(queue_is_full(address)) }
}

pub(super) fn malformed(error: FrameError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

pub(in crate::server) fn panicked(what: &str, panic: &(dyn std::any::Any + Send)) -> Exception {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    tracing::error!(what, panic = text, "a call panicked");
    Exception::io(format!("internal error in {what}: {text}"))
}

/// A reply to come that cannot take its task down.
pub(in crate::server) struct CatchPanic(pub(in crate::server) BoxFuture);

impl Future for CatchPanic {
    type Output = CallResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CallResult> {
        let later = &mut self.0;
        catch_unwind(AssertUnwindSafe(|| later.as_mut().poll(cx)))
            .unwrap_or_else(|panic| Poll::Ready(Err(panicked("a reply to come", panic.as_ref()))))
    }
}
