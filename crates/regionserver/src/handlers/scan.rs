//! Scan: open, next, renew, close; partial results, heartbeats, limits. A call that wants few rows is answered at once if it can be from
//! memory. Follows: `RSRpcServices#scan`.

use super::{Answer, find_region, is_overdue};
use crate::blocking::{CallContext, is_large, large_on_lane, read_on_lane};
use crate::errors::exception_of;
use crate::scanners::ScannerError;
use crate::server::RegionServer;
use base::{Charge, Holder, PausePoint};
use bytes::Bytes;
use cell::CellBuffer;
use convert::{from_proto, to_proto};
use hfile::Residency;
use parking_lot::Mutex;
use proto::{Message, pb};
use region::{ErrorKind, Limits, Reason, Region, RegionError, RegionScanner};
use rpc::exception::{Exception, Kind};
use rpc::{Call, CallResult, Outcome, Reply};
use scheduler::LaneName;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Least time that a scan gets before it must send a heartbeat (`hbase.region.server.rpc.minimum.scan.time.limit.delta`).
const MIN_SCAN_TIME_US: u64 = 10_000;

/// A scan for so many rows at most is tried from memory first.
const SHORT_SCAN_ROWS: usize = 256;
/// Room for the cells of a first reply is made for so many bytes at the most.
const MAX_FORESEEN_BYTES: usize = 256 << 10;
/// Room for the first reply of a scan that does not say how many rows it wants.
const UNFORESEEN_BYTES: usize = 16 << 10;

/// A scanner whose last reply was longer is not tried from memory: its rows take too long to copy.
const MAX_BYTES_AT_ONCE: usize = 1 << 20;

/// A scanner between two calls.
pub(crate) struct OpenScanner {
    region: Arc<Region>,
    need_cursor: bool,
    /// Bytes of one reply that the client asked for at most.
    max_result_size: Option<u64>,
    batch: Option<u32>,
    /// Length of the reply before.
    last_reply_bytes: AtomicUsize,
    state: Mutex<State>,
    _charge: Charge,
}

/// What an open scanner is taken to need: its places in files and memstores, and a part of the block that it is in.
const SCANNER_BYTES: u64 = 4 * 1024;

struct State {
    scanner: RegionScanner,
    /// Steps for few rows are tried from memory first.
    tries_memory: bool,
    /// Row of the last result sent, if more of it may follow.
    partial_row: Option<Bytes>,
    /// Rows scanned and rows filtered that earlier replies told of.
    told: (u64, u64),
}

impl OpenScanner {
    pub(crate) fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// Whether the next step is tried from memory.
    fn may_try_memory(&self) -> bool {
        if self.last_reply_bytes.load(Ordering::Relaxed) > MAX_BYTES_AT_ONCE {
            return false;
        }
        let state = &mut *self.state.lock();
        state.tries_memory && state.partial_row.is_none() && state.scanner.try_from_memory()
    }

    /// After a step that could not be done from memory: as before it. The next ones are not tried.
    fn begin_again(&self) -> Result<(), RegionError> {
        let state = &mut *self.state.lock();
        state.tries_memory = false;
        state.partial_row = None;
        state.scanner.begin_again()
    }
}

/// One result within a reply: its cells in the buffer and whether its row may go on.
struct Piece {
    cells: usize,
    partial: bool,
    first_cell: usize,
}

pub(super) fn scan(server: &Arc<RegionServer>, call: Call) -> Answer {
    if is_large(&call) {
        return Ok(large_on_lane(server, call, LaneName::Read, scan_large));
    }
    let request = request_of(server, &call)?;
    // Calls that read nothing need no thread of their own.
    if let Some(id) = request.scanner_id.filter(|_| reads_nothing(&request)) {
        return Ok(Outcome::Ready(without_reading(server, id, &request)));
    }
    if let Some(id) = request.scanner_id {
        return go_on(server, id, call, request);
    }
    if is_short(&request)
        && let Some(result) = begin(server, &call, &request, None)
    {
        return Ok(Outcome::Ready(result));
    }
    let specifier = request.region.as_ref().ok_or_else(|| Exception::not_serving_region(""))?;
    let region = find_region(server, specifier)?;
    let (at, call) = (server.clone(), Arc::new(call));
    let kept = call.clone();
    Ok(read_on_lane(server, &region, &mut CallContext::new(&call), move |pause| {
        begin_on_lane(&at, &kept, &request, pause)
    }))
}

