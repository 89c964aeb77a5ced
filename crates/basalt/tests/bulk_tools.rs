//! Tools that write and load files: bulk loads, hashes of tables, compressed exports.
#![allow(clippy::disallowed_methods, reason = "tests of tools work on real files and processes")]

use crate::common::tools::{basalt, json, shell, text};
use crate::common::{Scratch, Server};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a tool that must fail with this code and say this.
fn refused(server: &Server, arguments: &[&str], code: i32, wanted: &str) {
    let output = basalt(server, arguments);
    let said = text(&output);
    assert!(output.status.code() == Some(code) && said.contains(wanted), "{arguments:?}: {:?} {said}", output.status);
}

fn rows(server: &Server, table: &str) -> Value {
    json(server, &["rowcounter", "--json", table])["ROWS"].clone()
}

fn utf8(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Files below a directory, those of `.tmp` too.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("readable") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

/// HBase looks at the version at a file's end, tells, and goes on with the others.
#[test]
fn what_does_not_end_as_an_hfile_is_passed_over() {
    let scratch = Scratch::new("tools-bulkload-strange");
    let server = Server::start(&scratch.join("data"), &[]);
    shell(&server, &["create 't', 'f', 'g'"]);
    let out = hfiles(&server, &scratch, "t", 50);
    let whole = std::fs::read(&files(&out)[1]).expect("readable");
    for (name, bytes) in [("a", &whole[..whole.len() - 1]), ("b", &b"no HFile"[..]), ("c", b"")] {
        std::fs::write(out.join("f").join(name), bytes).expect("written");
    }
    let output = basalt(&server, &["bulkload", "-D", "always.copy.files=true", utf8(&out), "t"]);
    let said = text(&output);
    assert!(output.status.success() && said.matches("does not seem to be an HFile").count() == 3, "{said}");
    assert_eq!(rows(&server, "t"), 50);
    let alone = scratch.join("alone");
    std::fs::create_dir_all(alone.join("f")).expect("made");
    std::fs::write(alone.join("f").join("a"), b"no HFile").expect("written");
    refused(&server, &["bulkload", utf8(&alone), "t"], 255, "nothing was loaded");
}

/// A file of lines `k0000,value`, and the directory of HFiles that importtsv makes of it for a table that has no regions but one.
fn hfiles(server: &Server, scratch: &Scratch, table: &str, lines: u32) -> PathBuf {
    let tsv = scratch.join("lines.csv");
    // Backwards, and the first lines again at the end: they are sorted, and the last of each wins.
    let line = |i: u32, what: &str| format!("k{i:04},{what}{i},{}\n", i % 7);
    let mut text: String = (0..lines).rev().map(|i| line(i, "v")).collect();
    text.extend((0..5).map(|i| line(i, "last")));
    std::fs::write(&tsv, text).expect("written");
    let out = scratch.join(&format!("out-{table}"));
    let output = format!("importtsv.bulk.output={}", out.display());
    let columns = "importtsv.columns=HBASE_ROW_KEY,f:q,g:w";
    let made = json(
        server,
        &["importtsv", "-D", "importtsv.separator=,", "-D", columns, "-D", &output, table, utf8(&tsv), "--json"],
    );
    assert_eq!((&made["lines"], &made["bad_lines"]), (&(lines + 5).into(), &0.into()));
    out
}

#[test]
fn hfiles_of_importtsv_are_loaded_and_split_where_regions_begin() {
    let scratch = Scratch::new("tools-bulkload");
    let server = Server::start(&scratch.join("data"), &[]);
    shell(&server, &["create 'one', 'f', 'g'"]);
    let out = hfiles(&server, &scratch, "one", 1000);
    let made = files(&out);
    let names: Vec<String> =
        made.iter().map(|path| path.strip_prefix(&out).expect("below").display().to_string()).collect();
    assert!(
        names.len() == 3 && names[0] == "_SUCCESS" && names[1].starts_with("f/") && names[2].starts_with("g/"),
        "{names:?}"
    );
    let described = text(&basalt(&server, &["hfile", "-m", utf8(&made[1])]));
    for word in ["BULKLOAD_TIMESTAMP", "MAJOR_COMPACTION_KEY = true", "BLOOM_FILTER_TYPE = ROW"] {
        assert!(described.contains(word), "{word}: {described}");
    }
    refused(
        &server,
        &[
            "importtsv",
            "-D",
            "importtsv.columns=HBASE_ROW_KEY,f",
            "-D",
            &format!("importtsv.bulk.output={}", out.display()),
            "one",
            utf8(&out),
        ],
        1,
        "is there already",
    );

    // The table has other regions than the files: each is split twice, and stays where it is as it is copied.
    shell(&server, &["create 'many', {NAME => 'f', COMPRESSION => 'GZ'}, 'g', SPLITS => ['k0250', 'k0500', 'k0750']"]);
    let copy = ["bulkload", "-D", "always.copy.files=true", "-D", "create.table=no", utf8(&out), "many", "--json"];
    let loaded = json(&server, &copy);
    assert_eq!(
        (&loaded["files"], &loaded["regions"], &loaded["splits"]),
        (&8.into(), &4.into(), &6.into()),
        "{loaded}"
    );
    assert_eq!(files(&out), made, "nothing is left but what was there");
    assert_eq!(rows(&server, "many"), 1000);
    let said = shell(&server, &["get 'many', 'k0003'", "get 'many', 'k0500'", "count 'many', COLUMNS => 'g:w'"]);
    assert!(said.contains("value=last3") && said.contains("value=v500") && said.contains("1000 row(s)"), "{said}");
    refused(
        &server,
        &["bulkload", "-D", "hbase.loadincremental.fail.if.need.split.hfile=true", utf8(&out), "many"],
        1,
        "rows of several regions",
    );
    assert_eq!(files(&out), made);

    // Without a table one is made after the files; they are moved into it, and its only region begins nowhere.
    let moved = json(&server, &["completebulkload", utf8(&out), "made", "--json"]);
    assert_eq!((&moved["files"], &moved["regions"], &moved["splits"]), (&2.into(), &1.into(), &0.into()));
    assert_eq!((files(&out).len(), rows(&server, "made")), (1, 1000.into()));
    refused(&server, &["bulkload", utf8(&out), "made"], 255, "nothing was loaded");
}

#[test]
fn what_cannot_be_loaded_is_named_before_anything_is_changed() {
    let scratch = Scratch::new("tools-bulkload-bad");
    let server = Server::start(&scratch.join("data"), &[]);
    shell(&server, &["create 't', 'f', 'g'", "create 'f_only', 'f'"]);
    let out = hfiles(&server, &scratch, "t", 300);
    refused(&server, &["bulkload", "-D", "create.table=no", utf8(&out), "none"], 1, "there is no table none");
    refused(&server, &["bulkload", utf8(&scratch.join("nowhere")), "t"], 1, "nowhere");
    refused(&server, &["bulkload", utf8(&out)], 1, "a table are needed");
    refused(&server, &["bulkload", utf8(&out), "f_only"], 1, "ignore.unmatched.families=yes");
    assert_eq!(rows(&server, "f_only"), 0);

    let whole = std::fs::read(&files(&out)[1]).expect("readable");
    let damaged = out.join("f").join("0123456789abcdef0123456789abcdef");
    let strictly = "hbase.loadincremental.validate.hfile=false";
    for bytes in [&whole[..whole.len() / 2], &whole[..whole.len() - 1], b"no HFile", b""] {
        std::fs::write(&damaged, bytes).expect("written");
        refused(&server, &["bulkload", "-D", strictly, utf8(&out), "t"], 1, "0123456789abcdef0123456789abcdef");
    }
    // Damage that its end does not show.
    let mut inside = whole.clone();
    let trailer = inside.len() - 4096;
    inside[trailer..trailer + 8].fill(b'x');
    std::fs::write(&damaged, inside).expect("written");
    refused(&server, &["bulkload", utf8(&out), "t"], 1, "0123456789abcdef0123456789abcdef");
    std::fs::remove_file(&damaged).expect("removed");
    assert_eq!((rows(&server, "t"), files(&out).len()), (0.into(), 3), "nothing was loaded, nothing moved");

    // More files than a region may get at once; hidden names, directories and other things are passed over.
    std::fs::copy(&files(&out)[1], out.join("f").join("fedcba9876543210fedcba9876543210")).expect("copied");
    for hidden in ["_note", ".checksum.crc"] {
        std::fs::write(out.join("f").join(hidden), b"x").expect("written");
    }
    std::fs::create_dir(out.join("f").join(".tmp-else")).expect("made");
    let most = "hbase.mapreduce.bulkload.max.hfiles.perRegion.perFamily=1";
    refused(&server, &["bulkload", "-D", most, utf8(&out), "t"], 1, "2 files are for family f");
    assert_eq!(rows(&server, "t"), 0);
    let by_family = "hbase.mapreduce.bulkload.by.family=true";
    let passed = ["bulkload", "-D", "ignore.unmatched.families=yes", "-D", by_family, utf8(&out), "f_only", "--json"];
    assert_eq!(json(&server, &passed)["files"], 2);
    assert_eq!(rows(&server, "f_only"), 300);

    // A directory of regions, as a table's own: the files of each region's families.
    let regions = scratch.join("regions");
    std::fs::create_dir_all(regions.join("0123456789abcdef0123456789abcdef")).expect("made");
    std::fs::rename(out.join("g"), regions.join("0123456789abcdef0123456789abcdef/g")).expect("renamed");
    assert_eq!(json(&server, &["bulkload", utf8(&regions), "t", "-loadTable", "--json"])["files"], 1);
    let said = shell(&server, &["count 't', COLUMNS => 'g:w'"]);
    assert!(said.contains("300 row(s)"), "{said}");
}

const FILL: &str = "400.times { |i| put 't', \"r%03d\" % i, 'f:q', \"v#{i}\" * 20, 1000 + i; put 't', \"r%03d\" % i, 'g:w', 'x', 7 if i % 3 == 0 }";

#[test]
fn tables_are_hashed_compared_and_made_alike() {
    let scratch = Scratch::new("tools-hashes");
    let server = Server::start(&scratch.join("data"), &[]);
    shell(
        &server,
        &["create 't', 'f', 'g', SPLITS => ['r100', 'r200']", FILL, "create 'u', 'f', 'g', SPLITS => ['r150']"],
    );
    let dir = scratch.join("hashes");
    let hashed = json(&server, &["hashtable", "--batchsize=1000", "--numhashfiles=2", "t", utf8(&dir), "--json"]);
    assert_eq!((&hashed["rows"], &hashed["files"]), (&400.into(), &2.into()), "{hashed}");
    assert!(hashed["batches"].as_u64() > Some(20), "{hashed}");
    let manifest = std::fs::read_to_string(dir.join("manifest")).expect("readable");
    assert!(manifest.contains("\ntable=t\ntargetBatchSize=1000\nnumHashFiles=2\n"), "{manifest}");
    for name in ["partitions", "hashes/_SUCCESS", "hashes/part-r-00000/data", "hashes/part-r-00001/index"] {
        assert!(dir.join(name).is_file(), "{name}");
    }
    refused(&server, &["hashtable", "t", utf8(&dir)], 1, "is there already");
    refused(&server, &["hashtable", "none", utf8(&scratch.join("none"))], 1, "there is no table none");
    refused(&server, &["hashtable", "--starttime=9", "--endtime=9", "t", utf8(&scratch.join("none"))], 1, "is empty");
    assert!(!scratch.join("none").exists(), "a failure leaves nothing");

    // A dry run counts and writes nothing; then all comes over, and everything is the same.
    let sync = |more: &[&str]| json(&server, &[&["synctable", "--json"], more, &[utf8(&dir), "t", "u"]].concat());
    let dry = sync(&["--dryrun=true"]);
    assert_eq!((&dry["TARGETMISSINGROWS"], &dry["TARGETMISSINGCELLS"]), (&400.into(), &534.into()), "{dry}");
    assert_eq!(rows(&server, "u"), 0);
    assert_eq!(sync(&["--doPuts=false"])["TARGETMISSINGROWS"], 400);
    assert_eq!(rows(&server, "u"), 0);
    assert_eq!(sync(&[])["ROWSWITHDIFFS"], 400);
    let same = sync(&["--dryrun=true", "--check"]);
    assert_eq!((&same["HASHES_NOT_MATCHED"], &same["BATCHES"]), (&0.into(), &same["HASHES_MATCHED"]), "{same}");

    // One cell more, one less, one otherwise: three rows, and only their batches are read again.
    shell(
        &server,
        &["put 'u', 'r005x', 'f:q', 'more'", "deleteall 'u', 'r177'", "put 'u', 'r333', 'f:q', 'other', 1333"],
    );
    refused(&server, &["synctable", "--dryrun=true", "--check", utf8(&dir), "t", "u"], 1, "ROWSWITHDIFFS=3");
    let kept = sync(&["--doDeletes=false"]);
    assert_eq!(
        (&kept["SOURCEMISSINGCELLS"], &kept["TARGETMISSINGROWS"], &kept["DIFFERENTCELLVALUES"]),
        (&1.into(), &1.into(), &1.into()),
        "{kept}"
    );
    assert_eq!(kept["HASHES_NOT_MATCHED"], 3);
    let said = shell(&server, &["get 'u', 'r005x'", "get 'u', 'r333', 'f:q'"]);
    // The marker of the deleted row is newer than what comes over: HBase's SyncTable has that, too.
    assert!(said.contains("value=more") && said.contains("value=v333v333"), "{said}");
    let cluster = format!("--targetzkcluster=127.0.0.1:{}:/hbase", server.zk_port);
    let source = cluster.replace("target", "source");
    assert_eq!(sync(&[&cluster, &source])["SOURCEMISSINGROWS"], 1);
    assert!(!shell(&server, &["get 'u', 'r005x'"]).contains("value=more"));

    // Other times are no difference where times do not matter.
    let timeless = scratch.join("timeless");
    let wanted = ["hashtable", "--ignoreTimestamps=true", "--families=f", "--startrow=72303130", "--stoprow=72303230"];
    let more = ["--versions=1", "--scanbatch=1", "--rawScan=false", "--starttime=1", "--endtime=99999999999999"];
    let hashed = json(&server, &[&wanted[..], &more, &["t", utf8(&timeless), "--json"]].concat());
    assert_eq!(hashed["rows"], 10, "rows r010 up to r020, without it");
    shell(
        &server,
        &["create 'late', 'f'", "10.times { |i| put 'late', \"r%03d\" % (10 + i), 'f:q', \"v#{10 + i}\" * 20 }"],
    );
    let sync =
        |more: &[&str]| json(&server, &[&["synctable", "--json"], more, &[utf8(&timeless), "t", "late"]].concat());
    assert_eq!(sync(&["--ignoreTimestamps=true"])["HASHES_MATCHED"], 1);
    assert_eq!(sync(&["--dryrun=true"])["ROWSWITHDIFFS"], 10);

    // What HBase 2.6.4's own HashTable wrote of the same rows: every hash is the same, and the table need not be cut alike.
    let of_hbase = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/hashtable");
    shell(&server, &["create 'again', 'f', 'g'", &FILL.replace("'t'", "'again'")]);
    let golden = json(&server, &["synctable", "--json", "--dryrun=true", of_hbase, "t", "again"]);
    assert_eq!((&golden["BATCHES"], &golden["HASHES_MATCHED"]), (&37.into(), &37.into()), "{golden}");

    // Damage is named, and nothing is written.
    shell(&server, &["create 'w', 'f', 'g'"]);
    let data = dir.join("hashes/part-r-00000/data");
    let whole = std::fs::read(&data).expect("readable");
    for len in [3, 60, whole.len() / 2] {
        std::fs::write(&data, &whole[..len]).expect("written");
        refused(&server, &["synctable", "--dryrun=true", utf8(&dir), "t", "w"], 1, "part-r-00000");
    }
    std::fs::remove_dir_all(dir.join("hashes/part-r-00001")).expect("removed");
    refused(&server, &["synctable", utf8(&dir), "t", "w"], 1, "is damaged");
    std::fs::remove_file(dir.join("manifest")).expect("removed");
    refused(&server, &["synctable", utf8(&dir), "t", "w"], 1, "manifest");
    assert_eq!(rows(&server, "w"), 0);
}

#[test]
fn exports_are_compressed_as_hadoop_does_and_imported_by_every_way() {
    let scratch = Scratch::new("tools-compressed");
    let server = Server::start(&scratch.join("data"), &[]);
    shell(&server, &["create 't', 'f', 'g', SPLITS => ['r200']", FILL]);
    let compress = "mapreduce.output.fileoutputformat.compress=true";
    let plain = scratch.join("plain");
    json(&server, &["export", "t", utf8(&plain), "--json"]);
    let bytes = |dir: &Path| files(dir).iter().map(|file| std::fs::metadata(file).expect("there").len()).sum::<u64>();
    for (codec, kind) in
        [("DefaultCodec", "RECORD"), ("GzipCodec", "BLOCK"), ("SnappyCodec", "BLOCK"), ("ZStandardCodec", "BLOCK")]
    {
        let dir = scratch.join(codec);
        let class = format!("mapreduce.output.fileoutputformat.compress.codec=org.apache.hadoop.io.compress.{codec}");
        let how = format!("mapreduce.output.fileoutputformat.compress.type={kind}");
        json(&server, &["export", "-D", compress, "-D", &class, "-D", &how, "t", utf8(&dir), "--json"]);
        assert!(bytes(&dir) < bytes(&plain), "{codec}: {} and {}", bytes(&dir), bytes(&plain));
        shell(&server, &[&format!("create '{codec}', 'f', 'g'")]);
        let imported = json(&server, &["import", codec, utf8(&dir), "--json"]);
        assert_eq!((&imported["rows"], &imported["cells"]), (&400.into(), &534.into()), "{codec}");
    }
    refused(
        &server,
        &[
            "export",
            "-D",
            compress,
            "-D",
            "mapreduce.output.fileoutputformat.compress.codec=Nope",
            "t",
            utf8(&scratch.join("no")),
        ],
        1,
        "Nope is no codec",
    );
    assert!(!scratch.join("no").exists());

    // HFiles rather than puts.
    let out = scratch.join("out");
    let output = format!("import.bulk.output={}", out.display());
    shell(&server, &["create 'loaded', 'f', 'g', SPLITS => ['r100', 'r300']"]);
    let sorted = json(
        &server,
        &["import", "-D", &output, "-D", "mapreduce.task.io.sort.mb=1", "loaded", utf8(&plain), "--json"],
    );
    assert_eq!((&sorted["rows"], rows(&server, "loaded")), (&400.into(), 0.into()));
    assert_eq!(json(&server, &["bulkload", utf8(&out), "loaded", "--json"])["splits"], 0);
    shell(&server, &["create 'copied', 'f', 'h', SPLITS => ['r050']"]);
    let tmp = format!("hbase.fs.tmp.dir={}", scratch.join("tmp").display());
    json(&server, &["copytable", "-D", &tmp, "--bulkload", "--families=f,g:h", "--new.name=copied", "t", "--json"]);
    assert!(files(&scratch.join("tmp")).is_empty(), "what was only on its way is removed");
    for (table, cells) in [("loaded", 534), ("copied", 534)] {
        let counted = json(&server, &["cellcounter", table, "--json", "--no-rows"]);
        assert_eq!((&counted["ROWS"], &counted["CELLS"]), (&400.into(), &cells.into()), "{table}");
    }
    refused(&server, &["import", "-D", &output, "loaded", utf8(&plain)], 1, "is there already");
    let part = files(&plain)[1].clone();
    let whole = std::fs::read(&part).expect("readable");
    std::fs::write(&part, &whole[..whole.len() / 2]).expect("written");
    let elsewhere = format!("import.bulk.output={}", scratch.join("elsewhere").display());
    refused(&server, &["import", "-D", &elsewhere, "loaded", utf8(&plain)], 1, "part-m-0000");
    assert!(!scratch.join("elsewhere").exists(), "a failure leaves nothing");
}

#[test]
fn codecs_are_tried() {
    let scratch = Scratch::new("tools-codecs");
    let file = scratch.join("file");
    let run = |codec: &str| {
        Command::new(env!("CARGO_BIN_EXE_basalt"))
            .env_remove("HBASE_CONF_DIR")
            .args(["compressiontest", &format!("file://{}", file.display()), codec])
            .output()
            .expect("the binary runs")
    };
    for codec in ["none", "gz", "snappy", "lz4", "zstd", "lzo", "bzip2", "lzma", "brotli"] {
        let tried = run(codec);
        assert!(
            tried.status.success() && text(&tried).contains("SUCCESS") && !file.exists(),
            "{codec}: {}",
            text(&tried)
        );
    }
    assert_eq!(run("nope").status.code(), Some(1));
    std::fs::write(&file, b"mine").expect("written");
    let there = run("gz");
    assert!(there.status.code() == Some(1) && text(&there).contains("is there already"), "{}", text(&there));
    assert_eq!(std::fs::read(&file).expect("readable"), b"mine");
}
