//! Settings of regions under HBase's keys, and [`RegionSettings`]: what they come to for one server, table or family.
//!
//! HBase lets the descriptor of a table or family override a server's key, in its CONFIGURATION and among its
//! attributes; [`RegionSettings::with_overrides`] does that.

use arc_swap::ArcSwap;
use base::size::{GIB, KIB, MIB};
use base::{Config, Setting, SettingRow};
use hfile::{Compression, WriterOptions};
use std::sync::Arc;

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
    doc: "A store with this many files is not flushed again before it was compacted (or blockingWaitTime is over).",
};
/// Store size at which a region is split.
pub const MAX_FILE_SIZE: Setting<u64> = Setting {
    key: "hbase.hregion.max.filesize",
    default: 10 * GIB,
    min: 1,
    max: i64::MAX as u64,
    unit: "bytes",
    doc: "A region with a store larger than this is split.",
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
    min: Compression::Gz,
    max: Compression::Zstd,
    unit: "",
    doc: "Codec of new store files and MOB files of a family that says COMPRESSION NONE, as clients do when nobody chose. A file whose first \
          data block it makes less than an eighth smaller is written plainly. A codec that the family names holds as ever, a \
          COMPRESSION_COMPACT of NONE too, and tables of the namespace hbase are always plain. NONE writes as HBase does: set it, and \
          run major_compact, before a directory goes to an HBase without Snappy.",
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

/// All rows.
pub const ALL: &[&dyn SettingRow] = &[
    &FLUSH_SIZE,
    &BLOCK_MULTIPLIER,
    &FLUSH_LOWER_BOUND_MIN,
    &FLUSH_PER_CHANGES,
    &PERIODIC_FLUSH_INTERVAL,
    &COMPACTION_MIN,
    &COMPACTION_THRESHOLD,
    &COMPACTION_MAX,
    &COMPACTION_MIN_SIZE,
    &COMPACTION_MAX_SIZE,
    &COMPACTION_RATIO,
    &MAJOR_COMPACTION_INTERVAL,
    &MAJOR_COMPACTION_JITTER,
    &TIME_TO_PURGE_DELETES,
    &BLOCKING_STORE_FILES,
    &MAX_FILE_SIZE,
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
    &CACHE_COMPACTED,
    &CACHE_COMPACTED_MAX,
    &DEFAULT_COMPRESSION,
    &SKIP_ERRORS,
    &COMPACTION_CHECK_INTERVAL,
    &VALIDATE_READ_FULLY,
    &VERIFY_BULK_LOAD,
    &COMPACT_AFTER_BULK_LOAD,
];

/// Settings that a server's regions share, exchanged as a whole when its configuration is updated.
pub type SharedSettings = Arc<ArcSwap<RegionSettings>>;

/// The settings' values, read once. Field by field as the rows say.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each field is described by the row of its name")]
pub struct RegionSettings {
    pub flush_size_bytes: u64,
    pub block_multiplier: u64,
    pub flush_lower_bound_min_bytes: u64,
    pub flush_per_changes: u64,
    pub periodic_flush_interval_ms: u64,
    pub compaction_min_files: usize,
    pub compaction_max_files: usize,
    pub compaction_min_size_bytes: u64,
    pub compaction_max_size_bytes: u64,
    pub compaction_ratio: f64,
    pub major_compaction_interval_ms: u64,
    pub major_compaction_jitter: f64,
    pub time_to_purge_deletes_ms: i64,
    pub blocking_store_files: usize,
    pub max_file_size_bytes: u64,
    pub compaction_throttle_point_bytes: u64,
    /// 0 when switched off.
    pub max_cell_size_bytes: u64,
    pub hbase_tick_semantics: bool,
    pub nonce_timeout_ms: i64,
    pub timestamp_slop_ms: i64,
    pub max_row_size_bytes: u64,
    pub cells_per_heartbeat_check: u64,
    pub on_demand_families: bool,
    pub delete_expired_files: bool,
    pub keep_seq_id_ms: i64,
    pub major_drops_pages: bool,
    pub minor_drops_pages: bool,
    pub cache_compacted: bool,
    pub cache_compacted_max_bytes: u64,
    pub default_compression: Compression,
    pub skip_errors: bool,
    pub compaction_check_interval_bytes: u64,
    pub validate_read_fully: bool,
    pub verify_bulk_load: bool,
    pub compact_after_bulk_load: bool,
    /// What [`hfile::settings`] say of new files; what a family says of them is not in it.
    pub new_files: WriterOptions,
    /// Bytes that a row read whole may have at most, whatever is set.
    row_size_cap_bytes: u64,
    source: Arc<Config>,
}

/// A row that is read whole may take this part of the memory budget, and at least [`ROW_SIZE_CAP_MIN_BYTES`].
const ROW_PART_OF_BUDGET: u64 = 16;
/// What the memory budget leaves to a row at least.
const ROW_SIZE_CAP_MIN_BYTES: u64 = 1 << 20;

impl RegionSettings {
    /// What `config` says.
    pub fn from_config(config: &Config) -> RegionSettings {
        RegionSettings::read(Arc::new(config.clone()), u64::MAX)
    }

    /// These settings on a server that has `budget_bytes` of memory for everything (`basalt.memory.size`): a row that
    /// is read whole may take a sixteenth of it, not less than 1 MiB, if [`MAX_ROW_SIZE`] does not say less. Holds for
    /// tables and families with a CONFIGURATION of their own, too.
    #[must_use]
    pub fn within_budget(self, budget_bytes: u64) -> RegionSettings {
        let cap = (budget_bytes / ROW_PART_OF_BUDGET).max(ROW_SIZE_CAP_MIN_BYTES);
        RegionSettings {
            max_row_size_bytes: self.max_row_size_bytes.min(cap),
            row_size_cap_bytes: self.row_size_cap_bytes.min(cap),
            ..self
        }
    }

    fn read(config: Arc<Config>, row_size_cap_bytes: u64) -> RegionSettings {
        let flush_size_bytes = config.get(&FLUSH_SIZE);
        let compaction_min = if !config.is_set(COMPACTION_MIN.key) && config.is_set(COMPACTION_THRESHOLD.key) {
            config.get(&COMPACTION_THRESHOLD)
        } else {
            config.get(&COMPACTION_MIN)
        };
        let compaction_max_files = config.get(&COMPACTION_MAX) as usize;
        let compaction_min_size_bytes =
            if config.is_set(COMPACTION_MIN_SIZE.key) { config.get(&COMPACTION_MIN_SIZE) } else { flush_size_bytes };
        let compaction_throttle_point_bytes = if config.is_set(COMPACTION_THROTTLE_POINT.key) {
            config.get(&COMPACTION_THROTTLE_POINT)
        } else {
            2 * compaction_max_files as u64 * flush_size_bytes
        };
        RegionSettings {
            flush_size_bytes,
            block_multiplier: config.get(&BLOCK_MULTIPLIER),
            flush_lower_bound_min_bytes: config.get(&FLUSH_LOWER_BOUND_MIN),
            flush_per_changes: config.get(&FLUSH_PER_CHANGES),
            periodic_flush_interval_ms: config.get(&PERIODIC_FLUSH_INTERVAL),
            compaction_min_files: compaction_min as usize,
            compaction_max_files,
            compaction_min_size_bytes,
            compaction_max_size_bytes: config.get(&COMPACTION_MAX_SIZE),
            compaction_ratio: config.get(&COMPACTION_RATIO),
            major_compaction_interval_ms: config.get(&MAJOR_COMPACTION_INTERVAL),
            major_compaction_jitter: config.get(&MAJOR_COMPACTION_JITTER),
            time_to_purge_deletes_ms: config.get(&TIME_TO_PURGE_DELETES) as i64,
            blocking_store_files: config.get(&BLOCKING_STORE_FILES) as usize,
            max_file_size_bytes: config.get(&MAX_FILE_SIZE),
            compaction_throttle_point_bytes,
            max_cell_size_bytes: config.get(&MAX_CELL_SIZE).max(0) as u64,
            nonce_timeout_ms: i64::try_from(config.get(&NONCE_TIMEOUT_MS)).unwrap_or(i64::MAX),
            hbase_tick_semantics: config.get(&HBASE_TICK_SEMANTICS),
            timestamp_slop_ms: config.get(&TIMESTAMP_SLOP),
            max_row_size_bytes: config.get(&MAX_ROW_SIZE).min(row_size_cap_bytes),
            cells_per_heartbeat_check: config.get(&CELLS_PER_HEARTBEAT_CHECK),
            on_demand_families: config.get(&ON_DEMAND_FAMILIES),
            delete_expired_files: config.get(&DELETE_EXPIRED_FILES),
            keep_seq_id_ms: config.get(&KEEP_SEQ_ID_DAYS) as i64 * 86_400_000,
            major_drops_pages: config.get(&MAJOR_DROPS_PAGES),
            minor_drops_pages: config.get(&MINOR_DROPS_PAGES),
            cache_compacted: config.get(&CACHE_COMPACTED),
            cache_compacted_max_bytes: config.get(&CACHE_COMPACTED_MAX),
            default_compression: config.get(&DEFAULT_COMPRESSION),
            skip_errors: config.get(&SKIP_ERRORS),
            compaction_check_interval_bytes: config.get(&COMPACTION_CHECK_INTERVAL),
            validate_read_fully: config.get(&VALIDATE_READ_FULLY),
            verify_bulk_load: config.get(&VERIFY_BULK_LOAD),
            compact_after_bulk_load: config.get(&COMPACT_AFTER_BULK_LOAD),
            new_files: WriterOptions::from_config(&config),
            row_size_cap_bytes,
            source: config,
        }
    }

    /// For a [`crate::RegionEnv`]: to be exchanged while the server runs.
    pub fn shared(self) -> SharedSettings {
        Arc::new(ArcSwap::from_pointee(self))
    }

    /// These settings under what a table's or family's descriptor says; the same `Arc` when that names none of the
    /// keys. Of a key that is named twice the later value counts. What is illegal leaves these settings as they are,
    /// and `warn` is told of it. (In HBase the region does not open.)
    pub fn with_overrides<'a>(
        self: &Arc<RegionSettings>,
        overrides: impl IntoIterator<Item = (&'a str, &'a str)>,
        warn: impl Fn(String),
    ) -> Arc<RegionSettings> {
        let rows = || ALL.iter().chain(hfile::settings::ALL);
        let mut config = None;
        for (key, value) in overrides {
            // Most of what a descriptor holds is no key of the configuration.
            let Some(row) = rows().find(|row| row.key() == key) else { continue };
            match row.check(value) {
                Ok(()) => config.get_or_insert_with(|| (*self.source).clone()).set(key, value),
                Err(error) => warn(error.given_elsewhere()),
            }
        }
        match config {
            Some(config) => Arc::new(RegionSettings::read(Arc::new(config), self.row_size_cap_bytes)),
            None => self.clone(),
        }
    }
}

