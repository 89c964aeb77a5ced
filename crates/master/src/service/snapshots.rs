//! Snapshots: taken, listed, deleted, restored, cloned. Follows: `MasterRpcServices#snapshot` and its neighbours, `SnapshotManager`.

use super::procedures::OLD_PROCEDURE_TIMEOUT_MS;
use super::{MasterHandler, caller, later};
use crate::snapshots::{is_in_work, is_taken, shown};
use crate::{ErrorKind, MasterError, Result};
use proto::pb;
use rpc::Call;
use rpc::service::Answer;
use std::sync::Arc;

type Handler = MasterHandler;

/// The old way to take a snapshot.
pub(super) const SIGNATURE: &str = "online-snapshot";

fn check_enabled(handler: &Handler) -> Result<()> {
    if handler.master.settings().snapshots_enabled {
        return Ok(());
    }
    let message = "To use snapshots, You must add to the hbase-site.xml of the HBase Master: 'hbase.snapshot.enabled' \
                   property with value 'true'.";
    Err(MasterError::new(ErrorKind::Unsupported, message))
}

pub(super) fn take(handler: &Handler, call: &Call, request: pb::SnapshotRequest) -> Answer<pb::SnapshotResponse> {
    check_enabled(handler)?;
    let has_nonce = request.nonce_group.is_some() && request.nonce.is_some();
    let caller = caller(call, request.nonce_group, request.nonce);
    let (master, named) = (Arc::clone(&handler.master), Arc::clone(&handler.named_snapshots));
    later(async move {
        let name = request.snapshot.name.clone();
        let id = master.take_snapshot(request.snapshot, &caller).await?;
        if !has_nonce {
            named.lock().insert(name, id);
        }
        let expected_timeout = master.settings().snapshot_timeout_ms;
        // A client without nonces asks whether it is done.
        let proc_id = has_nonce.then(|| i64::try_from(id).unwrap_or(i64::MAX));
        Ok(pb::SnapshotResponse { expected_timeout, proc_id })
    })
}

pub(super) fn list(
    handler: &Handler,
    _: &Call,
    _: pb::GetCompletedSnapshotsRequest,
) -> Answer<pb::GetCompletedSnapshotsResponse> {
    let master = Arc::clone(&handler.master);
    later(async move { Ok(pb::GetCompletedSnapshotsResponse { snapshots: master.list_snapshots().await? }) })
}

pub(super) fn delete(
    handler: &Handler,
    _: &Call,
    request: pb::DeleteSnapshotRequest,
) -> Answer<pb::DeleteSnapshotResponse> {
    check_enabled(handler)?;
    let master = Arc::clone(&handler.master);
    later(async move {
        master.delete_snapshot(&request.snapshot.name).await?;
        Ok(pb::DeleteSnapshotResponse {})
    })
}

/// Follows: `SnapshotManager#isSnapshotDone`.
async fn ask(handler: &Asked, snapshot: &pb::SnapshotDescription) -> Result<bool> {
    let known = handler.named.lock().get(&snapshot.name).copied();
    let outcome = known.and_then(|id| handler.master.procedures.get(id)).and_then(|known| known.outcome);
    if outcome.is_some() {
        handler.named.lock().remove(&snapshot.name);
    }
    if let Some(Err(error)) = outcome {
        let message = format!("Snapshot {} had an error.  {error}", shown(snapshot));
        return Err(MasterError::new(ErrorKind::HBaseSnapshot, message));
    }
    if is_in_work(&handler.master, &snapshot.name) {
        return Ok(false);
    }
    if is_taken(&handler.master, &snapshot.name).await? {
        return Ok(true);
    }
    Err(MasterError::new(
        ErrorKind::UnknownSnapshot,
        format!("Snapshot {} is not currently running or one of the known completed snapshots.", shown(snapshot)),
    ))
}

/// What is asked when somebody wants to know whether a snapshot is done.
struct Asked {
    master: Arc<crate::Master>,
    named: Arc<parking_lot::Mutex<std::collections::HashMap<String, u64>>>,
}

impl Asked {
    fn of(handler: &Handler) -> Asked {
        Asked { master: Arc::clone(&handler.master), named: Arc::clone(&handler.named_snapshots) }
    }
}

pub(super) fn is_done(
    handler: &Handler,
    _: &Call,
    request: pb::IsSnapshotDoneRequest,
) -> Answer<pb::IsSnapshotDoneResponse> {
    let asked = Asked::of(handler);
    later(async move {
        let Some(snapshot) = request.snapshot else {
            return Err(MasterError::new(
                ErrorKind::UnknownSnapshot,
                "No snapshot name passed in request, can't figure out which snapshot you want to check.",
            ));
        };
        let done = ask(&asked, &snapshot).await?;
        Ok(pb::IsSnapshotDoneResponse { done: Some(done), snapshot: Some(snapshot) })
    })
}

pub(super) fn restore(
    handler: &Handler,
    call: &Call,
    request: pb::RestoreSnapshotRequest,
) -> Answer<pb::RestoreSnapshotResponse> {
    check_enabled(handler)?;
    let caller = caller(call, request.nonce_group, request.nonce);
    let master = Arc::clone(&handler.master);
    later(async move {
        let proc_id = master.restore_snapshot(&request.snapshot, request.custom_sft.as_deref(), &caller).await?;
        Ok(pb::RestoreSnapshotResponse { proc_id })
    })
}

/// The snapshot that a request of the old kind describes. Follows: `SnapshotManager#toSnapshotDescription`.
fn described(procedure: &pb::ProcedureDescription) -> Result<pb::SnapshotDescription> {
    let undefined = |what: &str| MasterError::do_not_retry(format!("Snapshot {what} is not defined: {procedure:?}"));
    let name = procedure.instance.clone().ok_or_else(|| undefined("name"))?;
    let mut tables = procedure.configuration.iter().filter(|pair| pair.name.eq_ignore_ascii_case("table"));
    let table = tables.next_back().map(|pair| pair.value.clone()).ok_or_else(|| undefined("table"))?;
    let flush = pb::snapshot_description::Type::Flush as i32;
    Ok(pb::SnapshotDescription { name, table: Some(table), r#type: Some(flush), ..Default::default() })
}

pub(super) fn start_old(
    handler: &Handler,
    call: &Call,
    procedure: &pb::ProcedureDescription,
) -> Answer<pb::ExecProcedureResponse> {
    check_enabled(handler)?;
    let wanted = described(procedure)?;
    let (master, caller) = (Arc::clone(&handler.master), caller(call, None, None));
    let named = Arc::clone(&handler.named_snapshots);
    later(async move {
        let name = wanted.name.clone();
        let id = master.take_snapshot(wanted, &caller).await?;
        named.lock().insert(name, id);
        Ok(pb::ExecProcedureResponse { expected_timeout: Some(OLD_PROCEDURE_TIMEOUT_MS), return_data: None })
    })
}

pub(super) fn is_old_done(
    handler: &Handler,
    procedure: &pb::ProcedureDescription,
) -> Answer<pb::IsProcedureDoneResponse> {
    let (asked, wanted) = (Asked::of(handler), described(procedure)?);
    later(async move {
        let done = ask(&asked, &wanted).await?;
        Ok(pb::IsProcedureDoneResponse { done: Some(done), snapshot: None })
    })
}
