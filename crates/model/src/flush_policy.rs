//! HBase's flush policies by name. What they do is the region's. Follows: `FlushPolicyFactory`.

const PACKAGE: &str = "org.apache.hadoop.hbase.regionserver.";

/// Which policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlushPolicyKind {
    /// All families together.
    AllStores,
    /// Those with large memstores, or all if none is large.
    #[default]
    AllLargeStores,
    /// As that; families whose memstores are compacted in memory come last.
    NonSloppyStoresFirst,
}

const KINDS: [(FlushPolicyKind, &str); 3] = [
    (FlushPolicyKind::AllStores, "FlushAllStoresPolicy"),
    (FlushPolicyKind::AllLargeStores, "FlushAllLargeStoresPolicy"),
    (FlushPolicyKind::NonSloppyStoresFirst, "FlushNonSloppyStoresFirstPolicy"),
];

impl FlushPolicyKind {
    /// The policy of HBase's class, with or without its package.
    pub fn parse(class: &str) -> Option<FlushPolicyKind> {
        let class = class.trim();
        let name = class.strip_prefix(PACKAGE).unwrap_or(class);
        KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }
}
