//! Every filter of HBase as a value.

use crate::{Comparator, CompareOp, Error};
use bytes::Bytes;

/// Deepest nesting of filters that is accepted. Decoders of foreign bytes and text hold to it, because a filter is
/// evaluated, compared and dropped by recursion.
pub const MAX_DEPTH: usize = 100;

/// What the regular expressions of one filter may take when they are compiled: a few characters of one may need megabytes. Decoders of
/// foreign bytes and text hold to it.
pub const MAX_COMPILED_BYTES: usize = 64 << 20;

/// How a list combines its filters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ListOperator {
    /// AND.
    MustPassAll,
    /// OR.
    MustPassOne,
}

/// Where a page of columns begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PageStart {
    /// After so many columns of the row; not negative.
    Offset(i32),
    /// At this qualifier.
    Column(Bytes),
}

/// A range of rows; an empty bound is open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowRange {
    /// Lower bound.
    pub start_row: Bytes,
    /// Whether the lower bound itself is inside.
    pub start_inclusive: bool,
    /// Upper bound.
    pub stop_row: Bytes,
    /// Whether the upper bound itself is inside.
    pub stop_inclusive: bool,
}

/// A row key with free positions. Both fields are kept as the wire has them (see [`Filter::FuzzyRow`]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FuzzyKey {
    /// The row's bytes; those at free positions do not count.
    pub key: Bytes,
    /// One byte per position: fixed is 0 (or 0xFF after a client's preparation); free is 1 (or 0 with mask v1, 2
    /// with mask v2 after a client's preparation).
    pub mask: Bytes,
}

/// The test of one column's value that decides about a whole row.
#[derive(Clone, PartialEq, Debug)]
pub struct SingleColumnValue {
    /// Family of the column; `None` matches an empty name.
    pub family: Option<Bytes>,
    /// Qualifier of the column; `None` matches an empty name.
    pub qualifier: Option<Bytes>,
    /// Read as: cell OP comparator.
    pub op: CompareOp,
    /// What the value is compared with.
    pub comparator: Comparator,
    /// Whether a row without the column is dropped.
    pub filter_if_missing: bool,
    /// Whether only the newest version counts.
    pub latest_version_only: bool,
}

