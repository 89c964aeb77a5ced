//! MultiRowMutationService: several rows of one region written as one, perhaps under conditions on any of its rows.
//! Follows: `MultiRowMutationEndpoint`.

use crate::blocking::Caller;
use crate::handlers::{admission, mutate};
use crate::server::RegionServer;
use cell::print::to_string_binary;
use convert::from_proto::{self, Cells};
use filter::CompareOp;
use model::mutation::ConditionTest;
use model::{Condition, Mutation, Nonce};
use proto::pb;
use region::Region;
use rpc::exception::Exception;
use std::sync::Arc;

/// Rows to be written together, if all conditions hold.
pub(super) struct Rows {
    mutations: Vec<Mutation>,
    conditions: Vec<Condition>,
    nonce: Option<Nonce>,
}

/// # Errors
/// What cannot be understood.
pub(super) fn decode(request: pb::MutateRowsRequest) -> Result<Rows, Exception> {
    let mut mutations = Vec::with_capacity(request.mutation_request.len());
    for mutation in request.mutation_request {
        mutations.push(from_proto::mutation(mutation, &mut Cells::default(), None)?);
    }
    let conditions = request.condition.iter().map(condition).collect::<Result<Vec<Condition>, Exception>>()?;
    // Logged with the entry, as in HBase, which does not look for earlier tries of this call either.
    let number = request.nonce.filter(|number| *number != 0);
    let nonce = number.map(|number| Nonce { group: request.nonce_group.unwrap_or(0), number });
    Ok(Rows { mutations, conditions, nonce })
}

/// Writes all or nothing; whether the conditions held.
///
/// # Errors
/// A row that is not the region's (WrongRegion if it is the first, for then the region may have changed; else the rows
/// are of several regions and a retry is in vain); what the region refuses.
pub(super) async fn mutate_rows(
    server: &Arc<RegionServer>,
    region: &Arc<Region>,
    Rows { mutations, conditions, nonce }: Rows,
    caller: &Caller,
) -> Result<pb::MutateRowsResponse, Exception> {
    check_rows(region, &mutations)?;
    let bytes = mutations.iter().map(|mutation| mutation.cells.bytes().len()).sum();
    if let Some(delay) = admission(server, region, bytes)? {
        tokio::time::sleep(delay).await;
    }
    let write = move |region: &Arc<Region>| {
        let checked = region.check_and_mutate_rows(&conditions, &mutations, nonce)?;
        Ok((checked.processed, checked.commit))
    };
    let processed = mutate::apply_blocking(server, region, caller, "Region.batchMutate", write).await?;
    Ok(pb::MutateRowsResponse { processed: Some(processed) })
}

fn check_rows(region: &Region, mutations: &[Mutation]) -> Result<(), Exception> {
    match mutations.iter().position(|mutation| !region.info().contains(&mutation.row)) {
        None => Ok(()),
        Some(at) => {
            let message = format!("Requested row out of range '{}'", to_string_binary(&mutations[at].row));
            Err(if at == 0 { Exception::wrong_region(message) } else { Exception::do_not_retry(message) })
        }
    }
}

/// As [`from_proto::condition`], but here the comparator is used as it is, and an empty one asks for "absent or empty"
/// whatever the operator.
fn condition(message: &pb::Condition) -> Result<Condition, Exception> {
    from_proto::check_row(&message.row)?;
    let mut condition = from_proto::condition(message)?;
    if let ConditionTest::Value { op, comparator, .. } = &mut condition.test
        && let Some(given) = &message.comparator
    {
        *comparator = Arc::new(from_proto::comparator(given)?);
        if comparator.value_bytes().is_empty() {
            *op = CompareOp::Equal;
        }
    }
    Ok(condition)
}
