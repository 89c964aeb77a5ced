//! Regions: opened and closed by hand, split, merged, spread over the servers.

use super::{MasterHandler, caller, later, own, region_of, table_of};
use crate::MasterError;
use crate::procedure::region_locks;
use bytes::Bytes;
use convert::from_proto;
use model::RegionInfo;
use model::status::RegionLoad;
use proto::pb;
use rpc::Call;
use rpc::service::Answer;
use std::sync::Arc;

type Handler = MasterHandler;

pub(super) fn assign(
    handler: &Handler,
    _: &Call,
    request: pb::AssignRegionRequest,
) -> Answer<pb::AssignRegionResponse> {
    let master = Arc::clone(&handler.master);
    later(async move {
        let info = region_of(&master, &request.region)?;
        let _locks = master.procedures.locks.lock(region_locks(std::slice::from_ref(&info))).await;
        master.assignment.assign_by_hand(info).await?;
        Ok(pb::AssignRegionResponse {})
    })
}

pub(super) fn unassign(
    handler: &Handler,
    _: &Call,
    request: pb::UnassignRegionRequest,
) -> Answer<pb::UnassignRegionResponse> {
    let master = Arc::clone(&handler.master);
    later(async move {
        let info = region_of(&master, &request.region)?;
        if info.table.is_system() {
            return Err(MasterError::do_not_retry(format!("{} is not closed by hand", info.name_string())));
        }
        let _locks = master.procedures.locks.lock(region_locks(std::slice::from_ref(&info))).await;
        master.assignment.unassign(vec![info]).await?;
        Ok(pb::UnassignRegionResponse {})
    })
}

/// There is one server: a region is where it can be, and a move is done.
pub(super) fn move_region(
    handler: &Handler,
    _: &Call,
    request: pb::MoveRegionRequest,
) -> Answer<pb::MoveRegionResponse> {
    region_of(&handler.master, &request.region)?;
    Ok(pb::MoveRegionResponse {}.into())
}

/// Only the master's picture would change, and that is kept right by itself.
pub(super) fn offline(
    handler: &Handler,
    _: &Call,
    request: pb::OfflineRegionRequest,
) -> Answer<pb::OfflineRegionResponse> {
    region_of(&handler.master, &request.region)?;
    Ok(pb::OfflineRegionResponse {}.into())
}

pub(super) fn split(
    handler: &Handler,
    call: &Call,
    request: pb::SplitTableRegionRequest,
) -> Answer<pb::SplitTableRegionResponse> {
    let caller = caller(call, request.nonce_group, request.nonce);
    let master = Arc::clone(&handler.master);
    later(async move {
        let info = from_proto::region_info(&request.region_info)?;
        let row = request.split_row.as_ref().map(own);
        let id = master.split_region(info.encoded_name(), row, &caller).await?;
        Ok(pb::SplitTableRegionResponse { proc_id: Some(id) })
    })
}

pub(super) fn merge(
    handler: &Handler,
    call: &Call,
    request: pb::MergeTableRegionsRequest,
) -> Answer<pb::MergeTableRegionsResponse> {
    let caller = caller(call, request.nonce_group, request.nonce);
    let master = Arc::clone(&handler.master);
    later(async move {
        let regions = request.region.iter().map(|region| region_of(&master, region));
        let regions: Vec<RegionInfo> = regions.collect::<crate::Result<_>>()?;
        let names: Vec<String> = regions.iter().map(|info| info.encoded_name().to_string()).collect();
        let id = master.merge_regions(&names, request.forcible.unwrap_or(false), &caller).await?;
        Ok(pb::MergeTableRegionsResponse { proc_id: Some(id) })
    })
}

fn oldest_major_compaction(
    handler: &Handler,
    wanted: impl Fn(&RegionLoad) -> bool,
) -> pb::MajorCompactionTimestampResponse {
    let loads: Vec<RegionLoad> = handler.master.servers.all().iter().flat_map(|host| host.region_loads()).collect();
    let oldest = loads.iter().filter(|load| wanted(load)).map(|load| load.last_major_compaction_ms).min();
    let compaction_timestamp = i64::try_from(oldest.unwrap_or(0)).unwrap_or(i64::MAX);
    pb::MajorCompactionTimestampResponse { compaction_timestamp }
}

pub(super) fn last_major_compaction_of_table(
    handler: &Handler,
    _: &Call,
    request: pb::MajorCompactionTimestampRequest,
) -> Answer<pb::MajorCompactionTimestampResponse> {
    let table = table_of(&request.table_name)?;
    let prefix = Bytes::from(format!("{table},"));
    Ok(oldest_major_compaction(handler, |load| load.name.starts_with(&prefix)).into())
}

pub(super) fn last_major_compaction(
    handler: &Handler,
    _: &Call,
    request: pb::MajorCompactionTimestampForRegionRequest,
) -> Answer<pb::MajorCompactionTimestampResponse> {
    let info = region_of(&handler.master, &request.region)?;
    Ok(oldest_major_compaction(handler, |load| load.encoded_name == *info.encoded_name()).into())
}

pub(super) fn balance(handler: &Handler, _: &Call, _: pb::BalanceRequest) -> Answer<pb::BalanceResponse> {
    let response = pb::BalanceResponse {
        balancer_ran: handler.master.switches.balancer(),
        moves_calculated: Some(0),
        moves_executed: Some(0),
    };
    Ok(response.into())
}

/// Nobody evens region sizes here yet, and it says so.
pub(super) fn normalize(_: &Handler, _: &Call, _: pb::NormalizeRequest) -> Answer<pb::NormalizeResponse> {
    Ok(pb::NormalizeResponse { normalizer_ran: false }.into())
}
