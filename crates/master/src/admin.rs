//! What a master is asked for: each a check and a procedure, in the file of its kind, or a run of a chore.

use crate::Result;
use crate::check::check_table;
use crate::cleaner::{self, Cleaned};
use crate::cluster::NamespaceConfiguration;
use crate::consistency::{self, CatalogReport};
use crate::hbck::{self, HbckReport};
use crate::janitor;
use crate::master::Master;
use crate::procedure::ddl::{create, delete, disable, enable, file_tracker, modify, truncate};
use crate::procedure::region::{flush, merge, split, truncate as truncate_region};
use crate::procedure::server::crash;
use crate::procedure::{Caller, Outcome, namespace, snapshot};
use crate::{HostError, groups, healing, quotas, snapshots};
use bytes::Bytes;
use model::{FamilyDescriptor, RegionInfo, ServerName, TableDescriptor, TableName};
use proto::pb;
use std::sync::Arc;

/// Every method that changes something answers the id of a procedure, which goes on by itself.
impl Master {
    /// Makes a table with regions at these split keys.
    ///
    /// # Errors
    /// Illegal names and attributes, a table of that name, no such namespace.
    pub async fn create_table(
        self: &Arc<Self>,
        table: TableDescriptor,
        keys: &[Bytes],
        caller: &Caller,
    ) -> Result<u64> {
        create::submit(self, table, keys, caller).await
    }

    /// Deletes a disabled table; its files go to the archive.
    ///
    /// # Errors
    /// No such table, not disabled.
    pub async fn delete_table(self: &Arc<Self>, table: &TableName, caller: &Caller) -> Result<u64> {
        delete::submit(self, table, caller).await
    }

    /// Deletes and makes again a disabled table, with its splits if they are to be preserved; it ends enabled.
    ///
    /// # Errors
    /// No such table, not disabled.
    pub async fn truncate_table(self: &Arc<Self>, table: &TableName, preserve: bool, caller: &Caller) -> Result<u64> {
        truncate::submit(self, table, preserve, caller).await
    }

    /// Opens a disabled table.
    ///
    /// # Errors
    /// No such table, not disabled, disabled because it uses more space than it may.
    pub async fn enable_table(self: &Arc<Self>, table: &TableName, caller: &Caller) -> Result<u64> {
        quotas::space::check_enable(self, table).await?;
        enable::submit(self, table, caller).await
    }

    /// Closes a table.
    ///
    /// # Errors
    /// No such table, not enabled, hbase:meta.
    pub async fn disable_table(self: &Arc<Self>, table: &TableName, caller: &Caller) -> Result<u64> {
        disable::submit(self, table, caller).await
    }

    /// Changes a table to `new`; its regions are reopened one by one unless the client says not to.
    ///
    /// # Errors
    /// No such table, illegal attributes, a change that needs what is not done.
    pub async fn modify_table(
        self: &Arc<Self>,
        table: &TableName,
        new: TableDescriptor,
        reopen: bool,
        caller: &Caller,
    ) -> Result<u64> {
        // As in HBase before it is known whether there is such a table.
        check_table(&self.settings().limits, &new)?;
        modify::submit(self, table, reopen, caller, |_| Ok(new)).await
    }

    /// Gives a table, or one family of it, another store file tracker.
    ///
    /// # Errors
    /// No such tracker or table, a table that is not enabled.
    pub async fn modify_file_tracker(
        self: &Arc<Self>,
        table: &TableName,
        family: Option<Bytes>,
        target: &str,
        caller: &Caller,
    ) -> Result<u64> {
        file_tracker::submit(self, table, family, target, caller).await
    }

    /// Adds a family.
    ///
    /// # Errors
    /// No such table, the family is there, illegal attributes.
    pub async fn add_family(
        self: &Arc<Self>,
        table: &TableName,
        family: FamilyDescriptor,
        caller: &Caller,
    ) -> Result<u64> {
        modify::submit(self, table, true, caller, |old| modify::add_family(old, family)).await
    }

    /// Replaces a family's attributes.
    ///
    /// # Errors
    /// No such table or family, illegal attributes.
    pub async fn modify_family(
        self: &Arc<Self>,
        table: &TableName,
        family: FamilyDescriptor,
        caller: &Caller,
    ) -> Result<u64> {
        modify::submit(self, table, true, caller, |old| modify::modify_family(old, family)).await
    }

