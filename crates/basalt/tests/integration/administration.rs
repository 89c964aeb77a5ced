//! Administration by HBase's own client, by many at once.

use super::program::{Jars, Program, ends_well};
use crate::joined::lab::{Lab, Piece, servers, until};
use std::time::{Duration, Instant};

/// Threads of the administrators, regions of their tables, and how long they go on.
const THREADS: u64 = 6;
const REGIONS: u64 = 12;
const MINUTES: u64 = 3;

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
    let program = Program::new(Jars::Newest, "org.apache.hadoop.hbase.IntegrationTestDDLMasterFailover")
        .with("hbase.test.cluster.distributed", true)
        .with("hbase.IntegrationTestDDLMasterFailover.runtime", MINUTES * 60_000)
        .with("hbase.IntegrationTestDDLMasterFailover.numThreads", THREADS)
        .with("hbase.IntegrationTestDDLMasterFailover.numRegions", REGIONS)
        // It harms nobody: who is killed says the test.
        .words(&["-m", "calm"]);
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
