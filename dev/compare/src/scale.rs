//! What administration of many regions takes: `cargo xtask scale`. A table of a thousand regions with ten files each is made, snapshot,
//! altered, cloned and restored; then the master is asked for the state of a cluster of ten thousand.
//!
//! Always true:
//!  1. Each server begins with nothing.
//!  2. What was to be made is counted before its time counts: regions, store files, cells that are back.
//!  3. A target that is missed is shown as missed.
//!
//! Must not know: how a server is made, but for what [`crate::server`] knows of starting one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use bytes::Bytes;
use client::{Connection, Put, RestoreOptions};
use model::{FamilyDescriptor, TableDescriptor, TableName};
use proto::pb;

use crate::jars;
use crate::server::{self, Contender, Origin, Site};

/// What the measurement is told.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Regions of the table
    #[arg(long, value_name = "N", default_value_t = 1000)]
    regions: u32,
    /// Store files of each
    #[arg(long, value_name = "N", default_value_t = 10)]
    files: u32,
    /// Regions of the whole cluster when its state is asked for; none are added at 0
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    cluster: u32,
    /// Memory of each server in MiB: Basalt's budget, HBase's heap
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    memory: u64,
    /// Settings of Basalt, as KEY=VALUE
    #[arg(short = 'D', value_name = "KEY=VALUE")]
    define: Vec<String>,
    /// Measure Apache HBase 2.6.4, too (brought from Maven on first use)
    #[arg(long)]
    with_hbase: bool,
    /// Basalt's program [default: BASALT_BINARY, or that beside this program]
    #[arg(long, value_name = "FILE")]
    basalt: Option<PathBuf>,
    /// Where servers keep their data meanwhile
    #[arg(long, value_name = "DIR", default_value = "basalt-scale")]
    out: PathBuf,
    /// End with an error when Basalt misses a target by more than this factor
    #[arg(long, value_name = "FACTOR")]
    check: Option<f64>,
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    Create,
    Alter,
    Snapshot,
    Clone,
    RestoreLater,
    RestoreTruncated,
    Status,
}

impl Act {
    /// What it is called.
    fn name(self) -> &'static str {
        match self {
            Act::Create => "create",
            Act::Alter => "alter, online",
            Act::Snapshot => "snapshot",
            Act::Clone => "clone",
            Act::RestoreLater => "restore, one file later",
            Act::RestoreTruncated => "restore, after a truncation",
            Act::Status => "ClusterMetrics",
        }
    }

    /// What it may take.
    fn target(self) -> Duration {
        match self {
            Act::Create | Act::Snapshot => Duration::from_secs(2),
            Act::Alter | Act::Clone | Act::RestoreLater | Act::RestoreTruncated => Duration::from_secs(5),
            Act::Status => Duration::from_millis(500),
        }
    }
}

type Times = Vec<(Act, Duration)>;

/// Measures.
///
/// # Errors
/// A sentence that says what is wrong and what to do.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.regions < 2 || arguments.files == 0 {
        bail!("a table of at least two regions with a file each is needed: --regions 1000 --files 10");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut missed = Vec::new();
    println!("{:<8}{:<30}{:>10}{:>10}   (s)", "server", "", "took", "target");
    for contender in contenders(arguments)? {
        let times = runtime.block_on(measure(arguments, &contender))?;
        if matches!(contender.origin, Origin::Basalt { .. }) {
            missed.extend(misses(&times, arguments.check.unwrap_or(1.0)));
        }
    }
    missed.iter().for_each(|missed| println!("missed: {missed}"));
    Ok(if missed.is_empty() || arguments.check.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The targets that were missed, each multiplied by `factor`.
fn misses(times: &Times, factor: f64) -> Vec<String> {
    let late = times.iter().filter(|(act, took)| *took > act.target().mul_f64(factor));
    let said = |(act, took): &(Act, Duration)| {
        format!("{} took {:.3} s, not {:.1} s", act.name(), took.as_secs_f64(), act.target().as_secs_f64())
    };
    late.map(said).collect()
}

fn contenders(arguments: &Arguments) -> anyhow::Result<Vec<Contender>> {
    let binary = match &arguments.basalt {
        Some(file) => file.canonicalize().with_context(|| format!("no program {}", file.display()))?,
        None => server::default_binary()?,
    };
    let pair = |word: &String| {
        let (key, value) = word.split_once('=').with_context(|| format!("-D {word} is not KEY=VALUE"))?;
        anyhow::Ok((key.to_owned(), value.to_owned()))
    };
    let mut contenders = vec![Contender {
        name: "basalt".to_owned(),
        origin: Origin::Basalt { binary },
        settings: arguments.define.iter().map(pair).collect::<anyhow::Result<_>>()?,
        memory_bytes: arguments.memory << 20,
        only_writes: false,
    }];
    if arguments.with_hbase {
        contenders.push(Contender {
            name: "hbase".to_owned(),
            origin: Origin::HBase { jars: jars::hbase(None, &|what| eprintln!("{what}"))?, options: Vec::new() },
            settings: BTreeMap::new(),
            memory_bytes: arguments.memory << 20,
            only_writes: false,
        });
    }
    Ok(contenders)
}

const FAMILY: &str = "f";

/// The first row of a region of the table but the first, whose rows begin before them all.
fn row(region: u32) -> String {
    format!("{region:08}")
}

fn splits(regions: u32) -> Vec<Bytes> {
    (1..regions).map(|region| Bytes::from(row(region))).collect()
}

/// Nothing is compacted, so that the files stay as many as they were made.
fn described(name: &TableName) -> TableDescriptor {
    let mut table = TableDescriptor::new(name.clone(), [FamilyDescriptor::new(FAMILY)]);
    table.attributes.insert(Bytes::from_static(b"COMPACTION_ENABLED"), Bytes::from_static(b"false"));
    table
}

/// What is timed of one server, in the order of [`Act`].
struct Bench<'a> {
    arguments: &'a Arguments,
    server: &'a str,
    connection: Connection,
    table: TableName,
    times: Times,
}

