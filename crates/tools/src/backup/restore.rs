//! `basalt restore`: a table out of a full image, to which the increments up to a backup are loaded in bulk. Follows: `RestoreDriver`,
//! `RestoreTablesClient`.

use std::process::ExitCode;

use anyhow::{Context, bail};
use base::Config;
use client::{Admin, Connection};
use fs::FilePath;
use model::{TableDescriptor, TableName};
use serde_json::json;

use super::Root;
use super::manifest::{Backups, Image, ImageFile, Manifest, Place};
use crate::arguments::{self, Known, flag, valued};
use crate::jobs::bulk_load::load_dir;
use crate::jobs::{defines, helped, on_cluster, table_name};
use crate::places::Opener;
use crate::snapshot_tool::copy::{self, Manner, copy_all};
use crate::snapshot_tool::export::transfer;

const USAGE: &str = "\
Makes tables as they were in a backup.

Usage: basalt restore [-D KEY=VALUE]... ROOT ID [OPTIONS]

    ROOT              the directory of the backups
    ID                the backup up to which; basalt backup list shows them
    -t TABLES         these tables, parted by commas; all of the backup unless given
    -s SET            the tables of this set
    -m NEW-NAMES      what they are called here, in the same order
    -o, --overwrite   a table of that name that is there is dropped for it
    -c, --check       looks whether all files are there and whole, and changes nothing
    -w, --workers N   files that are copied at the same time; 4
    --json            one JSON object
    --help            this text

hbase.rootdir must name the cluster's root directory. All files are read and compared with their checksums before anything is changed. One
that was broken off is begun again with the same words and -o: files that were copied are kept.

Ends with 0 when the tables are restored, with 1 after an error.

Examples:
  basalt restore /backups backup_1700000000000
  basalt restore /backups backup_1700000000000 -t orders -m orders_then
  basalt restore /backups backup_1700000000000 -t orders -o
";

const KNOWN: &[Known] = &[
    valued("t", "table"),
    valued("s", "set"),
    valued("m", "mapping"),
    valued("w", "workers"),
    flag("o", "overwrite"),
    flag("c", "check"),
    flag("", "json"),
];

/// A table to be restored.
struct Task<'a> {
    chain: Vec<(&'a Manifest, &'a Image)>,
    target: TableName,
}

/// Runs the tool; the code that the process ends with.
///
/// # Errors
/// The arguments make no sense, a file is damaged, a table is there, the cluster refuses something.
pub fn run(opener: &dyn Opener, config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(code) = helped(USAGE, given) {
        return Ok(code);
    }
    let (config, rest) = defines(config, given)?;
    let parsed = arguments::parse("restore", KNOWN, &rest)?;
    let [place, id] = parsed.rest.as_slice() else { bail!("restore: a directory and a backup's id are needed") };
    let place = Place::open(opener, &config, place, false)?;
    let backups = place.backups()?;
    let of_set = match (parsed.value("table"), parsed.value("set")) {
        (Some(_), Some(_)) => bail!("restore: -t or -s, but not both"),
        (None, Some(set)) => Some(place.set(set)?.into_iter().collect::<Vec<_>>().join(",")),
        _ => None,
    };
    let tasks = tasks(&backups, id, parsed.value("table").or(of_set.as_deref()), parsed.value("mapping"))?;
    let mut bytes = 0;
    for task in &tasks {
        for (manifest, image) in &task.chain {
            bytes += image.bytes();
            if let Some((file, why)) = place.faults(&manifest.id, image, false)?.first() {
                bail!("{file}: {why}; nothing was changed");
            }
        }
    }
    let names: Vec<String> = tasks.iter().map(|task| task.target.to_string()).collect();
    if parsed.has("check") {
        match parsed.has("json") {
            true => println!("{}", json!({"id": id, "tables": names, "bytes": bytes, "restored": false})),
            false => println!("{} can be restored: {} tables from {bytes} bytes", id, tasks.len()),
        }
        return Ok(ExitCode::SUCCESS);
    }
    let root = Root::open(opener, &config)?;
    let overwrite = parsed.has("overwrite");
    let manner = Manner { threads: parsed.number("workers")?.unwrap_or(4), bytes_per_second: None, verify: true };
    // The work runs on the thread that waits for it, which no other task needs: it may block.
    let (own, tasks, place, root) = (&config, &tasks, &place, &root);
    on_cluster(own, |connection| async move {
        let admin = connection.admin();
        for task in tasks {
            if !overwrite && admin.table_exists(&task.target).await? {
                bail!("table {} is there: -o drops it for the one of the backup; nothing was changed", task.target);
            }
        }
        for task in tasks {
            let restore = Restore { config: own, place, root, connection: &connection, manner };
            restore.run(&admin, task).await.with_context(|| format!("table {}", task.target))?;
            eprintln!("restore: {} is restored from {} backups", task.target, task.chain.len());
        }
        Ok(())
    })?;
    match parsed.has("json") {
        true => println!("{}", json!({"id": id, "tables": names, "bytes": bytes, "restored": true})),
        false => println!("Restored {} to {id}", names.join(", ")),
    }
    Ok(ExitCode::SUCCESS)
}

