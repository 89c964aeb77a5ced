//! What a region's memstores hold, and since when: counted here for the region, and for the server in its [`MemoryMeter`].

use crate::MemoryMeter;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// No edit is unflushed.
const NEVER: i64 = i64::MAX;

/// Bytes and edits in the memstores of one region. Follows: `MemStoreSizing`, `HRegion#shouldFlush`.
#[derive(Debug)]
pub(crate) struct MemstoreAccounting {
    meter: Arc<MemoryMeter>,
    heap_bytes: AtomicI64,
    data_bytes: AtomicI64,
    edits_since_flush: AtomicU64,
    oldest_edit_ms: AtomicI64,
    last_flush_ms: AtomicI64,
    /// Since when a flush waits for a compaction.
    flush_delayed_ms: AtomicI64,
}

impl MemstoreAccounting {
    pub(crate) fn new(meter: &Arc<MemoryMeter>, now_ms: i64) -> MemstoreAccounting {
        MemstoreAccounting {
            meter: meter.clone(),
            heap_bytes: AtomicI64::new(0),
            data_bytes: AtomicI64::new(0),
            edits_since_flush: AtomicU64::new(0),
            oldest_edit_ms: AtomicI64::new(NEVER),
            last_flush_ms: AtomicI64::new(now_ms),
            flush_delayed_ms: AtomicI64::new(NEVER),
        }
    }

    /// Memory held.
    pub(crate) fn heap_bytes(&self) -> u64 {
        self.heap_bytes.load(Relaxed).max(0) as u64
    }

    /// Bytes of the cells alone.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.data_bytes.load(Relaxed).max(0) as u64
    }

    /// Cells came, or with negative numbers went to a file.
    pub(crate) fn grew(&self, heap_bytes: i64, data_bytes: i64) {
        self.heap_bytes.fetch_add(heap_bytes, Relaxed);
        self.data_bytes.fetch_add(data_bytes, Relaxed);
        self.meter.add(heap_bytes, data_bytes);
    }

    /// The region is closed. Readers may hold the segments a little longer; the budget is the region's no more.
    pub(crate) fn forget(&self) {
        let (heap, data) = (self.heap_bytes.swap(0, Relaxed), self.data_bytes.swap(0, Relaxed));
        self.meter.add(-heap, -data);
    }

    /// So many cells were written at `now_ms`.
    pub(crate) fn note_edits(&self, cells: u64, now_ms: i64) {
        self.edits_since_flush.fetch_add(cells, Relaxed);
        if self.oldest_edit_ms.load(Relaxed) == NEVER {
            self.oldest_edit_ms.fetch_min(now_ms, Relaxed);
        }
    }

    pub(crate) fn edits_since_flush(&self) -> u64 {
        self.edits_since_flush.load(Relaxed)
    }

    /// Milliseconds stamp of the oldest unflushed edit.
    pub(crate) fn oldest_edit_ms(&self) -> Option<i64> {
        Some(self.oldest_edit_ms.load(Relaxed)).filter(|ms| *ms != NEVER)
    }

    /// A flush takes all there is.
    pub(crate) fn begin_flush_of_all(&self) {
        self.oldest_edit_ms.store(NEVER, Relaxed);
        self.edits_since_flush.store(0, Relaxed);
    }

    /// A flush that may have taken all failed: the oldest edit is what it was before.
    pub(crate) fn abort_flush(&self, oldest_before_ms: Option<i64>) {
        if let Some(oldest_ms) = oldest_before_ms {
            self.oldest_edit_ms.fetch_min(oldest_ms, Relaxed);
        }
    }

    /// A flush is wanted that should wait: whether it is to wait on, for `wait_ms` in all.
    pub(crate) fn delays_flush(&self, now_ms: i64, wait_ms: i64) -> bool {
        let since_ms = self.flush_delayed_ms.load(Relaxed);
        if since_ms == NEVER {
            self.flush_delayed_ms.store(now_ms, Relaxed);
            return wait_ms > 0;
        }
        if now_ms.saturating_sub(since_ms) < wait_ms {
            return true;
        }
        self.end_flush_delay();
        false
    }

    /// Nothing is to be waited for.
    pub(crate) fn end_flush_delay(&self) {
        self.flush_delayed_ms.store(NEVER, Relaxed);
    }

    pub(crate) fn note_flush(&self, now_ms: i64) {
        self.last_flush_ms.store(now_ms, Relaxed);
    }

    /// When the last flush ended; when the region was opened, if there was none.
    pub(crate) fn last_flush_ms(&self) -> i64 {
        self.last_flush_ms.load(Relaxed)
    }
}
