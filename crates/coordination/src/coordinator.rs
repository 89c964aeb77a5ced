//! Coordination as a member of a cluster needs it: it reads what others write, waits for changes, and has nodes of its own. An ensemble, or the
//! embedded tree.

use crate::state::TreeHandle;
use crate::tree::{CreateMode, TreeError};
use bytes::Bytes;
use std::pin::Pin;

/// An answer that comes when the ensemble gives it, over outages of any length.
pub type Awaited<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The session is over, or the ensemble refuses what was asked: a member has no other way out than to end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the ZooKeeper session is over: {0}")]
pub struct SessionOver(pub String);

/// What came of [`Coordinator::claim`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The node is this session's.
    Ours,
    /// It is another's, with this value.
    Taken(Bytes),
}

/// What [`Coordinator`] answers.
pub type Answer<'a, T> = Awaited<'a, Result<T, SessionOver>>;

/// A session of this process. Every answer waits over outages; only the end of the session is an error.
pub trait Coordinator: Send + Sync + 'static {
    /// A node's value; `None` when there is none.
    fn value<'a>(&'a self, path: &'a str) -> Answer<'a, Option<Bytes>>;

    /// As [`Coordinator::value`], but never older than what the ensemble's leader has when it is asked: an answer from a server that is cut off from
    /// its leader does not count. Costs a round more. ZooKeeper: `sync`, then the read.
    fn latest_value<'a>(&'a self, path: &'a str) -> Answer<'a, Option<Bytes>>;

    /// Waits until the node's value is another than `seen`, and answers it. No change is missed that lasts.
    fn value_other_than<'a>(&'a self, path: &'a str, seen: Option<Bytes>) -> Answer<'a, Option<Bytes>>;

    /// Names of a node's children; none where there is no such node.
    fn children<'a>(&'a self, path: &'a str) -> Answer<'a, Vec<String>>;

    /// Waits until the names of a node's children are others than `seen`, and answers them, sorted.
    fn children_other_than<'a>(&'a self, path: &'a str, seen: Vec<String>) -> Answer<'a, Vec<String>>;

    /// Makes an ephemeral node, unless another session has it. Its parent is there.
    fn claim<'a>(&'a self, path: &'a str, value: &'a [u8]) -> Answer<'a, Claim>;

    /// Removes a node, whoever has it; nothing happens when it is not there.
    fn remove<'a>(&'a self, path: &'a str) -> Answer<'a, ()>;

    /// Ends with the session, and says why.
    fn over(&self) -> Awaited<'static, SessionOver>;
}

fn refused(error: &TreeError) -> SessionOver {
    SessionOver(format!("a request was refused: {error}"))
}

impl Coordinator for TreeHandle {
    fn value<'a>(&'a self, path: &'a str) -> Answer<'a, Option<Bytes>> {
        Box::pin(async move {
            match self.get(path) {
                Ok(value) => Ok(Some(value)),
                Err(TreeError::NoNode) => Ok(None),
                Err(error) => Err(refused(&error)),
            }
        })
    }

    fn latest_value<'a>(&'a self, path: &'a str) -> Answer<'a, Option<Bytes>> {
        // The tree is the leader.
        self.value(path)
    }

    fn value_other_than<'a>(&'a self, path: &'a str, seen: Option<Bytes>) -> Answer<'a, Option<Bytes>> {
        Box::pin(async move {
            let mut changes = self.shared.lock().changes();
            loop {
                changes.mark_unchanged();
                let value = self.value(path).await?;
                if value != seen {
                    return Ok(value);
                }
                if changes.changed().await.is_err() {
                    return Err(SessionOver("the endpoint is gone".into()));
                }
            }
        })
    }

    fn children<'a>(&'a self, path: &'a str) -> Answer<'a, Vec<String>> {
        Box::pin(async move {
            match TreeHandle::children(self, path) {
                Ok(names) => Ok(names),
                Err(TreeError::NoNode) => Ok(Vec::new()),
                Err(error) => Err(refused(&error)),
            }
        })
    }

