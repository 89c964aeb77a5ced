//! What the master remembers of its balancer's decisions. Follows: `MasterRpcServices#getLogEntries`.

use super::MasterHandler;
use crate::{ErrorKind, MasterError};
use proto::{Message, pb};
use rpc::Call;
use rpc::service::Answer;

const MASTER_MESSAGES: &str = "org.apache.hadoop.hbase.shaded.protobuf.generated.MasterProtos$";

pub(super) fn entries(handler: &MasterHandler, _: &Call, request: pb::LogRequest) -> Answer<pb::LogEntry> {
    let invalid = || MasterError::new(ErrorKind::Io, "Invalid request params");
    let (name, found) = match request.log_class_name.strip_prefix(MASTER_MESSAGES) {
        Some("BalancerDecisionsRequest") => {
            let asked = pb::BalancerDecisionsRequest::decode(request.log_message).map_err(|_| invalid())?;
            let balancer_decision = handler.master.balancer.decisions(asked.limit);
            ("BalancerDecisionsResponse", pb::BalancerDecisionsResponse { balancer_decision }.encode_to_vec())
        }
        Some("BalancerRejectionsRequest") => {
            let asked = pb::BalancerRejectionsRequest::decode(request.log_message).map_err(|_| invalid())?;
            let balancer_rejection = handler.master.balancer.rejections(asked.limit);
            ("BalancerRejectionsResponse", pb::BalancerRejectionsResponse { balancer_rejection }.encode_to_vec())
        }
        _ => return Err(invalid().into()),
    };
    Ok(pb::LogEntry { log_class_name: format!("{MASTER_MESSAGES}{name}"), log_message: found.into() }.into())
}
