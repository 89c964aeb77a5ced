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