/// A scan whose message alone is too much for a network thread, a long list of filters mostly: on a lane from its beginning.
fn scan_large(server: &Arc<RegionServer>, context: &mut CallContext<'_>) -> Answer {
    let call = context.call;
    let pause = context.pause.unwrap_or(&base::effort::Unpaced);
    let request = request_of(server, call)?;
    let Some(id) = request.scanner_id else {
        return Ok(Outcome::Ready(begin_on_lane(server, call, &request, pause)));
    };
    if reads_nothing(&request) {
        return Ok(Outcome::Ready(without_reading(server, id, &request)));
    }
    let mut response = pb::ScanResponse::default();
    let Some(scanner) = next_of(server, id, &request, &mut response)? else { return Ok(Outcome::reply(&over(id))) };
    let _checked_out = CheckedOut { server: server.clone(), id };
    let filled = rows(server, call, &request, &scanner, response, Some(pause));
    Ok(Outcome::Ready(finish(server, call, &request, id, &scanner, filled)))
}

/// Decodes a request and refuses what cannot be one.
fn request_of(server: &RegionServer, call: &Call) -> Result<pb::ScanRequest, Exception> {
    let request: pb::ScanRequest = call.decode()?;
    if request.scanner_id.is_none() && request.scan.is_none() {
        return Err(Exception::do_not_retry("Missing required input: scannerId or scan"));
    }
    if let Some(rows) = request.number_of_rows.filter(|rows| *rows > i32::MAX as u32) {
        let message = format!("Illegal Capacity: {}", rows as i32);
        return Err(Exception::thrown("java.lang.IllegalArgumentException", message));
    }
    server.counts.reads.add(1);
    Ok(request)
}

/// Whether the call only renews its scanner or closes it.
fn reads_nothing(request: &pb::ScanRequest) -> bool {
    request.renew() || (request.close_scanner() && request.number_of_rows == Some(0))
}

fn begin_on_lane(
    server: &Arc<RegionServer>,
    call: &Call,
    request: &pb::ScanRequest,
    pause: &dyn PausePoint,
) -> CallResult {
    let result = begin(server, call, request, Some(pause));
    result.unwrap_or_else(|| Err(Exception::io("a scan that may block said that it would")))
}

/// The next call of an open scanner: for few rows it is tried from memory, as long as that goes well.
fn go_on(server: &Arc<RegionServer>, id: u64, call: Call, request: pb::ScanRequest) -> Answer {
    let mut response = pb::ScanResponse::default();
    let Some(scanner) = next_of(server, id, &request, &mut response)? else { return Ok(Outcome::reply(&over(id))) };
    let (mut begins_again, is_short) = (false, rows_wanted(&request) <= SHORT_SCAN_ROWS);
    if is_short && scanner.may_try_memory() {
        match rows(server, &call, &request, &scanner, response.clone(), None) {
            Err(error) if error.is_would_block() => begins_again = true,
            filled => {
                scanner.state.lock().scanner.may_read();
                return Ok(Outcome::Ready(finish(server, &call, &request, id, &scanner, filled)));
            }
        }
    }
    let region = scanner.region.clone();
    let (call, checked_out) = (Arc::new(call), CheckedOut { server: server.clone(), id });
    let kept = call.clone();
    Ok(read_on_lane(server, &region, &mut CallContext::new(&call), move |pause| {
        let filled = match begins_again.then(|| scanner.begin_again()) {
            Some(Err(error)) => Err(error),
            _ => rows(&checked_out.server, &kept, &request, &scanner, response, Some(pause)),
        };
        finish(&checked_out.server, &kept, &request, id, &scanner, filled)
    }))
}

