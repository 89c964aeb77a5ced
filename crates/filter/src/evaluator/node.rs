//! One filter's state, and what it answers. Each variant follows the class of its name in
//! `org.apache.hadoop.hbase.filter`.

use super::fuzzy::Fuzzy;
use super::list::{All, Any};
use super::ranges::Ranges;
use crate::{
    Comparator, CompareOp, Error, ErrorKind, Filter, ListOperator, PageStart, SingleColumnValue, Verdict, hint,
};
use base::Rng;
use bytes::Bytes;
use cell::{CellBuffer, CellRef, KeyRef};
use std::collections::HashSet;
use std::sync::Arc;

/// What is left of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ValueForm {
    Whole,
    Empty,
    /// The 4 bytes of this number.
    Length(u32),
}

#[derive(Debug)]
pub(super) enum Node {
    DropAll,
    ColumnCountGet { limit: i32, count: u32 },
    ColumnPage { limit: i64, offset: i64, count: i64 },
    ColumnPageFrom { limit: i32, column: Bytes, count: i32 },
    ColumnPrefix { prefix: Bytes },
    ColumnRange { min: Option<Bytes>, min_inclusive: bool, max: Option<Bytes>, max_inclusive: bool },
    ColumnValue { family: Bytes, qualifier: Bytes, op: CompareOp, comparator: Comparator, found: bool },
    Dependent(Box<Dependent>),
    Family(Compare),
    FirstKeyOnly { found: bool },
    FirstKeyMatching { qualifiers: Vec<Bytes>, found: bool },
    Fuzzy(Box<Fuzzy>),
    InclusiveStop { stop_row: Option<Bytes>, reversed: bool, done: bool },
    KeyOnly { len_as_val: bool },
    All(Box<All>),
    Any(Box<Any>),
    Ranges(Box<Ranges>),
    Prefixes { prefixes: Vec<Bytes>, next: usize },
    Page { page_size: i64, rows: i64 },
    Prefix(Box<Prefix>),
    Qualifier(Compare),
    RandomRow { chance: f32, rng: Arc<Rng>, out: bool },
    Row { compare: Compare, out: bool },
    SingleColumn { test: Box<SingleColumnValue>, exclude: bool, found: bool, matched: bool },
    Skip { inner: Box<Node>, dropped: bool },
    Timestamps { timestamps: Vec<i64>, can_hint: bool },
    Value(Compare),
    WhileMatch { inner: Box<Node>, done: bool },
}

#[derive(Debug)]
pub(super) struct Compare {
    op: CompareOp,
    comparator: Option<Comparator>,
}

impl Compare {
    fn new(op: CompareOp, comparator: &Option<Comparator>) -> Compare {
        Compare { op, comparator: comparator.clone() }
    }

    #[inline]
    fn passes(&self, part: &[u8]) -> Result<bool, Error> {
        if self.op == CompareOp::NoOp {
            return Ok(false);
        }
        let comparator = self.comparator.as_ref().ok_or_else(no_comparator)?;
        passes(self.op, comparator, part)
    }
}

#[inline]
fn passes(op: CompareOp, comparator: &Comparator, part: &[u8]) -> Result<bool, Error> {
    if op == CompareOp::NoOp {
        return Ok(false);
    }
    Ok(op.passes(comparator.compare(part)?).unwrap_or(false))
}

fn no_comparator() -> Error {
    Error::new(ErrorKind::NullPointer, "the filter compares but has no comparator")
}

#[derive(Debug)]
pub(super) struct Dependent {
    family: Bytes,
    qualifier: Bytes,
    drop_column: bool,
    op: CompareOp,
    comparator: Option<Comparator>,
    stamps: HashSet<i64>,
}

#[derive(Debug)]
pub(super) struct Prefix {
    prefix: Option<Bytes>,
    /// The row to seek to from rows before the prefix.
    hint_row: Option<Vec<u8>>,
    reversed: bool,
    passed: bool,
    out: bool,
    provide_hint: bool,
}

impl Prefix {
    fn new(prefix: &Option<Bytes>, reversed: bool) -> Prefix {
        let hint_row = prefix.as_ref().and_then(|p| if reversed { hint::after_prefix(p) } else { Some(p.to_vec()) });
        Prefix { prefix: prefix.clone(), hint_row, reversed, passed: false, out: true, provide_hint: false }
    }

