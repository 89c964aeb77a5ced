//! Tools over a server: counters, exports and imports, copies, checks and repairs, HBase's words for them in `bin/hbase`.
#![allow(clippy::disallowed_methods, reason = "tests of tools work on real files and processes")]

use crate::common::tools::{basalt, basalt_with, json, shell, text};
use crate::common::{Scratch, Server};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

const FILL: &str = "300.times { |i| put 't', \"%s%03d\" % [i < 150 ? 'a' : 'z', i], 'f:q', \"v#{i}\", 1000 + i; put 't', \"%s%03d\" % [i < 150 ? 'a' : 'z', i], 'g:w', 'x' if i % 3 == 0 }";

#[test]
fn rows_are_counted_exported_imported_and_copied() {
    let scratch = Scratch::new("tools-jobs");
    let server = Server::start(&scratch.join("data"), &[]);
    shell(
        &server,
        &["create 't', {NAME => 'f', VERSIONS => 3}, 'g', SPLITS => ['m']", FILL, "delete 't', 'a000', 'g:w'"],
    );
    let rows = |arguments: &[&str]| json(&server, &[&["rowcounter", "--json"], arguments].concat())["ROWS"].clone();
    assert_eq!(rows(&["t"]), 300);
    assert_eq!(rows(&["t", "g"]), 99);
    assert_eq!(rows(&["t", "--range=a100,a110;z200,z205"]), 15);
    assert_eq!(rows(&["t", "f:q", "--starttime=1000", "--endtime=1010"]), 10);
    let wrong = basalt(&server, &["rowcounter", "t", "--expected-count=5"]);
    assert_eq!(wrong.status.code(), Some(1), "{}", text(&wrong));
    assert!(text(&wrong).contains("ROWS=300"), "{}", text(&wrong));
    let missing = basalt(&server, &["rowcounter", "none"]);
    assert!(!missing.status.success() && text(&missing).contains("no table none"), "{}", text(&missing));
    let cells = json(&server, &["cellcounter", "t", "--json", "--no-rows"]);
    assert_eq!((&cells["ROWS"], &cells["CELLS"], &cells["counts"]["f:q"]), (&300.into(), &399.into(), &300.into()));
    assert_eq!(cells["counts"]["Total Families Across all Rows"], 2);

    let dir = scratch.join("export");
    let place = dir.to_str().expect("UTF-8");
    let exported =
        json(&server, &["export", "-D", "hbase.mapreduce.include.deleted.rows=true", "t", place, "10", "--json"]);
    assert_eq!((&exported["rows"], &exported["files"]), (&300.into(), &2.into()));
    assert!(dir.join("_SUCCESS").is_file() && dir.join("part-m-00001").is_file());
    let again = basalt(&server, &["export", "t", place]);
    assert!(!again.status.success() && text(&again).contains("whole export already"), "{}", text(&again));
    shell(&server, &["create 'u', {NAME => 'f', VERSIONS => 3}, 'h'"]);
    let imported = json(&server, &["import", "-D", "HBASE_IMPORTER_RENAME_CFS=g:h", "u", place, "--json"]);
    assert_eq!(imported["rows"], 300);
    assert_eq!(json(&server, &["rowcounter", "--json", "u", "h"])["ROWS"], 99);
    let said = shell(&server, &["get 'u', 'a007', 'f:q'"]);
    assert!(said.contains("timestamp=1970-01-01T00:00:01.007, value=v7"), "{said}");

    // Damage is named with file and byte, and what is no export is refused.
    let part = dir.join("part-m-00000");
    let whole = std::fs::read(&part).expect("readable");
    for len in [3, 60, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&part, &whole[..len]).expect("written");
        let refused = basalt(&server, &["import", "-D", "HBASE_IMPORTER_RENAME_CFS=g:h", "u", place]);
        assert!(!refused.status.success() && text(&refused).contains("part-m-00000"), "{len}: {}", text(&refused));
    }
    std::fs::write(&part, b"SEQ\x06 nonsense").expect("written");
    assert!(!basalt(&server, &["import", "u", place]).status.success());

    shell(&server, &["create 'c', 'f', 'k'"]);
    let copied = json(&server, &["copytable", "--json", "--new.name=c", "--families=f,g:k", "--startrow=a100", "t"]);
    assert_eq!(copied["rows"], 200);
    assert_eq!(json(&server, &["rowcounter", "--json", "c", "k"])["ROWS"], 66);
    let itself = basalt(&server, &["copytable", "t"]);
    assert!(!itself.status.success() && text(&itself).contains("onto itself"), "{}", text(&itself));
}

