//! The master's metrics under HBase's names. Follows: `MetricsMasterSource`, `MetricsAssignmentManagerSource`.

use crate::cluster::{RegionState, TableState};
use crate::master::Master;
use base::metrics::{ASSIGNMENT, MASTER, Registry};
use std::sync::Arc;

/// A region in transition for longer is counted as stuck. `hbase.metrics.rit.stuck.warning.threshold`.
const STUCK_MS: u64 = 60_000;

impl Master {
    /// Puts this master's metrics into `registry`, which does not keep the master alive.
    pub fn register_metrics(self: &Arc<Self>, registry: &Registry) {
        let master = Arc::downgrade(self);
        registry.collect(move |sink, now_ms| {
            let Some(master) = master.upgrade() else { return };
            let cluster = master.cluster();
            let (mut open, mut ages) = (0, Vec::new());
            for node in cluster.regions().filter(|node| node.is_live()) {
                if node.state == RegionState::Open {
                    open += 1;
                } else if cluster.state(&node.info.table) != Some(TableState::Disabled) {
                    ages.push(u64::try_from(now_ms - node.since.0).unwrap_or(0));
                }
            }
            drop(cluster);
            let servers = master.servers.names().len().max(1) as u64;
            sink.bean(MASTER)
                .real("averageLoad", f64::from(open) / servers as f64)
                .gauge("numRegionServers", servers)
                .gauge("numDeadRegionServers", master.servers.dead().len() as u64);
            sink.bean(ASSIGNMENT)
                .gauge("ritOldestAge", ages.iter().copied().max().unwrap_or(0))
                .gauge("ritCountOverThreshold", ages.iter().filter(|age| **age > STUCK_MS).count() as u64)
                .gauge("ritCount", ages.len() as u64);
        });
    }
}
