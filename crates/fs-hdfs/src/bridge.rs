//! From threads that may wait to the client's futures, and back.

use crate::error::failed;
use fs::{FilePath, Result};
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};

/// Threads that only move bytes between sockets and buffers.
const THREADS: usize = 2;

/// Threads of the client's own. Clones share them; the last one to go leaves them to end by themselves.
#[derive(Clone)]
pub(crate) struct Bridge {
    runtime: Arc<Threads>,
    deadline: Duration,
}

struct Threads(Option<Runtime>);

impl Drop for Threads {
    fn drop(&mut self) {
        // The last handle may go on a thread that must not wait.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Bridge {
    /// Starts the threads. A call that has no answer after `deadline` fails.
    pub fn start(deadline: Duration) -> io::Result<Bridge> {
        let runtime = Builder::new_multi_thread().worker_threads(THREADS).thread_name("hdfs").enable_all().build()?;
        Ok(Bridge { runtime: Arc::new(Threads(Some(runtime))), deadline })
    }

    /// The same threads with another deadline.
    pub fn within(&self, deadline: Duration) -> Bridge {
        Bridge { runtime: self.runtime.clone(), deadline }
    }

    /// For what the client spawns by itself.
    pub fn handle(&self) -> Handle {
        self.runtime.0.as_ref().expect("it is taken when the last handle goes").handle().clone()
    }

    /// Waits for `call` on this thread, which must be one that may wait. After the deadline `call` is dropped where it stands, with all
    /// that it owns.
    pub fn wait<T: Send + 'static>(
        &self,
        operation: &str,
        path: &FilePath,
        call: impl Future<Output = hdfs_native::Result<T>> + Send + 'static,
    ) -> Result<T> {
        let outcome = self.wait_for(operation, path, call)?;
        outcome.map_err(|error| failed(operation, path, error))
    }

    /// As [`Bridge::wait`], for calls that say more than whether they failed.
    pub fn wait_for<T: Send + 'static>(
        &self,
        operation: &str,
        path: &FilePath,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        let (answer, answered) = sync_channel(1);
        let task = self.handle().spawn(async move {
            // Nobody waits for an answer that came too late.
            let _ = answer.send(call.await);
        });
        answered.recv_timeout(self.deadline).map_err(|error| {
            task.abort();
            let source = match error {
                RecvTimeoutError::Timeout => {
                    let seconds = self.deadline.as_secs();
                    let what = format!("HDFS gave no answer for {seconds} s; look at the NameNode and the DataNodes");
                    io::Error::new(io::ErrorKind::TimedOut, what)
                }
                RecvTimeoutError::Disconnected => io::Error::other("the HDFS client failed inside; see the log"),
            };
            fs::Error::new(operation, path, source)
        })
    }
}
