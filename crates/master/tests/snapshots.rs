//! Snapshots as clients ask for them: what is refused and how, what is kept for them, what becomes of tables made of them.

use crate::common::{Life, bytes, caller, fresh, start, table_name};
use basalt_master::cluster::{RegionState, TableState};
use basalt_master::{Caller, ErrorKind};
use base::Config;
use bytes::Bytes;
use fs::{FilePath, Volume};
use model::{Nonce, TableDescriptor};
use proto::pb;
use rootdir::snapshot;
use std::sync::Arc;

fn wanted(name: &str, table: &str) -> pb::SnapshotDescription {
    pb::SnapshotDescription { name: name.into(), table: Some(table.into()), ..Default::default() }
}

async fn take(life: &Life, wanted: pb::SnapshotDescription) -> basalt_master::Result<()> {
    let id = life.master.take_snapshot(wanted, &caller()).await?;
    life.master.wait_for(id).await.map(drop)
}

async fn restore(life: &Life, name: &str, table: &str) -> basalt_master::Result<()> {
    let id = life.master.restore_snapshot(&wanted(name, table), None, &caller()).await?;
    life.master.wait_for(id).await.map(drop)
}

async fn with_a_table() -> Life {
    let life = fresh().await;
    life.create("t", &["f", "g"], &["m"]).await;
    life.fill("t");
    life
}

async fn names(life: &Life) -> Vec<String> {
    life.master.list_snapshots().await.expect("listed").into_iter().map(|snapshot| snapshot.name).collect()
}

/// Checks that it was refused so.
fn refused<T: std::fmt::Debug>(result: basalt_master::Result<T>, kind: ErrorKind, part: &str) {
    let error = result.expect_err(part);
    assert!(error.kind == kind && error.message.contains(part), "{:?}: {error}; wanted {kind:?}: {part}", error.kind);
}

#[tokio::test]
async fn what_cannot_be_is_refused_as_hbase_does_and_changes_nothing() {
    use ErrorKind::*;
    let life = with_a_table().await;
    for bad in ["", ".tmp", "../x", "a/b"] {
        refused(take(&life, wanted(bad, "t")).await, IllegalArgument, "");
        refused(life.master.delete_snapshot(bad).await, IllegalArgument, "");
    }
    let without_table = pb::SnapshotDescription { name: "s".into(), ..Default::default() };
    refused(take(&life, without_table).await, IllegalArgument, "Descriptor doesn't apply to a table");
    refused(take(&life, wanted("s", "hbase:meta")).await, IllegalArgument, "System table snapshots are not allowed");
    refused(take(&life, wanted("s", "no")).await, SnapshotCreation, "Table 'no' doesn't exist, can't take snapshot.");
    refused(restore(&life, "s", "t").await, SnapshotDoesNotExist, "Snapshot 's' doesn't exist on the filesystem");
    refused(life.master.delete_snapshot("s").await, SnapshotDoesNotExist, "Snapshot 's' doesn't exist");
    assert_eq!(names(&life).await, Vec::<String>::new());

    take(&life, wanted("s", "t")).await.expect("taken");
    refused(take(&life, wanted("s", "t")).await, SnapshotExists, "Snapshot 's' already stored on the filesystem.");
    refused(restore(&life, "s", "t").await, Unsupported, "Table 't' must be disabled in order to perform a restore");
    refused(restore(&life, "s", "nowhere:t").await, NamespaceNotFound, "nowhere");
    life.create("other", &["f"], &[]).await;
    refused(restore(&life, "s", "other").await, TableExists, "other");
    let request = wanted("s", "copy");
    refused(life.master.restore_snapshot(&request, Some("x.Y"), &caller()).await, Io, "Class x.Y not found");
    assert_eq!(names(&life).await, ["s"]);
    life.check();
}

