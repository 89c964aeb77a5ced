//! Metrics: each number is registered where it arises, under the name that monitors know, and read through one list.
//!
//! Always true:
//!  1. Recording takes no lock and allocates nothing once a thread has recorded before.
//!  2. A metric is in the list exactly when somebody fills it: what is not known is left out, never shown as a zero.
//!  3. Reading changes nothing, so that several monitors do not disturb each other.
//!
//! Not here: how the list is written (`web`), and which beans HBase has (their names stand where they are registered).
//! Follows: Hadoop's metrics2 (`MetricsRegistry`, `MutableHistogram`), with HBase's names.

mod histogram;
mod own_stripe;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::Adder;
pub use histogram::{Histogram, Spread, Unit};

/// A group of metrics: what JMX calls a bean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bean {
    /// What follows `Hadoop:service=HBase,name=`: `RegionServer,sub=WAL`.
    pub tail: &'static str,
    /// The metrics record: the beginning of the names in Prometheus' format.
    pub record: &'static str,
    /// Hadoop's metrics context: `master` or `regionserver`.
    pub context: &'static str,
}

/// `RegionServer,sub=Server`: what a region server does. Follows: `MetricsRegionServerSource`.
pub const REGION_SERVER: Bean = Bean { tail: "RegionServer,sub=Server", record: "Server", context: "regionserver" };
/// `RegionServer,sub=Tables`: the same by table. Follows: `MetricsTableAggregateSource`.
pub const TABLES: Bean = Bean { tail: "RegionServer,sub=Tables", record: "Tables", context: "regionserver" };
/// `RegionServer,sub=Users`: what users read and write. Follows: `MetricsUserAggregateSource`.
pub const USERS: Bean = Bean { tail: "RegionServer,sub=Users", record: "Users", context: "regionserver" };
/// `RegionServer,sub=Regions`: the same by region. Follows: `MetricsRegionAggregateSource`.
pub const REGIONS: Bean = Bean { tail: "RegionServer,sub=Regions", record: "Regions", context: "regionserver" };
/// `RegionServer,sub=IPC`: calls and connections. Follows: `MetricsHBaseServerSource`.
pub const IPC: Bean = Bean { tail: "RegionServer,sub=IPC", record: "RegionServer", context: "regionserver" };
/// `Master,sub=IPC`: the same of the master's port.
pub const MASTER_IPC: Bean = Bean { tail: "Master,sub=IPC", record: "Master", context: "master" };
/// `RegionServer,sub=WAL`: the log. Follows: `MetricsWALSource`.
pub const WAL: Bean = Bean { tail: "RegionServer,sub=WAL", record: "WAL", context: "regionserver" };
/// `RegionServer,sub=IO`: reads of store files. Follows: `MetricsIOSource`.
pub const IO: Bean = Bean { tail: "RegionServer,sub=IO", record: "IO", context: "regionserver" };
/// `RegionServer,sub=Memory`: the memory budget. Follows: `MetricsHeapMemoryManagerSource`.
pub const MEMORY: Bean = Bean { tail: "RegionServer,sub=Memory", record: "Memory", context: "regionserver" };
/// `Master,sub=Server`: the cluster as the master sees it. Follows: `MetricsMasterSource`.
pub const MASTER: Bean = Bean { tail: "Master,sub=Server", record: "Server", context: "master" };
/// `Master,sub=AssignmentManager`: regions in transition. Follows: `MetricsAssignmentManagerSource`.
pub const ASSIGNMENT: Bean =
    Bean { tail: "Master,sub=AssignmentManager", record: "AssignmentManager", context: "master" };

/// `Master,sub=Balancer`: what evens out the load. Follows: `MetricsBalancerSource`.
pub const BALANCER: Bean = Bean { tail: "Master,sub=Balancer", record: "Balancer", context: "master" };

/// `REST`: what the REST gateway is asked. Follows: `MetricsRESTSource`.
pub const REST: Bean = Bean { tail: "REST", record: "REST", context: "rest" };
/// `Thrift,sub=ThriftOne`: calls of Thrift 1. Follows: `MetricsThriftServerSource`.
pub const THRIFT_ONE: Bean = Bean { tail: "Thrift,sub=ThriftOne", record: "Thrift", context: "thrift-one" };
/// `Thrift,sub=ThriftTwo`: calls of Thrift 2.
pub const THRIFT_TWO: Bean = Bean { tail: "Thrift,sub=ThriftTwo", record: "Thrift", context: "thrift-two" };

/// `Master,sub=Quotas`: quotas of space. Follows: `MetricsMasterQuotaSource`.
pub const QUOTAS: Bean = Bean { tail: "Master,sub=Quotas", record: "Quotas", context: "master" };

