//! Scanners that stand still while what they read is flushed, compacted and written over.

use crate::common::*;
use basalt_region::{Limits, Region, RegionScanner};
use base::Rng;
use bytes::Bytes;
use cell::{CellBuffer, CellType};
use model::{Mutation, Scan};
use std::sync::Arc;

const ROWS: u64 = 60;

fn row(i: u64) -> String {
    format!("row{i:03}")
}

/// Rows of three columns in two families, written over here and there, with markers; at ever later ticks.
fn writes(rng: &Rng, now: i64, count: u64) -> Vec<Mutation> {
    (0..count)
        .map(|i| {
            let (row, at) = (row(rng.below(ROWS)), now + i as i64);
            let family = ["f", "g"][rng.below(2) as usize];
            match rng.below(12) {
                0 => delete(&row, family, "", at, CellType::DeleteFamily),
                1 => delete(&row, family, "b", at, CellType::DeleteColumn),
                _ => put(&row, family, ["a", "b", "c"][rng.below(3) as usize], at, &format!("v{at}")),
            }
        })
        .collect()
}

/// The `i`th kind of scan.
fn kind(i: u64) -> Scan {
    let mut scan = Scan { max_versions: 1 + (i % 3) as u32, reversed: i % 4 == 1, ..Scan::default() };
    if i % 5 == 2 {
        scan.columns.insert(Bytes::from("f"), vec![Bytes::from("a"), Bytes::from("c")]);
    }
    if i % 7 == 3 {
        scan.start_row = Bytes::from(row(if scan.reversed { 45 } else { 10 }));
        scan.stop_row = Bytes::from(row(if scan.reversed { 10 } else { 45 }));
    }
    scan
}

/// Every third scan reads pieces of rows.
fn limits(i: u64) -> Limits<'static> {
    Limits { batch_cells: if i.is_multiple_of(3) { 2 } else { 0 }, ..Limits::NONE }
}

fn step(scanner: &mut RegionScanner, i: u64, out: &mut Vec<String>) -> bool {
    let mut cells = CellBuffer::new();
    let progress = scanner.next(&mut limits(i), &mut cells).expect("read");
    out.extend(show_all(&cells, 0));
    progress.more
}

fn all(region: &Arc<Region>, i: u64) -> Vec<String> {
    scan_limited(region, &kind(i), &limits(i), 0).concat()
}

#[test]
fn idle_scanners_let_go_of_flushed_memory_and_go_on_where_they_were() {
    for seed in 1..=4 {
        let rng = Rng::seeded(seed);
        let server = Server::new(1_000_000);
        let region = server.table([family("f").with("VERSIONS", "2"), family("g").with("VERSIONS", "1")]);
        write(&region, &writes(&rng, 1_000, 300));
        flush(&region);
        write(&region, &writes(&rng, 2_000, 300));
        let mut scanners: Vec<_> = (0..50)
            .map(|i| {
                let expected = all(&region, i);
                let mut scanner = region.scanner(&kind(i)).expect("opened");
                let (mut got, mut more) = (Vec::new(), true);
                for _ in 0..i {
                    more = more && step(&mut scanner, i, &mut got);
                }
                (i, expected, scanner, got, more)
            })
            .collect();
        // What they see is written over and deleted, in the segment that they hold.
        write(&region, &writes(&rng, 3_000, 300));
        for round in 0..3 {
            flush(&region);
            assert!(round > 0 || server.env.memory.pinned_bytes() > 0, "seed {seed}: they hold the segments");
            for (i, _, scanner, ..) in &mut scanners {
                assert!(scanner.update_readers().expect("moved"), "seed {seed}, scanner {i}");
                assert!(!scanner.holds_flushed());
            }
            let memory = &server.env.memory;
            assert_eq!((memory.memstore_bytes(), memory.pinned_bytes()), (0, 0), "seed {seed}, round {round}");
            for (i, _, scanner, got, more) in &mut scanners {
                *more = *more && step(scanner, *i, got);
            }
            write(&region, &writes(&rng, 4_000 + 1_000 * round, 200));
            if round == 1 {
                major_compact(&region);
            }
        }
        for (i, expected, mut scanner, mut got, mut more) in scanners {
            while more {
                more = step(&mut scanner, i, &mut got);
            }
            assert_eq!(got, expected, "seed {seed}, scanner {i}: {:?}", kind(i));
        }
    }
}

/// A scanner that was opened while a flush had begun to drop what only it sees stays with its segments, and right.
#[test]
fn versions_that_an_open_scanner_sees_outlive_flush_and_compaction() {
    let server = Server::new(1_000_000);
    let region = server.table([family("f").with("VERSIONS", "1")]);
    write(&region, &[put("r", "f", "q", 1, "old"), put("s", "f", "q", 1, "old")]);
    let mut scanner = region.scanner(&Scan::default()).expect("opened");
    write(&region, &[put("r", "f", "q", 2, "new"), delete("s", "f", "q", 3, CellType::DeleteColumn)]);
    flush(&region);
    major_compact(&region);
    assert!(scanner.update_readers().expect("moved"));
    let mut got = Vec::new();
    while step(&mut scanner, 1, &mut got) {}
    assert_eq!(got, ["r/f:q/1/Put=old", "s/f:q/1/Put=old"]);
    assert_eq!(scan(&region, &Scan::default(), 0), [["r/f:q/2/Put=new"]]);
    drop(scanner);
    write(&region, &[put("t", "f", "q", 1, "v")]);
    flush(&region);
    major_compact(&region);
    let raw = Scan { raw: true, max_versions: 9, ..Scan::default() };
    assert_eq!(scan(&region, &raw, 0), [["r/f:q/2/Put=new"], ["t/f:q/1/Put=v"]], "nobody sees the old ones any more");
}
