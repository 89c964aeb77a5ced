//! Filters and comparators made by their constructors: `SingleColumnValueFilter.new(family, qualifier, CompareOperator::EQUAL, value)`.
//! Follows: the constructors of `org.apache.hadoop.hbase.filter`.

use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;
use filter::{
    BigDecimal, BitwiseOp, Comparator, CompareOp, Filter, FuzzyKey, ListOperator, PageStart, RegexSpec, RowRange,
    SingleColumnValue,
};

use super::Given;
use crate::failure::{Flow, Result};
use crate::value::Value;

/// Classes whose constructors and constants are known.
pub(super) const CLASSES: &[&str] = &[
    "BigDecimalComparator",
    "BinaryComparator",
    "BinaryComponentComparator",
    "BinaryPrefixComparator",
    "BitComparator",
    "BitwiseOp",
    "ColumnCountGetFilter",
    "ColumnPaginationFilter",
    "ColumnPrefixFilter",
    "ColumnRangeFilter",
    "ColumnValueFilter",
    "CompareFilter",
    "CompareOp",
    "CompareOperator",
    "DependentColumnFilter",
    "FamilyFilter",
    "FilterList",
    "FirstKeyOnlyFilter",
    "FuzzyRowFilter",
    "InclusiveStopFilter",
    "KeyOnlyFilter",
    "LongComparator",
    "MultiRowRangeFilter",
    "MultipleColumnPrefixFilter",
    "NullComparator",
    "Operator",
    "PageFilter",
    "Pair",
    "ParseFilter",
    "PrefixFilter",
    "QualifierFilter",
    "RandomRowFilter",
    "RegexStringComparator",
    "RowFilter",
    "RowRange",
    "SingleColumnValueExcludeFilter",
    "SingleColumnValueFilter",
    "SkipFilter",
    "SubstringComparator",
    "TimestampsFilter",
    "ValueFilter",
    "WhileMatchFilter",
];

/// Names of enumerations and their constants.
const CONSTANTS: &[(&str, &[&str])] = &[
    ("CompareOperator", OPERATORS),
    ("CompareOp", OPERATORS),
    ("Operator", &["MUST_PASS_ALL", "MUST_PASS_ONE"]),
    ("BitwiseOp", &["AND", "OR", "XOR"]),
];
const OPERATORS: &[&str] = &["LESS", "LESS_OR_EQUAL", "EQUAL", "NOT_EQUAL", "GREATER_OR_EQUAL", "GREATER", "NO_OP"];

fn illegal(why: impl Into<String>) -> Flow {
    Flow::raise("Java::JavaLang::IllegalArgumentException", why)
}

/// `Class.method`, `Class.new(...)`, `Class::CONSTANT`; none where it is not one of these.
pub(super) fn class_method(class: &str, given: &Given<'_>) -> Result<Option<Value>> {
    if !CLASSES.contains(&class) {
        return Ok(None);
    }
    if let Some((_, names)) = CONSTANTS.iter().find(|(name, _)| *name == class) {
        let wanted = if given.name == "valueOf" { given.value(0).to_text() } else { given.name.to_owned() };
        return match names.contains(&wanted.as_str()) {
            true => Ok(Some(Value::Java(wanted.as_str().into()))),
            false => Err(illegal(format!("{class} has no constant {wanted}: it has {}", names.join(", ")))),
        };
    }
    match (class, given.name) {
        ("CompareFilter", "CompareOp") | ("FilterList", "Operator") | ("BitComparator", "BitwiseOp") => {
            Ok(Some(Value::Class(given.name.into())))
        }
        ("MultiRowRangeFilter", "RowRange") => Ok(Some(Value::Class("RowRange".into()))),
        ("ParseFilter", "new") => Ok(Some(Value::Class("ParseFilter".into()))),
        ("ParseFilter", "parseFilterString") => {
            let filter = filter::parse::parse_filter(&given.value(0).to_bytes());
            Ok(Some(of_filter(filter.map_err(|error| illegal(error.to_string()))?)))
        }
        ("Pair" | "RowRange", "new") => Ok(Some(Value::array(given.values.clone()))),
        (_, "new") if class.ends_with("Comparator") => Ok(Some(Value::Comparator(Rc::new(comparator(class, given)?)))),
        (_, "new") => {
            let filter = made(class, given)?;
            filter.check().map_err(|error| illegal(error.to_string()))?;
            Ok(Some(of_filter(filter)))
        }
        _ => Ok(None),
    }
}

