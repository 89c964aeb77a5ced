//! Twice the capacity for some minutes, then nothing: how soon a small get takes as long as before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use client::{Connection, Options, ScanOptions, Table};
use filter::{Comparator, CompareOp, Filter};
use model::{Get, Scan, TableName};
use tokio::task::JoinSet;

use super::{OverloadArguments, fill, key, ms, start};
use crate::server::Site;
use tools::stats::{Latencies, Usage};

const TABLE: &str = "overload";
const ROWS: u64 = 20_000;
/// Rows that each scan goes through and passes none of: work for the server, and little for its client.
const SCANNED_ROWS: u64 = 1000;
/// Clients that measure what the server can do.
const CLOSED_LOOPS: u64 = 32;
const CAPACITY_SECONDS: u64 = 10;
/// How long a client of the overload waits for its answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Scans at once at most; beyond that a client does not even ask.
const MOST_AT_ONCE: usize = 20_000;
/// When gets must take as long as before again.
const RECOVERED: Duration = Duration::from_secs(1);

/// Gets every 5 ms, each as when it was due and how long it took.
struct Gets {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<anyhow::Result<Vec<(Instant, Duration)>>>,
}

impl Gets {
    /// Starts them on a thread of their own, so that the load's program is not what holds them up.
    fn start(site: &Site) -> anyhow::Result<Gets> {
        let (connect, stop) = (site.connector(), Arc::new(AtomicBool::new(false)));
        let stopping = stop.clone();
        let thread = std::thread::Builder::new().name("gets".into()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let connection = connect();
                let table = connection.table(&TableName::parse(TABLE)?);
                table.get(&Get::new(Bytes::from(key(0)))).await?;
                let (mut all, mut due) = (Vec::new(), Instant::now());
                for n in 0_u64.. {
                    if stopping.load(Ordering::Relaxed) {
                        break;
                    }
                    table.get(&Get::new(Bytes::from(key(n.wrapping_mul(7919) % ROWS)))).await?;
                    all.push((due, due.elapsed()));
                    due += Duration::from_millis(5);
                    tokio::time::sleep_until(due.into()).await;
                }
                Ok(all)
            })
        })?;
        Ok(Gets { stop, thread })
    }

    async fn finish(self) -> anyhow::Result<Vec<(Instant, Duration)>> {
        self.stop.store(true, Ordering::Relaxed);
        let joined = tokio::task::spawn_blocking(move || self.thread.join()).await?;
        joined.map_err(|_| anyhow::anyhow!("the thread of gets panicked"))?
    }
}

fn latencies<'a>(gets: impl Iterator<Item = &'a (Instant, Duration)>) -> Latencies {
    gets.fold(Latencies::new(), |mut latencies, (_, took)| {
        latencies.record(*took);
        latencies
    })
}

/// Runs it, prints its table, and says whether the target is met.
pub(super) fn run(arguments: &OverloadArguments) -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure(arguments))
}

async fn measure(arguments: &OverloadArguments) -> anyhow::Result<bool> {
    let mut site = start(&arguments.common, &[]).await?;
    fill(&site.connect(), TABLE, ROWS, 100).await?;
    let gets = Gets::start(&site)?;
    let from = Instant::now();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let normal_until = Instant::now();
    let per_second = capacity(&site).await?;
    let overload_from = Instant::now();
    let load = overload(&site, per_second * 2.0, Duration::from_secs_f64(arguments.minutes * 60.0)).await?;
    let overload_until = Instant::now();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let until = Instant::now();
    let gets = gets.finish().await?;
    let peak_bytes = Usage::of(site.pid())?.peak_bytes;
    site.clear();
    let between = |a: Instant, b: Instant| gets.iter().filter(move |(due, _)| (a..b).contains(due));
    let normal = latencies(between(from, normal_until));
    // Twice its slowest hundredth, and what a machine with other work does by itself.
    let slow = Duration::from_nanos(normal.percentile(99.0) * 2).max(Duration::from_millis(10));
    let last_slow = between(overload_until, until).rfind(|(_, took)| *took > slow);
    let recovered = last_slow.map_or(Duration::ZERO, |(due, took)| *due + *took - overload_until);
    println!("{:<28}{:>10}{:>10}{:>10}{:>10}", "gets (ms)", "p50", "p99", "p99.9", "longest");
    for (name, latencies) in [
        ("before", normal),
        ("at twice the capacity", latencies(between(overload_from, overload_until))),
        ("in the second after it", latencies(between(overload_until, overload_until + RECOVERED))),
        ("later", latencies(between(overload_until + RECOVERED, until))),
    ] {
        let at = |percent| ms(Duration::from_nanos(latencies.percentile(percent)));
        let longest = ms(Duration::from_nanos(latencies.greatest()));
        println!("{name:<28}{:>10}{:>10}{:>10}{longest:>10}", at(50.0), at(99.0), at(99.9));
    }
    println!("capacity {per_second:.0} scans a second; {load}; at most {} MiB resident", peak_bytes >> 20);
    println!("the last get over {} ms ended {} ms after the overload", ms(slow), ms(recovered));
    if recovered > RECOVERED {
        println!("missed: normal latency came after {} ms, not {} ms", ms(recovered), ms(RECOVERED));
    }
    Ok(recovered <= RECOVERED)
}