/// A filter. The variants are named after HBase's classes without "Filter".
///
/// Comparators are optional where the wire lets them be: without one the evaluation ends in HBase's
/// `NullPointerException`, unless the operator is [`CompareOp::NoOp`].
#[derive(Clone, PartialEq, Debug)]
pub enum Filter {
    /// Drops everything (HBase ships it in its test jar only).
    All,
    /// The first `limit` columns of a row; ends the scan after the first row that has more.
    ColumnCountGet {
        /// Columns; not negative.
        limit: i32,
    },
    /// A page of a row's columns.
    ColumnPagination {
        /// Columns on the page; not negative.
        limit: i32,
        /// Where the page begins.
        start: PageStart,
    },
    /// Qualifiers with a prefix.
    ColumnPrefix {
        /// The prefix.
        prefix: Bytes,
    },
    /// Qualifiers in a range; an absent bound is open.
    ColumnRange {
        /// Lower bound.
        min_column: Option<Bytes>,
        /// Whether the lower bound itself is inside.
        min_inclusive: bool,
        /// Upper bound.
        max_column: Option<Bytes>,
        /// Whether the upper bound itself is inside.
        max_inclusive: bool,
    },
    /// Only cells of one column, and of these only those whose value compares.
    ColumnValue {
        /// Family of the column.
        family: Bytes,
        /// Qualifier of the column.
        qualifier: Bytes,
        /// Read as: cell OP comparator.
        op: CompareOp,
        /// What the value is compared with.
        comparator: Comparator,
    },
    /// Cells stamped as one of the row's cells in a reference column.
    DependentColumn {
        /// Family of the reference column; `None` matches an empty name.
        family: Option<Bytes>,
        /// Qualifier of the reference column; `None` matches an empty name.
        qualifier: Option<Bytes>,
        /// Whether the reference column is left out of the result.
        drop_dependent_column: bool,
        /// Read as: cell OP comparator, on the reference column's value.
        op: CompareOp,
        /// What the value is compared with; `None` takes every value.
        comparator: Option<Comparator>,
    },
    /// Compares the family.
    Family {
        /// Read as: family OP comparator.
        op: CompareOp,
        /// What the family is compared with.
        comparator: Option<Comparator>,
    },
    /// The first cell of each row.
    FirstKeyOnly,
    /// A row up to the first cell whose qualifier is listed.
    FirstKeyValueMatchingQualifiers {
        /// The qualifiers, sorted and distinct.
        qualifiers: Vec<Bytes>,
    },
    /// Rows that match one of several keys with free positions.
    FuzzyRow {
        /// The keys.
        keys: Vec<FuzzyKey>,
        /// Whether a prepared mask marks free positions by 2 (else by 0).
        mask_v2: bool,
    },
    /// Ends the scan after a row.
    InclusiveStop {
        /// The last row; without one evaluation ends in a `NullPointerException`.
        stop_row: Option<Bytes>,
    },
    /// Cells without their values.
    KeyOnly {
        /// Whether the value is replaced by its length (4 bytes) rather than by nothing.
        len_as_val: bool,
    },
    /// Several filters as one. An empty list takes everything.
    List {
        /// AND or OR.
        operator: ListOperator,
        /// The members, asked in this order.
        filters: Vec<Filter>,
    },
    /// Rows in one of several ranges.
    MultiRowRange {
        /// The ranges, as the client sent them; [`Filter::check`] refuses illegal ones.
        ranges: Vec<RowRange>,
    },
    /// Qualifiers with one of several prefixes.
    MultipleColumnPrefix {
        /// The prefixes, sorted; [`Filter::check`] refuses repeated ones.
        prefixes: Vec<Bytes>,
    },
    /// So many rows of each region.
    Page {
        /// Rows; not negative.
        page_size: i64,
    },
    /// Rows with a prefix.
    Prefix {
        /// The prefix; `None` drops every row.
        prefix: Option<Bytes>,
    },
    /// Compares the qualifier.
    Qualifier {
        /// Read as: qualifier OP comparator.
        op: CompareOp,
        /// What the qualifier is compared with.
        comparator: Option<Comparator>,
    },
    /// A random share of the rows.
    RandomRow {
        /// Below 0 nothing, above 1 everything.
        chance: f32,
    },
    /// Compares the row.
    Row {
        /// Read as: row OP comparator.
        op: CompareOp,
        /// What the row is compared with.
        comparator: Option<Comparator>,
    },
    /// A row by the value of one of its columns.
    SingleColumnValue(SingleColumnValue),
    /// As [`Filter::SingleColumnValue`], and the tested column is left out of the result.
    SingleColumnValueExclude(SingleColumnValue),
    /// Drops a row as soon as `filter` leaves out one of its cells.
    Skip {
        /// The filter that is asked.
        filter: Box<Filter>,
    },
    /// Cells with one of several timestamps.
    Timestamps {
        /// The timestamps, sorted and distinct, not negative.
        timestamps: Vec<i64>,
        /// Whether the scanner may be sent ahead (and so miss delete markers on its way).
        can_hint: bool,
    },
    /// Compares the value.
    Value {
        /// Read as: value OP comparator.
        op: CompareOp,
        /// What the value is compared with.
        comparator: Option<Comparator>,
    },
    /// Ends the scan as soon as `filter` leaves something out.
    WhileMatch {
        /// The filter that is asked.
        filter: Box<Filter>,
    },
}

impl Filter {
    /// AND of `filters`.
    pub fn all_of(filters: Vec<Filter>) -> Filter {
        Filter::List { operator: ListOperator::MustPassAll, filters }
    }

    /// OR of `filters`.
    pub fn any_of(filters: Vec<Filter>) -> Filter {
        Filter::List { operator: ListOperator::MustPassOne, filters }
    }

    /// [`Filter::FirstKeyValueMatchingQualifiers`] of qualifiers in any order.
    pub fn first_key_value_matching(qualifiers: impl IntoIterator<Item = Bytes>) -> Filter {
        Filter::FirstKeyValueMatchingQualifiers { qualifiers: sorted(qualifiers) }
    }

