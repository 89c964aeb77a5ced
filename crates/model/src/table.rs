//! Table and family descriptors: attribute maps under HBase's names, with typed readings.
//!
//! Always true: an attribute that nobody here knows is kept and given back as it came. Follows:
//! `TableDescriptorBuilder`, `ColumnFamilyDescriptorBuilder`.

use crate::{Durability, TableName};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Attributes of a table or family, by name.
pub type Attributes = BTreeMap<Bytes, Bytes>;

fn texts(attributes: &Attributes) -> impl Iterator<Item = (&str, &str)> {
    attributes.iter().filter_map(|(key, value)| Some((str::from_utf8(key).ok()?, str::from_utf8(value).ok()?)))
}

fn pairs(configuration: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    configuration.iter().map(|(key, value)| (key.as_str(), value.as_str()))
}

macro_rules! named_enum {
    ($(#[$meta:meta])* $name:ident, default $default:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        pub enum $name { $($(#[$vmeta])* $variant),* }
        impl $name {
            /// The value called `text`, in any case.
            pub fn parse(text: &str) -> Option<$name> {
                $(if text.eq_ignore_ascii_case($text) { return Some($name::$variant); })*
                None
            }
            /// HBase's name.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }
        }
        impl Default for $name {
            fn default() -> $name { $name::$default }
        }
    };
}

named_enum! {
    /// Codec of a store file's blocks.
    Compression, default None {
        /// Uncompressed.
        None = "NONE", /// zlib in gzip framing.
        Gz = "GZ", /// Snappy.
        Snappy = "SNAPPY", /// LZ4.
        Lz4 = "LZ4", /// Zstandard.
        Zstd = "ZSTD", /// LZO1X.
        Lzo = "LZO", /// bzip2.
        Bzip2 = "BZIP2", /// LZMA.
        Lzma = "LZMA", /// Brotli.
        Brotli = "BROTLI",
    }
}
named_enum! {
    /// What a store file's Bloom filter is asked.
    BloomType, default Row {
        /// No filter.
        None = "NONE", /// By row.
        Row = "ROW", /// By row and qualifier.
        RowCol = "ROWCOL", /// By the first bytes of the row.
        RowPrefixFixedLength = "ROWPREFIX_FIXED_LENGTH",
    }
}
named_enum! {
    /// How keys are encoded in data blocks.
    DataBlockEncoding, default None {
        /// Plainly.
        None = "NONE", /// Shared prefixes.
        Prefix = "PREFIX", /// Differences.
        Diff = "DIFF", /// Differences, faster.
        FastDiff = "FAST_DIFF", /// Plainly, with an index of rows.
        RowIndexV1 = "ROW_INDEX_V1",
    }
}
named_enum! {
    /// Whether deleted cells stay readable.
    KeepDeletedCells, default False {
        /// Masked cells go at a major compaction.
        False = "FALSE", /// They stay, as versions do.
        True = "TRUE", /// They stay until their time to live is over.
        Ttl = "TTL",
    }
}

/// A column family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilyDescriptor {
    /// Name.
    pub name: Bytes,
    /// Attributes as stored.
    pub attributes: Attributes,
    /// Overrides of configuration keys.
    pub configuration: BTreeMap<String, String>,
}

/// `TTL` of a family that keeps its cells for ever, in seconds.
pub const TTL_FOREVER_SECONDS: u32 = i32::MAX as u32;

impl FamilyDescriptor {
    /// A family with HBase 2.6's default attributes, as its Java client would send them.
    pub fn new(name: impl Into<Bytes>) -> FamilyDescriptor {
        let defaults = [
            ("INDEX_BLOCK_ENCODING", "NONE"),
            ("VERSIONS", "1"),
            ("KEEP_DELETED_CELLS", "FALSE"),
            ("DATA_BLOCK_ENCODING", "NONE"),
            ("TTL", "2147483647"),
            ("MIN_VERSIONS", "0"),
            ("REPLICATION_SCOPE", "0"),
            ("BLOOMFILTER", "ROW"),
            ("IN_MEMORY", "false"),
            ("COMPRESSION", "NONE"),
            ("BLOCKCACHE", "true"),
            ("BLOCKSIZE", "65536"),
        ];
        let attributes = defaults.into_iter().map(|(k, v)| (Bytes::from(k), Bytes::from(v))).collect();
        FamilyDescriptor { name: name.into(), attributes, configuration: BTreeMap::new() }
    }

