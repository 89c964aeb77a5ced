//! The log: power failures, syncs that fail, what must be kept of it.

use super::common::{fault, send};
use basalt_sim::calls::{self, Failure};
use basalt_sim::promises::Outcome;
use basalt_sim::stage::Stage;
use basalt_sim::steps;
use basalt_sim::work::table;
use basalt_sim::world::POLICIES;
use fs::mem::{Fault, Op};
use fs::{CrashPolicy, FaultKind};
use master::Caller;

#[test]
fn f02_power_loss_keeps_what_was_acknowledged() {
    for (seed, policy) in (0..).zip(POLICIES.into_iter().cycle().take(24)) {
        let mut stage = Stage::new(seed);
        stage
            .act(async |desk| {
                steps::write(desk, 9).await;
                // And some that nobody answers: their bytes may be on the disk in part.
                for client in 0..4 {
                    tokio::spawn(desk.clone().work(client));
                    desk.life.settle().await;
                }
            })
            .expect("starts");
        stage.crash(policy, seed);
        stage.check().unwrap_or_else(|violation| panic!("seed {seed}, {policy:?}: {violation}"));
    }
}

/// An unsynced log may lose its end with the machine, and nothing with the process. What a flush took to a file before is not lost, and a row
/// is not half in a file and half in what the log lost.
#[test]
fn f02_power_loss_takes_the_end_of_a_relaxed_log_and_leaves_rows_whole() {
    let mut losses = 0;
    for (seed, policy) in (0..).zip(POLICIES.into_iter().cycle().take(16)) {
        let mut stage = Stage::relaxed(seed);
        stage
            .act(async |desk| {
                steps::write(desk, 5).await;
                steps::flush(desk, &[["f"], ["g"]][seed as usize % 2]);
                steps::write(desk, 5).await;
                let all = desk.promises.lock().journal.values().flatten().all(|write| write.outcome == Outcome::Acked);
                assert!(all, "written is enough");
            })
            .expect("starts");
        if seed % 8 == 7 {
            stage.kill();
            assert_eq!(stage.promises.lock().counts.at_risk, 0, "a process that dies takes nothing with it");
        } else {
            stage.crash(policy, seed);
        }
        stage.check().unwrap_or_else(|violation| panic!("seed {seed}, {policy:?}: {violation}"));
        losses += stage.promises.lock().counts.lost;
    }
    assert!(losses > 0, "a disk that lost nothing shows nothing");
}

/// The master forgets a procedure, and archives files, when hbase:meta says that it is done.
#[test]
fn f03_hbase_meta_is_synced_where_the_log_is_relaxed() {
    for policy in POLICIES {
        let mut stage = Stage::relaxed(3);
        stage
            .act(async |desk| {
                let last = steps::regions(desk).pop().expect("the table has a region");
                let split = desk.life.master.split_region(&last, Some("71".into()), &Caller::default()).await;
                desk.life.master.wait_for(split.expect("accepted")).await.expect("split");
                assert!(basalt_sim::check::quiet(desk).await, "no faults");
            })
            .expect("starts");
        stage.crash(policy, 3);
        stage.check().unwrap_or_else(|violation| panic!("{policy:?}: {violation}"));
        let regions = stage.act(async |desk| steps::regions(desk).len()).expect("starts");
        assert!(regions > 1, "{policy:?}: the split is undone");
    }
}

/// HBASE-27230: what one failed sync leaves is unknown; nothing may rest on it.
#[test]
fn f04_sync_fails_once() {
    for policy in POLICIES {
        let mut stage = Stage::new(4);
        let volume = stage.world.volume.clone();
        stage
            .act(async |desk| {
                steps::write(desk, 3).await;
                volume.inject(fault(Op::Sync, "WALs", 1, FaultKind::Io));
                steps::write(desk, 3).await;
                assert_eq!(desk.life.fatal(), None, "the entries move to a fresh file");
                assert_eq!(desk.life.logs[0].stats().rescues, 1);
                let all = desk.promises.lock().journal.values().flatten().all(|write| write.outcome == Outcome::Acked);
                assert!(all, "every write was answered");
            })
            .expect("starts");
        stage.crash(policy, 4);
        stage.check().unwrap_or_else(|violation| panic!("{policy:?}: {violation}"));
    }
}

/// HBASE-26195, HBASE-14004: a write whose sync failed is not acknowledged, not visible, and afterwards there or not, for ever.
#[test]
fn f05_failed_sync_then_crash() {
    for (seed, policy) in (0..).zip(POLICIES.into_iter().cycle().take(12)) {
        let mut stage = Stage::new(5);
        let volume = stage.world.volume.clone();
        stage
            .act(async |desk| {
                steps::write(desk, 3).await;
                // The fresh file fails as well.
                volume.inject(Fault { forever: true, ..fault(Op::Sync, "WALs", 1, FaultKind::Io) });
                let answer = send(desk, table(), steps::journal_write("11-journal90", 77, false)).await;
                assert!(matches!(answer, Err(Failure::Maybe(_))), "not acknowledged, not refused: {answer:?}");
                assert!(desk.life.fatal().is_some(), "the server must stop");
                let seen = calls::get(&desk.life, &table(), "11-journal90").await;
                let shown = seen.is_ok_and(|cells| cells.iter().any(|(_, number, _)| *number == 77));
                assert!(!shown, "what may be lost is not shown");
                let late = send(desk, table(), steps::journal_write("11-journal90", 78, false)).await;
                assert!(late.is_err(), "nothing is acknowledged any more");
            })
            .expect("starts");
        stage.promises.lock().journal.entry("11-journal90".into()).or_default().extend([77, 78].map(|number| {
            basalt_sim::promises::Write {
                number,
                deletes: false,
                outcome: Outcome::Maybe,
                track: basalt_sim::order::Track::default(),
            }
        }));
        stage.crash(policy, seed);
        stage.check().unwrap_or_else(|violation| panic!("{policy:?}: {violation}"));
        stage.check().unwrap_or_else(|violation| panic!("{policy:?}, once more: {violation}"));
    }
}

/// HBASE-16721: a flush of one family must not make the log forget the others.
#[test]
fn f09_log_is_kept_for_families_that_were_not_flushed() {
    for family in ["f", "g"] {
        let mut stage = Stage::new(9);
        stage
            .act(async |desk| {
                for _ in 0..4 {
                    steps::write(desk, 3).await;
                    steps::flush(desk, &[family]);
                    desk.life.logs[0].roll().expect("rolled");
                    desk.life.logs[0].archive_flushed().expect("archived");
                }
            })
            .expect("starts");
        stage.crash(CrashPolicy::LoseUnsynced, 9);
        stage.check().unwrap_or_else(|violation| panic!("{family}: {violation}"));
    }
}
