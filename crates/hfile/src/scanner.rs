//! (being written)

use crate::{Reader, Result};
use bytes::Bytes;
use cell::{CellRef, KeyRef};
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
    /// Put blocks read into the cache (they are looked up there in any case).
    pub cache_blocks: bool,
    /// Read single blocks; else read ahead, more and more as the scan goes on.
    pub pread: bool,
    /// What happens on a miss.
    pub residency: Residency,
    /// For a compaction: reads ahead, puts nothing into the cache.
    pub compaction: bool,
}

impl Default for ScanOptions {
    fn default() -> Self {
        ScanOptions { cache_blocks: true, pread: true, residency: Residency::MayRead, compaction: false }
    }
}

/// A position in a file. After an error the scanner is unpositioned and may be used again with a seek.
#[derive(Debug)]
pub struct Scanner {
    reader: Arc<Reader>,
}

impl Scanner {
    /// The file.
    pub fn reader(&self) -> &Arc<Reader> {
        &self.reader
    }
    /// Changes what happens on a miss, from the next call on.
    pub fn set_residency(&mut self, _residency: Residency) {
        todo!()
    }
    /// Switches between single-block reads and read-ahead, from the next block on.
    pub fn set_pread(&mut self, _pread: bool) {
        todo!()
    }
    /// To the first cell; false when there is none.
    pub fn seek_to_first(&mut self) -> Result<bool> {
        todo!()
    }
    /// To the first cell at or after `key` (sequence ids are not looked at); false, and unpositioned, when there is none.
    pub fn seek(&mut self, _key: KeyRef<'_>) -> Result<bool> {
        todo!()
    }
    /// As [`Scanner::seek`] for a `key` at or after the current cell; stays in the block when the key is there. Never moves back.
    /// Unpositioned and after the end: false.
    pub fn reseek(&mut self, _key: KeyRef<'_>) -> Result<bool> {
        todo!()
    }
    /// To the last cell before `key`; false, and unpositioned, when there is none.
    pub fn seek_before(&mut self, _key: KeyRef<'_>) -> Result<bool> {
        todo!()
    }
    /// To the next cell; false, and unpositioned, at the end.
    pub fn next(&mut self) -> Result<bool> {
        todo!()
    }
    /// The cell at the position.
    pub fn current(&self) -> Option<CellRef<'_>> {
        todo!()
    }
    /// The flat key at the position.
    pub fn current_key(&self) -> Option<KeyRef<'_>> {
        todo!()
    }
    /// The cell's KeyValue bytes, shared with the cached block: copies nothing, holds the block in memory.
    pub fn current_shared(&self) -> Option<Bytes> {
        todo!()
    }
    /// The first key of the next block (or a key between): a cell before it is in the current block. `None`: last block.
    /// Follows: `HFileScanner#getNextIndexedKey`.
    pub fn next_indexed_key(&self) -> Option<KeyRef<'_>> {
        todo!()
    }
}
