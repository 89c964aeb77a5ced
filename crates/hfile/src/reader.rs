//! An open file: what it says of itself, its Bloom filters, its scanners. Follows: `HFileReaderImpl`, `StoreFileReader`.

use crate::Dictionary;
use crate::bloom::{self, Bloom};
use crate::file_info::{self, FileInfo, key};
use crate::index::{IndexBlock, MidKey};
use crate::open::{self, Opened};
use crate::source::{Fetch, Source};
use crate::trailer::Trailer;
use crate::{BlockCache, BloomType, Compression, Encoding, Error, Residency, Result, ScanOptions, Scanner};
use base::SeqId;
use bytes::Bytes;
use cell::{KeyRef, Order};
use fs::{BlockHosts, FilePart, FilePath, ReadAt, Volume};
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
    /// Flat key of the split: first-on-row key of the split row. Checked when the reader is opened.
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
    /// When the file is cold: the cache's second level is not for it then. `None`: never.
    pub hot_age: Option<HotAge>,
    /// What Zstandard blocks are unpacked with (`hbase.io.compress.zstd.dictionary`).
    pub dictionary: Option<Arc<Dictionary>>,
}

/// For how long a file is hot. Follows: `DataTieringManager`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotAge {
    /// Milliseconds from its newest time on.
    pub ms: i64,
    /// Whether that is the greatest tiering value of its cells, as the compaction that made it wrote it down; else it is the newest timestamp. A file without is hot.
    pub of_values: bool,
}

/// An open HFile. Shared between threads; holds trailer, file info, root index and Bloom headers in memory.
pub struct Reader {
    pub(crate) source: Source,
    len: u64,
    trailer: Trailer,
    encoding: Encoding,
    pub(crate) root: IndexBlock,
    mid_key: Option<MidKey>,
    meta_index: IndexBlock,
    info: FileInfo,
    last_key: Option<Bytes>,
    max_memstore_ts: u64,
    /// What every read asks of file info, looked up once: TIMERANGE of a file with cells, and DELETE_FAMILY_COUNT.
    time_range: Option<(i64, i64)>,
    delete_families: Option<u64>,
    bloom_type: BloomType,
    bloom: Option<Bloom>,
    delete_bloom: Option<Bloom>,
    prefix_len: usize,
    pub(crate) half: Option<Half>,
    override_seq_id: Option<SeqId>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("path", self.path()).field("trailer", &self.trailer).finish_non_exhaustive()
    }
}

/// The chunk of a Bloom filter that was asked last, and where it lies. For those who ask in the order of keys.
#[derive(Debug, Default)]
pub(crate) struct LastChunk(Option<(u64, Bytes)>);

impl Reader {
    /// Opens the file at `path`: usually one read of its last 16 KiB.
    ///
    /// # Errors
    /// `Io`; `Corrupt` when trailer, index or file info do not fit; `Unsupported` for encrypted files and unknown codecs.
    pub fn open(volume: &dyn Volume, path: &FilePath, context: ReaderContext) -> Result<Arc<Reader>> {
        Reader::open_at(volume.open(path)?, path, context)
    }

