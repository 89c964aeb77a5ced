//! Snapshots that HBase 2.6.4 took, and the tables that it cloned from them: `tests/golden/rootdir/snapshots.tar.gz` is its root directory.
//! Manifests written here are the bytes that HBase wrote; tables filled here from its snapshots have what its own clones have.

use crate::common::*;
use basalt_region::snapshot::{closed_region_manifest, open_region_manifest};
use base::Config;
use cell::CellType;
use fs::{FilePath, MemVolume, Volume};
use model::{Scan, TableDescriptor, TableName};
use proto::{Message, pb};
use rootdir::descriptor;
use rootdir::snapshot::restore::{Filling, find_missing, place_regions};
use rootdir::snapshot::{self, Manifest, RegionManifest, completed_dir, read_manifest};
use std::collections::BTreeSet;
use std::sync::Arc;

const NAMES: [&str; 6] = ["gs-disabled", "gs-flush", "gs-links", "gs-mob", "gs-skip", "gs-split"];

fn golden() -> (MemVolume, Server) {
    let volume = tar::unpack(include_bytes!("../../../tests/golden/rootdir/snapshots.tar.gz"));
    let server = Server::try_on(volume.clone(), 1_900_000_000_000, &Config::default(), 1).expect("no logs");
    (volume, server)
}

fn name(text: &str) -> TableName {
    TableName::parse(text).expect("legal")
}

fn table_of(volume: &MemVolume, table: &str) -> Arc<TableDescriptor> {
    Arc::new(descriptor::read(volume, &name(table)).expect("readable").expect("there"))
}

fn region_dirs(volume: &MemVolume, table: &TableName) -> BTreeSet<String> {
    rootdir::region_names(volume, &rootdir::table_dir(table)).expect("listed").into_iter().collect()
}

/// Every cell of a table without its sequence id, region by region in the order of their keys; of those that were split nothing.
fn cells(server: &Server, table: &Arc<TableDescriptor>) -> Vec<String> {
    let mut regions = Vec::new();
    for region in region_dirs(&server.volume, &table.name) {
        let dir = rootdir::table_dir(&table.name).join(region);
        let info = rootdir::read_region_info(&server.volume, &dir).expect("read").expect("a region");
        // HBase makes a directory for the region of large values here, too.
        if !info.split && **info.encoded_name() != rootdir::mob_region_name(&table.name) {
            regions.push(info);
        }
    }
    regions.sort_by(|a, b| a.start_key.cmp(&b.start_key));
    let scan = Scan { max_versions: 100, ..Scan::default() };
    let read = |info| {
        let region = server.open(info, table).unwrap_or_else(|error| panic!("{}: {error}", table.name));
        let read = crate::common::scan(&region, &scan, 0).concat();
        region.close(basalt_region::CloseMode::Flush).expect("closed");
        read
    };
    regions.iter().flat_map(read).collect()
}

/// Fills `table` from a snapshot.
fn fill(volume: &MemVolume, snapshot: &str, table: &str) -> (Arc<TableDescriptor>, Filling) {
    let manifest = read_manifest(volume, &completed_dir(snapshot)).expect("readable");
    let table = TableDescriptor { name: name(table), ..manifest.table.clone() };
    descriptor::write(volume, &table).expect("written");
    let placed = place_regions(&manifest, &table.name, &region_dirs(volume, &table.name), 1_900_000_000_000);
    let filling =
        Filling { manifest, table: table.clone(), placed, trackers: Default::default(), now_ms: 1_900_000_000_000 };
    filling.fill_regions(volume, &filling.placed).expect("filled");
    filling.fill_mob_region(volume).expect("filled");
    let kept: Vec<_> = filling.placed.iter().map(|placed| placed.info.clone()).collect();
    rootdir::archive::archive_other_regions(volume, &table.name, &kept).expect("archived");
    (Arc::new(table), filling)
}

