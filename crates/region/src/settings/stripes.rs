//! Settings of stores that keep their files by ranges of rows. Follows: `StripeStoreConfig`.

use super::{COMPACTION_MAX, COMPACTION_MIN, FLUSH_SIZE};
use base::size::GIB;
use base::{Config, Setting};

/// Stripes of a store that has none yet.
pub const STRIPE_INITIAL_COUNT: Setting<u32> = Setting {
    key: "hbase.store.stripe.initialStripeCount",
    default: 1,
    min: 1,
    max: 512,
    unit: "count",
    doc: "Stripes that the first flush or compaction of a StripeStoreEngine makes. Where rows come evenly, as many as most regions will have: \
          that saves dividing them later.",
};
/// Whether flushes make one file.
pub const STRIPE_FLUSH_TO_L0: Setting<bool> = Setting {
    key: "hbase.store.stripe.compaction.flushToL0",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Whether a flush of a StripeStoreEngine makes one file for all stripes (at level 0, which compactions divide later), in place of one \
          for each stripe that has something: fewer files, and every cell is written once more.",
};
/// Files that level 0 needs.
pub const STRIPE_MIN_FILES_L0: Setting<u32> = Setting {
    key: "hbase.store.stripe.compaction.minFilesL0",
    default: 4,
    min: 1,
    max: 1000,
    unit: "count",
    doc: "So many files of no stripe are divided among the stripes by a compaction.",
};
/// Files that a stripe needs.
pub const STRIPE_MIN_FILES: Setting<u32> = Setting {
    key: "hbase.store.stripe.compaction.minFiles",
    default: 4,
    min: 2,
    max: 1000,
    unit: "count",
    doc: "Files that a compaction within a stripe needs. When not given, hbase.hstore.compaction.min if that is given and more than 4 (than 3 with \
          hbase.store.stripe.compaction.flushToL0).",
};
/// Files that one compaction takes.
pub const STRIPE_MAX_FILES: Setting<u32> = Setting {
    key: "hbase.store.stripe.compaction.maxFiles",
    default: 10,
    min: 2,
    max: 10_000,
    unit: "count",
    doc: "Files that a compaction within a stripe takes at most. When not given, hbase.hstore.compaction.max.",
};
/// Size at which a stripe is divided.
pub const STRIPE_SPLIT_SIZE: Setting<u64> = Setting {
    key: "hbase.store.stripe.sizeToSplit",
    default: 4 * GIB,
    min: 1,
    max: i64::MAX as u64,
    unit: "bytes",
    doc: "A stripe of which all files are compacted is divided if they have so many bytes. When not given, the flush size times \
          hbase.store.stripe.compaction.minFilesL0 times 4 times hbase.store.stripe.splitPartCount.",
};
/// Into how many a stripe is divided.
pub const STRIPE_SPLIT_PARTS: Setting<f64> = Setting {
    key: "hbase.store.stripe.splitPartCount",
    default: 2.0,
    min: 0.002,
    max: 512.0,
    unit: "count",
    doc: "Into how many a stripe is divided, one more for each part that would be too large; below 1 its inverse counts, 1 is taken for 2. \
          With a fraction the last part is smaller.",
};
/// How unequal the halves of a split may be.
pub const STRIPE_SPLIT_IMBALANCE: Setting<f64> = Setting {
    key: "hbase.store.stripe.region.split.max.imbalance",
    default: 1.5,
    min: 0.001,
    max: 1000.0,
    unit: "fraction",
    doc: "A region is split between two stripes, so that no file is of both halves, if one half has less than so many times the bytes of the \
          other; below 1 its inverse counts.",
};

/// How files are kept by ranges of rows. Field by field as the rows say.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each field is described by the row of its name")]
pub struct StripeSettings {
    pub initial_count: u32,
    pub flush_to_l0: bool,
    pub min_files_l0: usize,
    pub min_files: usize,
    pub max_files: usize,
    pub split_size_bytes: u64,
    pub split_parts: f64,
    pub split_imbalance: f64,
}

