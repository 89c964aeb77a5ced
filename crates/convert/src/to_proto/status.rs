//! What servers tell of themselves, as messages.

use base::{Task, TaskState, TimestampMs};
use model::status::{CompactionState, RegionLoad, in_units};
use proto::pb;
use proto::pb::region_specifier::RegionSpecifierType;
use std::collections::{BTreeMap, BTreeSet};

fn mib(bytes: u64) -> Option<u32> {
    Some(in_units(bytes, 1 << 20))
}

fn kib(bytes: u64) -> Option<u32> {
    Some(in_units(bytes, 1 << 10))
}

fn compaction_state(state: CompactionState) -> pb::region_load::CompactionState {
    match state {
        CompactionState::None => pb::region_load::CompactionState::None,
        CompactionState::Minor => pb::region_load::CompactionState::Minor,
        CompactionState::Major => pb::region_load::CompactionState::Major,
        CompactionState::MajorAndMinor => pb::region_load::CompactionState::MajorAndMinor,
    }
}

/// Endpoints that a server's regions answer, each once.
pub fn coprocessors(loads: &[RegionLoad]) -> Vec<pb::Coprocessor> {
    let names: BTreeSet<&str> = loads.iter().flat_map(|load| load.coprocessors.iter().copied()).collect();
    names.into_iter().map(|name| pb::Coprocessor { name: name.to_owned() }).collect()
}

/// A task, as `ServerLoad` and `ClusterStatus` carry it.
pub fn task(task: &Task) -> pb::ServerTask {
    use pb::server_task::State;
    let state = match task.state {
        TaskState::Running => State::Running,
        TaskState::Complete => State::Complete,
        TaskState::Aborted => State::Aborted,
    };
    let ms = |time: TimestampMs| u64::try_from(time.0).unwrap_or_default();
    pb::ServerTask {
        description: task.description.clone(),
        status: task.status.clone(),
        state: state as i32,
        start_time: Some(ms(task.started)),
        // Java's -1.
        completion_time: Some(task.ended.map_or(u64::MAX, ms)),
    }
}

/// One region's numbers.
pub fn region_load(load: &RegionLoad) -> pb::RegionLoad {
    pb::RegionLoad {
        region_specifier: pb::RegionSpecifier {
            r#type: RegionSpecifierType::RegionName as i32,
            value: load.name.clone(),
        },
        stores: Some(load.stores),
        storefiles: Some(load.store_files),
        store_uncompressed_size_mb: mib(load.store_uncompressed_size_bytes),
        storefile_size_mb: mib(load.store_file_size_bytes),
        mem_store_size_mb: mib(load.memstore_size_bytes),
        // HBase has one number for both.
        storefile_index_size_kb: kib(load.root_index_size_bytes).map(u64::from),
        read_requests_count: Some(load.read_requests),
        write_requests_count: Some(load.write_requests),
        filtered_read_requests_count: Some(load.filtered_read_requests),
        total_compacting_k_vs: Some(load.compacting_cells),
        current_compacted_k_vs: Some(load.compacted_cells),
        root_index_size_kb: kib(load.root_index_size_bytes),
        total_static_index_size_kb: kib(load.index_size_bytes),
        total_static_bloom_size_kb: kib(load.bloom_size_bytes),
        complete_sequence_id: Some(load.complete_sequence_id),
        data_locality: Some(load.locality.part()),
        last_major_compaction_ts: Some(load.last_major_compaction_ms),
        store_complete_sequence_id: load
            .store_complete_sequence_ids
            .iter()
            .map(|(family, id)| pb::StoreSequenceId { family_name: family.clone(), sequence_id: *id })
            .collect(),
        region_size_mb: mib(load.own_file_size_bytes),
        store_ref_count: Some(i32::try_from(load.store_references).unwrap_or(i32::MAX)),
        max_compacted_store_file_ref_count: Some(i32::try_from(load.max_compacted_file_references).unwrap_or(i32::MAX)),
        compaction_state: Some(compaction_state(load.compaction) as i32),
        blocks_local_weight: Some(load.locality.local_bytes),
        blocks_total_weight: Some(load.locality.total_bytes),
        data_locality_for_ssd: Some(load.locality.ssd_part()),
        blocks_local_with_ssd_weight: Some(load.locality.local_ssd_bytes),
        current_region_cached_ratio: Some(cached_ratio(load)),
    }
}

/// How much of a region is in the second level of the block cache, in the megabytes that HBase tells. Follows: `HRegionServer#createRegionLoad`.
fn cached_ratio(load: &RegionLoad) -> f32 {
    let [cached, all] = [load.cached_bytes, load.own_file_size_bytes].map(|bytes| in_units(bytes, 1 << 20));
    if all == 0 { 0.0 } else { cached as f32 / all as f32 }
}

/// Megabytes of each region that are in the second level of the block cache, by its encoded name; those that have none are left out. Follows:
/// `HRegionServer#buildServerLoad`.
pub fn region_cached_info(loads: &[RegionLoad]) -> BTreeMap<String, u32> {
    let cached = loads.iter().filter(|load| load.cached_bytes > 0);
    cached.map(|load| (load.encoded_name.to_string(), in_units(load.cached_bytes, 1 << 20))).collect()
}
