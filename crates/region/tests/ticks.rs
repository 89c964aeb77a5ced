//! Ticks: a put behind a delete of the same millisecond is seen, and the clock is hardly run ahead of.

use crate::common::*;
use basalt_region::{Applied, CloseMode, Region, RegionError};
use base::{Config, Rng};
use bytes::Bytes;
use cell::{CellBuffer, CellType};
use filter::{Comparator, CompareOp};
use fs::MemVolume;
use hfile::Residency;
use model::mutation::ConditionTest;
use model::{Condition, Get, Mutation, MutationKind, TimeRange};
use std::collections::BTreeMap;
use std::sync::Arc;

const NOW: i64 = 1_700_000_000_000;

fn delete_row(row: &str) -> Mutation {
    mutation(MutationKind::Delete, row, &[])
}

fn put_now(row: &str, value: &str) -> Mutation {
    put(row, "f", "q", LATEST, value)
}

fn increment(row: &str, amount: i64) -> Mutation {
    let mut increment = mutation(MutationKind::Increment, row, &[]);
    let spec = cell::CellSpec {
        row: row.as_bytes(),
        family: b"f",
        qualifier: b"q",
        timestamp: LATEST,
        type_code: CellType::Put.code(),
        value: &amount.to_be_bytes(),
        tags: b"",
    };
    increment.cells = cell::CellBlock::from_specs([spec]);
    increment
}

fn seen(region: &Region, row: &str) -> Vec<String> {
    get(region, &Get::new(Bytes::copy_from_slice(row.as_bytes())), NOW)
}

/// Applies all, moving the clock where a write waits for it; how many milliseconds that took.
fn write_all(server: &Server, region: &Region, mutations: &[Mutation]) -> u64 {
    let (mut at, mut waited) = (0, 0);
    while at < mutations.len() {
        let Applied { results, commit, wait_ms } = region.apply(&mutations[at..]).expect("open");
        assert_eq!(results.len() < mutations.len() - at, wait_ms.is_some());
        at += results.len();
        results.into_iter().for_each(|result| drop(result.expect("accepted")));
        commit.wait().expect("durable");
        if let Some(ms) = wait_ms {
            server.clock.advance_ms(ms);
            waited += ms;
        }
    }
    waited
}

#[test]
fn a_put_behind_a_delete_of_the_same_millisecond_is_seen() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    write(&region, &[put_now("r", "old")]);
    write(&region, &[delete_row("r")]);
    assert!(seen(&region, "r").is_empty());
    write(&region, &[put_now("r", "new")]);
    assert_eq!(seen(&region, "r"), ["r/f:q/1/Put=new"]);
    // A delete behind that takes it along, though the clock has not moved.
    write(&region, &[delete_row("r")]);
    assert!(seen(&region, "r").is_empty());
    // Of another row nothing is moved.
    write(&region, &[put_now("s", "v")]);
    assert_eq!(seen(&region, "s"), ["s/f:q/0/Put=v"]);
}

#[test]
fn what_would_be_more_than_a_millisecond_ahead_waits_for_the_clock_and_writes_nothing() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    write(&region, &[delete_row("r")]);
    write(&region, &[put_now("r", "1")]);
    write(&region, &[delete_row("r")]);
    let held = region.apply(&[put_now("r", "2")]).expect("open");
    assert_eq!((held.results.len(), held.wait_ms, held.commit.seq_id()), (0, Some(1), None));
    let error = region.mutate_rows(&[put_now("r", "2")], None).expect_err("not yet");
    assert!(matches!(error, RegionError::AheadOfClock { wait_ms: 1, .. }), "{error}");
    assert!(seen(&region, "r").is_empty());
    server.clock.advance_ms(1);
    write(&region, &[put_now("r", "2")]);
    assert_eq!(seen(&region, "r"), ["r/f:q/2/Put=2"]);
}

