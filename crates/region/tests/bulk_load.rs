//! Files that came from outside: what readers see of them, which are refused, and that a power failure at any call to
//! the volume leaves all files of a call in the region or none.

use crate::common::*;
use basalt_region::{BulkLoad, BulkLoaded, CloseMode, LoadFile, Place, Region, RegionError, split};
use base::{Config, ReadPoint, Rng};
use bytes::Bytes;
use cell::{CellRef, CellSpec, CellType, Order};
use fs::mem::{Fault, Op};
use fs::{CrashPolicy, FaultKind, FilePath, MemVolume, Volume};
use hfile::{StoreMetadata, Writer, WriterOptions};
use model::{Get, RegionInfo, Scan, TableDescriptor};
use rootdir::recovered_edits::DeletedFamily;
use std::collections::BTreeSet;
use std::sync::Arc;

const START: i64 = 1_700_000_000_000;

/// Writes `path` as HFileOutputFormat2 would: no sequence ids.
fn hfile(volume: &dyn Volume, path: &str, family: &str, rows: &[&str], timestamp: i64, value: &str) {
    let path = FilePath::new(path);
    volume.create_dir_all_durable(&path.parent()).expect("a directory");
    let options = WriterOptions { order: Order::User, include_mvcc: false, ..WriterOptions::default() };
    let mut writer = Writer::create(volume, &path, options).expect("created");
    for row in rows {
        let spec = CellSpec {
            row: row.as_bytes(),
            family: family.as_bytes(),
            qualifier: b"q",
            timestamp,
            type_code: CellType::Put.code(),
            value: value.as_bytes(),
            tags: b"",
        };
        let mut buffer = cell::CellBuffer::new();
        buffer.push_spec(&spec, seq(0));
        let cell: CellRef<'_> = buffer.iter_from(0).next().expect("one");
        writer.append(cell).expect("appended");
    }
    writer.append_file_info(b"BULKLOAD_TIMESTAMP", &START.to_be_bytes());
    writer.finish(&StoreMetadata::default()).expect("finished");
    volume.sync_dir(&path.parent()).expect("synced");
}

