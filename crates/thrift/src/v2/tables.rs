//! Administration of tables, families and namespaces.

use super::types::*;
use super::{Handler, schema};
use crate::fault::{Fault, Outcome};
use bytes::Bytes;
use client::Error;
use model::TableName;
use std::collections::BTreeMap;

fn name(from: &TTableName) -> Outcome<TableName> {
    let qualifier = String::from_utf8_lossy(&from.qualifier);
    Ok(match &from.ns {
        Some(namespace) => TableName::of(&String::from_utf8_lossy(namespace), &qualifier)?,
        None => TableName::parse(&qualifier)?,
    })
}

fn wire_name(from: &TableName) -> TTableName {
    TTableName {
        ns: Some(Bytes::copy_from_slice(from.namespace().as_bytes())),
        qualifier: Bytes::copy_from_slice(from.qualifier().as_bytes()),
    }
}

fn wire_tables(tables: &[model::TableDescriptor]) -> Vec<TTableDescriptor> {
    tables.iter().map(|table| schema::wire_table(table, wire_name(&table.name))).collect()
}

fn wire_namespace(name: String, configuration: BTreeMap<String, String>) -> TNamespaceDescriptor {
    TNamespaceDescriptor { name, configuration: (!configuration.is_empty()).then_some(configuration) }
}

impl Handler {
    pub(super) async fn get_table_descriptor(&self, table: TTableName) -> Outcome<TTableDescriptor> {
        let name = name(&table)?;
        let found = self.admin().describe(&name).await?;
        let found = found.ok_or(Error::TableNotFound(name))?;
        Ok(schema::wire_table(&found, wire_name(&found.name)))
    }

    pub(super) async fn get_table_descriptors(&self, tables: Vec<TTableName>) -> Outcome<Vec<TTableDescriptor>> {
        let names: Vec<TableName> = tables.iter().map(name).collect::<Outcome<_>>()?;
        // Java's master takes no names for all of them.
        if names.is_empty() {
            return self.get_table_descriptors_by_pattern(None, false).await;
        }
        Ok(wire_tables(&self.admin().describe_all(&names).await?))
    }

    pub(super) async fn get_table_descriptors_by_pattern(
        &self,
        regex: Option<String>,
        include_sys_tables: bool,
    ) -> Outcome<Vec<TTableDescriptor>> {
        Ok(wire_tables(&self.admin().list_tables_matching(regex.as_deref(), include_sys_tables).await?))
    }

    pub(super) async fn get_table_descriptors_by_namespace(&self, name: String) -> Outcome<Vec<TTableDescriptor>> {
        Ok(wire_tables(&self.admin().list_tables_of_namespace(&name).await?))
    }

    pub(super) async fn get_table_names_by_pattern(
        &self,
        regex: Option<String>,
        include_sys_tables: bool,
    ) -> Outcome<Vec<TTableName>> {
        let names = self.admin().list_table_names(regex.as_deref(), include_sys_tables).await?;
        Ok(names.iter().map(wire_name).collect())
    }

    pub(super) async fn get_table_names_by_namespace(&self, name: String) -> Outcome<Vec<TTableName>> {
        Ok(self.admin().list_table_names_of_namespace(&name).await?.iter().map(wire_name).collect())
    }

    pub(super) async fn table_exists(&self, table_name: Option<TTableName>) -> Outcome<bool> {
        let table = table_name.ok_or_else(|| Fault::Argument("a table's name is needed".to_owned()))?;
        Ok(self.admin().table_exists(&name(&table)?).await?)
    }

    pub(super) async fn create_table(&self, desc: TTableDescriptor, split_keys: Option<Vec<Bytes>>) -> Outcome<()> {
        let table = schema::table(&desc, name(&desc.table_name)?)?;
        Ok(self.admin().create_table(&table, &split_keys.unwrap_or_default()).await?)
    }

    pub(super) async fn modify_table(&self, desc: TTableDescriptor) -> Outcome<()> {
        let table = schema::table(&desc, name(&desc.table_name)?)?;
        Ok(self.admin().modify_table(&table).await?)
    }

