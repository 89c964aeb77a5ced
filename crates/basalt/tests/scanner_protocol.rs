//! What a scanner owes its client between rows, call by call: heartbeats and cursors while a slow filter finds nothing,
//! metrics of each call, leases that run out and leases that are renewed, reads of a certain age.
#![allow(clippy::disallowed_methods, reason = "leases run on the real clock")]

use crate::common::{Scratch, Server, Tester, specifier};
use bytes::Bytes;
use cell::{CellBlock, CellSpec, CellType};
use prost::Message as _;
use proto::methods::Method;
use proto::pb;
use rpc::client::{ClientError, ClientReply};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROWS: u32 = 100;
const COLUMNS: u32 = 100;

async fn put_row(tester: &Tester, region: &[u8], row: &str, value: &[u8], columns: u32) {
    let qualifiers: Vec<String> = (0..columns).map(|i| format!("c{i:05}")).collect();
    let specs = qualifiers.iter().map(|qualifier| CellSpec {
        row: row.as_bytes(),
        family: b"f",
        qualifier: qualifier.as_bytes(),
        timestamp: 10,
        type_code: CellType::Put.code(),
        value,
        tags: b"",
    });
    let mutation = pb::MutationProto {
        row: Some(Bytes::copy_from_slice(row.as_bytes())),
        mutate_type: Some(pb::mutation_proto::MutationType::Put as i32),
        associated_cell_count: Some(columns as i32),
        ..pb::MutationProto::default()
    };
    let request = pb::MutateRequest { region: specifier(region), mutation, ..pb::MutateRequest::default() };
    tester.region_call(Method::ClientMutate, &request, Some(&CellBlock::from_specs(specs))).await.expect("put");
}

/// The next call of a scanner.
fn next(id: u64, seq: u64, rows: u32) -> pb::ScanRequest {
    pb::ScanRequest {
        scanner_id: Some(id),
        next_call_seq: Some(seq),
        number_of_rows: Some(rows),
        client_handles_partials: Some(true),
        client_handles_heartbeats: Some(true),
        track_scan_metrics: Some(true),
        ..pb::ScanRequest::default()
    }
}

fn open(region: &[u8], scan: pb::Scan, rows: u32) -> pb::ScanRequest {
    pb::ScanRequest {
        region: Some(specifier(region)),
        scan: Some(scan),
        scanner_id: None,
        next_call_seq: None,
        ..next(0, 0, rows)
    }
}

async fn call(tester: &Tester, request: &pb::ScanRequest) -> Result<(pb::ScanResponse, ClientReply), ClientError> {
    let reply = tester.region_call(Method::ClientScan, request, None).await?;
    Ok((reply.decode()?, reply))
}

/// Values that a regular expression finds, slowly: it looks back at what it found before.
fn slow_filter() -> pb::Filter {
    let comparator = pb::RegexStringComparator {
        pattern: "(a+)(a+)z\\1".to_owned(),
        pattern_flags: 32,
        charset: "UTF-8".to_owned(),
        engine: Some("JAVA".to_owned()),
    };
    let comparator = pb::Comparator {
        name: "org.apache.hadoop.hbase.filter.RegexStringComparator".to_owned(),
        serialized_comparator: Some(Bytes::from(comparator.encode_to_vec())),
    };
    let compare = pb::CompareFilter { compare_op: pb::CompareType::Equal as i32, comparator: Some(comparator) };
    let value = pb::ValueFilter { compare_filter: compare };
    pb::Filter {
        name: "org.apache.hadoop.hbase.filter.ValueFilter".to_owned(),
        serialized_filter: Some(Bytes::from(value.encode_to_vec())),
    }
}

fn metric(response: &pb::ScanResponse, name: &str) -> i64 {
    let metrics = response.scan_metrics.as_ref().map(|metrics| &metrics.metrics[..]).unwrap_or_default();
    metrics.iter().find(|metric| metric.name() == name).map_or(0, pb::NameInt64Pair::value)
}

