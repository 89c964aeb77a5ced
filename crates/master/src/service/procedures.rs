//! Procedures: what became of them, what they hold; and the older kind (`ExecProcedure`) that clients before 2.6 flush
//! tables by.

use super::{MasterHandler, caller, later, snapshots};
use crate::locks::{Mode, Resource};
use crate::{ErrorKind, Master, MasterError, Result};
use bytes::Bytes;
use model::TableName;
use proto::pb;
use proto::pb::get_procedure_result_response::State;
use rpc::Call;
use rpc::service::Answer;
use std::sync::Arc;

type Handler = MasterHandler;

/// The old way to flush a table.
const FLUSH_SIGNATURE: &str = "flush-table-proc";
/// Milliseconds that a client is told to wait for it at most.
pub(super) const OLD_PROCEDURE_TIMEOUT_MS: i64 = 300_000;

/// With this HBase's backup tool has servers begin new logs.
const BACKUP_SIGNATURE: &str = "rolllog-proc";

fn not_registered(signature: &str) -> MasterError {
    let instead = match signature {
        BACKUP_SIGNATURE => ": HBase's backup tool does not work on this server; use basalt backup",
        _ => "",
    };
    MasterError::do_not_retry(format!("The procedure is not registered: {signature}{instead}"))
}

/// A refusal of what HBase finds out in a procedure's first step: there is a procedure then, which has failed, and a client
/// hears why when it asks what became of it. Other errors are answered at once.
pub(super) fn in_procedure(master: &Master, submitted: Result<u64>, refusals: &[ErrorKind]) -> Result<u64> {
    match submitted {
        Err(error) if refusals.contains(&error.kind) => Ok(master.procedures.failed(error)),
        other => other,
    }
}

/// No kind of procedure that answers with data is known: HBase has none either without coprocessors.
pub(super) fn call_old(_: &Handler, _: &Call, request: pb::ExecProcedureRequest) -> Answer<pb::ExecProcedureResponse> {
    Err(unknown(&request.procedure.signature).into())
}

/// As [`not_registered`], from methods that leave it to the client to try again.
fn unknown(signature: &str) -> MasterError {
    MasterError::new(ErrorKind::Io, not_registered(signature))
}

pub(super) fn result(
    handler: &Handler,
    _: &Call,
    request: pb::GetProcedureResultRequest,
) -> Answer<pb::GetProcedureResultResponse> {
    let Some(known) = handler.master.procedures.get(request.proc_id) else {
        let unknown = pb::GetProcedureResultResponse { state: State::NotFound as i32, ..Default::default() };
        return Ok(unknown.into());
    };
    let ms = |time: base::TimestampMs| Some(u64::try_from(time.0).unwrap_or(0));
    let (state, result, exception) = match known.outcome {
        None => (State::Running, None, None),
        Some(Ok(result)) => (State::Finished, result, None),
        Some(Err(error)) => (State::Finished, None, Some(error.to_foreign())),
    };
    let response = pb::GetProcedureResultResponse {
        state: state as i32,
        submitted_time: ms(known.submitted),
        last_update: ms(known.updated),
        result,
        exception,
    };
    Ok(response.into())
}

pub(super) fn list(handler: &Handler, _: &Call, _: pb::GetProceduresRequest) -> Answer<pb::GetProceduresResponse> {
    let records = handler.master.procedures.records();
    let procedure = records.iter().map(|record| pb::Procedure::clone(record)).collect();
    Ok(pb::GetProceduresResponse { procedure }.into())
}

pub(super) fn locks(handler: &Handler, _: &Call, _: pb::GetLocksRequest) -> Answer<pb::GetLocksResponse> {
    let lock = handler.master.procedures.locks.held().into_iter().filter_map(|(resource, mode)| {
        let (resource_type, name) = match resource {
            Resource::Server(name) => (pb::LockedResourceType::Server, name),
            Resource::Peer(name) => (pb::LockedResourceType::Peer, name),
            Resource::Namespace(name) => (pb::LockedResourceType::Namespace, name),
            Resource::Table(table) => (pb::LockedResourceType::Table, table.to_string()),
            Resource::Region(name) => (pb::LockedResourceType::Region, name.to_string()),
            Resource::Snapshot(_) => return None,
        };
        let lock_type = match mode {
            Mode::Shared => pb::LockType::Shared,
            Mode::Exclusive => pb::LockType::Exclusive,
        };
        Some(pb::LockedResource {
            resource_type: resource_type as i32,
            resource_name: Some(name),
            lock_type: lock_type as i32,
            shared_lock_count: Some(i32::from(mode == Mode::Shared)),
            ..Default::default()
        })
    });
    Ok(pb::GetLocksResponse { lock: lock.collect() }.into())
}

/// A procedure is broken off before its next step that allows it: when all that it did can be rolled back.
pub(super) fn abort(
    handler: &Handler,
    _: &Call,
    request: pb::AbortProcedureRequest,
) -> Answer<pb::AbortProcedureResponse> {
    let is_procedure_aborted = handler.master.procedures.abort(request.proc_id);
    Ok(pb::AbortProcedureResponse { is_procedure_aborted }.into())
}

pub(super) fn start_old(
    handler: &Handler,
    call: &Call,
    request: pb::ExecProcedureRequest,
) -> Answer<pb::ExecProcedureResponse> {
    let procedure = request.procedure;
    if procedure.signature == snapshots::SIGNATURE {
        return snapshots::start_old(handler, call, &procedure);
    }
    if procedure.signature != FLUSH_SIGNATURE {
        return Err(not_registered(&procedure.signature).into());
    }
    let table = procedure.instance.unwrap_or_default();
    let families: Vec<Bytes> = procedure
        .configuration
        .iter()
        .filter(|pair| pair.name == "family")
        .flat_map(|pair| pair.value.split(','))
        .map(|family| Bytes::copy_from_slice(family.trim().as_bytes()))
        .collect();
    let (master, caller) = (Arc::clone(&handler.master), caller(call, None, None));
    let flushes = Arc::clone(&handler.old_flushes);
    later(async move {
        let name = TableName::parse(&table).map_err(|error| MasterError::new(ErrorKind::IllegalArgument, error))?;
        let id = master.flush_table(&name, families, &caller).await?;
        flushes.lock().insert(table, id);
        Ok(pb::ExecProcedureResponse { expected_timeout: Some(OLD_PROCEDURE_TIMEOUT_MS), return_data: None })
    })
}

pub(super) fn is_old_done(
    handler: &Handler,
    _: &Call,
    request: pb::IsProcedureDoneRequest,
) -> Answer<pb::IsProcedureDoneResponse> {
    let procedure = request.procedure.as_ref();
    let signature = procedure.map(|procedure| procedure.signature.as_str()).unwrap_or_default();
    if let Some(procedure) = procedure.filter(|_| signature == snapshots::SIGNATURE) {
        return snapshots::is_old_done(handler, procedure);
    }
    if signature != FLUSH_SIGNATURE {
        return Err(unknown(signature).into());
    }
    let table = procedure.and_then(|procedure| procedure.instance.as_deref()).unwrap_or_default();
    let mut flushes = handler.old_flushes.lock();
    let known = flushes.get(table).and_then(|id| handler.master.procedures.get(*id));
    let done = match known.map(|known| known.outcome) {
        Some(None) => false,
        Some(Some(outcome)) => {
            flushes.remove(table);
            outcome?;
            true
        }
        None => true,
    };
    Ok(pb::IsProcedureDoneResponse { done: Some(done), snapshot: None }.into())
}
