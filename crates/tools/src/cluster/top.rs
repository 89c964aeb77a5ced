//! `basalt top`. Follows: `HBTop`, its modes and fields.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use base::Config;
use cell::print::to_string_binary;
use client::Connection;
use proto::pb;
use serde_json::{Map, Value, json};

use crate::arguments::{self, Known, flag, valued};
use crate::jobs::{defines, helped, on_cluster};

const USAGE: &str = "\
What a cluster is busy with: requests, sizes and files, by namespace, table, region or server.

Usage: basalt top [OPTIONS]

    -m,--mode MODE         n (namespace), t (table), r (region; the usual one), s (region server)
    -s,--sortField FIELD   a column's name; + before it for the smallest first
    -f,--fields A,B,...    only these columns
    -i,--filters F,...     only rows such as TABLE=t, NAMESPACE=ns, #REQ/S>100 (=, ==, >, >=, <, <=; = is a part of the text)
    -d,--delay SECONDS     between two looks; 3
    -n,--numberOfIterations N   looks, then it ends
    -b,--batchMode         one table below the other, for files and pipes
    -O,--outputFieldNames  names of the columns
    --json                 one JSON object for each row
    -h,--help              this text

Counts per second are those since the look before; the first look has none. Ctrl-C ends it.

Examples:
  basalt top
  basalt top -m t -s SFSIZE -n 1 -b
  basalt top -m r -i 'TABLE==users,#REQ/S>100'
  basalt top -m s --json -n 2 -d 10
";

const KNOWN: &[Known] = &[
    valued("m", "mode"),
    valued("s", "sortField"),
    valued("f", "fields"),
    valued("i", "filters"),
    valued("d", "delay"),
    valued("n", "numberOfIterations"),
    flag("b", "batchMode"),
    flag("O", "outputFieldNames"),
    flag("", "json"),
];

/// What a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Namespace,
    Table,
    Region,
    Server,
}

impl Mode {
    fn parse(text: &str) -> anyhow::Result<Mode> {
        Ok(match text {
            "n" | "namespace" => Mode::Namespace,
            "t" | "table" => Mode::Table,
            "r" | "region" => Mode::Region,
            "s" | "rs" | "region_server" | "regionserver" => Mode::Server,
            "u" | "user" | "c" | "client" => bail!("--mode {text}: servers tell nothing of users and clients here"),
            other => bail!("--mode {other}: n, t, r and s are known"),
        })
    }

    fn names(self) -> &'static [&'static str] {
        match self {
            Mode::Namespace => &["NAMESPACE"],
            Mode::Table => &["NAMESPACE", "TABLE"],
            Mode::Region => &["RNAME", "NAMESPACE", "TABLE", "STARTKEY", "REGION", "RS"],
            Mode::Server => &["RS"],
        }
    }
}

/// Columns of numbers.
const NUMBERS: &[&str] = &[
    "#REGION",
    "#REQ/S",
    "#READ/S",
    "#WRITE/S",
    "#FREAD/S",
    "SF",
    "#SF",
    "SFSIZE",
    "USFSIZE",
    "#MEMSTORE",
    "MEMSTORE",
    "LOCALITY",
];

/// The numbers of one row.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Numbers {
    regions: u64,
    reads: u64,
    writes: u64,
    filtered: u64,
    stores: u64,
    files: u64,
    file_mb: u64,
    uncompressed_mb: u64,
    memstore_mb: u64,
    locality: f64,
}

impl Numbers {
    fn of(load: &pb::RegionLoad) -> Numbers {
        Numbers {
            regions: 1,
            reads: load.read_requests_count(),
            writes: load.write_requests_count(),
            filtered: load.filtered_read_requests_count(),
            stores: load.stores().into(),
            files: load.storefiles().into(),
            file_mb: load.storefile_size_mb().into(),
            uncompressed_mb: load.store_uncompressed_size_mb().into(),
            memstore_mb: load.mem_store_size_mb().into(),
            locality: load.data_locality().into(),
        }
    }

