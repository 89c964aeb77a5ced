//! Answers that are given later: from any thread into their connection's inbox, which wakes the connection's task if that
//! sleeps. A whole group of writes so costs one wake and one write to the socket, and no task of its own per call.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};

use base::sync::Mutex;

use super::Counters;
use crate::{CallResult, Exception, Outcome};

/// An answer and the number of the call it belongs to.
pub(super) type Answered = (u32, CallResult);

/// A connection's inbox. Never holds more than the calls that the connection lets be in flight.
#[derive(Debug)]
pub(crate) struct Inbox {
    counters: Arc<Counters>,
    state: Mutex<State>,
    /// Answers promised so far, by [`Inbox::responder`].
    promised: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    answers: Vec<Answered>,
    /// The connection's task, when it waits for answers.
    sleeper: Option<Waker>,
    /// Nobody will ever look again.
    closed: bool,
}

impl Inbox {
    pub(super) fn new(counters: Arc<Counters>) -> Arc<Inbox> {
        Arc::new(Inbox { counters, state: Mutex::default(), promised: AtomicU64::new(0) })
    }

    /// The right, and the duty, to answer call `id`.
    pub(crate) fn responder(self: &Arc<Self>, id: u32, size_bytes: usize) -> Responder {
        self.promised.fetch_add(1, Relaxed);
        self.counters.queued_bytes.fetch_add(size_bytes as u64, Relaxed);
        Responder { inbox: Some(self.clone()), id, size_bytes }
    }

    /// How many answers were promised so far.
    pub(super) fn promised(&self) -> u64 {
        self.promised.load(Relaxed)
    }

    /// Moves what there is to `into`, which is empty.
    pub(super) fn take(&self, into: &mut Vec<Answered>) {
        let mut state = self.state.lock();
        state.sleeper = None;
        std::mem::swap(&mut state.answers, into);
    }

    /// Ready as soon as there is an answer to take.
    pub(super) fn poll_any(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        if !state.answers.is_empty() {
            return Poll::Ready(());
        }
        if !state.sleeper.as_ref().is_some_and(|sleeper| sleeper.will_wake(cx.waker())) {
            state.sleeper = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Answers that come from now on are forgotten.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.sleeper = None;
        let forgotten = std::mem::take(&mut state.answers);
        drop(state);
        drop(forgotten);
    }

    fn put(&self, answered: Answered) {
        let mut state = self.state.lock();
        if state.closed {
            return;
        }
        state.answers.push(answered);
        let sleeper = state.sleeper.take();
        drop(state);
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }
}

/// The caller's end of a [`Call`](crate::Call) that came over no connection (`Call::direct`).
#[derive(Debug)]
pub struct Direct(Arc<Inbox>);

impl Direct {
    pub(crate) fn new() -> (Direct, Arc<Inbox>) {
        let inbox = Inbox::new(Arc::default());
        (Direct(inbox.clone()), inbox)
    }

    /// The answer, once there is one, to the call for which the handler returned `outcome`.
    pub async fn answer(self, outcome: Outcome) -> CallResult {
        match outcome {
            Outcome::Ready(result) => result,
            Outcome::Later(later) => later.await,
            Outcome::Promised => {
                std::future::poll_fn(|cx| self.0.poll_any(cx)).await;
                let mut answers = Vec::new();
                self.0.take(&mut answers);
                answers.pop().map_or_else(|| Err(Exception::io("no answer to a promise")), |(_, result)| result)
            }
        }
    }
}

/// The right, and the duty, to answer one call, from any thread. Dropped without an answer it gives one that says so.
#[derive(Debug)]
#[must_use = "the client waits for an answer"]
pub struct Responder {
    /// `None` once answered.
    inbox: Option<Arc<Inbox>>,
    id: u32,
    size_bytes: usize,
}

impl Responder {
    /// Answers the call. Does not wait; when the client is gone the answer is forgotten.
    pub fn answer(mut self, result: CallResult) {
        self.give(result);
    }

    fn give(&mut self, result: CallResult) {
        if let Some(inbox) = self.inbox.take() {
            inbox.counters.queued_bytes.fetch_sub(self.size_bytes as u64, Relaxed);
            inbox.put((self.id, result));
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if self.inbox.is_some() {
            self.give(Err(Exception::io("internal error: the call ended inside the server without an answer")));
        }
    }
}

#[cfg(all(test, shuttle))]
mod schedules {
    use super::*;
    use crate::Reply;
    use base::sync::atomic::{AtomicBool, Ordering::SeqCst};
    use base::sync::{explore, thread};
    use std::task::Wake;

    struct Bell(AtomicBool);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.store(true, SeqCst);
        }
    }

    /// Two threads answer, one call each is dropped; the connection sleeps whenever there is nothing to take.
    #[test]
    fn every_answer_wakes_a_connection_that_sleeps() {
        explore(|| {
            let inbox = Inbox::new(Arc::default());
            let answering: Vec<_> = (0..2_u32)
                .map(|thread_number| {
                    let responders: Vec<_> = (0..2).map(|n| inbox.responder(thread_number * 2 + n, 10)).collect();
                    thread::spawn(move || {
                        for responder in responders {
                            if responder.id % 2 == 0 {
                                responder.answer(Ok(Reply::default()));
                            }
                        }
                    })
                })
                .collect();
            let mut got = Vec::new();
            let bell = Arc::new(Bell(AtomicBool::new(false)));
            let waker = Waker::from(bell.clone());
            while got.len() < 4 {
                while inbox.poll_any(&mut Context::from_waker(&waker)).is_pending() {
                    let mut turns = 0;
                    while !bell.0.swap(false, SeqCst) {
                        thread::yield_now();
                        turns += 1;
                        assert!(turns < 10_000, "nobody wakes the connection");
                    }
                }
                let mut taken = Vec::new();
                inbox.take(&mut taken);
                got.extend(taken.into_iter().map(|(id, result)| (id, result.is_ok())));
            }
            got.sort_unstable();
            assert_eq!(got, [(0, true), (1, false), (2, true), (3, false)]);
            answering.into_iter().for_each(|thread| thread.join().expect("answered"));
            assert_eq!(inbox.counters.queued_bytes.load(Relaxed), 0);
        });
    }

    #[test]
    fn an_answer_to_a_connection_that_ends_is_forgotten_once() {
        explore(|| {
            let inbox = Inbox::new(Arc::default());
            let responder = inbox.responder(1, 10);
            let answering = thread::spawn(move || responder.answer(Ok(Reply::default())));
            inbox.close();
            answering.join().expect("answered");
            let mut left = Vec::new();
            inbox.take(&mut left);
            assert!(left.is_empty());
            assert_eq!(inbox.counters.queued_bytes.load(Relaxed), 0);
        });
    }
}
