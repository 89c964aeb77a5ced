//! The live log: appends, tickets, what is known of its files. Syncing is in `log/group.rs`, files come and go in
//! `log/files.rs`.
//!
//! Two locks. `state` is short: appenders copy under it, waiters look. `disk` is held by whoever writes, syncs, rolls; nobody waits for it
//! who could wait for its result instead. Order: `roll`, then `disk`, then `state`. No file operation under `state`.
//!
//! Places: a *position* counts the bytes of entries since the log was made, over all files; tickets and levels are compared by it. The offset in
//! the current file is `position - file_start + header_len`.

mod files;
mod group;
mod inherited;
mod state;

use crate::batch::Batch;
use crate::key::{EntryKey, KeyParts, encode};
use crate::ticket::Done;
use crate::{Error, Level, LogOptions, Result, SequenceIdAccounting, SyncFailed, SyncMode, Ticket, header, seal};
use base::metrics::{Histogram, Unit};
use base::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use base::sync::{Condvar, Mutex, RankedGuard, RankedMutex};
use base::{Clock, SeqId};
use fs::{FilePath, Volume};
#[cfg(not(feature = "shuttle"))]
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use state::{ClosedFile, Disk, GroupState, Health, OpenFile, Predecessor, Ready, State, Syncer};

pub use files::{LogFile, RegionToFlush, Rolled};
pub use inherited::Inherited;

/// The order in which a thread takes the log's locks; debug builds hold it to that.
mod rank {
    pub(super) const INHERITED: u8 = 0;
    pub(super) const ROLL: u8 = 1;
    pub(super) const DISK: u8 = 2;
    pub(super) const STATE: u8 = 3;
}

/// An append that takes longer is slow. Follows: `MetricsWAL#postAppend`.
const SLOW_APPEND_US: u64 = 1_000_000;

/// A server's write-ahead log. One for all its regions (and one more for hbase:meta).
pub struct Log {
    volume: Arc<dyn Volume>,
    /// A write crosses a network: only the syncer thread, if there is one, makes it.
    is_remote: bool,
    /// What was written survives a file that broke: its lease is recovered.
    written_survives: bool,
    dir: FilePath,
    name: String,
    options: LogOptions,
    clock: Arc<dyn Clock>,
    /// Bytes of a file before its first entry.
    header_len: u64,
    /// Copies of what `state` says, for looking without the lock.
    written: AtomicU64,
    synced: AtomicU64,
    state: RankedMutex<State>,
    /// Something got done, failed or stalled.
    progress: Condvar,
    /// There is work for the syncer thread.
    work: Condvar,
    /// The file wants to be rolled, or the log ends.
    roll_wanted: Condvar,
    disk: RankedMutex<Disk>,
    roll: RankedMutex<()>,
    last_file_ms: AtomicI64,
    /// How long syncs take.
    sync_times: Histogram,
    /// How long appends take: waiting for the lock and copying; no disk.
    append_times: Histogram,
    /// Bytes of entries.
    append_sizes: Histogram,
    /// Appends that took longer than [`SLOW_APPEND_US`].
    slow_appends: AtomicU64,
    /// Edits of servers that are no more, for regions that were not opened yet. Before every other lock.
    inherited: RankedMutex<inherited::Waiting>,
    /// The highest id of each region in what was taken over, or that an opening used which failed.
    used_ids: Mutex<HashMap<Arc<str>, SeqId>>,
}

/// Counters since the log was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Entries appended.
    pub entries: u64,
    /// Bytes appended.
    pub bytes: u64,
    /// Groups written.
    pub groups: u64,
    /// Syncs done.
    pub syncs: u64,
    /// Microseconds spent in syncs.
    pub sync_us: u64,
    /// The longest of them.
    pub max_sync_us: u64,
    /// Times the log's thread waited for writers to share a sync, and those it waited for all came.
    pub commit_delays: u64,
    /// Those it waited for did not all come.
    pub commit_delays_in_vain: u64,
    /// Times the log moved to a fresh file because of a failed write or sync.
    pub rescues: u64,
    /// Files begun.
    pub files: u64,
    /// Rolls that were asked for because a file had reached its size.
    pub size_rolls: u64,
    /// Rolls because syncs were slow.
    pub slow_sync_rolls: u64,
    /// Rolls because too few machines wrote the file.
    pub low_replication_rolls: u64,
    /// Rolls that were asked for, for whatever reason.
    pub asked_rolls: u64,
    /// Bytes appended and not yet synced, now.
    pub waiting_bytes: u64,
    /// Bytes appended and not yet as safe as the log's mode asks, or as somebody asked, now.
    pub owed_bytes: u64,
}

