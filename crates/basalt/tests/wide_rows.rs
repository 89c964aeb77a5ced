//! Rows far larger than a reply: what the process holds while it reads them is bounded by what it may send, not by the
//! row. Measured at the real process: its highest resident memory from a fresh start on.
#![allow(clippy::disallowed_methods, reason = "tests of a process look at it from outside")]

use crate::common::{Scratch, Server, Tester, specifier};
use bytes::Bytes;
use cell::{CellBlock, CellSpec, CellType};
use proto::methods::Method;
use proto::pb;
use rpc::client::{Client, ClientError, ClientOptions};

const MIB: u64 = 1 << 20;
/// What one reply to a scan or a batch may hold; a row that is gathered whole may hold twice as much.
const LIMIT: u64 = 4 * MIB;
const SETTINGS: [&str; 5] = [
    // Blocks and indexes that are cached count against the budget, not against the read.
    "hfile.block.cache.size=0.001",
    // Each thread of the allocator keeps a reply or two for the next: few threads, so that a growth would show.
    "hbase.regionserver.handler.count=2",
    "hbase.server.scanner.max.result.size=4194304",
    "hbase.table.max.rowsize=8388608",
    "hbase.regionserver.global.memstore.size=0.4",
];
const COLUMNS: u64 = 1_000_000;
const VALUES: u64 = 160;

/// The process' highest resident memory so far, in bytes.
fn peak(server: &Server) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).expect("the process is there");
    let line = text.lines().find(|line| line.starts_with("VmHWM:")).expect("a line about the peak");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number") * 1024
}

async fn write(tester: &Tester, region: &[u8], row: &[u8], cells: &[(String, Vec<u8>)]) {
    let specs = cells.iter().map(|(qualifier, value)| CellSpec {
        row,
        family: b"f",
        qualifier: qualifier.as_bytes(),
        timestamp: i64::MAX,
        type_code: CellType::Put.code(),
        value,
        tags: b"",
    });
    let mutation = pb::MutationProto {
        row: Some(Bytes::copy_from_slice(row)),
        mutate_type: Some(pb::mutation_proto::MutationType::Put as i32),
        associated_cell_count: Some(i32::try_from(cells.len()).expect("few")),
        ..pb::MutationProto::default()
    };
    let request = pb::MutateRequest { region: specifier(region), mutation, ..pb::MutateRequest::default() };
    tester.region_call(Method::ClientMutate, &request, Some(&CellBlock::from_specs(specs))).await.expect("put");
}

/// A row of a million columns, one of large values, and a small one; everything in files.
async fn fill(scratch: &Scratch) -> Bytes {
    let server = Server::start(&scratch.join("data"), &SETTINGS);
    let tester = Tester::connect(&server).await;
    tester.create_table("wide", &[]).await;
    let region = tester.regions("wide").await[0].clone();
    for batch in 0..100 {
        let first = batch * (COLUMNS / 100);
        let column = |i: u64| (format!("c{i:07}"), format!("the value of column number {i}").into_bytes());
        write(&tester, &region, b"columns", &(first..first + COLUMNS / 100).map(column).collect::<Vec<_>>()).await;
    }
    for i in 0..VALUES {
        write(&tester, &region, b"values", &[(format!("v{i:02}"), vec![i as u8; MIB as usize])]).await;
    }
    write(&tester, &region, b"z", &[("q".to_owned(), b"small".to_vec())]).await;
    let admin = Client::connect(server.region_address(), "AdminService", ClientOptions::default()).await;
    let flush = pb::FlushRegionRequest { region: specifier(&region), ..pb::FlushRegionRequest::default() };
    admin.expect("connected").call(Method::AdminFlushRegion.info(), &flush, None).await.expect("flushed");
    assert_eq!(server.terminate().code(), Some(0));
    // This start reads what the log still holds; the next one has nothing to do.
    let server = Server::start(&scratch.join("data"), &SETTINGS);
    assert_eq!(Tester::connect(&server).await.regions("wide").await, std::slice::from_ref(&region));
    assert_eq!(server.terminate().code(), Some(0));
    region
}

