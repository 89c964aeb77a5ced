//! Random reads, compared with the oracle: Gets, and scans that go over all regions as a client's do, with the files
//! and regions changing between any two steps.

use super::oracle::{Ask, Cell, Store};
use super::sieve::Sieve;
use super::world::{BASE, FAMILIES, World, pick};
use super::writes::{OPS, random_qualifier, random_row, random_timestamp};
use crate::common::*;
use basalt_region::{ErrorKind, Limits, Progress, RegionError, RegionScanner};
use base::Rng;
use bytes::Bytes;
use cell::CellBuffer;
use filter::{Comparator, Filter, FuzzyKey, RowRange, SingleColumnValue};
use model::{Get, Scan, TimeRange};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The row as `scan` is answered with it.
pub fn row_of(
    stores: &BTreeMap<&'static str, Store>,
    scan: &Scan,
    row: &[u8],
    read_point: u64,
    now: i64,
) -> Vec<(&'static str, Cell)> {
    let mut sieve = Sieve::new(scan.filter.as_deref());
    let mut out = Vec::new();
    for name in FAMILIES {
        if !scan.columns.is_empty() && !scan.columns.contains_key(name.as_bytes()) {
            continue;
        }
        let columns = scan.columns.get(name.as_bytes()).filter(|columns| !columns.is_empty());
        let ask = Ask {
            versions: scan.max_versions as usize,
            range: scan.time_range_of(name.as_bytes()),
            raw: scan.raw,
            columns: columns.map(|columns| columns.iter().map(|column| column.to_vec()).collect()),
            offset: scan.store_offset as usize,
            limit: scan.store_limit.map(|limit| limit as usize),
            read_point: if scan.read_uncommitted { u64::MAX } else { read_point },
        };
        out.extend(stores[name].read_row(row, &ask, name, &mut sieve, now).into_iter().map(|cell| (name, cell)));
    }
    if !sieve.keeps_row() {
        return Vec::new();
    }
    out.retain(|(name, cell)| !sieve.hides(name, cell));
    out.iter_mut().for_each(|(_, cell)| cell.value = sieve.value(std::mem::take(&mut cell.value)));
    out
}

fn random_comparator(rng: &Rng) -> Comparator {
    let value = Bytes::from(match rng.below(4) {
        0 => random_row(rng),
        1 => random_qualifier(rng),
        2 => vec![b'a' + rng.below(26) as u8; rng.below(3) as usize],
        _ => pick(rng, &FAMILIES).as_bytes().to_vec(),
    });
    match rng.below(4) {
        0 => Comparator::BinaryPrefix { value },
        1 => Comparator::substring(&String::from_utf8_lossy(&value)),
        _ => Comparator::Binary { value },
    }
}

/// For [`random_filter`]: one that looks at no row. A SkipFilter does not tell what it holds of the rows.
const CELLS_ONLY: u64 = u64::MAX;

/// For [`random_filter`]: a part of a list. There, filters that send a scan ahead to another row may, in HBase too, hide
/// what others want.
const IN_LIST: u64 = u64::MAX - 1;

/// What filters may do in a world.
#[derive(Clone, Copy)]
pub struct FilterUse {
    /// Send the scan ahead within a row, past family markers that stand behind a put in the empty column: in HBase, they
    /// do not count then.
    pub hints: bool,
    /// Look at values. In a MOB family they see a reference with the name of a file once the value is flushed.
    pub values: bool,
}

