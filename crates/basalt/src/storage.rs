//! Where the data is: a directory of the local disk, or of an HDFS in a build with the feature `hdfs`.
//!
//! Always true: what makes the place unusable is found before anything is written there, and the place belongs to this process until that is gone.

mod wal_dir;

use crate::settings;
use anyhow::{Context, Result, anyhow, bail};
use base::{Config, Rng, TextSetting};
use fs::tiered::VolumeSpec;
use fs::{FileKind, LocalVolume, Volume};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The root directory, claimed for this process.
pub struct Storage {
    /// As people write it.
    pub name: String,
    /// The root directory.
    pub volume: Arc<dyn Volume>,
    /// All that files may be loaded from in bulk.
    pub outside: Arc<dyn Volume>,
    /// Where the root directory is on it: an absolute path, on HDFS with `hdfs://host:port` before it.
    pub root: String,
}

/// Opens what `hbase.rootdir` says. `config_directory` may hold HDFS's configuration.
///
/// # Errors
/// A sentence saying why it cannot be used.
pub fn open(config: &Config, config_directory: Option<&Path>) -> Result<Storage> {
    let mut storage = open_root(config, config_directory)?;
    storage.volume = wal_dir::of_one_process(&storage, config, config_directory)?;
    Ok(storage)
}

fn open_root(config: &Config, config_directory: Option<&Path>) -> Result<Storage> {
    match place(config)? {
        Place::Directory(root) => open_local(&root, config),
        #[cfg(feature = "hdfs")]
        Place::Hdfs(location) => {
            if config.text(settings::VOLUMES.key).is_some_and(|text| !matches!(text.trim(), "" | "none")) {
                bail!("basalt.volumes is for a root directory on the local disk; HDFS has storage policies of its own");
            }
            hdfs::open(&location, config, config_directory)
        }
        #[cfg(not(feature = "hdfs"))]
        Place::Hdfs => {
            let _ = config_directory;
            bail!("hbase.rootdir is on HDFS, and this build has no HDFS: build with cargo build --features hdfs")
        }
    }
}

/// Opens the root directory of a cluster, which other processes use too: nobody has it for himself.
///
/// # Errors
/// A sentence saying why it cannot be used.
#[cfg(feature = "zookeeper")]
pub fn open_shared(config: &Config, config_directory: Option<&Path>) -> Result<Storage> {
    let mut storage = open_shared_root(config, config_directory)?;
    storage.volume = wal_dir::shared(&storage, config, config_directory)?;
    Ok(storage)
}

#[cfg(feature = "zookeeper")]
fn open_shared_root(config: &Config, config_directory: Option<&Path>) -> Result<Storage> {
    match place(config)? {
        Place::Directory(root) => bail!(
            "hbase.rootdir = {}: a region server that joins a cluster stores on HDFS, where the others find its files",
            root.display()
        ),
        #[cfg(feature = "hdfs")]
        Place::Hdfs(location) => hdfs::open_shared(&location, config, config_directory),
        #[cfg(not(feature = "hdfs"))]
        Place::Hdfs => {
            let _ = config_directory;
            bail!(
                "hbase.rootdir is on HDFS, and this build has no HDFS: build with cargo build --features hdfs,zookeeper"
            )
        }
    }
}

/// Opens for tools what is not on the local disk.
pub struct Places {
    /// May hold HDFS's configuration.
    pub config_directory: Option<PathBuf>,
}

impl tools::places::Opener for Places {
    fn open(&self, config: &Config, uri: &str) -> Result<tools::places::Elsewhere> {
        let Some(("hdfs", _)) = uri.split_once("://") else {
            bail!("{uri}: this version knows the local disk and HDFS, and no other file system")
        };
        #[cfg(feature = "hdfs")]
        return hdfs::open_directory(uri, config, self.config_directory.as_deref());
        #[cfg(not(feature = "hdfs"))]
        {
            let _ = (config, &self.config_directory);
            bail!("{uri} is on HDFS, and this build has no HDFS: build with cargo build --features hdfs")
        }
    }
}

#[derive(Debug)]
enum Place {
    Directory(PathBuf),
    #[cfg(feature = "hdfs")]
    Hdfs(fs_hdfs::Location),
    #[cfg(not(feature = "hdfs"))]
    Hdfs,
}

impl Place {
    /// As people write it.
    fn name(&self) -> String {
        match self {
            Place::Directory(dir) => dir.display().to_string(),
            #[cfg(feature = "hdfs")]
            Place::Hdfs(location) => location.to_string(),
            #[cfg(not(feature = "hdfs"))]
            Place::Hdfs => "HDFS".to_owned(),
        }
    }
}

