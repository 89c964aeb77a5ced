//! What earlier lives left in their logs.

use base::{SeqId, TimestampMs};
use fs::{FilePath, Volume};
use model::Nonce;
use parking_lot::Mutex;
use region::RegionDirectories;
use std::collections::HashMap;
use std::sync::Arc;
use wal::marker::METAFAMILY;
use wal::{
    Entry, Gathered, HoldBudget, ReadLog, RecoveredLogs, SplitDestination, SplitOptions, SplitReport, SplitTarget,
};

/// What a split may always hold: with less it would write many small files.
const LEAST_SPLIT_BYTES: usize = 4 << 20;

/// Calls the function with 0, 1, ... up to the number, in any order, side by side if there are threads for it.
pub type ForEach<'a> = &'a dyn Fn(usize, &(dyn Fn(usize) + Sync));

/// How recovery may work.
pub struct Recovery<'a> {
    /// The new server's name.
    pub worker: &'a str,
    /// Bytes of edits that may be held in memory until their regions are open, the memstores to which they go not
    /// counted: with more in the logs, edits go to files.
    pub hold_bytes: u64,
    /// Operations that were logged before are too old to be tried again ([`regionserver::RegionServer::nonces_since`]).
    pub nonces_since: TimestampMs,
    /// How files are read, one a call.
    pub for_each: ForEach<'a>,
}

/// What the new server's logs take over from those of earlier ones ([`wal::Log::adopt_recovered`]).
#[derive(Debug, Default)]
pub struct Recovered {
    /// For the log of all regions but hbase:meta.
    pub others: RecoveredLogs,
    /// For the log of hbase:meta.
    pub meta: RecoveredLogs,
    /// Of operations that are done ([`regionserver::RegionServer::remember`]). A region tells of its own when it opens;
    /// nobody opens one that was split or merged since.
    pub nonces: Vec<Nonce>,
}

/// Reads the logs of servers that are no more. What they hold is in what is returned, or, where that is too much, split
/// into their regions' `recovered.edits` with the logs archived. Between `rootdir::root::prepare` and the start of a
/// master.
///
/// # Errors
/// A log that cannot be read or split: the start must end, for what it holds was promised.
pub fn recover_logs(volume: &dyn Volume, recovery: &Recovery<'_>) -> wal::Result<Recovered> {
    let mut recovered = Recovered::default();
    let wals = rootdir::wals_dir();
    if !volume.exists(&wals)? {
        return Ok(recovered);
    }
    let (mut left_bytes, mut nonces) = (recovery.hold_bytes, Vec::new());
    let regions = Regions { volume, flushed: Mutex::default() };
    for entry in volume.list(&wals)?.into_iter().filter(|entry| entry.is_dir) {
        let dir = wals.join(&entry.name);
        if let Some(quarantined) = wal::quarantine_orphaned_log(volume, &dir, &archive())? {
            tracing::warn!("{quarantined}");
        }
        // What one server's logs took in vain is the next one's.
        let budget = HoldBudget::new(left_bytes);
        match take_over(&regions, &dir, &budget, recovery)? {
            Some(gathered) => {
                left_bytes = budget.left_bytes();
                recovered.others.append(gathered.others);
                recovered.meta.append(gathered.meta);
                nonces.extend(gathered.nonces);
            }
            None => nonces.extend(split(volume, &dir, recovery)?.nonces),
        }
    }
    recovered.nonces = nonces.into_iter().map(|(group, number)| Nonce { group, number }).collect();
    Ok(recovered)
}

/// Which of a region's entries are in its files already is seen when it is opened, family by family.
fn directories(volume: &dyn Volume) -> impl SplitTarget {
    RegionDirectories { volume }
}

