//! `basalt backup list`, `describe`, `verify` and `delete`.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::{Context, bail};
use base::{Clock, Config, SystemClock};
use serde_json::json;

use super::Root;
use super::manifest::{Kind, Manifest, Place};
use crate::arguments::{self, Known, Parsed, flag, valued};
use crate::jobs::{on_cluster, table_name};
use crate::log::iso_time;
use crate::places::Opener;

const KNOWN: &[Known] = &[flag("", "json"), flag("q", "quick")];
const DELETE: &[Known] = &[valued("l", "list"), valued("k", "keep"), flag("", "json")];

fn seconds(ms: i64) -> String {
    iso_time(ms).chars().take(19).collect()
}

pub(super) fn list(opener: &dyn Opener, config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    let parsed = arguments::parse("backup list", KNOWN, given)?;
    let [place] = parsed.rest.as_slice() else { bail!("backup list: name the backup directory") };
    let place = Place::open(opener, config, place, false)?;
    let json = parsed.has("json");
    for manifest in place.backups()?.0 {
        let tables: Vec<&str> = manifest.tables.iter().map(|image| image.table.as_str()).collect();
        match json {
            true => println!(
                "{}",
                json!({"id": manifest.id, "kind": manifest.kind.as_str(), "state": "complete", "started_ms": manifest.started_ms,
                       "completed_ms": manifest.completed_ms, "bytes": manifest.bytes(), "tables": tables,
                       "merged": manifest.merged})
            ),
            false => println!(
                "{}  {:<11}  {}  {:>12} bytes  {}",
                manifest.id,
                manifest.kind.as_str(),
                seconds(manifest.completed_ms),
                manifest.bytes(),
                tables.join(",")
            ),
        }
    }
    for (id, state) in place.unfinished()? {
        let kind = state.as_ref().map_or("unknown", |state| state.kind.as_str());
        let tables = state.map(|state| state.tables).unwrap_or_default();
        match json {
            true => println!("{}", json!({"id": id, "kind": kind, "state": "unfinished", "tables": tables})),
            false => println!("{id}  {kind:<11}  unfinished           {}", tables.join(",")),
        }
    }
    Ok(ExitCode::SUCCESS)
}

const HISTORY: &[Known] = &[valued("n", ""), valued("t", "table"), valued("s", "set"), flag("", "json")];
/// Backups that are shown unless it is said how many.
const HISTORY_LENGTH: usize = 10;

/// The newest first, one line each. Follows: `BackupCommands.HistoryCommand`, `BackupInfo#getShortDescription`.
pub(super) fn history(opener: &dyn Opener, config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    let parsed = arguments::parse("backup history", HISTORY, given)?;
    let [place] = parsed.rest.as_slice() else { bail!("backup history: name the backup directory") };
    let place = Place::open(opener, config, place, false)?;
    let table = parsed.value("table").map(|name| Ok::<_, anyhow::Error>(table_name(name)?.to_string())).transpose()?;
    let is_asked = |tables: &[&str], set: Option<&str>| {
        let has_table = table.as_deref().is_none_or(|table| tables.contains(&table));
        has_table && parsed.value("set").is_none_or(|wanted| set == Some(wanted))
    };
    let mut shown = Vec::new();
    for manifest in &place.backups()?.0 {
        let tables: Vec<&str> = manifest.tables.iter().map(|image| image.table.as_str()).collect();
        if is_asked(&tables, manifest.set.as_deref()) {
            let (from, to) = (manifest.started_ms, Some(manifest.completed_ms));
            shown.push(Line { id: &manifest.id, kind: manifest.kind, tables, from, to, progress: 100 }.shown(&parsed));
        }
    }
    for (_, state) in place.unfinished()? {
        let Some(state) = state else { continue };
        let tables: Vec<&str> = state.tables.iter().map(String::as_str).collect();
        if is_asked(&tables, None) {
            let progress = place.progress(&state)?;
            let (id, kind, from) = (&*state.id, state.kind, state.started_ms);
            shown.push(Line { id, kind, tables, from, to: None, progress }.shown(&parsed));
        }
    }
    // By the times of their beginnings, which stand behind.
    shown.sort_by_key(|(from, _)| std::cmp::Reverse(*from));
    let count = parsed.number("n")?.unwrap_or(HISTORY_LENGTH);
    shown.iter().take(count).for_each(|(_, line)| println!("{line}"));
    Ok(ExitCode::SUCCESS)
}

/// One backup of a history.
struct Line<'a> {
    id: &'a str,
    kind: Kind,
    tables: Vec<&'a str>,
    from: i64,
    to: Option<i64>,
    progress: usize,
}

impl Line<'_> {
    /// When it was begun, and what is said of it.
    fn shown(&self, parsed: &Parsed) -> (i64, String) {
        let Line { id, kind, tables, from, to, progress } = self;
        let state = if to.is_some() { "COMPLETE" } else { "RUNNING" };
        if parsed.has("json") {
            let line = json!({"id": id, "kind": kind.as_str(), "tables": tables, "state": state, "started_ms": from, "completed_ms": to,
                              "progress": progress});
            return (*from, line.to_string());
        }
        let (kind, tables) = (kind.as_str().to_uppercase(), tables.join(","));
        let end = to.map(|to| format!("End time={},", seconds(to))).unwrap_or_default();
        let start = seconds(*from);
        (
            *from,
            format!(
                "{{ID={id},Type={kind},Tables={{{tables}}},State={state},Start time={start},{end}Progress={progress}%}}"
            ),
        )
    }
}

