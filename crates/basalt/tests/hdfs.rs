//! A server on a real HDFS, where `BASALT_TEST_HDFS` names one.
#![cfg(feature = "hdfs")]
#![allow(clippy::disallowed_methods, reason = "tests of a process work on real processes")]

use crate::common::{Server, Tester, start_refused};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A directory on the HDFS as `hbase.rootdir`; `None`, with a line, where there is none to test on.
fn root(name: &str) -> Option<PathBuf> {
    let Ok(hdfs) = std::env::var("BASALT_TEST_HDFS") else {
        println!("skipped: BASALT_TEST_HDFS names no HDFS");
        return None;
    };
    Some(PathBuf::from(format!("{hdfs}/basalt-test/{name}-{}", std::process::id())))
}

/// Writes a hundred rows in each of three lives that end by a kill; each life must find those of the earlier ones.
async fn live_three_times(root: &Path, defines: &[&str]) {
    let mut acknowledged = 0;
    for life in 0..3 {
        let server = Server::start(root, defines);
        let tester = Tester::connect(&server).await;
        if life == 0 {
            tester.create_table("t", &[]).await;
        }
        let region = tester.regions("t").await.remove(0);
        expect_rows(&tester, &region, acknowledged).await;
        put_rows(&tester, &region, acknowledged..acknowledged + 100).await;
        acknowledged += 100;
        server.kill();
    }
}

async fn put_rows(tester: &Tester, region: &[u8], rows: Range<u32>) {
    for n in rows {
        tester.put(region, &format!("row{n}"), &format!("value{n}")).await.expect("acknowledged");
    }
}

async fn expect_rows(tester: &Tester, region: &[u8], count: u32) {
    for n in 0..count {
        let found = tester.get(region, &format!("row{n}")).await.expect("an answer");
        assert_eq!(found.as_deref(), Some(format!("value{n}").as_bytes()), "row{n} of {count}");
    }
}

/// Every acknowledged put is there after each kill; the next start takes the log's lease and waits for nobody.
#[tokio::test]
async fn a_killed_server_on_hdfs_loses_nothing() {
    let Some(root) = root("kill") else { return };
    live_three_times(&root, &[]).await;
}

/// The same with its logs in another directory of the HDFS, and the other way about: a root directory on the local disk with logs on HDFS.
#[tokio::test]
async fn a_killed_server_with_a_wal_directory_on_hdfs_loses_nothing() {
    let Some(root) = root("wal-dir") else { return };
    let scratch = crate::common::Scratch::new("hdfs-wal-dir");
    let logs = |name: &str| format!("hbase.wal.dir={}-{name}", root.display());
    live_three_times(&root, &[&logs("logs")]).await;
    live_three_times(&scratch.join("root"), &[&logs("logs-of-local")]).await;
}

/// The same with its nodes in an ensemble, where the dead server's stay until its session ends. `BASALT_TEST_ZOOKEEPER` names the ensemble.
#[cfg(feature = "zookeeper")]
#[tokio::test]
async fn a_killed_server_on_hdfs_and_an_ensemble_loses_nothing() {
    let Some(root) = root("ensemble") else { return };
    let Ok(quorum) = std::env::var("BASALT_TEST_ZOOKEEPER") else {
        println!("skipped: BASALT_TEST_ZOOKEEPER names no ensemble");
        return;
    };
    let quorum = format!("hbase.zookeeper.quorum={quorum}");
    let parent = format!("zookeeper.znode.parent=/basalt-test-{}", std::process::id());
    let defines = ["hbase.cluster.distributed=true", "zookeeper.session.timeout=5000", &quorum, &parent];
    live_three_times(&root, &defines).await;
}

/// New files that the server has begun because too few DataNodes write its log.
fn low_replication_rolls(server: &Server) -> u64 {
    let beans = crate::metrics::page(server, "/jmx?qry=Hadoop:service=HBase,name=RegionServer,sub=WAL");
    let beans: serde_json::Value = serde_json::from_str(&beans).expect("JSON");
    beans["beans"][0]["lowReplicaRollRequest"].as_u64().unwrap_or_else(|| panic!("no such number: {beans}"))
}

