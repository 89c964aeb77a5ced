//! TransitRegionStateProcedure: a region is opened, closed, moved or reopened.
//!
//! The server that is to open or close it is called by name; if it dies meanwhile, the region is opened elsewhere,
//! after the server's logs are split.

use crate::assignment::{Place, is_given_up};
use crate::cluster::{RegionState, TableState};
use crate::host::BoxFuture;
use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::procedure::engine::{Procedure, RemoteCall, RemoteFailure, Sent, Step, any, malformed, unpack, unpack_one};
use crate::procedure::for_hbase::Form;
use crate::procedure::operations::Operation;
use crate::procedure::{BoxedProcedure, Caller, Context, Next, ProcedureKind, region_locks};
use crate::{ErrorKind, HostError, MasterError, Result};
use bytes::Bytes;
use convert::{from_proto, to_proto};
use model::{RegionInfo, ServerName};
use proto::pb::RegionStateTransitionState as State;
pub(crate) use proto::pb::RegionTransitionType as Transition;
use proto::{Any, pb};
use std::sync::Arc;

const CLASS: &str = "org.apache.hadoop.hbase.master.assignment.TransitRegionStateProcedure";

pub(crate) const KIND: ProcedureKind =
    ProcedureKind { class_name: CLASS, read: |data| Ok(Box::new(TransitRegion::read(data)?)) };

/// A region is brought to another state.
#[derive(Debug)]
struct TransitRegion {
    info: RegionInfo,
    transition: Transition,
    /// Where it is to be opened; anywhere when there is none.
    candidate: Option<ServerName>,
    /// The server that was asked to open it, and the sequence id that it answered.
    opened: Option<(ServerName, u64)>,
    asked: Option<ServerName>,
    /// As [`Place::may_have_it`] of that.
    may_have_it: bool,
    /// The server that said that it could not.
    failed_at: Option<ServerName>,
    failed_attempts: u32,
}

/// The procedure that brings `info` to another state; `candidate` is where it is to be opened.
pub(crate) fn new(info: RegionInfo, transition: Transition, candidate: Option<ServerName>) -> BoxedProcedure {
    Box::new(TransitRegion {
        info,
        transition,
        candidate,
        opened: None,
        asked: None,
        may_have_it: false,
        failed_at: None,
        failed_attempts: 0,
    })
}

/// Has a region opened, closed, moved or reopened; answers the procedure's id.
///
/// # Errors
/// What `check` says under the region's lock.
pub(crate) async fn submit(
    master: &Arc<Master>,
    info: RegionInfo,
    transition: Transition,
    candidate: Option<ServerName>,
    caller: &Caller,
    check: impl FnOnce() -> Result<()>,
) -> Result<u64> {
    let submission = caller.submission(region_locks(std::slice::from_ref(&info)));
    let prepare = async {
        check()?;
        must_be_live(master, &info)?;
        Ok(new(info, transition, candidate))
    };
    master.procedures.submit(master, submission, prepare).await
}

/// While it waited for the region another procedure may have split or merged it away: to note that it is closed would bring its row back.
fn must_be_live(master: &Master, info: &RegionInfo) -> Result<()> {
    let is_live =
        info.table.is_meta() || master.cluster.read().region(info.encoded_name()).is_some_and(|node| node.is_live());
    if is_live {
        return Ok(());
    }
    let message = format!("Region {} was split or merged away, or its table is gone", info.name_string());
    Err(MasterError::new(ErrorKind::UnknownRegion, message))
}

