//! Many reads and writes at once: grouped by region and server, one multi to each server, what failed again. Follows:
//! `AsyncBatchRpcRetryingCaller`, `RequestConverter#buildNoDataRegionActions`, `ResponseConverter#getResults`.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use cell::CellBlock;
use model::{Condition, Get, Mutation};
use proto::methods::Method;
use proto::pb;

use crate::channel::{Pending, Reply, Request};
use crate::locator::{Located, Side, inline_row};
use crate::{Error, RemoteException, Result, Row, Table};

/// One of many things to do.
#[derive(Debug, Clone)]
pub enum Action {
    /// Read a row.
    Get(Get),
    /// Write to a row.
    Mutate(Mutation),
    /// Several writes to one row, all or nothing.
    MutateRow(Vec<Mutation>),
    /// The same if a condition holds; [`Row::exists`] of the outcome says whether it did.
    Check {
        /// The condition.
        condition: Condition,
        /// The writes, to the condition's row.
        mutations: Vec<Mutation>,
    },
}

/// An [`Action`], borrowed.
#[derive(Clone, Copy)]
enum Item<'a> {
    Get(&'a Get),
    Mutate(&'a Mutation),
    Row(&'a [Mutation], Option<&'a Condition>),
}

impl<'a> Item<'a> {
    fn of(action: &'a Action) -> Item<'a> {
        match action {
            Action::Get(get) => Item::Get(get),
            Action::Mutate(mutation) => Item::Mutate(mutation),
            Action::MutateRow(mutations) => Item::Row(mutations, None),
            Action::Check { condition, mutations } => Item::Row(mutations, Some(condition)),
        }
    }

    fn row(self) -> &'a [u8] {
        match self {
            Item::Get(get) => &get.row,
            Item::Mutate(mutation) => &mutation.row,
            Item::Row(mutations, condition) => {
                let row = condition.map(|c| &c.row).or_else(|| mutations.first().map(|m| &m.row));
                row.map(|row| &**row).unwrap_or_default()
            }
        }
    }
}

/// Increments and appends as they were first sent: tried again, they carry the same nonces.
#[derive(Default)]
struct Marked {
    mutations: HashMap<usize, pb::MutationProto>,
    rows: HashMap<usize, (pb::RegionAction, Option<u64>)>,
}

/// What one region is asked.
struct RegionGroup {
    located: Arc<Located>,
    items: Vec<usize>,
}

/// What one server is asked: which items each of the request's region actions holds.
struct Sent {
    actions: Vec<(Arc<Located>, Vec<usize>)>,
    pending: Result<Pending>,
}

impl Table {
    /// Does all of `actions`; outcomes are in their order. What may pass is tried again.
    ///
    /// # Errors
    /// None as a whole: each action has its own outcome.
    pub async fn batch(&self, actions: &[Action]) -> Result<Vec<Result<Row>>> {
        let items: Vec<Item<'_>> = actions.iter().map(Item::of).collect();
        Ok(self.do_all(&items).await)
    }

    /// Reads many rows.
    ///
    /// # Errors
    /// The first that failed.
    pub async fn get_all(&self, gets: &[Get]) -> Result<Vec<Row>> {
        let items: Vec<Item<'_>> = gets.iter().map(Item::Get).collect();
        self.do_all(&items).await.into_iter().collect()
    }

    /// Writes to many rows.
    ///
    /// # Errors
    /// The first that failed; others may have been done.
    pub async fn mutate_all(&self, mutations: &[Mutation]) -> Result<()> {
        let items: Vec<Item<'_>> = mutations.iter().map(Item::Mutate).collect();
        self.do_all(&items).await.into_iter().try_for_each(|outcome| outcome.map(|_| ()))
    }

    async fn do_all(&self, items: &[Item<'_>]) -> Vec<Result<Row>> {
        let mut outcomes: Vec<Option<Result<Row>>> = (0..items.len()).map(|_| None).collect();
        let mut marked = Marked::default();
        let mut todo: Vec<usize> = (0..items.len()).collect();
        let mut retry = self.cluster.retry();
        while !todo.is_empty() {
            let mut failed: Vec<(usize, Error)> = Vec::new();
            let groups = self.group(items, &todo, &mut failed).await;
            let sent = self.send(items, groups, &mut marked).await;
            for one in sent {
                let reply = match one.pending {
                    Ok(pending) => pending.await,
                    Err(e) => Err(e),
                };
                let read = reply.and_then(|reply| read_reply(items, &one.actions, &reply));
                match read {
                    Ok(results) => {
                        for (item, located, outcome) in results {
                            match outcome {
                                Ok(row) => outcomes[item] = Some(Ok(row)),
                                Err(e) => {
                                    self.cluster.learn(&self.cache, &located, &e);
                                    failed.push((item, e));
                                }
                            }
                        }
                    }
                    Err(e) => {
                        for (located, of_region) in &one.actions {
                            self.cluster.learn(&self.cache, located, &e);
                            failed.extend(of_region.iter().map(|item| (*item, e.clone())));
                        }
                    }
                }
            }
            todo.clear();
            let mut pause_for = None;
            for (item, error) in failed {
                if error.may_pass() {
                    todo.push(item);
                    pause_for = Some(error.clone());
                }
                // Stands until a later try overwrites it.
                outcomes[item] = Some(Err(error));
            }
            todo.sort_unstable();
            if let Some(error) = pause_for
                && retry.pause(error).await.is_err()
            {
                break;
            }
        }
        let missing = || Err(Error::Malformed("the server left an action unanswered".to_owned()));
        outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(missing)).collect()
    }

    /// Finds each item's region.
    async fn group(&self, items: &[Item<'_>], todo: &[usize], failed: &mut Vec<(usize, Error)>) -> Vec<RegionGroup> {
        let mut groups: Vec<RegionGroup> = Vec::new();
        let mut by_name: HashMap<Bytes, usize> = HashMap::new();
        let mut last: Option<usize> = None;
        for item in todo {
            let row = items[*item].row();
            // Batches are often in order of rows.
            if let Some(at) = last.filter(|at| groups[*at].located.region.contains(row)) {
                groups[at].items.push(*item);
                continue;
            }
            match self.cluster.locate(&self.cache, row, Side::Current).await {
                Ok(located) => {
                    let at = *by_name.entry(located.region.name().clone()).or_insert_with(|| {
                        groups.push(RegionGroup { located, items: Vec::new() });
                        groups.len() - 1
                    });
                    groups[at].items.push(*item);
                    last = Some(at);
                }
                Err(e) => failed.push((*item, e)),
            }
        }
        groups
    }

    /// One multi to each server.
    async fn send(&self, items: &[Item<'_>], groups: Vec<RegionGroup>, marked: &mut Marked) -> Vec<Sent> {
        let mut by_server: Vec<(Arc<Located>, Vec<RegionGroup>)> = Vec::new();
        for group in groups {
            match by_server.iter_mut().find(|(first, _)| Arc::ptr_eq(&first.server, &group.located.server)) {
                Some((_, of_server)) => of_server.push(group),
                None => by_server.push((group.located.clone(), vec![group])),
            }
        }
        let mut sent = Vec::with_capacity(by_server.len());
        for (first, of_server) in by_server {
            let mut message = pb::MultiRequest::default();
            let mut cells = Vec::new();
            let mut actions = Vec::new();
            for group in of_server {
                self.add_region(items, group, &mut message, &mut cells, &mut actions, marked);
            }
            let pending = match first.server.client().await {
                Ok(channel) => {
                    let request = Request::new(Method::ClientMulti, &message).cells(&cells);
                    channel.start(request.priority(first.priority()))
                }
                Err(e) => Err(e),
            };
            sent.push(Sent { actions, pending });
        }
        sent
    }

    /// Adds a region's items: the plain ones in one region action, each atomic one in its own.
    fn add_region(
        &self,
        items: &[Item<'_>],
        group: RegionGroup,
        message: &mut pb::MultiRequest,
        cells: &mut Vec<Bytes>,
        actions: &mut Vec<(Arc<Located>, Vec<usize>)>,
        marked: &mut Marked,
    ) {
        let RegionGroup { located, items: of_region } = group;
        let mut plain = pb::RegionAction { region: located.specifier.clone(), ..pb::RegionAction::default() };
        plain.action.reserve(of_region.len());
        let mut plain_items = Vec::with_capacity(of_region.len());
        let mut atomic = Vec::new();
        for item in of_region {
            let index = Some(plain_items.len() as u32);
            match items[item] {
                Item::Get(get) => {
                    let get = Some(convert::to_proto::get(get));
                    plain.action.push(pb::Action { index, get, ..pb::Action::default() });
                    plain_items.push(item);
                }
                Item::Mutate(mutation) => {
                    let mut wire = match marked.mutations.get(&item) {
                        Some(wire) => wire.clone(),
                        None => convert::to_proto::mutation_without_cells(mutation),
                    };
                    if wire.nonce.is_none()
                        && let Some(group) = self.mark(mutation, &mut wire)
                    {
                        message.nonce_group = Some(group);
                        marked.mutations.insert(item, wire.clone());
                    } else if wire.nonce.is_some() {
                        message.nonce_group = Some(mutation.nonce.map_or(self.cluster.nonce_group, |n| n.group));
                    }
                    cells.push(self.wire_cells(mutation));
                    plain.action.push(pb::Action { index, mutation: Some(wire), ..pb::Action::default() });
                    plain_items.push(item);
                }
                Item::Row(mutations, condition) => atomic.push((item, mutations, condition)),
            }
        }
        if !plain_items.is_empty() {
            message.region_action.push(plain);
            actions.push((located.clone(), plain_items));
        }
        for (item, mutations, condition) in atomic {
            let (mut action, nonce_group) = match marked.rows.get(&item) {
                Some(known) => {
                    cells.extend(mutations.iter().map(|mutation| self.wire_cells(mutation)));
                    known.clone()
                }
                None => self.row_action(mutations, condition, cells),
            };
            if nonce_group.is_some() {
                marked.rows.insert(item, (action.clone(), nonce_group));
            }
            action.region = located.specifier.clone();
            message.nonce_group = nonce_group.or(message.nonce_group);
            message.region_action.push(action);
            actions.push((located.clone(), vec![item]));
        }
    }
}

type Outcome = (usize, Arc<Located>, Result<Row>);

/// The outcome of each item of a multi.
fn read_reply(items: &[Item<'_>], actions: &[(Arc<Located>, Vec<usize>)], reply: &Reply) -> Result<Vec<Outcome>> {
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
    if !result.cell.is_empty() {
        return Ok(Ok(inline_row(&result)?));
    }
    let count = usize::try_from(result.associated_cell_count()).unwrap_or(0);
    if count == 0 {
        return Ok(Ok(Row::default()));
    }
    let (own, rest) =
        cells.split(count).ok_or_else(|| Error::Malformed("fewer cells than a multi's reply announces".to_owned()))?;
    *cells = rest;
    Ok(Ok(Row::new(own)))
}
