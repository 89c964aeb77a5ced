//! Filters and comparators, which travel as a class name and a message of that class.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use filter::{
    BitwiseOp, Comparator, CompareOp, Filter, FuzzyKey, ListOperator, MAX_COMPILED_BYTES, MAX_DEPTH, PageStart,
    RegexEngine, RegexSpec, RowRange, SingleColumnValue,
};
use proto::{Message, pb};

use crate::error::Result;
use crate::{ConvertError, ConvertErrorKind};

const PACKAGE: &str = "org.apache.hadoop.hbase.filter.";

/// Where errors of filters are: the class is in the message.
const FILTER: &str = "Filter";
const COMPARATOR: &str = "Comparator";

fn refused(at: &'static str) -> impl FnOnce(filter::Error) -> ConvertError {
    move |error| ConvertError::malformed(at, error.to_string())
}

fn message<M: Message + Default>(class: &str, bytes: Option<&Bytes>) -> Result<M> {
    M::decode(bytes.cloned().unwrap_or_default())
        .map_err(|error| ConvertError::new(ConvertErrorKind::Undecodable, FILTER, format!("{class}: {error}")))
}

/// An operator.
pub fn compare_op(op: pb::CompareType) -> CompareOp {
    match op {
        pb::CompareType::Less => CompareOp::Less,
        pb::CompareType::LessOrEqual => CompareOp::LessOrEqual,
        pb::CompareType::Equal => CompareOp::Equal,
        pb::CompareType::NotEqual => CompareOp::NotEqual,
        pb::CompareType::GreaterOrEqual => CompareOp::GreaterOrEqual,
        pb::CompareType::Greater => CompareOp::Greater,
        pb::CompareType::NoOp => CompareOp::NoOp,
    }
}

/// A filter, its arguments checked.
///
/// # Errors
/// A class that is not known (a filter of the user's own cannot run here), a message that is not of the class,
/// arguments that HBase refuses, or filters nested deeper than [`MAX_DEPTH`].
pub fn filter(wire: &pb::Filter) -> Result<Filter> {
    let filter = nested(wire, MAX_DEPTH, &mut Room(MAX_COMPILED_BYTES))?;
    filter.check().map_err(refused(FILTER))?;
    Ok(filter)
}

/// Whether the filter takes next to no time, for each cell that it sees and for being made: it compares with nothing or with one short
/// thing, compiles nothing, and passes over no rows by their keys. False says nothing.
pub fn is_light_filter(wire: &pb::Filter) -> bool {
    is_light(wire, 2)
}

fn is_light(wire: &pb::Filter, depth: usize) -> bool {
    const MOST_MEMBERS: usize = 8;
    let all_light = |filters: &[pb::Filter]| {
        depth > 1 && filters.len() <= MOST_MEMBERS && filters.iter().all(|filter| is_light(filter, depth - 1))
    };
    match wire.name.strip_prefix(PACKAGE) {
        Some(
            "ColumnCountGetFilter"
            | "ColumnPaginationFilter"
            | "ColumnPrefixFilter"
            | "ColumnRangeFilter"
            | "FirstKeyOnlyFilter"
            | "InclusiveStopFilter"
            | "KeyOnlyFilter"
            | "PageFilter",
        ) => true,
        Some("FilterList") => message::<pb::FilterList>(&wire.name, wire.serialized_filter.as_ref())
            .is_ok_and(|list| all_light(&list.filters)),
        _ => false,
    }
}

/// The filters of one request. Gets of one batch mostly have the same: it is decoded, and its regular expressions are compiled, once.
#[derive(Debug, Default)]
pub struct Filters {
    known: HashMap<(String, Option<Bytes>), Arc<Filter>>,
    compiled_bytes: usize,
}

