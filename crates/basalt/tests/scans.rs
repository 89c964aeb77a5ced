//! Scans over the wire, call by call.

use crate::common::{Scratch, Server, Tester, specifier};
use bytes::Bytes;
use proto::methods::Method;
use proto::pb;
use rpc::client::{Client, ClientOptions};

/// Every row of a region by open, next, ... as a client does it, `rows_per_call` at a time.
async fn rows(tester: &Tester, region: &[u8], scan: pb::Scan, rows_per_call: u32) -> Vec<String> {
    let mut all = Vec::new();
    let mut request = pb::ScanRequest {
        region: Some(specifier(region)),
        scan: Some(scan),
        number_of_rows: Some(rows_per_call),
        client_handles_partials: Some(true),
        client_handles_heartbeats: Some(true),
        ..pb::ScanRequest::default()
    };
    for seq in 0.. {
        let reply = tester.region_call(Method::ClientScan, &request, None).await.expect("a scan call");
        let response: pb::ScanResponse = reply.decode().expect("a scan response");
        all.extend(reply.cells.iter().map(|cell| String::from_utf8_lossy(cell.row()).into_owned()));
        if !response.more_results() || !response.more_results_in_region() {
            break;
        }
        request = pb::ScanRequest {
            scanner_id: response.scanner_id,
            number_of_rows: Some(rows_per_call),
            next_call_seq: Some(seq),
            client_handles_partials: Some(true),
            client_handles_heartbeats: Some(true),
            ..pb::ScanRequest::default()
        };
    }
    all
}

#[tokio::test]
async fn every_row_comes_once_forwards_and_in_reverse() {
    let scratch = Scratch::new("scans");
    let server = Server::start(&scratch.join("data"), &[]);
    let tester = Tester::connect(&server).await;
    tester.create_table("t", &["m"]).await;
    let regions = tester.regions("t").await;
    let names: Vec<String> = (0..20).map(|i| format!("r{i:02}")).collect();
    for name in &names {
        tester.put(&regions[1], name, "v").await.expect("put");
    }
    let backwards: Vec<String> = names.iter().rev().cloned().collect();
    for per_call in [1, 3, 100] {
        assert_eq!(rows(&tester, &regions[1], pb::Scan::default(), per_call).await, names, "{per_call} a call");
        let scan = pb::Scan { reversed: Some(true), ..pb::Scan::default() };
        assert_eq!(rows(&tester, &regions[1], scan, per_call).await, backwards, "reversed, {per_call} a call");
        let scan = pb::Scan {
            reversed: Some(true),
            start_row: Some(Bytes::from_static(b"r10")),
            include_start_row: Some(false),
            stop_row: Some(Bytes::from_static(b"r05")),
            ..pb::Scan::default()
        };
        assert_eq!(rows(&tester, &regions[1], scan, per_call).await, backwards[10..14], "a range in reverse");
    }
}

/// Small calls are tried from memory; a call that comes to a block that is not there begins again where it may read.
#[tokio::test]
async fn a_scan_in_small_calls_goes_on_where_its_blocks_are_not_in_memory() {
    let scratch = Scratch::new("scans-cold");
    let server = Server::start(&scratch.join("data"), &[]);
    let tester = Tester::connect(&server).await;
    tester.create_table("t", &[]).await;
    let region = tester.regions("t").await[0].clone();
    let names: Vec<String> = (0..300).map(|i| format!("r{i:03}")).collect();
    let value = "v".repeat(1000);
    for name in &names {
        tester.put(&region, name, &value).await.expect("put");
    }
    let admin = Client::connect(server.region_address(), "AdminService", ClientOptions::default()).await;
    let flush = pb::FlushRegionRequest { region: specifier(&region), ..pb::FlushRegionRequest::default() };
    admin.expect("connected").call(Method::AdminFlushRegion.info(), &flush, None).await.expect("flushed");
    // In memory beside the file.
    tester.put(&region, "r1005", "later").await.expect("put");
    let mut names = names;
    names.insert(101, "r1005".to_owned());
    for cache_blocks in [false, true, true] {
        for per_call in [1, 7, 100] {
            let scan = pb::Scan { cache_blocks: Some(cache_blocks), ..pb::Scan::default() };
            let read = rows(&tester, &region, scan, per_call).await;
            assert_eq!(read, names, "{per_call} a call, blocks kept: {cache_blocks}");
        }
    }
}
