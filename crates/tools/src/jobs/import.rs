//! `basalt import`. Follows: `Import`.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, bail};
use base::Config;
use bytes::Bytes;
use cell::{CellBlock, CellBuffer, CellSpec};
use client::Table;
use model::{Durability, Mutation, MutationKind};
use serde_json::json;
use tokio::task::JoinSet;

use super::sequence_file::Reader;
use super::{PARALLEL, defines, helped, on_cluster, table_name};
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
  basalt.tools.parallel=N                files that are read at the same time

Importing again changes nothing: cells keep their times.

Examples:
  basalt import t /backup/t
  basalt import -D HBASE_IMPORTER_RENAME_CFS=f:g -D import.wal.durability=ASYNC_WAL t /backup/t
";

const KNOWN: &[Known] = &[flag("", "json")];
/// Bytes that are gathered before they are sent.
const BUFFER_BYTES: usize = 4 << 20;

/// What is done to cells on their way.
#[derive(Debug, Default, Clone)]
struct Changes {
    families: HashMap<Vec<u8>, Vec<u8>>,
    durability: Durability,
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
        Ok(changes)
    }
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
    let (mut puts, mut deletes) = (CellBuffer::new(), CellBuffer::new());
    let mut row: Option<Bytes> = None;
    for cell in cells.iter() {
        row.get_or_insert_with(|| Bytes::copy_from_slice(cell.row()));
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
    let Some(row) = row else { return Vec::new() };
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

async fn load(table: Table, path: PathBuf, changes: Arc<Changes>) -> anyhow::Result<(u64, u64)> {
    let name = path.display().to_string();
    let file = File::open(&path).with_context(|| format!("cannot read {name}"))?;
    let mut reader = Reader::new(BufReader::with_capacity(1 << 20, file), &name)?;
    let mut buffer = table.buffered(BUFFER_BYTES);
    let (mut rows, mut cells) = (0, 0);
    while let Some(row) = reader.next()? {
        rows += 1;
        cells += row.len() as u64;
        for mutation in mutations(&row, &changes.families, changes.durability) {
            buffer.mutate(mutation).await?;
        }
    }
    buffer.flush().await?;
    Ok((rows, cells))
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
    for refused in ["import.bulk.output", "import.filter.class"] {
        if config.text(refused).is_some_and(|text| !text.is_empty()) {
            bail!("import: {refused} is not supported: cells are written through the table, all of them");
        }
    }
    let name = table_name(table)?;
    let paths = inputs(&files::place(dir)?)?;
    let changes = Arc::new(Changes::of(&config)?);
    let parallel = config.text(super::PARALLEL_KEY).and_then(|text| text.trim().parse().ok()).unwrap_or(PARALLEL);
    let files_read = paths.len();
    let (rows, cells) = on_cluster(&config, |connection| async move {
        if !connection.admin().table_exists(&name).await? {
            bail!("there is no table {name}: it must be there with its families");
        }
        let next = Arc::new(AtomicUsize::new(0));
        let paths = Arc::new(paths);
        let mut workers = JoinSet::new();
        for _ in 0..usize::max(parallel, 1).min(paths.len()) {
            let (table, next, paths, changes) = (connection.table(&name), next.clone(), paths.clone(), changes.clone());
            workers.spawn(async move {
                let mut sum = (0, 0);
                while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (rows, cells) = load(table.clone(), path.clone(), changes.clone()).await?;
                    sum = (sum.0 + rows, sum.1 + cells);
                }
                anyhow::Ok(sum)
            });
        }
        let mut sum = (0, 0);
        while let Some(ended) = workers.join_next().await {
            let (rows, cells) = ended.context("a part of the work ended by itself")??;
            sum = (sum.0 + rows, sum.1 + cells);
        }
        Ok(sum)
    })?;
    match parsed.has("json") {
        true => println!("{}", json!({"table": table, "rows": rows, "cells": cells, "files": files_read})),
        false => println!("Imported {rows} rows with {cells} cells out of {files_read} files into {table}"),
    }
    Ok(ExitCode::SUCCESS)
}
