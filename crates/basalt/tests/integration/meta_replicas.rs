//! hbase:meta's read replicas help those who look for regions while hbase:meta and the master are away.

use super::hosts::{Does, Hosts};
use super::program::{Jars, Program, ends_well};
use crate::joined::lab::{Lab, servers, until};

/// HBase's program gives hbase:meta three replicas, stops the master and kills the server with hbase:meta, and writes and reads by what the other
/// replicas say; then it starts both again.
#[tokio::test(flavor = "multi_thread")]
async fn hbases_client_finds_its_region_by_replicas_of_meta() {
    let Some(lab) = Lab::open("integration-meta-replicas") else { return };
    let hosts = Hosts::new(&lab, &[("hbase.regionserver.storefile.refresh.period", "1000")]);
    hosts.start("127.0.1.1", "127.0.1.1", Does::Master);
    let of_servers = ["127.0.1.2", "127.0.1.3", "127.0.1.4"];
    of_servers.iter().for_each(|host| hosts.start(host, host, Does::RegionServer));
    let connection = lab.connect();
    until("three servers are in the cluster", async || servers(&connection).await.len() == 3).await;
    let before = servers(&connection).await;
    let master = connection.admin().active_master().await.expect("a master");
    let program =
        Program::new(Jars::OfTheTests, "org.apache.hadoop.hbase.IntegrationTestMetaReplicas").with_all(hosts.managed());
    let Some(program) = program.start(&lab) else { return };
    ends_well(program, async || {}).await;
    until("three servers are in the cluster again", async || servers(&connection).await.len() == 3).await;
    let after = servers(&connection).await;
    let killed: Vec<_> = before.iter().filter(|server| !after.contains(server)).collect();
    lab.note(&format!("HBase's client read by hbase:meta's replicas; killed: {killed:?}"));
    assert_eq!(killed.len(), 1, "of {before:?} there are {after:?}");
    assert_ne!(connection.admin().active_master().await.expect("a master"), master, "the master was not stopped");
}
