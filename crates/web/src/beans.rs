//! Metrics as beans: one list that `/jmx` and `/prometheus` both write.
//!
//! The numbers come from the process's [`base::metrics::Registry`]; here they get the tags that say whose they are, and the two rates, which
//! come of looking twice.

use crate::conf;
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
    /// Attributes that are texts.
    pub texts: Vec<(&'static str, Text)>,
}

/// An attribute without numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// One.
    One(String),
    /// Several, in their order.
    List(Vec<String>),
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
                texts: Vec::new(),
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

/// The standard beans of a JVM, which monitors read for memory and threads: what of them a process without a JVM has, and nothing that it would have
/// to make up (docs/operations/monitoring.md says what each one means). Only `/jmx` shows them. Follows: `java.lang.management`.
pub fn of_java(runtime: &Runtime, now_ms: i64) -> Vec<Bean> {
    let long = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let number = |value: u64| Number::Long(long(value));
    let usage =
        |used: u64, most: i64| vec![("committed", long(used)), ("init", 0), ("max", most), ("used", long(used))];
    let text = |text: &str| Text::One(text.to_owned());
    let (heap, machine) = (runtime.heap, &runtime.machine);
    let memory = JavaBean::new("java.lang:type=Memory")
        .group("HeapMemoryUsage", usage(heap.used_bytes, long(heap.max_bytes)))
        // -1: no limit is known, as a JVM says it.
        .group("NonHeapMemoryUsage", usage(heap.outside_bytes, -1));
    let threading = JavaBean::new("java.lang:type=Threading").number("ThreadCount", number(runtime.threads));
    let arguments = conf::shown_arguments(&runtime.arguments);
    let process = JavaBean::new("java.lang:type=Runtime")
        .text("Name", Text::One(format!("{}@{}", runtime.pid, machine.host)))
        .number("Pid", number(u64::from(runtime.pid)))
        .number("StartTime", Number::Long(runtime.started_ms))
        .number("Uptime", Number::Long(now_ms.saturating_sub(runtime.started_ms)))
        .text("InputArguments", Text::List(arguments));
    let system = JavaBean::new("java.lang:type=OperatingSystem")
        .text("Name", text(&machine.system))
        .text("Version", text(&machine.release))
        .text("Arch", text(&machine.processor))
        .number("AvailableProcessors", number(runtime.processors))
        .number("SystemLoadAverage", Number::Double(runtime.load_average))
        .number("ProcessCpuTime", number(runtime.cpu_ns))
        .number("OpenFileDescriptorCount", number(runtime.open_files))
        .number("MaxFileDescriptorCount", number(runtime.max_files))
        .number("CommittedVirtualMemorySize", number(runtime.virtual_bytes))
        // Java 14 has new names for them, and keeps the old ones.
        .number("TotalMemorySize", number(runtime.machine_bytes))
        .number("FreeMemorySize", number(runtime.free_bytes))
        .number("TotalPhysicalMemorySize", number(runtime.machine_bytes))
        .number("FreePhysicalMemorySize", number(runtime.free_bytes))
        .number("TotalSwapSpaceSize", number(runtime.swap_bytes))
        .number("FreeSwapSpaceSize", number(runtime.free_swap_bytes));
    [memory, threading, process, system].map(|bean| bean.0).into()
}

/// A bean of a JVM that is being put together.
struct JavaBean(Bean);

impl JavaBean {
    /// It tells its own name, as a JVM's does.
    fn new(tail: &'static str) -> JavaBean {
        let name = Name { tail, record: tail, context: "jvm" };
        let bean = Bean { name, tags: Vec::new(), metrics: Vec::new(), groups: Vec::new(), texts: Vec::new() };
        JavaBean(bean).text("ObjectName", Text::One(tail.to_owned()))
    }

    fn number(mut self, name: &'static str, number: Number) -> JavaBean {
        let sample = Sample { bean: self.0.name, name: Cow::Borrowed(name), number, kind: Kind::Gauge };
        self.0.metrics.push(sample);
        self
    }

    fn text(mut self, name: &'static str, text: Text) -> JavaBean {
        self.0.texts.push((name, text));
        self
    }

    fn group(mut self, name: &'static str, group: Vec<(&'static str, i64)>) -> JavaBean {
        self.0.groups.push((name, group));
        self
    }
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
