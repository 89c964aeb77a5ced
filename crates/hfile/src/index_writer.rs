//! The data index being built, and the separators it is made of. Follows: `HFileBlockIndex.BlockIndexWriter`,
//! `HFileWriterImpl#getMidpoint`.

use crate::Result;
use crate::block::BlockType;
use crate::block_writer::BlockWriter;
use crate::index::BlockAt;
use cell::{CellType, KeyRef, Order, vint};

/// Bytes of a non-root entry besides its key.
const ENTRY_OVERHEAD: usize = 12;

/// Entries of one index block.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    keys: Vec<u8>,
    /// End of each key in `keys`, and its block.
    entries: Vec<(usize, BlockAt)>,
    /// Bytes of the entries in root format.
    root_len: usize,
    /// In the root of a multi-level index: data blocks under this entry and those before it.
    blocks_up_to: Vec<u64>,
}

impl Chunk {
    pub fn add(&mut self, key: &[u8], block: BlockAt) {
        self.keys.extend_from_slice(key);
        self.entries.push((self.keys.len(), block));
        self.root_len += ENTRY_OVERHEAD + vint::encoded_len(key.len() as i64) + key.len();
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    fn key(&self, i: usize) -> &[u8] {
        let start = i.checked_sub(1).map_or(0, |before| self.entries[before].0);
        &self.keys[start..self.entries[i].0]
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.entries.clear();
        self.blocks_up_to.clear();
        self.root_len = 0;
    }

    fn non_root_len(&self) -> usize {
        4 + 4 * (self.len() + 1) + ENTRY_OVERHEAD * self.len() + self.keys.len()
    }

    /// The entries in root format.
    pub fn write_root(&self, out: &mut Vec<u8>) {
        for (i, (_, block)) in self.entries.iter().enumerate() {
            out.extend_from_slice(&block.offset.to_be_bytes());
            out.extend_from_slice(&block.len.to_be_bytes());
            vint::write(out, self.key(i).len() as i64);
            out.extend_from_slice(self.key(i));
        }
    }

    fn write_non_root(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.len() as u32).to_be_bytes());
        out.extend_from_slice(&0u32.to_be_bytes());
        for (i, (key_end, _)) in self.entries.iter().enumerate() {
            out.extend_from_slice(&((key_end + ENTRY_OVERHEAD * (i + 1)) as u32).to_be_bytes());
        }
        for (i, (_, block)) in self.entries.iter().enumerate() {
            out.extend_from_slice(&block.offset.to_be_bytes());
            out.extend_from_slice(&block.len.to_be_bytes());
            out.extend_from_slice(self.key(i));
        }
    }

    /// Where the middle one of all data blocks is: leaf, and entry in it.
    fn write_mid_key(&self, out: &mut Vec<u8>) {
        let total = self.blocks_up_to.last().copied().unwrap_or(0);
        let middle = total.saturating_sub(1) / 2;
        let leaf = self.blocks_up_to.partition_point(|up_to| *up_to <= middle);
        let before = leaf.checked_sub(1).map_or(0, |before| self.blocks_up_to[before]);
        let (_, block) = self.entries[leaf];
        out.extend_from_slice(&block.offset.to_be_bytes());
        out.extend_from_slice(&block.len.to_be_bytes());
        out.extend_from_slice(&((middle - before) as u32).to_be_bytes());
    }
}

/// The data index being built: leaf blocks go out as they fill, the levels above at the end.
#[derive(Debug)]
pub(crate) struct IndexWriter {
    leaf: Chunk,
    root: Chunk,
    /// Root and leaf are the same so far.
    single_level: bool,
    max_len: usize,
    min_entries: usize,
    total_entries: u64,
    /// Bytes of all index blocks before compression.
    pub uncompressed_bytes: u64,
    scratch: Vec<u8>,
}

/// The finished root.
pub(crate) struct FinishedIndex {
    pub root: BlockAt,
    pub root_entries: usize,
    pub levels: u32,
}

impl IndexWriter {
    pub fn new(max_len: usize, min_entries: usize) -> IndexWriter {
        assert!(max_len > 0 && min_entries > 1, "index blocks of {max_len} bytes, {min_entries} entries");
        IndexWriter {
            leaf: Chunk::default(),
            root: Chunk::default(),
            single_level: true,
            max_len,
            min_entries,
            total_entries: 0,
            uncompressed_bytes: 0,
            scratch: Vec::new(),
        }
    }

    pub fn add(&mut self, key: &[u8], block: BlockAt) {
        self.leaf.add(key, block);
        self.total_entries += 1;
    }

