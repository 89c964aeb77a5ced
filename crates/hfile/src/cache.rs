//! The block cache: decoded blocks of all files of a server, by file number and offset.
//!
//! Always true: a block in the cache was checked when it was loaded; what is in the cache is never changed. A hit takes a
//! shard's lock shared and touches one counter. No lock is held while a block is read. Blocks of a file that no reader has open any more
//! leave with the next [`BlockCache::sweep`]: a file that is opened again has another number, so nobody could find them.
//!
//! Blocks come in through a small queue and stay only if they are asked for again (S3-FIFO): a scan over a large table
//! flows through the small queue and leaves the working set alone. Blocks of IN_MEMORY families enter the main queue at
//! once. What HBase does with three priorities (`LruBlockCache`) is done here with two queues and a memory of the
//! recently refused. With [`CachePolicy::TinyLfu`] what leaves the small queue enters the main queue only if it was asked for more often
//! lately than what would leave there for it.

use crate::SecondLevel;
use crate::block::BlockType;
use crate::cache_counts::{BlockCounts, BloomCounts, LookupCounts};
use crate::cache_frequency::Frequencies;
use crate::data_block::DataBlock;
use crate::file_reads::FileReads;
use crate::index::IndexBlock;
use base::Clock;
use base::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use base::sync::{Mutex, RwLock};
use bytes::Bytes;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::sync::{Arc, OnceLock};

/// A decoded block.
#[derive(Clone, Debug)]
pub(crate) enum CachedBlock {
    Data(Arc<DataBlock>),
    Index(Arc<IndexBlock>),
    Bloom(Bytes),
}

impl CachedBlock {
    fn is_data(&self) -> bool {
        matches!(self, CachedBlock::Data(_))
    }

    fn heap_bytes(&self) -> usize {
        match self {
            CachedBlock::Data(block) => block.heap_bytes(),
            CachedBlock::Index(block) => block.heap_bytes(),
            CachedBlock::Bloom(bytes) => bytes.len(),
        }
    }
}

type Key = (u64, u64);

/// Bytes of bookkeeping for one block: map entry, queue entry, counters.
const OVERHEAD_BYTES: u64 = 128;
const MAX_SHARDS: u64 = 32;
const MIN_SHARD_BYTES: u64 = 8 << 20;
/// The small queue's part of a shard, in percent.
const SMALL_PERCENT: u64 = 10;
const HITS_MAX: u8 = 3;

/// Which blocks stay in a [`BlockCache`] that is full (`hfile.block.cache.policy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CachePolicy {
    /// Those that were asked for again while they were in the small queue, or soon after they had left it.
    #[default]
    Lru,
    /// Those that were asked for most often lately, whether they were there or not.
    TinyLfu,
}

impl CachePolicy {
    /// The policy of HBase's name, in any case.
    pub fn parse(text: &str) -> Option<CachePolicy> {
        match text.trim().to_ascii_uppercase().as_str() {
            "LRU" => Some(CachePolicy::Lru),
            "TINYLFU" => Some(CachePolicy::TinyLfu),
            _ => None,
        }
    }
}

/// What a [`BlockCache`] is made with.
#[derive(Clone, Debug)]
pub struct CacheOptions {
    /// Bytes that it holds at most.
    pub capacity_bytes: u64,
    /// The level that is asked for blocks that are not here.
    pub second: Option<Arc<SecondLevel>>,
    /// Which blocks stay.
    pub policy: CachePolicy,
    /// Whether the checksums of blocks are compared that are read from files and from the second level.
    pub verify_checksums: bool,
    /// Whether files are read past the operating system's cache ([`fs::ReadHints::past_cache`]).
    pub direct_reads: bool,
    /// Reads of files that take longer than so many milliseconds are slow (`hbase.fs.reader.warn.time.ms`); `None`: none is.
    pub slow_read_ms: Option<u64>,
}

