//! One cluster that masters of HBase's and of ours lead in turn: killed in the middle of changes of tables, and stopped in order. Needs HDFS,
//! ZooKeeper and HBase's jars: `cargo xtask cluster masters`; with `BASALT_HANDED_ROUNDS` more than one round.
#![cfg(all(feature = "hdfs", feature = "zookeeper"))]
#![allow(clippy::disallowed_methods, reason = "tests of a process work on real processes")]

use crate::joined::cluster::Cluster;
use crate::joined::lab::{Lab, Piece, regions, servers, until, until_within};
use bytes::Bytes;
use client::Connection;
use model::{FamilyDescriptor, ServerName, TableDescriptor, TableName};
use proto::pb::ProcedureState;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// How long after the first procedure was seen the master of each round is killed, in milliseconds.
const DELAYS_MS: [u64; 10] = [0, 400, 100, 900, 200, 1500, 50, 600, 300, 1200];

/// The same for our master, which is faster.
const OURS_DELAYS_MS: [u64; 10] = [30, 0, 60, 100, 15, 150, 80, 250, 45, 400];

/// A region server of HBase's may take so long to report what it has closed while no master led.
const LONGEST_REPORT: Duration = Duration::from_secs(270);

fn rounds() -> usize {
    std::env::var("BASALT_HANDED_ROUNDS").map_or(1, |text| text.parse().expect("a number of rounds"))
}

fn name(table: &str) -> TableName {
    TableName::parse(table).expect("a name")
}

/// Tables that are made for each round, to be changed in it.
const OF_A_ROUND: [&str; 4] = ["dropped", "emptied", "altered", "kept"];

/// Changes that HBase's master goes on with, however far ours was with them.
const GONE_ON_WITH: [&str; 4] = ["truncate", "snapshot", "namespace", "flush"];

fn snapshot_of(round: usize) -> String {
    format!("snapshot-{round}")
}

fn namespace_of(round: usize) -> String {
    format!("namespace_{round}")
}

/// A change that a client waits for, with what it is.
type Change = (&'static str, JoinHandle<client::Result<()>>);

/// Splits that make so many regions.
fn splits(regions: u8) -> Vec<Bytes> {
    (1..regions).map(|n| Bytes::from(vec![n])).collect()
}

async fn make(connection: &Connection, table: &str, regions: u8) {
    let descriptor = TableDescriptor::new(name(table), [FamilyDescriptor::new("f")]);
    connection
        .admin()
        .create_table(&descriptor, &splits(regions))
        .await
        .unwrap_or_else(|error| panic!("{table}: {error}"));
}

/// What clients ask for at once in this round.
async fn ask(cluster: &Cluster, connection: &Arc<Connection>, round: usize) -> Vec<Change> {
    let begin = |what: &'static str, change: std::pin::Pin<Box<dyn Future<Output = client::Result<()>> + Send>>| {
        (what, tokio::spawn(change))
    };
    let with = || connection.clone();
    let (creating, c) = (format!("made-{round}"), with());
    let create = begin(
        "create",
        Box::pin(async move {
            let descriptor = TableDescriptor::new(name(&creating), [FamilyDescriptor::new("f")]);
            c.admin().create_table(&descriptor, &splits(12)).await
        }),
    );
    let (dropped, c) = (name(&format!("dropped-{round}")), with());
    let delete = begin(
        "disable and delete",
        Box::pin(async move {
            c.admin().disable_table(&dropped).await?;
            c.admin().delete_table(&dropped).await
        }),
    );
    let (emptied, c) = (name(&format!("emptied-{round}")), with());
    let truncate = begin(
        "truncate",
        Box::pin(async move {
            c.admin().disable_table(&emptied).await?;
            c.admin().truncate_table(&emptied, round.is_multiple_of(2)).await
        }),
    );
    let (altered, c) = (name(&format!("altered-{round}")), with());
    let alter =
        begin("alter", Box::pin(async move { c.admin().add_family(&altered, &FamilyDescriptor::new("g")).await }));
    let places = regions(connection, &cluster.table).await;
    let region = places[round % places.len()].region.clone();
    let (c, row) = (with(), Bytes::from([&region.start_key[..], b"00100"].concat()));
    let split = begin("split", Box::pin(async move { c.admin().split_region(region.name(), Some(&row)).await }));
    let (kept, c) = (name(&format!("kept-{round}")), with());
    let snapshot = begin("snapshot", Box::pin(async move { c.admin().snapshot(&snapshot_of(round), &kept).await }));
    let c = with();
    let namespace = begin(
        "namespace",
        Box::pin(async move { c.admin().create_namespace(&namespace_of(round), &BTreeMap::new()).await }),
    );
    let (flushed, c) = (cluster.table.clone(), with());
    let flush = begin("flush", Box::pin(async move { c.admin().flush(&flushed).await }));
    vec![create, delete, truncate, alter, split, snapshot, namespace, flush]
}

