//! A model of a ZooKeeper ensemble: one tree, sessions that end when the ensemble has not heard of them for as long as their timeout, members
//! that are cut off from their leader and answer reads with what they last knew, and a quorum that can be lost.
//!
//! Always true:
//!  1. A session ends no sooner than its timeout after its process was last heard, and never while there is no quorum; after a loss every
//!     session has its whole timeout again. When it ends its ephemeral nodes go.
//!  2. Writes and `latest_value` are of the leader's state. A plain read may be older, never younger.
//!  3. A process that is not connected waits; the end of its session it learns only when it is connected again.

use super::gate::Gate;
use base::{Clock, Rng};
use bytes::Bytes;
use coordination::{Answer, Awaited, Claim, Coordinator, SessionOver, TreeError, TreeHandle, ZnodeStore};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Between two looks of a watch, and of a process that is not connected.
const LOOK_MS: u64 = 25;
/// A call takes as long as this at most, one way.
const MOST_LATENCY_MS: u64 = 4;

/// A bug that ZooKeeper does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnsembleDefect {
    /// A session ends after half its timeout.
    EndsSessionsEarly,
}

struct SessionState {
    tree: TreeHandle,
    heard_ms: u64,
    is_over: bool,
}

/// What a member of the ensemble knew when it lost its leader: values and children by path.
type Old = BTreeMap<String, (Bytes, Vec<String>)>;

struct State {
    sessions: BTreeMap<u64, SessionState>,
    now_ms: u64,
    has_quorum: bool,
    /// Processes that reach no member.
    cut: BTreeSet<Arc<str>>,
    /// Processes whose member has lost its leader, with what it knows.
    behind: BTreeMap<Arc<str>, Arc<Old>>,
    rng: Rng,
    defect: Option<EnsembleDefect>,
    ended: u64,
}

/// The model. Clones are the same.
#[derive(Clone)]
pub struct Ensemble {
    tree: TreeHandle,
    timeout: Duration,
    state: Arc<Mutex<State>>,
}

impl Ensemble {
    /// An empty one, whose sessions end after `timeout`.
    pub fn new(seed: u64, clock: Arc<dyn Clock>, timeout: Duration) -> Ensemble {
        let state = State {
            sessions: BTreeMap::new(),
            now_ms: 0,
            has_quorum: true,
            cut: BTreeSet::new(),
            behind: BTreeMap::new(),
            rng: Rng::seeded(seed ^ 0x5A4B),
            defect: None,
            ended: 0,
        };
        let tree = TreeHandle::unserved(clock, Arc::new(Rng::seeded(seed ^ 0x5A4C)));
        Ensemble { tree, timeout, state: Arc::new(Mutex::new(state)) }
    }

    /// Sessions end after so long a silence.
    pub fn session_timeout(&self) -> Duration {
        self.timeout
    }

    /// The leader's tree, for who looks at it from outside.
    pub fn tree(&self) -> &TreeHandle {
        &self.tree
    }

    /// A session of a process. [`Session::keep`] is to be run.
    pub fn session(&self, gate: Arc<Gate>) -> Arc<Session> {
        let mut state = self.state.lock();
        let id = state.sessions.keys().next_back().map_or(1, |last| last + 1);
        let tree = self.tree.another_session();
        let heard_ms = state.now_ms;
        state.sessions.insert(id, SessionState { tree: tree.clone(), heard_ms, is_over: false });
        Arc::new(Session { id, tree, gate, ensemble: self.clone(), written: Mutex::default() })
    }

