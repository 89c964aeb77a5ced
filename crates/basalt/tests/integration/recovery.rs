//! How long clients wait while servers, hbase:meta and the master are away, as HBase's own program measures it.

use super::hosts::{Does, Hosts};
use super::program::{Jars, Program, last_of};
use crate::joined::lab::{Lab, servers, until};
use std::time::{Duration, Instant};

/// It does each of its five things ten times, and writes 15,000 rows cell by cell beside each: two hours where processors are few and busy. It is
/// left alone for so many minutes, or `BASALT_MTTR_MINUTES`; what it has not come to then is not asked of it.
const MINUTES: u64 = 15;
/// What it does in that time at least, however slow all is.
const ACTIONS: usize = 3;

/// HBase's program kills the server of hbase:meta, that of its table and the master, and moves regions, while it puts, scans, asks the master and
/// loads a table beside; a call that fails for good fails it.
#[tokio::test(flavor = "multi_thread")]
async fn hbases_client_waits_out_kills_and_moves() {
    let Some(lab) = Lab::open("integration-mttr") else { return };
    // As fast as HBase is by default, and no more on the disk than need be.
    let hosts = Hosts::new(&lab, &[("hbase.wal.hsync", "false"), ("dfs.replication", "1")]);
    hosts.start("127.0.2.1", "127.0.2.1", Does::Master);
    let of_servers = ["127.0.2.2", "127.0.2.3", "127.0.2.4"];
    of_servers.iter().for_each(|host| hosts.start(host, host, Does::RegionServer));
    let connection = lab.connect();
    until("three servers are in the cluster", async || servers(&connection).await.len() == 3).await;
    let program = Program::new(Jars::OfTheTests, "org.junit.runner.JUnitCore")
        .named("IntegrationTestMTTR")
        .words(&["org.apache.hadoop.hbase.mttr.IntegrationTestMTTR"])
        .with_all(hosts.managed())
        .with("hbase.IntegrationTestMTTR.sleeptime", 1000)
        // Or it would not kill the server of hbase:meta.
        .with("hbase.balancer.tablesOnMaster", "none");
    let Some(mut program) = program.start(&lab) else { return };
    let minutes = std::env::var("BASALT_MTTR_MINUTES").map_or(MINUTES, |text| text.parse().expect("minutes"));
    let (began, at_most) = (Instant::now(), Duration::from_secs(60 * minutes));
    let ended = loop {
        if let Some(status) = program.has_ended_with() {
            break Some(status);
        }
        if began.elapsed() > at_most {
            break None;
        }
        // A process that ends wakes nobody here.
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let said = program.said();
    let found = |what: &str| said.lines().filter(|line| line.contains(what)).count();
    let results = said.lines().filter_map(|line| line.split_once("MTTRResults{"));
    let results = results.inspect(|(_, times)| lab.note(times)).count();
    // "Performing action" is said of kills and of moves.
    let actions = found("Performing action: ");
    let (kills, master) = (found(" Killed regionserver "), found(" Killed master "));
    lab.note(&format!("{actions} actions, {kills} kills of region servers, {master} of the master; ended: {ended:?}"));
    // JUnit goes on with its next test behind one that has failed.
    assert_eq!(found(" failed after "), 0, "it failed; its last lines, newest first:\n{}", last_of(&said));
    match ended {
        Some(status) => assert!(status.success() && results == 5, "{status}, {results} results: {}", last_of(&said)),
        None => assert!(actions >= ACTIONS, "only {actions} actions: {}", last_of(&said)),
    }
    if ended.is_none() {
        program.kill();
    }
    until("three servers are in the cluster at last", async || servers(&connection).await.len() == 3).await;
}
