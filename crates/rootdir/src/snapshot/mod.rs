//! A snapshot's directory: what it is called, how it comes and goes.
//!
//! ```text
//! .hbase-snapshot/<name>/.snapshotinfo                    which table, when, how: SnapshotDescription
//! .hbase-snapshot/<name>/data.manifest                    descriptor, regions, names of their files: SnapshotDataManifest
//! .hbase-snapshot/.tmp/<name>/region-manifest.<region>    while it is being taken: SnapshotRegionManifest
//! .hbase-snapshot/.tmp/.deleted-<name>                    while it is being deleted
//! ```
//!
//! Always true:
//!  1. What is at `.hbase-snapshot/<name>` is whole and durable: it comes and goes by one rename.
//!  2. What is below `.hbase-snapshot/.tmp` belongs to a snapshot that is being taken or deleted, and to nobody after a crash.
//!
//! Follows: `SnapshotDescriptionUtils`, `SnapshotManifest`, `SnapshotManifestV2`.

pub mod manifest;
pub mod restore;
pub mod sizes;

pub use manifest::{FamilyFiles, Manifest, RegionManifest, SnapshotFile};

use crate::paths::{SNAPSHOTS, TEMP, family_name, list_if_exists, mob_dir, remove_dir_durably, table_dir};
use bytes::Bytes;
use convert::to_proto;
use fs::{FilePath, Volume};
use model::{FamilyDescriptor, RegionInfo, TableDescriptor};
use proto::{Message, pb};

/// Name of the file that says what a snapshot is of.
pub const INFO_FILE: &str = ".snapshotinfo";
/// Name of the file that names everything in it.
pub const MANIFEST_FILE: &str = "data.manifest";
/// Begins the name of the manifest of one region: this, then the region's encoded name.
pub const REGION_MANIFEST_PREFIX: &str = "region-manifest.";
/// The version of the format: manifests as messages.
pub const FORMAT_VERSION: i32 = 2;
/// Begins the name of the directory of a snapshot that is being deleted. No snapshot's name begins with a period.
const DELETED_PREFIX: &str = ".deleted-";
/// Bytes of a file of a snapshot that are read at most; HBase's own limit is 64 MiB unless it was raised.
const FILE_BYTES_MAX: u64 = 1 << 28;

/// A snapshot that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The volume failed.
    #[error(transparent)]
    Io(#[from] fs::Error),
    /// A file of the snapshot says nothing that is understood.
    #[error("{path} is damaged ({what}): delete the snapshot, or restore the file from a copy")]
    Corrupted {
        /// The file.
        path: FilePath,
        /// What is wrong.
        what: String,
    },
}

/// The results of this module.
pub type Result<T> = std::result::Result<T, SnapshotError>;

/// What a snapshot may be called: what a table may, HBase's sentence otherwise. Follows:
/// `ClientSnapshotDescriptionUtils#assertSnapshotRequestIsValid`.
///
/// # Errors
/// What is illegal.
pub fn check_name(name: &str) -> std::result::Result<(), model::name::NameError> {
    if name.is_empty() {
        return Err(model::name::NameError("Snapshot qualifier must not be empty".into()));
    }
    model::name::check_qualifier(name)
}

/// The directory of all snapshots.
pub fn snapshots_dir() -> FilePath {
    FilePath::new(SNAPSHOTS)
}

/// The directory of a snapshot that was taken.
pub fn completed_dir(name: &str) -> FilePath {
    snapshots_dir().join(name)
}

/// The directory of a snapshot that is being taken.
pub fn working_dir(name: &str) -> FilePath {
    snapshots_dir().join(TEMP).join(name)
}

fn read_small(volume: &dyn Volume, path: &FilePath) -> Result<Bytes> {
    match volume.stat(path)? {
        Some(entry) if entry.is_dir || entry.len > FILE_BYTES_MAX => {
            let what = format!("{} bytes, or a directory", entry.len);
            Err(SnapshotError::Corrupted { path: path.clone(), what })
        }
        _ => Ok(Bytes::from(volume.read(path)?)),
    }
}

