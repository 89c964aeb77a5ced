//! A master takes over from one that died in the middle of something.

use super::{cluster, expect, leads, put};
use basalt_sim::cluster::world::Role;
use fs::Volume;

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