/// The log goes on with the others, in a new file, for which the NameNode may name better DataNodes; where there are none, as often as was set and
/// not for ever. A server that starts without the dead node finds every row. `BASALT_TEST_HDFS_KILL` is a command that kills one DataNode of
/// several. Follows: `TestLogRolling#testLogRollOnDatanodeDeath`.
#[tokio::test]
async fn a_dead_data_node_costs_a_server_no_row() {
    let Some(root) = root("dead-node") else { return };
    let Ok(kill) = std::env::var("BASALT_TEST_HDFS_KILL") else {
        println!("skipped: BASALT_TEST_HDFS_KILL kills no DataNode");
        return;
    };
    let defines = [
        "dfs.client.block.write.replace-datanode-on-failure.best-effort=true",
        "hbase.regionserver.hlog.lowreplication.rolllimit=2",
        "hbase.master.info.port=0",
    ];
    let server = Server::start(&root, &defines);
    let tester = Tester::connect(&server).await;
    tester.create_table("t", &[]).await;
    let region = tester.regions("t").await.remove(0);
    put_rows(&tester, &region, 0..100).await;
    assert_eq!(low_replication_rolls(&server), 0, "all DataNodes are there");
    let status = std::process::Command::new("sh").args(["-c", &kill]).status().expect("a shell");
    assert!(status.success(), "{kill}");
    // A file is rolled between two looks of the log's thread; a write tells how many copies the file gets.
    let mut rows = 100;
    while low_replication_rolls(&server) < 2 {
        assert!(rows < 20_000, "{} files were begun for want of copies", low_replication_rolls(&server));
        put_rows(&tester, &region, rows..rows + 100).await;
        rows += 100;
    }
    for _ in 0..10 {
        put_rows(&tester, &region, rows..rows + 100).await;
        rows += 100;
    }
    assert_eq!(low_replication_rolls(&server), 2, "another file would be no better: the limit is two");
    expect_rows(&tester, &region, rows).await;
    server.kill();
    let server = Server::start(&root, &defines);
    let tester = Tester::connect(&server).await;
    expect_rows(&tester, &region, rows).await;
}

/// Two servers would take each other's files.
#[tokio::test]
async fn a_root_directory_on_hdfs_has_one_server() {
    let Some(root) = root("two") else { return };
    let server = Server::start(&root, &[]);
    let (status, said) = start_refused(&root, &[]);
    assert!(!status.success(), "{said}");
    assert!(
        said.contains("is in use by the process with pid") && said.contains(&server.child.id().to_string()),
        "{said}"
    );
}

/// Backups of a server on HDFS: kept on the same HDFS, where it loads them itself, and on the local disk, from where they are copied.
#[test]
fn backups_of_a_server_on_hdfs_are_kept_there_and_here() {
    let Some(root) = root("backup") else { return };
    let scratch = crate::common::Scratch::new("hdfs-backup");
    let server = Server::start(&root, &[]);
    let rootdir = format!("hbase.rootdir={}", root.display());
    let run = |arguments: &[&str]| {
        let output = crate::common::tools::basalt(&server, &[&["-D", &rootdir], arguments].concat());
        let said = crate::common::tools::text(&output);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let id_of =
        |said: String| said.split(['"', ' ']).find(|word| word.starts_with("backup_")).expect("an id").to_owned();
    let cells = |table: &str| {
        let said = crate::common::tools::shell(&server, &[&format!("scan '{table}'")]);
        said.lines().filter(|line| line.contains("column=")).map(str::to_owned).collect::<Vec<_>>()
    };
    crate::common::tools::shell(&server, &["create 't', 'f', SPLITS => ['m']", "put 't', 'a', 'f:q', '1'"]);
    let places = [format!("{}-backups", root.display()), format!("file://{}", scratch.join("backups").display())];
    for (n, place) in places.iter().enumerate() {
        run(&["backup", "create", "full", place]);
        crate::common::tools::shell(&server, &[&format!("put 't', 'b', 'f:q', 'at {n}'"), "put 't', 'z', 'f:q', '2'"]);
        let wanted = cells("t");
        let id = id_of(run(&["backup", "create", "incremental", place]));
        assert!(run(&["backup", "verify", place]).contains("2 backups are whole"), "{place}");
        crate::common::tools::shell(&server, &["put 't', 'b', 'f:q', 'later'"]);
        run(&["restore", place, &id, "-t", "t", "-m", &format!("x{n}")]);
        assert_eq!(cells(&format!("x{n}")), wanted, "{place}");
    }
}
