//! Read replicas between servers of ours and of HBase's, below a master of either kind: what is written to a primary of one kind is seen on a
//! replica of the other before it is in files, and reads of replicas go on while a primary's server is dead. Needs HDFS, ZooKeeper and
//! HBase's jars: `cargo xtask cluster replicas`.
#![cfg(all(feature = "hdfs", feature = "zookeeper"))]
#![allow(clippy::disallowed_methods, reason = "tests of a process work on real processes")]

use crate::joined::cluster::{Cluster, row};
use crate::joined::lab::{Lab, Piece, server, servers, until};
use bytes::Bytes;
use client::{Put, RegionLocation};
use model::{FamilyDescriptor, Get, ServerName, TableDescriptor, TableName};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const REGIONS: u32 = 8;
/// What a replica hears of takes no longer, on two busy cores.
const SECONDS: Duration = Duration::from_secs(10);

fn table() -> TableName {
    TableName::parse("t").expect("a name")
}

fn described() -> TableDescriptor {
    let mut table = TableDescriptor::new(table(), [FamilyDescriptor::new("f")]);
    table.attributes.insert("REGION_REPLICATION".into(), "2".into());
    table
}

impl Cluster {
    /// Writes a value into a row of each region.
    async fn put_everywhere(&self, value: &str) {
        let table = self.connection.table(&self.table);
        for n in 0..REGIONS {
            let put = Put::new(row(n)).add("f", "q", value);
            table.put(&put.build()).await.unwrap_or_else(|error| panic!("row {n}: {error}"));
        }
    }

    /// What the replica of a region shows; `None` where it does not answer.
    async fn on_replica(&self, n: u32) -> Option<Bytes> {
        let get = Get { timeline: true, ..Get::new(row(n)) };
        let found = self.connection.table(&self.table).get_from_replica(&get, 1).await.ok()?;
        assert!(found.is_stale(), "a replica says that it is one");
        found.value(b"f", b"q").map(Bytes::copy_from_slice)
    }

    /// Waits until every replica shows it; how long that took.
    async fn shown_everywhere(&self, value: &str) -> Duration {
        let began = Instant::now();
        for n in 0..REGIONS {
            until(&format!("the replica of region {n} shows {value}"), async || {
                self.on_replica(n).await.as_deref() == Some(value.as_bytes())
            })
            .await;
        }
        began.elapsed()
    }

    /// Where each region and its replica are.
    async fn places(&self) -> Vec<Vec<RegionLocation>> {
        let table = self.connection.table(&self.table);
        let mut places = Vec::new();
        for n in 0..REGIONS {
            places.push(table.replicas_of(row(n).as_bytes(), true).await.unwrap_or_default());
        }
        places
    }

    /// Whether each region has its replica on another server.
    async fn are_apart(&self) -> bool {
        self.places().await.iter().all(|replicas| {
            let on: BTreeSet<&ServerName> = replicas.iter().map(|at| &at.server).collect();
            replicas.len() == 2 && on.len() == 2
        })
    }

    /// The numbers of the regions whose primary is on that server.
    async fn primaries_on(&self, name: &ServerName) -> Vec<u32> {
        let places = self.places().await;
        let on = |n: &u32| places[*n as usize].first().is_some_and(|primary| primary.server == *name);
        (0..REGIONS).filter(on).collect()
    }

    /// Kills a server: replicas whose primaries it had go on answering, and then everything is served again, with all that was acknowledged.
    async fn lose_primaries(&self, piece: Piece, name: &ServerName, value: &str) {
        let lost = self.primaries_on(name).await;
        assert!(!lost.is_empty(), "it has primaries");
        piece.kill();
        let began = Instant::now();
        let mut answers = 0;
        let table = self.connection.table(&self.table);
        // Until the primaries are elsewhere, reads of replicas are answered.
        while began.elapsed() < Duration::from_secs(3) {
            for n in &lost {
                let shown = self.on_replica(*n).await;
                assert_eq!(shown.as_deref(), Some(value.as_bytes()), "the replica of region {n}, its primary dead");
                answers += 1;
            }
        }
        for n in 0..REGIONS {
            until(&format!("region {n} is served"), async || {
                let found = table.get(&Get::new(row(n))).await;
                found.is_ok_and(|found| found.value(b"f", b"q") == Some(value.as_bytes()))
            })
            .await;
        }
        self.lab.note(&format!(
            "kill -9 of a server with {} primaries: {answers} reads of their replicas meanwhile, all served after {:.1?}",
            lost.len(),
            began.elapsed()
        ));
    }
}

