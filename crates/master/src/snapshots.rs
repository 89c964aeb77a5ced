//! Snapshots that were taken: found, listed, deleted, deleted when they are old. How they are taken and what is made of them are
//! procedures.
//!
//! Always true: a snapshot goes only when nobody makes a table of it: taking and deleting hold its name alone, restoring and cloning share
//! it. Follows: `SnapshotManager`, `SnapshotCleanerChore`.

use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::{ErrorKind, MasterError, Result};
use proto::pb;
use rootdir::snapshot::{self, Manifest, SnapshotError};
use std::sync::Arc;

/// Seconds of life that cannot be told in milliseconds count as no limit.
const TTL_MAX_SECONDS: i64 = i64::MAX / 1000;

/// Whoever takes or deletes a snapshot has its name alone; whoever makes a table of it, with others.
pub(crate) fn name_lock(name: &str, mode: Mode) -> (Resource, Mode) {
    (Resource::Snapshot(name.to_owned()), mode)
}

impl From<SnapshotError> for MasterError {
    fn from(error: SnapshotError) -> MasterError {
        let kind = match error {
            SnapshotError::Io(_) => ErrorKind::Io,
            SnapshotError::Corrupted { .. } => ErrorKind::CorruptedSnapshot,
        };
        MasterError::new(kind, error)
    }
}

/// As HBase's sentences show a snapshot. Follows: `ClientSnapshotDescriptionUtils#toString`.
pub(crate) fn shown(snapshot: &pb::SnapshotDescription) -> String {
    format!(
        "{{ ss={} table={} type={} ttl={} }}",
        snapshot.name,
        snapshot.table(),
        snapshot.r#type().as_str_name(),
        snapshot.ttl()
    )
}

/// Refuses a name that no snapshot can have.
///
/// # Errors
/// HBase's sentence.
pub(crate) fn check_name(name: &str) -> Result<()> {
    snapshot::check_name(name).map_err(|error| MasterError::new(ErrorKind::IllegalArgument, error))
}

/// The snapshot has lived as long as it was to live. Follows: `SnapshotDescriptionUtils#isExpiredSnapshot`.
pub(crate) fn is_expired(snapshot: &pb::SnapshotDescription, now_ms: i64) -> bool {
    let (made_ms, ttl) = (snapshot.creation_time(), snapshot.ttl());
    made_ms > 0 && ttl > 0 && ttl < TTL_MAX_SECONDS && made_ms.saturating_add(ttl.saturating_mul(1000)) < now_ms
}

/// # Errors
/// The snapshot has lived as long as it was to live.
pub(crate) fn check_alive(snapshot: &pb::SnapshotDescription, now_ms: i64) -> Result<()> {
    if is_expired(snapshot, now_ms) {
        let message = format!("TTL for snapshot '{}' has already expired.", snapshot.name);
        return Err(MasterError::new(ErrorKind::SnapshotTtlExpired, message));
    }
    Ok(())
}

/// The sentence for a snapshot that is not there.
pub(crate) fn does_not_exist(name: &str) -> MasterError {
    MasterError::new(ErrorKind::SnapshotDoesNotExist, format!("Snapshot '{name}' doesn't exist on the filesystem"))
}

/// Whether the snapshot is there.
///
/// # Errors
/// An illegal name; what the volume says.
pub(crate) async fn is_taken(master: &Master, name: &str) -> Result<bool> {
    check_name(name)?;
    let dir = snapshot::completed_dir(name);
    master.files.run(move |volume| Ok(volume.exists(&dir)?)).await
}

/// Whether a snapshot of this name is being taken, or deleted, just now.
pub(crate) fn is_in_work(master: &Master, name: &str) -> bool {
    master.procedures.locks.held().contains(&name_lock(name, Mode::Exclusive))
}

/// A snapshot with all that it names, read and found whole.
///
/// # Errors
/// There is none, it is damaged, a file that it names is missing.
pub(crate) async fn read_whole(master: &Master, name: &str) -> Result<(pb::SnapshotDescription, Manifest)> {
    if !is_taken(master, name).await? {
        return Err(does_not_exist(name));
    }
    let dir = snapshot::completed_dir(name);
    master
        .files
        .run(move |volume| {
            let description = snapshot::read_description(volume, &dir)?;
            let manifest = snapshot::read_manifest(volume, &dir)?;
            match snapshot::restore::find_missing(volume, &manifest)? {
                None => Ok((description, manifest)),
                Some(what) => Err(MasterError::new(ErrorKind::CorruptedSnapshot, what)),
            }
        })
        .await
}

/// Every snapshot. One that is damaged is told of in the log and passed over, as HBase does.
///
/// # Errors
/// What the volume says.
pub(crate) async fn list(master: &Master) -> Result<Vec<pb::SnapshotDescription>> {
    let listed = master.files.run(|volume| Ok(snapshot::list(volume)?)).await?;
    let readable = listed.into_iter().filter_map(|found| {
        found.inspect_err(|error| tracing::warn!(%error, "a snapshot cannot be read and is not listed")).ok()
    });
    Ok(readable.collect())
}

/// Deletes a snapshot. Waits for whoever makes a table of it.
///
/// # Errors
/// There is none; what the volume says.
pub(crate) async fn delete(master: &Arc<Master>, name: &str) -> Result<()> {
    if !is_taken(master, name).await? {
        return Err(does_not_exist(name));
    }
    let _locks = master.procedures.locks.lock(vec![name_lock(name, Mode::Exclusive)]).await;
    master.lifetime.check_running()?;
    let gone = name.to_owned();
    match master.files.run(move |volume| Ok(snapshot::delete(volume, &gone)?)).await? {
        true => {
            tracing::info!(snapshot = name, "the snapshot was deleted");
            Ok(())
        }
        false => Err(does_not_exist(name)),
    }
}

/// Deletes the snapshots whose time is over; answers their number. One that cannot be deleted does not hold up the others.
///
/// # Errors
/// They cannot be listed, or the master stops.
pub(crate) async fn delete_expired(master: &Arc<Master>) -> Result<usize> {
    let now_ms = master.clock.now_ms().0;
    let mut count = 0;
    for snapshot in list(master).await?.iter().filter(|snapshot| is_expired(snapshot, now_ms)) {
        master.lifetime.check_running()?;
        match delete(master, &snapshot.name).await {
            Ok(()) => count += 1,
            Err(error) => tracing::warn!(snapshot = %snapshot.name, %error, "a snapshot whose time is over stays"),
        }
    }
    Ok(count)
}
