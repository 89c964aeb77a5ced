//! Something that comes to be so once and stays so.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// Whether it is so. Those who wait go on in the order in which they came, which a `watch` does not promise: a simulated cluster needs it.
#[derive(Debug, Default)]
pub struct Latch {
    is_set: AtomicBool,
    waiting: Notify,
}

impl Latch {
    /// It is so from now on.
    pub fn set(&self) {
        self.is_set.store(true, Ordering::SeqCst);
        self.waiting.notify_waiters();
    }

    /// Whether it is.
    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::SeqCst)
    }

    /// Waits until it is.
    pub async fn wait(&self) {
        let mut told = pin!(self.waiting.notified());
        // Before the look: what is set meanwhile is not missed.
        told.as_mut().enable();
        if !self.is_set() {
            told.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::sync::Arc;

    #[tokio::test]
    async fn who_waits_goes_on_in_turn_and_who_comes_later_does_not_wait() {
        let (latch, order) = (Arc::new(Latch::default()), Arc::new(Mutex::new(Vec::new())));
        let waiting: Vec<_> = (0..20)
            .map(|n| {
                let (latch, order) = (latch.clone(), order.clone());
                tokio::spawn(async move {
                    latch.wait().await;
                    order.lock().push(n);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        assert!(!latch.is_set() && order.lock().is_empty());
        latch.set();
        for task in waiting {
            task.await.expect("no panic");
        }
        assert_eq!(*order.lock(), (0..20).collect::<Vec<_>>());
        latch.wait().await;
    }
}
