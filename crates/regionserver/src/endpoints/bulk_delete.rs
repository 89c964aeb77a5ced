//! BulkDeleteService: deletes what a scan finds, some rows at a time. Rows deleted so far stay deleted when a later one
//! fails. Follows: `BulkDeleteEndpoint` of HBase's examples.

use crate::blocking::{Caller, on_lane};
use crate::errors::exception_of;
use crate::handlers::{admission, mutate};
use crate::server::RegionServer;
use bytes::Bytes;
use cell::{CellBlock, CellBuffer, CellRef, CellSpec, CellType};
use convert::from_proto;
use filter::Filter;
use model::{Mutation, MutationKind};
use proto::pb;
use proto::pb::bulk_delete_request::DeleteType;
use region::{Commit, Limits, Region, RegionScanner};
use rpc::exception::Exception;
use scheduler::LaneName;
use std::sync::Arc;

const LATEST: i64 = i64::MAX;
/// Most rows and bytes of deletes that are applied together, whatever the client asks for: a batch is not atomic, so
/// nobody can see where it ends.
const MAX_BATCH_ROWS: usize = 10_000;
const MAX_BATCH_BYTES: usize = 4 << 20;
/// What a batch is taken to write before it is known.
const FORESEEN_BYTES: usize = 64 << 10;

struct Deleting {
    region: Arc<Region>,
    scanner: RegionScanner,
    cells: CellBuffer,
    delete_type: DeleteType,
    timestamp: Option<i64>,
    batch_rows: usize,
    batch_cells: u32,
    more: bool,
    /// Deletes that wait for the clock, and how long.
    early: Vec<Mutation>,
    wait_ms: u64,
}

/// What a batch of deletes came to, if its log entries stay.
struct Batch {
    commit: Commit,
    rows: u64,
    versions: u64,
}

/// Deletes what the request's scan finds in the region.
///
/// # Errors
/// Those of the scan and of the writes.
pub(super) async fn delete(
    server: &Arc<RegionServer>,
    region: &Arc<Region>,
    request: pb::BulkDeleteRequest,
    caller: &Caller,
) -> Result<pb::BulkDeleteResponse, Exception> {
    let delete_type = request.delete_type();
    if request.row_batch_size == 0 || i32::try_from(request.row_batch_size).is_err() {
        return Err(Exception::do_not_retry(format!("rowBatchSize must be positive: {}", request.row_batch_size)));
    }
    let timestamp = match request.timestamp.map(i64::try_from) {
        None => None,
        Some(Ok(timestamp)) => Some(timestamp),
        Some(Err(_)) => return Err(Exception::do_not_retry("Timestamp cannot be negative.")),
    };
    let mut scan = from_proto::scan(request.scan)?;
    if delete_type == DeleteType::Row && scan.filter.is_none() {
        // The row's name is all that is needed.
        scan.filter = Some(Arc::new(Filter::FirstKeyOnly));
    }
    let batch_rows = (request.row_batch_size as usize).min(MAX_BATCH_ROWS);
    let (at, region_here) = (server.clone(), region.clone());
    let mut deleting = on_lane(server, region, LaneName::Write, caller, move |_| {
        let scanner = region_here.scanner(&scan).map_err(|error| exception_of(&at.escalate_fatal(error)))?;
        let batch_cells = scan.batch.unwrap_or(0);
        let cells = CellBuffer::new();
        Ok::<_, Exception>(Deleting {
            region: region_here,
            scanner,
            cells,
            delete_type,
            timestamp,
            batch_rows,
            batch_cells,
            more: true,
            early: Vec::new(),
            wait_ms: 0,
        })
    })
    .await??;
    let (mut rows_deleted, mut versions_deleted) = (0, 0);
    while deleting.more || !deleting.early.is_empty() {
        if deleting.wait_ms > 0 {
            mutate::wait_for_clock(std::mem::take(&mut deleting.wait_ms)).await;
        }
        if let Some(delay) = admission(server, region, FORESEEN_BYTES)? {
            tokio::time::sleep(delay).await;
        }
        let at = server.clone();
        let batch;
        (deleting, batch) = on_lane(server, region, LaneName::Write, caller, move |_| {
            let batch = deleting.batch(&at)?;
            Ok::<_, Exception>((deleting, batch))
        })
        .await??;
        if let Some(batch) = batch {
            if batch.commit.ticket().is_some() {
                mutate::await_commit(server, mutate::commit_receiver(batch.commit, None)).await?;
            } else {
                batch.commit.complete();
            }
            rows_deleted += batch.rows;
            versions_deleted += batch.versions;
            server.maintenance.consider_flush(region);
        }
    }
    let versions_deleted = (delete_type == DeleteType::Version).then_some(versions_deleted);
    Ok(pb::BulkDeleteResponse { rows_deleted, versions_deleted })
}