    /// Sets an attribute.
    pub fn with(mut self, key: &'static str, value: impl Into<String>) -> FamilyDescriptor {
        self.attributes.insert(Bytes::from(key), Bytes::from(value.into()));
        self
    }

    /// What it says of configuration keys; of one that is named twice, the later counts. HBase looks among a family's
    /// attributes before it looks into its CONFIGURATION. Follows: `StoreUtils#createStoreConfiguration`.
    pub fn overrides(&self) -> impl Iterator<Item = (&str, &str)> {
        pairs(&self.configuration).chain(texts(&self.attributes))
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.attributes.get(key.as_bytes()).and_then(|v| std::str::from_utf8(v).ok())
    }

    fn number(&self, key: &str, default: u64) -> u64 {
        self.text(key).and_then(|t| t.trim().parse().ok()).unwrap_or(default)
    }

    fn flag(&self, key: &str, default: bool) -> bool {
        self.text(key).map_or(default, |t| t.eq_ignore_ascii_case("true"))
    }

    /// Newest versions kept, at least 1.
    pub fn max_versions(&self) -> u32 {
        self.number("VERSIONS", 1).clamp(1, i32::MAX as u64) as u32
    }

    /// Versions kept even when expired.
    pub fn min_versions(&self) -> u32 {
        self.number("MIN_VERSIONS", 0).min(i32::MAX as u64) as u32
    }

    /// Time to live in milliseconds; `None` for ever.
    pub fn ttl_ms(&self) -> Option<i64> {
        let seconds = self.number("TTL", u64::from(TTL_FOREVER_SECONDS));
        (seconds < u64::from(TTL_FOREVER_SECONDS)).then_some(seconds as i64 * 1000)
    }

    /// Whether deleted cells stay readable.
    pub fn keep_deleted_cells(&self) -> KeepDeletedCells {
        self.text("KEEP_DELETED_CELLS").and_then(KeepDeletedCells::parse).unwrap_or_default()
    }

    /// Deletes mask by arrival instead of by timestamp alone.
    pub fn new_version_behavior(&self) -> bool {
        self.flag("NEW_VERSION_BEHAVIOR", false)
    }

    /// Codec of store files.
    pub fn compression(&self) -> Compression {
        self.text("COMPRESSION").and_then(Compression::parse).unwrap_or_default()
    }

    /// Codec that somebody chose for the store files; `None` where it is NONE, which clients send when nobody did.
    pub fn compression_chosen(&self) -> Option<Compression> {
        Some(self.compression()).filter(|codec| *codec != Compression::None)
    }

    /// As [`FamilyDescriptor::compression_chosen`], for compacted store files. Clients send nothing of these by themselves: NONE is a choice.
    pub fn compression_compact_chosen(&self, major: bool) -> Option<Compression> {
        self.text(if major { "COMPRESSION_COMPACT_MAJOR" } else { "COMPRESSION_COMPACT_MINOR" })
            .or_else(|| self.text("COMPRESSION_COMPACT"))
            .and_then(Compression::parse)
            .or_else(|| self.compression_chosen())
    }

    /// Encoding of data blocks.
    pub fn data_block_encoding(&self) -> DataBlockEncoding {
        self.text("DATA_BLOCK_ENCODING").and_then(DataBlockEncoding::parse).unwrap_or_default()
    }

    /// Bloom filter.
    pub fn bloom_type(&self) -> BloomType {
        self.text("BLOOMFILTER").and_then(BloomType::parse).unwrap_or_default()
    }

    /// Bytes of the row that a ROWPREFIX_FIXED_LENGTH filter hashes.
    pub fn bloom_prefix_length(&self) -> Option<u32> {
        const KEY: &str = "RowPrefixBloomFilter.prefix_length";
        self.text(KEY).or_else(|| self.configuration.get(KEY).map(String::as_str)).and_then(|t| t.trim().parse().ok())
    }

    /// Data block size before compression.
    pub fn block_size_bytes(&self) -> u32 {
        self.number("BLOCKSIZE", 65536).clamp(1, 1 << 30) as u32
    }

    /// Whether reads may cache blocks.
    pub fn block_cache_enabled(&self) -> bool {
        self.flag("BLOCKCACHE", true)
    }

    /// Whether cached blocks have priority.
    pub fn in_memory(&self) -> bool {
        self.flag("IN_MEMORY", false)
    }

    /// Whether IN_MEMORY_COMPACTION names a policy by which HBase compacts a memstore before it is flushed.
    pub fn compacts_in_memory(&self) -> bool {
        self.text("IN_MEMORY_COMPACTION").is_some_and(|policy| !policy.trim().eq_ignore_ascii_case("NONE"))
    }