/// What the snapshot in `dir` is of.
///
/// # Errors
/// It cannot be read, or is damaged.
pub fn read_description(volume: &dyn Volume, dir: &FilePath) -> Result<pb::SnapshotDescription> {
    let path = dir.join(INFO_FILE);
    let bytes = match read_small(volume, &path) {
        Err(SnapshotError::Io(error)) if error.is_not_found() => {
            return Err(SnapshotError::Corrupted { path, what: "it is missing".into() });
        }
        bytes => bytes?,
    };
    let corrupted = |what: String| SnapshotError::Corrupted { path: path.clone(), what };
    let description = pb::SnapshotDescription::decode(bytes).map_err(|error| corrupted(error.to_string()))?;
    if dir.parent() == snapshots_dir() && description.name != dir.name() {
        return Err(corrupted(format!("it is of a snapshot {:?}", description.name)));
    }
    Ok(description)
}

/// Every snapshot that was taken, in the order of their names; of one that is damaged what is wrong.
///
/// # Errors
/// What the volume says.
pub fn list(volume: &dyn Volume) -> fs::Result<Vec<Result<pb::SnapshotDescription>>> {
    let entries = list_if_exists(volume, &snapshots_dir())?;
    let taken = entries.into_iter().filter(|entry| entry.is_dir && !entry.name.starts_with('.'));
    Ok(taken.map(|entry| read_description(volume, &completed_dir(&entry.name))).collect())
}

/// Makes the directory of a snapshot that is to be taken, with what it is of; what an earlier attempt left goes.
///
/// # Errors
/// What the volume says.
pub fn begin(volume: &dyn Volume, description: &pb::SnapshotDescription) -> fs::Result<()> {
    let dir = working_dir(&description.name);
    volume.remove_dir_all(&dir)?;
    volume.create_dir_all_durable(&dir)?;
    volume.publish(&dir.join(INFO_FILE), &description.encode_to_vec())
}

/// Writes a region's manifest into the working directory of a snapshot. Not durable: a power failure begins the snapshot anew.
///
/// # Errors
/// What the volume says; there is no such directory when the snapshot was given up.
pub fn add_region(volume: &dyn Volume, snapshot: &str, region: &RegionManifest) -> fs::Result<()> {
    let dir = working_dir(snapshot);
    let path = dir.join(format!("{REGION_MANIFEST_PREFIX}{}", region.info.encoded_name()));
    // Under another name first: whoever looks on must not take half of it for a whole.
    let temporary = dir.join(volume.temporary_name(path.name()));
    let mut file = volume.create(&temporary)?;
    file.append(&region.to_message().encode_to_vec())?;
    file.flush()?;
    drop(file);
    volume.rename(&temporary, &path)
}

/// The manifests of single regions in `dir`.
///
/// # Errors
/// One cannot be read, or is damaged.
pub fn read_region_manifests(volume: &dyn Volume, dir: &FilePath) -> Result<Vec<RegionManifest>> {
    let entries = volume.list(dir)?;
    let names = entries.iter().filter(|entry| entry.name.starts_with(REGION_MANIFEST_PREFIX));
    names
        .map(|entry| {
            let path = dir.join(&entry.name);
            let corrupted = |what: String| SnapshotError::Corrupted { path: path.clone(), what };
            let message = pb::SnapshotRegionManifest::decode(read_small(volume, &path)?);
            let message = message.map_err(|error| corrupted(error.to_string()))?;
            RegionManifest::from_message(&message).map_err(corrupted)
        })
        .collect()
}

/// The region of a table's large values, as a snapshot names it; `None` when there is no directory of it. Follows:
/// `SnapshotProcedure#snapshotMobRegion`.
///
/// # Errors
/// What the volume says; a link leads nowhere.
pub fn mob_region(volume: &dyn Volume, table: &TableDescriptor) -> fs::Result<Option<RegionManifest>> {
    let info = RegionInfo::new(table.name.clone(), Bytes::from_static(b".mob"), Bytes::new(), 0);
    let dir = mob_dir(&table_dir(&table.name)).join(&**info.encoded_name());
    if !table.families.values().any(FamilyDescriptor::is_mob) || !volume.exists(&dir)? {
        return Ok(None);
    }
    let mut families = Vec::new();
    for family in table.families.keys() {
        let mut files = Vec::new();
        for entry in list_if_exists(volume, &dir.join(family_name(family)))? {
            if entry.is_dir || entry.name.starts_with('.') {
                continue;
            }
            let mut file = SnapshotFile { name: entry.name, reference: None, len_bytes: entry.len };
            if file.name.contains('=') {
                for place in restore::places(&info, family, &file) {
                    if let Some(target) = volume.stat(&place)? {
                        file.len_bytes = target.len;
                        break;
                    }
                }
            }
            files.push(file);
        }
        if !files.is_empty() {
            families.push(FamilyFiles { name: family.clone(), files });
        }
    }
    Ok(Some(RegionManifest { info, families }))
}

