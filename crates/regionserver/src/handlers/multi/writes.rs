//! Batches of puts and deletes.

use super::answer::{RegionAnswer, encode, failed, region_failed, succeeded};
use super::{Action, Work};
use crate::blocking::{CallContext, Caller, LARGE_REQUEST_BYTES, on_lane};
use crate::errors::exception_of;
use crate::handlers::mutate::{
    self, await_commit, commit_receiver, commit_receiver_in_batch, ended, reply_on_commit, wait_for_clock,
};
use crate::operations::Operation;
use crate::server::RegionServer;
use base::PausePoint;
use model::Mutation;
use proto::pb;
use region::{Applied, Commit, Region};
use rpc::Outcome;
use rpc::exception::Exception;
use scheduler::LaneName;
use std::sync::Arc;

/// A batch of writes that need only memory: applied at once, one wait for the log at the end.
pub(super) fn puts(server: &Arc<RegionServer>, work: Vec<Work>, context: &mut CallContext<'_>) -> Outcome {
    let mut regions = Vec::with_capacity(work.len());
    let mut commits: Vec<(Commit, usize)> = Vec::new();
    let mut late: Vec<(Arc<Region>, Early, usize)> = Vec::new();
    let operations = Operation::of_batch(work.iter().flat_map(Work::writes));
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
        return reply_on_commit(server, commit, operations, context, move |outcome| {
            if let Err(exception) = outcome {
                regions[at].fail(&exception);
            }
            Ok(encode(&regions))
        });
    }
    // One write for the log entries of all regions.
    let batches = server.logs().map(wal::Log::batch);
    let waits: Vec<_> = commits.into_iter().map(|(commit, at)| (commit_receiver_in_batch(commit), at)).collect();
    drop(batches);
    let (server, caller, begun_us) = (server.clone(), Caller::of(context.call), context.begun_us);
    Outcome::later(async move {
        for (wait, at) in waits {
            if let Err(exception) = await_commit(&server, wait).await {
                regions[at].fail(&exception);
            }
        }
        for (region, early, at) in late {
            let mut part = pb::RegionActionResult::default();
            wait_for_clock(early.wait_ms).await;
            apply_and_wait(&server, &region, &caller, early.indexes, early.mutations, &mut part).await;
            regions[at].extend(part);
        }
        ended(&server, caller.load.as_ref(), operations, begun_us);
        Ok(encode(&regions))
    })
}

/// Applies one region's puts and deletes; its answer if the log keeps them, what to wait for, and what is left for
/// later.
pub(super) fn put_all(
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
    server.maintenance.consider_flush(region);
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

/// Writes of one region that wait for the clock.
pub(super) struct Early {
    indexes: Vec<u32>,
    mutations: Vec<Mutation>,
    wait_ms: u64,
}

impl Early {
    /// What `applied` left of the writes, which are taken from `indexes` and `mutations` then.
    pub(super) fn rest(applied: &Applied, indexes: &mut Vec<u32>, mutations: &mut Vec<Mutation>) -> Option<Early> {
        let (wait_ms, done) = (applied.wait_ms?, applied.results.len());
        Some(Early { indexes: indexes.split_off(done), mutations: mutations.split_off(done), wait_ms })
    }
}

/// Applies puts and deletes of one region; its answer so far, what is to be waited for with the entries that depend on
/// it, and what is left for later.
pub(super) fn apply(
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
            server.maintenance.consider_flush(region);
            (Some((applied.commit, depending)), early)
        }
        Err(error) => {
            let exception = exception_of(&server.escalate_fatal(error));
            into.result_or_exception.extend(indexes.into_iter().map(|index| failed(index, &exception)));
            (None, None)
        }
    }
}

pub(super) fn fail_entries(result: &mut pb::RegionActionResult, entries: &[usize], exception: &Exception) {
    for at in entries {
        let entry = &mut result.result_or_exception[*at];
        *entry = failed(entry.index(), exception);
    }
}

/// Applies puts and deletes on the blocking pool (a delete of the newest version reads) and waits until they are durable.
pub(super) async fn apply_and_count(
    server: &Arc<RegionServer>,
    region: &Arc<Region>,
    caller: &Caller,
    indexes: Vec<u32>,
    mutations: Vec<Mutation>,
    result: &mut pb::RegionActionResult,
) {
    let (begun_us, operations) = (server.env.clock.monotonic_us(), Operation::of_batch(mutations.iter()));
    apply_and_wait(server, region, caller, indexes, mutations, result).await;
    ended(server, caller.load.as_ref(), operations, begun_us);
}

/// As [`apply_and_count`], for what is counted as a part of something larger.
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
            } else if let Err(exception) = await_commit(server, commit_receiver(commit, caller.log_wait())).await {
                fail_entries(&mut part, &depending, &exception);
            }
        }
        result.result_or_exception.append(&mut part.result_or_exception);
        let Some(early) = early else { return };
        wait_for_clock(early.wait_ms).await;
        (indexes, mutations) = (early.indexes, early.mutations);
    }
}
