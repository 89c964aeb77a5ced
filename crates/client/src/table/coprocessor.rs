//! Calls to coprocessor endpoints: at the region of a row, or at every region of a range. Follows: `RegionCoprocessorRpcChannel`,
//! `AsyncTable#coprocessorService`, `RawAsyncTableImpl#onLocateComplete`.

use bytes::Bytes;
use model::RegionInfo;
use proto::methods::{Method, MethodInfo};
use proto::{Message, pb};

use super::Table;
use crate::locator::Side;
use crate::{Error, Result};

/// How many regions of a range are asked at a time.
const REGIONS_AT_A_TIME: usize = 16;

/// What the endpoint of one region answered.
#[derive(Debug, Clone)]
pub struct CoprocessorResult<R> {
    /// The region.
    pub region: RegionInfo,
    /// Its answer.
    pub response: R,
}

impl Table {
    /// Calls an endpoint (`Method::AggregateGetRowNum`, for instance) at the region that holds `row`.
    ///
    /// ```no_run
    /// # use basalt_client as client;
    /// # async fn example(table: client::Table) -> Result<(), client::Error> {
    /// use proto::{methods::Method, pb};
    /// let request = pb::AggregateRequest {
    ///     interpreter_class_name: "org.apache.hadoop.hbase.client.coprocessor.LongColumnInterpreter".to_owned(),
    ///     ..pb::AggregateRequest::default()
    /// };
    /// let of_one: pb::AggregateResponse = table.coprocessor(b"row", Method::AggregateGetRowNum.info(), &request).await?;
    /// let of_all = table.coprocessor_range::<pb::AggregateResponse>(b"", b"", Method::AggregateGetRowNum.info(), &request).await?;
    /// # drop((of_one, of_all)); Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Table::get`]; `UnknownProtocolException` when the table has no such endpoint.
    pub async fn coprocessor<R: Message + Default>(
        &self,
        row: &[u8],
        method: &MethodInfo,
        request: &impl Message,
    ) -> Result<R> {
        let bytes =
            self.coprocessor_raw(row, method.service.name(), method.name, request.encode_to_vec().into()).await?;
        R::decode(bytes).map_err(Error::malformed)
    }

    /// As [`Table::coprocessor`], for a service that this crate has no messages of: what is sent and answered is encoded.
    ///
    /// # Errors
    /// As [`Table::coprocessor`].
    pub async fn coprocessor_raw(&self, row: &[u8], service: &str, method: &str, request: Bytes) -> Result<Bytes> {
        let call = pb::CoprocessorServiceCall {
            row: Bytes::copy_from_slice(row),
            service_name: service.to_owned(),
            method_name: method.to_owned(),
            request,
        };
        let mut message = pb::CoprocessorServiceRequest { call, ..pb::CoprocessorServiceRequest::default() };
        let reply = self.on_region(row, Method::ClientExecService, &mut message, &[], self.manner.reading()).await?;
        let response: pb::CoprocessorServiceResponse = reply.decode()?;
        Ok(response.value.value.unwrap_or_default())
    }

    /// Calls an endpoint at every region that has rows of `start..stop` (empty: from the table's start, to its end), several at a time.
    /// Answers are in the regions' order.
    ///
    /// # Errors
    /// The first region that failed; the others' answers are lost then.
    pub async fn coprocessor_range<R: Message + Default>(
        &self,
        start: &[u8],
        stop: &[u8],
        method: &MethodInfo,
        request: &impl Message,
    ) -> Result<Vec<CoprocessorResult<R>>> {
        let bytes = Bytes::from(request.encode_to_vec());
        let answers = self.coprocessor_range_raw(start, stop, method.service.name(), method.name, bytes).await?;
        let decode = |CoprocessorResult { region, response }| {
            Ok(CoprocessorResult { region, response: R::decode(response).map_err(Error::malformed)? })
        };
        answers.into_iter().map(decode).collect()
    }

    /// As [`Table::coprocessor_range`], for a service that this crate has no messages of.
    ///
    /// # Errors
    /// As [`Table::coprocessor_range`].
    pub async fn coprocessor_range_raw(
        &self,
        start: &[u8],
        stop: &[u8],
        service: &str,
        method: &str,
        request: Bytes,
    ) -> Result<Vec<CoprocessorResult<Bytes>>> {
        let regions = self.regions_of_range(start, stop).await?;
        let mut answers = Vec::with_capacity(regions.len());
        for some in regions.chunks(REGIONS_AT_A_TIME) {
            let calls = some.iter().map(|region| {
                // The region's first row that is wanted names it, also when it has been split since.
                let row = if *region.start_key < *start { start } else { &region.start_key[..] };
                self.coprocessor_raw(row, service, method, request.clone())
            });
            for (region, response) in some.iter().zip(crate::together::all(calls).await) {
                answers.push(CoprocessorResult { region: region.clone(), response: response? });
            }
        }
        Ok(answers)
    }

    /// The regions that have rows of `start..stop`, in order.
    async fn regions_of_range(&self, start: &[u8], stop: &[u8]) -> Result<Vec<RegionInfo>> {
        let mut regions = Vec::new();
        let mut row = Bytes::copy_from_slice(start);
        loop {
            let located = self.cluster.locate(&self.cache, &row, Side::Current).await?;
            regions.push(located.region.clone());
            let end = &located.region.end_key;
            if end.is_empty() || (!stop.is_empty() && **end >= *stop) {
                return Ok(regions);
            }
            row = end.clone();
        }
    }
}
