//! Store files that a splitter of HBase's made of a dead server's edits (`hbase.wal.split.to.hfile`): they wait in `recovered.hfiles`
//! of their family until the region is opened. Follows: `BoundedRecoveredHFilesOutputSink`, `HRegion#loadRecoveredHFilesIfAny`.

use crate::store_file::{list_store_files, store_files_of};
use fs::{FilePath, Volume};
use rootdir::tracker::list;

/// The directory in a family's.
const DIR: &str = "recovered.hfiles";

/// Names of the files that wait, with their lengths. A splitter that died before it wrote anything leaves an empty file; the next one wrote
/// its edits to another.
pub(crate) fn waiting(volume: &dyn Volume, family_dir: &FilePath) -> fs::Result<Vec<(String, u64)>> {
    let entries = rootdir::list_if_exists(volume, &family_dir.join(DIR))?;
    let files = entries.into_iter().filter(|entry| !entry.is_dir && entry.len > 0);
    Ok(files.map(|entry| (entry.name, entry.len)).collect())
}

/// Names of the store files in a family's directory, with their lengths; those that wait have become some of them. A process that dies on
/// the way has moved some of them and the next opening moves the others: each is whole, and counts where it is.
///
/// `drops_list`: a list of a tracker that the family had before goes. It would keep the files that it names in the archive.
pub(crate) fn list_with_recovered(
    volume: &dyn Volume,
    family_dir: &FilePath,
    drops_list: bool,
) -> fs::Result<Vec<(String, u64)>> {
    let entries = match volume.list(family_dir) {
        Ok(entries) => entries,
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let has = |name: &str| entries.iter().any(|entry| entry.is_dir && entry.name == name);
    if drops_list && has(list::DIR) {
        volume.remove_dir_all(&family_dir.join(list::DIR))?;
    }
    if !has(DIR) {
        return Ok(store_files_of(entries));
    }
    let dir = family_dir.join(DIR);
    for (name, _) in waiting(volume, family_dir)? {
        volume.rename_new(&dir.join(&name), &family_dir.join(&name))?;
        tracing::info!("{family_dir} takes {name} of a dead server's edits");
    }
    // The new names are durable before the old ones are gone for good.
    volume.sync_dir(family_dir)?;
    volume.remove_dir_all(&dir)?;
    list_store_files(volume, family_dir)
}
