//! What a read of a huge row takes from the heap, counted to the byte: a few replies, however long the row. (What the real
//! process holds, with what its allocator keeps, is seen by the binary's own test `wide_rows`.)

use basalt_sim::calls;
use basalt_sim::stage::calm_settings;
use basalt_sim::world::{Life, World};
use bytes::Bytes;
use cell::{CellBlock, CellSpec, CellType};
use convert::to_proto;
use master::Caller;
use model::{FamilyDescriptor, RegionInfo, TableDescriptor, TableName};
use peak_alloc::PeakAlloc;
use prost::Message;
use proto::methods::Method;
use proto::pb;
use rpc::{CallResult, CellCodec};

/// The heap, with the most that was ever taken from it.
#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const MIB: usize = 1 << 20;
/// What one reply may hold.
const LIMIT: usize = 4 * MIB;
const COLUMNS: usize = 300_000;
const VALUES: usize = 40;

fn name() -> TableName {
    TableName::parse("wide").expect("legal")
}

/// A call over a connection with the usual codec.
async fn send(life: &Life, method: Method, message: &impl Message, cells: CellBlock) -> CallResult {
    calls::send(life, Some(CellCodec::KeyValue), method, message, cells).await
}

async fn write(life: &Life, region: &RegionInfo, row: &str, cells: &[(String, Vec<u8>)]) {
    let specs = cells.iter().map(|(qualifier, value)| CellSpec {
        row: row.as_bytes(),
        family: b"f",
        qualifier: qualifier.as_bytes(),
        timestamp: i64::MAX,
        type_code: CellType::Put.code(),
        value,
        tags: b"",
    });
    let mutation = pb::MutationProto {
        row: Some(Bytes::copy_from_slice(row.as_bytes())),
        mutate_type: Some(pb::mutation_proto::MutationType::Put as i32),
        associated_cell_count: Some(cells.len() as i32),
        durability: Some(pb::mutation_proto::Durability::SkipWal as i32),
        ..pb::MutationProto::default()
    };
    let region = to_proto::region_specifier(region);
    let request = pb::MutateRequest { region, mutation, ..pb::MutateRequest::default() };
    send(life, Method::ClientMutate, &request, CellBlock::from_specs(specs)).await.expect("put");
}

fn flush(life: &Life, region: &RegionInfo) {
    life.server.flush_region(region.encoded_name().as_ref(), Vec::new()).expect("flushed");
}

/// A row of many columns and one of large values, in files.
async fn fill(life: &Life) -> RegionInfo {
    let table = TableDescriptor::new(name(), [FamilyDescriptor::new("f")]);
    let id = life.master.create_table(table, &[], &Caller::default()).await.expect("accepted");
    life.master.wait_for(id).await.expect("made");
    let region = calls::region_of(life, &name(), b"").expect("there");
    let column = |i: usize| (format!("c{i:07}"), format!("the value of column number {i}").into_bytes());
    for first in (0..COLUMNS).step_by(10_000) {
        write(life, &region, "columns", &(first..first + 10_000).map(column).collect::<Vec<_>>()).await;
        if first % 100_000 == 0 {
            flush(life, &region);
        }
    }
    for i in 0..VALUES {
        write(life, &region, "values", &[(format!("v{i:02}"), vec![i as u8; MIB])]).await;
        if i % 10 == 0 {
            flush(life, &region);
        }
    }
    flush(life, &region);
    region
}

/// What `reading` takes at most, beyond what was held before it.
async fn most_of<T>(reading: impl Future<Output = T>) -> (T, usize) {
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    let outcome = reading.await;
    (outcome, HEAP.peak_usage() - before)
}

/// A buffer that grows by doubling, up to a limit and the cell that goes over it, and a mebibyte for blocks and indexes.
fn twice(limit: usize) -> usize {
    2 * (limit + MIB) + MIB
}

fn of_row(row: &'static str) -> pb::Scan {
    pb::Scan {
        start_row: Some(Bytes::from(row)),
        stop_row: Some(Bytes::from(row)),
        include_stop_row: Some(true),
        cache_blocks: Some(false),
        ..pb::Scan::default()
    }
}

/// Reads to the end; each reply is dropped before the next is asked for. Answers calls and bytes.
async fn read(life: &Life, region: &RegionInfo, scan: pb::Scan) -> (usize, usize) {
    let mut request = pb::ScanRequest {
        region: Some(to_proto::region_specifier(region)),
        scan: Some(scan),
        ..pb::ScanRequest::default()
    };
    let mut bytes = 0;
    for calls in 1.. {
        request.number_of_rows = Some(i32::MAX as u32);
        request.client_handles_partials = Some(true);
        request.client_handles_heartbeats = Some(true);
        let reply = send(life, Method::ClientScan, &request, CellBlock::default()).await.expect("scanned");
        let response = pb::ScanResponse::decode(reply.message).expect("a response");
        bytes += reply.cells.len();
        if !response.more_results() || !response.more_results_in_region() {
            return (calls, bytes);
        }
        request = pb::ScanRequest {
            scanner_id: response.scanner_id,
            next_call_seq: Some(calls as u64 - 1),
            ..pb::ScanRequest::default()
        };
    }
    unreachable!("counted without end")
}

#[test]
fn a_read_of_a_huge_row_takes_replies_not_rows() {
    let mut settings = calm_settings();
    settings.set("hbase.hregion.memstore.flush.size", "1000000000");
    settings.set("hbase.regionserver.global.memstore.size", "0.6");
    settings.set("hfile.block.cache.size", "0.001");
    settings.set("hbase.server.scanner.max.result.size", LIMIT.to_string());
    settings.set("hbase.table.max.rowsize", (2 * LIMIT).to_string());
    let mut world = World::new(1, settings);
    World::runtime().block_on(async {
        let life = world.start().await.expect("an empty disk");
        let region = fill(&life).await;
        for row in ["columns", "values"] {
            let batched = pb::Scan { batch_size: Some(1000), ..of_row(row) };
            for (how, scan) in [("in batches", batched), ("in partial results", of_row(row))] {
                for again in 0..2 {
                    let ((calls, bytes), most) = most_of(read(&life, &region, scan.clone())).await;
                    println!(
                        "{row} {how} ({again}): {} KiB in {calls} calls, {} KiB held at most",
                        bytes >> 10,
                        most >> 10
                    );
                    assert!(bytes > 4 * LIMIT && calls > 4, "{row} {how}: {bytes} bytes in {calls} calls");
                    assert!(most < twice(LIMIT), "{row} {how}: {most} bytes");
                }
            }
            let get = pb::Get { row: Bytes::from(row), cache_blocks: Some(false), ..pb::Get::default() };
            let get = pb::GetRequest { region: to_proto::region_specifier(&region), get };
            let (refused, most) = most_of(send(&life, Method::ClientGet, &get, CellBlock::default())).await;
            println!("{row} by a Get: {} KiB held at most", most >> 10);
            let refused = refused.expect_err("more than a row may have");
            assert!(refused.class().ends_with("RowTooBigException"), "{row}: {}", refused.class());
            assert!(most < twice(2 * LIMIT), "{row} by a Get: {most} bytes");
        }
        life.stop().await.expect("stopped");
    });
}
