//! FlushTableProcedure.

use crate::cluster::{RegionState, TableState};
use crate::host::BoxFuture;
use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::procedure::engine::{Procedure, Step, any, steps, unpack};
use crate::procedure::for_hbase::Form;
use crate::procedure::{BoxedProcedure, Caller, Context, Next, ProcedureKind};
use crate::{ErrorKind, HostError, MasterError, Result};
use bytes::Bytes;
use convert::{from_proto, to_proto};
use model::TableName;
use proto::pb::FlushTableState as State;
use proto::{Any, pb};
use std::sync::Arc;

const CLASS: &str = "org.apache.hadoop.hbase.master.procedure.FlushTableProcedure";

pub(crate) const KIND: ProcedureKind =
    ProcedureKind { class_name: CLASS, read: |data| Ok(Box::new(FlushTable::read(data)?)) };

/// A table's memstores are written out, of all families or of these.
#[derive(Debug)]
struct FlushTable {
    table: TableName,
    families: Vec<Bytes>,
}

fn locks(table: &TableName) -> Vec<(Resource, Mode)> {
    vec![(Resource::Table(table.clone()), Mode::Shared)]
}

/// Writes a table's memstores out, of all families or of these; answers the procedure's id.
///
/// # Errors
/// No such table, not enabled, no such family.
pub(crate) async fn submit(
    master: &Arc<Master>,
    table: &TableName,
    families: Vec<Bytes>,
    caller: &Caller,
) -> Result<u64> {
    let prepare = async {
        let descriptor = master.tables.must_exist(table)?;
        if master.cluster.read().state(table) != Some(TableState::Enabled) {
            return Err(MasterError::new(ErrorKind::TableNotEnabled, table));
        }
        let missing = families.iter().filter(|family| !descriptor.families.contains_key(*family));
        let missing: Vec<_> = missing.map(|family| String::from_utf8_lossy(family)).collect();
        if !missing.is_empty() {
            let message = format!("Column families [{}] don't exist in table {table}", missing.join(", "));
            return Err(MasterError::new(ErrorKind::NoSuchColumnFamily, message));
        }
        Ok(Box::new(FlushTable { table: table.clone(), families }) as BoxedProcedure)
    };
    master.procedures.submit(master, caller.submission(locks(table)), prepare).await
}

impl FlushTable {
    fn read(data: &[Any]) -> Result<FlushTable> {
        let state: pb::FlushTableProcedureStateData = unpack(data)?;
        Ok(FlushTable { table: from_proto::table_name(&state.table_name)?, families: state.column_family })
    }
}

impl Procedure<Master> for FlushTable {
    fn class_name(&self) -> &'static str {
        CLASS
    }

    fn state_data(&self) -> Vec<Any> {
        let state = pb::FlushTableProcedureStateData {
            table_name: to_proto::table_name(&self.table),
            column_family: self.families.clone(),
        };
        vec![any("FlushTableProcedureStateData", &state)]
    }

    fn locks(&self) -> Vec<(Resource, Mode)> {
        locks(&self.table)
    }

    fn first_step(&self) -> Step {
        State::FlushTableFlushRegions as Step
    }

    // HBase's asks every region again.
    fn for_hbase(&self) -> Form {
        Form::Steps(steps(&[State::FlushTablePrepare, State::FlushTableFlushRegions]))
    }

    fn needs_open_regions(&self) -> bool {
        true
    }

    fn execute<'a>(&'a mut self, _step: Step, context: &'a Context) -> BoxFuture<'a, Result<Next>> {
        Box::pin(async move {
            let regions: Vec<Arc<str>> = {
                let cluster = context.env.cluster.read();
                let open = cluster.regions_of(&self.table).filter(|node| node.state == RegionState::Open);
                open.map(|node| Arc::clone(node.info.encoded_name())).collect()
            };
            for region in regions {
                // One that closed since was flushed by that.
                let Ok(host) = context.env.assignment.host_of(&region) else { continue };
                match host.flush_region(&region, self.families.clone()).await {
                    // A region that closed meanwhile was flushed by that.
                    Err(HostError::Refused(_)) | Ok(()) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(Next::Done(None))
        })
    }
}
