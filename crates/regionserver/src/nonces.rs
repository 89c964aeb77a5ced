//! Nonces of increments and appends: a retry counts once. Follows: `ServerNonceManager`.
//!
//! Always true: for one nonce, at most one operation runs at a time, and after one succeeded none runs until the nonce
//! is forgotten. A failed operation leaves no trace.

use base::Clock;
use model::Nonce;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::oneshot;

enum State {
    Running(Vec<oneshot::Sender<()>>),
    Done,
}

struct Inner {
    states: FxHashMap<Nonce, State>,
    /// Finished nonces by the time at which they are forgotten.
    done: VecDeque<(u64, Nonce)>,
}

/// The nonces that this server has seen lately.
pub struct Nonces {
    inner: Mutex<Inner>,
    clock: Arc<dyn Clock>,
    remember_us: u64,
}

/// What to do with an operation that has a nonce.
pub enum Begin {
    /// Run it, then [`Nonces::end`].
    Proceed,
    /// It has succeeded before: answer with what is there.
    AlreadyDone,
    /// It runs right now: ask again when this resolves.
    Wait(oneshot::Receiver<()>),
}

impl Nonces {
    /// None seen.
    pub fn new(clock: Arc<dyn Clock>, remember_ms: u64) -> Nonces {
        let inner = Inner { states: FxHashMap::default(), done: VecDeque::new() };
        Nonces { inner: Mutex::new(inner), clock, remember_us: remember_ms * 1000 }
    }

    /// Begins an operation.
    pub fn begin(&self, nonce: Nonce) -> Begin {
        let mut inner = self.inner.lock();
        self.forget_old(&mut inner);
        match inner.states.get_mut(&nonce) {
            None => {
                inner.states.insert(nonce, State::Running(Vec::new()));
                Begin::Proceed
            }
            Some(State::Done) => Begin::AlreadyDone,
            Some(State::Running(waiting)) => {
                let (sender, receiver) = oneshot::channel();
                waiting.push(sender);
                Begin::Wait(receiver)
            }
        }
    }

    /// Ends an operation that [`Nonces::begin`] let proceed.
    pub fn end(&self, nonce: Nonce, succeeded: bool) {
        let mut inner = self.inner.lock();
        let before = if succeeded {
            let forget_us = self.clock.monotonic_us() + self.remember_us;
            inner.done.push_back((forget_us, nonce));
            inner.states.insert(nonce, State::Done)
        } else {
            inner.states.remove(&nonce)
        };
        drop(inner);
        if let Some(State::Running(waiting)) = before {
            // Somebody who does not wait any more is no trouble.
            waiting.into_iter().for_each(|sender| _ = sender.send(()));
        }
    }

    /// Remembers an operation that a log showed to have succeeded in an earlier life.
    pub fn recovered(&self, nonce: Nonce) {
        let mut inner = self.inner.lock();
        let forget_us = self.clock.monotonic_us() + self.remember_us;
        if inner.states.insert(nonce, State::Done).is_none() {
            inner.done.push_back((forget_us, nonce));
        }
    }

    fn forget_old(&self, inner: &mut Inner) {
        let now_us = self.clock.monotonic_us();
        while let Some((forget_us, nonce)) = inner.done.front().copied()
            && forget_us <= now_us
        {
            inner.done.pop_front();
            inner.states.remove(&nonce);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ManualClock;

    #[test]
    fn a_nonce_counts_once_until_it_is_forgotten() {
        let clock = Arc::new(ManualClock::new(0));
        let nonces = Nonces::new(clock.clone(), 1000);
        let nonce = Nonce { group: 1, number: 2 };
        assert!(matches!(nonces.begin(nonce), Begin::Proceed));
        let Begin::Wait(mut waiting) = nonces.begin(nonce) else { panic!("it runs") };
        nonces.end(nonce, false);
        assert!(waiting.try_recv().is_ok(), "told that it ended");
        assert!(matches!(nonces.begin(nonce), Begin::Proceed), "it failed, so it may run again");
        nonces.end(nonce, true);
        assert!(matches!(nonces.begin(nonce), Begin::AlreadyDone));
        clock.advance_ms(1001);
        assert!(matches!(nonces.begin(nonce), Begin::Proceed), "forgotten");
    }
}