impl TransitRegion {
    fn read(data: &[Any]) -> Result<TransitRegion> {
        let info: pb::RegionInfo = unpack_one(data.first())?;
        let state: pb::RegionStateTransitionStateData = unpack(data)?;
        let candidate = state.assign_candidate.as_ref().map(from_proto::server_name).transpose()?;
        Ok(TransitRegion {
            info: from_proto::region_info(&info)?,
            transition: Transition::try_from(state.r#type).map_err(malformed)?,
            candidate,
            opened: None,
            asked: None,
            may_have_it: false,
            failed_at: None,
            failed_attempts: 0,
        })
    }

    /// Whether nobody needs it to be opened any more: it is open, or its table is not to serve.
    fn needs_no_opening(&self, master: &Master) -> bool {
        let cluster = master.cluster.read();
        let Some(node) = cluster.region(self.info.encoded_name()) else { return true };
        let serves = matches!(cluster.state(&self.info.table), Some(TableState::Enabled | TableState::Enabling));
        let is_online = |server: &ServerName| master.servers.get(server).is_ok();
        let is_open = node.state == RegionState::Open && node.location.as_ref().is_some_and(is_online);
        is_open || !node.is_live() || !serves
    }

    async fn open(&mut self, master: &Master) -> Result<Next> {
        let table = master.tables.must_exist(&self.info.table)?;
        let avoid = self.failed_at.take();
        if avoid.is_some() {
            master.assignment.note_not_opened(&self.info);
        }
        let place = master.assignment.place(&self.info, self.candidate.as_ref(), avoid.as_ref())?;
        let Some(Place { host, may_have_it }) = place else {
            // It is opened when a server comes on which it may be: nobody is to wait for that with locks held.
            self.opened = None;
            return Ok(Next::Unsaved(State::RegionStateTransitionConfirmOpened as Step));
        };
        master.assignment.record_opening(&self.info, &*host).await?;
        if base::inject!("master.transit.open-unconfirmed") {
            master.assignment.record_open(&self.info, &host.server_name(), 1).await?;
        }
        let (server, info) = (host.server_name(), self.info.clone());
        (self.asked, self.may_have_it) = (Some(server.clone()), may_have_it);
        let operation = Box::new(move |host: Arc<dyn crate::RegionHost>, _| -> BoxFuture<'static, _> {
            Box::pin(async move {
                let open_seq_id = host.open_region(info, table).await?;
                Ok(Sent::Done(Bytes::copy_from_slice(&open_seq_id.to_be_bytes())))
            })
        });
        Ok(Next::Remote(RemoteCall { server, operation, timeout: None }))
    }

    async fn close(&self, master: &Master) -> Result<Next> {
        master.assignment.note_state(&self.info, RegionState::Closing);
        let Some(host) = master.assignment.host_to_close(&self.info)? else {
            return Ok(Next::Unsaved(State::RegionStateTransitionConfirmClosed as Step));
        };
        master.assignment.record_closing(&self.info, &*host).await?;
        let name = Arc::clone(self.info.encoded_name());
        let operation = Box::new(move |host: Arc<dyn crate::RegionHost>, _| -> BoxFuture<'static, _> {
            Box::pin(async move { host.close_region(&name).await.map(|()| Sent::Done(Bytes::new())) })
        });
        Ok(Next::Remote(RemoteCall { server: host.server_name(), operation, timeout: None }))
    }

    /// Whether the server that was asked to open it certainly does not have it.
    fn is_not_there(&self, error: &HostError) -> bool {
        match error {
            HostError::Failed(_) | HostError::Refused(_) => true,
            HostError::NotTaken(_) => !self.may_have_it,
            HostError::Unreachable(_) | HostError::Stopping => false,
        }
    }

    fn on_open_answer(&mut self, answer: std::result::Result<Bytes, RemoteFailure>) -> Result<Next> {
        let confirm = Next::Unsaved(State::RegionStateTransitionConfirmOpened as Step);
        match answer {
            Ok(bytes) => {
                let open_seq_id = <[u8; 8]>::try_from(&bytes[..]).map_err(malformed)?;
                self.opened = self.asked.take().map(|server| (server, u64::from_be_bytes(open_seq_id)));
                Ok(confirm)
            }
            Err(RemoteFailure::Failed(error))
                if self.is_not_there(&error) && is_given_up(&self.info, self.failed_attempts + 1) =>
            {
                self.opened = None;
                Ok(confirm)
            }
            Err(failure) => {
                // Anywhere else is as good.
                self.candidate = None;
                if matches!(&failure, RemoteFailure::Failed(error) if self.is_not_there(error)) {
                    self.failed_attempts += 1;
                    self.failed_at = self.asked.take();
                }
                Err(MasterError::new(ErrorKind::Io, failure))
            }
        }
    }
}

