//! The log on a fast volume, everything else on one that takes 50 ms for each call: writes slow down with what is owed, in time, and none is
//! refused. In real time, with threads as a server has them.

use crate::common::{Server, family, put, table_name, whole_table};
use basalt_region::{CompactionKind, FlushRequest, OpenRegion, Region, RegionEnv, RegionError, Unthrottled};
use base::{Config, SystemClock};
use fs::tiered::{Attached, Rules, TieredVolume};
use fs::{MemVolume, SlowVolume, Trouble, Volume};
use model::TableDescriptor;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const FLUSH_BYTES: u64 = 4 << 20;
const VALUE_BYTES: usize = 8 << 10;

fn region_on(trouble: &Trouble) -> Arc<Region> {
    let mut config = Config::default();
    config.set("hbase.hregion.memstore.flush.size", FLUSH_BYTES.to_string());
    let server = Server::try_on(MemVolume::new(), 1_700_000_000_000, &config, 1).expect("an empty volume");
    let slow = SlowVolume::new(Arc::new(MemVolume::new()), trouble.clone());
    let spec = Attached { spec: "slow:hdd:/data/1".parse().expect("legal"), volume: Some(Arc::new(slow)), claim: None };
    let kinds = ["flush", "minor", "major"].map(|kind| (kind, "slow".to_owned()));
    let rules = Rules { kinds: kinds.into(), ..Rules::default() };
    let home = Arc::new(server.volume.clone());
    let attached = TieredVolume::attach(home, vec![spec], rules, &server.rng, Arc::new(|_| {})).expect("attached").0;
    let env = RegionEnv {
        volume: Arc::new(attached) as Arc<dyn Volume>,
        clock: Arc::new(SystemClock::new()),
        ..(*server.env).clone()
    };
    let table = Arc::new(TableDescriptor::new(table_name(), [family("f")]));
    Region::open(OpenRegion { info: whole_table(), table, env: Arc::new(env) }).expect("a new region opens")
}

#[derive(Default)]
struct Seen {
    refused: AtomicU64,
    bytes: AtomicU64,
    waits_us: std::sync::Mutex<Vec<u64>>,
}

impl Seen {
    fn quantile(&self, part: f64) -> Duration {
        let mut waits = self.waits_us.lock().expect("not poisoned").clone();
        waits.sort_unstable();
        Duration::from_micros(waits[((waits.len() - 1) as f64 * part) as usize])
    }
}

/// Sixteen clients that want to write so many bytes a second together, each with one write at a time.
#[allow(clippy::disallowed_methods, reason = "clients of a test, in real time")]
fn load(region: &Arc<Region>, bytes_per_second: f64, time: Duration) -> Seen {
    let (seen, begun, value) = (Seen::default(), Instant::now(), "v".repeat(VALUE_BYTES));
    let pause = Duration::from_secs_f64(16.0 * VALUE_BYTES as f64 / bytes_per_second);
    std::thread::scope(|scope| {
        for client in 0..16 {
            let (seen, value) = (&seen, &value);
            scope.spawn(move || {
                let mut next = begun + pause.mul_f64(f64::from(client) / 16.0);
                let mut number = 0;
                while begun.elapsed() < time {
                    // Who was held up does not catch up: it is one client.
                    next = next.max(Instant::now());
                    std::thread::sleep(next.saturating_duration_since(Instant::now()));
                    next += pause;
                    number += 1;
                    let write = put(&format!("{client}-{number}"), "f", "q", i64::MAX, value);
                    let from = Instant::now();
                    std::thread::sleep(Duration::from_micros(region.write_wait_us(VALUE_BYTES as u64)));
                    match region.apply(&[write]).and_then(|applied| applied.only(region)) {
                        Ok((_, commit)) => commit.wait().expect("logged"),
                        Err(RegionError::TooBusy(_)) => drop(seen.refused.fetch_add(1, Relaxed)),
                        Err(error) => panic!("{error}"),
                    }
                    seen.bytes.fetch_add(VALUE_BYTES as u64, Relaxed);
                    seen.waits_us.lock().expect("not poisoned").push(from.elapsed().as_micros() as u64);
                }
            });
        }
    });
    seen
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a flusher and a compactor of a test, in real time")]
fn writes_over_a_slow_volume_are_slowed_in_time_and_none_is_refused() {
    let trouble = Trouble::default();
    let region = region_on(&trouble);
    trouble.delay(Duration::from_millis(50));
    let (stop, threads) = (Arc::new(AtomicBool::new(false)), 2);
    let workers: Vec<_> = (0..threads)
        .map(|which| {
            let (region, stop) = (region.clone(), stop.clone());
            std::thread::spawn(move || {
                while !stop.load(Relaxed) {
                    std::thread::sleep(Duration::from_millis(5));
                    if which == 0 && region.needs_flush().is_some() {
                        region.flush(&FlushRequest::default()).expect("flushed");
                    }
                    let job = if which == 1 { region.select_compaction(None, CompactionKind::Minor) } else { Ok(None) };
                    if let Some(job) = job.expect("open") {
                        region.compact(job, &Unthrottled).expect("compacted");
                    }
                }
            })
        })
        .collect();
    // What it absorbs is found by writing more than that.
    let _warm = load(&region, 64e6, Duration::from_secs(4));
    let flood = load(&region, 64e6, Duration::from_secs(6));
    let absorbs = flood.bytes.load(Relaxed) as f64 / 6.0;
    let twice = load(&region, absorbs * 2.0, Duration::from_secs(6));
    // What is owed goes first.
    let _rest = load(&region, absorbs / 4.0, Duration::from_secs(4));
    let same = load(&region, absorbs * 0.8, Duration::from_secs(6));
    stop.store(true, Relaxed);
    workers.into_iter().for_each(|worker| worker.join().expect("it ends"));
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    let say = |name: &str, seen: &Seen| {
        format!(
            "{name}: {:.1} MiB written, {} refused, median {:?}, p99.9 {:?}, longest {:?}",
            mib(seen.bytes.load(Relaxed) as f64),
            seen.refused.load(Relaxed),
            seen.quantile(0.5),
            seen.quantile(0.999),
            seen.quantile(1.0)
        )
    };
    let told =
        [("flood", &flood), ("twice", &twice), ("0.8 of what it absorbs", &same)].map(|(n, s)| say(n, s)).join("\n");
    println!("absorbs {:.1} MiB a second\n{told}", mib(absorbs));
    assert_eq!([&flood, &twice, &same].map(|seen| seen.refused.load(Relaxed)), [0; 3], "{told}");
    assert!(twice.quantile(0.999) < Duration::from_secs(1), "{told}");
    assert!(same.quantile(1.0) < Duration::from_millis(200), "{told}");
}
