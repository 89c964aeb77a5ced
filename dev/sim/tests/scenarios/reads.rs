//! What readers see: while files change, under deletes, times to live, equal timestamps and a clock that goes back.

use super::common::{compact_table, flush_table, make, own, put, send, texts};
use basalt_sim::calls::{self, Failure, mutation};
use basalt_sim::scans::{self, Manner};
use basalt_sim::stage::Stage;
use basalt_sim::steps;
use basalt_sim::work::{self, table};
use basalt_sim::world::POLICIES;
use base::Clock;
use cell::CellType;
use fs::CrashPolicy;
use master::Caller;
use model::{FamilyDescriptor, MutationKind, Scan, TableDescriptor};

/// HBASE-29254: whatever happens to the files between two calls of a scan, it shows each row once and whole.
#[test]
fn f39_scan_while_files_change() {
    for seed in 0..40 {
        let mut stage = Stage::new(39);
        let rng = base::Rng::seeded(seed);
        let manner = Manner { pauses: true, ..Manner::any(&rng) };
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
                    match rng.below(5) {
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
        let rng = base::Rng::seeded(seed);
        let manner = Manner { pauses: true, rows: 2, ..Manner::any(&rng) };
        let clock = stage.world.clock.clone();
        stage
            .act(async |desk| {
                steps::write(desk, 12).await;
                let before = desk.promises.lock().clone();
                let life = desk.life.clone();
                let scan = tokio::spawn(async move { scans::whole(&life, &table(), manner).await });
                for _ in 0..6 {
                    tokio::time::sleep(std::time::Duration::from_millis(rng.below(9))).await;
                    if rng.one_in(2) {
                        // Its lease runs out.
                        clock.advance_ms(61_000);
                        desk.life.server.step_chores();
                    } else {
                        let family = work::stored_otherwise(&desk.life, &rng, 0);
                        let id = desk.life.master.modify_family(&table(), family, &Caller::default()).await;
                        desk.life.master.wait_for(id.expect("accepted")).await.expect("every region was opened again");
                    }
                }
                let rows = scan.await.expect("no panic").expect("readable");
                scans::check_moving(&before, &rows, manner)
                    .unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
                let region = calls::region_of(&desk.life, &table(), b"").expect("there");
                // A call that comes twice, as from a client that gave up waiting too early: its rows are not given a second time.
                let pieces = calls::scan(&desk.life, &region, &Scan::default(), None, 1).await.expect("opened");
                let turn = Some((pieces.scanner, 0));
                calls::scan(&desk.life, &region, &Scan::default(), turn, 1).await.expect("in turn");
                let again = calls::scan(&desk.life, &region, &Scan::default(), turn, 1).await;
                assert!(matches!(&again, Err(Failure::Maybe(e)) if e.contains("OutOfOrderScannerNext")), "sent twice");
                let pieces = calls::scan(&desk.life, &region, &Scan::default(), None, 1).await.expect("opened");
                let twice = calls::scan(&desk.life, &region, &Scan::default(), Some((pieces.scanner, 7)), 1).await;
                assert!(matches!(&twice, Err(Failure::Maybe(e)) if e.contains("OutOfOrderScannerNext")), "out of turn");
            })
            .expect("starts");
    }
}

/// HBASE-21596, HBASE-15968: what a delete hides does not depend on when files are written and merged; of each kind of delete, wherever it and the
/// cells that it hides are.
#[test]
fn f43_deletes_do_not_depend_on_compactions() {
    let name = own("deletes");
    let kinds: [(CellType, &str, i64, &[&str]); 5] = [
        (CellType::Delete, "q", 30, &["v2", "v1"]),
        (CellType::Delete, "q", 20, &["v3", "v1"]),
        (CellType::DeleteColumn, "q", 20, &["v3"]),
        (CellType::DeleteFamily, "", 20, &["v3"]),
        (CellType::DeleteFamilyVersion, "", 20, &["v3", "v1"]),
    ];
    for (kind, column, stamp, expected) in kinds {
        // Flushed behind each of the first three steps or not; the delete comes last, or before the newest put.
        for variant in 0..16 {
            let mut stage = Stage::new(43);
            let seen = stage.act(async |desk| {
                let family = FamilyDescriptor::new("f").with("VERSIONS", "3");
                make(desk, TableDescriptor::new(name.clone(), [family])).await;
                let delete = mutation(MutationKind::Delete, "row", &[("f", column, stamp, kind, &b""[..])]);
                let put_of = |step: i64| put("row", step * 10, &format!("v{step}"));
                // A delete of the newest version means the one that is there.
                let last = if variant & 8 == 8 && stamp < 30 { [delete, put_of(3)] } else { [put_of(3), delete] };
                for (at, step) in [put_of(1), put_of(2)].into_iter().chain(last).enumerate() {
                    send(desk, name.clone(), step).await.expect("written");
                    if at < 3 && variant >> at & 1 == 1 {
                        flush_table(desk, &name).await;
                    }
                }
                let before = calls::get(&desk.life, &name, "row").await.expect("read");
                flush_table(desk, &name).await;
                assert_eq!(
                    calls::get(&desk.life, &name, "row").await.expect("read"),
                    before,
                    "a flush changes nothing"
                );
                compact_table(desk, &name).await;
                assert_eq!(calls::get(&desk.life, &name, "row").await.expect("read"), before, "nor does a compaction");
                texts(&before)
            });
            assert_eq!(seen.expect("starts"), expected, "{kind:?} at {stamp}, variant {variant}");
        }
    }
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

/// What builds on a value that was stamped before the clock went back is stamped no earlier: it would be hidden by what it replaces.
#[test]
fn f48_what_builds_on_a_later_stamp_is_not_hidden_by_it() {
    let name = own("stamps");
    for restarts in [false, true] {
        let mut stage = Stage::new(48);
        let clock = stage.world.clock.clone();
        let grow = |desk: &work::Desk| {
            let (desk, name) = (desk.clone(), name.clone());
            let latest = i64::MAX;
            let one = [("f", "n", latest, CellType::Put, &1u64.to_be_bytes()[..])];
            let piece = [("f", "s", latest, CellType::Put, &b"x"[..])];
            let calls = [mutation(MutationKind::Increment, "row", &one), mutation(MutationKind::Append, "row", &piece)];
            async move {
                for call in calls {
                    send(&desk, name.clone(), call).await.expect("written");
                }
            }
        };
        let shown = async |desk: &work::Desk| texts(&calls::get(&desk.life, &name, "row").await.expect("read"));
        stage
            .act(async |desk| {
                make(desk, TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")])).await;
                grow(desk).await;
                if !restarts {
                    clock.set_wall_ms(clock.now_ms().0 - 3_600_000);
                    grow(desk).await;
                    assert_eq!(shown(desk).await, ["\0\0\0\0\0\0\0\u{2}", "xx"], "while the server runs");
                }
            })
            .expect("starts");
        stage.crash(CrashPolicy::LoseUnsynced, 48);
        clock.set_wall_ms(clock.now_ms().0 - 3_600_000);
        stage
            .act(async |desk| {
                grow(desk).await;
                let count = if restarts { "\0\0\0\0\0\0\0\u{2}" } else { "\0\0\0\0\0\0\0\u{3}" };
                assert_eq!(shown(desk).await, [count, &"x".repeat(if restarts { 2 } else { 3 })], "after a start");
                flush_table(desk, &name).await;
                compact_table(desk, &name).await;
                assert_eq!(shown(desk).await[0], count, "in one file");
            })
            .expect("starts");
    }
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
