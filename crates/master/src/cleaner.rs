//! The cleaners: take store files out of the archive and logs out of `oldWALs`, so that the disk does not fill.
//!
//! Always true:
//!  1. A file is deleted only with proof that nobody needs it: no snapshot, link, reference or back reference names it, and no mark of a
//!     backup needs it.
//!     A list or read that fails, a damaged manifest, anything that is not understood proves nothing, and then nothing
//!     is deleted from the archive.
//!  2. A file whose name or place is not understood stays.
//!  3. A file has been unneeded for its whole time to live, as far as this process saw; a restart only delays.
//!  4. A directory of the archive is removed only when nothing can be archived to it: its region or table is gone from
//!     `data`, and whoever could make it again is locked out.
//!
//! Whoever makes a new link or reference to a file that is in the archive already (a clone or restore of a snapshot),
//! or a snapshot, holds [`crate::Master`]'s `cleaner` lock meanwhile. Splits, merges and compactions need not: what
//! their files stand for is named by a file that is still there.
//!
//! Follows: `CleanerChore`, `HFileCleaner`, `LogCleaner` and their delegates for time to live, links and snapshots.

mod ages;
mod archive;
mod logs;
mod names;
mod proof;

use crate::master::Master;
use crate::peers::{READ_REPLICAS, peers_dir};
use crate::procedure::{namespace_locks, table_locks};
use crate::{MasterError, Result};
use ages::Ages;
use archive::Times;
use fs::{FilePath, Volume};
use logs::LogTimes;
use model::name::SYSTEM_NAMESPACE;
use proof::Proof;
use rootdir::backup_hold::{self, Hold, HoldError, LogName};
use rootdir::namespace_dir;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Rest between two steps of deleting, so that others get the disk.
const PAUSE: Duration = Duration::from_millis(5);
/// Logs deleted in one step. They are large.
const LOGS_PER_STEP: usize = 8;

/// What the cleaners remember.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    files: Arc<Ages>,
    logs: Ages,
}

/// What a round of the cleaners did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Files deleted from the archive.
    pub files: usize,
    /// Logs deleted from `oldWALs`, and archived files of the master's own store.
    pub logs: usize,
}

/// Who keeps files that no name in the root directory speaks of, if there is anybody: replication queues and backups
/// that HBase was told of.
fn outside_holder(volume: &dyn Volume) -> Result<Option<&'static str>> {
    for (dir, holder) in [
        (namespace_dir(SYSTEM_NAMESPACE).join("replication"), "hbase:replication"),
        (namespace_dir("backup"), "the tables of backups"),
    ] {
        if volume.exists(&dir)? {
            return Ok(Some(holder));
        }
    }
    for dir in [FilePath::new("peers"), peers_dir()] {
        if rootdir::list_if_exists(volume, &dir)?.iter().any(|entry| entry.name != READ_REPLICAS) {
            return Ok(Some("a replication peer"));
        }
    }
    Ok(None)
}

/// What backups elsewhere still need.
fn holds(volume: &dyn Volume) -> Result<BTreeMap<String, Hold>> {
    backup_hold::load(volume).map_err(|error| match error {
        HoldError::Io(error) => error.into(),
        damaged => MasterError::do_not_retry(damaged.to_string()),
    })
}

/// Deletes what can be deleted from the archive and from `oldWALs`, whatever the switch says. Takes as long as it
/// takes, in small steps; one round at a time.
///
/// # Errors
/// The master stops, or the volume fails, or something was found that is not understood. What is deleted by then
/// was right to go.
pub(crate) async fn run(master: &Arc<Master>) -> Result<Cleaned> {
    let mut cleaner = master.cleaner.lock().await;
    master.lifetime.check_running()?;
    if let Some(holder) = master.files.run(outside_holder).await? {
        tracing::debug!("{holder} may need archived files: nothing is deleted");
        return Ok(Cleaned::default());
    }
    // A volume that cannot even list the logs is not one to delete store files from.
    let logs = clean_logs(master, &mut cleaner).await?;
    let cleaned = Cleaned { logs, files: clean_archive(master, &mut cleaner).await? };
    if cleaned != Cleaned::default() {
        tracing::info!("{} files of the archive and {} old logs were deleted", cleaned.files, cleaned.logs);
    }
    Ok(cleaned)
}