impl LogStats {
    fn count_sync(&mut self, took_us: u64) {
        self.syncs += 1;
        self.sync_us += took_us;
        self.max_sync_us = self.max_sync_us.max(took_us);
    }
}

/// Where a key is written before the lock is taken.
#[cfg(not(feature = "shuttle"))]
fn with_scratch<T>(work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    thread_local!(static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) });
    SCRATCH.with_borrow_mut(work)
}

/// Shuttle's threads share one real thread, and whatever is local to it.
#[cfg(feature = "shuttle")]
fn with_scratch<T>(work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    work(&mut Vec::new())
}

impl Log {
    /// Makes the log's directory and its first file, durably. `server_name` is `host,port,startcode`; files are named
    /// after it and the clock.
    ///
    /// # Errors
    /// When the directory or the file cannot be made.
    pub fn create(
        volume: Arc<dyn Volume>,
        dir: FilePath,
        server_name: &str,
        options: LogOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Log>> {
        let header_len = header::encode(options.checksums).len() as u64;
        let capabilities = volume.capabilities();
        let log = Arc::new(Log {
            volume,
            is_remote: capabilities.remote,
            written_survives: capabilities.flushed_survives_appender,
            dir,
            name: format!("{}{}", files::url_encode(server_name), options.kind),
            options,
            clock,
            header_len,
            written: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            state: RankedMutex::new(rank::STATE, State::default()),
            progress: Condvar::new(),
            work: Condvar::new(),
            roll_wanted: Condvar::new(),
            disk: RankedMutex::new(rank::DISK, Disk::default()),
            sync_times: Histogram::new(Unit::Micros),
            append_times: Histogram::new(Unit::Micros),
            append_sizes: Histogram::new(Unit::Bytes),
            slow_appends: AtomicU64::new(0),
            roll: RankedMutex::new(rank::ROLL, ()),
            last_file_ms: AtomicI64::new(0),
            inherited: RankedMutex::new(rank::INHERITED, inherited::Waiting::default()),
            used_ids: Mutex::default(),
        });
        log.volume.create_dir_all_durable(&log.dir)?;
        let file = log.create_file()?;
        log.state.lock().current = Some(file.path.clone());
        log.disk.lock().file = Some(file);
        Ok(log)
    }

    /// Appends an entry: `run` is `count` cells in cell-block layout, LATEST timestamps already resolved. Copies once and returns;
    /// the ticket tells when it is safe. A region's ids must come in growing order. The syncer thread, if there is one, begins at once.
    ///
    /// Never waits for the disk, except that without a syncer thread the caller itself syncs when
    /// [`LogOptions::max_waiting_bytes`] wait. With one it is refused as busy.
    ///
    /// # Errors
    /// [`Error::Busy`], [`Error::Full`]: not appended, to be tried again. [`Error::Failed`], [`Error::Closed`]: never again.
    pub fn append(self: &Arc<Self>, key: &EntryKey<'_>, run: &[u8], count: usize) -> Result<Ticket> {
        let ticket = self.append_deferred(key, run, count)?;
        let mut state = self.state.lock();
        self.wake_syncer(&mut state);
        Ok(ticket)
    }

    /// Begins a batch: entries that are appended through it are written together.
    pub fn batch(self: &Arc<Self>) -> Batch {
        Batch::new(self)
    }

    /// As [`Log::append`], but wakes nobody: what [`Batch`] is for.
    pub(crate) fn append_deferred(self: &Arc<Self>, key: &EntryKey<'_>, run: &[u8], count: usize) -> Result<Ticket> {
        debug_assert_eq!(cell::CellIter::over_checked(run, SeqId(0)).count(), count);
        let begun_us = self.clock.monotonic_us();
        let sealed = self.options.checksums;
        with_scratch(|scratch| {
            let (more, tail_len): (&[u8], usize) = if sealed { (&seal::HEAD, seal::TAIL_LEN) } else { (&[], 0) };
            let head = encode(scratch, &KeyParts::of_append(key, count), more, tail_len);
            let crc = if sealed { seal::body_crc(head, run) } else { 0 };
            let mut state = self.room_for(head.len() + tail_len + run.len())?;
            state.buffer.reserve(head.len() + tail_len + run.len());
            state.buffer.extend_from_slice(head);
            if sealed {
                let offset = self.offset(&state, state.appended);
                let synced = match state.predecessor.named() {
                    Some(follows) => follows.encode(),
                    None => self.offset(&state, state.synced),
                };
                state.buffer.extend_from_slice(&seal::tail(crc, offset, synced));
            }
            state.buffer.extend_from_slice(run);
            let len = (head.len() + tail_len + run.len()) as u64;
            state.appended += len;
            state.stats.entries += 1;
            state.stats.bytes += len;
            state.accounting.append(key.region, key.families, key.seq_id);
            let position = state.appended;
            drop(state);
            self.append_sizes.record(len);
            let took_us = self.clock.monotonic_us().saturating_sub(begun_us);
            self.append_times.record(took_us);
            if took_us > SLOW_APPEND_US {
                self.slow_appends.fetch_add(1, Ordering::Relaxed);
            }
            Ok(Ticket { log: Arc::clone(self), position })
        })
    }

    /// The state, when `len` bytes more may be appended.
    fn room_for(&self, len: usize) -> Result<RankedGuard<'_, State>> {
        loop {
            let state = self.state.lock();
            let waiting_bytes = state.appended - self.safe(&state);
            match &state.health {
                Health::Ok => {}
                Health::Stalled(_) => return Err(Error::Full { waiting_bytes }),
                Health::Failed(failed) => return Err(failed.clone().into()),
                Health::Closed => return Err(Error::Closed { dir: self.dir.clone() }),
            }
            // An entry larger than the limit may go alone.
            if waiting_bytes == 0 || waiting_bytes + len as u64 <= self.options.max_waiting_bytes {
                return Ok(state);
            }
            if state.syncer != Syncer::Absent {
                return Err(Error::Busy { waiting_bytes, limit_bytes: self.options.max_waiting_bytes });
            }
            let end = state.appended;
            drop(state);
            self.wait(end, self.default_level())?;
        }
    }

