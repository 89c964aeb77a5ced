//! A lane: a queue, and threads that are made when there is work for them and end when there is none.

use crate::Shared;
use crate::job::{Dropped, Job, JobInfo};
use crate::queue::{Next, Queue};
use base::sync::{Condvar, Mutex};
use base::{Config, Interrupted, PausePoint};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A job that has run for so long lets others run.
const QUANTUM_US: u64 = 5_000;
/// A thread without work ends after this time.
const IDLE: Duration = Duration::from_secs(30);
/// Niceness of threads that do what users ask: below the network threads, above compactions.
pub(crate) const USER_NICENESS: i32 = 3;

/// The limits of a lane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaneLimits {
    /// Jobs at once that have not run for long.
    pub handlers: usize,
    /// Threads in all.
    pub max_threads: usize,
    /// Jobs that wait.
    pub max_queued: usize,
    /// Niceness of the threads.
    pub niceness: i32,
}

/// Counts of a lane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LaneStats {
    /// Jobs that wait now.
    pub queued: usize,
    /// Jobs that run now, those that wait at a pause point included.
    pub running: usize,
    /// Of these, such as have run for longer than a quantum.
    pub long_running: usize,
    /// Threads now.
    pub threads: usize,
    /// Jobs that were run, since the start.
    pub run: u64,
    /// Jobs that were dropped because nobody waited for them any more, since the start.
    pub dropped: u64,
    /// Jobs that were refused because the queue was full or overloaded, since the start.
    pub refused: u64,
    /// Longest time in the queue of any job that was run, in microseconds.
    pub longest_wait_us: u64,
}

struct State {
    queue: Queue,
    threads: usize,
    idle: usize,
    running: usize,
    long_running: usize,
    running_of: FxHashMap<u64, usize>,
    is_stopping: bool,
}

/// A lane of jobs.
pub(crate) struct Lane {
    name: &'static str,
    shared: Arc<Shared>,
    limits: LaneLimits,
    state: Mutex<State>,
    /// A thread without work is to look again.
    work: Condvar,
    run: AtomicU64,
    dropped: AtomicU64,
    refused: AtomicU64,
    longest_wait_us: AtomicU64,
}

impl Lane {
    pub(crate) fn new(name: &'static str, shared: Arc<Shared>, queue: Queue, limits: LaneLimits) -> Arc<Lane> {
        let state = State {
            queue,
            threads: 0,
            idle: 0,
            running: 0,
            long_running: 0,
            running_of: FxHashMap::default(),
            is_stopping: false,
        };
        Arc::new(Lane {
            name,
            shared,
            limits,
            state: Mutex::new(state),
            work: Condvar::new(),
            run: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            longest_wait_us: AtomicU64::new(0),
        })
    }

    /// The queue's limits are others from now on.
    pub(crate) fn update(&self, max_queued: impl Fn(usize) -> usize, config: &Config) {
        self.state.lock().queue.update(max_queued(self.limits.handlers), config);
    }

    pub(crate) fn stats(&self) -> LaneStats {
        let state = self.state.lock();
        LaneStats {
            queued: state.queue.len(),
            running: state.running,
            long_running: state.long_running,
            threads: state.threads,
            run: self.run.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            longest_wait_us: self.longest_wait_us.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn submit(self: &Arc<Self>, info: JobInfo, job: Job) {
        let now_us = self.shared.clock.monotonic_us();
        let mut state = self.state.lock();
        if state.is_stopping {
            drop(state);
            return job(Err(Dropped::Interrupted(Interrupted::Stopping)));
        }
        let displaced = state.queue.push(info, job, now_us).err();
        self.call_thread(&mut state);
        drop(state);
        if let Some((job, why)) = displaced {
            self.count(why);
            tell(job, why);
        }
    }

    pub(crate) fn kick(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if state.queue.len() > 0 {
            self.call_thread(&mut state);
        }
    }

    pub(crate) fn stop(&self) {
        let jobs = {
            let mut state = self.state.lock();
            state.is_stopping = true;
            self.work.notify_all();
            state.queue.drain()
        };
        jobs.into_iter().for_each(|job| tell(job, Dropped::Interrupted(Interrupted::Stopping)));
    }

    /// Has a thread look at the queue: one that has nothing to do, or a new one.
    #[allow(
        clippy::disallowed_methods,
        reason = "threads of lanes begin here, at most as many as the lane's limits allow"
    )]
    fn call_thread(self: &Arc<Self>, state: &mut State) {
        if state.idle > 0 {
            self.work.notify_one();
            return;
        }
        if state.threads >= self.limits.max_threads || state.running - state.long_running >= self.limits.handlers {
            return;
        }
        state.threads += 1;
        let (lane, name) = (self.clone(), format!("{}-{}", self.name, state.threads));
        if let Err(error) = std::thread::Builder::new().name(name).spawn(move || lane.run_thread()) {
            state.threads -= 1;
            // Those that there are take the work; without any, the next job tries again.
            drop(error);
        }
    }

    /// Does the next thing there is to do, here: runs a job, or tells one that it will not run. False when nothing can be begun.
    pub(crate) fn step(self: &Arc<Self>) -> bool {
        let mut state = self.state.lock();
        let now_us = self.shared.clock.monotonic_us();
        match self.next(&mut state, now_us) {
            Next::Run { info, job, waited_us } => {
                self.count_begun(&mut state, &info, waited_us);
                drop(state);
                self.run_job(info, job);
            }
            Next::Drop(job, why) => {
                drop(state);
                self.count(why);
                tell(job, why);
            }
            Next::Nothing => return false,
        }
        true
    }

