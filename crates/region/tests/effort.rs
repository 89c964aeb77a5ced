//! What writes that read may do on a network thread: within a budget, or not at all.

use crate::common::*;
use basalt_region::{Region, RegionError, WritePace};
use base::{EffortBudget, Interrupted, PausePoint, ReadMode};
use bytes::Bytes;
use cell::{CellBuffer, CellType};
use filter::{Comparator, CompareOp, Filter};
use model::mutation::ConditionTest;
use model::{Condition, Get, Mutation, MutationKind, Scan, TimeRange};
use std::cell::RefCell;
use std::sync::Arc;

const NOW: i64 = 1_700_000_000_000;
/// Columns of the wide row: more than the budget has cells.
const COLUMNS: usize = 3_000;

fn name(column: usize) -> String {
    format!("q{column:05}")
}

/// An increment by one of the first `columns` columns of row r.
fn increment(columns: usize) -> Mutation {
    let names: Vec<String> = (0..columns).map(name).collect();
    let one = "\0\0\0\0\0\0\0\u{1}";
    let cells: Vec<_> = names.iter().map(|name| ("f", name.as_str(), LATEST, CellType::Put, one)).collect();
    mutation(MutationKind::Increment, "r", &cells)
}

fn wide_row() -> (Server, Arc<Region>) {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    write(&region, &[increment(COLUMNS)]);
    (server, region)
}

fn value_of(region: &Region, column: usize) -> Vec<String> {
    let mut get = Get::new(Bytes::from_static(b"r"));
    get.columns.insert(Bytes::from_static(b"f"), vec![Bytes::from(name(column))]);
    crate::common::get(region, &get, NOW)
}

#[test]
fn an_increment_of_many_columns_gives_way_and_one_of_few_does_not() {
    let (_server, region) = wide_row();
    let before = value_of(&region, 0);
    let budget = EffortBudget::of_network_thread();
    let many = increment(COLUMNS);
    let given_way = region.mutate_rows_with(std::slice::from_ref(&many), None, ReadMode::FromMemory(&budget));
    assert!(matches!(given_way, Err(RegionError::WouldBlock)), "{given_way:?}");
    assert_eq!(value_of(&region, 0), before, "nothing has changed");

    let written = region.mutate_rows_with(&[many], None, ReadMode::UNPACED).expect("it may take its time");
    written.commit.wait().expect("durable");
    let after = value_of(&region, 0);
    assert!(after != before && after.len() == 1, "{after:?}");

    let budget = EffortBudget::of_network_thread();
    let few = region.mutate_rows_with(&[increment(3)], None, ReadMode::FromMemory(&budget));
    few.expect("three columns of a wide row are little").commit.wait().expect("durable");
    assert!(!budget.is_exhausted());
}

#[test]
fn all_that_one_call_does_shares_its_budget() {
    let (_server, region) = wide_row();
    let budget = EffortBudget::of_network_thread();
    let mut calls = 0;
    let refused = loop {
        match region.mutate_rows_with(&[increment(20)], None, ReadMode::FromMemory(&budget)) {
            Ok(written) => written.commit.wait().expect("durable"),
            Err(error) => break error,
        }
        calls += 1;
    };
    assert!(matches!(refused, RegionError::WouldBlock), "{refused}");
    assert!((5..100).contains(&calls), "{calls} calls of 20 columns");
}

#[test]
fn a_check_that_looks_at_a_wide_row_gives_way() {
    let (_server, region) = wide_row();
    let filter = Filter::Value {
        op: CompareOp::Equal,
        comparator: Some(Comparator::Binary { value: Bytes::from_static(b"no such value") }),
    };
    let condition = Condition {
        row: Bytes::from_static(b"r"),
        test: ConditionTest::Filter(Arc::new(filter)),
        time_range: TimeRange::default(),
    };
    let change = put("r", "f", "new", LATEST, "v");
    let budget = EffortBudget::of_network_thread();
    let mode = ReadMode::FromMemory(&budget);
    let given_way = region.check_and_mutate_with(&condition, std::slice::from_ref(&change), None, mode);
    assert!(matches!(given_way, Err(RegionError::WouldBlock)), "{given_way:?}");
    let checked = region.check_and_mutate_with(&condition, &[change], None, ReadMode::UNPACED).expect("checked");
    assert!(!checked.processed);
}

