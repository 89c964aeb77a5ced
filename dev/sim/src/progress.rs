//! Whether a run gets on: the steps that it has made, for who watches it from another thread.
//!
//! A run hangs when it makes no step any more. How long all of it takes says nothing: that depends on the build and on what else the machine does.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Steps of the runs of one thread. Clones count the same.
#[derive(Clone, Debug, Default)]
pub struct Steps(Arc<AtomicU64>);

thread_local! {
    static HERE: RefCell<Steps> = RefCell::default();
}

impl Steps {
    /// Steps of runs on this thread, from now on and whoever asks.
    pub fn here() -> Steps {
        HERE.with_borrow(Clone::clone)
    }

    /// So many were made.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A run on this thread has made a step: an action of its schedule, a slice of its world's time.
pub fn step() {
    HERE.with_borrow(|steps| steps.0.fetch_add(1, Ordering::Relaxed));
}

/// Looks at steps now and then, and says when there are none for too long.
#[derive(Debug)]
pub struct Patience {
    most: Duration,
    seen: u64,
    since: Duration,
}

impl Patience {
    /// One that waits so long for a step.
    pub fn new(most: Duration) -> Patience {
        Patience { most, seen: 0, since: Duration::ZERO }
    }

    /// Whether too long ago the last of so many `steps` was made. `now`: since whenever, and never less than before.
    pub fn ends(&mut self, steps: u64, now: Duration) -> bool {
        if steps != self.seen {
            (self.seen, self.since) = (steps, now);
        }
        now.saturating_sub(self.since) > self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run under way for ten times the patience is no hang.
    #[test]
    fn a_slow_run_is_not_taken_for_one_that_hangs() {
        let mut patience = Patience::new(Duration::from_secs(120));
        assert!((1..=20).all(|minute| !patience.ends(minute, Duration::from_secs(60 * minute))));
        assert!(!patience.ends(20, Duration::from_secs(60 * 20 + 120)));
        assert!(patience.ends(20, Duration::from_secs(60 * 20 + 121)));
    }

    #[test]
    fn steps_are_those_of_one_thread() {
        let steps = Steps::here();
        let before = steps.count();
        step();
        std::thread::scope(|scope| scope.spawn(step).join().expect("no panic"));
        assert_eq!(steps.count(), before + 1);
    }
}
