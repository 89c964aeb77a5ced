//! Snapshots of a table that is written to, compacted, split, merged and dropped: what they hold stays what it was.

use super::common::{compact_table, flush_table, make, own, put, regions, send};
use basalt_sim::calls;
use basalt_sim::stage::Stage;
use basalt_sim::work::Desk;
use basalt_sim::world::POLICIES;
use bytes::Bytes;
use fs::{FilePath, Volume};
use master::Caller;
use model::{FamilyDescriptor, Scan, TableDescriptor, TableName};
use proto::pb;

type Content = Vec<(String, calls::RowCells)>;

/// All rows of a table.
async fn content(desk: &Desk, name: &TableName) -> Content {
    let infos: Vec<_> = {
        let cluster = desk.life.master.cluster();
        cluster.regions_of(name).filter(|node| node.is_live()).map(|node| node.info.clone()).collect()
    };
    assert!(!infos.is_empty(), "{name} is there");
    let mut rows = Content::new();
    for info in infos {
        let pieces = calls::scan(&desk.life, &info, &Scan::default(), None, 100_000).await.expect("it serves");
        rows.extend(pieces.rows.into_iter().map(|(row, cells, _)| (row, cells)));
    }
    rows
}

fn wanted(name: &str, table: &TableName) -> pb::SnapshotDescription {
    pb::SnapshotDescription { name: name.into(), table: Some(table.to_string()), ..Default::default() }
}

async fn done(desk: &Desk, submitted: master::Result<u64>) {
    desk.life.master.wait_for(submitted.expect("accepted")).await.expect("done");
}

async fn take(desk: &Desk, name: &str, table: &TableName) {
    done(desk, desk.life.master.take_snapshot(wanted(name, table), &Caller::default()).await).await;
}

async fn fill(desk: &Desk, name: &str, table: &TableName) {
    done(desk, desk.life.master.restore_snapshot(&wanted(name, table), None, &Caller::default()).await).await;
}

async fn disable(desk: &Desk, table: &TableName) {
    done(desk, desk.life.master.disable_table(table, &Caller::default()).await).await;
}

async fn drop_table(desk: &Desk, table: &TableName) {
    disable(desk, table).await;
    done(desk, desk.life.master.delete_table(table, &Caller::default()).await).await;
}

async fn write(desk: &Desk, table: &TableName, value: &str, timestamp: i64) {
    for row in ["a", "c", "k", "p", "z"] {
        send(desk, table.clone(), put(row, timestamp, value)).await.expect("written");
    }
}

async fn split(desk: &Desk, table: &TableName, row: &'static str) {
    let region = regions(desk, table).remove(0);
    let row = Some(Bytes::from(row));
    done(desk, desk.life.master.split_region(&region, row, &Caller::default()).await).await;
}

#[test]
fn a_clone_does_not_change_whatever_becomes_of_its_table() {
    let (source, copy, second) = (own("origin"), own("copy"), own("second.copy"));
    let mut stage = Stage::new(70);
    let first: Content = stage
        .act(async |desk| {
            make(desk, TableDescriptor::new(source.clone(), [FamilyDescriptor::new("f")])).await;
            write(desk, &source, "one", 1).await;
            flush_table(desk, &source).await;
            write(desk, &source, "two", 2).await;
            let then = content(desk, &source).await;
            take(desk, "s", &source).await;
            write(desk, &source, "later", 3).await;
            fill(desk, "s", &copy).await;
            assert_eq!(content(desk, &copy).await, then);
            assert_ne!(content(desk, &source).await, then);
            compact_table(desk, &source).await;
            desk.life.server.step_chores();
            split(desk, &source, "k").await;
            assert_eq!(content(desk, &copy).await, then);
            // A table whose regions refer to others' files.
            take(desk, "split", &source).await;
            let split_then = content(desk, &source).await;
            compact_table(desk, &source).await;
            desk.life.server.step_chores();
            desk.life.master.run_catalog_janitor().await.expect("ran");
            fill(desk, "split", &second).await;
            assert_eq!(content(desk, &second).await, split_then);
            drop_table(desk, &source).await;
            desk.life.master.delete_snapshot("s").await.expect("deleted");
            desk.life.master.delete_snapshot("split").await.expect("deleted");
            for _ in 0..3 {
                desk.life.clock.advance_ms(3_600_000);
                desk.life.master.run_cleaners().await.expect("cleaned");
            }
            assert_eq!(content(desk, &copy).await, then);
            assert_eq!(content(desk, &second).await, split_then);
            // Links are split, merged and compacted like files, and snapshots of them are taken.
            split(desk, &copy, "c").await;
            assert_eq!(content(desk, &copy).await, then);
            take(desk, "of-links", &copy).await;
            compact_table(desk, &copy).await;
            let names = regions(desk, &copy);
            done(desk, desk.life.master.merge_regions(&names, false, &Caller::default()).await).await;
            compact_table(desk, &copy).await;
            assert_eq!(content(desk, &copy).await, then);
            disable(desk, &copy).await;
            fill(desk, "of-links", &copy).await;
            done(desk, desk.life.master.enable_table(&copy, &Caller::default()).await).await;
            assert_eq!(content(desk, &copy).await, then);
            then
        })
        .expect("starts");
    for policy in POLICIES {
        stage.crash(policy, 70);
        let found = stage
            .act(async |desk| {
                for _ in 0..20 {
                    desk.life.settle().await;
                }
                content(desk, &copy).await
            })
            .expect("starts");
        assert_eq!(found, first, "{policy:?}");
    }
}

/// What was written after the snapshot is in the log when the power goes; the restored table must not take it back.
#[test]
fn a_restored_table_stays_restored() {
    let name = own("restored");
    for flushed in [false, true] {
        let mut stage = Stage::new(71);
        let then: Content = stage
            .act(async |desk| {
                make(desk, TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")])).await;
                write(desk, &name, "one", 1).await;
                let then = content(desk, &name).await;
                take(desk, "s", &name).await;
                write(desk, &name, "later", 2).await;
                if flushed {
                    flush_table(desk, &name).await;
                    compact_table(desk, &name).await;
                }
                disable(desk, &name).await;
                fill(desk, "s", &name).await;
                done(desk, desk.life.master.enable_table(&name, &Caller::default()).await).await;
                assert_eq!(content(desk, &name).await, then);
                then
            })
            .expect("starts");
        for policy in POLICIES {
            stage.crash(policy, 71);
            let found = stage
                .act(async |desk| {
                    for _ in 0..20 {
                        desk.life.settle().await;
                    }
                    content(desk, &name).await
                })
                .expect("starts");
            assert_eq!(found, then, "{policy:?}, flushed {flushed}");
        }
        let working = FilePath::new(".hbase-snapshot/.tmp");
        assert_eq!(stage.world.volume.list(&working).expect("listed"), []);
    }
}
