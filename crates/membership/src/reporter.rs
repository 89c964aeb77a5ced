//! What became of the master's orders, told until a master has taken it.

use crate::link::{LinkError, MasterLink};
use model::ServerName;
use proto::Message;
use proto::methods::Method;
use proto::pb;
use regionserver::{MasterReports, Report};
use std::sync::Arc;
use std::time::Duration;

/// After a master that is not ready. Follows: `hbase.rpc.shortoperation.retry.pause.time`, `HConstants.RETRY_BACKOFF`.
const PAUSE_MS: u64 = 200;
/// The pause does not grow beyond it.
const LONGEST_PAUSE_MS: u64 = 5_000;

/// Reports of one server to whoever is master.
pub struct Reporter {
    link: Arc<MasterLink>,
    server: ServerName,
}

impl Reporter {
    /// Reports as `server`.
    pub fn new(link: Arc<MasterLink>, server: ServerName) -> Reporter {
        Reporter { link, server }
    }

    /// Calls until a master has answered.
    async fn tell<M: Message + Default>(&self, method: Method, request: &impl Message) -> Result<M, String> {
        let mut pause_ms = PAUSE_MS;
        loop {
            match self.link.call(method, request).await {
                Ok(answer) => return Ok(answer),
                Err(LinkError::Over(over)) => return Err(over.to_string()),
                Err(error) if error.is("YouAreDeadException") => return Err(error.to_string()),
                Err(error) => tracing::info!("{} is tried again: {error}", method.info().name),
            }
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            pause_ms = (pause_ms * 2).min(LONGEST_PAUSE_MS);
        }
    }
}

impl MasterReports for Reporter {
    fn region_transition(&self, transition: pb::RegionStateTransition) -> Report<'_> {
        Box::pin(async move {
            let request = pb::ReportRegionStateTransitionRequest {
                server: convert::to_proto::server_name(&self.server),
                transition: vec![transition],
            };
            let answer: pb::ReportRegionStateTransitionResponse =
                self.tell(Method::RegionServerStatusReportRegionStateTransition, &request).await?;
            answer.error_message.map_or(Ok(()), Err)
        })
    }

    fn procedure_done(&self, result: pb::RemoteProcedureResult) -> Report<'_> {
        Box::pin(async move {
            let request = pb::ReportProcedureDoneRequest { result: vec![result] };
            let method = Method::RegionServerStatusReportProcedureDone;
            self.tell::<pb::ReportProcedureDoneResponse>(method, &request).await.map(drop)
        })
    }
}
