//! Lists of filters: every member must pass (`FilterListWithAND`), or one (`FilterListWithOR`).

use super::node::{Node, ValueForm};
use crate::{Error, Verdict, hint};
use cell::{CellBuffer, CellRef, KeyRef};
use std::cmp::Ordering;

/// AND.
#[derive(Debug)]
pub(super) struct All {
    members: Vec<Node>,
    reversed: bool,
    /// Members whose answer about the last cell was a hint.
    hints: Vec<usize>,
    scratch: Vec<u8>,
}

fn is_include(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Include | Verdict::IncludeAndNextCol | Verdict::IncludeAndSeekNextRow)
}

/// What two members of an AND say together. `so_far` is always an inclusion: the first member that leaves a cell out
/// ends the round.
pub(super) fn both(so_far: Verdict, next: Verdict) -> Verdict {
    use Verdict::*;
    match (so_far, next) {
        (SeekNextUsingHint, _) | (_, SeekNextUsingHint) => SeekNextUsingHint,
        (any, Include) => any,
        (_, NextRow) | (NextRow, _) => NextRow,
        (IncludeAndSeekNextRow, IncludeAndNextCol | IncludeAndSeekNextRow) => IncludeAndSeekNextRow,
        (Include | IncludeAndNextCol, IncludeAndSeekNextRow) => IncludeAndSeekNextRow,
        (Include | IncludeAndNextCol, IncludeAndNextCol) => IncludeAndNextCol,
        (IncludeAndSeekNextRow, Skip | NextCol) | (Skip | NextCol, IncludeAndSeekNextRow) => NextRow,
        (Include | Skip, Skip) => Skip,
        (IncludeAndNextCol | NextCol, Skip | NextCol) => NextCol,
        (Include | Skip, NextCol) | (Skip | NextCol, IncludeAndNextCol) => NextCol,
    }
}

/// What two members of an OR say together: an inclusion wins, and of two steps the shorter one.
pub(super) fn either(so_far: Verdict, next: Verdict) -> Verdict {
    use Verdict::*;
    /// How far a verdict lets the scanner go.
    enum Step {
        Cell,
        Column,
        Row,
        Hint,
    }
    let parts = |verdict| match verdict {
        Include => (true, Step::Cell),
        IncludeAndNextCol => (true, Step::Column),
        IncludeAndSeekNextRow => (true, Step::Row),
        Skip => (false, Step::Cell),
        NextCol => (false, Step::Column),
        NextRow => (false, Step::Row),
        SeekNextUsingHint => (false, Step::Hint),
    };
    let ((a_included, a), (b_included, b)) = (parts(so_far), parts(next));
    let step = match (a, b) {
        (Step::Row, Step::Row) => Step::Row,
        (Step::Hint, Step::Hint) => Step::Hint,
        (Step::Column | Step::Row, Step::Column | Step::Row) => Step::Column,
        // A hint and any other step have only the next cell in common.
        _ => Step::Cell,
    };
    match (a_included || b_included, step) {
        (true, Step::Cell | Step::Hint) => Include,
        (true, Step::Column) => IncludeAndNextCol,
        (true, Step::Row) => IncludeAndSeekNextRow,
        (false, Step::Cell) => Skip,
        (false, Step::Column) => NextCol,
        (false, Step::Row) => NextRow,
        (false, Step::Hint) => SeekNextUsingHint,
    }
}

impl All {
    pub(super) fn new(members: impl Iterator<Item = Node>, reversed: bool) -> All {
        All { members: members.collect(), reversed, hints: Vec::new(), scratch: Vec::new() }
    }

    pub(super) fn reset(&mut self) {
        self.members.iter_mut().for_each(Node::reset);
        self.hints.clear();
    }

    pub(super) fn all_remaining(&self) -> bool {
        self.members.iter().any(Node::all_remaining)
    }

    /// Every member is told of the row. One that has passed a row and may give hints keeps the row alive, for a
    /// skipped row asks nobody for hints.
    pub(super) fn row_key(&mut self, first: KeyRef<'_>) -> Result<bool, Error> {
        let (mut filtered, mut hinting_passed) = (false, false);
        for member in &mut self.members {
            if member.all_remaining() {
                return Ok(true);
            }
            if member.row_key(first)? {
                filtered = true;
            } else if member.is_hinting() {
                hinting_passed = true;
            }
        }
        Ok(filtered && !hinting_passed)
    }

