//! The jobs of a lane that wait, and which of them is next.
//!
//! Must not know threads: [`Queue::take`] is told which clients may not start a job now.

use crate::job::{Dropped, Job, JobInfo};
use crate::settings;
use base::{Config, Value};
use rustc_hash::FxHashMap;

/// In which order jobs are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum QueueKind {
    /// Clients in turn, each client's jobs as they came.
    Fair,
    /// As they came.
    Fifo,
    /// As they came, those that have used much up later. Follows: `BalancedQueueRpcExecutor` with `CallPriorityComparator`.
    Deadline,
    /// As they came; in an overload the newest first, and none that has waited for long. Follows: `AdaptiveLifoCoDelCallQueue`.
    Codel,
}

impl std::fmt::Display for QueueKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            QueueKind::Fair => "fair",
            QueueKind::Fifo => "fifo",
            QueueKind::Deadline => "deadline",
            QueueKind::Codel => "codel",
        })
    }
}

impl Value for QueueKind {
    fn parse_text(text: &str) -> Option<Self> {
        [QueueKind::Fair, QueueKind::Fifo, QueueKind::Deadline, QueueKind::Codel]
            .into_iter()
            .find(|kind| text.trim().eq_ignore_ascii_case(&kind.to_string()))
    }
    const TYPE: &'static str = "call queue type";
    const LEGAL: Option<&'static str> = Some("fair, fifo, deadline or codel");
}

/// A job that waits.
struct Waiting {
    info: JobInfo,
    job: Job,
    /// Place in the order: the smallest is next.
    rank_us: u64,
    arrival: u64,
    queued_us: u64,
}

/// What a lane's thread is to do next.
pub(crate) enum Next {
    /// Run the job, which has waited for so long.
    Run { info: JobInfo, job: Job, waited_us: u64 },
    /// Tell the job that it will not run.
    Drop(Job, Dropped),
    /// Nothing can be begun now.
    Nothing,
}

/// The jobs that wait. Not locked: the lane does that.
pub(crate) struct Queue {
    kind: QueueKind,
    max_len: usize,
    jobs: Vec<Waiting>,
    next_arrival: u64,
    /// `Fair`: when each client's next job would begin if all got the same, and that time now.
    client_time_us: FxHashMap<u64, u64>,
    virtual_now_us: u64,
    codel: Codel,
}

/// What a job is taken to need when clients are given their turns.
const FAIR_SHARE_US: u64 = 1000;
/// What one point of priority is worth.
const PRIORITY_POINT_US: u64 = 1000;

/// Follows: `AdaptiveLifoCoDelCallQueue`.
struct Codel {
    target_us: u64,
    interval_us: u64,
    lifo_threshold: f64,
    least_wait_us: u64,
    interval_end_us: u64,
    is_overloaded: bool,
}

impl Codel {
    /// Whether a job that has waited for so long is to be dropped.
    fn drops(&mut self, waited_us: u64, now_us: u64) -> bool {
        self.least_wait_us = self.least_wait_us.min(waited_us);
        if now_us >= self.interval_end_us {
            self.is_overloaded = self.least_wait_us > self.target_us;
            self.interval_end_us = now_us + self.interval_us;
            self.least_wait_us = waited_us;
            return false;
        }
        self.is_overloaded && waited_us > 2 * self.target_us
    }
}

impl Queue {
    pub(crate) fn new(kind: QueueKind, max_len: usize, config: &Config) -> Queue {
        let codel = Codel {
            target_us: config.get(&settings::CODEL_TARGET_DELAY_MS) * 1000,
            interval_us: config.get(&settings::CODEL_INTERVAL_MS) * 1000,
            lifo_threshold: config.get(&settings::CODEL_LIFO_THRESHOLD),
            least_wait_us: u64::MAX,
            interval_end_us: 0,
            is_overloaded: false,
        };
        Queue {
            kind,
            max_len,
            jobs: Vec::new(),
            next_arrival: 0,
            client_time_us: FxHashMap::default(),
            virtual_now_us: 0,
            codel,
        }
    }