/// A value, written as Java writes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A `long`.
    Long(i64),
    /// A `double`.
    Double(f64),
}

/// Whether a value only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It does, until the process ends.
    Counter,
    /// It may fall.
    Gauge,
}

/// A metric at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Its group.
    pub bean: Bean,
    /// Its name in the group.
    pub name: Cow<'static, str>,
    /// Its value.
    pub number: Number,
    /// Its kind.
    pub kind: Kind,
}

/// The process, as its system sees it: `process_cpu_seconds_total` and so on in Prometheus' format.
pub const PROCESS: Bean = Bean { tail: "Process", record: "Process", context: "process" };

/// `JvmMetrics`, as far as a process without a JVM has them: memory, threads, log lines. Follows: Hadoop's `JvmMetrics`.
pub const JVM: Bean = Bean { tail: "JvmMetrics", record: "JvmMetrics", context: "jvm" };

/// Where times are cut, in milliseconds. Follows: `MutableTimeHistogram`.
const TIME_LIMITS_MS: [u64; 14] =
    [1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000];
/// Where sizes are cut. Follows: `MutableSizeHistogram`.
const SIZE_LIMITS_BYTES: [u64; 8] = [10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Where samples are put while the list is read.
#[derive(Debug)]
pub struct Sink {
    bean: Bean,
    samples: Vec<Sample>,
}

impl Sink {
    /// The samples from now on belong to `bean`.
    pub fn bean(&mut self, bean: Bean) -> &mut Sink {
        self.bean = bean;
        self
    }

    /// A value that may fall.
    pub fn gauge(&mut self, name: impl Into<Cow<'static, str>>, value: u64) -> &mut Sink {
        self.put(name.into(), long(value), Kind::Gauge)
    }

    /// A value that only grows.
    pub fn counter(&mut self, name: impl Into<Cow<'static, str>>, value: u64) -> &mut Sink {
        self.put(name.into(), long(value), Kind::Counter)
    }

    /// A ratio, a rate, a share. What is no number counts as 0.
    pub fn real(&mut self, name: impl Into<Cow<'static, str>>, value: f64) -> &mut Sink {
        let value = if value.is_finite() { value } else { 0.0 };
        self.put(name.into(), Number::Double(value), Kind::Gauge)
    }

    /// A histogram under HBase's names: `<Name>_num_ops`, `_min`, `_max`, `_mean`, `_median`, `_99th_percentile` and so on, the first letter of
    /// `name` large as Hadoop's metrics write it. Times are in milliseconds, as HBase has them, with their fractions.
    pub fn histogram(&mut self, name: &str, histogram: &Histogram, now_ms: i64) -> &mut Sink {
        self.spread(name, histogram.unit(), histogram.count(), &histogram.spread(now_ms))
    }

    /// As [`Sink::histogram`], of what several histograms have counted: `count` values since the start, `lately` in the last minutes.
    pub fn spread(&mut self, name: &str, unit: Unit, count: u64, lately: &Spread) -> &mut Sink {
        const QUANTILES: [(&str, f64); 8] = [
            ("25th_percentile", 0.25),
            ("median", 0.5),
            ("75th_percentile", 0.75),
            ("90th_percentile", 0.9),
            ("95th_percentile", 0.95),
            ("98th_percentile", 0.98),
            ("99th_percentile", 0.99),
            ("99.9th_percentile", 0.999),
        ];
        let mut letters = name.chars();
        let name: String = letters.next().iter().flat_map(|first| first.to_uppercase()).chain(letters).collect();
        self.counter(format!("{name}_num_ops"), count);
        let in_unit = |value: f64| match unit {
            Unit::Micros => Number::Double(value / 1000.0),
            Unit::Bytes | Unit::Count => Number::Long(value as i64),
        };
        let ends = [("min", lately.min() as f64), ("max", lately.max() as f64), ("mean", lately.mean())];
        let quantiles = QUANTILES.map(|(suffix, quantile)| (suffix, lately.quantile(quantile) as f64));
        for (suffix, value) in ends.into_iter().chain(quantiles) {
            self.put(format!("{name}_{suffix}").into(), in_unit(value), Kind::Gauge);
        }
        self.ranges(&name, unit, lately)
    }

    /// How many values lie between HBase's limits, where there are any. Follows: `MutableRangeHistogram`.
    fn ranges(&mut self, name: &str, unit: Unit, lately: &Spread) -> &mut Sink {
        let (kind, limits, scale): (_, &[u64], _) = match unit {
            Unit::Micros => ("TimeRangeCount", &TIME_LIMITS_MS, 1000),
            Unit::Bytes => ("SizeRangeCount", &SIZE_LIMITS_BYTES, 1),
            Unit::Count => return self,
        };
        let (mut from, mut seen) = (0, 0);
        for limit in limits {
            let up_to = lately.count_up_to(limit * scale);
            if up_to > seen {
                self.gauge(format!("{name}_{kind}_{from}-{limit}"), up_to - seen);
            }
            (from, seen) = (*limit, up_to);
        }
        if lately.count() > seen {
            self.gauge(format!("{name}_{kind}_{from}-inf"), lately.count() - seen);
        }
        self
    }

    fn put(&mut self, name: Cow<'static, str>, number: Number, kind: Kind) -> &mut Sink {
        self.samples.push(Sample { bean: self.bean, name, number, kind });
        self
    }
}

fn long(value: u64) -> Number {
    Number::Long(i64::try_from(value).unwrap_or(i64::MAX))
}

type Collector = Box<dyn Fn(&mut Sink, i64) + Send + Sync>;

/// The list of a process's metrics. Cheap to read: proportional to their number, plus what collectors do.
#[derive(Default)]
pub struct Registry {
    collectors: Mutex<Vec<Arc<Collector>>>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("collectors", &self.collectors.lock().len()).finish()
    }
}

