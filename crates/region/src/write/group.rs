//! Groups: which mutations share a log entry, and how one is prepared under its rows' locks and written.

use super::Writer;
use super::atomic::Atomic;
use super::prepare::{self, Prepared};
use crate::commit::Commit;
use crate::error::{RegionError, Result};
use crate::row_lock::RowSet;
use crate::ticks::{RowKey, Stamps};
use base::{EffortBudget, ReadMode};
use cell::{CellBuffer, CellRef};
use model::{Durability, Mutation, MutationKind};
use rustc_hash::FxHashSet;

/// Attempts to read under row locks from memory alone; then the read may go to the disk under them.
const MEMORY_ATTEMPTS: u32 = 3;

impl Writer<'_> {
    /// How many of the first mutations may share a log entry. A delete of the latest version may, behind a put to its
    /// column: it is meant for what was there before the call, as in HBase. Beyond `most_bytes` only one alone.
    pub(super) fn group_len(&self, mutations: &[Mutation], most_bytes: usize) -> usize {
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
        if self.core.ticks.has_hbase_semantics() || (deleted.is_empty() && !may_mark) {
            return false;
        }
        let (stamps, row) = (Stamps::of(mutation), self.core.ticks.row_key(&mutation.row));
        if stamps.puts && deleted.contains(&row) {
            return true;
        }
        if stamps.marks {
            deleted.insert(row);
        }
        false
    }

    fn durability_of(&self, mutation: &Mutation) -> Durability {
        match mutation.durability {
            Durability::UseDefault => self.core.table_durability,
            durability => durability,
        }
    }

    /// Writes one group, all or nothing if it is `atomic`: `results` says which of its mutations to pass over and takes
    /// what comes of the others. How many of its first mutations that were: a group that is not atomic ends before one
    /// that must wait for the clock. `None`: the condition did not hold.
    pub(super) fn write_group(
        &self,
        group: &[Mutation],
        set: RowSet,
        results: &mut [Result<Option<CellBuffer>>],
        atomic: Option<Atomic<'_>>,
        allowed: ReadMode<'_>,
        commit: &mut Commit,
    ) -> Result<Option<usize>> {
        let atomic = atomic.as_ref();
        let needs_read = atomic.is_some_and(|a| !a.conditions.is_empty()) || group.iter().any(reads_before_writing);
        let mut attempt = 0;
        loop {
            attempt += 1;
            let unlimited = EffortBudget::new(u64::MAX);
            let mode = match allowed {
                ReadMode::MayRead(_) if needs_read && attempt <= MEMORY_ATTEMPTS => ReadMode::FromMemory(&unlimited),
                // Row locks are held: nobody pauses.
                ReadMode::MayRead(_) => ReadMode::UNPACED,
                ReadMode::FromMemory(_) => allowed,
            };
            let guards = self.core.locks.lock(set);
            let mut prepared = Prepared::new(self.core.ticks.moment(), group);
            match self.prepare_group(group, results, atomic, mode, &mut prepared) {
                Err(RegionError::WouldBlock) if matches!(mode, ReadMode::FromMemory(_)) => {
                    drop(guards);
                    if matches!(allowed, ReadMode::FromMemory(_)) {
                        return Err(RegionError::WouldBlock);
                    }
                    // Bring the blocks into memory without holding anybody up, then look again under the locks.
                    let mut dry = Prepared::new(self.core.ticks.moment(), group);
                    self.prepare_group(group, results, atomic, allowed, &mut dry)?;
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
            let nonce = atomic.map_or(group[0].nonce, |a| a.nonce);
            let durability = group[..written].iter().map(|m| self.durability_of(m)).max().unwrap_or_default();
            self.log_and_insert(&prepared, nonce, durability, commit)?;
            self.core.ticks.enter(&prepared.taken, prepared.moment.now);
            drop(guards);
            return Ok(Some(written));
        }
    }

    /// Prepares the group's mutations, as far as the clock allows; false when a condition does not hold.
    fn prepare_group(
        &self,
        group: &[Mutation],
        results: &[Result<Option<CellBuffer>>],
        atomic: Option<&Atomic<'_>>,
        mode: ReadMode<'_>,
        prepared: &mut Prepared,
    ) -> Result<bool> {
        if let Some(atomic) = atomic
            && !self.conditions_hold(group, atomic, mode, prepared)?
        {
            return Ok(false);
        }
        let ticks = &self.core.ticks;
        let tick_of_all = match atomic {
            Some(_) => group.iter().map(|mutation| ticks.tick_of(mutation, prepared.moment)).max(),
            None => None,
        };
        let skips = |m: &Mutation| self.durability_of(m) == Durability::SkipWal;
        if atomic.is_none() && group.iter().any(skips) && !group.iter().all(skips) {
            prepared.logged = Some(Default::default());
        }
        for (mutation, result) in group.iter().zip(results) {
            if result.is_err() {
                prepared.outcomes.push(None);
                continue;
            }
            // Not before what the group did to the row already: what it took is entered at its end.
            let tick = tick_of_all.unwrap_or_else(|| ticks.tick_of(mutation, prepared.moment).max(prepared.tick));
            match ticks.check_reached(tick, prepared.moment) {
                Err(_) if atomic.is_none() && !prepared.outcomes.is_empty() => return Ok(true),
                reached => reached?,
            }
            prepared.begin(tick);
            self.prepare_one(mutation, mode, atomic.is_some(), !skips(mutation), prepared)?;
        }
        Ok(true)
    }

    fn conditions_hold(
        &self,
        group: &[Mutation],
        atomic: &Atomic<'_>,
        mode: ReadMode<'_>,
        prepared: &mut Prepared,
    ) -> Result<bool> {
        for condition in atomic.conditions {
            let (holds, seen) = self.check_condition(condition, mode)?;
            if !holds {
                return Ok(false);
            }
            if atomic.stamp_after_seen {
                // A put must not be eclipsed by what the check saw. HBase stamps nothing else so.
                prepared.seen = prepared.seen.max(seen);
            }
        }
        if !atomic.conditions.is_empty() {
            // What would not be written is not looked at.
            group.iter().try_for_each(|mutation| self.validate(mutation))?;
        }
        Ok(true)
    }

    /// Prepares a mutation of a group. One that is refused leaves nothing behind, and fails alone unless the group is `all_or_nothing`.
    fn prepare_one(
        &self,
        mutation: &Mutation,
        mode: ReadMode<'_>,
        all_or_nothing: bool,
        is_logged: bool,
        prepared: &mut Prepared,
    ) -> Result<()> {
        let (run_len, cells) = (prepared.run.len(), prepared.cells);
        match self.prepare(mutation, mode, prepared) {
            Ok(result) => {
                if is_logged && let Some((logged, count)) = &mut prepared.logged {
                    logged.extend_from_slice(&prepared.run[run_len..]);
                    *count += prepared.cells - cells;
                }
                prepared.outcomes.push(Some(Ok(result)));
                let taken = self.core.ticks.taken(&mutation.row, prepared.tick, prepared.marker, prepared.moment);
                prepared.taken.extend(taken);
            }
            Err(error) if all_or_nothing || error.is_would_block() => return Err(error),
            Err(error) => {
                prepared.run.truncate(run_len);
                prepared.cells = cells;
                prepared.outcomes.push(Some(Err(error)));
            }
        }
        Ok(())
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
