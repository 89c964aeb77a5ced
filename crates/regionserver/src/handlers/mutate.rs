//! Mutate: one put, delete, increment or append, perhaps under a condition.

use super::get::place_result;
use super::{Answer, admission, find_region};
use crate::blocking::{CallContext, Caller, is_large, large_on_lane, on_lane};
use crate::errors::exception_of;
use crate::large_writes::LargeWrite;
use crate::nonces::{Begin, Running};
use crate::operations::Operation;
use crate::rpc_quotas::cost_of_mutation;
use crate::server::RegionServer;
use crate::traces::{in_region, log_wait};
use crate::users::timed;
use base::{EffortBudget, PausePoint, ReadMode};
use bytes::Bytes;
use cell::{CellBuffer, CellType};
use convert::from_proto::{self, Cells};
use hfile::BlockReads;
use model::mutation::ConditionTest;
use model::{Condition, Get, Mutation, MutationKind, Nonce};
use proto::pb;
use region::{Applied, Commit, Region, RegionError, Written};
use rpc::exception::Exception;
use rpc::{Call, CallResult, ClientLoad, Outcome, Reply};
use scheduler::LaneName;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::oneshot;
use trace::Span;

/// `MutateResponse { processed: true }`, the answer to nearly every write.
const PROCESSED: &[u8] = b"\x10\x01";

pub(super) fn mutate(server: &Arc<RegionServer>, call: Call) -> Answer {
    if is_large(&call) {
        return Ok(large_on_lane(server, call, LaneName::LargeWrite, mutate_at_once));
    }
    mutate_at_once(server, &mut CallContext::new(&call))
}

fn mutate_at_once(server: &Arc<RegionServer>, context: &mut CallContext<'_>) -> Answer {
    let call = context.call;
    let request: pb::MutateRequest = call.decode()?;
    let region = find_region(server, &request.region)?;
    let cost = cost_of_mutation(&request.mutation, request.condition.is_some());
    let charge = server.quotas.check_batch(call, &region, cost, || server.counts.total())?;
    let mut cells = Cells::new(call.cells()?);
    let condition = request.condition.as_ref().map(from_proto::condition).transpose()?;
    let mutation = from_proto::mutation(request.mutation, &mut cells, request.nonce_group).map_err(|error| {
        let error = Exception::from(error);
        // HBase makes a mutation under a condition where it expects illegal arguments
        if condition.is_some() && error.is_unchecked() {
            Exception::do_not_retry(error.message().to_owned())
        } else {
            error
        }
    })?;
    server.space_quotas.check(&region.info().table, mutation.kind)?;
    if let Some(charge) = &charge {
        charge.add_written(|| serialized_bytes(&mutation));
    }
    // A large write waits on its lane for what it needs.
    let is_paced = context.pause.is_some() && condition.is_none() && !reads_files(&mutation);
    let delay = if is_paced { None } else { admission(server, &region, call.size_bytes)? };
    server.counts.writes.fetch_add(1, Ordering::Relaxed);
    if let Some(load) = call.conn.load.get().filter(|_| condition.is_none()) {
        // As HBase: what is under a condition and puts and deletes of batches do not count.
        load.writes.add(1);
    }
    let has_codec = call.has_codec();
    let counts = matches!(mutation.kind, MutationKind::Increment | MutationKind::Append);
    // What needs nothing but memory is applied here, and only its log entry is waited for.
    let (mut begun, mut delay) = (None, delay);
    if delay.is_none() {
        let units = region::effort_units(std::slice::from_ref(&mutation));
        if condition.is_none() && !reads_files(&mutation) && context.affords(units) {
            return put(server, region, mutation, context);
        }
        if condition.is_some() || counts {
            begun = match mutation.nonce.map(|nonce| server.sessions.nonces.begin(nonce)) {
                None => Some(Running::without_nonce()),
                Some(Begin::Proceed(running)) => Some(running),
                Some(Begin::AlreadyDone | Begin::Wait(_)) => None,
            };
            if let Some(running) = begun.take() {
                match change_in_memory(server, &region, condition.as_ref(), &mutation, context, running) {
                    Changed::Answered(outcome) => return Ok(outcome),
                    Changed::Failed(error) => return Err(exception_of(&server.escalate_fatal(error))),
                    Changed::WouldBlock(running) => begun = Some(running),
                    Changed::Early(running, wait_ms) => {
                        (begun, delay) = (Some(running), Some(Duration::from_millis(wait_ms)));
                    }
                }
            }
        }
    }
    let (server, caller) = (server.clone(), Caller::of(call));
    Ok(Outcome::later(async move {
        let _charge = charge;
        if let Some(delay) = delay {
            tokio::time::sleep(delay).await;
        }
        match condition {
            Some(condition) => {
                let (held, result) = check(&server, region, &caller, condition, vec![mutation], begun).await?;
                Ok(mutate_reply(held, result, has_codec))
            }
            None if counts => {
                let cells = increment_or_append(&server, region, &caller, mutation, begun).await?;
                Ok(mutate_reply(None, Some(cells), has_codec))
            }
            None => put_or_delete(&server, region, &caller, mutation).await,
        }
    }))
}

