//! A machine that can be switched off at any call, and its volume.

use fs::{Appender, DirEntry, FilePath, MemVolume, ReadAt, Volume};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::sync::watch;

/// Counts calls and switches the machine off after so many.
pub struct Machine {
    left: AtomicI64,
    off: watch::Sender<bool>,
}

impl Machine {
    pub fn new(calls: i64) -> Arc<Machine> {
        Arc::new(Machine { left: AtomicI64::new(calls), off: watch::Sender::new(false) })
    }

    pub fn runs(&self) -> bool {
        let runs = self.left.fetch_sub(1, Ordering::SeqCst) > 0;
        if !runs {
            self.off.send_replace(true);
        }
        runs
    }

    pub fn switch_off_after(&self, calls: i64) {
        self.left.store(calls, Ordering::SeqCst);
    }

    pub fn calls_left(&self) -> i64 {
        self.left.load(Ordering::SeqCst)
    }

    pub fn went_off(&self) -> bool {
        *self.off.borrow()
    }

    pub async fn is_off(&self) {
        let mut off = self.off.subscribe();
        off.wait_for(|off| *off).await.expect("the machine is here");
    }
}

/// A volume on the machine.
pub struct MachineVolume {
    pub memory: MemVolume,
    pub machine: Arc<Machine>,
}

struct MachineAppender {
    inner: Box<dyn Appender>,
    machine: Arc<Machine>,
    path: FilePath,
}

fn off(path: &FilePath) -> fs::Error {
    fs::Error::new("reach", path, std::io::Error::other("the machine is off"))
}

impl MachineVolume {
    fn call<T>(&self, path: &FilePath, call: impl FnOnce(&MemVolume) -> fs::Result<T>) -> fs::Result<T> {
        if self.machine.runs() { call(&self.memory) } else { Err(off(path)) }
    }
}

impl Volume for MachineVolume {
    fn open(&self, path: &FilePath) -> fs::Result<Arc<dyn ReadAt>> {
        self.memory.open(path)
    }
    fn create(&self, path: &FilePath) -> fs::Result<Box<dyn Appender>> {
        let inner = self.call(path, |memory| memory.create(path))?;
        Ok(Box::new(MachineAppender { inner, machine: Arc::clone(&self.machine), path: path.clone() }))
    }
    fn rename(&self, from: &FilePath, to: &FilePath) -> fs::Result<()> {
        self.call(from, |memory| memory.rename(from, to))
    }
    fn rename_new(&self, from: &FilePath, to: &FilePath) -> fs::Result<()> {
        self.call(from, |memory| memory.rename_new(from, to))
    }
    fn capabilities(&self) -> fs::Capabilities {
        self.memory.capabilities()
    }
    fn hints(&self) -> Option<&dyn fs::VolumeHints> {
        Some(self)
    }
    fn temporary_name(&self, name: &str) -> String {
        self.memory.temporary_name(name)
    }
    fn remove_file(&self, path: &FilePath) -> fs::Result<()> {
        self.call(path, |memory| memory.remove_file(path))
    }
    fn remove_dir_all(&self, path: &FilePath) -> fs::Result<()> {
        self.call(path, |memory| memory.remove_dir_all(path))
    }
    fn create_dir_all(&self, path: &FilePath) -> fs::Result<()> {
        self.call(path, |memory| memory.create_dir_all(path))
    }
    // Looking changes nothing: no need to stop before each look.
    fn list(&self, path: &FilePath) -> fs::Result<Vec<DirEntry>> {
        self.memory.list(path)
    }
    fn stat(&self, path: &FilePath) -> fs::Result<Option<DirEntry>> {
        self.memory.stat(path)
    }
    fn sync_dir(&self, path: &FilePath) -> fs::Result<()> {
        self.call(path, |memory| memory.sync_dir(path))
    }
}

impl fs::VolumeHints for MachineVolume {
    fn block_hosts(&self, path: &FilePath, part: fs::FilePart) -> fs::Result<Option<fs::BlockHosts>> {
        fs::VolumeHints::block_hosts(&self.memory, path, part)
    }
}

impl Appender for MachineAppender {
    fn append(&mut self, bytes: &[u8]) -> fs::Result<()> {
        if self.machine.runs() { self.inner.append(bytes) } else { Err(off(&self.path)) }
    }
    fn flush(&mut self) -> fs::Result<()> {
        self.inner.flush()
    }
    fn sync(&mut self) -> fs::Result<()> {
        if self.machine.runs() { self.inner.sync() } else { Err(off(&self.path)) }
    }
    fn position(&self) -> u64 {
        self.inner.position()
    }
}
