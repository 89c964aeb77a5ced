//! MOB: values over a family's threshold lie in files of their own, beside the table, and the store file holds a
//! reference: the cell's key, the value's length and the file's name, under two tags.
//!
//! ```text
//! mobdir/data/<ns>/<table>/<mob region>/<family>/<md5 of start key><yyyyMMdd><32 hex>_<region>
//! archive/data/<ns>/<table>/<mob region>/<family>/...   when nothing refers to it any more
//! ```
//!
//! Always true: a MOB file is in its place, durably, before a store file that refers to it; nobody writes to it again;
//! who holds an older picture of the store still finds it, in the archive at last. A reader that does not ask for
//! references cannot tell a MOB family from another. Follows: `HMobStore`, `MobUtils`, `MobFileName`.

pub(crate) mod clean;
mod counts;
pub(crate) mod names;
pub(crate) mod read;
pub(crate) mod write;

use crate::RegionEnv;
use crate::error::{RegionError, Result};
use cell::{CellRef, CellType, tag};
use fs::FilePath;
use hfile::{Dictionary, Reader, ReaderContext, Residency};
use model::{FamilyDescriptor, RegionInfo, TableName};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub use counts::MobStats;
pub(crate) use names::{Refs, file_name};

/// Open files kept by one store.
const OPEN_FILES: usize = 64;

/// What a store knows of its large values.
pub(crate) struct MobStore {
    env: Arc<RegionEnv>,
    region: Arc<str>,
    start_key: bytes::Bytes,
    family: Vec<u8>,
    table: TableName,
    /// Larger values go to MOB files.
    pub threshold_bytes: u64,
    /// The tags of a reference, before the cell's own.
    reference_tags: Vec<u8>,
    /// What Zstandard blocks are packed with.
    dictionary: Option<Arc<Dictionary>>,
    /// The family's MOB files.
    pub dir: FilePath,
    open: Mutex<BTreeMap<String, Arc<Reader>>>,
    /// Files being written (no time) or lately written (when), which no store file may name yet.
    fresh: Mutex<BTreeMap<String, Option<i64>>>,
    counts: counts::MobCounts,
}

impl std::fmt::Debug for MobStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MobStore").field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// Whether the cell stands for one in a MOB file. Follows: `MobUtils#isMobReferenceCell`.
pub(crate) fn is_reference(cell: CellRef<'_>) -> bool {
    let tags = cell.tags();
    !tags.is_empty() && tag::iter(tags).any(|(kind, _)| kind == tag::MOB_REFERENCE)
}

fn is_put(cell: CellRef<'_>) -> bool {
    cell.type_code() == CellType::Put.code()
}

/// The table and the file that a reference names; `None` when it does not say so rightly.
pub(crate) fn target(cell: CellRef<'_>) -> Option<(TableName, &str)> {
    let (_, name) = cell.value().split_first_chunk::<4>()?;
    let name = std::str::from_utf8(name).ok().filter(|name| names::is_legal(name))?;
    let (_, table) = tag::iter(cell.tags()).find(|(kind, _)| *kind == tag::MOB_TABLE_NAME)?;
    Some((TableName::parse(std::str::from_utf8(table).ok()?).ok()?, name))
}

impl MobStore {
    /// `None` when the family keeps all values in its store files.
    pub(crate) fn of(
        env: &Arc<RegionEnv>,
        info: &RegionInfo,
        family: &FamilyDescriptor,
        dictionary: Option<Arc<Dictionary>>,
    ) -> Option<Arc<MobStore>> {
        if !family.is_mob() {
            return None;
        }
        let mut reference_tags = Vec::new();
        tag::write(&mut reference_tags, tag::MOB_REFERENCE, b"");
        tag::write(&mut reference_tags, tag::MOB_TABLE_NAME, info.table.as_str().as_bytes());
        Some(Arc::new(MobStore {
            env: env.clone(),
            region: info.encoded_name().clone(),
            start_key: info.start_key.clone(),
            family: family.name.to_vec(),
            table: info.table.clone(),
            threshold_bytes: family.mob_threshold_bytes(),
            reference_tags,
            dictionary,
            dir: rootdir::mob_family_dir(&info.table, &family.name),
            open: Mutex::default(),
            fresh: Mutex::default(),
            counts: counts::MobCounts::default(),
        }))
    }

    /// What its large values came to.
    pub(crate) fn stats(&self) -> MobStats {
        self.counts.stats(self.open.lock().len())
    }

    /// Whether the file was written so lately that a store file may be about to name it.
    pub(crate) fn is_fresh(&self, name: &str, now: i64, min_age_ms: i64) -> bool {
        let mut fresh = self.fresh.lock();
        fresh.retain(|_, since| since.is_none_or(|since| now.saturating_sub(since) < min_age_ms));
        fresh.contains_key(name)
    }

    /// The open file called `name` of `table`, and from where; `None` when it is nowhere.
    fn file(&self, table: &TableName, name: &str, residency: Residency) -> Result<Option<Arc<Reader>>> {
        if let Some(reader) = self.open.lock().get(name) {
            self.counts.file_accesses.fetch_add(1, Ordering::Relaxed);
            return Ok(Some(reader.clone()));
        }
        if residency == Residency::CachedOnly {
            return Err(RegionError::WouldBlock);
        }
        self.counts.file_accesses.fetch_add(1, Ordering::Relaxed);
        self.counts.file_misses.fetch_add(1, Ordering::Relaxed);
        let home = if *table == self.table { self.dir.clone() } else { rootdir::mob_family_dir(table, &self.family) };
        for path in [home.join(name), rootdir::archive_dir(&home).join(name)] {
            let cache = Some(self.env.cache.clone());
            let context = ReaderContext { cache, dictionary: self.dictionary.clone(), ..ReaderContext::default() };
            match self.env.volume.open(&path) {
                Ok(file) => {
                    let reader =
                        Reader::open_at(file, &path, context).map_err(|e| RegionError::file(&self.region, e))?;
                    let mut open = self.open.lock();
                    if open.len() >= OPEN_FILES
                        && let Some((_, old)) = open.pop_first()
                    {
                        old.evict();
                        self.counts.files_evicted.fetch_add(1, Ordering::Relaxed);
                    }
                    open.insert(name.to_owned(), reader.clone());
                    return Ok(Some(reader));
                }
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(RegionError::volume(&self.region, error)),
            }
        }
        Ok(None)
    }
}
