//! Options of tools and scripts that no other test gives: each is seen to do what it is for.
#![allow(clippy::disallowed_methods, reason = "tests of tools work on real files and processes")]

use crate::common::tools::{alone, basalt, json, said, shell, text};
use crate::common::{Scratch, Server};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn golden(path: &str) -> String {
    format!("{}/../../tests/golden/{path}", env!("CARGO_MANIFEST_DIR"))
}

fn script(name: &str, dir: &Path, arguments: &[&str]) -> Output {
    Command::new(format!("{}/../../bin/{name}", env!("CARGO_MANIFEST_DIR")))
        .env("BASALT", env!("CARGO_BIN_EXE_basalt"))
        .env("HBASE_PID_DIR", dir)
        .env("HBASE_LOG_DIR", dir)
        .env("HBASE_CONF_DIR", dir)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the script runs")
}

#[test]
fn a_log_is_filtered_by_rows_begun_in_its_middle_and_printed() {
    let path = golden("wal/plain.wal");
    let entries = |more: &[&str]| -> Vec<Value> {
        let output = alone(&[&["wal", "-j"], more, &[&path]].concat());
        assert!(output.status.success(), "{}", text(&output));
        serde_json::from_slice(&output.stdout).expect("a list")
    };
    let all = entries(&[]);
    let rows_of = |entries: &[Value]| -> Vec<String> {
        let actions = entries.iter().flat_map(|entry| entry["actions"].as_array().expect("a list"));
        actions.map(|action| action["row"].as_str().expect("a row").to_owned()).collect()
    };
    let row = rows_of(&all).into_iter().find(|row| row.len() > 1 && row.is_ascii()).expect("a row");
    let prefix = &row[..row.len() - 1];
    let found = rows_of(&entries(&["-f", prefix]));
    assert!(found.contains(&row) && found.iter().all(|found| found.starts_with(prefix)), "{prefix}: {found:?}");
    assert_eq!(found, rows_of(&entries(&["--rowPrefix", prefix])));
    // Begun behind the first entry there is one entry less.
    let printed = text(&alone(&["wal", &path]));
    let place = |line: &str| line.split("position: ").nth(1)?.split([',', ' ']).next()?.parse::<u64>().ok();
    let places: Vec<u64> = printed.lines().filter_map(place).collect();
    assert_eq!(places.len(), all.len(), "{printed}");
    let behind = places[0].to_string();
    assert_eq!(entries(&["-g", &behind]).len(), all.len() - 1, "the first ends at {behind}");
    assert_eq!(entries(&["--goto", "0"]).len(), all.len());
    let help = text(&alone(&["wal", "-h"]));
    assert!(help.contains("Usage: basalt wal") && help.contains("Examples:"), "{help}");
}

#[test]
fn files_are_named_by_options_and_by_their_region() {
    let scratch = Scratch::new("options-hfile");
    let data = scratch.join("data");
    let server = Server::start(&data, &[]);
    shell(&server, &["create 't', 'f'", "3.times { |i| put 't', \"r#{i}\", 'f:q', 'v' }", "flush 't'"]);
    let located = shell(&server, &["locate_region 't', 'r'"]);
    let region = located.split("NAME => '").nth(1).and_then(|rest| rest.split('\'').next()).expect("a name").to_owned();
    let root = format!("hbase.rootdir={}", data.display());
    let verbose = text(&alone(&["-D", &root, "hfile", "-v", "-e", "-r", &region]));
    assert!(verbose.contains("Scanning -> ") && verbose.contains("Scanned kv count -> 3"), "{verbose}");
    assert!(verbose.lines().any(|line| line.starts_with("K: r2/f:q/")), "{verbose}");
    let missing = alone(&["-D", &root, "hfile", "-r", "none,,1.0123456789abcdef0123456789abcdef."]);
    assert!(!missing.status.success(), "{}", text(&missing));
    let file = golden("hfile/mt-none-none.hfile");
    let by_option = text(&alone(&["hfile", "-p", "-m", "-f", &file]));
    assert!(by_option.contains("Trailer:\n") && by_option.contains("K: ") && by_option.contains(" V: "), "{by_option}");
    let counted = text(&alone(&["hfile", "-d", "-f", &file]));
    assert!(
        counted.contains("Key length:") && counted.len() > text(&alone(&["hfile", "-s", "-f", &file])).len(),
        "{counted}"
    );
}

