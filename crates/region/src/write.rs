//! The write path: validate, lock the rows, evaluate against the newest state, stamp, log, insert, unlock.
//!
//! A call's mutations are written in groups; a group is one log entry under one sequence id. A new group begins where
//! an increment or append must read a row that the group has written, where a put follows a delete of its row, or where
//! the nonce differs. Those of a group that skip the log are inserted with the others and left out of the entry. Atomic
//! calls are one group or nothing. Follows: `HRegion#doMiniBatchMutate`, `MutationBatchOperation`.

mod atomic;
mod batch;
mod change;
mod check;
mod group;
mod log;
mod prepare;
mod validate;

use crate::commit::Commit;
use crate::core::RegionCore;
use crate::error::{RegionError, Result};
use crate::region::Region;
use base::ReadMode;
use cell::CellBuffer;
use model::Mutation;

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

/// Writes mutations to a region.
#[derive(Clone, Copy)]
pub(crate) struct Writer<'r> {
    core: &'r RegionCore,
}

impl<'r> Writer<'r> {
    pub(crate) fn new(core: &'r RegionCore) -> Self {
        Writer { core }
    }
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
