//! All that the connections share: the tree, the sessions, the watches, the transaction id. One mutex; nothing
//! under it waits.

use crate::session::Sessions;
use crate::tree::{Change, CreateMode, Stat, Tree, TreeError, parent_of};
use base::{Clock, Rng};
use bytes::{BufMut, Bytes, BytesMut};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::sync::{mpsc, watch};

/// Watch events that may wait for a slow connection; one more and it is cut off.
pub(crate) const MAX_WAITING_EVENTS: usize = 4096;
/// Memory that the watches of one connection may hold: some ten thousand on paths as HBase has them.
const MAX_WATCH_BYTES_PER_CONNECTION: usize = 4 << 20;
/// Memory that all watches together may hold.
const MAX_WATCH_BYTES: usize = 64 << 20;
/// What a watch costs besides its path, which is held twice: two table entries, and a set.
const WATCH_OVERHEAD_BYTES: usize = 256;

/// ZooKeeper's event types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EventType {
    Created = 1,
    Deleted = 2,
    DataChanged = 3,
    ChildrenChanged = 4,
}

/// Which of a node's two lists a watch stands in (an exists watch is a data watch).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum WatchKind {
    Data,
    Children,
}

type WatchKey = (WatchKind, Box<str>);

#[derive(Debug)]
struct Connection {
    peer: SocketAddr,
    events: mpsc::Sender<Event>,
    watches: HashSet<WatchKey>,
    watch_bytes: usize,
}

/// A watch event's frame, and up to which transaction what is kept must be durable before it leaves.
pub(crate) type Event = (Bytes, i64);

fn watch_cost(path: &str) -> usize {
    WATCH_OVERHEAD_BYTES + 2 * path.len()
}

pub(crate) struct State {
    pub tree: Tree,
    pub sessions: Sessions,
    zxid: i64,
    connections: HashMap<u64, Connection>,
    next_connection: u64,
    watchers: HashMap<WatchKey, BTreeSet<u64>>,
    /// Of all connections together.
    watch_bytes: usize,
    pub received: u64,
    pub sent: u64,
    /// The last transaction, for who waits for the next in this process.
    changes: watch::Sender<i64>,
    /// Up to which transaction what is kept must be durable before the answer that is being made leaves.
    pub depends_on: i64,
    /// What is kept over restarts; `None`: nothing is.
    pub keeping: Option<Keeping>,
}

/// How users' nodes are kept.
pub(crate) struct Keeping {
    /// Transactions up to this one are below what the next life begins with.
    pub zxid_limit: i64,
    /// The last attempt failed.
    pub is_failing: bool,
}

/// The state behind its mutex, with the clock and the random numbers that it takes.
pub(crate) struct Shared {
    state: Mutex<State>,
    pub clock: Arc<dyn Clock>,
    pub rng: Arc<Rng>,
    /// The last of the sessions that this process itself has: below those of clients, which begin with the time.
    last_own_session: AtomicI64,
    /// Up to this transaction what is kept is durable.
    pub durable: watch::Sender<i64>,
}

/// The session that a process's own ephemeral nodes belong to.
const OWN_SESSION: i64 = 1;

impl Shared {
    pub fn new(clock: Arc<dyn Clock>, rng: Arc<Rng>) -> Shared {
        let now_ms = clock.now_ms().0.max(1);
        let state = State {
            tree: Tree::new(),
            sessions: Sessions::new(now_ms),
            // Above that of any earlier life, unless it made a thousand changes in each millisecond.
            zxid: (now_ms << 10) & i64::MAX,
            connections: HashMap::new(),
            next_connection: 0,
            watchers: HashMap::new(),
            watch_bytes: 0,
            received: 0,
            sent: 0,
            changes: watch::Sender::new(0),
            depends_on: 0,
            keeping: None,
        };
        let last_own_session = AtomicI64::new(OWN_SESSION);
        Shared { state: Mutex::new(state), clock, rng, last_own_session, durable: watch::Sender::new(i64::MAX) }
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Ends sessions that were silent for too long.
    pub fn expire_sessions(&self) {
        let now_us = self.clock.monotonic_us();
        let mut state = self.lock();
        for id in state.sessions.silent(now_us) {
            tracing::info!(session = format!("{id:#x}"), "coordination session expired");
            state.end_session(id);
        }
    }
}

impl State {
    /// Tells of each change of a node.
    pub fn changes(&self) -> watch::Receiver<i64> {
        self.changes.subscribe()
    }

