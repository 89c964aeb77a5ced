//! Tables.

use bytes::Bytes;
use model::{TableDescriptor, TableName};
use proto::methods::Method;
use proto::pb;

use super::Admin;
use crate::{Error, Result};

/// Which names are meant. Servers match Java's regular expressions; whoever has one of another kind filters here.
pub type Pattern<'a> = dyn Fn(&str) -> bool + Sync + 'a;

impl Admin {
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

    /// Changes a table's descriptor. Its regions are opened again.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn modify_table(&self, table: &TableDescriptor) -> Result<()> {
        self.modify_table_with(table, true).await
    }

    /// As [`Admin::modify_table`]; without `reopen_regions` each region learns of the change when it is opened the next time.
    ///
    /// # Errors
    /// What the master refuses: some changes need regions opened again.
    pub async fn modify_table_with(&self, table: &TableDescriptor, reopen_regions: bool) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = pb::ModifyTableRequest {
            table_name: convert::to_proto::table_name(&table.name),
            table_schema: convert::to_proto::table(table),
            nonce_group,
            nonce,
            reopen_regions: Some(reopen_regions),
        };
        let reply: pb::ModifyTableResponse = self.master(Method::MasterModifyTable, &request).await?;
        self.finish(&format!("modify table {}", table.name), reply.proc_id).await
    }

    /// How many of a table's regions have not taken over a change of its descriptor yet, and how many there are.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn alter_status(&self, name: &TableName) -> Result<(u32, u32)> {
        let request = pb::GetSchemaAlterStatusRequest { table_name: convert::to_proto::table_name(name) };
        let reply: pb::GetSchemaAlterStatusResponse = self.master(Method::MasterGetSchemaAlterStatus, &request).await?;
        Ok((reply.yet_to_update_regions(), reply.total_regions()))
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

    /// Makes an empty table with another one's descriptor, and its splits if they are to be preserved.
    ///
    /// # Errors
    /// `TableNotFoundException`, `TableExistsException` and what else the master refuses.
    pub async fn clone_table_schema(&self, from: &TableName, to: &TableName, preserve_splits: bool) -> Result<()> {
        let described = self.describe(from).await?;
        let mut table = described.ok_or_else(|| Error::TableNotFound(from.clone()))?;
        table.name = to.clone();
        let splits = match preserve_splits {
            true => {
                self.connection.table(from).start_end_keys().await?.into_iter().skip(1).map(|keys| keys.0).collect()
            }
            false => Vec::new(),
        };
        self.create_table(&table, &splits).await
    }

    /// Whether there is such a table.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn table_exists(&self, name: &TableName) -> Result<bool> {
        Ok(name.is_meta() || self.describe(name).await?.is_some())
    }

    /// What a table is: enabled, disabled, or on its way there.
    ///
    /// # Errors
    /// `TableNotFoundException`, or the master cannot be reached.
    pub async fn table_state(&self, name: &TableName) -> Result<pb::table_state::State> {
        let request = pb::GetTableStateRequest { table_name: convert::to_proto::table_name(name) };
        match self.master::<pb::GetTableStateResponse>(Method::MasterGetTableState, &request).await {
            Ok(reply) => Ok(reply.table_state.state()),
            Err(Error::Remote(remote)) if remote.class.ends_with(".TableNotFoundException") => {
                Err(Error::TableNotFound(name.clone()))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether a table is enabled.
    ///
    /// # Errors
    /// As [`Admin::table_state`].
    pub async fn is_enabled(&self, name: &TableName) -> Result<bool> {
        Ok(self.table_state(name).await? == pb::table_state::State::Enabled)
    }

    /// Whether a table is disabled.
    ///
    /// # Errors
    /// As [`Admin::table_state`].
    pub async fn is_disabled(&self, name: &TableName) -> Result<bool> {
        Ok(self.table_state(name).await? == pb::table_state::State::Disabled)
    }

    /// Whether a table is enabled and each of its regions has a server.
    ///
    /// # Errors
    /// As [`Admin::table_state`].
    pub async fn is_available(&self, name: &TableName) -> Result<bool> {
        match self.is_enabled(name).await {
            Ok(true) => {}
            Ok(false) | Err(Error::TableNotFound(_)) => return Ok(false),
            Err(error) => return Err(error),
        }
        // hbase:meta read to its end has every region; one without a server is left out, which shows as a hole.
        let keys = self.connection.table(name).start_end_keys().await?;
        let whole = keys.first().is_some_and(|(start, _)| start.is_empty())
            && keys.last().is_some_and(|(_, end)| end.is_empty())
            && keys.windows(2).all(|two| two[0].1 == two[1].0);
        Ok(whole)
    }

    /// A table's descriptor; none when there is no such table.
    ///
    /// # Errors
    /// The master cannot be reached, or what it says is not a legal table.
    pub async fn describe(&self, name: &TableName) -> Result<Option<TableDescriptor>> {
        Ok(self.describe_all(std::slice::from_ref(name)).await?.into_iter().find(|table| table.name == *name))
    }

    /// The descriptors of those of the tables that are there.
    ///
    /// # Errors
    /// As [`Admin::describe`].
    pub async fn describe_all(&self, names: &[TableName]) -> Result<Vec<TableDescriptor>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let request = pb::GetTableDescriptorsRequest {
            table_names: names.iter().map(convert::to_proto::table_name).collect(),
            include_sys_tables: Some(true),
            ..pb::GetTableDescriptorsRequest::default()
        };
        self.descriptors(&request).await
    }

    /// The descriptors of all tables but HBase's own.
    ///
    /// # Errors
    /// As [`Admin::describe`].
    pub async fn list_tables(&self) -> Result<Vec<TableDescriptor>> {
        self.list_tables_matching(None, false).await
    }

    /// The descriptors of tables whose whole names match a regular expression of Java's; HBase's own are among them if asked for.
    ///
    /// # Errors
    /// As [`Admin::describe`]; the expression is none.
    pub async fn list_tables_matching(&self, regex: Option<&str>, with_system: bool) -> Result<Vec<TableDescriptor>> {
        let request = pb::GetTableDescriptorsRequest {
            regex: regex.map(str::to_owned),
            include_sys_tables: Some(with_system),
            ..pb::GetTableDescriptorsRequest::default()
        };
        self.descriptors(&request).await
    }

    /// Names of tables whose whole names match a regular expression of Java's; HBase's own are among them if asked for.
    ///
    /// # Errors
    /// As [`Admin::list_tables_matching`].
    pub async fn list_table_names(&self, regex: Option<&str>, with_system: bool) -> Result<Vec<TableName>> {
        let request = pb::GetTableNamesRequest {
            regex: regex.map(str::to_owned),
            include_sys_tables: Some(with_system),
            ..pb::GetTableNamesRequest::default()
        };
        let reply: pb::GetTableNamesResponse = self.master(Method::MasterGetTableNames, &request).await?;
        names(&reply.table_names)
    }

    /// The tables that are enabled, or those that are not.
    ///
    /// # Errors
    /// As [`Admin::describe`].
    pub async fn list_tables_by_state(&self, is_enabled: bool) -> Result<Vec<TableDescriptor>> {
        let request = pb::ListTableDescriptorsByStateRequest { is_enabled };
        let reply: pb::ListTableDescriptorsByStateResponse =
            self.master(Method::MasterListTableDescriptorsByState, &request).await?;
        descriptors(&reply.table_schema)
    }

    /// Their names.
    ///
    /// # Errors
    /// As [`Admin::describe`].
    pub async fn list_table_names_by_state(&self, is_enabled: bool) -> Result<Vec<TableName>> {
        let request = pb::ListTableNamesByStateRequest { is_enabled };
        let reply: pb::ListTableNamesByStateResponse =
            self.master(Method::MasterListTableNamesByState, &request).await?;
        names(&reply.table_names)
    }

    async fn descriptors(&self, request: &pb::GetTableDescriptorsRequest) -> Result<Vec<TableDescriptor>> {
        let reply: pb::GetTableDescriptorsResponse = self.master(Method::MasterGetTableDescriptors, request).await?;
        descriptors(&reply.table_schema)
    }

    /// Writes a table's memstores into files and waits for it.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn flush(&self, name: &TableName) -> Result<()> {
        self.flush_families(name, &[]).await
    }

    /// The same for some families alone.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn flush_families(&self, name: &TableName, families: &[Bytes]) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = pb::FlushTableRequest {
            table_name: convert::to_proto::table_name(name),
            column_family: families.to_vec(),
            nonce_group,
            nonce,
        };
        let reply: pb::FlushTableResponse = self.master(Method::MasterFlushTable, &request).await?;
        self.finish(&format!("flush table {name}"), reply.proc_id).await
    }
}

pub(super) fn descriptors(schemas: &[pb::TableSchema]) -> Result<Vec<TableDescriptor>> {
    schemas.iter().map(|schema| convert::from_proto::table(schema).map_err(Error::malformed)).collect()
}

pub(super) fn names(names: &[pb::TableName]) -> Result<Vec<TableName>> {
    names.iter().map(|name| convert::from_proto::table_name(name).map_err(Error::malformed)).collect()
}
