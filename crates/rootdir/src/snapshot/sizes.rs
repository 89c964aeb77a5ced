//! What the store files of snapshots take on the volume: which of them tables still have, which are in the archive, and which would be gone but
//! for one snapshot.
//!
//! Directories are listed instead of asking for each file: snapshots of one table share most of theirs, and every listing is kept until the
//! end. How much is looked at has a limit.
//!
//! Follows: `SnapshotInfo.SnapshotStats`, `SnapshotInfo#getSnapshotsFilesMap`.

use super::restore::places;
use super::{Result, SnapshotError, completed_dir, read_manifest};
use crate::paths::{ARCHIVE, BACK_REFERENCES_PREFIX, MOB, list_if_exists};
use fs::{FilePath, Volume};
use std::collections::{BTreeMap, BTreeSet};

/// What store files take, each counted once. Those that references stand for count, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Files that are there,
    pub files: u64,
    /// and those of them that are in the archive.
    pub archived_files: u64,
    /// Bytes of files that are where a table has them.
    pub shared_bytes: u64,
    /// Bytes of files of large values, in the directory for those.
    pub mob_bytes: u64,
    /// Bytes of files in the archive,
    pub archived_bytes: u64,
    /// and those of them that neither another snapshot nor a table made of one has.
    pub own_archived_bytes: u64,
    /// Files that are nowhere,
    pub missing: u64,
    /// and those that have another length than the snapshot says.
    pub corrupted: u64,
}

impl Sizes {
    /// Bytes of all files.
    pub fn total_bytes(&self) -> u64 {
        self.shared_bytes + self.mob_bytes + self.archived_bytes
    }

    fn count(&mut self, place: &FilePath, len_bytes: u64) {
        self.files += 1;
        if is_below(place, ARCHIVE) {
            self.archived_files += 1;
            self.archived_bytes += len_bytes;
        } else if is_below(place, MOB) {
            self.mob_bytes += len_bytes;
        } else {
            self.shared_bytes += len_bytes;
        }
    }
}

fn is_below(path: &FilePath, dir: &str) -> bool {
    path.as_str().strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'))
}

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Of each snapshot by its name; of one that cannot be read, why.
    pub snapshots: BTreeMap<String, std::result::Result<Sizes, String>>,
    /// Of all together: a file of several snapshots counts once.
    pub all: Sizes,
}

/// A file of one snapshot or more.
struct Seen {
    len_bytes: u64,
    snapshots: u32,
}

/// Measures snapshots, one after another.
pub struct Measuring {
    /// Directories, with the length of each file and nothing for each directory.
    listings: BTreeMap<FilePath, BTreeMap<String, Option<u64>>>,
    seen: BTreeMap<FilePath, Seen>,
    /// The snapshot and where its archived files are.
    archived: Vec<(String, Vec<FilePath>)>,
    measured: Measured,
    left: usize,
}

impl Measuring {
    /// Of snapshots and directories that have `entries_max` files at most.
    pub fn new(entries_max: usize) -> Measuring {
        Measuring {
            listings: BTreeMap::new(),
            seen: BTreeMap::new(),
            archived: Vec::new(),
            measured: Measured::default(),
            left: entries_max,
        }
    }