    /// Whether written data blocks are cached at once.
    pub fn cache_data_on_write(&self) -> bool {
        self.flag("CACHE_DATA_ON_WRITE", false)
    }

    /// Whether blocks of the index are cached when they are written.
    pub fn cache_index_on_write(&self) -> bool {
        self.flag("CACHE_INDEX_ON_WRITE", false)
    }

    /// Whether chunks of Bloom filters are cached when they are written.
    pub fn cache_blooms_on_write(&self) -> bool {
        self.flag("CACHE_BLOOMS_ON_WRITE", false)
    }

    /// Whether store files are read into the cache when they are opened.
    pub fn prefetch_blocks_on_open(&self) -> bool {
        self.flag("PREFETCH_BLOCKS_ON_OPEN", false)
    }

    /// Whether the cache forgets store files when they are closed.
    pub fn evict_blocks_on_close(&self) -> bool {
        self.flag("EVICT_BLOCKS_ON_CLOSE", false)
    }

    /// Copies that a distributed file system is to keep of each store file; `None` leaves it to the file system.
    pub fn dfs_replication(&self) -> Option<u32> {
        self.text("DFS_REPLICATION").and_then(|t| t.trim().parse().ok()).filter(|copies| *copies > 0)
    }

    /// The storage policy that it names, if it does.
    pub fn storage_policy(&self) -> Option<&str> {
        self.text("STORAGE_POLICY")
    }

    /// Whether tags are compressed within encoded blocks.
    pub fn compress_tags(&self) -> bool {
        self.flag("COMPRESS_TAGS", true)
    }

    /// 0 local, 1 replicated.
    pub fn replication_scope(&self) -> u32 {
        self.number("REPLICATION_SCOPE", 0).min(1) as u32
    }

    /// Whether large values go to MOB files.
    pub fn is_mob(&self) -> bool {
        self.flag("IS_MOB", false)
    }

    /// Values larger than this go to MOB files.
    pub fn mob_threshold_bytes(&self) -> u64 {
        self.number("MOB_THRESHOLD", 100 * 1024)
    }
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDescriptor {
    /// Name.
    pub name: TableName,
    /// Families by name.
    pub families: BTreeMap<Bytes, FamilyDescriptor>,
    /// Attributes as stored.
    pub attributes: Attributes,
    /// Overrides of configuration keys.
    pub configuration: BTreeMap<String, String>,
}

impl TableDescriptor {
    /// A table with these families.
    pub fn new(name: TableName, families: impl IntoIterator<Item = FamilyDescriptor>) -> TableDescriptor {
        let families = families.into_iter().map(|f| (f.name.clone(), f)).collect();
        let attributes = BTreeMap::from([(Bytes::from("IS_META"), Bytes::from("false"))]);
        TableDescriptor { name, families, attributes, configuration: BTreeMap::new() }
    }

    /// hbase:meta as HBase 2.6 has it.
    pub fn meta() -> TableDescriptor {
        let family = |name: &'static str, versions: &str| {
            FamilyDescriptor::new(name)
                .with("VERSIONS", versions)
                .with("IN_MEMORY", "true")
                .with("BLOCKSIZE", "8192")
                .with("BLOOMFILTER", "ROWCOL")
                .with("DATA_BLOCK_ENCODING", "ROW_INDEX_V1")
        };
        let barrier = family("rep_barrier", "2147483647").with("BLOCKSIZE", "65536");
        let families = [family("info", "3"), family("table", "3"), barrier];
        let mut table = TableDescriptor::new(TableName::meta(), families);
        table.attributes.insert(Bytes::from("IS_META"), Bytes::from("true"));
        let endpoint = "|org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint|536870911|";
        table.attributes.insert(Bytes::from("coprocessor$1"), Bytes::from(endpoint));
        table
    }

    /// hbase:namespace as HBase 2.6 has it.
    pub fn namespace_table() -> TableDescriptor {
        let family =
            FamilyDescriptor::new("info").with("VERSIONS", "10").with("IN_MEMORY", "true").with("BLOCKSIZE", "8192");
        TableDescriptor::new(TableName::namespace_table(), [family])
    }

    /// hbase:slowlog as HBase 2.6 has it.
    pub fn slowlog_table() -> TableDescriptor {
        let family = FamilyDescriptor::new("info").with("VERSIONS", "1").with("BLOCKCACHE", "false");
        let mut table = TableDescriptor::new(TableName::slowlog_table(), [family.with("REPLICATION_SCOPE", "0")]);
        table.attributes.insert(Bytes::from("REGION_REPLICATION"), Bytes::from("1"));
        table
    }

