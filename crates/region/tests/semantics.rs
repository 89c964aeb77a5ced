//! The region against what HBase 2.6.4 answered: tests/golden/cluster/semantics.jsonl.

use crate::common::*;
use basalt_region::Region;
use bytes::Bytes;
use cell::{CellBuffer, CellType};
use filter::{Comparator, CompareOp};
use model::mutation::ConditionTest;
use model::{Condition, FamilyDescriptor, Get, MutationKind, Scan, TimeRange};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

fn golden() -> Vec<Value> {
    let text = include_str!("../../../tests/golden/cluster/semantics.jsonl");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn family_of(name: &str) -> FamilyDescriptor {
    let f = family("f");
    match name {
        "v1" => f,
        "v3" => f.with("VERSIONS", "3"),
        "v3keep" => f.with("VERSIONS", "3").with("KEEP_DELETED_CELLS", "TRUE"),
        "v3ttlkeep" => f.with("VERSIONS", "3").with("KEEP_DELETED_CELLS", "TTL"),
        "v3min2ttl" => f.with("VERSIONS", "3").with("MIN_VERSIONS", "2").with("TTL", "5"),
        "v3newbehav" => f.with("VERSIONS", "3").with("NEW_VERSION_BEHAVIOR", "true"),
        other => panic!("unknown family setting {other}"),
    }
}

fn do_step(region: &Arc<Region>, step: &str, base: i64) {
    let put_q = |ts: i64, value: &str| put("r", "f", "q", base + ts, value);
    match step {
        s if s.starts_with("puts r/f:q") => {
            for i in 1..=5 {
                write(region, &[put_q(i * 10, &format!("v{i}"))]);
            }
            write(region, &[put("r", "f", "p", base + 10, "p1")]);
            write(region, &[put("s", "f", "q", base + 10, "s1")]);
        }
        "delete version f:q ts=50 (exact)" => write(region, &[delete("r", "f", "q", base + 50, CellType::Delete)]),
        "put f:q ts=50 v5b again (below the delete marker)" => write(region, &[put_q(50, "v5b")]),
        "delete columns f:q <=30" => write(region, &[delete("r", "f", "q", base + 30, CellType::DeleteColumn)]),
        "put f:q ts=25" => write(region, &[put_q(25, "v25")]),
        "put f:q ts=40 v4x (same ts as v4)" => write(region, &[put_q(40, "v4x")]),
        "delete family version ts=10" => {
            write(region, &[delete("r", "f", "", base + 10, CellType::DeleteFamilyVersion)]);
        }
        "flush" => flush(region),
        "delete row s ts=15, then put s/f:q ts=12 late" => {
            let mut row = mutation(MutationKind::Delete, "s", &[]);
            row.timestamp = base + 15;
            write(region, &[row]);
            write(region, &[put("s", "f", "q", base + 12, "late")]);
        }
        "flush + major compaction" => {
            flush(region);
            major_compact(region);
        }
        "put s/f:q ts=12 later" => write(region, &[put("s", "f", "q", base + 12, "later")]),
        other => panic!("unknown step {other}"),
    }
}

fn observe(region: &Arc<Region>, base: i64) -> BTreeMap<&'static str, Value> {
    let versions = |n| Scan { max_versions: n, ..Scan::default() };
    let rows = |s: &Scan| serde_json::to_value(scan(region, s, base)).expect("JSON");
    let range = TimeRange { min: base, max: base + 45 };
    let mut at_40 = Get::new("r");
    at_40.columns.insert(Bytes::from("f"), vec![Bytes::from("q")]);
    at_40.time_range = TimeRange { min: base + 40, max: base + 41 };
    let got: Vec<Vec<String>> = [get(region, &at_40, base)].into_iter().filter(|cells| !cells.is_empty()).collect();
    BTreeMap::from([
        ("scan_versions_1", rows(&versions(1))),
        ("scan_versions_3", rows(&versions(3))),
        ("scan_versions_all", rows(&versions(i32::MAX as u32))),
        ("raw_all", rows(&Scan { raw: true, ..versions(i32::MAX as u32) })),
        ("timerange_0_45_all", rows(&Scan { time_range: range, ..versions(i32::MAX as u32) })),
        ("get_ts_40", serde_json::to_value(got).expect("JSON")),
    ])
}

