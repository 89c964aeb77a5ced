//! What a call goes through, as spans: the call itself, its work on regions, its wait for the log, with the blocks it reads as events; and what
//! nobody called for: procedures, flushes, compactions. Names and attributes are those of HBase (`HBaseSemanticAttributes`, `TraceUtil`), a
//! parent comes with the request in the form of W3C Trace Context, and goes on to the next server in the same way.
//!
//! Always true: a call of which nobody is to hear costs one look at a variable of its thread wherever a span could begin. A span ends exactly
//! once, when its handle is dropped, and goes to the [`SpanSink`] then; nothing is kept here.
//!
//! Not here: how spans are sent (the binary has that), where they begin (`rpc`, `client`, `regionserver`, `master`, the gateways). Time and random
//! numbers come from outside.

mod current;
mod parent;
mod span;

pub use current::{Entered, begin, current, enter, enter_at, within};
pub use parent::TraceParent;
pub use span::{EndedSpan, Event, Place, Span, SpanKind, Value};

use base::{Clock, Rng};
use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Where the `.proto` files have HBase's services.
const PACKAGE: &str = "hbase.pb";

/// Takes spans that have ended. Called on whichever thread ends them; must not block.
pub trait SpanSink: Send + Sync + 'static {
    /// This one has ended.
    fn ended(&self, span: EndedSpan);
}

/// Decides which calls are traced, and gives their spans numbers and times. One per process.
pub struct Tracer {
    clock: Arc<dyn Clock>,
    ids: Rng,
    /// Of calls that come without a decision, those are traced whose number is below.
    sampled_below: u64,
    sink: Arc<dyn SpanSink>,
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer").field("sampled_below", &self.sampled_below).finish_non_exhaustive()
    }
}

impl Tracer {
    /// Traces every call whose client traces it, and `ratio` (0 to 1) of those whose client says nothing about it.
    pub fn new(clock: Arc<dyn Clock>, ids: Rng, ratio: f64, sink: Arc<dyn SpanSink>) -> Arc<Tracer> {
        let sampled_below = if ratio >= 1.0 { u64::MAX } else { (ratio.max(0.0) * u64::MAX as f64) as u64 };
        Arc::new(Tracer { clock, ids, sampled_below, sink })
    }

    /// A call to `method` of `service` came at `received_at_us`, on [`Clock::monotonic_us`], with `parent` if its client said one. `None`: it is not
    /// traced. A client that has decided is obeyed. Follows: `ParentBased(TraceIdRatioBased)` of OpenTelemetry.
    pub fn call(
        self: &Arc<Tracer>,
        parent: Option<TraceParent>,
        service: &'static str,
        method: &'static str,
        received_at_us: u64,
    ) -> Option<Arc<CallTrace>> {
        let trace = self.trace(parent)?;
        Some(Arc::new(CallTrace {
            trace,
            parent,
            is_parent_remote: parent.is_some(),
            process_id: self.id(),
            call_id: self.id(),
            service,
            method,
            received_at_us,
            has_ended: AtomicBool::new(false),
        }))
    }

    /// Begins what is a part of nothing in this process, and of `parent` in another if somebody said one. `None`: it is not traced; whether it is,
    /// is decided as of a call.
    pub fn begin(
        self: &Arc<Tracer>,
        parent: Option<TraceParent>,
        kind: SpanKind,
        name: impl FnOnce() -> Cow<'static, str>,
    ) -> Option<Span> {
        let place = Place { trace: self.trace(parent)?, span_id: parent.map_or(0, |parent| parent.span_id) };
        let mut span = place.begin_as(kind, name());
        span.is_parent_remote = parent.is_some();
        Some(span)
    }

    /// A trace, if it is to be one.
    fn trace(self: &Arc<Tracer>, parent: Option<TraceParent>) -> Option<Arc<Trace>> {
        match parent {
            Some(parent) if !parent.is_sampled => return None,
            Some(_) => {}
            None if self.sampled_below == u64::MAX => {}
            None if self.ids.next_u64() >= self.sampled_below => return None,
            None => {}
        }
        let trace_id = parent.map_or_else(|| u128::from(self.id()) << 64 | u128::from(self.id()), |p| p.trace_id);
        let wall_us = self.clock.now_ms().0.saturating_mul(1000);
        let offset_us = wall_us.saturating_sub_unsigned(self.clock.monotonic_us());
        Some(Arc::new(Trace { tracer: self.clone(), trace_id, offset_us }))
    }

    /// A number for a span: any but zero, which means none.
    fn id(&self) -> u64 {
        self.ids.next_u64().max(1)
    }
}

/// The tracer of a part of a process that is made before it is known whether there is one. Cheap to ask.
#[derive(Debug, Default)]
pub struct TracerCell(OnceLock<Arc<Tracer>>);

impl TracerCell {
    /// From now on there is one. Only the first counts.
    pub fn set(&self, tracer: Arc<Tracer>) {
        let _first = self.0.set(tracer);
    }

    /// The tracer, if there is one.
    pub fn get(&self) -> Option<&Arc<Tracer>> {
        self.0.get()
    }

    /// As [`Tracer::begin`], of work inside that nobody called for.
    #[inline]
    pub fn begin(&self, name: impl FnOnce() -> Cow<'static, str>) -> Option<Span> {
        self.0.get()?.begin(None, SpanKind::Internal, name)
    }
}

