//! Batches that are done step by step: several kinds of actions, conditions, increments, what reads files.

#![allow(deprecated, reason = "clients before 2.4 send and read the fields that HBase calls deprecated")]

use super::answer::{Answering, failed, finish, region_failed};
use super::reads::too_large;
use super::writes::apply_and_count;
use super::{Action, Work};
use crate::blocking::{Caller, on_lane};
use crate::endpoints;
use crate::errors::exception_of;
use crate::handlers::get::read_result;
use crate::handlers::mutate::{apply_blocking, begin_nonce, check, ended, increment_or_append};
use crate::operations::Operation;
use crate::server::RegionServer;
use base::{PausePoint, ReadMode};
use cell::CellBuffer;
use convert::to_proto;
use model::{Mutation, MutationKind};
use proto::pb;
use region::Region;
use rpc::CallResult;
use rpc::exception::Exception;
use scheduler::LaneName;
use std::sync::Arc;

/// Everything else, step by step.
pub(super) async fn mixed(
    server: &Arc<RegionServer>,
    caller: &Caller,
    work: Vec<Work>,
    mut answering: Answering,
    conditional_at_top: bool,
) -> CallResult {
    let mut regions = Vec::with_capacity(work.len());
    let mut processed_at_top = None;
    for (at, one) in work.into_iter().enumerate() {
        let since = answering.serialized_bytes();
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
        answering.charge(at, since);
    }
    Ok(finish(regions, processed_at_top, answering))
}

pub(super) fn atomic_result(
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

pub(super) async fn atomic(
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
    let result = apply_blocking(server, &region, caller, "Region.batchMutate", write).await;
    running.end(result.is_ok());
    result.map(|cells| (true, Some(if counts { cells } else { CellBuffer::new() })))
}

pub(super) async fn batch(
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
                    let begun_us = server.env.clock.monotonic_us();
                    let read =
                        move |pause: &dyn PausePoint| read_result(&target, &get, has_codec, ReadMode::MayRead(pause));
                    let read = on_lane(server, &region, LaneName::Read, caller, read).await;
                    ended(server, caller.load.as_ref(), &[Operation::Get], begun_us);
                    match read {
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
                apply_and_count(server, &region, caller, indexes, mutations, &mut result).await;
                if let Some(load) = &caller.load {
                    load.writes.add(1);
                }
                match increment_or_append(server, region.clone(), caller, mutation, None).await {
                    Ok(cells) => answering.place(index, cells),
                    Err(exception) => failed(index, &exception),
                }
            }
        };
        result.result_or_exception.push(entry);
    }
    apply_and_count(server, &region, caller, indexes, mutations, &mut result).await;
    result
}
