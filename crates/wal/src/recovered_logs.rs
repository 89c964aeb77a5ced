//! Logs of servers that are no more, read so that a new log can take them over: their edits wait in memory for their regions to be
//! opened, and the files stay where they are until everything in them has been flushed. Nothing is written twice, and nothing but
//! reading stands between a crash and service.
//!
//! It is what distributed log replay was for in HBase (HBASE-7006), without its trouble: one process reads the log, opens the regions and
//! answers for the files. Where there is more in the logs than memory allows, or where a region is not opened, edits go
//! to files as [`crate::split_directory`] makes them.

use crate::split::{BeyondWatermark, Doubtful, SplitDestination, SplitTarget, settle};
use crate::{Entry, Reader, Result};
use base::{SeqId, TimestampMs};
use cell::CellBlock;
use fs::{FilePath, Volume};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An edit that no store file may hold yet.
#[derive(Clone, Debug)]
pub struct InheritedEdit {
    /// Every cell's sequence id.
    pub seq_id: SeqId,
    /// When it was made.
    pub write_time: TimestampMs,
    /// (group, nonce) of the client's operation.
    pub nonce: Option<(u64, u64)>,
    /// Its cells.
    pub cells: CellBlock,
}

/// What an edit costs beside its cells.
const EDIT_BYTES: usize = size_of::<InheritedEdit>() + 64;

/// How much of a log is let go at a time.
const FORGET_BYTES: u64 = 4 << 20;

/// Bytes of edits that may be held, shared by all who read.
#[derive(Debug)]
pub struct HoldBudget {
    left: AtomicU64,
}

impl HoldBudget {
    /// A budget of so many bytes.
    pub fn new(bytes: u64) -> HoldBudget {
        HoldBudget { left: AtomicU64::new(bytes) }
    }

    /// What nobody has taken yet.
    pub fn left_bytes(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes as u64)).is_ok()
    }
}

/// One log, read.
#[derive(Debug)]
pub struct ReadLog {
    path: FilePath,
    len_bytes: u64,
    /// By (table, region), in the order of the file.
    edits: BTreeMap<(Arc<str>, Arc<str>), Vec<InheritedEdit>>,
    /// The highest id of each region, whatever has it.
    used: HashMap<Arc<str>, SeqId>,
    /// Entries that may also be in a later file.
    beyond_watermark: Vec<(Arc<str>, SeqId)>,
}

impl ReadLog {
    /// Makes a log durable and reads it; `None` when it does not fit into the budget, or when nobody can say that what is read from it
    /// is on the disk. Several may be read side by side. `needed` is asked about each entry with cells for a region: one that is not
    /// needed is passed over, but for its nonce if it was written at `nonces_since` or later.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] when it is damaged, else what reading said.
    pub fn read(
        volume: &dyn Volume,
        path: &FilePath,
        budget: &HoldBudget,
        nonces_since: TimestampMs,
        needed: &dyn Fn(&Entry) -> bool,
    ) -> Result<Option<ReadLog>> {
        settle(volume, path)?;
        // The process that wrote it may have been killed before its last sync. What is read is served, and must not go any more. After a failed
        // sync a second one proves nothing: then only a copy helps.
        if volume.sync_file(path).is_err() {
            return Ok(None);
        }
        let mut reader = Reader::open(volume, path)?;
        let mut log = ReadLog {
            path: path.clone(),
            len_bytes: 0,
            edits: BTreeMap::new(),
            used: HashMap::new(),
            beyond_watermark: Vec::new(),
        };
        let mut beyond_watermark = BeyondWatermark::default();
        let mut forgotten = 0;
        while let Some(entry) = reader.next()? {
            beyond_watermark.note(&reader, &entry);
            // It is read once: what is behind makes room for what comes, in memory that the system has at hand.
            if entry.offset - forgotten >= FORGET_BYTES {
                reader.forget_range(forgotten, entry.offset - forgotten);
                forgotten = entry.offset;
            }
            let used = match log.used.get_mut(&entry.key.region) {
                Some(used) => used,
                None => log.used.entry(Arc::clone(&entry.key.region)).or_default(),
            };
            *used = (*used).max(entry.key.seq_id);
            if !entry.is_wanted() {
                continue;
            }
            let needed = needed(&entry);
            let crate::Key { region, table, seq_id, write_time, nonce, .. } = entry.key;
            if !needed && (nonce.is_none() || write_time < nonces_since) {
                continue;
            }
            let cells = if needed { entry.cells } else { CellBlock::default() };
            if !budget.take(cells.bytes().len() + EDIT_BYTES) {
                return Ok(None);
            }
            log.edits.entry((table, region)).or_default().push(InheritedEdit { seq_id, write_time, nonce, cells });
        }
        log.len_bytes = reader.position();
        log.beyond_watermark = beyond_watermark.into_ids();
        Ok(Some(log))
    }
}

