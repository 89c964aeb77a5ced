//! Filters and comparators as a class name and a message of that class.

use bytes::Bytes;
use filter::{BitwiseOp, Comparator, CompareOp, Filter, ListOperator, PageStart, SingleColumnValue};
use proto::{Message, pb};

fn envelope(class: &str, message: &impl Message) -> pb::Filter {
    pb::Filter {
        name: format!("org.apache.hadoop.hbase.filter.{class}"),
        serialized_filter: Some(Bytes::from(message.encode_to_vec())),
    }
}

/// An operator.
pub fn compare_type(op: CompareOp) -> pb::CompareType {
    match op {
        CompareOp::Less => pb::CompareType::Less,
        CompareOp::LessOrEqual => pb::CompareType::LessOrEqual,
        CompareOp::Equal => pb::CompareType::Equal,
        CompareOp::NotEqual => pb::CompareType::NotEqual,
        CompareOp::GreaterOrEqual => pb::CompareType::GreaterOrEqual,
        CompareOp::Greater => pb::CompareType::Greater,
        CompareOp::NoOp => pb::CompareType::NoOp,
    }
}

fn compare(op: CompareOp, with: Option<&Comparator>) -> pb::CompareFilter {
    pb::CompareFilter { compare_op: compare_type(op).into(), comparator: with.map(comparator) }
}

fn single(s: &SingleColumnValue) -> pb::SingleColumnValueFilter {
    pb::SingleColumnValueFilter {
        column_family: s.family.clone(),
        column_qualifier: s.qualifier.clone(),
        compare_op: compare_type(s.op).into(),
        comparator: comparator(&s.comparator),
        filter_if_missing: Some(s.filter_if_missing),
        latest_version_only: Some(s.latest_version_only),
    }
}

/// A filter.
pub fn filter(spec: &Filter) -> pb::Filter {
    match spec {
        Filter::All => envelope("FilterAllFilter", &pb::FilterAllFilter {}),
        Filter::ColumnCountGet { limit } => {
            envelope("ColumnCountGetFilter", &pb::ColumnCountGetFilter { limit: *limit })
        }
        Filter::ColumnPagination { limit, start } => {
            let (offset, column_offset) = match start {
                PageStart::Offset(offset) => (Some(*offset), None),
                PageStart::Column(column) => (None, Some(column.clone())),
            };
            envelope("ColumnPaginationFilter", &pb::ColumnPaginationFilter { limit: *limit, offset, column_offset })
        }
        Filter::ColumnPrefix { prefix } => {
            envelope("ColumnPrefixFilter", &pb::ColumnPrefixFilter { prefix: prefix.clone() })
        }
        Filter::ColumnRange { min_column, min_inclusive, max_column, max_inclusive } => envelope(
            "ColumnRangeFilter",
            &pb::ColumnRangeFilter {
                min_column: min_column.clone(),
                min_column_inclusive: Some(*min_inclusive),
                max_column: max_column.clone(),
                max_column_inclusive: Some(*max_inclusive),
            },
        ),
        Filter::ColumnValue { family, qualifier, op, comparator: with } => envelope(
            "ColumnValueFilter",
            &pb::ColumnValueFilter {
                family: family.clone(),
                qualifier: qualifier.clone(),
                compare_op: compare_type(*op).into(),
                comparator: comparator(with),
            },
        ),
        Filter::DependentColumn { family, qualifier, drop_dependent_column, op, comparator: with } => envelope(
            "DependentColumnFilter",
            &pb::DependentColumnFilter {
                compare_filter: compare(*op, with.as_ref()),
                column_family: family.clone(),
                column_qualifier: qualifier.clone(),
                drop_dependent_column: Some(*drop_dependent_column),
            },
        ),
        Filter::Family { op, comparator: with } => {
            envelope("FamilyFilter", &pb::FamilyFilter { compare_filter: compare(*op, with.as_ref()) })
        }
        Filter::FirstKeyOnly => envelope("FirstKeyOnlyFilter", &pb::FirstKeyOnlyFilter {}),
        Filter::FirstKeyValueMatchingQualifiers { qualifiers } => envelope(
            "FirstKeyValueMatchingQualifiersFilter",
            &pb::FirstKeyValueMatchingQualifiersFilter { qualifiers: qualifiers.clone() },
        ),
        Filter::FuzzyRow { keys, mask_v2 } => {
            let pair = |k: &filter::FuzzyKey| pb::BytesBytesPair { first: k.key.clone(), second: k.mask.clone() };
            let fuzzy_keys_data = keys.iter().map(pair).collect();
            envelope("FuzzyRowFilter", &pb::FuzzyRowFilter { fuzzy_keys_data, is_mask_v2: Some(*mask_v2) })
        }
        Filter::InclusiveStop { stop_row } => {
            envelope("InclusiveStopFilter", &pb::InclusiveStopFilter { stop_row_key: stop_row.clone() })
        }
        Filter::KeyOnly { len_as_val } => envelope("KeyOnlyFilter", &pb::KeyOnlyFilter { len_as_val: *len_as_val }),
        Filter::List { operator, filters } => {
            let operator = match operator {
                ListOperator::MustPassAll => pb::filter_list::Operator::MustPassAll,
                ListOperator::MustPassOne => pb::filter_list::Operator::MustPassOne,
            };
            let filters = filters.iter().map(filter).collect();
            envelope("FilterList", &pb::FilterList { operator: operator.into(), filters })
        }
        Filter::MultiRowRange { ranges } => {
            let range = |r: &filter::RowRange| pb::RowRange {
                start_row: Some(r.start_row.clone()),
                start_row_inclusive: Some(r.start_inclusive),
                stop_row: Some(r.stop_row.clone()),
                stop_row_inclusive: Some(r.stop_inclusive),
            };
            let row_range_list = ranges.iter().map(range).collect();
            envelope("MultiRowRangeFilter", &pb::MultiRowRangeFilter { row_range_list })
        }
        Filter::MultipleColumnPrefix { prefixes } => envelope(
            "MultipleColumnPrefixFilter",
            &pb::MultipleColumnPrefixFilter { sorted_prefixes: prefixes.clone() },
        ),
        Filter::Page { page_size } => envelope("PageFilter", &pb::PageFilter { page_size: *page_size }),
        Filter::Prefix { prefix } => envelope("PrefixFilter", &pb::PrefixFilter { prefix: prefix.clone() }),
        Filter::Qualifier { op, comparator: with } => {
            envelope("QualifierFilter", &pb::QualifierFilter { compare_filter: compare(*op, with.as_ref()) })
        }
        Filter::RandomRow { chance } => envelope("RandomRowFilter", &pb::RandomRowFilter { chance: *chance }),
        Filter::Row { op, comparator: with } => {
            envelope("RowFilter", &pb::RowFilter { compare_filter: compare(*op, with.as_ref()) })
        }
        Filter::SingleColumnValue(s) => envelope("SingleColumnValueFilter", &single(s)),
        Filter::SingleColumnValueExclude(s) => envelope(
            "SingleColumnValueExcludeFilter",
            &pb::SingleColumnValueExcludeFilter { single_column_value_filter: single(s) },
        ),
        Filter::Skip { filter: inner } => envelope("SkipFilter", &pb::SkipFilter { filter: filter(inner) }),
        Filter::Timestamps { timestamps, can_hint } => envelope(
            "TimestampsFilter",
            &pb::TimestampsFilter { timestamps: timestamps.clone(), can_hint: Some(*can_hint) },
        ),
        Filter::Value { op, comparator: with } => {
            envelope("ValueFilter", &pb::ValueFilter { compare_filter: compare(*op, with.as_ref()) })
        }
        Filter::WhileMatch { filter: inner } => {
            envelope("WhileMatchFilter", &pb::WhileMatchFilter { filter: filter(inner) })
        }
    }
}

