//! The pages of a server process, and the commands around it: what they show is what is there.
#![allow(clippy::disallowed_methods, reason = "tests of a process work on real directories and sockets")]

use crate::common::tools::alone;
use crate::common::{Scratch, Server};
use crate::metrics::{connect, page, start, work};
use model::{FamilyDescriptor, Get, TableDescriptor, TableName};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_show_tables_regions_files_snapshots_procedures_and_threads() {
    let scratch = Scratch::new("pages");
    let server = start(&scratch);
    work(&server).await;
    let name = TableName::parse("watched").expect("legal");
    connect(&server).admin().snapshot("monday", &name).await.expect("taken");
    let table = page(&server, "/table.jsp?name=watched");
    assert!(table.contains("NAME =&gt; &#39;f&#39;") && table.matches("<tr title=").count() == 2, "{table}");
    let region = table.split("/region.jsp?name=").nth(1).and_then(|rest| rest.split('"').next()).expect("a region");
    let files = page(&server, &format!("/region.jsp?name={region}"));
    assert!(files.contains("whole") && files.contains("<td>f</td>"), "{files}");
    for (path, shown) in [
        ("/master-status", "watched"),
        ("/userSnapshots.jsp", "monday"),
        ("/procedures.jsp", "CreateTableProcedure"),
        ("/tablesDetailed.jsp", "watched"),
        ("/quotas.jsp", "No quota is set"),
        ("/rits.jsp", "Every region is where it belongs"),
        ("/processRS.jsp", "flusher-0"),
        ("/stacks", "basalt-worker"),
        ("/configuration?q=hbase.rootdir", "hbase-site.xml"),
        ("/hbck.jsp", "hbck"),
        ("/zk.jsp", "Active master address"),
        ("/dump", "CreateTableProcedure"),
        ("/conf?format=json", "hbase.rootdir"),
    ] {
        let begun = Instant::now();
        let body = page(&server, path);
        assert!(body.contains(shown), "{path} does not show {shown}: {body}");
        assert!(body.len() < 300_000 && begun.elapsed().as_millis() < 2000, "{path}: {} bytes", body.len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sizes_of_snapshots_follow_their_files_into_the_archive() {
    let scratch = Scratch::new("pages-snapshots");
    let server = start(&scratch);
    work(&server).await;
    let (connection, name) = (connect(&server), TableName::parse("watched").expect("legal"));
    let admin = connection.admin();
    admin.snapshot("monday", &name).await.expect("taken");
    let one = page(&server, "/snapshot.jsp?name=monday");
    assert!(one.contains("(0 in archive)") && one.contains("(100.00 % ") && one.contains("<td>ok</td>"), "{one}");
    admin.disable_table(&name).await.expect("disabled");
    admin.delete_table(&name).await.expect("deleted");
    // With another snapshot, what was measured a moment ago is not good enough.
    let other = TableName::parse("other").expect("legal");
    admin.create_table(&TableDescriptor::new(other.clone(), [FamilyDescriptor::new("f")]), &[]).await.expect("created");
    admin.snapshot("tuesday", &other).await.expect("taken");
    let sizes = page(&server, "/snapshotsStats.jsp");
    let row = sizes.split("<tr>").find(|row| row.contains("monday")).unwrap_or_else(|| panic!("no monday: {sizes}"));
    let cells: Vec<&str> = row.split("<td class=n>").skip(1).filter_map(|cell| cell.split("</td>").next()).collect();
    let [total, shared, shared_percent, _, archived, archived_percent, own] = cells[..] else { panic!("{row}") };
    assert_eq!((shared, shared_percent, archived_percent), ("0 B", "0.00", "100.00"), "{row}");
    assert!(total == archived && total == own && total != "0 B" && row.contains("<td>ok</td>"), "{row}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hot_key_is_named_at_once_and_still_after_a_restart() {
    let scratch = Scratch::new("pages-keys");
    let server = start(&scratch);
    work(&server).await;
    let connection = connect(&server);
    let t = connection.table(&TableName::parse("watched").expect("legal"));
    for n in 0..200 {
        let row = if n % 4 == 0 { format!("row-{n}") } else { "celebrity".to_owned() };
        t.get(&Get::new(row)).await.expect("read");
    }
    let shown = |server: &Server| {
        let body = page(server, "/keys?name=watched&measure=reads&span=1h");
        let (_, hottest) = body.split_once("Hottest keys").unwrap_or_else(|| panic!("no hottest keys: {body}"));
        assert!(body.contains("data:image/png;base64,") && hottest.contains("celebrity"), "{body}");
        // 150 of 209 rows: the others are those of `work`.
        let share = hottest.split(" %").next().and_then(|before| before.rsplit('>').next()).expect("a share");
        let share: f64 = share.parse().expect("a number");
        assert!((60.0..80.0).contains(&share), "{share} % in {hottest}");
    };
    shown(&server);
    let port = format!("hbase.regionserver.port={}", server.region_port);
    assert!(server.terminate().success());
    let again = Server::start(&scratch.0, &["hbase.master.info.port=0", &port]);
    shown(&again);
    drop(again);
    let off = ["hbase.master.info.port=0", "basalt.key.statistics.enabled=false"];
    let off = Server::start(&scratch.0, &off);
    assert!(page(&off, "/keys").contains("basalt.key.statistics.enabled is false"));
}

/// Sends a form; the head and the body of the answer.
fn post(server: &Server, path: &str, form: &str) -> (String, String) {
    let mut stream = TcpStream::connect(testkit::local(server.info_port.expect("pages"))).expect("it listens");
    let len = form.len();
    write!(stream, "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len}\r\n\r\n{form}").expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_owned(), body.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_level_that_is_set_on_a_page_has_an_effect_at_once() {
    let scratch = Scratch::new("pages-log");
    let server = start(&scratch);
    let form = page(&server, "/logLevel");
    let token = form.split("name=token value=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a token");
    let (head, _) = post(&server, "/logLevel", "log=basalt_rpc&level=DEBUG&token=0");
    assert!(head.starts_with("HTTP/1.1 403"), "{head}");
    let (head, body) = post(&server, "/logLevel", &format!("log=basalt_rpc&level=DEBUG&token={token}"));
    assert!(head.starts_with("HTTP/1.1 200") && body.contains("basalt_rpc=debug"), "{head}\n{body}");
    work(&server).await;
    let log = page(&server, "/logs/basalt.log");
    assert!(log.contains("DEBUG basalt_rpc"), "{log}");
    let page_of_log = page(&server, "/logs/");
    assert!(page_of_log.contains("basalt_rpc=debug from now on"), "{page_of_log}");
}

#[test]
fn init_writes_what_a_server_reads_and_never_over_what_is_there() {
    let scratch = Scratch::new("init");
    let (conf, data) = (scratch.join("conf").display().to_string(), scratch.join("data").display().to_string());
    let made = alone(&["init", &conf, "--data", &data]);
    assert!(made.status.success(), "{made:?}");
    let explained = alone(&["--config", &conf, "config", "explain", "hbase.rootdir"]);
    let said = String::from_utf8_lossy(&explained.stdout).into_owned();
    assert!(said.contains(&format!("now      {data}")), "{said}");
    let again = alone(&["init", &conf]);
    assert!(!again.status.success() && String::from_utf8_lossy(&again.stderr).contains("is there already"));
}

#[test]
fn doctor_looks_at_the_machine_and_finds_what_is_wrong() {
    let scratch = Scratch::new("doctor");
    let free = [
        "hbase.zookeeper.property.clientPort=0",
        "hbase.master.port=0",
        "hbase.regionserver.port=0",
        "hbase.master.info.port=0",
    ];
    let root = format!("hbase.rootdir={}", scratch.join("data").display());
    let run = |more: &[&str]| {
        let mut arguments = Vec::new();
        for define in free.iter().copied().chain([root.as_str()]).chain(more.iter().copied()) {
            arguments.extend(["-D", define]);
        }
        arguments.push("doctor");
        alone(&arguments)
    };
    let well = run(&[]);
    let said = String::from_utf8_lossy(&well.stdout).into_owned();
    assert!(well.status.success() && said.contains("disk sync") && said.contains("huge pages"), "{said}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("bound").port();
    let ill = run(&[&format!("hbase.master.port={port}"), "hbase.rotdir=/x"]);
    let said = String::from_utf8_lossy(&ill.stdout).into_owned();
    assert!(
        !ill.status.success() && said.contains("BAD   port") && said.contains("nothing reads hbase.rotdir"),
        "{said}"
    );
    assert_eq!(std::fs::read_dir(&scratch.0).expect("a directory").count(), 0, "it leaves nothing behind");
}

#[test]
fn completions_and_man_pages_know_every_command() {
    let scratch = Scratch::new("generate");
    for shell in ["bash", "zsh", "fish"] {
        let made = alone(&["generate", "completions", shell]);
        let text = String::from_utf8_lossy(&made.stdout).into_owned();
        assert!(
            made.status.success() && ["doctor", "thrift", "shell"].iter().all(|word| text.contains(word)),
            "{shell}"
        );
    }
    let made = alone(&["generate", "man", &scratch.0.display().to_string()]);
    assert!(made.status.success(), "{made:?}");
    for page in ["basalt.1", "basalt-dev.1", "basalt-doctor.1", "basalt-shell.1"] {
        assert!(std::fs::read_to_string(scratch.join(page)).is_ok_and(|text| text.starts_with(".ie")), "{page}");
    }
}
