//! What a multi brings back. Follows: `ResponseConverter#getResults`.

use std::sync::Arc;

use cell::CellBlock;
use proto::pb;

use super::Item;
use crate::channel::Reply;
use crate::locator::{Located, inline_row};
use crate::{Error, RemoteException, Result, Row};

/// An item, where it was done, and what came of it.
pub(super) type Outcome = (usize, Arc<Located>, Result<Row>);

/// The outcome of each item of a multi.
pub(super) fn read_reply(
    items: &[Item<'_>],
    actions: &[(Arc<Located>, Vec<usize>)],
    reply: &Reply,
) -> Result<Vec<Outcome>> {
    let response: pb::MultiResponse = reply.decode()?;
    if response.region_action_result.len() != actions.len() {
        return Err(Error::Malformed("a multi's reply has not one result for each region".to_owned()));
    }
    let mut cells = reply.cells()?;
    let mut outcomes = Vec::with_capacity(actions.iter().map(|(_, items)| items.len()).sum());
    for ((located, of_region), result) in actions.iter().zip(response.region_action_result) {
        if let Some(exception) = result.exception {
            let error = Error::Remote(Box::new(RemoteException::from_pair(exception)));
            outcomes.extend(of_region.iter().map(|item| (*item, located.clone(), Err(error.clone()))));
            continue;
        }
        if let [item] = of_region[..]
            && let Item::Row(_, condition) = items[item]
        {
            let mut row = Row::default();
            let mut failed = None;
            for entry in result.result_or_exception {
                match take_outcome(entry, &mut cells)? {
                    Ok(one) if !one.is_empty() => row = one,
                    Ok(_) => {}
                    Err(e) => failed = Some(e),
                }
            }
            if row.is_empty() && condition.is_some() {
                row = Row::of_existence(result.processed.unwrap_or(false));
            }
            outcomes.push((item, located.clone(), failed.map_or(Ok(row), Err)));
            continue;
        }
        for entry in result.result_or_exception {
            let item = of_region.get(entry.index() as usize).copied();
            let item = item.ok_or_else(|| Error::Malformed("an answer to no action".to_owned()))?;
            outcomes.push((item, located.clone(), take_outcome(entry, &mut cells)?));
        }
    }
    Ok(outcomes)
}

/// One answer; its cells are taken off the front of `cells`.
fn take_outcome(entry: pb::ResultOrException, cells: &mut CellBlock) -> Result<Result<Row>> {
    if let Some(exception) = entry.exception {
        return Ok(Err(Error::Remote(Box::new(RemoteException::from_pair(exception)))));
    }
    let Some(result) = entry.result else { return Ok(Ok(Row::default())) };
    if let Some(exists) = result.exists {
        return Ok(Ok(Row::of_existence(exists)));
    }
    let noted = |mut row: Row| {
        row.note(&result);
        Ok(Ok(row))
    };
    if !result.cell.is_empty() {
        return noted(inline_row(&result)?);
    }
    let count = usize::try_from(result.associated_cell_count()).unwrap_or(0);
    if count == 0 {
        return noted(Row::default());
    }
    let (own, rest) =
        cells.split(count).ok_or_else(|| Error::Malformed("fewer cells than a multi's reply announces".to_owned()))?;
    *cells = rest;
    noted(Row::new(own))
}
