//! A volume in memory that forgets what was not synced, fails when told to, and counts every call.
//!
//! Always true: a file's bytes and a directory's names are durable separately; [`MemVolume::crash`] only gives states
//! that a disk could be in; the same calls, faults and seed give the same states.
//!
//! The model of names: every creation, rename and removal waits until its directory is synced. A crash keeps any of the
//! waiting ones and drops the others, in order, so a rename happens whole or not at all. When only the
//! target's directory of a rename was synced, the new name is durable and the old one may come back.

mod crash;
mod fault;
mod handle;
#[cfg(test)]
mod tests;
mod tree;

pub use crash::CrashPolicy;
pub use fault::{Fault, FaultKind, Op, OpRecord};

use crate::volume::TEMPORARY_PREFIX;
use crate::{
    Appender, BlockHosts, Capabilities, DirEntry, Error, FilePart, FilePath, ReadAt, Replica, Result, Volume,
    VolumeHints,
};
use fault::Faults;
use handle::{MemAppender, MemFile};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use tree::{FileNode, Node, Tree};

/// Files in memory. Clones are the same volume.
#[derive(Clone, Default)]
pub struct MemVolume {
    state: Arc<Mutex<State>>,
}

/// Told of each call before it is made.
pub type Watcher = Arc<dyn Fn(Op, &FilePath) + Send + Sync>;

#[derive(Default)]
struct State {
    tree: Tree,
    faults: Faults,
    capacity_bytes: Option<u64>,
    watcher: Option<Watcher>,
    /// Others may be writing to it, say.
    shared: bool,
    /// Where files with such a text in their path lie; the last that fits counts.
    hosts: Vec<(String, Vec<(String, bool)>)>,
    /// How often it was asked where a file lies.
    block_questions: u64,
    /// Temporary names given out so far.
    temporary_names: u64,
}

impl MemVolume {
    /// An empty volume without faults.
    pub fn new() -> MemVolume {
        MemVolume::default()
    }

    fn with_tree(tree: Tree, capacity_bytes: Option<u64>) -> MemVolume {
        MemVolume { state: Arc::new(Mutex::new(State { tree, capacity_bytes, ..State::default() })) }
    }

    /// An independent copy of this volume as it is now, what waits for a sync included; without the faults.
    pub fn snapshot(&self) -> MemVolume {
        let state = self.state.lock();
        MemVolume::with_tree(state.tree.deep_copy(), state.capacity_bytes)
    }

    /// The volume as one could find it after a power failure now: a state that `policy` and `rng` choose among those
    /// allowed. This volume stays as it is; the new one has no faults.
    pub fn crash(&self, rng: &base::Rng, policy: CrashPolicy) -> MemVolume {
        let state = self.state.lock();
        MemVolume::with_tree(crash::after(&state.tree, rng, policy), state.capacity_bytes)
    }

    /// Has `watcher` called before every call from now on, without a lock held: it may call the volume itself (its own calls are not
    /// told to it), move a clock as a slow disk would, or do what another thread might do just then.
    pub fn watch(&self, watcher: Option<Watcher>) {
        self.state.lock().watcher = watcher;
    }

    fn tell(&self, op: Op, path: &FilePath) {
        // Taken out meanwhile: what the watcher does is not told to it.
        let Some(watcher) = self.state.lock().watcher.take() else { return };
        watcher(op, path);
        self.state.lock().watcher.get_or_insert(watcher);
    }

    /// Calls so far, each trait call on the volume and on its files being one.
    pub fn op_count(&self) -> u64 {
        self.state.lock().faults.count()
    }

    /// Starts to keep the names of calls for [`MemVolume::op_log`].
    pub fn record_ops(&self) {
        self.state.lock().faults.record();
    }

    /// The calls since [`MemVolume::record_ops`], oldest first.
    pub fn op_log(&self) -> Vec<OpRecord> {
        self.state.lock().faults.log().to_vec()
    }

    /// Adds a fault.
    pub fn inject(&self, fault: Fault) {
        self.state.lock().faults.add(fault);
    }

    /// The `nth` call from now on (1 is the next) fails once with `kind`, whatever it is.
    pub fn fail_op(&self, nth: u64, kind: FaultKind) {
        self.inject(Fault { op: None, path_contains: None, nth, kind, forever: false });
    }