/// A scan over a thousand rows that passes none.
async fn scan(table: &Table, n: u64) -> anyhow::Result<()> {
    let first = n.wrapping_mul(6007) % (ROWS - SCANNED_ROWS);
    let nothing = Comparator::Substring { substring: "no such thing".to_owned() };
    let scan = Scan {
        start_row: Bytes::from(key(first)),
        stop_row: Bytes::from(key(first + SCANNED_ROWS)),
        filter: Some(Arc::new(Filter::Value { op: CompareOp::Equal, comparator: Some(nothing) })),
        ..Scan::default()
    };
    let mut scanner = table.scan(scan, ScanOptions::default());
    while scanner.next_batch().await?.is_some() {}
    Ok(())
}

/// Scans a second that the server does for clients which ask again when they are answered.
async fn capacity(site: &Site) -> anyhow::Result<f64> {
    let connection = site.connect();
    let done = Arc::new(AtomicU64::new(0));
    let mut clients = JoinSet::new();
    for client in 0..CLOSED_LOOPS {
        let (table, done) = (connection.table(&TableName::parse(TABLE)?), done.clone());
        clients.spawn(async move {
            for n in 0_u64.. {
                scan(&table, client * 1_000_003 + n).await?;
                done.fetch_add(1, Ordering::Relaxed);
            }
            anyhow::Ok(())
        });
    }
    tokio::time::sleep(Duration::from_secs(CAPACITY_SECONDS)).await;
    clients.abort_all();
    let done = done.load(Ordering::Relaxed);
    anyhow::ensure!(done > 0, "no scan was done in {CAPACITY_SECONDS} s");
    Ok(done as f64 / CAPACITY_SECONDS as f64)
}

/// Asks at a fixed rate, whatever is answered, and tells what became of it. When it returns nobody asks any more.
async fn overload(site: &Site, per_second: f64, lasts: Duration) -> anyhow::Result<String> {
    let options = Options::zookeeper(&site.zookeeper());
    let connection =
        Connection::open(Options { rpc_timeout: PATIENCE, operation_timeout: PATIENCE, retries: 3, ..options });
    let table = connection.table(&TableName::parse(TABLE)?);
    scan(&table, 0).await.context("the overload's first scan")?;
    let (mut clients, begun) = (JoinSet::new(), Instant::now());
    let (mut asked, mut kept_back, mut done, mut failed) = (0_u64, 0_u64, 0_u64, 0_u64);
    let mut count = |ended: Result<anyhow::Result<()>, tokio::task::JoinError>| match ended {
        Ok(Ok(())) => done += 1,
        _ => failed += 1,
    };
    while begun.elapsed() < lasts {
        let due = (begun.elapsed().as_secs_f64() * per_second) as u64;
        while asked + kept_back < due {
            if clients.len() >= MOST_AT_ONCE {
                kept_back += 1;
                continue;
            }
            let (table, n) = (table.clone(), asked);
            clients.spawn(async move { tokio::time::timeout(PATIENCE, scan(&table, n)).await? });
            asked += 1;
        }
        while let Some(ended) = clients.try_join_next() {
            count(ended);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let waiting = clients.len();
    drop((clients, table, connection));
    Ok(format!(
        "at {per_second:.0} a second {done} done, {failed} failed, {waiting} open at the end, {kept_back} not sent"
    ))
}