    /// HBase compares as many bytes as the prefix has, even beyond a shorter row; here such a row is simply before
    /// the prefix.
    fn row_key(&mut self, row: &[u8]) -> bool {
        let Some(prefix) = &self.prefix else { return true };
        if self.passed {
            return true;
        }
        let order = row[..row.len().min(prefix.len())].cmp(&prefix[..]);
        let order = if self.reversed { order.reverse() } else { order };
        self.passed |= order.is_gt();
        self.out = order.is_ne();
        self.provide_hint = order.is_lt();
        self.passed
    }
}

fn of_column(key: KeyRef<'_>, family: &[u8], qualifier: &[u8]) -> bool {
    key.qualifier() == qualifier && key.family() == family
}

fn of_tested_column(key: KeyRef<'_>, test: &SingleColumnValue) -> bool {
    of_column(key, test.family.as_deref().unwrap_or_default(), test.qualifier.as_deref().unwrap_or_default())
}

impl Node {
    pub(super) fn new(filter: &Filter, reversed: bool, rng: &Arc<Rng>) -> Node {
        // HBase's wrappers do not tell their filter that the scan is reversed.
        let boxed = |inner: &Filter| Box::new(Node::new(inner, false, rng));
        match filter {
            Filter::All => Node::DropAll,
            Filter::ColumnCountGet { limit } => Node::ColumnCountGet { limit: *limit, count: 0 },
            Filter::ColumnPagination { limit, start: PageStart::Offset(offset) } => {
                Node::ColumnPage { limit: i64::from(*limit), offset: i64::from(*offset), count: 0 }
            }
            Filter::ColumnPagination { limit, start: PageStart::Column(column) } => {
                Node::ColumnPageFrom { limit: *limit, column: column.clone(), count: 0 }
            }
            Filter::ColumnPrefix { prefix } => Node::ColumnPrefix { prefix: prefix.clone() },
            Filter::ColumnRange { min_column, min_inclusive, max_column, max_inclusive } => Node::ColumnRange {
                min: min_column.clone(),
                min_inclusive: *min_inclusive,
                max: max_column.clone(),
                max_inclusive: *max_inclusive,
            },
            Filter::ColumnValue { family, qualifier, op, comparator } => Node::ColumnValue {
                family: family.clone(),
                qualifier: qualifier.clone(),
                op: *op,
                comparator: comparator.clone(),
                found: false,
            },
            Filter::DependentColumn { family, qualifier, drop_dependent_column, op, comparator } => {
                Node::Dependent(Box::new(Dependent {
                    family: family.clone().unwrap_or_default(),
                    qualifier: qualifier.clone().unwrap_or_default(),
                    drop_column: *drop_dependent_column,
                    op: *op,
                    comparator: comparator.clone(),
                    stamps: HashSet::new(),
                }))
            }
            Filter::Family { op, comparator } => Node::Family(Compare::new(*op, comparator)),
            Filter::FirstKeyOnly => Node::FirstKeyOnly { found: false },
            Filter::FirstKeyValueMatchingQualifiers { qualifiers } => {
                Node::FirstKeyMatching { qualifiers: qualifiers.clone(), found: false }
            }
            Filter::FuzzyRow { keys, mask_v2 } => Node::Fuzzy(Box::new(Fuzzy::new(keys, *mask_v2, reversed))),
            Filter::InclusiveStop { stop_row } => {
                Node::InclusiveStop { stop_row: stop_row.clone(), reversed, done: false }
            }
            Filter::KeyOnly { len_as_val } => Node::KeyOnly { len_as_val: *len_as_val },
            Filter::List { operator: ListOperator::MustPassAll, filters } => {
                Node::All(Box::new(All::new(filters.iter().map(|f| Node::new(f, reversed, rng)), reversed)))
            }
            Filter::List { operator: ListOperator::MustPassOne, filters } => {
                Node::Any(Box::new(Any::new(filters.iter().map(|f| Node::new(f, reversed, rng)), reversed)))
            }
            Filter::MultiRowRange { ranges } => Node::Ranges(Box::new(Ranges::new(ranges, reversed))),
            Filter::MultipleColumnPrefix { prefixes } => Node::Prefixes { prefixes: prefixes.clone(), next: 0 },
            Filter::Page { page_size } => Node::Page { page_size: *page_size, rows: 0 },
            Filter::Prefix { prefix } => Node::Prefix(Box::new(Prefix::new(prefix, reversed))),
            Filter::Qualifier { op, comparator } => Node::Qualifier(Compare::new(*op, comparator)),
            Filter::RandomRow { chance } => Node::RandomRow { chance: *chance, rng: rng.clone(), out: false },
            Filter::Row { op, comparator } => Node::Row { compare: Compare::new(*op, comparator), out: false },
            Filter::SingleColumnValue(test) => Node::single_column(test, false),
            Filter::SingleColumnValueExclude(test) => Node::single_column(test, true),
            Filter::Skip { filter } => Node::Skip { inner: boxed(filter), dropped: false },
            Filter::Timestamps { timestamps, can_hint } => {
                Node::Timestamps { timestamps: timestamps.clone(), can_hint: *can_hint }
            }
            Filter::Value { op, comparator } => Node::Value(Compare::new(*op, comparator)),
            Filter::WhileMatch { filter } => Node::WhileMatch { inner: boxed(filter), done: false },
        }
    }

