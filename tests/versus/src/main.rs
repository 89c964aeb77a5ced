//! The engine in process beside embedded RocksDB: the same keys and values, the same guarantees, one thread, turn by turn.
//!
//! `cargo run --release --manifest-path tests/versus/Cargo.toml [ROWS] [DIR]`; needs librocksdb-dev. What is compared and how it may be
//! read: docs/internals/benchmarks.md.

mod rocks;

use base::{Rng, SystemClock};
use bench::data::{self, Engine, VALUE_BYTES};
use bench::scratch::Scratch;
use bytes::Bytes;
use cell::CellBuffer;
use hfile::Residency;
use model::{Durability, Get, Scan};
use region::{Limits, Region};
use rocks::Rocks;
use std::path::PathBuf;
use std::sync::Arc;
use wal::SyncMode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 5;
const BATCH: usize = 100;
const GETS: u64 = 100_000;
/// Neither engine flushes by itself while it is written to, and both hold all blocks.
const MEMTABLE_BYTES: usize = 1 << 30;
const CACHE_BYTES: usize = 2 << 30;

/// Operations per second of wall and of CPU time (all threads), one entry per round.
#[derive(Default)]
struct Rates(Vec<(f64, f64)>);

impl Rates {
    fn time(&mut self, ops: u64, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
        let clock = SystemClock::new();
        let (start_us, start_cpu) = (base::Clock::monotonic_us(&clock), cpu_seconds());
        work()?;
        let wall = (base::Clock::monotonic_us(&clock) - start_us) as f64 / 1e6;
        self.0.push((ops as f64 / wall, ops as f64 / (cpu_seconds() - start_cpu)));
        Ok(())
    }

    fn median(&self, of: impl Fn(&(f64, f64)) -> f64) -> f64 {
        let mut values: Vec<f64> = self.0.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    }
}

fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

struct Basalt {
    region: Arc<Region>,
    _engine: Engine,
}

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let rows: u64 = words.next().map_or(Ok(100_000), |word| word.parse())?;
    let parent = words.next().map_or_else(std::env::temp_dir, PathBuf::from);
    region::set_chunk_pool_limit(MEMTABLE_BYTES);
    let value = data::value(VALUE_BYTES, &Rng::seeded(1));
    let keys: Vec<Bytes> = (0..rows).map(data::row).collect();
    // Made before: a client has decoded a call when the engine gets it.
    let puts = data::puts(0..rows, Durability::UseDefault);

    let [mut writes, mut reads, mut scans] = [(); 3].map(|()| [Rates::default(), Rates::default()]);
    for round in 0..ROUNDS {
        let (ours_dir, theirs_dir) = (Scratch::below(&parent)?, Scratch::below(&parent)?);
        let engine = Engine::on_disk(ours_dir, SyncMode::Written)?;
        let ours = Basalt { region: engine.region()?, _engine: engine };
        let mut theirs = Rocks::open(theirs_dir.path(), MEMTABLE_BYTES, CACHE_BYTES, 4096)?;
        for turn in 0..2 {
            if (turn + round) % 2 == 0 {
                writes[0].time(rows, || puts.chunks(BATCH).try_for_each(|batch| data::apply(&ours.region, batch)))?;
            } else {
                writes[1].time(rows, || {
                    keys.chunks(BATCH)
                        .try_for_each(|batch| theirs.put_all(batch.iter().map(|key| (&key[..], &value[..]))))
                })?;
            }
        }
        data::flush(&ours.region)?;
        theirs.settle()?;
        // The first pass fills the caches; the second is timed.
        for timed in [false, true] {
            for turn in 0..2 {
                if (turn + round) % 2 == 0 {
                    let scan = || scan_ours(&ours.region, rows);
                    if timed { scans[0].time(rows, scan)? } else { scan()? }
                } else {
                    let scan = || scan_theirs(&theirs, rows);
                    if timed { scans[1].time(rows, scan)? } else { scan()? }
                }
            }
        }
        let rng = Rng::seeded(round as u64);
        let wanted: Vec<&Bytes> = (0..GETS).map(|_| &keys[rng.below(rows) as usize]).collect();
        for turn in 0..2 {
            if (turn + round) % 2 == 0 {
                reads[0].time(GETS, || {
                    let mut out = CellBuffer::new();
                    for key in &wanted {
                        out.clear();
                        ours.region.get(&Get::new((*key).clone()), &mut out, Residency::MayRead)?;
                        anyhow::ensure!(out.len() == 1, "a row is missing");
                    }
                    Ok(())
                })?;
            } else {
                reads[1].time(GETS, || {
                    let mut out = Vec::new();
                    for key in &wanted {
                        out.clear();
                        anyhow::ensure!(theirs.get(key, &mut out)?, "a key is missing");
                    }
                    Ok(())
                })?;
            }
        }
    }

    println!("{rows} rows of {VALUE_BYTES} bytes, median of {ROUNDS} rounds, operations per second (of CPU time)");
    println!("{:<24} {:>22} {:>22} {:>8} {:>8} {:>6}", "", "Basalt", "RocksDB", "rate", "CPU", "goal");
    for (name, goal, rates) in
        [("point reads, cached", 60, reads), ("writes in batches of 100", 70, writes), ("full scan, cached", 80, scans)]
    {
        let wall = |at: usize| rates[at].median(|r| r.0);
        let cpu = |at: usize| rates[at].median(|r| r.1);
        let figure = |at: usize| format!("{:.0} ({:.0})", wall(at), cpu(at));
        println!(
            "{name:<24} {:>22} {:>22} {:>7.0}% {:>7.0}% {goal:>5}%",
            figure(0),
            figure(1),
            wall(0) / wall(1) * 100.0,
            cpu(0) / cpu(1) * 100.0
        );
    }
    Ok(())
}

/// As a server does: cells into a buffer that leaves when it is full.
fn scan_ours(region: &Arc<Region>, rows: u64) -> anyhow::Result<()> {
    let mut scanner = region.scanner(&Scan::default())?;
    let (mut limits, mut out, mut seen) = (Limits::NONE, CellBuffer::new(), 0);
    loop {
        let progress = scanner.next(&mut limits, &mut out)?;
        seen += progress.cells as u64;
        if !progress.more {
            break;
        }
        if out.len() >= 100 {
            out.clear();
        }
    }
    anyhow::ensure!(seen == rows, "{seen} rows, not {rows}");
    Ok(())
}

/// The same: keys and values into a buffer.
fn scan_theirs(rocks: &Rocks, rows: u64) -> anyhow::Result<()> {
    let (mut out, mut here, mut seen) = (Vec::new(), 0, 0);
    rocks.scan(|key, value| {
        out.extend_from_slice(key);
        out.extend_from_slice(value);
        here += 1;
        seen += 1;
        if here == 100 {
            out.clear();
            here = 0;
        }
    });
    anyhow::ensure!(seen == rows, "{seen} rows, not {rows}");
    Ok(())
}
