//! What a file says of itself: trailer, file info, Bloom filters. Follows: `HFilePrettyPrinter#printMeta`.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use cell::KeyRef;
use cell::print::to_string_binary;
use hfile::file_info::key;
use hfile::{BloomFields, Reader};
use serde_json::{Map, Value, json};

use super::absolute;
use crate::print;

const COMPARATOR: &str = "org.apache.hadoop.hbase.InnerStoreCellComparator";
const META_COMPARATOR: &str = "org.apache.hadoop.hbase.MetaCellComparator";

pub(super) fn print(reader: &Arc<Reader>, as_json: bool, out: &mut impl Write) -> anyhow::Result<()> {
    let trailer = trailer(reader)?;
    if as_json {
        return Ok(writeln!(out, "{}", as_object(reader, trailer)?)?);
    }
    let shown = |key: Option<KeyRef<'_>>| match key {
        Some(key) => format!("Optional[{}/seqid=0]", print::key(key)),
        None => "Optional.empty".to_owned(),
    };
    let info = reader.file_info();
    let average = |key: &[u8]| info.get(key).map_or(0, |value| number(value));
    writeln!(out, "Block index size as per heapsize: {}", reader.heap_bytes())?;
    let lines = [
        format!("reader={}", absolute(reader.path())),
        format!("compression={}", reader.compression().as_str().to_lowercase()),
        format!("firstKey={}", shown(reader.first_key())),
        format!("lastKey={}", shown(reader.last_key())),
        format!("avgKeyLen={}", average(key::AVG_KEY_LEN)),
        format!("avgValueLen={}", average(key::AVG_VALUE_LEN)),
        format!("entries={}", reader.entry_count()),
        format!("length={}", reader.len_bytes()),
    ];
    writeln!(out, "{}", lines.join(",\n    "))?;
    let fields: Vec<String> = trailer.iter().map(|(name, value)| format!("{name}={}", plain(value))).collect();
    writeln!(out, "Trailer:\n    {}", fields.join(",\n    "))?;
    writeln!(out, "Fileinfo:")?;
    for (name, value) in info {
        writeln!(out, "    {} = {}", String::from_utf8_lossy(name), plain(&info_value(name, value)))?;
    }
    let mid = match reader.mid_key() {
        Ok(Some(key)) => KeyRef::parse(&key).map_or_else(
            |_| "Unable to retrieve the midkey".to_owned(),
            |key| format!("Mid-key: Optional[{}/seqid=0]", print::key(key)),
        ),
        Ok(None) => "Mid-key: Optional.empty".to_owned(),
        Err(_) => "Unable to retrieve the midkey".to_owned(),
    };
    writeln!(out, "{mid}\nBloom filter:")?;
    print_bloom(reader.bloom_fields(), out)?;
    writeln!(out, "Delete Family Bloom filter:")?;
    Ok(print_bloom(reader.delete_bloom_fields(), out)?)
}

fn print_bloom(bloom: Option<BloomFields>, out: &mut impl Write) -> std::io::Result<()> {
    let Some(bloom) = bloom else { return writeln!(out, "    Not present") };
    writeln!(out, "    BloomSize: {}", bloom.total_bytes)?;
    writeln!(out, "    No of Keys in bloom: {}", bloom.key_count)?;
    writeln!(out, "    Max Keys for bloom: {}", bloom.max_key_count)?;
    if bloom.max_key_count > 0 {
        let filled = bloom.key_count as f64 * 100.0 / bloom.max_key_count as f64;
        writeln!(out, "    Percentage filled: {filled:.0}%")?;
    }
    writeln!(out, "    Number of chunks: {}", bloom.chunk_count)?;
    writeln!(out, "    Comparator: {}", if bloom.is_row_col { "CellComparatorImpl" } else { "ByteArrayComparator" })
}

