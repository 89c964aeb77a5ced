//! A Bloom filter being built, chunk by chunk. Follows: `CompoundBloomFilterWriter`, `BloomFilterChunk`, `BloomFilterUtil`.

use crate::block::BlockType;
use crate::block_writer::BlockWriter;
use crate::bloom::{Hashes, Places};
use crate::index::BlockAt;
use crate::index_writer::Chunk as Index;
use crate::{BloomType, HashType, Result, WriterOptions};
use cell::vint;

/// A chunk that is underfull at the end may be halved this many times (`io.storefile.bloom.max.fold`).
const MAX_FOLD: u32 = 7;
/// So many keys wait to be hashed together: neither their hashes nor the lines of the chunk that they change wait for each other.
const MOST_PENDING: usize = 16;
/// What HBase writes as the comparator of ROWCOL filters.
const ROW_COL_COMPARATOR: &str = "org.apache.hadoop.hbase.CellComparatorImpl";

/// Size of a chunk and what fits in it.
#[derive(Clone, Copy, Debug)]
struct Shape {
    bytes: usize,
    hash_count: u32,
    max_keys: u64,
}

impl Shape {
    /// Follows `BloomFilterUtil#createBySize`, in its arithmetic too.
    fn of(size_hint: u32, error_rate: f64) -> Shape {
        let ln2_squared = 2f64.ln() * 2f64.ln();
        let bytes = foldable(foldable(u64::from(size_hint)));
        let bits = bytes * 8;
        let ideal_keys = (bits as f64 * (ln2_squared / -error_rate.ln())) as u64;
        let hash_count = (2f64.ln() * (bits / ideal_keys.max(1)) as f64).ceil() as u32;
        let max_keys =
            -(bits as f64) / f64::from(hash_count) * (1.0 - (error_rate.ln() / f64::from(hash_count)).exp()).ln();
        Shape { bytes: bytes as usize, hash_count, max_keys: max_keys as u64 }
    }
}

/// The next size that can be halved [`MAX_FOLD`] times.
fn foldable(bytes: u64) -> u64 {
    let mask = (1 << MAX_FOLD) - 1;
    if bytes & mask == 0 { bytes } else { ((bytes >> MAX_FOLD) + 1) << MAX_FOLD }
}

/// A chunk of bits.
struct Chunk {
    bits: Vec<u8>,
    keys: u64,
    max_keys: u64,
    first_key: Vec<u8>,
}

impl Chunk {
    /// Halves the chunk while its keys fit twice.
    fn fold(&mut self) {
        let (mut pieces, mut len, mut max_keys) = (1, self.bits.len(), self.max_keys);
        while len & 1 == 0 && max_keys > self.keys << 1 {
            (pieces, len, max_keys) = (pieces << 1, len >> 1, max_keys >> 1);
        }
        let (kept, folded) = self.bits.split_at_mut(len);
        for piece in folded.chunks_exact(len).take(pieces - 1) {
            kept.iter_mut().zip(piece).for_each(|(bit, other)| *bit |= other);
        }
        self.bits.truncate(len);
        self.max_keys = max_keys;
    }
}

/// A filter being built. Keys come in the file's order, each once.
pub(crate) struct BloomWriter {
    shape: Shape,
    hash: HashType,
    chunk: Option<Chunk>,
    /// Keys counted in the chunk whose bits are not set yet, one after the other, and where each ends.
    pending: Vec<u8>,
    pending_ends: Vec<usize>,
    ready: Vec<Chunk>,
    index: Index,
    flat_keys: bool,
    total_bytes: u64,
    key_count: u64,
    max_keys: u64,
    /// The key added last.
    pub last_key: Vec<u8>,
}