    /// [`Filter::MultipleColumnPrefix`] of prefixes in any order.
    pub fn multiple_column_prefix(prefixes: impl IntoIterator<Item = Bytes>) -> Filter {
        let mut prefixes: Vec<Bytes> = prefixes.into_iter().collect();
        prefixes.sort_unstable();
        Filter::MultipleColumnPrefix { prefixes }
    }

    /// [`Filter::Timestamps`] of timestamps in any order.
    pub fn timestamps(timestamps: impl IntoIterator<Item = i64>, can_hint: bool) -> Filter {
        Filter::Timestamps { timestamps: sorted(timestamps), can_hint }
    }

    /// The arguments that HBase's constructors refuse. To be called once on every filter from outside; an evaluator
    /// of a refused filter does not panic, but what it says means nothing.
    ///
    /// # Errors
    /// [`crate::ErrorKind::IllegalArgument`] with HBase's message.
    pub fn check(&self) -> Result<(), Error> {
        self.check_to_depth(MAX_DEPTH)
    }

    /// Memory that the compiled regular expressions in it take, at most; see [`MAX_COMPILED_BYTES`].
    pub fn compiled_bytes(&self) -> usize {
        let of = |comparator: &Option<Comparator>| comparator.as_ref().map_or(0, Comparator::compiled_bytes);
        match self {
            Filter::ColumnValue { comparator, .. } => comparator.compiled_bytes(),
            Filter::SingleColumnValue(test) | Filter::SingleColumnValueExclude(test) => {
                test.comparator.compiled_bytes()
            }
            Filter::DependentColumn { comparator, .. }
            | Filter::Family { comparator, .. }
            | Filter::Qualifier { comparator, .. }
            | Filter::Row { comparator, .. }
            | Filter::Value { comparator, .. } => of(comparator),
            Filter::List { filters, .. } => filters.iter().map(Filter::compiled_bytes).sum(),
            Filter::Skip { filter } | Filter::WhileMatch { filter } => filter.compiled_bytes(),
            _ => 0,
        }
    }

    fn check_to_depth(&self, depth: usize) -> Result<(), Error> {
        let deeper = || {
            let too_deep = || Error::illegal(format!("filters are nested deeper than {MAX_DEPTH}"));
            depth.checked_sub(1).ok_or_else(too_deep)
        };
        match self {
            Filter::ColumnCountGet { limit } => not_negative(i64::from(*limit), "limit be positive"),
            Filter::ColumnPagination { limit, start } => {
                not_negative(i64::from(*limit), "limit must be positive")?;
                match start {
                    PageStart::Offset(offset) => not_negative(i64::from(*offset), "offset must be positive"),
                    PageStart::Column(_) => Ok(()),
                }
            }
            Filter::FuzzyRow { keys, .. } => crate::evaluator::check_fuzzy(keys),
            Filter::List { filters, .. } => {
                let depth = deeper()?;
                filters.iter().try_for_each(|filter| filter.check_to_depth(depth))
            }
            Filter::MultiRowRange { ranges } => crate::evaluator::check_ranges(ranges),
            Filter::MultipleColumnPrefix { prefixes } if prefixes.windows(2).any(|pair| pair[0] == pair[1]) => {
                Err(Error::illegal("prefixes must be distinct"))
            }
            Filter::Page { page_size } => not_negative(*page_size, "must be positive"),
            Filter::Skip { filter } | Filter::WhileMatch { filter } => filter.check_to_depth(deeper()?),
            Filter::Timestamps { timestamps, .. } => {
                timestamps.iter().try_for_each(|timestamp| not_negative(*timestamp, "must be positive"))
            }
            _ => Ok(()),
        }
    }
}

fn not_negative(number: i64, message: &str) -> Result<(), Error> {
    if number < 0 { Err(Error::illegal(format!("{message} {number}"))) } else { Ok(()) }
}

fn sorted<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    items.sort_unstable();
    items.dedup();
    items
}