impl CacheOptions {
    /// A cache of at most `capacity_bytes` without anything special.
    pub fn new(capacity_bytes: u64) -> CacheOptions {
        CacheOptions {
            capacity_bytes,
            second: None,
            policy: CachePolicy::default(),
            verify_checksums: true,
            direct_reads: false,
            slow_read_ms: None,
        }
    }
}

struct Entry {
    block: CachedBlock,
    weight: u64,
    /// Hits since the block was last passed over, up to [`HITS_MAX`].
    hits: AtomicU8,
}

/// Data and index blocks see to it themselves.
#[cfg(debug_assertions)]
impl Drop for Entry {
    fn drop(&mut self) {
        if let CachedBlock::Bloom(bytes) = &mut self.block {
            crate::poison::overwrite_unshared(bytes);
        }
    }
}

#[derive(Default)]
struct Shard {
    blocks: FxHashMap<Key, Entry>,
    small: VecDeque<Key>,
    small_bytes: u64,
    main: VecDeque<Key>,
    main_bytes: u64,
    /// Blocks of cells among them.
    data_blocks: u64,
    /// Keys lately pushed out of the small queue: coming back soon, they go to the main queue.
    ghosts: VecDeque<Key>,
    ghost_set: FxHashSet<Key>,
    /// Of [`CachePolicy::TinyLfu`].
    frequencies: Option<Frequencies>,
}

/// A shard with its counts, on cache lines of its own: cores that read different shards do not disturb each other.
#[derive(Default)]
#[repr(align(128))]
struct Slot {
    shard: RwLock<Shard>,
    lookups: LookupCounts,
}

/// Blocks pushed out under one hold of a shard's lock when the capacity shrinks.
const PUSHED_OUT_AT_ONCE: u64 = 64;

/// The cache of decoded blocks, shared by all files of a server. Sharded; scan-resistant; a hit takes a shared lock.
pub struct BlockCache {
    shards: Box<[Slot]>,
    /// Files that nobody reads any more and whose blocks may still be here.
    forgotten: Mutex<FxHashSet<u64>>,
    capacity: AtomicU64,
    next_file_id: AtomicU64,
    inserted: AtomicU64,
    evicted: AtomicU64,
    returned: AtomicU64,
    refused: AtomicU64,
    blooms: BloomCounts,
    file_bytes: base::Adder,
    second: Option<Arc<SecondLevel>>,
    verify_checksums: bool,
    direct_reads: bool,
    file_reads: FileReads,
    /// By which reads of files are timed, if they are.
    clock: OnceLock<Arc<dyn Clock>>,
}

/// Counts of a [`BlockCache`] since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Lookups that found their block.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Of the first, those by readers that leave in the cache what they read.
    pub keeping_hits: u64,
    /// Of the second, those by such readers.
    pub keeping_misses: u64,
    /// Hits by kind of block,
    pub hits_of: BlockCounts,
    /// and misses.
    pub misses_of: BlockCounts,
    /// Blocks that were larger than the cache admits.
    pub refused: u64,
    /// Blocks put in.
    pub inserted: u64,
    /// Blocks pushed out by others.
    pub evicted: u64,
    /// Blocks put in again soon after they were pushed out: a larger cache would have had them.
    pub returned: u64,
    /// Bytes held now.
    pub used_bytes: u64,
    /// Bytes that may be held.
    pub capacity_bytes: u64,
    /// Blocks held now.
    pub blocks: u64,
    /// Blocks of cells among them.
    pub data_blocks: u64,
}

