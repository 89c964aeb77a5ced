//! Costs as HBase 2.6.4's own classes compute them: `tests/golden/balancer/costs.jsonl`, made by `MakeCosts.java` beside it.

use crate::common::settings;
use basalt_balancer::{Costs, Function, LoadHistory, LoadSample, RegionEntry, ServerEntry, Snapshot, State, replay};
use serde_json::Value;
use std::collections::HashMap;

const GOLDEN: &str = include_str!("../../../tests/golden/balancer/costs.jsonl");

fn number(value: &Value) -> usize {
    value.as_u64().expect("a number") as usize
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn history(reports: &[Value]) -> LoadHistory {
    let mut history = LoadHistory::default();
    for report in reports {
        let [reads, writes, memstore, files] = [0, 1, 2, 3].map(|n| number(&report[n]) as u64);
        let (memstore_mb, store_file_mb) = (memstore as u32, files as u32);
        history.push(LoadSample { reads, writes, memstore_mb, store_file_mb }, reports.len());
    }
    history
}

fn snapshot(case: &Value) -> Snapshot {
    let (hosts, racks, servers) = (number(&case["hosts"]), number(&case["racks"]), number(&case["servers"]));
    let server = |n| ServerEntry {
        host: format!("host{}", n % hosts).into(),
        rack: format!("/rack{}", n % hosts % racks).into(),
    };
    let (mut tables, mut primaries) = (HashMap::new(), HashMap::new());
    let regions = list(&case["regions"]);
    for (n, region) in regions.iter().enumerate().filter(|(_, region)| region["replica"] == 0) {
        primaries.insert((&region["table"], &region["start"]), n);
    }
    let entry = |region: &Value| {
        let next = tables.len();
        let table = *tables.entry(region["table"].as_str().expect("a name").to_owned()).or_insert(next);
        let blocks: Vec<usize> = list(&region["blocks"]).iter().map(number).collect();
        let total: usize = blocks.iter().sum();
        let part = |server: usize| (server, blocks[server % hosts] as f32 / total as f32);
        RegionEntry {
            server: number(&region["server"]),
            table,
            replica_id: number(&region["replica"]) as u32,
            primary: primaries.get(&(&region["table"], &region["start"])).copied(),
            costs: history(list(&region["reports"])).costs(),
            localities: if total == 0 { Vec::new() } else { (0..servers).map(part).collect() },
            ..RegionEntry::default()
        }
    };
    let regions = regions.iter().map(entry).collect();
    Snapshot { servers: (0..servers).map(server).collect(), tables: tables.len(), regions }
}

fn expect(name: &str, expected: &Value, state: &State<'_>, costs: &Costs) {
    let functions = costs.functions(state);
    let expected = expected.as_object().expect("costs");
    assert_eq!(functions.len(), expected.len(), "{name}: {functions:?} and {expected:?}");
    for cost in functions {
        let wanted = expected[cost.function.simple_name()].as_f64().expect("a number");
        assert!(
            (cost.cost - wanted).abs() <= 1e-6,
            "{name}: {} is {}, of HBase {wanted}",
            cost.function.simple_name(),
            cost.cost
        );
    }
}

#[test]
fn costs_are_what_hbases_classes_compute() {
    let settings = settings(&[]);
    let mut compared = 0;
    for line in GOLDEN.lines() {
        let case: Value = serde_json::from_str(line).expect("a line of the golden file");
        let name = case["name"].as_str().expect("a name");
        for function in Function::ALL {
            let weight = case["multipliers"][function.simple_name()].as_f64().expect("a weight");
            assert_eq!(f64::from(settings.multipliers.of(function)), weight, "{}", function.simple_name());
        }
        let snapshot = snapshot(&case);
        let moves: Vec<(usize, usize)> =
            list(&case["moves"]).iter().map(|step| (number(&step[0]), number(&step[2]))).collect();
        let expected = list(&case["costs"]);
        assert_eq!(expected.len(), moves.len() + 1);
        for (n, expected) in expected.iter().enumerate() {
            replay(&snapshot, settings.multipliers, &moves[..n], |state, costs| expect(name, expected, state, costs));
            compared += 1;
        }
    }
    assert!(compared > 60, "{compared}");
}
