//! Store file trackers: a family whose files a list names, the way from one tracker to the other, and what is left of work that was cut off.

use crate::common::*;
use basalt_region::{CloseMode, split};
use base::{Config, Rng};
use bytes::Bytes;
use fs::{CrashPolicy, FilePath, MemVolume, Volume};
use model::{RegionInfo, Scan, TableDescriptor};
use rootdir::tracker::list::{self, Entries};
use rootdir::tracker::{IMPL_KEY, SOURCE_KEY, TARGET_KEY};
use std::sync::Arc;

const NOW: i64 = 1_700_000_000_000;

fn table(words: &[&str]) -> Arc<TableDescriptor> {
    let mut table = TableDescriptor::new(table_name(), [family("f")]);
    for (key, value) in [IMPL_KEY, SOURCE_KEY, TARGET_KEY].into_iter().zip(words) {
        table.attributes.insert(key.into(), Bytes::from((*value).to_owned()));
    }
    Arc::new(table)
}

fn dir() -> FilePath {
    rootdir::family_dir(&whole_table(), b"f")
}

fn listed(volume: &MemVolume) -> Option<Entries> {
    list::read(volume, &dir()).expect("a list, or none")
}

/// The store files in the directory with their lengths, as a list would name them.
fn there(volume: &MemVolume) -> Entries {
    let entries = volume.list(&dir()).expect("memory");
    entries.into_iter().filter(|entry| !entry.is_dir).map(|entry| (entry.name, entry.len)).collect()
}

fn rows(server: &Server, table: &Arc<TableDescriptor>) -> Vec<String> {
    let region = server.open(&whole_table(), table).expect("opens");
    let rows = scan(&region, &Scan::default(), 0).concat();
    region.close(CloseMode::Flush).expect("closed");
    rows
}

fn write_and_flush(server: &Server, table: &Arc<TableDescriptor>, rows: &[&str]) {
    let region = server.open(&whole_table(), table).expect("opens");
    for row in rows {
        write(&region, &[put(row, "f", "q", 1, row)]);
        flush(&region);
    }
    region.close(CloseMode::Flush).expect("closed");
}

/// The list follows flushes and compactions with the sizes that HBase gives, and the region goes by it.
#[test]
fn a_list_names_the_files_of_a_family() {
    let server = Server::new(NOW);
    let table = table(&["FILE"]);
    write_and_flush(&server, &table, &["a", "b"]);
    assert_eq!(listed(&server.volume), Some(there(&server.volume)));
    assert_eq!(there(&server.volume).len(), 2);
    let region = server.open(&whole_table(), &table).expect("opens");
    major_compact(&region);
    region.close(CloseMode::Flush).expect("closed");
    assert_eq!(listed(&server.volume), Some(there(&server.volume)));
    assert_eq!(there(&server.volume).len(), 1);
    assert_eq!(rows(&server, &table), ["a/f:q/1/Put=a", "b/f:q/1/Put=b"]);
}

#[test]
fn a_family_may_have_a_tracker_of_its_own() {
    for (of_table, of_family, has_list) in [("DEFAULT", "FILE", true), ("FILE", "DEFAULT", false)] {
        let server = Server::new(NOW);
        let mut table = TableDescriptor::clone(&table(&[of_table]));
        for family in table.families.values_mut() {
            family.configuration.insert(IMPL_KEY.into(), of_family.into());
        }
        write_and_flush(&server, &Arc::new(table), &["a"]);
        let list = has_list.then(|| there(&server.volume));
        assert_eq!(listed(&server.volume), list, "a table of {of_table} with a family of {of_family}");
        assert_eq!(there(&server.volume).len(), 1);
    }
}

