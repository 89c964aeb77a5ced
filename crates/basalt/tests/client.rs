//! The native client against a server process: what it reads, writes, administers, and how it outlives trouble.
//! `BASALT_TEST_ZOOKEEPER=host:port` makes them work on that cluster instead, Apache HBase for instance (all but the
//! test that kills its server); their tables must not be there before.

mod admin;
mod replicas;

use crate::common::{Scratch, Server};
use bytes::Bytes;
use client::{
    Action, Append, BufferedMutatorOptions, CheckAndMutate, Connection, Delete, Error, Increment, Options, Put,
    ScanOptions, Table,
};
use model::mutation::ConditionTest;
use model::{Condition, FamilyDescriptor, Get, Scan, TableDescriptor, TableName, TimeRange};
use std::sync::Arc;
use std::time::Duration;

/// A server of one's own, or the one that was named.
struct Place {
    _server: Option<Server>,
    _scratch: Scratch,
    zookeeper: String,
}

impl Place {
    fn new(name: &str) -> Place {
        let scratch = Scratch::new(name);
        match std::env::var("BASALT_TEST_ZOOKEEPER") {
            Ok(zookeeper) => Place { _server: None, _scratch: scratch, zookeeper },
            Err(_) => {
                let server = Server::start(&scratch.0, &[]);
                let zookeeper = format!("127.0.0.1:{}", server.zk_port);
                Place { _server: Some(server), _scratch: scratch, zookeeper }
            }
        }
    }

    fn connect(&self) -> Connection {
        connect(&self.zookeeper)
    }
}

fn connect(zookeeper: &str) -> Connection {
    Connection::open(Options { pause: Duration::from_millis(5), ..Options::zookeeper(zookeeper) })
}

