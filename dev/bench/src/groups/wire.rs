//! End to end: calls over the loopback to the real server, which is charged its own CPU time.
//!
//! One connection, as a client has to one server; requests are encoded beforehand. Client and server share the
//! machine, so throughput is that of both together.

use crate::Group;
use crate::data::{self, VALUE_BYTES};
use crate::measure::{Done, Session, Size, Whose};
use crate::server::{Server, specifier};
use anyhow::Context;
use base::Rng;
use bytes::Bytes;
use cell::CellBlock;
use convert::to_proto;
use model::{Durability, Get};
use prost::Message;
use proto::methods::{Method, MethodInfo};
use proto::pb;
use rpc::client::{Client, ClientReply};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::runtime::Runtime;

pub const GROUP: Group = Group {
    names: &[
        "rpc.get.c1",
        "rpc.get.c32",
        "rpc.get.absent.c32",
        "rpc.multi100.get.c1",
        "rpc.multi100.get.c32",
        "rpc.scan100.c1",
        "rpc.scan100.c32",
        "rpc.scan.full",
        "rpc.put.relaxed.c1",
        "rpc.put.relaxed.c32",
        "rpc.put.synced.c1",
        "rpc.put.synced.c32",
        "rpc.multi100.put.c1",
        "rpc.multi100.put.c32",
    ],
    needs_server: true,
    run,
};

/// Different requests of a kind, used round and round.
const POOL: u64 = 8192;
/// Rows of a multi or a short scan.
const MANY: u64 = 100;

/// A request, ready to be sent.
pub(super) struct Request {
    method: &'static MethodInfo,
    message: Vec<u8>,
    cells: Option<CellBlock>,
}

impl Request {
    fn new(method: Method, message: &impl Message, cells: Option<CellBlock>) -> Request {
        Request { method: method.info(), message: message.encode_to_vec(), cells }
    }

    async fn send(&self, client: &Client) -> anyhow::Result<ClientReply> {
        Ok(client.call_raw(self.method.name, &self.message, self.cells.as_ref()).await?)
    }
}

/// Requests of one kind.
pub(super) type Requests = Arc<Vec<Request>>;

pub(super) struct Wire {
    runtime: Runtime,
    client: Arc<Client>,
    region: Bytes,
    server: Server,
    rows: u64,
    /// Which of the requests is the next: not those again that were sent just now.
    first: Cell<u64>,
}

fn run(session: &mut Session<'_>) -> anyhow::Result<()> {
    let wire = Wire::start(session, &[])?;
    let present = wire.present();
    let gets = wire.gets(&present);
    wire.calls(session, "rpc.get.c1", &gets, 1, 1, one_cell)?;
    wire.calls(session, "rpc.get.c32", &gets, 32, 1, one_cell)?;
    let absent: Requests = (0..POOL).map(|n| wire.get(wire.rows + n)).collect::<Vec<_>>().into();
    wire.calls(session, "rpc.get.absent.c32", &absent, 32, 1, |reply| cells(reply, 0))?;
    let multi: Requests =
        present.chunks(MANY as usize).map(|rows| wire.multi_get(rows)).take(64).collect::<Vec<_>>().into();
    wire.calls(session, "rpc.multi100.get.c1", &multi, 1, MANY, |reply| cells(reply, MANY))?;
    wire.calls(session, "rpc.multi100.get.c32", &multi, 32, MANY, |reply| cells(reply, MANY))?;
    let scans: Requests = present.iter().map(|n| wire.short_scan(*n)).collect::<Vec<_>>().into();
    // Those that begin near the end find less.
    wire.calls(session, "rpc.scan100.c1", &scans, 1, MANY, |_| Ok(()))?;
    wire.calls(session, "rpc.scan100.c32", &scans, 32, MANY, |_| Ok(()))?;
    session.measure_cpu_of(
        wire.whose(),
        "rpc.scan.full",
        Size::Timed { most: u64::MAX, step: wire.rows },
        |_| Ok(()),
        |(), n| {
            for _ in 0..n / wire.rows {
                let seen = wire.runtime.block_on(wire.full_scan())?;
                anyhow::ensure!(seen == wire.rows, "{seen} rows, not {}", wire.rows);
            }
            Ok(Done { ops: n, bytes: n * VALUE_BYTES as u64 })
        },
    )?;

    for (kind, durability) in [("relaxed", Durability::UseDefault), ("synced", Durability::FsyncWal)] {
        let puts: Requests = (0..POOL).map(|n| wire.put(n, durability)).collect::<Vec<_>>().into();
        wire.calls(session, &format!("rpc.put.{kind}.c1"), &puts, 1, 1, |_| Ok(()))?;
        wire.calls(session, &format!("rpc.put.{kind}.c32"), &puts, 32, 1, |_| Ok(()))?;
    }
    let multi: Requests = (0..64).map(|n| wire.multi_put(n * MANY..(n + 1) * MANY)).collect::<Vec<_>>().into();
    wire.calls(session, "rpc.multi100.put.c1", &multi, 1, MANY, |_| Ok(()))?;
    wire.calls(session, "rpc.multi100.put.c32", &multi, 32, MANY, |_| Ok(()))
}