#[tokio::test]
async fn a_damaged_snapshot_makes_no_table() {
    let life = with_a_table().await;
    take(&life, wanted("s", "t")).await.expect("taken");
    let path = snapshot::completed_dir("s").join(snapshot::MANIFEST_FILE);
    let whole = life.memory.read(&path).expect("memory");
    life.memory.put_file(&path, &whole[..whole.len() - 1]);
    refused(restore(&life, "s", "copy").await, ErrorKind::CorruptedSnapshot, "data.manifest");
    life.memory.put_file(&path, &whole);
    let manifest = snapshot::read_manifest(&life.memory, &snapshot::completed_dir("s")).expect("whole");
    let (region, family, file) = manifest.files().next().expect("a file");
    let place = rootdir::family_dir(region, family).join(&file.name);
    life.memory.remove_file(&place).expect("memory");
    refused(restore(&life, "s", "copy").await, ErrorKind::CorruptedSnapshot, "Can't find hfile");
    assert!(life.master.cluster().state(&table_name("copy")).is_none());
    // One whose description is gone is not listed, and can be deleted.
    life.memory.remove_file(&snapshot::completed_dir("s").join(snapshot::INFO_FILE)).expect("memory");
    assert_eq!(names(&life).await, Vec::<String>::new());
    life.master.delete_snapshot("s").await.expect("deleted");
    assert!(!life.memory.exists(&snapshot::completed_dir("s")).expect("memory"));
}

