//! `basalt hfile`, `basalt wal` and `basalt snapshot` on files that HBase 2.6.4 wrote, on files of a server, and on damaged ones.
#![allow(clippy::disallowed_methods, reason = "tests of tools work on real files and processes")]

use crate::common::tools::{alone, said, shell, text};
use crate::common::{Scratch, Server};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;

fn golden(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden")).join(path)
}

fn json_lines(output: &Output) -> Vec<Value> {
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    lines.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"))).collect()
}

fn manifest(of: &str) -> Vec<Value> {
    let lines = std::fs::read_to_string(golden(of)).expect("readable");
    lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn hfiles_of_hbase_are_verified_and_described() {
    for file in manifest("hfile/manifest.jsonl") {
        let name = file["file"].as_str().expect("a name");
        let path = golden("hfile").join(name);
        let path = path.to_str().expect("UTF-8");
        if name == "aes.hfile" {
            let refused = alone(&["hfile", "--verify", path]);
            assert!(!refused.status.success() && text(&refused).contains("encryption"), "{}", text(&refused));
            continue;
        }
        let output = alone(&["hfile", "--verify", "-m", "-s", "--json", path]);
        assert!(output.status.success(), "{name}: {}", text(&output));
        let lines = json_lines(&output);
        let verified = lines.iter().find(|line| line["verified"] == true).expect("what came of it");
        assert_eq!(verified["cells"], file["cell_count"], "{name}");
        let meta = lines.iter().find(|line| line["trailer"].is_object()).expect("the trailer");
        for (ours, theirs) in [
            ("fileinfoOffset", "fileInfoOffset"),
            ("loadOnOpenDataOffset", "loadOnOpenOffset"),
            ("dataIndexCount", "dataIndexCount"),
            ("entryCount", "entryCount"),
            ("numDataIndexLevels", "numDataIndexLevels"),
            ("majorVersion", "major"),
            ("minorVersion", "minor"),
        ] {
            assert_eq!(meta["trailer"][ours], file["trailer"][theirs], "{name}: {ours}");
        }
        assert_eq!(meta["trailer"]["compressionCodec"], file["compression"], "{name}");
        let printed = alone(&["hfile", "-pbhm", path]);
        let said = text(&printed);
        assert!(printed.status.success() && said.contains("Block Headers:") && said.contains("Trailer:\n"), "{said}");
        let count = file["cell_count"].as_u64().expect("a number");
        assert!(said.ends_with(&format!("Scanned kv count -> {count}\n")), "{name}");
        assert_eq!(said.lines().filter(|line| line.starts_with("K: ")).count() as u64, count, "{name}");
    }
}

#[test]
fn a_row_of_an_hfile_is_found_and_what_is_missing_is_named() {
    let path = golden("hfile/mobref.hfile");
    let path = path.to_str().expect("UTF-8");
    let all = text(&alone(&["hfile", "-e", path]));
    let row = all.lines().find_map(|line| line.strip_prefix("K: ")?.split('/').next()).expect("a row");
    let found = text(&alone(&["hfile", "-e", "-w", row, path]));
    assert!(found.starts_with(&format!("K: {row}/")) && found.lines().count() >= 2, "{found}");
    assert!(found.lines().count() <= all.lines().count());
    let missing = alone(&["hfile", "-i", path]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing).contains("is missing referenced by cell"), "{}", text(&missing));
    // The file's directory is not called like its family.
    let family = alone(&["hfile", "-a", "-k", path]);
    assert!(
        text(&family).is_empty() || text(&family).contains("WARNING, filename does not match"),
        "{}",
        text(&family)
    );
}

#[test]
fn damaged_and_truncated_hfiles_are_refused_by_name_and_offset() {
    let scratch = Scratch::new("tools-hfile");
    let whole = std::fs::read(golden("hfile/mt-none-none.hfile")).expect("readable");
    let place = scratch.join("damaged");
    let path = place.to_str().expect("UTF-8");
    let verify = |bytes: &[u8]| {
        std::fs::write(&place, bytes).expect("written");
        let output = alone(&["hfile", "--verify", "-m", "-s", "-h", path]);
        (output.status.code(), text(&output))
    };
    for len in [0, 1, 100, whole.len() / 2, whole.len() - 1] {
        let (code, said) = verify(&whole[..len]);
        assert!(code == Some(1) && said.contains("damaged"), "{len} bytes: {code:?} {said}");
    }
    for at in [40, 5_000, whole.len() - 4_090] {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        let (code, said) = verify(&damaged);
        assert!(code == Some(1) && said.contains("damaged"), "byte {at}: {code:?} {said}");
    }
    assert_eq!(verify(&whole).0, Some(0));
    let none = alone(&["hfile", "-m", "/no/such/file"]);
    assert!(none.status.code() == Some(2) && text(&none).contains("/no/such/file"), "{}", text(&none));
    let wrong = alone(&["hfile", "--nonsense", path]);
    assert!(!wrong.status.success() && text(&wrong).contains("--nonsense"), "{}", text(&wrong));
    assert!(text(&alone(&["hfile", "--help"])).contains("Examples:"));
}