    /// Members after the one that leaves the cell out are not asked, for they count what they are asked; only those
    /// that may give hints are.
    pub(super) fn cell(&mut self, cell: CellRef<'_>) -> Result<Verdict, Error> {
        self.hints.clear();
        let mut verdict = Verdict::Include;
        let mut asked = 0;
        for (i, member) in self.members.iter_mut().enumerate() {
            asked = i + 1;
            if member.all_remaining() {
                verdict = Verdict::NextRow;
                break;
            }
            let own = member.cell(cell)?;
            if own == Verdict::SeekNextUsingHint {
                self.hints.push(i);
            }
            verdict = both(verdict, own);
            if !is_include(verdict) {
                break;
            }
        }
        for (i, member) in self.members.iter_mut().enumerate().skip(asked) {
            if member.is_hinting() && member.cell(cell)? == Verdict::SeekNextUsingHint {
                self.hints.push(i);
            }
        }
        Ok(if self.hints.is_empty() { verdict } else { Verdict::SeekNextUsingHint })
    }

    /// The farthest hint: each member that gave one wants nothing before it.
    pub(super) fn hint(&mut self, at: KeyRef<'_>, out: &mut Vec<u8>) -> bool {
        let mut found = false;
        for i in 0..self.hints.len() {
            let Some(member) = self.members.get_mut(self.hints[i]) else { continue };
            if member.all_remaining() || !member.hint(at, &mut self.scratch) {
                continue;
            }
            let ahead = |a: &[u8], b: &[u8]| {
                hint::order(self.reversed, KeyRef::from_checked(a), KeyRef::from_checked(b)) == Ordering::Greater
            };
            if !found || ahead(&self.scratch, out) {
                std::mem::swap(out, &mut self.scratch);
                found = true;
            }
        }
        found
    }

    pub(super) fn transforms(&self) -> bool {
        self.members.iter().any(Node::transforms)
    }

    pub(super) fn ends_by_cells(&self) -> bool {
        self.members.iter().any(Node::ends_by_cells)
    }

    pub(super) fn is_restartable_per_row(&self) -> bool {
        self.members.iter().all(Node::is_restartable_per_row)
    }

    pub(super) fn value_form(&self, form: ValueForm, whole_len: usize) -> ValueForm {
        self.members.iter().fold(form, |form, member| member.value_form(form, whole_len))
    }

    pub(super) fn has_filter_row(&self) -> bool {
        self.members.iter().any(Node::has_filter_row)
    }

    pub(super) fn row_cells(&mut self, cells: &mut CellBuffer, from: usize) {
        self.members.iter_mut().for_each(|member| member.row_cells(cells, from));
    }

    /// The first member that drops the row keeps the rest from counting it.
    pub(super) fn row(&mut self) -> bool {
        self.members.iter_mut().any(Node::row)
    }

    pub(super) fn is_family_essential(&self, family: &[u8]) -> bool {
        self.members.is_empty() || self.members.iter().any(|member| member.is_family_essential(family))
    }
}

/// OR.
#[derive(Debug)]
pub(super) struct Any {
    members: Vec<Member>,
    reversed: bool,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct Member {
    node: Node,
    /// Whether it included the last cell: then it may transform it.
    included: bool,
    /// What it said last in this row, when that reaches beyond the cell, and about which key.
    reaching: Option<Verdict>,
    about: Vec<u8>,
}

impl Member {
    /// What the member has already said about `key` by what it said before: a scanner would not have come here, but
    /// other members wanted to. Asking again could make the member count what it has passed over.
    fn said_before(&mut self, key: KeyRef<'_>, reversed: bool, scratch: &mut Vec<u8>) -> Option<Verdict> {
        let reaching = self.reaching?;
        let about = KeyRef::from_checked(&self.about);
        let still = match reaching {
            Verdict::SeekNextUsingHint => {
                self.node.hint(about, scratch)
                    && hint::order(reversed, key, KeyRef::from_checked(scratch)) == Ordering::Less
            }
            Verdict::NextCol | Verdict::IncludeAndNextCol => about.column() == key.column(),
            Verdict::NextRow | Verdict::IncludeAndSeekNextRow => about.family() == key.family(),
            Verdict::Include | Verdict::Skip => false,
        };
        let again = match reaching {
            Verdict::IncludeAndNextCol => Verdict::NextCol,
            Verdict::IncludeAndSeekNextRow => Verdict::NextRow,
            other => other,
        };
        still.then_some(again)
    }

