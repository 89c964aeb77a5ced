//! ModifyTableProcedure: a table's descriptor is replaced. Families are added, changed and deleted by it, too.

use crate::check::check_table;
use crate::cluster::{RegionState, TableState};
use crate::host::BoxFuture;
use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::procedure::engine::{self, Procedure, Step, any, malformed, unpack};
use crate::procedure::for_hbase::Form;
use crate::procedure::snapshot::recovery::Recovery;
use crate::procedure::{BoxedProcedure, Caller, Context, Next, ProcedureKind, table_locks};
use crate::{ErrorKind, MasterError, Result, groups, trackers};
use bytes::Bytes;
use convert::{from_proto, to_proto};
use model::{RegionInfo, TableDescriptor, TableName};
use proto::pb::{ModifyTableState as State, RegionTransitionType};
use proto::{Any, pb};
use std::sync::Arc;

const CLASS: &str = "org.apache.hadoop.hbase.master.procedure.ModifyTableProcedure";

pub(crate) const KIND: ProcedureKind =
    ProcedureKind { class_name: CLASS, read: |data| Ok(Box::new(ModifyTable::read(data)?)) };

/// HBase's, so many after the descriptor's.
fn steps(after: usize) -> Vec<Step> {
    use State::{
        ModifyTableAssignNewReplicas as AssignNewReplicas, ModifyTableDeleteFsLayout as DeleteFsLayout,
        ModifyTablePreOperation as PreOperation, ModifyTablePrepare as Prepare,
        ModifyTableReopenAllRegions as ReopenAllRegions, ModifyTableUpdateTableDescriptor as UpdateDescriptor,
    };
    let all = [Prepare, PreOperation, UpdateDescriptor, ReopenAllRegions, AssignNewReplicas, DeleteFsLayout];
    engine::steps(&all[..3 + after])
}

/// A table's descriptor is replaced.
#[derive(Debug)]
struct ModifyTable {
    old: Arc<TableDescriptor>,
    new: Arc<TableDescriptor>,
    reopen: bool,
    recovery: Recovery,
}

/// Changes a table to what `change` makes of its descriptor; its regions are reopened unless the client says not to.
///
/// # Errors
/// No such table, illegal attributes, what `change` says, a change that needs what is not done.
pub(crate) async fn submit(
    master: &Arc<Master>,
    table: &TableName,
    reopen: bool,
    caller: &Caller,
    change: impl FnOnce(&TableDescriptor) -> Result<TableDescriptor>,
) -> Result<u64> {
    master.tables.existing(table)?;
    let prepare = async {
        let (old, state) = master.tables.existing(table)?;
        let limits = &master.settings().limits;
        let new = change(&old)?;
        if new.name != old.name {
            return Err(MasterError::do_not_retry(format!("the descriptor is of table {}, not of {table}", new.name)));
        }
        check_table(limits, &new)?;
        master.assignment.check_replication(&new)?;
        groups::check_modify(master, &old, &new)?;
        trackers::check_modify(limits.trackers(), &old, &new, is_enabled(state))?;
        let missing = ["info", "table", "rep_barrier"].into_iter().find(|f| !new.families.contains_key(f.as_bytes()));
        if let Some(family) = missing.filter(|_| table.is_meta()) {
            return Err(MasterError::new(ErrorKind::HBaseIo, format!("Delete of hbase:meta column family {family}")));
        }
        if !reopen {
            check_without_reopening(&old, &new)?;
        }
        let mut modify = ModifyTable { old, new: Arc::new(new), reopen, recovery: Recovery::default() };
        if !modify.deleted_families().is_empty() {
            modify.recovery = Recovery::planned(master, table);
        }
        Ok(Box::new(modify) as BoxedProcedure)
    };
    master.procedures.submit(master, caller.submission(table_locks(table)), prepare).await
}

/// A change of a table as part of another procedure, which holds the table.
///
/// # Errors
/// A tracker that may not be left so.
pub(super) fn child(master: &Master, old: &Arc<TableDescriptor>, new: TableDescriptor) -> Result<BoxedProcedure> {
    let state = master.tables.existing(&old.name)?.1;
    trackers::check_modify(master.settings().limits.trackers(), old, &new, is_enabled(state))?;
    let recovery = Recovery::default();
    Ok(Box::new(ModifyTable { old: Arc::clone(old), new: Arc::new(new), reopen: true, recovery }))
}

