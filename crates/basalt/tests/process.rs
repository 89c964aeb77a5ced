//! The process as an operator meets it: what it says, how it ends, and that it comes back with everything.
#![allow(clippy::disallowed_methods, reason = "tests of a process work on real directories")]

use crate::common::{Scratch, Server, Tester, command, start_refused};
use bytes::Bytes;
use proto::methods::Method;
use proto::pb;
use rpc::client::{Client, ClientOptions};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

/// Every file below a directory with its bytes.
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(at) = todo.pop() {
        for entry in std::fs::read_dir(&at).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                todo.push(path);
            } else {
                all.insert(path.display().to_string(), std::fs::read(&path).expect("a file"));
            }
        }
    }
    all
}

#[test]
fn a_server_goes_on_where_nobody_reads_what_it_says() {
    let scratch = Scratch::new("nobody-reads");
    let mut command = command(&scratch.join("data"), &[]);
    let ready = testkit::ReadyFile::new(scratch.join("ready.json"));
    ready.pass_to(&mut command);
    let mut child = command.spawn().expect("the binary runs");
    drop((child.stdout.take(), child.stderr.take()));
    ready.wait(&mut child, std::time::Duration::from_secs(60)).expect("it serves");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it is there");
    assert!(child.wait().expect("it ends").success(), "it stops in order");
}

fn assert_one_sentence(said: &str, must_contain: &str) {
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("basalt: ")).collect();
    assert_eq!(lines.len(), 1, "one line says why: {said}");
    assert!(lines[0].contains(must_contain), "{:?} should contain {must_contain:?}", lines[0]);
    assert!(!said.contains("panicked"), "{said}");
}

fn write_site(dir: &Path, max_rows: &str, rejects: &str) {
    let property = |key: &str, value: &str| format!("<property><name>{key}</name><value>{value}</value></property>");
    let properties = [
        property("hbase.rpc.rows.warning.threshold", max_rows),
        property("hbase.rpc.rows.size.threshold.reject", rejects),
    ];
    let site = format!("<configuration>{}</configuration>", properties.concat());
    std::fs::write(dir.join("hbase-site.xml"), site).expect("written");
}

#[tokio::test]
async fn an_update_of_the_configuration_counts_at_once_and_one_that_cannot_be_used_changes_nothing() {
    let scratch = Scratch::new("update-configuration");
    write_site(&scratch.0, "5", "true");
    let mut command = crate::common::command(&scratch.join("data"), &[]);
    command.arg("--config").arg(&scratch.0);
    let server = Server::run(command);
    let tester = Tester::connect(&server).await;
    tester.create_table("t", &[]).await;
    let region = tester.regions("t").await.remove(0);
    let get = |row: &'static str| pb::Get { row: Bytes::from(row), ..pb::Get::default() };
    let action = |row| pb::Action { index: Some(0), get: Some(get(row)), ..pb::Action::default() };
    let actions = vec![action("a"), action("b")];
    let region_action =
        pb::RegionAction { region: crate::common::specifier(&region), action: actions, ..pb::RegionAction::default() };
    let batch = pb::MultiRequest { region_action: vec![region_action], ..pb::MultiRequest::default() };
    let admin = Client::connect(server.region_address(), "AdminService", ClientOptions::default()).await;
    let admin = admin.expect("the region server takes connections");
    let update = pb::UpdateConfigurationRequest::default();
    let multi = || tester.region_call(Method::ClientMulti, &batch, None);

    multi().await.expect("five rows are allowed");
    write_site(&scratch.0, "1", "true");
    multi().await.expect("nobody has said that the file is another");
    admin.call(Method::AdminUpdateConfiguration.info(), &update, None).await.expect("updated");
    let refused = multi().await.expect_err("one row is allowed").to_string();
    assert!(refused.contains("Rejecting large batch operation"), "{refused}");

    write_site(&scratch.0, "none", "true");
    let refused = admin.call(Method::AdminUpdateConfiguration.info(), &update, None).await;
    let refused = refused.expect_err("none is no number").to_string();
    assert!(refused.contains("hbase.rpc.rows.warning.threshold"), "{refused}");
    multi().await.expect_err("one row is allowed, as before");

    write_site(&scratch.0, "1", "false");
    admin.call(Method::AdminUpdateConfiguration.info(), &update, None).await.expect("updated");
    multi().await.expect("too many rows are only logged");
}

