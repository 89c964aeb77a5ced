//! Read replicas come and go with their regions, and are in these regions' rows.

use crate::common::{Life, bytes, caller, fresh, table, table_name};
use crate::service::connect;
use basalt_master::cluster::RegionState;
use basalt_master::{MasterError, meta};
use model::{RegionInfo, TableDescriptor, TableName};
use parking_lot::Mutex;
use proto::methods::Method;
use proto::pb;
use std::collections::BTreeSet;
use std::sync::Arc;

fn replicated(name: &str, replication: u32) -> TableDescriptor {
    let mut table = table(name, &["f"]);
    table.attributes.insert("REGION_REPLICATION".into(), replication.to_string().into());
    table
}

async fn done(life: &Life, submitted: Result<u64, MasterError>) {
    life.master.wait_for(submitted.expect("accepted")).await.expect("done");
    life.check();
}

/// What is open of a table: start key and replica.
fn open(life: &Life) -> Vec<(String, u32)> {
    let open = life.host.open.lock();
    let of_table = open.values().map(|(info, _)| info).filter(|info| info.table == table_name("t"));
    let found: BTreeSet<(String, u32)> =
        of_table.map(|info| (String::from_utf8_lossy(&info.start_key).into_owned(), info.replica_id)).collect();
    found.into_iter().collect()
}

fn of(regions: &[&str], replication: u32) -> Vec<(String, u32)> {
    regions.iter().flat_map(|start| (0..replication).map(|id| ((*start).to_owned(), id))).collect()
}

/// The columns of a region's row that end with a replica's number.
fn columns(life: &Life, info: &RegionInfo) -> Vec<String> {
    let cells = life.catalog.lock()["1588230740"].scan();
    let row = cells.iter_from(0).filter(|cell| cell.row() == &info.name()[..]);
    let names = row.map(|cell| String::from_utf8_lossy(cell.qualifier()).into_owned());
    names.filter(|name| name.contains('_')).collect()
}

const OF_ONE: [&str; 5] = ["seqnumDuringOpen_0001", "server_0001", "serverstartcode_0001", "sn_0001", "state_0001"];

#[tokio::test]
async fn they_are_opened_and_closed_with_the_table_and_by_its_descriptor() {
    let life = fresh().await;
    done(&life, life.master.create_table(replicated("t", 2), &[bytes("m")], &caller()).await).await;
    assert_eq!(open(&life), of(&["", "m"], 2));
    let regions = life.regions("t");
    assert_eq!((regions.len(), columns(&life, &regions[0])), (2, OF_ONE.map(str::to_owned).to_vec()));
    {
        let cluster = life.master.cluster();
        let replica = cluster.region(regions[0].replica(1).encoded_name()).expect("known");
        assert_eq!((replica.state, replica.location.as_ref()), (RegionState::Open, Some(&life.host.server)));
        assert_eq!(cluster.region_counts(&table_name("t")).open, 2, "replicas are not counted as regions");
    }

    done(&life, life.master.modify_table(&table_name("t"), replicated("t", 3), true, &caller()).await).await;
    assert_eq!(open(&life), of(&["", "m"], 3));
    assert_eq!(columns(&life, &regions[1]).len(), 10);
    done(&life, life.master.modify_table(&table_name("t"), replicated("t", 2), true, &caller()).await).await;
    assert_eq!(open(&life), of(&["", "m"], 2));
    assert_eq!(columns(&life, &regions[1]), OF_ONE);

    life.disable("t").await;
    life.check();
    assert_eq!(open(&life), []);
    // Lowered while nothing is open, over a restart.
    done(&life, life.master.modify_table(&table_name("t"), replicated("t", 3), true, &caller()).await).await;
    done(&life, life.master.enable_table(&table_name("t"), &caller()).await).await;
    assert_eq!(open(&life), of(&["", "m"], 3));
    life.disable("t").await;
    let life = life.restart().await;
    done(&life, life.master.modify_table(&table_name("t"), replicated("t", 1), true, &caller()).await).await;
    assert!(columns(&life, &regions[0]).is_empty());
    done(&life, life.master.enable_table(&table_name("t"), &caller()).await).await;
    assert_eq!(open(&life), of(&["", "m"], 1));
}

#[tokio::test]
async fn they_are_opened_again_after_a_restart_and_go_with_the_table() {
    let life = fresh().await;
    done(&life, life.master.create_table(replicated("t", 3), &[], &caller()).await).await;
    let life = life.restart().await;
    life.check();
    assert_eq!(open(&life), of(&[""], 3));
    let before = life.regions("t");
    life.disable("t").await;
    done(&life, life.master.truncate_table(&table_name("t"), false, &caller()).await).await;
    assert_eq!(open(&life), of(&[""], 3));
    assert!(columns(&life, &before[0]).is_empty() && life.regions("t") != before);
    life.disable("t").await;
    done(&life, life.master.delete_table(&table_name("t"), &caller()).await).await;
    assert!(life.master.cluster().with_replicas().all(|node| node.info.table != table_name("t")));
}

