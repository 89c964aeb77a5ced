//! What a region server gives to a snapshot: for each region the names of its store files. Follows: `SnapshotRegionCallable`.

use crate::server::{RegionServer, ServerError};
use model::{RegionInfo, TableDescriptor};
use region::RegionError;
use region::snapshot::{closed_region_manifest, open_region_manifest};
use rootdir::snapshot::{RegionManifest, add_region};
use std::sync::Arc;

impl RegionServer {
    /// Writes the names of an online region's store files into the working directory of a snapshot, after a flush if it is to have one.
    ///
    /// # Errors
    /// [`ServerError`], `SnapshotTimeout` among them (as `RegionServerSnapshotManager` gives up on a region); doing it again is safe.
    pub fn snapshot_region(&self, encoded_name: &str, snapshot: &str, flush: bool) -> Result<(), ServerError> {
        let region = self.online(encoded_name)?;
        let begun_us = self.env.clock.monotonic_us();
        if flush {
            // With all that follows a flush; the region then flushes once more what has come since.
            self.flush_now(&region, Vec::new())?;
        }
        let manifest = open_region_manifest(&region, flush).map_err(|error| self.escalate_fatal(error))?;
        let took_us = self.env.clock.monotonic_us().saturating_sub(begun_us);
        let limit_ms = self.settings().snapshot_region_timeout_ms;
        if took_us > limit_ms.saturating_mul(1000) {
            return Err(ServerError::SnapshotTimeout { took_ms: took_us.div_ceil(1000), limit_ms });
        }
        self.add_to_snapshot(snapshot, &manifest)
    }

    /// The same of a region that is online nowhere.
    ///
    /// # Errors
    /// [`ServerError`]; doing it again is safe.
    pub fn snapshot_closed_region(
        &self,
        info: &RegionInfo,
        table: &TableDescriptor,
        snapshot: &str,
    ) -> Result<(), ServerError> {
        let manifest = closed_region_manifest(&self.env, info, table).map_err(|error| self.escalate_fatal(error))?;
        self.add_to_snapshot(snapshot, &manifest)
    }

    fn add_to_snapshot(&self, snapshot: &str, region: &RegionManifest) -> Result<(), ServerError> {
        let failed = |source: fs::Error| {
            let region = Arc::clone(region.info.encoded_name());
            self.escalate_fatal(RegionError::Volume { region, source: Arc::new(source) })
        };
        Ok(add_region(&*self.env.volume, snapshot, region).map_err(failed)?)
    }
}
