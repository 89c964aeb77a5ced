//! A procedure as it is kept: HBase's `Procedure` message.

use super::{BoxedProcedure, Outcome, ProcedureKind, Step, any, malformed, unpack_one};
use crate::{MasterError, Result};
use base::TimestampMs;
use model::Nonce;
use proto::pb;
use proto::pb::ProcedureState;

/// Where a procedure stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Phase {
    /// Its last step is to be done.
    Runnable,
    /// Its children are to end first.
    Waiting,
    /// It waits for a time.
    WaitingTimeout,
    /// It failed, and is to be rolled back.
    Failed(MasterError),
    /// It ended.
    Ended(Outcome),
}

/// A procedure, as it is kept.
#[derive(Debug)]
pub(crate) struct Record<E> {
    pub id: u64,
    pub parent: Option<u64>,
    pub procedure: BoxedProcedure<E>,
    /// The steps that were begun; the last one is to be done.
    pub steps: Vec<Step>,
    pub owner: String,
    pub nonce: Option<Nonce>,
    pub submitted: TimestampMs,
    pub updated: TimestampMs,
    pub phase: Phase,
    pub bypassed: bool,
}

const STEPS: &str = "StateMachineProcedureData";

impl<E: 'static> Record<E> {
    /// One that begins.
    pub fn new(id: u64, parent: Option<u64>, procedure: BoxedProcedure<E>, owner: String, now: TimestampMs) -> Self {
        let steps = vec![procedure.first_step()];
        Record {
            id,
            parent,
            procedure,
            steps,
            owner,
            nonce: None,
            submitted: now,
            updated: now,
            phase: Phase::Runnable,
            bypassed: false,
        }
    }

    /// The step to be done.
    pub fn step(&self) -> Step {
        self.steps.last().copied().unwrap_or_else(|| self.procedure.first_step())
    }

    /// How it ended, if it did.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.phase {
            Phase::Ended(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// HBase's message.
    pub fn to_message(&self) -> pb::Procedure {
        let state = match &self.phase {
            Phase::Runnable => ProcedureState::Runnable,
            Phase::Waiting => ProcedureState::Waiting,
            Phase::WaitingTimeout => ProcedureState::WaitingTimeout,
            Phase::Failed(_) => ProcedureState::Failed,
            Phase::Ended(Ok(_)) => ProcedureState::Success,
            Phase::Ended(Err(_)) => ProcedureState::Rolledback,
        };
        let (result, exception) = match &self.phase {
            Phase::Ended(Ok(result)) => (result.clone(), None),
            Phase::Failed(error) | Phase::Ended(Err(error)) => (None, Some(error.to_foreign())),
            _ => (None, None),
        };
        let steps =
            pb::StateMachineProcedureData { state: self.steps.iter().map(|step| step.cast_unsigned()).collect() };
        let to_u64 = |time: TimestampMs| u64::try_from(time.0).unwrap_or(0);
        pb::Procedure {
            class_name: self.procedure.class_name().to_owned(),
            parent_id: self.parent,
            proc_id: self.id,
            submitted_time: to_u64(self.submitted),
            owner: Some(self.owner.clone()),
            state: state as i32,
            last_update: to_u64(self.updated),
            exception,
            result,
            nonce_group: self.nonce.map(|nonce| nonce.group),
            nonce: self.nonce.map(|nonce| nonce.number),
            state_message: std::iter::once(any(STEPS, &steps)).chain(self.procedure.state_data()).collect(),
            bypass: self.bypassed.then_some(true),
            executed: Some(self.steps.len() > 1),
            ..Default::default()
        }
    }

    /// Reads HBase's message.
    ///
    /// # Errors
    /// It is no such message, or of a kind that is not in `kinds`.
    pub fn from_message(message: &pb::Procedure, kinds: &[ProcedureKind<E>]) -> Result<Self> {
        let kind = kinds.iter().find(|kind| kind.class_name == message.class_name);
        let kind = kind.ok_or_else(|| malformed(format!("it is of the unknown class {:?}", message.class_name)))?;
        // Records of earlier versions have no steps: all they did may be done again.
        let is_steps = |data: &proto::Any| data.type_url.rsplit(['/', '.']).next() == Some(STEPS);
        let (steps, data) = match message.state_message.split_first() {
            Some((first, data)) if is_steps(first) => {
                (unpack_one::<pb::StateMachineProcedureData>(Some(first))?.state, data)
            }
            _ => (Vec::new(), message.state_message.as_slice()),
        };
        let procedure = (kind.read)(data)?;
        let mut steps: Vec<Step> = steps.into_iter().map(u32::cast_signed).collect();
        if steps.is_empty() {
            steps.push(procedure.first_step());
        }
        let nonce = match (message.nonce_group, message.nonce) {
            (Some(group), Some(number)) => Some(Nonce { group, number }),
            _ => None,
        };
        let time = |ms: u64| TimestampMs(i64::try_from(ms).unwrap_or(i64::MAX));
        Ok(Record {
            id: message.proc_id,
            parent: message.parent_id,
            procedure,
            steps,
            owner: message.owner.clone().unwrap_or_default(),
            nonce,
            submitted: time(message.submitted_time),
            updated: time(message.last_update),
            phase: phase_of(message)?,
            bypassed: message.bypass.unwrap_or(false),
        })
    }
}

fn phase_of(message: &pb::Procedure) -> Result<Phase> {
    let error = || MasterError::from_foreign(message.exception.as_ref());
    Ok(match ProcedureState::try_from(message.state).map_err(malformed)? {
        ProcedureState::Success => Phase::Ended(Ok(message.result.clone())),
        ProcedureState::Rolledback => Phase::Ended(Err(error())),
        ProcedureState::Failed => Phase::Failed(error()),
        ProcedureState::Waiting => Phase::Waiting,
        // What was left to wait is not known: the step says when it is asked.
        ProcedureState::Initializing | ProcedureState::Runnable | ProcedureState::WaitingTimeout => Phase::Runnable,
    })
}
