//! Multi: batches over several regions; atomic rows; conditions. Follows: `RSRpcServices#multi`.
//!
//! Cells are taken from the request's cell block strictly in the order of regions and actions, whatever fails. Within a
//! region, gets, increments and appends are done in order; puts and deletes are gathered and applied together.

#![allow(deprecated, reason = "clients before 2.4 send and read the fields that HBase calls deprecated")]

use super::get::{is_costly, read_result, refuse_closest_row_before};
use super::multi_answer::{RegionAnswer, encode};
use super::mutate::{
    self, begin_nonce, check, count, reads_files, reply_on_commit, settle, settled, wait_for_clock, written,
};
use super::{Answer, admission, find_region};
use crate::blocking::{CallContext, Caller, LARGE_REQUEST_BYTES, is_large, large_on_lane, on_lane, read_on_lane};
use crate::endpoints;
use crate::errors::exception_of;
use crate::server::RegionServer;
use base::{EffortBudget, PausePoint, ReadMode};
use cell::CellBuffer;
use convert::from_proto::{self, Cells, Filters};
use convert::to_proto;
use model::{Get, Mutation, MutationKind};
use prost::Message as _;
use proto::pb;
use proto::pb::mutation_proto::MutationType;
use region::{Applied, Commit, Region, RegionError};
use rpc::exception::{Exception, Kind};
use rpc::{Call, CallResult, Outcome, Reply};
use scheduler::LaneName;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One action, decoded.
enum Action {
    Get(Box<Get>),
    Write(Mutation),
    /// Of a coprocessor endpoint.
    Service(pb::CoprocessorServiceCall),
    /// It could not be decoded; the others go on.
    Bad(Exception),
}

/// What is to be done in one region.
enum Work {
    /// The whole region action failed before it began.
    Failed(Exception),
    /// Independent actions, with their indexes.
    Batch(Arc<Region>, Vec<(u32, Action)>),
    /// All or nothing, perhaps under a condition.
    Atomic { region: Arc<Region>, mutations: Vec<Mutation>, condition: Option<model::Condition>, count: usize },
}

/// The answer as it grows. `cells` holds the cells of results in the order in which the results appear.
struct Answering {
    has_codec: bool,
    cells: CellBuffer,
    /// Bytes of results that hold their cells themselves.
    inline_bytes: usize,
    size_limit: usize,
}

impl Answering {
    fn result(&mut self, index: u32, result: pb::Result, cells: Option<CellBuffer>) -> pb::ResultOrException {
        match cells {
            Some(cells) => cells.iter_from(0).for_each(|cell| self.cells.push(cell)),
            None => self.inline_bytes += result.encoded_len(),
        }
        pb::ResultOrException { index: Some(index), result: Some(result), ..pb::ResultOrException::default() }
    }

    fn place(&mut self, index: u32, cells: CellBuffer) -> pb::ResultOrException {
        let (result, cells) = super::get::place_result(cells, self.has_codec);
        self.result(index, result, cells)
    }

    fn is_full(&self) -> bool {
        self.size() > self.size_limit
    }

    fn size(&self) -> usize {
        self.cells.byte_len() + self.inline_bytes
    }
}

pub(super) fn failed(index: u32, exception: &Exception) -> pb::ResultOrException {
    let exception = Some(exception.to_name_bytes_pair());
    pb::ResultOrException { index: Some(index), exception, ..pb::ResultOrException::default() }
}

pub(super) fn succeeded(index: u32) -> pb::ResultOrException {
    pb::ResultOrException {
        index: Some(index),
        result: Some(pb::Result::default()),
        ..pb::ResultOrException::default()
    }
}

pub(super) fn multi(server: &Arc<RegionServer>, call: Call) -> Answer {
    if is_large(&call) {
        return Ok(large_on_lane(server, call, LaneName::LargeWrite, multi_at_once));
    }
    multi_at_once(server, &mut CallContext::new(&call))
}

