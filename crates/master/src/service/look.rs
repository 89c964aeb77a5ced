//! Requests that only look: tables, namespaces, procedures, switches.

use super::{MasterHandler, bytes_of, pattern, ready, region_of, table_of};
use crate::cluster::{RegionState, TableState};
use crate::locks::{Mode, Resource};
use crate::{ErrorKind, MasterError, Result, convert};
use model::{TableDescriptor, TableName};
use proto::methods::Method;
use proto::pb;
use proto::pb::get_procedure_result_response::State as ResultState;
use rpc::{Call, Exception, Outcome};
use std::sync::Arc;

type Descriptors = Vec<(Arc<TableDescriptor>, TableState)>;

impl MasterHandler {
    /// Tables by namespace, pattern and list of names. Follows: `HMaster#getTableDescriptors`.
    fn list(
        &self,
        namespace: Option<&str>,
        regex: Option<&str>,
        names: &[pb::TableName],
        system_too: bool,
    ) -> Result<Descriptors> {
        let namespace = namespace.filter(|name| !name.is_empty());
        if let (Some(name), true) = (namespace, names.is_empty()) {
            self.master.namespace_exists(name)?;
        }
        let regex = regex.map(pattern).transpose()?;
        let names: Vec<TableName> = names.iter().map(table_of).collect::<Result<_>>()?;
        let wanted = |table: &TableDescriptor| {
            let name = &table.name;
            let listed = if names.is_empty() {
                namespace.is_none_or(|ns| name.namespace() == ns) && (system_too || !name.is_system())
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
        let cluster = self.master.cluster();
        let tables = cluster.tables().filter(|(table, _)| wanted(table));
        Ok(tables.map(|(table, state)| (Arc::clone(table), state)).collect())
    }

    fn procedure_result(&self, id: u64) -> pb::GetProcedureResultResponse {
        let Some(known) = self.master.procedures().get(id) else {
            return pb::GetProcedureResultResponse { state: ResultState::NotFound as i32, ..Default::default() };
        };
        let ms = |time: base::TimestampMs| Some(u64::try_from(time.0).unwrap_or(0));
        let (state, result, exception) = match known.outcome {
            None => (ResultState::Running, None, None),
            Some(Ok(result)) => (ResultState::Finished, result, None),
            Some(Err(error)) => (ResultState::Finished, None, Some(error.to_foreign())),
        };
        pb::GetProcedureResultResponse {
            state: state as i32,
            submitted_time: ms(known.submitted),
            last_update: ms(known.updated),
            result,
            exception,
        }
    }

    fn locks(&self) -> pb::GetLocksResponse {
        let lock = self.master.locks.held().into_iter().map(|(resource, mode)| {
            let (resource_type, name) = match resource {
                Resource::Namespace(name) => (pb::LockedResourceType::Namespace, name),
                Resource::Table(table) => (pb::LockedResourceType::Table, table.to_string()),
                Resource::Region(name) => (pb::LockedResourceType::Region, name.to_string()),
            };
            let lock_type = match mode {
                Mode::Shared => pb::LockType::Shared,
                Mode::Exclusive => pb::LockType::Exclusive,
            };
            pb::LockedResource {
                resource_type: resource_type as i32,
                resource_name: Some(name),
                lock_type: lock_type as i32,
                shared_lock_count: Some(i32::from(mode == Mode::Shared)),
                ..Default::default()
            }
        });
        pb::GetLocksResponse { lock: lock.collect() }
    }

    fn oldest_major_compaction(&self, wanted: impl Fn(&model::status::RegionLoad) -> bool) -> i64 {
        let loads = self.master.host.region_loads();
        let oldest = loads.iter().filter(|load| wanted(load)).map(|load| load.last_major_compaction_ms).min();
        i64::try_from(oldest.unwrap_or(0)).unwrap_or(i64::MAX)
    }

    /// `None` for methods that are not of this kind.
    pub(super) fn look(&self, call: &Call) -> std::result::Result<Option<Outcome>, Exception> {
        let master = &self.master;
        let switches = &master.switches;
        let schema = |(table, _): &(Arc<TableDescriptor>, TableState)| convert::table_message(table);
        let name = |(table, _): &(Arc<TableDescriptor>, TableState)| convert::table_name_message(&table.name);
        Ok(Some(match call.method.method {
            Method::MasterIsMasterRunning => {
                ready(Ok(pb::IsMasterRunningResponse { is_master_running: !master.is_stopping() }))
            }
            Method::MasterGetTableDescriptors => {
                let request: pb::GetTableDescriptorsRequest = call.decode()?;
                ready(
                    self.list(
                        request.namespace.as_deref(),
                        request.regex.as_deref(),
                        &request.table_names,
                        request.include_sys_tables.unwrap_or(false),
                    )
                    .map(|tables| pb::GetTableDescriptorsResponse {
                        table_schema: tables.iter().map(schema).collect(),
                    }),
                )
            }
            Method::MasterGetTableNames => {
                let request: pb::GetTableNamesRequest = call.decode()?;
                let system_too = request.include_sys_tables.unwrap_or(false);
                let found = self.list(request.namespace.as_deref(), request.regex.as_deref(), &[], system_too);
                ready(found.map(|tables| pb::GetTableNamesResponse { table_names: tables.iter().map(name).collect() }))
            }
            Method::MasterListTableDescriptorsByNamespace => {
                let request: pb::ListTableDescriptorsByNamespaceRequest = call.decode()?;
                let found = self.must_be_namespace(&request.namespace_name);
                let found = found.and_then(|()| self.list(Some(&request.namespace_name), None, &[], true));
                ready(found.map(|tables| pb::ListTableDescriptorsByNamespaceResponse {
                    table_schema: tables.iter().map(schema).collect(),
                }))
            }
            Method::MasterListTableNamesByNamespace => {
                let request: pb::ListTableNamesByNamespaceRequest = call.decode()?;
                let found = self.must_be_namespace(&request.namespace_name);
                let found = found.and_then(|()| self.list(Some(&request.namespace_name), None, &[], true));
                ready(found.map(|tables| pb::ListTableNamesByNamespaceResponse {
                    table_name: tables.iter().map(name).collect(),
                }))
            }
            Method::MasterListTableDescriptorsByState => {
                let request: pb::ListTableDescriptorsByStateRequest = call.decode()?;
                ready(self.list_by_state(request.is_enabled).map(|tables| pb::ListTableDescriptorsByStateResponse {
                    table_schema: tables.iter().map(schema).collect(),
                }))
            }
            Method::MasterListTableNamesByState => {
                let request: pb::ListTableNamesByStateRequest = call.decode()?;
                ready(
                    self.list_by_state(request.is_enabled).map(|tables| pb::ListTableNamesByStateResponse {
                        table_names: tables.iter().map(name).collect(),
                    }),
                )
            }
            Method::MasterGetTableState => {
                let request: pb::GetTableStateRequest = call.decode()?;
                ready(table_of(&request.table_name).and_then(|table| {
                    let state = master.cluster().state(&table).ok_or_else(|| {
                        MasterError::new(ErrorKind::TableNotFound, format!("No state found for {table}"))
                    })?;
                    Ok(pb::GetTableStateResponse { table_state: pb::TableState { state: state as i32 } })
                }))
            }
            Method::MasterGetSchemaAlterStatus => {
                let request: pb::GetSchemaAlterStatusRequest = call.decode()?;
                ready(table_of(&request.table_name).map(|table| {
                    let cluster = master.cluster();
                    let live: Vec<_> = cluster.regions_of(&table).filter(|node| node.is_live()).collect();
                    let moving =
                        |state| matches!(state, RegionState::Opening | RegionState::Closing | RegionState::Offline);
                    let count = |n: usize| Some(u32::try_from(n).unwrap_or(u32::MAX));
                    pb::GetSchemaAlterStatusResponse {
                        yet_to_update_regions: count(live.iter().filter(|node| moving(node.state)).count()),
                        total_regions: count(live.len()),
                    }
                }))
            }
            Method::MasterListNamespaceDescriptors => {
                let cluster = master.cluster();
                let all = cluster.namespaces().map(|(name, pairs)| convert::namespace_message(name, pairs));
                ready(Ok(pb::ListNamespaceDescriptorsResponse { namespace_descriptor: all.collect() }))
            }
            Method::MasterListNamespaces => {
                let names = master.cluster().namespaces().map(|(name, _)| name.to_owned()).collect();
                ready(Ok(pb::ListNamespacesResponse { namespace_name: names }))
            }
            Method::MasterGetNamespaceDescriptor => {
                let request: pb::GetNamespaceDescriptorRequest = call.decode()?;
                let found = master.namespace_exists(&request.namespace_name);
                ready(found.map(|pairs| pb::GetNamespaceDescriptorResponse {
                    namespace_descriptor: convert::namespace_message(&request.namespace_name, &pairs),
                }))
            }
            Method::MasterGetProcedureResult => {
                let request: pb::GetProcedureResultRequest = call.decode()?;
                ready(Ok(self.procedure_result(request.proc_id)))
            }
            Method::MasterGetProcedures => {
                let records = master.procedures().records();
                ready(Ok(pb::GetProceduresResponse {
                    procedure: records.iter().map(|record| record.to_message()).collect(),
                }))
            }
            Method::MasterGetLocks => ready(Ok(self.locks())),
            Method::MasterGetClusterStatus => {
                let request: pb::GetClusterStatusRequest = call.decode()?;
                ready(Ok(pb::GetClusterStatusResponse { cluster_status: self.cluster_status(&request.options) }))
            }
            Method::MasterIsBalancerEnabled => {
                ready(Ok(pb::IsBalancerEnabledResponse { enabled: switches.balancer() }))
            }
            Method::MasterIsNormalizerEnabled => {
                ready(Ok(pb::IsNormalizerEnabledResponse { enabled: switches.normalizer() }))
            }
            Method::MasterIsCatalogJanitorEnabled => {
                ready(Ok(pb::IsCatalogJanitorEnabledResponse { value: switches.janitor() }))
            }
            Method::MasterIsCleanerChoreEnabled => {
                ready(Ok(pb::IsCleanerChoreEnabledResponse { value: switches.cleaner() }))
            }
            Method::MasterIsSnapshotCleanupEnabled => {
                ready(Ok(pb::IsSnapshotCleanupEnabledResponse { enabled: switches.snapshot_cleanup() }))
            }
            Method::MasterIsRpcThrottleEnabled => {
                ready(Ok(pb::IsRpcThrottleEnabledResponse { rpc_throttle_enabled: switches.rpc_throttle() }))
            }
            Method::MasterIsSplitOrMergeEnabled => {
                let request: pb::IsSplitOrMergeEnabledRequest = call.decode()?;
                let enabled = match pb::MasterSwitchType::try_from(request.switch_type) {
                    Ok(pb::MasterSwitchType::Merge) => switches.merge(),
                    _ => switches.split(),
                };
                ready(Ok(pb::IsSplitOrMergeEnabledResponse { enabled }))
            }
            Method::MasterIsMasterInMaintenanceMode => {
                ready(Ok(pb::IsInMaintenanceModeResponse { in_maintenance_mode: false }))
            }
            Method::MasterGetSecurityCapabilities => {
                let simple = pb::security_capabilities_response::Capability::SimpleAuthentication;
                ready(Ok(pb::SecurityCapabilitiesResponse { capabilities: vec![simple as i32] }))
            }
            Method::MasterListDecommissionedRegionServers => {
                ready(Ok(pb::ListDecommissionedRegionServersResponse::default()))
            }
            // None of these can have been made here, so there are none.
            Method::MasterListReplicationPeers => ready(Ok(pb::ListReplicationPeersResponse::default())),
            Method::MasterGetReplicationPeerModificationProcedures => {
                ready(Ok(pb::GetReplicationPeerModificationProceduresResponse::default()))
            }
            Method::MasterGetQuotaStates => ready(Ok(pb::GetQuotaStatesResponse::default())),
            Method::MasterGetSpaceQuotaRegionSizes => ready(Ok(pb::GetSpaceQuotaRegionSizesResponse::default())),
            Method::MasterGetLastMajorCompactionTimestamp => {
                let request: pb::MajorCompactionTimestampRequest = call.decode()?;
                ready(table_of(&request.table_name).map(|table| {
                    let prefix = bytes_of(&format!("{table},"));
                    let compaction_timestamp = self.oldest_major_compaction(|load| load.name.starts_with(&prefix));
                    pb::MajorCompactionTimestampResponse { compaction_timestamp }
                }))
            }
            Method::MasterGetLastMajorCompactionTimestampForRegion => {
                let request: pb::MajorCompactionTimestampForRegionRequest = call.decode()?;
                ready(region_of(master, &request.region).map(|info| {
                    let same = |load: &model::status::RegionLoad| load.encoded_name == *info.encoded_name();
                    pb::MajorCompactionTimestampResponse { compaction_timestamp: self.oldest_major_compaction(same) }
                }))
            }
            _ => return Ok(None),
        }))
    }

    fn must_be_namespace(&self, name: &str) -> Result<()> {
        self.master.namespace_exists(name).map(|_| ())
    }

    fn list_by_state(&self, enabled: bool) -> Result<Descriptors> {
        let wanted = if enabled { TableState::Enabled } else { TableState::Disabled };
        let mut tables = self.list(None, None, &[], false)?;
        tables.retain(|(_, state)| *state == wanted);
        Ok(tables)
    }
}
