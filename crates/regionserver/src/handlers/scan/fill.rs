//! Reading rows into a reply until a limit is met.

use super::open::OpenScanner;
use super::{SHORT_SCAN_ROWS, rows_wanted};
use crate::server::{LEAST_REPLY_BYTES, RegionServer};
use crate::traces::in_region;
use base::PausePoint;
use bytes::Bytes;
use cell::CellBuffer;
use hfile::BlockReads;
use proto::pb;
use region::{Limits, Reason, RegionError};
use rpc::{Call, Making};
use std::sync::atomic::Ordering;

/// Least time that a scan gets before it must send a heartbeat (`hbase.region.server.rpc.minimum.scan.time.limit.delta`).
const MIN_SCAN_TIME_US: u64 = 10_000;
/// Room for the cells of a first reply is made for so many bytes at the most.
const MAX_FORESEEN_BYTES: usize = 256 << 10;
/// Room for the first reply of a scan that does not say how many rows it wants.
const UNFORESEEN_BYTES: usize = 16 << 10;

/// So many rows are read before it is asked again whether the reply may grow on.
const ROWS_IN_A_ROW: usize = 256;
/// A reply of so many bytes may be told to end, where its client goes on with another call.
const LEAST_PART_BYTES: u64 = 128 << 10;

/// One result within a reply: its cells in the buffer and whether its row may go on.
pub(super) struct Piece {
    pub(super) cells: usize,
    pub(super) partial: bool,
    pub(super) first_cell: usize,
}

/// Rows that a call went through.
#[derive(Clone, Copy, Default)]
pub(super) struct Counted {
    pub(super) rows_scanned: u64,
    pub(super) rows_filtered: u64,
}

/// What a call has gathered.
pub(super) struct Filled {
    pub(super) response: pb::ScanResponse,
    pub(super) pieces: Vec<Piece>,
    pub(super) out: CellBuffer,
    /// When the work began.
    pub(super) begun_us: u64,
    pub(super) counted: Counted,
    pub(super) reads: BlockReads,
}

/// Reads until a limit is met.
pub(super) fn rows(
    server: &RegionServer,
    call: &Call,
    request: &pb::ScanRequest,
    scanner: &OpenScanner,
    mut response: pb::ScanResponse,
    pause: Option<&dyn PausePoint>,
) -> Result<Filled, RegionError> {
    // The next reply of a scan is mostly as long as its last one, a row of the first one about as long as other scans' rows: with a little more,
    // all need not be moved for the last ones.
    let foreseen = match scanner.last_reply_bytes.load(Ordering::Relaxed) {
        0 => {
            let row_bytes = server.sessions.scanned_row_bytes.load(Ordering::Relaxed);
            match rows_wanted(request) {
                rows @ ..=SHORT_SCAN_ROWS => (row_bytes * rows / 32 * 33).min(MAX_FORESEEN_BYTES),
                // As many as there are, which in hbase:meta is often three.
                _ => UNFORESEEN_BYTES,
            }
        }
        bytes => bytes,
    };
    let mut out = CellBuffer::with_capacity(foreseen, rows_wanted(request).min(SHORT_SCAN_ROWS));
    // What is tried on the network thread begins with the call.
    let begun_us = if pause.is_some() { server.env.clock.monotonic_us() } else { call.received_at_us };
    let before = BlockReads::of_thread();
    let (pieces, counted) = in_region("RegionScanner.next", &scanner.region, || {
        fill(server, call, request, scanner, pause, &mut response, &mut out)
    })?;
    let opening = std::mem::take(&mut scanner.state.lock().opening);
    let reads = BlockReads::of_thread().since(before).and(opening);
    Ok(Filled { response, pieces, out, begun_us, counted, reads })
}

