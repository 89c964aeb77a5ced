//! `basalt importtsv`. Follows: `ImportTsv`, `TsvImporterMapper`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use base::Config;
use client::Put;
use model::{FamilyDescriptor, Mutation, TableDescriptor};
use serde_json::json;
use tokio::task::JoinSet;

use super::hfile_output::HFileOutput;
use super::threads::{Bringer, bringing, read_and_written};
use super::{defines, helped, on_cluster, parallel, table_name};
use crate::arguments::{self, Known, flag};
use crate::files;

const USAGE: &str = "\
Writes lines of files, whose columns a character parts, into a table.

Usage: basalt importtsv -D importtsv.columns=COLUMNS [-D KEY=VALUE]... TABLE FILE... [OPTIONS]

    FILE      a file, a directory of files, or - for standard input
    --json    one JSON object
    --help    this text

COLUMNS names each column of a line, parted by commas: HBASE_ROW_KEY once, family or family:qualifier, HBASE_TS_KEY for the cells' time,
HBASE_CELL_TTL for their time to live; an empty name passes a column over.

Settings:
  importtsv.separator=|            the character; a tabulator unless given
  importtsv.timestamp=MS           the cells' time; now unless given
  importtsv.skip.bad.lines=false   ends at a bad line rather than counting it
  importtsv.skip.empty.columns=true
  importtsv.log.bad.lines=true
  importtsv.dry.run=true           reads, and writes nothing
  importtsv.bulk.output=DIRECTORY  writes HFiles there, for basalt bulkload, rather than into the table
  create.table=no                  the table must be there; else it is made with the families that COLUMNS names

Files are read at the same time, basalt.tools.parallel of them. Ends with 1 where lines were bad, after the good ones were written.

Examples:
  basalt importtsv -D importtsv.columns=HBASE_ROW_KEY,f:name,f:age t people.tsv
  basalt importtsv -D importtsv.bulk.output=/out/t -D importtsv.columns=HBASE_ROW_KEY,f:name t people/ && basalt bulkload /out/t t
  basalt importtsv -D importtsv.separator=, -D importtsv.columns=HBASE_ROW_KEY,f:a,,f:c t - < data.csv
";

const KNOWN: &[Known] = &[flag("", "json")];
/// Bytes that are gathered before they are sent.
const BUFFER_BYTES: usize = 4 << 20;
/// A longer line is bad.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// What a column of a line is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Column {
    Row,
    Time,
    Ttl,
    Nothing,
    Cell { family: String, qualifier: String },
}

/// How lines are read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Lines {
    columns: Vec<Column>,
    row_at: usize,
    separator: u8,
    timestamp: Option<i64>,
    skip_empty: bool,
}

impl Lines {
    fn of(config: &Config) -> anyhow::Result<Lines> {
        let names = config.text("importtsv.columns").unwrap_or_default();
        if names.is_empty() {
            bail!("importtsv: -D importtsv.columns=HBASE_ROW_KEY,family:qualifier,... is needed");
        }
        let columns: Vec<Column> = names
            .split(',')
            .map(|name| match name.trim() {
                "HBASE_ROW_KEY" => Ok(Column::Row),
                "HBASE_TS_KEY" => Ok(Column::Time),
                "HBASE_CELL_TTL" => Ok(Column::Ttl),
                "" => Ok(Column::Nothing),
                "HBASE_ATTRIBUTES_KEY" | "HBASE_CELL_VISIBILITY" => {
                    bail!("importtsv.columns: {name} is not supported")
                }
                name => {
                    let (family, qualifier) = name.split_once(':').unwrap_or((name, ""));
                    Ok(Column::Cell { family: family.to_owned(), qualifier: qualifier.to_owned() })
                }
            })
            .collect::<anyhow::Result<_>>()?;
        let rows: Vec<usize> = (0..columns.len()).filter(|i| columns[*i] == Column::Row).collect();
        let [row_at] = rows[..] else { bail!("importtsv.columns must name HBASE_ROW_KEY exactly once") };
        if !columns.iter().any(|column| matches!(column, Column::Cell { .. })) {
            bail!("importtsv.columns names no family: one or more columns in addition to the row key are needed");
        }
        let separator = match config.text("importtsv.separator").unwrap_or("\t").as_bytes() {
            [one] => *one,
            other => bail!("importtsv.separator must be one byte, not {}", other.len()),
        };
        let timestamp = config.text("importtsv.timestamp").map(|text| super::scan::word("importtsv.timestamp", text));
        let skip_empty = config.text("importtsv.skip.empty.columns") == Some("true");
        Ok(Lines { columns, row_at, separator, timestamp: timestamp.transpose()?, skip_empty })
    }

