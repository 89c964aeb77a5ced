//! Loads that once made the server grow to many times its budget: it stays within it, and others are answered
//! meanwhile.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use prost::Message;
use proto::methods::Method;
use proto::pb;
use proto::pb::mutation_proto::{Durability, MutationType};

use super::busy::{call, puts, said, start_with_table};
use crate::bystander::Bystander;
use crate::lab::Lab;
use crate::load::retried;
use crate::remote::{Admin, Remote, Table, specifier};
use crate::site::Site;
use crate::wire::{Wire, costly_filter, mutate, mutation, whole_scan};

const PATIENCE: Duration = Duration::from_secs(60);
const BUDGET_MIB: u64 = 128;

/// F55: a million increments with nonces, as every Java client sends them. The nonces of half an hour do not fit into
/// the budget, neither while they are made nor when a start after a kill reads them from the logs.
pub async fn f55_nonces_of_a_counter_load(lab: &mut Lab) -> anyhow::Result<()> {
    const BUDGET_MIB: u64 = 32;
    const INCREMENTS: u64 = 1_000_000;
    const AT_ONCE: u64 = 500;
    let mut site = lab.bounded_site(BUDGET_MIB)?;
    let (server, region) = start_with_table(&mut site).await?;
    let bystander = Bystander::start(&site).await?;
    let mut wire = Wire::connect(&site.region, "ClientService", None).await?;
    let mut refused = 0;
    for from in (1..=INCREMENTS).step_by(AT_ONCE as usize) {
        let mut out = BytesMut::new();
        for nonce in from..from + AT_ONCE {
            let one = [("q".into(), Bytes::copy_from_slice(&1i64.to_be_bytes()))];
            let row = format!("r{}", nonce % 50);
            let mut increment =
                mutation(MutationType::Increment, row.as_bytes(), one.into_iter(), Durability::AsyncWal);
            increment.nonce = Some(nonce);
            let request = pb::MutateRequest { nonce_group: Some(7), ..mutate(&region, increment) };
            wire.request(&mut out, Method::ClientMutate, &request.encode_to_vec(), &[], 0);
        }
        wire.send(&out).await?;
        for _ in 0..AT_ONCE {
            refused += u64::from(wire.reply().await?.is_err());
        }
    }
    println!("    {INCREMENTS} increments, {refused} of them refused");
    lab.faults += INCREMENTS;
    lab.rounds += 1;
    lab.expect(refused < INCREMENTS / 2, || format!("{refused} of {INCREMENTS} increments were refused"));
    bystander.finish(lab).await?;
    lab.expect_bounded(&server, BUDGET_MIB);
    server.kill();
    let server = site.start()?;
    lab.expect_bounded(&server, BUDGET_MIB);
    server.stop()
}

/// F60: six connections ask for many large replies, scans at first and then Gets, and read none.
pub async fn f60_replies_that_nobody_reads(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.bounded_site(BUDGET_MIB)?;
    let (server, region) = start_with_table(&mut site).await?;
    let value = Bytes::from(vec![7; 100_000]);
    call(&site, Method::ClientMulti, &puts(&region, "", 0..50, &value)).await?;
    call(&site, Method::ClientMulti, &puts(&region, "", 50..100, &value)).await?;
    let columns = (0..60).map(|n| (format!("{n:03}").into(), value.clone()));
    let row = mutation(MutationType::Put, b"large", columns, Durability::SkipWal);
    call(&site, Method::ClientMutate, &mutate(&region, row)).await?;
    let admin = Admin::new(site.master.clone(), site.region.clone());
    admin.flush(&region).await.map_err(said)?;
    let scan = pb::ScanRequest { client_handles_partials: Some(true), ..whole_scan(&region, None) }.encode_to_vec();
    let get = pb::Get { row: "large".into(), ..pb::Get::default() };
    let get = pb::GetRequest { region: specifier(&region), get }.encode_to_vec();
    let bystander = Bystander::start(&site).await?;
    for (method, request) in [(Method::ClientScan, &scan), (Method::ClientGet, &get)] {
        let mut wires = Vec::new();
        for _ in 0..6 {
            let mut wire = Wire::connect(&site.region, "ClientService", None).await?;
            let mut out = BytesMut::new();
            for _ in 0..150 {
                wire.request(&mut out, method, request, &[], 0);
            }
            wire.send(&out).await?;
            wires.push(wire);
        }
        lab.sleep(5000, 6000).await;
        lab.faults += 900;
        lab.rounds += 1;
    }
    bystander.finish(lab).await?;
    lab.expect_bounded(&server, BUDGET_MIB);
    server.stop()
}