#[test]
fn lines_become_rows_and_logs_are_played() {
    let scratch = Scratch::new("tools-lines");
    let server = Server::start(&scratch.join("data"), &[]);
    let file = scratch.join("people.csv");
    std::fs::write(&file, "r1,Ann,31\nr2,Bob\n,nobody,1\nr3,Cyd,33,too,many\nr4,Dot,34\r\n").expect("written");
    let place = file.to_str().expect("UTF-8");
    let columns = ["-D", "importtsv.separator=,", "-D", "importtsv.columns=HBASE_ROW_KEY,f:name,g:age"];
    let dry =
        basalt(&server, &[&["importtsv", "-D", "importtsv.dry.run=true"], &columns[..], &["people", place]].concat());
    assert!(text(&dry).contains("no table people"), "{}", text(&dry));
    let imported = basalt(&server, &[&["importtsv"], &columns[..], &["people", place, "--json"]].concat());
    assert_eq!(imported.status.code(), Some(1), "{}", text(&imported));
    let said: Value = serde_json::from_slice(&imported.stdout).expect("JSON");
    assert_eq!((&said["lines"], &said["bad_lines"]), (&3.into(), &2.into()));
    assert!(shell(&server, &["get 'people', 'r4'"]).contains("value=34"), "the end of a line is no part of it");
    let piped = basalt_with(&server, &[&["importtsv"], &columns[..], &["people", "-"]].concat(), b"r9,Zed,99\n");
    assert!(piped.status.success(), "{}", text(&piped));
    assert_eq!(json(&server, &["rowcounter", "--json", "people"])["ROWS"], 4);
    let strict = ["-D", "importtsv.skip.bad.lines=false"];
    let refused = basalt(&server, &[&["importtsv"], &strict[..], &columns[..], &["people", place]].concat());
    assert!(text(&refused).contains("line 3: No row key"), "{}", text(&refused));

    shell(&server, &["create 'copy', 'f', 'g'"]);
    let logs = scratch.join("data/WALs");
    let played = json(&server, &["walplayer", logs.to_str().expect("UTF-8"), "people", "copy", "--json"]);
    assert!(played["cells"].as_u64() >= Some(7), "{played}");
    assert_eq!(json(&server, &["rowcounter", "--json", "copy"])["ROWS"], 4);
}

