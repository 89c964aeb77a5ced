//! Mutate: one put, delete, increment or append, perhaps under a condition.

use super::get::place_result;
use super::{Answer, admission, find_region};
use crate::errors::exception_of;
use crate::nonces::Begin;
use crate::server::RegionServer;
use cell::{CellBuffer, CellType};
use hfile::Residency;
use model::{Condition, Get, Mutation, MutationKind, Nonce};
use proto::pb;
use region::{Commit, Region, RegionError, Written};
use rpc::exception::Exception;
use rpc::from_proto::{self, Cells};
use rpc::{Call, CallResult, Outcome, Reply};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::oneshot;

pub(super) fn mutate(server: &Arc<RegionServer>, call: Call) -> Answer {
    let request: pb::MutateRequest = call.decode()?;
    let region = find_region(server, &request.region)?;
    let mut cells = Cells::new(call.cells.clone());
    let mutation = from_proto::mutation(request.mutation, &mut cells, request.nonce_group)?;
    let condition = request.condition.as_ref().map(from_proto::condition).transpose()?;
    let delay = admission(server, &region)?;
    server.counts.writes.fetch_add(1, Ordering::Relaxed);
    let has_codec = call.has_codec();
    // What needs nothing but memory is applied here, and only its log entry is waited for.
    if condition.is_none() && delay.is_none() && !reads_files(&mutation) {
        return put(server, &region, mutation);
    }
    let server = server.clone();
    Ok(Outcome::later(async move {
        if let Some(delay) = delay {
            tokio::time::sleep(delay).await;
        }
        match condition {
            Some(condition) => check_and_mutate(&server, region, condition, mutation, has_codec).await,
            None => match mutation.kind {
                MutationKind::Put | MutationKind::Delete => plain(&server, region, mutation).await,
                MutationKind::Increment | MutationKind::Append => {
                    let cells = count(&server, region, mutation).await?;
                    let (result, cells) = place_result(cells, has_codec);
                    let response = pb::MutateResponse { result: Some(result), ..pb::MutateResponse::default() };
                    Ok(cells.map_or_else(|| Reply::new(&response), |cells| Reply::with_cells(&response, cells)))
                }
            },
        }
    }))
}

fn processed(processed: bool) -> pb::MutateResponse {
    pb::MutateResponse { processed: Some(processed), ..pb::MutateResponse::default() }
}

fn put(server: &Arc<RegionServer>, region: &Arc<Region>, mutation: Mutation) -> Answer {
    let applied = region.apply(std::slice::from_ref(&mutation)).map_err(|error| exception_of(&server.judge(error)))?;
    let only = applied.results.into_iter().next();
    server.consider_flush(region);
    if let Some(Err(error)) = only {
        return Err(exception_of(&error));
    }
    if applied.commit.ticket().is_none() {
        applied.commit.complete();
        return Ok(Outcome::reply(&processed(true)));
    }
    let done = settled(applied.commit);
    let server = server.clone();
    Ok(Outcome::later(async move {
        settle(&server, done).await?;
        Ok(Reply::new(&processed(true)))
    }))
}

/// A put or delete, on the blocking pool: a delete of the newest version reads which one that is.
async fn plain(server: &Arc<RegionServer>, region: Arc<Region>, mutation: Mutation) -> CallResult {
    let write = move |region: &Arc<Region>| {
        let applied = region.apply(std::slice::from_ref(&mutation))?;
        match applied.results.into_iter().next() {
            Some(Err(error)) => Err(error),
            _ => Ok(((), applied.commit)),
        }
    };
    written(server, &region, write).await?;
    Ok(Reply::new(&processed(true)))
}

/// Whether applying `mutation` may have to read a file: a delete of one version without its timestamp must find the
/// newest; increments and appends read what they change.
pub(super) fn reads_files(mutation: &Mutation) -> bool {
    match mutation.kind {
        MutationKind::Put => false,
        MutationKind::Delete => mutation
            .cells
            .iter()
            .any(|cell| cell.type_code() == CellType::Delete.code() && cell.timestamp() == i64::MAX),
        MutationKind::Increment | MutationKind::Append => true,
    }
}

/// The resolution of a commit: made visible when the log has done what its durability asks.
pub(crate) fn settled(commit: Commit) -> oneshot::Receiver<Result<(), RegionError>> {
    let (sender, receiver) = oneshot::channel();
    commit.on_done(move |result| {
        let _ = sender.send(result);
    });
    receiver
}

/// Waits for [`settled`].
pub(crate) async fn settle(
    server: &RegionServer,
    settled: oneshot::Receiver<Result<(), RegionError>>,
) -> Result<(), Exception> {
    match settled.await {
        Ok(result) => result.map_err(|error| exception_of(&server.judge(error))),
        Err(_) => Err(Exception::server_aborted(&server.name.to_string())),
    }
}

