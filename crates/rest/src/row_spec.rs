//! What a path says about rows: `row[*]|start,end [/ columns [/ timestamp|from,to]]`. Follows: `RowSpec`.

use crate::text::{column_of, from_base64_bytes, from_base64_url, percent_decoded};
use bytes::Bytes;
use model::TimeRange;
use model::read::Columns;
use std::collections::BTreeSet;

/// Rows, columns and times of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowSpec {
    /// The row, or the first one.
    pub row: Bytes,
    /// For several rows: where they end, exclusive; empty is the table's end.
    pub end_row: Option<Bytes>,
    /// `family[:qualifier]`, in byte order.
    pub columns: BTreeSet<Bytes>,
    /// First time, inclusive.
    pub start_time: i64,
    /// Last time, exclusive.
    pub end_time: i64,
    /// Versions of a column.
    pub max_versions: i32,
}

impl RowSpec {
    /// From a path, whose percent signs are still encoded. `key_encoding`: how rows and columns are encoded beyond that.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(path: &str, key_encoding: Option<&str>) -> Result<RowSpec, String> {
        let mut parts = path.trim_start_matches('/').splitn(4, '/');
        let (row, end_row) = rows(parts.next().unwrap_or_default())?;
        let columns = columns(parts.next().unwrap_or_default())?;
        let (start_time, end_time) = match parts.next() {
            None | Some("") => (0, i64::MAX),
            Some(times) => self::times(times)?,
        };
        let mut spec = RowSpec { row, end_row, columns, start_time, end_time, max_versions: 1 };
        if let Some(encoding) = key_encoding {
            spec.decode_keys(encoding)?;
        }
        Ok(spec)
    }

    fn decode_keys(&mut self, encoding: &str) -> Result<(), String> {
        let decode: fn(&[u8]) -> Result<Bytes, String> = match encoding {
            "b64" | "base64" | "b64url" | "base64url" => from_base64_url,
            "b64basic" | "base64basic" => from_base64_bytes,
            other => return Err(format!("unknown key encoding '{other}'")),
        };
        self.row = decode(&self.row)?;
        self.end_row = self.end_row.as_deref().map(decode).transpose()?;
        self.columns = self.columns.iter().map(|column| decode(column)).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Whether it is one time alone that was given.
    pub fn timestamp(&self) -> Option<i64> {
        (self.start_time == 0 && self.end_time != i64::MAX).then_some(self.end_time)
    }

    /// The times as a range.
    ///
    /// # Errors
    /// They are none.
    pub fn time_range(&self) -> Result<TimeRange, String> {
        time_range(self.start_time, self.end_time)
    }

    /// The columns as reads have them.
    pub fn read_columns(&self) -> Columns {
        read_columns(&self.columns)
    }
}

/// A range of times.
///
/// # Errors
/// HBase's words. Follows: `TimeRange`.
pub fn time_range(min: i64, max: i64) -> Result<TimeRange, String> {
    if min < 0 || max < 0 {
        return Err(format!("Timestamp cannot be negative. minStamp:{min}, maxStamp:{max}"));
    }
    if max < min {
        return Err("maxStamp is smaller than minStamp".to_owned());
    }
    Ok(TimeRange { min, max })
}

/// Columns as reads have them: a family alone wins over its qualifiers where it comes later.
pub fn read_columns<'a>(columns: impl IntoIterator<Item = &'a Bytes>) -> Columns {
    let mut read = Columns::new();
    for column in columns {
        let (family, qualifier) = column_of(column);
        let family = Bytes::copy_from_slice(family);
        match qualifier {
            None => drop(read.insert(family, Vec::new())),
            Some(qualifier) => {
                let known = read.contains_key(&family);
                let qualifiers = read.entry(family).or_default();
                // An entry without qualifiers is the whole family.
                if !known || !qualifiers.is_empty() {
                    qualifiers.push(Bytes::copy_from_slice(qualifier));
                }
            }
        }
    }
    for qualifiers in read.values_mut() {
        qualifiers.sort();
        qualifiers.dedup();
    }
    read
}

