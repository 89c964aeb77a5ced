//! Numbers about a region for load reports, metrics and status pages.

use crate::core::RegionCore;
use crate::mob::MobStats;
use crate::store::Store;
use crate::store_file::StoreFile;
use base::{Adder, SeqId};
use fs::BlockHosts;
use hfile::BlockReads;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counted since the region was opened.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub reads: Adder,
    pub writes: AtomicU64,
    pub writes_without_log: AtomicU64,
    pub bytes_without_log: AtomicU64,
    pub rows_filtered: AtomicU64,
    pub checks_passed: AtomicU64,
    pub checks_failed: AtomicU64,
    pub blocked: AtomicU64,
    pub flushes: AtomicU64,
    pub flushed_bytes: AtomicU64,
    pub compactions: AtomicU64,
    pub compactions_failed: AtomicU64,
    pub compacted_files: AtomicU64,
    pub compacted_bytes: AtomicU64,
    pub compacting_cells: AtomicU64,
    pub compacted_cells: AtomicU64,
    pub compacted_cells_bytes: AtomicU64,
    pub major_compacted_cells: AtomicU64,
    pub major_compacted_cells_bytes: AtomicU64,
    pub flushed_cells: AtomicU64,
    pub flushed_cells_bytes: AtomicU64,
}

impl Counters {
    /// So many rows or pieces of rows were read, and so many were refused by filters; by this thread.
    pub fn read_rows(&self, rows: u64, filtered: u64) {
        self.reads.add(rows);
        if filtered > 0 {
            self.rows_filtered.fetch_add(filtered, Ordering::Relaxed);
        }
        BlockReads::add_rows(rows, filtered);
    }
}

/// A family's numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Name of the family.
    pub family: Vec<u8>,
    /// Store files.
    pub files: usize,
    /// References among them.
    pub reference_files: usize,
    /// Bytes of the files.
    pub files_bytes: u64,
    /// Bytes of the files before compression.
    pub files_uncompressed_bytes: u64,
    /// Memory of the memstore.
    pub memstore_bytes: u64,
    /// No edit of the family up to this id is needed from a log.
    pub flushed_seq_id: u64,
    /// Rows that were read of the family, all of whose cells came from memory,
    pub memory_row_reads: u64,
    /// and others. Those that open scanners have just read are not in it yet.
    pub mixed_row_reads: u64,
}

/// A store file's numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileStats {
    /// Name of its family.
    pub family: Vec<u8>,
    /// Its name.
    pub name: String,
    /// Bytes that it stands for.
    pub bytes: u64,
    /// Its cells.
    pub cells: u64,
    /// When it was made, if it says so.
    pub created_ms: Option<i64>,
    /// Whether it shows part of another region's file.
    pub is_reference: bool,
    /// Bytes of its index before compression,
    pub index_bytes: u64,
    /// and of its Bloom filters.
    pub bloom_bytes: u64,
}

/// Every store file of the region now, family by family.
pub(crate) fn of_files(core: &RegionCore) -> Vec<FileStats> {
    let of_store = |store: &Store| -> Vec<FileStats> {
        let of_file = |file: &Arc<StoreFile>| FileStats {
            family: store.name.to_vec(),
            name: file.name.clone(),
            bytes: file.len_bytes(),
            cells: file.reader.entry_count(),
            created_ms: file.created_ms(),
            is_reference: file.is_reference(),
            index_bytes: file.reader.index_bytes(),
            bloom_bytes: file.reader.bloom_bytes(),
        };
        store.view().files.iter().map(of_file).collect()
    };
    core.stores.iter().flat_map(of_store).collect()
}

/// Bytes of the store files that are the region's own.
pub(crate) fn own_files_bytes(core: &RegionCore) -> u64 {
    let is_own = |file: &&Arc<StoreFile>| file.parsed.link.is_none();
    let of_store = |store: &Store| store.view().files.iter().filter(is_own).map(|file| file.len_bytes()).sum::<u64>();
    core.stores.iter().map(of_store).sum()
}

/// When store files were created, as far as they say: milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileTimes {
    /// Of the oldest.
    pub oldest_ms: i64,
    /// Of the newest.
    pub newest_ms: i64,
    /// All together.
    pub sum_ms: i64,
    /// Of how many files.
    pub files: i64,
}

impl FileTimes {
    /// Those of both.
    #[must_use]
    pub fn and(self, other: FileTimes) -> FileTimes {
        match (self.files, other.files) {
            (0, _) => other,
            (_, 0) => self,
            (mine, others) => FileTimes {
                oldest_ms: self.oldest_ms.min(other.oldest_ms),
                newest_ms: self.newest_ms.max(other.newest_ms),
                sum_ms: self.sum_ms.saturating_add(other.sum_ms),
                files: mine + others,
            },
        }
    }

