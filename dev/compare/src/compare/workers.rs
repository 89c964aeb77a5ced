//! Clients of each kind: what one operation is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::bail;
use base::Rng;
use bytes::Bytes;
use client::{Put, ScanOptions, Scanner, Table};
use filter::{Comparator, CompareOp, Filter};
use model::{Durability, Get, Mutation, Scan};

use super::drive::Worker;
use tools::ycsb::binding::Binding;
use tools::ycsb::core::{Core, Player};
use tools::ycsb::measurements::{Measurements, Status};
use tools::ycsb::player;

/// The one family.
pub const FAMILY: &str = "info0";
/// The one column.
pub const QUALIFIER: &str = "0";
/// Bytes of a value.
const VALUE_BYTES: usize = 1_000;
/// Rows of a range scan.
pub const RANGE_ROWS: u64 = 100;
/// Rows of a batch.
pub const BATCH_ROWS: u64 = 100;

/// A table's rows: their number, and values to write.
#[derive(Clone)]
pub struct Rows {
    /// How many there are.
    pub count: u64,
    values: Arc<Vec<Vec<u8>>>,
}

impl Rows {
    /// `count` rows, with PerformanceEvaluation's kind of values: runs of eight equal letters.
    pub fn new(count: u64, rng: &Rng) -> Rows {
        Rows::of_size(count, VALUE_BYTES, rng)
    }

    /// As [`Rows::new`] with values of about `value_bytes`.
    pub fn of_size(count: u64, value_bytes: usize, rng: &Rng) -> Rows {
        let letter = || b'A' + rng.below(26) as u8;
        let value = || (0..value_bytes / 8).flat_map(|_| [letter(); 8]).collect::<Vec<u8>>();
        Rows { count, values: Arc::new((0..64).map(|_| value()).collect()) }
    }

    /// PerformanceEvaluation's keys: 26 digits.
    pub fn key(number: u64) -> Vec<u8> {
        let (mut key, mut rest) = (vec![b'0'; 26], number);
        for digit in key.iter_mut().rev() {
            if rest == 0 {
                break;
            }
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        key
    }

    /// Keys that split the rows evenly into `regions`.
    pub fn splits(&self, regions: u64) -> Vec<Bytes> {
        (1..regions).map(|n| Bytes::from(Rows::key(self.count * n / regions))).collect()
    }

    /// A put of row `number`.
    pub fn put(&self, number: u64, rng: &Rng, durability: Durability) -> Mutation {
        let value = &self.values[rng.below(self.values.len() as u64) as usize];
        Put::new(Rows::key(number)).add(FAMILY, QUALIFIER, value).durability(durability).build()
    }
}

/// Random gets.
pub struct Gets(pub Table, pub Rows, pub Rng);

impl Worker for Gets {
    async fn step(&mut self) -> anyhow::Result<Option<u64>> {
        let Gets(table, rows, rng) = self;
        let row = table.get(&Get::new(Rows::key(rng.below(rows.count)))).await?;
        if row.is_empty() {
            bail!("a row is missing");
        }
        Ok(Some(1))
    }
}

/// Single puts to random rows.
pub struct Puts(pub Table, pub Rows, pub Rng, pub Durability);

impl Worker for Puts {
    async fn step(&mut self) -> anyhow::Result<Option<u64>> {
        let Puts(table, rows, rng, durability) = self;
        table.put(&rows.put(rng.below(rows.count), rng, *durability)).await?;
        Ok(Some(1))
    }
}

/// Batches of puts until every row is there, in an order that is all over the table.
pub struct Load {
    /// Into which table.
    pub table: Table,
    /// Which rows.
    pub rows: Rows,
    /// For values.
    pub rng: Rng,
    /// The next batch, shared by all clients.
    pub next: Arc<AtomicU64>,
    /// Where to end; at most all rows.
    pub until: u64,
}

/// Prime to every number of rows that is no multiple of it.
const STRIDE: u64 = 1_000_003;

impl Worker for Load {
    async fn step(&mut self) -> anyhow::Result<Option<u64>> {
        let start = self.next.fetch_add(BATCH_ROWS, Ordering::Relaxed);
        if start >= self.until {
            return Ok(None);
        }
        let end = (start + BATCH_ROWS).min(self.until);
        let number = |n: u64| (n * STRIDE) % self.rows.count;
        let puts: Vec<Mutation> =
            (start..end).map(|n| self.rows.put(number(n), &self.rng, Durability::SyncWal)).collect();
        self.table.mutate_all(&puts).await?;
        Ok(Some(end - start))
    }
}

/// Whole tables, row after row; a step is one reply.
pub struct FullScan {
    table: Table,
    options: ScanOptions,
    /// The scan that goes on.
    scanner: Option<Scanner>,
}

/// Rows of a call where PerformanceEvaluation scans and nothing else is said.
const PE_CACHING: u32 = 30;

impl FullScan {
    /// In calls as large as the server gives.
    pub fn new(table: &Table) -> FullScan {
        FullScan { table: table.clone(), options: ScanOptions::default(), scanner: None }
    }