#[test]
fn top_shows_what_is_asked_for() {
    let scratch = Scratch::new("options-top");
    let server = Server::start(&scratch.0, &[]);
    shell(&server, &["create 'small', 'f'", "create 'big', 'f', SPLITS => ['m']", "put 'big', 'a', 'f:q', 'v'"]);
    let top = |more: &[&str]| said(&server, &[&["top", "-b", "-n", "1"], more].concat());
    let tables = top(&["-m", "t", "-s", "+#REGION"]);
    let place = |table: &str| tables.find(table).unwrap_or_else(|| panic!("{table}: {tables}"));
    assert!(place("small") < place("big"), "{tables}");
    let backwards = top(&["-m", "t", "-s", "#REGION"]);
    assert!(backwards.find("big") < backwards.find("small"), "{backwards}");
    let filtered = top(&["-m", "r", "-i", "TABLE==big"]);
    assert!(filtered.contains("big") && !filtered.contains("small"), "{filtered}");
    let some = top(&["-m", "t", "-f", "TABLE,#REGION"]);
    assert!(some.contains("#REGION") && !some.contains("#REQ/S"), "{some}");
    let twice = said(&server, &["top", "-b", "-n", "2", "-d", "1", "-m", "n", "--json"]);
    let of_default = twice.lines().filter(|line| line.contains("default")).count();
    assert_eq!(of_default, 2, "{twice}");
    assert!(said(&server, &["top", "-O"]).contains("#REQ/S"));
    assert!(said(&server, &["top", "--help"]).contains("Examples:"));
    assert!(!basalt(&server, &["top", "-m", "nonsense"]).status.success());
}

