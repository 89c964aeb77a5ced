//! Splits the logs of a dead server: sorts their entries by region into `recovered.edits`, from where the region takes them when it
//! is opened. Follows `WALSplitter`, `BoundedRecoveredEditsOutputSink`.
//!
//! Always true:
//!  1. A file of recovered edits appears whole and durable under its final name (`%019d`, the largest sequence id in it)
//!     or not at all, and only when the whole log has been read. Doing it again after a crash, or twice at once by two
//!     workers with different names, gives the same edits.
//!  2. Memory is bounded by [`SplitOptions::buffer_bytes`]; when it is full the largest regions are written to temporary files.
//!     No file stays open.
//!  3. Directories of regions are never made: a region that is gone stays gone, its edits are dropped (HBASE-24189).

use crate::order::quarantine_orphaned_log;
use crate::{Entry, Error, FileWriter, Key, Reader, Result};
use base::{SeqId, TimestampMs};
use cell::CellBlock;
use fs::{FilePath, Settled, Volume};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Where the edits of a region go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SplitDestination {
    /// To files of recovered edits.
    Directory {
        /// The region's directory, which exists.
        dir: FilePath,
        /// The directory of its recovered edits, which is made when there are some.
        edits_dir: FilePath,
        /// Entries up to this id are in store files and are dropped.
        flushed: Option<SeqId>,
    },
    /// Nowhere: the region is gone.
    Drop,
}

/// Knows the regions.
pub trait SplitTarget {
    /// Where the edits of a region go; asked once per region and log file. The names are from the log and may be anything.
    ///
    /// # Errors
    /// When it cannot be said now; the split fails and is repeated.
    fn destination(&mut self, table: &str, region: &str) -> Result<SplitDestination>;
}

/// How to split.
#[derive(Clone, Debug)]
pub struct SplitOptions {
    /// Bytes of entries held in memory. With as many as the log has a region's are in one file.
    pub buffer_bytes: usize,
    /// Files that are written at the same time, each by a thread of its own; one is written by the caller. On a volume that is far away most of
    /// a file's time is waiting.
    pub writers: usize,
    /// Names the worker in temporary names, so that two at once do not meet. Letters, digits, commas.
    pub worker: String,
    /// Whether the files written carry checksums.
    pub checksums: bool,
    /// Whether a damaged log is used up to the damage and set aside in `corrupt_dir` (`hbase.hlog.split.skip.errors`). Otherwise the
    /// split fails, and the regions stay closed until somebody has decided.
    pub skip_errors: bool,
    /// Where damaged logs go.
    pub corrupt_dir: FilePath,
    /// Operations that were logged before are too old to be tried again: their nonces are not told of.
    pub nonces_since: TimestampMs,
}

impl Default for SplitOptions {
    fn default() -> SplitOptions {
        SplitOptions {
            buffer_bytes: 128 << 20,
            writers: 1,
            worker: String::new(),
            checksums: true,
            skip_errors: false,
            corrupt_dir: FilePath::new("corrupt"),
            nonces_since: TimestampMs(i64::MIN),
        }
    }
}

/// What a split did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitReport {
    /// Entries read.
    pub entries: u64,
    /// Of these written.
    pub written: u64,
    /// (group, nonce) of clients' operations, be their regions there or not.
    pub nonces: Vec<(u64, u64)>,
    /// Files of recovered edits, in the order of their making.
    pub files: Vec<FilePath>,
    /// Logs that were damaged, where they were, and what is wrong; empty unless [`SplitOptions::skip_errors`].
    pub damaged: Vec<(FilePath, String)>,
}

/// The files in a directory of recovered edits, in the order in which they are replayed, each with the largest id in it.
///
/// # Errors
/// When the directory cannot be listed; one that does not exist has none.
pub fn recovered_edits(volume: &dyn Volume, dir: &FilePath) -> Result<Vec<(SeqId, FilePath)>> {
    if !volume.exists(dir)? {
        return Ok(Vec::new());
    }
    // Temporary files, `<id>.seqid` and files set aside as `<id>.<ms>` have more than digits.
    let number = |name: &str| name.strip_prefix('-').unwrap_or(name).parse::<u64>().ok();
    let entries = volume.list(dir)?.into_iter().filter(|entry| !entry.is_dir);
    let mut files: Vec<_> =
        entries.filter_map(|entry| Some((SeqId(number(&entry.name)?), dir.join(&entry.name)))).collect();
    files.sort();
    Ok(files)
}

