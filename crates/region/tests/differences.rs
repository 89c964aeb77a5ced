//! What running the same random programs against Apache HBase 2.6.4 found to differ, each as small as it became.

mod common;

use basalt_region::ErrorKind;
use bytes::Bytes;
use cell::CellType;
use common::*;
use filter::{Comparator, CompareOp};
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