/// Kinds of the master's procedures that have not ended.
async fn busy_with(connection: &Connection) -> Vec<String> {
    let is_over = |state| matches!(state, ProcedureState::Success | ProcedureState::Rolledback);
    let all = connection.admin().procedures().await.unwrap_or_default();
    let unfinished = all.iter().filter(|procedure| !is_over(procedure.state()));
    let kinds: BTreeSet<&str> =
        unfinished.map(|procedure| procedure.class_name.rsplit('.').next().unwrap_or_default()).collect();
    kinds.into_iter().map(|kind| kind.trim_end_matches("Procedure").to_owned()).collect()
}

/// One of the master's procedures has not ended: it is in the middle of them.
async fn is_busy(connection: &Connection) -> bool {
    !busy_with(connection).await.is_empty()
}

/// Each is answered, and is done wholly or not at all; answers what was not done.
async fn expect_answers(cluster: &Cluster, changes: Vec<Change>, round: usize) -> Vec<&'static str> {
    let mut refused = Vec::new();
    for (what, change) in changes {
        match change.await.expect("no panic") {
            Ok(()) => {}
            Err(error) => {
                cluster.lab.note(&format!("{what}: {error}"));
                refused.push(what);
            }
        }
    }
    let admin = cluster.connection.admin();
    let count = async |table: &str| regions(&cluster.connection, &name(table)).await.len();
    if !refused.contains(&"create") {
        until("the new table has its regions", async || count(&format!("made-{round}")).await == 12).await;
    }
    if !refused.contains(&"disable and delete") {
        let dropped = name(&format!("dropped-{round}"));
        assert!(!admin.table_exists(&dropped).await.expect("an answer"), "{dropped} is gone");
    }
    if !refused.contains(&"alter") {
        let altered =
            admin.describe(&name(&format!("altered-{round}"))).await.expect("an answer").expect("it is there");
        assert!(altered.families.contains_key(&b"g"[..]), "{altered:?}");
    }
    if !refused.contains(&"namespace") {
        let there = admin.list_namespaces().await.expect("an answer");
        assert!(there.contains(&namespace_of(round)), "{there:?}");
    }
    if !refused.contains(&"snapshot") {
        let of_round = snapshot_of(round);
        let there = admin.list_snapshots().await.expect("an answer");
        assert!(there.iter().any(|snapshot| snapshot.name == of_round), "{there:?}");
        let copy = name(&format!("copied-{round}"));
        admin.clone_snapshot(&of_round, &copy).await.expect("a table is made of it");
        assert_eq!(count(copy.as_str()).await, 6, "{copy} has its regions");
    }
    refused
}

impl Cluster {
    /// Every region is served, every row there, and hbck finds nothing.
    async fn expect_whole(&self) {
        until_within(LONGEST_REPORT, "no procedure is left", async || {
            self.connection.admin().procedures().await.is_ok() && !is_busy(&self.connection).await
        })
        .await;
        self.expect_rows().await;
        let mut said = String::new();
        until_within(LONGEST_REPORT, "hbck finds nothing", async || {
            let checked = self.lab.command("hbck").args(["hbck", "--json"]).output().expect("ran");
            let says = String::from_utf8_lossy(&checked.stdout).into_owned();
            if !checked.status.success() && says != said {
                self.lab.note(&format!("hbck says {says}"));
                said = says;
            }
            checked.status.success()
        })
        .await;
    }
}

async fn waits_as_backup(connection: &Connection) {
    until("a backup waits", async || connection.admin().backup_masters().await.is_ok_and(|backups| backups.len() == 1))
        .await;
}

