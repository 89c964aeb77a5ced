//! ModifyTableStoreFileTrackerProcedure and ModifyColumnFamilyStoreFileTrackerProcedure: a table or family gets another store file tracker,
//! by way of a migration. Each change of the descriptor is a ModifyTableProcedure, which reopens the regions.

use super::modify;
use crate::cluster::TableState;
use crate::host::BoxFuture;
use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::procedure::engine::{Procedure, Step, any, malformed, unpack, unpack_one};
use crate::procedure::{BoxedProcedure, Caller, Context, Next, ProcedureKind, table_locks};
use crate::{ErrorKind, MasterError, Result};
use bytes::Bytes;
use convert::{from_proto, to_proto};
use model::{TableDescriptor, TableName};
use proto::pb::ModifyStoreFileTrackerState as State;
use proto::{Any, pb};
use rootdir::tracker::{Class, IMPL_KEY, SOURCE_KEY, Site, TARGET_KEY};
use std::sync::Arc;

const TABLE_CLASS: &str = "org.apache.hadoop.hbase.regionserver.storefiletracker.ModifyTableStoreFileTrackerProcedure";
const FAMILY_CLASS: &str =
    "org.apache.hadoop.hbase.regionserver.storefiletracker.ModifyColumnFamilyStoreFileTrackerProcedure";

pub(crate) const TABLE_KIND: ProcedureKind =
    ProcedureKind { class_name: TABLE_CLASS, read: |data| Ok(Box::new(ModifyTracker::read_of_table(data)?)) };
pub(crate) const FAMILY_KIND: ProcedureKind =
    ProcedureKind { class_name: FAMILY_CLASS, read: |data| Ok(Box::new(ModifyTracker::read_of_family(data)?)) };

/// A table, or one family of it, gets another tracker.
#[derive(Debug)]
struct ModifyTracker {
    table: TableName,
    family: Option<Bytes>,
    target: String,
}

/// Gives a table, or one family of it, the tracker called `target`; answers the procedure's id.
///
/// # Errors
/// No such tracker, or it is a migration; no such table, not enabled. As in HBase, what is wrong with the family ends the procedure.
pub(crate) async fn submit(
    master: &Arc<Master>,
    table: &TableName,
    family: Option<Bytes>,
    target: &str,
    caller: &Caller,
) -> Result<u64> {
    // Here HBase has its class loader's words.
    let none = |_| MasterError::new(ErrorKind::Io, format!("java.lang.ClassNotFoundException: {target}"));
    if Class::parse(target).map_err(none)? == Class::Migration {
        return Err(MasterError::do_not_retry(format!("Do not need to transfer to {target}")));
    }
    let procedure = ModifyTracker { table: table.clone(), family, target: target.to_owned() };
    let prepare = async {
        procedure.check_table(master)?;
        Ok(Box::new(procedure) as BoxedProcedure)
    };
    master.procedures.submit(master, caller.submission(table_locks(table)), prepare).await
}

/// What is to be done next.
enum Need {
    FinishOther(Class),
    Start,
    Finish,
    Nothing,
}

impl ModifyTracker {
    fn read_of_table(data: &[Any]) -> Result<ModifyTracker> {
        let state: pb::ModifyStoreFileTrackerStateData = unpack(data)?;
        Ok(ModifyTracker { table: from_proto::table_name(&state.table_name)?, family: None, target: state.dst_sft })
    }

    fn read_of_family(data: &[Any]) -> Result<ModifyTracker> {
        let state: pb::ModifyColumnFamilyStoreFileTrackerStateData = unpack(data)?;
        let before_last = data.len().checked_sub(2).and_then(|at| data.get(at));
        let of_table: pb::ModifyStoreFileTrackerStateData = unpack_one(before_last)?;
        let table = from_proto::table_name(&of_table.table_name)?;
        Ok(ModifyTracker { table, family: Some(state.family), target: of_table.dst_sft })
    }

    fn check_table(&self, master: &Master) -> Result<Arc<TableDescriptor>> {
        let (table, state) = master.tables.existing(&self.table)?;
        if !matches!(state, TableState::Enabled | TableState::Enabling) {
            return Err(MasterError::new(ErrorKind::TableNotEnabled, &self.table));
        }
        Ok(table)
    }

    fn check_family(&self, table: &TableDescriptor) -> Result<()> {
        match self.family.as_ref().filter(|family| !table.families.contains_key(*family)) {
            Some(family) => {
                let family = cell::print::to_string_binary(family);
                let message = format!("{family} does not exist for table {}", self.table);
                Err(MasterError::new(ErrorKind::NoSuchColumnFamily, message))
            }
            None => Ok(()),
        }
    }