/// Bytes of a mutation's cells, as quotas count them.
pub(super) fn serialized_bytes(mutation: &Mutation) -> usize {
    mutation.cells.bytes().len().saturating_sub(4 * mutation.cells.len())
}

fn processed() -> Reply {
    Reply { message: Bytes::from_static(PROCESSED), ..Reply::default() }
}

/// The reply to an increment, append or check.
fn mutate_reply(held: impl Into<Option<bool>>, result: Option<CellBuffer>, has_codec: bool) -> Reply {
    let mut response = pb::MutateResponse { processed: held.into(), ..pb::MutateResponse::default() };
    match result.map(|cells| place_result(cells, has_codec)) {
        Some((result, cells)) => {
            response.result = Some(result);
            cells.map_or_else(|| Reply::new(&response), |cells| Reply::with_cells(&response, cells))
        }
        None => Reply::new(&response),
    }
}

fn put(server: &Arc<RegionServer>, region: Arc<Region>, mutation: Mutation, context: &mut CallContext<'_>) -> Answer {
    let applied = apply(server, &region, std::slice::from_ref(&mutation), context.pause);
    let applied = applied.map_err(|error| exception_of(&server.escalate_fatal(error)))?;
    let caller = Caller::of(context.call);
    if let Some(wait_ms) = applied.wait_ms {
        let server = server.clone();
        return Ok(Outcome::later(async move {
            wait_for_clock(wait_ms).await;
            put_or_delete(&server, region, &caller, mutation).await
        }));
    }
    server.maintenance.consider_flush(&region);
    let (_, commit) = applied.only(&region).map_err(|error| exception_of(&error))?;
    let operations = Operation::of(&mutation, false);
    Ok(reply_on_commit(server, commit, operations, context, |result| result.map(|()| processed())))
}

/// Until the clock has come to the tick of a write: the conflict of a row's writes within a millisecond is resolved by
/// time.
pub(crate) async fn wait_for_clock(wait_ms: u64) {
    tokio::time::sleep(Duration::from_millis(wait_ms)).await;
}

/// Applies puts and deletes; on a lane they leave room for others.
pub(super) fn apply(
    server: &RegionServer,
    region: &Region,
    mutations: &[Mutation],
    pause: Option<&dyn PausePoint>,
) -> Result<Applied, RegionError> {
    let span = match mutations {
        [one] => span_of(one.kind, false),
        _ => "Region.batchMutate",
    };
    in_region(span, region, || match pause {
        Some(pause) => region.apply_at_pace(mutations, Some(&LargeWrite { server, region, pause })),
        None => region.apply(mutations),
    })
}

/// What HBase calls the span of such a change.
fn span_of(kind: MutationKind, is_conditional: bool) -> &'static str {
    match kind {
        _ if is_conditional => "Region.checkAndMutate",
        MutationKind::Put => "Region.put",
        MutationKind::Delete => "Region.delete",
        MutationKind::Increment => "Region.increment",
        MutationKind::Append => "Region.append",
    }
}

