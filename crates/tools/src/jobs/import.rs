//! `basalt import`. Follows: `Import`.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use base::Config;
use bytes::Bytes;
use cell::{CellBlock, CellBuffer, CellSpec};
use client::Table;
use filter::{Evaluator, Filter, Verdict};
use model::{Durability, Mutation, MutationKind};
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinSet;

use super::hfile_output::HFileOutput;
use super::row_file::RowReader;
use super::threads::{Bringer, bringing, read_and_written};
use super::{defines, helped, on_cluster, parallel, table_name};
use crate::arguments::{self, Known, flag};
use crate::files;

const USAGE: &str = "\
Writes cells out of files that HBase's Export, or basalt export, made into a table, which must be there.

Usage: basalt import [-D KEY=VALUE]... TABLE DIRECTORY [OPTIONS]

    DIRECTORY    the export's directory, or one of its files
    --json       one JSON object
    --help       this text

Settings:
  HBASE_IMPORTER_RENAME_CFS=OLD:NEW,...  families that are called otherwise here
  import.wal.durability=SKIP_WAL         or ASYNC_WAL, SYNC_WAL, FSYNC_WAL
  import.filter.class=CLASS              a filter of HBase's: only the rows and cells that it takes, before families are renamed
  import.filter.args=A,B,...             what it is made with
  import.bulk.output=DIRECTORY           writes HFiles there, for basalt bulkload, rather than into the table
  basalt.tools.parallel=N                files that are read at the same time

Importing again changes nothing: cells keep their times.

Examples:
  basalt import t /backup/t
  basalt import -D import.bulk.output=/out/t t /backup/t && basalt bulkload /out/t t
  basalt import -D HBASE_IMPORTER_RENAME_CFS=f:g -D import.wal.durability=ASYNC_WAL t /backup/t
";

const KNOWN: &[Known] = &[flag("", "json")];
/// Bytes that are gathered before they are sent.
const BUFFER_BYTES: usize = 4 << 20;
/// Bytes of rows that are read together.
const TOGETHER_BYTES: usize = 64 << 10;

/// What is done to cells on their way.
#[derive(Debug, Default, Clone)]
struct Changes {
    families: HashMap<Vec<u8>, Vec<u8>>,
    durability: Durability,
    filter: Option<Filter>,
}

impl Changes {
    fn of(config: &Config) -> anyhow::Result<Changes> {
        let mut changes = Changes::default();
        for pair in config.text("HBASE_IMPORTER_RENAME_CFS").unwrap_or_default().split(',').filter(|p| !p.is_empty()) {
            let (old, new) = pair
                .split_once(':')
                .filter(|(old, new)| !old.is_empty() && !new.is_empty())
                .with_context(|| format!("HBASE_IMPORTER_RENAME_CFS: {pair} is not of the form old:new"))?;
            changes.families.insert(old.trim().as_bytes().to_vec(), new.trim().as_bytes().to_vec());
        }
        changes.durability = durability(config.text("import.wal.durability"))?;
        changes.filter = filter_of(config)?;
        Ok(changes)
    }
}

/// The filter that the settings name. Follows: `Import#instantiateFilter`, which makes it of arguments as in the language of filters, each between
/// quotes; here operators and numbers may stand for themselves.
fn filter_of(config: &Config) -> anyhow::Result<Option<Filter>> {
    let Some(class) = config.text("import.filter.class").map(str::trim).filter(|class| !class.is_empty()) else {
        return Ok(None);
    };
    let arguments = config.text("import.filter.args").unwrap_or_default();
    let arguments = arguments.split(',').filter(|argument| !argument.is_empty());
    let name = class.rsplit(['.', '$']).next().unwrap_or(class);
    let stands_for_itself = |argument: &str| {
        matches!(argument, "=" | "!=" | "<" | "<=" | ">" | ">=" | "true" | "false") || argument.parse::<i64>().is_ok()
    };
    let text = |all_quoted: bool| {
        let argument = |argument: &str| match all_quoted || !stands_for_itself(argument) {
            true => format!("'{}'", argument.replace('\'', "''")),
            false => argument.to_owned(),
        };
        format!("{name}({})", arguments.clone().map(argument).collect::<Vec<_>>().join(","))
    };
    let parsed = filter::parse::parse_filter(text(true).as_bytes());
    let parsed = parsed.or_else(|error| filter::parse::parse_filter(text(false).as_bytes()).map_err(|_| error));
    parsed.map(Some).map_err(|error| anyhow::anyhow!("import.filter.class = {class}: {error}"))
}

