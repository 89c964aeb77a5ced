//! SnapshotProcedure.

use super::all;
use crate::cluster::{RegionNode, RegionState, TableState};
use crate::host::BoxFuture;
use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::procedure::engine::{Procedure, Step, any, steps, unpack};
use crate::procedure::for_hbase::Form;
use crate::procedure::{BoxedProcedure, Caller, Context, Next, ProcedureKind};
use crate::snapshots::{self, check_alive, check_name, is_in_work, is_taken, name_lock, shown};
use crate::{ErrorKind, HostError, MasterError, Result};
use base::RunningTask;
use bytes::Bytes;
use model::{TableDescriptor, TableName};
use proto::pb::SnapshotState as State;
use proto::pb::snapshot_description::Type;
use proto::{Any, pb};
use rootdir::snapshot::{self, Manifest};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinSet;

const CLASS: &str = "org.apache.hadoop.hbase.master.procedure.SnapshotProcedure";

pub(crate) const KIND: ProcedureKind =
    ProcedureKind { class_name: CLASS, read: |data| Ok(Box::new(TakeSnapshot::read(data)?)) };

/// HBase's steps until a snapshot is where it belongs, and the last one, in which nothing is left to be done.
const TAKEN: [State; 10] = [
    State::SnapshotPrepare,
    State::SnapshotPreOperation,
    State::SnapshotWriteSnapshotInfo,
    State::SnapshotSnapshotOnlineRegions,
    State::SnapshotSnapshotSplitRegions,
    State::SnapshotSnapshotMobRegion,
    State::SnapshotConsolidateSnapshot,
    State::SnapshotVerifierSnapshot,
    State::SnapshotCompleteSnapshot,
    State::SnapshotPostOperation,
];

/// A snapshot of a table is taken: of one that serves by its regions' servers, of a disabled one from its files.
#[derive(Debug)]
struct TakeSnapshot {
    snapshot: pb::SnapshotDescription,
    table: TableName,
    /// For who looks at it.
    task: Option<RunningTask>,
}

/// No split, merge or change of the table while its regions are asked one by one.
fn locks(table: &TableName, snapshot: &str) -> Vec<(Resource, Mode)> {
    vec![(Resource::Table(table.clone()), Mode::Exclusive), name_lock(snapshot, Mode::Exclusive)]
}

fn creation(message: impl std::fmt::Display) -> MasterError {
    MasterError::new(ErrorKind::SnapshotCreation, message)
}

/// What the client left out. Follows: `SnapshotDescriptionUtils#validate`.
fn completed(master: &Master, mut snapshot: pb::SnapshotDescription) -> Result<(pb::SnapshotDescription, TableName)> {
    check_name(&snapshot.name)?;
    let illegal = |error: &dyn std::fmt::Display| MasterError::new(ErrorKind::IllegalArgument, error);
    let Some(table) = snapshot.table.as_deref() else {
        return Err(illegal(&"Descriptor doesn't apply to a table, so we can't build it."));
    };
    let table = TableName::parse(table).map_err(|error| illegal(&error))?;
    if table.is_system() {
        return Err(illegal(&"System table snapshots are not allowed"));
    }
    if snapshot.creation_time() == 0 {
        snapshot.creation_time = Some(master.clock.now_ms().0);
    }
    let ttl = snapshot.ttl();
    let is_legal = (1..=i64::MAX / 1000).contains(&ttl);
    snapshot.ttl = Some(if is_legal { ttl } else { master.settings().snapshot_ttl_seconds });
    snapshot.version = snapshot.version.or(Some(snapshot::FORMAT_VERSION));
    Ok((snapshot, table))
}

/// Of a table that is disabled the type is DISABLED, whatever was asked for. Follows: `SnapshotProcedure#executeFromState`.
///
/// # Errors
/// No such table, one that is neither enabled nor disabled.
fn set_type(master: &Master, snapshot: &mut pb::SnapshotDescription, table: &TableName) -> Result<()> {
    let state = master.cluster.read().state(table);
    match state {
        None => Err(creation(format!("Table '{table}' doesn't exist, can't take snapshot."))),
        Some(TableState::Enabled) => Ok(()),
        Some(TableState::Disabled) => {
            snapshot.r#type = Some(Type::Disabled as i32);
            Ok(())
        }
        Some(_) => Err(creation("Table is not entirely open or closed")),
    }
}

