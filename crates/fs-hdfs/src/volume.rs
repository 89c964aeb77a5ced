//! A directory of an HDFS as a volume.

use crate::appender::HdfsAppender;
use crate::bridge::Bridge;
use crate::error::{failed, is_in_doubt};
use crate::location::Location;
use crate::reader::{HdfsFile, block_hosts};
use fs::{
    Appender, BlockHosts, Capabilities, DirEntry, Error, FilePart, FilePath, HedgedReads, Placement, ReadAt, Result,
    Settled, TEMPORARY_PREFIX, Volume, VolumeHints,
};
use hdfs_native::client::FileStatus;
use hdfs_native::{Client, ClientBuilder, HdfsError, WriteOptions};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Java's clients wait so long before they ask for another recovery of the same lease: older NameNodes begin anew with each.
const RECOVERY_AGAIN: Duration = Duration::from_secs(64);

/// NameNodes refuse smaller blocks (`dfs.namenode.fs-limits.min-block-size`), and such as are no multiple of what a checksum covers.
const LEAST_BLOCK_BYTES: u64 = 1 << 20;

const DIRECTORY_MODE: u32 = 0o755;

/// How the volume talks to HDFS.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where `core-site.xml` and `hdfs-site.xml` are; else `HADOOP_CONF_DIR` and `HADOOP_HOME` tell.
    pub config_directory: Option<String>,
    /// Keys and values that come before those of the files.
    pub overrides: Vec<(String, String)>,
    /// A call that has no answer by then fails.
    pub deadline: Duration,
    /// A number that no other process has that may be writing to the volume: for temporary names.
    pub unique: u64,
}

/// A directory of an HDFS.
pub struct HdfsVolume {
    pub(crate) bridge: Bridge,
    pub(crate) client: Client,
    location: Location,
    unique: u64,
    temporary_names: AtomicU64,
    /// When a lease's recovery was last asked for, by path.
    recoveries: Mutex<HashMap<FilePath, Instant>>,
    /// Storage policies that HDFS did not take.
    refused_policies: Mutex<HashSet<Arc<str>>>,
}

impl HdfsVolume {
    /// Creates a file with the storage policy, as many copies and as long blocks as `placement` says, else as HDFS has them of itself.
    fn create_as(&self, path: &FilePath, placement: &Placement) -> Result<Box<dyn Appender>> {
        let (client, place) = (self.client.clone(), self.place(path));
        let mut options = WriteOptions::default().create_parent(false);
        if let Some(copies) = placement.copies {
            options = options.replication(copies);
        }
        if let Some(bytes) = placement.block_bytes {
            options = options.block_size(bytes.max(LEAST_BLOCK_BYTES).next_multiple_of(LEAST_BLOCK_BYTES));
        }
        let writer = self.bridge.wait("create", path, {
            let place = place.clone();
            async move { client.create(&place, options).await }
        })?;
        if let Some(policy) = &placement.policy {
            self.set_policy(path, policy);
        }
        Ok(Box::new(HdfsAppender::new(self.bridge.clone(), self.client.clone(), path.clone(), place, writer)))
    }

