//! What clients ask of the slow log.

use super::RegionService;
use proto::{Message, pb};
use rpc::Call;
use rpc::exception::Exception;
use rpc::service::Answer;

/// What the names of HBase's messages begin with in Java.
const ADMIN_MESSAGES: &str = "org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos$";

pub(super) fn slow(
    RegionService { server, .. }: &RegionService,
    _: &Call,
    request: pb::SlowLogResponseRequest,
) -> Answer<pb::SlowLogResponses> {
    entries(server, request, pb::slow_log_response_request::LogType::SlowLog)
}

pub(super) fn large(
    RegionService { server, .. }: &RegionService,
    _: &Call,
    request: pb::SlowLogResponseRequest,
) -> Answer<pb::SlowLogResponses> {
    entries(server, request, pb::slow_log_response_request::LogType::LargeLog)
}

fn entries(
    server: &crate::server::RegionServer,
    mut request: pb::SlowLogResponseRequest,
    of_type: pb::slow_log_response_request::LogType,
) -> Answer<pb::SlowLogResponses> {
    request.log_type = Some(of_type as i32);
    Ok(pb::SlowLogResponses { slow_log_payloads: server.slow_log.entries(&request) }.into())
}

/// The same for clients that name the message which they send. Follows: `RSRpcServices#getLogEntries`.
pub(super) fn by_class(
    RegionService { server, .. }: &RegionService,
    _: &Call,
    request: pb::LogRequest,
) -> Answer<pb::LogEntry> {
    if request.log_class_name.strip_prefix(ADMIN_MESSAGES) != Some("SlowLogResponseRequest") {
        return Err(Exception::io("Invalid request params"));
    }
    let inner = pb::SlowLogResponseRequest::decode(request.log_message)
        .map_err(|error| Exception::io(format!("Error while retrieving log entries: {error}")))?;
    let found = pb::SlowLogResponses { slow_log_payloads: server.slow_log.entries(&inner) };
    let log_class_name = format!("{ADMIN_MESSAGES}SlowLogResponses");
    Ok(pb::LogEntry { log_class_name, log_message: found.encode_to_vec().into() }.into())
}

pub(super) fn clear(
    RegionService { server, .. }: &RegionService,
    _: &Call,
    _: pb::ClearSlowLogResponseRequest,
) -> Answer<pb::ClearSlowLogResponses> {
    Ok(pb::ClearSlowLogResponses { is_cleaned: server.slow_log.clear() }.into())
}
