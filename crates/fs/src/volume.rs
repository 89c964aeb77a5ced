//! The traits: a volume, a file being read, a file being appended to.

use crate::{FilePath, Result};
use std::sync::Arc;

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// Name within the directory.
    pub name: String,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// Bytes in the file; 0 for a directory.
    pub len: u64,
}

/// A tree of files.
pub trait Volume: Send + Sync + 'static {
    /// Opens a file for reading at random places. The handle outlives a rename or removal of the file.
    fn open(&self, path: &FilePath) -> Result<Arc<dyn ReadAt>>;
    /// Creates a file to append to; fails when it exists. Its directory must exist. The file's name is not durable
    /// before [`Volume::sync_dir`] of its directory.
    fn create(&self, path: &FilePath) -> Result<Box<dyn Appender>>;
    /// As [`Volume::create`] for a large file that is written in one go and not read at once: as far as the volume can, its bytes do
    /// not pass through the operating system's memory, and reads find it on the disk. A write that fails is not to be repeated: the file
    /// is to be given up.
    fn create_past_cache(&self, path: &FilePath) -> Result<Box<dyn Appender>> {
        self.create(path)
    }
    /// Renames a file or directory; an existing file at `to` is replaced. Not durable before both directories are synced.
    fn rename(&self, from: &FilePath, to: &FilePath) -> Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &FilePath) -> Result<()>;
    /// Removes a directory and all below it; nothing happens when it does not exist.
    fn remove_dir_all(&self, path: &FilePath) -> Result<()>;
    /// Makes a directory and those above it; nothing happens when it exists.
    fn create_dir_all(&self, path: &FilePath) -> Result<()>;
    /// The entries of a directory, sorted by name.
    fn list(&self, path: &FilePath) -> Result<Vec<DirEntry>>;
    /// What is at `path`; `None` when nothing is.
    fn stat(&self, path: &FilePath) -> Result<Option<DirEntry>>;
    /// Makes the entries of a directory durable.
    fn sync_dir(&self, path: &FilePath) -> Result<()>;

    /// Makes the contents of a finished file durable, whoever wrote it; its name is [`Volume::sync_dir`]'s business.
    /// Unless the volume knows better, by writing it anew.
    fn sync_file(&self, path: &FilePath) -> Result<()> {
        let bytes = self.read(path)?;
        self.publish(path, &bytes)
    }

    /// Bytes that can still be written before the volume is full; `None` when there is no telling.
    fn free_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Gives back room that was reserved for a file beyond its end by an appender that did not live to do it itself; nothing else
    /// changes. Volumes that reserve nothing have nothing to do.
    fn release_reserved(&self, path: &FilePath) -> Result<()> {
        let _ = path;
        Ok(())
    }

    /// Makes a directory and those above it, and makes every name that was missing durable. One that is there already is
    /// made durable again: the sync of an earlier attempt may have failed.
    fn create_dir_all_durable(&self, path: &FilePath) -> Result<()> {
        let (mut missing, mut at) = (Vec::new(), path.clone());
        while !at.as_str().is_empty() && !self.exists(&at)? {
            missing.push(at.clone());
            at = at.parent();
        }
        // Name by name from the top: so at most the lowest that is there can be one that was never synced.
        if !at.as_str().is_empty() {
            self.sync_dir(&at.parent())?;
        }
        missing.iter().rev().try_for_each(|dir| {
            self.create_dir_all(dir)?;
            self.sync_dir(&dir.parent())
        })
    }

    /// Whether something is at `path`.
    fn exists(&self, path: &FilePath) -> Result<bool> {
        Ok(self.stat(path)?.is_some())
    }

    /// The whole file. For small files: descriptors, ids, manifests.
    fn read(&self, path: &FilePath) -> Result<Vec<u8>> {
        let file = self.open(path)?;
        let len = file.len()?;
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    /// Publishes a small file at once and durably: writes it beside its place as `.tmp-NAME`, syncs, renames, syncs
    /// the directory. Readers see the old file or the whole new one, after a crash too.
    fn publish(&self, path: &FilePath, bytes: &[u8]) -> Result<()> {
        let temporary = path.parent().join(format!(".tmp-{}", path.name()));
        if self.exists(&temporary)? {
            self.remove_file(&temporary)?;
        }
        let mut file = self.create(&temporary)?;
        file.append(bytes)?;
        file.sync()?;
        drop(file);
        self.rename(&temporary, path)?;
        self.sync_dir(&path.parent())
    }
}

/// A file open for reading. Shared between threads.
pub trait ReadAt: Send + Sync {
    /// Fills `buf` from `offset` on, or fails (a file that ends before is an `UnexpectedEof`).
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()>;
    /// Bytes in the file now.
    fn len(&self) -> Result<u64>;
    /// Whether the file has no bytes now.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }
    /// A hint that `len` bytes from `offset` on will be read soon.
    fn will_need(&self, _offset: u64, _len: u64) {}
    /// A hint that the file will hardly be read again: its place in the operating system's memory may go to others.
    fn forget(&self) {}
    /// As [`ReadAt::forget`] for `len` bytes from `offset` on.
    fn forget_range(&self, _offset: u64, _len: u64) {}
}

/// A file being written from its start to its end by one writer.
pub trait Appender: Send {
    /// Writes all of `bytes` at the end, through a buffer of the appender's own: readers and the operating system see
    /// them after [`Appender::flush`] or when the buffer is full. Dropping an appender forgets what it still holds.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;
    /// For who gathers bytes in memory of their own: so many at a time are best handed to [`Appender::append_straight`]. 0: none, [`Appender::append`] is as good.
    fn straight_bytes(&self) -> usize {
        0
    }
    /// Appends the first of `bytes`, as many as go out whole, without a copy if they lie at a multiple of 4096 in memory and nothing waits in the appender's buffer;
    /// says how many they were. The rest is still to be appended. After a failure the file is to be given up.
    fn append_straight(&mut self, bytes: &[u8]) -> Result<usize> {
        self.append(bytes).map(|()| bytes.len())
    }
    /// Hands what was appended to the operating system (`write`): it survives the process, not the machine.
    /// After a failure (a full disk) the rest is kept and the call may be repeated.
    fn flush(&mut self) -> Result<()>;
    /// Makes what was appended durable (`fdatasync`). After a failure every further call fails.
    fn sync(&mut self) -> Result<()>;
    /// Bytes appended so far.
    fn position(&self) -> u64;
    /// A hint that the file will grow to about `len` bytes. What is not used is given back when the appender goes.
    fn preallocate(&mut self, _len: u64) {}
    /// A hint that what was flushed since the last such call may go to the disk now, so that a later sync finds little to do, and
    /// that nobody is going to read the file soon: what was written long ago need not stay in memory. Does not wait.
    fn write_behind(&mut self) {
        if let Some(work) = self.behind() {
            work();
        }
    }
    /// What [`Appender::write_behind`] would do, to be done by another thread and without the appender: on a busy disk even asking takes
    /// milliseconds. `None`: there is nothing to do.
    fn behind(&mut self) -> Option<Behind> {
        None
    }
}

/// See [`Appender::behind`].
pub type Behind = Box<dyn FnOnce() + Send>;
