//! A client of the simulated cluster: finds regions by hbase:meta, remembers where they were, asks over the network, and asks again.

use super::ensemble::Session;
use super::gate::Gate;
use super::network::Net;
use super::servers::PARENT;
use crate::calls::{Failure, RowCells};
use cell::{CellBlock, CellBuffer};
use convert::to_proto;
use coordination::Coordinator;
use coordination::hbase_znodes::{read_master, read_meta_location};
use master::cluster::RegionState;
use master::meta::{MetaContent, parse_meta};
use model::{Condition, Get, Mutation, RegionInfo, Scan, ServerName, TableName};
use parking_lot::Mutex;
use proto::methods::Method;
use proto::{Message, pb};
use rpc::Dialer;
use rpc::client::{Client, ClientError, ClientOptions};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(100);
/// Rows asked for in one call.
const ROWS_PER_CALL: u32 = 1_000;

/// Why a single attempt brought nothing.
enum Missed {
    /// Nothing was done.
    No(String),
    /// It was done or not.
    Maybe(String),
}

fn cells_of(cells: &CellBuffer) -> RowCells {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let one = |cell: cell::CellRef<'_>| {
        (format!("{}:{}", text(cell.family()), text(cell.qualifier())), cell.timestamp(), cell.value().to_vec())
    };
    cells.iter_from(0).map(one).collect()
}

/// An answer of which nobody reads anything.
type Nothing = pb::FlushRegionResponse;

/// One client.
pub struct Caller {
    dialer: Dialer,
    session: Arc<Session>,
    /// A call without an answer by then is given up; what became of it is not known.
    patience: Duration,
    /// Calls are not tried again.
    gives_up: AtomicBool,
    connections: Mutex<BTreeMap<String, Arc<Client>>>,
    /// Where regions were when it looked last, by table.
    places: Mutex<BTreeMap<TableName, Vec<(RegionInfo, ServerName)>>>,
}

impl Caller {
    /// A client in the process of `gate`.
    pub fn new(net: &Net, session: Arc<Session>, gate: Arc<Gate>, patience: Duration) -> Caller {
        Caller {
            dialer: Dialer::Network(net.of(gate)),
            session,
            patience,
            gives_up: AtomicBool::new(false),
            connections: Mutex::default(),
            places: Mutex::default(),
        }
    }

    /// Asks the server once.
    async fn ask<M: Message + Default>(
        &self,
        server: &ServerName,
        method: Method,
        request: &[u8],
    ) -> Result<(M, CellBuffer), Missed> {
        self.ask_with(server, method, request, None).await
    }

    async fn ask_with<M: Message + Default>(
        &self,
        server: &ServerName,
        method: Method,
        request: &[u8],
        block: Option<&CellBlock>,
    ) -> Result<(M, CellBuffer), Missed> {
        let service = method.info().service.name();
        let address = format!("{service} at {}", server.address());
        let known = self.connections.lock().get(&address).cloned();
        let client = match known {
            Some(client) => client,
            None => {
                let connect = self.dialer.connect(&server.host, server.port, service, ClientOptions::default());
                let connected = tokio::time::timeout(self.patience, connect).await;
                let client = match connected {
                    Ok(Ok(client)) => Arc::new(client),
                    Ok(Err(error)) => return Err(Missed::No(error.to_string())),
                    Err(_) => return Err(Missed::No("no connection in time".to_owned())),
                };
                self.connections.lock().insert(address.clone(), client.clone());
                client
            }
        };
        let missed =
            match tokio::time::timeout(self.patience, client.call_raw(method.info().name, request, block)).await {
                Ok(Ok(reply)) => {
                    let mut cells = CellBuffer::new();
                    for cell in &reply.cells {
                        cells.push(cell);
                    }
                    return match reply.decode() {
                        Ok(message) => Ok((message, cells)),
                        Err(error) => Err(Missed::Maybe(error.to_string())),
                    };
                }
                Ok(Err(ClientError::Remote(exception))) => {
                    let class = exception.exception_class_name().to_owned();
                    let text = exception.stack_trace().lines().next().unwrap_or_default().to_owned();
                    return Err(match Failure::of(&class, &text) {
                        Failure::No(text) => Missed::No(text),
                        Failure::Maybe(text) => Missed::Maybe(text),
                    });
                }
                Ok(Err(error)) => Missed::Maybe(error.to_string()),
                Err(_) => Missed::Maybe("no answer in time".to_owned()),
            };
        self.connections.lock().remove(&address);
        Err(missed)
    }

