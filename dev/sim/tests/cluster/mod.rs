//! Scenarios of a cluster in one deterministic world.

mod defects;
mod doubled;
mod models;
mod reshaping;
mod seeds;
mod slice;
mod takeover;

use basalt_sim::calls::mutation;
use basalt_sim::cluster::client::Caller;
use basalt_sim::cluster::world::{Cluster, Role, settings};
use base::Rng;
use bytes::Bytes;
use cell::CellType;
use model::{FamilyDescriptor, MutationKind, TableDescriptor, TableName};
use std::sync::Arc;

fn table() -> TableName {
    TableName::parse("t").expect("a name")
}

fn row(n: usize) -> String {
    format!("{}{n}", ["a", "b", "c", "d"][n % 4])
}

/// A cluster that leads and serves a table of four regions.
fn cluster(seed: u64, servers: usize, masters: usize) -> Cluster {
    planted(seed, servers, masters, |_| ())
}

/// The same with bugs in it.
fn planted(seed: u64, servers: usize, masters: usize, plant: impl FnOnce(&mut Cluster)) -> Cluster {
    let mut cluster = Cluster::new(seed, servers, masters, settings(&Rng::seeded(seed)));
    plant(&mut cluster);
    if std::env::var("BASALT_SPEAK").is_ok() {
        cluster.trace.speak();
        basalt_sim::spoken::listen();
    }
    for role in [Role::Master, Role::Server] {
        cluster.names(role).iter().for_each(|name| cluster.start(name));
    }
    assert!(leads(&mut cluster), "no master leads: {:?}", cluster.ends);
    assert!(cluster.until(20_000, |cluster| cluster.serving().len() == servers).expect("no panic"));
    let master = cluster.leader().expect("it leads");
    let descriptor = TableDescriptor::new(table(), [FamilyDescriptor::new("f")]);
    let splits: Vec<Bytes> = ["b", "c", "d"].map(Bytes::from).to_vec();
    let made = cluster.wait_for(30_000, async move {
        let id = master.create_table(descriptor, &splits, &master::Caller::default()).await?;
        master.wait_for(id).await
    });
    made.expect("in time").expect("made");
    cluster
}

fn leads(cluster: &mut Cluster) -> bool {
    let leads = |cluster: &mut Cluster| cluster.leader().is_some_and(|master| master.is_initialized());
    cluster.until(60_000, leads).expect("no panic")
}

fn put(cluster: &mut Cluster, client: &Arc<Caller>, rows: std::ops::Range<usize>) {
    for row in rows.map(row) {
        let client = client.clone();
        let put = mutation(MutationKind::Put, &row, &[("f", "q", 1, CellType::Put, b"value")]);
        let put = cluster.wait_for(20_000, async move { client.mutate(&table(), &put, None, true, 50).await });
        put.expect("in time").unwrap_or_else(|error| panic!("{row}: {error:?}"));
    }
}

fn expect(cluster: &mut Cluster, client: &Arc<Caller>, rows: std::ops::Range<usize>) {
    for row in rows.map(row) {
        let (client, name) = (client.clone(), row.clone());
        let got = cluster.wait_for(60_000, async move { client.get(&table(), &name, 400).await });
        let got = got.expect("in time").unwrap_or_else(|error| panic!("{row}: {error:?}"));
        assert_eq!(got, [("f:q".to_owned(), 1, b"value".to_vec())], "{row}");
    }
}

/// The seat of the region server with the most regions.
fn fullest(cluster: &Cluster) -> String {
    let serving = cluster.serving();
    let (seat, ..) = serving.iter().max_by_key(|(_, _, server, _)| server.regions().len()).expect("one serves");
    seat.clone()
}