    /// As [`Reader::open`] of a file that is open already; `path` is for messages.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn open_at(file: Arc<dyn ReadAt>, path: &FilePath, context: ReaderContext) -> Result<Arc<Reader>> {
        if context.cache.as_ref().is_some_and(|cache| cache.reads_directly()) {
            file.past_cache();
        }
        let opened = open::open(&*file, path, context.dictionary.as_ref())?;
        let info_corrupt = |what: String| Error::corrupt(path, opened.trailer.file_info_offset, what);
        let long = |key| file_info::long(&opened.info, key).map_err(|d| info_corrupt(d.0));
        let max_memstore_ts = long(key::MAX_MEMSTORE_TS)?.map_or(0, |ts| ts.max(0) as u64);
        let time_range = time_range(&opened.info).filter(|_| opened.root.len() > 0);
        let delete_families = opened
            .info
            .contains_key(key::DELETE_FAMILY_COUNT)
            .then(|| file_info::long(&opened.info, key::DELETE_FAMILY_COUNT).ok().flatten())
            .map(|count| count.map_or(0, |count| count.max(0) as u64));
        let last_key = opened.info.get(key::LAST_KEY).cloned();
        if let Some(last_key) = &last_key {
            KeyRef::parse(last_key).map_err(|e| info_corrupt(format!("the last key: {e}")))?;
        } else if opened.root.len() > 0 {
            return Err(info_corrupt("the last key is missing".into()));
        }
        if let Some(half) = &context.half {
            KeyRef::parse(&half.split_key).map_err(|e| Error::corrupt(path, 0, format!("the split key: {e}")))?;
        }
        let Opened { len, trailer, compression, encoding, tail, root, mid_key, meta_index, .. } = opened;
        let Opened { info, bloom_type, bloom, delete_bloom, prefix_len, .. } = opened;
        let file_id = context.cache_file_id.or_else(|| context.cache.as_ref().map(|cache| cache.new_file_id()));
        let has_second = context.cache.as_ref().is_some_and(|cache| cache.second().is_some());
        let lasting_id = if has_second { lasting_id(path, len, &trailer, last_key.as_ref()) } else { 0 };
        let newest_ms = match context.hot_age {
            Some(HotAge { of_values: true, .. }) => tiering_values(&info).map_or(i64::MAX, |(_, greatest)| greatest),
            _ => time_range.map_or(0, |(_, newest)| newest),
        };
        let cold_from_ms = context.hot_age.map_or(i64::MAX, |age| newest_ms.saturating_add(age.ms));
        let source = Source {
            file,
            path: path.clone(),
            compression,
            dictionary: context.dictionary,
            tail,
            order: trailer.order,
            encoded: encoding != Encoding::None,
            blocks_end: trailer.load_on_open_offset,
            cache: context.cache,
            file_id: file_id.unwrap_or(0),
            lasting_id,
            cold_from_ms,
            in_memory: context.in_memory,
        };
        Ok(Arc::new(Reader {
            source,
            len,
            trailer,
            encoding,
            root,
            mid_key,
            meta_index,
            info,
            last_key,
            max_memstore_ts,
            time_range,
            delete_families,
            bloom_type,
            bloom,
            delete_bloom,
            prefix_len,
            half: context.half,
            override_seq_id: context.override_seq_id,
        }))
    }

    pub(crate) fn trailer(&self) -> &Trailer {
        &self.trailer
    }

    pub(crate) fn bloom(&self) -> Option<&Bloom> {
        self.bloom.as_ref()
    }

    pub(crate) fn delete_bloom(&self) -> Option<&Bloom> {
        self.delete_bloom.as_ref()
    }

    /// A scanner over the file (or the half of it that this reader shows), not yet positioned.
    pub fn scanner(self: &Arc<Self>, options: ScanOptions) -> Scanner {
        Scanner::new(self.clone(), options)
    }

    /// The file's path, for messages.
    pub fn path(&self) -> &FilePath {
        &self.source.path
    }

    /// All of file info, raw.
    pub fn file_info(&self) -> &std::collections::BTreeMap<Bytes, Bytes> {
        &self.info
    }

    /// Number of cells in the whole file.
    pub fn entry_count(&self) -> u64 {
        self.trailer.entry_count
    }

    /// On which machines the file's blocks are, of a half those of the half; nothing where there is no telling. Follows:
    /// `StoreFileInfo#computeHDFSBlocksDistribution`.
    pub fn block_hosts(&self) -> BlockHosts {
        let part = self.half.as_ref().map_or(FilePart::Whole, |half| match half.side {
            HalfSide::Top => FilePart::SecondHalf,
            HalfSide::Bottom => FilePart::FirstHalf,
        });
        self.source.file.block_hosts(part).unwrap_or_default()
    }

    /// The place that failed since the file was opened, if one did. Asks nobody.
    pub fn lost_with(&self) -> Option<String> {
        self.source.file.lost_with()
    }

    /// Bytes of the file that are in the second level of the cache, as they lie in it; none for a half of a file. Follows:
    /// `BucketCache#getRegionCachedInfo`.
    pub fn second_level_bytes(&self) -> u64 {
        let second = self.source.cache.as_ref().and_then(|cache| cache.second()).filter(|_| self.half.is_none());
        second.map_or(0, |second| second.bytes_of(self.source.lasting_id))
    }

    /// The place that has the file's bytes, where that is another than that of its name. Asks nobody.
    pub fn place(&self) -> Option<String> {
        self.source.file.place()
    }

    /// Bytes of the whole file.
    pub fn len_bytes(&self) -> u64 {
        self.len
    }

    /// Bytes of all blocks before compression.
    pub fn uncompressed_bytes(&self) -> u64 {
        self.trailer.uncompressed_bytes
    }

    /// Bytes of the whole data index before compression (all levels).
    pub fn index_bytes(&self) -> u64 {
        self.trailer.uncompressed_index_bytes
    }

    /// Levels of the data index, the root included.
    pub fn index_levels(&self) -> u32 {
        self.trailer.index_levels
    }

    /// Bytes of the Bloom chunks.
    pub fn bloom_bytes(&self) -> u64 {
        [&self.bloom, &self.delete_bloom].into_iter().flatten().map(|bloom| bloom.total_bytes).sum()
    }

    /// Keys in the general Bloom filter.
    pub fn bloom_key_count(&self) -> u64 {
        self.bloom.as_ref().map_or(0, |bloom| bloom.key_count)
    }

    /// Memory held by this reader outside the cache.
    pub fn heap_bytes(&self) -> usize {
        let info: usize = self.info.iter().map(|(k, v)| k.len() + v.len() + 2 * size_of::<Bytes>()).sum();
        let blooms: usize = [&self.bloom, &self.delete_bloom].into_iter().flatten().map(Bloom::heap_bytes).sum();
        size_of::<Reader>() + info + blooms + self.root.heap_bytes() + self.meta_index.heap_bytes()
    }

    fn long(&self, key: &[u8]) -> Option<i64> {
        file_info::long(&self.info, key).ok().flatten()
    }

    /// MAX_SEQ_ID_KEY; `None` in bulk-load output (then the file name may say it).
    pub fn max_seq_id(&self) -> Option<SeqId> {
        self.long(key::MAX_SEQ_ID).and_then(|id| u64::try_from(id).ok()).map(SeqId)
    }

    /// MAX_MEMSTORE_TS_KEY: highest sequence id kept with the cells; 0 when none is kept.
    pub fn max_memstore_ts(&self) -> u64 {
        self.max_memstore_ts
    }

    /// A key at or before the first cell shown (exactly the first cell's key when the whole file is shown). `None`: no cells.
    pub fn first_key(&self) -> Option<KeyRef<'_>> {
        let first = (self.root.len() > 0).then(|| self.root.key(0))?;
        match self.half_key(HalfSide::Top) {
            Some(split) if self.order().keys(first, split).is_lt() => Some(split),
            _ => Some(first),
        }
    }

    /// A key at or after the last cell shown (exactly the last cell's key when the whole file is shown). `None`: no cells.
    pub fn last_key(&self) -> Option<KeyRef<'_>> {
        let last = KeyRef::from_checked(self.last_key.as_ref().filter(|_| self.root.len() > 0)?);
        match self.half_key(HalfSide::Bottom) {
            Some(split) if self.order().keys(split, last).is_lt() => Some(split),
            _ => Some(last),
        }
    }

    /// The split key, when this reader shows `side` of it.
    pub(crate) fn half_key(&self, side: HalfSide) -> Option<KeyRef<'_>> {
        self.half.as_ref().filter(|half| half.side == side).map(|half| KeyRef::from_checked(&half.split_key))
    }

    /// The half this reader shows; `None`: the whole file.
    pub fn half(&self) -> Option<&Half> {
        self.half.as_ref()
    }

    /// The key near the middle of the file's blocks, where a region is split; `None` for an empty file and for halves.
    /// May read one index block. The key may be a made-up one between two cells.
    ///
    /// # Errors
    /// `Io` and `Corrupt` of that block.
    pub fn mid_key(&self) -> Result<Option<Bytes>> {
        if self.half.is_some() || self.root.len() == 0 {
            return Ok(None);
        }
        let Some(mid) = self.mid_key else {
            return Ok(Some(Bytes::copy_from_slice(self.root.raw_key(self.root.len() / 2))));
        };
        let leaf = self.source.index(mid.leaf, true, Fetch { residency: Residency::MayRead, keep: true })?;
        let entry = mid.entry as usize;
        if entry >= leaf.len() {
            let what = format!("the middle key is entry {entry} of {}", leaf.len());
            return Err(Error::corrupt(self.path(), mid.leaf.offset, what));
        }
        Ok(Some(Bytes::copy_from_slice(leaf.raw_key(entry))))
    }

    /// Keys of the whole file in order, the first at or before its first cell, and the weight of what lies between each and the next: the
    /// entries of the index's root, some dozens to some thousands, by the bytes of their blocks. Reads nothing.
    pub fn key_weights(&self) -> impl Iterator<Item = (KeyRef<'_>, u64)> {
        let end = |at: usize| self.root.block(at).offset + u64::from(self.root.block(at).len);
        let weight = move |at: usize| -> u64 {
            match self.index_levels() {
                0 | 1 => self.root.block(at).len.into(),
                // Leaves of the index lie behind the blocks that they are of.
                2 => end(at).saturating_sub(at.checked_sub(1).map_or(0, end)),
                // All blocks of the levels between lie at the file's end, and are about as full.
                _ => 1,
            }
        };
        (0..self.root.len()).map(move |at| (self.root.key(at), weight(at)))
    }

    /// Smallest and largest timestamp (TIMERANGE), both inclusive; `None` when not recorded or no cells.
    #[inline]
    pub fn time_range(&self) -> Option<(i64, i64)> {
        self.time_range
    }

    /// Least and greatest tiering value of its cells (CUSTOM_TIERING_TIME_RANGE); `None` when no compaction by such values made it.
    pub fn tiering_values(&self) -> Option<(i64, i64)> {
        tiering_values(&self.info)
    }

    /// EARLIEST_PUT_TS.
    pub fn earliest_put_ts(&self) -> Option<i64> {
        self.long(key::EARLIEST_PUT_TS)
    }

    /// hfile.CREATE_TIME_TS in milliseconds.
    pub fn create_time_ms(&self) -> Option<i64> {
        self.long(key::CREATE_TIME_TS)
    }

    /// BULKLOAD_TIMESTAMP in milliseconds: present in bulk-loaded files.
    pub fn bulk_load_time_ms(&self) -> Option<i64> {
        self.long(key::BULKLOAD_TIMESTAMP)
    }

    /// SKIP_RESET_SEQ_ID: cells of a bulk-loaded file keep their own sequence ids.
    pub fn skip_reset_seq_id(&self) -> bool {
        file_info::flag(&self.info, key::SKIP_RESET_SEQ_ID)
    }

    /// The sequence id that all cells get in place of their own.
    pub fn override_seq_id(&self) -> Option<SeqId> {
        self.override_seq_id
    }

    /// The highest sequence id that a cell is read with; 0 when none has one.
    pub fn highest_seq_id(&self) -> u64 {
        self.override_seq_id.map_or(self.max_memstore_ts, |id| id.0)
    }

    /// MAJOR_COMPACTION_KEY.
    pub fn is_major_compacted(&self) -> bool {
        file_info::flag(&self.info, key::MAJOR_COMPACTION)
    }

    /// EXCLUDE_FROM_MINOR_COMPACTION.
    pub fn exclude_from_minor(&self) -> bool {
        file_info::flag(&self.info, key::EXCLUDE_FROM_MINOR_COMPACTION)
    }

    /// STRIPE_START_KEY and STRIPE_END_KEY: the rows that the file is for, from the first on, before the second; an empty one is open.
    pub fn stripe(&self) -> Option<(&Bytes, &Bytes)> {
        self.info.get(key::STRIPE_START).zip(self.info.get(key::STRIPE_END))
    }

    /// BASALT_MORE_FOLLOW: it is of a flush into several files, and not the last of them.
    pub fn more_follow(&self) -> bool {
        file_info::flag(&self.info, key::MORE_FOLLOW)
    }

    /// DELETE_FAMILY_COUNT.
    #[inline]
    pub fn delete_family_count(&self) -> u64 {
        self.delete_families.unwrap_or(0)
    }

    /// Names of the files this one replaces (COMPACTION_EVENT_KEY).
    pub fn compacted_files(&self) -> Vec<String> {
        let tracker =
            self.info.get(key::COMPACTION_EVENT).and_then(proto::magic::decode::<proto::pb::CompactionEventTracker>);
        let names = tracker.and_then(|t| t.ok()).map(|t| t.compacted_store_file).unwrap_or_default();
        names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// Whether cells have a tags section.
    pub fn has_tags(&self) -> bool {
        self.source.tail.tags
    }

    /// Codec.
    pub fn compression(&self) -> Compression {
        self.source.compression
    }

    /// Encoding of data blocks.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Order of the cells.
    pub fn order(&self) -> Order {
        self.trailer.order
    }

    /// The file's number in the cache.
    pub fn cache_file_id(&self) -> u64 {
        self.source.file_id
    }

    /// The sequence id of a cell that is stored with `stored`.
    #[inline]
    pub(crate) fn seq_id(&self, stored: u64) -> u64 {
        match self.override_seq_id {
            Some(id) => id.0,
            // A compaction that found no reader needing them leaves all ids meaningless.
            None if self.max_memstore_ts == 0 => 0,
            None => stored,
        }
    }

    /// The payload of the meta block called `name`, if there is one. Reads it anew each time.
    ///
    /// # Errors
    /// `Io` and `Corrupt` of that block.
    pub fn meta_block(&self, name: &[u8]) -> Result<Option<Bytes>> {
        let Some(i) = (0..self.meta_index.len()).find(|i| self.meta_index.raw_key(*i) == name) else {
            return Ok(None);
        };
        let at = self.meta_index.block(i);
        match self.source.read(at, false, None)? {
            (crate::block::BlockType::Meta, payload) => Ok(Some(payload)),
            (other, _) => Err(Error::corrupt(self.path(), at.offset, format!("a {other:?} block is not a meta block"))),
        }
    }

    /// The general Bloom filter's type; `None` when the file has none.
    pub fn bloom_type(&self) -> BloomType {
        self.bloom_type
    }

    /// Whether the file has a general Bloom filter.
    pub fn has_bloom(&self) -> bool {
        self.bloom.is_some()
    }

    /// Whether the file may hold cells of `row` (ROW and ROWPREFIX filters; true for others).
    ///
    /// # Errors
    /// `WouldBlock` when a chunk is not cached and must not be read; `Io` and `Corrupt` of the chunk.
    pub fn may_contain_row(&self, row: &[u8], residency: Residency) -> Result<bool> {
        self.ask_row(row, residency, None)
    }

    fn ask_row(&self, row: &[u8], residency: Residency, last: Option<&mut LastChunk>) -> Result<bool> {
        match (&self.bloom, self.bloom_type) {
            (Some(bloom), BloomType::Row) => self.ask_general(bloom, row, residency, last),
            // The prefixes of rows in meta order are in no order.
            (Some(bloom), BloomType::RowPrefixFixedLength) if self.order() == Order::User => {
                self.ask_general(bloom, &row[..row.len().min(self.prefix_len)], residency, last)
            }
            (None, _) => {
                if let Some(cache) = &self.source.cache {
                    cache.blooms().missing();
                }
                Ok(true)
            }
            _ => Ok(true),
        }
    }

    /// Whether the file may hold cells of this column of `row`. A ROWCOL filter answers for exactly this column and not
    /// for family deletes: ask [`Reader::may_contain_delete_family`] as well. Other filters answer for the row.
    ///
    /// # Errors
    /// As [`Reader::may_contain_row`].
    pub fn may_contain_row_col(&self, row: &[u8], qualifier: &[u8], residency: Residency) -> Result<bool> {
        self.ask_row_col(row, qualifier, residency, None)
    }

    pub(crate) fn ask_row_col(
        &self,
        row: &[u8],
        qualifier: &[u8],
        residency: Residency,
        last: Option<&mut LastChunk>,
    ) -> Result<bool> {
        match (&self.bloom, self.bloom_type) {
            (Some(bloom), BloomType::RowCol) => {
                bloom::with_row_col_key(row, qualifier, |key| self.ask_general(bloom, key, residency, last))
            }
            _ => self.ask_row(row, residency, last),
        }
    }

    /// Whether the file may hold a DeleteFamily or DeleteFamilyVersion marker in `row`.
    ///
    /// # Errors
    /// As [`Reader::may_contain_row`].
    pub fn may_contain_delete_family(&self, row: &[u8], residency: Residency) -> Result<bool> {
        self.ask_delete_family(row, residency, None)
    }

    pub(crate) fn ask_delete_family(
        &self,
        row: &[u8],
        residency: Residency,
        last: Option<&mut LastChunk>,
    ) -> Result<bool> {
        if self.delete_families == Some(0) {
            return Ok(false);
        }
        match &self.delete_bloom {
            Some(bloom) => self.ask(bloom, row, residency, last),
            None => Ok(true),
        }
    }

    /// As [`Reader::ask`], and counts it.
    fn ask_general(
        &self,
        bloom: &Bloom,
        key: &[u8],
        residency: Residency,
        last: Option<&mut LastChunk>,
    ) -> Result<bool> {
        let may_contain = self.ask(bloom, key, residency, last)?;
        if let Some(cache) = &self.source.cache {
            cache.blooms().answered(may_contain);
        }
        Ok(may_contain)
    }

    fn ask(&self, bloom: &Bloom, key: &[u8], residency: Residency, last: Option<&mut LastChunk>) -> Result<bool> {
        let Some(chunk) = bloom.chunk_of(self.order(), key) else {
            return Ok(false);
        };
        let fetch = || self.source.bloom(chunk, Fetch { residency, keep: true });
        let Some(LastChunk(last)) = last else { return Ok(bloom.contains(key, &fetch()?)) };
        let bits = match last.take() {
            Some((offset, bits)) if offset == chunk.offset => bits,
            _ => fetch()?,
        };
        let (_, bits) = last.insert((chunk.offset, bits));
        Ok(bloom.contains(key, bits))
    }

    /// For a file that others have replaced: forgets its blocks in the cache, and asks the volume to do the same with its pages. The reader
    /// stays usable.
    pub fn retire(&self) {
        self.evict();
        self.source.file.forget();
    }

    /// Forgets the file's blocks in the cache; the reader stays usable.
    pub fn evict(&self) -> usize {
        self.source.cache.as_ref().map_or(0, |cache| cache.evict_file(self.source.file_id))
    }
}

/// A number that no other file has, in whatever process and wherever it lies: of its name, which is made at random, and of what is in it, for
/// a name that is not. Never 0.
fn lasting_id(path: &FilePath, len: u64, trailer: &Trailer, last_key: Option<&Bytes>) -> u128 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let half = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        (salt, path.name(), len, trailer.load_on_open_offset, trailer.entry_count).hash(&mut hasher);
        last_key.hash(&mut hasher);
        hasher.finish()
    };
    (u128::from(half(1)) << 64 | u128::from(half(2))).max(1)
}

fn time_range(info: &FileInfo) -> Option<(i64, i64)> {
    range(info, key::TIME_RANGE)
}

fn tiering_values(info: &FileInfo) -> Option<(i64, i64)> {
    range(info, key::CUSTOM_TIERING_TIME_RANGE)
}

fn range(info: &FileInfo, key: &[u8]) -> Option<(i64, i64)> {
    let (min, max) = info.get(key)?.split_first_chunk::<8>()?;
    Some((i64::from_be_bytes(*min), i64::from_be_bytes(max.try_into().ok()?)))
}
