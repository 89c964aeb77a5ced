//! Read replicas: a region that shows the store files of another, its primary, as they were when it last looked, and what it was told of the
//! primary's log since ([`replay`]). Follows: `HRegion#refreshStoreFiles`, `ServerRegionReplicaUtil`, `HStore#refreshStoreFiles`.
//!
//! Where the primary is open in the same process a replica holds the very files that it has open, so the primary's compactions leave what the
//! replica still shows where it is, and nothing is opened or listed twice. Where it is elsewhere the replica finds them by their names, and keeps
//! open what it shows: a file that was compacted away meanwhile is read where it is then, in the archive.
//!
//! Always true:
//!  1. A replica writes nothing to the volume, and has no entry in any log.
//!  2. Sequence ids are the primary's: what is visible moves to the point of the files before these change, and readers of an older point are
//!     told that they may lack versions of it (`StoreView::whole_from`).
//!  3. A segment of memory goes only when every cell in it has an id up to which the primary has all of that family in files; in one step with
//!     the file that stands for it.

mod replay;

use crate::core::RegionCore;
use crate::error::{RegionError, Result};
use crate::store::{Store, sort_files};
use crate::store_file::{StoreFile, dead_names};
use base::{ReadPoint, SeqId};
use memstore::{MemStore, Segment};
use std::sync::Arc;

/// How often a directory is listed anew because a file of the list is not there any more.
const LOOKS: u32 = 5;

type Files = Arc<[Arc<StoreFile>]>;

/// What a replica was told of its primary's log.
#[derive(Debug, Default)]
pub(crate) struct ReplicaState {
    /// Entries with lower ids are in files, or were never: they come late. Follows: `HRegion#lastReplayedOpenRegionSeqId`.
    skipped_below: SeqId,
    /// Of the last compaction. Follows: `HRegion#lastReplayedCompactionSeqId`.
    last_compaction: SeqId,
    /// Of a flush that has begun and not ended.
    prepared: Option<SeqId>,
}

impl ReplicaState {
    /// Of a replica that opens with files up to `last`.
    pub(crate) fn opening(last: SeqId) -> ReplicaState {
        ReplicaState { skipped_below: last, ..ReplicaState::default() }
    }
}

/// A read replica's own part of a region.
#[derive(Clone, Copy)]
pub(crate) struct Replica<'r> {
    core: &'r RegionCore,
}

impl<'r> Replica<'r> {
    pub(crate) fn new(core: &'r RegionCore) -> Self {
        Replica { core }
    }

    /// Has it show the files that `primary` has now; whether they are others than before.
    pub(crate) fn share(&self, primary: &RegionCore) -> bool {
        let _one_at_a_time = self.core.flushing.lock();
        let mut state = self.core.replica.lock();
        let files_of = |name| primary.store(name).map(|store| store.view().files.clone());
        let shown: Vec<(&Store, Files)> =
            self.core.stores.iter().filter_map(|store| files_of(&store.name).map(|files| (store, files))).collect();
        // In this order: all that the files hold is visible at the point.
        self.core.sequencer.follow(primary.read_point());
        let mut changed = false;
        for (store, files) in shown {
            if !Arc::ptr_eq(&files, &store.peek().files) {
                let flushed = files.iter().map(|file| file.max_seq_id).max().unwrap_or_default();
                self.publish(store, files, flushed);
                changed = true;
            }
        }
        if changed {
            self.refreshed(&mut state);
        }
        changed
    }

    /// Has it show the files that the primary's directory has now; whether they are others than before.
    pub(crate) fn refresh(&self) -> Result<bool> {
        self.core.check_not_closing()?;
        let _one_at_a_time = self.core.flushing.lock();
        self.core.check_not_closing()?;
        let mut state = self.core.replica.lock();
        self.show_files_of(self.core.stores.iter(), &mut state)
    }