#[tokio::test]
async fn it_starts_serves_stops_and_comes_back() {
    let scratch = Scratch::new("comes-back");
    let root = scratch.join("data");
    let server = Server::start(&root, &[]);
    assert!(server.announcement[0].contains("ready"), "{:?}", server.announcement);
    assert!(
        server.announcement.iter().any(|line| line.contains(&root.display().to_string())),
        "{:?}",
        server.announcement
    );
    let tester = Tester::connect(&server).await;
    tester.create_table("t", &["m"]).await;
    let regions = tester.regions("t").await;
    assert_eq!(regions.len(), 2);
    tester.put(&regions[0], "a", "1").await.expect("put");
    tester.put(&regions[1], "x", "2").await.expect("put");
    assert_eq!(server.terminate().code(), Some(0), "SIGTERM ends it cleanly");
    let logs = contents(&root).into_keys().filter(|path| path.contains("/WALs/"));
    let of_meta: Vec<String> = logs.filter(|path| path.ends_with(".meta")).collect();
    assert_eq!(of_meta, Vec::<String>::new(), "after a clean stop there is nothing of hbase:meta to replay");

    let server = Server::start(&root, &[]);
    let tester = Tester::connect(&server).await;
    assert_eq!(tester.get(&regions[0], "a").await.expect("get"), Some(b"1".to_vec()));
    tester.put(&regions[0], "b", "3").await.expect("put");
    server.kill();

    let server = Server::start(&root, &[]);
    let tester = Tester::connect(&server).await;
    assert_eq!(tester.get(&regions[1], "x").await.expect("get"), Some(b"2".to_vec()));
    assert_eq!(tester.get(&regions[0], "b").await.expect("get"), Some(b"3".to_vec()), "acknowledged before the kill");
    assert_eq!(server.terminate().code(), Some(0));
}

/// A stop has no time to flush: everything is in the log, hbase:meta included, and comes back.
#[tokio::test]
async fn what_a_stop_does_not_flush_is_replayed() {
    let scratch = Scratch::new("left-to-log");
    let root = scratch.join("data");
    let server = Server::start(&root, &["basalt.stop.flush.timeout=0"]);
    let tester = Tester::connect(&server).await;
    tester.create_table("t", &["m"]).await;
    let regions = tester.regions("t").await;
    tester.put(&regions[0], "a", "1").await.expect("put");
    tester.put(&regions[1], "x", "2").await.expect("put");
    assert_eq!(server.terminate().code(), Some(0));
    let of_meta = contents(&root).into_keys().any(|path| path.contains("/WALs/") && path.ends_with(".meta"));
    assert!(of_meta, "the log of hbase:meta is needed still");

    let server = Server::start(&root, &[]);
    let tester = Tester::connect(&server).await;
    assert_eq!(tester.get(&regions[0], "a").await.expect("get"), Some(b"1".to_vec()));
    assert_eq!(tester.get(&regions[1], "x").await.expect("get"), Some(b"2".to_vec()));
    assert_eq!(server.terminate().code(), Some(0));
}

/// Nobody is let in from elsewhere unless somebody said so.
#[tokio::test]
async fn it_listens_for_its_own_machine_unless_it_is_opened() {
    let scratch = Scratch::new("bind");
    let server = Server::start(&scratch.join("closed"), &[]);
    let line = |server: &Server| server.announcement.iter().find(|line| line.contains("listening")).cloned();
    assert!(line(&server).is_some_and(|line| line.contains("basalt.bind=0.0.0.0 opens it")));
    // All of 127/8 is this machine's, and only one address of it is bound.
    let elsewhere = SocketAddr::from(([127, 0, 0, 2], server.region_port));
    assert!(std::net::TcpStream::connect(elsewhere).is_err());
    drop(server);
    let server = Server::start(&scratch.join("open"), &["basalt.bind=0.0.0.0", "hbase.master.ipc.address=127.0.0.1"]);
    assert!(line(&server).is_some_and(|line| !line.contains("opens it")));
    let elsewhere = |port| std::net::TcpStream::connect(SocketAddr::from(([127, 0, 0, 2], port)));
    assert!(elsewhere(server.region_port).is_ok() && elsewhere(server.zk_port).is_ok());
    assert!(elsewhere(server.master_port).is_err(), "an address of its own wins");
}

#[tokio::test]
async fn a_second_start_on_the_same_directory_is_refused() {
    let scratch = Scratch::new("second-start");
    let root = scratch.join("data");
    let server = Server::start(&root, &[]);
    let (status, said) = start_refused(&root, &[]);
    assert_eq!(status.code(), Some(1));
    assert_one_sentence(&said, "is in use by the process with pid");
    let tester = Tester::connect(&server).await;
    tester.create_table("still", &[]).await;
}

