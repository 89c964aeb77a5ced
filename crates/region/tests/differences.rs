//! What running the same random programs against Apache HBase 2.6.4 found to differ, each as small as it became.

use crate::common::*;
use basalt_region::{CompactionKind, ErrorKind};
use bytes::Bytes;
use cell::{CellBlock, CellSpec, CellType};
use filter::{Comparator, CompareOp, Filter};
use model::mutation::ConditionTest;
use model::{Condition, Durability, Mutation, MutationKind, Scan, TimeRange};
use std::sync::Arc;

const LATEST: i64 = i64::MAX;

#[test]
fn a_check_that_let_puts_pass_has_no_result() {
    let server = Server::new(1_000_000);
    let test = ConditionTest::Value {
        family: Bytes::from("f"),
        qualifier: Bytes::from("none"),
        op: CompareOp::Equal,
        comparator: Arc::new(Comparator::Binary { value: Bytes::new() }),
    };
    let absent = Condition { row: Bytes::from("r"), test, time_range: TimeRange::ALL };
    let region = server.table([family("f")]);
    let checked = region.check_and_mutate(&absent, &[put("r", "f", "q", 5, "v")], None).expect("checked");
    assert!(checked.processed && checked.result.is_none());
    checked.commit.wait().expect("durable");
}

#[test]
fn a_delete_of_the_latest_version_does_not_see_a_put_of_its_own_batch() {
    let server = Server::new(1_000_000);
    let region = server.table([family("f")]);
    write(&region, &[put("r", "f", "q", 4, "v"), delete("r", "f", "q", LATEST, CellType::Delete)]);
    let raw = Scan { raw: true, max_versions: u32::MAX, ..Scan::default() };
    assert_eq!(scan(&region, &raw, 0), [["r/f:q/1000000/Delete=", "r/f:q/4/Put=v"]]);
}

#[test]
fn a_delete_of_the_latest_version_does_not_see_a_put_before_one_that_skips_the_log() {
    let server = Server::new(1_000_000);
    let region = server.table([family("f")]);
    let unlogged = Mutation { durability: Durability::SkipWal, ..put("s", "f", "q", 5, "v") };
    write(&region, &[put("r", "f", "q", 4, "v"), unlogged, delete("r", "f", "q", LATEST, CellType::Delete)]);
    let raw = Scan { raw: true, max_versions: u32::MAX, ..Scan::default() };
    let both = [vec!["r/f:q/1000000/Delete=", "r/f:q/4/Put=v"], vec!["s/f:q/5/Put=v"]];
    assert_eq!(scan(&region, &raw, 0), both);
}

#[test]
fn the_last_of_two_puts_to_one_cell_stays_whichever_skips_the_log() {
    for (first, last) in [(Durability::SkipWal, Durability::SyncWal), (Durability::SyncWal, Durability::SkipWal)] {
        let server = Server::new(1_000_000);
        let region = server.table([family("f")]);
        let with = |durability, value| Mutation { durability, ..put("r", "f", "q", 5, value) };
        write(&region, &[with(first, "first"), with(last, "last")]);
        assert_eq!(scan(&region, &Scan::default(), 0), [["r/f:q/5/Put=last"]]);
    }
}

#[test]
fn what_a_failed_check_keeps_from_being_written_is_not_looked_at() {
    let server = Server::new(1_000_000);
    let region = server.table([family("f")]);
    let test = ConditionTest::Value {
        family: Bytes::from("f"),
        qualifier: Bytes::from("none"),
        op: CompareOp::Equal,
        comparator: Arc::new(Comparator::Binary { value: Bytes::from("v") }),
    };
    let wrong = [put("r", "x", "q", 5, "v")];
    let there = Condition { row: Bytes::from("r"), test, time_range: TimeRange::ALL };
    let checked = region.check_and_mutate(&there, &wrong, None).expect("nothing is to be written");
    assert!(!checked.processed);
    checked.commit.wait().expect("durable");
    let test = ConditionTest::Value {
        family: Bytes::from("f"),
        qualifier: Bytes::from("none"),
        op: CompareOp::Equal,
        comparator: Arc::new(Comparator::Binary { value: Bytes::new() }),
    };
    let absent = Condition { row: Bytes::from("r"), test, time_range: TimeRange::ALL };
    let error = region.check_and_mutate(&absent, &wrong, None).expect_err("no family x");
    assert_eq!(error.kind(), ErrorKind::NoSuchColumnFamily);
}

