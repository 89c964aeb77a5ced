//! A directory of a volume as a volume of its own.

use crate::{Appender, Capabilities, DirEntry, FilePath, ReadAt, Result, Settled, Volume};
use std::sync::Arc;

/// A directory of another volume. What it is asked for cannot lead out of that: paths have no `..`. Errors name the whole path within the other
/// volume. Costs one path put together for each call.
#[derive(Clone)]
pub struct Below {
    volume: Arc<dyn Volume>,
    dir: FilePath,
}

impl Below {
    /// The directory `dir` of `volume`, which need not be there yet.
    pub fn new(volume: Arc<dyn Volume>, dir: FilePath) -> Below {
        Below { volume, dir }
    }

    fn whole(&self, path: &FilePath) -> FilePath {
        if path.as_str().is_empty() { self.dir.clone() } else { self.dir.join(path.as_str()) }
    }
}

impl Volume for Below {
    fn open(&self, path: &FilePath) -> Result<Arc<dyn ReadAt>> {
        self.volume.open(&self.whole(path))
    }

    fn create(&self, path: &FilePath) -> Result<Box<dyn Appender>> {
        self.volume.create(&self.whole(path))
    }

    fn rename(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        self.volume.rename(&self.whole(from), &self.whole(to))
    }

    fn rename_new(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        self.volume.rename_new(&self.whole(from), &self.whole(to))
    }

    fn remove_file(&self, path: &FilePath) -> Result<()> {
        self.volume.remove_file(&self.whole(path))
    }

    fn remove_dir_all(&self, path: &FilePath) -> Result<()> {
        self.volume.remove_dir_all(&self.whole(path))
    }

    fn create_dir_all(&self, path: &FilePath) -> Result<()> {
        self.volume.create_dir_all(&self.whole(path))
    }

    fn list(&self, path: &FilePath) -> Result<Vec<DirEntry>> {
        self.volume.list(&self.whole(path))
    }

    fn stat(&self, path: &FilePath) -> Result<Option<DirEntry>> {
        self.volume.stat(&self.whole(path))
    }

    fn sync_dir(&self, path: &FilePath) -> Result<()> {
        self.volume.sync_dir(&self.whole(path))
    }

    fn capabilities(&self) -> Capabilities {
        self.volume.capabilities()
    }

    fn settle(&self, path: &FilePath) -> Result<Settled> {
        self.volume.settle(&self.whole(path))
    }

    fn temporary_name(&self, name: &str) -> String {
        self.volume.temporary_name(name)
    }

    fn sync_file(&self, path: &FilePath) -> Result<()> {
        self.volume.sync_file(&self.whole(path))
    }

    fn create_dir_all_durable(&self, path: &FilePath) -> Result<()> {
        self.volume.create_dir_all_durable(&self.whole(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CrashPolicy, MemVolume};

    #[test]
    fn a_directory_is_a_volume_whose_names_are_durable_up_to_the_whole_ones_root() {
        let volume = Arc::new(MemVolume::new());
        let below = Below::new(volume.clone(), FilePath::new("a/b"));
        assert_eq!(below.stat(&FilePath::root()).expect("asked"), None, "it need not be there");
        below.create_dir_all_durable(&FilePath::new("c")).expect("made");
        below.publish(&FilePath::new("c/d"), b"bytes").expect("written");
        let crashed = volume.crash(&base::Rng::seeded(1), CrashPolicy::LoseUnsynced);
        assert_eq!(crashed.read(&FilePath::new("a/b/c/d")).expect("durable"), b"bytes");
        below.rename_new(&FilePath::new("c/d"), &FilePath::new("e")).expect("renamed");
        let names = |path: &FilePath| below.list(path).expect("listed").into_iter().map(|e| e.name).collect::<Vec<_>>();
        assert_eq!(names(&FilePath::root()), ["c", "e"]);
        below.remove_dir_all(&FilePath::root()).expect("removed");
        assert_eq!(volume.stat(&FilePath::new("a/b")).expect("asked"), None);
        assert!(volume.exists(&FilePath::new("a")).expect("asked"), "nothing above is touched");
        let error = below.read(&FilePath::new("x")).expect_err("nothing is there");
        assert!(error.to_string().contains("a/b/x"), "{error}");
    }
}