fn is_enabled(state: TableState) -> bool {
    matches!(state, TableState::Enabled | TableState::Enabling)
}

/// With `family` added.
///
/// # Errors
/// The family is there.
pub(crate) fn add_family(old: &TableDescriptor, family: model::FamilyDescriptor) -> Result<TableDescriptor> {
    let mut new = old.clone();
    let shown = String::from_utf8_lossy(&family.name).into_owned();
    if new.families.insert(family.name.clone(), family).is_some() {
        let message = format!("Column family '{shown}' in table '{}' already exists so cannot be added", old.name);
        return Err(MasterError::new(ErrorKind::InvalidFamilyOperation, message));
    }
    Ok(new)
}

/// With `family` in place of the one of its name.
///
/// # Errors
/// There is no such family.
pub(crate) fn modify_family(old: &TableDescriptor, family: model::FamilyDescriptor) -> Result<TableDescriptor> {
    let mut new = old.clone();
    let shown = String::from_utf8_lossy(&family.name).into_owned();
    if new.families.insert(family.name.clone(), family).is_none() {
        let message = format!("Family '{shown}' does not exist, so it cannot be modified");
        return Err(MasterError::new(ErrorKind::InvalidFamilyOperation, message));
    }
    Ok(new)
}

/// Without `family`.
///
/// # Errors
/// There is no such family, or no other.
pub(crate) fn delete_family(old: &TableDescriptor, family: &Bytes) -> Result<TableDescriptor> {
    let mut new = old.clone();
    let shown = String::from_utf8_lossy(family);
    let refused = |what: &str| {
        let message = format!("Family '{shown}' {what}, so it cannot be deleted");
        MasterError::new(ErrorKind::InvalidFamilyOperation, message)
    };
    if new.families.remove(family).is_none() {
        return Err(refused("does not exist"));
    }
    if new.families.is_empty() {
        return Err(refused("is the only column family in the table"));
    }
    Ok(new)
}

/// Regions that are open, or were when an earlier attempt stopped half way.
pub(super) fn open_regions_of(master: &Master, table: &TableName) -> Vec<RegionInfo> {
    let cluster = master.cluster.read();
    let begun = |state| matches!(state, RegionState::Open | RegionState::Opening | RegionState::Closing);
    let open = cluster.regions_of(table).filter(|node| node.is_live() && begun(node.state));
    open.map(|node| node.info.clone()).collect()
}

impl ModifyTable {
    fn read(data: &[Any]) -> Result<ModifyTable> {
        let state: pb::ModifyTableStateData = unpack(data)?;
        let old = state.unmodified_table_schema.as_ref().ok_or_else(|| malformed("no former table"))?;
        Ok(ModifyTable {
            old: Arc::new(from_proto::table(old)?),
            new: Arc::new(from_proto::table(&state.modified_table_schema)?),
            reopen: state.reopen_regions.unwrap_or(true),
            recovery: Recovery::read(state.snapshot_name),
        })
    }

    fn deleted_families(&self) -> Vec<String> {
        let deleted = self.old.families.keys().filter(|family| !self.new.families.contains_key(*family));
        deleted.map(|family| String::from_utf8_lossy(family).into_owned()).collect()
    }

    async fn update_descriptor(&self, master: &Master) -> Result<()> {
        let written = Arc::clone(&self.new);
        let write = move |volume: &dyn fs::Volume| {
            rootdir::descriptor::write(volume, &written).map_err(|error| MasterError::new(ErrorKind::Io, error))
        };
        master.files.run(write).await?;
        master.cluster.write().set_descriptor(Arc::clone(&self.new));
        Ok(())
    }
}

