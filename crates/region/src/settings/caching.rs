//! Settings of what comes into the block cache before it is asked for, and of what leaves it. Follows: `CacheConfig`.

use super::RegionSettings;
use base::{Config, Setting};
use model::FamilyDescriptor;

macro_rules! switch {
    ($(#[$doc:meta])* $name:ident = $key:literal, $text:literal) => {
        $(#[$doc])*
        pub const $name: Setting<bool> =
            Setting { key: $key, default: false, min: false, max: true, unit: "", doc: $text };
    };
}

switch! {
    /// Whether blocks of the index are cached when they are written.
    CACHE_INDEX_ON_WRITE = "hfile.block.index.cacheonwrite",
    "Blocks of the index of new store files go into the block cache, as those of a family with CACHE_INDEX_ON_WRITE do. An index of one level, as \
     small files have, is in memory while its file is open."
}
switch! {
    /// Whether chunks of Bloom filters are cached when they are written.
    CACHE_BLOOMS_ON_WRITE = "hfile.block.bloom.cacheonwrite",
    "Bloom filters of new store files go into the block cache, as those of a family with CACHE_BLOOMS_ON_WRITE do."
}
switch! {
    /// Whether store files are read into the cache when they are opened.
    PREFETCH_ON_OPEN = "hbase.rs.prefetchblocksonopen",
    "Store files are read into the block cache when they are opened, as those of a family with PREFETCH_BLOCKS_ON_OPEN are, until it is full. Reads \
     them all at every start."
}
switch! {
    /// Whether the cache forgets store files that are closed.
    EVICT_ON_CLOSE = "hbase.rs.evictblocksonclose",
    "The second level of the block cache, too, forgets the store files of a region that is closed, as those of a family with EVICT_BLOCKS_ON_CLOSE. The \
     first always does."
}

/// What a server or family says of the block cache; a family's own switches are added by [`CacheSwitches::with_family`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheSwitches {
    /// Blocks of the index are cached when they are written,
    pub index_on_write: bool,
    /// and chunks of Bloom filters.
    pub blooms_on_write: bool,
    /// Files are read when they are opened.
    pub prefetch: bool,
    /// Files that are closed are forgotten for good.
    pub evict_on_close: bool,
}

impl CacheSwitches {
    pub(super) fn from_config(config: &Config) -> CacheSwitches {
        CacheSwitches {
            index_on_write: config.get(&CACHE_INDEX_ON_WRITE),
            blooms_on_write: config.get(&CACHE_BLOOMS_ON_WRITE),
            prefetch: config.get(&PREFETCH_ON_OPEN),
            evict_on_close: config.get(&EVICT_ON_CLOSE),
        }
    }

    /// A switch is on when either says so; nothing is read ahead into a cache that is not to hold the family's blocks.
    #[must_use]
    pub fn with_family(self, family: &FamilyDescriptor) -> CacheSwitches {
        CacheSwitches {
            index_on_write: self.index_on_write || family.cache_index_on_write(),
            blooms_on_write: self.blooms_on_write || family.cache_blooms_on_write(),
            prefetch: (self.prefetch || family.prefetch_blocks_on_open()) && family.block_cache_enabled(),
            evict_on_close: self.evict_on_close || family.evict_blocks_on_close(),
        }
    }
}

impl RegionSettings {
    /// The switches of a family that has these settings.
    pub(crate) fn cache_switches(&self, family: &FamilyDescriptor) -> CacheSwitches {
        self.cache_switches.with_family(family)
    }
}
