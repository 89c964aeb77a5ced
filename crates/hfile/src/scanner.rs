//! Moving through a file's cells. Follows: `HFileReaderImpl.HFileScannerImpl`, `HalfStoreFileReader`.

use crate::data_block::{CellAt, DataBlock};
use crate::index::{BlockAt, IndexBlock};
use crate::source::{Fetch, ReadAhead};
use crate::{Error, HalfSide, Reader, Result};
use base::SeqId;
use bytes::Bytes;
use cell::{CellRef, KeyRef, Order};
use std::sync::Arc;

/// Whether a block that is not in the cache may be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Residency {
    /// A miss is [`crate::Error::WouldBlock`].
    CachedOnly,
    /// A miss reads the volume.
    #[default]
    MayRead,
}

/// How a scanner reads.
#[derive(Clone, Copy, Debug)]
pub struct ScanOptions {
    /// Put data blocks read into the cache (they are looked up there in any case; index blocks are always put there).
    pub cache_blocks: bool,
    /// Read single blocks; else read ahead, more and more as the scan goes on.
    pub pread: bool,
    /// What happens on a miss.
    pub residency: Residency,
    /// For a compaction: reads ahead, puts nothing into the cache.
    pub compaction: bool,
    /// The operating system may forget what was read ahead once the scan is past it.
    pub drop_behind: bool,
}

impl Default for ScanOptions {
    fn default() -> Self {
        let residency = Residency::MayRead;
        ScanOptions { cache_blocks: true, pread: true, residency, compaction: false, drop_behind: false }
    }
}

/// A position in a file. After an error the scanner is unpositioned and may be used again with a seek.
#[derive(Debug)]
pub struct Scanner {
    reader: Arc<Reader>,
    options: ScanOptions,
    /// The current block's entry in the root index.
    root_entry: usize,
    /// The levels below the root: the block and the entry in it; the last one's entry is the data block's.
    lower: Vec<(Arc<IndexBlock>, usize)>,
    /// The current block, while there is one.
    block: Option<Arc<DataBlock>>,
    /// The current cell; its sequence id as shown.
    at: Option<CellAt>,
    /// For a compaction: whether readers want the current block in the cache.
    is_wanted: bool,
    /// Cells of this block may lie beyond the half that is shown.
    check_end: bool,
    ahead: ReadAhead,
}

/// Looks ahead from a [`Scanner`]'s position, within its block: moving costs no call, and the cells that were passed stay
/// readable. The scanner moves only with [`BlockRun::commit`].
#[derive(Debug)]
pub struct BlockRun<'a> {
    reader: &'a Reader,
    block: &'a DataBlock,
    here: CellAt,
    position: &'a mut CellAt,
}

impl<'a> BlockRun<'a> {
    /// The cell here.
    #[inline]
    pub fn cell(&self) -> CellRef<'a> {
        self.block.cell(self.here).with_seq_id(SeqId(self.here.seq_id))
    }

    /// One cell on; `None`, and nothing is changed, when that is not in the block.
    #[inline]
    pub fn step(&mut self) -> Option<CellRef<'a>> {
        let mut next = self.block.after(self.here)?;
        next.seq_id = self.reader.seq_id(next.seq_id);
        self.block.prefetch_beyond(next);
        self.here = next;
        Some(self.cell())
    }

    /// The cells after this one are likely to be copied soon.
    #[inline]
    pub fn expect_next(&self) {
        self.block.prefetch_whole_beyond(self.here);
    }

    /// The scanner stands here from now on.
    #[inline]
    pub fn commit(&mut self) {
        *self.position = self.here;
    }
}

impl Scanner {
    pub(crate) fn new(reader: Arc<Reader>, options: ScanOptions) -> Scanner {
        let lower = Vec::with_capacity(reader.index_levels() as usize - 1);
        Scanner {
            reader,
            options,
            root_entry: 0,
            lower,
            block: None,
            at: None,
            is_wanted: false,
            check_end: false,
            ahead: ReadAhead::new(options.compaction, options.drop_behind),
        }
    }

    /// The file.
    pub fn reader(&self) -> &Arc<Reader> {
        &self.reader
    }

