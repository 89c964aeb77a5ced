//! Where things are in the root directory, and how tables and regions are moved to the archive.
//!
//! Always true: every function here may be repeated after a crash or an error in its middle, and what it did is durable once it has
//! succeeded, whichever attempt did it; a file leaves `data` only by arriving in `archive`. Follows: `CommonFSUtils`, `HFileArchiver`.

use convert::to_proto;
use fs::{DirEntry, FilePath, Result, Volume};
use model::recovered_edits::{self, DeletedFamily};
use model::{RegionInfo, TableDescriptor, TableName};
use proto::magic;

/// The directory of a namespace.
pub fn namespace_dir(namespace: &str) -> FilePath {
    FilePath::new("data").join(namespace)
}

/// The directory of a table.
pub fn table_dir(table: &TableName) -> FilePath {
    namespace_dir(table.namespace()).join(table.qualifier())
}

/// The directory of a region.
pub fn region_dir(info: &RegionInfo) -> FilePath {
    table_dir(&info.table).join(&**info.encoded_name())
}

/// The entries of a directory; none when it is not there.
pub fn list_if_exists(volume: &dyn Volume, dir: &FilePath) -> Result<Vec<DirEntry>> {
    match volume.list(dir) {
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        result => result,
    }
}

/// Makes a directory and makes it durable, up to the root.
pub fn create_dir_durably(volume: &dyn Volume, dir: &FilePath) -> Result<()> {
    volume.create_dir_all_durable(dir)
}

/// Removes a directory and makes that durable; also when an earlier attempt removed it and could not.
pub fn remove_dir_durably(volume: &dyn Volume, dir: &FilePath) -> Result<()> {
    volume.remove_dir_all(dir)?;
    let parent = dir.parent();
    if volume.exists(&parent)? { volume.sync_dir(&parent) } else { Ok(()) }
}

/// Makes a region's directory with its families' and `.regioninfo`. The entry in the table's directory is durable
/// only when the caller has synced that: once for all regions of a table.
pub fn create_region_dir(volume: &dyn Volume, info: &RegionInfo, table: &TableDescriptor) -> Result<()> {
    let dir = region_dir(info);
    volume.create_dir_all(&dir)?;
    for family in table.families.keys() {
        volume.create_dir_all(&dir.join(String::from_utf8_lossy(family)))?;
    }
    let file = dir.join(".regioninfo");
    let bytes = magic::encode_delimited(&to_proto::region_info(info));
    if volume.stat(&file)?.is_some_and(|entry| entry.len == bytes.len() as u64) && volume.read(&file)? == bytes {
        // The names beside it may be those of an attempt that could not sync them.
        return volume.sync_dir(&dir);
    }
    volume.publish(&file, &bytes)
}

/// Moves the files of one family's directory to the archive.
pub fn archive_family_dir(volume: &dyn Volume, dir: &FilePath) -> Result<()> {
    // Large values' files have their tree beside `data`, and one archive with it. Follows: `HFileArchiveUtil`.
    let path = dir.as_str();
    let target = FilePath::new("archive").join(path.strip_prefix("mobdir/").unwrap_or(path));
    // References are nothing of their own, and a file that was being written never became one.
    let is_file = |entry: &DirEntry| !entry.is_dir && !entry.name.starts_with('.') && !is_reference(&entry.name);
    let files: Vec<DirEntry> = list_if_exists(volume, dir)?.into_iter().filter(is_file).collect();
    // Also when nothing is left to move: an earlier attempt may have moved files and failed to make that durable.
    if files.is_empty() && !volume.exists(&target)? {
        return Ok(());
    }
    create_dir_durably(volume, &target)?;
    for file in files {
        volume.rename(&dir.join(&file.name), &target.join(&file.name))?;
    }
    volume.sync_dir(&target)
}

/// Whether a store file's name says that it refers to half of (or to all of) another region's file.
pub fn is_reference(name: &str) -> bool {
    name.contains('.')
}

