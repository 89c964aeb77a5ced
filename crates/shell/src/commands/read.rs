//! What `get`, `scan` and `count` share: columns, times, filters, and how a cell is shown. Follows: `Table#_get_internal`,
//! `#_hash_to_scan`, `#to_string`, `#convert`.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use cell::CellRef;
use model::TimeRange;

use super::arguments::{Options, int};
use crate::failure::{Flow, Result};
use crate::pretty;
use crate::value::Value;

/// Columns that a read asks for, and how values of some are shown.
#[derive(Default)]
pub(super) struct Columns {
    pub wanted: BTreeMap<Bytes, Vec<Bytes>>,
    converters: BTreeMap<(Bytes, Bytes), String>,
}

impl Columns {
    /// Of `FAMILY`, `FAMILY:QUALIFIER`, `FAMILY:QUALIFIER:CONVERTER`.
    pub fn parse(specs: &[Value]) -> Columns {
        let mut columns = Columns::default();
        for spec in specs {
            let bytes = spec.to_bytes();
            let mut parts = bytes.splitn(3, |byte| *byte == b':');
            let family = Bytes::copy_from_slice(parts.next().unwrap_or_default());
            let qualifiers = columns.wanted.entry(family.clone()).or_default();
            let Some(qualifier) = parts.next().map(Bytes::copy_from_slice) else {
                qualifiers.clear();
                continue;
            };
            qualifiers.push(qualifier.clone());
            qualifiers.sort();
            qualifiers.dedup();
            if let Some(converter) = parts.next() {
                let converter = String::from_utf8_lossy(converter).into_owned();
                columns.converters.insert((family, qualifier), converter);
            }
        }
        columns
    }

    /// Out of the options COLUMN and COLUMNS.
    pub fn take(options: &mut Options) -> Result<Columns> {
        let one = options.take("COLUMN");
        let given = options.take("COLUMNS").or(one);
        match given {
            None => Ok(Columns::default()),
            Some(Value::Array(specs)) => Ok(Columns::parse(&specs.borrow())),
            Some(spec @ (Value::Text(_) | Value::Symbol(_))) => Ok(Columns::parse(&[spec])),
            Some(_) => Err(Flow::argument("COLUMNS must be specified as a String or an Array")),
        }
    }
}

/// Family and qualifier of a column that is written; none of a family alone.
pub(super) fn column(spec: &[u8]) -> (Bytes, Option<Bytes>) {
    match spec.iter().position(|byte| *byte == b':') {
        Some(at) => (Bytes::copy_from_slice(&spec[..at]), Some(Bytes::copy_from_slice(&spec[at + 1..]))),
        None => (Bytes::copy_from_slice(spec), None),
    }
}

/// The times that TIMESTAMP or TIMERANGE ask for.
pub(super) fn time_range(options: &mut Options) -> Result<Option<TimeRange>> {
    if let Some(at) = options.take_int("TIMESTAMP")? {
        return Ok(Some(TimeRange { min: at, max: at.saturating_add(1) }));
    }
    match options.take("TIMERANGE") {
        None => Ok(None),
        Some(Value::Array(ends)) => match ends.borrow().as_slice() {
            [min, max] => {
                let (min, max) = (int(min, "TIMERANGE")?, int(max, "TIMERANGE")?);
                match min >= 0 && max >= min {
                    true => Ok(Some(TimeRange { min, max })),
                    false => {
                        Err(Flow::argument(format!("TIMERANGE [{min}, {max}] is none: it goes from 0 on, and upwards")))
                    }
                }
            }
            _ => Err(Flow::argument("TIMERANGE must be two numbers: [from, to]")),
        },
        Some(_) => Err(Flow::argument("TIMERANGE must be two numbers: [from, to]")),
    }
}

/// The filter that FILTER gives as text or as a value.
pub(super) fn filter(options: &mut Options) -> Result<Option<Arc<filter::Filter>>> {
    match options.take("FILTER") {
        None => Ok(None),
        Some(Value::Filter(filter)) => Ok(Some(Arc::new(filter.borrow().clone()))),
        Some(text) => match filter::parse::parse_filter(&text.to_bytes()) {
            Ok(filter) => Ok(Some(Arc::new(filter))),
            Err(error) => Err(Flow::raise("Java::JavaLang::IllegalArgumentException", error.to_string())),
        },
    }
}

/// ATTRIBUTES.
pub(super) fn attributes(options: &mut Options) -> Result<Vec<(String, Bytes)>> {
    let pairs = options.take_hash("ATTRIBUTES")?.unwrap_or_default();
    Ok(pairs.into_iter().map(|(key, value)| (key.to_text(), value.to_bytes().into())).collect())
}

/// Whether CONSISTENCY asks for TIMELINE.
pub(super) fn timeline(options: &mut Options) -> Result<bool> {
    match options.take_text("CONSISTENCY").as_deref() {
        None | Some("STRONG") => Ok(false),
        Some("TIMELINE") => Ok(true),
        Some(other) => Err(Flow::argument(format!("CONSISTENCY {other} is not known: STRONG and TIMELINE are"))),
    }
}

/// REGION_REPLICA_ID: the read replica that is asked; the primary where there is none, or a negative one.
pub(super) fn replica_id(options: &mut Options) -> Result<u32> {
    Ok(options.take_int("REGION_REPLICA_ID")?.and_then(|id| u32::try_from(id).ok()).unwrap_or(0))
}

