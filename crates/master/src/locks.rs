//! Who may work on what: exclusive locks of tables and namespaces for DDL, shared ones (and the region's own) for
//! work on single regions. A lock's entry is there only while somebody holds it or waits for it.
//! Follows: `MasterProcedureScheduler`.

use model::TableName;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// What is locked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    /// A region server, by its name.
    Server(String),
    /// A replication peer.
    Peer(String),
    /// A namespace.
    Namespace(String),
    /// A table.
    Table(TableName),
    /// A region, by its encoded name.
    Region(Arc<str>),
    /// A snapshot, by its name. HBase has no such lock, and clients see none.
    Snapshot(String),
}

#[derive(Debug)]
enum Held {
    Shared { _guard: OwnedRwLockReadGuard<()> },
    Exclusive { _guard: OwnedRwLockWriteGuard<()> },
}

/// All locks.
#[derive(Debug, Default)]
pub struct Locks {
    by_resource: Mutex<HashMap<Resource, Arc<RwLock<()>>>>,
}

/// Locks that are held; they are given back when it is dropped.
#[derive(Debug)]
pub struct LockSet {
    locks: Arc<Locks>,
    held: Vec<(Resource, Held)>,
}

/// How a resource is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// With others.
    Shared,
    /// Alone.
    Exclusive,
}

impl Locks {
    /// Takes the locks one after the other in the order of their resources, waiting as long as it takes.
    pub async fn lock(self: &Arc<Locks>, mut wanted: Vec<(Resource, Mode)>) -> LockSet {
        wanted.sort_by(|(a, _), (b, _)| a.cmp(b));
        wanted.dedup_by(|(a, _), (b, _)| a == b);
        let mut set = LockSet { locks: Arc::clone(self), held: Vec::with_capacity(wanted.len()) };
        for (resource, mode) in wanted {
            let lock = Arc::clone(self.by_resource.lock().entry(resource.clone()).or_default());
            let held = match mode {
                Mode::Shared => Held::Shared { _guard: lock.read_owned().await },
                Mode::Exclusive => Held::Exclusive { _guard: lock.write_owned().await },
            };
            set.held.push((resource, held));
        }
        set
    }

    /// Takes the locks if all of them are free now.
    pub fn try_lock(self: &Arc<Locks>, wanted: Vec<(Resource, Mode)>) -> Option<LockSet> {
        let mut set = LockSet { locks: Arc::clone(self), held: Vec::with_capacity(wanted.len()) };
        for (resource, mode) in wanted {
            // Under the mutex from end to end: a lock that is not free has somebody who takes its entry away later.
            let mut by_resource = self.by_resource.lock();
            let lock = Arc::clone(by_resource.entry(resource.clone()).or_default());
            let held = match mode {
                Mode::Shared => lock.try_read_owned().ok().map(|guard| Held::Shared { _guard: guard }),
                Mode::Exclusive => lock.try_write_owned().ok().map(|guard| Held::Exclusive { _guard: guard }),
            };
            drop(by_resource);
            set.held.push((resource, held?));
        }
        Some(set)
    }

    /// What is locked now, and whether exclusively.
    pub fn held(&self) -> Vec<(Resource, Mode)> {
        let by_resource = self.by_resource.lock();
        let mode = |lock: &Arc<RwLock<()>>| if lock.try_read().is_ok() { Mode::Shared } else { Mode::Exclusive };
        by_resource.iter().map(|(resource, lock)| (resource.clone(), mode(lock))).collect()
    }
}

impl LockSet {
    /// Of `wanted`, what is not among these.
    pub fn missing(&self, mut wanted: Vec<(Resource, Mode)>) -> Vec<(Resource, Mode)> {
        wanted.retain(|(resource, _)| !self.held.iter().any(|(held, _)| held == resource));
        wanted
    }

    /// These and `more`, given back together.
    pub fn and(mut self, mut more: LockSet) -> LockSet {
        self.held.append(&mut more.held);
        self
    }
}

impl Drop for LockSet {
    fn drop(&mut self) {
        for (resource, held) in self.held.drain(..).rev() {
            drop(held);
            let mut by_resource = self.locks.by_resource.lock();
            // Under the mutex nobody can come to hold the entry's lock but through the entry.
            if by_resource.get(&resource).is_some_and(|lock| Arc::strong_count(lock) == 1) {
                by_resource.remove(&resource);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn exclusive_excludes_and_entries_go() {
        let locks = Arc::new(Locks::default());
        let table = || Resource::Table(TableName::parse("t").expect("legal"));
        let first = locks.lock(vec![(table(), Mode::Shared)]).await;
        let second = locks.lock(vec![(table(), Mode::Shared)]).await;
        let third = tokio::spawn({
            let locks = Arc::clone(&locks);
            async move { locks.lock(vec![(table(), Mode::Exclusive)]).await }
        });
        tokio::task::yield_now().await;
        assert!(!third.is_finished());
        drop(first);
        drop(second);
        let third = third.await.expect("no panic");
        assert_eq!(locks.held(), [(table(), Mode::Exclusive)]);
        let both = vec![(Resource::Namespace("n".into()), Mode::Shared), (table(), Mode::Exclusive)];
        assert!(locks.try_lock(both.clone()).is_none());
        assert_eq!(locks.held(), [(table(), Mode::Exclusive)], "what was taken in vain is given back");
        drop(third);
        assert_eq!(locks.held(), []);
        let both = locks.try_lock(both).expect("free");
        assert_eq!(locks.held().len(), 2);
        drop(both);
        assert_eq!(locks.held(), []);
    }
}
