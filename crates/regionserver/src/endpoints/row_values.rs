//! What the endpoints for SQL look at in a row: columns of its key, values of cells, and numbers that are computed of both. It knows bytes and
//! where they lie.

use super::expression::{Computed, Program};
use bytes::Bytes;
use cell::CellRef;
use filter::{Filter, ListOperator};
use model::Scan;
use proto::grouped::{KeyColumn, Source, exact_bytes};
use rpc::exception::Exception;
use std::ops::Range;
use std::sync::Arc;

/// Where a source's value is.
#[derive(Clone, Copy)]
pub(super) enum At {
    /// A column of the key.
    Key(usize),
    /// A cell that is needed.
    Cell(usize),
    /// What an expression comes to.
    Computed(usize),
}

/// A cell that is needed, and its value in the row that is walked.
struct Needed {
    family: Bytes,
    qualifier: Bytes,
    value: Vec<u8>,
}

/// The values of the row that is walked.
pub(super) struct RowValues {
    key_prefix_bytes: usize,
    key_columns: Vec<KeyColumn>,
    /// How many of these are looked at.
    key_columns_used: usize,
    key_ranges: Vec<Range<usize>>,
    programs: Vec<Program>,
    /// Where the numbers are that each program loads.
    of_programs: Vec<Vec<At>>,
    /// What each came to, and the bytes of that where it is exact.
    computed: Vec<(Computed, Vec<u8>)>,
    stack: Vec<Computed>,
    scratch: Vec<u8>,
    needed: Vec<Needed>,
    row: Vec<u8>,
    is_open: bool,
}

/// Refuses sources, or loads of programs, that name what is not there.
///
/// # Errors
/// Words for the client.
pub(super) fn check_sources<'a>(
    sources: impl Iterator<Item = &'a Source>,
    key_columns: &[KeyColumn],
    programs: &'a [Program],
) -> Result<(), &'static str> {
    let of_programs = programs.iter().flat_map(|program| &program.loads);
    let is_nowhere = |source: &Source| {
        source.key_column.is_some_and(|at| at as usize >= key_columns.len())
            || source.expression.is_some_and(|at| at as usize >= programs.len())
    };
    match sources.chain(of_programs).any(is_nowhere) {
        true => Err("a source names a column of the key or an expression that is not there"),
        false => Ok(()),
    }
}

/// Takes values away from no cell: nobody looks at them, and cells that are as they were need not be copied.
pub(super) fn leave_values(scan: &mut Scan) {
    if let Some(filter) = &mut scan.filter
        && let Filter::List { operator: ListOperator::MustPassAll, filters } = &**filter
        && filters.iter().any(|filter| matches!(filter, Filter::KeyOnly { .. }))
    {
        let others = filters.iter().filter(|filter| !matches!(filter, Filter::KeyOnly { .. }));
        *filter = Arc::new(Filter::all_of(others.cloned().collect()));
    }
}

impl RowValues {
    /// Of rows whose keys have such columns behind so many bytes. The sources are checked.
    pub fn new(key_prefix_bytes: u32, key_columns: Vec<KeyColumn>, programs: Vec<Program>) -> RowValues {
        let mut values = RowValues {
            key_prefix_bytes: key_prefix_bytes as usize,
            key_columns,
            key_columns_used: 0,
            key_ranges: Vec::new(),
            programs: Vec::new(),
            of_programs: Vec::new(),
            computed: programs.iter().map(|_| (Computed::None, Vec::new())).collect(),
            stack: Vec::new(),
            scratch: Vec::new(),
            needed: Vec::new(),
            row: Vec::new(),
            is_open: false,
        };
        values.of_programs =
            programs.iter().map(|program| program.loads.iter().map(|load| values.at(load)).collect()).collect();
        values.programs = programs;
        values
    }

    /// Where a source's value is to be: it is looked at from now on.
    pub fn at(&mut self, source: &Source) -> At {
        match (source.key_column, source.expression) {
            (Some(column), _) => {
                self.key_columns_used = self.key_columns_used.max(column as usize + 1);
                At::Key(column as usize)
            }
            (None, Some(expression)) => At::Computed(expression as usize),
            (None, None) => {
                let known = |n: &Needed| n.family == source.family && n.qualifier == source.qualifier;
                At::Cell(self.needed.iter().position(known).unwrap_or_else(|| {
                    let (family, qualifier) = (source.family.clone(), source.qualifier.clone());
                    self.needed.push(Needed { family, qualifier, value: Vec::new() });
                    self.needed.len() - 1
                }))
            }
        }
    }

