//! Reading a file into the cache before anybody asks for it, and out of the cache's second level again. Follows: `HFilePreadReader`,
//! `CacheConfig#shouldEvictOnClose`.

use crate::bloom::Bloom;
use crate::index::IndexBlock;
use crate::reader::Reader;
use crate::source::{Fetch, ReadAhead};
use crate::{Residency, Result};

const KEPT: Fetch = Fetch { residency: Residency::MayRead, keep: true };

impl Reader {
    /// Reads what the file has into its cache: data blocks, the index below its root and the chunks of its Bloom filters, in their order. `proceed` is
    /// told of the bytes of each block on the disk before it is read; false ends the work. Returns whether all of it was done. Costs a sequential read of
    /// the file; blocks that are in the cache already are not read again. Data blocks go to the second level, too, as long as that has room
    /// ([`crate::SecondLevel::wait_for_room`]).
    ///
    /// A reader of one half of a file reads nothing: its store is about to be written anew.
    ///
    /// # Errors
    /// `Io` and `Corrupt` of a block.
    pub fn prefetch(&self, proceed: &mut dyn FnMut(u64) -> bool) -> Result<bool> {
        if self.source.cache.is_none() || self.half.is_some() {
            return Ok(true);
        }
        let mut ahead = ReadAhead::new(false, false).filling();
        Ok(self.prefetch_below(&self.root, self.trailer().index_levels, &mut ahead, proceed)?
            && self.prefetch_bloom(self.bloom(), proceed)?
            && self.prefetch_bloom(self.delete_bloom(), proceed)?)
    }

    /// The blocks that an index block names, `levels` below: one of a single level names data blocks.
    fn prefetch_below(
        &self,
        index: &IndexBlock,
        levels: u32,
        ahead: &mut ReadAhead,
        proceed: &mut dyn FnMut(u64) -> bool,
    ) -> Result<bool> {
        for entry in 0..index.len() {
            let at = index.block(entry);
            if !proceed(u64::from(at.len)) {
                return Ok(false);
            }
            if levels <= 1 {
                self.source.data(at, KEPT, Some(ahead))?;
            } else {
                let below = self.source.index(at, levels == 2, KEPT)?;
                if !self.prefetch_below(&below, levels - 1, ahead, proceed)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn prefetch_bloom(&self, bloom: Option<&Bloom>, proceed: &mut dyn FnMut(u64) -> bool) -> Result<bool> {
        for at in bloom.into_iter().flat_map(Bloom::chunk_places) {
            if !proceed(u64::from(at.len)) {
                return Ok(false);
            }
            self.source.bloom(at, KEPT)?;
        }
        Ok(true)
    }

    /// Forgets the file's blocks in both levels of the cache, for a file that is closed and not to be found there when it is opened again. The
    /// reader stays usable. Looks at every block held.
    pub fn evict_for_good(&self) {
        self.evict();
        if let Some(second) = self.source.cache.as_ref().and_then(|cache| cache.second()) {
            second.forget_file(self.source.lasting_id);
        }
    }
}
