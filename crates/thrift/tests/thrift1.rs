//! Thrift 1 over sockets.

use crate::socket::{Client, Gateway, Reply, b};
use basalt_thrift::Version;
use basalt_thrift::v1::types::*;
use basalt_thrift::wire::Wire;

async fn table(client: &mut Client) -> Reply<()> {
    let family = ColumnDescriptor {
        name: b("f:"),
        max_versions: 3,
        compression: "NONE".to_owned(),
        bloom_filter_type: "NONE".to_owned(),
        time_to_live: -1,
        ..ColumnDescriptor::default()
    };
    client
        .call("createTable", |w, last| {
            b("t").write_field(w, 1, last);
            vec![family].write_field(w, 2, last);
        })
        .await
}

fn mutation(column: &str, value: &str) -> Mutation {
    Mutation { is_delete: false, column: b(column), value: Some(b(value)), write_to_wal: true }
}

async fn mutate(client: &mut Client, row: &str, mutations: Vec<Mutation>) -> Reply<()> {
    client
        .call("mutateRow", |w, last| {
            b("t").write_field(w, 1, last);
            b(row).write_field(w, 2, last);
            mutations.write_field(w, 3, last);
        })
        .await
}

async fn row(client: &mut Client, row: &str) -> Vec<TRowResult> {
    let arguments = |w: &mut _, last: &mut i16| {
        b("t").write_field(w, 1, last);
        b(row).write_field(w, 2, last);
    };
    client.call("getRow", arguments).await.value()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_written_read_and_counted() {
    let gateway = Gateway::start(Version::One, |_| ()).await;
    let mut client = gateway.connect().await;
    table(&mut client).await.value();
    assert_eq!(table(&mut client).await, Reply::Thrown(3, "table name already in use".to_owned()));
    mutate(&mut client, "a", vec![mutation("f:q", "1"), mutation("f:r", "2")]).await.value();
    let found = row(&mut client, "a").await;
    let columns = found[0].columns.as_ref().expect("a map");
    assert_eq!(columns.keys().cloned().collect::<Vec<_>>(), [b("f:q"), b("f:r")]);
    assert_eq!(columns[&b("f:q")].value, b("1"));
    let delete = Mutation { is_delete: true, value: None, ..mutation("f:q", "") };
    mutate(&mut client, "a", vec![delete]).await.value();
    assert_eq!(row(&mut client, "a").await[0].columns.as_ref().expect("a map").len(), 1);
    let refused = mutate(&mut client, "", vec![mutation("f:q", "1")]).await;
    assert!(matches!(refused, Reply::Thrown(2, _)), "{refused:?}");
    let lost = mutate(&mut client, "a", vec![mutation("nowhere:q", "1")]).await;
    assert!(matches!(&lost, Reply::Thrown(1, why) if why.contains("NoSuchColumnFamilyException")), "{lost:?}");
    let add = |w: &mut _, last: &mut i16| {
        b("t").write_field(w, 1, last);
        b("a").write_field(w, 2, last);
        b("f:n").write_field(w, 3, last);
        5i64.write_field(w, 4, last);
    };
    assert_eq!(client.call::<i64>("atomicIncrement", add).await.value(), 5);
    assert_eq!(client.call::<i64>("atomicIncrement", add).await.value(), 10);
    let cells: Vec<TCell> = client
        .call("get", |w, last| {
            b("t").write_field(w, 1, last);
            b("a").write_field(w, 2, last);
            b("f:n").write_field(w, 3, last);
        })
        .await
        .value();
    assert_eq!(cells[0].value, 10i64.to_be_bytes()[..]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scanners_give_rows_sorted_or_as_a_map() {
    let gateway = Gateway::start(Version::One, |_| ()).await;
    let mut client = gateway.connect().await;
    table(&mut client).await.value();
    for name in ["a1", "a2", "b1"] {
        mutate(&mut client, name, vec![mutation("f:q", name)]).await.value();
    }
    let id: i32 = client
        .call("scannerOpenWithPrefix", |w, last| {
            b("t").write_field(w, 1, last);
            b("a").write_field(w, 2, last);
            Vec::<bytes::Bytes>::new().write_field(w, 3, last);
        })
        .await
        .value();
    let list = |w: &mut _, last: &mut i16| {
        id.write_field(w, 1, last);
        10i32.write_field(w, 2, last);
    };
    let rows: Vec<TRowResult> = client.call("scannerGetList", list).await.value();
    assert_eq!(rows.iter().map(|row| row.row.clone()).collect::<Vec<_>>(), [b("a1"), b("a2")]);
    client.call::<()>("scannerClose", |w, last| id.write_field(w, 1, last)).await.value();
    let closed: Reply<()> = client.call("scannerClose", |w, last| id.write_field(w, 1, last)).await;
    assert_eq!(closed, Reply::Thrown(2, "scanner ID is invalid".to_owned()));
    let scan = TScan { start_row: Some(b("b")), sort_columns: Some(true), ..TScan::default() };
    let id: i32 = client
        .call("scannerOpenWithScan", |w, last| {
            b("t").write_field(w, 1, last);
            scan.write_field(w, 2, last);
        })
        .await
        .value();
    let rows: Vec<TRowResult> = client.call("scannerGet", |w, last| id.write_field(w, 1, last)).await.value();
    let sorted = rows[0].sorted_columns.as_ref().expect("a list");
    assert_eq!((sorted[0].column_name.clone(), rows[0].columns.is_none()), (b("f:q"), true));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_are_listed_described_and_dropped() {
    let gateway = Gateway::start(Version::One, |_| ()).await;
    let mut client = gateway.connect().await;
    table(&mut client).await.value();
    let names: Vec<bytes::Bytes> = client.call("getTableNames", |_, _| ()).await.value();
    assert_eq!(names, [b("t")]);
    let families: std::collections::BTreeMap<bytes::Bytes, ColumnDescriptor> =
        client.call("getColumnDescriptors", |w, last| b("t").write_field(w, 1, last)).await.value();
    assert_eq!((families[&b("f:")].max_versions, families[&b("f:")].time_to_live), (3, i32::MAX));
    let regions: Vec<TRegionInfo> =
        client.call("getTableRegions", |w, last| b("t").write_field(w, 1, last)).await.value();
    assert_eq!((regions.len(), regions[0].version), (1, 1));
    let none: Vec<TRegionInfo> =
        client.call("getTableRegions", |w, last| b("nowhere").write_field(w, 1, last)).await.value();
    assert_eq!(none, []);
    let region: TRegionInfo =
        client.call("getRegionInfo", |w, last| b("t,row,99").write_field(w, 1, last)).await.value();
    assert_eq!(region.name, regions[0].name);
    client.call::<()>("disableTable", |w, last| b("t").write_field(w, 1, last)).await.value();
    assert!(!client.call::<bool>("isTableEnabled", |w, last| b("t").write_field(w, 1, last)).await.value());
    client.call::<()>("deleteTable", |w, last| b("t").write_field(w, 1, last)).await.value();
    let gone: Reply<()> = client.call("deleteTable", |w, last| b("t").write_field(w, 1, last)).await;
    assert_eq!(gone, Reply::Thrown(1, "java.io.IOException: table does not exist".to_owned()));
    gateway.stop().await;
}
