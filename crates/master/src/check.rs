//! Whether a table may be made or changed so. Follows: `TableDescriptorChecker#sanityCheck`, in its words.

mod values;

use crate::{MasterError, Result, settings};
use base::Config;
use bytes::Bytes;
use model::store_engine::ENGINE_KEY;
use model::{
    BloomType, Compression, DataBlockEncoding, Endpoint, FamilyDescriptor, KeepDeletedCells, SplitPolicyKind,
    StoreEngine, TableDescriptor, TableName,
};
use rootdir::tracker::Site;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const SANITY_CHECKS_KEY: &str = settings::SANITY_CHECKS.key;
const SMALLEST_MAX_FILE_SIZE_KEY: &str = settings::MAX_FILESIZE_LIMIT.key;
const SMALLEST_FLUSH_SIZE_KEY: &str = settings::FLUSH_SIZE_LIMIT.key;
// Rows of the region's; here it matters whether they are given at all.
const MAX_FILE_SIZE_KEY: &str = "hbase.hregion.max.filesize";
const FLUSH_SIZE_KEY: &str = "hbase.hregion.memstore.flush.size";
pub(crate) const SPLIT_POLICY_KEY: &str = "hbase.regionserver.region.split.policy";
const KEYS: [&str; 5] =
    [SANITY_CHECKS_KEY, SMALLEST_MAX_FILE_SIZE_KEY, SMALLEST_FLUSH_SIZE_KEY, MAX_FILE_SIZE_KEY, FLUSH_SIZE_KEY];

/// Values of IN_MEMORY_COMPACTION.
const IN_MEMORY_COMPACTIONS: [&str; 4] = ["NONE", "BASIC", "EAGER", "ADAPTIVE"];

/// What of the configuration the checks look at.
#[derive(Clone, Debug)]
pub struct Limits {
    checks_enabled: bool,
    smallest_max_file_size: i64,
    smallest_flush_size: i64,
    max_file_size: Option<i64>,
    flush_size: Option<i64>,
    trackers: Site,
    split_policy: Option<SplitPolicyKind>,
    values: values::Site,
    /// The key provider that is not there has been asked for.
    keys_failed: Arc<AtomicBool>,
}

impl Limits {
    /// As the settings say.
    pub fn from_config(config: &Config) -> Limits {
        let mut limits = Limits {
            checks_enabled: settings::SANITY_CHECKS.default,
            smallest_max_file_size: settings::MAX_FILESIZE_LIMIT.default,
            smallest_flush_size: settings::FLUSH_SIZE_LIMIT.default,
            max_file_size: None,
            flush_size: None,
            trackers: Site::from_config(|key| config.text(key)),
            split_policy: config.text(SPLIT_POLICY_KEY).and_then(SplitPolicyKind::parse),
            values: values::Site::from_config(config),
            keys_failed: Arc::default(),
        };
        KEYS.iter().filter_map(|key| Some((*key, config.text(key)?))).for_each(|(key, text)| limits.set(key, text));
        limits
    }

    /// What the site says of store file trackers.
    pub fn trackers(&self) -> &Site {
        &self.trackers
    }

    /// What the site says of when regions are split.
    pub fn split_policy(&self) -> Option<SplitPolicyKind> {
        self.split_policy
    }

    /// With what the table says in the place of the site's settings.
    fn of_table(&self, table: &TableDescriptor) -> Limits {
        let mut limits = self.clone();
        table.overrides().for_each(|(key, text)| limits.set(key, text));
        limits
    }

    fn set(&mut self, key: &str, text: &str) {
        let number = || text.trim().parse().ok();
        match key {
            SANITY_CHECKS_KEY => self.checks_enabled = text.trim() != "false",
            SMALLEST_MAX_FILE_SIZE_KEY => self.smallest_max_file_size = number().unwrap_or(self.smallest_max_file_size),
            SMALLEST_FLUSH_SIZE_KEY => self.smallest_flush_size = number().unwrap_or(self.smallest_flush_size),
            MAX_FILE_SIZE_KEY => self.max_file_size = number().or(self.max_file_size),
            FLUSH_SIZE_KEY => self.flush_size = number().or(self.flush_size),
            _ => {}
        }
    }
}

fn refuse(message: impl std::fmt::Display) -> MasterError {
    MasterError::do_not_retry(format!(
        "{message} Set {SANITY_CHECKS_KEY} to false at conf or table descriptor if you want to bypass sanity checks"
    ))
}

fn text<'a>(attributes: &'a BTreeMap<Bytes, Bytes>, key: &str) -> Option<&'a str> {
    attributes.get(key.as_bytes()).map(|value| std::str::from_utf8(value).unwrap_or("\u{FFFD}"))
}

