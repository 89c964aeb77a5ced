//! Writes that are gathered and sent many at a time. Follows: `BufferedMutatorImpl`.

use model::Mutation;
use tokio::task::JoinHandle;

use crate::{Error, Result, Table};

/// What a Java client counts for a mutation besides the bytes of its cells, about.
const MUTATION_OVERHEAD_BYTES: usize = 200;
/// The same for each cell.
const CELL_OVERHEAD_BYTES: usize = 64;

/// Gathers mutations; a full buffer is sent by a task of its own while the next one fills. One buffer is under way at
/// a time. Errors of a buffer show at a later call, and at [`BufferedMutator::flush`] at the latest.
pub struct BufferedMutator {
    table: Table,
    buffer: Vec<Mutation>,
    buffered_bytes: usize,
    limit_bytes: usize,
    sending: Option<JoinHandle<Result<()>>>,
}

impl BufferedMutator {
    pub(crate) fn new(table: Table, limit_bytes: usize) -> BufferedMutator {
        BufferedMutator { table, buffer: Vec::new(), buffered_bytes: 0, limit_bytes, sending: None }
    }

    /// Takes a mutation; waits when the buffer is full and the one before is still under way.
    ///
    /// # Errors
    /// A mutation of an earlier buffer failed.
    pub async fn mutate(&mut self, mutation: Mutation) -> Result<()> {
        self.buffered_bytes += mutation.row.len()
            + mutation.cells.bytes().len()
            + MUTATION_OVERHEAD_BYTES
            + mutation.cells.len() * CELL_OVERHEAD_BYTES;
        self.buffer.push(mutation);
        if self.buffered_bytes > self.limit_bytes { self.send().await } else { Ok(()) }
    }

    async fn send(&mut self) -> Result<()> {
        let earlier = self.settle().await;
        let batch = std::mem::take(&mut self.buffer);
        self.buffered_bytes = 0;
        if !batch.is_empty() {
            let table = self.table.clone();
            self.sending = Some(tokio::spawn(async move { table.mutate_all(&batch).await }));
        }
        earlier
    }

    async fn settle(&mut self) -> Result<()> {
        match self.sending.take() {
            Some(task) => task.await.unwrap_or_else(|e| Err(Error::Request(format!("the sending task ended: {e}")))),
            None => Ok(()),
        }
    }

    /// Sends what is left and waits until all is done.
    ///
    /// # Errors
    /// The first mutation that failed.
    pub async fn flush(&mut self) -> Result<()> {
        let earlier = self.send().await;
        let last = self.settle().await;
        earlier.and(last)
    }
}