fn tasks<'a>(
    backups: &'a Backups,
    id: &str,
    tables: Option<&str>,
    mapping: Option<&str>,
) -> anyhow::Result<Vec<Task<'a>>> {
    let words = |text: &str| text.split(',').map(|word| word.trim().to_owned()).collect::<Vec<_>>();
    let tables = match tables {
        Some(text) => words(text),
        None => backups.get(id)?.tables.iter().map(|image| image.table.clone()).collect(),
    };
    let targets = mapping.map_or_else(|| tables.clone(), words);
    if targets.len() != tables.len() {
        bail!("restore: {} tables and {} new names: there must be as many", tables.len(), targets.len());
    }
    let task = |(table, target): (&String, &String)| {
        // As a name is written, `default:t` or `t`.
        let table = table_name(table)?.to_string();
        Ok(Task { chain: backups.chain(id, &table)?, target: table_name(target)? })
    };
    tables.iter().zip(&targets).map(task).collect()
}

struct Restore<'a> {
    config: &'a Config,
    place: &'a Place,
    root: &'a Root,
    connection: &'a Connection,
    manner: Manner,
}

impl Restore<'_> {
    async fn run(&self, admin: &Admin, task: &Task<'_>) -> anyhow::Result<()> {
        let Some(((full, image), increments)) = task.chain.split_first() else { bail!("there is nothing to restore") };
        let snapshot = image.snapshot.as_deref().context("the full backup names no snapshot")?;
        let from = self.place.directory.below(&Place::image_dir(&full.id, &image.name()?));
        let target = format!("basalt_restore_{}_{:08x}", full.id, crc32fast::hash(task.target.as_str().as_bytes()));
        let copied = transfer(&*from, &*self.root.home.volume, snapshot, &target, self.manner)?;
        eprintln!("restore: {}: {} files copied, {} were there", task.target, copied.files, copied.kept);
        if admin.table_exists(&task.target).await? {
            if admin.is_enabled(&task.target).await? {
                admin.disable_table(&task.target).await?;
            }
            admin.delete_table(&task.target).await?;
        }
        admin.clone_snapshot(&target, &task.target).await?;
        self.shape(admin, &task.target, increments.last().map_or(*image, |(_, image)| *image)).await?;
        let mut config = self.config.clone();
        // What was staged is a copy.
        config.set("always.copy.files", self.place.directory.is_beside(&self.root.home).to_string());
        config.set("ignore.unmatched.families", "yes");
        config.set("hbase.loadincremental.validate.hfile", "false");
        config.set("hbase.mapreduce.bulkload.max.hfiles.perRegion.perFamily", i32::MAX.to_string());
        for (manifest, image) in increments {
            let dir = Place::image_dir(&manifest.id, &image.name()?);
            let loaded = match self.place.directory.is_beside(&self.root.home) {
                true => {
                    let source = self.place.directory.source();
                    load_dir(self.connection, &config, &task.target, &source, &dir).await?
                }
                false => {
                    let copied = self.stage(&target, manifest, image)?;
                    load_dir(self.connection, &config, &task.target, &self.root.home.source(), &copied).await?
                }
            };
            eprintln!("restore: {}: {} files of {} loaded", task.target, loaded.files, manifest.id);
        }
        self.clear(&target)?;
        // The table's links keep what was copied.
        Ok(admin.delete_snapshot(&target).await?)
    }

    /// Where increments of backups on another file system than the cluster's are, until they are loaded.
    fn staging(target: &str) -> FilePath {
        FilePath::new(rootdir::paths::STAGING).join(target)
    }

    /// Copies an increment's files to where the servers can read them.
    fn stage(&self, target: &str, manifest: &Manifest, image: &Image) -> anyhow::Result<FilePath> {
        self.clear(target)?;
        let (from, to) = (Place::image_dir(&manifest.id, &image.name()?), Self::staging(target));
        let task = |file: &ImageFile| {
            let path = FilePath::new(&manifest.id).join(&file.path);
            let below = path.as_str().strip_prefix(from.as_str()).and_then(|path| path.strip_prefix('/'));
            // Left out it would be missing from the table.
            let below = below
                .with_context(|| format!("the manifest of {} names {path}, which is not below {from}", manifest.id))?;
            Ok(copy::Task { to: to.join(below), from: path, len_bytes: file.bytes })
        };
        let tasks: Vec<copy::Task> = image.files.iter().map(task).collect::<anyhow::Result<_>>()?;
        self.root.home.volume.create_dir_all_durable(&to)?;
        copy_all(&*self.place.volume, &*self.root.home.volume, &tasks, self.manner)?;
        Ok(to)
    }

    fn clear(&self, target: &str) -> anyhow::Result<()> {
        Ok(self.root.home.volume.remove_dir_all(&Self::staging(target))?)
    }

    /// Gives the table the descriptor that it had in the last of the backups.
    async fn shape(&self, admin: &Admin, target: &TableName, last: &Image) -> anyhow::Result<()> {
        let wanted = TableDescriptor { name: target.clone(), ..last.descriptor()? };
        let found = admin.describe(target).await?.context("the table is gone")?;
        if found.families != wanted.families || found.configuration != wanted.configuration {
            admin.modify_table(&wanted).await?;
        }
        Ok(())
    }
}