/// The trailer's fields in HBase's order and under its names, one of them with HBase's slip of the pen.
fn trailer(reader: &Reader) -> anyhow::Result<Vec<(&'static str, Value)>> {
    let trailer = reader.trailer_fields()?;
    let comparator = match reader.order() {
        cell::Order::User => COMPARATOR,
        cell::Order::Meta => META_COMPARATOR,
    };
    let offset = |offset: Option<u64>| offset.map_or(json!(-1), |offset| json!(offset));
    Ok(vec![
        ("fileinfoOffset", json!(trailer.file_info_offset)),
        ("loadOnOpenDataOffset", json!(trailer.load_on_open_offset)),
        ("dataIndexCount", json!(trailer.data_index_count)),
        ("metaIndexCount", json!(trailer.meta_index_count)),
        ("totalUncomressedBytes", json!(trailer.total_uncompressed_bytes)),
        ("entryCount", json!(trailer.entry_count)),
        ("compressionCodec", json!(reader.compression().as_str())),
        ("uncompressedDataIndexSize", json!(trailer.uncompressed_data_index_bytes)),
        ("numDataIndexLevels", json!(trailer.data_index_levels)),
        ("firstDataBlockOffset", offset(trailer.first_data_block_offset)),
        ("lastDataBlockOffset", offset(trailer.last_data_block_offset)),
        ("comparatorClassName", json!(comparator)),
        ("encryptionKey", json!("NONE")),
        ("majorVersion", json!(trailer.major_version)),
        ("minorVersion", json!(trailer.minor_version)),
    ])
}

fn as_object(reader: &Arc<Reader>, trailer: Vec<(&'static str, Value)>) -> anyhow::Result<Value> {
    let trailer: Map<String, Value> = trailer.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let info: Map<String, Value> = reader
        .file_info()
        .iter()
        .map(|(name, value)| (String::from_utf8_lossy(name).into_owned(), info_value(name, value)))
        .collect();
    let bloom = |bloom: Option<BloomFields>| {
        bloom.map(|bloom| {
            json!({"bytes": bloom.total_bytes, "keys": bloom.key_count, "max_keys": bloom.max_key_count,
                   "chunks": bloom.chunk_count})
        })
    };
    let mid = reader.mid_key()?.and_then(|key| KeyRef::parse(&key).ok().map(print::key));
    Ok(json!({
        "file": absolute(reader.path()), "bytes": reader.len_bytes(), "trailer": trailer, "fileinfo": info,
        "encoding": reader.encoding().as_str(), "first_key": reader.first_key().map(print::key),
        "last_key": reader.last_key().map(print::key), "mid_key": mid, "bloom": bloom(reader.bloom_fields()),
        "delete_bloom": bloom(reader.delete_bloom_fields()),
    }))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A number of up to eight bytes, big endian.
fn number(bytes: &[u8]) -> i64 {
    let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
    let bytes = &bytes[bytes.len().saturating_sub(8)..];
    bytes.iter().fold(if negative { -1 } else { 0 }, |number: i64, byte| (number << 8) | i64::from(*byte))
}

/// An entry of file info by what it holds.
fn info_value(name: &Bytes, value: &Bytes) -> Value {
    let numbers: &[&[u8]] = &[
        key::MAX_SEQ_ID,
        key::DELETE_FAMILY_COUNT,
        key::EARLIEST_PUT_TS,
        key::MAX_MEMSTORE_TS,
        key::CREATE_TIME_TS,
        key::BULKLOAD_TIMESTAMP,
        key::AVG_KEY_LEN,
        key::AVG_VALUE_LEN,
        key::KEY_VALUE_VERSION,
        key::MAX_TAGS_LEN,
    ];
    let truths: &[&[u8]] =
        &[key::MAJOR_COMPACTION, key::TAGS_COMPRESSED, key::EXCLUDE_FROM_MINOR_COMPACTION, key::HISTORICAL];
    match &name[..] {
        name if numbers.contains(&name) => json!(number(value)),
        name if truths.contains(&name) => json!(value.first().is_some_and(|byte| *byte != 0)),
        key::LAST_KEY => KeyRef::parse(value).map_or_else(
            |_| json!(to_string_binary(value)),
            |key| json!(format!("{}/vlen=0/seqid=0", print::key(key))),
        ),
        key::TIME_RANGE => time_range(value).map_or_else(|| json!(to_string_binary(value)), |text| json!(text)),
        _ => json!(to_string_binary(value)),
    }
}

/// `min....max`, of a protobuf message behind its magic or of the two numbers that old versions wrote.
fn time_range(value: &Bytes) -> Option<String> {
    use proto::Message;
    let (min, max) = match proto::magic::strip(value) {
        Some(payload) => {
            let message = proto::pb::TimeRangeTracker::decode(payload).ok()?;
            (message.from? as i64, message.to? as i64)
        }
        None => {
            let (min, max) = value.split_at_checked(8)?;
            (number(min), number(max))
        }
    };
    Some(format!("{min}....{max}"))
}
