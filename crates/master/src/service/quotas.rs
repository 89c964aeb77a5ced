//! Quotas: set, switched, asked for.

use super::{MasterHandler, later};
use crate::quotas;
use convert::{from_proto, to_proto};
use model::TableName;
use proto::pb;
use proto::pb::get_quota_states_response::{NamespaceQuotaSnapshot, TableQuotaSnapshot};
use proto::pb::get_space_quota_region_sizes_response::RegionSizes;
use rpc::service::Answer;
use rpc::{Call, Exception};
use std::collections::BTreeSet;
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

/// How tables and namespaces stand to their quotas of space.
pub(super) fn states(handler: &Handler, _: &Call, _: pb::GetQuotaStatesRequest) -> Answer<pb::GetQuotaStatesResponse> {
    let observer = handler.master.quotas.space.observer();
    let tables = observer.tables().iter().map(|(table, snapshot)| TableQuotaSnapshot {
        table_name: Some(to_proto::table_name(table)),
        snapshot: Some(snapshot.to_message()),
    });
    let namespaces = observer.namespaces().iter().map(|(namespace, snapshot)| NamespaceQuotaSnapshot {
        namespace: Some(namespace.clone()),
        snapshot: Some(snapshot.to_message()),
    });
    Ok(pb::GetQuotaStatesResponse { table_snapshots: tables.collect(), ns_snapshots: namespaces.collect() }.into())
}

/// Bytes of tables, as region servers reported them.
pub(super) fn table_sizes(
    handler: &Handler,
    _: &Call,
    _: pb::GetSpaceQuotaRegionSizesRequest,
) -> Answer<pb::GetSpaceQuotaRegionSizesResponse> {
    let sizes = handler.master.quotas.space.table_bytes();
    let of_table = |(table, bytes): (&TableName, &u64)| RegionSizes {
        table_name: Some(to_proto::table_name(table)),
        size: Some(*bytes),
    };
    Ok(pb::GetSpaceQuotaRegionSizesResponse { sizes: sizes.iter().map(of_table).collect() }.into())
}

/// A region server reports how large its regions are.
pub(super) fn report_sizes(
    handler: &Handler,
    _: &Call,
    request: pb::RegionSpaceUseReportRequest,
) -> Answer<pb::RegionSpaceUseReportResponse> {
    let mut sizes = Vec::with_capacity(request.space_use.len());
    for space_use in &request.space_use {
        let info = space_use.region_info.as_ref().map(from_proto::region_info).transpose();
        if let Some(info) = info.map_err(crate::MasterError::from)? {
            sizes.push((info, space_use.region_size()));
        }
    }
    quotas::space::report(&handler.master, sizes);
    Ok(pb::RegionSpaceUseReportResponse {}.into())
}

/// Follows: `MasterQuotaManager#processFileArchivals`.
pub(super) fn report_archived(
    handler: &Handler,
    _: &Call,
    request: pb::FileArchiveNotificationRequest,
) -> Answer<pb::FileArchiveNotificationResponse> {
    let master = Arc::clone(&handler.master);
    if !master.is_initialized() {
        return Err(Exception::please_hold());
    }
    let named = request.archived_files.iter().filter_map(|file| file.table_name.as_ref());
    let tables = named.map(from_proto::table_name);
    let tables = tables.collect::<Result<BTreeSet<_>, _>>().map_err(crate::MasterError::from)?;
    later(async move {
        quotas::space::files_archived(&master, tables).await?;
        Ok(pb::FileArchiveNotificationResponse {})
    })
}
