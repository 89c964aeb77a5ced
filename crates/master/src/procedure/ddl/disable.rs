//! DisableTableProcedure.

use super::modify::open_regions_of;
use crate::cluster::TableState;
use crate::host::BoxFuture;
use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::procedure::engine::{Procedure, Step, any, unpack};
use crate::procedure::for_hbase::Form;
use crate::procedure::{BoxedProcedure, Caller, Context, Next, ProcedureKind, table_locks};
use crate::{ErrorKind, MasterError, Result};
use convert::{from_proto, to_proto};
use model::TableName;
use proto::pb::{DisableTableState as State, RegionTransitionType};
use proto::{Any, pb};
use std::sync::Arc;

const CLASS: &str = "org.apache.hadoop.hbase.master.procedure.DisableTableProcedure";

pub(crate) const KIND: ProcedureKind =
    ProcedureKind { class_name: CLASS, read: |data| Ok(Box::new(DisableTable::read(data)?)) };

/// HBase's.
const STEPS: [Step; 4] = [
    State::DisableTablePrepare as Step,
    State::DisableTablePreOperation as Step,
    State::DisableTableSetDisablingTableState as Step,
    State::DisableTableMarkRegionsOffline as Step,
];

/// An enabled table is closed.
#[derive(Debug)]
struct DisableTable {
    table: TableName,
}

/// Closes a table; answers the procedure's id.
///
/// # Errors
/// No such table, not enabled, hbase:meta.
pub(crate) async fn submit(master: &Arc<Master>, table: &TableName, caller: &Caller) -> Result<u64> {
    let prepare = async {
        if table.is_meta() || *table == TableName::namespace_table() {
            return Err(MasterError::new(ErrorKind::Constraint, format!("Cannot disable {table}")));
        }
        let (_, state) = master.tables.existing(table)?;
        if state != TableState::Enabled {
            return Err(MasterError::new(ErrorKind::TableNotEnabled, table));
        }
        Ok(Box::new(DisableTable { table: table.clone() }) as BoxedProcedure)
    };
    master.procedures.submit(master, caller.submission(table_locks(table)), prepare).await
}

/// Closes a table's regions. The caller holds its lock.
///
/// # Errors
/// The master stops, hbase:meta cannot be written, or a region cannot be flushed and closed.
pub(crate) async fn disable(master: &Arc<Master>, table: &TableName) -> Result<()> {
    master.tables.set_state(table, TableState::Disabling).await?;
    master.assignment.unassign(master.tables.live_regions(table)).await?;
    master.tables.set_state(table, TableState::Disabled).await
}

impl DisableTable {
    fn read(data: &[Any]) -> Result<DisableTable> {
        let state: pb::DisableTableStateData = unpack(data)?;
        Ok(DisableTable { table: from_proto::table_name(&state.table_name)? })
    }
}

impl Procedure<Master> for DisableTable {
    fn class_name(&self) -> &'static str {
        CLASS
    }

    fn state_data(&self) -> Vec<Any> {
        let state = pb::DisableTableStateData {
            user_info: pb::UserInformation::default(),
            table_name: to_proto::table_name(&self.table),
            skip_table_state_check: false,
        };
        vec![any("DisableTableStateData", &state)]
    }

    fn locks(&self) -> Vec<(Resource, Mode)> {
        table_locks(&self.table)
    }

    fn first_step(&self) -> Step {
        State::DisableTableSetDisablingTableState as Step
    }

    fn for_hbase(&self) -> Form {
        Form::Steps(STEPS[..3].to_vec())
    }

    fn execute<'a>(&'a mut self, _step: Step, context: &'a Context) -> BoxFuture<'a, Result<Next>> {
        Box::pin(async move {
            // HBase's closes what is still open when these are closed.
            let open = open_regions_of(&context.env, &self.table);
            context.found_with_regions(&STEPS, open, RegionTransitionType::Unassign).await?;
            disable(&context.env, &self.table).await?;
            Ok(Next::Done(None))
        })
    }
}
