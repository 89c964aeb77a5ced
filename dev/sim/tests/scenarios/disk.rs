//! Full disks and wrong bits.

use super::common::{fault, regions};
use basalt_sim::calls;
use basalt_sim::promises::Outcome;
use basalt_sim::scans::{self, Manner};
use basalt_sim::stage::{Stage, check};
use basalt_sim::steps;
use basalt_sim::work::table;
use fs::mem::{Fault, Op};
use fs::{CrashPolicy, FaultKind};

#[test]
fn f06_full_disk_and_back() {
    for room in [0, 1, 100, 1500, 6000] {
        let mut stage = Stage::new(6);
        let volume = stage.world.volume.clone();
        stage
            .act(async |desk| {
                steps::write(desk, 6).await;
                volume.set_capacity(Some(volume.used_bytes() + room));
                for client in 0..4 {
                    tokio::spawn(desk.clone().work(client));
                    desk.life.settle().await;
                    let _full = desk.life.logs[0].sync_once();
                }
                for region in regions(desk, &table()) {
                    let _full = desk.life.server.flush_region(&region, Vec::new());
                }
                desk.life.server.step_chores();
                assert_eq!(desk.life.fatal(), None, "room {room}: a full disk is no reason to die");
                let rows = scans::whole(&desk.life, &table(), Manner::AT_ONCE).await;
                assert!(rows.is_ok_and(|rows| !rows.is_empty()), "room {room}: reads go on");
                volume.set_capacity(None);
                desk.life.server.step_chores();
                check(desk).await.unwrap_or_else(|violation| panic!("room {room}, with room again: {violation}"));
                steps::write(desk, 3).await;
                check(desk).await.unwrap_or_else(|violation| panic!("room {room}, writing again: {violation}"));
            })
            .expect("starts");
        stage.crash(CrashPolicy::LoseUnsynced, 6);
        stage.check().unwrap_or_else(|violation| panic!("room {room}, after a crash: {violation}"));
    }
}

/// The server's own flushes and compactions fail in a way that only a start can mend. What is done about it does not depend on anybody
/// listening to what is said of it: nobody does here.
#[test]
fn a_failure_in_the_background_stops_the_server_unheard() {
    for compacts in [false, true] {
        let mut stage = Stage::new(6);
        if !compacts {
            // Writes ask for a flush.
            stage.world.config.set("hbase.hregion.memstore.flush.size", "1000");
        }
        let volume = stage.world.volume.clone();
        let fatal = stage.act(async |desk| {
            for _ in 0..4 {
                steps::write(desk, 8).await;
                if compacts {
                    steps::flush(desk, &[]);
                }
            }
            let below = Some("data/default/t/".to_owned());
            volume.inject(Fault {
                op: Some(Op::SyncDir),
                path_contains: below,
                nth: 1,
                kind: FaultKind::Io,
                forever: true,
            });
            for region in regions(desk, &table()) {
                if compacts {
                    desk.life.server.request_compaction(&region, None, true).expect("accepted");
                    desk.life.server.step_compaction();
                } else {
                    desk.life.server.step_flush();
                }
            }
            volume.clear_faults();
            desk.life.fatal()
        });
        let why = fatal.expect("starts").expect("the server stops");
        assert!(why.contains("a new store file could not be rolled back"), "{why}");
        stage.kill();
        stage.check().unwrap_or_else(|violation| panic!("compacts: {compacts}: {violation}"));
    }
}

/// HBASE-29131: a compaction that reads a wrong bit gives up, and its inputs stay.
#[test]
fn f46_compaction_over_bad_bytes_keeps_its_inputs() {
    let mut stage = Stage::new(46);
    let volume = stage.world.volume.clone();
    stage
        .act(async |desk| {
            for _ in 0..3 {
                steps::write(desk, 8).await;
                steps::flush(desk, &[]);
            }
            for family in ["/f/", "/g/"] {
                for nth in 1..4 {
                    volume.inject(fault(Op::Read, family, nth, FaultKind::FlippedBit));
                    for region in regions(desk, &table()) {
                        let online = desk.life.server.region(&region).expect("online");
                        online.evict_blocks();
                    }
                    steps::compact(desk, true);
                    volume.clear_faults();
                    check(desk).await.unwrap_or_else(|violation| panic!("read {nth} of {family}: {violation}"));
                    steps::write(desk, 2).await;
                    steps::flush(desk, &[]);
                }
            }
        })
        .expect("starts");
    stage.check().unwrap_or_else(|violation| panic!("{violation}"));
}

/// A log that is rolled on a full disk while nothing waits to be written takes entries again when there is room.
#[test]
fn f06_roll_on_a_full_disk_with_nothing_to_write() {
    let mut stage = Stage::new(63);
    let volume = stage.world.volume.clone();
    stage
        .act(async |desk| {
            steps::write(desk, 3).await;
            assert!(basalt_sim::check::quiet(desk).await, "no faults");
            for (op, nth) in [(Op::Create, 1), (Op::Append, 1), (Op::Flush, 1), (Op::Sync, 1), (Op::SyncDir, 1)] {
                volume.inject(fault(op, "WALs", nth, FaultKind::Full));
                for log in &desk.life.logs {
                    let _full = log.roll();
                }
                volume.clear_faults();
                desk.life.server.step_chores();
                assert_eq!(desk.life.fatal(), None, "{op:?}");
                steps::write(desk, 2).await;
                check(desk).await.unwrap_or_else(|violation| panic!("{op:?}: {violation}"));
            }
        })
        .expect("starts");
}

/// A roll that meets a full disk while entries wait, then entries for the new file, then another roll: every entry lands in the
/// file it was made for.
#[test]
fn f06_two_rolls_around_a_full_disk() {
    let mut stage = Stage::new(64);
    let volume = stage.world.volume.clone();
    stage
        .act(async |desk| {
            steps::write(desk, 3).await;
            tokio::spawn(desk.clone().work(0));
            let life = desk.life.clone();
            let waiting = steps::journal_write("11-journal90", 1, false);
            let put = tokio::spawn(async move { calls::mutate(&life, &table(), &waiting).await });
            desk.life.settle().await;
            volume.inject(fault(Op::Flush, "WALs", 1, FaultKind::Full));
            assert!(desk.life.logs[0].roll().is_err(), "no room");
            volume.clear_faults();
            desk.life.logs[0].sync_once().expect("room again");
            desk.life.settle().await;
            assert!(put.is_finished(), "what waited is written");
            let life = desk.life.clone();
            let more = steps::journal_write("11-journal90", 2, false);
            tokio::spawn(async move { calls::mutate(&life, &table(), &more).await });
            desk.life.settle().await;
            desk.life.logs[0].roll().expect("rolled");
            desk.life.settle().await;
            steps::write(desk, 3).await;
            let mut promises = desk.promises.lock();
            let writes = promises.journal.entry("11-journal90".into()).or_default();
            writes.retain(|write| write.number > 2);
            writes.extend([1, 2].map(|number| basalt_sim::promises::Write {
                number,
                deletes: false,
                outcome: Outcome::Acked,
                track: basalt_sim::order::Track::default(),
            }));
        })
        .expect("starts");
    stage.crash(CrashPolicy::LoseUnsynced, 64);
    stage.check().unwrap_or_else(|violation| panic!("{violation}"));
}
