//! `basalt walplayer`. Follows: `WALPlayer`, `WALInputFormat`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use base::{Config, SeqId};
use cell::{CellBlock, CellBuffer};
use client::{BufferedMutator, Connection};
use fs::{FilePath, LocalVolume, Volume};
use model::{Durability, TableName};
use serde_json::json;
use wal::Reader;

use super::hfile_output::HFileOutput;
use super::import::mutations;
use super::threads::{Bringer, bringing, read_and_written};
use super::{defines, helped, on_cluster, scan, table_name};
use crate::arguments::{self, Known, flag};
use crate::files;

const USAGE: &str = "\
Writes the edits of logs into tables, which must be there.

Usage: basalt walplayer [-D KEY=VALUE]... LOGS [TABLES [NEW-NAMES]] [OPTIONS]

    LOGS        a log, a file of recovered edits, or a directory of them (with the directories in it)
    TABLES      only these, parted by commas; all of them unless given
    NEW-NAMES   what they are called here, in the same order
    --json      one JSON object
    --help      this text

Settings: wal.start.time and wal.end.time, in ms since 1970; wal.bulk.output=DIRECTORY writes HFiles of one table there, for basalt bulkload.

Playing again changes nothing: cells keep their times. A damaged log ends it, after the edits before the damage were written.

Examples:
  basalt walplayer /data/hbase/oldWALs t
  basalt walplayer -D wal.bulk.output=/out/t /data/hbase/oldWALs t && basalt bulkload /out/t t
  basalt walplayer -D wal.start.time=1700000000000 /data/hbase/WALs t,u t_copy,u_copy
";

const KNOWN: &[Known] = &[flag("", "json")];
/// Bytes that are gathered for each table before they are sent.
const BUFFER_BYTES: usize = 2 << 20;

/// Which edits are wanted, and what their tables are called here.
struct Wanted {
    /// All tables under their own names where there is none.
    names: HashMap<String, TableName>,
    from_ms: i64,
    to_ms: i64,
}

/// What was found in logs.
#[derive(Debug, Default, Clone, Copy)]
struct Played {
    edits: u64,
    cells: u64,
    passed_over: u64,
}

