//! Rates of the HFile crate on this machine: writing, loading blocks, seeking, scanning, Bloom filters.
//!
//! `cargo run --release -p basalt-hfile --example hfile_bench [cells]`; the file lies in memory, so no disk is measured.

use basalt_hfile::*;
use base::{Clock, Rng, SeqId, SystemClock};
use cell::{CellRef, CellSpec, KeyRef};
use fs::{FilePath, MemVolume};
use std::hint::black_box;

const VALUE_BYTES: usize = 100;

fn row(i: u64) -> String {
    format!("user{i:012}")
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let count: u64 = std::env::args().nth(1).map_or(Ok(500_000), |text| text.parse())?;
    let clock = SystemClock::new();
    let rng = Rng::seeded(1);
    let mut bytes = Vec::new();
    let mut cells = Vec::new();
    for i in 0..count {
        let start = bytes.len();
        // Half noise, half text: compresses about as real values do.
        let value: Vec<u8> = (0..VALUE_BYTES).map(|b| if b % 2 == 0 { rng.next_u64() as u8 } else { b'v' }).collect();
        let row = row(i);
        CellSpec {
            row: row.as_bytes(),
            family: b"f",
            qualifier: b"field0",
            timestamp: 1_700_000_000_000 + rng.below(100_000) as i64,
            type_code: 4,
            value: &value,
            tags: b"",
        }
        .write(&mut bytes);
        cells.push((start, bytes.len()));
    }
    println!("{count} cells, {} MB; rates are of plain cell bytes", bytes.len() >> 20);
    println!(
        "{:12} {:7} {:>9} {:>9} {:>9} {:>11} {:>11} {:>9}",
        "encoding", "codec", "write", "load", "scan", "seek", "cold seek", "file"
    );
    let mega = |us: u64| format!("{:.0} MB/s", bytes.len() as f64 / us.max(1) as f64);
    for &encoding in Encoding::ALL {
        for compression in
            [Compression::None, Compression::Snappy, Compression::Lz4, Compression::Zstd, Compression::Gz]
        {
            let volume = MemVolume::new();
            let path = FilePath::new("file");
            let options = WriterOptions { encoding, compression, bloom: BloomType::Row, ..WriterOptions::default() };
            let begin = clock.monotonic_us();
            let mut writer = Writer::create(&volume, &path, options)?;
            for (start, end) in &cells {
                writer.append(CellRef::from_checked(&bytes[*start..*end], SeqId(0)))?;
            }
            let finished = writer.finish(&StoreMetadata::default())?;
            let write_us = clock.monotonic_us() - begin;

            let cache = BlockCache::new(1 << 30);
            let context = ReaderContext { cache: Some(cache), ..ReaderContext::default() };
            let reader = Reader::open(&volume, &path, context)?;
            let scan = |pread: bool| -> Result<u64> {
                let begin = clock.monotonic_us();
                let mut scanner = reader.scanner(ScanOptions { pread, ..ScanOptions::default() });
                let mut more = scanner.seek_to_first()?;
                let mut seen = 0;
                while more {
                    seen += scanner.current().map_or(0, |cell| black_box(cell).value().len());
                    more = scanner.next()?;
                }
                assert_eq!(seen, count as usize * VALUE_BYTES);
                Ok(clock.monotonic_us() - begin)
            };
            let (load_us, scan_us) = (scan(true)?, scan(true)?);

            let seeks = 200_000;
            let seek = |scanner: &mut Scanner, n: u64| -> Result<u64> {
                let mut key = Vec::new();
                let begin = clock.monotonic_us();
                for _ in 0..n {
                    key.clear();
                    KeyRef::write(&mut key, row(rng.below(count)).as_bytes(), b"f", b"", i64::MAX, 255);
                    assert!(scanner.seek(KeyRef::from_checked(&key))?);
                    black_box(scanner.current());
                }
                Ok(clock.monotonic_us() - begin)
            };
            // The best of several rounds: others use the machine too.
            let mut scanner = reader.scanner(ScanOptions::default());
            let mut seek_us = u64::MAX;
            for _ in 0..100 {
                seek_us = seek_us.min(seek(&mut scanner, seeks / 100)?);
            }
            let uncached = Reader::open(&volume, &path, ReaderContext::default())?;
            let cold_us = seek(&mut uncached.scanner(ScanOptions::default()), 2000)?;
            println!(
                "{:12} {:7} {:>9} {:>9} {:>9} {:>8.2} us {:>8.1} us {:>6} MB",
                encoding.as_str(),
                compression.as_str(),
                mega(write_us),
                mega(load_us),
                mega(scan_us),
                seek_us as f64 / (seeks / 100) as f64,
                cold_us as f64 / 2000.0,
                finished.len_bytes >> 20,
            );
            if encoding == Encoding::None && compression == Compression::None {
                println!("    a step of a cached scan: {:.1} ns", scan_us as f64 * 1000.0 / count as f64);
                let begin = clock.monotonic_us();
                let mut maybe = 0;
                for i in 0..seeks {
                    maybe += u64::from(reader.may_contain_row(row(count + i).as_bytes(), Residency::MayRead)?);
                }
                let bloom_ns = (clock.monotonic_us() - begin) as f64 * 1000.0 / seeks as f64;
                println!(
                    "    a Bloom answer: {bloom_ns:.0} ns (with making the row); {maybe} of {seeks} absent rows not refused"
                );
            }
        }
    }
    Ok(())
}
