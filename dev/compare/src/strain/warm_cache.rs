//! A restart with a full second level of the block cache: how soon as many of the reads that miss the first level find their block there as before.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use base::Rng;
use model::{FamilyDescriptor, TableDescriptor, TableName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{WarmCacheArguments, start};
use crate::compare::drive::{Pace, play};
use crate::compare::workers::{FAMILY, Gets, Load, Rows};

const TABLE: &str = "warm";
/// Bytes of a row in a file, about: one value of 1000.
const ROW_BYTES: u64 = 1_060;
const CLIENTS: usize = 32;
/// Warming up has come to its end when a step of it brings less than this.
const LEAST_GAIN: f64 = 0.002;
const STEP: Duration = Duration::from_secs(5);
const MOST_STEPS: usize = 60;
/// As much of the ratio of before must be back, and when.
const SHARE: f64 = 0.9;
const WITHIN: Duration = Duration::from_secs(10);

/// Runs it, says what it saw, and whether the target is met.
pub(super) fn run(arguments: &WarmCacheArguments) -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure(arguments))
}

async fn measure(arguments: &WarmCacheArguments) -> anyhow::Result<bool> {
    let [port] = testkit::free_ports()?;
    let parent = arguments.common.out.parent().unwrap_or(&arguments.common.out);
    let own = parent.join(format!("basalt-second-level-{}", std::process::id()));
    std::fs::create_dir_all(&own).with_context(|| format!("cannot make {}", own.display()))?;
    let own = own.canonicalize()?;
    let settings = [
        ("hbase.bucketcache.ioengine", format!("file:{}", own.join("cache").display())),
        ("hbase.bucketcache.size", arguments.size.to_string()),
        ("hbase.bucketcache.persistent.path", own.join("persistent").display().to_string()),
        // A warming that takes minutes is not what is measured.
        ("basalt.bucketcache.write.bytes.per.second", (1_u64 << 30).to_string()),
        ("basalt.hfile.compression.default", "NONE".to_owned()),
        ("hbase.master.info.port", port.to_string()),
    ];
    let outcome = restart(arguments, &settings, port).await;
    std::fs::remove_dir_all(&own).ok();
    outcome
}

async fn restart(arguments: &WarmCacheArguments, settings: &[(&str, String)], port: u16) -> anyhow::Result<bool> {
    let mut site = start(&arguments.common, settings).await?;
    let rng = Rng::seeded(1);
    let rows = Rows::new((arguments.size << 20) / ROW_BYTES, &rng);
    let name = TableName::parse(TABLE)?;
    let gets = |table: &client::Table| -> Vec<Gets> {
        (0..CLIENTS).map(|_| Gets(table.clone(), rows.clone(), Rng::seeded(rng.next_u64()))).collect()
    };
    let pace = Pace { warm_up: Duration::ZERO, measure: Some(STEP), per_second: None };
    let before = {
        let connection = site.connect();
        let descriptor = TableDescriptor::new(name.clone(), [FamilyDescriptor::new(FAMILY)]);
        connection.admin().create_table(&descriptor, &rows.splits(4)).await?;
        let table = connection.table(&name);
        let next = Arc::new(AtomicU64::new(0));
        let load = |_| Load {
            table: table.clone(),
            rows: rows.clone(),
            rng: Rng::seeded(rng.next_u64()),
            next: next.clone(),
            until: rows.count,
        };
        play((0..4).map(load).collect(), Pace { measure: None, ..pace }, &[site.pid()]).await;
        connection.admin().flush(&name).await?;
        println!("loaded {} rows, {} MiB", rows.count, (rows.count * ROW_BYTES) >> 20);
        let (mut seen, mut ratio) = (looked_up(port).await?, 0.0);
        for _ in 0..MOST_STEPS {
            play(gets(&table), pace, &[site.pid()]).await;
            let now = looked_up(port).await?;
            let (last, of_step) = (ratio, now.ratio_since(seen));
            (seen, ratio) = (now, of_step);
            if ratio > 0.5 && ratio - last < LEAST_GAIN {
                break;
            }
        }
        ratio
    };
    println!("L2 hit ratio before the restart: {:.1} %", before * 100.0);
    site.terminate()?;
    let began = Instant::now();
    site.spawn()?;
    site.ready().await?;
    println!("the restart took {:.2} s", began.elapsed().as_secs_f64());
    let connection = site.connect();
    let table = connection.table(&name);
    let (served, mut seen, mut back) = (Instant::now(), looked_up(port).await?, None);
    while served.elapsed() < 2 * WITHIN {
        play(gets(&table), Pace { measure: Some(Duration::from_secs(1)), ..pace }, &[site.pid()]).await;
        let now = looked_up(port).await?;
        let (ratio, after) = (now.ratio_since(seen), served.elapsed());
        seen = now;
        println!("{:>6.1} s  {:.1} %", after.as_secs_f64(), ratio * 100.0);
        if ratio >= SHARE * before {
            back = Some(after);
            break;
        }
    }
    site.clear();
    let is_met = back.is_some_and(|after| after <= WITHIN);
    if !is_met {
        println!("missed: {SHARE} times the hit ratio before the restart, within {} s", WITHIN.as_secs());
    }
    Ok(is_met)
}

/// How often a block was looked for in the second level.
#[derive(Clone, Copy, Debug)]
struct LookedUp {
    hits: f64,
    misses: f64,
}

impl LookedUp {
    fn ratio_since(self, before: LookedUp) -> f64 {
        let (hits, misses) = (self.hits - before.hits, self.misses - before.misses);
        if hits + misses > 0.0 { hits / (hits + misses) } else { 0.0 }
    }
}

async fn looked_up(port: u16) -> anyhow::Result<LookedUp> {
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
    let asked = b"GET /jmx?qry=Hadoop:service=HBase,name=RegionServer,sub=Server HTTP/1.0\r\n\r\n";
    stream.write_all(asked).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer);
    let Some((_, body)) = answer.split_once("\r\n\r\n") else {
        bail!("GET /jmx on port {port}: no HTTP response: {answer:?}")
    };
    counts(body)
}

fn counts(body: &str) -> anyhow::Result<LookedUp> {
    let beans: serde_json::Value = serde_json::from_str(body).context("/jmx answers no JSON")?;
    let count = |name: &str| {
        let found = beans["beans"].as_array().into_iter().flatten().find_map(|bean| bean[name].as_f64());
        found.with_context(|| format!("/jmx has no {name}"))
    };
    Ok(LookedUp { hits: count("l2CacheHitCount")?, misses: count("l2CacheMissCount")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_of_what_was_looked_for_since() {
        let body = |hits, misses| format!(r#"{{"beans":[{{"l2CacheHitCount":{hits},"l2CacheMissCount":{misses}}}]}}"#);
        let (before, now) = (counts(&body(10, 90)).expect("there"), counts(&body(70, 110)).expect("there"));
        assert_eq!(now.ratio_since(before), 0.75);
        assert_eq!(now.ratio_since(now), 0.0);
        counts(r#"{"beans":[]}"#).expect_err("no such metrics");
    }
}
