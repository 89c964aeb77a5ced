//! The archive: how files, families, regions and tables leave `data`. Follows: `HFileArchiver`.

use crate::paths::{
    DATA, TEMP, archive_dir, create_dirs_durable, family_names, list_if_exists, mob_dir, region_dir, region_names,
    remove_dir_durably, table_dir,
};
use crate::recovered_edits::{self, DeletedFamily};
use crate::store_file::{is_reference, reference_parent};
use fs::{DirEntry, FilePath, Result, Volume, publish_all, sync_dirs};
use model::{RegionInfo, TableName};
use std::collections::BTreeSet;

/// Moves the store files `names` of a family's directory to the archive. One that is gone already was moved before.
pub fn archive_files(volume: &dyn Volume, family_dir: &FilePath, names: &[&str]) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let target = archive_dir(family_dir);
    volume.create_dir_all_durable(&target)?;
    move_files(volume, family_dir, &target, names)?;
    // Durable at once: the file that replaced these may itself be archived next, and with it the knowledge that a
    // file that came back is a dead one.
    volume.sync_dir(&target)?;
    volume.sync_dir(family_dir)
}

/// As [`archive_files`], of many families' directories: all are moved before the first directory is synced.
pub(crate) fn archive_files_of_many(volume: &dyn Volume, families: &[(FilePath, Vec<String>)]) -> Result<()> {
    let moved = || families.iter().filter(|(_, names)| !names.is_empty());
    create_dirs_durable(volume, moved().map(|(dir, _)| archive_dir(dir)))?;
    for (dir, names) in moved() {
        move_files(volume, dir, &archive_dir(dir), names)?;
    }
    sync_dirs(volume, moved().map(|(dir, _)| archive_dir(dir)))?;
    sync_dirs(volume, moved().map(|(dir, _)| dir.clone()))
}

