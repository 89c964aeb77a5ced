//! What a node measures of the calls that it answers.

use crate::admin::{specifier, table};
use crate::common::Place;
use base::metrics::{Number, Registry, Sample};
use client::{Action, Append, Delete, Increment, Put, ScanOptions};
use filter::{Comparator, CompareOp};
use model::mutation::ConditionTest;
use model::{Condition, FamilyDescriptor, Get, Scan, TableDescriptor, TableName, TimeRange};
use proto::methods::Method;
use proto::pb;
use std::sync::Arc;

fn number(samples: &[Sample], bean: &str, name: &str) -> Option<Number> {
    samples.iter().find(|sample| sample.bean.tail == bean && sample.name == name).map(|sample| sample.number)
}

/// Samples before and after, so that what a start itself reads and writes does not count.
struct Growth {
    before: Vec<Sample>,
    after: Vec<Sample>,
}

impl Growth {
    fn of(&self, name: &str) -> i64 {
        let of = |samples: &[Sample]| match number(samples, "RegionServer,sub=Server", name) {
            Some(Number::Long(number)) => number,
            other => panic!("{name} is {other:?}"),
        };
        of(&self.after) - of(&self.before)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_operation_is_measured_under_hbases_name() {
    let place = Place::start().await;
    let (registry, name) = (Registry::new(), TableName::parse("t").expect("legal"));
    place.node.server().register_metrics(&registry);
    let admin = place.connection.admin();
    let descriptor = TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")]);
    admin.create_table(&descriptor, &[]).await.expect("made");
    let t = place.connection.table(&name);
    // The region's place is known then.
    assert!(t.get(&Get::new("a")).await.expect("read").is_empty());

    let before = registry.read(1);
    let put = |row: &str| Put::new(row).add("f", "q", "value").build();
    t.put(&put("a")).await.expect("written");
    t.put(&put("b")).await.expect("written");
    t.delete(&Delete::new("b").build()).await.expect("written");
    t.increment(&Increment::new("n").add("f", "n", 3).build()).await.expect("counted");
    t.append(&Append::new("s").add("f", "s", "more").build()).await.expect("appended");
    t.get(&Get::new("a")).await.expect("read");
    let condition = Condition {
        row: "a".into(),
        test: ConditionTest::Value {
            family: "f".into(),
            qualifier: "q".into(),
            op: CompareOp::Equal,
            comparator: Arc::new(Comparator::Binary { value: "value".into() }),
        },
        time_range: TimeRange::ALL,
    };
    assert!(t.check_and_mutate(&condition, &[put("a")]).await.expect("checked").processed);
    t.mutate_all(&[put("c"), put("d")]).await.expect("written");
    let gets = [Action::Get(Get::new("c")), Action::Get(Get::new("d"))];
    t.batch(&gets).await.expect("read");
    let mut scanner = t.scan(Scan::default(), ScanOptions::default());
    while scanner.next().await.expect("a scan").is_some() {}
    admin.flush(&name).await.expect("flushed");
    let growth = Growth { before, after: registry.read(2) };

    let counts = ["Put", "Delete", "Increment", "Append", "Get", "CheckAndMutate", "CheckAndPut", "CheckAndDelete"];
    let counts = counts.map(|name| (name, growth.of(&format!("{name}_num_ops"))));
    let expected = [2, 1, 1, 1, 3, 1, 1, 0];
    assert!(counts.iter().map(|(_, count)| *count).eq(expected), "{counts:?}");
    assert_eq!((growth.of("PutBatch_num_ops"), growth.of("DeleteBatch_num_ops")), (1, 0));
    assert_eq!((growth.of("rpcGetRequestCount"), growth.of("rpcMutateRequestCount")), (1, 6));
    assert_eq!(growth.of("rpcMultiRequestCount"), 2);
    assert!(growth.of("ScanTime_num_ops") >= 1 && growth.of("rpcFullScanRequestCount") == 1);
    assert!(growth.of("rpcScanRequestCount") >= growth.of("ScanTime_num_ops"));
    assert!(growth.of("FlushTime_num_ops") >= 1 && growth.of("flushedMemstoreBytes") > 0);

    // And by region.
    let regions = place.node.server().regions();
    let region = regions.iter().find(|region| region.info().table == name).expect("online");
    let of_region = |metric: &str| {
        let metric = format!("Namespace_default_table_t_region_{}_metric_{metric}", region.info().encoded_name());
        number(&growth.after, "RegionServer,sub=Regions", &metric)
    };
    assert_eq!(of_region("storeFileCount"), Some(Number::Long(1)));
    assert!(matches!(of_region("readRequestCount"), Some(Number::Long(5..))), "{:?}", of_region("readRequestCount"));
    place.stop().await;
}

/// Follows: `RSRpcServices#replay`, which measures what it refuses, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_with_entries_of_a_log_for_a_read_replica_is_measured() {
    let place = Place::start().await;
    let registry = Registry::new();
    place.node.server().register_metrics(&registry);
    let info = table(&place).await;
    let key = pb::WalKey {
        encoded_region_name: info.encoded_name().to_string().into(),
        table_name: "t".into(),
        log_sequence_number: 1,
        write_time: 1,
        ..pb::WalKey::default()
    };
    let entry = pb::WalEntry { key, ..pb::WalEntry::default() };
    let request = pb::ReplicateWalEntryRequest { entry: vec![entry], ..pb::ReplicateWalEntryRequest::default() };
    let before = registry.read(1);
    let refused = place.call::<pb::ReplicateWalEntryResponse>(Method::AdminReplay, &request).await;
    let why = refused.expect_err("a primary takes none").to_string();
    assert!(why.contains("is no read replica"), "{why}");
    assert_eq!(Growth { before, after: registry.read(2) }.of("Replay_num_ops"), 1);
    place.stop().await;
}

/// A table's row that is in a file: where it comes from is told to a client that asks, and only to that one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_get_and_a_scan_went_through_is_told_to_who_asks() {
    let place = Place::start().await;
    let info = table(&place).await;
    let get = |query_metrics_enabled| pb::GetRequest {
        region: specifier(info.encoded_name()),
        get: pb::Get { row: "a".into(), query_metrics_enabled: Some(query_metrics_enabled), ..pb::Get::default() },
    };
    let got: pb::GetResponse = place.call(Method::ClientGet, &get(true)).await.expect("read");
    let bytes = got.result.and_then(|result| result.metrics).and_then(|metrics| metrics.block_bytes_scanned);
    assert!(bytes.is_some_and(|bytes| bytes > 20), "{bytes:?}");
    let got: pb::GetResponse = place.call(Method::ClientGet, &get(false)).await.expect("read");
    assert_eq!(got.result.and_then(|result| result.metrics), None);

