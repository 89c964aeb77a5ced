//! The one bound of bytes under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that requests and replies may hold together.
#[derive(Clone)]
pub struct Budget {
    held: Arc<AtomicU64>,
    most_bytes: u64,
}

/// A share of a [`Budget`], given back when it is dropped.
pub struct Held {
    budget: Budget,
    bytes: u64,
}

impl Budget {
    /// Of so many bytes.
    pub fn new(most_bytes: u64) -> Budget {
        Budget { held: Arc::default(), most_bytes }
    }

    /// A share of `bytes`, unless that is too much now.
    pub fn take(&self, bytes: u64) -> Option<Held> {
        let mut held = Held { budget: self.clone(), bytes: 0 };
        held.grow(bytes).then_some(held)
    }

    /// What is held.
    #[cfg(test)]
    pub fn held_bytes(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }
}

impl Held {
    /// Takes `bytes` more. False, and nothing more held, where that is too much now.
    pub fn grow(&mut self, bytes: u64) -> bool {
        let most = self.budget.most_bytes;
        let grown = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= most);
        let done = self.budget.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_ok();
        if done {
            self.bytes += bytes;
        }
        done
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_come_back() {
        let budget = Budget::new(10);
        let mut first = budget.take(6).expect("room");
        assert!(budget.take(5).is_none());
        assert!(first.grow(4) && !first.grow(1));
        assert_eq!(budget.held_bytes(), 10);
        drop(first);
        assert_eq!(budget.held_bytes(), 0);
        assert!(budget.take(u64::MAX).is_none());
    }
}