fn place(config: &Config) -> Result<Place> {
    match config.text(settings::ROOT_DIRECTORY.key).map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) => place_of(settings::ROOT_DIRECTORY.key, text),
        None => Ok(Place::Directory(default_root(config)?)),
    }
}

/// What the value of the setting `key` says.
fn place_of(key: &str, text: &str) -> Result<Place> {
    let path = match text.split_once("://") {
        Some(("file", path)) => path,
        #[cfg(feature = "hdfs")]
        Some(("hdfs", _)) => return Ok(Place::Hdfs(fs_hdfs::Location::parse(text).with_context(|| key.to_owned())?)),
        #[cfg(not(feature = "hdfs"))]
        Some(("hdfs", _)) => return Ok(Place::Hdfs),
        Some((scheme, _)) => {
            bail!("{key} = {text}: this version stores on the local disk and on HDFS, not on {scheme}")
        }
        None => text.strip_prefix("file:").unwrap_or(text),
    };
    if path.is_empty() {
        bail!("{key} = {text} names no directory");
    }
    Ok(Place::Directory(std::path::absolute(path)?))
}

/// Where the data is when nobody names a root directory. Follows: hbase-default.xml, where it is `${hbase.tmp.dir}/hbase`. What lies in the directory that
/// holds without either is not left behind.
///
/// # Errors
/// There is no current directory.
pub fn default_root(config: &Config) -> Result<PathBuf> {
    let here = std::env::current_dir()?.join("basalt-data");
    let tmp = config.text(settings::TMP_DIRECTORY.key).map(str::trim).filter(|text| !text.is_empty());
    match tmp.filter(|_| !here.exists()) {
        Some(tmp) => Ok(std::path::absolute(tmp.strip_prefix("file://").unwrap_or(tmp))?.join("hbase")),
        None => Ok(here),
    }
}

fn open_local(root: &Path, config: &Config) -> Result<Storage> {
    let name = root.display().to_string();
    if root.exists() {
        let volume = LocalVolume::open(root).with_context(|| format!("cannot read {name}"))?;
        inspect(&volume, &name)?;
    }
    let volume = Arc::new(LocalVolume::open(root).with_context(|| format!("cannot use {name}"))?);
    // Held until the process is gone: what still runs when this returns must not meet another server's writes.
    std::mem::forget(volume.lock().map_err(|error| lock_error(&name, error))?);
    inspect(&*volume, &name)?;
    let root = volume.root().display().to_string();
    let volume = with_other_volumes(volume, config, &name)?;
    let outside = LocalVolume::open(Path::new("/")).context("cannot read the root of the file system")?;
    Ok(Storage { root, name, volume, outside: Arc::new(outside) })
}

#[allow(clippy::disallowed_methods, reason = "threads of the volumes begin here")]
fn start_thread(name: &str, body: Box<dyn FnOnce() + Send>) -> std::io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body).map(drop)
}