async fn live(lab: Lab, java_leads: bool) {
    let master = if java_leads { lab.master() } else { lab.basalt("master", "master") };
    if !java_leads {
        until("a master is active", async || master.said().contains("is the active master")).await;
    }
    let (java, basalt) = (lab.java_server(), lab.basalt_server());
    let connection = lab.connect();
    until("two servers are in the cluster", async || servers(&connection).await.len() == 2).await;
    let cluster = Cluster { lab, connection, table: table(), rows: 0 };
    let ours = cluster.name_of(&basalt).await;
    let theirs = server(&cluster.connection, |name| *name != ours).await.expect("the other");
    let splits: Vec<Bytes> = (1..8).map(|n| Bytes::from(vec![b'a' + n])).collect();
    let began = Instant::now();
    cluster.connection.admin().create_table(&described(), &splits).await.expect("made");
    until("replicas are apart", async || cluster.are_apart().await).await;
    let counts = [cluster.primaries_on(&theirs).await.len(), cluster.primaries_on(&ours).await.len()];
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    cluster.put_everywhere("v1").await;
    cluster.shown_everywhere("v1").await;
    cluster.lab.note(&format!(
        "a table with replicas ({} primaries on Java, {} on Basalt), written to and shown by all replicas after {:.1?}",
        counts[0],
        counts[1],
        began.elapsed()
    ));
    let mut slowest = Duration::ZERO;
    for n in 2..7 {
        let value = format!("v{n}");
        cluster.put_everywhere(&value).await;
        slowest = slowest.max(cluster.shown_everywhere(&value).await);
    }
    cluster.lab.note(&format!("five rounds more, each shown by all replicas within {slowest:.2?}"));
    assert!(slowest < SECONDS, "{slowest:.2?}");
    cluster.connection.admin().flush(&cluster.table).await.expect("flushed");
    cluster.put_everywhere("v7").await;
    let took = cluster.shown_everywhere("v7").await;
    assert!(took < SECONDS, "after a flush: {took:.2?}");

    cluster.lose_primaries(basalt, &ours, "v7").await;
    cluster.put_everywhere("v8").await;
    let took = cluster.shown_everywhere("v8").await;
    cluster.lab.note(&format!("all are on Java; what is written is shown by all replicas after {took:.2?}"));
    let basalt = cluster.lab.basalt("basalt-again", "regionserver");
    let ours = cluster.name_of(&basalt).await;
    part(&cluster, &ours).await;
    cluster.put_everywhere("v9").await;
    let took = cluster.shown_everywhere("v9").await;
    assert!(took < SECONDS, "replicas that have moved: {took:.2?}");
    cluster.lab.note(&format!("Basalt is back and has half of them; shown after {took:.2?}"));

    cluster.lose_primaries(java, &theirs, "v9").await;
    cluster.put_everywhere("v10").await;
    let took = cluster.shown_everywhere("v10").await;
    cluster.lab.note(&format!("all are on Basalt; what is written is shown by all replicas after {took:.2?}"));
    drop((master, basalt));
}

/// Moves the primaries of half of the regions and the replicas of the others to a server that has come.
async fn part(cluster: &Cluster, to: &ServerName) {
    let admin = cluster.connection.admin();
    for (n, replicas) in cluster.places().await.iter().enumerate() {
        let at = &replicas[n % 2];
        let name = Bytes::copy_from_slice(at.region.encoded_name().as_bytes());
        admin.move_region(&name, Some(to)).await.expect("the master moves it");
    }
    until("replicas are apart", async || cluster.are_apart().await).await;
    assert!(!cluster.primaries_on(to).await.is_empty(), "it has primaries");
}

#[tokio::test(flavor = "multi_thread")]
async fn they_hear_of_each_other_below_apaches_master() {
    let Some(lab) = Lab::open_told("replicas-java", TOLD) else { return };
    live(lab, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn they_hear_of_each_other_below_our_master() {
    let Some(lab) = Lab::open_told("replicas-own", TOLD) else { return };
    live(lab, false).await;
}

const TOLD: &[(&str, &str)] = &[("hbase.region.replica.replication.enabled", "true")];
