//! How a snapshot's directory comes and goes, whatever fails and whenever the power goes.

use super::*;
use base::Rng;
use fs::{CrashPolicy, FaultKind, MemVolume};
use model::TableName;

fn table() -> TableDescriptor {
    TableDescriptor::new(TableName::parse("t").expect("legal"), [FamilyDescriptor::new("f")])
}

fn description() -> pb::SnapshotDescription {
    pb::SnapshotDescription {
        name: "s".into(),
        table: Some("t".into()),
        version: Some(FORMAT_VERSION),
        ..Default::default()
    }
}

fn region(start: &'static str, end: &'static str) -> RegionManifest {
    let info = RegionInfo::new(table().name, Bytes::from(start), Bytes::from(end), 1);
    let file = SnapshotFile { name: "0123456789abcdef0123456789abcdef".into(), reference: None, len_bytes: 7 };
    RegionManifest { info, families: vec![FamilyFiles { name: Bytes::from("f"), files: vec![file] }] }
}

fn take(volume: &dyn Volume) -> Result<()> {
    if volume.exists(&completed_dir("s"))? {
        return Ok(complete(volume, "s")?);
    }
    begin(volume, &description())?;
    for region in [region("", "m"), region("m", "")] {
        add_region(volume, "s", &region)?;
    }
    consolidate(volume, "s", &table())?;
    Ok(complete(volume, "s")?)
}

/// Whole, or not there.
fn is_there(volume: &MemVolume, when: &str) -> bool {
    let found = list(volume).expect("listed");
    assert!(found.len() <= 1 && found.iter().all(std::result::Result::is_ok), "{when}: {found:?}");
    if found.is_empty() {
        return false;
    }
    let manifest = read_manifest(volume, &completed_dir("s")).unwrap_or_else(|error| panic!("{when}: {error}"));
    assert_eq!(manifest.regions.len(), 2, "{when}");
    true
}

#[test]
fn a_snapshot_is_there_as_a_whole_or_not_at_all() {
    for nth in 1.. {
        let volume = MemVolume::new();
        volume.fail_op(nth, FaultKind::Io);
        let taken = take(&volume).is_ok();
        for seed in 0..10 {
            let left = volume.crash(&Rng::seeded(seed), CrashPolicy::Torn);
            let when = format!("call {nth} failed, seed {seed}");
            assert!(is_there(&left, &when) || !taken, "{when}: it was lost");
            clear_working(&left, |_| false).expect("cleared");
            take(&left).unwrap_or_else(|error| panic!("{when}: {error}"));
            assert!(is_there(&left, &when));
            assert_eq!(list_if_exists(&left, &working_dir("s").parent()).expect("listed"), []);
        }
        if taken {
            assert!(nth > 10, "only {nth} calls");
            return;
        }
        assert!(take(&volume).is_ok() && is_there(&volume, "repeated"));
    }
}

#[test]
fn a_snapshot_goes_as_a_whole() {
    for nth in 1.. {
        let volume = MemVolume::new();
        take(&volume).expect("taken");
        volume.fail_op(nth, FaultKind::Io);
        let deleted = delete(&volume, "s");
        for seed in 0..10 {
            let left = volume.crash(&Rng::seeded(seed), CrashPolicy::Torn);
            let when = format!("call {nth} failed, seed {seed}");
            assert!(!(is_there(&left, &when) && deleted.is_ok()), "{when}: it came back");
            clear_working(&left, |_| false).expect("cleared");
            delete(&left, "s").expect("deleted");
            assert!(!is_there(&left, &when));
        }
        if deleted.is_ok_and(|was_there| was_there) {
            assert!(nth > 4, "only {nth} calls");
            return;
        }
    }
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    for bad in ["", ".", "..", "../x", "a/b", ".tmp", "a:b", "-a"] {
        assert!(check_name(bad).is_err(), "{bad:?}");
    }
    for good in ["s", "a.b-c_1", "größe"] {
        assert!(check_name(good).is_ok(), "{good}");
    }
}