impl Bench<'_> {
    async fn timed<T>(&mut self, act: Act, work: impl Future<Output = client::Result<T>>) -> anyhow::Result<T> {
        let begun = Instant::now();
        let done = work.await.with_context(|| act.name())?;
        let took = begun.elapsed();
        let (said, target) = (took.as_secs_f64(), act.target().as_secs_f64());
        println!("{:<8}{:<30}{said:>10.3}{target:>10.1}", self.server, act.name());
        self.times.push((act, took));
        Ok(done)
    }

    /// One more store file in each region of the table.
    async fn add_file(&self, number: u32) -> anyhow::Result<()> {
        let table = self.connection.table(&self.table);
        let put = |region| Put::new(row(region)).add(FAMILY, format!("q{number}"), "value").build();
        table.mutate_all(&(0..self.arguments.regions).map(put).collect::<Vec<_>>()).await?;
        Ok(self.connection.admin().flush(&self.table).await?)
    }

    /// # Errors
    /// A table has not as many open regions with as many files as it should.
    async fn expect(&self, table: &TableName, files_each: u32) -> anyhow::Result<()> {
        let admin = self.connection.admin();
        let (mut regions, mut files) = (0, 0);
        for server in admin.servers().await? {
            for load in admin.region_metrics(&server, Some(table)).await? {
                regions += 1;
                files += load.storefiles.unwrap_or(0);
            }
        }
        let wanted = (self.arguments.regions, self.arguments.regions * files_each);
        if (regions, files) != wanted {
            bail!("{table} has {regions} open regions with {files} files, not {} with {}", wanted.0, wanted.1);
        }
        Ok(())
    }
}

async fn measure(arguments: &Arguments, contender: &Contender) -> anyhow::Result<Times> {
    let mut site = Site::new(contender.clone(), arguments.out.join(&contender.name), 2)?;
    site.spawn()?;
    site.ready().await?;
    let (connection, table) = (site.connect(), TableName::parse("scale")?);
    let (server, times) = (contender.name.as_str(), Times::new());
    let mut bench = Bench { arguments, server, connection: connection.clone(), table: table.clone(), times };
    let (admin, files) = (connection.admin(), arguments.files);

    bench.timed(Act::Create, admin.create_table(&described(&table), &splits(arguments.regions))).await?;
    for number in 0..files {
        bench.add_file(number).await?;
    }
    bench.expect(&table, files).await?;

    let mut altered = described(&table);
    altered.attributes.insert(Bytes::from_static(b"MAX_FILESIZE"), Bytes::from((64_u64 << 30).to_string()));
    bench.timed(Act::Alter, admin.modify_table(&altered)).await?;
    bench.expect(&table, files).await?;

    bench.timed(Act::Snapshot, admin.snapshot("scale-snapshot", &table)).await?;
    bench.add_file(files).await?;
    bench.expect(&table, files + 1).await?;

    // One table at a time is open: each of its files is, too, and a process may have so many and no more.
    admin.disable_table(&table).await?;
    let copy = TableName::parse("scale-copy")?;
    bench.timed(Act::Clone, admin.clone_snapshot("scale-snapshot", &copy)).await?;
    bench.expect(&copy, files).await?;
    admin.disable_table(&copy).await?;
    admin.delete_table(&copy).await?;

    for (act, truncated) in [(Act::RestoreLater, false), (Act::RestoreTruncated, true)] {
        if truncated {
            admin.disable_table(&table).await?;
            admin.truncate_table(&table, true).await?;
            bench.expect(&table, 0).await?;
            admin.disable_table(&table).await?;
        }
        bench.timed(act, admin.restore_snapshot("scale-snapshot", RestoreOptions::default())).await?;
        admin.enable_table(&table).await?;
        bench.expect(&table, files).await?;
    }

    if arguments.cluster > arguments.regions {
        let more = TableName::parse("scale-more")?;
        admin.create_table(&described(&more), &splits(arguments.cluster - arguments.regions)).await?;
        let status: pb::ClusterStatus = bench.timed(Act::Status, admin.cluster_status()).await?;
        let loads = status.live_servers.iter().map(|server| server.server_load.region_loads.len()).sum::<usize>();
        if loads < arguments.cluster as usize {
            bail!("the cluster's state tells of {loads} regions, not of {}", arguments.cluster);
        }
    }
    site.clear();
    Ok(bench.times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_target_is_said_and_a_met_one_is_not() {
        let times = vec![(Act::Create, Duration::from_millis(1999)), (Act::Status, Duration::from_millis(800))];
        assert_eq!(misses(&times, 1.0), ["ClusterMetrics took 0.800 s, not 0.5 s"]);
        assert_eq!(misses(&times, 2.0), Vec::<String>::new());
    }

    #[test]
    fn as_many_regions_as_asked_for_are_split_by_their_first_rows() {
        assert_eq!(splits(1), Vec::<Bytes>::new());
        assert_eq!(splits(3), [Bytes::from("00000001"), Bytes::from("00000002")]);
        assert!(row(0).as_str() < row(1).as_str(), "the first region has a row, too");
    }
}
