//! `basalt snapshot export` and `import`: a snapshot with its files goes into the archive of another root directory, where a table can be cloned
//! from it. Follows: `ExportSnapshot`.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use base::Config;
use fs::{FilePath, LocalVolume, Volume};
use proto::Message;
use rootdir::snapshot;
use serde_json::json;

use super::copy::{self, Copied, Manner, Task};
use super::files::{self as snapshot_files, Found};
use super::verify;
use crate::arguments::{self, Known, Parsed, flag, valued};
use crate::files;
use crate::log::Log;

/// Which way a snapshot goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// Out of hbase.rootdir.
    Out,
    /// Into it.
    In,
}

const USAGE: &str = "\
Copies a snapshot with its files from one root directory into another. A table can then be cloned from it there. A server may run on either.

Usage: basalt snapshot export --snapshot NAME --copy-to DIR [OPTIONS]
       basalt snapshot import --snapshot NAME --copy-from DIR [OPTIONS]

    --snapshot NAME        the snapshot
    --copy-to DIR          the root directory that it goes to (import: hbase.rootdir)
    --copy-from DIR        the root directory that it comes from (export: hbase.rootdir)
    --target NAME          what it is called there
    --overwrite            replaces a snapshot of that name, and one that is being copied
    --no-checksum-verify   compares names and lengths only
    --no-source-verify     does not look at the source before
    --no-target-verify     does not look at the target behind
    --reset-ttl            the copy lives for ever
    --chuser USER          owner of the files, by name or number
    --chgroup GROUP        group of the files
    --chmod MODE           permissions of the files, such as 640
    --mappers N            files that are copied at the same time; 4
    --bandwidth MB         megabytes in a second at most
    --json                 one JSON object at the end
    --help                 this text

A run that was broken off is begun again with the same words and --overwrite: what was copied is kept.

Examples:
  basalt snapshot export --snapshot before --copy-to /backup/hbase --mappers 8 --bandwidth 100
  basalt snapshot import --snapshot before --copy-from /backup/hbase --target restored
";

const KNOWN: &[Known] = &[
    valued("", "snapshot"),
    valued("", "copy-to"),
    valued("", "copy-from"),
    valued("", "target"),
    valued("", "chuser"),
    valued("", "chgroup"),
    valued("", "chmod"),
    valued("", "mappers"),
    valued("", "bandwidth"),
    valued("", "storage-policy"),
    valued("", "custom-file-grouper"),
    valued("", "file-location-resolver"),
    flag("", "overwrite"),
    flag("", "no-checksum-verify"),
    flag("", "no-source-verify"),
    flag("", "no-target-verify"),
    flag("", "reset-ttl"),
    flag("", "json"),
];

