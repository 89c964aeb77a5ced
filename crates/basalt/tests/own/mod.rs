//! A cluster of ours: two masters and two region servers on a real HDFS and ZooKeeper, killed one after the other; then a region server of
//! HBase's below our master. Needs HDFS, ZooKeeper and HBase's jars: `cargo xtask cluster own`.
#![cfg(all(feature = "hdfs", feature = "zookeeper"))]
#![allow(clippy::disallowed_methods, reason = "tests of a process work on real processes")]

use crate::joined::cluster::{Cluster, Loss};
use crate::joined::lab::{LIMIT, Lab, Piece, SESSION_TIMEOUT_MS, regions, server, servers, until};
use bytes::Bytes;
use model::{FamilyDescriptor, ServerName, TableDescriptor, TableName};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

impl Cluster {
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
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_our_own_outlives_its_servers_and_masters() {
    let Some(lab) = Lab::open("own") else { return };
    let backup = lab.basalt_with("master-2", "master", &["--backup"]);
    until("a backup is never the first", async || backup.said().contains("waits until another master is active")).await;
    let active = lab.basalt("master-1", "master");
    until("a master is active", async || active.said().contains("is the active master")).await;
    let (first, second) = (lab.basalt("server-1", "regionserver"), lab.basalt("server-2", "regionserver"));
    let connection = lab.connect();
    until("two servers are in the cluster", async || servers(&connection).await.len() == 2).await;
    until("the other waits", async || backup.said().contains("waits as a backup")).await;
    lab.note("two servers are let in, a backup waits");
    let mut cluster = Cluster { lab, connection, table: TableName::parse("t").expect("a name"), rows: 0 };
    use_it(&mut cluster).await;
    a_third_joins(&mut cluster, &active).await;

    let names = [cluster.name_of(&first).await, cluster.name_of(&second).await];
    cluster.move_meta_to(&names[1]).await;
    let (second, killed) = lose_a_server(&mut cluster, second, &names[1], Loss::Killed, "server-2").await;
    cluster.move_meta_to(&names[0]).await;
    let (first, stopped) = lose_a_server(&mut cluster, first, &names[0], Loss::Stopped, "server-1").await;
    // Both wait for a session to end, which ZooKeeper sees by its ticks, and for leases.
    assert!(stopped < killed + Duration::from_secs(6), "{stopped:.2?} after SIGSTOP, {killed:.2?} after a kill");
    lose_the_master(&mut cluster, active, &backup).await;
    let third = cluster.lab.basalt("master-3", "master");
    hand_over(&mut cluster, backup, &third).await;
    let fourth = cluster.lab.basalt("master-4", "master");
    let java = java_below_ours(&mut cluster).await;
    let stopped = cluster.lab.command("stop").args(["master", "stop"]).status().expect("ran");
    assert!(stopped.success());
    for piece in [third, first, second] {
        assert!(piece.ended_well(), "the cluster goes down");
    }
    drop((java, fourth));
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

/// What a page of a master or a region server says.
fn page_of(piece: &Piece, path: &str) -> String {
    let said = piece.said();
    let place = said.rsplit("  status     http://").next().and_then(|rest| rest.lines().next()).unwrap_or_default();
    let (address, _) = place.split_once('/').unwrap_or_else(|| panic!("no status pages: {said}"));
    let mut stream = TcpStream::connect(address).unwrap_or_else(|error| panic!("{address}: {error}"));
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("asked");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// A server joins, and the balancer gives it its share; it is emptied and filled, restarted without anybody's noticing, and goes. Rows are written
/// throughout.
async fn a_third_joins(cluster: &mut Cluster, master: &Piece) {
    let piece = cluster.lab.basalt("server-3", "regionserver");
    let third = cluster.name_of(&piece).await;
    let (before, connection) = (regions(&cluster.connection, &cluster.table).await.len(), cluster.lab.connect());
    let is_done = std::cell::Cell::new(false);
    let balancing = async {
        let mut moves = 0;
        until("the balancer moves regions", async || {
            let balanced = connection.admin().balance(false, false).await.expect("an answer");
            moves = balanced.moves_executed.unwrap_or_default();
            moves > 0
        })
        .await;
        is_done.set(true);
        moves
    };
    let writing = async {
        let mut slowest = Duration::ZERO;
        while !is_done.get() {
            slowest = slowest.max(cluster.put(8).await);
        }
        slowest
    };
    let (moves, slowest) = tokio::join!(balancing, writing);
    let share = |cluster: &Cluster, name: &ServerName| {
        let (connection, table, name) = (cluster.connection.clone(), cluster.table.clone(), name.clone());
        async move { regions(&connection, &table).await.iter().filter(|at| at.server == name).count() }
    };
    until("the third server has its share", async || share(cluster, &third).await >= before / 4).await;
    cluster.expect_rows().await;
    let (count, lab) = (share(cluster, &third).await, &cluster.lab);
    lab.note(&format!(
        "a third server joined and got {count} of {before} regions by {moves} moves, slowest put {slowest:.2?}"
    ));

    let page = page_of(master, "/master-status");
    assert!(page.contains(&third.to_string()) && page.contains("Balancer"), "{page}");
    let metrics = page_of(master, "/jmx?qry=Hadoop:service=HBase,name=Master,sub=Balancer");
    assert!(metrics.contains("\"BalancerCluster_num_ops\"") && metrics.contains("hbase:ensemble_Overall"), "{metrics}");

    let page = page_of(&piece, "/rs-status");
    assert!(page.contains(&third.to_string()) && page.contains("/table.jsp?name=t"), "{page}");
    let keys = page_of(&piece, "/keys?name=t&measure=writes");
    assert!(keys.contains("Hottest keys") && keys.contains("data:image/png"), "{keys}");
    let metrics = page_of(&piece, "/jmx?get=Hadoop:service=HBase,name=RegionServer,sub=Server::regionCount");
    assert!(metrics.contains("\"regionCount\": "), "{metrics}");
    assert!(page_of(&piece, "/procedures.jsp").starts_with("HTTP/1.1 404"), "those are the master's");

    let at = format!("localhost:{}", third.port);
    let file = lab.file("moved");
    let mover = |operation: &str| {
        let arguments = ["regionmover", "-r", &at, "-o", operation, "-m", "2", "-f", &file];
        cluster.lab.command("mover").args(arguments).status().expect("ran").success()
    };
    assert!(mover("unload"));
    assert_eq!(share(cluster, &third).await, 0);
    assert!(mover("load"));
    assert_eq!(share(cluster, &third).await, count, "what was there is back");
    cluster.lab.note("it was emptied by the mover, and filled again");

    let restart = ["admin", "rolling-restart", "--graceful", &at];
    let mut restarting = cluster.lab.command("restart").args(restart).spawn().expect("started");
    assert!(piece.ended_well(), "it is asked to stop");
    let piece = cluster.lab.basalt_server_at("server-3", third.port);
    let mut slowest = Duration::ZERO;
    let ended = loop {
        slowest = slowest.max(cluster.put(8).await);
        if let Some(ended) = restarting.try_wait().expect("its end") {
            break ended;
        }
    };
    assert!(ended.success(), "it was restarted");
    let again = cluster.name_of(&piece).await;
    assert!(again.port == third.port && again != third);
    assert_eq!(share(cluster, &again).await, count, "what was there is back");
    cluster.expect_rows().await;
    cluster.lab.note(&format!("it was restarted with its {count} regions away meanwhile, slowest put {slowest:.2?}"));

    assert!(piece.terminate(), "it goes in order");
    until("two servers have all", async || {
        servers(&cluster.connection).await.len() == 2 && share(cluster, &again).await == 0 && cluster.all_served().await
    })
    .await;
    cluster.lab.note("it went, and two servers have all again");
}

/// Answers the process that takes its place, and how long it took until all was served.
async fn lose_a_server(
    cluster: &mut Cluster,
    piece: Piece,
    name: &ServerName,
    loss: Loss,
    log: &str,
) -> (Piece, Duration) {
    cluster.put(160).await;
    let took = cluster.lose(piece, name, loss).await;
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
    (piece, took)
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

/// The active master is asked to stop, as in a rolling restart.
async fn hand_over(cluster: &mut Cluster, active: Piece, next: &Piece) {
    until("the next waits", async || next.said().contains("waits as a backup")).await;
    active.signal(rustix::process::Signal::TERM);
    let began = Instant::now();
    let mut slowest = Duration::ZERO;
    until("the next is ready", async || {
        slowest = slowest.max(cluster.put(1).await);
        next.said().contains(" is ready.")
    })
    .await;
    let ready = began.elapsed();
    cluster.ddl("handed").await;
    cluster.lab.note(&format!(
        "the active master was asked to stop: another is ready after {ready:.2?}, a table made and dropped after {:.2?}, slowest put {slowest:.2?}",
        began.elapsed()
    ));
    // A session that had to expire is a handover that was none.
    assert!(ready < Duration::from_millis(SESSION_TIMEOUT_MS.into()), "{ready:.2?}");
    assert!(active.ended_well(), "it goes in order");
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
    // HBase's server wrote its regions in a format that nobody read: every snapshot failed.
    cluster.connection.admin().snapshot("with-java", &cluster.table).await.expect("a snapshot");
    cluster.move_meta_to(&java).await;
    cluster.put(80).await;
    cluster.ddl("with-meta-on-java").await;
    let first = server(&cluster.connection, |name| *name != java).await.expect("ours");
    cluster.move_meta_to(&first).await;
    cluster.ddl("with-meta-back").await;
    cluster.move_meta_to(&java).await;
    cluster.expect_rows().await;
    cluster
        .lab
        .note("it has three regions and hbase:meta, which was back meanwhile; rows are written and read through all");
    cluster.lose(piece, &java, Loss::Killed).await;
    cluster.expect_rows().await;
    cluster.put(80).await;
    let piece = cluster.lab.java_server();
    until("HBase's server is back", async || servers(&cluster.connection).await.len() == 3).await;
    cluster.ddl("third").await;
    cluster.lab.note("every row is there; it is back");
    piece
}

/// Servers are emptied as the options of HBase's RegionMover say, and by HBase's other words for it.
#[tokio::test(flavor = "multi_thread")]
async fn the_mover_takes_its_options() {
    let Some(lab) = Lab::open("mover") else { return };
    let master = lab.basalt("master", "master");
    until("a master is active", async || master.said().contains("is the active master")).await;
    let pieces = ["server-1", "server-2", "server-3"].map(|name| lab.basalt(name, "regionserver"));
    let connection = lab.connect();
    until("three servers are in the cluster", async || servers(&connection).await.len() == 3).await;
    let mut cluster = Cluster { lab, connection, table: TableName::parse("t").expect("a name"), rows: 0 };
    let descriptor = TableDescriptor::new(cluster.table.clone(), [FamilyDescriptor::new("f")]);
    let splits: Vec<Bytes> = (1..8).map(|n| Bytes::from(vec![b'a' + n])).collect();
    let admin = cluster.connection.admin();
    admin.create_table(&descriptor, &splits).await.expect("made");
    admin.set_balancer(false, true).await.expect("off");
    cluster.put(80).await;
    let [first, second, third] = [&pieces[0], &pieces[1], &pieces[2]];
    let (first, second, third) =
        (cluster.name_of(first).await, cluster.name_of(second).await, cluster.name_of(third).await);
    let at = |server: &ServerName| format!("localhost:{}", server.port);
    // All of them on the third.
    for place in regions(&cluster.connection, &cluster.table).await.iter().filter(|place| place.server != third) {
        cluster.move_to(&place.region, &third).await;
    }
    let run = |arguments: &[&str]| {
        let output = cluster.lab.command("mover").args(arguments).output().expect("ran");
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (output.status.success(), said)
    };
    let list = |name: &str, server: &ServerName| {
        let path = cluster.lab.file(name);
        std::fs::write(&path, format!("{}\n", server.address())).expect("written");
        path
    };
    let (only, without, file) = (list("only", &first), list("without", &first), cluster.lab.file("moved"));
    let from = at(&third);
    let mover = |operation: &'static str, more: &[&str]| {
        run(&[&["regionmover", "-r", &from, "-o", operation, "-f", &file], more].concat())
    };
    // Of the table alone: any of the servers may have hbase:meta as well, which moves with them.
    let held = async |server: &ServerName| -> Vec<String> {
        let places = regions(&cluster.connection, &cluster.table).await;
        let held = places.iter().filter(|place| place.server == *server);
        held.map(|place| place.region.encoded_name().to_string()).collect()
    };
    let (done, said) = mover("unload", &["-d", &only, "-m", "4", "-t", "120"]);
    assert!(done && said.contains("Moved "), "{said}");
    assert_eq!((held(&first).await.len(), held(&second).await.len()), (8, 0));
    let (done, said) = mover("load", &["--maxthreads", "4", "-n"]);
    assert!(done && held(&third).await.len() == 8, "{said}");
    let (done, said) = mover("unload", &["-x", &without, "--noack", "-m", "4"]);
    assert!(done && held(&second).await.len() == 8, "{said}");
    assert!(mover("load", &["-m", "4"]).0);
    let (done, said) = mover("unload", &["-d", &without, "-x", &without]);
    assert!(!done && said.contains("no other region server may take"), "{said}");
    let (done, said) = mover("unload", &["-t", "0"]);
    assert!(!done && said.contains("not done within 0 s"), "{said}");

    // One region stays alone, and the server gets no other.
    let alone = held(&third).await.first().expect("eight").clone();
    let (done, said) = mover("isolate_regions", &["-i", &alone, "-m", "4"]);
    assert!(done && said.contains("is decommissioned"), "{said}");
    assert_eq!(held(&third).await, [alone]);
    assert!(run(&["admin", "draining", "list"]).1.contains(&third.to_string()));
    assert!(run(&["admin", "draining", "remove", &from]).1.contains("gets regions again"));
    assert!(mover("load", &["-m", "4"]).0);
    assert_eq!(held(&third).await.len(), 8);
    assert!(run(&["admin", "draining", "add", &from]).0);
    until("a server that is drained has none", async || held(&third).await.is_empty()).await;
    assert!(run(&["admin", "draining", "remove", &from]).0);
    cluster.expect_rows().await;
    cluster.lab.note("regions were moved by every option of the mover");
    drop(pieces);
}
