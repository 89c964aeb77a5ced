//! Filters and comparators: what a Get or a Scan wants besides rows, columns and times.
//!
//! A [`Filter`] is an immutable description (what travels on the wire); an [`Evaluator`] is the state of one filter
//! in one region scanner. The evaluator is asked in the order in which HBase asks:
//!
//! ```text
//! filter_all_remaining?  ends the region's part of the scan, asked before each row and after its reset
//! reset
//! filter_row_key(first cell of the row)     true: the row is skipped
//!   filter_all_remaining?                   before every cell: a yes closes this store for good
//!   filter_cell(cell) -> Verdict            for every cell that deletes, TTL and time range leave, before versions
//!   next_cell_hint(cell)                    after SeekNextUsingHint
//!   transform_cell(cell)                    for every cell that is included
//! has_filter_row: filter_row_cells(cells), then, if cells are left, filter_row     true: the row is dropped
//! otherwise:      filter_row                                                       true: the row is dropped
//! ```
//!
//! Always true:
//!  1. A spec never changes; two scanners never share state.
//!  2. Deciding about a cell allocates nothing (hints and transformed cells go to the caller's buffers; regular
//!     expressions, decimals beyond 128 bits and text that is not UTF-8 are the exceptions).
//!  3. Values of the wrong shape are an [`Error`] naming the exception HBase would have thrown, never a panic.
//!
//! Must not know: protobuf, regions, I/O, the clock. Follows `org.apache.hadoop.hbase.filter` of HBase 2.6.4.

pub mod comparator;
pub mod error;
pub mod evaluator;
mod hint;
pub mod parse;
pub mod spec;

pub use comparator::{BigDecimal, BitwiseOp, Comparator, CompareOp, RegexEngine, RegexSpec, flags};
pub use error::{Error, ErrorKind};
pub use evaluator::Evaluator;
pub use spec::{Filter, FuzzyKey, ListOperator, MAX_COMPILED_BYTES, MAX_DEPTH, PageStart, RowRange, SingleColumnValue};

/// What becomes of a cell, and where the scanner goes next (`Filter.ReturnCode`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Verdict {
    /// Taken.
    Include,
    /// Taken; older versions of the column are not wanted.
    IncludeAndNextCol,
    /// Taken; nothing else of the row's family is wanted.
    IncludeAndSeekNextRow,
    /// Left out.
    Skip,
    /// Left out, like older versions of the column.
    NextCol,
    /// Left out, like the rest of the row in this family.
    NextRow,
    /// Left out; [`Evaluator::next_cell_hint`] may say where to go on.
    SeekNextUsingHint,
}
