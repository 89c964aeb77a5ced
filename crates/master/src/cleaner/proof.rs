//! Which store files are still needed: a look at everything that can name one.
//!
//! Always true: a [`Proof`] exists only when every directory that could hold a reference, a link or a snapshot was
//! listed and every manifest was read. Anything that fails or is not understood is an error, and no proof. What merely
//! mentions a file's name keeps the file, so a kind of link that this version has never heard of does too.
//! Follows: `SnapshotHFileCleaner`, `SnapshotReferenceUtil`, `HFileLinkCleaner`.

use super::names::{self, FileId};
use crate::{MasterError, Result};
use bytes::Bytes;
use fs::{DirEntry, FilePath, Volume};
use model::TableName;
use proto::{Message, pb};
use rootdir::backup_hold::Hold;
use rootdir::paths;
use std::collections::{BTreeMap, HashSet};

/// Trees whose files may stand for files in the archive. What is being made moves from the first to the second, so that
/// it is seen in one of them at least.
const LIVE_TREES: [&str; 3] = [paths::TEMP, paths::DATA, paths::MOB];
/// Bytes of a manifest that are read at most; HBase's own limit is 64 MiB unless it was raised.
const MANIFEST_BYTES_MAX: u64 = 1 << 28;
/// Directories in a region, and their depth, that a walk goes through at most.
const DEPTH_MAX: usize = 16;

/// What is needed.
#[derive(Debug, Default)]
pub(super) struct Proof {
    needed: HashSet<FileId>,
    /// What backups elsewhere still need.
    holds: BTreeMap<String, Hold>,
}

fn not_understood(path: &FilePath, what: impl std::fmt::Display) -> MasterError {
    MasterError::do_not_retry(format!("{path} {what}: nothing is deleted from the archive while it is there"))
}

impl Proof {
    /// Looks at the whole root directory. Costs a list of every directory below `data` and a read of every manifest.
    ///
    /// # Errors
    /// A list or read that fails, a manifest that is damaged, a snapshot of unknown shape.
    pub fn gather(volume: &dyn Volume, holds: BTreeMap<String, Hold>, go_on: &dyn Fn() -> Result<()>) -> Result<Proof> {
        let mut proof = Proof { holds, needed: HashSet::new() };
        let top = volume.list(&FilePath::root())?;
        let there = |name: &str| top.iter().any(|entry| entry.is_dir && entry.name == name);
        if !there(paths::DATA) {
            return Err(not_understood(&FilePath::root(), "has no directory data"));
        }
        // Snapshots first: what is cloned from one that is then deleted shows in a live tree.
        if there(paths::SNAPSHOTS) {
            proof.add_snapshots(volume, go_on)?;
        }
        for tree in LIVE_TREES.into_iter().filter(|tree| there(tree)) {
            proof.add_tree(volume, &FilePath::new(tree), DEPTH_MAX, go_on)?;
        }
        Ok(proof)
    }

    /// Whether something names the file.
    pub fn needs(&self, id: FileId) -> bool {
        self.needed.contains(&id)
    }

    /// Whether a backup has yet to copy the file that `table` has under this name.
    pub fn is_held(&self, table: &TableName, name: &str) -> bool {
        self.holds.values().any(|hold| hold.needs_file(table, name))
    }

    fn mention(&mut self, text: &[u8]) {
        names::each_mentioned(text, |id| {
            self.needed.insert(id);
        });
    }

    fn add_tree(
        &mut self,
        volume: &dyn Volume,
        dir: &FilePath,
        depth_left: usize,
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        go_on()?;
        let Some(depth_left) = depth_left.checked_sub(1) else {
            return Err(not_understood(dir, "is deeper than any directory of HBase"));
        };
        // A file list of HBase's file tracker names the files of a family.
        let holds_lists = dir.name() == ".filelist";
        for entry in volume.list(dir)? {
            self.mention(entry.name.as_bytes());
            if entry.is_dir {
                self.add_tree(volume, &dir.join(&entry.name), depth_left, go_on)?;
            } else if holds_lists {
                let bytes = read_small(volume, &dir.join(&entry.name), entry.len)?;
                self.mention(&bytes);
            }
        }
        Ok(())
    }

