//! The way to hbase:meta: rows are written in groups, with stamps that never go back.

use crate::Result;
use crate::host::RegionHost;
use crate::lifetime::Lifetime;
use crate::meta;
use crate::meta_writer::MetaWriter;
use crate::servers::Servers;
use base::{Clock, TimestampMs};
use model::{Mutation, RegionInfo};
use parking_lot::Mutex;
use std::sync::Arc;

/// Rows written to hbase:meta in one go.
const ROWS_PER_WRITE: usize = 2000;

/// hbase:meta, for writing, and the stamps of what is written.
pub(crate) struct Catalog {
    writer: MetaWriter,
    clock: Arc<dyn Clock>,
    last_stamp: Mutex<i64>,
}

impl Catalog {
    /// Of the server that has hbase:meta.
    pub fn new(servers: Arc<Servers>, lifetime: Arc<Lifetime>, clock: Arc<dyn Clock>) -> Catalog {
        Catalog { writer: MetaWriter::start(servers, lifetime), clock, last_stamp: Mutex::new(0) }
    }

    /// Writes all of `rows` or none.
    ///
    /// # Errors
    /// The server's.
    pub async fn write(&self, rows: Vec<Mutation>) -> Result<()> {
        self.writer.write(rows).await
    }

    /// Writes many rows, in several goes.
    ///
    /// # Errors
    /// The server's; some are written then.
    pub async fn write_many(&self, mut rows: Vec<Mutation>) -> Result<()> {
        while !rows.is_empty() {
            let rest = rows.split_off(rows.len().min(ROWS_PER_WRITE));
            self.write(std::mem::replace(&mut rows, rest)).await?;
        }
        Ok(())
    }

    /// A timestamp for a group of cells: never before one given earlier, whatever the clock does.
    pub fn stamp(&self) -> TimestampMs {
        let now = self.clock.now_ms().0;
        let mut given = self.last_stamp.lock();
        *given = now.max(*given);
        TimestampMs(*given)
    }

    /// No timestamp from now on is before this one.
    pub fn stamp_after(&self, stamp: i64) {
        let mut given = self.last_stamp.lock();
        *given = stamp.max(*given);
    }

    /// A timestamp for deleting a row that may come back: whatever is written later has a later one, and is not hidden.
    pub fn delete_stamp(&self) -> TimestampMs {
        let stamp = self.stamp();
        let mut given = self.last_stamp.lock();
        *given = (*given).max(stamp.0 + 1);
        stamp
    }

    /// An id for regions that take the place of `regions`: higher than theirs, and never lower than an id given
    /// earlier, whatever the clock does. A region with the name of one that was deleted would take its edits from the
    /// log.
    pub fn next_region_id(&self, regions: &[RegionInfo]) -> u64 {
        let now = u64::try_from(self.stamp().0).unwrap_or(0);
        let id = regions.iter().map(|info| info.region_id + 1).max().unwrap_or(0).max(now);
        // What is written of these regions and later ones comes after it: so a start knows of it, too.
        self.stamp_after(i64::try_from(id).unwrap_or(i64::MAX));
        id
    }
}

/// The newest stamp in a region of the catalog. What was deleted later than anything that is shown would hide what is
/// written now, should the clock have gone back.
///
/// # Errors
/// The server's.
pub(crate) async fn newest_hidden_stamp(host: &dyn RegionHost, region: &str) -> Result<i64> {
    let all = model::Scan { raw: true, ..meta::whole_scan() };
    let cells = host.scan(region, all).await?;
    Ok(cells.iter_from(0).map(|cell| cell.timestamp()).max().unwrap_or(0))
}
