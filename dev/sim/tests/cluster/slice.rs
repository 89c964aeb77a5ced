//! Two region servers and a master: one is killed, and the other serves what it had.

use basalt_sim::calls::mutation;
use basalt_sim::cluster::world::{Cluster, Role, settings};
use base::Rng;
use bytes::Bytes;
use cell::CellType;
use master::Caller;
use model::{FamilyDescriptor, MutationKind, TableDescriptor, TableName};

fn table() -> TableName {
    TableName::parse("t").expect("a name")
}

fn world(seed: u64) -> Cluster {
    let mut cluster = Cluster::new(seed, 2, 1, settings(&Rng::seeded(seed)));
    if std::env::var("BASALT_SPEAK").is_ok() {
        cluster.trace.speak();
    }
    for role in [Role::Master, Role::Server] {
        cluster.names(role).iter().for_each(|name| cluster.start(name));
    }
    cluster
}

/// Runs it; answers the hash of what happened.
fn kill_one_of_two(seed: u64) -> (u64, u64) {
    let mut cluster = world(seed);
    let leads = cluster.until(60_000, |cluster| cluster.leader().is_some_and(|master| master.is_initialized()));
    assert!(leads.expect("no panic"), "no master leads: {:?}", cluster.ends);
    let master = cluster.leader().expect("it leads");
    let descriptor = TableDescriptor::new(table(), [FamilyDescriptor::new("f")]);
    let splits: Vec<Bytes> = ["b", "c", "d"].map(Bytes::from).to_vec();
    let made = cluster.wait_for(30_000, async move {
        let id = master.create_table(descriptor, &splits, &Caller::default()).await?;
        master.wait_for(id).await
    });
    made.expect("in time").expect("made");
    let (_, client) = cluster.clients();
    for n in 0..40 {
        let (client, row) = (client.clone(), format!("{}{n}", ["a", "b", "c", "d"][n % 4]));
        let put = mutation(MutationKind::Put, &row, &[("f", "q", 1, CellType::Put, b"value")]);
        let put = cluster.wait_for(20_000, async move { client.mutate(&table(), &put, None, true, 50).await });
        put.expect("in time").unwrap_or_else(|error| panic!("{row}: {error:?}"));
    }
    let serving = cluster.serving();
    let (victim, ..) = serving.iter().max_by_key(|(_, _, server, _)| server.regions().len()).expect("two").clone();
    drop(serving);
    cluster.kill(&victim, None);
    for n in 0..40 {
        let (client, row) = (client.clone(), format!("{}{n}", ["a", "b", "c", "d"][n % 4]));
        let name = row.clone();
        let got = cluster.wait_for(60_000, async move { client.get(&table(), &name, 400).await });
        let got = got.expect("in time").unwrap_or_else(|error| panic!("{row}: {error:?}"));
        assert_eq!(got, [("f:q".to_owned(), 1, b"value".to_vec())], "{row}");
    }
    println!("seed {seed}: {} ms of the world, ends {:?}", cluster.now_ms(), cluster.ends);
    let hash = cluster.trace.hash();
    drop(cluster);
    hash
}

#[test]
fn what_a_killed_server_acknowledged_is_served_by_the_other() {
    kill_one_of_two(1);
}

#[test]
fn one_seed_gives_one_run() {
    assert_eq!(kill_one_of_two(2), kill_one_of_two(2));
}
