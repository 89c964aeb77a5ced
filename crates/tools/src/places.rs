//! Directories that a command line names by a URI: on the local disk, or on a file system that who runs the tool opens ([`Opener`]). This crate
//! knows none but the first.

use std::any::Any;
use std::sync::Arc;

use anyhow::{Context, bail};
use base::Config;
use fs::{Below, FilePath, LocalVolume, Volume};

use crate::files;

/// Opens what is not on the local disk.
pub trait Opener: Sync {
    /// The directory at `uri`, whose scheme is another one than `file`. It is not made, and need not be there. May block.
    ///
    /// # Errors
    /// There is no such file system, or it does not answer.
    fn open(&self, config: &Config, uri: &str) -> anyhow::Result<Elsewhere>;
}

/// What an [`Opener`] found.
pub struct Elsewhere {
    /// The directory.
    pub volume: Arc<dyn Volume>,
    /// The URI as it is written without doubt, `hdfs://host:port/directory`: what a server is told of it begins so.
    pub uri: String,
    /// Keeps other processes from changing what is in the directory.
    pub claim: Claim,
}

/// Claims a directory, for as long as what it returns lives. Fails with `WouldBlock`, naming the owner, where somebody else has it.
pub type Claim = Arc<dyn Fn() -> fs::Result<Box<dyn Any + Send>> + Send + Sync>;

/// The scheme of a URI of another file system than the local disk.
fn scheme(text: &str) -> Option<&str> {
    text.trim().split_once("://").map(|(scheme, _)| scheme).filter(|scheme| *scheme != "file")
}

/// Files that a server is told of: a volume, and what stands before its paths then.
#[derive(Clone)]
pub(crate) struct Source {
    pub volume: Arc<dyn Volume>,
    /// `file:`, `file:/directory` or `hdfs://host:port/directory`; without a `/` at the end.
    base: String,
}

impl Source {
    /// All files of the machine.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn everything() -> anyhow::Result<Source> {
        Ok(Source { volume: Arc::new(files::everything()?), base: "file:".to_owned() })
    }

    /// The files of a directory that a command line names, and its path among them.
    ///
    /// # Errors
    /// It is on no file system that there is.
    pub fn named(opener: &dyn Opener, config: &Config, text: &str) -> anyhow::Result<(Source, FilePath)> {
        if scheme(text).is_none() {
            return Ok((Source::everything()?, files::path_of(&files::place(text)?)?));
        }
        let found = opener.open(config, text)?;
        Ok((Source { volume: found.volume, base: found.uri.trim_end_matches('/').to_owned() }, FilePath::root()))
    }

    /// A path as a server is told of it.
    pub fn text(&self, path: &FilePath) -> String {
        match path.as_str() {
            "" => self.base.clone(),
            path => format!("{}/{path}", self.base),
        }
    }

    /// A path as people read it.
    pub fn shown(&self, path: &FilePath) -> String {
        let text = self.text(path);
        text.strip_prefix("file:").unwrap_or(&text).to_owned()
    }

    /// The server may run as somebody else, and is to move what a tool wrote. Elsewhere than on the local disk it runs as who it is.
    pub fn open_to_all(&self, path: &FilePath) -> anyhow::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let text = self.text(path);
        let Some(place) = text.strip_prefix("file:") else { return Ok(()) };
        std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o777))
            .with_context(|| format!("cannot open {place} to the server"))
    }
}

/// A directory that a tool writes to.
#[derive(Clone)]
pub(crate) struct Directory {
    pub volume: Arc<dyn Volume>,
    /// As people write it: `/backups`, `hdfs://host:port/backups`.
    pub name: String,
    base: String,
    claim: Claim,
    /// Of a root directory: its WAL directory, where that is another.
    logs: Option<Arc<dyn Volume>>,
}

impl Directory {
    /// The directory that a command line names; made where `is_new` allows it.
    ///
    /// # Errors
    /// It is not there, or cannot be used.
    pub fn open(opener: &dyn Opener, config: &Config, text: &str, is_new: bool) -> anyhow::Result<Directory> {
        if scheme(text).is_none() {
            let path = files::place(text)?;
            return Directory::local(&path, is_new).with_context(|| format!("cannot use {}", path.display()));
        }
        let Elsewhere { volume, uri, claim } = opener.open(config, text)?;
        let name = uri.trim_end_matches('/').to_owned();
        let root = FilePath::root();
        match volume.stat(&root).with_context(|| format!("cannot use {name}"))? {
            Some(entry) if !entry.is_dir => bail!("cannot use {name}: it is a file"),
            Some(_) => {}
            None if is_new => volume.create_dir_all(&root).with_context(|| format!("cannot make {name}"))?,
            None => bail!("there is no directory {name}"),
        }
        Ok(Directory { volume, base: name.clone(), name, claim, logs: None })
    }

    fn local(path: &std::path::Path, is_new: bool) -> fs::Result<Directory> {
        let volume = match is_new {
            true => LocalVolume::open(path)?,
            false => LocalVolume::open_existing(path)?,
        };
        let volume = Arc::new(volume);
        let name = volume.root().display().to_string();
        let base = format!("file:{}", name.trim_end_matches('/'));
        let of_claim = volume.clone();
        let claim: Claim = Arc::new(move || Ok(Box::new(of_claim.lock()?)));
        Ok(Directory { volume, name, base, claim, logs: None })
    }

