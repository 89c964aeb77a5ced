//! The state of the cluster, as `status` and the tools read it. Follows:
//! `HMaster#getClusterMetrics`, `HRegionServer#buildServerLoad`.

use super::{HBASE_VERSION, MasterHandler, later};
use crate::cluster::{RegionState, TableState};
use crate::{RegionHost, groups};
use convert::{from_proto, to_proto};
use proto::pb;
use proto::pb::Option as Wanted;
use proto::pb::region_specifier::RegionSpecifierType;
use rpc::Call;
use rpc::service::Answer;
use std::collections::BTreeSet;
use std::sync::Arc;

type Handler = MasterHandler;

pub(super) fn is_running(
    handler: &Handler,
    _: &Call,
    _: pb::IsMasterRunningRequest,
) -> Answer<pb::IsMasterRunningResponse> {
    Ok(pb::IsMasterRunningResponse { is_master_running: !handler.master.is_stopping() }.into())
}

pub(super) fn status(
    handler: &Handler,
    _: &Call,
    request: pb::GetClusterStatusRequest,
) -> Answer<pb::GetClusterStatusResponse> {
    Ok(pb::GetClusterStatusResponse { cluster_status: handler.cluster_status(&request.options) }.into())
}

pub(super) fn is_in_maintenance_mode(
    handler: &Handler,
    _: &Call,
    _: pb::IsInMaintenanceModeRequest,
) -> Answer<pb::IsInMaintenanceModeResponse> {
    Ok(pb::IsInMaintenanceModeResponse { in_maintenance_mode: handler.master.in_maintenance_mode }.into())
}

pub(super) fn capabilities(
    _: &Handler,
    _: &Call,
    _: pb::SecurityCapabilitiesRequest,
) -> Answer<pb::SecurityCapabilitiesResponse> {
    let simple = pb::security_capabilities_response::Capability::SimpleAuthentication;
    Ok(pb::SecurityCapabilitiesResponse { capabilities: vec![simple as i32] }.into())
}

/// Answers those that stay.
pub(super) fn clear_dead_servers(
    handler: &Handler,
    _: &Call,
    request: pb::ClearDeadServersRequest,
) -> Answer<pb::ClearDeadServersResponse> {
    let names = request.server_name.iter().map(from_proto::server_name).collect::<std::result::Result<Vec<_>, _>>();
    let names = names.map_err(crate::MasterError::from)?;
    let master = Arc::clone(&handler.master);
    let stay = master.servers.clear_dead(names.clone());
    let cleared: Vec<_> = names.into_iter().filter(|name| !stay.contains(name)).collect();
    later(async move {
        groups::dead_cleared(&master, &cleared).await?;
        Ok(pb::ClearDeadServersResponse { server_name: stay.iter().map(to_proto::server_name).collect() })
    })
}

/// Requests per second, between two looks.
#[derive(Debug, Default)]
pub(super) struct RequestRate {
    at_us: u64,
    total: u64,
    per_second: u64,
}

impl RequestRate {
    /// The rate since the last look that is at least a second ago.
    fn update(&mut self, now_us: u64, total: u64) -> u64 {
        let elapsed_us = now_us.saturating_sub(self.at_us);
        if elapsed_us >= 1_000_000 {
            self.per_second = total.saturating_sub(self.total).saturating_mul(1_000_000) / elapsed_us;
            (self.at_us, self.total) = (now_us, total);
        }
        self.per_second
    }
}

fn mib(bytes: u64) -> Option<u32> {
    Some(u32::try_from(bytes >> 20).unwrap_or(u32::MAX))
}

