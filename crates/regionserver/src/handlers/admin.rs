//! AdminService: what the shell and clients ask of one server directly. Follows: `RSRpcServices`.

use super::{RegionService, blocking, encoded, find_region, replay, slow_log};
use crate::errors::exception_of;
use crate::server::{RegionServer, ServerError};
use convert::{from_proto, to_proto};
use model::status::CompactionState;
use proto::pb;
use proto::pb::get_space_quota_snapshots_response::TableQuotaSnapshot;
use proto::pb::open_region_response::RegionOpeningState;
use region::Region;
use rpc::Call;
use rpc::exception::{Exception, Kind};
use rpc::service::{AdminService, Answer};
use std::sync::Arc;
use tokio::runtime::Handle;

impl AdminService for RegionService {
    rpc::answered_by! {
        get_region_info(GetRegionInfoRequest) -> GetRegionInfoResponse = region_info;
        get_online_region(GetOnlineRegionRequest) -> GetOnlineRegionResponse = online_regions;
        get_server_info(GetServerInfoRequest) -> GetServerInfoResponse = server_info;
        get_region_load(GetRegionLoadRequest) -> GetRegionLoadResponse = region_load;
        get_store_file(GetStoreFileRequest) -> GetStoreFileResponse = store_files;
        flush_region(FlushRegionRequest) -> FlushRegionResponse = flush_region;
        compact_region(CompactRegionRequest) -> CompactRegionResponse = compact_region;
        split_region(SplitRegionRequest) -> SplitRegionResponse = split_region;
        roll_wal_writer(RollWalWriterRequest) -> RollWalWriterResponse = roll_log;
        compaction_switch(CompactionSwitchRequest) -> CompactionSwitchResponse = compaction_switch;
        clear_region_block_cache(ClearRegionBlockCacheRequest) -> ClearRegionBlockCacheResponse = clear_block_cache;
        clear_compaction_queues(ClearCompactionQueuesRequest) -> ClearCompactionQueuesResponse = clear_queues;
        update_configuration(UpdateConfigurationRequest) -> UpdateConfigurationResponse = update_configuration;
        get_space_quota_snapshots(GetSpaceQuotaSnapshotsRequest) -> GetSpaceQuotaSnapshotsResponse = space_quotas;
        get_cached_files_list(GetCachedFilesListRequest) -> GetCachedFilesListResponse = no_cached_files;
        open_region(OpenRegionRequest) -> OpenRegionResponse = open_region;
        close_region(CloseRegionRequest) -> CloseRegionResponse = close_region;
        update_favored_nodes(UpdateFavoredNodesRequest) -> UpdateFavoredNodesResponse = update_favored_nodes;
        replay(ReplicateWalEntryRequest) -> ReplicateWalEntryResponse = replay::replay;
        replicate_wal_entry(ReplicateWalEntryRequest) -> ReplicateWalEntryResponse = no_replication_sink;
        get_slow_log_responses(SlowLogResponseRequest) -> SlowLogResponses = slow_log::slow;
        get_large_log_responses(SlowLogResponseRequest) -> SlowLogResponses = slow_log::large;
        clear_slow_logs_responses(ClearSlowLogResponseRequest) -> ClearSlowLogResponses = slow_log::clear;
        get_log_entries(LogRequest) -> LogEntry = slow_log::by_class;
        stop_server(StopServerRequest) -> StopServerResponse = stop;
        execute_procedures(ExecuteProceduresRequest) -> ExecuteProceduresResponse = execute_procedures;
        warmup_region(WarmupRegionRequest) -> WarmupRegionResponse = warm_up;
    }
}

pub(crate) fn server_exception(server: &RegionServer, error: ServerError) -> Exception {
    match error {
        ServerError::NotOnline(_) => Exception::new(Kind::NotServingRegion, format!("{error} on {}", server.name)),
        ServerError::InTransition(name) => Exception::region_opening(&name),
        ServerError::Stopping(name) => Exception::server_stopped(&name.to_string()),
        ServerError::SnapshotTimeout { .. } => Exception::io(error.to_string()),
        ServerError::Region(error) => exception_of(&error),
    }
}

fn region_info(
    RegionService { server, .. }: &RegionService,
    _: &Call,
    request: pb::GetRegionInfoRequest,
) -> Answer<pb::GetRegionInfoResponse> {
    let region = find_region(server, &request.region)?;
    let (server, reads_files) = (server.clone(), request.best_split_row());
    let work = move || {
        let best_split_row = if request.best_split_row() {
            server.split_point(region.info().encoded_name()).map_err(|error| server_exception(&server, error))?
        } else {
            None
        };
        let state = compaction_state(&server, &region);
        Ok(pb::GetRegionInfoResponse {
            region_info: to_proto::region_info(region.info()),
            compaction_state: request.compaction_state().then_some(state as i32),
            splittable: Some(region.splitter().can_split()),
            mergeable: Some(!region.is_closing() && !region.splitter().has_references()),
            best_split_row,
        })
    };
    if reads_files { blocking(work) } else { Ok(work()?.into()) }
}