    fn default_level(&self) -> Level {
        match self.options.sync_mode {
            SyncMode::Synced => Level::Synced,
            SyncMode::Written => Level::Written,
        }
    }

    /// Position up to which the log's mode asks for no more.
    fn safe(&self, state: &State) -> u64 {
        match self.default_level() {
            Level::Synced => state.synced,
            Level::Written => state.written,
        }
    }

    /// Where a position is in the file that the buffer goes to; the end of the header for what is in files before.
    fn offset(&self, state: &State, position: u64) -> u64 {
        self.header_len + position.saturating_sub(state.file_start)
    }

    pub(crate) fn reached(&self, position: u64, level: Level) -> bool {
        let reached = if level == Level::Synced { &self.synced } else { &self.written };
        reached.load(Ordering::Acquire) >= position
    }

    pub(crate) fn wait(&self, position: u64, level: Level) -> std::result::Result<(), SyncFailed> {
        loop {
            if self.reached(position, level) {
                return Ok(());
            }
            let mut state = self.state.lock();
            if self.reached(position, level) {
                return Ok(());
            }
            if let Health::Failed(failed) = &state.health {
                return Err(failed.clone());
            }
            self.demand(&mut state, position, level);
            if state.syncer != Syncer::Absent {
                if let Health::Stalled(stalled) = &state.health {
                    return Err(stalled.clone());
                }
                if self.needs_sync(&state) {
                    self.wake_syncer(&mut state);
                    state.wait(&self.progress);
                    continue;
                }
            }
            match self.disk.try_lock() {
                Some(mut disk) => {
                    let may_sync = state.syncer == Syncer::Absent;
                    drop(state);
                    // What went wrong is in the state, for all who wait.
                    let outcome = self.sync_group(&mut disk, may_sync);
                    self.release(disk);
                    if let Err(Error::Failed(failed)) = outcome
                        && failed.is_full()
                    {
                        return Err(failed);
                    }
                }
                None => state.wait(&self.progress),
            }
        }
    }

