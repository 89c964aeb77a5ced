//! The WAL directory, where that is another than the root directory. Follows: `CommonFSUtils#getWALRootDir`.
//!
//! Always true: no log that may still be needed is out of sight when the server starts. A root directory that is one process's own has a record of
//! where its logs are; where the settings say another place, they are brought there first. HBase passes over them, and what was not flushed is lost.

use super::{Place, Storage, place, place_of};
use crate::settings;
use anyhow::{Context, Result, bail};
use base::{Config, Rng};
use fs::{FilePath, LocalVolume, Volume};
use rootdir::WalDirVolume;
use rootdir::wal_dir::{RECORD, logs_in};
use std::path::Path;
use std::sync::Arc;

/// What a root directory has, and a WAL directory has not.
const VERSION_FILE: &str = "hbase.version";

/// A WAL directory.
struct Logs {
    name: String,
    volume: Arc<dyn Volume>,
}

impl Logs {
    fn of_root(storage: &Storage) -> Logs {
        Logs { name: storage.name.clone(), volume: storage.volume.clone() }
    }

    /// What the mark in a WAL directory says; none where Basalt never used it.
    fn mark(&self) -> Result<Option<String>> {
        let (mark, cannot_read) = (FilePath::new(RECORD), || format!("cannot read {}", self.name));
        if !self.volume.exists(&mark).with_context(cannot_read)? {
            return Ok(None);
        }
        Ok(Some(String::from_utf8_lossy(&self.volume.read(&mark).with_context(cannot_read)?).into_owned()))
    }
}

impl Place {
    /// Whether it may be looked into. A directory on HDFS is not made by that.
    fn is_there(&self) -> bool {
        !matches!(self, Place::Directory(dir) if !dir.exists())
    }
}

/// The root directory of a process that has it to itself, with its WAL directory. Logs that are where they were before a change of the settings are
/// brought along.
///
/// # Errors
/// A sentence: the WAL directory cannot be used, or is another's.
pub(super) fn of_one_process(
    storage: &Storage,
    config: &Config,
    config_directory: Option<&Path>,
) -> Result<Arc<dyn Volume>> {
    let root = &storage.volume;
    let known = Known::read(storage)?;
    let Some(place) = other_place(config)? else {
        for before in &known.0 {
            bring(&before.open(config, config_directory)?, &Logs::of_root(storage))?;
        }
        if !known.0.is_empty() {
            root.remove_file(&FilePath::new(RECORD))?;
            root.sync_dir(&FilePath::root())?;
        }
        return Ok(root.clone());
    };
    if config.text(settings::PLACE_WAL.key).is_some_and(|tier| !tier.trim().is_empty()) {
        let keys = (settings::WAL_DIRECTORY.key, settings::PLACE_WAL.key);
        bail!("{} and {} both say where logs are: remove one of them", keys.0, keys.1);
    }
    // By its mark: it may be mounted elsewhere now, or have more names than one. A directory that is not there is not made by looking for it.
    let mark = if place.is_there() { open(&place, config, config_directory)?.mark()? } else { None };
    let (mut current, others): (Vec<_>, Vec<_>) =
        known.0.into_iter().partition(|known| mark.as_deref() == Some(&*known.id));
    // Before anything is noted: while logs of before cannot be had, all stays as it was.
    let before: Vec<Logs> = others.iter().map(|known| known.open(config, config_directory)).collect::<Result<_>>()?;
    claim(&place, config, config_directory)?;
    let logs = open(&place, config, config_directory)?;
    let is_noted = others.is_empty() && current.first().is_some_and(|known| known.name == logs.name);
    let id = match current.pop() {
        Some(known) => known.id,
        None => {
            refuse_what_is_anothers(&logs, mark.is_some(), storage)?;
            identify(&logs)?
        }
    };
    let current = KnownDirectory { id, name: logs.name.clone() };
    if !is_noted {
        // Before anything moves: what is there counts as this root's from now on, and where else logs may be is not forgotten.
        Known([&current].into_iter().chain(&others).cloned().collect()).write(storage)?;
    }
    if !is_noted || logs_in(&**root)?.is_some() {
        bring(&Logs::of_root(storage), &logs)?;
    }
    before.iter().try_for_each(|before| bring(before, &logs))?;
    if !others.is_empty() {
        Known(vec![current]).write(storage)?;
    }
    tracing::info!("WAL files are in {}", logs.name);
    Ok(Arc::new(WalDirVolume::new(root.clone(), logs.volume)))
}

