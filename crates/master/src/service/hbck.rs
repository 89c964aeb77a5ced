//! What the tool hbck2 asks for: an operator's knowledge goes before the master's. Follows: `MasterRpcServices`' part
//! of `HbckService`.

use super::{MasterHandler, caller, later, region_of, table_of};
use crate::cluster::{RegionState, TableState};
use crate::locks::Resource;
use crate::master::Master;
use crate::procedure::Caller;
use crate::procedure::region::transit::{self, Transition};
use crate::procedure::server::crash;
use crate::{ErrorKind, MasterError, Result, meta};
use convert::from_proto;
use model::{RegionInfo, ServerName};
use proto::pb;
use proto::pb::region_specifier::RegionSpecifierType;
use rpc::Call;
use rpc::service::Answer;
use std::collections::BTreeSet;
use std::sync::Arc;

type Handler = MasterHandler;

/// Stands for a procedure that was not made.
const NO_PROC_ID: u64 = u64::MAX;

/// What must be true of a region before it is opened or closed by hand. Follows: `AssignmentManager#preTransitCheck`.
fn check_before_transit(master: &Master, info: &RegionInfo, expected: &[RegionState]) -> Result<()> {
    let name = info.name_string();
    let cluster = master.cluster.read();
    let state = cluster.region(info.encoded_name()).map(|node| node.state);
    if !state.is_some_and(|state| expected.contains(&state)) {
        let state = state.map_or("unknown", |state| state.as_str_name());
        return Err(MasterError::do_not_retry(format!("Unexpected state for {name}: {state}")));
    }
    if matches!(cluster.state(&info.table), Some(TableState::Disabled | TableState::Disabling)) {
        return Err(MasterError::do_not_retry(format!("{} is disabled for {name}", info.table)));
    }
    drop(cluster);
    let lock = Resource::Region(Arc::clone(info.encoded_name()));
    if master.procedures.locks.held().iter().any(|(held, _)| *held == lock) {
        return Err(MasterError::new(ErrorKind::Io, format!("{name} is currently in transition")));
    }
    Ok(())
}

async fn transit_all(
    master: Arc<Master>,
    regions: Vec<pb::RegionSpecifier>,
    (transition, expected): (Transition, &[RegionState]),
    is_override: bool,
    caller: Caller,
) -> Vec<u64> {
    let mut ids = Vec::new();
    for region in &regions {
        let Ok(info) = region_of(&master, region) else {
            tracing::info!(region = ?region.value, "hbck names a region that is not known");
            continue;
        };
        let checked = if is_override { Ok(()) } else { check_before_transit(&master, &info, expected) };
        let id = match checked {
            Ok(()) => transit::submit(&master, info, transition, None, &caller, || Ok(())).await,
            Err(error) => Err(error),
        };
        ids.push(id.unwrap_or_else(|error| {
            tracing::info!(%error, is_override, "a region is not opened or closed for hbck");
            NO_PROC_ID
        }));
    }
    ids
}

pub(super) fn assigns(handler: &Handler, call: &Call, request: pb::AssignsRequest) -> Answer<pb::AssignsResponse> {
    let (master, caller) = (Arc::clone(&handler.master), caller(call, None, None));
    let what = (Transition::Assign, &[RegionState::Closed, RegionState::Offline][..]);
    let is_override = request.r#override.unwrap_or(false);
    later(async move {
        Ok(pb::AssignsResponse { pid: transit_all(master, request.region, what, is_override, caller).await })
    })
}

pub(super) fn unassigns(
    handler: &Handler,
    call: &Call,
    request: pb::UnassignsRequest,
) -> Answer<pb::UnassignsResponse> {
    let (master, caller) = (Arc::clone(&handler.master), caller(call, None, None));
    let what = (Transition::Unassign, &[RegionState::Open][..]);
    let is_override = request.r#override.unwrap_or(false);
    later(async move {
        Ok(pb::UnassignsResponse { pid: transit_all(master, request.region, what, is_override, caller).await })
    })
}

/// A procedure here is never in the middle of a step for long, so the time to wait for that is not needed.
pub(super) fn bypass(
    handler: &Handler,
    _: &Call,
    request: pb::BypassProcedureRequest,
) -> Answer<pb::BypassProcedureResponse> {
    let recursive = request.recursive.unwrap_or(false);
    // Basalt does not wait for a lock: what it bypasses hears it at its next step. The argument is checked as HBase does.
    if !request.proc_id.is_empty() && request.wait_time.unwrap_or(0) == 0 {
        return Err(MasterError::new(ErrorKind::Io, "lockWait should be positive").into());
    }
    let bypass = |id: &u64| handler.master.procedures.bypass(*id, recursive);
    Ok(pb::BypassProcedureResponse { bypassed: request.proc_id.iter().map(bypass).collect() }.into())
}

pub(super) fn set_table_state(
    handler: &Handler,
    _: &Call,
    request: pb::SetTableStateInMetaRequest,
) -> Answer<pb::GetTableStateResponse> {
    let master = Arc::clone(&handler.master);
    later(async move {
        let table = table_of(&request.table_name)?;
        let state = TableState::try_from(request.table_state.state)
            .map_err(|error| MasterError::new(ErrorKind::IllegalArgument, error))?;
        let (_, before) = master.tables.existing(&table).map_err(|error| match error.kind {
            ErrorKind::TableNotFound => MasterError::new(error.kind, format!("No state found for {table}")),
            _ => error,
        })?;
        tracing::info!(%table, before = before.as_str_name(), now = state.as_str_name(), "hbck sets a table's state");
        master.tables.set_state(&table, state).await?;
        Ok(pb::GetTableStateResponse { table_state: pb::TableState { state: before as i32 } })
    })
}

