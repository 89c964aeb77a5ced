//! CreateTableProcedure.

use super::regions_by_split_keys;
use crate::check::check_table;
use crate::cluster::{RegionNode, RegionState, TableState};
use crate::host::BoxFuture;
use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::procedure::engine::{Procedure, Step, any, steps, unpack};
use crate::procedure::for_hbase::Form;
use crate::procedure::peer::modify;
use crate::procedure::{BoxedProcedure, Caller, Context, Next, ProcedureKind};
use crate::procedure::{infos_from_proto, infos_to_proto, table_locks};
use crate::{ErrorKind, MasterError, Result, groups, meta, quotas, trackers};
use bytes::Bytes;
use convert::{from_proto, to_proto};
use model::{RegionInfo, TableDescriptor};
use proto::pb::{CreateTableState as State, RegionTransitionType};
use proto::{Any, pb};
use std::collections::BTreeSet;
use std::sync::Arc;

const CLASS: &str = "org.apache.hadoop.hbase.master.procedure.CreateTableProcedure";

pub(crate) const KIND: ProcedureKind =
    ProcedureKind { class_name: CLASS, read: |data| Ok(Box::new(CreateTable::read(data)?)) };

/// A table is made with these regions.
#[derive(Debug)]
struct CreateTable {
    table: Arc<TableDescriptor>,
    regions: Vec<RegionInfo>,
}

/// Makes a table with regions at these split keys; answers the procedure's id.
///
/// # Errors
/// Illegal names and attributes, a table of that name, no such namespace.
pub(crate) async fn submit(
    master: &Arc<Master>,
    table: TableDescriptor,
    split_keys: &[Bytes],
    caller: &Caller,
) -> Result<u64> {
    if table.name.is_system() && master.is_initialized() {
        // HBase's own tables are made by their owners, which are not here.
        tracing::warn!(table = %table.name, "a client makes a table in the namespace hbase");
    }
    master.namespaces.existing(table.name.namespace())?;
    let mut group = None;
    // What the server makes for itself bears any setting; follows `HMaster#createSystemTable`.
    if !table.name.is_system() || master.is_initialized() {
        check_table(&master.settings().limits, &table)?;
        group = groups::check_create(master, &table).await?;
        master.assignment.check_replication(&table)?;
    }
    let trackers = master.settings().limits.trackers().clone();
    let table = Arc::new(trackers.named_in(table));
    let region_id = master.catalog.next_region_id(&[]);
    let regions = regions_by_split_keys(&table.name, split_keys, region_id)?;
    let submission = caller.submission(table_locks(&table.name));
    let prepare = async {
        master.namespaces.existing(table.name.namespace())?;
        // One whose descriptor is damaged or gone has its regions still.
        let is_there = {
            let cluster = master.cluster.read();
            cluster.exists(&table.name) || cluster.regions_of(&table.name).next().is_some()
        };
        if is_there {
            return Err(MasterError::new(ErrorKind::TableExists, &table.name));
        }
        trackers::check_create(&trackers, &table)?;
        quotas::namespace::check_create(master, &table.name, regions.len())?;
        groups::move_new_table(master, &table.name, group).await?;
        Ok(Box::new(CreateTable { table: Arc::clone(&table), regions }) as BoxedProcedure)
    };
    master.procedures.submit(master, submission, prepare).await
}

/// The table's descriptor and its regions' directories, durable.
pub(super) async fn make_region_dirs(
    master: &Arc<Master>,
    table: &Arc<TableDescriptor>,
    regions: &[RegionInfo],
) -> Result<()> {
    let described = Arc::clone(table);
    master
        .files
        .run(move |volume| {
            rootdir::descriptor::write(volume, &described).map_err(|error| MasterError::new(ErrorKind::Io, error))
        })
        .await?;
    let chunk_len = regions.len().div_ceil(master.open_slots_count).max(1);
    let chunks = regions.chunks(chunk_len).map(|chunk| {
        let (chunk, table) = (chunk.to_vec(), Arc::clone(table));
        master.files.run(move |volume| Ok(rootdir::create_region_dirs(volume, &chunk, &table)?))
    });
    // Each chunk begins at once on a thread of its own; then they are waited for.
    let started: Vec<_> = chunks.collect();
    for chunk in started {
        chunk.await?;
    }
    let dir = rootdir::table_dir(&table.name);
    master.files.run(move |volume| Ok(volume.sync_dir(&dir)?)).await
}

