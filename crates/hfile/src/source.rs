//! Where a reader's blocks come from: the cache, the read-ahead buffer of a scan, or the file.

use crate::Dictionary;
use crate::block::{self, BlockType};
use crate::block_reads;
use crate::cache::CachedBlock;
use crate::cursor::Damage;
use crate::data_block::DataBlock;
use crate::encoding::Tail;
use crate::index::{BlockAt, IndexBlock};
use crate::recorded_reads::{self, BlockFrom, BlockLook};
use crate::{BlockCache, Compression, Error, Residency, Result};
use bytes::{Bytes, BytesMut};
use cell::Order;
use fs::{FilePath, ReadAt};
use std::sync::Arc;

/// Largest single read of a scan that reads ahead. Each such scan may hold this much. What is read is looked at at once: more of it would leave the processor's
/// cache before (checking the sums of a megabyte took twice as long, a tenth of a compaction).
const READ_MAX: usize = 256 << 10;
/// How far ahead of the reads the volume is told what will be needed: as much as a read at first, twice as much after each so much that was read in sequence, up to
/// the second. A disk that is asked for more gives more: with one read of 256 KiB ahead it waits a part of the time.
const HINT_BYTES: u64 = READ_MAX as u64;
const HINT_BYTES_MAX: u64 = 1 << 20;
/// The operating system is told to forget so much at a time, from a multiple of it to another: of what it holds as a whole it keeps what stands out of a range.
const DROP_BYTES: u64 = 4 << 20;
/// And not what was read last: it has that in hand still, would wait for each processor to put it down, and look again.
const DROP_BEHIND_BYTES: u64 = 1 << 20;

/// The blocks of one file.
pub(crate) struct Source {
    pub file: Arc<dyn ReadAt>,
    pub path: FilePath,
    pub compression: Compression,
    pub dictionary: Option<Arc<Dictionary>>,
    pub tail: Tail,
    pub order: Order,
    pub encoded: bool,
    /// Levels of the index below the root have blocks up to here; so have data and Bloom chunks.
    pub blocks_end: u64,
    pub cache: Option<Arc<BlockCache>>,
    pub file_id: u64,
    /// The file's number among all files ever, for the second level of the cache; 0 where there is none.
    pub lasting_id: u128,
    /// From this time on (milliseconds) its blocks are not worth a place there.
    pub cold_from_ms: i64,
    pub in_memory: bool,
}

/// Nobody can find the blocks of a file again that is closed: they leave the cache.
impl Drop for Source {
    fn drop(&mut self) {
        if let Some(cache) = &self.cache {
            cache.forget_file(self.file_id);
        }
    }
}

/// How one block is to be got.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fetch {
    pub residency: Residency,
    /// Put the block into the cache when it was not there.
    pub keep: bool,
}

/// Bytes read ahead of a sequential scan.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    /// So much is asked for at a time.
    hint_bytes: u64,
    first_hint_bytes: u64,
    drop_behind: bool,
    /// Up to here the volume was told to forget what was read.
    dropped_to: u64,
    /// Up to here it was told what will be needed.
    hinted_to: u64,
    buffer: Bytes,
    start: u64,
    /// Where the last block asked for ended: a block that starts near it continues the scan.
    expected: u64,
    window: usize,
    /// Where the last block ends that a read from the block asked for has whole. 0: not known.
    whole_to: u64,
    /// Whether what is read goes to the second level of the cache as far as that has room.
    fills: bool,
}

impl Source {
    /// An error of damage at `offset`.
    pub fn corrupt(&self, offset: u64, damage: Damage) -> Error {
        Error::corrupt(&self.path, offset, damage.0)
    }

    fn cached(&self, at: BlockAt, wanted: BlockType, fetch: Fetch) -> Result<Option<CachedBlock>> {
        let look = |cache: &Arc<BlockCache>| cache.get(self.file_id, at.offset, wanted, fetch.keep);
        let found = self.cache.as_ref().and_then(look);
        match (&found, fetch.residency) {
            (None, Residency::CachedOnly) => Err(Error::WouldBlock),
            (None, Residency::MayRead) => Ok(None),
            (Some(_), _) => {
                block_reads::from_cache(at.len);
                self.looked(at, BlockFrom::Cache);
                Ok(found)
            }
        }
    }

    /// Whether the block at `at` is in the cache for good reason.
    pub fn is_wanted(&self, at: BlockAt) -> bool {
        self.cache.as_ref().is_some_and(|cache| cache.is_wanted(self.file_id, at.offset))
    }