    fn add_snapshots(&mut self, volume: &dyn Volume, go_on: &dyn Fn() -> Result<()>) -> Result<()> {
        let snapshots = FilePath::new(paths::SNAPSHOTS);
        for entry in volume.list(&snapshots)? {
            go_on()?;
            let dir = snapshots.join(&entry.name);
            match (entry.is_dir, &*entry.name) {
                (false, _) => return Err(not_understood(&dir, "is no snapshot")),
                (true, paths::TEMP) => {
                    for entry in volume.list(&dir)? {
                        if !entry.is_dir {
                            return Err(not_understood(&dir.join(&entry.name), "is no snapshot"));
                        }
                        self.add_snapshot(volume, &dir.join(&entry.name), false)?;
                    }
                }
                (true, _) => self.add_snapshot(volume, &dir, true)?,
            }
        }
        Ok(())
    }

    fn add_snapshot(&mut self, volume: &dyn Volume, dir: &FilePath, is_complete: bool) -> Result<()> {
        let entries = volume.list(dir)?;
        if is_complete && !entries.iter().any(|entry| !entry.is_dir && entry.name == "data.manifest") {
            return Err(not_understood(dir, "is a snapshot without data.manifest"));
        }
        for DirEntry { name, is_dir, len } in entries {
            let path = dir.join(&name);
            if is_dir {
                // Only HBase before 0.98.x kept a snapshot's files in directories.
                return Err(not_understood(&path, "is no part of a snapshot that this version can read"));
            } else if name == "data.manifest" {
                let bytes = read_small(volume, &path, len)?;
                let manifest = pb::SnapshotDataManifest::decode(bytes);
                let manifest = manifest.map_err(|error| not_understood(&path, format!("is damaged ({error})")))?;
                if !covers_a_table(&manifest) {
                    return Err(not_understood(&path, "does not name every region of its table"));
                }
                manifest.region_manifests.iter().for_each(|region| self.add_region_manifest(region));
            } else if name.starts_with("region-manifest.") {
                let bytes = read_small(volume, &path, len)?;
                let manifest = pb::SnapshotRegionManifest::decode(bytes);
                let manifest = manifest.map_err(|error| not_understood(&path, format!("is damaged ({error})")))?;
                if len == 0 {
                    return Err(not_understood(&path, "is empty"));
                }
                self.add_region_manifest(&manifest);
            } else if !matches!(&*name, ".snapshotinfo" | ".inprogress") && !name.starts_with(fs::TEMPORARY_PREFIX) {
                return Err(not_understood(&path, "is no part of a snapshot that this version can read"));
            }
        }
        Ok(())
    }

    fn add_region_manifest(&mut self, manifest: &pb::SnapshotRegionManifest) {
        for file in manifest.family_files.iter().flat_map(|family| &family.store_files) {
            self.mention(file.name.as_bytes());
        }
    }
}

fn read_small(volume: &dyn Volume, path: &FilePath, len: u64) -> Result<Bytes> {
    if len > MANIFEST_BYTES_MAX {
        return Err(not_understood(path, format!("has {len} bytes, more than can be read")));
    }
    Ok(Bytes::from(volume.read(path)?))
}

/// Whether the regions of a manifest leave no hole: one that was cut off between two regions is a legal message too.
fn covers_a_table(manifest: &pb::SnapshotDataManifest) -> bool {
    if manifest.table_schema.table_name.as_ref().is_none_or(|name| name.qualifier.is_empty()) {
        return false;
    }
    let range = |region: &pb::SnapshotRegionManifest| {
        let key = |key: &Option<Bytes>| key.clone().unwrap_or_default();
        (key(&region.region_info.start_key), key(&region.region_info.end_key))
    };
    let mut ranges: Vec<(Bytes, Bytes)> = manifest.region_manifests.iter().map(range).collect();
    ranges.sort();
    let mut covered_to = Bytes::new();
    for (start, end) in ranges {
        if start > covered_to {
            return false;
        }
        if end.is_empty() {
            return true;
        }
        covered_to = covered_to.max(end);
    }
    false
}
