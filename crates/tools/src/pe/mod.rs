//! HBase's PerformanceEvaluation: named tests over a table of 26-digit rows.
//!
//! Options, table, keys, values and the words of its reports are the Java tool's, so that either tool reads what the
//! other wrote and scripts that read one's output read the other's. Clients are tasks on as many threads as there are
//! processors; each has a connection of its own unless `--oneCon` or `--connCount` say otherwise.
//! Where it differs: there is no MapReduce (`--nomapred` is always so), no classes of Java's; the
//! asynchronous writes send each row once (in Java a row is sent twice).
//! Follows: `org.apache.hadoop.hbase.PerformanceEvaluation`.

mod command;
mod data;
mod histogram;
mod options;
mod table;
mod usage;
mod work;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use base::Config;
use client::{Connection, Options};
use model::TableName;

pub use command::Command;
pub use data::{format_row, generate_data};
pub use options::{Parsed, TestOptions, parse};

use crate::log::Log;
use histogram::Histogram;
use work::Work;

/// The tool's exit code when a run fails: -1.
const FAILED: u8 = 255;

/// How one client ended.
struct RunResult {
    duration_ms: u64,
    latencies: Histogram,
    over_threshold: u64,
    /// Reads that a replica answered.
    from_replicas: u64,
}

/// Runs the command with the arguments behind its name.
///
/// # Errors
/// A sentence that says what is wrong and what to do.
pub fn run(config: &Config, arguments: &[String]) -> anyhow::Result<ExitCode> {
    match parse(arguments) {
        Parsed::Usage { complaint, asked } => {
            if let Some(complaint) = complaint {
                eprintln!("{complaint}");
            }
            eprint!("{}", usage::text());
            Ok(if asked { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
        }
        Parsed::Invalid(why) => {
            eprintln!("{why}");
            Ok(ExitCode::from(FAILED))
        }
        Parsed::Run(options, defines) => {
            let mut config = config.clone();
            defines.into_iter().for_each(|(key, value)| config.set(key, value));
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            runtime.block_on(run_test(&config, *options))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn run_test(config: &Config, options: TestOptions) -> anyhow::Result<()> {
    let log = Arc::new(Log::new("hbase.PerformanceEvaluation"));
    let name = TableName::parse(&options.table_name)?;
    if options.command == Command::FilterScan && options.per_client_run_rows == options::DEFAULT_ROWS_PER_GB {
        log.warn(
            "main",
            format!(
                "Option \"rows\" unspecified. Using default value {}. This could take a very long time.",
                options.per_client_run_rows
            ),
        );
    }
    log.info("main", format!("{} test run options={}", options.command.class(), options.to_json()));
    let mut client_options = Options::from_config(config);
    if options.use_tags && !config.is_set(client::settings::CODEC_KEY) {
        // The default codec would drop them.
        client_options.codec = rpc::CellCodec::KeyValueWithTags;
    }
    let first = Connection::open(client_options.clone());
    let admin = first.admin();
    table::check(&admin, &name, &options, &log).await?;
    run_clients(&first, &client_options, &name, &options, &log).await
}

async fn run_clients(
    first: &Connection,
    client_options: &Options,
    name: &TableName,
    options: &TestOptions,
    log: &Arc<Log>,
) -> anyhow::Result<()> {
    let count = options.connections();
    let mut connections = vec![first.clone()];
    connections.extend((1..count).map(|_| Connection::open(client_options.clone())));
    log.info("main", format!("Created {count} connections for {} threads", options.num_client_threads));
    let mut clients = Vec::new();
    for index in 0..options.num_client_threads as usize {
        let mut own = options.clone();
        if own.start_row == 0 {
            own.start_row = index as u64 * own.per_client_run_rows;
        }
        let (connection, name, log) = (connections[index % count].clone(), name.clone(), log.clone());
        clients.push(tokio::spawn(async move {
            let thread = format!("TestClient-{index}");
            let rows = own.per_client_run_rows;
            let threshold = own.latency_threshold_ms;
            let result = run_one_client(connection, &name, own, &log, &thread).await?;
            log.info(&thread, format!("Finished {thread} in {}ms over {rows} rows", result.duration_ms));
            if threshold > 0 {
                let over = result.over_threshold;
                log.info(&thread, format!("Number of replies over latency threshold {threshold}(ms) is {over}"));
            }
            anyhow::Ok(result)
        }));
    }
    let mut results = Vec::new();
    for client in clients {
        results.push(client.await.context("a client ended early")??);
    }
    summarize(options, &mut results, log);
    Ok(())
}

fn summarize(options: &TestOptions, results: &mut [RunResult], log: &Log) {
    let test = options.command.class();
    let durations: Vec<String> = results.iter().map(|r| r.duration_ms.to_string()).collect();
    log.info("main", format!("[{test}] Summary of timings (ms): [{}]", durations.join(", ")));
    results.sort_by_key(|r| r.duration_ms);
    let count = results.len() as u64;
    let total: u64 = results.iter().map(|r| r.duration_ms).sum();
    let latency = results.iter().map(|r| r.latencies.snapshot().mean).sum::<f64>() / count as f64;
    let rows = options.per_client_run_rows as f64;
    let rate: f64 = results.iter().map(|r| rows / r.duration_ms.max(1) as f64 * 1000.0).sum();
    let (min, max) = (results.first().map_or(0, |r| r.duration_ms), results.last().map_or(0, |r| r.duration_ms));
    log.info("main", format!("[{test} duration ]\tMin: {min}ms\tMax: {max}ms\tAvg: {}ms", total / count));
    log.info("main", format!("[ Avg latency (us)]\t{}", latency.round()));
    log.info("main", format!("[ Avg TPS/QPS]\t{}\t row per second", rate.round()));
    if options.replicas > 1 {
        let from_replicas: u64 = results.iter().map(|r| r.from_replicas).sum();
        log.info("main", format!("[results from replica regions] {from_replicas}"));
    }
}

async fn run_one_client(
    connection: Connection,
    name: &TableName,
    options: TestOptions,
    log: &Log,
    thread: &str,
) -> anyhow::Result<RunResult> {
    let class = format!("class org.apache.hadoop.hbase.PerformanceEvaluation${}", options.command.class());
    let (offset, rows) = (options.start_row, options.per_client_run_rows);
    log.info(thread, format!("Start {class} at offset {offset} for {rows} rows"));
    let every_n = (1.0 / options.sample_rate) as u64;
    log.info(thread, format!("Sampling 1 every {every_n} out of {rows} total rows."));
    let options = Arc::new(options);
    let mut work = Work::new(connection, name, options.clone(), log, thread);
    log.info(thread, format!("Timed test starting in thread {thread}"));
    let started_us = log.now_us();
    let mut result = RunResult { duration_ms: 0, latencies: Histogram::new(), over_threshold: 0, from_replicas: 0 };
    timed(&mut work, &options, every_n, &mut result, log, thread).await?;
    work.finish().await?;
    result.from_replicas = work.replica_latencies.count();
    result.duration_ms = (log.now_us() - started_us) / 1000;
    report(&options, &work, &result, log, thread);
    let average = if options.value_random { options.value_size / 2 } else { options.value_size };
    let row_bytes = 26 + (u64::from(average) + 5 + 1) * u64::from(options.columns) * u64::from(options.families);
    let sampled = (rows as f64 * f64::from(options.sample_rate)) as u64;
    let mbps = (sampled * row_bytes) as f64 / result.duration_ms.max(1) as f64 * 1000.0 / 1_048_576.0;
    let mbps = trimmed(mbps);
    let duration = result.duration_ms;
    log.info(thread, format!("Finished {class} in {duration}ms at offset {offset} for {rows} rows ({mbps} MB/s)"));
    Ok(result)
}

/// At most two digits behind the point, none that is an idle zero.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

async fn timed(
    work: &mut Work,
    options: &TestOptions,
    every_n: u64,
    result: &mut RunResult,
    log: &Log,
    thread: &str,
) -> client::Result<()> {
    let (start, last) = work.rows();
    let period = work.reporting_period();
    for cycle in 0..options.cycles {
        if options.cycles > 1 {
            log.info(thread, format!("Cycle={cycle} of {}", options.cycles));
        }
        for i in (start..last).filter(|i| i % every_n == 0) {
            let began_us = log.now_us();
            let sent = work.row(i, log, thread).await?;
            if i - start <= options.measure_after {
                continue;
            }
            if sent {
                let latency_us = log.now_us() - began_us;
                result.latencies.update(latency_us);
                let threshold_ms = options.latency_threshold_ms;
                result.over_threshold += u64::from(threshold_ms > 0 && latency_us / 1000 >= threshold_ms);
            }
            if i > 0 && i % period == 0 {
                let latency = result.latencies.snapshot().short_report();
                let mut status = format!("row [start={start}, current={i}, last={last}], latency [{latency}]");
                if options.value_random {
                    let sizes = work.value_sizes.snapshot().short_report();
                    status.push_str(&format!(", value size [{sizes}]"));
                }
                log.info(thread, status);
            }
        }
    }
    Ok(())
}

/// What a client says at its end, in one piece.
fn report(options: &TestOptions, work: &Work, result: &RunResult, log: &Log, thread: &str) {
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _held = ONE_AT_A_TIME.lock();
    log.info(thread, format!("Test : {}, Thread : {thread}", options.command.class()));
    let latencies = result.latencies.snapshot();
    log.info(thread, format!("Latency (us) : {}", latencies.report()));
    if options.replicas > 1 {
        let of_replicas = work.replica_latencies.snapshot();
        log.info(thread, format!("Latency (us) from Replica Regions: {}", of_replicas.report()));
    }
    log.info(thread, format!("Num measures (latency) : {}", result.latencies.count()));
    log.info(thread, latencies.pretty_report());
    if work.value_sizes.count() == 0 {
        log.info(thread, "No valueSize statistics available");
        return;
    }
    let sizes = work.value_sizes.snapshot();
    log.info(thread, format!("ValueSize (bytes) : {}", sizes.report()));
    log.info(thread, format!("Num measures (ValueSize): {}", work.value_sizes.count()));
    log.info(thread, sizes.pretty_report());
}

#[cfg(test)]
mod tests {
    #[test]
    fn rates_are_written_without_idle_zeros() {
        assert_eq!([super::trimmed(1.5), super::trimmed(10.0), super::trimmed(0.126)], ["1.5", "10", "0.13"]);
    }
}