/// What `CompareOperator::EQUAL` or `FilterList::Operator` stands for; none where it is nothing of these classes.
pub(crate) fn constant(path: &str) -> Option<Value> {
    let (of, name) = path.rsplit_once("::")?;
    let of = of.rsplit("::").next().unwrap_or(of);
    if CLASSES.contains(&of) && CLASSES.contains(&name) {
        return Some(Value::Class(name.into()));
    }
    let names = CONSTANTS.iter().find(|(class, _)| *class == of)?.1;
    names.contains(&name).then(|| Value::Java(name.into()))
}

fn of_filter(filter: Filter) -> Value {
    Value::Filter(Rc::new(RefCell::new(filter)))
}

/// A method of a filter: setters, and `addFilter` of a list.
pub(super) fn filter_method(filter: &Rc<RefCell<Filter>>, given: &Given<'_>) -> Result<Option<Value>> {
    let truth = given.value(0).is_true();
    let mut borrowed = filter.borrow_mut();
    match (&mut *borrowed, given.name) {
        (
            Filter::SingleColumnValue(test) | Filter::SingleColumnValueExclude(test),
            "setFilterIfMissing" | "set_filter_if_missing",
        ) => test.filter_if_missing = truth,
        (
            Filter::SingleColumnValue(test) | Filter::SingleColumnValueExclude(test),
            "setLatestVersionOnly" | "set_latest_version_only",
        ) => test.latest_version_only = truth,
        (Filter::List { filters, .. }, "addFilter" | "add_filter") => {
            for value in &given.values {
                match value {
                    Value::Array(items) => {
                        for item in items.borrow().iter() {
                            filters.push(as_filter(item)?);
                        }
                    }
                    other => filters.push(as_filter(other)?),
                }
            }
        }
        (_, "toString" | "to_s") => return Ok(Some(Value::text(format!("{borrowed:?}")))),
        _ => return Ok(None),
    }
    Ok(Some(Value::Nil))
}

/// An argument as a filter.
fn as_filter(value: &Value) -> Result<Filter> {
    match value {
        Value::Filter(filter) => match filter.try_borrow() {
            Ok(filter) => Ok(filter.clone()),
            Err(_) => Err(illegal("a list of filters cannot be an element of itself")),
        },
        other => Err(Flow::raise("TypeError", format!("{} ({}) is no filter", other.inspect(), other.class()))),
    }
}

fn bytes(value: &Value) -> Bytes {
    value.to_bytes().into()
}

fn optional(value: &Value) -> Option<Bytes> {
    (!value.is_nil()).then(|| bytes(value))
}

/// `EQUAL`, with or without its enumeration.
fn operator(value: &Value) -> Result<CompareOp> {
    Ok(match value.to_text().rsplit(['.', ':']).next().unwrap_or_default() {
        "LESS" => CompareOp::Less,
        "LESS_OR_EQUAL" => CompareOp::LessOrEqual,
        "EQUAL" => CompareOp::Equal,
        "NOT_EQUAL" => CompareOp::NotEqual,
        "GREATER_OR_EQUAL" => CompareOp::GreaterOrEqual,
        "GREATER" => CompareOp::Greater,
        "NO_OP" => CompareOp::NoOp,
        other => return Err(illegal(format!("{other} is no operator: {} are", OPERATORS.join(", ")))),
    })
}

/// A comparator; bytes are compared as they are.
fn as_comparator(value: &Value) -> Comparator {
    match value {
        Value::Comparator(comparator) => (**comparator).clone(),
        other => Comparator::Binary { value: bytes(other) },
    }
}

fn int32(given: &Given<'_>, i: usize) -> Result<i32> {
    i32::try_from(given.int(i)?).map_err(|_| illegal(format!("{} is no number of 32 bits", given.value(i).inspect())))
}

