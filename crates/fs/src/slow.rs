//! A volume that is in trouble when it is told to be: slow, at a standstill, failing. For tests and for measurements of what a slow disk does
//! to the rest; around any other volume.

use crate::{
    AppendHints, Appender, BlockHosts, Capabilities, DirEntry, Error, FilePart, FilePath, Placement, ReadAt, ReadHints,
    Result, Settled, Volume, VolumeHints,
};
use parking_lot::{Condvar, Mutex};
use std::io;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Default)]
struct State {
    delay: Duration,
    stands_still: bool,
    fails: Option<io::ErrorKind>,
    refuses: Option<io::ErrorKind>,
}

/// What ails a [`SlowVolume`]: may be told while it is used.
#[derive(Clone, Debug, Default)]
pub struct Trouble(Arc<(Mutex<State>, Condvar)>);

impl Trouble {
    /// Each call takes so much longer.
    pub fn delay(&self, delay: Duration) {
        self.0.0.lock().delay = delay;
    }

    /// Calls do not return until this is told with `false`.
    pub fn stand_still(&self, stands_still: bool) {
        self.0.0.lock().stands_still = stands_still;
        self.0.1.notify_all();
    }

    /// Each call fails, with an error of input and output.
    pub fn fail(&self, fails: bool) {
        self.fail_as(fails.then_some(io::ErrorKind::Other));
    }

    /// Each call fails as this kind of error: `NotFound` of one that was unmounted. `None` ends it.
    pub fn fail_as(&self, kind: Option<io::ErrorKind>) {
        self.0.0.lock().fails = kind;
    }

    /// Each call that writes fails as this kind of error, and what is there can be read: `ReadOnlyFilesystem` of a disk that the system mounted anew
    /// after an error, `StorageFull` of a full one, from which files can be removed. `None` ends it.
    pub fn refuse_writes_as(&self, kind: Option<io::ErrorKind>) {
        self.0.0.lock().refuses = kind;
    }

    fn endure_writing(&self, operation: &str, path: &FilePath) -> Result<()> {
        self.endure(operation, path)?;
        match self.0.0.lock().refuses {
            Some(io::ErrorKind::StorageFull) if matches!(operation, "remove" | "sync the directory") => Ok(()),
            Some(kind) => Err(told(operation, path, kind)),
            None => Ok(()),
        }
    }

    #[allow(clippy::disallowed_methods, reason = "the delay is what it is for")]
    fn endure(&self, operation: &str, path: &FilePath) -> Result<()> {
        let delay = {
            let mut state = self.0.0.lock();
            while state.stands_still {
                self.0.1.wait(&mut state);
            }
            if let Some(kind) = state.fails {
                return Err(told(operation, path, kind));
            }
            state.delay
        };
        if !delay.is_zero() {
            std::thread::sleep(delay);
        }
        Ok(())
    }
}

fn told(operation: &str, path: &FilePath, kind: io::ErrorKind) -> Error {
    Error::new(operation, path, io::Error::new(kind, "the volume fails, as it was told"))
}

/// Another volume, in trouble.
pub struct SlowVolume {
    inner: Arc<dyn Volume>,
    trouble: Trouble,
}

impl SlowVolume {
    /// `inner`, as `trouble` says.
    pub fn new(inner: Arc<dyn Volume>, trouble: Trouble) -> SlowVolume {
        SlowVolume { inner, trouble }
    }

    fn appender(&self, inner: Box<dyn Appender>, path: &FilePath) -> Box<dyn Appender> {
        let mut inner = inner;
        let straight_bytes = inner.straight_bytes();
        Box::new(SlowAppender {
            inner,
            trouble: self.trouble.clone(),
            path: path.clone(),
            straight_bytes,
            held_bytes: 0,
        })
    }
}

impl Volume for SlowVolume {
    fn open(&self, path: &FilePath) -> Result<Arc<dyn ReadAt>> {
        self.trouble.endure("open", path)?;
        let inner = self.inner.open(path)?;
        Ok(Arc::new(SlowFile { inner, trouble: self.trouble.clone(), path: path.clone() }))
    }

    fn create(&self, path: &FilePath) -> Result<Box<dyn Appender>> {
        self.trouble.endure_writing("create", path)?;
        Ok(self.appender(self.inner.create(path)?, path))
    }

