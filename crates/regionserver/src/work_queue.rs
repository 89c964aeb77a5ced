//! Jobs by region for background threads: each region is queued at most once, and not worked on twice at a time.
//!
//! Plain threads and a condition variable: these jobs write files for seconds and have no business on a Tokio worker.

use parking_lot::{Condvar, Mutex};
use rustc_hash::FxHashSet;
use std::collections::VecDeque;
use std::sync::Arc;

struct State<J> {
    queue: VecDeque<(Arc<str>, J)>,
    queued: FxHashSet<Arc<str>>,
    working: FxHashSet<Arc<str>>,
    closed: bool,
    /// Threads that [`WorkQueue::staff`] has had started and that have not left.
    workers: usize,
    /// So many there are to be.
    wanted: usize,
}

/// A queue of jobs, one per region.
pub struct WorkQueue<J> {
    state: Mutex<State<J>>,
    changed: Condvar,
}

impl<J> Default for WorkQueue<J> {
    fn default() -> Self {
        let state = State {
            queue: VecDeque::new(),
            queued: FxHashSet::default(),
            working: FxHashSet::default(),
            closed: false,
            workers: 0,
            wanted: 0,
        };
        WorkQueue { state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl<J> WorkQueue<J> {
    /// Queues `job` for `region`, unless one is queued already. Returns whether it was queued.
    pub fn push(&self, region: &Arc<str>, job: J) -> bool {
        let mut state = self.state.lock();
        if state.closed || !state.queued.insert(region.clone()) {
            return false;
        }
        state.queue.push_back((region.clone(), job));
        drop(state);
        self.changed.notify_one();
        true
    }

    /// Jobs waiting.
    pub fn len(&self) -> usize {
        self.state.lock().queue.len()
    }

    /// Whether a job of `region` waits or runs.
    pub fn is_pending(&self, region: &str) -> bool {
        let state = self.state.lock();
        state.queued.contains(region) || state.working.contains(region)
    }

    /// Regions that are worked on.
    pub fn working(&self) -> Vec<Arc<str>> {
        self.state.lock().working.iter().cloned().collect()
    }

    /// Forgets what waits; what runs goes on.
    pub fn clear(&self) {
        let mut state = self.state.lock();
        state.queue.clear();
        state.queued.clear();
    }

    /// Forgets what waits, and ends [`WorkQueue::run`] when its job is done.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.queue.clear();
        state.queued.clear();
        drop(state);
        self.changed.notify_all();
    }

    /// Has so many threads work from now on: answers how many the caller starts for that. Those that are too many leave
    /// [`WorkQueue::run`] when their job is done.
    pub fn staff(&self, wanted: usize) -> usize {
        let mut state = self.state.lock();
        if state.closed {
            return 0;
        }
        let missing = wanted.saturating_sub(state.workers);
        state.workers += missing;
        state.wanted = wanted;
        drop(state);
        self.changed.notify_all();
        missing
    }

    /// A thread that [`WorkQueue::staff`] asked for could not be started.
    pub fn unstaff(&self) {
        let mut state = self.state.lock();
        state.workers = state.workers.saturating_sub(1);
    }

    /// Takes a job and works on it here and now; false when none waits. For a server without threads.
    pub fn run_one(&self, work: impl FnOnce(&Arc<str>, J)) -> bool {
        let Some((region, job)) = self.state.lock().queue.pop_front() else { return false };
        self.state.lock().queued.remove(&region);
        work(&region, job);
        true
    }

    /// Works until the queue is closed, or this thread is one too many. To be called by as many threads as jobs may run at once.
    pub fn run(&self, mut work: impl FnMut(&Arc<str>, J)) {
        loop {
            let (region, job) = {
                let mut state = self.state.lock();
                loop {
                    if state.closed {
                        return;
                    }
                    if state.workers > state.wanted {
                        state.workers -= 1;
                        return;
                    }
                    // The first job whose region nobody works on.
                    let next = state.queue.iter().position(|(region, _)| !state.working.contains(region));
                    if let Some((region, job)) = next.and_then(|at| state.queue.remove(at)) {
                        state.queued.remove(&region);
                        state.working.insert(region.clone());
                        break (region, job);
                    }
                    self.changed.wait(&mut state);
                }
            };
            work(&region, job);
            self.state.lock().working.remove(&region);
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_region_is_queued_once_and_all_work_is_done() {
        let queue = Arc::new(WorkQueue::<u32>::default());
        let region: Arc<str> = Arc::from("a");
        assert!(queue.push(&region, 1));
        assert!(!queue.push(&region, 2));
        let (done, most_at_once, now) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    queue.run(|_, job| {
                        most_at_once.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        now.fetch_sub(1, Ordering::SeqCst);
                        if done.fetch_add(1, Ordering::SeqCst) < 50 {
                            assert!(queue.push(&region, job + 1), "the job runs, so the next may be queued");
                        } else {
                            queue.close();
                        }
                    });
                });
            }
        });
        assert_eq!(done.load(Ordering::SeqCst), 51);
        assert_eq!(most_at_once.load(Ordering::SeqCst), 1, "one region, one worker");
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "threads of a test")]
    fn more_threads_work_and_fewer_while_it_runs() {
        let queue = Arc::new(WorkQueue::<u32>::default());
        let (begun, begins) = std::sync::mpsc::channel();
        let gate = Arc::new((Mutex::new(0u32), Condvar::new()));
        let open = |jobs: u32| {
            *gate.0.lock() += jobs;
            gate.1.notify_all();
        };
        let start = |wanted: usize| -> Vec<_> {
            let threads = (0..queue.staff(wanted)).map(|_| {
                let (queue, begun, gate) = (queue.clone(), begun.clone(), gate.clone());
                std::thread::spawn(move || {
                    queue.run(|_, job| {
                        begun.send(job).expect("somebody listens");
                        let mut free = gate.0.lock();
                        while *free == 0 {
                            gate.1.wait(&mut free);
                        }
                        *free -= 1;
                    });
                })
            });
            threads.collect()
        };
        let push = |job: u32| assert!(queue.push(&Arc::from(format!("r{job}")), job));
        let limit = std::time::Duration::from_secs(20);
        let first = start(1);
        (0..4).for_each(push);
        assert_eq!((first.len(), begins.recv_timeout(limit)), (1, Ok(0)));
        assert_eq!(queue.working().len(), 1, "one thread, one job");
        let more = start(3);
        let mut at_once = [(); 2].map(|()| begins.recv_timeout(limit).expect("one begins"));
        at_once.sort_unstable();
        assert_eq!((more.len(), at_once), (2, [1, 2]), "two more work while the first does");
        // Of three that are busy two leave when their jobs are done, and take no other.
        assert!(start(1).is_empty());
        (4..9).for_each(push);
        open(3);
        assert_eq!(begins.recv_timeout(limit), Ok(3));
        open(1);
        assert_eq!(begins.recv_timeout(limit), Ok(4));
        assert_eq!(queue.working().len(), 1, "one thread again");
        let ended = first.into_iter().chain(more);
        open(5);
        (5..9).for_each(|job| assert_eq!(begins.recv_timeout(limit), Ok(job)));
        queue.close();
        ended.for_each(|thread| thread.join().expect("it ends"));
    }
}