    /// Writes the leaf block if it is full; at the end of the file, the last one of a multi-level index. `written` gets its place and payload.
    pub fn write_leaf_if_due(
        &mut self,
        closing: bool,
        out: &mut BlockWriter,
        written: impl FnOnce(BlockAt, &[u8]),
    ) -> Result<()> {
        let due = if closing { !self.single_level } else { self.leaf.non_root_len() >= self.max_len };
        if self.leaf.len() == 0 || !due {
            return Ok(());
        }
        let block = write_block(&self.leaf, BlockType::LeafIndex, out, &mut self.scratch)?;
        written(block, &self.scratch);
        self.uncompressed_bytes += self.scratch.len() as u64;
        self.root.add(self.leaf.key(0), block);
        self.root.blocks_up_to.push(self.total_entries);
        self.leaf.clear();
        self.single_level = false;
        Ok(())
    }

    /// Writes intermediate levels and the root. `written` gets place and payload of each block but the root.
    pub fn finish(&mut self, out: &mut BlockWriter, mut written: impl FnMut(BlockAt, &[u8])) -> Result<FinishedIndex> {
        let mut levels = 2;
        let mut mid_key = Vec::new();
        if self.single_level {
            self.root = std::mem::take(&mut self.leaf);
            levels = 1;
        } else {
            self.root.write_mid_key(&mut mid_key);
        }
        while levels > 1 && levels < 16 && self.root.len() > self.min_entries && self.root.root_len > self.max_len {
            self.root = self.write_level(out, &mut written)?;
            levels += 1;
        }
        let mut payload = Vec::with_capacity(self.root.root_len + mid_key.len());
        self.root.write_root(&mut payload);
        payload.extend_from_slice(&mid_key);
        let root = out.write(BlockType::RootIndex, &payload)?;
        self.uncompressed_bytes += payload.len() as u64;
        Ok(FinishedIndex { root, root_entries: self.root.len(), levels })
    }

    /// Writes the root's entries as a level below a new root, and gives that.
    fn write_level(&mut self, out: &mut BlockWriter, written: &mut impl FnMut(BlockAt, &[u8])) -> Result<Chunk> {
        let (level, mut parent, mut chunk) = (std::mem::take(&mut self.root), Chunk::default(), Chunk::default());
        for i in 0..level.len() {
            chunk.add(level.key(i), level.entries[i].1);
            let full = i >= self.min_entries && chunk.root_len >= self.max_len;
            if full || i + 1 == level.len() {
                let block = write_block(&chunk, BlockType::IntermediateIndex, out, &mut self.scratch)?;
                written(block, &self.scratch);
                self.uncompressed_bytes += self.scratch.len() as u64;
                parent.add(chunk.key(0), block);
                chunk.clear();
            }
        }
        Ok(parent)
    }
}

fn write_block(chunk: &Chunk, block_type: BlockType, out: &mut BlockWriter, scratch: &mut Vec<u8>) -> Result<BlockAt> {
    scratch.clear();
    chunk.write_non_root(scratch);
    out.write(block_type, scratch)
}

/// Appends the index key of a block that begins with `right` and follows a block that ends with `left`: a short key after
/// `left`, at or before `right`.
pub(crate) fn write_separator(order: Order, left: KeyRef<'_>, right: KeyRef<'_>, out: &mut Vec<u8>) {
    const LATEST: (i64, CellType) = (i64::MAX, CellType::Maximum);
    // A made-up row could sort elsewhere among rows that are compared part by part.
    if order == Order::User {
        if let Some(row) = middle(left.row(), right.row()) {
            return KeyRef::write(out, &row, b"", b"", LATEST.0, LATEST.1.code());
        }
        if let Some(qualifier) = middle(left.qualifier(), right.qualifier()).filter(|_| left.family() == right.family())
        {
            return KeyRef::write(out, right.row(), right.family(), &qualifier, LATEST.0, LATEST.1.code());
        }
    }
    out.extend_from_slice(right.bytes());
}

/// Short bytes after `left`, at or before `right`; `None` when they are the same.
fn middle(left: &[u8], right: &[u8]) -> Option<Vec<u8>> {
    let shared = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    match left.get(shared) {
        Some(byte) => {
            assert!(right.get(shared).is_some_and(|r| r > byte), "cells are added in order");
            let mut bytes = left[..=shared].to_vec();
            bytes[shared] += 1;
            Some(bytes)
        }
        None if shared < right.len() => {
            let mut bytes = right[..=shared].to_vec();
            bytes[shared] = 0;
            Some(bytes)
        }
        None => None,
    }
}