impl Filters {
    /// As [`filter()`], of which this request may have had the same before.
    ///
    /// # Errors
    /// As [`filter()`]; MultiActionResultTooLarge, which clients send again by itself, when the regular expressions of this filter and those before
    /// need more than [`MAX_COMPILED_BYTES`] together: a request of some KB could hold gigabytes.
    pub fn take(&mut self, wire: &pb::Filter) -> Result<Arc<Filter>> {
        let key = (wire.name.clone(), wire.serialized_filter.clone());
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let filter = Arc::new(filter(wire)?);
        let bytes = self.compiled_bytes + filter.compiled_bytes();
        if self.compiled_bytes > 0 && bytes > MAX_COMPILED_BYTES {
            return Err(ConvertError::new(
                ConvertErrorKind::TooLarge,
                FILTER,
                format!("the regular expressions of the request need more than {MAX_COMPILED_BYTES} bytes compiled"),
            ));
        }
        self.compiled_bytes = bytes;
        self.known.insert(key, filter.clone());
        Ok(filter)
    }
}

/// What is left of it.
struct Room(usize);

impl Room {
    fn take(&mut self, comparator: Comparator) -> Result<Comparator> {
        let left = self.0.checked_sub(comparator.compiled_bytes()).ok_or_else(|| {
            let message =
                format!("the regular expressions of the filter need more than {MAX_COMPILED_BYTES} bytes compiled");
            ConvertError::malformed(FILTER, message)
        })?;
        self.0 = left;
        Ok(comparator)
    }
}