/// Splits every log in `wal_dir` but those of [`quarantine_orphaned_log`], moves each to `archive_dir` when it is done, and removes the directory at the end. May be
/// repeated after a failure or a crash at any point.
///
/// # Errors
/// The first file that cannot be read or split; it and those after it stay where they are.
pub fn split_directory(
    volume: &dyn Volume,
    wal_dir: &FilePath,
    archive_dir: &FilePath,
    target: &mut dyn SplitTarget,
    options: &SplitOptions,
) -> Result<SplitReport> {
    let mut report = SplitReport::default();
    if !volume.exists(wal_dir)? {
        return Ok(report);
    }
    match quarantine_orphaned_log(volume, wal_dir, archive_dir) {
        Err(Error::Corrupt { .. }) if options.skip_errors => {}
        outcome => drop(outcome?),
    }
    let mut doubtful = HashSet::new();
    for entry in volume.list(wal_dir)?.into_iter().filter(|entry| !entry.is_dir) {
        let wal = wal_dir.join(&entry.name);
        let one = split_one(volume, &wal, target, options, &mut doubtful)?;
        report.entries += one.entries;
        report.written += one.written;
        report.nonces.extend(one.nonces);
        report.files.extend(one.files);
        let target = if one.damaged.is_empty() { archive_dir } else { &options.corrupt_dir };
        report.damaged.extend(one.damaged);
        archive_log(volume, &wal, target)?;
    }
    volume.remove_dir_all(wal_dir)?;
    volume.sync_dir(&wal_dir.parent())?;
    Ok(report)
}

/// Moves a log that is not needed any more to a directory, durably.
///
/// # Errors
/// When it cannot be moved.
pub fn archive_log(volume: &dyn Volume, wal: &FilePath, dir: &FilePath) -> Result<()> {
    volume.create_dir_all_durable(dir)?;
    // A server that was killed leaves the room that it had reserved for the file. It matters only if the disk is nearly full.
    let _ = volume.release_reserved(wal);
    volume.rename(wal, &dir.join(wal.name()))?;
    volume.sync_dir(dir)?;
    Ok(())
}

/// Splits one log file; leaves it where it is.
///
/// # Errors
/// [`Error::Corrupt`] when it is damaged, else what reading or writing said. Nothing has appeared under a final name, unless the
/// failure came while names were being changed.
pub fn split_file(
    volume: &dyn Volume,
    wal: &FilePath,
    target: &mut dyn SplitTarget,
    options: &SplitOptions,
) -> Result<SplitReport> {
    split_one(volume, wal, target, options, &mut HashSet::new())
}

/// Sees to it that nobody writes to a dead server's log any more: what is read from it is all there is.
///
/// # Errors
/// [`Error::Unsettled`]: to be tried again.
pub(crate) fn settle(volume: &dyn Volume, path: &FilePath) -> Result<()> {
    match volume.settle(path)? {
        Settled::Final { .. } => Ok(()),
        Settled::Pending => Err(Error::Unsettled { path: path.clone() }),
    }
}

/// (region, id) of entries that may also be in a later file, to which a failed sync has moved them.
pub(crate) type Doubtful = HashSet<(Arc<str>, SeqId)>;

/// The entries of a file of which it does not say that they were synced.
#[derive(Default)]
pub(crate) struct BeyondWatermark(Vec<(u64, Arc<str>, SeqId)>);

impl BeyondWatermark {
    /// Takes note of an entry that was just read.
    pub(crate) fn note(&mut self, reader: &Reader, entry: &Entry) {
        if !reader.is_sealed() || reader.has_trailer() {
            return;
        }
        let watermark = reader.synced_watermark();
        if self.0.first().is_some_and(|(offset, ..)| *offset < watermark) {
            self.0.retain(|(offset, ..)| *offset >= watermark);
        }
        self.0.push((entry.offset, Arc::clone(&entry.key.region), entry.key.seq_id));
    }

    pub(crate) fn into_ids(self) -> Vec<(Arc<str>, SeqId)> {
        self.0.into_iter().map(|(_, region, seq_id)| (region, seq_id)).collect()
    }
}

