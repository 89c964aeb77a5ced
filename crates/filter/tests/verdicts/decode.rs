//! Filters from their serialized form, as far as the golden files need it.

use basalt_filter as filter;
use bytes::Bytes;
use filter::{BitwiseOp, Comparator, CompareOp, Filter, FuzzyKey, PageStart, RegexEngine, RegexSpec};
use filter::{RowRange, SingleColumnValue};
use proto::{Message, pb};

fn read<M: Message + Default>(bytes: &Bytes) -> M {
    M::decode(bytes.clone()).expect("a golden message")
}

fn op(number: i32) -> CompareOp {
    [
        CompareOp::Less,
        CompareOp::LessOrEqual,
        CompareOp::Equal,
        CompareOp::NotEqual,
        CompareOp::GreaterOrEqual,
        CompareOp::Greater,
        CompareOp::NoOp,
    ][usize::try_from(number).expect("an operator")]
}

fn compare(message: pb::CompareFilter) -> (CompareOp, Option<Comparator>) {
    (op(message.compare_op), message.comparator.as_ref().map(comparator))
}

fn comparator(envelope: &pb::Comparator) -> Comparator {
    let bytes = envelope.serialized_comparator.clone().unwrap_or_default();
    let value = |comparable: pb::ByteArrayComparable| comparable.value.unwrap_or_default();
    match envelope.name.rsplit('.').next().expect("a class name") {
        "BinaryComparator" => Comparator::Binary { value: value(read::<pb::BinaryComparator>(&bytes).comparable) },
        "BinaryPrefixComparator" => {
            Comparator::BinaryPrefix { value: value(read::<pb::BinaryPrefixComparator>(&bytes).comparable) }
        }
        "BinaryComponentComparator" => {
            let message: pb::BinaryComponentComparator = read(&bytes);
            Comparator::BinaryComponent { value: message.value, offset: message.offset }
        }
        "BitComparator" => {
            let message: pb::BitComparator = read(&bytes);
            let op = [BitwiseOp::And, BitwiseOp::Or, BitwiseOp::Xor][message.bitwise_op as usize - 1];
            Comparator::Bit { value: value(message.comparable), op }
        }
        "LongComparator" => {
            Comparator::long_from_bytes(&value(read::<pb::LongComparator>(&bytes).comparable)).expect("8 bytes")
        }
        "BigDecimalComparator" => {
            let number = value(read::<pb::BigDecimalComparator>(&bytes).comparable);
            Comparator::big_decimal_from_bytes(&number).expect("5 bytes")
        }
        "NullComparator" => Comparator::Null,
        "SubstringComparator" => Comparator::substring(&read::<pb::SubstringComparator>(&bytes).substr),
        "RegexStringComparator" => {
            let message: pb::RegexStringComparator = read(&bytes);
            let engine = message.engine.as_deref().map_or(RegexEngine::Java, |e| RegexEngine::from_name(e).expect(e));
            let spec = RegexSpec::new(&message.pattern, message.pattern_flags, &message.charset, engine);
            Comparator::Regex(spec.expect("a pattern"))
        }
        other => panic!("comparator {other}"),
    }
}

fn single_column(message: pb::SingleColumnValueFilter) -> SingleColumnValue {
    SingleColumnValue {
        family: message.column_family,
        qualifier: message.column_qualifier,
        op: op(message.compare_op),
        comparator: comparator(&message.comparator),
        filter_if_missing: message.filter_if_missing.unwrap_or(false),
        latest_version_only: message.latest_version_only.unwrap_or(true),
    }
}

