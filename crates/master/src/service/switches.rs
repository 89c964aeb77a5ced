//! The switches of the master's chores and of what clients may do; each answers what it was before.

use super::{MasterHandler, later};
use crate::switches::Switches;
use proto::pb;
use rpc::Call;
use rpc::service::Answer;
use std::sync::Arc;

type Handler = MasterHandler;

pub(super) fn set_balancer(
    handler: &Handler,
    _: &Call,
    request: pb::SetBalancerRunningRequest,
) -> Answer<pb::SetBalancerRunningResponse> {
    let master = Arc::clone(&handler.master);
    later(async move {
        let was = master.switches.change(&master.files, |switches| switches.set_balancer(request.on)).await?;
        Ok(pb::SetBalancerRunningResponse { prev_balance_value: Some(was) })
    })
}

pub(super) fn balancer(
    handler: &Handler,
    _: &Call,
    _: pb::IsBalancerEnabledRequest,
) -> Answer<pb::IsBalancerEnabledResponse> {
    Ok(pb::IsBalancerEnabledResponse { enabled: handler.master.switches.balancer() }.into())
}

pub(super) fn set_normalizer(
    handler: &Handler,
    _: &Call,
    request: pb::SetNormalizerRunningRequest,
) -> Answer<pb::SetNormalizerRunningResponse> {
    let master = Arc::clone(&handler.master);
    later(async move {
        let was = master.switches.change(&master.files, |switches| switches.set_normalizer(request.on)).await?;
        Ok(pb::SetNormalizerRunningResponse { prev_normalizer_value: Some(was) })
    })
}

pub(super) fn normalizer(
    handler: &Handler,
    _: &Call,
    _: pb::IsNormalizerEnabledRequest,
) -> Answer<pb::IsNormalizerEnabledResponse> {
    Ok(pb::IsNormalizerEnabledResponse { enabled: handler.master.switches.normalizer() }.into())
}

pub(super) fn set_split_or_merge(
    handler: &Handler,
    _: &Call,
    request: pb::SetSplitOrMergeEnabledRequest,
) -> Answer<pb::SetSplitOrMergeEnabledResponse> {
    let master = Arc::clone(&handler.master);
    later(async move {
        let set = |switches: &Switches, switch: i32| match pb::MasterSwitchType::try_from(switch) {
            Ok(pb::MasterSwitchType::Split) => Some(switches.set_split(request.enabled)),
            Ok(pb::MasterSwitchType::Merge) => Some(switches.set_merge(request.enabled)),
            Err(_) => None,
        };
        let types = request.switch_types;
        let all = |switches: &Switches| types.iter().filter_map(|switch| set(switches, *switch)).collect();
        Ok(pb::SetSplitOrMergeEnabledResponse { prev_value: master.switches.change(&master.files, all).await? })
    })
}

pub(super) fn split_or_merge(
    handler: &Handler,
    _: &Call,
    request: pb::IsSplitOrMergeEnabledRequest,
) -> Answer<pb::IsSplitOrMergeEnabledResponse> {
    let switches = &handler.master.switches;
    let enabled = match pb::MasterSwitchType::try_from(request.switch_type) {
        Ok(pb::MasterSwitchType::Merge) => switches.merge(),
        _ => switches.split(),
    };
    Ok(pb::IsSplitOrMergeEnabledResponse { enabled }.into())
}

pub(super) fn set_janitor(
    handler: &Handler,
    _: &Call,
    request: pb::EnableCatalogJanitorRequest,
) -> Answer<pb::EnableCatalogJanitorResponse> {
    let master = Arc::clone(&handler.master);
    later(async move {
        let was = master.switches.change(&master.files, |switches| switches.set_janitor(request.enable)).await?;
        Ok(pb::EnableCatalogJanitorResponse { prev_value: Some(was) })
    })
}

pub(super) fn janitor(
    handler: &Handler,
    _: &Call,
    _: pb::IsCatalogJanitorEnabledRequest,
) -> Answer<pb::IsCatalogJanitorEnabledResponse> {
    Ok(pb::IsCatalogJanitorEnabledResponse { value: handler.master.switches.janitor() }.into())
}

pub(super) fn set_cleaner(
    handler: &Handler,
    _: &Call,
    request: pb::SetCleanerChoreRunningRequest,
) -> Answer<pb::SetCleanerChoreRunningResponse> {
    let master = Arc::clone(&handler.master);
    later(async move {
        let was = master.switches.change(&master.files, |switches| switches.set_cleaner(request.on)).await?;
        Ok(pb::SetCleanerChoreRunningResponse { prev_value: Some(was) })
    })
}

pub(super) fn cleaner(
    handler: &Handler,
    _: &Call,
    _: pb::IsCleanerChoreEnabledRequest,
) -> Answer<pb::IsCleanerChoreEnabledResponse> {
    Ok(pb::IsCleanerChoreEnabledResponse { value: handler.master.switches.cleaner() }.into())
}

pub(super) fn set_snapshot_cleanup(
    handler: &Handler,
    _: &Call,
    request: pb::SetSnapshotCleanupRequest,
) -> Answer<pb::SetSnapshotCleanupResponse> {
    let master = Arc::clone(&handler.master);
    later(async move {
        let was =
            master.switches.change(&master.files, |switches| switches.set_snapshot_cleanup(request.enabled)).await?;
        Ok(pb::SetSnapshotCleanupResponse { prev_snapshot_cleanup: was })
    })
}

pub(super) fn snapshot_cleanup(
    handler: &Handler,
    _: &Call,
    _: pb::IsSnapshotCleanupEnabledRequest,
) -> Answer<pb::IsSnapshotCleanupEnabledResponse> {
    Ok(pb::IsSnapshotCleanupEnabledResponse { enabled: handler.master.switches.snapshot_cleanup() }.into())
}