#[test]
fn a_delete_of_many_latest_versions_gives_way() {
    let (_server, region) = wide_row();
    let names: Vec<String> = (0..COLUMNS).map(name).collect();
    let cells: Vec<_> = names.iter().map(|name| ("f", name.as_str(), LATEST, CellType::Delete, "")).collect();
    let budget = EffortBudget::of_network_thread();
    let delete = [mutation(MutationKind::Delete, "r", &cells)];
    let given_way = region.mutate_rows_with(&delete, None, ReadMode::FromMemory(&budget));
    assert!(matches!(given_way, Err(RegionError::WouldBlock)), "{given_way:?}");
    assert_eq!(value_of(&region, 0).len(), 1);
}

/// A thousand clients that ask for large rows at once hold up the network threads for no longer than it takes to find that out.
#[test]
fn a_get_that_comes_alone_gives_a_large_row_away_sooner() {
    let (_server, region) = wide_row();
    let large = "v".repeat(200 << 10);
    write(&region, &[put("large", "f", "q", 1, &large), put("medium", "f", "q", 1, &large[..100 << 10])]);
    let read = |row: &'static str, budget: EffortBudget| {
        let get = Get::new(Bytes::from_static(row.as_bytes()));
        region.get_within(&get, &mut CellBuffer::new(), ReadMode::FromMemory(&budget))
    };
    let alone = read("large", EffortBudget::of_lone_get());
    assert!(matches!(alone, Err(RegionError::WouldBlock)), "{alone:?}");
    read("large", EffortBudget::of_network_thread()).expect("one of a batch has what all of it have");
    read("medium", EffortBudget::of_lone_get()).expect("100 KiB are read at once");
}

/// Cells and bytes count in the budget, whichever way a row is read.
#[test]
fn a_get_of_much_gives_way_and_one_of_little_does_not() {
    let (_server, region) = wide_row();
    let large = "v".repeat(1 << 20);
    write(&region, &[put("large", "f", "q", 1, &large), put("small", "f", "q", 1, "v")]);
    let read = |get: &Get| {
        let budget = EffortBudget::of_network_thread();
        let mut out = CellBuffer::new();
        let read = region.get_within(get, &mut out, ReadMode::FromMemory(&budget));
        assert!(read.is_ok() || out.is_empty(), "what was gathered is taken back");
        match read {
            Ok(()) => Some(out.len()),
            Err(RegionError::WouldBlock) => None,
            Err(error) => panic!("{error}"),
        }
    };
    let get = |row: &'static str| Get::new(Bytes::from_static(row.as_bytes()));
    let filtered = |row| Get { filter: Some(Arc::new(Filter::Page { page_size: 10 })), ..get(row) };
    assert_eq!((read(&get("r")), read(&filtered("r"))), (None, None), "many cells");
    assert_eq!(
        (read(&get("large")), read(&filtered("large"))),
        (None, Some(1)),
        "the last cell's bytes count for what follows"
    );
    assert_eq!((read(&get("small")), read(&filtered("small"))), (Some(1), Some(1)));
}

/// Notes what is said to be gathered, and has no room for more than so many bytes.
struct Room {
    most_bytes: u64,
    said: RefCell<Vec<u64>>,
}

impl PausePoint for Room {
    fn pause(&self) -> Result<(), Interrupted> {
        Ok(())
    }

    fn check(&self) -> Result<(), Interrupted> {
        Ok(())
    }

    fn gathered(&self, bytes: u64) -> Result<(), Interrupted> {
        self.said.borrow_mut().push(bytes);
        if bytes > self.most_bytes { Err(Interrupted::NoRoom) } else { Ok(()) }
    }
}

