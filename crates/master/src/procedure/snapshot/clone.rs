//! CloneSnapshotProcedure.

use super::{fill, filling, locks_to_fill, place, update_meta};
use crate::check::check_table;
use crate::cluster::TableState;
use crate::host::BoxFuture;
use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::procedure::ddl::enable::closed_regions;
use crate::procedure::engine::{Procedure, Step, any, unpack};
use crate::procedure::for_hbase::Form;
use crate::procedure::{BoxedProcedure, Caller, Context, Next, ProcedureKind, infos_from_proto, infos_to_proto};
use crate::quotas::namespace::check_create;
use crate::snapshots::{check_alive, read_whole};
use crate::{ErrorKind, MasterError, Result, groups, meta, trackers};
use base::RunningTask;
use bytes::Bytes;
use convert::{from_proto, to_proto};
use model::{RegionInfo, TableDescriptor, TableName};
use proto::pb::{CloneSnapshotState as State, RegionTransitionType};
use proto::{Any, pb};
use rootdir::tracker::{Class, IMPL_KEY};
use std::sync::Arc;

const CLASS: &str = "org.apache.hadoop.hbase.master.procedure.CloneSnapshotProcedure";

pub(crate) const KIND: ProcedureKind =
    ProcedureKind { class_name: CLASS, read: |data| Ok(Box::new(CloneSnapshot::read(data)?)) };

/// HBase's.
const STEPS: [Step; 5] = [
    State::CloneSnapshotPreOperation as Step,
    State::CloneSnapshotWriteFsLayout as Step,
    State::CloneSnapshotAddToMeta as Step,
    State::CloneSnapshotAssignRegions as Step,
    State::CloneSnapshotUpdateDescCache as Step,
];

/// A new table with what a snapshot has.
#[derive(Debug)]
struct CloneSnapshot {
    snapshot: pb::SnapshotDescription,
    table: Arc<TableDescriptor>,
    regions: Vec<RegionInfo>,
    /// For who looks at it.
    task: Option<RunningTask>,
}

/// Makes a new table of a snapshot; answers the procedure's id. See [`super::restore::restore_or_clone`].
///
/// # Errors
/// As there.
pub(super) async fn submit(
    master: &Arc<Master>,
    snapshot: String,
    table: &TableName,
    custom_tracker: Option<&str>,
    caller: &Caller,
) -> Result<u64> {
    let custom_tracker = custom_tracker.filter(|tracker| !tracker.is_empty());
    custom_tracker.map(Class::parse).transpose()?;
    let submission = caller.submission(locks_to_fill(table, &snapshot));
    let prepare = async {
        let (description, manifest) = read_whole(master, &snapshot).await?;
        check_table(&master.settings().limits, &manifest.table)?;
        master.assignment.check_replication(&manifest.table)?;
        if master.cluster.read().exists(table) || master.cluster.read().regions_of(table).next().is_some() {
            return Err(MasterError::new(ErrorKind::TableExists, table));
        }
        check_alive(&description, master.clock.now_ms().0)?;
        let placed = place(master, &manifest, table).await?;
        check_create(master, table, placed.len())?;
        let mut table = TableDescriptor { name: table.clone(), ..manifest.table };
        if let Some(tracker) = custom_tracker {
            track_by(&mut table, tracker);
        }
        let trackers = master.settings().limits.trackers().clone();
        trackers::check_create(&trackers, &table)?;
        let group = groups::check_create(master, &table).await?;
        groups::move_new_table(master, &table.name, group).await?;
        // As in HBase it says no more of trackers than the snapshot does.
        let table = Arc::new(table);
        let regions = placed.into_iter().map(|placed| placed.info).collect();
        Ok(Box::new(CloneSnapshot { snapshot: description, table, regions, task: None }) as BoxedProcedure)
    };
    master.procedures.submit(master, submission, prepare).await
}