    let scan = |clears_cache: bool| pb::ScanRequest {
        region: Some(specifier(info.encoded_name())),
        scan: Some(pb::Scan { cache_blocks: Some(!clears_cache), ..pb::Scan::default() }),
        number_of_rows: Some(10),
        track_scan_metrics: Some(true),
        close_scanner: Some(true),
        ..pb::ScanRequest::default()
    };
    let scanned: pb::ScanResponse = place.call(Method::ClientScan, &scan(false)).await.expect("scanned");
    let value = |scanned: &pb::ScanResponse, name: &str| {
        let metrics = scanned.scan_metrics.as_ref().expect("asked for");
        metrics.metrics.iter().find(|metric| metric.name() == name).map(|metric| metric.value())
    };
    assert_eq!(value(&scanned, "ROWS_SCANNED"), Some(1));
    assert!(value(&scanned, "BLOCK_BYTES_SCANNED") > Some(20));
    assert!(value(&scanned, "BYTES_READ_FROM_BLOCK_CACHE") > Some(20));
    assert_eq!((value(&scanned, "BYTES_READ_FROM_FS"), value(&scanned, "BLOCK_READ_OPS_COUNT")), (Some(0), Some(0)));
    assert_eq!((value(&scanned, "FS_READ_TIME"), value(&scanned, "BYTES_READ_FROM_MEMSTORE")), (Some(0), Some(0)));
    assert!(
        value(&scanned, "RPC_SCAN_PROCESSING_TIME").is_some() && value(&scanned, "RPC_SCAN_QUEUE_WAIT_TIME").is_some()
    );