/// Answers `call` when `commit` is settled: made visible when the log has done what its durability asks. In a batch the log goes on at its
/// end, else now.
pub(super) fn reply_on_commit(
    server: &Arc<RegionServer>,
    commit: Commit,
    operations: &'static [Operation],
    context: &mut CallContext<'_>,
    reply: impl FnOnce(Result<(), Exception>) -> CallResult + Send + 'static,
) -> Outcome {
    let begun_us = context.begun_us;
    if commit.is_durable() {
        commit.complete();
        ended(server, context.call.conn.load.get(), operations, begun_us);
        return Outcome::Ready(reply(Ok(())));
    }
    let (server, responder, wait) = (server.clone(), context.responder(), log_wait());
    let load = context.call.conn.load.get().cloned();
    let done = move |result: Result<(), RegionError>| {
        drop(wait);
        ended(&server, load.as_ref(), operations, begun_us);
        responder.answer(reply(result.map_err(|error| exception_of(&server.escalate_fatal(error)))));
    };
    if context.in_batch {
        commit.on_done_deferred(done)
    } else {
        commit.on_done(done)
    }
    Outcome::Deferred
}

/// Counts operations of a client that began at `begun_us` and end now.
pub(super) fn ended(server: &RegionServer, load: Option<&Arc<ClientLoad>>, operations: &[Operation], begun_us: u64) {
    let took_us = server.env.clock.monotonic_us().saturating_sub(begun_us);
    for operation in operations {
        server.operations.ended(*operation, took_us);
        timed(load, *operation, took_us, 1);
    }
}

/// What became of a change that is made only if all it reads is in memory.
enum Changed {
    Answered(Outcome),
    Failed(RegionError),
    /// Nothing was done; it is to be done where it may wait.
    WouldBlock(Running),
    /// Nothing was done; it is to be done after so many milliseconds.
    Early(Running, u64),
}

/// Whether one look at a cell may take any time, as in [`super::get::is_costly`].
fn is_costly(condition: &Condition) -> bool {
    match &condition.test {
        ConditionTest::Value { comparator, .. } => comparator.compiled_bytes() > 0,
        ConditionTest::Filter(filter) => filter.compiled_bytes() > 0,
    }
}

/// Increment, append, or a check with its write, whose nonce has begun: if what it reads is in memory, and little.
fn change_in_memory(
    server: &Arc<RegionServer>,
    region: &Arc<Region>,
    condition: Option<&Condition>,
    mutation: &Mutation,
    context: &mut CallContext<'_>,
    running: Running,
) -> Changed {
    let (mutations, nonce) = (std::slice::from_ref(mutation), mutation.nonce);
    if condition.is_some_and(is_costly) {
        return Changed::WouldBlock(running);
    }
    let budget = EffortBudget::of_network_thread();
    let (mode, before) = (ReadMode::FromMemory(&budget), BlockReads::of_thread());
    let span = span_of(mutation.kind, condition.is_some());
    let written = in_region(span, region, || match condition {
        Some(condition) => region
            .check_and_mutate_with(condition, mutations, nonce, mode)
            .map(|checked| (Some(checked.processed), checked.result, checked.commit)),
        None => {
            region.mutate_rows_with(mutations, nonce, mode).map(|written| (None, Some(written.result), written.commit))
        }
    });
    let (held, result, commit) = match written {
        Ok(written) => written,
        Err(error) if error.is_would_block() => return Changed::WouldBlock(running),
        Err(RegionError::AheadOfClock { wait_ms, .. }) => return Changed::Early(running, wait_ms),
        Err(error) => return Changed::Failed(error),
    };
    let block_bytes = BlockReads::of_thread().since(before).scanned_bytes;
    server.operations.changed(mutation.kind, condition.is_some(), block_bytes);
    server.maintenance.consider_flush(region);
    let has_codec = context.call.has_codec();
    let operations = Operation::of(mutation, condition.is_some());
    Changed::Answered(reply_on_commit(server, commit, operations, context, move |outcome| {
        running.end(outcome.is_ok() && held != Some(false));
        outcome.map(|()| mutate_reply(held, result, has_codec))
    }))
}