    fn keep(&self, at: BlockAt, block: CachedBlock, fetch: Fetch) {
        if fetch.keep
            && let Some(cache) = &self.cache
        {
            cache.insert(self.file_id, at.offset, block, self.in_memory);
        }
    }

    /// The data block at `at`.
    pub fn data(&self, at: BlockAt, fetch: Fetch, ahead: Option<&mut ReadAhead>) -> Result<Arc<DataBlock>> {
        let wanted = if self.encoded { BlockType::EncodedData } else { BlockType::Data };
        match self.cached(at, wanted, fetch)? {
            Some(CachedBlock::Data(block)) => {
                block_reads::scanned(block.len_bytes());
                return Ok(block);
            }
            Some(_) => return Err(self.corrupt(at.offset, "the index names a block of another kind".into())),
            None => {}
        }
        // What is passed through once needs no table for searches.
        let order = if ahead.is_some() && !fetch.keep { None } else { Some(self.order) };
        let (block_type, payload) = self.read(at, fetch.keep, ahead)?;
        self.check_type(at, block_type, wanted)?;
        let block =
            DataBlock::decode(payload, self.encoded, self.tail, order).map_err(|d| self.corrupt(at.offset, d))?;
        block_reads::scanned(block.len_bytes());
        let block = Arc::new(block);
        self.keep(at, CachedBlock::Data(block.clone()), fetch);
        Ok(block)
    }

    /// The leaf or intermediate index block at `at`.
    pub fn index(&self, at: BlockAt, is_leaf: bool, fetch: Fetch) -> Result<Arc<IndexBlock>> {
        let wanted = if is_leaf { BlockType::LeafIndex } else { BlockType::IntermediateIndex };
        match self.cached(at, wanted, fetch)? {
            Some(CachedBlock::Index(block)) => return Ok(block),
            Some(_) => return Err(self.corrupt(at.offset, "the index names a block of another kind".into())),
            None => {}
        }
        let (block_type, payload) = self.read(at, fetch.keep, None)?;
        self.check_type(at, block_type, wanted)?;
        let block = IndexBlock::parse_non_root(&payload)
            .and_then(|index| index.with_flat_keys(self.order))
            .map_err(|d| self.corrupt(at.offset, d))?;
        let block = Arc::new(block);
        self.keep(at, CachedBlock::Index(block.clone()), fetch);
        Ok(block)
    }

    /// The bits of the Bloom chunk at `at`.
    pub fn bloom(&self, at: BlockAt, fetch: Fetch) -> Result<Bytes> {
        match self.cached(at, BlockType::BloomChunk, fetch)? {
            Some(CachedBlock::Bloom(bits)) => return Ok(bits),
            Some(_) => return Err(self.corrupt(at.offset, "the Bloom filter names a block of another kind".into())),
            None => {}
        }
        let (block_type, payload) = self.read(at, fetch.keep, None)?;
        self.check_type(at, block_type, BlockType::BloomChunk)?;
        if payload.is_empty() {
            return Err(self.corrupt(at.offset, "a Bloom chunk has no bits".into()));
        }
        self.keep(at, CachedBlock::Bloom(payload.clone()), fetch);
        Ok(payload)
    }

    fn check_type(&self, at: BlockAt, found: BlockType, wanted: BlockType) -> Result<()> {
        if found == wanted {
            return Ok(());
        }
        Err(self.corrupt(at.offset, Damage(format!("a {found:?} block lies where a {wanted:?} block should"))))
    }

    /// Reads and unpacks the block at `at`, whose place was said by an index. `keep`: it is to stay in the cache, and the second level may have
    /// it. `ahead`: through what was read ahead.
    pub fn read(&self, at: BlockAt, keep: bool, mut ahead: Option<&mut ReadAhead>) -> Result<(BlockType, Bytes)> {
        let len = at.len as usize;
        if len < block::HEADER_LEN || at.offset.checked_add(u64::from(at.len)).is_none_or(|end| end > self.blocks_end) {
            let what = format!("an index names a block of {len} bytes that is not within the file");
            return Err(self.corrupt(at.offset, Damage(what)));
        }
        let second = self.cache.as_ref().and_then(|cache| cache.second()).filter(|_| keep && self.lasting_id != 0);
        let key = (self.lasting_id, at.offset);
        let is_cold = second.is_some_and(|second| second.is_cold(self.cold_from_ms));
        let goes_on = ahead.as_ref().is_some_and(|ahead| ahead.goes_on(at));
        if let Some(second) = second
            && !ahead.as_ref().is_some_and(|ahead| ahead.holds(at))
            && let Some(raw) = second.get(key, at.len, is_cold || goes_on)
        {
            if let Some(ahead) = ahead {
                ahead.passed(at);
            }
            block_reads::from_file(len);
            self.looked(at, BlockFrom::SecondLevel);
            return self.unpack(at, raw);
        }
        let raw = match ahead.as_mut() {
            Some(ahead) => ahead.read(self, at, keep)?,
            None => self.read_exact(at)?,
        };
        match (second, ahead.as_ref().is_some_and(|ahead| ahead.fills)) {
            (None, _) => {}
            (Some(_), _) if is_cold => {}
            (Some(second), true) => second.fill(key, &raw),
            (Some(second), false) if !goes_on => second.offer(key, &raw),
            (Some(_), false) => {}
        }
        block_reads::from_file(len);
        self.looked(at, BlockFrom::File);
        if let Some(cache) = &self.cache {
            cache.read_from_file(len as u64);
        }
        self.unpack(at, raw)
    }

