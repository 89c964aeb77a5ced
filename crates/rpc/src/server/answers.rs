//! Answers that are given later: from any thread into their connection's inbox, which wakes the connection's task if that
//! sleeps. A whole group of writes so costs one wake and one write to the socket, and no task of its own per call.
//!
//! Or no wake at all: a connection's task that sleeps and wants nothing but requests and answers parks its output and socket at the inbox
//! ([`ParkedWriter`]), and a thread that answers a group ([`answer_together`]) sends the replies itself.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Waker};

use base::sync::Mutex;
use base::{Clock, Holder, Ledger};

use super::Counters;
use super::output::Output;
use crate::call::ConnInfo;
use crate::observer::{CallObserver, CallReads, KeptCall};
use crate::transport::TransportWriter;
use crate::{CallResult, Exception, Outcome};
use trace::CallTrace;

/// More connections than this are woken rather than served by a thread that answers a group: on it the next group waits.
const SERVED_AT_ONCE: usize = 4;

/// Answers smaller than this are not counted: there are never more of them than calls in flight.
const LEAST_COUNTED_BYTES: u64 = 4 * 1024;
/// A connection may always have so much of replies.
const UNCOUNTED_BYTES: usize = 64 * 1024;

/// What of an answer counts.
fn reply_bytes(result: &CallResult) -> u64 {
    let bytes = result.as_ref().map_or(0, |reply| (reply.message.len() + reply.cells.len()) as u64);
    if bytes < LEAST_COUNTED_BYTES { 0 } else { bytes }
}

/// An answer and the number of the call it belongs to.
pub(super) type Answered = (u32, CallResult);

/// A connection's inbox. Never holds more than the calls that the connection lets be in flight.
pub(crate) struct Inbox {
    counters: Arc<Counters>,
    /// How long calls take is measured on it; `None`: not at all.
    clock: Option<Arc<dyn Clock>>,
    ledger: Arc<Ledger>,
    state: Mutex<State>,
    /// Bytes of answers that wait here.
    waiting_bytes: AtomicU64,
    /// Bytes of replies that are being made ([`crate::Making`]).
    making_bytes: AtomicU64,
    /// Bytes of replies that the connection's socket has not taken.
    unsent_bytes: AtomicU64,
    /// Of these the connection may have, before no more is made for it.
    max_unsent_bytes: u64,
    /// Replies deferred so far, by [`Inbox::responder`].
    deferred: AtomicU64,
    /// Here while the connection's task sleeps and lets others send. Before `state`, where both are locked.
    parked: Mutex<Option<ParkedWriter>>,
    /// The peer has closed its side.
    peer_has_left: AtomicBool,
    /// Who is told of answers.
    observer: OnceLock<Arc<dyn CallObserver>>,
}

/// Where a connection's replies are made and sent. Nothing is unsent when the connection leaves it at the inbox.
#[derive(Debug)]
pub(super) struct ParkedWriter {
    pub(super) output: Output,
    /// Calls whose replies are to come.
    pub(super) in_flight: usize,
    /// Replies were sent here while the connection's task slept.
    pub(super) has_sent: bool,
    pub(super) conn: Arc<ConnInfo>,
    pub(super) socket: Arc<dyn Sink>,
}

/// A connection's outgoing direction, whatever its transport.
pub(super) trait Sink: Send + Sync + std::fmt::Debug {
    /// As [`TransportWriter::try_write`].
    fn try_write(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize>;
}

impl<W: TransportWriter> Sink for W {
    fn try_write(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        TransportWriter::try_write(self, pieces)
    }
}

#[derive(Debug, Default)]
struct State {
    answers: Vec<Answered>,
    /// The connection's task, when it waits for answers.
    sleeper: Option<Waker>,
    /// The connection is to look after its output, which somebody else could not send wholly.
    unsent: bool,
    /// Nobody will ever look again.
    closed: bool,
}

/// The inboxes of connections that are open, for whoever asks how much one of them holds. An open connection costs it a lock when it begins, and
/// nothing more; those that have ended are forgotten now and then, so that never more than twice as many are kept as were open at once.
#[derive(Debug, Default)]
pub(super) struct Inboxes(Mutex<Vec<Weak<Inbox>>>);

/// So few are kept without looking.
const FEW_INBOXES: usize = 64;

impl Inboxes {
    /// A connection begins.
    pub(super) fn add(&self, inbox: &Arc<Inbox>) {
        let mut inboxes = self.0.lock();
        if inboxes.len() >= FEW_INBOXES && inboxes.len() == inboxes.capacity() {
            inboxes.retain(|inbox| inbox.strong_count() > 0);
        }
        inboxes.push(Arc::downgrade(inbox));
    }

