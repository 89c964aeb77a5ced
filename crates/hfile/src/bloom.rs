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
    /// Keys that it was made for.
    pub max_key_count: u64,
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
        let (key_count, max_key_count, chunk_count) = (at.u64()?, at.u64()?, at.u32()? as usize);
        let name_len = at.vlong()?;
        at.take(usize::try_from(name_len).map_err(|_| "the comparator's name has a negative length")?)?;
        let chunks = IndexBlock::parse_root(&mut at, chunk_count)?;
        let chunks = if let Some(order) = flat_keys { chunks.with_flat_keys(order)? } else { chunks };
        if !at.is_empty() {
            return Err("bytes follow the Bloom filter's index".into());
        }
        Ok(Bloom { hash, hash_count, total_bytes, key_count, max_key_count, chunks, flat_keys: flat_keys.is_some() })
    }

    pub fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    /// Where its chunks are.
    pub fn chunk_places(&self) -> impl Iterator<Item = BlockAt> {
        (0..self.chunks.len()).map(|i| self.chunks.block(i))
    }

    pub fn has_flat_keys(&self) -> bool {
        self.flat_keys
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
#[inline]
pub(crate) fn probes(hash: HashType, count: u32, key: &[u8], chunk_len: usize) -> impl Iterator<Item = usize> {
    Places::new(chunk_len).of(Hashes::of(hash, key), count)
}

/// What a key's bits come from.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hashes {
    first: u32,
    step: u32,
}

impl Hashes {
    #[inline]
    pub fn of(hash: HashType, key: &[u8]) -> Hashes {
        let first = hash.hash(key, 0);
        Hashes { first, step: hash.hash(key, first) }
    }
}

/// Where bits lie in chunks of one length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// Bits of a chunk; `None` for more than an int counts, which leave every int as it is.
    bits: Option<u32>,
    /// 2^64 over that, rounded up: two multiplications by it give the remainder, in a third of the time of a division.
    inverse: u64,
}

impl Places {
    #[inline]
    pub fn new(chunk_len: usize) -> Places {
        let bits = i32::try_from(chunk_len.saturating_mul(8)).ok().map(|bits| bits.max(1).unsigned_abs());
        Places { bits, inverse: bits.map_or(0, |bits| (u64::MAX / u64::from(bits)).wrapping_add(1)) }
    }

    /// The bits of one key.
    #[inline]
    pub fn of(self, hashes: Hashes, count: u32) -> impl Iterator<Item = usize> {
        (0..count).map(move |i| {
            // Java's int arithmetic wraps, and its remainder has the sign of the dividend.
            let place = (hashes.first.wrapping_add(i.wrapping_mul(hashes.step)) as i32).unsigned_abs();
            match self.bits {
                Some(bits) => {
                    let fraction = self.inverse.wrapping_mul(u64::from(place));
                    ((u128::from(fraction) * u128::from(bits)) >> 64) as usize
                }
                None => place as usize,
            }
        })
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    #[test]
    fn places_are_java_remainders() {
        let rng = Rng::seeded(5);
        let mut lens: Vec<usize> = vec![0, 1, 3, 7, 1024, 128 * 1024, (1 << 28) - 1, 1 << 28, 1 << 40];
        lens.extend((0..200).map(|_| rng.below(1 << 28) as usize));
        for len in lens {
            for _ in 0..200 {
                let edge = [0, 1, 2, i32::MAX as u32, i32::MIN as u32, u32::MAX];
                let first = if rng.below(4) == 0 { edge[rng.below(6) as usize] } else { rng.next_u64() as u32 };
                let step = rng.next_u64() as u32;
                let found: Vec<usize> = Places::new(len).of(Hashes { first, step }, 8).collect();
                let wanted: Vec<usize> = (0..8u32)
                    .map(|i| {
                        let place = first.wrapping_add(i.wrapping_mul(step)) as i32;
                        let bits = i32::try_from(len * 8).map(|bits| bits.max(1));
                        bits.map_or(place, |bits| place.wrapping_rem(bits)).unsigned_abs() as usize
                    })
                    .collect();
                assert_eq!(found, wanted, "{first} and {step} in {len} bytes");
            }
        }
    }
}