    /// As in HBase a policy that HDFS does not take is told of, and the file lies where others do. Follows: `CommonFSUtils#setStoragePolicy`.
    fn set_policy(&self, path: &FilePath, policy: &Arc<str>) {
        if self.refused_policies.lock().contains(policy) {
            return;
        }
        let (client, place, name) = (self.client.clone(), self.place(path), policy.to_ascii_uppercase());
        let set = async move { client.set_storage_policy(&place, &name).await };
        let operation = "set the storage policy of";
        let error = match self.bridge.wait_for(operation, path, set) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => {
                // Another answer may be another one the next time.
                if matches!(&error, HdfsError::RPCError(class, _) if class.ends_with("IllegalArgumentException")) {
                    self.refused_policies.lock().insert(policy.clone());
                }
                failed(operation, path, error)
            }
            Err(error) => error,
        };
        tracing::warn!(
            "{path} is written without the storage policy {policy}; where HDFS has none of that name, so are later files: look at the family's \
             STORAGE_POLICY and at hbase.hstore.block.storage.policy or hbase.wal.storage.policy: {error}"
        );
    }

    /// The number of a file's storage policy, as the NameNode has it; 0 where it has none.
    ///
    /// # Errors
    /// There is no such file, or HDFS does not answer.
    pub fn storage_policy(&self, path: &FilePath) -> Result<u32> {
        let (client, place) = (self.client.clone(), self.place(path));
        self.bridge.wait("ask for the storage policy of", path, async move { client.storage_policy(&place).await })
    }

    /// The volume at `location`, which is made when it does not exist.
    ///
    /// # Errors
    /// When the configuration is unusable or HDFS does not answer within the deadline.
    pub fn open(location: &Location, settings: &Settings) -> Result<HdfsVolume> {
        let error = |source| Error::new(format!("use {location}:"), &FilePath::root(), source);
        let bridge = Bridge::start(settings.deadline).map_err(error)?;
        let mut builder = ClientBuilder::new().with_io_runtime(bridge.handle()).with_config(settings.overrides.clone());
        // With an empty host the client takes that of fs.defaultFS.
        if location.url() != "hdfs:///" {
            builder = builder.with_url(location.url());
        }
        if let Some(directory) = &settings.config_directory {
            builder = builder.with_config_dir(directory.clone());
        }
        let client =
            builder.build().map_err(|source| error(io::Error::new(ErrorKind::InvalidInput, source.to_string())))?;
        let volume = HdfsVolume {
            bridge,
            client,
            location: location.clone(),
            unique: settings.unique,
            temporary_names: AtomicU64::new(0),
            recoveries: Mutex::default(),
            refused_policies: Mutex::default(),
        };
        volume.create_dir_all(&FilePath::root()).map_err(|failure| error(failure.source))?;
        Ok(volume)
    }

    /// Where the volume is.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Another directory of the same HDFS, with the same client.
    pub fn at(&self, location: Location) -> HdfsVolume {
        HdfsVolume {
            bridge: self.bridge.clone(),
            client: self.client.clone(),
            location,
            unique: self.unique,
            temporary_names: AtomicU64::new(0),
            recoveries: Mutex::default(),
            refused_policies: Mutex::default(),
        }
    }

    pub(crate) fn place(&self, path: &FilePath) -> String {
        self.location.place(path)
    }

    fn status(&self, operation: &str, path: &FilePath) -> Result<Option<FileStatus>> {
        let (client, place) = (self.client.clone(), self.place(path));
        let answer = self.bridge.wait(operation, path, async move { client.get_file_info(&place).await });
        match answer {
            Ok(status) => Ok(Some(status)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn rename_to(&self, operation: &str, from: &FilePath, to: &FilePath, replace: bool) -> Result<()> {
        let (client, source, target) = (self.client.clone(), self.place(from), self.place(to));
        let call = async move { client.rename(&source, &target, replace).await };
        match self.bridge.wait_for(operation, from, call)? {
            Ok(()) => Ok(()),
            // The answer is lost: what is there tells whether it was done.
            Err(error) if is_in_doubt(&error) && !self.exists(from)? && self.exists(to)? => Ok(()),
            Err(error) => Err(failed(operation, from, error)),
        }
    }

    /// Whether a recovery of the lease is to be asked for now; notes that it is.
    fn may_recover(&self, path: &FilePath) -> bool {
        let now = Instant::now();
        let mut recoveries = self.recoveries.lock();
        let is_due = recoveries.get(path).is_none_or(|last| now.duration_since(*last) >= RECOVERY_AGAIN);
        if is_due {
            recoveries.insert(path.clone(), now);
        }
        is_due
    }
}

impl Volume for HdfsVolume {
    fn open(&self, path: &FilePath) -> Result<Arc<dyn ReadAt>> {
        let (client, place) = (self.client.clone(), self.place(path));
        let reader = self.bridge.wait("open", path, {
            let place = place.clone();
            async move { client.read(&place).await }
        })?;
        if reader.is_under_construction() {
            let what = "it is still being written, or its writer died; its lease is to be recovered first";
            return Err(Error::new("open", path, io::Error::new(ErrorKind::WouldBlock, what)));
        }
        Ok(Arc::new(HdfsFile::new(self.bridge.clone(), self.client.clone(), path.clone(), place, reader)))
    }

    fn create(&self, path: &FilePath) -> Result<Box<dyn Appender>> {
        self.create_as(path, &Placement::default())
    }

    fn rename(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        let operation = format!("rename to {to} from");
        if from == to {
            // HDFS refuses it, POSIX does nothing.
            let missing = || Error::new(&operation, from, ErrorKind::NotFound.into());
            return self.status(&operation, from)?.map(drop).ok_or_else(missing);
        }
        self.rename_to(&operation, from, to, true)
    }

    fn rename_new(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        self.rename_to(&format!("rename to {to}, which must not exist, from"), from, to, false)
    }

    fn remove_file(&self, path: &FilePath) -> Result<()> {
        let error = |kind: ErrorKind| Error::new("remove", path, kind.into());
        if self.status("remove", path)?.ok_or_else(|| error(ErrorKind::NotFound))?.isdir {
            return Err(error(ErrorKind::IsADirectory));
        }
        let (client, place) = (self.client.clone(), self.place(path));
        match self.bridge.wait_for("remove", path, async move { client.delete(&place, false).await })? {
            Ok(true) => Ok(()),
            Ok(false) => Err(error(ErrorKind::NotFound)),
            Err(failure) if is_in_doubt(&failure) && !self.exists(path)? => Ok(()),
            Err(failure) => Err(failed("remove", path, failure)),
        }
    }

    fn remove_dir_all(&self, path: &FilePath) -> Result<()> {
        let (client, place) = (self.client.clone(), self.place(path));
        match self.bridge.wait_for("remove the directory", path, async move { client.delete(&place, true).await })? {
            // False: there was none.
            Ok(_) => Ok(()),
            Err(failure) if is_in_doubt(&failure) && !self.exists(path)? => Ok(()),
            Err(failure) => Err(failed("remove the directory", path, failure)),
        }
    }

    fn create_dir_all(&self, path: &FilePath) -> Result<()> {
        let (client, place) = (self.client.clone(), self.place(path));
        self.bridge.wait("create the directory", path, async move {
            match client.mkdirs(&place, DIRECTORY_MODE, true).await {
                // It changes nothing the second time.
                Err(error) if is_in_doubt(&error) => client.mkdirs(&place, DIRECTORY_MODE, true).await,
                outcome => outcome,
            }
        })
    }

    fn list(&self, path: &FilePath) -> Result<Vec<DirEntry>> {
        let (client, place) = (self.client.clone(), self.place(path));
        let listing = self.bridge.wait("list", path, {
            let place = place.clone();
            async move { client.list_status(&place, false).await }
        })?;
        // HDFS lists a file as itself.
        if let [only] = &listing[..]
            && !only.isdir
            && only.path == place
        {
            return Err(Error::new("list", path, ErrorKind::NotADirectory.into()));
        }
        let mut entries: Vec<DirEntry> = listing.iter().map(entry).collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn stat(&self, path: &FilePath) -> Result<Option<DirEntry>> {
        Ok(self.status("stat", path)?.map(|status| DirEntry { name: path.name().to_owned(), ..entry(&status) }))
    }

    fn sync_dir(&self, _path: &FilePath) -> Result<()> {
        // The NameNode has every change in its log before it answers.
        Ok(())
    }

    fn create_dir_all_durable(&self, path: &FilePath) -> Result<()> {
        self.create_dir_all(path)
    }

    /// A closed file is as durable as its DataNodes make it; there is no way to ask more of one that another process has written.
    fn sync_file(&self, path: &FilePath) -> Result<()> {
        match self.settle(path)? {
            Settled::Final { .. } => Ok(()),
            Settled::Pending => {
                let what = "its lease is being recovered: try again in a few seconds";
                Err(Error::new("sync", path, io::Error::new(ErrorKind::ResourceBusy, what)))
            }
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            names_durable_at_once: true,
            remote: true,
            shared: true,
            flushed_survives_appender: true,
            handle_outlives_removal: false,
            names_hosts: true,
        }
    }

    fn hints(&self) -> Option<&dyn VolumeHints> {
        Some(self)
    }

    fn settle(&self, path: &FilePath) -> Result<Settled> {
        let error = |kind: ErrorKind| Error::new("settle", path, kind.into());
        let status = self.status("settle", path)?.ok_or_else(|| error(ErrorKind::NotFound))?;
        if status.isdir {
            return Err(error(ErrorKind::IsADirectory));
        }
        let (client, place, recover) = (self.client.clone(), self.place(path), self.may_recover(path));
        let length = self.bridge.wait("settle", path, async move {
            let is_closed = client.is_file_closed(&place).await? || (recover && client.recover_lease(&place).await?);
            // The length of a file is final when it is closed, not before.
            if is_closed {
                client.get_file_info(&place).await.map(|status| Some(status.length as u64))
            } else {
                Ok(None)
            }
        })?;
        Ok(match length {
            Some(len_bytes) => {
                self.recoveries.lock().remove(path);
                Settled::Final { len_bytes }
            }
            None => Settled::Pending,
        })
    }

    fn temporary_name(&self, name: &str) -> String {
        let number = self.temporary_names.fetch_add(1, Ordering::Relaxed);
        format!("{TEMPORARY_PREFIX}{name}-{:016x}-{number}", self.unique)
    }

    fn read(&self, path: &FilePath) -> Result<Vec<u8>> {
        let (client, place) = (self.client.clone(), self.place(path));
        let bytes = self.bridge.wait("read", path, async move {
            let reader = client.read(&place).await?;
            if reader.is_under_construction() {
                return Err(HdfsError::OperationFailed("it is still being written".to_owned()));
            }
            reader.read_range(0, reader.file_length()).await
        })?;
        Ok(bytes.into())
    }
}

fn entry(status: &FileStatus) -> DirEntry {
    let name = status.path.rsplit('/').next().unwrap_or_default().to_owned();
    DirEntry { name, is_dir: status.isdir, len: if status.isdir { 0 } else { status.length as u64 } }
}

impl VolumeHints for HdfsVolume {
    fn create_placed(&self, path: &FilePath, placement: &Placement, _past_cache: bool) -> Result<Box<dyn Appender>> {
        self.create_as(path, placement)
    }

    fn hedged_reads(&self) -> HedgedReads {
        let counts = self.client.hedged_reads();
        HedgedReads { asked: counts.ops, won: counts.wins, alone: counts.ops_in_current_thread }
    }

    fn block_hosts(&self, path: &FilePath, part: FilePart) -> Result<Option<BlockHosts>> {
        let (client, place) = (self.client.clone(), self.place(path));
        let found = self.bridge.wait("ask where the blocks are of", path, async move {
            client.read(&place).await.map(|reader| block_hosts(&reader, part))
        })?;
        Ok(Some(found))
    }
}
