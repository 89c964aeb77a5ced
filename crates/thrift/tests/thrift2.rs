//! Thrift 2 over sockets.

use crate::socket::{Client, Gateway, Reply, b};
use basalt_thrift::Version;
use basalt_thrift::v2::types::*;
use basalt_thrift::wire::Wire;
use bytes::Bytes;

fn name(table: &str) -> TTableName {
    TTableName { ns: None, qualifier: b(table) }
}

async fn table(client: &mut Client) {
    let column = TColumnFamilyDescriptor { name: b("f"), max_versions: Some(3), ..TColumnFamilyDescriptor::default() };
    let desc = TTableDescriptor { table_name: name("t"), columns: Some(vec![column]), ..TTableDescriptor::default() };
    client.call::<()>("createTable", |w, last| desc.write_field(w, 1, last)).await.value();
}

fn put(row: &str, value: &str) -> TPut {
    let column = TColumnValue { family: b("f"), qualifier: b("q"), value: b(value), ..TColumnValue::default() };
    TPut { row: b(row), column_values: vec![column], ..TPut::default() }
}

async fn call2<T: Wire>(client: &mut Client, method: &str, argument: &impl Wire) -> Reply<T> {
    client
        .call(method, |w, last| {
            b("t").write_field(w, 1, last);
            argument.write_field(w, 2, last);
        })
        .await
}

fn get(row: &str) -> TGet {
    TGet { row: b(row), ..TGet::default() }
}

