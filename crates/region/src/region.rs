//! A region: one key range of a table, open on this server. What a server asks of it; each answer is given by the part that knows it.
//!
//! Follows: `HRegion`.

use crate::bulk_load::{BulkLoad, BulkLoaded, BulkLoader};
use crate::close::{self, CloseMode};
use crate::compact::{CompactionJob, CompactionKind, CompactionOutcome, Compactor, RetiredFiles, Throttle};
use crate::core::RegionCore;
use crate::error::{RegionError, Result};
use crate::flush::{FlushOutcome, FlushReason, FlushRequest, Flusher};
use crate::key_histogram::{self, KeyHistogram};
use crate::open::OpenRegion;
use crate::outbox::Outbox;
use crate::replica::Replica;
use crate::scan::open::RegionReader;
use crate::scan::region_scanner::RegionScanner;
use crate::split::Splitter;
use crate::stats::{self, RegionStats};
use crate::store_file::StoreFile;
use crate::write::{Applied, Checked, WritePace, Writer, Written};
use crate::{RegionEnv, RegionSettings};
use base::{ReadMode, ReadPoint, SeqId};
use cell::CellBuffer;
use hfile::Residency;
use model::{Condition, Get, Mutation, Nonce, RegionInfo, Scan, TableDescriptor};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A nonce that replayed edits carried: its operation is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveredNonce {
    /// The nonce.
    pub nonce: Nonce,
    /// When its entry was written (milliseconds).
    pub write_time_ms: i64,
}

/// An open region. Shared between threads; see the crate's header.
#[derive(Debug)]
pub struct Region {
    core: RegionCore,
    recovered_nonces: Mutex<Vec<RecoveredNonce>>,
}

/// From one opening to its close.
impl Region {
    /// Writes the directory of a new region, durably. May be repeated.
    ///
    /// # Errors
    /// When the volume fails.
    pub fn create(env: &RegionEnv, info: &RegionInfo, table: &TableDescriptor) -> Result<()> {
        rootdir::create_region_dir_durably(&*env.volume, info, table)
            .map_err(|e| RegionError::volume(info.encoded_name(), e))
    }

    /// Opens a region: its files, then what recovered edits hold beyond them. An empty region costs a listing of its
    /// directory, and a sync and a listing of each family's; nothing is written.
    ///
    /// # Errors
    /// When a file cannot be read or is damaged.
    pub fn open(open: OpenRegion) -> Result<Arc<Region>> {
        let (core, nonces) = open.open()?;
        Ok(Arc::new(Region { core, recovered_nonces: Mutex::new(nonces) }))
    }

    /// Opens a read replica: it shows the files that its primary has now, is read only, and writes nothing. Where `primary` is open here, too,
    /// they share the files; else it finds those that the primary's directory has.
    ///
    /// # Errors
    /// `open` is no replica, or not of `primary`; what [`Region::open`] refuses of a table; a file cannot be read or is damaged.
    pub fn open_replica(open: OpenRegion, primary: Option<&Region>) -> Result<Arc<Region>> {
        let name = || open.info.name_string();
        if !open.info.is_replica() {
            return Err(RegionError::DoNotRetry(format!("{} is no read replica of any region", name())));
        }
        if let Some(primary) = primary {
            if open.info.replica(0) != primary.info().replica(0) {
                let other = primary.info().name_string();
                return Err(RegionError::DoNotRetry(format!("{} is no read replica of {other}", name())));
            }
            primary.core.check_open()?;
        }
        let core = open.open_replica(primary.map(|primary| &primary.core))?;
        Ok(Arc::new(Region { core, recovered_nonces: Mutex::default() }))
    }

    /// Has a read replica show the files that its `primary`, which is open here, has now; whether they are others than before.
    pub fn refresh(&self, primary: &Region) -> bool {
        self.info().is_replica() && Replica::new(&self.core).share(&primary.core)
    }

