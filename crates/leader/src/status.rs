//! RegionServerStatusService: what region servers ask and tell the active master. Follows: `MasterRpcServices`.

use crate::roll::{KeptReport, Roll, Verdict};
use convert::{from_proto, to_proto};
use model::ServerName;
use proto::pb;
use proto::pb::remote_procedure_result::Status;
use rpc::service::{Answer, RegionServerStatusService, Response};
use rpc::{Call, Exception, Kind};
use std::sync::Arc;
use std::time::Duration;

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
    let kept = of.roll.reports_to_keep(&request.transition);
    if !kept.is_empty() {
        return Ok(Response::future(keep_and_take(of.roll.clone(), name, request.transition, kept)));
    }
    match take_all(&of.roll, &name, &request.transition) {
        Err(error) if error.kind() == Kind::PleaseHold => {
            Ok(Response::future(held(of.roll.clone(), name, request.transition)))
        }
        taken => finish(&of.roll, taken?),
    }
}

/// A report is held so long while the master takes the cluster over; less than servers wait for an answer.
const HOLD: Duration = Duration::from_secs(2);
/// Between two looks at a report that is held.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Holds a report until the master knows the regions, and then has it made again. HBase's region servers repeat a report at once, some thousand times a second, while no
/// master answers; one that is then told to hold waits a hundred milliseconds, and ten seconds, and so on up to two hundred, by the number of its tries, and
/// so does each of the few threads that close its regions: so they are not told that. Follows: `HRegionServer#reportRegionStateTransition`.
pub(crate) async fn held(
    roll: Arc<Roll>,
    name: ServerName,
    transitions: Vec<pb::RegionStateTransition>,
) -> Result<pb::ReportRegionStateTransitionResponse, Exception> {
    let looks = HOLD.as_millis() / LOOK_EVERY.as_millis();
    for _ in 0..looks {
        tokio::time::sleep(LOOK_EVERY).await;
        match take_all(&roll, &name, &transitions) {
            Err(error) if error.kind() == Kind::PleaseHold => {}
            Ok(taken) if taken.splits.is_empty() => return Ok(taken.answer()),
            // A wish to split can be made again.
            Ok(_) => break,
            Err(error) => return Err(error),
        }
    }
    Err(Exception::io("The master takes the cluster over, and does not know the regions yet: report it again"))
}

/// Takes reports after they are kept for the next master: the server forgets what was answered.
async fn keep_and_take(
    roll: Arc<Roll>,
    name: ServerName,
    transitions: Vec<pb::RegionStateTransition>,
    kept: Vec<KeptReport>,
) -> Result<pb::ReportRegionStateTransitionResponse, Exception> {
    for report in kept {
        roll.keep_report(report).await?;
    }
    match take_all(&roll, &name, &transitions) {
        Err(error) if error.kind() == Kind::PleaseHold => held(roll, name, transitions).await,
        taken => {
            let taken = taken?;
            if taken.splits.is_empty() { Ok(taken.answer()) } else { split(roll, taken).await }
        }
    }
}

/// What became of a report.
#[derive(Default)]
struct Taken {
    refused: Option<String>,
    /// Regions that are to be split, and where.
    splits: Vec<(Arc<str>, bytes::Bytes)>,
}

impl Taken {
    fn answer(self) -> pb::ReportRegionStateTransitionResponse {
        pb::ReportRegionStateTransitionResponse { error_message: self.refused }
    }
}

fn take_all(
    roll: &Arc<Roll>,
    name: &ServerName,
    transitions: &[pb::RegionStateTransition],
) -> Result<Taken, Exception> {
    let mut taken = Taken::default();
    for transition in transitions {
        match roll.transition(name, transition)? {
            Verdict::Taken => {}
            Verdict::Refused(why) => {
                tracing::error!("{name} is told to end: {why}");
                return Ok(Taken { refused: Some(why), splits: Vec::new() });
            }
            Verdict::Split { parent, row } => taken.splits.push((parent, row)),
        }
    }
    Ok(taken)
}

fn finish(roll: &Arc<Roll>, taken: Taken) -> Answer<pb::ReportRegionStateTransitionResponse> {
    if taken.splits.is_empty() {
        return Ok(taken.answer().into());
    }
    Ok(Response::future(split(roll.clone(), taken)))
}

/// Splits the regions that a report asks to be split.
async fn split(roll: Arc<Roll>, taken: Taken) -> Result<pb::ReportRegionStateTransitionResponse, Exception> {
    let master = roll.master().filter(|master| master.is_initialized()).ok_or_else(Exception::please_hold)?;
    let mut error_message = None;
    for (parent, row) in taken.splits {
        if let Err(error) = master.split_asked(&parent, row).await {
            error_message = Some(error.to_string());
        }
    }
    Ok(pb::ReportRegionStateTransitionResponse { error_message })
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
