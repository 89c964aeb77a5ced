//! Replay: edits of a dead server's log come back when the region opens.
//!
//! Each edit goes to its store's memstore under the sequence id it had, unless the store's files say that they include
//! it, or the region was closed since: then what is in no file was of a family that is gone, be there one of its name again or not.
//! Where a family was deleted and the region perhaps not closed since, the master left a note: what the logs have for it is passed over, and
//! before anything is written to another of its name, all the rest is in files and an id of the region says so.
//! Edits that were split into files of recovered edits are then flushed, and only then are these files removed. Edits that this server's
//! log took over with the dead one's files stay in memory as if they had been written here: the log keeps the files until they are
//! flushed. A crash at any point repeats the replay and changes nothing. Follows: `HRegion#replayRecoveredEditsIfAny`.

use crate::RegionDirectories;
use crate::RegionEnv;
use crate::close::write_seq_id_file;
use crate::core::RegionCore;
use crate::deleted_families;
use crate::error::{RegionError, Result};
use crate::flush::Flusher;
use crate::marker;
use crate::region::RecoveredNonce;
use crate::ticks::MOST_AHEAD_MS;
use base::SeqId;
use fs::FilePath;
use model::{Nonce, RegionInfo};
use rootdir::recovered_edits::{self, DeletedFamily, max_seq_id_file};
use rootdir::region_dir;
use wal::marker::METAFAMILY;
use wal::{Inherited, InheritedEdit, Key};

/// Files of recovered edits, oldest first, or what the log took over; and how far ids are used.
#[derive(Debug, Default)]
pub(crate) struct RecoveredEdits {
    files: Vec<(SeqId, FilePath)>,
    inherited: Vec<InheritedEdit>,
    skip: ReplayFilter,
    pub max_seq_id: SeqId,
}

/// What of the edits is of no use, whatever the store files say.
#[derive(Debug, Default)]
struct ReplayFilter {
    /// Up to here everything was in store files when the region closed last.
    closed_seq_id: SeqId,
    /// Families that were deleted since the region was opened or closed last; there may be others of their names again.
    deleted: Vec<DeletedFamily>,
}

impl ReplayFilter {
    fn has_deleted(&self, family: &[u8]) -> bool {
        !self.deleted.is_empty() && self.deleted.iter().any(|note| note.dir == rootdir::family_name(family))
    }
}

/// What a replay brought.
pub(crate) struct Replayed {
    pub nonces: Vec<RecoveredNonce>,
    /// When the log gave edits, the lowest id of each store that is in memory now.
    pub kept: Option<Vec<Option<SeqId>>>,
}

impl RecoveredEdits {
    /// What there is for a region, once: `has_dir` tells whether its directory has one of recovered edits.
    pub(crate) fn find(env: &RegionEnv, info: &RegionInfo, has_dir: bool) -> Result<RecoveredEdits> {
        let mut edits = if has_dir { RecoveredEdits::list(env, info)? } else { RecoveredEdits::default() };
        let region = info.encoded_name();
        // Where there are files they are flushed at the end under the highest id: the rest must come with them.
        let to_files = !edits.files.is_empty();
        let mut directories = RegionDirectories { volume: &*env.volume };
        match env.log.take_inherited(region, to_files, &mut directories).map_err(|e| RegionError::log(region, e))? {
            Inherited::Nothing => {}
            Inherited::Written => edits = RecoveredEdits::list(env, info)?,
            Inherited::Edits(inherited) => {
                let last = inherited.iter().map(|edit| edit.seq_id).max();
                edits.max_seq_id = edits.max_seq_id.max(last.unwrap_or(SeqId(0)));
                edits.inherited = inherited;
            }
        }
        edits.max_seq_id = edits.max_seq_id.max(env.log.used_seq_id(region));
        Ok(edits)
    }

    fn list(env: &RegionEnv, info: &RegionInfo) -> Result<RecoveredEdits> {
        let region = info.encoded_name();
        let dir = region_dir(info).join(recovered_edits::DIR);
        let entries = env.volume.list(&dir).map_err(|e| RegionError::volume(region, e))?;
        let from_names = max_seq_id_file(entries.iter().map(|entry| entry.name.as_str()));
        let files = wal::recovered_edits(&*env.volume, &dir).map_err(|e| RegionError::log(region, e))?;
        let from_files = files.iter().map(|(seq_id, _)| *seq_id).max();
        let closed_seq_id = from_names.unwrap_or(SeqId(0));
        let max_seq_id = closed_seq_id.max(from_files.unwrap_or(SeqId(0)));
        let deleted =
            deleted_families::live_among(&*env.volume, &dir, &entries).map_err(|e| RegionError::volume(region, e))?;
        Ok(RecoveredEdits { files, inherited: Vec::new(), skip: ReplayFilter { closed_seq_id, deleted }, max_seq_id })
    }
}

