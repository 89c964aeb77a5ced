//! A model of HDFS: one namespace that all processes share, files that one lease holder writes, and what goes wrong there.
//!
//! Always true:
//!  1. A name is changed whole or not at all, and durable when the call returns; parents are never made by the way.
//!  2. What a flush acknowledged is in the file, whatever becomes of its writer. What was sent and not acknowledged is there up to some byte, or
//!     not: that is decided when the lease is recovered.
//!  3. From the end of a recovery on the old writer gets an error, and adds no byte. Until then (a heartbeat of the DataNodes, some seconds)
//!     it writes on.
//!  4. A call whose answer is lost may have been carried out.
//!
//! What is left out: blocks and their places, checksums, quotas. Held to the real thing by [`super::conformance`].

use super::gate::Gate;
use base::Rng;
use fs::{Appender, Capabilities, DirEntry, Error, FilePath, ReadAt, Result, Settled, TEMPORARY_PREFIX, Volume};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// So much is gathered before the DataNodes get it.
const BUFFER_BYTES: usize = 128 * 1024;
/// A lease's recovery takes as long as it takes the DataNodes to report: so many milliseconds at most.
const RECOVERY_MS: u64 = 3_500;

/// What the name node does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameNode {
    /// It answers.
    #[default]
    Up,
    /// It lets nobody change anything.
    SafeMode,
    /// Nobody reaches it.
    Down,
}

/// A bug that HDFS does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HdfsDefect {
    /// A file counts as settled while its writer goes on.
    SettlesNothing,
}

#[derive(Default)]
struct Body {
    /// What the DataNodes have.
    bytes: Vec<u8>,
    /// So many of them were acknowledged.
    acked: usize,
    /// Who writes.
    writer: Option<u64>,
    /// When its lease's recovery ends.
    recovered_at_ms: Option<u64>,
    removed: bool,
}

#[derive(Clone)]
enum Node {
    Dir,
    File(Arc<Mutex<Body>>),
}

struct State {
    names: BTreeMap<String, Node>,
    rng: Rng,
    now_ms: u64,
    name_node: NameNode,
    /// One call of so many to the name node is carried out and its answer lost.
    lost_answers: u64,
    /// One flush of so many breaks its pipeline.
    broken_pipelines: u64,
    next_writer: u64,
    defect: Option<HdfsDefect>,
}

/// The model. Clones are the same.
#[derive(Clone)]
pub struct Hdfs {
    state: Arc<Mutex<State>>,
}

impl Hdfs {
    /// An empty one.
    pub fn new(seed: u64) -> Hdfs {
        let names = BTreeMap::from([(String::new(), Node::Dir)]);
        let state = State {
            names,
            rng: Rng::seeded(seed ^ 0x4D46_5348),
            now_ms: 0,
            name_node: NameNode::Up,
            lost_answers: 0,
            broken_pipelines: 0,
            next_writer: 0,
            defect: None,
        };
        Hdfs { state: Arc::new(Mutex::new(state)) }
    }

    /// It as a process sees it.
    pub fn mount(&self, gate: Arc<Gate>, unique: u64) -> Mount {
        Mount { hdfs: self.clone(), gate: Some(gate), unique, temporary_names: Mutex::new(0) }
    }

    /// It as somebody sees it to whom nothing happens.
    pub fn view(&self) -> Mount {
        Mount { hdfs: self.clone(), gate: None, unique: 0, temporary_names: Mutex::new(0) }
    }

    /// Time passes.
    pub fn set_now_ms(&self, now_ms: u64) {
        self.state.lock().now_ms = now_ms;
    }

    /// What the name node does from now on.
    pub fn set_name_node(&self, name_node: NameNode) {
        self.state.lock().name_node = name_node;
    }

    /// One change of a name of `one_in` is carried out and its answer lost; 0: none.
    pub fn lose_answers(&self, one_in: u64) {
        self.state.lock().lost_answers = one_in;
    }

    /// One flush of `one_in` breaks its pipeline; 0: none.
    pub fn break_pipelines(&self, one_in: u64) {
        self.state.lock().broken_pipelines = one_in;
    }

