//! What the store files of a region that is not open hold, seen from outside: so that recovery need not carry edits that are there.

use crate::store_file::list_store_files;
use base::SeqId;
use fs::{FilePath, Volume};
use hfile::{Reader, ReaderContext};
use rootdir::FileName;
use std::collections::HashMap;

/// By family directory, the id up to which all edits are in store files. What cannot be said for certain is left out: files that stand for
/// others, were bulk loaded, or cannot be read. Costs a sync of each family's directory and a read of each file's end.
pub fn flushed_seq_ids(volume: &dyn Volume, region_dir: &FilePath) -> HashMap<String, SeqId> {
    let mut flushed = HashMap::new();
    for family in rootdir::family_names(volume, region_dir).unwrap_or_default() {
        let dir = region_dir.join(&family);
        // What is passed over because of a file needs that file's name on the disk.
        if volume.sync_dir(&dir).is_err() {
            continue;
        }
        let mut files = list_store_files(volume, &dir).unwrap_or_default();
        // Perhaps it is this list that counts and not the directory; a file that both name is one in any case.
        match rootdir::tracker::list::read(volume, &dir) {
            Ok(Some(listed)) => files.retain(|(name, _)| listed.contains_key(name)),
            Ok(None) => {}
            Err(_) => continue,
        }
        let highest = files.iter().filter_map(|(name, _)| {
            let own = FileName::parse(name).is_some_and(|name| name.link.is_none() && name.parent.is_none());
            let reader = own.then(|| Reader::open(volume, &dir.join(name), ReaderContext::default()).ok())??;
            // Of a flush into several files the last alone says that it was done.
            if reader.bulk_load_time_ms().is_some() || reader.more_follow() { None } else { reader.max_seq_id() }
        });
        if let Some(highest) = highest.max() {
            flushed.insert(family, highest);
        }
    }
    flushed
}
