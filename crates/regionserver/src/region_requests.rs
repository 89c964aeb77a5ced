//! What the master asks of one region that is online here. These methods wait for the disk.

use crate::idle_scanners;
use crate::server::{RegionServer, ServerError};
use crate::traces;
use bytes::Bytes;
use cell::CellBuffer;
use model::{Durability, Mutation, RegionInfo, Scan, TableDescriptor};
use region::{FlushOutcome, FlushRequest, Limits, Region, RegionError};
use std::sync::Arc;

/// As HBase says it. Follows: `HRegion.FlushResultImpl#toString`.
fn flush_result(outcome: &FlushOutcome) -> String {
    let (result, why) = match outcome {
        FlushOutcome { flushed: false, .. } => ("CANNOT_FLUSH_MEMSTORE_EMPTY", "Nothing to flush"),
        FlushOutcome { needs_compaction: true, .. } => ("FLUSHED_COMPACTION_NEEDED", "null"),
        _ => ("FLUSHED_NO_COMPACTION_NEEDED", "null"),
    };
    format!("flush result:{result}, failureReason:{why},flush seq id{}", outcome.seq_id.0)
}

impl RegionServer {
    pub(crate) fn online(&self, encoded_name: &str) -> Result<Arc<Region>, ServerError> {
        self.region(encoded_name).ok_or_else(|| ServerError::NotOnline(encoded_name.to_owned()))
    }

    /// Flushes a region now, whole or some families; waits for a flush that runs. Returns whether there was something.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn flush_region(&self, encoded_name: &str, families: Vec<Bytes>) -> Result<bool, ServerError> {
        let region = self.online(encoded_name)?;
        self.flush_now(&region, families)
    }

    /// Flushes a region; tells those who wait for it, and queues the compaction that is due then.
    pub(crate) fn flush(&self, region: &Region, request: &FlushRequest) -> Result<FlushOutcome, RegionError> {
        let (begun_us, held_bytes) = (self.env.clock.monotonic_us(), region.stats().memstore_data_bytes);
        let task = self.tasks.begin(format!("Flushing {}", region.info().name_string()), "Flushing stores");
        let outcome = traces::on_region(self, "Region.flush", region.info(), || region.flush(request));
        let outcome = outcome.map_err(|error| self.escalate_fatal(error));
        match &outcome {
            Ok(outcome) => task.complete(format!("Flush successful {}", flush_result(outcome))),
            Err(error) => task.abort(format!("Flush failed: {error}")),
        }
        self.maintenance.flushes_ended.tell();
        let outcome = outcome?;
        if outcome.flushed {
            let left_bytes = region.stats().memstore_data_bytes;
            let took_us = self.env.clock.monotonic_us().saturating_sub(begun_us);
            self.operations.flushed(took_us, held_bytes.saturating_sub(left_bytes), outcome.bytes);
            idle_scanners::update_readers(&self.sessions, Some(region));
            self.refresh_replicas(region);
        }
        if outcome.needs_compaction {
            self.maintenance.consider_compaction(region.info().encoded_name());
        }
        Ok(outcome)
    }

    pub(crate) fn flush_now(&self, region: &Arc<Region>, families: Vec<Bytes>) -> Result<bool, ServerError> {
        let request = FlushRequest { families, all: true };
        Ok(self.flush(region, &request)?.flushed)
    }

    /// The files of `region` are others than they were: its read replicas here show them from now on, and those that are to be in the cache
    /// come there soon. Of a replica: it shows its primary's.
    pub(crate) fn refresh_replicas(&self, region: &Region) {
        self.maintenance.consider_prefetch(region);
        let info = region.info();
        if info.is_replica() {
            // They may have changed between its opening and its being found.
            if let Some(primary) = self.region(info.replica(0).encoded_name()) {
                region.refresh(&primary);
            }
            return;
        }
        if info.table.is_meta() {
            // In one process with the master it is not reopened when it is altered: it may have more than it knows.
            let mut replicas = self.regions();
            replicas.retain(|replica| replica.info().is_replica() && replica.info().table.is_meta());
            replicas.iter().for_each(|replica| _ = replica.refresh(region));
            return;
        }
        let replicas = (1..region.table().region_replication()).map(|id| info.replica(id));
        for replica in replicas.filter_map(|replica| self.region(replica.encoded_name())) {
            replica.refresh(region);
        }
    }

    /// Asks for a compaction; returns at once.
    ///
    /// # Errors
    /// The region is not online.
    pub fn request_compaction(
        &self,
        encoded_name: &str,
        family: Option<Bytes>,
        major: bool,
    ) -> Result<(), ServerError> {
        let region = self.online(encoded_name)?;
        Ok(self.maintenance.request_compaction(&region, family, major)?)
    }

    /// The row at which a region is best split, flushing it if only its memstore knows one. `None` when it has no row
    /// to split at.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn split_point(&self, encoded_name: &str) -> Result<Option<Bytes>, ServerError> {
        let region = self.online(encoded_name)?;
        if let Some(row) = region.splitter().split_point()? {
            return Ok(Some(row));
        }
        self.flush_now(&region, Vec::new())?;
        Ok(region.splitter().split_point()?)
    }

    /// Writes the daughters of a closed parent.
    ///
    /// # Errors
    /// [`ServerError`]; doing it again is safe.
    pub fn split_region_files(
        &self,
        parent: &RegionInfo,
        table: &TableDescriptor,
        daughters: [&RegionInfo; 2],
    ) -> Result<(), ServerError> {
        Ok(region::split::write_daughters(&self.env, parent, table, daughters)
            .map_err(|error| self.escalate_fatal(error))?)
    }

    /// Whether a region that is online here still refers to its parent's files.
    pub fn has_references(&self, encoded_name: &str) -> Option<bool> {
        self.region(encoded_name).map(|region| region.splitter().has_references())
    }

    /// Applies mutations to an online region, all or nothing, durable and visible on return, whatever the log promises others: how the
    /// master writes hbase:meta and hbase:namespace.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn mutate(&self, encoded_name: &str, mut mutations: Vec<Mutation>) -> Result<(), ServerError> {
        let region = self.online(encoded_name)?;
        mutations.iter_mut().for_each(|mutation| mutation.durability = Durability::FsyncWal);
        let written = region.mutate_rows(&mutations, None).map_err(|error| self.escalate_fatal(error))?;
        written.commit.wait().map_err(|error| self.escalate_fatal(error))?;
        self.maintenance.consider_flush(&region);
        Ok(())
    }

    /// All cells that a scan of one region finds: for small scans of hbase:meta.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn scan(&self, encoded_name: &str, scan: &Scan) -> Result<CellBuffer, ServerError> {
        let region = self.online(encoded_name)?;
        let mut scanner = region.scanner(scan)?;
        let mut out = CellBuffer::new();
        let mut limits = Limits::default();
        while scanner.next(&mut limits, &mut out)?.more {}
        Ok(out)
    }
}