pub(super) fn run(config: &Config, given: &[String], direction: Direction) -> anyhow::Result<ExitCode> {
    if given.is_empty() || arguments::wants_help(given) {
        print!("{USAGE}");
        return Ok(if given.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    let tool = if direction == Direction::Out { "snapshot export" } else { "snapshot import" };
    let parsed = arguments::parse(tool, KNOWN, given)?;
    for refused in ["storage-policy", "custom-file-grouper", "file-location-resolver"] {
        if parsed.has(refused) {
            bail!("{tool}: --{refused} is for Hadoop's file systems and classes of Java's; there are none here");
        }
    }
    let export = Export::of(config, &parsed, direction, tool)?;
    let log = Log::new("snapshot.ExportSnapshot");
    let copied = export.run(&log)?;
    let (name, Copied { files, bytes, kept }) = (&export.target, copied);
    log.info("main", format!("Export Completed: {name}: {files} files with {bytes} bytes, {kept} were there"));
    if parsed.has("json") {
        println!("{}", json!({"snapshot": name, "files": files, "bytes": bytes, "kept": kept}));
    }
    Ok(ExitCode::SUCCESS)
}

struct Export {
    name: String,
    target: String,
    from: PathBuf,
    to: PathBuf,
    overwrite: bool,
    verify_source: bool,
    verify_target: bool,
    reset_ttl: bool,
    manner: Manner,
    owner: Owner,
}

/// Whose files are, and who may read them.
#[derive(Default)]
struct Owner {
    user: Option<u32>,
    group: Option<u32>,
    mode: Option<u32>,
}

impl Export {
    fn of(config: &Config, parsed: &Parsed, direction: Direction, tool: &str) -> anyhow::Result<Export> {
        let name = parsed.value("snapshot").with_context(|| format!("{tool}: --snapshot is needed"))?;
        let side = |option: &str, is_own: bool| match parsed.value(option) {
            Some(place) => files::place(place),
            None if is_own => files::root_place(config),
            None => bail!("{tool}: --{option} is needed"),
        };
        let from = side("copy-from", direction == Direction::Out)?;
        let to = side("copy-to", direction == Direction::In)?;
        if from == to {
            bail!("{tool}: {} would be copied onto itself", from.display());
        }
        let mode = parsed.value("chmod").map(|mode| {
            u32::from_str_radix(mode, 8)
                .ok()
                .filter(|mode| *mode <= 0o7777)
                .with_context(|| format!("--chmod {mode}: permissions are octal digits, such as 640"))
        });
        let id = |option: &str, file: &str| parsed.value(option).map(|name| account(name, Path::new(file))).transpose();
        let bandwidth: Option<u64> = parsed.number("bandwidth")?;
        Ok(Export {
            name: name.to_owned(),
            target: parsed.value("target").unwrap_or(name).to_owned(),
            from,
            to,
            overwrite: parsed.has("overwrite"),
            verify_source: !parsed.has("no-source-verify"),
            verify_target: !parsed.has("no-target-verify"),
            reset_ttl: parsed.has("reset-ttl"),
            manner: Manner {
                threads: parsed.number("mappers")?.unwrap_or(4),
                bytes_per_second: bandwidth.filter(|mb| *mb > 0).map(|mb| mb.saturating_mul(1 << 20)),
                verify: !parsed.has("no-checksum-verify"),
            },
            owner: Owner {
                user: id("chuser", "/etc/passwd")?,
                group: id("chgroup", "/etc/group")?,
                mode: mode.transpose()?,
            },
        })
    }

    fn run(&self, log: &Log) -> anyhow::Result<Copied> {
        snapshot::check_name(&self.target).map_err(|error| anyhow::anyhow!("--target {}: {error}", self.target))?;
        let from = files::root(&self.from)?;
        let from = &*from;
        let read = snapshot_files::read(from, &self.name)?;
        let found = snapshot_files::find(from, &read.manifest)?;
        if self.verify_source {
            log.info("main", "Verify the source snapshot's integrity.");
            let wrong = found.iter().find(|one| one.place.is_none() || one.is_corrupted());
            if let Some(wrong) = wrong {
                bail!("the snapshot {} is not whole: {} is missing or of another length", self.name, wrong.file.name);
            }
        }
        let to = LocalVolume::open(&self.to).with_context(|| format!("cannot write {}", self.to.display()))?;
        let (completed, working) = (snapshot::completed_dir(&self.target), snapshot::working_dir(&self.target));
        self.make_room(&to, &completed, &working)?;
        // Before the files: a cleaner keeps what a snapshot names, one that is being copied, too.
        self.copy_manifest(from, &to, &working)?;
        let tasks = tasks(&found);
        log.info("main", format!("Copy {} files from {} to {}", tasks.len(), self.from.display(), self.to.display()));
        let copied = copy::copy_all(from, &to, &tasks, self.manner)?;
        for task in &tasks {
            self.set_owner(&task.to)?;
        }
        to.rename_new(&working, &completed)?;
        to.sync_dir(&snapshot::snapshots_dir())?;
        if self.verify_target {
            log.info("main", "Verify the exported snapshot's integrity.");
            let wrong = verify::check(&Config::default(), &to, &self.target, true)?;
            if let Some((file, why)) = wrong.files.first() {
                bail!("the copy is not whole: {file}: {why}");
            }
        }
        Ok(copied)
    }

    /// Refuses, or removes, what is called like the copy.
    fn make_room(&self, to: &LocalVolume, completed: &FilePath, working: &FilePath) -> anyhow::Result<()> {
        for (dir, what) in [(completed, "already exists"), (working, "may be in progress")] {
            if !to.exists(dir)? {
                continue;
            }
            if !self.overwrite {
                bail!(
                    "The snapshot '{}' {what} in the destination: {}/{dir}; --overwrite replaces it",
                    self.target,
                    self.to.display()
                );
            }
            to.remove_dir_all(dir)?;
            to.sync_dir(&dir.parent())?;
        }
        Ok(())
    }

    fn copy_manifest(&self, from: &dyn Volume, to: &LocalVolume, working: &FilePath) -> anyhow::Result<()> {
        for path in copy_manifest(from, to, &self.name, &self.target, self.reset_ttl)? {
            debug_assert_eq!(path.parent(), *working);
            self.set_owner(&path)?;
        }
        Ok(())
    }

    /// Gives a file of the copy to whom it was asked to be given.
    fn set_owner(&self, path: &FilePath) -> anyhow::Result<()> {
        let place = self.to.join(path.as_str());
        if let Some(mode) = self.owner.mode {
            std::fs::set_permissions(&place, std::fs::Permissions::from_mode(mode))
                .with_context(|| format!("cannot set the permissions of {}", place.display()))?;
        }
        if self.owner.user.is_some() || self.owner.group.is_some() {
            std::os::unix::fs::chown(&place, self.owner.user, self.owner.group)
                .with_context(|| format!("cannot give {} to another owner", place.display()))?;
        }
        Ok(())
    }
}

/// What is to be copied of a snapshot's files.
fn tasks(found: &[Found<'_>]) -> Vec<Task> {
    let task =
        |one: &Found<'_>| Some(Task { from: one.place.clone()?, to: one.home.clone(), len_bytes: one.len_bytes });
    found.iter().filter_map(task).collect()
}

/// Writes what describes the snapshot `name` into the working directory of one called `target`; what was written.
fn copy_manifest(
    from: &dyn Volume,
    to: &dyn Volume,
    name: &str,
    target: &str,
    reset_ttl: bool,
) -> anyhow::Result<Vec<FilePath>> {
    let (source, working) = (snapshot::completed_dir(name), snapshot::working_dir(target));
    to.create_dir_all_durable(&working)?;
    let mut written = Vec::new();
    for entry in from.list(&source)?.iter().filter(|entry| !entry.is_dir) {
        let mut bytes = from.read(&source.join(&entry.name))?;
        if entry.name == snapshot::INFO_FILE {
            let mut described = snapshot::read_description(from, &source)?;
            target.clone_into(&mut described.name);
            if reset_ttl {
                described.ttl = Some(0);
            }
            bytes = described.encode_to_vec();
        }
        to.publish(&working.join(&entry.name), &bytes)?;
        written.push(working.join(&entry.name));
    }
    Ok(written)
}

/// Copies the snapshot `name` of one root directory into another, where it is called `target`. What an earlier try left of it is replaced, and
/// files that it copied are compared and kept.
///
/// # Errors
/// The snapshot is not there or not whole, or a file cannot be copied.
pub(crate) fn transfer(
    from: &dyn Volume,
    to: &dyn Volume,
    name: &str,
    target: &str,
    manner: Manner,
) -> anyhow::Result<Copied> {
    let read = snapshot_files::read(from, name)?;
    let found = snapshot_files::find(from, &read.manifest)?;
    if let Some(wrong) = found.iter().find(|one| one.place.is_none() || one.is_corrupted()) {
        bail!("the snapshot {name} is not whole: {} is missing or of another length", wrong.file.name);
    }
    let (completed, working) = (snapshot::completed_dir(target), snapshot::working_dir(target));
    for dir in [&completed, &working] {
        if to.exists(dir)? {
            to.remove_dir_all(dir)?;
            to.sync_dir(&dir.parent())?;
        }
    }
    // Before the files: a cleaner keeps what a snapshot names, one that is being copied, too.
    copy_manifest(from, to, name, target, true)?;
    let copied = copy::copy_all(from, to, &tasks(&found), manner)?;
    to.rename_new(&working, &completed)?;
    to.sync_dir(&snapshot::snapshots_dir())?;
    Ok(copied)
}

/// The number of a user or a group: given as it is, or by its name in a file of `name:x:number:...`.
fn account(name: &str, file: &Path) -> anyhow::Result<u32> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let number = text.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok()).flatten()
    });
    number.with_context(|| format!("{name} is not in {}", file.display()))
}