#[test]
fn manifests_are_written_as_hbase_writes_them() {
    let (volume, _) = golden();
    let listed = snapshot::list(&volume).expect("listed").into_iter().map(|found| found.expect("readable").name);
    assert_eq!(listed.collect::<Vec<_>>(), NAMES);
    for snapshot in NAMES {
        let path = completed_dir(snapshot).join(snapshot::MANIFEST_FILE);
        let theirs = volume.read(&path).expect("read");
        let Manifest { table, regions } = read_manifest(&volume, &completed_dir(snapshot)).expect("readable");
        // HBase keeps a table's attributes in no order; the rest is the same to the byte.
        let table_schema = pb::SnapshotDataManifest::decode(&theirs[..]).expect("a message").table_schema;
        assert_eq!(convert::from_proto::table(&table_schema).expect("legal"), table);
        let region_manifests = regions.iter().map(RegionManifest::to_message).collect();
        let message = pb::SnapshotDataManifest { table_schema, region_manifests };
        assert_eq!(message.encode_to_vec(), theirs, "{snapshot}");
        let description = snapshot::read_description(&volume, &completed_dir(snapshot)).expect("readable");
        let info = volume.read(&completed_dir(snapshot).join(snapshot::INFO_FILE)).expect("read");
        assert_eq!(description.encode_to_vec(), info, "{snapshot}");
        assert_eq!(find_missing(&volume, &Manifest { table, regions }).expect("looked"), None, "{snapshot}");
    }
}

/// While a snapshot is taken each region's part is a file of its own: the message that HBase's manifest of the whole has of it.
#[test]
fn a_regions_part_is_written_as_hbase_writes_it() {
    let (volume, _) = golden();
    for name in NAMES {
        let theirs = volume.read(&completed_dir(name).join(snapshot::MANIFEST_FILE)).expect("read");
        let theirs = pb::SnapshotDataManifest::decode(&theirs[..]).expect("a message");
        let Manifest { regions, .. } = read_manifest(&volume, &completed_dir(name)).expect("readable");
        let description = snapshot::read_description(&volume, &completed_dir(name)).expect("readable");
        let again = format!("{name}-again");
        snapshot::begin(&volume, &pb::SnapshotDescription { name: again.clone(), ..description }).expect("begun");
        for (region, part) in regions.iter().zip(&theirs.region_manifests) {
            snapshot::add_region(&volume, &again, region).expect("added");
            let path = format!(".hbase-snapshot/.tmp/{again}/region-manifest.{}", region.info.encoded_name());
            assert_eq!(volume.read(&FilePath::new(&path)).expect(&path), part.encode_to_vec(), "{path}");
        }
        snapshot::abandon(&volume, &again).expect("abandoned");
    }
}

#[test]
fn a_region_names_the_files_that_hbase_named() {
    let (volume, server) = golden();
    for (snapshot, table) in [("gs-mob", "mt"), ("gs-links", "ns1:gclone"), ("gs-disabled", "gt")] {
        let table = table_of(&volume, table);
        let manifest = read_manifest(&volume, &completed_dir(snapshot)).expect("readable");
        for theirs in &manifest.regions {
            if theirs.is_mob() {
                let mob = snapshot::mob_region(&volume, &table).expect("listed").expect("there");
                assert_eq!(mob.to_message(), theirs.to_message(), "{snapshot}");
                continue;
            }
            // Of files of one age, and of closed regions, HBase lists in the order of the directory.
            let sorted = |mut manifest: RegionManifest| {
                manifest.families.retain(|family| !family.files.is_empty());
                manifest.families.iter_mut().for_each(|family| family.files.sort_by(|a, b| a.name.cmp(&b.name)));
                manifest
            };
            let wanted = sorted(theirs.clone());
            let closed = closed_region_manifest(&server.env, &theirs.info, &table).expect("listed");
            assert_eq!(sorted(closed), wanted, "{snapshot}");
            if !theirs.info.split {
                let region = server.open(&theirs.info, &table).expect("it opens");
                let open = open_region_manifest(&region, false).expect("listed");
                assert_eq!(open.families.len(), table.families.len());
                assert_eq!(sorted(RegionManifest { info: theirs.info.clone(), ..open }), wanted, "{snapshot}");
            }
        }
    }
}