fn move_files(volume: &dyn Volume, from: &FilePath, to: &FilePath, names: &[impl AsRef<str>]) -> Result<()> {
    for name in names {
        match volume.rename(&from.join(name), &to.join(name)) {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Moves the files of one family's directory to the archive.
pub fn archive_family_dir(volume: &dyn Volume, dir: &FilePath) -> Result<()> {
    archive_family_dirs(volume, std::slice::from_ref(dir))
}

/// As [`archive_family_dir`], of many: all are moved before the first directory is synced.
fn archive_family_dirs(volume: &dyn Volume, dirs: &[FilePath]) -> Result<()> {
    let mut moved = Vec::with_capacity(dirs.len());
    for dir in dirs {
        let target = archive_dir(dir);
        let files: Vec<DirEntry> = list_if_exists(volume, dir)?.into_iter().filter(is_store_file).collect();
        // Also when nothing is left to move: an earlier attempt may have moved files and failed to make that durable.
        if !files.is_empty() || volume.exists(&target)? {
            moved.push((dir, target, files));
        }
    }
    let targets = || moved.iter().map(|(_, target, _)| target.clone());
    create_dirs_durable(volume, targets())?;
    for (dir, target, files) in &moved {
        files.iter().try_for_each(|file| volume.rename(&dir.join(&file.name), &target.join(&file.name)))?;
    }
    sync_dirs(volume, targets())
}

/// References are nothing of their own, and a file that was being written never became one.
fn is_store_file(entry: &DirEntry) -> bool {
    !entry.is_dir && !entry.name.starts_with('.') && !is_reference(&entry.name)
}

/// Empties `.tmp`, which is nobody's when a master starts: store files of tables that HBase was making or deleting there go to the archive, from
/// where links still find them. May be repeated after a crash. Follows: `MasterFileSystem#checkTempDir`.
///
/// # Errors
/// What the volume says.
pub fn clear_temp(volume: &dyn Volume) -> Result<()> {
    let temp = FilePath::new(TEMP);
    let left = list_if_exists(volume, &temp)?;
    if left.is_empty() {
        return Ok(());
    }
    let dirs = |dir: &FilePath| -> Result<Vec<FilePath>> {
        let entries = list_if_exists(volume, dir)?.into_iter().filter(|entry| entry.is_dir);
        Ok(entries.map(|entry| dir.join(&entry.name)).collect())
    };
    for namespace in dirs(&temp.join(DATA))? {
        for table in dirs(&namespace)? {
            for region in region_names(volume, &table)?.into_iter().map(|region| table.join(&region)) {
                for family in family_names(volume, &region)? {
                    let from = region.join(&family);
                    let files = list_if_exists(volume, &from)?.into_iter().filter(is_store_file);
                    let names: Vec<String> = files.map(|entry| entry.name).collect();
                    if names.is_empty() {
                        continue;
                    }
                    let home = [namespace.name(), table.name(), region.name(), &family];
                    let to = archive_dir(&home.iter().fold(FilePath::new(DATA), |dir, name| dir.join(name)));
                    volume.create_dir_all_durable(&to)?;
                    move_files(volume, &from, &to, &names)?;
                    volume.sync_dir(&to)?;
                }
            }
        }
    }
    for entry in left {
        let path = temp.join(&entry.name);
        if entry.is_dir { volume.remove_dir_all(&path)? } else { volume.remove_file(&path)? }
    }
    volume.sync_dir(&temp)
}

/// Moves a region's store files to the archive and removes its directory.
pub fn archive_region_dir(volume: &dyn Volume, dir: &FilePath) -> Result<()> {
    archive_region_dirs(volume, std::slice::from_ref(dir))
}

/// As [`archive_region_dir`], of many.
fn archive_region_dirs(volume: &dyn Volume, dirs: &[FilePath]) -> Result<()> {
    let mut families = Vec::with_capacity(dirs.len());
    for dir in dirs {
        families.extend(family_names(volume, dir)?.iter().map(|family| dir.join(family)));
    }
    archive_family_dirs(volume, &families)?;
    dirs.iter().try_for_each(|dir| volume.remove_dir_all(dir))?;
    let parents: BTreeSet<FilePath> = dirs.iter().map(FilePath::parent).collect();
    for parent in &parents {
        if volume.exists(parent)? {
            volume.sync_dir(parent)?;
        }
    }
    Ok(())
}

/// Moves every region of a table but `kept` to the archive, those too that hbase:meta does not name any more: they were merged, and
/// are there for their files alone.
pub fn archive_other_regions(volume: &dyn Volume, table: &TableName, kept: &[RegionInfo]) -> Result<()> {
    let home = table_dir(table);
    let kept: BTreeSet<&str> = kept.iter().map(|info| &**info.encoded_name()).collect();
    let others = region_names(volume, &home)?.into_iter().filter(|region| !kept.contains(region.as_str()));
    archive_region_dirs(volume, &others.map(|region| home.join(region)).collect::<Vec<_>>())?;
    // Also when there was nothing left to move: an earlier attempt may have failed to make that durable.
    volume.sync_dir(&home)
}

/// Moves every region of a table to the archive (large values' regions too) and removes the table's directory.
pub fn archive_table(volume: &dyn Volume, table: &TableName) -> Result<()> {
    let home = table_dir(table);
    for dir in [mob_dir(&home), home] {
        let regions = region_names(volume, &dir)?.into_iter().map(|region| dir.join(region));
        archive_region_dirs(volume, &regions.collect::<Vec<_>>())?;
        remove_dir_durably(volume, &dir)?;
    }
    Ok(())
}

/// Moves the files of families that a table no longer has to the archive, in every region. A region that was not closed since they went
/// (a crash came between, or it could not be opened) finds their edits in its logs: before their directories go, each region is told
/// not to take them for those of a family that gets the same name later.
pub fn archive_families(volume: &dyn Volume, table: &TableName, families: &[String]) -> Result<()> {
    let home = table_dir(table);
    for dir in [mob_dir(&home), home.clone()] {
        for region in region_names(volume, &dir)? {
            let region_dir = dir.join(region);
            if dir == home {
                note_deleted(volume, &region_dir, families)?;
            }
            for family in families {
                let family_dir = region_dir.join(family);
                archive_family_dir(volume, &family_dir)?;
                remove_dir_durably(volume, &family_dir)?;
            }
        }
    }
    Ok(())
}

/// Empties a closed region: its store files go to the archive, and what logs still have for `families` is of no use to it. What its
/// directory says of sequence ids stays, so that ids grow. Durable; may be repeated until the region is opened.
///
/// Follows: `TruncateRegionProcedure`, which deletes the region's directory and makes it anew.
pub fn truncate_region(volume: &dyn Volume, info: &RegionInfo, families: &[String]) -> Result<()> {
    let dir = region_dir(info);
    note_deleted(volume, &dir, families)?;
    for family in family_names(volume, &dir)? {
        let family = dir.join(&family);
        archive_family_dir(volume, &family)?;
        // With references to other regions' files, which are nothing of their own.
        remove_dir_durably(volume, &family)?;
    }
    Ok(())
}

/// Tells a closed region that whatever logs have for these families is of no use to it.
pub(crate) fn note_deleted(volume: &dyn Volume, region_dir: &FilePath, families: &[String]) -> Result<()> {
    note_deleted_of_many(volume, &[(region_dir.clone(), families)])
}

/// As [`note_deleted`], of many regions.
pub(crate) fn note_deleted_of_many<N: AsRef<[String]>>(volume: &dyn Volume, regions: &[(FilePath, N)]) -> Result<()> {
    create_dirs_durable(volume, regions.iter().map(|(region_dir, _)| region_dir.join(recovered_edits::DIR)))?;
    let mut notes = Vec::new();
    for (region_dir, families) in regions {
        let dir = region_dir.join(recovered_edits::DIR);
        let files = volume.list(&dir)?;
        let closed = recovered_edits::max_seq_id_file(files.iter().map(|file| file.name.as_str())).unwrap_or_default();
        notes.extend(families.as_ref().iter().map(|family| {
            let note = DeletedFamily { dir: family.clone(), closed_seq_id: closed };
            (dir.join(note.file_name()), note.contents().into_bytes())
        }));
    }
    publish_all(volume, &notes)
}

/// Whether a region's directory holds a reference to a file of the region `parent`, or of any when it is `None`.
pub fn refers_to(volume: &dyn Volume, info: &RegionInfo, parent: Option<&str>) -> Result<bool> {
    let dir = region_dir(info);
    for family in family_names(volume, &dir)? {
        for file in list_if_exists(volume, &dir.join(family))? {
            if reference_parent(&file.name).is_some_and(|of| parent.is_none_or(|parent| parent == of)) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
