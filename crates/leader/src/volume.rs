//! The root directory as a master of a cluster has it: changed only while its lease holds. What is written becomes part of the directory by the
//! change of a name, which is looked at here.

use crate::lease::Lease;
use fs::{Appender, Capabilities, DirEntry, FilePath, ReadAt, Result, Settled, Volume, VolumeHints};
use std::sync::Arc;

/// A volume under a lease.
pub(crate) struct LeasedVolume {
    volume: Arc<dyn Volume>,
    lease: Arc<Lease>,
}

impl LeasedVolume {
    pub fn new(volume: Arc<dyn Volume>, lease: Arc<Lease>) -> LeasedVolume {
        LeasedVolume { volume, lease }
    }

    fn check(&self, what: &'static str, path: &FilePath) -> Result<()> {
        self.lease.check().map_err(|why| fs::Error::new(what, path, std::io::Error::other(why)))
    }
}

impl Volume for LeasedVolume {
    fn open(&self, path: &FilePath) -> Result<Arc<dyn ReadAt>> {
        self.volume.open(path)
    }

    fn create(&self, path: &FilePath) -> Result<Box<dyn Appender>> {
        self.check("create", path)?;
        self.volume.create(path)
    }

    fn rename(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        self.check("rename", from)?;
        self.volume.rename(from, to)
    }

    fn rename_new(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        self.check("rename", from)?;
        self.volume.rename_new(from, to)
    }

    fn remove_file(&self, path: &FilePath) -> Result<()> {
        self.check("remove", path)?;
        self.volume.remove_file(path)
    }

    fn remove_dir_all(&self, path: &FilePath) -> Result<()> {
        self.check("remove", path)?;
        self.volume.remove_dir_all(path)
    }

    fn create_dir_all(&self, path: &FilePath) -> Result<()> {
        self.check("make", path)?;
        self.volume.create_dir_all(path)
    }

    fn list(&self, path: &FilePath) -> Result<Vec<DirEntry>> {
        self.volume.list(path)
    }

    fn stat(&self, path: &FilePath) -> Result<Option<DirEntry>> {
        self.volume.stat(path)
    }

    fn sync_dir(&self, path: &FilePath) -> Result<()> {
        self.volume.sync_dir(path)
    }

    fn capabilities(&self) -> Capabilities {
        self.volume.capabilities()
    }

    fn hints(&self) -> Option<&dyn VolumeHints> {
        self.volume.hints()
    }

    fn settle(&self, path: &FilePath) -> Result<Settled> {
        self.check("settle", path)?;
        self.volume.settle(path)
    }

    fn temporary_name(&self, name: &str) -> String {
        self.volume.temporary_name(name)
    }

    fn sync_file(&self, path: &FilePath) -> Result<()> {
        self.volume.sync_file(path)
    }
}