impl Procedure<Master> for TransitRegion {
    fn class_name(&self) -> &'static str {
        CLASS
    }

    fn operation(&self) -> Option<Operation> {
        Some(match self.transition {
            Transition::Assign => Operation::Assign,
            Transition::Unassign => Operation::Unassign,
            Transition::Move => Operation::Move,
            Transition::Reopen => Operation::Reopen,
        })
    }

    // It says so itself with its first step.
    fn for_hbase(&self) -> Form {
        Form::None
    }

    fn remote_operation(&self, step: Step) -> Option<Operation> {
        let opens = step == State::RegionStateTransitionOpen as Step;
        Some(if opens { Operation::Open } else { Operation::Close })
    }

    fn state_data(&self) -> Vec<Any> {
        let state = pb::RegionStateTransitionStateData {
            r#type: self.transition as i32,
            assign_candidate: self.candidate.as_ref().map(to_proto::server_name),
            force_new_plan: false,
            ..Default::default()
        };
        vec![any("RegionInfo", &to_proto::region_info(&self.info)), any("RegionStateTransitionStateData", &state)]
    }

    fn locks(&self) -> Vec<(Resource, Mode)> {
        region_locks(std::slice::from_ref(&self.info))
    }

    fn first_step(&self) -> Step {
        match self.transition {
            Transition::Assign => State::RegionStateTransitionGetAssignCandidate as Step,
            _ => State::RegionStateTransitionClose as Step,
        }
    }

    fn execute<'a>(&'a mut self, step: Step, context: &'a Context) -> BoxFuture<'a, Result<Next>> {
        Box::pin(async move {
            let master = &context.env;
            let (for_hbase, record) = (&master.for_hbase, master.procedures.record(context.id));
            for_hbase.own(record, &self.info, self.transition, self.candidate.clone()).await?;
            match State::try_from(step).map_err(malformed)? {
                State::RegionStateTransitionClose => self.close(master).await,
                State::RegionStateTransitionConfirmClosed => {
                    master.assignment.record_closed(&self.info).await?;
                    Ok(match self.transition {
                        Transition::Unassign => Next::Done(None),
                        _ => Next::Unsaved(State::RegionStateTransitionGetAssignCandidate as Step),
                    })
                }
                State::RegionStateTransitionGetAssignCandidate if self.needs_no_opening(master) => Ok(Next::Done(None)),
                State::RegionStateTransitionGetAssignCandidate => {
                    Ok(Next::Unsaved(State::RegionStateTransitionOpen as Step))
                }
                State::RegionStateTransitionOpen => self.open(master).await,
                State::RegionStateTransitionConfirmOpened => {
                    match &self.opened {
                        Some((server, open_seq_id)) => {
                            master.assignment.record_open(&self.info, server, *open_seq_id).await?;
                            if !self.info.is_replica() && !self.info.table.is_meta() {
                                master.assignment.open_new_replicas(&self.info).await?;
                            }
                        }
                        None => master.assignment.record_failed_open(&self.info).await?,
                    }
                    Ok(Next::Done(None))
                }
            }
        })
    }

    fn on_remote(&mut self, step: Step, answer: std::result::Result<Bytes, RemoteFailure>) -> Result<Next> {
        if step == State::RegionStateTransitionOpen as Step {
            return self.on_open_answer(answer);
        }
        match answer {
            Ok(_) => Ok(Next::Unsaved(State::RegionStateTransitionConfirmClosed as Step)),
            // If its server died: tried again until the logs are split, which then counts as closed.
            Err(failure) => Err(MasterError::new(ErrorKind::Io, failure)),
        }
    }
}
