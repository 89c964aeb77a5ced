//! TruncateRegionProcedure.

use super::must_be_open;
use super::transit::{self, Transition};
use crate::cluster::{RegionState, TableState};
use crate::host::BoxFuture;
use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::procedure::engine::{Procedure, Step, any, malformed, unpack};
use crate::procedure::{BoxedProcedure, Caller, Context, Next, ProcedureKind, region_locks};
use crate::{ErrorKind, MasterError, Result};
use convert::{from_proto, to_proto};
use model::RegionInfo;
use proto::pb::TruncateRegionState as State;
use proto::{Any, pb};
use std::sync::Arc;

const CLASS: &str = "org.apache.hadoop.hbase.master.procedure.TruncateRegionProcedure";

pub(crate) const KIND: ProcedureKind =
    ProcedureKind { class_name: CLASS, read: |data| Ok(Box::new(TruncateRegion::read(data)?)) };

/// A region is closed, emptied and opened again. A start goes on with it before it opens the tables' regions, so that
/// none is open while its files go.
#[derive(Debug)]
struct TruncateRegion {
    info: RegionInfo,
}

/// Empties a region of an enabled table; answers the procedure's id.
///
/// # Errors
/// No such table, not enabled. As in HBase, what is wrong with the region itself ends the procedure.
pub(crate) async fn submit(master: &Arc<Master>, info: RegionInfo, caller: &Caller) -> Result<u64> {
    let submission = caller.submission(region_locks(std::slice::from_ref(&info)));
    let prepare = async {
        master.tables.must_exist(&info.table)?;
        let state = master.cluster.read().state(&info.table);
        if !matches!(state, Some(TableState::Enabled | TableState::Enabling)) {
            return Err(MasterError::new(ErrorKind::TableNotEnabled, &info.table));
        }
        Ok(Box::new(TruncateRegion { info: info.clone() }) as BoxedProcedure)
    };
    master.procedures.submit(master, submission, prepare).await
}

impl TruncateRegion {
    fn read(data: &[Any]) -> Result<TruncateRegion> {
        let state: pb::TruncateRegionStateData = unpack(data)?;
        Ok(TruncateRegion { info: from_proto::region_info(&state.region_info)? })
    }

    /// Follows: `TruncateRegionProcedure#prepareTruncate`, `RegionStateNode#checkOnline`.
    fn check(&self, master: &Master) -> Result<()> {
        if self.info.table.is_meta() {
            return Err(MasterError::do_not_retry("Can't truncate region in catalog tables"));
        }
        must_be_open(master, &self.info)
    }

    /// With what the descriptor names too: the logs may have edits of a family that has no file yet.
    async fn remove_files(&self, master: &Master) -> Result<()> {
        let table = master.tables.must_exist(&self.info.table)?;
        let families = table.families.keys().map(|name| String::from_utf8_lossy(name).into_owned()).collect::<Vec<_>>();
        let info = self.info.clone();
        master.files.run(move |volume| Ok(rootdir::archive::truncate_region(volume, &info, &families)?)).await
    }

    fn transit(&self, transition: Transition) -> Vec<BoxedProcedure> {
        vec![transit::new(self.info.clone(), transition, None)]
    }
}

impl Procedure<Master> for TruncateRegion {
    fn class_name(&self) -> &'static str {
        CLASS
    }

    fn state_data(&self) -> Vec<Any> {
        let state = pb::TruncateRegionStateData {
            user_info: pb::UserInformation::default(),
            region_info: to_proto::region_info(&self.info),
            snapshot_name: None,
        };
        vec![any("TruncateRegionStateData", &state)]
    }

    fn locks(&self) -> Vec<(Resource, Mode)> {
        region_locks(std::slice::from_ref(&self.info))
    }

    fn first_step(&self) -> Step {
        State::TruncateRegionPreOperation as Step
    }

    fn execute<'a>(&'a mut self, step: Step, context: &'a Context) -> BoxFuture<'a, Result<Next>> {
        Box::pin(async move {
            let master = &context.env;
            match State::try_from(step).map_err(malformed)? {
                State::TruncateRegionPreOperation => {
                    self.check(master)?;
                    Ok(Next::Step(State::TruncateRegionMakeOffline as Step))
                }
                // HBase's copy before the work, which is off there and does not exist here.
                State::TruncateRegionSnapshot => Ok(Next::Step(State::TruncateRegionMakeOffline as Step)),
                State::TruncateRegionMakeOffline => {
                    Ok(Next::Children(self.transit(Transition::Unassign), State::TruncateRegionRemove as Step))
                }
                State::TruncateRegionRemove => {
                    self.remove_files(master).await?;
                    // Durable first: the files of a region that was opened again are not to be removed.
                    Ok(Next::Step(State::TruncateRegionMakeOnline as Step))
                }
                State::TruncateRegionMakeOnline => {
                    Ok(Next::Children(self.transit(Transition::Assign), State::TruncateRegionPostOperation as Step))
                }
                State::TruncateRegionPostOperation => Ok(Next::Done(None)),
            }
        })
    }

    fn roll_back<'a>(&'a mut self, step: Step, context: &'a Context) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let master = &context.env;
            let closed = master
                .cluster
                .read()
                .region(self.info.encoded_name())
                .is_some_and(|node| node.is_live() && node.state != RegionState::Open);
            if step == State::TruncateRegionMakeOffline as Step && closed {
                return master.assignment.assign(vec![self.info.clone()]).await;
            }
            Ok(())
        })
    }

    fn may_abort(&self, step: Step) -> bool {
        step == State::TruncateRegionPreOperation as Step || step == State::TruncateRegionMakeOffline as Step
    }
}
