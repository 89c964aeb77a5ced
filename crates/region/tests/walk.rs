//! The short way over plain rows against the usual one: a filter that lets everything pass but looks at rows' keys keeps a scan from it.

use crate::common::*;
use basalt_region::{Limits, Region};
use base::Rng;
use bytes::Bytes;
use cell::{CellBuffer, CellType};
use filter::{Comparator, CompareOp, Filter, ListOperator};
use model::Scan;
use std::sync::Arc;

/// Rows of three columns, of one, of many, some written again, some deleted in part; spread over files and memory.
fn fill(region: &Arc<Region>, rng: &Rng) {
    for step in 0..400 {
        let row = format!("row{:03}", rng.below(300));
        let timestamp = 1000 + step;
        match rng.below(12) {
            0 => write(region, &[delete(&row, "f", "b", timestamp, CellType::DeleteColumn)]),
            1 => write(region, &[delete(&row, "f", "", timestamp, CellType::DeleteFamily)]),
            2..5 => write(region, &[put(&row, "f", "a", timestamp, "only")]),
            5 => {
                let qualifiers: Vec<_> = (0..40).map(|number| format!("c{number:02}")).collect();
                let puts: Vec<_> =
                    qualifiers.iter().map(|qualifier| put(&row, "f", qualifier, timestamp, "v")).collect();
                write(region, &puts);
            }
            6 => write(region, &[put(&row, "f", "", timestamp, "unnamed")]),
            _ => {
                let puts = ["a", "b", "c"].map(|qualifier| put(&row, "f", qualifier, timestamp, "value"));
                write(region, &puts);
            }
        }
        if rng.one_in(90) {
            flush(region);
        }
    }
}

fn value(value: &'static str) -> Filter {
    let comparator = Comparator::Binary { value: Bytes::from_static(value.as_bytes()) };
    Filter::Value { op: CompareOp::Equal, comparator: Some(comparator) }
}

fn with_filter(scan: &Scan, filter: Filter) -> Scan {
    Scan { filter: Some(Arc::new(filter)), ..scan.clone() }
}

#[test]
fn rows_in_files_and_in_memory_are_the_same_whichever_way_they_are_read() {
    let (mut blocked, mut shown) = (0, 0);
    for seed in 0..40 {
        let rng = Rng::seeded(seed);
        let server = Server::new(2000);
        let versions = if rng.one_in(2) { "1" } else { "3" };
        let region = server.table([family("f").with("BLOCKSIZE", "600").with("VERSIONS", versions)]);
        fill(&region, &rng);
        for _ in 0..10 {
            let row = || Bytes::from(format!("row{:03}", rng.below(300)));
            let mut scan = Scan { include_stop_row: rng.one_in(2), cache_blocks: false, ..Scan::default() };
            if rng.one_in(2) {
                (scan.start_row, scan.include_start_row) = (row(), rng.one_in(2));
            }
            if rng.one_in(2) {
                scan.stop_row = row();
            }
            if rng.one_in(2) {
                let some =
                    ["", "0", "a", "b", "c", "c00", "c01", "c20", "c39", "d"].into_iter().filter(|_| rng.one_in(3));
                let asked: Vec<_> = some.map(|qualifier| Bytes::from_static(qualifier.as_bytes())).collect();
                scan.columns.insert(Bytes::from_static(b"f"), asked);
            }
            if rng.one_in(3) {
                scan.max_versions = 2;
            }
            let at_least = Comparator::Binary { value: Bytes::new() };
            let passing = Filter::Row { op: CompareOp::GreaterOrEqual, comparator: Some(at_least) };
            let first_keys = Filter::all_of(vec![Filter::KeyOnly { len_as_val: true }, Filter::FirstKeyOnly]);
            for filter in [Filter::FirstKeyOnly, value("only"), first_keys] {
                let both = Filter::all_of(vec![passing.clone(), filter.clone()]);
                let (walked, judged) = (with_filter(&scan, filter), with_filter(&scan, both));
                let judged = rows_of(&region, &judged);
                assert_eq!(rows_of(&region, &walked), judged, "seed {seed}: {walked:?}");
                assert_eq!(rows_seen(&region, &walked, &rng, &mut shown), judged, "seed {seed}: {walked:?}");
            }
            let judged = rows_of(&region, &with_filter(&scan, passing));
            assert_eq!(rows_of(&region, &scan), judged, "seed {seed}: {scan:?}");
            assert_eq!(rows_by_many(&region, &scan, &rng, &mut blocked), judged, "seed {seed}: {scan:?}");
            assert_eq!(rows_seen(&region, &scan, &rng, &mut shown), judged, "seed {seed}: {scan:?}");
            let keys = with_filter(&scan, Filter::KeyOnly { len_as_val: rng.one_in(2) });
            assert_eq!(rows_seen(&region, &keys, &rng, &mut 0), rows_of(&region, &keys), "seed {seed}: {keys:?}");
            let page_size = 1 + rng.below(40) as i64;
            let page = Filter::Page { page_size };
            let list = Filter::List { operator: ListOperator::MustPassAll, filters: vec![page.clone()] };
            let first: Vec<_> = judged.into_iter().take(page_size as usize).collect();
            let paged = with_filter(&scan, page.clone());
            assert_eq!(rows_seen(&region, &paged, &rng, &mut shown), first, "seed {seed}, page {page_size}: {scan:?}");
            assert_eq!(rows_of(&region, &with_filter(&scan, page)), first, "seed {seed}, page {page_size}: {scan:?}");
            assert_eq!(rows_of(&region, &with_filter(&scan, list)), first, "seed {seed}, page {page_size}: {scan:?}");
        }
    }
    assert!(blocked > 100, "{blocked} steps were begun again");
    assert!(shown > 10_000, "{shown} rows were shown where they lie");
}