    fn rename(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        self.trouble.endure_writing("rename", from)?;
        self.inner.rename(from, to)
    }

    fn rename_new(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        self.trouble.endure_writing("rename", from)?;
        self.inner.rename_new(from, to)
    }

    fn remove_file(&self, path: &FilePath) -> Result<()> {
        self.trouble.endure_writing("remove", path)?;
        self.inner.remove_file(path)
    }

    fn remove_dir_all(&self, path: &FilePath) -> Result<()> {
        self.trouble.endure_writing("remove", path)?;
        self.inner.remove_dir_all(path)
    }

    fn create_dir_all(&self, path: &FilePath) -> Result<()> {
        self.trouble.endure_writing("create", path)?;
        self.inner.create_dir_all(path)
    }

    fn list(&self, path: &FilePath) -> Result<Vec<DirEntry>> {
        self.trouble.endure("list", path)?;
        self.inner.list(path)
    }

    fn stat(&self, path: &FilePath) -> Result<Option<DirEntry>> {
        self.trouble.endure("stat", path)?;
        self.inner.stat(path)
    }

    fn sync_dir(&self, path: &FilePath) -> Result<()> {
        self.trouble.endure_writing("sync the directory", path)?;
        self.inner.sync_dir(path)
    }

    fn sync_file(&self, path: &FilePath) -> Result<()> {
        self.trouble.endure_writing("sync", path)?;
        self.inner.sync_file(path)
    }

    fn settle(&self, path: &FilePath) -> Result<Settled> {
        self.trouble.endure("settle", path)?;
        self.inner.settle(path)
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn hints(&self) -> Option<&dyn VolumeHints> {
        Some(self)
    }

    fn temporary_name(&self, name: &str) -> String {
        self.inner.temporary_name(name)
    }
}

impl VolumeHints for SlowVolume {
    fn create_past_cache(&self, path: &FilePath) -> Result<Box<dyn Appender>> {
        self.trouble.endure_writing("create", path)?;
        Ok(self.appender(self.inner.create_past_cache(path)?, path))
    }

    fn create_placed(&self, path: &FilePath, placement: &Placement, past_cache: bool) -> Result<Box<dyn Appender>> {
        self.trouble.endure_writing("create", path)?;
        Ok(self.appender(self.inner.create_placed(path, placement, past_cache)?, path))
    }

    fn release_reserved(&self, path: &FilePath) -> Result<()> {
        self.inner.release_reserved(path)
    }

    // What a file system says of itself comes from memory.
    fn free_bytes(&self) -> Result<Option<u64>> {
        self.inner.free_bytes()
    }

    fn block_hosts(&self, path: &FilePath, part: FilePart) -> Result<Option<BlockHosts>> {
        self.inner.block_hosts(path, part)
    }
}

struct SlowFile {
    inner: Arc<dyn ReadAt>,
    trouble: Trouble,
    path: FilePath,
}

impl ReadAt for SlowFile {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.trouble.endure("read", &self.path)?;
        self.inner.read_exact_at(buf, offset)
    }

    fn read_sequential_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.trouble.endure("read", &self.path)?;
        self.inner.read_sequential_at(buf, offset)
    }

    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn hints(&self) -> Option<&dyn ReadHints> {
        self.inner.hints()
    }
}

struct SlowAppender {
    inner: Box<dyn Appender>,
    trouble: Trouble,
    path: FilePath,
    straight_bytes: usize,
    /// Since the last write.
    held_bytes: usize,
}

impl Appender for SlowAppender {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.held_bytes += bytes.len();
        if self.held_bytes >= WRITTEN_BYTES {
            self.held_bytes = 0;
            self.trouble.endure_writing("write", &self.path)?;
        }
        self.inner.append(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.trouble.endure_writing("write", &self.path)?;
        self.inner.flush()
    }

    fn sync(&mut self) -> Result<()> {
        self.trouble.endure_writing("sync", &self.path)?;
        self.inner.sync()
    }

    fn position(&self) -> u64 {
        self.inner.position()
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.trouble.endure_writing("sync", &self.path)?;
        self.inner.finish()
    }