/// A file that came into the directory without the list hearing of it was never anybody's.
#[test]
fn a_file_that_the_list_does_not_name_goes_to_the_archive() {
    let server = Server::new(NOW);
    let table = table(&["FILE"]);
    write_and_flush(&server, &table, &["a"]);
    let (name, _) = there(&server.volume).pop_first().expect("one file");
    let stranger = "0123456789abcdef0123456789abcdef";
    let bytes = server.volume.read(&dir().join(&name)).expect("memory");
    server.volume.publish(&dir().join(stranger), &bytes).expect("memory");
    let reference = format!("{stranger}.fedcba9876543210fedcba9876543210");
    server.volume.publish(&dir().join(&reference), b"no reference").expect("memory");
    assert_eq!(rows(&server, &table), ["a/f:q/1/Put=a"]);
    assert_eq!(there(&server.volume).into_keys().collect::<Vec<_>>(), [name]);
    assert!(server.volume.exists(&rootdir::archive_dir(&dir()).join(stranger)).expect("memory"));
}

#[test]
fn a_damaged_list_is_told_and_nothing_is_lost() {
    let server = Server::new(NOW);
    let table = table(&["FILE"]);
    write_and_flush(&server, &table, &["a"]);
    let lists = server.volume.list(&dir().join(list::DIR)).expect("memory");
    let path = dir().join(list::DIR).join(&lists[0].name);
    server.volume.flip_bit(&path, 9, 0);
    let error = server.open(&whole_table(), &table).expect_err("nobody knows the files").to_string();
    assert!(error.contains("Checksum mismatch") && error.contains(&lists[0].name), "{error}");
    server.volume.flip_bit(&path, 9, 0);
    assert_eq!(rows(&server, &table), ["a/f:q/1/Put=a"]);
}

/// From the directory to a list and back, with files that come and go on the way.
#[test]
fn a_migration_loses_nothing_and_brings_nothing_back() {
    let server = Server::new(NOW);
    write_and_flush(&server, &table(&["DEFAULT"]), &["a"]);
    assert_eq!(listed(&server.volume), None);
    let to_file = table(&["MIGRATION", "DEFAULT", "FILE"]);
    write_and_flush(&server, &to_file, &["b"]);
    assert_eq!(listed(&server.volume), Some(there(&server.volume)));
    write_and_flush(&server, &table(&["FILE"]), &["c"]);
    let back = table(&["MIGRATION", "FILE", "DEFAULT"]);
    write_and_flush(&server, &back, &["d"]);
    assert_eq!(listed(&server.volume), Some(there(&server.volume)));
    let default = table(&["DEFAULT"]);
    let expected = ["a/f:q/1/Put=a", "b/f:q/1/Put=b", "c/f:q/1/Put=c", "d/f:q/1/Put=d"];
    assert_eq!(rows(&server, &default), expected);
    assert!(!server.volume.exists(&dir().join(list::DIR)).expect("memory"), "it would keep archived files");
    // A list of long ago does not count when the next migration ends.
    let region = server.open(&whole_table(), &default).expect("opens");
    major_compact(&region);
    region.close(CloseMode::Flush).expect("closed");
    assert_eq!(rows(&server, &to_file), expected);
    assert_eq!(rows(&server, &table(&["FILE"])), expected);
}

/// The machine stops at each call of an opening that begins a migration, and the next opening has all files.
#[test]
fn a_migration_that_is_cut_off_begins_again() {
    let base = Server::new(NOW);
    write_and_flush(&base, &table(&["DEFAULT"]), &["a", "b"]);
    base.env.log.close().expect("closed");
    let migration = table(&["MIGRATION", "DEFAULT", "FILE"]);
    for stop in 0..200 {
        let volume = base.volume.snapshot();
        let server = Server::try_on(volume.clone(), NOW + 1000, &Config::default(), 2).expect("no faults");
        volume.stop_after(stop);
        let opened = server.open(&whole_table(), &migration).is_ok();
        let policies = [CrashPolicy::LoseUnsynced, CrashPolicy::KeepAll, CrashPolicy::Torn, CrashPolicy::TornWithHoles];
        for policy in policies {
            let left = volume.crash(&Rng::seeded(stop), policy);
            let server = Server::try_on(left, NOW + 2000, &Config::default(), 3).expect("recovered");
            let expected = ["a/f:q/1/Put=a", "b/f:q/1/Put=b"];
            if opened {
                // The master ends it when all regions have opened.
                assert_eq!(rows(&server, &table(&["FILE"])), expected, "stopped after {stop}, {policy:?}");
            }
            assert_eq!(rows(&server, &migration), expected, "stopped after {stop}, {policy:?}");
            assert_eq!(rows(&server, &table(&["FILE"])), expected, "stopped after {stop}, {policy:?}");
        }
        if opened {
            assert!(stop > 10, "only {stop} calls");
            return;
        }
    }
    panic!("an opening takes more than 200 calls");
}

