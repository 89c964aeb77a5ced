//! Group commit, and what happens when it fails.

use super::{Disk, GroupState, Health, Log, Predecessor, Ready, State, Syncer};
use crate::{Error, Level, Result, SyncFailed, SyncMode, seal};
use base::sync::RankedGuard;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Without syncs the operating system is asked to begin writing whenever so much has gathered, lest the sync at the file's end
/// hold everybody up.
const WRITE_BEHIND_BYTES: u64 = 1 << 20;
/// Groups that one call of [`Log::write_pending`] writes before it leaves the others' entries to the syncer, if that has nothing else to do.
const PUSHED_GROUPS: u32 = 4;
/// Buffers that grew beyond it in a burst are not kept.
const KEPT_BUFFER_BYTES: usize = 4 << 20;

/// What is known of the writers that wait for syncs, who are likely to come again when they are answered.
#[derive(Debug, Default)]
pub(super) struct CommitDelay {
    /// The syncer, while it holds a sync back, is not to be woken for fewer.
    pub waits_for: usize,
    /// Who waited for the last sync or came during it.
    expected: usize,
    pub(super) sync_us: u64,
    /// Times in a row that they did not come, and syncs to go without waiting because of it.
    in_vain: u32,
    skips: u32,
}

/// After so many times in vain the log's thread waits before one sync in two to that power.
const MOST_IN_VAIN: u32 = 7;

impl Log {
    /// Writes and syncs what waits, once: a whole group. Does nothing when nothing waits. Also what tries again
    /// after a full disk.
    ///
    /// # Errors
    /// What the tickets get as well.
    pub fn sync_once(&self) -> Result<()> {
        let mut disk = self.disk.lock();
        let outcome = self.sync_group(&mut disk, true);
        self.release(disk);
        outcome
    }

    /// Writes what waits, once, unless a sync is asked for, which comes first, or somebody is at the disk. What [`Log::write_pending`] does, for
    /// who has no syncer thread and must not wait.
    ///
    /// # Errors
    /// As [`Log::sync_once`].
    pub fn write_once(&self) -> Result<()> {
        let Some(mut disk) = self.disk.try_lock() else { return Ok(()) };
        let outcome = self.sync_group(&mut disk, false);
        self.release(disk);
        outcome
    }

    /// Sees to it that what waits gets done. When a `write` is all that is asked for and nobody is at the disk, this thread does it, and
    /// what is to be called when entries are done is called before this returns: no other thread is woken. Otherwise the one at the disk or
    /// the syncer thread goes on with it. Never syncs, except to a fresh file after a failure.
    ///
    /// Does nothing without a syncer thread: then it is the waiters who work.
    pub fn write_pending(&self) {
        for group in 0.. {
            {
                let mut state = self.state.lock();
                let is_out = matches!(state.health, Health::Failed(_) | Health::Stalled(_));
                if is_out || !self.has_work(&state) || state.syncer == Syncer::Absent {
                    return;
                }
                // One that sees to something else, writeback that the disk has no time for, comes back who knows when.
                let syncer_takes_over = group >= PUSHED_GROUPS && state.syncer == Syncer::Waiting;
                if self.needs_sync(&state) || syncer_takes_over || self.is_remote {
                    self.wake_syncer(&mut state);
                    return;
                }
            }
            // Whoever is at the disk looks for work when he lets it go.
            let Some(mut disk) = self.disk.try_lock() else { return };
            let outcome = self.sync_group(&mut disk, false);
            self.let_go(disk, false);
            if outcome.is_err() {
                return;
            }
        }
    }

    /// Waits until no more than `most_bytes` would be on their way to the disk with `len_bytes` more, or none are: for writers of much, so that
    /// what others append meanwhile is not behind all of theirs. Returns at once when the log takes nothing now, and without a syncer thread;
    /// and after `at_most`. Whether there is room.
    pub fn wait_for_room(&self, len_bytes: u64, most_bytes: u64, at_most: Duration) -> bool {
        // What waits may be this writer's own.
        self.write_pending();
        let mut state = self.state.lock();
        let start_us = self.clock.monotonic_us();
        loop {
            let waiting_bytes = state.appended - self.safe(&state);
            let is_idle = state.syncer == Syncer::Absent || !matches!(state.health, Health::Ok);
            if waiting_bytes == 0 || waiting_bytes + len_bytes <= most_bytes || is_idle {
                return true;
            }
            let waited_us = self.clock.monotonic_us().saturating_sub(start_us);
            let Some(left) = at_most.checked_sub(Duration::from_micros(waited_us)) else { return false };
            if state.wait_for(&self.progress, left) {
                return false;
            }
        }
    }