/// A region of the table with one family, and these files.
fn with_files(files: &[(char, u64)]) -> RegionManifest {
    let file = |(digit, len_bytes): &(char, u64)| SnapshotFile {
        name: store_file(*digit),
        reference: None,
        len_bytes: *len_bytes,
    };
    let info = RegionInfo::new(table().name, Bytes::new(), Bytes::new(), 1);
    RegionManifest {
        info,
        families: vec![FamilyFiles { name: Bytes::from("f"), files: files.iter().map(file).collect() }],
    }
}

fn store_file(digit: char) -> String {
    digit.to_string().repeat(32)
}

fn take_of(volume: &dyn Volume, name: &str, files: &[(char, u64)]) {
    begin(volume, &pb::SnapshotDescription { name: name.into(), ..description() }).expect("begun");
    add_region(volume, name, &with_files(files)).expect("added");
    consolidate(volume, name, &table()).expect("consolidated");
    complete(volume, name).expect("completed");
}

#[test]
fn what_snapshots_take_is_told_apart_by_who_still_needs_it() {
    let volume = MemVolume::new();
    let home = crate::region_dir(&with_files(&[]).info).join("f");
    let archived = crate::archive_dir(&home);
    for (dir, files) in [(&home, vec![('a', 10)]), (&archived, vec![('b', 20), ('c', 30), ('d', 40)])] {
        volume.create_dir_all_durable(dir).expect("made");
        for (digit, len) in files {
            volume.publish(&dir.join(store_file(digit)), &vec![0; len]).expect("written");
        }
    }
    // A table that was made of a snapshot has a link to `c`; one that had a link to `d` is gone.
    for (digit, links) in [('c', 1), ('d', 0)] {
        let back = archived.join(format!(".links-{}", store_file(digit)));
        volume.create_dir_all_durable(&back).expect("made");
        for _ in 0..links {
            volume.publish(&back.join("0123.n=copy"), &[]).expect("written");
        }
    }
    take_of(&volume, "all", &[('a', 10), ('b', 20), ('c', 30), ('d', 40)]);
    take_of(&volume, "some", &[('a', 10), ('b', 20)]);
    take_of(&volume, "bad", &[('a', 11), ('e', 50)]);
    volume.create_dir_all_durable(&completed_dir("empty")).expect("made");

    let mut measuring = sizes::Measuring::new(100);
    for name in ["all", "bad", "empty", "gone", "some"] {
        assert!(measuring.add(&volume, name).expect("measured"), "{name}");
    }
    let measured = measuring.finish(&volume).expect("measured");
    let of = |name: &str| measured.snapshots[name].clone();
    let all = sizes::Sizes {
        files: 4,
        archived_files: 3,
        shared_bytes: 10,
        archived_bytes: 90,
        own_archived_bytes: 40,
        ..sizes::Sizes::default()
    };
    assert_eq!(of("all"), Ok(all));
    let some = sizes::Sizes { files: 2, archived_files: 1, archived_bytes: 20, own_archived_bytes: 0, ..all };
    assert_eq!(of("some"), Ok(some));
    let bad = sizes::Sizes { files: 1, shared_bytes: 10, missing: 1, corrupted: 1, ..sizes::Sizes::default() };
    assert_eq!(of("bad"), Ok(bad));
    assert!(of("empty").is_err_and(|why| why.contains("data.manifest")));
    assert!(!measured.snapshots.contains_key("gone"), "deleted meanwhile");
    assert_eq!(measured.all, sizes::Sizes { missing: 1, corrupted: 1, ..all }, "each file once");
}

#[test]
fn no_more_is_measured_than_was_to_be_looked_at() {
    let volume = MemVolume::new();
    let home = crate::region_dir(&with_files(&[]).info).join("f");
    volume.create_dir_all_durable(&home).expect("made");
    for digit in ['a', 'b', 'c'] {
        volume.publish(&home.join(store_file(digit)), b"x").expect("written");
    }
    take_of(&volume, "one", &[('a', 1)]);
    take_of(&volume, "two", &[('a', 1), ('b', 1)]);
    // A file of the snapshot, and the three of its directory, which need not be looked at again.
    let mut measuring = sizes::Measuring::new(5);
    assert!(measuring.add(&volume, "one").expect("measured"));
    assert!(!measuring.add(&volume, "two").expect("measured"), "of two more only one was to be looked at");
    let measured = measuring.finish(&volume).expect("measured");
    assert_eq!((measured.snapshots.len(), measured.all.total_bytes()), (1, 1));
}