#[test]
fn checks_find_what_is_wrong_and_repairs_are_asked_of_the_master() {
    let scratch = Scratch::new("tools-hbck");
    let data = scratch.join("data");
    {
        let server = Server::start(&data, &[]);
        shell(
            &server,
            &[
                "create 't', 'f', SPLITS => ['g', 'p']",
                "put 't', 'a', 'f:q', 'v'",
                "put 't', 'z', 'f:q', 'v'",
                "flush 't'",
                "create 'w', 'f'",
            ],
        );
        let checked = json(&server, &["hbck", "--json"]);
        assert_eq!((&checked["status"], checked["regions"].as_u64() >= Some(4)), (&"OK".into(), true), "{checked}");
        let state = basalt(&server, &["hbck", "setTableState", "t", "ENABLED"]);
        assert!(text(&state).contains("Previous state: ENABLED"), "{}", text(&state));
        let chore = basalt(&server, &["hbck", "runHbckChore"]);
        assert!(chore.status.success(), "{}", text(&chore));
        assert!(basalt(&server, &["hbck", "fixMeta"]).status.success());
        assert!(!basalt(&server, &["hbck", "setTableState", "t", "NONSENSE"]).status.success());
        assert!(!basalt(&server, &["hbck", "assigns"]).status.success());

        // The other small tools.
        let canary = basalt(&server, &["canary", "t"]);
        assert!(canary.status.success() && text(&canary).matches("Read from t on ").count() == 3, "{}", text(&canary));
        assert_eq!(basalt(&server, &["canary", "none"]).status.code(), Some(4));
        assert!(basalt(&server, &["canary", "-zookeeper"]).status.success());
        assert!(basalt(&server, &["canary", "-writeTable", "w", "t"]).status.success());
        let listed = text(&basalt(&server, &["zkcli", "ls", "/hbase"]));
        assert!(listed.contains("master") && listed.contains("rs"), "{listed}");
        let missing = basalt(&server, &["zkcli", "get", "/none"]);
        assert!(missing.status.code() == Some(1) && text(&missing).contains("does not exist"), "{}", text(&missing));
        let script = b"create /x data\nget /x\ncreate /x/y\nls -R /x\nset /x other\nget -s /x\ndelete /x\ndeleteall /x\nstat /x\n";
        let talked = text(&basalt_with(&server, &["zkcli"], script));
        for expected in ["Created /x\n", "data\n", "/x\n/x/y\n", "other\n", "dataVersion = 1", "nodes below it"] {
            assert!(talked.contains(expected), "{expected}: {talked}");
        }
        let points =
            text(&basalt(&server, &["regionsplitter", "--dry-run", "-c", "4", "-f", "f", "s", "HexStringSplit"]));
        assert_eq!(points, "40000000\n80000000\nc0000000\n");
        let made = basalt(&server, &["regionsplitter", "-c", "4", "-f", "f:g", "s", "DecimalStringSplit"]);
        assert!(made.status.success(), "{}", text(&made));
        assert!(shell(&server, &["get_splits 's'"]).contains("25000000"));
        let compacted = basalt(&server, &["majorcompactor", "--table", "t", "--sleep", "50"]);
        assert!(text(&compacted).contains("Compacted 3 regions of t"), "{}", text(&compacted));
        let compactor = |more: &[&str]| {
            text(&basalt(&server, &[&["majorcompactor", "--table", "t", "--sleep", "50"], more].concat()))
        };
        assert_eq!(compactor(&["--dryRun", "--servers", "2"]).matches("would compact").count(), 3);
        assert_eq!(compactor(&["--dryRun", "--numregions", "2"]).matches("would compact").count(), 2);
        assert_eq!(compactor(&["--dryRun", "--numservers", "0"]), "");
        assert!(compactor(&["--cf", "f", "--retries", "2", "--skipWait"]).contains("Compacted 3 regions of t"));
        // Those without a file were never compacted.
        let older = compactor(&["--minModTime", "1"]);
        assert!(older.contains("were compacted since") && !older.contains("Compacted 3"), "{older}");
        assert!(compactor(&["--ttl"]).contains("No family of t has a TTL"));
        let commands = ["create 'aged', {NAME => 'f', TTL => 86400}", "put 'aged', 'r', 'f:q', 'v'", "flush 'aged'"];
        let made = shell(&server, &commands);
        let aged = || text(&basalt(&server, &["majorcompactor", "--ttl", "--table", "aged", "--sleep", "50"]));
        let said = [aged(), aged()];
        // Its file was never compacted; and then a moment ago.
        assert!(said[0].contains("Compacted 1 regions of aged; 0 have no file that is due"), "{made} {said:?}");
        assert_eq!(said[1], "Compacted 0 regions of aged; 1 have no file that is due\n");
        let of_group = text(&basalt(&server, &["majorcompactor", "--rs_group", "default"]));
        assert!(of_group.contains("--ttl with --rs_group"), "{of_group}");
        let running = basalt(&server, &["clean", "--cleanZk", "--yes"]);
        assert!(!running.status.success() && text(&running).contains("stop it first"), "{}", text(&running));
    }
    let place = data.to_str().expect("UTF-8");
    let check = |more: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_basalt"))
            .env_remove("HBASE_CONF_DIR")
            .args([&["hbck", "--root", place, "--json"], more].concat())
            .output()
            .expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let kinds: Vec<String> = said
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
            .filter_map(|line| Some(line["kind"].as_str()?.to_owned()))
            .collect();
        (output.status.code(), kinds, text(&output))
    };
    let whole = check(&["--read"]);
    assert_eq!((whole.0, whole.1.len()), (Some(0), 0), "{}", whole.2);
    // A region's directory that goes is a hole; one that is nobody's, a file that is no HFile, and a link to nothing are named.
    let table = data.join("data/default/t");
    let regions: Vec<_> = std::fs::read_dir(&table)
        .expect("readable")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().is_some_and(|name| name.len() == 32))
        .collect();
    let with_file = regions.iter().find(|dir| files_in(&dir.join("f")).len() == 1).expect("a region with a file");
    std::fs::write(with_file.join("f/0123456789abcdef0123456789abcdef"), b"no HFile").expect("written");
    let link = "t=0123456789abcdef0123456789abcdef-0123456789abcdef0123456789abcdee";
    std::fs::write(with_file.join("f").join(link), b"").expect("written");
    std::fs::create_dir(table.join("0123456789abcdef0123456789abcdef")).expect("made");
    let empty = regions.iter().find(|dir| files_in(&dir.join("f")).is_empty()).expect("a region without files");
    std::fs::remove_dir_all(empty).expect("removed");
    let (code, mut kinds, said) = check(&[]);
    kinds.sort();
    let expected = ["HOLE_IN_REGION_CHAIN", "LINGERING_HFILELINK", "ORPHAN_HDFS_REGION", "UNREADABLE_FILE"];
    assert_eq!((code, kinds), (Some(1), expected.map(str::to_owned).to_vec()), "{said}");
    assert!(check(&["none"]).1 == ["NO_SUCH_TABLE"]);
}

