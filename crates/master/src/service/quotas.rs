//! Quotas: set, switched, asked for.

use super::{MasterHandler, later};
use crate::quotas;
use proto::pb;
use rpc::Call;
use rpc::service::Answer;
use std::sync::Arc;

type Handler = MasterHandler;

pub(super) fn set(handler: &Handler, _: &Call, request: pb::SetQuotaRequest) -> Answer<pb::SetQuotaResponse> {
    let master = Arc::clone(&handler.master);
    later(async move {
        quotas::set(&master, request).await?;
        Ok(pb::SetQuotaResponse {})
    })
}

pub(super) fn set_rpc_throttle(
    handler: &Handler,
    _: &Call,
    request: pb::SwitchRpcThrottleRequest,
) -> Answer<pb::SwitchRpcThrottleResponse> {
    let master = Arc::clone(&handler.master);
    later(async move {
        let was = quotas::switch_rpc_throttle(&master, request.rpc_throttle_enabled).await?;
        Ok(pb::SwitchRpcThrottleResponse { previous_rpc_throttle_enabled: was })
    })
}

pub(super) fn rpc_throttle(
    handler: &Handler,
    _: &Call,
    _: pb::IsRpcThrottleEnabledRequest,
) -> Answer<pb::IsRpcThrottleEnabledResponse> {
    let rpc_throttle_enabled = quotas::is_rpc_throttle_on(&handler.master);
    Ok(pb::IsRpcThrottleEnabledResponse { rpc_throttle_enabled }.into())
}

pub(super) fn set_exceed_throttle(
    handler: &Handler,
    _: &Call,
    request: pb::SwitchExceedThrottleQuotaRequest,
) -> Answer<pb::SwitchExceedThrottleQuotaResponse> {
    let master = Arc::clone(&handler.master);
    later(async move {
        let was = quotas::switch_exceed_throttle(&master, request.exceed_throttle_quota_enabled).await?;
        Ok(pb::SwitchExceedThrottleQuotaResponse { previous_exceed_throttle_quota_enabled: was })
    })
}
