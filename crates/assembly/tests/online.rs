//! What a node reads again while it runs, seen from outside: `tests/inventory/online.csv` names these tests.

use crate::admin::specifier;
use crate::common::{Place, Pool, Threads};
use basalt_assembly::Parts;
use base::Config;
use bytes::Bytes;
use client::{Admin, Put};
use model::{FamilyDescriptor, RegionInfo, TableDescriptor, TableName};
use parking_lot::Mutex;
use proto::methods::Method;
use proto::pb;
use std::sync::Arc;

/// A node whose configuration is another when it is told to read it again.
struct Online {
    place: Place,
    config: Arc<Mutex<Config>>,
}

impl Online {
    async fn start(at_first: &[(&str, &str)]) -> Online {
        Online::start_with(at_first, |_| ()).await
    }

    async fn start_with(at_first: &[(&str, &str)], change: impl FnOnce(&mut Parts<Pool, Threads>)) -> Online {
        let mut config = Config::default();
        at_first.iter().for_each(|(key, value)| config.set(*key, *value));
        let kept = Arc::new(Mutex::new(config.clone()));
        let read = Arc::clone(&kept);
        let place = Place::start_with(move |parts| {
            parts.config = config;
            parts.read_config = Arc::new(move || Ok(read.lock().clone()));
            change(parts);
        })
        .await;
        Online { place, config: kept }
    }

    async fn set(&self, key: &str, value: &str) {
        self.config.lock().set(key, value);
        let request = pb::UpdateConfigurationRequest::default();
        let read = self.place.call::<pb::UpdateConfigurationResponse>(Method::AdminUpdateConfiguration, &request).await;
        read.expect("read again");
    }

    fn admin(&self) -> Admin {
        self.place.connection.admin()
    }

    fn count(&self, table: &TableName) -> usize {
        self.place.node.master().cluster().regions_of(table).filter(|node| node.is_live()).count()
    }