/// A scanner that a call has on a lane. If the call is dropped, or panics, its number is used up all the same: the client opens another.
struct CheckedOut {
    server: Arc<RegionServer>,
    id: u64,
}

impl Drop for CheckedOut {
    fn drop(&mut self) {
        self.server.scanners.close_if_checked_out(self.id);
    }
}

/// Rows that the call wants at the most.
fn rows_wanted(request: &pb::ScanRequest) -> usize {
    let rows = request.number_of_rows.unwrap_or(if request.close_scanner() { 0 } else { 1 });
    request.limit_of_rows.filter(|limit| *limit > 0).map_or(rows, |limit| limit.min(rows)) as usize
}

/// Whether the scan is worth an attempt from memory alone, on the connection's worker: it begins with this call and wants few rows.
/// Filters that are not light may want any time for any number of rows.
fn is_short(request: &pb::ScanRequest) -> bool {
    request.scanner_id.is_none()
        && rows_wanted(request) <= SHORT_SCAN_ROWS
        && request.scan.as_ref().is_some_and(|scan| scan.filter.as_ref().is_none_or(from_proto::is_light_filter))
}

fn without_reading(server: &RegionServer, id: u64, request: &pb::ScanRequest) -> CallResult {
    let response = pb::ScanResponse { scanner_id: Some(id), ..pb::ScanResponse::default() };
    if request.renew() {
        return match server.scanners.renew(id, request.next_call_seq) {
            Ok(()) | Err(ScannerError::AlreadyClosed) => Ok(Reply::new(&response)),
            Err(error) => Err(scanner_exception(&error)),
        };
    }
    match server.scanners.check_out(id, request.next_call_seq) {
        Ok(_) => {
            server.scanners.close(id, true);
            let response = pb::ScanResponse {
                more_results: Some(true),
                more_results_in_region: Some(true),
                scanner_id: Some(id),
                ..pb::ScanResponse::default()
            };
            Ok(Reply::new(&response))
        }
        Err(ScannerError::AlreadyClosed) => Ok(Reply::new(&over(id))),
        Err(error) => Err(scanner_exception(&error)),
    }
}

/// To a call that comes after the end of its scanner.
fn over(id: u64) -> pb::ScanResponse {
    pb::ScanResponse {
        more_results: Some(false),
        more_results_in_region: Some(false),
        scanner_id: Some(id),
        ..pb::ScanResponse::default()
    }
}

fn scanner_exception(error: &ScannerError) -> Exception {
    match error {
        ScannerError::Unknown(id) => Exception::unknown_scanner(*id),
        ScannerError::OutOfOrder { expected, got } => Exception::out_of_order_scanner_next(*expected, *got, "scan"),
        ScannerError::Busy(id) => Exception::new(Kind::Lease, format!("lease '{id}' does not exist")),
        ScannerError::AlreadyClosed => Exception::unknown_scanner(0),
    }
}

/// Opens a scanner and does its first call. `None`, without a pause point alone: it would have to read a file or to work long; nothing has
/// changed then.
fn begin(
    server: &Arc<RegionServer>,
    call: &Call,
    request: &pb::ScanRequest,
    pause: Option<&dyn PausePoint>,
) -> Option<CallResult> {
    let residency = if pause.is_some() { Residency::MayRead } else { Residency::CachedOnly };
    let mut response = pb::ScanResponse::default();
    let (id, scanner) = match open(server, request, &mut response, residency) {
        Ok(Some(opened)) => opened,
        Ok(None) => return None,
        Err(exception) => return Some(Err(exception)),
    };
    let _checked_out = CheckedOut { server: server.clone(), id };
    let filled = rows(server, call, request, &scanner, response, pause);
    if residency == Residency::CachedOnly {
        if filled.as_ref().is_err_and(RegionError::is_would_block) {
            server.scanners.close(id, false);
            return None;
        }
        scanner.state.lock().scanner.may_read();
    }
    Some(finish(server, call, request, id, &scanner, filled))
}

/// What a call has gathered.
struct Filled {
    response: pb::ScanResponse,
    pieces: Vec<Piece>,
    out: CellBuffer,
}

