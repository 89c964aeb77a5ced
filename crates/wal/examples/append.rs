//! Appends and group commits per second on the local disk.
//!
//! `cargo run --release -p basalt-wal --example append -- <empty directory> [seconds] [value bytes]`

use basalt_wal::{EntryKey, Log, LogOptions, SyncMode};
use base::{Clock, SeqId, SystemClock, TimestampMs};
use cell::{CellBuffer, CellSpec, CellType};
use fs::{FilePath, LocalVolume, Volume};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How an appender waits.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Wait {
    /// For each entry, leading groups itself.
    Leading,
    /// For each entry, while a thread syncs.
    Syncer,
    /// Never, while a thread syncs (ASYNC_WAL).
    Never,
}

fn main() {
    let mut args = std::env::args().skip(1);
    let dir = args.next().expect("a directory to write in");
    let seconds: u64 = args.next().map_or(2, |s| s.parse().expect("seconds"));
    let value_bytes: usize = args.next().map_or(100, |s| s.parse().expect("bytes"));
    let volume = Arc::new(LocalVolume::open(Path::new(&dir)).expect("open"));
    println!("{value_bytes}-byte values, {seconds} s each");
    println!("mode     wait     threads   appends/s  groups/s  per group  MB/s  mean sync us");
    for mode in [SyncMode::Synced, SyncMode::Written] {
        for wait in [Wait::Leading, Wait::Syncer, Wait::Never] {
            for threads in [1, 8, 64] {
                run(&volume, mode, wait, threads, seconds, value_bytes);
            }
        }
    }
}

fn run(volume: &Arc<LocalVolume>, mode: SyncMode, wait: Wait, threads: usize, seconds: u64, value_bytes: usize) {
    let clock = Arc::new(SystemClock::new());
    let options = LogOptions { sync_mode: mode, ..LogOptions::default() };
    let log_dir = FilePath::new("bench");
    let log = Log::create(Arc::clone(volume) as Arc<dyn Volume>, log_dir.clone(), "h,1,2", options, clock.clone())
        .expect("create");
    let (stop, total) = (AtomicBool::new(false), AtomicU64::new(0));
    let value = vec![b'x'; value_bytes];
    let start_us = clock.monotonic_us();
    std::thread::scope(|scope| {
        if wait != Wait::Leading {
            scope.spawn(|| log.run_syncer().expect("syncer"));
        }
        scope.spawn(|| {
            while log.wait_roll_wanted() {
                let rolled = log.roll().expect("roll");
                rolled.into_iter().for_each(|rolled| volume.remove_file(&rolled.old).expect("remove"));
            }
        });
        let writers: Vec<_> = (0..threads)
            .map(|t| {
                let (log, stop, total, value, clock) = (&log, &stop, &total, &value, &clock);
                scope.spawn(move || {
                    let region: Arc<str> = Arc::from(format!("{t:032x}"));
                    let mut cells = CellBuffer::new();
                    let type_code = CellType::Put.code();
                    let spec = CellSpec {
                        row: b"row-0000000000000001",
                        family: b"cf",
                        qualifier: b"q",
                        timestamp: 1,
                        type_code,
                        value,
                        tags: b"",
                    };
                    cells.push_spec(&spec, SeqId(0));
                    let mut seq = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let key = EntryKey::new(&region, "ns:table", SeqId(seq + 1), TimestampMs(1), &[b"cf"]);
                        let Ok(ticket) = log.append(&key, cells.bytes(), 1) else {
                            std::thread::yield_now();
                            continue;
                        };
                        seq += 1;
                        if wait != Wait::Never {
                            ticket.wait().expect("sync");
                        }
                        if t == 0 && seq % 64 == 0 && clock.monotonic_us() - start_us > seconds * 1_000_000 {
                            stop.store(true, Ordering::Relaxed);
                        }
                    }
                    total.fetch_add(seq, Ordering::Relaxed);
                })
            })
            .collect();
        writers.into_iter().for_each(|w| w.join().expect("writer"));
        log.close().expect("close");
    });
    let took = (clock.monotonic_us() - start_us) as f64 / 1e6;
    let (stats, appends) = (log.stats(), total.into_inner() as f64);
    println!(
        "{:<8} {:<8} {threads:>7} {:>11.0} {:>9.0} {:>10.1} {:>5.0} {:>13.0}",
        format!("{mode:?}"),
        format!("{wait:?}"),
        appends / took,
        stats.groups as f64 / took,
        appends / stats.groups.max(1) as f64,
        stats.bytes as f64 / took / 1e6,
        stats.sync_us as f64 / stats.syncs.max(1) as f64,
    );
    volume.remove_dir_all(&log_dir).expect("remove");
}