/// The cells of a row that a filter takes. Follows: `Import.Importer#writeResult`, which does not tell the filter where rows end.
fn taken(filter: &mut Evaluator, cells: CellBlock) -> anyhow::Result<CellBlock> {
    let Some(first) = cells.iter().next() else { return Ok(cells) };
    let mut kept = CellBuffer::new();
    if !filter.filter_row_key(first)? {
        for cell in cells.iter() {
            if matches!(filter.filter_cell(cell)?, Verdict::Include | Verdict::IncludeAndNextCol) {
                kept.push(cell);
            }
        }
    }
    Ok(kept.into_block())
}

/// A durability by HBase's name.
pub(super) fn durability(name: Option<&str>) -> anyhow::Result<Durability> {
    Ok(match name.map(|name| name.trim().to_uppercase()).as_deref() {
        None | Some("" | "USE_DEFAULT") => Durability::UseDefault,
        Some("SKIP_WAL") => Durability::SkipWal,
        Some("ASYNC_WAL") => Durability::AsyncWal,
        Some("SYNC_WAL") => Durability::SyncWal,
        Some("FSYNC_WAL") => Durability::FsyncWal,
        Some(other) => bail!("import.wal.durability = {other}: SKIP_WAL, ASYNC_WAL, SYNC_WAL and FSYNC_WAL are known"),
    })
}

/// Cells of one row as mutations: puts, and deletes of each marker.
pub(super) fn mutations(
    cells: &CellBlock,
    families: &HashMap<Vec<u8>, Vec<u8>>,
    durability: Durability,
) -> Vec<Mutation> {
    let Some(first) = cells.iter().next() else { return Vec::new() };
    if families.is_empty() && cells.iter().all(|cell| cell.is_delete() == first.is_delete()) {
        // As they are: nothing is copied.
        let kind = if first.is_delete() { MutationKind::Delete } else { MutationKind::Put };
        let mut mutation = Mutation::new(kind, cells.bytes().slice_ref(first.row()), cells.clone());
        mutation.durability = durability;
        return vec![mutation];
    }
    let row = Bytes::copy_from_slice(first.row());
    let (mut puts, mut deletes) = (CellBuffer::new(), CellBuffer::new());
    for cell in cells.iter() {
        let family = families.get(cell.family()).map_or(cell.family(), Vec::as_slice);
        let spec = CellSpec {
            row: cell.row(),
            family,
            qualifier: cell.qualifier(),
            timestamp: cell.timestamp(),
            type_code: cell.type_code(),
            value: cell.value(),
            tags: cell.tags(),
        };
        let out = if cell.is_delete() { &mut deletes } else { &mut puts };
        out.push_spec(&spec, base::SeqId(0));
    }
    [(MutationKind::Put, puts), (MutationKind::Delete, deletes)]
        .into_iter()
        .filter(|(_, cells)| !cells.is_empty())
        .map(|(kind, cells)| {
            let mut mutation = Mutation::new(kind, row.clone(), cells.into_block());
            mutation.durability = durability;
            mutation
        })
        .collect()
}

/// The files of an export.
fn inputs(place: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if place.is_file() {
        return Ok(vec![place.to_owned()]);
    }
    let entries = std::fs::read_dir(place).with_context(|| format!("cannot read {}", place.display()))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        // As Hadoop's input formats: what begins so is not for jobs.
        let hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with(['_', '.']));
        if path.is_file() && !hidden {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        bail!("{} holds no files of an export", place.display());
    }
    paths.sort();
    Ok(paths)
}

/// Reads a file, on a thread that may block, and hands each row's mutations on; false from `row`: nobody wants any more.
fn read(
    path: &Path,
    changes: &Changes,
    mut row: impl FnMut(Vec<Mutation>) -> anyhow::Result<bool>,
) -> anyhow::Result<(u64, u64)> {
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
    let mut reader = RowReader::new(BufReader::with_capacity(1 << 20, file), &name)?;
    let (mut rows, mut cells) = (0, 0);
    let mut filter = changes.filter.as_ref().map(|filter| filter.evaluator(false, &Arc::new(base::Rng::from_system())));
    // Rows are read together, and share their memory.
    loop {
        let (mut together, mut counts) =
            (CellBuffer::with_capacity(TOGETHER_BYTES * 5 / 4, 64), Vec::with_capacity(64));
        let end = loop {
            match reader.next(&mut together) {
                Ok(Some(count)) => counts.push(count as u32),
                Ok(None) => break Some(Ok(())),
                Err(error) => break Some(Err(error)),
            }
            if together.byte_len() >= TOGETHER_BYTES {
                break None;
            }
        };
        // What was read before damage is handed on all the same.
        let runs = together.into_block().split_into(&counts).context("rows have fewer cells than were counted")?;
        for mut found in runs.iter() {
            if let Some(filter) = &mut filter {
                found = taken(filter, found)?;
                if found.is_empty() {
                    continue;
                }
            }
            rows += 1;
            cells += found.len() as u64;
            if !row(mutations(&found, &changes.families, changes.durability))? {
                return Ok((rows, cells));
            }
        }
        if let Some(end) = end {
            return end.map(|()| (rows, cells));
        }
    }
}

