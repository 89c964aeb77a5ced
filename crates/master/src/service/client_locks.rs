//! Locks that clients ask for. Follows: `MasterRpcServices`' part of `LockService`.

use super::{MasterHandler, caller, table_of};
use crate::locks::{Mode, Resource};
use crate::{ErrorKind, MasterError, Result};
use convert::from_proto;
use model::RegionInfo;
use proto::pb;
use proto::pb::lock_heartbeat_response::LockStatus;
use rpc::Call;
use rpc::service::Answer;
use std::sync::Arc;

type Handler = MasterHandler;

fn illegal(message: &str) -> MasterError {
    MasterError::new(ErrorKind::IllegalArgument, message)
}

/// What a request asks to lock. Follows: `LockProcedure`'s constructors, and what each takes beside it.
fn wanted(request: &pb::LockRequest) -> Result<Vec<(Resource, Mode)>> {
    let mode = if request.lock_type == pb::LockType::Shared as i32 { Mode::Shared } else { Mode::Exclusive };
    let shared = |resource| (resource, Mode::Shared);
    if !request.region_info.is_empty() {
        let regions = request.region_info.iter().map(|info| Ok(from_proto::region_info(info)?));
        let regions: Vec<RegionInfo> = regions.collect::<Result<_>>()?;
        if regions.iter().any(|info| info.table != regions[0].table) {
            return Err(illegal("All regions should be from same table."));
        }
        let table = &regions[0].table;
        let own = regions.iter().map(|info| (Resource::Region(Arc::clone(info.encoded_name())), Mode::Exclusive));
        let above = [Resource::Namespace(table.namespace().to_owned()), Resource::Table(table.clone())];
        return Ok(above.into_iter().map(shared).chain(own).collect());
    }
    if let Some(table) = &request.table_name {
        let table = table_of(table)?;
        return Ok(vec![shared(Resource::Namespace(table.namespace().to_owned())), (Resource::Table(table), mode)]);
    }
    match &request.namespace {
        Some(namespace) => Ok(vec![(Resource::Namespace(namespace.clone()), mode)]),
        None => Err(illegal("one of table/namespace/region should be specified")),
    }
}

pub(super) fn request(handler: &Handler, call: &Call, request: pb::LockRequest) -> Answer<pb::LockResponse> {
    let description = request.description.clone().unwrap_or_default();
    if description.is_empty() {
        return Err(illegal("Empty description").into());
    }
    let wanted = wanted(&request)?;
    let nonce = caller(call, request.nonce_group, request.nonce).nonce;
    let master = &handler.master;
    let timeout = master.settings().client_lock_timeout;
    let proc_id = match master.procedures.new_id(nonce) {
        Ok(id) => {
            tracing::info!(pid = id, description, "a client asks for a lock");
            master.client_locks.request(id, wanted, timeout);
            id
        }
        Err(earlier) => earlier,
    };
    Ok(pb::LockResponse { proc_id }.into())
}

pub(super) fn heartbeat(
    handler: &Handler,
    _: &Call,
    request: pb::LockHeartbeatRequest,
) -> Answer<pb::LockHeartbeatResponse> {
    let master = &handler.master;
    let is_locked = master.client_locks.heartbeat(request.proc_id, request.keep_alive.unwrap_or(true));
    let timeout_ms = u32::try_from(master.settings().client_lock_timeout.as_millis()).unwrap_or(u32::MAX);
    let response = pb::LockHeartbeatResponse {
        lock_status: if is_locked { LockStatus::Locked } else { LockStatus::Unlocked } as i32,
        timeout_ms: is_locked.then_some(timeout_ms),
    };
    Ok(response.into())
}