    /// Tells whoever records what this thread looks at.
    #[inline]
    fn looked(&self, at: BlockAt, from: BlockFrom) {
        recorded_reads::looked(|| {
            let clock = self.cache.as_ref().and_then(|cache| cache.clock());
            let at_us = clock.map_or(0, |clock| clock.monotonic_us());
            BlockLook { path: self.path.clone(), offset: at.offset, bytes: at.len, from, at_us }
        });
    }

    fn unpack(&self, at: BlockAt, raw: Bytes) -> Result<(BlockType, Bytes)> {
        let verify = self.cache.as_ref().is_none_or(|cache| cache.verifies_checksums());
        block::unpack_verified(raw, self.compression, self.dictionary.as_ref(), verify).map_err(|damage| {
            self.cache.iter().for_each(|cache| cache.file_reads().found_damage());
            self.corrupt(at.offset, damage)
        })
    }

    fn read_exact(&self, at: BlockAt) -> Result<Bytes> {
        let mut raw = vec![0; at.len as usize];
        self.read_file(&mut raw, at.offset, false)?;
        Ok(Bytes::from(raw))
    }

    /// Reads, and notes how long that took.
    fn read_file(&self, buf: &mut [u8], offset: u64, is_sequential: bool) -> Result<()> {
        let timed = self.cache.as_ref().and_then(|cache| Some((cache, cache.clock()?)));
        let begun_us = timed.map(|(_, clock)| clock.monotonic_us());
        if is_sequential {
            self.file.read_sequential_at(buf, offset)?
        } else {
            self.file.read_exact_at(buf, offset)?
        }
        if let (Some((cache, clock)), Some(begun_us)) = (timed, begun_us) {
            let took_us = clock.monotonic_us().saturating_sub(begun_us);
            block_reads::file_took(took_us);
            cache.file_reads().took(took_us, is_sequential);
        }
        Ok(())
    }
}

impl ReadAhead {
    pub fn new(compaction: bool, drop_behind: bool) -> ReadAhead {
        let first_hint_bytes = if compaction { HINT_BYTES_MAX } else { HINT_BYTES };
        ReadAhead {
            hint_bytes: first_hint_bytes,
            first_hint_bytes,
            drop_behind,
            dropped_to: 0,
            hinted_to: 0,
            buffer: Bytes::new(),
            start: 0,
            expected: 0,
            window: 0,
            whole_to: 0,
            fills: false,
        }
    }

    /// The same for who reads a file into the cache as a whole.
    pub fn filling(self) -> ReadAhead {
        ReadAhead { fills: true, ..self }
    }

    /// Whether the block at `at` was read already.
    #[inline]
    pub fn holds(&self, at: BlockAt) -> bool {
        let end = self.start.saturating_add(self.buffer.len() as u64);
        at.offset >= self.start && at.offset.saturating_add(u64::from(at.len)) <= end
    }

    /// Whether the block at `at` continues the sequence. Index and Bloom blocks lie between data blocks: a small gap does not end it.
    fn goes_on(&self, at: BlockAt) -> bool {
        at.offset >= self.expected && at.offset - self.expected <= self.first_hint_bytes
    }

    /// The block at `at` came from elsewhere; the next continues the sequence.
    fn passed(&mut self, at: BlockAt) {
        self.expected = at.offset + u64::from(at.len);
    }

    /// Before the block that `blocks` begin with is asked for: how much to read for as many of them to be whole as may be. What is read of another is to be moved.
    pub fn expect(&mut self, blocks: impl Iterator<Item = BlockAt>) {
        let (mut start, mut end) = (None, 0);
        for at in blocks {
            let start = *start.get_or_insert(at.offset);
            let next = at.offset.saturating_add(u64::from(at.len));
            if next < end || next.saturating_sub(start) > READ_MAX as u64 {
                break;
            }
            end = next;
        }
        self.whole_to = end;
    }

