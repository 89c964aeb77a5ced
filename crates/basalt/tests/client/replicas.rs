//! Read replicas against a server: what they show and when, that they are found, and that they take no writes.

use super::{Place, connect};
use crate::common::{Scratch, Server};
use bytes::Bytes;
use client::{Admin, Connection, Put, ScanOptions, Table};
use model::{FamilyDescriptor, Get, Scan, TableDescriptor, TableName};

fn described(name: &TableName, replication: u32) -> TableDescriptor {
    let mut table = TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")]);
    table.attributes.insert("REGION_REPLICATION".into(), replication.to_string().into());
    table
}

async fn put(table: &Table, row: &'static str, value: &'static str) {
    table.put(&Put::new(row).add("f", "q", value).build()).await.expect("written");
}

/// A replica's value of a row. It must say that it is a replica's.
async fn on_replica(table: &Table, row: &'static str, id: u32) -> Option<Bytes> {
    let row = table.get_from_replica(&Get { timeline: true, ..Get::new(row) }, id).await.expect("read");
    assert_eq!(row.is_stale(), id > 0);
    row.value(b"f", b"q").map(Bytes::copy_from_slice)
}

async fn scanned(table: &Table, id: u32) -> Vec<Bytes> {
    let scan = Scan { timeline: true, ..Scan::default() };
    let mut scanner = table.scan(scan, ScanOptions { replica_id: id, ..ScanOptions::default() });
    let mut rows = Vec::new();
    while let Some(row) = scanner.next().await.expect("read") {
        rows.push(Bytes::copy_from_slice(row.row()));
    }
    assert_eq!(scanner.is_stale(), id > 0);
    rows
}

/// The encoded names of the regions that the only server has open of a table.
async fn online(admin: &Admin, table: &TableName) -> Vec<(Bytes, u32)> {
    let server = admin.servers().await.expect("listed").remove(0);
    let regions = admin.online_regions(&server).await.expect("asked");
    let mut found: Vec<_> =
        regions.into_iter().filter(|info| info.table == *table).map(|info| (info.start_key, info.replica_id)).collect();
    found.sort();
    found
}

async fn replica_ids(table: &Table) -> Vec<u32> {
    let locations = table.replicas_of(b"a", true).await.expect("located");
    locations.iter().map(|location| location.region.replica_id).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_shows_what_is_in_files_at_once_and_says_so() {
    let place = Place::new("client-replicas");
    let connection = place.connect();
    let (admin, name) = (connection.admin(), TableName::parse("client_replicas").expect("legal"));
    admin.create_table(&described(&name, 2), &[Bytes::from("m")]).await.expect("made");
    let t = connection.table(&name);
    assert_eq!(replica_ids(&t).await, [0, 1]);
    let keys = [("", 0), ("", 1), ("m", 0), ("m", 1)].map(|(start, id)| (Bytes::from(start), id));
    assert_eq!(online(&admin, &name).await, keys);
    assert_eq!(admin.regions(&name).await.expect("listed").len(), 2);

    put(&t, "a", "1").await;
    put(&t, "z", "1").await;
    assert_eq!(on_replica(&t, "a", 1).await, None, "it is in memory only");
    admin.flush(&name).await.expect("flushed");
    assert_eq!(on_replica(&t, "a", 1).await, Some(Bytes::from("1")), "it is told of the flush");
    put(&t, "a", "2").await;
    assert_eq!((on_replica(&t, "a", 1).await, on_replica(&t, "a", 0).await), (Some("1".into()), Some("2".into())));
    assert_eq!(
        (scanned(&t, 1).await, scanned(&t, 0).await),
        (vec!["a".into(), "z".into()], vec!["a".into(), "z".into()])
    );
    // A TIMELINE read asks the primary first.
    let row = t.get(&Get { timeline: true, ..Get::new("a") }).await.expect("read");
    assert_eq!((row.is_stale(), row.value(b"f", b"q")), (false, Some(&b"2"[..])));
    assert!(t.get_from_replica(&Get { existence_only: true, ..Get::new("a") }, 1).await.expect("read").is_stale());

    admin.modify_table(&described(&name, 3)).await.expect("raised");
    assert_eq!(on_replica(&t, "a", 2).await, Some(Bytes::from("2")), "regions are flushed as they are reopened");
    assert_eq!(replica_ids(&t).await, [0, 1, 2]);
    admin.modify_table(&described(&name, 1)).await.expect("lowered");
    assert_eq!(replica_ids(&t).await, [0]);
    assert_eq!(online(&admin, &name).await.len(), 2);
    let gone = t.get_from_replica(&Get::new("a"), 1).await.expect_err("there is none").to_string();
    assert!(gone.contains("no read replica 1"), "{gone}");
    admin.disable_table(&name).await.expect("disabled");
    admin.delete_table(&name).await.expect("deleted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_are_there_after_a_split_a_compaction_and_a_restart() {
    let scratch = Scratch::new("client-replicas-live");
    let server = Server::start(&scratch.0, &[]);
    let name = TableName::parse("t").expect("legal");
    let open = |server: &Server| -> Connection { connect(&format!("127.0.0.1:{}", server.zk_port)) };
    let connection = open(&server);
    let (admin, t) = (connection.admin(), connection.table(&name));
    admin.create_table(&described(&name, 2), &[]).await.expect("made");
    for (row, value) in [("a", "1"), ("z", "1"), ("a", "2")] {
        put(&t, row, value).await;
        admin.flush(&name).await.expect("flushed");
    }
    admin.major_compact(&name).await.expect("asked");
    let region = admin.regions(&name).await.expect("listed").remove(0).region;
    while admin.store_files(region.name(), &[Bytes::from("f")]).await.expect("asked").len() > 1 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(on_replica(&t, "a", 1).await, Some(Bytes::from("2")));
    admin.split_region(region.name(), Some(b"m")).await.expect("split");
    t.forget_locations();
    assert_eq!(online(&admin, &name).await.len(), 4);
    assert_eq!((on_replica(&t, "a", 1).await, on_replica(&t, "z", 1).await), (Some("2".into()), Some("1".into())));
    assert_eq!(scanned(&t, 1).await, ["a", "z"]);
    drop((admin, t, connection, server));

    let server = Server::start(&scratch.0, &[]);
    let connection = open(&server);
    let (admin, t) = (connection.admin(), connection.table(&name));
    assert_eq!(online(&admin, &name).await.len(), 4);
    assert_eq!(scanned(&t, 1).await, ["a", "z"]);
    admin.disable_table(&name).await.expect("disabled");
    assert!(online(&admin, &name).await.is_empty());
    admin.enable_table(&name).await.expect("enabled");
    t.forget_locations();
    assert_eq!(on_replica(&t, "z", 1).await, Some(Bytes::from("1")));
}
