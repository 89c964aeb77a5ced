//! Scan: open, next, renew, close; partial results, heartbeats, limits. A call that wants few rows is answered at once if it can be from
//! memory. Follows: `RSRpcServices#scan`.

mod answer;
mod charge;
mod fill;
mod open;

use self::answer::{after_failure, over, reply, scan_metrics, scanner_exception};
use self::charge::charge;
use self::fill::{Filled, rows};
use self::open::open;
use super::get::charged;
use super::{Answer, find_region};
use crate::blocking::{CallContext, is_large, large_on_lane, read_on_lane};
use crate::operations::Operation;
use crate::rpc_quotas::QuotaCharge;
use crate::scanners::ScannerError;
use crate::server::RegionServer;
use crate::users::timed;
use base::PausePoint;
use convert::from_proto;
use hfile::Residency;
use proto::pb;
use region::RegionError;
use rpc::exception::{Exception, Kind};
use rpc::{Call, CallResult, Outcome, Reply};
use scheduler::LaneName;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) use self::open::OpenScanner;

/// A scan for so many rows at most is tried from memory first.
const SHORT_SCAN_ROWS: usize = 256;
pub(super) fn scan(server: &Arc<RegionServer>, call: Call) -> Answer {
    if is_large(&call) {
        return Ok(large_on_lane(server, call, LaneName::Read, scan_large));
    }
    let request = request_of(server, &call)?;
    let charge = charge(server, &call, &request)?;
    // Calls that read nothing need no thread of their own.
    if let Some(id) = request.scanner_id.filter(|_| reads_nothing(&request)) {
        return Ok(Outcome::Ready(without_reading(server, id, &request)));
    }
    if let Some(id) = request.scanner_id {
        return go_on(server, id, call, request, charge);
    }
    if is_short(&request)
        && let Some(result) = begin(server, &call, &request, None)
    {
        return Ok(Outcome::Ready(charged(charge.as_ref(), result)));
    }
    let specifier = request.region.as_ref().ok_or_else(|| Exception::not_serving_region(""))?;
    let region = find_region(server, specifier)?;
    let (at, call) = (server.clone(), Arc::new(call));
    let kept = call.clone();
    Ok(read_on_lane(server, &region, &mut CallContext::new(&call), move |pause| {
        charged(charge.as_ref(), begin_on_lane(&at, &kept, &request, pause))
    }))
}

/// A scan whose message alone is too much for a network thread, a long list of filters mostly: on a lane from its beginning.
fn scan_large(server: &Arc<RegionServer>, context: &mut CallContext<'_>) -> Answer {
    let call = context.call;
    let pause = context.pause.unwrap_or(&base::effort::Unpaced);
    let request = request_of(server, call)?;
    let charge = charge(server, call, &request)?;
    let Some(id) = request.scanner_id else {
        return Ok(Outcome::Ready(charged(charge.as_ref(), begin_on_lane(server, call, &request, pause))));
    };
    if reads_nothing(&request) {
        return Ok(Outcome::Ready(without_reading(server, id, &request)));
    }
    let mut response = pb::ScanResponse::default();
    let Some(scanner) = next_of(server, id, &request, &mut response)? else { return Ok(Outcome::reply(&over(id))) };
    let _checked_out = CheckedOut { server: server.clone(), id };
    let filled = rows(server, call, &request, &scanner, response, Some(pause));
    Ok(Outcome::Ready(charged(charge.as_ref(), finish(server, call, &request, id, &scanner, filled))))
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
fn go_on(
    server: &Arc<RegionServer>,
    id: u64,
    call: Call,
    request: pb::ScanRequest,
    charge: Option<QuotaCharge>,
) -> Answer {
    let mut response = pb::ScanResponse::default();
    let Some(scanner) = next_of(server, id, &request, &mut response)? else { return Ok(Outcome::reply(&over(id))) };
    let (mut begins_again, is_short) = (false, rows_wanted(&request) <= SHORT_SCAN_ROWS);
    if is_short && scanner.may_try_memory() {
        match rows(server, &call, &request, &scanner, response.clone(), None) {
            Err(error) if error.is_would_block() => begins_again = true,
            filled => {
                scanner.state.lock().scanner.may_read();
                let result = finish(server, &call, &request, id, &scanner, filled);
                return Ok(Outcome::Ready(charged(charge.as_ref(), result)));
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
        charged(charge.as_ref(), finish(&checked_out.server, &kept, &request, id, &scanner, filled))
    }))
}

/// A scanner that a call has on a lane. If the call is dropped, or panics, its number is used up all the same: the client opens another.
struct CheckedOut {
    server: Arc<RegionServer>,
    id: u64,
}

impl Drop for CheckedOut {
    fn drop(&mut self) {
        self.server.sessions.scanners.close_if_checked_out(self.id);
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
        return match server.sessions.scanners.renew(id, request.next_call_seq) {
            Ok(()) | Err(ScannerError::AlreadyClosed) => Ok(Reply::new(&response)),
            Err(error) => Err(scanner_exception(&error)),
        };
    }
    match server.sessions.scanners.check_out(id, request.next_call_seq) {
        Ok(_) => {
            server.sessions.scanners.close(id, true);
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
            server.sessions.scanners.close(id, false);
            return None;
        }
        scanner.state.lock().scanner.may_read();
    }
    Some(finish(server, call, request, id, &scanner, filled))
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
    let Filled { mut response, pieces, out, begun_us, counted, reads } = match filled {
        Ok(filled) => filled,
        Err(error) => {
            // The call's number is used up and the scanner may be anywhere: the client must open another one.
            server.sessions.scanners.close(id, false);
            return Err(after_failure(server, error, request.scanner_id.is_some()));
        }
    };
    if response.more_results == Some(false) || response.more_results_in_region == Some(false) || request.close_scanner()
    {
        server.sessions.scanners.close(id, true);
    } else {
        server.sessions.scanners.check_in(id);
    }
    scanner.last_reply_bytes.store(out.byte_len(), Ordering::Relaxed);
    if let Some(row_bytes) = out.byte_len().checked_div(pieces.len()) {
        server.sessions.scanned_row_bytes.store(row_bytes, Ordering::Relaxed);
    }
    let now_us = server.env.clock.monotonic_us();
    let took_us = now_us.saturating_sub(begun_us);
    timed(call.conn.load.get(), Operation::ScanTime, took_us, 1);
    server.operations.scanned(took_us, out.byte_len() as u64, reads.scanned_bytes);
    if request.track_scan_metrics() {
        let queued_us = begun_us.saturating_sub(call.received_at_us);
        response.scan_metrics = Some(scan_metrics(counted, reads, queued_us, took_us));
    }
    if call.deadline_us.is_some_and(|deadline_us| now_us > deadline_us) {
        server.sessions.scanners.close(id, false);
        return Err(Exception::timeout("Client deadline exceeded, cannot return results"));
    }
    Ok(reply(call, response, &pieces, out, scanner.region.info().is_replica()))
}

/// The scanner of an earlier call; `None` when it has closed itself.
fn next_of(
    server: &Arc<RegionServer>,
    id: u64,
    request: &pb::ScanRequest,
    response: &mut pb::ScanResponse,
) -> Result<Option<Arc<OpenScanner>>, Exception> {
    response.scanner_id = Some(id);
    match server.sessions.scanners.check_out(id, request.next_call_seq) {
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
    server.sessions.scanners.close(id, false);
    Err(Exception::new(
        Kind::NotServingRegion,
        format!("Region has changed on the scanner {id}: regionName={}", region.info().name_string()),
    ))
}