fn comparator(class: &str, given: &Given<'_>) -> Result<Comparator> {
    let value = bytes(&given.value(0));
    Ok(match class {
        "BinaryComparator" => Comparator::Binary { value },
        "BinaryPrefixComparator" => Comparator::BinaryPrefix { value },
        "BinaryComponentComparator" => {
            let offset = u32::try_from(given.int(1)?).map_err(|_| illegal("an offset is not negative"))?;
            Comparator::BinaryComponent { value, offset }
        }
        "BitComparator" => {
            let op = match given.value(1).to_text().as_str() {
                "AND" => BitwiseOp::And,
                "OR" => BitwiseOp::Or,
                "XOR" => BitwiseOp::Xor,
                other => return Err(illegal(format!("{other} is none of AND, OR, XOR"))),
            };
            Comparator::Bit { value, op }
        }
        "LongComparator" => Comparator::Long { value: given.int(0)? },
        "BigDecimalComparator" => Comparator::BigDecimal(decimal(&given.value(0).to_text())?),
        "NullComparator" => Comparator::Null,
        "SubstringComparator" => Comparator::substring(&given.value(0).to_text()),
        "RegexStringComparator" => {
            let spec = RegexSpec::of(&given.value(0).to_text());
            Comparator::Regex(spec.map_err(|error| illegal(error.to_string()))?)
        }
        other => return Err(illegal(format!("{other} cannot be made here"))),
    })
}

/// `-12.50` as an unscaled number and a scale.
fn decimal(text: &str) -> Result<BigDecimal> {
    let wrong = || illegal(format!("{text} is no decimal number of at most 38 digits"));
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let unscaled: i128 = format!("{whole}{part}").parse().map_err(|_| wrong())?;
    Ok(BigDecimal::new(unscaled, i32::try_from(part.len()).map_err(|_| wrong())?))
}

/// The filter that a constructor makes.
fn made(class: &str, given: &Given<'_>) -> Result<Filter> {
    let value = |i: usize| given.value(i);
    Ok(match class {
        "ColumnCountGetFilter" => Filter::ColumnCountGet { limit: int32(given, 0)? },
        "ColumnPaginationFilter" => {
            let start = match value(1) {
                Value::Int(_) => PageStart::Offset(int32(given, 1)?),
                other => PageStart::Column(bytes(&other)),
            };
            Filter::ColumnPagination { limit: int32(given, 0)?, start }
        }
        "ColumnPrefixFilter" => Filter::ColumnPrefix { prefix: bytes(&value(0)) },
        "ColumnRangeFilter" => Filter::ColumnRange {
            min_column: optional(&value(0)),
            min_inclusive: value(1).is_true(),
            max_column: optional(&value(2)),
            max_inclusive: value(3).is_true(),
        },
        "FirstKeyOnlyFilter" => Filter::FirstKeyOnly,
        "InclusiveStopFilter" => Filter::InclusiveStop { stop_row: optional(&value(0)) },
        "KeyOnlyFilter" => Filter::KeyOnly { len_as_val: value(0).is_true() },
        "MultipleColumnPrefixFilter" => Filter::multiple_column_prefix(list(&value(0))?.iter().map(bytes)),
        "PageFilter" => Filter::Page { page_size: given.int(0)? },
        "PrefixFilter" => Filter::Prefix { prefix: optional(&value(0)) },
        "RandomRowFilter" => Filter::RandomRow { chance: value(0).to_text().parse().unwrap_or(0.0) },
        "SkipFilter" => Filter::Skip { filter: Box::new(as_filter(&value(0))?) },
        "WhileMatchFilter" => Filter::WhileMatch { filter: Box::new(as_filter(&value(0))?) },
        "TimestampsFilter" => {
            let times: Result<Vec<i64>> = list(&value(0))?.iter().map(time).collect();
            Filter::timestamps(times?, value(1).is_true())
        }
        _ => return comparing(class, given),
    })
}

