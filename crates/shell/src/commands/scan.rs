//! `scan` and `count`, and the scans that other commands make. Follows: `Table#_hash_to_scan`, `#_scan_internal`, `#_count_internal`.

use std::sync::Arc;

use bytes::Bytes;
use client::{ScanOptions, Scanner};
use filter::Filter;
use model::Scan;

use super::Arguments;
use super::arguments::Options;
use super::read::{self, Columns, Shown};
use crate::evaluator::Shell;
use crate::failure::{Flow, Result};
use crate::value::Value;

/// A scan as a hash describes it.
struct Described {
    scan: Scan,
    options: ScanOptions,
    shown: Shown,
    /// Metrics that are wanted; none of them for all.
    metrics: Vec<String>,
}

/// The first row behind all that begin with `prefix`; empty where there is none.
pub(super) fn after_prefix(prefix: &[u8]) -> Bytes {
    match prefix.iter().rposition(|byte| *byte != 0xFF) {
        Some(at) => {
            let mut stop = prefix[..=at].to_vec();
            stop[at] += 1;
            stop.into()
        }
        None => Bytes::new(),
    }
}

fn described(mut options: Options, defaults: ScanOptions) -> Result<Described> {
    read::refuse(&options, &["AUTHORIZATIONS"])?;
    let mut columns = Columns::take(&mut options)?;
    let shown = Shown::take(&mut options, &mut columns)?;
    let mut scan = Scan {
        columns: columns.wanted,
        start_row: options.take_bytes("STARTROW").unwrap_or_default(),
        stop_row: options.take_bytes("STOPROW").unwrap_or_default(),
        filter: read::filter(&mut options)?,
        cache_blocks: options.take_truth("CACHE_BLOCKS").unwrap_or(true),
        reversed: options.take_truth("REVERSED").unwrap_or(false),
        raw: options.take_truth("RAW").unwrap_or(false),
        max_versions: number(&mut options, "VERSIONS")?.unwrap_or(1),
        batch: number(&mut options, "BATCH")?,
        allow_partial_results: options.take_truth("ALLOW_PARTIAL_RESULTS").unwrap_or(false),
        timeline: read::timeline(&mut options)?,
        attributes: read::attributes(&mut options)?,
        ..Scan::default()
    };
    if let Some(prefix) = options.take_bytes("ROWPREFIXFILTER") {
        let after = after_prefix(&prefix);
        (scan.start_row, scan.stop_row) = if scan.reversed { (after, prefix) } else { (prefix, after) };
        (scan.include_start_row, scan.include_stop_row) = (!scan.reversed, scan.reversed);
    }
    if let Some(range) = read::time_range(&mut options)? {
        scan.time_range = range;
    }
    match options.take_text("ISOLATION_LEVEL").as_deref() {
        None | Some("READ_COMMITTED") => {}
        Some("READ_UNCOMMITTED") => scan.read_uncommitted = true,
        Some(other) => return Err(Flow::argument(format!("ISOLATION_LEVEL {other} is not known"))),
    }
    match options.take_text("READ_TYPE").as_deref() {
        None | Some("DEFAULT" | "STREAM") => {}
        Some("PREAD") => scan.pread = true,
        Some(other) => return Err(Flow::argument(format!("READ_TYPE {other} is not known"))),
    }
    if let Some(bytes) = options.take_int("MAX_RESULT_SIZE")?.and_then(|bytes| u64::try_from(bytes).ok()) {
        scan.max_result_size = Some(bytes);
    }
    let all_metrics = options.take_truth("ALL_METRICS").unwrap_or(false);
    let metrics = options.take_texts("METRICS").unwrap_or_default();
    let travels = ScanOptions {
        caching: number(&mut options, "CACHE")?.unwrap_or(defaults.caching),
        limit: options.take_int("LIMIT")?.and_then(|limit| u64::try_from(limit).ok()).filter(|limit| *limit > 0),
        metrics: all_metrics || !metrics.is_empty(),
        replica_id: read::replica_id(&mut options)?,
        ..defaults
    };
    Ok(Described { scan, options: travels, shown, metrics })
}

/// An option that is a positive number.
fn number(options: &mut Options, name: &str) -> Result<Option<u32>> {
    Ok(options.take_int(name)?.filter(|number| *number > 0).map(|number| u32::try_from(number).unwrap_or(u32::MAX)))
}

