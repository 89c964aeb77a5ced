//! Reads and writes of one table. Follows: `AsyncTable`, `RawAsyncTableImpl`, `AsyncSingleRequestRpcRetryingCaller`.

use std::sync::Arc;

use bytes::Bytes;
use model::{Condition, Get, Mutation, MutationKind, Scan, TableName};
use proto::methods::Method;
use proto::{Message, pb};

use crate::channel::{Reply, Request};
use crate::connection::Cluster;
use crate::locator::{Located, RegionLocation, Side, TableCache, inline_row, region_of, server_of};
use crate::{Error, Result, Row, ScanOptions, Scanner};

/// A table of a [`crate::Connection`]. Cheap to clone, used from any number of tasks.
#[derive(Clone)]
pub struct Table {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) cache: Arc<TableCache>,
}

/// What came of a conditional write.
#[derive(Debug, Clone)]
pub struct Checked {
    /// Whether the condition held and the write was done.
    pub processed: bool,
    /// What increments and appends of the write brought back.
    pub row: Row,
}

/// A request to a region.
pub(crate) trait OfRegion: Message {
    fn set_region(&mut self, region: pb::RegionSpecifier);
}

impl OfRegion for pb::GetRequest {
    fn set_region(&mut self, region: pb::RegionSpecifier) {
        self.region = region;
    }
}

impl OfRegion for pb::MutateRequest {
    fn set_region(&mut self, region: pb::RegionSpecifier) {
        self.region = region;
    }
}

impl OfRegion for pb::MultiRequest {
    fn set_region(&mut self, region: pb::RegionSpecifier) {
        if let Some(action) = self.region_action.first_mut() {
            action.region = region;
        }
    }
}

impl Table {
    pub(crate) fn new(cluster: Arc<Cluster>, cache: Arc<TableCache>) -> Table {
        Table { cluster, cache }
    }

    /// Its name.
    pub fn name(&self) -> &TableName {
        &self.cache.table
    }

    /// Reads one row.
    ///
    /// # Errors
    /// What the server refuses, or that it could not be reached in time.
    pub async fn get(&self, get: &Get) -> Result<Row> {
        let mut message = pb::GetRequest { get: convert::to_proto::get(get), ..pb::GetRequest::default() };
        let reply = self.on_region(&get.row, Method::ClientGet, &mut message, &[]).await?;
        let response: pb::GetResponse = reply.decode()?;
        response.result.map_or_else(|| Ok(Row::default()), |result| row_of(&result, &reply))
    }

