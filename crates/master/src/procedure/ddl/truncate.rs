//! TruncateTableProcedure.

use super::create::{fill_table, make_region_dirs};
use super::regions_by_split_keys;
use crate::host::BoxFuture;
use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::procedure::engine::{Procedure, Step, any, malformed, steps, unpack};
use crate::procedure::for_hbase::Form;
use crate::procedure::snapshot::recovery::Recovery;
use crate::procedure::{BoxedProcedure, Caller, Context, Next, ProcedureKind};
use crate::procedure::{infos_from_proto, infos_to_proto, table_locks};
use crate::{ErrorKind, MasterError, Result};
use bytes::Bytes;
use convert::{from_proto, to_proto};
use model::{RegionInfo, TableDescriptor, TableName};
use proto::pb::TruncateTableState as State;
use proto::{Any, pb};
use std::sync::Arc;

const CLASS: &str = "org.apache.hadoop.hbase.master.procedure.TruncateTableProcedure";

pub(crate) const KIND: ProcedureKind =
    ProcedureKind { class_name: CLASS, read: |data| Ok(Box::new(TruncateTable::read(data)?)) };

/// A disabled table gets new regions; the files of the old ones go to the archive.
#[derive(Debug)]
struct TruncateTable {
    table: Arc<TableDescriptor>,
    preserve_splits: bool,
    old: Vec<RegionInfo>,
    new: Vec<RegionInfo>,
    recovery: Recovery,
}

/// Deletes and makes again a disabled table, with its splits if they are to be preserved; it ends enabled.
///
/// # Errors
/// No such table, not disabled.
pub(crate) async fn submit(
    master: &Arc<Master>,
    table: &TableName,
    preserve_splits: bool,
    caller: &Caller,
) -> Result<u64> {
    let prepare = async {
        if table.is_system() {
            return Err(MasterError::new(ErrorKind::Constraint, format!("Cannot truncate {table}")));
        }
        let descriptor = master.tables.must_be_disabled(table)?;
        let old = master.tables.all_regions(table);
        let region_id = master.catalog.next_region_id(&old);
        let split_keys: Vec<Bytes> = if preserve_splits {
            master
                .tables
                .live_regions(table)
                .into_iter()
                .map(|info| info.start_key)
                .filter(|key| !key.is_empty())
                .collect()
        } else {
            Vec::new()
        };
        let new = regions_by_split_keys(table, &split_keys, region_id)?;
        let recovery = Recovery::planned(master, table);
        Ok(Box::new(TruncateTable { table: descriptor, preserve_splits, old, new, recovery }) as BoxedProcedure)
    };
    master.procedures.submit(master, caller.submission(table_locks(table)), prepare).await
}

impl TruncateTable {
    fn read(data: &[Any]) -> Result<TruncateTable> {
        let state: pb::TruncateTableStateData = unpack(data)?;
        let mut old = infos_from_proto(&state.region_info)?;
        let kept = state.snapshot_name.as_deref().unwrap_or("");
        let (old_len, snapshot) = kept.split_once(' ').map_or((kept, None), |(len, name)| (len, Some(name.to_owned())));
        let old_len = old_len.parse().unwrap_or(0);
        if old_len > old.len() {
            return Err(malformed("fewer regions than it says"));
        }
        let new = old.split_off(old_len);
        let table = match (&state.table_schema, &state.table_name) {
            (Some(schema), _) => from_proto::table(schema)?,
            // As HBase's master leaves one that only has to tell of its end.
            (None, Some(name)) => TableDescriptor::new(from_proto::table_name(name)?, []),
            (None, None) => return Err(malformed("no table")),
        };
        let table = Arc::new(table);
        Ok(TruncateTable {
            table,
            preserve_splits: state.preserve_splits,
            old,
            new,
            recovery: Recovery::read(snapshot),
        })
    }

    /// As HBase keeps it: with the old regions until their files are gone, with the new ones from then on.
    fn hbase_data(&self, regions: &[RegionInfo]) -> Vec<Any> {
        let state = pb::TruncateTableStateData {
            user_info: pb::UserInformation::default(),
            preserve_splits: self.preserve_splits,
            table_name: Some(to_proto::table_name(&self.table.name)),
            table_schema: Some(to_proto::table(&self.table)),
            region_info: infos_to_proto(regions),
            snapshot_name: self.recovery.name().map(str::to_owned),
        };
        vec![any("TruncateTableStateData", &state)]
    }
}