/// Moves a region's store files to the archive and removes its directory.
pub fn archive_region_dir(volume: &dyn Volume, dir: &FilePath) -> Result<()> {
    for entry in list_if_exists(volume, dir)? {
        if entry.is_dir && !entry.name.starts_with('.') && entry.name != recovered_edits::DIR {
            archive_family_dir(volume, &dir.join(&entry.name))?;
        }
    }
    remove_dir_durably(volume, dir)
}

/// Moves every region of a table but `kept` to the archive, those too that hbase:meta does not name any more: they were merged, and
/// are there for their files alone.
pub fn archive_other_regions(volume: &dyn Volume, table: &TableName, kept: &[RegionInfo]) -> Result<()> {
    let home = table_dir(table);
    for entry in list_if_exists(volume, &home)? {
        let is_kept = kept.iter().any(|info| **info.encoded_name() == entry.name);
        if entry.is_dir && !entry.name.starts_with('.') && !is_kept {
            archive_region_dir(volume, &home.join(&entry.name))?;
        }
    }
    // Also when there was nothing left to move: an earlier attempt may have failed to make that durable.
    volume.sync_dir(&home)
}

/// Moves every region of a table to the archive (large values' regions too) and removes the table's directory.
pub fn archive_table(volume: &dyn Volume, table: &TableName) -> Result<()> {
    let home = table_dir(table);
    for dir in [FilePath::new("mobdir").join(home.as_str()), home] {
        for entry in list_if_exists(volume, &dir)? {
            if entry.is_dir && !entry.name.starts_with('.') {
                archive_region_dir(volume, &dir.join(&entry.name))?;
            }
        }
        remove_dir_durably(volume, &dir)?;
    }
    Ok(())
}

/// Moves the files of families that a table no longer has to the archive, in every region. A region that was not closed since they went
/// (a crash came between, or it could not be opened) finds their edits in its logs: before their directories go, each region is told
/// not to take them for those of a family that gets the same name later.
pub fn archive_families(volume: &dyn Volume, table: &TableName, families: &[String]) -> Result<()> {
    let home = table_dir(table);
    for dir in [FilePath::new("mobdir").join(home.as_str()), home.clone()] {
        for region in list_if_exists(volume, &dir)? {
            if !region.is_dir || region.name.starts_with('.') {
                continue;
            }
            if dir == home {
                note_deleted(volume, &dir.join(&region.name), families)?;
            }
            for family in families {
                let family_dir = dir.join(&region.name).join(family);
                archive_family_dir(volume, &family_dir)?;
                remove_dir_durably(volume, &family_dir)?;
            }
        }
    }
    Ok(())
}

fn note_deleted(volume: &dyn Volume, region_dir: &FilePath, families: &[String]) -> Result<()> {
    let dir = region_dir.join(recovered_edits::DIR);
    create_dir_durably(volume, &dir)?;
    let files = volume.list(&dir)?;
    let closed = recovered_edits::max_seq_id_file(files.iter().map(|file| file.name.as_str()));
    families.iter().try_for_each(|family| {
        let note = DeletedFamily { dir: family.clone(), closed_seq_id: closed.unwrap_or_default() };
        volume.publish(&dir.join(note.file_name()), note.contents().as_bytes())
    })
}

/// Whether a region's directory holds a reference to a file of the region `parent`, or of any when it is `None`.
pub fn refers_to(volume: &dyn Volume, info: &RegionInfo, parent: Option<&str>) -> Result<bool> {
    let dir = region_dir(info);
    for family in list_if_exists(volume, &dir)? {
        if !family.is_dir || family.name.starts_with('.') || family.name == recovered_edits::DIR {
            continue;
        }
        for file in list_if_exists(volume, &dir.join(&family.name))? {
            let of = file.name.rsplit_once('.').filter(|(name, _)| !name.is_empty()).map(|(_, of)| of);
            if of.is_some_and(|of| parent.is_none_or(|parent| parent == of)) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
