//! What a region is handed by its server: files, log, time and random numbers, and the budget it shares.

use crate::RecentTicks;
use crate::backpressure::{Debt, DrainMeter};
use crate::settings::SharedSettings;
use base::{Clock, Rng};
use fs::Volume;
use hfile::{BlockCache, Dictionaries};
use key_statistics::KeySampler;
use memstore::Segment;
use model::ServerName;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// Shared by all regions of a server.
#[derive(Clone)]
pub struct RegionEnv {
    /// The root directory.
    pub volume: Arc<dyn Volume>,
    /// The log that this server's regions write to.
    pub log: Arc<wal::Log>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Names of new files.
    pub rng: Arc<Rng>,
    /// Decoded blocks.
    pub cache: Arc<BlockCache>,
    /// What Zstandard dictionaries are read through.
    pub dictionaries: Arc<Dictionaries>,
    /// Settings of the server; tables and families may override them. Regions that open take them as they are then.
    pub settings: SharedSettings,
    /// Memory of all memstores.
    pub memory: Arc<MemoryMeter>,
    /// The ticks that rows used of late.
    pub ticks: Arc<RecentTicks>,
    /// Picks rows that are read and written, for who asks which.
    pub keys: Arc<KeySampler>,
    /// The server that has the region: for markers, messages, and the names of what it is writing.
    pub server_name: ServerName,
}

impl std::fmt::Debug for RegionEnv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegionEnv").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

/// Bytes held by all memstores of a server. Follows: `RegionServerAccounting`.
#[derive(Debug, Default)]
pub struct MemoryMeter {
    heap_bytes: AtomicI64,
    data_bytes: AtomicI64,
    /// Number of `pinned`, so that whoever asks in vain takes no lock.
    pinned_segments: AtomicUsize,
    pinned: Mutex<Vec<Pinned>>,
    /// Bytes of memory that flushes write in a second.
    pub flush_drain: DrainMeter,
    /// Files that compactions do away with in a second.
    pub compaction_drain: DrainMeter,
    /// Memory that running flushes take, and the part of it that is written.
    flushing_bytes: AtomicI64,
    written_bytes: AtomicI64,
    /// What regions owe that owe more than a memstore.
    pub(crate) owing_bytes: AtomicU64,
    /// Regions with too many files.
    pub(crate) crowded_regions: AtomicUsize,
    /// Held by what read replicas are still to be told.
    outbox_bytes: AtomicI64,
}

/// A flushed segment that readers may still hold. Nothing but its own readers keeps it.
#[derive(Debug)]
struct Pinned {
    segment: Weak<Segment>,
    bytes: u64,
}

impl MemoryMeter {
    /// A meter at zero.
    pub fn new() -> Arc<MemoryMeter> {
        Arc::default()
    }

    /// Memory held by all memstores: what a flush can take away.
    pub fn memstore_bytes(&self) -> u64 {
        self.heap_bytes.load(Ordering::Relaxed).max(0) as u64
    }

    /// Memory of segments that are in files but that readers still hold: no flush takes it away, the last of their
    /// readers does. Whether a write may come in depends on this and [`MemoryMeter::memstore_bytes`] together.
    pub fn pinned_bytes(&self) -> u64 {
        if self.pinned_segments.load(Ordering::Acquire) == 0 {
            return 0;
        }
        let mut pinned = self.pinned.lock();
        pinned.retain(|pinned| pinned.segment.strong_count() > 0);
        self.pinned_segments.store(pinned.len(), Ordering::Release);
        pinned.iter().map(|pinned| pinned.bytes).sum()
    }

    /// Bytes of the cells alone.
    pub fn data_bytes(&self) -> u64 {
        self.data_bytes.load(Ordering::Relaxed).max(0) as u64
    }

    /// Memory of what read replicas elsewhere are still to be told ([`crate::Outbox`]).
    pub fn outbox_bytes(&self) -> u64 {
        self.outbox_bytes.load(Ordering::Relaxed).max(0) as u64
    }

    pub(crate) fn outbox_grew(&self, bytes: i64) {
        self.outbox_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The segment is flushed: its bytes count as pinned until nobody holds it.
    pub(crate) fn pin(&self, segment: &Arc<Segment>) {
        let mut pinned = self.pinned.lock();
        // Also when nobody asks the list stays as short as what is held.
        pinned.retain(|pinned| pinned.segment.strong_count() > 0);
        pinned.push(Pinned { segment: Arc::downgrade(segment), bytes: segment.grown_bytes() as u64 });
        self.pinned_segments.store(pinned.len(), Ordering::Release);
    }

    /// What all memstores owe whose regions are flushed from `start_bytes` on, and may hold `limit_bytes`.
    pub fn debt(&self, start_bytes: u64, limit_bytes: u64) -> Debt {
        let held_bytes = self.memstore_bytes();
        let written = self.written_bytes.load(Ordering::Relaxed).max(0) as u64;
        let flushing = self.flushing_bytes.load(Ordering::Relaxed).max(0) as u64;
        let owed_bytes = held_bytes.saturating_sub(written);
        Debt {
            owed_bytes,
            start_bytes,
            end_bytes: limit_bytes,
            free_bytes: limit_bytes.saturating_sub(held_bytes + self.pinned_bytes()),
            // Where no flush runs, one takes what is too much.
            left_bytes: match flushing {
                0 => owed_bytes.saturating_sub(start_bytes),
                flushing => flushing.saturating_sub(written),
            },
        }
    }

    /// A flush takes `flushing` more bytes, or has written more, or with negative numbers is done with them.
    pub(crate) fn flushes(&self, flushing: i64, written: i64) {
        self.flushing_bytes.fetch_add(flushing, Ordering::Relaxed);
        self.written_bytes.fetch_add(written, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, heap: i64, data: i64) {
        self.heap_bytes.fetch_add(heap, Ordering::Relaxed);
        self.data_bytes.fetch_add(data, Ordering::Relaxed);
    }
}