#[test]
fn every_kind_of_marker_counts_and_every_kind_of_write_comes_after_it() {
    let markers = [
        delete_row("r"),
        delete("r", "f", "", LATEST, CellType::DeleteFamily),
        delete("r", "f", "q", LATEST, CellType::DeleteColumn),
        delete("r", "f", "", LATEST, CellType::DeleteFamilyVersion),
        // The latest version: that of this very millisecond.
        delete("r", "f", "q", LATEST, CellType::Delete),
    ];
    for marker in markers {
        for change in [
            put_now("r", "v"),
            increment("r", 1),
            mutation(MutationKind::Append, "r", &[("f", "q", LATEST, CellType::Put, "v")]),
        ] {
            let server = Server::new(NOW);
            let region = server.table([family("f")]);
            for _ in 0..5 {
                write_all(&server, &region, &[put("r", "f", "q", LATEST, "12345678")]);
                write_all(&server, &region, std::slice::from_ref(&marker));
                assert!(seen(&region, "r").is_empty(), "{marker:?}");
                write_all(&server, &region, std::slice::from_ref(&change));
                assert_eq!(seen(&region, "r").len(), 1, "{change:?} behind {marker:?}");
                write_all(&server, &region, std::slice::from_ref(&marker));
                assert!(seen(&region, "r").is_empty(), "{marker:?}");
            }
        }
    }
}

#[test]
fn a_delete_of_an_older_version_moves_nothing() {
    let server = Server::new(NOW);
    let region = server.table([family("f").with("VERSIONS", "3")]);
    write(&region, &[put("r", "f", "q", NOW - 5, "old")]);
    write(&region, &[delete("r", "f", "q", LATEST, CellType::Delete)]);
    write(&region, &[put_now("r", "new")]);
    assert_eq!(seen(&region, "r"), ["r/f:q/0/Put=new"]);
}

#[test]
fn the_actions_of_a_batch_count_in_their_order() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    let batch = [delete_row("r"), put_now("r", "1"), put_now("s", "1"), delete_row("s"), put_now("t", "1")];
    assert_eq!(write_all(&server, &region, &batch), 0);
    assert_eq!(seen(&region, "r"), ["r/f:q/1/Put=1"]);
    assert!(seen(&region, "s").is_empty());
    // Within a batch no stamp is earlier than the one before.
    assert_eq!(seen(&region, "t"), ["t/f:q/1/Put=1"]);
    let again: Vec<Mutation> = (0..10).flat_map(|i| [delete_row("r"), put_now("r", &i.to_string())]).collect();
    assert_eq!(write_all(&server, &region, &again), 10);
    assert_eq!(seen(&region, "r"), ["r/f:q/11/Put=9"]);
    write(&region, &[put_now("u", "1"), put_now("u", "2")]);
    assert_eq!(seen(&region, "u"), ["u/f:q/10/Put=2"]);
}

#[test]
fn inside_an_atomic_write_a_marker_hides_a_put_as_in_hbase() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    write(&region, &[delete_row("r")]);
    let written = region.mutate_rows(&[delete_row("r"), put_now("r", "1")], None).expect("open");
    written.commit.wait().expect("durable");
    assert!(seen(&region, "r").is_empty());
    // That marker has the tick after the first one, and what comes next a further one: the clock is waited for.
    assert!(matches!(
        region.mutate_rows(&[put_now("r", "2")], None),
        Err(RegionError::AheadOfClock { wait_ms: 1, .. })
    ));
    server.clock.advance_ms(1);
    region.mutate_rows(&[put_now("r", "2")], None).expect("open").commit.wait().expect("durable");
    assert_eq!(seen(&region, "r"), ["r/f:q/2/Put=2"]);
}