impl Wanted {
    /// Reads a log, on a thread that may block, and hands each row's cells on; false from `row`: nobody wants any more.
    fn read(
        &self,
        volume: &LocalVolume,
        path: &FilePath,
        played: &mut Played,
        row: &mut impl FnMut(&TableName, CellBlock, SeqId) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let mut reader = Reader::open(volume, path)?;
        while let Some(entry) = reader.next()? {
            let at = entry.key.write_time.0;
            let name = match self.names.is_empty() {
                true => Some(table_name(&entry.key.table)?).filter(|name| !name.is_meta()),
                false => self.names.get(&*entry.key.table).cloned(),
            };
            let Some(name) = name.filter(|_| at >= self.from_ms && at < self.to_ms) else {
                played.passed_over += 1;
                continue;
            };
            // Markers say what regions did, not what clients wrote.
            let mut rows: Vec<CellBuffer> = Vec::new();
            for cell in entry.cells.iter().filter(|cell| cell.family() != wal::marker::METAFAMILY) {
                match rows.last_mut() {
                    Some(row) if row.get(0).row() == cell.row() => row.push(cell),
                    _ => {
                        let mut row = CellBuffer::new();
                        row.push(cell);
                        rows.push(row);
                    }
                }
            }
            if rows.is_empty() {
                continue;
            }
            played.edits += 1;
            for cells in rows {
                played.cells += cells.len() as u64;
                if !row(&name, cells.into_block(), entry.key.seq_id)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Writes edits into the tables.
async fn into_tables(connection: Connection, wanted: Wanted, paths: Vec<FilePath>) -> anyhow::Result<Played> {
    let (mut groups, reading) = bringing(move |to: &mut Bringer<(TableName, CellBlock)>| {
        let (volume, mut played) = (files::everything()?, Played::default());
        for path in &paths {
            let read = wanted.read(&volume, path, &mut played, &mut |name, cells, _| {
                let bytes = cells.bytes().len();
                Ok(to.bring((name.clone(), cells), bytes))
            });
            if read.is_err() {
                // What was before the damage is played.
                to.flush();
            }
            read?;
        }
        Ok(played)
    });
    let writing = async move {
        let mut buffers: HashMap<TableName, BufferedMutator> = HashMap::new();
        while let Some(group) = groups.recv().await {
            for (name, cells) in group {
                let buffer =
                    buffers.entry(name).or_insert_with_key(|name| connection.table(name).buffered(BUFFER_BYTES));
                for mutation in mutations(&cells, &HashMap::new(), Durability::UseDefault) {
                    buffer.mutate(mutation).await?;
                }
            }
        }
        // What was before the damage is written before the damage is told.
        for buffer in buffers.values_mut() {
            buffer.flush().await?;
        }
        anyhow::Ok(())
    };
    let written = writing.await;
    read_and_written(reading, written).await
}

/// Sorts the edits of one table into HFiles.
async fn into_files(
    connection: Connection,
    config: Config,
    wanted: Wanted,
    paths: Vec<FilePath>,
    place: PathBuf,
) -> anyhow::Result<Played> {
    let mut names = wanted.names.values();
    let (Some(name), None) = (names.next(), names.next()) else {
        bail!("walplayer: exactly one table must be named for wal.bulk.output")
    };
    let descriptor = connection.admin().describe(name).await?.with_context(|| format!("there is no table {name}"))?;
    let starts: Vec<_> = connection.table(name).start_end_keys().await?.into_iter().map(|(start, _)| start).collect();
    let sorting = tokio::task::spawn_blocking(move || {
        let (volume, mut played) = (files::everything()?, Played::default());
        let mut output = HFileOutput::new(&config, &place, &descriptor, starts)?;
        for path in &paths {
            wanted.read(&volume, path, &mut played, &mut |_, cells, seq_id| {
                // Of a region that moved there and back the newest edit need not be in the log that is read last.
                cells.iter().try_for_each(|cell| output.add_at(cell, seq_id))?;
                Ok(true)
            })?;
        }
        output.finish()?;
        anyhow::Ok(played)
    });
    sorting.await.context("sorting ended by itself")?
}

/// The logs at a place, and in the directories below it.
fn logs(volume: &LocalVolume, path: &FilePath, found: &mut Vec<FilePath>) -> anyhow::Result<()> {
    match volume.stat(path)? {
        None => bail!("there is nothing at /{path}"),
        Some(entry) if !entry.is_dir => found.push(path.clone()),
        Some(_) => {
            for entry in volume.list(path)? {
                logs(volume, &path.join(&entry.name), found)?;
            }
        }
    }
    Ok(())
}

/// Runs the tool; the code that the process ends with.
///
/// # Errors
/// The arguments make no sense, a log is damaged, or a table cannot be written.
pub fn run(config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(code) = helped(USAGE, given) {
        return Ok(code);
    }
    let (config, rest) = defines(config, given)?;
    let parsed = arguments::parse("walplayer", KNOWN, &rest)?;
    let bulk_output = config.text("wal.bulk.output").filter(|text| !text.is_empty()).map(files::place).transpose()?;
    let place = parsed.rest.first().context("walplayer: no logs are named")?;
    let list = |i: usize| parsed.rest.get(i).map(|names| names.split(',').map(str::to_owned).collect::<Vec<_>>());
    let tables = list(1).unwrap_or_default();
    let new_names = list(2).unwrap_or_else(|| tables.clone());
    if tables.len() != new_names.len() {
        bail!("walplayer: {} tables and {} new names: there must be as many", tables.len(), new_names.len());
    }
    let mut names = HashMap::new();
    for (table, new_name) in tables.iter().zip(&new_names) {
        names.insert(table_name(table)?.to_string(), table_name(new_name)?);
    }
    let time = |key: &str, otherwise: i64| config.text(key).map_or(Ok(otherwise), |text| scan::word(key, text));
    let (from_ms, to_ms) = (time("wal.start.time", 0)?, time("wal.end.time", i64::MAX)?);
    let volume = files::everything()?;
    let mut paths = Vec::new();
    logs(&volume, &files::path_of(&files::place(place)?)?, &mut paths)?;
    let count = paths.len();
    let wanted = Wanted { names, from_ms, to_ms };
    let settings = config.clone();
    let played = on_cluster(&config, |connection| async move {
        for name in wanted.names.values() {
            if !connection.admin().table_exists(name).await? {
                bail!("there is no table {name}");
            }
        }
        match bulk_output {
            Some(place) => into_files(connection, settings, wanted, paths, place).await,
            None => into_tables(connection, wanted, paths).await,
        }
    })?;
    let Played { edits, cells, passed_over } = played;
    match parsed.has("json") {
        true => println!("{}", json!({"logs": count, "edits": edits, "cells": cells, "passed_over": passed_over})),
        false => {
            println!("Played {edits} edits with {cells} cells out of {count} logs; {passed_over} were passed over")
        }
    }
    Ok(ExitCode::SUCCESS)
}
