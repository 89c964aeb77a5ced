//! What administration answers where it cannot do what it is asked, in HBase's words. Random programs against Apache HBase found these;
//! `tests/golden/admin-answers.txt` has some of them as HBase said them.

use crate::common::{bytes, fresh, table, table_name};
use crate::service::{Connected, connect};
use bytes::Bytes;
use convert::to_proto;
use model::{FamilyDescriptor, RegionInfo, TableDescriptor};
use proto::methods::Method;
use proto::pb;
use proto::pb::region_specifier::RegionSpecifierType;

const DO_NOT_RETRY: &str = "org.apache.hadoop.hbase.DoNotRetryIOException";
const DO_NOT_RETRY_REGION: &str = "org.apache.hadoop.hbase.client.DoNotRetryRegionException";
const TABLE_NOT_ENABLED: &str = "org.apache.hadoop.hbase.TableNotEnabledException";
const MERGE: &str = "org.apache.hadoop.hbase.exceptions.MergeRegionException";

async fn connected() -> Connected {
    connect(fresh().await, "MasterService").await
}

fn named(info: &RegionInfo) -> pb::RegionSpecifier {
    pb::RegionSpecifier { r#type: RegionSpecifierType::RegionName as i32, value: info.name().clone() }
}

/// The class of a refusal, and whether its message has these parts.
async fn refused(c: &Connected, method: Method, request: &impl proto::Message, class: &str, parts: &[&str]) {
    let (found, message) = c.refused(method, request).await;
    assert_eq!(found, class, "{message}");
    parts.iter().for_each(|part| assert!(message.contains(part), "{message:?} has no {part:?}"));
}

#[tokio::test]
async fn regions_of_a_disabled_table_are_neither_opened_closed_nor_moved() {
    let c = connected().await;
    c.life.create("t", &["f"], &["m"]).await;
    let info = c.life.regions("t")[0].clone();
    c.life.disable("t").await;
    let encoded = info.encoded_name();
    let assign = pb::AssignRegionRequest { region: named(&info), r#override: None };
    let disabled = format!("t is disabled for state=CLOSED, location=null, table=t, region={encoded}");
    refused(&c, Method::MasterAssignRegion, &assign, DO_NOT_RETRY, &[&disabled]).await;
    let unexpected = format!("Unexpected state for state=CLOSED, location=null, table=t, region={encoded}");
    let unassign = pb::UnassignRegionRequest { region: named(&info), force: None };
    refused(&c, Method::MasterUnassignRegion, &unassign, DO_NOT_RETRY_REGION, &[&unexpected]).await;
    let elsewhere = model::ServerName::new("elsewhere", 16020, 1);
    let moved =
        pb::MoveRegionRequest { region: named(&info), dest_server_name: Some(to_proto::server_name(&elsewhere)) };
    refused(&c, Method::MasterMoveRegion, &moved, DO_NOT_RETRY_REGION, &[&unexpected]).await;
    c.life.check();
}

#[tokio::test]
async fn a_region_that_is_open_is_assigned_as_it_is_and_moved_to_no_server_that_is_not_there() {
    let c = connected().await;
    c.life.create("t", &["f"], &[]).await;
    let info = c.life.regions("t")[0].clone();
    let assign = pb::AssignRegionRequest { region: named(&info), r#override: None };
    let _: pb::AssignRegionResponse = c.call(Method::MasterAssignRegion, &assign).await.expect("it is open");
    let elsewhere = model::ServerName::new("elsewhere", 16020, 1);
    let moved =
        pb::MoveRegionRequest { region: named(&info), dest_server_name: Some(to_proto::server_name(&elsewhere)) };
    let _: pb::MoveRegionResponse = c.call(Method::MasterMoveRegion, &moved).await.expect("HBase says nothing");
    let unassign = pb::UnassignRegionRequest { region: named(&info), force: None };
    let _: pb::UnassignRegionResponse = c.call(Method::MasterUnassignRegion, &unassign).await.expect("closed");
    let unexpected =
        format!("Unexpected state for state=CLOSED, location=null, table=t, region={}", info.encoded_name());
    refused(&c, Method::MasterUnassignRegion, &unassign, DO_NOT_RETRY_REGION, &[&unexpected]).await;
    let _: pb::AssignRegionResponse = c.call(Method::MasterAssignRegion, &assign).await.expect("opened");
    c.life.check();
}

#[tokio::test]
async fn splits_and_merges_of_regions_that_are_not_open_are_refused_in_this_order() {
    let c = connected().await;
    c.life.create("t", &["f"], &["b", "c"]).await;
    c.life.create("other", &["f"], &[]).await;
    let (regions, other) = (c.life.regions("t"), c.life.regions("other")[0].clone());
    let merge = |infos: &[&RegionInfo]| pb::MergeTableRegionsRequest {
        region: infos.iter().map(|info| named(info)).collect(),
        ..pb::MergeTableRegionsRequest::default()
    };
    let split = |info: &RegionInfo, row: &str| pb::SplitTableRegionRequest {
        region_info: to_proto::region_info(info),
        split_row: Some(bytes(row)),
        ..pb::SplitTableRegionRequest::default()
    };
    // Which tables they are of comes before whether they are neighbours, and that before whether they are open.
    let parts = ["Can't merge regions from different tables: ", "ENCODED => ", other.encoded_name()];
    refused(&c, Method::MasterMergeTableRegions, &merge(&[&regions[0], &other]), MERGE, &parts).await;
    let gap = format!(
        "Unable to merge non-adjacent or non-overlapping regions '{}', '{}' when force=false",
        regions[0].encoded_name(),
        regions[2].encoded_name()
    );
    refused(&c, Method::MasterMergeTableRegions, &merge(&[&regions[2], &regions[0]]), MERGE, &[&gap]).await;

    let unassign = pb::UnassignRegionRequest { region: named(&regions[1]), force: None };
    let _: pb::UnassignRegionResponse = c.call(Method::MasterUnassignRegion, &unassign).await.expect("closed");
    let closed = format!("{} is not OPEN; state=CLOSED", regions[1].encoded_name());
    let wrapped = format!("{DO_NOT_RETRY_REGION}: {closed}");
    refused(&c, Method::MasterMergeTableRegions, &merge(&[&regions[0], &regions[1]]), MERGE, &[&wrapped]).await;
    let split_closed = split(&regions[1], "bb");
    refused(&c, Method::MasterSplitRegion, &split_closed, DO_NOT_RETRY_REGION, &[&closed]).await;
    // A table that is not enabled comes first of all.
    c.life.disable("t").await;
    refused(&c, Method::MasterSplitRegion, &split_closed, TABLE_NOT_ENABLED, &["t"]).await;
}

#[tokio::test]
async fn a_flush_names_every_family_that_is_not_there() {
    let c = connected().await;
    c.life.create("t", &["f", "g"], &[]).await;
    let request = pb::FlushTableRequest {
        table_name: to_proto::table_name(&table_name("t")),
        column_family: ["f", "x", "y"].map(bytes).to_vec(),
        ..pb::FlushTableRequest::default()
    };
    let class = "org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException";
    let message = "Column families [x, y] don't exist in table t";
    refused(&c, Method::MasterFlushTable, &request, class, &[message]).await;
    assert!(c.life.host.flushed.lock().is_empty(), "nothing was flushed for the one that is there");
}

fn with_family(name: &str, change: impl FnOnce(&mut FamilyDescriptor)) -> TableDescriptor {
    let mut table = table(name, &["f"]);
    change(table.families.get_mut(&b"f"[..]).expect("there"));
    table
}

fn set(key: &'static str, value: &'static str) -> impl FnOnce(&mut FamilyDescriptor) {
    move |family| {
        family.attributes.insert(Bytes::from(key), Bytes::from(value));
    }
}

fn modify(table: &TableDescriptor) -> pb::ModifyTableRequest {
    pb::ModifyTableRequest {
        table_name: to_proto::table_name(&table.name),
        table_schema: to_proto::table(table),
        ..pb::ModifyTableRequest::default()
    }
}

/// Follows: `TableDescriptorChecker#sanityCheck`, whose first complaint is the one that a client sees.
#[tokio::test]
async fn of_several_things_wrong_with_a_descriptor_the_one_that_hbase_looks_at_first_is_told() {
    let c = connected().await;
    let create = |table: &TableDescriptor| pb::CreateTableRequest {
        table_schema: to_proto::table(table),
        ..pb::CreateTableRequest::default()
    };
    // The split policy before the families, the scope and the Bloom filter before the families' numbers.
    let mut bad = with_family("t", set("BLOCKSIZE", "1"));
    bad.attributes.insert(Bytes::from("SPLIT_POLICY"), Bytes::from("no.such.Policy"));
    refused(&c, Method::MasterCreateTable, &create(&bad), DO_NOT_RETRY, &["no.such.Policy"]).await;
    let bad = with_family("t", |family| {
        set("REPLICATION_SCOPE", "-1")(family);
        set("VERSIONS", "0")(family);
    });
    refused(&c, Method::MasterCreateTable, &create(&bad), DO_NOT_RETRY, &["Replication scope"]).await;
    let bad = with_family("t", |family| {
        set("BLOOMFILTER", "ROWPREFIX_FIXED_LENGTH")(family);
        set("VERSIONS", "0")(family);
    });
    refused(&c, Method::MasterCreateTable, &create(&bad), DO_NOT_RETRY, &["Failed to get bloom filter param"]).await;
    let bad = with_family("t", set("VERSIONS", "0"));
    let versions = "Maximum versions for column family f must be positive.";
    refused(&c, Method::MasterCreateTable, &create(&bad), DO_NOT_RETRY, &[versions]).await;
    // What is wrong with a descriptor is told before it is known whether there is such a table.
    refused(&c, Method::MasterModifyTable, &modify(&bad), DO_NOT_RETRY, &[versions]).await;
    let none = "org.apache.hadoop.hbase.TableNotFoundException";
    refused(&c, Method::MasterModifyTable, &modify(&table("t", &["f"])), none, &["t"]).await;
}

#[tokio::test]
async fn trackers_that_are_no_class_are_told_of_as_java_does() {
    let c = connected().await;
    c.life.create("t", &["f"], &[]).await;
    let io = "java.io.IOException";
    let unknown = "java.lang.ClassNotFoundException: ";
    let request = pb::ModifyTableStoreFileTrackerRequest {
        table_name: to_proto::table_name(&table_name("t")),
        dst_sft: "NONE".to_owned(),
        ..pb::ModifyTableStoreFileTrackerRequest::default()
    };
    let words = format!("{unknown}NONE");
    refused(&c, Method::MasterModifyTableStoreFileTracker, &request, io, &[&words]).await;
    let mut changed = table("t", &["f"]);
    changed.attributes.insert(Bytes::from("hbase.store.file-tracker.impl"), Bytes::from("x.Y"));
    let words = format!("java.lang.RuntimeException: java.lang.RuntimeException: {unknown}Class x.Y not found");
    refused(&c, Method::MasterModifyTable, &modify(&changed), io, &[&words]).await;
    // A table from before there were trackers is not told to name one.
    let _: pb::ModifyTableResponse =
        c.call(Method::MasterModifyTable, &modify(&table("t", &["f"]))).await.expect("accepted");
}

#[tokio::test]
async fn catalog_tables_stay_and_their_regions_are_counted_as_hbase_counts() {
    let c = connected().await;
    c.life.create("on", &["f"], &["m"]).await;
    c.life.create("off", &["f"], &["m"]).await;
    c.life.disable("off").await;
    let closed = c.life.regions("on")[1].clone();
    let unassign = pb::UnassignRegionRequest { region: named(&closed), force: None };
    let _: pb::UnassignRegionResponse = c.call(Method::MasterUnassignRegion, &unassign).await.expect("closed");
    let meta = to_proto::table_name(&table_name("hbase:meta"));
    let delete = pb::DeleteTableRequest { table_name: meta, ..pb::DeleteTableRequest::default() };
    refused(&c, Method::MasterDeleteTable, &delete, "java.io.IOException", &["Can't modify catalog tables"]).await;
    let status: pb::GetClusterStatusResponse =
        c.call(Method::MasterGetClusterStatus, &pb::GetClusterStatusRequest::default()).await.expect("told");
    let counts = |life_table: &str| {
        let wanted = to_proto::table_name(&table_name(life_table));
        let all = &status.cluster_status.table_region_states_count;
        let of = all.iter().find(|counts| counts.table_name == wanted).expect("counted").region_states_count;
        (of.open_regions, of.closed_regions, of.regions_in_transition, of.total_regions)
    };
    assert_eq!(counts("on"), (1, 1, 1, 2), "whatever is neither open nor split is in transition");
    assert_eq!(counts("off"), (0, 0, 0, 0), "of a disabled table no region counts");
}
