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
