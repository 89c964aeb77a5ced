//! The machine goes off at every call of every DDL; after the next start the work is done whole or not at all, every
//! rule of [`crate::common::Life::check`] holds, and no store file is lost.

use crate::common::{Catalog, EVER, Life, bytes, caller, start, table, table_name};
use basalt_master::cluster::TableState;
use base::{Config, Rng};
use bytes::Bytes;
use fs::mem::{Fault, Op};
use fs::{CrashPolicy, FaultKind, FilePath, MemVolume, Volume};
use model::FamilyDescriptor;
use parking_lot::Mutex;
use proto::pb;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

type Steps<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// What a client would see of the tables, namespaces and snapshots.
type Shape = (BTreeMap<String, (TableState, Vec<Bytes>, Vec<Bytes>)>, Vec<String>, Vec<String>);

fn shape(life: &Life) -> Shape {
    let cluster = life.master.cluster();
    let table = |table: &model::TableDescriptor, state| {
        let live = cluster.regions_of(&table.name).filter(|node| node.is_live());
        let starts = live.map(|node| node.info.start_key.clone()).collect();
        (table.name.to_string(), (state, starts, table.families.keys().cloned().collect()))
    };
    let tables = cluster.tables().map(|(descriptor, state)| table(descriptor, state)).collect();
    let snapshots = rootdir::snapshot::list(&life.memory).expect("memory").into_iter();
    // Named after the time of the request.
    let name = |name: String| if name.starts_with("auto_t_") { "auto_t".to_owned() } else { name };
    let snapshots = snapshots.map(|found| name(found.expect("a snapshot is whole").name)).collect();
    (tables, cluster.namespaces().map(|(name, _)| name.to_owned()).collect(), snapshots)
}

/// Names of tables' store files, wherever they are. The master's own store is made anew at each start.
pub fn store_files(memory: &MemVolume) -> BTreeSet<String> {
    let files = memory.all_files();
    let of_tables = files.iter().filter(|path| !path.starts_with(&FilePath::new("MasterData")));
    let names = of_tables.map(|path| path.name().to_owned());
    names.filter(|name| name.len() >= 32 && name.bytes().all(|b| b.is_ascii_hexdigit())).collect()
}

pub fn copy(catalog: &Catalog) -> Catalog {
    Arc::new(Mutex::new(catalog.lock().clone()))
}

/// Lets everything that was begun end.
pub async fn settle(life: &Life) {
    let settled = async {
        while life.master.unfinished_procedures() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), settled).await.expect("what was begun ends");
}

/// Stops at every call of `steps` after `before`.
async fn at_every_call(
    name: &str,
    before: impl for<'a> Fn(&'a Life) -> Steps<'a>,
    steps: impl for<'a> Fn(&'a Life) -> Steps<'a>,
) {
    at_every_call_with(&Config::default(), name, before, steps).await;
}

/// The same with these settings.
async fn at_every_call_with(
    config: &Config,
    name: &str,
    before: impl for<'a> Fn(&'a Life) -> Steps<'a>,
    steps: impl for<'a> Fn(&'a Life) -> Steps<'a>,
) {
    let life = crate::common::fresh().await;
    before(&life).await;
    settle(&life).await;
    life.check();
    let (old_shape, files) = (shape(&life), store_files(&life.memory));
    life.master.stop();
    let (memory, catalog) = (life.memory.snapshot(), copy(&life.catalog));
    let mut new_shape = None;
    let mut visited = 0;
    for stop_after in 0i64.. {
        let (memory, catalog) = (memory.snapshot(), copy(&catalog));
        let life = start(&memory, &catalog, config.clone()).await.expect("starts");
        life.machine.switch_off_after(stop_after);
        let machine = Arc::clone(&life.machine);
        tokio::select! {
            () = machine.is_off() => {}
            () = steps(&life) => {}
        }
        let whole = !machine.went_off();
        life.machine.switch_off_after(if whole { EVER } else { 0 });
        if whole {
            settle(&life).await;
            life.check();
            new_shape = Some(shape(&life));
            life.master.stop();
            break;
        }
        life.master.stop();
        visited += 1;
    }
    let new_shape = new_shape.expect("the steps end");
    println!("{name}: {visited} calls");
    assert!(visited > 3, "{name}: the machine went off {visited} times only");
    for stop_after in 0..visited {
        let policies =
            [(CrashPolicy::LoseUnsynced, 0), (CrashPolicy::Torn, stop_after as u64), (CrashPolicy::KeepAll, 0)];
        // All three for a thorough run, one or two otherwise.
        let thorough = std::env::var_os("BASALT_TEST_THOROUGH").is_some();
        for (policy, seed) in policies.into_iter().take(if thorough { 3 } else { 1 + (stop_after % 2) as usize }) {
            let (memory, catalog) = (memory.snapshot(), copy(&catalog));
            let life = start(&memory, &catalog, config.clone()).await.expect("starts");
            life.machine.switch_off_after(stop_after);
            let machine = Arc::clone(&life.machine);
            tokio::select! {
                () = machine.is_off() => {}
                () = steps(&life) => {}
            }
            life.machine.switch_off_after(0);
            life.master.stop();
            let what = format!("{name}, off after {stop_after} calls, {policy:?} with seed {seed}");
            println!("{what}");
            let crashed = memory.crash(&Rng::seeded(seed), policy);
            let next = start(&crashed, &copy(&catalog), config.clone()).await.unwrap_or_else(|e| panic!("{what}: {e}"));
            settle(&next).await;
            next.check();
            let seen = shape(&next);
            assert!(
                seen == old_shape || seen == new_shape,
                "{what}: {seen:#?}\nneither {old_shape:#?}\nnor {new_shape:#?}"
            );
            let lost: Vec<_> = files.difference(&store_files(&crashed)).cloned().collect();
            assert_eq!(lost, Vec::<String>::new(), "{what}");
            next.master.stop();
        }
    }
}

