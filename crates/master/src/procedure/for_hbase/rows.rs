//! Rows of family `proc` in HBase's form: made of what is on its way here, and read again. Follows: `ProcedureUtil#convertToProtoProcedure`,
//! `RegionRemoteProcedureBase#serializeStateData`.

use super::{OWNER, Order};
use crate::MasterError;
use crate::procedure::engine::{Step, any, unpack, unpack_one};
use bytes::Bytes;
use convert::{from_proto, to_proto};
use model::{RegionInfo, ServerName};
use proto::pb::{self, ProcedureState, RegionRemoteProcedureBaseState as Remote, RegionStateTransitionState as State};
use proto::pb::{RegionTransitionType as Transition, region_state_transition::TransitionCode};
use proto::{Any, Message};
use std::sync::Arc;

pub(super) const TRANSIT: &str = "org.apache.hadoop.hbase.master.assignment.TransitRegionStateProcedure";
pub(super) const OPEN: &str = "org.apache.hadoop.hbase.master.assignment.OpenRegionProcedure";
pub(super) const CLOSE: &str = "org.apache.hadoop.hbase.master.assignment.CloseRegionProcedure";
pub(super) const CRASH: &str = "org.apache.hadoop.hbase.master.procedure.ServerCrashProcedure";
/// One that has ended, of whatever kind.
const ENDED: &str = "org.apache.hadoop.hbase.procedure2.FailedProcedure";
pub(super) const STEPS: &str = "StateMachineProcedureData";

/// A row, by its id. One without bytes is over.
pub(super) type Row = (u64, Bytes);

#[derive(Clone, Debug)]
pub(super) struct Ordered {
    pub id: u64,
    pub order: Order,
    pub server: ServerName,
    pub reported: Option<(TransitionCode, i64)>,
}

/// A region on its way.
#[derive(Clone, Debug)]
pub(super) struct OnItsWay {
    pub id: u64,
    pub parent: Option<u64>,
    /// Of the procedure that moves it, if that is one of its own.
    pub record: Option<Arc<pb::Procedure>>,
    pub info: RegionInfo,
    pub transition: Transition,
    pub candidate: Option<ServerName>,
    /// It is closed, or was never open, and is to be opened.
    pub to_open: bool,
    pub ordered: Option<Ordered>,
    /// A master before left it so.
    pub is_old: bool,
}

impl OnItsWay {
    pub fn row(&self) -> pb::Procedure {
        use State::{
            RegionStateTransitionClose as Close, RegionStateTransitionConfirmClosed as ConfirmClosed,
            RegionStateTransitionConfirmOpened as ConfirmOpened, RegionStateTransitionGetAssignCandidate as Candidate,
            RegionStateTransitionOpen as Open,
        };
        let begun: &[State] = if self.transition == Transition::Assign { &[] } else { &[Close, ConfirmClosed] };
        let opening: &[State] = &[Candidate, Open, ConfirmOpened];
        let states: Vec<State> = match (&self.ordered, self.to_open) {
            (Some(ordered), _) if ordered.order == Order::Open => [begun, opening].concat(),
            (Some(_), _) => vec![Close, ConfirmClosed],
            (None, true) => [begun, &opening[..1]].concat(),
            (None, false) => vec![Close],
        };
        let data = pb::RegionStateTransitionStateData {
            r#type: self.transition as i32,
            assign_candidate: self.candidate.as_ref().map(to_proto::server_name),
            force_new_plan: false,
            ..Default::default()
        };
        let state = if self.ordered.is_some() { ProcedureState::Waiting } else { ProcedureState::Runnable };
        let states: Vec<Step> = states.into_iter().map(|state| state as Step).collect();
        let region = any("RegionInfo", &to_proto::region_info(&self.info));
        let record = self.record.as_deref();
        pb::Procedure {
            class_name: TRANSIT.to_owned(),
            parent_id: self.parent,
            proc_id: self.id,
            submitted_time: record.map_or(0, |record| record.submitted_time),
            owner: Some(record.and_then(|record| record.owner.clone()).unwrap_or_else(|| OWNER.to_owned())),
            state: state as i32,
            last_update: record.map_or(0, |record| record.last_update),
            nonce_group: record.and_then(|record| record.nonce_group),
            nonce: record.and_then(|record| record.nonce),
            state_message: vec![state_machine(&states), region, any("RegionStateTransitionStateData", &data)],
            executed: Some(self.to_open || self.ordered.is_some()),
            ..Default::default()
        }
    }

