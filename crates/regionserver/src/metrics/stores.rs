//! What flushes, compactions and files of large values came to, over all regions, under HBase's names. Follows:
//! `MetricsRegionServerWrapperImpl`.

use base::metrics::Sink;
use region::{MobStats, RegionStats};

/// Puts all of it into `sink`, whose bean is set.
pub(super) fn collect(sink: &mut Sink, stats: &[RegionStats]) {
    let sum = |number: fn(&RegionStats) -> u64| stats.iter().map(number).sum::<u64>();
    let most = |number: fn(&RegionStats) -> u64| stats.iter().map(number).max().unwrap_or(0);
    sink.gauge("storeRefCount", sum(|stats| stats.file_readers))
        .gauge("maxCompactedStoreFileRefCount", most(|stats| stats.max_replaced_file_readers))
        .gauge("mutationsWithoutWALCount", sum(|stats| stats.writes_without_log))
        .gauge("mutationsWithoutWALSize", sum(|stats| stats.bytes_without_log))
        .counter("flushedCellsCount", sum(|stats| stats.flushed_cells))
        .counter("flushedCellsSize", sum(|stats| stats.flushed_cells_bytes))
        .counter("flushedOutputBytes", sum(|stats| stats.flushed_bytes))
        .counter("compactedCellsCount", sum(|stats| stats.current_compacted_cells))
        .counter("compactedCellsSize", sum(|stats| stats.compacted_cells_bytes))
        .counter("majorCompactedCellsCount", sum(|stats| stats.major_compacted_cells))
        .counter("majorCompactedCellsSize", sum(|stats| stats.major_compacted_cells_bytes));
    let mut large = MobStats::default();
    stats.iter().for_each(|stats| large += stats.mob);
    large_values(sink, &large);
}

fn large_values(sink: &mut Sink, large: &MobStats) {
    let hits = large.file_accesses.saturating_sub(large.file_misses);
    sink.counter("mobFlushCount", large.flushes)
        .counter("mobFlushedCellsCount", large.flushed_cells)
        .counter("mobFlushedCellsSize", large.flushed_bytes)
        .counter("cellsCountCompactedToMob", large.cells_compacted_to)
        .counter("cellsSizeCompactedToMob", large.bytes_compacted_to)
        .counter("cellsCountCompactedFromMob", large.cells_compacted_from)
        .counter("cellsSizeCompactedFromMob", large.bytes_compacted_from)
        .counter("mobScanCellsCount", large.read_cells)
        .counter("mobScanCellsSize", large.read_bytes)
        .counter("mobFileCacheAccessCount", large.file_accesses)
        .counter("mobFileCacheMissCount", large.file_misses)
        .counter("mobFileCacheEvictedCount", large.files_evicted)
        .gauge("mobFileCacheCount", large.open_files)
        .real("mobFileCacheHitPercent", 100.0 * hits as f64 / large.file_accesses.max(1) as f64);
}