    fn add(&mut self, other: Numbers) {
        self.regions += other.regions;
        self.reads += other.reads;
        self.writes += other.writes;
        self.filtered += other.filtered;
        self.stores += other.stores;
        self.files += other.files;
        self.file_mb += other.file_mb;
        self.uncompressed_mb += other.uncompressed_mb;
        self.memstore_mb += other.memstore_mb;
        self.locality += other.locality;
    }

    /// The column of this name; those per second by what was there `seconds` before.
    fn value(&self, name: &str, before: Option<(&Numbers, f64)>) -> f64 {
        let rate = |now: u64, then: fn(&Numbers) -> u64| match before {
            Some((before, seconds)) => now.saturating_sub(then(before)) as f64 / seconds.max(0.001),
            None => 0.0,
        };
        let (reads, writes) = (rate(self.reads, |n| n.reads), rate(self.writes, |n| n.writes));
        match name {
            "#REGION" => self.regions as f64,
            "#REQ/S" => (reads + writes).round(),
            "#READ/S" => reads.round(),
            "#WRITE/S" => writes.round(),
            "#FREAD/S" => rate(self.filtered, |n| n.filtered).round(),
            "SF" | "#SF" => self.files as f64,
            "SFSIZE" => self.file_mb as f64,
            "USFSIZE" => self.uncompressed_mb as f64,
            "#MEMSTORE" => self.stores as f64,
            "MEMSTORE" => self.memstore_mb as f64,
            _ => self.locality / self.regions.max(1) as f64,
        }
    }
}

/// A row: its names, and its numbers.
struct Line {
    names: Vec<String>,
    numbers: Vec<(&'static str, f64)>,
}

impl Line {
    fn text(&self, mode: Mode, column: &str) -> Option<String> {
        if let Some(at) = mode.names().iter().position(|name| *name == column) {
            return self.names.get(at).cloned();
        }
        let (name, value) = self.numbers.iter().find(|(name, _)| *name == column)?;
        Some(match *name {
            "SFSIZE" | "USFSIZE" | "MEMSTORE" => format!("{value:.0} MB"),
            "LOCALITY" => format!("{value:.3}"),
            _ => format!("{value:.0}"),
        })
    }

    fn number(&self, column: &str) -> Option<f64> {
        self.numbers.iter().find(|(name, _)| *name == column).map(|(_, value)| *value)
    }
}

/// A condition on a row.
#[derive(Debug, Clone, PartialEq)]
struct Condition {
    column: String,
    operator: &'static str,
    value: String,
}

impl Condition {
    fn parse(text: &str) -> anyhow::Result<Condition> {
        for operator in [">=", "<=", "==", ">", "<", "="] {
            if let Some((column, value)) = text.split_once(operator) {
                let column = column.trim().to_uppercase();
                return Ok(Condition { column, operator, value: value.trim().to_owned() });
            }
        }
        bail!("--filters {text}: a filter is a column, one of = == > >= < <=, and a value")
    }

