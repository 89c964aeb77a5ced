//! What a region's log has had that its read replicas elsewhere are still to be told: in the order of the ids, and no more than there is room for.
//!
//! Always true:
//!  1. An entry is given out when the log has it as surely as its writer asked, and so are all before it.
//!  2. Writers never wait for it. Where there is no room, what waits is forgotten, and a flush of everything is wanted: its files stand for what was
//!     forgotten. What comes after its beginning is kept again, and given out behind an entry that names all files, as an opening does.
//!  3. Where one replica has missed something, the others go on being told: the entry that names all files has its place among theirs.
//!
//! Follows: `RegionReplicaReplicationEndpoint` in what is sent, `RegionReplicationSink` of HBase 3 in when it is given up.

use crate::MemoryMeter;
use base::SeqId;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use wal::{Level, Ticket};

/// What an entry costs beside its cells.
const ENTRY_BYTES: usize = size_of::<Outgoing>() + 32;

/// An entry of the log.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Its id.
    pub seq_id: SeqId,
    /// When it was made, milliseconds.
    pub write_time_ms: i64,
    /// Its cells, as a cell block has them.
    pub run: Bytes,
    /// How many.
    pub cells: usize,
    /// It names all files of the region: a replica that has missed what was before is whole with it.
    pub is_whole: bool,
    ticket: Option<(Ticket, Level)>,
}

impl Outgoing {
    fn is_durable(&self) -> bool {
        self.ticket.as_ref().is_none_or(|(ticket, level)| ticket.is_done_at(*level))
    }

    fn heap_bytes(&self) -> usize {
        self.run.len() + ENTRY_BYTES
    }
}

/// What waits.
#[derive(Debug)]
enum Waiting {
    Entry(Outgoing),
    /// A flush of everything runs: the entry that names all files comes here when it has ended. `was_lost`: what came before it was forgotten.
    Files {
        was_lost: bool,
    },
}

impl Waiting {
    fn heap_bytes(&self) -> usize {
        match self {
            Waiting::Entry(entry) => entry.heap_bytes(),
            Waiting::Files { .. } => 0,
        }
    }
}

#[derive(Debug, Default, PartialEq)]
enum Course {
    /// All that came is here, or was given out.
    #[default]
    Whole,
    /// Something was forgotten: nothing is kept until a flush of everything begins.
    Lost,
    /// Nobody sends anything.
    Off,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Waiting>,
    course: Course,
    /// Nobody is to be told of what comes: who sends looks by himself, or was told.
    is_told: bool,
}

impl State {
    /// Where the files of the flush that runs are to be named.
    fn files(&self) -> Option<usize> {
        self.queue.iter().position(|next| matches!(next, Waiting::Files { .. }))
    }

    fn next_entry(&self) -> Option<&Outgoing> {
        match self.queue.front() {
            Some(Waiting::Entry(next)) => Some(next),
            Some(Waiting::Files { .. }) | None => None,
        }
    }
}

/// Tells who sends that there is something.
#[derive(Default)]
struct News {
    tell: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// The log did not get the entry that is next, and would say so again at once.
    log_fails: AtomicBool,
}

impl News {
    fn tell(&self) {
        if let Some(tell) = self.tell.get() {
            tell();
        }
    }
}

/// The entries of one region.
pub struct Outbox {
    state: Mutex<State>,
    news: Arc<News>,
    /// Seen by whoever looks which regions are to be flushed.
    wants_flush: AtomicBool,
    /// However short a time ago the last was.
    wants_it_now: AtomicBool,
    /// Replicas that have opened and asked for a flush.
    openings: AtomicU64,
    /// The number under which the region's opening was told of.
    opened_at: AtomicU64,
    memory: Arc<MemoryMeter>,
    /// Of all regions of the server.
    limit_bytes: u64,
    /// Entries that were forgotten.
    forgotten: AtomicU64,
    /// When everything was flushed last for want of room, milliseconds.
    flushed_ms: AtomicI64,
    /// Whether it has the edits of rows; markers it always has (REGION_MEMSTORE_REPLICATION).
    pub(crate) has_edits: bool,
}

/// Between two flushes that replicas bring about by missing something. Follows: HBase 3's `hbase.region.read-replica.sink.flush.min-interval`.
const FLUSH_EVERY_MS: i64 = 30_000;

impl std::fmt::Debug for Outbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outbox").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.forget(&mut self.state.lock());
        // Who sends looks, and finds the region gone.
        self.news.tell();
    }
}

