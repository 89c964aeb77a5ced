//! `basalt cellcounter`. Follows: `CellCounter`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufWriter, Write};
use std::process::ExitCode;

use anyhow::{Context, bail};
use base::Config;
use cell::print::to_string_binary;
use serde_json::json;

use super::{Work, defines, helped, on_cluster, scan, table_name};
use crate::arguments::{self, Known, flag, valued};
use crate::files;

const USAGE: &str = "\
Counts a table's rows, families, qualifiers, versions and bytes.

Usage: basalt cellcounter [-D KEY=VALUE]... TABLE [OUTPUT [SEPARATOR [^REGEX or PREFIX]]] [OPTIONS]

    OUTPUT           a directory that must not be there: counts go to part-r-00000 in it; standard output where there is none
    SEPARATOR        between row, family and qualifier; : unless given
    --starttime=MS   only cells from this time on
    --endtime=MS     only cells before this time
    --no-rows        no counts by row and qualifier, whose number is that of the table's columns
    --json           one JSON object
    --help           this text

Examples:
  basalt cellcounter t
  basalt cellcounter t counts : ^row-1
  basalt cellcounter -D hbase.mapreduce.scan.maxversions=100 t --no-rows --json
";

const KNOWN: &[Known] = &[valued("", "starttime"), valued("", "endtime"), flag("", "no-rows"), flag("", "json")];
/// Names that are counted at most: each takes memory.
const MOST_NAMES: usize = 10_000_000;

#[derive(Default)]
struct Counted {
    rows: u64,
    cells: u64,
    bytes: u64,
    families: BTreeSet<String>,
    counts: BTreeMap<String, u64>,
}

impl Counted {
    fn add(&mut self, name: String, count: u64) -> anyhow::Result<()> {
        if self.counts.len() >= MOST_NAMES && !self.counts.contains_key(&name) {
            bail!(
                "more than {MOST_NAMES} names to count: --no-rows leaves out those of rows, or fewer rows are chosen"
            );
        }
        *self.counts.entry(name).or_default() += count;
        Ok(())
    }

    fn row(&mut self, row: &client::Row, separator: &str, with_rows: bool) -> anyhow::Result<()> {
        self.rows += 1;
        self.add("Total ROWS".to_owned(), 1)?;
        let key = to_string_binary(row.row());
        let (mut family, mut qualifier): (Option<&[u8]>, Option<&[u8]>) = (None, None);
        let (mut family_name, mut column) = (String::new(), String::new());
        for cell in row {
            let bytes = cell.bytes().len() as u64;
            self.cells += 1;
            self.bytes += bytes;
            self.add("Total SIZE".to_owned(), bytes)?;
            if family != Some(cell.family()) {
                (family, qualifier) = (Some(cell.family()), None);
                family_name = to_string_binary(cell.family());
                self.families.insert(family_name.clone());
                self.add(family_name.clone(), 1)?;
            }
            self.add(format!("{family_name}_Size"), bytes)?;
            if qualifier != Some(cell.qualifier()) {
                qualifier = Some(cell.qualifier());
                column = format!("{family_name}{separator}{}", to_string_binary(cell.qualifier()));
                self.add("Total Qualifiers across all Rows".to_owned(), 1)?;
                self.add(column.clone(), 1)?;
            }
            self.add(format!("{column}_Size"), bytes)?;
            if with_rows {
                self.add(format!("{key}{separator}{column}_Versions"), 1)?;
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: Counted) -> anyhow::Result<()> {
        self.rows += other.rows;
        self.cells += other.cells;
        self.bytes += other.bytes;
        self.families.extend(other.families);
        for (name, count) in other.counts {
            self.add(name, count)?;
        }
        Ok(())
    }
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
    let parsed = arguments::parse("cellcounter", KNOWN, &rest)?;
    let name = table_name(parsed.rest.first().context("cellcounter: no table is named")?)?;
    let output = parsed.rest.get(1).map(|place| files::place(place)).transpose()?;
    if output.as_ref().is_some_and(|place| place.exists()) {
        bail!("cellcounter: {} is there already", parsed.rest[1]);
    }
    let separator = parsed.rest.get(2).cloned().unwrap_or_else(|| ":".to_owned());
    let mut wanted = scan::of_settings(&config)?;
    if wanted.max_versions == 1 && config.text("hbase.mapreduce.scan.maxversions").is_none() {
        wanted.max_versions = i32::MAX as u32;
    }
    if let Some(rows) = parsed.rest.get(3) {
        scan::also(&mut wanted, scan::row_filter(rows)?);
    }
    let (start, end) = (parsed.number("starttime")?, parsed.number("endtime")?);
    if start.is_some() || end.is_some() {
        wanted.time_range = scan::time_range(start.unwrap_or(0), end.unwrap_or(i64::MAX))?;
    }
    let (with_rows, between) = (!parsed.has("no-rows"), separator);
    let settings = config.clone();
    let counted = on_cluster(&config, |connection| async move {
        if !connection.admin().table_exists(&name).await? {
            bail!("there is no table {name}");
        }
        let work = Work::new(&settings, connection.table(&name), wanted, "cellcounter");
        let row = move |counted: &mut Counted, row: client::Row| counted.row(&row, &between, with_rows);
        let parts = work.each(|_| Ok(Counted::default()), row, Ok).await?;
        let mut sum = Counted::default();
        parts.into_iter().try_for_each(|part| sum.merge(part))?;
        // A family counts once, however many regions have it.
        let families = sum.families.len() as u64;
        sum.add("Total Families Across all Rows".to_owned(), families)?;
        Ok(sum)
    })?;
    let json = parsed.has("json");
    match output {
        None => counted.print(json, &mut BufWriter::new(std::io::stdout().lock()))?,
        Some(dir) => {
            std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
            let place = dir.join("part-r-00000");
            let file = std::fs::File::create(&place).with_context(|| format!("cannot write {}", place.display()))?;
            counted.print(json, &mut BufWriter::new(file))?;
            std::fs::write(dir.join("_SUCCESS"), b"")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Counted {
    fn print(&self, as_json: bool, out: &mut impl Write) -> std::io::Result<()> {
        if as_json {
            let counts = json!({"ROWS": self.rows, "CELLS": self.cells, "SIZE": self.bytes, "counts": self.counts});
            writeln!(out, "{counts}")?;
        } else {
            for (name, count) in &self.counts {
                writeln!(out, "{name}\t{count}")?;
            }
        }
        out.flush()
    }
}
