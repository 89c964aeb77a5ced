//! What `basalt-sql` costs beside PostgreSQL: the queries of Phoenix's `performance.py` over a table of events, and rows by their keys from many
//! connections. Wall time is that of `psql`; the time of cores is that of the server processes.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::run;
use crate::sql::Target;

/// Each query is asked so often; the median counts.
const TIMES: usize = 5;
/// Connections and seconds of the clients that ask for rows.
const CLIENTS: usize = 32;
const SECONDS: usize = 10;
/// Rows a second that are asked for, where not as many as can be.
const RATE: usize = 10_000;

/// Name, and the query on the table.
const QUERIES: &[(&str, &str)] = &[
    ("count of all rows", "select count(*) from events"),
    ("by the key's first column", "select host, count(*) from events group by host"),
    ("by the key's second column", "select domain, count(*) from events group by domain"),
    ("sums by two columns", "select host, domain, sum(core), max(db), avg(visitors) from events group by host, domain"),
    ("count with a filter on a cell", "select count(*) from events where core < 10"),
    ("100 rows of a range", "select * from events where host = 'EU' and domain = 'Apple.com' limit 100"),
    ("a range of the key", "select count(*), sum(db) from events where host = 'EU' and domain = 'Apple.com'"),
    ("by day", "select date_trunc('day', at), count(*) from events group by 1"),
    ("the 10 largest", "select host, db from events order by db desc, core desc, visitors desc limit 10"),
];

/// The queries of Phoenix's `performance.py`, and the same so that all rows are read and counted by `basalt-sql`: no server can tell what
/// `random()` will be.
const PUSHED: &[(&str, &str, &str)] = &[
    ("count of all rows", "select count(*) from events", "select count(*) from events where random() >= 0"),
    (
        "by the key's first column",
        "select host, count(*) from events group by host",
        "select host, count(*) from events where random() >= 0 group by host",
    ),
    (
        "by the key's second column",
        "select domain, count(*) from events group by domain",
        "select domain, count(*) from events where random() >= 0 group by domain",
    ),
    (
        "by day",
        "select date_trunc('day', at), count(*) from events group by 1",
        "select date_trunc('day', at), count(*) from events where random() >= 0 group by 1",
    ),
    (
        "count with a filter on a cell",
        "select count(*) from events where core < 10",
        "select count(case when core < 10 then 1 end) from events where random() >= 0",
    ),
];
/// What a query in the servers may cost of the same answer from rows that are read: time, and time of cores.
const PUSHED_TIME: f64 = 0.25;
const PUSHED_CORES: f64 = 0.2;

/// A server to be measured.
pub struct Measured<'a> {
    /// Where it is.
    pub target: &'a Target,
    /// Its processes; of PostgreSQL the first, whose children are found.
    pub processes: Vec<u32>,
}

impl Measured<'_> {
    /// Time of cores that its processes, and their children, have used.
    fn cpu(&self) -> Duration {
        let mut all = self.processes.clone();
        let mut at = 0;
        while let Some(process) = all.get(at).copied() {
            at += 1;
            let tasks = format!("/proc/{process}/task/{process}/children");
            let children = std::fs::read_to_string(tasks).unwrap_or_default();
            all.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
        all.iter().filter_map(|process| run::cpu_time(*process)).sum()
    }
}

/// The rows as a file of values with commas between, made on first use.
pub fn rows_file(dir: &Path, rows: u64) -> anyhow::Result<PathBuf> {
    let path = dir.join(format!("events-{rows}.csv"));
    if path.exists() {
        return Ok(path);
    }
    let aside = path.with_extension("part");
    let mut out = std::io::BufWriter::new(std::fs::File::create(&aside)?);
    let mut state = 24u64;
    let mut below = |most: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % most
    };
    for row in 0..rows {
        let host = ["NA", "CS", "EU"][below(3) as usize];
        let domain = ["Salesforce.com", "Apple.com", "Google.com"][below(3) as usize];
        let feature = ["Login", "Report", "Dashboard"][below(3) as usize];
        let (day, second) = (row * 7 / 86_400, row * 7 % 86_400);
        let (month, day) = (1 + day / 28 % 12, 1 + day % 28);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let at = format!("2024-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{:03}", row % 1000);
        let (core, db, visitors) = (1 + below(500), 1 + below(2000), 1 + below(10_000));
        writeln!(out, "{host},{domain},{feature},{at},{row},{core},{db},{visitors}")?;
    }
    out.flush()?;
    std::fs::rename(aside, &path)?;
    Ok(path)
}

