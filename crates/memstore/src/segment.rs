//! A sorted set of cells that takes inserts until it is frozen, and what is known about them together.

use crate::skiplist::{Cursor, Insertion, Look, Run, SkipList};
use base::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use base::{SeqId, TimestampMs};
use cell::{CellRef, CellType, KeyRef, Order};
use std::sync::Arc;

/// Tells the segments of one memstore apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SegmentId(pub u64);

/// Milliseconds, both ends inclusive. A column or family delete reaches back to 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeRange {
    /// Smallest timestamp.
    pub min_ms: i64,
    /// Largest timestamp.
    pub max_ms: i64,
}

/// What inserts added.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Growth {
    /// Number of cells.
    pub cells: usize,
    /// Bytes of the cells alone.
    pub data_bytes: usize,
    /// Memory newly taken; often 0, then a whole chunk. Summed over all inserts it is exactly what
    /// [`Segment::heap_bytes`] grew by.
    pub heap_bytes: usize,
}

/// Sorted cells in an arena. Inserts and reads go on at once from any number of threads.
#[derive(Debug)]
pub struct Segment {
    id: SegmentId,
    list: Arc<SkipList>,
    facts: Facts,
    frozen: AtomicBool,
}

/// What is known about all cells. Published by [`Inserter`]s when they end; only ever widened.
#[derive(Debug)]
struct Facts {
    cells: AtomicUsize,
    data_bytes: AtomicUsize,
    deletes: AtomicUsize,
    has_tags: AtomicBool,
    max_seq: AtomicU64,
    min_ms: AtomicI64,
    max_ms: AtomicI64,
}

/// One inserter's share of [`Facts`], not yet published.
struct Tally {
    growth: Growth,
    deletes: usize,
    has_tags: bool,
    max_seq: u64,
    min_ms: i64,
    max_ms: i64,
}

impl Tally {
    fn new() -> Tally {
        Tally { growth: Growth::default(), deletes: 0, has_tags: false, max_seq: 0, min_ms: i64::MAX, max_ms: i64::MIN }
    }

    #[inline]
    fn count(&mut self, cell: CellRef<'_>, timestamp: i64, grown_bytes: usize) {
        let type_code = cell.type_code();
        self.growth.cells += 1;
        self.growth.data_bytes += cell.bytes().len();
        self.growth.heap_bytes += grown_bytes;
        self.has_tags |= !cell.tags().is_empty();
        self.max_seq = self.max_seq.max(cell.seq_id().0);
        self.min_ms = self.min_ms.min(timestamp);
        self.max_ms = self.max_ms.max(timestamp);
        if CellType::is_delete(type_code) {
            self.deletes += 1;
            // Follows: TimeRangeTracker#includeTimestamp. These hide everything up to their own time.
            if type_code == CellType::DeleteColumn.code() || type_code == CellType::DeleteFamily.code() {
                self.min_ms = self.min_ms.min(0);
                self.max_ms = self.max_ms.max(0);
            }
        }
    }
}

impl Facts {
    fn new() -> Facts {
        Facts {
            cells: AtomicUsize::new(0),
            data_bytes: AtomicUsize::new(0),
            deletes: AtomicUsize::new(0),
            has_tags: AtomicBool::new(false),
            max_seq: AtomicU64::new(0),
            min_ms: AtomicI64::new(i64::MAX),
            max_ms: AtomicI64::new(i64::MIN),
        }
    }

    /// Looks before it writes: most inserts do not move most of the bounds.
    fn add(&self, tally: &Tally) {
        if tally.deletes > 0 {
            self.deletes.fetch_add(tally.deletes, Relaxed);
        }
        if tally.has_tags && !self.has_tags.load(Relaxed) {
            self.has_tags.store(true, Relaxed);
        }
        if tally.max_seq > self.max_seq.load(Relaxed) {
            self.max_seq.fetch_max(tally.max_seq, Relaxed);
        }
        if tally.min_ms < self.min_ms.load(Relaxed) {
            self.min_ms.fetch_min(tally.min_ms, Relaxed);
        }
        if tally.max_ms > self.max_ms.load(Relaxed) {
            self.max_ms.fetch_max(tally.max_ms, Relaxed);
        }
        self.data_bytes.fetch_add(tally.growth.data_bytes, Relaxed);
        // Last, and released: whoever sees the count sees the bounds that go with it.
        self.cells.fetch_add(tally.growth.cells, Release);
    }
}