    pub fn order_row(&self) -> Option<pb::Procedure> {
        let ordered = self.ordered.as_ref()?;
        let state = if ordered.reported.is_some() {
            Remote::RegionRemoteProcedureReportSucceed
        } else {
            Remote::RegionRemoteProcedureDispatch
        };
        let data = pb::RegionRemoteProcedureBaseStateData {
            region: to_proto::region_info(&self.info),
            target_server: to_proto::server_name(&ordered.server),
            state: Some(state as i32),
            transition_code: ordered.reported.map(|(code, _)| code as i32),
            seq_id: ordered.reported.map(|(_, seq_id)| seq_id),
        };
        let (class, own) = match ordered.order {
            Order::Open => (OPEN, any("OpenRegionProcedureStateData", &pb::OpenRegionProcedureStateData {})),
            Order::Close => {
                (CLOSE, any("CloseRegionProcedureStateData", &pb::CloseRegionProcedureStateData::default()))
            }
        };
        Some(pb::Procedure {
            class_name: class.to_owned(),
            parent_id: Some(self.id),
            proc_id: ordered.id,
            owner: Some(OWNER.to_owned()),
            state: ProcedureState::Runnable as i32,
            state_message: vec![any("RegionRemoteProcedureBaseStateData", &data), own],
            ..Default::default()
        })
    }
}

pub(super) fn state_machine(states: &[Step]) -> Any {
    any(STEPS, &pb::StateMachineProcedureData { state: states.iter().map(|step| step.cast_unsigned()).collect() })
}

pub(super) fn bytes_of(row: &pb::Procedure) -> Row {
    (row.proc_id, Bytes::from(row.encode_to_vec()))
}

pub(super) const fn over(id: u64) -> Row {
    (id, Bytes::new())
}

/// The first field of these messages is who asked, which HBase's master wants to have a name: of two such fields the second counts.
pub(super) fn with_user(data: Any, user: &str) -> Any {
    const WITH_USER: [&str; 10] = [
        "CreateTableStateData",
        "DeleteTableStateData",
        "DisableTableStateData",
        "EnableTableStateData",
        "ModifyTableStateData",
        "TruncateTableStateData",
        "SplitTableRegionStateData",
        "MergeTableRegionsStateData",
        "CloneSnapshotStateData",
        "RestoreSnapshotStateData",
    ];
    if !WITH_USER.iter().any(|name| data.type_url.rsplit('.').next() == Some(name)) {
        return data;
    }
    let user = pb::UserInformation { effective_user: user.to_owned(), real_user: None }.encode_to_vec();
    let mut value = data.value.to_vec();
    // Field 1, a message.
    value.push(0x0a);
    prost::encoding::encode_varint(user.len() as u64, &mut value);
    value.extend_from_slice(&user);
    Any { value: value.into(), ..data }
}

pub(super) fn read_transit(row: &pb::Procedure) -> Option<OnItsWay> {
    let data = row.state_message.get(1..)?;
    let info: pb::RegionInfo = unpack_one(data.first()).ok()?;
    let state: pb::RegionStateTransitionStateData = unpack(data).ok()?;
    let steps: pb::StateMachineProcedureData = unpack_one(row.state_message.first()).ok()?;
    let transition = Transition::try_from(state.r#type).ok()?;
    let is_closing = |step: &u32| {
        matches!(
            State::try_from(step.cast_signed()),
            Ok(State::RegionStateTransitionClose | State::RegionStateTransitionConfirmClosed)
        )
    };
    let to_open = steps.state.last().map_or(transition == Transition::Assign, |step| !is_closing(step));
    Some(OnItsWay {
        id: row.proc_id,
        parent: row.parent_id,
        record: None,
        info: from_proto::region_info(&info).ok()?,
        transition,
        candidate: state.assign_candidate.as_ref().and_then(|server| from_proto::server_name(server).ok()),
        to_open,
        ordered: None,
        is_old: true,
    })
}

pub(super) fn read_order(row: &pb::Procedure) -> Option<Ordered> {
    let data: pb::RegionRemoteProcedureBaseStateData = unpack_one(row.state_message.first()).ok()?;
    let code = data.transition_code.and_then(|code| TransitionCode::try_from(code).ok());
    Some(Ordered {
        id: row.proc_id,
        order: if row.class_name == OPEN { Order::Open } else { Order::Close },
        server: from_proto::server_name(&data.target_server).ok()?,
        reported: code.map(|code| (code, data.seq_id.unwrap_or(-1))),
    })
}

/// The row of a procedure that has ended, of whatever kind: who asked for it asks what became of it.
pub(super) fn ended(record: &pb::Procedure, state: ProcedureState, error: Option<&MasterError>) -> pb::Procedure {
    pb::Procedure {
        class_name: ENDED.to_owned(),
        proc_id: record.proc_id,
        submitted_time: record.submitted_time,
        owner: Some(record.owner.clone().filter(|owner| !owner.is_empty()).unwrap_or_else(|| OWNER.to_owned())),
        state: state as i32,
        last_update: record.last_update,
        exception: error.map(MasterError::to_foreign),
        result: record.result.clone(),
        nonce_group: record.nonce_group,
        nonce: record.nonce,
        executed: Some(true),
        ..Default::default()
    }
}