    /// Ages in milliseconds at `now_ms`: the least, the greatest and the mean; zeros without files.
    pub fn ages(self, now_ms: i64) -> (u64, u64, u64) {
        let age = |created_ms: i64| if self.files == 0 { 0 } else { u64::try_from(now_ms - created_ms).unwrap_or(0) };
        (age(self.newest_ms), age(self.oldest_ms), age(self.sum_ms.checked_div(self.files).unwrap_or(0)))
    }
}

/// A region's numbers at one moment. Counts are since the region was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionStats {
    /// Each family's numbers, in the order of names.
    pub stores: Vec<StoreStats>,
    /// Store files of all families.
    pub files: usize,
    /// References among them.
    pub reference_files: usize,
    /// Most files in one store.
    pub max_store_files: usize,
    /// Bytes of all files.
    pub files_bytes: u64,
    /// Bytes of all files before compression.
    pub files_uncompressed_bytes: u64,
    /// Bytes of the files that are the region's own: neither references nor links.
    pub own_files_bytes: u64,
    /// Of those, what is in the second level of the block cache.
    pub second_level_bytes: u64,
    /// Memory of all memstores.
    pub memstore_bytes: u64,
    /// Bytes of the cells in all memstores.
    pub memstore_data_bytes: u64,
    /// Data index of all files before compression.
    pub index_bytes: u64,
    /// Bloom chunks of all files.
    pub bloom_bytes: u64,
    /// Memory held by open files outside the cache.
    pub reader_heap_bytes: u64,
    /// Steps of scans, and Gets.
    pub read_requests: u64,
    /// Rows that filters dropped.
    pub filtered_read_requests: u64,
    /// Mutations.
    pub write_requests: u64,
    /// Log entries saved by SKIP_WAL.
    pub writes_without_log: u64,
    /// Bytes of cells that no log entry has.
    pub bytes_without_log: u64,
    /// Conditions that held.
    pub checks_passed: u64,
    /// Conditions that did not hold.
    pub checks_failed: u64,
    /// Writes refused because the memstore was too large.
    pub blocked_requests: u64,
    /// Flushes done.
    pub flushes: u64,
    /// Bytes written by flushes.
    pub flushed_bytes: u64,
    /// Cells that flushes wrote.
    pub flushed_cells: u64,
    /// Bytes of those before compression.
    pub flushed_cells_bytes: u64,
    /// Compactions done.
    pub compactions: u64,
    /// Compactions that failed or were stopped.
    pub compactions_failed: u64,
    /// Files that compactions took.
    pub compacted_files: u64,
    /// Bytes that compactions wrote.
    pub compacted_bytes: u64,
    /// Cells that the compactions so far had to look at.
    pub total_compacting_cells: u64,
    /// Cells that they have looked at.
    pub current_compacted_cells: u64,
    /// Bytes of the cells that compactions wrote, before compression.
    pub compacted_cells_bytes: u64,
    /// Of the cells, those that major compactions have looked at.
    pub major_compacted_cells: u64,
    /// Of the bytes, those that they wrote.
    pub major_compacted_cells_bytes: u64,
    /// Readers that hold store files.
    pub file_readers: u64,
    /// Most readers that hold one file which a compaction has replaced.
    pub max_replaced_file_readers: u64,
    /// What large values in files of their own came to.
    pub mob: MobStats,
    /// Highest sequence id given out.
    pub max_seq_id: u64,
    /// No edit of any family up to this id is needed from a log.
    pub flushed_seq_id: u64,
    /// Milliseconds of the last flush (of the opening when there was none).
    pub last_flush_ms: i64,
    /// When the oldest of the files that a major compaction wrote was made (milliseconds); 0 when there is none. Follows:
    /// `HRegion#getOldestHfileTs`.
    pub last_major_compaction_ms: i64,
    /// Milliseconds of the oldest unflushed edit.
    pub oldest_edit_ms: Option<i64>,
    /// When its files were created.
    pub file_times: FileTimes,
    /// On which machines the blocks of its files are. Follows: `HRegion#getHDFSBlocksDistribution`.
    pub block_hosts: BlockHosts,
}

/// Up to where what the log has is in files.
struct FlushedSeqIds {
    /// Of all families.
    region: u64,
    /// Of each, in the order of the region's stores.
    stores: Vec<u64>,
}

/// What a master that splits the log of this server may leave out: edits up to these ids. One id too high loses writes, so every
/// doubt makes it lower. Follows: `HRegion#setRegionStoresSequenceIds`, `getMaxFlushedSeqId`.
fn flushed_seq_ids(core: &RegionCore) -> FlushedSeqIds {
    let log = &core.env.log;
    // The files first. A flush that ends in between is not counted, and an edit that comes in between has a higher id: all edits up to
    // a flush's id are appended when it begins.
    let in_files: Vec<u64> = core.stores.iter().map(|store| store.max_flushed().0).collect();
    let highest = in_files.iter().copied().max().unwrap_or(0);
    let below = |lowest: Option<SeqId>| lowest.map_or(highest, |lowest| lowest.0.saturating_sub(1));
    let region = below(log.lowest_unflushed(core.name()));
    // A family whose edits are all in files has none up to the newest flush of another.
    let of_store =
        |(store, in_files): (&Store, u64)| below(log.lowest_unflushed_of(core.name(), &store.name)).max(in_files);
    FlushedSeqIds { region, stores: core.stores.iter().zip(in_files).map(of_store).collect() }
}

