//! A node that is started and stopped.

use crate::common::parts;
use basalt_assembly::Node;
use fs::MemVolume;
use master::Caller;
use model::{FamilyDescriptor, TableDescriptor, TableName};
use std::sync::{Arc, Weak};
use std::time::Duration;

fn table() -> TableDescriptor {
    TableDescriptor::new(TableName::parse("t").expect("legal"), [FamilyDescriptor::new("f")])
}

/// Master, region server, logs, regions and the volume itself: nothing keeps itself alive over a stop, and what was made is there at the
/// next start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_stopped_and_dropped_is_gone() {
    let volume = Arc::new(MemVolume::new());
    for start_code in 1..=2 {
        let node = Node::start(parts(&volume, start_code)).await.expect("starts");
        node.recovered().await;
        if start_code == 1 {
            let id = node.master().create_table(table(), &[], &Caller::default()).await.expect("accepted");
            node.master().wait_for(id).await.expect("made");
        }
        let regions: Vec<_> = node.server().regions().iter().map(Arc::downgrade).collect();
        assert_eq!(regions.len(), 3, "of hbase:meta, of hbase:namespace, and the table's own");
        let master = Arc::downgrade(node.master());
        let server = Arc::downgrade(node.server());
        let logs = node.logs().each_ref().map(Arc::downgrade);
        let stop = move || {
            let left_to_log = node.stop(None).expect("stops");
            assert_eq!(left_to_log, 0, "every region was flushed");
        };
        tokio::task::spawn_blocking(stop).await.expect("no panic");
        let what_is_alive = || {
            let logs = logs.iter().map(|log| ("log", Weak::strong_count(log)));
            let regions = regions.iter().map(|region| ("region", Weak::strong_count(region)));
            let others = [("master", Weak::strong_count(&master)), ("region server", Weak::strong_count(&server))];
            let counts =
                others.into_iter().chain(logs).chain(regions).chain([("volume", Arc::strong_count(&volume) - 1)]);
            counts.filter(|(_, count)| *count > 0).collect::<Vec<_>>()
        };
        // The master's tasks end when they next run.
        let gone = async {
            while !what_is_alive().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(10), gone).await;
        assert!(waited.is_ok(), "still alive: {:?}", what_is_alive());
    }
}
