//! `basalt backup create`.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::{Context, bail};
use base::{Clock, Config, SystemClock};
use client::{Admin, Connection};
use fs::FilePath;
use hfile::{Reader, ReaderContext};
use model::{TableDescriptor, TableName};
use rootdir::backup_hold::Hold;
use serde_json::json;

use super::logs::{self, Gathering, is_loaded, loaded_files};
use super::manifest::{Backups, Boundaries, ID_PREFIX, Image, Kind, Manifest, Place, Unfinished};
use super::{Root, repair};
use crate::arguments::{self, Known, Parsed, flag, valued};
use crate::jobs::hfile_output::{HFileOutput, SORT_MB_KEY};
use crate::jobs::{on_cluster, table_name};
use crate::places::Opener;
use crate::snapshot_tool::copy::Manner;
use crate::snapshot_tool::export::transfer;

const KNOWN: &[Known] = &[
    valued("t", "table"),
    valued("w", "workers"),
    valued("b", "bandwidth"),
    valued("s", "set"),
    flag("", "new"),
    flag("", "json"),
];
/// Tables whose edits are gathered in one reading of the logs.
const TABLES_AT_ONCE: usize = 16;
/// Megabytes that all of them sort in memory.
const SORT_MB: usize = 128;

pub(super) fn run(opener: &dyn Opener, config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    let parsed = arguments::parse("backup create", KNOWN, given)?;
    let [kind, place] = parsed.rest.as_slice() else {
        bail!(
            "backup create: say full or incremental, and the backup directory, as in: basalt backup create full /backups"
        )
    };
    let kind = match kind.as_str() {
        "full" => Kind::Full,
        "incremental" => Kind::Incremental,
        other => bail!("backup create: unknown kind {other:?}: it is full or incremental"),
    };
    let root = Root::open(opener, config)?;
    let place = Place::open(opener, config, place, true)?;
    let _claimed = place.claim()?;
    let bandwidth: Option<u64> = parsed.number("bandwidth")?;
    let manner = Manner {
        threads: parsed.number("workers")?.unwrap_or(4),
        bytes_per_second: bandwidth.filter(|mb| *mb > 0).map(|mb| mb.saturating_mul(1 << 20)),
        verify: true,
    };
    // The work runs on the thread that waits for it, which no other task needs: it may block.
    let (of_root, of_place, set) = (&root, &place, parsed.value("set").map(str::to_owned));
    let manifest = on_cluster(config, |connection| async move {
        let create = Create { config, root: of_root, place: of_place, connection, manner, set };
        create.run(kind, &parsed).await
    })?;
    // Told, and no more: a disk that is missing looks alike.
    for other in repair::without_backups(opener, config, &root, &place)? {
        eprintln!("backup: {}", repair::advice(&place, &other));
    }
    let (bytes, files) = (manifest.bytes(), manifest.tables.iter().map(|image| image.files.len()).sum::<usize>());
    let cells: u64 = manifest.tables.iter().map(|image| image.cells).sum();
    match given.iter().any(|word| word == "--json") {
        true => println!(
            "{}",
            json!({"id": manifest.id, "kind": kind.as_str(), "tables": manifest.tables.len(), "files": files,
                   "bytes": bytes, "cells": cells})
        ),
        false => println!(
            "Backup {} ({}) is done: {} tables, {files} files, {bytes} bytes",
            manifest.id,
            kind.as_str(),
            manifest.tables.len()
        ),
    }
    Ok(ExitCode::SUCCESS)
}

struct Create<'a> {
    config: &'a Config,
    root: &'a Root,
    place: &'a Place,
    connection: Connection,
    manner: Manner,
    /// What the tables are called together.
    set: Option<String>,
}

/// What a snapshot for a backup is called; what it is for shows until it is gone.
fn snapshot_name(id: &str, n: usize) -> String {
    format!("basalt_{id}_{n}")
}

