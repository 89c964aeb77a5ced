//! Filters in JSON, as scanners carry them. Follows: `ScannerModel.FilterModel`.

use crate::text::from_base64;
use bytes::Bytes;
use filter::{BitwiseOp, Comparator, CompareOp, Filter, FuzzyKey, ListOperator, PageStart, RegexSpec, RowRange};
use filter::{MAX_COMPILED_BYTES, MAX_DEPTH, SingleColumnValue};
use serde_json::Value;

/// One filter's fields.
struct Fields<'a>(&'a serde_json::Map<String, Value>);

/// The filter that a JSON text describes.
///
/// # Errors
/// What is wrong with it.
pub fn parse(text: &str) -> Result<Filter, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("filter: JSON: {error}"))?;
    let filter = of(&value, 0)?;
    filter.check().map_err(|error| format!("filter: {error}"))?;
    if filter.compiled_bytes() > MAX_COMPILED_BYTES {
        return Err("filter: its regular expressions take too much memory".to_owned());
    }
    Ok(filter)
}

fn of(value: &Value, depth: usize) -> Result<Filter, String> {
    if depth >= MAX_DEPTH {
        return Err(format!("filter: more than {MAX_DEPTH} filters within each other"));
    }
    let fields = Fields(value.as_object().ok_or("filter: a filter is a JSON object")?);
    match fields.text("type")? {
        "FamilyFilter" | "QualifierFilter" | "RowFilter" | "ValueFilter" => fields.comparing(),
        "FilterList" | "SkipFilter" | "WhileMatchFilter" => fields.of_others(depth),
        "SingleColumnValueFilter" => Ok(Filter::SingleColumnValue(fields.single_column_value()?)),
        "SingleColumnValueExcludeFilter" => Ok(Filter::SingleColumnValueExclude(fields.single_column_value()?)),
        "DependentColumnFilter" => Ok(Filter::DependentColumn {
            family: Some(fields.bytes("family")?),
            qualifier: fields.optional_bytes("qualifier")?,
            drop_dependent_column: fields.flag("dropDependentColumn")?.ok_or("filter: no dropDependentColumn")?,
            op: fields.op()?,
            comparator: Some(fields.comparator()?),
        }),
        _ => fields.plain(),
    }
}

impl<'a> Fields<'a> {
    fn optional(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn value(&self, name: &str) -> Result<&'a Value, String> {
        self.optional(name).ok_or_else(|| format!("filter: no {name}"))
    }

