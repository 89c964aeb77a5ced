//! Where calls run that may wait: lanes with threads of their own, so that one kind of work cannot starve another.
//!
//! Always true:
//!  1. A job is called exactly once: with a pause point when it may run, or with the reason why it may not.
//!  2. A lane never has more threads than its limit, nor more jobs waiting than its queue takes.
//!  3. Of the jobs that have run for longer than a quantum, only a few go on at once over all lanes, in turns between clients; a job that
//!     needs less is never made to wait for them.
//!  4. One client never has all threads of a lane: it starts no further job once it runs as many as there are free threads.
//!
//! Knows clients as numbers and jobs as closures; must not know regions, RPC or Tokio. See docs/decisions/0020. Follows:
//! `SimpleRpcScheduler`, `FifoRpcScheduler`, `AdaptiveLifoCoDelCallQueue`.

mod job;
mod lane;
mod queue;
pub mod settings;
mod turns;

pub use job::{Dropped, Job, JobInfo};
pub use lane::LaneStats;
pub use queue::QueueKind;

use base::{Clock, Config, Interrupted, PausePoint};
use lane::{Lane, LaneLimits};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use turns::Turns;

/// A lane of a [`Scheduler`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneName {
    /// System tables, and calls of high priority.
    Meta,
    /// What users read.
    Read,
    /// What users write.
    Write,
    /// Large writes, which wait here for room in log and memstores, in order.
    LargeWrite,
}

impl LaneName {
    /// All of them.
    pub const ALL: [LaneName; 4] = [LaneName::Meta, LaneName::Read, LaneName::Write, LaneName::LargeWrite];

    /// Name in metrics, and of the lane's threads.
    pub const fn name(self) -> &'static str {
        match self {
            LaneName::Meta => "meta",
            LaneName::Read => "read",
            LaneName::Write => "write",
            LaneName::LargeWrite => "large-write",
        }
    }
}

/// What the lanes of one server share.
struct Shared {
    clock: Arc<dyn Clock>,
    turns: Turns,
    is_stopping: AtomicBool,
}

/// Jobs that may wait in a lane of so many handlers.
fn max_queued(config: &Config, handlers: usize) -> usize {
    match config.get(&settings::MAX_CALL_QUEUE_LENGTH) {
        0 => (handlers * settings::QUEUED_CALLS_PER_HANDLER).max(settings::LEAST_QUEUED_CALLS),
        given => given as usize,
    }
}

/// The lanes of one server.
pub struct Scheduler {
    shared: Arc<Shared>,
    lanes: [Arc<Lane>; LaneName::ALL.len()],
    /// Without threads: whether jobs wait in their lanes until [`Scheduler::step`], or run at once on the thread that brings them.
    stepped: Option<AtomicBool>,
}

impl std::fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scheduler").finish_non_exhaustive()
    }
}

impl Scheduler {
    /// Lanes with threads, as `config` says. Threads are made when there is work for them.
    pub fn new(clock: Arc<dyn Clock>, config: &Config) -> Arc<Scheduler> {
        Scheduler::with(clock, config, None)
    }

    /// Without threads: every job runs at once on the thread that brings it, or, while it is told to hold them ([`Scheduler::hold`]), when
    /// the caller says so. For the simulator.
    pub fn stepped(clock: Arc<dyn Clock>, config: &Config) -> Arc<Scheduler> {
        Scheduler::with(clock, config, Some(AtomicBool::new(false)))
    }

    fn with(clock: Arc<dyn Clock>, config: &Config, stepped: Option<AtomicBool>) -> Arc<Scheduler> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let shared = Arc::new(Shared { clock, turns: Turns::new(cores + 1), is_stopping: AtomicBool::new(false) });
        let handlers = config.get(&settings::HANDLER_COUNT) as usize;
        let meta_handlers = config.get(&settings::META_HANDLER_COUNT) as usize;
        let kind = config.get(&settings::CALL_QUEUE_TYPE);
        let lanes = LaneName::ALL.map(|name| {
            let (handlers, kind, niceness) = match name {
                LaneName::Meta => (meta_handlers, QueueKind::Fair, 0),
                LaneName::Read | LaneName::Write => (handlers, kind, lane::USER_NICENESS),
                // Each of them has a processor's worth to do.
                LaneName::LargeWrite => (handlers.min(cores + 1), kind, lane::USER_NICENESS),
            };
            let limits = LaneLimits {
                handlers,
                max_threads: match stepped {
                    Some(_) => 0,
                    None => handlers * settings::LONG_CALLS_PER_HANDLER + handlers,
                },
                max_queued: max_queued(config, handlers),
                niceness,
            };
            Lane::new(name.name(), shared.clone(), queue::Queue::new(kind, limits.max_queued, config), limits)
        });
        Arc::new(Scheduler { shared, lanes, stepped })
    }

    /// How many calls may wait, and when too many have waited for too long, is as `config` says from now on; what waits stays. Follows:
    /// `SimpleRpcScheduler#onConfigurationChange`.
    pub fn update_configuration(&self, config: &Config) {
        self.lanes.iter().for_each(|lane| lane.update(|handlers| max_queued(config, handlers), config));
    }

    /// Whether there are no threads.
    pub fn is_stepped(&self) -> bool {
        self.stepped.is_some()
    }

    /// Without threads: whether jobs wait from now on until [`Scheduler::step`].
    pub fn hold(&self, holds: bool) {
        if let Some(is_held) = &self.stepped {
            is_held.store(holds, Ordering::SeqCst);
        }
    }

    /// Without threads: does the next thing that the lanes have to do, those of system tables first; false when there is nothing.
    pub fn step(&self) -> bool {
        self.is_stepped() && self.lanes.iter().any(Lane::step)
    }

    /// Has `job` run on a lane. Does not wait. The job is told here and now when the lane's queue is full or the server stops.
    pub fn submit(&self, lane: LaneName, info: JobInfo, job: Job) {
        if self.shared.is_stopping.load(Ordering::SeqCst) {
            return job(Err(Dropped::Interrupted(Interrupted::Stopping)));
        }
        if self.stepped.as_ref().is_none_or(|is_held| is_held.load(Ordering::SeqCst)) {
            return self.lanes[lane as usize].submit(info, job);
        }
        match info.verdict(self.shared.clock.monotonic_us()) {
            Ok(()) => job(Ok(&StopOnly(&self.shared))),
            Err(interrupted) => job(Err(Dropped::Interrupted(interrupted))),
        }
    }

    /// There may be room now for jobs that wait for it ([`JobInfo::admit`]).
    pub fn kick(&self) {
        self.lanes.iter().for_each(|lane| lane.kick());
    }

    /// Ends it: jobs that wait are told that the server stops, those that run learn it at their next pause point. Does not wait.
    pub fn stop(&self) {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        self.shared.turns.open();
        self.lanes.iter().for_each(|lane| lane.stop());
    }

    /// Counts of each lane.
    pub fn stats(&self) -> Vec<(LaneName, LaneStats)> {
        let lanes = if self.is_stepped() { &[][..] } else { &self.lanes[..] };
        LaneName::ALL.into_iter().zip(lanes).map(|(name, lane)| (name, lane.stats())).collect()
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The pause point of jobs that nobody else waits for: it knows the stop alone.
struct StopOnly<'a>(&'a Shared);

impl PausePoint for StopOnly<'_> {
    fn pause(&self) -> Result<(), Interrupted> {
        self.check()
    }

    fn check(&self) -> Result<(), Interrupted> {
        if self.0.is_stopping.load(Ordering::SeqCst) { Err(Interrupted::Stopping) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
