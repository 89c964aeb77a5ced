//! Settings of regions under HBase's keys; [`RegionSettings`] is what they come to for one server, table or family.

mod caching;
mod compaction;
mod resolved;
mod split;
mod stripes;
mod tiers;

use base::size::{GIB, KIB, MIB};
use base::{Setting, SettingRow, TextSetting};
use hfile::Compression;
use model::FlushPolicyKind;
use rootdir::tracker;

pub use caching::{CACHE_BLOOMS_ON_WRITE, CACHE_INDEX_ON_WRITE, CacheSwitches, EVICT_ON_CLOSE, PREFETCH_ON_OPEN};
pub use compaction::{CompactionPolicy, OffPeakHours};
pub use resolved::{RegionSettings, SharedSettings};
pub use split::{
    BUSY_BLOCKED_REQUESTS, BUSY_MIN_AGE, BUSY_WINDOW, MAX_FILE_SIZE_JITTER, SPLIT_BY_WHOLE_REGION, SPLIT_INITIAL_SIZE,
    SPLIT_POLICY, SPLIT_RESTRICTION_DELIMITER, SPLIT_RESTRICTION_LENGTH, SPLIT_RESTRICTION_TYPE, SplitRestriction,
};
pub use stripes::*;
pub use tiers::*;

/// Memstore bytes at which a region is flushed.
pub const FLUSH_SIZE: Setting<u64> = Setting {
    key: "hbase.hregion.memstore.flush.size",
    default: 128 * MIB,
    min: 1,
    max: 1024 * GIB,
    unit: "bytes",
    doc: "A region whose memstores hold this many bytes is flushed. More means fewer, larger store files, more memory \
          and a longer replay after a crash.",
};
/// Whether read replicas are told of what is written.
pub const REPLICA_REPLICATION: Setting<bool> = Setting {
    key: "hbase.region.replica.replication.enabled",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Tell read replicas on other servers of what is written, as soon as the log has it; else they show what is in store files. To be the \
          same on all region servers.",
};
/// Whether read replicas of hbase:meta are told of what is written.
pub const META_REPLICA_REPLICATION: Setting<bool> = Setting {
    key: "hbase.region.replica.replication.catalog.enabled",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Tell read replicas of hbase:meta on other servers of what is written, as hbase.region.replica.replication.enabled does of other tables.",
};
/// What may wait to be told.
pub const REPLICA_BUFFER: Setting<u64> = Setting {
    key: "hbase.region.replica.replication.buffersize",
    default: 128 * MIB,
    min: KIB,
    max: 1024 * GIB,
    unit: "bytes",
    doc: "What may wait to be told to read replicas, of all regions of a server; no more than a sixteenth of the memory budget, 1 MiB at least. \
          Where there is more, it is forgotten, and the region is flushed, at most every 30 s, so that its replicas find the rest in files.",
};
/// Multiple of the flush size at which writes are refused.
pub const BLOCK_MULTIPLIER: Setting<u64> = Setting {
    key: "hbase.hregion.memstore.block.multiplier",
    default: 4,
    min: 1,
    max: 1000,
    unit: "count",
    doc: "A region refuses writes (RegionTooBusyException) while its memstores hold this many times the flush size.",
};
/// Store size that a family needs to be flushed on its own.
pub const FLUSH_LOWER_BOUND_MIN: Setting<u64> = Setting {
    key: "hbase.hregion.percolumnfamilyflush.size.lower.bound.min",
    default: 16 * MIB,
    min: 0,
    max: 1024 * GIB,
    unit: "bytes",
    doc: "When a region with several families is flushed for its size, only families with at least this much (or \
          flush size / number of families, if that is more) are written; all are when none is that large.",
};
/// Edits after which a region is flushed.
pub const FLUSH_PER_CHANGES: Setting<u64> = Setting {
    key: "hbase.regionserver.flush.per.changes",
    default: 30_000_000,
    min: 1,
    max: 1_000_000_000,
    unit: "count",
    doc: "A region is flushed after this many edits whatever their size, to bound its replay.",
};
/// Age of the oldest unflushed edit at which a region is flushed.
pub const PERIODIC_FLUSH_INTERVAL: Setting<u64> = Setting {
    key: "hbase.regionserver.optionalcacheflushinterval",
    default: 3_600_000,
    min: 0,
    max: i64::MAX as u64,
    unit: "ms",
    doc: "A region whose oldest edit in memory is older than this is flushed; 0 switches that off.",
};
/// Files that make a compaction worth it.
pub const COMPACTION_MIN: Setting<u64> = Setting {
    key: "hbase.hstore.compaction.min",
    default: 3,
    min: 2,
    max: 1000,
    unit: "count",
    doc: "Files that a minor compaction needs at least. Fewer means faster reads and more rewriting.",
};
/// Old name of [`COMPACTION_MIN`].
pub const COMPACTION_THRESHOLD: Setting<u64> = Setting {
    key: "hbase.hstore.compactionThreshold",
    default: 3,
    min: 2,
    max: 1000,
    unit: "count",
    doc: "Old name of hbase.hstore.compaction.min, read when that one is not given.",
};
/// Files that one compaction takes at most.
pub const COMPACTION_MAX: Setting<u64> = Setting {
    key: "hbase.hstore.compaction.max",
    default: 10,
    min: 2,
    max: 1000,
    unit: "count",
    doc: "Files that one minor compaction takes at most.",
};
/// Files below this size are always eligible.
pub const COMPACTION_MIN_SIZE: Setting<u64> = Setting {
    key: "hbase.hstore.compaction.min.size",
    default: 128 * MIB,
    min: 0,
    max: i64::MAX as u64,
    unit: "bytes",
    doc: "Files smaller than this are compacted whatever the ratio says. The flush size when not given.",
};
/// Files above this size are never compacted by a minor compaction.
pub const COMPACTION_MAX_SIZE: Setting<u64> = Setting {
    key: "hbase.hstore.compaction.max.size",
    default: i64::MAX as u64,
    min: 1,
    max: i64::MAX as u64,
    unit: "bytes",
    doc: "Files larger than this are left out of minor compactions.",
};
/// How much larger than the rest of a selection a file may be.
pub const COMPACTION_RATIO: Setting<f64> = Setting {
    key: "hbase.hstore.compaction.ratio",
    default: 1.2,
    min: 0.0,
    max: 1000.0,
    unit: "fraction",
    doc: "A file is taken when it is at most this many times the others' total. More compacts more eagerly.",
};
/// [`COMPACTION_RATIO`] at night.
pub const COMPACTION_RATIO_OFFPEAK: Setting<f64> = Setting {
    key: "hbase.hstore.compaction.ratio.offpeak",
    default: 5.0,
    min: 0.0,
    max: 1000.0,
    unit: "fraction",
    doc: "Takes the place of hbase.hstore.compaction.ratio from hbase.offpeak.start.hour to hbase.offpeak.end.hour.",
};
/// When the off-peak hours begin.
pub const OFFPEAK_START_HOUR: Setting<i64> = Setting {
    key: "hbase.offpeak.start.hour",
    default: -1,
    min: -1,
    max: 23,
    unit: "",
    doc: "The first hour of the day, in UTC, in which compactions are eager; -1: there is none. (HBase takes its own time zone.)",
};
/// When they end.
pub const OFFPEAK_END_HOUR: Setting<i64> = Setting {
    key: "hbase.offpeak.end.hour",
    default: -1,
    min: -1,
    max: 23,
    unit: "",
    doc: "The first hour of the day, in UTC, after hbase.offpeak.start.hour in which compactions are not eager any more; it may be on the next day.",
};
/// How minor compactions choose files.
pub const COMPACTION_POLICY: Setting<CompactionPolicy> = Setting {
    key: "hbase.hstore.defaultengine.compactionpolicy.class",
    default: CompactionPolicy::Exploring,
    min: CompactionPolicy::Exploring,
    max: CompactionPolicy::Fifo,
    unit: "",
    doc: "How compactions choose files, by the name of HBase's class, with or without its package. ExploringCompactionPolicy: the run of \
          neighbours within the ratio that gets rid of the most files for the least bytes. RatioBasedCompactionPolicy: all from the oldest \
          within the ratio on. FIFOCompactionPolicy: none; files whose cells are all past the family's TTL are dropped.",
};
/// Time between major compactions.
pub const MAJOR_COMPACTION_INTERVAL: Setting<u64> = Setting {
    key: "hbase.hregion.majorcompaction",
    default: 604_800_000,
    min: 0,
    max: i64::MAX as u64,
    unit: "ms",
    doc: "A store whose oldest file is older than this is rewritten as one file; 0 leaves it to the operator.",
};
/// Spread of [`MAJOR_COMPACTION_INTERVAL`].
pub const MAJOR_COMPACTION_JITTER: Setting<f64> = Setting {
    key: "hbase.hregion.majorcompaction.jitter",
    default: 0.5,
    min: 0.0,
    max: 1.0,
    unit: "fraction",
    doc: "Each store's interval between major compactions is moved by up to this fraction either way.",
};
/// Time that delete markers outlive their major compaction.
pub const TIME_TO_PURGE_DELETES: Setting<u64> = Setting {
    key: "hbase.hstore.time.to.purge.deletes",
    default: 0,
    min: 0,
    max: i64::MAX as u64,
    unit: "ms",
    doc: "Delete markers younger than this survive a major compaction.",
};
/// Files at which flushes wait for a compaction.
pub const BLOCKING_STORE_FILES: Setting<u64> = Setting {
    key: "hbase.hstore.blockingStoreFiles",
    default: 16,
    min: 2,
    max: 10_000,
    unit: "count",
    doc: "A store with more files than this is not flushed again before it was compacted, or hbase.hstore.blockingWaitTime is over.",
};
/// Longest time for which a flush waits for a compaction.
pub const BLOCKING_WAIT: Setting<u64> = Setting {
    key: "hbase.hstore.blockingWaitTime",
    default: 90_000,
    min: 0,
    max: 86_400_000,
    unit: "ms",
    doc: "So long a flush waits where a store has more than hbase.hstore.blockingStoreFiles files, unless memory is short or it was asked for. \
          Meanwhile the memstore grows, and when it is full writes are refused.",
};
/// Store size at which a region is split.
pub const MAX_FILE_SIZE: Setting<u64> = Setting {
    key: "hbase.hregion.max.filesize",
    default: 10 * GIB,
    min: 1,
    max: i64::MAX as u64,
    unit: "bytes",
    doc: "Store size at which a region is split; how soon a table with few regions is, hbase.regionserver.region.split.policy says.",
};
/// Compaction size from which it counts as large.
pub const COMPACTION_THROTTLE_POINT: Setting<u64> = Setting {
    key: "hbase.regionserver.thread.compaction.throttle",
    default: 2_684_354_560,
    min: 0,
    max: i64::MAX as u64,
    unit: "bytes",
    doc: "Compactions of more than this run in the large queue, so that small ones do not wait for them.",
};
/// Largest cell.
pub const MAX_CELL_SIZE: Setting<i64> = Setting {
    key: "hbase.server.keyvalue.maxsize",
    default: 10_485_760,
    min: i64::MIN,
    max: i64::MAX,
    unit: "bytes",
    doc: "A cell larger than this is refused; 0 or less switches the check off.",
};
/// Whether a put may share the tick of a delete before it.
pub const HBASE_TICK_SEMANTICS: Setting<bool> = Setting {
    key: "basalt.hbase.tick.semantics",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "HBase stamps a put that follows a delete of its row within a millisecond so that the delete's marker \
          hides it, and an increment or append one millisecond after what it changes, however far ahead of the \
          clock. Off, such a put, increment or append takes the next millisecond and is seen, and none is stamped \
          ahead for what was only incremented or appended to.",
};
/// How long finished nonces are remembered.
pub const NONCE_TIMEOUT_MS: Setting<u64> = Setting {
    key: "hbase.server.hashNonce.evictTimeout",
    default: 30 * 60_000,
    min: 1_000,
    max: 86_400_000,
    unit: "ms",
    doc: "How long the nonce of a finished increment or append is remembered, so that its retry counts once.",
};
/// How far in the future a cell's timestamp may lie.
pub const TIMESTAMP_SLOP: Setting<i64> = Setting {
    key: "hbase.hregion.keyvalue.timestamp.slop.millisecs",
    default: i64::MAX,
    min: 0,
    max: i64::MAX,
    unit: "ms",
    doc: "A cell stamped further in the future than this is refused; the maximum switches the check off.",
};
/// Largest row.
pub const MAX_ROW_SIZE: Setting<u64> = Setting {
    key: "hbase.table.max.rowsize",
    default: GIB,
    min: 1,
    max: i64::MAX as u64,
    unit: "bytes",
    doc: "A read that gathers more than this of one row fails with RowTooBigException.",
};
/// Cells between two looks at the clock.
pub const CELLS_PER_HEARTBEAT_CHECK: Setting<u64> = Setting {
    key: "hbase.cells.scanned.per.heartbeat.check",
    default: 10_000,
    min: 1,
    max: 1_000_000_000,
    unit: "count",
    doc: "A scan looks at the clock after this many cells.",
};
/// Whether scans read non-essential families late by default.
pub const ON_DEMAND_FAMILIES: Setting<bool> = Setting {
    key: "hbase.hregion.scan.loadColumnFamiliesOnDemand",
    default: true,
    min: false,
    max: true,
    unit: "",
    doc: "Families that the filter does not need are read only for rows that it passes, unless the scan says otherwise.",
};
/// Whether files whose cells are all expired are dropped unread.
pub const DELETE_EXPIRED_FILES: Setting<bool> = Setting {
    key: "hbase.store.delete.expired.storefile",
    default: true,
    min: false,
    max: true,
    unit: "",
    doc: "Store files whose newest cell is past the family's TTL are removed without being read.",
};
/// Days that cells keep their sequence ids.
pub const KEEP_SEQ_ID_DAYS: Setting<u64> = Setting {
    key: "hbase.hstore.compaction.keep.seqId.period",
    default: 5,
    min: 0,
    max: 36_500,
    unit: "days",
    doc: "A compaction of all files drops the sequence ids of cells from files older than this, which makes files \
          smaller and reads a little cheaper.",
};
/// Whether a major compaction leaves the operating system's memory to others.
pub const MAJOR_DROPS_PAGES: Setting<bool> = Setting {
    key: "hbase.regionserver.majorcompaction.pagecache.drop",
    default: true,
    min: false,
    max: true,
    unit: "",
    doc: "A compaction of all files of a store, 64 MiB or more together, writes the new file past the page cache (O_DIRECT, where the file \
          system can), which takes much less of the processor, and lets go of what it has read. Blocks that readers had in the block \
          cache stay there under the new file; others come from the disk when they are read first. In HBase it has no effect on a local disk.",
};
/// Whether a minor compaction leaves the operating system's memory to others.
pub const MINOR_DROPS_PAGES: Setting<bool> = Setting {
    key: "hbase.regionserver.minorcompaction.pagecache.drop",
    default: true,
    min: false,
    max: true,
    unit: "",
    doc: "As hbase.regionserver.majorcompaction.pagecache.drop, for compactions of some of a store's files.",
};
/// Whether what a flush writes goes into the block cache.
pub const CACHE_ON_WRITE: Setting<bool> = Setting {
    key: "hbase.rs.cacheblocksonwrite",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "All blocks that a flush writes go into the block cache, as those of a family with CACHE_DATA_ON_WRITE do.",
};
/// Whether what a compaction writes goes into the block cache.
pub const CACHE_COMPACTED: Setting<bool> = Setting {
    key: "hbase.rs.cachecompactedblocksonwrite",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "All blocks that a compaction writes go into the block cache. Without it those do whose cells readers had there before.",
};
/// The largest compaction whose output goes into the block cache.
pub const CACHE_COMPACTED_MAX: Setting<u64> = Setting {
    key: "hbase.rs.cachecompactedblocksonwrite.threshold",
    default: i64::MAX as u64,
    min: 0,
    max: i64::MAX as u64,
    unit: "bytes",
    doc: "hbase.rs.cachecompactedblocksonwrite holds for compactions of files of at most so many bytes together.",
};
/// Whether damaged recovered edits are passed over.
pub const SKIP_ERRORS: Setting<bool> = Setting {
    key: "hbase.hregion.edits.replay.skip.errors",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "A recovered.edits file that cannot be read is put aside and the region opens without it. This loses writes.",
};
/// Codec of files whose family chose none.
pub const DEFAULT_COMPRESSION: Setting<Compression> = Setting {
    key: "basalt.hfile.compression.default",
    default: Compression::Snappy,
    min: Compression::Lzo,
    max: Compression::Brotli,
    unit: "",
    doc: "Codec of new store files and MOB files of a family that says COMPRESSION NONE, as clients do when nobody chose. A file whose first \
          data block it makes less than an eighth smaller is written plainly. A codec that the family names holds as ever, a \
          COMPRESSION_COMPACT of NONE too, and tables of the namespace hbase are always plain. NONE writes as HBase does: set it, and \
          run major_compact, before a directory goes to an HBase without Snappy.",
};
/// Where store files go whose family names no policy.
pub const BLOCK_STORAGE_POLICY: TextSetting = TextSetting::any(
    "hbase.hstore.block.storage.policy",
    "NONE",
    "Storage policy of the store files of families without a STORAGE_POLICY of their own: NONE (basalt.volumes.place.* say where), a name of \
     HDFS's (HOT and WARM: the root directory's disk; ALL_SSD and ONE_SSD: the first tier of class ssd in basalt.volumes; COLD: the first \
     of class hdd; LAZY_PERSIST: the first of class ram) or the name of a tier. Holds for files that are written from then on.",
);
/// Where store files go whose family and store name no policy.
pub const REGION_STORAGE_POLICY: TextSetting = TextSetting::any(
    "hbase.hregion.block.storage.policy",
    "NONE",
    "Storage policy of a region's store files where neither a family's STORAGE_POLICY nor hbase.hstore.block.storage.policy names one.",
);
/// Whether files are told hot from cold.
pub const DATA_TIERING: Setting<bool> = Setting {
    key: "hbase.regionserver.datatiering.enable",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Whether hbase.hstore.datatiering.type of a family counts.",
};
/// How files are told hot from cold.
pub const DATA_TIERING_TYPE: TextSetting = TextSetting {
    key: "hbase.hstore.datatiering.type",
    default: "NONE",
    legal: Some("NONE, TIME_RANGE or CUSTOM"),
    is_legal: |text| ["NONE", "TIME_RANGE", "CUSTOM"].contains(&text.trim().to_ascii_uppercase().as_str()),
    doc: "TIME_RANGE: a file whose newest cell is older than hbase.hstore.datatiering.hot.age.millis is cold: its blocks are not admitted to the \
          second level of the block cache, and those there leave first. CUSTOM: the same by the values that a CustomTieredStoreEngine found in its rows. Said by a family as a rule; holds for files that are opened from then on.",
};
/// Age at which a file is cold.
pub const DATA_TIERING_HOT_AGE: Setting<u64> = Setting {
    key: "hbase.hstore.datatiering.hot.age.millis",
    default: 604_800_000,
    min: 0,
    max: i64::MAX as u64,
    unit: "ms",
    doc: "A file whose newest cell is older than this is cold, with hbase.hstore.datatiering.type TIME_RANGE, or whose greatest tiering value is, with CUSTOM.",
};
/// Bytes between two looks at whether a compaction should stop.
pub const COMPACTION_CHECK_INTERVAL: Setting<u64> = Setting {
    key: "hbase.hstore.close.check.interval",
    default: 10 * MIB,
    min: 4 * KIB,
    max: GIB,
    unit: "bytes",
    doc: "A compaction asks whether it should stop after writing this many bytes.",
};
/// Whether new files are read back.
pub const VALIDATE_READ_FULLY: Setting<bool> = Setting {
    key: "hbase.hstore.validate.read_fully",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "A flush or compaction reads its new file back, block by block, before anybody hears of it: one with a wrong bit is given up, and \
          a compaction's inputs stay. Costs a read of every new file, from the page cache mostly.",
};
/// Whether files to be loaded are read through first.
pub const VERIFY_BULK_LOAD: Setting<bool> = Setting {
    key: "hbase.hstore.bulkload.verify",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Every cell of a file to be bulk-loaded is read first, to see that rows are in order and of one family.",
};
/// Whether a bulk load asks for a compaction.
pub const COMPACT_AFTER_BULK_LOAD: Setting<bool> = Setting {
    key: "hbase.compaction.after.bulkload.enable",
    default: true,
    min: false,
    max: true,
    unit: "",
    doc: "After a bulk load, stores that have enough files for a compaction are compacted.",
};