    let clear = pb::ClearRegionBlockCacheRequest { region: vec![specifier(info.encoded_name())] };
    place.call::<pb::ClearRegionBlockCacheResponse>(Method::AdminClearRegionBlockCache, &clear).await.expect("cleared");
    let scanned: pb::ScanResponse = place.call(Method::ClientScan, &scan(true)).await.expect("scanned");
    assert!(value(&scanned, "BYTES_READ_FROM_FS") > Some(20) && value(&scanned, "BLOCK_READ_OPS_COUNT") >= Some(1));

    // Each cell in memory once, as long as a KeyValue is: HBase's SegmentScanner counts no others in a scan like this.
    let t = place.connection.table(&info.table);
    let rows = ["b", "c", "d"];
    for row in rows {
        t.put(&Put::new(row).add("f", "q", "value").build()).await.expect("written");
    }
    let scanned: pb::ScanResponse = place.call(Method::ClientScan, &scan(false)).await.expect("scanned");
    let (lengths, key, value_len) = (8, 2 + 1 + 1 + 1 + 1 + 8 + 1, 5);
    assert_eq!(value(&scanned, "ROWS_SCANNED"), Some(4));
    assert_eq!(value(&scanned, "BYTES_READ_FROM_MEMSTORE"), Some(3 * (lengths + key + value_len)));
    place.stop().await;
}

/// Follows: `HRegionServer#buildServerLoad`, `HMaster#getClusterMetrics`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_state_of_the_cluster_tells_what_servers_are_busy_with() {
    let place = Place::start().await;
    let info = table(&place).await;
    let admin = place.connection.admin();
    admin.snapshot("s", &info.table).await.expect("taken");
    let copy = TableName::parse("copy").expect("legal");
    admin.clone_snapshot("s", &copy).await.expect("cloned");
    admin.disable_table(&info.table).await.expect("disabled");
    admin.restore_snapshot("s", client::RestoreOptions::default()).await.expect("restored");
    let region = place.node.server().regions();
    let region = region.iter().find(|region| region.info().table == copy).expect("online").clone();
    place.node.server().request_compaction(region.info().encoded_name(), None, true).expect("asked for");
    let compacting = format!("Compacting {}/f in {}", region.info().encoded_name(), region.info().name_string());
    let (status, of_server) = loop {
        let status = admin.cluster_status().await.expect("told");
        let tasks = status.live_servers[0].server_load.tasks.clone();
        let is_done = |task: &pb::ServerTask| task.description == compacting && task.completion_time() < u64::MAX;
        if tasks.iter().any(is_done) {
            break (status, tasks);
        }
        tokio::task::yield_now().await;
    };
    let said = |tasks: &[pb::ServerTask], description: &str| -> Vec<(String, i32)> {
        let of = tasks.iter().filter(|task| task.description == description);
        of.map(|task| (task.status.clone(), task.state)).collect()
    };
    let complete = pb::server_task::State::Complete as i32;
    let flush = said(&of_server, &format!("Flushing {}", info.name_string()));
    assert!(flush[0].0.starts_with("Flush successful flush result:FLUSHED_NO_COMPACTION_NEEDED, "), "{flush:?}");
    assert_eq!(flush[0].1, complete);
    assert_eq!(said(&of_server, &compacting), [("Compaction complete".to_owned(), complete)]);
    for (description, ended) in [
        ("Taking FLUSH snapshot on table: t", "Snapshot s  completed"),
        ("Cloning  snapshot 's' to table copy", "Clone snapshot 's' completed!"),
        ("Restoring  snapshot 's' to table t", "Restore snapshot 's'!"),
    ] {
        assert_eq!(said(&status.master_tasks, description), [(ended.to_owned(), complete)], "{description}");
    }
    let only_servers = admin.cluster_status_of(&[pb::Option::ServersName]).await.expect("told");
    assert!(only_servers.master_tasks.is_empty() && only_servers.live_servers.is_empty());
    place.stop().await;
}