    fn demand(&self, state: &mut State, position: u64, level: Level) {
        if level == Level::Synced && self.options.sync_mode == SyncMode::Written && position > state.sync_demanded {
            state.sync_demanded = position;
        }
    }

    /// To be called when there is work that this thread leaves to the syncer.
    fn wake_syncer(&self, state: &mut State) {
        // While it holds a sync back, it is woken once.
        if state.syncer == Syncer::Waiting && state.calls.len() >= state.commit_delay.waits_for {
            state.syncer = Syncer::Busy;
            self.work.notify_one();
        }
    }

    pub(crate) fn call_when_done(&self, position: u64, level: Level, done: Done) {
        let mut state = self.state.lock();
        let outcome = match &state.health {
            _ if self.reached(position, level) => Ok(()),
            Health::Failed(failed) => Err(failed.clone()),
            _ => {
                self.demand(&mut state, position, level);
                state.calls.push((position, level, done));
                return;
            }
        };
        drop(state);
        done(outcome);
    }

    /// The options the log was made with.
    pub fn options(&self) -> &LogOptions {
        &self.options
    }

    /// The log's directory.
    pub fn dir(&self) -> &FilePath {
        &self.dir
    }

    /// How long its appends took, the wait for others included.
    pub fn append_times(&self) -> &Histogram {
        &self.append_times
    }

    /// Bytes of each entry.
    pub fn append_sizes(&self) -> &Histogram {
        &self.append_sizes
    }

    /// Appends that took longer than a second.
    pub fn slow_appends(&self) -> u64 {
        self.slow_appends.load(Ordering::Relaxed)
    }

    /// How long the syncs of its files took.
    pub fn sync_times(&self) -> &Histogram {
        &self.sync_times
    }

    /// Counters.
    pub fn stats(&self) -> LogStats {
        let state = self.state.lock();
        let owed_bytes = (state.appended - self.safe(&state)).max(state.sync_demanded.saturating_sub(state.synced));
        LogStats { waiting_bytes: state.appended - state.synced, owed_bytes, ..state.stats }
    }

    /// Why the log has failed for good, when it has; the server must stop.
    pub fn failure(&self) -> Option<SyncFailed> {
        self.state.lock().health.failure().cloned()
    }

    /// Whether the log waits for room on a full disk. [`Log::sync_once`] tries again; call it now and then.
    pub fn is_stalled(&self) -> bool {
        matches!(self.state.lock().health, Health::Stalled(_))
    }

    /// A flush of these families begins; the region's updates are blocked meanwhile. Returns the lowest unflushed id of the
    /// families that stay behind: what the flush makes durable is everything below it.
    pub fn begin_flush(&self, region: &str, families: &[&[u8]]) -> Option<SeqId> {
        self.state.lock().accounting.begin_flush(region, families)
    }

    /// The flush is durable: all ids of the region up to `flushed` are in files.
    pub fn complete_flush(&self, region: &str, flushed: SeqId) {
        self.state.lock().accounting.complete_flush(region, flushed);
    }

    /// The flush did not happen.
    pub fn abort_flush(&self, region: &str) {
        self.state.lock().accounting.abort_flush(region);
    }

    /// The region was closed with everything flushed: its entries hold no file back any more.
    pub fn region_closed(&self, region: &str) {
        self.state.lock().accounting.region_closed(region);
    }

    /// The lowest id of the region that is in the log only.
    pub fn lowest_unflushed(&self, region: &str) -> Option<SeqId> {
        self.state.lock().accounting.lowest_unflushed(region)
    }

    /// The same for one family.
    pub fn lowest_unflushed_of(&self, region: &str, family: &[u8]) -> Option<SeqId> {
        self.state.lock().accounting.lowest_unflushed_of(region, family)
    }
}

#[cfg(test)]
mod tests;