/// Regions that come of a split and a merge have lists of their references.
#[test]
fn split_and_merge_write_the_lists_of_their_references() {
    let server = Server::new(NOW);
    let table = table(&["FILE"]);
    write_and_flush(&server, &table, &["a", "m"]);
    let parent = whole_table();
    let daughter = |start: &'static str, end: &'static str| {
        RegionInfo::new(table_name(), Bytes::from(start), Bytes::from(end), parent.region_id + 1)
    };
    let [bottom, top] = [daughter("", "g"), daughter("g", "")];
    split::write_daughters(&server.env, &parent, &table, [&bottom, &top]).expect("split");
    // Repeated, as after a crash.
    split::write_daughters(&server.env, &parent, &table, [&bottom, &top]).expect("split");
    for (info, row) in [(&bottom, "a/f:q/1/Put=a"), (&top, "m/f:q/1/Put=m")] {
        let dir = rootdir::family_dir(info, b"f");
        let listed = list::read(&server.volume, &dir).expect("whole").expect("a list");
        assert!(listed.len() == 1 && listed.values().all(|size| *size == 0), "{listed:?}");
        let region = server.open(info, &table).expect("opens");
        assert_eq!(scan(&region, &Scan::default(), 0).concat(), [row]);
        major_compact(&region);
        region.close(CloseMode::Flush).expect("closed");
    }
    let merged = RegionInfo::new(table_name(), Bytes::new(), Bytes::new(), parent.region_id + 2);
    split::write_merged(&server.env, &[&bottom, &top], &table, &merged).expect("merged");
    let region = server.open(&merged, &table).expect("opens");
    assert_eq!(scan(&region, &Scan::default(), 0).concat(), ["a/f:q/1/Put=a", "m/f:q/1/Put=m"]);
}

/// Recovered files wait beside the list, and one that was moved before a crash is not taken for what nobody wants.
#[test]
fn recovered_files_come_into_the_list() {
    let base = Server::new(NOW);
    let table = table(&["FILE"]);
    write_and_flush(&base, &table, &["a", "b", "c"]);
    let listed = listed(&base.volume).expect("a list");
    let names: Vec<&String> = listed.keys().collect();
    let waiting = dir().join("recovered.hfiles");
    base.volume.create_dir_all(&waiting).expect("memory");
    for name in &names[1..] {
        base.volume.rename(&dir().join(name), &waiting.join(name)).expect("memory");
    }
    let mut short = list::FileList::anew(&base.volume, &dir(), NOW).expect("memory");
    short.set(&base.volume, Entries::from([(names[0].clone(), listed[names[0]])]), NOW).expect("memory");
    base.env.log.close().expect("closed");
    for stop in 0..100 {
        let volume = base.volume.snapshot();
        let server = Server::try_on(volume.clone(), NOW + 1000, &Config::default(), 2).expect("no faults");
        volume.stop_after(stop);
        let opened = server.open(&whole_table(), &table).is_ok();
        let server = Server::try_on(volume.snapshot(), NOW + 2000, &Config::default(), 3).expect("recovered");
        let expected = ["a/f:q/1/Put=a", "b/f:q/1/Put=b", "c/f:q/1/Put=c"];
        assert_eq!(rows(&server, &table), expected, "stopped after {stop}");
        if opened {
            return;
        }
    }
    panic!("an opening takes more than 100 calls");
}