/// Takes a snapshot; answers the procedure's id.
///
/// # Errors
/// Illegal names, one of that name is there or being taken, no such table, one that is neither enabled nor disabled.
pub(crate) async fn submit(master: &Arc<Master>, wanted: pb::SnapshotDescription, caller: &Caller) -> Result<u64> {
    let (mut snapshot, table) = completed(master, wanted)?;
    let exists = |name: &str| {
        MasterError::new(ErrorKind::SnapshotExists, format!("Snapshot '{name}' already stored on the filesystem."))
    };
    if is_taken(master, &snapshot.name).await? && caller.nonce.is_none() {
        return Err(exists(&snapshot.name));
    }
    let name = snapshot.name.clone();
    let is_known = caller.nonce.is_some_and(|nonce| master.procedures.knows(nonce));
    if !is_known && is_in_work(master, &name) {
        return Err(creation(format!(
            "Rejected taking {} because we are already running another snapshot on the same table or with the same name",
            shown(&snapshot)
        )));
    }
    let prepare = async {
        if is_taken(master, &snapshot.name).await? {
            return Err(exists(&snapshot.name));
        }
        set_type(master, &mut snapshot, &table)?;
        Ok(Box::new(TakeSnapshot { snapshot, table: table.clone(), task: None }) as BoxedProcedure)
    };
    master.procedures.submit(master, caller.submission(locks(&table, &name)), prepare).await
}

/// A snapshot as part of another procedure, which holds the table.
pub(super) fn child(snapshot: pb::SnapshotDescription, table: TableName) -> BoxedProcedure {
    Box::new(TakeSnapshot { snapshot, table, task: None })
}

impl TakeSnapshot {
    fn read(data: &[Any]) -> Result<TakeSnapshot> {
        let state: pb::SnapshotProcedureStateData = unpack(data)?;
        let table = TableName::parse(state.snapshot.table()).map_err(crate::procedure::engine::malformed)?;
        Ok(TakeSnapshot { snapshot: state.snapshot, table, task: None })
    }

    /// The table as the snapshot keeps it. Follows: `SnapshotProcedure#loadTableDescriptorSnapshot`.
    fn descriptor(&self, master: &Master) -> Result<Arc<TableDescriptor>> {
        let table = master.tables.must_exist(&self.table)?;
        let (key, wanted) = (Bytes::from_static(b"MAX_FILESIZE"), self.snapshot.max_file_size());
        if wanted <= 0 || table.attributes.contains_key(&key) {
            return Ok(table);
        }
        let mut table = TableDescriptor::clone(&table);
        table.attributes.insert(key, Bytes::from(wanted.to_string()));
        Ok(Arc::new(table))
    }

    /// Every region writes the names of its files into the working directory.
    async fn add_regions(&self, master: &Arc<Master>) -> Result<()> {
        let nodes: Vec<RegionNode> = master.cluster.read().regions_of(&self.table).cloned().collect();
        let is_enabled = master.cluster.read().state(&self.table) == Some(TableState::Enabled);
        let table = master.tables.must_exist(&self.table)?;
        let flush = self.snapshot.r#type() == Type::Flush;
        let is_open = |node: &RegionNode| is_enabled && node.is_live();
        // Before anybody is asked: what a server is asked it does to the end.
        if let Some(node) = nodes.iter().find(|node| is_open(node) && node.state != RegionState::Open) {
            let (region, state) = (node.info.name_string(), node.state.as_str_name());
            return Err(creation(format!(
                "region {region} of an enabled table is {state}: take the snapshot when it is open"
            )));
        }
        let mut running = JoinSet::new();
        for node in nodes {
            let is_open = is_open(&node);
            let (master, table, name) = (Arc::clone(master), Arc::clone(&table), self.snapshot.name.clone());
            running.spawn(async move {
                let _slot = master.assignment.slots.acquire().await;
                let region = node.info.encoded_name();
                let added = if is_open {
                    match master.assignment.host_of(region) {
                        Ok(host) => host.snapshot_region(region, &name, flush).await,
                        // Its server is dead. To wait for another one would be for ever: what opens the region there needs the table's lock.
                        Err(error) => Err(error),
                    }
                } else {
                    let host = master.servers.choose(None, None, |_| 0)?;
                    host.snapshot_closed_region(node.info.clone(), table, &name).await
                };
                added.map_err(|error| match error {
                    HostError::Stopping => error.into(),
                    error => creation(format!("region {}: {error}", node.info.name_string())),
                })
            });
        }
        all(running).await?;
        let (name, table) = (self.snapshot.name.clone(), TableDescriptor::clone(&table));
        let add_mob = move |volume: &dyn fs::Volume| match snapshot::mob_region(volume, &table)? {
            Some(region) => Ok(snapshot::add_region(volume, &name, &region)?),
            None => Ok(()),
        };
        master.files.run(add_mob).await
    }

    /// Follows: `MasterSnapshotVerifier`.
    async fn verify(&self, master: &Master, manifest: Manifest) -> Result<()> {
        let corrupted = |what: String| MasterError::new(ErrorKind::CorruptedSnapshot, what);
        let of_manifest = manifest.regions.iter().filter(|region| !region.is_mob());
        let named: BTreeSet<Arc<str>> = of_manifest.map(|region| Arc::clone(region.info.encoded_name())).collect();
        let there = master.tables.all_regions(&self.table);
        if there.len() != named.len() {
            return Err(corrupted(format!(
                "Regions moved during the snapshot '{}'. expected={} snapshotted={}.",
                shown(&self.snapshot),
                there.len(),
                named.len()
            )));
        }
        if let Some(missing) = there.iter().find(|info| !named.contains(info.encoded_name())) {
            return Err(corrupted(format!(" No snapshot region directory found for region:{}", missing.name_string())));
        }
        let find = move |volume: &dyn fs::Volume| Ok(snapshot::restore::find_missing(volume, &manifest)?);
        master.files.run(find).await?.map_or(Ok(()), |what| Err(corrupted(what)))
    }

