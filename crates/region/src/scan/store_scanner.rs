//! Reads one family: the merged run of its memstore and files through the [`Matcher`], row by row.
//!
//! The scanner is stepped cell by cell; the seek that an included cell asks for is done when the next step begins, so
//! the caller may look at the cell without copying it. Follows: `StoreScanner`, `ReversedStoreScanner`.

use super::backoff::AttemptBackoff;
use super::matcher::{Code, Matcher};
use super::merge::Merge;
use super::rewrite;
use super::selection::Selection;
use super::source::{AnyRun, write_first_on_row, write_last_on_row};
use crate::error::{RegionError, Result};
use crate::mob;
use crate::mob::read::MobReads;
use crate::row_reads::{RowCount, RowReads};
use bytes::Bytes;
use cell::key::same_bytes;
use cell::{CellRef, CellType, KeyRef};
use filter::Evaluator;
use hfile::Residency;
use std::cmp::Ordering;
use std::sync::Arc;

/// What a step came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// [`StoreScanner::cell`] is wanted.
    Cell,
    /// The row has no more.
    RowEnd,
    /// The step budget is used up; step again.
    Pause,
    /// Nothing more in this family.
    End,
}

/// What must be done before going on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum After {
    Nothing,
    Next,
    NextCol,
    NextRow,
}

/// How a store scanner is bounded.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowLimits {
    pub is_single_row: bool,
    pub reversed: bool,
    /// Cells per row that are passed over first.
    pub offset: u32,
    /// Cells per row that are wanted after those.
    pub limit: Option<u32>,
    /// The last row, when the scan includes it: nothing is sought after it.
    pub last_row: Option<Bytes>,
}

/// One family's scanner.
pub(crate) struct StoreScanner {
    region: Arc<str>,
    merge: Merge,
    matcher: Matcher,
    limits: RowLimits,
    row: Vec<u8>,
    in_row: bool,
    /// The row was begun at the cell where the merge stands: it needs no look at the cell's row.
    at_start: bool,
    done: bool,
    after: After,
    taken_in_row: u32,
    /// The row has given as many cells as are wanted of it.
    limit_reached: bool,
    key: Vec<u8>,
    hint: Vec<u8>,
    mob: Option<MobReads>,
    /// What of the store it looks at; none in a flush or compaction.
    selection: Option<Selection>,
    /// The cell that the last step wanted, when it was a reference to one in a MOB file.
    resolved: Vec<u8>,
    is_resolved: bool,
    /// The scan asks for nothing that keeps [`StoreScanner::run`] from being of use.
    is_simple: bool,
    /// When [`StoreScanner::take_plain_rows`] is of use; `None`: never.
    backoff: Option<AttemptBackoff>,
    /// Where cells come from; not counted in a flush or compaction.
    row_count: Option<RowCount>,
}

/// Steps of `next` tried before a seek to a near key.
const NEAR_STEPS: u32 = 3;

impl StoreScanner {
    /// `merge` is positioned already.
    pub(crate) fn new(region: Arc<str>, merge: Merge, matcher: Matcher, limits: RowLimits) -> StoreScanner {
        let is_simple = matcher.is_simple()
            && !limits.reversed
            && !limits.is_single_row
            && limits.offset == 0
            && limits.limit.is_none();
        let backoff = matcher.is_simple_rewrite().then(|| AttemptBackoff::new(rewrite::MOST_PASSED));
        StoreScanner {
            region,
            merge,
            matcher,
            limits,
            row: Vec::new(),
            in_row: false,
            at_start: false,
            done: false,
            after: After::Nothing,
            taken_in_row: 0,
            limit_reached: false,
            key: Vec::new(),
            hint: Vec::new(),
            mob: None,
            selection: None,
            resolved: Vec::new(),
            is_resolved: false,
            is_simple,
            backoff,
            row_count: None,
        }
    }

    /// Rows that are read are counted.
    pub(super) fn with_row_reads(mut self, reads: &Arc<RowReads>) -> StoreScanner {
        self.row_count = Some(RowCount::new(reads.clone()));
        self
    }

    /// For what counts rows, if any does.
    #[inline]
    pub(super) fn row_count(&mut self) -> Option<&mut RowCount> {
        self.row_count.as_mut()
    }

    /// References to MOB files are read through.
    pub(crate) fn with_mob(mut self, mob: Option<MobReads>) -> StoreScanner {
        self.is_simple &= mob.is_none();
        self.mob = mob;
        self
    }