fn multi_at_once(server: &Arc<RegionServer>, context: &mut CallContext<'_>) -> Answer {
    let call = context.call;
    let request: pb::MultiRequest = call.decode()?;
    refuse_large(server, &request)?;
    let mut cells = Cells::new(call.cells()?);
    let nonce_group = request.nonce_group;
    let old_condition = request.condition.as_ref().map(from_proto::condition).transpose()?;
    let conditional_at_top = old_condition.is_some();
    let mut work = Vec::with_capacity(request.region_action.len());
    let mut delay = None;
    let mut filters = Filters::default();
    for action in request.region_action {
        work.push(prepare(server, action, old_condition.clone(), nonce_group, &mut cells, &mut filters)?);
    }
    let (is_plain, is_gets) = (work.iter().all(is_plain_writes), work.iter().all(is_gets));
    // Large writes wait on their lane for what they need; reads need none of it.
    if !(is_gets || is_plain && context.pause.is_some()) {
        for one in &work {
            if let Work::Batch(region, _) | Work::Atomic { region, .. } = one {
                delay = delay.max(admission(server, region, call.size_bytes)?);
            }
        }
    }
    if conditional_at_top && work.is_empty() {
        return Ok(Outcome::reply(&pb::MultiResponse { processed: Some(true), ..pb::MultiResponse::default() }));
    }
    let size_limit = server.most_reply_bytes() as usize;
    let answering = Answering { has_codec: call.has_codec(), cells: CellBuffer::new(), inline_bytes: 0, size_limit };
    if delay.is_none() && is_plain && context.affords(work.iter().map(effort_units).sum()) {
        return Ok(puts(server, work, context));
    }
    if delay.is_none() && is_gets {
        if !work.iter().any(has_costly_get) {
            let budget = EffortBudget::of_network_thread();
            if let Some(reply) = gets(server, &work, answering, ReadMode::FromMemory(&budget))? {
                return Ok(Outcome::Ready(Ok(reply)));
            }
        }
        let region = work.iter().find_map(|one| match one {
            Work::Batch(region, _) => Some(region.clone()),
            Work::Failed(_) | Work::Atomic { .. } => None,
        });
        if let Some(region) = region {
            let (at, has_codec) = (server.clone(), call.has_codec());
            return Ok(read_on_lane(server, &region, context, move |pause| {
                let answering = Answering { has_codec, cells: CellBuffer::new(), inline_bytes: 0, size_limit };
                gets(&at, &work, answering, ReadMode::MayRead(pause))?
                    .ok_or_else(|| Exception::io("a read that may block said that it would"))
            }));
        }
        let answering =
            Answering { has_codec: call.has_codec(), cells: CellBuffer::new(), inline_bytes: 0, size_limit };
        let (server, caller) = (server.clone(), Caller::of(call));
        return Ok(Outcome::later(async move { mixed(&server, &caller, work, answering, conditional_at_top).await }));
    }
    let (server, caller) = (server.clone(), Caller::of(call));
    Ok(Outcome::later(async move {
        if let Some(delay) = delay {
            tokio::time::sleep(delay).await;
        }
        mixed(&server, &caller, work, answering, conditional_at_top).await
    }))
}

fn refuse_large(server: &RegionServer, request: &pb::MultiRequest) -> Result<(), Exception> {
    let rows: usize = request.region_action.iter().map(|action| action.action.len()).sum();
    let settings = server.settings();
    let most = settings.max_batch_rows;
    if rows as u64 <= most {
        return Ok(());
    }
    if settings.reject_large_batches {
        return Err(Exception::do_not_retry(format!(
            "Rejecting large batch operation for current batch with: Requested Number of Rows: {rows} exceeds: {most}"
        )));
    }
    tracing::debug!("a batch of {rows} rows exceeds the warning threshold of {most}");
    Ok(())
}

