//! Orders of a master and reports of region servers that come twice, the second time when what they ask for may long have been undone.

use super::{cluster, expect, put, table};
use basalt_sim::cluster::world::Cluster;
use bytes::Bytes;
use convert::to_proto;
use master::Caller;
use model::ServerName;
use proto::methods::Method;
use proto::pb;
use std::collections::BTreeMap;

/// By encoded name: the seats where regions of the table are open.
fn open(cluster: &Cluster) -> BTreeMap<String, Vec<String>> {
    let mut open: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (seat, _, server, _) in cluster.serving() {
        for region in server.regions().iter().filter(|region| region.info().table == table()) {
            open.entry(region.info().encoded_name().to_string()).or_default().push(seat.clone());
        }
    }
    open
}

#[test]
fn orders_and_reports_that_come_twice_open_no_region_twice_and_lose_nothing() {
    let mut cluster = cluster(5, 3, 1);
    let (_, client) = cluster.clients();
    put(&mut cluster, &client, 0..40);
    cluster.net.double(1);
    let master = cluster.leader().expect("it leads");
    let regions: Vec<_> = master.cluster().regions_of(&table()).map(|node| node.info.clone()).collect();
    let servers: Vec<ServerName> = cluster.serving().into_iter().map(|(_, name, ..)| name).collect();
    let moves = 9;
    for turn in 0..moves {
        let (client, to) = (client.clone(), to_proto::server_name(&servers[turn % servers.len()]));
        let region = pb::RegionSpecifier {
            r#type: pb::region_specifier::RegionSpecifierType::EncodedRegionName as i32,
            value: Bytes::copy_from_slice(regions[turn % 2].encoded_name().as_bytes()),
        };
        let request = pb::MoveRegionRequest { region, dest_server_name: Some(to) };
        let moved =
            cluster.wait_for(30_000, async move { client.ask_master(Method::MasterMoveRegion, &request).await });
        moved.expect("in time").expect("asked");
        let is_done = cluster.until(30_000, |_| master.unfinished_procedures() == 0);
        assert!(is_done.expect("no panic"), "move {turn} does not end");
    }
    // The last of them still come.
    let mut twice = None;
    cluster
        .until(6_000, |cluster| {
            let found = open(cluster).into_iter().find(|(_, seats)| seats.len() > 1);
            twice = twice.take().or(found);
            false
        })
        .expect("no panic");
    assert_eq!(twice, None);
    assert!(
        cluster.net.doubled() >= 2 * moves as u64,
        "an order to close and one to open each: {}",
        cluster.net.doubled()
    );
    assert!(open(&cluster).len() == regions.len() && cluster.ends.is_empty(), "{:?}", cluster.ends);
    // What is written lies where it is read.
    let split = regions[0].encoded_name().clone();
    let parted = cluster.wait_for(30_000, async move {
        let id = master.split_region(&split, Some(Bytes::from("a5")), &Caller::default()).await?;
        master.wait_for(id).await
    });
    parted.expect("in time").expect("split");
    expect(&mut cluster, &client, 0..40);
}
