//! `basalt snapshot info`. Follows: `SnapshotInfo`.

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use anyhow::bail;
use base::Config;
use model::TableDescriptor;
use rootdir::snapshot;
use serde_json::json;

use super::files::{self as snapshot_files, Found, Snapshot, human};
use crate::arguments::{self, Known, flag, valued};
use crate::files;
use crate::log::iso_time;

const USAGE: &str = "\
What a snapshot holds.

Usage: basalt snapshot info [OPTIONS]

    --snapshot NAME     the snapshot
    --list-snapshots    every snapshot that there is
    --files             its files, each with its size, and how many there are
    --stats             how many files, and how much of them the table shares
    --schema            the table's descriptor
    --size-in-bytes     sizes in bytes
    --remote-dir DIR    another root directory than hbase.rootdir
    --json              one JSON object
    --help              this text

Ends with 1 where there is no such snapshot, or files of it are missing or of another length.

Examples:
  basalt snapshot info --list-snapshots
  basalt snapshot info --snapshot before --files --size-in-bytes
  basalt snapshot info --snapshot before --remote-dir /backup/hbase --json
";

const KNOWN: &[Known] = &[
    valued("s", "snapshot"),
    valued("r", "remote-dir"),
    flag("l", "list-snapshots"),
    flag("f", "files"),
    flag("t", "stats"),
    flag("c", "schema"),
    flag("b", "size-in-bytes"),
    flag("", "json"),
];

