//! What a region is handed by its server: doors to files, log, time and dice, and the budget it shares.

use crate::RegionSettings;
use base::{Clock, Dice};
use fs::Volume;
use hfile::BlockCache;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

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
    pub dice: Arc<Dice>,
    /// Decoded blocks.
    pub cache: Arc<BlockCache>,
    /// Settings of the server; tables and families may override them.
    pub settings: Arc<RegionSettings>,
    /// Memory of all memstores.
    pub memory: Arc<MemoryMeter>,
    /// `host,port,startcode`, for markers and messages.
    pub server_name: Arc<str>,
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
}

impl MemoryMeter {
    /// A meter at zero.
    pub fn new() -> Arc<MemoryMeter> {
        Arc::default()
    }

    /// Memory held by all memstores.
    pub fn memstore_bytes(&self) -> u64 {
        self.heap_bytes.load(Ordering::Relaxed).max(0) as u64
    }

    /// Bytes of the cells alone.
    pub fn data_bytes(&self) -> u64 {
        self.data_bytes.load(Ordering::Relaxed).max(0) as u64
    }

    pub(crate) fn add(&self, heap: i64, data: i64) {
        self.heap_bytes.fetch_add(heap, Ordering::Relaxed);
        self.data_bytes.fetch_add(data, Ordering::Relaxed);
    }
}
