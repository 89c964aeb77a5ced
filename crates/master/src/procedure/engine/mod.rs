//! The engine of procedures: what a procedure is, and how it is kept and run. It knows nothing of tables and regions
//! but what its procedures count as; `E` is what a procedure works on.
//!
//! Always true:
//!  1. A procedure is on disk, with all that it decided, before its first step, and its end before its locks go.
//!  2. A step may be repeated: after a crash the last step that was made durable is done again, and skips, by looking,
//!     what is done.
//!  3. A procedure holds its locks from before it is prepared until its outcome is on disk. A child works under the
//!     locks of its parents and takes what they do not hold.
//!  4. A parent goes on after all of its children ended. When one failed, those that succeeded and then the parent are
//!     rolled back.
//!  5. Ids only grow, over restarts too.
//!
//! Follows: `procedure2` (`ProcedureExecutor`, `StateMachineProcedure`, `RemoteProcedureDispatcher`).

mod executor;
mod locks;
mod record;
pub(crate) mod remote;
mod run;
mod status;
pub(crate) mod store;
#[cfg(test)]
mod tests;

pub(crate) use executor::{Parts, Procedures, Submission, Unfinished};
pub(crate) use record::{Phase, Record};
pub(crate) use remote::{RemoteCall, RemoteFailure, Sent};
pub(crate) use status::ProcedureStatus;

use crate::host::BoxFuture;
use crate::locks::{Mode, Resource};
use crate::procedure::for_hbase::Form;
use crate::procedure::operations::Operation;
use crate::{ErrorKind, MasterError, Result};
use bytes::Bytes;
use proto::{Any, Message};
use std::sync::Arc;
use std::time::Duration;

/// A step: the number that HBase's enumeration of the procedure's states gives it.
pub(crate) type Step = i32;

/// Steps of HBase's, of one enumeration.
pub(crate) fn steps<S: Copy + Into<Step>>(states: &[S]) -> Vec<Step> {
    states.iter().map(|state| (*state).into()).collect()
}

/// How a procedure ended: perhaps with a result.
pub type Outcome = Result<Option<Bytes>>;

/// A procedure of any kind.
pub(crate) type BoxedProcedure<E> = Box<dyn Procedure<E>>;

/// What a step leads to.
pub(crate) enum Next<E: ?Sized> {
    /// This step, after all that is known by now is durable.
    Step(Step),
    /// This step. After a crash, the last step that was made durable is done again.
    Unsaved(Step),
    /// These children, side by side, and this step when all of them have succeeded.
    Children(Vec<BoxedProcedure<E>>, Step),
    /// This step, after so long.
    #[cfg_attr(not(test), allow(dead_code, reason = "for procedures that ask again from time to time"))]
    Wait(Duration, Step),
    /// A call of a server; what it answers goes to [`Procedure::on_remote`]. After a crash the step is done again, and
    /// so the call.
    Remote(RemoteCall),
    /// The end.
    Done(Option<Bytes>),
}

/// What a step is given.
pub(crate) struct Context<E> {
    /// What it works on.
    pub env: Arc<E>,
    /// The procedure's id.
    #[allow(dead_code, reason = "for procedures that name their work by it")]
    pub id: u64,
}

/// Work of several steps that goes on where it was after a crash.
pub(crate) trait Procedure<E>: std::fmt::Debug + Send + Sync + 'static {
    /// HBase's class.
    fn class_name(&self) -> &'static str;

    /// HBase's messages of all that it decided: those of its superclasses first.
    fn state_data(&self) -> Vec<Any>;

    /// What must be held while it runs.
    fn locks(&self) -> Vec<(Resource, Mode)>;

    /// What it counts as, if HBase counts it.
    fn operation(&self) -> Option<Operation> {
        None
    }

    /// What a server is asked for in this step, if HBase counts it.
    fn remote_operation(&self, _step: Step) -> Option<Operation> {
        None
    }

    /// The step to begin with.
    fn first_step(&self) -> Step;

    /// Does one step. A failure that may pass ([`MasterError::is_transient`]) makes the step be tried again, later and
    /// later; any other fails the procedure.
    fn execute<'a>(&'a mut self, step: Step, context: &'a Context<E>) -> BoxFuture<'a, Result<Next<E>>>;

    /// What a server answered to [`Next::Remote`], or why it will not answer.
    ///
    /// # Errors
    /// As of [`Procedure::execute`]: one that may pass has the step done again.
    fn on_remote(&mut self, _step: Step, answer: std::result::Result<Bytes, RemoteFailure>) -> Result<Next<E>> {
        answer.map(|bytes| Next::Done(Some(bytes))).map_err(MasterError::from)
    }

    /// Undoes what a step did, after the procedure failed: called for each step that was begun, the last one first. May
    /// be repeated. What the step's children did is part of it.
    fn roll_back<'a>(&'a mut self, _step: Step, _context: &'a Context<E>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    /// Whether a client's wish to abort is heard before this step: all that was done can be rolled back.
    fn may_abort(&self, _step: Step) -> bool {
        false
    }

    /// How HBase's master is to find it, if it leads next, when it has just begun. Later it says so itself (`Context::found_at`).
    fn for_hbase(&self) -> Form {
        Form::Failed
    }

    /// Whether it works on regions that serve, so that a start opens them before it goes on with it.
    fn needs_open_regions(&self) -> bool {
        false
    }
}

/// A kind of procedure: how one is read from its record.
pub(crate) struct ProcedureKind<E> {
    /// HBase's class.
    pub class_name: &'static str,
    /// Reads [`Procedure::state_data`].
    pub read: fn(&[Any]) -> Result<BoxedProcedure<E>>,
}

/// Wraps a message of state; `name` is its name in `hbase.pb`.
pub(crate) fn any(name: &str, message: &impl Message) -> Any {
    Any { type_url: format!("type.googleapis.com/hbase.pb.{name}"), value: Bytes::from(message.encode_to_vec()) }
}

/// Reads the last message of state, which is the procedure's own.
///
/// # Errors
/// There is none, or it is no such message.
pub(crate) fn unpack<M: Message + Default>(data: &[Any]) -> Result<M> {
    unpack_one(data.last())
}

/// Reads a message of state.
///
/// # Errors
/// There is none, or it is no such message.
pub(crate) fn unpack_one<M: Message + Default>(data: Option<&Any>) -> Result<M> {
    M::decode(data.ok_or_else(|| malformed("no state"))?.value.clone()).map_err(malformed)
}

/// The record of a procedure is not what it should be.
pub(crate) fn malformed(what: impl std::fmt::Display) -> MasterError {
    MasterError::new(ErrorKind::Io, format!("the record of a procedure is damaged: {what}"))
}
