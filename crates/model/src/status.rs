//! What servers tell of themselves: plain numbers for status pages, `status` in the shell, and the master.

use crate::TableName;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Which compactions of a region wait or run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompactionState {
    /// None.
    #[default]
    None,
    /// Some of its files.
    Minor,
    /// All files of a store.
    Major,
    /// Both.
    MajorAndMinor,
}

/// How much of some files lies on the machine of their server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Locality {
    /// Bytes of the files of which is known where they are.
    pub total_bytes: u64,
    /// Of these, bytes that are on the server's machine,
    pub local_bytes: u64,
    /// and bytes that are on an SSD there.
    pub local_ssd_bytes: u64,
}

impl Locality {
    /// The part that is on the server's machine, 0 to 1; 0 where nothing is known. Follows: `HDFSBlocksDistribution#getBlockLocalityIndex`.
    pub fn part(&self) -> f32 {
        Locality::part_of(self.local_bytes, self.total_bytes)
    }

    /// The part that is on an SSD there.
    pub fn ssd_part(&self) -> f32 {
        Locality::part_of(self.local_ssd_bytes, self.total_bytes)
    }

    fn part_of(bytes: u64, all: u64) -> f32 {
        if all == 0 { 0.0 } else { bytes as f32 / all as f32 }
    }
}

impl std::ops::AddAssign for Locality {
    fn add_assign(&mut self, other: Locality) {
        self.total_bytes = self.total_bytes.saturating_add(other.total_bytes);
        self.local_bytes = self.local_bytes.saturating_add(other.local_bytes);
        self.local_ssd_bytes = self.local_ssd_bytes.saturating_add(other.local_ssd_bytes);
    }
}

/// What one open region holds and does. Counts are since it opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RegionLoad {
    /// Full name.
    pub name: Bytes,
    /// Encoded name.
    pub encoded_name: std::sync::Arc<str>,
    /// Families.
    pub stores: u32,
    /// Store files.
    pub store_files: u32,
    /// Bytes in store files as they lie on disk.
    pub store_file_size_bytes: u64,
    /// Bytes in store files before compression.
    pub store_uncompressed_size_bytes: u64,
    /// Of the bytes, those in files that are the region's own: neither references nor links.
    pub own_file_size_bytes: u64,
    /// Of those, what is in the second level of the block cache.
    pub cached_bytes: u64,
    /// Readers that hold store files.
    pub store_references: u32,
    /// Most readers that hold one file which a compaction has replaced.
    pub max_compacted_file_references: u32,
    /// Endpoints that it answers, by the Java class without its package.
    pub coprocessors: Vec<&'static str>,
    /// Bytes of cells in memstores.
    pub memstore_size_bytes: u64,
    /// Bytes of block indexes, all levels.
    pub index_size_bytes: u64,
    /// Bytes of root block indexes.
    pub root_index_size_bytes: u64,
    /// Bytes of Bloom filters.
    pub bloom_size_bytes: u64,
    /// Reads served.
    pub read_requests: u64,
    /// Reads that a filter dropped.
    pub filtered_read_requests: u64,
    /// Writes served.
    pub write_requests: u64,
    /// Cells of the compaction that runs or ran last.
    pub compacting_cells: u64,
    /// Of those, cells done.
    pub compacted_cells: u64,
    /// Highest sequence id that is in store files.
    pub complete_sequence_id: u64,
    /// The same per family.
    pub store_complete_sequence_ids: Vec<(Bytes, u64)>,
    /// When the oldest of the files that a major compaction wrote was made (milliseconds); 0 when there is none.
    pub last_major_compaction_ms: u64,
    /// Its compactions.
    pub compaction: CompactionState,
    /// Where the blocks of its store files are.
    pub locality: Locality,
}

/// A size in a unit, as HBase reports sizes: what is there at all is at least one. Follows: `HRegionServer#roundSize`.
pub fn in_units(bytes: u64, unit_bytes: u64) -> u32 {
    match bytes {
        0 => 0,
        bytes if bytes < unit_bytes => 1,
        bytes => u32::try_from(bytes / unit_bytes).unwrap_or(u32::MAX).min(i32::MAX as u32),
    }
}

/// Sums over regions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadTotals {
    /// Regions.
    pub regions: u64,
    /// Stores.
    pub stores: u64,
    /// Store files.
    pub store_files: u64,
    /// Most store files in one region.
    pub max_store_files: u64,
    /// Bytes of store files.
    pub store_file_bytes: u64,
    /// Bytes of memstores.
    pub memstore_bytes: u64,
    /// Bytes of root indexes.
    pub root_index_bytes: u64,
    /// Bytes of all index levels.
    pub index_bytes: u64,
    /// Bytes of Bloom filters.
    pub bloom_bytes: u64,
    /// Reads.
    pub reads: u64,
    /// Reads that a filter dropped.
    pub filtered_reads: u64,
    /// Writes.
    pub writes: u64,
    /// Where the blocks of store files are.
    pub locality: Locality,
}

impl LoadTotals {
    /// Adds a region.
    pub fn add(&mut self, load: &RegionLoad) {
        self.regions += 1;
        self.stores += u64::from(load.stores);
        self.store_files += u64::from(load.store_files);
        self.max_store_files = self.max_store_files.max(u64::from(load.store_files));
        self.store_file_bytes += load.store_file_size_bytes;
        self.memstore_bytes += load.memstore_size_bytes;
        self.root_index_bytes += load.root_index_size_bytes;
        self.index_bytes += load.index_size_bytes;
        self.bloom_bytes += load.bloom_size_bytes;
        self.reads += load.read_requests;
        self.filtered_reads += load.filtered_read_requests;
        self.writes += load.write_requests;
        self.locality += load.locality;
    }

    /// Over all of `loads`.
    pub fn of<'a>(loads: impl IntoIterator<Item = &'a RegionLoad>) -> LoadTotals {
        let mut totals = LoadTotals::default();
        loads.into_iter().for_each(|load| totals.add(load));
        totals
    }

    /// Over the regions of each table.
    pub fn by_table<'a>(
        loads: impl IntoIterator<Item = (&'a TableName, &'a RegionLoad)>,
    ) -> BTreeMap<&'a TableName, LoadTotals> {
        let mut tables: BTreeMap<&TableName, LoadTotals> = BTreeMap::new();
        loads.into_iter().for_each(|(table, load)| tables.entry(table).or_default().add(load));
        tables
    }

    /// Bytes of a region in the mean, memstores included; 0 without regions.
    pub fn mean_region_bytes(&self) -> u64 {
        (self.store_file_bytes + self.memstore_bytes) / self.regions.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_files_of_which_nothing_is_known_no_part_is_local() {
        let mut all = Locality::default();
        assert_eq!((all.part(), all.ssd_part()), (0.0, 0.0));
        all += Locality { total_bytes: 8, local_bytes: 4, local_ssd_bytes: 2 };
        all += Locality { total_bytes: 8, local_bytes: 0, local_ssd_bytes: 0 };
        assert_eq!((all.part(), all.ssd_part()), (0.25, 0.125));
    }

    #[test]
    fn what_is_there_is_at_least_one_unit() {
        let sizes = [0, 1, (1 << 20) - 1, 1 << 20, (2 << 20) - 1, 7 << 20, u64::MAX];
        assert_eq!(sizes.map(|bytes| in_units(bytes, 1 << 20)), [0, 1, 1, 1, 1, 7, i32::MAX as u32]);
    }
}