    /// A line as a mutation; why not where it is bad.
    fn mutation(&self, line: &[u8], now_ms: i64) -> Result<Mutation, String> {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == self.separator).collect();
        if fields.len() > self.columns.len() {
            return Err("Excessive columns".to_owned());
        }
        let row = fields.get(self.row_at).filter(|row| !row.is_empty()).ok_or("No row key")?;
        if row.len() > i16::MAX as usize {
            return Err(format!("Row length {} is > {}", row.len(), i16::MAX));
        }
        if fields.len() < 2 {
            return Err("No delimiter".to_owned());
        }
        let number = |wanted: &Column, what: &str| match self.columns.iter().position(|column| column == wanted) {
            None => Ok(None),
            Some(at) => {
                let text =
                    fields.get(at).and_then(|text| std::str::from_utf8(text).ok()).ok_or(format!("No {what}"))?;
                text.trim().parse::<i64>().map(Some).map_err(|_| format!("Invalid {what}"))
            }
        };
        let at = number(&Column::Time, "timestamp")?.or(self.timestamp).unwrap_or(now_ms);
        let ttl = number(&Column::Ttl, "TTL")?;
        let mut put = Put::new(row);
        let mut cells = 0;
        for (column, field) in self.columns.iter().zip(&fields) {
            let Column::Cell { family, qualifier } = column else { continue };
            if self.skip_empty && field.is_empty() {
                continue;
            }
            put = put.add_at(family, qualifier, at, field);
            cells += 1;
        }
        if cells == 0 {
            return Err("No columns".to_owned());
        }
        Ok(if let Some(ttl) = ttl { put.ttl_ms(ttl) } else { put }.build())
    }

    fn families(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for column in &self.columns {
            if let Column::Cell { family, .. } = column
                && !names.contains(&family.as_str())
            {
                names.push(family);
            }
        }
        names
    }
}

/// Files that words of the command line name.
fn inputs(words: &[String]) -> anyhow::Result<Vec<Option<PathBuf>>> {
    let mut all = Vec::new();
    for word in words.iter().flat_map(|word| word.split(',')) {
        if word == "-" {
            all.push(None);
            continue;
        }
        let place = files::place(word)?;
        if !place.is_dir() {
            all.push(Some(place));
            continue;
        }
        let entries = std::fs::read_dir(&place).with_context(|| format!("cannot read {}", place.display()))?;
        let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
        paths.retain(|path| path.is_file());
        paths.sort();
        all.extend(paths.into_iter().map(Some));
    }
    Ok(all)
}

/// Lines that were read.
#[derive(Debug, Default, Clone, Copy)]
struct Read {
    good: u64,
    bad: u64,
}

impl Read {
    fn plus(self, other: Read) -> Read {
        Read { good: self.good + other.good, bad: self.bad + other.bad }
    }
}

/// How files are read.
struct Reading {
    lines: Lines,
    skip_bad: bool,
    log_bad: bool,
    now_ms: i64,
}