async fn clean_logs(master: &Arc<Master>, cleaner: &mut Cleaner) -> Result<usize> {
    let ttls = master.settings().cleaner_ttls;
    let times = LogTimes {
        now_us: master.clock.monotonic_us(),
        ttl_us: ttls.logs_us,
        master_store_ttl_us: ttls.master_store_logs_us,
        master_store_file_ttl_us: ttls.master_store_files_us,
    };
    // Should the round break off, what was known of ages is forgotten, which delays.
    let before = std::mem::take(&mut cleaner.logs);
    let (seen, due, held_bytes) = master
        .files
        .run(move |volume| {
            let (mut seen, mut held_bytes) = (Ages::default(), 0);
            let mut due = logs::survey(volume, times, &before, &mut seen, &mut held_bytes)?;
            // After the list of logs: a backup that begins now finds the others.
            let holds = holds(volume)?;
            due.retain(|path| {
                let needed =
                    LogName::parse(path.name()).is_some_and(|name| holds.values().any(|hold| hold.needs_log(&name)));
                if needed {
                    seen.begin_anew(ages::key(path), times.now_us);
                }
                !needed
            });
            Ok((seen, due, held_bytes))
        })
        .await?;
    master.old_logs_bytes.store(held_bytes, Ordering::Relaxed);
    cleaner.logs = seen;
    due.iter().for_each(|path| cleaner.logs.forget(ages::key(path)));
    let count = due.len();
    for step in due.chunks(LOGS_PER_STEP) {
        let step = step.to_vec();
        master.files.run(move |volume| Ok(step.iter().try_for_each(|path| volume.remove_file(path))?)).await?;
        master.lifetime.pause(PAUSE).await?;
    }
    Ok(count)
}

async fn clean_archive(master: &Arc<Master>, cleaner: &mut Cleaner) -> Result<usize> {
    let times = Times { now_us: master.clock.monotonic_us(), ttl_us: master.settings().cleaner_ttls.files_us };
    let before = std::mem::take(&mut cleaner.files);
    let lifetime = Arc::clone(&master.lifetime);
    let (seen, due) = master
        .files
        .run(move |volume| {
            let (mut seen, mut due) = (Ages::default(), Vec::new());
            for namespace in archive::namespaces(volume)? {
                for table in archive::tables(volume, &namespace)? {
                    lifetime.check_running()?;
                    archive::survey(volume, &table, times, &before, &mut seen, &mut due)?;
                }
            }
            Ok((seen, due))
        })
        .await?;
    cleaner.files = Arc::new(seen);
    let mut removed = Vec::new();
    if !due.is_empty() {
        let lifetime = Arc::clone(&master.lifetime);
        let gather = move |volume: &dyn Volume| Proof::gather(volume, holds(volume)?, &|| lifetime.check_running());
        let proof = Arc::new(master.files.run(gather).await?);
        let mut needed = Vec::new();
        for family in due {
            loop {
                let (family, proof, ages) = (family.clone(), Arc::clone(&proof), Arc::clone(&cleaner.files));
                let sweep = move |volume: &dyn Volume| archive::sweep(volume, &family, &proof, &ages, times);
                let swept = master.files.run(sweep).await?;
                needed.extend(swept.needed);
                if !swept.removed.is_empty() {
                    removed.extend(swept.removed);
                    master.lifetime.pause(PAUSE).await?;
                }
                master.lifetime.check_running()?;
                if !swept.more {
                    break;
                }
            }
        }
        let ages = Arc::make_mut(&mut cleaner.files);
        needed.into_iter().for_each(|key| ages.begin_anew(key, times.now_us));
        removed.iter().for_each(|key| ages.forget(*key));
    }
    remove_empty_directories(master).await?;
    Ok(removed.len())
}

/// Removes directories of the archive that hold nothing. Where somebody works on a table, its turn comes in a later
/// round.
async fn remove_empty_directories(master: &Arc<Master>) -> Result<()> {
    for namespace in master.files.run(archive::namespaces).await? {
        let of_namespace = namespace.clone();
        for table in master.files.run(move |volume| archive::tables(volume, &of_namespace)).await? {
            master.lifetime.check_running()?;
            let looked_at = table.clone();
            let look = move |volume: &dyn Volume| {
                let dir = rootdir::archived_table_dir(&looked_at);
                Ok(!archive::empty_regions(volume, &looked_at)?.is_empty()
                    || rootdir::list_if_exists(volume, &dir)?.is_empty())
            };
            if !master.files.run(look).await? {
                continue;
            }
            if let Some(_locks) = master.procedures.locks.try_lock(table_locks(&table)) {
                master.files.run(move |volume| archive::remove_empty_dirs(volume, &table)).await?;
            }
        }
        if let Some(_locks) = master.procedures.locks.try_lock(namespace_locks(&namespace)) {
            master.files.run(move |volume| archive::remove_empty_namespace(volume, &namespace)).await?;
        }
    }
    Ok(())
}
