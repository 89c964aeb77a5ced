//! Metrics as beans: one list that `/jmx` and `/prometheus` both write.
//!
//! The numbers come from the process's [`base::metrics::Registry`]; here they get the tags that say whose they are, and the two rates, which
//! come of looking twice.

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
}

impl Bean {
    /// The bean's full name.
    pub fn full_name(&self) -> String {
        format!("Hadoop:service=HBase,name={}", self.name.tail)
    }
}

/// Every bean of `samples`, in their order.
pub fn all(samples: Vec<Sample>, status: &Status, rates: &RequestRates) -> Vec<Bean> {
    let mut beans: Vec<Bean> = Vec::new();
    for sample in samples {
        match beans.iter_mut().rev().find(|bean| bean.name == sample.bean) {
            Some(bean) => bean.metrics.push(sample),
            None => beans.push(Bean { name: sample.bean, tags: tags(sample.bean, status), metrics: vec![sample] }),
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
