//! Scenes after faults that others have met: the whole server on a model disk. Numbers as in docs/reliability.md; where HBase
//! met the fault first, the comment says in which issue.

use basalt_sim::calls::{self, Failure, mutation};
use basalt_sim::promises::Fate;
use basalt_sim::scans::{self, Manner};
use basalt_sim::stage::{Stage, check};
use basalt_sim::steps;
use basalt_sim::work::{self, Desk, table};
use basalt_sim::world::POLICIES;
use base::Clock;
use bytes::Bytes;
use cell::CellType;
use fs::mem::{Fault, Op};
use fs::{CrashPolicy, FaultKind, FilePath, MemVolume, Volume};
use master::Caller;
use model::{FamilyDescriptor, Mutation, MutationKind, Nonce, Scan, TableDescriptor, TableName};

fn fault(op: Op, path: &str, nth: u64, kind: FaultKind) -> Fault {
    Fault { op: Some(op), path_contains: Some(path.to_owned()), nth, kind, forever: false }
}

/// Sends a call and lets the logs do their work.
async fn send(desk: &Desk, name: TableName, mutation: Mutation) -> Result<calls::RowCells, Failure> {
    let life = desk.life.clone();
    let sent = tokio::spawn(async move { calls::mutate(&life, &name, &mutation).await });
    for _ in 0..6 {
        desk.life.settle().await;
        let _told_to_who_waits = desk.life.logs[0].sync_once();
    }
    assert!(sent.is_finished(), "the log was synced");
    sent.await.expect("no panic")
}

async fn make(desk: &Desk, table: TableDescriptor) {
    let id = desk.life.master.create_table(table, &[], &Caller::default()).await.expect("accepted");
    desk.life.master.wait_for(id).await.expect("made");
}

fn own(name: &str) -> TableName {
    TableName::parse(name).expect("legal")
}

fn put(row: &str, timestamp: i64, value: &str) -> Mutation {
    mutation(MutationKind::Put, row, &[("f", "q", timestamp, CellType::Put, value.as_bytes())])
}

fn texts(cells: &calls::RowCells) -> Vec<String> {
    cells.iter().map(|(_, _, value)| String::from_utf8_lossy(value).into_owned()).collect()
}

async fn flush_table(desk: &Desk, name: &TableName) {
    for region in regions(desk, name) {
        desk.life.server.flush_region(&region, Vec::new()).expect("flushed");
    }
}

async fn compact_table(desk: &Desk, name: &TableName) {
    for region in regions(desk, name) {
        desk.life.server.request_compaction(&region, None, true).expect("online");
    }
    while desk.life.server.step_compaction() {}
}

fn regions(desk: &Desk, name: &TableName) -> Vec<String> {
    let cluster = desk.life.master.cluster();
    let live = cluster.regions_of(name).filter(|node| node.is_live());
    live.map(|node| node.info.encoded_name().to_string()).collect()
}

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
                let all = desk.promises.lock().journal.values().flatten().all(|write| write.fate == Fate::Acked);
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
        stage
            .promises
            .lock()
            .journal
            .entry("11-journal90".into())
            .or_default()
            .extend([77, 78].map(|number| basalt_sim::promises::Write { number, deletes: false, fate: Fate::Maybe }));
        stage.crash(policy, seed);
        stage.check().unwrap_or_else(|violation| panic!("{policy:?}: {violation}"));
        stage.check().unwrap_or_else(|violation| panic!("{policy:?}, once more: {violation}"));
    }
}

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
                stage.world.volume = left.crash(&base::Dice::seeded(0), CrashPolicy::KeepAll);
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
        stage.world.volume = left.crash(&base::Dice::seeded(0), CrashPolicy::KeepAll);
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
    let logs = stage.world.volume.all_files().into_iter().filter(|path| path.as_str().starts_with("WALs/"));
    let path = logs.max_by_key(|path| stage.world.volume.read(path).map_or(0, |bytes| bytes.len())).expect("a log");
    let bytes = stage.world.volume.read(&path).expect("readable");
    let read = |bytes: &[u8]| {
        let volume = MemVolume::new();
        let at = FilePath::new("log");
        volume.put_file(&at, bytes);
        let mut entries = Vec::new();
        let mut reader = wal::Reader::open(&volume, &at)?;
        while let Some(entry) = reader.next()? {
            entries.push((entry.key.seq_id, entry.cells.bytes().clone()));
        }
        Ok::<_, wal::Error>(entries)
    };
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
        stage.world.volume = left.crash(&base::Dice::seeded(0), CrashPolicy::KeepAll);
        // The last thing that an earlier server did was to begin a file.
        let dead = FilePath::new("WALs/localhost,16020,1500000000000/localhost%2C16020%2C1500000000000.1500000000001");
        stage.world.volume.put_file(&dead, &whole[..len]);
        stage.check().unwrap_or_else(|violation| panic!("{len} bytes: {violation}"));
    }
}