/// Runs `write` on the blocking pool (it may read old values from files) and waits until it is settled.
pub(crate) async fn written<T: Send + 'static>(
    server: &Arc<RegionServer>,
    region: &Arc<Region>,
    write: impl FnOnce(&Arc<Region>) -> Result<(T, Commit), RegionError> + Send + 'static,
) -> Result<T, Exception> {
    let target = region.clone();
    let joined = crate::blocking::off_worker(move || write(&target)).await;
    let outcome = joined.map_err(|error| Exception::io(format!("the call failed inside the server: {error}")))?;
    let (value, commit) = outcome.map_err(|error| exception_of(&server.judge(error)))?;
    if commit.ticket().is_some() {
        settle(server, settled(commit)).await?;
    } else {
        commit.complete();
    }
    server.consider_flush(region);
    Ok(value)
}

/// Begins the operation with `nonce`, waiting while an earlier try of it runs. False when it has succeeded before.
pub(super) async fn begin_nonce(server: &RegionServer, nonce: Option<Nonce>) -> bool {
    let Some(nonce) = nonce else { return true };
    loop {
        match server.nonces.begin(nonce) {
            Begin::Proceed => return true,
            Begin::AlreadyDone => return false,
            Begin::Wait(ended) => drop(ended.await),
        }
    }
}

/// Ends the operation with `nonce`.
pub(super) fn end_nonce(server: &RegionServer, nonce: Option<Nonce>, succeeded: bool) {
    if let Some(nonce) = nonce {
        server.nonces.end(nonce, succeeded);
    }
}

/// Increment or append: the new cells. A retry of one that succeeded answers with the cells that are there.
pub(super) async fn count(
    server: &Arc<RegionServer>,
    region: Arc<Region>,
    mutation: Mutation,
) -> Result<CellBuffer, Exception> {
    let nonce = mutation.nonce;
    if !begin_nonce(server, nonce).await {
        return reread(server, region, &mutation).await;
    }
    let write = move |region: &Arc<Region>| {
        let Written { result, commit } = match mutation.kind {
            MutationKind::Increment => region.increment(&mutation)?,
            _ => region.append(&mutation)?,
        };
        Ok((result, commit))
    };
    let result = written(server, &region, write).await;
    end_nonce(server, nonce, result.is_ok());
    result
}

async fn reread(server: &Arc<RegionServer>, region: Arc<Region>, mutation: &Mutation) -> Result<CellBuffer, Exception> {
    let mut get = Get::new(mutation.row.clone());
    for cell in mutation.cells.iter() {
        let family = bytes::Bytes::copy_from_slice(cell.family());
        get.columns.entry(family).or_default().push(bytes::Bytes::copy_from_slice(cell.qualifier()));
    }
    get.columns.values_mut().for_each(|qualifiers| qualifiers.sort());
    get.time_range = mutation.time_range;
    let at = server.clone();
    let read = move || {
        let mut out = CellBuffer::new();
        region.get(&get, &mut out, Residency::MayRead).map_err(|error| exception_of(&at.judge(error)))?;
        Ok(out)
    };
    match crate::blocking::off_worker(read).await {
        Ok(result) => result,
        Err(error) => Err(Exception::io(format!("the call failed inside the server: {error}"))),
    }
}

/// checkAndMutate of one or several mutations: whether the condition held, and the cells of increments and appends.
pub(super) async fn check(
    server: &Arc<RegionServer>,
    region: Arc<Region>,
    condition: Condition,
    mutations: Vec<Mutation>,
) -> Result<(bool, Option<CellBuffer>), Exception> {
    let nonce = mutations.iter().rev().find_map(|mutation| mutation.nonce);
    if !begin_nonce(server, nonce).await {
        return Ok((true, None));
    }
    let write = move |region: &Arc<Region>| {
        let checked = region.check_and_mutate(&condition, &mutations, nonce)?;
        Ok(((checked.processed, checked.result), checked.commit))
    };
    let result = written(server, &region, write).await;
    end_nonce(server, nonce, result.is_ok());
    result
}

async fn check_and_mutate(
    server: &Arc<RegionServer>,
    region: Arc<Region>,
    condition: Condition,
    mutation: Mutation,
    has_codec: bool,
) -> CallResult {
    let (held, result) = check(server, region, condition, vec![mutation]).await?;
    let mut response = processed(held);
    Ok(match result.map(|cells| place_result(cells, has_codec)) {
        Some((result, cells)) => {
            response.result = Some(result);
            cells.map_or_else(|| Reply::new(&response), |cells| Reply::with_cells(&response, cells))
        }
        None => Reply::new(&response),
    })
}
