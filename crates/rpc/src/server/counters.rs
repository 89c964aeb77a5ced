//! What a port counts, and under which of HBase's names it is shown. Follows: `MetricsHBaseServerSource`, `ExceptionTrackingSource`.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use base::metrics::{Histogram, Sink, Spread, Unit};

use crate::Kind;

/// What a server counts. All since its start, but for the gauge.
#[derive(Debug)]
pub struct Counters {
    /// Gauge: connections open.
    pub connections: AtomicUsize,
    /// Connections closed at once because there were too many.
    pub refused_connections: AtomicU64,
    /// Calls received.
    pub calls: base::Adder,
    /// Calls that ended in an exception.
    pub exceptions: AtomicU64,
    /// The same by class.
    pub exceptions_by_kind: ByKind,
    /// Bytes of requests.
    pub received_bytes: AtomicU64,
    /// Bytes of replies.
    pub sent_bytes: AtomicU64,
    /// SASL clients that were told to go on without it.
    pub authentication_fallbacks: AtomicU64,
    /// Connections that asked for a way of authentication that is not there.
    pub authentication_failures: AtomicU64,
    /// Connections whose header was accepted.
    pub authorizations: AtomicU64,
    /// Writes to sockets; replies per write is what gathering is worth.
    pub writes: AtomicU64,
    /// How long calls take.
    pub times: CallTimes,
    /// How long connections were not read from because their client did not take replies.
    pub unwritable_times: Histogram,
    /// Bytes of each request.
    pub request_sizes: Histogram,
    /// Bytes of each reply that is no exception, cells included.
    pub response_sizes: Histogram,
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            connections: AtomicUsize::new(0),
            refused_connections: AtomicU64::new(0),
            calls: base::Adder::default(),
            exceptions: AtomicU64::new(0),
            exceptions_by_kind: ByKind::default(),
            received_bytes: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            authentication_fallbacks: AtomicU64::new(0),
            authentication_failures: AtomicU64::new(0),
            authorizations: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            times: CallTimes::default(),
            unwritable_times: Histogram::new(Unit::Micros),
            request_sizes: Histogram::new(Unit::Bytes),
            response_sizes: Histogram::new(Unit::Bytes),
        }
    }
}

impl Counters {
    /// Puts all of it into `sink`, whose bean is set.
    pub(super) fn collect(&self, sink: &mut Sink, now_ms: i64) {
        let count = |counter: &AtomicU64| counter.load(Relaxed);
        sink.gauge("numOpenConnections", self.connections.load(Relaxed) as u64)
            .counter("refusedConnections", count(&self.refused_connections))
            .counter("receivedBytes", count(&self.received_bytes))
            .counter("sentBytes", count(&self.sent_bytes))
            .counter("authenticationFallbacks", count(&self.authentication_fallbacks))
            .counter("authenticationFailures", count(&self.authentication_failures))
            .counter("authorizationSuccesses", count(&self.authorizations))
            .histogram("unwritableTime", &self.unwritable_times, now_ms)
            .histogram("requestSize", &self.request_sizes, now_ms)
            .histogram("responseSize", &self.response_sizes, now_ms);
        self.times.collect(sink, now_ms);
        sink.counter("exceptions", count(&self.exceptions));
        let mut others = 0;
        for kind in Kind::ALL {
            let thrown = count(&self.exceptions_by_kind.0[*kind as usize]);
            match metric_name(*kind) {
                Some(name) => drop(sink.counter(name, thrown)),
                None => others += thrown,
            }
        }
        sink.counter("exceptions.otherExceptions", others);
    }
}

/// A call that holds a network thread for longer is counted: all connections of that thread have waited for it.
pub const LONG_HOLD_US: u64 = 1000;

/// How long calls take. One that is answered on the network thread is counted once, for it waits in no queue and is worked on for as long as it
/// holds the thread.
#[derive(Debug)]
pub struct CallTimes {
    /// Of calls that were answered on the network thread that took them out of their connection: from one to the next, so with their decoding
    /// and the encoding of their answers. On the clock: a thread that had to wait for a processor counts as held, too.
    at_once: Histogram,
    /// For how long the others held their network thread.
    holds_of_later: Histogram,
    /// Of the others: before somebody began with them,
    queued: Histogram,
    /// and from then to the answer.
    processed: Histogram,
    /// Both together.
    total: Histogram,
    long_holds: AtomicU64,
}

impl Default for CallTimes {
    fn default() -> CallTimes {
        let times = || Histogram::new(Unit::Micros);
        CallTimes {
            at_once: times(),
            holds_of_later: times(),
            queued: times(),
            processed: times(),
            total: times(),
            long_holds: AtomicU64::new(0),
        }
    }
}

