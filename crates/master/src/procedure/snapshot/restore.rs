//! RestoreSnapshotProcedure.

use super::{fill, filling, locks_to_fill, place, update_meta};
use crate::check::check_table;
use crate::cluster::TableState;
use crate::host::BoxFuture;
use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::procedure::engine::{Procedure, Step, any, unpack};
use crate::procedure::{BoxedProcedure, Caller, Context, Next, ProcedureKind, infos_from_proto, infos_to_proto};
use crate::snapshots::{check_alive, read_whole};
use crate::{ErrorKind, MasterError, Result, trackers};
use base::RunningTask;
use convert::{from_proto, to_proto};
use model::{RegionInfo, TableDescriptor, TableName};
use proto::pb::RestoreSnapshotState as State;
use proto::{Any, pb};
use rootdir::snapshot::Manifest;
use std::sync::Arc;

const CLASS: &str = "org.apache.hadoop.hbase.master.procedure.RestoreSnapshotProcedure";

pub(crate) const KIND: ProcedureKind =
    ProcedureKind { class_name: CLASS, read: |data| Ok(Box::new(RestoreSnapshot::read(data)?)) };

/// A disabled table becomes again what it was.
#[derive(Debug)]
struct RestoreSnapshot {
    snapshot: pb::SnapshotDescription,
    old: Arc<TableDescriptor>,
    new: Arc<TableDescriptor>,
    restored: Vec<RegionInfo>,
    added: Vec<RegionInfo>,
    removed: Vec<RegionInfo>,
    /// For who looks at it.
    task: Option<RunningTask>,
}

/// Makes a table of a snapshot: the one that it is of again, if that is there, or a new one. Answers the procedure's id. Follows:
/// `SnapshotManager#restoreOrCloneSnapshot`.
///
/// # Errors
/// No such snapshot, namespace; a damaged snapshot or one whose time is over; a table that is not disabled; a file tracker that is not known.
pub(crate) async fn restore_or_clone(
    master: &Arc<Master>,
    wanted: &pb::SnapshotDescription,
    custom_tracker: Option<&str>,
    caller: &Caller,
) -> Result<u64> {
    let table = TableName::parse(wanted.table());
    let table = table.map_err(|error| MasterError::new(ErrorKind::IllegalArgument, error))?;
    master.namespaces.existing(table.namespace())?;
    if table.is_system() {
        return Err(MasterError::new(ErrorKind::IllegalArgument, "System table snapshots are not allowed"));
    }
    if master.cluster.read().exists(&table) {
        submit(master, wanted.name.clone(), &table, caller).await
    } else {
        super::clone::submit(master, wanted.name.clone(), &table, custom_tracker, caller).await
    }
}

async fn submit(master: &Arc<Master>, snapshot: String, table: &TableName, caller: &Caller) -> Result<u64> {
    let submission = caller.submission(locks_to_fill(table, &snapshot));
    let prepare = async {
        let (description, manifest) = read_whole(master, &snapshot).await?;
        check_table(&master.settings().limits, &manifest.table)?;
        master.assignment.check_replication(&manifest.table)?;
        if manifest.table.name != *table {
            return Err(MasterError::new(ErrorKind::TableExists, table));
        }
        let (old, state) = master.tables.existing(table)?;
        trackers::check_restore(master.settings().limits.trackers(), &old, &manifest.table)?;
        if state == TableState::Enabled {
            let message = format!("Table '{table}' must be disabled in order to perform a restore operation.");
            return Err(MasterError::new(ErrorKind::Unsupported, message));
        }
        if state != TableState::Disabled {
            let message = format!("Not DISABLED; tableName={table}, state={}", state.as_str_name());
            return Err(MasterError::new(ErrorKind::TableNotDisabled, message));
        }
        check_alive(&description, master.clock.now_ms().0)?;
        let new = Arc::new(manifest.table.clone());
        let (restored, added, removed) = (Vec::new(), Vec::new(), Vec::new());
        let mut procedure = RestoreSnapshot { snapshot: description, old, new, restored, added, removed, task: None };
        procedure.plan(master, &manifest).await?;
        Ok(Box::new(procedure) as BoxedProcedure)
    };
    master.procedures.submit(master, submission, prepare).await
}

