//! Rows of hbase:meta and its like, written and read where they are open.

use crate::link::{CallError, ServerLink};
use cell::CellBuffer;
use model::{Mutation, Scan};
use proto::methods::Method;
use proto::{Message, pb};

/// Rows asked for in one call.
const ROWS_PER_CALL: u32 = 10_000;

/// Writes all of `mutations` or none. May be repeated.
///
/// # Errors
/// [`CallError`].
pub(crate) async fn mutate(
    link: &ServerLink,
    region: &pb::RegionSpecifier,
    mutations: &[Mutation],
) -> Result<(), CallError> {
    if let [mutation] = mutations {
        let request = pb::MutateRequest {
            region: region.clone(),
            mutation: convert::to_proto::mutation(mutation),
            ..pb::MutateRequest::default()
        };
        return link.call::<pb::MutateResponse>(Method::ClientMutate, &request).await.map(drop);
    }
    let Some(first) = mutations.first() else { return Ok(()) };
    let rows = pb::MutateRowsRequest {
        mutation_request: mutations.iter().map(convert::to_proto::mutation).collect(),
        ..pb::MutateRowsRequest::default()
    };
    let call = pb::CoprocessorServiceCall {
        row: first.row.clone(),
        service_name: "MultiRowMutationService".to_owned(),
        method_name: "MutateRows".to_owned(),
        request: rows.encode_to_vec().into(),
    };
    let request = pb::CoprocessorServiceRequest { region: region.clone(), call };
    link.call::<pb::CoprocessorServiceResponse>(Method::ClientExecService, &request).await.map(drop)
}

/// All cells that a scan of one region finds.
///
/// # Errors
/// [`CallError`]; the whole scan is to be begun again then.
pub(crate) async fn scan(
    link: &ServerLink,
    region: &pb::RegionSpecifier,
    scan: &Scan,
) -> Result<CellBuffer, CallError> {
    let mut cells = CellBuffer::new();
    let mut request = pb::ScanRequest {
        region: Some(region.clone()),
        scan: Some(convert::to_proto::scan(scan)),
        number_of_rows: Some(ROWS_PER_CALL),
        client_handles_partials: Some(true),
        client_handles_heartbeats: Some(true),
        ..pb::ScanRequest::default()
    };
    let mut next_call_seq = 0;
    loop {
        let (answer, block) = link.call::<pb::ScanResponse>(Method::ClientScan, &request).await?;
        for cell in &block {
            cells.push(cell);
        }
        let has_ended = answer.more_results_in_region == Some(false) || answer.more_results == Some(false);
        let Some(scanner_id) = answer.scanner_id.filter(|_| !has_ended) else {
            // Where the end of the region was reached the server has closed the scanner.
            return Ok(cells);
        };
        request = pb::ScanRequest {
            scanner_id: Some(scanner_id),
            next_call_seq: Some(next_call_seq),
            number_of_rows: Some(ROWS_PER_CALL),
            client_handles_partials: Some(true),
            client_handles_heartbeats: Some(true),
            ..pb::ScanRequest::default()
        };
        next_call_seq += 1;
    }
}
