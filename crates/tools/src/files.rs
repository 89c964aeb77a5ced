//! Files and directories that a command line names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use base::Config;
use fs::{FilePath, LocalVolume, Volume};

/// Where the root directory is unless `hbase.rootdir` says otherwise: what the server takes as well.
const ROOT_DIRECTORY: &str = "basalt-data";

/// A place as people write it: a path, or a `file:` URI.
///
/// # Errors
/// It is on a file system that these tools do not read.
pub fn place(text: &str) -> anyhow::Result<PathBuf> {
    let path = match text.split_once("://") {
        Some(("file", path)) => path,
        Some((scheme, _)) => {
            bail!("{text}: these tools work on the local disk, not on {scheme}; copy the files here first")
        }
        None => text.strip_prefix("file:").unwrap_or(text),
    };
    if path.is_empty() {
        bail!("\"{text}\" names no file");
    }
    std::path::absolute(path).with_context(|| format!("{text} is no path"))
}

/// The path of a place on the volume of everything ([`everything`]).
///
/// # Errors
/// It is no UTF-8.
pub fn path_of(place: &Path) -> anyhow::Result<FilePath> {
    let mut parts: Vec<&str> = Vec::new();
    for component in place.components() {
        match component {
            std::path::Component::Normal(part) => {
                parts.push(part.to_str().with_context(|| format!("{} is no UTF-8", place.display()))?);
            }
            std::path::Component::ParentDir => drop(parts.pop()),
            _ => {}
        }
    }
    Ok(if parts.is_empty() { FilePath::root() } else { FilePath::new(parts.join("/")) })
}

/// A volume with all files of the machine.
///
/// # Errors
/// The root of the file system cannot be read.
pub fn everything() -> anyhow::Result<LocalVolume> {
    LocalVolume::open(Path::new("/")).context("cannot read the root of the file system")
}

/// A file's place on the volume of everything.
///
/// # Errors
/// It is not there, or is no file.
pub fn file(volume: &dyn Volume, text: &str) -> anyhow::Result<FilePath> {
    let place = place(text)?;
    let path = path_of(&place)?;
    match volume.stat(&path).with_context(|| format!("cannot read {}", place.display()))? {
        Some(entry) if entry.is_dir => bail!("{} is a directory, not a file", place.display()),
        Some(_) => Ok(path),
        None => bail!("there is no file {}", place.display()),
    }
}

/// The directory that `hbase.rootdir` names.
///
/// # Errors
/// It is on a file system that these tools do not read.
pub fn root_place(config: &Config) -> anyhow::Result<PathBuf> {
    match config.text("hbase.rootdir").map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) => place(text).context("hbase.rootdir"),
        None => Ok(std::env::current_dir()?.join(ROOT_DIRECTORY)),
    }
}

/// A root directory that is there, as a volume of its own, with the files that it has on other volumes.
///
/// # Errors
/// It is not there, or cannot be read.
pub fn root(place: &Path) -> anyhow::Result<Arc<dyn Volume>> {
    if !place.is_dir() {
        bail!(
            "there is no directory {}: hbase.rootdir, or the option for it, must name HBase's root directory",
            place.display()
        );
    }
    let cannot = || format!("cannot read {}", place.display());
    let home = LocalVolume::open(place).with_context(cannot)?;
    fs::tiered::open_reading(home).with_context(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_paths_or_file_uris() {
        assert_eq!(place("file:///a/b").expect("legal"), Path::new("/a/b"));
        assert_eq!(place("file:/a/b").expect("legal"), Path::new("/a/b"));
        assert!(place("hdfs://h/a").is_err() && place("").is_err() && place("file:").is_err());
        assert_eq!(path_of(Path::new("/a/../b/./c")).expect("legal").as_str(), "b/c");
        assert_eq!(path_of(Path::new("/")).expect("legal"), FilePath::root());
    }

    #[test]
    fn what_is_not_there_is_named() {
        let volume = everything().expect("readable");
        let error = file(&volume, "/no/such/file").expect_err("nothing is there");
        assert!(error.to_string().contains("/no/such/file"), "{error}");
        assert!(file(&volume, "/").expect_err("a directory").to_string().contains("is a directory"));
        assert!(root(Path::new("/no/such/root")).is_err());
    }
}