impl RestoreSnapshot {
    /// Says which regions stay, come and go.
    async fn plan(&mut self, master: &Arc<Master>, manifest: &Manifest) -> Result<()> {
        let placed = place(master, manifest, &self.new.name).await?;
        let infos = |there: bool| placed.iter().filter(move |p| p.is_there == there).map(|p| p.info.clone()).collect();
        (self.restored, self.added) = (infos(true), infos(false));
        self.removed = master.tables.all_regions(&self.new.name);
        self.removed.retain(|info| !self.restored.iter().any(|kept| kept.encoded_name() == info.encoded_name()));
        Ok(())
    }

    fn read(data: &[Any]) -> Result<RestoreSnapshot> {
        let state: pb::RestoreSnapshotStateData = unpack(data)?;
        Ok(RestoreSnapshot {
            old: Arc::new(from_proto::table(&state.old_table_schema)?),
            new: Arc::new(from_proto::table(&state.modified_table_schema)?),
            restored: infos_from_proto(&state.region_info_for_restore)?,
            added: infos_from_proto(&state.region_info_for_add)?,
            removed: infos_from_proto(&state.region_info_for_remove)?,
            snapshot: state.snapshot,
            task: None,
        })
    }
}

impl Procedure<Master> for RestoreSnapshot {
    fn class_name(&self) -> &'static str {
        CLASS
    }

    fn state_data(&self) -> Vec<Any> {
        let state = pb::RestoreSnapshotStateData {
            user_info: pb::UserInformation::default(),
            snapshot: self.snapshot.clone(),
            modified_table_schema: to_proto::table(&self.new),
            old_table_schema: to_proto::table(&self.old),
            region_info_for_restore: infos_to_proto(&self.restored),
            region_info_for_add: infos_to_proto(&self.added),
            region_info_for_remove: infos_to_proto(&self.removed),
            parent_to_child_regions_pair_list: Vec::new(),
            restore_acl: Some(false),
        };
        vec![any("RestoreSnapshotStateData", &state)]
    }

    fn locks(&self) -> Vec<(Resource, Mode)> {
        locks_to_fill(&self.new.name, &self.snapshot.name)
    }

    fn first_step(&self) -> Step {
        State::RestoreSnapshotWriteFsLayout as Step
    }

    fn execute<'a>(&'a mut self, step: Step, context: &'a Context) -> BoxFuture<'a, Result<Next>> {
        Box::pin(async move {
            let master = &context.env;
            let what = || format!("Restoring  snapshot '{}' to table {}", self.snapshot.name, self.new.name);
            self.task.get_or_insert_with(|| master.tasks_now.begin(what(), "begun"));
            if step == State::RestoreSnapshotWriteFsLayout as Step && self.restored.is_empty() && self.added.is_empty()
            {
                // HBase's master does this in this step, and ended before it had recorded it.
                let (_, manifest) = read_whole(master, &self.snapshot.name).await?;
                self.plan(master, &manifest).await?;
                return Ok(Next::Step(step));
            }
            let filling = filling(master, &self.snapshot, &self.new, &self.restored, &self.added).await?;
            if step == State::RestoreSnapshotWriteFsLayout as Step {
                fill(master, filling).await?;
                return Ok(Next::Unsaved(State::RestoreSnapshotUpdateMeta as Step));
            }
            update_meta(master, &self.new, &filling).await?;
            master.cluster.write().set_descriptor(Arc::clone(&self.new));
            if let Some(task) = self.task.take() {
                task.complete(format!("Restore snapshot '{}'!", self.snapshot.name));
            }
            Ok(Next::Done(None))
        })
    }
}