    /// The most bytes of replies that one connection holds.
    pub(super) fn most_held_bytes(&self) -> u64 {
        let mut inboxes = self.0.lock();
        inboxes.retain(|inbox| inbox.strong_count() > 0);
        inboxes.iter().filter_map(Weak::upgrade).map(|inbox| inbox.held_bytes()).max().unwrap_or(0)
    }
}

base::sync::thread_local! {
    /// Connections that this thread has answers for, while it is in [`answer_together`].
    static ANSWERED: RefCell<Option<Vec<Arc<Inbox>>>> = const { RefCell::new(None) };
}

/// Calls `answer`, which answers calls, on this thread; then sends the replies, those to one connection together. Connections whose
/// tasks are busy with something else are told to do it, and so are all when there are many.
pub fn answer_together(answer: impl FnOnce()) {
    /// Sends also when `answer` panics.
    struct Send;
    impl Drop for Send {
        fn drop(&mut self) {
            let answered = ANSWERED.with(RefCell::take).unwrap_or_default();
            for (n, inbox) in answered.iter().enumerate() {
                if n >= SERVED_AT_ONCE || !inbox.serve() {
                    inbox.wake();
                }
            }
        }
    }
    ANSWERED.with(|answered| answered.replace(Some(Vec::new())));
    let _send = Send;
    answer();
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Inbox {
    pub(super) fn new(
        counters: Arc<Counters>,
        clock: Option<Arc<dyn Clock>>,
        ledger: Arc<Ledger>,
        max_unsent_bytes: usize,
    ) -> Arc<Inbox> {
        Arc::new(Inbox {
            counters,
            clock,
            ledger,
            state: Mutex::default(),
            waiting_bytes: AtomicU64::new(0),
            making_bytes: AtomicU64::new(0),
            unsent_bytes: AtomicU64::new(0),
            max_unsent_bytes: max_unsent_bytes as u64,
            deferred: AtomicU64::new(0),
            parked: Mutex::default(),
            peer_has_left: AtomicBool::new(false),
            observer: OnceLock::new(),
        })
    }

    /// Says who is told of answers, once.
    pub(crate) fn observe(&self, observer: impl FnOnce() -> Arc<dyn CallObserver>) {
        self.observer.get_or_init(observer);
    }

    /// Tells whoever observes these calls that one ended so, after so many microseconds of waiting and of work.
    fn tell(&self, call: &KeptCall, times_us: (u64, u64), result: &CallResult) {
        if let Some(observer) = self.observer.get() {
            observer.answered(&call.answered(times_us, result));
        }
    }

    /// Whether somebody is told of answers.
    pub(crate) fn is_observed(&self) -> bool {
        self.observer.get().is_some()
    }

    /// The right, and the duty, to answer call `id`.
    pub(crate) fn responder(self: &Arc<Self>, id: u32, received_at_us: u64, size_bytes: usize) -> Responder {
        self.deferred.fetch_add(1, Relaxed);
        self.ledger.add(Holder::Requests, size_bytes as u64);
        Responder {
            inbox: Some(self.clone()),
            id,
            received_at_us,
            begun_at_us: received_at_us,
            size_bytes,
            watched: None,
            trace: None,
        }
    }

    /// Where the bytes of calls are counted.
    pub(crate) fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// How many replies were deferred so far.
    pub(super) fn deferred(&self) -> u64 {
        self.deferred.load(Relaxed)
    }

    /// Moves what there is to `into`, which is empty.
    pub(super) fn take(&self, into: &mut Vec<Answered>) {
        let mut state = self.state.lock();
        state.sleeper = None;
        state.unsent = false;
        std::mem::swap(&mut state.answers, into);
        drop(state);
        self.forget_waiting(into);
    }

    /// The answers are the connection's from now on: as far as they cannot be sent at once it counts them.
    fn forget_waiting(&self, answers: &[Answered]) {
        let bytes = answers.iter().map(|(_, result)| reply_bytes(result)).sum();
        if bytes > 0 {
            self.waiting_bytes.fetch_sub(bytes, Relaxed);
            self.ledger.take(Holder::Replies, bytes);
        }
    }

    /// So much of the connection's output is unsent.
    pub(super) fn set_unsent(&self, bytes: usize) {
        self.unsent_bytes.store(bytes as u64, Relaxed);
    }

    /// Bytes of answers that wait here.
    pub(super) fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes.load(Relaxed)
    }

    /// Whether the peer has so much to take that nothing more is to be made for it: its share, which is half of what nobody else holds.
    pub(crate) fn is_backlogged(&self) -> bool {
        let held = self.held_bytes();
        if held <= UNCOUNTED_BYTES as u64 {
            return false;
        }
        let all = self.ledger.held_bytes(Holder::Replies);
        // As much again must be free for others.
        if held < self.max_unsent_bytes && self.ledger.allows(Holder::Replies, all + 2 * held + 1) {
            return false;
        }
        // Whoever asked is told of the next bytes that leave; perhaps they have left just now.
        self.ledger.await_release();
        std::sync::atomic::fence(SeqCst);
        self.held_bytes() > UNCOUNTED_BYTES as u64
    }

    /// Bytes of replies that are being made, wait here, or are unsent.
    pub(super) fn held_bytes(&self) -> u64 {
        self.making_bytes.load(Relaxed) + self.waiting_bytes.load(Relaxed) + self.unsent_bytes.load(Relaxed)
    }

    /// A reply in the making has grown from `before` to `now` bytes. Whether it may grow on: it may have the connection's share by itself; beside
    /// others all of them together have it.
    pub(crate) fn reply_grew(&self, before: u64, now: u64) -> bool {
        self.making_bytes.fetch_add(now - before, Relaxed);
        self.ledger.add(Holder::Replies, now - before);
        let held = self.held_bytes();
        let is_alone = held <= now + UNCOUNTED_BYTES as u64;
        (is_alone || held < self.max_unsent_bytes)
            && self.ledger.allows(Holder::Replies, self.ledger.held_bytes(Holder::Replies) + 1)
    }

    /// Whether a reply of `now` bytes is half of all that are held, or more.
    pub(crate) fn reply_is_most(&self, now: u64) -> bool {
        self.ledger.held_bytes(Holder::Replies) <= now.saturating_mul(2)
    }

    /// Whether a reply that was given up for want of room may be tried again: nothing else is held for the connection, and replies may have
    /// `bytes` more, or there are none.
    pub(crate) fn has_room_again(&self, bytes: u64) -> bool {
        let has_room = || {
            let all = self.ledger.held_bytes(Holder::Replies);
            let few = UNCOUNTED_BYTES as u64;
            self.held_bytes() <= few && (all <= few || self.ledger.allows(Holder::Replies, all.saturating_add(bytes)))
        };
        if has_room() {
            return true;
        }
        // As in `is_backlogged`.
        self.ledger.await_release();
        std::sync::atomic::fence(SeqCst);
        has_room()
    }

    /// A reply of so many bytes is made, or given up: it is counted no more.
    pub(crate) fn reply_is_made(&self, bytes: u64) {
        self.making_bytes.fetch_sub(bytes, Relaxed);
        self.ledger.take(Holder::Replies, bytes);
    }

    /// The connection's task is about to sleep, and others may send in its place.
    pub(super) fn park(&self, parked: ParkedWriter) {
        *self.parked.lock() = Some(parked);
    }

    /// The task is awake and sends by itself again.
    pub(super) fn unpark(&self) -> Option<ParkedWriter> {
        self.parked.lock().take()
    }

    /// Sends the answers there are, in place of the connection's task; false when that has to be woken.
    fn serve(&self) -> bool {
        let mut parked = self.parked.lock();
        let Some(parked) = parked.as_mut().filter(|parked| parked.output.is_empty()) else { return false };
        let mut answers = std::mem::take(&mut self.state.lock().answers);
        if answers.is_empty() {
            return true;
        }
        self.forget_waiting(&answers);
        for (id, result) in answers.drain(..) {
            parked.in_flight -= 1;
            parked.output.answer(id, result, &parked.conn, &self.counters);
        }
        // A broken connection is found by its task, too, which has something to send then.
        let _ = parked.output.send(&*parked.socket, &self.counters);
        parked.has_sent = true;
        let mut state = self.state.lock();
        if state.answers.is_empty() {
            // For its memory.
            state.answers = answers;
        }
        state.unsent = !parked.output.is_empty();
        !state.unsent
    }

    /// Wakes the connection's task if it sleeps.
    fn wake(&self) {
        let sleeper = self.state.lock().sleeper.take();
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }

    /// Ready as soon as there is an answer to take.
    pub(super) fn poll_any(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        if !state.answers.is_empty() || state.unsent {
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
        self.forget_waiting(&forgotten);
        drop(forgotten);
        drop(self.parked.lock().take());
    }

    /// The peer has closed its side of the connection: what it still waits for is not worth beginning, nor going on with for long.
    pub(super) fn peer_has_left(&self) {
        self.peer_has_left.store(true, Relaxed);
    }

    /// Whether the connection is over, or its peer has left.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.peer_has_left.load(Relaxed) || self.state.lock().closed
    }

    fn put(self: &Arc<Self>, answered: Answered) {
        let is_served_soon = self.is_served_soon();
        let mut state = self.state.lock();
        if state.closed {
            return;
        }
        let bytes = reply_bytes(&answered.1);
        if bytes > 0 {
            self.waiting_bytes.fetch_add(bytes, Relaxed);
            self.ledger.add(Holder::Replies, bytes);
        }
        state.answers.push(answered);
        let sleeper = if is_served_soon { None } else { state.sleeper.take() };
        drop(state);
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }

    /// Whether this thread is in [`answer_together`] and looks after this connection at its end.
    fn is_served_soon(self: &Arc<Self>) -> bool {
        ANSWERED.with(|answered| {
            let mut answered = answered.borrow_mut();
            let Some(answered) = &mut *answered else { return false };
            if !answered.iter().rev().any(|inbox| Arc::ptr_eq(inbox, self)) {
                answered.push(self.clone());
            }
            true
        })
    }
}

/// The caller's end of a [`Call`](crate::Call) that came over no connection (`Call::direct`). It has no clock: whoever is told of the answer is
/// told that it took no time.
#[derive(Debug)]
pub struct Direct {
    inbox: Arc<Inbox>,
    asked: KeptCall,
}

impl Direct {
    pub(crate) fn new(asked: KeptCall) -> (Direct, Arc<Inbox>) {
        let inbox = Inbox::new(Arc::default(), None, super::capped_ledger(u64::MAX), usize::MAX);
        (Direct { inbox: inbox.clone(), asked }, inbox)
    }