/// Refuses what cannot be done yet rather than passing it over.
pub(super) fn refuse(options: &Options, names: &[&str]) -> Result<()> {
    match names.iter().find(|name| options.has(name)) {
        Some(name) => Err(Flow::argument(format!("{name} is not supported by this shell yet"))),
        None => Ok(()),
    }
}

/// How cells are shown.
pub(super) struct Shown {
    converters: BTreeMap<(Bytes, Bytes), String>,
    converter: String,
    max_length: Option<usize>,
}

impl Shown {
    /// As FORMATTER, MAXLENGTH and converters of columns say.
    pub fn take(options: &mut Options, columns: &mut Columns) -> Result<Shown> {
        // The class is always Bytes: there is no Java here.
        options.take("FORMATTER_CLASS");
        let shown = Shown {
            converters: std::mem::take(&mut columns.converters),
            converter: options.take_text("FORMATTER").unwrap_or_else(|| "toStringBinary".to_owned()),
            max_length: options.take_int("MAXLENGTH")?.and_then(|length| usize::try_from(length).ok()),
        };
        for converter in shown.converters.values().chain([&shown.converter]) {
            if convert(converter, &[0; 8]).is_none() {
                return Err(Flow::argument(format!(
                    "{converter} converts nothing; known are {}",
                    CONVERTERS.join(", ")
                )));
            }
        }
        Ok(shown)
    }

    /// A row's key, a family, or a qualifier.
    pub fn bytes(&self, bytes: &[u8]) -> String {
        convert(&self.converter, bytes).unwrap_or_else(|| cell::print::to_string_binary(bytes))
    }

    /// `family:qualifier`.
    pub fn column(&self, cell: CellRef<'_>) -> String {
        format!("{}:{}", self.bytes(cell.family()), self.bytes(cell.qualifier()))
    }

    /// `timestamp=..., value=...`.
    pub fn cell(&self, cell: CellRef<'_>, is_meta: bool) -> String {
        let at = pretty::timestamp(cell.timestamp());
        let text = if cell.is_delete() {
            let kind =
                cell::CellType::from_code(cell.type_code()).map_or("Unknown".to_owned(), |kind| format!("{kind:?}"));
            format!("timestamp={at}, type={kind}")
        } else {
            format!("timestamp={at}, value={}", self.value(cell, is_meta))
        };
        match self.max_length {
            Some(length) => text.chars().take(length).collect(),
            None => text,
        }
    }

    fn value(&self, cell: CellRef<'_>, is_meta: bool) -> String {
        if is_meta && cell.qualifier() == b"serverstartcode" && cell.value().len() == 8 {
            return convert("toLong", cell.value()).unwrap_or_default();
        }
        let column = (Bytes::copy_from_slice(cell.family()), Bytes::copy_from_slice(cell.qualifier()));
        let converter = self.converters.get(&column).unwrap_or(&self.converter);
        convert(converter, cell.value()).unwrap_or_else(|| cell::print::to_string_binary(cell.value()))
    }
}

const CONVERTERS: &[&str] =
    &["toStringBinary", "toString", "toLong", "toInt", "toShort", "toDouble", "toFloat", "toBoolean", "toHex"];

/// What a method of `Bytes` makes of bytes; none where there is no such method, or the bytes are too few for it.
fn convert(converter: &str, bytes: &[u8]) -> Option<String> {
    // `c(org.apache.hadoop.hbase.util.Bytes).toInt` names the class as well.
    let name = converter.rsplit('.').next().unwrap_or(converter);
    Some(match name {
        "toStringBinary" => cell::print::to_string_binary(bytes),
        "toString" => String::from_utf8_lossy(bytes).into_owned(),
        "toLong" => i64::from_be_bytes(bytes.get(..8)?.try_into().ok()?).to_string(),
        "toInt" => i32::from_be_bytes(bytes.get(..4)?.try_into().ok()?).to_string(),
        "toShort" => i16::from_be_bytes(bytes.get(..2)?.try_into().ok()?).to_string(),
        "toDouble" => crate::value::float(f64::from_be_bytes(bytes.get(..8)?.try_into().ok()?)),
        "toFloat" => crate::value::float(f64::from(f32::from_be_bytes(bytes.get(..4)?.try_into().ok()?))),
        "toBoolean" => (*bytes.first()? != 0).to_string(),
        "toHex" => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_parted_and_their_converters_kept() {
        let columns = Columns::parse(&["f:a", "f:n:toLong", "g"].map(Value::text));
        assert_eq!(columns.wanted[&b"f"[..]], ["a", "n"]);
        assert!(columns.wanted[&b"g"[..]].is_empty());
        assert_eq!(columns.converters.values().collect::<Vec<_>>(), ["toLong"]);
        assert_eq!(column(b"f:"), ("f".into(), Some("".into())));
        assert_eq!(column(b"f"), ("f".into(), None));
    }

    #[test]
    fn values_are_converted() {
        assert_eq!(convert("toLong", &5_i64.to_be_bytes()).as_deref(), Some("5"));
        assert_eq!(convert("c(org.apache.hadoop.hbase.util.Bytes).toInt", &[0, 0, 1, 0]).as_deref(), Some("256"));
        assert_eq!(convert("toLong", &[1]), None);
        assert_eq!(convert("eval", &[1]), None);
    }
}
