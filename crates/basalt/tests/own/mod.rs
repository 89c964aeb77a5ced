//! A cluster of ours: two masters and two region servers on a real HDFS and ZooKeeper, killed one after the other; then a region server of
//! HBase's below our master. Needs HDFS, ZooKeeper and HBase's jars: `cargo xtask cluster own`.
#![cfg(all(feature = "hdfs", feature = "zookeeper"))]
#![allow(clippy::disallowed_methods, reason = "tests of a process work on real processes")]

use crate::joined::cluster::{Cluster, row};
use crate::joined::lab::{LIMIT, Lab, Piece, regions, server, servers, until};
use bytes::Bytes;
use model::{FamilyDescriptor, Get, ServerName, TableDescriptor, TableName};
use std::time::{Duration, Instant};

impl Cluster {
    /// A row of each region is read: all are served.
    async fn all_served(&self) -> bool {
        let table = self.connection.table(&self.table);
        for n in 0..8 {
            if table.get(&Get::new(row(n))).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Makes a table and takes it away; answers how long that took.
    async fn ddl(&self, name: &str) -> Duration {
        let began = Instant::now();
        let table = TableName::parse(name).expect("a name");
        let descriptor = TableDescriptor::new(table.clone(), [FamilyDescriptor::new("f")]);
        let admin = self.connection.admin();
        admin.create_table(&descriptor, &[]).await.expect("made");
        admin.disable_table(&table).await.expect("disabled");
        admin.delete_table(&table).await.expect("deleted");
        began.elapsed()
    }

    /// Kills a region server; answers how long it took until all regions were served again.
    async fn lose(&self, piece: Piece, name: &ServerName) -> Duration {
        let had_meta = self.meta_is_on(name).await;
        let regions = self.regions_of(name).await.len();
        piece.kill();
        let began = Instant::now();
        until("all regions are served", async || self.all_served().await).await;
        let took = began.elapsed();
        let meta = if had_meta { " and hbase:meta" } else { "" };
        self.lab.note(&format!("kill -9 of a server with {regions} regions{meta}: all served after {took:.2?}"));
        took
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_our_own_outlives_its_servers_and_masters() {
    let Some(lab) = Lab::open("own") else { return };
    let active = lab.basalt("master-1", "master");
    until("a master is active", async || active.said().contains("is the active master")).await;
    let backup = lab.basalt("master-2", "master");
    let (first, second) = (lab.basalt("server-1", "regionserver"), lab.basalt("server-2", "regionserver"));
    let connection = lab.connect();
    until("two servers are in the cluster", async || servers(&connection).await.len() == 2).await;
    until("the other waits", async || backup.said().contains("waits as a backup")).await;
    lab.note("two servers are let in, a backup waits");
    let mut cluster = Cluster { lab, connection, table: TableName::parse("t").expect("a name"), rows: 0 };
    use_it(&mut cluster).await;

    let names = [cluster.name_of(&first).await, cluster.name_of(&second).await];
    let second = lose_a_server(&mut cluster, second, &names[1], "server-2").await;
    let first = lose_a_server(&mut cluster, first, &names[0], "server-1").await;
    lose_the_master(&mut cluster, active, &backup).await;
    let third = cluster.lab.basalt("master-3", "master");
    let java = java_below_ours(&mut cluster).await;
    let stopped = cluster.lab.command("stop").args(["master", "stop"]).status().expect("ran");
    assert!(stopped.success());
    for piece in [backup, first, second] {
        assert!(piece.ended_well(), "the cluster goes down");
    }
    drop((java, third));
    cluster.lab.note("the cluster has gone down in order");
}

async fn use_it(cluster: &mut Cluster) {
    let descriptor = TableDescriptor::new(cluster.table.clone(), [FamilyDescriptor::new("f")]);
    let splits: Vec<Bytes> = (1..8).map(|n| Bytes::from(vec![b'a' + n])).collect();
    cluster.connection.admin().create_table(&descriptor, &splits).await.expect("made");
    cluster.put(400).await;
    cluster.expect_rows().await;
    cluster.lab.note("a table of eight regions, 400 rows written and read");
    let places = regions(&cluster.connection, &cluster.table).await;
    let region = places.first().expect("eight").clone();
    let other = servers(&cluster.connection).await.into_iter().find(|name| *name != region.server).expect("two");
    cluster.move_to(&region.region, &other).await;
    let row = Bytes::from([&region.region.start_key[..], b"00100"].concat());
    let admin = cluster.connection.admin();
    admin.split_region(region.region.name(), Some(&row)).await.expect("the master splits it");
    until("there are nine regions", async || regions(&cluster.connection, &cluster.table).await.len() == 9).await;
    admin.flush(&cluster.table).await.expect("flushed");
    admin.major_compact(&cluster.table).await.expect("compacting");
    admin.snapshot("s", &cluster.table).await.expect("a snapshot");
    cluster.put(80).await;
    cluster.expect_rows().await;
    cluster.lab.note("a region moved and split; flushed, compacted, a snapshot taken");
}

/// Answers the process that takes its place.
async fn lose_a_server(cluster: &mut Cluster, piece: Piece, name: &ServerName, log: &str) -> Piece {
    cluster.put(160).await;
    let took = cluster.lose(piece, name).await;
    assert!(took < LIMIT);
    cluster.expect_rows().await;
    cluster.put(80).await;
    cluster.expect_rows().await;
    let piece = cluster.lab.basalt(log, "regionserver");
    let back = cluster.name_of(&piece).await;
    let all = regions(&cluster.connection, &cluster.table).await;
    for at in all.iter().take(4) {
        cluster.move_to(&at.region, &back).await;
    }
    cluster.expect_rows().await;
    cluster.lab.note("every row is there; the server is back and has regions");
    piece
}

async fn lose_the_master(cluster: &mut Cluster, active: Piece, backup: &Piece) {
    let before = regions(&cluster.connection, &cluster.table).await;
    active.kill();
    let began = Instant::now();
    let mut slowest = Duration::ZERO;
    until("the backup is active", async || {
        slowest = slowest.max(cluster.put(10).await);
        backup.said().contains(" is ready.")
    })
    .await;
    cluster.lab.note(&format!(
        "kill -9 of the active master: another is ready after {:.2?}, slowest put {slowest:.2?}",
        began.elapsed()
    ));
    cluster.ddl("other").await;
    cluster.lab.note(&format!("a table was made and dropped {:.2?} after the kill", began.elapsed()));
    let after = regions(&cluster.connection, &cluster.table).await;
    let places = |all: &[client::RegionLocation]| -> Vec<(Bytes, ServerName)> {
        all.iter().map(|at| (at.region.name().clone(), at.server.clone())).collect()
    };
    assert_eq!(places(&before), places(&after), "no region has moved");
    cluster.expect_rows().await;
}

async fn java_below_ours(cluster: &mut Cluster) -> Piece {
    let known = servers(&cluster.connection).await;
    let piece = cluster.lab.java_server();
    until("HBase's server is in the cluster", async || servers(&cluster.connection).await.len() == 3).await;
    let java = server(&cluster.connection, |name| !known.contains(name)).await.expect("it is there");
    cluster.lab.note("a region server of HBase's is let in");
    let all = regions(&cluster.connection, &cluster.table).await;
    for at in all.iter().filter(|at| at.server != java).take(3) {
        cluster.move_to(&at.region, &java).await;
    }
    cluster.put(160).await;
    cluster.expect_rows().await;
    cluster.lab.note("it has three regions; rows are written and read through all");
    cluster.lose(piece, &java).await;
    cluster.expect_rows().await;
    cluster.put(80).await;
    let piece = cluster.lab.java_server();
    until("HBase's server is back", async || servers(&cluster.connection).await.len() == 3).await;
    cluster.ddl("third").await;
    cluster.lab.note("every row is there; it is back");
    piece
}
