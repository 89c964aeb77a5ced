//! The logs of dead servers: taken out of their reach, then split by the servers that live. Follows: `SplitWALManager`, `SplitWALProcedure`.
//!
//! Always true: the directory is renamed and every file in it settled before the first is read. A file leaves the directory when it is split.

use crate::remote::RemoteHost;
use crate::roll::Roll;
use crate::settings;
use base::Config;
use fs::{FilePath, Settled, Volume};
use master::{BoxFuture, HostError, LogSplitter, RegionHost, ServerLogs};
use model::ServerName;
use parking_lot::Mutex;
use proto::pb;
use region::RegionDirectories;
use rootdir::paths::DEAD_MASTER_WALS;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use wal::SplitOptions;

/// What HBase appends to the name of a directory whose server is dead.
const SPLITTING: &str = "-splitting";
/// How names of logs of hbase:meta end.
const META_LOG: &str = ".meta";
/// A lease's recovery waits for the next report of a DataNode, which comes every three seconds.
const PAUSE: Duration = Duration::from_millis(250);
/// Pauses between lines in the log.
const TELL_EVERY: u32 = 40;
/// Servers that are asked to split a log before the master does it itself.
const ATTEMPTS: u32 = 3;
/// Bytes of entries that the master holds while it splits a log itself.
const BUFFER_BYTES: usize = 32 << 20;

/// Splits the logs of dead servers.
pub(crate) struct DeadLogs {
    pub volume: Arc<dyn Volume>,
    pub roll: Arc<Roll>,
    /// Names the master as a worker.
    pub master: ServerName,
    pub splits_per_server: usize,
    /// Files that the master writes at the same time for a log that it splits itself.
    pub writers: usize,
    /// The servers whose logs are in hand.
    turns: Mutex<HashMap<ServerName, Arc<tokio::sync::Mutex<()>>>>,
    /// How many logs each server splits now.
    busy: Mutex<HashMap<ServerName, usize>>,
}

/// The server in the name of a directory below `WALs`, whether it is known to be dead or not.
pub(crate) fn server_of_directory(name: &str) -> Option<ServerName> {
    name.strip_suffix(SPLITTING).unwrap_or(name).parse().ok()
}

