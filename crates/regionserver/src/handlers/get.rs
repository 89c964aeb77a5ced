//! Get: answered at once from memory, or on the blocking pool when a file must be read.

use super::{Answer, find_region};
use crate::blocking::{CallContext, NoRoom, is_large, large_on_lane, row_on_lane};
use crate::errors::exception_of;
use crate::operations::Operation;
use crate::rpc_quotas::QuotaCharge;
use crate::server::RegionServer;
use crate::traces::in_region;
use crate::users::timed;
use base::{EffortBudget, Interrupted, ReadMode};
use bytes::Bytes;
use cell::CellBuffer;
use convert::{from_proto, to_proto};
use hfile::BlockReads;
use model::Get;
use proto::pb;
use region::{Region, RegionError};
use rpc::exception::{Exception, Kind};
use rpc::{Call, CallResult, Outcome, Reply};
use scheduler::LaneName;
use std::sync::Arc;

/// Room made for a row: most fit, and what is too much is given back when the reply has been copied. Bytes, and cells.
const FORESEEN: (usize, usize) = (2048, 16);
/// The span of a get.
const GET: &str = "Region.get";

pub(super) fn get(server: &Arc<RegionServer>, call: Call) -> Answer {
    if is_large(&call) {
        return Ok(large_on_lane(server, call, LaneName::Read, get_at_once));
    }
    get_at_once(server, &mut CallContext::new(&call))
}

fn get_at_once(server: &Arc<RegionServer>, context: &mut CallContext<'_>) -> Answer {
    let call = context.call;
    let request: pb::GetRequest = call.decode()?;
    let region = find_region(server, &request.region)?;
    let charge = server.quotas.check_batch(call, &region, (0, 1, false), || server.counts.total())?;
    refuse_closest_row_before(&request.get)?;
    let get = from_proto::get(request.get)?;
    server.counts.reads.add(1);
    let has_codec = call.has_codec();
    if !is_costly(&get) {
        let (budget, before) = (EffortBudget::of_lone_get(), BlockReads::of_thread());
        match read(&region, &get, has_codec, ReadMode::FromMemory(&budget)) {
            Err(error) if error.is_would_block() => {}
            result => {
                server.operations.got(BlockReads::of_thread().since(before).scanned_bytes, 1);
                // The server's own count of such a get is made where it is timed without a look at the clock of its own.
                if let Some(load) = call.conn.load.get().filter(|load| load.user.is_some()) {
                    let took_us = server.env.clock.monotonic_us().saturating_sub(context.begun_us);
                    timed(Some(load), Operation::Get, took_us, 1);
                }
                return Ok(Outcome::Ready(charged(charge.as_ref(), answer(server, result))));
            }
        }
    }
    let (at, target, load) = (server.clone(), region.clone(), call.conn.load.get().cloned());
    Ok(row_on_lane(server, &region, context, move |pause| {
        let (begun_us, before) = (at.env.clock.monotonic_us(), BlockReads::of_thread());
        let result = match read(&target, &get, has_codec, ReadMode::MayRead(pause)) {
            Err(RegionError::Interrupted(Interrupted::NoRoom)) => return Err(NoRoom),
            result => charged(charge.as_ref(), answer(&at, result)),
        };
        at.operations.got(BlockReads::of_thread().since(before).scanned_bytes, 1);
        let took_us = at.env.clock.monotonic_us().saturating_sub(begun_us);
        at.operations.ended(Operation::Get, took_us);
        timed(load.as_ref(), Operation::Get, took_us, 1);
        Ok(result)
    }))
}

/// Tells what the call's quotas are charged with.
pub(super) fn charged(charge: Option<&QuotaCharge>, result: CallResult) -> CallResult {
    if let Some(charge) = charge {
        charge.set_result(&result);
    }
    result
}

/// Whether one look at a cell may take any time, which is not for a network thread: a match of a regular expression.
pub(super) fn is_costly(get: &Get) -> bool {
    get.filter.as_ref().is_some_and(|filter| filter.compiled_bytes() > 0)
}

/// asynchbase begins with a get of the closest row before, and learns from this class that it must scan in reverse.
pub(super) fn refuse_closest_row_before(get: &pb::Get) -> Result<(), Exception> {
    if get.closest_row_before() {
        return Err(Exception::new(
            Kind::UnknownProtocol,
            "Is this a pre-hbase-1.0.0 or asynchbase client? Client is invoking getClosestRowBefore removed in \
             hbase-2.0.0 replaced by reverse Scan.",
        ));
    }
    Ok(())
}

fn answer(server: &RegionServer, result: Result<Reply, RegionError>) -> CallResult {
    result.map_err(|error| exception_of(&server.escalate_fatal(error)))
}

fn read(region: &Region, get: &Get, has_codec: bool, mode: ReadMode<'_>) -> Result<Reply, RegionError> {
    if has_codec && !get.existence_only && !get.query_metrics && !region.info().is_replica() {
        let mut cells = CellBuffer::with_capacity(FORESEEN.0, FORESEEN.1);
        in_region(GET, region, || region.get_within(get, &mut cells, mode))?;
        let (message, may_have_tags) = (to_proto::get_response_with_count(cells.len()), cells.has_tags());
        return Ok(Reply { message, cells: Bytes::from(cells.into_bytes()), may_have_tags, ..Reply::default() });
    }
    let (result, cells) = read_result(region, get, has_codec, mode)?;
    let response = pb::GetResponse { result: Some(result) };
    Ok(cells.map_or_else(|| Reply::new(&response), |cells| Reply::with_cells(&response, cells)))
}

/// The message of a Get's result, and the cells that travel beside it (none without a codec). It says what the Get went through if the client
/// asks for that.
pub(super) fn read_result(
    region: &Region,
    get: &Get,
    has_codec: bool,
    mode: ReadMode<'_>,
) -> Result<(pb::Result, Option<CellBuffer>), RegionError> {
    let before = BlockReads::of_thread();
    let (mut result, cells) = read_unmeasured(region, get, has_codec, mode)?;
    if region.info().is_replica() {
        result.stale = Some(true);
    }
    if get.query_metrics {
        let scanned_bytes = BlockReads::of_thread().since(before).scanned_bytes;
        result.metrics = Some(pb::QueryMetrics { block_bytes_scanned: Some(scanned_bytes) });
    }
    Ok((result, cells))
}

fn read_unmeasured(
    region: &Region,
    get: &Get,
    has_codec: bool,
    mode: ReadMode<'_>,
) -> Result<(pb::Result, Option<CellBuffer>), RegionError> {
    if get.existence_only {
        let exists = in_region(GET, region, || region.exists(get, mode))?;
        let result = pb::Result { associated_cell_count: Some(0), exists: Some(exists), ..pb::Result::default() };
        return Ok((result, None));
    }
    let mut cells = CellBuffer::new();
    in_region(GET, region, || region.get_within(get, &mut cells, mode))?;
    Ok(place_result(cells, has_codec))
}

/// The message of a result: with its cells inside, or a count and the cells kept for the block.
pub(super) fn place_result(cells: CellBuffer, has_codec: bool) -> (pb::Result, Option<CellBuffer>) {
    if has_codec {
        (to_proto::result_with_count(cells.len()), Some(cells))
    } else {
        (to_proto::inline_result(cells.iter_from(0)), None)
    }
}