fn compaction_state(server: &RegionServer, region: &Region) -> pb::get_region_info_response::CompactionState {
    use pb::get_region_info_response::CompactionState as Wire;
    match server.maintenance.compaction_state(region.info().encoded_name()) {
        CompactionState::None => Wire::None,
        CompactionState::Minor => Wire::Minor,
        CompactionState::Major => Wire::Major,
        CompactionState::MajorAndMinor => Wire::MajorAndMinor,
    }
}

fn online_regions(
    RegionService { server, .. }: &RegionService,
    _: &Call,
    _: pb::GetOnlineRegionRequest,
) -> Answer<pb::GetOnlineRegionResponse> {
    let region_info = server.regions().iter().map(|region| to_proto::region_info(region.info())).collect();
    Ok(pb::GetOnlineRegionResponse { region_info }.into())
}

fn server_info(
    RegionService { server, .. }: &RegionService,
    _: &Call,
    _: pb::GetServerInfoRequest,
) -> Answer<pb::GetServerInfoResponse> {
    let server_info = pb::ServerInfo { server_name: to_proto::server_name(&server.name), webui_port: None };
    Ok(pb::GetServerInfoResponse { server_info }.into())
}

fn region_load(
    RegionService { server, .. }: &RegionService,
    _: &Call,
    request: pb::GetRegionLoadRequest,
) -> Answer<pb::GetRegionLoadResponse> {
    let table = request.table_name.as_ref().map(from_proto::table_name).transpose()?;
    let wanted = |region: &Arc<Region>| table.as_ref().is_none_or(|table| region.info().table == *table);
    let mut regions = server.regions();
    regions.retain(wanted);
    let region_loads =
        regions.iter().map(|region| to_proto::region_load(&crate::status::region_load(server, region))).collect();
    Ok(pb::GetRegionLoadResponse { region_loads }.into())
}

fn store_files(
    RegionService { server, .. }: &RegionService,
    _: &Call,
    request: pb::GetStoreFileRequest,
) -> Answer<pb::GetStoreFileResponse> {
    let region = find_region(server, &request.region)?;
    let mut store_file = Vec::new();
    for family in &request.family {
        let no_such = || Exception::no_such_family(family, &region.table().description(), &region.info().name_string());
        store_file.extend(region.store_file_paths(family).ok_or_else(no_such)?);
    }
    Ok(pb::GetStoreFileResponse { store_file }.into())
}

fn flush_region(
    RegionService { server, .. }: &RegionService,
    _: &Call,
    request: pb::FlushRegionRequest,
) -> Answer<pb::FlushRegionResponse> {
    let region = find_region(server, &request.region)?;
    let server = server.clone();
    blocking(move || {
        // "Only if the last flush is older than that": a younger region answers with its time and does nothing.
        let last_ms = last_flush_ms(&region);
        let due = request.if_older_than_ts.is_none_or(|older_than| last_ms < older_than);
        let families = request.family.clone().into_iter().collect();
        // Nobody else asks for the marker.
        if let Some(outbox) = region.outbox().filter(|_| request.write_flush_wal_marker()) {
            outbox.replica_opened();
        }
        let flushed = due && server.flush_now(&region, families).map_err(|error| server_exception(&server, error))?;
        // A read replica waits for a flush, or for hearing that there is nothing to flush.
        let is_told = request.write_flush_wal_marker() && due && !flushed && region.tell_nothing_to_flush();
        Ok(pb::FlushRegionResponse {
            last_flush_time: last_flush_ms(&region),
            flushed: due.then_some(flushed),
            wrote_flush_wal_marker: Some(flushed || is_told),
        })
    })
}

fn last_flush_ms(region: &Region) -> u64 {
    u64::try_from(region.stats().last_flush_ms).unwrap_or_default()
}

fn compact_region(
    RegionService { server, .. }: &RegionService,
    call: &Call,
    request: pb::CompactRegionRequest,
) -> Answer<pb::CompactRegionResponse> {
    let region = find_region(server, &request.region)?;
    server.space_quotas.check_compaction(&region.info().table, &call.user)?;
    let family = request.family.clone().filter(|family| !family.is_empty());
    if let Some(none) = family.as_ref().filter(|family| region.store_file_paths(family).is_none()) {
        let (family, region) = (String::from_utf8_lossy(none), region.info().name_string());
        let message = format!("column family {family} does not exist in region {region}");
        return Err(Exception::new(Kind::NoSuchColumnFamily, message));
    }
    server
        .request_compaction(region.info().encoded_name(), family, request.major())
        .map_err(|error| server_exception(server, error))?;
    Ok(pb::CompactRegionResponse::default().into())
}

