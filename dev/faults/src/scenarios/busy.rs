//! Loads that once made the server silent: others are answered beside them, and it stops when it is told to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use prost::Message;
use proto::methods::Method;
use proto::pb;
use proto::pb::mutation_proto::{Durability, MutationType};

use crate::bystander::{Bystander, status_page};
use crate::lab::Lab;
use crate::remote::{Admin, Failure, Remote, Table, specifier};
use crate::site::{Server, Site};
use crate::wire::{Wire, cheap_filter, costly_filter, mutate, mutation, whole_scan};

const PATIENCE: Duration = Duration::from_secs(60);
const BUDGET_MIB: u64 = 128;
/// What administration and status pages may take. The defects held them up for minutes; the target of a second is held
/// by `cargo xtask neighbours`, on a quiet machine.
const ADMINISTRATION: Duration = Duration::from_secs(5);
/// What a stop may take.
const STOP: Duration = Duration::from_secs(10);

/// A running server with a table `noise` of one region, whose name is returned.
pub async fn start_with_table(site: &mut Site) -> anyhow::Result<(Server, Bytes)> {
    let server = site.start()?;
    Admin::new(site.master.clone(), site.region.clone()).create("noise", &[], true).await?;
    let table = Table::new("noise", Arc::new(Remote::new(site.region.clone(), "ClientService", PATIENCE)));
    let regions = table.regions().await.map_err(said)?;
    Ok((server, regions[0].1.clone()))
}

pub fn said(failure: Failure) -> anyhow::Error {
    anyhow::anyhow!("{}", failure.text().to_owned())
}

/// One call over a connection of its own; an exception is an error.
pub async fn call(site: &Site, method: Method, message: &impl Message) -> anyhow::Result<Bytes> {
    let mut wire = Wire::connect(&site.region, "ClientService", None).await?;
    wire.ask(method, message).await?;
    wire.reply().await?.map_err(|exception| anyhow::anyhow!(exception))
}

/// Puts of one column each, of rows with this prefix.
pub fn puts(region: &[u8], prefix: &str, rows: std::ops::Range<u64>, value: &Bytes) -> pb::MultiRequest {
    let put = |row: u64| {
        let columns = [("q".into(), value.clone())];
        let row = format!("{prefix}{row:08}");
        mutation(MutationType::Put, row.as_bytes(), columns.into_iter(), Durability::SkipWal)
    };
    let action = |row| pb::Action { index: Some(row as u32), mutation: Some(put(row)), ..pb::Action::default() };
    let action = rows.map(action).collect();
    let actions = pb::RegionAction { region: specifier(region), action, ..pb::RegionAction::default() };
    pb::MultiRequest { region_action: vec![actions], ..pb::MultiRequest::default() }
}

/// Rows whose values the costly filter works on.
async fn fill(site: &Site, region: &[u8], rows: u64) -> anyhow::Result<()> {
    let value = Bytes::from_static(&[b'a'; 20]);
    for from in (0..rows).step_by(500) {
        call(site, Method::ClientMulti, &puts(region, "", from..(from + 500).min(rows), &value)).await?;
    }
    Admin::new(site.master.clone(), site.region.clone()).flush(region).await.map_err(said)
}

/// F56: four Gets with a costly filter, and four batches of thousands of Gets with a cheap one, of a row of 6,000 cells
/// in memory: they do not keep the network threads, and when their clients leave nobody works for them any more.
pub async fn f56_filtered_gets_of_a_wide_row(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.bounded_site(BUDGET_MIB)?;
    let (server, region) = start_with_table(&mut site).await?;
    for from in (0..6000).step_by(1000) {
        let columns = (from..from + 1000).map(|n| (format!("{n:06}").into(), Bytes::from_static(&[b'a'; 20])));
        let put = mutation(MutationType::Put, b"wide", columns, Durability::SkipWal);
        call(&site, Method::ClientMutate, &mutate(&region, put)).await?;
    }
    let get = |filter| pb::Get { row: "wide".into(), filter: Some(filter), ..pb::Get::default() };
    let costly = pb::GetRequest { region: specifier(&region), get: get(costly_filter()) };
    let action = pb::Action { index: Some(0), get: Some(get(cheap_filter())), ..pb::Action::default() };
    let actions =
        pb::RegionAction { region: specifier(&region), action: vec![action; 3000], ..pb::RegionAction::default() };
    let cheap = pb::MultiRequest { region_action: vec![actions], ..pb::MultiRequest::default() };
    let bystander = Bystander::start(&site).await?;
    for round in 0..2 {
        let mut wires = Vec::new();
        for _ in 0..4 {
            let mut wire = Wire::connect(&site.region, "ClientService", None).await?;
            match round {
                0 => wire.ask(Method::ClientMulti, &cheap).await?,
                _ => wire.ask(Method::ClientGet, &costly).await?,
            }
            wires.push(wire);
        }
        lab.sleep(4000, 4500).await;
        lab.faults += 4;
        lab.rounds += 1;
    }
    bystander.finish(lab).await?;
    lab.expect_idle(&server).await;
    lab.expect_bounded(&server, BUDGET_MIB);
    server.stop()
}

