//! What is counted of the block cache's lookups and of Bloom filters. Follows: `CacheStats`, `BloomFilterMetrics`.

use crate::CacheStats;
use crate::block::BlockType;
use base::Adder;
use base::sync::atomic::{AtomicU64, Ordering};

/// A count for each kind of block, in the order of [`BlockType`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCounts([u64; BlockType::COUNT]);

impl BlockCounts {
    fn of(&self, kind: BlockType) -> u64 {
        self.0[kind as usize]
    }

    /// Blocks of cells, encoded ones included.
    pub fn data(&self) -> u64 {
        self.of(BlockType::Data) + self.encoded_data()
    }

    /// Blocks of encoded cells.
    pub fn encoded_data(&self) -> u64 {
        self.of(BlockType::EncodedData)
    }

    /// Lowest blocks of indexes.
    pub fn leaf_index(&self) -> u64 {
        self.of(BlockType::LeafIndex)
    }

    /// Middle blocks of indexes.
    pub fn intermediate_index(&self) -> u64 {
        self.of(BlockType::IntermediateIndex)
    }

    /// Tops of indexes. Open files hold theirs themselves.
    pub fn root_index(&self) -> u64 {
        self.of(BlockType::RootIndex)
    }

    /// Bits of Bloom filters.
    pub fn bloom_chunk(&self) -> u64 {
        self.of(BlockType::BloomChunk)
    }

    /// Named blocks of files' makers.
    pub fn meta(&self) -> u64 {
        self.of(BlockType::Meta)
    }

    /// File infos. Open files hold theirs themselves.
    pub fn file_info(&self) -> u64 {
        self.of(BlockType::FileInfo)
    }

    /// Headers of general Bloom filters. Open files hold theirs themselves.
    pub fn general_bloom_meta(&self) -> u64 {
        self.of(BlockType::GeneralBloomMeta)
    }

    /// Headers of filters for family deletes. Open files hold theirs themselves.
    pub fn delete_family_bloom_meta(&self) -> u64 {
        self.of(BlockType::DeleteFamilyBloomMeta)
    }
}

/// Lookups by kind of block, and by whether the reader leaves in the cache what it reads.
#[derive(Default)]
pub(crate) struct LookupCounts {
    hits: [[AtomicU64; 2]; BlockType::COUNT],
    misses: [[AtomicU64; 2]; BlockType::COUNT],
}

impl LookupCounts {
    #[inline]
    pub fn hit(&self, wanted: BlockType, keeps: bool) {
        self.hits[wanted as usize][usize::from(keeps)].fetch_add(1, Ordering::Relaxed);
    }

    pub fn missed(&self, wanted: BlockType, keeps: bool) {
        self.misses[wanted as usize][usize::from(keeps)].fetch_add(1, Ordering::Relaxed);
    }

    /// Adds all of it to `stats`.
    pub fn add_to(&self, stats: &mut CacheStats) {
        let read = |counts: &[AtomicU64; 2]| counts.each_ref().map(|count| count.load(Ordering::Relaxed));
        for kind in 0..BlockType::COUNT {
            let ([passing_hits, keeping_hits], [passing_misses, keeping_misses]) =
                (read(&self.hits[kind]), read(&self.misses[kind]));
            stats.hits_of.0[kind] += passing_hits + keeping_hits;
            stats.misses_of.0[kind] += passing_misses + keeping_misses;
            stats.hits += passing_hits + keeping_hits;
            stats.misses += passing_misses + keeping_misses;
            stats.keeping_hits += keeping_hits;
            stats.keeping_misses += keeping_misses;
        }
    }
}

/// What general Bloom filters are asked. Follows: `BloomFilterMetrics`.
#[derive(Debug, Default)]
pub struct BloomCounts {
    asked: Adder,
    denied: Adder,
    absent: Adder,
}

impl BloomCounts {
    /// A filter was asked, and says whether the file may have the key.
    pub(crate) fn answered(&self, may_contain: bool) {
        self.asked.add(1);
        if !may_contain {
            self.denied.add(1);
        }
    }

    /// A file has no filter that could have been asked.
    pub(crate) fn missing(&self) {
        self.absent.add(1);
    }

    /// Questions.
    pub fn asked(&self) -> u64 {
        self.asked.sum()
    }

    /// Those of them that saved a look into the file.
    pub fn denied(&self) -> u64 {
        self.denied.sum()
    }

    /// Questions for which a file has no filter.
    pub fn absent(&self) -> u64 {
        self.absent.sum()
    }
}
