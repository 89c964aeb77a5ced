//! Splitting a region: where, and the daughters' files. Daughters begin as references to halves of the parent's files, and links to those
//! that are of one daughter alone; their first compaction makes files of their own. Follows: `SplitTableRegionProcedure`, `RegionSplitPolicy`,
//! `HRegionFileSystem#splitStoreFile`.

mod busy;
mod policy;
mod restriction;

pub use busy::BusyLimits;
pub(crate) use policy::{Sizes, SplitPolicy};

use crate::RegionEnv;
use crate::compact::{SplitAt, split_at};
use crate::core::RegionCore;
use crate::error::{RegionError, Result};
use crate::store::{Store, StoreView, dictionary_of_closed};
use crate::store_file::{Opening, StoreFile, dead_names, list_store_files, reference_bytes};
use crate::stripes::Layout;
use crate::tracker::{self, tracker_of};
use base::SeqId;
use bytes::Bytes;
use cell::KeyRef;
use fs::Volume;
use hfile::HalfSide;
use model::{RegionInfo, TableDescriptor, TableName};
use rootdir::link::{FamilyLinks, LinkTarget, create_links};
use rootdir::{FileName, recovered_edits, region_dir};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Says whether and where a region is to be split.
#[derive(Clone, Copy, Debug)]
pub struct Splitter<'r> {
    core: &'r RegionCore,
}

impl<'r> Splitter<'r> {
    pub(crate) fn new(core: &'r RegionCore) -> Self {
        Splitter { core }
    }

    /// Bytes of the largest store's files.
    pub fn largest_store_bytes(&self) -> u64 {
        self.core.stores.iter().map(Store::files_len_bytes).max().unwrap_or(0)
    }

    /// Whether its policy wants the region to be split, on a server that has so many regions of the table. One with so many files that
    /// writes may soon wait for their compaction is left alone. Follows: `CompactSplit#requestSplit`, `HRegion#checkSplit`.
    pub fn should_split(&self, regions_of_table_here: usize) -> bool {
        let core = self.core;
        let sizes = Sizes {
            stores: core.stores.iter().map(Store::files_len_bytes).collect(),
            regions_of_table_here,
            writes: core.counters.writes.load(Relaxed),
            blocked: core.counters.blocked.load(Relaxed),
            now_ms: core.env.clock.now_ms().0,
        };
        let is_crowded = |store: &Store| store.peek().files.len() >= store.settings.load().blocking_store_files;
        let can_split = core.table.split_enabled() && !core.stores.iter().any(is_crowded) && self.can_split();
        core.split_policy.should_split(&sizes, can_split)
    }

    /// Whether the region could be split. Follows: `RegionSplitPolicy#canSplit`.
    pub fn can_split(&self) -> bool {
        let table = &self.core.info.table;
        let is_masters = table.is_meta() || *table == TableName::namespace_table();
        !is_masters
            && !self.core.info.is_replica()
            && self.core.serving.is_open()
            && self.core.split_policy.can_split()
            && !self.has_references()
    }

    /// Whether some file is a reference to another region's.
    pub fn has_references(&self) -> bool {
        self.core.stores.iter().any(|store| {
            let retired = store.work.lock().retired.iter().any(|retired| retired.file.is_reference());
            retired || store.peek().files.iter().any(|file| file.is_reference())
        })
    }

    /// The row in the middle of the largest file of the largest store (in stripes, between two of them if the halves are not too unequal), cut as the policy and the table's restriction say; `None` when the
    /// region cannot be split there.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn split_point(&self) -> Result<Option<Bytes>> {
        if self.core.info.table.is_meta() || self.has_references() {
            return Ok(None);
        }
        let Some(store) = self.core.stores.iter().max_by_key(|store| store.files_len_bytes()) else { return Ok(None) };
        let view = store.view();
        let Some((row, limits)) = self.middle_of(store, &view)? else { return Ok(None) };
        if limits.iter().any(|limit| row == limit[..])
            || row == self.core.info.start_key[..]
            || !self.core.info.contains(&row)
        {
            return Ok(None);
        }
        let row = self.core.split_policy.split_row(&row);
        // Cut short, it may be before the region.
        let is_inside = !row.is_empty() && row != &self.core.info.start_key[..] && self.core.info.contains(row);
        Ok(is_inside.then(|| Bytes::copy_from_slice(row)))
    }

    /// A row in the middle of a store, and those at which it would not divide anything: the first and the last of the file that it is of.
    fn middle_of(&self, store: &Store, view: &StoreView) -> Result<Option<(Bytes, Vec<Bytes>)>> {
        let mut files = &view.files[..];
        let of_stripe: Vec<Arc<StoreFile>>;
        if let Some(Layout { ends, stripes, .. }) = view.stripes.as_ref().map(|stripes| &stripes.layout) {
            let bytes_of = |stripe: &Vec<usize>| stripe.iter().map(|at| view.files[*at].len_bytes()).sum();
            let sizes: Vec<u64> = stripes.iter().map(bytes_of).collect();
            match split_at(&sizes, store.settings.load().stripes.split_imbalance) {
                // Between two stripes no file is of both halves.
                SplitAt::End(stripe) => return Ok(Some((ends[stripe].clone(), Vec::new()))),
                SplitAt::Middle(stripe) => {
                    of_stripe = stripes[stripe].iter().map(|at| view.files[*at].clone()).collect();
                    files = &of_stripe;
                }
                SplitAt::MiddleOfAll => {}
            }
        }
        let Some(file) = files.iter().max_by_key(|file| file.len_bytes()) else { return Ok(None) };
        let reader = &file.reader;
        let middle = reader.mid_key().map_err(|e| RegionError::file(self.core.name(), e))?;
        let (Some(middle), Some(first), Some(last)) = (middle, reader.first_key(), reader.last_key()) else {
            return Ok(None);
        };
        let row = KeyRef::parse(&middle).map(KeyRef::row).unwrap_or_default();
        let owned = Bytes::copy_from_slice;
        Ok(Some((owned(row), vec![owned(first.row()), owned(last.row())])))
    }
}