fn nested(wire: &pb::Filter, depth: usize, room: &mut Room) -> Result<Filter> {
    let class = wire.name.as_str();
    let Some(deeper) = depth.checked_sub(1) else {
        return Err(ConvertError::malformed(FILTER, format!("filters are nested deeper than {MAX_DEPTH}")));
    };
    let bytes = wire.serialized_filter.as_ref();
    let unknown = || {
        let message = format!("{class}: the server has no such filter");
        ConvertError::new(ConvertErrorKind::UnknownClass, FILTER, message)
    };
    Ok(match class.strip_prefix(PACKAGE).ok_or_else(unknown)? {
        "FilterAllFilter" => Filter::All,
        "FilterWrapper" => return nested(&message::<pb::FilterWrapper>(class, bytes)?.filter, deeper, room),
        "ColumnCountGetFilter" => {
            Filter::ColumnCountGet { limit: message::<pb::ColumnCountGetFilter>(class, bytes)?.limit }
        }
        "ColumnPaginationFilter" => {
            let m: pb::ColumnPaginationFilter = message(class, bytes)?;
            let start = match m.column_offset {
                Some(ref column) => PageStart::Column(column.clone()),
                None => PageStart::Offset(m.offset()),
            };
            Filter::ColumnPagination { limit: m.limit, start }
        }
        "ColumnPrefixFilter" => {
            Filter::ColumnPrefix { prefix: message::<pb::ColumnPrefixFilter>(class, bytes)?.prefix }
        }
        "ColumnRangeFilter" => {
            let m: pb::ColumnRangeFilter = message(class, bytes)?;
            Filter::ColumnRange {
                min_inclusive: m.min_column_inclusive(),
                max_inclusive: m.max_column_inclusive(),
                min_column: m.min_column,
                max_column: m.max_column,
            }
        }
        "ColumnValueFilter" => {
            let m: pb::ColumnValueFilter = message(class, bytes)?;
            let (op, comparator) = (op(m.compare_op)?, room.take(comparator(&m.comparator)?)?);
            Filter::ColumnValue { family: m.family, qualifier: m.qualifier, op, comparator }
        }
        "DependentColumnFilter" => {
            let m: pb::DependentColumnFilter = message(class, bytes)?;
            let (op, comparator) = compare(&m.compare_filter, room)?;
            Filter::DependentColumn {
                drop_dependent_column: m.drop_dependent_column(),
                family: m.column_family,
                qualifier: m.column_qualifier,
                op,
                comparator,
            }
        }
        "FamilyFilter" => {
            let (op, comparator) = compare(&message::<pb::FamilyFilter>(class, bytes)?.compare_filter, room)?;
            Filter::Family { op, comparator }
        }
        "FirstKeyOnlyFilter" => Filter::FirstKeyOnly,
        "FirstKeyValueMatchingQualifiersFilter" => {
            let m: pb::FirstKeyValueMatchingQualifiersFilter = message(class, bytes)?;
            Filter::first_key_value_matching(m.qualifiers)
        }
        "FuzzyRowFilter" => {
            let m: pb::FuzzyRowFilter = message(class, bytes)?;
            let mask_v2 = m.is_mask_v2();
            let key = |pair: pb::BytesBytesPair| FuzzyKey { key: pair.first, mask: pair.second };
            Filter::FuzzyRow { keys: m.fuzzy_keys_data.into_iter().map(key).collect(), mask_v2 }
        }
        "InclusiveStopFilter" => {
            Filter::InclusiveStop { stop_row: message::<pb::InclusiveStopFilter>(class, bytes)?.stop_row_key }
        }
        "KeyOnlyFilter" => Filter::KeyOnly { len_as_val: message::<pb::KeyOnlyFilter>(class, bytes)?.len_as_val },
        "FilterList" => {
            let m: pb::FilterList = message(class, bytes)?;
            let operator = match m.operator() {
                pb::filter_list::Operator::MustPassAll => ListOperator::MustPassAll,
                pb::filter_list::Operator::MustPassOne => ListOperator::MustPassOne,
            };
            Filter::List {
                operator,
                filters: m.filters.iter().map(|f| nested(f, deeper, room)).collect::<Result<_>>()?,
            }
        }
        "MultiRowRangeFilter" => {
            let m: pb::MultiRowRangeFilter = message(class, bytes)?;
            let range = |r: pb::RowRange| RowRange {
                start_inclusive: r.start_row_inclusive(),
                stop_inclusive: r.stop_row_inclusive(),
                start_row: r.start_row.unwrap_or_default(),
                stop_row: r.stop_row.unwrap_or_default(),
            };
            Filter::MultiRowRange { ranges: m.row_range_list.into_iter().map(range).collect() }
        }
        "MultipleColumnPrefixFilter" => {
            let m: pb::MultipleColumnPrefixFilter = message(class, bytes)?;
            Filter::multiple_column_prefix(m.sorted_prefixes)
        }
        "PageFilter" => Filter::Page { page_size: message::<pb::PageFilter>(class, bytes)?.page_size },
        "PrefixFilter" => Filter::Prefix { prefix: message::<pb::PrefixFilter>(class, bytes)?.prefix },
        "QualifierFilter" => {
            let (op, comparator) = compare(&message::<pb::QualifierFilter>(class, bytes)?.compare_filter, room)?;
            Filter::Qualifier { op, comparator }
        }
        "RandomRowFilter" => Filter::RandomRow { chance: message::<pb::RandomRowFilter>(class, bytes)?.chance },
        "RowFilter" => {
            let (op, comparator) = compare(&message::<pb::RowFilter>(class, bytes)?.compare_filter, room)?;
            Filter::Row { op, comparator }
        }
        "SingleColumnValueFilter" => Filter::SingleColumnValue(single_column_value(message(class, bytes)?, room)?),
        "SingleColumnValueExcludeFilter" => {
            let m: pb::SingleColumnValueExcludeFilter = message(class, bytes)?;
            Filter::SingleColumnValueExclude(single_column_value(m.single_column_value_filter, room)?)
        }
        "SkipFilter" => {
            let m: pb::SkipFilter = message(class, bytes)?;
            Filter::Skip { filter: Box::new(nested(&m.filter, deeper, room)?) }
        }
        "TimestampsFilter" => {
            let m: pb::TimestampsFilter = message(class, bytes)?;
            let can_hint = m.can_hint();
            Filter::timestamps(m.timestamps, can_hint)
        }
        "ValueFilter" => {
            let (op, comparator) = compare(&message::<pb::ValueFilter>(class, bytes)?.compare_filter, room)?;
            Filter::Value { op, comparator }
        }
        "WhileMatchFilter" => {
            let m: pb::WhileMatchFilter = message(class, bytes)?;
            Filter::WhileMatch { filter: Box::new(nested(&m.filter, deeper, room)?) }
        }
        _ => return Err(unknown()),
    })
}