impl Segment {
    /// An empty segment; takes no arena memory until the first insert.
    pub fn new(order: Order, id: SegmentId) -> Segment {
        Segment::expecting(order, id, &[])
    }

    /// As [`Segment::new`], for rows most of which begin with `common`: then they are compared faster. Any other rows may come as well.
    pub fn expecting(order: Order, id: SegmentId, common: &[u8]) -> Segment {
        Segment {
            id,
            list: Arc::new(SkipList::new(order, common)),
            facts: Facts::new(),
            frozen: AtomicBool::new(false),
        }
    }

    /// Its id within its memstore.
    pub fn id(&self) -> SegmentId {
        self.id
    }

    /// The order of its cells.
    pub fn order(&self) -> Order {
        self.list.order()
    }

    /// Starts a run of inserts by one thread: the cells of a batch, best in ascending order. Cheaper than single
    /// inserts, because neighbours share the search and the facts are published once, at the end.
    ///
    /// Cells of one row must not be inserted by two threads at the same time: a [`SegmentIter::seek`] into the row might land behind
    /// one of them.
    ///
    /// # Panics
    /// When the segment is frozen: the cell would never reach a file.
    #[inline]
    pub fn inserter(&self) -> Inserter<'_> {
        assert!(!self.frozen.load(Acquire), "insert into frozen memstore segment {}", self.id.0);
        Inserter { segment: self, insertion: self.list.insertion(), tally: Tally::new() }
    }

    /// Copies `cell` in, under its own sequence id. See [`Segment::inserter`] for more than one.
    ///
    /// # Panics
    /// When the segment is frozen.
    pub fn insert(&self, cell: CellRef<'_>) -> Growth {
        let mut inserter = self.inserter();
        inserter.insert(cell);
        inserter.finish()
    }

    /// Copies `cell` in under `seq`; if its timestamp is LATEST the copy gets `timestamp` (milliseconds).
    ///
    /// # Panics
    /// When the segment is frozen.
    pub fn insert_patched(&self, cell: CellRef<'_>, timestamp: i64, seq: SeqId) -> Growth {
        let mut inserter = self.inserter();
        inserter.insert_patched(cell, timestamp, seq);
        inserter.finish()
    }

    /// What all rows begin with; nothing when there are none.
    pub fn common_row_prefix(&self) -> Vec<u8> {
        let (mut first, mut last) = (self.iter(), self.iter());
        if !first.seek_to_first() || !last.seek_to_last() {
            return Vec::new();
        }
        let (Some(first), Some(last)) = (first.current(), last.current()) else { return Vec::new() };
        first.row().iter().zip(last.row()).take_while(|(a, b)| a == b).map(|(a, _)| *a).collect()
    }

    /// Refuses inserts from now on.
    pub(crate) fn freeze(&self) {
        self.frozen.store(true, Release);
    }

    /// Number of cells whose [`Inserter`] has ended.
    #[inline]
    pub fn len(&self) -> usize {
        self.facts.cells.load(Acquire)
    }

    /// Whether no inserter has put anything in.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the cells alone (their KeyValues).
    #[inline]
    pub fn data_bytes(&self) -> usize {
        self.facts.data_bytes.load(Relaxed)
    }

    /// Bytes of memory held, unused ends of chunks included.
    #[inline]
    pub fn heap_bytes(&self) -> usize {
        size_of::<Segment>() + size_of::<SkipList>() + self.list.arena_bytes()
    }

    /// Of these, what inserts took: the sum of their [`Growth::heap_bytes`].
    #[inline]
    pub fn grown_bytes(&self) -> usize {
        self.list.arena_bytes()
    }

    /// The timestamps inside; `None` when empty. Follows: `TimeRangeTracker`.
    pub fn time_range(&self) -> Option<TimeRange> {
        (!self.is_empty())
            .then(|| TimeRange { min_ms: self.facts.min_ms.load(Relaxed), max_ms: self.facts.max_ms.load(Relaxed) })
    }

    /// Smallest timestamp; `None` when empty.
    pub fn min_timestamp(&self) -> Option<TimestampMs> {
        self.time_range().map(|range| TimestampMs(range.min_ms))
    }

    /// Largest timestamp; `None` when empty.
    pub fn max_timestamp(&self) -> Option<TimestampMs> {
        self.time_range().map(|range| TimestampMs(range.max_ms))
    }

    /// Whether any cell is a delete marker.
    pub fn has_deletes(&self) -> bool {
        self.facts.deletes.load(Relaxed) > 0
    }

    /// Number of delete markers.
    pub fn delete_count(&self) -> usize {
        self.facts.deletes.load(Relaxed)
    }

    /// Whether any cell has tags.
    pub fn has_tags(&self) -> bool {
        self.facts.has_tags.load(Relaxed)
    }

    /// Largest sequence id; 0 when empty.
    pub fn max_seq(&self) -> SeqId {
        SeqId(self.facts.max_seq.load(Relaxed))
    }

    /// Rows of cells that are spread evenly over the segment, in order: at least `wanted` of them, and about four times as many at most, or
    /// all where there are fewer. A row that has many cells may be there more than once.
    pub fn sample_rows(&self, wanted: usize) -> Vec<Vec<u8>> {
        let mut rows = Vec::new();
        self.list.sample(wanted, |cell| rows.push(cell.row().to_vec()));
        rows
    }

    /// A reader for a moment, at the first cell that is not before `key`; of equal keys the newest. `None` when there is none.
    #[inline]
    pub fn look(&self, key: KeyRef<'_>) -> Option<SegmentLook<'_>> {
        self.list.look(key).map(|look| SegmentLook { look })
    }

    /// A reader that keeps the cells alive; stands nowhere until a seek.
    pub fn iter(&self) -> SegmentIter {
        SegmentIter { cursor: Cursor::new(Arc::clone(&self.list)) }
    }
}