impl Procedure<Master> for ModifyTable {
    fn class_name(&self) -> &'static str {
        CLASS
    }

    fn state_data(&self) -> Vec<Any> {
        let state = pb::ModifyTableStateData {
            user_info: pb::UserInformation::default(),
            unmodified_table_schema: Some(to_proto::table(&self.old)),
            modified_table_schema: to_proto::table(&self.new),
            delete_column_family_in_modify: !self.deleted_families().is_empty(),
            reopen_regions: Some(self.reopen),
            snapshot_name: self.recovery.name().map(str::to_owned),
            ..Default::default()
        };
        vec![any("ModifyTableStateData", &state)]
    }

    fn locks(&self) -> Vec<(Resource, Mode)> {
        table_locks(&self.new.name)
    }

    fn first_step(&self) -> Step {
        let with_snapshot = self.recovery.is_planned();
        (if with_snapshot { State::ModifyTableSnapshot } else { State::ModifyTableUpdateTableDescriptor }) as Step
    }

    fn needs_open_regions(&self) -> bool {
        self.recovery.is_planned()
    }

    fn for_hbase(&self) -> Form {
        let next = if self.recovery.is_planned() {
            State::ModifyTableSnapshot
        } else {
            State::ModifyTableUpdateTableDescriptor
        };
        Form::Steps(vec![State::ModifyTablePrepare as Step, State::ModifyTablePreOperation as Step, next as Step])
    }

    fn execute<'a>(&'a mut self, step: Step, context: &'a Context) -> BoxFuture<'a, Result<Next>> {
        Box::pin(async move {
            let master = &context.env;
            if step == State::ModifyTableSnapshot as Step {
                let snapshot = self.recovery.children(master, &self.old);
                return Ok(Next::Children(snapshot, State::ModifyTableUpdateTableDescriptor as Step));
            }
            self.recovery.keep();
            if step == State::ModifyTableUpdateTableDescriptor as Step {
                self.update_descriptor(master).await?;
                groups::table_changed(master, &self.old, &self.new).await?;
                return Ok(Next::Unsaved(State::ModifyTableReopenAllRegions as Step));
            }
            if step == State::ModifyTableReopenAllRegions as Step {
                if self.old.region_replication() <= 1 && self.new.region_replication() > 1 {
                    crate::procedure::peer::modify::set_up_read_replicas(master).await?;
                }
                if self.reopen {
                    let open = open_regions_of(master, &self.new.name);
                    context.found_with_regions(&steps(1), open.clone(), RegionTransitionType::Reopen).await?;
                    master.assignment.reopen(open).await?;
                    master.assignment.settle_replicas(master.tables.live_regions(&self.new.name)).await?;
                }
                return Ok(Next::Unsaved(State::ModifyTableDeleteFsLayout as Step));
            }
            let deleted = self.deleted_families();
            if !deleted.is_empty() {
                context.found_at(&steps(3)).await?;
                let name = self.new.name.clone();
                master.files.run(move |volume| Ok(rootdir::archive_families(volume, &name, &deleted)?)).await?;
            }
            Ok(Next::Done(None))
        })
    }

    fn roll_back<'a>(&'a mut self, step: Step, context: &'a Context) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            if step != State::ModifyTableSnapshot as Step {
                return Ok(());
            }
            self.recovery.undo(&context.env).await
        })
    }
}

/// What a change may not do when the regions are not reopened. Follows: `ModifyTableProcedure#preflightChecks`.
fn check_without_reopening(old: &TableDescriptor, new: &TableDescriptor) -> Result<()> {
    let refused = |why: String| Err(MasterError::new(ErrorKind::HBaseIo, why));
    if old.families.len() != new.families.len() || old.families.keys().ne(new.families.keys()) {
        return refused("Cannot add or remove column families when this modification won't reopen regions.".to_owned());
    }
    // What is no specification of one counts for nothing.
    if old.coprocessors().ne(new.coprocessors()) {
        return refused("Can not modify Coprocessor when table modification won't reopen regions".to_owned());
    }
    for key in ["REGION_REPLICATION", "REGION_MEMSTORE_REPLICATION", "hbase.rsgroup.name"] {
        if old.attributes.get(key.as_bytes()) != new.attributes.get(key.as_bytes()) {
            return refused(format!("Can not modify {key} of a table when modification won't reopen regions"));
        }
    }
    Ok(())
}
