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

    /// Takes a job and works on it here and now; false when none waits. For a server without threads.
    pub fn run_one(&self, work: impl FnOnce(&Arc<str>, J)) -> bool {
        let Some((region, job)) = self.state.lock().queue.pop_front() else { return false };
        self.state.lock().queued.remove(&region);
        work(&region, job);
        true
    }

    /// Works until the queue is closed. To be called by as many threads as jobs may run at once.
    pub fn run(&self, mut work: impl FnMut(&Arc<str>, J)) {
        loop {
            let (region, job) = {
                let mut state = self.state.lock();
                loop {
                    if state.closed {
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
}
