//! A master takes over from one that died in the middle of something.

use super::{cluster, expect, leads, put};
use basalt_sim::cluster::world::{Cluster, Role};
use fs::Volume;
use model::region_info::META_ENCODED_NAME;

#[test]
fn a_crash_whose_logs_were_split_by_the_master_before_is_ended_by_the_next() {
    let mut cluster = cluster(1, 3, 2);
    let (_, client) = cluster.clients();
    put(&mut cluster, &client, 0..40);
    let victim = super::fullest(&cluster);
    let name = cluster.status(&victim).name.lock().clone().expect("it serves");
    let splitting = rootdir::server_wals_dir(&format!("{name}-splitting"));
    cluster.kill(&victim, None);
    let hdfs = cluster.hdfs.view();
    let is_there = |hdfs: &dyn Volume| hdfs.exists(&splitting).expect("looked");
    assert!(cluster.until(30_000, |_| is_there(&hdfs)).expect("no panic"), "the logs are split");
    assert!(cluster.until(30_000, |_| !is_there(&hdfs)).expect("no panic"), "they are");
    // Its regions are not open elsewhere yet.
    let active = cluster.names(Role::Master).into_iter().find(|name| cluster.status(name).master.lock().is_some());
    cluster.kill(&active.expect("one leads"), None);
    assert!(leads(&mut cluster), "the next master does not come to its end");
    expect(&mut cluster, &client, 0..40);
}

#[test]
fn a_snapshot_taken_while_a_server_is_being_recovered_does_not_keep_its_regions_closed() {
    let mut cluster = cluster(2, 3, 1);
    let (_, client) = cluster.clients();
    put(&mut cluster, &client, 0..40);
    let victim = super::fullest(&cluster);
    let name = cluster.status(&victim).name.lock().clone().expect("it serves");
    let splitting = rootdir::server_wals_dir(&format!("{name}-splitting"));
    cluster.kill(&victim, None);
    let hdfs = cluster.hdfs.view();
    let splits = cluster.until(30_000, |_| hdfs.exists(&splitting).expect("looked"));
    assert!(splits.expect("no panic"), "the logs are split");
    let master = cluster.leader().expect("it leads");
    let taken = cluster.wait_for(30_000, async move {
        let snapshot = proto::pb::SnapshotDescription {
            name: "s".to_owned(),
            table: Some(super::table().to_string()),
            ..Default::default()
        };
        let id = master.take_snapshot(snapshot, &master::Caller::default()).await?;
        master.wait_for(id).await
    });
    let why = taken.expect("it comes to its end").expect_err("a region is not open").to_string();
    assert!(why.contains("is not online"), "{why}");
    expect(&mut cluster, &client, 0..40);
}

#[test]
fn a_server_with_meta_that_dies_before_a_master_takes_over_is_recovered_once() {
    for seed in 1..4 {
        let mut cluster = cluster(seed, 2, 2);
        let (_, client) = cluster.clients();
        put(&mut cluster, &client, 0..40);
        let has_meta = |server: &regionserver::RegionServer| server.region(META_ENCODED_NAME).is_some();
        let serving = cluster.serving();
        let meta = serving.iter().find(|(_, _, server, _)| has_meta(server)).expect("one has it").0.clone();
        drop(serving);
        let node = cluster.ensemble.tree().get("/hbase/master").expect("one is active");
        let active = cluster.names(Role::Master).into_iter().find(|name| cluster.status(name).master.lock().is_some());
        cluster.kill(&active.expect("one leads"), None);
        let until_ms = cluster.now_ms() + 3_000;
        cluster.until(3_000, |cluster| cluster.now_ms() >= until_ms).expect("no panic");
        // Its node is still there when the next master looks.
        cluster.kill(&meta, None);
        let tree = cluster.ensemble.tree().clone();
        let another = |tree: &coordination::TreeHandle| tree.get("/hbase/master").is_ok_and(|now| now != node);
        assert!(cluster.until(30_000, |_| another(&tree)).expect("no panic"), "another is active");
        // The node goes while the master waits for the server's answer; one server is left.
        let mut most = 0;
        let leads = cluster.until(60_000, |cluster| {
            most = most.max(cluster.serving().iter().filter(|(_, _, server, _)| has_meta(server)).count());
            cluster.leader().is_some_and(|master| master.is_initialized())
        });
        assert!(most < 2, "seed {seed}: hbase:meta is open twice");
        assert!(leads.expect("no panic"), "seed {seed}: the next master does not come to its end");
        expect(&mut cluster, &client, 0..40);
    }
}

/// Seed 102 of `--servers 3 --masters 2 --episodes 1 --actions 40` once: the next master took the earlier life for one that lives, gave it
/// regions, and its death waited for the lock of the recovery that waited for it.
#[test]
fn a_master_that_finds_the_node_of_an_earlier_life_does_not_wait_for_it() {
    for seed in 1..4 {
        let mut cluster = cluster(seed, 3, 2);
        let (_, client) = cluster.clients();
        put(&mut cluster, &client, 0..40);
        let victim = super::fullest(&cluster);
        let before = cluster.status(&victim).name.lock().clone().expect("it serves");
        cluster.kill(&victim, Some(300));
        let (hdfs, splitting) = (cluster.hdfs.view(), rootdir::server_wals_dir(&format!("{before}-splitting")));
        let is_recovered = |_: &mut Cluster| hdfs.exists(&splitting).expect("looked");
        assert!(cluster.until(8_000, is_recovered).expect("no panic"), "the master knows of it from its next life");
        // One that was let in does not ask the next master.
        let serves = cluster.until(5_000, |cluster| cluster.serving().iter().any(|(seat, ..)| *seat == victim));
        assert!(serves.expect("no panic") && hdfs.exists(&splitting).expect("looked"), "its logs are not split yet");
        let node = format!("/hbase/rs/{before}");
        assert!(cluster.ensemble.tree().get(&node).is_ok(), "its session has not run out");
        let active = cluster.names(Role::Master).into_iter().find(|name| cluster.status(name).master.lock().is_some());
        let active = active.expect("one leads");
        // Its own next life finds its node in the way and removes it: that is sooner than the session's end.
        cluster.kill(&active, Some(300));
        assert!(leads(&mut cluster), "seed {seed}: the next master does not come to its end");
        expect(&mut cluster, &client, 0..40);
    }
}
