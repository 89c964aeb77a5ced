//! What servers tell of themselves: plain numbers for status pages, `status` in the shell, and the master.

use bytes::Bytes;

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
    /// Bytes in memstores.
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
    /// Milliseconds of the oldest last major compaction; 0 when there was none.
    pub last_major_compaction_ms: u64,
}