/// The root's volume with those of `basalt.volumes`; itself where there are none.
fn with_other_volumes(home: Arc<LocalVolume>, config: &Config, name: &str) -> Result<Arc<dyn Volume>> {
    let said = config.text(settings::VOLUMES.key).filter(|text| text.trim() != "none");
    let specs = said.map(fs::tiered::parse_volumes).transpose().map_err(|what| anyhow!(what))?;
    let places = [
        (FileKind::Log, &settings::PLACE_WAL),
        (FileKind::Flush, &settings::PLACE_FLUSH),
        (FileKind::Minor, &settings::PLACE_MINOR),
        (FileKind::Major, &settings::PLACE_MAJOR),
        (FileKind::Large, &settings::PLACE_MOB),
    ];
    let tier_of = |setting: &TextSetting| config.text(setting.key).map(str::trim).filter(|tier| !tier.is_empty());
    let kinds = places.iter().filter_map(|(kind, setting)| Some((kind.name(), tier_of(setting)?.to_owned())));
    let memory_may_lose_acknowledged_writes = config.get(&settings::RAM_MAY_LOSE);
    let rules = fs::tiered::Rules { kinds: kinds.collect(), memory_may_lose_acknowledged_writes };
    let specs = specs.unwrap_or_default();
    if specs.is_empty()
        && let Some((kind, tier)) = rules.kinds.iter().next()
    {
        bail!(
            "basalt.volumes.place.{kind} = {tier}, but basalt.volumes is not set: list the volumes of that tier in it"
        );
    }
    let may_be_missing = config.get(&settings::VOLUMES_MAY_BE_MISSING);
    let tell = Arc::new(|sentence: String| tracing::warn!("{sentence}"));
    let delays = config.text(settings::VOLUMES_DELAY_FOR_TESTS.key).and_then(settings::delays_of).unwrap_or_default();
    let delays: Vec<(String, u64)> = delays.into_iter().map(|(tier, ms)| (tier.to_owned(), ms)).collect();
    let delay = move |spec: &VolumeSpec| {
        let ms = delays.iter().find(|(of, _)| *of == spec.tier.name || *of == spec.place).map_or(0, |(_, ms)| *ms);
        std::time::Duration::from_millis(ms)
    };
    let opened =
        fs::tiered::open_local(home, &specs, rules, may_be_missing, Arc::new(delay), &Rng::from_system(), tell);
    let (volume, survey, locks) = opened.map_err(|error| anyhow!("cannot serve {name}: {}", error.source))?;
    // As the root's own.
    std::mem::forget(locks);
    let clock: Arc<dyn base::Clock> = Arc::new(base::SystemClock::new());
    let volume = volume.measured(&clock).with_threads(Arc::new(start_thread));
    for status in volume.status() {
        let VolumeSpec { tier, place, .. } = &status.spec;
        tracing::info!("tier {} ({}): {place}, {} bytes of files", tier.name, tier.class, status.used_bytes);
    }
    if let Some(first) = survey.missing.first() {
        tracing::error!(
            "the bytes of {} files are not on their volumes, {first} among them; their regions will not open: `basalt volumes check` \
             names all",
            survey.missing.len()
        );
    }
    if !survey.nameless.is_empty() {
        let bytes: u64 = survey.nameless.iter().map(|(_, _, bytes)| bytes).sum();
        tracing::info!(
            "{} files of {bytes} bytes on other volumes have no name, as a crash leaves them: `basalt volumes check \
             --remove-nameless` frees their room",
            survey.nameless.len()
        );
    }
    Ok(Arc::new(volume))
}

fn lock_error(root: &str, error: fs::Error) -> anyhow::Error {
    if error.kind() == std::io::ErrorKind::WouldBlock {
        return anyhow!("{}", error.source);
    }
    anyhow!("cannot write to {root}: {}", error.source)
}

fn inspect(volume: &dyn Volume, name: &str) -> Result<()> {
    rootdir::root::inspect(volume).with_context(|| format!("cannot serve {name}"))?;
    Ok(())
}

#[cfg(feature = "hdfs")]
mod hdfs {
    use super::{Storage, inspect, lock_error};
    use anyhow::{Context, Result};
    use base::{Config, Rng};
    use fs::Volume;
    use fs_hdfs::{HdfsVolume, Location, Settings, lock_root};
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    /// Longer than a pipeline takes that is repaired once, and than a name node that fails over.
    const DEADLINE: Duration = Duration::from_secs(180);

    /// Keys of Hadoop's that may stand in `hbase-site.xml` as well.
    const PREFIXES: [&str; 5] = ["dfs.", "fs.", "hadoop.", "ipc.", "io."];

    pub(super) fn open(location: &Location, config: &Config, config_directory: Option<&Path>) -> Result<Storage> {
        let name = location.to_string();
        let volume = Arc::new(HdfsVolume::open(location, &settings(config, config_directory))?);
        let outside = Arc::new(volume.at(location.root()));
        inspect(&*volume, &name)?;
        let owner = owner();
        let lock = lock_root(&volume, &owner, is_gone).map_err(|error| lock_error(&name, error))?;
        // As on the local disk.
        std::mem::forget(lock);
        inspect(&*volume, &name)?;
        volume.create_dir_all(&fs::FilePath::root()).with_context(|| format!("cannot use {name}"))?;
        Ok(Storage { root: name.clone(), name, volume, outside })
    }

    #[cfg(feature = "zookeeper")]
    pub(super) fn open_shared(
        location: &Location,
        config: &Config,
        config_directory: Option<&Path>,
    ) -> Result<Storage> {
        let name = location.to_string();
        let volume = Arc::new(HdfsVolume::open(location, &settings(config, config_directory))?);
        let outside = Arc::new(volume.at(location.root()));
        Ok(Storage { root: name.clone(), name, volume, outside })
    }

    /// A WAL directory.
    pub(super) fn open_logs(
        location: &Location,
        config: &Config,
        config_directory: Option<&Path>,
    ) -> Result<Arc<dyn Volume>> {
        Ok(Arc::new(HdfsVolume::open(location, &settings(config, config_directory))?))
    }