/// Brings back what a log has of a region beyond its files.
#[derive(Clone, Copy)]
pub(crate) struct Replayer<'r> {
    core: &'r RegionCore,
}

impl<'r> Replayer<'r> {
    pub(crate) fn new(core: &'r RegionCore) -> Self {
        Replayer { core }
    }

    /// Brings the edits in. Those of files are flushed, and the files removed.
    pub(crate) fn replay(&self, edits: RecoveredEdits) -> Result<Replayed> {
        let RecoveredEdits { files, inherited, skip, .. } = edits;
        let mut replayed = if !inherited.is_empty() {
            self.replay_inherited(&inherited, &skip)?
        } else {
            let nonces = if files.is_empty() { Vec::new() } else { self.replay_files(&files, &skip)? };
            Replayed { nonces, kept: None }
        };
        if !skip.deleted.is_empty() {
            self.forget_deleted_families(&skip.deleted)?;
            replayed.kept = replayed.kept.map(|_| vec![None; self.core.stores.len()]);
        }
        Ok(replayed)
    }

    fn replay_inherited(&self, edits: &[InheritedEdit], skip: &ReplayFilter) -> Result<Replayed> {
        let mut nonces = Vec::new();
        let mut lowest = vec![None; self.core.stores.len()];
        for edit in edits {
            // Servers whose clocks went back left their logs in another order than their ids.
            self.replay_edit(edit, skip, &mut nonces, |store| {
                lowest[store] = Some(lowest[store].map_or(edit.seq_id, |lowest: SeqId| lowest.min(edit.seq_id)));
            });
        }
        // The files with the nonces go when the edits are flushed.
        self.save_nonces(&nonces)?;
        Ok(Replayed { nonces, kept: Some(lowest) })
    }

    /// Puts an id in the place of the notes: every edit that a log has by now is in files or of no use. A crash in between finds the
    /// notes and begins anew. The id is a new one: a note that is there again after a power failure is older, and counts no more.
    fn forget_deleted_families(&self, notes: &[DeletedFamily]) -> Result<()> {
        Flusher::new(self.core).flush_all("families were deleted")?;
        write_seq_id_file(self.core, self.core.sequencer.skip())?;
        let wrap = |e| RegionError::volume(self.core.name(), e);
        let volume = &*self.core.env.volume;
        let dir = region_dir(&self.core.info).join(recovered_edits::DIR);
        for note in notes {
            volume.remove_file(&dir.join(note.file_name())).map_err(wrap)?;
        }
        Ok(())
    }

    /// The region is open: from here on it answers for the edits that it has in memory. Not earlier, for what fails in between is begun
    /// anew with the log's copy.
    pub(crate) fn keep_inherited(&self, lowest: Vec<Option<SeqId>>) {
        let lowest = self.core.stores.iter().zip(lowest);
        let lowest: Vec<_> = lowest.filter_map(|(store, lowest)| Some((&*store.name, lowest?))).collect();
        self.core.env.log.keep_inherited(self.core.name(), &lowest);
    }

    fn replay_files(&self, files: &[(SeqId, FilePath)], skip: &ReplayFilter) -> Result<Vec<RecoveredNonce>> {
        let mut nonces = Vec::new();
        let volume = &*self.core.env.volume;
        let mut aside = Vec::new();
        // Files whose edits are all in store files are read too: their nonces are nowhere else.
        for (_, path) in files {
            match self.replay_file(path, skip, &mut nonces) {
                Err(RegionError::Log { source, .. })
                    if self.core.settings.skip_errors && matches!(&*source, wal::Error::Corrupt { .. }) =>
                {
                    tracing::error!(region = %self.core.name(), %source, "recovered edits are quarantined unread; writes are lost");
                    aside.push(path.clone());
                }
                other => other?,
            }
        }
        // What was replayed is in no log of this server: it must be in files, and its nonces in the log, before its
        // edits may go.
        Flusher::new(self.core).flush_all("replayed edits")?;
        self.save_nonces(&nonces)?;
        let wrap = |e| RegionError::volume(self.core.name(), e);
        let dir = region_dir(&self.core.info).join(recovered_edits::DIR);
        let used = files.iter().map(|(seq_id, _)| *seq_id).max().unwrap_or(SeqId(0));
        if skip.closed_seq_id < used && self.core.stores.iter().all(|store| store.max_flushed() < used) {
            // They held markers at their end, or nothing else: no store file says that these ids are used.
            write_seq_id_file(self.core, used)?;
        }
        for (_, path) in files {
            if aside.contains(path) {
                let now = self.core.env.clock.now_ms();
                volume.rename(path, &path.parent().join(format!("{}.{now}", path.name()))).map_err(wrap)?;
            } else {
                volume.remove_file(path).map_err(wrap)?;
            }
        }
        // Should they come back after a power failure, a later split could take them for its own.
        volume.sync_dir(&dir).map_err(wrap)?;
        Ok(nonces)
    }

