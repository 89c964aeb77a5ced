//! Compaction: several store files become one, or one for each window of time or range of rows.
//!
//! The server asks which files ([`Region::select_compaction`]) and then has them rewritten ([`Region::compact`]). The new
//! file names the ones it replaces, so that a crash between its publication and their archiving leaves no doubt.
//! Replaced files stay where they are until no reader holds them and the log's marker is on the disk
//! ([`Region::archive_compacted_files`]). Follows: `HStore#compact`, `Compactor`.

mod archive;
mod date_tiers;
mod policy;
mod select;
mod stripes;

pub(crate) use archive::{Retired, RetiredFiles};
pub(crate) use date_tiers::{OutputWindow, Tiering};
pub use select::CompactionJob;
pub(crate) use stripes::{RowCut, SplitAt, of_flush, split_at};

use crate::core::RegionCore;
use crate::error::{RegionError, Remedy, Result};
use crate::mob::write::MobWork;
use crate::new_file::{Caching, FileWriter, NewFile};
use crate::scan::matcher::Matcher;
use crate::scan::merge::Merge;
use crate::scan::source::Source;
use crate::scan::store_scanner::{RowLimits, StoreScanner};
use crate::settings::CompactionPolicy;
use crate::store::{Store, StoreView, sort_files};
use crate::store_file::StoreFile;
use base::size::MIB;
use base::{ReadPoint, SeqId};
use hfile::{Residency, ScanOptions, StoreMetadata};
use model::StoreEngine;
use proto::pb;
use std::cell::Cell;
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

/// How what is written is divided into files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// It is not.
    One,
    /// By the timestamps of cells; windows ascending.
    ByTime(Vec<OutputWindow>),
    /// By the values that their rows have in a column; windows of those, ascending.
    ByValue {
        /// From which value on a file is.
        windows: Vec<OutputWindow>,
        /// The column.
        qualifier: Arc<[u8]>,
    },
    /// By their rows.
    ByRow(RowCut),
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

/// Files on their way into one, as the pace of writes sees them: by how much there are fewer.
struct Retiring<'r> {
    core: &'r RegionCore,
    fewer: f64,
    bytes: u64,
    wrote_bytes: Cell<u64>,
}

impl<'r> Retiring<'r> {
    fn begin(core: &'r RegionCore, files: &[Arc<StoreFile>]) -> Retiring<'r> {
        core.env.memory.compaction_drain.begin(core.env.clock.monotonic_us());
        let bytes = files.iter().map(|file| file.reader.uncompressed_bytes()).sum();
        Retiring { core, fewer: files.len().saturating_sub(1) as f64, bytes, wrote_bytes: Cell::new(0) }
    }

    /// So many bytes of cells more are written. What leaves cells out ends before all of them are: that counts for the next.
    fn wrote(&self, bytes: u64) {
        let before = self.wrote_bytes.get().min(self.bytes);
        self.wrote_bytes.set(before + bytes);
        let part = (self.wrote_bytes.get().min(self.bytes) - before) as f64 / self.bytes.max(1) as f64;
        self.core.env.memory.compaction_drain.did(self.fewer * part, self.core.env.clock.monotonic_us());
    }
}

impl Drop for Retiring<'_> {
    fn drop(&mut self) {
        self.core.env.memory.compaction_drain.end(self.core.env.clock.monotonic_us());
    }
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
    /// Bytes of the new files.
    pub output_bytes: u64,
}

/// Chooses store files and rewrites them.
#[derive(Clone, Copy)]
pub(crate) struct Compactor<'r> {
    core: &'r RegionCore,
}

impl<'r> Compactor<'r> {
    pub(crate) fn new(core: &'r RegionCore) -> Self {
        Compactor { core }
    }

    /// Whether some store has enough files for a compaction, or was asked for a major one.
    pub(crate) fn is_needed(&self) -> bool {
        self.may_compact() && self.core.stores.iter().any(|store| self.is_needed_in(store))
    }

    /// Whether compactions are on for the table, and the region's files are its own: a read replica's are its primary's.
    fn may_compact(&self) -> bool {
        self.core.table.compaction_enabled() && !self.core.info.is_replica()
    }

    fn is_needed_in(&self, store: &Store) -> bool {
        let work = store.work.lock();
        let view = store.peek();
        let has_references = view.files.iter().any(|file| file.is_reference());
        let settings = store.settings.load();
        match store.engine(&settings) {
            StoreEngine::DateTiered | StoreEngine::CustomTiered => {
                let now = self.core.env.clock.now_ms().0;
                return policy::wants_minor_in_tiers(
                    &view.files,
                    &work.compacting,
                    store.tiering(&settings),
                    &settings,
                    now,
                ) || (work.owes_major && !view.files.is_empty())
                    || (work.compacting.is_empty() && has_references);
            }
            StoreEngine::Stripe => {
                return work.compacting.is_empty() && !self.choose_in_stripes(store, &view, &settings).files.is_empty();
            }
            StoreEngine::Default => {}
        }
        if settings.compaction_policy == CompactionPolicy::Fifo && !has_references {
            return self.has_expired_files(store, &view, &work);
        }
        let idle = view.files.len() - work.compacting.len().min(view.files.len());
        idle >= settings.compaction_min_files
            || (work.owes_major && !view.files.is_empty())
            || (idle > 0 && work.compacting.is_empty() && has_references)
    }

