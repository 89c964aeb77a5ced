//! EnableTableProcedure.

use super::state_text;
use crate::cluster::{RegionState, TableState};
use crate::host::BoxFuture;
use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::procedure::engine::{Procedure, Step, any, unpack};
use crate::procedure::for_hbase::Form;
use crate::procedure::{BoxedProcedure, Caller, Context, Next, ProcedureKind, table_locks};
use crate::{ErrorKind, MasterError, Result};
use convert::{from_proto, to_proto};
use model::{RegionInfo, TableName};
use proto::pb::{EnableTableState as State, RegionTransitionType};
use proto::{Any, pb};
use std::sync::Arc;

const CLASS: &str = "org.apache.hadoop.hbase.master.procedure.EnableTableProcedure";

pub(crate) const KIND: ProcedureKind =
    ProcedureKind { class_name: CLASS, read: |data| Ok(Box::new(EnableTable::read(data)?)) };

/// HBase's.
const STEPS: [Step; 5] = [
    State::EnableTablePrepare as Step,
    State::EnableTablePreOperation as Step,
    State::EnableTableSetEnablingTableState as Step,
    State::EnableTableMarkRegionsOnline as Step,
    State::EnableTableSetEnabledTableState as Step,
];

/// Regions that are nowhere.
pub(crate) fn closed_regions(master: &Master, table: &TableName) -> Vec<RegionInfo> {
    let cluster = master.cluster.read();
    let is_somewhere = |state| matches!(state, RegionState::Open | RegionState::Opening);
    let closed = cluster.regions_of(table).filter(|node| node.is_live() && !is_somewhere(node.state));
    closed.map(|node| node.info.clone()).collect()
}

/// A disabled table is opened.
#[derive(Debug)]
struct EnableTable {
    table: TableName,
}

/// Opens a disabled table; answers the procedure's id.
///
/// # Errors
/// No such table, not disabled.
pub(crate) async fn submit(master: &Arc<Master>, table: &TableName, caller: &Caller) -> Result<u64> {
    let prepare = async {
        let (_, state) = master.tables.existing(table)?;
        if state != TableState::Disabled {
            return Err(MasterError::new(ErrorKind::TableNotDisabled, state_text(table, state)));
        }
        Ok(Box::new(EnableTable { table: table.clone() }) as BoxedProcedure)
    };
    master.procedures.submit(master, caller.submission(table_locks(table)), prepare).await
}

/// Opens a table's regions. The caller holds its lock.
///
/// # Errors
/// The master stops, or hbase:meta cannot be written.
pub(crate) async fn enable(master: &Arc<Master>, table: &TableName) -> Result<()> {
    set_enabling(master, table).await?;
    open(master, table).await
}

async fn set_enabling(master: &Arc<Master>, table: &TableName) -> Result<()> {
    if master.cluster.read().state(table) != Some(TableState::Enabled) {
        master.tables.set_state(table, TableState::Enabling).await?;
    }
    Ok(())
}

async fn open(master: &Arc<Master>, table: &TableName) -> Result<()> {
    master.assignment.assign(master.tables.live_regions(table)).await?;
    master.tables.set_state(table, TableState::Enabled).await
}

impl EnableTable {
    fn read(data: &[Any]) -> Result<EnableTable> {
        let state: pb::EnableTableStateData = unpack(data)?;
        Ok(EnableTable { table: from_proto::table_name(&state.table_name)? })
    }
}

impl Procedure<Master> for EnableTable {
    fn class_name(&self) -> &'static str {
        CLASS
    }

    fn state_data(&self) -> Vec<Any> {
        let state = pb::EnableTableStateData {
            user_info: pb::UserInformation::default(),
            table_name: to_proto::table_name(&self.table),
            ..Default::default()
        };
        vec![any("EnableTableStateData", &state)]
    }

    fn locks(&self) -> Vec<(Resource, Mode)> {
        table_locks(&self.table)
    }

    fn first_step(&self) -> Step {
        State::EnableTableSetEnablingTableState as Step
    }

    fn for_hbase(&self) -> Form {
        Form::Steps(STEPS[..3].to_vec())
    }

    fn execute<'a>(&'a mut self, _step: Step, context: &'a Context) -> BoxFuture<'a, Result<Next>> {
        Box::pin(async move {
            let master = &context.env;
            set_enabling(master, &self.table).await?;
            let closed = closed_regions(master, &self.table);
            context.found_with_regions(&STEPS, closed, RegionTransitionType::Assign).await?;
            open(master, &self.table).await?;
            context.env.assignment.check_none_failed(&self.table)?;
            Ok(Next::Done(None))
        })
    }
}
