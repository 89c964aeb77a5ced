//! `basalt backup` and `basalt restore` against a server: what is restored is what was there.
#![allow(clippy::disallowed_methods, reason = "tests of tools work on real files and processes")]

use crate::common::tools::{basalt, text};
use crate::common::{Scratch, Server};
use fs::{Below, FilePath, MemVolume, Volume};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

/// A server whose cleaners delete at once what nobody holds, its root directory and a directory for backups.
struct Lab {
    scratch: Scratch,
    server: Server,
}

impl Lab {
    fn new(name: &str) -> Lab {
        Lab::of(Scratch::new(name), &[])
    }

    fn of(scratch: Scratch, more: &[&str]) -> Lab {
        let defines = [&["hbase.master.logcleaner.ttl=0", "hbase.master.hfilecleaner.ttl=0"], more].concat();
        let server = Server::start(&scratch.join("data"), &defines);
        Lab { scratch, server }
    }

    fn backups(&self) -> PathBuf {
        self.scratch.join("backups")
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let root = format!("hbase.rootdir={}", self.scratch.join("data").display());
        basalt(&self.server, &[&["-D", &root], arguments].concat())
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", text(&output));
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let last = said.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{arguments:?}: {said}: {error}"))
    }

    fn refused(&self, arguments: &[&str], wanted: &str) {
        let output = self.run(arguments);
        let said = text(&output);
        assert!(output.status.code() == Some(1) && said.contains(wanted), "{arguments:?}: {:?} {said}", output.status);
    }

    fn shell(&self, commands: &[&str]) -> String {
        crate::common::tools::shell(&self.server, commands)
    }

    /// All cells of a table, delete markers and all versions, as the shell shows them.
    fn cells(&self, table: &str) -> Vec<String> {
        let said = self.shell(&[&format!("scan '{table}', VERSIONS => 10")]);
        let cells: Vec<String> =
            said.lines().filter(|line| line.contains("column=")).map(|line| line.trim().to_owned()).collect();
        cells
    }

    /// A backup's id.
    fn create(&self, kind: &str, more: &[&str]) -> String {
        let made = self.json(&[&["backup", "create", kind, self.backups().to_str().expect("UTF-8")], more].concat());
        made["id"].as_str().expect("an id").to_owned()
    }

    fn restore(&self, id: &str, more: &[&str]) -> Value {
        self.json(&[&["restore", self.backups().to_str().expect("UTF-8"), id], more].concat())
    }

    fn clean(&self) {
        self.shell(&["cleaner_chore_run"]);
    }

    /// Loads one cell of family `f` in bulk.
    fn load(&self, table: &str, row: &str, value: &str) {
        let lines = self.scratch.join("lines.tsv");
        std::fs::write(&lines, format!("{row}\t{value}\n")).expect("written");
        let out = self.scratch.join("hfiles");
        let _ = std::fs::remove_dir_all(&out);
        let output = format!("importtsv.bulk.output={}", out.display());
        let columns = "importtsv.columns=HBASE_ROW_KEY,f:q";
        self.json(&["importtsv", "-D", columns, "-D", &output, table, lines.to_str().expect("UTF-8")]);
        let loaded = self.json(&["bulkload", out.to_str().expect("UTF-8"), table]);
        assert_eq!(loaded["files"], 1);
    }
}

/// The HFiles of a backup.
fn hfiles(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("readable") {
        let path = entry.expect("an entry").path();
        let is_hex = path.file_name().is_some_and(|name| name.to_string_lossy().len() >= 32);
        match path.is_dir() {
            true => found.extend(hfiles(&path)),
            false if is_hex => found.push(path),
            false => {}
        }
    }
    found.sort();
    found
}

#[test]
fn an_increment_finds_logs_that_are_in_a_wal_directory() {
    let scratch = Scratch::new("backup-wal-dir");
    let logs = format!("hbase.wal.dir={}", scratch.join("logs").display());
    let lab = Lab::of(scratch, &[&logs]);
    lab.shell(&["create 't', 'f'", "put 't', 'a', 'f:q', '1'"]);
    lab.create("full", &["-t", "t"]);
    lab.shell(&["put 't', 'b', 'f:q', '2'"]);
    let id = lab.create("incremental", &[]);
    lab.shell(&["disable 't'", "drop 't'"]);
    lab.restore(&id, &[]);
    let cells = lab.cells("t");
    assert!(cells.len() == 2 && cells[1].contains("value=2"), "{cells:?}");
}

