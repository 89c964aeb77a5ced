//! Entries of a primary's log for a read replica that is here. Follows: `RSRpcServices#replay`.

use super::{RegionService, blocking, is_overdue};
use crate::errors::exception_of;
use crate::operations::Operation;
use crate::server::RegionServer;
use base::{SeqId, TimestampMs};
use bytes::Bytes;
use cell::CellBlock;
use convert::from_proto;
use proto::pb;
use region::Region;
use rpc::Call;
use rpc::exception::{Exception, Kind};
use rpc::service::Answer;
use std::sync::Arc;
use wal::InheritedEdit;

pub(super) fn replay(
    RegionService { server, .. }: &RegionService,
    call: &Call,
    request: pb::ReplicateWalEntryRequest,
) -> Answer<pb::ReplicateWalEntryResponse> {
    let Some(first) = request.entry.first() else { return Ok(pb::ReplicateWalEntryResponse::default().into()) };
    let region = find(server, &first.key.encoded_region_name)?;
    let name = first.key.encoded_region_name.clone();
    has_room(server, &region)?;
    let mut cells = from_proto::Cells::new(call.cells()?);
    let entries =
        request.entry.into_iter().map(|entry| entry_of(entry, &name, &mut cells)).collect::<Result<Vec<_>, _>>()?;
    let (server, deadline_us) = (server.clone(), call.deadline_us);
    // A marker has files opened.
    blocking(move || {
        let begun_us = server.env.clock.monotonic_us();
        let replayed = replay_all(&server, &region, &entries, deadline_us);
        server.operations.ended(Operation::Replay, server.env.clock.monotonic_us().saturating_sub(begun_us));
        replayed.map(|()| pb::ReplicateWalEntryResponse::default())
    })
}

fn replay_all(
    server: &Arc<RegionServer>,
    region: &Arc<Region>,
    entries: &[InheritedEdit],
    deadline_us: Option<u64>,
) -> Result<(), Exception> {
    for entry in entries {
        if is_overdue(server, deadline_us) {
            // The sender sends all of them again, and those that were taken change nothing.
            return Err(Exception::new(Kind::TimeoutIo, "the caller waits no longer: not all entries were replayed"));
        }
        region.replay(entry).map_err(|error| exception_of(&server.escalate_fatal(error)))?;
    }
    crate::idle_scanners::update_readers(&server.sessions, Some(region));
    Ok(())
}

fn find(server: &RegionServer, name: &Bytes) -> Result<Arc<Region>, Exception> {
    let found = std::str::from_utf8(name).ok().and_then(|name| server.region(name));
    found.ok_or_else(|| {
        let shown = cell::print::to_string_binary(name);
        Exception::new(Kind::NotServingRegion, format!("Region {shown} is not online on {}", server.name))
    })
}

/// Whether memory allows more. What a replica holds goes when its primary has flushed: until then the sender is to wait.
fn has_room(server: &RegionServer, region: &Region) -> Result<(), Exception> {
    let (held_bytes, limit_bytes) = (server.memstores_hold_bytes(), server.marks().limit_bytes);
    if held_bytes < limit_bytes || region.info().table.is_meta() {
        return Ok(());
    }
    Err(Exception::region_too_busy(format!(
        "Over memstore limit of the server: {held_bytes} of {limit_bytes} bytes are held. region={}, server={}",
        region.info().name_string(),
        server.name
    )))
}

/// Takes its cells out of the block, or of itself.
fn entry_of(entry: pb::WalEntry, region: &Bytes, cells: &mut from_proto::Cells) -> Result<InheritedEdit, Exception> {
    let pb::WalEntry { key, key_value_bytes, associated_cell_count } = entry;
    if key.encoded_region_name != *region {
        let shown = |name: &Bytes| cell::print::to_string_binary(name);
        return Err(Exception::new(
            Kind::NotServingRegion,
            format!(
                "Replay request contains entries from multiple regions. First region:{} , other region:{}",
                shown(region),
                shown(&key.encoded_region_name)
            ),
        ));
    }
    let count = usize::try_from(associated_cell_count.unwrap_or_default()).unwrap_or_default();
    let unreadable =
        |error: &dyn std::fmt::Display| Exception::do_not_retry(format!("cells of an entry to replay: {error}"));
    let cells = if key_value_bytes.is_empty() {
        cells.take(count)?
    } else {
        let mut all = Vec::with_capacity(key_value_bytes.iter().map(|bytes| bytes.len() + 4).sum());
        for bytes in &key_value_bytes {
            let len = u32::try_from(bytes.len()).map_err(|error| unreadable(&error))?;
            all.extend_from_slice(&len.to_be_bytes());
            all.extend_from_slice(bytes);
        }
        CellBlock::parse(all.into()).map_err(|error| unreadable(&error))?
    };
    Ok(InheritedEdit {
        seq_id: SeqId(key.orig_sequence_number.unwrap_or(key.log_sequence_number)),
        write_time: TimestampMs(i64::try_from(key.write_time).unwrap_or(i64::MAX)),
        nonce: None,
        cells,
    })
}