#[tokio::test]
async fn a_flush_comes_first_unless_it_is_not_wanted() {
    let life = with_a_table().await;
    take(&life, wanted("s", "t")).await.expect("taken");
    assert_eq!(std::mem::take(&mut *life.host.flushed.lock()).len(), 2);
    let skip = pb::snapshot_description::Type::Skipflush as i32;
    take(&life, pb::SnapshotDescription { r#type: Some(skip), ..wanted("skip", "t") }).await.expect("taken");
    assert_eq!(life.host.flushed.lock().len(), 0);
    life.disable("t").await;
    take(&life, wanted("disabled", "t")).await.expect("taken");
    let kind =
        |name: &str| snapshot::read_description(&life.memory, &snapshot::completed_dir(name)).expect("whole").r#type();
    use pb::snapshot_description::Type;
    assert_eq!([kind("s"), kind("skip"), kind("disabled")], [Type::Flush, Type::Skipflush, Type::Disabled]);
}

#[tokio::test]
async fn a_clone_serves_and_outlives_its_table_and_its_snapshot() {
    let life = with_a_table().await;
    take(&life, wanted("s", "t")).await.expect("taken");
    let id = life.master.create_namespace("ns".into(), Default::default(), &caller()).await.expect("accepted");
    life.master.wait_for(id).await.expect("made");
    restore(&life, "s", "ns:copy").await.expect("cloned");
    assert_eq!(life.master.cluster().state(&table_name("ns:copy")), Some(TableState::Enabled));
    life.check();
    let manifest = snapshot::read_manifest(&life.memory, &snapshot::completed_dir("s")).expect("whole");
    let files: Vec<String> = manifest.files().map(|(_, _, file)| file.name.clone()).collect();
    assert!(files.len() >= 4, "{files:?}");
    life.disable("t").await;
    let id = life.master.delete_table(&table_name("t"), &caller()).await.expect("accepted");
    life.master.wait_for(id).await.expect("deleted");
    life.master.delete_snapshot("s").await.expect("deleted");
    for _ in 0..3 {
        life.clock.advance_ms(86_400_000);
        life.master.run_cleaners().await.expect("cleaned");
    }
    let archived = |name: &String| {
        life.memory.all_files().iter().any(|path| path.as_str().starts_with("archive/") && path.name() == name)
    };
    assert!(files.iter().all(archived), "the clone's links keep them");
    let id = life.master.disable_table(&table_name("ns:copy"), &caller()).await.expect("accepted");
    life.master.wait_for(id).await.expect("disabled");
    let id = life.master.delete_table(&table_name("ns:copy"), &caller()).await.expect("accepted");
    life.master.wait_for(id).await.expect("deleted");
    for _ in 0..6 {
        life.clock.advance_ms(86_400_000);
        life.master.run_cleaners().await.expect("cleaned");
    }
    assert!(!files.iter().any(archived), "and nobody does any more: {:?}", life.memory.all_files());
}

#[tokio::test]
async fn a_snapshot_keeps_the_files_of_a_table_that_is_gone() {
    let life = with_a_table().await;
    take(&life, wanted("s", "t")).await.expect("taken");
    life.disable("t").await;
    let id = life.master.delete_table(&table_name("t"), &caller()).await.expect("accepted");
    life.master.wait_for(id).await.expect("deleted");
    for _ in 0..3 {
        life.clock.advance_ms(86_400_000);
        life.master.run_cleaners().await.expect("cleaned");
    }
    restore(&life, "s", "t").await.expect("it comes back under its name");
    life.check();
    assert_eq!(life.master.cluster().state(&table_name("t")), Some(TableState::Enabled));
    let starts: Vec<Bytes> = life.regions("t").into_iter().map(|info| info.start_key).collect();
    assert_eq!(starts, [bytes(""), bytes("m")]);
}

#[tokio::test]
async fn a_snapshot_goes_when_its_time_is_over() {
    let life = with_a_table().await;
    take(&life, pb::SnapshotDescription { ttl: Some(60), ..wanted("short", "t") }).await.expect("taken");
    take(&life, wanted("forever", "t")).await.expect("taken");
    assert_eq!(life.master.delete_expired_snapshots().await.expect("looked"), 0);
    life.clock.advance_ms(61_000);
    refused(
        restore(&life, "short", "copy").await,
        ErrorKind::SnapshotTtlExpired,
        "TTL for snapshot 'short' has already expired.",
    );
    assert_eq!(life.master.delete_expired_snapshots().await.expect("looked"), 1);
    assert_eq!(names(&life).await, ["forever"]);
    life.master.stop();
    let mut config = Config::default();
    config.set("hbase.master.snapshot.ttl", "60");
    let next = start(&life.memory, &life.catalog, config).await.expect("starts");
    take(&next, wanted("default", "t")).await.expect("taken");
    let ttl = next.master.list_snapshots().await.expect("listed").iter().find(|s| s.name == "default").map(|s| s.ttl());
    assert_eq!(ttl, Some(60));
}

#[tokio::test]
async fn a_repeated_request_is_one_snapshot() {
    let life = with_a_table().await;
    let caller = Caller { nonce: Some(Nonce { group: 3, number: 4 }), ..caller() };
    let first = life.master.take_snapshot(wanted("s", "t"), &caller).await.expect("accepted");
    let again = life.master.take_snapshot(wanted("s", "t"), &caller).await.expect("the same");
    assert_eq!(first, again);
    life.master.wait_for(first).await.expect("taken");
    let later = life.master.take_snapshot(wanted("s", "t"), &caller).await.expect("the same");
    assert_eq!(first, later);
}

/// A region that cannot be asked fails the snapshot, and nothing is left of it.
#[tokio::test]
async fn a_snapshot_that_fails_leaves_nothing() {
    let life = with_a_table().await;
    life.host.open.lock().clear();
    refused(take(&life, wanted("s", "t")).await, ErrorKind::SnapshotCreation, "region t,");
    assert_eq!(names(&life).await, Vec::<String>::new());
    let working = rootdir::list_if_exists(&life.memory, &FilePath::new(".hbase-snapshot/.tmp")).expect("memory");
    assert_eq!(working, []);
}

#[tokio::test]
async fn a_restored_table_has_its_families_and_regions_of_then() {
    let life = with_a_table().await;
    take(&life, wanted("s", "t")).await.expect("taken");
    let before = life.regions("t");
    let id =
        life.master.add_family(&table_name("t"), model::FamilyDescriptor::new("h"), &caller()).await.expect("accepted");
    life.master.wait_for(id).await.expect("added");
    let region = life.regions("t").remove(1);
    let id = life.master.split_region(region.encoded_name(), Some(bytes("p")), &caller()).await.expect("accepted");
    life.master.wait_for(id).await.expect("split");
    life.disable("t").await;
    let master = Arc::clone(&life.master);
    restore(&life, "s", "t").await.expect("restored");
    life.check();
    assert_eq!(life.regions("t"), before);
    let families: Vec<Bytes> =
        master.cluster().descriptor(&table_name("t")).expect("there").families.keys().cloned().collect();
    assert_eq!(families, [bytes("f"), bytes("g")]);
    let id = life.master.enable_table(&table_name("t"), &caller()).await.expect("accepted");
    life.master.wait_for(id).await.expect("enabled");
    life.check();
    assert_eq!(master.run_catalog_janitor().await.expect("ran"), 0);
}

/// It was said to be done, with regions that nobody could read.
#[tokio::test]
async fn a_clone_whose_regions_cannot_be_opened_is_no_success() {
    let life = with_a_table().await;
    take(&life, wanted("s", "t")).await.expect("taken");
    life.host.broken.lock().insert("copy".to_owned());
    let part = "Table copy is enabled, but 2 of its 2 regions cannot be opened";
    refused(restore(&life, "s", "copy").await, ErrorKind::HBaseIo, part);
    let state_of_all = |state: RegionState| life.regions("copy").iter().all(|info| state_of(&life, info) == state);
    assert!(life.regions("copy").len() == 2 && state_of_all(RegionState::FailedOpen));
    // Of a made and of an enabled table the same is said.
    life.host.broken.lock().insert("new".to_owned());
    let new = crate::common::table("new", &["f"]);
    let id = life.master.create_table(new, &[bytes("m")], &caller()).await.expect("accepted");
    let part = "Table new is enabled, but 2 of its 2 regions cannot be opened";
    refused(life.master.wait_for(id).await, ErrorKind::HBaseIo, part);
    life.disable("copy").await;
    let enable = async || {
        let id = life.master.enable_table(&table_name("copy"), &caller()).await.expect("accepted");
        life.master.wait_for(id).await
    };
    refused(enable().await, ErrorKind::HBaseIo, "Table copy is enabled, but 2 of its 2 regions cannot be opened");
    life.host.broken.lock().clear();
    life.disable("copy").await;
    enable().await.expect("it can be opened now");
    assert!(state_of_all(RegionState::Open));
    life.disable("new").await;
    life.check();
}

fn state_of(life: &Life, info: &model::RegionInfo) -> RegionState {
    life.master.cluster().region(info.encoded_name()).expect("is known").state
}

fn with_recovery(enabled: &str) -> Config {
    let mut config = Config::default();
    config.set("hbase.snapshot.before.destructive.action.enabled", "true");
    config.set("hbase.snapshot.enabled", enabled);
    config
}

/// Life and kind of each snapshot, with the name up to its time.
async fn recovery_snapshots(life: &Life) -> Vec<(String, i64, pb::snapshot_description::Type)> {
    let listed = life.master.list_snapshots().await.expect("listed");
    let stem = |name: &str| name.rsplit_once('_').expect("a time").0.to_owned();
    listed.iter().map(|snapshot| (stem(&snapshot.name), snapshot.ttl(), snapshot.r#type())).collect()
}

#[tokio::test]
async fn what_is_deleted_can_be_had_back_from_a_snapshot_taken_before() {
    use pb::snapshot_description::Type;
    let life = start(&fs::MemVolume::new(), &Default::default(), with_recovery("true")).await.expect("starts");
    life.create("t", &["f", "g"], &["m"]).await;
    life.fill("t");
    // A family, of a table that serves.
    let id = life.master.delete_family(&table_name("t"), &bytes("g"), &caller()).await.expect("accepted");
    life.master.wait_for(id).await.expect("deleted");
    assert_eq!(recovery_snapshots(&life).await, [("auto_t".to_owned(), 86_400, Type::Flush)]);
    let name = names(&life).await.remove(0);
    let manifest = snapshot::read_manifest(&life.memory, &snapshot::completed_dir(&name)).expect("whole");
    assert_eq!(manifest.table.families.len(), 2, "the family that was deleted is in it");
    life.master.delete_snapshot(&name).await.expect("deleted");

    // The table says how long; a word that is no number counts for nothing.
    for (ttl, wanted) in [("77", 77), ("soon", 86_400), ("0", 0)] {
        let mut table = TableDescriptor::clone(&life.master.cluster().descriptor(&table_name("t")).expect("there"));
        table.attributes.insert("RECOVERY_SNAPSHOT_TTL".into(), ttl.into());
        let id = life.master.modify_table(&table_name("t"), table, true, &caller()).await.expect("accepted");
        life.master.wait_for(id).await.expect("changed");
        assert_eq!(names(&life).await, Vec::<String>::new(), "nothing was deleted");
        life.disable("t").await;
        life.clock.advance_ms(1);
        let id = life.master.truncate_table(&table_name("t"), true, &caller()).await.expect("accepted");
        life.master.wait_for(id).await.expect("truncated");
        assert_eq!(recovery_snapshots(&life).await, [("auto_t".to_owned(), wanted, Type::Disabled)]);
        life.master.delete_snapshot(&names(&life).await.remove(0)).await.expect("deleted");
    }

    // A table of a namespace, gone and back.
    let id = life.master.create_namespace("ns".into(), Default::default(), &caller()).await.expect("accepted");
    life.master.wait_for(id).await.expect("made");
    life.create("ns:t", &["f"], &["m"]).await;
    life.fill("ns:t");
    life.disable("ns:t").await;
    let id = life.master.delete_table(&table_name("ns:t"), &caller()).await.expect("accepted");
    life.master.wait_for(id).await.expect("deleted");
    assert_eq!(recovery_snapshots(&life).await, [("auto_ns-t".to_owned(), 86_400, Type::Disabled)]);
    let name = names(&life).await.remove(0);
    restore(&life, &name, "ns:t").await.expect("back");
    assert_eq!(life.regions("ns:t").len(), 2);
    life.check();
}

#[tokio::test]
async fn where_no_snapshot_can_be_taken_none_is_taken_before_a_deletion() {
    let life = start(&fs::MemVolume::new(), &Default::default(), with_recovery("false")).await.expect("starts");
    life.create("t", &["f"], &[]).await;
    life.disable("t").await;
    let id = life.master.delete_table(&table_name("t"), &caller()).await.expect("accepted");
    life.master.wait_for(id).await.expect("deleted");
    assert_eq!(life.files_below(".hbase-snapshot"), Vec::<String>::new());
}

/// A deletion whose snapshot fails deletes nothing.
#[tokio::test]
async fn a_table_stays_when_the_snapshot_before_its_deletion_fails() {
    let life = start(&fs::MemVolume::new(), &Default::default(), with_recovery("true")).await.expect("starts");
    life.create("t", &["f", "g"], &["m"]).await;
    life.fill("t");
    life.disable("t").await;
    life.host.broken.lock().insert("t".into());
    let id = life.master.delete_table(&table_name("t"), &caller()).await.expect("accepted");
    life.master.wait_for(id).await.expect_err("no snapshot");
    life.host.broken.lock().clear();
    assert!(life.master.cluster().exists(&table_name("t")));
    assert_eq!(names(&life).await, Vec::<String>::new());
    life.check();
    let id = life.master.delete_table(&table_name("t"), &caller()).await.expect("accepted");
    life.master.wait_for(id).await.expect("deleted");
    assert_eq!(names(&life).await.len(), 1);
}