/// Whether every row of a batch was written.
async fn write_batch(wire: &mut Wire, request: &[u8]) -> anyhow::Result<bool> {
    let mut out = BytesMut::new();
    wire.request(&mut out, Method::ClientMulti, request, &[], 0);
    wire.send(&out).await?;
    let response = wire.reply().await?.ok().map(pb::MultiResponse::decode).transpose()?;
    Ok(response.is_some_and(|response| {
        let results = &response.region_action_result;
        results.iter().all(|result| {
            result.exception.is_none() && result.result_or_exception.iter().all(|one| one.exception.is_none())
        })
    }))
}

/// F57: two clients that write batches of 2 and of 16 MiB as fast as they can.
pub async fn f57_large_batches(lab: &mut Lab) -> anyhow::Result<()> {
    const BUDGET_MIB: u64 = 256;
    let mut site = lab.bounded_site(BUDGET_MIB)?;
    let (server, region) = start_with_table(&mut site).await?;
    let bystander = Bystander::start(&site).await?;
    let value = Bytes::from(vec![b'v'; 1000]);
    let (mut done, mut refused) = (0u64, 0u64);
    for mib in [2, 16] {
        let mut clients = Vec::new();
        for client in 0..2 {
            let request = puts(&region, &format!("{mib}-{client}-"), 0..mib * 1024, &value).encode_to_vec();
            let mut wire = Wire::connect(&site.region, "ClientService", None).await?;
            let address = site.region.clone();
            clients.push(tokio::spawn(async move {
                let (mut done, mut refused) = (0, 0);
                for _ in 0..128 / mib {
                    // Memory that is full refuses rows or batches with exceptions that clients retry; a batch that is
                    // refused before it is read whole takes its connection with it.
                    match write_batch(&mut wire, &request).await {
                        Ok(true) => done += 1,
                        Ok(false) => refused += 1,
                        Err(_) => {
                            refused += 1;
                            wire = Wire::connect(&address, "ClientService", None).await?;
                        }
                    }
                }
                anyhow::Ok((done, refused))
            }));
        }
        for client in clients {
            let (now_done, now_refused) = client.await??;
            (done, refused) = (done + now_done, refused + now_refused);
        }
        lab.faults += 2;
        lab.rounds += 1;
    }
    println!("    {done} batches written, {refused} refused");
    lab.expect(done > 0, || "no batch was written".to_owned());
    bystander.finish(lab).await?;
    lab.expect_bounded(&server, BUDGET_MIB);
    server.stop()
}

/// Asks for scans with a costly filter, `count` over each of four connections.
async fn saturate(site: &Site, region: &[u8], count: usize, timeout_ms: u32) -> anyhow::Result<Vec<Wire>> {
    let scan = whole_scan(region, Some(costly_filter())).encode_to_vec();
    let mut wires = Vec::new();
    for _ in 0..4 {
        let mut wire = Wire::connect(&site.region, "ClientService", None).await?;
        let mut out = BytesMut::new();
        for _ in 0..count {
            wire.request(&mut out, Method::ClientScan, &scan, &[], timeout_ms);
        }
        wire.send(&out).await?;
        wires.push(wire);
    }
    Ok(wires)
}

