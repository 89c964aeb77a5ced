//! A server whose files are on several disks: where they lie, what is refused, one directory again; the second level of the block cache over a restart.
#![allow(clippy::disallowed_methods, reason = "tests of a process work on real directories")]

use crate::common::tools::{alone, basalt, said, shell, text};
use crate::common::{Scratch, Server, start_refused};
use std::path::{Path, PathBuf};
use std::process::Output;

/// The root directory, a flash disk and a slow one.
struct Disks {
    _scratch: Scratch,
    root: PathBuf,
    flash: PathBuf,
    cold: PathBuf,
    defines: Vec<String>,
}

impl Disks {
    fn new(name: &str) -> Disks {
        let scratch = Scratch::new(name);
        let [root, flash, cold] = ["root", "flash", "cold"].map(|disk| scratch.join(disk));
        for disk in [&flash, &cold] {
            std::fs::create_dir(disk).expect("a disk");
        }
        let volumes = format!("basalt.volumes=flash:ssd:{}, cold:hdd:{}", flash.display(), cold.display());
        let places =
            ["wal=flash", "flush=flash", "minor=flash", "major=cold"].map(|p| format!("basalt.volumes.place.{p}"));
        let defines = [volumes].into_iter().chain(places).collect();
        Disks { _scratch: scratch, root, flash, cold, defines }
    }

    fn defines(&self) -> Vec<&str> {
        self.defines.iter().map(String::as_str).collect()
    }

    fn start(&self) -> Server {
        Server::start(&self.root, &self.defines())
    }

    fn tool(&self, words: &[&str]) -> Output {
        let root = format!("hbase.rootdir={}", self.root.display());
        let mut arguments = vec!["-D", &root, "volumes"];
        arguments.extend(words);
        alone(&arguments)
    }
}

fn files_on(disk: &Path) -> usize {
    std::fs::read_dir(disk.join("files")).map_or(0, Iterator::count)
}

/// Files of tables below the root that say that their bytes are elsewhere, and those that do not.
fn placed_and_plain(dir: &Path) -> (usize, usize) {
    let mut found = (0, 0);
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            let below = placed_and_plain(&path);
            found = (found.0 + below.0, found.1 + below.1);
        } else if std::fs::read(&path)
            .expect("a file")
            .starts_with(b"Basalt: the bytes of this file are on another volume")
        {
            found.0 += 1;
        } else {
            found.1 += 1;
        }
    }
    found
}

const ROWS: &[&str] = &["put 't', 'a', 'f:q', '1'", "put 't', 'b', 'f:q', '2'"];

#[test]
fn files_lie_where_they_were_put_survive_a_kill_and_become_one_directory_again() {
    let disks = Disks::new("tiers");
    let server = disks.start();
    shell(&server, &["create 't', 'f', {NAME => 'h', STORAGE_POLICY => 'HOT'}"]);
    shell(&server, ROWS);
    assert_eq!((files_on(&disks.flash), files_on(&disks.cold)), (1, 0), "the log");
    shell(&server, &["flush 't'", "put 't', 'c', 'f:q', '3'", "put 't', 'c', 'h:q', '4'", "flush 't'"]);
    assert_eq!((files_on(&disks.flash), files_on(&disks.cold)), (3, 0), "the log and two flushed files");
    let table = disks.root.join("data/default/t");
    assert_eq!(placed_and_plain(&table).0, 2, "the family with the policy HOT lies in the root");
    shell(&server, &["major_compact 't', 'f'"]);
    // The archive has the compacted ones until they are cleaned.
    let begun = std::time::Instant::now();
    while files_on(&disks.cold) == 0 {
        assert!(begun.elapsed().as_secs() < 60, "no major compaction");
        std::thread::yield_now();
    }
    shell(&server, &["put 't', 'd', 'f:q', '5'"]);
    server.kill();

    // Not without the volumes, nor with one that is missing, nor with another's.
    let (status, said) = start_refused(&disks.root, &[]);
    assert!(!status.success() && said.contains("basalt.volumes does not name"), "{said}");
    let away = disks.root.with_file_name("away");
    std::fs::rename(&disks.cold, &away).expect("unmounted");
    let (status, said) = start_refused(&disks.root, &disks.defines());
    assert!(!status.success() && said.contains("is not there: mount it"), "{said}");
    std::fs::create_dir(&disks.cold).expect("an empty mount point");
    let (status, said) = start_refused(&disks.root, &disks.defines());
    assert!(!status.success() && said.contains("is the volume mounted?"), "{said}");
    std::fs::remove_dir_all(&disks.cold).expect("removed");
    std::fs::rename(&away, &disks.cold).expect("mounted");

    let scan = |server: &Server| {
        let said = shell(server, &["scan 't'"]);
        for (row, value) in [("a", "1"), ("b", "2"), ("c", "3"), ("c", "4"), ("d", "5")] {
            assert!(
                said.lines().any(|l| l.contains(&format!(" {row} ")) && l.contains(&format!("value={value}"))),
                "{said}"
            );
        }
    };
    let server = disks.start();
    scan(&server);
    let said = text(&disks.tool(&["status"]));
    assert!(said.contains("tier flash (ssd)") && said.contains("tier cold (hdd)"), "{said}");
    let refused = disks.tool(&["gather"]);
    assert!(!refused.status.success() && text(&refused).contains("in use by the process"), "{}", text(&refused));
    assert!(server.terminate().success());

    let checked = disks.tool(&["check", "--remove-nameless"]);
    assert!(checked.status.success() && text(&checked).contains(" 0 of them missing"), "{}", text(&checked));
    let gathered = disks.tool(&["gather"]);
    assert!(gathered.status.success(), "{}", text(&gathered));
    assert_eq!((files_on(&disks.flash), files_on(&disks.cold), placed_and_plain(&disks.root).0), (0, 0, 0));
    assert!(
        !disks.root.join(".basalt.volumes").exists() && text(&disks.tool(&["status"])).contains("no files on other")
    );
    let server = Server::start(&disks.root, &[]);
    scan(&server);
    assert!(server.terminate().success());
}