/// Readers that hold the file open beside the file itself.
fn readers_of(file: &StoreFile) -> u64 {
    Arc::strong_count(&file.reader).saturating_sub(1) as u64
}

/// The region's numbers now. Costs a walk over its files in memory.
pub(crate) fn of_region(core: &RegionCore) -> RegionStats {
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let c = &core.counters;
    let mut stats = RegionStats {
        memstore_bytes: core.accounting.heap_bytes(),
        memstore_data_bytes: core.accounting.data_bytes(),
        read_requests: c.reads.sum(),
        filtered_read_requests: count(&c.rows_filtered),
        write_requests: count(&c.writes),
        writes_without_log: count(&c.writes_without_log),
        bytes_without_log: count(&c.bytes_without_log),
        checks_passed: count(&c.checks_passed),
        checks_failed: count(&c.checks_failed),
        blocked_requests: count(&c.blocked),
        flushes: count(&c.flushes),
        flushed_bytes: count(&c.flushed_bytes),
        flushed_cells: count(&c.flushed_cells),
        flushed_cells_bytes: count(&c.flushed_cells_bytes),
        compactions: count(&c.compactions),
        compactions_failed: count(&c.compactions_failed),
        compacted_files: count(&c.compacted_files),
        compacted_bytes: count(&c.compacted_bytes),
        total_compacting_cells: count(&c.compacting_cells),
        current_compacted_cells: count(&c.compacted_cells),
        compacted_cells_bytes: count(&c.compacted_cells_bytes),
        major_compacted_cells: count(&c.major_compacted_cells),
        major_compacted_cells_bytes: count(&c.major_compacted_cells_bytes),
        max_seq_id: core.sequencer.last_seq_id().0,
        last_flush_ms: core.accounting.last_flush_ms(),
        oldest_edit_ms: core.accounting.oldest_edit_ms(),
        ..RegionStats::default()
    };
    let flushed = flushed_seq_ids(core);
    stats.flushed_seq_id = flushed.region;
    let mut oldest_major = i64::MAX;
    for (store, flushed_seq_id) in core.stores.iter().zip(flushed.stores) {
        let view = store.view();
        let (memory_row_reads, mixed_row_reads) = store.row_reads.sums();
        let mut own = StoreStats {
            family: store.name.to_vec(),
            files: view.files.len(),
            memory_row_reads,
            mixed_row_reads,
            memstore_bytes: view.memory.sizes().heap_bytes as u64,
            flushed_seq_id,
            ..StoreStats::default()
        };
        for file in view.files.iter() {
            own.reference_files += usize::from(file.is_reference());
            stats.file_readers += readers_of(file);
            own.files_bytes += file.len_bytes();
            stats.block_hosts.add(&file.block_hosts);
            own.files_uncompressed_bytes += file.reader.uncompressed_bytes();
            stats.index_bytes += file.reader.index_bytes();
            stats.bloom_bytes += file.reader.bloom_bytes();
            stats.reader_heap_bytes += file.reader.heap_bytes() as u64;
            if let Some(created_ms) = file.created_ms() {
                let of_file = FileTimes { oldest_ms: created_ms, newest_ms: created_ms, sum_ms: created_ms, files: 1 };
                stats.file_times = stats.file_times.and(of_file);
            }
            if !file.is_reference() && file.parsed.link.is_none() {
                stats.own_files_bytes += file.len_bytes();
                stats.second_level_bytes += file.reader.second_level_bytes();
            }
            if file.reader.is_major_compacted() {
                oldest_major = oldest_major.min(file.created_ms().unwrap_or(0));
            }
        }
        for retired in &store.work.lock().retired {
            stats.max_replaced_file_readers = stats.max_replaced_file_readers.max(readers_of(&retired.file));
        }
        if let Some(mob) = &store.mob {
            stats.mob += mob.stats();
        }
        stats.files += own.files;
        stats.reference_files += own.reference_files;
        stats.max_store_files = stats.max_store_files.max(own.files);
        stats.files_bytes += own.files_bytes;
        stats.files_uncompressed_bytes += own.files_uncompressed_bytes;
        stats.stores.push(own);
    }
    stats.last_major_compaction_ms = if oldest_major == i64::MAX { 0 } else { oldest_major };
    stats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_of_files_are_those_of_all_regions_together() {
        let of = |created_ms| FileTimes { oldest_ms: created_ms, newest_ms: created_ms, sum_ms: created_ms, files: 1 };
        let times = FileTimes::default().and(of(100)).and(of(400)).and(FileTimes::default());
        assert_eq!(times.ages(1000), (600, 900, 750));
        assert_eq!(FileTimes::default().ages(1000), (0, 0, 0));
        assert_eq!(of(2000).ages(1000), (0, 0, 0), "a clock that went back");
    }
}