/// F62: one batch of two million empty actions of two bytes each, which are hundreds of bytes each once they are
/// decoded.
pub async fn f62_a_batch_that_grows_when_it_is_decoded(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.bounded_site(BUDGET_MIB)?;
    let (mut server, region) = start_with_table(&mut site).await?;
    let bystander = Bystander::start(&site).await?;
    // Field 1: the actions of a region; in them field 1: the region, field 3: an action without anything.
    let specifier = specifier(&region).encode_to_vec();
    let mut actions = BytesMut::new();
    prost::encoding::encode_key(1, prost::encoding::WireType::LengthDelimited, &mut actions);
    prost::encoding::encode_varint(specifier.len() as u64, &mut actions);
    actions.extend_from_slice(&specifier);
    actions.extend_from_slice(&[0x1a, 0].repeat(2_000_000));
    let mut request = BytesMut::new();
    prost::encoding::encode_key(1, prost::encoding::WireType::LengthDelimited, &mut request);
    prost::encoding::encode_varint(actions.len() as u64, &mut request);
    request.extend_from_slice(&actions);
    for _ in 0..3 {
        let mut wire = Wire::connect(&site.region, "ClientService", None).await?;
        let mut out = BytesMut::new();
        wire.request(&mut out, Method::ClientMulti, &request, &[], 0);
        wire.send(&out).await?;
        let reply = wire.reply().await?.map(|message| message.len());
        println!("    {reply:?}");
        lab.faults += 1;
    }
    lab.rounds += 1;
    bystander.finish(lab).await?;
    lab.expect(server.is_alive(), || "the process ended".to_owned());
    lab.expect_bounded(&server, BUDGET_MIB);
    server.stop()
}

/// F63: 8 MiB are written, a scanner is opened and waits, the region is flushed; forty times.
pub async fn f63_scanners_that_pin_flushed_memory(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.bounded_site(BUDGET_MIB)?;
    site.define("hbase.hstore.compactionThreshold", 1000);
    site.define("hbase.hstore.blockingStoreFiles", 2000);
    let (server, region) = start_with_table(&mut site).await?;
    let bystander = Bystander::start(&site).await?;
    let admin = Admin::new(site.master.clone(), site.region.clone());
    let mut wire = Wire::connect(&site.region, "ClientService", None).await?;
    let value = Bytes::from(vec![9; 100_000]);
    let one_row = pb::ScanRequest {
        region: Some(specifier(&region)),
        scan: Some(pb::Scan::default()),
        number_of_rows: Some(1),
        ..pb::ScanRequest::default()
    };
    for round in 0..40 {
        write_all(&site, &puts(&region, &format!("{round:03}-"), 0..80, &value)).await?;
        wire.ask(Method::ClientScan, &one_row).await?;
        // A server that has too many of them may refuse one.
        let _refused = wire.reply().await?;
        retried(|| admin.flush(&region), PATIENCE).await.map_err(said)?;
        lab.faults += 1;
    }
    lab.rounds += 1;
    // Memory that scanners hold delays writes, until those that nobody has used for a second are closed.
    bystander.finish_within(lab, Duration::from_secs(10)).await?;
    lab.expect_bounded(&server, BUDGET_MIB);
    server.stop()
}

