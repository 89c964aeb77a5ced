//! Tables: listed, made, changed, deleted, flushed. What changes something becomes a procedure, and its id the answer.

use super::procedures;
use super::{MasterHandler, caller, later, own, table_of};
use crate::cluster::{RegionState, TableState};
use crate::{ErrorKind, MasterError, Result};
use bytes::Bytes;
use convert::{from_proto, to_proto};
use model::{TableDescriptor, TableName};
use proto::pb;
use rpc::Call;
use rpc::service::Answer;
use std::sync::Arc;

type Handler = MasterHandler;
pub(super) type Descriptors = Vec<(Arc<TableDescriptor>, TableState)>;

/// The names that a request's pattern picks, as Java's `Pattern#matches` would: the whole name must match.
pub(super) fn pattern(regex: &str) -> Result<regex::Regex> {
    regex::RegexBuilder::new(&format!(r"\A(?:{regex})\z"))
        .size_limit(1 << 20)
        .build()
        .map_err(|error| MasterError::do_not_retry(format!("the pattern {regex:?} cannot be used: {error}")))
}

/// Tables by namespace, pattern and list of names. Follows: `HMaster#getTableDescriptors`.
pub(super) fn list(
    handler: &Handler,
    namespace: Option<&str>,
    regex: Option<&str>,
    names: &[pb::TableName],
    with_system: bool,
) -> Result<Descriptors> {
    let namespace = namespace.filter(|name| !name.is_empty());
    if let (Some(name), true) = (namespace, names.is_empty()) {
        handler.master.namespaces.existing(name)?;
    }
    let regex = regex.map(pattern).transpose()?;
    let names: Vec<TableName> = names.iter().map(table_of).collect::<Result<_>>()?;
    let wanted = |table: &TableDescriptor| {
        let name = &table.name;
        let listed = if names.is_empty() {
            namespace.is_none_or(|ns| name.namespace() == ns) && (with_system || !name.is_system())
        } else {
            names.contains(name)
        };
        listed
            && regex.as_ref().is_none_or(|regex| {
                regex.is_match(name.as_str())
                    || (name.namespace() == model::name::DEFAULT_NAMESPACE
                        && regex.is_match(&format!("default:{name}")))
            })
    };
    let cluster = handler.master.cluster();
    let tables = cluster.tables().filter(|(table, _)| wanted(table));
    Ok(tables.map(|(table, state)| (Arc::clone(table), state)).collect())
}

fn list_by_namespace(handler: &Handler, namespace: &str) -> Result<Descriptors> {
    handler.master.namespaces.existing(namespace)?;
    list(handler, Some(namespace), None, &[], true)
}

fn list_by_state(handler: &Handler, enabled: bool) -> Result<Descriptors> {
    let wanted = if enabled { TableState::Enabled } else { TableState::Disabled };
    let mut tables = list(handler, None, None, &[], false)?;
    tables.retain(|(_, state)| *state == wanted);
    Ok(tables)
}

fn schemas(tables: &Descriptors) -> Vec<pb::TableSchema> {
    tables.iter().map(|(table, _)| to_proto::table(table)).collect()
}

fn names_of(tables: &Descriptors) -> Vec<pb::TableName> {
    tables.iter().map(|(table, _)| to_proto::table_name(&table.name)).collect()
}

pub(super) fn descriptors(
    handler: &Handler,
    _: &Call,
    request: pb::GetTableDescriptorsRequest,
) -> Answer<pb::GetTableDescriptorsResponse> {
    let tables = list(
        handler,
        request.namespace.as_deref(),
        request.regex.as_deref(),
        &request.table_names,
        request.include_sys_tables.unwrap_or(false),
    )?;
    Ok(pb::GetTableDescriptorsResponse { table_schema: schemas(&tables) }.into())
}

pub(super) fn names(
    handler: &Handler,
    _: &Call,
    request: pb::GetTableNamesRequest,
) -> Answer<pb::GetTableNamesResponse> {
    let with_system = request.include_sys_tables.unwrap_or(false);
    let tables = list(handler, request.namespace.as_deref(), request.regex.as_deref(), &[], with_system)?;
    Ok(pb::GetTableNamesResponse { table_names: names_of(&tables) }.into())
}

pub(super) fn descriptors_by_namespace(
    handler: &Handler,
    _: &Call,
    request: pb::ListTableDescriptorsByNamespaceRequest,
) -> Answer<pb::ListTableDescriptorsByNamespaceResponse> {
    let tables = list_by_namespace(handler, &request.namespace_name)?;
    Ok(pb::ListTableDescriptorsByNamespaceResponse { table_schema: schemas(&tables) }.into())
}

