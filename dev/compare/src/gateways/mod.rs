//! What a get of 1,000 bytes costs through each door: HBase's own protocol, Thrift 1, Thrift 2, REST, and REST's HTTP server with a fixed body:
//! `cargo xtask gateways`.
//!
//! Always true:
//!  1. One server with the same table for all doors; each client has a connection of its own and one call under way on it.
//!  2. CPU time is that of everything that answers: the region server, and the gateways of Apache HBase, which are processes of their own.
//!  3. Every answer is looked at: one without the value is a failure.
//!  4. A target that is missed is shown as missed.
//!
//! Must not know: how a server is made, but for what [`crate::server`] knows of starting one.

mod clients;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use base::Rng;
use client::{Connection, Options};
use model::{FamilyDescriptor, TableDescriptor, TableName};

use self::clients::{Fixed, Rest, Thrift, Thrift2};
use crate::compare::drive::{self, Pace};
use crate::compare::figures::Measured;
use crate::compare::workers::{BATCH_ROWS, FAMILY, Gets, Rows};
use crate::jars;
use crate::server::{self, Companion, Contender, Origin, Site};

/// Measure what a get costs through each gateway
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Measured seconds of each door
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    seconds: f64,
    /// Seconds before that are not measured
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0)]
    warm_up: f64,
    /// The same for Apache HBase, whose gateways are compiled as they run
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    warm_up_jvm: f64,
    /// Clients, each with a connection
    #[arg(long, value_name = "N", default_value_t = 16)]
    clients: u64,
    /// Rows of 1,000 bytes in the table
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    rows: u64,
    /// Only these doors
    #[arg(long, value_name = "DOOR", value_delimiter = ',', value_parser = Door::ALL.map(Door::name))]
    only: Vec<String>,
    /// Measure Apache HBase 2.6.4 with the gateways of 2.6.1, too (brought from Maven on first use)
    #[arg(long)]
    with_hbase: bool,
    /// Memory of each server in MiB: Basalt's budget, HBase's heap
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    memory: u64,
    /// Basalt's program [default: BASALT_BINARY, or that beside this program]
    #[arg(long, value_name = "FILE")]
    basalt: Option<PathBuf>,
    /// Where servers keep their data meanwhile
    #[arg(long, value_name = "DIR", default_value = "basalt-gateways")]
    out: PathBuf,
    /// End with an error when a target is missed
    #[arg(long)]
    check: bool,
    /// Be the HTTP server with the fixed body: what `fixed` measures
    #[arg(long, hide = true)]
    serve_fixed: bool,
}

/// A way to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Door {
    Native,
    Thrift,
    Thrift2,
    Rest,
    RestJson,
    Fixed,
}

impl Door {
    const ALL: [Door; 6] = [Door::Native, Door::Thrift, Door::Thrift2, Door::Rest, Door::RestJson, Door::Fixed];

    fn name(self) -> &'static str {
        match self {
            Door::Native => "native",
            Door::Thrift => "thrift",
            Door::Thrift2 => "thrift2",
            Door::Rest => "rest",
            Door::RestJson => "rest-json",
            Door::Fixed => "fixed",
        }
    }
}

/// Thrift's operations for a CPU second, at least so many of the native protocol's.
const THRIFT_OF_NATIVE: f64 = 0.5;
/// REST's CPU time, at most so many times that of the same HTTP server with a fixed body.
const REST_OF_FIXED: f64 = 1.5;
/// Operations for a CPU second, so many times those of Apache's gateways before Apache HBase.
const TIMES_OF_HBASE: f64 = 5.0;

/// Bytes of a value, and of the fixed body.
const VALUE_BYTES: usize = 1_000;
const TABLE: &str = "rows";

/// Microseconds of CPU time for an operation, by server and door.
type Costs = BTreeMap<(String, Door), f64>;