/// `None` when it is too much.
fn take_over(
    regions: &Regions<'_>,
    dir: &FilePath,
    budget: &HoldBudget,
    recovery: &Recovery<'_>,
) -> wal::Result<Option<Gathered>> {
    if recovery.hold_bytes == 0 {
        return Ok(None);
    }
    let volume = regions.volume;
    let entries = volume.list(dir)?.into_iter().filter(|entry| !entry.is_dir);
    let files: Vec<FilePath> = entries.map(|entry| dir.join(&entry.name)).collect();
    let needed = |entry: &Entry| regions.need(entry);
    let read: Vec<Mutex<wal::Result<Option<ReadLog>>>> = files.iter().map(|_| Mutex::new(Ok(None))).collect();
    let nonces_since = recovery.nonces_since;
    (recovery.for_each)(files.len(), &|index| {
        *read[index].lock() = ReadLog::read(volume, &files[index], budget, nonces_since, &needed)
    });
    let mut logs = Vec::with_capacity(read.len());
    for one in read {
        match one.into_inner()? {
            Some(log) => logs.push(log),
            None => return Ok(None),
        }
    }
    let Some(gathered) = wal::gather(logs, &mut directories(volume))? else { return Ok(None) };
    for path in &gathered.empty {
        wal::archive_log(volume, path, &archive())?;
    }
    let files = gathered.others.files() + gathered.meta.files();
    if files == 0 {
        volume.remove_dir_all(dir)?;
        volume.sync_dir(&dir.parent())?;
    } else {
        let edits = gathered.others.edits() + gathered.meta.edits();
        tracing::info!("{edits} edits in {files} files of {dir} wait for their regions to be opened");
    }
    Ok(Some(gathered))
}

/// By family, up to which id all edits are in store files; `None` for a region that is gone.
type Flushed = Option<Arc<HashMap<String, SeqId>>>;

/// What is known of the regions whose entries are read; asked of the disk when the first comes.
struct Regions<'a> {
    volume: &'a dyn Volume,
    /// By encoded name.
    flushed: Mutex<HashMap<Arc<str>, Flushed>>,
}

impl Regions<'_> {
    /// Whether an entry has a cell that no store file holds.
    fn need(&self, entry: &Entry) -> bool {
        let known = self.flushed.lock().get(&entry.key.region).cloned();
        let Some(flushed) = known.unwrap_or_else(|| self.look(&entry.key)) else { return false };
        entry.cells.iter().any(|cell| {
            let upto = std::str::from_utf8(cell.family()).ok().and_then(|family| flushed.get(family));
            cell.family() != METAFAMILY && upto.is_none_or(|upto| entry.key.seq_id > *upto)
        })
    }

    fn look(&self, key: &wal::Key) -> Flushed {
        let mut all = self.flushed.lock();
        let known = all.entry(Arc::clone(&key.region)).or_insert_with(|| {
            // What cannot be said now is needed; `gather` asks again, and says what went wrong.
            match directories(self.volume).destination(&key.table, &key.region) {
                Ok(SplitDestination::Drop) => None,
                Ok(SplitDestination::Directory { dir, .. }) => {
                    Some(Arc::new(region::flushed_seq_ids(self.volume, &dir)))
                }
                Err(_) => Some(Arc::default()),
            }
        });
        known.clone()
    }
}

fn archive() -> FilePath {
    rootdir::old_wals_dir()
}

fn split(volume: &dyn Volume, dir: &FilePath, recovery: &Recovery<'_>) -> wal::Result<SplitReport> {
    let most = SplitOptions::default();
    let options = SplitOptions {
        buffer_bytes: usize::try_from(recovery.hold_bytes)
            .map_or(most.buffer_bytes, |bytes| bytes.clamp(LEAST_SPLIT_BYTES, most.buffer_bytes)),
        worker: recovery.worker.to_owned(),
        nonces_since: recovery.nonces_since,
        ..most
    };
    let report = wal::split_directory(volume, dir, &archive(), &mut directories(volume), &options)?;
    if report.entries > 0 {
        tracing::info!("{} entries of {dir} go to {} files of recovered edits", report.entries, report.files.len());
    }
    Ok(report)
}