    /// The last transaction.
    pub fn zxid(&self) -> i64 {
        self.zxid
    }

    fn next_zxid(&mut self) -> i64 {
        self.zxid += 1;
        self.zxid
    }

    /// Ids go on above this one.
    pub fn begin_above(&mut self, zxid: i64) {
        self.zxid = self.zxid.max(zxid);
    }

    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    pub fn watch_count(&self) -> usize {
        self.watchers.values().map(BTreeSet::len).sum()
    }

    pub fn peers(&self) -> impl Iterator<Item = SocketAddr> {
        self.connections.values().map(|connection| connection.peer)
    }

    pub fn connections_from(&self, peer: SocketAddr) -> usize {
        self.peers().filter(|other| other.ip() == peer.ip()).count()
    }

    /// A connection begins; its events come out of the receiver, which ends when the connection is cut off.
    pub fn connect(&mut self, peer: SocketAddr) -> (u64, mpsc::Receiver<Event>) {
        let (events, receiver) = mpsc::channel(MAX_WAITING_EVENTS);
        self.next_connection += 1;
        self.connections
            .insert(self.next_connection, Connection { peer, events, watches: HashSet::new(), watch_bytes: 0 });
        (self.next_connection, receiver)
    }

    /// A connection is over, or is to be.
    pub fn disconnect(&mut self, connection: u64) {
        let Some(gone) = self.connections.remove(&connection) else { return };
        self.watch_bytes -= gone.watch_bytes;
        for key in gone.watches {
            if let Some(watchers) = self.watchers.get_mut(&key) {
                watchers.remove(&connection);
                if watchers.is_empty() {
                    self.watchers.remove(&key);
                }
            }
        }
    }

    /// A session is over: its ephemeral nodes go, its connection is cut off.
    pub fn end_session(&mut self, id: i64) {
        let Some(session) = self.sessions.remove(id) else { return };
        self.next_zxid();
        for path in self.tree.ephemerals_of(id) {
            // An ephemeral node has no children and any version will do, so this does not fail.
            let _gone = self.delete(&path, -1);
        }
        if let Some(connection) = session.connection {
            self.disconnect(connection);
        }
    }

    /// A transaction that only moves the id on, as opening a session does.
    pub fn note_transaction(&mut self) {
        self.next_zxid();
        self.changes.send_replace(self.zxid);
    }

    pub fn create(
        &mut self,
        path: &str,
        data: Bytes,
        mode: CreateMode,
        now_ms: i64,
    ) -> Result<(String, Stat), TreeError> {
        let made = self.tree.create(path, data, mode, self.zxid + 1, now_ms)?;
        self.next_zxid();
        self.fire(&Change::Created(made.0.clone()));
        Ok(made)
    }

    pub fn delete(&mut self, path: &str, version: i32) -> Result<(), TreeError> {
        self.tree.delete(path, version, self.zxid + 1)?;
        self.next_zxid();
        self.fire(&Change::Deleted(path.to_owned()));
        Ok(())
    }

    pub fn set_data(&mut self, path: &str, data: Bytes, version: i32, now_ms: i64) -> Result<Stat, TreeError> {
        let stat = self.tree.set_data(path, data, version, self.zxid + 1, now_ms)?;
        self.next_zxid();
        self.fire(&Change::Data(path.to_owned()));
        Ok(stat)
    }

    /// Whether a user's change that is kept can be taken now.
    fn may_keep(&self, path: &str, data_bytes: usize) -> Result<(), TreeError> {
        let Some(keeping) = &self.keeping else { return Ok(()) };
        if keeping.is_failing {
            return Err(TreeError::SystemError);
        }
        if !self.tree.keeps_room_for(path, data_bytes) {
            tracing::warn!(path, "users' znodes are over {} MiB: refused", crate::tree::MAX_KEPT_BYTES >> 20);
            return Err(TreeError::SystemError);
        }
        Ok(())
    }

    /// As [`State::create`], for a user: what is persistent is kept over restarts.
    pub fn create_for_user(
        &mut self,
        path: &str,
        data: Bytes,
        mode: CreateMode,
        now_ms: i64,
    ) -> Result<(String, Stat), TreeError> {
        if mode.ephemeral_owner == 0 || mode.sequential || self.tree.is_kept(parent_of(path)) {
            let kept_bytes = if mode.ephemeral_owner == 0 { data.len() } else { 0 };
            self.may_keep(path, kept_bytes)?;
        }
        let made = self.tree.create(path, data, mode, self.zxid + 1, now_ms)?;
        self.next_zxid();
        if self.keeping.is_some() {
            self.tree.keep_created(&made.0, mode, self.zxid);
        }
        self.fire(&Change::Created(made.0.clone()));
        Ok(made)
    }

