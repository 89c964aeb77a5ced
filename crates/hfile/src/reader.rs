//! (being written)

use crate::{BlockCache, BloomType, Compression, Encoding, Residency, Result, ScanOptions, Scanner};
use base::SeqId;
use bytes::Bytes;
use cell::{KeyRef, Order};
use fs::{FilePath, ReadAt, Volume};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Which side of the split key a reference keeps (`Range` of HBase's `Reference`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HalfSide {
    /// Keys at and after the split key.
    Top,
    /// Keys before the split key.
    Bottom,
}

/// A reader that shows one half of its file (reference files after a split).
#[derive(Clone, Debug)]
pub struct Half {
    /// The side that is shown.
    pub side: HalfSide,
    /// Flat key of the split: first-on-row key of the split row.
    pub split_key: Bytes,
}

/// What a reader is opened with.
#[derive(Clone, Debug, Default)]
pub struct ReaderContext {
    /// Where blocks are kept; `None` reads every block anew.
    pub cache: Option<Arc<BlockCache>>,
    /// The file's number in the cache when its writer already put blocks there ([`crate::FinishedFile::cache_file_id`]).
    pub cache_file_id: Option<u64>,
    /// Blocks of this file are held longest (family attribute `IN_MEMORY`).
    pub in_memory: bool,
    /// Show only one half of the file.
    pub half: Option<Half>,
    /// Sequence id given to all cells in place of their own (bulk-loaded files).
    pub override_seq_id: Option<SeqId>,
}

/// An open HFile. Shared between threads; holds trailer, file info, root index and Bloom headers in memory.
#[derive(Debug)]
pub struct Reader {}

impl Reader {
    /// Opens the file at `path`: 3 to 4 small reads.
    ///
    /// # Errors
    /// `Io`; `Corrupt` when trailer, index or file info do not fit; `Unsupported` for encrypted files and unknown codecs.
    pub fn open(_volume: &dyn Volume, _path: &FilePath, _context: ReaderContext) -> Result<Arc<Reader>> {
        todo!()
    }
    /// As [`Reader::open`] of a file that is open already; `path` is for messages.
    pub fn open_at(_file: Arc<dyn ReadAt>, _path: &FilePath, _context: ReaderContext) -> Result<Arc<Reader>> {
        todo!()
    }
    /// A scanner over the file (or the half of it that this reader shows), not yet positioned.
    pub fn scanner(self: &Arc<Self>, _options: ScanOptions) -> Scanner {
        todo!()
    }
    /// The file's path, for messages.
    pub fn path(&self) -> &FilePath {
        todo!()
    }
    /// All of file info, raw.
    pub fn file_info(&self) -> &BTreeMap<Bytes, Bytes> {
        todo!()
    }
    /// Number of cells in the whole file.
    pub fn entry_count(&self) -> u64 {
        todo!()
    }
    /// Bytes of the whole file.
    pub fn len_bytes(&self) -> u64 {
        todo!()
    }
    /// Bytes of all blocks before compression.
    pub fn uncompressed_bytes(&self) -> u64 {
        todo!()
    }
    /// Bytes of the whole data index before compression (all levels).
    pub fn index_bytes(&self) -> u64 {
        todo!()
    }
    /// Bytes of the Bloom chunks.
    pub fn bloom_bytes(&self) -> u64 {
        todo!()
    }
    /// Memory held by this reader outside the cache.
    pub fn heap_bytes(&self) -> usize {
        todo!()
    }
    /// MAX_SEQ_ID_KEY; `None` in bulk-load output (then the file name may say it).
    pub fn max_seq_id(&self) -> Option<SeqId> {
        todo!()
    }
    /// MAX_MEMSTORE_TS_KEY: highest sequence id kept with the cells; 0 when none is kept.
    pub fn max_memstore_ts(&self) -> u64 {
        todo!()
    }
    /// A key at or before the first cell shown (exactly the first cell's key when the whole file is shown). `None`: no cells.
    pub fn first_key(&self) -> Option<KeyRef<'_>> {
        todo!()
    }
    /// A key at or after the last cell shown (exactly the last cell's key when the whole file is shown). `None`: no cells.
    pub fn last_key(&self) -> Option<KeyRef<'_>> {
        todo!()
    }
    /// The key near the middle of the file's blocks, where a region is split; `None` for an empty file and for halves.
    /// May read one index block.
    pub fn mid_key(&self) -> Result<Option<Bytes>> {
        todo!()
    }
    /// Smallest and largest timestamp (TIMERANGE), both inclusive; `None` when not recorded or no cells.
    pub fn time_range(&self) -> Option<(i64, i64)> {
        todo!()
    }
    /// EARLIEST_PUT_TS.
    pub fn earliest_put_ts(&self) -> Option<i64> {
        todo!()
    }
    /// hfile.CREATE_TIME_TS in milliseconds.
    pub fn create_time_ms(&self) -> Option<i64> {
        todo!()
    }
    /// BULKLOAD_TIMESTAMP in milliseconds: present in bulk-loaded files.
    pub fn bulk_load_time_ms(&self) -> Option<i64> {
        todo!()
    }
    /// SKIP_RESET_SEQ_ID: cells of a bulk-loaded file keep their own sequence ids.
    pub fn skip_reset_seq_id(&self) -> bool {
        todo!()
    }
    /// MAJOR_COMPACTION_KEY.
    pub fn is_major_compacted(&self) -> bool {
        todo!()
    }
    /// EXCLUDE_FROM_MINOR_COMPACTION.
    pub fn exclude_from_minor(&self) -> bool {
        todo!()
    }
    /// DELETE_FAMILY_COUNT.
    pub fn delete_family_count(&self) -> u64 {
        todo!()
    }
    /// Whether cells carry tags.
    pub fn has_tags(&self) -> bool {
        todo!()
    }
    /// Codec.
    pub fn compression(&self) -> Compression {
        todo!()
    }
    /// Encoding of data blocks.
    pub fn encoding(&self) -> Encoding {
        todo!()
    }
    /// Order of the cells.
    pub fn order(&self) -> Order {
        todo!()
    }
    /// The general Bloom filter's type; `None` when the file has none.
    pub fn bloom_type(&self) -> BloomType {
        todo!()
    }
    /// Whether the file has a general Bloom filter.
    pub fn has_bloom(&self) -> bool {
        self.bloom_type() != BloomType::None
    }
    /// Whether the file may hold cells of `row` (ROW and ROWPREFIX filters; true for others).
    ///
    /// # Errors
    /// `WouldBlock` when a chunk is not cached and must not be read.
    pub fn may_contain_row(&self, _row: &[u8], _residency: Residency) -> Result<bool> {
        todo!()
    }
    /// Whether the file may hold cells of this column of `row`. A ROWCOL filter does not know of family deletes: ask
    /// [`Reader::may_contain_delete_family`] as well. Other filters answer for the row.
    pub fn may_contain_row_col(&self, _row: &[u8], _qualifier: &[u8], _residency: Residency) -> Result<bool> {
        todo!()
    }
    /// Whether the file may hold a DeleteFamily or DeleteFamilyVersion marker in `row`.
    pub fn may_contain_delete_family(&self, _row: &[u8], _residency: Residency) -> Result<bool> {
        todo!()
    }
    /// Forgets the file's blocks in the cache; the reader stays usable.
    pub fn evict(&self) {
        todo!()
    }
}
