//! Snapshots. Follows: `RawAsyncHBaseAdmin#snapshot`, `#restoreSnapshot`.

use std::time::Duration;

use base::{Clock, SystemClock};
use model::TableName;
use proto::methods::Method;
use proto::pb;
use proto::pb::snapshot_description::Type;

use super::Admin;
use super::tables::Pattern;
use crate::{Error, Result};

/// The pause between two looks at a snapshot that an older master takes without a procedure.
const LOOK: Duration = Duration::from_millis(100);

/// How a snapshot is restored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoreOptions {
    /// Whether a snapshot of the table as it is now is taken first, and restored when restoring the other one fails.
    pub fail_safe: bool,
    /// Whether permissions are restored, too.
    pub restore_acl: bool,
}

impl Admin {
    /// Takes a snapshot of a table, memstores flushed first if it is enabled, and waits until it is there.
    ///
    /// # Errors
    /// `SnapshotExistsException`, `SnapshotCreationException` and what else the master refuses.
    pub async fn snapshot(&self, snapshot: &str, table: &TableName) -> Result<()> {
        let snapshot = pb::SnapshotDescription {
            name: snapshot.to_owned(),
            table: Some(table.to_string()),
            r#type: Some(Type::Flush.into()),
            ..pb::SnapshotDescription::default()
        };
        self.take_snapshot(snapshot).await
    }

