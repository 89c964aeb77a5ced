//! DeleteTableProcedure.

use super::state_text;
use crate::cluster::TableState;
use crate::host::BoxFuture;
use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::procedure::engine::{Procedure, Step, any, unpack};
use crate::procedure::for_hbase::Form;
use crate::procedure::snapshot::recovery::Recovery;
use crate::procedure::{BoxedProcedure, Caller, Context, Next, ProcedureKind};
use crate::procedure::{infos_from_proto, infos_to_proto, table_locks};
use crate::{ErrorKind, MasterError, Result, groups, meta, quotas};
use convert::{from_proto, to_proto};
use model::{RegionInfo, TableName};
use proto::pb::DeleteTableState as State;
use proto::{Any, pb};
use quota::rows::Subject;
use std::sync::Arc;

const CLASS: &str = "org.apache.hadoop.hbase.master.procedure.DeleteTableProcedure";

pub(crate) const KIND: ProcedureKind =
    ProcedureKind { class_name: CLASS, read: |data| Ok(Box::new(DeleteTable::read(data)?)) };

/// A disabled table is deleted; its files go to the archive.
#[derive(Debug)]
struct DeleteTable {
    table: TableName,
    regions: Vec<RegionInfo>,
    recovery: Recovery,
}

/// Deletes a disabled table; answers the procedure's id.
///
/// # Errors
/// No such table, not disabled.
pub(crate) async fn submit(master: &Arc<Master>, table: &TableName, caller: &Caller) -> Result<u64> {
    let prepare = async {
        if table.is_meta() {
            return Err(MasterError::new(ErrorKind::Io, "Can't modify catalog tables"));
        }
        let (_, state) = master.tables.existing(table)?;
        if state != TableState::Disabled {
            let why = format!("Not DISABLED; {}", state_text(table, state));
            return Err(MasterError::new(ErrorKind::TableNotDisabled, why));
        }
        let (regions, recovery) = (master.tables.all_regions(table), Recovery::planned(master, table));
        Ok(Box::new(DeleteTable { table: table.clone(), regions, recovery }) as BoxedProcedure)
    };
    master.procedures.submit(master, caller.submission(table_locks(table)), prepare).await
}

impl DeleteTable {
    fn read(data: &[Any]) -> Result<DeleteTable> {
        let state: pb::DeleteTableStateData = unpack(data)?;
        let table = from_proto::table_name(&state.table_name)?;
        let regions = infos_from_proto(&state.region_info)?;
        Ok(DeleteTable { table, regions, recovery: Recovery::read(state.snapshot_name) })
    }
}

impl Procedure<Master> for DeleteTable {
    fn class_name(&self) -> &'static str {
        CLASS
    }

    fn state_data(&self) -> Vec<Any> {
        let state = pb::DeleteTableStateData {
            user_info: pb::UserInformation::default(),
            table_name: to_proto::table_name(&self.table),
            region_info: infos_to_proto(&self.regions),
            snapshot_name: self.recovery.name().map(str::to_owned),
        };
        vec![any("DeleteTableStateData", &state)]
    }

    fn locks(&self) -> Vec<(Resource, Mode)> {
        table_locks(&self.table)
    }

    fn first_step(&self) -> Step {
        let with_snapshot = self.recovery.is_planned();
        (if with_snapshot { State::DeleteTableSnapshot } else { State::DeleteTableClearFsLayout }) as Step
    }

    fn for_hbase(&self) -> Form {
        let next =
            if self.recovery.is_planned() { State::DeleteTableSnapshot } else { State::DeleteTableClearFsLayout };
        Form::Steps(vec![State::DeleteTablePreOperation as Step, next as Step])
    }

    fn execute<'a>(&'a mut self, step: Step, context: &'a Context) -> BoxFuture<'a, Result<Next>> {
        Box::pin(async move {
            let (master, table) = (&context.env, self.table.clone());
            if step == State::DeleteTableSnapshot as Step {
                let (descriptor, _) = master.tables.existing(&table)?;
                let snapshot = self.recovery.children(master, &descriptor);
                return Ok(Next::Children(snapshot, State::DeleteTableClearFsLayout as Step));
            }
            self.recovery.keep();
            if step == State::DeleteTableClearFsLayout as Step {
                let done =
                    [State::DeleteTablePreOperation, State::DeleteTableSnapshot, State::DeleteTableClearFsLayout];
                context.found_at(&done.map(|state| state as Step)).await?;
                master.files.run(move |volume| Ok(rootdir::archive_table(volume, &table)?)).await?;
                return Ok(Next::Unsaved(State::DeleteTableRemoveFromMeta as Step));
            }
            let stamp = master.catalog.delete_stamp();
            let regions = self.regions.iter().map(|info| meta::delete_region(info, stamp));
            let rows = regions.chain(std::iter::once(meta::delete_table_state(&table, stamp)));
            master.catalog.write_many(rows.collect()).await?;
            master.cluster.write().remove_table(&table);
            master.observer.table_state(&table, None);
            groups::table_deleted(master, &table).await?;
            quotas::forget(master, Subject::Table(table)).await?;
            Ok(Next::Done(None))
        })
    }

    fn roll_back<'a>(&'a mut self, step: Step, context: &'a Context) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            if step != State::DeleteTableSnapshot as Step {
                return Ok(());
            }
            self.recovery.undo(&context.env).await
        })
    }
}
