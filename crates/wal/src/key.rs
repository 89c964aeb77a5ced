//! The key of an entry (`WALKey`): written by hand straight into a buffer, read through the generated message.

use crate::marker::{self, Marker};
use base::{SeqId, TimestampMs};
use bytes::Bytes;
use cell::CellBlock;
use std::sync::Arc;

/// A cluster's UUID as HBase stores it: the clusters an entry has passed through.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ClusterId {
    /// `UUID.getMostSignificantBits`.
    pub most_sig_bits: u64,
    /// `UUID.getLeastSignificantBits`.
    pub least_sig_bits: u64,
}

/// How far edits of a family travel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplicationScope<B = Bytes> {
    /// The family.
    pub family: B,
    /// 0 local, 1 global, 2 serial.
    pub scope: i32,
}

/// What is said about an entry when it is appended. Everything is borrowed: appending copies once, into the log's buffer.
#[derive(Clone, Copy, Debug)]
pub struct EntryKey<'a> {
    /// Encoded region name.
    pub region: &'a Arc<str>,
    /// `namespace:qualifier`, or the qualifier alone in the default namespace.
    pub table: &'a str,
    /// The entry's sequence id, higher than that of the region's entry before.
    pub seq_id: SeqId,
    /// When it was made.
    pub write_time: TimestampMs,
    /// Families the cells belong to, for the accounting of what is unflushed; empty for markers.
    pub families: &'a [&'a [u8]],
    /// (group, nonce) of the client's operation.
    pub nonce: Option<(u64, u64)>,
    /// Families that are replicated.
    pub scopes: &'a [ReplicationScope<&'a [u8]>],
    /// Clusters the edit has passed through.
    pub cluster_ids: &'a [ClusterId],
}

impl<'a> EntryKey<'a> {
    /// A key without nonce, scopes and clusters.
    pub fn new(
        region: &'a Arc<str>,
        table: &'a str,
        seq_id: SeqId,
        write_time: TimestampMs,
        families: &'a [&'a [u8]],
    ) -> EntryKey<'a> {
        EntryKey { region, table, seq_id, write_time, families, nonce: None, scopes: &[], cluster_ids: &[] }
    }
}

/// The key of an entry that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Key {
    /// Encoded region name.
    pub region: Arc<str>,
    /// `namespace:qualifier`, or the qualifier alone in the default namespace.
    pub table: Arc<str>,
    /// Sequence id; every cell of the entry has it.
    pub seq_id: SeqId,
    /// When it was made.
    pub write_time: TimestampMs,
    /// (group, nonce) of the client's operation.
    pub nonce: Option<(u64, u64)>,
    /// Families that are replicated.
    pub scopes: Vec<ReplicationScope>,
    /// Clusters the edit has passed through.
    pub cluster_ids: Vec<ClusterId>,
    /// `orig_sequence_number`, of logs replayed by old versions.
    pub orig_seq_id: Option<SeqId>,
    /// Attributes that coprocessors added.
    pub attributes: Vec<(String, Bytes)>,
}

/// An entry that was read: the cells of one batch, all under the key's sequence id.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Key.
    pub key: Key,
    /// Cells.
    pub cells: CellBlock,
    /// Where the entry begins in its file.
    pub offset: u64,
}

impl Entry {
    /// Whether this is a marker (family METAFAMILY) and not data.
    pub fn is_marker(&self) -> bool {
        self.cells.iter().next().is_some_and(|cell| cell.family() == crate::marker::METAFAMILY)
    }

    /// Whether a region needs it at recovery: data, and the markers of compactions, whose inputs must not come back, and of
    /// nonces that an earlier recovery saved.
    pub(crate) fn is_wanted(&self) -> bool {
        self.cells.iter().any(|cell| {
            cell.family() != marker::METAFAMILY
                || cell.qualifier() == marker::NONCE
                || matches!(Marker::decode(cell), Ok(Some(Marker::Compaction(_))) | Err(_))
        })
    }
}

/// What [`encode`] needs, from whichever side.
pub(crate) struct KeyParts<'a, F> {
    pub(crate) region: &'a [u8],
    pub(crate) table: &'a [u8],
    pub(crate) seq_id: SeqId,
    pub(crate) write_time: TimestampMs,
    pub(crate) nonce: Option<(u64, u64)>,
    pub(crate) scopes: &'a [ReplicationScope<F>],
    pub(crate) cluster_ids: &'a [ClusterId],
    pub(crate) orig_seq_id: Option<SeqId>,
    pub(crate) attributes: &'a [(String, Bytes)],
    pub(crate) cell_count: usize,
}

impl<'a> KeyParts<'a, &'a [u8]> {
    pub(crate) fn of_append(key: &'a EntryKey<'a>, cell_count: usize) -> Self {
        KeyParts {
            region: key.region.as_bytes(),
            table: key.table.as_bytes(),
            seq_id: key.seq_id,
            write_time: key.write_time,
            nonce: key.nonce,
            scopes: key.scopes,
            cluster_ids: key.cluster_ids,
            orig_seq_id: None,
            attributes: &[],
            cell_count,
        }
    }
}

impl<'a> KeyParts<'a, Bytes> {
    pub(crate) fn of_entry(key: &'a Key, cell_count: usize) -> Self {
        KeyParts {
            region: key.region.as_bytes(),
            table: key.table.as_bytes(),
            seq_id: key.seq_id,
            write_time: key.write_time,
            nonce: key.nonce,
            scopes: &key.scopes,
            cluster_ids: &key.cluster_ids,
            orig_seq_id: key.orig_seq_id,
            attributes: &key.attributes,
            cell_count,
        }
    }
}

