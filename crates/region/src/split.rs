//! Splitting a region: where, and the daughters' files. Daughters begin as references to halves of the parent's files;
//! their first compaction makes files of their own. Follows: `SplitTableRegionProcedure`, `RegionSplitPolicy`.

use crate::RegionEnv;
use crate::error::{RegionError, Result};
use crate::layout::{self, FileName, RECOVERED_EDITS_DIR, region_dir};
use crate::region::Region;
use crate::store::Store;
use crate::store_file::{Opening, StoreFile, list_store_files, reference_bytes};
use base::SeqId;
use bytes::Bytes;
use cell::KeyRef;
use fs::Volume;
use hfile::HalfSide;
use model::{RegionInfo, TableDescriptor};
use std::cmp::Ordering;

impl Region {
    /// Bytes of the largest store's files.
    pub fn largest_store_bytes(&self) -> u64 {
        self.stores.iter().map(Store::files_len_bytes).max().unwrap_or(0)
    }

    /// Whether the region is larger than a region should be and can be split. Follows: `ConstantSizeRegionSplitPolicy`.
    pub fn should_split(&self) -> bool {
        let limit = self.table().max_file_size_bytes().unwrap_or(self.settings.max_file_size_bytes);
        self.is_larger_than(limit)
    }

    /// As [`Region::should_split`], where a table's only region here is split early, so that a new table soon spreads.
    /// Follows: `SteppingSplitPolicy`, HBase's default.
    pub fn should_split_stepping(&self, regions_of_table_here: usize) -> bool {
        if regions_of_table_here == 1 {
            return self.is_larger_than(2 * self.flush_size_bytes());
        }
        self.should_split()
    }

    fn is_larger_than(&self, limit_bytes: u64) -> bool {
        self.table().split_enabled()
            && !self.info().table.is_system()
            && !self.has_references()
            && self.largest_store_bytes() > limit_bytes
    }

    /// Whether some file is a reference to another region's.
    pub fn has_references(&self) -> bool {
        self.stores.iter().any(|store| {
            let retired = store.work.lock().retired.iter().any(|file| file.is_reference());
            retired || store.peek().files.iter().any(|file| file.is_reference())
        })
    }

    /// The row in the middle of the largest file of the largest store; `None` when the region cannot be split there.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn split_point(&self) -> Result<Option<Bytes>> {
        if self.info().table.is_meta() || self.has_references() {
            return Ok(None);
        }
        let Some(store) = self.stores.iter().max_by_key(|store| store.files_len_bytes()) else { return Ok(None) };
        let view = store.view();
        let Some(file) = view.files.iter().max_by_key(|file| file.len_bytes()) else { return Ok(None) };
        let reader = &file.reader;
        let middle = reader.mid_key().map_err(|e| RegionError::file(self.name(), e))?;
        let (Some(middle), Some(first), Some(last)) = (middle, reader.first_key(), reader.last_key()) else {
            return Ok(None);
        };
        let row = KeyRef::parse(&middle).map(KeyRef::row).unwrap_or_default();
        if row == first.row() || row == last.row() || row == &self.info().start_key[..] || !self.info().contains(row) {
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
    let mut max_seq_id = SeqId(0);
    let mut plans: Vec<(&RegionInfo, &Bytes, String, HalfSide)> = Vec::new();
    for (family, descriptor) in &table.families {
        let dir = layout::family_dir(parent, family);
        let opening = Opening { volume, cache: &env.cache, info: parent, family, in_memory: descriptor.in_memory() };
        let mut files = Vec::new();
        for (name, _) in list_store_files(volume, &dir).map_err(wrap)? {
            files.push(StoreFile::open(opening, &name, None)?);
        }
        let replaced: Vec<String> = files.iter().flat_map(StoreFile::replaces).collect();
        for file in files.iter().filter(|file| !replaced.contains(&file.name)) {
            if file.is_reference() {
                return Err(RegionError::DoNotRetry(format!(
                    "{} still holds the reference {}; compact it before it is split",
                    parent.name_string(),
                    file.name
                )));
            }
            max_seq_id = max_seq_id.max(file.max_seq_id);
            let (Some(first), Some(last)) = (file.reader.first_key(), file.reader.last_key()) else { continue };
            let name = format!("{}.{region}", file.name);
            if first.row().cmp(split_row) == Ordering::Less {
                plans.push((bottom, family, name.clone(), HalfSide::Bottom));
            }
            if last.row().cmp(split_row) != Ordering::Less {
                plans.push((top, family, name, HalfSide::Top));
            }
        }
    }
    max_seq_id = max_seq_id.max(used_seq_ids(volume, parent).map_err(wrap)?);
    for daughter in daughters {
        layout::create_region_dir(volume, daughter, table).map_err(wrap)?;
    }
    for (daughter, family, name, side) in plans {
        let path = layout::family_dir(daughter, family).join(name);
        volume.publish(&path, &reference_bytes(split_row, side)).map_err(wrap)?;
    }
    for daughter in daughters {
        let dir = region_dir(daughter).join(RECOVERED_EDITS_DIR);
        volume.create_dir_all(&dir).map_err(wrap)?;
        volume.publish(&dir.join(format!("{max_seq_id}.seqid")), b"").map_err(wrap)?;
        volume.sync_dir(&region_dir(daughter)).map_err(wrap)?;
    }
    Ok(())
}

fn used_seq_ids(volume: &dyn Volume, info: &RegionInfo) -> fs::Result<SeqId> {
    match volume.list(&region_dir(info).join(RECOVERED_EDITS_DIR)) {
        Ok(entries) => Ok(layout::max_seq_id_file(entries.iter().map(|entry| entry.name.as_str())).unwrap_or(SeqId(0))),
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
        let dir = layout::family_dir(info, family);
        let files = list_store_files(volume, &dir).map_err(|e| RegionError::volume(info.encoded_name(), e))?;
        if files.iter().any(|(name, _)| FileName::parse(name).is_some_and(|name| name.parent.is_some())) {
            return Ok(true);
        }
    }
    Ok(false)
}
