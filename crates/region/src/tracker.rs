//! Which files are a store's: what its tracker says, kept up to date. Follows: `StoreFileTrackerBase` and those that extend it.
//!
//! Where a list says so, a file is in it before readers see the file, and out of it before it may leave the directory. What the directory
//! holds beside the list is left of work that was cut off, and goes when the region opens: nobody saw it, and whoever comes to read the
//! directory instead of the list must not either.

use crate::env::RegionEnv;
use crate::error::{RegionError, Result};
use crate::recovered_files::{self, list_with_recovered};
use crate::store_file::StoreFile;
use fs::{FilePath, Volume};
use model::{FamilyDescriptor, RegionInfo, TableDescriptor};
use parking_lot::Mutex;
use rootdir::tracker::list::{Entries, FileList, ListError, NotWritten};
use rootdir::{FileName, Tracker};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The tracker of a family, as its table and the server say.
///
/// # Errors
/// What they say makes none.
pub(crate) fn tracker_of(
    env: &RegionEnv,
    info: &RegionInfo,
    table: &TableDescriptor,
    family: &FamilyDescriptor,
) -> Result<Tracker> {
    Tracker::of(&env.settings.load().file_tracker, table, family).map_err(|error| {
        let (name, family) = (info.name_string(), cell::print::to_string_binary(&family.name));
        RegionError::DoNotRetry(format!("{name}: the store file tracker of family {family} is not known: {error}"))
    })
}

fn list_error(region: &Arc<str>, error: ListError) -> RegionError {
    match error {
        ListError::Io(error) => RegionError::volume(region, error),
        ListError::Damaged { .. } => RegionError::Damaged { region: region.clone(), what: error.to_string() },
    }
}

fn entry_of(file: &StoreFile) -> (String, u64) {
    let is_plain = file.parsed.link.is_none() && !file.is_reference();
    (file.name.clone(), if is_plain { file.reader.len_bytes() } else { 0 })
}

/// Names of the store files of a closed region's family.
///
/// # Errors
/// The volume fails, or the list is damaged.
pub(crate) fn names_of_closed(
    volume: &dyn Volume,
    region: &Arc<str>,
    dir: &FilePath,
    tracker: Tracker,
) -> Result<Vec<String>> {
    tracker.names_of_closed(volume, dir).map_err(|error| list_error(region, error))
}

/// Before files are moved into the families' directories of a region that opens: their lists name them. A process that dies on the way
/// finds them named, and moves the rest. One that is neither here nor there was moved before, and has gone its way since.
///
/// # Errors
/// The volume fails, or a list is damaged; nothing was moved.
pub(crate) fn name_before_moves(
    env: &RegionEnv,
    info: &RegionInfo,
    table: &TableDescriptor,
    moves: &[(FilePath, FilePath)],
) -> Result<()> {
    let volume = &*env.volume;
    let region = info.encoded_name();
    let wrap = |error| RegionError::volume(region, error);
    let mut arriving = BTreeMap::<FilePath, Entries>::new();
    for (from, to) in moves {
        let there = match volume.stat(from).map_err(wrap)? {
            None => volume.stat(to).map_err(wrap)?,
            found => found,
        };
        if let Some(entry) = there {
            arriving.entry(to.parent()).or_default().insert(to.name().to_owned(), entry.len);
        }
    }
    for (dir, arriving) in arriving {
        let Some(family) = table.families.get(dir.name().as_bytes()) else { continue };
        if tracker_of(env, info, table, family)?.keeps_list() {
            let now_ms = env.clock.now_ms().0;
            let (mut list, _) = FileList::open(volume, &dir, now_ms).map_err(|error| list_error(region, error))?;
            add(volume, &mut list, arriving, now_ms).map_err(|failed| wrap(failed.error))?;
        }
    }
    Ok(())
}

fn add(volume: &dyn Volume, list: &mut FileList, added: Entries, now_ms: i64) -> std::result::Result<(), NotWritten> {
    let mut entries = list.entries().clone();
    entries.extend(added);
    if entries == *list.entries() { Ok(()) } else { list.set(volume, entries, now_ms) }
}

/// Keeps the list of an open store's files, if there is one.
#[derive(Debug)]
pub(crate) struct StoreTracker {
    tracker: Tracker,
    list: Option<Mutex<FileList>>,
}

impl StoreTracker {
    /// Of a read replica's store, which keeps no list of the files that another keeps.
    pub(crate) fn of_replica(tracker: Tracker) -> StoreTracker {
        StoreTracker { tracker, list: None }
    }

    /// Which files the store of a read replica has now, by who keeps the list.
    ///
    /// # Errors
    /// The volume fails, or the list is damaged.
    pub(crate) fn names_of_primary(
        &self,
        volume: &dyn Volume,
        region: &Arc<str>,
        dir: &FilePath,
    ) -> Result<Vec<String>> {
        names_of_closed(volume, region, dir, self.tracker)
    }

