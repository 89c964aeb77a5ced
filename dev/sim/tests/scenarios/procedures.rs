//! Procedures that are broken off, and what they must not do when they go on.

use super::common::{fault, make, own, put, regions, send, until_stopped};
use basalt_sim::calls;
use basalt_sim::stage::{Stage, check};
use basalt_sim::steps;
use basalt_sim::work::{Desk, table};
use base::Clock;
use bytes::Bytes;
use fs::FaultKind;
use fs::mem::{Fault, Op};
use master::Caller;
use model::{FamilyDescriptor, TableDescriptor};
use std::time::Duration;

async fn split(desk: &Desk, region: &str, row: &'static str) {
    let (master, row) = (&desk.life.master, Some(Bytes::from(row)));
    let id = master.split_region(region, row, &Caller::default()).await.expect("accepted");
    master.wait_for(id).await.expect("split");
}

/// A region whose edits wait for it in files cannot be opened after a crash, as there is no room to write them out. A split or merge of it
/// that was begun before must not go on without them.
#[test]
fn what_was_begun_with_a_region_that_cannot_be_opened_is_given_up() {
    for merges in [false, true] {
        let (mut stops, mut ended) = (0, false);
        while !ended {
            let mut stage = Stage::new(50);
            stage.world.config.set("basalt.recovery.memory.fraction", "0");
            let volume = stage.world.volume.clone();
            let began = stage.act(async |desk| {
                split(desk, &regions(desk, &table()).pop().expect("a region"), "71").await;
                steps::compact(desk, true);
                steps::write(desk, 24).await;
                volume.stop_after(stops);
                let names = regions(desk, &table());
                let (master, last) = (desk.life.master.clone(), names[names.len() - 2..].to_vec());
                let region = last[1].clone();
                let change = async move {
                    let id = match merges {
                        true => master.merge_regions(&last, false, &Caller::default()).await?,
                        false => master.split_region(&last[1], Some(Bytes::from("85")), &Caller::default()).await?,
                    };
                    master.wait_for(id).await.map(drop)
                };
                (until_stopped(desk, &volume, change).await, region)
            });
            let (has_ended, region) = began.expect("starts");
            ended = has_ended;
            stage.kill();
            let volume = stage.world.volume.clone();
            // There is room for a reference, and none for the edits.
            let path_contains = Some(format!("{region}/.tmp"));
            volume.inject(Fault { op: None, path_contains, nth: 1, kind: FaultKind::Full, forever: true });
            stage
                .act(async |desk| {
                    tokio::time::sleep(Duration::from_millis(500)).await;
                    volume.clear_faults();
                    let checked = check(desk).await;
                    checked.unwrap_or_else(|lost| panic!("merge {merges}, stopped after {stops} calls: {lost}"));
                })
                .expect("starts");
            stops += 1;
        }
        assert!(stops > 10, "only {stops} stops");
    }
}

/// The end of a merge cannot be recorded for a while. After a crash the merge is over all the same; without one, who wants to split the merged region
/// waits for the record, and then it is split and cleaned away as any other.
#[test]
fn a_merge_whose_end_was_not_recorded_is_not_done_twice() {
    for goes_on in [false, true] {
        let mut stage = Stage::new(51);
        let volume = stage.world.volume.clone();
        stage
            .act(async |desk| {
                steps::write(desk, 12).await;
                split(desk, &regions(desk, &table()).pop().expect("a region"), "71").await;
                steps::compact(desk, true);
                let parents = regions(desk, &table());
                let master = desk.life.master.clone();
                let names = parents[parents.len() - 2..].to_vec();
                let merging =
                    tokio::spawn(async move { master.merge_regions(&names, false, &Caller::default()).await });
                let records = |nth| fault(Op::Rename, "procedures", nth, FaultKind::Io);
                // Its beginning is recorded, its end not; then it rests before it tries again.
                (2..12).for_each(|nth| volume.inject(records(nth)));
                tokio::time::sleep(Duration::from_millis(1000)).await;
                merging.await.expect("no panic").expect("accepted");
                volume.clear_faults();
                assert_eq!(desk.life.master.unfinished_procedures(), 1, "its end is not recorded");
                steps::compact(desk, true);
                if !goes_on {
                    return;
                }
                split(desk, &regions(desk, &table()).pop().expect("the merged region"), "85").await;
                assert_eq!(desk.life.master.unfinished_procedures(), 0, "its end is recorded before another begins");
                steps::compact(desk, true);
                for _ in 0..2 {
                    desk.life.master.run_catalog_janitor().await.expect("cleaned");
                }
            })
            .expect("starts");
        stage.kill();
        stage.check().unwrap_or_else(|violation| panic!("{violation}"));
    }
}