/// Whichever way a row is read, from memory or a file. Six connections that asked for rows of 6 MB and took none had the server hold three times
/// its budget: what many reads had gathered at once was counted when they were whole.
#[test]
fn a_get_says_what_it_gathers_and_ends_where_there_is_no_room() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    let value = "v".repeat(10_000);
    for column in 0..100 {
        write(&region, &[put("r", "f", &name(column), 1, &value)]);
    }
    let get = || Get::new(Bytes::from_static(b"r"));
    let filtered = Get { filter: Some(Arc::new(Filter::Page { page_size: 10 })), ..get() };
    for place in ["memory", "a file"] {
        for get in [&get(), &filtered] {
            let mut out = CellBuffer::new();
            let room = Room { most_bytes: u64::MAX, said: RefCell::default() };
            region.get_within(get, &mut out, ReadMode::MayRead(&room)).expect("room for all");
            assert_eq!(out.len(), 100, "{place}");
            let said = room.said.take();
            assert!(
                said.len() > 10 && said.is_sorted() && said.iter().all(|bytes| *bytes < 1 << 21),
                "{place}: {said:?}"
            );
            let room = Room { most_bytes: 200_000, said: RefCell::default() };
            let read = region.get_within(get, &mut out, ReadMode::MayRead(&room));
            assert!(matches!(read, Err(RegionError::Interrupted(Interrupted::NoRoom))), "{place}: {read:?}");
            assert_eq!(out.len(), 100, "{place}: what was gathered is taken back");
            assert!(room.said.borrow().iter().all(|bytes| *bytes < 300_000), "{place}: it ends at once");
        }
        flush(&region);
    }
}

/// Notes the pieces that it is asked for, and ends a write after some of them.
struct Paced {
    piece_bytes: usize,
    allowed: usize,
    pieces: RefCell<Vec<u64>>,
}

impl WritePace for Paced {
    fn piece_bytes(&self) -> usize {
        self.piece_bytes
    }

    fn admit(&self, bytes: u64) -> Result<(), RegionError> {
        if self.pieces.borrow().len() == self.allowed {
            return Err(RegionError::TooBusy("enough".into()));
        }
        self.pieces.borrow_mut().push(bytes);
        Ok(())
    }
}

#[test]
fn a_large_batch_is_written_in_pieces_and_ends_between_two() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    let value = "v".repeat(100);
    let rows: Vec<String> = (0..10).map(|n| format!("row{n}")).collect();
    let batch: Vec<Mutation> = rows.iter().map(|row| put(row, "f", "q", 1, &value)).collect();
    let each = batch[0].cells.bytes().len();
    let pace = Paced { piece_bytes: 3 * each, allowed: 2, pieces: RefCell::default() };
    let entries = server.env.log.stats().entries;
    let applied = region.apply_at_pace(&batch, Some(&pace)).expect("tried");
    assert_eq!(*pace.pieces.borrow(), [3 * each as u64, 3 * each as u64]);
    assert_eq!(server.env.log.stats().entries - entries, 2, "one entry for each piece");
    let written: Vec<bool> = applied.results.iter().map(Result::is_ok).collect();
    assert_eq!(written, [[true; 6].as_slice(), &[false; 4]].concat());
    applied.commit.wait().expect("durable");
    assert_eq!(scan(&region, &Scan::default(), 0).len(), 6);

    let pace = Paced { piece_bytes: each / 2, allowed: usize::MAX, pieces: RefCell::default() };
    let applied = region.apply_at_pace(&batch[6..], Some(&pace)).expect("tried");
    assert_eq!(pace.pieces.borrow().len(), 4, "a row is never cut");
    applied.commit.wait().expect("durable");
    assert_eq!(scan(&region, &Scan::default(), 0).len(), 10);
}

/// What is written of a batch that waits becomes visible by itself.
#[test]
fn a_piece_is_visible_before_the_next_one_is_written() {
    struct Looks<'a>(&'a Arc<Region>, &'a Server, RefCell<Vec<usize>>);
    impl WritePace for Looks<'_> {
        fn piece_bytes(&self) -> usize {
            1
        }

        fn admit(&self, _: u64) -> Result<(), RegionError> {
            self.1.env.log.sync_once().expect("synced");
            self.2.borrow_mut().push(scan(self.0, &Scan::default(), 0).len());
            Ok(())
        }
    }
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    let batch: Vec<Mutation> = ["a", "b", "c"].map(|row| put(row, "f", "q", 1, "v")).to_vec();
    let looks = Looks(&region, &server, RefCell::default());
    let applied = region.apply_at_pace(&batch, Some(&looks)).expect("tried");
    assert_eq!(*looks.2.borrow(), [0, 1, 2]);
    applied.commit.wait().expect("durable");
    assert_eq!(scan(&region, &Scan::default(), 0).len(), 3);
}
