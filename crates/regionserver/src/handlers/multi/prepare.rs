//! A batch decoded: what is to be done in which region, and what it costs.

#![allow(deprecated, reason = "clients before 2.4 send and read the fields that HBase calls deprecated")]

use super::{Action, Work};
use crate::handlers::find_region;
use crate::handlers::get::{is_costly, refuse_closest_row_before};
use crate::handlers::mutate::reads_files;
use crate::server::RegionServer;
use convert::from_proto::{self, Cells, Filters};
use model::Mutation;
use proto::pb;
use proto::pb::mutation_proto::MutationType;
use region::Region;
use rpc::exception::{Exception, Kind};
use std::sync::atomic::Ordering;

/// Decodes one region's actions; errors inside are kept for their actions. Takes exactly its own cells.
///
/// # Errors
/// The cells do not match the actions: nothing after this can be trusted.
pub(super) fn prepare(
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
            skip_cells(&action, cells);
            return Ok(Work::Failed(exception));
        }
    };
    if condition.is_some() || action.atomic() {
        let mut mutations = Vec::with_capacity(action.action.len());
        let mut first_error = None;
        for one in action.action {
            let decoded = match (one.mutation, one.get) {
                (Some(mutation), _) => write(server, &region, mutation, cells, nonce_group),
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
            let decoded = write(server, &region, mutation, cells, nonce_group);
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

/// A mutation that the region may take.
fn write(
    server: &RegionServer,
    region: &Region,
    mutation: pb::MutationProto,
    cells: &mut Cells,
    nonce_group: Option<u64>,
) -> Result<Mutation, Exception> {
    let mutation = from_proto::mutation(mutation, cells, nonce_group)?;
    server.space_quotas.check(&region.info().table, mutation.kind)?;
    Ok(mutation)
}

/// Passes over the cells of actions that are not done.
pub(super) fn skip_cells(action: &pb::RegionAction, cells: &mut Cells) {
    action.action.iter().filter_map(|one| one.mutation.as_ref()).for_each(|mutation| cells.skip(mutation));
}

/// One put or delete that cannot be read spoils those that would be applied with it.
pub(super) fn fail_together(actions: &mut [(u32, Action)], (together, error): (Vec<usize>, Option<Exception>)) {
    if let Some(error) = error {
        for at in together {
            actions[at].1 = Action::Bad(error.clone());
        }
    }
}

pub(super) fn is_plain_writes(work: &Work) -> bool {
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
pub(super) fn effort_units(work: &Work) -> u64 {
    let Work::Batch(_, actions) = work else { return 0 };
    let of_action = |(_, action): &(u32, Action)| match action {
        Action::Write(mutation) => region::effort_units(std::slice::from_ref(mutation)),
        Action::Get(_) | Action::Service(_) | Action::Bad(_) => 0,
    };
    actions.iter().map(of_action).sum()
}

pub(super) fn is_gets(work: &Work) -> bool {
    match work {
        Work::Failed(_) => true,
        Work::Batch(_, actions) => actions.iter().all(|(_, action)| matches!(action, Action::Get(_) | Action::Bad(_))),
        Work::Atomic { .. } => false,
    }
}

pub(super) fn has_costly_get(work: &Work) -> bool {
    match work {
        Work::Batch(_, actions) => {
            actions.iter().any(|(_, action)| matches!(action, Action::Get(get) if is_costly(get)))
        }
        Work::Failed(_) | Work::Atomic { .. } => false,
    }
}
