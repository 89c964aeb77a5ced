//! One span: what is under way, and what is told of it when it has ended.

use crate::{Trace, TraceParent};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Most events of one span; of others it is only said how many there were.
const MOST_EVENTS: usize = 128;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text.
    Text(Cow<'static, str>),
    /// A list of texts.
    Texts(Vec<String>),
    /// A number.
    Number(i64),
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Value {
        Value::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(Cow::Owned(text))
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// Something that happened within a span.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// What.
    pub name: &'static str,
    /// When: microseconds since the Unix epoch in a span that has ended, on the monotonic clock in [`Span::event`].
    pub at_us: u64,
    /// More about it.
    pub attributes: Vec<(&'static str, Value)>,
}

/// Which side of a call a span is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Work for a remote client.
    Server,
    /// A part of such work, or work inside.
    Internal,
    /// A wait for another server.
    Client,
}

/// A span that is over. Times in microseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct EndedSpan {
    /// Of which trace it is.
    pub trace_id: u128,
    /// Its own number.
    pub span_id: u64,
    /// The span that it is a part of; 0: none.
    pub parent_id: u64,
    /// Whether that is in another process.
    pub is_parent_remote: bool,
    /// Which side of a call it is on.
    pub kind: SpanKind,
    /// What it is called.
    pub name: Cow<'static, str>,
    /// When it began.
    pub begun_at_us: u64,
    /// When it ended.
    pub ended_at_us: u64,
    /// More about it.
    pub attributes: Vec<(&'static str, Value)>,
    /// What happened meanwhile.
    pub events: Vec<Event>,
    /// How many more events there were.
    pub dropped_events: u32,
    /// Class and message of the exception that it ended with.
    pub error: Option<(String, String)>,
}

/// A place in a trace: what begins there is a part of it.
#[derive(Clone)]
pub struct Place {
    pub(crate) trace: Arc<Trace>,
    pub(crate) span_id: u64,
}

impl Place {
    /// Begins a part of this.
    pub fn begin(&self, name: impl Into<Cow<'static, str>>) -> Span {
        self.begin_as(SpanKind::Internal, name)
    }

    /// As [`Place::begin`], on that side of a call.
    pub fn begin_as(&self, kind: SpanKind, name: impl Into<Cow<'static, str>>) -> Span {
        let begun_at_us = self.trace.tracer.clock.monotonic_us();
        let place = Place { trace: self.trace.clone(), span_id: self.trace.tracer.id() };
        Span {
            place,
            parent_id: self.span_id,
            is_parent_remote: false,
            kind,
            name: name.into(),
            begun_at_us,
            attributes: Vec::new(),
            events: Vec::new(),
            dropped_events: 0,
            error: None,
            is_cancelled: false,
        }
    }

    /// The place as another process is told of it, in the header [`TraceParent::HEADER`]: what it does for us is a part of this.
    pub fn traceparent(&self) -> String {
        TraceParent { trace_id: self.trace.trace_id, span_id: self.span_id, is_sampled: true }.to_string()
    }
}

/// A span under way, on whichever thread its handle is; it ends when that is dropped.
#[must_use = "it ends when it is dropped"]
pub struct Span {
    pub(crate) place: Place,
    parent_id: u64,
    pub(crate) is_parent_remote: bool,
    kind: SpanKind,
    name: Cow<'static, str>,
    begun_at_us: u64,
    attributes: Vec<(&'static str, Value)>,
    events: Vec<Event>,
    dropped_events: u32,
    error: Option<(String, String)>,
    is_cancelled: bool,
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Span({}, {:?})", self.name, self.place.trace)
    }
}

impl Span {
    /// Says more about it.
    pub fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        self.attributes.push((name, value.into()));
    }

    /// Something happened, at `event.at_us` on the monotonic clock. The first 128 are kept.
    pub fn event(&mut self, event: Event) {
        if self.events.len() == MOST_EVENTS {
            self.dropped_events = self.dropped_events.saturating_add(1);
        } else {
            self.events.push(event);
        }
    }

    /// So many events happened of which no more is known.
    pub fn dropped_events(&mut self, events: u32) {
        self.dropped_events = self.dropped_events.saturating_add(events);
    }

    /// It fails with an exception of `class`.
    pub fn fail(&mut self, class: &str, message: &str) {
        self.error = Some((class.to_owned(), message.to_owned()));
    }

    /// Nobody is told of it.
    pub fn cancel(mut self) {
        self.is_cancelled = true;
    }

    /// Where parts of it begin.
    pub fn place(&self) -> &Place {
        &self.place
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if self.is_cancelled {
            return;
        }
        let Place { trace, span_id } = &self.place;
        let now_us = trace.tracer.clock.monotonic_us();
        let (ids, times) = ((*span_id, self.parent_id), (self.begun_at_us, now_us));
        let ended = trace.span(std::mem::take(&mut self.name), self.kind, ids, times);
        let mut events = std::mem::take(&mut self.events);
        events.iter_mut().for_each(|event| event.at_us = trace.wall_us(event.at_us));
        trace.tracer.sink.ended(EndedSpan {
            attributes: std::mem::take(&mut self.attributes),
            events,
            dropped_events: self.dropped_events,
            is_parent_remote: self.is_parent_remote,
            error: self.error.take(),
            ..ended
        });
    }
}
