//! What a gateway counts, under HBase's names. Follows: `ThriftMetrics`, `MetricsThriftServerSourceImpl`.
//!
//! There is no queue of calls here, so `callQueueLen` and `timeInQueue` are left out.

use crate::server::Version;
use base::Clock;
use base::metrics::{Bean, Histogram, Registry, THRIFT_ONE, THRIFT_TWO, Unit};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use trace::{Span, SpanKind, Tracer};

/// The numbers of one gateway.
pub struct Metrics {
    calls: Histogram,
    slow_calls: Histogram,
    batch_gets: Histogram,
    batch_mutates: Histogram,
    /// By the name of the method, which is one that the service has.
    methods: RwLock<BTreeMap<String, Arc<Histogram>>>,
    connections: AtomicUsize,
    slow_after: Duration,
}

impl Metrics {
    /// Nothing counted; calls are slow that take longer than `slow_after`.
    pub fn new(slow_after: Duration) -> Metrics {
        let histogram = Histogram::new;
        Metrics {
            calls: histogram(Unit::Micros),
            slow_calls: histogram(Unit::Micros),
            batch_gets: histogram(Unit::Count),
            batch_mutates: histogram(Unit::Count),
            methods: RwLock::default(),
            connections: AtomicUsize::new(0),
            slow_after,
        }
    }

    /// A call of `method`, which the service has, was answered.
    fn called(&self, method: &str, took_us: u64) {
        self.calls.record(took_us);
        if u128::from(took_us) > self.slow_after.as_micros() {
            self.slow_calls.record(took_us);
        }
        if let Some(histogram) = self.methods.read().get(method) {
            histogram.record(took_us);
            return;
        }
        let mut methods = self.methods.write();
        methods.entry(method.to_owned()).or_insert_with(|| Arc::new(Histogram::new(Unit::Micros))).record(took_us);
    }

    /// So many rows are asked for at once.
    pub(crate) fn batch_get(&self, rows: usize) {
        self.batch_gets.record(rows as u64);
    }

    /// So many mutations are asked for at once.
    pub(crate) fn batch_mutate(&self, mutations: usize) {
        self.batch_mutates.record(mutations as u64);
    }

    /// Calls so far.
    pub fn calls(&self) -> u64 {
        self.calls.count()
    }

    /// Connections that are open.
    pub fn connections(&self) -> usize {
        self.connections.load(Relaxed)
    }

    /// A connection is open until what is returned is dropped.
    pub(crate) fn connected(self: &Arc<Self>) -> Connected {
        self.connections.fetch_add(1, Relaxed);
        Connected(self.clone())
    }

    /// Shows them in `registry`.
    pub(crate) fn register(self: &Arc<Self>, registry: &Registry, version: Version) {
        let (metrics, bean) = (Arc::downgrade(self), bean(version));
        registry.collect(move |sink, now_ms| {
            let Some(metrics) = metrics.upgrade() else { return };
            sink.bean(bean)
                .gauge("numActiveWorkers", metrics.connections() as u64)
                .histogram("thriftCall", &metrics.calls, now_ms)
                .histogram("slowThriftCall", &metrics.slow_calls, now_ms)
                .histogram("batchGet", &metrics.batch_gets, now_ms)
                .histogram("batchMutate", &metrics.batch_mutates, now_ms);
            let methods = metrics.methods.read().clone();
            for (name, histogram) in methods {
                sink.histogram(&name, &histogram, now_ms);
            }
        });
    }
}

fn bean(version: Version) -> Bean {
    match version {
        Version::One => THRIFT_ONE,
        Version::Two => THRIFT_TWO,
    }
}

/// Times the calls that are counted.
#[derive(Clone)]
pub(crate) struct Stopwatch {
    metrics: Arc<Metrics>,
    clock: Arc<dyn Clock>,
    /// Traces calls of the service of this name.
    tracing: Option<(Arc<Tracer>, &'static str)>,
}

impl Stopwatch {
    /// By this clock.
    pub(crate) fn new(
        metrics: Arc<Metrics>,
        clock: Arc<dyn Clock>,
        tracing: Option<(Arc<Tracer>, &'static str)>,
    ) -> Stopwatch {
        Stopwatch { metrics, clock, tracing }
    }

    /// Begins the span of a call, if it is traced.
    pub(crate) fn span(&self, method: &str) -> Option<Span> {
        let (tracer, service) = self.tracing.as_ref()?;
        let mut span = tracer.begin(None, SpanKind::Server, || format!("{service}/{method}").into())?;
        span.set("rpc.system", "apache_thrift");
        span.set("rpc.service", *service);
        span.set("rpc.method", method.to_owned());
        Some(span)
    }

    /// When it is.
    pub(crate) fn now_us(&self) -> u64 {
        self.clock.monotonic_us()
    }

    /// A call that began at `begun_us` was answered; the service has such a method.
    pub(crate) fn called(&self, method: &str, begun_us: u64) {
        self.metrics.called(method, self.now_us().saturating_sub(begun_us));
    }
}

/// A connection that counts.
pub(crate) struct Connected(Arc<Metrics>);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_method_and_slow_ones_apart() {
        let metrics = Arc::new(Metrics::new(Duration::from_millis(10)));
        let registry = Registry::new();
        metrics.register(&registry, Version::Two);
        metrics.called("get", 1_000);
        metrics.called("get", 11_000);
        metrics.called("put", 10_000);
        metrics.batch_get(30);
        let open = metrics.connected();
        let value = |name: &str| {
            let found = registry.read(0).into_iter().find(|sample| sample.name == name);
            found.map(|sample| (sample.bean.tail, sample.number))
        };
        let long = |value| Some(("Thrift,sub=ThriftTwo", base::metrics::Number::Long(value)));
        assert_eq!(value("ThriftCall_num_ops"), long(3));
        assert_eq!(value("SlowThriftCall_num_ops"), long(1));
        assert_eq!((value("Get_num_ops"), value("Put_num_ops")), (long(2), long(1)));
        assert_eq!(value("BatchGet_max"), long(30));
        assert_eq!(value("numActiveWorkers"), long(1));
        drop(open);
        assert_eq!(value("numActiveWorkers"), long(0));
    }
}
