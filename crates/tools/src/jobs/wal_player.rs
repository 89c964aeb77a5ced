//! `basalt walplayer`. Follows: `WALPlayer`, `WALInputFormat`.

use std::collections::HashMap;
use std::process::ExitCode;

use anyhow::{Context, bail};
use base::Config;
use cell::{CellBlock, CellBuffer};
use client::{BufferedMutator, Connection};
use fs::{FilePath, LocalVolume, Volume};
use model::{Durability, TableName};
use serde_json::json;
use wal::Reader;

use super::import::mutations;
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

Settings: wal.start.time and wal.end.time, in ms since 1970, or wal.input.ignore.missing.files=true.

Playing again changes nothing: cells keep their times. A damaged log ends it, after the edits before the damage were written.

Examples:
  basalt walplayer /data/hbase/oldWALs t
  basalt walplayer -D wal.start.time=1700000000000 /data/hbase/WALs t,u t_copy,u_copy
";

const KNOWN: &[Known] = &[flag("", "json")];
/// Bytes that are gathered for each table before they are sent.
const BUFFER_BYTES: usize = 2 << 20;

struct Player {
    connection: Connection,
    /// What tables are called here; all of them where there is none.
    names: HashMap<String, TableName>,
    from_ms: i64,
    to_ms: i64,
    buffers: HashMap<TableName, BufferedMutator>,
    edits: u64,
    cells: u64,
    passed_over: u64,
}

impl Player {
    async fn play(&mut self, volume: &LocalVolume, path: &FilePath) -> anyhow::Result<()> {
        let mut reader = Reader::open(volume, path)?;
        while let Some(entry) = reader.next()? {
            let at = entry.key.write_time.0;
            let name = match self.names.is_empty() {
                true => Some(table_name(&entry.key.table)?).filter(|name| !name.is_meta()),
                false => self.names.get(&*entry.key.table).cloned(),
            };
            let Some(name) = name.filter(|_| at >= self.from_ms && at < self.to_ms) else {
                self.passed_over += 1;
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
            self.edits += 1;
            let connection = &self.connection;
            let buffer =
                self.buffers.entry(name).or_insert_with_key(|name| connection.table(name).buffered(BUFFER_BYTES));
            for row in rows {
                let row: CellBlock = row.into_block();
                self.cells += row.len() as u64;
                for mutation in mutations(&row, &HashMap::new(), Durability::UseDefault) {
                    buffer.mutate(mutation).await?;
                }
            }
        }
        Ok(())
    }

    async fn flush(&mut self) -> anyhow::Result<()> {
        for buffer in self.buffers.values_mut() {
            buffer.flush().await?;
        }
        Ok(())
    }
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
    if config.text("wal.bulk.output").is_some_and(|text| !text.is_empty()) {
        bail!("walplayer: wal.bulk.output is not supported: edits are written through the tables");
    }
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
    let player = on_cluster(&config, |connection| async move {
        for name in names.values() {
            if !connection.admin().table_exists(name).await? {
                bail!("there is no table {name}");
            }
        }
        let buffers = HashMap::new();
        let mut player = Player { connection, names, from_ms, to_ms, buffers, edits: 0, cells: 0, passed_over: 0 };
        for path in &paths {
            let played = player.play(&volume, path).await;
            player.flush().await?;
            played?;
        }
        Ok(player)
    })?;
    let Player { edits, cells, passed_over, .. } = player;
    match parsed.has("json") {
        true => println!("{}", json!({"logs": count, "edits": edits, "cells": cells, "passed_over": passed_over})),
        false => {
            println!("Played {edits} edits with {cells} cells out of {count} logs; {passed_over} were passed over")
        }
    }
    Ok(ExitCode::SUCCESS)
}
