//! From a snapshot to a table's directories: which region of it becomes which of the table's, and what each then holds.
//!
//! A region that is still there keeps the files that it had then; the others it has since go to the archive, and those that it lost come
//! back as links. A region that is not gets an id of its own, for the logs may have edits for one of its old name.
//!
//! Always true: everything here may be repeated, and is durable when it has succeeded. Nobody has the regions open meanwhile, and nobody
//! cleans the archive. Follows: `RestoreSnapshotHelper`, `SnapshotReferenceUtil`.

use super::manifest::{FamilyFiles, Manifest, RegionManifest, SnapshotFile};
use crate::archive::{archive_family_dir, archive_files_of_many, note_deleted_of_many};
use crate::link::{FamilyLinks, LinkTarget, create_links};
use crate::paths::{
    archive_dir, create_dirs_durable, family_name, family_names, list_if_exists, mob_dir, mob_region_name, region_dir,
    remove_dir_durably, table_dir,
};
use crate::region_dir::create_region_dirs;
use crate::store_file::{FileName, is_reference};
use crate::tracker::list::{Entries, FileList};
use crate::tracker::{Site, Tracker};
use bytes::Bytes;
use fs::{FilePath, Result, Volume, publish_all, sync_dirs};
use model::{RegionInfo, TableDescriptor, TableName};
use proto::magic;
use std::collections::{BTreeMap, BTreeSet};

/// A region of a snapshot and the one that it becomes.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// Its place among the manifest's regions.
    pub source: usize,
    /// What it becomes.
    pub info: RegionInfo,
    /// Whether that is there already.
    pub is_there: bool,
}

/// Says what the regions of a snapshot become in `table`, whose directory has the regions `existing`. New ones get ids from
/// `first_region_id` on, in the order of the old ids: a region that was split comes before its daughters.
pub fn place_regions(
    manifest: &Manifest,
    table: &TableName,
    existing: &BTreeSet<String>,
    first_region_id: u64,
) -> Vec<Placed> {
    let regions = || manifest.regions.iter().enumerate().filter(|(_, region)| !region.is_mob());
    let ids: BTreeSet<u64> = regions().map(|(_, region)| region.info.region_id).collect();
    let new_ids: BTreeMap<u64, u64> = ids.into_iter().zip(first_region_id..).collect();
    let same_table = manifest.table.name == *table;
    regions()
        .map(|(source, region)| {
            let old = &region.info;
            let is_there = same_table && existing.contains(&**old.encoded_name());
            let info = if is_there {
                old.clone()
            } else {
                let id = new_ids.get(&old.region_id).copied().unwrap_or(first_region_id);
                let mut info = RegionInfo::new(table.clone(), old.start_key.clone(), old.end_key.clone(), id);
                (info.offline, info.split) = (old.offline, old.split);
                info
            };
            Placed { source, info, is_there }
        })
        .collect()
}

/// The daughters of the split region `parent`, by their places among the manifest's regions; `None` when they are not in it.
pub fn daughters(manifest: &Manifest, parent: usize) -> Option<[usize; 2]> {
    let of = &manifest.regions.get(parent)?.info;
    let later = |region: &RegionManifest| region.info.region_id > of.region_id && !region.is_mob();
    let first = |fits: &dyn Fn(&RegionInfo) -> bool| {
        let found = manifest.regions.iter().enumerate().filter(|(_, region)| later(region) && fits(&region.info));
        found.min_by_key(|(_, region)| region.info.region_id).map(|(at, _)| at)
    };
    let bottom = first(&|info| info.start_key == of.start_key)?;
    let split_row = &manifest.regions[bottom].info.end_key;
    let top = first(&|info| info.start_key == *split_row && info.end_key == of.end_key)?;
    Some([bottom, top])
}

/// What a file of a snapshot becomes in a directory that does not have it.
enum Wanted {
    Link(LinkTarget),
    Reference { name: String, contents: Bytes },
}

impl Wanted {
    fn name(&self) -> String {
        match self {
            Wanted::Link(target) => target.link_name(),
            Wanted::Reference { name, .. } => name.clone(),
        }
    }
}

/// A directory to fill.
struct Target<'a> {
    /// With what.
    source: &'a RegionManifest,
    /// Where it is.
    dir: FilePath,
    /// Its region, encoded.
    region: &'a str,
    /// Whether it is that of the source.
    is_same: bool,
}

/// What is to be done with the files of directories, in this order.
#[derive(Default)]
struct Steps {
    archived: Vec<(FilePath, Vec<String>)>,
    removed: Vec<FilePath>,
    references: Vec<(FilePath, Vec<u8>)>,
    links: Vec<FamilyLinks>,
    lists: Vec<(Bytes, FilePath, Entries)>,
}