    async fn write(&self, master: &Arc<Master>) -> Result<()> {
        let description = self.snapshot.clone();
        master.files.run(move |volume| Ok(snapshot::begin(volume, &description)?)).await?;
        {
            // From here on the working directory names the files; until then nobody deletes what a region is about to name.
            let _no_cleaner = master.cleaner.lock().await;
            self.add_regions(master).await?;
        }
        self.say(|name| format!("Consolidate snapshot: {name}"));
        let (name, table) = (self.snapshot.name.clone(), self.descriptor(master)?);
        let manifest = master.files.run(move |volume| Ok(snapshot::consolidate(volume, &name, &table)?)).await?;
        self.say(|name| format!("Verifying snapshot: {name}"));
        self.verify(master, manifest).await
    }

    async fn clear_working(&self, master: &Master) -> Result<()> {
        let name = self.snapshot.name.clone();
        master.files.run(move |volume| Ok(snapshot::abandon(volume, &name)?)).await
    }

    /// The snapshot is where it belongs: HBase's next master only has to say so. As a part of another procedure it has no row, for that
    /// one's says which step takes it.
    async fn found_taken(&self, context: &Context) -> Result<()> {
        let record = context.env.procedures.record(context.id);
        match record.is_some_and(|record| record.parent_id.is_none()) {
            true => context.found_at(&steps(&TAKEN)).await,
            false => Ok(()),
        }
    }

    fn say(&self, status: impl Fn(&str) -> String) {
        self.task.iter().for_each(|task| task.set_status(status(&self.snapshot.name)));
    }
}

impl Procedure<Master> for TakeSnapshot {
    fn class_name(&self) -> &'static str {
        CLASS
    }

    fn state_data(&self) -> Vec<Any> {
        vec![any("SnapshotProcedureStateData", &pb::SnapshotProcedureStateData { snapshot: self.snapshot.clone() })]
    }

    fn locks(&self) -> Vec<(Resource, Mode)> {
        locks(&self.table, &self.snapshot.name)
    }

    fn first_step(&self) -> Step {
        State::SnapshotPrepare as Step
    }

    fn needs_open_regions(&self) -> bool {
        true
    }

    // HBase's takes it anew, whatever is in the working directory. Is it killed between the snapshot's move to its place and the row that says so,
    // HBase's moves its own into that directory, where nobody looks for any, and answers that it is taken.
    fn for_hbase(&self) -> Form {
        Form::Steps(steps(&TAKEN[..1]))
    }

    // Nothing is made durable between the first step and the last: after a crash the snapshot is begun anew.
    fn execute<'a>(&'a mut self, step: Step, context: &'a Context) -> BoxFuture<'a, Result<Next>> {
        Box::pin(async move {
            let master = &context.env;
            let what = || format!("Taking {} snapshot on table: {}", self.snapshot.r#type().as_str_name(), self.table);
            self.task.get_or_insert_with(|| master.tasks_now.begin(what(), "begun"));
            if step == State::SnapshotPrepare as Step {
                // The name is this procedure's alone: what is there, it made.
                if snapshots::is_taken(master, &self.snapshot.name).await? {
                    // After a power failure it may still be in the directory that it was moved from, too.
                    self.clear_working(master).await?;
                    return Ok(Next::Unsaved(State::SnapshotCompleteSnapshot as Step));
                }
                // HBase's master, if it had begun with it, looks at the table in a later step than this.
                set_type(master, &mut self.snapshot, &self.table)?;
                // Before what that has in the working directory goes.
                context.found_anew(&steps(&TAKEN[..1])).await?;
                return Ok(Next::Unsaved(State::SnapshotSnapshotOnlineRegions as Step));
            }
            if step == State::SnapshotSnapshotOnlineRegions as Step {
                self.write(master).await?;
                check_alive(&self.snapshot, master.clock.now_ms().0)?;
                return Ok(Next::Unsaved(State::SnapshotCompleteSnapshot as Step));
            }
            let name = self.snapshot.name.clone();
            master.files.run(move |volume| Ok(snapshot::complete(volume, &name)?)).await?;
            self.found_taken(context).await?;
            if let Some(task) = self.task.take() {
                task.complete(format!("Snapshot {}  completed", self.snapshot.name));
            }
            Ok(Next::Done(None))
        })
    }

    fn roll_back<'a>(&'a mut self, step: Step, context: &'a Context) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            if step != State::SnapshotPrepare as Step {
                return Ok(());
            }
            self.clear_working(&context.env).await
        })
    }

    fn may_abort(&self, step: Step) -> bool {
        step != State::SnapshotCompleteSnapshot as Step
    }
}