    /// What its read replicas elsewhere are to be told; `None` where it has none, or nobody tells them.
    pub fn outbox(&self) -> Option<&Outbox> {
        self.core.outbox.as_ref()
    }

    /// Says in the log that there is nothing to flush: read replicas that wait for a flush have all then. False, and it says nothing, where there is
    /// something by now, or the log has no room.
    pub fn tell_nothing_to_flush(&self) -> bool {
        Flusher::new(&self.core).tell_nothing()
    }

    /// Takes an entry of the primary's log: of a read replica, which shows it from now on. Blocks where it tells of files.
    ///
    /// # Errors
    /// It is no read replica; it closes; the entry is of another region, or cannot be read: nothing of it was taken. A file that it tells of cannot
    /// be read.
    pub fn replay(&self, entry: &wal::InheritedEdit) -> Result<()> {
        if !self.info().is_replica() {
            let name = self.info().name_string();
            return Err(RegionError::DoNotRetry(format!(
                "{name} is no read replica: it takes no entries of other logs"
            )));
        }
        Replica::new(&self.core).replay(entry)
    }

    /// Has a read replica show the files that its primary's directory has now; whether they are others than before. Memory that they stand for is
    /// given back. Lists a directory for each family, and opens the files that are new.
    ///
    /// # Errors
    /// It closes; a file cannot be read or is damaged: it shows what it showed.
    pub fn refresh_files(&self) -> Result<bool> {
        if self.info().is_replica() { Replica::new(&self.core).refresh() } else { Ok(false) }
    }

    /// A read replica answers reads from now on, or does not: what it shows may be too old, or have gaps. Whether that is new.
    pub fn set_reads_enabled(&self, on: bool) -> bool {
        self.info().is_replica() && self.core.serving.set_readable(on)
    }

    /// Whether a read replica is open and answers no reads.
    pub fn are_reads_disabled(&self) -> bool {
        self.core.serving.is_unreadable()
    }

    /// Stops serving. With [`CloseMode::Flush`] everything in memory is in files when it returns; the region may then be
    /// opened elsewhere. New work is refused from the beginning on, readers in flight get [`RegionError::NotServing`] at
    /// their next step. May be repeated after an error.
    ///
    /// # Errors
    /// When a flush fails: the region stays closing, its edits are in the log.
    pub fn close(&self, mode: CloseMode) -> Result<()> {
        close::close(&self.core, mode)
    }

    /// Whether this volume failed since files of the region were opened there, and is that in the way of reading them: the region is to be closed, and
    /// opened again when the volume is back. Looks at every file's handle, and asks no disk.
    pub fn is_lost_with(&self, volume: &str) -> bool {
        let is_lost = |file: &Arc<StoreFile>| file.reader.lost_with().is_some_and(|lost_with| lost_with == volume);
        self.core.stores.iter().any(|store| store.peek().files.iter().any(is_lost))
    }

    /// The volumes that have files of the region, beside that of the names; also of one that is closed. Looks at every file's handle, and asks no
    /// disk.
    pub fn volumes(&self) -> BTreeSet<String> {
        let places = |store: &crate::store::Store| -> Vec<String> {
            store.peek().files.iter().filter_map(|file| file.reader.place()).collect()
        };
        self.core.stores.iter().flat_map(places).collect()
    }

    /// Whether it takes no new work.
    pub fn is_closing(&self) -> bool {
        self.core.serving.is_closing()
    }

    /// The nonces that replayed edits carried; they are given once.
    pub fn recovered_nonces(&self) -> Vec<RecoveredNonce> {
        std::mem::take(&mut self.recovered_nonces.lock())
    }
}

/// What it is.
impl Region {
    /// Which region.
    pub fn info(&self) -> &RegionInfo {
        &self.core.info
    }

    /// Its encoded name.
    pub fn name(&self) -> &Arc<str> {
        self.core.name()
    }

    /// Its table.
    pub fn table(&self) -> &Arc<TableDescriptor> {
        &self.core.table
    }