async fn leads(connection: &Connection, master: &Piece) {
    until("the backup leads", async || {
        let name = connection.admin().active_master().await;
        name.is_ok_and(|name| master.is(&name)) && connection.admin().is_master_running().await.unwrap_or(false)
    })
    .await;
}

/// A region server of HBase's whose report of a closed region a master took down but did not answer repeats it minutes later. If the region was
/// deleted meanwhile HBase's next master does not know it, and HBase's server ends itself: another takes its place.
fn replace_hbases(lab: &Lab, piece: &mut Piece, round: usize) {
    if !piece.has_ended() {
        return;
    }
    let why = "Failed to report close to master";
    assert!(piece.said_last(1 << 20).contains(why), "HBase's region server has ended, and not for: {why}");
    lab.note(&format!("round {round}: HBase's region server has ended itself ({why}); another takes its place"));
    *piece = lab.java_server_with(&format!("java-of-round-{round}"), "256m");
}

/// The number of what is asked of our master in a round.
const fn again(round: usize) -> usize {
    100 + round
}

/// Our master is stopped in order while it makes a table; HBase's leads.
async fn stop_while_busy(cluster: &Cluster, asking: &Arc<Connection>, ours: Piece, java: &Piece, round: usize) {
    let (c, late) = (asking.clone(), format!("late-{round}"));
    let making = tokio::spawn(async move { make(&c, &late, 12).await });
    until("ours is busy", async || is_busy(&cluster.connection).await || making.is_finished()).await;
    let asked = Instant::now();
    assert!(ours.terminate(), "our master ends in order");
    let ended = asked.elapsed();
    leads(&cluster.connection, java).await;
    making.await.expect("made");
    cluster.lab.note(&format!(
        "round {round}: our master was stopped while it made a table, and ended after {ended:.1?}; HBase's leads after {:.1?}",
        asked.elapsed()
    ));
    assert_eq!(regions(&cluster.connection, &name(&format!("late-{round}"))).await.len(), 12);
}

