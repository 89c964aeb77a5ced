//! What a lane is told of a job, and what the job is told by it.

use base::{Interrupted, PausePoint};

/// Work for a lane. Called exactly once, on a thread of the lane with a pause point, or at any time on any thread with the reason why it
/// will not run; it answers its call either way.
pub type Job = Box<dyn FnOnce(Result<&dyn PausePoint, Dropped>) + Send>;

/// Why a job does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Dropped {
    /// Nobody waits for it any more, or the server stops.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// As many jobs wait as the lane's queue takes.
    #[error("the call queue is full: {max_queued} calls wait")]
    QueueFull {
        /// Most jobs that may wait.
        max_queued: usize,
    },
    /// It has waited for too long while the lane is overloaded (`codel` alone).
    #[error("the call waited for {waited_ms} ms in an overloaded queue")]
    Overloaded {
        /// How long it waited, in milliseconds.
        waited_ms: u64,
    },
}

/// What a lane knows of a job before it runs.
pub struct JobInfo {
    /// Whose job it is: clients get their turns one after the other.
    pub client: u64,
    /// Larger goes first: each point is worth a millisecond of waiting. 0 for ordinary calls.
    pub priority: u32,
    /// How far behind others of the same arrival it may be put, in microseconds (`deadline` alone): what long scans have used up.
    pub delay_us: u64,
    /// When nobody waits for it any more, on the scheduler's clock.
    pub deadline_us: Option<u64>,
    /// Whether its client has left.
    pub is_cancelled: Box<dyn Fn() -> bool + Send + Sync>,
    /// Asked before the job begins: whether there is room for what it makes. After a false the job waits until [`crate::Scheduler::kick`].
    pub admit: Option<Box<dyn FnMut() -> bool + Send>>,
}

impl std::fmt::Debug for JobInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobInfo")
            .field("client", &self.client)
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}

impl JobInfo {
    /// Of an ordinary job of `client` that everybody waits for.
    pub fn of_client(client: u64) -> JobInfo {
        JobInfo { client, priority: 0, delay_us: 0, deadline_us: None, is_cancelled: Box::new(|| false), admit: None }
    }

    /// Whether somebody waits for the job still.
    pub(crate) fn verdict(&self, now_us: u64) -> Result<(), Interrupted> {
        let is_late = self.deadline_us.is_some_and(|deadline| now_us > deadline);
        if is_late && !base::inject!("scheduler.deadline.ignored") {
            return Err(Interrupted::DeadlinePassed);
        }
        if (self.is_cancelled)() { Err(Interrupted::ClientGone) } else { Ok(()) }
    }
}