    /// In PerformanceEvaluation's small calls.
    pub fn in_small_calls(table: &Table) -> FullScan {
        FullScan { options: ScanOptions { caching: PE_CACHING, ..ScanOptions::default() }, ..FullScan::new(table) }
    }
}

impl Worker for FullScan {
    async fn step(&mut self) -> anyhow::Result<Option<u64>> {
        let FullScan { table, options, scanner } = self;
        let scanner = scanner.get_or_insert_with(|| table.scan(Scan::default(), options.clone()));
        match scanner.next_batch().await? {
            Some(rows) => Ok(Some(rows.len() as u64)),
            None => {
                self.scanner = None;
                Ok(Some(0))
            }
        }
    }
}

/// A tenth of the table at a time, everything filtered out at the server.
pub struct FilteredScan(pub Table, pub Rows, pub Rng);

impl Worker for FilteredScan {
    async fn step(&mut self) -> anyhow::Result<Option<u64>> {
        let FilteredScan(table, rows, rng) = self;
        // as long as the values, and not among them
        let nobody = Comparator::Binary { value: Bytes::from(vec![b'~'; VALUE_BYTES]) };
        let filter = Filter::Value { op: CompareOp::Equal, comparator: Some(nobody) };
        let tenth = rng.below(10);
        let (first, end) = (rows.count * tenth / 10, rows.count * (tenth + 1) / 10);
        let scan = Scan {
            start_row: Bytes::from(Rows::key(first)),
            stop_row: Bytes::from(Rows::key(end)),
            filter: Some(Arc::new(filter)),
            ..Scan::default()
        };
        let mut scanner = table.scan(scan, ScanOptions::default());
        if scanner.next().await?.is_some() {
            bail!("a row came through the filter");
        }
        Ok(Some(end - first))
    }
}

/// 100 rows from a random one on.
pub struct RangeScan(pub Table, pub Rows, pub Rng);

impl Worker for RangeScan {
    async fn step(&mut self) -> anyhow::Result<Option<u64>> {
        let RangeScan(table, rows, rng) = self;
        range_scan(table, rows, rng).await.map(Some)
    }
}

async fn range_scan(table: &Table, rows: &Rows, rng: &Rng) -> anyhow::Result<u64> {
    let first = rng.below(rows.count.saturating_sub(RANGE_ROWS).max(1));
    let scan = Scan {
        start_row: Bytes::from(Rows::key(first)),
        stop_row: Bytes::from(Rows::key(first + RANGE_ROWS)),
        ..Scan::default()
    };
    let options = ScanOptions { caching: RANGE_ROWS as u32, limit: Some(RANGE_ROWS), ..ScanOptions::default() };
    let mut scanner = table.scan(scan, options);
    let mut found = 0;
    while let Some(batch) = scanner.next_batch().await? {
        found += batch.len() as u64;
    }
    if found != RANGE_ROWS.min(rows.count) {
        bail!("{found} rows where {RANGE_ROWS} are");
    }
    Ok(found)
}

/// Half gets, nearly half puts, one in twenty a range scan.
pub struct Mixed(pub Table, pub Rows, pub Rng);

impl Worker for Mixed {
    async fn step(&mut self) -> anyhow::Result<Option<u64>> {
        let Mixed(table, rows, rng) = self;
        match rng.below(20) {
            0..10 => {
                table.get(&Get::new(Rows::key(rng.below(rows.count)))).await?;
            }
            10..19 => table.put(&rows.put(rng.below(rows.count), rng, Durability::SyncWal)).await?,
            _ => return range_scan(table, rows, rng).await.map(Some),
        }
        Ok(Some(1))
    }
}

/// A client of one of YCSB's workloads.
pub struct Ycsb {
    /// The workload.
    pub core: Arc<Core>,
    /// Its draws.
    pub player: Player,
    /// Its table.
    pub binding: Binding,
    /// By kind of operation; the comparison itself needs only the whole.
    pub measurements: Arc<Measurements>,
    /// Records still to be loaded, shared by all clients; `None` plays transactions.
    pub to_load: Option<Arc<AtomicU64>>,
}

impl Worker for Ycsb {
    async fn step(&mut self) -> anyhow::Result<Option<u64>> {
        let operation = match &self.to_load {
            None => self.player.transaction(),
            Some(left) => {
                let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
                taken.is_ok().then(|| self.player.load())
            }
        };
        let Some(operation) = operation else { return Ok(None) };
        match player::play(&self.core, &self.binding, &self.measurements, operation, None).await {
            Status::Ok => Ok(Some(1)),
            status => bail!("YCSB: {status:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_are_those_of_performance_evaluation() {
        let rng = Rng::seeded(1);
        let rows = Rows::new(1000, &rng);
        assert_eq!(Rows::key(42), b"00000000000000000000000042");
        assert_eq!(Rows::key(u64::MAX), b"00000018446744073709551615");
        assert_eq!(rows.splits(4), [250, 500, 750].map(|n| Bytes::from(Rows::key(n))));
        for value in rows.values.iter() {
            assert_eq!(value.len(), VALUE_BYTES);
            assert!(value.chunks(8).all(|run| run.iter().all(|b| *b == run[0] && b.is_ascii_uppercase())));
        }
        let all: std::collections::HashSet<u64> = (0..rows.count).map(|n| n * STRIDE % rows.count).collect();
        assert_eq!(all.len(), 1000, "every row once");
    }
}
