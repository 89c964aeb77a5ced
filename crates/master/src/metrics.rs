//! The master's metrics under HBase's names. Follows: `MetricsMasterSource`, `MetricsAssignmentManagerSource`,
//! `MetricsBalancerSource`, `MetricsMasterQuotaSource`.

use crate::cluster::{Cluster, RegionState, TableState};
use crate::master::Master;
use base::metrics::{ASSIGNMENT, BALANCER, MASTER, QUOTAS, Registry, Sink};
use model::ServerName;
use quota::SpaceSnapshot;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A region in transition for longer is counted as stuck. `hbase.metrics.rit.stuck.warning.threshold`.
const STUCK_MS: u64 = 60_000;

impl Master {
    /// Puts this master's metrics into `registry`, which does not keep the master alive.
    pub fn register_metrics(self: &Arc<Self>, registry: &Registry) {
        let master = Arc::downgrade(self);
        registry.collect(move |sink, now_ms| {
            let Some(master) = master.upgrade() else { return };
            let regions = Regions::of(&master, &master.cluster(), now_ms);
            servers(sink.bean(MASTER), &master, &regions, now_ms);
            regions.collect(sink.bean(ASSIGNMENT));
            reports(sink, &master);
            master.procedures.operations.collect_of_regions(sink, now_ms);
            space_quotas(sink.bean(QUOTAS), &master);
            sink.bean(BALANCER)
                .gauge("isBalancerActive", u64::from(master.switches.balancer()))
                .counter("miscInvocationCount", master.servers.placements());
            master.balancer.collect(sink, now_ms);
        });
    }
}

fn servers(sink: &mut Sink, master: &Master, regions: &Regions, now_ms: i64) {
    let servers = master.servers.names().len().max(1) as u64;
    sink.real("averageLoad", regions.open as f64 / servers as f64)
        .gauge("numRegionServers", servers)
        .gauge("numDeadRegionServers", master.servers.dead().len() as u64)
        .gauge("numDrainingRegionServers", master.servers.draining().len() as u64)
        .gauge("oldWALsDirSize", master.old_logs_bytes.load(Ordering::Relaxed))
        .gauge("splitPlanCount", master.normalizer.splits())
        .gauge("mergePlanCount", master.normalizer.merges());
    master.procedures.operations.collect_of_servers(sink, now_ms);
}

/// What the regions of enabled tables come to.
#[derive(Debug, Default)]
struct Regions {
    open: u64,
    /// For how long those have been in transition that are.
    ages_ms: Vec<u64>,
    /// Open ones whose server is dead,
    on_dead_servers: u64,
    /// and those whose server nobody knows.
    on_unknown_servers: u64,
    /// All regions whose server nobody knows.
    of_unknown_servers: u64,
}

impl Regions {
    fn of(master: &Master, cluster: &Cluster, now_ms: i64) -> Regions {
        let online: HashSet<ServerName> = master.servers.names().into_iter().collect();
        let dead: HashSet<ServerName> = master.servers.dead().into_iter().collect();
        let mut regions = Regions::default();
        for node in cluster.with_replicas().filter(|node| node.is_live()) {
            let is_open = node.state == RegionState::Open;
            if let Some(server) = node.location.as_ref().filter(|server| !online.contains(*server)) {
                let is_dead = dead.contains(server);
                regions.on_dead_servers += u64::from(is_open && is_dead);
                regions.on_unknown_servers += u64::from(is_open && !is_dead);
                regions.of_unknown_servers += u64::from(!is_dead);
            }
            if is_open {
                regions.open += 1;
            } else if cluster.state(&node.info.table) != Some(TableState::Disabled) {
                regions.ages_ms.push(u64::try_from(now_ms - node.since.0).unwrap_or(0));
            }
        }
        regions
    }

    fn collect(&self, sink: &mut Sink) {
        sink.gauge("ritOldestAge", self.ages_ms.iter().copied().max().unwrap_or(0))
            .gauge("ritCountOverThreshold", self.ages_ms.iter().filter(|age| **age > STUCK_MS).count() as u64)
            .gauge("ritCount", self.ages_ms.len() as u64)
            .gauge("deadServerOpenRegions", self.on_dead_servers)
            .gauge("unknownServerOpenRegions", self.on_unknown_servers)
            .gauge("unknownServerRegions", self.of_unknown_servers);
    }
}

fn space_quotas(sink: &mut Sink, master: &Master) {
    let observer = master.quotas.space.observer();
    let violated = |snapshot: &&SpaceSnapshot| snapshot.violated.is_some();
    sink.gauge("numSpaceQuotas", (observer.tables().len() + observer.namespaces().len()) as u64)
        .gauge("numTablesInQuotaViolation", observer.tables().values().filter(violated).count() as u64)
        .gauge("numNamespaceInQuotaViolation", observer.namespaces().values().filter(violated).count() as u64)
        .gauge("numRegionSizeReports", master.quotas.space.reported_regions() as u64);
}

/// What the catalog janitor and the hbck chore found when they last ran.
fn reports(sink: &mut Sink, master: &Master) {
    if let Some(report) = &*master.catalog_report.lock() {
        sink.gauge("holes", report.holes.len() as u64)
            .gauge("overlaps", report.overlaps.len() as u64)
            .gauge("emptyRegionInfoRegions", report.empty_region_infos.len() as u64);
    }
    if let Some(report) = master.hbck.last_report() {
        sink.gauge("orphanRegionsOnRS", report.orphan_regions_on_servers.len() as u64)
            .gauge("orphanRegionsOnFS", report.orphan_regions_on_volume.len() as u64)
            .gauge("inconsistentRegions", report.inconsistent_regions.len() as u64);
    }
}
