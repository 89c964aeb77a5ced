//! The memstore: a store's cells that are in the log but not yet in a file, sorted.
//!
//! A [`MemStore`] is the active [`Segment`] that takes writes and, while a flush runs, the frozen one being written
//! out. A segment is a skip list whose nodes and cells live in one arena, so that an insert is one copy into memory
//! already at hand and a scan walks neighbours; the memory goes back in a few large pieces, of which a process may keep some
//! for the next segment ([`set_chunk_pool_limit`]).
//!
//! Always true:
//!  1. A segment is sorted by [`cell::Order`], newer sequence ids first; of two cells with equal key and sequence id
//!     only the later insert is met.
//!  2. Cells are never changed or taken out (one that its own batch replaced is passed over). Inserts from many threads and reads need no lock; a reader sees every
//!     cell whose insert returned before its seek.
//!  3. A frozen segment takes no more inserts (asserted), so what a flush writes is all there is.
//!  4. At most one snapshot is outstanding; it stays readable until [`MemStore::clear_snapshot`] with its id.
//!
//! All `unsafe` is in the private module `skiplist`, argued there. Must not know: read points (a reader filters by sequence id),
//! files, the log, locks of rows. Follows: `DefaultMemStore`, `CellSet`, `SegmentFactory`, `MemStoreLABImpl`,
//! `TimeRangeTracker`.

pub mod memstore;
pub mod segment;
mod skiplist;

pub use memstore::{MemStore, Sizes};
pub use segment::{Growth, Inserter, Segment, SegmentId, SegmentIter, SegmentLook, SegmentRun, TimeRange};

/// Keeps the memory of dropped segments for new ones, for the whole process, as long as that and what segments hold come to no more than
/// `bytes`: what all memstores may take together. Without this call nothing is kept.
pub fn set_chunk_pool_limit(bytes: usize) {
    skiplist::keep_spare(bytes);
}

/// Bytes of dropped segments that are kept for new ones now.
pub fn spare_memory_bytes() -> usize {
    skiplist::spare_bytes()
}

/// Gives back a part of the memory of dropped segments that no new one has needed since the last call. To be called now and then,
/// every some seconds: without writes all but little is given back within some minutes.
pub fn release_pooled_chunks() {
    skiplist::release_spare();
}

/// Makes memory ready for segments while cells come in, a few MiB ahead of them and within what [`set_chunk_pool_limit`] allows, until
/// `is_over` says so, which is asked after [`wake_prefaulters`]. Memory fresh from the operating system is cleared when it is written first;
/// without a thread in here that falls to whoever inserts, 2 MiB at a time.
pub fn prefault_chunks(is_over: impl Fn() -> bool) {
    skiplist::make_ready(is_over);
}

/// Has all who are in [`prefault_chunks`] look whether it is over.
pub fn wake_prefaulters() {
    skiplist::wake_makers();
}