/// Which families a flush takes.
pub const FLUSH_POLICY: TextSetting = TextSetting {
    key: "hbase.regionserver.flush.policy",
    default: "org.apache.hadoop.hbase.regionserver.FlushAllLargeStoresPolicy",
    legal: Some("the name of one of HBase's flush policies"),
    is_legal: |text| FlushPolicyKind::parse(text).is_some(),
    doc: "Which families a flush takes that nobody asked for by name, by HBase's class, with or without its package; a table's FLUSH_POLICY counts \
          more. FlushAllLargeStoresPolicy: those with large memstores, or all if none is large. FlushNonSloppyStoresFirstPolicy: the same here. \
          FlushAllStoresPolicy: all.",
};

/// Who says which files are a store's.
pub const FILE_TRACKER: TextSetting = TextSetting {
    key: tracker::IMPL_KEY,
    default: "DEFAULT",
    legal: Some("DEFAULT, FILE or MIGRATION"),
    is_legal: |text| tracker::Class::parse(text.trim()).is_ok(),
    doc: "Store file tracker of tables that are made without one: DEFAULT (what is in a family's directory are its store files), FILE (a \
          list in .filelist says which are) or MIGRATION (from one to the other). A table that is there is changed by \
          change_sft, which goes by way of MIGRATION.",
};
/// Of a migration: the tracker that is left.
pub const FILE_TRACKER_SOURCE: TextSetting = TextSetting {
    key: tracker::SOURCE_KEY,
    default: "none",
    legal: Some("none, DEFAULT or FILE"),
    is_legal: |text| text.trim() == "none" || tracker::Class::parse(text.trim()).is_ok(),
    doc: "The tracker that a MIGRATION reads. Said by a table or family as a rule.",
};
/// Of a migration: the tracker to be.
pub const FILE_TRACKER_TARGET: TextSetting = TextSetting {
    key: tracker::TARGET_KEY,
    default: "none",
    legal: Some("none, DEFAULT or FILE"),
    is_legal: |text| text.trim() == "none" || tracker::Class::parse(text.trim()).is_ok(),
    doc: "The tracker that a MIGRATION keeps, too. Said by a table or family as a rule.",
};
/// Keys of the rows of trackers.
const TRACKER_KEYS: [&str; 3] = [tracker::IMPL_KEY, tracker::SOURCE_KEY, tracker::TARGET_KEY];

