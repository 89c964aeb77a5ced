//! HBase's split policies by name. What they do is the region's. Follows: `RegionSplitPolicy`.

const PACKAGE: &str = "org.apache.hadoop.hbase.regionserver.";

/// Which policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitPolicyKind {
    /// Never, nor when somebody asks.
    Disabled,
    /// When a store is larger than a region should be.
    ConstantSize,
    /// Early while the table has few regions here: the bound grows with the cube of their number.
    IncreasingToUpperBound,
    /// Early while it is the table's only region here.
    Stepping,
    /// As the bound grows, or when too many writes are refused.
    BusyRegion,
    /// As the bound grows, at the first bytes of a row.
    KeyPrefix,
    /// As the bound grows, at what a row has before a delimiter.
    DelimitedKeyPrefix,
}

const KINDS: [(SplitPolicyKind, &str); 7] = [
    (SplitPolicyKind::Disabled, "DisabledRegionSplitPolicy"),
    (SplitPolicyKind::ConstantSize, "ConstantSizeRegionSplitPolicy"),
    (SplitPolicyKind::IncreasingToUpperBound, "IncreasingToUpperBoundRegionSplitPolicy"),
    (SplitPolicyKind::Stepping, "SteppingSplitPolicy"),
    (SplitPolicyKind::BusyRegion, "BusyRegionSplitPolicy"),
    (SplitPolicyKind::KeyPrefix, "KeyPrefixRegionSplitPolicy"),
    (SplitPolicyKind::DelimitedKeyPrefix, "DelimitedKeyPrefixRegionSplitPolicy"),
];

impl SplitPolicyKind {
    /// The policy of HBase's class, with or without its package.
    pub fn parse(class: &str) -> Option<SplitPolicyKind> {
        let class = class.trim();
        let name = class.strip_prefix(PACKAGE).unwrap_or(class);
        KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }
}
