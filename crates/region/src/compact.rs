//! Compaction: several store files become one.
//!
//! The server asks which files ([`Region::select_compaction`]) and then has them rewritten ([`Region::compact`]). The new
//! file names the ones it replaces, so that a crash between its publication and their archiving leaves no doubt.
//! Replaced files stay where they are until no reader holds them and the log's marker is on the disk
//! ([`Region::archive_compacted_files`]). Follows: `HStore#compact`, `Compactor`.

mod archive;
mod policy;

pub(crate) use archive::Retired;

use crate::error::{RegionError, Remedy, Result};
use crate::mob::write::MobWork;
use crate::new_file::{Caching, NewFile};
use crate::region::Region;
use crate::scan::matcher::Matcher;
use crate::scan::merge::Merge;
use crate::scan::source::Source;
use crate::scan::store_scanner::{RowLimits, StoreScanner};
use crate::store::{Store, StoreView, sort_files};
use crate::store_file::StoreFile;
use base::size::MIB;
use base::{ReadPoint, SeqId};
use bytes::Bytes;
use hfile::{Residency, ScanOptions, StoreMetadata};
use policy::Choice;
use proto::pb;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use wal::marker::Marker;

/// A compaction of less leaves its new file in the operating system's memory: it is read again soon, if by nobody else by the next compaction,
/// and pushes nothing out.
const PAST_CACHE_MIN_BYTES: u64 = 64 * MIB;

/// What kind of compaction is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionKind {
    /// What the policy finds worth it, which may be a major one.
    Minor,
    /// All files, delete markers dropped.
    Major,
}

/// Holds a compaction back.
pub trait Throttle {
    /// `bytes` more were written, as they were before compression (HBase counts so too): waits as long as the budget wants. False stops the compaction.
    fn wrote(&self, bytes: u64) -> bool;
}

/// Never waits, never stops.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unthrottled;

impl Throttle for Unthrottled {
    fn wrote(&self, _bytes: u64) -> bool {
        true
    }
}

/// Files chosen to be compacted; they are in no other job. Dropping it gives them back.
#[derive(Debug)]
pub struct CompactionJob {
    region: Arc<Region>,
    store: usize,
    files: Vec<Arc<StoreFile>>,
    all_files: bool,
    is_major: bool,
    /// Values in MOB files are written anew, as HBase does when somebody asks for a major compaction.
    rewrites_mob: bool,
}

/// What a compaction did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionOutcome {
    /// False when it was stopped by the throttle or because the region closes; nothing has changed then.
    pub completed: bool,
    /// Files replaced.
    pub input_files: usize,
    /// Bytes of those.
    pub input_bytes: u64,
    /// Bytes of the new file.
    pub output_bytes: u64,
}

impl CompactionJob {
    /// The family.
    pub fn family(&self) -> &Bytes {
        &self.region.stores[self.store].name
    }

    /// Bytes to be read.
    pub fn size_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.len_bytes()).sum()
    }

    /// Number of files.
    pub fn file_count(&self) -> usize {
        self.files.len()
    }

    /// Names of the files, oldest first.
    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| file.name.as_str())
    }

    /// Whether it belongs in the queue for large compactions.
    pub fn is_large(&self) -> bool {
        self.size_bytes() > self.region.stores[self.store].settings.compaction_throttle_point_bytes
    }

    /// Whether all files of the store are in it and delete markers go.
    pub fn is_major(&self) -> bool {
        self.is_major
    }
}

impl Drop for CompactionJob {
    fn drop(&mut self) {
        let mut work = self.region.stores[self.store].work.lock();
        for file in &self.files {
            work.compacting.remove(&file.name);
        }
    }
}

impl Region {
    /// Whether some store has enough files for a compaction, or was asked for a major one.
    pub fn needs_compaction(&self) -> bool {
        self.stores.iter().any(|store| {
            let work = store.work.lock();
            let view = store.peek();
            let idle = view.files.len() - work.compacting.len().min(view.files.len());
            idle >= store.settings.compaction_min_files
                || (work.owes_major && !view.files.is_empty())
                || (idle > 0 && work.compacting.is_empty() && view.files.iter().any(|file| file.is_reference()))
        })
    }

