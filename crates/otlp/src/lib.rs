//! Sends spans to a collector: OTLP over HTTP, by OpenTelemetry's own SDK, which batches them, bounds them and encodes them.
//!
//! Always true: whoever ends a span never waits: what does not fit into the queue (2,048 spans) is dropped and counted. A collector that is away
//! costs spans and a line in the log now and then, and nothing else.
//!
//! Must not know: what is traced, nor why (`trace`, `rpc`, `regionserver`).

pub mod settings;

mod http;

use base::{Clock, Config, Rng};
use http::Collector;
use opentelemetry::trace::{Event, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{Array, InstrumentationScope, KeyValue, StringValue, Value};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchSpanProcessor, SpanData, SpanEvents, SpanLinks, SpanProcessor as _};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use trace::{EndedSpan, SpanSink, Tracer};

/// Where collectors listen, and what OTLP over HTTP adds to their address.
const DEFAULT_ENDPOINT: &str = "http://localhost:4318";
const TRACES_PATH: &str = "/v1/traces";

/// Tracing is asked for and cannot be.
#[derive(Debug, thiserror::Error)]
#[error("cannot trace: {0}")]
pub struct Error(String);

/// Where spans go, as the configuration and the environment say.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The URL that they are posted to.
    pub endpoint: String,
    /// What the server is called.
    pub service_name: String,
    /// The part of calls that are traced whose clients say nothing.
    pub sampled_part: f64,
}

impl Options {
    /// As `config` says and, beside it, the variables that `env` has; `None`: nothing is traced.
    pub fn read(config: &Config, env: impl Fn(&str) -> Option<String>) -> Option<Options> {
        let said = |text: Option<&str>| text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let env = |name: &str| said(env(name).as_deref());
        let by_env = || {
            let is_wanted = env("OTEL_TRACES_EXPORTER")?.split(',').any(|exporter| exporter.trim() == "otlp");
            let whole = || env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
            let base = || env("OTEL_EXPORTER_OTLP_ENDPOINT").unwrap_or_else(|| DEFAULT_ENDPOINT.to_owned());
            is_wanted.then(|| whole().unwrap_or_else(|| format!("{}{TRACES_PATH}", base().trim_end_matches('/'))))
        };
        let set = said(config.text(settings::ENDPOINT.key)).filter(|text| text != settings::ENDPOINT.default);
        let endpoint = set.map(|endpoint| with_path(&endpoint)).or_else(by_env)?;
        let name = said(config.text(settings::SERVICE_NAME.key)).or_else(|| env("OTEL_SERVICE_NAME"));
        Some(Options {
            endpoint,
            service_name: name.unwrap_or_else(|| settings::SERVICE_NAME.default.to_owned()),
            sampled_part: config.get(&settings::SAMPLED_PART),
        })
    }
}

/// The address of a collector with the path that OTLP has; a URL that has a path stays as it is.
fn with_path(endpoint: &str) -> String {
    let bare = endpoint.trim_end_matches('/');
    let has_path = bare.split_once("://").is_none_or(|(_, rest)| rest.contains('/'));
    if has_path { endpoint.to_owned() } else { format!("{bare}{TRACES_PATH}") }
}

/// Sends spans. One per process.
pub struct Exporter {
    processor: BatchSpanProcessor,
    scope: InstrumentationScope,
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").finish_non_exhaustive()
    }
}

impl Exporter {
    /// Begins to send what ends, from a thread of its own; `instance` names the process (`service.instance.id`), `version` the program. Needs a
    /// Tokio runtime, which opens the connections.
    ///
    /// # Errors
    /// The endpoint is no URL of HTTP.
    pub fn start(options: &Options, instance: &str, version: &'static str) -> Result<Arc<Exporter>, Error> {
        let collector = Collector::of(&options.endpoint).map_err(Error)?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(collector)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&options.endpoint)
            .build()
            .map_err(|error| Error(format!("{}: {error}", options.endpoint)))?;
        let resource = Resource::builder()
            .with_service_name(options.service_name.clone())
            .with_attribute(KeyValue::new("service.version", version))
            .with_attribute(KeyValue::new("service.instance.id", instance.to_owned()))
            .build();
        let mut processor = BatchSpanProcessor::builder(exporter).build();
        processor.set_resource(&resource);
        let scope = InstrumentationScope::builder("basalt").with_version(version).build();
        Ok(Arc::new(Exporter { processor, scope }))
    }

    /// A tracer whose spans are sent.
    pub fn tracer(self: &Arc<Exporter>, options: &Options, clock: Arc<dyn Clock>, ids: Rng) -> Arc<Tracer> {
        Tracer::new(clock, ids, options.sampled_part, self.clone())
    }

    /// Sends what there is and ends, within `patience`. Blocks.
    pub fn shutdown(&self, patience: Duration) {
        if let Err(error) = self.processor.shutdown_with_timeout(patience) {
            tracing::warn!("the last spans were not exported: {error}");
        }
    }
}

impl SpanSink for Exporter {
    fn ended(&self, span: EndedSpan) {
        self.processor.on_end(span_data(span, self.scope.clone()));
    }
}

fn span_data(span: EndedSpan, instrumentation_scope: InstrumentationScope) -> SpanData {
    let trace_id = TraceId::from_bytes(span.trace_id.to_be_bytes());
    let id = |id: u64| SpanId::from_bytes(id.to_be_bytes());
    let event = |event: trace::Event| Event::new(event.name, time(event.at_us), key_values(event.attributes), 0);
    let mut events = SpanEvents::default();
    events.events = span.events.into_iter().map(event).collect();
    events.dropped_count = span.dropped_events;
    let (mut status, at) = (Status::Ok, time(span.ended_at_us));
    if let Some((class, message)) = span.error {
        // As TraceUtil#setError: the exception is an event.
        let said = vec![KeyValue::new("exception.type", class), KeyValue::new("exception.message", message.clone())];
        events.events.push(Event::new("exception", at, said, 0));
        status = Status::error(message);
    }
    SpanData {
        span_context: SpanContext::new(trace_id, id(span.span_id), TraceFlags::SAMPLED, false, TraceState::default()),
        parent_span_id: id(span.parent_id),
        parent_span_is_remote: span.is_parent_remote,
        span_kind: match span.kind {
            trace::SpanKind::Server => SpanKind::Server,
            trace::SpanKind::Internal => SpanKind::Internal,
            trace::SpanKind::Client => SpanKind::Client,
        },
        name: span.name,
        start_time: time(span.begun_at_us),
        end_time: at,
        attributes: key_values(span.attributes),
        dropped_attributes_count: 0,
        events,
        links: SpanLinks::default(),
        status,
        instrumentation_scope,
    }
}

fn time(us: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(us)
}

fn key_values(attributes: Vec<(&'static str, trace::Value)>) -> Vec<KeyValue> {
    let value = |value: trace::Value| match value {
        trace::Value::Text(Cow::Borrowed(text)) => Value::from(text),
        trace::Value::Text(Cow::Owned(text)) => Value::from(text),
        trace::Value::Texts(texts) => Value::Array(Array::String(texts.into_iter().map(StringValue::from).collect())),
        trace::Value::Number(number) => Value::I64(number),
    };
    attributes.into_iter().map(|(name, of)| KeyValue::new(name, value(of))).collect()
}

#[cfg(test)]
mod tests;