/// Writes a batch, again as long as memory for it is refused.
async fn write_all(site: &Site, batch: &pb::MultiRequest) -> anyhow::Result<()> {
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        let answer = call(site, Method::ClientMulti, batch).await;
        let refusal = match answer {
            Ok(message) => {
                let results = pb::MultiResponse::decode(message)?.region_action_result;
                let mut exceptions = results.into_iter().flat_map(|result| {
                    let each = result.result_or_exception.into_iter().filter_map(|one| one.exception);
                    result.exception.into_iter().chain(each)
                });
                match exceptions.next() {
                    None => return Ok(()),
                    Some(exception) => exception.name,
                }
            }
            Err(error) => format!("{error:#}"),
        };
        if tokio::time::Instant::now() > end {
            anyhow::bail!("a batch is refused for {} s: {refusal}", PATIENCE.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// F64: one connection opens scanner after scanner and comes back to none.
pub async fn f64_scanners_without_number(lab: &mut Lab) -> anyhow::Result<()> {
    const BUDGET_MIB: u64 = 32;
    const SCANNERS: u64 = 60_000;
    let mut site = lab.bounded_site(BUDGET_MIB)?;
    let (server, region) = start_with_table(&mut site).await?;
    let admin = Admin::new(site.master.clone(), site.region.clone());
    for prefix in ["a", "b", "c"] {
        call(&site, Method::ClientMulti, &puts(&region, prefix, 0..200, &Bytes::from(vec![9; 500]))).await?;
        admin.flush(&region).await.map_err(said)?;
    }
    let bystander = Bystander::start(&site).await?;
    let scan = pb::ScanRequest { number_of_rows: Some(1), close_scanner: None, ..whole_scan(&region, None) };
    let scan = scan.encode_to_vec();
    let mut wire = Wire::connect(&site.region, "ClientService", None).await?;
    let mut refused = 0u64;
    for _ in 0..SCANNERS / 500 {
        let mut out = BytesMut::new();
        for _ in 0..500 {
            wire.request(&mut out, Method::ClientScan, &scan, &[], 0);
        }
        wire.send(&out).await?;
        for _ in 0..500 {
            refused += u64::from(wire.reply().await?.is_err());
        }
    }
    println!("    {refused} of {SCANNERS} scanners refused");
    lab.faults += SCANNERS;
    lab.rounds += 1;
    lab.expect(refused > 0, || format!("{SCANNERS} scanners are open at once"));
    bystander.finish(lab).await?;
    lab.expect_bounded(&server, BUDGET_MIB);
    server.stop()
}

/// F65: scans that bring compressed cells which nobody wants: 100 KiB each, and 100 MiB once they are inflated.
pub async fn f65_cells_that_grow_when_they_are_inflated(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.bounded_site(BUDGET_MIB)?;
    let (mut server, region) = start_with_table(&mut site).await?;
    call(&site, Method::ClientMulti, &puts(&region, "", 0..1500, &Bytes::from_static(&[b'a'; 22]))).await?;
    let cells = cell::CellBlock::from_specs([cell::CellSpec {
        row: b"r",
        family: b"f",
        qualifier: b"q",
        timestamp: 1,
        type_code: cell::CellType::Put.code(),
        value: &vec![0; 100 << 20],
        tags: b"",
    }]);
    let plain = rpc::CellCodec::KeyValue.encode(cells.bytes().clone(), false);
    let packed = rpc::Compressor::Zlib.compress(&plain);
    drop((cells, plain));
    let scan = whole_scan(&region, Some(costly_filter())).encode_to_vec();
    let put = mutation(MutationType::Put, b"r", std::iter::empty(), Durability::SkipWal);
    let put = pb::MutationProto { associated_cell_count: Some(1), ..put };
    let put = mutate(&region, put).encode_to_vec();
    for (method, request) in [(Method::ClientScan, &scan), (Method::ClientMutate, &put)] {
        let bystander = Bystander::start(&site).await?;
        let mut wires = Vec::new();
        for _ in 0..20 {
            let mut wire = Wire::connect(&site.region, "ClientService", Some(rpc::Compressor::Zlib)).await?;
            let mut out = BytesMut::new();
            wire.request(&mut out, method, request, &packed, 0);
            wire.send(&out).await?;
            wires.push(wire);
            lab.faults += 1;
        }
        lab.sleep(4000, 5000).await;
        lab.rounds += 1;
        drop(wires);
        lab.sleep(1000, 1500).await;
        bystander.finish(lab).await?;
    }
    lab.expect(server.is_alive(), || "the process ended".to_owned());
    lab.expect_bounded(&server, BUDGET_MIB);
    server.stop()
}

/// F66: Gets, in four connections at once, of a row that alone is nearly as large as the budget.
pub async fn f66_gets_of_a_row_as_large_as_the_budget(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.bounded_site(BUDGET_MIB)?;
    let (server, region) = start_with_table(&mut site).await?;
    for n in 0..100 {
        let mut end = 600;
        let column = [(Bytes::from(format!("{n:05}")), Bytes::from(vec![n; 1 << 20]))];
        let put = mutation(MutationType::Put, b"large", column.into_iter(), Durability::SkipWal);
        while let Err(refused) = call(&site, Method::ClientMutate, &mutate(&region, put.clone())).await {
            end -= 1;
            anyhow::ensure!(end > 0, "a put is refused for a minute: {refused:#}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    let bystander = Bystander::start(&site).await?;
    let get = pb::Get { row: "large".into(), ..pb::Get::default() };
    let get = pb::GetRequest { region: specifier(&region), get };
    let mut wires = Vec::new();
    for _ in 0..4 {
        let mut wire = Wire::connect(&site.region, "ClientService", None).await?;
        wire.ask(Method::ClientGet, &get).await?;
        wires.push(wire);
        lab.faults += 1;
    }
    for wire in &mut wires {
        let reply = wire.reply().await?;
        let is_refused = reply.as_ref().is_err_and(|exception| exception.contains("RowTooBigException"));
        lab.expect(is_refused, || {
            let said = reply.map(|message| format!("{} bytes of message", message.len()));
            format!("a Get of a row of 100 MiB with a budget of {BUDGET_MIB} MiB: {said:?}")
        });
    }
    lab.rounds += 1;
    bystander.finish(lab).await?;
    lab.expect_bounded(&server, BUDGET_MIB);
    server.stop()
}

/// F68: a thousand regions in a table and three hundred families in another, written to, killed and started again.
pub async fn f68_many_regions_and_families(lab: &mut Lab) -> anyhow::Result<()> {
    const BUDGET_MIB: u64 = 256;
    const REGIONS: usize = 1000;
    const FAMILIES: usize = 300;
    let mut site = lab.bounded_site(BUDGET_MIB)?;
    let server = site.start()?;
    let admin = Admin::new(site.master.clone(), site.region.clone());
    let splits: Vec<String> = (1..REGIONS).map(|n| format!("{n:06}")).collect();
    admin.create("regions", &splits.iter().map(String::as_str).collect::<Vec<_>>(), true).await?;
    let families: Vec<String> = (0..FAMILIES).map(|n| format!("f{n:04}")).collect();
    admin.create_with_families("families", &families).await?;
    let remote = Arc::new(Remote::new(site.region.clone(), "ClientService", PATIENCE));
    let (many, wide) = (Table::new("regions", remote.clone()), Table::new("families", remote));
    let rows: Vec<(Vec<u8>, Vec<u8>)> = (0..REGIONS).map(|n| (format!("{n:06}x").into_bytes(), vec![1])).collect();
    let columns: Vec<(&str, &str, &[u8])> = families.iter().map(|family| (&family[..], "q", &b"v"[..])).collect();
    for outcome in many.put_all(&rows).await {
        outcome.map_err(said)?;
    }
    for row in 0..20 {
        wide.put(format!("row{row}").as_bytes(), &columns).await.map_err(said)?;
        lab.tally.done += 1;
    }
    admin.flush(&wide.regions().await.map_err(said)?[0].1).await.map_err(said)?;
    lab.expect_bounded(&server, BUDGET_MIB);
    server.kill();
    let server = site.start()?;
    println!("    start after the kill: {} ms", server.start_took.as_millis());
    let found = many.scan(b"", b"", 1000, PATIENCE).await.map_err(said)?;
    lab.expect(found.len() == REGIONS, || format!("{} rows of {REGIONS} after the kill", found.len()));
    let row = wide.get(b"row7").await.map_err(said)?;
    let cells = row.map_or(0, |row| row.cells.len());
    lab.expect(cells == FAMILIES, || format!("{cells} cells of {FAMILIES} after the kill"));
    lab.faults += 1;
    lab.rounds += 1;
    lab.expect_bounded(&server, BUDGET_MIB);
    server.stop()
}