/// Measures.
///
/// # Errors
/// A sentence that says what is wrong and what to do.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    if arguments.serve_fixed {
        return runtime.block_on(clients::serve_fixed(VALUE_BYTES)).map(|()| ExitCode::SUCCESS);
    }
    println!(
        "{:<8}{:<11}{:>12}{:>14}{:>12}{:>12}{:>9}",
        "server", "door", "operations/s", "CPU us/op", "median us", "p99 us", "failed"
    );
    let mut costs = Costs::new();
    for contender in contenders(arguments)? {
        runtime.block_on(measure(arguments, &contender, &mut costs))?;
    }
    let missed = targets(&costs);
    Ok(if missed && arguments.check { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn contenders(arguments: &Arguments) -> anyhow::Result<Vec<Contender>> {
    let binary = match &arguments.basalt {
        Some(file) => file.canonicalize().with_context(|| format!("no program {}", file.display()))?,
        None => server::default_binary()?,
    };
    let ports = testkit::free_ports::<6>()?.map(|port| port.to_string());
    let settings =
        |of: &[(&str, &str)]| of.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let framed = ("hbase.regionserver.thrift.framed", "true");
    let memory_bytes = arguments.memory << 20;
    let mut contenders = vec![Contender {
        name: "basalt".to_owned(),
        origin: Origin::Basalt { binary },
        settings: settings(&[
            ("basalt.thrift.port", &ports[0]),
            ("basalt.thrift2.port", &ports[1]),
            ("basalt.rest.port", &ports[2]),
            framed,
        ]),
        memory_bytes,
        only_writes: false,
    }];
    if arguments.with_hbase {
        let jars = jars::hbase(None, &|what| eprintln!("{what}"))?;
        contenders.push(Contender {
            name: "hbase".to_owned(),
            origin: Origin::HBase { jars, options: Vec::new() },
            settings: settings(&[
                ("hbase.rest.port", &ports[5]),
                ("hbase.rest.info.port", "-1"),
                ("hbase.thrift.info.port", "-1"),
                framed,
            ]),
            memory_bytes,
            only_writes: false,
        });
    }
    Ok(contenders)
}

/// Plays every door of one server.
async fn measure(arguments: &Arguments, contender: &Contender, costs: &mut Costs) -> anyhow::Result<()> {
    let mut site = Site::new(contender.clone(), arguments.out.join(&contender.name), 1)?;
    site.spawn()?;
    site.ready().await?;
    let rng = Rng::from_system();
    let rows = Rows::of_size(arguments.rows.max(1), VALUE_BYTES, &rng);
    fill(&site.connect(), &rows, &rng).await?;
    let setting = |key: &str| contender.settings.get(key).and_then(|port| port.parse::<u16>().ok());
    for door in Door::ALL {
        if !arguments.only.is_empty() && !arguments.only.iter().any(|name| name == door.name()) {
            continue;
        }
        let is_basalt = matches!(contender.origin, Origin::Basalt { .. });
        let mut pids = vec![site.pid()];
        // Basalt's gateways are in its process; Apache's stand beside, one at a time.
        let mut companion = None;
        let mut port = |key: &str, class: &'static str, options: &[&str]| -> anyhow::Result<u16> {
            if is_basalt {
                return setting(key).context("a port");
            }
            let more = jars::hbase_gateways(&|what| eprintln!("{what}"))?;
            let [port] = testkit::free_ports::<1>()?;
            let words: Vec<String> = options.iter().map(|word| word.replace("{port}", &port.to_string())).collect();
            let started: Companion = site.companion(class, &more, &words)?;
            pids.push(started.pid());
            companion = Some(started);
            Ok(port)
        };
        let pace = Pace {
            warm_up: Duration::from_secs_f64(if is_basalt { arguments.warm_up } else { arguments.warm_up_jvm }),
            measure: Some(Duration::from_secs_f64(arguments.seconds)),
            per_second: None,
        };
        let clients = 0..arguments.clients.max(1);
        let rng = || Rng::seeded(rng.next_u64());
        let measured = match door {
            Door::Native => {
                // One connection each, so that no two calls share a write.
                let open = |_| {
                    let connection = Connection::open(Options {
                        connections_per_server: 1,
                        ..Options::zookeeper(&site.zookeeper())
                    });
                    anyhow::Ok(Gets(connection.table(&TableName::parse(TABLE)?), rows.clone(), rng()))
                };
                drive::play(clients.map(open).collect::<anyhow::Result<Vec<_>>>()?, pace, &pids).await
            }
            Door::Thrift => {
                let class = "org.apache.hadoop.hbase.thrift.ThriftServer";
                let address = (Ipv4Addr::LOCALHOST, port("basalt.thrift.port", class, &["-p", "{port}", "start"])?);
                wait_for(address.into(), companion.as_mut()).await?;
                let workers = clients.map(|_| Thrift::new(address.into(), rows.count, rng())).collect();
                drive::play(workers, pace, &pids).await
            }
            Door::Thrift2 => {
                let class = "org.apache.hadoop.hbase.thrift2.ThriftServer";
                let address = (Ipv4Addr::LOCALHOST, port("basalt.thrift2.port", class, &["-p", "{port}", "start"])?);
                wait_for(address.into(), companion.as_mut()).await?;
                let workers = clients.map(|_| Thrift2::new(address.into(), rows.count, rng())).collect();
                drive::play(workers, pace, &pids).await
            }
            Door::Rest | Door::RestJson => {
                let class = "org.apache.hadoop.hbase.rest.RESTServer";
                let address = (Ipv4Addr::LOCALHOST, port("basalt.rest.port", class, &["-p", "{port}", "start"])?);
                wait_for(address.into(), companion.as_mut()).await?;
                let accept = if door == Door::Rest { "application/octet-stream" } else { "application/json" };
                let workers = clients.map(|_| Rest::new(address.into(), accept, rows.count, rng())).collect();
                drive::play(workers, pace, &pids).await
            }
            Door::Fixed if is_basalt => {
                let fixed = Fixed::start().await?;
                let workers = clients.map(|_| fixed.client()).collect();
                drive::play(workers, pace, &[fixed.pid()]).await
            }
            Door::Fixed => continue,
        };
        println!("{}", line(&contender.name, door, &measured));
        if measured.operations == 0 {
            bail!("nothing came through {} of {}", door.name(), contender.name);
        }
        let cost = measured.usage.cpu_ns as f64 / 1e3 / measured.operations as f64;
        costs.insert((contender.name.clone(), door), cost);
    }
    site.clear();
    Ok(())
}

/// A table of one region with every row in it, in files and in the block cache.
async fn fill(connection: &Connection, rows: &Rows, rng: &Rng) -> anyhow::Result<()> {
    let name = TableName::parse(TABLE)?;
    let descriptor = TableDescriptor::new(name.clone(), [FamilyDescriptor::new(FAMILY)]);
    connection.admin().create_table(&descriptor, &[]).await?;
    let table = connection.table(&name);
    for first in (0..rows.count).step_by(BATCH_ROWS as usize) {
        let put = |n| rows.put(n, rng, model::Durability::UseDefault);
        table.mutate_all(&(first..(first + BATCH_ROWS).min(rows.count)).map(put).collect::<Vec<_>>()).await?;
    }
    connection.admin().flush(&name).await?;
    Ok(())
}

/// Until somebody listens; a process that ended meanwhile is said.
async fn wait_for(address: std::net::SocketAddr, mut companion: Option<&mut Companion>) -> anyhow::Result<()> {
    let limit = tokio::time::Instant::now() + Duration::from_secs(60);
    while let Err(error) = tokio::net::TcpStream::connect(address).await {
        if let Some(companion) = companion.as_deref_mut() {
            companion.check()?;
        }
        if tokio::time::Instant::now() > limit {
            return Err(error).with_context(|| format!("nobody listens at {address} after a minute"));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

fn line(server: &str, door: Door, measured: &Measured) -> String {
    format!(
        "{server:<8}{:<11}{:>12.0}{:>14.1}{:>12.0}{:>12.0}{:>9}",
        door.name(),
        measured.operations as f64 / measured.seconds.max(1e-9),
        measured.usage.cpu_ns as f64 / 1e3 / (measured.operations as f64).max(1.0),
        measured.latency.p50_ns as f64 / 1e3,
        measured.latency.p99_ns as f64 / 1e3,
        measured.errors
    )
}

/// Says what was reached; whether anything was missed.
fn targets(costs: &Costs) -> bool {
    let cost = |server: &str, door| costs.get(&(server.to_owned(), door)).copied();
    let mut missed = false;
    let mut hold = |what: &str, seen: f64, target: f64, is_met: bool| {
        println!("{} {what}: {seen:.2}, target {target}", if is_met { "met:   " } else { "missed:" });
        missed |= !is_met;
    };
    for door in [Door::Thrift, Door::Thrift2] {
        if let (Some(native), Some(thrift)) = (cost("basalt", Door::Native), cost("basalt", door)) {
            let ratio = native / thrift;
            let what = format!("{}'s operations for a CPU second, to native ones", door.name());
            hold(&what, ratio, THRIFT_OF_NATIVE, ratio >= THRIFT_OF_NATIVE);
        }
    }
    if let (Some(fixed), Some(rest)) = (cost("basalt", Door::Fixed), cost("basalt", Door::Rest)) {
        let ratio = rest / fixed;
        hold("rest's CPU time for an operation, to that of a fixed body", ratio, REST_OF_FIXED, ratio <= REST_OF_FIXED);
    }
    for door in [Door::Thrift, Door::Thrift2, Door::Rest, Door::RestJson] {
        if let (Some(hbase), Some(basalt)) = (cost("hbase", door), cost("basalt", door)) {
            let (ratio, what) = (hbase / basalt, format!("{}'s operations for a CPU second, to Apache's", door.name()));
            hold(&what, ratio, TIMES_OF_HBASE, ratio >= TIMES_OF_HBASE);
        }
    }
    missed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_target_is_said_and_a_met_one_is_not() {
        let costs = |thrift, rest, hbase| {
            Costs::from([
                (("basalt".to_owned(), Door::Native), 10.0),
                (("basalt".to_owned(), Door::Thrift), thrift),
                (("basalt".to_owned(), Door::Rest), rest),
                (("basalt".to_owned(), Door::Fixed), 10.0),
                (("hbase".to_owned(), Door::Thrift), hbase),
            ])
        };
        assert!(!targets(&costs(20.0, 15.0, 100.0)));
        assert!(targets(&costs(20.1, 15.0, 101.0)));
        assert!(targets(&costs(20.0, 15.1, 100.0)));
        assert!(targets(&costs(20.0, 15.0, 99.0)));
    }
}
