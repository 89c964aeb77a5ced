//! `basalt snapshot verify`: whether a snapshot can be restored.

use std::process::ExitCode;

use anyhow::Context;
use base::Config;
use fs::Volume;
use hfile::ReaderContext;
use serde_json::json;

use super::files::{self as snapshot_files, Found};
use crate::arguments::{self, Known, flag, valued};
use crate::{dictionaries, files};

const USAGE: &str = "\
Whether all files of a snapshot are there and whole.

Usage: basalt snapshot verify --snapshot NAME [OPTIONS]

    --snapshot NAME     the snapshot
    --remote-dir DIR    another root directory than hbase.rootdir
    --quick             looks for the files and their lengths, and reads none
    --json              one JSON object for each file that is wrong, and one at the end
    --help              this text

Ends with 0 where the snapshot can be restored, with 1 where not.

Examples:
  basalt snapshot verify --snapshot before
  basalt snapshot verify --snapshot before --remote-dir /backup/hbase --quick
";

const KNOWN: &[Known] = &[valued("s", "snapshot"), valued("r", "remote-dir"), flag("q", "quick"), flag("", "json")];

pub(super) fn run(config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if given.is_empty() || arguments::wants_help(given) {
        print!("{USAGE}");
        return Ok(if given.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    let parsed = arguments::parse("snapshot verify", KNOWN, given)?;
    let name = parsed.value("snapshot").or(parsed.rest.first().map(String::as_str));
    let name = name.context("snapshot verify: --snapshot is needed")?;
    let root = match parsed.value("remote-dir") {
        Some(place) => files::place(place)?,
        None => files::root_place(config)?,
    };
    let volume = files::root(&root)?;
    let (json, quick) = (parsed.has("json"), parsed.has("quick"));
    let wrong = check(config, &*volume, name, quick)?;
    for (file, why) in &wrong.files {
        match json {
            true => println!("{}", json!({"file": file, "error": why})),
            false => println!("{file}: {why}"),
        }
    }
    let (count, bytes, bad) = (wrong.count, wrong.bytes, wrong.files.len());
    match json {
        true => println!("{}", json!({"snapshot": name, "files": count, "bytes": bytes, "wrong": bad})),
        false if bad == 0 => println!("Snapshot '{name}': whole, {count} files, {bytes} bytes"),
        false => println!("BAD SNAPSHOT '{name}': {bad} of {count} files are missing or damaged"),
    }
    Ok(ExitCode::from(u8::from(bad > 0)))
}

/// What came of a check.
pub(super) struct Wrong {
    /// Files of the snapshot.
    pub count: usize,
    /// Bytes of those that are there.
    pub bytes: u64,
    /// Those that are missing or damaged, and why.
    pub files: Vec<(String, String)>,
}

/// Looks at every file of a snapshot; unless `quick` every cell is read.
pub(super) fn check(config: &Config, volume: &dyn Volume, name: &str, quick: bool) -> anyhow::Result<Wrong> {
    let read = snapshot_files::read(volume, name)?;
    let found = snapshot_files::find(volume, &read.manifest)?;
    let bytes = found.iter().map(|one| one.len_bytes).sum();
    let dictionary = |one: &Found<'_>| dictionaries::named(config, Some(&read.manifest.table), one.family.as_bytes());
    let fault = |one: &Found<'_>| fault(volume, one, dictionary(one).as_deref(), quick);
    let files = found.iter().filter_map(|one| fault(one).map(|why| (shown(one), why))).collect();
    Ok(Wrong { count: found.len(), bytes, files })
}

fn shown(one: &Found<'_>) -> String {
    format!("{}/{}/{}/{}", one.region.table, one.region.encoded_name(), one.family, one.file.name)
}

fn fault(volume: &dyn Volume, one: &Found<'_>, dictionary: Option<&str>, quick: bool) -> Option<String> {
    let Some(place) = &one.place else {
        return Some("missing: it is neither in data nor in mobdir nor in archive".to_owned());
    };
    if one.is_corrupted() {
        return Some(format!("{place} has {} bytes instead of {}", one.len_bytes, one.file.len_bytes));
    }
    if quick {
        return None;
    }
    let opened = dictionaries::open(volume, place, dictionary, ReaderContext::default());
    let read = opened.and_then(|reader| Ok(reader.read_through()?));
    read.err().map(|error| format!("{error:#}"))
}
