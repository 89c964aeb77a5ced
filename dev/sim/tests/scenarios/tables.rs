//! Tables and regions that change while the disk fails.

use super::common::{fault, flush_table, make, own, put, regions, send, texts, until_stopped};
use basalt_sim::calls;
use basalt_sim::stage::{Stage, check};
use basalt_sim::steps;
use basalt_sim::work::{self, Desk, table};
use basalt_sim::world::POLICIES;
use base::Clock;
use bytes::Bytes;
use cell::CellType;
use fs::mem::{Fault, Op};
use fs::{CrashPolicy, FaultKind, FilePath, Volume};
use master::Caller;
use model::{FamilyDescriptor, MutationKind, TableDescriptor};

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

/// A disk that fails while a region is closed for an alteration: what it held must be there when it is open again.
#[test]
fn a_region_whose_close_failed_keeps_its_writes() {
    for nth in 1..40 {
        let mut stage = Stage::new(60);
        let volume = stage.world.volume.clone();
        stage
            .act(async |desk| {
                steps::write(desk, 12).await;
                let family = work::stored_otherwise(&desk.life, &base::Rng::seeded(nth), 0);
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
        let rng = base::Rng::seeded(seed);
        stage
            .act(async |desk| {
                for _ in 0..3 {
                    steps::write(desk, 12).await;
                    steps::flush(desk, &[]);
                }
                let rows: Vec<String> = desk.promises.lock().still.iter().cloned().collect();
                for _ in 0..4 {
                    let row = rows[rng.below(rows.len() as u64) as usize].clone();
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
                let family = work::stored_otherwise(&desk.life, &base::Rng::seeded(1), 0);
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
            let family = work::stored_otherwise(&desk.life, &base::Rng::seeded(1), 0);
            let id = desk.life.master.modify_family(&table(), family, &Caller::default()).await.expect("accepted");
            let _ended = desk.life.master.wait_for(id).await;
            assert!(!basalt_sim::check::not_open(&desk.life).is_empty(), "no region could be opened");
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

/// A family is deleted and another of the same name added: what the old one held is in the log still, and stays gone.
#[test]
fn f52_a_family_that_was_deleted_and_added_again_stays_empty() {
    let name = own("grows");
    for in_memory in ["0", "1"] {
        for (number, policy) in [None].into_iter().chain(POLICIES.map(Some)).enumerate() {
            let mut stage = Stage::new(52);
            stage.world.config.set("basalt.recovery.memory.fraction", in_memory);
            stage
                .act(async |desk| {
                    let families = ["f", "g"].map(FamilyDescriptor::new);
                    make(desk, TableDescriptor::new(name.clone(), families)).await;
                    send(desk, name.clone(), put("row", 10, "of the old family")).await.expect("written");
                    let (master, nobody) = (&desk.life.master, Caller::default());
                    let id = master.delete_family(&name, &Bytes::from_static(b"f"), &nobody).await.expect("accepted");
                    master.wait_for(id).await.expect("deleted");
                    let id = master.add_family(&name, FamilyDescriptor::new("f"), &nobody).await.expect("accepted");
                    master.wait_for(id).await.expect("added");
                    assert_eq!(texts(&calls::get(&desk.life, &name, "row").await.expect("read")), [""; 0]);
                    send(desk, name.clone(), put("new", 10, "of the new family")).await.expect("written");
                })
                .expect("starts");
            match policy {
                Some(policy) => stage.crash(policy, number as u64),
                None => stage.kill(),
            }
            let seen = stage.act(async |desk| {
                let get = async |row| texts(&calls::get(&desk.life, &name, row).await.expect("read"));
                (get("row").await, get("new").await)
            });
            let (old, new) = seen.expect("starts");
            assert_eq!((old.len(), new.len()), (0, 1), "{policy:?}, in memory {in_memory}: {old:?}, {new:?}");
        }
    }
}

/// The same when crashes break off both changes: a region that was not closed in between has the old family's edits in its log.
#[test]
fn f52_a_deletion_that_was_broken_off_leaves_nothing_to_a_new_family() {
    let mut met = 0;
    for in_memory in ["0", "1"] {
        for flushes in [false, true] {
            let (mut stops, mut deleted) = (0, false);
            while !deleted {
                let (mut more_stops, mut added) = (0, false);
                while !added {
                    (deleted, added) = delete_and_add(in_memory, flushes, stops, more_stops);
                    more_stops += 7;
                    met += 1;
                }
                stops += 5;
            }
        }
    }
    assert!(met > 200, "{met} pairs of stops");
}

/// Deletes a family and adds one of its name, with kills after so many calls to the volume; whether the one and the other had ended by then.
fn delete_and_add(in_memory: &str, flushes: bool, stops: u64, more_stops: u64) -> (bool, bool) {
    let name = own("grows");
    let mut stage = Stage::new(52);
    stage.world.config.set("basalt.recovery.memory.fraction", in_memory);
    let volume = stage.world.volume.clone();
    let deleted = stage.act(async |desk| {
        make(desk, TableDescriptor::new(name.clone(), ["f", "g"].map(FamilyDescriptor::new))).await;
        send(desk, name.clone(), put("row", 10, "of the old family")).await.expect("written");
        if flushes {
            flush_table(desk, &name).await;
        }
        let kept = [("g", "q", 10, CellType::Put, &b"kept"[..])];
        send(desk, name.clone(), calls::mutation(MutationKind::Put, "kept", &kept)).await.expect("written");
        volume.stop_after(stops);
        let (master, name) = (desk.life.master.clone(), name.clone());
        until_stopped(desk, &volume, async move {
            let id = master.delete_family(&name, &Bytes::from_static(b"f"), &Caller::default()).await?;
            master.wait_for(id).await.map(drop)
        })
        .await
    });
    stage.kill();
    let has_family = async |desk: &Desk| {
        assert!(basalt_sim::check::quiet(desk).await, "what was begun is done");
        let cluster = desk.life.master.cluster();
        cluster.descriptor(&name).is_some_and(|table| table.families.contains_key(&b"f"[..]))
    };
    let volume = stage.world.volume.clone();
    let added = stage.act(async |desk| {
        if has_family(desk).await {
            return None;
        }
        volume.stop_after(more_stops);
        let (master, name) = (desk.life.master.clone(), name.clone());
        let add = async move {
            let id = master.add_family(&name, FamilyDescriptor::new("f"), &Caller::default()).await?;
            master.wait_for(id).await.map(drop)
        };
        Some(until_stopped(desk, &volume, add).await)
    });
    let (deleted, Some(added)) = (deleted.expect("starts"), added.expect("starts")) else {
        // Not even that it should be deleted was written down.
        return (false, true);
    };
    stage.kill();
    let rows = async |desk: &Desk| {
        let get = async |row| calls::get(&desk.life, &name, row).await.expect("read").len();
        (get("row").await, get("new").await, get("kept").await)
    };
    let at = format!("stopped after {stops} and {more_stops} calls, in memory {in_memory}, flushed {flushes}");
    let seen = stage.act(async |desk| {
        let is_there = has_family(desk).await;
        assert_eq!(rows(desk).await, (0, 0, 1), "{at}");
        if is_there {
            send(desk, name.clone(), put("new", 10, "of the new family")).await.expect("written");
        }
        is_there
    });
    let is_there = seen.expect("starts");
    stage.kill();
    let seen = stage.act(async |desk| {
        has_family(desk).await;
        rows(desk).await
    });
    assert_eq!(seen.expect("starts"), (0, usize::from(is_there), 1), "{at}");
    (deleted, added)
}

/// The same of a table whose disabling was broken off: its edits wait in files of recovered edits while families come and go.
#[test]
fn f52_a_disabled_tables_recovered_edits_leave_nothing_to_a_new_family() {
    let name = own("grows");
    let mut waited = 0;
    let (mut stops, mut disabled) = (0, false);
    while !disabled {
        let mut stage = Stage::new(52);
        let volume = stage.world.volume.clone();
        let ended = stage.act(async |desk| {
            make(desk, TableDescriptor::new(name.clone(), ["f", "g"].map(FamilyDescriptor::new))).await;
            send(desk, name.clone(), put("row", 10, "of the old family")).await.expect("written");
            let kept = [("g", "q", 10, CellType::Put, &b"kept"[..])];
            send(desk, name.clone(), calls::mutation(MutationKind::Put, "kept", &kept)).await.expect("written");
            volume.stop_after(stops);
            let (master, name) = (desk.life.master.clone(), name.clone());
            let disable = async move {
                let id = master.disable_table(&name, &Caller::default()).await?;
                master.wait_for(id).await.map(drop)
            };
            until_stopped(desk, &volume, disable).await
        });
        disabled = ended.expect("starts");
        stage.kill();
        let volume = stage.world.volume.clone();
        let seen = stage.act(async |desk| {
            assert!(basalt_sim::check::quiet(desk).await, "what was begun is done");
            // As the server does when all that is to be opened is open.
            desk.life.logs[0]
                .write_out_inherited(&mut region::RegionDirectories { volume: &volume })
                .expect("written out");
            waited += usize::from(volume.all_files().iter().any(is_recovered_edits));
            let (master, nobody) = (&desk.life.master, Caller::default());
            let id = master.delete_family(&name, &Bytes::from_static(b"f"), &nobody).await.expect("accepted");
            master.wait_for(id).await.expect("deleted");
            let id = master.add_family(&name, FamilyDescriptor::new("f"), &nobody).await.expect("accepted");
            master.wait_for(id).await.expect("added");
            if let Ok(id) = master.enable_table(&name, &nobody).await {
                master.wait_for(id).await.expect("enabled");
            }
            let get = async |row| calls::get(&desk.life, &name, row).await.expect("read").len();
            (get("row").await, get("kept").await)
        });
        assert_eq!(seen.expect("starts"), (0, 1), "stopped after {stops} calls");
        stops += 1;
    }
    assert!(waited > 0, "no edits waited in files");
}

fn is_recovered_edits(path: &FilePath) -> bool {
    path.parent().name() == "recovered.edits" && path.name().bytes().all(|b| b.is_ascii_digit())
}

/// The clock goes back to where it was when a table was made that is deleted since; one of the same name is another table all the same.
#[test]
fn f48_a_table_made_again_at_the_same_time_is_another() {
    let name = own("again");
    let mut stage = Stage::new(48);
    let clock = stage.world.clock.clone();
    stage
        .act(async |desk| {
            let now = clock.now_ms();
            for value in ["of the first", "of the second"] {
                // Whatever else took the time of a millisecond.
                clock.set_wall_ms(now.0 + 5_000);
                make(desk, TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")])).await;
                send(desk, name.clone(), put(value, 10, value)).await.expect("written");
                if value == "of the first" {
                    let (master, nobody) = (&desk.life.master, Caller::default());
                    let id = master.disable_table(&name, &nobody).await.expect("accepted");
                    master.wait_for(id).await.expect("disabled");
                    let id = master.delete_table(&name, &nobody).await.expect("accepted");
                    master.wait_for(id).await.expect("deleted");
                }
            }
        })
        .expect("starts");
    stage.kill();
    let rows = stage.act(async |desk| {
        let get = async |row| calls::get(&desk.life, &name, row).await.expect("read").len();
        (get("of the first").await, get("of the second").await)
    });
    assert_eq!(rows.expect("starts"), (0, 1));
}

/// With `hbase.wal.hsync` off a power failure takes the end of the log, but nothing that the master has answered for: a namespace is there as
/// its tables are.
#[test]
fn f02_a_namespace_outlives_a_power_failure_on_a_relaxed_log() {
    for policy in POLICIES {
        let mut stage = Stage::relaxed(2);
        stage
            .act(async |desk| {
                let (master, nobody) = (&desk.life.master, Caller::default());
                let configuration = std::collections::BTreeMap::from([("owner".to_owned(), "somebody".to_owned())]);
                let id = master.create_namespace("apart".to_owned(), configuration, &nobody).await.expect("accepted");
                master.wait_for(id).await.expect("made");
                make(desk, TableDescriptor::new(own("apart:t"), [FamilyDescriptor::new("f")])).await;
            })
            .expect("starts");
        stage.crash(policy, 2);
        let found = stage.act(async |desk| {
            let cluster = desk.life.master.cluster();
            (cluster.namespace("apart").cloned(), cluster.exists(&own("apart:t")))
        });
        let (namespace, table) = found.expect("starts");
        assert!(namespace.is_some_and(|configuration| configuration.len() == 1) && table, "{policy:?}");
    }
}