    /// Gives back the memory.
    pub fn clear(&mut self) {
        self.buffer = Bytes::new();
        self.window = 0;
    }

    /// `len` bytes of the buffer: shared with it, or a copy where the block is kept and the buffer must not be.
    fn share(&self, skip: usize, len: usize, keep: bool) -> Bytes {
        let slice = self.buffer.slice(skip..skip + len);
        if keep { Bytes::copy_from_slice(&slice) } else { slice }
    }

    fn read(&mut self, source: &Source, at: BlockAt, keep: bool) -> Result<Bytes> {
        let len = at.len as usize;
        let sequential = self.goes_on(at);
        self.passed(at);
        let skip = usize::try_from(at.offset.wrapping_sub(self.start)).unwrap_or(usize::MAX);
        if skip < self.buffer.len() && self.buffer.len() - skip >= len {
            return Ok(self.share(skip, len, keep));
        }
        let most = READ_MAX.max(len);
        self.window = if sequential { (self.window * 2).clamp((2 * len).min(most), most) } else { len };
        if !sequential {
            (self.dropped_to, self.hinted_to) = (at.offset, at.offset);
            self.hint_bytes = self.first_hint_bytes;
            self.buffer = Bytes::new();
            return source.read_exact(at);
        }
        let mut window = (self.window as u64).min(source.blocks_end - at.offset) as usize;
        let whole = self.whole_to.saturating_sub(at.offset);
        if self.window == most && whole >= u64::from(at.len) {
            window = window.min(whole as usize);
        }
        // Of who reads past the system's memory nothing is to stay there.
        let drop_behind = self.drop_behind || source.cache.as_ref().is_some_and(|cache| cache.reads_directly());
        let (from, to) = (self.dropped_to / DROP_BYTES, at.offset.saturating_sub(DROP_BEHIND_BYTES) / DROP_BYTES);
        if drop_behind && to > from {
            source.file.forget_range(from * DROP_BYTES, (to - from) * DROP_BYTES);
            self.dropped_to = to * DROP_BYTES;
        }
        self.refill(source, at.offset, skip, window)?;
        let (end, hinted) = (at.offset + window as u64, self.hinted_to);
        // In good time: the last read but one before the end of what was asked for, or half of it.
        if end + (self.window as u64).max(self.hint_bytes / 2) > hinted || hinted < end {
            let from = hinted.max(end);
            let next = self.hint_bytes.min(source.blocks_end.saturating_sub(from));
            if next > 0 {
                source.file.will_need(from, next);
                self.hinted_to = from + next;
                self.hint_bytes = (2 * self.hint_bytes).min(HINT_BYTES_MAX);
            }
        }
        Ok(self.share(0, len, keep))
    }