/// A run of inserts by one thread; see [`Segment::inserter`]. A cell is readable when its insert returns; the
/// segment's counts and bounds follow when the inserter is finished or dropped, so end it before the write becomes
/// visible: readers skip segments by those bounds.
pub struct Inserter<'a> {
    segment: &'a Segment,
    insertion: Insertion<'a>,
    tally: Tally,
}

impl Inserter<'_> {
    /// Copies `cell` in, under its own sequence id.
    #[inline]
    pub fn insert(&mut self, cell: CellRef<'_>) {
        let grown_bytes = self.insertion.insert(cell, None);
        self.tally.count(cell, cell.timestamp(), grown_bytes);
    }

    /// Copies `cells` in, in their order, each under its own sequence id. Cheaper than one by one where their places are far
    /// apart in a large segment.
    pub fn insert_all(&mut self, cells: &[CellRef<'_>]) {
        let tally = &mut self.tally;
        self.insertion.insert_all(cells, |cell, grown_bytes| tally.count(cell, cell.timestamp(), grown_bytes));
    }

    /// Copies `cell` in under `seq`; if its timestamp is LATEST the copy gets `timestamp` (milliseconds).
    /// Follows: `PrivateCellUtil#updateLatestStamp`.
    #[inline]
    pub fn insert_patched(&mut self, cell: CellRef<'_>, timestamp: i64, seq: SeqId) {
        let cell = cell.with_seq_id(seq);
        if cell.timestamp() != TimestampMs::LATEST.0 {
            return self.insert(cell);
        }
        let grown_bytes = self.insertion.insert(cell, Some(timestamp));
        self.tally.count(cell, timestamp, grown_bytes);
    }

    /// Ends the run and tells what it added.
    pub fn finish(self) -> Growth {
        self.tally.growth
    }
}