pub(super) fn run(config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if given.is_empty() || arguments::wants_help(given) {
        print!("{USAGE}");
        return Ok(if given.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    let parsed = arguments::parse("snapshot info", KNOWN, given)?;
    let root = match parsed.value("remote-dir") {
        Some(place) => files::place(place)?,
        None => files::root_place(config)?,
    };
    let volume = files::root(&root)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let json = parsed.has("json");
    if parsed.has("list-snapshots") {
        list(&*volume, json, &mut out)?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(name) = parsed.value("snapshot") else { bail!("snapshot info: --snapshot or --list-snapshots is needed") };
    let read = snapshot_files::read(&*volume, name)?;
    let found = snapshot_files::find(&*volume, &read.manifest)?;
    let stats = Stats::of(&found);
    if json {
        writeln!(out, "{}", object(&read, &found, &stats))?;
    } else {
        head(&read, &mut out)?;
        if parsed.has("schema") {
            writeln!(out, "Table Descriptor\n{RULE}\n{}\n", schema(&read.manifest.table))?;
        }
        let size = |bytes: u64| if parsed.has("size-in-bytes") { bytes.to_string() } else { human(bytes) };
        if parsed.has("files") {
            list_files(&found, &size, &mut out)?;
        }
        stats.print(parsed.has("files") || parsed.has("stats"), &size, &mut out)?;
    }
    out.flush()?;
    Ok(ExitCode::from(u8::from(stats.is_bad())))
}

const RULE: &str = "----------------------------------------";

fn list(volume: &dyn fs::Volume, json: bool, out: &mut impl Write) -> anyhow::Result<()> {
    if !json {
        writeln!(out, "{:<20} | {:<20} | {:<20} | TABLE NAME", "SNAPSHOT", "CREATION TIME", "TTL IN SEC")?;
    }
    for described in snapshot::list(volume)? {
        match described {
            Ok(one) if json => writeln!(
                out,
                "{}",
                json!({"name": one.name, "table": one.table(), "created_ms": one.creation_time(), "ttl_s": one.ttl()})
            )?,
            Ok(one) => writeln!(
                out,
                "{:<20} | {:>20} | {:>20} | {}",
                one.name,
                seconds(one.creation_time()),
                one.ttl(),
                one.table()
            )?,
            Err(error) => eprintln!("basalt: snapshot info: {error}"),
        }
    }
    Ok(())
}

/// `2026-11-25T08:00:00`.
fn seconds(ms: i64) -> String {
    iso_time(ms).chars().take(19).collect()
}

fn head(read: &Snapshot, out: &mut impl Write) -> std::io::Result<()> {
    let described = &read.description;
    writeln!(out, "Snapshot Info\n{RULE}")?;
    writeln!(out, "   Name: {}", described.name)?;
    writeln!(out, "   Type: {}", described.r#type().as_str_name())?;
    writeln!(out, "  Table: {}", described.table())?;
    writeln!(out, " Format: {}", described.version())?;
    writeln!(out, "Created: {}", seconds(described.creation_time()))?;
    writeln!(out, "    Ttl: {}", described.ttl())?;
    writeln!(out, "  Owner: {}\n", described.owner())
}

/// A descriptor with all that it says.
fn schema(table: &TableDescriptor) -> String {
    let text = |bytes: &[u8]| cell::print::to_string_binary(bytes);
    let families: Vec<String> = table
        .families
        .iter()
        .map(|(name, family)| {
            let mut parts = vec![format!("NAME => '{}'", text(name))];
            parts.extend(family.attributes.iter().map(|(key, value)| format!("{} => '{}'", text(key), text(value))));
            parts.extend(family.overrides().map(|(key, value)| format!("'{key}' => '{value}'")));
            format!("{{{}}}", parts.join(", "))
        })
        .collect();
    format!("'{}', {}", table.name, families.join(", "))
}

fn list_files(found: &[Found<'_>], size: &impl Fn(u64) -> String, out: &mut impl Write) -> std::io::Result<()> {
    writeln!(out, "Snapshot Files\n{RULE}")?;
    for one in found.iter().filter(|one| one.file.reference.is_none()) {
        let state = match () {
            () if one.place.is_none() => "(NOT FOUND)",
            () if one.is_corrupted() => "(CORRUPTED)",
            () if one.is_archived() => "(archive)",
            () => "",
        };
        let bytes = if one.place.is_some() { size(one.len_bytes) } else { "-".to_owned() };
        let (table, region) = (&one.region.table, one.region.encoded_name());
        writeln!(out, "{bytes:>8} {table}/{region}/{}/{} {state}", one.family, one.file.name)?;
    }
    Ok(())
}

/// What is counted.
#[derive(Default)]
struct Stats {
    files: u64,
    bytes: u64,
    archived: u64,
    archived_bytes: u64,
    mob: u64,
    mob_bytes: u64,
    missing: u64,
    corrupted: u64,
}

impl Stats {
    fn of(found: &[Found<'_>]) -> Stats {
        let mut stats = Stats::default();
        for one in found {
            stats.corrupted += u64::from(one.is_corrupted());
            if one.place.is_none() {
                stats.missing += 1;
                continue;
            }
            stats.files += 1;
            stats.bytes += one.len_bytes;
            if one.is_archived() {
                stats.archived += 1;
                stats.archived_bytes += one.len_bytes;
            } else if one.is_mob() {
                stats.mob += 1;
                stats.mob_bytes += one.len_bytes;
            }
        }
        stats
    }

    fn is_bad(&self) -> bool {
        self.missing + self.corrupted > 0
    }

    fn print(&self, full: bool, size: &impl Fn(u64) -> String, out: &mut impl Write) -> std::io::Result<()> {
        writeln!(out)?;
        if self.is_bad() {
            let rule = "*".repeat(62);
            writeln!(out, "{rule}\nBAD SNAPSHOT: {} hfile(s) and 0 log(s) missing.", self.missing)?;
            writeln!(out, "              {} hfile(s) corrupted.\n{rule}", self.corrupted)?;
        }
        if !full {
            return Ok(());
        }
        let percent = |part: u64| if self.bytes == 0 { 0.0 } else { part as f64 * 100.0 / self.bytes as f64 };
        let shared = self.bytes - self.archived_bytes - self.mob_bytes;
        writeln!(
            out,
            "{} HFiles ({} in archive, {} in mob storage), total size {} ({:.2}% {} shared with the source table, {:.2}% {} in mob dir)",
            self.files,
            self.archived,
            self.mob,
            size(self.bytes),
            percent(shared),
            size(shared),
            percent(self.mob_bytes),
            size(self.mob_bytes),
        )?;
        writeln!(out, "0 Logs, total size {}\n", size(0))
    }
}

fn object(read: &Snapshot, found: &[Found<'_>], stats: &Stats) -> serde_json::Value {
    let files: Vec<_> = found
        .iter()
        .map(|one| {
            json!({"region": &**one.region.encoded_name(), "family": one.family, "name": one.file.name,
                   "bytes": one.file.len_bytes, "place": one.place.as_ref().map(|place| place.as_str().to_owned()),
                   "corrupted": one.is_corrupted()})
        })
        .collect();
    json!({
        "name": read.description.name, "table": read.description.table(), "type": read.description.r#type().as_str_name(),
        "created_ms": read.description.creation_time(), "ttl_s": read.description.ttl(), "owner": read.description.owner(),
        "files": files, "missing": stats.missing, "corrupted": stats.corrupted, "bytes": stats.bytes,
        "archived_bytes": stats.archived_bytes, "mob_bytes": stats.mob_bytes,
    })
}