impl Outbox {
    pub(crate) fn new(memory: &Arc<MemoryMeter>, limit_bytes: u64, has_edits: bool) -> Outbox {
        Outbox {
            state: Mutex::default(),
            news: Arc::default(),
            wants_flush: AtomicBool::new(false),
            wants_it_now: AtomicBool::new(false),
            openings: AtomicU64::new(0),
            opened_at: AtomicU64::new(0),
            memory: memory.clone(),
            limit_bytes,
            forgotten: AtomicU64::new(0),
            flushed_ms: AtomicI64::new(i64::MIN),
            has_edits,
        }
    }

    /// Has `tell` called, from whatever thread and perhaps without cause, when [`Outbox::take`] may give something. The first one stays.
    pub fn on_news(&self, tell: impl Fn() + Send + Sync + 'static) {
        let _the_first_stays = self.news.tell.set(Box::new(tell));
        self.news.tell();
    }

    /// There is nobody who sends anything: it keeps nothing from now on.
    pub fn switch_off(&self) {
        let mut state = self.state.lock();
        self.forget(&mut state);
        state.course = Course::Off;
    }

    /// Whether the region is to be flushed as a whole, for its replicas' sake.
    pub fn wants_flush(&self) -> bool {
        self.wants_flush.load(Ordering::Relaxed)
    }

    /// Whether it is time for that flush.
    pub(crate) fn flush_is_due(&self, now_ms: impl FnOnce() -> i64) -> bool {
        let is_late = || now_ms().saturating_sub(self.flushed_ms.load(Ordering::Relaxed)) >= FLUSH_EVERY_MS;
        self.wants_flush() && (self.wants_it_now.load(Ordering::Relaxed) || is_late())
    }