pub(super) fn describe(opener: &dyn Opener, config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    let parsed = arguments::parse("backup describe", KNOWN, given)?;
    let [place, id] = parsed.rest.as_slice() else {
        bail!("backup describe: name the backup directory and a backup id")
    };
    let place = Place::open(opener, config, place, false)?;
    let backups = place.backups()?;
    let manifest = backups.get(id)?;
    if parsed.has("json") {
        println!("{}", serde_json::to_string(manifest)?);
        return Ok(ExitCode::SUCCESS);
    }
    println!("{id}: {} backup of {} tables, {} bytes", manifest.kind.as_str(), manifest.tables.len(), manifest.bytes());
    println!("  from {} to {}", iso_time(manifest.started_ms), iso_time(manifest.completed_ms));
    if !manifest.merged.is_empty() {
        println!("  merged of {}", manifest.merged.join(", "));
    }
    for image in &manifest.tables {
        println!(
            "table {}: {} files, {} bytes, {} regions",
            image.table,
            image.files.len(),
            image.bytes(),
            image.regions.len()
        );
        if let Some(parent) = &image.parent {
            println!("  parent {parent}: {} cells, {} bulk-loaded files", image.cells, image.loaded_files);
        }
        if let (Some((first, last)), Some((least, greatest))) = (image.times_ms, image.sequence_ids) {
            println!("  edits from {} to {}, sequence ids {least} to {greatest}", iso_time(first), iso_time(last));
        }
        for file in &image.files {
            println!("  {:>12} {:08x} {}", file.bytes, file.crc32, file.path);
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn verify(opener: &dyn Opener, config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    let parsed = arguments::parse("backup verify", KNOWN, given)?;
    let Some((place, ids)) = parsed.rest.split_first() else { bail!("backup verify: name the backup directory") };
    let place = Place::open(opener, config, place, false)?;
    let backups = place.backups()?;
    let wanted: Vec<&Manifest> = match ids.is_empty() {
        true => backups.0.iter().collect(),
        false => ids.iter().map(|id| backups.get(id)).collect::<anyhow::Result<_>>()?,
    };
    let json = parsed.has("json");
    let (mut files, mut bytes, mut wrong) = (0, 0, 0);
    for manifest in &wanted {
        for image in &manifest.tables {
            let mut faults = place.faults(&manifest.id, image, parsed.has("quick"))?;
            if let Err(error) = backups.chain(&manifest.id, &image.table) {
                faults.push((format!("{}/{}", manifest.id, image.table), error.to_string()));
            }
            for (file, why) in &faults {
                match json {
                    true => {
                        println!("{}", json!({"id": manifest.id, "table": image.table, "file": file, "error": why}))
                    }
                    false => println!("{file}: {why}"),
                }
            }
            files += image.files.len();
            bytes += image.bytes();
            wrong += faults.len();
        }
    }
    match json {
        true => println!("{}", json!({"backups": wanted.len(), "files": files, "bytes": bytes, "wrong": wrong})),
        false if wrong == 0 => println!("{} backups are whole: {files} files, {bytes} bytes", wanted.len()),
        false => println!("{wrong} of {files} files are missing or damaged"),
    }
    Ok(ExitCode::from(u8::from(wrong > 0)))
}

pub(super) fn delete(opener: &dyn Opener, config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    let parsed = arguments::parse("backup delete", DELETE, given)?;
    let Some((place, ids)) = parsed.rest.split_first() else {
        bail!("backup delete: name the backup directory and the backup ids")
    };
    let place = Place::open(opener, config, place, false)?;
    let _claimed = place.claim()?;
    let backups = place.backups()?;
    let mut ids = ids.to_vec();
    ids.extend(parsed.value("list").into_iter().flat_map(|ids| ids.split(',')).map(|id| id.trim().to_owned()));
    match parsed.number::<u32>("keep")? {
        Some(_) if !ids.is_empty() => bail!("backup delete: name backup ids or give -k DAYS, but not both"),
        Some(days) => {
            let kept_from =
                SystemClock::new().now_ms().0.saturating_sub(i64::from(days).saturating_mul(24 * 3_600_000));
            ids = backups.older_than(kept_from);
            if ids.is_empty() {
                println!("Deleted 0 backups. Total requested: 0");
                return Ok(ExitCode::SUCCESS);
            }
        }
        None if ids.is_empty() => bail!("backup delete: name the backup directory and the backup ids"),
        None => {}
    }
    let ids = ids.as_slice();
    let unfinished: Vec<String> = place.unfinished()?.into_iter().map(|(id, _)| id).collect();
    for id in ids.iter().filter(|id| !unfinished.contains(id)) {
        backups.get(id)?;
    }
    let dependent = backups.depending_on(ids);
    if !dependent.is_empty() {
        let dependent: Vec<String> = dependent.into_iter().collect();
        bail!("{} depend on what is to be deleted: delete those, too, or merge them first", dependent.join(", "));
    }
    let root = Root::open(opener, config)?;
    // The newest first: what is left after a kill can be restored.
    let mut doomed: Vec<&String> = ids.iter().collect();
    doomed.sort_by_key(|id| std::cmp::Reverse(backups.0.iter().position(|manifest| manifest.id == **id)));
    for id in doomed {
        place.remove(id)?;
        println!("{id} is deleted");
    }
    let left = place.backups()?;
    let covered = root.hold(&place)?.unwrap_or_default().covered;
    if left.0.is_empty() {
        return root.mark(&place, &left, &BTreeSet::new(), covered).map(|()| ExitCode::SUCCESS);
    }
    // Without the cluster the mark keeps what it kept.
    let there = on_cluster(config, |connection| async move {
        Ok(connection.admin().list_table_names(None, false).await?.iter().map(ToString::to_string).collect())
    })
    .context("the backups are deleted; logs that only they needed are kept until the next backup")?;
    root.mark(&place, &left, &there, covered)?;
    Ok(ExitCode::SUCCESS)
}