/// What all spans of a trace in this process have in common.
pub(crate) struct Trace {
    tracer: Arc<Tracer>,
    trace_id: u128,
    /// From the monotonic clock to that of the world, when the first of them began.
    offset_us: i64,
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trace({:032x})", self.trace_id)
    }
}

impl Trace {
    /// Microseconds since the Unix epoch.
    fn wall_us(&self, monotonic_us: u64) -> u64 {
        u64::try_from(self.offset_us.saturating_add_unsigned(monotonic_us)).unwrap_or(0)
    }

    /// A span of this trace: its id and that of its parent, its beginning and its end.
    fn span(
        &self,
        name: Cow<'static, str>,
        kind: SpanKind,
        (span_id, parent_id): (u64, u64),
        (begun_at_us, ended_at_us): (u64, u64),
    ) -> EndedSpan {
        EndedSpan {
            trace_id: self.trace_id,
            span_id,
            parent_id,
            is_parent_remote: false,
            kind,
            name,
            begun_at_us: self.wall_us(begun_at_us),
            ended_at_us: self.wall_us(ended_at_us.max(begun_at_us)),
            attributes: Vec::new(),
            events: Vec::new(),
            dropped_events: 0,
            error: None,
        }
    }
}

/// What a span of a call is called, on either side, and what is said of the call there: HBase's `IpcClientSpanBuilder`, `IpcServerSpanBuilder`.
fn of_call(service: &str, method: &'static str) -> (Cow<'static, str>, Vec<(&'static str, Value)>) {
    let service = format!("{PACKAGE}.{service}");
    let name = Cow::Owned(format!("{service}/{method}"));
    let attributes = vec![
        ("rpc.system", Value::from("HBASE_RPC")),
        ("rpc.service", Value::from(service)),
        ("rpc.method", Value::from(method)),
    ];
    (name, attributes)
}

/// A call of another server that is a part of what this thread does; `None` when that is not traced. `server` is `host:port`. Its
/// [`Place::traceparent`] goes with the request. Follows: `IpcClientSpanBuilder`.
pub fn begin_call(service: &'static str, method: &'static str, server: &str) -> Option<Span> {
    let place = current()?;
    let (name, attributes) = of_call(service, method);
    let mut span = place.begin_as(SpanKind::Client, name);
    attributes.into_iter().for_each(|(name, value)| span.set(name, value));
    if let Some((host, port)) = server.rsplit_once(':') {
        span.set("net.peer.name", host.to_owned());
        if let Ok(port) = port.parse::<u64>() {
            span.set("net.peer.port", port);
        }
    }
    Some(span)
}

/// A call that is traced: two spans, as HBase has them: `RpcServer.process` from its last byte to its answer, and within it, without the time
/// in a queue, one by the name of its method. They end with [`CallTrace::ended`].
pub struct CallTrace {
    trace: Arc<Trace>,
    parent: Option<TraceParent>,
    is_parent_remote: bool,
    process_id: u64,
    call_id: u64,
    service: &'static str,
    method: &'static str,
    received_at_us: u64,
    has_ended: AtomicBool,
}

impl fmt::Debug for CallTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallTrace({:?}, {}/{})", self.trace, self.service, self.method)
    }
}

impl CallTrace {
    /// A call that another part of this process makes within what this thread does; `None` when that is not traced.
    pub fn here(service: &'static str, method: &'static str, received_at_us: u64) -> Option<Arc<CallTrace>> {
        let Place { trace, span_id } = current()?;
        let parent = TraceParent { trace_id: trace.trace_id, span_id, is_sampled: true };
        Some(Arc::new(CallTrace {
            parent: Some(parent),
            is_parent_remote: false,
            process_id: trace.tracer.id(),
            call_id: trace.tracer.id(),
            trace,
            service,
            method,
            received_at_us,
            has_ended: AtomicBool::new(false),
        }))
    }

    /// Where work on the call begins.
    pub fn place(&self) -> Place {
        Place { trace: self.trace.clone(), span_id: self.call_id }
    }

    /// The call is answered, `error` being the class and the message of its exception. Work on it began at `begun_at_us`. Only the first time
    /// counts.
    pub fn ended(&self, begun_at_us: u64, error: Option<(&str, &str)>) {
        if self.has_ended.swap(true, Ordering::Relaxed) {
            return;
        }
        let (trace, sink) = (&self.trace, &self.trace.tracer.sink);
        let now_us = trace.tracer.clock.monotonic_us();
        let error = error.map(|(class, message)| (class.to_owned(), message.to_owned()));
        let (name, attributes) = of_call(self.service, self.method);
        let called = trace.span(name, SpanKind::Server, (self.call_id, self.process_id), (begun_at_us, now_us));
        sink.ended(EndedSpan { attributes, error: error.clone(), ..called });
        let parent_id = self.parent.map_or(0, |parent| parent.span_id);
        let (name, times) = (Cow::Borrowed("RpcServer.process"), (self.received_at_us, now_us));
        let process = trace.span(name, SpanKind::Server, (self.process_id, parent_id), times);
        sink.ended(EndedSpan { is_parent_remote: self.is_parent_remote, error, ..process });
    }
}

#[cfg(test)]
mod tests;