    /// Takes so many jobs from now on, and drops late ones as `config` says. What waits stays.
    pub(crate) fn update(&mut self, max_len: usize, config: &Config) {
        self.max_len = max_len;
        self.codel.target_us = config.get(&settings::CODEL_TARGET_DELAY_MS) * 1000;
        self.codel.interval_us = config.get(&settings::CODEL_INTERVAL_MS) * 1000;
        self.codel.lifo_threshold = config.get(&settings::CODEL_LIFO_THRESHOLD);
    }

    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Adds a job. Gives one back that will not run, and why: one that nobody waits for any more and that makes room for this one; or,
    /// when the queue is full, the newest of the client that has the most jobs in it, be it this one.
    pub(crate) fn push(&mut self, info: JobInfo, job: Job, now_us: u64) -> Result<(), (Job, Dropped)> {
        // One that nobody waits for any more makes room.
        let mut dead = None;
        if self.jobs.len() >= self.max_len {
            match self.take_dead(now_us) {
                Some(found) => dead = Some(found),
                None => match self.take_newest_of_largest(info.client) {
                    Some(newest) => dead = Some((newest, Dropped::QueueFull { max_queued: self.max_len })),
                    None => return Err((job, Dropped::QueueFull { max_queued: self.max_len })),
                },
            }
        }
        let bonus_us = u64::from(info.priority) * PRIORITY_POINT_US;
        let rank_us = match self.kind {
            QueueKind::Fair => {
                let time = self.client_time_us.entry(info.client).or_insert(0);
                let start = (*time).max(self.virtual_now_us);
                *time = start + FAIR_SHARE_US;
                start.saturating_sub(bonus_us)
            }
            QueueKind::Fifo | QueueKind::Codel => 0,
            QueueKind::Deadline => (now_us + info.delay_us).saturating_sub(bonus_us),
        };
        let arrival = self.next_arrival;
        self.next_arrival += 1;
        self.jobs.push(Waiting { info, job, rank_us, arrival, queued_us: now_us });
        dead.map_or(Ok(()), Err)
    }

    /// Takes out a job that nobody waits for any more, and why.
    fn take_dead(&mut self, now_us: u64) -> Option<(Job, Dropped)> {
        let dead = |(at, waiting): (usize, &Waiting)| waiting.info.verdict(now_us).err().map(|why| (at, why));
        let (at, why) = self.jobs.iter().enumerate().find_map(dead)?;
        Some((self.remove(at).job, Dropped::Interrupted(why)))
    }

    /// Takes out the newest job of the client with the most jobs; `None` when that is `client`, or has no more than it.
    fn take_newest_of_largest(&mut self, client: u64) -> Option<Job> {
        let mut counts: FxHashMap<u64, usize> = FxHashMap::default();
        self.jobs.iter().for_each(|waiting| *counts.entry(waiting.info.client).or_insert(0) += 1);
        let own = counts.get(&client).copied().unwrap_or(0);
        let (largest, count) = counts.into_iter().max_by_key(|(client, count)| (*count, *client))?;
        if largest == client || count <= own + 1 {
            return None;
        }
        let of_largest = self.jobs.iter().enumerate().filter(|(_, waiting)| waiting.info.client == largest);
        let (at, _) = of_largest.max_by_key(|(_, waiting)| waiting.arrival)?;
        Some(self.remove(at).job)
    }

    /// What is next, among the jobs of clients that `may_start`.
    pub(crate) fn take(&mut self, now_us: u64, may_start: impl Fn(u64) -> bool) -> Next {
        // Nobody waits for it: it goes whoever's turn it is.
        if let Some((job, why)) = self.take_dead(now_us) {
            return Next::Drop(job, why);
        }
        let newest_first =
            self.kind == QueueKind::Codel && self.jobs.len() as f64 > self.max_len as f64 * self.codel.lifo_threshold;
        // Clients whose first job waits for room: none of theirs overtakes it.
        let mut held: Vec<u64> = Vec::new();
        loop {
            let startable = |waiting: &Waiting| !held.contains(&waiting.info.client) && may_start(waiting.info.client);
            let candidates = self.jobs.iter().enumerate().filter(|(_, waiting)| startable(waiting));
            let order = |(_, waiting): &(usize, &Waiting)| (waiting.rank_us, waiting.arrival);
            let best = if newest_first { candidates.max_by_key(order) } else { candidates.min_by_key(order) };
            let Some((at, _)) = best else { return Next::Nothing };
            let waited_us = now_us.saturating_sub(self.jobs[at].queued_us);
            if self.kind == QueueKind::Codel && self.codel.drops(waited_us, now_us) {
                let waiting = self.remove(at);
                return Next::Drop(waiting.job, Dropped::Overloaded { waited_ms: waited_us / 1000 });
            }
            if let Some(admit) = &mut self.jobs[at].info.admit
                && !admit()
            {
                held.push(self.jobs[at].info.client);
                continue;
            }
            let waiting = self.remove(at);
            self.virtual_now_us = self.virtual_now_us.max(waiting.rank_us);
            return Next::Run { info: waiting.info, job: waiting.job, waited_us };
        }
    }

    fn remove(&mut self, at: usize) -> Waiting {
        let waiting = self.jobs.swap_remove(at);
        if self.jobs.is_empty() {
            self.client_time_us.clear();
            self.virtual_now_us = 0;
        }
        waiting
    }

    /// Takes all jobs out.
    pub(crate) fn drain(&mut self) -> Vec<Job> {
        self.client_time_us.clear();
        self.jobs.drain(..).map(|waiting| waiting.job).collect()
    }
}