    /// Deletes a family; its files go to the archive.
    ///
    /// # Errors
    /// No such table or family, the table's only one.
    pub async fn delete_family(self: &Arc<Self>, table: &TableName, family: &Bytes, caller: &Caller) -> Result<u64> {
        modify::submit(self, table, true, caller, |old| modify::delete_family(old, family)).await
    }

    /// Writes a table's memstores out, of all families or of these.
    ///
    /// # Errors
    /// No such table, not enabled, no such family.
    pub async fn flush_table(self: &Arc<Self>, table: &TableName, only: Vec<Bytes>, caller: &Caller) -> Result<u64> {
        flush::submit(self, table, only, caller).await
    }

    /// Splits a region, at `row` or where it is largest.
    ///
    /// # Errors
    /// An unknown region, one that is not open or cannot be split there, the split switch being off.
    pub async fn split_region(self: &Arc<Self>, name: &str, row: Option<Bytes>, caller: &Caller) -> Result<u64> {
        split::submit(self, name, row, caller).await
    }

    /// Empties a region of an enabled table; its boundaries stay.
    ///
    /// # Errors
    /// No such table, not enabled. An unknown region, or one that is not open, is what the procedure ends with.
    pub async fn truncate_region(self: &Arc<Self>, info: RegionInfo, caller: &Caller) -> Result<u64> {
        truncate_region::submit(self, info, caller).await
    }

    /// Merges regions that follow each other.
    ///
    /// # Errors
    /// Unknown regions, of several tables, not adjacent, not open, the merge switch being off.
    pub async fn merge_regions(self: &Arc<Self>, names: &[String], _forcible: bool, caller: &Caller) -> Result<u64> {
        merge::submit(self, names, caller).await
    }

    /// A region server has crashed: what it had is recovered from its logs and opened elsewhere.
    ///
    /// # Errors
    /// It is the only server, or the procedure cannot be recorded.
    pub async fn server_crashed(self: &Arc<Self>, server: &ServerName) -> Result<u64> {
        crash::submit(self, server).await
    }

    /// Makes a namespace.
    ///
    /// # Errors
    /// An illegal name or configuration, a namespace of that name.
    pub async fn create_namespace(
        self: &Arc<Self>,
        name: String,
        configuration: NamespaceConfiguration,
        caller: &Caller,
    ) -> Result<u64> {
        groups::check_namespace(self, &configuration)?;
        namespace::create::submit(self, name, configuration, caller).await
    }

    /// Replaces a namespace's configuration.
    ///
    /// # Errors
    /// No such namespace, an illegal configuration.
    pub async fn modify_namespace(
        self: &Arc<Self>,
        name: String,
        configuration: NamespaceConfiguration,
        caller: &Caller,
    ) -> Result<u64> {
        groups::check_namespace(self, &configuration)?;
        namespace::modify::submit(self, name, configuration, caller).await
    }

    /// Deletes a namespace without tables.
    ///
    /// # Errors
    /// No such namespace, a reserved one, one with tables.
    pub async fn delete_namespace(self: &Arc<Self>, name: &str, caller: &Caller) -> Result<u64> {
        namespace::delete::submit(self, name, caller).await
    }

    /// Takes a snapshot of a table; `wanted` says its name, its table, and how.
    ///
    /// # Errors
    /// An illegal name, one of that name is there or being taken, no such table, a table that is on its way to another state.
    pub async fn take_snapshot(self: &Arc<Self>, wanted: pb::SnapshotDescription, caller: &Caller) -> Result<u64> {
        snapshot::take::submit(self, wanted, caller).await
    }

    /// Makes the table that `wanted` names what the snapshot has: the disabled table that it is of, or a new one.
    ///
    /// # Errors
    /// No such snapshot or namespace, a damaged one or one whose time is over, another table of that name, one that is not disabled.
    pub async fn restore_snapshot(
        self: &Arc<Self>,
        wanted: &pb::SnapshotDescription,
        custom_tracker: Option<&str>,
        caller: &Caller,
    ) -> Result<u64> {
        snapshot::restore::restore_or_clone(self, wanted, custom_tracker, caller).await
    }

    /// Deletes a snapshot; whoever makes a table of it is waited for.
    ///
    /// # Errors
    /// No such snapshot; what the volume says.
    pub async fn delete_snapshot(self: &Arc<Self>, name: &str) -> Result<()> {
        snapshots::delete(self, name).await
    }

