//! The write path: validate, lock the rows, evaluate against the newest state, stamp, log, insert, unlock.
//!
//! A call's mutations are written in groups; a group is one log entry under one sequence id. A new group begins where
//! an increment or append must read a row that the group has written, where a put follows a delete of its row, or where
//! the nonce differs. Those of a group that skip the log are inserted with the others and left out of the entry. Atomic
//! calls are one group or nothing. Follows: `HRegion#doMiniBatchMutate`, `MutationBatchOperation`.

mod check;
mod prepare;

use crate::commit::Commit;
use crate::error::{ErrorKind, RegionError, Result};
use crate::region::Region;
use crate::row_lock::RowSet;
use crate::ticks::{LONGEST_WAIT_MS, MOST_AHEAD_MS, Moment, RowKey, Stamps, Taken};
use base::{EffortBudget, ReadMode, SeqId, TimestampMs};
use cell::{CellBuffer, CellIter, CellRef};
use memstore::{Growth, Segment};
use model::{Condition, Durability, Mutation, MutationKind, Nonce};
use prepare::Prepared;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use wal::{EntryKey, Level, ReplicationScope, Ticket};

/// What became of [`Region::apply`].
#[derive(Debug)]
pub struct Applied {
    /// One for each mutation: the new cells of an Increment or Append that wants them back, or why it was refused. Of
    /// the first ones only, with [`Applied::wait_ms`].
    pub results: Vec<Result<Option<CellBuffer>>>,
    /// The rest of the way.
    pub commit: Commit,
    /// The mutations without a result must have ticks to which the clock is still to come: they are to be applied after
    /// so many milliseconds.
    pub wait_ms: Option<u64>,
}

impl Applied {
    /// Of one mutation.
    ///
    /// # Errors
    /// Why it was refused, or [`RegionError::AheadOfClock`].
    pub fn only(self, region: &Region) -> Result<(Option<CellBuffer>, Commit)> {
        match (self.results.into_iter().next(), self.wait_ms) {
            (Some(result), _) => Ok((result?, self.commit)),
            (None, wait_ms) => {
                Err(RegionError::AheadOfClock { region: region.name().clone(), wait_ms: wait_ms.unwrap_or(0) })
            }
        }
    }
}

/// What became of an atomic write.
#[derive(Debug)]
pub struct Written {
    /// New cells of the Increments and Appends that want them back.
    pub result: CellBuffer,
    /// The rest of the way.
    pub commit: Commit,
}

/// What became of [`Region::check_and_mutate`].
#[derive(Debug)]
pub struct Checked {
    /// Whether the condition held.
    pub processed: bool,
    /// New cells of the Increments and Appends that want them back, when it did.
    pub result: Option<CellBuffer>,
    /// The rest of the way; when the condition did not hold, that of the writes it saw.
    pub commit: Commit,
}

/// How a large batch is written so that others have room: asked before each of its pieces, while nothing is locked.
pub trait WritePace {
    /// Bytes of one piece, at the most.
    fn piece_bytes(&self) -> usize;

    /// Returns when a piece of `bytes` may be written.
    ///
    /// # Errors
    /// This piece is not to be written, nor what comes after it.
    fn admit(&self, bytes: u64) -> Result<()>;
}