/// All rows.
pub const ALL: &[&dyn SettingRow] = &[
    &FILE_TRACKER,
    &FILE_TRACKER_SOURCE,
    &FILE_TRACKER_TARGET,
    &REPLICA_REPLICATION,
    &META_REPLICA_REPLICATION,
    &REPLICA_BUFFER,
    &FLUSH_SIZE,
    &BLOCK_MULTIPLIER,
    &FLUSH_POLICY,
    &FLUSH_LOWER_BOUND_MIN,
    &FLUSH_PER_CHANGES,
    &PERIODIC_FLUSH_INTERVAL,
    &COMPACTION_MIN,
    &COMPACTION_THRESHOLD,
    &COMPACTION_MAX,
    &COMPACTION_MIN_SIZE,
    &COMPACTION_MAX_SIZE,
    &COMPACTION_RATIO,
    &COMPACTION_RATIO_OFFPEAK,
    &OFFPEAK_START_HOUR,
    &OFFPEAK_END_HOUR,
    &COMPACTION_POLICY,
    &ENGINE,
    &TIER_BASE_WINDOW,
    &TIER_WINDOWS,
    &TIER_MAX_AGE,
    &TIER_MAX_FILE_AGE,
    &TIER_INCOMING_MIN,
    &TIER_POLICY,
    &TIER_SINGLE_OUTPUT,
    &TIER_FACTORY,
    &TIERING_QUALIFIER,
    &TIERING_PROVIDER,
    &TIERING_AGE_LIMIT,
    &TIER_STORAGE_POLICIES,
    &TIER_HOT_AGE,
    &TIER_HOT_POLICY,
    &TIER_WARM_AGE,
    &TIER_WARM_POLICY,
    &TIER_COLD_POLICY,
    &STRIPE_INITIAL_COUNT,
    &STRIPE_FLUSH_TO_L0,
    &STRIPE_MIN_FILES_L0,
    &STRIPE_MIN_FILES,
    &STRIPE_MAX_FILES,
    &STRIPE_SPLIT_SIZE,
    &STRIPE_SPLIT_PARTS,
    &STRIPE_SPLIT_IMBALANCE,
    &MAJOR_COMPACTION_INTERVAL,
    &MAJOR_COMPACTION_JITTER,
    &TIME_TO_PURGE_DELETES,
    &BLOCKING_STORE_FILES,
    &BLOCKING_WAIT,
    &MAX_FILE_SIZE,
    &MAX_FILE_SIZE_JITTER,
    &SPLIT_POLICY,
    &SPLIT_INITIAL_SIZE,
    &SPLIT_BY_WHOLE_REGION,
    &BUSY_BLOCKED_REQUESTS,
    &BUSY_MIN_AGE,
    &BUSY_WINDOW,
    &SPLIT_RESTRICTION_TYPE,
    &SPLIT_RESTRICTION_LENGTH,
    &SPLIT_RESTRICTION_DELIMITER,
    &COMPACTION_THROTTLE_POINT,
    &MAX_CELL_SIZE,
    &HBASE_TICK_SEMANTICS,
    &NONCE_TIMEOUT_MS,
    &TIMESTAMP_SLOP,
    &MAX_ROW_SIZE,
    &CELLS_PER_HEARTBEAT_CHECK,
    &ON_DEMAND_FAMILIES,
    &DELETE_EXPIRED_FILES,
    &KEEP_SEQ_ID_DAYS,
    &MAJOR_DROPS_PAGES,
    &MINOR_DROPS_PAGES,
    &CACHE_ON_WRITE,
    &CACHE_INDEX_ON_WRITE,
    &CACHE_BLOOMS_ON_WRITE,
    &PREFETCH_ON_OPEN,
    &EVICT_ON_CLOSE,
    &CACHE_COMPACTED,
    &CACHE_COMPACTED_MAX,
    &DEFAULT_COMPRESSION,
    &BLOCK_STORAGE_POLICY,
    &REGION_STORAGE_POLICY,
    &DATA_TIERING,
    &DATA_TIERING_TYPE,
    &DATA_TIERING_HOT_AGE,
    &SKIP_ERRORS,
    &COMPACTION_CHECK_INTERVAL,
    &VALIDATE_READ_FULLY,
    &VERIFY_BULK_LOAD,
    &COMPACT_AFTER_BULK_LOAD,
];
