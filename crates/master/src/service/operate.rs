//! Requests of operators: regions assigned and closed by hand, switches, the janitor, stopping.

use super::{MasterHandler, caller, later, ready, region_of};
use crate::procedure::region_locks;
use crate::switches::Switches;
use crate::{ErrorKind, MasterError, Result};
use bytes::Bytes;
use model::TableName;
use proto::methods::Method;
use proto::pb;
use rpc::{Call, Exception, Outcome};
use std::sync::Arc;

/// The old way to flush a table.
const FLUSH_SIGNATURE: &str = "flush-table-proc";
/// Milliseconds that a client is told to wait for it at most.
const OLD_PROCEDURE_TIMEOUT_MS: i64 = 300_000;

fn not_registered(signature: &str) -> MasterError {
    MasterError::do_not_retry(format!("The procedure is not registered: {signature}"))
}

impl MasterHandler {
    /// `None` for methods that are not of this kind.
    pub(super) fn operate(&self, call: &Call) -> std::result::Result<Option<Outcome>, Exception> {
        let master = Arc::clone(&self.master);
        Ok(Some(match call.method.method {
            Method::MasterAssignRegion => {
                let request: pb::AssignRegionRequest = call.decode()?;
                later(async move {
                    let info = region_of(&master, &request.region)?;
                    let _locks = master.locks.lock(region_locks(std::slice::from_ref(&info))).await;
                    master.assign_by_hand(info).await?;
                    Ok(pb::AssignRegionResponse {})
                })
            }
            Method::MasterUnassignRegion => {
                let request: pb::UnassignRegionRequest = call.decode()?;
                later(async move {
                    let info = region_of(&master, &request.region)?;
                    if info.table.is_system() {
                        let message = format!("{} is not closed by hand", info.name_string());
                        return Err(MasterError::do_not_retry(message));
                    }
                    let _locks = master.locks.lock(region_locks(std::slice::from_ref(&info))).await;
                    master.unassign(vec![info]).await?;
                    Ok(pb::UnassignRegionResponse {})
                })
            }
            // There is one server: a region is where it can be, and a move is done.
            Method::MasterMoveRegion => {
                let request: pb::MoveRegionRequest = call.decode()?;
                ready(region_of(&master, &request.region).map(|_| pb::MoveRegionResponse {}))
            }
            // Only the master's picture would change, and that is kept right by itself.
            Method::MasterOfflineRegion => {
                let request: pb::OfflineRegionRequest = call.decode()?;
                ready(region_of(&master, &request.region).map(|_| pb::OfflineRegionResponse {}))
            }
            Method::MasterBalance => ready(Ok(pb::BalanceResponse {
                balancer_ran: self.master.switches.balancer(),
                moves_calculated: Some(0),
                moves_executed: Some(0),
            })),
            Method::MasterSetBalancerRunning => {
                let request: pb::SetBalancerRunningRequest = call.decode()?;
                later(async move {
                    let was = master.switch(|switches| switches.set_balancer(request.on)).await?;
                    Ok(pb::SetBalancerRunningResponse { prev_balance_value: Some(was) })
                })
            }
            // Nobody evens region sizes here yet, and it says so.
            Method::MasterNormalize => ready(Ok(pb::NormalizeResponse { normalizer_ran: false })),
            Method::MasterSetNormalizerRunning => {
                let request: pb::SetNormalizerRunningRequest = call.decode()?;
                later(async move {
                    let was = master.switch(|switches| switches.set_normalizer(request.on)).await?;
                    Ok(pb::SetNormalizerRunningResponse { prev_normalizer_value: Some(was) })
                })
            }
            Method::MasterSetSplitOrMergeEnabled => {
                let request: pb::SetSplitOrMergeEnabledRequest = call.decode()?;
                later(async move {
                    let set = |switches: &Switches, switch: i32| match pb::MasterSwitchType::try_from(switch) {
                        Ok(pb::MasterSwitchType::Split) => Some(switches.set_split(request.enabled)),
                        Ok(pb::MasterSwitchType::Merge) => Some(switches.set_merge(request.enabled)),
                        Err(_) => None,
                    };
                    let types = request.switch_types;
                    let all = |switches: &Switches| types.iter().filter_map(|switch| set(switches, *switch)).collect();
                    Ok(pb::SetSplitOrMergeEnabledResponse { prev_value: master.switch(all).await? })
                })
            }
            Method::MasterRunCatalogScan => later(async move {
                let cleaned = if master.switches.janitor() { master.run_catalog_janitor().await? } else { 0 };
                Ok(pb::RunCatalogScanResponse { scan_result: Some(i32::try_from(cleaned).unwrap_or(i32::MAX)) })
            }),
            Method::MasterEnableCatalogJanitor => {
                let request: pb::EnableCatalogJanitorRequest = call.decode()?;
                later(async move {
                    let was = master.switch(|switches| switches.set_janitor(request.enable)).await?;
                    Ok(pb::EnableCatalogJanitorResponse { prev_value: Some(was) })
                })
            }
            // Asked for by hand, the cleaners run even when the chore is switched off.
            Method::MasterRunCleanerChore => later(async move {
                let ran = match master.run_cleaners().await {
                    Ok(_) => true,
                    Err(error) if error.is_stopped() => return Err(error),
                    Err(error) => {
                        tracing::warn!(%error, "the cleaners were asked to run");
                        false
                    }
                };
                Ok(pb::RunCleanerChoreResponse { cleaner_chore_ran: ran })
            }),
            Method::MasterSetCleanerChoreRunning => {
                let request: pb::SetCleanerChoreRunningRequest = call.decode()?;
                later(async move {
                    let was = master.switch(|switches| switches.set_cleaner(request.on)).await?;
                    Ok(pb::SetCleanerChoreRunningResponse { prev_value: Some(was) })
                })
            }
            Method::MasterSwitchSnapshotCleanup => {
                let request: pb::SetSnapshotCleanupRequest = call.decode()?;
                later(async move {
                    let was = master.switch(|switches| switches.set_snapshot_cleanup(request.enabled)).await?;
                    Ok(pb::SetSnapshotCleanupResponse { prev_snapshot_cleanup: was })
                })
            }
            Method::MasterSwitchRpcThrottle => {
                let request: pb::SwitchRpcThrottleRequest = call.decode()?;
                later(async move {
                    let was = master.switch(|switches| switches.set_rpc_throttle(request.rpc_throttle_enabled)).await?;
                    Ok(pb::SwitchRpcThrottleResponse { previous_rpc_throttle_enabled: was })
                })
            }
            Method::MasterSwitchExceedThrottleQuota => {
                let request: pb::SwitchExceedThrottleQuotaRequest = call.decode()?;
                later(async move {
                    let was = master
                        .switch(|switches| switches.set_exceed_throttle(request.exceed_throttle_quota_enabled))
                        .await?;
                    Ok(pb::SwitchExceedThrottleQuotaResponse { previous_exceed_throttle_quota_enabled: was })
                })
            }
            // A procedure here ends by itself; none is broken off in its middle.
            Method::MasterAbortProcedure => ready(Ok(pb::AbortProcedureResponse { is_procedure_aborted: false })),
            // No server is known as dead, so none of these could be cleared.
            Method::MasterClearDeadServers => {
                let request: pb::ClearDeadServersRequest = call.decode()?;
                ready(Ok(pb::ClearDeadServersResponse { server_name: request.server_name }))
            }
            Method::MasterExecProcedure => {
                let request: pb::ExecProcedureRequest = call.decode()?;
                self.start_old_procedure(call, &request.procedure)
            }
            Method::MasterIsProcedureDone => {
                let request: pb::IsProcedureDoneRequest = call.decode()?;
                ready(self.is_old_procedure_done(request.procedure.as_ref()))
            }
            Method::MasterExecMasterService => {
                let request: pb::CoprocessorServiceRequest = call.decode()?;
                let message = format!(
                    "No registered Master Coprocessor Endpoint found for {}. Has it been enabled?",
                    request.call.service_name
                );
                ready::<pb::CoprocessorServiceResponse>(Err(MasterError::new(ErrorKind::UnknownProtocol, message)))
            }
            Method::MasterFlushMasterStore => ready(Ok(pb::FlushMasterStoreResponse {})),
            Method::MasterShutdown => {
                master.observer.stop_requested(true);
                ready(Ok(pb::ShutdownResponse {}))
            }
            Method::MasterStopMaster => {
                master.observer.stop_requested(false);
                ready(Ok(pb::StopMasterResponse {}))
            }
            _ => return Ok(None),
        }))
    }

