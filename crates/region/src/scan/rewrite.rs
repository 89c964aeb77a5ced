//! The fast path of a flush or compaction through rows where nothing is to be decided: the row is in one source alone, and every cell is a put
//! that has neither tags nor expired and is the only one of its column. As in [`super::walk`] a row is looked at ahead of the source's position and nothing
//! of it is taken until it is known whole; where anything else turns up, it is matched from its start on the general path ([`super::store_scanner`]).

use super::matcher::Matcher;
use super::source::Run;
use crate::error::Result;
use cell::key::same_bytes;
use cell::{CellRef, Order};
use std::cmp::Ordering;

/// Rows at most that are taken at once: in a memstore nothing else ends the run.
pub(super) const MOST_ROWS: u64 = 256;
/// Rows at most that are matched before it is tried again, where it keeps failing.
pub(super) const MOST_PASSED: u32 = 63;

/// What a run came to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    pub rows: u64,
    /// It ended merely because it is another source's turn.
    pub is_others_turn: bool,
}

/// Hands the cells of plain rows to `take`, up to the row from which other sources have something to say; the run then stands at the first
/// cell that was not taken.
#[inline]
pub(super) fn plain_rows<'a>(
    mut run: impl Run<'a>,
    others_from: Option<&[u8]>,
    matcher: &Matcher,
    order: Order,
    mut take: impl FnMut(CellRef<'a>) -> Result<()>,
) -> Result<Taken> {
    let mut taken = Taken::default();
    let mut cells: Vec<CellRef<'a>> = Vec::new();
    while taken.rows < MOST_ROWS {
        let first = run.cell();
        let row = first.row();
        if others_from.is_some_and(|others| order.rows(row, others) != Ordering::Less) {
            // Where the run begins, the row is in several sources.
            taken.is_others_turn = taken.rows > 0;
            break;
        }
        if !matcher.takes_newest(first) {
            break;
        }
        let Some(mut next) = run.step() else { break };
        if same_bytes(next.row(), row) {
            cells.clear();
            let mut last = first;
            loop {
                cells.push(last);
                if same_bytes(next.qualifier(), last.qualifier()) || !matcher.takes_newest(next) {
                    return Ok(taken);
                }
                last = next;
                let Some(after) = run.step() else { return Ok(taken) };
                next = after;
                if !same_bytes(next.row(), row) {
                    break;
                }
            }
            cells.push(last);
            for cell in &cells {
                take(*cell)?;
            }
        } else {
            take(first)?;
        }
        run.commit();
        taken.rows += 1;
    }
    Ok(taken)
}
