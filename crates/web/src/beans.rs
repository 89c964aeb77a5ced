//! Metrics as beans: one list that `/jmx` and `/prometheus` both write.
//!
//! The numbers come from the process's [`base::metrics::Registry`]; here they get the tags that say whose they are, and the two rates, which
//! come of looking twice.

use crate::details::Runtime;
use crate::rates::RequestRates;
use crate::status::Status;
use base::metrics::{Bean as Name, Kind, MASTER, Number, REGION_SERVER, Sample};
use std::borrow::Cow;

/// One bean.
#[derive(Clone, Debug)]
pub struct Bean {
    /// Its names.
    pub name: Name,
    /// Texts that say whose numbers they are.
    pub tags: Vec<(&'static str, String)>,
    /// The numbers.
    pub metrics: Vec<Sample>,
    /// Attributes that are groups of numbers.
    pub groups: Vec<(&'static str, Vec<(&'static str, i64)>)>,
}

impl Bean {
    /// The bean's full name.
    pub fn full_name(&self) -> String {
        match self.name.tail {
            tail if is_java(tail) => tail.to_owned(),
            tail => format!("Hadoop:service=HBase,name={tail}"),
        }
    }
}

/// Every bean of `samples`, in their order.
pub fn all(samples: Vec<Sample>, status: &Status, rates: &RequestRates) -> Vec<Bean> {
    let mut beans: Vec<Bean> = Vec::new();
    for sample in samples {
        match beans.iter_mut().rev().find(|bean| bean.name == sample.bean) {
            Some(bean) => bean.metrics.push(sample),
            None => beans.push(Bean {
                name: sample.bean,
                tags: tags(sample.bean, status),
                metrics: vec![sample],
                groups: Vec::new(),
            }),
        }
    }
    if let Some(server) = beans.iter_mut().find(|bean| bean.name == REGION_SERVER) {
        let rate = |name, rate| Sample {
            bean: REGION_SERVER,
            name: Cow::Borrowed(name),
            number: Number::Double(rate),
            kind: Kind::Gauge,
        };
        server.metrics.push(rate("readRequestRatePerSecond", rates.reads));
        server.metrics.push(rate("writeRequestRatePerSecond", rates.writes));
    }
    beans
}

/// The standard beans of a JVM, which monitors read for memory and threads: what of them a process without a heap has. Only `/jmx` shows them.
/// Follows: `java.lang.management`.
pub fn of_java(runtime: &Runtime, now_ms: i64) -> Vec<Bean> {
    let bean = |tail, numbers: Vec<(&'static str, Number)>, groups| {
        let name = Name { tail, record: tail, context: "jvm" };
        let sample = |(metric, number)| Sample { bean: name, name: Cow::Borrowed(metric), number, kind: Kind::Gauge };
        Bean { name, tags: Vec::new(), metrics: numbers.into_iter().map(sample).collect(), groups }
    };
    let long = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let number = |value: u64| Number::Long(long(value));
    let (used, most) = (long(runtime.resident_bytes), long(runtime.limit_bytes));
    let usage = vec![("committed", used), ("init", 0), ("max", most), ("used", used)];
    vec![
        bean("java.lang:type=Memory", Vec::new(), vec![("HeapMemoryUsage", usage)]),
        bean("java.lang:type=Threading", vec![("ThreadCount", number(runtime.threads))], Vec::new()),
        bean(
            "java.lang:type=Runtime",
            vec![
                ("StartTime", Number::Long(runtime.started_ms)),
                ("Uptime", Number::Long(now_ms.saturating_sub(runtime.started_ms))),
            ],
            Vec::new(),
        ),
        bean(
            "java.lang:type=OperatingSystem",
            vec![
                ("AvailableProcessors", number(runtime.processors)),
                ("SystemLoadAverage", Number::Double(runtime.load_average)),
                ("ProcessCpuTime", number(runtime.cpu_ns)),
                ("OpenFileDescriptorCount", number(runtime.open_files)),
                ("MaxFileDescriptorCount", number(runtime.max_files)),
                ("TotalPhysicalMemorySize", number(runtime.machine_bytes)),
                ("FreePhysicalMemorySize", number(runtime.free_bytes)),
            ],
            Vec::new(),
        ),
    ]
}

fn is_java(tail: &str) -> bool {
    tail.starts_with("java.lang:")
}

fn names(servers: &[model::ServerName]) -> String {
    servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(";")
}

fn tags(bean: Name, status: &Status) -> Vec<(&'static str, String)> {
    let mut tags = Vec::new();
    if bean == MASTER {
        tags.extend([
            ("liveRegionServers", names(&status.live_servers)),
            ("deadRegionServers", names(&status.dead_servers)),
            ("drainingRegionServers", names(&status.draining_servers)),
            ("zookeeperQuorum", status.zookeeper_quorum.clone()),
            ("serverName", status.master.to_string()),
            ("clusterId", status.cluster_id.clone()),
            ("isActiveMaster", "true".to_owned()),
        ]);
    } else if bean == REGION_SERVER {
        tags.extend([
            ("zookeeperQuorum", status.zookeeper_quorum.clone()),
            ("serverName", status.region_server.to_string()),
            ("clusterId", status.cluster_id.clone()),
        ]);
    }
    tags.push(("Context", bean.context.to_owned()));
    tags.push(("Hostname", status.host_name.clone()));
    tags
}