    fn single_column(test: &SingleColumnValue, exclude: bool) -> Node {
        Node::SingleColumn { test: Box::new(test.clone()), exclude, found: false, matched: false }
    }

    pub(super) fn reset(&mut self) {
        match self {
            Node::ColumnCountGet { count, .. } => *count = 0,
            Node::ColumnPage { count, .. } => *count = 0,
            Node::ColumnPageFrom { count, .. } => *count = 0,
            Node::ColumnValue { found, .. } | Node::FirstKeyOnly { found } | Node::FirstKeyMatching { found, .. } => {
                *found = false
            }
            Node::Dependent(d) => d.stamps.clear(),
            Node::Fuzzy(fuzzy) => fuzzy.reset(),
            Node::All(list) => list.reset(),
            Node::Any(list) => list.reset(),
            Node::Prefix(p) => p.out = true,
            Node::RandomRow { out, .. } | Node::Row { out, .. } => *out = false,
            Node::SingleColumn { found, matched, .. } => (*found, *matched) = (false, false),
            Node::Skip { inner, dropped } => {
                inner.reset();
                *dropped = false;
            }
            Node::WhileMatch { inner, .. } => inner.reset(),
            Node::DropAll
            | Node::ColumnPrefix { .. }
            | Node::ColumnRange { .. }
            | Node::Family(_)
            | Node::InclusiveStop { .. }
            | Node::KeyOnly { .. }
            | Node::Ranges(_)
            | Node::Prefixes { .. }
            | Node::Page { .. }
            | Node::Qualifier(_)
            | Node::Timestamps { .. }
            | Node::Value(_) => {}
        }
    }

    pub(super) fn all_remaining(&self) -> bool {
        match self {
            Node::ColumnCountGet { limit, count } => i64::from(*count) > i64::from(*limit),
            Node::Fuzzy(fuzzy) => fuzzy.done(),
            Node::InclusiveStop { done, .. } => *done,
            Node::All(list) => list.all_remaining(),
            Node::Any(list) => list.all_remaining(),
            Node::Ranges(ranges) => ranges.done(),
            Node::Page { page_size, rows } => rows >= page_size,
            Node::Prefix(p) => p.passed,
            Node::WhileMatch { inner, done } => *done || inner.all_remaining(),
            _ => false,
        }
    }

    pub(super) fn row_key(&mut self, first: KeyRef<'_>) -> Result<bool, Error> {
        Ok(match self {
            Node::ColumnCountGet { .. } | Node::Fuzzy(_) | Node::Page { .. } => self.all_remaining(),
            Node::InclusiveStop { stop_row, reversed, done } => {
                if !*done {
                    let stop_row = stop_row.as_ref().ok_or_else(|| {
                        Error::new(ErrorKind::NullPointer, "InclusiveStopFilter has no row to stop at")
                    })?;
                    let order = first.row().cmp(&stop_row[..]);
                    *done = if *reversed { order.is_lt() } else { order.is_gt() };
                }
                *done
            }
            Node::All(list) => list.row_key(first)?,
            Node::Any(list) => list.row_key(first)?,
            Node::Ranges(ranges) => ranges.row_key(first.row()),
            Node::Prefix(p) => p.row_key(first.row()),
            Node::RandomRow { chance, rng, out } => {
                // 24 random bits as a fraction below 1: Java's nextFloat.
                let fraction = (rng.next_u64() >> 40) as f32 / (1u32 << 24) as f32;
                let taken = *chance > 1.0 || fraction < *chance;
                *out = !taken;
                *out
            }
            Node::Row { compare, out } => {
                *out |= !compare.passes(first.row())?;
                *out
            }
            Node::WhileMatch { inner, done } => {
                if *done || inner.all_remaining() {
                    return Ok(true);
                }
                let filtered = inner.row_key(first)?;
                *done |= filtered;
                filtered
            }
            // Among these is SkipFilter, which never tells its filter of rows.
            _ => false,
        })
    }

