//! Bulk load: HFiles that somebody else wrote become store files of a region, all of a call or none.
//!
//! Each file is looked at first (its family, its rows, its trailer); then it is moved or copied below the call's staging
//! directory and made durable. The memstores are flushed, which gives the sequence id under which the cells will be read:
//! newer than every edit in files, older than every edit in memory. The moves into the families' directories are one
//! rename each; a journal, published before the first and gone after the last, lets the next opening finish them. The
//! log's marker is appended when everything is in place. Its own sequence id is the point from which readers see the
//! files: a reader that is older sees none of them, a later one all. Follows: `HRegion#bulkLoadHFiles`,
//! `SecureBulkLoadManager`, `HStore#assertBulkLoadHFileOk`.

pub(crate) mod journal;
mod place;
mod validate;

use crate::commit::Commit;
use crate::compact::Compactor;
use crate::core::RegionCore;
use crate::error::{RegionError, Result};
use crate::flush::Flusher;
use crate::store::{Store, sort_files};
use crate::store_file::StoreFile;
use base::SeqId;
use bytes::Bytes;
use cell::CellBuffer;
use fs::FilePath;
use proto::pb;
use std::sync::Arc;
use wal::marker::{Marker, row_for_region};
use wal::{EntryKey, Level};

pub use place::Place;

pub(crate) use journal::finish as finish_interrupted;

/// A file to be loaded.
#[derive(Clone, Debug)]
pub struct LoadFile {
    /// The family that gets it.
    pub family: Bytes,
    /// What the client calls it, for messages.
    pub name: String,
    /// Where it is.
    pub place: Place,
}

/// A call to load files.
#[derive(Clone, Debug)]
pub struct BulkLoad {
    /// The files; several may be of one family.
    pub files: Vec<LoadFile>,
    /// Whether the cells get a sequence id, newer than all that was written before. Without one they are older than
    /// everything.
    pub assign_seq_id: bool,
    /// The directory, in the region's volume, in which the files wait for their final move. Stays.
    pub staging: FilePath,
    /// Copy instead of move.
    pub copy: bool,
    /// Ids of the clusters that have loaded these files, this one included: for the log.
    pub cluster_ids: Vec<String>,
    /// Whether other clusters should load them: for the log.
    pub replicate: bool,
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BulkLoaded {
    /// The files are store files now.
    Loaded {
        /// Family and name of each, in the order of the call.
        files: Vec<(Bytes, String)>,
        /// Whether some store now wants a compaction.
        needs_compaction: bool,
    },
    /// Nothing was done: these files (by the client's name) hold rows of other regions, probably after a split.
    WrongRegion(Vec<String>),
}

/// A file that waits in the staging directory.
struct Staged<'a> {
    file: &'a LoadFile,
    staged: FilePath,
    target_name: String,
}

/// Loads files into the stores of a region.
#[derive(Clone, Copy)]
pub(crate) struct BulkLoader<'r> {
    core: &'r RegionCore,
}

impl<'r> BulkLoader<'r> {
    pub(crate) fn new(core: &'r RegionCore) -> Self {
        BulkLoader { core }
    }

    /// Loads files into their stores, all or none, durably and after a crash too. Blocks; large files that must be
    /// copied take their time, during which the region works on. When it fails, files that were moved are back where
    /// they were; with [`RegionError::RollbackFailed`] they are where the next opening looks for them, and nobody may move or remove them.
    ///
    /// # Errors
    /// Not serving; an unknown family (not to be repeated); a file that is not there or is no HFile; the volume or the
    /// log.
    pub(crate) fn load(&self, load: &BulkLoad) -> Result<BulkLoaded> {
        self.core.check_open()?;
        if self.core.info.is_replica() {
            self.core.check_not_read_only()?;
        }
        self.core.counters.writes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut wrong = Vec::new();
        for file in &load.files {
            if !self.check_load_file(file)? {
                wrong.push(file.name.clone());
            }
        }
        if !wrong.is_empty() {
            return Ok(BulkLoaded::WrongRegion(wrong));
        }
        let mut staged = Vec::with_capacity(load.files.len());
        let outcome = self.stage_all(load, &mut staged).and_then(|()| self.load_staged(load, &mut staged));
        if outcome.is_err() {
            for staged in &staged {
                staged.file.place.give_back(&*self.core.env.volume, &staged.staged, load.copy);
            }
        }
        outcome
    }

