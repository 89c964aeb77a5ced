//! Writes over three volumes of one tier, of which one takes longer for each call: what is left of the rate and of the waits of three volumes alike, once the
//! server has gone around the slow one.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use base::Rng;
use client::Table;
use model::{Durability, FamilyDescriptor, TableDescriptor, TableName};

use super::{SlowVolumeArguments, ms, start};
use crate::compare::drive::{Pace, play};
use crate::compare::figures::{Figure, Measured};
use crate::compare::workers::{FAMILY, Puts, Rows};

const TABLE: &str = "volumes";
const ROWS: u64 = 200_000;
const VOLUMES: [&str; 3] = ["volume-1", "volume-2", "volume-3"];
/// Small, so that files are written all the time.
const FLUSH_SIZE_BYTES: u64 = 16 << 20;
/// What is left of the rate at least, and how much longer the 99th percentile may be.
const LEAST_OF_RATE: f64 = 0.9;
const MOST_OF_P99: f64 = 2.0;

/// What writers saw in one run.
#[derive(Clone, Copy, Debug)]
struct Seen {
    per_second: f64,
    p99: Duration,
    longest: Duration,
}

impl Seen {
    fn of(measured: &Measured) -> anyhow::Result<Seen> {
        let value = |figure| measured.value(figure).context("nothing was written");
        let time = |figure| anyhow::Ok(Duration::from_secs_f64(value(figure)? / 1e6));
        Ok(Seen { per_second: value(Figure::Operations)?, p99: time(Figure::P99)?, longest: time(Figure::Longest)? })
    }
}

/// Runs it, prints its table, and says whether the target is met.
pub(super) fn run(arguments: &SlowVolumeArguments) -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    println!("{:<26}{:>12}{:>12}{:>14}", "single puts, 32 clients", "a second", "p99 (ms)", "longest (ms)");
    let (mut alike, mut delayed) = (Vec::new(), Vec::new());
    for run in 1..=arguments.runs.max(1) {
        for is_delayed in [false, true] {
            let seen = runtime.block_on(measure(arguments, is_delayed))?;
            let what = if is_delayed { "one takes longer" } else { "three alike" };
            println!(
                "{:<26}{:>12.0}{:>12}{:>14}",
                format!("run {run}, {what}"),
                seen.per_second,
                ms(seen.p99),
                ms(seen.longest)
            );
            if is_delayed { &mut delayed } else { &mut alike }.push(seen);
        }
    }
    Ok(judge(&alike, &delayed))
}

/// Says what is left, of the means over the runs.
fn judge(alike: &[Seen], delayed: &[Seen]) -> bool {
    let ratio = |figure: fn(&Seen) -> f64| {
        let sum = |seen: &[Seen]| seen.iter().map(figure).sum::<f64>();
        sum(delayed) / sum(alike)
    };
    let (rate, p99) = (ratio(|seen| seen.per_second), ratio(|seen| seen.p99.as_secs_f64()));
    println!("one slow volume of three: {rate:.2} times the throughput, {p99:.2} times the 99th percentile latency");
    let is_met = rate >= LEAST_OF_RATE && p99 <= MOST_OF_P99;
    if !is_met {
        println!(
            "missed: at least {LEAST_OF_RATE} times the throughput, at most {MOST_OF_P99} times the 99th percentile latency"
        );
    }
    is_met
}

async fn measure(arguments: &SlowVolumeArguments, is_delayed: bool) -> anyhow::Result<Seen> {
    let parent = arguments.common.out.parent().unwrap_or(&arguments.common.out);
    let own = parent.join(format!("basalt-volumes-{}", std::process::id()));
    let volumes = VOLUMES.map(|name| own.join(name));
    for dir in &volumes {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    }
    let volumes: Vec<PathBuf> = volumes.iter().map(|dir| dir.canonicalize()).collect::<Result<_, _>>()?;
    let said: Vec<String> = volumes.iter().map(|dir| format!("data:ssd:{}", dir.display())).collect();
    let mut settings =
        vec![("basalt.volumes", said.join(",")), ("hbase.hregion.memstore.flush.size", FLUSH_SIZE_BYTES.to_string())];
    settings.extend(
        [
            "basalt.volumes.place.wal",
            "basalt.volumes.place.flush",
            "basalt.volumes.place.minor",
            "basalt.volumes.place.major",
        ]
        .map(|key| (key, "data".to_owned())),
    );
    if is_delayed {
        let delay = format!("{}={}", volumes[0].display(), arguments.delay);
        settings.push(("basalt.volumes.delay.for.tests", delay));
    }
    let outcome = writes(arguments, &settings).await;
    std::fs::remove_dir_all(&own).ok();
    outcome
}

async fn writes(arguments: &SlowVolumeArguments, settings: &[(&str, String)]) -> anyhow::Result<Seen> {
    let mut site = start(&arguments.common, settings).await?;
    let connection = site.connect();
    let rng = Rng::seeded(1);
    let (name, rows) = (TableName::parse(TABLE)?, Rows::new(ROWS, &rng));
    let descriptor = TableDescriptor::new(name.clone(), [FamilyDescriptor::new(FAMILY)]);
    connection.admin().create_table(&descriptor, &rows.splits(4)).await?;
    let table: Table = connection.table(&name);
    let put = |_| Puts(table.clone(), rows.clone(), Rng::seeded(rng.next_u64()), Durability::UseDefault);
    let pace = Pace {
        warm_up: Duration::from_secs(arguments.settle),
        measure: Some(Duration::from_secs(arguments.seconds)),
        per_second: None,
    };
    let measured = play((0..32).map(put).collect(), pace, &[site.pid()]).await;
    anyhow::ensure!(measured.errors == 0, "{} writes failed", measured.errors);
    site.clear();
    Seen::of(&measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_less_is_met_and_more_is_not() {
        let seen = |per_second, p99| Seen { per_second, p99: Duration::from_millis(p99), longest: Duration::ZERO };
        let alike = [seen(900.0, 10), seen(1100.0, 10)];
        assert!(judge(&alike, &[seen(910.0, 20), seen(900.0, 20)]));
        assert!(!judge(&alike, &[seen(890.0, 10), seen(890.0, 10)]), "the rate");
        assert!(!judge(&alike, &[seen(1000.0, 21), seen(1000.0, 21)]), "the waits");
    }
}