#[test]
fn a_port_in_use_is_named() {
    let scratch = Scratch::new("port");
    let taken = std::net::TcpListener::bind("0.0.0.0:0").expect("a port");
    let port = taken.local_addr().expect("bound").port();
    for key in ["hbase.zookeeper.property.clientPort", "hbase.master.port", "hbase.regionserver.port"] {
        let root = scratch.join(key);
        let (status, said) = start_refused(&root, &[&format!("{key}={port}")]);
        assert_eq!(status.code(), Some(1));
        assert_one_sentence(&said, key);
        assert!(!root.join("hbase.version").exists() && !root.join("data").exists(), "nothing was made");
    }
}

#[test]
fn a_directory_that_is_not_ours_is_left_alone() {
    let scratch = Scratch::new("foreign");
    type Files<'a> = &'a [(&'a str, &'a [u8])];
    let cases: [(&str, Files<'_>, &str); 4] = [
        ("stranger", &[("photo.jpg", b"x")], "not empty and not HBase's"),
        ("newer", &[("hbase.version", b"PBUF\x0a\x0299"), ("hbase.id", b"PBUF\x0a\x01a")], "version 99"),
        ("damaged", &[("hbase.version", b"PBUF\xff\xff"), ("hbase.id", b"PBUF\x0a\x01a")], "damaged"),
        ("no-id", &[("hbase.version", b"PBUF\x0a\x018")], "hbase.id is damaged"),
    ];
    for (name, files, sentence) in cases {
        let root = scratch.join(name);
        std::fs::create_dir(&root).expect("a directory");
        for (file, bytes) in files {
            std::fs::write(root.join(file), bytes).expect("a file");
        }
        let before = contents(&root);
        let (status, said) = start_refused(&root, &[]);
        assert_eq!(status.code(), Some(1), "{name}");
        assert_one_sentence(&said, sentence);
        let mut after = contents(&root);
        after.retain(|path, _| !path.ends_with(".basalt.lock"));
        assert_eq!(before, after, "{name}: nothing is touched");
    }
}

#[test]
fn an_unwritable_place_and_a_bad_setting_are_named() {
    let (status, said) = start_refused(Path::new("/proc/basalt-cannot-be-here"), &[]);
    assert_eq!(status.code(), Some(1));
    assert_one_sentence(&said, "/proc/basalt-cannot-be-here");
    let scratch = Scratch::new("setting");
    let (status, said) = start_refused(&scratch.join("data"), &["hbase.regionserver.handler.count=many"]);
    assert_eq!(status.code(), Some(1));
    assert_one_sentence(&said, "hbase.regionserver.handler.count");
    assert!(!scratch.join("data").exists(), "nothing was made");
    let (_, said) = start_refused(&scratch.join("data"), &["hfile.format.version=2"]);
    assert_one_sentence(&said, "hfile.format.version");
}

#[test]
fn the_region_servers_pages_have_a_port_of_their_own_where_one_is_given() {
    let scratch = Scratch::new("info-ports");
    let [port] = testkit::free_ports().expect("a port");
    let defines = [format!("hbase.regionserver.info.port={port}"), "hbase.http.metrics.servlets=prometheus".to_owned()];
    let defines: Vec<&str> = defines.iter().map(String::as_str).collect();
    let server = Server::start(&scratch.join("data"), &defines);
    for port in [port, server.info_port.expect("pages")] {
        assert!(page(port, "/rs-status").starts_with("HTTP/1.1 200"), "{port}");
        assert!(page(port, "/prometheus").starts_with("HTTP/1.1 200"), "{port}");
        assert!(page(port, "/jmx").starts_with("HTTP/1.1 404"), "{port}");
    }
    let defines =
        ["hbase.master.info.port=-1", "hbase.regionserver.info.port=0", "hbase.regionserver.info.bindAddress=::1"];
    let second = Server::start(&scratch.join("second"), &defines);
    let port = second.info_port.expect("the region server's pages alone");
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "it is not where basalt.bind says");
    std::net::TcpStream::connect(("::1", port)).expect("it is where its own address says");
}

