//! The magic `PBUF`, put before a message at rest (files and coordination nodes) to tell it from older formats.
//!
//! Follows `ProtobufUtil.prependPBMagic` and `ProtobufMagic`.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;

/// The four bytes before a message at rest.
pub const MAGIC: &[u8; 4] = b"PBUF";

/// What follows the magic, or `None` where there is no magic. Copies nothing.
pub fn strip(bytes: &Bytes) -> Option<Bytes> {
    bytes.starts_with(MAGIC).then(|| bytes.slice(MAGIC.len()..))
}

/// As [`strip`], for borrowed bytes.
pub fn strip_slice(bytes: &[u8]) -> Option<&[u8]> {
    bytes.strip_prefix(MAGIC.as_slice())
}

/// The magic and then the bytes.
pub fn prepend(bytes: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(MAGIC.len() + bytes.len());
    out.put_slice(MAGIC);
    out.put_slice(bytes);
    out.freeze()
}

/// The magic and then the message.
pub fn encode<M: Message>(message: &M) -> Bytes {
    let mut out = BytesMut::with_capacity(MAGIC.len() + message.encoded_len());
    out.put_slice(MAGIC);
    message.encode_raw(&mut out);
    out.freeze()
}

/// Decodes a message that stands behind the magic; `None` where there is no magic.
pub fn decode<M: Message + Default>(bytes: &Bytes) -> Option<Result<M, prost::DecodeError>> {
    strip(bytes).map(M::decode)
}

/// The magic, then the message with its length as a varint before it (HFile trailers and file info, WAL headers
/// and the region info file use this form).
pub fn encode_delimited<M: Message>(message: &M) -> Bytes {
    let len = message.encoded_len();
    let mut out = BytesMut::with_capacity(MAGIC.len() + prost::length_delimiter_len(len) + len);
    out.put_slice(MAGIC);
    prost::encoding::encode_varint(len as u64, &mut out);
    message.encode_raw(&mut out);
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pb;

    #[test]
    fn prepended_magic_is_stripped_and_bare_bytes_are_told_apart() {
        let id = pb::ClusterId { cluster_id: "abc".into() };
        let bytes = encode(&id);
        assert_eq!(&bytes[..], b"PBUF\x0a\x03abc");
        assert_eq!(decode::<pb::ClusterId>(&bytes).unwrap().unwrap(), id);
        assert_eq!(strip(&Bytes::from_static(b"PBU")), None);
        assert_eq!(strip_slice(b"PBUFx"), Some(b"x".as_slice()));
        assert_eq!(prepend(b"x").as_ref(), b"PBUFx");
        assert_eq!(encode_delimited(&id).as_ref(), b"PBUF\x05\x0a\x03abc");
    }
}
