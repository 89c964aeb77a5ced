//! The notes of deleted families in a region's `recovered.edits`, whose format is [`rootdir::recovered_edits`]'s.

use fs::{DirEntry, FilePath, Volume};
use model::RegionInfo;
use rootdir::recovered_edits::{self, DeletedFamily, max_seq_id_file};
use rootdir::region_dir;

/// Those of a region that count.
pub(crate) fn load_live(volume: &dyn Volume, info: &RegionInfo) -> fs::Result<Vec<DeletedFamily>> {
    let dir = region_dir(info).join(recovered_edits::DIR);
    match volume.list(&dir) {
        Ok(entries) => live_among(volume, &dir, &entries),
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Those among the `entries` of the directory that count; those that count no more go.
pub(crate) fn live_among(volume: &dyn Volume, dir: &FilePath, entries: &[DirEntry]) -> fs::Result<Vec<DeletedFamily>> {
    let is_note = |entry: &&DirEntry| DeletedFamily::dir_of(&entry.name).is_some();
    if !entries.iter().any(|entry| is_note(&entry)) {
        return Ok(Vec::new());
    }
    // A note that is passed over because of an id needs that id's name on the disk.
    volume.sync_dir(dir)?;
    let closed_seq_id = max_seq_id_file(entries.iter().map(|entry| entry.name.as_str())).unwrap_or_default();
    let mut counting = Vec::new();
    for entry in entries.iter().filter(is_note) {
        let path = dir.join(&entry.name);
        match DeletedFamily::read(&entry.name, &volume.read(&path)?) {
            Some(note) if note.closed_seq_id == closed_seq_id => counting.push(note),
            // Somebody has opened or closed the region since: another family of the name may have been written to.
            Some(_) => volume.remove_file(&path)?,
            None => {
                tracing::warn!(
                    "{path} is not the note of a deleted family that its name says it is; it is passed over"
                );
            }
        }
    }
    Ok(counting)
}