impl Deleting {
    /// Reads and deletes the next rows.
    fn batch(&mut self, server: &RegionServer) -> Result<Option<Batch>, Exception> {
        let failed = |error| exception_of(&server.escalate_fatal(error));
        let mut deletes = std::mem::take(&mut self.early);
        let mut bytes: usize = deletes.iter().map(|delete| delete.row.len() + delete.cells.bytes().len()).sum();
        while self.more && deletes.len() < self.batch_rows && bytes < MAX_BATCH_BYTES {
            self.cells.clear();
            let mut limits = Limits { batch_cells: self.batch_cells, ..Limits::default() };
            self.more = self.scanner.next(&mut limits, &mut self.cells).map_err(failed)?.more;
            if !self.cells.is_empty() {
                let delete = self.delete_of();
                bytes += delete.row.len() + delete.cells.bytes().len();
                deletes.push(delete);
            }
        }
        if deletes.is_empty() {
            return Ok(None);
        }
        let applied = self.region.apply(&deletes).map_err(failed)?;
        if let Some(wait_ms) = applied.wait_ms {
            self.early = deletes.split_off(applied.results.len());
            self.wait_ms = wait_ms;
        }
        let done = applied.results.iter().take_while(|result| result.is_ok()).count();
        let versions = match self.delete_type {
            DeleteType::Version => deletes.iter().take(done).map(|delete| delete.cells.len() as u64).sum(),
            _ => 0,
        };
        Ok(Some(Batch { commit: applied.commit, rows: done as u64, versions }))
    }

    /// The delete of the row that was read.
    fn delete_of(&self) -> Mutation {
        let row = Bytes::copy_from_slice(self.cells.get(0).row());
        let timestamp = self.timestamp.unwrap_or(LATEST);
        let mut specs: Vec<CellSpec<'_>> = Vec::new();
        let mut last: Option<CellRef<'_>> = None;
        for cell in self.cells.iter_from(0) {
            // Cells come in the order of families and columns, so what is alike stands together.
            let same_family = last.is_some_and(|last| last.family() == cell.family());
            let same_column = same_family && last.is_some_and(|last| last.qualifier() == cell.qualifier());
            let mut spec = CellSpec {
                row: &row,
                family: cell.family(),
                qualifier: cell.qualifier(),
                timestamp,
                type_code: CellType::Delete.code(),
                value: b"",
                tags: b"",
            };
            match self.delete_type {
                DeleteType::Row => break,
                DeleteType::Family if same_family => continue,
                DeleteType::Family => {
                    (spec.qualifier, spec.type_code) = (b"", CellType::DeleteFamily.code());
                }
                DeleteType::Column if same_column => continue,
                DeleteType::Column => spec.type_code = CellType::DeleteColumn.code(),
                // Every version that was found, or the one at the timestamp that was given.
                DeleteType::Version if self.timestamp.is_none() => spec.timestamp = cell.timestamp(),
                DeleteType::Version if same_column => continue,
                DeleteType::Version => {}
            }
            specs.push(spec);
            last = Some(cell);
        }
        let mut delete = Mutation::new(MutationKind::Delete, row.clone(), CellBlock::from_specs(specs));
        delete.timestamp = timestamp;
        delete
    }
}
