//! Locks that clients hold: of namespaces, tables and regions, kept as long as the client says so in time. A client
//! that is silent for too long loses its lock. They do not outlive the master: a client whose lock is not known is told
//! that it has none. Follows: `LockManager.RemoteLocks`, `LockProcedure`.

use crate::lifetime::Lifetime;
use crate::locks::{LockSet, Locks, Mode, Resource};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

#[derive(Debug)]
struct ClientLock {
    /// Given once it is locked.
    held: Option<LockSet>,
    /// Told of each sign of life; dropped when the lock is given back.
    heartbeat: watch::Sender<()>,
}

/// Locks that clients asked for.
#[derive(Debug)]
pub(crate) struct ClientLocks {
    locks: Arc<Locks>,
    lifetime: Arc<Lifetime>,
    by_id: Arc<Mutex<HashMap<u64, ClientLock>>>,
}

impl ClientLocks {
    /// Over the locks that procedures take, too.
    pub fn new(locks: Arc<Locks>, lifetime: Arc<Lifetime>) -> ClientLocks {
        ClientLocks { locks, lifetime, by_id: Arc::default() }
    }

    /// A client asks for locks, and waits for them as long as it gives signs of life at most `timeout` apart.
    pub fn request(&self, id: u64, wanted: Vec<(Resource, Mode)>, timeout: Duration) {
        let (heartbeat, mut beats) = watch::channel(());
        self.by_id.lock().insert(id, ClientLock { held: None, heartbeat });
        let (locks, lifetime, by_id) = (Arc::clone(&self.locks), Arc::clone(&self.lifetime), Arc::clone(&self.by_id));
        tokio::spawn(async move {
            let lock = async {
                let held = locks.lock(wanted).await;
                if let Some(lock) = by_id.lock().get_mut(&id) {
                    lock.held = Some(held);
                }
                std::future::pending::<()>().await;
            };
            let silence = async {
                // Ends with the first pause that is too long, or when the lock is given back.
                while matches!(tokio::time::timeout(timeout, beats.changed()).await, Ok(Ok(()))) {}
            };
            let ended = lifetime.unless_stopped(async {
                tokio::select! {
                    () = lock => {}
                    () = silence => {}
                }
            });
            // Also when the master stops.
            let _stopped = ended.await;
            if let Some(lock) = by_id.lock().remove(&id) {
                tracing::info!(pid = id, "a client's lock is taken back, for no sign of life came in time");
                drop(lock);
            }
        });
    }

    /// A client gives a sign of life, or gives its lock back. Answers whether it has the lock.
    pub fn heartbeat(&self, id: u64, keep: bool) -> bool {
        let mut by_id = self.by_id.lock();
        if !keep {
            by_id.remove(&id);
            return false;
        }
        let Some(lock) = by_id.get(&id) else { return false };
        lock.heartbeat.send_replace(());
        lock.held.is_some()
    }
}
