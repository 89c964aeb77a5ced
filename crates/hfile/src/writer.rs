//! (being written)

use crate::{BlockCache, BloomType, ChecksumType, Compression, Encoding, HashType, Result};
use base::{SeqId, TimestampMs};
use bytes::Bytes;
use cell::{CellRef, Order};
use fs::{FilePath, Volume};
use std::sync::Arc;

/// How a file is written. The defaults are HBase's.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// Codec of all blocks.
    pub compression: Compression,
    /// Encoding of data blocks.
    pub encoding: Encoding,
    /// A data block is closed at the first cell that reaches this size.
    pub block_size_bytes: u32,
    /// General Bloom filter.
    pub bloom: BloomType,
    /// Row bytes hashed by a ROWPREFIX_FIXED_LENGTH filter.
    pub bloom_prefix_len: u32,
    /// False-positive rate (`io.storefile.bloom.error.rate`).
    pub bloom_error_rate: f64,
    /// Bytes of a Bloom chunk (`io.storefile.bloom.block.size`).
    pub bloom_block_size_bytes: u32,
    /// Hash of the Bloom filters (`hbase.hash.type`).
    pub bloom_hash: HashType,
    /// Keys expected in the filter; recorded only (HBase writes what it was told).
    pub max_bloom_keys: u64,
    /// Checksum of blocks.
    pub checksum: ChecksumType,
    /// Bytes under one checksum.
    pub bytes_per_checksum: u32,
    /// Leaf and intermediate index blocks are closed at this size (`hfile.index.block.max.size`).
    pub index_block_size_bytes: u32,
    /// An index block of fewer entries is not split (`hfile.index.block.min.entries`).
    pub index_min_entries: u32,
    /// Order of cells: `Meta` for hbase:meta.
    pub order: Order,
    /// Keep sequence ids with the cells.
    pub include_mvcc: bool,
    /// Keep tags.
    pub include_tags: bool,
    /// Dictionary-compress tags in encoded blocks.
    pub compress_tags: bool,
    /// hfile.CREATE_TIME_TS.
    pub create_time_ms: TimestampMs,
    /// Put finished blocks into this cache as they are written.
    pub cache_on_write: Option<Arc<BlockCache>>,
}

impl Default for WriterOptions {
    fn default() -> Self {
        WriterOptions {
            compression: Compression::None,
            encoding: Encoding::None,
            block_size_bytes: 64 * 1024,
            bloom: BloomType::None,
            bloom_prefix_len: 0,
            bloom_error_rate: 0.01,
            bloom_block_size_bytes: 128 * 1024,
            bloom_hash: HashType::Murmur,
            max_bloom_keys: 128_000_000,
            checksum: ChecksumType::Crc32c,
            bytes_per_checksum: 16 * 1024,
            index_block_size_bytes: 128 * 1024,
            index_min_entries: 16,
            order: Order::User,
            include_mvcc: true,
            include_tags: false,
            compress_tags: false,
            create_time_ms: TimestampMs(0),
            cache_on_write: None,
        }
    }
}

/// What only the caller knows of a store file; written into file info by [`Writer::finish`].
#[derive(Clone, Debug, Default)]
pub struct StoreMetadata {
    /// MAX_SEQ_ID_KEY; `None` leaves it out (bulk-load output).
    pub max_seq_id: Option<SeqId>,
    /// MAJOR_COMPACTION_KEY.
    pub major_compaction: bool,
    /// HISTORICAL.
    pub historical: bool,
    /// EXCLUDE_FROM_MINOR_COMPACTION, written only when given.
    pub exclude_from_minor: Option<bool>,
    /// COMPACTION_EVENT_KEY: names of the files this one replaces.
    pub compacted_files: Vec<String>,
}

/// A file that was written, synced and closed.
#[derive(Clone, Debug)]
pub struct FinishedFile {
    /// Where it is.
    pub path: FilePath,
    /// Bytes of the file.
    pub len_bytes: u64,
    /// Number of cells.
    pub entry_count: u64,
    /// Bytes of all blocks before compression.
    pub uncompressed_bytes: u64,
    /// Flat key of the first cell.
    pub first_key: Option<Bytes>,
    /// Flat key of the last cell.
    pub last_key: Option<Bytes>,
    /// The file's number in the cache when blocks were put there: hand it to the reader.
    pub cache_file_id: Option<u64>,
}

/// Writes one HFile from its start to its end; data blocks leave as they fill.
pub struct Writer {}

impl Writer {
    /// Creates the file at `path`; fails when it exists.
    pub fn create(_volume: &dyn Volume, _path: &FilePath, _options: WriterOptions) -> Result<Writer> {
        todo!()
    }
    /// Adds a cell.
    ///
    /// # Panics
    /// When the cell sorts before the one added last: an unsorted file would be lost data.
    pub fn append(&mut self, _cell: CellRef<'_>) -> Result<()> {
        todo!()
    }
    /// Adds an entry to file info; a later one under the same key wins.
    pub fn append_file_info(&mut self, _key: &[u8], _value: &[u8]) {
        todo!()
    }
    /// Bytes that left for the file so far (blocks still being filled not counted).
    pub fn written_bytes(&self) -> u64 {
        todo!()
    }
    /// Cells added so far.
    pub fn entry_count(&self) -> u64 {
        todo!()
    }
    /// Writes what follows the data, syncs the file and closes it. The directory entry is the caller's to sync.
    pub fn finish(self, _metadata: &StoreMetadata) -> Result<FinishedFile> {
        todo!()
    }
}