#[test]
fn a_check_that_deletes_and_a_put_take_turns() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    let is_there = Condition {
        row: Bytes::from("r"),
        test: ConditionTest::Value {
            family: Bytes::from("f"),
            qualifier: Bytes::from("q"),
            op: CompareOp::Equal,
            comparator: Arc::new(Comparator::Binary { value: Bytes::from("v") }),
        },
        time_range: TimeRange::ALL,
    };
    let is_absent = Condition {
        test: ConditionTest::Value {
            family: Bytes::from("f"),
            qualifier: Bytes::from("q"),
            op: CompareOp::Equal,
            comparator: Arc::new(Comparator::Binary { value: Bytes::new() }),
        },
        ..is_there.clone()
    };
    let check = |condition: &Condition, mutation: &Mutation| {
        loop {
            match region.check_and_mutate(condition, std::slice::from_ref(mutation), None) {
                Ok(checked) => {
                    checked.commit.wait().expect("durable");
                    return checked.processed;
                }
                Err(RegionError::AheadOfClock { wait_ms, .. }) => server.clock.advance_ms(wait_ms),
                Err(error) => panic!("{error}"),
            }
        }
    };
    for round in 0..20 {
        assert!(check(&is_absent, &put_now("r", "v")), "round {round}");
        assert!(check(&is_there, &delete_row("r")), "round {round}");
    }
    assert!(server.env.clock.now_ms().0 - NOW <= 20);
}

#[test]
fn counters_and_texts_do_not_run_ahead_of_the_clock() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    let changes: Vec<Mutation> = (0..100).map(|_| increment("r", 1)).collect();
    assert_eq!(write_all(&server, &region, &changes), 0);
    assert_eq!(seen(&region, "r"), ["r/f:q/0/Put=\\x00\\x00\\x00\\x00\\x00\\x00\\x00d"]);
    write(&region, &[delete_row("r")]);
    assert!(seen(&region, "r").is_empty());
    // A client's stamp is left behind as HBase leaves it.
    write(&region, &[put("s", "f", "q", NOW + 1000, "12345678")]);
    write(&region, &[increment("s", 0), increment("s", 0)]);
    assert_eq!(seen(&region, "s"), ["s/f:q/1002/Put=12345678"]);
}

#[test]
fn it_holds_over_flush_close_and_reopening() {
    let server = Server::new(NOW);
    let table = Arc::new(model::TableDescriptor::new(table_name(), [family("f")]));
    let mut region = server.open(&whole_table(), &table).expect("new");
    for i in 0..4 {
        write_all(&server, &region, &[put_now("r", "old"), delete_row("r")]);
        if i % 2 == 0 {
            flush(&region);
        }
        region.close(CloseMode::Flush).expect("closed");
        region = server.open(&whole_table(), &table).expect("opened again");
        write_all(&server, &region, &[put_now("r", "new")]);
        assert_eq!(seen(&region, "r").len(), 1, "round {i}");
    }
}

#[test]
fn a_replay_carries_the_ticks_that_were_chosen() {
    for inherits in [false, true] {
        let server = Server::new(NOW);
        let region = server.table([family("f")]);
        let table = region.table().clone();
        write(&region, &[delete_row("r"), put_now("r", "1")]);
        write(&region, &[delete_row("s")]);
        server.env.log.sync_once().expect("synced");
        let volume: MemVolume = server.volume.crash(&Rng::seeded(1), fs::CrashPolicy::KeepAll);
        drop(region);
        let server = Server::after(volume, NOW, &Config::default(), 2, inherits).expect("started");
        let region = server.open(&whole_table(), &table).expect("opened");
        assert_eq!(seen(&region, "r"), ["r/f:q/1/Put=1"]);
        write(&region, &[put_now("s", "2")]);
        assert_eq!(seen(&region, "s"), ["s/f:q/1/Put=2"], "inherits: {inherits}");
    }
}

#[test]
fn stamps_of_clients_stay_theirs() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    write(&region, &[delete_row("r")]);
    write(&region, &[put("r", "f", "q", NOW, "v")]);
    assert!(seen(&region, "r").is_empty(), "a put with a client's stamp lies where it says");
    write(&region, &[delete("s", "f", "q", NOW, CellType::DeleteColumn)]);
    write(&region, &[put_now("s", "v")]);
    assert!(seen(&region, "s").is_empty(), "a marker with a client's stamp hides what it says");
}

