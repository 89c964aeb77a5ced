//! A client's end without a socket: messages as they would come over the wire, answered by the region server's service.

use crate::world::Life;
use base::Clock;
use bytes::Bytes;
use cell::{CellBlock, CellSpec, CellType};
use convert::to_proto;
use model::{Condition, Get, Mutation, MutationKind, RegionInfo, Scan, TableName};
use prost::Message;
use proto::methods::{Method, Service};
use proto::pb;
use rpc::{Call, CallResult, CellCodec, ConnInfo};
use std::sync::Arc;

/// How a call went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nothing was done: the server said so.
    No(String),
    /// It was done or not.
    Maybe(String),
}

impl Failure {
    /// From an exception's class: few say for certain that nothing happened.
    pub(crate) fn of(class: &str, message: &str) -> Failure {
        const NOTHING_DONE: [&str; 6] = [
            "NotServingRegionException",
            "RegionOpeningException",
            "WrongRegionException",
            "NoSuchColumnFamilyException",
            "FailedSanityCheckException",
            "UnknownScannerException",
        ];
        let text = format!("{class}: {message}");
        if NOTHING_DONE.iter().any(|name| class.ends_with(name)) { Failure::No(text) } else { Failure::Maybe(text) }
    }
}

/// A row's cells: `family:qualifier`, timestamp, value.
pub type RowCells = Vec<(String, i64, Vec<u8>)>;

/// Sends a message, and cells beside it, to the region server as over a connection with `codec`, and waits for the reply.
pub async fn send(
    life: &Life,
    codec: Option<CellCodec>,
    method: Method,
    message: &impl Message,
    cells: CellBlock,
) -> CallResult {
    let conn = ConnInfo {
        id: 1,
        peer: std::net::SocketAddr::from(([127, 0, 0, 1], 1)),
        user: Arc::from("sim"),
        service: Service::Client,
        codec,
        compressor: None,
        version: None,
        attributes: Vec::new(),
        load: std::sync::OnceLock::new(),
    };
    let param = Bytes::from(message.encode_to_vec());
    let (mut call, direct) = Call::direct(Arc::new(conn), method.info(), param, life.clock.monotonic_us());
    call.set_cells(cells);
    let outcome = life.service.call(call);
    // What the call put into the log is written when the schedule says so, as at the end of what came over a connection.
    direct.answer(outcome).await
}

/// Sends a message to the region server and waits for the reply.
///
/// # Errors
/// The exception that a client would see.
pub async fn call<M: Message + Default>(life: &Life, method: Method, message: &impl Message) -> Result<M, Failure> {
    let result = send(life, None, method, message, CellBlock::default()).await;
    let reply = result.map_err(|e| Failure::of(e.class(), e.message()))?;
    M::decode(reply.message).map_err(|e| Failure::Maybe(format!("a reply that is none: {e}")))
}

/// The region of `table` that holds `row` now, as the master knows it.
pub fn region_of(life: &Life, table: &TableName, row: &[u8]) -> Result<RegionInfo, Failure> {
    let cluster = life.master.cluster();
    let node = cluster.regions_of(table).find(|node| node.is_live() && node.info.contains(row));
    node.map(|node| node.info.clone()).ok_or_else(|| Failure::No("no region has that row".into()))
}

pub(crate) fn cells_of(result: &pb::Result) -> RowCells {
    let text = |bytes: &Option<Bytes>| String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned();
    let one = |cell: &pb::Cell| {
        let column = format!("{}:{}", text(&cell.family), text(&cell.qualifier));
        (column, cell.timestamp.unwrap_or_default() as i64, cell.value.clone().unwrap_or_default().to_vec())
    };
    result.cell.iter().map(one).collect()
}

/// A row, all versions.
pub async fn get(life: &Life, table: &TableName, row: &str) -> Result<RowCells, Failure> {
    let region = region_of(life, table, row.as_bytes())?;
    let get = Get { max_versions: u32::MAX >> 1, ..Get::new(row.to_owned()) };
    let request = pb::GetRequest { region: to_proto::region_specifier(&region), get: to_proto::get(&get) };
    let response: pb::GetResponse = call(life, Method::ClientGet, &request).await?;
    Ok(response.result.as_ref().map(cells_of).unwrap_or_default())
}

/// One mutation; answers the cells that an increment or append gives back.
pub async fn mutate(life: &Life, table: &TableName, mutation: &Mutation) -> Result<RowCells, Failure> {
    let region = region_of(life, table, &mutation.row)?;
    let request = pb::MutateRequest {
        region: to_proto::region_specifier(&region),
        mutation: to_proto::mutation(mutation),
        nonce_group: mutation.nonce.map(|nonce| nonce.group),
        ..pb::MutateRequest::default()
    };
    let response: pb::MutateResponse = call(life, Method::ClientMutate, &request).await?;
    Ok(response.result.as_ref().map(cells_of).unwrap_or_default())
}

pub(crate) fn actions(mutations: &[Mutation]) -> Vec<pb::Action> {
    let action = |(index, mutation)| pb::Action {
        index: Some(index as u32),
        mutation: Some(to_proto::mutation(mutation)),
        ..pb::Action::default()
    };
    mutations.iter().enumerate().map(action).collect()
}

