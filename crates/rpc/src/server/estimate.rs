//! What a request takes when it is decoded, estimated from its bytes before that: an empty action of a Multi has 2 bytes on the wire and some
//! hundred as a value.

use proto::methods::Method;

/// Bytes of an action of a Multi as a value, with the growth of the list that it is in, but for its own bytes.
const ACTION_BYTES: u64 = 640;
/// Messages up to this size are not looked at: whatever is in them, they take less than what a connection may hold anyway.
const SMALL_BYTES: usize = 8 * 1024;
/// The columns and attributes of a Get or Scan grow by about this; values do not grow.
const GROWTH: u64 = 8;

/// Bytes that `message`, of a call to `method`, takes when decoded, beyond its own. Cost: one pass over the tags of a large Multi.
pub(super) fn decoded_bytes(method: Method, message: &[u8]) -> u64 {
    if message.len() <= SMALL_BYTES {
        return 0;
    }
    match method {
        // MultiRequest.regionAction = 1, RegionAction.action = 3.
        Method::ClientMulti => {
            fields(message, 1).map(|region| fields(region, 3).count() as u64).sum::<u64>() * ACTION_BYTES
        }
        Method::ClientScan | Method::ClientGet => message.len() as u64 * GROWTH,
        _ => message.len() as u64,
    }
}

/// The length-delimited fields of `message` with the number `wanted`. Ends at the first byte that is no protobuf.
fn fields(mut message: &[u8], wanted: u64) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        loop {
            let tag = varint(&mut message)?;
            let len = match tag & 7 {
                0 => {
                    varint(&mut message)?;
                    0
                }
                1 => 8,
                2 => varint(&mut message)?,
                5 => 4,
                _ => return None,
            };
            let (field, rest) = message.split_at_checked(usize::try_from(len).ok()?)?;
            message = rest;
            if tag >> 3 == wanted && tag & 7 == 2 {
                return Some(field);
            }
        }
    })
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;
    use proto::pb;

    #[test]
    fn every_action_counts_however_small_it_is() {
        let action = pb::RegionAction { action: vec![pb::Action::default(); 10_000], ..pb::RegionAction::default() };
        let request = pb::MultiRequest { region_action: vec![action.clone(), action], ..pb::MultiRequest::default() };
        let bytes = request.encode_to_vec();
        let estimated = decoded_bytes(Method::ClientMulti, &bytes);
        assert_eq!(estimated, 20_000 * ACTION_BYTES);
        // A list that grows has room for half as much again.
        assert!(size_of::<pb::Action>() as u64 <= ACTION_BYTES, "{}", size_of::<pb::Action>());
        assert_eq!(decoded_bytes(Method::ClientMulti, &bytes[..bytes.len() - 1]), 10_000 * ACTION_BYTES, "cut short");
        assert_eq!(decoded_bytes(Method::ClientMulti, &[0xFF; 10_000]), 0);
    }
}
