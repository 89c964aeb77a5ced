//! What scenes need: faults, calls that wait for the log, tables of their own.

use basalt_sim::calls::{self, Failure, mutation};
use basalt_sim::work::Desk;
use cell::CellType;
use fs::mem::{Fault, Op};
use fs::{FaultKind, MemVolume};
use master::Caller;
use model::{Mutation, MutationKind, TableDescriptor, TableName};

pub fn fault(op: Op, path: &str, nth: u64, kind: FaultKind) -> Fault {
    Fault { op: Some(op), path_contains: Some(path.to_owned()), nth, kind, forever: false }
}

/// Sends a call and lets the logs do their work.
pub async fn send(desk: &Desk, name: TableName, mutation: Mutation) -> Result<calls::RowCells, Failure> {
    let life = desk.life.clone();
    let sent = tokio::spawn(async move { calls::mutate(&life, &name, &mutation).await });
    for _ in 0..6 {
        desk.life.settle().await;
        let _told_to_who_waits = desk.life.logs[0].sync_once();
    }
    assert!(sent.is_finished(), "the log was synced");
    sent.await.expect("no panic")
}

pub async fn make(desk: &Desk, table: TableDescriptor) {
    let id = desk.life.master.create_table(table, &[], &Caller::default()).await.expect("accepted");
    desk.life.master.wait_for(id).await.expect("made");
}

pub fn own(name: &str) -> TableName {
    TableName::parse(name).expect("legal")
}

pub fn put(row: &str, timestamp: i64, value: &str) -> Mutation {
    mutation(MutationKind::Put, row, &[("f", "q", timestamp, CellType::Put, value.as_bytes())])
}

pub fn texts(cells: &calls::RowCells) -> Vec<String> {
    cells.iter().map(|(_, _, value)| String::from_utf8_lossy(value).into_owned()).collect()
}

pub async fn flush_table(desk: &Desk, name: &TableName) {
    for region in regions(desk, name) {
        desk.life.server.flush_region(&region, Vec::new()).expect("flushed");
    }
}

pub async fn compact_table(desk: &Desk, name: &TableName) {
    for region in regions(desk, name) {
        desk.life.server.request_compaction(&region, None, true).expect("online");
    }
    while desk.life.server.step_compaction() {}
}

pub fn regions(desk: &Desk, name: &TableName) -> Vec<String> {
    let cluster = desk.life.master.cluster();
    let live = cluster.regions_of(name).filter(|node| node.is_live());
    live.map(|node| node.info.encoded_name().to_string()).collect()
}

/// Whether the calls end before the volume stops.
pub async fn until_stopped(
    desk: &Desk,
    volume: &MemVolume,
    calls: impl Future<Output = master::Result<()>> + Send + 'static,
) -> bool {
    let calls = tokio::spawn(calls);
    while !calls.is_finished() && !volume.is_stopped() {
        desk.life.settle().await;
    }
    desk.life.settle().await;
    !volume.is_stopped()
}