/// Appends a protobuf varint.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The varint at the start of `bytes` and its length; `None` when it does not end within `bytes` or is over 10 bytes.
pub(crate) fn get_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (i, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7F) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((value, i + 1));
        }
    }
    None
}

fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

fn put_bytes(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_number(out: &mut Vec<u8>, tag: u8, value: u64) {
    out.push(tag);
    put_varint(out, value);
}

/// Longest varint of a length that fits 32 bits.
const LEN_ROOM: usize = 5;

/// Writes the delimited key into `scratch` (cleared) and returns it; `more` bytes of the message follow by other hands (the
/// seal). Fields are written in the order of their numbers, as HBase does.
pub(crate) fn encode<'s, F: AsRef<[u8]>>(
    scratch: &'s mut Vec<u8>,
    parts: &KeyParts<'_, F>,
    more: &[u8],
    tail_len: usize,
) -> &'s [u8] {
    scratch.clear();
    scratch.extend_from_slice(&[0; LEN_ROOM]);
    put_bytes(scratch, 0x0A, parts.region);
    put_bytes(scratch, 0x12, parts.table);
    put_number(scratch, 0x18, parts.seq_id.0);
    put_number(scratch, 0x20, parts.write_time.0 as u64);
    for scope in parts.scopes {
        let family = scope.family.as_ref();
        // The generated code of HBase writes a negative enum as ten bytes; there is none.
        let scope_number = scope.scope as i64 as u64;
        scratch.push(0x32);
        put_varint(scratch, (1 + varint_len(family.len() as u64) + family.len() + 1 + varint_len(scope_number)) as u64);
        put_bytes(scratch, 0x0A, family);
        put_number(scratch, 0x10, scope_number);
    }
    put_number(scratch, 0x38, parts.cell_count as u64);
    for id in parts.cluster_ids {
        scratch.push(0x42);
        put_varint(scratch, (2 + varint_len(id.least_sig_bits) + varint_len(id.most_sig_bits)) as u64);
        put_number(scratch, 0x08, id.least_sig_bits);
        put_number(scratch, 0x10, id.most_sig_bits);
    }
    if let Some((group, nonce)) = parts.nonce {
        // 0 is HBase's NO_NONCE and is left out.
        if group != 0 {
            put_number(scratch, 0x48, group);
        }
        if nonce != 0 {
            put_number(scratch, 0x50, nonce);
        }
    }
    if let Some(seq_id) = parts.orig_seq_id {
        put_number(scratch, 0x58, seq_id.0);
    }
    for (name, value) in parts.attributes {
        let (name, value) = (name.as_bytes(), value.as_ref());
        scratch.push(0x62);
        let len = 1 + varint_len(name.len() as u64) + name.len() + 1 + varint_len(value.len() as u64) + value.len();
        put_varint(scratch, len as u64);
        put_bytes(scratch, 0x0A, name);
        put_bytes(scratch, 0x12, value);
    }
    scratch.extend_from_slice(more);
    let key_len = (scratch.len() - LEN_ROOM + tail_len) as u64;
    let start = LEN_ROOM - varint_len(key_len);
    // The length goes right before the message, where room was left for it.
    let mut value = key_len;
    for (at, byte) in scratch[..LEN_ROOM].iter_mut().enumerate().skip(start) {
        *byte = value as u8 & 0x7F | if at + 1 < LEN_ROOM { 0x80 } else { 0 };
        value >>= 7;
    }
    &scratch[start..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::{Message, pb};

    #[test]
    fn the_hand_written_key_is_what_the_generated_code_writes() {
        let key = Key {
            region: Arc::from("2c5163325f6dc67706b743aff0a3a2b5"),
            table: Arc::from("ns:t"),
            seq_id: SeqId(300),
            write_time: TimestampMs(1_700_000_000_103),
            nonce: Some((77, u64::MAX)),
            scopes: vec![ReplicationScope { family: Bytes::from_static(b"cf"), scope: 1 }],
            cluster_ids: vec![ClusterId { most_sig_bits: 1, least_sig_bits: u64::MAX }],
            orig_seq_id: Some(SeqId(7)),
            attributes: vec![("a".to_owned(), Bytes::from(vec![1; 200]))],
        };
        #[allow(deprecated, reason = "the message has the field")]
        let message = pb::WalKey {
            encoded_region_name: Bytes::from_static(b"2c5163325f6dc67706b743aff0a3a2b5"),
            table_name: Bytes::from_static(b"ns:t"),
            log_sequence_number: 300,
            write_time: 1_700_000_000_103,
            cluster_id: None,
            scopes: vec![pb::FamilyScope { family: Bytes::from_static(b"cf"), scope_type: 1 }],
            following_kv_count: Some(1000),
            cluster_ids: vec![pb::Uuid { least_sig_bits: u64::MAX, most_sig_bits: 1 }],
            nonce_group: Some(77),
            nonce: Some(u64::MAX),
            orig_sequence_number: Some(7),
            extended_attributes: vec![pb::Attribute { key: "a".to_owned(), value: Bytes::from(vec![1; 200]) }],
        };
        let mut scratch = Vec::new();
        let bytes = encode(&mut scratch, &KeyParts::of_entry(&key, 1000), &[], 0);
        assert_eq!(bytes, message.encode_length_delimited_to_vec());
    }

    #[test]
    fn varints_round_trip() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1u64 << shift) - 1, u64::MAX >> shift] {
                let mut out = Vec::new();
                put_varint(&mut out, value);
                assert_eq!((out.len(), get_varint(&out)), (varint_len(value), Some((value, out.len()))));
                assert_eq!(get_varint(&out[..out.len() - 1]), None);
            }
        }
    }
}
