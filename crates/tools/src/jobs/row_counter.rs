//! `basalt rowcounter`. Follows: `RowCounter`.

use std::process::ExitCode;

use anyhow::{Context, bail};
use base::Config;
use filter::Filter;
use serde_json::json;

use super::{Work, defines, helped, on_cluster, scan, table_name};
use crate::arguments::{self, Known, flag, valued};

const USAGE: &str = "\
Counts a table's rows, region by region, several at a time.

Usage: basalt rowcounter [-D KEY=VALUE]... TABLE [OPTIONS] [COLUMN]...

    --starttime=MS          only cells from this time on
    --endtime=MS            only cells before this time
    --range=START,END[;..]  only these rows (bytes as \\xNN)
    --countDeleteMarkers    counts markers of deleted families, columns and versions, too
    --expected-count=N      ends with 1 where there are other than so many rows
    --json                  one JSON object
    --help                  this text

COLUMN is a family, or family:qualifier. How many regions are read at the same time, -D basalt.tools.parallel says.

Examples:
  basalt rowcounter t
  basalt rowcounter t f:q --starttime=1700000000000 --range=a,m
  basalt rowcounter -D hbase.zookeeper.quorum=zk1 t --expected-count=1000000
";

const KNOWN: &[Known] = &[
    valued("", "starttime"),
    valued("", "endtime"),
    valued("", "range"),
    valued("expectedCount", "expected-count"),
    flag("", "countDeleteMarkers"),
    flag("", "json"),
];

/// What is counted of a part.
#[derive(Default)]
struct Counted {
    rows: u64,
    families: u64,
    family_versions: u64,
    columns: u64,
    versions: u64,
    with_markers: u64,
}

/// Runs the tool; the code that the process ends with.
///
/// # Errors
/// The arguments make no sense, or the table cannot be read.
pub fn run(config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(code) = helped(USAGE, given) {
        return Ok(code);
    }
    let (config, rest) = defines(config, given)?;
    let parsed = arguments::parse("rowcounter", KNOWN, &rest)?;
    let (table, columns) = parsed.rest.split_first().context("rowcounter: no table is named")?;
    let mut wanted = scan::of_settings(&config)?;
    columns.iter().for_each(|column| scan::add_column(&mut wanted, column));
    let markers = parsed.has("countDeleteMarkers");
    wanted.raw = markers;
    if !markers && columns.len() <= 1 && wanted.columns.values().all(|q| q.len() <= 1) {
        // One cell says that there is a row.
        wanted.filter = Some(std::sync::Arc::new(Filter::FirstKeyOnly));
    }
    if let Some(ranges) = parsed.value("range") {
        scan::row_ranges(&mut wanted, ranges)?;
    }
    let (start, end) = (parsed.number("starttime")?, parsed.number("endtime")?);
    if start.is_some() || end.is_some() {
        wanted.time_range = scan::time_range(start.unwrap_or(0), end.filter(|end| *end != 0).unwrap_or(i64::MAX))?;
    }
    let expected: Option<u64> = parsed.number("expected-count")?;
    let name = table_name(table)?;
    let settings = config.clone();
    let counted = on_cluster(&config, |connection| async move {
        if !connection.admin().table_exists(&name).await? {
            bail!("there is no table {name}");
        }
        let work = Work::new(&settings, connection.table(&name), wanted, "rowcounter");
        let parts = work.each(
            |_| Ok(Counted::default()),
            |counted, row| {
                counted.add(&row);
                Ok(())
            },
            Ok,
        );
        Ok(parts.await?.into_iter().fold(Counted::default(), Counted::plus))
    })?;
    counted.print(markers, parsed.has("json"));
    let is_other = expected.is_some_and(|expected| expected != counted.rows);
    if is_other {
        eprintln!("basalt: rowcounter: {} rows instead of {}", counted.rows, expected.unwrap_or_default());
    }
    Ok(ExitCode::from(u8::from(is_other)))
}

impl Counted {
    fn add(&mut self, row: &client::Row) {
        self.rows += 1;
        let mut marked = false;
        for cell in row {
            let count = match cell::CellType::from_code(cell.type_code()) {
                Some(cell::CellType::DeleteFamily) => &mut self.families,
                Some(cell::CellType::DeleteFamilyVersion) => &mut self.family_versions,
                Some(cell::CellType::DeleteColumn) => &mut self.columns,
                Some(cell::CellType::Delete) => &mut self.versions,
                _ => continue,
            };
            *count += 1;
            marked = true;
        }
        self.with_markers += u64::from(marked);
    }

    fn plus(self, other: Counted) -> Counted {
        Counted {
            rows: self.rows + other.rows,
            families: self.families + other.families,
            family_versions: self.family_versions + other.family_versions,
            columns: self.columns + other.columns,
            versions: self.versions + other.versions,
            with_markers: self.with_markers + other.with_markers,
        }
    }

    fn print(&self, markers: bool, as_json: bool) {
        if as_json {
            let mut object = json!({"ROWS": self.rows});
            if markers {
                object["DELETE"] = json!(self.versions);
                object["DELETE_COLUMN"] = json!(self.columns);
                object["DELETE_FAMILY"] = json!(self.families);
                object["DELETE_FAMILY_VERSION"] = json!(self.family_versions);
                object["ROWS_WITH_DELETE_MARKER"] = json!(self.with_markers);
            }
            println!("{object}");
            return;
        }
        println!("\torg.apache.hadoop.hbase.mapreduce.RowCounter$RowCounterMapper$Counters");
        if markers {
            println!("\t\tDELETE={}\n\t\tDELETE_COLUMN={}", self.versions, self.columns);
            println!("\t\tDELETE_FAMILY={}\n\t\tDELETE_FAMILY_VERSION={}", self.families, self.family_versions);
        }
        println!("\t\tROWS={}", self.rows);
        if markers {
            println!("\t\tROWS_WITH_DELETE_MARKER={}", self.with_markers);
        }
    }
}
