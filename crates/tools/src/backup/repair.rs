//! `basalt backup progress` and `repair`: what becomes of a backup that was begun, and of marks whose backups are elsewhere now. Follows:
//! `BackupCommands.ProgressCommand`, `RepairCommand`.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::{Context, bail};
use base::Config;
use client::Admin;
use rootdir::backup_hold;
use serde_json::json;

use super::Root;
use super::manifest::{Backups, Kind, Place, Unfinished};
use crate::arguments::{self, Known, flag, valued};
use crate::jobs::{on_cluster, table_name};
use crate::places::Opener;

const PROGRESS: &[Known] = &[flag("", "json")];
const REPAIR: &[Known] = &[valued("", "moved-from")];

impl Place {
    /// How much of a backup that was begun is done, in percent of its tables.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn progress(&self, state: &Unfinished) -> anyhow::Result<usize> {
        let mut done = 0;
        for table in &state.tables {
            let image = Place::image_dir(&state.id, &table_name(table)?);
            let is_done = match state.kind {
                // What is being copied has a directory of another name.
                Kind::Full => {
                    let snapshots = rootdir::list_if_exists(
                        &*self.volume,
                        &image.join(rootdir::snapshot::snapshots_dir().as_str()),
                    )?;
                    snapshots.iter().any(|entry| entry.is_dir && !entry.name.starts_with('.'))
                }
                Kind::Incremental => self.volume.exists(&image.join("_SUCCESS"))?,
            };
            done += usize::from(is_done);
        }
        Ok(done * 100 / state.tables.len().max(1))
    }
}

pub(super) fn progress(opener: &dyn Opener, config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    let parsed = arguments::parse("backup progress", PROGRESS, given)?;
    let (place, id) = match parsed.rest.as_slice() {
        [place] => (place, None),
        [place, id] => (place, Some(id)),
        _ => bail!("backup progress: name the backup directory, and a backup id where it is not the one under way"),
    };
    let place = Place::open(opener, config, place, false)?;
    let begun: Vec<Unfinished> = place.unfinished()?.into_iter().filter_map(|(_, state)| state).collect();
    let say = |id: &str, percent: usize| match parsed.has("json") {
        true => println!("{}", json!({"id": id, "progress": percent})),
        false => println!("{id} progress={percent}%"),
    };
    match id {
        None => {
            let state = begun.last().context("No active backup sessions found.")?;
            if !parsed.has("json") {
                println!("Found ongoing session with backupId={}", state.id);
            }
            say(&state.id, place.progress(state)?);
        }
        Some(id) => match begun.iter().find(|state| state.id == *id) {
            Some(state) => say(id, place.progress(state)?),
            None => {
                let backups = place.backups()?;
                backups.get(id).with_context(|| format!("No info was found for backup id: {id}"))?;
                say(id, 100);
            }
        },
    }
    Ok(ExitCode::SUCCESS)
}

/// Places whose marks keep logs and files in the root directory, and where no backups are: given up, moved, or on a disk that is missing.
///
/// # Errors
/// A mark cannot be read.
pub(super) fn without_backups(
    opener: &dyn Opener,
    config: &Config,
    root: &Root,
    own: &Place,
) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for (id, hold) in backup_hold::load(&*root.home.volume)? {
        if id == own.hold_id() {
            continue;
        }
        let is_there = Place::open(opener, config, &hold.place, false).is_ok_and(|place| {
            // One that cannot be read may hold some.
            place.backups().map_or(true, |backups| !backups.0.is_empty())
                || place.unfinished().map_or(true, |all| !all.is_empty())
        });
        if !is_there {
            found.push(hold.place);
        }
    }
    Ok(found)
}

/// What is said of such a place.
pub(super) fn advice(own: &Place, place: &str) -> String {
    format!(
        "a mark keeps logs and files for backups at {place}, and there are none: if they were moved here, basalt backup repair {} --moved-from \
         {place} gives the mark up",
        own.directory.name
    )
}

pub(super) fn repair(opener: &dyn Opener, config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    let parsed = arguments::parse("backup repair", REPAIR, given)?;
    let [place] = parsed.rest.as_slice() else { bail!("backup repair: name the backup directory") };
    let place = Place::open(opener, config, place, false)?;
    let _claimed = place.claim()?;
    let root = Root::open(opener, config)?;
    let backups = place.backups()?;
    let (own, root, backups) = (&place, &root, &backups);
    let there: BTreeSet<String> = on_cluster(config, |connection| async move {
        let admin = connection.admin();
        finish(own, backups, &admin).await?;
        Ok(admin.list_table_names(None, false).await?.iter().map(ToString::to_string).collect())
    })?;
    let mut covered = root.hold(&place)?.unwrap_or_default().covered;
    let holds = backup_hold::load(&*root.home.volume)?;
    let moved = match parsed.value("moved-from") {
        None => None,
        Some(from) => {
            let from = from.trim_end_matches('/');
            let of = holds.iter().find(|(_, hold)| hold.place.trim_end_matches('/') == from);
            let (id, hold) = of.with_context(|| {
                format!("no mark in the root directory is of backups at {from}; nothing was changed")
            })?;
            if *id == place.hold_id() {
                bail!(
                    "--moved-from {from} is this directory, name the one that the backups were moved from; nothing was changed"
                );
            }
            if !without_backups(opener, config, root, &place)?.contains(&hold.place) {
                bail!("there are backups at {from}, which need their mark; nothing was changed");
            }
            covered.extend(hold.covered.iter().cloned());
            Some(id)
        }
    };
    // The new mark first: nothing is without one.
    root.mark(&place, backups, &there, covered)?;
    if let Some(id) = moved {
        backup_hold::release(&*root.home.volume, id)?;
        println!("REPAIR status: the mark of {} is given up", holds[id].place);
    }
    for other in without_backups(opener, config, root, &place)? {
        println!("{}", advice(&place, &other));
    }
    println!("REPAIR status: {} backups are there, and what their next increments need is marked", backups.0.len());
    Ok(ExitCode::SUCCESS)
}

/// Ends what was broken off: a backup, a deletion, a merge.
async fn finish(place: &Place, backups: &Backups, admin: &Admin) -> anyhow::Result<()> {
    let begun = place.unfinished()?;
    if begun.is_empty() {
        println!("REPAIR status: no failed sessions found.");
    }
    for (id, state) in begun {
        drop_snapshots(admin, &id).await?;
        place.remove(&id)?;
        let what = match state {
            Some(state) => format!("{} backup of {}", state.kind.as_str(), state.tables.join(",")),
            None => "deletion".to_owned(),
        };
        println!("REPAIR status: finished repair failed session: {id}, {what}: what it left is removed");
    }
    for manifest in &backups.0 {
        drop_snapshots(admin, &manifest.id).await?;
        for merged in manifest.merged.iter().filter(|id| backups.0.iter().any(|other| other.id == **id)) {
            place.remove(merged)?;
            println!("Found failed MERGE operation for: {}; {merged}, which is in it, is removed", manifest.id);
        }
    }
    Ok(())
}

/// Removes the snapshots of a backup.
pub(super) async fn drop_snapshots(admin: &Admin, id: &str) -> anyhow::Result<()> {
    for snapshot in admin.list_snapshots().await? {
        if snapshot.name.starts_with(&format!("basalt_{id}_")) {
            admin.delete_snapshot(&snapshot.name).await?;
        }
    }
    Ok(())
}