/// F58: sixty slow scans that send no heartbeat: administration, the master, hbase:meta and the status pages go on, and
/// SIGTERM ends the process in the middle of it.
pub async fn f58_saturated_by_scans_and_stopped(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.bounded_site(BUDGET_MIB)?;
    let (server, region) = start_with_table(&mut site).await?;
    fill(&site, &region, 2000).await?;
    let bystander = Bystander::start(&site).await?;
    let wires = saturate(&site, &region, 15, 0).await?;
    lab.sleep(500, 600).await;
    let admin = Admin::new(site.master.clone(), site.region.clone());
    let table = || Table::new("noise", Arc::new(Remote::new(site.region.clone(), "ClientService", PATIENCE)));
    for round in 0..3 {
        let begun = Instant::now();
        admin.create(&format!("while-busy-{round}"), &[], true).await?;
        let created = begun.elapsed();
        admin.flush(&region).await.map_err(said)?;
        let flushed = begun.elapsed() - created;
        table().regions().await.map_err(said)?;
        let found = begun.elapsed() - flushed - created;
        status_page(&site.page).await?;
        let page = begun.elapsed() - found - flushed - created;
        for (what, took) in
            [("creating a table", created), ("a flush", flushed), ("a scan of hbase:meta", found), ("a page", page)]
        {
            println!("    {what}: {} ms", took.as_millis());
            lab.expect(took <= ADMINISTRATION, || format!("{what} took {} ms beside 60 scans", took.as_millis()));
        }
        lab.rounds += 1;
    }
    lab.faults += 60;
    bystander.finish(lab).await?;
    lab.expect_bounded(&server, BUDGET_MIB);
    let took = server.stop_within(STOP)?;
    println!("    SIGTERM: {} ms", took.as_millis());
    drop(wires);
    Ok(())
}

/// F59: a hundred scans whose clients wait for a second and leave after two: what they asked for is not done any more,
/// neither what waits nor what runs.
pub async fn f59_clients_that_leave(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.bounded_site(BUDGET_MIB)?;
    let (server, region) = start_with_table(&mut site).await?;
    fill(&site, &region, 2000).await?;
    let bystander = Bystander::start(&site).await?;
    for (round, timeout_ms) in [1000, 0].into_iter().enumerate() {
        let wires = saturate(&site, &region, 25, timeout_ms).await?;
        tokio::time::sleep(Duration::from_secs(2)).await;
        drop(wires);
        let begun = Instant::now();
        Admin::new(site.master.clone(), site.region.clone()).flush(&region).await.map_err(said)?;
        println!("    round {round}: a flush when all had left: {} ms", begun.elapsed().as_millis());
        lab.expect(begun.elapsed() <= ADMINISTRATION, || format!("a flush took {} s", begun.elapsed().as_secs()));
        lab.faults += 100;
        lab.rounds += 1;
    }
    bystander.finish(lab).await?;
    lab.expect_idle(&server).await;
    lab.expect_bounded(&server, BUDGET_MIB);
    server.stop()
}

/// F61: an Increment of 20,000 columns, again and again, by four clients: its cost grows with its size alone, and rows
/// beside it wait for nothing.
pub async fn f61_increments_of_many_columns(lab: &mut Lab) -> anyhow::Result<()> {
    const COLUMNS: u64 = 20_000;
    let mut site = lab.bounded_site(BUDGET_MIB)?;
    let (server, region) = start_with_table(&mut site).await?;
    let bystander = Bystander::start(&site).await?;
    let mut clients = Vec::new();
    for client in 0..4 {
        let columns = (0..COLUMNS).map(|n| (format!("{n:07}").into(), Bytes::copy_from_slice(&1i64.to_be_bytes())));
        let row = format!("counters{client}");
        let increment = mutation(MutationType::Increment, row.as_bytes(), columns, Durability::SkipWal);
        let request = mutate(&region, increment);
        let mut wire = Wire::connect(&site.region, "ClientService", None).await?;
        clients.push(tokio::spawn(async move {
            let mut longest = Duration::ZERO;
            for _ in 0..5 {
                let begun = Instant::now();
                wire.ask(Method::ClientMutate, &request).await?;
                wire.reply().await?.map_err(|exception| anyhow::anyhow!(exception))?;
                longest = longest.max(begun.elapsed());
            }
            anyhow::Ok(longest)
        }));
    }
    for client in clients {
        let longest = client.await??;
        println!("    an increment of {COLUMNS} columns: at most {} ms", longest.as_millis());
        lab.expect(longest < Duration::from_secs(3), || format!("an increment took {} ms", longest.as_millis()));
        lab.faults += 5;
    }
    lab.rounds += 1;
    bystander.finish(lab).await?;
    lab.expect_bounded(&server, BUDGET_MIB);
    server.stop()
}
