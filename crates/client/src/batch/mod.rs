//! Many reads and writes at once: grouped by region and server, one multi to each server, what failed again. Follows:
//! `AsyncBatchRpcRetryingCaller`, `RequestConverter#buildNoDataRegionActions`, `ResponseConverter#getResults`.

mod reply;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::{Condition, Get, Mutation};
use proto::methods::Method;
use proto::pb;

use self::reply::{Outcome, read_reply};
use crate::channel::{Pending, Request};
use crate::locator::{Located, Side};
use crate::traces::{Operation, contains, operation_span};
use crate::{Error, Result, Row, Table};

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

    /// What it is called in traces, with what is in it. Follows: `TableOperationSpanBuilder#unpackRowOperations`.
    fn operations(self) -> Vec<Operation> {
        let of = |mutation: &Mutation| Operation::of_kind(mutation.kind);
        match self {
            Item::Get(_) => vec![Operation::Get],
            Item::Mutate(mutation) => vec![of(mutation)],
            Item::Row(mutations, condition) => {
                let whole = if condition.is_some() { Operation::CheckAndMutate } else { Operation::Batch };
                std::iter::once(whole).chain(mutations.iter().map(of)).collect()
            }
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

    /// As [`Table::batch`].
    pub(crate) async fn outcomes(&self, actions: &[Action]) -> Vec<Result<Row>> {
        let items: Vec<Item<'_>> = actions.iter().map(Item::of).collect();
        self.do_all(&items).await
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
        let Some(mut span) = operation_span(self.name(), || Some(Operation::Batch)) else {
            return self.do_all_untold(items).await;
        };
        contains(&mut span, items.iter().flat_map(|item| item.operations()));
        // Boxed, so that a batch of which nobody is to hear is no larger.
        trace::within(Some(span.place().clone()), Box::pin(self.do_all_untold(items))).await
    }

    async fn do_all_untold(&self, items: &[Item<'_>]) -> Vec<Result<Row>> {
        let mut outcomes: Vec<Option<Result<Row>>> = items.iter().map(|item| self.refused(*item).map(Err)).collect();
        let mut todo: Vec<usize> = (0..items.len()).filter(|item| outcomes[*item].is_none()).collect();
        let mut marked = Marked::default();
        let is_read = items.iter().all(|item| matches!(item, Item::Get(_)));
        let mut retry = self.cluster.retry(if is_read { self.manner.reading() } else { self.manner.writing() });
        while !todo.is_empty() {
            let mut failed: Vec<(usize, Error)> = Vec::new();
            let groups = self.group(items, &todo, &mut failed).await;
            let sent = self.send(items, groups, &mut marked, retry.call_timeout()).await;
            for one in sent {
                let reply = match one.pending {
                    Ok(pending) => pending.await,
                    Err(e) => Err(e),
                };
                let read = reply.and_then(|reply| read_reply(items, &one.actions, &reply));
                self.settle(&one.actions, read, &mut outcomes, &mut failed);
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

    /// What is wrong with an item wherever it is sent.
    fn refused(&self, item: Item<'_>) -> Option<Error> {
        match item {
            Item::Get(_) => None,
            Item::Mutate(mutation) => self.examine(mutation).err(),
            Item::Row([], _) => Some(Error::Request("an action of a batch without a mutation".to_owned())),
            Item::Row(mutations, condition) => {
                let row = condition.map_or(&mutations[0].row, |condition| &condition.row);
                if mutations.iter().any(|mutation| mutation.row != *row) {
                    return Some(Error::Request("an action of a batch that is for more rows than one".to_owned()));
                }
                mutations.iter().find_map(|mutation| self.examine(mutation).err())
            }
        }
    }

    /// Sorts what one server answered into outcomes and failures, and draws from these what they say about locations.
    fn settle(
        &self,
        actions: &[(Arc<Located>, Vec<usize>)],
        read: Result<Vec<Outcome>>,
        outcomes: &mut [Option<Result<Row>>],
        failed: &mut Vec<(usize, Error)>,
    ) {
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
                for (located, of_region) in actions {
                    self.cluster.learn(&self.cache, located, &e);
                    failed.extend(of_region.iter().map(|item| (*item, e.clone())));
                }
            }
        }
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
    async fn send(
        &self,
        items: &[Item<'_>],
        groups: Vec<RegionGroup>,
        marked: &mut Marked,
        timeout: Duration,
    ) -> Vec<Sent> {
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
            let request = Request::new(Method::ClientMulti, &message).cells(&cells).timeout(timeout);
            let pending = self.start(&first, request).await;
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