impl Drop for Inserter<'_> {
    fn drop(&mut self) {
        if self.tally.growth.cells > 0 {
            self.segment.facts.add(&self.tally);
        }
    }
}

/// Walks a segment; owns a share of it. Cells inserted meanwhile ahead of the position are met, those behind are not.
#[derive(Clone, Debug)]
pub struct SegmentIter {
    cursor: Cursor,
}

impl SegmentIter {
    /// The cell here; `None` before the first seek and past the end.
    #[inline]
    pub fn current(&self) -> Option<CellRef<'_>> {
        self.cursor.current()
    }

    /// The cells from here on, to be looked at before the iterator moves; `None` where it stands nowhere.
    #[inline]
    pub fn run(&mut self) -> Option<SegmentRun<'_>> {
        self.cursor.run().map(|run| SegmentRun { run })
    }

    /// Goes to the first cell that is not before `key`; of equal keys the newest. Returns whether there is one.
    pub fn seek(&mut self, key: KeyRef<'_>) -> bool {
        self.cursor.seek(key)
    }

    /// As [`SegmentIter::seek`] but never goes back: stays when the cell here is not before `key`. Cheap when the
    /// target is near. Without a current cell it stays without one.
    pub fn reseek(&mut self, key: KeyRef<'_>) -> bool {
        self.cursor.reseek(key)
    }

    /// Goes to the first cell. Returns whether there is one.
    pub fn seek_to_first(&mut self) -> bool {
        self.cursor.seek_to_first()
    }

    /// Goes to the last cell. Returns whether there is one.
    pub fn seek_to_last(&mut self) -> bool {
        self.cursor.seek_to_last()
    }

    /// Goes to the last cell before `key`. Returns whether there is one.
    pub fn seek_before(&mut self, key: KeyRef<'_>) -> bool {
        self.cursor.seek_before(key)
    }

    /// Goes one cell on. Returns whether there is one; without a current cell it stays without one.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "cells are borrowed from self, which Iterator cannot say")]
    pub fn next(&mut self) -> bool {
        self.cursor.next()
    }
}

/// Looks ahead from a [`SegmentIter`]'s place; cells that were passed stay readable. The iterator moves only with
/// [`SegmentRun::commit`].
pub struct SegmentRun<'a> {
    run: Run<'a>,
}

impl<'a> SegmentRun<'a> {
    /// The cell here.
    #[inline]
    pub fn cell(&self) -> CellRef<'a> {
        self.run.cell()
    }

    /// One cell on; `None`, and nothing is changed, at the end.
    #[inline]
    pub fn step(&mut self) -> Option<CellRef<'a>> {
        self.run.step()
    }

    /// The iterator stands here from now on.
    #[inline]
    pub fn commit(&mut self) {
        self.run.commit();
    }
}

/// As [`SegmentIter`], for a segment that somebody else keeps alive; always stands at a cell.
pub struct SegmentLook<'a> {
    look: Look<'a>,
}

impl<'a> SegmentLook<'a> {
    /// The cell here.
    #[inline]
    pub fn cell(&self) -> CellRef<'a> {
        self.look.cell()
    }

    /// One cell on; false, and nothing is changed, at the end.
    #[inline]
    pub fn step(&mut self) -> bool {
        self.look.step()
    }

    /// One cell on, past older versions of this cell's column: at once, but for those that were inserted after newer ones. False, and nothing is
    /// changed, at the end.
    #[inline]
    pub fn pass_versions(&mut self) -> bool {
        self.look.pass_versions()
    }

    /// To the first cell that is not before `key`, from here on; false, and nothing is changed, when there is none.
    pub fn reseek(&mut self, key: KeyRef<'_>) -> bool {
        self.look.reseek(key)
    }
}