/// The body of a status page.
fn page(port: u16, path: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).expect("the status port");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[tokio::test]
async fn metrics_are_measured_and_not_constants() {
    let scratch = Scratch::new("metrics");
    let server = Server::start(&scratch.join("data"), &["hbase.master.info.port=0"]);
    let port = server.announcement.iter().find_map(|line| {
        let (_, rest) = line.split_once("status pages ")?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    });
    let port: u16 = port.expect("the announcement names the port of the status pages");
    let tester = Tester::connect(&server).await;
    tester.create_table("t", &[]).await;
    let regions = tester.regions("t").await;
    tester.put(&regions[0], "row", "value").await.expect("put");
    let metrics = page(port, "/prometheus");
    let value = |name: &str| -> f64 {
        let line = metrics.lines().find(|line| line.starts_with(&format!("{name}{{")));
        let line = line.unwrap_or_else(|| panic!("no {name} in\n{metrics}"));
        line.rsplit(' ').next().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{line}"))
    };
    assert!(value("region_server_num_open_connections") >= 1.0);
    assert!(value("region_server_received_bytes") > 0.0);
    assert!(value("server_write_request_count") >= 1.0);
    assert!(value("wal_sync_time_num_ops") >= 1.0, "the put was synced");
    assert!(value("wal_sync_time_max") > 0.0, "in milliseconds with their fractions");
    assert!((value("server_num_region_servers") - 1.0).abs() < f64::EPSILON);
    assert!(page(port, "/master-status").contains("connections"));
}

