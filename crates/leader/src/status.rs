//! RegionServerStatusService: what region servers ask and tell the active master. Follows: `MasterRpcServices`.

use crate::roll::{Roll, Verdict};
use convert::{from_proto, to_proto};
use model::ServerName;
use proto::pb;
use proto::pb::remote_procedure_result::Status;
use rpc::service::{Answer, RegionServerStatusService, Response};
use rpc::{Call, Exception};
use std::sync::Arc;

/// Key of the answer to a server that starts: the host name under which it is known.
const SEEN_HOSTNAME_KEY: &str = "hbase.regionserver.hostname.seen.by.master";

/// The service of the active master.
pub(crate) struct StatusService {
    pub roll: Arc<Roll>,
    /// What servers that start are told, but for their names.
    pub settings: Vec<(String, String)>,
}

impl RegionServerStatusService for StatusService {
    rpc::answered_by! {
        region_server_startup(RegionServerStartupRequest) -> RegionServerStartupResponse = startup;
        region_server_report(RegionServerReportRequest) -> RegionServerReportResponse = report;
        report_rs_fatal_error(ReportRsFatalErrorRequest) -> ReportRsFatalErrorResponse = fatal_error;
        report_region_state_transition(ReportRegionStateTransitionRequest)
            -> ReportRegionStateTransitionResponse = transitions;
        report_procedure_done(ReportProcedureDoneRequest) -> ReportProcedureDoneResponse = procedures_done;
        get_last_flushed_sequence_id(GetLastFlushedSequenceIdRequest)
            -> GetLastFlushedSequenceIdResponse = last_flushed;
        get_live_region_servers(GetLiveRegionServersRequest) -> GetLiveRegionServersResponse = live_servers;
    }
}

/// The name of where a call comes from: that of this machine's own addresses, else the address.
fn seen_host(call: &Call) -> String {
    let ip = call.conn.peer.ip().to_canonical();
    if ip.is_loopback() { "localhost".to_owned() } else { ip.to_string() }
}

fn startup(
    of: &StatusService,
    call: &Call,
    request: pb::RegionServerStartupRequest,
) -> Answer<pb::RegionServerStartupResponse> {
    let name = of.roll.startup(&request, &seen_host(call))?;
    let pair = |(name, value): (&str, &str)| pb::NameStringPair { name: name.to_owned(), value: value.to_owned() };
    let settings = of.settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let map_entries = std::iter::once((SEEN_HOSTNAME_KEY, &*name.host)).chain(settings).map(pair).collect();
    Ok(pb::RegionServerStartupResponse { map_entries }.into())
}

fn report(
    of: &StatusService,
    _: &Call,
    request: pb::RegionServerReportRequest,
) -> Answer<pb::RegionServerReportResponse> {
    let name = from_proto::server_name(&request.server)?;
    of.roll.report(&name, request.load.unwrap_or_default())?;
    Ok(pb::RegionServerReportResponse {}.into())
}

fn fatal_error(
    _: &StatusService,
    _: &Call,
    request: pb::ReportRsFatalErrorRequest,
) -> Answer<pb::ReportRsFatalErrorResponse> {
    let name = from_proto::server_name(&request.server)?;
    // Its node goes, and then it is dead.
    tracing::error!("region server {name} reported a fatal error: {}", request.error_message);
    Ok(pb::ReportRsFatalErrorResponse {}.into())
}

fn transitions(
    of: &StatusService,
    _: &Call,
    request: pb::ReportRegionStateTransitionRequest,
) -> Answer<pb::ReportRegionStateTransitionResponse> {
    let name: ServerName = from_proto::server_name(&request.server)?;
    for transition in &request.transition {
        of.roll.check_newest(transition.initiating_master_active_time)?;
    }
    let mut splits = Vec::new();
    for transition in &request.transition {
        match of.roll.transition(&name, transition)? {
            Verdict::Taken => {}
            Verdict::Refused(why) => {
                tracing::error!("{name} is told to end: {why}");
                return Ok(pb::ReportRegionStateTransitionResponse { error_message: Some(why) }.into());
            }
            Verdict::Split { parent, row } => splits.push((parent, row)),
        }
    }
    if splits.is_empty() {
        return Ok(pb::ReportRegionStateTransitionResponse::default().into());
    }
    let master = of.roll.master().filter(|master| master.is_initialized()).ok_or_else(Exception::please_hold)?;
    Ok(Response::future(async move {
        let mut error_message = None;
        for (parent, row) in splits {
            if let Err(error) = master.split_asked(&parent, row).await {
                error_message = Some(error.to_string());
            }
        }
        Ok::<_, Exception>(pb::ReportRegionStateTransitionResponse { error_message })
    }))
}

fn procedures_done(
    of: &StatusService,
    _: &Call,
    request: pb::ReportProcedureDoneRequest,
) -> Answer<pb::ReportProcedureDoneResponse> {
    for result in &request.result {
        of.roll.check_newest(result.initiating_master_active_time)?;
    }
    for result in request.result {
        let generic = result.error.as_ref().and_then(|error| error.generic_exception.as_ref());
        let outcome = match result.status() {
            Status::Success => Ok(()),
            Status::Error => Err(generic.map_or_else(
                || "the procedure failed".to_owned(),
                |error| format!("{}: {}", error.class_name(), error.message()),
            )),
        };
        if !of.roll.procedure_ended(result.proc_id, &outcome) {
            tracing::info!("nobody waits for procedure {} any more", result.proc_id);
        }
    }
    Ok(pb::ReportProcedureDoneResponse {}.into())
}

fn last_flushed(
    of: &StatusService,
    _: &Call,
    request: pb::GetLastFlushedSequenceIdRequest,
) -> Answer<pb::GetLastFlushedSequenceIdResponse> {
    Ok(of.roll.last_flushed(&request.region_name).into())
}

fn live_servers(
    of: &StatusService,
    _: &Call,
    request: pb::GetLiveRegionServersRequest,
) -> Answer<pb::GetLiveRegionServersResponse> {
    let names = of.roll.names();
    let total = u32::try_from(names.len()).unwrap_or(u32::MAX);
    let server = names.iter().take(request.count as usize).map(to_proto::server_name).collect();
    Ok(pb::GetLiveRegionServersResponse { server, total }.into())
}
