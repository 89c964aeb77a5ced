//! The janitor, the cleaners, the stop of the master or the cluster: what an operator has done at once.

use super::{MasterHandler, later};
use proto::pb;
use rpc::Call;
use rpc::service::Answer;
use std::sync::Arc;

type Handler = MasterHandler;

pub(super) fn run_janitor(
    handler: &Handler,
    _: &Call,
    _: pb::RunCatalogScanRequest,
) -> Answer<pb::RunCatalogScanResponse> {
    let master = Arc::clone(&handler.master);
    later(async move {
        let cleaned = if master.switches.janitor() { master.run_catalog_janitor().await? } else { 0 };
        Ok(pb::RunCatalogScanResponse { scan_result: Some(i32::try_from(cleaned).unwrap_or(i32::MAX)) })
    })
}

/// Asked for by hand, the cleaners run even when the chore is switched off.
pub(super) fn run_cleaners(
    handler: &Handler,
    _: &Call,
    _: pb::RunCleanerChoreRequest,
) -> Answer<pb::RunCleanerChoreResponse> {
    let master = Arc::clone(&handler.master);
    later(async move {
        let cleaner_chore_ran = match master.run_cleaners().await {
            Ok(_) => true,
            Err(error) if error.is_stopped() => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "the cleaners were asked to run");
                false
            }
        };
        Ok(pb::RunCleanerChoreResponse { cleaner_chore_ran })
    })
}

/// What the store holds is in files as soon as it is written.
pub(super) fn flush_store(
    _: &Handler,
    _: &Call,
    _: pb::FlushMasterStoreRequest,
) -> Answer<pb::FlushMasterStoreResponse> {
    Ok(pb::FlushMasterStoreResponse {}.into())
}

pub(super) fn shutdown(handler: &Handler, _: &Call, _: pb::ShutdownRequest) -> Answer<pb::ShutdownResponse> {
    handler.master.observer.stop_requested(true);
    Ok(pb::ShutdownResponse {}.into())
}

pub(super) fn stop_master(handler: &Handler, _: &Call, _: pb::StopMasterRequest) -> Answer<pb::StopMasterResponse> {
    handler.master.observer.stop_requested(false);
    Ok(pb::StopMasterResponse {}.into())
}