    /// As [`Admin::snapshot`], with everything said: skipping the flush, a time to live, an owner.
    ///
    /// # Errors
    /// As [`Admin::snapshot`].
    pub async fn take_snapshot(&self, snapshot: pb::SnapshotDescription) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let name = snapshot.name.clone();
        let request = pb::SnapshotRequest { snapshot: snapshot.clone(), nonce_group, nonce };
        let reply: pb::SnapshotResponse = self.master(Method::MasterSnapshot, &request).await?;
        if let Some(proc_id) = reply.proc_id {
            return self.finish(&format!("take snapshot {name}"), u64::try_from(proc_id).ok()).await;
        }
        let at_most = Duration::from_millis(u64::try_from(reply.expected_timeout).unwrap_or(0)).max(LOOK);
        let done = async {
            while !self.is_snapshot_finished(&snapshot).await? {
                tokio::time::sleep(LOOK).await;
            }
            Ok(())
        };
        tokio::time::timeout(at_most, done).await.unwrap_or_else(|_| {
            let class = "org.apache.hadoop.hbase.snapshot.SnapshotCreationException".to_owned();
            let why = format!("not done within the {} ms that the master expected", at_most.as_millis());
            Err(Error::Procedure { what: format!("take snapshot {name}"), why, class })
        })
    }

    /// Whether a snapshot has been taken.
    ///
    /// # Errors
    /// `UnknownSnapshotException` when it is neither there nor being taken; why it could not be taken.
    pub async fn is_snapshot_finished(&self, snapshot: &pb::SnapshotDescription) -> Result<bool> {
        let request = pb::IsSnapshotDoneRequest { snapshot: Some(snapshot.clone()) };
        let reply: pb::IsSnapshotDoneResponse = self.master(Method::MasterIsSnapshotDone, &request).await?;
        Ok(reply.done())
    }

    /// All snapshots.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn list_snapshots(&self) -> Result<Vec<pb::SnapshotDescription>> {
        let reply: pb::GetCompletedSnapshotsResponse =
            self.master(Method::MasterGetCompletedSnapshots, &pb::GetCompletedSnapshotsRequest {}).await?;
        Ok(reply.snapshots)
    }

    /// Snapshots whose names, and whose tables' names, the patterns allow.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn list_snapshots_of(
        &self,
        table: &Pattern<'_>,
        snapshot: &Pattern<'_>,
    ) -> Result<Vec<pb::SnapshotDescription>> {
        let all = self.list_snapshots().await?;
        Ok(all.into_iter().filter(|found| snapshot(&found.name) && table(found.table())).collect())
    }

    /// Deletes a snapshot.
    ///
    /// # Errors
    /// `SnapshotDoesNotExistException` and what else the master refuses.
    pub async fn delete_snapshot(&self, snapshot: &str) -> Result<()> {
        let request = pb::DeleteSnapshotRequest { snapshot: named(snapshot) };
        self.master::<pb::DeleteSnapshotResponse>(Method::MasterDeleteSnapshot, &request).await.map(|_| ())
    }

    /// Deletes the snapshots whose names, and whose tables' names, the patterns allow; how many.
    ///
    /// # Errors
    /// The first that could not be deleted; those before it are.
    pub async fn delete_snapshots(&self, table: &Pattern<'_>, snapshot: &Pattern<'_>) -> Result<usize> {
        let doomed = self.list_snapshots_of(table, snapshot).await?;
        for snapshot in &doomed {
            self.delete_snapshot(&snapshot.name).await?;
        }
        Ok(doomed.len())
    }

    /// Makes a table out of a snapshot.
    ///
    /// # Errors
    /// `SnapshotDoesNotExistException`, `TableExistsException` and what else the master refuses.
    pub async fn clone_snapshot(&self, snapshot: &str, table: &TableName) -> Result<()> {
        self.clone_snapshot_with(snapshot, table, false, None).await
    }

    /// As [`Admin::clone_snapshot`], with permissions if asked for, and another store file tracker.
    ///
    /// # Errors
    /// As [`Admin::clone_snapshot`].
    pub async fn clone_snapshot_with(
        &self,
        snapshot: &str,
        table: &TableName,
        restore_acl: bool,
        store_file_tracker: Option<&str>,
    ) -> Result<()> {
        if self.table_exists(table).await? {
            let class = "org.apache.hadoop.hbase.TableExistsException".to_owned();
            return Err(Error::Procedure { what: format!("clone snapshot {snapshot}"), why: table.to_string(), class });
        }
        self.restore_or_clone(snapshot, table, restore_acl, store_file_tracker).await
    }

    /// Gives a disabled table the content that it had when a snapshot was taken; makes it where it is gone.
    ///
    /// # Errors
    /// `SnapshotDoesNotExistException`, `TableNotDisabledException` and what else the master refuses. With `fail_safe` the table is then as
    /// it was.
    pub async fn restore_snapshot(&self, snapshot: &str, options: RestoreOptions) -> Result<()> {
        let found = self.list_snapshots().await?.into_iter().find(|found| found.name == snapshot);
        let table =
            found.as_ref().map(|found| TableName::parse(found.table()).map_err(Error::malformed)).transpose()?;
        let Some(table) = table else {
            let class = "org.apache.hadoop.hbase.snapshot.RestoreSnapshotException".to_owned();
            let why = format!("Unable to find the table name for snapshot={snapshot}");
            return Err(Error::Procedure { what: format!("restore snapshot {snapshot}"), why, class });
        };
        if !self.table_exists(&table).await? {
            return self.restore_or_clone(snapshot, &table, options.restore_acl, None).await;
        }
        if self.is_enabled(&table).await? {
            let class = "org.apache.hadoop.hbase.TableNotDisabledException".to_owned();
            return Err(Error::Procedure {
                what: format!("restore snapshot {snapshot}"),
                why: table.to_string(),
                class,
            });
        }
        if !options.fail_safe {
            return self.restore_or_clone(snapshot, &table, options.restore_acl, None).await;
        }
        let now = SystemClock::new().now_ms();
        // Follows: `RawAsyncHBaseAdmin#restoreSnapshot`: a table's name has a ':' where no snapshot's may.
        let pattern = &self.connection.options().fail_safe_snapshot_name;
        let safe = pattern
            .replace("{snapshot.name}", snapshot)
            .replace("{table.name}", &table.to_string().replace(':', "."))
            .replace("{restore.timestamp}", &now.0.to_string());
        self.snapshot(&safe, &table).await?;
        let restored = self.restore_or_clone(snapshot, &table, options.restore_acl, None).await;
        if let Err(failed) = restored {
            self.restore_or_clone(&safe, &table, options.restore_acl, None).await?;
            self.delete_snapshot(&safe).await?;
            return Err(failed);
        }
        self.delete_snapshot(&safe).await
    }

    async fn restore_or_clone(
        &self,
        snapshot: &str,
        table: &TableName,
        restore_acl: bool,
        store_file_tracker: Option<&str>,
    ) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = pb::RestoreSnapshotRequest {
            snapshot: pb::SnapshotDescription { table: Some(table.to_string()), ..named(snapshot) },
            nonce_group,
            nonce,
            restore_acl: Some(restore_acl),
            custom_sft: store_file_tracker.map(str::to_owned),
        };
        let reply: pb::RestoreSnapshotResponse = self.master(Method::MasterRestoreSnapshot, &request).await?;
        self.finish(&format!("restore snapshot {snapshot} as {table}"), Some(reply.proc_id)).await?;
        self.connection.cluster.cache(table).forget_all();
        Ok(())
    }
}

fn named(snapshot: &str) -> pb::SnapshotDescription {
    pb::SnapshotDescription { name: snapshot.to_owned(), ..pb::SnapshotDescription::default() }
}
