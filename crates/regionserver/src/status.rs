//! What the server says of itself: plain numbers for the master's cluster status.

use crate::endpoints;
use crate::server::RegionServer;
use bytes::Bytes;
use fs::BlockHosts;
use model::Endpoint;
use model::status::{Locality, RegionLoad};
use region::Region;
use std::sync::atomic::Ordering;

/// A server at one moment.
#[derive(Clone, Debug)]
pub struct ServerStatus {
    /// Wall clock at its start.
    pub started_ms: i64,
    /// Calls since its start.
    pub requests: u64,
    /// Rows read since its start.
    pub reads: u64,
    /// Rows written since its start.
    pub writes: u64,
    /// Bytes in all memstores.
    pub memstore_bytes: u64,
    /// The memory budget.
    pub memory_budget_bytes: u64,
    /// Bytes in all memstores at which writes are refused.
    pub memstore_limit_bytes: u64,
    /// Flushes waiting.
    pub flush_queue: usize,
    /// Small and large compactions waiting.
    pub compaction_queues: (usize, usize),
    /// Scanners between two calls.
    pub open_scanners: usize,
    /// Calls that wait in the lanes.
    pub queued_calls: usize,
    /// Calls that run in the lanes.
    pub running_calls: usize,
    /// Every online region.
    pub regions: Vec<RegionLoad>,
}

impl RegionServer {
    /// Calls, rows read and rows written since the start. Cost: some loads.
    pub fn request_counts(&self) -> (u64, u64, u64) {
        let counts = &self.counts;
        (counts.total(), counts.reads.sum(), counts.writes.load(Ordering::Relaxed))
    }

    /// The memory budget.
    pub fn memory_budget_bytes(&self) -> u64 {
        self.memory_budget_bytes
    }

    /// What its regions share.
    pub fn env(&self) -> &region::RegionEnv {
        &self.env
    }

    /// What each user's clients read and wrote since the start, where that is counted.
    pub fn user_loads(&self) -> Vec<proto::pb::UserLoad> {
        self.users.loads()
    }

    /// The server's status now. Cost: proportional to the number of regions; no I/O.
    pub fn status(&self) -> ServerStatus {
        let lanes = self.scheduler.stats();
        ServerStatus {
            started_ms: self.started_ms,
            requests: self.counts.total(),
            reads: self.counts.reads.sum(),
            writes: self.counts.writes.load(Ordering::Relaxed),
            memstore_bytes: self.env.memory.memstore_bytes(),
            memory_budget_bytes: self.memory_budget_bytes,
            memstore_limit_bytes: self.marks().limit_bytes,
            flush_queue: self.maintenance.flushes.len(),
            compaction_queues: (self.maintenance.small_compactions.len(), self.maintenance.large_compactions.len()),
            open_scanners: self.sessions.scanners.len(),
            queued_calls: lanes.iter().map(|(_, lane)| lane.queued).sum(),
            running_calls: lanes.iter().map(|(_, lane)| lane.running).sum(),
            regions: self.regions().iter().map(|region| region_load(self, region)).collect(),
        }
    }
}

/// The numbers of one region.
pub(crate) fn region_load(server: &RegionServer, region: &Region) -> RegionLoad {
    let stats = region.stats();
    let loaded = Endpoint::ALL.into_iter().filter(|endpoint| endpoints::is_loaded(server, region, *endpoint));
    RegionLoad {
        name: region.info().name().clone(),
        encoded_name: region.info().encoded_name().clone(),
        stores: stats.stores.len() as u32,
        store_files: stats.files as u32,
        store_file_size_bytes: stats.files_bytes,
        store_uncompressed_size_bytes: stats.files_uncompressed_bytes,
        own_file_size_bytes: stats.own_files_bytes,
        cached_bytes: stats.second_level_bytes,
        store_references: u32::try_from(stats.file_readers).unwrap_or(u32::MAX),
        max_compacted_file_references: u32::try_from(stats.max_replaced_file_readers).unwrap_or(u32::MAX),
        coprocessors: loaded.map(Endpoint::simple_name).collect(),
        memstore_size_bytes: stats.memstore_data_bytes,
        index_size_bytes: stats.index_bytes,
        root_index_size_bytes: stats.reader_heap_bytes,
        bloom_size_bytes: stats.bloom_bytes,
        read_requests: stats.read_requests,
        filtered_read_requests: stats.filtered_read_requests,
        write_requests: stats.write_requests,
        compacting_cells: stats.total_compacting_cells,
        compacted_cells: stats.current_compacted_cells,
        complete_sequence_id: stats.flushed_seq_id,
        store_complete_sequence_ids: stats
            .stores
            .into_iter()
            .map(|store| (Bytes::from(store.family), store.flushed_seq_id))
            .collect(),
        last_major_compaction_ms: u64::try_from(stats.last_major_compaction_ms).unwrap_or_default(),
        compaction: server.maintenance.compaction_state(region.info().encoded_name()),
        locality: locality(server, &stats.block_hosts),
    }
}

/// How much of what lies there is on this server's machine. Follows: `HDFSBlocksDistribution#getBlocksLocalWeight`.
fn locality(server: &RegionServer, blocks: &BlockHosts) -> Locality {
    let here = blocks.here_on(&server.env.server_name.host);
    Locality { total_bytes: blocks.total_bytes(), local_bytes: here.bytes, local_ssd_bytes: here.ssd_bytes }
}
