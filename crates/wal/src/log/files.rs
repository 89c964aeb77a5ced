//! The log's files: made, rolled, closed, archived. Follows `AbstractFSWAL#rollWriter`, `#cleanOldLogs`, `#findRegionsToForceFlush`.

use super::group::take_calls;
use super::{ClosedFile, Disk, Health, Log, OpenFile, Predecessor, Ready, State};
use crate::seal::Follows;
use crate::{Error, Level, Result, SyncMode, header, order};
use base::SeqId;
use fs::{FilePath, Placement};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Room asked for beyond the size at which a file is rolled: it grows on while it is.
const ROLL_SLACK_BYTES: u64 = 1 << 20;

/// A file of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// The file.
    pub path: FilePath,
    /// Bytes of entries and header that are in it for good.
    pub len_bytes: u64,
    /// Whether entries go to it now.
    pub current: bool,
}

/// A region whose memory keeps an old file from being archived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionToFlush {
    /// Encoded region name.
    pub region: Arc<str>,
    /// The families that do.
    pub families: Vec<Vec<u8>>,
}

/// What a roll did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rolled {
    /// The file that ended.
    pub old: FilePath,
    /// The one that entries go to now.
    pub new: FilePath,
    /// As [`Log::regions_to_flush`] afterwards.
    pub to_flush: Vec<RegionToFlush>,
}

/// A cut between two files: what is said of the one that ends.
pub(super) struct Cut {
    pub(super) highest: BTreeMap<Arc<str>, SeqId>,
    pub(super) len_bytes: u64,
}

/// What came of changing the file.
struct Changed {
    /// Name of the file that ended.
    old_path: FilePath,
    /// The file, when it can be ended in order.
    old: Option<OpenFile>,
    /// Up to this position it is still to be synced; until then it is [`Predecessor::Syncing`].
    sync_to: Option<u64>,
}

impl Log {
    /// A new file with its header, durable by bytes and by name.
    pub(super) fn create_file(&self) -> Result<OpenFile> {
        let path = self.next_path()?;
        let most_bytes = self.options.roll_size_bytes.saturating_add(ROLL_SLACK_BYTES);
        // All of it in one block, unless somebody appends much while it is rolled.
        let block_bytes = self.options.placement.block_bytes.map_or(most_bytes, |set| set.max(most_bytes));
        let placement = Placement { block_bytes: Some(block_bytes), ..self.options.placement.clone() };
        let made = self.volume.create_placed(&path, &placement, false).and_then(|mut appender| {
            appender.preallocate(most_bytes);
            appender.append(&header::encode(self.options.checksums))?;
            // Where what was flushed survives this process, the header is as safe as the entries that follow it, with which it is synced.
            if self.written_survives {
                appender.flush()?
            } else {
                appender.sync()?
            }
            self.volume.sync_dir(&self.dir)?;
            Ok(OpenFile { path: path.clone(), appender })
        });
        if made.is_err() {
            // Nothing is in it; should this fail too, an empty file stays, which recovery knows.
            let _ = self.volume.remove_file(&path);
        }
        let file = made?;
        self.state.lock().stats.files += 1;
        Ok(file)
    }

