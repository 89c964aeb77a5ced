//! What a region puts into the log beside its writes: markers of what it does, and nonces of an earlier run.

use crate::core::RegionCore;
use crate::error::{RegionError, Result};
use crate::region::RecoveredNonce;
use base::{SeqId, TimestampMs};
use cell::{CellBuffer, CellSpec, CellType};
use proto::pb;
use wal::marker::{METAFAMILY, Marker, row_for_region};
use wal::{EntryKey, Ticket};

/// Puts a marker into the log; it takes a sequence id that is visible at once.
pub(crate) fn append(core: &RegionCore, marker: &Marker) -> Result<(SeqId, Ticket)> {
    let now = core.env.clock.now_ms();
    let mut run = CellBuffer::new();
    marker.write(row_for_region(&core.info.start_key), now.0, &mut run);
    let turn = core.sequencer.turn();
    let key = EntryKey::new(core.name(), core.info.table.as_str(), turn.seq_id(), now, &[]);
    let appended = core.env.log.append(&key, run.bytes(), run.len());
    turn.marked(appended).map_err(|e| RegionError::log(core.name(), e))
}

/// Puts an entry into the log that only carries a nonce of an earlier run, so that another crash does not forget it.
pub(crate) fn append_nonce(core: &RegionCore, recovered: &RecoveredNonce) -> Result<Ticket> {
    let row = row_for_region(&core.info.start_key);
    let mut run = CellBuffer::new();
    let spec = CellSpec {
        row,
        family: METAFAMILY,
        qualifier: wal::marker::NONCE,
        timestamp: recovered.write_time_ms,
        type_code: CellType::Put.code(),
        value: b"",
        tags: b"",
    };
    run.push_spec(&spec, SeqId(0));
    let turn = core.sequencer.turn();
    let write_time = TimestampMs(recovered.write_time_ms);
    let mut key = EntryKey::new(core.name(), core.info.table.as_str(), turn.seq_id(), write_time, &[]);
    key.nonce = Some((recovered.nonce.group, recovered.nonce.number));
    let appended = core.env.log.append(&key, run.bytes(), run.len());
    turn.marked(appended).map(|(_, ticket)| ticket).map_err(|e| RegionError::log(core.name(), e))
}

/// Says that the region opens or closes, and what files it has.
pub(crate) fn region_event(core: &RegionCore, event: pb::region_event_descriptor::EventType) -> Marker {
    let stores = core
        .stores
        .iter()
        .map(|store| pb::StoreDescriptor {
            family_name: store.name.clone(),
            store_home_dir: rootdir::family_name(&store.name),
            store_file: store.peek().files.iter().map(|file| file.name.clone()).collect(),
            store_file_size_bytes: Some(store.files_len_bytes()),
        })
        .collect();
    Marker::RegionEvent(pb::RegionEventDescriptor {
        event_type: event as i32,
        table_name: core.info.table.as_str().as_bytes().to_vec().into(),
        encoded_region_name: core.name().as_bytes().to_vec().into(),
        log_sequence_number: Some(core.sequencer.last_seq_id().0 + 1),
        stores,
        server: Some(convert::to_proto::server_name(&core.env.server_name)),
        region_name: Some(core.info.name().clone()),
    })
}