    /// Wakes the syncer if there is something for it to do.
    fn wake_for_work(&self) {
        let mut state = self.state.lock();
        if !matches!(state.health, Health::Stalled(_)) && self.has_work(&state) {
            self.wake_syncer(&mut state);
        }
    }

    /// Syncs group after group as entries come, until the log is closed or fails: for a thread of the shell's. While it runs, nobody else
    /// syncs and appends never touch the disk; what only has to be written is mostly written by those who wait for it ([`Log::write_pending`]). At
    /// most one thread.
    ///
    /// # Errors
    /// Why the log failed; the server must stop.
    pub fn run_syncer(&self) -> Result<()> {
        self.run_syncer_answering(|answer| answer())
    }

    /// As [`Log::run_syncer`]. What is to be called when the entries of a group are done is called within `answering`, which calls what it
    /// is given, once: so answers to many calls may leave together.
    ///
    /// # Errors
    /// Why the log failed; the server must stop.
    pub fn run_syncer_answering(&self, answering: impl Fn(&mut dyn FnMut())) -> Result<()> {
        {
            let mut state = self.state.lock();
            assert!(state.syncer == Syncer::Absent, "one syncer thread is enough");
            state.syncer = Syncer::Busy;
        }
        let outcome = self.syncer_loop(&answering);
        self.state.lock().syncer = Syncer::Absent;
        // Those who wait may have to do it themselves.
        self.progress.notify_all();
        outcome
    }