/// Writes the two daughters of a closed region: directories, references to the halves of the parent's files or links to all of them, ids.
/// Durable; may be repeated after a crash.
///
/// # Errors
/// When the parent still has references itself, or the volume fails.
pub fn write_daughters(
    env: &RegionEnv,
    parent: &RegionInfo,
    table: &TableDescriptor,
    daughters: [&RegionInfo; 2],
) -> Result<()> {
    let volume = &*env.volume;
    let region = parent.encoded_name();
    let wrap = |e| RegionError::volume(region, e);
    let [bottom, top] = daughters;
    let split_row = &top.start_key;
    let mut max_seq_id = used_seq_ids(volume, parent).map_err(wrap)?;
    let mut plans: Vec<Plan<'_>> = Vec::new();
    for (family, file) in own_files(env, parent, table)? {
        max_seq_id = max_seq_id.max(file.max_seq_id);
        let (Some(first), Some(last)) = (file.reader.first_key(), file.reader.last_key()) else { continue };
        let (begins_below, ends_below) = (first.row() < &split_row[..], last.row() < &split_row[..]);
        if begins_below == ends_below {
            // All of it, as it is: no compaction has to write it again before the parent can go, and what deletes hide stays hidden until one.
            let (table, region) =
                file.parsed.link.clone().unwrap_or_else(|| (parent.table.clone(), region.to_string()));
            let link = LinkTarget { table, region, file: file.parsed.file.clone() };
            plans.push(Plan { target: if ends_below { bottom } else { top }, family, what: What::Link(link) });
            continue;
        }
        let name = format!("{}.{region}", file.name);
        for (target, side) in [(bottom, HalfSide::Bottom), (top, HalfSide::Top)] {
            plans.push(Plan { target, family, what: What::Reference { name: name.clone(), row: split_row, side } });
        }
    }
    write_regions(env, table, &daughters, &plans, max_seq_id)
}

/// Writes the region that takes the place of closed, adjacent regions: its directory, references to all their files,
/// ids. Durable; may be repeated after a crash. Follows: `MergeTableRegionsProcedure#mergeStoreFiles`.
///
/// # Errors
/// When a parent still has references itself, or the volume fails.
pub fn write_merged(
    env: &RegionEnv,
    parents: &[&RegionInfo],
    table: &TableDescriptor,
    merged: &RegionInfo,
) -> Result<()> {
    let wrap = |e| RegionError::volume(merged.encoded_name(), e);
    let mut max_seq_id = SeqId(0);
    let mut plans: Vec<Plan<'_>> = Vec::new();
    for &parent in parents {
        max_seq_id = max_seq_id.max(used_seq_ids(&*env.volume, parent).map_err(wrap)?);
        for (family, file) in own_files(env, parent, table)? {
            max_seq_id = max_seq_id.max(file.max_seq_id);
            let name = format!("{}.{}", file.name, parent.encoded_name());
            // All of a file is its upper part above the region's first row.
            let what = What::Reference { name, row: &parent.start_key, side: HalfSide::Top };
            plans.push(Plan { target: merged, family, what });
        }
    }
    write_regions(env, table, &[merged], &plans, max_seq_id)
}

/// A file of a region that is made.
struct Plan<'a> {
    target: &'a RegionInfo,
    family: &'a Bytes,
    what: What<'a>,
}

enum What<'a> {
    /// Part of another region's file.
    Reference { name: String, row: &'a Bytes, side: HalfSide },
    /// All of one.
    Link(LinkTarget),
}