impl BloomWriter {
    /// A filter for keys of `bloom` type.
    pub fn new(options: &WriterOptions, bloom: BloomType) -> BloomWriter {
        // HBase computes with floats here; the number of hashes can depend on it.
        let mut error_rate = options.bloom_error_rate as f32;
        if bloom == BloomType::RowCol {
            error_rate = (1.0 - f64::from(1.0 - error_rate).sqrt()) as f32;
        }
        BloomWriter {
            shape: Shape::of(options.bloom_block_size_bytes, f64::from(error_rate)),
            hash: options.bloom_hash,
            chunk: None,
            pending: Vec::new(),
            pending_ends: Vec::with_capacity(MOST_PENDING),
            ready: Vec::new(),
            index: Index::default(),
            flat_keys: bloom == BloomType::RowCol,
            total_bytes: 0,
            key_count: 0,
            max_keys: 0,
            last_key: Vec::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.key_count == 0
    }

    /// Adds `key` unless it is the one added last.
    pub fn add(&mut self, key: &[u8]) {
        if self.key_count > 0 && self.last_key == key {
            return;
        }
        self.retire_chunk(false);
        let shape = self.shape;
        let chunk = self.chunk.get_or_insert_with(|| Chunk {
            bits: vec![0; shape.bytes],
            keys: 0,
            max_keys: shape.max_keys,
            first_key: key.to_vec(),
        });
        chunk.keys += 1;
        self.key_count += 1;
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.pending.extend_from_slice(key);
        self.pending_ends.push(self.pending.len());
        if self.pending_ends.len() == MOST_PENDING {
            self.set_pending();
        }
    }

    /// Sets the bits of the keys that wait.
    fn set_pending(&mut self) {
        let Some(chunk) = &mut self.chunk else { return };
        let mut hashes = [Hashes::default(); MOST_PENDING];
        let mut start = 0;
        for (hashes, end) in hashes.iter_mut().zip(&self.pending_ends) {
            *hashes = Hashes::of(self.hash, &self.pending[start..*end]);
            start = *end;
        }
        let places = Places::new(chunk.bits.len());
        for hashes in &hashes[..self.pending_ends.len()] {
            for bit in places.of(*hashes, self.shape.hash_count) {
                chunk.bits[bit >> 3] |= 1 << (bit & 7);
            }
        }
        self.pending.clear();
        self.pending_ends.clear();
    }

    fn retire_chunk(&mut self, closing: bool) {
        if !self.chunk.as_ref().is_some_and(|chunk| closing || chunk.keys >= chunk.max_keys) {
            return;
        }
        self.set_pending();
        if let Some(mut chunk) = self.chunk.take() {
            chunk.fold();
            self.total_bytes += chunk.bits.len() as u64;
            self.max_keys += chunk.max_keys;
            self.ready.push(chunk);
        }
    }

    /// Writes the chunks that are full; at the end of the file, the last one too.
    pub fn write_chunks_if_due(
        &mut self,
        closing: bool,
        out: &mut BlockWriter,
        mut written: impl FnMut(BlockAt, &[u8]),
    ) -> Result<()> {
        self.retire_chunk(closing);
        for chunk in self.ready.drain(..) {
            let at = out.write(BlockType::BloomChunk, &chunk.bits)?;
            self.index.add(&chunk.first_key, at);
            written(at, &chunk.bits);
        }
        Ok(())
    }

    /// The payload of the filter's meta block.
    pub fn meta(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&3u32.to_be_bytes());
        out.extend_from_slice(&self.total_bytes.to_be_bytes());
        out.extend_from_slice(&self.shape.hash_count.to_be_bytes());
        out.extend_from_slice(&self.hash.code().to_be_bytes());
        out.extend_from_slice(&self.key_count.to_be_bytes());
        out.extend_from_slice(&self.max_keys.to_be_bytes());
        out.extend_from_slice(&(self.index.len() as u32).to_be_bytes());
        let comparator = if self.flat_keys { ROW_COL_COMPARATOR } else { "" };
        vint::write(&mut out, comparator.len() as i64);
        out.extend_from_slice(comparator.as_bytes());
        self.index.write_root(&mut out);
        out
    }
}
