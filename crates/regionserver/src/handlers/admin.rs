//! AdminService: what the shell and clients ask of one server directly. Follows: `RSRpcServices`.

use super::{Answer, blocking, encoded, find_region};
use crate::errors::exception_of;
use crate::server::{RegionServer, ServerError};
use proto::methods::Method;
use proto::pb;
use region::Region;
use rpc::exception::{Exception, Kind};
use rpc::{Call, Outcome, Reply, from_proto, to_proto};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Answers a call to AdminService; `None` when the method belongs to another service.
pub(super) fn call(server: &Arc<RegionServer>, call: Call) -> Option<Outcome> {
    let answer = match call.method.method {
        Method::AdminGetRegionInfo => region_info(server, &call),
        Method::AdminGetOnlineRegion => Ok(online_regions(server)),
        Method::AdminGetServerInfo => Ok(server_info(server)),
        Method::AdminGetRegionLoad => region_load(server, &call),
        Method::AdminGetStoreFile => store_files(server, &call),
        Method::AdminFlushRegion => flush_region(server, &call),
        Method::AdminCompactRegion => compact_region(server, &call),
        Method::AdminSplitRegion => split_region(server, &call),
        Method::AdminRollWALWriter => Ok(roll_log(server)),
        Method::AdminCompactionSwitch => compaction_switch(server, &call),
        Method::AdminClearRegionBlockCache => clear_block_cache(server, &call),
        Method::AdminUpdateConfiguration => Ok(Outcome::reply(&pb::UpdateConfigurationResponse::default())),
        Method::AdminClearCompactionQueues => Ok(clear_queues(server)),
        Method::AdminGetSpaceQuotaSnapshots => Ok(Outcome::reply(&pb::GetSpaceQuotaSnapshotsResponse::default())),
        Method::AdminGetCachedFilesList => Ok(Outcome::reply(&pb::GetCachedFilesListResponse::default())),
        Method::AdminStopServer => stop(server, &call),
        _ if call.service == proto::methods::Service::Admin => Err(Exception::unsupported(call.method)),
        _ => return None,
    };
    Some(answer.unwrap_or_else(Outcome::from))
}

fn server_exception(server: &RegionServer, error: ServerError) -> Exception {
    match error {
        ServerError::NotOnline(_) => Exception::new(Kind::NotServingRegion, format!("{error} on {}", server.name)),
        ServerError::InTransition(name) => Exception::region_opening(&name),
        ServerError::Stopping(name) => Exception::server_stopped(&name.to_string()),
        ServerError::Region(error) => exception_of(&error),
    }
}

fn region_info(server: &Arc<RegionServer>, call: &Call) -> Answer {
    let request: pb::GetRegionInfoRequest = call.decode()?;
    let region = find_region(server, &request.region)?;
    let (server, reads_files) = (server.clone(), request.best_split_row());
    let work = move || {
        let best_split_row = if request.best_split_row() {
            server.split_point(region.info().encoded_name()).map_err(|error| server_exception(&server, error))?
        } else {
            None
        };
        let state = compaction_state(&server, &region);
        Ok(Reply::new(&pb::GetRegionInfoResponse {
            region_info: to_proto::region_info(region.info()),
            compaction_state: request.compaction_state().then_some(state as i32),
            splittable: Some(!region.is_closing() && !region.has_references()),
            mergeable: Some(!region.is_closing() && !region.has_references()),
            best_split_row,
        }))
    };
    if reads_files { Ok(blocking(work)) } else { Ok(Outcome::Ready(work())) }
}

fn compaction_state(server: &RegionServer, region: &Region) -> pb::get_region_info_response::CompactionState {
    use pb::get_region_info_response::CompactionState;
    let name = region.info().encoded_name();
    match (server.large_compactions.is_pending(name), server.small_compactions.is_pending(name)) {
        (true, true) => CompactionState::MajorAndMinor,
        (true, false) => CompactionState::Major,
        (false, true) => CompactionState::Minor,
        (false, false) => CompactionState::None,
    }
}

fn online_regions(server: &RegionServer) -> Outcome {
    let region_info = server.regions().iter().map(|region| to_proto::region_info(region.info())).collect();
    Outcome::reply(&pb::GetOnlineRegionResponse { region_info })
}

fn server_info(server: &RegionServer) -> Outcome {
    let server_info = pb::ServerInfo { server_name: to_proto::server_name(&server.name), webui_port: None };
    Outcome::reply(&pb::GetServerInfoResponse { server_info })
}