/// All of one row's mutations or none, if `condition` holds; answers whether it did.
pub async fn atomic(
    life: &Life,
    table: &TableName,
    mutations: &[Mutation],
    condition: Option<&Condition>,
) -> Result<bool, Failure> {
    let region = region_of(life, table, &mutations[0].row)?;
    let request = pb::MultiRequest {
        region_action: vec![pb::RegionAction {
            region: to_proto::region_specifier(&region),
            atomic: Some(true),
            action: actions(mutations),
            condition: condition.map(to_proto::condition),
        }],
        ..pb::MultiRequest::default()
    };
    let response: pb::MultiResponse = call(life, Method::ClientMulti, &request).await?;
    let Some(result) = response.region_action_result.first() else {
        return Err(Failure::Maybe("an answer without the region's result".into()));
    };
    match &result.exception {
        Some(exception) => Err(failure_of(exception)),
        None => Ok(result.processed.unwrap_or(true)),
    }
}

fn failure_of(pair: &pb::NameBytesPair) -> Failure {
    Failure::of(&pair.name, &String::from_utf8_lossy(pair.value.as_deref().unwrap_or_default()))
}

/// Each mutation for itself, in one request over as many regions as it takes.
pub async fn batch(life: &Life, table: &TableName, mutations: &[Mutation]) -> Vec<Result<(), Failure>> {
    let mut results: Vec<Result<(), Failure>> = vec![Err(Failure::No("not sent".into())); mutations.len()];
    let mut groups: Vec<(RegionInfo, Vec<usize>)> = Vec::new();
    for (at, mutation) in mutations.iter().enumerate() {
        match region_of(life, table, &mutation.row) {
            Err(failure) => results[at] = Err(failure),
            Ok(region) => match groups.iter_mut().find(|(known, _)| known.encoded_name() == region.encoded_name()) {
                Some((_, of_region)) => of_region.push(at),
                None => groups.push((region, vec![at])),
            },
        }
    }
    let region_action = groups.iter().map(|(region, of_region)| {
        let own: Vec<Mutation> = of_region.iter().map(|at| mutations[*at].clone()).collect();
        pb::RegionAction {
            region: to_proto::region_specifier(region),
            action: actions(&own),
            ..pb::RegionAction::default()
        }
    });
    let request = pb::MultiRequest { region_action: region_action.collect(), ..pb::MultiRequest::default() };
    let response: Result<pb::MultiResponse, Failure> = call(life, Method::ClientMulti, &request).await;
    for (nth, (_, of_region)) in groups.iter().enumerate() {
        for (index, at) in of_region.iter().enumerate() {
            results[*at] = match &response {
                Err(failure) => Err(failure.clone()),
                Ok(response) => match response.region_action_result.get(nth) {
                    None => Err(Failure::Maybe("an answer without the region's result".into())),
                    Some(pb::RegionActionResult { exception: Some(exception), .. }) => Err(failure_of(exception)),
                    Some(result) => {
                        let own = result.result_or_exception.iter().find(|one| one.index() as usize == index);
                        match own {
                            None => Err(Failure::Maybe("an answer without the action's result".into())),
                            Some(pb::ResultOrException { exception: Some(e), .. }) => Err(failure_of(e)),
                            Some(_) => Ok(()),
                        }
                    }
                },
            };
        }
    }
    results
}

/// A piece of a scan's reply: rows, whether each may go on, whether the region has more.
pub struct Pieces {
    /// The scanner.
    pub scanner: u64,
    /// Row, its cells, whether more cells of it follow.
    pub rows: Vec<(String, RowCells, bool)>,
    /// Whether the region has more.
    pub more: bool,
}

/// Opens a scanner in a region (or goes on with one) and reads up to `rows` results.
pub async fn scan(
    life: &Life,
    region: &RegionInfo,
    scan: &Scan,
    scanner: Option<(u64, u64)>,
    rows: u32,
) -> Result<Pieces, Failure> {
    let request = pb::ScanRequest {
        region: scanner.is_none().then(|| to_proto::region_specifier(region)),
        scan: scanner.is_none().then(|| to_proto::scan(scan)),
        scanner_id: scanner.map(|(id, _)| id),
        next_call_seq: scanner.map(|(_, sequence)| sequence),
        number_of_rows: Some(rows),
        client_handles_partials: Some(true),
        client_handles_heartbeats: Some(true),
        ..pb::ScanRequest::default()
    };
    let response: pb::ScanResponse = call(life, Method::ClientScan, &request).await?;
    let row_of = |result: &pb::Result| {
        let row = result.cell.first().and_then(|cell| cell.row.clone()).unwrap_or_default();
        String::from_utf8_lossy(&row).into_owned()
    };
    let partial = |at: usize| response.partial_flag_per_result.get(at).copied().unwrap_or(false);
    let rows = response.results.iter().enumerate().map(|(at, r)| (row_of(r), cells_of(r), partial(at))).collect();
    Ok(Pieces { scanner: response.scanner_id(), rows, more: response.more_results_in_region() })
}

/// A mutation of one row: (family, qualifier, timestamp or `i64::MAX`, type, value).
pub fn mutation(kind: MutationKind, row: &str, cells: &[(&str, &str, i64, CellType, &[u8])]) -> Mutation {
    let specs = cells.iter().map(|(family, qualifier, timestamp, cell_type, value)| CellSpec {
        row: row.as_bytes(),
        family: family.as_bytes(),
        qualifier: qualifier.as_bytes(),
        timestamp: *timestamp,
        type_code: cell_type.code(),
        value,
        tags: b"",
    });
    Mutation::new(kind, row.to_owned(), CellBlock::from_specs(specs))
}