    pub(super) fn cell(&mut self, cell: CellRef<'_>) -> Result<Verdict, Error> {
        let skip_unless = |passes: bool| if passes { Verdict::Include } else { Verdict::Skip };
        let next_row_if = |out: bool| if out { Verdict::NextRow } else { Verdict::Include };
        Ok(match self {
            Node::DropAll => Verdict::Skip,
            Node::ColumnCountGet { limit, count } => {
                *count = count.saturating_add(1);
                if i64::from(*count) > i64::from(*limit) { Verdict::NextCol } else { Verdict::IncludeAndNextCol }
            }
            Node::ColumnPage { limit, offset, count } => {
                if *count >= *offset + *limit {
                    return Ok(Verdict::NextRow);
                }
                *count += 1;
                if *count <= *offset { Verdict::NextCol } else { Verdict::IncludeAndNextCol }
            }
            Node::ColumnPageFrom { limit, column, count } => {
                if *count >= *limit {
                    Verdict::NextRow
                } else if *count == 0 && cell.qualifier() < &column[..] {
                    Verdict::SeekNextUsingHint
                } else {
                    *count += 1;
                    Verdict::IncludeAndNextCol
                }
            }
            Node::ColumnPrefix { prefix } => {
                let qualifier = cell.qualifier();
                let shared = qualifier.len().min(prefix.len());
                match qualifier[..shared].cmp(&prefix[..shared]) {
                    std::cmp::Ordering::Less => Verdict::SeekNextUsingHint,
                    std::cmp::Ordering::Greater => Verdict::NextRow,
                    std::cmp::Ordering::Equal if shared < prefix.len() => Verdict::SeekNextUsingHint,
                    std::cmp::Ordering::Equal => Verdict::Include,
                }
            }
            Node::ColumnRange { min, min_inclusive, max, max_inclusive } => {
                let qualifier = cell.qualifier();
                if let Some(min) = min {
                    if qualifier < &min[..] {
                        return Ok(Verdict::SeekNextUsingHint);
                    }
                    if !*min_inclusive && qualifier == &min[..] {
                        return Ok(Verdict::NextCol);
                    }
                }
                next_row_if(
                    max.as_ref().is_some_and(|max| qualifier > &max[..] || qualifier == &max[..] && !*max_inclusive),
                )
            }
            Node::ColumnValue { family, qualifier, op, comparator, found } => {
                if !of_column(cell.key(), family, qualifier) {
                    return Ok(if *found { Verdict::NextRow } else { Verdict::NextCol });
                }
                *found = true;
                skip_unless(passes(*op, comparator, cell.value())?)
            }
            Node::Dependent(d) => {
                if !of_column(cell.key(), &d.family, &d.qualifier) {
                    return Ok(Verdict::Include);
                }
                if let Some(comparator) = &d.comparator
                    && !passes(d.op, comparator, cell.value())?
                {
                    return Ok(Verdict::Skip);
                }
                d.stamps.insert(cell.timestamp());
                skip_unless(!d.drop_column)
            }
            Node::Family(compare) => {
                let family = cell.family();
                next_row_if(!family.is_empty() && !compare.passes(family)?)
            }
            Node::FirstKeyOnly { found } => next_row_if(std::mem::replace(found, true)),
            Node::FirstKeyMatching { qualifiers, found } => {
                if *found {
                    return Ok(Verdict::NextRow);
                }
                let qualifier = cell.qualifier();
                *found = qualifiers.iter().any(|q| q == qualifier);
                Verdict::Include
            }
            Node::Fuzzy(fuzzy) => fuzzy.cell(cell.row()),
            Node::InclusiveStop { done, .. } => next_row_if(*done),
            Node::All(list) => list.cell(cell)?,
            Node::Any(list) => list.cell(cell)?,
            Node::Ranges(ranges) => ranges.cell()?,
            Node::Prefixes { prefixes, next } => {
                // Only the greatest prefix that is not above the qualifier is looked at, as in HBase.
                let qualifier = cell.qualifier();
                let not_above = prefixes.partition_point(|p| &p[..] <= qualifier);
                *next = not_above;
                match not_above.checked_sub(1) {
                    Some(at) if qualifier.starts_with(&prefixes[at]) => Verdict::Include,
                    _ if prefixes.is_empty() => Verdict::Include,
                    _ if not_above == prefixes.len() => Verdict::NextRow,
                    _ => Verdict::SeekNextUsingHint,
                }
            }
            Node::Prefix(p) if p.provide_hint => Verdict::SeekNextUsingHint,
            Node::Prefix(p) => next_row_if(p.out),
            Node::Qualifier(compare) => skip_unless(compare.passes(cell.qualifier())?),
            Node::RandomRow { out, .. } | Node::Row { out, .. } => next_row_if(*out),
            Node::SingleColumn { test, found, matched, .. } => {
                if *matched {
                    return Ok(Verdict::Include);
                }
                if test.latest_version_only && *found {
                    return Ok(Verdict::NextRow);
                }
                if !of_tested_column(cell.key(), test) {
                    return Ok(Verdict::Include);
                }
                *found = true;
                let order = test.comparator.compare(cell.value())?;
                *matched =
                    test.op.passes(order).ok_or_else(|| Error::new(ErrorKind::Runtime, "Unknown Compare op NO_OP"))?;
                next_row_if(!*matched && test.latest_version_only)
            }
            Node::Skip { inner, dropped } => {
                let verdict = inner.cell(cell)?;
                *dropped |= verdict != Verdict::Include;
                verdict
            }
            Node::Timestamps { timestamps, can_hint } => {
                let timestamp = cell.timestamp();
                if timestamps.binary_search(&timestamp).is_ok() {
                    Verdict::Include
                } else if timestamp < timestamps.first().copied().unwrap_or(i64::MAX) {
                    Verdict::NextCol
                } else if *can_hint {
                    Verdict::SeekNextUsingHint
                } else {
                    Verdict::Skip
                }
            }
            Node::Value(compare) => skip_unless(compare.passes(cell.value())?),
            Node::WhileMatch { inner, done } => {
                let verdict = inner.cell(cell)?;
                *done |= verdict != Verdict::Include;
                verdict
            }
            Node::KeyOnly { .. } | Node::Page { .. } => Verdict::Include,
        })
    }