    /// The caller holds both locks.
    fn show_files_of<'s>(&self, stores: impl Iterator<Item = &'s Store>, state: &mut ReplicaState) -> Result<bool> {
        // All of them, or none.
        let found = stores.map(|store| Ok((store, self.look(store)?))).collect::<Result<Vec<_>>>()?;
        let changed: Vec<_> = found.into_iter().filter(|(store, files)| !is_same(&store.peek().files, files)).collect();
        if changed.is_empty() {
            return Ok(false);
        }
        let newest = changed.iter().flat_map(|(_, files)| files).map(|file| file.max_seq_id).max();
        self.core.sequencer.follow(ReadPoint(newest.unwrap_or_default().0));
        for (store, files) in changed {
            let flushed = files.iter().map(|file| file.max_seq_id).max().unwrap_or_default();
            self.publish(store, files.into(), flushed);
        }
        self.refreshed(state);
        Ok(true)
    }

    /// The files of the store now. A file may go between its being listed and its being opened.
    fn look(&self, store: &Store) -> Result<Vec<Arc<StoreFile>>> {
        let (env, region) = (&self.core.env, self.core.name());
        for look in 1.. {
            let names = store.tracker.names_of_primary(&*env.volume, region, &store.dir);
            match names.and_then(|names| self.open_all(store, &names)) {
                Err(error) if is_not_found(&error) && look < LOOKS => {}
                Err(error) => return Err(error),
                Ok(mut files) => {
                    let dead = dead_names(files.iter().map(|file| &**file));
                    files.retain(|file| !dead.contains(&file.name));
                    sort_files(&mut files);
                    return Ok(files);
                }
            }
        }
        Ok(store.peek().files.to_vec())
    }

    /// Those that it has open stay so.
    fn open_all(&self, store: &Store, names: &[String]) -> Result<Vec<Arc<StoreFile>>> {
        let shown = store.view().files.clone();
        let open = |name: &String| match shown.iter().find(|file| file.name == *name) {
            Some(file) => Ok(file.clone()),
            None => StoreFile::open(store.opening(&self.core.env, &self.core.info), name, None).map(Arc::new),
        };
        names.iter().map(open).collect()
    }

    /// Shows these files in place of those before. Whatever the memory has up to `flushed` goes.
    fn publish(&self, store: &Store, files: Files, flushed: SeqId) {
        let point = self.core.read_point();
        let dropped = {
            let _no_updates = self.core.updates.write();
            store.change(|view| {
                view.files = files;
                view.whole_from = view.whole_from.max(point);
                drop_memory(&mut view.memory, flushed)
            })
        };
        for segment in dropped {
            // Before it is given back: what is somewhere between the two must not look free.
            self.core.env.memory.pin(&segment);
            self.core.accounting.grew(-(segment.grown_bytes() as i64), -(segment.data_bytes() as i64));
        }
        if self.core.stores.iter().all(|store| store.peek().memory.is_empty()) {
            self.core.accounting.begin_flush_of_all();
        }
        if flushed > SeqId(0) {
            self.core.accounting.note_flush(self.core.env.clock.now_ms().0);
        }
    }

    /// Other files were found without having been told of: what the log still has for them need not be told.
    fn refreshed(&self, state: &mut ReplicaState) {
        let in_files = self.core.stores.iter().map(Store::max_flushed).min().unwrap_or_default();
        state.skipped_below = state.skipped_below.max(in_files);
        self.forget_prepared(state);
        self.core.count_files();
    }

    /// A flush of which nothing is in memory any more is over. Follows: `HRegion#dropPrepareFlushIfPossible`.
    fn forget_prepared(&self, state: &mut ReplicaState) {
        if self.core.stores.iter().all(|store| store.peek().memory.flushing().is_none()) {
            state.prepared = None;
        }
    }
}

/// Drops the segments all of whose cells have ids up to `flushed`.
fn drop_memory(memory: &mut MemStore, flushed: SeqId) -> Vec<Arc<Segment>> {
    let in_files = |segment: &Arc<Segment>| segment.max_seq() <= flushed;
    let mut dropped = Vec::new();
    if let Some(id) = memory.flushing().filter(|segment| in_files(segment)).map(|segment| segment.id()) {
        dropped.extend(memory.clear_snapshot(id));
    }
    if memory.flushing().is_none() && !memory.active().is_empty() && in_files(memory.active()) {
        let id = memory.snapshot().id();
        dropped.extend(memory.clear_snapshot(id));
    }
    dropped
}

fn is_same(before: &[Arc<StoreFile>], now: &[Arc<StoreFile>]) -> bool {
    before.len() == now.len() && before.iter().zip(now).all(|(before, now)| Arc::ptr_eq(before, now))
}

fn is_not_found(error: &RegionError) -> bool {
    match error {
        RegionError::Volume { source, .. } => source.is_not_found(),
        RegionError::StoreFile { source, .. } => matches!(&**source, hfile::Error::Io(error) if error.is_not_found()),
        _ => false,
    }
}
