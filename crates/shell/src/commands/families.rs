//! Attributes of tables and families out of the hashes that `create` and `alter` take. Follows: `Admin#hcd`, `Admin#update_htd_from_arg`.

use bytes::Bytes;
use model::{BloomType, Compression, DataBlockEncoding, FamilyDescriptor, KeepDeletedCells, TableDescriptor};

use super::arguments::{Options, truth};
use crate::evaluator::Shell;
use crate::failure::{Flow, Result};
use crate::pretty;
use crate::value::Value;

/// How an attribute's value is read.
enum Reading {
    Truth,
    Number,
    Size,
    Seconds,
    /// One of these, in any case.
    Among(&'static str, fn(&str) -> Option<&'static str>),
    Upper,
    AsIs,
}

const COMPRESSIONS: Reading = Reading::Among("Compression", |text| Compression::parse(text).map(Compression::as_str));

const OF_FAMILIES: &[(&str, Reading)] = &[
    ("BLOCKCACHE", Reading::Truth),
    ("REPLICATION_SCOPE", Reading::Number),
    ("CACHE_DATA_ON_WRITE", Reading::Truth),
    ("CACHE_INDEX_ON_WRITE", Reading::Truth),
    ("CACHE_BLOOMS_ON_WRITE", Reading::Truth),
    ("EVICT_BLOCKS_ON_CLOSE", Reading::Truth),
    ("IN_MEMORY", Reading::Truth),
    ("IN_MEMORY_COMPACTION", Reading::Upper),
    ("TTL", Reading::Seconds),
    (
        "DATA_BLOCK_ENCODING",
        Reading::Among("DataBlockEncoding", |t| DataBlockEncoding::parse(t).map(DataBlockEncoding::as_str)),
    ),
    ("INDEX_BLOCK_ENCODING", Reading::Upper),
    ("BLOCKSIZE", Reading::Size),
    ("VERSIONS", Reading::Number),
    ("MIN_VERSIONS", Reading::Number),
    (
        "KEEP_DELETED_CELLS",
        Reading::Among("KeepDeletedCells", |t| KeepDeletedCells::parse(t).map(KeepDeletedCells::as_str)),
    ),
    ("COMPRESS_TAGS", Reading::Truth),
    ("PREFETCH_BLOCKS_ON_OPEN", Reading::Truth),
    ("IS_MOB", Reading::Truth),
    ("MOB_THRESHOLD", Reading::Number),
    ("MOB_COMPACT_PARTITION_POLICY", Reading::Upper),
    ("NEW_VERSION_BEHAVIOR", Reading::Truth),
    ("BLOOMFILTER", Reading::Among("BloomFilter type", |text| BloomType::parse(text).map(BloomType::as_str))),
    ("COMPRESSION", COMPRESSIONS),
    ("COMPRESSION_COMPACT", COMPRESSIONS),
    ("COMPRESSION_COMPACT_MAJOR", COMPRESSIONS),
    ("COMPRESSION_COMPACT_MINOR", COMPRESSIONS),
    ("ENCRYPTION", Reading::Upper),
    ("STORAGE_POLICY", Reading::Upper),
    ("DFS_REPLICATION", Reading::Number),
];

const OF_TABLES: &[(&str, Reading)] = &[
    ("OWNER", Reading::AsIs),
    ("MAX_FILESIZE", Reading::Size),
    ("READONLY", Reading::Truth),
    ("COMPACTION_ENABLED", Reading::Truth),
    ("SPLIT_ENABLED", Reading::Truth),
    ("MERGE_ENABLED", Reading::Truth),
    ("NORMALIZATION_ENABLED", Reading::Truth),
    ("NORMALIZER_TARGET_REGION_COUNT", Reading::Number),
    ("NORMALIZER_TARGET_REGION_SIZE_MB", Reading::Number),
    ("MEMSTORE_FLUSHSIZE", Reading::Size),
    ("DURABILITY", Reading::Upper),
    ("PRIORITY", Reading::Number),
    ("FLUSH_POLICY", Reading::AsIs),
    ("SPLIT_POLICY", Reading::AsIs),
    ("REGION_MEMSTORE_REPLICATION", Reading::Truth),
    ("REGION_REPLICATION", Reading::Number),
    ("ERASURE_CODING_POLICY", Reading::AsIs),
];