/// What one read came to.
#[derive(Default)]
struct Seen {
    calls: u32,
    cells: u64,
    largest_reply: usize,
}

/// Reads with open, next, ... until nothing is left; every reply is checked and dropped.
async fn read(tester: &Tester, region: &[u8], scan: pb::Scan, partials: bool) -> Result<Seen, ClientError> {
    let mut seen = Seen::default();
    let mut request = pb::ScanRequest {
        region: Some(specifier(region)),
        scan: Some(pb::Scan { cache_blocks: Some(false), ..scan }),
        ..pb::ScanRequest::default()
    };
    for seq in 0.. {
        request.number_of_rows = Some(i32::MAX as u32);
        request.client_handles_partials = Some(partials);
        request.client_handles_heartbeats = Some(partials);
        let reply = tester.region_call(Method::ClientScan, &request, None).await?;
        let response: pb::ScanResponse = reply.decode()?;
        seen.calls += 1;
        seen.cells += reply.cells.len() as u64;
        seen.largest_reply = seen.largest_reply.max(reply.cells.bytes().len());
        if !response.more_results() || !response.more_results_in_region() {
            break;
        }
        request =
            pb::ScanRequest { scanner_id: response.scanner_id, next_call_seq: Some(seq), ..pb::ScanRequest::default() };
    }
    Ok(seen)
}

fn of_row(row: &'static str) -> pb::Scan {
    pb::Scan {
        start_row: Some(Bytes::from(row)),
        stop_row: Some(Bytes::from(row)),
        include_stop_row: Some(true),
        ..pb::Scan::default()
    }
}

/// A filter that wants to see whole rows, and keeps them all.
fn whole_rows() -> pb::Filter {
    let page = pb::PageFilter { page_size: 1000 };
    pb::Filter {
        name: "org.apache.hadoop.hbase.filter.PageFilter".to_owned(),
        serialized_filter: Some(Bytes::from(prost::Message::encode_to_vec(&page))),
    }
}

fn get(region: &[u8], row: &'static str, exists: bool) -> pb::GetRequest {
    let get = pb::Get {
        row: Bytes::from(row),
        cache_blocks: Some(false),
        existence_only: exists.then_some(true),
        ..pb::Get::default()
    };
    pb::GetRequest { region: specifier(region), get }
}