    /// Measures one more. `false`: there is more than was to be looked at, and it is not measured. One that is gone by now counts as measured.
    ///
    /// # Errors
    /// What the volume says.
    pub fn add(&mut self, volume: &dyn Volume, name: &str) -> Result<bool> {
        let dir = completed_dir(name);
        let manifest = match read_manifest(volume, &dir) {
            Ok(manifest) => manifest,
            Err(SnapshotError::Io(error)) => return Err(error.into()),
            Err(_) if !volume.exists(&dir)? => return Ok(true),
            Err(damaged) => {
                self.measured.snapshots.insert(name.to_owned(), Err(damaged.to_string()));
                return Ok(true);
            }
        };
        let mut sizes = Sizes::default();
        let mut found = BTreeMap::new();
        let mut missing = BTreeSet::new();
        for (region, family, file) in manifest.files() {
            if !self.take(1) {
                return Ok(false);
            }
            let places = places(region, family, file);
            let mut there = None;
            for place in &places {
                let Some(len) = self.len_of(volume, place)? else { return Ok(false) };
                if let Some(len_bytes) = len {
                    there = Some((place.clone(), len_bytes));
                    break;
                }
            }
            match there {
                Some((place, len_bytes)) => {
                    // Of a reference, too, the manifest has the length of what it stands for.
                    let is_corrupted = file.len_bytes != 0 && file.len_bytes != len_bytes;
                    let known: &mut (u64, bool) = found.entry(place).or_insert((len_bytes, false));
                    known.1 |= is_corrupted;
                }
                None => _ = missing.insert((region.encoded_name().to_string(), family.clone(), file.name.clone())),
            }
        }
        sizes.missing = missing.len() as u64;
        let mut archived = Vec::new();
        for (place, (len_bytes, is_corrupted)) in found {
            sizes.count(&place, len_bytes);
            sizes.corrupted += u64::from(is_corrupted);
            if is_below(&place, ARCHIVE) {
                archived.push(place.clone());
            }
            self.seen.entry(place).or_insert(Seen { len_bytes, snapshots: 0 }).snapshots += 1;
        }
        self.measured.all.missing += sizes.missing;
        self.measured.all.corrupted += sizes.corrupted;
        self.measured.snapshots.insert(name.to_owned(), Ok(sizes));
        self.archived.push((name.to_owned(), archived));
        Ok(true)
    }

    /// What has become of it.
    ///
    /// # Errors
    /// What the volume says.
    pub fn finish(mut self, volume: &dyn Volume) -> Result<Measured> {
        let mut all =
            Sizes { missing: self.measured.all.missing, corrupted: self.measured.all.corrupted, ..Sizes::default() };
        self.seen.iter().for_each(|(place, seen)| all.count(place, seen.len_bytes));
        for (name, places) in std::mem::take(&mut self.archived) {
            let mut own_bytes = 0;
            for place in places {
                let seen = self.seen.get(&place).filter(|seen| seen.snapshots == 1);
                let Some(len_bytes) = seen.map(|seen| seen.len_bytes) else { continue };
                if !self.is_linked_to(volume, &place)? {
                    own_bytes += len_bytes;
                }
            }
            if let Some(Ok(sizes)) = self.measured.snapshots.get_mut(&name) {
                sizes.own_archived_bytes = own_bytes;
            }
            all.own_archived_bytes += own_bytes;
        }
        Ok(Measured { all, ..self.measured })
    }

    /// Whether a table that was made of a snapshot has a link to a file in the archive.
    fn is_linked_to(&self, volume: &dyn Volume, place: &FilePath) -> Result<bool> {
        let back = format!("{BACK_REFERENCES_PREFIX}{}", place.name());
        let dir = place.parent();
        if !self.listings.get(&dir).is_some_and(|entries| entries.contains_key(&back)) {
            return Ok(false);
        }
        Ok(!list_if_exists(volume, &dir.join(&back))?.is_empty())
    }

    /// The length of the file at `place`, if one is there. `None`: its directory has more files than were to be looked at.
    fn len_of(&mut self, volume: &dyn Volume, place: &FilePath) -> Result<Option<Option<u64>>> {
        let dir = place.parent();
        if !self.listings.contains_key(&dir) {
            let entries = list_if_exists(volume, &dir)?;
            if !self.take(entries.len()) {
                return Ok(None);
            }
            let entries = entries.into_iter().map(|entry| (entry.name, (!entry.is_dir).then_some(entry.len)));
            self.listings.insert(dir.clone(), entries.collect());
        }
        let entry = self.listings.get(&dir).and_then(|entries| entries.get(place.name()));
        Ok(Some(entry.copied().flatten()))
    }

    /// Whether so much more may be looked at.
    fn take(&mut self, entries: usize) -> bool {
        let left = self.left.checked_sub(entries);
        self.left = left.unwrap_or(0);
        left.is_some()
    }
}