fn values(results: &[TResult]) -> Vec<(Bytes, Bytes)> {
    let row = |result: &TResult| (result.row.clone().unwrap_or_default(), result.column_values[0].value.clone());
    results.iter().map(row).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_written_read_checked_and_deleted() {
    let gateway = Gateway::start(Version::Two, |_| ()).await;
    let mut client = gateway.connect().await;
    table(&mut client).await;
    call2::<()>(&mut client, "put", &put("a", "1")).await.value();
    call2::<()>(&mut client, "putMultiple", &vec![put("b", "2"), put("c", "3")]).await.value();
    let found: TResult = call2(&mut client, "get", &get("a")).await.value();
    assert_eq!(values(std::slice::from_ref(&found)), [(b("a"), b("1"))]);
    assert_eq!((found.stale, found.partial, found.column_values[0].cell_type), (Some(false), Some(false), Some(4)));
    let nothing: TResult = call2(&mut client, "get", &get("z")).await.value();
    assert_eq!((nothing.row, nothing.column_values.len()), (None, 0));
    let several: Vec<TResult> = call2(&mut client, "getMultiple", &vec![get("c"), get("a")]).await.value();
    assert_eq!(values(&several), [(b("c"), b("3")), (b("a"), b("1"))]);
    assert!(call2::<bool>(&mut client, "exists", &get("b")).await.value());
    let exist: Vec<bool> = call2(&mut client, "existsAll", &vec![get("b"), get("z")]).await.value();
    assert_eq!(exist, [true, false]);
    let counter = TColumnIncrement { family: b("f"), qualifier: b("n"), amount: None };
    let increment = TIncrement { row: b("a"), columns: vec![counter], ..TIncrement::default() };
    let counted: TResult = call2(&mut client, "increment", &increment).await.value();
    assert_eq!(counted.column_values[0].value, 1i64.to_be_bytes()[..]);
    let more = TColumnValue { family: b("f"), qualifier: b("q"), value: b("1"), ..TColumnValue::default() };
    let append = TAppend { row: b("a"), columns: vec![more], ..TAppend::default() };
    let appended: TResult = call2(&mut client, "append", &append).await.value();
    assert_eq!(appended.column_values[0].value, b("11"));
    let check = async |client: &mut Client, method: &str, value: Option<&str>, then: TPut| {
        client
            .call::<bool>(method, |w, last| {
                for (id, text) in [(1, "t"), (2, "a"), (3, "f"), (4, "q")] {
                    b(text).write_field(w, id, last);
                }
                if let Some(value) = value {
                    b(value).write_field(w, 5, last);
                }
                then.write_field(w, 6, last);
            })
            .await
    };
    assert!(!check(&mut client, "checkAndPut", None, put("a", "x")).await.value());
    assert!(check(&mut client, "checkAndPut", Some("11"), put("a", "x")).await.value());
    let delete = TDelete { row: b("a"), ..TDelete::default() };
    let both = vec![
        TMutation { put: Some(put("a", "y")), delete_single: None },
        TMutation {
            put: None,
            delete_single: Some(TDelete {
                columns: Some(vec![TColumn { family: b("f"), qualifier: Some(b("n")), timestamp: None }]),
                ..delete.clone()
            }),
        },
    ];
    call2::<()>(&mut client, "mutateRow", &TRowMutations { row: b("a"), mutations: both }).await.value();
    let found: TResult = call2(&mut client, "get", &get("a")).await.value();
    assert_eq!(values(std::slice::from_ref(&found)), [(b("a"), b("y"))]);
    call2::<()>(&mut client, "deleteSingle", &delete).await.value();
    assert!(!call2::<bool>(&mut client, "exists", &get("a")).await.value());
    let left: Vec<TDelete> =
        call2(&mut client, "deleteMultiple", &vec![TDelete { row: b("b"), ..TDelete::default() }]).await.value();
    assert_eq!(left, []);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scanners_have_numbers_filters_and_an_end() {
    let gateway = Gateway::start(Version::Two, |_| ()).await;
    let mut client = gateway.connect().await;
    table(&mut client).await;
    let puts: Vec<TPut> = (0..10).map(|n| put(&format!("r{n}"), &format!("{n}"))).collect();
    call2::<()>(&mut client, "putMultiple", &puts).await.value();
    let scan = TScan { start_row: Some(b("r2")), stop_row: Some(b("r7")), ..TScan::default() };
    let id: i32 = call2(&mut client, "openScanner", &scan).await.value();
    let rows = async |client: &mut Client, id: i32, count: i32| {
        client
            .call::<Vec<TResult>>("getScannerRows", |w, last| {
                id.write_field(w, 1, last);
                count.write_field(w, 2, last);
            })
            .await
    };
    assert_eq!(values(&rows(&mut client, id, 2).await.value()), [(b("r2"), b("2")), (b("r3"), b("3"))]);
    assert_eq!(rows(&mut client, id, 10).await.value().len(), 3);
    assert_eq!(rows(&mut client, id, 10).await.value().len(), 0);
    client.call::<()>("closeScanner", |w, last| id.write_field(w, 1, last)).await.value();
    assert_eq!(rows(&mut client, id, 1).await, Reply::Thrown(2, "Invalid scanner Id".to_owned()));
    let filtered =
        TScan { filter_string: Some(b("ValueFilter(=, 'binary:4')")), reversed: Some(true), ..TScan::default() };
    let found: Vec<TResult> = client
        .call("getScannerResults", |w, last| {
            b("t").write_field(w, 1, last);
            filtered.write_field(w, 2, last);
            5i32.write_field(w, 3, last);
        })
        .await
        .value();
    assert_eq!(values(&found), [(b("r4"), b("4"))]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_families_and_namespaces_are_administered() {
    let gateway = Gateway::start(Version::Two, |_| ()).await;
    let mut client = gateway.connect().await;
    table(&mut client).await;
    let described: TTableDescriptor =
        client.call("getTableDescriptor", |w, last| name("t").write_field(w, 1, last)).await.value();
    let families = described.columns.expect("families");
    assert_eq!((families[0].name.clone(), families[0].max_versions), (b("f"), Some(3)));
    assert_eq!(families[0].compression_type, Some(TCompressionAlgorithm::NONE));
    assert!(client.call::<bool>("tableExists", |w, last| name("t").write_field(w, 1, last)).await.value());
    assert!(client.call::<bool>("isTableAvailable", |w, last| name("t").write_field(w, 1, last)).await.value());
    let column = TColumnFamilyDescriptor { name: b("g"), ..TColumnFamilyDescriptor::default() };
    let add = |w: &mut _, last: &mut i16| {
        name("t").write_field(w, 1, last);
        column.write_field(w, 2, last);
    };
    client.call::<()>("addColumnFamily", add).await.value();
    let locations: Vec<THRegionLocation> =
        client.call("getAllRegionLocations", |w, last| b("t").write_field(w, 1, last)).await.value();
    assert_eq!((locations.len(), locations[0].region_info.table_name.clone()), (1, b("t")));
    let thrown: Reply<()> = client.call("deleteTable", |w, last| name("t").write_field(w, 1, last)).await;
    assert!(matches!(thrown, Reply::Thrown(1, _)), "{thrown:?}");
    client.call::<()>("disableTable", |w, last| name("t").write_field(w, 1, last)).await.value();
    assert!(client.call::<bool>("isTableDisabled", |w, last| name("t").write_field(w, 1, last)).await.value());
    client.call::<()>("deleteTable", |w, last| name("t").write_field(w, 1, last)).await.value();
    let gone: Reply<TTableDescriptor> =
        client.call("getTableDescriptor", |w, last| name("t").write_field(w, 1, last)).await;
    assert_eq!(gone, Reply::Thrown(1, "t".to_owned()));
    let namespace = TNamespaceDescriptor { name: "n".to_owned(), configuration: None };
    client.call::<()>("createNamespace", |w, last| namespace.write_field(w, 1, last)).await.value();
    let names: Vec<String> = client.call("listNamespaces", |_, _| ()).await.value();
    assert_eq!(names, ["default", "hbase", "n"]);
    let id: String = client.call("getClusterId", |_, _| ()).await.value();
    assert!(!id.is_empty());
    let two: TThriftServerType = client.call("getThriftServerType", |_, _| ()).await.value();
    assert_eq!(two, TThriftServerType::TWO);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_gateway_refuses_what_writes() {
    let gateway = Gateway::start(Version::Two, |options| options.read_only = true).await;
    let mut client = gateway.connect().await;
    let refused: Reply<()> = call2(&mut client, "put", &put("a", "1")).await;
    assert_eq!(refused, Reply::Thrown(1, "Thrift Server is in Read-only mode.".to_owned()));
    gateway.stop().await;
}