/// Waits for a submitted procedure if it was accepted; the machine may be off already.
async fn finish(life: &Life, submitted: basalt_master::Result<u64>) {
    if let Ok(id) = submitted {
        let _ended = life.master.wait_for(id).await;
    } else {
        life.machine.is_off().await;
    }
}

fn nothing(_: &Life) -> Steps<'_> {
    Box::pin(async {})
}

fn filled(life: &Life) -> Steps<'_> {
    Box::pin(async {
        life.create("t", &["f", "g"], &["m"]).await;
        life.fill("t");
    })
}

fn filled_and_disabled(life: &Life) -> Steps<'_> {
    Box::pin(async {
        filled(life).await;
        life.disable("t").await;
    })
}

#[tokio::test]
async fn create() {
    at_every_call("create", nothing, |life| {
        Box::pin(async {
            let keys = [bytes("m"), bytes("x")];
            finish(life, life.master.create_table(table("t", &["f"]), &keys, &caller()).await).await;
        })
    })
    .await;
}

#[tokio::test]
async fn delete() {
    at_every_call("delete", filled_and_disabled, |life| {
        Box::pin(async { finish(life, life.master.delete_table(&table_name("t"), &caller()).await).await })
    })
    .await;
}

#[tokio::test]
async fn truncate() {
    at_every_call("truncate", filled_and_disabled, |life| {
        Box::pin(async { finish(life, life.master.truncate_table(&table_name("t"), true, &caller()).await).await })
    })
    .await;
}

#[tokio::test]
async fn truncate_region() {
    at_every_call("truncate a region", filled, |life| {
        Box::pin(async {
            let region = life.regions("t").remove(0);
            finish(life, life.master.truncate_region(region, &caller()).await).await;
        })
    })
    .await;
}

#[tokio::test]
async fn disable() {
    at_every_call("disable", filled, |life| {
        Box::pin(async { finish(life, life.master.disable_table(&table_name("t"), &caller()).await).await })
    })
    .await;
}

#[tokio::test]
async fn enable() {
    at_every_call("enable", filled_and_disabled, |life| {
        Box::pin(async { finish(life, life.master.enable_table(&table_name("t"), &caller()).await).await })
    })
    .await;
}

#[tokio::test]
async fn add_family() {
    at_every_call("add family", filled, |life| {
        Box::pin(async {
            let family = FamilyDescriptor::new("h");
            finish(life, life.master.add_family(&table_name("t"), family, &caller()).await).await;
        })
    })
    .await;
}

#[tokio::test]
async fn delete_family() {
    at_every_call("delete family", filled, |life| {
        Box::pin(async {
            finish(life, life.master.delete_family(&table_name("t"), &bytes("g"), &caller()).await).await
        })
    })
    .await;
}

/// What is deleted has a snapshot before it, or is still there.
#[tokio::test]
async fn deletions_after_a_recovery_snapshot() {
    let mut config = Config::default();
    config.set("hbase.snapshot.before.destructive.action.enabled", "true");
    at_every_call_with(&config, "delete after a snapshot", filled_and_disabled, |life| {
        Box::pin(async { finish(life, life.master.delete_table(&table_name("t"), &caller()).await).await })
    })
    .await;
    at_every_call_with(&config, "truncate after a snapshot", filled_and_disabled, |life| {
        Box::pin(async { finish(life, life.master.truncate_table(&table_name("t"), true, &caller()).await).await })
    })
    .await;
    at_every_call_with(&config, "delete family after a snapshot", filled, |life| {
        Box::pin(async {
            finish(life, life.master.delete_family(&table_name("t"), &bytes("g"), &caller()).await).await
        })
    })
    .await;
}

