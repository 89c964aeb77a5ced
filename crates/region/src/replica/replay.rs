//! Entries of the primary's log, as they are sent to its read replicas. They may come late, twice, or not at all: sequence ids tell what they are
//! worth. Follows: `RSRpcServices#replay`, `HRegion#batchReplay`, `HRegion#replayWALFlushMarker`, `#replayWALRegionEventMarker`,
//! `#replayWALBulkLoadEventMarker`, `#replayWALCompactionMarker`.
//!
//! Other than in HBase memory is dropped by its own ids, segment by segment, not by how far the region is visible: a flush of one family never
//! takes the edits of another, and one whose start was not heard of takes what it can.

use super::{Replica, ReplicaState, is_not_found};
use crate::error::{RegionError, Result};
use crate::replay::Replayer;
use crate::store::{Store, sort_files};
use crate::store_file::dead_names;
use base::{ReadPoint, SeqId};
use cell::CellType;
use proto::pb;
use proto::pb::flush_descriptor::FlushAction;
use proto::pb::region_event_descriptor::EventType;
use wal::InheritedEdit;
use wal::marker::{METAFAMILY, Marker};

impl Replica<'_> {
    /// Takes an entry of the primary's log. One of a row is visible as a whole when it returns.
    ///
    /// # Errors
    /// The region closes; the entry is of another region, or cannot be read: nothing of it was taken. A file that it tells of cannot be read.
    pub(crate) fn replay(&self, entry: &InheritedEdit) -> Result<()> {
        let core = self.core;
        core.check_not_closing()?;
        let markers = self.check(entry)?;
        let _one_at_a_time = core.flushing.lock();
        core.check_not_closing()?;
        let mut state = core.replica.lock();
        for marker in &markers {
            match marker {
                Marker::Flush(flush) => self.flush(flush, entry.seq_id, &mut state)?,
                Marker::RegionEvent(event) => self.region_event(event, &mut state)?,
                Marker::BulkLoad(load) => self.bulk_load(load, &mut state)?,
                Marker::Compaction(compaction) => self.compaction(compaction, entry.seq_id, &mut state)?,
                Marker::Replication(_) => {}
            }
        }
        if entry.seq_id < state.skipped_below {
            return Ok(());
        }
        {
            let _updating = core.updates.read();
            Replayer::new(core).apply(entry);
        }
        core.sequencer.follow(ReadPoint(entry.seq_id.0));
        Ok(())
    }

    /// Before anything is done: what came from outside is of this region, and can be read.
    fn check(&self, entry: &InheritedEdit) -> Result<Vec<Marker>> {
        let mut markers = Vec::new();
        for cell in entry.cells.iter() {
            if CellType::from_code(cell.type_code()).is_none() {
                let what = format!("an entry to replay has a cell of type {}, which there is not", cell.type_code());
                return Err(RegionError::DoNotRetry(what));
            }
            if cell.family() != METAFAMILY {
                self.core.check_row(cell.row(), "replay")?;
                continue;
            }
            let marker = Marker::decode(cell).map_err(|error| RegionError::DoNotRetry(error.to_string()))?;
            if let Some(name) = marker.as_ref().and_then(region_of) {
                self.check_target(name)?;
            }
            markers.extend(marker);
        }
        Ok(markers)
    }

    /// Follows: `HRegion#checkTargetRegion`.
    fn check_target(&self, name: &[u8]) -> Result<()> {
        let info = &self.core.info;
        if name == info.encoded_name().as_bytes() || name == info.replica(0).encoded_name().as_bytes() {
            return Ok(());
        }
        let name = cell::print::to_string_binary(name);
        let what = format!("a marker to replay is of region {name} and came to {}", info.name_string());
        Err(RegionError::DoNotRetry(what))
    }

    fn flush(&self, flush: &pb::FlushDescriptor, entry: SeqId, state: &mut ReplicaState) -> Result<()> {
        let seq_id = SeqId(flush.flush_sequence_number());
        match flush.action() {
            FlushAction::StartFlush if seq_id >= state.skipped_below => self.start_flush(flush, seq_id, state),
            FlushAction::CommitFlush if seq_id >= state.skipped_below => {
                return self.commit_flush(flush, seq_id, state);
            }
            // It had nothing to flush: all before it is here, or in files.
            FlushAction::CannotFlush if entry >= state.skipped_below => _ = self.core.serving.set_readable(true),
            // One that failed is begun anew, or the region is opened elsewhere: its opening tells which files there are.
            _ => {}
        }
        Ok(())
    }

    /// What came so far is what the primary's flush takes.
    fn start_flush(&self, flush: &pb::FlushDescriptor, seq_id: SeqId, state: &mut ReplicaState) {
        // Where an earlier one has not ended, its end or that of this one drops what it can.
        if state.prepared.is_some() {
            return;
        }
        let _no_updates = self.core.updates.write();
        for store in self.stores(flush.store_flushes.iter().map(|flushed| &flushed.family_name[..])) {
            if !store.peek().memory.active().is_empty() {
                store.change(|view| view.memory.snapshot());
            }
        }
        state.prepared = Some(seq_id);
    }

    fn commit_flush(&self, flush: &pb::FlushDescriptor, seq_id: SeqId, state: &mut ReplicaState) -> Result<()> {
        let mut is_whole = true;
        self.core.sequencer.follow(ReadPoint(seq_id.0));
        for flushed in &flush.store_flushes {
            let Some(store) = self.core.store(&flushed.family_name) else { continue };
            // Its files are here, or were compacted since: one that is told of twice does not come back.
            let files: &[String] = if seq_id > store.max_flushed() { &flushed.flush_output } else { &[] };
            is_whole &= self.take_files(store, &[], files, seq_id)?;
        }
        // Without its start, what came before this replica was opened may be missing.
        let was_prepared = state.prepared.is_some_and(|prepared| prepared <= seq_id);
        if was_prepared && is_whole {
            state.prepared = None;
            self.core.serving.set_readable(true);
        }
        self.core.count_files();
        Ok(())
    }

    /// The region was opened: these are its files, and what has come with lower ids and is not in them is nowhere.
    fn region_event(&self, event: &pb::RegionEventDescriptor, state: &mut ReplicaState) -> Result<()> {
        let seq_id = SeqId(event.log_sequence_number());
        if event.event_type() != EventType::RegionOpen || seq_id < state.skipped_below {
            return Ok(());
        }
        // Markers have numbers that no file knows: what opens after a crash may count from a lower one than its last compaction had.
        state.last_compaction = SeqId(0);
        if seq_id == state.skipped_below {
            // It came before, or its files were found, or files are named once more. Or a primary of HBase's has crashed and opened again where nothing
            // was written since: with the same number, and perhaps with the files of a compaction that nobody was told of. What there is tells all of
            // them apart.
            self.show_files_of(self.core.stores.iter(), state)?;
            self.core.serving.set_readable(true);
            return Ok(());
        }
        state.skipped_below = seq_id;
        self.core.sequencer.follow(ReadPoint(seq_id.0));
        for descriptor in &event.stores {
            let Some(store) = self.core.store(&descriptor.family_name) else { continue };
            match self.open_all(store, &descriptor.store_file) {
                Ok(mut files) => {
                    sort_files(&mut files);
                    self.publish(store, files.into(), seq_id);
                }
                // They were compacted since: there are others.
                Err(error) if is_not_found(&error) => {
                    let files = self.look(store)?;
                    self.publish(store, files.into(), seq_id);
                }
                Err(error) => return Err(error),
            }
        }
        self.forget_prepared(state);
        self.core.count_files();
        self.core.serving.set_readable(true);
        Ok(())
    }

    /// As in HBase the directory tells which files there are: their names were given when they were loaded.
    fn bulk_load(&self, load: &pb::BulkLoadDescriptor, state: &mut ReplicaState) -> Result<()> {
        let seq_id = u64::try_from(load.bulkload_seq_num).ok().map(SeqId);
        if seq_id.is_some_and(|seq_id| seq_id <= state.skipped_below) {
            return Ok(());
        }
        self.show_files_of(self.stores(load.stores.iter().map(|loaded| &loaded.family_name[..])), state)?;
        self.core.sequencer.follow(ReadPoint(seq_id.unwrap_or_default().0));
        Ok(())
    }

    fn compaction(&self, compaction: &pb::CompactionDescriptor, entry: SeqId, state: &mut ReplicaState) -> Result<()> {
        if entry < state.skipped_below || entry < state.last_compaction {
            return Ok(());
        }
        state.last_compaction = entry;
        if let Some(store) = self.core.store(&compaction.family_name)
            && !self.take_files(store, &compaction.compaction_input, &compaction.compaction_output, SeqId(0))?
        {
            // What takes the place of its output names that, and not what went into it: that would be shown until it is deleted, and after.
            let files = self.look(store)?;
            self.publish(store, files.into(), SeqId(0));
        }
        self.core.count_files();
        Ok(())
    }

    fn stores<'s, 'n>(&'s self, names: impl Iterator<Item = &'n [u8]>) -> impl Iterator<Item = &'s Store> {
        let names: Vec<&[u8]> = names.collect();
        self.core.stores.iter().filter(move |store| names.contains(&&store.name[..]))
    }

    /// Shows these files in place of those; false, and nothing has changed, where one is not there any more: others have taken its place, of which
    /// it will be told.
    fn take_files(&self, store: &Store, removed: &[String], added: &[String], flushed: SeqId) -> Result<bool> {
        let added = match self.open_all(store, added) {
            Err(error) if is_not_found(&error) => {
                tracing::warn!(region = %self.core.name(), %error, "a store file of the primary was compacted away before this read replica could open it");
                return Ok(false);
            }
            added => added?,
        };
        let mut files = store.view().files.to_vec();
        files.retain(|file| !removed.contains(&file.name) && !added.iter().any(|other| other.name == file.name));
        files.extend(added);
        // One that came late was compacted since.
        let dead = dead_names(files.iter().map(|file| &**file));
        files.retain(|file| !dead.contains(&file.name));
        sort_files(&mut files);
        self.publish(store, files.into(), flushed);
        Ok(true)
    }
}

/// The encoded name of the region that a marker is of.
fn region_of(marker: &Marker) -> Option<&[u8]> {
    match marker {
        Marker::Flush(flush) => Some(&flush.encoded_region_name),
        Marker::Compaction(compaction) => Some(&compaction.encoded_region_name),
        Marker::RegionEvent(event) => Some(&event.encoded_region_name),
        Marker::BulkLoad(load) => Some(&load.encoded_region_name),
        Marker::Replication(_) => None,
    }
}