/// A put or delete, on the blocking pool: a delete of the newest version reads which one that is.
async fn put_or_delete(
    server: &Arc<RegionServer>,
    region: Arc<Region>,
    caller: &Caller,
    mutation: Mutation,
) -> CallResult {
    let (begun_us, operations) = (server.env.clock.monotonic_us(), Operation::of(&mutation, false));
    let span = span_of(mutation.kind, false);
    let write = move |region: &Arc<Region>| {
        let (_, commit) = region.apply(std::slice::from_ref(&mutation))?.only(region)?;
        Ok(((), commit))
    };
    let result = apply_blocking(server, &region, caller, span, write).await;
    ended(server, caller.load.as_ref(), operations, begun_us);
    result.map(|()| processed())
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

/// The resolution of a commit: made visible when the log has done what its durability asks. `wait`: a span that ends then.
pub(crate) fn commit_receiver(commit: Commit, wait: Option<Span>) -> oneshot::Receiver<Result<(), RegionError>> {
    let (sender, receiver) = oneshot::channel();
    commit.on_done(move |result| {
        drop(wait);
        let _ = sender.send(result);
    });
    receiver
}

/// As [`commit_receiver`], for a commit of a batch: whoever holds that writes the log.
pub(crate) fn commit_receiver_in_batch(commit: Commit) -> oneshot::Receiver<Result<(), RegionError>> {
    let ((sender, receiver), wait) = (oneshot::channel(), log_wait());
    commit.on_done_deferred(move |result| {
        drop(wait);
        let _ = sender.send(result);
    });
    receiver
}

/// Waits for [`commit_receiver`].
pub(crate) async fn await_commit(
    server: &RegionServer,
    settled: oneshot::Receiver<Result<(), RegionError>>,
) -> Result<(), Exception> {
    match settled.await {
        Ok(result) => result.map_err(|error| exception_of(&server.escalate_fatal(error))),
        Err(_) => Err(Exception::server_aborted(&server.name.to_string())),
    }
}

/// Runs `write` on the blocking pool (it may read old values from files) and waits until it is settled. Where the write
/// must wait for the clock, `write` is run again then.
pub(crate) async fn apply_blocking<T: Send + 'static>(
    server: &Arc<RegionServer>,
    region: &Arc<Region>,
    caller: &Caller,
    span: &'static str,
    write: impl Fn(&Arc<Region>) -> Result<(T, Commit), RegionError> + Send + Sync + 'static,
) -> Result<T, Exception> {
    let write = Arc::new(write);
    let (value, commit) = loop {
        let (target, write) = (region.clone(), write.clone());
        match on_lane(server, region, LaneName::Write, caller, move |_| in_region(span, &target, || write(&target)))
            .await?
        {
            Ok(outcome) => break outcome,
            Err(RegionError::AheadOfClock { wait_ms, .. }) => wait_for_clock(wait_ms).await,
            Err(error) => return Err(exception_of(&server.escalate_fatal(error))),
        }
    };
    if commit.ticket().is_some() {
        await_commit(server, commit_receiver(commit, caller.log_wait())).await?;
    } else {
        commit.complete();
    }
    server.maintenance.consider_flush(region);
    Ok(value)
}

/// Begins the operation with `nonce`, waiting while an earlier try of it runs. `None` when it has succeeded before.
pub(super) async fn begin_nonce(server: &RegionServer, nonce: Option<Nonce>) -> Option<Running> {
    let Some(nonce) = nonce else { return Some(Running::without_nonce()) };
    loop {
        match server.sessions.nonces.begin(nonce) {
            Begin::Proceed(running) => return Some(running),
            Begin::AlreadyDone => return None,
            Begin::Wait(ended) => drop(ended.await),
        }
    }
}