fn files_in(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()));
    names.filter(|name| !name.starts_with('.')).collect()
}

#[test]
fn hbases_words_and_classes_lead_to_the_tools() {
    let bin = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../bin"));
    let hbase = |arguments: &[&str]| {
        let output = Command::new(bin.join("hbase"))
            .env("BASALT", env!("CARGO_BIN_EXE_basalt"))
            .env_remove("HBASE_CONF_DIR")
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .expect("the script runs");
        (output.status.code(), text(&output))
    };
    for (class, tool) in [
        ("org.apache.hadoop.hbase.io.hfile.HFile", "basalt hfile"),
        ("org.apache.hadoop.hbase.wal.WALPrettyPrinter", "basalt wal"),
        ("org.apache.hadoop.hbase.snapshot.ExportSnapshot", "basalt snapshot export"),
        ("org.apache.hadoop.hbase.snapshot.SnapshotInfo", "basalt snapshot info"),
        ("org.apache.hadoop.hbase.mapreduce.Export", "basalt export"),
        ("org.apache.hadoop.hbase.mapreduce.Import", "basalt import"),
        ("org.apache.hadoop.hbase.mapreduce.RowCounter", "basalt rowcounter"),
        ("org.apache.hadoop.hbase.mapreduce.CellCounter", "basalt cellcounter"),
        ("org.apache.hadoop.hbase.mapreduce.CopyTable", "basalt copytable"),
        ("org.apache.hadoop.hbase.mapreduce.ImportTsv", "basalt importtsv"),
        ("org.apache.hadoop.hbase.mapreduce.WALPlayer", "basalt walplayer"),
        ("org.apache.hadoop.hbase.tool.BulkLoadHFilesTool", "basalt bulkload"),
        ("org.apache.hadoop.hbase.tool.LoadIncrementalHFiles", "basalt bulkload"),
        ("org.apache.hadoop.hbase.mapreduce.HashTable", "basalt hashtable"),
        ("org.apache.hadoop.hbase.mapreduce.SyncTable", "basalt synctable"),
        ("org.apache.hadoop.hbase.util.CompressionTest", "basalt compressiontest"),
        ("org.apache.hadoop.hbase.util.RegionSplitter", "basalt regionsplitter"),
        ("org.apache.hadoop.hbase.util.RegionMover", "basalt regionmover"),
        ("org.apache.hadoop.hbase.util.HBaseFsck", "basalt hbck"),
        ("org.apache.hadoop.hbase.tool.CanaryTool", "basalt canary"),
        ("org.apache.zookeeper.ZooKeeperMain", "basalt zkcli"),
    ] {
        let (code, said) = hbase(&[class, "--help"]);
        assert!(
            code == Some(0) && said.contains(&format!("Usage: {tool}")) && said.contains("Examples:"),
            "{class}: {said}"
        );
    }
    let (code, said) = hbase(&["org.example.Nonsense"]);
    assert!(code == Some(1) && said.contains("org.example.Nonsense"), "{said}");
    for (command, instead) in
        [("backup", "basalt backup"), ("org.apache.hadoop.hbase.backup.RestoreDriver", "basalt restore")]
    {
        let (code, said) = hbase(&[command, "create"]);
        assert!(code == Some(1) && said.contains(instead), "{said}");
    }
    assert_eq!(hbase(&[]).0, Some(1));
    // The programs of one class of HBase's; and classes that print.
    let driver = "org.apache.hadoop.hbase.mapreduce.Driver";
    for (program, tool) in
        [("rowcounter", "rowcounter"), ("CellCounter", "cellcounter"), ("exportsnapshot", "snapshot export")]
    {
        let (code, said) = hbase(&[driver, program, "--help"]);
        assert!(code == Some(0) && said.contains(&format!("Usage: basalt {tool}")), "{program}: {said}");
    }
    let (code, said) = hbase(&[driver, "juggle"]);
    assert!(code == Some(255) && said.contains("Valid program names are"), "{said}");
    let value = |key: &str| hbase(&["org.apache.hadoop.hbase.util.HBaseConfTool", key]).1.trim().to_owned();
    assert_eq!((&*value("hbase.hregion.max.filesize"), &*value("no.such.key")), ("10737418240", "null"));
    let jars = std::env::temp_dir().join(format!("basalt-test-jars-{}", std::process::id()));
    std::fs::create_dir_all(&jars).expect("made");
    for name in ["hbase-client-2.6.4.jar", "hbase-client-2.6.4-tests.jar", "zookeeper-3.8.4.jar", "junit-4.13.jar"] {
        std::fs::write(jars.join(name), b"").expect("written");
    }
    let (code, said) = hbase(&["mapredcp", "-Dtmpjars=file:/x/mine.jar", jars.to_str().expect("UTF-8")]);
    std::fs::remove_dir_all(&jars).expect("removed");
    let names: Vec<&str> = said.trim().split(':').filter_map(|jar| jar.rsplit('/').next()).collect();
    assert_eq!((code, names.len()), (Some(0), 3), "{said}");
    assert!(
        names.contains(&"mine.jar")
            && names.contains(&"hbase-client-2.6.4.jar")
            && names.contains(&"zookeeper-3.8.4.jar"),
        "{said}"
    );
}