    /// The next selections of this family (of all, without one) are major compactions. Where there is no file yet the
    /// request waits for a selection that somebody else asks for, as in HBase: the first flush does not bring it about.
    ///
    /// # Errors
    /// An unknown family.
    pub(crate) fn request_major(&self, family: Option<&[u8]>) -> Result<()> {
        if let Some(family) = family
            && self.core.store(family).is_none()
        {
            return Err(self.core.no_such_family(family));
        }
        if self.core.info.is_replica() {
            return Ok(());
        }
        for store in self.core.stores.iter().filter(|store| family.is_none_or(|family| store.name == family)) {
            let mut work = store.work.lock();
            work.force_major = true;
            work.owes_major = !store.peek().files.is_empty();
        }
        Ok(())
    }

    /// Rewrites the job's files, as one or by windows of time, and publishes what they come to.
    ///
    /// # Errors
    /// A file that cannot be read, a full or failing disk: nothing has changed then.
    pub(crate) fn compact(&self, job: CompactionJob, throttle: &dyn Throttle) -> Result<CompactionOutcome> {
        let store = &self.core.stores[job.store];
        let outcome = self.compact_files(store, &job, throttle);
        match &outcome {
            Ok(outcome) if outcome.completed => {
                self.core.counters.compactions.fetch_add(1, Ordering::Relaxed);
                self.core.counters.compacted_files.fetch_add(outcome.input_files as u64, Ordering::Relaxed);
                self.core.counters.compacted_bytes.fetch_add(outcome.output_bytes, Ordering::Relaxed);
            }
            _ => {
                self.core.counters.compactions_failed.fetch_add(1, Ordering::Relaxed);
                if job.is_major {
                    let mut work = store.work.lock();
                    (work.force_major, work.owes_major) = (true, true);
                }
            }
        }
        drop(job);
        if outcome.as_ref().is_ok_and(|outcome| outcome.completed) {
            match RetiredFiles::new(self.core).sync_markers() {
                Ok(()) => RetiredFiles::new(self.core).archive(false).map(|_| ())?,
                Err(error) if error.remedy() == Remedy::StopServer => return Err(error),
                // The log has no room: the replaced files stay until it has.
                Err(error) => tracing::debug!(%error, "compacted files are not archived yet"),
            }
        }
        outcome
    }

    fn compact_files(&self, store: &Store, job: &CompactionJob, throttle: &dyn Throttle) -> Result<CompactionOutcome> {
        let read_point = self.core.smallest_read_point();
        let now = self.core.env.clock.now_ms().0;
        let new = new_file(store, job, read_point, now);
        let scanner = self.scanner_over(store, job, new.past_cache, read_point, now)?;
        let metadata = StoreMetadata {
            max_seq_id: job.files.iter().map(|file| file.max_seq_id).max(),
            major_compaction: job.all_files,
            compacted_files: replaced_names(store, &job.files),
            ..StoreMetadata::default()
        };
        let retiring = Retiring::begin(self.core, &job.files);
        let mut stopped = false;
        let mut proceed = |bytes: u64| {
            retiring.wrote(bytes);
            stopped = !self.core.serving.is_open() || !throttle.wrote(bytes);
            if stopped { Err(RegionError::TooBusy("the compaction was stopped".into())) } else { Ok(()) }
        };
        let cells: u64 = job.files.iter().map(|file| file.reader.entry_count()).sum();
        self.core.counters.compacting_cells.fetch_add(cells, Ordering::Relaxed);
        let files = FileWriter::new(self.core);
        let pending = match files.write_divided(store, scanner, new, &job.output, &metadata, &mut proceed) {
            Err(_) if stopped => return Ok(CompactionOutcome::default()),
            other => other?,
        };
        self.core.counters.compacted_cells.fetch_add(cells, Ordering::Relaxed);
        // Neither a flush nor the region's end comes between a look at the state and the publication.
        let _gate = self.core.flushing.lock();
        if !self.core.serving.is_open() {
            return Ok(CompactionOutcome::default());
        }
        let output = FileWriter::new(self.core).commit_all(store, &pending, &job.files)?;
        self.replace_files(store, &job.files, &output, read_point)?;
        if job.all_files {
            store.last_major_compaction_ms.store(now, Ordering::Relaxed);
        }
        self.count_cells(job, cells, pending.iter().map(|file| file.cells().1).sum());
        Ok(CompactionOutcome {
            completed: true,
            input_files: job.files.len(),
            input_bytes: job.size_bytes(),
            output_bytes: pending.iter().map(|file| file.len_bytes()).sum(),
        })
    }