    fn text(&self, name: &str) -> Result<&'a str, String> {
        self.value(name)?.as_str().ok_or_else(|| format!("filter: {name} is not text"))
    }

    fn optional_bytes(&self, name: &str) -> Result<Option<Bytes>, String> {
        self.optional(name).map(|_| self.bytes(name)).transpose()
    }

    fn bytes(&self, name: &str) -> Result<Bytes, String> {
        from_base64(self.text(name)?).map_err(|why| format!("filter: {name}: {why}"))
    }

    fn int(&self, name: &str) -> Result<i32, String> {
        let number = self.value(name)?.as_i64().and_then(|number| i32::try_from(number).ok());
        number.filter(|number| *number >= 0).ok_or_else(|| format!("filter: {name} is not such a number"))
    }

    fn flag(&self, name: &str) -> Result<Option<bool>, String> {
        let Some(value) = self.optional(name) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| format!("filter: {name} is neither true nor false"))
    }

    fn list(&self, name: &str) -> Result<&'a [Value], String> {
        self.value(name)?.as_array().map(Vec::as_slice).ok_or_else(|| format!("filter: {name} is not a list"))
    }

    fn op(&self) -> Result<CompareOp, String> {
        Ok(match self.text("op")? {
            "LESS" => CompareOp::Less,
            "LESS_OR_EQUAL" => CompareOp::LessOrEqual,
            "EQUAL" => CompareOp::Equal,
            "NOT_EQUAL" => CompareOp::NotEqual,
            "GREATER_OR_EQUAL" => CompareOp::GreaterOrEqual,
            "GREATER" => CompareOp::Greater,
            "NO_OP" => CompareOp::NoOp,
            other => return Err(format!("filter: there is no operator {other:?}")),
        })
    }

    fn comparator(&self) -> Result<Comparator, String> {
        let fields = self.value("comparator")?.as_object().ok_or("filter: a comparator is a JSON object")?;
        let fields = Fields(fields);
        Ok(match fields.text("type")? {
            "BinaryComparator" => Comparator::Binary { value: fields.bytes("value")? },
            "BinaryPrefixComparator" => Comparator::BinaryPrefix { value: fields.bytes("value")? },
            "BitComparator" => {
                let op = match fields.text("op")? {
                    "AND" => BitwiseOp::And,
                    "OR" => BitwiseOp::Or,
                    "XOR" => BitwiseOp::Xor,
                    other => return Err(format!("filter: there is no bit operator {other:?}")),
                };
                Comparator::Bit { value: fields.bytes("value")?, op }
            }
            "NullComparator" => Comparator::Null,
            "RegexStringComparator" => {
                Comparator::Regex(RegexSpec::of(fields.text("value")?).map_err(|error| format!("filter: {error}"))?)
            }
            "SubstringComparator" => Comparator::substring(fields.text("value")?),
            other => return Err(format!("filter: there is no comparator {other:?}")),
        })
    }

    fn comparing(&self) -> Result<Filter, String> {
        let (op, comparator) = (self.op()?, Some(self.comparator()?));
        Ok(match self.text("type")? {
            "FamilyFilter" => Filter::Family { op, comparator },
            "QualifierFilter" => Filter::Qualifier { op, comparator },
            "RowFilter" => Filter::Row { op, comparator },
            _ => Filter::Value { op, comparator },
        })
    }

    fn of_others(&self, depth: usize) -> Result<Filter, String> {
        let filters = self.list("filters")?.iter().map(|filter| of(filter, depth + 1));
        let mut filters = filters.collect::<Result<Vec<Filter>, String>>()?;
        if self.text("type")? == "FilterList" {
            let operator = match self.text("op")? {
                "MUST_PASS_ALL" => ListOperator::MustPassAll,
                "MUST_PASS_ONE" => ListOperator::MustPassOne,
                other => return Err(format!("filter: a list has no operator {other:?}")),
            };
            return Ok(Filter::List { operator, filters });
        }
        filters.truncate(1);
        let filter = Box::new(filters.pop().ok_or("filter: no filter within")?);
        Ok(match self.text("type")? {
            "SkipFilter" => Filter::Skip { filter },
            _ => Filter::WhileMatch { filter },
        })
    }

    fn single_column_value(&self) -> Result<SingleColumnValue, String> {
        Ok(SingleColumnValue {
            family: Some(self.bytes("family")?),
            qualifier: self.optional_bytes("qualifier")?,
            op: self.op()?,
            comparator: self.comparator()?,
            filter_if_missing: self.flag("ifMissing")?.unwrap_or(false),
            latest_version_only: self.flag("latestVersion")?.unwrap_or(true),
        })
    }

    /// Those that hold no other filter and no comparator.
    fn plain(&self) -> Result<Filter, String> {
        Ok(match self.text("type")? {
            "ColumnCountGetFilter" => Filter::ColumnCountGet { limit: self.int("limit")? },
            "ColumnPaginationFilter" => {
                Filter::ColumnPagination { limit: self.int("limit")?, start: PageStart::Offset(self.int("offset")?) }
            }
            "ColumnPrefixFilter" => Filter::ColumnPrefix { prefix: self.bytes("value")? },
            "ColumnRangeFilter" => Filter::ColumnRange {
                min_column: Some(self.bytes("minColumn")?),
                min_inclusive: self.flag("minColumnInclusive")?.ok_or("filter: no minColumnInclusive")?,
                max_column: Some(self.bytes("maxColumn")?),
                max_inclusive: self.flag("maxColumnInclusive")?.ok_or("filter: no maxColumnInclusive")?,
            },
            "FirstKeyOnlyFilter" => Filter::FirstKeyOnly,
            "FuzzyRowFilter" => Filter::FuzzyRow { keys: self.fuzzy_keys()?, mask_v2: true },
            "InclusiveStopFilter" => Filter::InclusiveStop { stop_row: Some(self.bytes("value")?) },
            "KeyOnlyFilter" => Filter::KeyOnly { len_as_val: false },
            "MultipleColumnPrefixFilter" => {
                let text = |prefix: &Value| from_base64(prefix.as_str().ok_or("filter: a prefix is text")?);
                Filter::multiple_column_prefix(self.list("prefixes")?.iter().map(text).collect::<Result<Vec<_>, _>>()?)
            }
            "MultiRowRangeFilter" => Filter::MultiRowRange { ranges: self.ranges()? },
            "PageFilter" => {
                let size: i64 = self.text("value")?.parse().map_err(|_| "filter: a page's size is a number")?;
                Filter::Page {
                    page_size: Some(size).filter(|n| *n >= 0).ok_or("filter: a page's size is not negative")?,
                }
            }
            "PrefixFilter" => Filter::Prefix { prefix: Some(self.bytes("value")?) },
            "RandomRowFilter" => Filter::RandomRow {
                chance: self.value("chance")?.as_f64().ok_or("filter: a chance is a number")? as f32,
            },
            "TimestampsFilter" => {
                let number = |time: &Value| time.as_i64().filter(|time| *time >= 0);
                let times = self.list("timestamps")?.iter().map(number).collect::<Option<Vec<i64>>>();
                Filter::timestamps(times.ok_or("filter: a timestamp is a number that is not negative")?, false)
            }
            other => return Err(format!("filter: there is no filter {other:?}")),
        })
    }

    fn fuzzy_keys(&self) -> Result<Vec<FuzzyKey>, String> {
        let key = |value: &Value| {
            let fields = Fields(value.as_object().ok_or("filter: a fuzzy key is a JSON object")?);
            Ok(FuzzyKey { key: fields.bytes("key")?, mask: fields.bytes("mask")? })
        };
        self.list("fuzzyKeys")?.iter().map(key).collect()
    }

    fn ranges(&self) -> Result<Vec<RowRange>, String> {
        let range = |value: &Value| {
            let fields = Fields(value.as_object().ok_or("filter: a range is a JSON object")?);
            Ok(RowRange {
                start_row: fields.optional_bytes("startRow")?.unwrap_or_default(),
                start_inclusive: fields.flag("startRowInclusive")?.unwrap_or(true),
                stop_row: fields.optional_bytes("stopRow")?.unwrap_or_default(),
                stop_inclusive: fields.flag("stopRowInclusive")?.unwrap_or(false),
            })
        };
        self.list("ranges")?.iter().map(range).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_read() {
        let list = "{\"type\":\"FilterList\",\"op\":\"MUST_PASS_ALL\",\"filters\":[\
                    {\"type\":\"PrefixFilter\",\"value\":\"YQ==\"},\
                    {\"type\":\"ValueFilter\",\"op\":\"EQUAL\",\"comparator\":{\"type\":\"SubstringComparator\",\
                    \"value\":\"x\"}},{\"type\":\"PageFilter\",\"value\":\"3\"}]}";
        let Ok(Filter::List { operator: ListOperator::MustPassAll, filters }) = parse(list) else { panic!("a list") };
        assert_eq!(filters[0], Filter::Prefix { prefix: Some(Bytes::from("a")) });
        assert_eq!(filters[2], Filter::Page { page_size: 3 });
        assert!(matches!(filters[1], Filter::Value { op: CompareOp::Equal, .. }));
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        for text in [
            "",
            "[]",
            "{}",
            "{\"type\":\"NoFilter\"}",
            "{\"type\":\"PrefixFilter\",\"value\":\"!\"}",
            "{\"type\":\"PageFilter\",\"value\":\"-1\"}",
            "{\"type\":\"ColumnCountGetFilter\",\"limit\":-1}",
            "{\"type\":\"SkipFilter\",\"filters\":[]}",
            "{\"type\":\"RowFilter\",\"op\":\"EQUAL\",\"comparator\":{\"type\":\"RegexStringComparator\",\"value\":\"(\"}}",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        let within = "{\"type\":\"SkipFilter\",\"filters\":[".repeat(MAX_DEPTH + 1);
        assert!(parse(&format!("{within}{}", "]}".repeat(MAX_DEPTH + 1))).is_err());
    }
}
