//! HBase's own integration tests of administration, by its client, against a cluster of ours: `cargo xtask cluster integration`. They take
//! minutes. The jar is that of 2.4.8, on the client of 2.6.4: later ones make names of namespaces that HBase does not take.
#![cfg(all(feature = "hdfs", feature = "zookeeper"))]
#![allow(clippy::disallowed_methods, reason = "tests of a process work on real processes")]

use crate::joined::lab::{Lab, Piece, servers, until};
use std::time::{Duration, Instant};

const PACKAGE: &str = "org.apache.hadoop.hbase";
/// No program takes longer.
const AT_MOST: Duration = Duration::from_secs(900);
/// Threads of the administrators, regions of their tables, and how long they go on.
const THREADS: u64 = 6;
const REGIONS: u64 = 12;
const MINUTES: u64 = 3;

/// A program of HBase's, by the name of its class.
struct Program {
    class: &'static str,
    options: Vec<String>,
}

impl Program {
    fn new(class: &'static str) -> Program {
        Program { class, options: Vec::new() }
    }

    fn with(mut self, key: &str, value: impl ToString) -> Program {
        self.options.push(format!("-D{key}={}", value.to_string()));
        self
    }

    /// Starts it; `None`, with a line, where its jars are not there.
    fn start(&self, lab: &Lab) -> Option<Piece> {
        let Ok(jars) = std::env::var("BASALT_TEST_HBASE_TOOLS") else {
            println!("skipped: BASALT_TEST_HBASE_TOOLS is not set; `cargo xtask cluster integration` sets it");
            return None;
        };
        // They harm nobody: who is killed says the test.
        let words = self.options.iter().map(String::as_str).chain(["-m", "calm"]).collect::<Vec<_>>();
        let class = format!("{PACKAGE}.{}", self.class);
        let name = self.class.rsplit('.').next().unwrap_or_default();
        Some(lab.java_tool(name, "512m", (&jars, &class), &words))
    }
}

/// Waits until it has ended, and calls `meanwhile` again and again.
async fn ends_well(mut program: Piece, mut meanwhile: impl AsyncFnMut()) {
    let began = Instant::now();
    let status = loop {
        if let Some(status) = program.has_ended_with() {
            break status;
        }
        assert!(began.elapsed() < AT_MOST, "not done after {} s", AT_MOST.as_secs());
        meanwhile().await;
        // A process that ends wakes nobody here.
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let said = program.said();
    let last: Vec<&str> = said.lines().rev().take(40).collect();
    assert!(status.success(), "it failed; its last lines, newest first:\n{}", last.join("\n"));
}

/// Administrators make, change, disable, enable and delete namespaces, tables and families side by side, and look whether the cluster is what they
/// made of it; each minute the master that leads is killed.
#[tokio::test(flavor = "multi_thread")]
async fn hbases_administrators_find_what_they_made_though_masters_are_killed() {
    let Some(lab) = Lab::open("integration-ddl") else { return };
    let mut masters = 0;
    let mut start_master = || {
        masters += 1;
        lab.basalt(&format!("master-{masters}"), "master")
    };
    let (first, second) = (start_master(), start_master());
    let _servers = [1, 2, 3].map(|n| lab.basalt(&format!("server-{n}"), "regionserver"));
    let connection = lab.connect();
    until("three servers are in the cluster", async || servers(&connection).await.len() == 3).await;
    let class = "IntegrationTestDDLMasterFailover";
    let program = Program::new(class)
        .with(&format!("hbase.{class}.runtime"), MINUTES * 60_000)
        .with(&format!("hbase.{class}.numThreads"), THREADS)
        .with(&format!("hbase.{class}.numRegions"), REGIONS);
    let Some(program) = program.start(&lab) else { return };
    let (mut pieces, mut killed, mut last) = (vec![first, second], 0, Instant::now());
    ends_well(program, async || {
        if last.elapsed() < Duration::from_secs(60) || killed + 1 >= MINUTES {
            return;
        }
        let leads = |piece: &Piece| piece.said().contains("is the active master");
        let at = pieces.iter().rposition(leads).expect("one leads");
        pieces.remove(at).kill();
        killed += 1;
        lab.note(&format!("the master that leads is killed, {killed}"));
        pieces.push(start_master());
        last = Instant::now();
    })
    .await;
    lab.note(&format!("HBase's administrators are content; {killed} masters were killed"));
    assert!(killed > 0, "no master was killed");
}
