//! The short way to one row against the usual one, which the same Get takes as a scan.

use crate::common::*;
use basalt_region::Region;
use base::Rng;
use bytes::Bytes;
use cell::CellType;
use model::{Get, Scan, TimeRange};
use std::sync::Arc;

const COLUMNS: [&str; 6] = ["", "a", "b", "c", "d", "e"];

/// Few rows with many versions each, the same time now and then, and hardly a marker; spread over files and memory.
fn fill(region: &Arc<Region>, rng: &Rng, deletes_one_in: u64) {
    for step in 0..800 {
        let row = format!("row{:02}", rng.below(40));
        let timestamp = 1000 + rng.below(60) as i64 * 10;
        if rng.one_in(deletes_one_in) {
            let (qualifier, kind) = match rng.below(4) {
                0 => ("", CellType::DeleteFamily),
                1 => ("b", CellType::Delete),
                _ => ("c", CellType::DeleteColumn),
            };
            write(region, &[delete(&row, "f", qualifier, timestamp, kind)]);
        } else {
            let qualifier = || COLUMNS[rng.below(COLUMNS.len() as u64) as usize];
            let value = format!("value{step}");
            write(region, &[put(&row, "f", qualifier(), timestamp, &value), put(&row, "f", qualifier(), 2000, &value)]);
        }
        if rng.one_in(160) {
            flush(region);
        }
    }
}

#[test]
fn a_get_finds_the_same_whichever_way_it_goes() {
    let mut found = 0;
    for seed in 0..24 {
        let rng = Rng::seeded(seed);
        let server = Server::new(10_000);
        let versions = [1, 2, 3, 1000][rng.below(4) as usize].to_string();
        let mut family = family("f").with("BLOCKSIZE", "900").with("VERSIONS", versions);
        if rng.one_in(4) {
            family = family.with("BLOOMFILTER", "ROWCOL");
        }
        if rng.one_in(4) {
            // Seconds, before 10,000 ms: cells stamped before 1000 or 2000 are expired.
            family = family.with("TTL", ["9", "8"][rng.below(2) as usize]);
        }
        let region = server.table([family]);
        fill(&region, &rng, [30, 200, 5000][rng.below(3) as usize]);
        for _ in 0..200 {
            let mut get = Get::new(format!("row{:02}", rng.below(42)));
            get.max_versions = [1, 1, 2, 5, 1000][rng.below(5) as usize];
            if rng.one_in(3) {
                let mut columns: Vec<Bytes> = COLUMNS
                    .iter()
                    .filter(|_| rng.one_in(2))
                    .map(|column| Bytes::from_static(column.as_bytes()))
                    .collect();
                columns.extend(rng.one_in(3).then(|| Bytes::from_static(b"bb")));
                columns.sort();
                get.columns.insert(Bytes::from_static(b"f"), columns);
            }
            if rng.one_in(5) {
                let min = 1000 + rng.below(600) as i64;
                get.time_range = TimeRange { min, max: min + 1 + rng.below(900) as i64 };
            }
            let judged = crate::common::scan(&region, &get.to_scan(), 0).concat();
            assert_eq!(crate::common::get(&region, &get, 0), judged, "seed {seed}: {get:?}");
            found += judged.len();
        }
    }
    assert!(found > 10_000, "{found} cells");
}

/// HBase: `HStore#updateMetricsStore`. A row counts once for a family, whichever way it is read, and not at all where nothing is found.
#[test]
fn reads_are_counted_by_where_their_cells_come_from() {
    let server = Server::new(10_000);
    let region = server.table([family("f")]);
    for row in ["a", "b", "c", "d"] {
        write(&region, &[put(row, "f", "q", 1000, "x")]);
    }
    flush(&region);
    for row in ["b", "m", "n"] {
        write(&region, &[put(row, "f", "r", 1000, "x")]);
    }
    let counted = || {
        let stats = region.stats();
        (stats.stores[0].memory_row_reads, stats.stores[0].mixed_row_reads)
    };
    let mut expected = (0, 0);
    for read_uncommitted in [false, true] {
        for (row, memory, mixed) in [("a", 0, 1), ("b", 0, 1), ("m", 1, 0), ("nobody", 0, 0)] {
            let get = Get { read_uncommitted, ..Get::new(row) };
            crate::common::get(&region, &get, 0);
            expected = (expected.0 + memory, expected.1 + mixed);
            assert_eq!(counted(), expected, "{row}, the general way: {read_uncommitted}");
        }
    }
    // Rows that are walked over, and others, in either direction, whole and in pieces.
    for (scan, rows) in [
        (Scan::default(), (2, 4)),
        (Scan { reversed: true, ..Scan::default() }, (2, 4)),
        (Scan { stop_row: "b".into(), ..Scan::default() }, (0, 1)),
        (Scan { batch: Some(1), ..Scan::default() }, (2, 4)),
        (Scan { start_row: "m".into(), include_start_row: true, ..Scan::default() }, (2, 0)),
    ] {
        crate::common::scan(&region, &scan, 0);
        expected = (expected.0 + rows.0, expected.1 + rows.1);
        assert_eq!(counted(), expected, "{scan:?}");
    }
    // What is tried and given up does not count: after the first row the scan may look at no file, and there is none in the cache.
    let mut scanner = region.scanner(&Scan::default()).expect("open");
    let mut out = cell::CellBuffer::new();
    let mut more = true;
    while more {
        let mut next = |scanner: &mut basalt_region::RegionScanner| {
            out = cell::CellBuffer::new();
            scanner.next(&mut basalt_region::Limits::default(), &mut out)
        };
        scanner.try_from_memory();
        more = match next(&mut scanner) {
            Err(basalt_region::RegionError::WouldBlock) => {
                scanner.begin_again().expect("it goes on");
                next(&mut scanner).expect("read").more
            }
            read => read.expect("read").more,
        };
    }
    drop(scanner);
    assert_eq!(counted(), (expected.0 + 2, expected.1 + 4));
    // A compaction is no reader.
    major_compact(&region);
    assert_eq!(counted(), (expected.0 + 2, expected.1 + 4));
}