/// A script of `bin` with a server's environment.
fn script(name: &str, dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let bin = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../bin"));
    let output = Command::new(bin.join(name))
        .env("BASALT", env!("CARGO_BIN_EXE_basalt"))
        .env("HBASE_PID_DIR", dir)
        .env("HBASE_LOG_DIR", dir)
        .env("HBASE_CONF_DIR", dir)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the script runs");
    (output.status.code(), text(&output))
}

#[test]
fn daemons_start_answer_and_stop_by_hbases_scripts() {
    let scratch = Scratch::new("tools-daemon");
    let [zk, master, region] = testkit::free_ports().expect("ports");
    let properties = [
        ("hbase.rootdir", scratch.join("data").display().to_string()),
        ("hbase.zookeeper.property.clientPort", zk.to_string()),
        ("hbase.master.port", master.to_string()),
        ("hbase.regionserver.port", region.to_string()),
        ("hbase.master.info.port", "-1".to_owned()),
    ];
    let properties: String = properties
        .iter()
        .map(|(key, value)| format!("<property><name>{key}</name><value>{value}</value></property>"))
        .collect();
    std::fs::write(scratch.join("hbase-site.xml"), format!("<configuration>{properties}</configuration>"))
        .expect("written");
    let daemon = |arguments: &[&str]| script("hbase-daemon.sh", &scratch.0, arguments);
    assert_eq!(daemon(&["status", "master"]).0, Some(1));
    assert_eq!(daemon(&["stop", "master"]).0, Some(1));
    assert_eq!(daemon(&["nonsense"]).0, Some(1));
    let started = daemon(&["start", "master"]);
    assert_eq!(started.0, Some(0), "{}", started.1);
    assert_eq!(daemon(&["status", "master"]).0, Some(0));
    let again = daemon(&["start", "master"]);
    assert!(again.0 == Some(1) && again.1.contains("Stop it first"), "{}", again.1);
    // The client waits for the server.
    let made = script("hbase", &scratch.0, &["shell", "-e", "create 't', 'f'", "-e", "put 't', 'r', 'f:q', 'v'"]);
    assert_eq!(made.0, Some(0), "{}", made.1);
    let unknown = script("graceful_stop.sh", &scratch.0, &["nosuchhost"]);
    assert!(unknown.0 == Some(1) && unknown.1.contains("nosuchhost"), "{}", unknown.1);
    let host = script("hbase", &scratch.0, &["shell", "--json", "-e", "list_liveservers"]).1;
    let host =
        host.split("\"SERVERNAME\":\"").nth(1).and_then(|rest| rest.split(',').next()).expect("a server").to_owned();
    let stopped = script("graceful_stop.sh", &scratch.0, &[&host]);
    assert_eq!(stopped.0, Some(0), "{}", stopped.1);
    let _ = daemon(&["stop", "master"]);
    assert_eq!(daemon(&["status", "master"]).0, Some(1));
    let clean = script("hbase", &scratch.0, &["clean", "--cleanHdfs", "--yes"]);
    assert!(clean.0 == Some(0) && !scratch.join("data").exists(), "{}", clean.1);
}