pub(crate) fn split_one(
    volume: &dyn Volume,
    wal: &FilePath,
    target: &mut dyn SplitTarget,
    options: &SplitOptions,
    doubtful: &mut Doubtful,
) -> Result<SplitReport> {
    settle(volume, wal)?;
    let mut reader = match Reader::open(volume, wal) {
        Err(error @ Error::Corrupt { .. }) if options.skip_errors => {
            return Ok(SplitReport { damaged: vec![(wal.clone(), error.to_string())], ..SplitReport::default() });
        }
        opened => opened?,
    };
    let mut splitter = Splitter {
        volume,
        wal_name: wal.name().to_owned(),
        options,
        regions: HashMap::new(),
        held_bytes: 0,
        parts: Vec::new(),
        report: SplitReport::default(),
    };
    let mut beyond_watermark = BeyondWatermark::default();
    let outcome = (|| {
        loop {
            let entry = match reader.next() {
                Ok(Some(entry)) => entry,
                Ok(None) => break,
                Err(error @ Error::Corrupt { .. }) if options.skip_errors => {
                    splitter.report.damaged.push((wal.clone(), error.to_string()));
                    break;
                }
                Err(error) => return Err(error),
            };
            beyond_watermark.note(&reader, &entry);
            if doubtful.is_empty() || !doubtful.contains(&(Arc::clone(&entry.key.region), entry.key.seq_id)) {
                splitter.take(entry, target)?;
            }
        }
        splitter.spill_all()
    })();
    if let Err(error) = outcome.and_then(|()| splitter.publish()) {
        splitter.remove_parts();
        return Err(error);
    }
    doubtful.extend(beyond_watermark.into_ids());
    Ok(splitter.report)
}

struct Splitter<'a> {
    volume: &'a dyn Volume,
    wal_name: String,
    options: &'a SplitOptions,
    regions: HashMap<Arc<str>, Region>,
    held_bytes: usize,
    parts: Vec<Part>,
    report: SplitReport,
}

struct Region {
    destination: SplitDestination,
    held: Vec<(Key, CellBlock)>,
    held_bytes: usize,
}

/// A temporary file, complete and synced.
struct Part {
    path: FilePath,
    first: SeqId,
    last: SeqId,
}

impl Part {
    /// Gives it its final name, which it says, unless as many entries have that name already.
    fn publish(&self, volume: &dyn Volume) -> Result<FilePath> {
        let target = self.path.parent().join(format!("{:019}", self.last.0));
        match volume.rename_new(&self.path, &target) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if covers(volume, &target, self.first)? {
                    // An earlier attempt, or the same entries from a neighbouring file, at least as many.
                    volume.remove_file(&self.path)?;
                } else {
                    volume.rename(&self.path, &target)?;
                }
            }
            Err(error) => return Err(error.into()),
        }
        Ok(target)
    }
}

/// What is to be written of a region.
struct Spill {
    name: Arc<str>,
    dir: FilePath,
    edits_dir: FilePath,
    path: FilePath,
    held: Vec<(Key, CellBlock)>,
}

impl Spill {
    /// False, and nothing is written, where the region is gone.
    fn write(&self, volume: &dyn Volume, checksums: bool) -> Result<bool> {
        if !volume.exists(&self.dir)? {
            return Ok(false);
        }
        volume.create_dir_all_durable(&self.edits_dir)?;
        let mut writer = match FileWriter::create(volume, &self.path, checksums) {
            // Of an attempt that ended badly.
            Err(_) if volume.exists(&self.path)? => {
                volume.remove_file(&self.path)?;
                FileWriter::create(volume, &self.path, checksums)?
            }
            created => created?,
        };
        for (key, cells) in &self.held {
            writer.append_read(key, cells.bytes(), cells.len())?;
        }
        writer.finish()?;
        Ok(true)
    }
}

/// What is done with each of some, by up to so many threads, in their order; the first failure that is seen ends it.
fn each_of<T: Send, R: Send>(some: Vec<T>, threads: usize, of: impl Fn(T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let threads = threads.min(some.len());
    if threads <= 1 {
        return some.into_iter().map(of).collect();
    }
    let (left, failed) = (Mutex::new(some.into_iter().enumerate()), AtomicBool::new(false));
    let work = || -> Result<Vec<(usize, R)>> {
        let mut done = Vec::new();
        while !failed.load(Relaxed) {
            let next = left.lock().next();
            let Some((at, one)) = next else { break };
            done.push((at, of(one).inspect_err(|_| failed.store(true, Relaxed))?));
        }
        Ok(done)
    };
    let mut done = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut done = work();
        for other in others {
            let more = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            match (&mut done, more) {
                (Ok(done), Ok(more)) => done.extend(more),
                (Ok(_), Err(error)) => done = Err(error),
                (Err(_), _) => {}
            }
        }
        done
    })?;
    done.sort_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

/// What a held entry costs beside its cells.
const ENTRY_BYTES: usize = size_of::<(Key, CellBlock)>() + 64;