#[test]
fn a_canary_sings_of_servers_patterns_and_failures() {
    let scratch = Scratch::new("options-canary");
    let server = Server::start(&scratch.0, &[]);
    shell(&server, &["create 'song', 'f', SPLITS => ['m']", "create 'silent', 'f'"]);
    let sings = |more: &[&str]| said(&server, &[&["canary"], more].concat());
    assert_eq!(sings(&["song"]).matches("Read from song").count(), 2);
    assert!(
        sings(&["-e", "so.*"]).matches("Read from song").count() == 2 && !sings(&["-e", "so.*"]).contains("silent")
    );
    let one = sings(&["-regionserver"]).matches("Read from ").count();
    let all = sings(&["-regionserver", "-allRegions"]).matches("Read from ").count();
    assert!(one >= 1 && all >= 3 && all > one, "{one} and {all}");
    let object = json(&server, &["canary", "-t", "60000", "-json", "silent"]);
    assert_eq!(object["table"], "silent", "{object}");
    // A region that is not open cannot be read: the others are, and whether it is a failure is what is asked for.
    let located = shell(&server, &["locate_region 'silent', 'x'"]);
    let region =
        located.split("ENCODED => ").nth(1).and_then(|rest| rest.split(',').next()).expect("a name").to_owned();
    shell(&server, &[&format!("unassign '{region}'")]);
    let hasty = ["canary", "-D", "hbase.client.retries.number=1", "-D", "hbase.client.pause=10"];
    for (more, code) in [
        (&["-f", "true"][..], 5),
        (&["-f", "false"], 0),
        (&["-f", "false", "-treatFailureAsError"], 5),
        (&["-f", "false", "-failureAsError"], 5),
        (&[], 5),
    ] {
        let output = basalt(&server, &[&hasty[..], more, &["silent", "song"]].concat());
        let said = text(&output);
        assert_eq!(output.status.code(), Some(code), "{more:?}: {said}");
        assert!(
            said.contains("Read from silent") && said.contains("failed") && said.contains("Read from song"),
            "{said}"
        );
    }
    // One that is slow is told, and is none.
    let slow = basalt(&server, &["canary", "-readTableTimeouts", "song=0", "song"]);
    assert!(slow.status.success(), "{}", text(&slow));
    // Into every region of a table for it.
    shell(&server, &["create 'hbase:canary', 'Test'"]);
    let written = said(&server, &["canary", "-writeSniffing", "-writeTableTimeout", "60000", "song"]);
    assert!(written.contains("Write from hbase:canary"), "{written}");
    let help = text(&alone(&["canary", "-help"]));
    assert!(help.contains("Usage: basalt canary"), "{help}");
    // It goes on until it is stopped.
    let port = format!("hbase.zookeeper.property.clientPort={}", server.zk_port);
    let mut child = Command::new(env!("CARGO_BIN_EXE_basalt"))
        .env_remove("HBASE_CONF_DIR")
        .args(["-D", &port, "canary", "-daemon", "-interval", "1", "song"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let lines = std::io::BufReader::new(child.stdout.take().expect("piped"));
    let songs = std::io::BufRead::lines(lines).map_while(Result::ok).filter(|line| line.contains("Read from song"));
    assert_eq!(songs.take(4).count(), 4, "two rounds of two regions");
    child.kill().and_then(|()| child.wait()).expect("stopped");
}

#[test]
fn snapshots_are_described_in_every_way() {
    let scratch = Scratch::new("options-snapshot");
    let data = scratch.join("data");
    {
        let server = Server::start(&data, &[]);
        shell(&server, &["create 't', 'f'", "put 't', 'r', 'f:q', 'v' * 3000", "snapshot 't', 's'"]);
    }
    let place = data.to_str().expect("UTF-8");
    let info = |more: &[&str]| {
        let output = alone(&[&["snapshot", "info", "--snapshot", "s", "--remote-dir", place], more].concat());
        assert!(output.status.success(), "{}", text(&output));
        text(&output)
    };
    assert!(info(&["--schema"]).contains("NAME => 'f'"), "{}", info(&["--schema"]));
    assert!(info(&["--stats"]).contains("1 HFiles ("), "{}", info(&["--stats"]));
    let (human, exact) = (info(&["--files"]), info(&["--files", "--size-in-bytes"]));
    assert!(human != exact && human.contains("k t/"), "{human}\n{exact}");
    let export = |target: &Path, more: &[&str]| {
        let target = target.to_str().expect("UTF-8");
        let words = ["snapshot", "export", "--snapshot", "s", "--copy-from", place, "--copy-to", target, "--json"];
        alone(&[&words[..], more].concat())
    };
    let (first, second) = (scratch.join("first"), scratch.join("second"));
    let bare = ["--no-source-verify", "--no-target-verify", "--no-checksum-verify", "--reset-ttl", "--target", "s2"];
    let done = export(&first, &bare);
    assert!(done.status.success(), "{}", text(&done));
    let there = alone(&["snapshot", "info", "--snapshot", "s2", "--remote-dir", first.to_str().expect("UTF-8")]);
    assert!(there.status.success() && text(&there).contains("Name: s2"), "{}", text(&there));
    // The group of the process that runs this can always be given.
    let own =
        std::fs::metadata(&scratch.0).map(|m| std::os::unix::fs::MetadataExt::gid(&m)).expect("there").to_string();
    let user =
        std::fs::metadata(&scratch.0).map(|m| std::os::unix::fs::MetadataExt::uid(&m)).expect("there").to_string();
    let owned = export(&second, &["--chgroup", &own, "--chuser", &user, "--chmod", "600"]);
    assert!(owned.status.success(), "{}", text(&owned));
    let nobody = export(&scratch.join("third"), &["--chuser", "no-such-user-here"]);
    assert!(!nobody.status.success() && text(&nobody).contains("no-such-user-here"), "{}", text(&nobody));
}

#[test]
fn snapshots_are_taken_copied_from_and_imports_filtered() {
    let scratch = Scratch::new("options-filters");
    let server = Server::start(&scratch.0, &[]);
    shell(
        &server,
        &[
            "create 't', 'f', 'g'",
            "put 't', 'a', 'f:q', '1'",
            "put 't', 'ab', 'f:q', '2'",
            "put 't', 'ab', 'g:r', '3'",
            "put 't', 'b', 'f:q', '4'",
            "create 'copy', 'f', 'g'",
            "create 'filtered', 'f', 'g'",
        ],
    );
    let taken = json(&server, &["snapshot", "create", "-t", "t", "-n", "before", "-s", "FLUSH", "--json"]);
    assert_eq!(taken["snapshot"], "before", "{taken}");
    said(&server, &["snapshot", "create", "--table", "t", "--name", "quick", "--snapshot_type", "SKIPFLUSH"]);
    let listed = shell(&server, &["list_snapshots"]);
    assert!(listed.contains("before") && listed.contains("quick"), "{listed}");
    for (arguments, wanted) in [
        (&["snapshot", "create", "-t", "t", "-n", "before"][..], "already"),
        (&["snapshot", "create", "-t", "none", "-n", "x"], "none"),
        (&["snapshot", "create", "-t", "t"], "--name is needed"),
        (&["snapshot", "create", "-t", "t", "-n", "x", "-s", "SLOWLY"], "SLOWLY"),
    ] {
        let refused = basalt(&server, arguments);
        assert!(!refused.status.success() && text(&refused).contains(wanted), "{arguments:?}: {}", text(&refused));
    }

    // What the table holds now does not matter.
    shell(&server, &["deleteall 't', 'b'"]);
    let copied = json(&server, &["copytable", "--snapshot", "--new.name=copy", "before", "--json"]);
    assert_eq!(copied["rows"], 3, "{copied}");
    assert!(shell(&server, &["get 'copy', 'b'"]).contains("value=4"));
    assert!(!shell(&server, &["list"]).contains("basalt_copytable"), "what was cloned is gone");
    let nowhere = basalt(&server, &["copytable", "--snapshot", "--new.name=copy", "none"]);
    assert!(!nowhere.status.success() && text(&nowhere).contains("none"), "{}", text(&nowhere));

    let place = scratch.join("export");
    let place = place.to_str().expect("UTF-8");
    json(&server, &["export", "copy", place, "--json"]);
    let class = |name: &str| format!("import.filter.class=org.apache.hadoop.hbase.filter.{name}");
    let import = |name: &str, arguments: &str| {
        shell(&server, &["truncate 'filtered'"]);
        let filter = class(name);
        let arguments = format!("import.filter.args={arguments}");
        json(&server, &["import", "-D", &filter, "-D", &arguments, "filtered", place, "--json"])
    };
    let of_prefix = import("PrefixFilter", "a");
    assert_eq!((&of_prefix["rows"], &of_prefix["cells"]), (&2.into(), &3.into()), "{of_prefix}");
    let of_family = import("FamilyFilter", "=,binary:g");
    assert_eq!((&of_family["rows"], &of_family["cells"]), (&1.into(), &1.into()), "{of_family}");
    let unknown = class("NoSuchFilter");
    let unknown = basalt(&server, &["import", "-D", &unknown, "filtered", place]);
    assert!(!unknown.status.success() && text(&unknown).contains("NoSuchFilter"), "{}", text(&unknown));
}

#[test]
fn jobs_take_ranges_versions_and_filters() {
    let scratch = Scratch::new("options-jobs");
    let server = Server::start(&scratch.0, &[]);
    shell(
        &server,
        &[
            "create 't', {NAME => 'f', VERSIONS => 3}, 'g', SPLITS => ['r5']",
            "10.times { |i| 3.times { |v| put 't', \"r#{i}\", 'f:q', \"v#{v}\", 100 * i + v + 1 } }",
            "10.times { |i| put 't', \"r#{i}\", 'g:w', 'x', 5000 }",
            "delete 't', 'r7', 'g:w', 5000",
            "create 'all', {NAME => 'f', VERSIONS => 3}, {NAME => 'g', KEEP_DELETED_CELLS => 'TRUE'}",
            "create 'part', {NAME => 'f', VERSIONS => 3}, 'g'",
        ],
    );
    let cells = |table: &str, more: &[&str]| {
        json(&server, &[&["cellcounter", table, "--json", "--no-rows"], more].concat())["CELLS"].clone()
    };
    assert_eq!(cells("t", &[]), 39);
    assert_eq!(cells("t", &["--starttime=100", "--endtime=300"]), 6, "rows r1 and r2");
    let dir = scratch.join("counted");
    said(&server, &["cellcounter", "t", dir.to_str().expect("UTF-8"), "/", "^r[12]"]);
    let counted = std::fs::read_to_string(dir.join("part-r-00000")).expect("readable");
    assert!(counted.contains("Total ROWS\t2\n") && counted.contains("r1/f/q_Versions\t3\n"), "{counted}");
    assert_eq!(json(&server, &["rowcounter", "t", "--expectedCount=10", "--json"])["ROWS"], 10);
    let marked = json(&server, &["rowcounter", "t", "--countDeleteMarkers", "--json"]);
    assert_eq!(marked["ROWS_WITH_DELETE_MARKER"], 1, "{marked}");

    let copy = ["copytable", "--json", "--new.name=part", "--startrow=r2", "--stoprow=r8", "--versions=2"];
    let copied = json(&server, &[&copy[..], &["--starttime=1", "--endtime=400", "t"]].concat());
    assert_eq!((&copied["rows"], cells("part", &[])), (&2.into(), 4.into()), "r2 and r3, two versions of each");
    let address = format!("--peer.adr=127.0.0.1:{}:/hbase", server.zk_port);
    let all = json(&server, &["copytable", "--all.cells", &address, "--new.name=all", "t", "--json"]);
    assert_eq!((&all["rows"], cells("all", &[])), (&10.into(), 39.into()));
    let raw = shell(&server, &["scan 'all', {RAW => true, ROWPREFIXFILTER => 'r7'}"]);
    assert!(raw.contains("type=Delete"), "{raw}");

    // An export of some versions of some rows, for scans of few rows a call.
    let out = scratch.join("export");
    let place = out.to_str().expect("UTF-8");
    let caching = "hbase.client.scanner.caching=2";
    let exported = json(
        &server,
        &[
            "export",
            "-D",
            caching,
            "-D",
            "hbase.export.scanner.batch=1",
            "t",
            place,
            "3",
            "0",
            "400",
            "^r[0-3]",
            "--json",
        ],
    );
    assert_eq!(exported["rows"], 12, "each result has one cell");
    shell(&server, &["create 'back', {NAME => 'f', VERSIONS => 3}, 'g'"]);
    let imported = json(&server, &["import", "-D", "import.wal.durability=SKIP_WAL", "back", place, "--json"]);
    assert_eq!((&imported["cells"], cells("back", &[])), (&12.into(), 12.into()));
    let odd = basalt(&server, &["import", "-D", "import.wal.durability=NEVER", "back", place]);
    assert!(!odd.status.success() && text(&odd).contains("NEVER"), "{}", text(&odd));

    let lines = scratch.join("lines");
    std::fs::write(&lines, "a|1\nb\nc|3\n").expect("written");
    let lines = lines.to_str().expect("UTF-8");
    let separator = ["-D", "importtsv.separator=|", "-D", "importtsv.columns=HBASE_ROW_KEY,f:q"];
    let more =
        ["-D", "importtsv.timestamp=77", "-D", "importtsv.log.bad.lines=true", "-D", "importtsv.skip.bad.lines=true"];
    let made = basalt(&server, &[&["importtsv"], &separator[..], &more, &["lines", lines]].concat());
    assert!(made.status.code() == Some(1) && text(&made).contains("line 2: No delimiter: b"), "{}", text(&made));
    assert!(shell(&server, &["get 'lines', 'c'"]).contains("timestamp=1970-01-01T00:00:00.077, value=3"));
    let strict =
        basalt(&server, &[&["importtsv", "-D", "create.table=no"], &separator[..], &["nowhere", lines]].concat());
    assert!(!strict.status.success() && text(&strict).contains("no table nowhere"), "{}", text(&strict));

    // A log's edits of some time only.
    shell(&server, &["create 'played', {NAME => 'f', VERSIONS => 3}, 'g'"]);
    let logs = scratch.join("WALs");
    let logs = logs.to_str().expect("UTF-8");
    let none = json(&server, &["walplayer", "-D", "wal.end.time=1000", logs, "t", "played", "--json"]);
    assert_eq!(none["cells"], 0);
    let later = json(&server, &["walplayer", "-D", "wal.start.time=1000", logs, "t", "played", "--json"]);
    assert!(later["cells"].as_u64() >= Some(40), "{later}");
    assert_eq!(cells("played", &[]), 39);
    let files = scratch.join("of-logs");
    let output = format!("wal.bulk.output={}", files.display());
    let all = basalt(&server, &["walplayer", "-D", &output, logs]);
    assert!(!all.status.success() && text(&all).contains("exactly one table"), "{}", text(&all));
    shell(&server, &["create 'bulk', {NAME => 'f', VERSIONS => 3}, 'g'"]);
    let sorted = json(&server, &["walplayer", "-D", &output, logs, "t", "bulk", "--json"]);
    assert_eq!((&sorted["cells"], cells("bulk", &[])), (&later["cells"], 0.into()));
    json(&server, &["bulkload", files.to_str().expect("UTF-8"), "bulk", "--json"]);
    assert_eq!(cells("bulk", &[]), 39);
}

#[test]
fn scripts_of_operators_start_and_stop_the_server_and_the_launcher_takes_its_options() {
    let scratch = Scratch::new("options-scripts");
    let data = scratch.join("data");
    let mut properties = format!("<property><name>hbase.rootdir</name><value>{}</value></property>", data.display());
    let keys = ["hbase.zookeeper.property.clientPort", "hbase.master.port", "hbase.regionserver.port"];
    for (key, port) in keys.iter().zip(testkit::free_ports::<3>().expect("ports")) {
        properties += &format!("<property><name>{key}</name><value>{port}</value></property>");
    }
    properties += "<property><name>hbase.master.info.port</name><value>-1</value></property>";
    std::fs::write(scratch.join("hbase-site.xml"), format!("<configuration>{properties}</configuration>"))
        .expect("written");
    let run = |name: &str, arguments: &[&str]| {
        let output = script(name, &scratch.0, arguments);
        (output.status.code(), text(&output))
    };
    assert_eq!(run("stop-hbase.sh", &[]).0, Some(1), "nothing runs yet");
    let started = run("start-hbase.sh", &[]);
    assert!(started.0 == Some(0) && started.1.contains("running master, logging to "), "{}", started.1);
    let again = run("start-hbase.sh", &[]);
    assert!(again.0 == Some(1) && again.1.contains("Stop it first"), "{}", again.1);
    let version = run("hbase", &["version"]);
    assert!(version.0 == Some(0) && version.1.contains("basalt ") && version.1.contains("2.6.4"), "{}", version.1);
    let place = scratch.0.to_str().expect("UTF-8");
    let by_config = run("hbase", &["--config", place, "shell", "-n", "-e", "create 'c', 'f'"]);
    assert!(by_config.0 == Some(0) && by_config.1.contains("Created table c"), "{}", by_config.1);
    for words in [&["--help"][..], &["-h"]] {
        let help = run("hbase", words);
        assert!(help.0 == Some(0) && help.1.contains("completebulkload"), "{}", help.1);
    }
    for words in [["shell", "--help"], ["shell", "-h"]] {
        let help = run("hbase", &words);
        assert!(help.0 == Some(0) && help.1.contains("basalt shell"), "{}", help.1);
    }
    assert!(run("hbase", &["classpath"]).1.trim_end().starts_with(place));
    assert!(run("hbase", &["hbtop", "-b", "-n", "1", "-m", "t"]).1.contains("TABLE"));
    assert!(run("hbase", &["zookeeper"]).1.contains("its own ZooKeeper"));
    // Its master's own words for it.
    let stopped = run("hbase", &["master", "stop"]);
    assert_eq!(stopped.0, Some(0), "{}", stopped.1);
    let _ = run("stop-hbase.sh", &[]);
    let started = run("start-hbase.sh", &[]);
    assert_eq!(started.0, Some(0), "{}", started.1);
    let stopped = run("stop-hbase.sh", &[]);
    assert!(stopped.0 == Some(0) && stopped.1.contains("stopping hbase"), "{}", stopped.1);
    let pid_files: Vec<PathBuf> = std::fs::read_dir(&scratch.0)
        .expect("readable")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "pid"))
        .collect();
    assert!(pid_files.is_empty(), "{pid_files:?}");
}