    async fn make(&self, name: &str, splits: &[&'static str], said: &[(&'static str, &'static str)]) -> TableName {
        let name = TableName::parse(name).expect("legal");
        let mut table = TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")]);
        for (key, value) in said {
            table.attributes.insert((*key).into(), (*value).into());
        }
        let splits: Vec<Bytes> = splits.iter().map(|key| (*key).into()).collect();
        self.admin().create_table(&table, &splits).await.expect("made");
        name
    }

    /// Four megabytes that do not pack, in a file.
    async fn fill(&self, table: &TableName) {
        let (t, rng) = (self.place.connection.table(table), base::Rng::seeded(3));
        for row in 0..40 {
            let value: Vec<u8> = (0..100_000).map(|_| rng.below(256) as u8).collect();
            t.put(&Put::new(format!("{row:02}")).add("f", "q", value).build()).await.expect("written");
        }
        self.admin().flush(table).await.expect("flushed");
    }

    /// Has the tables looked at in this order, until the last has so many regions. It has been looked at behind the others then.
    async fn normalize_until(&self, tables: &[TableName], regions_of_last: usize) {
        let last = tables.last().expect("a table");
        while self.count(last) != regions_of_last {
            self.admin().normalize(tables, None, None).await.expect("an answer");
            tokio::task::yield_now().await;
        }
    }
}

const LOOKED_AT: (&str, &str) = ("NORMALIZATION_ENABLED", "true");

/// A table that says all of it itself, which the configuration does not change.
const SAID: &[(&str, &str)] = &[
    LOOKED_AT,
    ("hbase.normalizer.split.enabled", "true"),
    ("hbase.normalizer.merge.enabled", "true"),
    ("hbase.normalizer.merge.min.region.count", "1"),
    ("hbase.normalizer.merge.min_region_age.days", "0"),
    ("hbase.normalizer.merge.min_region_size.mb", "0"),
];

/// What lets every region be merged.
const OPEN: &[(&str, &str)] =
    &[("hbase.normalizer.merge.min_region_age.days", "0"), ("hbase.normalizer.merge.min_region_size.mb", "0")];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_normalizer_merges_by_the_configuration_of_now() {
    let online = Online::start(OPEN).await;
    for (number, (key, forbids, lets)) in [
        ("hbase.normalizer.merge.enabled", "false", "true"),
        ("hbase.normalizer.merge.min.region.count", "5", "3"),
        ("hbase.normalizer.merge.min_region_age.days", "100000", "0"),
        ("hbase.normalizer.merge.min_region_size.mb", "1", "0"),
    ]
    .into_iter()
    .enumerate()
    {
        let four = &["b", "c", "d"];
        let table = online.make(&format!("t{number}"), four, &[LOOKED_AT]).await;
        let behind = online.make(&format!("behind{number}"), four, SAID).await;
        online.set(key, forbids).await;
        online.normalize_until(&[table.clone(), behind], 1).await;
        assert_eq!(online.count(&table), 4, "{key} is {forbids}");
        online.set(key, lets).await;
        online.normalize_until(&[table], 1).await;
    }
    // Two and two become one each, which a further look would merge.
    online.set("hbase.normalizer.merge.merge_request_max_number_of_regions", "2").await;
    let table = online.make("pairs", &["b", "c", "d"], &[LOOKED_AT]).await;
    while !online.admin().normalize(std::slice::from_ref(&table), None, None).await.expect("an answer") {
        tokio::task::yield_now().await;
    }
    while online.count(&table) > 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(online.count(&table), 2);
    online.place.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_normalizer_splits_by_the_configuration_of_now() {
    let online = Online::start(OPEN).await;
    for (key, forbids, lets) in [
        ("hbase.normalizer.split.enabled", "false", "true"),
        ("hbase.normalizer.plans_size_limit.mb", "1", "9223372036854775807"),
    ] {
        let last = key.rsplit('.').next().expect("a word");
        let said = [LOOKED_AT, ("NORMALIZER_TARGET_REGION_SIZE_MB", "1")];
        let large = online.make(&format!("large_{last}"), &[], &said).await;
        online.fill(&large).await;
        let behind = online.make(&format!("behind_{last}"), &["b", "c", "d"], SAID).await;
        online.set(key, forbids).await;
        online.normalize_until(&[large.clone(), behind], 1).await;
        assert_eq!(online.count(&large), 1, "{key} is {forbids}");
        online.set(key, lets).await;
        online.normalize_until(&[large], 2).await;
    }
    online.place.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_balancer_goes_by_the_configuration_of_now() {
    let online = Online::start(&[("hbase.master.balancer.rejection.buffer.enabled", "true")]).await;
    let mut rejections = Vec::new();
    for by_table in ["false", "true"] {
        online.set("hbase.master.loadbalance.bytable", by_table).await;
        let before = online.admin().balancer_rejections(250).await.expect("told").len();
        assert!(online.admin().balance(true, true).await.expect("balanced").balancer_ran);
        rejections.push(online.admin().balancer_rejections(250).await.expect("told").len() - before);
    }
    let tables = online.place.node.master().cluster().tables().count();
    assert_eq!(rejections, [1, tables], "of all tables at once, then of each");
    online.place.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_to_a_scan_is_as_large_as_the_configuration_says_now() {
    let online = Online::start(&[]).await;
    let table = online.make("t", &[], &[]).await;
    let t = online.place.connection.table(&table);
    for row in 0..10 {
        t.put(&Put::new(format!("{row}")).add("f", "q", vec![b'a'; 1000]).build()).await.expect("written");
    }
    let region = region_of(&online, &table);
    let mut rows = Vec::new();
    for most_bytes in ["104857600", "2500"] {
        online.set("hbase.server.scanner.max.result.size", most_bytes).await;
        let request = pb::ScanRequest {
            region: Some(specifier(region.encoded_name())),
            scan: Some(pb::Scan::default()),
            number_of_rows: Some(100),
            close_scanner: Some(true),
            ..pb::ScanRequest::default()
        };
        let reply: pb::ScanResponse = online.place.call(Method::ClientScan, &request).await.expect("scanned");
        rows.push(reply.cells_per_result.len());
    }
    assert_eq!(rows, [10, 3], "the row that goes beyond it is the last");
    online.place.stop().await;
}

fn region_of(online: &Online, table: &TableName) -> RegionInfo {
    let regions = online.place.node.server().regions();
    regions.iter().find(|region| region.info().table == *table).expect("online").info().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn regions_answer_the_endpoints_that_the_configuration_names_now() {
    let class = "org.apache.hadoop.hbase.coprocessor.AggregateImplementation";
    for (key, of_system_tables) in
        [("hbase.coprocessor.region.classes", true), ("hbase.coprocessor.user.region.classes", false)]
    {
        let online = Online::start(&[]).await;
        let table = online.make("t", &[], &[]).await;
        let loaded = |of: &TableName| {
            let regions = online.place.node.server().regions();
            let name = regions.iter().find(|region| region.info().table == *of).expect("online").info().name().clone();
            let loads = online.place.node.server().status().regions;
            loads.iter().any(|load| load.name == name && load.coprocessors.contains(&"AggregateImplementation"))
        };
        let both = || (loaded(&table), loaded(&TableName::meta()));
        assert_eq!(both(), (false, false));
        online.set(key, class).await;
        assert_eq!(both(), (true, of_system_tables), "{key}");
        online.set(key, "").await;
        assert_eq!(both(), (false, false));
        online.place.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_that_begins_has_the_pace_of_the_configuration_of_now() {
    let (low, high) =
        ("hbase.hstore.compaction.throughput.lower.bound", "hbase.hstore.compaction.throughput.higher.bound");
    // Without threads what waits goes on waiting.
    let online = Online::start_with(&[(low, "10000000"), (high, "20000000")], |parts| parts.stepped = true).await;
    let table = online.make("t", &["b", "c", "d"], &[]).await;
    let server = online.place.node.server();
    assert_eq!(server.compaction_bytes_per_second(), 10_000_000, "nothing waits");
    online.set(low, "12000000").await;
    assert_eq!(server.compaction_bytes_per_second(), 12_000_000);
    let t = online.place.connection.table(&table);
    for row in ["a", "b", "c", "d"] {
        t.put(&Put::new(row).add("f", "q", "value").build()).await.expect("written");
    }
    online.admin().flush(&table).await.expect("flushed");
    for region in server.regions().iter().filter(|region| region.info().table == table) {
        server.request_compaction(region.info().encoded_name(), None, true).expect("asked for");
    }
    let (small, large) = server.status().compaction_queues;
    assert_eq!(small + large, 4);
    assert_eq!(server.compaction_bytes_per_second(), 20_000_000, "four wait");
    online.set(high, "52000000").await;
    assert_eq!(server.compaction_bytes_per_second(), 52_000_000);
    online.place.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_normalizer_has_the_pace_of_the_configuration_of_now() {
    let online = Online::start(OPEN).await;
    let [one, other] = [online.make("one", &["b"], SAID).await, online.make("other", &["b"], SAID).await];
    // A megabyte a second, and a plan counts as one megabyte at least.
    online.set("hbase.normalizer.throughput.max_bytes_per_sec", "1000000").await;
    let begun = tokio::time::Instant::now();
    online.normalize_until(&[one, other], 1).await;
    let took = begun.elapsed();
    assert!(took.as_millis() >= 950, "the second plan waited until the first was paid for: {took:?}");
    online.place.stop().await;
}