    /// The `nth` file sync from now on (1 is the next) fails once with `kind`.
    pub fn fail_sync(&self, nth: u64, kind: FaultKind) {
        self.inject(Fault { op: Some(Op::Sync), path_contains: None, nth, kind, forever: false });
    }

    /// After `calls` more calls the machine stops: every further one fails and changes nothing.
    pub fn stop_after(&self, calls: u64) {
        self.inject(Fault { op: None, path_contains: None, nth: calls + 1, kind: FaultKind::Stopped, forever: true });
    }

    /// Whether the machine is off: [`MemVolume::stop_after`] so many calls were made.
    pub fn is_stopped(&self) -> bool {
        self.state.lock().faults.is_stopped()
    }

    /// Bytes that all files have together.
    pub fn used_bytes(&self) -> u64 {
        self.state.lock().tree.used_bytes()
    }

    /// Takes all faults away.
    pub fn clear_faults(&self) {
        self.state.lock().faults.clear();
    }

    /// How many bytes the files may have together from now on; `None`: any number.
    pub fn set_capacity(&self, capacity_bytes: Option<u64>) {
        self.state.lock().capacity_bytes = capacity_bytes;
    }

    /// Whether the volume says of itself that other processes may be writing to it ([`Capabilities::shared`]).
    pub fn set_shared(&self, shared: bool) {
        self.state.lock().shared = shared;
    }

    /// Files with this text in their path lie on these machines from now on; whether on an SSD there. Where nothing was said there is no telling.
    pub fn place_blocks(&self, path_contains: &str, hosts: &[(&str, bool)]) {
        let hosts = hosts.iter().map(|(host, is_ssd)| ((*host).to_owned(), *is_ssd)).collect();
        self.state.lock().hosts.push((path_contains.to_owned(), hosts));
    }

    /// How often [`VolumeHints::block_hosts`] was asked.
    pub fn block_questions(&self) -> u64 {
        self.state.lock().block_questions
    }

    fn hosts_of(&self, path: &FilePath, part: FilePart, len_bytes: u64) -> Option<BlockHosts> {
        let state = self.state.lock();
        let (_, hosts) = state.hosts.iter().rev().find(|(text, _)| path.as_str().contains(text.as_str()))?;
        let (mut all, bytes) = (BlockHosts::default(), part.of(len_bytes));
        all.add_block(bytes.end - bytes.start, hosts.iter().map(|(host, is_ssd)| Replica { host, is_ssd: *is_ssd }));
        Some(all)
    }

    /// Inverts a bit of a file, as a bad disk does.
    ///
    /// # Panics
    /// When the file or the place does not exist.
    pub fn flip_bit(&self, path: &FilePath, offset: u64, bit: u8) {
        let node = self.file_node(path);
        node.body.lock().bytes[usize::try_from(offset).expect("an offset in memory")] ^= 1 << (bit & 7);
    }

    /// Cuts a file, as a disk that lost its end does.
    ///
    /// # Panics
    /// When the file does not exist.
    pub fn truncate(&self, path: &FilePath, len: u64) {
        let node = self.file_node(path);
        let mut body = node.body.lock();
        body.bytes.truncate(usize::try_from(len).unwrap_or(usize::MAX));
        body.synced_len = body.synced_len.min(body.bytes.len());
    }

    /// Puts a whole durable file there, with its directories; replaces one that exists. Not counted, not failed.
    ///
    /// # Panics
    /// When a directory of the path is a file.
    pub fn put_file(&self, path: &FilePath, bytes: &[u8]) {
        self.state.lock().tree.put_durable(path, bytes);
    }

    /// All files, sorted, as paths. Not counted, not failed.
    pub fn all_files(&self) -> Vec<FilePath> {
        self.state.lock().tree.all_files()
    }

    fn file_node(&self, path: &FilePath) -> Arc<FileNode> {
        match self.state.lock().tree.find(path) {
            Some(Node::File(node)) => node,
            _ => panic!("no file at {path:?}"),
        }
    }