#[test]
fn a_clock_that_was_set_back_is_not_waited_for() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    write(&region, &[put_now("r", "v")]);
    server.clock.set_wall_ms(NOW - 3_600_000);
    let turns: Vec<Mutation> = (0..50).flat_map(|_| [delete_row("r"), put_now("r", "v")]).collect();
    for _ in 0..20 {
        assert_eq!(write_all(&server, &region, &turns), 0);
    }
    assert_eq!(seen(&region, "r").len(), 1);
    // Nor when it has come back and the row is still a second ahead.
    server.clock.set_wall_ms(NOW);
    assert_eq!(write_all(&server, &region, &turns), 0);
    assert_eq!(seen(&region, "r").len(), 1);
}

#[test]
fn hbases_semantics_can_be_had() {
    let mut config = Config::default();
    config.set("basalt.hbase.tick.semantics", "true");
    let server = Server::try_on(MemVolume::new(), NOW, &config, 1).expect("an empty volume");
    let region = server.table([family("f")]);
    write(&region, &[delete_row("r"), put_now("r", "v")]);
    write(&region, &[put_now("r", "v")]);
    assert!(seen(&region, "r").is_empty());
    write(&region, &[increment("s", 1), increment("s", 1), increment("s", 1)]);
    assert_eq!(seen(&region, "s"), ["s/f:q/2/Put=\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x03"]);
}

/// One random write; `None` deletes the column, an empty column is the whole row.
fn random_write(rng: &Rng) -> (Mutation, &'static str, &'static str, Option<String>) {
    let row = ["a", "b", "c"][rng.below(3) as usize];
    let column = ["p", "q"][rng.below(2) as usize];
    let value = rng.below(1_000_000).to_string();
    match rng.below(6) {
        0 => (delete_row(row), row, "", None),
        1 => (delete(row, "f", "", LATEST, CellType::DeleteFamily), row, "", None),
        2 => (delete(row, "f", column, LATEST, CellType::DeleteColumn), row, column, None),
        _ => (put(row, "f", column, LATEST, &value), row, column, Some(value)),
    }
}

/// With stamps of the server alone a table is what the writes say in their order, whatever the clock does.
#[test]
fn the_order_of_commits_is_the_order_of_what_is_read() {
    let (seed, count) = programs(60);
    for seed in seed..seed + count {
        let rng = Rng::seeded(seed);
        let server = Server::new(NOW);
        let table = Arc::new(model::TableDescriptor::new(table_name(), [family("f")]));
        let mut region = server.open(&whole_table(), &table).expect("new");
        let mut latest = NOW;
        let mut expected: BTreeMap<(&str, &str), String> = BTreeMap::new();
        for step in 0..120 {
            latest = latest.max(server.env.clock.now_ms().0);
            match rng.below(20) {
                0 => server.clock.advance_ms(rng.below(3)),
                1 => server.clock.set_wall_ms(server.env.clock.now_ms().0 - rng.below(3) as i64),
                2 => flush(&region),
                3 => major_compact(&region),
                4 => {
                    region.close(CloseMode::Flush).expect("closed");
                    // Not before the clock has come to what was stamped.
                    server.clock.set_wall_ms(latest + 3);
                    region = server.open(&whole_table(), &table).expect("opened again");
                }
                _ => {
                    let writes: Vec<_> = (0..1 + rng.below(6)).map(|_| random_write(&rng)).collect();
                    let mutations: Vec<Mutation> = writes.iter().map(|(mutation, ..)| mutation.clone()).collect();
                    write_all(&server, &region, &mutations);
                    for (_, row, column, value) in writes {
                        expected.retain(|(r, c), _| *r != row || (!column.is_empty() && *c != column));
                        expected.extend(value.map(|value| ((row, column), value)));
                    }
                }
            }
            for row in ["a", "b", "c"] {
                let mut out = CellBuffer::new();
                let get = Get::new(Bytes::from(row));
                region.get(&get, &mut out, Residency::MayRead).expect("read");
                let found: Vec<(&[u8], &[u8])> = out.iter_from(0).map(|c| (c.qualifier(), c.value())).collect();
                let want = expected.iter().filter(|((r, _), _)| *r == row);
                let want: Vec<(&[u8], &[u8])> = want.map(|((_, c), v)| (c.as_bytes(), v.as_bytes())).collect();
                assert_eq!(found, want, "seed {seed}, step {step}, row {row}");
            }
        }
    }
}
