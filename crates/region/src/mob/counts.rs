//! What a store's large values came to since it was opened. Follows: the counters of `HMobStore`, `MobFileCache`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number of cells, and their bytes.
#[derive(Debug, Default)]
pub(crate) struct CellCount {
    cells: AtomicU64,
    bytes: AtomicU64,
}

impl CellCount {
    pub fn add(&self, bytes: usize) {
        self.cells.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// Cells and bytes.
    pub fn get(&self) -> (u64, u64) {
        (self.cells.load(Relaxed), self.bytes.load(Relaxed))
    }
}

/// Counted by one store.
#[derive(Debug, Default)]
pub(crate) struct MobCounts {
    /// Flushes that wrote a MOB file,
    pub flushes: AtomicU64,
    /// and what they wrote there.
    pub flushed: CellCount,
    /// What compactions wrote to MOB files,
    pub compacted_to: CellCount,
    /// and what they took from there into store files.
    pub compacted_from: CellCount,
    /// What scans and gets took from MOB files.
    pub read: CellCount,
    /// Times that a MOB file was wanted,
    pub file_accesses: AtomicU64,
    /// those when it was not open,
    pub file_misses: AtomicU64,
    /// and files that were closed to make room.
    pub files_evicted: AtomicU64,
}

/// [`MobCounts`] at one moment, of one store or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MobStats {
    /// Flushes that wrote a MOB file.
    pub flushes: u64,
    /// Cells that flushes wrote to MOB files.
    pub flushed_cells: u64,
    /// Bytes of those.
    pub flushed_bytes: u64,
    /// Cells that compactions wrote to MOB files.
    pub cells_compacted_to: u64,
    /// Bytes of those.
    pub bytes_compacted_to: u64,
    /// Cells that compactions took from MOB files into store files.
    pub cells_compacted_from: u64,
    /// Bytes of those.
    pub bytes_compacted_from: u64,
    /// Cells that scans and gets took from MOB files.
    pub read_cells: u64,
    /// Bytes of those.
    pub read_bytes: u64,
    /// Times that a MOB file was wanted.
    pub file_accesses: u64,
    /// Of those, times when it was not open.
    pub file_misses: u64,
    /// Files that were closed to make room for others.
    pub files_evicted: u64,
    /// Files that are open.
    pub open_files: u64,
}

impl MobCounts {
    /// The numbers now; `open_files` are open.
    pub fn stats(&self, open_files: usize) -> MobStats {
        let (flushed_cells, flushed_bytes) = self.flushed.get();
        let (cells_compacted_to, bytes_compacted_to) = self.compacted_to.get();
        let (cells_compacted_from, bytes_compacted_from) = self.compacted_from.get();
        let (read_cells, read_bytes) = self.read.get();
        MobStats {
            flushes: self.flushes.load(Relaxed),
            flushed_cells,
            flushed_bytes,
            cells_compacted_to,
            bytes_compacted_to,
            cells_compacted_from,
            bytes_compacted_from,
            read_cells,
            read_bytes,
            file_accesses: self.file_accesses.load(Relaxed),
            file_misses: self.file_misses.load(Relaxed),
            files_evicted: self.files_evicted.load(Relaxed),
            open_files: open_files as u64,
        }
    }
}

impl std::ops::AddAssign for MobStats {
    fn add_assign(&mut self, other: MobStats) {
        self.flushes += other.flushes;
        self.flushed_cells += other.flushed_cells;
        self.flushed_bytes += other.flushed_bytes;
        self.cells_compacted_to += other.cells_compacted_to;
        self.bytes_compacted_to += other.bytes_compacted_to;
        self.cells_compacted_from += other.cells_compacted_from;
        self.bytes_compacted_from += other.bytes_compacted_from;
        self.read_cells += other.read_cells;
        self.read_bytes += other.read_bytes;
        self.file_accesses += other.file_accesses;
        self.file_misses += other.file_misses;
        self.files_evicted += other.files_evicted;
        self.open_files += other.open_files;
    }
}