    /// The server's settings under what its table says.
    pub fn settings(&self) -> &RegionSettings {
        &self.core.settings
    }

    /// What it was opened with.
    pub fn env(&self) -> &Arc<RegionEnv> {
        &self.core.env
    }

    /// The first sequence id of this opening (`seqnumDuringOpen`).
    pub fn open_seq_id(&self) -> SeqId {
        self.core.open_seq_id
    }

    /// What a read that starts now may see.
    pub fn read_point(&self) -> ReadPoint {
        self.core.read_point()
    }

    /// What every reader to come and every open scanner can see: flushes and compactions keep the versions of it.
    pub fn smallest_read_point(&self) -> ReadPoint {
        self.core.smallest_read_point()
    }

    /// Memory held by the memstores.
    pub fn memstore_bytes(&self) -> u64 {
        self.core.accounting.heap_bytes()
    }

    /// How long a write of `bytes` is to wait for the region's flushes and compactions, microseconds, and notes it as coming; 0 where they keep
    /// up. Costs two loads then. See [`crate::backpressure`].
    #[inline]
    pub fn write_wait_us(&self, bytes: u64) -> u64 {
        self.core.write_wait_us(bytes)
    }

    /// The region's numbers now. Costs a walk over its files in memory.
    pub fn stats(&self) -> RegionStats {
        stats::of_region(&self.core)
    }

    /// Bytes of the store files that are its own, as quotas of space count them: links stand for files of another table. Costs a walk over
    /// its files in memory.
    pub fn own_files_bytes(&self) -> u64 {
        stats::own_files_bytes(&self.core)
    }

    /// Each store file's numbers now.
    pub fn file_stats(&self) -> Vec<stats::FileStats> {
        stats::of_files(&self.core)
    }

    /// The region's rows in at most `most` parts of its key range that hold about as many bytes each, with their bytes and rows: by the indexes of its files
    /// and a sample of its memory. A row that was written several times may count as often. Reads no file; costs a walk over the roots of the
    /// files' indexes.
    pub fn key_histogram(&self, most: usize) -> KeyHistogram {
        key_histogram::of_region(&self.core, most)
    }

    /// Paths of a family's store files, relative to the root directory. `None` for a family that the table does not have.
    pub fn store_file_paths(&self, family: &[u8]) -> Option<Vec<String>> {
        let store = self.core.store(family)?;
        Some(store.view().files.iter().map(|file| file.reader.path().to_string()).collect())
    }

    pub(crate) fn core(&self) -> &RegionCore {
        &self.core
    }
}

/// Reads.
impl Region {
    /// Opens a scan.
    ///
    /// # Errors
    /// An unknown family, columns in a raw scan, a closed region, an unreadable file.
    pub fn scanner(self: &Arc<Region>, scan: &Scan) -> Result<RegionScanner> {
        self.scanner_with(scan, Residency::MayRead)
    }

    /// As [`Region::scanner`]; with [`Residency::CachedOnly`] neither this nor the scanner touches a file or looks at more than
    /// some thousand cells, until [`RegionScanner::may_read`] is called.
    ///
    /// # Errors
    /// [`RegionError::WouldBlock`], here or from the scanner's steps, of no scanner else: the scan may be opened anew with
    /// [`Residency::MayRead`].
    pub fn scanner_with(self: &Arc<Region>, scan: &Scan, residency: Residency) -> Result<RegionScanner> {
        RegionScanner::open(self, scan, residency)
    }

    /// Adds the cells that `get` asks for to `out`. On an error `out` is as before; after
    /// [`RegionError::WouldBlock`] the same call may be made again with [`Residency::MayRead`].
    ///
    /// # Errors
    /// A row outside the region, an unknown family, a closed region, an unreadable file, a failing filter.
    pub fn get(&self, get: &Get, out: &mut CellBuffer, residency: Residency) -> Result<()> {
        RegionReader::new(&self.core).get(get, out, residency)
    }