/// A master that started a whole cluster in its own process left the region servers beside it without one.
#[test]
fn where_a_cluster_is_distributed_the_launcher_starts_a_master_alone() {
    let scratch = Scratch::new("options-distributed");
    let property = "<property><name>hbase.cluster.distributed</name><value>true</value></property>";
    std::fs::write(scratch.join("hbase-site.xml"), format!("<configuration>{property}</configuration>"))
        .expect("written");
    for words in [["master", "start"], ["master", "stop"], ["master", "clear"]] {
        let output = script("hbase", &scratch.0, &words);
        let said = text(&output);
        // A build without ZooKeeper says so.
        let is_of_master = ["basalt master needs a ZooKeeper ensemble", "cannot lead a cluster"]
            .iter()
            .any(|words| said.contains(words));
        assert!(output.status.code() == Some(1) && is_of_master, "{said}");
    }
}

/// Whoever restarted a server that had just been killed was told to stop it first.
#[test]
fn a_process_that_has_ended_does_not_run_though_nobody_has_asked_for_its_end() {
    let scratch = Scratch::new("options-ended");
    let mut child = Command::new("true").spawn().expect("started");
    let stat = format!("/proc/{}/stat", child.id());
    while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        std::thread::yield_now();
    }
    let name = format!("hbase-{}-rest.pid", std::env::var("USER").unwrap_or_else(|_| "basalt".to_owned()));
    std::fs::write(scratch.join(&name), child.id().to_string()).expect("written");
    let output = script("hbase-daemon.sh", &scratch.0, &["status", "rest"]);
    assert!(output.status.code() == Some(1) && text(&output).contains("rest is not running"), "{}", text(&output));
    child.wait().expect("its end");
    std::fs::write(scratch.join(&name), std::process::id().to_string()).expect("written");
    let output = script("hbase-daemon.sh", &scratch.0, &["status", "rest"]);
    assert!(output.status.success() && text(&output).contains("rest is running"), "{}", text(&output));
}

