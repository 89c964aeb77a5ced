//! Splitting a region: where, and the daughters' files. Daughters begin as references to halves of the parent's files;
//! their first compaction makes files of their own. Follows: `SplitTableRegionProcedure`, `RegionSplitPolicy`.

use crate::RegionEnv;
use crate::core::RegionCore;
use crate::error::{RegionError, Result};
use crate::store::Store;
use crate::store_file::{Opening, StoreFile, list_store_files, reference_bytes};
use base::SeqId;
use bytes::Bytes;
use cell::KeyRef;
use fs::Volume;
use hfile::HalfSide;
use model::{RegionInfo, TableDescriptor};
use rootdir::{FileName, recovered_edits, region_dir};
use std::cmp::Ordering;

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

    /// Whether the region is larger than a region should be and can be split. Follows: `ConstantSizeRegionSplitPolicy`.
    pub fn should_split(&self) -> bool {
        let limit = self.core.table.max_file_size_bytes().unwrap_or(self.core.settings.max_file_size_bytes);
        self.is_larger_than(limit)
    }

    /// As [`Splitter::should_split`], where a table's only region here is split early, so that a new table soon spreads.
    /// Follows: `SteppingSplitPolicy`, HBase's default.
    pub fn should_split_stepping(&self, regions_of_table_here: usize) -> bool {
        if regions_of_table_here == 1 {
            return self.is_larger_than(2 * self.core.flush_size_bytes());
        }
        self.should_split()
    }

    fn is_larger_than(&self, limit_bytes: u64) -> bool {
        self.core.table.split_enabled()
            && !self.core.info.table.is_system()
            && !self.has_references()
            && self.largest_store_bytes() > limit_bytes
    }

    /// Whether some file is a reference to another region's.
    pub fn has_references(&self) -> bool {
        self.core.stores.iter().any(|store| {
            let retired = store.work.lock().retired.iter().any(|retired| retired.file.is_reference());
            retired || store.peek().files.iter().any(|file| file.is_reference())
        })
    }

    /// The row in the middle of the largest file of the largest store; `None` when the region cannot be split there.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn split_point(&self) -> Result<Option<Bytes>> {
        if self.core.info.table.is_meta() || self.has_references() {
            return Ok(None);
        }
        let Some(store) = self.core.stores.iter().max_by_key(|store| store.files_len_bytes()) else { return Ok(None) };
        let view = store.view();
        let Some(file) = view.files.iter().max_by_key(|file| file.len_bytes()) else { return Ok(None) };
        let reader = &file.reader;
        let middle = reader.mid_key().map_err(|e| RegionError::file(self.core.name(), e))?;
        let (Some(middle), Some(first), Some(last)) = (middle, reader.first_key(), reader.last_key()) else {
            return Ok(None);
        };
        let row = KeyRef::parse(&middle).map(KeyRef::row).unwrap_or_default();
        if row == first.row()
            || row == last.row()
            || row == &self.core.info.start_key[..]
            || !self.core.info.contains(row)
        {
            return Ok(None);
        }
        Ok(Some(Bytes::copy_from_slice(row)))
    }
}

/// Writes the two daughters of a closed region: directories, references to the halves of the parent's files, ids.
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
        let name = format!("{}.{region}", file.name);
        if first.row().cmp(split_row) == Ordering::Less {
            plans.push(Plan { target: bottom, family, name: name.clone(), row: split_row, side: HalfSide::Bottom });
        }
        if last.row().cmp(split_row) != Ordering::Less {
            plans.push(Plan { target: top, family, name, row: split_row, side: HalfSide::Top });
        }
    }
    write_references(env, table, &daughters, &plans, max_seq_id)
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
            plans.push(Plan { target: merged, family, name, row: &parent.start_key, side: HalfSide::Top });
        }
    }
    write_references(env, table, &[merged], &plans, max_seq_id)
}

/// A reference to be written.
struct Plan<'a> {
    target: &'a RegionInfo,
    family: &'a Bytes,
    name: String,
    row: &'a Bytes,
    side: HalfSide,
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
    for (family, descriptor) in &table.families {
        let opening =
            Opening { volume: &*env.volume, cache: &env.cache, info, family, in_memory: descriptor.in_memory() };
        let listed = list_store_files(opening.volume, &rootdir::family_dir(info, family));
        let mut files = Vec::new();
        for (name, _) in listed.map_err(|e| RegionError::volume(info.encoded_name(), e))? {
            files.push(StoreFile::open(opening, &name, None)?);
        }
        let replaced: Vec<String> = files.iter().flat_map(StoreFile::replaces).collect();
        live.extend(files.into_iter().filter(|file| !replaced.contains(&file.name)).map(|file| (family, file)));
    }
    Ok(live)
}

fn write_references(
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
        for plan in plans.iter().filter(|plan| std::ptr::eq(plan.target, target)) {
            let path = rootdir::family_dir(target, plan.family).join(&plan.name);
            volume.publish(&path, &reference_bytes(plan.row, plan.side)).map_err(wrap)?;
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
