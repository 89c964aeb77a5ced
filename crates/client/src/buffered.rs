//! Writes that are gathered and sent many at a time. Follows: `BufferedMutatorImpl`, `BufferedMutatorParams`,
//! `AsyncBufferedMutatorImpl`.

use std::sync::Arc;
use std::time::Duration;

use model::Mutation;
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::options::Options;
use crate::{Action, Error, Result, Table};

/// What a Java client counts for a mutation besides the bytes of its cells, about.
const MUTATION_OVERHEAD_BYTES: usize = 200;
/// The same for each cell.
const CELL_OVERHEAD_BYTES: usize = 64;

/// Told of each mutation that failed for good, with its error.
pub type ExceptionListener = Arc<dyn Fn(&Mutation, &Error) + Send + Sync>;

/// How a [`BufferedMutator`] gathers.
#[derive(Clone)]
pub struct BufferedMutatorOptions {
    /// Bytes that are gathered before they are sent.
    pub limit_bytes: usize,
    /// Mutations that are gathered before they are sent; as many as fit where there is none.
    pub limit_mutations: Option<usize>,
    /// How long a mutation waits at most before it is sent though the buffer is not full; as long as it takes where there is none.
    pub flush_after: Option<Duration>,
    /// Told of each mutation that failed. Without it the first failure shows at a later call.
    pub listener: Option<ExceptionListener>,
}

impl BufferedMutatorOptions {
    pub(crate) fn new(options: &Options) -> BufferedMutatorOptions {
        BufferedMutatorOptions {
            limit_bytes: usize::try_from(options.write_buffer_bytes).unwrap_or(usize::MAX),
            limit_mutations: None,
            flush_after: options.write_buffer_flush,
            listener: None,
        }
    }
}

/// Gathers mutations; a full buffer is sent by a task of its own while the next one fills. One buffer is under way at
/// a time, so that at most two of them are in memory. Errors of a buffer show at a later call, and at [`BufferedMutator::flush`] at the
/// latest, unless a listener takes them. Dropped, it sends nothing more: [`BufferedMutator::flush`] comes first.
pub struct BufferedMutator {
    shared: Arc<Shared>,
    /// Sends what has waited for long enough.
    timer: Option<JoinHandle<()>>,
}

struct Shared {
    table: Table,
    options: BufferedMutatorOptions,
    buffer: Mutex<Buffer>,
    /// The buffer that is under way. Held while one is taken and sent, so that buffers leave in order.
    sending: tokio::sync::Mutex<Option<JoinHandle<Result<()>>>>,
    /// There is something in the buffer that was empty.
    began: tokio::sync::Notify,
}

#[derive(Default)]
struct Buffer {
    mutations: Vec<Mutation>,
    bytes: usize,
}

impl BufferedMutator {
    pub(crate) fn new(table: Table, options: BufferedMutatorOptions) -> BufferedMutator {
        let flush_after = options.flush_after;
        let shared = Arc::new(Shared {
            table,
            options,
            buffer: Mutex::default(),
            sending: tokio::sync::Mutex::default(),
            began: tokio::sync::Notify::new(),
        });
        let timer = flush_after.map(|after| tokio::spawn(shared.clone().send_in_time(after)));
        BufferedMutator { shared, timer }
    }

    /// Takes a mutation; waits when the buffer is full and the one before is still under way.
    ///
    /// # Errors
    /// A mutation that is refused at once (it is not taken), or one of an earlier buffer that failed.
    pub async fn mutate(&mut self, mutation: Mutation) -> Result<()> {
        self.shared.table.examine(&mutation)?;
        if self.shared.take(mutation) { self.shared.send().await } else { Ok(()) }
    }

    /// Sends what is left and waits until all is done.
    ///
    /// # Errors
    /// The first mutation that failed.
    pub async fn flush(&mut self) -> Result<()> {
        let earlier = self.shared.send().await;
        let last = self.shared.settle(&mut *self.shared.sending.lock().await).await;
        earlier.and(last)
    }

    /// Bytes that wait to be sent, as they are counted against the limit.
    pub fn buffered_bytes(&self) -> usize {
        self.shared.buffer.lock().bytes
    }
}

impl Drop for BufferedMutator {
    fn drop(&mut self) {
        if let Some(timer) = &self.timer {
            timer.abort();
        }
    }
}

impl Shared {
    /// Adds a mutation; whether the buffer is full.
    fn take(&self, mutation: Mutation) -> bool {
        let mut buffer = self.buffer.lock();
        buffer.bytes += mutation.row.len()
            + mutation.cells.bytes().len()
            + MUTATION_OVERHEAD_BYTES
            + mutation.cells.len() * CELL_OVERHEAD_BYTES;
        buffer.mutations.push(mutation);
        if buffer.mutations.len() == 1 && self.options.flush_after.is_some() {
            self.began.notify_one();
        }
        buffer.bytes > self.options.limit_bytes
            || self.options.limit_mutations.is_some_and(|limit| buffer.mutations.len() >= limit)
    }

    /// Empties the buffer; the next one has room for as many.
    fn take_all(&self) -> Vec<Mutation> {
        let mut buffer = self.buffer.lock();
        let room = Vec::with_capacity(buffer.mutations.len());
        buffer.bytes = 0;
        std::mem::replace(&mut buffer.mutations, room)
    }

    /// Waits for the buffer that is under way, then sends what there is. What became of the former comes back.
    async fn send(&self) -> Result<()> {
        let mut sending = self.sending.lock().await;
        let earlier = self.settle(&mut sending).await;
        let batch = self.take_all();
        if !batch.is_empty() {
            let (table, listener) = (self.table.clone(), self.options.listener.clone());
            *sending = Some(tokio::spawn(send_all(table, batch, listener)));
        }
        earlier
    }

    async fn settle(&self, sending: &mut Option<JoinHandle<Result<()>>>) -> Result<()> {
        // Awaited where it is: whoever stops waiting leaves it there for the next one.
        let Some(task) = sending.as_mut() else { return Ok(()) };
        let done = task.await.unwrap_or_else(|e| Err(Error::Request(format!("the sending task ended: {e}"))));
        *sending = None;
        done
    }

    /// Sends what the buffer holds so long after it was begun.
    async fn send_in_time(self: Arc<Self>, after: Duration) {
        loop {
            self.began.notified().await;
            tokio::time::sleep(after).await;
            let mut sending = self.sending.lock().await;
            let earlier = self.settle(&mut sending).await;
            let batch = self.take_all();
            let (table, listener) = (self.table.clone(), self.options.listener.clone());
            // What failed before shows together with what this one brings: nobody waits here to be told.
            *sending = Some(tokio::spawn(async move {
                let sent = if batch.is_empty() { Ok(()) } else { send_all(table, batch, listener).await };
                earlier.and(sent)
            }));
        }
    }
}

/// Sends a whole buffer. The first failure comes back, unless the listener takes them all.
async fn send_all(table: Table, batch: Vec<Mutation>, listener: Option<ExceptionListener>) -> Result<()> {
    let Some(listener) = listener else { return table.mutate_all(&batch).await };
    let actions: Vec<Action> = batch.into_iter().map(Action::Mutate).collect();
    for (action, outcome) in actions.iter().zip(table.outcomes(&actions).await) {
        if let (Action::Mutate(mutation), Err(error)) = (action, outcome) {
            listener(mutation, &error);
        }
    }
    Ok(())
}
