//! Writing a file. Follows: `HFileWriterImpl`, `StoreFileWriter`.

use crate::Dictionary;
use crate::block::{BlockType, HEADER_LEN};
use crate::block_writer::BlockWriter;
use crate::bloom::with_row_col_key;
use crate::bloom_writer::BloomWriter;
use crate::cache::CachedBlock;
use crate::data_block::DataBlock;
use crate::encoding::{CellEncoder, Tail};
use crate::file_info::{self, FileInfo, flag_bytes, key};
use crate::index::{BlockAt, IndexBlock};
use crate::index_writer::{IndexWriter, write_separator};
use crate::settings::{FORMAT_VERSION, ZSTD_LEVEL};
use crate::trailer::{TRAILER_LEN, Trailer};
use crate::{BlockCache, BloomType, ChecksumType, Compression, Encoding, HashType, Result};
use base::{SeqId, TimestampMs};
use bytes::Bytes;
use cell::print::Binary;
use cell::{CellRef, CellType, KeyRef, Order};
use fs::{FilePath, Volume};
use std::cmp::Ordering;
use std::sync::Arc;

/// How a file is written. The defaults are HBase's.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// Codec of all blocks.
    pub compression: Compression,
    /// The file is written plainly where the codec takes less than an eighth off its first data block.
    pub compression_must_pay: bool,
    /// How hard Zstandard tries (`hbase.io.compress.zstd.level`).
    pub zstd_level: i32,
    /// What Zstandard blocks are packed with (`hbase.io.compress.zstd.dictionary`).
    pub dictionary: Option<Arc<Dictionary>>,
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
    /// What becomes of finished blocks in the cache.
    pub cache_on_write: CacheOnWrite,
    /// Blocks of the index that are not its root go into this cache as they are written, whatever becomes of others. They do with
    /// [`CacheOnWrite::All`], too.
    pub cache_index_on_write: Option<Arc<BlockCache>>,
    /// As `cache_index_on_write`, for the chunks of Bloom filters.
    pub cache_blooms_on_write: Option<Arc<BlockCache>>,
    /// Whose figures say how long writing took ([`crate::FileReads::write_times`]), whatever becomes of blocks; none: nobody's.
    pub times_go_to: Option<Arc<BlockCache>>,
    /// Version of the format (`hfile.format.version`).
    pub format_version: u32,
    /// Write the file past the operating system's memory ([`fs::VolumeHints::create_past_cache`]).
    pub past_cache: bool,
    /// What the file is for, and what its owner wishes ([`fs::VolumeHints::create_placed`]).
    pub placement: fs::Placement,
}

/// Which blocks are put into the cache as they are written.
#[derive(Clone, Debug, Default)]
pub enum CacheOnWrite {
    /// None.
    #[default]
    Nothing,
    /// Those that mostly hold cells added by [`Writer::append_wanted`]: what readers had in the cache stays there when it is written anew.
    Wanted(Arc<BlockCache>),
    /// All.
    All(Arc<BlockCache>),
}

impl CacheOnWrite {
    fn cache(&self) -> Option<&Arc<BlockCache>> {
        match self {
            CacheOnWrite::Nothing => None,
            CacheOnWrite::Wanted(cache) | CacheOnWrite::All(cache) => Some(cache),
        }
    }
}

impl WriterOptions {
    /// Every cache that blocks go into; of one file they are one.
    fn caches(&self) -> impl Iterator<Item = &Arc<BlockCache>> {
        let others = [&self.cache_index_on_write, &self.cache_blooms_on_write];
        self.cache_on_write.cache().into_iter().chain(others.into_iter().flatten())
    }

    /// Where blocks of the index go.
    fn index_cache(&self) -> Option<&Arc<BlockCache>> {
        match &self.cache_on_write {
            CacheOnWrite::All(cache) => Some(cache),
            _ => self.cache_index_on_write.as_ref(),
        }
    }
}