    /// A compaction has gone through `cells` and left `left_bytes` of them.
    fn count_cells(&self, job: &CompactionJob, cells: u64, left_bytes: u64) {
        let counters = &self.core.counters;
        counters.compacted_cells_bytes.fetch_add(left_bytes, Ordering::Relaxed);
        if job.is_major {
            counters.major_compacted_cells.fetch_add(cells, Ordering::Relaxed);
            counters.major_compacted_cells_bytes.fetch_add(left_bytes, Ordering::Relaxed);
        }
    }

    /// The job's cells that stay, in order.
    fn scanner_over(
        &self,
        store: &Store,
        job: &CompactionJob,
        drop_behind: bool,
        read_point: ReadPoint,
        now: i64,
    ) -> Result<StoreScanner> {
        let residency = Residency::MayRead;
        let options = ScanOptions { cache_blocks: false, pread: false, residency, compaction: true, drop_behind };
        let source =
            |(rank, file): (usize, &Arc<StoreFile>)| Source::file(&file.reader, options, ReadPoint::ALL, rank as u32);
        let mut merge = Merge::new(self.core.order(), job.files.iter().enumerate().map(source).collect());
        merge.seek_to_first().map_err(|e| RegionError::file(self.core.name(), e))?;
        let earliest_puts = job.files.iter().map(|file| file.reader.earliest_put_ts().unwrap_or(i64::MIN));
        let earliest_put = earliest_puts.min().unwrap_or(i64::MIN);
        let matcher = match &job.drops {
            Some(rows) => Matcher::rewrite_in(&store.rules, rows.clone(), read_point, earliest_put, now),
            None => Matcher::rewrite(&store.rules, job.all_files, read_point, earliest_put, now),
        };
        Ok(StoreScanner::new(self.core.name().clone(), merge, matcher, RowLimits::default()))
    }

    /// Shows readers the output in place of the inputs, and tells the log. `read_point`: the output is whole for readers from there on.
    fn replace_files(
        &self,
        store: &Store,
        inputs: &[Arc<StoreFile>],
        output: &[Arc<StoreFile>],
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
        self.core.count_files();
        inputs.iter().for_each(|file| file.set_replaced());
        RetiredFiles::new(self.core).retire(store, inputs, self.compaction_marker(store, inputs, output))
    }

    fn compaction_marker(&self, store: &Store, inputs: &[Arc<StoreFile>], output: &[Arc<StoreFile>]) -> Marker {
        Marker::Compaction(pb::CompactionDescriptor {
            table_name: self.core.info.table.as_str().as_bytes().to_vec().into(),
            encoded_region_name: self.core.name().as_bytes().to_vec().into(),
            family_name: store.name.clone(),
            compaction_input: inputs.iter().map(|file| file.name.clone()).collect(),
            compaction_output: output.iter().map(|file| file.name.clone()).collect(),
            store_home_dir: rootdir::family_name(&store.name),
            region_name: Some(self.core.info.name().clone()),
        })
    }
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

/// What the output is like.
fn new_file(store: &Store, job: &CompactionJob, read_point: ReadPoint, now: i64) -> NewFile {
    let settings = store.settings.load();
    let leaves_pages = if job.all_files { settings.major_drops_pages } else { settings.minor_drops_pages };
    let cached = settings.cache_compacted && job.size_bytes() <= settings.cache_compacted_max_bytes;
    let readers = || job.files.iter().map(|file| &file.reader);
    NewFile {
        compression: store.family().compression_compact_chosen(job.all_files),
        include_mvcc: readers().any(|reader| reader.highest_seq_id() > 0),
        include_tags: matches!(job.output, Output::ByValue { .. }) || readers().any(|reader| reader.has_tags()),
        cache: if cached { Caching::All } else { Caching::Wanted },
        past_cache: leaves_pages && job.size_bytes() >= PAST_CACHE_MIN_BYTES,
        kind: if job.all_files { fs::FileKind::Major } else { fs::FileKind::Minor },
        mob: MobWork {
            newest_ms: readers().filter_map(|reader| reader.time_range()).map(|(_, max)| max).max().unwrap_or(0),
            rewrite: job.rewrites_mob,
            is_flush: false,
        },
        forget_seq_ids_to: forgettable(store, job, read_point, now),
    }
}

/// Up to which id cells may lose theirs: all files are rewritten and the files with those ids are old enough. Follows:
/// `Compactor#getFileDetails`, `minSeqIdToKeep`.
fn forgettable(store: &Store, job: &CompactionJob, read_point: ReadPoint, now: i64) -> SeqId {
    if !job.all_files || store.rules.new_version_behavior {
        return SeqId(0);
    }
    let cutoff = now.saturating_sub(store.settings.load().keep_seq_id_ms);
    let old = job.files.iter().filter(|file| file.created_ms().is_some_and(|ms| ms < cutoff));
    let highest = old.map(|file| file.reader.highest_seq_id()).max().unwrap_or(0);
    SeqId(highest.min(read_point.0))
}
