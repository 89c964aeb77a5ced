//! What writes that read may do on a network thread: within a budget, or not at all.

mod common;

use basalt_region::{Region, RegionError};
use base::{EffortBudget, ReadMode};
use bytes::Bytes;
use cell::CellType;
use common::*;
use filter::{Comparator, CompareOp, Filter};
use model::mutation::ConditionTest;
use model::{Condition, Get, Mutation, MutationKind, TimeRange};
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
    common::get(region, &get, NOW)
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