#[tokio::test]
async fn a_split_or_merge_replaces_them_and_is_not_asked_of_them() {
    let life = fresh().await;
    done(&life, life.master.create_table(replicated("t", 2), &[], &caller()).await).await;
    life.fill("t");
    let parent = life.regions("t").remove(0);
    let of_replica = life.master.split_region(parent.replica(1).encoded_name(), Some(bytes("m")), &caller()).await;
    let error = of_replica.expect_err("refused").to_string();
    assert!(error.contains("Can't invoke split on non-default regions directly"), "{error}");
    done(&life, life.master.split_region(parent.encoded_name(), Some(bytes("m")), &caller()).await).await;
    assert_eq!(open(&life), of(&["", "m"], 2));
    assert!(life.master.cluster().region(parent.replica(1).encoded_name()).is_none());

    done(&life, life.master.create_table(replicated("u", 2), &[bytes("m")], &caller()).await).await;
    let regions = life.regions("u");
    let name = |info: RegionInfo| info.encoded_name().to_string();
    let mixed = [name(regions[0].clone()), name(regions[1].replica(1))];
    let error = life.master.merge_regions(&mixed, false, &caller()).await.expect_err("refused").to_string();
    assert!(error.contains("Can't merge non-default replicas"), "{error}");
    let both: Vec<String> = regions.iter().cloned().map(name).collect();
    done(&life, life.master.merge_regions(&both, false, &caller()).await).await;
    let merged = life.regions("u").remove(0);
    assert!(life.host.open.lock().contains_key(&**merged.replica(1).encoded_name()));
    assert_eq!(life.host.open.lock().values().filter(|(info, _)| info.table == table_name("u")).count(), 2);
}

/// A daughter that was split before its read replica was open had that closed by the one procedure and opened by the other, for ever (seed 4144 of the
/// simulated cluster).
#[tokio::test]
async fn nobody_else_works_on_what_a_split_or_merge_makes_before_its_replicas_are_open() {
    let life = fresh().await;
    done(&life, life.master.create_table(replicated("t", 2), &[bytes("d"), bytes("m")], &caller()).await).await;
    life.fill("t");
    let regions = life.regions("t");
    let (master, seen) = (Arc::clone(&life.master), Arc::new(Mutex::new(Vec::new())));
    let told = Arc::clone(&seen);
    *life.host.at_open.lock() = Some(Box::new(move |info| {
        let is_locked = master.views().locks().iter().any(|held| held.name == **info.replica(0).encoded_name());
        told.lock().push((info.replica_id, is_locked));
    }));
    let names = [&regions[0], &regions[1]].map(|info| info.encoded_name().to_string());
    done(&life, life.master.split_region(regions[2].encoded_name(), Some(bytes("p")), &caller()).await).await;
    done(&life, life.master.merge_regions(&names, false, &caller()).await).await;
    // Two daughters and a child, and the read replica of each.
    assert_eq!(*seen.lock(), [0, 0, 1, 1, 0, 1].map(|replica| (replica, true)));
    *life.host.at_open.lock() = None;
}

/// Nobody opened it afterwards (seed 20322 of the simulated cluster): what raised the number opens replicas of regions that are open, and a region that is opened
/// by itself came without.
#[tokio::test]
async fn a_region_that_was_closed_when_their_number_was_raised_has_them_once_it_is_open() {
    let c = connect(fresh().await, "HbckService").await;
    done(&c.life, c.life.master.create_table(replicated("t", 1), &[bytes("m")], &caller()).await).await;
    let info = c.life.regions("t").remove(0);
    let r#type = pb::region_specifier::RegionSpecifierType::RegionName as i32;
    let name = pb::RegionSpecifier { r#type, value: info.name().clone() };
    c.life.host.broken.lock().insert(info.encoded_name().to_string());
    let raised = c.life.master.modify_table(&table_name("t"), replicated("t", 2), true, &caller()).await;
    c.life.master.wait_for(raised.expect("accepted")).await.expect("one is not open, and the others have theirs");
    assert_eq!(open(&c.life), of(&["m"], 2));
    c.life.host.broken.lock().clear();
    // As hbck2 does by hand what is tried again from time to time.
    let assign = pb::AssignsRequest { region: vec![name], r#override: Some(true) };
    let assigned: pb::AssignsResponse = c.call(Method::HbckAssigns, &assign).await.expect("accepted");
    c.life.master.wait_for(assigned.pid[0]).await.expect("opened");
    assert_eq!(open(&c.life), of(&["", "m"], 2));
}

#[tokio::test]
async fn one_that_cannot_be_opened_does_not_hold_up_its_table() {
    let life = fresh().await;
    done(&life, life.master.create_table(replicated("t", 1), &[], &caller()).await).await;
    let replica = life.regions("t").remove(0).replica(1);
    life.host.broken.lock().insert(replica.encoded_name().to_string());
    done(&life, life.master.modify_table(&table_name("t"), replicated("t", 2), true, &caller()).await).await;
    assert_eq!(open(&life), of(&[""], 1));
    assert_eq!(
        life.master.cluster().region(replica.encoded_name()).map(|node| node.state),
        Some(RegionState::FailedOpen)
    );
    assert_eq!(meta::parse_meta(&life.catalog.lock()["1588230740"].scan()).strange_rows, Vec::<String>::new());
}

/// Nothing of them is in hbase:meta, which has no row of itself: who keeps the nodes is told.
#[tokio::test]
async fn hbase_meta_has_them_too() {
    let life = fresh().await;
    let alter = async |replication: &'static str| {
        let mut meta = TableDescriptor::meta();
        meta.attributes.insert("REGION_REPLICATION".into(), replication.into());
        let id = life.master.modify_table(&meta.name.clone(), meta, true, &caller()).await?;
        life.master.wait_for(id).await
    };
    alter("3").await.expect("raised");
    let told = || life.notes.meta_replicas.lock().iter().map(|(id, (_, state))| (*id, *state)).collect::<Vec<_>>();
    assert_eq!(told(), [(1, RegionState::Open), (2, RegionState::Open)]);
    let count = || life.master.cluster().with_replicas_of(&TableName::meta()).count();
    assert_eq!(count(), 3);
    assert!(life.master.run_hbck_chore().await);
    alter("1").await.expect("lowered");
    assert!(told().is_empty() && count() == 1);
    let refused = alter("70000").await.expect_err("refused");
    assert!(refused.to_string().contains("ids of replicas end at 65535"), "{refused}");
}
