//! Recovery: logs that cannot be read, that end anywhere, that are replayed by family, and starts that are stopped.

use super::common::{fault, flush_table, make, own, put, regions, send, texts};
use basalt_sim::calls::{self, mutation};
use basalt_sim::stage::Stage;
use basalt_sim::steps;
use basalt_sim::work::Desk;
use basalt_sim::world::POLICIES;
use bytes::Bytes;
use cell::CellType;
use convert::to_proto;
use filter::{Comparator, CompareOp};
use fs::mem::Op;
use fs::{CrashPolicy, FaultKind, FilePath, MemVolume, Volume};
use master::Caller;
use model::mutation::ConditionTest;
use model::{Condition, FamilyDescriptor, Mutation, MutationKind, Nonce, Scan, TableDescriptor, TableName, TimeRange};
use proto::methods::Method;
use proto::pb;
use std::sync::Arc;

#[test]
fn f10_replay_skips_by_family() {
    for seed in 0..12 {
        let mut stage = Stage::new(10 + seed);
        for round in 0..4u64 {
            stage
                .act(async |desk| {
                    for at in 0..3 {
                        steps::write(desk, 2).await;
                        match (seed + round * 3 + at) % 4 {
                            0 => steps::flush(desk, &["f"]),
                            1 => steps::flush(desk, &["g"]),
                            2 => steps::flush(desk, &[]),
                            _ => {}
                        }
                    }
                })
                .expect("starts");
            stage.crash(POLICIES[((seed + round) % 4) as usize], seed);
            stage.check().unwrap_or_else(|violation| panic!("seed {seed}, round {round}: {violation}"));
        }
    }
}

/// HBASE-15252: a disk that does not answer is not the end of a log.
#[test]
fn f11_read_error_during_replay() {
    let mut stage = Stage::new(11);
    stage.act(async |desk| steps::write(desk, 12).await).expect("starts");
    stage.crash(CrashPolicy::LoseUnsynced, 11);
    let left = stage.world.snapshot();
    let mut refused = 0;
    for kind in [FaultKind::TimedOut, FaultKind::Io, FaultKind::ShortRead] {
        for path in ["WALs", "recovered.edits"] {
            for nth in 1..12 {
                stage.world.volume = left.crash(&base::Rng::seeded(0), CrashPolicy::KeepAll);
                stage.world.volume.inject(fault(Op::Read, path, nth, kind));
                refused += u64::from(stage.act(async |_| ()).is_err());
                stage.crash(CrashPolicy::KeepAll, 0);
                stage.check().unwrap_or_else(|violation| panic!("{kind:?} at read {nth} of {path}: {violation}"));
            }
        }
    }
    assert!(refused > 20, "only {refused} starts met the fault");
}

/// HBASE-28569: recovery that stops anywhere, and stops again while it is repeated.
#[test]
fn f13_recovery_stopped_twice() {
    let mut stage = Stage::new(13);
    stage.act(async |desk| steps::write(desk, 12).await).expect("starts");
    stage.crash(CrashPolicy::LoseUnsynced, 13);
    let left = stage.world.snapshot();
    for first in (0..240).step_by(7) {
        stage.world.volume = left.crash(&base::Rng::seeded(0), CrashPolicy::KeepAll);
        for (stop, policy) in
            [(first, POLICIES[(first % 4) as usize]), (first / 2 + 5, POLICIES[(first / 7 % 4) as usize])]
        {
            stage.world.volume.stop_after(stop);
            let _stopped = stage.act(async |_| ());
            stage.crash(policy, first);
        }
        stage.check().unwrap_or_else(|violation| panic!("stopped after {first}: {violation}"));
    }
}