impl Default for RegionSettings {
    fn default() -> RegionSettings {
        RegionSettings::from_config(&Config::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_codec_is_said_by_its_name() {
        let mut config = Config::default();
        for (said, meant) in [("NONE", Compression::None), ("none", Compression::None), (" Gz ", Compression::Gz)] {
            config.set(DEFAULT_COMPRESSION.key, said);
            config.check(ALL).expect("legal");
            assert_eq!(RegionSettings::from_config(&config).default_compression, meant);
        }
        config.set(DEFAULT_COMPRESSION.key, "LZO");
        let error = config.check(ALL).expect_err("not one that is written here").to_string();
        assert!(error.contains("LZO") && error.contains("NONE, SNAPPY, LZ4, ZSTD or GZ"), "{error}");
    }

    #[test]
    fn defaults_follow_the_flush_size_and_overrides_win() {
        let mut config = Config::default();
        config.set(FLUSH_SIZE.key, "1000");
        let server = Arc::new(RegionSettings::from_config(&config));
        assert_eq!((server.compaction_min_size_bytes, server.compaction_throttle_point_bytes), (1000, 20_000));
        let overrides = [("VERSIONS", "x"), ("hbase.hstore.compactionThreshold", "5")];
        let never = |text: String| panic!("{text}");
        let family = server.with_overrides(overrides, never);
        assert_eq!((family.compaction_min_files, family.flush_size_bytes), (5, 1000));
        assert!(Arc::ptr_eq(&server, &server.with_overrides([("VERSIONS", "3")], never)));
    }

    /// As `CompoundConfiguration` in HBase: a family's attributes, its CONFIGURATION, the table's CONFIGURATION, its
    /// attributes, the site.
    #[test]
    fn the_nearer_word_of_a_descriptor_counts() {
        const KEY: &str = "hbase.hstore.compaction.max";
        let name = model::TableName::parse("t").expect("legal");
        let (mut table, mut family) = (model::TableDescriptor::new(name, []), model::FamilyDescriptor::new("f"));
        let mut site = Config::default();
        site.set(KEY, "3");
        let site = Arc::new(RegionSettings::from_config(&site));
        let never = |text: String| panic!("{text}");
        let seen = |table: &model::TableDescriptor, family: &model::FamilyDescriptor| {
            let of_table = site.with_overrides(table.overrides(), never);
            let of_family = of_table.with_overrides(family.overrides(), never);
            (of_table.compaction_max_files, of_family.compaction_max_files)
        };
        assert_eq!(seen(&table, &family), (3, 3));
        table.attributes.insert(KEY.into(), "4".into());
        assert_eq!(seen(&table, &family), (4, 4));
        table.configuration.insert(KEY.into(), "5".into());
        assert_eq!(seen(&table, &family), (5, 5));
        family.configuration.insert(KEY.into(), "6".into());
        assert_eq!(seen(&table, &family), (5, 6));
        family.attributes.insert(KEY.into(), "7".into());
        assert_eq!(seen(&table, &family), (5, 7));
    }

    #[test]
    fn an_illegal_override_leaves_the_servers_value_and_is_told() {
        let mut config = Config::default();
        config.set(FLUSH_SIZE.key, "1000");
        let server = Arc::new(RegionSettings::from_config(&config));
        let overrides = [(FLUSH_SIZE.key, "plenty"), ("hbase.hstore.compactionThreshold", "5")];
        let told = std::cell::RefCell::new(Vec::new());
        let table = server.with_overrides(overrides, |text| told.borrow_mut().push(text));
        assert_eq!((table.compaction_min_files, table.flush_size_bytes), (5, 1000));
        let told = told.into_inner();
        assert!(told.len() == 1 && told[0].contains("hbase.hregion.memstore.flush.size = \"plenty\""), "{told:?}");
    }

    #[test]
    fn a_row_may_take_a_part_of_the_memory_budget_only() {
        let mut config = Config::default();
        let limit =
            |config: &Config, budget| RegionSettings::from_config(config).within_budget(budget).max_row_size_bytes;
        assert_eq!(limit(&config, 1 << 40), GIB);
        assert_eq!(limit(&config, 1 << 30), 64 << 20);
        assert_eq!(limit(&config, 4 << 20), 1 << 20);
        config.set(MAX_ROW_SIZE.key, "2000");
        assert_eq!(limit(&config, 1 << 30), 2000);
        let server = Arc::new(RegionSettings::from_config(&config).within_budget(1 << 30));
        let all = GIB.to_string();
        let table = server.with_overrides([(MAX_ROW_SIZE.key, &*all)], |text| panic!("{text}"));
        assert_eq!(table.max_row_size_bytes, 64 << 20, "a table cannot have more than the server");
    }
}
