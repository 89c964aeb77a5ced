//! Calls to the region that holds a row, again where that may help. Follows: `AsyncSingleRequestRpcRetryingCaller`,
//! `AsyncRpcRetryingCaller#onError`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use model::{Get, TableName};
use proto::methods::Method;
use proto::{Message, pb};

use super::options::Manner;
use super::{Checked, Table};
use crate::channel::{Channel, Pending, Reply, Request};
use crate::locator::{Located, Side, inline_row};
use crate::retry::RetryPolicy;
use crate::traces::{Operation, ended, operation_span};
use crate::{Error, RemoteException, Result, Row};

/// A request to a region.
pub(crate) trait OfRegion: Message {
    fn set_region(&mut self, region: pb::RegionSpecifier);
    /// What HBase's client calls it in traces, if it is an operation of its own there.
    fn operation(&self) -> Option<Operation> {
        None
    }
}

impl OfRegion for pb::GetRequest {
    fn set_region(&mut self, region: pb::RegionSpecifier) {
        self.region = region;
    }

    fn operation(&self) -> Option<Operation> {
        Some(Operation::Get)
    }
}

impl OfRegion for pb::MutateRequest {
    fn set_region(&mut self, region: pb::RegionSpecifier) {
        self.region = region;
    }

    fn operation(&self) -> Option<Operation> {
        Some(match self.condition {
            Some(_) => Operation::CheckAndMutate,
            None => Operation::of_mutation(self.mutation.mutate_type()),
        })
    }
}

impl OfRegion for pb::CoprocessorServiceRequest {
    fn set_region(&mut self, region: pb::RegionSpecifier) {
        self.region = region;
    }

    fn operation(&self) -> Option<Operation> {
        Some(Operation::CoprocExec)
    }
}

impl OfRegion for pb::MultiRequest {
    fn operation(&self) -> Option<Operation> {
        Some(match self.region_action.first() {
            Some(action) if action.condition.is_some() => Operation::CheckAndMutate,
            _ => Operation::Batch,
        })
    }

    fn set_region(&mut self, region: pb::RegionSpecifier) {
        if let Some(action) = self.region_action.first_mut() {
            action.region = region;
        }
    }
}

impl Table {
    /// Calls the region that holds `row`, again where that may help.
    pub(crate) async fn on_region<M: OfRegion>(
        &self,
        row: &[u8],
        method: Method,
        message: &mut M,
        cells: &[Bytes],
        policy: RetryPolicy,
    ) -> Result<Reply> {
        match operation_span(self.name(), || message.operation()) {
            None => self.on_region_untold(row, method, message, cells, policy).await,
            // Boxed, so that a call of which nobody is to hear is no larger.
            Some(span) => ended(span, Box::pin(self.on_region_untold(row, method, message, cells, policy))).await,
        }
    }

    async fn on_region_untold<M: OfRegion>(
        &self,
        row: &[u8],
        method: Method,
        message: &mut M,
        cells: &[Bytes],
        policy: RetryPolicy,
    ) -> Result<Reply> {
        let mut retry = self.cluster.retry(policy);
        loop {
            let failed = match self.cluster.locate(&self.cache, row, Side::Current).await {
                Ok(located) => {
                    message.set_region(located.specifier.clone());
                    let request = Request::new(method, message).cells(cells).timeout(retry.call_timeout());
                    match self.start(&located, request).await {
                        Ok(pending) => match pending.await.and_then(|reply| without_exception(method, reply)) {
                            Ok(reply) => return Ok(reply),
                            Err(e) => self.learned(&located, e).await?,
                        },
                        Err(e) => self.learned(&located, e).await?,
                    }
                }
                Err(e) => e,
            };
            retry.pause(failed).await?;
        }
    }

    /// Sends a call to a region's server, in this handle's manner.
    pub(crate) async fn start<M: Message>(&self, located: &Located, request: Request<'_, M>) -> Result<Pending> {
        let channel = located.server.client().await?;
        self.start_on(&channel, located, request)
    }

    /// As [`Table::start`], over a connection that is there already.
    pub(crate) fn start_on<M: Message>(
        &self,
        channel: &Channel,
        located: &Located,
        request: Request<'_, M>,
    ) -> Result<Pending> {
        let Manner { options, attributes } = &self.manner;
        self.cluster.counters.calls.add(1);
        channel.start(request.priority(options.priority.unwrap_or(located.priority())).attributes(attributes))
    }

    /// Draws from a failed call what it says about locations, and gives it back if the operation may be tried again.
    async fn learned(&self, located: &Arc<Located>, error: Error) -> Result<Error> {
        self.cluster.learn(&self.cache, located, &error);
        // One more request, so only where the table being disabled is likely.
        if error.is_not_serving() && !self.name().is_system() && self.is_disabled().await {
            return Err(Error::TableDisabled(self.name().clone()));
        }
        Ok(error)
    }

    /// Whether hbase:meta says that the table is disabled; false when it does not say. Boxed, for this is itself a part of every operation.
    fn is_disabled(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async {
            let meta = self.cluster.table(&TableName::meta());
            let get = Get {
                columns: [(Bytes::from_static(b"table"), vec![Bytes::from_static(b"state")])].into(),
                ..Get::new(Bytes::copy_from_slice(self.name().as_str().as_bytes()))
            };
            let row = meta.get_from_primary(&get).await.unwrap_or_default();
            let state = row.value(b"table", b"state").and_then(|value| pb::TableState::decode(value).ok());
            state.is_some_and(|state| state.state() == pb::table_state::State::Disabled)
        })
    }
}

/// The exception of a multi with one region action is the call's.
fn without_exception(method: Method, reply: Reply) -> Result<Reply> {
    if method != Method::ClientMulti {
        return Ok(reply);
    }
    let response: pb::MultiResponse = reply.decode()?;
    match response.region_action_result.into_iter().find_map(|result| result.exception) {
        Some(exception) => Err(Error::Remote(Box::new(RemoteException::from_pair(exception)))),
        None => Ok(reply),
    }
}

/// The only result of a reply.
pub(crate) fn row_of(result: &pb::Result, reply: &Reply) -> Result<Row> {
    let mut row = match result.exists {
        Some(exists) => Row::of_existence(exists),
        None if result.cell.is_empty() => Row::new(reply.cells()?),
        None => inline_row(result)?,
    };
    row.note(result);
    Ok(row)
}

pub(super) fn checked_of(result: &pb::RegionActionResult, reply: &Reply) -> Result<Checked> {
    let first = result.result_or_exception.first();
    if let Some(exception) = first.and_then(|r| r.exception.clone()) {
        return Err(Error::Remote(Box::new(RemoteException::from_pair(exception))));
    }
    let row = first.and_then(|r| r.result.as_ref()).map(|result| row_of(result, reply)).transpose()?;
    Ok(Checked { processed: result.processed(), row: row.unwrap_or_default() })
}
