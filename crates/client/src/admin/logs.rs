//! What servers have noted in memory: slow and large requests, what the balancer decided and refused. Follows:
//! `RawAsyncHBaseAdmin#getLogEntries`, `ResponseConverter#getSlowLogPayloads`.

use model::ServerName;
use proto::methods::Method;
use proto::{Message, pb};

use super::Admin;
use crate::{Error, Result};

/// Before the names of messages that travel in a log request.
const ADMIN_MESSAGES: &str = "org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos$";
const MASTER_MESSAGES: &str = "org.apache.hadoop.hbase.shaded.protobuf.generated.MasterProtos$";

impl Admin {
    /// Requests that were slow or large, as a region server has kept them; which kind, the request says.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn slow_log(
        &self,
        server: &ServerName,
        request: &pb::SlowLogResponseRequest,
    ) -> Result<Vec<pb::SlowLogPayload>> {
        let request = log_request(ADMIN_MESSAGES, "SlowLogResponseRequest", request);
        let entry: pb::LogEntry = self.server_call(server, Method::AdminGetLogEntries, &request).await?;
        let payloads: pb::SlowLogResponses = read(&entry, "SlowLogResponses")?;
        Ok(payloads.slow_log_payloads)
    }

    /// Empties a region server's list of slow and large requests; whether it did.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn clear_slow_log(&self, server: &ServerName) -> Result<bool> {
        let reply: pb::ClearSlowLogResponses =
            self.server_call(server, Method::AdminClearSlowLogsResponses, &pb::ClearSlowLogResponseRequest {}).await?;
        Ok(reply.is_cleaned)
    }

    /// What the balancer decided last.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn balancer_decisions(&self, limit: u32) -> Result<Vec<pb::BalancerDecision>> {
        let request = pb::BalancerDecisionsRequest { limit: Some(limit) };
        let request = log_request(MASTER_MESSAGES, "BalancerDecisionsRequest", &request);
        let entry: pb::LogEntry = self.master(Method::MasterGetLogEntries, &request).await?;
        Ok(read::<pb::BalancerDecisionsResponse>(&entry, "BalancerDecisionsResponse")?.balancer_decision)
    }

    /// Why the balancer did nothing.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn balancer_rejections(&self, limit: u32) -> Result<Vec<pb::BalancerRejection>> {
        let request = pb::BalancerRejectionsRequest { limit: Some(limit) };
        let request = log_request(MASTER_MESSAGES, "BalancerRejectionsRequest", &request);
        let entry: pb::LogEntry = self.master(Method::MasterGetLogEntries, &request).await?;
        Ok(read::<pb::BalancerRejectionsResponse>(&entry, "BalancerRejectionsResponse")?.balancer_rejection)
    }
}

fn log_request(package: &str, name: &str, message: &impl Message) -> pb::LogRequest {
    pb::LogRequest { log_class_name: format!("{package}{name}"), log_message: message.encode_to_vec().into() }
}

/// The message in an entry, which must be of this name.
fn read<M: Message + Default>(entry: &pb::LogEntry, name: &str) -> Result<M> {
    if !entry.log_class_name.ends_with(name) {
        return Err(Error::Malformed(format!("a log entry of class {}, not {name}", entry.log_class_name)));
    }
    M::decode(entry.log_message.clone()).map_err(Error::malformed)
}
