//! How a region's rows are spread over its keys: Basalt's own endpoint, for SQL's planner. No file is read for it.

use crate::blocking::{Caller, on_lane};
use crate::server::RegionServer;
use bytes::Bytes;
use proto::histogram::{KeyPart, METHOD, Request, Response, SERVICE};
use proto::{Message, pb};
use region::Region;
use rpc::exception::Exception;
use scheduler::LaneName;
use std::sync::Arc;

/// Parts of an answer at most.
const MAX_PARTS: usize = 256;

/// Whether a call is for this endpoint.
pub(super) fn is_meant(call: &pb::CoprocessorServiceCall) -> bool {
    call.service_name == SERVICE && call.method_name == METHOD
}

/// The region's histogram.
///
/// # Errors
/// The request cannot be read; the call was not begun in time.
pub(super) async fn answer(
    server: &Arc<RegionServer>,
    region: &Arc<Region>,
    request: Bytes,
    caller: &Caller,
) -> Result<pb::NameBytesPair, Exception> {
    let unreadable = |error| Exception::do_not_retry(format!("cannot read the request of {SERVICE}: {error}"));
    let most = Request::decode(request).map_err(unreadable)?.most_parts as usize;
    let of_region = Arc::clone(region);
    let look = move |_: &dyn base::PausePoint| of_region.key_histogram(most.clamp(1, MAX_PARTS));
    let histogram = on_lane(server, region, LaneName::Read, caller, look).await?;
    let part = |part: region::KeyPart| KeyPart { start_row: part.start_row, bytes: part.bytes, rows: part.rows };
    let response = Response {
        region_end_key: region.info().end_key.clone(),
        parts: histogram.parts.into_iter().map(part).collect(),
        last_row: histogram.last_row,
    };
    Ok(pb::NameBytesPair { name: SERVICE.to_owned(), value: Some(response.encode_to_vec().into()) })
}