#[test]
fn logs_of_hbase_are_printed_filtered_and_verified() {
    for file in manifest("wal/manifest.jsonl") {
        let name = file["file"].as_str().expect("a name");
        let path = golden("wal").join(name);
        let path = path.to_str().expect("UTF-8");
        let output = alone(&["wal", "-j", "-p", path]);
        if name.starts_with("secure") {
            assert!(!output.status.success() && text(&output).contains("encrypt"), "{}", text(&output));
            continue;
        }
        assert!(output.status.success(), "{name}: {}", text(&output));
        let entries: Vec<Value> = serde_json::from_slice(&output.stdout).expect("a list");
        assert!(!entries.is_empty(), "{name}");
        let table = entries[0]["table"].as_str().expect("a table");
        let sequence = entries[0]["sequence"].as_str().expect("a number as a text");
        let only = alone(&["wal", "-j", "-t", table, "-s", sequence, path]);
        let only: Vec<Value> = serde_json::from_slice(&only.stdout).expect("a list");
        assert!(!only.is_empty() && only.iter().all(|entry| entry["sequence"] == sequence), "{name}");
        let none = alone(&["wal", "-j", "-r", "nosuchregion", path]);
        assert_eq!(String::from_utf8_lossy(&none.stdout), "[]\n", "{name}");
        let row = entries[0]["actions"][0]["row"].as_str().expect("a row");
        let rows = text(&alone(&["wal", "-k", "-w", row, path]));
        assert!(
            rows.lines().filter(|line| line.starts_with("row=")).all(|line| line == format!("row={row}")),
            "{rows}"
        );
        let verified = json_lines(&alone(&["wal", "--verify", "--json", path]));
        assert_eq!(verified[0]["entries"], entries.len(), "{name}");
        let said = text(&alone(&["wal", "-p", path]));
        assert!(said.contains("Sequence=") && said.contains("    value: ") && said.contains("position: "), "{said}");
    }
    // What HBase 2.6.4's WALPrettyPrinter -p prints of it, the names of the writer's classes aside.
    let expected = std::fs::read_to_string(golden("wal/plain.printed.txt")).expect("readable");
    let printed = alone(&["wal", "-p", golden("wal/plain.wal").to_str().expect("UTF-8")]);
    for (i, (ours, theirs)) in text(&printed).lines().zip(expected.lines()).enumerate() {
        assert_eq!(ours, theirs, "line {}", i + 1);
    }
    assert_eq!(text(&printed).lines().count(), expected.lines().count());
    let torn = alone(&["wal", golden("wal/plain.wal").to_str().expect("UTF-8"), "/no/such/log"]);
    assert!(!torn.status.success() && text(&torn).contains("/no/such/log"), "{}", text(&torn));
}