    /// The next selections of this family (of all, without one) are major compactions. Where there is no file yet the
    /// request waits for a selection that somebody else asks for, as in HBase: the first flush does not bring it about.
    ///
    /// # Errors
    /// An unknown family.
    pub fn request_major_compaction(&self, family: Option<&[u8]>) -> Result<()> {
        if let Some(family) = family
            && self.store(family).is_none()
        {
            return Err(self.no_such_family(family));
        }
        for store in self.stores.iter().filter(|store| family.is_none_or(|family| store.name == family)) {
            let mut work = store.work.lock();
            work.force_major = true;
            work.owes_major = !store.peek().files.is_empty();
        }
        Ok(())
    }

    /// Chooses files of one store to compact: of the given family, else of the family with the most files. Files whose
    /// cells are all expired are dropped on the way. `None`: nothing to do now.
    ///
    /// # Errors
    /// An unknown family, a region that is closing.
    pub fn select_compaction(
        self: &Arc<Region>,
        family: Option<&[u8]>,
        kind: CompactionKind,
    ) -> Result<Option<CompactionJob>> {
        self.check_open()?;
        let mut order: Vec<usize> = match family {
            Some(family) => {
                let at = self.stores.iter().position(|store| store.name == family);
                vec![at.ok_or_else(|| self.no_such_family(family))?]
            }
            None => (0..self.stores.len()).collect(),
        };
        order.sort_by_key(|at| std::cmp::Reverse(self.stores[*at].peek().files.len()));
        for at in order {
            if let Some(job) = self.select_in(at, kind)? {
                return Ok(Some(job));
            }
        }
        Ok(None)
    }

    fn select_in(self: &Arc<Region>, at: usize, kind: CompactionKind) -> Result<Option<CompactionJob>> {
        let store = &self.stores[at];
        self.drop_expired_files(store)?;
        let mut work = store.work.lock();
        let view = store.view();
        let wants_major = kind == CompactionKind::Major || work.force_major;
        let now = self.env().clock.now_ms().0;
        let Choice { files, is_major } =
            policy::choose(&view.files, &work.compacting, &store.settings, store.rules.ttl_ms, wants_major, now);
        if files.is_empty() {
            return Ok(None);
        }
        let all_files = files.len() == view.files.len();
        if is_major && all_files {
            (work.force_major, work.owes_major) = (false, false);
        }
        work.compacting.extend(files.iter().map(|file| file.name.clone()));
        drop(work);
        let is_major = is_major && all_files;
        let rewrites_mob = is_major && wants_major;
        Ok(Some(CompactionJob { region: self.clone(), store: at, files, all_files, is_major, rewrites_mob }))
    }

    /// Follows: `HStore#removeUnneededFiles`.
    fn drop_expired_files(&self, store: &Store) -> Result<()> {
        if !store.settings.delete_expired_files || store.rules.min_versions > 0 || store.rules.ttl_ms.is_none() {
            return Ok(());
        }
        let oldest_unexpired = store.rules.oldest_unexpired(self.env().clock.now_ms().0);
        let view = store.view();
        let work = store.work.lock();
        let expired: Vec<Arc<StoreFile>> = view
            .files
            .iter()
            // The newest file stays: it says up to where the log was flushed.
            .take(view.files.len().saturating_sub(1))
            .filter(|file| !work.compacting.contains(&file.name))
            .filter(|file| file.reader.time_range().is_some_and(|(_, max)| max < oldest_unexpired))
            .cloned()
            .collect();
        drop(work);
        if expired.is_empty() {
            return Ok(());
        }
        let _gate = self.flushing.lock();
        self.check_open()?;
        self.replace_files(store, &expired, None, ReadPoint(0))?;
        // They are archived with the next compaction, or by whoever does so now and then.
        Ok(())
    }

