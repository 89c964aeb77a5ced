//! What a region is handed by its server: files, log, time and random numbers, and the budget it shares.

use crate::RecentTicks;
use crate::settings::SharedSettings;
use base::{Clock, Rng};
use fs::Volume;
use hfile::{BlockCache, Dictionaries};
use key_statistics::KeySampler;
use memstore::Segment;
use model::ServerName;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
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

    /// The segment is flushed: its bytes count as pinned until nobody holds it.
    pub(crate) fn pin(&self, segment: &Arc<Segment>) {
        let mut pinned = self.pinned.lock();
        // Also when nobody asks the list stays as short as what is held.
        pinned.retain(|pinned| pinned.segment.strong_count() > 0);
        pinned.push(Pinned { segment: Arc::downgrade(segment), bytes: segment.grown_bytes() as u64 });
        self.pinned_segments.store(pinned.len(), Ordering::Release);
    }

    pub(crate) fn add(&self, heap: i64, data: i64) {
        self.heap_bytes.fetch_add(heap, Ordering::Relaxed);
        self.data_bytes.fetch_add(data, Ordering::Relaxed);
    }
}