/// The table's word counts for all of its families. Follows: `CloneSnapshotProcedure#updateTableDescriptorWithSFT`.
fn track_by(table: &mut TableDescriptor, tracker: &str) {
    table.attributes.insert(Bytes::from(IMPL_KEY), Bytes::from(tracker.to_owned()));
    table.configuration.remove(IMPL_KEY);
    for family in table.families.values_mut() {
        family.attributes.remove(IMPL_KEY.as_bytes());
        family.configuration.remove(IMPL_KEY);
    }
}

impl CloneSnapshot {
    fn read(data: &[Any]) -> Result<CloneSnapshot> {
        let state: pb::CloneSnapshotStateData = unpack(data)?;
        Ok(CloneSnapshot {
            table: Arc::new(from_proto::table(&state.table_schema)?),
            regions: infos_from_proto(&state.region_info)?,
            snapshot: state.snapshot,
            task: None,
        })
    }

    async fn add_to_meta(&self, master: &Master) -> Result<()> {
        let name = &self.table.name;
        let filling = filling(master, &self.snapshot, &self.table, &[], &self.regions).await?;
        update_meta(master, &self.table, &filling).await?;
        let stamp = master.catalog.stamp();
        master.catalog.write(vec![meta::put_table_state(name, TableState::Enabling, stamp)]).await?;
        master.cluster.write().put_table(Arc::clone(&self.table), TableState::Enabling);
        master.observer.table_state(name, Some(TableState::Enabling));
        Ok(())
    }
}

impl Procedure<Master> for CloneSnapshot {
    fn class_name(&self) -> &'static str {
        CLASS
    }

    fn state_data(&self) -> Vec<Any> {
        let state = pb::CloneSnapshotStateData {
            user_info: pb::UserInformation::default(),
            snapshot: self.snapshot.clone(),
            table_schema: to_proto::table(&self.table),
            region_info: infos_to_proto(&self.regions),
            ..Default::default()
        };
        vec![any("CloneSnapshotStateData", &state)]
    }

    fn locks(&self) -> Vec<(Resource, Mode)> {
        locks_to_fill(&self.table.name, &self.snapshot.name)
    }

    fn first_step(&self) -> Step {
        State::CloneSnapshotWriteFsLayout as Step
    }

    fn for_hbase(&self) -> Form {
        Form::Steps(STEPS[..2].to_vec())
    }

    fn execute<'a>(&'a mut self, step: Step, context: &'a Context) -> BoxFuture<'a, Result<Next>> {
        Box::pin(async move {
            let master = &context.env;
            let what = || format!("Cloning  snapshot '{}' to table {}", self.snapshot.name, self.table.name);
            self.task.get_or_insert_with(|| master.tasks_now.begin(what(), "begun"));
            if step == State::CloneSnapshotWriteFsLayout as Step {
                if self.regions.is_empty() {
                    // HBase's master names them in this step, and ended before it had recorded them.
                    let (_, manifest) = read_whole(master, &self.snapshot.name).await?;
                    let placed = place(master, &manifest, &self.table.name).await?;
                    self.regions = placed.into_iter().map(|placed| placed.info).collect();
                    return Ok(Next::Step(step));
                }
                fill(master, filling(master, &self.snapshot, &self.table, &[], &self.regions).await?).await?;
                return Ok(Next::Unsaved(State::CloneSnapshotAddToMeta as Step));
            }
            if step == State::CloneSnapshotAddToMeta as Step {
                context.found_at(&STEPS[..3]).await?;
                self.add_to_meta(master).await?;
                // The files may be opened, compacted and split from here on: they are not filled again.
                return Ok(Next::Step(State::CloneSnapshotAssignRegions as Step));
            }
            let regions = master.tables.live_regions(&self.table.name);
            let closed = closed_regions(master, &self.table.name);
            context.found_with_regions(&STEPS, closed, RegionTransitionType::Assign).await?;
            master.assignment.assign(regions).await?;
            groups::table_made(master, &self.table.name).await?;
            master.tables.set_state(&self.table.name, TableState::Enabled).await?;
            master.assignment.check_none_failed(&self.table.name)?;
            if let Some(task) = self.task.take() {
                task.complete(format!("Clone snapshot '{}' completed!", self.snapshot.name));
            }
            Ok(Next::Done(None))
        })
    }
}