#[tokio::test]
async fn split() {
    at_every_call("split", filled, |life| {
        Box::pin(async {
            let region = life.regions("t").remove(1);
            let row = Some(bytes("p"));
            finish(life, life.master.split_region(region.encoded_name(), row, &caller()).await).await;
        })
    })
    .await;
}

#[tokio::test]
async fn merge() {
    at_every_call("merge", filled, |life| {
        Box::pin(async {
            let names: Vec<String> = life.regions("t").iter().map(|info| info.encoded_name().to_string()).collect();
            finish(life, life.master.merge_regions(&names, false, &caller()).await).await;
        })
    })
    .await;
}

#[tokio::test]
async fn janitor() {
    fn split_and_compacted(life: &Life) -> Steps<'_> {
        Box::pin(async {
            filled(life).await;
            let region = life.regions("t").remove(1);
            let id = life.master.split_region(region.encoded_name(), Some(bytes("p")), &caller()).await;
            life.master.wait_for(id.expect("accepted")).await.expect("split");
            for path in
                life.memory.all_files().into_iter().filter(|path| path.name().ends_with(&**region.encoded_name()))
            {
                life.memory.remove_file(&path).expect("memory");
                life.memory.sync_dir(&path.parent()).expect("memory");
            }
            assert!(life.memory.exists(&rootdir::region_dir(&region)).expect("memory"));
        })
    }
    at_every_call("janitor", split_and_compacted, |life| {
        Box::pin(async {
            if life.master.run_catalog_janitor().await.is_err() {
                life.machine.is_off().await;
            }
        })
    })
    .await;
}

#[tokio::test]
async fn namespaces() {
    at_every_call("create namespace", nothing, |life| {
        Box::pin(async {
            finish(life, life.master.create_namespace("ns".into(), Default::default(), &caller()).await).await
        })
    })
    .await;
    fn made(life: &Life) -> Steps<'_> {
        Box::pin(async {
            finish(life, life.master.create_namespace("ns".into(), Default::default(), &caller()).await).await
        })
    }
    at_every_call("delete namespace", made, |life| {
        Box::pin(async { finish(life, life.master.delete_namespace("ns", &caller()).await).await })
    })
    .await;
}

/// A disk that fails under the record of a procedure: where calls to `op` go wrong, once or for ever.
fn fail_records(life: &Life, op: Op, forever: bool) {
    let path_contains = Some("MasterData/basalt/procedures".to_owned());
    life.memory.inject(Fault { op: Some(op), path_contains, nth: 1, kind: FaultKind::Io, forever });
}

fn wanted(name: &str, table: &str) -> pb::SnapshotDescription {
    pb::SnapshotDescription { name: name.into(), table: Some(table.into()), ..Default::default() }
}

async fn snapshotted(life: &Life) {
    let id = life.master.take_snapshot(wanted("s", "t"), &caller()).await.expect("accepted");
    life.master.wait_for(id).await.expect("taken");
}

/// Every file that a snapshot names is somewhere.
fn whole_snapshots(life: &Life) {
    for found in rootdir::snapshot::list(&life.memory).expect("memory") {
        let dir = rootdir::snapshot::completed_dir(&found.expect("whole").name);
        let manifest = rootdir::snapshot::read_manifest(&life.memory, &dir).expect("whole");
        let missing = rootdir::snapshot::restore::find_missing(&life.memory, &manifest).expect("memory");
        assert_eq!(missing, None);
    }
}

#[tokio::test]
async fn take_snapshot() {
    for before in [filled, filled_and_disabled] {
        at_every_call("take a snapshot", before, |life| {
            Box::pin(async {
                finish(life, life.master.take_snapshot(wanted("s", "t"), &caller()).await).await;
                assert!(life.machine.went_off() || shape(life).2 == ["s"], "it is taken");
                whole_snapshots(life);
            })
        })
        .await;
    }
}

/// A table that has changed since its snapshot: a family more, other files, a region split.
fn changed_since_its_snapshot(life: &Life) -> Steps<'_> {
    Box::pin(async {
        filled(life).await;
        snapshotted(life).await;
        let id = life.master.add_family(&table_name("t"), FamilyDescriptor::new("h"), &caller()).await;
        life.master.wait_for(id.expect("accepted")).await.expect("added");
        life.fill("t");
        let region = life.regions("t").remove(1);
        let id = life.master.split_region(region.encoded_name(), Some(bytes("p")), &caller()).await;
        life.master.wait_for(id.expect("accepted")).await.expect("split");
        life.disable("t").await;
        let file = life
            .memory
            .all_files()
            .into_iter()
            .find(|path| path.as_str().starts_with("data/default/t/") && path.parent().name() == "f");
        let file = file.expect("a file");
        rootdir::archive_files(&life.memory, &file.parent(), &[file.name()]).expect("memory");
    })
}