    /// Opens it and says which files the store has, those of a dead server's edits too.
    ///
    /// # Errors
    /// The volume fails, or the list is damaged.
    pub(crate) fn open(
        env: &RegionEnv,
        region: &Arc<str>,
        dir: &FilePath,
        tracker: Tracker,
        directory_exists: bool,
    ) -> Result<(StoreTracker, Vec<String>)> {
        let volume = &*env.volume;
        let wrap = |error| RegionError::volume(region, error);
        if !tracker.keeps_list() {
            let listed = if directory_exists { list_with_recovered(volume, dir, true).map_err(wrap)? } else { vec![] };
            return Ok((StoreTracker { tracker, list: None }, listed.into_iter().map(|(name, _)| name).collect()));
        }
        let now_ms = env.clock.now_ms().0;
        let (mut list, was_there) = match tracker.reads_list() {
            true => FileList::open(volume, dir, now_ms).map_err(|error| list_error(region, error))?,
            // The directory counts, and the list is written after it, whatever it was.
            false => (FileList::anew(volume, dir, now_ms).map_err(wrap)?, false),
        };
        let names = if tracker.reads_list() {
            let waiting: Entries = recovered_files::waiting(volume, dir).map_err(wrap)?.into_iter().collect();
            add(volume, &mut list, waiting, now_ms).map_err(|failed| wrap(failed.error))?;
            let there = list_with_recovered(volume, dir, false).map_err(wrap)?;
            let strangers = there.into_iter().map(|(name, _)| name).filter(|name| !list.entries().contains_key(name));
            sweep(volume, dir, &strangers.collect::<Vec<_>>(), was_there).map_err(wrap)?;
            list.entries().keys().cloned().collect()
        } else {
            list_with_recovered(volume, dir, false).map_err(wrap)?.into_iter().map(|(name, _)| name).collect()
        };
        Ok((StoreTracker { tracker, list: Some(Mutex::new(list)) }, names))
    }

    /// The store has opened with these files. On a volume that others may be writing to, too, a list of this opening is written in any
    /// case: whoever had the region before writes under a lower number, which does not count any more.
    ///
    /// # Errors
    /// The volume fails.
    pub(crate) fn settle(&self, env: &RegionEnv, files: &[Arc<StoreFile>]) -> fs::Result<()> {
        let Some(list) = &self.list else { return Ok(()) };
        let mut list = list.lock();
        let entries: Entries = files.iter().map(|file| entry_of(file)).collect();
        let has_changed = list.entries().keys().ne(entries.keys());
        // Perhaps there is a list of long ago that would count when the migration is over.
        let begins_migration = !self.tracker.reads_list();
        let is_fence = env.volume.capabilities().shared && !entries.is_empty();
        if has_changed || begins_migration || is_fence {
            list.set(&*env.volume, entries, env.clock.now_ms().0).map_err(|failed| failed.error)?;
        }
        Ok(())
    }

    /// Whether there is a list beside the directory.
    pub(crate) fn keeps_list(&self) -> bool {
        self.list.is_some()
    }

    /// From now on these files are the store's and those are not.
    ///
    /// # Errors
    /// The volume fails. The former list holds, if the error says so.
    pub(crate) fn replace<'f>(
        &self,
        env: &RegionEnv,
        removed: impl Iterator<Item = &'f str>,
        added: &[Arc<StoreFile>],
    ) -> std::result::Result<(), NotWritten> {
        let Some(list) = &self.list else { return Ok(()) };
        let mut list = list.lock();
        let mut entries = list.entries().clone();
        removed.for_each(|name| _ = entries.remove(name));
        entries.extend(added.iter().map(|file| entry_of(file)));
        list.set(&*env.volume, entries, env.clock.now_ms().0)
    }
}

/// Files that the list does not name: what they hold is elsewhere, or was replaced. Without any list they stay: perhaps it was lost.
fn sweep(volume: &dyn Volume, dir: &FilePath, strangers: &[String], has_list: bool) -> fs::Result<()> {
    if strangers.is_empty() {
        return Ok(());
    }
    if !has_list {
        tracing::warn!(
            "{dir} has no list of its store files, and {} are there: they are passed over",
            strangers.join(", ")
        );
        return Ok(());
    }
    tracing::info!("{dir} holds {} beside its store files: left of work that was cut off", strangers.join(", "));
    let is_own =
        |name: &&String| FileName::parse(name).is_some_and(|name| name.link.is_none() && name.parent.is_none());
    let (own, foreign): (Vec<&String>, Vec<&String>) = strangers.iter().partition(is_own);
    rootdir::archive_files(volume, dir, &own.iter().map(|name| name.as_str()).collect::<Vec<_>>())?;
    for name in &foreign {
        // References and links hold no cells of their own.
        volume.remove_file(&dir.join(name))?;
    }
    if foreign.is_empty() { Ok(()) } else { volume.sync_dir(dir) }
}