async fn table(connection: &Connection, name: &str, splits: &[&'static str]) -> Table {
    let name = TableName::parse(name).expect("a legal name");
    let descriptor = TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f"), FamilyDescriptor::new("g")]);
    let splits: Vec<Bytes> = splits.iter().map(|s| Bytes::from_static(s.as_bytes())).collect();
    connection.admin().create_table(&descriptor, &splits).await.expect("the table is made");
    connection.table(&name)
}

fn equals(row: &str, value: &str) -> Condition {
    Condition {
        row: Bytes::copy_from_slice(row.as_bytes()),
        test: ConditionTest::Value {
            family: Bytes::from_static(b"f"),
            qualifier: Bytes::from_static(b"q"),
            op: filter::CompareOp::Equal,
            comparator: Arc::new(filter::Comparator::Binary { value: Bytes::copy_from_slice(value.as_bytes()) }),
        },
        time_range: TimeRange::ALL,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_written_read_counted_checked_and_deleted() {
    let place = Place::new("client-rows");
    let connection = place.connect();
    let t = table(&connection, "client_rows", &["m"]).await;
    assert!(!connection.cluster_id().await.expect("an id").is_empty());

    t.put(&Put::new("a").add("f", "q", "1").add("g", "q", "2").build()).await.expect("put");
    let row = t.get(&Get::new("a")).await.expect("get");
    assert_eq!(
        (row.value(b"f", b"q"), row.value(b"g", b"q"), row.row()),
        (Some(&b"1"[..]), Some(&b"2"[..]), &b"a"[..])
    );
    assert!(t.exists(&Get::new("a")).await.expect("exists") && !t.exists(&Get::new("b")).await.expect("exists"));
    assert!(t.get(&Get::new("nobody")).await.expect("get").is_empty());

    let counted = t.increment(&Increment::new("z").add("f", "n", 5).build()).await.expect("increment");
    assert_eq!(counted.value(b"f", b"n"), Some(&5i64.to_be_bytes()[..]));
    let appended = t.append(&Append::new("a").add("f", "q", "1").build()).await.expect("append");
    assert_eq!(appended.value(b"f", b"q"), Some(&b"11"[..]));

    let put = Put::new("a").add("f", "q", "3").build();
    assert!(!t.check_and_mutate(&equals("a", "1"), std::slice::from_ref(&put)).await.expect("check").processed);
    assert!(t.check_and_mutate(&equals("a", "11"), std::slice::from_ref(&put)).await.expect("check").processed);
    let both = [put, Delete::new("a").columns("g", "q").build()];
    assert!(t.check_and_mutate(&equals("a", "3"), &both).await.expect("check").processed);
    assert_eq!(t.get(&Get::new("a")).await.expect("get").len(), 1);
    t.mutate_row(&[Put::new("a").add("g", "x", "y").build(), Delete::new("a").family("f").build()]).await.expect("row");
    assert_eq!(t.get(&Get::new("a")).await.expect("get").value(b"g", b"x"), Some(&b"y"[..]));
    t.delete(&Delete::new("a").build()).await.expect("delete");
    assert!(!t.exists(&Get::new("a")).await.expect("exists"));

    let region_server = connection.admin().servers().await.expect("servers").remove(0).address();
    let by_rpc = Connection::open(Options::rpc(&region_server));
    assert_eq!(by_rpc.cluster_id().await.expect("an id"), connection.cluster_id().await.expect("an id"));
    assert!(by_rpc.table(t.name()).exists(&Get::new("z")).await.expect("exists"));
    assert!(by_rpc.admin().table_exists(t.name()).await.expect("the master is found"));
    let mut buffered = t.buffered(1000);
    for i in 0..50 {
        buffered.mutate(Put::new(format!("buffered{i}")).add("f", "q", [0; 100]).build()).await.expect("taken");
    }
    buffered.flush().await.expect("flushed");
    assert!(t.exists(&Get::new("buffered49")).await.expect("exists"));
    buffered.mutate(Put::new("a").add("nofamily", "q", "1").build()).await.expect("taken");
    assert_eq!(buffered.flush().await.expect_err("refused").short_class(), Some("NoSuchColumnFamilyException"));

    let wrong = t.put(&Put::new("a").add("nofamily", "q", "1").build()).await.expect_err("no such family");
    assert_eq!(wrong.short_class(), Some("NoSuchColumnFamilyException"));
    let nowhere = connection.table(&TableName::parse("nowhere").expect("legal"));
    assert!(matches!(nowhere.get(&Get::new("a")).await, Err(Error::TableNotFound(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_keep_their_order_and_fail_one_by_one() {
    let place = Place::new("client-batch");
    let connection = place.connect();
    let t = table(&connection, "client_batch", &["row3", "row6"]).await;
    let puts: Vec<_> = (0..1000).map(|i| Put::new(format!("row{i}")).add("f", "q", format!("{i}")).build()).collect();
    t.mutate_all(&puts).await.expect("all written");
    let gets: Vec<_> = (0..1000).rev().map(|i| Get::new(format!("row{i}"))).collect();
    let rows = t.get_all(&gets).await.expect("all read");
    for (i, row) in (0..1000).rev().zip(&rows) {
        assert_eq!(row.value(b"f", b"q"), Some(format!("{i}").as_bytes()));
    }
    let mixed = [
        Action::Get(Get::new("row7")),
        Action::Mutate(Put::new("row1").add("nofamily", "q", "1").build()),
        Action::Mutate(Increment::new("count").add("f", "n", 2).build()),
        Action::Check { condition: equals("row5", "5"), mutations: vec![Delete::new("row5").build()] },
        Action::Check { condition: equals("row5", "5"), mutations: vec![Delete::new("row5").build()] },
        Action::MutateRow(vec![
            Put::new("row2").add("f", "q", "two").build(),
            Put::new("row2").add("g", "q", "2").build(),
        ]),
        Action::Get(Get { existence_only: true, ..Get::new("row8") }),
    ];
    let outcomes = t.batch(&mixed).await.expect("a batch");
    assert_eq!(outcomes[0].as_ref().expect("got").value(b"f", b"q"), Some(&b"7"[..]));
    assert_eq!(outcomes[1].as_ref().expect_err("refused").short_class(), Some("NoSuchColumnFamilyException"));
    assert_eq!(outcomes[2].as_ref().expect("counted").value(b"f", b"n"), Some(&2i64.to_be_bytes()[..]));
    assert!(outcomes[3].as_ref().expect("checked").exists() != outcomes[4].as_ref().expect("checked").exists());
    assert!(outcomes[5].is_ok() && outcomes[6].as_ref().expect("asked").exists());
    assert_eq!(t.get(&Get::new("row2")).await.expect("get").len(), 2);
}

async fn rows_of(mut scanner: client::Scanner) -> Vec<String> {
    let mut rows = Vec::new();
    while let Some(row) = scanner.next().await.expect("a scan") {
        rows.push(String::from_utf8(row.row().to_vec()).expect("text"));
    }
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scans_cross_regions_both_ways_and_end_where_they_are_told() {
    let place = Place::new("client-scan");
    let connection = place.connect();
    let t = table(&connection, "client_scan", &["r25", "r50", "r75"]).await;
    let names: Vec<String> = (0..100).map(|i| format!("r{i:02}")).collect();
    let puts: Vec<_> =
        names.iter().map(|n| Put::new(n).add("f", "a", [7; 500]).add("g", "b", [8; 500]).build()).collect();
    t.mutate_all(&puts).await.expect("all written");
    for (caching, max_result_size, prefetch) in
        [(7, 2 << 20, false), (1000, 600, true), (1000, 2 << 20, true), (1, 1, false)]
    {
        let options = ScanOptions { caching, max_result_size, prefetch, ..ScanOptions::default() };
        assert_eq!(rows_of(t.scan(Scan::default(), options.clone())).await, names, "{options:?}");
        let reversed = Scan { reversed: true, ..Scan::default() };
        let backwards: Vec<String> = names.iter().rev().cloned().collect();
        assert_eq!(rows_of(t.scan(reversed, options.clone())).await, backwards, "{options:?}");
        let part = Scan { start_row: "r20".into(), stop_row: "r50".into(), include_stop_row: true, ..Scan::default() };
        assert_eq!(rows_of(t.scan(part.clone(), options.clone())).await, names[20..=50], "{options:?}");
        let part = Scan { include_start_row: false, include_stop_row: false, ..part };
        assert_eq!(rows_of(t.scan(part.clone(), options.clone())).await, names[21..50], "{options:?}");
        let part = Scan { start_row: "r50".into(), stop_row: "r25".into(), reversed: true, ..part };
        let backwards: Vec<String> = names[26..50].iter().rev().cloned().collect();
        assert_eq!(rows_of(t.scan(part, options.clone())).await, backwards, "{options:?}");
        let limited = ScanOptions { limit: Some(33), ..options };
        assert_eq!(rows_of(t.scan(Scan::default(), limited)).await, names[..33]);
    }
    let mut scanner = t.scan(Scan::default(), ScanOptions { caching: 10, ..ScanOptions::default() });
    assert!(!scanner.renew().await.expect("nothing to renew"));
    let first = scanner.next().await.expect("a row").expect("a row");
    assert_eq!((first.len(), first.byte_len() > 1000), (2, true));
    assert!(scanner.renew().await.expect("renewed"));
    scanner.close();
    assert!(scanner.next().await.expect("closed").is_none());
    let batched = Scan { batch: Some(1), ..Scan::default() };
    assert_eq!(rows_of(t.scan(batched, ScanOptions::default())).await.len(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_of_every_kind_are_checked_where_the_row_is() {
    let place = Place::new("client-check");
    let connection = place.connect();
    let t = table(&connection, "client_check", &["m"]).await;
    let put = |value: &str| [Put::new("a").add("f", "q", value).build()];
    let done = async |check: CheckAndMutate| t.check(&check).await.expect("checked").processed;
    assert!(done(CheckAndMutate::if_not_exists("a", "f", "q").then(put("5"))).await);
    assert!(!done(CheckAndMutate::if_not_exists("a", "f", "q").then(put("6"))).await);
    assert!(!done(CheckAndMutate::if_equals("a", "f", "q", "4").then(put("6"))).await);
    // `value OP cell`: 7 is greater than what is there.
    assert!(done(CheckAndMutate::if_matches("a", "f", "q", filter::CompareOp::Greater, "7").then(put("6"))).await);
    let prefix = Arc::new(filter::Filter::Prefix { prefix: Some("b".into()) });
    assert!(!done(CheckAndMutate::if_filter("a", prefix).then(put("7"))).await);
    let old = TimeRange { min: 0, max: 1 };
    assert!(!done(CheckAndMutate::if_equals("a", "f", "q", "6").time_range(old).then(put("7"))).await);
    let counted = CheckAndMutate::if_equals("a", "f", "q", "6").then([Increment::new("a").add("f", "n", 2).build()]);
    let counted = t.check(&counted).await.expect("checked");
    assert_eq!(counted.row.value(b"f", b"n"), Some(&2i64.to_be_bytes()[..]));
    let many = [("a", "6"), ("z", "6")].map(|(row, value)| {
        CheckAndMutate::if_equals(row, "f", "q", value).then([Delete::new(row).columns("f", "q").build()])
    });
    let many: Vec<bool> =
        t.check_all(many.into()).await.into_iter().map(|checked| checked.expect("checked").processed).collect();
    assert_eq!(many, [true, false]);
    let elsewhere = CheckAndMutate::if_not_exists("a", "f", "q").then([Put::new("b").add("f", "q", "1").build()]);
    assert!(matches!(t.check(&elsewhere).await, Err(Error::Request(_))));
    assert_eq!(t.increment_column_value(b"a", b"f", b"n", 5).await.expect("counted"), 7);
    assert_eq!(t.exists_all(&[Get::new("a"), Get::new("nobody")]).await.expect("asked"), [true, false]);
}

/// With the default patience the first would last for an hour, and so would the second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disabled_table_and_a_short_patience_end_an_operation_early() {
    let place = Place::new("client-patience");
    let connection = place.connect();
    let t = table(&connection, "client_patience", &[]).await;
    t.put(&Put::new("a").add("f", "q", "1").build()).await.expect("put");
    connection.admin().disable_table(t.name()).await.expect("disabled");
    let disabled = t.get(&Get::new("a")).await.expect_err("it is disabled");
    assert!(matches!(disabled, Error::TableDisabled(_)), "{disabled}");
    assert_eq!(disabled.short_class(), Some("TableNotEnabledException"));
    let hasty = t.with(|options| options.retries = 2);
    let failed = hasty.mutate_all(&[Put::new("a").add("f", "q", "1").build()]).await.expect_err("it is disabled");
    assert_eq!(failed.short_class(), Some("NotServingRegionException"), "{failed}");
    connection.admin().enable_table(t.name()).await.expect("enabled");
    assert!(t.exists(&Get::new("a")).await.expect("asked"));
    let metrics = connection.metrics();
    assert!(metrics.retries >= 2 && metrics.locations_dropped > 0 && metrics.cache_misses > 0, "{metrics:?}");
    let large = Put::new("a").add("f", "q", vec![0; 11 << 20]).build();
    assert!(matches!(t.put(&large).await, Err(Error::Request(_))), "larger than hbase.client.keyvalue.maxsize");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn buffered_writes_leave_in_time_and_failures_are_told() {
    let place = Place::new("client-buffered");
    let connection = place.connect();
    let t = table(&connection, "client_buffered", &["m"]).await;
    let (failures, told) = std::sync::mpsc::channel();
    let failures = std::sync::Mutex::new(failures);
    let options = BufferedMutatorOptions {
        flush_after: Some(Duration::from_millis(20)),
        listener: Some(Arc::new(move |mutation, error| {
            let failure = (mutation.row.clone(), error.short_class().map(str::to_owned));
            failures.lock().expect("no panic").send(failure).expect("waited for");
        })),
        ..t.buffer_options()
    };
    let mut buffered = t.buffered_with(options);
    buffered.mutate(Put::new("a").add("f", "q", "1").build()).await.expect("taken");
    buffered.mutate(Put::new("b").add("no", "q", "1").build()).await.expect("taken");
    // Nobody flushes.
    let failure = tokio::task::spawn_blocking(move || told.recv_timeout(Duration::from_secs(60)));
    let (row, class) = failure.await.expect("no panic").expect("told");
    assert_eq!((&row[..], class.as_deref()), (&b"b"[..], Some("NoSuchColumnFamilyException")));
    buffered.flush().await.expect("the listener took what failed");
    assert!(t.exists(&Get::new("a")).await.expect("asked"));
    assert_eq!(buffered.buffered_bytes(), 0);
    let mut by_number = t.buffered_with(BufferedMutatorOptions { limit_mutations: Some(2), ..t.buffer_options() });
    for row in ["x", "y", "z"] {
        by_number.mutate(Put::new(row).add("f", "q", "1").build()).await.expect("taken");
    }
    assert!(by_number.buffered_bytes() > 0, "the third waits");
    by_number.flush().await.expect("flushed");
    assert_eq!(t.exists_all(&["x", "y", "z"].map(Get::new)).await.expect("asked"), [true; 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoints_are_called_at_one_region_and_at_all() {
    use proto::{methods::Method, pb};
    let place = Place::new("client-endpoint");
    let connection = place.connect();
    let name = TableName::parse("client_endpoint").expect("legal");
    let mut descriptor = TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")]);
    let endpoint = "|org.apache.hadoop.hbase.coprocessor.AggregateImplementation|1073741823|";
    descriptor.attributes.insert("coprocessor$1".into(), endpoint.into());
    match connection.admin().create_table(&descriptor, &["h".into(), "p".into()]).await {
        // Another cluster need not have the endpoint's jar.
        Err(error) if place._server.is_none() && error.to_string().contains("cannot be loaded") => {
            eprintln!("not tested: {}", error.to_string().lines().next().unwrap_or_default());
            return;
        }
        made => made.expect("made"),
    }
    let t = connection.table(&name);
    let puts: Vec<_> = ["a", "b", "i", "z"].map(|row| Put::new(row).add("f", "q", 1i64.to_be_bytes()).build()).into();
    t.mutate_all(&puts).await.expect("written");
    let request = pb::AggregateRequest {
        interpreter_class_name: "org.apache.hadoop.hbase.client.coprocessor.LongColumnInterpreter".to_owned(),
        scan: convert::to_proto::scan(&Scan { columns: [("f".into(), vec!["q".into()])].into(), ..Scan::default() }),
        ..pb::AggregateRequest::default()
    };
    let rows = |response: &pb::AggregateResponse| {
        let first = response.first_part.first().expect("a count");
        u64::from_be_bytes(first[..].try_into().expect("8 bytes"))
    };
    let method = Method::AggregateGetRowNum.info();
    let one: pb::AggregateResponse = t.coprocessor(b"b", method, &request).await.expect("counted");
    assert_eq!(rows(&one), 2);
    let all = t.coprocessor_range::<pb::AggregateResponse>(b"", b"", method, &request).await.expect("counted");
    assert_eq!(all.iter().map(|answer| rows(&answer.response)).collect::<Vec<_>>(), [2, 1, 1]);
    let some = t.coprocessor_range::<pb::AggregateResponse>(b"b", b"p", method, &request).await.expect("counted");
    assert_eq!(some.len(), 2);
    assert!(some[0].region.contains(b"b") && some[1].region.contains(b"i"));
    let unknown = t.coprocessor_raw(b"b", "NoService", "no", Bytes::new()).await.expect_err("there is none");
    assert_eq!(unknown.short_class(), Some("UnknownProtocolException"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scans_count_what_they_cost() {
    let place = Place::new("client-scan-metrics");
    let connection = place.connect();
    let t = table(&connection, "client_scan_metrics", &["r5"]).await;
    let puts: Vec<_> = (0..10).map(|i| Put::new(format!("r{i}")).add("f", "q", "v").build()).collect();
    t.mutate_all(&puts).await.expect("written");
    let options = ScanOptions { caching: 2, metrics: true, ..t.scan_options() };
    let mut scanner = t.scan(Scan::default(), options);
    while scanner.next().await.expect("a scan").is_some() {}
    let metrics = scanner.metrics().expect("counted");
    assert!(metrics.rpc_calls >= 5 && metrics.bytes_in_results > 0 && metrics.rpc_retries == 0, "{metrics:?}");
    assert_eq!((metrics.regions_scanned, metrics.server.get("ROWS_SCANNED")), (2, Some(&10)), "{metrics:?}");
    assert!(t.scan(Scan::default(), t.scan_options()).metrics().is_none());
    assert_eq!(t.start_end_keys().await.expect("keys"), [("".into(), "r5".into()), ("r5".into(), "".into())]);
    assert_eq!(t.replicas_of(b"r7", true).await.expect("located").len(), 1, "the primary alone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_and_namespaces_are_administered() {
    let place = Place::new("client-admin");
    let connection = place.connect();
    let admin = connection.admin();
    let t = table(&connection, "client_admin", &["m"]).await;
    let name = t.name().clone();
    assert!(admin.table_exists(&name).await.expect("asked") && admin.is_enabled(&name).await.expect("asked"));
    let again = TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")]);
    let exists = admin.create_table(&again, &[]).await.expect_err("it exists");
    assert_eq!(exists.short_class(), Some("TableExistsException"), "{exists}");
    assert_eq!(t.regions().await.expect("regions").len(), 2);
    for i in 0..20 {
        t.put(&Put::new(format!("a{i:02}")).add("f", "q", [1; 100]).build()).await.expect("put");
    }
    admin.flush(&name).await.expect("flushed");
    admin.major_compact(&name).await.expect("asked");
    admin.split(&name, Some(b"a10")).await.expect("split");
    assert_eq!(t.regions().await.expect("regions").len(), 3);
    assert_eq!(rows_of(t.scan(Scan::default(), ScanOptions::default())).await.len(), 20);
    // A second connection that learned the regions before the next split finds its way. (Not a daughter of the first
    // split: while it refers to its parent's files it cannot be split.)
    for row in ["n", "x"] {
        t.put(&Put::new(row).add("f", "q", "1").build()).await.expect("put");
    }
    let other = place.connect().table(&name);
    other.get(&Get::new("x")).await.expect("get");
    admin.split(&name, Some(b"t")).await.expect("split");
    assert_eq!(t.regions().await.expect("regions").len(), 4);
    assert!(other.exists(&Get::new("x")).await.expect("exists") && other.exists(&Get::new("n")).await.expect("exists"));
    admin.disable_table(&name).await.expect("disabled");
    assert!(!admin.is_enabled(&name).await.expect("asked"));
    admin.truncate_table(&name, true).await.expect("truncated");
    assert!(rows_of(t.scan(Scan::default(), ScanOptions::default())).await.is_empty());
    admin.disable_table(&name).await.expect("disabled");
    admin.enable_table(&name).await.expect("enabled");
    admin.disable_table(&name).await.expect("disabled");
    admin.delete_table(&name).await.expect("deleted");
    assert!(!admin.table_exists(&name).await.expect("asked"));
    admin.create_namespace("client_ns", &std::collections::BTreeMap::new()).await.expect("made");
    assert!(admin.list_namespaces().await.expect("listed").contains(&"client_ns".to_owned()));
    admin.delete_namespace("client_ns").await.expect("removed");
    assert_eq!(admin.servers().await.expect("servers").len(), 1);
    assert!(admin.list_tables().await.expect("tables").iter().all(|table| table.name != name));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_callers_share_a_connection_and_outlive_a_restart() {
    if std::env::var_os("BASALT_TEST_ZOOKEEPER").is_some() {
        return;
    }
    let scratch = Scratch::new("client-restart");
    let server = Server::start(&scratch.0, &[]);
    let ports = [
        format!("hbase.zookeeper.property.clientPort={}", server.zk_port),
        format!("hbase.master.port={}", server.master_port),
        format!("hbase.regionserver.port={}", server.region_port),
    ];
    let connection = connect(&format!("127.0.0.1:{}", server.zk_port));
    let t = table(&connection, "client_restart", &[]).await;
    let writers: Vec<_> = (0..32)
        .map(|w| {
            let t = t.clone();
            tokio::spawn(async move {
                for i in 0..100 {
                    t.increment(&Increment::new(format!("w{w}")).add("f", "n", 1).build()).await.expect("counted");
                    t.put(&Put::new(format!("w{w}-{i}")).add("f", "q", format!("{i}")).build()).await.expect("put");
                }
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    server.kill();
    let ports: Vec<&str> = ports.iter().map(String::as_str).collect();
    let _server = Server::start(&scratch.0, &ports);
    for writer in writers {
        writer.await.expect("every write was acknowledged in the end");
    }
    for w in 0..32 {
        let row = t.get(&Get::new(format!("w{w}"))).await.expect("get");
        assert_eq!(row.value(b"f", b"n"), Some(&100i64.to_be_bytes()[..]), "an increment tried again counts once");
    }
    assert_eq!(rows_of(t.scan(Scan::default(), ScanOptions::default())).await.len(), 32 * 101);
}