/// HBASE-20604, HBASE-27354: a reader of a log that is being written sees a prefix, whatever is visible of the last entry.
#[test]
fn f15_every_prefix_of_a_log_is_a_prefix_of_its_entries() {
    let mut stage = Stage::new(15);
    stage.act(async |desk| steps::write(desk, 8).await).expect("starts");
    let read = |bytes: &[u8]| {
        let volume = MemVolume::new();
        let at = FilePath::new("log");
        volume.put_file(&at, bytes);
        let mut entries = Vec::new();
        let mut reader = wal::Reader::open(&volume, &at)?;
        while let Some(entry) = reader.next()? {
            entries.push((entry.key.seq_id, entry.cells.bytes().clone()));
            assert!(entries.len() < 1000, "the reader goes round");
        }
        // Asked again at the end it neither begins anew nor finds what it passed over.
        assert!(reader.next()?.is_none(), "{} bytes have an end and more behind it", bytes.len());
        Ok::<_, wal::Error>(entries)
    };
    // The earlier server's log is there, too.
    let logs = stage.world.volume.all_files().into_iter().filter(|path| path.as_str().starts_with("WALs/"));
    let logs = logs.map(|path| stage.world.volume.read(&path).expect("readable"));
    let bytes = logs.max_by_key(|bytes| read(bytes).expect("whole").len()).expect("a log");
    let all = read(&bytes).expect("whole");
    assert!(all.len() > 8, "{} entries", all.len());
    let mut seen = 0;
    for len in 0..=bytes.len() {
        let entries = read(&bytes[..len]).unwrap_or_else(|error| panic!("{len} of {} bytes: {error}", bytes.len()));
        assert!(entries.len() >= seen && all.starts_with(&entries), "{len} bytes: {} entries", entries.len());
        seen = entries.len();
    }
}

/// HBASE-26093, 25596, 29219, 29774: logs without entries, without a header, without a byte.
#[test]
fn f16_empty_and_headless_logs() {
    let mut stage = Stage::new(16);
    stage.act(async |desk| steps::write(desk, 4).await).expect("starts");
    let log =
        stage.world.volume.all_files().into_iter().find(|path| path.as_str().starts_with("WALs/")).expect("a log");
    let whole = stage.world.volume.read(&log).expect("readable");
    stage.crash(CrashPolicy::LoseUnsynced, 16);
    let left = stage.world.snapshot();
    for len in 0..40.min(whole.len()) {
        stage.world.volume = left.crash(&base::Rng::seeded(0), CrashPolicy::KeepAll);
        // The last thing that an earlier server did was to begin a file,
        let dead = FilePath::new("WALs/localhost,16020,1500000000000/localhost%2C16020%2C1500000000000.1500000000001");
        // and so it was with the last one, whose file before has entries.
        let next = FilePath::new(format!("{log}9"));
        for file in [dead, next] {
            stage.world.volume.put_file(&file, &whole[..len]);
        }
        stage.check().unwrap_or_else(|violation| panic!("{len} bytes: {violation}"));
    }
}

/// An increment with a nonce: always the same one.
fn increment() -> Mutation {
    let cells = [("f", "n", i64::MAX, CellType::Put, &1u64.to_be_bytes()[..])];
    let mut increment = mutation(MutationKind::Increment, "counter", &cells);
    increment.nonce = Some(Nonce { group: 3, number: 9 });
    increment
}