impl Reading {
    /// Reads a file, on a thread that may block; false from `line`: nobody wants any more.
    fn read(
        &self,
        path: Option<&Path>,
        mut line: impl FnMut(Mutation) -> anyhow::Result<bool>,
    ) -> anyhow::Result<Read> {
        let shown = path.map_or("standard input".to_owned(), |path| path.display().to_string());
        let mut input: Box<dyn BufRead> = match path {
            Some(path) => {
                let file = File::open(path).with_context(|| format!("cannot read {shown}"))?;
                Box::new(BufReader::with_capacity(1 << 20, file))
            }
            None => Box::new(BufReader::new(std::io::stdin())),
        };
        let (mut text, mut number, mut read) = (Vec::new(), 0_u64, Read::default());
        while read_line(&mut *input, &mut text).with_context(|| format!("cannot read {shown}"))? {
            number += 1;
            match self.lines.mutation(&text, self.now_ms) {
                Ok(mutation) => {
                    read.good += 1;
                    if !line(mutation)? {
                        break;
                    }
                }
                Err(why) if self.skip_bad => {
                    read.bad += 1;
                    if self.log_bad {
                        eprintln!("{shown}, line {number}: {why}: {}", cell::print::to_string_binary(&text));
                    }
                }
                Err(why) => bail!("{shown}, line {number}: {why}"),
            }
        }
        Ok(read)
    }

    /// All files, one after the other: of lines with the same row, column and time the last one stays.
    fn sort_into(&self, paths: &[Option<PathBuf>], output: &mut HFileOutput) -> anyhow::Result<Read> {
        let mut sum = Read::default();
        for path in paths {
            let read = self.read(path.as_deref(), |mutation| {
                mutation.cells.iter().try_for_each(|cell| output.add(cell))?;
                Ok(true)
            })?;
            sum = sum.plus(read);
        }
        Ok(sum)
    }
}

/// Writes a file's lines into a table, if there is one.
async fn load(reading: Arc<Reading>, path: Option<PathBuf>, into: Option<client::Table>) -> anyhow::Result<Read> {
    let is_written = into.is_some();
    let (mut groups, reading) = bringing(move |to: &mut Bringer<Mutation>| {
        reading.read(path.as_deref(), |mutation| {
            let bytes = mutation.cells.bytes().len();
            Ok(!is_written || to.bring(mutation, bytes))
        })
    });
    let writing = async move {
        if let Some(table) = into {
            let mut buffer = table.buffered(BUFFER_BYTES);
            while let Some(group) = groups.recv().await {
                for mutation in group {
                    buffer.mutate(mutation).await?;
                }
            }
            buffer.flush().await?;
        }
        anyhow::Ok(())
    };
    let written = writing.await;
    read_and_written(reading, written).await
}