/// Decodes one region's actions; errors inside are kept for their actions. Takes exactly its own cells.
///
/// # Errors
/// The cells do not match the actions: nothing after this can be trusted.
fn prepare(
    server: &RegionServer,
    action: pb::RegionAction,
    old_condition: Option<model::Condition>,
    nonce_group: Option<u64>,
    cells: &mut Cells,
    filters: &mut Filters,
) -> Result<Work, Exception> {
    let place = find_region(server, &action.region).and_then(|region| {
        let condition = action.condition.as_ref().map(from_proto::condition).transpose()?;
        Ok((region, condition.or(old_condition)))
    });
    let (region, condition) = match place {
        Ok(place) => place,
        Err(exception) => {
            action.action.iter().filter_map(|one| one.mutation.as_ref()).for_each(|mutation| cells.skip(mutation));
            return Ok(Work::Failed(exception));
        }
    };
    if condition.is_some() || action.atomic() {
        let mut mutations = Vec::with_capacity(action.action.len());
        let mut first_error = None;
        for one in action.action {
            let decoded = match (one.mutation, one.get) {
                (Some(mutation), _) => from_proto::mutation(mutation, cells, nonce_group).map_err(Exception::from),
                (None, Some(_)) => Err(Exception::do_not_retry("Atomic put and/or delete only, not a Get")),
                (None, None) => Err(Exception::do_not_retry("Unexpected Action type")),
            };
            match decoded {
                Ok(mutation) => mutations.push(mutation),
                Err(error) => drop(first_error.get_or_insert(error)),
            }
        }
        if let Some(error) = first_error {
            return Ok(Work::Failed(error));
        }
        server.counts.writes.fetch_add(1, Ordering::Relaxed);
        // HBase answers an atomic nothing once.
        let count = mutations.len().max(usize::from(condition.is_none()));
        return Ok(Work::Atomic { region, count, mutations, condition });
    }
    let mut actions = Vec::with_capacity(action.action.len());
    // Puts and deletes up to here that are applied together, and why they cannot be.
    let mut together: (Vec<usize>, Option<Exception>) = Default::default();
    for one in action.action {
        let index = one.index();
        let decoded = if let Some(mutation) = one.mutation {
            server.counts.writes.fetch_add(1, Ordering::Relaxed);
            let applied = matches!(mutation.mutate_type(), MutationType::Put | MutationType::Delete);
            let decoded = from_proto::mutation(mutation, cells, nonce_group).map_err(Exception::from);
            if applied {
                together.0.push(actions.len());
                if let Err(error) = &decoded {
                    together.1.get_or_insert_with(|| error.clone());
                }
            } else {
                fail_together(&mut actions, std::mem::take(&mut together));
            }
            decoded.map(Action::Write)
        } else if let Some(get) = one.get {
            server.counts.reads.add(1);
            let get = refuse_closest_row_before(&get).and_then(|()| Ok(from_proto::get_of(get, filters)?));
            get.map(|get| Action::Get(Box::new(get)))
        } else if let Some(service_call) = one.service_call {
            Ok(Action::Service(service_call))
        } else {
            Err(Exception::new(Kind::HBaseIo, "Unexpected Action type"))
        };
        match decoded {
            Err(error) if error.is_unchecked() => return Err(error),
            decoded => actions.push((index, decoded.unwrap_or_else(Action::Bad))),
        }
    }
    fail_together(&mut actions, together);
    Ok(Work::Batch(region, actions))
}

/// One put or delete that cannot be read spoils those that would be applied with it.
fn fail_together(actions: &mut [(u32, Action)], (together, error): (Vec<usize>, Option<Exception>)) {
    if let Some(error) = error {
        for at in together {
            actions[at].1 = Action::Bad(error.clone());
        }
    }
}

fn is_plain_writes(work: &Work) -> bool {
    match work {
        Work::Failed(_) => true,
        Work::Batch(_, actions) => actions.iter().all(|(_, action)| match action {
            Action::Write(mutation) => !reads_files(mutation),
            Action::Bad(_) => true,
            Action::Get(_) | Action::Service(_) => false,
        }),
        Work::Atomic { .. } => false,
    }
}

