//! One server on a root directory: the lease of an open file.
//!
//! HDFS gives a file's lease to one client, which renews it as long as it lives. Another gets it when it has not been renewed for a minute
//! (HDFS's soft limit), or at once where the process that had it is known to be gone.

use crate::HdfsVolume;
use crate::bridge::Bridge;
use fs::{Error, FilePath, Result, Volume};
use hdfs_native::file::FileWriter;
use hdfs_native::{Client, HdfsError, WriteOptions};
use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::time::{Instant, sleep};

const LOCK_NAME: &str = ".basalt.lock";
const OWNER_NAME: &str = ".basalt.owner";

/// A little more than HDFS's soft limit.
const SOFT_LIMIT: Duration = Duration::from_secs(70);
const PAUSE: Duration = Duration::from_secs(1);

/// How long the end of a server waits for HDFS to take the lease back.
const GIVE_UP_LIMIT: Duration = Duration::from_secs(5);

/// Keeps other servers out of a root directory while it lives.
pub struct RootLock {
    lease: Option<Box<FileWriter>>,
    bridge: Bridge,
}

impl Drop for RootLock {
    /// Closes the file: a lease that is only not renewed any more would keep the next server waiting for a minute.
    fn drop(&mut self) {
        let Some(mut lease) = self.lease.take() else { return };
        let bridge = self.bridge.within(GIVE_UP_LIMIT);
        let closed = bridge.wait("give up", &FilePath::new(LOCK_NAME), async move { lease.close().await });
        if let Err(error) = closed {
            tracing::warn!("{error}; the next server on another machine waits a minute for it");
        }
    }
}

/// What came of asking for the lease.
enum Asked {
    Has(Box<FileWriter>),
    HeldByAnother,
}

/// Claims the volume's directory. `owner` names this process for others; of the one that they find there, `is_gone` says whether it is known to
/// live no more.
///
/// # Errors
/// `WouldBlock`, naming the owner, when another process has it and keeps it.
pub fn lock_root(
    volume: &HdfsVolume,
    owner: &str,
    is_gone: impl Fn(&str) -> bool + Send + 'static,
) -> Result<RootLock> {
    let (path, owner_path) = (FilePath::new(LOCK_NAME), FilePath::new(OWNER_NAME));
    let other = match volume.read(&owner_path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).trim().to_owned(),
        // It may be just writing it.
        Err(_) => "another process".to_owned(),
    };
    let (client, place, named) = (volume.client.clone(), volume.place(&path), other.clone());
    let lease = volume.bridge.wait("lock", &path, async move {
        let start = Instant::now();
        let mut is_told = false;
        loop {
            match ask(&client, &place).await? {
                Asked::Has(lease) => return Ok(Some(lease)),
                Asked::HeldByAnother if is_gone(&named) => {
                    // A file without blocks is closed at once.
                    client.recover_lease(&place).await?;
                }
                Asked::HeldByAnother if start.elapsed() > SOFT_LIMIT => return Ok(None),
                Asked::HeldByAnother => {}
            }
            if !is_told && start.elapsed() > PAUSE {
                is_told = true;
                tracing::info!("waiting for {named} to give up {place}, which takes a minute if it is gone");
            }
            sleep(PAUSE).await;
        }
    })?;
    let Some(lease) = lease else {
        let what = format!("{} is in use by {other}; stop it or choose another directory", volume.location());
        return Err(Error::new("lock", &path, io::Error::new(ErrorKind::WouldBlock, what)));
    };
    let lock = RootLock { lease: Some(lease), bridge: volume.bridge.clone() };
    volume.publish(&owner_path, owner.as_bytes())?;
    Ok(lock)
}

async fn ask(client: &Client, place: &str) -> hdfs_native::Result<Asked> {
    let options = WriteOptions::default().create_parent(false);
    match client.create(place, options).await {
        Ok(lease) => return Ok(Asked::Has(Box::new(lease))),
        Err(HdfsError::AlreadyExists(_)) => {}
        Err(error) => return Err(error),
    }
    match client.append(place).await {
        Ok(lease) => Ok(Asked::Has(Box::new(lease))),
        // Somebody else has it, or had it and it is being taken from him.
        Err(HdfsError::AlreadyExists(_)) => Ok(Asked::HeldByAnother),
        Err(HdfsError::RPCError(class, _)) if class.ends_with(".RecoveryInProgressException") => {
            Ok(Asked::HeldByAnother)
        }
        Err(error) => Err(error),
    }
}