    fn forget(&mut self) {
        self.included = false;
        self.reaching = None;
    }
}

impl Any {
    pub(super) fn new(members: impl Iterator<Item = Node>, reversed: bool) -> Any {
        let member = |node| Member { node, included: false, reaching: None, about: Vec::new() };
        Any { members: members.map(member).collect(), reversed, scratch: Vec::new() }
    }

    pub(super) fn reset(&mut self) {
        for member in &mut self.members {
            member.node.reset();
            member.forget();
        }
    }

    pub(super) fn all_remaining(&self) -> bool {
        !self.members.is_empty() && self.members.iter().all(|member| member.node.all_remaining())
    }

    /// Every member that is not done is told of the row.
    pub(super) fn row_key(&mut self, first: KeyRef<'_>) -> Result<bool, Error> {
        let mut filtered = !self.members.is_empty();
        for member in &mut self.members {
            if !member.node.all_remaining() && !member.node.row_key(first)? {
                filtered = false;
            }
        }
        Ok(filtered)
    }

    pub(super) fn cell(&mut self, cell: CellRef<'_>) -> Result<Verdict, Error> {
        if self.members.is_empty() {
            return Ok(Verdict::Include);
        }
        let key = cell.key();
        let mut verdict: Option<Verdict> = None;
        for member in &mut self.members {
            member.included = false;
            if member.node.all_remaining() {
                continue;
            }
            let own = match member.said_before(key, self.reversed, &mut self.scratch) {
                Some(own) => own,
                None => member.node.cell(cell)?,
            };
            if matches!(own, Verdict::Include | Verdict::Skip) {
                member.reaching = None;
            } else {
                member.reaching = Some(own);
                member.about.clear();
                member.about.extend_from_slice(key.bytes());
            }
            member.included = is_include(own);
            verdict = Some(verdict.map_or(own, |so_far| either(so_far, own)));
        }
        Ok(verdict.unwrap_or(Verdict::Skip))
    }

    /// The nearest hint, if every member that is not done has one.
    pub(super) fn hint(&mut self, at: KeyRef<'_>, out: &mut Vec<u8>) -> bool {
        let mut found = false;
        for member in &mut self.members {
            if member.node.all_remaining() {
                continue;
            }
            if !member.node.hint(at, &mut self.scratch) {
                return false;
            }
            let nearer = |a: &[u8], b: &[u8]| {
                hint::order(self.reversed, KeyRef::from_checked(a), KeyRef::from_checked(b)) == Ordering::Less
            };
            if !found || nearer(&self.scratch, out) {
                std::mem::swap(out, &mut self.scratch);
                found = true;
            }
        }
        found
    }

    pub(super) fn transforms(&self) -> bool {
        self.members.iter().any(|member| member.node.transforms())
    }

    pub(super) fn ends_by_cells(&self) -> bool {
        self.members.iter().any(|member| member.node.ends_by_cells())
    }

    /// Without members it keeps no row for their sake, which is a matter of rows.
    pub(super) fn is_restartable_per_row(&self) -> bool {
        !self.members.is_empty() && self.members.iter().all(|member| member.node.is_restartable_per_row())
    }

    pub(super) fn value_form(&self, form: ValueForm, whole_len: usize) -> ValueForm {
        let included = self.members.iter().filter(|member| member.included);
        included.fold(form, |form, member| member.node.value_form(form, whole_len))
    }

    pub(super) fn has_filter_row(&self) -> bool {
        self.members.iter().any(|member| member.node.has_filter_row())
    }

    pub(super) fn row_cells(&mut self, cells: &mut CellBuffer, from: usize) {
        self.members.iter_mut().for_each(|member| member.node.row_cells(cells, from));
    }

    /// The first member that keeps the row keeps the rest from counting it.
    pub(super) fn row(&mut self) -> bool {
        !self.members.is_empty() && self.members.iter_mut().all(|member| member.node.row())
    }

    pub(super) fn is_family_essential(&self, family: &[u8]) -> bool {
        self.members.is_empty() || self.members.iter().any(|member| member.node.is_family_essential(family))
    }
}

#[cfg(test)]
mod tests;