fn check_names(options: &Options) -> Result<()> {
    const KNOWN: &[&str] = &[
        "ALLOW_PARTIAL_RESULTS",
        "ALL_METRICS",
        "ATTRIBUTES",
        "AUTHORIZATIONS",
        "BATCH",
        "CACHE",
        "CACHE_BLOCKS",
        "COLUMN",
        "COLUMNS",
        "CONSISTENCY",
        "FILTER",
        "FORMATTER",
        "FORMATTER_CLASS",
        "INTERVAL",
        "ISOLATION_LEVEL",
        "LIMIT",
        "MAXLENGTH",
        "MAX_RESULT_SIZE",
        "METRICS",
        "RAW",
        "READ_TYPE",
        "REGION_REPLICA_ID",
        "REVERSED",
        "ROWPREFIXFILTER",
        "STARTROW",
        "STOPROW",
        "TIMERANGE",
        "TIMESTAMP",
        "VERSIONS",
    ];
    match options.rest().iter().find(|(key, _)| !KNOWN.contains(&key.to_text().as_str())) {
        Some((key, _)) => Err(Flow::argument(format!("Failed parse of {}: a scan has no such option", key.inspect()))),
        None => Ok(()),
    }
}

pub(super) fn scan(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.table(0)?;
    shell.session.output.header(&["ROW", "COLUMN+CELL"])?;
    let options = arguments.hash(1)?;
    check_names(&options)?;
    let table = shell.session.table(&name);
    let Described { scan, options, shown, metrics } = described(options, table.scan_options())?;
    let mut scanner = shell.session.within(|| table.scan(scan, options.clone()));
    let (mut count, mut stale) = (0, false);
    while let Some(row) = shell.session.wait(scanner.next())? {
        count += 1;
        stale |= row.is_stale();
        let key = shown.bytes(row.row());
        for cell in &row {
            let text = format!("column={}, {}", shown.column(cell), shown.cell(cell, name.is_meta()));
            shell.session.output.row(&[&key, &text])?;
        }
    }
    shell.session.output.footer(Some(count))?;
    if stale {
        shell.session.output.line(" (possible stale results) ")?;
    }
    if options.metrics {
        show_metrics(shell, &scanner, &metrics)?;
    }
    Ok(Value::Nil)
}

fn show_metrics(shell: &mut Shell, scanner: &Scanner, wanted: &[String]) -> Result<()> {
    let output = &mut shell.session.output;
    output.line("")?;
    output.header(&["METRIC", "VALUE"])?;
    let Some(metrics) = scanner.metrics() else { return Ok(()) };
    let own = [
        ("BYTES_IN_RESULTS", metrics.bytes_in_results),
        ("NOT_SERVING_REGION_EXCEPTION", metrics.not_serving_region),
        ("REGIONS_SCANNED", metrics.regions_scanned),
        ("RPC_CALLS", metrics.rpc_calls),
        ("RPC_RETRIES", metrics.rpc_retries),
    ];
    let own = own.into_iter().map(|(name, value)| (name.to_owned(), value.to_string()));
    let servers = metrics.server.iter().map(|(name, value)| (name.clone(), value.to_string()));
    let mut pairs: Vec<(String, String)> = own.chain(servers).collect();
    pairs.sort();
    for (name, value) in pairs {
        if wanted.is_empty() || wanted.contains(&name) {
            output.row(&[&name, &value])?;
        }
    }
    Ok(())
}

pub(super) fn count(shell: &mut Shell, arguments: &Arguments) -> Result {
    let name = arguments.table(0)?;
    let mut options = match arguments.get(1) {
        Some(Value::Int(interval)) => {
            let mut pairs = crate::value::Pairs::default();
            pairs.set(Value::text("INTERVAL"), Value::Int(*interval));
            Options::of(Some(&Value::hash(pairs)))?
        }
        other => Options::of(other)?,
    };
    check_names(&options)?;
    let interval = options.take_int("INTERVAL")?.and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0).unwrap_or(1000);
    let cache_blocks = options.take_truth("CACHE_BLOCKS").unwrap_or(false);
    let table = shell.session.table(&name);
    let described = described(options, table.scan_options())?;
    let mut scan = described.scan;
    scan.cache_blocks = cache_blocks;
    scan.filter = Some(Arc::new(match scan.filter {
        None => Filter::FirstKeyOnly,
        Some(filter) => Filter::all_of(vec![(*filter).clone(), Filter::FirstKeyOnly]),
    }));
    let mut scanner = shell.session.within(|| table.scan(scan, described.options));
    shell.session.output.header(&[])?;
    let mut count: u64 = 0;
    while let Some(row) = shell.session.wait(scanner.next())? {
        count += 1;
        if count.is_multiple_of(interval) {
            let key = cell::print::to_string_binary(row.row());
            shell.session.output.row(&[&format!("Current count: {count}, row: {key}")])?;
        }
    }
    shell.session.output.footer(Some(count))?;
    Ok(Value::Int(count as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_where_hbases_does() {
        assert_eq!(&after_prefix(b"ab")[..], b"ac");
        assert_eq!(&after_prefix(b"a\xFF")[..], b"b");
        assert_eq!(&after_prefix(b"\xFF\xFF")[..], b"");
    }
}
