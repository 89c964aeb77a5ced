//! Many rows (key of 20 bytes, one value of 100), of which a filter at the servers leaves few: `basalt-sql` beside a scan with a filter of
//! Apache HBase 2.6.4's client on its own server, a thread for each region. Both are loaded by HBase's client, one after the other.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::sql::Target;
use crate::{jvm, run, server, toolchain};

/// Regions of each table: as many as the machine has cores twice over.
const REGIONS: &str = "4";
/// How often each is asked; the median counts.
const TIMES: usize = 5;
/// Letters that values begin with: one row of 17,576.
const PREFIX: &str = "abc";
const LIMIT: Duration = Duration::from_secs(1800);
/// What Basalt may take of HBase's time, and in any case.
const PART_OF_HBASE: f64 = 0.2;
const MOST_MS: f64 = 4000.0;

/// Loads, asks both, prints a table. The cores are those of the servers: Basalt's two processes, HBase's one.
pub fn compare(target: &Target, zookeeper: &str, processes: &[u32], dir: &Path, rows: u64) -> anyhow::Result<usize> {
    let lab = toolchain::jars()?;
    let class_path = jvm::HBASE_2.compile(&lab)?;
    let java = |zookeeper: &str, args: &[&str], log: &str| -> anyhow::Result<String> {
        let mut java = jvm::java_measured(&class_path, "basalt.interop.FilteredScan");
        let ended = run::logged(java.arg(zookeeper).args(args), &dir.join(log), LIMIT)?;
        if !ended.well {
            bail!("FilteredScan {args:?} failed: {}", ended.output);
        }
        Ok(ended.output)
    };
    let rows_text = rows.to_string();
    let (load, scan) = (["load", "filtered", &rows_text, REGIONS], ["scan", "filtered", PREFIX]);
    let cores = |processes: &[u32]| processes.iter().filter_map(|p| run::cpu_time(*p)).sum::<Duration>();

    let start = Instant::now();
    java(zookeeper, &load, "filter-load-basalt.log")?;
    println!("    basalt has {rows} rows after {:.0} s", start.elapsed().as_secs_f64());
    let psql = |sql: &str| -> anyhow::Result<String> {
        let mut psql = target.psql();
        run::stdout("psql", psql.args(["-v", "ON_ERROR_STOP=1", "-c", sql]))
    };
    psql("create view filtered_rows (k text primary key, \"f\".\"v\" text) with (hbase_table = 'filtered')")?;
    // Blocks are in the cache then, as many as it takes, and its memory is there.
    java(zookeeper, &scan, "filter-warm-basalt.log")?;
    let mut ours = Vec::new();
    let mut found = String::new();
    let cpu = cores(processes);
    for _ in 0..TIMES {
        let start = Instant::now();
        found = psql(&format!("select count(*) from filtered_rows where v like '{PREFIX}%'"))?.trim().to_owned();
        ours.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    let our_cores = (cores(processes) - cpu).as_secs_f64() * 1000.0 / TIMES as f64;
    let times = |output: &str| -> anyhow::Result<(Vec<f64>, String)> {
        let mut times = Vec::new();
        let mut found = String::new();
        for line in output.lines().filter_map(|line| line.strip_prefix("scan ")) {
            let (ms, rows) = line.split_once(' ').context("a line of two numbers")?;
            times.push(ms.parse()?);
            rows.clone_into(&mut found);
        }
        Ok((times, found))
    };
    let cpu = cores(processes);
    let (mut by_client, found_by_client) = times(&java(zookeeper, &scan, "filter-basalt.log")?)?;
    let client_cores = (cores(processes) - cpu).as_secs_f64() * 1000.0 / TIMES as f64;
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let (sql, client) = (median(&mut ours), median(&mut by_client));
    println!("    {found} rows found: SQL takes {sql:.0} ms, HBase's client on Basalt {client:.0} ms");

    let mut site = server::Site::new(server::Kind::HBase, &lab, "filter-hbase")?;
    site.heap = "6g";
    let hbase = site.start()?;
    let start = Instant::now();
    java(&site.zookeeper(), &load, "filter-load-hbase.log")?;
    println!("    HBase has {rows} rows after {:.0} s", start.elapsed().as_secs_f64());
    java(&site.zookeeper(), &scan, "filter-warm-hbase.log")?;
    let process = [hbase.pid()];
    let cpu = cores(&process);
    let (mut theirs, found_by_hbase) = times(&java(&site.zookeeper(), &scan, "filter-hbase.log")?)?;
    let their_cores = (cores(&process) - cpu).as_secs_f64() * 1000.0 / TIMES as f64;
    hbase.stop()?;
    std::fs::remove_dir_all(&site.dir).ok();
    if found != found_by_hbase || found != found_by_client {
        bail!("rows that were found: {found} by SQL, {found_by_client} by HBase's client, {found_by_hbase} by HBase");
    }
    let hbase = median(&mut theirs);
    println!("\n| {found} of {rows} rows, found by | ms | cores, ms |\n|---|---|---|");
    println!("| count(*) in basalt-sql | {sql:.0} | {our_cores:.0} |");
    println!("| HBase's client on Basalt | {client:.0} | {client_cores:.0} |");
    println!("| HBase's client on HBase | {hbase:.0} | {their_cores:.0} |");
    let part = sql / hbase;
    let verdict = if part <= PART_OF_HBASE && sql <= MOST_MS { "met" } else { "missed" };
    println!("\n    {part:.2} of HBase's time (most {PART_OF_HBASE}), {sql:.0} ms (most {MOST_MS}): {verdict}");
    Ok(3)
}