#[tokio::test]
async fn restore_snapshot() {
    at_every_call("restore a snapshot", changed_since_its_snapshot, |life| {
        Box::pin(async {
            finish(life, life.master.restore_snapshot(&wanted("s", "t"), None, &caller()).await).await;
            assert!(life.machine.went_off() || shape(life).0["t"].2 == [bytes("f"), bytes("g")], "it is restored");
            whole_snapshots(life);
        })
    })
    .await;
}

#[tokio::test]
async fn clone_snapshot() {
    at_every_call("clone a snapshot", changed_since_its_snapshot, |life| {
        Box::pin(async {
            finish(life, life.master.restore_snapshot(&wanted("s", "copy"), None, &caller()).await).await;
            assert!(life.machine.went_off() || shape(life).0.contains_key("copy"), "it is cloned");
            whole_snapshots(life);
        })
    })
    .await;
}

#[tokio::test]
async fn delete_snapshot() {
    at_every_call("delete a snapshot", changed_since_its_snapshot, |life| {
        Box::pin(async {
            if life.master.delete_snapshot("s").await.is_err() {
                life.machine.is_off().await;
            }
        })
    })
    .await;
}

/// The record of a refused procedure was already in its place when its directory could not be synced: the next start took it for
/// one that had been accepted, and deleted a table.
#[tokio::test]
async fn a_refused_procedure_does_not_come_back() {
    for op in [Op::Create, Op::Append, Op::Sync, Op::Rename, Op::SyncDir] {
        let life = crate::common::fresh().await;
        filled_and_disabled(&life).await;
        settle(&life).await;
        let before = shape(&life);
        fail_records(&life, op, false);
        let refused = life.master.delete_table(&table_name("t"), &caller()).await;
        let error = refused.expect_err("no record, no procedure");
        assert!(!error.message.contains("unknown"), "{op:?}: it was taken back: {error}");
        life.master.stop();
        for policy in [CrashPolicy::KeepAll, CrashPolicy::LoseUnsynced, CrashPolicy::Torn] {
            let crashed = life.memory.crash(&Rng::seeded(1), policy);
            let next = start(&crashed, &copy(&life.catalog), Config::default()).await.expect("starts");
            settle(&next).await;
            next.check();
            assert_eq!(shape(&next), before, "{op:?} fails, {policy:?}");
            next.master.stop();
        }
    }
}

/// The record cannot be taken back either: the client hears that its fate is open, and until it is settled nobody else may work
/// on the table.
#[tokio::test]
async fn a_procedure_that_cannot_be_taken_back_is_of_unknown_fate_until_it_is() {
    let life = crate::common::fresh().await;
    filled_and_disabled(&life).await;
    settle(&life).await;
    let before = shape(&life);
    fail_records(&life, Op::SyncDir, true);
    let nonce = Some(model::Nonce { group: 1, number: 2 });
    let with_nonce = basalt_master::Caller { nonce, ..caller() };
    let told = life.master.delete_table(&table_name("t"), &with_nonce).await.expect_err("not accepted");
    assert!(told.message.contains("unknown"), "{told}");
    assert_eq!(life.master.unfinished_procedures(), 1, "it is shown as long as it may come back");
    let master = Arc::clone(&life.master);
    let enabled = tokio::spawn(async move { master.enable_table(&table_name("t"), &caller()).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!enabled.is_finished(), "nobody builds on the refusal");
    assert_eq!(shape(&life), before, "and it is not done");
    life.memory.clear_faults();
    let id = enabled.await.expect("no panic").expect("the disk works again");
    life.master.wait_for(id).await.expect("enabled");
    let again = life.master.delete_table(&table_name("t"), &with_nonce).await.expect("the earlier id");
    life.master.wait_for(again).await.expect_err("a repetition hears the refusal");
    let enabled = shape(&life);
    assert_ne!(enabled, before);
    life.master.stop();
    for policy in [CrashPolicy::KeepAll, CrashPolicy::LoseUnsynced] {
        let crashed = life.memory.crash(&Rng::seeded(1), policy);
        let next = start(&crashed, &copy(&life.catalog), Config::default()).await.expect("starts");
        settle(&next).await;
        next.check();
        assert_eq!(shape(&next), enabled, "{policy:?}");
        next.master.stop();
    }
}
