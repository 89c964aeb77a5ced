//! File info: what a file says of itself, by name. Follows: `HFileInfo`, `HStoreFile`'s keys.

use crate::cursor::{Cursor, Damage, Decoded};
use bytes::Bytes;
use proto::disk::{BytesBytesPair, FileInfoProto};
use proto::{Message, magic};
use std::collections::BTreeMap;

/// Entries of file info, sorted as they are written.
pub(crate) type FileInfo = BTreeMap<Bytes, Bytes>;

/// Names of entries.
pub mod key {
    #![allow(missing_docs, reason = "the names say it; docs/formats/hfile.md lists the values")]
    pub const LAST_KEY: &[u8] = b"hfile.LASTKEY";
    pub const AVG_KEY_LEN: &[u8] = b"hfile.AVG_KEY_LEN";
    pub const AVG_VALUE_LEN: &[u8] = b"hfile.AVG_VALUE_LEN";
    pub const CREATE_TIME_TS: &[u8] = b"hfile.CREATE_TIME_TS";
    pub const MAX_TAGS_LEN: &[u8] = b"hfile.MAX_TAGS_LEN";
    pub const TAGS_COMPRESSED: &[u8] = b"hfile.TAGS_COMPRESSED";
    pub const KEY_OF_BIGGEST_CELL: &[u8] = b"hfile.KEY_OF_BIGGEST_CELL";
    pub const LEN_OF_BIGGEST_CELL: &[u8] = b"hfile.LEN_OF_BIGGEST_CELL";
    pub const KEY_VALUE_VERSION: &[u8] = b"KEY_VALUE_VERSION";
    pub const MAX_MEMSTORE_TS: &[u8] = b"MAX_MEMSTORE_TS_KEY";
    pub const MAX_SEQ_ID: &[u8] = b"MAX_SEQ_ID_KEY";
    pub const MAJOR_COMPACTION: &[u8] = b"MAJOR_COMPACTION_KEY";
    pub const EXCLUDE_FROM_MINOR_COMPACTION: &[u8] = b"EXCLUDE_FROM_MINOR_COMPACTION";
    pub const HISTORICAL: &[u8] = b"HISTORICAL";
    pub const STRIPE_START: &[u8] = b"STRIPE_START_KEY";
    pub const STRIPE_END: &[u8] = b"STRIPE_END_KEY";
    /// Of ours; HBase passes it over.
    pub const MORE_FOLLOW: &[u8] = b"BASALT_MORE_FOLLOW";
    pub const TIME_RANGE: &[u8] = b"TIMERANGE";
    pub const CUSTOM_TIERING_TIME_RANGE: &[u8] = b"CUSTOM_TIERING_TIME_RANGE";
    pub const EARLIEST_PUT_TS: &[u8] = b"EARLIEST_PUT_TS";
    pub const BLOOM_FILTER_TYPE: &[u8] = b"BLOOM_FILTER_TYPE";
    pub const BLOOM_FILTER_PARAM: &[u8] = b"BLOOM_FILTER_PARAM";
    pub const LAST_BLOOM_KEY: &[u8] = b"LAST_BLOOM_KEY";
    pub const DELETE_FAMILY_COUNT: &[u8] = b"DELETE_FAMILY_COUNT";
    pub const DATA_BLOCK_ENCODING: &[u8] = b"DATA_BLOCK_ENCODING";
    pub const INDEX_BLOCK_ENCODING: &[u8] = b"INDEX_BLOCK_ENCODING";
    pub const COMPACTION_EVENT: &[u8] = b"COMPACTION_EVENT_KEY";
    pub const MOB_CELLS_COUNT: &[u8] = b"MOB_CELLS_COUNT";
    pub const MOB_FILE_REFS: &[u8] = b"MOB_FILE_REFS";
    pub const BULKLOAD_TIMESTAMP: &[u8] = b"BULKLOAD_TIMESTAMP";
    pub const BULKLOAD_SOURCE_TASK: &[u8] = b"BULKLOAD_SOURCE_TASK";
    pub const SKIP_RESET_SEQ_ID: &[u8] = b"SKIP_RESET_SEQ_ID";
}

/// Reads the payload of a file-info block: protobuf behind its magic, or the map of HBase 0.92 without it.
pub(crate) fn parse(payload: &Bytes) -> Decoded<FileInfo> {
    let Some(message) = magic::strip_slice(payload) else {
        return parse_writable(payload);
    };
    // A copy: the entries are slices of what is parsed, and must not hold the whole end of the file in memory.
    let message = Bytes::copy_from_slice(message);
    let message = FileInfoProto::decode_length_delimited(message)
        .map_err(|e| Damage(format!("file info is not readable: {e}")))?;
    Ok(message.map_entry.into_iter().map(|pair| (pair.first, pair.second)).collect())
}

fn parse_writable(payload: &Bytes) -> Decoded<FileInfo> {
    let mut at = Cursor::new(payload);
    let count = at.u32()?;
    let mut info = FileInfo::new();
    let bytes = |at: &mut Cursor<'_>| -> Decoded<Bytes> {
        let len = usize::try_from(at.vlong()?).map_err(|_| "a file info entry has a negative length")?;
        Ok(Bytes::copy_from_slice(at.take(len)?))
    };
    for _ in 0..count {
        let name = bytes(&mut at)?;
        let _class_of_value = at.u8()?;
        info.insert(name, bytes(&mut at)?);
    }
    Ok(info)
}

/// The payload of a file-info block.
pub(crate) fn to_bytes(info: &FileInfo) -> Bytes {
    let pair = |(first, second): (&Bytes, &Bytes)| BytesBytesPair { first: first.clone(), second: second.clone() };
    magic::encode_delimited(&FileInfoProto { map_entry: info.iter().map(pair).collect() })
}

/// The 8-byte number under `key`.
pub(crate) fn long(info: &FileInfo, key: &[u8]) -> Decoded<Option<i64>> {
    number(info, key, |bytes| bytes.try_into().ok().map(i64::from_be_bytes))
}

/// The 4-byte number under `key`.
pub(crate) fn int(info: &FileInfo, key: &[u8]) -> Decoded<Option<i32>> {
    number(info, key, |bytes| bytes.try_into().ok().map(i32::from_be_bytes))
}

fn number<T>(info: &FileInfo, key: &[u8], read: impl Fn(&[u8]) -> Option<T>) -> Decoded<Option<T>> {
    let Some(bytes) = info.get(key) else {
        return Ok(None);
    };
    let value = read(bytes);
    let name = cell::print::Binary(key);
    value.map(Some).ok_or_else(|| Damage(format!("file info {name} has {} bytes", bytes.len())))
}

/// Whether `key` is there and true: any byte but zero.
pub(crate) fn flag(info: &FileInfo, key: &[u8]) -> bool {
    info.get(key).is_some_and(|bytes| bytes.first().is_some_and(|b| *b != 0))
}

/// A truth value as Java's `Bytes.toBytes(boolean)` writes it.
pub(crate) fn flag_bytes(value: bool) -> Bytes {
    Bytes::from_static(if value { &[0xFF] } else { &[0] })
}
