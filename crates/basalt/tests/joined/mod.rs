//! A region server of ours in a cluster that HBase's own HMaster leads, beside one of HBase's. Needs HDFS, ZooKeeper and HBase's jars:
//! `cargo xtask cluster join`.
#![cfg(all(feature = "hdfs", feature = "zookeeper"))]
#![allow(clippy::disallowed_methods, reason = "tests of a process work on real processes")]

pub mod cluster;
pub mod lab;

use bytes::Bytes;
use cluster::Cluster;
use lab::{Lab, Piece, regions, server, servers, until};
use model::{FamilyDescriptor, ServerName, TableDescriptor, TableName};

impl Cluster {
    /// All regions of the table are on that server.
    async fn all_on(&self, to: &ServerName, count: usize) {
        until(&format!("all regions are on {to}"), async || self.regions_of(to).await.len() == count).await;
    }
}

/// The whole life of a member: let in, orders of every kind, killed, back, the other one killed, an orderly stop.
#[tokio::test(flavor = "multi_thread")]
async fn a_region_server_serves_below_apaches_master() {
    // With a WAL directory: whoever splits finds the other's logs there, and puts edits where the other looks for them.
    let Some(lab) = Lab::open_with_wal_dir("join") else { return };
    let master = lab.master();
    let java_piece = lab.java_server();
    let basalt_piece = lab.basalt_server();
    let connection = lab.connect();
    until("two servers are in the cluster", async || servers(&connection).await.len() == 2).await;
    lab.note("HMaster has let in both");
    let own = basalt_piece.said();
    let is_basalt = |name: &ServerName| own.contains(&name.to_string());
    let basalt = server(&connection, is_basalt).await.expect("ours is in the cluster");
    let java = server(&connection, |name| !is_basalt(name)).await.expect("the other is");

    let table = TableName::parse("t").expect("a name");
    let mut cluster = Cluster { lab, connection, table, rows: 0 };
    create_table(&mut cluster, [&java, &basalt]).await;
    move_split_and_tidy(&mut cluster, [&java, &basalt]).await;
    let basalt_piece = lose_basalt(&mut cluster, basalt_piece, &java).await;
    let back = cluster.name_of(&basalt_piece).await;
    let java_piece = lose_java(&mut cluster, java_piece, &java, &back).await;
    let java = other_server(&cluster, &back).await;
    stop_in_order(&mut cluster, basalt_piece, &java).await;
    drop((java_piece, master));
}

async fn other_server(cluster: &Cluster, than: &ServerName) -> ServerName {
    let found = std::sync::Mutex::new(None);
    until("the other server is in the cluster", async || {
        let name = server(&cluster.connection, |name| name != than).await;
        let is_there = name.is_some();
        *found.lock().expect("whole") = name;
        is_there
    })
    .await;
    found.into_inner().expect("whole").expect("found")
}

async fn create_table(cluster: &mut Cluster, [java, basalt]: [&ServerName; 2]) {
    let descriptor = TableDescriptor::new(cluster.table.clone(), [FamilyDescriptor::new("f")]);
    let splits: Vec<Bytes> = (1..8).map(|n| Bytes::from(vec![b'a' + n])).collect();
    cluster.connection.admin().create_table(&descriptor, &splits).await.expect("made");
    let counts = [cluster.regions_of(java).await.len(), cluster.regions_of(basalt).await.len()];
    cluster.lab.note(&format!("a table: {} regions on Java, {} on Basalt", counts[0], counts[1]));
    assert!(counts.iter().all(|count| *count > 0) && counts.iter().sum::<usize>() == 8, "{counts:?}");
    cluster.put(400).await;
    cluster.expect_rows().await;
    cluster.lab.note("400 rows written and read through both");
}

async fn move_split_and_tidy(cluster: &mut Cluster, [java, basalt]: [&ServerName; 2]) {
    let to_basalt = cluster.regions_of(java).await.remove(0);
    let to_java = cluster.regions_of(basalt).await.remove(0);
    cluster.move_to(&to_basalt, basalt).await;
    cluster.move_to(&to_java, java).await;
    cluster.put(80).await;
    cluster.expect_rows().await;
    cluster.lab.note("a region moved each way");

    let admin = cluster.connection.admin();
    let parent = cluster.regions_of(basalt).await.remove(0);
    let row = Bytes::from([&parent.start_key[..], b"00100"].concat());
    admin.split_region(parent.name(), Some(&row)).await.expect("the master splits it");
    until("there are nine regions", async || regions(&cluster.connection, &cluster.table).await.len() == 9).await;
    cluster.expect_rows().await;
    cluster.lab.note("a region on Basalt split");

    admin.flush(&cluster.table).await.expect("flushed");
    admin.major_compact(&cluster.table).await.expect("compacting");
    admin.snapshot("s", &cluster.table).await.expect("a snapshot of regions on both");
    cluster.expect_rows().await;
    cluster.lab.note("flushed, compacted, a snapshot taken");
}

/// HMaster has our log split by its own server, which serves every row.
async fn lose_basalt(cluster: &mut Cluster, piece: Piece, java: &ServerName) -> Piece {
    cluster.put(160).await;
    piece.kill();
    cluster.lab.note("kill -9 of Basalt, with edits in its log alone");
    cluster.all_on(java, 9).await;
    cluster.expect_rows().await;
    cluster.lab.note("Java has every region and every row");
    let piece = cluster.lab.basalt_server();
    cluster.name_of(&piece).await;
    cluster.lab.note("Basalt is back");
    piece
}

/// The reverse: we split its logs, that of hbase:meta among them.
async fn lose_java(cluster: &mut Cluster, piece: Piece, java: &ServerName, basalt: &ServerName) -> Piece {
    let region = cluster.regions_of(java).await.remove(0);
    cluster.move_to(&region, basalt).await;
    cluster.put(160).await;
    piece.kill();
    cluster.lab.note("kill -9 of Java, with hbase:meta and edits in its log alone");
    cluster.all_on(basalt, 9).await;
    assert!(cluster.meta_is_on(basalt).await, "hbase:meta is on Basalt");
    cluster.expect_rows().await;
    cluster.put(80).await;
    cluster.lab.note("Basalt has every region, hbase:meta and every row, and takes more");
    let piece = cluster.lab.java_server();
    other_server(cluster, basalt).await;
    cluster.lab.note("Java is back");
    piece
}

async fn stop_in_order(cluster: &mut Cluster, piece: Piece, java: &ServerName) {
    cluster.put(80).await;
    assert!(piece.terminate(), "it ends well");
    cluster.lab.note("Basalt has stopped in order");
    cluster.all_on(java, 9).await;
    cluster.expect_rows().await;
    cluster.lab.note("Java has every region and every row");
}