/// A number that must be one when it is given.
fn number(attributes: &BTreeMap<Bytes, Bytes>, key: &str, of: &str) -> Result<Option<i64>> {
    let Some(text) = text(attributes, key) else { return Ok(None) };
    match text.trim().parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(refuse(format!("{key} of {of} must be a number, and is \"{text}\"."))),
    }
}

/// Whether the table may be made or changed to this.
///
/// # Errors
/// `DoNotRetryIOException` with HBase's sentence.
pub fn check_table(limits: &Limits, table: &TableDescriptor) -> Result<()> {
    let limits = limits.of_table(table);
    match checked(&limits, table) {
        Err(error) if !limits.checks_enabled => tracing::warn!(table = %table.name, "{error}"),
        result => result?,
    }
    let wrong = values::wrong_with_fifo(&limits.values, table).or_else(|| values::wrong_with_tiering(table));
    wrong.map_or(Ok(()), |wrong| Err(refuse(wrong)))?;
    must_hold(table)
}

/// What this server cannot do without, whatever the client wants to bypass.
fn must_hold(table: &TableDescriptor) -> Result<()> {
    if table.families.is_empty() {
        return Err(MasterError::do_not_retry(format!("Table {} should have at least one column family.", table.name)));
    }
    for family in table.families.values() {
        let name = String::from_utf8_lossy(&family.name);
        for key in ["COMPRESSION", "COMPRESSION_COMPACT", "COMPRESSION_COMPACT_MAJOR", "COMPRESSION_COMPACT_MINOR"] {
            let Some(codec) = text(&family.attributes, key) else { continue };
            if Compression::parse(codec).is_none() {
                return Err(MasterError::do_not_retry(format!(
                    "Compression algorithm '{codec}' of column family {name} is not known; use NONE, GZ, SNAPPY, LZ4, ZSTD, BZIP2, LZMA, \
                     BROTLI or LZO."
                )));
            }
        }
        if text(&family.attributes, "ENCRYPTION").is_some() {
            return Err(MasterError::do_not_retry(format!(
                "ENCRYPTION of column family {name}: this server has no key provider, so its files could neither be written nor read; leave \
                 the attribute out."
            )));
        }
    }
    Ok(())
}

fn checked(limits: &Limits, table: &TableDescriptor) -> Result<()> {
    values::wrong_values(table).map_or(Ok(()), |wrong| Err(refuse(wrong)))?;
    let of_table = format!("table {}", table.name);
    let max_file_size = number(&table.attributes, "MAX_FILESIZE", &of_table)?
        .or(limits.max_file_size)
        .unwrap_or(limits.smallest_max_file_size);
    if max_file_size < limits.smallest_max_file_size {
        return Err(refuse(format!(
            "MAX_FILESIZE for table descriptor or \"hbase.hregion.max.filesize\" ({max_file_size}) is too small, which might cause over splitting into unmanageable number of regions."
        )));
    }
    let flush_size = number(&table.attributes, "MEMSTORE_FLUSHSIZE", &of_table)?
        .or(limits.flush_size)
        .unwrap_or(limits.smallest_flush_size);
    if flush_size < limits.smallest_flush_size {
        return Err(refuse(format!(
            "MEMSTORE_FLUSHSIZE for table descriptor or \"hbase.hregion.memstore.flush.size\" ({flush_size}) is too small, which might cause very frequent flushing."
        )));
    }
    check_split_policy(table)?;
    check_engine(table.overrides())?;
    table.families.values().try_for_each(|family| check_engine(family.overrides()))?;
    check_coprocessors(table)?;
    check_encryption(table, &limits.keys_failed)?;
    if table.families.is_empty() {
        return Err(refuse("Table should have at least one column family."));
    }
    if number(&table.attributes, "REGION_REPLICATION", &of_table)?.is_some_and(|replicas| replicas < 1) {
        return Err(refuse("Table region replication should be at least one."));
    }
    if table.name == TableName::meta() && table.read_only() {
        return Err(refuse("Meta table can't be set as read only."));
    }
    table.families.values().try_for_each(check_scope)?;
    table.families.values().try_for_each(check_bloom)?;
    if text(&table.attributes, "ERASURE_CODING_POLICY").is_some() {
        return Err(refuse(
            "Cannot manage Erasure Coding policy. Erasure Coding is only available on HDFS, and is not supported there yet.",
        ));
    }
    table.families.values().try_for_each(check_family)
}