#[test]
fn a_table_comes_to_another_tier_by_a_compaction_and_new_files_follow() {
    let disks = Disks::new("tiers-move");
    let server = disks.start();
    shell(&server, &["create 't', {NAME => 'f'}, {NAME => 'h'}"]);
    shell(&server, &[ROWS[0], ROWS[1], "put 't', 'c', 'h:q', '4'", "flush 't'"]);
    assert_eq!((files_on(&disks.flash), files_on(&disks.cold)), (3, 0), "the log and two flushed files");
    let moved = said(&server, &["admin", "move-to-tier", "--wait", "t", "f", "cold"]);
    assert!(moved.contains("1 regions of t, family f, are at cold, 0 of them without files"), "{moved}");
    assert_eq!(files_on(&disks.cold), 1, "its file and not that of the other family");
    shell(&server, &["put 't', 'd', 'f:q', '5'", "flush 't'"]);
    assert_eq!(files_on(&disks.cold), 2, "what is flushed goes there, too");
    let read = shell(&server, &["scan 't'"]);
    assert!(["value=1", "value=2", "value=4", "value=5"].iter().all(|value| read.contains(value)), "{read}");
    let refused = basalt(&server, &["admin", "move-to-tier", "t", "x", "cold"]);
    assert!(!refused.status.success() && text(&refused).contains("table t has no family x"), "{}", text(&refused));
    assert!(server.terminate().success());
}

/// The log in the root, flushes and compactions on a disk that takes 50 ms for each call.
#[test]
fn a_fast_log_over_a_slow_tier_slows_writers_down_and_refuses_none() {
    let mut disks = Disks::new("tiers-slow");
    disks.defines.retain(|define| !define.starts_with("basalt.volumes.place"));
    let places = ["flush", "minor", "major"].map(|kind| format!("basalt.volumes.place.{kind}=cold"));
    disks.defines.extend(places);
    disks.defines.extend(
        [
            "basalt.volumes.delay.for.tests=cold=50",
            "hbase.hregion.memstore.flush.size=2097152",
            "hbase.master.info.port=0",
        ]
        .map(str::to_owned),
    );
    let server = disks.start();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_basalt"))
        .arg("-D")
        .arg(format!("hbase.zookeeper.property.clientPort={}", server.zk_port))
        .args(["pe", "--nomapred", "--rows=700", "--valueSize=8192", "--autoFlush=true", "sequentialWrite", "8"])
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{}", text(&output));
    let page = crate::metrics::page(&server, "/jmx");
    let json: serde_json::Value = serde_json::from_str(&page).expect("JSON");
    let beans = json["beans"].as_array().expect("beans");
    let number = |name: &str| beans.iter().find_map(|bean| bean.get(name).and_then(serde_json::Value::as_f64));
    assert_eq!(number("exceptions.RegionTooBusyException"), Some(0.0));
    assert_eq!(number("blockedRequestCount"), Some(0.0));
    let waited_ms = number("updatesBlockedTime").expect("a number");
    assert!(waited_ms > 100.0, "more is written than the disk takes, so writers must wait: {waited_ms} ms");
    assert!(number("memstoreBytesFlushedPerSecond") > Some(0.0), "it was measured");
    let sync_us = beans.iter().flat_map(|bean| bean.as_object()).flatten().find_map(|(name, value)| {
        (name.starts_with("volume_cold_") && name.ends_with("_syncMedianMicros")).then(|| value.as_f64()).flatten()
    });
    assert!(sync_us >= Some(50_000.0), "the disk's syncs are timed: {sync_us:?}");
    assert!(server.terminate().success());
}