    /// It can be moved to another picture of its store.
    pub(super) fn with_selection(mut self, selection: Selection) -> StoreScanner {
        self.selection = Some(selection);
        self
    }

    /// Whether files may be read from now on.
    pub(crate) fn set_residency(&mut self, residency: Residency) {
        self.merge.sources_mut().iter_mut().for_each(|source| source.set_residency(residency));
        if let Some(mob) = &mut self.mob {
            mob.residency = residency;
        }
    }

    /// Forwards: to the first row after `row`, wherever the scanner is, after an error too.
    pub(crate) fn begin_after(&mut self, row: &[u8]) -> Result<()> {
        self.after = After::Nothing;
        (self.in_row, self.at_start, self.done) = (false, false, false);
        if let Some(count) = &mut self.row_count {
            count.forget();
        }
        write_last_on_row(&mut self.key, row);
        let key = KeyRef::from_checked(&self.key);
        let done = self.merge.sources_mut().iter_mut().try_for_each(|source| source.seek(key));
        let done = done.and_then(|()| self.merge.sources_moved());
        self.wrap(done)
    }

    pub(super) fn merge(&self) -> &Merge {
        &self.merge
    }

    /// The same place in other sources.
    pub(super) fn replace_merge(&mut self, merge: Merge) {
        (self.merge, self.at_start) = (merge, false);
    }

    pub(super) fn selection(&self) -> Option<&Selection> {
        self.selection.as_ref()
    }

    pub(crate) fn merge_mut(&mut self) -> &mut Merge {
        &mut self.merge
    }

    pub(super) fn wrap<T>(&self, result: hfile::Result<T>) -> Result<T> {
        result.map_err(|error| RegionError::file(&self.region, error))
    }

    /// The row that the next cell belongs to.
    #[inline]
    pub(crate) fn peek_row(&self) -> Option<&[u8]> {
        self.peek().map(|cell| cell.key().row())
    }

