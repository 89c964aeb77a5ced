//! Requests that change tables, namespaces and the cut of regions: each becomes a procedure, and its id the answer.

use super::{MasterHandler, caller, later, region_of, table_of};
use crate::convert;
use bytes::Bytes;
use model::RegionInfo;
use proto::methods::Method;
use proto::pb;
use rpc::{Call, Exception, Outcome};
use std::sync::Arc;

/// Submits with the master, the request and the caller at hand; answers `{proc_id}`.
macro_rules! submit {
    ($self:ident, $call:ident, $request:ty => $response:ident, |$master:ident, $req:ident, $caller:ident| $work:expr) => {{
        let $req: $request = $call.decode()?;
        let $caller = caller($call, $req.nonce_group, $req.nonce);
        let $master = Arc::clone(&$self.master);
        later(async move {
            let id: u64 = $work;
            Ok(pb::$response { proc_id: Some(id) })
        })
    }};
}

impl MasterHandler {
    /// `None` for methods that are not of this kind.
    pub(super) fn ddl(&self, call: &Call) -> std::result::Result<Option<Outcome>, Exception> {
        Ok(Some(match call.method.method {
            Method::MasterCreateTable => {
                submit!(self, call, pb::CreateTableRequest => CreateTableResponse, |master, request, caller| {
                    let table = convert::table(&request.table_schema)?;
                    let split_keys: Vec<Bytes> = request.split_keys.iter().map(own).collect();
                    master.create_table(table, &split_keys, &caller).await?
                })
            }
            Method::MasterDeleteTable => {
                submit!(self, call, pb::DeleteTableRequest => DeleteTableResponse, |master, request, caller| {
                    master.delete_table(&table_of(&request.table_name)?, &caller).await?
                })
            }
            Method::MasterTruncateTable => {
                submit!(self, call, pb::TruncateTableRequest => TruncateTableResponse, |master, request, caller| {
                    let preserve = request.preserve_splits.unwrap_or(false);
                    master.truncate_table(&table_of(&request.table_name)?, preserve, &caller).await?
                })
            }
            Method::MasterEnableTable => {
                submit!(self, call, pb::EnableTableRequest => EnableTableResponse, |master, request, caller| {
                    master.enable_table(&table_of(&request.table_name)?, &caller).await?
                })
            }
            Method::MasterDisableTable => {
                submit!(self, call, pb::DisableTableRequest => DisableTableResponse, |master, request, caller| {
                    master.disable_table(&table_of(&request.table_name)?, &caller).await?
                })
            }
            Method::MasterModifyTable => {
                submit!(self, call, pb::ModifyTableRequest => ModifyTableResponse, |master, request, caller| {
                    let table = convert::table(&request.table_schema)?;
                    let reopen = request.reopen_regions.unwrap_or(true);
                    master.modify_table(&table_of(&request.table_name)?, table, reopen, &caller).await?
                })
            }
            Method::MasterAddColumn => {
                submit!(self, call, pb::AddColumnRequest => AddColumnResponse, |master, request, caller| {
                    let family = convert::family(&request.column_families)?;
                    master.add_family(&table_of(&request.table_name)?, family, &caller).await?
                })
            }
            Method::MasterModifyColumn => {
                submit!(self, call, pb::ModifyColumnRequest => ModifyColumnResponse, |master, request, caller| {
                    let family = convert::family(&request.column_families)?;
                    master.modify_family(&table_of(&request.table_name)?, family, &caller).await?
                })
            }
            Method::MasterDeleteColumn => {
                submit!(self, call, pb::DeleteColumnRequest => DeleteColumnResponse, |master, request, caller| {
                    master.delete_family(&table_of(&request.table_name)?, &request.column_name, &caller).await?
                })
            }
            Method::MasterCreateNamespace => {
                submit!(self, call, pb::CreateNamespaceRequest => CreateNamespaceResponse, |master, request, caller| {
                    let (name, configuration) = convert::namespace(&request.namespace_descriptor)?;
                    master.create_namespace(name, configuration, &caller).await?
                })
            }
            Method::MasterModifyNamespace => {
                submit!(self, call, pb::ModifyNamespaceRequest => ModifyNamespaceResponse, |master, request, caller| {
                    let (name, configuration) = convert::namespace(&request.namespace_descriptor)?;
                    master.modify_namespace(name, configuration, &caller).await?
                })
            }
            Method::MasterDeleteNamespace => {
                submit!(self, call, pb::DeleteNamespaceRequest => DeleteNamespaceResponse, |master, request, caller| {
                    master.delete_namespace(&request.namespace_name, &caller).await?
                })
            }
            Method::MasterFlushTable => {
                submit!(self, call, pb::FlushTableRequest => FlushTableResponse, |master, request, caller| {
                    let families = request.column_family.iter().map(own).collect();
                    master.flush_table(&table_of(&request.table_name)?, families, &caller).await?
                })
            }
            Method::MasterSplitRegion => {
                submit!(self, call, pb::SplitTableRegionRequest => SplitTableRegionResponse, |master, request, caller| {
                    let info = convert::region_info(&request.region_info)?;
                    let row = request.split_row.as_ref().map(own);
                    master.split_region(info.encoded_name(), row, &caller).await?
                })
            }
            Method::MasterMergeTableRegions => {
                submit!(self, call, pb::MergeTableRegionsRequest => MergeTableRegionsResponse, |master, request, caller| {
                    let regions: Vec<RegionInfo> =
                        request.region.iter().map(|region| region_of(&master, region)).collect::<crate::Result<_>>()?;
                    let names: Vec<String> = regions.iter().map(|info| info.encoded_name().to_string()).collect();
                    master.merge_regions(&names, request.forcible.unwrap_or(false), &caller).await?
                })
            }
            _ => return Ok(None),
        }))
    }
}

/// A copy, so that what lives on does not keep the whole request alive.
fn own(bytes: &Bytes) -> Bytes {
    Bytes::copy_from_slice(bytes)
}
