//! Planted bugs are noticed: a server that is cut off from the ensemble and its master, and not from clients and HDFS, does not know that others
//! have its regions by now. Each fence stops it by itself; without one of them it does what it must not.

use super::{fullest, planted, put, row, table};
use basalt_sim::calls::{Failure, mutation};
use basalt_sim::cluster::client::Caller;
use basalt_sim::cluster::ensemble::EnsembleDefect;
use basalt_sim::cluster::hdfs::HdfsDefect;
use basalt_sim::cluster::servers::ServerDefect;
use basalt_sim::cluster::world::{Cluster, Role};
use cell::CellType;
use model::MutationKind;
use std::sync::Arc;

/// What came of it.
struct Seen {
    /// At some moment a region was open on two servers that may answer.
    twice: bool,
    /// What a client that knows only the server of before reads after another has written 2.
    read: Option<i64>,
    /// The acknowledgement of a write to the server of before, and whether the others have it.
    late_write: (Result<(), Failure>, bool),
}

fn write(cluster: &mut Cluster, client: &Arc<Caller>, row: &str, number: i64, tries: u32) -> Result<(), Failure> {
    let value = number.to_string();
    let put = mutation(MutationKind::Put, row, &[("f", "q", number, CellType::Put, value.as_bytes())]);
    let client = client.clone();
    let written = cluster.wait_for(90_000, async move { client.mutate(&table(), &put, None, true, tries).await });
    written.expect("in time").map(drop)
}

fn newest(cluster: &mut Cluster, client: &Arc<Caller>, row: &str) -> Option<i64> {
    let (client, row) = (client.clone(), row.to_owned());
    let got = cluster.wait_for(90_000, async move { client.get(&table(), &row, 200).await });
    let cells = got.expect("in time").expect("an answer");
    cells.iter().map(|(_, timestamp, _)| *timestamp).max()
}

fn cut_a_server_off(plant: impl FnOnce(&mut Cluster)) -> Seen {
    let mut cluster = planted(1, 3, 1, plant);
    let (_, before) = cluster.clients();
    put(&mut cluster, &before, 0..8);
    let victim = fullest(&cluster);
    let served: Vec<_> = {
        let serving = cluster.serving();
        let (_, _, server, _) = serving.iter().find(|(seat, ..)| *seat == victim).expect("it serves");
        server.regions().iter().map(|region| region.info().clone()).filter(|info| info.table == table()).collect()
    };
    let on_it: Vec<String> =
        (0..8).map(row).filter(|row| served.iter().any(|info| info.contains(row.as_bytes()))).collect();
    let [read_row, write_row] = [&on_it[0], &on_it[on_it.len() - 1]];
    cluster.ensemble.set_cut(&victim, true);
    for master in cluster.names(Role::Master) {
        cluster.net.cut(&victim, &master);
        cluster.net.cut(&master, &victim);
    }
    let mut twice = false;
    let moved = cluster.until(60_000, |cluster| {
        let serving = cluster.serving();
        let count = |name: &str| {
            let answers = |server: &regionserver::RegionServer, holds: bool| holds && server.region(name).is_some();
            serving.iter().filter(|(_, _, server, holds)| answers(server, *holds)).count()
        };
        twice |= served.iter().any(|info| count(info.encoded_name()) > 1);
        let elsewhere =
            |name: &str| serving.iter().any(|(seat, _, server, _)| *seat != victim && server.region(name).is_some());
        served.iter().all(|info| elsewhere(info.encoded_name()))
    });
    assert!(moved.expect("no panic"), "others have its regions");
    let (_, after) = cluster.clients();
    write(&mut cluster, &after, read_row, 2, 100).expect("written");
    let read = newest(&mut cluster, &before, read_row);
    let (_, stubborn) = (cluster.clients(), before);
    let late = write(&mut cluster, &stubborn, write_row, 3, 1);
    let is_there = newest(&mut cluster, &after, write_row) == Some(3);
    Seen { twice, read, late_write: (late, is_there) }
}

/// Whether an acknowledged write is lost.
fn loses(seen: &Seen) -> bool {
    seen.late_write.0.is_ok() && !seen.late_write.1
}

#[test]
fn a_server_that_is_cut_off_harms_nobody() {
    let seen = cut_a_server_off(|_| ());
    assert!(!seen.twice && !loses(&seen));
    assert_eq!(seen.read, Some(2));
}

/// The lease that ends a zombie's reads is ignored. Its writes are fenced all the same.
#[test]
fn a_server_that_answers_without_a_lease_is_noticed() {
    let seen = cut_a_server_off(|cluster| cluster.plant(ServerDefect::ServesWithoutLease));
    assert!(seen.twice);
    assert_eq!(seen.read, Some(1), "a stale read");
    assert!(!loses(&seen), "{:?}", seen.late_write);
}

/// No fence before the replay: the log is read while its writer goes on.
#[test]
fn logs_that_are_split_before_they_are_settled_are_noticed() {
    let seen = cut_a_server_off(|cluster| {
        cluster.plant(ServerDefect::ServesWithoutLease);
        cluster.hdfs.plant(HdfsDefect::SettlesNothing);
    });
    assert!(loses(&seen), "{:?}", seen.late_write);
}

/// Regions are given to others while their server still has them.
#[test]
fn sessions_that_end_early_are_noticed() {
    assert!(cut_a_server_off(|cluster| cluster.ensemble.plant(EnsembleDefect::EndsSessionsEarly)).twice);
}
