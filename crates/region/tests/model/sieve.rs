//! Filters, stated as what they say about a cell or a row, without hints, early ends or essential families. A tree of
//! AND and OR over [`says`] is its parts' answers combined; a few filters decide about whole rows.

use super::oracle::Cell;
use filter::{Comparator, CompareOp, Filter, ListOperator, RowRange, SingleColumnValue};
use std::cmp::Ordering;

/// One filter at one row.
#[derive(Default)]
pub struct Sieve<'a> {
    filter: Option<&'a Filter>,
    seen: usize,
    /// Cells that the filter within left out.
    left_out: usize,
    /// Of the tested column: whether each cell passed, newest first.
    tested: Vec<bool>,
}

impl<'a> Sieve<'a> {
    pub fn new(filter: Option<&'a Filter>) -> Sieve<'a> {
        Sieve { filter, ..Sieve::default() }
    }

    pub fn is_there(&self) -> bool {
        self.filter.is_some()
    }

    /// Whether the cell is in the result if its row is. Asked for each cell that rules 1 to 7 leave, in order.
    pub fn takes(&mut self, family: &str, cell: &Cell) -> bool {
        self.seen += 1;
        match self.filter {
            None | Some(Filter::Page { .. } | Filter::KeyOnly { .. }) => true,
            Some(Filter::FirstKeyOnly) => self.seen == 1,
            Some(Filter::Skip { filter }) => {
                let taken = says(filter, family, cell);
                self.left_out += usize::from(!taken);
                taken
            }
            Some(Filter::SingleColumnValue(test) | Filter::SingleColumnValueExclude(test)) => {
                if is_tested(test, family, cell) {
                    self.tested.push(passes(test.op, &test.comparator, &cell.value));
                }
                true
            }
            Some(filter) => says(filter, family, cell),
        }
    }

    /// Whether the cell is taken out of its row at last: it counts as a version and against the limit all the same.
    pub fn hides(&self, family: &str, cell: &Cell) -> bool {
        matches!(self.filter, Some(Filter::SingleColumnValueExclude(test)) if is_tested(test, family, cell))
    }

    /// Whether the row stays, after all its cells were asked about.
    pub fn keeps_row(&self) -> bool {
        match self.filter {
            Some(Filter::Skip { .. }) => self.left_out == 0,
            Some(Filter::SingleColumnValue(test) | Filter::SingleColumnValueExclude(test)) => {
                match self.tested.first() {
                    None => !test.filter_if_missing,
                    Some(newest) if test.latest_version_only => *newest,
                    Some(_) => self.tested.contains(&true),
                }
            }
            _ => true,
        }
    }

    /// The value as the result has it.
    pub fn value(&self, value: Vec<u8>) -> Vec<u8> {
        match self.filter {
            Some(Filter::KeyOnly { len_as_val: false }) => Vec::new(),
            Some(Filter::KeyOnly { len_as_val: true }) => (value.len() as u32).to_be_bytes().to_vec(),
            _ => value,
        }
    }
}

/// Whether the cell is of the column that the filter tests.
fn is_tested(test: &SingleColumnValue, family: &str, cell: &Cell) -> bool {
    let name = |part: &Option<bytes::Bytes>| part.clone().unwrap_or_default();
    name(&test.family) == family.as_bytes() && name(&test.qualifier) == cell.qualifier[..]
}

/// Read as: `part` OP comparator.
pub fn passes(op: CompareOp, comparator: &Comparator, part: &[u8]) -> bool {
    let order = match comparator {
        Comparator::Binary { value } => part.cmp(&value[..]),
        Comparator::BinaryPrefix { value } => part[..part.len().min(value.len())].cmp(&value[..]),
        Comparator::Substring { substring } => {
            let text = String::from_utf8_lossy(part).to_lowercase();
            if text.contains(substring.as_str()) { Ordering::Equal } else { Ordering::Less }
        }
        other => panic!("the programs do not use {other:?}"),
    };
    match op {
        CompareOp::Less => order == Ordering::Less,
        CompareOp::LessOrEqual => order != Ordering::Greater,
        CompareOp::Equal => order == Ordering::Equal,
        CompareOp::NotEqual => order != Ordering::Equal,
        CompareOp::GreaterOrEqual => order != Ordering::Less,
        CompareOp::Greater => order == Ordering::Greater,
        CompareOp::NoOp => false,
    }
}

/// What a filter that looks at one cell at a time says about it.
fn says(filter: &Filter, family: &str, cell: &Cell) -> bool {
    let compare = |op: &CompareOp, comparator: &Option<Comparator>, part: &[u8]| {
        passes(*op, comparator.as_ref().expect("the programs give one"), part)
    };
    let qualifier = &cell.qualifier[..];
    match filter {
        Filter::List { operator: ListOperator::MustPassAll, filters } => {
            filters.iter().all(|filter| says(filter, family, cell))
        }
        Filter::List { filters, .. } => filters.is_empty() || filters.iter().any(|filter| says(filter, family, cell)),
        Filter::Prefix { prefix } => prefix.as_ref().is_some_and(|prefix| cell.row.starts_with(prefix)),
        Filter::Row { op, comparator } => compare(op, comparator, &cell.row),
        Filter::MultiRowRange { ranges } => ranges.iter().any(|range| is_in(range, &cell.row)),
        Filter::FuzzyRow { keys, .. } => keys.iter().any(|fuzzy| {
            // What comes after the key is free, and so is what a shorter row lacks.
            let places = fuzzy.key.iter().zip(&fuzzy.mask).zip(&cell.row);
            places.into_iter().all(|((key, mask), byte)| *mask != 0 || key == byte)
        }),
        Filter::Family { op, comparator } => compare(op, comparator, family.as_bytes()),
        Filter::Qualifier { op, comparator } => compare(op, comparator, qualifier),
        Filter::Value { op, comparator } => compare(op, comparator, &cell.value),
        Filter::ColumnValue { family: of, qualifier: tested, op, comparator } => {
            of == family.as_bytes() && tested == qualifier && passes(*op, comparator, &cell.value)
        }
        Filter::ColumnPrefix { prefix } => qualifier.starts_with(prefix),
        // Of prefixes within prefixes only the greatest that does not lie behind the qualifier is tried.
        Filter::MultipleColumnPrefix { prefixes } => {
            let nearest = prefixes.iter().rfind(|prefix| prefix[..] <= *qualifier);
            nearest.is_some_and(|prefix| qualifier.starts_with(prefix))
        }
        Filter::ColumnRange { min_column, min_inclusive, max_column, max_inclusive } => {
            let above = min_column.as_ref().is_none_or(|min| qualifier > min || (*min_inclusive && qualifier == min));
            let below = max_column.as_ref().is_none_or(|max| qualifier < max || (*max_inclusive && qualifier == max));
            above && below
        }
        Filter::Timestamps { timestamps, .. } => timestamps.contains(&cell.timestamp),
        other => panic!("the programs do not use {other:?}"),
    }
}

fn is_in(range: &RowRange, row: &[u8]) -> bool {
    let above = row > &range.start_row[..] || (range.start_inclusive && row == &range.start_row[..]);
    let below =
        range.stop_row.is_empty() || row < &range.stop_row[..] || (range.stop_inclusive && row == &range.stop_row[..]);
    above && below
}