/// A filter that says of each cell by itself whether it is wanted.
pub fn random_filter(rng: &Rng, depth: u64, may: FilterUse) -> Filter {
    let op = pick(rng, &OPS);
    let comparator = Some(random_comparator(rng));
    let kinds: &[u64] = match depth {
        CELLS_ONLY => &[4, 5, 6, 7, 8, 9, 10, 11],
        IN_LIST => &[0, 1, 4, 5, 6, 7, 8, 9, 10, 11],
        0 => &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
        _ => &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    };
    let kind = pick(rng, kinds);
    let kind = match kind {
        6 | 7 if !may.values => 5,
        8..11 if !may.hints => 5,
        kind => kind,
    };
    match kind {
        0 => Filter::Prefix { prefix: Some(Bytes::from(random_row(rng)).slice(..1)) },
        1 => Filter::Row { op, comparator },
        2 => {
            let mut rows = [random_row(rng), random_row(rng)];
            rows.sort();
            let [start, stop] = rows.map(Bytes::from);
            let stop_inclusive = start == stop || rng.one_in(2);
            let start_inclusive = start == stop || rng.one_in(2);
            let range = RowRange { start_row: start, start_inclusive, stop_row: stop, stop_inclusive };
            Filter::MultiRowRange { ranges: vec![range] }
        }
        3 => {
            // Rows shorter than the key are seen or not seen by chance, in HBase too.
            let key = random_row(rng)[..1].to_vec();
            let mask = vec![u8::from(rng.one_in(4))];
            Filter::FuzzyRow { keys: vec![FuzzyKey { key: Bytes::from(key), mask: Bytes::from(mask) }], mask_v2: true }
        }
        4 => Filter::Family { op, comparator },
        5 => Filter::Qualifier { op, comparator },
        6 | 7 => Filter::Value { op, comparator },
        8 => Filter::ColumnPrefix { prefix: Bytes::from(random_qualifier(rng)) },
        9 => {
            let mut prefixes = [random_qualifier(rng), random_qualifier(rng)].map(Bytes::from).to_vec();
            prefixes.sort();
            prefixes.dedup();
            Filter::MultipleColumnPrefix { prefixes }
        }
        10 => {
            let mut bounds = [random_qualifier(rng), random_qualifier(rng)];
            bounds.sort();
            let [min, max] = bounds.map(Bytes::from);
            let (min_inclusive, max_inclusive) = (rng.one_in(2), rng.one_in(2));
            Filter::ColumnRange {
                min_column: (!rng.one_in(4)).then_some(min),
                min_inclusive,
                max_column: (!rng.one_in(4)).then_some(max),
                max_inclusive,
            }
        }
        11 => Filter::timestamps((0..1 + rng.below(5)).map(|_| random_timestamp(rng)), false),
        other => {
            let part = || match depth > 1 && rng.one_in(4) {
                true => random_list(rng, may),
                false => random_filter(rng, IN_LIST, may),
            };
            let filters = (0..1 + rng.below(3)).map(|_| part()).collect();
            if other % 2 == 0 { Filter::all_of(filters) } else { Filter::any_of(filters) }
        }
    }
}

fn random_list(rng: &Rng, may: FilterUse) -> Filter {
    let filters = (0..1 + rng.below(3)).map(|_| random_filter(rng, IN_LIST, may)).collect();
    if rng.one_in(2) { Filter::all_of(filters) } else { Filter::any_of(filters) }
}

/// Lists within lists, so many deep at most.
pub fn random_tree(rng: &Rng, depth: u64, may: FilterUse) -> Filter {
    let part = || match depth > 1 && rng.one_in(2) {
        true => random_tree(rng, depth - 1, may),
        false => random_filter(rng, IN_LIST, may),
    };
    let filters = (0..1 + rng.below(4)).map(|_| part()).collect();
    if rng.one_in(2) { Filter::all_of(filters) } else { Filter::any_of(filters) }
}

/// One that decides about rows, or only changes values.
fn random_row_filter(rng: &Rng, may: FilterUse) -> Filter {
    let test = || SingleColumnValue {
        family: Some(Bytes::from(pick(rng, &FAMILIES))),
        qualifier: Some(Bytes::from(random_qualifier(rng))),
        op: pick(rng, &OPS),
        comparator: random_comparator(rng),
        filter_if_missing: rng.one_in(2),
        latest_version_only: rng.one_in(2),
    };
    let first = if may.values { 0 } else { 2 };
    match first + rng.below(6 - first) {
        0 => Filter::SingleColumnValue(test()),
        1 => Filter::SingleColumnValueExclude(test()),
        2 => Filter::Skip { filter: Box::new(random_filter(rng, CELLS_ONLY, may)) },
        3 => Filter::Page { page_size: 1 + rng.below(3) as i64 },
        4 => Filter::FirstKeyOnly,
        _ => Filter::KeyOnly { len_as_val: may.values && rng.one_in(2) },
    }
}

/// Whether the filter looks at whole rows, so that a row cannot come in pieces.
fn wants_whole_rows(scan: &Scan) -> bool {
    matches!(
        scan.filter.as_deref(),
        Some(
            Filter::SingleColumnValue(_)
                | Filter::SingleColumnValueExclude(_)
                | Filter::Skip { .. }
                | Filter::Page { .. }
        )
    )
}