/// What applying plain writes costs.
fn effort_units(work: &Work) -> u64 {
    let Work::Batch(_, actions) = work else { return 0 };
    let of_action = |(_, action): &(u32, Action)| match action {
        Action::Write(mutation) => region::effort_units(std::slice::from_ref(mutation)),
        Action::Get(_) | Action::Service(_) | Action::Bad(_) => 0,
    };
    actions.iter().map(of_action).sum()
}

fn is_gets(work: &Work) -> bool {
    match work {
        Work::Failed(_) => true,
        Work::Batch(_, actions) => actions.iter().all(|(_, action)| matches!(action, Action::Get(_) | Action::Bad(_))),
        Work::Atomic { .. } => false,
    }
}

fn has_costly_get(work: &Work) -> bool {
    match work {
        Work::Batch(_, actions) => {
            actions.iter().any(|(_, action)| matches!(action, Action::Get(get) if is_costly(get)))
        }
        Work::Failed(_) | Work::Atomic { .. } => false,
    }
}

fn region_failed(exception: &Exception) -> pb::RegionActionResult {
    let exception = Some(exception.to_name_bytes_pair());
    pb::RegionActionResult { exception, ..pb::RegionActionResult::default() }
}

fn finish(regions: Vec<pb::RegionActionResult>, processed: Option<bool>, answering: Answering) -> Reply {
    let response = pb::MultiResponse {
        region_action_result: regions,
        processed,
        region_statistics: Some(pb::MultiRegionLoadStats::default()),
    };
    if answering.cells.is_empty() { Reply::new(&response) } else { Reply::with_cells(&response, answering.cells) }
}

/// Writes of one region that wait for the clock.
struct Early {
    indexes: Vec<u32>,
    mutations: Vec<Mutation>,
    wait_ms: u64,
}

impl Early {
    /// What `applied` left of the writes, which are taken from `indexes` and `mutations` then.
    fn rest(applied: &Applied, indexes: &mut Vec<u32>, mutations: &mut Vec<Mutation>) -> Option<Early> {
        let (wait_ms, done) = (applied.wait_ms?, applied.results.len());
        Some(Early { indexes: indexes.split_off(done), mutations: mutations.split_off(done), wait_ms })
    }
}

/// Applies puts and deletes of one region; its answer so far, what is to be waited for with the entries that depend on
/// it, and what is left for later.
fn apply(
    server: &RegionServer,
    region: &Arc<Region>,
    mut indexes: Vec<u32>,
    mut mutations: Vec<Mutation>,
    pause: Option<&dyn PausePoint>,
    into: &mut pb::RegionActionResult,
) -> (Option<(Commit, Vec<usize>)>, Option<Early>) {
    match mutate::apply(server, region, &mutations, pause) {
        Ok(applied) => {
            let early = Early::rest(&applied, &mut indexes, &mut mutations);
            let mut depending = Vec::with_capacity(indexes.len());
            for (index, result) in indexes.into_iter().zip(applied.results) {
                match result {
                    Ok(_) => {
                        depending.push(into.result_or_exception.len());
                        into.result_or_exception.push(succeeded(index));
                    }
                    Err(error) => into.result_or_exception.push(failed(index, &exception_of(&error))),
                }
            }
            server.consider_flush(region);
            (Some((applied.commit, depending)), early)
        }
        Err(error) => {
            let exception = exception_of(&server.escalate_fatal(error));
            into.result_or_exception.extend(indexes.into_iter().map(|index| failed(index, &exception)));
            (None, None)
        }
    }
}