impl CallTimes {
    /// A call has held its network thread; whether it is answered by now.
    pub(super) fn held(&self, held_us: u64, is_answered: bool) {
        let times = if is_answered { &self.at_once } else { &self.holds_of_later };
        times.record(held_us);
        if held_us > LONG_HOLD_US {
            self.long_holds.fetch_add(1, Relaxed);
        }
    }

    /// A call that was not answered at once is answered now.
    pub(super) fn answered_later(&self, queued_us: u64, processed_us: u64) {
        self.queued.record(queued_us);
        self.processed.record(processed_us);
        self.total.record(queued_us + processed_us);
    }

    /// Calls that have held a network thread.
    pub fn holds(&self) -> u64 {
        self.at_once.count() + self.holds_of_later.count()
    }

    /// Those of them that held it for longer than [`LONG_HOLD_US`].
    pub fn long_holds(&self) -> u64 {
        self.long_holds.load(Relaxed)
    }

    fn collect(&self, sink: &mut Sink, now_ms: i64) {
        let (at_once, count) = (self.at_once.spread(now_ms), self.at_once.count());
        let mut put = |name, later: &Histogram, others: Spread| {
            sink.spread(name, Unit::Micros, count + later.count(), &later.spread(now_ms).and(&others));
        };
        put("networkThreadHold", &self.holds_of_later, at_once.clone());
        put("queueCallTime", &self.queued, Spread::zeros(at_once.count()));
        put("processCallTime", &self.processed, at_once.clone());
        put("totalCallTime", &self.total, at_once);
        sink.counter("networkThreadLongHolds", self.long_holds());
    }
}

/// A count for each class of exceptions, in the order of [`Kind::ALL`].
#[derive(Debug)]
pub struct ByKind([AtomicU64; Kind::ALL.len()]);

impl Default for ByKind {
    fn default() -> ByKind {
        ByKind(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl ByKind {
    /// Counts one.
    pub fn count(&self, kind: Kind) {
        self.0[kind as usize].fetch_add(1, Relaxed);
    }
}

/// The metric that counts a class; `None`: HBase counts it among others.
fn metric_name(kind: Kind) -> Option<&'static str> {
    Some(match kind {
        Kind::NotServingRegion => "exceptions.NotServingRegionException",
        Kind::RegionTooBusy => "exceptions.RegionTooBusyException",
        Kind::RegionMoved => "exceptions.RegionMovedException",
        Kind::OutOfOrderScannerNext => "exceptions.OutOfOrderScannerNextException",
        Kind::UnknownScanner => "exceptions.UnknownScannerException",
        Kind::ScannerReset => "exceptions.ScannerResetException",
        Kind::FailedSanityCheck => "exceptions.FailedSanityCheckException",
        Kind::MultiActionResultTooLarge => "exceptions.multiResponseTooLarge",
        Kind::CallQueueTooBig => "exceptions.callQueueTooBig",
        Kind::CallDropped => "exceptions.callDropped",
        Kind::RequestTooBig => "exceptions.requestTooBig",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::metrics::{IPC, Number, Registry};
    use std::sync::Arc;

    #[test]
    fn a_call_answered_at_once_waits_in_no_queue() {
        let (registry, counters) = (Registry::new(), Arc::new(Counters::default()));
        let seen = counters.clone();
        registry.collect(move |sink, now_ms| seen.collect(sink.bean(IPC), now_ms));
        counters.times.held(15, true);
        counters.times.held(3, false);
        counters.times.answered_later(4, 8);
        let samples = registry.read(0);
        let value = |name: &str| samples.iter().find(|sample| sample.name == name).map(|sample| sample.number);
        let ms = |us: f64| Some(Number::Double(us / 1000.0));
        for name in ["NetworkThreadHold", "QueueCallTime", "ProcessCallTime", "TotalCallTime"] {
            assert_eq!(value(&format!("{name}_num_ops")), Some(Number::Long(2)), "{name}");
        }
        assert_eq!((value("QueueCallTime_min"), value("QueueCallTime_max")), (ms(0.0), ms(4.0)));
        assert_eq!((value("ProcessCallTime_min"), value("ProcessCallTime_max")), (ms(8.0), ms(15.0)));
        assert_eq!((value("TotalCallTime_min"), value("NetworkThreadHold_min")), (ms(12.0), ms(3.0)));
        assert_eq!(value("networkThreadLongHolds"), Some(Number::Long(0)));
    }
}