pub(super) fn names_by_namespace(
    handler: &Handler,
    _: &Call,
    request: pb::ListTableNamesByNamespaceRequest,
) -> Answer<pb::ListTableNamesByNamespaceResponse> {
    let tables = list_by_namespace(handler, &request.namespace_name)?;
    Ok(pb::ListTableNamesByNamespaceResponse { table_name: names_of(&tables) }.into())
}

pub(super) fn descriptors_by_state(
    handler: &Handler,
    _: &Call,
    request: pb::ListTableDescriptorsByStateRequest,
) -> Answer<pb::ListTableDescriptorsByStateResponse> {
    let tables = list_by_state(handler, request.is_enabled)?;
    Ok(pb::ListTableDescriptorsByStateResponse { table_schema: schemas(&tables) }.into())
}

pub(super) fn names_by_state(
    handler: &Handler,
    _: &Call,
    request: pb::ListTableNamesByStateRequest,
) -> Answer<pb::ListTableNamesByStateResponse> {
    let tables = list_by_state(handler, request.is_enabled)?;
    Ok(pb::ListTableNamesByStateResponse { table_names: names_of(&tables) }.into())
}

pub(super) fn state(
    handler: &Handler,
    _: &Call,
    request: pb::GetTableStateRequest,
) -> Answer<pb::GetTableStateResponse> {
    let table = table_of(&request.table_name)?;
    let state = handler.master.cluster().state(&table);
    let state =
        state.ok_or_else(|| MasterError::new(ErrorKind::TableNotFound, format!("No state found for {table}")))?;
    Ok(pb::GetTableStateResponse { table_state: pb::TableState { state: state as i32 } }.into())
}

pub(super) fn alter_status(
    handler: &Handler,
    _: &Call,
    request: pb::GetSchemaAlterStatusRequest,
) -> Answer<pb::GetSchemaAlterStatusResponse> {
    let table = table_of(&request.table_name)?;
    let cluster = handler.master.cluster();
    let live: Vec<_> = cluster.regions_of(&table).filter(|node| node.is_live()).collect();
    let moving = |state| matches!(state, RegionState::Opening | RegionState::Closing | RegionState::Offline);
    let count = |n: usize| Some(u32::try_from(n).unwrap_or(u32::MAX));
    let response = pb::GetSchemaAlterStatusResponse {
        yet_to_update_regions: count(live.iter().filter(|node| moving(node.state)).count()),
        total_regions: count(live.len()),
    };
    Ok(response.into())
}

pub(super) fn create(
    handler: &Handler,
    call: &Call,
    request: pb::CreateTableRequest,
) -> Answer<pb::CreateTableResponse> {
    let caller = caller(call, request.nonce_group, request.nonce);
    let master = Arc::clone(&handler.master);
    later(async move {
        let table = from_proto::table(&request.table_schema)?;
        let split_keys: Vec<Bytes> = request.split_keys.iter().map(own).collect();
        let id = master.create_table(table, &split_keys, &caller).await?;
        Ok(pb::CreateTableResponse { proc_id: Some(id) })
    })
}

pub(super) fn delete(
    handler: &Handler,
    call: &Call,
    request: pb::DeleteTableRequest,
) -> Answer<pb::DeleteTableResponse> {
    let caller = caller(call, request.nonce_group, request.nonce);
    let master = Arc::clone(&handler.master);
    later(async move {
        let id = master.delete_table(&table_of(&request.table_name)?, &caller).await?;
        Ok(pb::DeleteTableResponse { proc_id: Some(id) })
    })
}

pub(super) fn truncate(
    handler: &Handler,
    call: &Call,
    request: pb::TruncateTableRequest,
) -> Answer<pb::TruncateTableResponse> {
    let caller = caller(call, request.nonce_group, request.nonce);
    let master = Arc::clone(&handler.master);
    later(async move {
        let preserve = request.preserve_splits.unwrap_or(false);
        let id = master.truncate_table(&table_of(&request.table_name)?, preserve, &caller).await?;
        Ok(pb::TruncateTableResponse { proc_id: Some(id) })
    })
}

pub(super) fn enable(
    handler: &Handler,
    call: &Call,
    request: pb::EnableTableRequest,
) -> Answer<pb::EnableTableResponse> {
    let caller = caller(call, request.nonce_group, request.nonce);
    let master = Arc::clone(&handler.master);
    later(async move {
        let submitted = master.enable_table(&table_of(&request.table_name)?, &caller).await;
        let id = procedures::in_procedure(&master, submitted, &[ErrorKind::TableNotDisabled])?;
        Ok(pb::EnableTableResponse { proc_id: Some(id) })
    })
}