/// Reads until a limit is met.
fn rows(
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
            let row_bytes = server.scanned_row_bytes.load(Ordering::Relaxed);
            match rows_wanted(request) {
                rows @ ..=SHORT_SCAN_ROWS => (row_bytes * rows / 32 * 33).min(MAX_FORESEEN_BYTES),
                // As many as there are, which in hbase:meta is often three.
                _ => UNFORESEEN_BYTES,
            }
        }
        bytes => bytes,
    };
    let mut out = CellBuffer::with_capacity(foreseen, rows_wanted(request).min(SHORT_SCAN_ROWS));
    let pieces = fill(server, call, request, scanner, pause, &mut response, &mut out)?;
    Ok(Filled { response, pieces, out })
}

/// Ends a call: closes the scanner where it has come to its end, and makes the reply.
fn finish(
    server: &Arc<RegionServer>,
    call: &Call,
    request: &pb::ScanRequest,
    id: u64,
    scanner: &OpenScanner,
    filled: Result<Filled, RegionError>,
) -> CallResult {
    let Filled { response, pieces, out } = match filled {
        Ok(filled) => filled,
        Err(error) => {
            // The call's number is used up and the scanner may be anywhere: the client must open another one.
            server.scanners.close(id, false);
            return Err(after_failure(server, error, request.scanner_id.is_some()));
        }
    };
    if response.more_results == Some(false) || response.more_results_in_region == Some(false) || request.close_scanner()
    {
        server.scanners.close(id, true);
    } else {
        server.scanners.check_in(id);
    }
    scanner.last_reply_bytes.store(out.byte_len(), Ordering::Relaxed);
    if let Some(row_bytes) = out.byte_len().checked_div(pieces.len()) {
        server.scanned_row_bytes.store(row_bytes, Ordering::Relaxed);
    }
    if is_overdue(server, call.deadline_us) {
        server.scanners.close(id, false);
        return Err(Exception::timeout("Client deadline exceeded, cannot return results"));
    }
    Ok(reply(call, response, &pieces, out))
}

/// The scanner of an earlier call; `None` when it has closed itself.
fn next_of(
    server: &Arc<RegionServer>,
    id: u64,
    request: &pb::ScanRequest,
    response: &mut pb::ScanResponse,
) -> Result<Option<Arc<OpenScanner>>, Exception> {
    response.scanner_id = Some(id);
    match server.scanners.check_out(id, request.next_call_seq) {
        Ok(scanner) => {
            check_still_online(server, id, &scanner)?;
            Ok(Some(scanner))
        }
        Err(ScannerError::AlreadyClosed) => Ok(None),
        Err(error) => Err(scanner_exception(&error)),
    }
}

fn check_still_online(server: &RegionServer, id: u64, scanner: &OpenScanner) -> Result<(), Exception> {
    let region = &scanner.region;
    let online = server.region(region.info().encoded_name());
    if online.is_some_and(|online| Arc::ptr_eq(&online, region)) {
        return Ok(());
    }
    server.scanners.close(id, false);
    Err(Exception::new(
        Kind::NotServingRegion,
        format!("Region has changed on the scanner {id}: regionName={}", region.info().name_string()),
    ))
}

