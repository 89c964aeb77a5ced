//! Splits and merges that come together.

use super::{cluster, expect, put, table};
use bytes::Bytes;
use master::Caller;
use proto::methods::Method;
use proto::pb;

#[test]
fn a_merge_that_waited_for_a_split_of_one_of_its_regions_does_not_open_that_region_again() {
    let mut cluster = cluster(1, 2, 1);
    let (_, client) = cluster.clients();
    put(&mut cluster, &client, 0..40);
    let master = cluster.leader().expect("it leads");
    let regions: Vec<_> = master.cluster().regions_of(&table()).map(|node| node.info.clone()).collect();
    let parent = regions[1].clone();
    let (split, merge) = (master.clone(), master.clone());
    let names = [&regions[0], &regions[1]].map(|info| info.encoded_name().to_string());
    let name = parent.encoded_name().clone();
    let both = cluster.wait_for(60_000, async move {
        // The split has the region when the merge comes, and keeps it until it is done.
        let caller = Caller::default();
        let splitting = split.split_region(&name, Some(Bytes::from("b5")), &caller);
        let asked = tokio::spawn(async move { merge.merge_regions(&names, false, &Caller::default()).await });
        let split = split.wait_for(splitting.await?).await;
        let merged = match asked.await.expect("no panic") {
            Ok(id) => master.wait_for(id).await,
            Err(error) => Err(error),
        };
        assert!(merged.is_err(), "one of its regions is gone");
        split
    });
    both.expect("in time").expect("split");
    let open = |name: &str| cluster.serving().iter().any(|(_, _, server, _)| server.region(name).is_some());
    assert!(!open(parent.encoded_name()), "a split parent serves beside its daughters");
    expect(&mut cluster, &client, 0..40);
}

#[test]
fn a_move_that_waited_for_a_merge_does_not_bring_the_region_back_to_meta() {
    let mut cluster = cluster(3, 2, 1);
    let (handle, client) = cluster.clients();
    put(&mut cluster, &client, 0..40);
    let master = cluster.leader().expect("it leads");
    let regions: Vec<_> = master.cluster().regions_of(&table()).map(|node| node.info.clone()).collect();
    let names = [&regions[0], &regions[1]].map(|info| info.encoded_name().to_string());
    let gone = regions[1].encoded_name().clone();
    let merging = master.clone();
    let (merge, moved) = cluster
        .wait_for(60_000, {
            let (client, gone) = (client.clone(), gone.clone());
            async move {
                // It has the table for a while; both wait for it, the merge first.
                let snapshot = pb::SnapshotDescription {
                    name: "s".to_owned(),
                    table: Some(table().to_string()),
                    ..Default::default()
                };
                merging.take_snapshot(snapshot, &Caller::default()).await.expect("it begins");
                let master = merging.clone();
                let merge = tokio::spawn(async move {
                    let id = master.merge_regions(&names, false, &Caller::default()).await?;
                    master.wait_for(id).await
                });
                tokio::task::yield_now().await;
                let region = pb::RegionSpecifier {
                    r#type: pb::region_specifier::RegionSpecifierType::EncodedRegionName as i32,
                    value: Bytes::copy_from_slice(gone.as_bytes()),
                };
                let request = pb::MoveRegionRequest { region, dest_server_name: None };
                let asked = handle.spawn(async move { client.ask_master(Method::MasterMoveRegion, &request).await });
                (merge.await.expect("no panic"), asked.await.expect("no panic"))
            }
        })
        .expect("in time");
    merge.expect("merged");
    let reader = client.clone();
    let meta = cluster.wait_for(30_000, async move { reader.meta().await }).expect("in time").expect("read");
    let row = meta.regions.iter().find(|row| row.info.encoded_name() == &gone);
    assert!(row.is_none(), "{row:?}");
    assert!(moved.is_err(), "there is no such region any more: {moved:?}");
    expect(&mut cluster, &client, 0..40);
}