fn split_region(
    RegionService { server, .. }: &RegionService,
    _: &Call,
    request: pb::SplitRegionRequest,
) -> Answer<pb::SplitRegionResponse> {
    let region = find_region(server, &request.region)?;
    let split_row = request.split_point.clone().filter(|row| !row.is_empty());
    if !server.maintenance.request_split(&region, split_row) {
        return Err(Exception::io("the master is not running: try again when it is"));
    }
    Ok(pb::SplitRegionResponse::default().into())
}

fn roll_log(
    RegionService { server, .. }: &RegionService,
    _: &Call,
    _: pb::RollWalWriterRequest,
) -> Answer<pb::RollWalWriterResponse> {
    let server = server.clone();
    blocking(move || {
        let mut held = Vec::new();
        for log in server.logs() {
            crate::traces::roll(&server, log)
                .map_err(|error| Exception::io(format!("the log cannot be rolled: {error}")))?;
            held.extend(log.regions_to_flush(1));
        }
        Ok(pb::RollWalWriterResponse { region_to_flush: held.iter().map(|held| encoded(&held.region)).collect() })
    })
}

fn compaction_switch(
    RegionService { server, .. }: &RegionService,
    _: &Call,
    request: pb::CompactionSwitchRequest,
) -> Answer<pb::CompactionSwitchResponse> {
    let prev_state = server.maintenance.enable_compactions(request.enabled);
    Ok(pb::CompactionSwitchResponse { prev_state }.into())
}

/// Follows: `RSRpcServices#clearRegionBlockCache`. A region that is not here is told of beside the others.
fn clear_block_cache(
    RegionService { server, .. }: &RegionService,
    _: &Call,
    request: pb::ClearRegionBlockCacheRequest,
) -> Answer<pb::ClearRegionBlockCacheResponse> {
    let (mut regions, mut failed) = (Vec::new(), Vec::new());
    for specifier in request.region {
        match find_region(server, &specifier) {
            Ok(region) => regions.push(region),
            Err(exception) => {
                failed.push(pb::RegionExceptionMessage { exception: exception.to_name_bytes_pair(), region: specifier })
            }
        }
    }
    let cache = server.env.cache.clone();
    // Every block of the cache is looked at.
    blocking(move || {
        let evicted: usize = regions.iter().map(|region| region.evict_blocks()).sum();
        let stats = pb::CacheEvictionStats {
            evicted_blocks: Some(i64::try_from(evicted).unwrap_or(i64::MAX)),
            bytes_evicted: None,
            max_cache_size: Some(i64::try_from(cache.stats().capacity_bytes).unwrap_or(i64::MAX)),
            exception: failed,
        };
        Ok(pb::ClearRegionBlockCacheResponse { stats })
    })
}

fn clear_queues(
    RegionService { server, .. }: &RegionService,
    _: &Call,
    request: pb::ClearCompactionQueuesRequest,
) -> Answer<pb::ClearCompactionQueuesResponse> {
    for name in &request.queue_name {
        match name.as_str() {
            "long" => server.maintenance.large_compactions.clear(),
            "short" => server.maintenance.small_compactions.clear(),
            other => return Err(Exception::io(format!("Unknown queue name {other}"))),
        };
    }
    Ok(pb::ClearCompactionQueuesResponse::default().into())
}

fn stop(
    RegionService { server, .. }: &RegionService,
    _: &Call,
    request: pb::StopServerRequest,
) -> Answer<pb::StopServerResponse> {
    if base::inject!("regionserver.stop.on-the-read-lane") {
        let (at, info) = (server.clone(), scheduler::JobInfo::of_client(0));
        server.scheduler.submit(scheduler::LaneName::Read, info, Box::new(move |_| at.request_stop(&request.reason)));
        return Ok(pb::StopServerResponse::default().into());
    }
    server.request_stop(&request.reason);
    Ok(pb::StopServerResponse::default().into())
}

/// Follows: `RSRpcServices#updateConfiguration`.
fn update_configuration(
    RegionService { server, orders, .. }: &RegionService,
    _: &Call,
    _: pb::UpdateConfigurationRequest,
) -> Answer<pb::UpdateConfigurationResponse> {
    let (server, orders, runtime) = (server.clone(), orders.clone(), Handle::current());
    blocking(move || {
        let refused = |why| Exception::do_not_retry(format!("the configuration stays as it was: {why}"));
        server.update_configuration().map_err(refused)?;
        // As in HBase the answer does not wait for it.
        if let Some(orders) = orders {
            runtime.spawn(async move { orders.reload_quotas().await });
        }
        Ok(pb::UpdateConfigurationResponse::default())
    })
}

