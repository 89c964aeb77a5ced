//! Administration: what the master does, and work on regions at their servers. Follows: `RawAsyncHBaseAdmin`,
//! `ProcedureFuture`.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use model::{ServerName, TableDescriptor, TableName};
use proto::methods::Method;
use proto::{Message, pb};

use crate::channel::{Reply, Request};
use crate::locator::{Located, Side};
use crate::{Connection, Error, RegionLocation, Result};

/// The first pause between two looks at a procedure.
const FIRST_LOOK: Duration = Duration::from_millis(2);
/// The longest.
const LONGEST_LOOK: Duration = Duration::from_millis(250);

/// Administration of a cluster. What changes a table waits until the change is made.
#[derive(Clone)]
pub struct Admin {
    connection: Connection,
}

impl Admin {
    pub(crate) fn new(connection: Connection) -> Admin {
        Admin { connection }
    }

    /// Calls the active master, again where that may help.
    async fn master<R: Message + Default>(&self, method: Method, message: &impl Message) -> Result<R> {
        let cluster = &self.connection.cluster;
        let mut retry = cluster.retry(cluster.manner.writing());
        loop {
            let error = match self.try_master(method, message).await {
                Ok(reply) => return reply.decode(),
                Err(e) => e,
            };
            if error.may_pass() {
                *cluster.master.lock() = None;
            }
            retry.pause(error).await?;
        }
    }

    async fn try_master(&self, method: Method, message: &impl Message) -> Result<Reply> {
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
        master.master().await?.call(Request::new(method, message)).await
    }

