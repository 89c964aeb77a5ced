//! Archiving MOB files that no store file refers to: what flushes and compactions gave up, and what was rewritten.
//!
//! A file goes only with proof: every store file of the family, in every directory of the table, was read and none
//! names it; it is old enough that nobody can be about to name it. Anything that is not understood keeps all. Who still
//! reads it finds it in the archive. Follows: `RSMobFileCleanerChore`, `MobFileCleanupUtil`.

use super::names::{self, Refs};
use crate::RegionEnv;
use crate::error::{RegionError, Result};
use crate::region::Region;
use crate::store::dictionary_of_closed;
use crate::store_file::{Opening, StoreFile, list_store_files};
use fs::FilePath;
use hfile::file_info::key;
use hfile::{Reader, ReaderContext};
use model::TableDescriptor;
use rootdir::link::LinkTarget;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Archives the MOB files of a table that nothing refers to any more and that are older than `min_age_ms`; returns how
/// many. `open` are the table's regions that are open on this server: what they have just written stays.
///
/// # Errors
/// The volume fails, or a store file or directory is not understood: nothing more is archived then.
pub fn clean_mob_files(
    env: &RegionEnv,
    table: &TableDescriptor,
    open: &[Arc<Region>],
    min_age_ms: i64,
) -> Result<usize> {
    let volume = &*env.volume;
    let place: Arc<str> = Arc::from(table.name.as_str());
    let wrap = |e| RegionError::volume(&place, e);
    let now = env.clock.now_ms().0;
    let mut archived = 0;
    for family in table.families.values().filter(|family| family.is_mob()) {
        let dir = rootdir::mob_family_dir(&table.name, &family.name);
        // The candidates before the references: what is written meanwhile is no candidate.
        let candidates: Vec<String> = match volume.list(&dir) {
            Ok(entries) => entries.into_iter().filter(|entry| !entry.is_dir).map(|entry| entry.name).collect(),
            Err(error) if error.is_not_found() => continue,
            Err(error) => return Err(wrap(error)),
        };
        let (links, candidates) = candidates.into_iter().partition::<Vec<String>, _>(|name| name.contains('='));
        remove_links(env, table, &family.name, &dir, &links)?;
        let stores = || open.iter().filter_map(|region| region.core().store(&family.name)?.mob.as_ref());
        let mut candidates: Vec<String> = candidates
            .into_iter()
            .filter(|name| names::region_of(name).is_some() && names::is_legal(name))
            .filter(|name| !stores().any(|store| store.is_fresh(name, now, min_age_ms)))
            .collect();
        if candidates.is_empty() {
            continue;
        }
        let Some(used) = used_files(env, table, &family.name)? else { continue };
        candidates.retain(|name| !used.contains(name));
        let mut due = Vec::new();
        let dictionary = dictionary_of_closed(env, table, family, &place)?;
        for name in &candidates {
            let path = dir.join(name);
            let context = ReaderContext { dictionary: dictionary.clone(), ..ReaderContext::default() };
            let reader = match Reader::open(volume, &path, context) {
                Ok(reader) => reader,
                Err(error) => {
                    tracing::warn!(%error, "a MOB file that nothing refers to cannot be read; it stays");
                    continue;
                }
            };
            if reader.create_time_ms().is_some_and(|made| now.saturating_sub(made) >= min_age_ms) {
                due.push(name.as_str());
            }
        }
        if due.is_empty() {
            continue;
        }
        let target = rootdir::archive_dir(&dir);
        volume.create_dir_all_durable(&target).map_err(wrap)?;
        for name in &due {
            match volume.rename(&dir.join(name), &target.join(name)) {
                Err(error) if !error.is_not_found() => return Err(wrap(error)),
                _ => archived += 1,
            }
        }
        volume.sync_dir(&target).and_then(|()| volume.sync_dir(&dir)).map_err(wrap)?;
    }
    Ok(archived)
}

/// Removes links to MOB files of another table, of which no store file here speaks any more. They hold nothing; the archive keeps what
/// they stand for as long as they are there.
fn remove_links(
    env: &RegionEnv,
    table: &TableDescriptor,
    family: &[u8],
    dir: &FilePath,
    links: &[String],
) -> Result<()> {
    if links.is_empty() {
        return Ok(());
    }
    let Some(used) = used_files(env, table, family)? else { return Ok(()) };
    let unused = |name: &&String| LinkTarget::of_link(name).is_some_and(|target| !used.contains(&target.file));
    let place: Arc<str> = Arc::from(table.name.as_str());
    for name in links.iter().filter(unused) {
        match env.volume.remove_file(&dir.join(name)) {
            Err(error) if !error.is_not_found() => return Err(RegionError::volume(&place, error)),
            _ => {}
        }
    }
    Ok(())
}

/// Every MOB file that a store file of the family names; `None` when one does not say which it names.
fn used_files(env: &RegionEnv, table: &TableDescriptor, family: &[u8]) -> Result<Option<BTreeSet<String>>> {
    let volume = &*env.volume;
    let place: Arc<str> = Arc::from(table.name.as_str());
    let wrap = |e| RegionError::volume(&place, e);
    let mut used = BTreeSet::new();
    let dictionary = match table.families.get(family) {
        Some(family) => dictionary_of_closed(env, table, family, &place)?,
        None => None,
    };
    for entry in volume.list(&rootdir::table_dir(&table.name)).map_err(wrap)? {
        if !entry.is_dir || entry.name.starts_with('.') {
            continue;
        }
        let dir = rootdir::table_dir(&table.name).join(&entry.name);
        let Some(info) = rootdir::read_region_info(volume, &dir).map_err(wrap)? else {
            tracing::warn!(%dir, "a region's directory is not understood: no MOB file of its table is archived");
            return Ok(None);
        };
        let opening = Opening {
            volume,
            cache: &env.cache,
            info: &info,
            family,
            in_memory: false,
            hot_age: None,
            dictionary: dictionary.as_ref(),
            moves: None,
        };
        for (name, _) in list_store_files(volume, &rootdir::family_dir(&info, family)).map_err(wrap)? {
            let file = match StoreFile::open(opening, &name, None) {
                Ok(file) => file,
                // Compacted and archived since it was listed: what it named, its successor names or gave up on purpose,
                // and the successor may not have been in the list.
                Err(RegionError::Volume { source, .. }) if source.is_not_found() => return Ok(None),
                Err(error) => return Err(error),
            };
            let info = file.reader.file_info();
            match info.get(key::MOB_FILE_REFS).map(|bytes| Refs::parse(bytes)) {
                Some(Some(refs)) => used.extend(refs.names().map(str::to_owned)),
                // A bulk-loaded file has no references of its own, unless it says so.
                None if file.is_bulk_loaded || file.reader.entry_count() == 0 => {}
                _ => {
                    tracing::warn!(file = %file.reader.path(), "a store file does not say which MOB files it refers to: none is archived until it is compacted");
                    return Ok(None);
                }
            }
        }
    }
    Ok(Some(used))
}