impl DeadLogs {
    pub fn new(volume: Arc<dyn Volume>, roll: Arc<Roll>, master: ServerName, config: &Config) -> DeadLogs {
        DeadLogs {
            volume,
            roll,
            master,
            splits_per_server: config.get(&settings::MAX_SPLITTERS) as usize,
            writers: config.get(&wal::settings::SPLIT_WRITERS) as usize,
            turns: Mutex::default(),
            busy: Mutex::default(),
        }
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Volume) -> wal::Result<T> + Send + 'static,
    ) -> Result<T, HostError> {
        let volume = self.volume.clone();
        let done = master::off_worker(move || work(&*volume)).await;
        let done = done.map_err(|panic| HostError::Failed(format!("it failed inside: {panic}")))?;
        done.map_err(|error| HostError::Failed(error.to_string()))
    }

    /// Takes the logs out of the server's reach; answers the files.
    async fn fence(&self, server: &ServerName) -> Result<Vec<FilePath>, HostError> {
        let name = server.to_string();
        let mut open = self.run(move |volume| rename_directory(volume, &name)).await?;
        let files = open.clone();
        let began = Instant::now();
        for pause in 0_u32.. {
            open = self.run(move |volume| unsettled(volume, open)).await?;
            let Some(first) = open.first() else {
                if pause > 0 {
                    let waited_ms = began.elapsed().as_millis();
                    tracing::info!("recovered the leases of the WAL files of {server} after {waited_ms} ms");
                }
                break;
            };
            if pause % TELL_EVERY == 0 {
                let left = open.len();
                tracing::info!("recovering the leases of {left} WAL files of {server}, {first} among them");
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(files)
    }

    async fn split_all(self: &Arc<Self>, server: &ServerName, which: ServerLogs) -> Result<(), HostError> {
        let turn = self.turns.lock().entry(server.clone()).or_default().clone();
        let _turn = turn.lock().await;
        let files = self.fence(server).await?;
        // What is left in the end is split, too: a server has a log of hbase:meta from its start on, or from when it had hbase:meta.
        let is_wanted = |file: &FilePath| which == ServerLogs::Others || file.name().ends_with(META_LOG);
        let wanted: Vec<FilePath> = files.into_iter().filter(is_wanted).collect();
        let count = wanted.len();
        let slots = Arc::new(Semaphore::new((self.roll.hosts().len() * self.splits_per_server).max(1)));
        let mut running = JoinSet::new();
        for file in wanted {
            let (logs, slots) = (self.clone(), slots.clone());
            running.spawn(async move {
                let _slot = slots.acquire().await;
                logs.split_one(&file).await
            });
        }
        while let Some(split) = running.join_next().await {
            split.map_err(|panic| HostError::Failed(format!("it failed inside: {panic}")))??;
        }
        if which == ServerLogs::Others {
            let name = server.to_string();
            self.run(move |volume| remove_directory(volume, &name)).await?;
        }
        if count > 0 {
            tracing::info!("{count} WAL files of {server} are split");
        }
        Ok(())
    }

    /// Has a log split, and takes it away.
    async fn split_one(&self, file: &FilePath) -> Result<(), HostError> {
        let mut tried = Vec::new();
        let mut is_split = false;
        while tried.len() < ATTEMPTS as usize
            && let Some(host) = self.least_busy(&tried)
        {
            let name = host.server_name();
            let parameter = pb::SplitWalParameter { wal_path: file.to_string() };
            *self.busy.lock().entry(name.clone()).or_default() += 1;
            let class = "org.apache.hadoop.hbase.regionserver.SplitWALCallable";
            let outcome = host.run_procedure(class, &parameter).await;
            if let Some(busy) = self.busy.lock().get_mut(&name) {
                *busy -= 1;
            }
            match outcome {
                Ok(()) => {
                    is_split = true;
                    break;
                }
                Err(error) => tracing::warn!("{name} has not split {file}; another is asked: {error}"),
            }
            tried.push(name);
        }
        if !is_split {
            tracing::info!("the master splits {file} itself");
            let (path, worker, writers) = (file.clone(), self.master.to_string(), self.writers);
            self.run(move |volume| split_here(volume, &path, worker, writers)).await?;
        }
        let path = file.clone();
        self.run(move |volume| match volume.exists(&path)? {
            true => wal::archive_log(volume, &path, &rootdir::old_wals_dir()),
            false => Ok(()),
        })
        .await
    }

    fn least_busy(&self, tried: &[ServerName]) -> Option<Arc<RemoteHost>> {
        let busy = self.busy.lock();
        let hosts = self.roll.hosts().into_iter().filter(|host| !tried.contains(&host.server_name()));
        hosts.min_by_key(|host| busy.get(&host.server_name()).copied().unwrap_or_default())
    }
}

fn directories(name: &str) -> [FilePath; 2] {
    [rootdir::server_wals_dir(name), rootdir::server_wals_dir(&format!("{name}{SPLITTING}"))]
}

/// Gives the directory the name of a dead server's; returns the files in it.
fn rename_directory(volume: &dyn Volume, name: &str) -> wal::Result<Vec<FilePath>> {
    let [living, dead] = directories(name);
    if volume.exists(&living)? && !volume.exists(&dead)? {
        match volume.rename_new(&living, &dead) {
            Ok(()) => volume.sync_dir(&rootdir::wals_dir())?,
            // It was renamed by an attempt before, whose answer was lost.
            Err(error) if error.is_not_found() || error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.into()),
        }
    }
    let inside = rootdir::list_if_exists(volume, &dead)?;
    Ok(inside.into_iter().filter(|entry| !entry.is_dir).map(|entry| dead.join(&entry.name)).collect())
}