#[test]
fn memory_holds_no_only_copy_unless_it_may() {
    let disks = Disks::new("tiers-memory");
    let memory = format!("basalt.volumes=fast:ram:{}", disks.flash.display());
    let wal = "basalt.volumes.place.wal=fast";
    let (status, said) = start_refused(&disks.root, &[&memory, wal]);
    assert!(!status.success() && said.contains("the only copy of acknowledged writes"), "{said}");
    let (status, said) = start_refused(&disks.root, &["basalt.volumes=fast:tape:/x"]);
    assert!(!status.success() && said.contains("basalt.volumes"), "{said}");
    let (status, said) = start_refused(&disks.root, &[wal]);
    assert!(!status.success() && said.contains("basalt.volumes is not set"), "{said}");
    let may = "basalt.volumes.ram.may.lose.acknowledged.writes=true";
    let server = Server::start(&disks.root, &[&memory, wal, may]);
    assert_eq!(files_on(&disks.flash), 1);
    assert!(server.terminate().success());
}

#[test]
fn a_region_whose_disk_is_gone_does_not_open_and_the_others_do() {
    let disks = Disks::new("tiers-missing");
    let mut defines = disks.defines();
    defines.retain(|define| !define.contains("place.wal"));
    let server = Server::start(&disks.root, &defines);
    shell(&server, &["create 't', 'f'", "create 'u', {NAME => 'f', STORAGE_POLICY => 'HOT'}"]);
    shell(&server, &["put 't', 'a', 'f:q', '1'", "put 'u', 'a', 'f:q', '1'", "flush 't'", "flush 'u'"]);
    assert!(server.terminate().success());
    let away = disks.root.with_file_name("away");
    std::fs::rename(&disks.flash, &away).expect("unmounted");
    defines.push("basalt.volumes.may.be.missing=true");
    let server = Server::start(&disks.root, &defines);
    assert!(shell(&server, &["get 'u', 'a'"]).contains("value=1"));
    server.kill();
    std::fs::rename(&away, &disks.flash).expect("mounted");
    let server = Server::start(&disks.root, &defines);
    assert!(shell(&server, &["get 't', 'a'"]).contains("value=1"), "it is back");
    assert!(server.terminate().success());
}