#[tokio::test]
async fn a_slow_filter_sends_heartbeats_with_cursors_and_each_calls_metrics() {
    let scratch = Scratch::new("heartbeats");
    // A call answers after half the lease at the latest.
    let settings = ["hbase.client.scanner.timeout.period=2000", "hbase.cells.scanned.per.heartbeat.check=20"];
    let server = Server::start(&scratch.join("data"), &settings);
    let tester = Tester::connect(&server).await;
    tester.create_table("t", &[]).await;
    let region = tester.regions("t").await[0].clone();
    let aaa = vec![b'a'; 60];
    for row in 0..ROWS {
        put_row(&tester, &region, &format!("r{row:04}"), &aaa, COLUMNS).await;
    }
    put_row(&tester, &region, "z", b"aazaa", 1).await;
    for need_cursor in [false, true] {
        let scan = pb::Scan {
            filter: Some(slow_filter()),
            need_cursor_result: Some(need_cursor),
            cache_blocks: Some(false),
            ..pb::Scan::default()
        };
        let mut request = open(&region, scan, 100);
        let (mut heartbeats, mut scanned, mut found, mut last_cursor) = (0, 0, 0, Bytes::new());
        for seq in 0.. {
            let began = Instant::now();
            let (response, reply) = call(&tester, &request).await.expect("a scan call");
            found += reply.cells.len();
            scanned += metric(&response, "ROWS_SCANNED");
            let more = response.more_results() && response.more_results_in_region();
            if response.heartbeat_message() {
                heartbeats += 1;
                assert!(began.elapsed() < Duration::from_secs(30), "a heartbeat after {:?}", began.elapsed());
                assert!(more, "a heartbeat says that the scan goes on");
                let cursor = response.cursor.as_ref().and_then(|cursor| cursor.row.clone());
                assert_eq!(cursor.is_some(), need_cursor);
                if let Some(row) = cursor {
                    assert!(row >= last_cursor, "{row:?} after {last_cursor:?}");
                    last_cursor = row;
                }
            }
            if !more {
                break;
            }
            request = next(response.scanner_id(), seq, 100);
        }
        println!("cursors {need_cursor}: {heartbeats} heartbeats, {scanned} rows");
        assert!(heartbeats > 0, "the filter was too fast to need a heartbeat");
        assert_eq!(found, 1);
        assert_eq!(scanned, i64::from(ROWS) + 1, "each row counts in one call's metrics");
    }
}

#[tokio::test]
async fn each_calls_metrics_count_that_call_only() {
    let scratch = Scratch::new("scan-metrics");
    let server = Server::start(&scratch.join("data"), &[]);
    let tester = Tester::connect(&server).await;
    tester.create_table("t", &[]).await;
    let region = tester.regions("t").await[0].clone();
    for row in 0..10 {
        tester.put(&region, &format!("r{row}"), "v").await.expect("put");
    }
    let mut request = open(&region, pb::Scan::default(), 2);
    let mut counts = Vec::new();
    for seq in 0..5 {
        let (response, _) = call(&tester, &request).await.expect("a scan call");
        counts.push(metric(&response, "ROWS_SCANNED"));
        request = next(response.scanner_id(), seq, 2);
    }
    assert_eq!(counts, [2, 2, 2, 2, 2]);
}

#[tokio::test]
async fn a_lease_runs_out_unless_it_is_renewed() {
    let scratch = Scratch::new("leases");
    let server = Server::start(&scratch.join("data"), &["hbase.client.scanner.timeout.period=1500"]);
    let tester = Tester::connect(&server).await;
    tester.create_table("t", &[]).await;
    let region = tester.regions("t").await[0].clone();
    for row in 0..10 {
        tester.put(&region, &format!("r{row}"), "v").await.expect("put");
    }
    let (kept, _) = call(&tester, &open(&region, pb::Scan::default(), 1)).await.expect("opened");
    let (left, _) = call(&tester, &open(&region, pb::Scan::default(), 1)).await.expect("opened");
    assert_eq!(kept.ttl, Some(1500), "the client is told how long it may be silent");
    // Until the one that is left alone is gone, however long the server takes to look after leases.
    let mut seq = 0;
    let began = Instant::now();
    loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let renewal = pb::ScanRequest { renew: Some(true), number_of_rows: Some(0), ..next(kept.scanner_id(), seq, 0) };
        call(&tester, &renewal).await.expect("renewed");
        seq += 1;
        if began.elapsed() > Duration::from_secs(5) {
            break;
        }
    }
    let error = call(&tester, &next(left.scanner_id(), 0, 1)).await.expect_err("it is gone");
    assert_eq!(error.class(), Some("org.apache.hadoop.hbase.UnknownScannerException"), "{error}");
    let (_, reply) = call(&tester, &next(kept.scanner_id(), seq, 3)).await.expect("renewed all the time");
    let rows: Vec<&[u8]> = reply.cells.iter().map(|cell| cell.row()).collect();
    assert_eq!(rows, [b"r1", b"r2", b"r3"], "it goes on where it was");
}