    /// What the table, or the family, says now.
    fn words(&self, master: &Master, table: &TableDescriptor) -> Site {
        let of_table = master.settings().limits.trackers().with(table.overrides());
        match self.family.as_ref().and_then(|family| table.families.get(family)) {
            Some(family) => of_table.with(family.overrides()),
            None => of_table,
        }
    }

    fn need(&self, words: &Site) -> Result<Need> {
        let (now, target) = (words.class()?, Class::parse(&self.target)?);
        if now == target {
            return Ok(Need::Nothing);
        }
        if now != Class::Migration {
            return Ok(Need::Start);
        }
        let under_way = words.target()?;
        Ok(if under_way == target { Need::Finish } else { Need::FinishOther(under_way) })
    }

    /// The descriptor with these words of trackers in place of those that it has.
    fn with(&self, table: &TableDescriptor, words: &[(&str, Option<&str>)]) -> TableDescriptor {
        let mut table = table.clone();
        for (key, value) in words {
            match self.family.as_ref().and_then(|family| table.families.get_mut(family)) {
                Some(family) => {
                    // A word among the attributes would count more.
                    family.attributes.remove(key.as_bytes());
                    match value {
                        Some(value) => family.configuration.insert((*key).to_owned(), (*value).to_owned()),
                        None => family.configuration.remove(*key),
                    };
                }
                None => {
                    table.configuration.remove(*key);
                    match value {
                        Some(value) => {
                            let (key, value) = ((*key).to_owned(), (*value).to_owned());
                            table.attributes.insert(Bytes::from(key), Bytes::from(value))
                        }
                        None => table.attributes.remove(key.as_bytes()),
                    };
                }
            }
        }
        table
    }

    fn finished(&self, table: &TableDescriptor) -> TableDescriptor {
        self.with(table, &[(IMPL_KEY, Some(&self.target)), (SOURCE_KEY, None), (TARGET_KEY, None)])
    }

    fn migrating(&self, table: &TableDescriptor, words: &Site) -> TableDescriptor {
        let source = words.name();
        self.with(table, &[(IMPL_KEY, Some("MIGRATION")), (SOURCE_KEY, Some(source)), (TARGET_KEY, Some(&self.target))])
    }

    /// The next change, and the step after it.
    fn advance(&self, master: &Master) -> Result<Next> {
        let table = self.check_table(master)?;
        self.check_family(&table)?;
        let words = self.words(master, &table);
        let (new, then) = match self.need(&words)? {
            Need::Nothing => return Ok(Next::Done(None)),
            Need::FinishOther(under_way) => {
                let new = self.with(&table, &[(IMPL_KEY, Some(under_way.name()))]);
                (new, State::ModifyStoreFileTrackerFinishPreviousMigration)
            }
            Need::Start => (self.migrating(&table, &words), State::ModifyStoreFileTrackerFinishMigration),
            Need::Finish => (self.finished(&table), State::ModifyStoreFileTrackerFinishMigration),
        };
        let child = modify::child(master, &table, new)?;
        Ok(Next::Children(vec![child], then as Step))
    }
}

impl Procedure<Master> for ModifyTracker {
    fn class_name(&self) -> &'static str {
        if self.family.is_some() { FAMILY_CLASS } else { TABLE_CLASS }
    }

    fn state_data(&self) -> Vec<Any> {
        let of_table = pb::ModifyStoreFileTrackerStateData {
            table_name: to_proto::table_name(&self.table),
            dst_sft: self.target.clone(),
        };
        let mut data = vec![any("ModifyStoreFileTrackerStateData", &of_table)];
        if let Some(family) = &self.family {
            let of_family = pb::ModifyColumnFamilyStoreFileTrackerStateData { family: family.clone() };
            data.push(any("ModifyColumnFamilyStoreFileTrackerStateData", &of_family));
        }
        data
    }

    fn locks(&self) -> Vec<(Resource, Mode)> {
        table_locks(&self.table)
    }

    fn first_step(&self) -> Step {
        State::ModifyStoreFileTrackerFinishPreviousMigration as Step
    }

    fn execute<'a>(&'a mut self, step: Step, context: &'a Context) -> BoxFuture<'a, Result<Next>> {
        Box::pin(async move {
            State::try_from(step).map_err(malformed)?;
            // What the descriptor says tells where it is: also when a crash came after a change of it.
            self.advance(&context.env)
        })
    }
}
