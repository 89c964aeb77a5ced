//! Multi: batches over several regions; atomic rows; conditions. Follows: `RSRpcServices#multi`.
//!
//! Cells are taken from the request's cell block strictly in the order of regions and actions, whatever fails. Within a
//! region, gets, increments and appends are done in order; puts and deletes are gathered and applied together.

#![allow(deprecated, reason = "clients before 2.4 send and read the fields that HBase calls deprecated")]

mod answer;
mod charges;
mod mixed;
mod prepare;
mod reads;
mod writes;

use self::answer::Answering;
use self::charges::{Charges, charge, written_bytes};
use self::mixed::mixed;
use self::prepare::{effort_units, has_costly_get, is_gets, is_plain_writes, prepare, skip_cells};
use self::reads::gets;
use self::writes::puts;
use super::{Answer, admission};
use crate::blocking::{CallContext, Caller, is_large, large_on_lane, read_on_lane};
use crate::operations::Operation;
use crate::server::RegionServer;
use crate::users::timed;
use base::{EffortBudget, ReadMode};
use convert::from_proto::{self, Cells, Filters};
use hfile::BlockReads;
use model::{Get, Mutation};
use proto::pb;
use region::Region;
use rpc::exception::Exception;
use rpc::{Call, ClientLoad, Outcome};
use scheduler::LaneName;
use std::sync::Arc;
use std::time::Duration;

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

impl Work {
    /// The mutations that stand for themselves.
    fn writes(&self) -> impl Iterator<Item = &Mutation> + Clone {
        let actions = if let Work::Batch(_, actions) = self { &actions[..] } else { &[] };
        actions
            .iter()
            .filter_map(|(_, action)| if let Action::Write(mutation) = action { Some(mutation) } else { None })
    }

    /// How many gets there are.
    fn gets(&self) -> u64 {
        let Work::Batch(_, actions) = self else { return 0 };
        actions.iter().filter(|(_, action)| matches!(action, Action::Get(_))).count() as u64
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
    let conditional_at_top = request.condition.is_some();
    let (work, charges) = decode(server, call, request, Cells::new(call.cells()?))?;
    let (is_plain, is_gets) = (work.iter().all(is_plain_writes), work.iter().all(is_gets));
    // Large writes wait on their lane for what they need; reads need none of it.
    let is_held_up = !(is_gets || is_plain && context.pause.is_some());
    let delay = if is_held_up { delay_of(server, &work, call.size_bytes)? } else { None };
    if conditional_at_top && work.is_empty() {
        return Ok(Outcome::reply(&pb::MultiResponse { processed: Some(true), ..pb::MultiResponse::default() }));
    }
    if delay.is_none() && is_plain && context.affords(work.iter().map(effort_units).sum()) {
        return Ok(puts(server, work, context));
    }
    let size_limit = server.most_reply_bytes().min(charges.max_result_bytes().unwrap_or(u64::MAX)) as usize;
    let answering = Answering::new(call.has_codec(), size_limit, charges, call.cancellation().making());
    if is_gets {
        return gets_here_or_on_lane(server, work, context, answering);
    }
    let (server, caller) = (server.clone(), Caller::of(call));
    Ok(Outcome::later(async move {
        if let Some(delay) = delay {
            tokio::time::sleep(delay).await;
        }
        mixed(&server, &caller, work, answering, conditional_at_top).await
    }))
}

/// What the request asks for, region by region, and what it takes of quotas.
///
/// # Errors
/// The request as a whole cannot be read.
fn decode(
    server: &RegionServer,
    call: &Call,
    request: pb::MultiRequest,
    mut cells: Cells,
) -> Result<(Vec<Work>, Charges), Exception> {
    let old_condition = request.condition.as_ref().map(from_proto::condition).transpose()?;
    let mut filters = Filters::default();
    let mut work = Vec::with_capacity(request.region_action.len());
    let mut charges = Vec::new();
    for action in request.region_action {
        let charge = match charge(server, call, &action) {
            Ok(charge) => charge,
            Err(exception) => {
                skip_cells(&action, &mut cells);
                work.push(Work::Failed(exception));
                charges.push(None);
                continue;
            }
        };
        let one = prepare(server, action, old_condition.clone(), request.nonce_group, &mut cells, &mut filters)?;
        if let Some(charge) = &charge {
            charge.add_written(|| written_bytes(&one));
        }
        work.push(one);
        charges.push(charge);
    }
    Ok((work, Charges::new(charges)))
}

/// How long writes of `bytes` must wait for the memstores.
///
/// # Errors
/// There is no room.
fn delay_of(server: &RegionServer, work: &[Work], bytes: usize) -> Result<Option<Duration>, Exception> {
    let mut delay = None;
    let regions = work.iter().filter(|one| matches!(one, Work::Batch(..) | Work::Atomic { .. })).count();
    // Each pays for about its part.
    let bytes = bytes / regions.max(1);
    for one in work {
        if let Work::Batch(region, _) | Work::Atomic { region, .. } = one {
            delay = delay.max(admission(server, region, bytes)?);
        }
    }
    Ok(delay)
}

/// A batch of gets alone: from memory if that is all they need, else on a lane.
fn gets_here_or_on_lane(
    server: &Arc<RegionServer>,
    work: Vec<Work>,
    context: &mut CallContext<'_>,
    answering: Answering,
) -> Answer {
    let may_wait = || Exception::io("a read that may block said that it would");
    if !work.iter().any(has_costly_get) {
        let (budget, before) = (EffortBudget::of_network_thread(), BlockReads::of_thread());
        if let Some(reply) = gets(server, &work, answering.begin(), ReadMode::FromMemory(&budget))? {
            gets_ended(server, context.call.conn.load.get(), &work, context.begun_us, before);
            return Ok(Outcome::Ready(Ok(reply)));
        }
    }
    let region = work.iter().find_map(|one| match one {
        Work::Batch(region, _) => Some(region.clone()),
        Work::Failed(_) | Work::Atomic { .. } => None,
    });
    let region = region.ok_or_else(may_wait)?;
    let (at, load) = (server.clone(), context.call.conn.load.get().cloned());
    Ok(read_on_lane(server, &region, context, move |pause| {
        let (begun_us, before) = (at.env.clock.monotonic_us(), BlockReads::of_thread());
        let reply = gets(&at, &work, answering, ReadMode::MayRead(pause))?;
        gets_ended(&at, load.as_ref(), &work, begun_us, before);
        reply.ok_or_else(may_wait)
    }))
}

/// Counts the gets of a batch, each with the same part of the time since `begun_us` and of what was read since `before`.
fn gets_ended(server: &RegionServer, load: Option<&Arc<ClientLoad>>, work: &[Work], begun_us: u64, before: BlockReads) {
    let took_us = server.env.clock.monotonic_us().saturating_sub(begun_us);
    let gets: u64 = work.iter().map(Work::gets).sum();
    if let Some(took_us) = took_us.checked_div(gets) {
        server.operations.ended_together(Operation::Get, took_us, gets);
        timed(load, Operation::Get, took_us, gets);
        server.operations.got(BlockReads::of_thread().since(before).scanned_bytes / gets, gets);
    }
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