#[test]
fn every_family_setting_answers_as_hbase_does() {
    let mut checked = 0;
    for line in golden() {
        let name = line["family"].as_str().expect("a name");
        if name == "misc" {
            continue;
        }
        let base = line["base_ts"].as_i64().expect("a number");
        // Of the family with a TTL every cell is long expired.
        let server = Server::new(if base > 1_000_000 { base + 3_600_000 } else { 1_700_000_000_000 });
        let region = server.table([family_of(name)]);
        let mut step = "";
        for item in line["steps"].as_array().expect("steps") {
            if let Some(text) = item.as_str() {
                step = text;
                do_step(&region, text, base);
                continue;
            }
            let seen = observe(&region, base);
            for (what, expected) in item.as_object().expect("observations") {
                assert_eq!(&seen[what.as_str()], expected, "{name}, after {step:?}: {what}");
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 6 * 11 * 6);
}

fn misc() -> BTreeMap<String, Vec<Value>> {
    let line = golden().into_iter().find(|line| line["family"] == "misc").expect("the misc line");
    let steps = line["steps"].as_array().expect("steps").clone();
    steps
        .into_iter()
        .map(|step| {
            let parts = step.as_array().expect("a step").clone();
            (parts[0].as_str().expect("a label").to_owned(), parts[1..].to_vec())
        })
        .collect()
}

fn printed(cells: &CellBuffer, now: i64) -> String {
    let shown: Vec<String> =
        cells.iter_from(0).map(|cell| show(cell, 0).replace(&format!("/{now}/"), "/NOW/")).collect();
    format!("[{}]", shown.join(", "))
}

#[test]
fn increments_and_appends_answer_as_hbase_does() {
    let expected = misc();
    let now = 1_700_000_000_000;
    let server = Server::new(now);
    let region = server.table([family("f").with("VERSIONS", "3"), family("g")]);
    let amount = |n: i64| n.to_be_bytes();
    let increment = |qualifier: &str, value: &[u8]| {
        let mut m = mutation(MutationKind::Increment, "c", &[]);
        m.cells = cell::CellBlock::from_specs([cell::CellSpec {
            row: b"c",
            family: b"f",
            qualifier: qualifier.as_bytes(),
            timestamp: LATEST,
            type_code: CellType::Put.code(),
            value,
            tags: b"",
        }]);
        m
    };
    let append = |value: &str| mutation(MutationKind::Append, "c", &[("f", "s", LATEST, CellType::Put, value)]);
    let done = |written: basalt_region::Written| {
        let text = printed(&written.result, server.clock_now());
        written.commit.wait().expect("durable");
        text
    };
    assert_eq!(
        expected["increment new cell by 5"][0],
        done(region.increment_or_append(&increment("n", &amount(5))).expect("ok"))
    );
    write(&region, &[put("c", "f", "two", LATEST, "xx")]);
    let error = region.increment_or_append(&increment("two", &amount(1))).expect_err("two bytes are no number");
    let text = format!("org.apache.hadoop.hbase.DoNotRetryIOException: {error}");
    assert_eq!(expected["increment non-8-byte"][1], text.as_str());
    assert_eq!(expected["append returns"][0], done(region.increment_or_append(&append("ab")).expect("ok")));
    server.clock.advance_ms(5);
    assert_eq!(expected["append again"][0], done(region.increment_or_append(&append("cd")).expect("ok")));
    let mut silent = increment("n", &amount(1));
    silent.return_results = false;
    assert_eq!(expected["increment returnResults=false"][0], done(region.increment_or_append(&silent).expect("ok")));
    let six = get(
        &region,
        &Get { columns: BTreeMap::from([(Bytes::from("f"), vec![Bytes::from("n")])]), ..Get::new("c") },
        0,
    );
    assert!(six[0].ends_with("\\x06"), "{six:?}");
}

impl Server {
    fn clock_now(&self) -> i64 {
        use base::Clock;
        self.clock.now_ms().0
    }
}

#[test]
fn conditions_answer_as_hbase_does() {
    let expected = misc();
    let server = Server::new(1_700_000_000_000);
    let region = server.table([family("f")]);
    let check = |qualifier: &'static str, op: CompareOp, value: &str| {
        let condition = Condition {
            row: Bytes::from("c"),
            test: ConditionTest::Value {
                family: Bytes::from("f"),
                qualifier: Bytes::from(qualifier),
                op,
                comparator: Arc::new(Comparator::Binary { value: Bytes::copy_from_slice(value.as_bytes()) }),
            },
            time_range: TimeRange::ALL,
        };
        let checked = region.check_and_mutate(&condition, &[put("c", "f", "out", LATEST, "x")], None).expect("checked");
        checked.commit.wait().expect("durable");
        checked.processed
    };
    assert_eq!(expected["checkAndMutate null check on missing"][0], check("no", CompareOp::Equal, ""));
    assert_eq!(expected["ifMatches NOT_EQUAL against missing column"][0], check("no", CompareOp::NotEqual, "x"));
    assert_eq!(expected["ifEquals empty bytes on missing column"][0], check("no", CompareOp::Equal, ""));
    write(&region, &[put("c", "f", "five", LATEST, "5")]);
    let ops = [
        ("LESS", CompareOp::Less),
        ("LESS_OR_EQUAL", CompareOp::LessOrEqual),
        ("EQUAL", CompareOp::Equal),
        ("NOT_EQUAL", CompareOp::NotEqual),
        ("GREATER_OR_EQUAL", CompareOp::GreaterOrEqual),
        ("GREATER", CompareOp::Greater),
    ];
    for (name, op) in ops {
        for value in ["4", "5", "6"] {
            let label = format!("cell=5 ifMatches {name} {value}");
            assert_eq!(expected[&label][0], check("five", op, value), "{label}");
        }
    }
}

#[test]
fn limits_and_ranges_answer_as_hbase_does() {
    let expected = misc();
    let server = Server::new(1_700_000_000_000);
    for flushed in [false, true] {
        let region =
            if flushed { reopened(&server) } else { server.table([family("f").with("VERSIONS", "3"), family("g")]) };
        if !flushed {
            for i in 0..6 {
                write(&region, &[put("w", "f", &format!("q{i}"), 100 + i, &format!("x{i}"))]);
                write(&region, &[put("w", "g", &format!("k{i}"), 100 + i, &format!("y{i}"))]);
            }
            for i in 0..4 {
                write(&region, &[put("w", "f", "q0", 200 + i, &format!("n{i}"))]);
            }
        }
        let of = |scan: Scan| Scan { start_row: Bytes::from("w"), stop_row: Bytes::from("x"), ..scan };
        let flat = |s: Scan| serde_json::to_value(scan(&region, &of(s), 0).concat()).expect("JSON");
        let pieces = |s: Scan| serde_json::to_value(scan(&region, &of(s), 0)).expect("JSON");
        let base = Scan::default;
        assert_eq!(
            expected["storeLimit 2 offset 1"][0],
            flat(Scan { store_limit: Some(2), store_offset: 1, ..base() })
        );
        assert_eq!(
            expected["storeLimit 3, 3 versions"][0],
            flat(Scan { store_limit: Some(3), max_versions: 3, ..base() })
        );
        let range = TimeRange { min: 101, max: 104 };
        assert_eq!(expected["timerange [101,104)"][0], flat(Scan { time_range: range, ..base() }));
        let of_f = BTreeMap::from([(Bytes::from("f"), TimeRange { min: 103, max: 201 })]);
        if !flushed {
            // The flush drops n0: four versions are one more than the family keeps.
            assert_eq!(expected["family timerange f [103,201)"][0], flat(Scan { family_time_ranges: of_f, ..base() }));
        }
        assert_eq!(expected["batch 5 limit 1"][0], pieces(Scan { batch: Some(5), ..base() }));
        assert_eq!(
            expected["batch 5 storeLimit 4"][0],
            pieces(Scan { batch: Some(5), store_limit: Some(4), ..base() })
        );
        assert_eq!(expected["start w exclusive"][0], pieces(Scan { include_start_row: false, ..base() }));
        flush(&region);
        region.close(basalt_region::CloseMode::Flush).expect("closed");
    }
}

fn reopened(server: &Server) -> Arc<Region> {
    server.table([family("f").with("VERSIONS", "3"), family("g")])
}

#[test]
fn too_large_a_cell_is_refused_in_hbases_words() {
    let expected = misc();
    let server = Server::new(1_700_000_000_000);
    let region = server.table([family("f")]);
    let value = "x".repeat(10 * 1024 * 1024 + 1);
    let applied = region.apply(&[put("big", "f", "q", LATEST, &value)]).expect("tried");
    let error = applied.results[0].as_ref().expect_err("too large");
    let text = format!("org.apache.hadoop.hbase.DoNotRetryIOException: {error}");
    assert_eq!(expected["10MiB+1 value, client check off"][1], text.as_str());
    write(&region, &[put("m", "f", "q", i64::MAX - 1, "future")]);
    assert_eq!(get(&region, &Get::new("m"), 0).len(), 1);
}

/// `Put.add(Cell)` takes any cell, a delete of any type too (Phoenix writes its rows so). HBase writes them with the
/// put; what it stamps itself gets the moment of the call, a delete of one version too: no latest version is looked
/// for.
#[test]
fn a_put_may_hold_delete_cells() {
    const NOW: i64 = 1_700_000_000_000;
    let server = Server::new(NOW);
    let region = server.table([family("f").with("VERSIONS", "3"), family("g")]);
    let types = [CellType::Delete, CellType::DeleteColumn, CellType::DeleteFamily, CellType::DeleteFamilyVersion];
    for cell_type in types {
        let row = format!("{cell_type:?}");
        let of_family = matches!(cell_type, CellType::DeleteFamily | CellType::DeleteFamilyVersion);
        let qualifier = if of_family { "" } else { "q" };
        write(&region, &[put(&row, "f", "q", NOW - 10, "old"), put(&row, "f", "q", NOW - 5, "newer")]);
        let cells = [("g", "q", LATEST, CellType::Put, "v"), ("f", qualifier, NOW - 5, cell_type, "")];
        write(&region, &[mutation(MutationKind::Put, &row, &cells)]);
        let covers = matches!(cell_type, CellType::DeleteColumn | CellType::DeleteFamily);
        let mut expected = vec![format!("{row}/g:q/0/Put=v")];
        if !covers {
            expected.insert(0, format!("{row}/f:q/-10/Put=old"));
        }
        assert_eq!(get(&region, &Get::new(row.clone()), NOW), expected, "{cell_type:?}");
    }
    // Stamped by the server.
    write(&region, &[put("now", "f", "q", NOW - 5, "old")]);
    write(&region, &[mutation(MutationKind::Put, "now", &[("f", "q", LATEST, CellType::Delete, "")])]);
    let raw = Scan { start_row: Bytes::from("now"), raw: true, max_versions: 9, ..Scan::default() };
    assert_eq!(scan(&region, &raw, NOW), [["now/f:q/0/Delete=", "now/f:q/-5/Put=old"]]);
    // With the put of a call goes its marker, and a put of a later call is seen behind it.
    let both = [("g", "q", LATEST, CellType::DeleteColumn, ""), ("g", "p", LATEST, CellType::Put, "1")];
    let behind = put("both", "g", "q", LATEST, "2");
    write(&region, &[mutation(MutationKind::Put, "both", &both), behind]);
    assert_eq!(get(&region, &Get::new("both"), NOW), ["both/g:p/0/Put=1", "both/g:q/1/Put=2"]);
    // Over flush, compaction and all it stays so.
    flush(&region);
    major_compact(&region);
    assert_eq!(get(&region, &Get::new("both"), NOW), ["both/g:p/0/Put=1", "both/g:q/1/Put=2"]);
    assert_eq!(get(&region, &Get::new("DeleteColumn"), NOW), ["DeleteColumn/g:q/0/Put=v"]);
}