fn region_load(server: &RegionServer, call: &Call) -> Answer {
    let request: pb::GetRegionLoadRequest = call.decode()?;
    let table = request.table_name.as_ref().map(from_proto::table_name).transpose()?;
    let wanted = |region: &Arc<Region>| table.as_ref().is_none_or(|table| region.info().table == *table);
    let mut regions = server.regions();
    regions.retain(wanted);
    let region_loads =
        regions.iter().map(|region| to_proto::region_load(&crate::status::region_load(region))).collect();
    Ok(Outcome::reply(&pb::GetRegionLoadResponse { region_loads }))
}

fn store_files(server: &RegionServer, call: &Call) -> Answer {
    let request: pb::GetStoreFileRequest = call.decode()?;
    let region = find_region(server, &request.region)?;
    let mut store_file = Vec::new();
    for family in &request.family {
        let table = region.info().table.as_str();
        let no_such = || Exception::no_such_family(family, table, &region.info().name_string());
        store_file.extend(region.store_file_paths(family).ok_or_else(no_such)?);
    }
    Ok(Outcome::reply(&pb::GetStoreFileResponse { store_file }))
}

fn flush_region(server: &Arc<RegionServer>, call: &Call) -> Answer {
    let request: pb::FlushRegionRequest = call.decode()?;
    let region = find_region(server, &request.region)?;
    let server = server.clone();
    Ok(blocking(move || {
        // "Only if the last flush is older than that": a younger region answers with its time and does nothing.
        let last_ms = last_flush_ms(&region);
        let due = request.if_older_than_ts.is_none_or(|older_than| last_ms < older_than);
        let families = request.family.clone().into_iter().collect();
        let flushed = due && server.flush_now(&region, families).map_err(|error| server_exception(&server, error))?;
        Ok(Reply::new(&pb::FlushRegionResponse {
            last_flush_time: last_flush_ms(&region),
            flushed: due.then_some(flushed),
            wrote_flush_wal_marker: Some(flushed),
        }))
    }))
}

fn last_flush_ms(region: &Region) -> u64 {
    u64::try_from(region.stats().last_flush_ms).unwrap_or_default()
}

fn compact_region(server: &Arc<RegionServer>, call: &Call) -> Answer {
    let request: pb::CompactRegionRequest = call.decode()?;
    let region = find_region(server, &request.region)?;
    let family = request.family.clone().filter(|family| !family.is_empty());
    server
        .request_compaction(region.info().encoded_name(), family, request.major())
        .map_err(|error| server_exception(server, error))?;
    Ok(Outcome::reply(&pb::CompactRegionResponse::default()))
}

fn split_region(server: &Arc<RegionServer>, call: &Call) -> Answer {
    let request: pb::SplitRegionRequest = call.decode()?;
    let region = find_region(server, &request.region)?;
    let Some(requests) = server.split_requests.read().clone() else {
        return Err(Exception::unsupported(call.method));
    };
    requests(region.info().clone(), request.split_point.clone().filter(|row| !row.is_empty()));
    Ok(Outcome::reply(&pb::SplitRegionResponse::default()))
}

fn roll_log(server: &Arc<RegionServer>) -> Outcome {
    let server = server.clone();
    blocking(move || {
        let mut held = Vec::new();
        for log in server.logs() {
            log.roll().map_err(|error| Exception::io(format!("the log cannot be rolled: {error}")))?;
            held.extend(log.regions_to_flush(1));
        }
        Ok(Reply::new(&pb::RollWalWriterResponse {
            region_to_flush: held.iter().map(|held| encoded(&held.region)).collect(),
        }))
    })
}

fn compaction_switch(server: &RegionServer, call: &Call) -> Answer {
    let request: pb::CompactionSwitchRequest = call.decode()?;
    let prev_state = server.compactions_enabled.swap(request.enabled, Ordering::Relaxed);
    Ok(Outcome::reply(&pb::CompactionSwitchResponse { prev_state }))
}

fn clear_block_cache(server: &RegionServer, call: &Call) -> Answer {
    let request: pb::ClearRegionBlockCacheRequest = call.decode()?;
    let mut evicted = 0i64;
    for specifier in &request.region {
        evicted += find_region(server, specifier)?.evict_blocks() as i64;
    }
    let stats = pb::CacheEvictionStats { evicted_blocks: Some(evicted), ..pb::CacheEvictionStats::default() };
    Ok(Outcome::reply(&pb::ClearRegionBlockCacheResponse { stats }))
}

fn clear_queues(server: &RegionServer) -> Outcome {
    server.small_compactions.clear();
    server.large_compactions.clear();
    Outcome::reply(&pb::ClearCompactionQueuesResponse::default())
}

fn stop(server: &RegionServer, call: &Call) -> Answer {
    let request: pb::StopServerRequest = call.decode()?;
    server.request_stop(&request.reason);
    Ok(Outcome::reply(&pb::StopServerResponse::default()))
}