/// A batch of writes that need only memory: applied at once, one wait for the log at the end.
fn puts(server: &Arc<RegionServer>, work: Vec<Work>, context: &mut CallContext<'_>) -> Outcome {
    let mut regions = Vec::with_capacity(work.len());
    let mut commits: Vec<(Commit, usize)> = Vec::new();
    let mut late: Vec<(Arc<Region>, Early, usize)> = Vec::new();
    for one in work {
        match one {
            Work::Failed(exception) => regions.push(RegionAnswer::Told(region_failed(&exception))),
            Work::Batch(region, actions) => {
                let (answer, commit, early) = put_all(server, &region, actions, context.pause);
                late.extend(early.map(|early| (region, early, regions.len())));
                commits.extend(commit.map(|commit| (commit, regions.len())));
                regions.push(answer);
            }
            Work::Atomic { .. } => {}
        }
    }
    // A batch mostly belongs to one region; its wait is the whole wait.
    if commits.len() <= 1 && late.is_empty() {
        let Some((commit, at)) = commits.pop() else { return Outcome::Ready(Ok(encode(&regions))) };
        return reply_on_commit(server, commit, context, move |outcome| {
            if let Err(exception) = outcome {
                regions[at].fail(&exception);
            }
            Ok(encode(&regions))
        });
    }
    let waits: Vec<_> = commits.into_iter().map(|(commit, at)| (settled(commit), at)).collect();
    let (server, caller) = (server.clone(), Caller::of(context.call));
    Outcome::later(async move {
        for (wait, at) in waits {
            if let Err(exception) = settle(&server, wait).await {
                regions[at].fail(&exception);
            }
        }
        for (region, early, at) in late {
            let mut part = pb::RegionActionResult::default();
            wait_for_clock(early.wait_ms).await;
            apply_and_wait(&server, &region, &caller, early.indexes, early.mutations, &mut part).await;
            regions[at].extend(part);
        }
        Ok(encode(&regions))
    })
}

/// Applies one region's puts and deletes; its answer if the log keeps them, what to wait for, and what is left for
/// later.
fn put_all(
    server: &RegionServer,
    region: &Arc<Region>,
    actions: Vec<(u32, Action)>,
    pause: Option<&dyn PausePoint>,
) -> (RegionAnswer, Option<Commit>, Option<Early>) {
    let (mut indexes, mut mutations) = (Vec::with_capacity(actions.len()), Vec::with_capacity(actions.len()));
    let mut told = Vec::new();
    for (index, action) in actions {
        match action {
            Action::Write(mutation) => {
                indexes.push(index);
                mutations.push(mutation);
            }
            Action::Bad(exception) => told.push(failed(index, &exception)),
            Action::Get(_) | Action::Service(_) => {}
        }
    }
    if mutations.is_empty() {
        return (RegionAnswer::told(told), None, None);
    }
    let applied = match mutate::apply(server, region, &mutations, pause) {
        Ok(applied) => applied,
        Err(error) => {
            let exception = exception_of(&server.escalate_fatal(error));
            told.extend(indexes.into_iter().map(|index| failed(index, &exception)));
            return (RegionAnswer::told(told), None, None);
        }
    };
    let early = Early::rest(&applied, &mut indexes, &mut mutations);
    server.consider_flush(region);
    if told.is_empty() && applied.results.iter().all(Result::is_ok) {
        return (RegionAnswer::Done(indexes), Some(applied.commit), early);
    }
    for (index, result) in indexes.into_iter().zip(applied.results) {
        told.push(match result {
            Ok(_) => succeeded(index),
            Err(error) => failed(index, &exception_of(&error)),
        });
    }
    (RegionAnswer::told(told), Some(applied.commit), early)
}

fn fail_entries(result: &mut pb::RegionActionResult, entries: &[usize], exception: &Exception) {
    for at in entries {
        let entry = &mut result.result_or_exception[*at];
        *entry = failed(entry.index(), exception);
    }
}