/// HBASE-24189: the log of a table that is gone does not bring its directory back.
#[test]
fn f20_table_deleted_before_replay() {
    let mut stage = Stage::new(20);
    let name = own("gone");
    stage
        .act(async |desk| {
            make(desk, TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")])).await;
            for row in ["a", "b"] {
                send(desk, name.clone(), put(row, 1, "v")).await.expect("written");
            }
            let caller = Caller::default();
            let id = desk.life.master.disable_table(&name, &caller).await.expect("accepted");
            desk.life.master.wait_for(id).await.expect("disabled");
            let id = desk.life.master.delete_table(&name, &caller).await.expect("accepted");
            desk.life.master.wait_for(id).await.expect("deleted");
            steps::write(desk, 3).await;
        })
        .expect("starts");
    for policy in POLICIES {
        stage.crash(policy, 20);
        stage.check().unwrap_or_else(|violation| panic!("{policy:?}: {violation}"));
        let there = stage.world.volume.exists(&FilePath::new("data/default/gone")).expect("memory");
        assert!(!there, "{policy:?}: the directory is back");
    }
}

/// HBASE-29254: whatever happens to the files between two calls of a scan, it shows each row once and whole.
#[test]
fn f39_scan_while_files_change() {
    for seed in 0..40 {
        let mut stage = Stage::new(39);
        let dice = base::Dice::seeded(seed);
        let manner = Manner { pauses: true, ..Manner::any(&dice) };
        stage
            .act(async |desk| {
                steps::write(desk, 12).await;
                steps::flush(desk, &[]);
                steps::write(desk, 9).await;
                let before = desk.promises.lock().clone();
                let life = desk.life.clone();
                let scan = tokio::spawn(async move { scans::whole(&life, &table(), manner).await });
                let mut changes = 0;
                while !scan.is_finished() {
                    desk.life.settle().await;
                    match dice.below(5) {
                        0 => steps::flush(desk, &[]),
                        1 => steps::flush(desk, &["f"]),
                        2 => steps::compact(desk, true),
                        3 => steps::compact(desk, false),
                        _ => steps::write(desk, 1).await,
                    }
                    changes += 1;
                }
                let rows = scan.await.expect("no panic").expect("readable");
                scans::check_moving(&before, &rows, manner)
                    .unwrap_or_else(|v| panic!("seed {seed}, {changes} changes: {v}"));
            })
            .expect("starts");
    }
}

/// HBASE-16604, HBASE-13262: a scan that loses its scanner goes on behind the last whole row; one asked out of turn is refused.
#[test]
fn f40_scan_retries() {
    for seed in 0..20 {
        let mut stage = Stage::new(40);
        let dice = base::Dice::seeded(seed);
        let manner = Manner { pauses: true, rows: 2, ..Manner::any(&dice) };
        let clock = stage.world.clock.clone();
        stage
            .act(async |desk| {
                steps::write(desk, 12).await;
                let before = desk.promises.lock().clone();
                let life = desk.life.clone();
                let scan = tokio::spawn(async move { scans::whole(&life, &table(), manner).await });
                for _ in 0..6 {
                    tokio::time::sleep(std::time::Duration::from_millis(dice.below(9))).await;
                    if dice.one_in(2) {
                        // Its lease runs out.
                        clock.advance_ms(61_000);
                        desk.life.server.step_chores();
                    } else {
                        let family = work::families(&dice)[0].clone();
                        let id = desk.life.master.modify_family(&table(), family, &Caller::default()).await;
                        desk.life.master.wait_for(id.expect("accepted")).await.expect("every region was opened again");
                    }
                }
                let rows = scan.await.expect("no panic").expect("readable");
                scans::check_moving(&before, &rows, manner)
                    .unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
                let region = calls::region_of(&desk.life, &table(), b"").expect("there");
                let pieces = calls::scan(&desk.life, &region, &Scan::default(), None, 1).await.expect("opened");
                let twice = calls::scan(&desk.life, &region, &Scan::default(), Some((pieces.scanner, 7)), 1).await;
                assert!(matches!(&twice, Err(Failure::Maybe(e)) if e.contains("OutOfOrderScannerNext")), "out of turn");
            })
            .expect("starts");
    }
}

/// HBASE-21596, HBASE-15968: what a delete hides does not depend on when files are written and merged.
#[test]
fn f43_deletes_do_not_depend_on_compactions() {
    let name = own("deletes");
    let mut shown: Vec<Vec<String>> = Vec::new();
    for variant in 0..8 {
        let mut stage = Stage::new(43);
        let seen = stage.act(async |desk| {
            make(desk, TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f").with("VERSIONS", "3")])).await;
            for (at, step) in [1, 2, 3].into_iter().enumerate() {
                send(desk, name.clone(), put("row", step * 10, &format!("v{step}"))).await.expect("written");
                if variant >> at & 1 == 1 {
                    flush_table(desk, &name).await;
                }
            }
            let newest = [("f", "q", 30, CellType::Delete, &b""[..])];
            send(desk, name.clone(), mutation(MutationKind::Delete, "row", &newest)).await.expect("deleted");
            let before = calls::get(&desk.life, &name, "row").await.expect("read");
            flush_table(desk, &name).await;
            assert_eq!(calls::get(&desk.life, &name, "row").await.expect("read"), before, "a flush changes nothing");
            compact_table(desk, &name).await;
            assert_eq!(calls::get(&desk.life, &name, "row").await.expect("read"), before, "nor does a compaction");
            texts(&before)
        });
        shown.push(seen.expect("starts"));
    }
    assert!(shown.iter().all(|seen| *seen == ["v2", "v1"]), "{shown:?}");
}

/// HBASE-21504: what is too old is gone at once, in files and in memory, and stays gone; what is not stays.
#[test]
fn f44_time_to_live() {
    let name = own("ttl");
    let mut stage = Stage::new(44);
    let clock = stage.world.clock.clone();
    stage
        .act(async |desk| {
            let family = FamilyDescriptor::new("f").with("TTL", "10").with("VERSIONS", "5").with("MIN_VERSIONS", "0");
            make(desk, TableDescriptor::new(name.clone(), [family])).await;
            let begun = clock.now_ms().0;
            for (row, stamp) in [("old", begun), ("future", begun + 3_600_000), ("newer", begun + 5_000)] {
                send(desk, name.clone(), put(row, stamp, row)).await.expect("written");
            }
            flush_table(desk, &name).await;
            send(desk, name.clone(), put("in memory", begun, "old")).await.expect("written");
            let there = async |row: &str| !calls::get(&desk.life, &name, row).await.expect("read").is_empty();
            clock.set_wall_ms(begun + 9_999);
            assert!(there("old").await && there("newer").await && there("in memory").await && there("future").await);
            clock.set_wall_ms(begun + 10_002);
            assert!(!there("old").await && !there("in memory").await && there("newer").await && there("future").await);
            compact_table(desk, &name).await;
            flush_table(desk, &name).await;
            clock.set_wall_ms(begun + 16_000);
            assert!(!there("newer").await && there("future").await);
            compact_table(desk, &name).await;
            // The clock goes back: what was merged away does not return, what is to come is still there.
            clock.set_wall_ms(begun);
            assert!(!there("old").await && there("future").await);
        })
        .expect("starts");
}

/// HBASE-28456: of two cells with one timestamp the later write counts, wherever they are.
#[test]
fn f45_one_timestamp_the_later_write_counts() {
    let name = own("ties");
    for (variant, &policy) in POLICIES.iter().enumerate() {
        let mut stage = Stage::new(45);
        stage
            .act(async |desk| {
                make(desk, TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f").with("VERSIONS", "5")]))
                    .await;
                for at in 0..4 {
                    send(desk, name.clone(), put("row", 7, &format!("v{at}"))).await.expect("written");
                    if variant & 1 == 1 || at == 1 {
                        flush_table(desk, &name).await;
                    }
                    let seen = texts(&calls::get(&desk.life, &name, "row").await.expect("read"));
                    assert_eq!(seen, [format!("v{at}")]);
                }
                if variant & 2 == 2 {
                    flush_table(desk, &name).await;
                    compact_table(desk, &name).await;
                }
            })
            .expect("starts");
        stage.crash(policy, 45);
        let seen = stage.act(async |desk| texts(&calls::get(&desk.life, &name, "row").await.expect("read")));
        assert_eq!(seen.expect("starts"), ["v3"], "variant {variant}");
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

/// The wall clock goes back by an hour between two starts: what was deleted by the later clock must not hide what is written by
/// the earlier one.
#[test]
fn f48_clock_goes_back_between_starts() {
    let mut stage = Stage::new(48);
    let (name, clock, caller) = (own("again"), stage.world.clock.clone(), Caller::default());
    let descriptor = || TableDescriptor::new(own("again"), [FamilyDescriptor::new("f")]);
    stage
        .act(async |desk| {
            make(desk, descriptor()).await;
            for id in [desk.life.master.disable_table(&name, &caller).await] {
                desk.life.master.wait_for(id.expect("accepted")).await.expect("disabled");
            }
            let id = desk.life.master.delete_table(&name, &caller).await.expect("accepted");
            desk.life.master.wait_for(id).await.expect("deleted");
        })
        .expect("starts");
    stage.crash(CrashPolicy::LoseUnsynced, 48);
    clock.set_wall_ms(clock.now_ms().0 - 3_600_000);
    stage
        .act(async |desk| {
            make(desk, descriptor()).await;
            send(desk, name.clone(), put("row", 1, "v")).await.expect("written");
            let id = desk.life.master.disable_table(&name, &caller).await.expect("accepted");
            desk.life.master.wait_for(id).await.expect("disabled");
        })
        .expect("starts");
    stage.crash(CrashPolicy::LoseUnsynced, 48);
    stage
        .act(async |desk| {
            let state = desk.life.master.cluster().state(&name);
            assert_eq!(state, Some(master::cluster::TableState::Disabled), "what was written last counts");
            let id = desk.life.master.enable_table(&name, &caller).await.expect("accepted");
            desk.life.master.wait_for(id).await.expect("enabled");
            assert_eq!(texts(&calls::get(&desk.life, &name, "row").await.expect("read")), ["v"]);
        })
        .expect("starts");
    stage.check().unwrap_or_else(|violation| panic!("{violation}"));
}

/// HBASE-25678: the answer was lost with the server; the retry counts once.
#[test]
fn f51_nonce_after_restart() {
    for policy in [CrashPolicy::LoseUnsynced, CrashPolicy::KeepAll, CrashPolicy::Torn] {
        let mut stage = Stage::new(51);
        let increment = || {
            let mut increment = mutation(
                MutationKind::Increment,
                "counter",
                &[("f", "n", i64::MAX, CellType::Put, &1u64.to_be_bytes())],
            );
            increment.nonce = Some(Nonce { group: 3, number: 9 });
            increment
        };
        let name = own("counters");
        let made = name.clone();
        stage
            .act(async |desk| {
                make(desk, TableDescriptor::new(made.clone(), [FamilyDescriptor::new("f")])).await;
                let life = desk.life.clone();
                let sent = tokio::spawn(async move { calls::mutate(&life, &made, &increment()).await });
                desk.life.settle().await;
                // Durable, and nobody hears of it.
                desk.life.logs[0].sync_once().expect("synced");
                drop(sent);
            })
            .expect("starts");
        stage.crash(policy, 51);
        let value = stage.act(async |desk| {
            for _ in 0..3 {
                send(desk, name.clone(), increment()).await.expect("answered");
            }
            calls::get(&desk.life, &name, "counter").await.expect("read")[0].2.clone()
        });
        assert_eq!(value.expect("starts"), 1u64.to_be_bytes(), "{policy:?}");
    }
}

/// A disk that fails while a region is closed for an alteration: what it held must be there when it is open again.
#[test]
fn a_region_whose_close_failed_keeps_its_writes() {
    for nth in 1..40 {
        let mut stage = Stage::new(60);
        let volume = stage.world.volume.clone();
        stage
            .act(async |desk| {
                steps::write(desk, 12).await;
                let family = work::families(&base::Dice::seeded(nth))[0].clone();
                let kind = if nth % 2 == 0 { FaultKind::Io } else { FaultKind::Full };
                volume.inject(Fault {
                    op: None,
                    path_contains: Some("data/default/t/".into()),
                    nth,
                    kind,
                    forever: false,
                });
                let id = desk.life.master.modify_family(&table(), family, &Caller::default()).await;
                if let Ok(id) = id {
                    desk.life.master.wait_for(id).await.expect("it tries again");
                }
                volume.clear_faults();
                check(desk).await.unwrap_or_else(|violation| panic!("call {nth} fails: {violation}"));
            })
            .expect("starts");
        stage.crash(CrashPolicy::LoseUnsynced, nth);
        stage.check().unwrap_or_else(|violation| panic!("call {nth} fails, after a crash: {violation}"));
    }
}

/// Every row is in one daughter, whole, whatever block, encoding, compression and filter its files have.
#[test]
fn f24_split_at_any_row() {
    for seed in 0..40 {
        let mut stage = Stage::new(seed);
        let dice = base::Dice::seeded(seed);
        stage
            .act(async |desk| {
                for _ in 0..3 {
                    steps::write(desk, 12).await;
                    steps::flush(desk, &[]);
                }
                let rows: Vec<String> = desk.promises.lock().still.iter().cloned().collect();
                for _ in 0..4 {
                    let row = rows[dice.below(rows.len() as u64) as usize].clone();
                    let region = calls::region_of(&desk.life, &table(), row.as_bytes()).expect("there");
                    let at = Some(Bytes::from(row.clone()));
                    let Ok(id) = desk.life.master.split_region(region.encoded_name(), at, &Caller::default()).await
                    else {
                        continue;
                    };
                    let _ended = desk.life.master.wait_for(id).await;
                    check(desk).await.unwrap_or_else(|violation| {
                        let t = desk.life.master.cluster().descriptor(&table());
                        panic!("seed {seed}, split at {row}: {violation} {t:?}")
                    });
                    steps::compact(desk, true);
                    check(desk).await.unwrap_or_else(|violation| panic!("seed {seed}, merged: {violation}"));
                }
            })
            .expect("starts");
    }
}

/// A log that is rolled on a full disk while nothing waits to be written takes entries again when there is room.
#[test]
fn f06_roll_on_a_full_disk_with_nothing_to_write() {
    let mut stage = Stage::new(63);
    let volume = stage.world.volume.clone();
    stage
        .act(async |desk| {
            steps::write(desk, 3).await;
            assert!(work::quiet(desk).await, "no faults");
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
                fate: Fate::Acked,
            }));
        })
        .expect("starts");
    stage.crash(CrashPolicy::LoseUnsynced, 64);
    stage.check().unwrap_or_else(|violation| panic!("{violation}"));
}

/// A disk that is full for a moment under hbase:meta, while every region of a table is opened anew.
#[test]
fn an_alteration_opens_every_region_though_meta_could_not_be_written() {
    for nth in 1..8 {
        let mut stage = Stage::new(62);
        let volume = stage.world.volume.clone();
        stage
            .act(async |desk| {
                steps::write(desk, 9).await;
                volume.inject(fault(Op::Flush, ".meta", nth, FaultKind::Full));
                let family = work::families(&base::Dice::seeded(1))[0].clone();
                let id = desk.life.master.modify_family(&table(), family, &Caller::default()).await.expect("accepted");
                let master = desk.life.master.clone();
                let ended = tokio::spawn(async move { master.wait_for(id).await });
                for _ in 0..200 {
                    desk.life.server.step_chores();
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                }
                assert!(ended.is_finished(), "write {nth}: it tries again until it is done");
                volume.clear_faults();
                check(desk).await.unwrap_or_else(|violation| panic!("write {nth}: {violation}"));
            })
            .expect("starts");
    }
}

/// A region that could not be opened is tried again, also when the trial itself fails half way (a full disk under hbase:meta).
#[test]
fn a_failed_open_is_tried_until_it_works() {
    let mut stage = Stage::new(61);
    let volume = stage.world.volume.clone();
    stage
        .act(async |desk| {
            steps::write(desk, 9).await;
            steps::flush(desk, &[]);
            volume.inject(Fault { forever: true, ..fault(Op::Open, "/f/", 1, FaultKind::Io) });
            let family = work::families(&base::Dice::seeded(1))[0].clone();
            let id = desk.life.master.modify_family(&table(), family, &Caller::default()).await.expect("accepted");
            let _ended = desk.life.master.wait_for(id).await;
            assert!(!work::not_open(&desk.life).is_empty(), "no region could be opened");
            volume.clear_faults();
            volume.set_capacity(Some(volume.used_bytes()));
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            volume.set_capacity(None);
            desk.life.server.step_chores();
            check(desk).await.unwrap_or_else(|violation| panic!("with room again: {violation}"));
        })
        .expect("starts");
}

/// The first row that a table's split gives is the one asked for, and nothing is lost on the way.
#[test]
fn f24_split_with_a_failing_disk_leaves_no_hole() {
    for nth in 1..60 {
        let mut stage = Stage::new(24);
        let volume = stage.world.volume.clone();
        stage
            .act(async |desk| {
                steps::write(desk, 12).await;
                let region = regions(desk, &table()).pop().expect("a region");
                volume.fail_op(nth, if nth % 2 == 0 { FaultKind::Io } else { FaultKind::Full });
                let row = Some(Bytes::from("71"));
                if let Ok(id) = desk.life.master.split_region(&region, row, &Caller::default()).await {
                    let _ended = desk.life.master.wait_for(id).await;
                }
                volume.clear_faults();
                if desk.life.fatal().is_none() {
                    check(desk).await.unwrap_or_else(|violation| panic!("call {nth} fails: {violation}"));
                }
            })
            .expect("starts");
        stage.crash(CrashPolicy::LoseUnsynced, nth);
        stage.check().unwrap_or_else(|violation| panic!("call {nth} fails, after a crash: {violation}"));
    }
}
