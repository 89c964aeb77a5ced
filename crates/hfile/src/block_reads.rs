//! What a thread has read of blocks, of memstores and of regions, for the metrics of the call that it works on.
//!
//! Always true: counts only grow, and each thread has its own: what lies between two looks on one thread was read by that thread. Follows:
//! `ThreadLocalServerSideScanMetrics`.

use std::cell::Cell;

/// Sums since the thread began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockReads {
    /// Bytes of data blocks that were gone through, unpacked, wherever they came from.
    pub scanned_bytes: u64,
    /// Bytes of blocks of all kinds that the cache had, as they lie in the file.
    pub cache_bytes: u64,
    /// Bytes of blocks that were read from files.
    pub file_bytes: u64,
    /// How many blocks these were.
    pub file_blocks: u64,
    /// How long their reads took, where somebody has a clock ([`crate::BlockCache::time_reads_by`]).
    pub file_us: u64,
    /// Bytes of the cells that cursors in memory came to, tags included, as often as they came to them.
    pub memory_bytes: u64,
    /// Rows, or pieces of rows, that were read of regions, as they count them.
    pub rows: u64,
    /// Rows that filters refused.
    pub filtered_rows: u64,
}

std::thread_local! {
    static READS: Cell<BlockReads> = const { Cell::new(BlockReads { scanned_bytes: 0, cache_bytes: 0, file_bytes: 0, file_blocks: 0, file_us: 0, memory_bytes: 0, rows: 0, filtered_rows: 0 }) };
}

impl BlockReads {
    /// Those of this thread so far.
    #[inline]
    pub fn of_thread() -> BlockReads {
        READS.with(Cell::get)
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: BlockReads) -> BlockReads {
        BlockReads {
            scanned_bytes: self.scanned_bytes + other.scanned_bytes,
            cache_bytes: self.cache_bytes + other.cache_bytes,
            file_bytes: self.file_bytes + other.file_bytes,
            file_blocks: self.file_blocks + other.file_blocks,
            file_us: self.file_us + other.file_us,
            memory_bytes: self.memory_bytes + other.memory_bytes,
            rows: self.rows + other.rows,
            filtered_rows: self.filtered_rows + other.filtered_rows,
        }
    }

    /// What came after `before`, an earlier look on the same thread.
    #[must_use]
    pub fn since(self, before: BlockReads) -> BlockReads {
        BlockReads {
            scanned_bytes: self.scanned_bytes.wrapping_sub(before.scanned_bytes),
            cache_bytes: self.cache_bytes.wrapping_sub(before.cache_bytes),
            file_bytes: self.file_bytes.wrapping_sub(before.file_bytes),
            file_blocks: self.file_blocks.wrapping_sub(before.file_blocks),
            file_us: self.file_us.wrapping_sub(before.file_us),
            memory_bytes: self.memory_bytes.wrapping_sub(before.memory_bytes),
            rows: self.rows.wrapping_sub(before.rows),
            filtered_rows: self.filtered_rows.wrapping_sub(before.filtered_rows),
        }
    }

    /// A region was read: so many rows or pieces of rows, and so many that filters refused.
    #[inline]
    pub fn add_rows(rows: u64, filtered_rows: u64) {
        change(|reads| {
            reads.rows += rows;
            reads.filtered_rows += filtered_rows;
        });
    }

    /// A cursor in memory came to cells of so many bytes.
    #[inline]
    pub fn add_memory_bytes(bytes: usize) {
        change(|reads| reads.memory_bytes += bytes as u64);
    }
}

fn change(change: impl FnOnce(&mut BlockReads)) {
    READS.with(|reads| {
        let mut now = reads.get();
        change(&mut now);
        reads.set(now);
    });
}

/// A data block of so many bytes is gone through.
#[inline]
pub(crate) fn scanned(bytes: usize) {
    change(|reads| reads.scanned_bytes += bytes as u64);
}

/// The cache had a block.
#[inline]
pub(crate) fn from_cache(bytes: u32) {
    change(|reads| reads.cache_bytes += u64::from(bytes));
}

/// A block was read from its file.
pub(crate) fn from_file(bytes: usize) {
    change(|reads| {
        reads.file_bytes += bytes as u64;
        reads.file_blocks += 1;
    });
}

/// A read of a file took so long.
pub(crate) fn file_took(us: u64) {
    change(|reads| reads.file_us += us);
}