    fn start_old_procedure(&self, call: &Call, procedure: &pb::ProcedureDescription) -> Outcome {
        if procedure.signature != FLUSH_SIGNATURE {
            return ready::<pb::ExecProcedureResponse>(Err(not_registered(&procedure.signature)));
        }
        let table = procedure.instance.clone().unwrap_or_default();
        let families: Vec<Bytes> = procedure
            .configuration
            .iter()
            .filter(|pair| pair.name == "family")
            .flat_map(|pair| pair.value.split(','))
            .map(|family| Bytes::copy_from_slice(family.trim().as_bytes()))
            .collect();
        let (master, caller) = (Arc::clone(&self.master), caller(call, None, None));
        let flushes = Arc::clone(&self.old_flushes);
        later(async move {
            let name = TableName::parse(&table).map_err(|error| MasterError::new(ErrorKind::IllegalArgument, error))?;
            let id = master.flush_table(&name, families, &caller).await?;
            flushes.lock().insert(table, id);
            Ok(pb::ExecProcedureResponse { expected_timeout: Some(OLD_PROCEDURE_TIMEOUT_MS), return_data: None })
        })
    }

    fn is_old_procedure_done(
        &self,
        procedure: Option<&pb::ProcedureDescription>,
    ) -> Result<pb::IsProcedureDoneResponse> {
        let signature = procedure.map(|procedure| procedure.signature.as_str()).unwrap_or_default();
        if signature != FLUSH_SIGNATURE {
            return Err(not_registered(signature));
        }
        let table = procedure.and_then(|procedure| procedure.instance.as_deref()).unwrap_or_default();
        let mut flushes = self.old_flushes.lock();
        let known = flushes.get(table).and_then(|id| self.master.procedures().get(*id));
        let done = match known.map(|known| known.outcome) {
            Some(None) => false,
            Some(Some(outcome)) => {
                flushes.remove(table);
                outcome?;
                true
            }
            None => true,
        };
        Ok(pb::IsProcedureDoneResponse { done: Some(done), snapshot: None })
    }
}
