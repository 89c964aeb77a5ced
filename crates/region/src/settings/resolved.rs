//! What the settings come to for one server, table or family.
//!
//! HBase lets the descriptor of a table or family override a server's key, in its CONFIGURATION and among its
//! attributes; [`RegionSettings::with_overrides`] does that.

use super::*;
use crate::split::BusyLimits;
use arc_swap::ArcSwap;
use base::Config;
use hfile::{HotAge, WriterOptions};
use model::{SplitPolicyKind, StoreEngine, TableName};
use rootdir::tracker::Site;
use std::sync::Arc;

/// Settings that a server's regions share, exchanged as a whole when its configuration is updated.
pub type SharedSettings = Arc<ArcSwap<RegionSettings>>;

/// The settings' values, read once. Field by field as the rows say.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each field is described by the row of its name")]
pub struct RegionSettings {
    pub flush_size_bytes: u64,
    pub block_multiplier: u64,
    pub flush_policy: FlushPolicyKind,
    pub flush_lower_bound_min_bytes: u64,
    pub flush_per_changes: u64,
    pub periodic_flush_interval_ms: u64,
    pub compaction_min_files: usize,
    pub compaction_max_files: usize,
    pub compaction_min_size_bytes: u64,
    pub compaction_max_size_bytes: u64,
    pub compaction_ratio: f64,
    pub compaction_ratio_offpeak: f64,
    pub offpeak_hours: OffPeakHours,
    pub compaction_policy: CompactionPolicy,
    pub engine: StoreEngine,
    /// Of [`StoreEngine::DateTiered`].
    pub tiers: Tiers,
    /// Of [`StoreEngine::Stripe`].
    pub stripes: StripeSettings,
    pub major_compaction_interval_ms: u64,
    pub major_compaction_jitter: f64,
    pub time_to_purge_deletes_ms: i64,
    pub blocking_store_files: usize,
    pub blocking_wait_ms: i64,
    pub max_file_size_bytes: u64,
    pub max_file_size_jitter: f64,
    pub split_policy: SplitPolicyKind,
    /// Of the policies that begin small; twice the flush size when not given.
    pub split_initial_size_bytes: Option<u64>,
    pub split_by_whole_region: bool,
    pub busy: BusyLimits,
    pub split_restriction: SplitRestriction,
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
    pub cache_on_write: bool,
    /// What families add is not in them.
    pub cache_switches: CacheSwitches,
    pub cache_compacted: bool,
    pub cache_compacted_max_bytes: u64,
    pub default_compression: Compression,
    pub block_storage_policy: Option<Arc<str>>,
    /// After which files of the family are cold; `None` where none is.
    pub hot_age: Option<HotAge>,
    pub skip_errors: bool,
    pub compaction_check_interval_bytes: u64,
    pub validate_read_fully: bool,
    pub verify_bulk_load: bool,
    pub compact_after_bulk_load: bool,
    /// What the server says of store file trackers; tables and families say more.
    pub file_tracker: Site,
    /// Where the Zstandard dictionary is.
    pub zstd_dictionary: Option<Arc<str>>,
    /// What [`hfile::settings`] say of new files; what a family says of them is not in it.
    pub new_files: WriterOptions,
    /// What may wait to be told to read replicas.
    replica_buffer_bytes: u64,
    /// Whether read replicas are told of what is written.
    tells_replicas: bool,
    /// The same of hbase:meta.
    tells_meta_replicas: bool,
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
            replica_buffer_bytes: self.replica_buffer_bytes.min(cap),
            row_size_cap_bytes: self.row_size_cap_bytes.min(cap),
            ..self
        }
    }

    /// What may wait to be told to read replicas of a table's regions; `None`: they are not told.
    pub fn replica_buffer_bytes_of(&self, table: &TableName) -> Option<u64> {
        let are_told = if table.is_meta() { self.tells_meta_replicas } else { self.tells_replicas };
        are_told.then_some(self.replica_buffer_bytes)
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
            flush_policy: config.text(FLUSH_POLICY.key).and_then(FlushPolicyKind::parse).unwrap_or_default(),
            flush_lower_bound_min_bytes: config.get(&FLUSH_LOWER_BOUND_MIN),
            flush_per_changes: config.get(&FLUSH_PER_CHANGES),
            periodic_flush_interval_ms: config.get(&PERIODIC_FLUSH_INTERVAL),
            compaction_min_files: compaction_min as usize,
            compaction_max_files,
            compaction_min_size_bytes,
            compaction_max_size_bytes: config.get(&COMPACTION_MAX_SIZE),
            compaction_ratio: config.get(&COMPACTION_RATIO),
            compaction_ratio_offpeak: config.get(&COMPACTION_RATIO_OFFPEAK),
            offpeak_hours: OffPeakHours::new(config.get(&OFFPEAK_START_HOUR), config.get(&OFFPEAK_END_HOUR)),
            compaction_policy: config.get(&COMPACTION_POLICY),
            engine: tiers::engine(&config),
            tiers: Tiers::from_config(&config),
            stripes: StripeSettings::from_config(&config),
            major_compaction_interval_ms: config.get(&MAJOR_COMPACTION_INTERVAL),
            major_compaction_jitter: config.get(&MAJOR_COMPACTION_JITTER),
            time_to_purge_deletes_ms: config.get(&TIME_TO_PURGE_DELETES) as i64,
            blocking_store_files: config.get(&BLOCKING_STORE_FILES) as usize,
            blocking_wait_ms: config.get(&BLOCKING_WAIT) as i64,
            max_file_size_bytes: config.get(&MAX_FILE_SIZE),
            max_file_size_jitter: config.get(&MAX_FILE_SIZE_JITTER),
            split_policy: split::policy(&config),
            split_initial_size_bytes: u64::try_from(config.get(&SPLIT_INITIAL_SIZE)).ok().filter(|bytes| *bytes > 0),
            split_by_whole_region: config.get(&SPLIT_BY_WHOLE_REGION),
            busy: split::busy_limits(&config),
            split_restriction: SplitRestriction::from_config(&config),
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
            cache_on_write: config.get(&CACHE_ON_WRITE),
            cache_switches: CacheSwitches::from_config(&config),
            cache_compacted: config.get(&CACHE_COMPACTED),
            cache_compacted_max_bytes: config.get(&CACHE_COMPACTED_MAX),
            default_compression: config.get(&DEFAULT_COMPRESSION),
            block_storage_policy: storage_policy(&config),
            hot_age: hot_age(&config),
            skip_errors: config.get(&SKIP_ERRORS),
            compaction_check_interval_bytes: config.get(&COMPACTION_CHECK_INTERVAL),
            validate_read_fully: config.get(&VALIDATE_READ_FULLY),
            verify_bulk_load: config.get(&VERIFY_BULK_LOAD),
            compact_after_bulk_load: config.get(&COMPACT_AFTER_BULK_LOAD),
            zstd_dictionary: config
                .text(hfile::settings::ZSTD_DICTIONARY.key)
                .map(str::trim)
                .filter(|path| !path.is_empty())
                .map(Arc::from),
            new_files: WriterOptions::from_config(&config),
            replica_buffer_bytes: config.get(&REPLICA_BUFFER),
            tells_replicas: config.get(&REPLICA_REPLICATION),
            tells_meta_replicas: config.get(&META_REPLICA_REPLICATION),
            file_tracker: Site::from_config(|key| config.text(key)),
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
        // Trackers are looked up by themselves: what makes none must not be passed over.
        let is_tracker = |row: &&&dyn SettingRow| TRACKER_KEYS.contains(&row.key());
        let rows = || ALL.iter().chain(hfile::settings::ALL).filter(|row| !is_tracker(row));
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

/// Where no family says more: the store's word, else the region's.
fn storage_policy(config: &Config) -> Option<Arc<str>> {
    let named = |key| fs::Placement::default().with_policy(config.text(key)).policy;
    named(BLOCK_STORAGE_POLICY.key).or_else(|| named(REGION_STORAGE_POLICY.key))
}

fn hot_age(config: &Config) -> Option<HotAge> {
    let of_values = match config.text(DATA_TIERING_TYPE.key)?.trim().to_ascii_uppercase().as_str() {
        "TIME_RANGE" => false,
        "CUSTOM" => true,
        _ => return None,
    };
    let ms = i64::try_from(config.get(&DATA_TIERING_HOT_AGE)).unwrap_or(i64::MAX);
    config.get(&DATA_TIERING).then_some(HotAge { ms, of_values })
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
        config.set(DEFAULT_COMPRESSION.key, "PAPER");
        let error = config.check(ALL).expect_err("no codec").to_string();
        assert!(
            error.contains("PAPER") && error.contains("NONE, SNAPPY, LZ4, ZSTD, GZ, BZIP2, LZMA, BROTLI or LZO"),
            "{error}"
        );
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