fn cells(reply: &ClientReply, wanted: u64) -> anyhow::Result<()> {
    anyhow::ensure!(reply.cells.len() as u64 == wanted, "{} cells, not {wanted}", reply.cells.len());
    Ok(())
}

pub(super) fn one_cell(reply: &ClientReply) -> anyhow::Result<()> {
    cells(reply, 1)
}

impl Wire {
    /// A server of its own with a table, whose rows are in one store file and in its cache.
    pub(super) fn start(session: &Session<'_>, settings: &[&str]) -> anyhow::Result<Wire> {
        let binary = session.server().context("there is no server to measure")?;
        let server = Server::start(binary, session.scratch()?, settings)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let region = runtime.block_on(server.create_table("bench"))?;
        let client = Arc::new(runtime.block_on(server.connect("ClientService"))?);
        let wire = Wire { runtime, client, region, server, rows: session.scale().rows, first: Cell::new(0) };
        wire.load()?;
        Ok(wire)
    }

    /// Numbers of rows that are there, the same for every server.
    pub(super) fn present(&self) -> Vec<u64> {
        let rng = Rng::seeded(21);
        (0..POOL).map(|_| rng.below(self.rows)).collect()
    }

    /// A Get of each row.
    pub(super) fn gets(&self, rows: &[u64]) -> Requests {
        rows.iter().map(|n| self.get(*n)).collect::<Vec<_>>().into()
    }

    /// Whose CPU time its calls take.
    pub(super) fn whose(&self) -> Whose {
        Whose::Server(self.server.pid())
    }

    /// Fills the table, flushes it and reads it once, so that every block is cached.
    fn load(&self) -> anyhow::Result<()> {
        self.runtime.block_on(async {
            for start in (0..self.rows).step_by(MANY as usize) {
                self.multi_put(start..(start + MANY).min(self.rows)).send(&self.client).await?;
            }
            let admin = self.server.connect("AdminService").await?;
            let request =
                pb::FlushRegionRequest { region: specifier(&self.region), ..pb::FlushRegionRequest::default() };
            admin.call(Method::AdminFlushRegion.info(), &request, None).await?;
            let seen = self.full_scan().await?;
            anyhow::ensure!(seen == self.rows, "{seen} rows of {} were loaded", self.rows);
            Ok(())
        })
    }

    fn get(&self, n: u64) -> Request {
        let get = to_proto::get(&Get::new(data::row(n)));
        Request::new(Method::ClientGet, &pb::GetRequest { region: specifier(&self.region), get }, None)
    }

    fn put(&self, n: u64, durability: Durability) -> Request {
        let put = data::puts(n..n + 1, durability).remove(0);
        let mutation = to_proto::mutation_without_cells(&put);
        let region = specifier(&self.region);
        let message = pb::MutateRequest { region, mutation, ..pb::MutateRequest::default() };
        Request::new(Method::ClientMutate, &message, Some(put.cells))
    }

    fn multi(&self, action: Vec<pb::Action>, cells: Option<CellBlock>) -> Request {
        let action = pb::RegionAction { region: specifier(&self.region), action, ..pb::RegionAction::default() };
        let message = pb::MultiRequest { region_action: vec![action], ..pb::MultiRequest::default() };
        Request::new(Method::ClientMulti, &message, cells)
    }

