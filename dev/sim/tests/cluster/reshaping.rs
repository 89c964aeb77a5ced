//! Splits and merges that come together.

use super::{cluster, expect, put, table};
use bytes::Bytes;
use master::Caller;

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