/// Reads until a limit is met; sets the flags of `response`.
fn fill(
    server: &RegionServer,
    call: &Call,
    request: &pb::ScanRequest,
    open: &OpenScanner,
    pause: Option<&dyn PausePoint>,
    response: &mut pb::ScanResponse,
    out: &mut CellBuffer,
) -> Result<(Vec<Piece>, Counted), RegionError> {
    let mut pieces: Vec<Piece> = Vec::with_capacity(rows_wanted(request).min(SHORT_SCAN_ROWS));
    let max_results = request.number_of_rows.unwrap_or(if request.close_scanner() { 0 } else { 1 }) as usize;
    if max_results == 0 {
        response.more_results_in_region = Some(true);
        response.more_results = Some(true);
        return Ok((pieces, Counted::default()));
    }
    let limit_of_rows = request.limit_of_rows.filter(|limit| *limit > 0).map(u64::from);
    let mut limits = limits_of(server, call, request, open, pause);
    let growth = pause.map(|_| Growth::of(call, request));
    let mut state = open.state.lock();
    let mut complete_rows = 0u64;
    let mut more;
    let mut last_row: Option<Bytes> = state.partial_row.take();
    let mut starts = Vec::new();
    loop {
        let mut first_cell = out.len();
        let mut most = max_results - pieces.len();
        if let Some(limit) = limit_of_rows {
            most = most.min(usize::try_from(limit - complete_rows).unwrap_or(usize::MAX));
        }
        if last_row.is_some() {
            // Whether this row goes on is looked at alone.
            most = 1;
        }
        if growth.is_some() {
            most = most.min(ROWS_IN_A_ROW);
        }
        let progress = state.scanner.next_rows(&mut limits, out, most, &mut starts)?;
        for start in starts.drain(..) {
            pieces.push(Piece { cells: start - first_cell, partial: false, first_cell });
            complete_rows += 1;
            first_cell = start;
        }
        more = progress.more;
        if progress.cells > 0 {
            if limit_of_rows.is_some()
                && let Some(row) = &last_row
                && out.get(first_cell).row() != &row[..]
            {
                // The row that seemed to go on did not.
                complete_rows += 1;
                if Some(complete_rows) >= limit_of_rows {
                    out.truncate(first_cell);
                    response.more_results = Some(false);
                    break;
                }
            }
            last_row = progress.partial.then(|| Bytes::copy_from_slice(out.get(first_cell).row()));
            pieces.push(Piece { cells: progress.cells, partial: progress.partial, first_cell });
            if !progress.partial && limit_of_rows.is_some() {
                complete_rows += 1;
                if Some(complete_rows) >= limit_of_rows {
                    response.more_results = Some(false);
                    break;
                }
            }
        } else if !more && let Some(last) = pieces.last_mut() {
            // The end of the region is the end of the row.
            last.partial = false;
            last_row = None;
        }
        let is_held_back = pieces.last().is_some_and(|piece| !piece.partial)
            && growth.as_ref().is_some_and(|growth| !growth.may_go_on(limits.used_bytes));
        let size_reached = limits.used_bytes >= limits.size_bytes || is_held_back;
        let time_reached = progress.reason == Reason::Time;
        if more && (size_reached || time_reached || pieces.len() >= max_results) {
            if time_reached || (size_reached && pieces.is_empty()) {
                response.heartbeat_message = Some(true);
                if open.need_cursor && !state.scanner.last_row().is_empty() {
                    let row = Bytes::copy_from_slice(state.scanner.last_row());
                    response.cursor = Some(pb::Cursor { row: Some(row) });
                }
            }
            break;
        }
        if !more || pieces.len() >= max_results {
            break;
        }
    }
    response.more_results_in_region = Some(more);
    if pieces.is_empty() && state.scanner.is_filter_done() {
        response.more_results = Some(false);
    }
    response.more_results.get_or_insert(true);
    state.partial_row = last_row;
    let counted = (state.scanner.rows_scanned(), state.scanner.rows_filtered());
    let told = std::mem::replace(&mut state.told, counted);
    let counted = Counted { rows_scanned: counted.0 - told.0, rows_filtered: counted.1 - told.1 };
    Ok((pieces, counted))
}

/// Where the call ends at the latest.
fn limits_of<'a>(
    server: &RegionServer,
    call: &Call,
    request: &pb::ScanRequest,
    open: &OpenScanner,
    pause: Option<&'a dyn PausePoint>,
) -> Limits<'a> {
    let allow_partials = request.client_handles_partials();
    let allow_heartbeats = request.client_handles_heartbeats() && allow_partials;
    let server_max = server.most_reply_bytes();
    Limits {
        batch_cells: open.batch.unwrap_or(0),
        size_bytes: open.max_result_size.map_or(server_max, |wanted| wanted.min(server_max)),
        partial_rows: allow_partials,
        deadline_us: allow_heartbeats.then(|| time_limit(server, call)),
        pause,
        ..Limits::default()
    }
}

/// Memory of a reply that may become large: it is counted as the reply grows.
struct Growth {
    making: Making,
    least_bytes: u64,
}

impl Growth {
    fn of(call: &Call, request: &pb::ScanRequest) -> Growth {
        // One that closes its scanner would not come for the rest: it gets as much as where memory is least.
        let least_bytes = if request.close_scanner() { LEAST_REPLY_BYTES } else { LEAST_PART_BYTES };
        Growth { making: call.cancellation().making(), least_bytes }
    }

    /// Whether a reply of so many bytes should get more rows; else its client is to come again for them.
    fn may_go_on(&self, bytes: u64) -> bool {
        self.making.has(bytes) || bytes < self.least_bytes
    }
}

/// When a scan that can send heartbeats must answer: half of what lease and client allow.
fn time_limit(server: &RegionServer, call: &Call) -> u64 {
    let now_us = server.env.clock.monotonic_us();
    let lease_us = server.sessions.scanners.lease_ms() * 1000;
    let client_us = call.deadline_us.map_or(u64::MAX, |deadline| deadline.saturating_sub(now_us));
    now_us + (lease_us.min(client_us) / 2).max(MIN_SCAN_TIME_US)
}