    /// The cells from the position to the end of its block, to be looked at all at once; `None` without a position, or where
    /// cells of the block lie beyond the half that is shown.
    #[inline]
    pub fn run(&mut self) -> Option<BlockRun<'_>> {
        match (&self.block, &mut self.at) {
            (Some(block), Some(at)) if !self.check_end => {
                Some(BlockRun { reader: &self.reader, block, here: *at, position: at })
            }
            _ => None,
        }
    }

    /// Changes what happens on a miss, from the next call on.
    pub fn set_residency(&mut self, residency: Residency) {
        self.options.residency = residency;
    }

    /// Switches between single-block reads and read-ahead, from the next block on.
    pub fn set_pread(&mut self, pread: bool) {
        self.options.pread = pread;
    }

    /// To the first cell; false when there is none.
    ///
    /// # Errors
    /// `Io`, `Corrupt`, `WouldBlock` of the blocks on the way; so for every other move.
    pub fn seek_to_first(&mut self) -> Result<bool> {
        let reader = self.reader.clone();
        if let Some(split) = reader.half_key(HalfSide::Top) {
            return self.seek(split);
        }
        self.at = None;
        if reader.root.len() == 0 {
            return Ok(false);
        }
        self.root_entry = 0;
        self.descend(&reader, |_| Some(0))?;
        let first = self.load(&reader)?.first();
        Ok(self.land(&reader, Some(first)))
    }

    /// To the first cell at or after `key` (sequence ids are not looked at); false, and unpositioned, when there is none.
    pub fn seek(&mut self, key: KeyRef<'_>) -> Result<bool> {
        let reader = self.reader.clone();
        let key = match reader.half_key(HalfSide::Top) {
            Some(split) if reader.order().keys(key, split).is_lt() => split,
            _ => key,
        };
        self.at = None;
        if reader.root.len() == 0
            || reader.half_key(HalfSide::Bottom).is_some_and(|s| reader.order().keys(key, s).is_ge())
        {
            return Ok(false);
        }
        let order = reader.order();
        self.root_entry = reader.root.find(order, key);
        self.descend(&reader, |index| Some(index.find(order, key)))?;
        let found = self.load(&reader)?.seek(order, key);
        if found.is_none() {
            return self.next_block(&reader);
        }
        Ok(self.land(&reader, found))
    }

    /// As [`Scanner::seek`] for a `key` at or after the current cell; stays in the block when the key is there. Never moves back.
    /// Unpositioned and after the end: false.
    pub fn reseek(&mut self, key: KeyRef<'_>) -> Result<bool> {
        let (Some(at), Some(block)) = (self.at, &self.block) else {
            return Ok(false);
        };
        let order = self.reader.order();
        if self.next_indexed_key().is_some_and(|next| order.keys(next, key).is_lt()) {
            return if order.keys(block.key(at), key).is_ge() { Ok(true) } else { self.seek(key) };
        }
        let found = block.seek_from(order, key, at);
        let reader = self.reader.clone();
        if found.is_none() {
            return self.next_block(&reader);
        }
        Ok(self.land(&reader, found))
    }

    /// To the last cell before `key`; false, and unpositioned, when there is none.
    pub fn seek_before(&mut self, key: KeyRef<'_>) -> Result<bool> {
        let reader = self.reader.clone();
        let order = reader.order();
        let key = match reader.half_key(HalfSide::Bottom) {
            Some(split) if order.keys(split, key).is_lt() => split,
            _ => key,
        };
        self.at = None;
        let Some(entry) = reader.root.find_before(order, key) else {
            return Ok(false);
        };
        self.root_entry = entry;
        // A block found below an entry that is before the key has such an entry itself: at least its first.
        self.descend(&reader, |index| Some(index.find_before(order, key).unwrap_or(0)))?;
        let found = match self.load(&reader)?.seek_before(order, key) {
            // The entry was a made-up key: the block begins at or after the key, and the cell ends the block before.
            None if !self.step_back(&reader)? => None,
            None => {
                let block = self.load(&reader)?;
                Some(block.last()).filter(|last| order.keys(block.key(*last), key).is_lt())
            }
            found => found,
        };
        if let (Some(found), Some(split), Some(block)) = (found, reader.half_key(HalfSide::Top), &self.block)
            && order.keys(block.key(found), split).is_lt()
        {
            return Ok(false);
        }
        Ok(self.land(&reader, found))
    }

    /// To the next cell; false, and unpositioned, at the end.
    #[allow(clippy::should_implement_trait, reason = "an iterator cannot lend its items or fail")]
    #[inline]
    pub fn next(&mut self) -> Result<bool> {
        let (Some(at), Some(block)) = (self.at, &self.block) else {
            return Ok(false);
        };
        match block.after(at) {
            Some(mut next) if !self.check_end => {
                next.seq_id = self.reader.seq_id(next.seq_id);
                self.at = Some(next);
                block.prefetch_after(next);
                Ok(true)
            }
            found => self.next_slowly(found),
        }
    }

    #[cold]
    fn next_slowly(&mut self, found: Option<CellAt>) -> Result<bool> {
        let reader = self.reader.clone();
        if found.is_some() { Ok(self.land(&reader, found)) } else { self.next_block(&reader) }
    }

    /// Whether the scanner is at a cell.
    #[inline]
    pub fn is_positioned(&self) -> bool {
        self.at.is_some()
    }

    /// The cell at the position.
    #[inline]
    pub fn current(&self) -> Option<CellRef<'_>> {
        match (&self.block, self.at) {
            (Some(block), Some(at)) => Some(block.cell(at).with_seq_id(SeqId(at.seq_id))),
            _ => None,
        }
    }

    /// For a compaction: whether the current block was asked for again and again while it was in the cache.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// The flat key at the position.
    #[inline]
    pub fn current_key(&self) -> Option<KeyRef<'_>> {
        match (&self.block, self.at) {
            (Some(block), Some(at)) => Some(block.key(at)),
            _ => None,
        }
    }

    /// The cell's KeyValue bytes, shared with the cached block: copies nothing, holds the block in memory.
    pub fn current_shared(&self) -> Option<Bytes> {
        Some(self.block.as_ref()?.shared(self.at?))
    }

    /// The first key of the next block (or a key between): a cell before it is in the current block. `None`: last block.
    /// Reads nothing. Follows: `HFileScanner#getNextIndexedKey`.
    #[inline]
    pub fn next_indexed_key(&self) -> Option<KeyRef<'_>> {
        self.at?;
        for (index, entry) in self.lower.iter().rev() {
            if entry + 1 < index.len() {
                return Some(index.key(entry + 1));
            }
        }
        let root = &self.reader.root;
        (self.root_entry + 1 < root.len()).then(|| root.key(self.root_entry + 1))
    }

    /// Whether every level of the index leads to the current block, which begins with `key` behind a block that ends with `before`. Reads
    /// nothing.
    pub(crate) fn is_indexed(&self, before: Option<KeyRef<'_>>, key: KeyRef<'_>) -> bool {
        let order = self.reader.order();
        let root: (&IndexBlock, usize) = (&self.reader.root, self.root_entry);
        let lower = self.lower.iter().map(|(index, entry)| (&**index, *entry));
        // From the lowest level up: as long as entries are the first of theirs, the one above is of this block alone, too.
        let (mut is_own, mut levels) = (true, std::iter::once(root).chain(lower).collect::<Vec<_>>());
        levels.reverse();
        levels.into_iter().all(|(index, entry)| {
            let here = index.key(entry);
            let is_behind = order.keys(here, key).is_le();
            let is_before_next = entry + 1 >= index.len() || order.keys(key, index.key(entry + 1)).is_le();
            let hides_none = !is_own || before.is_none_or(|before| order.keys(before, here).is_le());
            is_own &= entry == 0;
            is_behind && is_before_next && hides_none
        })
    }

    /// Stands at `found` in the current block, unless that lies beyond the half that is shown.
    fn land(&mut self, reader: &Reader, found: Option<CellAt>) -> bool {
        self.at = match (found, &self.block) {
            (Some(mut at), Some(block)) => {
                at.seq_id = reader.seq_id(at.seq_id);
                let beyond = |split| reader.order().keys(block.key(at), split).is_ge();
                let end = reader.half_key(HalfSide::Bottom).filter(|_| self.check_end);
                (!end.is_some_and(beyond)).then_some(at)
            }
            _ => None,
        };
        self.at.is_some()
    }

    /// To the first cell of the next block.
    fn next_block(&mut self, reader: &Reader) -> Result<bool> {
        self.at = None;
        if !self.step(reader)? {
            // At the end nothing is worth holding in memory.
            self.block = None;
            self.ahead.clear();
            return Ok(false);
        }
        let order = reader.order();
        // The other half of what the writer asserts: from one block to the next cells grow, and the index' key lies between. A file that is
        // not sorted would hide cells from every search. The block before is let go first: its memory is used again.
        let key = self.pointed_key(reader);
        let is_after = self.block.as_ref().is_none_or(|before| order.keys(before.key(before.last()), key).is_le());
        let first = self.load(reader)?.first();
        let first_key = self.block.as_ref().map(|block| block.key(first));
        let is_before = first_key.is_none_or(|first| order.keys(self.pointed_key(reader), first).is_le());
        if !is_after || !is_before {
            let what = "its cells are not in order with the index and the block before";
            return Err(Error::corrupt(reader.path(), self.pointed_at(reader).offset, what));
        }
        Ok(self.land(reader, Some(first)))
    }

    /// The index' key of the block that the known levels point at.
    fn pointed_key<'a>(&'a self, reader: &'a Reader) -> KeyRef<'a> {
        match self.lower.last() {
            Some((index, entry)) => index.key(*entry),
            None => reader.root.key(self.root_entry),
        }
    }

    fn fetch(&self) -> Fetch {
        Fetch { residency: self.options.residency, keep: self.options.cache_blocks && !self.options.compaction }
    }

    fn index_block(&self, reader: &Reader, at: BlockAt, level: usize) -> Result<Arc<IndexBlock>> {
        let is_leaf = level + 2 == reader.index_levels() as usize;
        reader.source.index(at, is_leaf, Fetch { residency: self.options.residency, keep: !self.options.compaction })
    }

    /// Where the lowest known level points.
    fn pointed_at(&self, reader: &Reader) -> BlockAt {
        match self.lower.last() {
            Some((index, entry)) => index.block(*entry),
            None => reader.root.block(self.root_entry),
        }
    }

    /// From the known levels down to the leaf, choosing an entry in each block.
    fn descend(&mut self, reader: &Reader, choose: impl Fn(&IndexBlock) -> Option<usize>) -> Result<()> {
        self.lower.clear();
        self.descend_further(reader, choose)
    }

    fn descend_further(&mut self, reader: &Reader, choose: impl Fn(&IndexBlock) -> Option<usize>) -> Result<()> {
        while self.lower.len() + 1 < reader.index_levels() as usize {
            let index = self.index_block(reader, self.pointed_at(reader), self.lower.len())?;
            let entry = choose(&index).unwrap_or(0);
            self.lower.push((index, entry));
        }
        Ok(())
    }

    /// To the next data block's entry; false after the last.
    fn step(&mut self, reader: &Reader) -> Result<bool> {
        loop {
            match self.lower.last_mut() {
                Some((index, entry)) if *entry + 1 < index.len() => *entry += 1,
                Some(_) => {
                    self.lower.pop();
                    continue;
                }
                None if self.root_entry + 1 < reader.root.len() => self.root_entry += 1,
                None => return Ok(false),
            }
            self.descend_further(reader, |_| Some(0))?;
            return Ok(true);
        }
    }

    /// To the previous data block's entry; false before the first.
    fn step_back(&mut self, reader: &Reader) -> Result<bool> {
        loop {
            match self.lower.last_mut() {
                Some((_, entry)) if *entry > 0 => *entry -= 1,
                Some(_) => {
                    self.lower.pop();
                    continue;
                }
                None if self.root_entry > 0 => self.root_entry -= 1,
                None => return Ok(false),
            }
            self.descend_further(reader, |index| index.len().checked_sub(1))?;
            return Ok(true);
        }
    }

    /// Loads the data block that the index levels point at.
    fn load(&mut self, reader: &Reader) -> Result<&DataBlock> {
        let at = self.pointed_at(reader);
        let fetch = self.fetch();
        let reads_ahead = !self.options.pread || self.options.compaction;
        // What was read ahead can be written over when no block holds it any more.
        self.block = None;
        self.is_wanted = self.options.compaction && reader.source.is_wanted(at);
        if reads_ahead && !self.ahead.holds(at) {
            let (index, entry) = match self.lower.last() {
                Some((index, entry)) => (&**index, *entry),
                None => (&reader.root, self.root_entry),
            };
            self.ahead.expect((entry..index.len()).map(|entry| index.block(entry)));
        }
        let block = reader.source.data(at, fetch, reads_ahead.then_some(&mut self.ahead))?;
        let block = self.block.insert(block);
        // Only the block in which a lower half ends needs its cells compared with the split key.
        self.check_end = match reader.half_key(HalfSide::Bottom) {
            Some(split) => Order::keys(reader.order(), block.key(block.last()), split).is_ge(),
            None => false,
        };
        Ok(block)
    }
}
