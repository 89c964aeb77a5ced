//! The snapshot that is taken before a table is deleted or truncated or loses a family
//! (`hbase.snapshot.before.destructive.action.enabled`), as a child of the procedure that does it.
//!
//! Always true: the snapshot is whole before anything is deleted, and goes again only if nothing was. For that, the procedure forgets
//! the name ([`Recovery::keep`]) before it deletes the first thing: what is undone afterwards finds none. Follows:
//! `RecoverySnapshotUtils`.

use super::take;
use crate::master::Master;
use crate::procedure::BoxedProcedure;
use crate::{ErrorKind, Result, snapshots};
use model::{TableDescriptor, TableName};
use proto::pb;
use proto::pb::snapshot_description::Type;
use std::sync::Arc;

/// Name of the snapshot that is taken first; `None` when there is none to take, or it is not to be undone any more.
#[derive(Debug, Default)]
pub(crate) struct Recovery(Option<String>);

impl Recovery {
    /// For a procedure that is about to delete data of `table`: a snapshot if the settings ask for one. hbase:meta has none.
    pub fn planned(master: &Master, table: &TableName) -> Recovery {
        let is_wanted = master.settings().recovery_snapshot_ttl_seconds.is_some() && !table.is_meta();
        let made_ms = master.clock.now_ms().0;
        // No snapshot can have a colon in its name.
        Recovery(is_wanted.then(|| format!("auto_{}_{made_ms}", table.as_str().replace(':', "-"))))
    }

    /// As a procedure's record has it.
    pub fn read(name: Option<String>) -> Recovery {
        Recovery(name)
    }

    /// For the procedure's record.
    pub fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// Whether a snapshot comes first.
    pub fn is_planned(&self) -> bool {
        self.0.is_some()
    }

    /// The procedure that takes the snapshot, if one is planned.
    pub fn children(&self, master: &Master, table: &TableDescriptor) -> Vec<BoxedProcedure> {
        let Some(name) = &self.0 else { return Vec::new() };
        let ttl = table.recovery_snapshot_ttl_seconds().or(master.settings().recovery_snapshot_ttl_seconds);
        let snapshot = pb::SnapshotDescription {
            name: name.clone(),
            table: Some(table.name.to_string()),
            r#type: Some(Type::Flush as i32),
            creation_time: Some(master.clock.now_ms().0),
            ttl: Some(ttl.unwrap_or(0)),
            version: Some(rootdir::snapshot::FORMAT_VERSION),
            ..Default::default()
        };
        tracing::info!(table = %table.name, snapshot = name, "taking a recovery snapshot before data is deleted");
        vec![take::child(snapshot, table.name.clone())]
    }

    /// From here on data is deleted: whatever comes, the snapshot stays.
    pub fn keep(&mut self) {
        self.0 = None;
    }

    /// Deletes the snapshot again: nothing was deleted after it. One that cannot be deleted stays, and the log says so.
    ///
    /// # Errors
    /// The master stops.
    pub async fn undo(&mut self, master: &Arc<Master>) -> Result<()> {
        let Some(name) = &self.0 else { return Ok(()) };
        match snapshots::delete(master, name).await {
            Err(error) if error.is_stopped() => return Err(error),
            Err(error) if error.kind != ErrorKind::SnapshotDoesNotExist => {
                tracing::warn!(snapshot = name, %error, "the recovery snapshot of a procedure that was rolled back cannot be deleted; delete it with delete_snapshot");
            }
            Ok(()) | Err(_) => {}
        }
        self.0 = None;
        Ok(())
    }
}