pub fn filter(envelope: &pb::Filter) -> Filter {
    let bytes = envelope.serialized_filter.clone().unwrap_or_default();
    match envelope.name.rsplit('.').next().expect("a class name") {
        "ColumnCountGetFilter" => Filter::ColumnCountGet { limit: read::<pb::ColumnCountGetFilter>(&bytes).limit },
        "ColumnPaginationFilter" => {
            let message: pb::ColumnPaginationFilter = read(&bytes);
            let start = match message.column_offset {
                Some(column) => PageStart::Column(column),
                None => PageStart::Offset(message.offset.unwrap_or(0)),
            };
            Filter::ColumnPagination { limit: message.limit, start }
        }
        "ColumnPrefixFilter" => Filter::ColumnPrefix { prefix: read::<pb::ColumnPrefixFilter>(&bytes).prefix },
        "ColumnRangeFilter" => {
            let message: pb::ColumnRangeFilter = read(&bytes);
            Filter::ColumnRange {
                min_column: message.min_column,
                min_inclusive: message.min_column_inclusive.unwrap_or(false),
                max_column: message.max_column,
                max_inclusive: message.max_column_inclusive.unwrap_or(false),
            }
        }
        "ColumnValueFilter" => {
            let message: pb::ColumnValueFilter = read(&bytes);
            Filter::ColumnValue {
                family: message.family,
                qualifier: message.qualifier,
                op: op(message.compare_op),
                comparator: comparator(&message.comparator),
            }
        }
        "DependentColumnFilter" => {
            let message: pb::DependentColumnFilter = read(&bytes);
            let (op, comparator) = compare(message.compare_filter);
            Filter::DependentColumn {
                family: message.column_family,
                qualifier: message.column_qualifier,
                drop_dependent_column: message.drop_dependent_column.unwrap_or(false),
                op,
                comparator,
            }
        }
        "FamilyFilter" => {
            let (op, comparator) = compare(read::<pb::FamilyFilter>(&bytes).compare_filter);
            Filter::Family { op, comparator }
        }
        "QualifierFilter" => {
            let (op, comparator) = compare(read::<pb::QualifierFilter>(&bytes).compare_filter);
            Filter::Qualifier { op, comparator }
        }
        "RowFilter" => {
            let (op, comparator) = compare(read::<pb::RowFilter>(&bytes).compare_filter);
            Filter::Row { op, comparator }
        }
        "ValueFilter" => {
            let (op, comparator) = compare(read::<pb::ValueFilter>(&bytes).compare_filter);
            Filter::Value { op, comparator }
        }
        "FilterList" => {
            let message: pb::FilterList = read(&bytes);
            let filters = message.filters.iter().map(filter).collect();
            if message.operator == 1 { Filter::all_of(filters) } else { Filter::any_of(filters) }
        }
        "FirstKeyOnlyFilter" => Filter::FirstKeyOnly,
        "FirstKeyValueMatchingQualifiersFilter" => {
            Filter::first_key_value_matching(read::<pb::FirstKeyValueMatchingQualifiersFilter>(&bytes).qualifiers)
        }
        "FuzzyRowFilter" => {
            let message: pb::FuzzyRowFilter = read(&bytes);
            let keys = message.fuzzy_keys_data.into_iter().map(|pair| FuzzyKey { key: pair.first, mask: pair.second });
            Filter::FuzzyRow { keys: keys.collect(), mask_v2: message.is_mask_v2.unwrap_or(false) }
        }
        "InclusiveStopFilter" => {
            Filter::InclusiveStop { stop_row: read::<pb::InclusiveStopFilter>(&bytes).stop_row_key }
        }
        "KeyOnlyFilter" => Filter::KeyOnly { len_as_val: read::<pb::KeyOnlyFilter>(&bytes).len_as_val },
        "MultiRowRangeFilter" => {
            let message: pb::MultiRowRangeFilter = read(&bytes);
            let ranges = message.row_range_list.into_iter().map(|range| RowRange {
                start_row: range.start_row.unwrap_or_default(),
                start_inclusive: range.start_row_inclusive.unwrap_or(false),
                stop_row: range.stop_row.unwrap_or_default(),
                stop_inclusive: range.stop_row_inclusive.unwrap_or(false),
            });
            Filter::MultiRowRange { ranges: ranges.collect() }
        }
        "MultipleColumnPrefixFilter" => {
            Filter::multiple_column_prefix(read::<pb::MultipleColumnPrefixFilter>(&bytes).sorted_prefixes)
        }
        "PageFilter" => Filter::Page { page_size: read::<pb::PageFilter>(&bytes).page_size },
        "PrefixFilter" => Filter::Prefix { prefix: read::<pb::PrefixFilter>(&bytes).prefix },
        "RandomRowFilter" => Filter::RandomRow { chance: read::<pb::RandomRowFilter>(&bytes).chance },
        "SingleColumnValueFilter" => Filter::SingleColumnValue(single_column(read(&bytes))),
        "SingleColumnValueExcludeFilter" => {
            let message: pb::SingleColumnValueExcludeFilter = read(&bytes);
            Filter::SingleColumnValueExclude(single_column(message.single_column_value_filter))
        }
        "SkipFilter" => Filter::Skip { filter: Box::new(filter(&read::<pb::SkipFilter>(&bytes).filter)) },
        "WhileMatchFilter" => {
            Filter::WhileMatch { filter: Box::new(filter(&read::<pb::WhileMatchFilter>(&bytes).filter)) }
        }
        "TimestampsFilter" => {
            let message: pb::TimestampsFilter = read(&bytes);
            Filter::timestamps(message.timestamps, message.can_hint.unwrap_or(false))
        }
        other => panic!("filter {other}"),
    }
}
