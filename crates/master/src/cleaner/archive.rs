//! The archive's directories: which files in them are old enough, what is deleted, which directories go.
//! Follows: `HFileCleaner`, `CleanerChore`, `HFileLinkCleaner`.

use super::ages::{self, Ages, PathKey};
use super::names::{self, FileId};
use super::proof::Proof;
use crate::Result;
use fs::{FilePath, Volume};
use model::TableName;
use rootdir::paths::{self, BACK_REFERENCES_PREFIX, archived_namespace_dir};
use rootdir::{archive_dir, archived_table_dir, data_dir, mob_region_name};

/// Files deleted before others get a turn on the disk.
const FILES_PER_STEP: usize = 64;

/// A family's directory in the archive.
#[derive(Clone, Debug)]
pub(super) struct ArchivedFamily {
    table: TableName,
    region: String,
    name: String,
}

impl ArchivedFamily {
    fn dir(&self) -> FilePath {
        archived_table_dir(&self.table).join(&self.region).join(&self.name)
    }

    /// The file that an entry of the family stands for.
    fn file(&self, name: &str) -> Option<FileId> {
        if self.region == mob_region_name(&self.table) { names::mob_file(name) } else { names::store_file(name) }
    }
}

/// When it is, and how long files are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub now_us: u64,
    pub ttl_us: u64,
}

/// The namespaces that have a directory in the archive. The master's own store is HBase's business.
pub(super) fn namespaces(volume: &dyn Volume) -> Result<Vec<String>> {
    let entries = rootdir::list_if_exists(volume, &archive_dir(&data_dir()))?;
    let legal = |name: &str| name != "master" && model::name::check_namespace(name).is_ok();
    Ok(entries.into_iter().filter(|entry| entry.is_dir && legal(&entry.name)).map(|entry| entry.name).collect())
}

/// The tables of a namespace that have a directory in the archive.
pub(super) fn tables(volume: &dyn Volume, namespace: &str) -> Result<Vec<TableName>> {
    let entries = rootdir::list_if_exists(volume, &archived_namespace_dir(namespace))?;
    let table = |name: &str| TableName::of(namespace, name).ok();
    Ok(entries.into_iter().filter(|entry| entry.is_dir).filter_map(|entry| table(&entry.name)).collect())
}

/// Regions of a table in the archive whose files' meaning is known.
fn regions(volume: &dyn Volume, table: &TableName) -> Result<Vec<String>> {
    let entries = rootdir::list_if_exists(volume, &archived_table_dir(table))?;
    let known = |name: &str| names::is_region(name);
    Ok(entries.into_iter().filter(|entry| entry.is_dir && known(&entry.name)).map(|entry| entry.name).collect())
}

/// Notes the age of every file of a table in `seen`, and adds the families in which one is old enough to `due`.
pub(super) fn survey(
    volume: &dyn Volume,
    table: &TableName,
    times: Times,
    before: &Ages,
    seen: &mut Ages,
    due: &mut Vec<ArchivedFamily>,
) -> Result<()> {
    for region in regions(volume, table)? {
        let region_dir = archived_table_dir(table).join(&region);
        for family in rootdir::list_if_exists(volume, &region_dir)? {
            if !family.is_dir
                || model::name::check_family(family.name.as_bytes()).is_err()
                || family.name == rootdir::recovered_edits::DIR
            {
                continue;
            }
            let family = ArchivedFamily { table: table.clone(), region: region.clone(), name: family.name };
            let dir = family.dir();
            let mut any_due = false;
            for entry in rootdir::list_if_exists(volume, &dir)? {
                let path = dir.join(&entry.name);
                if !entry.is_dir && family.file(&entry.name).is_some() {
                    any_due |= seen.note(before, &path, times.now_us, times.ttl_us);
                } else if entry.is_dir && entry.name.starts_with(BACK_REFERENCES_PREFIX) {
                    for back in rootdir::list_if_exists(volume, &path)? {
                        any_due |= seen.note(before, &path.join(&back.name), times.now_us, times.ttl_us);
                    }
                }
            }
            if any_due {
                due.push(family);
            }
        }
    }
    Ok(())
}

/// What one step of deleting did.
#[derive(Debug, Default)]
pub(super) struct Swept {
    /// Files that are gone.
    pub removed: Vec<PathKey>,
    /// Files that are old enough and needed.
    pub needed: Vec<PathKey>,
    /// Whether there is more to delete.
    pub more: bool,
}