    fn holds(&self, mode: Mode, line: &Line) -> bool {
        if let (Some(number), Ok(wanted)) = (line.number(&self.column), self.value.parse::<f64>()) {
            let order = number.partial_cmp(&wanted);
            return match self.operator {
                ">" => order == Some(Ordering::Greater),
                ">=" => order.is_some_and(Ordering::is_ge),
                "<" => order == Some(Ordering::Less),
                "<=" => order.is_some_and(Ordering::is_le),
                _ => order == Some(Ordering::Equal),
            };
        }
        let Some(text) = line.text(mode, &self.column) else { return false };
        match self.operator {
            "=" => text.contains(&self.value),
            "==" => text == self.value,
            ">" => text > self.value,
            ">=" => text >= self.value,
            "<" => text < self.value,
            _ => text <= self.value,
        }
    }
}

struct Asked {
    mode: Mode,
    sort: String,
    ascending: bool,
    columns: Vec<String>,
    conditions: Vec<Condition>,
    delay: Duration,
    looks: Option<u64>,
    json: bool,
    batch: bool,
}

/// Rows by their names.
type Rows = BTreeMap<Vec<String>, Numbers>;

async fn look(connection: &Connection, mode: Mode) -> anyhow::Result<Rows> {
    let status = connection.admin().cluster_status_of(&[pb::Option::LiveServers]).await?;
    let mut rows = Rows::new();
    for live in &status.live_servers {
        let server = convert::from_proto::server_name(&live.server).map_err(|error| anyhow::anyhow!("{error}"))?;
        for load in &live.server_load.region_loads {
            let names = names(mode, &load.region_specifier.value, &server.to_string());
            rows.entry(names).or_default().add(Numbers::of(load));
        }
    }
    Ok(rows)
}

/// The names of the row that a region counts to; `region` is its whole name.
fn names(mode: Mode, region: &[u8], server: &str) -> Vec<String> {
    let mut parts = region.splitn(2, |byte| *byte == b',');
    let table = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let rest = parts.next().unwrap_or_default();
    let (namespace, table) = match table.split_once(':') {
        Some((namespace, table)) => (namespace.to_owned(), table.to_owned()),
        None => ("default".to_owned(), table),
    };
    match mode {
        Mode::Namespace => vec![namespace],
        Mode::Table => vec![namespace, table],
        Mode::Server => vec![server.to_owned()],
        Mode::Region => {
            let start = rest.iter().rposition(|byte| *byte == b',').map_or(rest, |at| &rest[..at]);
            let whole = to_string_binary(region);
            let encoded = whole.trim_end_matches('.').rsplit('.').next().unwrap_or_default().to_owned();
            vec![whole, namespace, table, to_string_binary(start), encoded, server.to_owned()]
        }
    }
}

impl Asked {
    fn lines(&self, now: &Rows, before: Option<(&Rows, f64)>) -> Vec<Line> {
        let mut lines: Vec<Line> = now
            .iter()
            .map(|(names, numbers)| {
                let then = before.and_then(|(rows, seconds)| rows.get(names).map(|then| (then, seconds)));
                let values = NUMBERS.iter().map(|name| (*name, numbers.value(name, then)));
                Line { names: names.clone(), numbers: values.collect() }
            })
            .filter(|line| self.conditions.iter().all(|condition| condition.holds(self.mode, line)))
            .collect();
        lines.sort_by(|a, b| {
            let order = match (a.number(&self.sort), b.number(&self.sort)) {
                (Some(a), Some(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
                _ => a.text(self.mode, &self.sort).cmp(&b.text(self.mode, &self.sort)),
            };
            if self.ascending { order } else { order.reverse() }
        });
        lines
    }

    fn print(&self, lines: &[Line], out: &mut impl Write) -> std::io::Result<()> {
        if self.json {
            for line in lines {
                let object: Map<String, Value> = self
                    .columns
                    .iter()
                    .map(|column| {
                        let value =
                            line.number(column).map_or_else(|| json!(line.text(self.mode, column)), |n| json!(n));
                        (column.clone(), value)
                    })
                    .collect();
                writeln!(out, "{}", Value::Object(object))?;
            }
            return out.flush();
        }
        let rows: Vec<Vec<String>> = lines
            .iter()
            .map(|line| self.columns.iter().map(|column| line.text(self.mode, column).unwrap_or_default()).collect())
            .collect();
        let width = |i: usize| {
            rows.iter().map(|row| row[i].chars().count()).chain([self.columns[i].chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        for row in std::iter::once(&self.columns).chain(&rows) {
            let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            writeln!(out, "{}", cells.join(" ").trim_end())?;
        }
        out.flush()
    }
}

fn asked(parsed: &arguments::Parsed) -> anyhow::Result<Asked> {
    let mode = parsed.value("mode").map_or(Ok(Mode::Region), Mode::parse)?;
    let all: Vec<&str> = mode.names().iter().chain(NUMBERS).copied().filter(|name| *name != "SF").collect();
    let known = |name: &str| {
        let name = name.trim().to_uppercase();
        let is_known = all.contains(&name.as_str());
        if is_known { Ok(name) } else { Err(anyhow::anyhow!("{name} is no column here: {} are", all.join(", "))) }
    };
    let usual = |name: &&str| !matches!(*name, "RNAME" | "#REGION") || (*name == "#REGION" && mode != Mode::Region);
    let columns = match parsed.value("fields") {
        Some(fields) => fields.split(',').map(known).collect::<anyhow::Result<_>>()?,
        None => all.iter().filter(|name| usual(name)).map(|name| (*name).to_owned()).collect(),
    };
    let sort = parsed.value("sortField").unwrap_or("#REQ/S");
    let filters = parsed.value("filters").unwrap_or_default().split(',').filter(|text| !text.is_empty());
    Ok(Asked {
        mode,
        ascending: sort.starts_with('+'),
        sort: known(sort.trim_start_matches('+'))?,
        columns,
        conditions: filters.map(Condition::parse).collect::<anyhow::Result<_>>()?,
        delay: Duration::from_secs_f64(parsed.number("delay")?.filter(|s| (0.0..=86_400.0).contains(s)).unwrap_or(3.0)),
        looks: parsed.number("numberOfIterations")?,
        json: parsed.has("json"),
        batch: parsed.has("batchMode") || parsed.has("json") || !std::io::stdout().is_terminal(),
    })
}

/// Runs the tool; the code that the process ends with.
///
/// # Errors
/// The arguments make no sense, or the cluster cannot be reached.
pub fn run(config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(code) = helped(USAGE, given).filter(|_| !given.is_empty()) {
        return Ok(code);
    }
    let (config, rest) = defines(config, given)?;
    let parsed = arguments::parse("top", KNOWN, &rest)?;
    let asked = asked(&parsed)?;
    if parsed.has("outputFieldNames") {
        asked.columns.iter().for_each(|column| println!("{column}"));
        return Ok(ExitCode::SUCCESS);
    }
    on_cluster(&config, |connection| async move {
        let mut before: Option<(Rows, std::time::Instant)> = None;
        let mut looks = 0;
        loop {
            let now = look(&connection, asked.mode).await.context("cannot ask the master")?;
            let at = std::time::Instant::now();
            let then = before.as_ref().map(|(rows, then)| (rows, at.duration_since(*then).as_secs_f64()));
            let lines = asked.lines(&now, then);
            let mut out = std::io::stdout().lock();
            if !asked.batch {
                // Clears the screen.
                write!(out, "\u{1B}[2J\u{1B}[H")?;
            }
            asked.print(&lines, &mut out)?;
            drop(out);
            looks += 1;
            if asked.looks.is_some_and(|wanted| looks >= wanted) {
                return Ok(());
            }
            before = Some((now, at));
            tokio::time::sleep(asked.delay).await;
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_count_to_the_rows_of_their_mode() {
        let region = b"ns:t,a,b,1700000000000.0123456789abcdef0123456789abcdef.";
        assert_eq!(names(Mode::Namespace, region, "s"), ["ns"]);
        assert_eq!(names(Mode::Table, b"t,,1.x.", "s"), ["default", "t"]);
        let names = names(Mode::Region, region, "s");
        assert_eq!(names[1..], ["ns", "t", "a,b", "0123456789abcdef0123456789abcdef", "s"]);
    }

    #[test]
    fn rows_are_filtered_sorted_and_counted_per_second() {
        let words: Vec<String> =
            ["-m", "t", "-s", "+#REQ/S", "-i", "NAMESPACE==default,#REQ/S>=10", "-f", "TABLE,#REQ/S"]
                .iter()
                .map(|word| (*word).to_owned())
                .collect();
        let asked = asked(&arguments::parse("top", KNOWN, &words).expect("legal")).expect("legal");
        let rows = |reads: [u64; 3]| -> Rows {
            let names = [["default", "a"], ["default", "b"], ["other", "c"]];
            let names = names.map(|pair| pair.map(str::to_owned).to_vec());
            names.into_iter().zip(reads).map(|(n, reads)| (n, Numbers { reads, ..Numbers::default() })).collect()
        };
        let (before, now) = (rows([0, 0, 0]), rows([200, 100, 500]));
        let mut out = Vec::new();
        asked.print(&asked.lines(&now, Some((&before, 10.0))), &mut out).expect("written");
        assert_eq!(String::from_utf8(out).expect("UTF-8"), "TABLE #REQ/S\nb     10\na     20\n");
        assert!(Condition::parse("nonsense").is_err() && Mode::parse("x").is_err());
    }
}