/// `hbase.regionserver.user.metrics.enabled`. Follows: `MetricsUserAggregateImpl`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_users_read_and_write_is_told_where_it_is_counted() {
    for is_counting in [false, true] {
        let place = Place::start_with(|parts| {
            parts.config.set("hbase.regionserver.user.metrics.enabled", is_counting.to_string());
        })
        .await;
        let info = table(&place).await;
        let of = async |user: &str| {
            let status = place.connection.admin().cluster_status().await.expect("told");
            let loads = status.live_servers[0].server_load.user_loads.clone();
            assert!(is_counting || loads.is_empty(), "{loads:?}");
            let load = loads.into_iter().find(|load| load.user_name == user)?;
            let [client] = &load.client_metrics[..] else { panic!("{load:?}") };
            assert_eq!(client.host_name, "localhost");
            Some([client.read_requests_count(), client.write_requests_count(), client.filtered_requests_count()])
        };
        assert_eq!(of("somebody").await, None);
        let specifier = specifier(info.encoded_name());
        let get = |filter| {
            let get = pb::Get { row: "a".into(), filter, ..pb::Get::default() };
            pb::GetRequest { region: specifier.clone(), get }
        };
        for _ in 0..3 {
            let _got: pb::GetResponse = place.call(Method::ClientGet, &get(None)).await.expect("read");
        }
        let put = convert::to_proto::mutation(&Put::new("b").add("f", "q", "value").build());
        let mutate = pb::MutateRequest { region: specifier.clone(), mutation: put, ..pb::MutateRequest::default() };
        let _put: pb::MutateResponse = place.call(Method::ClientMutate, &mutate).await.expect("written");
        assert_eq!(of("somebody").await, is_counting.then_some([3, 1, 0]));
        // From a file, on a lane.
        let clear = pb::ClearRegionBlockCacheRequest { region: vec![specifier.clone()] };
        let method = Method::AdminClearRegionBlockCache;
        place.call::<pb::ClearRegionBlockCacheResponse>(method, &clear).await.expect("cleared");
        let _got: pb::GetResponse = place.call(Method::ClientGet, &get(None)).await.expect("read");
        assert_eq!(of("somebody").await, is_counting.then_some([4, 1, 0]));

        let (registry, users) = (Registry::new(), "RegionServer,sub=Users");
        place.node.server().register_metrics(&registry);
        let samples = registry.read(1);
        assert_eq!(number(&samples, users, "numUsers").is_some(), is_counting);
        let reads = number(&samples, users, "user_somebody_metric_readRequestCount");
        assert_eq!(reads, is_counting.then_some(Number::Long(4)));
        let count = |operation: &str| number(&samples, users, &format!("User_somebody_metric_{operation}_num_ops"));
        for (operation, times) in [("get", 4), ("put", 1), ("delete", 0), ("scanTime", 0), ("replay", 0)] {
            assert_eq!(count(operation), is_counting.then_some(Number::Long(times)), "{operation}");
        }
        let scanned = number(&samples, users, "User_somebody_metric_blockBytesScannedCount");
        assert_eq!(
            scanned.is_some_and(|bytes| bytes != Number::Long(0)),
            is_counting,
            "one get was of a file: {scanned:?}"
        );
        place.stop().await;
    }
}