    /// All of hbase:meta, as its server has it.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn meta(&self) -> Result<MetaContent, String> {
        let node = self.session.latest_value(&format!("{PARENT}/meta-region-server")).await;
        let node = node.map_err(|over| over.to_string())?;
        let server = node.as_ref().and_then(read_meta_location).ok_or("hbase:meta is nowhere")?;
        let cells = self.scan_region(&server, &RegionInfo::meta(), &master::meta::whole_scan()).await?;
        Ok(parse_meta(&cells))
    }

    async fn scan_region(&self, server: &ServerName, region: &RegionInfo, scan: &Scan) -> Result<CellBuffer, String> {
        let mut all = CellBuffer::new();
        let mut request = pb::ScanRequest {
            region: Some(to_proto::region_specifier(region)),
            scan: Some(to_proto::scan(scan)),
            ..pb::ScanRequest::default()
        };
        let mut next_call_seq = 0;
        loop {
            request.number_of_rows = Some(ROWS_PER_CALL);
            request.client_handles_partials = Some(true);
            request.client_handles_heartbeats = Some(true);
            let answer: Result<(pb::ScanResponse, CellBuffer), Missed> =
                self.ask(server, Method::ClientScan, &request.encode_to_vec()).await;
            let (answer, cells) = answer.map_err(|(Missed::No(text) | Missed::Maybe(text))| text)?;
            for cell in cells.iter_from(0) {
                all.push(cell);
            }
            let has_ended = answer.more_results_in_region == Some(false) || answer.more_results == Some(false);
            let Some(scanner_id) = answer.scanner_id.filter(|_| !has_ended) else { return Ok(all) };
            request = pb::ScanRequest {
                scanner_id: Some(scanner_id),
                next_call_seq: Some(next_call_seq),
                ..pb::ScanRequest::default()
            };
            next_call_seq += 1;
        }
    }

    /// Where the regions of `table` are, by hbase:meta as it is now.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn regions(&self, table: &TableName) -> Result<Vec<(RegionInfo, ServerName)>, String> {
        let meta = self.meta().await?;
        let rows = meta.regions.into_iter().filter(|row| row.info.table == *table);
        let live = rows.filter(|row| !row.info.split && row.state == Some(RegionState::Open));
        Ok(live.filter_map(|row| Some((row.info, row.location?))).collect())
    }

    /// Has all regions of a table flushed, where they are now.
    ///
    /// # Errors
    /// One cannot be: it may be on its way to somewhere else, or be split.
    pub async fn flush_all(&self, table: &TableName) -> Result<(), String> {
        for (region, server) in self.regions(table).await? {
            let region = to_proto::region_specifier(&region);
            let request = pb::FlushRegionRequest { region, ..Default::default() };
            self.ask_server(&server, Method::AdminFlushRegion, &request).await?;
        }
        Ok(())
    }

    /// Where the read replicas of a table's regions are, by hbase:meta as it is now.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn replicas(&self, table: &TableName) -> Result<Vec<(RegionInfo, ServerName)>, String> {
        let meta = self.meta().await?;
        let rows = meta.regions.into_iter().filter(|row| row.info.table == *table && !row.info.split);
        let open = rows.flat_map(|row| row.replicas).filter(|replica| replica.state == Some(RegionState::Open));
        Ok(open.filter_map(|replica| Some((replica.info, replica.location?))).collect())
    }

    /// A row of a read replica, all versions, asked for once; `None` without an answer.
    pub async fn get_from_replica(&self, (region, server): &(RegionInfo, ServerName), row: &str) -> Option<RowCells> {
        let get = Get { max_versions: u32::MAX >> 1, timeline: true, ..Get::new(row.to_owned()) };
        let request = pb::GetRequest { region: to_proto::region_specifier(region), get: to_proto::get(&get) };
        let asked = self.ask::<pb::GetResponse>(server, Method::ClientGet, &request.encode_to_vec()).await;
        asked.ok().map(|(_, cells)| cells_of(&cells))
    }

    async fn locate(&self, table: &TableName, row: &[u8]) -> Result<(RegionInfo, ServerName), String> {
        let find = |places: &[(RegionInfo, ServerName)]| places.iter().find(|(info, _)| info.contains(row)).cloned();
        let known = self.places.lock().get(table).and_then(|places| find(places));
        if let Some(known) = known {
            return Ok(known);
        }
        let places = self.regions(table).await?;
        let found = find(&places);
        self.places.lock().insert(table.clone(), places);
        found.ok_or_else(|| "no region has that row".to_owned())
    }

    /// Asks the region of `row`, again and again while nothing can have been done, or `may_repeat`, so many times.
    async fn call<M: Message + Default>(
        &self,
        (table, row): (&TableName, &[u8]),
        method: Method,
        request: impl Fn(&RegionInfo) -> Vec<u8>,
        may_repeat: bool,
        tries: u32,
    ) -> Result<(M, RowCells), Failure> {
        let mut doubt = None;
        let mut last = String::new();
        for attempt in 0..tries {
            if attempt > 0 && self.gives_up.load(Ordering::Relaxed) {
                break;
            }
            let (region, server) = match self.locate(table, row).await {
                Ok(place) => place,
                Err(why) => {
                    last = why;
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            match self.ask::<M>(&server, method, &request(&region)).await {
                Ok((answer, cells)) => return Ok((answer, cells_of(&cells))),
                Err(Missed::No(why)) => last = why,
                Err(Missed::Maybe(why)) => {
                    doubt = Some(why.clone());
                    last = why;
                    if !may_repeat {
                        break;
                    }
                }
            }
            self.places.lock().remove(table);
            tokio::time::sleep(PAUSE).await;
        }
        // An earlier attempt may still be on its way.
        Err(doubt.map_or(Failure::No(last), Failure::Maybe))
    }

    /// From now on no call is tried again, or every one is.
    pub fn give_up(&self, gives_up: bool) {
        self.gives_up.store(gives_up, Ordering::Relaxed);
    }

    /// Asks the active master, once.
    ///
    /// # Errors
    /// There is none, it refuses, or it does not answer.
    pub async fn ask_master(&self, method: Method, request: &impl Message) -> Result<(), String> {
        let node = self.session.latest_value(&format!("{PARENT}/master")).await.map_err(|over| over.to_string())?;
        let master = node.as_ref().and_then(read_master).ok_or("no master is active")?;
        self.ask_server(&master, method, request).await
    }

    /// Asks a server, once.
    ///
    /// # Errors
    /// It refuses, or does not answer.
    pub async fn ask_server(&self, server: &ServerName, method: Method, request: &impl Message) -> Result<(), String> {
        let asked = self.ask::<Nothing>(server, method, &request.encode_to_vec()).await;
        asked.map(drop).map_err(|(Missed::No(text) | Missed::Maybe(text))| text)
    }

    /// The same with cells beside the request, for an answer.
    ///
    /// # Errors
    /// As [`Caller::ask_server`].
    pub async fn ask_server_with<M: Message + Default>(
        &self,
        server: &ServerName,
        method: Method,
        request: &impl Message,
        block: Option<&CellBlock>,
    ) -> Result<M, String> {
        let asked = self.ask_with::<M>(server, method, &request.encode_to_vec(), block).await;
        asked.map(|(answer, _)| answer).map_err(|(Missed::No(text) | Missed::Maybe(text))| text)
    }

    /// All rows of a table, region by region, with every version.
    ///
    /// # Errors
    /// One cannot be read, or is not open: the balancer may move it just now.
    pub async fn whole(&self, table: &TableName) -> Result<Vec<(String, RowCells)>, String> {
        let regions = self.regions(table).await?;
        let mut reached = Some(&b""[..]);
        for (region, _) in &regions {
            if reached != Some(&region.start_key[..]) {
                return Err(format!("a region before {} is not open", region.name_string()));
            }
            reached = Some(&region.end_key[..]).filter(|end| !end.is_empty());
        }
        if reached.is_some() {
            return Err("the last region is not open".to_owned());
        }
        self.whole_of(regions).await
    }

    /// All rows of these regions, or read replicas, with every version.
    ///
    /// # Errors
    /// As [`Caller::whole`].
    pub async fn whole_of(&self, regions: Vec<(RegionInfo, ServerName)>) -> Result<Vec<(String, RowCells)>, String> {
        let scan = Scan { max_versions: u32::MAX >> 1, timeline: true, ..Scan::default() };
        let mut rows: Vec<(String, RowCells)> = Vec::new();
        for (region, server) in regions {
            let cells = self.scan_region(&server, &region, &scan).await?;
            let rest = cells_of(&cells);
            for (cell, (column, timestamp, value)) in cells.iter_from(0).zip(rest) {
                let row = String::from_utf8_lossy(cell.row()).into_owned();
                match rows.last_mut().filter(|(last, _)| *last == row) {
                    Some((_, cells)) => cells.push((column, timestamp, value)),
                    None => rows.push((row, vec![(column, timestamp, value)])),
                }
            }
        }
        Ok(rows)
    }

    /// Forgets where regions were.
    pub fn forget(&self) {
        self.places.lock().clear();
    }

    /// A row, all versions.
    ///
    /// # Errors
    /// No answer after so many tries.
    pub async fn get(&self, table: &TableName, row: &str, tries: u32) -> Result<RowCells, Failure> {
        let get = Get { max_versions: u32::MAX >> 1, ..Get::new(row.to_owned()) };
        let request = |region: &RegionInfo| {
            pb::GetRequest { region: to_proto::region_specifier(region), get: to_proto::get(&get) }.encode_to_vec()
        };
        let place = (table, row.as_bytes());
        let (_, cells) = self.call::<pb::GetResponse>(place, Method::ClientGet, request, true, tries).await?;
        Ok(cells)
    }

    /// One mutation; answers whether its condition held, and what an increment gives back.
    ///
    /// # Errors
    /// No answer after so many tries, or one that leaves it open.
    pub async fn mutate(
        &self,
        table: &TableName,
        mutation: &Mutation,
        condition: Option<&Condition>,
        may_repeat: bool,
        tries: u32,
    ) -> Result<(bool, RowCells), Failure> {
        let request = |region: &RegionInfo| {
            pb::MutateRequest {
                region: to_proto::region_specifier(region),
                mutation: to_proto::mutation(mutation),
                condition: condition.map(to_proto::condition),
                nonce_group: mutation.nonce.map(|nonce| nonce.group),
            }
            .encode_to_vec()
        };
        let row = mutation.row.clone();
        let (answer, cells): (pb::MutateResponse, _) =
            self.call((table, &row), Method::ClientMutate, request, may_repeat, tries).await?;
        Ok((answer.processed.unwrap_or(true), cells))
    }
}