    /// Waits until a procedure of the master has ended.
    async fn finish(&self, what: &str, proc_id: Option<u64>) -> Result<()> {
        use pb::get_procedure_result_response::State;
        let Some(proc_id) = proc_id else { return Ok(()) };
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
                return Ok(());
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 3 / 2).min(LONGEST_LOOK);
        }
    }

    fn nonce(&self) -> (Option<u64>, Option<u64>) {
        let nonce = self.connection.cluster.nonce();
        (Some(nonce.group), Some(nonce.number))
    }

    /// Makes a table, split at `splits`, and waits until it is there.
    ///
    /// # Errors
    /// `TableExistsException` and what else the master refuses.
    pub async fn create_table(&self, table: &TableDescriptor, splits: &[Bytes]) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = pb::CreateTableRequest {
            table_schema: convert::to_proto::table(table),
            split_keys: splits.to_vec(),
            nonce_group,
            nonce,
        };
        let reply: pb::CreateTableResponse = self.master(Method::MasterCreateTable, &request).await?;
        self.finish(&format!("create table {}", table.name), reply.proc_id).await
    }

    /// Changes a table's descriptor.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn modify_table(&self, table: &TableDescriptor) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = pb::ModifyTableRequest {
            table_name: convert::to_proto::table_name(&table.name),
            table_schema: convert::to_proto::table(table),
            nonce_group,
            nonce,
            ..pb::ModifyTableRequest::default()
        };
        let reply: pb::ModifyTableResponse = self.master(Method::MasterModifyTable, &request).await?;
        self.finish(&format!("modify table {}", table.name), reply.proc_id).await
    }

    /// Opens a disabled table.
    ///
    /// # Errors
    /// `TableNotDisabledException` and what else the master refuses.
    pub async fn enable_table(&self, name: &TableName) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = pb::EnableTableRequest { table_name: convert::to_proto::table_name(name), nonce_group, nonce };
        let reply: pb::EnableTableResponse = self.master(Method::MasterEnableTable, &request).await?;
        self.finish(&format!("enable table {name}"), reply.proc_id).await
    }

    /// Closes an enabled table.
    ///
    /// # Errors
    /// `TableNotEnabledException` and what else the master refuses.
    pub async fn disable_table(&self, name: &TableName) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = pb::DisableTableRequest { table_name: convert::to_proto::table_name(name), nonce_group, nonce };
        let reply: pb::DisableTableResponse = self.master(Method::MasterDisableTable, &request).await?;
        self.finish(&format!("disable table {name}"), reply.proc_id).await
    }

    /// Removes a disabled table.
    ///
    /// # Errors
    /// `TableNotDisabledException` and what else the master refuses.
    pub async fn delete_table(&self, name: &TableName) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = pb::DeleteTableRequest { table_name: convert::to_proto::table_name(name), nonce_group, nonce };
        let reply: pb::DeleteTableResponse = self.master(Method::MasterDeleteTable, &request).await?;
        self.finish(&format!("delete table {name}"), reply.proc_id).await?;
        self.connection.cluster.cache(name).forget_all();
        Ok(())
    }

    /// Empties a disabled table; it is enabled afterwards.
    ///
    /// # Errors
    /// `TableNotDisabledException` and what else the master refuses.
    pub async fn truncate_table(&self, name: &TableName, preserve_splits: bool) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = pb::TruncateTableRequest {
            table_name: convert::to_proto::table_name(name),
            preserve_splits: Some(preserve_splits),
            nonce_group,
            nonce,
        };
        let reply: pb::TruncateTableResponse = self.master(Method::MasterTruncateTable, &request).await?;
        self.finish(&format!("truncate table {name}"), reply.proc_id).await?;
        self.connection.cluster.cache(name).forget_all();
        Ok(())
    }

    /// Whether there is such a table.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn table_exists(&self, name: &TableName) -> Result<bool> {
        Ok(self.describe(name).await?.is_some())
    }

    /// Whether a table is enabled.
    ///
    /// # Errors
    /// `TableNotFoundException`, or the master cannot be reached.
    pub async fn is_enabled(&self, name: &TableName) -> Result<bool> {
        let request = pb::GetTableStateRequest { table_name: convert::to_proto::table_name(name) };
        let reply: pb::GetTableStateResponse = self.master(Method::MasterGetTableState, &request).await?;
        Ok(reply.table_state.state() == pb::table_state::State::Enabled)
    }

    /// A table's descriptor; none when there is no such table.
    ///
    /// # Errors
    /// The master cannot be reached, or what it says is not a legal table.
    pub async fn describe(&self, name: &TableName) -> Result<Option<TableDescriptor>> {
        let request = pb::GetTableDescriptorsRequest {
            table_names: vec![convert::to_proto::table_name(name)],
            include_sys_tables: Some(true),
            ..pb::GetTableDescriptorsRequest::default()
        };
        Ok(self.descriptors(&request).await?.into_iter().find(|table| table.name == *name))
    }

    /// The descriptors of all tables but HBase's own.
    ///
    /// # Errors
    /// As [`Admin::describe`].
    pub async fn list_tables(&self) -> Result<Vec<TableDescriptor>> {
        let request = pb::GetTableDescriptorsRequest {
            include_sys_tables: Some(false),
            ..pb::GetTableDescriptorsRequest::default()
        };
        self.descriptors(&request).await
    }

    async fn descriptors(&self, request: &pb::GetTableDescriptorsRequest) -> Result<Vec<TableDescriptor>> {
        let reply: pb::GetTableDescriptorsResponse = self.master(Method::MasterGetTableDescriptors, request).await?;
        reply.table_schema.iter().map(|schema| convert::from_proto::table(schema).map_err(Error::malformed)).collect()
    }

    /// The table's regions in order.
    ///
    /// # Errors
    /// As [`crate::Table::regions`].
    pub async fn regions(&self, name: &TableName) -> Result<Vec<RegionLocation>> {
        self.connection.table(name).regions().await
    }

    /// Writes a table's memstores into files and waits for it.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn flush(&self, name: &TableName) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = pb::FlushTableRequest {
            table_name: convert::to_proto::table_name(name),
            nonce_group,
            nonce,
            ..pb::FlushTableRequest::default()
        };
        let reply: pb::FlushTableResponse = self.master(Method::MasterFlushTable, &request).await?;
        self.finish(&format!("flush table {name}"), reply.proc_id).await
    }

    /// Asks for a compaction of a table and does not wait for it.
    ///
    /// # Errors
    /// A region's server refuses or cannot be reached.
    pub async fn compact(&self, name: &TableName) -> Result<()> {
        self.ask_compaction(name, false).await
    }

    /// Asks for a major compaction of a table and does not wait for it.
    ///
    /// # Errors
    /// A region's server refuses or cannot be reached.
    pub async fn major_compact(&self, name: &TableName) -> Result<()> {
        self.ask_compaction(name, true).await
    }

    async fn ask_compaction(&self, name: &TableName, major: bool) -> Result<()> {
        for location in self.regions(name).await? {
            let request = pb::CompactRegionRequest {
                region: convert::to_proto::region_specifier(&location.region),
                major: Some(major),
                family: None,
            };
            self.region_call(name, &location, Method::AdminCompactRegion, &request).await?;
        }
        Ok(())
    }

    /// Whether a region of the table is being compacted or waits for it.
    ///
    /// # Errors
    /// A region's server refuses or cannot be reached.
    pub async fn is_compacting(&self, name: &TableName) -> Result<bool> {
        use pb::get_region_info_response::CompactionState;
        for location in self.regions(name).await? {
            let info = self.region_info(name, &location, true, false).await?;
            if info.compaction_state() != CompactionState::None {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn region_info(
        &self,
        name: &TableName,
        location: &RegionLocation,
        compaction_state: bool,
        best_split_row: bool,
    ) -> Result<pb::GetRegionInfoResponse> {
        let request = pb::GetRegionInfoRequest {
            region: convert::to_proto::region_specifier(&location.region),
            compaction_state: Some(compaction_state),
            best_split_row: Some(best_split_row),
        };
        self.region_call(name, location, Method::AdminGetRegionInfo, &request).await?.decode()
    }

    async fn region_call(
        &self,
        name: &TableName,
        location: &RegionLocation,
        method: Method,
        message: &impl Message,
    ) -> Result<Reply> {
        let cluster = &self.connection.cluster;
        let cache = cluster.cache(name);
        let mut retry = cluster.retry(cluster.manner.writing());
        loop {
            let located = cluster.locate(&cache, &location.region.start_key, Side::Current).await;
            let error = match located {
                Ok(located) => match admin_call(&located, method, message).await {
                    Ok(reply) => return Ok(reply),
                    Err(e) => {
                        cluster.learn(&cache, &located, &e);
                        e
                    }
                },
                Err(e) => e,
            };
            retry.pause(error).await?;
        }
    }

    /// Splits the table's regions (those that can be split), or the one that holds `row` at that row.
    ///
    /// # Errors
    /// The master refuses.
    pub async fn split(&self, name: &TableName, row: Option<&[u8]>) -> Result<()> {
        for location in self.regions(name).await? {
            let at = match row {
                Some(row) if location.region.contains(row) => Bytes::copy_from_slice(row),
                Some(_) => continue,
                None => match self.region_info(name, &location, false, true).await?.best_split_row {
                    Some(row) if !row.is_empty() => row,
                    _ => continue,
                },
            };
            let (nonce_group, nonce) = self.nonce();
            let request = pb::SplitTableRegionRequest {
                region_info: convert::to_proto::region_info(&location.region),
                split_row: Some(at),
                nonce_group,
                nonce,
            };
            let reply: pb::SplitTableRegionResponse = self.master(Method::MasterSplitRegion, &request).await?;
            self.finish(&format!("split {}", location.region.name_string()), reply.proc_id).await?;
        }
        self.connection.cluster.cache(name).forget_all();
        Ok(())
    }

    /// The cluster's status: servers, their load, regions in transition.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn cluster_status(&self) -> Result<pb::ClusterStatus> {
        let request = pb::GetClusterStatusRequest::default();
        let reply: pb::GetClusterStatusResponse = self.master(Method::MasterGetClusterStatus, &request).await?;
        Ok(reply.cluster_status)
    }

    /// The region servers that are alive.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn servers(&self) -> Result<Vec<ServerName>> {
        let status = self.cluster_status().await?;
        let names = status.live_servers.iter().map(|live| &live.server);
        names.map(|name| convert::from_proto::server_name(name).map_err(Error::malformed)).collect()
    }

    /// Makes a namespace.
    ///
    /// # Errors
    /// `NamespaceExistException` and what else the master refuses.
    pub async fn create_namespace(&self, name: &str, configuration: &BTreeMap<String, String>) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let namespace_descriptor = convert::to_proto::namespace(name, configuration);
        let request = pb::CreateNamespaceRequest { namespace_descriptor, nonce_group, nonce };
        let reply: pb::CreateNamespaceResponse = self.master(Method::MasterCreateNamespace, &request).await?;
        self.finish(&format!("create namespace {name}"), reply.proc_id).await
    }

    /// Removes an empty namespace.
    ///
    /// # Errors
    /// `NamespaceNotFoundException` and what else the master refuses.
    pub async fn delete_namespace(&self, name: &str) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = pb::DeleteNamespaceRequest { namespace_name: name.to_owned(), nonce_group, nonce };
        let reply: pb::DeleteNamespaceResponse = self.master(Method::MasterDeleteNamespace, &request).await?;
        self.finish(&format!("delete namespace {name}"), reply.proc_id).await
    }

    /// Names of all namespaces.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn list_namespaces(&self) -> Result<Vec<String>> {
        let request = pb::ListNamespaceDescriptorsRequest::default();
        let reply: pb::ListNamespaceDescriptorsResponse =
            self.master(Method::MasterListNamespaceDescriptors, &request).await?;
        let text = |name: &Bytes| String::from_utf8(name.to_vec()).map_err(Error::malformed);
        reply.namespace_descriptor.iter().map(|namespace| text(&namespace.name)).collect()
    }
}

async fn admin_call(located: &Located, method: Method, message: &impl Message) -> Result<Reply> {
    located.server.admin().await?.call(Request::new(method, message)).await
}
