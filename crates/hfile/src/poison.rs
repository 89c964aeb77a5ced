//! In debug builds, what blocks held is overwritten just before their memory goes back, so that whoever still looked there would see it at once,
//! not by luck (F8 of the list of faults, HBASE-26281). Safe Rust gives nobody the chance; this is for code to come. Release builds have nothing of it.

use bytes::{Bytes, BytesMut};

/// What given-back memory holds.
pub(crate) const PATTERN: u8 = 0xDB;

#[cfg(test)]
thread_local!(static GIVEN_BACK: std::cell::Cell<usize> = const { std::cell::Cell::new(0) });

/// Overwrites `memory`, which its owner is about to give back.
pub(crate) fn overwrite(memory: &mut [u8]) {
    memory.fill(PATTERN);
    #[cfg(test)]
    GIVEN_BACK.set(GIVEN_BACK.get() + memory.len());
}

/// As [`overwrite`], if nobody else holds a part of `bytes`: then whoever lets go last frees them as they are. Answers what is
/// to be freed.
pub(crate) fn overwrite_unshared(bytes: &mut Bytes) -> Option<BytesMut> {
    let mut alone = std::mem::take(bytes).try_into_mut().ok()?;
    overwrite(&mut alone);
    Some(alone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{BlockCache, CachedBlock};
    use crate::data_block::DataBlock;
    use crate::encoding::Tail;
    use std::sync::Arc;

    fn block() -> (CachedBlock, usize) {
        let mut cells = cell::CellBuffer::new();
        let spec = cell::CellSpec {
            row: b"row",
            family: b"f",
            qualifier: b"q",
            timestamp: 1,
            type_code: cell::CellType::Put.code(),
            value: &[7; 300],
            tags: b"",
        };
        cells.push_spec(&spec, base::SeqId(0));
        let mut payload = Vec::new();
        cells.iter_from(0).for_each(|cell| payload.extend_from_slice(cell.bytes()));
        let bytes = payload.len();
        let tail = Tail { tags: false, tags_compressed: false, mvcc: false };
        let block = DataBlock::decode(Bytes::from(payload), false, tail, None).expect("a block");
        (CachedBlock::Data(Arc::new(block)), bytes)
    }

    #[test]
    fn f08_what_is_given_back_holds_the_pattern() {
        let mut alone = Bytes::from(vec![1; 100]);
        let freed = overwrite_unshared(&mut alone).expect("nobody else has it");
        assert_eq!(freed, vec![PATTERN; 100]);
        let mut shared = Bytes::from(vec![1; 100]);
        let reply = shared.slice(10..20);
        assert!(overwrite_unshared(&mut shared).is_none());
        assert_eq!(reply, vec![1; 10], "what is read is left alone");
    }

    #[test]
    fn f08_a_block_is_overwritten_when_its_last_reader_lets_go() {
        let (block, bytes) = block();
        let cache = BlockCache::new(10_000);
        cache.insert(1, 0, block, false);
        let reader = cache.get(1, 0, crate::block::BlockType::Data, true).expect("just put in");
        GIVEN_BACK.set(0);
        assert_eq!(cache.evict_file(1), 1);
        assert_eq!(GIVEN_BACK.get(), 0, "it is read");
        drop(reader);
        assert_eq!(GIVEN_BACK.get(), bytes);
        cache.insert(1, 8, CachedBlock::Bloom(Bytes::from(vec![1; 64])), false);
        assert_eq!(cache.evict_file(1), 1);
        assert_eq!(GIVEN_BACK.get(), bytes + 64);
    }
}
