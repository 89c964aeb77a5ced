//! Replay: edits that were split from a dead server's log come back when the region opens.
//!
//! Each edit goes to its store's memstore under the sequence id it had, unless the store's files say that they include
//! it. Then everything is flushed, and only then are the edits removed: a crash at any point repeats the replay and
//! changes nothing. Follows: `HRegion#replayRecoveredEditsIfAny`.

use crate::RegionEnv;
use crate::error::{RegionError, Result};
use crate::layout::{self, RECOVERED_EDITS_DIR, region_dir};
use crate::region::{RecoveredNonce, Region};
use base::SeqId;
use fs::FilePath;
use model::{Nonce, RegionInfo};
use wal::marker::METAFAMILY;

/// How long after its operation a nonce may still be asked for (`hbase.server.hashNonce.evictTimeout`'s default).
const NONCE_LIFE_MS: i64 = 30 * 60 * 1000;

/// Files of recovered edits, oldest first, and how far ids are used.
#[derive(Debug, Default)]
pub(crate) struct RecoveredEdits {
    files: Vec<(SeqId, FilePath)>,
    pub max_seq_id: SeqId,
}

impl RecoveredEdits {
    pub(crate) fn list(env: &RegionEnv, info: &RegionInfo) -> Result<RecoveredEdits> {
        let region = info.encoded_name();
        let dir = region_dir(info).join(RECOVERED_EDITS_DIR);
        let entries = env.volume.list(&dir).map_err(|e| RegionError::volume(region, e))?;
        let from_names = layout::max_seq_id_file(entries.iter().map(|entry| entry.name.as_str()));
        let files = wal::recovered_edits(&*env.volume, &region_dir(info)).map_err(|e| RegionError::log(region, e))?;
        let from_files = files.iter().map(|(seq_id, _)| *seq_id).max();
        Ok(RecoveredEdits { files, max_seq_id: from_names.max(from_files).unwrap_or(SeqId(0)) })
    }
}

impl Region {
    /// Brings the edits in, flushes and removes them; returns the nonces they carried.
    pub(crate) fn replay(&self, edits: &RecoveredEdits) -> Result<Vec<RecoveredNonce>> {
        let mut nonces = Vec::new();
        if edits.files.is_empty() {
            return Ok(nonces);
        }
        let volume = &*self.env().volume;
        let mut aside = Vec::new();
        // Files whose edits are all in store files are read too: their nonces are nowhere else.
        for (_, path) in &edits.files {
            match self.replay_file(path, &mut nonces) {
                Err(RegionError::Log { source, .. })
                    if self.settings.skip_errors && matches!(&*source, wal::Error::Corrupt { .. }) =>
                {
                    tracing::error!(region = %self.name(), %source, "recovered edits are put aside unread; writes are lost");
                    aside.push(path.clone());
                }
                other => other?,
            }
        }
        // What was replayed is in no log of this server: it must be in files, and its nonces in the log, before its
        // edits may go.
        self.flush_all("replayed edits")?;
        self.save_nonces(&nonces)?;
        let wrap = |e| RegionError::volume(self.name(), e);
        for (_, path) in &edits.files {
            if aside.contains(path) {
                let now = self.env().clock.now_ms();
                volume.rename(path, &path.parent().join(format!("{}.{now}", path.name()))).map_err(wrap)?;
            } else {
                volume.remove_file(path).map_err(wrap)?;
            }
        }
        Ok(nonces)
    }

    /// Writes the nonces that a client may still come back with to this server's log.
    fn save_nonces(&self, nonces: &[RecoveredNonce]) -> Result<()> {
        let oldest = self.env().clock.now_ms().0.saturating_sub(NONCE_LIFE_MS);
        let mut last = None;
        for nonce in nonces.iter().filter(|nonce| nonce.write_time_ms >= oldest) {
            last = Some(self.append_nonce(nonce)?);
        }
        match last {
            // The edits that have them now go away for good.
            Some(ticket) => {
                ticket.wait_for(wal::Level::Synced).map_err(|failed| RegionError::log(self.name(), failed.into()))
            }
            None => Ok(()),
        }
    }

    fn replay_file(&self, path: &FilePath, nonces: &mut Vec<RecoveredNonce>) -> Result<()> {
        let log_error = |e| RegionError::log(self.name(), e);
        let mut reader = wal::Reader::open(&*self.env().volume, path).map_err(log_error)?;
        while let Some(entry) = reader.next().map_err(log_error)? {
            if entry.key.region != *self.name() {
                // HBase writes such files in one case only (a split parent's), and passes them over as well.
                continue;
            }
            let seq_id = entry.key.seq_id;
            if let Some((group, number)) = entry.key.nonce {
                let nonce = Nonce { group, number };
                nonces.push(RecoveredNonce { nonce, write_time_ms: entry.key.write_time.0 });
            }
            let mut inserted = 0;
            let mut cells = entry.cells.iter().map(|cell| cell.with_seq_id(seq_id)).peekable();
            while let Some(first) = cells.next() {
                // Together, for places that are looked for side by side cost less.
                let family = first.family();
                let mut run = vec![first];
                run.extend(std::iter::from_fn(|| cells.next_if(|cell| cell.family() == family)));
                if family == METAFAMILY {
                    continue;
                }
                // A family that was deleted since has no use for its edits.
                let Some(store) = self.store(family) else { continue };
                if seq_id <= store.max_flushed() {
                    continue;
                }
                let segment = store.peek().memory.active().clone();
                let mut inserter = segment.inserter();
                inserter.insert_all(&run);
                let growth = inserter.finish();
                self.grew(growth.heap_bytes as i64, growth.data_bytes as i64);
                inserted += run.len() as u64;
            }
            if inserted > 0 {
                self.note_edits(inserted, entry.key.write_time.0);
                if self.memstore_bytes() > self.flush_size_bytes() {
                    self.flush_replayed(seq_id)?;
                }
            }
        }
        Ok(())
    }
}