    fn syncer_loop(&self, answering: &dyn Fn(&mut dyn FnMut())) -> Result<()> {
        loop {
            let behind = {
                let mut state = self.state.lock();
                loop {
                    match &state.health {
                        Health::Failed(failed) => return Err(failed.clone().into()),
                        Health::Closed => return Ok(()),
                        Health::Ok | Health::Stalled(_) => {}
                    }
                    let has_work = matches!(state.health, Health::Ok) && self.has_work(&state);
                    if !state.behind.is_empty() || has_work {
                        break std::mem::take(&mut state.behind);
                    }
                    state.syncer = Syncer::Waiting;
                    state.wait(&self.work);
                    state.syncer = Syncer::Busy;
                }
            };
            if !behind.is_empty() {
                behind.into_iter().for_each(|work| work());
                // Who waits for a sync is told of in the state; others write for themselves.
                continue;
            }
            self.delay_commit();
            let mut disk = self.disk.lock();
            let outcome = self.sync_group(&mut disk, true);
            let mut ready = self.next_at_disk(disk, true);
            if !ready.is_empty() {
                answering(&mut || ready.drain(..).for_each(|(done, outcome)| done(outcome)));
            }
            match outcome {
                Ok(()) => {}
                // It waits above until somebody found room.
                Err(error) if error.is_full() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until as many wait for the next sync as shared the last one or came during it, a bounded time. Who was answered a moment ago is on his
    /// way; without him the groups fall into halves, each of which waits for the other's sync too.
    fn delay_commit(&self) {
        let mut state = self.state.lock();
        let limit_us = state.commit_delay.sync_us * u64::from(self.options.commit_delay_percent) / 100;
        let expected = state.commit_delay.expected;
        let waiting = state.calls.len();
        if limit_us == 0 || waiting == 0 || waiting >= expected || !self.needs_sync(&state) {
            return;
        }
        if state.commit_delay.skips > 0 {
            state.commit_delay.skips -= 1;
            return;
        }
        let start_us = self.clock.monotonic_us();
        state.commit_delay.waits_for = expected;
        while state.calls.len() < expected && !state.health.is_over() {
            let waited_us = self.clock.monotonic_us().saturating_sub(start_us);
            if waited_us >= limit_us {
                break;
            }
            state.syncer = Syncer::Waiting;
            let timed_out = state.wait_for(&self.work, Duration::from_micros(limit_us - waited_us));
            state.syncer = Syncer::Busy;
            if timed_out {
                break;
            }
        }
        state.commit_delay.waits_for = 0;
        if state.calls.len() >= expected {
            state.stats.commit_delays += 1;
            state.commit_delay.in_vain = 0;
        } else {
            state.stats.commit_delays_in_vain += 1;
            let in_vain = (state.commit_delay.in_vain + 1).min(MOST_IN_VAIN);
            state.commit_delay.in_vain = in_vain;
            state.commit_delay.skips = (1 << in_vain) - 1;
        }
    }

    pub(super) fn has_work(&self, state: &State) -> bool {
        state.appended > self.safe(state) || state.sync_demanded > state.synced
    }

    /// Whether the work to be done now includes a sync.
    pub(super) fn needs_sync(&self, state: &State) -> bool {
        self.options.sync_mode == SyncMode::Synced || state.sync_demanded > state.synced
    }

    /// Lets the next one at the disk.
    pub(super) fn release(&self, disk: RankedGuard<'_, Disk>) {
        self.let_go(disk, true);
    }

    /// As [`Log::release`]. `pass_on`: this thread does not look for more work itself.
    fn let_go(&self, disk: RankedGuard<'_, Disk>, pass_on: bool) {
        self.next_at_disk(disk, pass_on).into_iter().for_each(|(done, outcome)| done(outcome));
    }

    /// Lets the next one at the disk; returns what this thread has to call now.
    #[must_use = "somebody waits for it"]
    fn next_at_disk(&self, mut disk: RankedGuard<'_, Disk>, pass_on: bool) -> Vec<Ready> {
        let ready = std::mem::take(&mut disk.ready);
        drop(disk);
        // Who failed to get the disk waits under the state lock, or has gone away after an append: taking that lock once
        // makes sure that nobody is in between and nothing is left lying.
        if pass_on {
            self.wake_for_work();
        } else {
            drop(self.state.lock());
        }
        self.progress.notify_all();
        ready
    }

    /// Writes and syncs one group. On return either all in it is as safe as asked, or the log is stalled or failed. Without `may_sync` a
    /// group that must be synced is left as it is.
    pub(super) fn sync_group(&self, disk: &mut Disk, may_sync: bool) -> Result<()> {
        let sync = {
            let mut state = self.state.lock();
            // Whoever rolls needs no disk to end this.
            while may_sync && state.predecessor.is_syncing() && self.needs_sync(&state) {
                state.wait(&self.progress);
            }
            if let Health::Failed(failed) = &state.health {
                return Err(failed.clone().into());
            }
            if !may_sync && self.needs_sync(&state) {
                // Letting the disk go wakes the syncer.
                return Ok(());
            }
            if disk.group.is_empty() {
                if disk.next.is_some() {
                    // A roll met a full disk and could not end.
                    drop(state);
                    self.end_interrupted_roll(disk)?;
                    state = self.state.lock();
                }
                if !self.has_work(&state) {
                    // A roll met the full disk and nothing waits: only the next entry can tell whether there is room again.
                    state.health.unstall();
                    return Ok(());
                }
                disk.take_group(&mut state);
            }
            // A demand that came since the first look is met by the next group.
            may_sync && self.needs_sync(&state)
        };
        self.settle(disk, sync)
    }

    /// Brings the group to the disk, by way of a fresh file if need be.
    pub(super) fn settle(&self, disk: &mut Disk, sync: bool) -> Result<()> {
        // The second failure in a row is for good.
        for attempt in 0..2 {
            if disk.group_state == GroupState::Orphaned
                && let Err(error) = self.move_group_to_new_file(disk)
            {
                return Err(if error.is_full() { self.stall(&error) } else { self.fail(disk, &error) });
            }
            let error = match self.write_and_sync(disk, sync, attempt == 0) {
                Ok(()) => {
                    self.finish_group(disk, sync);
                    return Ok(());
                }
                Err(Trouble::NoRoom(error)) => return Err(self.stall(&error)),
                Err(Trouble::Broken(error)) => error,
            };
            let lost_acknowledged = {
                let state = self.state.lock();
                !self.written_survives && state.written.min(disk.group_start) > state.synced
            };
            if attempt > 0 || lost_acknowledged {
                // Written and acknowledged as written, but no longer in memory: only recovery knows what is left of it.
                return Err(self.fail(disk, &error));
            }
            disk.group_state = GroupState::Orphaned;
        }
        unreachable!("the loop ends by its second round")
    }

    /// A new file may lie elsewhere than one whose syncs are slow.
    fn may_move(&self) -> bool {
        self.is_remote || self.volume.has_several_places()
    }

    /// Whether a sync that stands still may be given up: nothing was acknowledged that is not on the disk, and nobody waits for a write alone.
    fn may_give_up(&self, disk: &Disk) -> bool {
        let state = self.state.lock();
        self.options.sync_mode == SyncMode::Synced
            && state.written.min(disk.group_start) <= state.synced
            && state.calls.iter().all(|(_, level, _)| *level == Level::Synced)
    }

    /// `is_first`: should it fail, it is tried once more in another file.
    fn write_and_sync(&self, disk: &mut Disk, sync: bool, is_first: bool) -> std::result::Result<(), Trouble> {
        let may_move = self.may_move();
        let may_give_up = sync && is_first && self.volume.has_several_places() && self.may_give_up(disk);
        let begun_us = if may_move { self.clock.monotonic_us() } else { 0 };
        let file = disk.file.as_mut().expect("a group that is not orphaned has a file");
        if disk.group_state != GroupState::Written {
            let before = file.appender.position();
            debug_assert!(
                !self.options.checksums || seal::holds(&disk.group, before),
                "{}: entries changed between their append and their write",
                file.path
            );
            let outcome = file.appender.append(&disk.group);
            if file.appender.position() > before || disk.group.is_empty() {
                disk.group_state = GroupState::Written;
            }
            outcome.map_err(Trouble::of_write)?;
            let (len, group_len) = (file.appender.position() - before, disk.group.len() as u64);
            if base::never!(len != group_len, "{}: {len} bytes were appended of a group of {group_len}", file.path) {
                // Whatever the file has: its entries would not stand where they say.
                return Err(Trouble::Broken(misplaced(&file.path, before)));
            }
        }
        // What may be given up is written by the sync: a write may stand still as well.
        if !may_give_up {
            file.appender.flush().map_err(Trouble::of_write)?;
        }
        let end = disk.group_end;
        let write_behind = end - disk.written_behind >= WRITE_BEHIND_BYTES;
        if write_behind {
            disk.written_behind = end;
        }
        // Asking takes milliseconds while the disk is busy, and whoever writes here has others waiting.
        let mut behind = if write_behind && !sync { file.appender.behind() } else { None };
        let mut state = self.state.lock();
        self.leave_to_syncer(&mut state, &mut behind);
        if !may_give_up {
            state.written = end;
            self.written.store(end, Ordering::Release);
        }
        let early_calls = if sync && !may_give_up { take_calls(&mut state, end, Level::Written) } else { Vec::new() };
        let has_waiters = sync && self.options.sync_mode == SyncMode::Written;
        drop(state);
        early_calls.into_iter().for_each(|done| done(Ok(())));
        if has_waiters {
            self.progress.notify_all();
        }
        if sync {
            let start_us = self.clock.monotonic_us();
            // A full disk at this point is as bad as any other failure: what is on the disk is unknown.
            let synced = match base::inject!("wal.sync.skipped") {
                true => Ok(()),
                false if may_give_up => file.appender.sync_or_give_up(),
                false => file.appender.sync(),
            };
            synced.map_err(|error| Trouble::Broken(error.into()))?;
            let took_us = self.clock.monotonic_us().saturating_sub(start_us);
            // Nothing is left to be written; what is old need not stay in the page cache.
            behind = if write_behind { file.appender.behind() } else { None };
            let mut state = self.state.lock();
            self.leave_to_syncer(&mut state, &mut behind);
            state.written = end;
            self.written.store(end, Ordering::Release);
            state.stats.count_sync(took_us);
            self.sync_times.record(took_us);
            // Under shuttle there is no time; it is delayed all the same.
            state.commit_delay.sync_us = if cfg!(feature = "shuttle") { 1 } else { took_us };
        }
        behind.into_iter().for_each(|work| work());
        // On the one disk of a machine another file would lie beside the slow one.
        if may_move {
            let now_us = self.clock.monotonic_us();
            let took_us = now_us.saturating_sub(begun_us);
            if self.is_remote && !sync {
                // All that it takes until the entries are as safe as the log's mode asks, which HBase calls a sync.
                self.sync_times.record(took_us);
            }
            let (copies, is_slow) = (file.appender.copies(), file.appender.is_on_slow_volume());
            let mut state = self.state.lock();
            state.slow_syncs.note(&self.options.slow_syncs, took_us, now_us);
            state.slow_syncs.note_volume(is_slow);
            if let Some(copies) = copies {
                state.low_replication.note(&self.options.low_replication, copies);
            }
        }
        Ok(())
    }

    /// Takes what the syncer thread, if there is one, can do when it has answered.
    fn leave_to_syncer(&self, state: &mut State, behind: &mut Option<fs::Behind>) {
        if state.syncer != Syncer::Absent
            && let Some(work) = behind.take()
        {
            state.behind.push(work);
            self.wake_syncer(state);
        }
    }

    fn finish_group(&self, disk: &mut Disk, sync: bool) {
        let end = disk.group_end;
        disk.group.clear();
        disk.group_state = GroupState::Empty;
        if disk.group.capacity() > KEPT_BUFFER_BYTES {
            disk.group = Vec::new();
        }
        let mut state = self.state.lock();
        state.stats.groups += 1;
        state.health.unstall();
        if sync {
            state.synced = end;
            self.synced.store(end, Ordering::Release);
        }
        let calls = take_calls(&mut state, end, if sync { Level::Synced } else { Level::Written });
        if sync {
            state.commit_delay.expected = calls.len() + state.calls.len();
        }
        let wants_roll = self.is_roll_wanted(&state);
        drop(state);
        self.progress.notify_all();
        if wants_roll {
            self.roll_wanted.notify_all();
        }
        disk.ready.extend(calls.into_iter().map(|done| (done, Ok(()))));
    }

    /// Gives the group a fresh file. The one before keeps what was synced; nobody writes to it again.
    fn move_group_to_new_file(&self, disk: &mut Disk) -> Result<()> {
        if let Some(old) = disk.file.take() {
            let mut state = self.state.lock();
            let mut len_bytes = self.offset(&state, disk.group_start);
            let highest = match disk.cut.take() {
                Some(cut) => {
                    len_bytes = cut.len_bytes - (disk.group_end - disk.group_start);
                    // A roll was under way: what it counted for the old file stands in the new one as well now.
                    state.accounting.put_back(&cut.highest);
                    cut.highest
                }
                None => state.accounting.highest(),
            };
            state.closed_files.push(super::ClosedFile { path: old.path, len_bytes, highest });
            state.current = None;
            state.stats.rescues += 1;
        }
        let file = match disk.next.take() {
            Some(next) => next,
            None => self.create_file()?,
        };
        let mut state = self.state.lock();
        state.current = Some(file.path.clone());
        state.file_start = disk.group_start;
        // Had it not been on the disk up to here, the log would have failed.
        state.predecessor = Predecessor::Durable;
        if self.options.checksums {
            // The entries say where they stand, and now stand elsewhere. Those in the buffer follow those of the group.
            seal::reseal(&mut disk.group, self.header_len, self.header_len);
            let offset = self.offset(&state, disk.group_end);
            seal::reseal(&mut state.buffer, offset, self.header_len);
        }
        drop(state);
        disk.file = Some(file);
        disk.group_state = GroupState::Buffered;
        Ok(())
    }

    fn stall(&self, error: &Error) -> Error {
        let stalled = SyncFailed::disk_full(error.to_string());
        self.state.lock().health.stall(stalled.clone());
        self.progress.notify_all();
        stalled.into()
    }

    pub(super) fn fail(&self, disk: &mut Disk, error: &Error) -> Error {
        let (failed, ready) = self.fail_all(&mut self.state.lock(), error);
        self.progress.notify_all();
        disk.ready.extend(ready);
        failed
    }

    /// The end of the log: every ticket that is not done fails, and so does every append to come. Returns what is to be called; the caller notifies
    /// of progress.
    pub(super) fn fail_all(&self, state: &mut State, error: &Error) -> (Error, Vec<Ready>) {
        let failed = SyncFailed::new(Arc::<str>::from(error.to_string()));
        state.health = Health::Failed(failed.clone());
        let calls = std::mem::take(&mut state.calls);
        self.work.notify_all();
        self.roll_wanted.notify_all();
        let ready = calls.into_iter().map(|(_, _, done)| (done, Err(failed.clone()))).collect();
        (failed.into(), ready)
    }
}

fn misplaced(path: &fs::FilePath, offset: u64) -> Error {
    let what = std::io::Error::other("another number of bytes was appended than was given");
    fs::Error::new("append to", path, what).at(offset).into()
}

enum Trouble {
    /// The disk is full, the file is not concerned.
    NoRoom(Error),
    /// The file is not to be trusted any more.
    Broken(Error),
}

impl Trouble {
    fn of_write(error: fs::Error) -> Trouble {
        if error.is_full() { Trouble::NoRoom(error.into()) } else { Trouble::Broken(error.into()) }
    }
}

pub(super) fn take_calls(state: &mut State, end: u64, level: Level) -> Vec<crate::ticket::Done> {
    let ready = |call: &mut (u64, Level, crate::ticket::Done)| call.0 <= end && call.1 <= level;
    state.calls.extract_if(.., ready).map(|(_, _, done)| done).collect()
}
