//! Waking tasks on time.
//!
//! The runtime's own timers wake at whole milliseconds, which would be most of the latency that is to be measured at a
//! fixed rate. One thread with the kernel's timers wakes tasks within some tens of microseconds, without spinning.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

/// Wakes tasks at given instants. Clones share the thread, which ends with the last of them.
#[derive(Clone)]
pub struct PreciseTimer {
    alarm: Arc<Alarm>,
}

struct Alarm {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: BinaryHeap<Entry>,
    ended: bool,
}

struct Entry {
    at: Instant,
    waker: Waker,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// The earliest is the greatest, so that the heap gives it first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.at.cmp(&self.at)
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.shared.queue.lock().ended = true;
        self.shared.changed.notify_one();
    }
}

impl Default for PreciseTimer {
    fn default() -> Self {
        Self::new()
    }
}

impl PreciseTimer {
    /// Starts the thread.
    pub fn new() -> Self {
        let shared = Arc::new(Shared::default());
        let of_thread = shared.clone();
        std::thread::spawn(move || wake_on_time(&of_thread));
        Self { alarm: Arc::new(Alarm { shared }) }
    }

    /// Waits until `at`; not at all when that has passed.
    pub fn sleep_until(&self, at: Instant) -> Sleep<'_> {
        Sleep { shared: &self.alarm.shared, at, asked: false }
    }
}

fn wake_on_time(shared: &Shared) {
    let mut queue = shared.queue.lock();
    while !queue.ended {
        let now = Instant::now();
        let mut due = Vec::new();
        while queue.waiting.peek().is_some_and(|entry| entry.at <= now) {
            due.extend(queue.waiting.pop());
        }
        if !due.is_empty() {
            parking_lot::MutexGuard::unlocked(&mut queue, || due.into_iter().for_each(|entry| entry.waker.wake()));
            continue;
        }
        match queue.waiting.peek().map(|entry| entry.at) {
            Some(at) => {
                shared.changed.wait_until(&mut queue, at);
            }
            None => shared.changed.wait(&mut queue),
        }
    }
}

/// The future of [`PreciseTimer::sleep_until`].
pub struct Sleep<'a> {
    shared: &'a Shared,
    at: Instant,
    asked: bool,
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.at {
            return Poll::Ready(());
        }
        if !self.asked {
            self.asked = true;
            let mut queue = self.shared.queue.lock();
            let earliest = queue.waiting.peek().is_none_or(|entry| self.at < entry.at);
            queue.waiting.push(Entry { at: self.at, waker: context.waker().clone() });
            drop(queue);
            if earliest {
                self.shared.changed.notify_one();
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn sleepers_wake_in_order_and_not_early() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let timer = PreciseTimer::new();
        let start = Instant::now();
        runtime.block_on(async {
            let woken = std::cell::RefCell::new(Vec::new());
            let (timer, woken) = (&timer, &woken);
            let sleeper = |ms: u64| async move {
                timer.sleep_until(start + Duration::from_millis(ms)).await;
                assert!(start.elapsed() >= Duration::from_millis(ms));
                woken.borrow_mut().push(ms);
            };
            tokio::join!(sleeper(12), sleeper(3), sleeper(0), sleeper(7));
            assert_eq!(*woken.borrow(), [0, 3, 7, 12]);
        });
    }
}
