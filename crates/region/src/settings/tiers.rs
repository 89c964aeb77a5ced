//! Settings of stores that keep their files by windows of time. Follows: `CompactionConfiguration`,
//! `ExponentialCompactionWindowFactory`.

use super::CompactionPolicy;
use base::{Config, Setting, TextSetting};
use model::StoreEngine;
use model::store_engine::ENGINE_KEY;
use std::sync::Arc;

/// How a store keeps its files.
pub const ENGINE: TextSetting = TextSetting {
    key: ENGINE_KEY,
    default: "org.apache.hadoop.hbase.regionserver.DefaultStoreEngine",
    legal: Some("DefaultStoreEngine, DateTieredStoreEngine, CustomTieredStoreEngine or StripeStoreEngine"),
    is_legal: |text| StoreEngine::parse(text).is_some(),
    doc: "How a store keeps its files, by the name of HBase's class, with or without its package; said by a table or family as a rule. \
          DefaultStoreEngine: a compaction makes one file. DateTieredStoreEngine: one for each window of time that its cells are of, so that \
          scans of a time range open few files and old ones are not rewritten; for data that comes in the order of its timestamps. \
          CustomTieredStoreEngine: one for rows whose value in the column TIERING_CELL_QUALIFIER is old and one for the others. \
          StripeStoreEngine: one for each range of rows (a stripe), so that large regions are compacted in parts; for rows that come evenly \
          or in order, with a higher hbase.hstore.blockingStoreFiles. Not for families with MOB files, which keep theirs as ever.",
};
/// Length of the newest windows.
pub const TIER_BASE_WINDOW: Setting<i64> = Setting {
    key: "hbase.hstore.compaction.date.tiered.base.window.millis",
    default: 21_600_000,
    min: 1,
    max: i64::MAX,
    unit: "ms",
    doc: "Length of the newest windows of a DateTieredStoreEngine.",
};
/// Windows of one length.
pub const TIER_WINDOWS: Setting<u32> = Setting {
    key: "hbase.hstore.compaction.date.tiered.windows.per.tier",
    default: 4,
    min: 1,
    max: 10_000,
    unit: "count",
    doc: "Windows of one length of a DateTieredStoreEngine; earlier ones are so many times as long.",
};
/// From which age on windows stay as they are.
pub const TIER_MAX_AGE: Setting<i64> = Setting {
    key: "hbase.hstore.compaction.date.tiered.max.tier.age.millis",
    default: i64::MAX,
    min: 0,
    max: i64::MAX,
    unit: "ms",
    doc: "Windows of a DateTieredStoreEngine do not become longer than those at this age. What \
          hbase.hstore.compaction.date.tiered.max.storefile.age.millis says when not given. A major compaction makes 512 files at most: what \
          is earlier than so many windows comes into one.",
};
/// From which age on files are left alone.
pub const TIER_MAX_FILE_AGE: Setting<i64> = Setting {
    key: "hbase.hstore.compaction.date.tiered.max.storefile.age.millis",
    default: i64::MAX,
    min: 0,
    max: i64::MAX,
    unit: "ms",
    doc: "Minor compactions of a DateTieredStoreEngine leave windows of this age alone.",
};
/// Files that the newest window needs.
pub const TIER_INCOMING_MIN: Setting<u32> = Setting {
    key: "hbase.hstore.compaction.date.tiered.incoming.window.min",
    default: 6,
    min: 2,
    max: 1000,
    unit: "count",
    doc: "Files that a minor compaction needs in the newest window of a DateTieredStoreEngine; in others hbase.hstore.compaction.min.",
};
/// How files of one window are chosen.
pub const TIER_POLICY: Setting<CompactionPolicy> = Setting {
    key: "hbase.hstore.compaction.date.tiered.window.policy.class",
    default: CompactionPolicy::Exploring,
    min: CompactionPolicy::Exploring,
    max: CompactionPolicy::RatioBased,
    unit: "",
    doc: "How minor compactions of a DateTieredStoreEngine choose among the files of a window: ExploringCompactionPolicy or \
          RatioBasedCompactionPolicy.",
};
/// Whether minor compactions make one file.
pub const TIER_SINGLE_OUTPUT: Setting<bool> = Setting {
    key: "hbase.hstore.compaction.date.tiered.single.output.for.minor.compaction",
    default: true,
    min: false,
    max: true,
    unit: "",
    doc: "Whether a minor compaction of a DateTieredStoreEngine makes one file also of cells that are older than their file's window.",
};
/// How windows are made.
pub const TIER_FACTORY: TextSetting = TextSetting {
    key: "hbase.hstore.compaction.date.tiered.window.factory.class",
    default: "org.apache.hadoop.hbase.regionserver.compactions.ExponentialCompactionWindowFactory",
    legal: Some("ExponentialCompactionWindowFactory"),
    is_legal: |text| text.trim().rsplit('.').next() == Some("ExponentialCompactionWindowFactory"),
    doc: "How a DateTieredStoreEngine makes its windows: there is one way.",
};
/// The column that says how old a row is.
pub const TIERING_QUALIFIER: TextSetting = TextSetting::any(
    "TIERING_CELL_QUALIFIER",
    "none",
    "Column of a CustomTieredStoreEngine whose value, an 8-byte number of milliseconds, says how old a row is; of a table or family. A row without it counts as new.",
);
/// What finds that value.
pub const TIERING_PROVIDER: TextSetting = TextSetting {
    key: "hbase.hstore.custom-tiering-value.provider.class",
    default: "org.apache.hadoop.hbase.regionserver.compactions.CustomCellTieringValueProvider",
    legal: Some("CustomCellTieringValueProvider"),
    is_legal: |text| text.trim().rsplit('.').next() == Some("CustomCellTieringValueProvider"),
    doc: "How a CustomTieredStoreEngine finds how old a row is: there is one way.",
};
/// From which age on a value is old.
pub const TIERING_AGE_LIMIT: Setting<i64> = Setting {
    key: "hbase.hstore.compaction.date.tiered.custom.age.limit.millis",
    default: 315_576_000_000,
    min: 0,
    max: i64::MAX,
    unit: "ms",
    doc: "From which age on values in TIERING_CELL_QUALIFIER are old.",
};
/// Whether windows choose where their files lie.
pub const TIER_STORAGE_POLICIES: Setting<bool> = Setting {
    key: "hbase.hstore.compaction.date.tiered.storage.policy.enable",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Whether the age of its window decides on which volume a file of a DateTieredStoreEngine lies (basalt.volumes).",
};
/// Up to which age a window is hot.
pub const TIER_HOT_AGE: Setting<i64> = Setting {
    key: "hbase.hstore.compaction.date.tiered.hot.window.age.millis",
    default: 86_400_000,
    min: 0,
    max: i64::MAX,
    unit: "ms",
    doc: "Windows of a DateTieredStoreEngine that begin no longer ago are hot.",
};
/// Where hot files lie.
pub const TIER_HOT_POLICY: TextSetting = TextSetting::any(
    "hbase.hstore.compaction.date.tiered.hot.window.storage.policy",
    "ALL_SSD",
    "Storage policy of hot windows.",
);
/// Up to which age a window is warm.
pub const TIER_WARM_AGE: Setting<i64> = Setting {
    key: "hbase.hstore.compaction.date.tiered.warm.window.age.millis",
    default: 604_800_000,
    min: 0,
    max: i64::MAX,
    unit: "ms",
    doc: "Windows of a DateTieredStoreEngine that begin no longer ago are warm, if not hot; the others are cold.",
};
/// Where warm files lie.
pub const TIER_WARM_POLICY: TextSetting = TextSetting::any(
    "hbase.hstore.compaction.date.tiered.warm.window.storage.policy",
    "ONE_SSD",
    "Storage policy of warm windows.",
);
/// Where cold files lie.
pub const TIER_COLD_POLICY: TextSetting = TextSetting::any(
    "hbase.hstore.compaction.date.tiered.cold.window.storage.policy",
    "HOT",
    "Storage policy of cold windows.",
);

