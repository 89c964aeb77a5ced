//! The reply to a scan's call, and the exceptions after which clients go on.

use super::fill::{Counted, Piece};
use crate::errors::exception_of;
use crate::scanners::ScannerError;
use crate::server::RegionServer;
use bytes::Bytes;
use cell::CellBuffer;
use convert::to_proto;
use hfile::BlockReads;
use proto::{Message, pb};
use region::{ErrorKind, RegionError};
use rpc::exception::{Exception, Kind};
use rpc::{Call, Reply};

/// To a call that comes after the end of its scanner.
pub(super) fn over(id: u64) -> pb::ScanResponse {
    pb::ScanResponse {
        more_results: Some(false),
        more_results_in_region: Some(false),
        scanner_id: Some(id),
        ..pb::ScanResponse::default()
    }
}

pub(super) fn scanner_exception(error: &ScannerError) -> Exception {
    match error {
        ScannerError::Unknown(id) => Exception::unknown_scanner(*id),
        ScannerError::OutOfOrder { expected, got } => Exception::out_of_order_scanner_next(*expected, *got, "scan"),
        ScannerError::Busy(id) => Exception::new(Kind::Lease, format!("lease '{id}' does not exist")),
        ScannerError::AlreadyClosed => Exception::unknown_scanner(0),
    }
}

/// The exception after which the client opens another scanner where it can.
pub(super) fn after_failure(server: &RegionServer, error: RegionError, was_next: bool) -> Exception {
    let exception = exception_of(&server.escalate_fatal(error.clone()));
    if exception.kind().do_not_retry() || error.kind() == ErrorKind::NotServingRegion {
        return exception;
    }
    if was_next {
        Exception::scanner_reset(format!("Scanner is closed on the server-side: {error}"))
    } else {
        exception
    }
}

/// What a call has gone through, for clients that ask: they add up what each reply says. Follows: `ServerSideScanMetrics`.
pub(super) fn scan_metrics(counted: Counted, reads: BlockReads, queued_us: u64, took_us: u64) -> pb::ScanMetrics {
    let metric = |(name, value): (&str, u64)| pb::NameInt64Pair {
        name: Some(name.to_owned()),
        value: Some(i64::try_from(value).unwrap_or(i64::MAX)),
    };
    let metrics = [
        ("ROWS_SCANNED", counted.rows_scanned),
        ("ROWS_FILTERED", counted.rows_filtered),
        ("BLOCK_BYTES_SCANNED", reads.scanned_bytes),
        ("BYTES_READ_FROM_BLOCK_CACHE", reads.cache_bytes),
        ("BYTES_READ_FROM_FS", reads.file_bytes),
        ("BYTES_READ_FROM_MEMSTORE", reads.memory_bytes),
        ("BLOCK_READ_OPS_COUNT", reads.file_blocks),
        ("FS_READ_TIME", reads.file_us / 1000),
        ("RPC_SCAN_PROCESSING_TIME", took_us / 1000),
        ("RPC_SCAN_QUEUE_WAIT_TIME", queued_us / 1000),
    ];
    pb::ScanMetrics { metrics: metrics.map(metric).to_vec() }
}

/// The reply of a read replica is stale.
pub(super) fn reply(
    call: &Call,
    mut response: pb::ScanResponse,
    pieces: &[Piece],
    out: CellBuffer,
    is_stale: bool,
) -> Reply {
    response.stale = Some(is_stale);
    if pieces.is_empty() {
        return Reply::new(&response);
    }
    if call.has_codec() {
        let may_have_tags = out.has_tags();
        let cells = Bytes::from(out.into_bytes());
        return Reply { message: Bytes::from(message_of(&response, pieces)), cells, may_have_tags, ..Reply::default() };
    }
    response.partial_flag_per_result = pieces.iter().map(|piece| piece.partial).collect();
    let ends = pieces.iter().map(|piece| piece.first_cell + piece.cells);
    response.results = pieces
        .iter()
        .zip(ends)
        .map(|(piece, end)| {
            let mut result = to_proto::inline_result((piece.first_cell..end).map(|i| out.get(i)));
            result.partial = Some(piece.partial);
            result.stale = is_stale.then_some(true);
            result
        })
        .collect();
    Reply::new(&response)
}

/// `response` with `cells_per_result` and `partial_flag_per_result`, which it has not, as `pieces` say. These two have most of the message's
/// bytes: written by hand they cost little, and standing first they are as quickly read.
fn message_of(response: &pb::ScanResponse, pieces: &[Piece]) -> Vec<u8> {
    const CELLS_PER_RESULT: u8 = 1 << 3;
    const PARTIAL_FLAG_PER_RESULT: u8 = 7 << 3;
    let mut message = Vec::with_capacity(response.encoded_len() + 5 * pieces.len());
    for piece in pieces {
        message.push(CELLS_PER_RESULT);
        let mut cells = piece.cells as u32;
        while cells >= 0x80 {
            message.push(cells as u8 | 0x80);
            cells >>= 7;
        }
        message.push(cells as u8);
    }
    message.extend(pieces.iter().flat_map(|piece| [PARTIAL_FLAG_PER_RESULT, u8::from(piece.partial)]));
    response.encode_raw(&mut message);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_written_by_hand_says_what_a_generated_one_would() {
        let counts = [1, 0, 127, 128, 70_000, u32::MAX];
        let pieces: Vec<Piece> = counts
            .iter()
            .enumerate()
            .map(|(i, cells)| Piece { cells: *cells as usize, partial: i % 2 == 1, first_cell: 0 })
            .collect();
        let response = over(7);
        let message = pb::ScanResponse::decode(&message_of(&response, &pieces)[..]).expect("a message");
        let wanted = pb::ScanResponse {
            cells_per_result: counts.to_vec(),
            partial_flag_per_result: (0..counts.len()).map(|i| i % 2 == 1).collect(),
            ..response
        };
        assert_eq!(message, wanted);
    }
}
