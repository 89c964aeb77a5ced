//! Settings of HFiles, under HBase's keys.

use crate::{ChecksumType, HashType, WriterOptions};
use base::{Config, Setting, SettingRow};

/// Size at which an index block is closed.
pub const INDEX_BLOCK_MAX_SIZE: Setting<u32> = Setting {
    key: "hfile.index.block.max.size",
    default: 128 * 1024,
    min: 64,
    max: 64 << 20,
    unit: "bytes",
    doc: "Leaf and intermediate blocks of a file's index are closed at this size. Larger blocks make a flatter index and \
          cost more to load.",
};

/// Entries below which an index level is not split.
pub const INDEX_BLOCK_MIN_ENTRIES: Setting<u32> = Setting {
    key: "hfile.index.block.min.entries",
    default: 16,
    min: 2,
    max: 1 << 20,
    unit: "count",
    doc: "A root index of no more entries than this stays one block, however long its keys are.",
};

/// Share of wrong answers of a Bloom filter.
pub const BLOOM_ERROR_RATE: Setting<f64> = Setting {
    key: "io.storefile.bloom.error.rate",
    default: 0.01,
    min: 0.000_001,
    max: 0.5,
    unit: "fraction",
    doc: "Share of absent rows that a Bloom filter fails to refuse. Smaller rates take more memory for each row.",
};

/// Size of a Bloom chunk.
pub const BLOOM_BLOCK_SIZE: Setting<u32> = Setting {
    key: "io.storefile.bloom.block.size",
    default: 128 * 1024,
    min: 128,
    max: 64 << 20,
    unit: "bytes",
    doc: "Size of the chunks that a Bloom filter is read and cached in.",
};

/// Bytes under one checksum.
pub const BYTES_PER_CHECKSUM: Setting<u32> = Setting {
    key: "hbase.hstore.bytes.per.checksum",
    default: 16 * 1024,
    min: 64,
    max: 64 << 20,
    unit: "bytes",
    doc: "Bytes of a block that share one checksum of 4 bytes.",
};

/// Every row that is a number. `hbase.hstore.checksum.algorithm` (NULL, CRC32, CRC32C) and `hbase.hash.type` (jenkins,
/// murmur, murmur3) are names; [`WriterOptions::from_config`] reads them and takes the default for one it does not know.
pub const ALL: &[&dyn SettingRow] =
    &[&INDEX_BLOCK_MAX_SIZE, &INDEX_BLOCK_MIN_ENTRIES, &BLOOM_ERROR_RATE, &BLOOM_BLOCK_SIZE, &BYTES_PER_CHECKSUM];

impl WriterOptions {
    /// The defaults, as far as `config` does not say otherwise. What a family decides (codec, encoding, block size, Bloom
    /// type) is the caller's to set.
    pub fn from_config(config: &Config) -> WriterOptions {
        let checksum = config.text("hbase.hstore.checksum.algorithm").and_then(ChecksumType::parse);
        let bloom_hash = config.text("hbase.hash.type").and_then(HashType::parse);
        WriterOptions {
            index_block_size_bytes: config.get(&INDEX_BLOCK_MAX_SIZE),
            index_min_entries: config.get(&INDEX_BLOCK_MIN_ENTRIES),
            bloom_error_rate: config.get(&BLOOM_ERROR_RATE),
            bloom_block_size_bytes: config.get(&BLOOM_BLOCK_SIZE),
            bytes_per_checksum: config.get(&BYTES_PER_CHECKSUM),
            checksum: checksum.unwrap_or(ChecksumType::Crc32c),
            bloom_hash: bloom_hash.unwrap_or(HashType::Murmur),
            ..WriterOptions::default()
        }
    }
}