    /// Whether keys alone are looked at.
    pub fn needs_no_cells(&self) -> bool {
        self.needed.is_empty()
    }

    /// The next cell of the row, or the first of another one.
    pub fn take_cell(&mut self, cell: CellRef<'_>) {
        if !self.is_open {
            self.is_open = true;
            self.row.clear();
            self.row.extend_from_slice(cell.row());
            self.needed.iter_mut().for_each(|needed| needed.value.clear());
        }
        let is_it = |n: &&mut Needed| n.family == cell.family() && n.qualifier == cell.qualifier();
        if let Some(needed) = self.needed.iter_mut().find(is_it) {
            needed.value.clear();
            needed.value.extend_from_slice(cell.value());
        }
    }

    /// The row has no more cells: its values may be asked for. False where there was no row.
    ///
    /// # Errors
    /// Values that are no numbers.
    pub fn end_of_row(&mut self) -> Result<bool, Exception> {
        if !std::mem::take(&mut self.is_open) {
            return Ok(false);
        }
        self.split_key();
        self.compute()?;
        Ok(true)
    }

    /// Where the key's columns are, as far as they are looked at.
    fn split_key(&mut self) {
        self.key_ranges.clear();
        let mut at = self.key_prefix_bytes.min(self.row.len());
        for column in &self.key_columns[..self.key_columns_used] {
            let rest = &self.row[at..];
            let (length, skip) = match (column.width_bytes as usize, column.separator) {
                (0, Some(separator)) => {
                    // A NULL ends with a zero byte in both orders.
                    let end = rest.iter().position(|b| u32::from(*b) == separator);
                    if rest.first() == Some(&0) { (0, 1) } else { (end.unwrap_or(rest.len()), 1) }
                }
                (0, None) => (rest.len(), 0),
                (width, _) => (width.min(rest.len()), 0),
            };
            self.key_ranges.push(at..at + length);
            at = (at + length + skip).min(self.row.len());
        }
    }

    /// What the expressions come to.
    fn compute(&mut self) -> Result<(), Exception> {
        let (mut stack, mut scratch) = (std::mem::take(&mut self.stack), std::mem::take(&mut self.scratch));
        for index in 0..self.programs.len() {
            let value = |load: usize| self.value(self.of_programs[index][load]);
            let result = self.programs[index].run(&mut stack, &mut scratch, value);
            let result = result.map_err(|why| self.bad_value(why))?;
            let (computed, bytes) = &mut self.computed[index];
            *computed = result;
            bytes.clear();
            if let Computed::Exact(number) = result {
                bytes.extend_from_slice(&exact_bytes(number));
            }
        }
        (self.stack, self.scratch) = (stack, scratch);
        Ok(())
    }

    /// A value's bytes; none are no value.
    pub fn value(&self, at: At) -> &[u8] {
        match at {
            At::Key(column) => self.key_ranges.get(column).map_or(&[], |range| &self.row[range.clone()]),
            At::Cell(cell) => &self.needed[cell].value,
            At::Computed(expression) => &self.computed[expression].1,
        }
    }

    /// What an expression came to, and the bytes of that where it is exact.
    pub fn computed(&self, expression: usize) -> &(Computed, Vec<u8>) {
        &self.computed[expression]
    }

    /// Says what is wrong with a value, and in which row.
    pub fn bad_value(&self, why: &str) -> Exception {
        Exception::do_not_retry(format!("row '{}': {why}", self.row.escape_ascii()))
    }
}

#[cfg(test)]
impl RowValues {
    /// A row without cells has begun.
    pub fn set_row(&mut self, row: Vec<u8>) {
        self.is_open = true;
        self.row = row;
    }

    /// Its value of a cell that is needed.
    pub fn set_cell(&mut self, cell: usize, value: &[u8]) {
        self.needed[cell].value = value.to_vec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_nobody_looks_at_are_left() {
        let keys = Filter::KeyOnly { len_as_val: false };
        let of =
            |filters: &[Filter]| Scan { filter: Some(Arc::new(Filter::all_of(filters.to_vec()))), ..Scan::default() };
        let mut scan = of(&[Filter::FirstKeyOnly, keys]);
        leave_values(&mut scan);
        assert_eq!(scan, of(&[Filter::FirstKeyOnly]));
        leave_values(&mut scan);
        assert_eq!(scan, of(&[Filter::FirstKeyOnly]));
    }
}