#[test]
fn a_disk_that_is_taken_away_takes_its_regions_along_and_brings_them_back() {
    let mut disks = Disks::new("tiers-failing");
    disks.defines.push("hbase.master.info.port=0".to_owned());
    let server = disks.start();
    shell(&server, &["create 't', {NAME => 'f', STORAGE_POLICY => 'cold'}", "create 'u', 'f'"]);
    shell(&server, ROWS);
    shell(&server, &["put 'u', 'a', 'f:q', '3'", "flush 't'", "flush 'u'", "put 't', 'c', 'f:q', '4'"]);
    assert_eq!(files_on(&disks.cold), 1);
    let until = |what: &str| {
        let begun = std::time::Instant::now();
        while !crate::metrics::page(&server, "/jmx").contains(what) {
            assert!(begun.elapsed().as_secs() < 60, "{what} in vain");
            std::thread::yield_now();
        }
    };
    let away = disks.root.with_file_name("away");
    std::fs::rename(&disks.cold, &away).expect("unmounted");
    until("\"regionsWaitingForVolumes\": 1");
    let page = crate::metrics::page(&server, "/master-status");
    assert!(page.contains("<h2>Volumes</h2>") && page.contains("failed: "), "{page}");
    let said = text(&disks.tool(&["status"]));
    assert!(said.contains("does not say how its volumes are"), "it is not where the settings say: {said}");
    assert!(said.contains("MISSING: its directory is not there"), "{said}");
    let root = format!("hbase.rootdir={}", disks.root.display());
    let said = crate::common::tools::said(&server, &["-D", &root, "volumes", "status"]);
    assert!(said.contains("FAILED: ") && said.contains("1 regions are closed until a volume is back"), "{said}");
    assert!(shell(&server, &["scan 'u'"]).contains("value=3"), "others go on");
    // An empty mount point is not taken for it.
    std::fs::create_dir(&disks.cold).expect("a mount point");
    shell(&server, &["put 'u', 'b', 'f:q', '5'", "flush 'u'"]);
    assert_eq!(files_on(&disks.cold), 0);
    std::fs::remove_dir_all(&disks.cold).expect("unmounted");
    std::fs::rename(&away, &disks.cold).expect("mounted");
    until("\"regionsWaitingForVolumes\": 0");
    let said = shell(&server, &["scan 't'"]);
    assert!(["value=1", "value=2", "value=4"].iter().all(|value| said.contains(value)), "{said}");
    assert!(server.terminate().success());
}

/// A server that reads its volumes from a file, which may be written anew.
struct Online {
    scratch: Scratch,
    root: PathBuf,
    disks: [PathBuf; 2],
}

impl Online {
    fn new(name: &str) -> Online {
        let scratch = Scratch::new(name);
        let disks = ["one", "two"].map(|disk| scratch.join(disk));
        disks.iter().for_each(|disk| std::fs::create_dir(disk).expect("a disk"));
        Online { root: scratch.join("root"), scratch, disks }
    }

    /// What `basalt.volumes` says; the volumes are all of one tier, which has what is logged, flushed and compacted if there is any.
    fn write(&self, volumes: &[(usize, &str)]) {
        let property =
            |(key, value): (&str, &str)| format!("<property><name>{key}</name><value>{value}</value></property>");
        let said = volumes.iter().map(|(disk, more)| format!("fast:ssd:{}{more}", self.disks[*disk].display()));
        let said = said.collect::<Vec<_>>().join(", ");
        let mut properties = String::new();
        if !volumes.is_empty() {
            properties += &property(("basalt.volumes", &said));
            for kind in ["wal", "flush", "minor", "major"] {
                properties += &property((&format!("basalt.volumes.place.{kind}"), "fast"));
            }
        }
        let site = format!("<configuration>{properties}</configuration>");
        std::fs::write(self.scratch.join("hbase-site.xml"), site).expect("written");
    }

    fn start(&self) -> Server {
        self.start_with(&[])
    }

    fn start_with(&self, defines: &[&str]) -> Server {
        let mut command = crate::common::command(&self.root, defines);
        command.arg("--config").arg(&self.scratch.0);
        Server::run(command)
    }

    fn files(&self) -> [usize; 2] {
        [0, 1].map(|disk| files_on(&self.disks[disk]))
    }
}

