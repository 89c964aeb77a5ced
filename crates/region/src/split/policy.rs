//! When a region is to be split, and where: HBase's split policies and restrictions.
//!
//! Always true: nothing here reads a file. Follows: `RegionSplitPolicy` and those that extend it, `RegionSplitRestriction`.

use super::busy::BusyWindow;
use super::restriction::Prefix;
use crate::RegionSettings;
use base::Rng;
use model::{SplitPolicyKind, TableDescriptor};
use parking_lot::Mutex;
use std::fmt;

/// From how many regions on the bound does not grow any more: HBase's guard against an overflow.
const REGIONS_MAX: usize = 100;

/// What a policy looks at.
pub(crate) struct Sizes {
    /// Bytes of the files of each store.
    pub stores: Vec<u64>,
    /// Regions of the table on this server.
    pub regions_of_table_here: usize,
    /// Writes since the region opened.
    pub writes: u64,
    /// Writes refused for want of memory since then.
    pub blocked: u64,
    pub now_ms: i64,
}

/// The policy of an open region.
pub(crate) struct SplitPolicy {
    kind: SplitPolicyKind,
    max_file_size_bytes: u64,
    initial_size_bytes: u64,
    /// All stores together count, not the largest.
    is_overall: bool,
    busy: Option<Mutex<BusyWindow>>,
    prefix: Option<Prefix>,
    restriction: Option<Prefix>,
}

impl fmt::Debug for SplitPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SplitPolicy").field("kind", &self.kind).field("max_bytes", &self.max_file_size_bytes).finish()
    }
}

impl SplitPolicy {
    /// Of a region that opens now.
    pub(crate) fn new(table: &TableDescriptor, settings: &RegionSettings, rng: &Rng, now_ms: i64) -> SplitPolicy {
        let named = table.value("SPLIT_POLICY");
        let kind = named.and_then(SplitPolicyKind::parse).unwrap_or(settings.split_policy);
        if let Some(unknown) = named.filter(|named| SplitPolicyKind::parse(named).is_none()) {
            tracing::warn!("table {}: unknown split policy {unknown}, using {kind:?}", table.name);
        }
        let max_file_size = table.max_file_size_bytes().unwrap_or(settings.max_file_size_bytes);
        let flush_size = table.flush_size_bytes().unwrap_or(settings.flush_size_bytes);
        SplitPolicy {
            kind,
            max_file_size_bytes: jittered(max_file_size, settings.max_file_size_jitter, rng),
            initial_size_bytes: match settings.split_initial_size_bytes {
                Some(bytes) => bytes,
                None => flush_size.saturating_mul(2),
            },
            is_overall: settings.split_by_whole_region,
            busy: (kind == SplitPolicyKind::BusyRegion).then(|| Mutex::new(BusyWindow::new(settings.busy, now_ms))),
            prefix: match kind {
                SplitPolicyKind::KeyPrefix => Prefix::of_key_prefix_policy(table),
                SplitPolicyKind::DelimitedKeyPrefix => Prefix::of_delimited_policy(table),
                _ => None,
            },
            restriction: Prefix::of_restriction(table, &settings.split_restriction),
        }
    }

    /// Whether the region may be split at all, as far as the policy is asked.
    pub(crate) fn can_split(&self) -> bool {
        self.kind != SplitPolicyKind::Disabled
    }

    /// Whether it is time. `can_split` says whether nothing else stands against it.
    pub(crate) fn should_split(&self, sizes: &Sizes, can_split: bool) -> bool {
        // The window moves whatever else is true.
        let is_busy = self.busy.as_ref().is_some_and(|busy| busy.lock().is_busy(sizes));
        can_split && self.can_split() && (is_busy || self.is_over(sizes, self.bound(sizes.regions_of_table_here)))
    }

    fn bound(&self, regions_here: usize) -> u64 {
        match self.kind {
            SplitPolicyKind::Disabled => u64::MAX,
            SplitPolicyKind::ConstantSize => self.max_file_size_bytes,
            SplitPolicyKind::Stepping if regions_here == 1 => self.initial_size_bytes,
            SplitPolicyKind::Stepping => self.max_file_size_bytes,
            _ if regions_here == 0 || regions_here > REGIONS_MAX => self.max_file_size_bytes,
            _ => {
                let cube = (regions_here as u64).pow(3);
                self.max_file_size_bytes.min(self.initial_size_bytes.saturating_mul(cube))
            }
        }
    }