    fn multi_get(&self, rows: &[u64]) -> Request {
        let action = rows.iter().zip(0..).map(|(n, index)| pb::Action {
            index: Some(index),
            get: Some(to_proto::get(&Get::new(data::row(*n)))),
            ..pb::Action::default()
        });
        self.multi(action.collect(), None)
    }

    fn multi_put(&self, rows: std::ops::Range<u64>) -> Request {
        let puts = data::puts(rows, Durability::UseDefault);
        let action = puts.iter().zip(0..).map(|(put, index)| pb::Action {
            index: Some(index),
            mutation: Some(to_proto::mutation_without_cells(put)),
            ..pb::Action::default()
        });
        let value = data::value(VALUE_BYTES, &Rng::seeded(1));
        let cells = CellBlock::from_specs(puts.iter().map(|put| data::spec(&put.row, &value)));
        self.multi(action.collect(), Some(cells))
    }

    /// Open, rows and close in one call, as clients send it for a scan with a small limit.
    fn short_scan(&self, n: u64) -> Request {
        let scan = pb::Scan { start_row: Some(data::row(n)), ..pb::Scan::default() };
        let message = pb::ScanRequest {
            region: Some(specifier(&self.region)),
            scan: Some(scan),
            number_of_rows: Some(MANY as u32),
            limit_of_rows: Some(MANY as u32),
            close_scanner: Some(true),
            client_handles_partials: Some(true),
            client_handles_heartbeats: Some(true),
            ..pb::ScanRequest::default()
        };
        Request::new(Method::ClientScan, &message, None)
    }

    /// The whole table by calls of up to 2 MB, as HBase's client makes them; returns the number of rows.
    async fn full_scan(&self) -> anyhow::Result<u64> {
        let scan = pb::Scan { max_result_size: Some(2 << 20), ..pb::Scan::default() };
        let common = pb::ScanRequest {
            number_of_rows: Some(i32::MAX as u32),
            client_handles_partials: Some(true),
            client_handles_heartbeats: Some(true),
            ..pb::ScanRequest::default()
        };
        let mut request = pb::ScanRequest { region: Some(specifier(&self.region)), scan: Some(scan), ..common.clone() };
        let mut seen = 0;
        for call in 0.. {
            let reply = self.client.call(Method::ClientScan.info(), &request, None).await?;
            let response: pb::ScanResponse = reply.decode()?;
            seen += reply.cells.len() as u64;
            if !response.more_results() || !response.more_results_in_region() {
                break;
            }
            request = pb::ScanRequest { scanner_id: response.scanner_id, next_call_seq: Some(call), ..common.clone() };
        }
        Ok(seen)
    }

    /// Sends requests, `at_once` of them waiting for their replies at any time. An operation is a request.
    fn calls(
        &self,
        session: &mut Session<'_>,
        name: &str,
        requests: &Requests,
        at_once: u64,
        rows_per_call: u64,
        check: fn(&ClientReply) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        if !session.wants(name) {
            return Ok(());
        }
        let whose = self.whose();
        let bytes_per_call = if name.contains("absent") { 0 } else { rows_per_call * VALUE_BYTES as u64 };
        session.measure_cpu_of(
            whose,
            name,
            Size::Timed { most: u64::MAX, step: at_once },
            |_| Ok(()),
            |(), n| {
                self.send(requests, n, at_once, check)?;
                Ok(Done { ops: n, bytes: n * bytes_per_call })
            },
        )
    }

    /// Sends `n` requests, `at_once` of them waiting for their replies at any time.
    pub(super) fn send(
        &self,
        requests: &Requests,
        n: u64,
        at_once: u64,
        check: fn(&ClientReply) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let (left, next) = (Arc::new(AtomicU64::new(n)), Arc::new(AtomicU64::new(self.first.get())));
        self.first.set(self.first.get() + n);
        let caller = || {
            let (client, requests) = (self.client.clone(), requests.clone());
            let (left, next) = (left.clone(), next.clone());
            async move {
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                    let at = next.fetch_add(1, Ordering::Relaxed) as usize % requests.len();
                    check(&requests[at].send(&client).await?)?;
                }
                anyhow::Ok(())
            }
        };
        self.runtime.block_on(async {
            let callers: Vec<_> = (0..at_once).map(|_| tokio::spawn(caller())).collect();
            for caller in callers {
                caller.await??;
            }
            Ok(())
        })
    }
}