pub(super) fn engine(config: &Config) -> StoreEngine {
    config.text(ENGINE.key).and_then(StoreEngine::parse).unwrap_or(StoreEngine::Default)
}

/// How files are kept by windows of time. Field by field as the rows say.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each field is described by the row of its name")]
pub struct Tiers {
    pub base_window_ms: i64,
    pub windows_per_tier: i64,
    pub max_age_ms: i64,
    pub max_file_age_ms: i64,
    pub incoming_min_files: usize,
    pub policy: CompactionPolicy,
    pub single_output: bool,
    /// From which age on tiering values are old.
    pub value_age_limit_ms: i64,
    /// The column that has them.
    pub value_qualifier: Option<Arc<[u8]>>,
    /// Where files lie, if that is for windows to say.
    pub places: Option<TierPlaces>,
}

/// Storage policies by the age of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each field is described by the row of its name")]
pub struct TierPlaces {
    pub hot_age_ms: i64,
    pub warm_age_ms: i64,
    pub hot: Arc<str>,
    pub warm: Arc<str>,
    pub cold: Arc<str>,
}

impl Tiers {
    pub(super) fn from_config(config: &Config) -> Tiers {
        let max_file_age_ms = config.get(&TIER_MAX_FILE_AGE);
        let max_age_ms = if config.is_set(TIER_MAX_AGE.key) { config.get(&TIER_MAX_AGE) } else { max_file_age_ms };
        let text = |setting: &TextSetting| Arc::from(config.text(setting.key).unwrap_or(setting.default));
        let places = config.get(&TIER_STORAGE_POLICIES).then(|| TierPlaces {
            hot_age_ms: config.get(&TIER_HOT_AGE),
            warm_age_ms: config.get(&TIER_WARM_AGE),
            hot: text(&TIER_HOT_POLICY),
            warm: text(&TIER_WARM_POLICY),
            cold: text(&TIER_COLD_POLICY),
        });
        Tiers {
            base_window_ms: config.get(&TIER_BASE_WINDOW),
            windows_per_tier: i64::from(config.get(&TIER_WINDOWS)),
            max_age_ms,
            max_file_age_ms,
            incoming_min_files: config.get(&TIER_INCOMING_MIN) as usize,
            policy: config.get(&TIER_POLICY),
            single_output: config.get(&TIER_SINGLE_OUTPUT),
            value_age_limit_ms: config.get(&TIERING_AGE_LIMIT),
            value_qualifier: config
                .is_set(TIERING_QUALIFIER.key)
                .then(|| config.text(TIERING_QUALIFIER.key).map(|column| Arc::from(column.as_bytes())))
                .flatten(),
            places,
        }
    }
}