fn rows(part: &str) -> Result<(Bytes, Option<Bytes>), String> {
    let (start, end) = match part.split_once(',') {
        Some((start, end)) => (percent_decoded(start, true)?, Some(percent_decoded(end, true)?)),
        None => (percent_decoded(part, true)?, None),
    };
    if start.is_empty() {
        return Err("invalid path: no row".to_owned());
    }
    let Some(prefix) = start.strip_suffix('*') else {
        return Ok((Bytes::from(start), end.map(Bytes::from)));
    };
    if end.is_some() {
        return Err("invalid path: start row specified with wildcard".to_owned());
    }
    let mut end = prefix.as_bytes().to_vec();
    end.push(0xff);
    Ok((Bytes::copy_from_slice(prefix.as_bytes()), Some(Bytes::from(end))))
}

fn columns(part: &str) -> Result<BTreeSet<Bytes>, String> {
    let mut columns = BTreeSet::new();
    let mut given = part.split(',').peekable();
    while let Some(column) = given.next() {
        // The last one may be missing.
        if column.is_empty() && given.peek().is_some() {
            return Err("invalid path: a column without a name".to_owned());
        }
        if !column.is_empty() {
            columns.insert(Bytes::from(percent_decoded(column, true)?));
        }
    }
    Ok(columns)
}

fn times(part: &str) -> Result<(i64, i64), String> {
    let number = |text: &str| -> Result<i64, String> {
        percent_decoded(text, true)?.parse().map_err(|_| format!("For input string: {text:?}: a timestamp is a number"))
    };
    match part.split_once(',') {
        None => Ok((0, number(part)?)),
        Some((from, to)) => match (number(from)?, number(to)?) {
            (only, 0) => Ok((0, only)),
            (from, to) => Ok((from, to)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(path: &str) -> RowSpec {
        RowSpec::parse(path, None).expect("legal")
    }

    fn columns_of(spec: &RowSpec) -> Vec<&[u8]> {
        spec.columns.iter().map(|column| &column[..]).collect()
    }

    #[test]
    fn rows_columns_and_times_are_read() {
        let all = spec("r%2F1/f:a,f:b,g/5,9");
        assert_eq!((&all.row[..], &all.end_row), (&b"r/1"[..], &None));
        assert_eq!(columns_of(&all), [&b"f:a"[..], b"f:b", b"g"]);
        assert_eq!((all.start_time, all.end_time, all.timestamp()), (5, 9, None));
        assert_eq!(spec("r/f:a/7").timestamp(), Some(7));
        assert_eq!(spec("r//7").timestamp(), Some(7));
        assert_eq!((spec("r").end_time, spec("r/").end_time), (i64::MAX, i64::MAX));
        assert_eq!(columns_of(&spec("r/f:a,")), [&b"f:a"[..]]);
    }

    #[test]
    fn globs_and_ranges_are_several_rows() {
        assert_eq!(spec("ab*/f").end_row.as_deref(), Some(&b"ab\xff"[..]));
        assert_eq!(spec("a,c").end_row.as_deref(), Some(&b"c"[..]));
        assert_eq!(spec("a,").end_row.as_deref(), Some(&b""[..]));
    }

    #[test]
    fn keys_may_be_in_base64() {
        let spec = RowSpec::parse("_w==/Zjpx", Some("b64url")).expect("legal");
        assert_eq!((&spec.row[..], columns_of(&spec)), (&b"\xff"[..], vec![&b"f:q"[..]]));
        assert_eq!(&RowSpec::parse("w%2F8=", Some("b64basic")).expect("legal").row[..], b"\xc3\xff");
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for path in ["", "a*,b", "r/,f", "r/f/x", "r/f/1,y", "r%zz"] {
            assert!(RowSpec::parse(path, None).is_err(), "{path}");
        }
        assert!(RowSpec::parse("r", Some("hex")).is_err());
        assert!(RowSpec::parse("r!", Some("b64")).is_err());
    }

    #[test]
    fn a_family_alone_wins_over_its_qualifiers() {
        let read = read_columns(&[Bytes::from("f"), Bytes::from("f:a"), Bytes::from("g:b")]);
        assert_eq!(read.get(&b"f"[..]), Some(&Vec::new()));
        assert_eq!(read.get(&b"g"[..]), Some(&vec![Bytes::from("b")]));
    }
}