    pub(super) async fn delete_table(&self, table_name: TTableName) -> Outcome<()> {
        Ok(self.admin().delete_table(&name(&table_name)?).await?)
    }

    pub(super) async fn truncate_table(&self, table_name: TTableName, preserve_splits: bool) -> Outcome<()> {
        Ok(self.admin().truncate_table(&name(&table_name)?, preserve_splits).await?)
    }

    pub(super) async fn enable_table(&self, table_name: TTableName) -> Outcome<()> {
        Ok(self.admin().enable_table(&name(&table_name)?).await?)
    }

    pub(super) async fn disable_table(&self, table_name: TTableName) -> Outcome<()> {
        Ok(self.admin().disable_table(&name(&table_name)?).await?)
    }

    pub(super) async fn is_table_enabled(&self, table_name: TTableName) -> Outcome<bool> {
        Ok(self.admin().is_enabled(&name(&table_name)?).await?)
    }

    pub(super) async fn is_table_disabled(&self, table_name: TTableName) -> Outcome<bool> {
        Ok(self.admin().is_disabled(&name(&table_name)?).await?)
    }

    pub(super) async fn is_table_available(&self, table_name: TTableName) -> Outcome<bool> {
        Ok(self.admin().is_available(&name(&table_name)?).await?)
    }

    /// Whether there is a region for each of the keys, too. Follows: `RawAsyncHBaseAdmin#isTableAvailable`.
    pub(super) async fn is_table_available_with_split(
        &self,
        table_name: TTableName,
        split_keys: Option<Vec<Bytes>>,
    ) -> Outcome<bool> {
        let name = name(&table_name)?;
        if !self.admin().is_available(&name).await? {
            return Ok(false);
        }
        let keys = self.connection.table(&name).start_end_keys().await?;
        let is_start = |key: &Bytes| keys.iter().any(|(start, _)| start == key);
        Ok(split_keys.unwrap_or_default().iter().all(is_start))
    }

    pub(super) async fn add_column_family(
        &self,
        table_name: TTableName,
        column: TColumnFamilyDescriptor,
    ) -> Outcome<()> {
        Ok(self.admin().add_family(&name(&table_name)?, &schema::family(&column)?).await?)
    }

    pub(super) async fn modify_column_family(
        &self,
        table_name: TTableName,
        column: TColumnFamilyDescriptor,
    ) -> Outcome<()> {
        Ok(self.admin().modify_family(&name(&table_name)?, &schema::family(&column)?).await?)
    }

    pub(super) async fn delete_column_family(&self, table_name: TTableName, column: Bytes) -> Outcome<()> {
        Ok(self.admin().delete_family(&name(&table_name)?, column).await?)
    }

    pub(super) async fn create_namespace(&self, namespace_desc: TNamespaceDescriptor) -> Outcome<()> {
        let TNamespaceDescriptor { name, configuration } = namespace_desc;
        Ok(self.admin().create_namespace(&name, &configuration.unwrap_or_default()).await?)
    }

    pub(super) async fn modify_namespace(&self, namespace_desc: TNamespaceDescriptor) -> Outcome<()> {
        let TNamespaceDescriptor { name, configuration } = namespace_desc;
        Ok(self.admin().modify_namespace(&name, &configuration.unwrap_or_default()).await?)
    }

    pub(super) async fn delete_namespace(&self, name: String) -> Outcome<()> {
        Ok(self.admin().delete_namespace(&name).await?)
    }

    pub(super) async fn get_namespace_descriptor(&self, name: String) -> Outcome<TNamespaceDescriptor> {
        let configuration = self.admin().describe_namespace(&name).await?;
        Ok(wire_namespace(name, configuration))
    }

    pub(super) async fn list_namespace_descriptors(&self) -> Outcome<Vec<TNamespaceDescriptor>> {
        let all = self.admin().namespaces().await?;
        let wire = |(name, configuration)| wire_namespace(name, configuration);
        Ok(all.into_iter().map(wire).collect())
    }

    pub(super) async fn list_namespaces(&self) -> Outcome<Vec<String>> {
        Ok(self.admin().list_namespaces().await?)
    }
}