    /// As [`Region::get`], within a budget that several reads share or with pauses.
    ///
    /// # Errors
    /// As [`Region::get`]; [`RegionError::WouldBlock`] also when the budget is used up, [`RegionError::Interrupted`] at a pause.
    pub fn get_within(&self, get: &Get, out: &mut CellBuffer, mode: ReadMode<'_>) -> Result<()> {
        RegionReader::new(&self.core).get_within(get, out, mode)
    }

    /// Whether [`Region::get_within`] would find a cell.
    ///
    /// # Errors
    /// As [`Region::get_within`].
    pub fn exists(&self, get: &Get, mode: ReadMode<'_>) -> Result<bool> {
        RegionReader::new(&self.core).exists(get, mode)
    }
}

/// Writes.
impl Region {
    /// Writes each mutation by itself: one that is refused fails alone, and rows are atomic one by one. Increments,
    /// Appends and deletes of the latest version may read the disk.
    ///
    /// # Errors
    /// Only when nothing was tried: not serving, read only, too busy.
    pub fn apply(&self, mutations: &[Mutation]) -> Result<Applied> {
        self.apply_at_pace(mutations, None)
    }

    /// As [`Region::apply`], in pieces, each of which waits as `pace` says: so a large batch leaves room for others. A row is never cut, and
    /// becomes visible when the log has its piece. When it is told to end, mutations that are not written yet fail with what it says.
    ///
    /// # Errors
    /// As [`Region::apply`].
    pub fn apply_at_pace(&self, mutations: &[Mutation], pace: Option<&dyn WritePace>) -> Result<Applied> {
        Writer::new(&self.core).apply_at_pace(mutations, pace)
    }

    /// Writes an Increment or Append under its own nonce.
    ///
    /// # Errors
    /// As [`Region::mutate_rows`].
    pub fn increment_or_append(&self, mutation: &Mutation) -> Result<Written> {
        self.mutate_rows(std::slice::from_ref(mutation), mutation.nonce)
    }

    /// Writes all mutations or none, as one log entry under one sequence id. They may belong to several rows of the
    /// region. Increments and Appends see the state before the call.
    ///
    /// # Errors
    /// The first mutation that is refused; nothing is written then.
    pub fn mutate_rows(&self, mutations: &[Mutation], nonce: Option<Nonce>) -> Result<Written> {
        self.mutate_rows_with(mutations, nonce, ReadMode::UNPACED)
    }

    /// As [`Region::mutate_rows`]; from memory it never touches a file, and does no more than its budget allows.
    ///
    /// # Errors
    /// [`RegionError::WouldBlock`]: nothing was written, the same call may be made again where it may read.
    pub fn mutate_rows_with(
        &self,
        mutations: &[Mutation],
        nonce: Option<Nonce>,
        mode: ReadMode<'_>,
    ) -> Result<Written> {
        Writer::new(&self.core).mutate_rows(mutations, nonce, mode)
    }

    /// Writes all mutations, which must be of the condition's row, if the condition holds.
    ///
    /// # Errors
    /// As [`Region::mutate_rows`].
    pub fn check_and_mutate(
        &self,
        condition: &Condition,
        mutations: &[Mutation],
        nonce: Option<Nonce>,
    ) -> Result<Checked> {
        self.check_and_mutate_with(condition, mutations, nonce, ReadMode::UNPACED)
    }

    /// As [`Region::check_and_mutate`]; from memory it never touches a file, and does no more than its budget allows.
    ///
    /// # Errors
    /// [`RegionError::WouldBlock`]: nothing was written, the same call may be made again where it may read.
    pub fn check_and_mutate_with(
        &self,
        condition: &Condition,
        mutations: &[Mutation],
        nonce: Option<Nonce>,
        mode: ReadMode<'_>,
    ) -> Result<Checked> {
        Writer::new(&self.core).check_and_mutate(condition, mutations, nonce, mode)
    }