/// Cells handed to a memstore at once.
const INSERTED_AT_ONCE: usize = 32;
/// Attempts to read under row locks from memory alone; then the read may go to the disk under them.
const MEMORY_ATTEMPTS: u32 = 3;

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
        self.check_writable()?;
        let mut results: Vec<Result<Option<CellBuffer>>> = Vec::with_capacity(mutations.len());
        let mut commit = self.sequencer.commit();
        let (mut at, mut wait_ms) = (0, None);
        while at < mutations.len() {
            let end = at + self.group_len(&mutations[at..], pace.map_or(usize::MAX, |pace| pace.piece_bytes()));
            let group = &mutations[at..end];
            if let Some(pace) = pace {
                commit.let_go();
                let bytes = group.iter().map(|mutation| mutation.cells.bytes().len() as u64).sum();
                if let Err(error) = pace.admit(bytes) {
                    results.resize_with(mutations.len(), || Err(error.clone()));
                    break;
                }
            }
            let mut set = RowSet::default();
            for mutation in group {
                // Here HBase's own client is not to look for the region once more.
                let verdict = self.validate(mutation).map_err(|error| match error.kind() {
                    ErrorKind::WrongRegion => RegionError::FailedSanityCheck(error.to_string()),
                    _ => error,
                });
                if verdict.is_ok() {
                    set.add(&mutation.row);
                }
                results.push(verdict.map(|()| None));
            }
            match self.write_group(group, set, &mut results[at..], None, ReadMode::UNPACED, &mut commit) {
                Ok(written) => {
                    at += written.unwrap_or(0);
                    results.truncate(at);
                }
                Err(RegionError::AheadOfClock { wait_ms: ms, .. }) => {
                    results.truncate(at);
                    wait_ms = Some(ms);
                    break;
                }
                Err(error) => {
                    // The log refused the entry: what was written before stays written, the rest was not tried.
                    for result in &mut results[at..] {
                        if result.is_ok() {
                            *result = Err(error.clone());
                        }
                    }
                    results.resize_with(mutations.len(), || Err(error.clone()));
                    break;
                }
            }
        }
        self.counters.writes.fetch_add(results.len() as u64, Ordering::Relaxed);
        Ok(Applied { results, commit, wait_ms })
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
        self.check_writable()?;
        afford(mutations, mode)?;
        let mut set = RowSet::default();
        for mutation in mutations {
            self.validate(mutation)?;
            set.add(&mutation.row);
        }
        let (result, commit) = self
            .write_atomically(mutations, set, Atomic { nonce, ..Atomic::default() }, mode)?
            .expect("there is no condition");
        self.counters.writes.fetch_add(mutations.len() as u64, Ordering::Relaxed);
        Ok(Written { result, commit })
    }

    /// Adds the cells' amounts to the newest values. Its nonce is the mutation's.
    ///
    /// # Errors
    /// As [`Region::mutate_rows`].
    pub fn increment(&self, increment: &Mutation) -> Result<Written> {
        self.mutate_rows(std::slice::from_ref(increment), increment.nonce)
    }

    /// Appends the cells' bytes to the newest values. Its nonce is the mutation's.
    ///
    /// # Errors
    /// As [`Region::mutate_rows`].
    pub fn append(&self, append: &Mutation) -> Result<Written> {
        self.mutate_rows(std::slice::from_ref(append), append.nonce)
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
        self.check_writable()?;
        afford(mutations, mode)?;
        if mutations.iter().any(|mutation| mutation.row != condition.row) {
            return Err(RegionError::DoNotRetry("Action's getRow must match".into()));
        }
        self.check_row(&condition.row, "doCheckAndRowMutate")?;
        let mut set = RowSet::default();
        set.add(&condition.row);
        let conditions = std::slice::from_ref(condition);
        let atomic = Atomic { nonce, conditions, stamp_after_seen: true };
        let checked = self.write_checked(mutations, set, atomic, mode)?;
        self.counters.writes.fetch_add(1, Ordering::Relaxed);
        Ok(checked)
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
        self.check_writable()?;
        let mut set = RowSet::default();
        for condition in conditions {
            self.check_row(&condition.row, "row lock")?;
            set.add(&condition.row);
        }
        for mutation in mutations {
            if conditions.is_empty() {
                self.validate(mutation)?;
            } else {
                self.check_row(&mutation.row, "row lock")?;
            }
            set.add(&mutation.row);
        }
        self.counters.writes.fetch_add(mutations.len() as u64, Ordering::Relaxed);
        let atomic = Atomic { nonce, conditions, stamp_after_seen: false };
        self.write_checked(mutations, set, atomic, ReadMode::UNPACED)
    }

    fn write_checked(
        &self,
        mutations: &[Mutation],
        set: RowSet,
        atomic: Atomic<'_>,
        mode: ReadMode<'_>,
    ) -> Result<Checked> {
        Ok(match self.write_atomically(mutations, set, atomic, mode)? {
            Some((result, commit)) => {
                self.counters.checks_passed.fetch_add(1, Ordering::Relaxed);
                // Puts and deletes alone have no result, not even an empty one.
                let counts = mutations.iter().any(|m| matches!(m.kind, MutationKind::Increment | MutationKind::Append));
                Checked { processed: true, result: counts.then_some(result), commit }
            }
            None => {
                self.counters.checks_failed.fetch_add(1, Ordering::Relaxed);
                // What the check saw may be neither in the log nor visible yet; nobody may hear of it before it is both.
                let (seen, wait) = self.sequencer.all_so_far();
                let commit = self.sequencer.commit().after(seen, wait);
                Checked { processed: false, result: None, commit }
            }
        })
    }

    fn write_atomically(
        &self,
        mutations: &[Mutation],
        set: RowSet,
        atomic: Atomic<'_>,
        mode: ReadMode<'_>,
    ) -> Result<Option<(CellBuffer, Commit)>> {
        let mut commit = self.sequencer.commit();
        let mut results: Vec<Result<Option<CellBuffer>>> = mutations.iter().map(|_| Ok(None)).collect();
        let nonce = atomic.nonce.or_else(|| mutations.iter().find_map(|m| m.nonce));
        let atomic = Some(Atomic { nonce, ..atomic });
        if self.write_group(mutations, set, &mut results, atomic, mode, &mut commit)?.is_none() {
            return Ok(None);
        }
        let mut result = CellBuffer::new();
        for cells in results {
            if let Some(cells) = cells? {
                cells.iter_from(0).for_each(|cell| result.push(cell));
            }
        }
        Ok(Some((result, commit)))
    }

    /// How many of the first mutations may share a log entry. A delete of the latest version may, behind a put to its
    /// column: it is meant for what was there before the call, as in HBase. Beyond `most_bytes` only one alone.
    fn group_len(&self, mutations: &[Mutation], most_bytes: usize) -> usize {
        let (mut written, mut bytes) = (RowSet::default(), 0);
        // By their hashes: two rows for one only end the group early.
        let mut deleted: FxHashSet<RowKey> = FxHashSet::default();
        let Some(first) = mutations.first().filter(|_| mutations.len() > 1) else { return mutations.len() };
        for (i, mutation) in mutations.iter().enumerate() {
            let builds_on = matches!(mutation.kind, MutationKind::Increment | MutationKind::Append);
            bytes += mutation.cells.bytes().len();
            let ends =
                mutation.nonce != first.nonce || (builds_on && written.overlaps(&mutation.row)) || bytes > most_bytes;
            if i > 0 && ends {
                return i;
            }
            if self.follows_delete(mutation, &mut deleted) {
                return i;
            }
            written.add(&mutation.row);
        }
        mutations.len()
    }

    /// Whether the server stamps a put where it has stamped a marker for the same row, one of `deleted`. To those it
    /// adds the mutation's row if that is deleted.
    fn follows_delete(&self, mutation: &Mutation, deleted: &mut FxHashSet<RowKey>) -> bool {
        let may_mark = match mutation.kind {
            MutationKind::Delete => true,
            MutationKind::Put => mutation.cells.iter().any(CellRef::is_delete),
            MutationKind::Increment | MutationKind::Append => false,
        };
        if self.settings.hbase_tick_semantics || (deleted.is_empty() && !may_mark) {
            return false;
        }
        let (stamps, row) = (Stamps::of(mutation), self.row_key(&mutation.row));
        if stamps.puts && deleted.contains(&row) {
            return true;
        }
        if stamps.marks {
            deleted.insert(row);
        }
        false
    }

    fn row_key(&self, row: &[u8]) -> RowKey {
        RowKey::of(self.table_hash, row)
    }

    /// The tick that the server's stamps in `mutation` must have. The caller holds the row's lock, or writes nothing.
    fn tick_of(&self, mutation: &Mutation, moment: Moment) -> i64 {
        if self.newest_tick.load(Ordering::Relaxed) < moment.now {
            return moment.now;
        }
        match Stamps::of(mutation) {
            Stamps { puts: false, marks: false } => moment.now,
            Stamps { puts, .. } => self.env().ticks.next(self.row_key(&mutation.row), moment.now, puts),
        }
    }

    /// Remembers the ticks that later writes of the same rows must look out for. The caller holds the rows' locks.
    fn enter_ticks(&self, prepared: &Prepared) {
        for taken in &prepared.taken {
            self.env().ticks.enter(*taken, prepared.moment.now);
            self.newest_tick.fetch_max(taken.tick, Ordering::Relaxed);
        }
    }

    /// Remembers what the log brings back of a moment that the clock has not passed.
    pub(crate) fn enter_replayed(&self, cell: CellRef<'_>, now: i64) {
        let tick = cell.timestamp();
        if !self.settings.hbase_tick_semantics && cell.is_delete() && (now..=now + MOST_AHEAD_MS).contains(&tick) {
            self.env().ticks.enter(Taken { row: self.row_key(cell.row()), marker: Some(tick), tick }, now);
            self.newest_tick.fetch_max(tick, Ordering::Relaxed);
        }
    }

    fn durability_of(&self, mutation: &Mutation) -> Durability {
        match mutation.durability {
            Durability::UseDefault => self.table_durability,
            durability => durability,
        }
    }

    /// Writes one group, all or nothing if it is `atomic`: `results` says which of its mutations to pass over and takes
    /// what comes of the others. How many of its first mutations that were: a group that is not atomic ends before one
    /// that must wait for the clock. `None`: the condition did not hold.
    fn write_group(
        &self,
        group: &[Mutation],
        set: RowSet,
        results: &mut [Result<Option<CellBuffer>>],
        atomic: Option<Atomic<'_>>,
        allowed: ReadMode<'_>,
        commit: &mut Commit,
    ) -> Result<Option<usize>> {
        let all_or_nothing = atomic.is_some();
        let mut attempt = 0;
        let needs_read =
            atomic.as_ref().is_some_and(|a| !a.conditions.is_empty()) || group.iter().any(reads_before_writing);
        loop {
            attempt += 1;
            let unlimited = EffortBudget::new(u64::MAX);
            let mode = match allowed {
                ReadMode::MayRead(_) if needs_read && attempt <= MEMORY_ATTEMPTS => ReadMode::FromMemory(&unlimited),
                // Row locks are held: nobody pauses.
                ReadMode::MayRead(_) => ReadMode::UNPACED,
                ReadMode::FromMemory(_) => allowed,
            };
            let guards = self.locks.lock(set);
            let mut prepared = Prepared::new(self.moment(), group);
            let outcome = self.prepare_group(group, results, all_or_nothing, &atomic, mode, &mut prepared);
            match outcome {
                Err(RegionError::WouldBlock) if matches!(mode, ReadMode::FromMemory(_)) => {
                    drop(guards);
                    if matches!(allowed, ReadMode::FromMemory(_)) {
                        return Err(RegionError::WouldBlock);
                    }
                    // Bring the blocks into memory without holding anybody up, then look again under the locks.
                    let mut dry = Prepared::new(self.moment(), group);
                    self.prepare_group(group, results, all_or_nothing, &atomic, allowed, &mut dry)?;
                    continue;
                }
                Err(error) => return Err(error),
                Ok(false) => return Ok(None),
                Ok(true) => {}
            }
            let written = prepared.outcomes.len();
            for (result, made) in results.iter_mut().zip(&mut prepared.outcomes) {
                if result.is_ok() {
                    *result = made.take().unwrap_or(Ok(None));
                }
            }
            if prepared.cells == 0 {
                return Ok(Some(written));
            }
            let nonce = atomic.as_ref().map_or(group[0].nonce, |a| a.nonce);
            let durability = group[..written].iter().map(|m| self.durability_of(m)).max().unwrap_or_default();
            self.log_and_insert(&prepared, nonce, durability, commit)?;
            self.enter_ticks(&prepared);
            drop(guards);
            return Ok(Some(written));
        }
    }

    fn prepare_group(
        &self,
        group: &[Mutation],
        results: &[Result<Option<CellBuffer>>],
        all_or_nothing: bool,
        atomic: &Option<Atomic<'_>>,
        mode: ReadMode<'_>,
        prepared: &mut Prepared,
    ) -> Result<bool> {
        for condition in atomic.iter().flat_map(|atomic| atomic.conditions) {
            let (holds, seen) = self.check_condition(condition, mode)?;
            if !holds {
                return Ok(false);
            }
            if atomic.as_ref().is_some_and(|atomic| atomic.stamp_after_seen) {
                // A put must not be eclipsed by what the check saw. HBase stamps nothing else so.
                prepared.seen = prepared.seen.max(seen);
            }
        }
        if atomic.as_ref().is_some_and(|atomic| !atomic.conditions.is_empty()) {
            // What would not be written is not looked at.
            group.iter().try_for_each(|mutation| self.validate(mutation))?;
        }
        let tick_of_all = match all_or_nothing {
            true => group.iter().map(|mutation| self.tick_of(mutation, prepared.moment)).max(),
            false => None,
        };
        let skips = |m: &Mutation| self.durability_of(m) == Durability::SkipWal;
        if !all_or_nothing && group.iter().any(skips) && !group.iter().all(skips) {
            prepared.logged = Some(Default::default());
        }
        for (mutation, result) in group.iter().zip(results) {
            if result.is_err() {
                prepared.outcomes.push(None);
                continue;
            }
            // Not before what the group did to the row already: what it took is entered at its end.
            let tick = tick_of_all.unwrap_or_else(|| self.tick_of(mutation, prepared.moment).max(prepared.tick));
            if let Some(wait_ms @ 1..=LONGEST_WAIT_MS) = tick.checked_sub(prepared.moment.limit) {
                if !all_or_nothing && !prepared.outcomes.is_empty() {
                    return Ok(true);
                }
                return Err(RegionError::AheadOfClock { region: self.name().clone(), wait_ms: wait_ms as u64 });
            }
            prepared.begin(tick);
            let (run_len, cells) = (prepared.run.len(), prepared.cells);
            match self.prepare(mutation, mode, prepared) {
                Ok(result) => {
                    if let Some((logged, count)) = &mut prepared.logged
                        && !skips(mutation)
                    {
                        logged.extend_from_slice(&prepared.run[run_len..]);
                        *count += prepared.cells - cells;
                    }
                    prepared.outcomes.push(Some(Ok(result)));
                    self.note_taken(mutation, prepared);
                }
                Err(error) if all_or_nothing || error.is_would_block() => return Err(error),
                Err(error) => {
                    prepared.run.truncate(run_len);
                    prepared.cells = cells;
                    prepared.outcomes.push(Some(Err(error)));
                }
            }
        }
        Ok(true)
    }

    /// The mutation that was prepared last took its tick.
    fn note_taken(&self, mutation: &Mutation, prepared: &mut Prepared) {
        let (tick, marker) = (prepared.tick, prepared.marker);
        if !self.settings.hbase_tick_semantics && (marker.is_some() || tick > prepared.moment.now) {
            prepared.taken.push(Taken { row: self.row_key(&mutation.row), marker, tick });
        }
    }

    /// One entry into the log's buffer and its cells into the memstores.
    fn log_and_insert(
        &self,
        prepared: &Prepared,
        nonce: Option<Nonce>,
        durability: Durability,
        commit: &mut Commit,
    ) -> Result<()> {
        let _updating = self.updates.read();
        self.check_open()?;
        let (seq_id, wait) = if durability == Durability::SkipWal || prepared.for_log().1 == 0 {
            self.counters.writes_without_log.fetch_add(1, Ordering::Relaxed);
            self.sequencer.unlogged()
        } else {
            self.log_entry(prepared, nonce, durability, commit)?
        };
        self.insert(&prepared.run, seq_id);
        self.sequencer.inserted(seq_id);
        self.accounting.note_edits(prepared.cells as u64, prepared.moment.now);
        commit.add(seq_id, wait);
        Ok(())
    }

    fn log_entry(
        &self,
        prepared: &Prepared,
        nonce: Option<Nonce>,
        durability: Durability,
        commit: &mut Commit,
    ) -> Result<(SeqId, Option<(Ticket, Level)>)> {
        let mut families: Vec<&[u8]> = Vec::with_capacity(self.stores.len().min(8));
        let mut scopes: Vec<ReplicationScope<&[u8]>> = Vec::new();
        for (i, store) in self.stores.iter().enumerate() {
            if prepared.touches(i) {
                families.push(&store.name);
                if store.replicated {
                    scopes.push(ReplicationScope { family: &store.name, scope: 1 });
                }
            }
        }
        let (run, cells) = prepared.for_log();
        let mut turn = self.sequencer.turn();
        let seq_id = turn.seq_id();
        let key = EntryKey {
            nonce: nonce.map(|n| (n.group, n.number)),
            scopes: &scopes,
            ..EntryKey::new(
                self.name(),
                self.info().table.as_str(),
                seq_id,
                TimestampMs(prepared.moment.now),
                &families,
            )
        };
        let log = &self.env().log;
        // For all others there is a commit, and with it a batch.
        let appended = if durability == Durability::AsyncWal {
            log.append(&key, run, cells)
        } else {
            commit.batch(log).append(&key, run, cells)
        };
        let appended = turn.appended(appended, durability == Durability::FsyncWal);
        drop(turn);
        let (ticket, level) = appended.map_err(|error| self.log_refused(error))?;
        let wait = match durability {
            Durability::AsyncWal => self.sequencer.wait_for_earlier(seq_id),
            Durability::FsyncWal if base::inject!("region.write.fsync-acknowledged-early") => Some((ticket, level)),
            Durability::FsyncWal => Some((ticket, Level::Synced)),
            _ => Some((ticket, level)),
        };
        Ok((seq_id, wait))
    }

    fn insert(&self, run: &[u8], seq_id: SeqId) {
        let mut total = Growth::default();
        let mut cells = CellIter::over_checked(run, seq_id).peekable();
        while let Some(first) = cells.next() {
            let family = first.family();
            let store = self.store(family).expect("families were checked");
            let segment: Arc<Segment> = store.peek().memory.active().clone();
            let mut inserter = segment.inserter();
            // Gathered on the stack, so that several places are looked for at once.
            let (mut some, mut count) = ([first; INSERTED_AT_ONCE], 1);
            while let Some(cell) = cells.next_if(|cell| cell.family() == family) {
                if count == some.len() {
                    inserter.insert_all(&some);
                    count = 0;
                }
                some[count] = cell;
                count += 1;
            }
            inserter.insert_all(&some[..count]);
            let growth = inserter.finish();
            total.heap_bytes += growth.heap_bytes;
            total.data_bytes += growth.data_bytes;
        }
        self.accounting.grew(total.heap_bytes as i64, total.data_bytes as i64);
    }

    fn log_refused(&self, error: wal::Error) -> RegionError {
        match error {
            wal::Error::Full { .. } | wal::Error::Busy { .. } => {
                RegionError::TooBusy(format!("regionName={}: {error}", self.name()))
            }
            error => RegionError::log(self.name(), error),
        }
    }
}

