//! `basalt backup merge`: one incremental backup of several that follow each other. Follows: `MapReduceBackupMergeJob`.

use std::process::ExitCode;

use anyhow::{Context, bail};
use base::{Config, SeqId};
use fs::FilePath;
use hfile::{Reader, ReaderContext, ScanOptions};
use serde_json::json;

use super::manifest::{ID_PREFIX, Image, Kind, Manifest, Place, Unfinished};
use crate::arguments::{self, Known, flag};
use crate::jobs::hfile_output::HFileOutput;
use crate::places::Opener;

const KNOWN: &[Known] = &[flag("", "json")];

pub(super) fn run(opener: &dyn Opener, config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    let parsed = arguments::parse("backup merge", KNOWN, given)?;
    let Some((place, ids)) = parsed.rest.split_first() else { bail!("backup merge: a directory and ids are needed") };
    let ids: Vec<&str> = ids.iter().flat_map(|ids| ids.split(',')).filter(|id| !id.is_empty()).collect();
    if ids.len() < 2 {
        bail!("backup merge: two backups at least are needed");
    }
    let place = Place::open(opener, config, place, false)?;
    let _claimed = place.claim()?;
    let backups = place.backups()?;
    let mut parts: Vec<&Manifest> = ids.iter().map(|id| backups.get(id)).collect::<anyhow::Result<_>>()?;
    parts.sort_by_key(|part| part.started_ms);
    parts.dedup_by_key(|part| &part.id);
    let (first, last) = match parts.as_slice() {
        [first, .., last] => (*first, *last),
        _ => bail!("backup merge: two different backups at least are needed"),
    };
    for part in &parts {
        if part.kind != Kind::Incremental {
            bail!("{} is a full backup: incremental ones can be merged", part.id);
        }
        let tables = |manifest: &Manifest| manifest.tables.iter().map(|image| image.table.clone()).collect::<Vec<_>>();
        if tables(part) != tables(first) {
            bail!("{} and {} are of different tables", first.id, part.id);
        }
    }
    for (before, after) in parts.iter().zip(parts.iter().skip(1)) {
        for image in &after.tables {
            let is_of_before = |parent: &String| *parent == before.id || before.merged.contains(parent);
            if !image.parent.as_ref().is_some_and(is_of_before) {
                bail!(
                    "{} does not go on from {} for table {}: those between are to be merged, too",
                    after.id,
                    before.id,
                    image.table
                );
            }
        }
    }
    for part in &parts {
        for image in &part.tables {
            if let Some((file, why)) = place.faults(&part.id, image, false)?.first() {
                bail!("{file}: {why}; nothing was changed");
            }
        }
    }
    let mut number = last.started_ms + 1;
    while place.volume.exists(&FilePath::new(format!("{ID_PREFIX}{number}")))? {
        number += 1;
    }
    let id = format!("{ID_PREFIX}{number}");
    place.begin(&Unfinished {
        id: id.clone(),
        kind: Kind::Incremental,
        started_ms: number,
        tables: last.tables.iter().map(|image| image.table.clone()).collect(),
        logs: last.logs.clone(),
        archived: std::collections::BTreeSet::new(),
    })?;
    let mut images = Vec::new();
    for newest in &last.tables {
        images.push(merge(config, &place, &id, &parts, newest)?);
    }
    let mut merged: Vec<String> = Vec::new();
    for part in &parts {
        merged.extend(part.merged.iter().cloned());
        merged.push(part.id.clone());
    }
    let manifest = Manifest {
        id,
        kind: Kind::Incremental,
        merged,
        set: last.set.clone(),
        started_ms: number,
        completed_ms: last.completed_ms,
        tables: images,
        logs: last.logs.clone(),
    };
    // From here on the merged one counts; what is left of the others after a kill the next backup removes.
    place.complete(&manifest)?;
    for part in parts.iter().rev() {
        place.remove(&part.id)?;
    }
    match parsed.has("json") {
        true => println!("{}", json!({"id": manifest.id, "merged": manifest.merged, "bytes": manifest.bytes()})),
        false => {
            println!("Backup {} is merged of {}: {} bytes", manifest.id, manifest.merged.join(", "), manifest.bytes())
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// One image of a table out of all of `parts`: of cells with the same key the last one's.
fn merge(config: &Config, place: &Place, id: &str, parts: &[&Manifest], newest: &Image) -> anyhow::Result<Image> {
    let name = newest.name()?;
    let descriptor = newest.descriptor()?;
    let dir = Place::image_dir(id, &name);
    // The regions are those of the newest: its files begin at their bounds or behind them.
    let mut output = HFileOutput::on(config, place.volume.clone(), dir, &descriptor, [])?;
    let mut image = Image { files: Vec::new(), cells: 0, loaded_files: 0, ..newest.clone() };
    for (part, at) in parts.iter().zip(1..) {
        let Some(of_part) = part.image(&newest.table) else { continue };
        if at == 1 {
            image.parent.clone_from(&of_part.parent);
        }
        image.times_ms = wider(image.times_ms, of_part.times_ms);
        image.sequence_ids = wider(image.sequence_ids, of_part.sequence_ids);
        image.loaded_files += of_part.loaded_files;
        for file in of_part.files.iter().filter(|file| !file.path.ends_with("/_SUCCESS")) {
            let path = FilePath::new(&part.id).join(&file.path);
            let reader = Reader::open(&*place.volume, &path, ReaderContext::default())
                .with_context(|| format!("{path} cannot be read as an HFile"))?;
            let options = ScanOptions { cache_blocks: false, pread: false, compaction: true, ..ScanOptions::default() };
            let mut scanner = reader.scanner(options);
            let mut more = scanner.seek_to_first()?;
            while more {
                let Some(cell) = scanner.current() else { break };
                if descriptor.families.contains_key(cell.family()) {
                    output.add_at(cell, SeqId(at))?;
                }
                more = scanner.next()?;
            }
        }
    }
    image.cells = output.finish()?.cells;
    image.files = place.files(id, &name)?;
    Ok(image)
}

/// The least range with both in it.
fn wider<T: Ord>(one: Option<(T, T)>, other: Option<(T, T)>) -> Option<(T, T)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        (one, other) => one.or(other),
    }
}
