//! Two region servers and a master: one is killed, and the other serves what it had.

use super::{cluster, expect, fullest, put};

/// Runs it; answers the hash of what happened.
fn kill_one_of_two(seed: u64) -> (u64, u64) {
    let mut cluster = cluster(seed, 2, 1);
    let (_, client) = cluster.clients();
    put(&mut cluster, &client, 0..40);
    let victim = fullest(&cluster);
    cluster.kill(&victim, None);
    expect(&mut cluster, &client, 0..40);
    cluster.trace.hash()
}

#[test]
fn what_a_killed_server_acknowledged_is_served_by_the_other() {
    kill_one_of_two(1);
}

#[test]
fn one_seed_gives_one_run() {
    assert_eq!(kill_one_of_two(2), kill_one_of_two(2));
}