    fn children_other_than<'a>(&'a self, path: &'a str, seen: Vec<String>) -> Answer<'a, Vec<String>> {
        Box::pin(async move {
            let mut changes = self.shared.lock().changes();
            loop {
                changes.mark_unchanged();
                let mut names = Coordinator::children(self, path).await?;
                names.sort();
                if names != seen {
                    return Ok(names);
                }
                if changes.changed().await.is_err() {
                    return Err(SessionOver("the endpoint is gone".into()));
                }
            }
        })
    }

    fn claim<'a>(&'a self, path: &'a str, value: &'a [u8]) -> Answer<'a, Claim> {
        Box::pin(async move {
            let now_ms = self.shared.clock.now_ms().0;
            let mode = CreateMode { ephemeral_owner: self.session, sequential: false };
            let mut state = self.shared.lock();
            match state.create(path, Bytes::copy_from_slice(value), mode, now_ms) {
                Ok(_) => Ok(Claim::Ours),
                Err(TreeError::NodeExists) => match state.tree.data(path) {
                    Ok((_, stat)) if stat.ephemeral_owner == self.session => Ok(Claim::Ours),
                    Ok((found, _)) => Ok(Claim::Taken(found)),
                    Err(error) => Err(refused(&error)),
                },
                Err(error) => Err(refused(&error)),
            }
        })
    }

    fn remove<'a>(&'a self, path: &'a str) -> Answer<'a, ()> {
        Box::pin(async move { self.delete(path).map_err(|error| refused(&error)) })
    }

    fn over(&self) -> Awaited<'static, SessionOver> {
        // The process's own tree lives as long as the process.
        Box::pin(std::future::pending())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Endpoint, EndpointOptions};
    use base::{Config, Rng, SystemClock};
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::Arc;

    async fn tree() -> TreeHandle {
        let options = EndpointOptions::from_config(&Config::default());
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let endpoint = Endpoint::bind(address, options, Arc::new(SystemClock::new()), Arc::new(Rng::seeded(1)));
        endpoint.await.expect("bound").tree()
    }

    #[tokio::test]
    async fn a_change_wakes_who_has_seen_another_value() {
        let tree = tree().await;
        assert_eq!(tree.value("/a").await, Ok(None));
        let writer = tree.clone();
        let waiting = tokio::spawn(async move { writer.value_other_than("/a", None).await });
        tokio::task::yield_now().await;
        tree.publish("/b", Bytes::from_static(b"x"), false).expect("a path");
        tree.publish("/a", Bytes::from_static(b"1"), false).expect("a path");
        assert_eq!(waiting.await.expect("ran"), Ok(Some(Bytes::from_static(b"1"))));
        // What is another already is answered at once.
        assert_eq!(tree.value_other_than("/a", None).await, Ok(Some(Bytes::from_static(b"1"))));
        tree.delete("/a").expect("deleted");
        assert_eq!(tree.value_other_than("/a", Some(Bytes::from_static(b"1"))).await, Ok(None));
    }

    #[tokio::test]
    async fn a_node_that_is_no_sessions_is_not_claimed() {
        let tree = tree().await;
        tree.ensure("/rs").expect("a path");
        assert_eq!(tree.claim("/rs/a", b"1").await, Ok(Claim::Ours));
        assert_eq!(tree.claim("/rs/a", b"1").await, Ok(Claim::Ours), "again is no other's");
        tree.publish("/rs/b", Bytes::from_static(b"2"), false).expect("a path");
        assert_eq!(tree.claim("/rs/b", b"1").await, Ok(Claim::Taken(Bytes::from_static(b"2"))));
        assert_eq!(Coordinator::children(&tree, "/rs").await, Ok(vec!["a".to_owned(), "b".to_owned()]));
        tree.remove("/rs/a").await.expect("removed");
        tree.remove("/rs/a").await.expect("again");
        assert_eq!(Coordinator::children(&tree, "/none").await, Ok(Vec::new()));
    }
}