/// The root directory of a cluster with its WAL directory. Who leads the cluster answers for what is there, as with HBase.
///
/// # Errors
/// A sentence: the WAL directory cannot be used.
#[cfg(feature = "zookeeper")]
pub(super) fn shared(storage: &Storage, config: &Config, config_directory: Option<&Path>) -> Result<Arc<dyn Volume>> {
    let root = storage.volume.clone();
    match other_place(config)? {
        None => Ok(root),
        Some(Place::Directory(dir)) => bail!(
            "hbase.wal.dir = {}: logs of a server that joins a cluster are on HDFS, where the others find them",
            dir.display()
        ),
        Some(place) => {
            let logs = open(&place, config, config_directory)?;
            tracing::info!("WAL files are in {}", logs.name);
            Ok(Arc::new(WalDirVolume::new(root, logs.volume)))
        }
    }
}

/// Where logs are, if not in the root directory.
fn other_place(config: &Config) -> Result<Option<Place>> {
    let key = settings::WAL_DIRECTORY.key;
    let Some(text) = config.text(key).map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
    let (root, logs) = (place(config)?.name(), place_of(key, text)?);
    let name = logs.name();
    if name == root {
        return Ok(None);
    }
    if name.strip_prefix(&root).is_some_and(|below| below.starts_with('/')) {
        bail!(
            "Illegal WAL directory specified. WAL directories are not permitted to be under root directory: rootDir={root}, \
             qualifiedWALDir={name}"
        );
    }
    if root.strip_prefix(&name).is_some_and(|below| below.starts_with('/')) {
        bail!(
            "hbase.wal.dir = {name} has hbase.rootdir below it ({root}): give the logs a directory that holds nothing else"
        );
    }
    Ok(Some(logs))
}

fn open(place: &Place, config: &Config, config_directory: Option<&Path>) -> Result<Logs> {
    let name = place.name();
    let volume: Arc<dyn Volume> = match place {
        Place::Directory(dir) => {
            Arc::new(LocalVolume::open(dir).with_context(|| format!("hbase.wal.dir: cannot use {name}"))?)
        }
        #[cfg(feature = "hdfs")]
        Place::Hdfs(location) => super::hdfs::open_logs(location, config, config_directory).context("hbase.wal.dir")?,
        #[cfg(not(feature = "hdfs"))]
        Place::Hdfs => {
            let _ = (config, config_directory);
            bail!("hbase.wal.dir is on HDFS, and this build has no HDFS: build with cargo build --features hdfs")
        }
    };
    Ok(Logs { name, volume })
}

/// Makes a WAL directory this process's until that is gone.
fn claim(place: &Place, config: &Config, config_directory: Option<&Path>) -> Result<()> {
    let name = place.name();
    match place {
        Place::Directory(dir) => {
            let volume = LocalVolume::open(dir).with_context(|| format!("hbase.wal.dir: cannot use {name}"))?;
            // As the root directory's.
            std::mem::forget(volume.lock().map_err(|error| super::lock_error(&name, error)).context("hbase.wal.dir")?);
            Ok(())
        }
        #[cfg(feature = "hdfs")]
        Place::Hdfs(location) => super::hdfs::claim_logs(location, config, config_directory).context("hbase.wal.dir"),
        #[cfg(not(feature = "hdfs"))]
        Place::Hdfs => {
            let _ = (config, config_directory);
            Ok(())
        }
    }
}