#[tokio::test]
async fn a_huge_row_never_lies_in_memory() {
    let scratch = Scratch::new("wide-rows");
    let region = fill(&scratch).await;
    let too_big = "org.apache.hadoop.hbase.regionserver.RowTooBigException";
    for row in ["columns", "values"] {
        let all = if row == "columns" { COLUMNS } else { VALUES };
        // A fresh process: memory that an earlier step left to the allocator would hide what this one takes.
        let server = Server::start(&scratch.join("data"), &SETTINGS);
        let tester = Tester::connect(&server).await;
        // Replies in the making and on their way, and what the allocator keeps of them in each of its arenas. The row is
        // read several times: what is read altogether is ten times as much.
        let idle = peak(&server);
        let allowed = idle + 28 * LIMIT;
        let held = |what: &str| {
            let peak = peak(&server);
            println!("{row}, {what}: {} MiB at most, {} when idle", peak / MIB, idle / MIB);
            assert!(peak < allowed, "{row}, {what}: {} MiB, {} allowed", peak / MIB, allowed / MIB);
        };
        let batched = pb::Scan { batch_size: Some(1000), ..of_row(row) };
        let ways = [("in batches", batched), ("in partial results", of_row(row))];
        for (what, scan) in ways.iter().cycle().take(8) {
            let seen = read(&tester, &region, scan.clone(), true).await.expect("read");
            assert_eq!(seen.cells, all, "{row}, {what}");
            assert!(seen.calls > 5, "{row}, {what}: {} calls", seen.calls);
            assert!((seen.largest_reply as u64) < LIMIT + 2 * MIB, "{row}, {what}: {} bytes", seen.largest_reply);
            held(what);
        }
        // Who cannot take partial results gets whole rows or nothing.
        let refused = read(&tester, &region, of_row(row), false).await.err().expect("refused");
        assert_eq!(refused.class(), Some(too_big), "{row}: {refused}");
        held("by a client without partial results");
        let filtered = pb::Scan { filter: Some(whole_rows()), ..of_row(row) };
        let refused = read(&tester, &region, filtered, true).await.err().expect("refused");
        assert_eq!(refused.class(), Some(too_big), "{row}: {refused}");
        held("under a filter of whole rows");
        let refused = tester.region_call(Method::ClientGet, &get(&region, row, false), None).await.err();
        let refused = refused.expect("refused");
        assert_eq!(refused.class(), Some(too_big), "{row}: {refused}");
        held("by a Get");
        let reply = tester.region_call(Method::ClientGet, &get(&region, row, true), None).await.expect("asked");
        let response: pb::GetResponse = reply.decode().expect("a response");
        assert_eq!(response.result.and_then(|result| result.exists), Some(true), "{row} exists, however large");
        held("asked whether it is there");
        let small = tester.region_call(Method::ClientGet, &get(&region, "z", false), None).await.expect("got");
        assert_eq!(small.cells.len(), 1, "the region goes on serving");
    }
}

/// One cell of a mebibyte.
fn one_value(i: u64) -> pb::Get {
    let column = pb::Column { family: Bytes::from("f"), qualifier: vec![Bytes::from(format!("v{:02}", i % VALUES))] };
    pb::Get { row: Bytes::from("values"), column: vec![column], cache_blocks: Some(false), ..pb::Get::default() }
}

#[tokio::test]
async fn a_batch_of_large_gets_stops_at_the_reply_limit() {
    let scratch = Scratch::new("wide-multi");
    let region = fill(&scratch).await;
    let server = Server::start(&scratch.join("data"), &SETTINGS);
    let tester = Tester::connect(&server).await;
    let idle = peak(&server);
    let plain = ClientOptions { codec: None, ..ClientOptions::default() };
    let plain = Client::connect(server.region_address(), "ClientService", plain).await.expect("connected");
    for (client, codec) in [(&tester.region, "cell blocks"), (&plain, "cells in messages")] {
        let gets =
            (0..VALUES).map(|i| pb::Action { index: Some(i as u32), get: Some(one_value(i)), ..pb::Action::default() });
        let action = pb::RegionAction { region: specifier(&region), action: gets.collect(), ..Default::default() };
        let request = pb::MultiRequest { region_action: vec![action], ..pb::MultiRequest::default() };
        let reply = client.call(Method::ClientMulti.info(), &request, None).await.expect("a reply");
        let response: pb::MultiResponse = reply.decode().expect("a response");
        let entries = &response.region_action_result[0].result_or_exception;
        assert_eq!(entries.len() as u64, VALUES, "{codec}: every action is answered");
        let done = entries.iter().take_while(|entry| entry.result.is_some()).count() as u64;
        assert!((4..8).contains(&done), "{codec}: {done} gets of a mebibyte each under a limit of four");
        for entry in &entries[done as usize..] {
            let class = entry.exception.as_ref().map(|exception| exception.name.as_str());
            assert_eq!(class, Some("org.apache.hadoop.hbase.MultiActionResultTooLarge"), "{codec}");
        }
    }
    let peak = peak(&server);
    println!("batches: {} MiB at most, {} when idle", peak / MIB, idle / MIB);
    assert!(peak < idle + 28 * LIMIT, "{} MiB", peak / MIB);
}