/// As of coprocessors: another policy would split the table's regions where and when nobody wants it.
fn check_split_policy(table: &TableDescriptor) -> Result<()> {
    let said = table.value("SPLIT_POLICY").or_else(|| table.value(SPLIT_POLICY_KEY));
    match said.filter(|class| SplitPolicyKind::parse(class).is_none()) {
        Some(class) => {
            Err(refuse(format!("Unable to load configured region split policy '{class}' for table '{}'", table.name)))
        }
        None => Ok(()),
    }
}

fn check_engine<'a>(overrides: impl Iterator<Item = (&'a str, &'a str)>) -> Result<()> {
    let said = overrides.filter(|(key, _)| *key == ENGINE_KEY).last();
    match said.filter(|(_, class)| StoreEngine::parse(class).is_none()) {
        Some(_) => Err(refuse(format!("'{ENGINE_KEY}' must be a class."))),
        None => Ok(()),
    }
}

/// There is no key provider, as in an HBase that is not told of one, and that is what is said: why
/// the first time, and then that it was said. Follows: `EncryptionTest#testKeyProvider`.
fn check_encryption(table: &TableDescriptor, has_failed: &AtomicBool) -> Result<()> {
    if !table.families.values().any(|family| text(&family.attributes, "ENCRYPTION").is_some()) {
        return Ok(());
    }
    let why = match has_failed.swap(true, Ordering::Relaxed) {
        false => "failed test: java.lang.RuntimeException: KeyProvider scheme should specify KeyStore type",
        true => "previously failed test",
    };
    Err(refuse(format!("Key provider org.apache.hadoop.hbase.io.crypto.KeyStoreKeyProvider {why}")))
}

/// A class that this server has no counterpart of cannot be loaded, so its table is refused rather than left without.
fn check_coprocessors(table: &TableDescriptor) -> Result<()> {
    match table.coprocessors().find(|coprocessor| Endpoint::of_class(&coprocessor.class).is_none()) {
        Some(unknown) => Err(refuse(format!("Class {} cannot be loaded", unknown.class))),
        None => Ok(()),
    }
}

fn one_of<T>(family: &FamilyDescriptor, key: &str, parse: impl Fn(&str) -> Option<T>) -> Result<()> {
    match text(&family.attributes, key) {
        Some(value) if parse(value).is_none() => Err(refuse(format!(
            "{key} of column family {} is \"{value}\", which is none of the known values.",
            String::from_utf8_lossy(&family.name)
        ))),
        _ => Ok(()),
    }
}

fn check_scope(family: &FamilyDescriptor) -> Result<()> {
    let name = String::from_utf8_lossy(&family.name);
    match number(&family.attributes, "REPLICATION_SCOPE", &format!("column family {name}"))? {
        Some(scope) if !(0..=1).contains(&scope) => {
            Err(refuse(format!("Replication scope for column family {name} is {scope} which is invalid.")))
        }
        _ => Ok(()),
    }
}

fn check_bloom(family: &FamilyDescriptor) -> Result<()> {
    let is_prefix = family.bloom_type() == BloomType::RowPrefixFixedLength;
    match is_prefix && family.bloom_prefix_length().is_none_or(|n| n == 0) {
        true => Err(refuse("Failed to get bloom filter param")),
        false => Ok(()),
    }
}