#[test]
fn a_missing_family_is_worse_than_columns_of_a_raw_scan() {
    let server = Server::new(1_000_000);
    let region = server.table([family("f")]);
    let columns = [("f", "q"), ("x", "q")].map(|(f, q)| (Bytes::from(f), vec![Bytes::from(q)]));
    let raw = Scan { raw: true, columns: columns.into(), ..Scan::default() };
    assert_eq!(region.scanner(&raw).expect_err("no family x").kind(), ErrorKind::NoSuchColumnFamily);
}

#[test]
fn only_puts_are_stamped_after_what_a_check_saw() {
    let server = Server::new(1_000_000);
    let region = server.table([family("f")]);
    write(&region, &[put("r", "f", "q", 3_000_000, "v")]);
    let test = ConditionTest::Value {
        family: Bytes::from("f"),
        qualifier: Bytes::from("q"),
        op: CompareOp::Equal,
        comparator: Arc::new(Comparator::Binary { value: Bytes::from("v") }),
    };
    let there = Condition { row: Bytes::from("r"), test, time_range: TimeRange::ALL };
    let append = mutation(MutationKind::Append, "r", &[("f", "b", LATEST, CellType::Put, "x")]);
    for change in [put("r", "f", "a", LATEST, "x"), append, delete("r", "f", "c", LATEST, CellType::DeleteColumn)] {
        let checked = region.check_and_mutate(&there, &[change], None).expect("checked");
        assert!(checked.processed);
        checked.commit.wait().expect("durable");
    }
    let raw = Scan { raw: true, max_versions: u32::MAX, ..Scan::default() };
    let all = ["r/f:a/3000000/Put=x", "r/f:b/1000000/Put=x", "r/f:c/1000000/DeleteColumn=", "r/f:q/3000000/Put=v"];
    assert_eq!(scan(&region, &raw, 0), [all]);
}

#[test]
fn of_two_equal_cells_of_one_batch_only_the_last_was_ever_there() {
    for new_version_behavior in [false, true] {
        for file in [false, true] {
            let server = Server::new(1_000);
            let region = server.table([family("f").with("NEW_VERSION_BEHAVIOR", new_version_behavior.to_string())]);
            let append = |value| mutation(MutationKind::Append, "r", &[("f", "q", LATEST, CellType::Put, value)]);
            let short = Mutation { ttl_ms: Some(100), ..append("short") };
            let written = region.mutate_rows(&[append("first"), short], None).expect("accepted");
            written.commit.wait().expect("durable");
            if file {
                flush(&region);
            }
            assert_eq!(scan(&region, &Scan::default(), 0), [["r/f:q/1000/Put=short"]]);
            server.clock.set_wall_ms(2_000);
            assert_eq!(scan(&region, &Scan::default(), 0), [[""; 0]; 0], "{new_version_behavior} {file}");
        }
    }
}

#[test]
fn a_major_compaction_asked_for_before_there_was_a_file_does_not_follow_the_first_flush() {
    let server = Server::new(1_000_000);
    let region = server.table([family("f")]);
    region.request_major_compaction(None).expect("asked");
    write(&region, &[delete("r", "f", "q", 9, CellType::DeleteColumn)]);
    flush(&region);
    assert!(!region.needs_compaction(), "its delete marker would be gone, and later puts behind it would be seen");
    // asked for again by anybody it is a major one still
    let job = region.select_compaction(None, CompactionKind::Minor).expect("open");
    assert!(job.expect("there is a file").is_major());
    // and where there are files it need not be asked for again
    region.request_major_compaction(None).expect("asked");
    assert!(region.needs_compaction());
}

#[test]
fn a_limit_of_no_cells_to_a_family_finds_one() {
    let server = Server::new(1_000_000);
    let region = server.table([family("f")]);
    write(&region, &["a", "b", "c"].map(|q| put("r", "f", q, 5, "v")));
    let none = Scan { store_limit: Some(0), ..Scan::default() };
    assert_eq!(scan(&region, &none, 0), [["r/f:a/5/Put=v"]]);
    let behind_one = Scan { store_offset: 1, ..none };
    assert_eq!(scan(&region, &behind_one, 0), [["r/f:b/5/Put=v"]]);
}