/// Runs `basalt zkcli` against the server: what it says, or why it failed.
fn zkcli(server: &Server, words: &[&str]) -> Result<String, String> {
    let address = format!("127.0.0.1:{}", server.zk_port);
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_basalt"))
        .env_remove("HBASE_CONF_DIR")
        .args(["zkcli", "-server", &address])
        .args(words)
        .output()
        .expect("the binary runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

#[test]
fn f33_znodes_of_users_outlive_a_kill_and_a_damaged_file_of_them_ends_the_start() {
    let scratch = Scratch::new("kept-znodes");
    let root = scratch.join("data");
    let server = Server::start(&root, &[]);
    assert_eq!(zkcli(&server, &["create", "/app", "v1"]).as_deref(), Ok("Created /app"));
    assert_eq!(zkcli(&server, &["set", "/app", "v2"]).as_deref(), Ok(""));
    assert_eq!(zkcli(&server, &["create", "-s", "/app/n-", "x"]).as_deref(), Ok("Created /app/n-0000000000"));
    assert_eq!(zkcli(&server, &["create", "-e", "/app/fleeting", "x"]).as_deref(), Ok("Created /app/fleeting"));
    let draining = "/hbase/draining/elsewhere,16020,1";
    assert_eq!(zkcli(&server, &["create", draining, ""]), Ok(format!("Created {draining}")));
    let before = zkcli(&server, &["stat", "/app"]).expect("there");
    server.kill();

    let server = Server::start(&root, &[]);
    assert_eq!(zkcli(&server, &["get", "/app"]).as_deref(), Ok("v2"));
    assert_eq!(zkcli(&server, &["stat", "/app"]), Ok(before), "times, versions and ids are as they were");
    assert_eq!(zkcli(&server, &["ls", "/app"]).as_deref(), Ok("[n-0000000000]"));
    assert_eq!(zkcli(&server, &["ls", "/hbase/draining"]).as_deref(), Ok("[elsewhere,16020,1]"));
    assert_eq!(zkcli(&server, &["create", "-s", "/app/n-", "x"]).as_deref(), Ok("Created /app/n-0000000002"));
    assert_eq!(zkcli(&server, &["deleteall", "/app"]).as_deref(), Ok(""));
    assert_eq!(server.terminate().code(), Some(0));

    let server = Server::start(&root, &[]);
    assert!(zkcli(&server, &["get", "/app"]).is_err(), "what was deleted stays deleted");
    assert_eq!(zkcli(&server, &["ls", "/hbase/draining"]).as_deref(), Ok("[elsewhere,16020,1]"));
    server.kill();
    let file = root.join("MasterData/basalt/znodes");
    let mut bytes = std::fs::read(&file).expect("they are kept there");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&file, bytes).expect("written");
    let (status, said) = start_refused(&root, &[]);
    assert!(!status.success());
    assert_one_sentence(&said, "MasterData/basalt/znodes does not hold the kept znodes, at byte ");
    std::fs::remove_file(&file).expect("as the sentence says");
    let server = Server::start(&root, &[]);
    assert_eq!(zkcli(&server, &["ls", "/hbase/draining"]).as_deref(), Ok("[]"));
}

/// `hbase.zookeeper.property.dataDir`.
#[test]
fn znodes_of_users_are_kept_in_a_directory_of_their_own_if_one_is_named() {
    let scratch = Scratch::new("znodes-dir");
    let (root, own) = (scratch.join("data"), scratch.join("zookeeper"));
    let server = Server::start(&root, &[]);
    assert_eq!(zkcli(&server, &["create", "/app", "v1"]).as_deref(), Ok("Created /app"));
    server.kill();
    let in_root = root.join("MasterData/basalt/znodes");
    assert!(in_root.exists());

    let said = format!("hbase.zookeeper.property.dataDir={}", own.display());
    let server = Server::start(&root, &[&said]);
    assert!(own.join("basalt-znodes").exists() && !in_root.exists(), "what was kept has moved");
    assert_eq!(zkcli(&server, &["get", "/app"]).as_deref(), Ok("v1"));
    assert_eq!(zkcli(&server, &["set", "/app", "v2"]).as_deref(), Ok(""));
    let (status, refused) = start_refused(&scratch.join("other"), &[&said]);
    assert!(!status.success());
    assert_one_sentence(&refused, "is in use by the process with pid ");
    server.kill();

    let server = Server::start(&root, &[&said]);
    assert_eq!(zkcli(&server, &["get", "/app"]).as_deref(), Ok("v2"));
    assert!(!in_root.exists());
    assert_eq!(server.terminate().code(), Some(0));
}

/// Threads of the server by what their names begin with.
#[cfg(target_os = "linux")]
fn threads(server: &Server, prefix: &str) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.child.id())).expect("the process is there");
    // One that ends meanwhile has no name any more.
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with(prefix)).count()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_update_of_the_configuration_starts_and_ends_threads() {
    let scratch = Scratch::new("update-threads");
    let write = |counts: [&str; 3]| {
        let keys = [
            "hbase.regionserver.thread.compaction.small",
            "hbase.regionserver.thread.compaction.large",
            "hbase.hstore.flusher.count",
        ];
        let property = |(key, value)| format!("<property><name>{key}</name><value>{value}</value></property>");
        let properties: String = keys.into_iter().zip(counts).map(property).collect();
        let site = format!("<configuration>{properties}</configuration>");
        std::fs::write(scratch.join("hbase-site.xml"), site).expect("written");
    };
    write(["1", "1", "2"]);
    let mut command = crate::common::command(&scratch.join("data"), &[]);
    command.arg("--config").arg(&scratch.0);
    let server = Server::run(command);
    let admin = Client::connect(server.region_address(), "AdminService", ClientOptions::default()).await;
    let admin = admin.expect("the region server takes connections");
    for counts in [[1, 1, 2], [4, 2, 5], [2, 1, 1]] {
        write(counts.map(|count| ["0", "1", "2", "3", "4", "5"][count]));
        let update = pb::UpdateConfigurationRequest::default();
        admin.call(Method::AdminUpdateConfiguration.info(), &update, None).await.expect("updated");
        // A thread gets its name as it begins, and is gone a moment after it was told to.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        loop {
            let now = ["compact-s-", "compact-l-", "flusher-"].map(|prefix| threads(&server, prefix));
            if now == counts {
                break;
            }
            assert!(std::time::Instant::now() < deadline, "{now:?} threads, not {counts:?}");
            std::thread::yield_now();
        }
    }
}

#[test]
fn basalt_sql_becomes_the_program_of_that_name_for_the_configured_cluster() {
    use std::os::unix::fs::PermissionsExt;

    let scratch = Scratch::new("sql-program");
    let program = scratch.join("basalt-sql");
    std::fs::write(&program, "#!/bin/sh\necho \"$BASALT_CLUSTER $*\"\nexit 3\n").expect("written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("it may run");
    let run = |told: Option<&str>, words: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_basalt"));
        command.env_remove("HBASE_CONF_DIR").env_remove("BASALT_CLUSTER").env("PATH", &scratch.0);
        command.envs(told.map(|cluster| ("BASALT_CLUSTER", cluster)));
        let output = command.args(words).output().expect("the binary runs");
        (String::from_utf8_lossy(&output.stdout).trim().to_owned(), output.status.code())
    };
    let words = ["-D", "hbase.zookeeper.quorum=a,b:7", "-D", "zookeeper.znode.parent=/x", "sql", "--nice", "5", "user"];
    assert_eq!(run(None, &words), ("hbase+zk://a:2181,b:7/x --nice 5 user".to_owned(), Some(3)));
    assert_eq!(run(Some("elsewhere:1"), &["sql"]), ("elsewhere:1".to_owned(), Some(3)));
}