    /// Every snapshot that was taken.
    ///
    /// # Errors
    /// What the volume says.
    pub async fn list_snapshots(&self) -> Result<Vec<pb::SnapshotDescription>> {
        snapshots::list(self).await
    }

    /// Deletes the snapshots whose time is over, whatever the switch says; answers their number.
    ///
    /// # Errors
    /// They cannot be listed, or the master stops.
    pub async fn delete_expired_snapshots(self: &Arc<Self>) -> Result<usize> {
        snapshots::delete_expired(self).await
    }

    /// Waits until a procedure ended.
    ///
    /// # Errors
    /// Its own; or that the master stopped.
    pub async fn wait_for(&self, id: u64) -> Outcome {
        self.procedures.wait_for(id).await
    }

    /// Procedures that have not ended.
    pub fn unfinished_procedures(&self) -> usize {
        self.procedures.unfinished().len()
    }

    /// How many procedures are at a step that failed and is tried again.
    pub fn failing_procedures(&self) -> usize {
        self.procedures.failing().len()
    }

    /// Compares hbase:meta, the region servers and the directories; whether it did.
    pub async fn run_hbck_chore(&self) -> bool {
        hbck::run(self).await
    }

    /// One run of the self-healing; whether it ran. What it came to is in [`Master::hbck_report`].
    pub async fn run_healing_chore(self: &Arc<Self>) -> bool {
        healing::run(self).await
    }

    /// Fills the holes of hbase:meta and merges the overlaps that the catalog janitor's last run found.
    ///
    /// # Errors
    /// What the volume or hbase:meta say; what was mended stays mended.
    pub async fn fix_meta(self: &Arc<Self>) -> Result<()> {
        consistency::fix(self).await
    }

    /// The newest slow calls that each region server keeps, so many at most, or why it does not say; one that takes longer than `patience` does not
    /// hold up what others say.
    pub async fn slow_calls(
        &self,
        most: u32,
        patience: std::time::Duration,
    ) -> Vec<(ServerName, std::result::Result<Vec<pb::SlowLogPayload>, HostError>)> {
        let mut asked = tokio::task::JoinSet::new();
        for host in self.servers.all() {
            asked.spawn(async move {
                let answer = tokio::time::timeout(patience, host.slow_calls(most)).await;
                let late = |_| Err(HostError::Unreachable(format!("no answer within {} ms", patience.as_millis())));
                (host.server_name(), answer.unwrap_or_else(late))
            });
        }
        let mut answers: Vec<_> = Vec::new();
        while let Some(answer) = asked.join_next().await {
            answers.extend(answer.ok());
        }
        answers.sort_by(|(a, _), (b, _)| a.cmp(b));
        answers
    }

    /// What the catalog janitor found last; `None` before its first run.
    pub fn catalog_report(&self) -> Option<Arc<CatalogReport>> {
        self.catalog_report.lock().clone()
    }

    /// What the last run of the hbck chore found; `None` before the first.
    pub fn hbck_report(&self) -> Option<Arc<HbckReport>> {
        self.hbck.last_report()
    }

    /// One round of what holds tables to their quotas of space, without waiting for the times of its chores: sizes of regions are reported,
    /// snapshots measured, both held against the quotas, and what follows is done.
    ///
    /// # Errors
    /// hbase:quota cannot be read or written, a table cannot be disabled or enabled, or what the volume says.
    pub async fn run_space_quotas(self: &Arc<Self>) -> Result<()> {
        quotas::space::collect_reports(self);
        quotas::space::measure_snapshots(self).await?;
        quotas::space::observe(self).await
    }

    /// Takes away regions that were split or merged and are not needed; answers their number.
    ///
    /// # Errors
    /// What the volume or hbase:meta say; what was cleaned stays cleaned.
    pub async fn run_catalog_janitor(self: &Arc<Self>) -> Result<u32> {
        janitor::run(self).await
    }

    /// Deletes what can be deleted from the archive and from `oldWALs`, whatever the switch says. Takes as long as it
    /// takes, in small steps; one round at a time.
    ///
    /// # Errors
    /// The master stops, or the volume fails, or something was found that is not understood. What is deleted by then
    /// was right to go.
    pub async fn run_cleaners(self: &Arc<Self>) -> Result<Cleaned> {
        cleaner::run(self).await
    }
}