impl std::fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockCache").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl BlockCache {
    /// A cache of at most `capacity_bytes`.
    pub fn new(capacity_bytes: u64) -> Arc<BlockCache> {
        BlockCache::over(capacity_bytes, None)
    }

    /// As [`BlockCache::new`], over a second level that is asked for blocks that are not here.
    pub fn over(capacity_bytes: u64, second: Option<Arc<SecondLevel>>) -> Arc<BlockCache> {
        BlockCache::with(CacheOptions { second, ..CacheOptions::new(capacity_bytes) })
    }

    /// A cache as `options` say.
    pub fn with(options: CacheOptions) -> Arc<BlockCache> {
        let CacheOptions { capacity_bytes, second, policy, verify_checksums, direct_reads, slow_read_ms } = options;
        let shards = (capacity_bytes / MIN_SHARD_BYTES).clamp(1, MAX_SHARDS).next_power_of_two().min(MAX_SHARDS);
        let slot = || {
            let counts = policy == CachePolicy::TinyLfu;
            let frequencies = counts.then(|| Frequencies::for_bytes(capacity_bytes / shards));
            Slot { shard: RwLock::new(Shard { frequencies, ..Shard::default() }), lookups: LookupCounts::default() }
        };
        Arc::new(BlockCache {
            shards: (0..shards).map(|_| slot()).collect(),
            forgotten: Mutex::new(FxHashSet::default()),
            capacity: AtomicU64::new(capacity_bytes),
            next_file_id: AtomicU64::new(1),
            inserted: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            returned: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            blooms: BloomCounts::default(),
            file_bytes: base::Adder::default(),
            second,
            verify_checksums,
            direct_reads,
            file_reads: FileReads::new(slow_read_ms),
            clock: OnceLock::new(),
        })
    }

    /// Changes the capacity; shrinking pushes blocks out, a few at a time, so that nobody waits long for a shard.
    pub fn set_capacity(&self, capacity_bytes: u64) {
        if self.capacity.swap(capacity_bytes, Ordering::Relaxed) <= capacity_bytes {
            return;
        }
        for slot in &self.shards {
            loop {
                let evicted = slot.shard.write().make_room(self.shard_capacity(), PUSHED_OUT_AT_ONCE);
                self.evicted.fetch_add(evicted, Ordering::Relaxed);
                if evicted < PUSHED_OUT_AT_ONCE {
                    break;
                }
            }
        }
    }

    /// Counts.
    pub fn stats(&self) -> CacheStats {
        let mut stats = CacheStats {
            inserted: self.inserted.load(Ordering::Relaxed),
            evicted: self.evicted.load(Ordering::Relaxed),
            returned: self.returned.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            capacity_bytes: self.capacity.load(Ordering::Relaxed),
            ..CacheStats::default()
        };
        for slot in &self.shards {
            slot.lookups.add_to(&mut stats);
            let shard = slot.shard.read();
            stats.data_blocks += shard.data_blocks;
            stats.used_bytes += shard.small_bytes + shard.main_bytes;
            stats.blocks += shard.blocks.len() as u64;
        }
        stats
    }

    /// What Bloom filters of files that use this cache were asked, and what they answered.
    pub fn blooms(&self) -> &BloomCounts {
        &self.blooms
    }

    /// Reads of files that use this cache are timed by `clock` from now on ([`crate::BlockReads::file_us`]). The first call counts.
    pub fn time_reads_by(&self, clock: Arc<dyn Clock>) {
        let _first = self.clock.set(clock);
    }

    pub(crate) fn clock(&self) -> Option<&dyn Clock> {
        self.clock.get().map(|clock| &**clock)
    }

    /// Whether the checksums of blocks are compared that files are read for ([`CacheOptions::verify_checksums`]).
    pub(crate) fn verifies_checksums(&self) -> bool {
        self.verify_checksums
    }

    /// Whether files are read past the operating system's cache ([`CacheOptions::direct_reads`]).
    pub(crate) fn reads_directly(&self) -> bool {
        self.direct_reads
    }

    /// The level below this one, if there is one.
    pub fn second(&self) -> Option<&Arc<SecondLevel>> {
        self.second.as_ref()
    }

    /// A block of `bytes` was read from a file.
    pub(crate) fn read_from_file(&self, bytes: u64) {
        self.file_bytes.add(bytes);
    }

    /// How long reads of files took that use this cache.
    pub fn file_reads(&self) -> &FileReads {
        &self.file_reads
    }

    /// Bytes of blocks that were read from files that use this cache.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes.sum()
    }

    /// A number no other file of this cache has.
    pub fn new_file_id(&self) -> u64 {
        self.next_file_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Forgets all blocks of a file; returns how many there were. Looks at every block held.
    pub fn evict_file(&self, file_id: u64) -> usize {
        self.remove_where(|id| id == file_id)
    }

    /// Nobody reads the file any more: its blocks are forgotten with the next [`BlockCache::sweep`]. Cheap; looks at no block.
    pub fn forget_file(&self, file_id: u64) {
        self.forgotten.lock().insert(file_id);
    }

    /// Forgets all blocks of files that nobody reads any more; returns how many there were. To be called now and then; looks at every block
    /// held if there are such files, once for all of them.
    pub fn sweep(&self) -> usize {
        let files = std::mem::take(&mut *self.forgotten.lock());
        if files.is_empty() { 0 } else { self.remove_where(|id| files.contains(&id)) }
    }

    fn remove_where(&self, goes: impl Fn(u64) -> bool) -> usize {
        let removed = self.shards.iter().map(|slot| {
            // Dropped when the lock is free again: what it costs to give their memory back nobody waits for.
            let removed = slot.shard.write().remove_where(&goes);
            removed.len()
        });
        removed.sum()
    }

    fn shard_capacity(&self) -> u64 {
        self.capacity.load(Ordering::Relaxed) / self.shards.len() as u64
    }

    fn slot(&self, key: Key) -> &Slot {
        // The multiplication mixes upwards: the high bits choose the shard, the map uses the others.
        let hash = FxBuildHasher.hash_one(key);
        &self.shards[(hash >> 40) as usize & (self.shards.len() - 1)]
    }

    /// `wanted` is what should be there, and `keeps` whether the caller puts the block in when it is not.
    pub(crate) fn get(&self, file_id: u64, offset: u64, wanted: BlockType, keeps: bool) -> Option<CachedBlock> {
        let key = (file_id, offset);
        let slot = self.slot(key);
        let shard = slot.shard.read();
        if let Some(frequencies) = &shard.frequencies {
            frequencies.count(key);
        }
        let Some(entry) = shard.blocks.get(&key) else {
            slot.lookups.missed(wanted, keeps);
            return None;
        };
        slot.lookups.hit(wanted, keeps);
        let hits = entry.hits.load(Ordering::Relaxed);
        if hits < HITS_MAX {
            entry.hits.store(hits + 1, Ordering::Relaxed);
        }
        Some(entry.block.clone())
    }

    /// Whether the block is there and was asked for again since it was put in. Counts as no lookup.
    pub(crate) fn is_wanted(&self, file_id: u64, offset: u64) -> bool {
        let key = (file_id, offset);
        self.slot(key).shard.read().blocks.get(&key).is_some_and(|entry| entry.hits.load(Ordering::Relaxed) > 0)
    }

    /// Puts a block in. One that is there already stays; one larger than a shard is not admitted.
    pub(crate) fn insert(&self, file_id: u64, offset: u64, block: CachedBlock, in_memory: bool) {
        self.put((file_id, offset), block, in_memory, if in_memory { HITS_MAX } else { 0 });
    }

    /// Puts in a block that takes the place of others that were asked for again and again: it need not prove itself.
    pub(crate) fn insert_wanted(&self, file_id: u64, offset: u64, block: CachedBlock) {
        self.put((file_id, offset), block, true, 1);
    }

    fn put(&self, key: Key, block: CachedBlock, to_main: bool, hits: u8) {
        let capacity = self.shard_capacity();
        let weight = block.heap_bytes() as u64 + OVERHEAD_BYTES;
        if weight > capacity {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut shard = self.slot(key).shard.write();
        if shard.blocks.contains_key(&key) {
            return;
        }
        if let Some(frequencies) = &shard.frequencies {
            frequencies.age();
        }
        let evicted = shard.make_room(capacity - weight, u64::MAX);
        let has_returned = shard.ghost_set.remove(&key);
        let to_main = to_main || (has_returned && shard.frequencies.is_none());
        shard.data_blocks += u64::from(block.is_data());
        shard.blocks.insert(key, Entry { block, weight, hits: AtomicU8::new(hits) });
        if to_main {
            shard.main.push_back(key);
            shard.main_bytes += weight;
        } else {
            shard.small.push_back(key);
            shard.small_bytes += weight;
        }
        drop(shard);
        self.inserted.fetch_add(1, Ordering::Relaxed);
        self.evicted.fetch_add(evicted, Ordering::Relaxed);
        if has_returned {
            self.returned.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Shard {
    /// Pushes blocks out, no more than `most`, until at most `room` bytes are held; returns how many.
    fn make_room(&mut self, room: u64, most: u64) -> u64 {
        let mut evicted = 0;
        while self.small_bytes + self.main_bytes > room && evicted < most {
            let small_share = (self.small_bytes + self.main_bytes) * SMALL_PERCENT / 100;
            let from_small = !self.small.is_empty() && (self.small_bytes > small_share || self.main.is_empty());
            evicted += u64::from(match from_small {
                true if self.frequencies.is_some() => self.contend(room * (100 - SMALL_PERCENT) / 100),
                true => self.pass_small(),
                false => self.pass_main(),
            });
        }
        evicted
    }

    /// Looks at the oldest block of the small queue: asked for again, it moves to the main queue, else it goes.
    fn pass_small(&mut self) -> bool {
        let Some(key) = self.small.pop_front() else {
            return false;
        };
        let entry = &self.blocks[&key];
        self.small_bytes -= entry.weight;
        if entry.hits.swap(0, Ordering::Relaxed) > 0 {
            let weight = entry.weight;
            self.push_main(key, weight);
            return false;
        }
        self.remove(key);
        self.remember(key);
        true
    }

    /// A block was pushed out of the small queue.
    fn remember(&mut self, key: Key) {
        if self.ghost_set.insert(key) {
            self.ghosts.push_back(key);
        }
        while self.ghosts.len() > self.blocks.len().max(64) {
            if let Some(old) = self.ghosts.pop_front() {
                self.ghost_set.remove(&old);
            }
        }
    }

    /// Looks at the oldest block of the small queue: it moves to the main queue if that has room, or if it was asked for more often than the
    /// block that leaves the main queue for it; else it goes.
    fn contend(&mut self, main_limit: u64) -> bool {
        let Some(key) = self.small.pop_front() else {
            return false;
        };
        let weight = self.blocks[&key].weight;
        self.small_bytes -= weight;
        if self.main_bytes + weight <= main_limit {
            self.push_main(key, weight);
            return false;
        }
        let victim = self.next_of_main();
        let is_asked_more = match (victim, &self.frequencies) {
            (Some(victim), Some(frequencies)) => frequencies.of(key) > frequencies.of(victim),
            _ => false,
        };
        if is_asked_more && self.pass_main() {
            self.push_main(key, weight);
        } else {
            self.remove(key);
            self.remember(key);
        }
        true
    }

    fn push_main(&mut self, key: Key, weight: u64) {
        self.main.push_back(key);
        self.main_bytes += weight;
    }

    /// The block that would leave the main queue: those before it, that have hits left, went round for one of them.
    fn next_of_main(&mut self) -> Option<Key> {
        loop {
            let key = *self.main.front()?;
            if self.blocks[&key].hits.load(Ordering::Relaxed) == 0 {
                return Some(key);
            }
            self.pass_main();
        }
    }

    /// Looks at the oldest block of the main queue: with hits left it goes round again for one of them, else it goes.
    fn pass_main(&mut self) -> bool {
        let Some(key) = self.main.pop_front() else {
            return false;
        };
        let entry = &self.blocks[&key];
        let hits = entry.hits.load(Ordering::Relaxed);
        if hits > 0 {
            entry.hits.store(hits - 1, Ordering::Relaxed);
            self.main.push_back(key);
            return false;
        }
        self.main_bytes -= entry.weight;
        self.remove(key);
        true
    }

    fn remove(&mut self, key: Key) {
        let removed = self.blocks.remove(&key);
        self.data_blocks -= u64::from(removed.is_some_and(|entry| entry.block.is_data()));
    }

    /// Takes out the blocks of all files for which `goes` says so.
    fn remove_where(&mut self, goes: impl Fn(u64) -> bool) -> Vec<Entry> {
        let mut removed = Vec::new();
        for (queue, bytes) in [(&mut self.small, &mut self.small_bytes), (&mut self.main, &mut self.main_bytes)] {
            queue.retain(|key| {
                let stays = !goes(key.0);
                if !stays && let Some(entry) = self.blocks.remove(key) {
                    *bytes -= entry.weight;
                    self.data_blocks -= u64::from(entry.block.is_data());
                    removed.push(entry);
                }
                stays
            });
        }
        removed
    }
}

#[cfg(all(test, feature = "shuttle"))]
mod schedules {
    use super::*;
    use base::sync::{explore, thread};

    /// What the block of that key holds, so that a mix-up would show.
    fn block(key: Key) -> CachedBlock {
        CachedBlock::Bloom(Bytes::from(vec![(key.0 * 16 + key.1) as u8; 100]))
    }

    /// A reply is being written from a block while others push it out and put another copy in.
    #[test]
    fn f08_a_block_outlives_its_place_in_the_cache() {
        explore(|| {
            let cache = BlockCache::new(400);
            cache.insert(1, 1, block((1, 1)), false);
            let reply = {
                let cache = cache.clone();
                thread::spawn(move || {
                    let Some(CachedBlock::Bloom(held)) = cache.get(1, 1, BlockType::BloomChunk, true) else { return };
                    for byte in &held {
                        assert_eq!(*byte, 17, "the block was used again under its reader");
                        if held.as_ptr_range().start == byte {
                            thread::yield_now();
                        }
                    }
                })
            };
            let others: Vec<_> = (0..2_u64)
                .map(|worker| {
                    let cache = cache.clone();
                    thread::spawn(move || {
                        for n in 2..5 {
                            cache.insert(worker + 2, n, block((worker + 2, n)), false);
                        }
                        cache.evict_file(1);
                        cache.insert(1, 1, block((1, 1)), worker == 1);
                    })
                })
                .collect();
            others.into_iter().for_each(|other| other.join().expect("another"));
            reply.join().expect("the reply");
        });
    }

    #[test]
    fn hits_inserts_and_evictions_keep_the_books() {
        explore(|| {
            let cache = BlockCache::new(1000);
            let workers: Vec<_> = (0..3_u64)
                .map(|worker| {
                    let cache = cache.clone();
                    thread::spawn(move || {
                        for n in 0..5 {
                            let key = ((worker + n) % 3, n % 4);
                            match cache.get(key.0, key.1, BlockType::BloomChunk, true) {
                                Some(CachedBlock::Bloom(bytes)) => assert_eq!(bytes[0], (key.0 * 16 + key.1) as u8),
                                Some(_) => panic!("another kind of block"),
                                None => cache.insert(key.0, key.1, block(key), n == 3),
                            }
                            if (worker, n) == (1, 2) {
                                cache.evict_file(2);
                            }
                            if (worker, n) == (2, 3) {
                                cache.set_capacity(500);
                            }
                        }
                    })
                })
                .collect();
            workers.into_iter().for_each(|worker| worker.join().expect("a worker"));
            let stats = cache.stats();
            assert!(stats.used_bytes <= 1000, "{stats:?}");
            let shard = cache.shards[0].shard.read();
            let queued: Vec<Key> = shard.small.iter().chain(&shard.main).copied().collect();
            assert_eq!(queued.len(), shard.blocks.len(), "each block is in one queue");
            let weight: u64 = queued.iter().map(|key| shard.blocks[key].weight).sum();
            assert_eq!(weight, stats.used_bytes);
        });
    }
}