    /// Entries that no replica was told of, because there was no room or one of them could not be reached.
    pub fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Relaxed)
    }

    /// The next entries that may be told, about so many bytes at most, one at least if there is one.
    pub fn take(&self, most_bytes: usize) -> Vec<Outgoing> {
        let mut state = self.state.lock();
        self.news.log_fails.store(false, Ordering::Relaxed);
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while let Some(next) = state.next_entry()
            && next.is_durable()
            && (taken.is_empty() || !next.is_whole)
            && (taken.is_empty() || bytes + next.run.len() <= most_bytes)
        {
            bytes += next.run.len();
            if let Some(Waiting::Entry(next)) = state.queue.pop_front() {
                taken.push(next);
            }
        }
        let heap: usize = taken.iter().map(Outgoing::heap_bytes).sum();
        self.memory.outbox_grew(-(heap as i64));
        state.is_told = false;
        if taken.is_empty() {
            self.tell_when_durable(state);
        }
        taken
    }

    fn tell_when_durable(&self, mut state: parking_lot::MutexGuard<'_, State>) {
        if let Some(Waiting::Files { .. }) = state.queue.front() {
            // The flush tells when it ends.
            state.is_told = true;
            return;
        }
        let Some((ticket, level)) = state.next_entry().and_then(|next| next.ticket.clone()) else { return };
        state.is_told = true;
        // It may be called at once.
        drop(state);
        let news = self.news.clone();
        ticket.on_done_at(level, move |done| {
            if done.is_err() {
                news.log_fails.store(true, Ordering::Relaxed);
            }
            news.tell();
        });
    }

    /// Whether nothing could be taken last because the log has failed: to be asked again after a while, whatever is told meanwhile.
    pub fn log_fails(&self) -> bool {
        self.news.log_fails.load(Ordering::Relaxed)
    }

    /// Some replica has missed something: with the next flush of everything all of them are told which files there are. `now`: it is one that has
    /// come, or gone elsewhere, and does not wait until some time has passed since the flush before, as one waits that fails where it is.
    pub fn want_all_files(&self, now: bool) {
        if self.state.lock().course != Course::Off {
            self.wants_flush.store(true, Ordering::Relaxed);
            self.wants_it_now.fetch_or(now, Ordering::Relaxed);
        }
    }

    /// A replica has opened, and asks for the flush that comes now: all files are named with it, and who sends hears of it.
    pub fn replica_opened(&self) {
        self.want_all_files(false);
        self.openings.fetch_add(1, Ordering::Relaxed);
        self.news.tell();
    }

    /// How many replicas have opened and asked for a flush.
    pub fn openings(&self) -> u64 {
        self.openings.load(Ordering::Relaxed)
    }

    fn lose_in(&self, state: &mut State) {
        self.forget(state);
        state.course = Course::Lost;
        self.wants_flush.store(true, Ordering::Relaxed);
    }

    fn forget(&self, state: &mut State) {
        let heap: usize = state.queue.iter().map(Waiting::heap_bytes).sum();
        let entries = state.queue.iter().filter(|next| matches!(next, Waiting::Entry(_))).count();
        self.forgotten.fetch_add(entries as u64, Ordering::Relaxed);
        self.memory.outbox_grew(-(heap as i64));
        state.queue = VecDeque::new();
    }

    /// An entry was appended to the log. The caller has the turn: entries come in the order of their ids.
    pub(crate) fn push(
        &self,
        seq_id: SeqId,
        write_time_ms: i64,
        (run, cells): (&[u8], usize),
        ticket: (Ticket, Level),
    ) {
        let mut state = self.state.lock();
        match state.course {
            Course::Off => return,
            Course::Lost => {
                self.forgotten.fetch_add(1, Ordering::Relaxed);
                return;
            }
            Course::Whole => {}
        }
        let run = Bytes::copy_from_slice(run);
        let next = Outgoing { seq_id, write_time_ms, run, cells, is_whole: false, ticket: Some(ticket) };
        let heap = next.heap_bytes();
        if self.memory.outbox_bytes() + heap as u64 > self.limit_bytes {
            return self.lose_in(&mut state);
        }
        self.memory.outbox_grew(heap as i64);
        state.queue.push_back(Waiting::Entry(next));
        self.tell(state);
    }

    fn tell(&self, mut state: parking_lot::MutexGuard<'_, State>) {
        if !std::mem::replace(&mut state.is_told, true) {
            drop(state);
            self.news.tell();
        }
    }

    /// The region opens, and says so under that number.
    pub(crate) fn opens(&self, seq_id: SeqId) {
        self.opened_at.store(seq_id.0, Ordering::Relaxed);
    }

    /// The number under which its opening was told of: replicas hear nothing that has a lower one.
    pub(crate) fn opened_at(&self) -> SeqId {
        SeqId(self.opened_at.load(Ordering::Relaxed))
    }

    /// The region opens, and all that it has is in files: its first entry, which says so, names them.
    pub(crate) fn opens_whole(&self) {
        if let Some(Waiting::Entry(first)) = self.state.lock().queue.front_mut() {
            first.is_whole = true;
        }
    }

    /// A flush takes all that is in memory. Nobody writes meanwhile.
    pub(crate) fn whole_flush_begun(&self) {
        if !self.wants_flush() {
            return;
        }
        let mut state = self.state.lock();
        if state.course != Course::Off && state.files().is_none() {
            let was_lost = std::mem::take(&mut state.course) == Course::Lost;
            state.queue.push_back(Waiting::Files { was_lost });
        }
    }

    /// It failed.
    pub(crate) fn whole_flush_failed(&self) {
        let mut state = self.state.lock();
        match state.files().and_then(|at| state.queue.remove(at)) {
            Some(Waiting::Files { was_lost: true }) => self.lose_in(&mut state),
            // What comes next may be given out.
            Some(_) => {
                state.is_told = false;
                self.tell(state);
            }
            None => {}
        }
    }

    /// Its files are there: whether who has missed something waits to be told of them.
    pub(crate) fn is_flushing(&self) -> bool {
        self.state.lock().files().is_some()
    }

    /// `run` names all files of the region, which hold everything up to `seq_id`.
    pub(crate) fn whole_flush_ended(&self, seq_id: SeqId, write_time_ms: i64, (run, cells): (&[u8], usize)) {
        let mut state = self.state.lock();
        // Where there was no room meanwhile it is gone.
        let Some(place) = state.files().and_then(|at| state.queue.get_mut(at)) else { return };
        let run = Bytes::copy_from_slice(run);
        let whole = Outgoing { seq_id, write_time_ms, run, cells, is_whole: true, ticket: None };
        self.memory.outbox_grew(whole.heap_bytes() as i64);
        *place = Waiting::Entry(whole);
        self.flushed_ms.store(write_time_ms, Ordering::Relaxed);
        self.wants_flush.store(false, Ordering::Relaxed);
        self.wants_it_now.store(false, Ordering::Relaxed);
        state.is_told = false;
        self.tell(state);
    }
}