    /// Time passes; sessions end.
    pub fn set_now_ms(&self, now_ms: u64) {
        let mut state = self.state.lock();
        state.now_ms = now_ms;
        if !state.has_quorum {
            return;
        }
        let mut timeout_ms = u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX);
        if state.defect == Some(EnsembleDefect::EndsSessionsEarly) {
            timeout_ms /= 2;
        }
        let mut ended = 0;
        for session in state.sessions.values_mut().filter(|session| !session.is_over) {
            if now_ms.saturating_sub(session.heard_ms) > timeout_ms {
                session.is_over = true;
                session.tree.end_session();
                ended += 1;
            }
        }
        state.ended += ended;
    }

    /// Sessions that have ended by silence.
    pub fn ended_sessions(&self) -> u64 {
        self.state.lock().ended
    }

    /// Whether most of its members reach each other.
    pub fn set_quorum(&self, has_quorum: bool) {
        let mut state = self.state.lock();
        let now_ms = state.now_ms;
        if has_quorum && !state.has_quorum {
            state.sessions.values_mut().for_each(|session| session.heard_ms = now_ms);
        }
        state.has_quorum = has_quorum;
    }

    /// Whether a process reaches it.
    pub fn set_cut(&self, process: &str, cut: bool) {
        let mut state = self.state.lock();
        if cut {
            state.cut.insert(Arc::from(process))
        } else {
            state.cut.remove(process)
        };
    }

    /// Whether the member that a process is connected to has lost its leader, and does not know it yet: it answers reads as things are now.
    pub fn set_behind(&self, process: &str, behind: bool) {
        let old = behind.then(|| {
            let mut old = Old::new();
            self.copy("/", &mut old);
            Arc::new(old)
        });
        let mut state = self.state.lock();
        match old {
            Some(old) => drop(state.behind.insert(Arc::from(process), old)),
            None => drop(state.behind.remove(process)),
        }
    }

    fn copy(&self, path: &str, into: &mut Old) {
        let children = self.tree.children(path).unwrap_or_default();
        for child in &children {
            let at = if path == "/" { format!("/{child}") } else { format!("{path}/{child}") };
            self.copy(&at, into);
        }
        into.insert(path.to_owned(), (self.tree.get(path).unwrap_or_default(), children));
    }

    /// All is well again.
    pub fn heal(&self) {
        self.set_quorum(true);
        let mut state = self.state.lock();
        state.cut.clear();
        state.behind.clear();
    }

    /// From now on it has this bug.
    pub fn plant(&self, defect: EnsembleDefect) {
        self.state.lock().defect = Some(defect);
    }
}

/// What a process that asks finds.
enum Found {
    /// Nobody to ask.
    Nobody,
    /// A member with its leader.
    Leader,
    /// A member without.
    Behind(Arc<Old>),
    Over,
}

enum Write {
    Publish(String, Bytes, bool),
    Ensure(String),
    Delete(String),
}

/// A process's session.
pub struct Session {
    id: u64,
    tree: TreeHandle,
    gate: Arc<Gate>,
    ensemble: Ensemble,
    /// What is still to be written.
    written: Mutex<VecDeque<Write>>,
}

fn over() -> SessionOver {
    SessionOver("the ensemble has ended it".to_owned())
}

fn refused(error: &TreeError) -> SessionOver {
    SessionOver(format!("a request was refused: {error}"))
}

impl Session {
    fn find(&self) -> Found {
        let mut state = self.ensemble.state.lock();
        let now_ms = state.now_ms;
        if self.gate.is_dead() || state.cut.contains(self.gate.name()) {
            return Found::Nobody;
        }
        if let Some(old) = state.behind.get(self.gate.name()) {
            return Found::Behind(old.clone());
        }
        if !state.has_quorum {
            return Found::Nobody;
        }
        match state.sessions.get_mut(&self.id) {
            Some(session) if !session.is_over => {
                session.heard_ms = now_ms;
                Found::Leader
            }
            _ => Found::Over,
        }
    }

    async fn travel(&self) {
        let ms = self.ensemble.state.lock().rng.below(MOST_LATENCY_MS);
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    /// Waits until a member with its leader answers.
    async fn leader(&self, what: &str) -> Result<(), SessionOver> {
        if self.gate.pass(what).is_err() {
            return std::future::pending().await;
        }
        self.travel().await;
        loop {
            match self.find() {
                Found::Leader => return Ok(()),
                Found::Over => return Err(over()),
                Found::Nobody | Found::Behind(_) => tokio::time::sleep(Duration::from_millis(LOOK_MS)).await,
            }
        }
    }

    /// Reads where some member answers, at any age.
    async fn read<T>(
        &self,
        what: &str,
        now: impl Fn(&TreeHandle) -> Result<T, TreeError>,
        then: impl Fn(&Old) -> T,
    ) -> Result<T, SessionOver> {
        if self.gate.pass(what).is_err() {
            return std::future::pending().await;
        }
        self.travel().await;
        let found = loop {
            match self.find() {
                Found::Leader => break now(&self.tree).map_err(|error| refused(&error))?,
                Found::Behind(old) => break then(&old),
                Found::Over => return Err(over()),
                Found::Nobody => tokio::time::sleep(Duration::from_millis(LOOK_MS)).await,
            }
        };
        self.travel().await;
        Ok(found)
    }

    /// Keeps the session, and writes what is to be written, for as long as it is polled.
    pub async fn keep(&self) {
        loop {
            let _heard = self.find();
            while !self.written.lock().is_empty() {
                if self.leader("write nodes").await.is_err() {
                    return;
                }
                let all = std::mem::take(&mut *self.written.lock());
                for write in all {
                    let done = match write {
                        Write::Publish(path, value, ephemeral) => self.tree.publish(&path, value, ephemeral),
                        Write::Ensure(path) => self.tree.ensure(&path),
                        Write::Delete(path) => self.tree.delete(&path),
                    };
                    // As the real one: what cannot be written is told of, no more.
                    let _told = done;
                }
            }
            tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
        }
    }

    /// Waits until everything that was to be written is.
    pub async fn all_written(&self) {
        while !self.written.lock().is_empty() {
            tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
        }
    }
}

impl Coordinator for Session {
    fn value<'a>(&'a self, path: &'a str) -> Answer<'a, Option<Bytes>> {
        Box::pin(self.read(
            "read a node",
            move |tree| match tree.get(path) {
                Ok(value) => Ok(Some(value)),
                Err(TreeError::NoNode) => Ok(None),
                Err(error) => Err(error),
            },
            move |old| old.get(path).map(|(value, _)| value.clone()),
        ))
    }