/// What [`crate::Log::adopt_recovered`] takes over.
#[derive(Debug, Default)]
pub struct RecoveredLogs {
    pub(crate) files: Vec<InheritedFile>,
    pub(crate) edits: HashMap<Arc<str>, Vec<InheritedEdit>>,
    /// The highest id of each region: what has it may be an edit that nobody needs or a marker, and yet no other may have it.
    pub(crate) used: HashMap<Arc<str>, SeqId>,
}

#[derive(Debug)]
pub(crate) struct InheritedFile {
    pub(crate) path: FilePath,
    pub(crate) len_bytes: u64,
    pub(crate) highest: BTreeMap<Arc<str>, SeqId>,
}

impl RecoveredLogs {
    /// Adds what later servers left.
    pub fn append(&mut self, later: RecoveredLogs) {
        self.files.extend(later.files);
        for (region, mut edits) in later.edits {
            self.edits.entry(region).or_default().append(&mut edits);
        }
        self.note_used(later.used);
    }

    fn note_used(&mut self, ids: HashMap<Arc<str>, SeqId>) {
        for (region, id) in ids {
            let used = self.used.entry(region).or_default();
            *used = (*used).max(id);
        }
    }

    /// How many edits there are.
    pub fn edits(&self) -> usize {
        self.edits.values().map(Vec::len).sum()
    }

    /// How many files.
    pub fn files(&self) -> usize {
        self.files.len()
    }
}

/// What was read of one server's logs.
#[derive(Debug, Default)]
pub struct Gathered {
    /// For the log of all regions but hbase:meta.
    pub others: RecoveredLogs,
    /// For the log of hbase:meta.
    pub meta: RecoveredLogs,
    /// Files without an edit that anybody needs.
    pub empty: Vec<FilePath>,
    /// (group, nonce) of clients' operations, be their regions there or not.
    pub nonces: Vec<(u64, u64)>,
}

/// Puts together what was read from one server's logs, in the order of the files. `None` when a file has entries that do not belong
/// there by its name: such a region would look for its edits in the wrong log.
///
/// # Errors
/// When `target` cannot say where a region is.
pub fn gather(logs: Vec<ReadLog>, target: &mut dyn SplitTarget) -> Result<Option<Gathered>> {
    let is_meta = |path: &FilePath| path.name().ends_with(".meta");
    if logs.iter().any(|log| log.edits.keys().any(|(table, _)| (**table == *"hbase:meta") != is_meta(&log.path))) {
        return Ok(None);
    }
    let mut gathered = Gathered::default();
    // Up to which id a region's edits are not needed; `None`: any, for the region is gone.
    let mut needless: HashMap<Arc<str>, Option<SeqId>> = HashMap::new();
    let mut doubtful = Doubtful::new();
    for log in logs {
        let side = if is_meta(&log.path) { &mut gathered.meta } else { &mut gathered.others };
        side.note_used(log.used);
        gathered.nonces.extend(log.edits.values().flatten().filter_map(|edit| edit.nonce));
        let mut highest = BTreeMap::new();
        for ((table, region), mut edits) in log.edits {
            if !needless.contains_key(&region) {
                let upto = match target.destination(&table, &region)? {
                    SplitDestination::Directory { flushed, .. } => Some(flushed.unwrap_or(SeqId(0))),
                    SplitDestination::Drop => None,
                };
                needless.insert(Arc::clone(&region), upto);
            }
            let Some(upto) = needless[&region] else { continue };
            edits.retain(|edit| edit.seq_id > upto && !doubtful.contains(&(Arc::clone(&region), edit.seq_id)));
            let Some(last) = edits.iter().map(|edit| edit.seq_id).max() else { continue };
            highest.insert(Arc::clone(&region), last);
            side.edits.entry(region).or_default().append(&mut edits);
        }
        doubtful.extend(log.beyond_watermark);
        if highest.is_empty() {
            gathered.empty.push(log.path);
        } else {
            side.files.push(InheritedFile { path: log.path, len_bytes: log.len_bytes, highest });
        }
    }
    Ok(Some(gathered))
}