/// What goes on after a restart comes before what clients ask of the same regions then.
#[test]
fn a_client_that_is_quick_after_a_restart_waits_for_what_was_begun() {
    let (mut stops, mut ended) = (0, false);
    while !ended {
        let mut stage = Stage::new(52);
        let volume = stage.world.volume.clone();
        let began = stage.act(async |desk| {
            split(desk, &regions(desk, &table()).pop().expect("a region"), "71").await;
            steps::write(desk, 12).await;
            steps::flush(desk, &[]);
            steps::compact(desk, true);
            volume.stop_after(stops);
            let (master, names) = (desk.life.master.clone(), regions(desk, &table()));
            let merge = async move {
                let id = master.merge_regions(&names[names.len() - 2..], false, &Caller::default()).await?;
                master.wait_for(id).await.map(drop)
            };
            until_stopped(desk, &volume, merge).await
        });
        ended = began.expect("starts");
        stage.kill();
        stage
            .act(async |desk| {
                let last = regions(desk, &table()).pop().expect("a region");
                let row = Some(Bytes::from("85"));
                if let Ok(id) = desk.life.master.split_region(&last, row, &Caller::default()).await {
                    let _ended = desk.life.master.wait_for(id).await;
                }
                check(desk).await.unwrap_or_else(|violation| panic!("stopped after {stops} calls: {violation}"));
            })
            .expect("starts");
        stops += 1;
    }
    assert!(stops > 10, "only {stops} stops");
}

/// While the clock stands still or is behind, splits count regions' ids on. A table made after that is no region of a deleted one, whose
/// edits the log still has.
#[test]
fn f48_a_table_made_again_is_no_region_of_the_one_before() {
    let name = own("again");
    let mut stage = Stage::new(48);
    let clock = stage.world.clock.clone();
    stage
        .act(async |desk| {
            let (master, nobody) = (&desk.life.master, Caller::default());
            let now = clock.now_ms();
            clock.set_wall_ms(now.0 + 5_000);
            make(desk, TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")])).await;
            clock.set_wall_ms(now.0);
            split(desk, &regions(desk, &name)[0], "m").await;
            send(desk, name.clone(), put("a", 10, "of the first")).await.expect("written");
            let id = master.disable_table(&name, &nobody).await.expect("accepted");
            master.wait_for(id).await.expect("disabled");
            let id = master.delete_table(&name, &nobody).await.expect("accepted");
            master.wait_for(id).await.expect("deleted");
            make(desk, TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")])).await;
            send(desk, name.clone(), put("b", 10, "of the second")).await.expect("written");
        })
        .expect("starts");
    stage.kill();
    let rows = stage.act(async |desk| {
        let get = async |row| calls::get(&desk.life, &name, row).await.expect("read").len();
        (get("a").await, get("b").await)
    });
    assert_eq!(rows.expect("starts"), (0, 1));
}

/// Namespaces are kept apart from hbase:meta: what was written there last counts for the next stamp, too.
#[test]
fn f48_a_namespace_is_what_it_was_told_last_though_the_clock_went_back() {
    for deletes in [false, true] {
        let mut stage = Stage::new(48);
        let clock = stage.world.clock.clone();
        let told = |text: &str| std::collections::BTreeMap::from([("told".to_owned(), text.to_owned())]);
        let start = clock.now_ms().0;
        stage
            .act(async |desk| {
                let (master, nobody) = (&desk.life.master, Caller::default());
                clock.set_wall_ms(start + 3_600_000);
                let id = master.create_namespace("apart".to_owned(), told("first"), &nobody).await;
                master.wait_for(id.expect("accepted")).await.expect("made");
                if deletes {
                    let id = master.delete_namespace("apart", &nobody).await.expect("accepted");
                    master.wait_for(id).await.expect("deleted");
                }
            })
            .expect("starts");
        clock.set_wall_ms(start + 1_000);
        stage.kill();
        stage
            .act(async |desk| {
                let (master, nobody, name) = (&desk.life.master, Caller::default(), "apart".to_owned());
                let id = match deletes {
                    true => master.create_namespace(name, told("last"), &nobody).await,
                    false => master.modify_namespace(name, told("last"), &nobody).await,
                };
                master.wait_for(id.expect("accepted")).await.expect("done");
            })
            .expect("starts");
        stage.kill();
        let found = stage.act(async |desk| desk.life.master.cluster().namespace("apart").cloned());
        assert_eq!(found.expect("starts"), Some(told("last")), "deletes {deletes}");
    }
}
