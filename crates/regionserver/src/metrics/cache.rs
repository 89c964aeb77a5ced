//! The block cache and the Bloom filters under HBase's names. Follows: `MetricsRegionServerWrapperImpl`, `CacheStats`.

use base::metrics::Sink;
use hfile::{BlockCache, BlockCounts, CacheStats, SecondLevelStats};

/// Puts all of it into `sink`, whose bean is set.
pub(super) fn collect(sink: &mut Sink, cache: &BlockCache) {
    let stats = cache.stats();
    sizes(sink, &stats);
    lookups(sink, &stats);
    hits_by_kind(sink, &stats.hits_of);
    misses_by_kind(sink, &stats.misses_of);
    second_level(sink, &cache.second().map(|second| second.stats()).unwrap_or_default());
    let blooms = cache.blooms();
    sink.counter("bloomFilterRequestsCount", blooms.asked())
        .counter("bloomFilterNegativeResultsCount", blooms.denied())
        .counter("bloomFilterEligibleRequestsCount", blooms.absent());
}

fn percent(part: u64, other: u64) -> f64 {
    100.0 * part as f64 / (part + other).max(1) as f64
}

fn sizes(sink: &mut Sink, stats: &CacheStats) {
    let free_bytes = stats.capacity_bytes.saturating_sub(stats.used_bytes);
    sink.gauge("blockCacheFreeSize", free_bytes)
        .gauge("blockCacheCount", stats.blocks)
        .gauge("blockCacheDataBlockCount", stats.data_blocks)
        .gauge("blockCacheSize", stats.used_bytes)
        .counter("blockCacheFailedInsertionCount", stats.refused)
        .gauge("l1CacheSize", stats.used_bytes)
        .gauge("l1CacheFreeSize", free_bytes)
        .gauge("l1CacheCount", stats.blocks)
        .counter("l1CacheEvictionCount", stats.evicted);
}

fn lookups(sink: &mut Sink, stats: &CacheStats) {
    sink.counter("blockCacheHitCount", stats.hits)
        .counter("blockCacheMissCount", stats.misses)
        .counter("blockCacheHitCachingCount", stats.keeping_hits)
        .counter("blockCacheMissCachingCount", stats.keeping_misses)
        .counter("blockCacheEvictionCount", stats.evicted)
        .real("blockCacheCountHitPercent", percent(stats.hits, stats.misses))
        .real("blockCacheExpressHitPercent", percent(stats.keeping_hits, stats.keeping_misses))
        // No region is open here that is the copy of another.
        .counter("blockCacheHitCountPrimary", stats.hits)
        .counter("blockCacheMissCountPrimary", stats.misses)
        .counter("blockCacheEvictionCountPrimary", stats.evicted)
        .gauge("l1CacheHitCount", stats.hits)
        .gauge("l1CacheMissCount", stats.misses)
        .real("l1CacheHitRatio", percent(stats.hits, stats.misses))
        .real("l1CacheMissRatio", percent(stats.misses, stats.hits));
}

/// All zero where there is no second level, as in HBase.
fn second_level(sink: &mut Sink, stats: &SecondLevelStats) {
    sink.gauge("l2CacheSize", stats.used_bytes)
        .gauge("l2CacheFreeSize", stats.capacity_bytes.saturating_sub(stats.used_bytes))
        .gauge("l2CacheCount", stats.blocks)
        .counter("l2CacheEvictionCount", stats.evicted)
        .gauge("l2CacheHitCount", stats.hits)
        .gauge("l2CacheMissCount", stats.misses)
        .real("l2CacheHitRatio", percent(stats.hits, stats.misses))
        .real("l2CacheMissRatio", percent(stats.misses, stats.hits));
}

fn hits_by_kind(sink: &mut Sink, hits: &BlockCounts) {
    sink.counter("blockCacheDataHitCount", hits.data())
        .counter("blockCacheEncodedDataHitCount", hits.encoded_data())
        .counter("blockCacheLeafIndexHitCount", hits.leaf_index())
        .counter("blockCacheIntermediateIndexHitCount", hits.intermediate_index())
        .counter("blockCacheRootIndexHitCount", hits.root_index())
        .counter("blockCacheBloomChunkHitCount", hits.bloom_chunk())
        .counter("blockCacheMetaHitCount", hits.meta())
        .counter("blockCacheFileInfoHitCount", hits.file_info())
        .counter("blockCacheGeneralBloomMetaHitCount", hits.general_bloom_meta())
        .counter("blockCacheDeleteFamilyBloomHitCount", hits.delete_family_bloom_meta());
}

fn misses_by_kind(sink: &mut Sink, misses: &BlockCounts) {
    sink.counter("blockCacheDataMissCount", misses.data())
        .counter("blockCacheEncodedDataMissCount", misses.encoded_data())
        .counter("blockCacheLeafIndexMissCount", misses.leaf_index())
        .counter("blockCacheIntermediateIndexMissCount", misses.intermediate_index())
        .counter("blockCacheRootIndexMissCount", misses.root_index())
        .counter("blockCacheBloomChunkMissCount", misses.bloom_chunk())
        .counter("blockCacheMetaMissCount", misses.meta())
        .counter("blockCacheFileInfoMissCount", misses.file_info())
        .counter("blockCacheGeneralBloomMetaMissCount", misses.general_bloom_meta())
        .counter("blockCacheDeleteFamilyBloomMissCount", misses.delete_family_bloom_meta());
}