    fn hints(&mut self) -> Option<&mut dyn AppendHints> {
        Some(self)
    }
}

impl AppendHints for SlowAppender {
    fn straight_bytes(&self) -> usize {
        self.straight_bytes
    }

    fn append_straight(&mut self, bytes: &[u8]) -> Result<usize> {
        self.trouble.endure_writing("write", &self.path)?;
        match self.inner.hints() {
            Some(hints) => hints.append_straight(bytes),
            None => self.inner.append(bytes).map(|()| bytes.len()),
        }
    }

    fn preallocate(&mut self, len: u64) {
        self.inner.preallocate(len);
    }
}

/// What an appender holds before it writes.
const WRITTEN_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemVolume;

    #[test]
    fn a_volume_in_trouble_fails_and_comes_back_with_what_it_had() {
        let trouble = Trouble::default();
        let volume = SlowVolume::new(Arc::new(MemVolume::new()), trouble.clone());
        let path = FilePath::new("a");
        volume.publish(&path, b"bytes").expect("well");
        let open = volume.open(&path).expect("well");
        trouble.fail(true);
        let error = volume.read(&path).expect_err("it fails");
        assert!(error.to_string().contains("fails, as it was told"), "{error}");
        open.read_exact_at(&mut [0; 5], 0).expect_err("what was open fails, too");
        trouble.fail(false);
        assert_eq!(volume.read(&path).expect("back"), b"bytes");
    }

    #[test]
    fn a_volume_fails_as_the_kind_that_it_was_told_until_it_is_told_otherwise() {
        let trouble = Trouble::default();
        let volume = SlowVolume::new(Arc::new(MemVolume::new()), trouble.clone());
        let path = FilePath::new("a");
        let mut open = volume.create(&path).expect("well");
        for kind in [io::ErrorKind::ReadOnlyFilesystem, io::ErrorKind::StorageFull, io::ErrorKind::NotFound] {
            trouble.fail_as(Some(kind));
            assert_eq!(volume.list(&FilePath::new("")).expect_err("it fails").kind(), kind);
            assert_eq!(open.sync().expect_err("what is being written fails, too").kind(), kind);
        }
        trouble.fail_as(None);
        open.append(b"x").and_then(|()| open.finish()).expect("well again");
        assert_eq!(volume.read(&path).expect("well"), b"x");
    }

    #[test]
    fn a_volume_that_refuses_writes_is_read_and_a_full_one_is_made_room_on() {
        let trouble = Trouble::default();
        let volume = SlowVolume::new(Arc::new(MemVolume::new()), trouble.clone());
        let [a, b] = ["a", "b"].map(FilePath::new);
        volume.publish(&a, b"bytes").expect("well");
        let mut open = volume.create(&b).expect("well");
        for kind in [io::ErrorKind::ReadOnlyFilesystem, io::ErrorKind::StorageFull] {
            trouble.refuse_writes_as(Some(kind));
            assert_eq!(volume.read(&a).expect("it is read"), b"bytes");
            assert_eq!(volume.create(&FilePath::new("c")).err().map(|error| error.kind()), Some(kind));
            assert_eq!(open.sync().expect_err("what is being written fails, too").kind(), kind);
            assert_eq!(volume.remove_file(&a).is_ok(), kind == io::ErrorKind::StorageFull);
        }
        trouble.refuse_writes_as(None);
        open.append(b"x").and_then(|()| open.finish()).expect("well again");
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a thread of a test")]
    fn a_volume_at_a_standstill_goes_on_where_it_was() {
        let trouble = Trouble::default();
        let volume = Arc::new(SlowVolume::new(Arc::new(MemVolume::new()), trouble.clone()));
        trouble.stand_still(true);
        let (at, (sender, receiver)) = (volume.clone(), std::sync::mpsc::channel());
        let thread = std::thread::spawn(move || {
            let _told = sender.send(at.publish(&FilePath::new("a"), b"x").is_ok());
        });
        assert!(receiver.recv_timeout(Duration::from_millis(50)).is_err(), "nothing moves");
        trouble.stand_still(false);
        assert_eq!(receiver.recv_timeout(Duration::from_secs(20)), Ok(true));
        thread.join().expect("it ends");
    }
}