/// A WAL directory that no record names must have nothing of anybody else's.
fn refuse_what_is_anothers(logs: &Logs, is_marked: bool, storage: &Storage) -> Result<()> {
    let name = &logs.name;
    let cannot_read = || format!("cannot read {name}");
    if logs.volume.exists(&FilePath::new(VERSION_FILE)).with_context(cannot_read)? {
        bail!(
            "hbase.wal.dir = {name}: that is a root directory of its own (it has {VERSION_FILE}), whose logs would be taken for this one's; \
             give it an empty directory"
        );
    }
    // HBase leaves no mark. What it logged for a root directory that it wrote is that one's.
    let is_hbases = storage.volume.exists(&FilePath::new(VERSION_FILE)).with_context(|| storage.name.clone())?;
    if (is_marked || !is_hbases)
        && let Some(log) = logs_in(&*logs.volume).with_context(cannot_read)?
    {
        bail!(
            "hbase.wal.dir = {name}: it has {log}, a log that this root directory ({}) did not put there: give it an empty directory",
            storage.name
        );
    }
    Ok(())
}

/// Gives a WAL directory a mark that no other has.
fn identify(logs: &Logs) -> Result<String> {
    let id = Rng::from_system().uuid_hex();
    logs.volume.publish(&FilePath::new(RECORD), id.as_bytes()).with_context(|| format!("cannot use {}", logs.name))?;
    Ok(id)
}

/// A WAL directory that the root directory knows.
#[derive(Clone)]
struct KnownDirectory {
    /// What its mark says.
    id: String,
    name: String,
}

impl KnownDirectory {
    /// # Errors
    /// It is not there, or another is in its place.
    fn open(&self, config: &Config, config_directory: Option<&Path>) -> Result<Logs> {
        let name = &self.name;
        let place = place_of(settings::WAL_DIRECTORY.key, name)?;
        let is_there = place.is_there();
        if is_there {
            let logs = open(&place, config, config_directory)?;
            if logs.mark()?.as_deref() == Some(&*self.id) {
                return Ok(logs);
            }
        }
        bail!(
            "the logs of this root directory are in {name}, which {}: mount it. Where they are lost for good, with all that was written and not \
             flushed, remove {RECORD} from the root directory",
            if is_there { "is empty, or is not the directory that it was" } else { "is not there" }
        )
    }
}

/// The WAL directories that a root directory knows: the one in use first, then those which may still have logs of before a change of the settings.
struct Known(Vec<KnownDirectory>);

impl Known {
    fn read(storage: &Storage) -> Result<Known> {
        let record = FilePath::new(RECORD);
        let cannot_read = || format!("cannot read {}", storage.name);
        if !storage.volume.exists(&record).with_context(cannot_read)? {
            return Ok(Known(Vec::new()));
        }
        let text = String::from_utf8(storage.volume.read(&record).with_context(cannot_read)?);
        let known = |line: &str| {
            let (id, name) = line.split_once(' ')?;
            Some(KnownDirectory { id: id.to_owned(), name: name.to_owned() })
        };
        let known = text.ok().and_then(|text| text.lines().map(known).collect::<Option<Vec<_>>>());
        let damaged = || {
            format!(
                "{}/{RECORD}, which says where the logs are, is damaged: write it anew, the mark of a WAL directory ({RECORD} in \
                it), a space and its path on each line",
                storage.name
            )
        };
        Ok(Known(known.filter(|known| !known.is_empty()).with_context(damaged)?))
    }

    fn write(&self, storage: &Storage) -> Result<()> {
        let lines: String = self.0.iter().map(|known| format!("{} {}\n", known.id, known.name)).collect();
        let cannot_use = || format!("cannot use {}", storage.name);
        storage.volume.publish(&FilePath::new(RECORD), lines.as_bytes()).with_context(cannot_use)
    }
}

fn bring(from: &Logs, to: &Logs) -> Result<()> {
    let carried = rootdir::wal_dir::carry(&*from.volume, &*to.volume).with_context(|| {
        format!(
            "cannot move the WAL files of {} to {}; nothing is lost: remove the cause and start again",
            from.name, to.name
        )
    })?;
    if carried.files > 0 {
        let (from, to) = (&from.name, &to.name);
        tracing::info!("moved {} WAL files, {} bytes, from {from} to {to}", carried.files, carried.bytes);
    }
    Ok(())
}