/// Rows of hbase:meta (those of `old` regions go), then the regions open, then the table is enabled. `opened` are the steps with which HBase's
/// master goes on when they are open.
pub(super) async fn fill_table(
    context: &Context,
    table: &Arc<TableDescriptor>,
    regions: &[RegionInfo],
    old: &[RegionInfo],
    opened: &[Step],
) -> Result<()> {
    let (master, name) = (&context.env, &table.name);
    let stamp = master.catalog.stamp();
    let removed = old.iter().map(|info| meta::delete_region(info, stamp));
    // A repetition must not take back the location of a region that is open already, or that a server may be opening.
    let open: BTreeSet<Arc<str>> = {
        let cluster = master.cluster.read();
        let is_somewhere = |node: &&RegionNode| match node.state {
            RegionState::Open => true,
            RegionState::Opening => node.location.is_some(),
            _ => false,
        };
        let nodes = cluster.regions_of(name).filter(is_somewhere);
        nodes.map(|node| Arc::clone(node.info.encoded_name())).collect()
    };
    let added = regions
        .iter()
        .filter(|info| !open.contains(info.encoded_name()))
        .map(|info| meta::put_region(info, RegionState::Closed, stamp));
    let state = std::iter::once(meta::put_table_state(name, TableState::Enabling, stamp));
    master.catalog.write_many(removed.chain(added).chain(state).collect()).await?;
    {
        let mut cluster = master.cluster.write();
        for info in old {
            cluster.remove_region(info);
        }
        cluster.put_table(Arc::clone(table), TableState::Enabling);
        for info in regions.iter().filter(|info| !open.contains(info.encoded_name())) {
            cluster.put_region(RegionNode::new(info.clone(), RegionState::Closed, stamp));
        }
    }
    master.observer.table_state(name, Some(TableState::Enabling));
    if table.region_replication() > 1 {
        modify::set_up_read_replicas(master).await?;
    }
    let to_open = regions.iter().filter(|info| !open.contains(info.encoded_name())).cloned().collect();
    context.found_with_regions(opened, to_open, RegionTransitionType::Assign).await?;
    master.assignment.assign(regions.to_vec()).await?;
    master.tables.set_state(name, TableState::Enabled).await?;
    master.assignment.check_none_failed(name)
}

impl CreateTable {
    fn read(data: &[Any]) -> Result<CreateTable> {
        let state: pb::CreateTableStateData = unpack(data)?;
        let table = Arc::new(from_proto::table(&state.table_schema)?);
        Ok(CreateTable { table, regions: infos_from_proto(&state.region_info)? })
    }
}

impl Procedure<Master> for CreateTable {
    fn class_name(&self) -> &'static str {
        CLASS
    }

    fn state_data(&self) -> Vec<Any> {
        let state = pb::CreateTableStateData {
            user_info: pb::UserInformation::default(),
            table_schema: to_proto::table(&self.table),
            region_info: infos_to_proto(&self.regions),
        };
        vec![any("CreateTableStateData", &state)]
    }

    fn locks(&self) -> Vec<(Resource, Mode)> {
        table_locks(&self.table.name)
    }

    fn first_step(&self) -> Step {
        State::CreateTableWriteFsLayout as Step
    }

    fn for_hbase(&self) -> Form {
        Form::Steps(steps(&[State::CreateTablePreOperation, State::CreateTableWriteFsLayout]))
    }

    fn execute<'a>(&'a mut self, step: Step, context: &'a Context) -> BoxFuture<'a, Result<Next>> {
        use State::{
            CreateTableAddToMeta as AddToMeta, CreateTableAssignRegions as AssignRegions,
            CreateTablePreOperation as PreOperation, CreateTableUpdateDescCache as UpdateDescCache,
            CreateTableWriteFsLayout as WriteFsLayout,
        };
        Box::pin(async move {
            if step == WriteFsLayout as Step {
                make_region_dirs(&context.env, &self.table, &self.regions).await?;
                return Ok(Next::Unsaved(AddToMeta as Step));
            }
            context.found_at(&steps(&[PreOperation, WriteFsLayout, AddToMeta])).await?;
            let opened = steps(&[PreOperation, WriteFsLayout, AddToMeta, AssignRegions, UpdateDescCache]);
            fill_table(context, &self.table, &self.regions, &[], &opened).await?;
            groups::table_made(&context.env, &self.table.name).await?;
            Ok(Next::Done(None))
        })
    }
}