#[test]
fn tables_are_restored_to_any_of_their_backups() {
    let lab = Lab::new("backup");
    lab.shell(&["create 't', {NAME => 'f', VERSIONS => 5}, 'g', SPLITS => ['m']", "create 'u', 'f'"]);
    let put = |table: &str, row: &str, column: &str, value: &str| {
        lab.shell(&[&format!("put '{table}', '{row}', '{column}', '{value}'")])
    };
    for (row, value) in [("a", "1"), ("b", "2"), ("n", "3"), ("z", "4")] {
        put("t", row, "f:q", value);
    }
    put("t", "a", "g:q", "other");
    lab.shell(&["flush 't'"]);
    put("t", "a", "f:q", "newer");
    put("u", "x", "f:q", "of u");
    lab.load("t", "c", "loaded before");
    let at_full = lab.cells("t");
    assert_eq!(at_full.len(), 7, "{at_full:?}");
    let backups = lab.backups();
    let place = backups.to_str().expect("UTF-8");
    lab.refused(&["backup", "create", "incremental", place, "-t", "t"], "create full comes first");
    let full = lab.create("full", &["-t", "t,u"]);
    assert_eq!(lab.shell(&["list_snapshots"]).matches("basalt_").count(), 0, "its snapshots are gone");

    // Puts, deletes of each kind, a load in bulk; files and logs that the server would delete if nobody held them.
    put("t", "b", "f:q", "changed");
    put("t", "d", "f:q", "new");
    lab.shell(&["delete 't', 'n', 'f:q'", "deleteall 't', 'z'"]);
    lab.load("t", "o", "loaded since");
    lab.shell(&["flush 't'", "major_compact 't'"]);
    for _ in 0..2 {
        lab.clean();
    }
    let at_first = lab.cells("t");
    let first = lab.create("incremental", &[]);
    let described = lab.json(&["backup", "describe", place, &first]);
    let of_t = described["tables"].as_array().expect("tables").iter().find(|image| image["table"] == "t");
    let of_t = of_t.expect("table t");
    assert_eq!((&of_t["parent"], &of_t["loaded_files"]), (&Value::from(full.as_str()), &Value::from(1)), "{of_t}");
    assert!(of_t["sequence_ids"].is_array() && of_t["times_ms"].is_array(), "{of_t}");

    put("t", "b", "f:q", "changed again");
    lab.shell(&["alter 't', 'h'", "put 't', 'e', 'h:q', 'of a later family'"]);
    let at_second = lab.cells("t");
    let second = lab.create("incremental", &["-t", "t"]);
    put("t", "b", "f:q", "after all of them");

    let verified = lab.json(&["backup", "verify", place]);
    assert_eq!((&verified["backups"], &verified["wrong"]), (&Value::from(3), &Value::from(0)), "{verified}");
    lab.refused(&["restore", place, &first, "-t", "t"], "table t is there");
    assert_eq!(lab.restore(&second, &["-t", "t", "-m", "t2", "-c"])["restored"], false);
    assert!(!lab.shell(&["list"]).contains("t2"));

    // To a new name, each of them; over the table itself; and after it was dropped.
    for (id, name, wanted) in
        [(&full, "t_full", &at_full), (&first, "t_first", &at_first), (&second, "t_second", &at_second)]
    {
        lab.restore(id, &["-t", "t", "-m", name]);
        assert_eq!(&lab.cells(name), wanted, "{name}");
    }
    lab.restore(&first, &["-t", "t", "-o"]);
    assert_eq!(lab.cells("t"), at_first);
    lab.shell(&["disable 't'", "drop 't'", "disable 'u'", "drop 'u'"]);
    for _ in 0..2 {
        lab.clean();
    }
    lab.restore(&first, &[]);
    assert_eq!(lab.cells("t"), at_first);
    assert!(lab.cells("u")[0].contains("value=of u"));
    assert!(lab.shell(&["describe 't'"]).contains("VERSIONS => '5'"));
    lab.shell(&["major_compact 't'"]);
    lab.clean();
    assert_eq!(lab.cells("t"), at_first);

    // The table was made anew: what its logs say is of another one.
    lab.refused(&["backup", "create", "incremental", place, "-t", "t"], "a full backup is needed");
}

