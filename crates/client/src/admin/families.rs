//! Column families of a table, and how their store files are tracked.

use bytes::Bytes;
use model::{FamilyDescriptor, TableName};
use proto::methods::Method;
use proto::pb;

use super::Admin;
use crate::Result;

impl Admin {
    /// Adds a family to a table.
    ///
    /// # Errors
    /// `InvalidFamilyOperationException` when it is there already, and what else the master refuses.
    pub async fn add_family(&self, name: &TableName, family: &FamilyDescriptor) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = pb::AddColumnRequest {
            table_name: convert::to_proto::table_name(name),
            column_families: convert::to_proto::family(family),
            nonce_group,
            nonce,
        };
        let reply: pb::AddColumnResponse = self.master(Method::MasterAddColumn, &request).await?;
        self.finish(&format!("add a family to table {name}"), reply.proc_id).await
    }

    /// Changes a family of a table.
    ///
    /// # Errors
    /// `InvalidFamilyOperationException` when it is not there, and what else the master refuses.
    pub async fn modify_family(&self, name: &TableName, family: &FamilyDescriptor) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = pb::ModifyColumnRequest {
            table_name: convert::to_proto::table_name(name),
            column_families: convert::to_proto::family(family),
            nonce_group,
            nonce,
        };
        let reply: pb::ModifyColumnResponse = self.master(Method::MasterModifyColumn, &request).await?;
        self.finish(&format!("modify a family of table {name}"), reply.proc_id).await
    }

    /// Removes a family of a table with all that is in it.
    ///
    /// # Errors
    /// As [`Admin::modify_family`].
    pub async fn delete_family(&self, name: &TableName, family: impl Into<Bytes>) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = pb::DeleteColumnRequest {
            table_name: convert::to_proto::table_name(name),
            column_name: family.into(),
            nonce_group,
            nonce,
        };
        let reply: pb::DeleteColumnResponse = self.master(Method::MasterDeleteColumn, &request).await?;
        self.finish(&format!("delete a family of table {name}"), reply.proc_id).await
    }

    /// Has a table track its store files in another way: `DEFAULT`, `FILE`, or `MIGRATION` between them.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn modify_table_store_file_tracker(&self, name: &TableName, tracker: &str) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = pb::ModifyTableStoreFileTrackerRequest {
            table_name: convert::to_proto::table_name(name),
            dst_sft: tracker.to_owned(),
            nonce_group,
            nonce,
        };
        let reply: pb::ModifyTableStoreFileTrackerResponse =
            self.master(Method::MasterModifyTableStoreFileTracker, &request).await?;
        self.finish(&format!("modify the store file tracker of table {name}"), reply.proc_id).await
    }

    /// The same for one family.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn modify_family_store_file_tracker(
        &self,
        name: &TableName,
        family: impl Into<Bytes>,
        tracker: &str,
    ) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = pb::ModifyColumnStoreFileTrackerRequest {
            table_name: convert::to_proto::table_name(name),
            family: family.into(),
            dst_sft: tracker.to_owned(),
            nonce_group,
            nonce,
        };
        let reply: pb::ModifyColumnStoreFileTrackerResponse =
            self.master(Method::MasterModifyColumnStoreFileTracker, &request).await?;
        self.finish(&format!("modify the store file tracker of a family of table {name}"), reply.proc_id).await
    }
}
