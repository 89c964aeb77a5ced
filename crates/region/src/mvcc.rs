//! Multi-version concurrency control: sequence ids are handed out in order, finish in any order, and become visible
//! in order.
//!
//! A write goes `begin` (gets its id) -> `inserted` (its cells are in the memstores) -> `complete` (the log has it).
//! The read point is the highest id below which every write is complete.
//!
//! Always true:
//!  1. The read point never moves back, and never passes a write whose cells are not all in the memstores.
//!  2. A write that was completed because the log has it makes every earlier logged write count as complete too: one log
//!     serves the region in the order of the ids, and nobody completes a write before the log has it as surely as the
//!     earlier ones' writers asked. So [`Mvcc::complete`] never waits for the disk; it waits at most for a neighbour that
//!     is between `begin` and `inserted`, which is memory work.
//!
//! Follows: `MultiVersionConcurrencyControl`.

use base::sync::atomic::{AtomicU64, Ordering};
use base::sync::{Condvar, Mutex};
use base::{ReadPoint, SeqId};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
struct Pending {
    seq_id: u64,
    inserted: bool,
    complete: bool,
}

#[derive(Debug)]
struct State {
    next: u64,
    /// Begun and not yet passed by the read point, ids ascending without gaps.
    pending: VecDeque<Pending>,
    waiting: usize,
}

/// One region's sequence ids and read point.
#[derive(Debug)]
pub struct Mvcc {
    read_point: AtomicU64,
    state: Mutex<State>,
    moved: Condvar,
}

impl Mvcc {
    /// The first id given out is `last` + 1; everything up to `last` is visible.
    pub fn new(last: SeqId) -> Mvcc {
        Mvcc {
            read_point: AtomicU64::new(last.0),
            state: Mutex::new(State { next: last.0 + 1, pending: VecDeque::new(), waiting: 0 }),
            moved: Condvar::new(),
        }
    }

    /// What a reader that starts now may see.
    #[inline]
    pub fn read_point(&self) -> ReadPoint {
        ReadPoint(self.read_point.load(Ordering::Acquire))
    }

    /// The highest id given out.
    pub fn last_seq_id(&self) -> SeqId {
        SeqId(self.state.lock().next - 1)
    }

    /// The next id. Callers that also append to the log hold the region's append lock around both, so that the log
    /// sees ids in order.
    pub fn begin(&self) -> SeqId {
        let mut state = self.state.lock();
        let seq_id = state.next;
        state.next += 1;
        state.pending.push_back(Pending { seq_id, inserted: false, complete: false });
        SeqId(seq_id)
    }

    /// The cells of `seq_id` are in the memstores.
    pub fn inserted(&self, seq_id: SeqId) {
        let mut state = self.state.lock();
        state.entry(seq_id).inserted = true;
        self.advance(&mut state);
    }

    /// The log has `seq_id` as surely as its writer wanted; when this returns it is visible. `logged`: it went through
    /// the log and was waited for, so everything before it in the log is as sure.
    pub fn complete(&self, seq_id: SeqId, logged: bool) {
        let mut state = self.state.lock();
        if logged {
            for pending in state.pending.iter_mut().take_while(|p| p.seq_id <= seq_id.0) {
                pending.complete = true;
            }
        } else if seq_id.0 > self.read_point.load(Ordering::Relaxed) {
            state.entry(seq_id).complete = true;
        }
        self.advance(&mut state);
        if logged {
            while self.read_point.load(Ordering::Relaxed) < seq_id.0 {
                state.waiting += 1;
                self.moved.wait(&mut state);
                state.waiting -= 1;
            }
        }
    }

    /// All up to `point` was written by somebody else, and is visible: of a region that nobody writes to here.
    pub fn follow(&self, point: ReadPoint) {
        let mut state = self.state.lock();
        if state.pending.is_empty() && point.0 >= state.next {
            state.next = point.0 + 1;
            self.read_point.store(point.0, Ordering::Release);
        }
    }

    /// Marks `seq_id` inserted and complete: an id that carries no cells (a marker, a refused write).
    pub fn skip(&self, seq_id: SeqId) {
        let mut state = self.state.lock();
        let entry = state.entry(seq_id);
        entry.inserted = true;
        entry.complete = true;
        self.advance(&mut state);
    }

    fn advance(&self, state: &mut State) {
        let mut passed = None;
        while let Some(front) = state.pending.front()
            && front.inserted
            && (front.complete || base::inject!("region.mvcc.incomplete-visible"))
        {
            passed = Some(front.seq_id);
            state.pending.pop_front();
        }
        if let Some(seq_id) = passed {
            let before = self.read_point.load(Ordering::Relaxed);
            assert!(before < seq_id, "the read point would move from {before} to {seq_id}");
            self.read_point.store(seq_id, Ordering::Release);
            if state.waiting > 0 {
                self.moved.notify_all();
            }
        }
    }
}

impl State {
    fn entry(&mut self, seq_id: SeqId) -> &mut Pending {
        let first = self.pending.front().map_or(seq_id.0, |p| p.seq_id);
        let at = usize::try_from(seq_id.0 - first).unwrap_or(usize::MAX);
        self.pending.get_mut(at).expect("a write is completed once, after it began")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_become_visible_in_order() {
        let mvcc = Mvcc::new(SeqId(10));
        let (a, b, c) = (mvcc.begin(), mvcc.begin(), mvcc.begin());
        assert_eq!((a, c), (SeqId(11), SeqId(13)));
        mvcc.inserted(a);
        mvcc.inserted(b);
        mvcc.inserted(c);
        mvcc.complete(b, false);
        assert_eq!(mvcc.read_point(), ReadPoint(10));
        mvcc.complete(a, false);
        assert_eq!(mvcc.read_point(), ReadPoint(12));
        mvcc.complete(c, true);
        assert_eq!(mvcc.read_point(), ReadPoint(13));
        mvcc.complete(b, false);
        assert_eq!(mvcc.read_point(), ReadPoint(13));
    }

    #[test]
    fn a_synced_write_carries_the_earlier_ones() {
        let mvcc = Mvcc::new(SeqId(0));
        let (a, b) = (mvcc.begin(), mvcc.begin());
        mvcc.inserted(a);
        mvcc.inserted(b);
        mvcc.complete(b, true);
        assert_eq!(mvcc.read_point(), ReadPoint(2));
        mvcc.complete(a, true);
        assert_eq!(mvcc.read_point(), ReadPoint(2));
    }

    #[test]
    fn completion_waits_for_a_neighbour_still_inserting() {
        let mvcc = Mvcc::new(SeqId(0));
        let (a, b) = (mvcc.begin(), mvcc.begin());
        mvcc.inserted(b);
        std::thread::scope(|scope| {
            let done = scope.spawn(|| mvcc.complete(b, true));
            mvcc.inserted(a);
            done.join().expect("no panic");
        });
        assert_eq!(mvcc.read_point(), ReadPoint(2));
    }
}