    fn count_begun(&self, state: &mut State, info: &JobInfo, waited_us: u64) {
        self.longest_wait_us.fetch_max(waited_us, Ordering::Relaxed);
        state.running += 1;
        *state.running_of.entry(info.client).or_insert(0) += 1;
    }

    fn run_thread(self: Arc<Self>) {
        if self.limits.niceness > 0 {
            // A kernel that refuses leaves it at the priority of everybody.
            let _ = rustix::process::setpriority_process(None, self.limits.niceness);
        }
        let mut state = self.state.lock();
        loop {
            let now_us = self.shared.clock.monotonic_us();
            match self.next(&mut state, now_us) {
                Next::Run { info, job, waited_us } => {
                    self.count_begun(&mut state, &info, waited_us);
                    // The rest of the queue is for others.
                    if state.queue.len() > 0 {
                        self.call_thread(&mut state);
                    }
                    drop(state);
                    self.run_job(info, job);
                    state = self.state.lock();
                }
                Next::Drop(job, why) => {
                    drop(state);
                    self.count(why);
                    tell(job, why);
                    state = self.state.lock();
                }
                Next::Nothing if state.is_stopping => break,
                Next::Nothing => {
                    state.idle += 1;
                    let timed_out = self.work.wait_for(&mut state, IDLE).timed_out();
                    state.idle -= 1;
                    if timed_out && state.queue.len() == 0 {
                        break;
                    }
                }
            }
        }
        state.threads -= 1;
    }

    fn count(&self, why: Dropped) {
        let counter = if matches!(why, Dropped::Interrupted(_)) { &self.dropped } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn next(&self, state: &mut State, now_us: u64) -> Next {
        if state.running - state.long_running >= self.limits.handlers {
            return Next::Nothing;
        }
        let State { queue, running, running_of, .. } = state;
        let free = self.limits.max_threads.saturating_sub(*running);
        queue.take(now_us, |client| running_of.get(&client).is_none_or(|of_client| *of_client < free.max(1)))
    }

    fn run_job(self: &Arc<Self>, info: JobInfo, job: Job) {
        self.run.fetch_add(1, Ordering::Relaxed);
        let client = info.client;
        let running = Running {
            lane: self,
            info,
            slice_start_us: Cell::new(self.shared.clock.monotonic_us()),
            is_long: Cell::new(false),
            has_turn: Cell::new(false),
        };
        // What it leaves unanswered is answered by whatever it drops.
        let _ = catch_unwind(AssertUnwindSafe(|| job(Ok(&running))));
        let is_long = running.is_long.get();
        drop(running);
        let state = &mut *self.state.lock();
        state.running -= 1;
        state.long_running -= usize::from(is_long);
        if let Some(of_client) = state.running_of.get_mut(&client) {
            *of_client -= 1;
            if *of_client == 0 {
                state.running_of.remove(&client);
            }
        }
    }
}

fn tell(job: Job, why: Dropped) {
    // As in `run_job`.
    let _ = catch_unwind(AssertUnwindSafe(|| job(Err(why))));
}

/// A job that runs.
struct Running<'a> {
    lane: &'a Arc<Lane>,
    info: JobInfo,
    slice_start_us: Cell<u64>,
    is_long: Cell<bool>,
    has_turn: Cell<bool>,
}

impl Running<'_> {
    fn verdict(&self, now_us: u64) -> Result<(), Interrupted> {
        if self.lane.shared.is_stopping.load(Ordering::SeqCst) {
            return Err(Interrupted::Stopping);
        }
        self.info.verdict(now_us)
    }

    fn end_turn(&self, now_us: u64) {
        if self.has_turn.replace(false) {
            self.lane.shared.turns.end(self.info.client, now_us.saturating_sub(self.slice_start_us.get()));
        }
    }
}

impl PausePoint for Running<'_> {
    fn pause(&self) -> Result<(), Interrupted> {
        let shared = &self.lane.shared;
        let now_us = shared.clock.monotonic_us();
        self.verdict(now_us)?;
        if now_us.saturating_sub(self.slice_start_us.get()) < QUANTUM_US {
            return Ok(());
        }
        if !self.is_long.replace(true) {
            shared.turns.enter(self.info.client);
            let mut state = self.lane.state.lock();
            state.long_running += 1;
            // Its place among the short ones is free.
            if state.queue.len() > 0 {
                self.lane.call_thread(&mut state);
            }
        } else if !shared.turns.is_awaited() {
            self.slice_start_us.set(now_us);
            return Ok(());
        }
        self.end_turn(now_us);
        shared.turns.begin(self.info.client);
        self.has_turn.set(true);
        let now_us = shared.clock.monotonic_us();
        self.slice_start_us.set(now_us);
        self.verdict(now_us)
    }

    fn check(&self) -> Result<(), Interrupted> {
        self.verdict(self.lane.shared.clock.monotonic_us())
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.end_turn(self.lane.shared.clock.monotonic_us());
        if self.is_long.get() {
            self.lane.shared.turns.leave(self.info.client);
        }
    }
}
