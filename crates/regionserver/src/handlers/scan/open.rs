//! A scanner between two calls, and how it is opened.

use crate::errors::exception_of;
use crate::handlers::{find_region, required};
use crate::server::RegionServer;
use crate::traces::in_region;
use base::{Charge, Holder};
use bytes::Bytes;
use convert::from_proto;
use hfile::{BlockReads, Residency};
use model::Scan;
use parking_lot::Mutex;
use proto::pb;
use region::{Region, RegionError, RegionScanner};
use rpc::exception::Exception;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A scanner whose last reply was longer is not tried from memory: its rows take too long to copy.
const MAX_BYTES_AT_ONCE: usize = 1 << 20;
/// What an open scanner is taken to need: its places in files and memstores, and a part of the block that it is in.
const SCANNER_BYTES: u64 = 4 * 1024;

/// A scanner between two calls.
pub(crate) struct OpenScanner {
    pub(super) region: Arc<Region>,
    pub(super) need_cursor: bool,
    /// Bytes of one reply that the client asked for at most.
    pub(super) max_result_size: Option<u64>,
    pub(super) batch: Option<u32>,
    /// Length of the reply before.
    pub(super) last_reply_bytes: AtomicUsize,
    pub(super) state: Mutex<State>,
    /// It is being moved onto other files, for which it is locked: a call does not go on with it on the network's thread.
    is_moving: AtomicBool,
    _charge: Charge,
}

pub(super) struct State {
    pub(super) scanner: RegionScanner,
    /// Steps for few rows are tried from memory first.
    pub(super) tries_memory: bool,
    /// Row of the last result sent, if more of it may follow.
    pub(super) partial_row: Option<Bytes>,
    /// Rows scanned and rows filtered that earlier replies told of.
    pub(super) told: (u64, u64),
    /// What its opening read, until a reply tells it.
    pub(super) opening: BlockReads,
}

impl OpenScanner {
    pub(crate) fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// Whether the next step is tried from memory.
    pub(super) fn may_try_memory(&self) -> bool {
        if self.last_reply_bytes.load(Ordering::Relaxed) > MAX_BYTES_AT_ONCE || self.is_moving.load(Ordering::Acquire) {
            return false;
        }
        let state = &mut *self.state.lock();
        state.tries_memory && state.partial_row.is_none() && state.scanner.try_from_memory()
    }

    /// Whether [`OpenScanner::update_readers`] is to be called: the scanner is in no call, and those that come see that it is being moved.
    pub(crate) fn begin_move(&self) -> bool {
        let is_free = self.is_moving.compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !is_free {
            return false;
        }
        let holds_flushed = self.state.try_lock().is_some_and(|mut state| state.scanner.holds_flushed());
        self.is_moving.store(holds_flushed, Ordering::Release);
        holds_flushed
    }

    /// Goes on from store files where the scanner holds memory that was flushed; false where it must keep some, or a call has it meanwhile.
    /// May read.
    pub(crate) fn update_readers(&self) -> Result<bool, RegionError> {
        let moved = self.state.try_lock().map_or(Ok(false), |mut state| state.scanner.update_readers());
        self.is_moving.store(false, Ordering::Release);
        moved
    }

    /// After a step that could not be done from memory: as before it. The next ones are not tried.
    pub(super) fn begin_again(&self) -> Result<(), RegionError> {
        let state = &mut *self.state.lock();
        state.tries_memory = false;
        state.partial_row = None;
        state.scanner.begin_again()
    }
}

/// A new scanner. `None`, with [`Residency::CachedOnly`] alone: a file would have to be read.
pub(super) fn open(
    server: &Arc<RegionServer>,
    request: &pb::ScanRequest,
    response: &mut pb::ScanResponse,
    residency: Residency,
) -> Result<Option<(u64, Arc<OpenScanner>)>, Exception> {
    let specifier = request.region.as_ref().ok_or_else(|| Exception::not_serving_region(""))?;
    let region = find_region(server, specifier)?;
    let scan = from_proto::scan(required(request.scan.clone(), "ScanRequest", "scan")?)?;
    let before = BlockReads::of_thread();
    let scanner = match in_region("Region.getScanner", &region, || region.scanner_with(&scan, residency)) {
        Err(error) if error.is_would_block() && residency == Residency::CachedOnly => return Ok(None),
        scanner => scanner.map_err(|error| exception_of(&server.escalate_fatal(error)))?,
    };
    if is_of_whole_region(&scan, &region) {
        server.operations.full_scans.add(1);
    }
    let opening = BlockReads::of_thread().since(before);
    response.mvcc_read_point = Some(scanner.read_point().0);
    response.ttl = Some(u32::try_from(server.sessions.scanners.lease_ms()).unwrap_or(u32::MAX));
    let charge = server.ledger.try_charge(Holder::Scanners, SCANNER_BYTES).ok_or_else(|| {
        Exception::region_too_busy(format!(
            "{} scanners are open on {}, as many as there is memory for: close some, or raise basalt.memory.size",
            server.sessions.scanners.len(),
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
        is_moving: AtomicBool::new(false),
        state: Mutex::new(State { scanner, tries_memory: true, partial_row: None, told: (0, 0), opening }),
    });
    let id = server.sessions.scanners.open(open.clone());
    response.scanner_id = Some(id);
    Ok(Some((id, open)))
}

/// Whether the scan goes over all rows of the region. Follows: `RSRpcServices#isFullRegionScan`.
fn is_of_whole_region(scan: &Scan, region: &Region) -> bool {
    let info = region.info();
    scan.start_row <= info.start_key
        && (scan.stop_row.is_empty() || (!info.end_key.is_empty() && scan.stop_row >= info.end_key))
}
