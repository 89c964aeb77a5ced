//! The files of a snapshot: where each is, and where it belongs in another root directory.

use std::collections::BTreeSet;

use anyhow::{Context, bail};
use fs::{FilePath, Volume};
use model::{RegionInfo, TableName};
use proto::pb;
use rootdir::link::LinkTarget;
use rootdir::snapshot::{self, Manifest, SnapshotFile};
use rootdir::{FileName, archive_dir, family_name, table_dir};

/// A snapshot that was read.
pub(crate) struct Snapshot {
    pub description: pb::SnapshotDescription,
    pub manifest: Manifest,
}

/// Reads a snapshot.
pub(crate) fn read(volume: &dyn Volume, name: &str) -> anyhow::Result<Snapshot> {
    snapshot::check_name(name).map_err(|error| anyhow::anyhow!("--snapshot {name}: {error}"))?;
    let dir = snapshot::completed_dir(name);
    if !volume.exists(&dir)? {
        bail!("Snapshot '{name}' not found!");
    }
    let description = snapshot::read_description(volume, &dir)?;
    let manifest = snapshot::read_manifest(volume, &dir)?;
    Ok(Snapshot { description, manifest })
}

/// A file of a snapshot, and where it was found.
pub(crate) struct Found<'a> {
    pub region: &'a RegionInfo,
    pub family: String,
    pub file: &'a SnapshotFile,
    /// Where it is; nowhere where it is missing.
    pub place: Option<FilePath>,
    /// Its bytes there.
    pub len_bytes: u64,
    /// Where a copy of it belongs: the archive, as nothing else refers to it there.
    pub home: FilePath,
}

impl Found<'_> {
    /// Whether it is there with another length than the snapshot says.
    pub fn is_corrupted(&self) -> bool {
        self.place.is_some() && self.file.len_bytes != 0 && self.len_bytes != self.file.len_bytes
    }

    pub fn is_archived(&self) -> bool {
        self.place.as_ref().is_some_and(|place| place.as_str().starts_with("archive/"))
    }

    pub fn is_mob(&self) -> bool {
        self.place.as_ref().is_some_and(|place| place.as_str().starts_with("mobdir/"))
    }
}

/// Looks for every file of a snapshot, those of references included; each once.
pub(crate) fn find<'a>(volume: &dyn Volume, manifest: &'a Manifest) -> anyhow::Result<Vec<Found<'a>>> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for (region, family, file) in manifest.files() {
        let home = home(region, family, file).with_context(|| {
            format!(
                "the snapshot names a file {:?} in region {}: no store file is called so",
                file.name,
                region.encoded_name()
            )
        })?;
        if !seen.insert(home.clone()) {
            continue;
        }
        let mut found = Found { region, family: family_name(family), file, place: None, len_bytes: 0, home };
        for place in snapshot::restore::places(region, family, file) {
            if let Some(entry) = volume.stat(&place)?.filter(|entry| !entry.is_dir) {
                found.len_bytes = entry.len;
                found.place = Some(place);
                break;
            }
        }
        all.push(found);
    }
    Ok(all)
}

/// Where the cells of a file belong in the archive.
fn home(region: &RegionInfo, family: &[u8], file: &SnapshotFile) -> Option<FilePath> {
    let of = |table: &TableName, region: &str, name: &str| {
        archive_dir(&table_dir(table).join(region).join(family_name(family)).join(name))
    };
    if let Some(target) = LinkTarget::of_link(&file.name) {
        return Some(of(&target.table, &target.region, &target.file));
    }
    let own = region.encoded_name();
    match FileName::parse(&file.name) {
        Some(FileName { link: Some((table, region)), file, .. }) => Some(of(&table, &region, &file)),
        Some(FileName { parent: Some(parent), file, .. }) => Some(of(&region.table, &parent, &file)),
        Some(FileName { file, .. }) => Some(of(&region.table, own, &file)),
        // Files of large values have names of their own; the manifest's reader has seen that they are names.
        None if **own == rootdir::mob_region_name(&region.table) => Some(of(&region.table, own, &file.name)),
        None => None,
    }
}

/// Bytes for people, as Hadoop shows them.
pub(crate) fn human(bytes: u64) -> String {
    for (shift, unit) in [(40, "t"), (30, "g"), (20, "m"), (10, "k")] {
        if bytes >= 1 << shift {
            return format!("{:.1}{unit}", bytes as f64 / (1_u64 << shift) as f64);
        }
    }
    bytes.to_string()
}