    /// The answer, once there is one, to the call for which the handler returned `outcome`.
    pub async fn answer(self, outcome: Outcome) -> CallResult {
        let result = match outcome {
            Outcome::Ready(result) => result,
            Outcome::Future(later) => later.await,
            Outcome::Deferred => {
                std::future::poll_fn(|cx| self.inbox.poll_any(cx)).await;
                let mut answers = Vec::new();
                self.inbox.take(&mut answers);
                // Its responder has told.
                return answers
                    .pop()
                    .map_or_else(|| Err(Exception::io("no answer to a deferred call")), |(_, result)| result);
            }
        };
        self.inbox.tell(&self.asked, (0, 0), &result);
        result
    }
}

/// The call that is traced is answered.
pub(super) fn end(trace: &CallTrace, begun_at_us: u64, result: &CallResult) {
    trace.ended(begun_at_us, result.as_ref().err().map(|exception| (exception.class(), exception.message())));
}

/// The right, and the duty, to answer one call, from any thread. Dropped without an answer it gives one that says so.
#[derive(Debug)]
#[must_use = "the client waits for an answer"]
pub struct Responder {
    /// `None` once answered.
    inbox: Option<Arc<Inbox>>,
    id: u32,
    received_at_us: u64,
    /// When somebody began with the call: until then it waited in a queue.
    begun_at_us: u64,
    size_bytes: usize,
    /// Whoever is told of the answer.
    pub(crate) watched: Option<KeptCall>,
    /// Where the call is traced.
    pub(crate) trace: Option<Arc<CallTrace>>,
}

impl Responder {
    /// Answers the call. Does not wait; when the client is gone the answer is forgotten.
    pub fn answer(mut self, result: CallResult) {
        self.give(result);
    }