impl Default for WriterOptions {
    fn default() -> Self {
        WriterOptions {
            compression: Compression::None,
            compression_must_pay: false,
            zstd_level: ZSTD_LEVEL.default,
            dictionary: None,
            encoding: Encoding::None,
            block_size_bytes: 64 * 1024,
            bloom: BloomType::None,
            bloom_prefix_len: 0,
            bloom_error_rate: 0.01,
            bloom_block_size_bytes: 128 * 1024,
            bloom_hash: HashType::Murmur,
            checksum: ChecksumType::Crc32c,
            bytes_per_checksum: 16 * 1024,
            index_block_size_bytes: 128 * 1024,
            index_min_entries: 16,
            order: Order::User,
            include_mvcc: true,
            include_tags: false,
            compress_tags: false,
            create_time_ms: TimestampMs(0),
            cache_on_write: CacheOnWrite::Nothing,
            cache_index_on_write: None,
            cache_blooms_on_write: None,
            times_go_to: None,
            format_version: FORMAT_VERSION.default,
            past_cache: false,
            placement: fs::Placement::default(),
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
    /// STRIPE_START_KEY and STRIPE_END_KEY: from which row on, up to which; an empty one is open. Written only when given.
    pub stripe: Option<(Bytes, Bytes)>,
    /// CUSTOM_TIERING_TIME_RANGE: the least and the greatest tiering value of its cells. Written only when given.
    pub tiering_values: Option<(i64, i64)>,
    /// BASALT_MORE_FOLLOW, written only when set: a file of a flush into several, which counts only once the last of them is there.
    pub more_follow: bool,
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
    /// Highest sequence id of a cell.
    pub max_seq_id_of_cells: SeqId,
    /// The file's number in the cache when blocks were put there: hand it to the reader.
    pub cache_file_id: Option<u64>,
}

/// Timestamps seen so far. Follows: `TimeRangeTracker`.
#[derive(Clone, Copy, Debug)]
struct TimeRange {
    min: i64,
    max: i64,
    earliest_put: i64,
}

impl TimeRange {
    const EMPTY: TimeRange = TimeRange { min: i64::MAX, max: -1, earliest_put: i64::MAX };

    fn include(&mut self, cell: CellRef<'_>) {
        let (timestamp, type_code) = (cell.timestamp(), cell.type_code());
        self.min = self.min.min(timestamp);
        self.max = self.max.max(timestamp);
        if type_code == CellType::Put.code() {
            self.earliest_put = self.earliest_put.min(timestamp);
        } else if type_code == CellType::DeleteColumn.code() || type_code == CellType::DeleteFamily.code() {
            // These hide everything up to their timestamp: readers of older times must see them.
            self.min = self.min.min(0);
            self.max = self.max.max(0);
        }
    }
}

/// Puts a block of the index into the cache that is to have it.
fn keep_index(cache: Option<(&Arc<BlockCache>, u64)>, order: Order, at: BlockAt, payload: &[u8]) {
    let Some((cache, file_id)) = cache else { return };
    let block = IndexBlock::parse_non_root(payload).and_then(|index| index.with_flat_keys(order));
    let block = Arc::new(block.expect("the block was just made"));
    cache.insert(file_id, at.offset, CachedBlock::Index(block), false);
}

/// Writes one HFile from its start to its end; data blocks leave as they fill.
pub struct Writer {
    options: WriterOptions,
    path: FilePath,
    out: BlockWriter,
    encoder: CellEncoder,
    tail: Tail,
    index: IndexWriter,
    bloom: Option<BloomWriter>,
    delete_bloom: Option<BloomWriter>,
    cache_file_id: Option<u64>,
    /// Bytes of this block's cells, and of those among them that readers want in the cache.
    block_bytes: (usize, usize),
    /// A data block went into the cache.
    is_wanted: bool,
    info: FileInfo,
    /// KeyValue bytes, without tags, of the cell added last.
    last: Vec<u8>,
    last_seq_id: SeqId,
    /// Keys of the first cell of this block and of the last one of the block before.
    first_in_block: Vec<u8>,
    last_of_previous_block: Vec<u8>,
    first_key: Option<Bytes>,
    first_data_block: Option<u64>,
    last_data_block: Option<u64>,
    entry_count: u64,
    key_bytes: u64,
    value_bytes: u64,
    biggest: (u64, Vec<u8>),
    max_tags_len: usize,
    max_seq_id_of_cells: u64,
    times: TimeRange,
    delete_family_count: u64,
}

impl Writer {
    /// Creates the file at `path`; fails when it exists.
    ///
    /// # Errors
    /// `Io` of the volume.
    pub fn create(volume: &dyn Volume, path: &FilePath, options: WriterOptions) -> Result<Writer> {
        let file = volume.create_placed(path, &options.placement, options.past_cache)?;
        let mut out = BlockWriter::new(file, &options);
        let tail = Tail {
            tags: options.include_tags,
            tags_compressed: options.include_tags && options.compress_tags && options.encoding != Encoding::None,
            mvcc: options.include_mvcc,
        };
        let bloom = (options.bloom != BloomType::None).then(|| BloomWriter::new(&options, options.bloom));
        // A ROWCOL filter knows family deletes by their empty qualifier.
        let delete_bloom = (options.bloom != BloomType::RowCol).then(|| BloomWriter::new(&options, BloomType::Row));
        let index = IndexWriter::new(options.index_block_size_bytes as usize, options.index_min_entries as usize);
        let cache_file_id = options.caches().next().map(|cache| cache.new_file_id());
        Ok(Writer {
            path: path.clone(),
            encoder: CellEncoder::new(options.encoding, tail, out.lend()),
            out,
            tail,
            index,
            bloom,
            delete_bloom,
            cache_file_id,
            block_bytes: (0, 0),
            is_wanted: false,
            info: FileInfo::new(),
            last: Vec::new(),
            last_seq_id: SeqId(0),
            first_in_block: Vec::new(),
            last_of_previous_block: Vec::new(),
            first_key: None,
            first_data_block: None,
            last_data_block: None,
            entry_count: 0,
            key_bytes: 0,
            value_bytes: 0,
            biggest: (0, Vec::new()),
            max_tags_len: 0,
            max_seq_id_of_cells: 0,
            times: TimeRange::EMPTY,
            delete_family_count: 0,
            options,
        })
    }

    /// Adds a cell.
    ///
    /// # Errors
    /// `Io` of the volume; the file is then to be removed.
    ///
    /// # Panics
    /// When the cell sorts before the one added last or has another family: such a file would be lost data.
    pub fn append(&mut self, cell: CellRef<'_>) -> Result<()> {
        self.append_wanted(cell, false)
    }

    /// As [`Writer::append`]. `is_wanted`: the cell comes from a block that readers had in the cache ([`CacheOnWrite::Wanted`]).
    ///
    /// # Errors
    /// As [`Writer::append`].
    ///
    /// # Panics
    /// As [`Writer::append`].
    pub fn append_wanted(&mut self, cell: CellRef<'_>, is_wanted: bool) -> Result<()> {
        let key = cell.key();
        let mut same_key = false;
        if self.entry_count > 0 {
            let last = CellRef::from_checked(&self.last, self.last_seq_id);
            let order = self.options.order.keys(last.key(), key);
            let shown = Binary(key.bytes());
            assert!(order != Ordering::Greater, "{}: cells are not added in order: {shown}", self.path);
            assert!(last.family() == key.family(), "{}: cells of two families: {shown}", self.path);
            same_key = order == Ordering::Equal;
        } else {
            self.first_key = Some(Bytes::copy_from_slice(key.bytes()));
        }
        // HBase asks the filters first too: a chunk that this cell fills goes out before this cell's block.
        self.add_to_blooms(cell);
        // Cells of one key stay in one block.
        if !same_key && self.encoder.is_full(self.options.block_size_bytes as usize) {
            self.finish_block(false)?;
        }
        if self.encoder.is_empty() {
            self.first_in_block.clear();
            self.first_in_block.extend_from_slice(key.bytes());
        }
        let last = (self.entry_count > 0).then(|| CellRef::from_checked(&self.last, self.last_seq_id));
        self.encoder.add(cell, last);
        let len = cell.bytes().len();
        self.block_bytes.0 += len;
        self.block_bytes.1 += if is_wanted { len } else { 0 };
        self.count(cell);
        self.keep_last(cell);
        self.last_seq_id = cell.seq_id();
        Ok(())
    }

    /// Keeps the cell for the next one to be compared with, and its value where the encoding looks at it.
    fn keep_last(&mut self, cell: CellRef<'_>) {
        self.last.clear();
        if matches!(self.options.encoding, Encoding::None | Encoding::RowIndexV1) {
            let key = cell.key().bytes();
            self.last.extend_from_slice(&(key.len() as u32).to_be_bytes());
            self.last.extend_from_slice(&[0; 4]);
            self.last.extend_from_slice(key);
        } else {
            self.last.extend_from_slice(cell.bytes_without_tags());
        }
    }

    fn add_to_blooms(&mut self, cell: CellRef<'_>) {
        let row = cell.row();
        if let Some(bloom) = &mut self.bloom {
            match self.options.bloom {
                BloomType::RowCol => with_row_col_key(row, cell.qualifier(), |key| bloom.add(key)),
                BloomType::RowPrefixFixedLength => {
                    bloom.add(&row[..row.len().min(self.options.bloom_prefix_len as usize)])
                }
                _ => bloom.add(row),
            }
        }
        let type_code = cell.type_code();
        if type_code == CellType::DeleteFamily.code() || type_code == CellType::DeleteFamilyVersion.code() {
            self.delete_family_count += 1;
            if let Some(bloom) = &mut self.delete_bloom {
                bloom.add(row);
            }
        }
    }

    fn count(&mut self, cell: CellRef<'_>) {
        self.entry_count += 1;
        self.key_bytes += cell.key().bytes().len() as u64;
        self.value_bytes += cell.value().len() as u64;
        // As HBase counts: the KeyValue and the length before it on the wire.
        let len = cell.bytes().len() as u64 + 4;
        if len > self.biggest.0 {
            self.biggest.0 = len;
            self.biggest.1.clear();
            self.biggest.1.extend_from_slice(cell.key().bytes());
        }
        self.max_tags_len = self.max_tags_len.max(cell.tags().len());
        self.max_seq_id_of_cells = self.max_seq_id_of_cells.max(cell.seq_id().0);
        self.times.include(cell);
    }

    /// Writes the block being filled, and index and Bloom blocks that are due.
    fn finish_block(&mut self, closing: bool) -> Result<()> {
        let is_empty = self.encoder.is_empty();
        let (framed, base) = self.encoder.finish();
        if is_empty {
            self.out.take_back(framed);
        } else {
            let encoded = self.options.encoding != Encoding::None;
            let block_type = if encoded { BlockType::EncodedData } else { BlockType::Data };
            let (all, wanted) = std::mem::take(&mut self.block_bytes);
            let goes_in = match self.options.cache_on_write {
                CacheOnWrite::Nothing => false,
                CacheOnWrite::Wanted(_) => wanted * 2 > all,
                CacheOnWrite::All(_) => true,
            };
            if goes_in && let (Some(cache), Some(file_id)) = (self.options.cache_on_write.cache(), self.cache_file_id) {
                let payload = Bytes::copy_from_slice(&framed[base + HEADER_LEN..]);
                let block = DataBlock::decode(payload, encoded, self.tail, Some(self.options.order));
                let block = CachedBlock::Data(Arc::new(block.expect("the block was just encoded")));
                match self.options.cache_on_write {
                    CacheOnWrite::Wanted(_) => cache.insert_wanted(file_id, self.out.offset(), block),
                    _ => cache.insert(file_id, self.out.offset(), block, false),
                }
                self.is_wanted = true;
            }
            let at = self.out.write_framed(block_type, framed, base)?;
            self.add_to_index(at);
            self.first_data_block.get_or_insert(at.offset);
            self.last_data_block = Some(at.offset);
            self.last_of_previous_block.clear();
            let last = CellRef::from_checked(&self.last, self.last_seq_id);
            self.last_of_previous_block.extend_from_slice(last.key().bytes());
        }
        let order = self.options.order;
        let cache = self.options.index_cache().zip(self.cache_file_id);
        self.index.write_leaf_if_due(closing, &mut self.out, |at, payload| keep_index(cache, order, at, payload))?;
        // Of a file with wanted blocks the filters are wanted too.
        let goes_in = self.is_wanted || matches!(self.options.cache_on_write, CacheOnWrite::All(_));
        let cache = self.options.cache_on_write.cache().filter(|_| goes_in);
        let cache = cache.or(self.options.cache_blooms_on_write.as_ref()).zip(self.cache_file_id);
        for bloom in [&mut self.bloom, &mut self.delete_bloom].into_iter().flatten() {
            bloom.write_chunks_if_due(closing, &mut self.out, |at, bits| {
                if let Some((cache, file_id)) = cache {
                    cache.insert(file_id, at.offset, CachedBlock::Bloom(Bytes::copy_from_slice(bits)), false);
                }
            })?;
        }
        if !closing {
            self.encoder.begin(self.out.lend());
        }
        Ok(())
    }

    fn add_to_index(&mut self, at: BlockAt) {
        if self.last_of_previous_block.is_empty() {
            self.index.add(&self.first_in_block, at);
        } else {
            let mut separator = Vec::with_capacity(self.first_in_block.len());
            let left = KeyRef::from_checked(&self.last_of_previous_block);
            write_separator(self.options.order, left, KeyRef::from_checked(&self.first_in_block), &mut separator);
            self.index.add(&separator, at);
        }
    }

    /// Adds an entry to file info; a later one under the same key wins, and what the writer itself knows wins over all.
    pub fn append_file_info(&mut self, key: &[u8], value: &[u8]) {
        self.info.insert(Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
    }

    /// Bytes of the blocks that left for the file so far, before compression: work done, by which a compaction is paced.
    pub fn written_bytes(&self) -> u64 {
        self.out.uncompressed_bytes
    }

    /// Cells added so far.
    pub fn entry_count(&self) -> u64 {
        self.entry_count
    }

    /// Writes what follows the data, syncs the file and closes it. The directory entry is the caller's to sync.
    ///
    /// # Errors
    /// `Io` of the volume; the file is then to be removed.
    pub fn finish(mut self, metadata: &StoreMetadata) -> Result<FinishedFile> {
        self.finish_block(true)?;
        // HBase does not count these index blocks among the uncompressed bytes (but does count the leaf blocks).
        let counted = self.out.uncompressed_bytes;
        let (order, cache) = (self.options.order, self.options.index_cache().zip(self.cache_file_id));
        let index = self.index.finish(&mut self.out, |at, payload| keep_index(cache, order, at, payload))?;
        self.out.uncompressed_bytes = counted;
        // No meta blocks: an index of none.
        self.out.write(BlockType::RootIndex, &[])?;
        self.complete_file_info(metadata);
        let file_info = self.out.write(BlockType::FileInfo, &file_info::to_bytes(&self.info))?;
        let blooms =
            [(&self.bloom, BlockType::GeneralBloomMeta), (&self.delete_bloom, BlockType::DeleteFamilyBloomMeta)];
        for (bloom, block_type) in blooms {
            if let Some(bloom) = bloom.as_ref().filter(|bloom| !bloom.is_empty()) {
                self.out.write(block_type, &bloom.meta())?;
            }
        }
        let uncompressed_bytes = self.out.uncompressed_bytes + TRAILER_LEN as u64;
        let trailer = Trailer {
            version: self.options.format_version,
            len: TRAILER_LEN,
            file_info_offset: file_info.offset,
            load_on_open_offset: index.root.offset,
            uncompressed_index_bytes: self.index.uncompressed_bytes,
            uncompressed_bytes,
            root_entries: index.root_entries as u32,
            meta_entries: 0,
            entry_count: self.entry_count,
            index_levels: index.levels,
            first_data_block: self.first_data_block.unwrap_or(u64::MAX),
            last_data_block: self.last_data_block.unwrap_or(u64::MAX),
            order: self.options.order,
            codec: self.out.compression().code(),
            encrypted: false,
        };
        let len_bytes = self.out.close(&trailer.to_bytes())?;
        Ok(FinishedFile {
            path: self.path,
            len_bytes,
            entry_count: self.entry_count,
            uncompressed_bytes,
            first_key: self.first_key,
            last_key: self.info.get(key::LAST_KEY).cloned(),
            max_seq_id_of_cells: SeqId(self.max_seq_id_of_cells),
            cache_file_id: self.cache_file_id,
        })
    }

    fn complete_file_info(&mut self, metadata: &StoreMetadata) {
        let mut put = |key: &'static [u8], value: Bytes| self.info.insert(Bytes::from_static(key), value);
        let long = |value: i64| Bytes::copy_from_slice(&value.to_be_bytes());
        let int = |value: u64| Bytes::copy_from_slice(&i32::try_from(value).unwrap_or(i32::MAX).to_be_bytes());
        if let Some(id) = metadata.max_seq_id {
            put(key::MAX_SEQ_ID, long(id.0 as i64));
            let names = metadata.compacted_files.iter().map(|name| Bytes::copy_from_slice(name.as_bytes())).collect();
            let tracker = proto::pb::CompactionEventTracker { compacted_store_file: names };
            put(key::COMPACTION_EVENT, proto::magic::encode(&tracker));
        }
        put(key::MAJOR_COMPACTION, flag_bytes(metadata.major_compaction));
        put(key::HISTORICAL, flag_bytes(metadata.historical));
        if let Some(exclude) = metadata.exclude_from_minor {
            put(key::EXCLUDE_FROM_MINOR_COMPACTION, flag_bytes(exclude));
        }
        if let Some((start, end)) = &metadata.stripe {
            put(key::STRIPE_START, start.clone());
            put(key::STRIPE_END, end.clone());
        }
        if let Some((least, greatest)) = metadata.tiering_values {
            let range = [least.to_be_bytes(), greatest.to_be_bytes()].concat();
            put(key::CUSTOM_TIERING_TIME_RANGE, Bytes::from(range));
        }
        if metadata.more_follow {
            put(key::MORE_FOLLOW, flag_bytes(true));
        }
        let (min, max) = (self.times.min, self.times.max);
        put(key::TIME_RANGE, Bytes::from([min.to_be_bytes(), max.to_be_bytes()].concat()));
        put(key::EARLIEST_PUT_TS, long(self.times.earliest_put));
        put(key::DELETE_FAMILY_COUNT, long(self.delete_family_count as i64));
        if let Some(bloom) = self.bloom.as_ref().filter(|bloom| !bloom.is_empty()) {
            put(key::BLOOM_FILTER_TYPE, Bytes::from_static(self.options.bloom.as_str().as_bytes()));
            put(key::LAST_BLOOM_KEY, Bytes::copy_from_slice(&bloom.last_key));
            if self.options.bloom == BloomType::RowPrefixFixedLength {
                put(key::BLOOM_FILTER_PARAM, int(u64::from(self.options.bloom_prefix_len)));
            }
        }
        if self.options.encoding != Encoding::None {
            put(key::DATA_BLOCK_ENCODING, Bytes::from_static(self.options.encoding.as_str().as_bytes()));
        }
        if self.options.include_mvcc {
            put(key::MAX_MEMSTORE_TS, long(self.max_seq_id_of_cells as i64));
            put(key::KEY_VALUE_VERSION, int(1));
        }
        if self.options.include_tags {
            put(key::MAX_TAGS_LEN, int(self.max_tags_len as u64));
            put(key::TAGS_COMPRESSED, flag_bytes(self.tail.tags_compressed));
        }
        put(key::CREATE_TIME_TS, long(self.options.create_time_ms.0));
        put(key::AVG_KEY_LEN, int(self.key_bytes.checked_div(self.entry_count).unwrap_or(0)));
        put(key::AVG_VALUE_LEN, int(self.value_bytes.checked_div(self.entry_count).unwrap_or(0)));
        if self.entry_count > 0 {
            let last = CellRef::from_checked(&self.last, self.last_seq_id);
            put(key::LAST_KEY, Bytes::copy_from_slice(last.key().bytes()));
            put(key::KEY_OF_BIGGEST_CELL, Bytes::copy_from_slice(&self.biggest.1));
            put(key::LEN_OF_BIGGEST_CELL, long(self.biggest.0 as i64));
        }
    }
}