#[test]
fn a_clone_has_what_hbases_clone_has() {
    let (volume, server) = golden();
    for (snapshot, theirs, ours) in [
        ("gs-flush", "ns1:gclone", "n2:own"),
        ("gs-split", "gt2", "own.with.dots"),
        ("gs-mob", "mt2", "ownmob"),
        ("gs-links", "ns1:gclone", "linked"),
    ] {
        let theirs = table_of(&volume, theirs);
        let (ours, filling) = fill(&volume, snapshot, ours);
        let (expected, found) = (cells(&server, &theirs), cells(&server, &ours));
        assert_eq!(found, expected, "{snapshot}");
        assert!(!found.is_empty());
        // Once more, as after a crash: nothing changes, nothing is lost.
        let before = volume.all_files();
        filling.fill_regions(&volume, &filling.placed).expect("filled again");
        filling.fill_mob_region(&volume).expect("filled again");
        assert_eq!(volume.all_files(), before, "{snapshot}");
    }
}

/// Links, references to links and what points back are called as HBase calls them.
#[test]
fn a_clones_files_are_called_as_hbases_are() {
    let (volume, _) = golden();
    let names = |table: &TableName| -> Vec<String> {
        let mut names: Vec<String> = volume
            .all_files()
            .iter()
            .filter_map(|path| path.as_str().strip_prefix(rootdir::table_dir(table).as_str()).map(str::to_owned))
            .filter_map(|path| path.rsplit_once('/').map(|(_, name)| name.to_owned()))
            .filter(|name| name.contains('='))
            .map(|name| name.rsplit_once('.').map_or(name.clone(), |(link, _)| format!("{link}.parent")))
            .collect();
        names.sort();
        names
    };
    let theirs = names(&name("gt2"));
    let (ours, filling) = fill(&volume, "gs-split", "own");
    assert_eq!(names(&ours.name), theirs);
    assert!(theirs.iter().any(|name| name.ends_with(".parent")), "{theirs:?}");
    for placed in &filling.placed {
        let source = &filling.manifest.regions[placed.source];
        for family in &source.families {
            for file in family.files.iter().filter(|file| file.reference.is_none() && !file.name.contains('=')) {
                let back = format!(
                    "archive/data/default/gt/{}/{}/.links-{}/{}.own",
                    source.info.encoded_name(),
                    String::from_utf8_lossy(&family.name),
                    file.name,
                    placed.info.encoded_name()
                );
                assert!(volume.exists(&FilePath::new(&back)).expect("looked"), "{back}");
            }
        }
    }
}

#[test]
fn a_restore_brings_back_what_was_there() {
    let (volume, server) = golden();
    let expected = cells(&server, &table_of(&volume, "ns1:gclone"));
    let (table, filling) = fill(&volume, "gs-flush", "gt");
    assert_eq!(cells(&server, &table), expected);
    assert!(
        filling.placed.iter().any(|placed| placed.is_there),
        "the region that was not split is restored in its place"
    );
    let split: Vec<_> = filling.placed.iter().filter(|placed| placed.info.split).collect();
    assert!(split.is_empty(), "{split:?}");
    // Back to when it was split, and to the first state again.
    let split = cells(&server, &table_of(&volume, "gt2"));
    let (table, filling) = fill(&volume, "gs-split", "gt");
    assert_eq!(cells(&server, &table), split);
    let parent = filling.placed.iter().find(|placed| placed.info.split).expect("the split region is part of it");
    assert!(rootdir::snapshot::restore::daughters(&filling.manifest, parent.source).is_some());
    let (table, _) = fill(&volume, "gs-flush", "gt");
    assert_eq!(cells(&server, &table), expected);
}

/// What came after the snapshot may be in the logs still when the server is killed.
#[test]
fn edits_in_the_log_do_not_come_back_into_a_restored_table() {
    let (volume, server) = golden();
    let (table, filling) = fill(&volume, "gs-flush", "gt");
    let expected = cells(&server, &table);
    let placed = filling.placed.iter().max_by(|a, b| a.info.start_key.cmp(&b.info.start_key)).expect("a region");
    let region = server.open(&placed.info, &table).expect("it opens");
    write(&region, &[put("zzz", "f", "q", LATEST, "late")]);
    region.close(basalt_region::CloseMode::Flush).expect("closed");
    assert_ne!(cells(&server, &table), expected);
    let (table, _) = fill(&volume, "gs-flush", "gt");
    drop((region, server));
    for inherits in [false, true] {
        let again = Server::after(volume.clone(), 1_900_000_001_000, &Config::default(), 2, inherits).expect("split");
        assert_eq!(cells(&again, &table), expected, "inherits {inherits}");
    }
}