impl World {
    fn random_scan(&self) -> Scan {
        let rng = &self.rng;
        let mut scan = Scan { reversed: rng.one_in(3), ..Scan::default() };
        if rng.one_in(2) {
            scan.start_row = Bytes::from(random_row(rng));
            scan.include_start_row = !rng.one_in(4);
        }
        if rng.one_in(2) {
            scan.stop_row = Bytes::from(random_row(rng));
            scan.include_stop_row = rng.one_in(3);
        }
        scan.max_versions = pick(rng, &[1, 1, 2, 3, i32::MAX as u32]);
        scan.raw = rng.one_in(5);
        for name in FAMILIES {
            if rng.one_in(2) {
                let wanted = if scan.raw { 0 } else { rng.below(3) };
                let mut columns: Vec<Bytes> = (0..wanted).map(|_| Bytes::from(random_qualifier(rng))).collect();
                columns.sort();
                columns.dedup();
                scan.columns.insert(Bytes::from(name), columns);
            }
        }
        let range = |min: i64| TimeRange { min, max: min + 1 + rng.below(8000) as i64 };
        if rng.one_in(4) {
            scan.time_range = range(random_timestamp(rng));
        }
        if rng.one_in(8) {
            let of_family = range(random_timestamp(rng));
            scan.family_time_ranges.insert(Bytes::from(pick(rng, &FAMILIES)), of_family);
        }
        match rng.below(6) {
            0 => {
                scan.store_limit = Some(1 + rng.below(3) as u32);
                scan.store_offset = rng.below(2) as u32;
            }
            // In lists and in reverse, HBase loses cells behind a hint.
            1 => {
                let may = FilterUse { hints: self.filters.hints && !scan.reversed, ..self.filters };
                scan.filter = Some(Arc::new(random_filter(rng, 2, may)));
            }
            2 => scan.filter = Some(Arc::new(random_row_filter(rng, self.filters))),
            _ => {}
        }
        scan.load_column_families_on_demand = match scan.filter.as_deref() {
            // When only the tested column was there, HBase does not ask whether the row is wanted before it reads on.
            Some(Filter::SingleColumnValueExclude(_)) => Some(false),
            _ => pick(rng, &[None, Some(true), Some(false)]),
        };
        scan.read_uncommitted = rng.one_in(12);
        scan.pread = rng.one_in(2);
        scan
    }

    /// What the scan gives of one region, in rows.
    fn expected(&self, at: usize, scan: &Scan) -> Vec<Vec<String>> {
        let half = &self.regions[at];
        let read_point = half.region.read_point().0;
        let cells = half.stores.values().flat_map(Store::all_cells);
        let rows: BTreeSet<&[u8]> = cells.map(|cell| &cell.row[..]).collect();
        let mut rows: Vec<&[u8]> = rows.into_iter().collect();
        if scan.reversed {
            rows.reverse();
        }
        let before = |a: &[u8], b: &[u8]| if scan.reversed { a > b } else { a < b };
        let mut out: Vec<Vec<String>> = Vec::new();
        for row in rows {
            let early = !scan.start_row.is_empty()
                && (before(row, &scan.start_row) || (*row == scan.start_row[..] && !scan.include_start_row));
            let late = !scan.stop_row.is_empty()
                && (before(&scan.stop_row, row) || (*row == scan.stop_row[..] && !scan.include_stop_row));
            let page_is_full = match scan.filter.as_deref() {
                Some(Filter::Page { page_size }) => out.len() as i64 >= *page_size,
                _ => false,
            };
            if early || late || page_is_full {
                continue;
            }
            let cells = row_of(&half.stores, scan, row, read_point, self.now());
            if !cells.is_empty() {
                out.push(cells.iter().map(|(name, cell)| print(name, cell)).collect());
            }
        }
        out
    }

    /// A scan of any shape, with a tree of filters.
    pub fn scan_with_a_tree(&mut self) {
        let mut scan = Scan { store_limit: None, store_offset: 0, ..self.random_scan() };
        let may = FilterUse { hints: self.filters.hints && !scan.reversed, ..self.filters };
        scan.filter = Some(Arc::new(random_tree(&self.rng, 4, may)));
        self.scan_as(scan);
    }

    /// A scan of any shape.
    pub fn scan(&mut self) {
        let scan = self.random_scan();
        self.scan_as(scan);
    }

