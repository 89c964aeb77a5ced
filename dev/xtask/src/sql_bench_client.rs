//! The queries of Phoenix's `performance.py` as a program on HBase's client answers them without SQL: it scans the rows and counts them itself. On the
//! same server and the same files as what `basalt-sql` has the servers compute.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::sql_bench::Pushed;
use crate::{jvm, run, toolchain};

/// Each is asked so often, after as many times in which the JVM becomes warm; the median counts.
const TIMES: usize = 3;
const LIMIT: Duration = Duration::from_secs(900);
/// What a query in the servers may cost of that: time, and time of cores.
const PART_OF_TIME: f64 = 0.25;
const PART_OF_CORES: f64 = 0.2;

/// The names of [`Pushed`] and what the program calls them.
const QUERIES: &[(&str, &str)] = &[
    ("count of all rows", "all"),
    ("by the key's first column", "first"),
    ("by the key's second column", "second"),
    ("by day", "day"),
    ("count with a filter on a cell", "filter"),
];

/// Asks, prints a table. The cores are those of the server and of the program.
pub fn compare(zookeeper: &str, server: u32, dir: &Path, in_files: &[Pushed]) -> anyhow::Result<usize> {
    let class_path = jvm::HBASE_2.compile(&toolchain::jars()?)?;
    println!(
        "\n| query | in the servers, ms | cores, ms | HBase's client, ms | cores, ms | time | cores |\n|---|---|---|---|---|---|---|"
    );
    for (name, word) in QUERIES {
        let ours = in_files.iter().find(|pushed| pushed.name == *name).context("a query that was not measured")?;
        let mut java = jvm::java_measured(&class_path, "basalt.interop.ClientSideAnswers");
        let times = (2 * TIMES).to_string();
        let before = run::cpu_time(server).context("a server that runs")?;
        let log = dir.join(format!("bench-client-{word}.out"));
        let ended = run::logged(java.arg(zookeeper).args(["events", "0", word, &times]), &log, LIMIT)?;
        if !ended.well {
            bail!("ClientSideAnswers {word} failed; see {}: {}", log.display(), ended.output);
        }
        let of_server = run::cpu_time(server).context("a server that runs")?.saturating_sub(before);
        let of_server = of_server.as_secs_f64() * 1000.0 / (2 * TIMES) as f64;
        let mut warm = Vec::new();
        for line in ended.output.lines().filter_map(|line| line.strip_prefix("answer ")) {
            let mut numbers = line.split(' ').map(str::parse::<f64>);
            let (Some(Ok(ms)), Some(Ok(cores))) = (numbers.next(), numbers.next()) else {
                bail!("two numbers in {line}")
            };
            warm.push((ms, cores + of_server));
        }
        let Some(mut warm) = warm.get(TIMES..).map(<[(f64, f64)]>::to_vec).filter(|warm| warm.len() == TIMES) else {
            bail!("ClientSideAnswers {word} printed {} answers of {times}; see {}", warm.len(), log.display());
        };
        warm.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (ms, cores) = warm[TIMES / 2];
        let verdict = |part: f64, most: f64| format!("{part:.2}{}", if part <= most { "" } else { ": missed" });
        let (time, part) = (verdict(ours.ms / ms, PART_OF_TIME), verdict(ours.cores / cores, PART_OF_CORES));
        println!("| {name} | {:.0} | {:.0} | {ms:.0} | {cores:.0} | {time} | {part} |", ours.ms, ours.cores);
    }
    Ok(QUERIES.len())
}
