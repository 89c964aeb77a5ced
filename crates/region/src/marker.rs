//! What a region puts into the log beside its writes: markers of what it does, and nonces of an earlier run.

use crate::core::RegionCore;
use crate::error::{RegionError, Result};
use crate::outbox::Outbox;
use crate::region::RecoveredNonce;
use crate::sequencer::Turn;
use crate::store::Store;
use base::{SeqId, TimestampMs};
use cell::{CellBuffer, CellSpec, CellType};
use proto::pb;
use wal::marker::{METAFAMILY, Marker, row_for_region};
use wal::{EntryKey, Ticket};

/// Puts a marker into the log; it takes a sequence id that is visible at once.
pub(crate) fn append(core: &RegionCore, marker: &Marker) -> Result<(SeqId, Ticket)> {
    let now = core.env.clock.now_ms();
    let run = cell_of(core, marker, now);
    append_cell(core, core.sequencer.turn(), &run, now)
}

/// As [`append`], of a marker that says its own sequence id.
pub(crate) fn append_numbered(core: &RegionCore, marker: impl FnOnce(SeqId) -> Marker) -> Result<(SeqId, Ticket)> {
    let now = core.env.clock.now_ms();
    let turn = core.sequencer.turn();
    let run = cell_of(core, &marker(turn.seq_id()), now);
    append_cell(core, turn, &run, now)
}

fn cell_of(core: &RegionCore, marker: &Marker, now: TimestampMs) -> CellBuffer {
    let mut run = CellBuffer::new();
    marker.write(row_for_region(&core.info.start_key), now.0, &mut run);
    run
}

fn append_cell(core: &RegionCore, turn: Turn<'_>, run: &CellBuffer, now: TimestampMs) -> Result<(SeqId, Ticket)> {
    let key = EntryKey::new(core.name(), core.info.table.as_str(), turn.seq_id(), now, &[]);
    let appended = core.env.log.append(&key, run.bytes(), run.len());
    if let (Some(outbox), Ok(ticket)) = (&core.outbox, &appended) {
        outbox.push(turn.seq_id(), now.0, (run.bytes(), run.len()), (ticket.clone(), ticket.default_level()));
    }
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

/// Tells read replicas that have missed something which files there are: all of them, when they hold everything that was written. Not in the log.
///
/// Its number is of a file, or of the opening, which the next one goes beyond: a crash forgets any other, and whoever opens the region then would be
/// taken by its replicas for an earlier primary, and not be heard.
pub(crate) fn tell_of_all_files(core: &RegionCore, outbox: &Outbox) {
    let seq_id = core.stores.iter().map(Store::max_flushed).fold(outbox.opened_at(), SeqId::max);
    let now = core.env.clock.now_ms();
    let event = region_event_at(core, pb::region_event_descriptor::EventType::RegionOpen, seq_id);
    let run = cell_of(core, &event, now);
    outbox.whole_flush_ended(seq_id, now.0, (run.bytes(), run.len()));
}

/// Says that the region opens or closes, and what files it has.
pub(crate) fn region_event(core: &RegionCore, event: pb::region_event_descriptor::EventType) -> Marker {
    region_event_at(core, event, SeqId(core.sequencer.last_seq_id().0 + 1))
}

fn region_event_at(core: &RegionCore, event: pb::region_event_descriptor::EventType, seq_id: SeqId) -> Marker {
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
        log_sequence_number: Some(seq_id.0),
        stores,
        server: Some(convert::to_proto::server_name(&core.env.server_name)),
        region_name: Some(core.info.name().clone()),
    })
}
