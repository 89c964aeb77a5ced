//! How long what a killed region server had is away where three are left, below a master of ours, with a session of ten seconds. `cargo xtask cluster
//! lost`; it prints what it saw.
#![cfg(all(feature = "hdfs", feature = "zookeeper"))]
#![allow(clippy::disallowed_methods, reason = "tests of a process work on real processes, and measure them")]

use crate::joined::cluster::{Cluster, Loss};
use crate::joined::lab::{Lab, Piece, regions, servers, until};
use bytes::Bytes;
use model::{FamilyDescriptor, ServerName, TableDescriptor, TableName};
use std::time::Duration;

const SESSION: Duration = Duration::from_secs(10);
const TOLD: &[(&str, &str)] = &[("zookeeper.session.timeout", "10000")];
const SERVERS: usize = 4;
/// What is done beside waiting for the session's end and for leases, and what hbase:meta may add to it.
const WORK: Duration = Duration::from_secs(3);
const WORK_FOR_META: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_servers_regions_serve_three_seconds_after_its_session_and_leases() {
    let Some(lab) = Lab::open_told("lost", TOLD) else { return };
    let master = lab.basalt("master", "master");
    let mut pieces: Vec<Option<Piece>> =
        (0..SERVERS).map(|n| Some(lab.basalt(&format!("server-{n}"), "regionserver"))).collect();
    let connection = lab.connect();
    until("the servers are in the cluster", async || servers(&connection).await.len() == SERVERS).await;
    let mut cluster = Cluster { lab, connection, table: TableName::parse("t").expect("a name"), rows: 0 };
    let descriptor = TableDescriptor::new(cluster.table.clone(), [FamilyDescriptor::new("f")]);
    let splits: Vec<Bytes> = (1..8).map(|n| Bytes::from(vec![b'a' + n])).collect();
    cluster.connection.admin().create_table(&descriptor, &splits).await.expect("made");
    let mut names = Vec::new();
    for piece in pieces.iter().flatten() {
        names.push(cluster.name_of(piece).await);
    }
    for (n, has_meta) in [(0, false), (1, true), (2, false), (3, true)] {
        gather(&mut cluster, &names, n, has_meta).await;
        cluster.put(800).await;
        let piece = pieces[n].take().expect("it runs");
        let waited_before = waits_for_leases(&master).len();
        let took = cluster.lose(piece, &names[n], Loss::Killed).await;
        let leases = waits_for_leases(&master).split_off(waited_before).into_iter().sum::<Duration>();
        let work = took.saturating_sub(SESSION + leases);
        cluster.lab.note(&format!("of it {leases:.2?} for leases; {work:.2?} beside these and the session"));
        let most = if has_meta { WORK + WORK_FOR_META } else { WORK };
        assert!(took <= SESSION + leases + most, "{took:.2?}, of it {leases:.2?} for leases");
        cluster.expect_rows().await;
        let again = cluster.lab.basalt(&format!("server-{n}"), "regionserver");
        names[n] = cluster.name_of(&again).await;
        pieces[n] = Some(again);
    }
}

/// Moves all regions of the table to one server, and hbase:meta there or away from it.
async fn gather(cluster: &mut Cluster, names: &[ServerName], to: usize, has_meta: bool) {
    for at in regions(&cluster.connection, &cluster.table).await {
        if at.server != names[to] {
            cluster.move_to(&at.region, &names[to]).await;
        }
    }
    let meta_to = if has_meta { to } else { (to + 1) % names.len() };
    if !cluster.meta_is_on(&names[meta_to]).await {
        cluster.move_meta_to(&names[meta_to]).await;
    }
}

/// How long the master has waited for the leases of each server's logs.
fn waits_for_leases(master: &Piece) -> Vec<Duration> {
    let said = master.said();
    let recovered = said.lines().filter(|line| line.contains("recovered the leases of the WAL files of "));
    let after = recovered.filter_map(|line| line.rsplit_once(" after "));
    let ms = after.filter_map(|(_, ms)| ms.split(' ').next()?.parse().ok());
    ms.map(Duration::from_millis).collect()
}
