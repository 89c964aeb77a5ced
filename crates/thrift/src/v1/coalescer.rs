//! Increments of one counter that come quickly after one another, written as one.

use super::{parse_column, table_name};
use base::{Charge, Holder, Ledger};
use bytes::Bytes;
use client::{Connection, Increment};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::mem::size_of;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Increments that are sent at a time.
const AT_A_TIME: usize = 32;

/// Table, row and column of a counter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Counter {
    pub(super) table: Bytes,
    pub(super) row: Bytes,
    pub(super) column: Bytes,
}

/// What is to be added to a counter, and its memory until that is written.
struct Sum {
    amount: i64,
    charge: Charge,
}

struct Waiting {
    sums: HashMap<Counter, Sum>,
    closing: bool,
}

/// Where increments wait. A client is answered before they are written, as in HBase: those that wait are lost when the process is killed.
///
/// Follows: `IncrementCoalescer`. Unlike there a stop writes what waits, and when there is no room the client's call writes its own.
pub struct Coalescer {
    connection: Connection,
    ledger: Arc<Ledger>,
    waiting: Mutex<Waiting>,
    added: Notify,
}

impl Coalescer {
    /// Nothing waits.
    pub(super) fn new(connection: Connection, ledger: &Arc<Ledger>) -> Coalescer {
        let waiting = Waiting { sums: HashMap::new(), closing: false };
        Coalescer { connection, ledger: ledger.clone(), waiting: Mutex::new(waiting), added: Notify::new() }
    }

    /// Adds to what is to be written. False: there is no room, or the gateway stops.
    pub(super) fn add(&self, counter: Counter, amount: i64) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.closing {
            return false;
        }
        if let Some(sum) = waiting.sums.get_mut(&counter) {
            sum.amount = sum.amount.wrapping_add(amount);
            return true;
        }
        let bytes = counter.table.len() + counter.row.len() + counter.column.len() + size_of::<(Counter, Sum)>();
        let Some(charge) = self.ledger.try_charge(Holder::Requests, bytes as u64) else { return false };
        // The counter outlives its request: it keeps its own bytes and not the whole of that.
        let own = |bytes: Bytes| Bytes::copy_from_slice(&bytes);
        let counter = Counter { table: own(counter.table), row: own(counter.row), column: own(counter.column) };
        waiting.sums.insert(counter, Sum { amount, charge });
        drop(waiting);
        self.added.notify_one();
        true
    }

    /// Nothing is added any more; [`Coalescer::run`] ends when all is written.
    pub(crate) fn close(&self) {
        self.waiting.lock().closing = true;
        self.added.notify_one();
    }

    /// Writes what waits, until [`Coalescer::close`].
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            let closing = self.write_all().await;
            if closing {
                return;
            }
            self.added.notified().await;
        }
    }

    /// Writes what waits and what comes meanwhile. True: nothing more will come.
    async fn write_all(self: &Arc<Self>) -> bool {
        loop {
            let (batch, closing) = {
                let mut waiting = self.waiting.lock();
                let batch = std::mem::take(&mut waiting.sums);
                (batch, waiting.closing)
            };
            if batch.is_empty() {
                return closing;
            }
            let mut writing = JoinSet::new();
            for (counter, sum) in batch {
                if writing.len() >= AT_A_TIME {
                    writing.join_next().await;
                }
                writing.spawn(self.clone().write(counter, sum));
            }
            while writing.join_next().await.is_some() {}
        }
    }

    /// One counter. The client has its answer already: what fails can only be told to the log.
    async fn write(self: Arc<Self>, counter: Counter, Sum { amount, charge }: Sum) {
        let written = async {
            let (family, qualifier) = parse_column(&counter.column);
            let table = self.connection.table(&table_name(&counter.table)?);
            let increment = Increment::new(&counter.row).add(family, qualifier.unwrap_or_default(), amount);
            table.increment(&increment.return_results(false).build()).await?;
            Ok::<_, crate::fault::Fault>(())
        };
        if let Err(fault) = written.await {
            let (table, row, column) = (&counter.table, &counter.row, &counter.column);
            tracing::error!(
                "an increment that was answered is lost: {amount} for {}, {}, {}: {fault:?}",
                table.escape_ascii(),
                row.escape_ascii(),
                column.escape_ascii()
            );
        }
        drop(charge);
    }
}
