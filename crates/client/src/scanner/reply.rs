//! The message of a scan's reply.

use bytes::Bytes;
use proto::{Message, pb};

use crate::{Error, Result};

/// The message of a scan's reply. Of its two fields that have an entry for each result the first stands first in HBase's replies, and both in
/// Basalt's: there they are read by hand, which takes a fraction of the time.
pub(super) fn response(message: &Bytes) -> Result<pb::ScanResponse> {
    const CELLS_PER_RESULT: u8 = 1 << 3;
    const PARTIAL_FLAG_PER_RESULT: u8 = 7 << 3;
    const MOST_FORESEEN: usize = 1024;
    let mut response = pb::ScanResponse::default();
    let mut rest = &message[..];
    response.cells_per_result.reserve((rest.len() / 4).min(MOST_FORESEEN));
    while let [CELLS_PER_RESULT, cells @ ..0x80, after @ ..] = rest {
        response.cells_per_result.push(u32::from(*cells));
        rest = after;
    }
    response.partial_flag_per_result.reserve((rest.len() / 2).min(MOST_FORESEEN));
    while let [PARTIAL_FLAG_PER_RESULT, partial @ ..=1, after @ ..] = rest {
        response.partial_flag_per_result.push(*partial == 1);
        rest = after;
    }
    response.merge(message.slice(message.len() - rest.len()..)).map_err(Error::malformed)?;
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_read_by_hand_says_what_a_generated_reader_would_find() {
        let replies = [
            pb::ScanResponse::default(),
            pb::ScanResponse {
                cells_per_result: vec![1, 2, 127, 128, 3, 70_000],
                partial_flag_per_result: vec![false, false, false, false, false, true],
                scanner_id: Some(7),
                more_results: Some(true),
                cursor: Some(pb::Cursor { row: Some(Bytes::from_static(b"r")) }),
                ..pb::ScanResponse::default()
            },
        ];
        for reply in replies {
            let in_order = reply.encode_to_vec();
            assert_eq!(response(&Bytes::from(in_order)).expect("a message"), reply);
            // As Basalt writes it: what has an entry for each result stands first.
            let rest =
                pb::ScanResponse { cells_per_result: Vec::new(), partial_flag_per_result: Vec::new(), ..reply.clone() };
            let counts = pb::ScanResponse { cells_per_result: reply.cells_per_result.clone(), ..Default::default() };
            let flags = reply.partial_flag_per_result.clone();
            let flags = pb::ScanResponse { partial_flag_per_result: flags, ..Default::default() };
            let first = [counts, flags, rest].map(|part| part.encode_to_vec()).concat();
            assert_eq!(response(&Bytes::from(first)).expect("a message"), reply);
        }
        for broken in [&[0x08][..], &[0x08, 0x80], &[0x38], &[0x3F, 1]] {
            assert!(response(&Bytes::copy_from_slice(broken)).is_err(), "{broken:?}");
        }
    }
}
