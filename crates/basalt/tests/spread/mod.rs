//! Whether three region servers do as much in a second of cores as one does: YCSB's workloads A, B and C on a cluster of ours with one region
//! server, then with three and as many more clients: each server has as much to do at once, and groups as much of it. `cargo xtask cluster spread`; it
//! takes minutes, prints what it saw, and fails where too much is lost.
#![cfg(all(feature = "hdfs", feature = "zookeeper"))]
#![allow(clippy::disallowed_methods, reason = "tests of a process work on real processes, and measure them")]

use crate::joined::lab::{Lab, Piece, regions, servers, until};
use bytes::Bytes;
use model::{FamilyDescriptor, TableDescriptor, TableName};
use std::collections::BTreeSet;
use std::time::Duration;

const RECORDS: u64 = 20_000;
const OPERATIONS: u64 = 600_000;
const CLIENTS_OF_A_SERVER: usize = 16;
const WORKLOADS: [&str; 3] = ["workloada", "workloadb", "workloadc"];
/// Of the operations that one server does in a second of its cores, three are to do so many in a second of theirs, all together; and below the second
/// something is wrong.
const GOAL: f64 = 0.9;
const LEAST: f64 = 0.6;

#[tokio::test(flavor = "multi_thread")]
async fn three_servers_do_as_much_in_a_second_of_cores_as_one() {
    let Some(lab) = Lab::open("spread-1") else { return };
    let one = operations_by_cores(&lab, 1).await;
    drop(lab);
    let Some(lab) = Lab::open("spread-3") else { return };
    let three = operations_by_cores(&lab, 3).await;
    for ((workload, one), three) in WORKLOADS.iter().zip(&one).zip(&three) {
        let kept = three / one;
        let missed = if kept < GOAL { ", missed" } else { "" };
        lab.note(&format!(
            "{workload}: one server {one:.0}, three {three:.0} a second of cores: {kept:.2} (goal {GOAL}{missed})"
        ));
    }
    for (one, three) in one.iter().zip(&three) {
        assert!(*three >= LEAST * one, "{three:.0}, and {one:.0} with one server");
    }
}

/// Runs the workloads; of each the operations in a second of the region servers' cores.
async fn operations_by_cores(lab: &Lab, count: usize) -> Vec<f64> {
    let _master = lab.basalt("master", "master");
    let pieces: Vec<Piece> = (0..count).map(|n| lab.basalt(&format!("server-{n}"), "regionserver")).collect();
    let connection = lab.connect();
    until("all servers are in the cluster", async || servers(&connection).await.len() == count).await;
    let table = TableName::parse("usertable").expect("a name");
    let descriptor = TableDescriptor::new(table.clone(), [FamilyDescriptor::new("family")]);
    // Keys are "user" and a number of many digits.
    let splits: Vec<Bytes> = (2..=9).map(|digit| Bytes::from(format!("user{digit}"))).collect();
    connection.admin().create_table(&descriptor, &splits).await.expect("made");
    until("each server has regions of it", async || {
        let places = regions(&connection, &table).await;
        places.iter().map(|at| &at.server).collect::<BTreeSet<_>>().len() == count
    })
    .await;
    let clients = count * CLIENTS_OF_A_SERVER;
    ycsb(lab, "load", WORKLOADS[0], clients);
    // What is not measured warms the servers.
    ycsb(lab, "run", WORKLOADS[2], clients);
    let cores = || pieces.iter().map(Piece::cpu_time).sum::<Duration>();
    let mut rates = Vec::new();
    for workload in WORKLOADS {
        let before = cores();
        ycsb(lab, "run", workload, clients);
        rates.push(OPERATIONS as f64 / (cores() - before).as_secs_f64());
    }
    rates
}

/// Runs one of YCSB's phases to its end.
fn ycsb(lab: &Lab, phase: &str, workload: &str, clients: usize) {
    let mut command = lab.command("ycsb");
    command.args(["ycsb", phase, "-P", workload, "-threads", &clients.to_string(), "-p", "columnfamily=family"]);
    command.args(["-p", &format!("recordcount={RECORDS}"), "-p", &format!("operationcount={OPERATIONS}")]);
    let output = command.output().expect("started");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{workload}: {said}{}", String::from_utf8_lossy(&output.stderr));
    let failed = said.lines().find(|line| line.contains("Return=ERROR") || line.contains("-FAILED]"));
    assert_eq!(failed, None, "{workload}");
}
