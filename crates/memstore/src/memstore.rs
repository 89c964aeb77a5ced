//! A store's segments: one that takes writes, and one being flushed.

use crate::{Segment, SegmentId};
use cell::Order;
use std::sync::Arc;

/// What segments hold, summed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sizes {
    /// Number of cells.
    pub cells: usize,
    /// Bytes of the cells alone.
    pub data_bytes: usize,
    /// Bytes of memory held.
    pub heap_bytes: usize,
}

impl Sizes {
    /// Of one segment.
    pub fn of(segment: &Segment) -> Sizes {
        Sizes { cells: segment.len(), data_bytes: segment.data_bytes(), heap_bytes: segment.heap_bytes() }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Sizes) -> Sizes {
        Sizes {
            cells: self.cells + other.cells,
            data_bytes: self.data_bytes + other.data_bytes,
            heap_bytes: self.heap_bytes + other.heap_bytes,
        }
    }
}

/// The segments of one store.
///
/// A plain value without a lock of its own: the owner keeps it where it keeps the store's file list and decides who
/// may change it. Writers and readers work on `Arc`s taken out of it. While [`MemStore::snapshot`] runs no write may
/// be between taking [`MemStore::active`] and its last insert (HBase holds the region's update lock for this);
/// a straggler hits the frozen segment's assertion.
///
/// Cloning is cheap and shares the segments, so an owner may also publish copies.
#[derive(Clone, Debug)]
pub struct MemStore {
    order: Order,
    active: Arc<Segment>,
    snapshot: Option<Arc<Segment>>,
    next_id: u64,
}

impl MemStore {
    /// An empty memstore for cells in `order`. Takes well under 1 KiB until the first insert.
    pub fn new(order: Order) -> MemStore {
        MemStore::expecting(order, &[])
    }

    /// As [`MemStore::new`], for rows most of which begin with `common`; see [`Segment::expecting`]. Later segments go by the rows that came.
    pub fn expecting(order: Order, common: &[u8]) -> MemStore {
        let active = Arc::new(Segment::expecting(order, SegmentId(1), common));
        MemStore { order, active, snapshot: None, next_id: 2 }
    }

    /// The order of its cells.
    pub fn order(&self) -> Order {
        self.order
    }

    /// The segment that takes writes.
    #[inline]
    pub fn active(&self) -> &Arc<Segment> {
        &self.active
    }

    /// The segment being flushed, if any.
    pub fn flushing(&self) -> Option<&Arc<Segment>> {
        self.snapshot.as_ref()
    }

    /// Every segment, newest first: active, then the one being flushed.
    pub fn segments(&self) -> impl Iterator<Item = &Arc<Segment>> {
        std::iter::once(&self.active).chain(&self.snapshot)
    }

    /// Freezes the active segment and returns it for flushing; writes go to a fresh one from now on. While an earlier
    /// snapshot is outstanding (its flush failed) that one is returned again and nothing changes, as in HBase.
    /// May be empty. See [`MemStore`] for what the caller must hold.
    pub fn snapshot(&mut self) -> Arc<Segment> {
        if let Some(earlier) = &self.snapshot {
            return Arc::clone(earlier);
        }
        let common = self.active.common_row_prefix();
        let fresh = Arc::new(Segment::expecting(self.order, SegmentId(self.next_id), &common));
        self.next_id += 1;
        let frozen = std::mem::replace(&mut self.active, fresh);
        frozen.freeze();
        self.snapshot = Some(Arc::clone(&frozen));
        frozen
    }

    /// Lets go of the snapshot with `id`, whose cells are now in a file; returns it (its memory goes back with the
    /// last reader). `None`, and nothing changes, when that snapshot is not outstanding.
    pub fn clear_snapshot(&mut self, id: SegmentId) -> Option<Arc<Segment>> {
        self.snapshot.take_if(|snapshot| snapshot.id() == id)
    }

    /// What all segments hold.
    pub fn sizes(&self) -> Sizes {
        self.segments().map(|segment| Sizes::of(segment)).fold(Sizes::default(), Sizes::plus)
    }

    /// What the next successful flush would take away: the outstanding snapshot, or else the active segment.
    pub fn flushable_sizes(&self) -> Sizes {
        Sizes::of(self.snapshot.as_ref().unwrap_or(&self.active))
    }

    /// Whether there are no cells at all.
    pub fn is_empty(&self) -> bool {
        self.segments().all(|segment| segment.is_empty())
    }
}
