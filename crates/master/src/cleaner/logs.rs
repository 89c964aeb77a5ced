//! `oldWALs`: logs whose entries are all in store files; and the files of the master's own store in the archive, to
//! which nothing ever refers. Follows: `LogCleaner`, `TimeToLiveLogCleaner`, `TimeToLiveMasterLocalStoreWALCleaner`,
//! `TimeToLiveMasterLocalStoreHFileCleaner`.

use super::ages::Ages;
use super::names::{self, OldLog};
use crate::Result;
use fs::{FilePath, Volume};
use model::ServerName;

/// Ends the names of the archived files of the master's own store.
const MASTER_STORE_SUFFIX: &str = "$-masterlocalhfile-$";

/// How long logs are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogTimes {
    pub now_us: u64,
    pub ttl_us: u64,
    pub master_store_ttl_us: u64,
    pub master_store_file_ttl_us: u64,
}

/// Notes the age of every archived log and file of the master's store in `seen`, and the bytes of the logs in `held_bytes`; answers those
/// that are old enough.
/// HBase may have put the logs into one directory for each server.
pub(super) fn survey(
    volume: &dyn Volume,
    times: LogTimes,
    before: &Ages,
    seen: &mut Ages,
    held_bytes: &mut u64,
) -> Result<Vec<FilePath>> {
    let mut due = Vec::new();
    let root = rootdir::old_wals_dir();
    let mut dirs = vec![root.clone()];
    while let Some(dir) = dirs.pop() {
        for entry in rootdir::list_if_exists(volume, &dir)? {
            let path = dir.join(&entry.name);
            if entry.is_dir {
                if dir == root && entry.name.parse::<ServerName>().is_ok() {
                    dirs.push(path);
                }
                continue;
            }
            let ttl_us = match names::old_log(&entry.name) {
                Some(OldLog::Server) => times.ttl_us,
                Some(OldLog::MasterStore) => times.master_store_ttl_us,
                None => continue,
            };
            *held_bytes += entry.len;
            if seen.note(before, &path, times.now_us, ttl_us) {
                due.push(path);
            }
        }
    }
    let archived_store = rootdir::paths::archived_master_store_dir();
    for region in dirs_in(volume, &archived_store)? {
        for family in dirs_in(volume, &region)? {
            for entry in rootdir::list_if_exists(volume, &family)? {
                let path = family.join(&entry.name);
                if !entry.is_dir
                    && entry.name.ends_with(MASTER_STORE_SUFFIX)
                    && seen.note(before, &path, times.now_us, times.master_store_file_ttl_us)
                {
                    due.push(path);
                }
            }
        }
    }
    Ok(due)
}

fn dirs_in(volume: &dyn Volume, dir: &FilePath) -> Result<Vec<FilePath>> {
    let entries = rootdir::list_if_exists(volume, dir)?;
    Ok(entries.iter().filter(|entry| entry.is_dir).map(|entry| dir.join(&entry.name)).collect())
}
