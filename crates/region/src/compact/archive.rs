//! What becomes of the files that a compaction replaced: they go to the archive, when it is time.
//!
//! Always true: no file is moved or removed before the log's marker of its compaction is on the disk. That sync is the fence: the log of a
//! server whose regions were given to another refuses it, so such a server cannot take files away from the new owner. Follows:
//! `WALUtil#writeCompactionMarker`, `CompactedHFilesDischarger`.

use crate::core::RegionCore;
use crate::error::{RegionError, Remedy, Result};
use crate::marker;
use crate::store::Store;
use crate::store_file::StoreFile;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use wal::marker::Marker;
use wal::{Level, Ticket};

/// A file that was replaced and is not archived yet.
pub(crate) struct Retired {
    pub file: Arc<StoreFile>,
    fence: Arc<Fence>,
}

/// The log's marker of one compaction.
struct Fence {
    marker: Marker,
    /// Its entry; none while the log could not take it.
    ticket: OnceLock<Ticket>,
}

impl Fence {
    fn is_synced(&self) -> bool {
        self.ticket.get().is_some_and(|ticket| ticket.is_done_at(Level::Synced))
    }
}

/// The files of a region that compactions have replaced and that are not archived yet.
#[derive(Clone, Copy)]
pub(crate) struct RetiredFiles<'r> {
    core: &'r RegionCore,
}

impl<'r> RetiredFiles<'r> {
    pub(crate) fn new(core: &'r RegionCore) -> Self {
        RetiredFiles { core }
    }

    /// Notes files that no new reader gets any more, and tells the log why.
    pub(super) fn retire(&self, store: &Store, files: &[Arc<StoreFile>], marker: Marker) -> Result<()> {
        let fence = Arc::new(Fence { marker, ticket: OnceLock::new() });
        let retired = files.iter().map(|file| Retired { file: file.clone(), fence: fence.clone() });
        store.work.lock().retired.extend(retired);
        match self.append_compaction_marker(&fence) {
            Err(error) if error.remedy() == Remedy::StopServer => Err(error),
            // A log without room gets the marker later.
            _ => Ok(()),
        }
    }

    fn append_compaction_marker(&self, fence: &Fence) -> Result<()> {
        let (_, ticket) = marker::append(self.core, &fence.marker)?;
        // Should another thread have appended it too, the log has it twice, which changes nothing.
        let _ = fence.ticket.set(ticket);
        Ok(())
    }

    /// Gives the log the markers that it could not take before.
    fn append_missing_markers(&self) -> Result<Vec<Arc<Fence>>> {
        let of = |store: &Store| -> Vec<Arc<Fence>> {
            store.work.lock().retired.iter().map(|retired| retired.fence.clone()).collect()
        };
        let mut fences: Vec<Arc<Fence>> = self.core.stores.iter().flat_map(of).collect();
        fences.dedup_by(|a, b| Arc::ptr_eq(a, b));
        for fence in fences.iter().filter(|fence| fence.ticket.get().is_none()) {
            self.append_compaction_marker(fence)?;
        }
        Ok(fences)
    }

    /// Waits until the markers of all compactions so far are on the disk. Not under a lock.
    ///
    /// # Errors
    /// When the log has no room or has failed.
    pub(crate) fn sync_markers(&self) -> Result<()> {
        for ticket in self.append_missing_markers()?.iter().filter_map(|fence| fence.ticket.get()) {
            ticket.wait_for(Level::Synced).map_err(|failed| RegionError::log(self.core.name(), failed.into()))?;
        }
        Ok(())
    }

    /// Archives the files that compactions have replaced, no reader holds any more, and of which the log tells durably; returns how many.
    /// To be called now and then. Waits neither for a flush nor for the log: what is not ready stays until the next call.
    ///
    /// # Errors
    /// When the volume fails; the rest stays for the next call.
    pub(crate) fn archive_ready(&self) -> Result<usize> {
        let Some(_gate) = self.core.flushing.try_lock() else { return Ok(0) };
        self.core.check_not_closing()?;
        match self.append_missing_markers() {
            Err(error) if error.remedy() == Remedy::StopServer => Err(error),
            _ => self.archive(false),
        }
    }

    /// `held_too`: also files that readers hold (their handles outlive the move).
    pub(crate) fn archive(&self, held_too: bool) -> Result<usize> {
        let mut archived = 0;
        for store in &*self.core.stores {
            let is_ready = |retired: &&Retired| {
                // A reader holds the file's handle; whoever looks at a picture of the store, or archives it just now, holds the file.
                let file = &retired.file;
                let is_free = held_too || (Arc::strong_count(file) == 1 && Arc::strong_count(&file.reader) == 1);
                is_free && retired.fence.is_synced()
            };
            let ready: Vec<Arc<StoreFile>> = {
                let work = store.work.lock();
                let (ready, waiting): (Vec<&Retired>, Vec<&Retired>) = work.retired.iter().partition(is_ready);
                let waiting: BTreeSet<&str> = waiting.iter().map(|retired| retired.file.name.as_str()).collect();
                // What a file has replaced goes before it: nothing else may say that it was replaced.
                let may_go = |file: &StoreFile| {
                    waiting.is_empty() || !file.replaces().iter().any(|name| waiting.contains(name.as_str()))
                };
                ready.iter().filter(|retired| may_go(&retired.file)).map(|retired| retired.file.clone()).collect()
            };
            if ready.is_empty() {
                continue;
            }
            self.archive_files(store, &ready)?;
            // Only now: until then the output of a compaction must name them.
            store.work.lock().retired.retain(|retired| !ready.iter().any(|file| Arc::ptr_eq(file, &retired.file)));
            ready.iter().for_each(|file| file.reader.retire());
            archived += ready.len();
        }
        Ok(archived)
    }

    fn archive_files(&self, store: &Store, files: &[Arc<StoreFile>]) -> Result<()> {
        let volume = &*self.core.env.volume;
        let (own, foreign): (Vec<&Arc<StoreFile>>, Vec<&Arc<StoreFile>>) =
            files.iter().partition(|file| !file.is_reference() && file.parsed.link.is_none());
        let names: Vec<&str> = own.iter().map(|file| file.name.as_str()).collect();
        let mut moved = rootdir::archive_files(volume, &store.dir, &names);
        for file in &foreign {
            // References and links hold no cells of their own.
            moved = moved.and_then(|()| match volume.remove_file(&store.dir.join(&file.name)) {
                Err(error) if !error.is_not_found() => Err(error),
                _ => Ok(()),
            });
        }
        if !foreign.is_empty() {
            // What they refer to may be archived and deleted next: a reference that came back would find nothing.
            moved = moved.and_then(|()| volume.sync_dir(&store.dir));
        }
        moved.map_err(|e| RegionError::volume(self.core.name(), e))
    }
}