#[tokio::test]
async fn a_family_has_a_time_range_of_its_own_and_timeline_reads_are_not_stale() {
    let scratch = Scratch::new("time-ranges");
    let server = Server::start(&scratch.join("data"), &[]);
    let tester = Tester::connect(&server).await;
    tester.create_table("t", &[]).await;
    let region = tester.regions("t").await[0].clone();
    put_row(&tester, &region, "r", b"v", 1).await;
    let range = |from, to| pb::TimeRange { from: Some(from), to: Some(to) };
    let of_family = |range| pb::ColumnFamilyTimeRange { column_family: Bytes::from("f"), time_range: range };
    for (of_all, of_f, seen) in [((0, 5), (5, 15), 1), ((5, 15), (0, 5), 0)] {
        let scan = pb::Scan {
            time_range: Some(range(of_all.0, of_all.1)),
            cf_time_range: vec![of_family(range(of_f.0, of_f.1))],
            consistency: Some(pb::Consistency::Timeline as i32),
            ..pb::Scan::default()
        };
        let (response, reply) = call(&tester, &open(&region, scan, 10)).await.expect("a scan call");
        assert_eq!(reply.cells.len(), seen, "{of_all:?} but {of_f:?} in f");
        assert!(!response.stale(), "the only copy there is is up to date");
        let get = pb::Get {
            row: Bytes::from("r"),
            time_range: Some(range(of_all.0, of_all.1)),
            cf_time_range: vec![of_family(range(of_f.0, of_f.1))],
            consistency: Some(pb::Consistency::Timeline as i32),
            ..pb::Get::default()
        };
        let request = pb::GetRequest { region: specifier(&region), get };
        let reply = tester.region_call(Method::ClientGet, &request, None).await.expect("got");
        let response: pb::GetResponse = reply.decode().expect("a response");
        assert_eq!(reply.cells.len(), seen, "a Get of {of_all:?} but {of_f:?} in f");
        assert!(!response.result.is_some_and(|result| result.stale()));
    }
}

/// Every row of a table by one scan, as its keys, and how many calls that took.
async fn all_rows(tester: &Tester, region: &[u8]) -> (Vec<Vec<u8>>, u64) {
    let mut request = open(region, pb::Scan::default(), i32::MAX as u32);
    let (mut rows, mut calls) = (Vec::new(), 0);
    loop {
        let (response, reply) = call(tester, &request).await.expect("a scan call");
        assert!(!response.heartbeat_message() || reply.cells.is_empty(), "rows are no heartbeat");
        rows.extend(reply.cells.iter().map(|cell| cell.row().to_vec()));
        calls += 1;
        if !(response.more_results() && response.more_results_in_region()) {
            return (rows, calls);
        }
        request = next(response.scanner_id(), calls - 1, i32::MAX as u32);
    }
}

/// Found with a large budget: 160 scans of one client were in the making at once, 75 MB each, and nobody counted them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scans_of_one_connection_share_what_its_replies_may_hold_and_miss_no_row() {
    const LARGE_ROWS: u32 = 2000;
    let scratch = Scratch::new("replies_in_the_making");
    // One reply may have all 20 MB, those of one connection together 1 MB before each ends with what it has.
    let settings = ["basalt.memory.size=4294967296", "basalt.ipc.connection.max.unsent=1048576"];
    let server = Server::start(&scratch.join("data"), &settings);
    let tester = Arc::new(Tester::connect(&server).await);
    tester.create_table("t", &[]).await;
    let region = tester.regions("t").await[0].clone();
    for n in 0..LARGE_ROWS {
        put_row(&tester, &region, &format!("r{n:05}"), &[b'v'; 10_000], 1).await;
    }
    let expected: Vec<Vec<u8>> = (0..LARGE_ROWS).map(|n| format!("r{n:05}").into_bytes()).collect();
    let (rows, alone) = all_rows(&tester, &region).await;
    assert!(rows == expected && alone <= 2, "by itself it has all at once: {} rows, {alone} calls", rows.len());
    let mut scans = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (tester, region) = (tester.clone(), region.clone());
        scans.spawn(async move { all_rows(&tester, &region).await });
    }
    let mut most = 0;
    while let Some(done) = scans.join_next().await {
        let (rows, calls) = done.expect("no panic");
        assert!(rows == expected, "each row once, in order: {} rows", rows.len());
        most = calls.max(most);
    }
    assert!(most > alone, "beside others a scan comes more often: {most} calls");
}
