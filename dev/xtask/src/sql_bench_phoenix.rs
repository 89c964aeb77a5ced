//! What the queries of Phoenix's `performance.py` cost Apache Phoenix itself, on Apache HBase 2.6.4 with the same rows in as many regions.
//! `sql/tests/phoenix/Bench.java` loads and asks by Phoenix's driver, checks what is answered and measures.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::sql::root;
use crate::sql_bench::{Pushed, rows_file};
use crate::{jvm, run, server, toolchain};

/// Loading is the most of it.
const LIMIT: Duration = Duration::from_secs(3600);
/// What Phoenix wants set where it is installed.
const SETTINGS: &[(&str, &str)] =
    &[("hbase.regionserver.wal.codec", "org.apache.hadoop.hbase.regionserver.wal.IndexedWALEditCodec")];

/// What a query costs Phoenix.
struct Cost {
    ms: f64,
    /// Of HBase's process.
    cores: f64,
    /// Of the driver's process, where Phoenix does a part of what `basalt-sql` does.
    driver_cores: f64,
}

/// Loads and asks; prints a table, beside `ours` where those were measured before.
pub fn compare(dir: &Path, rows: u64, ours: &[Pushed]) -> anyhow::Result<usize> {
    let file = rows_file(dir, rows)?;
    let lab = toolchain::jars_with(&["phoenix"])?;
    let jars = lab.join("phoenix");
    let class_path = format!("{}/*:{}/*", lab.join("hbase/jars").display(), jars.display());
    let mut site = server::Site::new(server::Kind::HBase, &lab, "sql-phoenix")?;
    site.heap = "4g";
    site.extra = SETTINGS;
    site.jars = Some(jars);
    let hbase = site.start()?;
    let program = root().join("tests/phoenix/Bench.java").display().to_string();
    let mut java = jvm::java_measured(&class_path, &program);
    java.arg(site.zookeeper()).arg(file).arg(hbase.pid().to_string());
    // Phoenix takes days as they are in UTC.
    java.env("TZ", "UTC");
    let ended = run::logged(&mut java, &dir.join("bench-phoenix.log"), LIMIT)?;
    if !ended.well {
        bail!("Bench.java failed: {}", ended.output);
    }
    // First, as loading took long: HBase may not end well.
    let passed = print(&ended.output, ours)?;
    hbase.stop()?;
    std::fs::remove_dir_all(&site.dir).ok();
    Ok(passed)
}

fn print(output: &str, ours: &[Pushed]) -> anyhow::Result<usize> {
    let mut costs = Vec::new();
    for line in output.lines() {
        match line.split('|').collect::<Vec<_>>()[..] {
            ["loaded", rows, seconds, cores, driver_cores] => println!(
                "    phoenix has {rows} rows after {seconds} s ({cores} s of HBase's cores, {driver_cores} s of the driver's)"
            ),
            ["compacted", seconds, megabytes] => {
                println!("    phoenix's rows are compacted after {seconds} s, {megabytes} MB of files");
            }
            ["asked", name, ms, cores, driver_cores] => {
                let cost = Cost { ms: ms.parse()?, cores: cores.parse()?, driver_cores: driver_cores.parse()? };
                costs.push((name, cost));
            }
            _ => {}
        }
    }
    if costs.is_empty() {
        bail!("Bench.java measured nothing: {output}");
    }
    if ours.is_empty() {
        println!("\n| rows in files, cached | Phoenix, ms | HBase's cores, ms | the driver's |\n|---|---|---|---|");
        for (name, Cost { ms, cores, driver_cores }) in &costs {
            println!("| {name} | {ms:.0} | {cores:.0} | {driver_cores:.0} |");
        }
        return Ok(costs.len());
    }
    println!(
        "\n| rows in files, cached | basalt-sql, ms | cores, ms | Phoenix, ms | HBase's cores, ms | the driver's | time | cores |\n\
         |---|---|---|---|---|---|---|---|"
    );
    for (name, Cost { ms, cores, driver_cores }) in &costs {
        let our = ours.iter().find(|our| our.name == *name).with_context(|| format!("{name}: not asked of ours"))?;
        let verdict = if our.ms < *ms { "" } else { ": missed" };
        println!(
            "| {name} | {:.0} | {:.0} | {ms:.0} | {cores:.0} | {driver_cores:.0} | {:.2}{verdict} | {:.2} |",
            our.ms,
            our.cores,
            our.ms / ms,
            our.cores / (cores + driver_cores),
        );
    }
    Ok(costs.len())
}