/// How masters before HBase 2.2 ordered it. Follows: `RSRpcServices#openRegion` for a region that is open already. Another one is not opened: no
/// procedure of a master's would know, and the region could be opened a second time elsewhere.
fn open_region(
    RegionService { server, .. }: &RegionService,
    _: &Call,
    request: pb::OpenRegionRequest,
) -> Answer<pb::OpenRegionResponse> {
    check_start_code(server, request.server_start_code)?;
    let mut response = pb::OpenRegionResponse::default();
    for open in &request.open_info {
        let info = from_proto::region_info(&open.region)?;
        if server.region(info.encoded_name()).is_none() {
            return Err(Exception::do_not_retry(format!(
                "{} is not open on {}, and is opened by a master's procedure alone: ask the master to assign it",
                info.name_string(),
                server.name
            )));
        }
        response.opening_state.push(RegionOpeningState::AlreadyOpened as i32);
    }
    Ok(response.into())
}

fn check_start_code(server: &RegionServer, meant: Option<u64>) -> Result<(), Exception> {
    match meant.filter(|start_code| *start_code != server.name.start_code) {
        Some(start_code) => Err(Exception::do_not_retry(format!(
            "This RPC was intended for a different server with startCode: {start_code}, this server is: {}",
            server.name
        ))),
        None => Ok(()),
    }
}

/// Follows: `RSRpcServices#closeRegion`. As in HBase the master learns nothing of it: who closes a region so must assign it again.
fn close_region(
    RegionService { server, .. }: &RegionService,
    _: &Call,
    request: pb::CloseRegionRequest,
) -> Answer<pb::CloseRegionResponse> {
    let region = find_region(server, &request.region)?;
    check_start_code(server, request.server_start_code)?;
    let server = server.clone();
    blocking(move || {
        let info = region.info();
        tracing::info!(region = %info.name_string(), "closing, as a client asks");
        server.close_region(info.encoded_name()).map_err(|error| server_exception(&server, error))?;
        Ok(pb::CloseRegionResponse { closed: true })
    })
}

/// Follows: `RSRpcServices#updateFavoredNodes`. On which of HDFS's nodes new files of a region shall be: nothing comes of it, as in HBase on
/// any other file system.
fn update_favored_nodes(
    _: &RegionService,
    _: &Call,
    request: pb::UpdateFavoredNodesRequest,
) -> Answer<pb::UpdateFavoredNodesResponse> {
    for update in &request.update_info {
        from_proto::region_info(&update.region)?;
        update.favored_nodes.iter().try_for_each(|node| from_proto::server_name(node).map(drop))?;
    }
    Ok(pb::UpdateFavoredNodesResponse { response: Some(request.update_info.len() as u32) }.into())
}

/// Refused as a server of HBase refuses it that has no replication sink.
fn no_replication_sink(
    _: &RegionService,
    _: &Call,
    _: pb::ReplicateWalEntryRequest,
) -> Answer<pb::ReplicateWalEntryResponse> {
    Err(Exception::io("Replication services are not initialized yet"))
}

fn space_quotas(
    RegionService { server, .. }: &RegionService,
    _: &Call,
    _: pb::GetSpaceQuotaSnapshotsRequest,
) -> Answer<pb::GetSpaceQuotaSnapshotsResponse> {
    let of_table = |(table, snapshot): (&model::TableName, &quota::SpaceSnapshot)| TableQuotaSnapshot {
        table_name: Some(to_proto::table_name(table)),
        snapshot: Some(snapshot.to_message()),
    };
    let snapshots = server.space_quotas.snapshots().iter().map(of_table).collect();
    Ok(pb::GetSpaceQuotaSnapshotsResponse { snapshots }.into())
}

fn no_cached_files(
    _: &RegionService,
    _: &Call,
    _: pb::GetCachedFilesListRequest,
) -> Answer<pb::GetCachedFilesListResponse> {
    Ok(pb::GetCachedFilesListResponse::default().into())
}

/// Follows: `RSRpcServices#executeProcedures`. A server whose master is in its process takes orders from no other.
fn execute_procedures(
    RegionService { orders, .. }: &RegionService,
    call: &Call,
    request: pb::ExecuteProceduresRequest,
) -> Answer<pb::ExecuteProceduresResponse> {
    let orders = orders.as_ref().ok_or_else(|| Exception::unsupported(call.method))?;
    orders.execute(request)?;
    Ok(pb::ExecuteProceduresResponse::default().into())
}

/// Follows: `RSRpcServices#warmupRegion`. The blocks that HBase reads so are read here when they are asked for: a hint, and no more.
fn warm_up(
    RegionService { orders, .. }: &RegionService,
    call: &Call,
    _: pb::WarmupRegionRequest,
) -> Answer<pb::WarmupRegionResponse> {
    orders.as_ref().ok_or_else(|| Exception::unsupported(call.method))?;
    Ok(pb::WarmupRegionResponse::default().into())
}