/// Our master is killed in the middle of changes; HBase's goes on with them. A region server of HBase's has no part in it in the first round: what
/// it closes while no master leads it may report minutes later (docs/operations/cluster.md).
async fn kill_while_busy(
    cluster: &Cluster,
    asking: &Arc<Connection>,
    ours: Piece,
    java: &Piece,
    of_hbase: &ServerName,
    round: usize,
) {
    let admin = cluster.connection.admin();
    if round == 0 {
        admin.decommission_servers(std::slice::from_ref(of_hbase), true).await.expect("its regions go elsewhere");
    }
    let kinds = OF_A_ROUND.map(|kind| format!("{kind}-{}", again(round)));
    for table in &kinds {
        make(&cluster.connection, table, 6).await;
    }
    if round == 0 {
        let tables = ["hbase:meta", "t"].into_iter().chain(kinds.iter().map(String::as_str));
        for table in tables.map(name) {
            until("nothing is on HBase's region server", async || {
                regions(&cluster.connection, &table).await.iter().all(|place| place.server != *of_hbase)
            })
            .await;
        }
    }
    let changes = ask(cluster, asking, again(round)).await;
    until("ours is busy", async || is_busy(&cluster.connection).await).await;
    let delay_ms = OURS_DELAYS_MS[round / 2 % OURS_DELAYS_MS.len()];
    tokio::time::sleep(Duration::from_millis(delay_ms)).await;
    let busy = busy_with(&cluster.connection).await;
    ours.kill();
    let killed = Instant::now();
    leads(&cluster.connection, java).await;
    let took = killed.elapsed();
    let refused = expect_answers(cluster, changes, again(round)).await;
    cluster.lab.note(&format!(
        "round {round}: our master was killed {delay_ms} ms after it was busy, with {busy:?}; HBase's leads after {took:.1?}, all answered after {:.1?}, not done: {refused:?}",
        killed.elapsed()
    ));
    for what in GONE_ON_WITH {
        assert!(!refused.contains(&what), "{what} is done");
    }
    if round == 0 {
        admin.recommission_server(of_hbase, &[]).await.expect("it may have regions again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn masters_of_either_kind_follow_one_another() {
    let Some(lab) = Lab::open("masters") else { return };
    let mut java = lab.java_master("master-java-0");
    let mut pieces =
        [lab.basalt("server-1", "regionserver"), lab.basalt("server-2", "regionserver"), lab.java_server()];
    let connection = lab.connect();
    until("three servers are in the cluster", async || servers(&connection).await.len() == 3).await;
    lab.note("HBase's master leads two of our servers and one of HBase's");
    let is_of_hbase = |name: &ServerName| !pieces[..2].iter().any(|piece| piece.is(name));
    let of_hbase = servers(&connection).await.into_iter().find(is_of_hbase).expect("one of HBase's");
    let asking = Arc::new(lab.connect());
    let mut cluster = Cluster { lab, connection, table: name("t"), rows: 0 };
    let descriptor = TableDescriptor::new(cluster.table.clone(), [FamilyDescriptor::new("f")]);
    let keys: Vec<Bytes> = (1..8).map(|n| Bytes::from(vec![b'a' + n])).collect();
    cluster.connection.admin().create_table(&descriptor, &keys).await.expect("made");
    cluster.put(200).await;
    for round in 0..rounds() {
        let ours = cluster.lab.basalt(&format!("master-ours-{round}"), "master");
        waits_as_backup(&cluster.connection).await;
        for table in OF_A_ROUND {
            make(&cluster.connection, &format!("{table}-{round}"), 6).await;
        }
        let is_on = round.is_multiple_of(2);
        cluster.connection.admin().set_balancer(is_on, true).await.expect("switched by HBase's");
        let changes = ask(&cluster, &asking, round).await;
        until("HBase's master is busy", async || is_busy(&cluster.connection).await).await;
        let delay_ms = DELAYS_MS[round % DELAYS_MS.len()];
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        let loses_a_server = round % 3 == 1;
        if loses_a_server {
            let another = cluster.lab.basalt(&format!("server-of-round-{round}"), "regionserver");
            std::mem::replace(&mut pieces[round % 2], another).kill();
        }
        java.kill();
        let killed = Instant::now();
        leads(&cluster.connection, &ours).await;
        let took = killed.elapsed();
        let refused = expect_answers(&cluster, changes, round).await;
        cluster.lab.note(&format!(
            "round {round}: HBase's master was killed {delay_ms} ms after it was busy; ours leads after {took:.1?}, all answered after {:.1?}, not done: {refused:?}{}",
            killed.elapsed(),
            if loses_a_server { "; a region server was killed with it" } else { "" }
        ));
        replace_hbases(&cluster.lab, &mut pieces[2], round);
        until("three servers are in the cluster", async || servers(&cluster.connection).await.len() == 3).await;
        assert_eq!(cluster.connection.admin().set_balancer(!is_on, true).await.expect("switched by ours"), is_on);
        cluster.put(40).await;
        cluster.expect_whole().await;
        // hbase:meta is elsewhere than where this master found it.
        let meta = regions(&cluster.connection, &TableName::meta()).await.remove(0).server;
        let other = servers(&cluster.connection).await.into_iter().find(|server| *server != meta).expect("three");
        cluster.move_meta_to(&other).await;

        replace_hbases(&cluster.lab, &mut pieces[2], round);
        java = cluster.lab.java_master(&format!("master-java-{}", round + 1));
        waits_as_backup(&cluster.connection).await;
        if round % 2 == 1 {
            stop_while_busy(&cluster, &asking, ours, &java, round).await;
        } else {
            kill_while_busy(&cluster, &asking, ours, &java, &of_hbase, round).await;
        }
        assert_eq!(cluster.connection.admin().set_balancer(true, true).await.expect("an answer"), !is_on);
        cluster.put(40).await;
        cluster.expect_whole().await;
        let admin = cluster.connection.admin();
        make(&cluster.connection, &format!("last-{round}"), 3).await;
        let kinds = ["made", "emptied", "altered", "kept", "copied", "late", "last"];
        let of_ours = kinds.map(|kind| format!("{kind}-{}", again(round)));
        for table in kinds.map(|kind| format!("{kind}-{round}")).iter().chain(&of_ours).map(|table| name(table)) {
            // What was not done is not there.
            if admin.disable_table(&table).await.is_ok() {
                admin.delete_table(&table).await.unwrap_or_else(|error| panic!("{table}: {error}"));
            }
        }
        for round in [round, again(round)] {
            drop(admin.delete_snapshot(&snapshot_of(round)).await);
            drop(admin.delete_namespace(&namespace_of(round)).await);
        }
    }
    drop((pieces, java));
}
