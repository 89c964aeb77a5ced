//! The longest wait of a mixed load, beside that of a probe which sleeps a millisecond at a time and syncs 4 KiB every ten.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use client::{Put, Table};
use model::{Get, TableName};
use tokio::task::JoinSet;

use super::{FAMILY, StallArguments, fill, key, ms, start};

const TABLE: &str = "stall";
const ROWS: u64 = 50_000;
const VALUE_BYTES: usize = 1000;
/// Clients of each kind, and how often each asks.
const CLIENTS: u64 = 8;
const PERIOD: Duration = Duration::from_millis(2);
/// Small, so that flushes and compactions never end.
const FLUSH_SIZE_BYTES: u64 = 8 << 20;
/// How much longer than the probe's longest a wait may be.
const MOST_MORE: Duration = Duration::from_millis(20);

/// The longest of each kind in one run.
#[derive(Clone, Copy, Default)]
struct Longest {
    get: Duration,
    put: Duration,
    sleep: Duration,
    sync: Duration,
}

impl Longest {
    /// How much longer a get took than the probe was held up, and a put.
    fn more(&self) -> [Duration; 2] {
        let probe = self.sleep.max(self.sync);
        [self.get.saturating_sub(probe), self.put.saturating_sub(probe)]
    }
}

/// Runs it, prints its table, and says whether the target is met.
pub(super) fn run(arguments: &StallArguments) -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    println!(
        "{:<8}{:>10}{:>10}{:>14}{:>14}{:>12}{:>12}",
        "longest", "get", "put", "probe: sleep", "probe: sync", "get - probe", "put - probe"
    );
    let (mut gets, mut puts) = (Vec::new(), Vec::new());
    for run in 1..=arguments.runs.max(1) {
        let longest = runtime.block_on(measure(arguments))?;
        let [get, put] = longest.more();
        println!(
            "{:<8}{:>10}{:>10}{:>14}{:>14}{:>12}{:>12}",
            format!("run {run}"),
            ms(longest.get),
            ms(longest.put),
            ms(longest.sleep),
            ms(longest.sync),
            ms(get),
            ms(put)
        );
        gets.push(get);
        puts.push(put);
    }
    let (get, put) = (median(gets), median(puts));
    println!("{:<8}{:>60}{:>12}   (ms)", "median", ms(get), ms(put));
    for (name, more) in [("get", get), ("put", put)] {
        if more > MOST_MORE {
            println!("missed: the longest {name} took {} ms more than the probe, not {}", ms(more), ms(MOST_MORE));
        }
    }
    Ok(get <= MOST_MORE && put <= MOST_MORE)
}

fn median(mut durations: Vec<Duration>) -> Duration {
    durations.sort();
    durations.get(durations.len() / 2).copied().unwrap_or_default()
}

async fn measure(arguments: &StallArguments) -> anyhow::Result<Longest> {
    let flush_size = ("hbase.hregion.memstore.flush.size", FLUSH_SIZE_BYTES.to_string());
    let mut site = start(&arguments.common, &[flush_size]).await?;
    let connection = site.connect();
    fill(&connection, TABLE, ROWS, VALUE_BYTES).await?;
    let stop = Arc::new(AtomicBool::new(false));
    let (stop_probe, file) = (stop.clone(), arguments.common.out.join("probe"));
    let probe = std::thread::Builder::new().name("probe".into()).spawn(move || probe(&file, &stop_probe))?;
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS * 2 {
        let (table, stop) = (connection.table(&TableName::parse(TABLE)?), stop.clone());
        clients.spawn(async move {
            let longest = ask(&table, client, &stop).await?;
            let by_kind = if client % 2 == 0 {
                Longest { get: longest, ..Longest::default() }
            } else {
                Longest { put: longest, ..Longest::default() }
            };
            anyhow::Ok(by_kind)
        });
    }
    tokio::time::sleep(Duration::from_secs(arguments.seconds)).await;
    stop.store(true, Ordering::Relaxed);
    let mut longest = Longest::default();
    while let Some(ended) = clients.join_next().await {
        let of_client = ended??;
        longest.get = longest.get.max(of_client.get);
        longest.put = longest.put.max(of_client.put);
    }
    let joined = tokio::task::spawn_blocking(move || probe.join()).await?;
    (longest.sleep, longest.sync) = joined.map_err(|_| anyhow::anyhow!("the probe panicked"))??;
    site.clear();
    Ok(longest)
}

/// Gets, or puts where `client` is odd, each timed from when it was due; the longest.
async fn ask(table: &Table, client: u64, stop: &AtomicBool) -> anyhow::Result<Duration> {
    let (mut longest, mut due) = (Duration::ZERO, Instant::now());
    for n in 0_u64.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let row = key((client * 7907 + n).wrapping_mul(7919) % ROWS);
        if client.is_multiple_of(2) {
            table.get(&Get::new(Bytes::from(row))).await?;
        } else {
            table.put(&Put::new(row).add(FAMILY, "q", vec![b'b'; VALUE_BYTES]).build()).await?;
        }
        longest = longest.max(due.elapsed());
        due += PERIOD;
        tokio::time::sleep_until(due.into()).await;
    }
    Ok(longest)
}

/// The longest time that a millisecond of sleep took beyond it, and the longest sync of 4 KiB.
fn probe(file: &Path, stop: &AtomicBool) -> anyhow::Result<(Duration, Duration)> {
    let mut file = std::fs::File::create(file).with_context(|| format!("cannot make {}", file.display()))?;
    let (mut longest_sleep, mut longest_sync, mut last_sync) = (Duration::ZERO, Duration::ZERO, Instant::now());
    let nap = Duration::from_millis(1);
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        std::thread::sleep(nap);
        longest_sleep = longest_sleep.max(begun.elapsed().saturating_sub(nap));
        if last_sync.elapsed() >= Duration::from_millis(10) {
            last_sync = Instant::now();
            file.write_all(&[0; 4096])?;
            file.sync_data()?;
            longest_sync = longest_sync.max(last_sync.elapsed());
        }
    }
    Ok((longest_sleep, longest_sync))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_is_how_much_longer_than_the_probe_it_took() {
        let ms = Duration::from_millis;
        let longest = Longest { get: ms(12), put: ms(90), sleep: ms(15), sync: ms(40) };
        assert_eq!(longest.more(), [ms(0), ms(50)]);
        assert_eq!(median(vec![ms(9), ms(1), ms(5)]), ms(5));
    }
}