fn op(wire: i32) -> Result<CompareOp> {
    let op = pb::CompareType::try_from(wire);
    op.map(compare_op)
        .map_err(|_| ConvertError::malformed("CompareFilter.compare_op", format!("unknown compare_op {wire}")))
}

fn compare(wire: &pb::CompareFilter, room: &mut Room) -> Result<(CompareOp, Option<Comparator>)> {
    let op = op(wire.compare_op)?;
    if wire.comparator.is_none() && op != CompareOp::NoOp {
        let message = "the filter has no comparator";
        return Err(ConvertError::new(ConvertErrorKind::NullArgument, "CompareFilter.comparator", message));
    }
    let comparator = wire.comparator.as_ref().map(|wire| room.take(comparator(wire)?)).transpose()?;
    Ok((op, comparator))
}

fn single_column_value(m: pb::SingleColumnValueFilter, room: &mut Room) -> Result<SingleColumnValue> {
    Ok(SingleColumnValue {
        op: op(m.compare_op)?,
        comparator: room.take(comparator(&m.comparator)?)?,
        filter_if_missing: m.filter_if_missing(),
        latest_version_only: m.latest_version_only(),
        family: m.column_family,
        qualifier: m.column_qualifier,
    })
}

/// A comparator.
///
/// # Errors
/// A class that is not known, a message that is not of the class, or arguments that HBase refuses.
pub fn comparator(wire: &pb::Comparator) -> Result<Comparator> {
    let class = wire.name.as_str();
    let bytes = wire.serialized_comparator.as_ref();
    let value = |comparable: pb::ByteArrayComparable| comparable.value.unwrap_or_default();
    let unknown = || {
        let message = format!("{class}: the server has no such comparator");
        ConvertError::new(ConvertErrorKind::UnknownClass, COMPARATOR, message)
    };
    Ok(match class.strip_prefix(PACKAGE).ok_or_else(unknown)? {
        "BigDecimalComparator" => {
            Comparator::big_decimal_from_bytes(&value(message::<pb::BigDecimalComparator>(class, bytes)?.comparable))
                .map_err(refused(COMPARATOR))?
        }
        "BinaryComparator" => {
            Comparator::Binary { value: value(message::<pb::BinaryComparator>(class, bytes)?.comparable) }
        }
        "BinaryComponentComparator" => {
            let m: pb::BinaryComponentComparator = message(class, bytes)?;
            Comparator::BinaryComponent { value: m.value, offset: m.offset }
        }
        "BinaryPrefixComparator" => {
            Comparator::BinaryPrefix { value: value(message::<pb::BinaryPrefixComparator>(class, bytes)?.comparable) }
        }
        "BitComparator" => {
            let m: pb::BitComparator = message(class, bytes)?;
            let op = match m.bitwise_op() {
                pb::bit_comparator::BitwiseOp::And => BitwiseOp::And,
                pb::bit_comparator::BitwiseOp::Or => BitwiseOp::Or,
                pb::bit_comparator::BitwiseOp::Xor => BitwiseOp::Xor,
            };
            Comparator::Bit { value: value(m.comparable), op }
        }
        "LongComparator" => {
            Comparator::long_from_bytes(&value(message::<pb::LongComparator>(class, bytes)?.comparable))
                .map_err(refused(COMPARATOR))?
        }
        "NullComparator" => Comparator::Null,
        "RegexStringComparator" => {
            let m: pb::RegexStringComparator = message(class, bytes)?;
            let engine = m.engine.as_deref().map_or(Ok(RegexEngine::Java), RegexEngine::from_name);
            let regex = engine.and_then(|engine| RegexSpec::new(&m.pattern, m.pattern_flags, &m.charset, engine));
            Comparator::Regex(regex.map_err(refused(COMPARATOR))?)
        }
        "SubstringComparator" => Comparator::substring(&message::<pb::SubstringComparator>(class, bytes)?.substr),
        _ => return Err(unknown()),
    })
}