impl MasterHandler {
    /// What `options` ask for; everything when there are none.
    pub(super) fn cluster_status(&self, options: &[i32]) -> pb::ClusterStatus {
        let master = &self.master;
        let wants = |option: Wanted| options.is_empty() || options.contains(&(option as i32));
        let mut status = pb::ClusterStatus::default();
        if wants(Wanted::HbaseVersion) {
            status.hbase_version = Some(pb::HBaseVersionFileContent { version: HBASE_VERSION.to_owned() });
        }
        if wants(Wanted::ClusterId) {
            status.cluster_id = Some(pb::ClusterId { cluster_id: master.cluster_id().to_owned() });
        }
        if wants(Wanted::Master) {
            status.master = Some(to_proto::server_name(master.server_name()));
        }
        if wants(Wanted::BackupMasters) {
            status.backup_masters = master.backup_masters.read().iter().map(to_proto::server_name).collect();
        }
        if wants(Wanted::LiveServers) || wants(Wanted::Tasks) {
            let live = master.servers.all().into_iter().map(|host| pb::LiveServerInfo {
                server: to_proto::server_name(&host.server_name()),
                server_load: self.server_load(&*host),
            });
            status.live_servers = live.collect();
        }
        if wants(Wanted::Tasks) {
            status.master_tasks = master.tasks_now.list().iter().map(to_proto::task).collect();
        }
        if wants(Wanted::DeadServers) {
            status.dead_servers = master.servers.dead().iter().map(to_proto::server_name).collect();
        }
        if wants(Wanted::ServersName) {
            status.servers_name = master.servers.names().iter().map(to_proto::server_name).collect();
        }
        if wants(Wanted::BalancerOn) {
            status.balancer_on = Some(master.switches.balancer());
        }
        if wants(Wanted::MasterInfoPort) {
            status.master_info_port = master.info_port().map(i32::from);
        }
        let cluster = master.cluster();
        if wants(Wanted::UnknownServers) {
            let known: BTreeSet<_> = master.servers.names().into_iter().chain(master.servers.dead()).collect();
            let asked: BTreeSet<_> = cluster.with_replicas().filter_map(|node| node.location.clone()).collect();
            status.unknown_servers = asked.difference(&known).map(to_proto::server_name).collect();
        }
        if wants(Wanted::RegionsInTransition) {
            let moving = |state| {
                !matches!(state, RegionState::Open | RegionState::Closed | RegionState::Split | RegionState::Merged)
            };
            let serving = |table| cluster.state(table).is_some();
            status.regions_in_transition = cluster
                .with_replicas()
                .filter(|node| moving(node.state) && serving(&node.info.table))
                .map(|node| pb::RegionInTransition {
                    spec: pb::RegionSpecifier {
                        r#type: RegionSpecifierType::RegionName as i32,
                        value: node.info.name().clone(),
                    },
                    region_state: pb::RegionState {
                        region_info: to_proto::region_info(&node.info),
                        state: node.state as i32,
                        stamp: Some(u64::try_from(node.since.0).unwrap_or(0)),
                    },
                })
                .collect();
        }
        if wants(Wanted::TableToRegionsCount) {
            let counts = cluster.tables().map(|(table, _)| {
                // Of a disabled table HBase counts no region.
                let is_disabled =
                    matches!(cluster.state(&table.name), Some(TableState::Disabled | TableState::Disabling));
                let counts = if is_disabled { Default::default() } else { cluster.region_counts(&table.name) };
                pb::TableRegionStatesCount {
                    table_name: to_proto::table_name(&table.name),
                    region_states_count: pb::RegionStatesCount {
                        open_regions: counts.open,
                        split_regions: counts.split,
                        closed_regions: counts.closed,
                        // As HBase counts: whatever is neither open nor split.
                        regions_in_transition: counts.closed + counts.in_transition,
                        total_regions: counts.open + counts.split + counts.closed + counts.in_transition,
                    },
                }
            });
            status.table_region_states_count = counts.collect();
        }
        status
    }

    fn server_load(&self, host: &dyn RegionHost) -> pb::ServerLoad {
        let master = &self.master;
        if host.is_remote() {
            return host.reported_load().unwrap_or_default();
        }
        let loads = host.region_loads();
        let total = loads.iter().map(|load| load.read_requests + load.write_requests).sum();
        let per_second =
            self.rates.lock().entry(host.server_name()).or_default().update(master.clock.monotonic_us(), total);
        let memory = host.memory();
        let ms = |time: base::TimestampMs| Some(u64::try_from(time.0).unwrap_or(0));
        pb::ServerLoad {
            number_of_requests: Some(per_second),
            total_number_of_requests: Some(total),
            used_heap_mb: mib(memory.used_bytes),
            max_heap_mb: mib(memory.max_bytes),
            coprocessors: to_proto::coprocessors(&loads),
            region_loads: loads.iter().map(to_proto::region_load).collect(),
            region_cached_info: to_proto::region_cached_info(&loads),
            report_start_time: ms(master.started_at),
            report_end_time: ms(master.clock.now_ms()),
            info_server_port: master.info_port().map(u32::from),
            user_loads: host.user_loads(),
            tasks: host.tasks().iter().map(to_proto::task).collect(),
            ..Default::default()
        }
    }
}
