//! Regions: opened and closed by hand, split, merged, spread over the servers.

use super::{MasterHandler, caller, later, own, region_of, table_of};
use crate::cluster::{RegionState, TableState};
use crate::master::Master;
use crate::procedure::Caller;
use crate::procedure::region::transit::{self, Transition};
use crate::{ErrorKind, MasterError, Result, balancing, normalizer};
use bytes::Bytes;
use convert::from_proto;
use model::status::RegionLoad;
use model::{RegionInfo, ServerName};
use proto::pb;
use rpc::Call;
use rpc::service::Answer;
use std::sync::Arc;

type Handler = MasterHandler;

/// Has a region opened, closed or moved, and waits until it is.
async fn transit(
    master: &Arc<Master>,
    info: RegionInfo,
    transition: Transition,
    candidate: Option<ServerName>,
    caller: &Caller,
) -> Result<()> {
    let id = transit::submit(master, info, transition, candidate, caller, || Ok(())).await?;
    master.procedures.wait_for(id).await.map(drop)
}

/// Whether a region may leave the state that it is in. Follows: `AssignmentManager#preTransitCheck`.
fn must_be(master: &Master, info: &RegionInfo, states: &[RegionState]) -> Result<()> {
    let cluster = master.cluster.read();
    let node = cluster.region(info.encoded_name());
    let state = node.map(|node| node.state);
    let name = state.map_or("null", |state| state.as_str_name());
    let location = node.and_then(|node| node.location.as_ref()).map_or_else(|| "null".into(), ServerName::to_string);
    let shown = format!("state={name}, location={location}, table={}, region={}", info.table, info.encoded_name());
    if !state.is_some_and(|state| states.contains(&state)) {
        return Err(MasterError::new(ErrorKind::DoNotRetryRegion, format!("Unexpected state for {shown}")));
    }
    if matches!(cluster.state(&info.table), Some(TableState::Disabled | TableState::Disabling)) {
        return Err(MasterError::do_not_retry(format!("{} is disabled for {shown}", info.table)));
    }
    Ok(())
}

/// Opens a region that an operator names; one that is open stays so: `offline` leaves it open, too.
pub(super) fn assign(
    handler: &Handler,
    call: &Call,
    request: pb::AssignRegionRequest,
) -> Answer<pb::AssignRegionResponse> {
    let (master, caller) = (Arc::clone(&handler.master), caller(call, None, None));
    later(async move {
        let info = region_of(&master, &request.region)?;
        let state = master.cluster.read().region(info.encoded_name()).map(|node| node.state);
        if state != Some(RegionState::Open) {
            must_be(&master, &info, &[RegionState::Closed, RegionState::Offline])?;
            transit(&master, info, Transition::Assign, None, &caller).await?;
        }
        Ok(pb::AssignRegionResponse {})
    })
}

pub(super) fn unassign(
    handler: &Handler,
    call: &Call,
    request: pb::UnassignRegionRequest,
) -> Answer<pb::UnassignRegionResponse> {
    let (master, caller) = (Arc::clone(&handler.master), caller(call, None, None));
    later(async move {
        let info = region_of(&master, &request.region)?;
        if info.table.is_system() {
            return Err(MasterError::do_not_retry(format!("{} is not closed by hand", info.name_string())));
        }
        must_be(&master, &info, &[RegionState::Open])?;
        transit(&master, info, Transition::Unassign, None, &caller).await?;
        Ok(pb::UnassignRegionResponse {})
    })
}

/// Where no other server is, a region stays where it can be. Follows: `HMaster#move`.
pub(super) fn move_region(
    handler: &Handler,
    call: &Call,
    request: pb::MoveRegionRequest,
) -> Answer<pb::MoveRegionResponse> {
    let (master, caller) = (Arc::clone(&handler.master), caller(call, None, None));
    later(async move {
        let info = region_of(&master, &request.region)?;
        let wanted = request.dest_server_name.as_ref().map(from_proto::server_name).transpose()?;
        let location = master.cluster.read().region(info.encoded_name()).and_then(|node| node.location.clone());
        let load = |server: &ServerName| master.cluster.read().regions_on(server);
        let among = master.groups.servers_for(&info.table, &master.cluster.read(), &master.servers);
        let others = master.servers.assignable().into_iter().filter(|server| Some(server) != location.as_ref());
        let others = others.filter(|server| among.as_ref().is_none_or(|among| among.contains(server)));
        let destination = wanted.or_else(|| others.min_by_key(load)).filter(|server| Some(server) != location.as_ref());
        let Some(destination) = destination else {
            tracing::debug!(region = %info.name_string(), "a move has nowhere to go");
            return Ok(pb::MoveRegionResponse {});
        };
        // HBase closes it and opens it again in its group.
        if among.as_ref().is_some_and(|among| !among.contains(&destination)) {
            tracing::info!(
                region = %info.name_string(),
                %destination,
                "the region is not moved: its destination is not in the table's RSGroup; move the table (move_tables_rsgroup) or the server \
                 (move_servers_rsgroup) first"
            );
            return Ok(pb::MoveRegionResponse {});
        }
        must_be(&master, &info, &[RegionState::Open])?;
        if !master.servers.names().contains(&destination) {
            tracing::debug!(region = %info.name_string(), %destination, "a move goes to a server that is not there");
            return Ok(pb::MoveRegionResponse {});
        }
        transit(&master, info, Transition::Move, Some(destination), &caller).await?;
        Ok(pb::MoveRegionResponse {})
    })
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

pub(super) fn truncate(
    handler: &Handler,
    call: &Call,
    request: pb::TruncateRegionRequest,
) -> Answer<pb::TruncateRegionResponse> {
    let caller = caller(call, request.nonce_group, request.nonce);
    let master = Arc::clone(&handler.master);
    later(async move {
        let id = master.truncate_region(from_proto::region_info(&request.region_info)?, &caller).await?;
        Ok(pb::TruncateRegionResponse { proc_id: Some(id) })
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
    // Of a region that is not known HBase says the same as of one that was never compacted.
    let Ok(info) = region_of(&handler.master, &request.region) else {
        return Ok(pb::MajorCompactionTimestampResponse { compaction_timestamp: 0 }.into());
    };
    Ok(oldest_major_compaction(handler, |load| load.encoded_name == *info.encoded_name()).into())
}

pub(super) fn balance(handler: &Handler, _: &Call, request: pb::BalanceRequest) -> Answer<pb::BalanceResponse> {
    let master = Arc::clone(&handler.master);
    later(async move { Ok(balancing::run(&master, request).await) })
}

/// Has tables looked at soon whose regions are to be evened out: all, or those that the request picks.
pub(super) fn normalize(handler: &Handler, _: &Call, request: pb::NormalizeRequest) -> Answer<pb::NormalizeResponse> {
    let (namespace, regex) = (request.namespace.as_deref(), request.regex.as_deref());
    let picked = super::tables::list(handler, namespace, regex, &request.table_names, false)?;
    let tables = picked.into_iter().map(|(table, _)| table.name.clone()).collect();
    Ok(pb::NormalizeResponse { normalizer_ran: normalizer::request(&handler.master, tables, true) }.into())
}