#[test]
fn increments_are_merged_and_what_others_need_is_not_deleted() {
    let lab = Lab::new("backup-merge");
    lab.shell(&["create 't', {NAME => 'f', VERSIONS => 3}", "put 't', 'a', 'f:q', '0'"]);
    let backups = lab.backups();
    let place = backups.to_str().expect("UTF-8");
    let full = lab.create("full", &[]);
    let mut ids = Vec::new();
    let mut states = Vec::new();
    for n in 1..=3 {
        lab.shell(&[
            &format!("put 't', 'a', 'f:q', '{n}'"),
            // The same cell each time: the last one counts.
            &format!("put 't', 'same', 'f:q', 'at {n}', 7"),
            &format!("put 't', 'row-{n}', 'f:q', '{n}'"),
        ]);
        if n > 1 {
            lab.shell(&[&format!("deleteall 't', 'row-{}'", n - 1)]);
        }
        states.push(lab.cells("t"));
        ids.push(lab.create("incremental", &[]));
    }
    lab.refused(&["backup", "delete", place, &ids[0]], "depend on what is to be deleted");
    lab.refused(&["backup", "merge", place, &ids[0], &ids[2]], "those between are to be merged, too");
    lab.refused(&["backup", "merge", place, &full, &ids[0]], "is a full backup");
    let merged = lab.json(&["backup", "merge", place, &ids[0], &ids[1]])["id"].as_str().expect("an id").to_owned();
    lab.refused(&["restore", place, &ids[1], "-m", "x"], "was merged into");
    for (id, wanted) in [(&merged, &states[1]), (&ids[2], &states[2])] {
        lab.restore(id, &["-m", "x", "-o"]);
        assert_eq!(&lab.cells("x"), wanted);
    }
    let listed = text(&lab.run(&["backup", "history", place]));
    assert_eq!(listed.lines().count(), 3, "{listed}");
    // Deleting the newest lets the next one begin where it began.
    lab.json(&["backup", "verify", place]);
    let output = lab.run(&["backup", "delete", place, &ids[2]]);
    assert!(output.status.success(), "{}", text(&output));
    lab.restore(&merged, &["-m", "x", "-o"]);
    assert_eq!(lab.cells("x"), states[1]);
    // With all of them goes the mark.
    let holds = lab.scratch.join("data").join("MasterData/basalt/backups");
    assert_eq!(std::fs::read_dir(&holds).expect("there").count(), 1);
    let output = lab.run(&["backup", "delete", place, &merged, &full]);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(std::fs::read_dir(&holds).expect("there").count(), 0);
}

#[test]
fn damage_is_named_before_anything_is_changed_and_what_was_broken_off_goes_on() {
    let lab = Lab::new("backup-damage");
    lab.shell(&["create 't', 'f'", "put 't', 'a', 'f:q', '1'"]);
    let backups = lab.backups();
    let place = backups.to_str().expect("UTF-8");
    let full = lab.create("full", &[]);
    lab.shell(&["put 't', 'b', 'f:q', '2'"]);
    let second = lab.create("incremental", &[]);
    let wanted = lab.cells("t");
    for id in [&full, &second] {
        let file = hfiles(&backups.join(id)).into_iter().next().expect("a file");
        let whole = std::fs::read(&file).expect("readable");
        let mut damaged = whole.clone();
        damaged[whole.len() / 2] ^= 1;
        let name = file.file_name().expect("a name").to_str().expect("UTF-8").to_owned();
        for bytes in [&damaged[..], &whole[..whole.len() - 1]] {
            std::fs::write(&file, bytes).expect("written");
            lab.refused(&["restore", place, &second, "-o"], &name);
            let verified = lab.run(&["backup", "verify", place]);
            assert!(verified.status.code() == Some(1) && text(&verified).contains(&name), "{}", text(&verified));
            assert_eq!(lab.cells("t"), wanted, "nothing was changed");
        }
        std::fs::write(&file, &whole).expect("written");
    }
    // A manifest that is damaged says so; a directory with the mark of one that is not done is no backup.
    let manifest = backups.join(&second).join("basalt-backup-manifest");
    let whole = std::fs::read(&manifest).expect("readable");
    std::fs::write(&manifest, &whole[..whole.len() - 1]).expect("written");
    lab.refused(&["restore", place, &full, "-o"], "is no manifest of a backup");
    std::fs::rename(&manifest, backups.join(&second).join("basalt-backup-unfinished")).expect("renamed");
    let listed = text(&lab.run(&["backup", "list", place]));
    assert!(listed.contains("unfinished") && listed.contains(&full), "{listed}");
    assert_eq!(lab.restore(&full, &["-m", "x"])["restored"], true);
    assert_eq!(lab.cells("x").len(), 1);
    // The next one begins where the last whole one ended.
    let third = lab.create("incremental", &["-t", "t"]);
    assert!(!backups.join(&second).exists(), "what an increment left is gone");
    lab.restore(&third, &["-t", "t", "-m", "y"]);
    assert_eq!(lab.cells("y"), wanted);

    lab.refused(&["backup", "create", "full", place, "-t", "none"], "there is no table none");
    lab.refused(&["backup", "create", "sideways", place], "it is full or incremental");
    // Another directory than the cluster's: its logs are not there.
    let elsewhere = format!("hbase.rootdir={}", lab.scratch.join("elsewhere").display());
    std::fs::create_dir(lab.scratch.join("elsewhere")).expect("made");
    lab.refused(&["backup", "create", "full", place, "-D", &elsewhere], "names another cluster's directory");
    lab.refused(&["backup", "describe", place, "backup_1"], "there is no backup backup_1");
    lab.refused(&["backup", "list", "/no/such/place"], "/no/such/place");
    let known = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bin/hbase");
    let ours = std::process::Command::new(&known)
        .args(["backup", "create", "full", "/x"])
        .env("BASALT", env!("CARGO_BIN_EXE_basalt"))
        .output()
        .expect("the script runs");
    assert!(ours.status.code() == Some(1) && text(&ours).contains("basalt backup"), "{}", text(&ours));
}

