//! Reading store files into the block cache before anybody asks for them, where the family wants that. Follows: `PrefetchExecutor`,
//! `CacheConfig#shouldPrefetchOnOpen`.

use crate::error::{RegionError, Result};
use crate::region::Region;
use crate::store_file::StoreFile;
use std::sync::Arc;

impl Region {
    /// Whether some file of a family with PREFETCH_BLOCKS_ON_OPEN was not read into the cache yet. A replica shows files of its primary, which sees to
    /// them.
    pub fn wants_prefetch(&self) -> bool {
        !self.files_to_prefetch().is_empty()
    }

    fn files_to_prefetch(&self) -> Vec<Arc<StoreFile>> {
        let core = self.core();
        if core.info.is_replica() {
            return Vec::new();
        }
        let stores = core.stores.iter().filter(|store| store.cache_switches().prefetch);
        let is_due = |file: &&Arc<StoreFile>| !file.is_prefetched();
        stores.flat_map(|store| store.view().files.iter().filter(is_due).cloned().collect::<Vec<_>>()).collect()
    }

    /// Reads the files that are due into the cache, each once. `proceed` is told of the bytes of each block before it is read; false ends
    /// the work, and what is not done then is not due any more: the cache is full, or the server stops. Returns the number of files that
    /// are in the cache as a whole.
    ///
    /// # Errors
    /// When a file cannot be read or is damaged; others are due still.
    pub fn prefetch(&self, proceed: &mut dyn FnMut(u64) -> bool) -> Result<usize> {
        let (mut whole, mut goes_on) = (0, true);
        for file in self.files_to_prefetch() {
            file.set_prefetched();
            if goes_on {
                goes_on = file
                    .reader
                    .prefetch(&mut |bytes| !self.is_closing() && !file.is_replaced() && proceed(bytes))
                    .map_err(|error| RegionError::file(self.name(), error))?
                    || file.is_replaced();
                whole += usize::from(goes_on && !file.is_replaced());
            }
        }
        Ok(whole)
    }
}