    /// As [`State::set_data`], for a user.
    pub fn set_data_for_user(&mut self, path: &str, data: Bytes, version: i32, now_ms: i64) -> Result<Stat, TreeError> {
        if self.tree.is_kept(path) {
            self.may_keep(path, data.len())?;
        }
        self.set_data(path, data, version, now_ms)
    }

    /// As [`State::delete`], for a user.
    pub fn delete_for_user(&mut self, path: &str, version: i32) -> Result<(), TreeError> {
        // What frees room needs none, but it must be kept, too.
        if self.tree.is_kept(path) && self.keeping.as_ref().is_some_and(|keeping| keeping.is_failing) {
            return Err(TreeError::SystemError);
        }
        self.delete(path, version)
    }

    /// The answer that is being made tells of this node.
    pub fn depend_on(&mut self, path: &str) {
        self.depends_on = self.depends_on.max(self.tree.depends_on(path));
    }

    /// It tells of a change of this node, or why there was none.
    pub fn depend_on_change(&mut self, path: &str) {
        self.depend_on(path);
        self.depend_on(parent_of(path));
    }

    pub fn set_acl(&mut self, path: &str, version: i32) -> Result<Stat, TreeError> {
        let stat = self.tree.set_acl(path, version, self.zxid + 1)?;
        self.next_zxid();
        self.changes.send_replace(self.zxid);
        Ok(stat)
    }

    /// Sets a one-shot watch. A connection with too many is cut off.
    pub fn watch(&mut self, connection: u64, kind: WatchKind, path: &str) {
        let Some(own) = self.connections.get_mut(&connection) else { return };
        let key: WatchKey = (kind, Box::from(path));
        if own.watches.contains(&key) {
            return;
        }
        let cost = watch_cost(path);
        if own.watch_bytes + cost > MAX_WATCH_BYTES_PER_CONNECTION || self.watch_bytes + cost > MAX_WATCH_BYTES {
            tracing::warn!(peer = %own.peer, "too many watches on coordination connections: this one is closed");
            return self.disconnect(connection);
        }
        own.watch_bytes += cost;
        self.watch_bytes += cost;
        own.watches.insert(key.clone());
        self.watchers.entry(key).or_default().insert(connection);
    }

    fn fire(&mut self, change: &Change) {
        match change {
            Change::Created(path) => {
                self.notify(path, &[WatchKind::Data], EventType::Created);
                self.notify(parent_of(path), &[WatchKind::Children], EventType::ChildrenChanged);
            }
            Change::Deleted(path) => {
                self.notify(path, &[WatchKind::Data, WatchKind::Children], EventType::Deleted);
                self.notify(parent_of(path), &[WatchKind::Children], EventType::ChildrenChanged);
            }
            Change::Data(path) => self.notify(path, &[WatchKind::Data], EventType::DataChanged),
        }
        self.changes.send_replace(self.zxid);
    }

    /// Takes the watches of these kinds off the path and tells each of their connections once.
    fn notify(&mut self, path: &str, kinds: &[WatchKind], event: EventType) {
        let mut told = BTreeSet::new();
        for kind in kinds {
            let key: WatchKey = (*kind, Box::from(path));
            for connection in self.watchers.remove(&key).unwrap_or_default() {
                if let Some(own) = self.connections.get_mut(&connection)
                    && own.watches.remove(&key)
                {
                    own.watch_bytes -= watch_cost(path);
                    self.watch_bytes -= watch_cost(path);
                }
                told.insert(connection);
            }
        }
        for connection in told {
            self.send_event(connection, event, path);
        }
    }