    /// Rewrites the job's files as one and publishes it.
    ///
    /// # Errors
    /// A file that cannot be read, a full or failing disk: nothing has changed then.
    pub fn compact(&self, job: CompactionJob, throttle: &dyn Throttle) -> Result<CompactionOutcome> {
        let store = &self.stores[job.store];
        let outcome = self.compact_files(store, &job, throttle);
        match &outcome {
            Ok(outcome) if outcome.completed => {
                self.counters.compactions.fetch_add(1, Ordering::Relaxed);
                self.counters.compacted_files.fetch_add(outcome.input_files as u64, Ordering::Relaxed);
                self.counters.compacted_bytes.fetch_add(outcome.output_bytes, Ordering::Relaxed);
            }
            _ => {
                self.counters.compactions_failed.fetch_add(1, Ordering::Relaxed);
                if job.is_major {
                    let mut work = store.work.lock();
                    (work.force_major, work.owes_major) = (true, true);
                }
            }
        }
        drop(job);
        if outcome.as_ref().is_ok_and(|outcome| outcome.completed) {
            match self.sync_compaction_markers() {
                Ok(()) => self.archive_retired(false).map(|_| ())?,
                Err(error) if error.remedy() == Remedy::StopServer => return Err(error),
                // The log has no room: the replaced files stay until it has.
                Err(error) => tracing::debug!(%error, "compacted files are not archived yet"),
            }
        }
        outcome
    }

    fn compact_files(&self, store: &Store, job: &CompactionJob, throttle: &dyn Throttle) -> Result<CompactionOutcome> {
        let leaves_pages =
            if job.all_files { store.settings.major_drops_pages } else { store.settings.minor_drops_pages };
        let past_cache = leaves_pages && job.size_bytes() >= PAST_CACHE_MIN_BYTES;
        let cached = store.settings.cache_compacted && job.size_bytes() <= store.settings.cache_compacted_max_bytes;
        let residency = Residency::MayRead;
        let options =
            ScanOptions { cache_blocks: false, pread: false, residency, compaction: true, drop_behind: past_cache };
        let sources: Vec<Source> = job
            .files
            .iter()
            .enumerate()
            .map(|(rank, file)| Source::file(&file.reader, options, ReadPoint::ALL, rank as u32))
            .collect();
        let mut merge = Merge::new(self.order(), sources);
        merge.seek_to_first().map_err(|e| RegionError::file(self.name(), e))?;
        let read_point = self.read_point();
        let now = self.env().clock.now_ms().0;
        let readers = || job.files.iter().map(|file| &file.reader);
        let cells: u64 = readers().map(|reader| reader.entry_count()).sum();
        let earliest_put =
            readers().map(|reader| reader.earliest_put_ts().unwrap_or(i64::MIN)).min().unwrap_or(i64::MIN);
        let matcher = Matcher::rewrite(&store.rules, job.all_files, read_point, earliest_put, now);
        let scanner = StoreScanner::new(self.name().clone(), merge, matcher, RowLimits::default());
        let new = NewFile {
            compression: store.family().compression_compact_chosen(job.all_files),
            include_mvcc: readers().any(|reader| reader.highest_seq_id() > 0),
            include_tags: readers().any(|reader| reader.has_tags()),
            cache: if cached { Caching::All } else { Caching::Wanted },
            past_cache,
            mob: MobWork {
                newest_ms: readers().filter_map(|reader| reader.time_range()).map(|(_, max)| max).max().unwrap_or(0),
                rewrite: job.rewrites_mob,
            },
            forget_seq_ids_to: forgettable(store, job, read_point, now),
        };
        let metadata = StoreMetadata {
            max_seq_id: job.files.iter().map(|file| file.max_seq_id).max(),
            major_compaction: job.all_files,
            compacted_files: replaced_names(store, &job.files),
            ..StoreMetadata::default()
        };
        let mut stopped = false;
        let mut proceed = |bytes: u64| {
            stopped = self.is_closing() || !throttle.wrote(bytes);
            if stopped { Err(RegionError::TooBusy("the compaction was stopped".into())) } else { Ok(()) }
        };
        self.counters.compacting_cells.fetch_add(cells, Ordering::Relaxed);
        let pending = match self.write_file(store, scanner, new, &metadata, &mut proceed) {
            Err(_) if stopped => return Ok(CompactionOutcome::default()),
            other => other?,
        };
        self.counters.compacted_cells.fetch_add(cells, Ordering::Relaxed);
        // Neither a flush nor the region's end comes between a look at the state and the publication.
        let _gate = self.flushing.lock();
        if self.is_closing() {
            return Ok(CompactionOutcome::default());
        }
        let output = self.commit_file(store, &pending)?;
        self.replace_files(store, &job.files, Some(&output), read_point)?;
        if job.all_files {
            store.last_major_compaction_ms.store(now, Ordering::Relaxed);
        }
        Ok(CompactionOutcome {
            completed: true,
            input_files: job.files.len(),
            input_bytes: job.size_bytes(),
            output_bytes: pending.len_bytes(),
        })
    }

