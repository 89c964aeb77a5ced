//! The polite client: a few operations at a fixed pace, each timed from the moment at which it was due, so that a stall counts for
//! everything that it holds up.

use std::future::Future;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use client::{Connection, Put, ScanOptions, Table};
use model::{FamilyDescriptor, Get, Scan, TableDescriptor, TableName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use tools::stats::Latencies;

/// Rows of the polite client's table.
pub(super) const ROWS: u64 = 10_000;
/// Its name.
pub(super) const TABLE: &str = "polite";
const FAMILY: &str = "f";
const SCANNED_ROWS: u64 = 100;
/// What the probe of the file system writes before each sync.
const PROBE_BYTES: usize = 4096;
/// Nobody waits longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long everything took that the polite client did in one phase.
#[derive(Debug, Default)]
pub(super) struct Waits {
    pub gets: Latencies,
    pub puts: Latencies,
    pub scans: Latencies,
    pub tables: Latencies,
    pub pages: Latencies,
    /// A write of 4 KiB and its fdatasync, on the servers' file system.
    pub probe: Latencies,
    /// Operations that failed, and what the first of them said.
    pub failures: (u64, String),
}

pub(super) fn key(number: u64) -> String {
    format!("{number:012}")
}

/// Makes the polite client's table and fills it.
pub(super) async fn prepare(connection: &Connection) -> anyhow::Result<()> {
    let name = TableName::parse(TABLE)?;
    let family = FamilyDescriptor::new(FAMILY);
    connection.admin().create_table(&TableDescriptor::new(name.clone(), [family]), &[]).await?;
    let table = connection.table(&name);
    for first in (0..ROWS).step_by(1000) {
        let puts: Vec<_> =
            (first..first + 1000).map(|n| Put::new(key(n)).add(FAMILY, "q", [b'v'; 100]).build()).collect();
        table.mutate_all(&puts).await?;
    }
    Ok(())
}

/// Runs the polite client and the probe until `stop`, on threads of their own, so that the neighbours' program is not what holds it up.
///
/// # Errors
/// A thread cannot be started, or the probe cannot write.
pub(super) fn run(
    connect: impl Fn() -> Connection + Send + 'static,
    page_port: u16,
    dir: &Path,
    stop: Arc<AtomicBool>,
) -> anyhow::Result<Waits> {
    let file = dir.join("probe");
    let stop_probe = stop.clone();
    let probe = std::thread::Builder::new().name("probe".into()).spawn(move || probe(&file, &stop_probe))?;
    let client = std::thread::Builder::new().name("polite".into()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(client(&connect(), page_port, &stop))
    })?;
    let mut waits = client.join().map_err(|_| anyhow::anyhow!("the polite client panicked"))??;
    waits.probe = probe.join().map_err(|_| anyhow::anyhow!("the probe panicked"))??;
    Ok(waits)
}

async fn client(connection: &Connection, page_port: u16, stop: &AtomicBool) -> anyhow::Result<Waits> {
    let table = connection.table(&TableName::parse(TABLE)?);
    // Locations are known before anything counts.
    table.get(&Get::new(Bytes::from(key(0)))).await?;
    let ms = Duration::from_millis;
    let (gets, puts, scans, tables, pages) = tokio::join!(
        paced(stop, ms(5), |n| get(&table, n)),
        paced(stop, ms(10), |n| put(&table, n)),
        paced(stop, ms(50), |n| scan(&table, n)),
        paced(stop, ms(3000), |n| create(connection, n)),
        paced(stop, ms(1000), |_| page(page_port)),
    );
    let mut waits = Waits::default();
    for (place, (latencies, failures)) in [
        (&mut waits.gets, gets),
        (&mut waits.puts, puts),
        (&mut waits.scans, scans),
        (&mut waits.tables, tables),
        (&mut waits.pages, pages),
    ] {
        *place = latencies;
        waits.failures.0 += failures.0;
        if waits.failures.1.is_empty() {
            waits.failures.1 = failures.1;
        }
    }
    Ok(waits)
}

/// Calls `work` every `period`, and times it from when it was due. Returns how long it took, and of failures how many and the first.
async fn paced<F: Future<Output = anyhow::Result<()>>>(
    stop: &AtomicBool,
    period: Duration,
    work: impl Fn(u64) -> F,
) -> (Latencies, (u64, String)) {
    let (mut latencies, mut failures) = (Latencies::new(), (0, String::new()));
    let start = Instant::now();
    for n in 0_u32.. {
        let due = start + period * n;
        tokio::time::sleep_until(due).await;
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let result = tokio::time::timeout(PATIENCE, work(u64::from(n))).await;
        latencies.record(due.elapsed());
        let error = match result {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => format!("{error:#}"),
            Err(_) => format!("no answer in {} s", PATIENCE.as_secs()),
        };
        failures.0 += 1;
        if failures.1.is_empty() {
            failures.1 = error;
        }
    }
    (latencies, failures)
}

async fn get(table: &Table, n: u64) -> anyhow::Result<()> {
    let row = table.get(&Get::new(Bytes::from(key(n.wrapping_mul(7919) % ROWS)))).await?;
    if row.is_empty() { bail!("a row is missing") } else { Ok(()) }
}

async fn put(table: &Table, n: u64) -> anyhow::Result<()> {
    let put = Put::new(key(n.wrapping_mul(104_729) % ROWS)).add(FAMILY, "q", [b'w'; 100]);
    Ok(table.put(&put.durability(model::Durability::FsyncWal).build()).await?)
}

async fn scan(table: &Table, n: u64) -> anyhow::Result<()> {
    let first = n.wrapping_mul(6007) % (ROWS - SCANNED_ROWS);
    let scan = Scan { start_row: Bytes::from(key(first)), ..Scan::default() };
    let mut scanner =
        table.scan(scan, ScanOptions { limit: Some(SCANNED_ROWS), caching: 100, ..ScanOptions::default() });
    let mut rows = 0;
    while scanner.next().await?.is_some() {
        rows += 1;
    }
    if rows == SCANNED_ROWS { Ok(()) } else { bail!("a scan found {rows} rows of {SCANNED_ROWS}") }
}

async fn create(connection: &Connection, n: u64) -> anyhow::Result<()> {
    let name = TableName::parse(&format!("polite{n}"))?;
    let descriptor = TableDescriptor::new(name, [FamilyDescriptor::new(FAMILY)]);
    Ok(connection.admin().create_table(&descriptor, &[]).await?)
}

async fn page(port: u16) -> anyhow::Result<()> {
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(b"GET /jmx HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let status = answer.get(9..12).unwrap_or_default();
    if status == b"200" { Ok(()) } else { bail!("a status page answers {}", String::from_utf8_lossy(status)) }
}

fn probe(file: &Path, stop: &AtomicBool) -> anyhow::Result<Latencies> {
    let mut file = std::fs::File::create(file).with_context(|| format!("cannot make {}", file.display()))?;
    let mut latencies = Latencies::new();
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(10));
        let start = std::time::Instant::now();
        file.write_all(&[0; PROBE_BYTES])?;
        file.sync_data()?;
        latencies.record(start.elapsed());
    }
    Ok(latencies)
}