fn load_of(files: &[(&'static str, &str)]) -> BulkLoad {
    let file = |(family, path): &(&'static str, &str)| LoadFile {
        family: Bytes::from(*family),
        name: (*path).to_owned(),
        place: Place::Inside(FilePath::new(path)),
    };
    BulkLoad {
        files: files.iter().map(file).collect(),
        assign_seq_id: true,
        staging: FilePath::new("staging/u__t__1"),
        copy: false,
        cluster_ids: vec!["here".to_owned()],
        replicate: true,
    }
}

fn rows(region: &Arc<Region>) -> Vec<String> {
    scan(region, &Scan::default(), START).concat()
}

#[test]
fn loaded_cells_are_newer_than_all_before_and_older_than_all_after() {
    let server = Server::new(START);
    let region = server.table([family("f")]);
    write(&region, &[put("a", "f", "q", START, "before"), put("b", "f", "q", START, "before")]);
    hfile(&server.volume, "out/f/x1", "f", &["b", "c"], START, "loaded");
    let before = region.read_point();
    let mut open = region.scanner(&Scan { read_point: Some(before), ..Scan::default() }).expect("opened");
    let outcome = region.bulk_load(&load_of(&[("f", "out/f/x1")])).expect("loaded");
    let BulkLoaded::Loaded { files, .. } = outcome else { panic!("{outcome:?}") };
    let name = rootdir::FileName::parse(&files[0].1).expect("a store file's name");
    let seq_id = name.bulk_load_seq_id().expect("an id in the name");
    assert!(seq_id.0 > before.0 && seq_id.0 < region.read_point().0, "{seq_id} after {before:?}");
    let now = ["a/f:q/0/Put=before", "b/f:q/0/Put=loaded", "c/f:q/0/Put=loaded"];
    assert_eq!(rows(&region), now);
    // A reader of before sees nothing of it, though the flush made it look at the files anew.
    let mut out = cell::CellBuffer::new();
    while open.next(&mut basalt_region::Limits::default(), &mut out).expect("read").more {}
    assert_eq!(show_all(&out, START), ["a/f:q/0/Put=before", "b/f:q/0/Put=before"]);
    assert_eq!(region.read_point(), ReadPoint(region.read_point().0));
    write(&region, &[put("c", "f", "q", START, "after")]);
    let now = ["a/f:q/0/Put=before", "b/f:q/0/Put=loaded", "c/f:q/0/Put=after"];
    assert_eq!(rows(&region), now);
    // Neither a flush and compaction nor another life change that.
    flush(&region);
    major_compact(&region);
    assert_eq!(rows(&region), now);
    region.close(CloseMode::Flush).expect("closed");
    let region = server.open(region.info(), region.table()).expect("opened");
    assert_eq!(rows(&region), now);
    assert!(server.volume.list(&FilePath::new("out/f")).expect("listed").is_empty(), "moved, not copied");
}

/// HBASE-28456: of equal cells in files that were flushed, loaded and flushed the later one counts, before and after every order of
/// compactions, in another life, and with either kind of read.
#[test]
fn f45_a_bulk_loaded_cell_counts_as_of_its_load() {
    // Which of the steps are followed by a compaction.
    for variant in 0..32 {
        let server = Server::new(START);
        let region = server.table([family("f").with("VERSIONS", "5")]);
        let settle = |step: usize| {
            if variant >> step & 1 == 1 {
                flush(&region);
                major_compact(&region);
            }
        };
        let seen = |label: &str, expected: &str| {
            let expected = [format!("row/f:q/0/Put={expected}")];
            let all = Scan { max_versions: 5, ..Scan::default() };
            assert_eq!(scan(&region, &all, START).concat(), expected, "variant {variant}, {label}");
            let reversed = Scan { reversed: true, ..all };
            assert_eq!(scan(&region, &reversed, START).concat(), expected, "variant {variant}, {label}, reversed");
            assert_eq!(get(&region, &Get::new("row"), START), expected, "variant {variant}, {label}");
        };
        write(&region, &[put("row", "f", "q", START, "z first")]);
        settle(0);
        hfile(&server.volume, "out/f/x1", "f", &["row"], START, "y loaded");
        region.bulk_load(&load_of(&[("f", "out/f/x1")])).expect("loaded");
        seen("loaded", "y loaded");
        settle(1);
        hfile(&server.volume, "out/f/x2", "f", &["row"], START, "x loaded again");
        region.bulk_load(&load_of(&[("f", "out/f/x2")])).expect("loaded");
        seen("loaded again", "x loaded again");
        settle(2);
        write(&region, &[put("row", "f", "q", START, "w last")]);
        seen("written", "w last");
        settle(3);
        seen("settled", "w last");
        if variant >> 4 & 1 == 1 {
            flush(&region);
        }
        seen("at last", "w last");
        region.close(CloseMode::Flush).expect("closed");
        let again = server.open(region.info(), region.table()).expect("opened");
        assert_eq!(rows(&again), ["row/f:q/0/Put=w last"], "variant {variant}, opened again");
    }
}

#[test]
fn a_copy_leaves_the_file_and_may_be_loaded_again() {
    let server = Server::new(START);
    let region = server.table([family("f")]);
    hfile(&server.volume, "out/f/x1", "f", &["b"], START, "loaded");
    let load = BulkLoad { copy: true, ..load_of(&[("f", "out/f/x1")]) };
    for round in 1..3 {
        // The client removes its staging directory between two loads.
        server.volume.remove_dir_all(&load.staging).expect("removed");
        region.bulk_load(&load).expect("loaded");
        assert_eq!(region.store_file_paths(b"f").expect("a family").len(), round);
        assert!(server.volume.exists(&FilePath::new("out/f/x1")).expect("memory"));
    }
    assert_eq!(rows(&region), ["b/f:q/0/Put=loaded"]);
    // A live store file is copied, whatever the caller wants.
    let path = region.store_file_paths(b"f").expect("a family").remove(0);
    let inside = path[path.find("data/").expect("below data")..].to_owned();
    region.bulk_load(&load_of(&[("f", &inside)])).expect("loaded");
    assert!(server.volume.exists(&FilePath::new(inside)).expect("memory"));
}

#[test]
fn what_does_not_fit_is_not_loaded_and_stays_where_it_is() {
    let server = Server::new(START);
    let table = Arc::new(TableDescriptor::new(table_name(), [family("f"), family("g")]));
    let info = RegionInfo::new(table_name(), Bytes::from("b"), Bytes::from("d"), START as u64);
    let region = server.open(&info, &table).expect("opened");
    hfile(&server.volume, "out/f/fits", "f", &["b", "c"], START, "v");
    hfile(&server.volume, "out/f/low", "f", &["a", "c"], START, "v");
    hfile(&server.volume, "out/f/high", "f", &["c", "d"], START, "v");
    hfile(&server.volume, "out/f/empty", "f", &[], START, "v");
    server.volume.put_file(&FilePath::new("out/f/text"), b"no HFile at all, but long enough for a trailer");
    let wrong = |files: &[(&'static str, &str)]| region.bulk_load(&load_of(files)).expect("answered");
    let expected = BulkLoaded::WrongRegion(vec!["out/f/low".into(), "out/f/high".into()]);
    assert_eq!(wrong(&[("f", "out/f/fits"), ("f", "out/f/low"), ("f", "out/f/high")]), expected);
    let error = |files: &[(&'static str, &str)]| region.bulk_load(&load_of(files)).expect_err("refused").to_string();
    assert_eq!(error(&[("f", "out/f/fits"), ("x", "out/f/low")]), "No such column family x");
    assert!(error(&[("f", "out/f/fits"), ("f", "out/f/text")]).contains("out/f/text"));
    assert!(error(&[("f", "out/f/fits"), ("f", "out/f/gone")]).contains("out/f/gone"));
    assert!(error(&[("f", "out/f/fits"), ("f", "out/f/empty")]).contains("First key can not be null"));
    // Two of one name meet in the staging directory: what was moved already goes back.
    hfile(&server.volume, "out2/f/fits", "f", &["b"], START, "v");
    assert!(error(&[("f", "out/f/fits"), ("f", "out2/f/fits")]).contains("Failed to move HFile"));
    for name in ["out/f/fits", "out/f/low", "out/f/high", "out2/f/fits"] {
        assert!(server.volume.exists(&FilePath::new(name)).expect("memory"), "{name} is gone");
    }
    assert!(rows(&region).is_empty());
    region.bulk_load(&load_of(&[("f", "out/f/fits")])).expect("loaded");
    // Again: the answer may have been lost, the file is gone.
    let again = region.bulk_load(&load_of(&[("f", "out/f/fits")])).expect_err("gone");
    assert!(matches!(again, RegionError::Volume { .. }), "{again}");
    assert_eq!(rows(&region), ["b/f:q/0/Put=v", "c/f:q/0/Put=v"]);
}

#[test]
fn cells_are_looked_at_when_the_server_is_told_to() {
    let mut config = Config::default();
    config.set("hbase.hstore.bulkload.verify", "true");
    let server = Server::try_on(MemVolume::new(), START, &config, 1).expect("empty");
    let region = server.table([family("f")]);
    hfile(&server.volume, "out/f/good", "f", &["a", "b"], START, "v");
    region.bulk_load(&load_of(&[("f", "out/f/good")])).expect("loaded");
    assert_eq!(rows(&region).len(), 2);
}

#[test]
fn loaded_files_outlive_splits_and_deletes_hide_them() {
    let server = Server::new(START);
    let region = server.table([family("f")]);
    write(&region, &[put("m", "f", "q", START, "before")]);
    hfile(&server.volume, "out/f/x", "f", &["a", "m", "z"], START, "loaded");
    region.bulk_load(&load_of(&[("f", "out/f/x")])).expect("loaded");
    write(&region, &[delete("z", "f", "q", START, CellType::DeleteColumn)]);
    region.close(CloseMode::Flush).expect("closed");
    let id = region.info().region_id + 1;
    let low = RegionInfo::new(table_name(), Bytes::new(), Bytes::from("m"), id);
    let high = RegionInfo::new(table_name(), Bytes::from("m"), Bytes::new(), id);
    split::write_daughters(&server.env, region.info(), region.table(), [&low, &high]).expect("written");
    let [low, high] = [low, high].map(|info| server.open(&info, region.table()).expect("opened"));
    for _ in 0..2 {
        assert_eq!(rows(&low), ["a/f:q/0/Put=loaded"]);
        assert_eq!(rows(&high), ["m/f:q/0/Put=loaded"]);
        major_compact(&low);
        major_compact(&high);
    }
    let mut out = cell::CellBuffer::new();
    high.get(&Get::new(Bytes::from("z")), &mut out, hfile::Residency::MayRead).expect("read");
    assert!(out.is_empty());
}

fn two_families() -> Arc<TableDescriptor> {
    Arc::new(TableDescriptor::new(table_name(), [family("f").with(rootdir::tracker::IMPL_KEY, "FILE"), family("g")]))
}

const FILES: [(&str, &str); 3] = [("f", "out/f/x1"), ("f", "out/f/x2"), ("g", "out/g/x1")];

/// A server with some rows in memory and three files to load; the calls from here on are the load's.
fn prepared(volume: MemVolume) -> (Server, Arc<Region>) {
    hfile(&volume, "out/f/x1", "f", &["b", "k"], START, "loaded");
    hfile(&volume, "out/f/x2", "f", &["c"], START, "loaded");
    hfile(&volume, "out/g/x1", "g", &["b", "c"], START, "loaded");
    let server = Server::try_on(volume, START, &Config::default(), 3).expect("an empty volume");
    let region = server.open(&whole_table(), &two_families()).expect("opened");
    write(&region, &[put("a", "f", "q", START, "acked"), put("k", "f", "q", START, "acked")]);
    (server, region)
}

const WITHOUT: [&str; 2] = ["a/f:q/0/Put=acked", "k/f:q/0/Put=acked"];
const WITH: [&str; 6] = [
    "a/f:q/0/Put=acked",
    "b/f:q/0/Put=loaded",
    "b/g:q/0/Put=loaded",
    "c/f:q/0/Put=loaded",
    "c/g:q/0/Put=loaded",
    "k/f:q/0/Put=loaded",
];

#[test]
fn a_power_failure_at_any_call_leaves_all_files_or_none() {
    let policies = [CrashPolicy::LoseUnsynced, CrashPolicy::KeepAll, CrashPolicy::Torn, CrashPolicy::TornWithHoles];
    for stop in 0..400 {
        let volume = MemVolume::new();
        let (_server, region) = prepared(volume.clone());
        volume.stop_after(stop);
        let done = region.bulk_load(&load_of(&FILES));
        for policy in policies {
            let what = format!("stopped after call {stop}, {policy:?}");
            let after = volume.crash(&Rng::seeded(stop), policy);
            let server = Server::try_on(after.clone(), START + 10, &Config::default(), 4)
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            let region = server.open(&whole_table(), &two_families()).unwrap_or_else(|e| panic!("{what}: {e}"));
            let seen = rows(&region);
            let loaded = seen == WITH;
            assert!(loaded || (done.is_err() && seen == WITHOUT), "{what}: {seen:#?}");
            assert!(
                !after.all_files().iter().any(|file| file.name().starts_with(".bulkload")),
                "{what}: a journal stays"
            );
            if !loaded {
                // Every file is where it was, or where the client looks for it: the load can be repeated.
                for (family, path) in FILES {
                    let staged = FilePath::new(format!("staging/u__t__1/{family}")).join(FilePath::new(path).name());
                    if !after.exists(&FilePath::new(path)).expect("memory") {
                        after.rename(&staged, &FilePath::new(path)).unwrap_or_else(|e| panic!("{what}: {e}"));
                    } else {
                        after.remove_file(&staged).ok();
                    }
                }
                region.bulk_load(&load_of(&FILES)).unwrap_or_else(|e| panic!("{what}: again: {e}"));
                assert_eq!(rows(&region), WITH, "{what}");
            }
            write(&region, &[put("k", "f", "q", START, "later")]);
            region.close(CloseMode::Flush).unwrap_or_else(|e| panic!("{what}: {e}"));
            let region = server.open(&whole_table(), &two_families()).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_eq!(rows(&region).last().map(String::as_str), Some("k/f:q/0/Put=later"), "{what}");
        }
        if done.is_ok() {
            assert!(stop > 20, "a load of three files takes more than {stop} calls");
            return;
        }
    }
    panic!("a load of three files takes more than 400 calls");
}

#[test]
fn a_call_that_fails_once_leaves_all_files_or_none() {
    for nth in 1..400 {
        let volume = MemVolume::new();
        let (_server, region) = prepared(volume.clone());
        let kind = if nth % 2 == 0 { FaultKind::Io } else { FaultKind::Full };
        volume.fail_op(nth, kind);
        let done = region.bulk_load(&load_of(&FILES));
        volume.clear_faults();
        let what = format!("call {nth} fails with {kind:?}: {done:?}");
        let sick = done.as_ref().is_err_and(|error| error.remedy() == basalt_region::Remedy::StopServer);
        let seen = if sick { Vec::new() } else { scan_if_open(&region) };
        assert!(sick || seen == WITH || (done.is_err() && seen == WITHOUT), "{what}: {seen:#?}");
        drop(region);
        let after = volume.crash(&Rng::seeded(nth), CrashPolicy::KeepAll);
        let server = Server::try_on(after.clone(), START + 10, &Config::default(), 4).expect("recovered");
        let region = server.open(&whole_table(), &two_families()).expect("opened");
        let seen: BTreeSet<String> = rows(&region).into_iter().collect();
        let all = |rows: &[&str]| rows.iter().map(|row| (*row).to_owned()).collect::<BTreeSet<_>>();
        assert!(seen == all(&WITH) || (done.is_err() && seen == all(&WITHOUT)), "{what}, after a crash: {seen:#?}");
        if done.is_ok() && nth > 100 {
            return;
        }
    }
}

/// A directory cannot be synced, not for taking the files back either: whoever loads is told that the server must stop, and why, not the
/// next reader; and wherever the power failure leaves the files, the next opening finds them all, or none.
#[test]
fn a_load_that_cannot_be_taken_back_stops_the_server_at_once() {
    let policies = [CrashPolicy::LoseUnsynced, CrashPolicy::KeepAll, CrashPolicy::Torn];
    let mut loaded = 0;
    for (nth, dir) in (1..12).flat_map(|nth| ["", "/f", "/g", "staging"].map(|dir| (nth, dir))) {
        let volume = MemVolume::new();
        let (_server, region) = prepared(volume.clone());
        let of_region = format!("{}{dir}", rootdir::region_dir(&whole_table()));
        let path_contains = Some(if dir == "staging" { dir.to_owned() } else { of_region });
        volume.inject(Fault { op: Some(Op::SyncDir), path_contains, nth, kind: FaultKind::Io, forever: true });
        let Err(error) = region.bulk_load(&load_of(&FILES)) else { continue };
        volume.clear_faults();
        let what = format!("sync {nth} of {dir:?}: {error}");
        if let RegionError::RollbackFailed { .. } = error {
            assert_eq!(error.remedy(), basalt_region::Remedy::StopServer, "{what}");
            let read = region.scanner(&Scan::default()).map(drop).expect_err("who knows what is there");
            assert_eq!(read.to_string(), error.to_string());
        }
        for (seed, policy) in (0..20).flat_map(|seed| policies.map(|policy| (seed, policy))) {
            let after = volume.crash(&Rng::seeded(seed), policy);
            let server = Server::try_on(after, START + 10, &Config::default(), 4).expect("recovered");
            let seen = rows(&server.open(&whole_table(), &two_families()).expect("opened"));
            assert!(seen == WITH || seen == WITHOUT, "{what}; {policy:?}, seed {seed}: {seen:#?}");
            loaded += usize::from(seen == WITH);
        }
    }
    assert!(loaded > 0, "no load was finished by an opening");
}

/// One file has no journal: whatever fails, it is loaded, or where the client put it.
#[test]
fn one_file_that_is_not_loaded_is_given_back() {
    let mut back = 0;
    for nth in 1..12 {
        let volume = MemVolume::new();
        let (_server, region) = prepared(volume.clone());
        let path_contains = Some(format!("{}/g", rootdir::region_dir(&whole_table())));
        volume.inject(Fault { op: Some(Op::SyncDir), path_contains, nth, kind: FaultKind::Io, forever: true });
        let done = region.bulk_load(&load_of(&FILES[2..]));
        volume.clear_faults();
        let server = Server::try_on(volume.snapshot(), START + 10, &Config::default(), 4).expect("recovered");
        let seen = rows(&server.open(&whole_table(), &two_families()).expect("opened"));
        let is_loaded = seen.iter().any(|row| row.contains("/g:"));
        let is_back = volume.exists(&FilePath::new(FILES[2].1)).expect("memory");
        assert!(is_loaded != is_back, "sync {nth}: {done:?}: {seen:#?}");
        back += usize::from(is_back);
    }
    assert!(back > 0, "no load failed");
}

/// A load fails while it makes its journal durable, and the client tries again: what that try has staged when the server is killed must not be
/// taken for the first one's.
#[test]
fn a_retry_that_is_killed_leaves_all_files_or_none() {
    let mut killed = 0;
    for nth in 1..8 {
        for stop in 0..80 {
            let volume = MemVolume::new();
            let (_server, region) = prepared(volume.clone());
            let path_contains = Some(rootdir::region_dir(&whole_table()).as_str().to_owned());
            volume.inject(Fault { op: Some(Op::SyncDir), path_contains, nth, kind: FaultKind::Io, forever: false });
            let first = region.bulk_load(&load_of(&FILES));
            volume.clear_faults();
            if first.is_ok() {
                break;
            }
            volume.stop_after(stop);
            let second = region.bulk_load(&load_of(&FILES));
            killed += usize::from(second.is_err());
            let server = Server::try_on(volume.snapshot(), START + 10, &Config::default(), 4).expect("recovered");
            let seen = rows(&server.open(&whole_table(), &two_families()).expect("opened"));
            let what = format!("sync {nth} fails: {first:?}; then stopped after call {stop}: {second:?}");
            assert!(seen == WITH || (second.is_err() && seen == WITHOUT), "{what}: {seen:#?}");
            if second.is_ok() {
                break;
            }
        }
    }
    assert!(killed > 20, "only {killed} retries were killed");
}

/// A load is broken off, and one of its families deleted before the region is opened again, as the master does that: a family of its name
/// that is added later, or was by then, gets nothing of the load.
#[test]
fn a_load_that_was_broken_off_brings_nothing_into_a_family_added_anew() {
    let dir = rootdir::region_dir(&whole_table());
    let mut journals = 0;
    for (stop, added_first) in (0..120).flat_map(|stop| [(stop, false), (stop, true)]) {
        let volume = MemVolume::new();
        let (_server, region) = prepared(volume.clone());
        volume.stop_after(stop);
        let done = region.bulk_load(&load_of(&FILES));
        let volume = volume.snapshot();
        journals += volume.all_files().iter().filter(|file| file.name().starts_with(".bulkload")).count();
        let note = DeletedFamily { dir: "g".to_owned(), closed_seq_id: seq(0) };
        volume.create_dir_all_durable(&dir.join("recovered.edits")).expect("made");
        let note_file = dir.join("recovered.edits").join(note.file_name());
        volume.publish(&note_file, note.contents().as_bytes()).expect("written");
        volume.remove_dir_all(&dir.join("g")).expect("removed");
        let server = Server::try_on(volume, START + 10, &Config::default(), 4).expect("recovered");
        if !added_first {
            let without = family("f").with(rootdir::tracker::IMPL_KEY, "FILE");
            let without = Arc::new(TableDescriptor::new(table_name(), [without]));
            server.open(&whole_table(), &without).expect("opened").close(CloseMode::Flush).expect("closed");
        }
        let seen = rows(&server.open(&whole_table(), &two_families()).expect("opened"));
        let of_f = |rows: &[&'static str]| rows.iter().copied().filter(|row| row.contains("/f:")).collect::<Vec<_>>();
        let what = format!("stopped after {stop}, added first: {added_first}: {done:?}");
        assert!(seen == of_f(&WITH) || (done.is_err() && seen == of_f(&WITHOUT)), "{what}: {seen:#?}");
    }
    assert!(journals > 0, "no load was broken off behind its journal");
}

fn scan_if_open(region: &Arc<Region>) -> Vec<String> {
    match region.scanner(&Scan::default()) {
        Ok(_) => rows(region),
        Err(_) => Vec::new(),
    }
}
