//! How long clients wait while servers, hbase:meta and the master are away, as HBase's own program measures it.

use super::hosts::{Does, Hosts};
use super::program::{Jars, Program, ends_well};
use crate::joined::lab::{Lab, servers, until};

/// HBase's program kills the server of its table, that of hbase:meta and the master, and moves regions, ten times each, while it puts, scans, asks the
/// master and writes 75 MB beside; what fails for good fails it.
#[tokio::test(flavor = "multi_thread")]
async fn hbases_client_waits_out_kills_and_moves() {
    let Some(lab) = Lab::open("integration-mttr") else { return };
    let hosts = Hosts::new(&lab, &[("dfs.replication", "1")]);
    hosts.start("127.0.2.1", "127.0.2.1", Does::Master);
    let of_servers = ["127.0.2.2", "127.0.2.3", "127.0.2.4"];
    of_servers.iter().for_each(|host| hosts.start(host, host, Does::RegionServer));
    let connection = lab.connect();
    until("three servers are in the cluster", async || servers(&connection).await.len() == 3).await;
    let class = "org.apache.hadoop.hbase.mttr.IntegrationTestMTTR";
    let program = Program::new(Jars::OfTheTests, "org.junit.runner.JUnitCore")
        .words(&[class])
        .with_all(hosts.managed())
        .with("hbase.IntegrationTestMTTR.sleeptime", 1000)
        // Or it would not kill the server of hbase:meta.
        .with("hbase.balancer.tablesOnMaster", "none");
    let Some(program) = program.start(&lab) else { return };
    let said = ends_well(program, async || {}).await;
    let results: Vec<&str> = said.lines().filter_map(|line| line.split_once("MTTRResults{")).map(|(_, told)| told).collect();
    results.iter().for_each(|told| lab.note(told));
    assert_eq!(results.len(), 5, "not all of it was measured");
}
