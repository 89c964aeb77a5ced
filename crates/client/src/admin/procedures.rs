//! The master's procedures, and locks.

use proto::methods::Method;
use proto::pb;

use super::Admin;
use crate::Result;

impl Admin {
    /// All procedures, also those that have ended not long ago.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn procedures(&self) -> Result<Vec<pb::Procedure>> {
        let reply: pb::GetProceduresResponse =
            self.master(Method::MasterGetProcedures, &pb::GetProceduresRequest {}).await?;
        Ok(reply.procedure)
    }

    /// What is locked, by whom, and who waits.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn locks(&self) -> Result<Vec<pb::LockedResource>> {
        let reply: pb::GetLocksResponse = self.master(Method::MasterGetLocks, &pb::GetLocksRequest {}).await?;
        Ok(reply.lock)
    }

    /// Asks for the end of a procedure, also of a running one; whether it can be ended.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn abort_procedure(&self, proc_id: u64, may_interrupt_if_running: bool) -> Result<bool> {
        let request = pb::AbortProcedureRequest { proc_id, may_interrupt_if_running: Some(may_interrupt_if_running) };
        let reply: pb::AbortProcedureResponse = self.master(Method::MasterAbortProcedure, &request).await?;
        Ok(reply.is_procedure_aborted)
    }

    /// Waits for the end of a procedure; what it leaves behind.
    ///
    /// # Errors
    /// Why it failed.
    pub async fn wait_for_procedure(&self, proc_id: u64) -> Result<bytes::Bytes> {
        self.finish_with_result(&format!("procedure {proc_id}"), Some(proc_id)).await
    }

    /// Starts a procedure of the old kind, run by all servers together, by its signature (`flush-table-proc`, ...).
    ///
    /// # Errors
    /// The master knows no such procedure.
    pub async fn exec_procedure(&self, procedure: &pb::ProcedureDescription) -> Result<()> {
        let request = pb::ExecProcedureRequest { procedure: procedure.clone() };
        let reply: pb::ExecProcedureResponse = self.master(Method::MasterExecProcedure, &request).await?;
        let at_most = std::time::Duration::from_millis(u64::try_from(reply.expected_timeout()).unwrap_or(0));
        let pause = self.connection.cluster.options.pause;
        let done = async {
            while !self.is_procedure_finished(procedure).await? {
                tokio::time::sleep(pause).await;
            }
            Ok(())
        };
        tokio::time::timeout(at_most.max(pause), done).await.unwrap_or_else(|_| {
            let class = "org.apache.hadoop.hbase.exceptions.TimeoutIOException".to_owned();
            let why = format!("not done within the {} ms that the master expected", at_most.as_millis());
            Err(crate::Error::Procedure { what: procedure.signature.clone(), why, class })
        })
    }

    /// The same for one that answers.
    ///
    /// # Errors
    /// The master knows no such procedure.
    pub async fn exec_procedure_with_return(&self, procedure: pb::ProcedureDescription) -> Result<bytes::Bytes> {
        let request = pb::ExecProcedureRequest { procedure };
        let reply: pb::ExecProcedureResponse = self.master(Method::MasterExecProcedureWithRet, &request).await?;
        Ok(reply.return_data.unwrap_or_default())
    }

    /// Whether a procedure of the old kind has ended.
    ///
    /// # Errors
    /// The master knows no such procedure; why it failed.
    pub async fn is_procedure_finished(&self, procedure: &pb::ProcedureDescription) -> Result<bool> {
        let request = pb::IsProcedureDoneRequest { procedure: Some(procedure.clone()) };
        let reply: pb::IsProcedureDoneResponse = self.master(Method::MasterIsProcedureDone, &request).await?;
        Ok(reply.done())
    }

    /// Asks for a lock on a namespace, a table or regions. It is a procedure, whose number this is; it holds when
    /// [`Admin::keep_lock`] says so, and for as long as that is called often enough.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn request_lock(&self, lock: pb::LockRequest) -> Result<u64> {
        let (nonce_group, nonce) = self.nonce();
        let request = pb::LockRequest { nonce_group, nonce, ..lock };
        let reply: pb::LockResponse = self.master(Method::LockRequestLock, &request).await?;
        Ok(reply.proc_id)
    }

    /// Keeps a lock, or gives it free: whether it is held, and for how many milliseconds without another call.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn keep_lock(&self, proc_id: u64, keep_alive: bool) -> Result<(bool, u32)> {
        use pb::lock_heartbeat_response::LockStatus;
        let request = pb::LockHeartbeatRequest { proc_id, keep_alive: Some(keep_alive) };
        let reply: pb::LockHeartbeatResponse = self.master(Method::LockLockHeartbeat, &request).await?;
        Ok((reply.lock_status() == LockStatus::Locked, reply.timeout_ms()))
    }
}
