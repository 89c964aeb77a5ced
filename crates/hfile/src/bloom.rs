//! Bloom filters as read: which rows or columns a file cannot hold. Follows: `CompoundBloomFilter`, `BloomFilterUtil`.

use crate::HashType;
use crate::cursor::{Cursor, Damage, Decoded};
use crate::index::{BlockAt, IndexBlock};
use cell::{KeyRef, Order};

/// The header of a filter: how to ask, and where its chunks are.
#[derive(Debug)]
pub(crate) struct Bloom {
    hash: HashType,
    hash_count: u32,
    pub total_bytes: u64,
    pub key_count: u64,
    chunks: IndexBlock,
    /// Chunk keys are flat keys (ROWCOL), not rows.
    flat_keys: bool,
}

impl Bloom {
    /// Reads the payload of a Bloom meta block. `flat_keys`: their order, for a ROWCOL filter.
    pub fn parse(payload: &[u8], flat_keys: Option<Order>) -> Decoded<Bloom> {
        let mut at = Cursor::new(payload);
        let version = at.u32()?;
        if version != 3 {
            return Err(format!("Bloom filter version {version} is not known").into());
        }
        let (total_bytes, hash_count, hash) = (at.u64()?, at.u32()?, at.u32()?);
        let hash = HashType::from_code(hash).ok_or_else(|| Damage(format!("hash {hash} is not known")))?;
        if !(1..=1000).contains(&hash_count) {
            return Err(format!("{hash_count} hashes for each key").into());
        }
        let (key_count, _max_keys, chunk_count) = (at.u64()?, at.u64()?, at.u32()? as usize);
        let name_len = at.vlong()?;
        at.take(usize::try_from(name_len).map_err(|_| "the comparator's name has a negative length")?)?;
        let chunks = IndexBlock::parse_root(&mut at, chunk_count)?;
        let chunks = if let Some(order) = flat_keys { chunks.with_flat_keys(order)? } else { chunks };
        if !at.is_empty() {
            return Err("bytes follow the Bloom filter's index".into());
        }
        Ok(Bloom { hash, hash_count, total_bytes, key_count, chunks, flat_keys: flat_keys.is_some() })
    }

    pub fn heap_bytes(&self) -> usize {
        self.chunks.heap_bytes() + size_of::<Bloom>()
    }

    /// The chunk that must be asked about `key` (row, prefix, or flat key for ROWCOL); `None`: the key is in no chunk.
    pub fn chunk_of(&self, order: Order, key: &[u8]) -> Option<BlockAt> {
        let found = if self.flat_keys {
            let key = KeyRef::from_checked(key);
            self.chunks.last_where(|first| order.keys(KeyRef::from_checked(first), key).is_le())
        } else {
            self.chunks.last_where(|first| order.rows(first, key).is_le())
        };
        found.map(|i| self.chunks.block(i))
    }

    /// Whether `chunk` may contain `key`.
    pub fn contains(&self, key: &[u8], chunk: &[u8]) -> bool {
        probes(self.hash, self.hash_count, key, chunk.len()).all(|bit| chunk[bit >> 3] & (1 << (bit & 7)) != 0)
    }
}

/// The bits that stand for `key` in a chunk of `chunk_len` bytes.
pub(crate) fn probes(hash: HashType, count: u32, key: &[u8], chunk_len: usize) -> impl Iterator<Item = usize> {
    let first = hash.hash(key, 0);
    let step = hash.hash(key, first);
    // A chunk of more bits than an int counts leaves every int as it is.
    let bits = i32::try_from(chunk_len.saturating_mul(8)).ok().map(|bits| bits.max(1));
    (0..count).map(move |i| {
        // Java's int arithmetic wraps, and its remainder has the sign of the dividend.
        let place = first.wrapping_add(i.wrapping_mul(step)) as i32;
        bits.map_or(place, |bits| place % bits).unsigned_abs() as usize
    })
}

/// Calls `f` with the flat key a ROWCOL filter hashes: row, no family, qualifier, latest timestamp, type Maximum.
pub(crate) fn with_row_col_key<T>(row: &[u8], qualifier: &[u8], f: impl FnOnce(&[u8]) -> T) -> T {
    let len = cell::key::KEY_OVERHEAD + row.len() + qualifier.len();
    let mut small = [0u8; 256];
    let mut large;
    let key: &mut [u8] = if len <= small.len() {
        &mut small[..len]
    } else {
        large = vec![0; len];
        &mut large
    };
    key[..2].copy_from_slice(&(row.len() as u16).to_be_bytes());
    key[2..2 + row.len()].copy_from_slice(row);
    key[2 + row.len()] = 0;
    key[3 + row.len()..len - 9].copy_from_slice(qualifier);
    key[len - 9..len - 1].copy_from_slice(&i64::MAX.to_be_bytes());
    key[len - 1] = u8::MAX;
    f(key)
}