#[test]
fn damaged_manifests_are_refused() {
    let (volume, _) = golden();
    let dir = completed_dir("gs-split");
    let path = dir.join(snapshot::MANIFEST_FILE);
    let whole = volume.read(&path).expect("read");
    for len in [0, 1, whole.len() / 2, whole.len() - 1] {
        volume.put_file(&path, &whole[..len]);
        let error = read_manifest(&volume, &dir).expect_err("cut short").to_string();
        assert!(error.contains("data.manifest"), "{error}");
    }
    let message = pb::SnapshotDataManifest::decode(&whole[..]).expect("whole");
    for bad in ["../../x", "a/b", "", ".hidden"] {
        let mut message = message.clone();
        let families = &mut message.region_manifests[0].family_files;
        families.iter_mut().flat_map(|family| &mut family.store_files).for_each(|file| file.name = bad.to_owned());
        volume.put_file(&path, &message.encode_to_vec());
        assert!(read_manifest(&volume, &dir).is_err(), "{bad:?}");
    }
    volume.remove_file(&path).expect("removed");
    assert!(read_manifest(&volume, &dir).is_err());
    volume.put_file(&dir.join(snapshot::INFO_FILE), b"\xff\xff");
    let listed = snapshot::list(&volume).expect("listed");
    assert_eq!(listed.iter().filter(|found| found.is_err()).count(), 1);
}

#[test]
fn a_missing_or_shortened_file_is_found() {
    let (volume, _) = golden();
    let manifest = read_manifest(&volume, &completed_dir("gs-mob")).expect("readable");
    for (region, family, file) in manifest.files() {
        let place = rootdir::snapshot::restore::places(region, family, file)
            .into_iter()
            .find(|p| volume.exists(p).expect("looked"));
        let place = place.expect("it is somewhere");
        let bytes = volume.read(&place).expect("read");
        volume.put_file(&place, &bytes[1..]);
        let what = find_missing(&volume, &manifest).expect("looked").expect("one is short");
        assert!(what.contains("size does not match"), "{what}");
        volume.remove_file(&place).expect("removed");
        let what = find_missing(&volume, &manifest).expect("looked").expect("one is missing");
        assert!(what.contains("Can't find hfile") && what.contains(&file.name), "{what}");
        volume.put_file(&place, &bytes);
    }
    assert_eq!(find_missing(&volume, &manifest).expect("looked"), None);
}

/// Values of a clone lie with the table that it is of: its links say so as long as one of its store files does.
#[test]
fn a_link_to_large_values_goes_when_nothing_refers_to_them() {
    let (volume, server) = golden();
    let (table, filling) = fill(&volume, "gs-mob", "ownmob");
    let region = server.open(&filling.placed[0].info, &table).expect("it opens");
    let links = || {
        let dir = rootdir::mob_family_dir(&table.name, b"m");
        let listed = volume.list(&dir).expect("listed").into_iter().map(|entry| entry.name);
        listed.filter(|name| name.starts_with("mt=")).count()
    };
    let clean =
        || basalt_region::clean_mob_files(&server.env, &table, std::slice::from_ref(&region), 0).expect("cleaned");
    clean();
    assert_eq!(links(), 1, "the clone needs it");
    write(&region, &[delete("r1", "m", "", LATEST, CellType::DeleteFamily)]);
    flush(&region);
    major_compact(&region);
    region.archive_compacted_files().expect("archived");
    clean();
    assert_eq!(links(), 0);
    let rows = crate::common::scan(&region, &Scan::default(), 0).concat();
    assert_eq!(rows.len(), 1, "{rows:?}");
}