#[derive(Default)]
struct Atomic<'a> {
    nonce: Option<Nonce>,
    /// All must hold.
    conditions: &'a [Condition],
    /// Whether the write is stamped no earlier than what the conditions saw: checkAndMutate promises it, the endpoint
    /// for several rows does not.
    stamp_after_seen: bool,
}

/// What one written cell counts: its copies into log and memstore, its place there.
const UNITS_OF_A_WRITTEN_CELL: u64 = 4;

/// What writing `mutations` counts of an effort budget, without what they read.
pub fn effort_units(mutations: &[Mutation]) -> u64 {
    let of_one = |mutation: &Mutation| {
        let cells = mutation.cells.len().max(1) as u64;
        cells * UNITS_OF_A_WRITTEN_CELL + mutation.cells.bytes().len() as u64 / base::effort::BYTES_PER_UNIT
    };
    mutations.iter().map(of_one).sum()
}

/// # Errors
/// Writing `mutations` alone is more than is left of the budget.
fn afford(mutations: &[Mutation], mode: ReadMode<'_>) -> Result<()> {
    match mode {
        ReadMode::FromMemory(budget) if !budget.spend(effort_units(mutations)) => Err(RegionError::WouldBlock),
        ReadMode::FromMemory(_) | ReadMode::MayRead(_) => Ok(()),
    }
}

/// Whether the mutation's cells depend on what the row holds.
fn reads_before_writing(mutation: &Mutation) -> bool {
    match mutation.kind {
        MutationKind::Put => false,
        MutationKind::Delete => mutation.cells.iter().any(prepare::deletes_latest_version),
        MutationKind::Append | MutationKind::Increment => true,
    }
}