#[test]
fn the_first_ten_minutes_of_the_guide_work_from_an_empty_directory() {
    let guide = include_str!("../../../docs/guide/first-ten-minutes.md");
    let scratch = Scratch::new("tools-guide");
    let server = Server::start(&scratch.join("basalt-data"), &[]);
    let lines: String =
        guide.lines().filter_map(|line| line.strip_prefix("> ")).map(|line| format!("{line}\n")).collect();
    for word in ["create ", "put ", "scan ", "snapshot ", "restore_snapshot "] {
        assert!(lines.contains(word), "the guide has no {word}");
    }
    let said = basalt_with(&server, &["shell", "-n"], lines.as_bytes());
    assert!(said.status.success(), "{}", text(&said));
    // What was deleted behind the snapshot is there again.
    let last = text(&said).rsplit("get 'books', 'row1'").next().unwrap_or_default().to_owned();
    assert!(last.contains("value=The Sea"), "{}", text(&said));
    let tools: Vec<&str> = guide.lines().filter_map(|line| line.strip_prefix("./target/release/basalt ")).collect();
    assert!(tools.len() >= 2, "the guide runs no tools");
    for tool in tools {
        let words: Vec<&str> =
            tool.split_whitespace().map(|word| if word == "--rows=100000" { "--rows=1000" } else { word }).collect();
        let ran = basalt(&server, &words);
        assert!(ran.status.success(), "{tool}: {}", text(&ran));
    }
}
