//! Store files that a splitter of HBase's made of a dead server's edits (`hbase.wal.split.to.hfile`): they wait in `recovered.hfiles`
//! of their family until the region is opened. Follows: `BoundedRecoveredHFilesOutputSink`, `HRegion#loadRecoveredHFilesIfAny`.

use crate::store_file::{list_store_files, store_files_of};
use fs::{FilePath, Volume};

/// The directory in a family's.
const DIR: &str = "recovered.hfiles";

/// Names of the store files in a family's directory, with their lengths; those that wait have become some of them. A process that dies on
/// the way has moved some of them and the next opening moves the others: each is whole, and counts where it is.
pub(crate) fn list_with_recovered(volume: &dyn Volume, family_dir: &FilePath) -> fs::Result<Vec<(String, u64)>> {
    let entries = match volume.list(family_dir) {
        Ok(entries) => entries,
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    if !entries.iter().any(|entry| entry.is_dir && entry.name == DIR) {
        return Ok(store_files_of(entries));
    }
    let waiting = family_dir.join(DIR);
    for entry in volume.list(&waiting)? {
        // A splitter that died before it wrote anything leaves an empty file; the next one wrote its edits to another.
        if !entry.is_dir && entry.len > 0 {
            volume.rename_new(&waiting.join(&entry.name), &family_dir.join(&entry.name))?;
            tracing::info!("{family_dir} takes {} of a dead server's edits", entry.name);
        }
    }
    // The new names are durable before the old ones are gone for good.
    volume.sync_dir(family_dir)?;
    volume.remove_dir_all(&waiting)?;
    list_store_files(volume, family_dir)
}