    /// A scan over all regions. Between two steps anything may happen: what was open goes on as if nothing had, and
    /// where its region is gone the scan goes on behind the last row that it has whole, as a client does.
    fn scan_as(&mut self, mut scan: Scan) {
        self.trace.push(brief(&format!("scan {scan:?}")));
        let pages = matches!(scan.filter.as_deref(), Some(Filter::Page { .. }));
        // What reads the uncommitted sees what comes after it as well.
        let quiet = scan.read_uncommitted;
        let (busy, moving) = (!quiet && self.rng.one_in(2), !quiet && !pages && self.rng.one_in(6));
        let (whole, batch) = (wants_whole_rows(&scan), pick(&self.rng, &[0, 0, 1, 3]));
        let batch_cells = if whole { 0 } else { batch };
        let (size_bytes, partial_rows) = pick(&self.rng, &[(u64::MAX, false), (1, true), (300, true), (1, false)]);
        let deadline_us = self.rng.one_in(6).then_some(0);
        // Where the next region begins (or, reversed, ends); rows are never empty, so the empty row is the end.
        let mut done_to: Option<Bytes> = None;
        loop {
            let edge = |half: &super::world::Half| {
                if scan.reversed { half.info.end_key.clone() } else { half.info.start_key.clone() }
            };
            let mut order: Vec<usize> = (0..self.regions.len()).collect();
            if scan.reversed {
                order.reverse();
            }
            let next = match &done_to {
                None => Some(order[0]),
                Some(key) => order.into_iter().find(|at| edge(&self.regions[*at]) == key),
            };
            // After a merge the edge may be inside a region: the scan goes on within it.
            let at = next.unwrap_or_else(|| {
                let key = done_to.clone().expect("the first region is always there");
                let inside = |half: &super::world::Half| {
                    half.info.contains(&key) && (!scan.reversed || half.info.start_key != key)
                };
                self.regions.iter().position(inside).expect("every row has a region")
            });
            let expected = self.expected(at, &scan);
            let mut scanner = self.regions[at].region.scanner(&scan).expect("opened");
            let mut rows: Vec<Vec<String>> = Vec::new();
            let mut last_row: Option<Bytes> = None;
            let mut is_whole = true;
            let moved = loop {
                let mut limits =
                    Limits { batch_cells, size_bytes, used_bytes: 0, partial_rows, deadline_us, pause: None };
                let mut out = CellBuffer::new();
                match step(&mut scanner, &mut limits, &mut out) {
                    Ok(progress) => {
                        if !out.is_empty() {
                            let row = Bytes::copy_from_slice(out.get(0).row());
                            let cells = show_all(&out, BASE);
                            match rows.last_mut() {
                                Some(same) if last_row.as_ref() == Some(&row) => same.extend(cells),
                                _ => rows.push(cells),
                            }
                            last_row = Some(row);
                            is_whole = !progress.partial;
                        }
                        if !progress.more {
                            break false;
                        }
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::NotServingRegion, "{error}");
                        break true;
                    }
                }
                self.disturb(busy, moving);
            };
            if !moved {
                compare(&rows, &expected);
                let info = scanner.region().info();
                let end = if scan.reversed { info.start_key.clone() } else { info.end_key.clone() };
                if end.is_empty() {
                    return;
                }
                if !scan.start_row.is_empty() || done_to.is_some() {
                    // The rest of the table begins at the edge, unless the scan begins later.
                    let later = if scan.reversed { scan.start_row > end } else { scan.start_row < end };
                    if later {
                        scan.start_row = end.clone();
                        scan.include_start_row = !scan.reversed;
                    }
                } else {
                    scan.start_row = end.clone();
                    scan.include_start_row = !scan.reversed;
                }
                done_to = Some(end);
                continue;
            }
            if !is_whole {
                rows.pop();
            }
            compare(&rows, &expected[..rows.len().min(expected.len())]);
            let reached = if is_whole { last_row } else { None };
            self.trace.push("the region is gone: the scan goes on elsewhere".into());
            match (reached, rows.len()) {
                (Some(row), _) => {
                    scan.start_row = row;
                    scan.include_start_row = false;
                }
                (None, 0) => {}
                (None, _) => {
                    // The row before the one in pieces.
                    let name = rows.last().expect("not empty")[0].split('/').next().expect("a row").to_owned();
                    scan.start_row = Bytes::from(unprinted(&name));
                    scan.include_start_row = false;
                }
            }
            // The regions are looked up again: from the row that the scan goes on with.
            done_to = if scan.start_row.is_empty() { None } else { Some(self.edge_around(&scan)) };
        }
    }

    /// The edge, on the scan's near side, of the region that the scan's first row is in.
    fn edge_around(&self, scan: &Scan) -> Bytes {
        let row = &scan.start_row[..];
        let half = self.regions.iter().rev().find(|half| {
            if scan.reversed && !scan.include_start_row {
                half.info.start_key.is_empty() || &half.info.start_key[..] < row
            } else {
                half.info.contains(row)
            }
        });
        let info = &half.expect("every row has a region").info;
        if scan.reversed { info.end_key.clone() } else { info.start_key.clone() }
    }

    /// Something happens between two steps of a scan.
    fn disturb(&mut self, busy: bool, moving: bool) {
        if moving && self.rng.one_in(6) {
            self.maintain();
        }
        if busy {
            let at = self.rng.below(self.regions.len() as u64) as usize;
            match self.rng.below(6) {
                0 => self.flush(at),
                1 => self.compact(at),
                2 => self.write(),
                _ => {}
            }
        }
    }

    pub fn get(&mut self) {
        let scan = Scan { raw: false, reversed: false, ..self.random_scan() };
        let row = random_row(&self.rng);
        let get = Get {
            columns: scan.columns.clone(),
            max_versions: scan.max_versions,
            time_range: scan.time_range,
            family_time_ranges: scan.family_time_ranges.clone(),
            store_limit: scan.store_limit,
            store_offset: scan.store_offset,
            filter: scan.filter.clone(),
            load_column_families_on_demand: scan.load_column_families_on_demand,
            read_uncommitted: scan.read_uncommitted,
            ..Get::new(row.clone())
        };
        self.trace.push(brief(&format!("get {get:?}")));
        let half = &self.regions[self.half_of(&row)];
        let expected = row_of(&half.stores, &scan, &row, half.region.read_point().0, self.now());
        let expected: Vec<String> = expected.iter().map(|(name, cell)| print(name, cell)).collect();
        let seen = get_all(half, &get);
        compare(&[seen], &[expected]);
    }
}

