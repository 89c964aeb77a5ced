//! A linked list that clients write while the cluster is harmed: every node names the one before it, and a node that was acknowledged and is not
//! there is a loss. Follows: `IntegrationTestBigLinkedList`.

use base::Rng;
use bytes::Bytes;
use client::{Connection, Put, ScanOptions, Table};
use model::{Get, Mutation, Scan, TableName};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Most nodes of one batch.
const BATCH: u64 = 40;
/// Kept of each node besides its links.
const PAYLOAD: &str = "0123456789012345678901234567890123456789012345678901234567890123456789";

/// A chain of nodes, written by one task.
#[derive(Default)]
struct Chain {
    /// The nodes before this one are acknowledged.
    acknowledged: AtomicU64,
}

/// The list, and what was seen of it.
pub struct List {
    table: Table,
    seed: u64,
    chains: Vec<Chain>,
    is_over: AtomicBool,
    reads: AtomicU64,
    errors: AtomicU64,
    slowest: Mutex<Duration>,
    contradictions: Mutex<Vec<String>>,
}

impl List {
    pub fn new(connection: &Connection, table: &TableName, seed: u64, chains: usize) -> Arc<List> {
        Arc::new(List {
            table: connection.table(table),
            seed,
            chains: (0..chains).map(|_| Chain::default()).collect(),
            is_over: AtomicBool::new(false),
            reads: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            slowest: Mutex::default(),
            contradictions: Mutex::default(),
        })
    }

    /// The row of a node: anywhere among the regions.
    fn key(&self, chain: usize, n: u64) -> Bytes {
        let number = Rng::seeded(self.seed ^ (chain as u64) << 48 ^ n).next_u64();
        Bytes::from([number.to_be_bytes(), (chain as u64).to_be_bytes(), n.to_be_bytes()].concat())
    }

    fn node(&self, chain: usize, n: u64) -> Mutation {
        Put::new(self.key(chain, n)).add("f", "prev", self.previous(chain, n)).add("f", "payload", PAYLOAD).build()
    }

    fn previous(&self, chain: usize, n: u64) -> Bytes {
        n.checked_sub(1).map(|n| self.key(chain, n)).unwrap_or_default()
    }

    /// Starts the writers, and as many readers.
    pub fn start(self: &Arc<List>) -> Vec<tokio::task::JoinHandle<()>> {
        let both = |chain| [tokio::spawn(self.clone().write(chain)), tokio::spawn(self.clone().read(chain))];
        (0..self.chains.len()).flat_map(both).collect()
    }

    /// Lets writers and readers come to their end.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// Writes nodes; those of a batch that was not acknowledged again, until it is.
    async fn write(self: Arc<List>, chain: usize) {
        let rng = Rng::seeded(self.seed.wrapping_add(chain as u64));
        let mut at = 0;
        while !self.is_over.load(Ordering::Acquire) {
            let end = at + 1 + rng.below(BATCH);
            let nodes: Vec<Mutation> = (at..end).map(|n| self.node(chain, n)).collect();
            let began = Instant::now();
            let written = match nodes.as_slice() {
                [node] => self.table.put(node).await,
                nodes => self.table.mutate_all(nodes).await,
            };
            self.took(began);
            if written.is_ok() {
                at = end;
                self.chains[chain].acknowledged.store(at, Ordering::Release);
            } else {
                self.errors.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Reads nodes that are acknowledged, the newest of all as often as any other.
    async fn read(self: Arc<List>, reader: usize) {
        let rng = Rng::seeded(!self.seed ^ reader as u64);
        while !self.is_over.load(Ordering::Acquire) {
            let chain = rng.below(self.chains.len() as u64) as usize;
            let acknowledged = self.chains[chain].acknowledged.load(Ordering::Acquire);
            if acknowledged == 0 {
                tokio::task::yield_now().await;
                continue;
            }
            let n = if rng.one_in(2) { acknowledged - 1 } else { rng.below(acknowledged) };
            let began = Instant::now();
            self.expect(&self.table, chain, n).await;
            self.took(began);
        }
    }

    /// The newest acknowledged node of each chain, asked for through another table's connection.
    pub async fn expect_newest(&self, table: &Table) {
        for (chain, nodes) in self.chains.iter().enumerate() {
            let acknowledged = nodes.acknowledged.load(Ordering::Acquire);
            if acknowledged > 0 {
                self.expect(table, chain, acknowledged - 1).await;
            }
        }
    }

    async fn expect(&self, table: &Table, chain: usize, n: u64) {
        match table.get(&Get::new(self.key(chain, n))).await {
            Ok(row) if row.value(b"f", b"prev") == Some(&self.previous(chain, n)[..]) => {
                self.reads.fetch_add(1, Ordering::Relaxed);
            }
            Ok(row) => self.contradicts(format!("node {n} of chain {chain} is acknowledged, and read as {row:?}")),
            Err(_) => {
                self.errors.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn contradicts(&self, what: String) {
        println!("CONTRADICTION: {what}");
        self.contradictions.lock().expect("no panic").push(what);
    }

    fn took(&self, began: Instant) {
        let mut slowest = self.slowest.lock().expect("no panic");
        *slowest = began.elapsed().max(*slowest);
    }

    /// The slowest call since this was asked last.
    pub fn take_slowest(&self) -> Duration {
        std::mem::take(&mut *self.slowest.lock().expect("no panic"))
    }

    /// What there is of it, for the log.
    pub fn counts(&self) -> String {
        let acknowledged: u64 = self.chains.iter().map(|chain| chain.acknowledged.load(Ordering::Acquire)).sum();
        let (reads, errors) = (self.reads.load(Ordering::Relaxed), self.errors.load(Ordering::Relaxed));
        format!("{acknowledged} nodes acknowledged, {reads} read, {errors} calls given up")
    }

    /// Goes through the whole table: every acknowledged node must be there and name the one before it.
    ///
    /// # Errors
    /// What is missing or was read wrong at any time, the first of each.
    pub async fn verify(&self) -> Result<u64, Vec<String>> {
        let mut found: Vec<Vec<bool>> =
            self.chains.iter().map(|c| vec![false; c.acknowledged.load(Ordering::Acquire) as usize]).collect();
        let mut scanner = self.table.scan(Scan::default(), ScanOptions::default());
        let mut wrong = self.contradictions.lock().expect("no panic").clone();
        let mut nodes = 0;
        while let Some(row) = scanner.next().await.map_err(|error| vec![format!("the scan fails: {error}")])? {
            let number = |at: usize| row.row().get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_be_bytes);
            let (Some(chain), Some(n)) = (number(8), number(16)) else {
                wrong.push(format!("a row that nobody wrote: {:?}", row.row()));
                continue;
            };
            if row.value(b"f", b"prev") != Some(&self.previous(chain as usize, n)[..]) {
                wrong.push(format!("node {n} of chain {chain} names another one: {row:?}"));
            }
            if let Some(is_there) = found.get_mut(chain as usize).and_then(|chain| chain.get_mut(n as usize)) {
                *is_there = true;
                nodes += 1;
            }
        }
        let mut lost = BTreeMap::new();
        for (chain, nodes) in found.iter().enumerate() {
            let missing: Vec<usize> = nodes.iter().enumerate().filter(|(_, there)| !**there).map(|(n, _)| n).collect();
            if let Some(first) = missing.first() {
                lost.insert(chain, format!("{} nodes of chain {chain} are lost, the first is {first}", missing.len()));
            }
        }
        wrong.extend(lost.into_values());
        if wrong.is_empty() { Ok(nodes) } else { Err(wrong) }
    }
}
