//! RowCountService: how many rows or cells a region has. Follows: `RowCountEndpoint` of HBase's examples.

use super::walk::{self, Fold};
use crate::blocking::Caller;
use crate::server::RegionServer;
use cell::CellRef;
use filter::Filter;
use model::Scan;
use proto::pb;
use region::Region;
use rpc::exception::Exception;
use std::sync::Arc;

#[derive(Default)]
struct CellCount(i64);

impl Fold for CellCount {
    fn cell(&mut self, _: CellRef<'_>) -> Result<(), Exception> {
        self.0 += 1;
        Ok(())
    }
}

/// Rows, or else cells.
///
/// # Errors
/// Those of the scan.
pub(super) async fn count(
    server: &Arc<RegionServer>,
    region: &Arc<Region>,
    rows_only: bool,
    caller: &Caller,
) -> Result<pb::CountResponse, Exception> {
    // One cell for each row when rows are counted.
    let filter = rows_only.then(|| Arc::new(Filter::FirstKeyOnly));
    let scan = Scan { filter, ..Scan::default() };
    let count = walk::fold(server, region, scan, CellCount::default(), |CellCount(count)| count, caller).await?;
    Ok(pb::CountResponse { count })
}