    /// The cluster's root directory, which `hbase.rootdir` names.
    ///
    /// # Errors
    /// It is not there, or cannot be used.
    pub fn root(opener: &dyn Opener, config: &Config) -> anyhow::Result<Directory> {
        let mut root = match config.text("hbase.rootdir").filter(|text| scheme(text).is_some()) {
            Some(uri) => Directory::open(opener, config, uri.trim(), false).context("hbase.rootdir")?,
            None => {
                let place = files::root_place(config)?;
                // As every tool says that there is none.
                files::root(&place)?;
                Directory::local(&place, false)?
            }
        };
        // What the server noted is true whatever the tool was told.
        let recorded =
            rootdir::wal_dir::recorded(&*root.volume).with_context(|| format!("cannot read {}", root.name))?;
        let said = || config.text("hbase.wal.dir").map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        if let Some(place) = recorded.or_else(said) {
            let logs = Directory::open(opener, config, &place, false).context("hbase.wal.dir")?;
            root.logs = (logs.base != root.base).then_some(logs.volume);
        }
        Ok(root)
    }

    /// The same to be read, with the files that a root directory has on other volumes, and its logs.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn reading(&self) -> anyhow::Result<Arc<dyn Volume>> {
        let root = match self.base.strip_prefix("file:") {
            Some(_) => files::root(std::path::Path::new(&self.name))?,
            None => self.volume.clone(),
        };
        Ok(match &self.logs {
            Some(logs) => Arc::new(rootdir::WalDirVolume::new(root, logs.clone())),
            None => root,
        })
    }

    /// Keeps other processes from changing what is in it.
    ///
    /// # Errors
    /// Another one has it.
    pub fn claim(&self) -> anyhow::Result<Box<dyn Any + Send>> {
        (self.claim)().map_err(|error| anyhow::anyhow!("{}", error.source))
    }

    /// A directory in it as a volume of its own.
    pub fn below(&self, dir: &FilePath) -> Arc<dyn Volume> {
        Arc::new(Below::new(self.volume.clone(), dir.clone()))
    }

    /// A path in it as people read it.
    pub fn shown(&self, path: &FilePath) -> String {
        match path.as_str() {
            "" => self.name.clone(),
            path => format!("{}/{path}", self.name.trim_end_matches('/')),
        }
    }

    /// Its files, for a server.
    pub fn source(&self) -> Source {
        Source { volume: self.volume.clone(), base: self.base.clone() }
    }

    /// Whether a server that has the one can read files of the other: both are on the same file system.
    pub fn is_beside(&self, other: &Directory) -> bool {
        let origin = |directory: &Directory| match directory.base.split_once("://") {
            Some((scheme, rest)) => format!("{scheme}://{}", rest.split('/').next().unwrap_or_default()),
            None => String::new(),
        };
        origin(self) == origin(other)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Knows no file system.
    pub(crate) struct Nowhere;

    impl Opener for Nowhere {
        fn open(&self, _: &Config, uri: &str) -> anyhow::Result<Elsewhere> {
            bail!("{uri}: there is no such file system")
        }
    }

    /// Directories of one memory.
    struct Memory(Arc<dyn Volume>);

    impl Opener for Memory {
        fn open(&self, _: &Config, uri: &str) -> anyhow::Result<Elsewhere> {
            let dir = uri.strip_prefix("mem://host/").context("mem://host/directory")?;
            let volume = Arc::new(Below::new(self.0.clone(), FilePath::new(dir)));
            Ok(Elsewhere { volume, uri: uri.to_owned(), claim: Arc::new(|| Ok(Box::new(()))) })
        }
    }

    #[test]
    fn a_uri_of_another_scheme_is_the_openers() {
        let (config, memory) = (Config::default(), Memory(Arc::new(fs::MemVolume::new())));
        let open = |text: &str, is_new| Directory::open(&memory, &config, text, is_new);
        let error = open("mem://host/a/b", false).err().expect("nothing is there").to_string();
        assert!(error.contains("no directory mem://host/a/b"), "{error}");
        let made = open("mem://host/a/b", true).expect("made");
        made.volume.publish(&FilePath::new("c"), b"x").expect("written");
        assert_eq!(memory.0.read(&FilePath::new("a/b/c")).expect("there"), b"x");
        assert_eq!(made.source().text(&FilePath::new("c")), "mem://host/a/b/c");
        assert!(open("mem://host/a/b/c", true).err().expect("a file").to_string().contains("is a file"));
        let other = open("mem://host/other", true).expect("made");
        let local = std::env::temp_dir();
        let local = Directory::open(&memory, &config, &format!("file://{}", local.display()), false).expect("there");
        assert!(made.is_beside(&other) && !made.is_beside(&local) && local.is_beside(&local.clone()));
        assert!(local.source().text(&FilePath::new("c")).starts_with("file:/"), "{}", local.name);
        assert_eq!(local.source().shown(&FilePath::new("c")), local.shown(&FilePath::new("c")));
        let error = Directory::open(&Nowhere, &config, "hdfs://h/x", true).err().expect("nowhere").to_string();
        assert!(error.contains("hdfs://h/x"), "{error}");
    }
}