fn check_family(family: &FamilyDescriptor) -> Result<()> {
    let name = String::from_utf8_lossy(&family.name);
    let of_family = format!("column family {name}");
    let number = |key: &str| number(&family.attributes, key, &of_family);
    let max_versions = number("VERSIONS")?.unwrap_or(1);
    let min_versions = number("MIN_VERSIONS")?.unwrap_or(0);
    if number("TTL")?.is_some_and(|seconds| seconds <= 0) {
        return Err(refuse(format!("TTL for column family {name} must be positive.")));
    }
    if number("BLOCKSIZE")?.is_some_and(|size| !(1024..=16 << 20).contains(&size)) {
        return Err(refuse(format!("Block size for column family {name}  must be between 1K and 16MB.")));
    }
    if min_versions < 0 {
        return Err(refuse(format!("Min versions for column family {name}  must be positive.")));
    }
    if min_versions > max_versions {
        return Err(refuse(format!("Min versions for column family {name} must be less than the Max versions.")));
    }
    if max_versions <= 0 {
        return Err(refuse(format!("Maximum versions for column family {name} must be positive.")));
    }
    if number("DFS_REPLICATION")?.is_some_and(|copies| copies < 0) {
        return Err(refuse(format!("HFile Replication for column family {name}  must be greater than zero.")));
    }
    number("MOB_THRESHOLD")?;
    if let Some(policy) = text(&family.attributes, "IN_MEMORY_COMPACTION").map(str::to_uppercase)
        && !IN_MEMORY_COMPACTIONS.contains(&policy.as_str())
    {
        return Err(refuse(format!("No enum constant org.apache.hadoop.hbase.MemoryCompactionPolicy.{policy}")));
    }
    one_of(family, "BLOOMFILTER", BloomType::parse)?;
    one_of(family, "DATA_BLOCK_ENCODING", DataBlockEncoding::parse)?;
    one_of(family, "KEEP_DELETED_CELLS", KeepDeletedCells::parse)?;
    one_of(family, "COMPRESSION", Compression::parse)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ConfigKey#validate`, `checkCompactionPolicy` and what else HBase refuses of a descriptor's values, with its sentences.
    #[test]
    fn values_of_keys_are_checked_and_what_goes_together() {
        const FIFO: &str = "org.apache.hadoop.hbase.regionserver.compactions.FIFOCompactionPolicy";
        const POLICY: &str = "hbase.hstore.defaultengine.compactionpolicy.class";
        const FILES: &str = "hbase.hstore.blockingStoreFiles";
        const TIERED: (&str, &str) =
            ("hbase.hstore.engine.class", "org.apache.hadoop.hbase.regionserver.DateTieredStoreEngine");
        const UNCHECKED: (&str, &str) = (SANITY_CHECKS_KEY, "false");
        let limits = Limits::from_config(&Config::default());
        let of = |table_says: &[(&'static str, &'static str)], family_says: &[(&'static str, &'static str)]| {
            let family = family_says.iter().fold(FamilyDescriptor::new("f"), |family, (key, value)| {
                let mut family = family;
                if key.starts_with("hbase.") {
                    family.configuration.insert((*key).to_owned(), (*value).to_owned());
                    family
                } else {
                    family.with(key, *value)
                }
            });
            let mut table = TableDescriptor::new(TableName::parse("t").expect("legal"), [family]);
            table.attributes.extend(table_says.iter().map(|(key, value)| (Bytes::from(*key), Bytes::from(*value))));
            check_table(&limits, &table).map_err(|error| error.to_string())
        };
        let refused = |table_says: &[(&'static str, &'static str)],
                       family_says: &[(&'static str, &'static str)],
                       words: &str| {
            let error = of(table_says, family_says).expect_err(words);
            let bypass = " Set hbase.table.sanity.checks to false at conf or table descriptor if you want to bypass sanity checks";
            assert_eq!(error, format!("{words}{bypass}"));
        };
        for (key, value, words) in [
            ("hbase.hstore.compaction.min", "few", "'hbase.hstore.compaction.min' must be an integer."),
            ("hbase.hstore.compaction.min", "3000000000", "'hbase.hstore.compaction.min' must be an integer."),
            ("hbase.hregion.majorcompaction", "1.5", "'hbase.hregion.majorcompaction' must be a long."),
            ("hbase.hstore.compaction.ratio", "much", "'hbase.hstore.compaction.ratio' must be a float."),
            (
                "hbase.hregion.memstore.block.multiplier",
                "0",
                "Invalid value for 'hbase.hregion.memstore.block.multiplier': 0.",
            ),
            (ENGINE_KEY, "org.example.Engine", "'hbase.hstore.engine.class' must be a class."),
            (POLICY, "org.example.Policy", "'hbase.hstore.defaultengine.compactionpolicy.class' must be a class."),
        ] {
            refused(&[(key, value)], &[], words);
            refused(&[], &[(key, value)], words);
            of(&[(key, value), UNCHECKED], &[]).expect("bypassed");
        }
        of(&[("hbase.hstore.compaction.min", " 0x5 ")], &[]).expect("a number in base 16");
        let ttl = ("TTL", "100");
        refused(&[(POLICY, FIFO)], &[], "Default TTL is not supported for FIFO compaction");
        refused(&[(POLICY, FIFO), UNCHECKED], &[], "Default TTL is not supported for FIFO compaction");
        refused(
            &[],
            &[(POLICY, FIFO), ttl, ("VERSIONS", "3"), ("MIN_VERSIONS", "2")],
            "MIN_VERSION > 0 is not supported for FIFO compaction",
        );
        let few = "Blocking file count 'hbase.hstore.blockingStoreFiles' 16 is below recommended minimum of 1000 for column family f";
        refused(&[(POLICY, FIFO)], &[ttl], few);
        of(&[(POLICY, FIFO), (FILES, "1000")], &[ttl]).expect("as HBase wants it");
        of(&[], &[(POLICY, FIFO), (FILES, "1000"), ttl]).expect("as HBase wants it");
        let by_time = ("hbase.hstore.datatiering.type", "TIME_RANGE");
        refused(&[by_time], &[], "Time Range Data Tiering should be enabled with Date Tiered Compaction.");
        refused(&[], &[by_time], "Time Range Data Tiering should be enabled with Date Tiered Compaction.");
        of(&[by_time, TIERED], &[]).expect("they go together");
        of(&[TIERED], &[by_time]).expect("they go together");
        let custom = ("hbase.hstore.engine.class", "CustomTieredStoreEngine");
        let missing = "StoreEngine CustomTieredStoreEngine is missing required TIERING_CELL_QUALIFIER parameter.";
        refused(&[custom], &[], missing);
        refused(&[], &[custom], missing);
        let since = ("TIERING_CELL_QUALIFIER", "since");
        of(&[custom], &[since]).expect("the family says which column");
        let provider = ("hbase.hstore.custom-tiering-value.provider.class", "org.example.Provider");
        refused(
            &[custom],
            &[since, provider],
            "Unable to load configured tiering value provider 'org.example.Provider'",
        );
        let unknown = "No enum constant org.apache.hadoop.hbase.MemoryCompactionPolicy.SOME";
        refused(&[], &[("IN_MEMORY_COMPACTION", "some")], unknown);
        of(&[], &[("IN_MEMORY_COMPACTION", "basic")]).expect("known");
        let no_keys = "Key provider org.apache.hadoop.hbase.io.crypto.KeyStoreKeyProvider failed test: java.lang.RuntimeException: KeyProvider scheme should specify KeyStore type";
        refused(&[], &[("ENCRYPTION", "AES")], no_keys);
        let again = "Key provider org.apache.hadoop.hbase.io.crypto.KeyStoreKeyProvider previously failed test";
        refused(&[], &[("ENCRYPTION", "AES")], again);
        let bypassed = of(&[UNCHECKED], &[("ENCRYPTION", "AES")]).expect_err("nobody could read it");
        assert!(bypassed.starts_with("ENCRYPTION of column family f: this server has no key provider"), "{bypassed}");
        let coded = of(&[("ERASURE_CODING_POLICY", "RS-6-3-1024k")], &[]).expect_err("not here");
        assert!(
            coded.starts_with("Cannot manage Erasure Coding policy. Erasure Coding is only available on HDFS"),
            "{coded}"
        );
    }

    /// HBase asks the site under the table's own words, whether they stand in CONFIGURATION or among the attributes.
    #[test]
    fn a_tables_own_words_count_in_the_checks() {
        let name = TableName::parse("t").expect("legal");
        let table = TableDescriptor::new(name, [FamilyDescriptor::new("f")]);
        let limits = Limits::from_config(&Config::default());
        check_table(&limits, &table).expect("legal");
        let mut tiered = table.clone();
        for engine in ["DateTieredStoreEngine", "org.apache.hadoop.hbase.regionserver.StripeStoreEngine"] {
            tiered.configuration.insert(ENGINE_KEY.into(), engine.into());
            check_table(&limits, &tiered).expect("legal");
        }
        let foreign = "org.example.TieredStoreEngine";
        tiered.families.values_mut().for_each(|family| _ = family.attributes.insert(ENGINE_KEY.into(), foreign.into()));
        let error = check_table(&limits, &tiered).expect_err("a Java class of the user's").to_string();
        assert!(error.starts_with("'hbase.hstore.engine.class' must be a class."), "{error}");
        let with = |attributes: &[(&'static str, &'static str)], configuration: &[(&str, &str)]| {
            let mut table = table.clone();
            table.attributes.extend(attributes.iter().map(|(key, value)| (Bytes::from(*key), Bytes::from(*value))));
            let pairs = configuration.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            table.configuration.extend(pairs);
            check_table(&limits, &table).map_err(|error| error.to_string())
        };
        for key in [FLUSH_SIZE_KEY, MAX_FILE_SIZE_KEY] {
            for refused in [with(&[(key, "1000")], &[]), with(&[], &[(key, "1000")])] {
                let error = refused.expect_err("too small");
                assert!(error.contains(key) && error.contains("(1000) is too small"), "{error}");
            }
        }
        with(&[(FLUSH_SIZE_KEY, "1000"), (SMALLEST_FLUSH_SIZE_KEY, "500")], &[]).expect("its own limit");
        with(&[(FLUSH_SIZE_KEY, "1000")], &[(SANITY_CHECKS_KEY, "false")]).expect("not checked");
        with(&[(FLUSH_SIZE_KEY, "1000"), (SANITY_CHECKS_KEY, "false")], &[(SANITY_CHECKS_KEY, "true")])
            .expect_err("of a table the CONFIGURATION counts more");
    }
}
