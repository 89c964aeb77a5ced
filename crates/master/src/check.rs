//! Whether a table may be made or changed so. Follows: `TableDescriptorChecker#sanityCheck`, in its words.

use crate::{MasterError, Result};
use base::Config;
use bytes::Bytes;
use model::{
    BloomType, Compression, DataBlockEncoding, Endpoint, FamilyDescriptor, KeepDeletedCells, TableDescriptor, TableName,
};
use std::collections::BTreeMap;

const SANITY_CHECKS_KEY: &str = "hbase.table.sanity.checks";

/// What of the configuration the checks look at.
#[derive(Clone, Debug)]
pub struct Limits {
    checks_enabled: bool,
    smallest_max_file_size: i64,
    smallest_flush_size: i64,
    max_file_size: Option<i64>,
    flush_size: Option<i64>,
}

impl Limits {
    /// As the settings say.
    pub fn from_config(config: &Config) -> Limits {
        let number = |key: &str| config.text(key).and_then(|text| text.trim().parse().ok());
        Limits {
            checks_enabled: config.text(SANITY_CHECKS_KEY).is_none_or(|text| text.trim() != "false"),
            smallest_max_file_size: number("hbase.hregion.max.filesize.limit").unwrap_or(2 << 20),
            smallest_flush_size: number("hbase.hregion.memstore.flush.size.limit").unwrap_or(1 << 20),
            max_file_size: number("hbase.hregion.max.filesize"),
            flush_size: number("hbase.hregion.memstore.flush.size"),
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
    let bypassed = text(&table.attributes, SANITY_CHECKS_KEY)
        .or_else(|| table.configuration.get(SANITY_CHECKS_KEY).map(String::as_str))
        .map_or(!limits.checks_enabled, |text| text.trim() == "false");
    match checked(limits, table) {
        Err(error) if bypassed => {
            tracing::warn!(table = %table.name, "{error}");
            must_hold(table)
        }
        result => result.and_then(|()| must_hold(table)),
    }
}

/// What this server cannot do without, whatever the client wants to bypass.
fn must_hold(table: &TableDescriptor) -> Result<()> {
    if table.families.is_empty() {
        return Err(MasterError::do_not_retry(format!("Table {} should have at least one column family.", table.name)));
    }
    if table.region_replication() > 1 {
        return Err(MasterError::do_not_retry(format!(
            "REGION_REPLICATION {} of table {}: read replicas are not served yet; use 1.",
            table.region_replication(),
            table.name
        )));
    }
    if text(&table.attributes, rootdir::root::FILE_TRACKER_KEY)
        .is_some_and(|tracker| !tracker.eq_ignore_ascii_case("DEFAULT"))
    {
        return Err(MasterError::do_not_retry(format!(
            "{} of table {}: only the DEFAULT store file tracker is served yet.",
            rootdir::root::FILE_TRACKER_KEY,
            table.name
        )));
    }
    for family in table.families.values() {
        let name = String::from_utf8_lossy(&family.name);
        for key in ["COMPRESSION", "COMPRESSION_COMPACT", "COMPRESSION_COMPACT_MAJOR", "COMPRESSION_COMPACT_MINOR"] {
            let Some(codec) = text(&family.attributes, key) else { continue };
            if matches!(
                Compression::parse(codec),
                None | Some(Compression::Lzo | Compression::Bzip2 | Compression::Lzma | Compression::Brotli)
            ) {
                return Err(MasterError::do_not_retry(format!(
                    "Compression algorithm '{codec}' of column family {name} is not supported; use NONE, GZ, SNAPPY, LZ4 or ZSTD."
                )));
            }
        }
        if text(&family.attributes, "ENCRYPTION").is_some() {
            return Err(MasterError::do_not_retry(format!("ENCRYPTION of column family {name} is not supported yet.")));
        }
    }
    Ok(())
}

fn checked(limits: &Limits, table: &TableDescriptor) -> Result<()> {
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
    if table.families.is_empty() {
        return Err(refuse("Table should have at least one column family."));
    }
    if number(&table.attributes, "REGION_REPLICATION", &of_table)?.is_some_and(|replicas| replicas < 1) {
        return Err(refuse("Table region replication should be at least one."));
    }
    if table.name == TableName::meta() && table.read_only() {
        return Err(refuse("Meta table can't be set as read only."));
    }
    check_coprocessors(table)?;
    table.families.values().try_for_each(check_family)
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
    if max_versions <= 0 {
        return Err(refuse(format!("Maximum versions for column family {name} must be positive.")));
    }
    if min_versions > max_versions {
        return Err(refuse(format!("Min versions for column family {name} must be less than the Max versions.")));
    }
    if number("DFS_REPLICATION")?.is_some_and(|copies| copies < 0) {
        return Err(refuse(format!("HFile Replication for column family {name}  must be greater than zero.")));
    }
    if let Some(scope) = number("REPLICATION_SCOPE")?
        && !(0..=1).contains(&scope)
    {
        return Err(refuse(format!("Replication scope for column family {name} is {scope} which is invalid.")));
    }
    number("MOB_THRESHOLD")?;
    one_of(family, "BLOOMFILTER", BloomType::parse)?;
    one_of(family, "DATA_BLOCK_ENCODING", DataBlockEncoding::parse)?;
    one_of(family, "KEEP_DELETED_CELLS", KeepDeletedCells::parse)?;
    one_of(family, "COMPRESSION", Compression::parse)?;
    if family.bloom_type() == BloomType::RowPrefixFixedLength && family.bloom_prefix_length().is_none_or(|n| n == 0) {
        return Err(refuse(
            "Failed to get bloom filter param: RowPrefixBloomFilter.prefix_length not specified or not positive.",
        ));
    }
    Ok(())
}