/// Filters that compare, and those of ranges and lists.
fn comparing(class: &str, given: &Given<'_>) -> Result<Filter> {
    let value = |i: usize| given.value(i);
    let compared = || Ok::<_, Flow>((operator(&value(0))?, Some(as_comparator(&value(1)))));
    Ok(match class {
        "FamilyFilter" | "QualifierFilter" | "RowFilter" | "ValueFilter" => {
            let (op, comparator) = compared()?;
            match class {
                "FamilyFilter" => Filter::Family { op, comparator },
                "QualifierFilter" => Filter::Qualifier { op, comparator },
                "RowFilter" => Filter::Row { op, comparator },
                _ => Filter::Value { op, comparator },
            }
        }
        "SingleColumnValueFilter" | "SingleColumnValueExcludeFilter" => {
            let test = SingleColumnValue {
                family: optional(&value(0)),
                qualifier: optional(&value(1)),
                op: operator(&value(2))?,
                comparator: as_comparator(&value(3)),
                filter_if_missing: value(4).is_true(),
                latest_version_only: value(5).is_nil() || value(5).is_true(),
            };
            match class {
                "SingleColumnValueFilter" => Filter::SingleColumnValue(test),
                _ => Filter::SingleColumnValueExclude(test),
            }
        }
        "ColumnValueFilter" => Filter::ColumnValue {
            family: bytes(&value(0)),
            qualifier: bytes(&value(1)),
            op: operator(&value(2))?,
            comparator: as_comparator(&value(3)),
        },
        "DependentColumnFilter" => Filter::DependentColumn {
            family: optional(&value(0)),
            qualifier: optional(&value(1)),
            drop_dependent_column: value(2).is_true(),
            op: if value(3).is_nil() { CompareOp::NoOp } else { operator(&value(3))? },
            comparator: (!value(4).is_nil()).then(|| as_comparator(&value(4))),
        },
        "FuzzyRowFilter" => {
            let key = |pair: &Value| {
                let pair = list(pair)?;
                let part = |i: usize| pair.get(i).map(bytes).unwrap_or_default();
                Ok(FuzzyKey { key: part(0), mask: part(1) })
            };
            let keys: Result<Vec<FuzzyKey>> = list(&value(0))?.iter().map(key).collect();
            Filter::FuzzyRow { keys: keys?, mask_v2: true }
        }
        "MultiRowRangeFilter" => {
            let ranges: Result<Vec<RowRange>> = list(&value(0))?.iter().map(range).collect();
            Filter::MultiRowRange { ranges: ranges? }
        }
        "FilterList" => filter_list(given)?,
        other => return Err(illegal(format!("{other} cannot be made here"))),
    })
}

fn list(value: &Value) -> Result<Vec<Value>> {
    match value {
        Value::Array(items) => Ok(items.borrow().clone()),
        other => Err(Flow::raise("TypeError", format!("{} is no list", other.inspect()))),
    }
}

fn time(value: &Value) -> Result<i64> {
    match value {
        Value::Int(time) => Ok(*time),
        other => Err(Flow::raise("TypeError", format!("{} is no time: a whole number is", other.inspect()))),
    }
}

/// `RowRange.new(start, true, stop, false)`.
fn range(value: &Value) -> Result<RowRange> {
    let parts = list(value)?;
    let part = |i: usize| parts.get(i).cloned().unwrap_or(Value::Nil);
    Ok(RowRange {
        start_row: bytes(&part(0)),
        start_inclusive: part(1).is_true(),
        stop_row: bytes(&part(2)),
        stop_inclusive: part(3).is_true(),
    })
}

/// `FilterList.new`, with an operator, filters, a list of filters, or some of these.
fn filter_list(given: &Given<'_>) -> Result<Filter> {
    let mut operator = ListOperator::MustPassAll;
    let mut filters = Vec::new();
    for value in &given.values {
        match value {
            Value::Java(name) if name.ends_with("MUST_PASS_ALL") => operator = ListOperator::MustPassAll,
            Value::Java(name) if name.ends_with("MUST_PASS_ONE") => operator = ListOperator::MustPassOne,
            Value::Array(items) => {
                for item in items.borrow().iter() {
                    filters.push(as_filter(item)?);
                }
            }
            other => filters.push(as_filter(other)?),
        }
    }
    Ok(Filter::List { operator, filters })
}
