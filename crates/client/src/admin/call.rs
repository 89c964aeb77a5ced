//! Calls to the master and to region servers, again where that may help, and the wait for procedures. Follows:
//! `AsyncMasterRequestRpcRetryingCaller`, `AsyncAdminRequestRetryingCaller`, `RawAsyncHBaseAdmin#getProcedureResult`.

use std::time::Duration;

use model::{Nonce, ServerName};
use proto::methods::{Method, Service};
use proto::{Message, pb};

use super::Admin;
use crate::channel::{Reply, Request};
use crate::{Error, Result};

/// The first pause between two looks at a procedure.
const FIRST_LOOK: Duration = Duration::from_millis(2);
/// The longest.
const LONGEST_LOOK: Duration = Duration::from_millis(250);

impl Admin {
    /// Calls the active master, again where that may help.
    pub(super) async fn master<R: Message + Default>(&self, method: Method, message: &impl Message) -> Result<R> {
        let cluster = &self.connection.cluster;
        let mut retry = cluster.retry(cluster.manner.writing());
        loop {
            let error = match self.try_master(method, message, retry.call_timeout()).await {
                Ok(reply) => return reply.decode(),
                Err(e) => e,
            };
            if error.may_pass() {
                // Perhaps there is another one by now.
                *cluster.master.lock() = None;
            }
            retry.pause(error).await?;
        }
    }

    async fn try_master(&self, method: Method, message: &impl Message, timeout: Duration) -> Result<Reply> {
        let cluster = &self.connection.cluster;
        let known = cluster.master.lock().clone();
        let master = match known {
            Some(master) => master,
            None => {
                let name = crate::registry::active_master(&cluster.options).await?;
                let master = cluster.server(&name.address());
                *cluster.master.lock() = Some(master.clone());
                master
            }
        };
        let channel = match method.info().service {
            Service::Hbck => master.hbck().await?,
            Service::Lock => master.lock().await?,
            _ => master.master().await?,
        };
        channel.call(Request::new(method, message).timeout(timeout)).await
    }

    /// Calls the AdminService of one region server, again where that may help.
    pub(super) async fn server_call<R: Message + Default>(
        &self,
        server: &ServerName,
        method: Method,
        message: &impl Message,
    ) -> Result<R> {
        let cluster = &self.connection.cluster;
        let server = cluster.server(&server.address());
        let mut retry = cluster.retry(cluster.manner.writing());
        loop {
            let called = async {
                let channel = server.admin().await?;
                channel.call(Request::new(method, message).timeout(retry.call_timeout())).await
            };
            match called.await {
                Ok(reply) => return reply.decode(),
                Err(error) => retry.pause(error).await?,
            }
        }
    }

    /// Waits until a procedure of the master has ended.
    pub(super) async fn finish(&self, what: &str, proc_id: Option<u64>) -> Result<()> {
        self.finish_with_result(what, proc_id).await.map(|_| ())
    }

    /// The same; what the procedure leaves behind comes back.
    pub(super) async fn finish_with_result(&self, what: &str, proc_id: Option<u64>) -> Result<bytes::Bytes> {
        use pb::get_procedure_result_response::State;
        let Some(proc_id) = proc_id else { return Ok(bytes::Bytes::new()) };
        let mut pause = FIRST_LOOK;
        loop {
            let request = pb::GetProcedureResultRequest { proc_id };
            let reply: pb::GetProcedureResultResponse = self.master(Method::MasterGetProcedureResult, &request).await?;
            if let Some(exception) = reply.exception {
                let cause = exception.generic_exception.unwrap_or_default();
                let class = cause.class_name.unwrap_or_default();
                let why = cause.message.unwrap_or_else(|| class.clone());
                return Err(Error::Procedure { what: what.to_owned(), why, class });
            }
            if reply.state() != State::Running {
                return Ok(reply.result.unwrap_or_default());
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 3 / 2).min(LONGEST_LOOK);
        }
    }

    /// Group and number for a request that must not be done twice.
    pub(super) fn nonce(&self) -> (Option<u64>, Option<u64>) {
        let Nonce { group, number } = self.connection.cluster.nonce();
        (Some(group), Some(number))
    }
}
