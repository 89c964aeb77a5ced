//! What a job reads of a table, out of settings and words of the command line. Follows: `TableInputFormat`, `ExportUtils`, `RowCounter`.

use std::sync::Arc;

use anyhow::{Context, bail};
use base::Config;
use bytes::Bytes;
use cell::print::to_bytes_binary;
use filter::{Comparator, CompareOp, Filter, RegexSpec, RowRange};
use model::{Scan, TimeRange};

/// Prefix of the settings that say what is read.
const PREFIX: &str = "hbase.mapreduce.scan";

fn text<'a>(config: &'a Config, name: &str) -> Option<&'a str> {
    let key = format!("{PREFIX}.{name}");
    config.text(&key).map(str::trim).filter(|text| !text.is_empty())
}

/// A number out of a setting.
fn number<T: std::str::FromStr>(config: &Config, name: &str) -> anyhow::Result<Option<T>> {
    let parse = |text: &str| text.parse().ok().with_context(|| format!("{PREFIX}.{name} = {text}: this is no number"));
    text(config, name).map(parse).transpose()
}

/// A number out of the command line.
pub(super) fn word<T: std::str::FromStr>(what: &str, word: &str) -> anyhow::Result<T> {
    word.trim().parse().ok().with_context(|| format!("{what} {word}: this is no number that fits"))
}

/// `f`, `f:` or `f:q`, added to what is read.
pub(super) fn add_column(scan: &mut Scan, column: &str) {
    let (family, qualifier) = column.split_once(':').unwrap_or((column, ""));
    let qualifiers = scan.columns.entry(Bytes::copy_from_slice(family.as_bytes())).or_default();
    if !qualifier.is_empty() {
        qualifiers.push(Bytes::from(to_bytes_binary(qualifier)));
        qualifiers.sort_unstable();
        qualifiers.dedup();
    }
}

/// A time range that must not be empty.
pub(super) fn time_range(start: i64, end: i64) -> anyhow::Result<TimeRange> {
    if start < 0 || end <= start {
        bail!("the time range [{start}, {end}) is empty: its end must be greater than its start");
    }
    Ok(TimeRange { min: start, max: end })
}

/// A scan as the settings `hbase.mapreduce.scan.*` say.
pub(super) fn of_settings(config: &Config) -> anyhow::Result<Scan> {
    let mut scan = Scan { cache_blocks: text(config, "cacheblocks") == Some("true"), ..Scan::default() };
    let row = |name: &str| text(config, name).map(|row| Bytes::from(to_bytes_binary(row))).unwrap_or_default();
    (scan.start_row, scan.stop_row) = (row("row.start"), row("row.stop"));
    for family in
        text(config, "column.family").unwrap_or_default().split(',').filter(|family| !family.trim().is_empty())
    {
        add_column(&mut scan, family.trim());
    }
    for column in text(config, "columns").unwrap_or_default().split_whitespace() {
        add_column(&mut scan, column);
    }
    if let Some(at) = number::<i64>(config, "timestamp")? {
        scan.time_range = time_range(at, at.saturating_add(1))?;
    }
    let (start, end) = (number(config, "timerange.start")?, number(config, "timerange.end")?);
    if start.is_some() || end.is_some() {
        scan.time_range = time_range(start.unwrap_or(0), end.unwrap_or(i64::MAX))?;
    }
    if let Some(versions) = number(config, "maxversions")? {
        scan.max_versions = versions;
    }
    scan.batch = number(config, "batchsize")?;
    Ok(scan)
}

/// `^regex` or a prefix of rows.
pub(super) fn row_filter(text: &str) -> anyhow::Result<Filter> {
    Ok(match text.strip_prefix('^') {
        Some(pattern) => {
            let spec = RegexSpec::of(pattern).map_err(|error| anyhow::anyhow!("^{pattern}: {error}"))?;
            Filter::Row { op: CompareOp::Equal, comparator: Some(Comparator::Regex(spec)) }
        }
        None => Filter::Prefix { prefix: Some(Bytes::from(to_bytes_binary(text))) },
    })
}

/// `start,stop;start,stop`: rows in one of these ranges, and the bounds of all of them.
pub(super) fn row_ranges(scan: &mut Scan, text: &str) -> anyhow::Result<()> {
    let mut ranges = Vec::new();
    for range in text.split(';').filter(|range| !range.is_empty()) {
        let (start, stop) = range
            .split_once(',')
            .filter(|(_, stop)| !stop.contains(','))
            .with_context(|| format!("--range={text}: a range is [start key],[end key]"))?;
        ranges.push(RowRange {
            start_row: Bytes::from(to_bytes_binary(start)),
            start_inclusive: true,
            stop_row: Bytes::from(to_bytes_binary(stop)),
            stop_inclusive: false,
        });
    }
    ranges.sort_by(|a, b| a.start_row.cmp(&b.start_row));
    let Some(first) = ranges.first() else { return Ok(()) };
    scan.start_row = first.start_row.clone();
    scan.stop_row = match ranges.iter().any(|range| range.stop_row.is_empty()) {
        true => Bytes::new(),
        false => ranges.iter().map(|range| range.stop_row.clone()).max().unwrap_or_default(),
    };
    if ranges.len() > 1 {
        let filter = Filter::MultiRowRange { ranges };
        filter.check().map_err(|error| anyhow::anyhow!("--range={text}: {error}"))?;
        also(scan, filter);
    }
    Ok(())
}

/// Adds a filter to what a scan has.
pub(super) fn also(scan: &mut Scan, filter: Filter) {
    scan.filter = Some(Arc::new(match scan.filter.take() {
        None => filter,
        Some(first) => Filter::all_of(vec![filter, (*first).clone()]),
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_say_what_is_read() {
        let mut config = Config::default();
        for (key, value) in [
            ("row.start", "a\\x00"),
            ("row.stop", "z"),
            ("column.family", "f, g"),
            ("columns", "h:q h:r"),
            ("timerange.start", "5"),
            ("maxversions", "3"),
        ] {
            config.set(format!("{PREFIX}.{key}"), value.to_owned());
        }
        let scan = of_settings(&config).expect("legal");
        assert_eq!((&scan.start_row[..], &scan.stop_row[..]), (&b"a\0"[..], &b"z"[..]));
        assert_eq!(scan.columns.len(), 3);
        assert_eq!(scan.columns[&b"h"[..]].len(), 2);
        assert_eq!((scan.time_range.min, scan.max_versions), (5, 3));
        config.set(format!("{PREFIX}.timerange.end"), "2".to_owned());
        assert!(of_settings(&config).is_err());
    }

    #[test]
    fn ranges_bound_the_scan() {
        let mut scan = Scan::default();
        row_ranges(&mut scan, "m,p;a,c").expect("legal");
        assert_eq!((&scan.start_row[..], &scan.stop_row[..]), (&b"a"[..], &b"p"[..]));
        assert!(scan.filter.is_some());
        let mut scan = Scan::default();
        row_ranges(&mut scan, "a,").expect("legal");
        assert!(scan.stop_row.is_empty() && scan.filter.is_none());
        assert!(row_ranges(&mut scan, "a").is_err());
    }
}
