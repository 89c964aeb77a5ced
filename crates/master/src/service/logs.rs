//! What the master remembers of its balancer's decisions. Follows: `MasterRpcServices#getLogEntries`.

use super::MasterHandler;
use crate::{ErrorKind, MasterError};
use proto::{Message, pb};
use rpc::Call;
use rpc::service::Answer;

const MASTER_MESSAGES: &str = "org.apache.hadoop.hbase.shaded.protobuf.generated.MasterProtos$";

/// No decision or rejection: all regions are on one server, and the balancer has none to make.
pub(super) fn entries(_: &MasterHandler, _: &Call, request: pb::LogRequest) -> Answer<pb::LogEntry> {
    let (name, none) = match request.log_class_name.strip_prefix(MASTER_MESSAGES) {
        Some("BalancerDecisionsRequest") => {
            ("BalancerDecisionsResponse", pb::BalancerDecisionsResponse::default().encode_to_vec())
        }
        Some("BalancerRejectionsRequest") => {
            ("BalancerRejectionsResponse", pb::BalancerRejectionsResponse::default().encode_to_vec())
        }
        _ => return Err(MasterError::new(ErrorKind::Io, "Invalid request params").into()),
    };
    Ok(pb::LogEntry { log_class_name: format!("{MASTER_MESSAGES}{name}"), log_message: none.into() }.into())
}