/// Increment or append: the new cells. A retry of one that succeeded answers with the cells that are there. `begun`: it has begun
/// already.
pub(super) async fn increment_or_append(
    server: &Arc<RegionServer>,
    region: Arc<Region>,
    caller: &Caller,
    mutation: Mutation,
    begun: Option<Running>,
) -> Result<CellBuffer, Exception> {
    let (begun_us, operations) = (server.env.clock.monotonic_us(), Operation::of(&mutation, false));
    let begun = match begun {
        Some(running) => Some(running),
        None => begin_nonce(server, mutation.nonce).await,
    };
    let Some(running) = begun else { return reread(server, region, caller, &mutation).await };
    let (at, span) = (server.clone(), span_of(mutation.kind, false));
    let write = move |region: &Arc<Region>| {
        let before = BlockReads::of_thread();
        let Written { result, commit } = region.increment_or_append(&mutation)?;
        at.operations.changed(mutation.kind, false, BlockReads::of_thread().since(before).scanned_bytes);
        Ok((result, commit))
    };
    let result = apply_blocking(server, &region, caller, span, write).await;
    running.end(result.is_ok());
    ended(server, caller.load.as_ref(), operations, begun_us);
    result
}

async fn reread(
    server: &Arc<RegionServer>,
    region: Arc<Region>,
    caller: &Caller,
    mutation: &Mutation,
) -> Result<CellBuffer, Exception> {
    let mut get = Get::new(mutation.row.clone());
    for cell in mutation.cells.iter() {
        let family = Bytes::copy_from_slice(cell.family());
        get.columns.entry(family).or_default().push(Bytes::copy_from_slice(cell.qualifier()));
    }
    get.columns.values_mut().for_each(|qualifiers| qualifiers.sort());
    get.time_range = mutation.time_range;
    let at = server.clone();
    let target = region.clone();
    let read = move |pause: &dyn PausePoint| {
        let mut out = CellBuffer::new();
        target
            .get_within(&get, &mut out, ReadMode::MayRead(pause))
            .map_err(|error| exception_of(&at.escalate_fatal(error)))?;
        Ok(out)
    };
    on_lane(server, &region, LaneName::Read, caller, read).await?
}

/// checkAndMutate of one or several mutations: whether the condition held, and the cells of increments and appends.
/// `begun` as in [`increment_or_append`].
pub(super) async fn check(
    server: &Arc<RegionServer>,
    region: Arc<Region>,
    caller: &Caller,
    condition: Condition,
    mutations: Vec<Mutation>,
    begun: Option<Running>,
) -> Result<(bool, Option<CellBuffer>), Exception> {
    let nonce = mutations.iter().rev().find_map(|mutation| mutation.nonce);
    let begun_us = server.env.clock.monotonic_us();
    let operations = match &mutations[..] {
        [mutation] => Operation::of(mutation, true),
        _ => &[Operation::CheckAndMutate],
    };
    let begun = match begun {
        Some(running) => Some(running),
        None => begin_nonce(server, nonce).await,
    };
    let Some(running) = begun else { return Ok((true, None)) };
    let at = server.clone();
    let write = move |region: &Arc<Region>| {
        let before = BlockReads::of_thread();
        let checked = region.check_and_mutate(&condition, &mutations, nonce)?;
        let block_bytes = BlockReads::of_thread().since(before).scanned_bytes;
        at.operations.changed(MutationKind::Put, true, block_bytes);
        Ok(((checked.processed, checked.result), checked.commit))
    };
    let result = apply_blocking(server, &region, caller, "Region.checkAndMutate", write).await;
    // Where the condition did not hold nothing was done: a repetition is to look for itself.
    running.end(matches!(result, Ok((true, _))));
    ended(server, caller.load.as_ref(), operations, begun_us);
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;

    #[test]
    fn the_answer_written_by_hand_is_the_message() {
        let message = pb::MutateResponse { processed: Some(true), ..pb::MutateResponse::default() };
        assert_eq!(message.encode_to_vec(), PROCESSED);
    }
}