impl Procedure<Master> for TruncateTable {
    fn class_name(&self) -> &'static str {
        CLASS
    }

    // HBase keeps one list of regions, the old or the new by its step; ours keeps both, the old ones first, and how many they are
    // before the name of the snapshot.
    fn state_data(&self) -> Vec<Any> {
        let old_len = self.old.len();
        let state = pb::TruncateTableStateData {
            user_info: pb::UserInformation::default(),
            preserve_splits: self.preserve_splits,
            table_name: Some(to_proto::table_name(&self.table.name)),
            table_schema: Some(to_proto::table(&self.table)),
            region_info: infos_to_proto(&[self.old.as_slice(), &self.new].concat()),
            snapshot_name: Some(match self.recovery.name() {
                Some(name) => format!("{old_len} {name}"),
                None => old_len.to_string(),
            }),
        };
        vec![any("TruncateTableStateData", &state)]
    }

    fn locks(&self) -> Vec<(Resource, Mode)> {
        table_locks(&self.table.name)
    }

    fn first_step(&self) -> Step {
        let with_snapshot = self.recovery.is_planned();
        (if with_snapshot { State::TruncateTableSnapshot } else { State::TruncateTableClearFsLayout }) as Step
    }

    // HBase's makes the new regions of these, and so of no replicas and no parents of others; a snapshot it takes under a name of its own.
    fn for_hbase(&self) -> Form {
        let old: Vec<RegionInfo> = self.old.iter().filter(|info| !info.is_replica() && !info.split).cloned().collect();
        Form::With(vec![State::TruncateTablePreOperation as Step, self.first_step()], self.hbase_data(&old))
    }

    fn execute<'a>(&'a mut self, step: Step, context: &'a Context) -> BoxFuture<'a, Result<Next>> {
        use State::{
            TruncateTableAddToMeta as AddToMeta, TruncateTableAssignRegions as AssignRegions,
            TruncateTableClearFsLayout as ClearFsLayout, TruncateTableCreateFsLayout as CreateFsLayout,
            TruncateTablePostOperation as PostOperation, TruncateTablePreOperation as PreOperation,
            TruncateTableRemoveFromMeta as RemoveFromMeta,
        };
        Box::pin(async move {
            let master = &context.env;
            let removed = [PreOperation, ClearFsLayout, RemoveFromMeta];
            if step == State::TruncateTableSnapshot as Step {
                let snapshot = self.recovery.children(master, &self.table);
                return Ok(Next::Children(snapshot, State::TruncateTableClearFsLayout as Step));
            }
            self.recovery.keep();
            if step == State::TruncateTableClearFsLayout as Step {
                let (name, kept) = (self.table.name.clone(), self.new.clone());
                let archive =
                    move |volume: &dyn fs::Volume| Ok(rootdir::archive::archive_other_regions(volume, &name, &kept)?);
                // From here on HBase's removes what it finds, whatever of this step and the next two is done.
                context.found_with(&steps(&removed), self.hbase_data(&self.new)).await?;
                master.files.run(archive).await?;
                return Ok(Next::Unsaved(State::TruncateTableCreateFsLayout as Step));
            }
            if step == State::TruncateTableCreateFsLayout as Step {
                make_region_dirs(master, &self.table, &self.new).await?;
                return Ok(Next::Unsaved(State::TruncateTableAddToMeta as Step));
            }
            // HBase's master may have left more than are in the record: it forgets the old ones once their files are gone.
            let mut old = master.tables.all_regions(&self.table.name);
            old.retain(|info| self.new.iter().all(|new| new.encoded_name() != info.encoded_name()));
            let opened = [&removed[..], &[CreateFsLayout, AddToMeta, AssignRegions, PostOperation]].concat();
            fill_table(context, &self.table, &self.new, &old, &steps(&opened)).await?;
            Ok(Next::Done(None))
        })
    }

    fn roll_back<'a>(&'a mut self, step: Step, context: &'a Context) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            if step != State::TruncateTableSnapshot as Step {
                return Ok(());
            }
            self.recovery.undo(&context.env).await
        })
    }
}
