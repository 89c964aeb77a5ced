//! Frames: `total(4)`, then a header and a message, each with its length as a varint before it, then a cell block.
//!
//! [`RequestHead`] is read by hand, because it is read for every call: nothing is copied or allocated for it. Lengths
//! come from outside and are checked before they are believed. Follows `NettyRpcFrameDecoder`, `ServerRpcConnection`.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, encode_varint, skip_field};
use proto::pb;

/// Bytes that are not what the protocol says; the connection they came over is of no use any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed frame: {0}")]
pub struct FrameError(pub String);

fn malformed(what: impl Into<String>) -> FrameError {
    FrameError(what.into())
}

/// What stands at the front of a read buffer.
#[derive(Debug, PartialEq, Eq)]
pub enum Front {
    /// Not a whole frame yet; so many bytes are still missing, at least.
    Partial {
        /// Bytes still to come before the next look is of use.
        missing: usize,
    },
    /// A whole frame, without its length.
    Frame(Bytes),
    /// A frame longer than allowed. Its length field is still in the buffer.
    TooLong {
        /// What it says its length is.
        len: u64,
    },
}

/// Takes the frame at the front of `buffer`, if it is whole. The frame shares the buffer's memory.
pub fn take_frame(buffer: &mut BytesMut, max_len: u64) -> Front {
    let Some(len) = buffer.first_chunk::<4>() else { return Front::Partial { missing: 4 - buffer.len() } };
    let len = u32::from_be_bytes(*len);
    if u64::from(len) > max_len {
        return Front::TooLong { len: u64::from(len) };
    }
    let whole = 4 + len as usize;
    if buffer.len() < whole {
        return Front::Partial { missing: whole - buffer.len() };
    }
    let mut frame = buffer.split_to(whole);
    frame.advance(4);
    Front::Frame(frame.freeze())
}

/// Takes a message with its length as a varint before it off the front of `frame`. Copies nothing.
///
/// # Errors
/// The length is not a varint or larger than what is left.
pub fn take_delimited(frame: &mut Bytes) -> Result<Bytes, FrameError> {
    let len = decode_varint(frame).map_err(|e| malformed(format!("the length of a message: {e}")))?;
    match usize::try_from(len) {
        Ok(len) if len <= frame.len() => Ok(frame.split_to(len)),
        _ => Err(malformed(format!("a message of {len} bytes where {} are left", frame.len()))),
    }
}

/// The header of a request, as far as a server needs it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestHead {
    /// The call's number; the reply carries it.
    pub call_id: u32,
    /// Name of the method, not checked to be text.
    pub method_name: Bytes,
    /// Whether a message follows. Always true in fact.
    pub request_param: bool,
    /// Length of the cell block behind the message; `None` when there is none.
    pub cell_block_len: Option<u32>,
    /// Hint for scheduling.
    pub priority: u32,
    /// Milliseconds that the client will wait; 0 when it did not say.
    pub timeout_ms: u32,
    /// What else the client attached to the call.
    pub attributes: Vec<pb::NameBytesPair>,
    /// An encoded `RPCTInfo`, where the client traces; empty otherwise.
    pub trace_info: Bytes,
}

impl RequestHead {
    /// Reads a `RequestHeader` message.
    ///
    /// # Errors
    /// The bytes are not one.
    pub fn decode(mut bytes: Bytes) -> Result<Self, FrameError> {
        let bad = |e: prost::DecodeError| malformed(format!("request header: {e}"));
        let mut head = Self::default();
        while bytes.has_remaining() {
            let (tag, wire_type) = decode_key(&mut bytes).map_err(bad)?;
            match (tag, wire_type) {
                // Java reads 32-bit fields as the low half of the varint.
                (1, WireType::Varint) => head.call_id = decode_varint(&mut bytes).map_err(bad)? as u32,
                (2, WireType::LengthDelimited) => head.trace_info = take_delimited(&mut bytes)?,
                (3, WireType::LengthDelimited) => head.method_name = take_delimited(&mut bytes)?,
                (4, WireType::Varint) => head.request_param = decode_varint(&mut bytes).map_err(bad)? != 0,
                (5, WireType::LengthDelimited) => {
                    let meta = pb::CellBlockMeta::decode(take_delimited(&mut bytes)?).map_err(bad)?;
                    head.cell_block_len = Some(meta.length());
                }
                (6, WireType::Varint) => head.priority = decode_varint(&mut bytes).map_err(bad)? as u32,
                (7, WireType::Varint) => head.timeout_ms = decode_varint(&mut bytes).map_err(bad)? as u32,
                (8, WireType::LengthDelimited) => {
                    head.attributes.push(pb::NameBytesPair::decode(take_delimited(&mut bytes)?).map_err(bad)?);
                }
                _ => skip_field(wire_type, tag, &mut bytes, DecodeContext::default()).map_err(bad)?,
            }
        }
        Ok(head)
    }
}

/// The parts of a frame behind its header. Shared bytes, nothing copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// The message; empty when the header announced none.
    pub message: Bytes,
    /// The cell block as it came, perhaps compressed.
    pub cell_block: Bytes,
}

/// Splits what follows a header. `has_message` and `cell_block_len` are the header's.
///
/// # Errors
/// A part is longer than what is left.
pub fn split_body(mut rest: Bytes, has_message: bool, cell_block_len: Option<u32>) -> Result<Body, FrameError> {
    let message = if has_message { take_delimited(&mut rest)? } else { Bytes::new() };
    let len = cell_block_len.unwrap_or(0) as usize;
    if len > rest.len() {
        return Err(malformed(format!("a cell block of {len} bytes where {} are left", rest.len())));
    }
    Ok(Body { message, cell_block: rest.split_to(len) })
}