impl Plan<'_> {
    fn name(&self) -> String {
        match &self.what {
            What::Reference { name, .. } => name.clone(),
            What::Link(target) => target.link_name(),
        }
    }
}

/// The store files of a closed region that has none of its parent's any more, by family.
fn own_files<'a>(
    env: &RegionEnv,
    info: &RegionInfo,
    table: &'a TableDescriptor,
) -> Result<Vec<(&'a Bytes, StoreFile)>> {
    let live = live_files(env, info, table)?;
    match live.iter().find(|(_, file)| file.is_reference()) {
        None => Ok(live),
        Some((_, file)) => Err(RegionError::DoNotRetry(format!(
            "{} still holds the reference {}; compact it first",
            info.name_string(),
            file.name
        ))),
    }
}

/// The store files of a closed region that count, by family.
pub(crate) fn live_files<'a>(
    env: &RegionEnv,
    info: &RegionInfo,
    table: &'a TableDescriptor,
) -> Result<Vec<(&'a Bytes, StoreFile)>> {
    let mut live = Vec::new();
    let region = info.encoded_name();
    for (family, descriptor) in &table.families {
        let dictionary = dictionary_of_closed(env, table, descriptor, region)?;
        let opening = Opening {
            volume: &*env.volume,
            cache: &env.cache,
            info,
            family,
            in_memory: descriptor.in_memory(),
            hot_age: None,
            dictionary: dictionary.as_ref(),
            moves: None,
        };
        let dir = rootdir::family_dir(info, family);
        let tracker = tracker_of(env, info, table, descriptor)?;
        let mut files = Vec::new();
        for name in tracker::names_of_closed(opening.volume, info.encoded_name(), &dir, tracker)? {
            files.push(StoreFile::open(opening, &name, None)?);
        }
        let dead = dead_names(files.iter());
        live.extend(files.into_iter().filter(|file| !dead.contains(&file.name)).map(|file| (family, file)));
    }
    Ok(live)
}

fn write_regions(
    env: &RegionEnv,
    table: &TableDescriptor,
    targets: &[&RegionInfo],
    plans: &[Plan<'_>],
    max_seq_id: SeqId,
) -> Result<()> {
    let volume = &*env.volume;
    for &target in targets {
        let wrap = |e| RegionError::volume(target.encoded_name(), e);
        rootdir::create_region_dir_durably(volume, target, table).map_err(wrap)?;
        let mut links = Vec::new();
        for plan in plans.iter().filter(|plan| std::ptr::eq(plan.target, target)) {
            let dir = rootdir::family_dir(target, plan.family);
            match &plan.what {
                What::Reference { name, row, side } => {
                    volume.publish(&dir.join(name), &reference_bytes(row, *side)).map_err(wrap)?;
                }
                What::Link(to) => links.push(FamilyLinks {
                    dir,
                    region: target.encoded_name().to_string(),
                    family: rootdir::family_name(plan.family),
                    targets: vec![to.clone()],
                }),
            }
        }
        create_links(volume, &target.table, &links).map_err(wrap)?;
        for (name, family) in &table.families {
            let of_family = plans.iter().filter(|plan| std::ptr::eq(plan.target, target) && plan.family == name);
            let tracker = tracker_of(env, target, table, family)?;
            let (dir, names) = (rootdir::family_dir(target, name), of_family.map(Plan::name));
            tracker.set_of_closed(volume, &dir, names, env.clock.now_ms().0).map_err(wrap)?;
        }
        let dir = region_dir(target).join(recovered_edits::DIR);
        volume.create_dir_all_durable(&dir).map_err(wrap)?;
        volume.publish(&dir.join(format!("{max_seq_id}.seqid")), b"").map_err(wrap)?;
    }
    Ok(())
}

fn used_seq_ids(volume: &dyn Volume, info: &RegionInfo) -> fs::Result<SeqId> {
    match volume.list(&region_dir(info).join(recovered_edits::DIR)) {
        Ok(entries) => {
            Ok(recovered_edits::max_seq_id_file(entries.iter().map(|entry| entry.name.as_str())).unwrap_or(SeqId(0)))
        }
        Err(error) if error.is_not_found() => Ok(SeqId(0)),
        Err(error) => Err(error),
    }
}

/// Whether a region, open or not, still has references to other regions' files: its parent must stay while it does.
///
/// # Errors
/// When a directory cannot be listed: then nobody knows, and the parent must stay.
pub fn has_references(volume: &dyn Volume, info: &RegionInfo, table: &TableDescriptor) -> Result<bool> {
    for family in table.families.keys() {
        let dir = rootdir::family_dir(info, family);
        let files = list_store_files(volume, &dir).map_err(|e| RegionError::volume(info.encoded_name(), e))?;
        if files.iter().any(|(name, _)| FileName::parse(name).is_some_and(|name| name.parent.is_some())) {
            return Ok(true);
        }
    }
    Ok(false)
}