/// A batch of gets alone. `None` when one would have to read a file and may not, or when all together are too much.
///
/// # Errors
/// It ended at a pause point: nobody waits for the rest.
fn gets(
    server: &RegionServer,
    work: &[Work],
    mut answering: Answering,
    mode: ReadMode<'_>,
) -> Result<Option<Reply>, Exception> {
    let mut regions = Vec::with_capacity(work.len());
    for one in work {
        match one {
            Work::Failed(exception) => regions.push(region_failed(exception)),
            Work::Batch(region, actions) => {
                let mut result = pb::RegionActionResult::default();
                for (index, action) in actions {
                    let entry = match action {
                        Action::Get(get) => match one_get(region, get, &mut answering, *index, mode) {
                            Err(error) if error.is_would_block() => return Ok(None),
                            Err(error @ RegionError::Interrupted(_)) => return Err(exception_of(&error)),
                            Err(error) => failed(*index, &exception_of(&server.escalate_fatal(error))),
                            Ok(entry) => entry,
                        },
                        Action::Bad(exception) => failed(*index, exception),
                        Action::Write(_) | Action::Service(_) => continue,
                    };
                    result.result_or_exception.push(entry);
                }
                regions.push(result);
            }
            Work::Atomic { .. } => {}
        }
    }
    Ok(Some(finish(regions, None, answering)))
}

fn one_get(
    region: &Region,
    get: &Get,
    answering: &mut Answering,
    index: u32,
    mode: ReadMode<'_>,
) -> Result<pb::ResultOrException, RegionError> {
    if answering.is_full() {
        return Ok(failed(index, &too_large(answering)));
    }
    let (result, cells) = read_result(region, get, answering.has_codec, mode)?;
    Ok(answering.result(index, result, cells))
}

fn too_large(answering: &Answering) -> Exception {
    Exception::new(
        Kind::MultiActionResultTooLarge,
        format!("Max size exceeded CellSize: {} BlockSize: 0", answering.size()),
    )
}

/// Everything else, step by step.
async fn mixed(
    server: &Arc<RegionServer>,
    caller: &Caller,
    work: Vec<Work>,
    mut answering: Answering,
    conditional_at_top: bool,
) -> CallResult {
    let mut regions = Vec::with_capacity(work.len());
    let mut processed_at_top = None;
    for one in work {
        regions.push(match one {
            Work::Failed(exception) => region_failed(&exception),
            Work::Batch(region, actions) => batch(server, region, caller, actions, &mut answering).await,
            Work::Atomic { region, mutations, condition, count } => {
                let conditional = condition.is_some();
                match atomic(server, region, caller, mutations, condition).await {
                    Ok((held, result)) => {
                        if conditional_at_top || !conditional {
                            processed_at_top = Some(held);
                        }
                        atomic_result(held, result, count, conditional_at_top)
                    }
                    Err(exception) => region_failed(&exception),
                }
            }
        });
    }
    Ok(finish(regions, processed_at_top, answering))
}

fn atomic_result(
    held: bool,
    result: Option<CellBuffer>,
    count: usize,
    conditional_at_top: bool,
) -> pb::RegionActionResult {
    let mut entries: Vec<_> = (0..count as u32)
        .map(|index| pb::ResultOrException { index: Some(index), ..pb::ResultOrException::default() })
        .collect();
    if let (Some(first), Some(cells)) = (entries.first_mut(), &result) {
        first.result = Some(to_proto::inline_result(cells.iter_from(0)));
    }
    let processed = (!conditional_at_top).then_some(held);
    pb::RegionActionResult { result_or_exception: entries, processed, ..pb::RegionActionResult::default() }
}

async fn atomic(
    server: &Arc<RegionServer>,
    region: Arc<Region>,
    caller: &Caller,
    mutations: Vec<Mutation>,
    condition: Option<model::Condition>,
) -> Result<(bool, Option<CellBuffer>), Exception> {
    if mutations.is_empty() {
        return Ok((true, None));
    }
    if let Some(condition) = condition {
        return check(server, region, caller, condition, mutations, None).await;
    }
    let nonce = mutations.iter().rev().find_map(|mutation| mutation.nonce);
    let Some(running) = begin_nonce(server, nonce).await else { return Ok((true, None)) };
    let counts = mutations.iter().any(|m| matches!(m.kind, MutationKind::Increment | MutationKind::Append));
    let write = move |region: &Arc<Region>| {
        let written = region.mutate_rows(&mutations, nonce)?;
        Ok((written.result, written.commit))
    };
    let result = written(server, &region, caller, write).await;
    running.end(result.is_ok());
    result.map(|cells| (true, Some(if counts { cells } else { CellBuffer::new() })))
}