/// Fills the directories of a table's regions from a snapshot.
#[derive(Clone, Debug)]
pub struct Filling {
    /// The snapshot.
    pub manifest: Manifest,
    /// The table to be.
    pub table: TableDescriptor,
    /// What [`place_regions`] said.
    pub placed: Vec<Placed>,
    /// What the server says of store file trackers.
    pub trackers: Site,
    /// The time, for the lists of trackers that keep some.
    pub now_ms: i64,
}

impl Filling {
    /// The encoded name that a region of the snapshot gets.
    fn new_name<'a>(&'a self, old: &'a str) -> &'a str {
        let is_it = |placed: &&Placed| **self.manifest.regions[placed.source].info.encoded_name() == *old;
        self.placed.iter().find(is_it).map_or(old, |placed| placed.info.encoded_name())
    }

    fn wanted(&self, source: &RegionInfo, file: &SnapshotFile) -> Wanted {
        let here = |region: &str, file: &str| LinkTarget {
            table: self.manifest.table.name.clone(),
            region: region.to_owned(),
            file: file.to_owned(),
        };
        if let (Some(reference), Some((referred, parent))) = (&file.reference, file.name.rsplit_once('.')) {
            let target = match LinkTarget::of_link(referred) {
                Some(_) => referred.to_owned(),
                None => here(parent, referred).link_name(),
            };
            let name = format!("{target}.{}", self.new_name(parent));
            return Wanted::Reference { name, contents: magic::encode(reference) };
        }
        Wanted::Link(LinkTarget::of_link(&file.name).unwrap_or_else(|| here(source.encoded_name(), &file.name)))
    }

    /// Makes the directories of placed regions hold what their regions held in the snapshot. What one step makes for all of them is made
    /// before any of it is synced: the disk's journal takes ten thousand links in a few turns.
    ///
    /// # Errors
    /// What the volume says.
    pub fn fill_regions(&self, volume: &dyn Volume, placed: &[Placed]) -> Result<()> {
        let source = |placed: &Placed| &self.manifest.regions[placed.source];
        // The logs may have edits that came after the snapshot; what they have is in files, or of no use.
        let families = |placed: &Placed| source(placed).families.iter().map(|f| family_name(&f.name)).collect();
        let there = placed.iter().filter(|placed| placed.is_there);
        let notes: Vec<(FilePath, Vec<String>)> = there.map(|p| (region_dir(&p.info), families(p))).collect();
        note_deleted_of_many(volume, &notes)?;
        create_dirs_durable(volume, placed.iter().map(|placed| region_dir(&placed.info)))?;
        create_region_dirs(volume, placed.iter().map(|placed| &placed.info), &self.table)?;
        let regions = placed.iter().map(|placed| Target {
            source: source(placed),
            dir: region_dir(&placed.info),
            region: placed.info.encoded_name(),
            is_same: placed.is_there,
        });
        self.fill(volume, &regions.collect::<Vec<_>>())
    }

    /// The same of the region of large values, if the snapshot has one.
    ///
    /// # Errors
    /// What the volume says.
    pub fn fill_mob_region(&self, volume: &dyn Volume) -> Result<()> {
        let Some(source) = self.manifest.regions.iter().find(|region| region.is_mob()) else { return Ok(()) };
        let region = mob_region_name(&self.table.name);
        let dir = mob_dir(&table_dir(&self.table.name)).join(&region);
        volume.create_dir_all_durable(&dir)?;
        let is_same = self.table.name == self.manifest.table.name;
        self.fill(volume, &[Target { source, dir, region: &region, is_same }])
    }