/// Appends a frame up to its cell block: length, header, message. The `cell_block_len` bytes of cells come after it.
pub fn put_frame<H: Message>(out: &mut BytesMut, header: &H, message: Option<&[u8]>, cell_block_len: usize) {
    let header_len = header.encoded_len();
    let message_len = message.map_or(0, |m| prost::length_delimiter_len(m.len()) + m.len());
    let total = prost::length_delimiter_len(header_len) + header_len + message_len + cell_block_len;
    out.reserve(4 + total - cell_block_len);
    out.put_u32(u32::try_from(total).expect("replies stay under 4 GiB: scanners and multi limit them"));
    encode_varint(header_len as u64, out);
    header.encode_raw(out);
    if let Some(message) = message {
        encode_varint(message.len() as u64, out);
        out.put_slice(message);
    }
}

/// Appends the frame of a reply that succeeded, up to its cell block. The header is written by hand: its two fields
/// are all a reply has.
pub fn put_reply(out: &mut BytesMut, call_id: u32, message: &[u8], cell_block_len: usize) {
    // field 1 varint call_id; field 3 message CellBlockMeta { field 1 varint length }
    let meta_len = if cell_block_len > 0 { 1 + varint_len(cell_block_len as u64) } else { 0 };
    let header_len = 1 + varint_len(u64::from(call_id)) + if meta_len > 0 { 2 + meta_len } else { 0 };
    let total = 1 + header_len + varint_len(message.len() as u64) + message.len() + cell_block_len;
    out.reserve(4 + total - cell_block_len);
    out.put_u32(u32::try_from(total).expect("replies stay under 4 GiB: scanners and multi limit them"));
    out.put_u8(header_len as u8);
    out.put_u8(0x08);
    encode_varint(u64::from(call_id), out);
    if meta_len > 0 {
        out.put_u8(0x1A);
        out.put_u8(meta_len as u8);
        out.put_u8(0x08);
        encode_varint(cell_block_len as u64, out);
    }
    encode_varint(message.len() as u64, out);
    out.put_slice(message);
}

fn varint_len(value: u64) -> usize {
    prost::encoding::encoded_len_varint(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_taken_when_it_is_whole_and_refused_when_it_is_too_long() {
        let mut buffer = BytesMut::from(&b"\x00\x00"[..]);
        assert_eq!(take_frame(&mut buffer, 10), Front::Partial { missing: 2 });
        buffer.put_slice(b"\x00\x03ab");
        assert_eq!(take_frame(&mut buffer, 10), Front::Partial { missing: 1 });
        buffer.put_slice(b"c\xff\xff\xff\xff");
        assert_eq!(take_frame(&mut buffer, 10), Front::Frame(Bytes::from_static(b"abc")));
        assert_eq!(take_frame(&mut buffer, 10), Front::TooLong { len: 0xffff_ffff });
        assert_eq!(buffer.len(), 4, "the length stays, so that the header behind it can be found");
    }

    #[test]
    fn the_header_read_by_hand_is_the_one_prost_wrote() {
        let header = pb::RequestHeader {
            call_id: Some(300),
            trace_info: Some(pb::RpctInfo { headers: [("a".into(), "b".into())].into(), ..Default::default() }),
            method_name: Some("Get".into()),
            request_param: Some(true),
            cell_block_meta: Some(pb::CellBlockMeta { length: Some(0) }),
            priority: Some(200),
            timeout: Some(60_000),
            attribute: vec![pb::NameBytesPair { name: "a".into(), value: Some(Bytes::from_static(b"v")) }],
        };
        let bytes = Bytes::from(header.encode_to_vec());
        let head = RequestHead::decode(bytes.clone()).unwrap();
        assert_eq!((head.call_id, &head.method_name[..], head.request_param), (300, &b"Get"[..], true));
        assert_eq!((head.cell_block_len, head.priority, head.timeout_ms), (Some(0), 200, 60_000));
        assert_eq!(head.attributes, header.attribute);
        for cut in 1..bytes.len() {
            // A cut between fields leaves a shorter header; a cut inside one is an error. Neither panics.
            let _ = RequestHead::decode(bytes.slice(..cut));
        }
    }

    #[test]
    fn the_reply_written_by_hand_is_the_one_prost_would_write() {
        for (call_id, cells) in [(0, 0), (1, 1), (200, 127), (u32::MAX, 128), (70_000, 5_000_000)] {
            let header = pb::ResponseHeader {
                call_id: Some(call_id),
                exception: None,
                cell_block_meta: (cells > 0).then_some(pb::CellBlockMeta { length: Some(cells) }),
            };
            let (mut by_hand, mut by_prost) = (BytesMut::new(), BytesMut::new());
            put_reply(&mut by_hand, call_id, b"message", cells as usize);
            put_frame(&mut by_prost, &header, Some(b"message"), cells as usize);
            assert_eq!(by_hand, by_prost, "call {call_id}, {cells} bytes of cells");
        }
    }

    #[test]
    fn a_part_longer_than_the_frame_is_refused() {
        assert!(take_delimited(&mut Bytes::from_static(b"\x05abc")).is_err());
        assert!(take_delimited(&mut Bytes::from_static(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")).is_err());
        assert!(take_delimited(&mut Bytes::new()).is_err());
        let rest = Bytes::from_static(b"\x01mcells");
        assert!(split_body(rest.clone(), true, Some(6)).is_err());
        let body = split_body(rest, true, Some(5)).unwrap();
        assert_eq!((&body.message[..], &body.cell_block[..]), (&b"m"[..], &b"cells"[..]));
    }
}