    /// What it says of configuration keys; of one that is named twice, the later counts. HBase has one map for a
    /// table's attributes and CONFIGURATION, into which the latter go last. Follows: `ProtobufUtil#toTableDescriptor`.
    pub fn overrides(&self) -> impl Iterator<Item = (&str, &str)> {
        texts(&self.attributes).chain(pairs(&self.configuration))
    }

    /// What it says under this key, be it an attribute or in its CONFIGURATION. Follows: `TableDescriptor#getValue`.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.configuration.get(key).map(String::as_str).or_else(|| self.text(key))
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.attributes.get(key.as_bytes()).and_then(|v| std::str::from_utf8(v).ok())
    }

    fn size(&self, key: &str) -> Option<u64> {
        self.text(key).and_then(|t| t.trim().parse::<i64>().ok()).and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0)
    }

    /// What the table says of durability; `UseDefault` where it says nothing.
    pub fn declared_durability(&self) -> Durability {
        match self.text("DURABILITY") {
            Some("SKIP_WAL") => Durability::SkipWal,
            Some("ASYNC_WAL") => Durability::AsyncWal,
            Some("SYNC_WAL") => Durability::SyncWal,
            Some("FSYNC_WAL") => Durability::FsyncWal,
            _ => Durability::UseDefault,
        }
    }

    /// Durability of mutations that leave it to the table.
    pub fn durability(&self) -> Durability {
        match self.declared_durability() {
            Durability::UseDefault => Durability::SyncWal,
            said => said,
        }
    }

    /// Whether writes are refused.
    pub fn read_only(&self) -> bool {
        self.text("READONLY").is_some_and(|t| t.eq_ignore_ascii_case("true"))
    }

    /// Memstore size at which a region is flushed; `None` leaves it to the server.
    pub fn flush_size_bytes(&self) -> Option<u64> {
        self.size("MEMSTORE_FLUSHSIZE")
    }

    /// Store size at which a region is split; `None` leaves it to the server.
    pub fn max_file_size_bytes(&self) -> Option<u64> {
        self.size("MAX_FILESIZE")
    }

    /// Seconds that the snapshot is kept which is taken before the table is deleted or truncated or loses a family, where
    /// the table says so. Follows: `RecoverySnapshotUtils#getRecoverySnapshotTtl`.
    pub fn recovery_snapshot_ttl_seconds(&self) -> Option<i64> {
        self.value("RECOVERY_SNAPSHOT_TTL").and_then(|text| text.parse().ok())
    }

    /// Whether the server may compact on its own.
    pub fn compaction_enabled(&self) -> bool {
        self.text("COMPACTION_ENABLED").is_none_or(|t| t.eq_ignore_ascii_case("true"))
    }

    /// Whether regions may be split.
    pub fn split_enabled(&self) -> bool {
        self.text("SPLIT_ENABLED").is_none_or(|t| t.eq_ignore_ascii_case("true"))
    }

    /// Whether regions may be merged.
    pub fn merge_enabled(&self) -> bool {
        self.text("MERGE_ENABLED").is_none_or(|t| t.eq_ignore_ascii_case("true"))
    }

    /// The class that it names of the policy which says what a flush takes.
    pub fn flush_policy(&self) -> Option<&str> {
        self.value("FLUSH_POLICY")
    }

    /// Bytes of a family's memstore above which the policy has it flushed alone, where the table says so. Follows:
    /// `FlushLargeStoresPolicy#setFlushSizeLowerBounds`.
    pub fn family_flush_bound_bytes(&self) -> Option<i64> {
        self.value("hbase.hregion.percolumnfamilyflush.size.lower.bound").and_then(|text| text.trim().parse().ok())
    }

    /// How urgent its regions are, 0 as a rule.
    pub fn priority(&self) -> i32 {
        self.value("PRIORITY").and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }

    /// Copies of each region.
    pub fn region_replication(&self) -> u32 {
        self.text("REGION_REPLICATION").and_then(|t| t.trim().parse().ok()).unwrap_or(1).max(1)
    }

    /// Whether read replicas are told of edits before these are in files (REGION_MEMSTORE_REPLICATION).
    pub fn region_memstore_replication(&self) -> bool {
        self.text("REGION_MEMSTORE_REPLICATION").is_none_or(|text| text.trim().eq_ignore_ascii_case("true"))
    }
}