    /// The trace that the call is a part of.
    pub fn trace(&self) -> Option<&Arc<CallTrace>> {
        self.trace.as_ref()
    }

    /// The call has waited in a queue until now.
    pub fn begin(&mut self) {
        if let Some(clock) = self.inbox.as_ref().and_then(|inbox| inbox.clock.as_ref()) {
            self.begun_at_us = clock.monotonic_us();
        }
    }

    /// What a step of the call has read, for whoever is told of its answer.
    pub fn has_read(&mut self, reads: CallReads) {
        if let Some(watched) = &mut self.watched {
            watched.reads += reads;
        }
    }

    fn give(&mut self, result: CallResult) {
        if let Some(inbox) = self.inbox.take() {
            if let Some(trace) = self.trace.take() {
                end(&trace, self.begun_at_us, &result);
            }
            let mut times_us = (0, 0);
            if let Some(clock) = &inbox.clock {
                let queued_us = self.begun_at_us.saturating_sub(self.received_at_us);
                times_us = (queued_us, clock.monotonic_us().saturating_sub(self.begun_at_us));
                inbox.counters.times.answered_later(times_us.0, times_us.1);
            }
            if let Some(watched) = self.watched.take() {
                inbox.tell(&watched, times_us, &result);
            }
            if !(base::inject!("rpc.request.kept-for-who-left") && inbox.is_abandoned()) {
                inbox.ledger.take(Holder::Requests, self.size_bytes as u64);
            }
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

#[cfg(all(test, feature = "shuttle"))]
mod schedules;

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn replies_in_the_making_have_no_more_together_than_their_connection() {
        let ledger = super::super::capped_ledger(64 * MIB);
        let inbox = Inbox::new(Arc::default(), None, ledger.clone(), 16 << 20);
        let making = || crate::call::Making::of(inbox.clone());
        // A reply by itself may be as large as replies may be.
        let alone = making();
        assert!(alone.has(40 * MIB));
        assert!(!alone.has(64 * MIB), "no more is granted to all replies");
        assert_eq!(ledger.held_bytes(Holder::Replies), 64 * MIB);
        drop(alone);
        assert_eq!(ledger.held_bytes(Holder::Replies), 0);
        let several: Vec<_> = (0..8).map(|_| making()).collect();
        assert!(several.iter().all(|reply| reply.has(MIB)), "a half of what the connection may have");
        assert!(!inbox.is_backlogged());
        assert!(several[..7].iter().all(|reply| reply.has(2 * MIB)));
        assert!(!several[7].has(2 * MIB), "together they have it all: each is to end with what it has");
        assert!(inbox.is_backlogged(), "and no other is begun");
        drop(several);
        assert!(!inbox.is_backlogged());
        assert_eq!(ledger.held_bytes(Holder::Replies), 0);
    }

    #[test]
    fn a_reply_that_cannot_be_cut_is_tried_again_when_the_others_have_gone() {
        let ledger = super::super::capped_ledger(20 * MIB);
        let inboxes = [16, 16, 16].map(|mib| Inbox::new(Arc::default(), None, ledger.clone(), mib << 20));
        let making = |at: usize| crate::call::Making::of(inboxes[at].clone());
        let rows: Vec<_> = (0..3).map(making).collect();
        assert!(rows.iter().all(|row| row.may_be_gathered(6 * MIB)));
        assert!(!rows[0].may_be_gathered(8 * MIB), "all that may be is held, and this is not half of it");
        assert!(!inboxes[0].has_room_again(MIB), "it is still held");
        drop(rows);
        let (first, second) = (making(0), making(1));
        assert!(first.may_be_gathered(30 * MIB), "one that has all there is goes on, however large it is");
        assert!(second.may_be_gathered(30 * MIB) && !second.has(30 * MIB), "and so does one that has half");
        drop(second);
        assert!(!inboxes[1].has_room_again(MIB), "others hold too much");
        assert!(!inboxes[0].has_room_again(0), "its own connection holds something");
        drop(first);
        assert!(inboxes.iter().all(|inbox| inbox.has_room_again(100 * MIB)), "nobody holds anything");
    }
}
