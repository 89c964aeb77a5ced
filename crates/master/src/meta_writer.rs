//! Writes to hbase:meta in groups: whatever is waiting when the last write is through goes with the next, so that ten
//! thousand regions opening at once cost a few syncs of the log.

use crate::servers::Servers;
use crate::{HostError, MasterError, Result};
use model::Mutation;
use model::region_info::META_ENCODED_NAME;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Mutations in one log entry, about.
const GROUP_MUTATIONS: usize = 2000;
/// Callers that may wait.
const QUEUE_LEN: usize = 1024;

type Answer = std::result::Result<(), HostError>;

/// The way into hbase:meta. Cheap to clone.
#[derive(Clone, Debug)]
pub struct MetaWriter {
    queue: mpsc::Sender<(Vec<Mutation>, oneshot::Sender<Answer>)>,
}

impl MetaWriter {
    /// Starts the writer, which writes to the server that has hbase:meta; it ends when the last handle is dropped.
    pub fn start(servers: Arc<Servers>) -> MetaWriter {
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
                let done = match servers.meta_host() {
                    Ok(host) => host.mutate(META_ENCODED_NAME, mutations).await,
                    Err(error) => Err(error),
                };
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