impl Create<'_> {
    async fn run(&self, kind: Kind, parsed: &Parsed) -> anyhow::Result<Manifest> {
        let admin = self.connection.admin();
        logs::check_root(&admin, &*self.root.reading).await?;
        let backups = self.place.backups()?;
        self.tidy(&admin, &backups).await?;
        let there: BTreeSet<String> =
            admin.list_table_names(None, false).await?.iter().map(ToString::to_string).collect();
        let given = match (parsed.value("table"), parsed.value("set")) {
            (Some(_), Some(_)) => bail!("You can specify either backup set or list of tables, but not both"),
            (Some(names), None) => Some(names.split(',').map(|name| name.trim().to_owned()).collect()),
            (None, Some(set)) => Some(self.place.set(set)?),
            (None, None) => None,
        };
        let wanted: BTreeSet<String> = match (given, kind) {
            (Some(names), _) => names,
            (None, Kind::Full) => there.clone(),
            (None, Kind::Incremental) => backups.tables().intersection(&there).cloned().collect(),
        };
        if wanted.is_empty() {
            bail!("there is no table to back up; for an incremental backup take a full one into this directory first");
        }
        let mut tables = Vec::new();
        for name in &wanted {
            let name = table_name(name)?;
            let described = admin.describe(&name).await?.with_context(|| format!("there is no table {name}"))?;
            tables.push((name, described));
        }
        let manifest = match kind {
            Kind::Full => self.full(&admin, &tables, !parsed.has("new")).await?,
            Kind::Incremental => self.incremental(&admin, &backups, tables, &there).await?,
        };
        Ok(manifest)
    }

    /// Removes snapshots of backups that are done, and what incremental ones that were broken off have left.
    async fn tidy(&self, admin: &Admin, backups: &Backups) -> anyhow::Result<()> {
        let is_done =
            |name: &str| backups.0.iter().any(|manifest| name.starts_with(&format!("basalt_{}_", manifest.id)));
        for snapshot in admin.list_snapshots().await?.iter().filter(|snapshot| is_done(&snapshot.name)) {
            admin.delete_snapshot(&snapshot.name).await?;
        }
        for manifest in &backups.0 {
            for merged in manifest.merged.iter().filter(|id| backups.0.iter().any(|other| other.id == **id)) {
                self.place.remove(merged)?;
            }
        }
        for (id, state) in self.place.unfinished()? {
            if state.is_none_or(|state| state.kind == Kind::Incremental) {
                self.place.remove(&id)?;
            }
        }
        Ok(())
    }

    fn new_id(&self) -> anyhow::Result<(String, i64)> {
        let mut now_ms = SystemClock::new().now_ms().0;
        while self.place.volume.exists(&FilePath::new(format!("{ID_PREFIX}{now_ms}")))? {
            now_ms += 1;
        }
        Ok((format!("{ID_PREFIX}{now_ms}"), now_ms))
    }

    async fn regions(&self, name: &TableName) -> anyhow::Result<Vec<String>> {
        let regions = self.connection.table(name).regions().await?;
        Ok(regions.iter().map(|location| location.region.encoded_name().to_string()).collect())
    }

    /// A full backup that was begun and is not done, of the same tables; or a new one, with all before it marked and logs rolled.
    async fn begin(&self, admin: &Admin, tables: &[String], resume: bool) -> anyhow::Result<Unfinished> {
        for (id, state) in self.place.unfinished()? {
            match state {
                Some(state) if resume && state.tables == tables => {
                    eprintln!("backup: resuming {id}");
                    return Ok(state);
                }
                _ => {
                    repair::drop_snapshots(admin, &id).await?;
                    self.place.remove(&id)?;
                }
            }
        }
        // Before the logs are rolled: nothing that the next increment needs goes meanwhile.
        let mut hold = self.root.hold(self.place)?.unwrap_or_default();
        hold.place = self.place.directory.name.clone();
        hold.tables.extend(tables.iter().cloned());
        hold.publish(&*self.root.home.volume, &self.place.hold_id())?;
        let mut archived = BTreeSet::new();
        for table in tables {
            archived.extend(loaded_files(&*self.root.reading, &table_name(table)?, true)?);
        }
        let logs = logs::roll(admin, &*self.root.reading).await?;
        let (id, started_ms) = self.new_id()?;
        let state = Unfinished { id, kind: Kind::Full, started_ms, tables: tables.to_vec(), logs, archived };
        self.place.begin(&state)?;
        Ok(state)
    }

    async fn full(
        &self,
        admin: &Admin,
        tables: &[(TableName, TableDescriptor)],
        resume: bool,
    ) -> anyhow::Result<Manifest> {
        let names: Vec<String> = tables.iter().map(|(name, _)| name.to_string()).collect();
        let state = self.begin(admin, &names, resume).await?;
        let taken: BTreeSet<String> = admin.list_snapshots().await?.into_iter().map(|taken| taken.name).collect();
        let mut images = Vec::new();
        let mut covered = state.archived.clone();
        for (n, (name, descriptor)) in tables.iter().enumerate() {
            let snapshot = snapshot_name(&state.id, n);
            if !taken.contains(&snapshot) {
                admin.snapshot(&snapshot, name).await.with_context(|| format!("no snapshot of {name}"))?;
            }
            let regions = self.regions(name).await?;
            let read = crate::snapshot_tool::files::read(&*self.root.reading, &snapshot).with_context(
                || "hbase.rootdir is not the directory of the cluster that took the snapshot, or cannot be read",
            )?;
            covered.extend(read.manifest.files().map(|(_, _, file)| file.name.clone()).filter(|name| is_loaded(name)));
            let dir = Place::image_dir(&state.id, name);
            self.place.volume.create_dir_all_durable(&dir)?;
            let to = self.place.directory.below(&dir);
            let copied = transfer(&*self.root.reading, &*to, &snapshot, &snapshot, self.manner)?;
            eprintln!(
                "backup: {name}: {} files with {} bytes copied, {} were there ({} of {} tables)",
                copied.files,
                copied.bytes,
                copied.kept,
                n + 1,
                tables.len()
            );
            images.push(Image {
                table: name.to_string(),
                parent: None,
                schema: Image::schema_of(descriptor),
                regions,
                snapshot: Some(snapshot),
                cells: 0,
                times_ms: None,
                sequence_ids: None,
                loaded_files: 0,
                files: self.place.files(&state.id, name)?,
            });
        }
        let manifest =
            self.complete(admin, Kind::Full, state.id, state.started_ms, images, state.logs, covered).await?;
        for n in 0..tables.len() {
            admin.delete_snapshot(&snapshot_name(&manifest.id, n)).await?;
        }
        Ok(manifest)
    }

    async fn incremental(
        &self,
        admin: &Admin,
        backups: &Backups,
        tables: Vec<(TableName, TableDescriptor)>,
        there: &BTreeSet<String>,
    ) -> anyhow::Result<Manifest> {
        let before = logs::survey(&*self.root.reading)?;
        let mut parents = Vec::new();
        for (name, _) in &tables {
            let full =
                || format!("table {name} has no backup in this directory: basalt backup create full comes first");
            let (parent, image) = backups.newest(&name.to_string()).with_context(full)?;
            backups.chain(&parent.id, &image.table)?;
            let regions = self.regions(name).await?;
            if !regions.iter().any(|region| image.regions.contains(region)) {
                bail!(
                    "none of the regions that table {name} had in {} is there any more, as after truncating it or making \
                     it anew: a full backup is needed (basalt backup create full)",
                    parent.id
                );
            }
            logs::check_whole(&parent.logs, &before).with_context(|| format!("table {name}"))?;
            parents.push((parent, regions));
        }
        if self.root.hold(self.place)?.is_none() {
            self.root.mark(self.place, backups, there, BTreeSet::new())?;
        }
        let to = logs::roll(admin, &*self.root.reading).await?;
        let (id, started_ms) = self.new_id()?;
        let names = tables.iter().map(|(name, _)| name.to_string()).collect();
        self.place.begin(&Unfinished {
            id: id.clone(),
            kind: Kind::Incremental,
            started_ms,
            tables: names,
            logs: to.clone(),
            archived: BTreeSet::new(),
        })?;
        let mut config = self.config.clone();
        if !config.is_set(SORT_MB_KEY) {
            config.set(SORT_MB_KEY, (SORT_MB / tables.len().clamp(1, TABLES_AT_ONCE)).to_string());
        }
        let (mut images, mut loaded) = (Vec::new(), BTreeSet::new());
        let mut waiting = tables.into_iter().zip(parents).peekable();
        while waiting.peek().is_some() {
            let (mut gatherings, mut origins) = (Vec::new(), Vec::new());
            for ((name, descriptor), (parent, regions)) in waiting.by_ref().take(TABLES_AT_ONCE) {
                let starts = self.connection.table(&name).start_end_keys().await?.into_iter().map(|(start, _)| start);
                let dir = Place::image_dir(&id, &name);
                let output = HFileOutput::on(&config, self.place.volume.clone(), dir, &descriptor, starts)?;
                gatherings.push(Gathering::new(&config, name, descriptor, parent.logs.clone(), output));
                origins.push((parent.id.clone(), regions));
            }
            logs::gather(&*self.root.reading, &to, &mut gatherings)?;
            for (gathered, (parent, regions)) in gatherings.into_iter().zip(origins) {
                let written = gathered.output.finish()?;
                let files = self.place.files(&id, &gathered.name)?;
                self.check(&id, &files)?;
                loaded.extend(gathered.loaded.iter().cloned());
                eprintln!("backup: {}: {} cells in {} files", gathered.name, written.cells, written.files);
                images.push(Image {
                    table: gathered.name.to_string(),
                    parent: Some(parent),
                    schema: Image::schema_of(&gathered.descriptor),
                    regions,
                    snapshot: None,
                    cells: written.cells,
                    times_ms: gathered.times_ms,
                    sequence_ids: gathered.sequence_ids,
                    loaded_files: gathered.loaded.len() as u64,
                    files,
                });
            }
        }
        self.complete(admin, Kind::Incremental, id, started_ms, images, to, loaded).await
    }

    /// Reads the HFiles that were written, to the end.
    fn check(&self, id: &str, files: &[super::manifest::ImageFile]) -> anyhow::Result<()> {
        for file in files.iter().filter(|file| !file.path.ends_with("_SUCCESS")) {
            let path = FilePath::new(id).join(&file.path);
            Reader::open(&*self.place.volume, &path, ReaderContext::default())
                .and_then(|reader| reader.read_through())
                .with_context(|| format!("{path} does not read as it was written"))?;
        }
        Ok(())
    }

    /// Writes the manifest, and marks what the next increment needs. `covered`: files loaded in bulk that the backup holds.
    #[allow(clippy::too_many_arguments, reason = "the parts of one manifest")]
    async fn complete(
        &self,
        admin: &Admin,
        kind: Kind,
        id: String,
        started_ms: i64,
        tables: Vec<Image>,
        logs: Boundaries,
        mut covered: BTreeSet<String>,
    ) -> anyhow::Result<Manifest> {
        let completed_ms = SystemClock::new().now_ms().0;
        let set = self.set.clone();
        let manifest = Manifest { id, kind, merged: Vec::new(), set, started_ms, completed_ms, tables, logs };
        self.place.complete(&manifest)?;
        let backups = self.place.backups()?;
        let there: BTreeSet<String> =
            admin.list_table_names(None, false).await?.iter().map(ToString::to_string).collect();
        let before = self.root.hold(self.place)?.unwrap_or_else(Hold::default).covered;
        covered.extend(before);
        let mut present = BTreeSet::new();
        for table in backups.tables() {
            present.extend(loaded_files(&*self.root.reading, &table_name(&table)?, false)?);
        }
        covered.retain(|name| present.contains(name));
        self.root.mark(self.place, &backups, &there, covered)?;
        Ok(manifest)
    }
}
