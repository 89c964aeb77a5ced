//! Blocks of the data index: which block to read for a key. Follows: `HFileBlockIndex`.
//!
//! An entry's key is at or before the first key of its block and after the last key of the block before it; for blocks
//! after the first it usually is a made-up separator, so it need not occur in the file. When cells of one key lie in two
//! blocks, the second's entry has exactly that key.

use crate::cursor::{Cursor, Damage, Decoded};
use crate::row_window::RowWindow;
use cell::{KeyRef, Order};
use std::cmp::Ordering;

/// Where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockAt {
    pub offset: u64,
    /// Header and checksums included.
    pub len: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    block: BlockAt,
    key_start: u32,
    key_len: u32,
}

/// One index block, of any level; also the index of a Bloom filter's chunks and of meta blocks.
#[derive(Debug)]
pub(crate) struct IndexBlock {
    keys: Box<[u8]>,
    entries: Box<[Entry]>,
    /// Row prefixes of the keys, when they are flat keys.
    rows: RowWindow,
}

#[cfg(debug_assertions)]
impl Drop for IndexBlock {
    fn drop(&mut self) {
        crate::poison::overwrite(&mut self.keys);
    }
}

/// Where the middle key of a multi-level index is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MidKey {
    pub leaf: BlockAt,
    pub entry: u32,
}

impl IndexBlock {
    /// Reads `count` entries in root format; the cursor is left behind them.
    pub fn parse_root(at: &mut Cursor<'_>, count: usize) -> Decoded<IndexBlock> {
        // An entry has at least 13 bytes.
        if count > at.len() / 13 {
            return Err(format!("{count} index entries do not fit {} bytes", at.len()).into());
        }
        let mut builder = Builder::new(count, at.len());
        for _ in 0..count {
            let block = BlockAt { offset: at.u64()?, len: at.u32()? };
            let key_len = at.vlong()?;
            let key_len = usize::try_from(key_len).map_err(|_| Damage(format!("an index key of {key_len} bytes")))?;
            builder.add(block, at.take(key_len)?);
        }
        Ok(builder.finish())
    }

    /// Reads the payload of a leaf or intermediate block.
    pub fn parse_non_root(payload: &[u8]) -> Decoded<IndexBlock> {
        let mut at = Cursor::new(payload);
        let count = at.u32()? as usize;
        if count == 0 || count > at.len() / 17 {
            return Err(format!("{count} index entries do not fit {} bytes", at.len()).into());
        }
        let mut table = Cursor::new(at.take(4 * (count + 1))?);
        let mut builder = Builder::new(count, at.len());
        let mut start = table.u32()? as usize;
        if start != 0 {
            return Err("the first index entry does not start at 0".into());
        }
        for _ in 0..count {
            let end = table.u32()? as usize;
            let entry_len = end.checked_sub(start).ok_or("index entries are not in order")?;
            let mut entry = Cursor::new(at.take(entry_len)?);
            let block = BlockAt { offset: entry.u64()?, len: entry.u32()? };
            let key = entry.take(entry.len())?;
            builder.add(block, key);
            start = end;
        }
        if at.is_empty() { Ok(builder.finish()) } else { Err("bytes follow the last index entry".into()) }
    }

    /// Checks that all keys are flat keys, so that [`IndexBlock::key`] may be used.
    pub fn with_flat_keys(mut self, order: Order) -> Decoded<IndexBlock> {
        for i in 0..self.len() {
            KeyRef::parse(self.raw_key(i)).map_err(|e| Damage(format!("index entry {i}: {e}")))?;
        }
        if let Some(last) = self.len().checked_sub(1) {
            self.rows = RowWindow::new(order, self.len(), |i| self.key(i).row(), self.key(last).row());
        }
        Ok(self)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn heap_bytes(&self) -> usize {
        self.keys.len() + self.entries.len() * size_of::<Entry>() + self.rows.heap_bytes() + size_of::<IndexBlock>()
    }

    #[inline]
    pub fn block(&self, i: usize) -> BlockAt {
        self.entries[i].block
    }

    #[inline]
    pub fn raw_key(&self, i: usize) -> &[u8] {
        let entry = self.entries[i];
        &self.keys[entry.key_start as usize..(entry.key_start + entry.key_len) as usize]
    }

    #[inline]
    pub fn key(&self, i: usize) -> KeyRef<'_> {
        KeyRef::from_checked(self.raw_key(i))
    }

    /// The last entry whose key compares as `keep` says (which is true up to some entry, then false); `None`: no entry.
    pub fn last_where(&self, keep: impl Fn(&[u8]) -> bool) -> Option<usize> {
        self.last_where_between(0, self.len(), keep)
    }

    fn last_where_between(&self, mut low: usize, mut high: usize, keep: impl Fn(&[u8]) -> bool) -> Option<usize> {
        while low < high {
            let middle = low + (high - low) / 2;
            if keep(self.raw_key(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.checked_sub(1)
    }

    /// The entry of the block in which the first cell at or after `key` is, or at whose end it would be.
    pub fn find(&self, order: Order, key: KeyRef<'_>) -> usize {
        // An entry equal to the key: the block before may end with cells of that key, unless it is a search key no cell has.
        let equal_counts = key.type_code() == u8::MAX;
        let (low, high) = self.rows.around(key.row(), self.len());
        self.last_where_between(low, high, |entry| match order.keys(KeyRef::from_checked(entry), key) {
            Ordering::Less => true,
            Ordering::Equal => equal_counts,
            Ordering::Greater => false,
        })
        .unwrap_or(0)
    }

    /// The entry of the block that holds the last cell before `key`; `None` when every block starts at or after it.
    pub fn find_before(&self, order: Order, key: KeyRef<'_>) -> Option<usize> {
        let (low, high) = self.rows.around(key.row(), self.len());
        self.last_where_between(low, high, |entry| order.keys(KeyRef::from_checked(entry), key) == Ordering::Less)
    }
}

struct Builder {
    keys: Vec<u8>,
    entries: Vec<Entry>,
}

impl Builder {
    fn new(count: usize, bytes: usize) -> Builder {
        Builder { keys: Vec::with_capacity(bytes.saturating_sub(12 * count)), entries: Vec::with_capacity(count) }
    }

    fn add(&mut self, block: BlockAt, key: &[u8]) {
        self.entries.push(Entry { block, key_start: self.keys.len() as u32, key_len: key.len() as u32 });
        self.keys.extend_from_slice(key);
    }

    fn finish(self) -> IndexBlock {
        let (keys, entries) = (self.keys.into_boxed_slice(), self.entries.into_boxed_slice());
        IndexBlock { keys, entries, rows: RowWindow::default() }
    }
}

/// The root of the data index: its entries and, in a multi-level index, where the middle key is.
pub(crate) fn parse_data_root(
    payload: &[u8],
    count: usize,
    levels: u32,
    order: Order,
) -> Decoded<(IndexBlock, Option<MidKey>)> {
    let mut at = Cursor::new(payload);
    let root = IndexBlock::parse_root(&mut at, count)?.with_flat_keys(order)?;
    let mut mid_key = None;
    if levels > 1 && !at.is_empty() {
        mid_key = Some(MidKey { leaf: BlockAt { offset: at.u64()?, len: at.u32()? }, entry: at.u32()? });
    }
    if levels > 1 && count == 0 {
        return Err("an index of several levels has no entries".into());
    }
    if at.is_empty() { Ok((root, mid_key)) } else { Err("bytes follow the root index".into()) }
}