/// The tool is killed while it copies: the next call goes on, and the earlier backup can be restored meanwhile.
#[test]
fn a_full_backup_that_was_killed_goes_on_where_it_was() {
    let lab = Lab::new("backup-kill");
    lab.shell(&["create 't', 'f', SPLITS => ['b', 'c', 'd']"]);
    for row in ["a", "b", "c", "d"] {
        lab.shell(&[&format!("put 't', '{row}', 'f:q', '{}'", "x".repeat(2000))]);
    }
    lab.shell(&["flush 't'"]);
    let backups = lab.backups();
    let earlier = lab.create("full", &[]);
    let root = format!("hbase.rootdir={}", lab.scratch.join("data").display());
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_basalt"))
        .env_remove("HBASE_CONF_DIR")
        .args(["-D", &root, "-D", &format!("hbase.zookeeper.property.clientPort={}", lab.server.zk_port)])
        .args(["backup", "create", "full"])
        .arg(&backups)
        .args(["-w", "1"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the binary runs");
    // As soon as it has written down what it is doing.
    let is_begun = || {
        let dirs = std::fs::read_dir(&backups).into_iter().flatten().flatten();
        dirs.into_iter().any(|dir| dir.path().join("basalt-backup-unfinished").exists())
    };
    while !is_begun() && child.try_wait().expect("asked").is_none() {
        std::thread::yield_now();
    }
    child.kill().expect("killed");
    child.wait().expect("gone");
    lab.restore(&earlier, &["-m", "x"]);
    assert_eq!(lab.cells("x").len(), 4);
    let listed = || text(&lab.run(&["backup", "list", backups.to_str().expect("UTF-8")]));
    let was_met = listed().contains("unfinished");
    let progress = lab.run(&["backup", "progress", backups.to_str().expect("UTF-8")]);
    assert_eq!(progress.status.success() && text(&progress).contains(" progress="), was_met, "{}", text(&progress));
    let history = text(&lab.run(&["backup", "history", backups.to_str().expect("UTF-8")]));
    assert_eq!(history.lines().next().is_some_and(|line| line.contains("State=RUNNING")), was_met, "{history}");
    let done = lab.run(&["backup", "create", "full", backups.to_str().expect("UTF-8"), "-t", "t"]);
    assert!(done.status.success(), "{}", text(&done));
    assert_eq!(text(&done).contains("resuming"), was_met, "{}", text(&done));
    let after = lab.create("full", &["-t", "t"]);
    assert!(!listed().contains("unfinished"), "{}", listed());
    lab.restore(&after, &["-m", "y"]);
    assert_eq!(lab.cells("y"), lab.cells("x"));
    assert_eq!(lab.shell(&["list_snapshots"]).matches("basalt_").count(), 0, "no snapshot is left");
}

/// What a server that was killed wrote is in its logs alone; regions that were split have what their parents got; a backup that was deleted is not
/// gone on from.
#[test]
fn increments_hold_what_killed_servers_wrote_and_split_regions_got() {
    let mut lab = Lab::new("backup-crash");
    lab.shell(&["create 't', 'f', SPLITS => ['m']", "put 't', 'a', 'f:q', '1'", "put 't', 'c', 'f:q', 'x'"]);
    let full = lab.create("full", &[]);
    lab.shell(&["put 't', 'b', 'f:q', 'before the kill'", "delete 't', 'c', 'f:q'"]);
    lab.load("t", "d", "loaded");
    let lost = std::mem::replace(&mut lab.server, Server::start(&lab.scratch.join("unused"), &[]));
    lost.kill();
    let defines = ["hbase.master.logcleaner.ttl=0", "hbase.master.hfilecleaner.ttl=0"];
    lab.server = Server::start(&lab.scratch.join("data"), &defines);
    lab.shell(&["flush 't'", "put 't', 'e', 'f:q', 'after it'", "split 't', 'c'"]);
    while !lab.shell(&["list_regions 't'"]).contains("3 rows") {
        std::thread::yield_now();
    }
    lab.shell(&["put 't', 'bb', 'f:q', 'into a daughter'", "major_compact 't'"]);
    for _ in 0..2 {
        lab.clean();
    }
    let wanted = lab.cells("t");
    assert_eq!(wanted.len(), 5, "{wanted:?}");
    let first = lab.create("incremental", &[]);
    lab.restore(&first, &["-m", "x"]);
    assert_eq!(lab.cells("x"), wanted);

    // Without the newest the next one begins where the full one ended, as long as its logs are there, or says that they are not.
    let backups = lab.backups();
    let place = backups.to_str().expect("UTF-8");
    let output = lab.run(&["backup", "delete", place, &first]);
    assert!(output.status.success(), "{}", text(&output));
    let again = lab.run(&["backup", "create", "incremental", place, "-t", "t", "--json"]);
    match again.status.success() {
        true => {
            let made: Value = serde_json::from_slice(&again.stdout).expect("JSON");
            lab.restore(made["id"].as_str().expect("an id"), &["-t", "t", "-m", "y"]);
            assert_eq!(lab.cells("y"), wanted);
        }
        false => assert!(text(&again).contains("a full backup is needed"), "{}", text(&again)),
    }
    assert!(lab.restore(&full, &["-m", "z"])["restored"].as_bool().expect("said"));
    assert_eq!(lab.cells("z").len(), 2);
}

#[test]
fn sets_name_tables_and_repairs_end_what_was_broken_off_and_give_up_marks() {
    let lab = Lab::new("backup-sets");
    lab.shell(&["create 't', 'f'", "create 'u', 'f'", "put 't', 'a', 'f:q', '1'", "put 'u', 'a', 'f:q', '1'"]);
    let backups = lab.backups();
    let place = backups.to_str().expect("UTF-8");
    let said = |arguments: &[&str]| {
        let output = lab.run(&[&["backup"], arguments].concat());
        assert!(output.status.success(), "{arguments:?}: {}", text(&output));
        text(&output)
    };
    said(&["set", "add", place, "daily", "t,u"]);
    assert_eq!(said(&["set", "list", place]), "daily={t,u}\n");
    lab.refused(&["backup", "set", "remove", place, "daily", "t,x"], "table x is not in set");
    said(&["set", "remove", place, "daily", "u"]);
    assert_eq!(said(&["set", "describe", place, "daily"]), "daily={t}\n");
    said(&["set", "add", place, "gone", "u"]);
    assert_eq!(said(&["set", "delete", place, "gone"]), "Delete set gone OK.\n");
    lab.refused(&["backup", "set", "delete", place, "gone"], "Set gone does not exist");
    lab.refused(&["backup", "set", "describe", place, "gone"], "Set 'gone' does not exist.");
    lab.refused(&["backup", "create", "full", place, "-s", "gone"], "'gone' is either empty or does not exist");
    lab.refused(&["backup", "create", "full", place, "-s", "daily", "-t", "t"], "either backup set or list of tables");

    let of_set = lab.create("full", &["-s", "daily"]);
    let other = lab.create("full", &["-t", "u"]);
    let history = |more: &[&str]| said(&[&["history", place], more].concat());
    let all = history(&[]);
    let lines: Vec<&str> = all.lines().collect();
    assert!(
        lines.len() == 2 && lines[0].starts_with(&format!("{{ID={other},Type=FULL,Tables={{u}},State=COMPLETE,")),
        "{all}"
    );
    assert!(lines[1].ends_with(",Progress=100%}") && lines[1].contains(",Start time="), "{all}");
    assert_eq!((history(&["-n", "1"]), history(&["-t", "u"])), (format!("{}\n", lines[0]), format!("{}\n", lines[0])));
    assert_eq!(history(&["-s", "daily"]), format!("{}\n", lines[1]));
    lab.refused(&["backup", "progress", place], "No active backup sessions found.");
    assert_eq!(said(&["progress", place, &other]), format!("{other} progress=100%\n"));
    lab.refused(&["backup", "progress", place, "backup_9"], "No info was found for backup id: backup_9");
    lab.restore(&of_set, &["-s", "daily", "-m", "x"]);
    assert_eq!(lab.cells("x"), lab.cells("t"));

    // A deletion that was killed, and then the directory is moved: its mark stays where it was.
    let manifest = backups.join(&other).join("basalt-backup-manifest");
    std::fs::rename(&manifest, backups.join(&other).join("basalt-backup-unfinished")).expect("renamed");
    let repaired = said(&["repair", place]);
    assert!(repaired.contains(&format!("finished repair failed session: {other}, deletion")), "{repaired}");
    assert!(!backups.join(&other).exists());
    assert!(said(&["repair", place]).contains("no failed sessions found"));
    let moved = lab.scratch.join("moved");
    std::fs::rename(&backups, &moved).expect("moved");
    let there = moved.to_str().expect("UTF-8");
    lab.shell(&["put 't', 'b', 'f:q', '2'"]);
    let created = said(&["create", "incremental", there]);
    let advice = format!("basalt backup repair {there} --moved-from {place}");
    assert!(created.contains(&advice), "{created}");
    let marks = || std::fs::read_dir(lab.scratch.join("data/MasterData/basalt/backups")).expect("there").count();
    assert_eq!(marks(), 2);
    lab.refused(&["backup", "repair", there, "--moved-from", "/never/was"], "nothing was changed");
    lab.refused(&["backup", "repair", there, "--moved-from", there], "is this directory");
    let repaired = said(&["repair", there, "--moved-from", place]);
    assert!(repaired.contains(&format!("the mark of {place} is given up")) && marks() == 1, "{repaired}");
    lab.shell(&["put 't', 'c', 'f:q', '3'", "flush 't'"]);
    lab.clean();
    let created = said(&["create", "incremental", there]);
    assert!(!created.contains("--moved-from"), "{created}");
    let ids: Vec<String> =
        said(&["list", there]).lines().map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect();
    assert_eq!(ids.len(), 3, "{ids:?}");
    lab.json(&["restore", there, &ids[2], "-m", "y"]);
    assert_eq!(lab.cells("y"), lab.cells("t"));

    assert!(said(&["delete", there, "-k", "1"]).contains("Deleted 0 backups"));
    said(&["delete", there, "-l", &ids[2]]);
    let deleted = said(&["delete", there, "-k", "0"]);
    assert!(deleted.contains(&format!("{} is deleted", ids[0])) && marks() == 0, "{deleted}");
}

/// Directories of one memory, at `mem://host/...`: a file system that only the caller of the tools knows.
struct Memory(Arc<MemVolume>);

impl tools::places::Opener for Memory {
    fn open(&self, _: &base::Config, uri: &str) -> anyhow::Result<tools::places::Elsewhere> {
        let dir = uri.strip_prefix("mem://host/").unwrap_or_else(|| panic!("{uri}"));
        let volume = Arc::new(Below::new(self.0.clone(), FilePath::new(dir)));
        Ok(tools::places::Elsewhere { volume, uri: uri.to_owned(), claim: Arc::new(|| Ok(Box::new(()))) })
    }
}

impl Memory {
    /// The backups that are in `mem://host/backups`, oldest first.
    fn ids(&self) -> Vec<String> {
        let entries = self.0.list(&FilePath::new("backups")).expect("listed");
        entries.into_iter().map(|entry| entry.name).filter(|name| name.starts_with("backup_")).collect()
    }
}

/// The tools write and read through the volume alone; the server, which has no such file system, loads copies.
#[test]
fn backups_are_kept_on_a_file_system_that_the_caller_opens() {
    let lab = Lab::new("backup-elsewhere");
    let memory = Memory(Arc::new(MemVolume::new()));
    let mut config = base::Config::default();
    config.set("hbase.rootdir", format!("file://{}", lab.scratch.join("data").display()));
    config.set("hbase.zookeeper.property.clientPort", lab.server.zk_port.to_string());
    let words = |arguments: &[&str]| arguments.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let place = "mem://host/backups";
    let backup = |command: &[&str], more: &[&str]| {
        let ended = tools::backup::run(&memory, &config, &words(&[command, &[place], more].concat()));
        ended.map(|code| {
            assert_eq!(format!("{code:?}"), format!("{:?}", std::process::ExitCode::SUCCESS), "{command:?}")
        })
    };
    let restore = |id: &str, more: &[&str]| {
        tools::backup::restore(&memory, &config, &words(&[&[place, id], more].concat())).map(drop)
    };
    lab.shell(&["create 't', {NAME => 'f', VERSIONS => 3}, SPLITS => ['m']", "put 't', 'a', 'f:q', '1'"]);
    let error = backup(&["list"], &[]).expect_err("nothing is there").to_string();
    assert!(error.contains("directory of backups"), "{error}");
    backup(&["create", "full"], &[]).expect("made");
    let mut states = vec![lab.cells("t")];
    for n in 1..=2 {
        lab.shell(&[&format!("put 't', 'a', 'f:q', 'at {n}'"), &format!("put 't', 'z{n}', 'f:q', 'v'")]);
        lab.load("t", &format!("loaded-{n}"), "in bulk");
        states.push(lab.cells("t"));
        backup(&["create", "incremental"], &[]).expect("made");
    }
    let ids = memory.ids();
    assert_eq!(ids.len(), 3, "{ids:?}");
    backup(&["verify"], &[]).expect("whole");
    backup(&["describe"], &[&ids[1]]).expect("described");
    for (id, wanted) in ids.iter().zip(&states) {
        restore(id, &["-m", "x", "-o"]).expect("restored");
        assert_eq!(&lab.cells("x"), wanted, "{id}");
    }
    let staging = lab.scratch.join("data/staging");
    assert_eq!(std::fs::read_dir(&staging).map_or(0, Iterator::count), 0, "what was copied for the server is gone");
    let mark = lab.scratch.join("data/MasterData/basalt/backups");
    let marks: Vec<PathBuf> =
        std::fs::read_dir(&mark).expect("there").map(|entry| entry.expect("one").path()).collect();
    let said = std::fs::read_to_string(&marks[0]).expect("a mark");
    assert!(marks.len() == 1 && said.contains("place mem://host/backups\n"), "{said}");

    backup(&["merge"], &[&ids[1], &ids[2]]).expect("merged");
    let ids = memory.ids();
    assert_eq!(ids.len(), 2, "{ids:?}");
    restore(&ids[1], &["-m", "x", "-o"]).expect("restored");
    assert_eq!(lab.cells("x"), states[2]);
    let files = memory.0.all_files();
    let file = files.iter().find(|path| path.as_str().contains(&format!("{}/default/t/f/", ids[1]))).expect("an HFile");
    memory.0.flip_bit(file, 70, 1);
    let error = restore(&ids[1], &["-m", "x", "-o"]).expect_err("damaged").to_string();
    assert!(error.contains(&format!("mem://host/{file}")) && error.contains("nothing was changed"), "{error}");
    assert_eq!(lab.cells("x"), states[2]);
    backup(&["delete"], &[&ids[0], &ids[1]]).expect("deleted");
    assert!(memory.ids().is_empty() && std::fs::read_dir(&mark).expect("there").count() == 0);

    // HFiles anywhere are loaded where the server, too, finds them; the binary knows the local disk and HDFS.
    lab.refused(&["backup", "list", place], "knows the local disk and HDFS");
    lab.refused(&["bulkload", "s3a://bucket/hfiles", "t"], "knows the local disk and HDFS");
    let uri = format!("file://{}", lab.backups().display());
    lab.json(&["backup", "create", "full", &uri]);
    assert!(text(&lab.run(&["backup", "list", &uri])).contains("  full  "), "a file: URI is a path");
}
