//! Writes that are done as a whole or not at all, with or without conditions.

use super::{Checked, Writer, Written, afford};
use crate::commit::Commit;
use crate::error::{RegionError, Result};
use crate::row_lock::RowSet;
use base::ReadMode;
use cell::CellBuffer;
use model::{Condition, Mutation, MutationKind, Nonce};
use std::sync::atomic::Ordering;

/// What makes a group atomic.
#[derive(Default)]
pub(super) struct Atomic<'a> {
    pub nonce: Option<Nonce>,
    /// All must hold.
    pub conditions: &'a [Condition],
    /// Whether the write is stamped no earlier than what the conditions saw: checkAndMutate promises it, the endpoint
    /// for several rows does not.
    pub stamp_after_seen: bool,
}

impl Writer<'_> {
    /// Writes all mutations or none, as one log entry under one sequence id.
    pub(crate) fn mutate_rows(
        &self,
        mutations: &[Mutation],
        nonce: Option<Nonce>,
        mode: ReadMode<'_>,
    ) -> Result<Written> {
        self.core.check_writable()?;
        afford(mutations, mode)?;
        let mut set = RowSet::default();
        for mutation in mutations {
            self.validate(mutation)?;
            set.add(&mutation.row);
        }
        let (result, commit) = self
            .write_atomically(mutations, set, Atomic { nonce, ..Atomic::default() }, mode)?
            .expect("there is no condition");
        self.core.counters.writes.fetch_add(mutations.len() as u64, Ordering::Relaxed);
        self.core.rows_written(mutations);
        Ok(Written { result, commit })
    }

    /// Writes all mutations, which must be of the condition's row, if the condition holds.
    pub(crate) fn check_and_mutate(
        &self,
        condition: &Condition,
        mutations: &[Mutation],
        nonce: Option<Nonce>,
        mode: ReadMode<'_>,
    ) -> Result<Checked> {
        self.core.check_writable()?;
        afford(mutations, mode)?;
        if mutations.iter().any(|mutation| mutation.row != condition.row) {
            return Err(RegionError::DoNotRetry("Action's getRow must match".into()));
        }
        self.core.check_row(&condition.row, "doCheckAndRowMutate")?;
        let mut set = RowSet::default();
        set.add(&condition.row);
        let conditions = std::slice::from_ref(condition);
        let atomic = Atomic { nonce, conditions, stamp_after_seen: true };
        let checked = self.write_checked(mutations, set, atomic, mode)?;
        self.core.counters.writes.fetch_add(1, Ordering::Relaxed);
        // The row is looked at and perhaps written once, whatever is done to it.
        self.core.rows_written(&mutations[..mutations.len().min(1)]);
        Ok(checked)
    }

    /// Writes all mutations, of whichever rows of the region, if every one of the conditions, of whichever rows, holds.
    /// Conditions and mutations are of one moment: all their rows are locked together.
    pub(crate) fn check_and_mutate_rows(
        &self,
        conditions: &[Condition],
        mutations: &[Mutation],
        nonce: Option<Nonce>,
    ) -> Result<Checked> {
        self.core.check_writable()?;
        let mut set = RowSet::default();
        for condition in conditions {
            self.core.check_row(&condition.row, "row lock")?;
            set.add(&condition.row);
        }
        for mutation in mutations {
            if conditions.is_empty() {
                self.validate(mutation)?;
            } else {
                self.core.check_row(&mutation.row, "row lock")?;
            }
            set.add(&mutation.row);
        }
        self.core.counters.writes.fetch_add(mutations.len() as u64, Ordering::Relaxed);
        self.core.rows_written(mutations);
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
                self.core.counters.checks_passed.fetch_add(1, Ordering::Relaxed);
                // Puts and deletes alone have no result, not even an empty one.
                let counts = mutations.iter().any(|m| matches!(m.kind, MutationKind::Increment | MutationKind::Append));
                Checked { processed: true, result: counts.then_some(result), commit }
            }
            None => {
                self.core.counters.checks_failed.fetch_add(1, Ordering::Relaxed);
                // What the check saw may be neither in the log nor visible yet; nobody may hear of it before it is both.
                let (seen, wait) = self.core.sequencer.all_so_far();
                let commit = self.core.sequencer.commit().after(seen, wait);
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
        let mut commit = self.core.sequencer.commit();
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
}