    /// Writes all mutations, of whichever rows of the region, if every one of the conditions, of whichever rows, holds.
    /// Conditions and mutations are of one moment: all their rows are locked together.
    ///
    /// # Errors
    /// As [`Region::mutate_rows`].
    pub fn check_and_mutate_rows(
        &self,
        conditions: &[Condition],
        mutations: &[Mutation],
        nonce: Option<Nonce>,
    ) -> Result<Checked> {
        Writer::new(&self.core).check_and_mutate_rows(conditions, mutations, nonce)
    }
}

/// Its files.
impl Region {
    /// Whether and why the region should be flushed now.
    pub fn needs_flush(&self) -> Option<FlushReason> {
        Flusher::new(&self.core).reason()
    }

    /// Writes memstores to files.
    ///
    /// # Errors
    /// An unknown family; a full or failing disk: the edits stay in memory and in the log, and the next flush tries
    /// again; a failed log.
    pub fn flush(&self, request: &FlushRequest) -> Result<FlushOutcome> {
        Flusher::new(&self.core).flush(request)
    }

    /// Whether some store has enough files for a compaction, or was asked for a major one.
    pub fn needs_compaction(&self) -> bool {
        Compactor::new(&self.core).is_needed()
    }

    /// The next selections of this family (of all, without one) are major compactions. Where there is no file yet the
    /// request waits for a selection that somebody else asks for, as in HBase: the first flush does not bring it about.
    ///
    /// # Errors
    /// An unknown family.
    pub fn request_major_compaction(&self, family: Option<&[u8]>) -> Result<()> {
        Compactor::new(&self.core).request_major(family)
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
        CompactionJob::select(self, family, kind)
    }

    /// Rewrites the job's files as one and publishes it.
    ///
    /// # Errors
    /// A file that cannot be read, a full or failing disk: nothing has changed then.
    pub fn compact(&self, job: CompactionJob, throttle: &dyn Throttle) -> Result<CompactionOutcome> {
        Compactor::new(&self.core).compact(job, throttle)
    }

    /// Archives the files that compactions have replaced, no reader holds any more, and of which the log tells durably; returns how many.
    /// To be called now and then. Waits neither for a flush nor for the log: what is not ready stays until the next call.
    ///
    /// # Errors
    /// When the volume fails; the rest stays for the next call.
    pub fn archive_compacted_files(&self) -> Result<usize> {
        RetiredFiles::new(&self.core).archive_ready()
    }

    /// Loads files into their stores, all or none, durably and after a crash too. Blocks; large files that must be
    /// copied take their time, during which the region works on. When it fails, files that were moved are back where
    /// they were; with [`RegionError::RollbackFailed`] they are where the next opening looks for them, and nobody may move or remove them.
    ///
    /// # Errors
    /// Not serving; an unknown family (not to be repeated); a file that is not there or is no HFile; the volume or the
    /// log.
    pub fn bulk_load(&self, load: &BulkLoad) -> Result<BulkLoaded> {
        BulkLoader::new(&self.core).load(load)
    }

    /// Drops the cached blocks of every store file; how many there were. Looks at every block of the cache for each file.
    pub fn evict_blocks(&self) -> usize {
        let evict = |file: &Arc<crate::StoreFile>| file.reader.evict();
        let of_store = |store: &crate::store::Store| store.view().files.iter().map(evict).sum::<usize>();
        self.core.stores.iter().map(of_store).sum()
    }

    /// The server's settings ([`crate::RegionEnv`]) are others now: those of compactions and new files count from now on, the rest when the region
    /// is opened again. Follows: `HStore#onConfigurationChange`.
    pub fn update_settings(&self) {
        let core = &self.core;
        let of_table = crate::open::of_table(&core.env.settings.load(), &core.table, &core.info);
        core.stores.iter().for_each(|store| store.set_settings(&of_table, &core.info));
    }

    /// Whether and where it is to be split.
    pub fn splitter(&self) -> Splitter<'_> {
        Splitter::new(&self.core)
    }
}