fn rows_of(region: &Arc<Region>, scan: &Scan) -> Vec<Vec<String>> {
    crate::common::scan(region, scan, 0)
}

/// The same by steps of several rows and of all sizes, some of them tried from memory. The block cache is empty: a step to another block
/// of a file is one that has to be begun again.
fn rows_by_many(region: &Arc<Region>, scan: &Scan, rng: &Rng, blocked: &mut usize) -> Vec<Vec<String>> {
    let mut scanner = region.scanner(scan).expect("opened");
    let (mut rows, mut starts) = (Vec::new(), Vec::new());
    loop {
        let mut out = CellBuffer::new();
        let most = 1 + rng.below(9) as usize;
        let mut limits = Limits { size_bytes: 1 + rng.below(2000), ..Limits::NONE };
        let before = scanner.rows_scanned();
        let untried = limits.clone();
        let from_memory = rng.one_in(2) && scanner.try_from_memory();
        let mut stepped = scanner.next_rows(&mut limits, &mut out, most, &mut starts);
        if from_memory && stepped.as_ref().is_err_and(basalt_region::RegionError::is_would_block) {
            scanner.begin_again().expect("read");
            (limits, out) = (untried, CellBuffer::new());
            starts.clear();
            *blocked += 1;
            stepped = scanner.next_rows(&mut limits, &mut out, most, &mut starts);
        } else if from_memory {
            scanner.may_read();
        }
        let progress = stepped.expect("read");
        assert!(starts.len() < most);
        let cells = show_all(&out, 0);
        assert_eq!(progress.cells, cells.len() - starts.last().unwrap_or(&0), "of the last row alone");
        let used: u64 = out.iter_from(0).map(basalt_region::estimated_bytes).sum();
        assert_eq!(limits.used_bytes, used);
        assert!(starts.is_empty() || scanner.rows_scanned() - before > starts.len() as u64);
        let mut start = 0;
        for end in starts.drain(..).chain((!cells.is_empty()).then_some(cells.len())) {
            rows.push(cells[start..end].to_vec());
            start = end;
        }
        if !progress.more {
            return rows;
        }
    }
}

/// The same by whoever looks at rows where they lie; adds the number of those to `shown`.
fn rows_seen(region: &Arc<Region>, scan: &Scan, rng: &Rng, shown: &mut usize) -> Vec<Vec<String>> {
    let mut scanner = region.scanner(scan).expect("opened");
    let mut rows: Vec<Vec<String>> = Vec::new();
    loop {
        let (mut out, mut starts) = (CellBuffer::new(), Vec::new());
        let mut limits = Limits { size_bytes: 1 + rng.below(2000), ..Limits::NONE };
        let before = rows.len();
        let mut see = |cells: &[cell::CellRef<'_>]| rows.push(cells.iter().map(|cell| show(*cell, 0)).collect());
        let most = 1 + rng.below(9) as usize;
        let stepped = scanner.view_rows(&mut limits, &mut out, &mut see, most, &mut starts);
        let (progress, were_shown) = stepped.expect("read");
        assert_eq!(were_shown, rows.len() > before);
        assert!(rows.len() - before <= most);
        *shown += rows.len() - before;
        let cells = show_all(&out, 0);
        assert!(cells.is_empty() || !were_shown, "rows are copied or shown");
        let mut start = 0;
        for end in starts.drain(..).chain((!cells.is_empty()).then_some(cells.len())) {
            rows.push(cells[start..end].to_vec());
            start = end;
        }
        if !progress.more {
            return rows;
        }
    }
}