    /// Shows readers the output in place of the inputs, and tells the log. `read_point`: the output is whole for readers from there on.
    fn replace_files(
        &self,
        store: &Store,
        inputs: &[Arc<StoreFile>],
        output: Option<&Arc<StoreFile>>,
        read_point: ReadPoint,
    ) -> Result<()> {
        store.change(|view: &mut StoreView| {
            let mut files: Vec<Arc<StoreFile>> = view
                .files
                .iter()
                .filter(|file| !inputs.iter().any(|input| Arc::ptr_eq(file, input)))
                .chain(output)
                .cloned()
                .collect();
            sort_files(&mut files);
            view.files = files.into();
            view.whole_from = view.whole_from.max(read_point);
        });
        inputs.iter().for_each(|file| file.set_replaced());
        self.retire(store, inputs, self.compaction_marker(store, inputs, output))
    }

    fn compaction_marker(&self, store: &Store, inputs: &[Arc<StoreFile>], output: Option<&Arc<StoreFile>>) -> Marker {
        Marker::Compaction(pb::CompactionDescriptor {
            table_name: self.info().table.as_str().as_bytes().to_vec().into(),
            encoded_region_name: self.name().as_bytes().to_vec().into(),
            family_name: store.name.clone(),
            compaction_input: inputs.iter().map(|file| file.name.clone()).collect(),
            compaction_output: output.into_iter().map(|file| file.name.clone()).collect(),
            store_home_dir: rootdir::family_name(&store.name),
            region_name: Some(self.info().name().clone()),
        })
    }
}

/// Up to which id cells may lose theirs: all files are rewritten and the files with those ids are old enough. Follows:
/// `Compactor#getFileDetails`, `minSeqIdToKeep`.
fn forgettable(store: &Store, job: &CompactionJob, read_point: ReadPoint, now: i64) -> SeqId {
    if !job.all_files || store.rules.new_version_behavior {
        return SeqId(0);
    }
    let cutoff = now.saturating_sub(store.settings.keep_seq_id_ms);
    let old = job.files.iter().filter(|file| file.created_ms().is_some_and(|ms| ms < cutoff));
    let highest = old.map(|file| file.reader.highest_seq_id()).max().unwrap_or(0);
    SeqId(highest.min(read_point.0))
}

/// Names for the new file to remember: its inputs, and what they replaced that is not archived yet. Follows:
/// `StoreFileWriter#toCompactionEventTrackerBytes`.
fn replaced_names(store: &Store, inputs: &[Arc<StoreFile>]) -> Vec<String> {
    let retired: BTreeSet<String> = store.work.lock().retired.iter().map(|retired| retired.file.name.clone()).collect();
    let mut names = BTreeSet::new();
    for file in inputs {
        names.insert(file.name.clone());
        names.extend(file.replaces().into_iter().filter(|name| retired.contains(name)));
    }
    names.into_iter().collect()
}