    /// Where to go on from `at`, whether or not that is ahead of it. Wrappers have no hints of their own and do not
    /// pass on those of their filter.
    pub(super) fn hint(&mut self, at: KeyRef<'_>, out: &mut Vec<u8>) -> bool {
        match self {
            Node::ColumnPageFrom { column, .. } => hint::first_on_column(out, at, column),
            Node::ColumnPrefix { prefix } => hint::first_on_column(out, at, prefix),
            Node::ColumnRange { min: Some(min), .. } => hint::first_on_column(out, at, min),
            Node::Fuzzy(fuzzy) => return fuzzy.hint(at.row(), out),
            Node::All(list) => return list.hint(at, out),
            Node::Any(list) => return list.hint(at, out),
            Node::Ranges(ranges) => return ranges.hint(out),
            Node::Prefixes { prefixes, next } if *next < prefixes.len() => {
                hint::first_on_column(out, at, &prefixes[*next]);
            }
            Node::Prefix(p) => return p.hint_row.as_ref().is_some_and(|row| hint::first_on_row(out, row)),
            Node::Timestamps { timestamps, can_hint: true } => {
                match timestamps.partition_point(|t| *t < at.timestamp()).checked_sub(1) {
                    Some(lower) => hint::first_at_timestamp(out, at, timestamps[lower]),
                    None => hint::last_on_column(out, at),
                }
            }
            _ => return false,
        }
        true
    }

    /// Whether an AND asks this filter about every cell, for the sake of its hints (`HintingFilter`).
    pub(super) fn is_hinting(&self) -> bool {
        matches!(
            self,
            Node::ColumnPrefix { .. }
                | Node::ColumnRange { .. }
                | Node::Fuzzy(_)
                | Node::Ranges(_)
                | Node::Prefixes { .. }
                | Node::Prefix(_)
                | Node::Timestamps { .. }
        )
    }

    pub(super) fn transforms(&self) -> bool {
        match self {
            Node::KeyOnly { .. } => true,
            Node::All(list) => list.transforms(),
            Node::Any(list) => list.transforms(),
            Node::Skip { inner, .. } | Node::WhileMatch { inner, .. } => inner.transforms(),
            _ => false,
        }
    }