    fn call<T>(&self, op: Op, path: &FilePath, act: impl FnOnce(&mut State) -> io::Result<T>) -> Result<T> {
        self.tell(op, path);
        let mut state = self.state.lock();
        state.faults.check(op, path)?;
        let done = act(&mut state).and_then(|done| match state.faults.loses_answer() {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(done),
        });
        done.map_err(|e| Error::new(op.verb(), path, e))
    }
}

impl Volume for MemVolume {
    fn open(&self, path: &FilePath) -> Result<Arc<dyn ReadAt>> {
        self.call(Op::Open, path, |state| match state.tree.find(path) {
            Some(Node::File(node)) => {
                Ok(Arc::new(MemFile { volume: self.clone(), node, path: path.clone() }) as Arc<dyn ReadAt>)
            }
            Some(Node::Dir(_)) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        })
    }

    fn create(&self, path: &FilePath) -> Result<Box<dyn Appender>> {
        self.call(Op::Create, path, |state| {
            let node = state.tree.create_file(path)?;
            Ok(Box::new(MemAppender::new(self.clone(), node, path.clone())) as Box<dyn Appender>)
        })
    }

    fn rename(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        self.call(Op::Rename, from, |state| state.tree.rename(from, to))
    }

    fn rename_new(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        self.call(Op::Rename, from, |state| match state.tree.find(to) {
            Some(_) => Err(io::ErrorKind::AlreadyExists.into()),
            None => state.tree.rename(from, to),
        })
    }

    fn remove_file(&self, path: &FilePath) -> Result<()> {
        self.call(Op::RemoveFile, path, |state| state.tree.remove_file(path))
    }

    fn remove_dir_all(&self, path: &FilePath) -> Result<()> {
        self.call(Op::RemoveDirAll, path, |state| {
            state.tree.remove_dir_all(path);
            Ok(())
        })
    }

    fn create_dir_all(&self, path: &FilePath) -> Result<()> {
        self.call(Op::CreateDirAll, path, |state| state.tree.create_dir_all(path).map(|_| ()))
    }

    fn list(&self, path: &FilePath) -> Result<Vec<DirEntry>> {
        self.call(Op::List, path, |state| state.tree.list(path))
    }

    fn stat(&self, path: &FilePath) -> Result<Option<DirEntry>> {
        self.call(Op::Stat, path, |state| {
            Ok(state.tree.find(path).map(|node| tree::dir_entry(path.name().to_owned(), &node)))
        })
    }

    fn sync_dir(&self, path: &FilePath) -> Result<()> {
        self.call(Op::SyncDir, path, |state| state.tree.sync_dir(path))
    }

    fn sync_file(&self, path: &FilePath) -> Result<()> {
        self.call(Op::Sync, path, |state| match state.tree.find(path) {
            Some(Node::File(node)) => {
                let mut body = node.body.lock();
                body.synced_len = body.bytes.len();
                Ok(())
            }
            Some(Node::Dir(_)) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        })
    }

    fn capabilities(&self) -> Capabilities {
        let state = self.state.lock();
        Capabilities { shared: state.shared, names_hosts: !state.hosts.is_empty(), ..Capabilities::LOCAL_DISK }
    }

    fn hints(&self) -> Option<&dyn VolumeHints> {
        Some(self)
    }

    fn temporary_name(&self, name: &str) -> String {
        let mut state = self.state.lock();
        state.temporary_names += 1;
        format!("{TEMPORARY_PREFIX}{name}-{}", state.temporary_names)
    }
}

impl VolumeHints for MemVolume {
    fn free_bytes(&self) -> Result<Option<u64>> {
        let state = self.state.lock();
        Ok(state.capacity_bytes.map(|capacity| capacity.saturating_sub(state.tree.used_bytes())))
    }

    fn block_hosts(&self, path: &FilePath, part: FilePart) -> Result<Option<BlockHosts>> {
        let len_bytes = {
            let mut state = self.state.lock();
            state.block_questions += 1;
            match state.tree.find(path) {
                Some(Node::File(node)) => node.body.lock().bytes.len() as u64,
                _ => return Err(Error::new("ask where the blocks are of", path, io::ErrorKind::NotFound.into())),
            }
        };
        Ok(self.hosts_of(path, part, len_bytes))
    }
}