    /// Makes a WAL directory this process's, as the root directory is.
    pub(super) fn claim_logs(location: &Location, config: &Config, config_directory: Option<&Path>) -> Result<()> {
        let name = location.to_string();
        let volume = Arc::new(HdfsVolume::open(location, &settings(config, config_directory))?);
        std::mem::forget(lock_root(&volume, &owner(), is_gone).map_err(|error| lock_error(&name, error))?);
        volume.create_dir_all(&fs::FilePath::root()).with_context(|| format!("cannot use {name}"))
    }

    /// A directory, for a tool.
    pub(super) fn open_directory(
        uri: &str,
        config: &Config,
        config_directory: Option<&Path>,
    ) -> Result<tools::places::Elsewhere> {
        let location = Location::parse(uri)?;
        // From above: the directory is not to be made by looking for it.
        let above = HdfsVolume::open(&location.root(), &settings(config, config_directory))?;
        let volume = Arc::new(above.at(location.clone()));
        let of_claim = volume.clone();
        let claim = move || -> fs::Result<Box<dyn std::any::Any + Send>> {
            Ok(Box::new(lock_root(&of_claim, &owner(), is_gone)?))
        };
        Ok(tools::places::Elsewhere { volume, uri: location.to_string(), claim: Arc::new(claim) })
    }

    fn settings(config: &Config, config_directory: Option<&Path>) -> Settings {
        let has_files = |dir: &&Path| ["core-site.xml", "hdfs-site.xml"].iter().any(|file| dir.join(file).exists());
        let is_hadoops = |(key, _): &(&str, &str)| PREFIXES.iter().any(|prefix| key.starts_with(prefix));
        Settings {
            config_directory: config_directory.filter(has_files).map(|dir| dir.display().to_string()),
            overrides: config
                .iter()
                .filter(is_hadoops)
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
            deadline: DEADLINE,
            unique: Rng::from_system().next_u64(),
        }
    }

    fn host() -> String {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    }

    /// When a process of this machine was started, in the kernel's ticks; `None` when there is no such process.
    #[allow(clippy::disallowed_methods, reason = "the kernel's file, not the volume's")]
    fn started(pid: u32) -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field, a name in parentheses, may have spaces.
        text.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
    }

    fn owner() -> String {
        let pid = std::process::id();
        format!("the process with pid {pid} (started {}) on {}", started(pid).unwrap_or_default(), host())
    }

    /// Whether the owner of that name was a process of this machine that lives no more.
    fn is_gone(owner: &str) -> bool {
        let named = |text: &str| {
            let rest = text.strip_prefix("the process with pid ")?;
            let (pid, rest) = rest.split_once(" (started ")?;
            let (ticks, host) = rest.split_once(") on ")?;
            Some((pid.parse().ok()?, ticks.parse().ok()?, host.to_owned()))
        };
        let Some((pid, ticks, its_host)): Option<(u32, u64, String)> = named(owner) else { return false };
        its_host == host() && started(pid) != Some(ticks)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn only_a_process_of_this_machine_is_known_to_be_gone() {
            let own = owner();
            assert!(!is_gone(&own), "{own} lives");
            let pid = std::process::id();
            assert!(
                is_gone(&format!("the process with pid {pid} (started 1) on {}", host())),
                "another had the number"
            );
            assert!(!is_gone("the process with pid 1 (started 0) on a.host.far.away"));
            assert!(!is_gone("another process"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_directory_may_be_a_path_or_a_url() {
        let of = |text: &str| {
            let mut config = Config::default();
            config.set(settings::ROOT_DIRECTORY.key, text);
            place(&config).map_err(|error| error.to_string())
        };
        for text in ["/a/b", "file:/a/b", "file:///a/b"] {
            assert!(matches!(of(text), Ok(Place::Directory(path)) if path == Path::new("/a/b")), "{text}");
        }
        // Without one, below hbase.tmp.dir.
        let mut config = Config::default();
        config.set(settings::TMP_DIRECTORY.key, "/scratch");
        assert!(matches!(place(&config), Ok(Place::Directory(path)) if path == Path::new("/scratch/hbase")));
        config.set(settings::ROOT_DIRECTORY.key, "/a/b");
        assert!(matches!(place(&config), Ok(Place::Directory(path)) if path == Path::new("/a/b")));
        assert!(of("s3a://bucket/x").expect_err("not on S3").contains("not on s3a"));
        assert!(of("file://").expect_err("nothing").contains("no directory"));
    }
}