/// A comparator.
pub fn comparator(spec: &Comparator) -> pb::Comparator {
    let comparable = pb::ByteArrayComparable { value: Some(spec.value_bytes()) };
    let (class, bytes) = match spec {
        Comparator::BigDecimal(_) => ("BigDecimalComparator", pb::BigDecimalComparator { comparable }.encode_to_vec()),
        Comparator::Binary { .. } => ("BinaryComparator", pb::BinaryComparator { comparable }.encode_to_vec()),
        Comparator::BinaryComponent { value, offset } => (
            "BinaryComponentComparator",
            pb::BinaryComponentComparator { value: value.clone(), offset: *offset }.encode_to_vec(),
        ),
        Comparator::BinaryPrefix { .. } => {
            ("BinaryPrefixComparator", pb::BinaryPrefixComparator { comparable }.encode_to_vec())
        }
        Comparator::Bit { op, .. } => {
            let bitwise_op = match op {
                BitwiseOp::And => pb::bit_comparator::BitwiseOp::And,
                BitwiseOp::Or => pb::bit_comparator::BitwiseOp::Or,
                BitwiseOp::Xor => pb::bit_comparator::BitwiseOp::Xor,
            };
            ("BitComparator", pb::BitComparator { comparable, bitwise_op: bitwise_op.into() }.encode_to_vec())
        }
        Comparator::Long { .. } => ("LongComparator", pb::LongComparator { comparable }.encode_to_vec()),
        Comparator::Null => ("NullComparator", pb::NullComparator {}.encode_to_vec()),
        Comparator::Regex(regex) => (
            "RegexStringComparator",
            pb::RegexStringComparator {
                pattern: regex.pattern().to_owned(),
                pattern_flags: regex.flags(),
                charset: regex.charset_name().to_owned(),
                engine: Some(regex.engine().name().to_owned()),
            }
            .encode_to_vec(),
        ),
        Comparator::Substring { substring } => {
            ("SubstringComparator", pb::SubstringComparator { substr: substring.clone() }.encode_to_vec())
        }
    };
    pb::Comparator {
        name: format!("org.apache.hadoop.hbase.filter.{class}"),
        serialized_comparator: Some(Bytes::from(bytes)),
    }
}