fn script(target: &Target, text: &str, log: &Path) -> anyhow::Result<Vec<String>> {
    let file = log.with_extension("psql");
    std::fs::write(&file, text)?;
    let mut psql = target.psql();
    psql.args(["-v", "ON_ERROR_STOP=1", "-f"]).arg(&file);
    Ok(run::stdout("psql", &mut psql)?.lines().map(str::to_owned).collect())
}

/// What a query cost that the servers compute, of rows in files.
pub struct Pushed {
    pub name: &'static str,
    pub ms: f64,
    pub cores: f64,
}

/// Loads and asks; prints a table. `flush` has the table's rows written to files. Gives back how much was measured, and what is to be compared.
pub fn compare(
    both: &[Measured<'_>; 2],
    pgbench: &Path,
    dir: &Path,
    rows: u64,
    flush: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<(usize, Vec<Pushed>)> {
    let file = rows_file(dir, rows)?;
    let columns =
        "host char(2), domain text, feature text, at timestamp, n bigint, core integer, db integer, visitors integer";
    for measured in both {
        let name = measured.target.name;
        let options = if name == "basalt" { " split on ('EU', 'NA')" } else { "" };
        let (start, cpu) = (Instant::now(), measured.cpu());
        let text = format!(
            "create table events ({columns}, primary key (host, domain, feature, at, n)){options};\n\
             create table points (k integer primary key, v text, n bigint);\n\
             \\copy events from '{}' csv\n",
            file.display()
        );
        script(measured.target, &text, &dir.join(format!("bench-load-{name}.out")))?;
        println!(
            "    {name} has {rows} rows after {:.1} s ({:.1} s of cores)",
            start.elapsed().as_secs_f64(),
            (measured.cpu() - cpu).as_secs_f64()
        );
        let some = "select n, 'value of ' || n, n * 2 from events where n < 100000";
        script(
            measured.target,
            &format!("insert into points {some};\n"),
            &dir.join(format!("bench-points-{name}.out")),
        )?;
    }
    println!("\n| query | basalt-sql, ms | cores, ms | PostgreSQL, ms | cores, ms |\n|---|---|---|---|---|");
    for (name, query) in QUERIES {
        let mut cells = Vec::new();
        for measured in both {
            let (ms, cores) = asked(measured, dir, query)?;
            cells.push(format!("{ms:.0} | {cores:.0}"));
        }
        println!("| {name} | {} |", cells.join(" | "));
    }
    pushed("in memory", &both[0], dir)?;
    flush("events")?;
    let in_files = pushed("in files, cached", &both[0], dir)?;
    println!(
        "\n| one row by its key, {CLIENTS} connections | protocol | a second | p50, ms | p99, ms | cores, µs each |\n|---|---|---|---|---|---|"
    );
    for mode in ["prepared", "extended", "simple"] {
        for measured in both {
            println!("| {} | {mode} | {} |", measured.target.name, points(measured, pgbench, dir, mode, None)?);
        }
    }
    for measured in both {
        let found = points(measured, pgbench, dir, "prepared", Some(RATE))?;
        println!("| {} | prepared, --rate={RATE} | {found} |", measured.target.name);
    }
    Ok((QUERIES.len() + 2 * PUSHED.len() + 4, in_files))
}

/// What the servers compute beside rows that are read; prints a table.
fn pushed(rows_are: &str, ours: &Measured<'_>, dir: &Path) -> anyhow::Result<Vec<Pushed>> {
    // What was just written is read once, so that both find it in the cache.
    asked(ours, dir, "select count(*), sum(core) from events")?;
    println!(
        "\n| rows {rows_are} | in the servers, ms | cores, ms | rows read, ms | cores, ms | time | cores |\n|---|---|---|---|---|---|---|"
    );
    let mut measured = Vec::new();
    for (name, query, rows_read) in PUSHED {
        let ((ms, cores), (ms_of_rows, cores_of_rows)) = (asked(ours, dir, query)?, asked(ours, dir, rows_read)?);
        let (time, part) = (ms / ms_of_rows, cores / cores_of_rows);
        let verdict = |part: f64, most: f64| format!("{part:.2}{}", if part <= most { "" } else { ": missed" });
        let (time, part) = (verdict(time, PUSHED_TIME), verdict(part, PUSHED_CORES));
        println!("| {name} | {ms:.0} | {cores:.0} | {ms_of_rows:.0} | {cores_of_rows:.0} | {time} | {part} |");
        measured.push(Pushed { name, ms, cores });
    }
    Ok(measured)
}

/// Median milliseconds of a query as `psql` sees it, which asks several times in one session, and the servers' milliseconds of cores.
fn asked(measured: &Measured<'_>, dir: &Path, query: &str) -> anyhow::Result<(f64, f64)> {
    let log = dir.join(format!("bench-{}.out", measured.target.name));
    let cpu = measured.cpu();
    let lines = script(measured.target, &format!("\\timing on\n{}", format!("{query};\n").repeat(TIMES)), &log)?;
    let cores = (measured.cpu() - cpu).as_secs_f64() * 1000.0 / TIMES as f64;
    let times = lines.iter().filter_map(|line| line.strip_prefix("Time: ")?.split(' ').next()?.parse::<f64>().ok());
    let mut times: Vec<f64> = times.collect();
    if times.len() != TIMES {
        bail!("psql printed {} times, not {TIMES}, for: {query}", times.len());
    }
    times.sort_by(f64::total_cmp);
    Ok((times[TIMES / 2], cores))
}

/// Rows by their keys from many connections, by PostgreSQL's own program for that: as many as can be, or at a rate, with the time that they wait
/// for their turn.
fn points(
    measured: &Measured<'_>,
    pgbench: &Path,
    dir: &Path,
    mode: &str,
    rate: Option<usize>,
) -> anyhow::Result<String> {
    let file = dir.join("points.pgbench");
    std::fs::write(&file, "\\set k random(0, 99999)\nselect v, n from points where k = :k;\n")?;
    let logs = dir.join("pgbench-logs");
    std::fs::remove_dir_all(&logs).ok();
    std::fs::create_dir_all(&logs)?;
    let mut command = Command::new(pgbench);
    command.args(["-n", "-M", mode, "-c", &CLIENTS.to_string(), "-j", "1", "-T", &SECONDS.to_string(), "-l", "-f"]);
    command
        .arg(&file)
        .args(rate.map(|rate| format!("--rate={rate}")))
        .args(measured.target.connection())
        .current_dir(&logs);
    let cpu = measured.cpu();
    let out = command.output().context("cannot run pgbench")?;
    let cores = measured.cpu() - cpu;
    if !out.status.success() {
        bail!("pgbench: {}", String::from_utf8_lossy(&out.stderr));
    }
    let mut times: Vec<f64> = Vec::new();
    for entry in std::fs::read_dir(&logs)? {
        let text = std::fs::read_to_string(entry?.path())?;
        times.extend(text.lines().filter_map(|line| line.split(' ').nth(2)?.parse::<f64>().ok()));
    }
    times.sort_by(f64::total_cmp);
    let at = |part: f64| times.get((times.len() as f64 * part) as usize).copied().unwrap_or_default() / 1000.0;
    let each = cores.as_secs_f64() * 1e6 / times.len().max(1) as f64;
    Ok(format!("{} | {:.2} | {:.2} | {each:.0}", times.len() / SECONDS, at(0.5), at(0.99)))
}
