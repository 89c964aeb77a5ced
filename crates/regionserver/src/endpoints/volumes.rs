//! The volumes of a server's root directory, for administrators: Basalt's own endpoint.

use crate::server::RegionServer;
use bytes::Bytes;
use proto::Message;
use proto::volumes::{DRAIN, DrainRequest, DrainResponse, SERVICE, STATUS, StatusRequest, StatusResponse, Volume};
use rpc::exception::{Exception, Kind};
use std::sync::Arc;

/// Answers a call. Waits for file systems, and looks through the root directory's records.
///
/// # Errors
/// There is no such method, the request cannot be read, or is refused.
pub(super) fn answer(server: &Arc<RegionServer>, method: &str, request: Bytes) -> Result<Bytes, Exception> {
    let unreadable = |error| Exception::do_not_retry(format!("cannot read the request of {SERVICE}.{method}: {error}"));
    match method {
        STATUS => {
            StatusRequest::decode(request).map_err(unreadable)?;
            Ok(status(server).encode_to_vec().into())
        }
        DRAIN => {
            let DrainRequest { directory } = DrainRequest::decode(request).map_err(unreadable)?;
            server.drain_volume(&directory).map_err(Exception::do_not_retry)?;
            Ok(DrainResponse {}.encode_to_vec().into())
        }
        _ => {
            let what = format!("Unknown method {method} called on service {SERVICE}");
            Err(Exception::new(Kind::UnknownProtocol, what))
        }
    }
}

fn status(server: &RegionServer) -> StatusResponse {
    let volume = |now: fs::tiered::VolumeStatus| {
        let (moving, waiting_regions) = (server.waiting.moving(&now.spec.place), server.waiting_on(&now));
        Volume {
            directory: now.spec.place,
            tier: now.spec.tier.name,
            class: now.spec.tier.class.name().to_owned(),
            is_there: now.is_there,
            trouble: now.trouble,
            is_slow: now.speed.is_slow,
            waits_us: now.speed.waits_us,
            sync_p99_us: now.speed.sync_p99_us,
            files: now.files,
            used_bytes: now.used_bytes,
            free_bytes: now.free_bytes,
            drains: now.spec.drains,
            moved_files: now.moved.0,
            moved_bytes: now.moved.1,
            is_moving: moving == Some(None),
            moving_ended: moving.flatten(),
            waiting_regions,
        }
    };
    StatusResponse {
        pid: std::process::id(),
        volumes: server.volumes().into_iter().map(volume).collect(),
        waiting_regions: server.waiting.len() as u64,
    }
}