    fn fill(&self, volume: &dyn Volume, regions: &[Target<'_>]) -> Result<()> {
        let mut steps = Steps::default();
        for region in regions {
            for family in &region.source.families {
                self.plan_family(volume, region, family, &mut steps)?;
            }
        }
        sync_dirs(volume, regions.iter().map(|region| region.dir.clone()))?;
        archive_files_of_many(volume, &steps.archived)?;
        steps.removed.iter().try_for_each(|path| volume.remove_file(path))?;
        publish_all(volume, &steps.references)?;
        create_links(volume, &self.table.name, &steps.links)?;
        for (family, dir, listed) in steps.lists {
            self.write_list(volume, &family, &dir, listed)?;
        }
        // A family that had no file may not be in the snapshot, and the table has it all the same.
        for Target { source, dir, .. } in regions {
            let known: BTreeSet<String> = source.families.iter().map(|family| family_name(&family.name)).collect();
            for family in family_names(volume, dir)? {
                if !known.contains(&family) {
                    archive_family_dir(volume, &dir.join(&family))?;
                    remove_dir_durably(volume, &dir.join(&family))?;
                }
            }
        }
        Ok(())
    }

    /// Makes the directory of a family, and says what is to be done with what is in it and what is not.
    fn plan_family(
        &self,
        volume: &dyn Volume,
        region: &Target<'_>,
        family: &FamilyFiles,
        steps: &mut Steps,
    ) -> Result<()> {
        let name = family_name(&family.name);
        let dir = region.dir.join(&name);
        volume.create_dir_all(&dir)?;
        let files = list_if_exists(volume, &dir)?.into_iter().filter(|entry| !entry.is_dir);
        let mut there: BTreeSet<String> = files.map(|entry| entry.name).collect();
        let mut links = Vec::new();
        let mut listed = Entries::new();
        for file in &family.files {
            if region.is_same && there.remove(&file.name) {
                let is_own =
                    FileName::parse(&file.name).is_some_and(|name| name.link.is_none() && name.parent.is_none());
                listed.insert(file.name.clone(), if is_own { file.len_bytes } else { 0 });
                continue;
            }
            let wanted = self.wanted(&region.source.info, file);
            listed.insert(wanted.name(), 0);
            // A reference is written again: what an earlier attempt left may not be whole.
            let was_there = there.remove(&wanted.name());
            match wanted {
                Wanted::Link(_) if was_there && region.is_same => {}
                Wanted::Link(target) => links.push(target),
                Wanted::Reference { name, contents } => steps.references.push((dir.join(name), contents.to_vec())),
            }
        }
        // Links and references hold no cells of their own.
        let (own, foreign): (Vec<String>, Vec<String>) =
            there.into_iter().partition(|name| !is_reference(name) && !name.contains('=') && !name.starts_with('.'));
        steps.archived.push((dir.clone(), own));
        steps.removed.extend(foreign.iter().map(|name| dir.join(name)));
        let region_name = region.region.to_owned();
        steps.links.push(FamilyLinks { dir: dir.clone(), region: region_name, family: name, targets: links });
        if !region.source.is_mob() {
            steps.lists.push((family.name.clone(), dir, listed));
        }
        Ok(())
    }

    /// Last of all: what it names is there.
    fn write_list(&self, volume: &dyn Volume, family: &Bytes, dir: &FilePath, listed: Entries) -> Result<()> {
        let Some(descriptor) = self.table.families.get(family) else { return Ok(()) };
        if !Tracker::of(&self.trackers, &self.table, descriptor).is_ok_and(Tracker::keeps_list) {
            return Ok(());
        }
        let mut list = FileList::anew(volume, dir, self.now_ms)?;
        list.set(volume, listed, self.now_ms).map_err(|failed| failed.error)
    }
}

/// Where the cells of a snapshot's file may be, best guess first.
pub fn places(region: &RegionInfo, family: &[u8], file: &SnapshotFile) -> Vec<FilePath> {
    let home = |target: &LinkTarget| {
        table_dir(&target.table).join(&target.region).join(family_name(family)).join(&target.file)
    };
    if **region.encoded_name() == mob_region_name(&region.table) {
        let own = || LinkTarget {
            table: region.table.clone(),
            region: region.encoded_name().to_string(),
            file: file.name.clone(),
        };
        let home = home(&LinkTarget::of_link(&file.name).unwrap_or_else(own));
        return vec![mob_dir(&home), archive_dir(&home)];
    }
    match FileName::parse(&file.name) {
        None => Vec::new(),
        Some(name) => {
            let mut places = name.candidates(region, family);
            if let [only] = &places[..] {
                places.push(archive_dir(only));
            }
            places
        }
    }
}

/// Looks whether every file that a snapshot names is there, as long as it says. Answers what is wrong, in HBase's words. Follows:
/// `SnapshotReferenceUtil#verifyStoreFile`.
///
/// # Errors
/// What the volume says.
pub fn find_missing(volume: &dyn Volume, manifest: &Manifest) -> Result<Option<String>> {
    for (region, family, file) in manifest.files() {
        let places = places(region, family, file);
        let mut found = None;
        for place in &places {
            found = volume.stat(place)?.filter(|entry| !entry.is_dir);
            if found.is_some() {
                break;
            }
        }
        let name = &file.name;
        match found {
            None => {
                let (first, last) = (places.first(), places.last());
                let shown = |path: Option<&FilePath>| path.map(ToString::to_string).unwrap_or_default();
                return Ok(Some(format!(
                    "Can't find hfile: {name} in the real ({}) or archive ({}) directory for the primary table.",
                    shown(first),
                    shown(last)
                )));
            }
            Some(entry) if file.len_bytes != 0 && entry.len != file.len_bytes => {
                return Ok(Some(format!(
                    "hfile: {name} size does not match with the expected one.  found={} expected={}",
                    entry.len, file.len_bytes
                )));
            }
            Some(_) => {}
        }
    }
    Ok(None)
}