#[test]
fn a_snapshot_is_described_exported_imported_and_cloned_elsewhere() {
    let (source, target) = (Scratch::new("tools-snapshot-a"), Scratch::new("tools-snapshot-b"));
    let root = |scratch: &Scratch| format!("hbase.rootdir={}", scratch.0.display());
    {
        let server = Server::start(&source.0, &[]);
        shell(
            &server,
            &[
                "create 't', 'f', SPLITS => ['m']",
                "200.times { |i| put 't', \"%s%03d\" % [i.even? ? 'a' : 'z', i], 'f:q', 'v' * 100 }",
                "snapshot 't', 'before'",
                "deleteall 't', 'a000'",
                "major_compact 't'",
            ],
        );
        let info = alone(&["-D", &root(&source), "snapshot", "info", "--snapshot", "before", "--files"]);
        let said = text(&info);
        assert!(info.status.success() && said.contains("   Name: before\n") && said.contains("2 HFiles ("), "{said}");
    }
    let listed = json_lines(&alone(&["-D", &root(&source), "snapshot", "info", "--list-snapshots", "--json"]));
    assert_eq!((listed.len(), &listed[0]["table"]), (1, &Value::from("t")));
    let verified = alone(&["-D", &root(&source), "snapshot", "verify", "--snapshot", "before"]);
    assert!(verified.status.success(), "{}", text(&verified));

    let to = target.0.to_str().expect("UTF-8");
    let export = ["-D", &root(&source), "snapshot", "export", "--snapshot", "before", "--copy-to", to, "--json"];
    let exported = alone(&export);
    assert!(exported.status.success(), "{}", text(&exported));
    assert_eq!(json_lines(&exported)[0]["files"], 2);
    let again = alone(&export);
    assert!(!again.status.success() && text(&again).contains("already exists"), "{}", text(&again));
    let again = alone(&[&export[..], &["--overwrite"]].concat());
    assert_eq!(json_lines(&again)[0]["kept"], 2, "{}", text(&again));
    let from = source.0.to_str().expect("UTF-8");
    let imported = alone(&[
        "-D",
        &root(&target),
        "snapshot",
        "import",
        "--snapshot",
        "before",
        "--copy-from",
        from,
        "--target",
        "other",
        "--mappers",
        "2",
        "--bandwidth",
        "500",
        "--chmod",
        "640",
    ]);
    assert!(imported.status.success(), "{}", text(&imported));
    {
        let server = Server::start(&target.0, &[]);
        shell(
            &server,
            &[
                "clone_snapshot 'other', 'copy'",
                "raise 'rows' unless get_table('copy').count == 200",
                "clone_snapshot 'before', 'copy2'",
            ],
        );
    }
    // A file that is damaged or gone is found, and nothing is exported.
    let archive = target.join("archive/data/default/t");
    // Links to files are empty: only store files can be damaged.
    let is_store_file = |file: &PathBuf| std::fs::metadata(file).is_ok_and(|found| found.len() > 50);
    let file = files_below(&archive).into_iter().find(is_store_file).expect("a store file in the archive");
    let mut bytes = std::fs::read(&file).expect("readable");
    bytes[50] ^= 0xFF;
    std::fs::write(&file, &bytes).expect("written");
    let verify = |quick: &[&str]| {
        let target_root = root(&target);
        alone(&[&["-D", &target_root, "snapshot", "verify", "--snapshot", "before"], quick].concat())
    };
    assert_eq!((verify(&["--quick"]).status.code(), verify(&[]).status.code()), (Some(0), Some(1)));
    std::fs::remove_file(&file).expect("removed");
    let missing = verify(&["--quick"]);
    assert!(missing.status.code() == Some(1) && text(&missing).contains("missing"), "{}", text(&missing));
    let third = Scratch::new("tools-snapshot-c");
    let third_place = third.0.to_str().expect("UTF-8");
    let refused =
        alone(&["-D", &root(&target), "snapshot", "export", "--snapshot", "before", "--copy-to", third_place]);
    assert!(!refused.status.success() && text(&refused).contains("not whole"), "{}", text(&refused));
    assert!(files_below(&third.0).is_empty());
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

const DICTIONARY_KEY: &str = "hbase.io.compress.zstd.dictionary";

/// HBase's file and dictionary; then those of a server, found by the table's descriptor.
#[test]
fn files_that_are_packed_with_a_dictionary_are_read_with_it() {
    let (packed, dictionary) = (golden("hfile/zstd-dictionary.hfile"), golden("hfile/zstd.dictionary"));
    let (packed, dictionary) = (packed.to_str().expect("UTF-8"), dictionary.to_str().expect("UTF-8"));
    let without = alone(&["hfile", "--verify", packed]);
    assert!(!without.status.success() && text(&without).contains(DICTIONARY_KEY), "{}", text(&without));
    let define = format!("{DICTIONARY_KEY}={dictionary}");
    let with = alone(&["-D", &define, "hfile", "--verify", packed]);
    assert!(with.status.success() && text(&with).contains("whole, "), "{}", text(&with));
    let gone = alone(&["-D", &format!("{DICTIONARY_KEY}=/no/such/dictionary"), "hfile", "--verify", packed]);
    let missing = "Unable to load dictionary at /no/such/dictionary";
    assert!(!gone.status.success() && text(&gone).contains(missing), "{}", text(&gone));

    let scratch = Scratch::new("dictionary");
    let tested = scratch.join("tested");
    let (tested, codec) = (tested.to_str().expect("UTF-8"), "zstd");
    assert_eq!(text(&alone(&["-D", &define, "compressiontest", tested, codec])).trim(), "SUCCESS");

    let root = scratch.join("data");
    let server = Server::start(&root, &[]);
    let config = format!("CONFIGURATION => {{'{DICTIONARY_KEY}' => '{dictionary}'}}");
    let mut commands = vec![format!("create 't', {{NAME => 'f', COMPRESSION => 'ZSTD', {config}}}")];
    commands.extend((0..50).map(|row| format!("put 't', 'r{row:02}', 'f:q', 'value {row} of the table'")));
    commands.extend(["flush 't'".to_owned(), "snapshot 't', 's'".to_owned()]);
    shell(&server, &commands.iter().map(String::as_str).collect::<Vec<_>>());
    let files = files_below(&root.join("data/default/t"));
    let file = files.iter().find(|path| path.parent().is_some_and(|dir| dir.ends_with("f"))).expect("flushed");
    let loaded = scratch.join("loaded/f");
    std::fs::create_dir_all(&loaded).expect("made");
    std::fs::copy(file, loaded.join("a")).expect("copied");
    let dir = scratch.join("loaded");
    let load = said(&server, &["bulkload", dir.to_str().expect("UTF-8"), "t"]);
    assert!(load.contains("Loaded 1 files"), "{load}");
    assert_eq!(server.terminate().code(), Some(0));
    let verified = alone(&["hfile", "--verify", file.to_str().expect("UTF-8")]);
    assert!(verified.status.success() && text(&verified).contains("whole, 50 cells"), "{}", text(&verified));
    let of_root = format!("hbase.rootdir={}", root.display());
    let checked = alone(&["-D", &of_root, "hbck", "--root", root.to_str().expect("UTF-8"), "--read"]);
    assert!(checked.status.success(), "{}", text(&checked));
    let verified = alone(&["-D", &of_root, "snapshot", "verify", "--snapshot", "s"]);
    assert!(verified.status.success(), "{}", text(&verified));
}
