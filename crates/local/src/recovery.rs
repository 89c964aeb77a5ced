//! What earlier lives left in their logs.

use fs::{FilePath, Volume};

/// Splits the logs of servers that are no more into their regions' `recovered.edits`, and archives them. Between
/// `master::rootdir::prepare` and the start of a master; `worker` is the new server's name.
///
/// # Errors
/// A log that cannot be read or split: the start must end, for what it holds was promised.
pub fn recover_logs(volume: &dyn Volume, worker: &str) -> wal::Result<()> {
    let wals = FilePath::new("WALs");
    if !volume.exists(&wals)? {
        return Ok(());
    }
    for entry in volume.list(&wals)?.into_iter().filter(|entry| entry.is_dir) {
        let dir = wals.join(&entry.name);
        // Which of a region's entries are in its files already is seen when it is opened, family by family.
        let flushed = |_: &str| None;
        let mut regions = wal::RegionDirectories { volume, root: FilePath::root(), flushed };
        let options = wal::SplitOptions { worker: worker.to_owned(), ..wal::SplitOptions::default() };
        let report = wal::split_directory(volume, &dir, &FilePath::new("oldWALs"), &mut regions, &options)?;
        if report.entries > 0 {
            tracing::info!("{} entries of {dir} go to {} files of recovered edits", report.entries, report.files.len());
        }
    }
    Ok(())
}