    /// A name that is not in use; names grow, whatever the clock does.
    fn next_path(&self) -> Result<FilePath> {
        loop {
            let now_ms = self.clock.now_ms().0;
            let next = |last: i64| Some(now_ms.max(last + 1));
            let last =
                self.last_file_ms.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).unwrap_or_else(|last| last);
            let file_ms = now_ms.max(last + 1);
            let path = self.dir.join(format!("{}.{file_ms}{}", self.name, self.options.kind));
            if !self.volume.exists(&path)? {
                return Ok(path);
            }
        }
    }

    /// Bytes in the current file, as far as written.
    pub(super) fn file_len(&self, state: &State) -> u64 {
        self.offset(state, state.written)
    }

    pub(super) fn is_roll_wanted(&self, state: &State) -> bool {
        self.file_len(state) >= self.options.roll_size_bytes
            || state.slow_syncs.is_roll_wanted()
            || state.low_replication.is_roll_wanted()
    }

    /// What there is to tell the operator of how its files are copied, once.
    pub fn take_copies_told(&self) -> Option<String> {
        self.state.lock().low_replication.take_told()
    }

    /// Whether the current file has reached [`crate::LogOptions::roll_size_bytes`], its syncs are slow, or it gets too few copies.
    pub fn wants_roll(&self) -> bool {
        self.is_roll_wanted(&self.state.lock())
    }

    /// Sleeps until the current file wants to be rolled; false when the log has been closed or has failed. For a thread of the
    /// shell's that rolls.
    pub fn wait_roll_wanted(&self) -> bool {
        let mut state = self.state.lock();
        loop {
            if state.health.is_over() {
                return false;
            }
            if self.is_roll_wanted(&state) {
                return true;
            }
            state.wait(&self.roll_wanted);
        }
    }

    /// Ends the current file (with what waits, a trailer, and all of it durable) and goes on in a new one. Appends go on meanwhile. In mode
    /// [`SyncMode::Written`] writes wait for one write and syncs until the old file is on the disk, else all wait for one write and sync.
    /// `None` when the current file has no entries.
    ///
    /// # Errors
    /// When the new file cannot be made the old one stays in use. Otherwise as [`Log::sync_once`].
    pub fn roll(&self) -> Result<Option<Rolled>> {
        let _one_at_a_time = self.roll.lock();
        {
            let mut state = self.state.lock();
            self.check_open(&state)?;
            if state.appended == state.file_start {
                return Ok(None);
            }
            state.stats.asked_rolls += 1;
            state.stats.size_rolls += u64::from(self.file_len(&state) >= self.options.roll_size_bytes);
        }
        let new = self.create_file()?;
        let new_path = new.path.clone();
        let mut disk = self.disk.lock();
        let outcome = self.change_file(&mut disk, new);
        self.release(disk);
        let Changed { old_path, old, sync_to } = match outcome {
            Ok(old) => old,
            Err((error, unused)) => {
                if let Some(unused) = unused {
                    // As above.
                    let _ = self.volume.remove_file(&unused.path);
                }
                return Err(error);
            }
        };
        if let Some(mut old) = old {
            if let Some(position) = sync_to {
                self.sync_old(&mut old, position)?;
            }
            finish(old);
        }
        Ok(Some(Rolled { old: old_path, new: new_path, to_flush: self.regions_to_flush(self.options.max_logs) }))
    }

    /// With an error comes the new file when it was not needed.
    #[allow(clippy::result_large_err, reason = "one caller, once per file")]
    fn change_file(&self, disk: &mut Disk, new: OpenFile) -> std::result::Result<Changed, (Error, Option<OpenFile>)> {
        // A group that waits for room goes first.
        if !disk.group.is_empty()
            && let Err(error) = self.sync_group(disk, true)
        {
            return Err((error, Some(new)));
        }
        // So does the file of a roll that met a full disk: what has been appended since is made for it.
        if disk.next.is_some() {
            self.end_interrupted_roll(disk).map_err(|error| (error, None))?;
        }
        let syncs_later = {
            let mut state = self.state.lock();
            if let Err(error) = self.check_open(&state) {
                return Err((error, Some(new)));
            }
            disk.take_group(&mut state);
            let len_bytes = self.offset(&state, state.appended);
            disk.cut = Some(Cut { highest: state.accounting.take_highest(), len_bytes });
            state.stats.slow_sync_rolls += u64::from(state.slow_syncs.rolled());
            state.stats.low_replication_rolls += u64::from(state.low_replication.rolled());
            // From here on entries are made for the new file.
            state.file_start = state.appended;
            // Entries are acknowledged as written that are not on the disk: what comes next need not wait for them. If there are none, a failed
            // sync still finds all that matters in the group, for the new file.
            if self.options.sync_mode == SyncMode::Written && state.synced < disk.group_start {
                state.predecessor = self.follows(&state, len_bytes).map_or(Predecessor::Durable, Predecessor::Named);
            }
            state.predecessor.named().is_some()
        };
        let old_path = disk.file.as_ref().map_or_else(FilePath::root, |file| file.path.clone());
        disk.next = Some(new);
        if let Err(error) = self.settle(disk, !syncs_later) {
            return Err((error, None));
        }
        // Nothing to take: a failure has moved the group to the new file already, and the old one stays without trailer.
        let old = self.take_next(disk);
        let sync_to = if syncs_later && old.is_some() { Some(disk.group_end) } else { None };
        // While the disk is held nobody syncs.
        let mut state = self.state.lock();
        if let (Some(follows), Some(_)) = (state.predecessor.named(), sync_to) {
            state.predecessor = Predecessor::Syncing(follows);
        }
        drop(state);
        Ok(Changed { old_path, old, sync_to })
    }

    /// How entries of the next file name the current one, which ends at `len_bytes`. `None` when they cannot: then they wait for its sync.
    fn follows(&self, state: &State, len_bytes: u64) -> Option<Follows> {
        let file_ms = |path: &FilePath| order::file_ms(path.name());
        let follows = Follows::new(file_ms(state.current.as_ref()?)?, len_bytes)?;
        let is_clear = !state.closed_files.iter().filter_map(|file| file_ms(&file.path)).any(|ms| follows.is_of(ms));
        (self.options.checksums && is_clear).then_some(follows)
    }

    /// Ends a roll that met a full disk, now that what was meant for the old file is in it. Before anything goes to the new one the old one is
    /// synced, if it holds what was only acknowledged as written: a sync of the new file must mean that all before it is safe as well.
    pub(super) fn end_interrupted_roll(&self, disk: &mut Disk) -> Result<()> {
        let Some(mut old) = self.take_next(disk) else { return Ok(()) };
        let position = disk.group_end;
        if self.state.lock().synced < position {
            // Only recovery knows what is left of it when this fails.
            old.appender.sync().map_err(|error| self.fail(disk, &error.into()))?;
            let mut state = self.state.lock();
            state.synced = position;
            self.synced.store(position, Ordering::Release);
            let calls = take_calls(&mut state, position, Level::Synced);
            disk.ready.extend(calls.into_iter().map(|done| (done, Ok(()))));
        }
        self.state.lock().predecessor = Predecessor::Durable;
        finish(old);
        Ok(())
    }

    /// Makes durable what is in a file that gets no more entries, while the next one is written already; then syncs go on there.
    fn sync_old(&self, old: &mut OpenFile, position: u64) -> Result<()> {
        let start_us = self.clock.monotonic_us();
        let outcome = if base::inject!("wal.roll.sync-skipped") { Ok(()) } else { old.appender.sync() };
        // Then the file gets no trailer, and whoever reads it recovers its lease first.
        let outcome = if self.written_survives { Ok(()) } else { outcome };
        let took_us = self.clock.monotonic_us().saturating_sub(start_us);
        let mut state = self.state.lock();
        let (outcome, ready) = match outcome {
            Ok(()) => {
                state.stats.count_sync(took_us);
                self.sync_times.record(took_us);
                state.synced = position;
                state.predecessor = Predecessor::Durable;
                self.synced.store(position, Ordering::Release);
                let calls = take_calls(&mut state, position, Level::Synced);
                (Ok(()), calls.into_iter().map(|done| (done, Ok(()))).collect())
            }
            // Only recovery knows what is left of what was promised.
            Err(error) => {
                state.predecessor = state.predecessor.named().map_or(Predecessor::Durable, Predecessor::Named);
                let (failed, ready) = self.fail_all(&mut state, &error.into());
                (Err(failed), ready)
            }
        };
        drop(state);
        self.progress.notify_all();
        ready.into_iter().for_each(|(done, outcome): Ready| done(outcome));
        outcome
    }

    /// Puts the file that waits in place of the current one, which it returns.
    pub(super) fn take_next(&self, disk: &mut Disk) -> Option<OpenFile> {
        let next = disk.next.take()?;
        let mut state = self.state.lock();
        state.current = Some(next.path.clone());
        let old = disk.file.replace(next)?;
        let Cut { highest, len_bytes } = disk.cut.take().expect("a file that waits comes with a cut");
        state.closed_files.push(ClosedFile { path: old.path.clone(), len_bytes, highest });
        Some(old)
    }

    fn check_open(&self, state: &State) -> Result<()> {
        match &state.health {
            Health::Failed(failed) => Err(failed.clone().into()),
            Health::Closed => Err(Error::Closed { dir: self.dir.clone() }),
            Health::Ok | Health::Stalled(_) => Ok(()),
        }
    }

    /// Makes all durable and ends the last file with a trailer. Appends are refused from here on, a syncer thread returns. May
    /// be called again after an error.
    ///
    /// # Errors
    /// As [`Log::sync_once`].
    pub fn close(&self) -> Result<()> {
        let _one_at_a_time = self.roll.lock();
        {
            let mut state = self.state.lock();
            if state.health.failure().is_none() {
                state.health = Health::Closed;
            }
            state.sync_demanded = state.appended;
        }
        self.work.notify_all();
        self.roll_wanted.notify_all();
        let mut disk = self.disk.lock();
        let outcome = self.drain(&mut disk);
        let last = if outcome.is_ok() { disk.file.take() } else { None };
        if let Some(file) = &last {
            let mut state = self.state.lock();
            let (len_bytes, highest) = (self.file_len(&state), state.accounting.take_highest());
            state.closed_files.push(ClosedFile { path: file.path.clone(), len_bytes, highest });
            state.current = None;
        }
        self.release(disk);
        last.into_iter().for_each(finish);
        outcome
    }

    fn drain(&self, disk: &mut Disk) -> Result<()> {
        loop {
            self.sync_group(disk, true)?;
            let state = self.state.lock();
            if disk.group.is_empty() && state.buffer.is_empty() && state.synced == state.appended {
                return Ok(());
            }
        }
    }

    /// The log's files, oldest first, archived ones not.
    pub fn files(&self) -> Vec<LogFile> {
        let state = self.state.lock();
        let closed = state.closed_files.iter();
        let mut all: Vec<LogFile> =
            closed.map(|f| LogFile { path: f.path.clone(), len_bytes: f.len_bytes, current: false }).collect();
        if let Some(path) = &state.current {
            all.push(LogFile { path: path.clone(), len_bytes: self.file_len(&state), current: true });
        }
        all
    }

    /// The closed files whose edits are all flushed.
    pub fn archivable(&self) -> Vec<FilePath> {
        let state = self.state.lock();
        let done = state.closed_files.iter().filter(|file| state.accounting.all_flushed(&file.highest));
        done.map(|file| file.path.clone()).collect()
    }

    /// Moves the files of [`Log::archivable`] to the archive; returns where they are now.
    ///
    /// # Errors
    /// When a file cannot be moved; it stays listed and is moved another time.
    pub fn archive_flushed(&self) -> Result<Vec<FilePath>> {
        let _one_at_a_time = self.roll.lock();
        let (ready, archive_dir) = (self.archivable(), &self.options.archive_dir);
        if ready.is_empty() {
            return Ok(Vec::new());
        }
        self.volume.create_dir_all_durable(archive_dir)?;
        let mut moved = Vec::new();
        for path in ready {
            let target = archive_dir.join(format!("{}{}", path.name(), self.options.archive_suffix));
            match self.volume.rename(&path, &target) {
                // Moved by an earlier try that failed behind the rename.
                Err(error) if error.is_not_found() && self.volume.exists(&target)? => {}
                outcome => outcome?,
            }
            self.volume.sync_dir(archive_dir)?;
            self.state.lock().closed_files.retain(|file| file.path != path);
            moved.push(target);
            let dir = path.parent();
            if dir != self.dir {
                self.leave(&dir)?;
            }
        }
        self.volume.sync_dir(&self.dir)?;
        Ok(moved)
    }

    /// A file of a server that is no more is gone from its directory; with the last one goes the directory.
    fn leave(&self, dir: &FilePath) -> Result<()> {
        // The other log of this server may have been quicker.
        if !self.volume.exists(dir)? {
            return Ok(());
        }
        if !self.volume.list(dir)?.is_empty() {
            return Ok(self.volume.sync_dir(dir)?);
        }
        self.volume.remove_dir_all(dir)?;
        Ok(self.volume.sync_dir(&dir.parent())?)
    }

    /// When more than `max_logs` closed files wait for flushes: the regions and families that hold the oldest back.
    pub fn regions_to_flush(&self, max_logs: usize) -> Vec<RegionToFlush> {
        let state = self.state.lock();
        match state.closed_files.first() {
            Some(oldest) if state.closed_files.len() > max_logs => {
                let holding_back = state.accounting.holding_back(&oldest.highest);
                holding_back.into_iter().map(|(region, families)| RegionToFlush { region, families }).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Writes the trailer of a file whose entries are durable. A file without one is whole too, so a failure here is none.
pub(super) fn finish(mut file: OpenFile) {
    let _ = file.appender.append(header::TRAILER).and_then(|()| file.appender.finish());
}

/// As Java's `URLEncoder` in UTF-8: file names of logs have the server's name so.
pub(super) fn url_encode(name: &str) -> String {
    let mut out = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'*' | b'_' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