/// Runs the tool; the code that the process ends with.
///
/// # Errors
/// The arguments make no sense, a file cannot be read, the table cannot be written, or a line is bad and bad lines are not passed over.
pub fn run(config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(code) = helped(USAGE, given) {
        return Ok(code);
    }
    let (config, rest) = defines(config, given)?;
    let parsed = arguments::parse("importtsv", KNOWN, &rest)?;
    let Some((table, words)) = parsed.rest.split_first().filter(|(_, words)| !words.is_empty()) else {
        bail!("importtsv: a table and a file are needed");
    };
    let bulk_output = config.text("importtsv.bulk.output").filter(|text| !text.is_empty());
    let bulk_output = bulk_output.map(files::place).transpose()?;
    let (name, lines, paths) = (table_name(table)?, Lines::of(&config)?, inputs(words)?);
    let is = |key: &str, otherwise: bool| config.text(key).map_or(otherwise, |text| text.trim() == "true");
    let reading = Arc::new(Reading {
        lines,
        skip_bad: is("importtsv.skip.bad.lines", true),
        log_bad: is("importtsv.log.bad.lines", false),
        now_ms: crate::log::Log::new("importtsv").now_ms(),
    });
    let (dry_run, create) = (is("importtsv.dry.run", false), config.text("create.table") != Some("no"));
    let settings = config.clone();
    let read = on_cluster(&config, |connection| async move {
        let admin = connection.admin();
        if !admin.table_exists(&name).await? {
            if !create || dry_run {
                bail!("there is no table {name}");
            }
            let families = reading.lines.families().into_iter().map(|family| FamilyDescriptor::new(family.to_owned()));
            admin.create_table(&TableDescriptor::new(name.clone(), families), &[]).await?;
        }
        let table = connection.table(&name);
        if let Some(place) = bulk_output.filter(|_| !dry_run) {
            let descriptor = admin.describe(&name).await?.with_context(|| format!("there is no table {name}"))?;
            let starts: Vec<_> = table.start_end_keys().await?.into_iter().map(|(start, _)| start).collect();
            let sorting = tokio::task::spawn_blocking(move || {
                let mut output = HFileOutput::new(&settings, &place, &descriptor, starts)?;
                let read = reading.sort_into(&paths, &mut output)?;
                output.finish()?;
                Ok(read)
            });
            return sorting.await.context("sorting ended by itself")?;
        }
        let mut waiting = paths.into_iter();
        let mut under_way = JoinSet::new();
        let mut sum = Read::default();
        loop {
            while under_way.len() < parallel(&settings)
                && let Some(path) = waiting.next()
            {
                let into = (!dry_run).then(|| table.clone());
                under_way.spawn(load(reading.clone(), path, into));
            }
            let Some(ended) = under_way.join_next().await else { return Ok(sum) };
            sum = sum.plus(ended.context("a part of the work ended by itself")??);
        }
    })?;
    let Read { good, bad } = read;
    match parsed.has("json") {
        true => println!("{}", json!({"table": table, "lines": good, "bad_lines": bad})),
        false => println!("Imported {good} lines into {table}\n\tBad Lines={bad}"),
    }
    Ok(ExitCode::from(u8::from(bad > 0)))
}

/// Reads a line without its end; false at the end of the input.
fn read_line(input: &mut dyn BufRead, line: &mut Vec<u8>) -> anyhow::Result<bool> {
    use std::io::Read;
    line.clear();
    let read = input.take(MAX_LINE_BYTES).read_until(b'\n', line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
    } else if read as u64 == MAX_LINE_BYTES {
        bail!("a line has more than {MAX_LINE_BYTES} bytes");
    }
    Ok(read > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(columns: &str, more: &[(&str, &str)]) -> anyhow::Result<Lines> {
        let mut config = Config::default();
        config.set("importtsv.columns".to_owned(), columns.to_owned());
        more.iter().for_each(|(key, value)| config.set((*key).to_owned(), (*value).to_owned()));
        Lines::of(&config)
    }

    #[test]
    fn lines_become_puts() {
        let lines = lines("HBASE_ROW_KEY,f:a,HBASE_TS_KEY,,g", &[("importtsv.separator", "|")]).expect("legal");
        let put = lines.mutation(b"r|1|77|x|2", 5).expect("good");
        assert_eq!((&put.row[..], put.cells.len()), (&b"r"[..], 2));
        assert!(put.cells.iter().all(|cell| cell.timestamp() == 77));
        assert_eq!(lines.families(), ["f", "g"]);
        for bad in ["", "|1|77", "r", "r|1|x", "r|1|2|3|4|5"] {
            assert!(lines.mutation(bad.as_bytes(), 5).is_err(), "{bad}");
        }
    }

    #[test]
    fn columns_that_make_no_sense_are_refused() {
        for columns in
            ["", "f:a", "HBASE_ROW_KEY", "HBASE_ROW_KEY,f:a,HBASE_ROW_KEY", "HBASE_ROW_KEY,HBASE_ATTRIBUTES_KEY"]
        {
            assert!(lines(columns, &[]).is_err(), "{columns}");
        }
        assert!(lines("HBASE_ROW_KEY,f:a", &[("importtsv.separator", "ab")]).is_err());
    }
}