#[test]
fn a_scan_for_no_versions_finds_nothing_unless_columns_are_named() {
    let server = Server::new(1_000_000);
    let region = server.table([family("f")]);
    write(&region, &["a", "b"].map(|q| put("r", "f", q, 5, "v")));
    let none = Scan { max_versions: 0, ..Scan::default() };
    assert!(scan(&region, &none, 0).is_empty());
    let columns = [(Bytes::from("f"), vec![Bytes::from("b")])].into();
    assert_eq!(scan(&region, &Scan { columns, ..none }, 0), [["r/f:b/5/Put=v"]]);
}

#[test]
fn a_filter_that_wants_nothing_more_at_a_rows_end_ends_the_scan() {
    let server = Server::new(1_000_000);
    let region = server.table([family("f")]);
    write(&region, &["a", "b"].map(|q| put("r1", "f", q, 5, "v")));
    write(&region, &[put("r2", "f", "a", 5, "v")]);
    let one_column = |reversed| {
        let filter = Some(Arc::new(Filter::ColumnCountGet { limit: 1 }));
        scan(&region, &Scan { filter, reversed, ..Scan::default() }, 0)
    };
    assert_eq!(one_column(false), [["r1/f:a/5/Put=v"]]);
    assert_eq!(one_column(true), [["r2/f:a/5/Put=v"], ["r1/f:a/5/Put=v"]]);
    // a limit of cells ends a row without a look at the next one
    let filter = Some(Arc::new(Filter::ColumnCountGet { limit: 0 }));
    assert!(scan(&region, &Scan { filter, store_limit: Some(1), ..Scan::default() }, 0).is_empty());
}

#[test]
fn cells_of_a_row_skipped_by_its_key_can_end_a_scan_forwards() {
    let server = Server::new(1_000_000);
    let region = server.table([family("f")]);
    write(&region, &[put("r1", "f", "a", 5, "v"), put("r2", "f", "b", 5, "v"), put("r3", "f", "a", 5, "v")]);
    let qualifier =
        Filter::Qualifier { op: CompareOp::Equal, comparator: Some(Comparator::Binary { value: Bytes::from("a") }) };
    let row =
        Filter::Row { op: CompareOp::NotEqual, comparator: Some(Comparator::Binary { value: Bytes::from("r2") }) };
    let while_a = Filter::WhileMatch { filter: Box::new(qualifier) };
    let filter = Filter::all_of(vec![while_a, row]);
    let filtered = |reversed| {
        let filter = Some(Arc::new(filter.clone()));
        scan(&region, &Scan { filter, reversed, ..Scan::default() }, 0)
    };
    assert_eq!(filtered(false), [["r1/f:a/5/Put=v"]]);
    assert_eq!(filtered(true), [["r3/f:a/5/Put=v"], ["r1/f:a/5/Put=v"]]);
}

#[test]
fn a_flush_under_the_order_of_arrival_keeps_what_has_expired() {
    let server = Server::new(1_000_000_000);
    let arrival =
        || family("f").with("VERSIONS", "3").with("NEW_VERSION_BEHAVIOR", "true").with("KEEP_DELETED_CELLS", "TRUE");
    let region = server.table([arrival()]);
    let expired = CellSpec {
        row: b"r",
        family: b"f",
        qualifier: b"old",
        timestamp: 1,
        type_code: CellType::Put.code(),
        value: b"v",
        tags: &[0, 9, cell::tag::TTL, 0, 0, 0, 0, 0, 0, 0, 1],
    };
    let expired = Mutation { cells: CellBlock::from_specs([expired]), ..put("r", "f", "old", 1, "v") };
    write(&region, &[put("r", "f", "q", 9, "v")]);
    write(&region, &[expired, delete("r", "f", "q", 5, CellType::DeleteColumn)]);
    flush(&region);
    major_compact(&region);
    let raw = Scan { raw: true, max_versions: u32::MAX, ..Scan::default() };
    let kept = ["r/f:q/9/Put=v", "r/f:q/5/DeleteColumn="];
    assert_eq!(scan(&region, &raw, 0), [kept], "the expired put is older than the marker, which is kept for its sake");
}
