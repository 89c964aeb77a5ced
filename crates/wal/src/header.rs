//! First and last bytes of a log file: `PWAL` + delimited `WALHeader`; `WALTrailer` + its length + `LAWP`.

use crate::key::put_varint;
use proto::{Message, pb};

pub(crate) const MAGIC: &[u8; 4] = b"PWAL";
pub(crate) const END_MAGIC: &[u8; 4] = b"LAWP";
/// An empty trailer message, its length, the magic.
pub(crate) const TRAILER: &[u8; 8] = b"\0\0\0\0LAWP";
/// Longest header that is believed; real ones have some hundred bytes.
pub(crate) const MAX_HEADER_BYTES: u64 = 1 << 20;
const WRITER: &str = "ProtobufLogWriter";
const CODEC: &str = "org.apache.hadoop.hbase.regionserver.wal.WALCellCodec";
pub(crate) const SECURE_CODEC: &str = "org.apache.hadoop.hbase.regionserver.wal.SecureWALCellCodec";
/// Writers whose files are read.
pub(crate) const WRITERS: [&str; 4] =
    [WRITER, "AsyncProtobufLogWriter", "SecureProtobufLogWriter", "SecureAsyncProtobufLogWriter"];
/// Field 1000 of the header, varint 1: the entries are sealed. Unknown to HBase, which skips it.
const SEALED_FIELD: [u8; 3] = [0xC0, 0x3E, 0x01];

/// The header of a plain file.
pub(crate) fn encode(sealed: bool) -> Vec<u8> {
    let header = pb::WalHeader {
        has_compression: Some(false),
        encryption_key: None,
        has_tag_compression: Some(false),
        writer_cls_name: Some(WRITER.to_owned()),
        cell_codec_cls_name: Some(CODEC.to_owned()),
        has_value_compression: Some(false),
        value_compression_algorithm: None,
    };
    let mut message = header.encode_to_vec();
    if sealed {
        message.extend_from_slice(&SEALED_FIELD);
    }
    let mut out = MAGIC.to_vec();
    put_varint(&mut out, message.len() as u64);
    out.extend_from_slice(&message);
    out
}

/// Whether the header message (not delimited) asks for sealed entries.
pub(crate) fn is_sealed(message: &[u8]) -> bool {
    message.ends_with(&SEALED_FIELD)
}