/// Nearer to 1 than this is 1.
const EPSILON: f64 = 0.001;
/// Flushes and sizes of level 0 that a stripe has when it is divided.
const FLUSHES_PER_SPLIT: f64 = 4.0;

impl StripeSettings {
    pub(super) fn from_config(config: &Config) -> StripeSettings {
        let at_least_1 = |value: f64| if value < 1.0 { 1.0 / value } else { value };
        let flush_to_l0 = config.get(&STRIPE_FLUSH_TO_L0);
        let min_files_l0 = config.get(&STRIPE_MIN_FILES_L0);
        let split_parts = match at_least_1(config.get(&STRIPE_SPLIT_PARTS)) {
            parts if parts - 1.0 < EPSILON => STRIPE_SPLIT_PARTS.default,
            parts => parts,
        };
        let given = |setting: &Setting<u32>| config.is_set(setting.key).then(|| config.get(setting) as usize);
        let smallest = if flush_to_l0 { 3 } else { 4 };
        let of_store = if config.is_set(COMPACTION_MIN.key) { config.get(&COMPACTION_MIN) as usize } else { 0 };
        let flush_size = config.get(&FLUSH_SIZE) as f64;
        let split_size = if config.is_set(STRIPE_SPLIT_SIZE.key) {
            config.get(&STRIPE_SPLIT_SIZE)
        } else {
            (flush_size * f64::from(min_files_l0) * FLUSHES_PER_SPLIT * split_parts) as u64
        };
        StripeSettings {
            initial_count: config.get(&STRIPE_INITIAL_COUNT),
            flush_to_l0,
            min_files_l0: min_files_l0 as usize,
            min_files: given(&STRIPE_MIN_FILES).unwrap_or(of_store.max(smallest)),
            max_files: given(&STRIPE_MAX_FILES).unwrap_or(config.get(&COMPACTION_MAX) as usize),
            split_size_bytes: split_size,
            split_parts,
            split_imbalance: at_least_1(config.get(&STRIPE_SPLIT_IMBALANCE)),
        }
    }

    /// Bytes of a part that a stripe is divided into.
    pub(crate) fn part_bytes(&self) -> u64 {
        ((self.split_size_bytes as f64 / self.split_parts) as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(says: &[(&'static str, &str)]) -> StripeSettings {
        let mut config = Config::default();
        says.iter().for_each(|(key, value)| config.set(*key, *value));
        StripeSettings::from_config(&config)
    }

    #[test]
    fn defaults_follow_those_of_other_stores() {
        let plain = of(&[]);
        assert_eq!((plain.min_files, plain.max_files, plain.min_files_l0), (4, 10, 4));
        assert_eq!((plain.split_size_bytes, plain.part_bytes()), (4 * GIB, 2 * GIB));
        let (min, max) = (COMPACTION_MIN.key, COMPACTION_MAX.key);
        let other = of(&[(min, "6"), (max, "20"), (FLUSH_SIZE.key, "1048576")]);
        assert_eq!((other.min_files, other.max_files, other.split_size_bytes), (6, 20, 32 << 20));
        assert_eq!(of(&[(min, "2"), (STRIPE_FLUSH_TO_L0.key, "true")]).min_files, 3);
        assert_eq!(of(&[(min, "6"), (STRIPE_MIN_FILES.key, "2")]).min_files, 2);
    }

    #[test]
    fn fractions_below_one_are_turned_over() {
        for (said, parts) in [("0.25", 4.0), ("1", 2.0), ("1.0004", 2.0), ("2.5", 2.5)] {
            assert_eq!(of(&[(STRIPE_SPLIT_PARTS.key, said)]).split_parts, parts, "{said}");
        }
        assert_eq!(of(&[(STRIPE_SPLIT_IMBALANCE.key, "0.5")]).split_imbalance, 2.0);
    }
}