    /// Whether a cell can make it want nothing more.
    pub(super) fn ends_by_cells(&self) -> bool {
        match self {
            Node::ColumnCountGet { .. } | Node::WhileMatch { .. } => true,
            Node::All(list) => list.ends_by_cells(),
            Node::Any(list) => list.ends_by_cells(),
            Node::Skip { inner, .. } => inner.ends_by_cells(),
            _ => false,
        }
    }

    /// Whether all that it remembers goes with the row, but for a count of finished rows that ends the scan, and it neither looks at row
    /// keys nor gives hints.
    pub(super) fn is_restartable_per_row(&self) -> bool {
        match self {
            Node::ColumnValue { .. }
            | Node::Family(_)
            | Node::FirstKeyOnly { .. }
            | Node::FirstKeyMatching { .. }
            | Node::KeyOnly { .. }
            | Node::Page { .. }
            | Node::Qualifier(_)
            | Node::SingleColumn { .. }
            | Node::Value(_) => true,
            Node::All(list) => list.is_restartable_per_row(),
            Node::Any(list) => list.is_restartable_per_row(),
            _ => false,
        }
    }

    /// What is left of a value of `whole_len` bytes that has already come to `form`.
    pub(super) fn value_form(&self, form: ValueForm, whole_len: usize) -> ValueForm {
        match self {
            Node::KeyOnly { len_as_val: false } => ValueForm::Empty,
            Node::KeyOnly { len_as_val: true } => ValueForm::Length(match form {
                ValueForm::Whole => whole_len as u32,
                ValueForm::Empty => 0,
                ValueForm::Length(_) => 4,
            }),
            Node::All(list) => list.value_form(form, whole_len),
            Node::Any(list) => list.value_form(form, whole_len),
            Node::Skip { inner, .. } | Node::WhileMatch { inner, .. } => inner.value_form(form, whole_len),
            _ => form,
        }
    }

    pub(super) fn has_filter_row(&self) -> bool {
        match self {
            Node::DropAll
            | Node::Dependent(_)
            | Node::Page { .. }
            | Node::RandomRow { .. }
            | Node::SingleColumn { .. }
            | Node::Skip { .. }
            | Node::WhileMatch { .. } => true,
            Node::All(list) => list.has_filter_row(),
            Node::Any(list) => list.has_filter_row(),
            _ => false,
        }
    }

    pub(super) fn row_cells(&mut self, cells: &mut CellBuffer, from: usize) {
        match self {
            Node::Dependent(d) => retain(cells, from, |cell| d.stamps.contains(&cell.timestamp())),
            Node::SingleColumn { test, exclude: true, .. } => {
                retain(cells, from, |cell| !of_tested_column(cell.key(), test));
            }
            Node::All(list) => list.row_cells(cells, from),
            Node::Any(list) => list.row_cells(cells, from),
            _ => {}
        }
    }

    pub(super) fn row(&mut self) -> bool {
        match self {
            Node::DropAll => true,
            Node::Fuzzy(fuzzy) => fuzzy.row(),
            Node::All(list) => list.row(),
            Node::Any(list) => list.row(),
            Node::Page { page_size, rows } => {
                *rows = rows.saturating_add(1);
                *rows > *page_size
            }
            Node::Prefix(p) => p.out,
            Node::RandomRow { out, .. } | Node::Row { out, .. } => *out,
            Node::SingleColumn { test, found, matched, .. } => {
                if *found {
                    !*matched
                } else {
                    test.filter_if_missing
                }
            }
            Node::Skip { dropped, .. } => *dropped,
            Node::WhileMatch { inner, done } => {
                let dropped = inner.row();
                *done |= dropped;
                dropped
            }
            _ => false,
        }
    }

    pub(super) fn is_family_essential(&self, name: &[u8]) -> bool {
        match self {
            Node::ColumnValue { family, .. } => family == name,
            Node::SingleColumn { test, .. } => {
                !test.filter_if_missing || test.family.as_deref().is_some_and(|family| family == name)
            }
            Node::All(list) => list.is_family_essential(name),
            Node::Any(list) => list.is_family_essential(name),
            Node::Skip { inner, .. } | Node::WhileMatch { inner, .. } => inner.is_family_essential(name),
            _ => true,
        }
    }
}

/// Keeps what `keep` says; copies only when something goes.
fn retain(cells: &mut CellBuffer, from: usize, keep: impl Fn(CellRef<'_>) -> bool) {
    if !cells.iter_from(from).all(&keep) {
        cells.retain_from(from, |_, cell| keep(cell));
    }
}
