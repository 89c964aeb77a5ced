//! Requests as bytes.

use bytes::{BufMut, Bytes, BytesMut};
use proto::Message;
use trace::TraceParent;

use super::Request;

/// Appends a whole request. The header is written by hand: for every call the same few fields.
pub(super) fn put_request<M: Message>(out: &mut BytesMut, call_id: u32, request: &Request<'_, M>, timeout_ms: u32) {
    let len = |value: u32| prost_len(u64::from(value));
    let name = request.method.info().name;
    let cells_len: usize = request.cells.iter().map(Bytes::len).sum();
    let meta_len = if cells_len > 0 { 1 + len(cells_len as u32) } else { 0 };
    let attributes_len: usize =
        request.attributes.iter().map(|pair| pair.encoded_len()).map(|n| 1 + len(n as u32) + n).sum();
    // `RPCTInfo` with one entry of its map of headers: field 3 { 1 key, 2 value }
    let traced = request.traceparent.as_deref().map(|parent| {
        let entry_len: usize =
            [TraceParent::HEADER, parent].map(|text| 1 + len(text.len() as u32) + text.len()).iter().sum();
        (parent, entry_len, 1 + len(entry_len as u32) + entry_len)
    });
    let trace_len = traced.map_or(0, |(_, _, info_len)| 1 + len(info_len as u32) + info_len);
    // field 1 call_id, 2 trace_info, 3 method_name, 4 request_param, 5 cell_block_meta { 1 length }, 6 priority, 7 timeout, 8 attribute
    let header_len = (1 + len(call_id))
        + (1 + len(name.len() as u32) + name.len())
        + 2
        + if cells_len > 0 { 1 + len(meta_len as u32) + meta_len } else { 0 }
        + if request.priority > 0 { 1 + len(request.priority) } else { 0 }
        + (1 + len(timeout_ms))
        + attributes_len
        + trace_len;
    let message_len = request.message.encoded_len();
    let total = len(header_len as u32) + header_len + len(message_len as u32) + message_len + cells_len;
    out.reserve(4 + total);
    out.put_u32(total as u32);
    put_varint(out, header_len as u64);
    out.put_u8(0x08);
    put_varint(out, u64::from(call_id));
    if let Some((parent, entry_len, info_len)) = traced {
        out.put_u8(0x12);
        put_varint(out, info_len as u64);
        out.put_u8(0x1A);
        put_varint(out, entry_len as u64);
        for (tag, text) in [(0x0A, TraceParent::HEADER), (0x12, parent)] {
            out.put_u8(tag);
            put_varint(out, text.len() as u64);
            out.put_slice(text.as_bytes());
        }
    }
    out.put_u8(0x1A);
    put_varint(out, name.len() as u64);
    out.put_slice(name.as_bytes());
    out.put_slice(&[0x20, 1]);
    if cells_len > 0 {
        out.put_u8(0x2A);
        put_varint(out, meta_len as u64);
        out.put_u8(0x08);
        put_varint(out, cells_len as u64);
    }
    if request.priority > 0 {
        out.put_u8(0x30);
        put_varint(out, u64::from(request.priority));
    }
    out.put_u8(0x38);
    put_varint(out, u64::from(timeout_ms));
    for pair in request.attributes {
        out.put_u8(0x42);
        put_varint(out, pair.encoded_len() as u64);
        pair.encode_raw(out);
    }
    put_varint(out, message_len as u64);
    request.message.encode_raw(out);
    request.cells.iter().for_each(|piece| out.put_slice(piece));
}

fn put_varint(out: &mut BytesMut, mut value: u64) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

fn prost_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::methods::Method;
    use proto::pb;
    use rpc::frame::{Front, RequestHead, split_body, take_delimited, take_frame};

    #[test]
    fn the_request_written_by_hand_is_read_by_the_server() {
        for (call_id, cells, priority) in [(0, 0, 0), (0x7FFF_FFFF, 1, 200), (70_000, 100_000, 0)] {
            let message = pb::GetRequest::default();
            let pieces = [Bytes::from(vec![7; cells / 2]), Bytes::from(vec![8; cells - cells / 2])];
            let attributes: Vec<_> = (0..priority)
                .map(|n| pb::NameBytesPair { name: format!("a{n}"), value: Some(Bytes::from_static(b"value")) })
                .collect();
            let request =
                Request::new(Method::ClientGet, &message).cells(&pieces).priority(priority).attributes(&attributes);
            let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
            let traceparent = (priority > 0).then(|| parent.to_owned());
            let request = Request { traceparent, ..request };
            let mut out = BytesMut::new();
            put_request(&mut out, call_id, &request, 60_000);
            let Front::Frame(mut frame) = take_frame(&mut out, 1 << 20) else { panic!("a whole frame") };
            assert!(out.is_empty());
            let head = RequestHead::decode(take_delimited(&mut frame).expect("a header")).expect("readable");
            assert_eq!((head.call_id, &head.method_name[..], head.request_param), (call_id, &b"Get"[..], true));
            assert_eq!((head.priority, head.timeout_ms), (priority, 60_000));
            let info = pb::RpctInfo::decode(&*head.trace_info).expect("readable");
            let told = info.headers.get(TraceParent::HEADER).map(String::as_str);
            assert_eq!(told, (priority > 0).then_some(parent));
            assert_eq!(head.cell_block_len.unwrap_or(0) as usize, cells);
            assert_eq!(head.attributes, attributes);
            let body = split_body(frame, true, head.cell_block_len).expect("whole");
            assert_eq!((body.message, body.cell_block.len()), (Bytes::from(message.encode_to_vec()), cells));
        }
    }
}