/// Makes a table and increments a counter durably; the answer is lost.
async fn increment_unheard(desk: &Desk, name: TableName) {
    make(desk, TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")])).await;
    lose_answer(desk, name).await;
}

/// Increments a counter durably, and nobody hears of it.
async fn lose_answer(desk: &Desk, name: TableName) {
    let life = desk.life.clone();
    let sent = tokio::spawn(async move { calls::mutate(&life, &name, &increment()).await });
    desk.life.settle().await;
    desk.life.logs[0].sync_once().expect("synced");
    drop(sent);
}

/// The counter after the increment was sent again.
fn sent_again(stage: &mut Stage, name: &TableName) -> Vec<u8> {
    let value = stage.act(async |desk| {
        for _ in 0..3 {
            send(desk, name.clone(), increment()).await.expect("answered");
        }
        calls::get(&desk.life, name, "counter").await.expect("read")[0].2.clone()
    });
    value.expect("starts")
}

/// HBASE-25678: the answer was lost with the server; the retry counts once.
#[test]
fn f51_nonce_after_restart() {
    for policy in [CrashPolicy::LoseUnsynced, CrashPolicy::KeepAll, CrashPolicy::Torn] {
        let mut stage = Stage::new(51);
        let name = own("counters");
        stage.act(async |desk| increment_unheard(desk, name.clone()).await).expect("starts");
        stage.crash(policy, 51);
        assert_eq!(sent_again(&mut stage, &name), 1u64.to_be_bytes(), "{policy:?}");
    }
}

/// The answer was lost while the server stopped as it should: its log, though nothing in it is to be replayed, knows the nonce.
#[test]
fn f51_nonce_after_a_clean_stop() {
    let mut stage = Stage::new(51);
    let name = own("counters");
    stage
        .act(async |desk| {
            increment_unheard(desk, name.clone()).await;
            desk.life.stop().await.expect("stopped");
        })
        .expect("starts");
    assert_eq!(sent_again(&mut stage, &name), 1u64.to_be_bytes());
}

/// The counter's region is split or merged before the server is killed: nobody opens it again, and its log knows the nonce.
#[test]
fn f51_nonce_of_a_region_that_was_split_or_merged() {
    for (in_memory, merges) in [("0", false), ("1", false), ("0", true), ("1", true)] {
        let mut stage = Stage::new(51);
        stage.world.config.set("basalt.recovery.memory.fraction", in_memory);
        let name = own("counters");
        stage
            .act(async |desk| {
                let (master, nobody) = (&desk.life.master, Caller::default());
                if merges {
                    let table = TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")]);
                    let id = master.create_table(table, &[Bytes::from("m")], &nobody).await.expect("accepted");
                    master.wait_for(id).await.expect("made");
                    lose_answer(desk, name.clone()).await;
                    let id = master.merge_regions(&regions(desk, &name), false, &nobody).await.expect("accepted");
                    master.wait_for(id).await.expect("merged");
                } else {
                    increment_unheard(desk, name.clone()).await;
                    let region = regions(desk, &name).remove(0);
                    let id = master.split_region(&region, Some(Bytes::from("m")), &nobody).await.expect("accepted");
                    master.wait_for(id).await.expect("split");
                }
            })
            .expect("starts");
        stage.kill();
        assert_eq!(sent_again(&mut stage, &name), 1u64.to_be_bytes(), "in memory {in_memory}, merges: {merges}");
    }
}

/// Edits are replayed, and their files cannot be removed: the opening fails, and the next one finds fewer of them or none. What the first one
/// learnt is known, and what it wrote to the log is told apart from what is written since.
#[test]
fn an_opening_that_fails_at_its_end_leaves_nonces_and_used_ids_to_the_next() {
    for (op, nth) in [Op::RemoveFile, Op::SyncDir].into_iter().flat_map(|op| (1..6).map(move |nth| (op, nth))) {
        for puts in 0..6 {
            an_opening_fails_at_its_end(op, nth, puts);
        }
    }
}

fn an_opening_fails_at_its_end(op: Op, nth: u64, puts: usize) {
    let (name, at) = (own("counters"), format!("{op:?} {nth} fails, then {puts} puts"));
    let mut stage = Stage::new(51);
    stage.world.config.set("basalt.recovery.memory.fraction", "0");
    let region = stage.act(async |desk| {
        increment_unheard(desk, name.clone()).await;
        for number in 1..4 {
            let nonce = Some(Nonce { group: 4, number });
            let other = Mutation { row: "other".into(), nonce, ..increment() };
            send(desk, name.clone(), other).await.expect("written");
        }
        regions(desk, &name).remove(0)
    });
    stage.kill();
    let volume = stage.world.volume.clone();
    let edits_dir = format!("{}/recovered.edits", region.expect("starts"));
    volume.inject(fault(op, &edits_dir, nth, FaultKind::Io));
    let value = stage.act(async |desk| {
        volume.clear_faults();
        desk.life.logs[0].roll().expect("rolled");
        for number in 0..puts {
            send(desk, name.clone(), put(&format!("row{number}"), 1, "v")).await.expect("written");
        }
        send(desk, name.clone(), increment()).await.expect("answered");
        calls::get(&desk.life, &name, "counter").await.expect("read")[0].2.clone()
    });
    // While the logs are split the start ends.
    let Ok(value) = value else { return };
    stage.kill();
    let seen = stage.act(async |desk| {
        let mut seen = 0;
        for number in 0..puts {
            seen += calls::get(&desk.life, &name, &format!("row{number}")).await.expect("read").len();
        }
        seen
    });
    assert_eq!((seen.expect("starts"), &value[..]), (puts, &1u64.to_be_bytes()[..]), "{at}");
}

/// The answer to a check that failed was lost: asked again with its nonce it is not answered as if it had held.
#[test]
fn f51_a_check_that_failed_does_not_hold_when_it_is_repeated() {
    for in_multi in [false, true] {
        for flushed in [false, true] {
            let mut stage = Stage::new(51);
            let name = own("checked");
            let seen = stage.act(async |desk| {
                make(desk, TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")])).await;
                send(desk, name.clone(), put("row", 10, "theirs")).await.expect("written");
                if flushed {
                    // What the condition reads is in no memory.
                    flush_table(desk, &name).await;
                    desk.life.server.regions().iter().for_each(|region| _ = region.evict_blocks());
                }
                let mut held = Vec::new();
                for _ in 0..3 {
                    held.push(check(desk, &name, in_multi).await);
                }
                let row = texts(&calls::get(&desk.life, &name, "row").await.expect("read"));
                send(desk, name.clone(), put("row", 20, "expected")).await.expect("written");
                held.extend([check(desk, &name, in_multi).await, check(desk, &name, in_multi).await]);
                (held, row)
            });
            let (held, row) = seen.expect("starts");
            assert_eq!(held, [false, false, false, true, true], "in a multi: {in_multi}, flushed: {flushed}");
            assert_eq!(row, ["theirs"]);
        }
    }
}

/// Writes `ours` where there is `expected`, always with the same nonce; answers whether it was there.
async fn check(desk: &Desk, name: &TableName, in_multi: bool) -> bool {
    let condition = Condition {
        row: Bytes::from("row"),
        test: ConditionTest::Value {
            family: Bytes::from("f"),
            qualifier: Bytes::from("q"),
            op: CompareOp::Equal,
            comparator: Arc::new(Comparator::Binary { value: Bytes::from("expected") }),
        },
        time_range: TimeRange::ALL,
    };
    let mutation = Mutation { nonce: Some(Nonce { group: 3, number: 9 }), ..put("row", 30, "ours") };
    let region = calls::region_of(&desk.life, name, b"row").expect("there");
    let request = pb::MutateRequest {
        region: to_proto::region_specifier(&region),
        mutation: to_proto::mutation(&mutation),
        condition: Some(to_proto::condition(&condition)),
        nonce_group: Some(3),
    };
    let (life, name) = (desk.life.clone(), name.clone());
    let sent = tokio::spawn(async move {
        if in_multi {
            return calls::atomic(&life, &name, &[mutation], Some(&condition)).await.expect("answered");
        }
        let response: pb::MutateResponse = calls::call(&life, Method::ClientMutate, &request).await.expect("answered");
        response.processed()
    });
    for _ in 0..6 {
        desk.life.settle().await;
        desk.life.logs[0].sync_once().expect("synced");
    }
    sent.await.expect("no panic")
}

/// The power failure that took the end of a log took ids with it. A scan that goes on after the start brings a read point which they had:
/// ids of that height are of writes now that are not yet done.
#[test]
fn f02_a_scan_that_goes_on_after_a_lost_end_sees_no_write_in_flight() {
    let mut stage = Stage::relaxed(2);
    let name = own("scanned");
    let scan_at = async |desk: &Desk, read_point: Option<u64>| {
        let region = calls::region_of(&desk.life, &name, b"").expect("there");
        let scan = to_proto::scan(&Scan::default());
        let request = pb::ScanRequest {
            region: Some(to_proto::region_specifier(&region)),
            scan: Some(pb::Scan { mvcc_read_point: read_point, ..scan }),
            number_of_rows: Some(100),
            ..pb::ScanRequest::default()
        };
        let response: pb::ScanResponse = calls::call(&desk.life, Method::ClientScan, &request).await.expect("answered");
        (response.mvcc_read_point, response.results.len())
    };
    let before = stage.act(async |desk| {
        make(desk, TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")])).await;
        for row in 0..20 {
            send(desk, name.clone(), put(&format!("lost{row}"), 10, "value")).await.expect("acknowledged");
        }
        scan_at(desk, None).await
    });
    let (read_point, rows) = before.expect("starts");
    assert_eq!(rows, 20);
    stage.crash(CrashPolicy::LoseUnsynced, 2);
    let seen = stage.act(async |desk| {
        let left = scan_at(desk, None).await.1;
        let (life, name) = (desk.life.clone(), name.clone());
        let in_flight = tokio::spawn(async move { calls::mutate(&life, &name, &put("flight", 10, "value")).await });
        desk.life.settle().await;
        assert!(!in_flight.is_finished(), "the log was not written");
        (left, scan_at(desk, read_point).await.1)
    });
    let (left, seen) = seen.expect("starts");
    assert!(left < 20, "nothing was lost");
    assert_eq!(seen, left);
}