#[test]
fn volumes_are_added_emptied_and_taken_out_while_the_server_runs() {
    let online = Online::new("tiers-online");
    online.write(&[]);
    let server = online.start();
    let update = || text(&basalt(&server, &["shell", "-e", "update_all_config"]));
    let updated = || {
        let said = update();
        assert!(!said.contains("ERROR"), "{said}");
    };
    shell(&server, &["create 't', 'f'", ROWS[0], "flush 't'"]);
    assert!(!online.root.join(".basalt.volumes").exists() && online.files() == [0, 0]);

    online.write(&[(0, "")]);
    updated();
    shell(&server, &[ROWS[1], "flush 't'", "put 't', 'c', 'f:q', '3'", "create 'u', 'f'", "put 'u', 'a', 'f:q', '4'"]);
    shell(&server, &["flush 'u'", "disable 'u'"]);
    assert_eq!(online.files(), [2, 0], "two flushed files");
    let directory = online.disks[0].display().to_string();
    online.write(&[]);
    let said = update();
    assert!(said.contains(" files are on the volume ") && said.contains("basalt admin drain-volume --wait"), "{said}");
    let said = text(&basalt(&server, &["admin", "drain-volume", "--wait", &directory]));
    assert!(said.contains("gets new files still: write :drain behind it"), "{said}");

    online.write(&[(0, ":drain"), (1, "")]);
    updated();
    let root = format!("hbase.rootdir={}", online.root.display());
    let status = || crate::common::tools::said(&server, &["-D", &root, "volumes", "status"]);
    let said = status();
    assert!(said.contains(&format!("this is what the server (pid {}) says", server.child.id())), "{said}");
    assert!(said.contains(&format!("to be emptied: basalt admin drain-volume --wait {directory} moves")), "{said}");
    let moved = crate::common::tools::said(&server, &["admin", "drain-volume", "--wait", &directory]);
    assert!(moved.contains(&format!("no file is on {directory} any more")), "{moved}");
    assert_eq!(online.files()[0], 0);
    assert!(online.files()[1] >= 2, "{:?}", online.files());
    let said = status();
    assert!(said.contains("to be emptied: nothing is left, it may be taken out of basalt.volumes"), "{said}");
    let said = text(&basalt(&server, &["admin", "drain-volume", "/data/other"]));
    assert!(said.contains("no server has a volume /data/other") && said.contains(&directory), "{said}");
    online.write(&[(1, "")]);
    updated();
    assert!(!online.disks[0].join(".basalt.volume").exists(), "it is nobody's");
    // It may be unmounted: nothing of it is open.
    let open = std::fs::read_dir(format!("/proc/{}/fd", server.child.id())).expect("its files");
    let open: Vec<PathBuf> = open.filter_map(|fd| std::fs::read_link(fd.expect("an entry").path()).ok()).collect();
    assert!(!open.iter().any(|file| file.starts_with(&online.disks[0])), "{open:?}");
    shell(&server, &["enable 'u'", "put 't', 'd', 'f:q', '5'"]);
    server.kill();

    let server = online.start();
    let rows = shell(&server, &["scan 't'", "scan 'u'"]);
    assert!(["=1", "=2", "=3", "=4", "=5"].iter().all(|value| rows.contains(&format!("value{value}"))), "{rows}");
    assert!(server.terminate().success());
}

/// The volume is slow, so that the server can be killed in the middle; the next one, at the same address, has not been asked to move anything.
#[test]
fn drain_volume_that_waits_does_not_take_a_server_that_was_started_again_for_one_that_is_done() {
    let online = Online::new("tiers-drain-restart");
    online.write(&[(0, "")]);
    let server = online.start();
    for table in ["t", "u", "v", "w"] {
        shell(&server, &[&format!("create '{table}', 'f'"), &format!("put '{table}', 'a', 'f:q', '1'")]);
        shell(&server, &[&format!("flush '{table}'")]);
    }
    assert!(server.terminate().success());
    online.write(&[(0, ":drain"), (1, "")]);
    let server = online.start_with(&["basalt.volumes.delay.for.tests=fast=250"]);
    let ports = [
        format!("hbase.zookeeper.property.clientPort={}", server.zk_port),
        format!("hbase.master.port={}", server.master_port),
        format!("hbase.regionserver.port={}", server.region_port),
    ];
    let directory = online.disks[0].display().to_string();
    let waits = std::process::Command::new(env!("CARGO_BIN_EXE_basalt"))
        .arg("-D")
        .arg(&ports[0])
        .args(["admin", "drain-volume", "--wait", &directory])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let root = format!("hbase.rootdir={}", online.root.display());
    let begun = std::time::Instant::now();
    while !crate::common::tools::said(&server, &["-D", &root, "volumes", "status"]).contains(" are left") {
        assert!(begun.elapsed().as_secs() < 60, "nothing is moved");
    }
    assert!(online.files()[0] > 0, "it is not done yet");
    server.kill();
    let defines: Vec<&str> = ports.iter().map(String::as_str).collect();
    let server = online.start_with(&defines);
    let output = waits.wait_with_output().expect("it ends");
    let said = text(&output);
    assert!(!output.status.success() && said.contains(&format!("files are left on {directory}, and ")), "{said}");
    assert!(said.contains("it was started again meanwhile. Run this command again"), "{said}");
    let moved = crate::common::tools::said(&server, &["admin", "drain-volume", "--wait", &directory]);
    assert!(moved.contains(&format!("no file is on {directory} any more")), "{moved}");
    assert_eq!(online.files()[0], 0);
    assert!(server.terminate().success());
}