/// Writes a file's rows into a table.
async fn load(table: Table, path: PathBuf, changes: Arc<Changes>) -> anyhow::Result<(u64, u64)> {
    let (mut groups, reading) = bringing(move |to: &mut Bringer<Mutation>| {
        read(&path, &changes, |mutations| {
            Ok(mutations.into_iter().all(|mutation| {
                let bytes = mutation.cells.bytes().len();
                to.bring(mutation, bytes)
            }))
        })
    });
    let writing = async move {
        let mut buffer = table.buffered(BUFFER_BYTES);
        while let Some(group) = groups.recv().await {
            for mutation in group {
                buffer.mutate(mutation).await?;
            }
        }
        Ok(buffer.flush().await?)
    };
    let written = writing.await;
    read_and_written(reading, written).await
}

/// Writes a file's rows into HFiles.
async fn sort(output: Arc<Mutex<HFileOutput>>, path: PathBuf, changes: Arc<Changes>) -> anyhow::Result<(u64, u64)> {
    let sorting = tokio::task::spawn_blocking(move || {
        read(&path, &changes, |mutations| {
            let mut output = output.lock();
            for mutation in &mutations {
                mutation.cells.iter().try_for_each(|cell| output.add(cell))?;
            }
            Ok(true)
        })
    });
    sorting.await.context("reading a file ended by itself")?
}

/// Runs the tool; the code that the process ends with.
///
/// # Errors
/// The arguments make no sense, a file is damaged, or the table cannot be written.
pub fn run(config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(code) = helped(USAGE, given) {
        return Ok(code);
    }
    let (config, rest) = defines(config, given)?;
    let parsed = arguments::parse("import", KNOWN, &rest)?;
    let [table, dir] = parsed.rest.as_slice() else { bail!("import: a table and a directory are needed") };
    let bulk_output = config.text("import.bulk.output").filter(|text| !text.is_empty());
    let bulk_output = bulk_output.map(files::place).transpose()?;
    let name = table_name(table)?;
    let paths = inputs(&files::place(dir)?)?;
    let changes = Arc::new(Changes::of(&config)?);
    let (settings, files_read) = (config.clone(), paths.len());
    let (rows, cells) = on_cluster(&config, |connection| async move {
        let admin = connection.admin();
        if !admin.table_exists(&name).await? {
            bail!("there is no table {name}: it must be there with its families");
        }
        let table = connection.table(&name);
        let output = match &bulk_output {
            None => None,
            Some(place) => {
                let descriptor = admin.describe(&name).await?.with_context(|| format!("there is no table {name}"))?;
                let starts = table.start_end_keys().await?.into_iter().map(|(start, _)| start);
                Some(Arc::new(Mutex::new(HFileOutput::new(&settings, place, &descriptor, starts)?)))
            }
        };
        let mut waiting = paths.into_iter();
        let mut under_way = JoinSet::new();
        let mut sum = (0, 0);
        loop {
            while under_way.len() < parallel(&settings)
                && let Some(path) = waiting.next()
            {
                let (table, output, changes) = (table.clone(), output.clone(), changes.clone());
                under_way.spawn(async move {
                    match output {
                        Some(output) => sort(output, path, changes).await,
                        None => load(table, path, changes).await,
                    }
                });
            }
            let Some(ended) = under_way.join_next().await else { break };
            let (rows, cells) = ended.context("a part of the work ended by itself")??;
            sum = (sum.0 + rows, sum.1 + cells);
        }
        if let Some(output) = output.and_then(Arc::into_inner) {
            let finishing = tokio::task::spawn_blocking(move || output.into_inner().finish());
            finishing.await.context("writing HFiles ended by itself")??;
        }
        Ok(sum)
    })?;
    match parsed.has("json") {
        true => println!("{}", json!({"table": table, "rows": rows, "cells": cells, "files": files_read})),
        false => println!("Imported {rows} rows with {cells} cells out of {files_read} files into {table}"),
    }
    Ok(ExitCode::SUCCESS)
}
