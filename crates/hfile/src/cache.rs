//! (being written)

use std::sync::Arc;

/// The cache of decoded blocks, shared by all files of a server. Sharded; scan-resistant; a hit takes a shared lock.
#[derive(Debug)]
pub struct BlockCache {}

/// Counts of a [`BlockCache`] since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Lookups that found their block.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Blocks put in.
    pub inserted: u64,
    /// Blocks pushed out by others.
    pub evicted: u64,
    /// Bytes held now.
    pub used_bytes: u64,
    /// Bytes that may be held.
    pub capacity_bytes: u64,
    /// Blocks held now.
    pub blocks: u64,
}

impl BlockCache {
    /// A cache of at most `capacity_bytes`.
    pub fn new(_capacity_bytes: u64) -> Arc<BlockCache> {
        todo!()
    }
    /// Changes the capacity; shrinking pushes blocks out.
    pub fn set_capacity(&self, _capacity_bytes: u64) {
        todo!()
    }
    /// Counts.
    pub fn stats(&self) -> CacheStats {
        todo!()
    }
    /// A number no other file of this cache has.
    pub fn new_file_id(&self) -> u64 {
        todo!()
    }
    /// Forgets all blocks of a file; returns how many there were.
    pub fn evict_file(&self, _file_id: u64) -> usize {
        todo!()
    }
}
