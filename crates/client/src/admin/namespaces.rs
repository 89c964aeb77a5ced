//! Namespaces.

use std::collections::BTreeMap;

use model::{TableDescriptor, TableName};
use proto::methods::Method;
use proto::pb;

use super::Admin;
use crate::{Error, Result};

impl Admin {
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

    /// Gives a namespace another configuration.
    ///
    /// # Errors
    /// `NamespaceNotFoundException` and what else the master refuses.
    pub async fn modify_namespace(&self, name: &str, configuration: &BTreeMap<String, String>) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let namespace_descriptor = convert::to_proto::namespace(name, configuration);
        let request = pb::ModifyNamespaceRequest { namespace_descriptor, nonce_group, nonce };
        let reply: pb::ModifyNamespaceResponse = self.master(Method::MasterModifyNamespace, &request).await?;
        self.finish(&format!("modify namespace {name}"), reply.proc_id).await
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

    /// A namespace's configuration.
    ///
    /// # Errors
    /// `NamespaceNotFoundException`, or the master cannot be reached.
    pub async fn describe_namespace(&self, name: &str) -> Result<BTreeMap<String, String>> {
        let request = pb::GetNamespaceDescriptorRequest { namespace_name: name.to_owned() };
        let reply: pb::GetNamespaceDescriptorResponse =
            self.master(Method::MasterGetNamespaceDescriptor, &request).await?;
        Ok(convert::from_proto::namespace(&reply.namespace_descriptor).map_err(Error::malformed)?.1)
    }

    /// Names of all namespaces.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn list_namespaces(&self) -> Result<Vec<String>> {
        let reply: pb::ListNamespacesResponse =
            self.master(Method::MasterListNamespaces, &pb::ListNamespacesRequest {}).await?;
        Ok(reply.namespace_name)
    }

    /// All namespaces with their configurations.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn namespaces(&self) -> Result<BTreeMap<String, BTreeMap<String, String>>> {
        let reply: pb::ListNamespaceDescriptorsResponse =
            self.master(Method::MasterListNamespaceDescriptors, &pb::ListNamespaceDescriptorsRequest {}).await?;
        let read = |namespace| convert::from_proto::namespace(namespace).map_err(Error::malformed);
        reply.namespace_descriptor.iter().map(read).collect()
    }

    /// The tables of a namespace.
    ///
    /// # Errors
    /// `NamespaceNotFoundException`, or the master cannot be reached.
    pub async fn list_tables_of_namespace(&self, name: &str) -> Result<Vec<TableDescriptor>> {
        let request = pb::ListTableDescriptorsByNamespaceRequest { namespace_name: name.to_owned() };
        let reply: pb::ListTableDescriptorsByNamespaceResponse =
            self.master(Method::MasterListTableDescriptorsByNamespace, &request).await?;
        super::tables::descriptors(&reply.table_schema)
    }

    /// Their names.
    ///
    /// # Errors
    /// As [`Admin::list_tables_of_namespace`].
    pub async fn list_table_names_of_namespace(&self, name: &str) -> Result<Vec<TableName>> {
        let request = pb::ListTableNamesByNamespaceRequest { namespace_name: name.to_owned() };
        let reply: pb::ListTableNamesByNamespaceResponse =
            self.master(Method::MasterListTableNamesByNamespace, &request).await?;
        super::tables::names(&reply.table_name)
    }
}