    /// The next cell, judged or not.
    #[inline]
    pub(crate) fn peek(&self) -> Option<CellRef<'_>> {
        if self.done { None } else { self.merge.current() }
    }

    /// The cell that the last step wanted.
    #[inline]
    pub(crate) fn cell(&self) -> CellRef<'_> {
        let cell = self.merge.current().expect("asked after Step::Cell only");
        if self.is_resolved { CellRef::from_checked(&self.resolved, cell.seq_id()) } else { cell }
    }

    /// Between rows: the cells from here on, the row before which they end, and the matcher that says which of them are simply to be
    /// taken. `None` where cells must be stepped through one by one. After a move [`StoreScanner::run_moved`] must be called.
    #[inline]
    pub(crate) fn run(&mut self) -> Option<(AnyRun<'_>, Option<&[u8]>, &Matcher)> {
        if !self.is_simple || self.in_row || self.done || self.after != After::Nothing {
            return None;
        }
        self.merge.run().map(|(run, end)| (run, end, &self.matcher))
    }

    /// In a flush or compaction, between rows: hands over the cells of the rows from here on about which nothing is to be decided, mostly as far as the block
    /// goes, and whether readers want their block in the cache. The next row, if there is one, is to be stepped through.
    ///
    /// # Errors
    /// Those of `take`; then the scanner is of no more use.
    #[inline]
    pub(crate) fn take_plain_rows(&mut self, mut take: impl FnMut(CellRef<'_>, bool) -> Result<()>) -> Result<()> {
        let Some(backoff) = &mut self.backoff else { return Ok(()) };
        if self.in_row || self.done || self.after != After::Nothing || !backoff.is_due() {
            return Ok(());
        }
        let (order, matcher) = (self.merge.order(), &self.matcher);
        let mut rows = 0;
        while rows < rewrite::MOST_ROWS {
            let is_wanted = self.merge.is_wanted();
            let taken = match self.merge.run() {
                Some((AnyRun::Memory(run), end)) => {
                    rewrite::plain_rows(run, end, matcher, order, |cell| take(cell, is_wanted))
                }
                Some((AnyRun::File(run), end)) => {
                    rewrite::plain_rows(run, end, matcher, order, |cell| take(cell, is_wanted))
                }
                None => break,
            }?;
            rows += taken.rows;
            if taken.rows > 0 {
                self.merge.run_moved();
            }
            if !taken.is_others_turn {
                break;
            }
        }
        if rows > 0 {
            backoff.succeeded()
        } else {
            backoff.failed()
        }
        Ok(())
    }

    /// The run was moved.
    #[inline]
    pub(crate) fn run_moved(&mut self) {
        self.merge.run_moved();
    }

    /// For a compaction: whether readers want the block of the cell that the last step wanted in the cache.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.merge.is_wanted()
    }

    /// Whether a row was begun and not ended.
    pub(crate) fn in_row(&self) -> bool {
        self.in_row
    }

    /// The row of the next cell begins.
    pub(crate) fn start_row(&mut self) {
        if let Some(count) = &mut self.row_count {
            count.row_begins();
        }
        if let Some(cell) = self.merge.current() {
            self.row.clear();
            self.row.extend_from_slice(cell.key().row());
            self.in_row = true;
            self.at_start = true;
            self.taken_in_row = 0;
            self.limit_reached = false;
            self.after = After::Nothing;
            self.matcher.start_row(&self.row);
        }
    }

    /// Goes on in the row; `budget` counts the cells that may be looked at before [`Step::Pause`].
    pub(crate) fn step(&mut self, mut filter: Option<&mut Evaluator>, budget: &mut u64) -> Result<Step> {
        loop {
            self.finish_step()?;
            if !self.in_row {
                return Ok(self.row_end(filter.as_deref()));
            }
            let Some(cell) = self.merge.current() else {
                self.in_row = false;
                if self.limits.reversed {
                    // A reversed merge ends with its row.
                    let done = self.pass_row();
                    self.wrap(done)?;
                }
                return Ok(self.row_end(filter.as_deref()));
            };
            if !std::mem::take(&mut self.at_start) && !same_bytes(cell.key().row(), &self.row) {
                self.in_row = false;
                if self.limits.is_single_row {
                    self.done = true;
                }
                return Ok(self.row_end(filter.as_deref()));
            }
            if *budget == 0 {
                return Ok(Step::Pause);
            }
            *budget -= 1;
            self.is_resolved = false;
            let is_reference = self.mob.as_ref().is_some_and(|_| mob::is_reference(cell));
            if self.mob.as_ref().is_some_and(|mob| mob.how.references_only)
                && !is_reference
                && cell.type_code() == CellType::Put.code()
            {
                self.after = After::Next;
                continue;
            }
            // A filter sees what the store has: of a large value that was flushed, the reference. So it is in HBase, where
            // the value is fetched when the filter has had its say.
            let code = self.matcher.match_cell(cell, filter.as_deref_mut())?;
            match code {
                Code::Include | Code::IncludeNextCol | Code::IncludeNextRow => {
                    self.taken_in_row += 1;
                    self.after = match code {
                        Code::Include => After::Next,
                        Code::IncludeNextCol => After::NextCol,
                        _ => After::NextRow,
                    };
                    if self.taken_in_row <= self.limits.offset {
                        continue;
                    }
                    if let Some(count) = &mut self.row_count {
                        count.cell(self.merge.is_in_memory());
                    }
                    if let Some(limit) = self.limits.limit {
                        let wanted = limit.saturating_add(self.limits.offset);
                        if self.taken_in_row >= wanted {
                            // The cell that reaches the limit is in: HBase finds one even where none is wanted.
                            self.after = After::NextRow;
                            self.limit_reached = true;
                        }
                    }
                    // Nor does HBase know a key-only cell for a reference: there is nothing to fetch.
                    if let Some(mob) = &self.mob
                        && is_reference
                        && !mob.how.raw
                        && filter.as_deref().is_none_or(Evaluator::keeps_value)
                    {
                        mob.read(cell, &mut self.resolved)?;
                        self.is_resolved = true;
                    }
                    return Ok(Step::Cell);
                }
                Code::Skip => self.after = After::Next,
                Code::NextCol => self.after = After::NextCol,
                Code::NextRow => self.after = After::NextRow,
                Code::Hint => self.follow_hint(filter.as_deref_mut())?,
                Code::DoneScan => {
                    self.done = true;
                    self.in_row = false;
                    return Ok(Step::End);
                }
            }
        }
    }

    /// HBase shows its matcher the first cell behind the row too, unless a limit of cells ended the row: a filter that
    /// wants nothing more at that moment ends the family's scan, though it would forget with the row.
    fn row_end(&mut self, filter: Option<&Evaluator>) -> Step {
        if !self.limit_reached && filter.is_some_and(Evaluator::filter_all_remaining) {
            self.done = true;
        }
        if self.peek().is_some() { Step::RowEnd } else { Step::End }
    }

    /// Does the seek that the last step left; afterwards [`StoreScanner::peek`] is what comes next.
    pub(crate) fn finish_step(&mut self) -> Result<()> {
        let after = std::mem::replace(&mut self.after, After::Nothing);
        let done = match after {
            After::Nothing => return Ok(()),
            After::Next => self.merge.next(),
            After::NextCol => self.pass_column(),
            After::NextRow => {
                self.in_row = false;
                self.pass_row()
            }
        };
        self.wrap(done)
    }

    /// Leaves the row, wherever in it the scanner is.
    pub(crate) fn skip_row(&mut self) -> Result<()> {
        self.after = After::Nothing;
        (self.in_row, self.at_start) = (false, false);
        let done = match self.merge.current() {
            Some(cell) => {
                self.row.clear();
                self.row.extend_from_slice(cell.key().row());
                self.pass_row()
            }
            None => Ok(()),
        };
        self.wrap(done)
    }

    fn pass_row(&mut self) -> hfile::Result<()> {
        if self.limits.is_single_row || self.limits.last_row.as_ref().is_some_and(|last| self.row == last[..]) {
            self.done = true;
            return Ok(());
        }
        if self.limits.reversed {
            return self.merge.previous_row();
        }
        for _ in 0..NEAR_STEPS {
            match self.merge.current() {
                Some(cell) if same_bytes(cell.key().row(), &self.row) => self.merge.next()?,
                _ => return Ok(()),
            }
        }
        write_last_on_row(&mut self.key, &self.row);
        self.merge.reseek(KeyRef::from_checked(&self.key), false)
    }

    fn pass_column(&mut self) -> hfile::Result<()> {
        let Some(cell) = self.merge.current() else { return Ok(()) };
        let key = cell.key();
        let qualifier = key.qualifier();
        if qualifier.is_empty() {
            // Family markers share the empty qualifier with its puts: they must not be passed over.
            return self.merge.next();
        }
        self.key.clear();
        // The tracker of arrival order does not count columns off: its next column may be this one.
        let late = match self.matcher.next_column().filter(|next| *next > qualifier) {
            Some(next) => {
                let maximum = CellType::Maximum.code();
                KeyRef::write(&mut self.key, key.row(), key.family(), next, i64::MAX, maximum);
                true
            }
            None => {
                let minimum = CellType::Minimum.code();
                KeyRef::write(&mut self.key, key.row(), key.family(), qualifier, i64::MIN, minimum);
                false
            }
        };
        let target = KeyRef::from_checked(&self.key);
        let order = self.merge.order();
        let steps = if late { 1 } else { NEAR_STEPS };
        for _ in 0..steps {
            self.merge.next()?;
            match self.merge.current() {
                Some(cell) if order.keys(cell.key(), target) == Ordering::Less => {}
                _ => return Ok(()),
            }
        }
        self.merge.reseek(target, late && self.limits.is_single_row)
    }

    fn follow_hint(&mut self, filter: Option<&mut Evaluator>) -> Result<()> {
        let Some(cell) = self.merge.current() else { return Ok(()) };
        let has_hint = filter.is_some_and(|filter| filter.next_cell_hint(cell, &mut self.hint));
        if !has_hint {
            self.after = After::Next;
            return Ok(());
        }
        let hint = KeyRef::parse(&self.hint)
            .map_err(|error| RegionError::DoNotRetry(format!("a filter's hint is not a key: {error}")))?;
        let order = self.merge.order();
        let ahead = order.keys(hint, cell.key());
        if self.limits.reversed {
            if ahead == Ordering::Less && order.rows(hint.row(), &self.row) == Ordering::Less {
                if self.limits.is_single_row {
                    self.done = true;
                    return Ok(());
                }
                self.in_row = false;
                let done = self.merge.back_below(hint.row(), true);
                return self.wrap(done);
            }
            self.after = After::Next;
            return Ok(());
        }
        if ahead == Ordering::Greater {
            let done = self.merge.reseek(hint, false);
            return self.wrap(done);
        }
        self.after = After::Next;
        Ok(())
    }

    /// Forward: to `row`, or the first one after it. Reversed: to `row`, or the last one before it. For families that
    /// are read on demand.
    pub(crate) fn seek_row(&mut self, row: &[u8]) -> Result<()> {
        self.after = After::Nothing;
        (self.in_row, self.at_start) = (false, false);
        let done = if self.limits.reversed {
            self.merge.back_below(row, true)
        } else {
            write_first_on_row(&mut self.key, row);
            self.merge.reseek(KeyRef::from_checked(&self.key), false)
        };
        self.wrap(done)
    }
}