/// Deletes files of a family that are old enough and that nobody needs; some, when there are many.
pub(super) fn sweep(
    volume: &dyn Volume,
    family: &ArchivedFamily,
    proof: &Proof,
    ages: &Ages,
    times: Times,
) -> Result<Swept> {
    let dir = family.dir();
    let mut swept = Swept::default();
    let entries = rootdir::list_if_exists(volume, &dir)?;
    // Back references first: with the last of them gone, the file itself may go.
    let back_dirs = entries.iter().filter(|entry| entry.is_dir);
    for file in back_dirs.filter_map(|entry| entry.name.strip_prefix(BACK_REFERENCES_PREFIX)) {
        sweep_back_references(volume, family, file, ages, times, &mut swept)?;
        if swept.more {
            return Ok(swept);
        }
    }
    for entry in entries.iter().filter(|entry| !entry.is_dir) {
        let path = dir.join(&entry.name);
        let Some(id) = family.file(&entry.name) else { continue };
        if !ages.is_due(&path, times.now_us, times.ttl_us) {
            continue;
        }
        let back_references = dir.join(format!("{}{}", BACK_REFERENCES_PREFIX, entry.name));
        let is_needed = proof.needs(id) || proof.is_held(&family.table, &entry.name);
        if is_needed || !rootdir::list_if_exists(volume, &back_references)?.is_empty() {
            swept.needed.push(ages::key(&path));
            continue;
        }
        if swept.removed.len() >= FILES_PER_STEP {
            swept.more = true;
            return Ok(swept);
        }
        volume.remove_file(&path)?;
        swept.removed.push(ages::key(&path));
    }
    Ok(swept)
}

/// Deletes back references whose links are gone, and their directory when it is empty and its file is gone too.
fn sweep_back_references(
    volume: &dyn Volume,
    family: &ArchivedFamily,
    file: &str,
    ages: &Ages,
    times: Times,
    swept: &mut Swept,
) -> Result<()> {
    let family_dir = family.dir();
    let dir = family_dir.join(format!("{}{file}", BACK_REFERENCES_PREFIX));
    if family.file(file).is_none() {
        return Ok(());
    }
    let entries = rootdir::list_if_exists(volume, &dir)?;
    let mut left = entries.len();
    for entry in entries {
        let path = dir.join(&entry.name);
        if entry.is_dir || !ages.is_due(&path, times.now_us, times.ttl_us) {
            continue;
        }
        let Some((region, table)) = names::back_reference(&entry.name) else { continue };
        let link = rootdir::table_dir(&table).join(region).join(&family.name).join(rootdir::link_name(
            &family.table,
            &family.region,
            file,
        ));
        let mut is_linked = false;
        for tree in ["", paths::TEMP, paths::MOB] {
            is_linked |= volume.exists(&FilePath::new(tree).join(link.as_str()))?;
        }
        if is_linked {
            swept.needed.push(ages::key(&path));
            continue;
        }
        if swept.removed.len() >= FILES_PER_STEP {
            swept.more = true;
            return Ok(());
        }
        volume.remove_file(&path)?;
        swept.removed.push(ages::key(&path));
        left -= 1;
    }
    if left == 0 && !volume.exists(&family_dir.join(file))? {
        volume.remove_dir_all(&dir)?;
    }
    Ok(())
}

/// Directories of regions in the archive that hold nothing any more and to which nothing can be archived, for the
/// region is gone from `data`.
pub(super) fn empty_regions(volume: &dyn Volume, table: &TableName) -> Result<Vec<String>> {
    let mut empty = Vec::new();
    let mob_region = mob_region_name(table);
    for region in regions(volume, table)? {
        // Large values come to the archive as long as their table is there.
        let home = rootdir::table_dir(table);
        let home = if region == mob_region { home } else { home.join(&region) };
        if !volume.exists(&home)? && is_empty(volume, &archived_table_dir(table).join(&region))? {
            empty.push(region);
        }
    }
    Ok(empty)
}

/// Whether nothing but directories is in a region's directory, and perhaps the empty file that says which sequence ids
/// the region used.
fn is_empty(volume: &dyn Volume, region_dir: &FilePath) -> Result<bool> {
    fn only_dirs(volume: &dyn Volume, dir: &FilePath, depth_left: usize) -> Result<bool> {
        for entry in rootdir::list_if_exists(volume, dir)? {
            let is_seq_id = !entry.is_dir
                && entry.len == 0
                && dir.name() == rootdir::recovered_edits::DIR
                && entry.name.strip_suffix(".seqid").is_some_and(|id| id.parse::<u64>().is_ok());
            let is_empty_dir =
                entry.is_dir && depth_left > 0 && only_dirs(volume, &dir.join(&entry.name), depth_left - 1)?;
            if !is_seq_id && !is_empty_dir {
                return Ok(false);
            }
        }
        Ok(true)
    }
    only_dirs(volume, region_dir, 4)
}

/// Removes what [`empty_regions`] found, and the table's directory if nothing is left in it and the table is gone. The
/// caller holds the table's lock: nobody can be archiving to these places.
pub(super) fn remove_empty_dirs(volume: &dyn Volume, table: &TableName) -> Result<()> {
    let dir = archived_table_dir(table);
    for region in empty_regions(volume, table)? {
        volume.remove_dir_all(&dir.join(region))?;
    }
    if volume.exists(&dir)? && volume.list(&dir)?.is_empty() && !volume.exists(&rootdir::table_dir(table))? {
        volume.remove_dir_all(&dir)?;
    }
    Ok(())
}

/// Removes a namespace's directory if nothing is in it and the namespace is gone. The caller holds its lock.
pub(super) fn remove_empty_namespace(volume: &dyn Volume, namespace: &str) -> Result<()> {
    let dir = archived_namespace_dir(namespace);
    if volume.exists(&dir)? && volume.list(&dir)?.is_empty() && !volume.exists(&rootdir::namespace_dir(namespace))? {
        volume.remove_dir_all(&dir)?;
    }
    Ok(())
}
