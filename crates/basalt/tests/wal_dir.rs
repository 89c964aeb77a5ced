//! Logs in a directory of their own, `hbase.wal.dir`: what was acknowledged is there after each kill and each change of the setting.
#![allow(clippy::disallowed_methods, reason = "tests of a process work on real directories")]

use crate::common::tools::shell;
use crate::common::{Scratch, Server, start_refused};
use std::path::{Path, PathBuf};

/// Files below a directory, without marks and locks.
fn files_below(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            found.extend(files_below(&path));
        } else if !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')) {
            found.push(path);
        }
    }
    found
}

fn expect_rows(server: &Server, rows: &[&str]) {
    let said = shell(server, &["scan 't'"]);
    for row in rows {
        assert!(said.lines().any(|line| line.trim_start().starts_with(&format!("{row} "))), "{row} is lost:\n{said}");
    }
}

fn put(server: &Server, row: &str) {
    shell(server, &[&format!("put 't', '{row}', 'f:q', '1'")]);
}

#[test]
fn logs_lie_in_the_wal_directory_and_follow_the_setting() {
    let scratch = Scratch::new("wal-dir");
    let [root, fast, faster] = ["root", "fast", "faster"].map(|name| scratch.join(name));
    let define = |dir: &Path| format!("hbase.wal.dir={}", dir.display());
    let (in_fast, in_faster) = (define(&fast), define(&faster));
    // However little is in the logs, it goes through files of recovered edits.
    let splits = "basalt.recovery.memory.fraction=0";

    // First without: the logs are the root's.
    let server = Server::start(&root, &[]);
    shell(&server, &["create 't', 'f', SPLITS => ['m']"]);
    put(&server, "a");
    server.kill();
    assert!(!files_below(&root.join("WALs")).is_empty());

    // They follow.
    let server = Server::start(&root, &[&in_fast, splits]);
    expect_rows(&server, &["a"]);
    put(&server, "n");
    assert_eq!(files_below(&root.join("WALs")), Vec::<PathBuf>::new());
    assert!(!files_below(&fast.join("WALs")).is_empty());
    let (status, said) = start_refused(&scratch.join("other"), &[&in_fast]);
    assert!(!status.success() && said.contains("in use by the process"), "{said}");
    server.kill();

    // What they are split into is beside them.
    let server = Server::start(&root, &[&in_fast, splits]);
    expect_rows(&server, &["a", "n"]);
    put(&server, "b");
    // Closed regions leave their last number there.
    shell(&server, &["disable 't'", "enable 't'"]);
    let has_number = |path: &PathBuf| path.to_string_lossy().contains("recovered.edits/");
    assert!(files_below(&fast.join("data/default/t")).iter().any(has_number), "{:?}", files_below(&fast));
    assert!(!files_below(&root.join("data")).iter().any(has_number), "{:?}", files_below(&root));
    server.kill();

    // Another root's, and one that is not there or not the same any more, are refused.
    let (status, said) = start_refused(&scratch.join("other"), &[&in_fast]);
    assert!(!status.success() && said.contains("did not put there"), "{said}");
    let away = scratch.join("away");
    std::fs::rename(&fast, &away).expect("unmounted");
    for defines in [vec![in_fast.as_str()], vec![], vec![in_faster.as_str()]] {
        let (status, said) = start_refused(&root, &defines);
        assert!(!status.success() && said.contains("mount it"), "{said}");
    }
    std::fs::create_dir(&fast).expect("an empty mount point");
    let (status, said) = start_refused(&root, &[&in_fast]);
    assert!(!status.success() && said.contains("not the directory that it was"), "{said}");
    std::fs::remove_dir_all(&fast).expect("removed");
    std::fs::rename(&away, &fast).expect("mounted");

    // Mounted elsewhere it is the same by its mark, and so it is by a second name.
    let moved = scratch.join("moved");
    std::fs::rename(&fast, &moved).expect("mounted elsewhere");
    let in_moved = define(&moved);
    let server = Server::start(&root, &[&in_moved]);
    expect_rows(&server, &["a", "n", "b"]);
    server.kill();
    std::os::unix::fs::symlink(&moved, &fast).expect("another name");
    let server = Server::start(&root, &[&in_fast]);
    expect_rows(&server, &["a", "n", "b"]);
    assert!(!files_below(&moved.join("WALs")).is_empty());
    server.kill();
    std::fs::remove_file(&fast).expect("the name");
    std::fs::rename(&moved, &fast).expect("back");

    // As HBase leaves both: without marks.
    for dir in [&root, &fast] {
        std::fs::remove_file(dir.join(".basalt.wal.dir")).expect("a mark");
    }
    let server = Server::start(&root, &[&in_fast]);
    expect_rows(&server, &["a", "n", "b"]);
    server.kill();

    // To another directory, then back into the root.
    let _ = std::fs::remove_dir_all(&faster);
    let server = Server::start(&root, &[&in_faster]);
    expect_rows(&server, &["a", "n", "b"]);
    assert!(files_below(&fast).is_empty() && !files_below(&faster.join("WALs")).is_empty());
    put(&server, "c");
    shell(&server, &["disable 't'", "enable 't'"]);
    put(&server, "d");
    assert!(server.terminate().success());
    let server = Server::start(&root, &[]);
    expect_rows(&server, &["a", "n", "b", "c", "d"]);
    assert!(files_below(&faster).is_empty() && !files_below(&root.join("WALs")).is_empty());
    shell(&server, &["disable 't'", "drop 't'"]);
    assert!(server.terminate().success());
}

#[test]
fn a_wal_directory_that_makes_no_sense_is_refused() {
    let scratch = Scratch::new("wal-dir-wrong");
    let root = scratch.join("root");
    let server = Server::start(&root, &[]);
    server.kill();
    let refused = |dir: &Path, why: &str| {
        let (status, said) = start_refused(&root, &[&format!("hbase.wal.dir={}", dir.display())]);
        assert!(!status.success() && said.contains(why), "{said}");
    };
    refused(&root.join("logs"), "WAL directories are not permitted to be under root directory");
    refused(root.parent().expect("a directory"), "has hbase.rootdir below it");
    refused(Path::new("s3a://bucket/logs"), "hbase.wal.dir = s3a://bucket/logs");
    let other = scratch.join("another-root");
    Server::start(&other, &[]).kill();
    refused(&other, "a root directory of its own");
    // The same directory is no other.
    let server = Server::start(&root, &[&format!("hbase.wal.dir={}", root.display())]);
    assert!(server.terminate().success());
}