    /// Whether one row has anything of what `get` asks for.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub async fn exists(&self, get: &Get) -> Result<bool> {
        let get = Get { existence_only: true, ..get.clone() };
        Ok(self.get(&get).await?.exists())
    }

    /// Writes to one row. What comes back is empty but for increments and appends.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub async fn mutate(&self, mutation: &Mutation) -> Result<Row> {
        let response = self.mutate_if(mutation, None).await?;
        Ok(response.1)
    }

    /// [`Table::mutate`] under its older name.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub async fn put(&self, mutation: &Mutation) -> Result<()> {
        self.mutate(mutation).await.map(|_| ())
    }

    /// [`Table::mutate`] under its older name.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub async fn delete(&self, mutation: &Mutation) -> Result<()> {
        self.mutate(mutation).await.map(|_| ())
    }

    /// [`Table::mutate`] under its older name.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub async fn increment(&self, mutation: &Mutation) -> Result<Row> {
        self.mutate(mutation).await
    }

    /// [`Table::mutate`] under its older name.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub async fn append(&self, mutation: &Mutation) -> Result<Row> {
        self.mutate(mutation).await
    }

    /// Writes to one row, all of it or nothing, if a condition on that row holds.
    ///
    /// # Errors
    /// As [`Table::get`]; no mutation given.
    pub async fn check_and_mutate(&self, condition: &Condition, mutations: &[Mutation]) -> Result<Checked> {
        match mutations {
            [] => Err(Error::Request("a conditional write without a mutation".to_owned())),
            [mutation] => {
                let (processed, row) = self.mutate_if(mutation, Some(condition)).await?;
                Ok(Checked { processed, row })
            }
            several => self.mutate_rows_if(several, Some(condition)).await,
        }
    }

    /// Several writes to one row, all of them or none. What comes back is what increments and appends made.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub async fn mutate_row(&self, mutations: &[Mutation]) -> Result<Row> {
        if mutations.is_empty() {
            return Ok(Row::default());
        }
        Ok(self.mutate_rows_if(mutations, None).await?.row)
    }

    async fn mutate_if(&self, mutation: &Mutation, condition: Option<&Condition>) -> Result<(bool, Row)> {
        let mut wire = convert::to_proto::mutation_without_cells(mutation);
        let nonce_group = self.mark(mutation, &mut wire);
        let mut message = pb::MutateRequest {
            mutation: wire,
            condition: condition.map(convert::to_proto::condition),
            nonce_group,
            ..pb::MutateRequest::default()
        };
        let cells = [self.wire_cells(mutation)];
        let reply = self.on_region(&mutation.row, Method::ClientMutate, &mut message, &cells).await?;
        let response: pb::MutateResponse = reply.decode()?;
        let row = response.result.as_ref().map(|result| row_of(result, &reply)).transpose()?;
        Ok((response.processed(), row.unwrap_or_default()))
    }

    async fn mutate_rows_if(&self, mutations: &[Mutation], condition: Option<&Condition>) -> Result<Checked> {
        let mut cells = Vec::with_capacity(mutations.len());
        let (action, nonce_group) = self.row_action(mutations, condition, &mut cells);
        let mut message = pb::MultiRequest { region_action: vec![action], nonce_group, ..pb::MultiRequest::default() };
        let row = &mutations[0].row;
        let reply = self.on_multi(row, &mut message, &cells).await?;
        let mut response: pb::MultiResponse = reply.decode()?;
        let result = response.region_action_result.pop().unwrap_or_default();
        checked_of(&result, &reply)
    }

    /// The region action that does `mutations` to one row at once; their cells are added to `cells`.
    pub(crate) fn row_action(
        &self,
        mutations: &[Mutation],
        condition: Option<&Condition>,
        cells: &mut Vec<Bytes>,
    ) -> (pb::RegionAction, Option<u64>) {
        let mut nonce_group = None;
        let mut action = Vec::with_capacity(mutations.len());
        for (index, mutation) in mutations.iter().enumerate() {
            let mut wire = convert::to_proto::mutation_without_cells(mutation);
            nonce_group = self.mark(mutation, &mut wire).or(nonce_group);
            cells.push(self.wire_cells(mutation));
            action.push(pb::Action { index: Some(index as u32), mutation: Some(wire), ..pb::Action::default() });
        }
        let condition = condition.map(convert::to_proto::condition);
        (pb::RegionAction { atomic: Some(true), action, condition, ..pb::RegionAction::default() }, nonce_group)
    }

    /// Gives an increment or append its nonce; the nonce group goes into the request.
    pub(crate) fn mark(&self, mutation: &Mutation, wire: &mut pb::MutationProto) -> Option<u64> {
        if !matches!(mutation.kind, MutationKind::Append | MutationKind::Increment) {
            return None;
        }
        let nonce = mutation.nonce.unwrap_or_else(|| self.cluster.nonce());
        wire.nonce = Some(nonce.number);
        Some(nonce.group)
    }

    /// The cells of a mutation in the connection's codec.
    pub(crate) fn wire_cells(&self, mutation: &Mutation) -> Bytes {
        let codec = self.cluster.options.codec;
        let has_tags = !codec.carries_tags() && mutation.cells.iter().any(|cell| !cell.tags().is_empty());
        codec.encode(mutation.cells.bytes().clone(), has_tags)
    }

    /// Calls the region that holds `row`, again where that may help.
    async fn on_region<M: OfRegion>(
        &self,
        row: &[u8],
        method: Method,
        message: &mut M,
        cells: &[Bytes],
    ) -> Result<Reply> {
        let mut retry = None;
        loop {
            let failed = match self.try_on_region(row, method, message, cells).await {
                Ok(reply) => return Ok(reply),
                Err(e) => e,
            };
            retry.get_or_insert_with(|| self.cluster.retry()).pause(failed).await?;
        }
    }

    async fn try_on_region<M: OfRegion>(
        &self,
        row: &[u8],
        method: Method,
        message: &mut M,
        cells: &[Bytes],
    ) -> Result<Reply> {
        let located = self.cluster.locate(&self.cache, row, Side::Current).await?;
        message.set_region(located.specifier.clone());
        let called = call(&located, method, message, cells).await;
        called.inspect_err(|e| self.cluster.learn(&self.cache, &located, e))
    }

    /// As `on_region`, for a multi with one region action: its exception is the call's.
    async fn on_multi(&self, row: &[u8], message: &mut pb::MultiRequest, cells: &[Bytes]) -> Result<Reply> {
        let mut retry = self.cluster.retry();
        loop {
            let failed = match self.try_on_region(row, Method::ClientMulti, message, cells).await {
                Ok(reply) => {
                    let response: pb::MultiResponse = reply.decode()?;
                    let Some(exception) = response.region_action_result.into_iter().find_map(|r| r.exception) else {
                        return Ok(reply);
                    };
                    let error = Error::Remote(Box::new(crate::RemoteException::from_pair(exception)));
                    if let Ok(located) = self.cluster.locate(&self.cache, row, Side::Current).await {
                        self.cluster.learn(&self.cache, &located, &error);
                    }
                    error
                }
                Err(e) => e,
            };
            retry.pause(failed).await?;
        }
    }

    /// Gathers writes and sends them when `limit_bytes` have come together (HBase's default is 2 MiB).
    pub fn buffered(&self, limit_bytes: usize) -> crate::BufferedMutator {
        crate::BufferedMutator::new(self.clone(), limit_bytes)
    }

    /// Reads a range of rows. Nothing is sent before the first row is asked for.
    pub fn scan(&self, scan: Scan, options: ScanOptions) -> Scanner {
        Scanner::new(self.clone(), scan, options)
    }

    /// The table's regions in order, from hbase:meta; they are remembered.
    ///
    /// # Errors
    /// hbase:meta cannot be read, or the table is not there.
    pub async fn regions(&self) -> Result<Vec<RegionLocation>> {
        if self.name().is_meta() {
            return Ok(vec![self.cluster.meta().await?.location()]);
        }
        let name = self.name().as_str().as_bytes();
        let scan = Scan {
            start_row: Bytes::from([name, b",,"].concat()),
            stop_row: Bytes::from([name, b" ,,"].concat()),
            columns: [(Bytes::from_static(b"info"), Vec::new())].into(),
            ..Scan::default()
        };
        let meta = Table::new(self.cluster.clone(), self.cluster.cache(&TableName::meta()));
        let mut scanner = meta.scan(scan, ScanOptions { caching: 1000, ..ScanOptions::default() });
        let mut regions = Vec::new();
        while let Some(row) = scanner.next().await? {
            let Some(region) = region_of(&row) else { continue };
            if region.table != *self.name() || region.offline || region.split {
                continue;
            }
            if let Some(server) = server_of(&row) {
                let location = RegionLocation { region, server };
                self.cluster.remember(&self.cache, &location);
                regions.push(location);
            }
        }
        if regions.is_empty() {
            return Err(Error::TableNotFound(self.name().clone()));
        }
        Ok(regions)
    }

    /// Where a row is served; `reload` asks hbase:meta even if the answer is known.
    ///
    /// # Errors
    /// As [`Table::regions`].
    pub async fn region_of(&self, row: &[u8], reload: bool) -> Result<RegionLocation> {
        let located = if reload {
            self.cluster.locate_anew(&self.cache, row).await?
        } else {
            self.cluster.locate(&self.cache, row, Side::Current).await?
        };
        Ok(located.location())
    }
}

/// One call to a region's server.
pub(crate) async fn call<M: Message>(located: &Located, method: Method, message: &M, cells: &[Bytes]) -> Result<Reply> {
    let channel = located.server.client().await?;
    channel.call(Request::new(method, message).cells(cells).priority(located.priority())).await
}

/// The only result of a reply.
fn row_of(result: &pb::Result, reply: &Reply) -> Result<Row> {
    let mut row = match result.exists {
        Some(exists) => Row::of_existence(exists),
        None if result.cell.is_empty() => Row::new(reply.cells()?),
        None => inline_row(result)?,
    };
    row.stale = result.stale();
    Ok(row)
}

fn checked_of(result: &pb::RegionActionResult, reply: &Reply) -> Result<Checked> {
    let first = result.result_or_exception.first();
    if let Some(exception) = first.and_then(|r| r.exception.clone()) {
        return Err(Error::Remote(Box::new(crate::RemoteException::from_pair(exception))));
    }
    let row = first.and_then(|r| r.result.as_ref()).map(|result| row_of(result, reply)).transpose()?;
    Ok(Checked { processed: result.processed(), row: row.unwrap_or_default() })
}