    /// Writes the nonces, with which clients may still come back, to this server's log.
    fn save_nonces(&self, nonces: &[RecoveredNonce]) -> Result<()> {
        let mut last = None;
        for nonce in nonces {
            last = Some(marker::append_nonce(self.core, nonce)?);
        }
        match last {
            // The edits that have them now go away for good.
            Some(ticket) => {
                ticket.wait_for(wal::Level::Synced).map_err(|failed| RegionError::log(self.core.name(), failed.into()))
            }
            None => Ok(()),
        }
    }

    fn replay_file(&self, path: &FilePath, skip: &ReplayFilter, nonces: &mut Vec<RecoveredNonce>) -> Result<()> {
        let log_error = |e| RegionError::log(self.core.name(), e);
        let mut reader = wal::Reader::open(&*self.core.env.volume, path).map_err(log_error)?;
        while let Some(entry) = reader.next().map_err(log_error)? {
            if entry.key.region != *self.core.name() {
                // HBase writes such files in one case only (a split parent's), and passes them over as well.
                continue;
            }
            let seq_id = entry.key.seq_id;
            let Key { write_time, nonce, .. } = entry.key;
            let edit = InheritedEdit { seq_id, write_time, nonce, cells: entry.cells };
            if self.replay_edit(&edit, skip, nonces, |_| ())
                && self.core.accounting.heap_bytes() > self.core.flush_size_bytes()
            {
                Flusher::new(self.core).flush_replayed(seq_id)?;
            }
        }
        Ok(())
    }

    /// Brings an edit in as it came, for a read replica: no nonce is remembered, for nobody writes there.
    pub(crate) fn apply(&self, edit: &InheritedEdit) -> bool {
        self.replay_edit(edit, &ReplayFilter::default(), &mut Vec::new(), |_| ())
    }

    /// Brings an edit in; tells which stores got cells, and whether one did.
    fn replay_edit(
        &self,
        edit: &InheritedEdit,
        skip: &ReplayFilter,
        nonces: &mut Vec<RecoveredNonce>,
        mut got: impl FnMut(usize),
    ) -> bool {
        let (seq_id, now) = (edit.seq_id, self.core.env.clock.now_ms().0);
        if let Some((group, number)) = edit.nonce
            && edit.write_time.0 >= now.saturating_sub(self.core.settings.nonce_timeout_ms)
        {
            let nonce = Nonce { group, number };
            nonces.push(RecoveredNonce { nonce, write_time_ms: edit.write_time.0 });
        }
        if seq_id <= skip.closed_seq_id && !base::inject!("region.replay.deleted-family-returns") {
            return false;
        }
        let mut inserted = 0;
        let mut cells = edit.cells.iter().map(|cell| cell.with_seq_id(seq_id)).peekable();
        while let Some(first) = cells.next() {
            // Together, for places that are looked for side by side cost less.
            let family = first.family();
            let mut run = vec![first];
            run.extend(std::iter::from_fn(|| cells.next_if(|cell| cell.family() == family)));
            if family == METAFAMILY || skip.has_deleted(family) {
                continue;
            }
            // A family that was deleted since has no use for its edits.
            let Some(index) = self.core.stores.iter().position(|store| store.name == family) else { continue };
            let store = &self.core.stores[index];
            if seq_id <= store.max_flushed() {
                continue;
            }
            let segment = store.peek().memory.active().clone();
            let mut inserter = segment.inserter();
            inserter.insert_all(&run);
            let growth = inserter.finish();
            self.core.accounting.grew(growth.heap_bytes as i64, growth.data_bytes as i64);
            if edit.write_time.0 >= now - MOST_AHEAD_MS {
                run.iter().for_each(|cell| self.core.ticks.enter_replayed(*cell, now));
            }
            inserted += run.len() as u64;
            got(index);
        }
        if inserted > 0 {
            self.core.accounting.note_edits(inserted, edit.write_time.0);
        }
        inserted > 0
    }
}