    /// Puts an event into a connection's queue; one whose queue is full is cut off.
    pub fn send_event(&mut self, connection: u64, event: EventType, path: &str) {
        let Some(own) = self.connections.get(&connection) else { return };
        if own.events.try_send((event_frame(event, path), self.tree.depends_on(path))).is_err() {
            tracing::warn!(peer = %own.peer, "a coordination client does not read its watch events: closed");
            self.disconnect(connection);
        }
    }
}

const XID_EVENT: i32 = -1;
const STATE_SYNC_CONNECTED: i32 = 3;

fn event_frame(event: EventType, path: &str) -> Bytes {
    use crate::jute::JutePut;
    let mut out = BytesMut::with_capacity(4 + 16 + 12 + path.len());
    out.put_u32(16 + 12 + path.len() as u32);
    out.put_i32(XID_EVENT);
    out.put_i64(-1);
    out.put_i32(0);
    out.put_i32(event as i32);
    out.put_i32(STATE_SYNC_CONNECTED);
    out.put_string(path);
    out.freeze()
}

/// The tree as the server itself uses it. Cheap to clone; changes fire the clients' watches.
#[derive(Clone)]
pub struct TreeHandle {
    pub(crate) shared: Arc<Shared>,
    /// The session that its ephemeral nodes belong to.
    pub(crate) session: i64,
}

impl TreeHandle {
    pub(crate) fn new(shared: Arc<Shared>) -> TreeHandle {
        TreeHandle { shared, session: OWN_SESSION }
    }

    /// A tree that nobody connects to.
    pub fn unserved(clock: Arc<dyn Clock>, rng: Arc<Rng>) -> TreeHandle {
        TreeHandle::new(Arc::new(Shared::new(clock, rng)))
    }

    /// The tree as another process uses it: with a session of its own.
    pub fn another_session(&self) -> TreeHandle {
        let session = self.shared.last_own_session.fetch_add(1, Ordering::Relaxed) + 1;
        TreeHandle { shared: self.shared.clone(), session }
    }

    /// Ends the session: its ephemeral nodes go.
    pub fn end_session(&self) {
        let mut state = self.shared.lock();
        for path in state.tree.ephemerals_of(self.session) {
            // An ephemeral node has no children and any version will do, so this does not fail.
            let _gone = state.delete(&path, -1);
        }
    }

    /// Makes the node or replaces its data; missing parents are made (empty). An `ephemeral` one stays until the
    /// endpoint ends or [`TreeHandle::delete`].
    ///
    /// # Errors
    /// A path that is none, a full tree.
    pub fn publish(&self, path: &str, data: Bytes, ephemeral: bool) -> Result<(), TreeError> {
        crate::tree::check_path(path)?;
        let now_ms = self.shared.clock.now_ms().0;
        let mut state = self.shared.lock();
        for (at, _) in path.match_indices('/').skip(1) {
            match state.create(&path[..at], Bytes::new(), CreateMode::PERSISTENT, now_ms) {
                Ok(_) | Err(TreeError::NodeExists) => {}
                Err(error) => return Err(error),
            }
        }
        let ephemeral_owner = if ephemeral { self.session } else { 0 };
        let mode = CreateMode { ephemeral_owner, sequential: false };
        match state.create(path, data.clone(), mode, now_ms) {
            Ok(_) => Ok(()),
            Err(TreeError::NodeExists) => {
                state.set_data(path, data, -1, now_ms)?;
                let zxid = state.zxid();
                state.tree.derive(path, zxid);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Makes the node, empty, unless it is there; missing parents too.
    ///
    /// # Errors
    /// As [`TreeHandle::publish`].
    pub fn ensure(&self, path: &str) -> Result<(), TreeError> {
        if self.get(path).is_ok() { Ok(()) } else { self.publish(path, Bytes::new(), false) }
    }

    /// A node's data.
    ///
    /// # Errors
    /// [`TreeError::NoNode`].
    pub fn get(&self, path: &str) -> Result<Bytes, TreeError> {
        self.shared.lock().tree.data(path).map(|(data, _)| data)
    }

    /// What is known of a node.
    ///
    /// # Errors
    /// [`TreeError::NoNode`].
    pub fn stat(&self, path: &str) -> Result<Stat, TreeError> {
        self.shared.lock().tree.stat(path)
    }

    /// Names of a node's children.
    ///
    /// # Errors
    /// [`TreeError::NoNode`].
    pub fn children(&self, path: &str) -> Result<Vec<String>, TreeError> {
        self.shared.lock().tree.children(path).map(|(names, _)| names.map(str::to_owned).collect())
    }

    /// Deletes a node without children; one that is not there is no error.
    ///
    /// # Errors
    /// [`TreeError::NotEmpty`], [`TreeError::BadArguments`].
    pub fn delete(&self, path: &str) -> Result<(), TreeError> {
        match self.shared.lock().delete(path, -1) {
            Err(TreeError::NoNode) => Ok(()),
            result => result,
        }
    }
}
