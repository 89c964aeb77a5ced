//! What a call of a scan takes of quotas.

use super::OpenScanner;
use crate::handlers::find_region;
use crate::rpc_quotas::QuotaCharge;
use crate::server::RegionServer;
use proto::pb;
use quota::ScanEstimate;
use rpc::Call;
use rpc::exception::Exception;
use std::sync::atomic::Ordering;

/// Takes what this call of a scan is taken for; `None` where nothing bounds it.
///
/// # Errors
/// Its limits are met; the scanner is as it was, and the same call may come again.
pub(super) fn charge(
    server: &RegionServer,
    call: &Call,
    request: &pb::ScanRequest,
) -> Result<Option<QuotaCharge>, Exception> {
    if !server.quotas.is_on() {
        return Ok(None);
    }
    let (region, estimate) = match request.scanner_id {
        // One that is not there is told of where it is looked for.
        Some(id) => match server.sessions.scanners.peek(id) {
            Some(scanner) => (scanner.region().clone(), estimate(server, &scanner, request)),
            None => return Ok(None),
        },
        None => {
            let specifier = request.region.as_ref().ok_or_else(|| Exception::not_serving_region(""))?;
            (find_region(server, specifier)?, ScanEstimate::default())
        }
    };
    server.quotas.check_scan(call, &region, &estimate, || server.counts.total())
}

/// Bytes of replies stand for bytes of blocks, which are not counted yet.
fn estimate(server: &RegionServer, scanner: &OpenScanner, request: &pb::ScanRequest) -> ScanEstimate {
    ScanEstimate {
        call_seq: request.next_call_seq(),
        max_result_bytes: server.most_reply_bytes(),
        max_block_bytes: scanner.last_reply_bytes.load(Ordering::Relaxed) as u64,
        block_bytes_grew: 0,
    }
}
