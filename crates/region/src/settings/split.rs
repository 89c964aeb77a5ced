//! Settings of splits: the policies and the restrictions of where regions may be cut.

use crate::split::BusyLimits;
use base::{Config, Setting, TextSetting};
use model::SplitPolicyKind;

/// When regions are split.
pub const SPLIT_POLICY: TextSetting = TextSetting {
    key: "hbase.regionserver.region.split.policy",
    default: "org.apache.hadoop.hbase.regionserver.SteppingSplitPolicy",
    legal: Some("the name of one of HBase's split policies"),
    is_legal: |text| SplitPolicyKind::parse(text).is_some(),
    doc: "When a region is split, by HBase's class, with or without its package; a table's SPLIT_POLICY counts more. SteppingSplitPolicy: a \
          table's only region here at twice the flush size, others at hbase.hregion.max.filesize. \
          IncreasingToUpperBoundRegionSplitPolicy: at twice the flush size times the cube of the table's regions here. \
          BusyRegionSplitPolicy: as that, or when too many writes are refused. KeyPrefixRegionSplitPolicy and \
          DelimitedKeyPrefixRegionSplitPolicy: as that, between groups of rows that begin alike. ConstantSizeRegionSplitPolicy: at \
          hbase.hregion.max.filesize. DisabledRegionSplitPolicy: never.",
};
/// Spread of the size at which regions are split.
pub const MAX_FILE_SIZE_JITTER: Setting<f64> = Setting {
    key: "hbase.hregion.max.filesize.jitter",
    default: 0.25,
    min: 0.0,
    max: 1.0,
    unit: "fraction",
    doc: "Each opening of a region moves hbase.hregion.max.filesize by up to half of this fraction either way, so that regions that were made \
          together are not split together.",
};
/// Where the policies begin that grow.
pub const SPLIT_INITIAL_SIZE: Setting<i64> = Setting {
    key: "hbase.increasing.policy.initial.size",
    default: -1,
    min: -1,
    max: i64::MAX,
    unit: "bytes",
    doc: "Store size at which a table's only region on a server is split; 0 or -1: twice its flush size.",
};
/// Whether all stores count together.
pub const SPLIT_BY_WHOLE_REGION: Setting<bool> = Setting {
    key: "hbase.hregion.split.overallfiles",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "A region is split when all its stores together are too large, not when one of them is.",
};
/// Part of the writes that may be refused.
pub const BUSY_BLOCKED_REQUESTS: Setting<f64> = Setting {
    key: "hbase.busy.policy.blockedRequests",
    default: 0.2,
    min: 0.0,
    max: 1.0,
    unit: "fraction",
    doc: "BusyRegionSplitPolicy splits a region when more than this part of its writes are refused for want of memory.",
};
/// Age of a region that may be too busy.
pub const BUSY_MIN_AGE: Setting<i64> = Setting {
    key: "hbase.busy.policy.minAge",
    default: 600_000,
    min: 0,
    max: i64::MAX,
    unit: "ms",
    doc: "BusyRegionSplitPolicy leaves a region alone that is open for less than this.",
};
/// Over what time refused writes are counted.
pub const BUSY_WINDOW: Setting<i64> = Setting {
    key: "hbase.busy.policy.aggWindow",
    default: 300_000,
    min: 1,
    max: i64::MAX,
    unit: "ms",
    doc: "Over so long BusyRegionSplitPolicy counts a region's writes.",
};
/// Which part of a row regions may be cut at.
pub const SPLIT_RESTRICTION_TYPE: TextSetting = TextSetting::any(
    "hbase.regionserver.region.split_restriction.type",
    "None",
    "Where regions may be cut: None (at any row), KeyPrefix (at a row's first bytes) or DelimitedKeyPrefix (at what it has before a \
     delimiter), so that rows that begin alike stay in one region. A table may say it, too.",
);
/// Bytes of a row, for KeyPrefix.
pub const SPLIT_RESTRICTION_LENGTH: TextSetting = TextSetting::any(
    "hbase.regionserver.region.split_restriction.prefix_length",
    "none",
    "Of the restriction KeyPrefix: how many bytes of a row.",
);
/// End of the prefix, for DelimitedKeyPrefix.
pub const SPLIT_RESTRICTION_DELIMITER: TextSetting = TextSetting::any(
    "hbase.regionserver.region.split_restriction.delimiter",
    "none",
    "Of the restriction DelimitedKeyPrefix: the delimiter.",
);

/// What the site says of restrictions, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitRestriction {
    /// Which.
    pub kind: Option<String>,
    /// Bytes of a row.
    pub prefix_length: Option<String>,
    /// The delimiter.
    pub delimiter: Option<String>,
}

impl SplitRestriction {
    pub(super) fn from_config(config: &Config) -> SplitRestriction {
        let of = |setting: &TextSetting| config.text(setting.key).map(str::to_owned);
        SplitRestriction {
            kind: of(&SPLIT_RESTRICTION_TYPE),
            prefix_length: of(&SPLIT_RESTRICTION_LENGTH),
            delimiter: of(&SPLIT_RESTRICTION_DELIMITER),
        }
    }
}

pub(super) fn policy(config: &Config) -> SplitPolicyKind {
    config.text(SPLIT_POLICY.key).and_then(SplitPolicyKind::parse).unwrap_or(SplitPolicyKind::Stepping)
}

pub(super) fn busy_limits(config: &Config) -> BusyLimits {
    let max_blocked = config.get(&BUSY_BLOCKED_REQUESTS);
    // HBase takes its default where the bound would be always met, or never.
    let is_sensible = (0.00001..=0.99999).contains(&max_blocked);
    BusyLimits {
        max_blocked: if is_sensible { max_blocked } else { BUSY_BLOCKED_REQUESTS.default },
        min_age_ms: config.get(&BUSY_MIN_AGE),
        window_ms: config.get(&BUSY_WINDOW),
    }
}