fn get_all(half: &super::world::Half, get: &Get) -> Vec<String> {
    crate::common::get(&half.region, get, BASE)
}

fn step(scanner: &mut RegionScanner, limits: &mut Limits, out: &mut CellBuffer) -> Result<Progress, RegionError> {
    let progress = scanner.next(limits, out)?;
    assert_eq!(progress.cells, out.len());
    assert!(limits.batch_cells == 0 || out.len() <= limits.batch_cells as usize);
    let rows: BTreeSet<&[u8]> = (0..out.len()).map(|i| out.get(i).row()).collect();
    assert!(rows.len() <= 1, "one step gives one row");
    Ok(progress)
}

/// Without what is as it always is.
fn brief(text: &str) -> String {
    let usual = [
        ", max: 9223372036854775807",
        ", family_time_ranges: {}",
        ", store_limit: None",
        ", store_offset: 0",
        ", filter: None",
        ", cache_blocks: true",
        ", load_column_families_on_demand: None",
        ", allow_partial_results: false",
        ", need_cursor: false",
        ", read_uncommitted: false",
        ", read_point: None",
        ", is_get: false",
        ", batch: None",
        ", max_result_size: None",
        ", timeline: false",
        ", existence_only: false",
    ];
    usual.iter().fold(text.to_owned(), |text, part| text.replace(part, ""))
}

/// Panics at the first difference, with what is around it.
fn compare(seen: &[Vec<String>], expected: &[Vec<String>]) {
    if seen == expected {
        return;
    }
    let (seen, expected) = (seen.concat(), expected.concat());
    let at = seen.iter().zip(&expected).take_while(|(a, b)| a == b).count();
    let around = |cells: &[String]| {
        let near = cells.iter().skip(at.saturating_sub(2)).take(6);
        near.map(|cell| cell.chars().take(50).collect::<String>()).collect::<Vec<_>>()
    };
    panic!(
        "cell {at} differs\n    seen     {:?}\n    expected {:?} ({} and {} cells)",
        around(&seen),
        around(&expected),
        seen.len(),
        expected.len()
    );
}

pub fn print(family: &str, cell: &Cell) -> String {
    format!(
        "{}/{family}:{}/{}/{:?}={}",
        cell::print::to_string_binary(&cell.row),
        cell::print::to_string_binary(&cell.qualifier),
        cell.timestamp - BASE,
        cell.cell_type,
        cell::print::to_string_binary(&cell.value)
    )
}

/// The row that `print` shows so.
fn unprinted(name: &str) -> Vec<u8> {
    let all = [&b"a"[..], b"b", b"b\0", b"c", b"cc", b"d", b"e\xff", b"f"];
    all.into_iter().find(|row| cell::print::to_string_binary(row) == name).expect("one of the rows").to_vec()
}