fn specifier_text(region: &pb::RegionSpecifier) -> String {
    let kind = RegionSpecifierType::try_from(region.r#type).map_or("", |kind| kind.as_str_name());
    format!("type: {kind}\nvalue: \"{}\"\n", cell::print::to_string_binary(&region.value))
}

pub(super) fn set_region_states(
    handler: &Handler,
    _: &Call,
    request: pb::SetRegionStateInMetaRequest,
) -> Answer<pb::SetRegionStateInMetaResponse> {
    let master = Arc::clone(&handler.master);
    later(async move {
        let mut states = Vec::new();
        for wanted in request.states {
            let specifier = wanted.region_specifier;
            let info = region_of(&master, &specifier).map_err(|_| {
                let message = format!("No existing state known for region '{}'.", specifier_text(&specifier));
                MasterError::new(ErrorKind::Io, message)
            })?;
            let state = RegionState::try_from(wanted.state)
                .map_err(|error| MasterError::new(ErrorKind::IllegalArgument, error))?;
            let before = master.cluster.read().region(info.encoded_name()).map(|node| node.state);
            let Some(before) = before.filter(|before| *before != state) else { continue };
            let region = info.name_string();
            tracing::info!(
                region,
                before = before.as_str_name(),
                now = state.as_str_name(),
                "hbck sets a region's state"
            );
            master.catalog.write(vec![meta::put_region(&info, state, master.catalog.stamp())]).await?;
            master.assignment.note_state(&info, state);
            states.push(pb::RegionSpecifierAndState { region_specifier: specifier, state: before as i32 });
        }
        Ok(pb::SetRegionStateInMetaResponse { states })
    })
}

async fn crash_all(master: Arc<Master>, servers: Vec<ServerName>) -> Result<Vec<u64>> {
    let mut ids = Vec::with_capacity(servers.len());
    for server in servers {
        tracing::info!(%server, "hbck has a server handled as crashed");
        let running = crash::is_running(&master, &server);
        ids.push(if running { NO_PROC_ID } else { crash::submit(&master, &server).await? });
    }
    Ok(ids)
}

pub(super) fn schedule_crashes(
    handler: &Handler,
    _: &Call,
    request: pb::ScheduleServerCrashProcedureRequest,
) -> Answer<pb::ScheduleServerCrashProcedureResponse> {
    let master = Arc::clone(&handler.master);
    later(async move {
        let servers = request.server_name.iter().map(from_proto::server_name).collect::<std::result::Result<_, _>>()?;
        Ok(pb::ScheduleServerCrashProcedureResponse { pid: crash_all(master, servers).await? })
    })
}

/// Servers that regions are located on and that are neither online nor known to have crashed.
pub(super) fn schedule_crashes_of_unknown(
    handler: &Handler,
    _: &Call,
    _: pb::ScheduleScPsForUnknownServersRequest,
) -> Answer<pb::ScheduleScPsForUnknownServersResponse> {
    let master = Arc::clone(&handler.master);
    later(async move {
        let located: BTreeSet<ServerName> =
            master.cluster.read().regions().filter_map(|node| node.location.clone()).collect();
        let known: BTreeSet<ServerName> = master.servers.names().into_iter().chain(master.servers.dead()).collect();
        let unknown = located.difference(&known).cloned().collect();
        Ok(pb::ScheduleScPsForUnknownServersResponse { pid: crash_all(master, unknown).await? })
    })
}

pub(super) fn fix_meta(handler: &Handler, _: &Call, _: pb::FixMetaRequest) -> Answer<pb::FixMetaResponse> {
    let master = Arc::clone(&handler.master);
    later(async move { master.fix_meta().await.map(|()| pb::FixMetaResponse {}) })
}

pub(super) fn run_chore(handler: &Handler, _: &Call, _: pb::RunHbckChoreRequest) -> Answer<pb::RunHbckChoreResponse> {
    let master = Arc::clone(&handler.master);
    later(async move { Ok(pb::RunHbckChoreResponse { ran: master.run_hbck_chore().await }) })
}

/// Region servers report the end of what procedures handed to them.
pub(super) fn report_procedures(
    handler: &Handler,
    _: &Call,
    request: pb::ReportProcedureDoneRequest,
) -> Answer<pb::ReportProcedureDoneResponse> {
    use pb::remote_procedure_result::Status;
    for result in request.result {
        let done = match Status::try_from(result.status) {
            Ok(Status::Success) => Ok(bytes::Bytes::new()),
            _ => Err(crate::HostError::Failed(MasterError::from_foreign(result.error.as_ref()).message)),
        };
        if !handler.master.procedures.dispatcher.report(result.proc_id, done) {
            tracing::debug!(pid = result.proc_id, "a region server reports what nobody waits for");
        }
    }
    Ok(pb::ReportProcedureDoneResponse {}.into())
}