    fn latest_value<'a>(&'a self, path: &'a str) -> Answer<'a, Option<Bytes>> {
        Box::pin(async move {
            self.leader("read a node's latest value").await?;
            let value = match self.tree.get(path) {
                Ok(value) => Some(value),
                Err(TreeError::NoNode) => None,
                Err(error) => return Err(refused(&error)),
            };
            self.travel().await;
            Ok(value)
        })
    }

    fn value_other_than<'a>(&'a self, path: &'a str, seen: Option<Bytes>) -> Answer<'a, Option<Bytes>> {
        Box::pin(async move {
            loop {
                let value = match self.find() {
                    Found::Leader => match self.tree.get(path) {
                        Ok(value) => Some(Some(value)),
                        Err(TreeError::NoNode) => Some(None),
                        Err(error) => return Err(refused(&error)),
                    },
                    Found::Behind(old) => Some(old.get(path).map(|(value, _)| value.clone())),
                    Found::Over => return Err(over()),
                    Found::Nobody => None,
                };
                if let Some(value) = value.filter(|value| *value != seen) {
                    self.travel().await;
                    return Ok(value);
                }
                tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
            }
        })
    }

    fn children<'a>(&'a self, path: &'a str) -> Answer<'a, Vec<String>> {
        Box::pin(self.read(
            "read children",
            move |tree| match TreeHandle::children(tree, path) {
                Ok(names) => Ok(names),
                Err(TreeError::NoNode) => Ok(Vec::new()),
                Err(error) => Err(error),
            },
            move |old| old.get(path).map(|(_, children)| children.clone()).unwrap_or_default(),
        ))
    }

    fn children_other_than<'a>(&'a self, path: &'a str, seen: Vec<String>) -> Answer<'a, Vec<String>> {
        Box::pin(async move {
            loop {
                let names = match self.find() {
                    Found::Leader => Some(TreeHandle::children(&self.tree, path).unwrap_or_default()),
                    Found::Behind(old) => Some(old.get(path).map(|(_, children)| children.clone()).unwrap_or_default()),
                    Found::Over => return Err(over()),
                    Found::Nobody => None,
                };
                if let Some(mut names) = names {
                    names.sort();
                    if names != seen {
                        self.travel().await;
                        return Ok(names);
                    }
                }
                tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
            }
        })
    }

    fn claim<'a>(&'a self, path: &'a str, value: &'a [u8]) -> Answer<'a, Claim> {
        Box::pin(async move {
            self.leader("claim a node").await?;
            let claim = self.tree.claim(path, value).await?;
            self.travel().await;
            Ok(claim)
        })
    }

    fn remove<'a>(&'a self, path: &'a str) -> Answer<'a, ()> {
        Box::pin(async move {
            self.leader("remove a node").await?;
            self.tree.remove(path).await?;
            self.travel().await;
            Ok(())
        })
    }

    fn over(&self) -> Awaited<'static, SessionOver> {
        let watching = Session {
            id: self.id,
            tree: self.tree.clone(),
            gate: self.gate.clone(),
            ensemble: self.ensemble.clone(),
            written: Mutex::default(),
        };
        Box::pin(async move {
            while !matches!(watching.find(), Found::Over) {
                tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
            }
            over()
        })
    }
}

impl ZnodeStore for Session {
    fn publish(&self, path: &str, value: Bytes, ephemeral: bool) -> Result<(), TreeError> {
        self.written.lock().push_back(Write::Publish(path.to_owned(), value, ephemeral));
        Ok(())
    }

    fn ensure(&self, path: &str) -> Result<(), TreeError> {
        self.written.lock().push_back(Write::Ensure(path.to_owned()));
        Ok(())
    }

    fn delete(&self, path: &str) -> Result<(), TreeError> {
        self.written.lock().push_back(Write::Delete(path.to_owned()));
        Ok(())
    }
}