    /// Holds `window` bytes from `offset` on. From `skip` on the buffer has the first of them: they are moved, not read again.
    fn refill(&mut self, source: &Source, offset: u64, skip: usize, window: usize) -> Result<()> {
        let had = self.buffer.len();
        let kept = had.saturating_sub(skip).min(window);
        // The memory of the window before, unless somebody holds a block of it.
        let mut memory = match std::mem::take(&mut self.buffer).try_into_mut() {
            Ok(mut memory) if memory.capacity() >= window => {
                memory.copy_within(skip.min(had)..skip.min(had) + kept, 0);
                memory.resize(window, 0);
                memory
            }
            held => {
                let mut memory = BytesMut::zeroed(window);
                if kept > 0 {
                    let held = held.as_ref().map_or_else(|shared| &shared[..], |own| &own[..]);
                    memory[..kept].copy_from_slice(&held[skip..skip + kept]);
                }
                memory
            }
        };
        source.read_file(&mut memory[kept..], offset + kept as u64, true)?;
        self.buffer = memory.freeze();
        self.start = offset;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    /// A file of a pattern, which remembers what it was told to forget, and that it would be needed.
    #[derive(Default)]
    struct Pattern {
        forgotten: Mutex<Vec<(u64, u64)>>,
        needed: Mutex<Vec<(u64, u64)>>,
    }

    const FILE_LEN: u64 = 20 << 20;
    const BLOCK_LEN: u32 = 70_000;

    fn pattern(at: u64) -> u8 {
        (at ^ (at >> 8) ^ (at >> 16)) as u8
    }

    impl ReadAt for Pattern {
        fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> fs::Result<()> {
            buf.iter_mut().zip(offset..).for_each(|(byte, at)| *byte = pattern(at));
            Ok(())
        }
        fn len(&self) -> fs::Result<u64> {
            Ok(FILE_LEN)
        }
        fn hints(&self) -> Option<&dyn fs::ReadHints> {
            Some(self)
        }
    }

    impl fs::ReadHints for Pattern {
        fn forget_range(&self, offset: u64, len: u64) {
            self.forgotten.lock().push((offset, offset + len));
        }
        fn will_need(&self, offset: u64, len: u64) {
            self.needed.lock().push((offset, offset + len));
        }
    }

    fn blocks() -> impl Iterator<Item = BlockAt> {
        (0..FILE_LEN / u64::from(BLOCK_LEN)).map(|n| BlockAt { offset: n * u64::from(BLOCK_LEN), len: BLOCK_LEN })
    }

    fn source(file: &Arc<Pattern>) -> Source {
        Source {
            file: file.clone(),
            path: FilePath::new("pattern"),
            compression: Compression::None,
            dictionary: None,
            tail: Tail { tags: false, tags_compressed: false, mvcc: false },
            order: Order::User,
            encoded: false,
            blocks_end: FILE_LEN,
            cache: None,
            file_id: 0,
            lasting_id: 0,
            cold_from_ms: i64::MAX,
            in_memory: false,
        }
    }

    #[test]
    fn what_was_read_ahead_is_forgotten_behind_the_scan_and_nothing_else() {
        for drop_behind in [true, false] {
            let file = Arc::new(Pattern::default());
            let (source, mut ahead) = (source(&file), ReadAhead::new(true, drop_behind));
            let mut last = 0;
            for at in blocks() {
                ahead.read(&source, at, false).expect("no fault");
                assert!(file.forgotten.lock().iter().all(|(_, end)| *end <= at.offset), "before {}", at.offset);
                last = at.offset;
            }
            let forgotten = file.forgotten.lock();
            if !drop_behind {
                assert_eq!(*forgotten, []);
                continue;
            }
            let first = forgotten.first().expect("some").0;
            assert!(first <= u64::from(BLOCK_LEN), "all is forgotten, from the beginning: {first}");
            assert!(
                forgotten.len() >= 3
                    && forgotten.windows(2).all(|pair| pair[1].0 == pair[0].1 && pair[1].1 > pair[0].1),
                "{forgotten:?}"
            );
            let end = forgotten.last().expect("some").1;
            assert!(
                last - end <= DROP_BYTES + DROP_BEHIND_BYTES + READ_MAX as u64,
                "all but the last piece: {end} of {last}"
            );
        }
    }

    #[test]
    fn a_scan_asks_further_ahead_the_longer_it_goes_on_and_begins_anew_elsewhere() {
        let file = Arc::new(Pattern::default());
        let (source, mut ahead) = (source(&file), ReadAhead::new(false, false));
        for at in blocks() {
            ahead.read(&source, at, false).expect("no fault");
        }
        let needed = std::mem::take(&mut *file.needed.lock());
        assert!(needed.windows(2).all(|pair| pair[1].0 == pair[0].1), "each piece once, none left out: {needed:?}");
        let lens: Vec<u64> = needed.iter().map(|(from, to)| to - from).collect();
        assert_eq!(lens[..4], [HINT_BYTES, 2 * HINT_BYTES, 4 * HINT_BYTES, 4 * HINT_BYTES]);
        assert_eq!(needed.last().expect("some").1, FILE_LEN);
        for at in blocks().take(8) {
            ahead.read(&source, at, false).expect("no fault");
        }
        let again = file.needed.lock().first().map(|(from, to)| to - from);
        assert_eq!(again, Some(HINT_BYTES), "a short scan elsewhere asks for little");
    }

    #[test]
    fn a_block_that_somebody_holds_keeps_its_bytes_while_the_memory_of_others_is_used_again() {
        let file = Arc::new(Pattern::default());
        let (source, mut ahead) = (source(&file), ReadAhead::new(true, false));
        let mut held = Vec::new();
        let mut memories = std::collections::BTreeSet::new();
        for (n, at) in blocks().enumerate() {
            let block = ahead.read(&source, at, n % 40 == 7).expect("no fault");
            assert!(block.iter().zip(at.offset..).all(|(byte, at)| *byte == pattern(at)), "block {n}");
            memories.insert(ahead.buffer.as_ptr() as usize);
            if n == 50 {
                held.push((at.offset, block));
            }
        }
        for (offset, block) in held {
            assert!(block.iter().zip(offset..).all(|(byte, at)| *byte == pattern(at)), "the block at {offset}");
        }
        // Windows grow over a few sizes, and one is held: the other windows of full size share a memory.
        assert!(memories.len() <= 8, "{} memories", memories.len());
    }
}
