//! Which of a dead server's logs stands on the one before: what an unsynced log wrote to its next file while the one before was being synced
//! counts only if that one is whole.
//!
//! Without it a power failure in just that moment, when the operating system has written out the new file and not yet the end of the old
//! one, would leave a hole: later writes without the earlier ones that they were built on.

use crate::seal::Follows;
use crate::split::archive_log;
use crate::{Error, Reader, Result};
use fs::{FilePath, Volume};
use std::fmt;

/// A log that was put away because the one before it is not whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// Where it was.
    pub path: FilePath,
    /// The one before.
    pub before: FilePath,
    /// What is left of that one.
    pub left_bytes: u64,
    /// What that one was long.
    pub whole_bytes: u64,
}

impl fmt::Display for Quarantined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quarantined { path, before, left_bytes, whole_bytes } = self;
        write!(
            f,
            "{path} is archived unread: it continues {before}, of which a power failure has left {left_bytes} of {whole_bytes} bytes; \
             neither was acknowledged as synced (hbase.wal.hsync is off)"
        )
    }
}

/// The time in a log's name, `<server>.<ms>` or `<server>.meta.<ms>.meta`.
pub(crate) fn file_ms(name: &str) -> Option<u64> {
    split_name(name).map(|(_, ms)| ms)
}

/// Whose log it is, and the time.
fn split_name(name: &str) -> Option<(&str, u64)> {
    let (log, ms) = name.strip_suffix(".meta").unwrap_or(name).rsplit_once('.')?;
    Some((log, ms.parse().ok()?))
}

/// Moves to `archive_dir`, durably, the log below `wal_dir` whose entries must not be read because the one before it lost its end; there is one at most.
/// Nobody may have read these logs for good before, for what this finds depends on both files being there. Costs the first entry of each
/// log, and a whole one that has no trailer.
///
/// # Errors
/// [`Error::Corrupt`] when a log lost what a later one knows to have been on the disk; else what reading or moving said.
pub fn quarantine_orphaned_log(
    volume: &dyn Volume,
    wal_dir: &FilePath,
    archive_dir: &FilePath,
) -> Result<Option<Quarantined>> {
    let logs = volume.list(wal_dir)?.into_iter().filter(|entry| !entry.is_dir);
    let logs: Vec<FilePath> = logs.map(|entry| wal_dir.join(&entry.name)).collect();
    for path in logs.iter().filter(|_| !base::inject!("wal.order.lost-end-counts")) {
        let Some(found) = find_orphaned(volume, path, &logs)? else { continue };
        archive_log(volume, path, archive_dir)?;
        // Before the older one may go, which would make this one look well founded.
        volume.sync_dir(wal_dir)?;
        return Ok(Some(found));
    }
    Ok(None)
}

/// Whether the log stands on nothing.
fn find_orphaned(volume: &dyn Volume, path: &FilePath, logs: &[FilePath]) -> Result<Option<Quarantined>> {
    let Some((log, ms)) = split_name(path.name()) else { return Ok(None) };
    // Damage is found, and told, by whoever reads the entries.
    let Some(mut reader) = readable(Reader::open(volume, path))? else { return Ok(None) };
    let Some(Some(_first)) = readable(reader.next())? else { return Ok(None) };
    let Some(follows) = reader.follows() else { return Ok(None) };
    let of_log = |path: &&FilePath| split_name(path.name()).filter(|(name, _)| *name == log).map(|(_, ms)| ms);
    let before = logs.iter().rev().find(|path| of_log(path).is_some_and(|before| before < ms && follows.is_of(before)));
    // When it is gone all its edits are in store files.
    let Some(before) = before else { return Ok(None) };
    let Some(left_bytes) = lost_end(volume, before, follows)? else { return Ok(None) };
    let whole_bytes = u64::from(follows.len_bytes);
    // A next one was only made when the one before this was on the disk.
    let mut was_synced = logs.iter().any(|path| of_log(&path).is_some_and(|after| after > ms));
    let mut more = true;
    while more && !was_synced {
        more = reader.next()?.is_some();
        was_synced = reader.is_vouched();
    }
    if was_synced {
        let what = format!("it had {whole_bytes} bytes of entries, all of them on the disk, as {path} shows");
        return Err(Error::corrupt(before, left_bytes, what));
    }
    Ok(Some(Quarantined { path: path.clone(), before: before.clone(), left_bytes, whole_bytes }))
}

/// Where the log ends, if that is before the end that it had.
fn lost_end(volume: &dyn Volume, path: &FilePath, follows: Follows) -> Result<Option<u64>> {
    let Some(mut reader) = readable(Reader::open(volume, path))? else { return Ok(None) };
    if reader.has_trailer() {
        return Ok(None);
    }
    loop {
        match readable(reader.next())? {
            Some(Some(_)) => {}
            Some(None) => break,
            None => return Ok(None),
        }
    }
    let end = reader.position();
    Ok((end < u64::from(follows.len_bytes)).then_some(end))
}

/// `None` for what is damaged.
fn readable<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Ok(read) => Ok(Some(read)),
        Err(Error::Corrupt { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