fn unsettled(volume: &dyn Volume, files: Vec<FilePath>) -> wal::Result<Vec<FilePath>> {
    let mut open = Vec::new();
    for file in files {
        match volume.settle(&file) {
            Ok(Settled::Final { .. }) => {}
            Ok(Settled::Pending) => open.push(file),
            // Split and taken away by an attempt before.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(open)
}

/// Takes the logs of `master:store` out of the reach of an HBase master that led before, and waits until they are whole: what it was busy with
/// is in them. Follows: `MasterRegion#open`.
///
/// # Errors
/// The volume's.
pub(crate) async fn fence_master_store(volume: &Arc<dyn Volume>) -> wal::Result<()> {
    let run = |files: Option<Vec<FilePath>>| {
        let volume = volume.clone();
        let work = move || match files {
            None => rename_master_logs(&*volume),
            Some(files) => unsettled(&*volume, files),
        };
        async { master::off_worker(work).await.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic())) }
    };
    let mut open = run(None).await?;
    for pause in 0_u32.. {
        open = run(Some(open)).await?;
        let Some(first) = open.first() else { break };
        if pause % TELL_EVERY == 0 {
            tracing::info!(
                "recovering the lease of {first}, where HBase's master has written down what it was busy with"
            );
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

fn rename_master_logs(volume: &dyn Volume) -> wal::Result<Vec<FilePath>> {
    let logs = rootdir::paths::master_wals_dir();
    let mut files = Vec::new();
    for entry in rootdir::list_if_exists(volume, &logs)?.into_iter().filter(|entry| entry.is_dir) {
        let mut dir = logs.join(&entry.name);
        if !entry.name.ends_with(DEAD_MASTER_WALS) {
            let living = std::mem::replace(&mut dir, logs.join(format!("{}{DEAD_MASTER_WALS}", entry.name)));
            match volume.rename_new(&living, &dir) {
                Ok(()) => volume.sync_dir(&logs)?,
                // It was renamed by an attempt before, whose answer was lost.
                Err(error) if error.is_not_found() || error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
            }
        }
        let inside = rootdir::list_if_exists(volume, &dir)?.into_iter().filter(|entry| !entry.is_dir);
        files.extend(inside.map(|entry| dir.join(&entry.name)));
    }
    Ok(files)
}

fn remove_directory(volume: &dyn Volume, name: &str) -> wal::Result<()> {
    let [_, dead] = directories(name);
    if rootdir::list_if_exists(volume, &dead)?.iter().all(|entry| entry.is_dir) {
        volume.remove_dir_all(&dead)?;
        volume.sync_dir(&rootdir::wals_dir())?;
    }
    Ok(())
}

fn split_here(volume: &dyn Volume, path: &FilePath, worker: String, writers: usize) -> wal::Result<()> {
    if !volume.exists(path)? {
        return Ok(());
    }
    let options = SplitOptions { buffer_bytes: BUFFER_BYTES, writers, worker, ..SplitOptions::default() };
    let report = wal::split_file(volume, path, &mut RegionDirectories { volume }, &options)?;
    let files = report.files.len();
    tracing::info!("split {path}: {} of {} entries to {files} files", report.written, report.entries);
    Ok(())
}

/// [`DeadLogs`] as the master knows it.
pub(crate) struct Splitter(pub Arc<DeadLogs>);

impl LogSplitter for Splitter {
    fn split_logs(&self, server: &ServerName, which: ServerLogs) -> BoxFuture<'_, Result<(), HostError>> {
        let (logs, server) = (self.0.clone(), server.clone());
        Box::pin(async move { logs.split_all(&server, which).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fs::MemVolume;

    #[test]
    fn a_dead_servers_directory_gets_a_name_that_it_does_not_know() {
        let volume = MemVolume::new();
        let [living, dead] = directories("h,1,5");
        volume.create_dir_all(&living).expect("made");
        volume.put_file(&living.join("log.1"), b"bytes");
        for _ in 0..2 {
            let files = rename_directory(&volume, "h,1,5").expect("renamed");
            assert_eq!(files, [dead.join("log.1")]);
            assert!(!volume.exists(&living).expect("looked"));
        }
        assert!(unsettled(&volume, vec![dead.join("log.1"), dead.join("gone")]).expect("settled").is_empty());
        remove_directory(&volume, "h,1,5").expect("looked");
        assert!(volume.exists(&dead).expect("looked"), "a log in it is not split");
        volume.remove_file(&dead.join("log.1")).expect("removed");
        remove_directory(&volume, "h,1,5").expect("removed");
        assert!(!volume.exists(&dead).expect("looked"));
        assert_eq!(rename_directory(&volume, "h,1,5").expect("nothing"), []);
    }

    #[tokio::test]
    async fn the_log_of_a_master_of_hbases_gets_a_name_that_it_does_not_know() {
        let memory = Arc::new(MemVolume::new());
        let volume: Arc<dyn Volume> = memory.clone();
        fence_master_store(&volume).await.expect("nothing is there");
        let logs = rootdir::paths::master_wals_dir();
        for dir in ["m,1,1", "m,1,0-dead"] {
            memory.create_dir_all(&logs.join(dir)).expect("made");
            memory.put_file(&logs.join(dir).join("log"), b"bytes");
        }
        for _ in 0..2 {
            fence_master_store(&volume).await.expect("fenced");
            let names = rootdir::list_if_exists(&*volume, &logs).expect("listed");
            let names: Vec<&str> = names.iter().map(|entry| entry.name.as_str()).collect();
            assert_eq!(names, ["m,1,0-dead", "m,1,1-dead"]);
        }
    }

    #[test]
    fn a_directory_says_whose_it_is() {
        let server = Some(ServerName::new("h", 1, 5));
        assert_eq!(server_of_directory("h,1,5"), server);
        assert_eq!(server_of_directory("h,1,5-splitting"), server);
        assert_eq!(server_of_directory("other"), None);
    }
}
