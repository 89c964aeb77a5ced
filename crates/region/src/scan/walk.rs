//! The fast path through rows where nothing is to be decided but by the filter: one family, forwards, the row in one source alone, every
//! cell a put, and of each asked column one version or only one wanted. Such a row is looked at in place, ahead of the source's position, and nothing
//! is kept of it until it is known whole; so wherever something else turns up the row is matched from its start on the general path
//! ([`super::store_scanner`]), which also seeks where much is to be passed. What becomes of a row that is taken says a [`Taking`].

use super::limits::{Limits, estimated_bytes};
use super::matcher::Matcher;
use super::source::Run;
use super::taking::Taking;
use base::effort::BYTES_PER_UNIT;
use bytes::Bytes;
use cell::key::same_bytes;
use cell::{CellRef, CellType, Order};
use filter::{Evaluator, Verdict};
use std::cmp::Ordering;

/// Cells that are passed one by one: of columns that nobody asked for, older versions, and after the last one that is wanted of a row.
const NEAR_CELLS: u32 = 16;

/// What rows are held against.
pub(super) struct Walk<'w, 'l> {
    pub matcher: &'w Matcher,
    /// Other sources have something to say from this row on.
    pub others_from: Option<&'w [u8]>,
    /// Calm, if there is one.
    pub filter: Option<&'w mut Evaluator>,
    /// Cells that may be looked at.
    pub budget: &'w mut u64,
    /// Whether bytes count in it, too.
    pub gives_up: bool,
    pub limits: &'w mut Limits<'l>,
    /// Rows at most that are taken.
    pub max_rows: usize,
    pub max_row_bytes: u64,
    pub order: Order,
    pub stop_row: &'w [u8],
    pub include_stop_row: bool,
}

/// What a walk came to.
#[derive(Default)]
pub(super) struct Walked {
    /// Rows of which nothing is left.
    pub refused: u64,
    /// Rows whose cells were added.
    pub taken: usize,
    /// Bytes of these, as [`estimated_bytes`] counts them.
    pub taken_bytes: u64,
    /// The walk ended at a row that must be judged cell by cell.
    pub is_unclear: bool,
}

/// The columns that are asked for, in a row whose cells are passed in order.
struct Columns<'m> {
    /// `None` for all.
    asked: Option<&'m [Bytes]>,
    /// The first that may still come.
    next: usize,
}

impl Columns<'_> {
    /// Whether the next cell's column is one.
    #[inline]
    fn has(&mut self, qualifier: &[u8]) -> bool {
        let Some(asked) = self.asked else { return true };
        while let Some(column) = asked.get(self.next) {
            match column[..].cmp(qualifier) {
                Ordering::Less => self.next += 1,
                Ordering::Equal => return true,
                Ordering::Greater => return false,
            }
        }
        false
    }

    /// Whether none comes after the cell that was asked about; whether that was of one.
    #[inline]
    fn are_done(&self, is_here: bool) -> bool {
        self.asked.is_some_and(|asked| self.next + usize::from(is_here) >= asked.len())
    }
}

enum Row {
    Taken(u64),
    Refused,
    Unclear,
}