    fn is_over(&self, sizes: &Sizes, bound: u64) -> bool {
        match self.is_overall {
            true => sizes.stores.iter().sum::<u64>() > bound,
            false => sizes.stores.iter().any(|bytes| *bytes > bound),
        }
    }

    /// The row at which a region is split whose middle is `row`.
    pub(crate) fn split_row<'r>(&self, row: &'r [u8]) -> &'r [u8] {
        let row = self.prefix.as_ref().map_or(row, |prefix| prefix.of(row));
        self.restriction.as_ref().map_or(row, |prefix| prefix.of(row))
    }
}

/// Half of `jitter` up or down at most, so that regions that were made together are not split together.
fn jittered(bytes: u64, jitter: f64, rng: &Rng) -> u64 {
    if jitter == 0.0 {
        return bytes;
    }
    let unit = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let by = (bytes as f64 * (unit - 0.5) * jitter) as i64;
    bytes.saturating_add_signed(by).clamp(1, i64::MAX as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Config;
    use bytes::Bytes;
    use model::{FamilyDescriptor, TableName};

    fn policy(words: &[(&'static str, &'static str)], settings: &[(&str, &str)]) -> SplitPolicy {
        let mut table = TableDescriptor::new(TableName::parse("t").expect("legal"), [FamilyDescriptor::new("f")]);
        table.attributes.extend(words.iter().map(|(key, value)| (Bytes::from(*key), Bytes::from(*value))));
        let mut config = Config::default();
        config.set("hbase.hregion.memstore.flush.size", "100");
        config.set("hbase.hregion.max.filesize", "10000");
        config.set("hbase.hregion.max.filesize.jitter", "0");
        settings.iter().for_each(|(key, value)| config.set(*key, *value));
        config.check(crate::settings::ALL).expect("legal");
        let settings = std::sync::Arc::new(RegionSettings::from_config(&config));
        let settings = settings.with_overrides(table.overrides(), |what| panic!("{what}"));
        SplitPolicy::new(&table, &settings, &Rng::seeded(1), 0)
    }

    /// The largest size that is not split yet.
    fn bound(policy: &SplitPolicy, regions_here: usize) -> u64 {
        let over = |bytes| {
            let sizes =
                Sizes { stores: vec![1, bytes], regions_of_table_here: regions_here, writes: 0, blocked: 0, now_ms: 0 };
            policy.should_split(&sizes, true)
        };
        let bound = policy.bound(regions_here);
        assert!(bound == u64::MAX || (!over(bound) && over(bound + 1)));
        bound
    }

    #[test]
    fn each_policy_has_hbases_bound() {
        let of = |class: &'static str| policy(&[("SPLIT_POLICY", class)], &[]);
        let bounds = |class| [0, 1, 2, 3, 4, 101].map(|regions| bound(&of(class), regions));
        let stepping = [10_000, 200, 10_000, 10_000, 10_000, 10_000];
        assert_eq!(bounds("org.apache.hadoop.hbase.regionserver.SteppingSplitPolicy"), stepping);
        assert_eq!([0, 1, 2, 3, 4, 101].map(|regions| bound(&policy(&[], &[]), regions)), stepping, "HBase's default");
        assert_eq!(bounds("ConstantSizeRegionSplitPolicy"), [10_000; 6]);
        assert_eq!(bounds("DisabledRegionSplitPolicy"), [u64::MAX; 6]);
        for class in [
            "IncreasingToUpperBoundRegionSplitPolicy",
            "BusyRegionSplitPolicy",
            "KeyPrefixRegionSplitPolicy",
            "DelimitedKeyPrefixRegionSplitPolicy",
        ] {
            assert_eq!(bounds(class), [10_000, 200, 1600, 5400, 10_000, 10_000], "{class}");
        }
        assert!(SplitPolicyKind::parse("org.example.Own").is_none());
    }

    #[test]
    fn what_the_table_says_counts_more_than_the_site() {
        let key = "hbase.regionserver.region.split.policy";
        let site = [(key, "DisabledRegionSplitPolicy"), ("hbase.increasing.policy.initial.size", "7")];
        assert_eq!(bound(&policy(&[], &site), 1), u64::MAX);
        let increasing = "IncreasingToUpperBoundRegionSplitPolicy";
        assert_eq!(bound(&policy(&[(key, increasing)], &site), 2), 56);
        assert_eq!(
            bound(&policy(&[("SPLIT_POLICY", increasing), (key, "ConstantSizeRegionSplitPolicy")], &site), 1),
            7
        );
        let table = [("MAX_FILESIZE", "500"), ("MEMSTORE_FLUSHSIZE", "30")];
        assert_eq!([1, 2].map(|regions| bound(&policy(&table, &[]), regions)), [60, 500]);
        let whole = policy(&[], &[("hbase.hregion.split.overallfiles", "true")]);
        let sizes = |stores| Sizes { stores, regions_of_table_here: 2, writes: 0, blocked: 0, now_ms: 0 };
        assert!(
            whole.should_split(&sizes(vec![6000, 6000]), true) && !whole.should_split(&sizes(vec![6000, 6000]), false)
        );
        assert!(!policy(&[], &[]).should_split(&sizes(vec![6000, 6000]), true));
    }

    #[test]
    fn the_bound_of_each_opening_is_a_little_different() {
        let rng = Rng::seeded(3);
        let bounds: Vec<u64> = (0..200).map(|_| jittered(1_000_000, 0.25, &rng)).collect();
        assert!(bounds.iter().all(|bytes| (875_000..=1_125_000).contains(bytes)), "{bounds:?}");
        assert!(bounds.iter().any(|bytes| *bytes < 900_000) && bounds.iter().any(|bytes| *bytes > 1_100_000));
        assert!(jittered(i64::MAX as u64, 1.0, &rng) <= i64::MAX as u64);
    }

    #[test]
    fn rows_are_cut_where_policy_and_restriction_say() {
        let row = |words: &[(&'static str, &'static str)], settings: &[(&str, &str)]| {
            String::from_utf8(policy(words, settings).split_row(b"ab_cd_ef").to_vec()).expect("text")
        };
        let key_prefix = ("SPLIT_POLICY", "KeyPrefixRegionSplitPolicy");
        assert_eq!(row(&[key_prefix, ("KeyPrefixRegionSplitPolicy.prefix_length", "4")], &[]), "ab_c");
        assert_eq!(row(&[key_prefix, ("prefix_split_key_policy.prefix_length", "1")], &[]), "a");
        for bad in ["x", "0", "-1"] {
            assert_eq!(row(&[key_prefix, ("KeyPrefixRegionSplitPolicy.prefix_length", bad)], &[]), "ab_cd_ef");
        }
        assert_eq!(row(&[key_prefix], &[]), "ab_cd_ef");
        let delimited = ("SPLIT_POLICY", "DelimitedKeyPrefixRegionSplitPolicy");
        assert_eq!(row(&[delimited, ("DelimitedKeyPrefixRegionSplitPolicy.delimiter", "_c")], &[]), "ab");
        assert_eq!(row(&[delimited, ("DelimitedKeyPrefixRegionSplitPolicy.delimiter", "x")], &[]), "ab_cd_ef");
        const TYPE: &str = "hbase.regionserver.region.split_restriction.type";
        const LENGTH: &str = "hbase.regionserver.region.split_restriction.prefix_length";
        const DELIMITER: &str = "hbase.regionserver.region.split_restriction.delimiter";
        assert_eq!(row(&[], &[(TYPE, "KeyPrefix"), (LENGTH, "3")]), "ab_");
        assert_eq!(row(&[(TYPE, "KeyPrefix"), (LENGTH, "5")], &[(LENGTH, "3")]), "ab_cd");
        assert_eq!(row(&[(TYPE, "DelimitedKeyPrefix"), (DELIMITER, "_")], &[]), "ab");
        assert_eq!(row(&[(TYPE, "DelimitedKeyPrefix")], &[(DELIMITER, "_cd_")]), "ab");
        assert_eq!(row(&[(TYPE, "None")], &[(TYPE, "KeyPrefix"), (LENGTH, "3")]), "ab_cd_ef");
        // HBase warns of a type that it does not have, and restricts nothing.
        assert_eq!(row(&[(TYPE, "Own"), (LENGTH, "3")], &[]), "ab_cd_ef");
        assert_eq!(
            row(
                &[key_prefix, ("KeyPrefixRegionSplitPolicy.prefix_length", "6"), (TYPE, "KeyPrefix"), (LENGTH, "2")],
                &[]
            ),
            "ab"
        );
    }
}
