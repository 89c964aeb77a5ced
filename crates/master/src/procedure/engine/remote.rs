//! Work that a region server does for a procedure: handed to the server by name, its completion reported later. The
//! death of the server fails it, and so does time. Follows: `RemoteProcedureDispatcher`, `RSProcedureDispatcher`.

use crate::host::{BoxFuture, RegionHost};
use crate::{ErrorKind, HostError, MasterError};
use bytes::Bytes;
use model::ServerName;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// What a server says when it is handed an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It is done, with this result.
    Done(Bytes),
    #[cfg_attr(not(test), allow(dead_code, reason = "for servers in other processes"))]
    /// The server will report its end: [`Dispatcher::report`].
    Accepted,
}

/// An operation that a server is handed: which one, and how. It may be handed over twice: a server recognises a
/// procedure by its id.
pub(crate) type Operation =
    Box<dyn FnOnce(Arc<dyn RegionHost>, u64) -> BoxFuture<'static, Result<Sent, HostError>> + Send>;

/// A call of a server.
pub(crate) struct RemoteCall {
    /// The server.
    pub server: ServerName,
    /// What it is to do.
    pub operation: Operation,
    /// How long its report is waited for at most.
    pub timeout: Option<Duration>,
}

/// Why a server did not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RemoteFailure {
    /// It is not online, or went down meanwhile. What it did by then is not known.
    #[error("region server {0} is not online")]
    ServerDead(ServerName),
    /// It said so.
    #[error(transparent)]
    Failed(#[from] HostError),
    /// It did not report in time.
    #[error("region server {server} did not report within {timeout_ms} ms")]
    TimedOut {
        /// The server.
        server: ServerName,
        /// How long it was waited for.
        timeout_ms: u128,
    },
}

impl From<RemoteFailure> for MasterError {
    fn from(failure: RemoteFailure) -> MasterError {
        match failure {
            RemoteFailure::Failed(error) => error.into(),
            failure => MasterError::new(ErrorKind::Io, failure),
        }
    }
}

type Answer = Result<Bytes, RemoteFailure>;

#[derive(Debug)]
struct Waiting {
    server: ServerName,
    answer: oneshot::Sender<Answer>,
}

/// The operations that servers have been handed and have not reported, by procedure.
#[derive(Debug, Default)]
pub(crate) struct Dispatcher {
    /// In the order in which they were begun: so those of a server that died are told.
    waiting: Mutex<BTreeMap<u64, Waiting>>,
}

/// Forgets the operation when nobody waits for it any more.
struct Entry<'a>(&'a Dispatcher, u64);

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.0.waiting.lock().remove(&self.1);
    }
}

impl Dispatcher {
    /// Hands `call` to its server, and waits for the report.
    pub async fn call(&self, id: u64, host: Result<Arc<dyn RegionHost>, HostError>, call: RemoteCall) -> Answer {
        let RemoteCall { server, operation, timeout } = call;
        let Ok(host) = host else { return Err(RemoteFailure::ServerDead(server)) };
        let (answer, mut reported) = oneshot::channel();
        // Before it is handed over: its report may be faster than the answer.
        self.waiting.lock().insert(id, Waiting { server: server.clone(), answer });
        let _entry = Entry(self, id);
        let dead = || RemoteFailure::ServerDead(server.clone());
        let both = async {
            let sent = tokio::select! {
                biased;
                // The server died while it was being asked.
                report = &mut reported => return report.unwrap_or_else(|_| Err(dead())),
                sent = operation(host, id) => sent,
            };
            match sent {
                Ok(Sent::Done(bytes)) => Ok(bytes),
                Ok(Sent::Accepted) => reported.await.unwrap_or_else(|_| Err(dead())),
                Err(error) => Err(error.into()),
            }
        };
        match timeout {
            None => both.await,
            Some(timeout) => tokio::time::timeout(timeout, both).await.unwrap_or_else(|_| {
                Err(RemoteFailure::TimedOut { server: server.clone(), timeout_ms: timeout.as_millis() })
            }),
        }
    }

    /// A server reports the end of what a procedure handed to it. Answers whether anybody waited for it.
    pub fn report(&self, id: u64, result: Result<Bytes, HostError>) -> bool {
        let waiting = self.waiting.lock().remove(&id);
        waiting.is_some_and(|waiting| waiting.answer.send(result.map_err(RemoteFailure::from)).is_ok())
    }

    /// A server is dead: whatever it was handed has failed.
    pub fn server_died(&self, server: &ServerName) {
        let mut waiting = self.waiting.lock();
        let ids: Vec<u64> = waiting.iter().filter(|(_, call)| call.server == *server).map(|(id, _)| *id).collect();
        for id in ids {
            if let Some(call) = waiting.remove(&id) {
                // One that no longer waits does not need to know.
                let _gone = call.answer.send(Err(RemoteFailure::ServerDead(server.clone())));
            }
        }
    }
}