/// Writes the manifest of the whole snapshot in place of those of its regions.
///
/// # Errors
/// One of them cannot be read, or the volume fails.
pub fn consolidate(volume: &dyn Volume, snapshot: &str, table: &TableDescriptor) -> Result<Manifest> {
    let dir = working_dir(snapshot);
    let manifest = Manifest { table: table.clone(), regions: read_region_manifests(volume, &dir)? };
    let message = pb::SnapshotDataManifest {
        table_schema: to_proto::table(&manifest.table),
        region_manifests: manifest.regions.iter().map(RegionManifest::to_message).collect(),
    };
    volume.publish(&dir.join(MANIFEST_FILE), &message.encode_to_vec())?;
    for region in &manifest.regions {
        volume.remove_file(&dir.join(format!("{REGION_MANIFEST_PREFIX}{}", region.info.encoded_name())))?;
    }
    Ok(manifest)
}

/// The snapshot is whole: it moves to where snapshots are. One that is there already, from an attempt that did not learn of its success,
/// is it.
///
/// # Errors
/// What the volume says.
pub fn complete(volume: &dyn Volume, snapshot: &str) -> fs::Result<()> {
    let (working, completed) = (working_dir(snapshot), completed_dir(snapshot));
    if volume.exists(&working)? {
        volume.sync_dir(&working)?;
        volume.rename_new(&working, &completed)?;
    }
    volume.sync_dir(&snapshots_dir())?;
    volume.sync_dir(&snapshots_dir().join(TEMP))
}

/// Everything that the snapshot in `dir` names.
///
/// # Errors
/// It cannot be read, or is damaged.
pub fn read_manifest(volume: &dyn Volume, dir: &FilePath) -> Result<Manifest> {
    let path = dir.join(MANIFEST_FILE);
    let corrupted = |what: String| SnapshotError::Corrupted { path: path.clone(), what };
    let bytes = match read_small(volume, &path) {
        Err(SnapshotError::Io(error)) if error.is_not_found() => return Err(corrupted("it is missing".into())),
        bytes => bytes?,
    };
    let message = pb::SnapshotDataManifest::decode(bytes).map_err(|error| corrupted(error.to_string()))?;
    Manifest::from_message(&message).map_err(corrupted)
}

/// Deletes a snapshot: it is gone at once, and its files soon after. False when there is none.
///
/// # Errors
/// What the volume says.
pub fn delete(volume: &dyn Volume, snapshot: &str) -> fs::Result<bool> {
    let (home, gone) =
        (completed_dir(snapshot), snapshots_dir().join(TEMP).join(format!("{DELETED_PREFIX}{snapshot}")));
    if !volume.exists(&home)? {
        return Ok(false);
    }
    volume.create_dir_all_durable(&gone.parent())?;
    // Of an attempt that was interrupted.
    volume.remove_dir_all(&gone)?;
    volume.rename(&home, &gone)?;
    volume.sync_dir(&gone.parent())?;
    volume.sync_dir(&snapshots_dir())?;
    volume.remove_dir_all(&gone)?;
    Ok(true)
}

/// Gives up a snapshot that is being taken.
///
/// # Errors
/// What the volume says.
pub fn abandon(volume: &dyn Volume, snapshot: &str) -> fs::Result<()> {
    remove_dir_durably(volume, &working_dir(snapshot))
}

/// Removes what snapshots left that were being taken or deleted when a process ended, but for those that `is_taken_now` names.
///
/// # Errors
/// What the volume says.
pub fn clear_working(volume: &dyn Volume, is_taken_now: impl Fn(&str) -> bool) -> fs::Result<()> {
    let dir = snapshots_dir().join(TEMP);
    for entry in list_if_exists(volume, &dir)? {
        if !is_taken_now(&entry.name) {
            let path = dir.join(&entry.name);
            if entry.is_dir { volume.remove_dir_all(&path)? } else { volume.remove_file(&path)? }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