pub(super) fn disable(
    handler: &Handler,
    call: &Call,
    request: pb::DisableTableRequest,
) -> Answer<pb::DisableTableResponse> {
    let caller = caller(call, request.nonce_group, request.nonce);
    let master = Arc::clone(&handler.master);
    later(async move {
        let id = master.disable_table(&table_of(&request.table_name)?, &caller).await?;
        Ok(pb::DisableTableResponse { proc_id: Some(id) })
    })
}

pub(super) fn modify(
    handler: &Handler,
    call: &Call,
    request: pb::ModifyTableRequest,
) -> Answer<pb::ModifyTableResponse> {
    let caller = caller(call, request.nonce_group, request.nonce);
    let master = Arc::clone(&handler.master);
    later(async move {
        let table = from_proto::table(&request.table_schema)?;
        let reopen = request.reopen_regions.unwrap_or(true);
        let id = master.modify_table(&table_of(&request.table_name)?, table, reopen, &caller).await?;
        Ok(pb::ModifyTableResponse { proc_id: Some(id) })
    })
}

pub(super) fn add_family(
    handler: &Handler,
    call: &Call,
    request: pb::AddColumnRequest,
) -> Answer<pb::AddColumnResponse> {
    let caller = caller(call, request.nonce_group, request.nonce);
    let master = Arc::clone(&handler.master);
    later(async move {
        let family = from_proto::family(&request.column_families)?;
        let id = master.add_family(&table_of(&request.table_name)?, family, &caller).await?;
        Ok(pb::AddColumnResponse { proc_id: Some(id) })
    })
}

pub(super) fn modify_family(
    handler: &Handler,
    call: &Call,
    request: pb::ModifyColumnRequest,
) -> Answer<pb::ModifyColumnResponse> {
    let caller = caller(call, request.nonce_group, request.nonce);
    let master = Arc::clone(&handler.master);
    later(async move {
        let family = from_proto::family(&request.column_families)?;
        let id = master.modify_family(&table_of(&request.table_name)?, family, &caller).await?;
        Ok(pb::ModifyColumnResponse { proc_id: Some(id) })
    })
}

pub(super) fn delete_family(
    handler: &Handler,
    call: &Call,
    request: pb::DeleteColumnRequest,
) -> Answer<pb::DeleteColumnResponse> {
    let caller = caller(call, request.nonce_group, request.nonce);
    let master = Arc::clone(&handler.master);
    later(async move {
        let id = master.delete_family(&table_of(&request.table_name)?, &request.column_name, &caller).await?;
        Ok(pb::DeleteColumnResponse { proc_id: Some(id) })
    })
}

pub(super) fn modify_tracker(
    handler: &Handler,
    call: &Call,
    request: pb::ModifyTableStoreFileTrackerRequest,
) -> Answer<pb::ModifyTableStoreFileTrackerResponse> {
    let caller = caller(call, request.nonce_group, request.nonce);
    let master = Arc::clone(&handler.master);
    later(async move {
        let table = table_of(&request.table_name)?;
        let id = master.modify_file_tracker(&table, None, &request.dst_sft, &caller).await?;
        Ok(pb::ModifyTableStoreFileTrackerResponse { proc_id: Some(id) })
    })
}

pub(super) fn modify_family_tracker(
    handler: &Handler,
    call: &Call,
    request: pb::ModifyColumnStoreFileTrackerRequest,
) -> Answer<pb::ModifyColumnStoreFileTrackerResponse> {
    let caller = caller(call, request.nonce_group, request.nonce);
    let master = Arc::clone(&handler.master);
    later(async move {
        let table = table_of(&request.table_name)?;
        let family = Some(own(&request.family));
        let id = master.modify_file_tracker(&table, family, &request.dst_sft, &caller).await?;
        Ok(pb::ModifyColumnStoreFileTrackerResponse { proc_id: Some(id) })
    })
}

pub(super) fn flush(handler: &Handler, call: &Call, request: pb::FlushTableRequest) -> Answer<pb::FlushTableResponse> {
    let caller = caller(call, request.nonce_group, request.nonce);
    let master = Arc::clone(&handler.master);
    later(async move {
        let families = request.column_family.iter().map(own).collect();
        let submitted = master.flush_table(&table_of(&request.table_name)?, families, &caller).await;
        let id = procedures::in_procedure(&master, submitted, &[ErrorKind::TableNotFound])?;
        Ok(pb::FlushTableResponse { proc_id: Some(id) })
    })
}
