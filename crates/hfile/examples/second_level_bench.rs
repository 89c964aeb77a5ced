//! What the second level of the block cache costs on a miss, and how warm it is after a restart:
//! `cargo run --release -p basalt-hfile --example second_level_bench -- DIRECTORY [MEGABYTES]`. Reads come from the operating system's page cache.
#![allow(clippy::disallowed_methods, reason = "measures a real machine: its clocks, its disk")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use basalt_hfile::{
    BlockCache, Reader, ReaderContext, ScanOptions, SecondLevel, SecondLevelOptions, StoreMetadata, Writer,
    WriterOptions,
};
use base::{Rng, SeqId};
use cell::{CellRef, CellSpec};
use fs::{FilePath, LocalVolume, Volume};

const VALUE_BYTES: usize = 1000;
const READS: usize = 40_000;

fn key(n: u64) -> Vec<u8> {
    format!("user{:016x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).into_bytes()
}

fn cell_of(row: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let spec = CellSpec { row, family: b"f", qualifier: b"q", timestamp: 1, type_code: 4, value, tags: b"" };
    spec.write(&mut bytes);
    bytes
}

fn write(volume: &dyn Volume, path: &FilePath, rows: u64) {
    let _ = volume.remove_file(path);
    let mut keys: Vec<Vec<u8>> = (0..rows).map(key).collect();
    keys.sort();
    let mut writer = Writer::create(volume, path, WriterOptions::default()).expect("create");
    let rng = Rng::seeded(1);
    for row in keys {
        let value: Vec<u8> = (0..VALUE_BYTES / 8).flat_map(|_| rng.next_u64().to_be_bytes()).collect();
        let bytes = cell_of(&row, &value);
        writer.append(CellRef::from_checked(&bytes, SeqId(1))).expect("append");
    }
    writer.finish(&StoreMetadata::default()).expect("finish");
}

/// Random gets, half of them of a tenth of the rows; microseconds for each.
fn read(reader: &Arc<Reader>, rows: u64, seed: u64) -> f64 {
    let rng = Rng::seeded(seed);
    let begun = Instant::now();
    for _ in 0..READS {
        let n = if rng.one_in(2) { rng.below(rows / 10) } else { rng.below(rows) };
        let mut scanner = reader.scanner(ScanOptions::default());
        let wanted = cell_of(&key(n), b"");
        scanner.seek(CellRef::from_checked(&wanted, SeqId(0)).key()).expect("seek");
    }
    begun.elapsed().as_secs_f64() * 1e6 / READS as f64
}

fn main() {
    let mut words = std::env::args().skip(1);
    let dir = PathBuf::from(words.next().expect("a directory"));
    let megabytes: u64 = words.next().map_or(1024, |text| text.parse().expect("a number"));
    let data = LocalVolume::open(&dir.join("data")).expect("open");
    let path = FilePath::new("file");
    let rows = (megabytes << 20) / VALUE_BYTES as u64;
    write(&data, &path, rows);
    let flash: Arc<dyn Volume> = Arc::new(LocalVolume::open(&dir.join("flash")).expect("open"));
    let second = |keeps: bool| {
        let options = SecondLevelOptions { keeps, ..SecondLevelOptions::new((megabytes << 20) / 2, 7) };
        let begun = Instant::now();
        let second = SecondLevel::open(flash.clone(), options, Arc::new(|told| eprintln!("{told}"))).expect("open");
        (Arc::new(second), begun.elapsed())
    };
    let open = |second: Option<Arc<SecondLevel>>| {
        let cache = BlockCache::over((megabytes << 20) / 64, second);
        Reader::open(&data, &path, ReaderContext { cache: Some(cache), ..ReaderContext::default() }).expect("open")
    };
    // In turns: the same reads without a second level, and with one that is empty and takes nothing.
    for round in 0..3 {
        let without = read(&open(None), rows, round);
        let (empty, _) = second(false);
        empty.close();
        let with = read(&open(Some(empty.clone())), rows, round);
        println!(
            "round {round}: {without:.2} us without, {with:.2} us where all miss: {:+.1} %",
            (with / without - 1.0) * 100.0
        );
    }
    let (cache, _) = second(false);
    let writer = std::thread::spawn({
        let cache = cache.clone();
        move || {
            while cache.wait_for_work() {
                cache.write_segment();
            }
            cache.write_segment();
        }
    });
    let reader = open(Some(cache.clone()));
    for seed in 10..40 {
        read(&reader, rows, seed);
    }
    let before = cache.stats();
    read(&reader, rows, 41);
    let after = cache.stats();
    let ratio = |before: basalt_hfile::SecondLevelStats, after: basalt_hfile::SecondLevelStats| {
        let (hits, misses) = (after.hits - before.hits, after.misses - before.misses);
        100.0 * hits as f64 / (hits + misses).max(1) as f64
    };
    let warm = ratio(before, after);
    cache.close();
    writer.join().expect("no panic");
    println!("{:?}", cache.stats());
    drop((reader, cache));
    let (cache, took) = second(true);
    let blocks = cache.stats().blocks;
    let reader = open(Some(cache.clone()));
    let before = cache.stats();
    let us = read(&reader, rows, 42);
    let again = ratio(before, cache.stats());
    println!(
        "hit ratio {warm:.1} % before the restart, {again:.1} % in the first {READS} reads after it ({us:.1} us each); {blocks} blocks \
         taken over in {:.1} ms",
        took.as_secs_f64() * 1e3
    );
}