impl Walk<'_, '_> {
    /// Goes over rows until as many as are wanted are taken or the limits are met. `last_row` becomes the row that was passed last, if
    /// any was.
    #[inline]
    pub(super) fn rows<'a>(
        mut self,
        mut run: impl Run<'a>,
        taking: &mut impl Taking<'a>,
        last_row: &mut Vec<u8>,
    ) -> Walked {
        let mut walked = Walked::default();
        let mut last = None;
        while *self.budget > 0 {
            let first = run.cell();
            let row = first.row();
            if self.is_past_stop(row) || self.filter.as_ref().is_some_and(|filter| filter.filter_all_remaining()) {
                break;
            }
            if self.others_from.is_some_and(|others| self.order.rows(row, others) != Ordering::Less) {
                // Where the walk begins, the row is in several sources; later on it is merely another source's turn.
                walked.is_unclear = last.is_none();
                break;
            }
            match self.row(&mut run, first, row, taking) {
                Row::Refused => walked.refused += 1,
                Row::Taken(bytes) => {
                    taking.take();
                    walked.taken += 1;
                    walked.taken_bytes += bytes;
                    self.limits.used_bytes += bytes;
                }
                Row::Unclear => {
                    walked.is_unclear = true;
                    break;
                }
            }
            run.commit();
            last = Some(row);
            if walked.taken >= self.max_rows || (walked.taken > 0 && self.limits.is_full()) {
                break;
            }
        }
        if let Some(row) = last {
            last_row.clear();
            last_row.extend_from_slice(row);
        }
        walked
    }

    #[inline]
    fn is_past_stop(&self, row: &[u8]) -> bool {
        !self.stop_row.is_empty()
            && match self.order.rows(row, self.stop_row) {
                Ordering::Less => false,
                Ordering::Equal => !self.include_stop_row,
                Ordering::Greater => true,
            }
    }

    /// One row; afterwards the run stands at the next, unless the row is unclear: then it is as if nobody had looked.
    #[inline]
    fn row<'a>(&mut self, run: &mut impl Run<'a>, first: CellRef<'a>, row: &[u8], taking: &mut impl Taking<'a>) -> Row {
        taking.begin_row();
        let budget = *self.budget;
        let result = match self.cells(run, first, row, taking) {
            None => {
                taking.give_back();
                *self.budget = budget;
                Row::Unclear
            }
            Some(_) if taking.has_none() => Row::Refused,
            Some(bytes) => match &mut self.filter {
                None => Row::Taken(bytes),
                Some(filter) if filter.takes_first() => Row::Taken(bytes),
                Some(filter) => taking.finish(filter, bytes).map_or(Row::Refused, Row::Taken),
            },
        };
        if let Some(filter) = self.filter.as_mut().filter(|filter| !filter.takes_first()) {
            filter.reset();
        }
        result
    }

    /// Adds the row's cells that are wanted; their bytes, or `None` when the row is unclear.
    #[inline]
    fn cells<'a>(
        &mut self,
        run: &mut impl Run<'a>,
        first: CellRef<'a>,
        row: &[u8],
        taking: &mut impl Taking<'a>,
    ) -> Option<u64> {
        let mut columns = Columns { asked: self.matcher.asked_columns(), next: 0 };
        let mut cell = first;
        let mut bytes = 0;
        let mut passed = 0;
        loop {
            if *self.budget == 0 || cell.type_code() != CellType::Put.code() {
                return None;
            }
            *self.budget -= 1;
            let is_asked = columns.has(cell.qualifier());
            let (mut is_wanted, mut is_row_done) = (false, false);
            if is_asked {
                if !self.matcher.takes_newest(cell) {
                    return None;
                }
                (is_wanted, is_row_done) = self.ask_filter(cell)?;
            }
            let is_last = is_row_done || columns.are_done(is_asked);
            if is_wanted {
                passed = 0;
                run.expect_next();
                taking.add(cell, self.filter.as_deref());
                let cell_bytes = estimated_bytes(cell);
                bytes += cell_bytes;
                if self.gives_up {
                    *self.budget = self.budget.saturating_sub(cell_bytes / BYTES_PER_UNIT);
                }
                if bytes > self.max_row_bytes {
                    return None;
                }
            }
            if is_last && (!is_asked || is_row_done || self.matcher.takes_one_version()) {
                return self.pass_row(run, row, passed).then_some(bytes);
            }
            cell = loop {
                let next = run.step()?;
                if !same_bytes(next.row(), row) {
                    return Some(bytes);
                }
                let is_same_column = same_bytes(next.qualifier(), cell.qualifier());
                if is_same_column && is_asked && !is_row_done && !self.matcher.takes_one_version() {
                    return None;
                }
                let is_passed = is_last || (is_same_column && next.type_code() == CellType::Put.code());
                passed += u32::from(is_passed || !is_asked);
                if passed > NEAR_CELLS {
                    return None;
                }
                if !is_passed {
                    break next;
                }
                *self.budget = self.budget.saturating_sub(1);
            };
            if self.may_cut(bytes) {
                return None;
            }
        }
    }

    /// Steps over the rest of a row of which nothing more is wanted, where that is not much: whether it did.
    #[inline]
    fn pass_row<'a>(&mut self, run: &mut impl Run<'a>, row: &[u8], passed: u32) -> bool {
        for _ in passed..=NEAR_CELLS {
            match run.step() {
                Some(next) if same_bytes(next.row(), row) => *self.budget = self.budget.saturating_sub(1),
                next => return next.is_some(),
            }
        }
        false
    }

    /// Whether the cell is wanted, and whether nothing more of its row is. `None`: the filter said something else.
    #[inline]
    fn ask_filter(&mut self, cell: CellRef<'_>) -> Option<(bool, bool)> {
        let Some(filter) = &mut self.filter else { return Some((true, false)) };
        if filter.takes_first() {
            return Some((true, true));
        }
        match filter.filter_cell(cell) {
            Ok(Verdict::Include | Verdict::IncludeAndNextCol) => Some((true, false)),
            Ok(Verdict::IncludeAndSeekNextRow) => Some((true, true)),
            Ok(Verdict::Skip | Verdict::NextCol) => Some((false, false)),
            Ok(Verdict::NextRow) => Some((false, true)),
            // An error is said where the row is judged.
            Ok(Verdict::SeekNextUsingHint) | Err(_) => None,
        }
    }

    /// Whether a row with so many bytes may have to end before its end.
    #[inline]
    fn may_cut(&self, bytes: u64) -> bool {
        self.limits.partial_rows && self.limits.used_bytes.saturating_add(bytes) >= self.limits.size_bytes
    }
}