fn read(key: &str, reading: &Reading, value: &Value) -> Result<String> {
    let text = value.to_text();
    let wrong = |what: &str| Flow::argument(format!("{key} must be {what}, not {}", value.inspect()));
    Ok(match reading {
        Reading::Truth => truth(value).to_string(),
        Reading::Number => text.trim().parse::<i64>().map_err(|_| wrong("a number"))?.to_string(),
        Reading::Size => pretty::bytes(&text).ok_or_else(|| wrong("a number of bytes"))?.to_string(),
        Reading::Seconds => pretty::seconds(&text).ok_or_else(|| wrong("a number of seconds"))?.to_string(),
        Reading::Among(what, known) => known(&text)
            .ok_or_else(|| Flow::argument(format!("{what} {} is not supported.", text.to_uppercase())))?
            .to_owned(),
        Reading::Upper => text.to_uppercase(),
        Reading::AsIs => text,
    })
}

/// The family that a hash with a NAME describes: the table's, changed, or a new one.
pub(super) fn family_of(shell: &mut Shell, mut options: Options, table: &TableDescriptor) -> Result<FamilyDescriptor> {
    let name = options.take_bytes("NAME").ok_or_else(|| Flow::argument("Column family must have a name"))?;
    let known = table.families.get(&name).cloned();
    let mut family = known.unwrap_or_else(|| FamilyDescriptor::new(name.clone()));
    for (key, reading) in OF_FAMILIES {
        if let Some(value) = options.take(key) {
            let value = read(key, reading, &value)?;
            family.attributes.insert(Bytes::from(*key), value.into());
        }
    }
    for (key, value) in options.take_hash("METADATA")?.unwrap_or_default() {
        set_or_remove(&mut family.attributes, &key, &value);
    }
    for (key, value) in options.take_hash("CONFIGURATION")?.unwrap_or_default() {
        match value {
            Value::Nil => drop(family.configuration.remove(&key.to_text())),
            value => drop(family.configuration.insert(key.to_text(), value.to_text())),
        }
    }
    let name = String::from_utf8_lossy(&name).into_owned();
    for (key, _) in options.rest() {
        let line = format!("Unknown argument ignored for column family {name}: {}", key.to_text());
        shell.session.output.line(&line)?;
    }
    Ok(family)
}

fn set_or_remove(attributes: &mut model::table::Attributes, key: &Value, value: &Value) {
    let key = Bytes::from(key.to_bytes());
    match value {
        Value::Nil => drop(attributes.remove(&key)),
        value => drop(attributes.insert(key, value.to_bytes().into())),
    }
}

/// Sets what options say of a table.
pub(super) fn apply_to_table(table: &mut TableDescriptor, options: &mut Options) -> Result<()> {
    for (key, reading) in OF_TABLES {
        if let Some(value) = options.take(key) {
            let value = read(key, reading, &value)?;
            table.attributes.insert(Bytes::from(*key), value.into());
        }
    }
    // HBase 2 has one map for both.
    for key in ["METADATA", "CONFIGURATION"] {
        for (key, value) in options.take_hash(key)?.unwrap_or_default() {
            set_or_remove(&mut table.attributes, &key, &value);
        }
    }
    Ok(())
}

/// Adds the coprocessors among the options, each under the next free number.
pub(super) fn apply_coprocessors(table: &mut TableDescriptor, options: &mut Options) -> Result<()> {
    let keys: Vec<String> = options.rest().iter().map(|(key, _)| key.to_text()).collect();
    for key in keys.iter().filter(|key| key.to_lowercase().contains("coprocessor")) {
        let Some(spec) = options.take_text(key) else { continue };
        if spec.split('|').count() < 2 {
            return Err(Flow::argument(format!(
                "{spec} is no coprocessor: [path]|class|[priority]|[arguments] is needed"
            )));
        }
        let number = (1..).find(|n| !table.attributes.contains_key(format!("coprocessor${n}").as_bytes())).unwrap_or(1);
        table.attributes.insert(format!("coprocessor${number}").into(), spec.trim().to_owned().into());
    }
    Ok(())
}
