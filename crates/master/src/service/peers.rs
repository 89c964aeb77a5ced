//! Replication peers: asked for and changed. Follows: `MasterRpcServices`, `HMaster`.

use super::{MasterHandler, caller, later, procedures, tables};
use crate::ErrorKind;
use crate::peers::Peer;
use crate::procedure::peer::modify::{self, CLASSES, Change};
use proto::pb;
use proto::pb::replication_state::State;
use rpc::Call;
use rpc::service::Answer;
use std::sync::Arc;

type Handler = MasterHandler;

/// Changes a peer; the answer names the procedure.
fn change<M: proto::Message + 'static>(
    handler: &Handler,
    call: &Call,
    (id, change): (String, Change),
    response: fn(u64) -> M,
) -> Answer<M> {
    let (master, caller) = (Arc::clone(&handler.master), caller(call, None, None));
    later(async move {
        let submitted = modify::submit(&master, &id, change, &caller).await;
        let refusals = [ErrorKind::DoNotRetry, ErrorKind::ReplicationPeerNotFound];
        Ok(response(procedures::in_procedure(&master, submitted, &refusals)?))
    })
}

pub(super) fn add(
    handler: &Handler,
    call: &Call,
    request: pb::AddReplicationPeerRequest,
) -> Answer<pb::AddReplicationPeerResponse> {
    let enabled = request.peer_state.state == State::Enabled as i32;
    let peer = Peer { config: request.peer_config, enabled };
    let response = |proc_id| pb::AddReplicationPeerResponse { proc_id: Some(proc_id) };
    change(handler, call, (request.peer_id, Change::Add(Box::new(peer))), response)
}

pub(super) fn remove(
    handler: &Handler,
    call: &Call,
    request: pb::RemoveReplicationPeerRequest,
) -> Answer<pb::RemoveReplicationPeerResponse> {
    let response = |proc_id| pb::RemoveReplicationPeerResponse { proc_id: Some(proc_id) };
    change(handler, call, (request.peer_id, Change::Remove), response)
}

pub(super) fn enable(
    handler: &Handler,
    call: &Call,
    request: pb::EnableReplicationPeerRequest,
) -> Answer<pb::EnableReplicationPeerResponse> {
    let response = |proc_id| pb::EnableReplicationPeerResponse { proc_id: Some(proc_id) };
    change(handler, call, (request.peer_id, Change::Enable), response)
}

pub(super) fn disable(
    handler: &Handler,
    call: &Call,
    request: pb::DisableReplicationPeerRequest,
) -> Answer<pb::DisableReplicationPeerResponse> {
    let response = |proc_id| pb::DisableReplicationPeerResponse { proc_id: Some(proc_id) };
    change(handler, call, (request.peer_id, Change::Disable), response)
}

pub(super) fn update(
    handler: &Handler,
    call: &Call,
    request: pb::UpdateReplicationPeerConfigRequest,
) -> Answer<pb::UpdateReplicationPeerConfigResponse> {
    let response = |proc_id| pb::UpdateReplicationPeerConfigResponse { proc_id: Some(proc_id) };
    change(handler, call, (request.peer_id, Change::Update(Box::new(request.peer_config))), response)
}

pub(super) fn config(
    handler: &Handler,
    _: &Call,
    request: pb::GetReplicationPeerConfigRequest,
) -> Answer<pb::GetReplicationPeerConfigResponse> {
    let peer = handler.master.peers.existing(&request.peer_id)?;
    Ok(pb::GetReplicationPeerConfigResponse { peer_id: request.peer_id, peer_config: peer.config }.into())
}

pub(super) fn is_enabled(
    handler: &Handler,
    _: &Call,
    request: pb::GetReplicationPeerStateRequest,
) -> Answer<pb::GetReplicationPeerStateResponse> {
    let is_enabled = handler.master.peers.existing(&request.peer_id)?.enabled;
    Ok(pb::GetReplicationPeerStateResponse { is_enabled }.into())
}

pub(super) fn list(
    handler: &Handler,
    _: &Call,
    request: pb::ListReplicationPeersRequest,
) -> Answer<pb::ListReplicationPeersResponse> {
    let regex = request.regex.as_deref().map(tables::pattern).transpose()?;
    let peers = handler.master.peers.all().into_iter();
    let peers = peers.filter(|(id, _)| regex.as_ref().is_none_or(|regex| regex.is_match(id)));
    let peer_desc = peers.map(|(id, peer)| peer.to_message(&id)).collect();
    Ok(pb::ListReplicationPeersResponse { peer_desc }.into())
}

/// Those that have not ended.
pub(super) fn procedures(
    handler: &Handler,
    _: &Call,
    _: pb::GetReplicationPeerModificationProceduresRequest,
) -> Answer<pb::GetReplicationPeerModificationProceduresResponse> {
    let procedures = &handler.master.procedures;
    let unfinished = procedures.unfinished();
    let records = procedures.records();
    let of_peers = records
        .iter()
        .filter(|record| CLASSES.contains(&record.class_name.as_str()) && unfinished.contains(&record.proc_id));
    let procedure = of_peers.map(|record| pb::Procedure::clone(record)).collect();
    Ok(pb::GetReplicationPeerModificationProceduresResponse { procedure }.into())
}

pub(super) fn set_modification(
    handler: &Handler,
    _: &Call,
    request: pb::ReplicationPeerModificationSwitchRequest,
) -> Answer<pb::ReplicationPeerModificationSwitchResponse> {
    let master = Arc::clone(&handler.master);
    later(async move {
        let set = |switches: &crate::Switches| switches.set_peer_modification(request.on);
        let previous_value = master.switches.change(&master.files, set).await?;
        Ok(pb::ReplicationPeerModificationSwitchResponse { previous_value })
    })
}

pub(super) fn modification(
    handler: &Handler,
    _: &Call,
    _: pb::IsReplicationPeerModificationEnabledRequest,
) -> Answer<pb::IsReplicationPeerModificationEnabledResponse> {
    let enabled = handler.master.switches.peer_modification();
    Ok(pb::IsReplicationPeerModificationEnabledResponse { enabled }.into())
}