/// Starts a gateway by its command on a free port and hands the line with which it says that it is ready, and where.
fn gateway(server: &Server, arguments: &[&str]) -> (std::process::Child, std::net::SocketAddr) {
    let port = format!("hbase.zookeeper.property.clientPort={}", server.zk_port);
    let mut child = Command::new(env!("CARGO_BIN_EXE_basalt"))
        .env_remove("HBASE_CONF_DIR")
        .args(["-D", &port])
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut line = String::new();
    let mut said = std::io::BufReader::new(child.stdout.take().expect("piped"));
    std::io::BufRead::read_line(&mut said, &mut line).expect("a line");
    let at = line.split("ready on ").nth(1).and_then(|rest| rest.trim().trim_end_matches('.').parse().ok());
    (child, at.unwrap_or_else(|| panic!("{arguments:?}: {line}")))
}

#[test]
fn gateways_start_by_hbases_words_with_their_options() {
    use std::io::{Read, Write};
    let scratch = Scratch::new("options-gateways");
    let server = Server::start(&scratch.0, &[]);
    let (mut rest, at) = gateway(&server, &["rest", "start", "-p", "0", "--readonly"]);
    let ask = |request: &str| {
        let mut socket = std::net::TcpStream::connect(("127.0.0.1", at.port())).expect("it listens");
        socket.write_all(request.as_bytes()).expect("asked");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("answered");
        answer
    };
    let listed = ask("GET /status/cluster HTTP/1.1\r\nHost: x\r\nAccept: text/plain\r\nConnection: close\r\n\r\n");
    assert!(listed.starts_with("HTTP/1.1 200") && listed.contains("1 live servers"), "{listed}");
    let refused = ask("DELETE /none/schema HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(refused.starts_with("HTTP/1.1 403") || refused.starts_with("HTTP/1.1 405"), "{refused}");
    rest.kill().and_then(|()| rest.wait()).expect("stopped");
    for (tool, compact) in [("thrift", false), ("thrift2", true)] {
        let more: &[&str] = if compact { &["-c", "-f"] } else { &["-b", "127.0.0.1"] };
        let (mut child, at) = gateway(&server, &[&[tool, "start", "-p", "0"], more].concat());
        assert!(compact || at.ip().is_loopback(), "{at}");
        std::net::TcpStream::connect(("127.0.0.1", at.port())).expect("it listens");
        child.kill().and_then(|()| child.wait()).expect("stopped");
    }
}

/// Scripts of operators without a cluster: `basalt` and `ssh` are scripts that write down what they were asked and answer what a cluster of three
/// servers would.
struct Stage {
    scratch: Scratch,
}

impl Stage {
    fn new(name: &str) -> Stage {
        let scratch = Scratch::new(name);
        std::fs::create_dir_all(scratch.join("bin")).expect("made");
        let stage = Stage { scratch };
        let servers =
            "{\"SERVERNAME\":\"h1,16020,1\"}\n{\"SERVERNAME\":\"h2,16020,2\"}\n{\"SERVERNAME\":\"h3,16020,3\"}\n";
        std::fs::write(stage.scratch.join("servers"), servers).expect("written");
        let here = stage.scratch.0.display();
        let answers = format!(
            "case \"$*\" in *list_liveservers*) cat '{here}/servers' ;; *'balance_switch(false)'*) echo true ;; \
             *'config get hbase.zookeeper.quorum'*) echo z1:2181,z2 ;; esac\n"
        );
        stage.program("basalt", &answers);
        // One host is out of order.
        stage.program("ssh", "case \"$*\" in *broken*) echo no route >&2; exit 255 ;; esac\necho there\n");
        std::fs::write(stage.scratch.join("regionservers"), "h1\nh2 # the old one\n").expect("written");
        std::fs::write(stage.scratch.join("backup-masters"), "m2\n").expect("written");
        stage
    }

    fn program(&self, name: &str, does: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.scratch.join("bin").join(name);
        let log = self.scratch.join("asked");
        let text = format!("#!/bin/sh\necho \"{name} $*\" >>'{}'\n{does}", log.display());
        std::fs::write(&path, text).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
    }

    /// Runs a script; its exit code, what it said, and what it asked of others, line by line.
    fn run(&self, name: &str, arguments: &[&str]) -> (Option<i32>, String, Vec<String>) {
        let asked = self.scratch.join("asked");
        let _ = std::fs::remove_file(&asked);
        let path = format!("{}:{}", self.scratch.join("bin").display(), std::env::var("PATH").expect("set"));
        let output = Command::new(format!("{}/../../bin/{name}", env!("CARGO_MANIFEST_DIR")))
            .env("BASALT", self.scratch.join("bin/basalt"))
            .env("PATH", path)
            .env("HBASE_SSH_OPTS", "-p 22")
            .env("HBASE_SLAVE_PARALLEL", "false")
            .env("USER", "op")
            .envs(["HBASE_PID_DIR", "HBASE_LOG_DIR", "HBASE_CONF_DIR"].map(|key| (key, &self.scratch.0)))
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .expect("the script runs");
        let asked = std::fs::read_to_string(&asked).unwrap_or_default();
        (output.status.code(), text(&output), asked.lines().map(str::to_owned).collect())
    }
}

#[test]
fn scripts_of_operators_reach_every_host_of_their_lists() {
    let stage = Stage::new("options-hosts");
    let (code, said, asked) = stage.run("regionservers.sh", &["uptime", "-p now"]);
    assert_eq!((code, said.as_str()), (Some(0), "h1: there\nh2: there\n"));
    assert_eq!(asked, ["ssh -p 22 h1 uptime -p\\ now", "ssh -p 22 h2 uptime -p\\ now"]);
    std::fs::write(stage.scratch.join("others"), "h1\nbroken\n").expect("written");
    let others = stage.scratch.join("others").display().to_string();
    let (code, said, _) = stage.run("regionservers.sh", &["--hosts", &others, "uptime"]);
    assert!(code == Some(1) && said.contains("broken: no route"), "{said}");
    assert_eq!(stage.run("regionservers.sh", &[]).0, Some(1), "it says how it is used");
    std::fs::write(&others, "localhost\n").expect("written");
    let (code, said, asked) = stage.run("regionservers.sh", &["--hosts", &others, "echo", "by itself"]);
    assert_eq!((code, said.as_str(), asked.len()), (Some(0), "localhost: by itself\n", 0));

    let conf = stage.scratch.0.display().to_string();
    let ends = |asked: &[String], with: &str| {
        asked.iter().all(|line| line.ends_with(&format!("/bin/hbase-daemon.sh --config {conf} {with}")))
    };
    let (code, _, asked) = stage.run("hbase-daemons.sh", &["start", "regionserver"]);
    assert!(code == Some(0) && asked.len() == 2 && ends(&asked, "start regionserver"), "{asked:?}");
    let (code, _, asked) = stage.run("hbase-daemons.sh", &["--config", &conf, "start", "master-backup"]);
    assert!(code == Some(0) && asked.len() == 1 && ends(&asked, "start master --backup"), "{asked:?}");
    assert!(asked[0].starts_with("ssh -p 22 m2 "), "{asked:?}");
    let (_, _, asked) = stage.run("master-backup.sh", &["echo", "master-backup"]);
    assert_eq!(asked, ["ssh -p 22 m2 echo master --backup"]);
    let (code, said, asked) = stage.run("zookeepers.sh", &["uptime"]);
    assert_eq!((code, said.as_str()), (Some(0), "z1: there\nz2: there\n"));
    assert_eq!(asked[1..], ["ssh -p 22 z1 uptime", "ssh -p 22 z2 uptime"]);

    // In the foreground the process takes the script's place.
    let (code, _, asked) = stage.run("local-regionservers.sh", &["foreground_start", "2", "3"]);
    let port = |line: &str, key: &str, port: u16| line.contains(&format!("-D hbase.{key}.port={port}"));
    assert!(code == Some(0) && asked.len() == 2 && asked[0].starts_with("basalt regionserver "), "{asked:?}");
    assert!(port(&asked[0], "regionserver", 16022) && port(&asked[0], "regionserver.info", 16032), "{asked:?}");
    assert!(port(&asked[1], "regionserver", 16023), "{asked:?}");
    assert_eq!(stage.run("local-regionservers.sh", &["start", "x"]).0, Some(1));
    let (code, _, asked) = stage.run("local-master-backup.sh", &["foreground_start", "1"]);
    assert!(code == Some(0) && asked[0].ends_with(" master start"), "{asked:?}");
    assert!(port(&asked[0], "master", 16001) && port(&asked[0], "master.info", 16011), "{asked:?}");
}

#[test]
fn scripts_of_operators_move_regions_away_before_a_server_stops() {
    let stage = Stage::new("options-graceful");
    let (code, said, asked) = stage.run(
        "graceful_stop.sh",
        &["--restart", "--reload", "--noack", "--maxthreads", "3", "--movetimeout", "60", "h2"],
    );
    assert_eq!(code, Some(0), "{said}");
    let at = |words: &str| {
        asked.iter().position(|line| line.contains(words)).unwrap_or_else(|| panic!("{words}: {asked:?}"))
    };
    let mover = |operation: &str| {
        format!("regionmover --regionserverhost h2:16020 --operation {operation} --noack --maxthreads 3 --timeout 60")
    };
    let order = [
        at("balance_switch(false)"),
        at(&mover("unload")),
        at("stop_regionserver 'h2,16020,2'"),
        at("hbase-daemon.sh restart regionserver"),
        at(&mover("load")),
        at("balance_switch true"),
    ];
    assert!(order.is_sorted(), "{asked:?}");
    let (code, _, asked) = stage.run("graceful_stop.sh", &["--nob", "--designatedfile", "/f", "--rest", "h1"]);
    assert_eq!(code, Some(0));
    let said = asked.join("\n");
    assert!(
        said.contains("--operation unload --designatedfile /f") && said.contains("hbase-daemon.sh stop rest"),
        "{said}"
    );
    assert!(!said.contains("balance_switch") && !said.contains("--operation load"), "{said}");
    let (code, said, _) = stage.run("graceful_stop.sh", &["nowhere"]);
    assert!(code == Some(1) && said.contains("no server of this name is alive"), "{said}");

    let (code, said, asked) = stage
        .run("rolling-restart.sh", &["--rs-only", "--graceful", "--maxthreads", "2", "--noack", "--movetimeout", "9"]);
    assert_eq!(code, Some(0), "{said}");
    let conf = stage.scratch.0.display().to_string();
    let wanted = format!(
        "basalt --config {conf} -D hbase.move.wait.max=9 admin rolling-restart --graceful --maxthreads 2 --noack --command ssh -p 22 {{host}} "
    );
    assert!(asked.len() == 1 && asked[0].starts_with(&wanted), "{asked:?}");
    assert!(asked[0].ends_with(&format!("/bin/hbase-daemon.sh --config {conf} restart regionserver")), "{asked:?}");
    let (code, said, _) = stage.run("rolling-restart.sh", &["--rs-only", "--master-only"]);
    assert!(code == Some(1) && said.contains("nothing to restart"), "{said}");

    // HBase's scripts in Ruby, as its manual has them.
    let (_, _, asked) = stage.run("hbase", &["org.jruby.Main", "bin/draining_servers.rb", "add", "h1:16020"]);
    assert_eq!(asked, ["basalt admin draining add h1:16020"]);
    let (_, _, asked) =
        stage.run("hbase", &["org.jruby.Main", "/opt/hbase/bin/region_mover.rb", "--maxthreads=2", "unload", "h1"]);
    assert_eq!(asked, ["basalt regionmover --maxthreads=2 --operation unload --regionserverhost h1"]);
    let (code, said, _) = stage.run("hbase", &["org.jruby.Main", "bin/region_status.rb"]);
    assert!(code == Some(1) && said.contains("no JRuby"), "{said}");
}