async fn batch(
    server: &Arc<RegionServer>,
    region: Arc<Region>,
    caller: &Caller,
    actions: Vec<(u32, Action)>,
    answering: &mut Answering,
) -> pb::RegionActionResult {
    let mut result = pb::RegionActionResult::default();
    let (mut indexes, mut mutations) = (Vec::new(), Vec::new());
    for (index, action) in actions {
        let entry = match action {
            Action::Bad(exception) => failed(index, &exception),
            Action::Get(get) => {
                let (at, target) = (server.clone(), region.clone());
                let has_codec = answering.has_codec;
                if answering.is_full() {
                    failed(index, &too_large(answering))
                } else {
                    let read =
                        move |pause: &dyn PausePoint| read_result(&target, &get, has_codec, ReadMode::MayRead(pause));
                    match on_lane(server, &region, LaneName::Read, caller, read).await {
                        Ok(Ok((message, cells))) => answering.result(index, message, cells),
                        Ok(Err(error)) => failed(index, &exception_of(&at.escalate_fatal(error))),
                        Err(exception) => failed(index, &exception),
                    }
                }
            }
            Action::Service(call) => match endpoints::run(server, &region, call, caller).await {
                Ok(value) => pb::ResultOrException {
                    index: Some(index),
                    service_result: Some(pb::CoprocessorServiceResult { value: Some(value) }),
                    ..pb::ResultOrException::default()
                },
                Err(exception) => failed(index, &exception),
            },
            Action::Write(mutation) if matches!(mutation.kind, MutationKind::Put | MutationKind::Delete) => {
                indexes.push(index);
                mutations.push(mutation);
                continue;
            }
            Action::Write(mutation) => {
                let (indexes, mutations) = (std::mem::take(&mut indexes), std::mem::take(&mut mutations));
                apply_and_wait(server, &region, caller, indexes, mutations, &mut result).await;
                match count(server, region.clone(), caller, mutation, None).await {
                    Ok(cells) => answering.place(index, cells),
                    Err(exception) => failed(index, &exception),
                }
            }
        };
        result.result_or_exception.push(entry);
    }
    apply_and_wait(server, &region, caller, indexes, mutations, &mut result).await;
    result
}

/// Applies puts and deletes on the blocking pool (a delete of the newest version reads) and waits until they are durable.
async fn apply_and_wait(
    server: &Arc<RegionServer>,
    region: &Arc<Region>,
    caller: &Caller,
    mut indexes: Vec<u32>,
    mut mutations: Vec<Mutation>,
    result: &mut pb::RegionActionResult,
) {
    while !mutations.is_empty() {
        let (at, target, these) = (server.clone(), region.clone(), indexes.clone());
        let bytes: usize = mutations.iter().map(|mutation| mutation.cells.bytes().len()).sum();
        let is_large = bytes > LARGE_REQUEST_BYTES;
        let lane = if is_large { LaneName::LargeWrite } else { LaneName::Write };
        let work = move |pause: &dyn PausePoint| {
            let mut part = pb::RegionActionResult::default();
            let (pending, early) = apply(&at, &target, indexes, mutations, is_large.then_some(pause), &mut part);
            (part, pending, early)
        };
        let (mut part, pending, early) = match on_lane(server, region, lane, caller, work).await {
            Ok(applied) => applied,
            Err(exception) => {
                result.result_or_exception.extend(these.into_iter().map(|index| failed(index, &exception)));
                return;
            }
        };
        if let Some((commit, depending)) = pending {
            if commit.ticket().is_none() {
                commit.complete();
            } else if let Err(exception) = settle(server, settled(commit)).await {
                fail_entries(&mut part, &depending, &exception);
            }
        }
        result.result_or_exception.append(&mut part.result_or_exception);
        let Some(early) = early else { return };
        wait_for_clock(early.wait_ms).await;
        (indexes, mutations) = (early.indexes, early.mutations);
    }
}