/// A new scanner. `None`, with [`Residency::CachedOnly`] alone: a file would have to be read.
fn open(
    server: &Arc<RegionServer>,
    request: &pb::ScanRequest,
    response: &mut pb::ScanResponse,
    residency: Residency,
) -> Result<Option<(u64, Arc<OpenScanner>)>, Exception> {
    let specifier = request.region.as_ref().ok_or_else(|| Exception::not_serving_region(""))?;
    let region = find_region(server, specifier)?;
    let scan = from_proto::scan(super::required(request.scan.clone(), "ScanRequest", "scan")?)?;
    let scanner = match region.scanner_with(&scan, residency) {
        Err(error) if error.is_would_block() && residency == Residency::CachedOnly => return Ok(None),
        scanner => scanner.map_err(|error| exception_of(&server.escalate_fatal(error)))?,
    };
    response.mvcc_read_point = Some(scanner.read_point().0);
    response.ttl = Some(u32::try_from(server.scanners.lease_ms()).unwrap_or(u32::MAX));
    let charge = server.ledger.try_charge(Holder::Scanners, SCANNER_BYTES).ok_or_else(|| {
        Exception::region_too_busy(format!(
            "{} scanners are open on {}, as many as there is memory for: close some, or raise basalt.memory.size",
            server.scanners.len(),
            server.name
        ))
    })?;
    let open = Arc::new(OpenScanner {
        _charge: charge,
        region,
        need_cursor: scan.need_cursor,
        max_result_size: scan.max_result_size,
        batch: scan.batch,
        last_reply_bytes: AtomicUsize::new(0),
        state: Mutex::new(State { scanner, tries_memory: true, partial_row: None, told: (0, 0) }),
    });
    let id = server.scanners.open(open.clone());
    response.scanner_id = Some(id);
    Ok(Some((id, open)))
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
) -> Result<Vec<Piece>, RegionError> {
    let mut pieces: Vec<Piece> = Vec::with_capacity(rows_wanted(request).min(SHORT_SCAN_ROWS));
    let max_results = request.number_of_rows.unwrap_or(if request.close_scanner() { 0 } else { 1 }) as usize;
    if max_results == 0 {
        response.more_results_in_region = Some(true);
        response.more_results = Some(true);
        return Ok(pieces);
    }
    let allow_partials = request.client_handles_partials();
    let allow_heartbeats = request.client_handles_heartbeats() && allow_partials;
    let limit_of_rows = request.limit_of_rows.filter(|limit| *limit > 0).map(u64::from);
    let server_max = server.most_reply_bytes();
    let mut limits = Limits {
        batch_cells: open.batch.unwrap_or(0),
        size_bytes: open.max_result_size.map_or(server_max, |wanted| wanted.min(server_max)),
        partial_rows: allow_partials,
        deadline_us: allow_heartbeats.then(|| time_limit(server, call)),
        pause,
        ..Limits::default()
    };
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
        let size_reached = limits.used_bytes >= limits.size_bytes;
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
    if request.track_scan_metrics() {
        // The client adds up what each reply says.
        let metric = |name: &str, value: u64| pb::NameInt64Pair {
            name: Some(name.to_owned()),
            value: Some(i64::try_from(value).unwrap_or(i64::MAX)),
        };
        let metrics = vec![metric("ROWS_SCANNED", counted.0 - told.0), metric("ROWS_FILTERED", counted.1 - told.1)];
        response.scan_metrics = Some(pb::ScanMetrics { metrics });
    }
    Ok(pieces)
}

/// When a scan that can send heartbeats must answer: half of what lease and client allow.
fn time_limit(server: &RegionServer, call: &Call) -> u64 {
    let now_us = server.env.clock.monotonic_us();
    let lease_us = server.scanners.lease_ms() * 1000;
    let client_us = call.deadline_us.map_or(u64::MAX, |deadline| deadline.saturating_sub(now_us));
    now_us + (lease_us.min(client_us) / 2).max(MIN_SCAN_TIME_US)
}

/// The exception after which the client opens another scanner where it can.
fn after_failure(server: &RegionServer, error: RegionError, was_next: bool) -> Exception {
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

fn reply(call: &Call, mut response: pb::ScanResponse, pieces: &[Piece], out: CellBuffer) -> Reply {
    response.stale = Some(false);
    if pieces.is_empty() {
        return Reply::new(&response);
    }
    if call.has_codec() {
        let may_have_tags = out.has_tags();
        let cells = Bytes::from(out.into_bytes());
        return Reply { message: Bytes::from(message_of(&response, pieces)), cells, may_have_tags };
    }
    response.partial_flag_per_result = pieces.iter().map(|piece| piece.partial).collect();
    let ends = pieces.iter().map(|piece| piece.first_cell + piece.cells);
    response.results = pieces
        .iter()
        .zip(ends)
        .map(|(piece, end)| {
            let mut result = to_proto::inline_result((piece.first_cell..end).map(|i| out.get(i)));
            result.partial = Some(piece.partial);
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