    fn stage_all<'a>(&self, load: &'a BulkLoad, staged: &mut Vec<Staged<'a>>) -> Result<()> {
        let volume = &*self.core.env.volume;
        let wrap = |e| RegionError::volume(self.core.name(), e);
        let mut dirs: Vec<FilePath> = Vec::new();
        for file in &load.files {
            let dir = load.staging.join(rootdir::family_name(&file.family));
            if !dirs.contains(&dir) {
                volume.create_dir_all_durable(&dir).map_err(wrap)?;
                dirs.push(dir.clone());
            }
            let target = dir.join(self.load_file_name(file)?);
            let there = matches!(&file.place, Place::Inside(path) if *path == target);
            if !there && volume.exists(&target).map_err(wrap)? {
                return Err(RegionError::DoNotRetry(format!("Failed to move HFile: {} to {target}", file.name)));
            }
            // Known before it is moved: a failure in the middle gives it back too.
            staged.push(Staged { file, staged: target.clone(), target_name: String::new() });
            file.place.bring(volume, &target, load.copy).map_err(wrap)?;
            volume.sync_file(&target).map_err(wrap)?;
        }
        dirs.iter().try_for_each(|dir| volume.sync_dir(dir)).map_err(wrap)
    }

    /// The last part of the client's path: how the file is called while it is staged.
    fn load_file_name<'a>(&self, file: &'a LoadFile) -> Result<&'a str> {
        let name = file.place.path().name();
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(RegionError::DoNotRetry(format!("{:?} is no name for a file to be loaded", file.name)));
        }
        Ok(name)
    }

    fn load_staged(&self, load: &BulkLoad, staged: &mut Vec<Staged<'_>>) -> Result<BulkLoaded> {
        // No flush, no publication of a compaction and no closing until the files are in.
        let _gate = self.core.flushing.lock();
        self.core.check_open()?;
        let seq_id = if load.assign_seq_id { Some(Flusher::new(self.core).flush_for_load()?) } else { None };
        for staged in &mut *staged {
            let suffix = seq_id.map(|seq_id| format!("_SeqId_{seq_id}_")).unwrap_or_default();
            staged.target_name = format!("{}{suffix}", self.core.env.rng.uuid_hex());
        }
        let volume = &*self.core.env.volume;
        let moves: Vec<(FilePath, FilePath)> = staged
            .iter()
            .map(|s| {
                let dir = rootdir::family_dir(&self.core.info, &s.file.family);
                (s.staged.clone(), dir.join(&s.target_name))
            })
            .collect();
        // One rename needs no journal, unless a list has to be changed with it.
        let has_list = staged.iter().any(|s| self.store_of(s).tracker.keeps_list());
        let journal = if moves.len() > 1 || has_list { Some(self.write_journal(&moves, staged)?) } else { None };
        let loaded = self.put_in_place(&moves, staged).and_then(|files| {
            self.track(&files)?;
            self.publish_loaded(load, seq_id, &files)
        });
        let commit = match loaded {
            Ok(commit) => commit,
            Err(error) => return Err(self.take_out(&moves, journal.as_ref(), error, staged)),
        };
        if let Some(journal) = &journal {
            // A journal that stays finds nothing left to do.
            let _ = volume.remove_file(journal);
        }
        commit.wait()?;
        Ok(BulkLoaded::Loaded {
            files: staged.iter().map(|s| (s.file.family.clone(), s.target_name.clone())).collect(),
            needs_compaction: Compactor::new(self.core).is_needed(),
        })
    }

    /// What failed on its way to the disk may be there all the same. Carried out by a later opening it would bring what the client stages
    /// meanwhile, and perhaps not all of it.
    fn write_journal(&self, moves: &[(FilePath, FilePath)], staged: &mut Vec<Staged<'_>>) -> Result<FilePath> {
        let volume = &*self.core.env.volume;
        let path = journal::path(&self.core.info, &self.core.env.rng.uuid_hex());
        journal::write(volume, &path, moves).map_err(|error| match journal::withdraw(volume, &path) {
            Ok(()) => RegionError::volume(self.core.name(), error),
            Err(stays) => self.leave_to_next_opening("the journal of a bulk load", stays, staged),
        })?;
        Ok(path)
    }

    fn put_in_place(&self, moves: &[(FilePath, FilePath)], staged: &[Staged<'_>]) -> Result<Vec<Arc<StoreFile>>> {
        journal::carry_out(&*self.core.env.volume, moves).map_err(|e| RegionError::volume(self.core.name(), e))?;
        let open = |s: &Staged<'_>| {
            let store = self.store_of(s);
            StoreFile::open(store.opening(&self.core.env, &self.core.info), &s.target_name, None).map(Arc::new)
        };
        staged.iter().map(open).collect()
    }

    fn store_of(&self, staged: &Staged<'_>) -> &'r Store {
        &self.core.stores[self.core.store_index(&staged.file.family)]
    }

    /// Has the stores' trackers name the files. When that fails, those that were told are told otherwise when the files are taken out.
    fn track(&self, files: &[Arc<StoreFile>]) -> Result<()> {
        for store in self.core.stores.iter().filter(|store| store.tracker.keeps_list()) {
            let mine = files.iter().filter(|file| file.reader.path().parent() == store.dir).cloned();
            let mine: Vec<Arc<StoreFile>> = mine.collect();
            if !mine.is_empty() {
                let told = store.tracker.replace(&self.core.env, std::iter::empty(), &mine);
                told.map_err(|failed| RegionError::volume(self.core.name(), failed.error))?;
            }
        }
        Ok(())
    }

    /// Has the stores' trackers forget the files of these moves.
    fn untrack(&self, moves: &[(FilePath, FilePath)]) -> fs::Result<()> {
        for store in self.core.stores.iter().filter(|store| store.tracker.keeps_list()) {
            let mine = || moves.iter().filter(|(_, to)| to.parent() == store.dir).map(|(_, to)| to.name());
            if mine().next().is_some() {
                store.tracker.replace(&self.core.env, mine(), &[]).map_err(|failed| failed.error)?;
            }
        }
        Ok(())
    }

    /// Shows the files to readers from the marker's sequence id on.
    fn publish_loaded(&self, load: &BulkLoad, seq_id: Option<SeqId>, files: &[Arc<StoreFile>]) -> Result<Commit> {
        let marker = self.bulk_load_marker(load, seq_id, files);
        let now = self.core.env.clock.now_ms();
        let mut run = CellBuffer::new();
        marker.write(row_for_region(&self.core.info.start_key), now.0, &mut run);
        let mut turn = self.core.sequencer.turn();
        let visible_from = turn.seq_id();
        let key = EntryKey::new(self.core.name(), self.core.info.table.as_str(), visible_from, now, &[]);
        let appended = self.core.env.log.append(&key, run.bytes(), run.len());
        let (ticket, _) = turn.appended(appended, true).map_err(|e| RegionError::log(self.core.name(), e))?;
        if let Some(outbox) = &self.core.outbox {
            // When who reads the marker looks, the files have their names.
            outbox.push(visible_from, now.0, (run.bytes(), run.len()), (ticket.clone(), Level::Synced));
        }
        for file in files {
            file.set_visible_from(visible_from);
        }
        for store in &*self.core.stores {
            let mine = |file: &&Arc<StoreFile>| file.reader.path().parent() == store.dir;
            if files.iter().any(|file| mine(&file)) {
                store.change(|view| {
                    let mut all: Vec<Arc<StoreFile>> =
                        view.files.iter().chain(files.iter().filter(mine)).cloned().collect();
                    sort_files(&mut all);
                    view.files = all.into();
                });
            }
        }
        self.core.sequencer.inserted(visible_from);
        let mut commit = self.core.sequencer.commit();
        commit.add(visible_from, Some((ticket, Level::Synced)));
        Ok(commit)
    }

    fn bulk_load_marker(&self, load: &BulkLoad, seq_id: Option<SeqId>, files: &[Arc<StoreFile>]) -> Marker {
        let mut stores: Vec<pb::StoreDescriptor> = Vec::new();
        for store in &*self.core.stores {
            let mine: Vec<&Arc<StoreFile>> =
                files.iter().filter(|file| file.reader.path().parent() == store.dir).collect();
            let Some(last) = mine.last() else { continue };
            stores.push(pb::StoreDescriptor {
                family_name: store.name.clone(),
                store_home_dir: rootdir::family_name(&store.name),
                store_file: mine.iter().map(|file| file.name.clone()).collect(),
                // As HBase: the size of the last one.
                store_file_size_bytes: Some(last.reader.len_bytes()),
            });
        }
        Marker::BulkLoad(pb::BulkLoadDescriptor {
            table_name: convert::to_proto::table_name(&self.core.info.table),
            encoded_region_name: Bytes::copy_from_slice(self.core.name().as_bytes()),
            stores,
            bulkload_seq_num: seq_id.map_or(-1, |seq_id| seq_id.0 as i64),
            cluster_ids: load.cluster_ids.clone(),
            replicate: Some(load.replicate),
        })
    }

    /// Takes files that nobody has seen out of the families' directories again. What cannot be taken out would come
    /// to light at the next opening, after the client was told that nothing was loaded: the region gives up then. Answers what to say.
    fn take_out(
        &self,
        moves: &[(FilePath, FilePath)],
        journal: Option<&FilePath>,
        error: RegionError,
        staged: &mut Vec<Staged<'_>>,
    ) -> RegionError {
        let volume = &*self.core.env.volume;
        let back: Vec<(FilePath, FilePath)> = moves.iter().map(|(from, to)| (to.clone(), from.clone())).collect();
        let undone = self.untrack(moves).and_then(|()| journal::carry_out(volume, &back)).and_then(|()| {
            moves.iter().try_for_each(|(_, to)| volume.sync_dir(&to.parent()))?;
            journal.map_or(Ok(()), |journal| journal::withdraw(volume, journal))
        });
        match undone {
            Ok(()) => error,
            // Without a journal no opening looks for the one file: it goes back as far as it can.
            Err(stays) if journal.is_none() => self.core.sequencer.rollback_failed("the file of a bulk load", stays),
            Err(stay) => self.leave_to_next_opening("the files of a bulk load", stay, staged),
        }
    }

    /// The next opening may find the journal, and then finishes the load: all files have to be where they are now, be that the staging directory
    /// or their family's. None is given back.
    fn leave_to_next_opening(&self, what: &'static str, error: fs::Error, staged: &mut Vec<Staged<'_>>) -> RegionError {
        staged.clear();
        self.core.sequencer.rollback_failed(what, error)
    }
}