impl Splitter<'_> {
    fn take(&mut self, entry: Entry, target: &mut dyn SplitTarget) -> Result<()> {
        self.report.entries += 1;
        let wanted = entry.is_wanted();
        let Entry { key, cells, .. } = entry;
        if key.write_time >= self.options.nonces_since {
            self.report.nonces.extend(key.nonce);
        }
        let region = match self.regions.get_mut(&key.region) {
            Some(region) => region,
            None => {
                let destination = target.destination(&key.table, &key.region)?;
                let region = Region { destination, held: Vec::new(), held_bytes: 0 };
                self.regions.entry(Arc::clone(&key.region)).or_insert(region)
            }
        };
        let SplitDestination::Directory { flushed, .. } = &region.destination else { return Ok(()) };
        if flushed.is_some_and(|flushed| key.seq_id <= flushed) || !wanted {
            return Ok(());
        }
        let bytes = cells.bytes().len() + ENTRY_BYTES;
        region.held.push((key, cells));
        region.held_bytes += bytes;
        self.held_bytes += bytes;
        self.report.written += 1;
        if self.held_bytes > self.options.buffer_bytes {
            let mut held: Vec<_> = self.regions.iter().map(|(name, region)| (region.held_bytes, name)).collect();
            let writers = self.options.writers.clamp(1, held.len());
            held.select_nth_unstable_by(writers - 1, |a, b| b.cmp(a));
            let largest = held[..writers].iter().map(|(_, name)| Arc::clone(name)).collect();
            self.spill(largest)?;
        }
        Ok(())
    }

    fn spill_all(&mut self) -> Result<()> {
        self.spill(self.regions.keys().cloned().collect())
    }

    /// Writes what is held of each of these regions to a temporary file of its own.
    fn spill(&mut self, mut names: Vec<Arc<str>>) -> Result<()> {
        names.sort();
        let mut spills = Vec::with_capacity(names.len());
        for name in names {
            let Some(region) = self.regions.get_mut(&name) else { continue };
            let SplitDestination::Directory { dir, edits_dir, .. } = &region.destination else { continue };
            let ids = || region.held.iter().map(|(key, _)| key.seq_id);
            let (Some(first), Some(last)) = (ids().min(), ids().max()) else { continue };
            let path = edits_dir.join(format!("{:019}-{}-{}.temp", first.0, self.wal_name, self.options.worker));
            let (dir, edits_dir) = (dir.clone(), edits_dir.clone());
            self.held_bytes -= std::mem::take(&mut region.held_bytes);
            let held = std::mem::take(&mut region.held);
            self.parts.push(Part { path: path.clone(), first, last });
            spills.push(Spill { name, dir, edits_dir, path, held });
        }
        let (volume, checksums) = (self.volume, self.options.checksums);
        let gone = each_of(spills, self.options.writers, |spill| {
            Ok((!spill.write(volume, checksums)?).then_some((spill.name, spill.path, spill.held.len())))
        })?;
        for (name, path, entries) in gone.into_iter().flatten() {
            // Gone since it was asked for: making it again would bring a dead table back to life.
            if let Some(region) = self.regions.get_mut(&name) {
                region.destination = SplitDestination::Drop;
            }
            self.parts.retain(|part| part.path != path);
            self.report.written -= entries as u64;
        }
        Ok(())
    }

    /// Gives the temporary files their final names.
    fn publish(&mut self) -> Result<()> {
        // Those of a region in the order in which they were written, by one thread.
        let mut of_regions: Vec<(FilePath, Vec<&Part>)> = Vec::new();
        let mut places: HashMap<FilePath, usize> = HashMap::new();
        for part in &self.parts {
            let dir = part.path.parent();
            let at = *places.entry(dir.clone()).or_insert_with(|| {
                of_regions.push((dir, Vec::new()));
                of_regions.len() - 1
            });
            of_regions[at].1.push(part);
        }
        let volume = self.volume;
        let files = each_of(of_regions, self.options.writers, |(dir, parts)| {
            let files = parts.iter().map(|part| part.publish(volume)).collect::<Result<Vec<_>>>()?;
            volume.sync_dir(&dir)?;
            Ok(files)
        })?;
        self.report.files.extend(files.into_iter().flatten());
        self.parts.clear();
        Ok(())
    }

    fn remove_parts(&mut self) {
        for part in &self.parts {
            // They are in nobody's way, and the next attempt removes its own.
            let _ = self.volume.remove_file(&part.path);
        }
    }
}

/// Whether the file of recovered edits begins no later than `first`.
fn covers(volume: &dyn Volume, path: &FilePath, first: SeqId) -> Result<bool> {
    match Reader::open(volume, path).and_then(|mut reader| reader.next()) {
        Ok(entry) => Ok(entry.is_some_and(|entry| entry.key.seq_id <= first)),
        Err(Error::Corrupt { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