impl Registry {
    /// An empty list.
    pub fn new() -> Arc<Registry> {
        Arc::default()
    }

    /// A counter that any thread may add to.
    pub fn counter(&self, bean: Bean, name: &'static str) -> Arc<Adder> {
        let adder = Arc::new(Adder::default());
        let seen = adder.clone();
        self.collect(move |sink, _| {
            sink.bean(bean).counter(name, seen.sum());
        });
        adder
    }

    /// A histogram that any thread may record into.
    pub fn histogram(&self, bean: Bean, name: &'static str, unit: Unit) -> Arc<Histogram> {
        let histogram = Arc::new(Histogram::new(unit));
        let seen = histogram.clone();
        self.collect(move |sink, now_ms| {
            sink.bean(bean).histogram(name, &seen, now_ms);
        });
        histogram
    }

    /// Numbers that are worked out when the list is read: `collector` puts them into the sink. It is handed the wall clock in milliseconds,
    /// must not wait for a disk, and must not keep alive what it reads (a [`std::sync::Weak`] does not).
    pub fn collect(&self, collector: impl Fn(&mut Sink, i64) + Send + Sync + 'static) {
        self.collectors.lock().push(Arc::new(Box::new(collector)));
    }

    /// Every metric now, those of a bean together, in the order in which beans and names were first registered.
    pub fn read(&self, now_ms: i64) -> Vec<Sample> {
        let collectors = self.collectors.lock().clone();
        let mut sink = Sink { bean: REGION_SERVER, samples: Vec::with_capacity(512) };
        collectors.iter().for_each(|collector| collector(&mut sink, now_ms));
        let mut order: Vec<Bean> = Vec::new();
        for sample in &sink.samples {
            if !order.contains(&sample.bean) {
                order.push(sample.bean);
            }
        }
        sink.samples.sort_by_key(|sample| order.iter().position(|bean| *bean == sample.bean));
        sink.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_a_bean_stand_together_under_their_names() {
        let registry = Registry::new();
        let puts = registry.counter(REGION_SERVER, "writeRequestCount");
        registry.collect(|sink, now_ms| {
            sink.bean(WAL).gauge("age", now_ms as u64).bean(REGION_SERVER).real("share", f64::NAN);
        });
        let times = registry.histogram(REGION_SERVER, "get", Unit::Micros);
        puts.add(3);
        times.record(1500);
        let samples = registry.read(7);
        let beans: Vec<&str> = samples.iter().map(|sample| sample.bean.record).collect();
        assert!(beans.is_sorted_by_key(|record| *record == "WAL"), "{beans:?}");
        let value = |name: &str| samples.iter().find(|sample| sample.name == name).map(|sample| sample.number);
        assert_eq!(value("writeRequestCount"), Some(Number::Long(3)));
        assert_eq!(value("age"), Some(Number::Long(7)));
        assert_eq!(value("share"), Some(Number::Double(0.0)));
        assert_eq!(value("Get_num_ops"), Some(Number::Long(1)));
        let Some(Number::Double(median)) = value("Get_median") else { panic!("no median") };
        assert!((1.4..1.6).contains(&median), "{median}");
        assert!(value("Get_99.9th_percentile").is_some());
        assert_eq!((value("Get_TimeRangeCount_1-3"), value("Get_TimeRangeCount_0-1")), (Some(Number::Long(1)), None));
    }
}
