//! Writes to hbase:meta in groups: whatever is waiting when the last write is through goes with the next, so that ten
//! thousand regions opening at once cost a few syncs of the log.

use crate::lifetime::Lifetime;
use crate::servers::Servers;
use crate::{HostError, MasterError, Result};
use model::Mutation;
use model::region_info::META_ENCODED_NAME;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Mutations in one log entry, about.
const GROUP_MUTATIONS: usize = 2000;
/// Callers that may wait.
const QUEUE_LEN: usize = 1024;
/// Between two attempts while hbase:meta is on its way from one server to another.
const PAUSE: Duration = Duration::from_millis(100);

type Answer = std::result::Result<(), HostError>;

/// The way into hbase:meta. Cheap to clone.
#[derive(Clone, Debug)]
pub struct MetaWriter {
    queue: mpsc::Sender<(Vec<Mutation>, oneshot::Sender<Answer>)>,
}

impl MetaWriter {
    /// Starts the writer, which writes to the server that has hbase:meta, waiting while that is out of reach; it ends when the last handle is dropped.
    pub fn start(servers: Arc<Servers>, lifetime: Arc<Lifetime>) -> MetaWriter {
        let (queue, mut waiting) = mpsc::channel::<(Vec<Mutation>, oneshot::Sender<Answer>)>(QUEUE_LEN);
        tokio::spawn(async move {
            while let Some((mut mutations, answer)) = waiting.recv().await {
                let mut answers = vec![answer];
                while mutations.len() < GROUP_MUTATIONS
                    && let Ok((more, answer)) = waiting.try_recv()
                {
                    mutations.extend(more);
                    answers.push(answer);
                }
                let Some(done) = write(&servers, &lifetime, mutations).await else { return };
                for answer in answers {
                    // A caller that no longer waits does not need the answer.
                    let _gone = answer.send(done.clone());
                }
            }
        });
        MetaWriter { queue }
    }

    /// Writes all of `mutations` or none; others may share the log entry.
    ///
    /// # Errors
    /// The host's.
    pub async fn write(&self, mutations: Vec<Mutation>) -> Result<()> {
        if mutations.is_empty() {
            return Ok(());
        }
        let stopping = || MasterError::from(HostError::Stopping);
        let (answer, done) = oneshot::channel();
        self.queue.send((mutations, answer)).await.map_err(|_| stopping())?;
        Ok(done.await.map_err(|_| stopping())??)
    }
}

/// Writes; where a server of another process does not answer, or is dead, again: the same cells with the same stamps. `None`: the master stops.
async fn write(servers: &Servers, lifetime: &Lifetime, mutations: Vec<Mutation>) -> Option<Answer> {
    let mut is_remote = false;
    loop {
        let done = match servers.meta_host() {
            Ok(host) => {
                is_remote = host.is_remote();
                // A copy is made only where it may have to be sent again.
                if !is_remote {
                    return Some(host.mutate(META_ENCODED_NAME, mutations).await);
                }
                host.mutate(META_ENCODED_NAME, mutations.clone()).await
            }
            Err(error) if is_remote || servers.are_remote() => Err(HostError::Unreachable(error.to_string())),
            Err(error) => Err(error),
        };
        match done {
            Err(HostError::Unreachable(why)) => tracing::info!("hbase:meta is out of reach, writes to it wait: {why}"),
            done => return Some(done),
        }
        lifetime.pause(PAUSE).await.ok()?;
    }
}