    /// From now on it has this bug.
    pub fn plant(&self, defect: HdfsDefect) {
        self.state.lock().defect = Some(defect);
    }

    /// All files, sorted.
    pub fn all_files(&self) -> Vec<String> {
        let state = self.state.lock();
        state.names.iter().filter(|(_, node)| matches!(node, Node::File(_))).map(|(path, _)| path.clone()).collect()
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn below(dir: &str) -> String {
    if dir.is_empty() { String::new() } else { format!("{dir}/") }
}

impl Body {
    /// Ends a recovery whose time has come.
    fn recover(&mut self, now_ms: u64, rng: &Rng) {
        if self.recovered_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
            let doubtful = (self.bytes.len() - self.acked) as u64;
            let kept = self.acked + usize::try_from(rng.below(doubtful + 1)).unwrap_or(0);
            self.bytes.truncate(kept);
            self.acked = kept;
            (self.writer, self.recovered_at_ms) = (None, None);
        }
    }

    /// Somebody asks for the lease's recovery.
    fn begin_recovery(&mut self, now_ms: u64, rng: &Rng) {
        if self.writer.is_some() && self.recovered_at_ms.is_none() {
            self.recovered_at_ms = Some(now_ms + rng.below(RECOVERY_MS));
        }
        self.recover(now_ms, rng);
    }
}

impl State {
    fn file(&self, path: &str) -> io::Result<Arc<Mutex<Body>>> {
        match self.names.get(path) {
            Some(Node::File(body)) => Ok(body.clone()),
            Some(Node::Dir) => Err(ErrorKind::IsADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    fn check_parent(&self, path: &str) -> io::Result<()> {
        match self.names.get(parent(path)) {
            Some(Node::Dir) => Ok(()),
            Some(Node::File(_)) => Err(ErrorKind::NotADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    fn inside(&self, dir: &str) -> Vec<String> {
        let prefix = below(dir);
        let from = self.names.range(prefix.clone()..).map(|(path, _)| path);
        from.take_while(|path| path.starts_with(&prefix)).filter(|path| *path != dir).cloned().collect()
    }

    fn rename(&mut self, from: &str, to: &str, replace: bool) -> io::Result<()> {
        let moved = self.names.get(from).cloned().ok_or(ErrorKind::NotFound)?;
        if from == to {
            return if replace { Ok(()) } else { Err(ErrorKind::AlreadyExists.into()) };
        }
        if to.starts_with(&below(from)) {
            return Err(ErrorKind::InvalidInput.into());
        }
        match (self.names.get(to).cloned(), &moved) {
            (Some(_), _) if !replace => return Err(ErrorKind::AlreadyExists.into()),
            (Some(Node::File(replaced)), Node::File(_)) => replaced.lock().removed = true,
            // An empty directory is replaced by another.
            (Some(Node::Dir), Node::Dir) if self.inside(to).is_empty() => {}
            (Some(_), _) => return Err(ErrorKind::AlreadyExists.into()),
            (None, _) => self.check_parent(to)?,
        }
        for path in self.inside(from) {
            if let Some(node) = self.names.remove(&path) {
                self.names.insert(format!("{to}{}", &path[from.len()..]), node);
            }
        }
        self.names.remove(from);
        self.names.insert(to.to_owned(), moved);
        Ok(())
    }

    fn remove(&mut self, path: &str) {
        if let Some(Node::File(body)) = self.names.remove(path) {
            body.lock().removed = true;
        }
    }
}

/// The model as one process sees it.
pub struct Mount {
    hdfs: Hdfs,
    gate: Option<Arc<Gate>>,
    unique: u64,
    temporary_names: Mutex<u64>,
}

/// What a call to the name node does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Looks,
    Changes,
}

impl Mount {
    fn pass(&self, operation: &str, path: &FilePath) -> Result<()> {
        let Some(gate) = &self.gate else { return Ok(()) };
        gate.pass(&format!("{operation} {path}")).map_err(|dead| Error::new(operation, path, dead))
    }

    /// Asks the name node.
    fn ask<T>(
        &self,
        operation: &str,
        path: &FilePath,
        call: Call,
        act: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> Result<T> {
        self.pass(operation, path)?;
        let mut state = self.hdfs.state.lock();
        let fails = |kind: ErrorKind, what: &str| Err(Error::new(operation, path, io::Error::new(kind, what)));
        if self.gate.is_some() {
            match state.name_node {
                NameNode::Down => return fails(ErrorKind::ConnectionRefused, "the name node is down"),
                NameNode::SafeMode if call == Call::Changes => {
                    return fails(ErrorKind::ResourceBusy, "the name node is in safe mode");
                }
                NameNode::Up | NameNode::SafeMode => {}
            }
        }
        let answer = act(&mut state).map_err(|error| Error::new(operation, path, error))?;
        let one_in = state.lost_answers;
        if self.gate.is_some() && call == Call::Changes && one_in > 0 && state.rng.one_in(one_in) {
            // Others are served while it stands still.
            drop(state);
            if let Some(gate) = &self.gate {
                let _it_lives = gate.pass("its answer is lost");
            }
            return fails(ErrorKind::TimedOut, "no answer");
        }
        Ok(answer)
    }
}

fn entry(name: &str, node: &Node) -> DirEntry {
    let len = match node {
        Node::Dir => 0,
        Node::File(body) => {
            let body = body.lock();
            // Of a file that is being written the name node knows no length.
            if body.writer.is_some() { 0 } else { body.bytes.len() as u64 }
        }
    };
    DirEntry { name: name.to_owned(), is_dir: matches!(node, Node::Dir), len }
}

impl Volume for Mount {
    fn open(&self, path: &FilePath) -> Result<Arc<dyn ReadAt>> {
        let body = self.ask("open", path, Call::Looks, |state| {
            let body = state.file(path.as_str())?;
            body.lock().recover(state.now_ms, &state.rng);
            let is_open = body.lock().writer.is_some();
            if is_open { Err(io::Error::new(ErrorKind::WouldBlock, "it is still being written")) } else { Ok(body) }
        })?;
        let len_bytes = body.lock().bytes.len() as u64;
        Ok(Arc::new(Reader { gate: self.gate.clone(), body, path: path.clone(), len_bytes }))
    }

    fn create(&self, path: &FilePath) -> Result<Box<dyn Appender>> {
        let (body, writer) = self.ask("create", path, Call::Changes, |state| {
            state.check_parent(path.as_str())?;
            if state.names.contains_key(path.as_str()) {
                return Err(ErrorKind::AlreadyExists.into());
            }
            state.next_writer += 1;
            let body = Arc::new(Mutex::new(Body { writer: Some(state.next_writer), ..Body::default() }));
            state.names.insert(path.as_str().to_owned(), Node::File(body.clone()));
            Ok((body, state.next_writer))
        })?;
        Ok(Box::new(Writer {
            hdfs: self.hdfs.clone(),
            gate: self.gate.clone(),
            body,
            writer,
            path: path.clone(),
            buffer: Vec::new(),
            sent: 0,
            broken: false,
        }))
    }

    fn rename(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        self.ask(&format!("rename to {to} from"), from, Call::Changes, |state| {
            state.rename(from.as_str(), to.as_str(), true)
        })
    }

    fn rename_new(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        self.ask(&format!("rename to {to}, which must not exist, from"), from, Call::Changes, |state| {
            state.rename(from.as_str(), to.as_str(), false)
        })
    }

    fn remove_file(&self, path: &FilePath) -> Result<()> {
        self.ask("remove", path, Call::Changes, |state| {
            state.file(path.as_str())?;
            state.remove(path.as_str());
            Ok(())
        })
    }

    fn remove_dir_all(&self, path: &FilePath) -> Result<()> {
        self.ask("remove the directory", path, Call::Changes, |state| {
            state.inside(path.as_str()).iter().for_each(|path| state.remove(path));
            if !path.as_str().is_empty() {
                state.remove(path.as_str());
            }
            Ok(())
        })
    }

    fn create_dir_all(&self, path: &FilePath) -> Result<()> {
        self.ask("create the directory", path, Call::Changes, |state| {
            let (mut missing, mut at) = (Vec::new(), path.as_str());
            loop {
                match state.names.get(at) {
                    Some(Node::Dir) => break,
                    Some(Node::File(_)) if missing.is_empty() => return Err(ErrorKind::AlreadyExists.into()),
                    Some(Node::File(_)) => return Err(ErrorKind::NotADirectory.into()),
                    None => missing.push(at.to_owned()),
                }
                at = parent(at);
            }
            missing.into_iter().for_each(|dir| drop(state.names.insert(dir, Node::Dir)));
            Ok(())
        })
    }

    fn list(&self, path: &FilePath) -> Result<Vec<DirEntry>> {
        self.ask("list", path, Call::Looks, |state| {
            match state.names.get(path.as_str()) {
                Some(Node::Dir) => {}
                Some(Node::File(_)) => return Err(ErrorKind::NotADirectory.into()),
                None => return Err(ErrorKind::NotFound.into()),
            }
            let prefix = below(path.as_str());
            let mut entries: Vec<DirEntry> = state
                .inside(path.as_str())
                .iter()
                .filter(|inside| !inside[prefix.len()..].contains('/'))
                .filter_map(|inside| Some(entry(&inside[prefix.len()..], state.names.get(inside)?)))
                .collect();
            entries.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(entries)
        })
    }

    fn stat(&self, path: &FilePath) -> Result<Option<DirEntry>> {
        self.ask("stat", path, Call::Looks, |state| {
            Ok(state.names.get(path.as_str()).map(|node| entry(path.name(), node)))
        })
    }

    fn sync_dir(&self, _: &FilePath) -> Result<()> {
        Ok(())
    }

    fn create_dir_all_durable(&self, path: &FilePath) -> Result<()> {
        self.create_dir_all(path)
    }

    fn sync_file(&self, path: &FilePath) -> Result<()> {
        match self.settle(path)? {
            Settled::Final { .. } => Ok(()),
            Settled::Pending => {
                let what = "its lease is being recovered";
                Err(Error::new("sync", path, io::Error::new(ErrorKind::ResourceBusy, what)))
            }
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            names_durable_at_once: true,
            remote: true,
            shared: true,
            flushed_survives_appender: true,
            handle_outlives_removal: false,
            names_hosts: false,
        }
    }

    fn settle(&self, path: &FilePath) -> Result<Settled> {
        self.ask("settle", path, Call::Looks, |state| {
            let body = state.file(path.as_str())?;
            let mut body = body.lock();
            if state.defect == Some(HdfsDefect::SettlesNothing) && body.writer.is_some() {
                // The reader below gets what there is now.
                let (bytes, acked) = (body.bytes[..body.acked].to_vec(), body.acked);
                let copy = Body { bytes, acked, ..Body::default() };
                state.names.insert(path.as_str().to_owned(), Node::File(Arc::new(Mutex::new(copy))));
                return Ok(Settled::Final { len_bytes: acked as u64 });
            }
            if state.name_node == NameNode::SafeMode && body.writer.is_some() && self.gate.is_some() {
                return Err(io::Error::new(ErrorKind::ResourceBusy, "the name node is in safe mode"));
            }
            body.begin_recovery(state.now_ms, &state.rng);
            Ok(match body.writer {
                None => Settled::Final { len_bytes: body.bytes.len() as u64 },
                Some(_) => Settled::Pending,
            })
        })
    }

    fn temporary_name(&self, name: &str) -> String {
        let mut number = self.temporary_names.lock();
        *number += 1;
        format!("{TEMPORARY_PREFIX}{name}-{:016x}-{number}", self.unique)
    }
}

struct Reader {
    gate: Option<Arc<Gate>>,
    body: Arc<Mutex<Body>>,
    path: FilePath,
    len_bytes: u64,
}

impl ReadAt for Reader {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let error = |source: io::Error| Error::new("read", &self.path, source).at(offset);
        if let Some(gate) = &self.gate {
            gate.pass(&format!("read {}", self.path)).map_err(error)?;
        }
        let body = self.body.lock();
        if body.removed {
            return Err(error(io::Error::new(ErrorKind::NotFound, "its blocks were removed")));
        }
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let found = body.bytes.get(start..).and_then(|rest| rest.get(..buf.len()));
        buf.copy_from_slice(found.ok_or_else(|| error(ErrorKind::UnexpectedEof.into()))?);
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.len_bytes)
    }
}

struct Writer {
    hdfs: Hdfs,
    gate: Option<Arc<Gate>>,
    body: Arc<Mutex<Body>>,
    writer: u64,
    path: FilePath,
    buffer: Vec<u8>,
    sent: u64,
    broken: bool,
}

impl Writer {
    fn send(&mut self, operation: &str, acknowledged: bool) -> Result<()> {
        let error = |path: &FilePath, kind: ErrorKind, what: &str| {
            Err(Error::new(operation, path, io::Error::new(kind, what.to_owned())))
        };
        if self.broken {
            return error(&self.path, ErrorKind::Other, "an earlier write to this file failed");
        }
        if let Some(gate) = &self.gate
            && let Err(dead) = gate.pass(&format!("{operation} {}", self.path))
        {
            self.broken = true;
            // Some of it may have left.
            self.take(false);
            return Err(Error::new(operation, &self.path, dead));
        }
        let breaks = {
            let state = self.hdfs.state.lock();
            self.gate.is_some() && state.broken_pipelines > 0 && state.rng.one_in(state.broken_pipelines)
        };
        if !self.take(acknowledged && !breaks) {
            self.broken = true;
            return error(&self.path, ErrorKind::StaleNetworkFileHandle, "another process has taken the file over");
        }
        if breaks {
            self.broken = true;
            self.give_up();
            return error(&self.path, ErrorKind::BrokenPipe, "a DataNode is gone");
        }
        Ok(())
    }

    /// The DataNodes take what is in the buffer. False when the file is another's.
    fn take(&mut self, acknowledged: bool) -> bool {
        let state = self.hdfs.state.lock();
        let mut body = self.body.lock();
        body.recover(state.now_ms, &state.rng);
        if body.writer != Some(self.writer) {
            return false;
        }
        self.sent += self.buffer.len() as u64;
        body.bytes.append(&mut self.buffer);
        if acknowledged {
            body.acked = body.bytes.len();
        }
        true
    }

    /// The file is closed without its writer, some time.
    fn give_up(&self) {
        let state = self.hdfs.state.lock();
        let mut body = self.body.lock();
        if body.writer == Some(self.writer) {
            body.begin_recovery(state.now_ms, &state.rng);
        }
    }

    fn close(&mut self) -> Result<()> {
        self.broken = true;
        if let Some(gate) = &self.gate {
            gate.pass(&format!("close {}", self.path)).map_err(|dead| Error::new("close", &self.path, dead))?;
        }
        let error = |kind: ErrorKind, what: &str| Err(Error::new("close", &self.path, io::Error::new(kind, what)));
        let state = self.hdfs.state.lock();
        let mut body = self.body.lock();
        body.recover(state.now_ms, &state.rng);
        if body.writer != Some(self.writer) || body.removed {
            return error(ErrorKind::StaleNetworkFileHandle, "another process has taken the file over");
        }
        if self.gate.is_some() && state.name_node != NameNode::Up {
            body.begin_recovery(state.now_ms, &state.rng);
            return error(ErrorKind::TimedOut, "the name node does not answer");
        }
        let acked = body.acked;
        body.bytes.truncate(acked);
        (body.writer, body.recovered_at_ms) = (None, None);
        Ok(())
    }
}

impl Appender for Writer {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.broken || self.buffer.len() >= BUFFER_BYTES { self.send("append to", false) } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.send("flush", true)
    }

    fn sync(&mut self) -> Result<()> {
        self.send("sync", true)
    }

    fn position(&self) -> u64 {
        self.sent + self.buffer.len() as u64
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.sync()?;
        self.close()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let is_dead = self.gate.as_ref().is_some_and(|gate| gate.is_dead());
        if !self.broken && !is_dead {
            // What was flushed is in the file in any case.
            let _who_opens_it_next_recovers_the_lease = self.close();
        }
    }
}
