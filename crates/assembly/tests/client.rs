//! The native client in the process of its servers: the whole of a node without a socket.

use crate::common::Place;
use base::Holder;
use bytes::Bytes;
use client::{Action, Delete, Error, Increment, Put, ScanOptions};
use model::{FamilyDescriptor, Get, Scan, TableDescriptor, TableName};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_used_without_a_socket() {
    let place = Place::start().await;
    let connection = &place.connection;
    assert_eq!(connection.cluster_id().await.expect("an id"), place.node.cluster_id());
    let name = TableName::parse("t").expect("legal");
    let admin = connection.admin();
    let descriptor = TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")]);
    admin.create_table(&descriptor, &[Bytes::from("r3"), Bytes::from("r6")]).await.expect("made");
    let t = connection.table(&name);
    let rows: Vec<String> = (0..10).map(|i| format!("r{i}")).collect();
    let puts: Vec<_> = rows.iter().map(|row| Put::new(row).add("f", "q", [7; 3000]).build()).collect();
    t.mutate_all(&puts).await.expect("written");
    assert_eq!(t.get(&Get::new("r4")).await.expect("read").value(b"f", b"q"), Some(&[7; 3000][..]));

    // From memory, and from files.
    for _ in 0..2 {
        let mut scanner = t.scan(Scan::default(), ScanOptions { caching: 2, ..ScanOptions::default() });
        let mut found = Vec::new();
        while let Some(row) = scanner.next().await.expect("a scan") {
            found.push(String::from_utf8(row.row().to_vec()).expect("text"));
        }
        assert_eq!(found, rows);
        admin.flush(&name).await.expect("flushed");
    }
    let outcomes = t
        .batch(&[
            Action::Mutate(Increment::new("n").add("f", "n", 3).build()),
            Action::Mutate(Delete::new("r9").build()),
            Action::Mutate(Put::new("r0").add("no", "q", "").build()),
        ])
        .await
        .expect("a batch");
    assert_eq!(outcomes[0].as_ref().expect("counted").value(b"f", b"n"), Some(&3i64.to_be_bytes()[..]));
    assert!(outcomes[1].is_ok() && !t.exists(&Get::new("r9")).await.expect("asked"));
    assert_eq!(outcomes[2].as_ref().expect_err("refused").short_class(), Some("NoSuchColumnFamilyException"));
    let wrong = admin.create_table(&descriptor, &[]).await.expect_err("it is there");
    assert_eq!(wrong.short_class(), Some("TableExistsException"));
    let nowhere = connection.table(&TableName::parse("nowhere").expect("legal"));
    assert!(matches!(nowhere.get(&Get::new("a")).await, Err(Error::TableNotFound(_))));
    place.stop().await;
}

/// Writers on many tasks share groups of the log; what they hold is counted on the node's ledger, and nothing of it when they are done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_in_the_process_are_counted_on_the_ledger_until_they_are_answered() {
    let place = Place::start().await;
    let name = TableName::parse("t").expect("legal");
    let descriptor = TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")]);
    place.connection.admin().create_table(&descriptor, &[]).await.expect("made");
    let writers: Vec<_> = (0..32)
        .map(|w| {
            let t = place.connection.table(&name);
            tokio::spawn(async move {
                for i in 0..50 {
                    t.put(&Put::new(format!("w{w}-{i}")).add("f", "q", [1; 200]).build()).await.expect("put");
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("no panic");
    }
    let t = place.connection.table(&name);
    let mut scanner = t.scan(Scan::default(), ScanOptions::default());
    let mut count = 0;
    while let Some(rows) = scanner.next_batch().await.expect("a scan") {
        count += rows.len();
    }
    assert_eq!(count, 32 * 50);
    drop(scanner);
    for holder in [Holder::Requests, Holder::Replies] {
        assert_eq!(place.ledger.held_bytes(holder), 0, "{holder:?}");
    }
    place.stop().await;
}

/// Clients that have stopped in the middle of their scans do not keep memory that was flushed, and miss nothing for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_scanners_let_go_of_what_is_flushed() {
    let place = Place::start().await;
    let name = TableName::parse("idle").expect("legal");
    let admin = place.connection.admin();
    admin.create_table(&TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")]), &[]).await.expect("made");
    let t = place.connection.table(&name);
    let row = |i: usize| format!("r{i:03}");
    let puts = |value: u8| (0..200).map(|i| Put::new(row(i)).add("f", "q", [value; 500]).build()).collect::<Vec<_>>();
    t.mutate_all(&puts(1)).await.expect("written");
    let mut scanners = Vec::new();
    for i in 0..50 {
        let mut scanner = t.scan(Scan::default(), ScanOptions { caching: 3, ..ScanOptions::default() });
        for at in 0..=i {
            let found = scanner.next().await.expect("a scan").expect("a row");
            assert_eq!(found.row(), row(at).as_bytes());
        }
        scanners.push(scanner);
    }
    t.mutate_all(&puts(2)).await.expect("written over");
    admin.flush(&name).await.expect("flushed");
    let regions = place.node.server().regions();
    let region = regions.iter().find(|region| region.info().table == name).expect("it is here");
    let memory = &region.env().memory;
    assert_eq!((region.memstore_bytes(), memory.pinned_bytes()), (0, 0));
    for (i, scanner) in scanners.iter_mut().enumerate() {
        for at in i + 1..200 {
            let found = scanner.next().await.expect("a scan").expect("a row");
            assert_eq!(
                (found.row(), found.value(b"f", b"q")),
                (row(at).as_bytes(), Some(&[1; 500][..])),
                "scanner {i}"
            );
        }
        assert!(scanner.next().await.expect("a scan").is_none());
    }
    drop(scanners);
    place.stop().await;
}
