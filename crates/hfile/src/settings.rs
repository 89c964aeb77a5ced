//! Settings of HFiles, under HBase's keys.

use crate::{ChecksumType, HashType, WriterOptions};
use base::{Config, Setting, SettingRow, TextSetting};

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

/// Whether files are read past the operating system's cache.
pub const DIRECT_READS: Setting<bool> = Setting {
    key: "basalt.hfile.direct.reads",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Store files on local disks are read past the operating system's cache (O_DIRECT): what the block cache holds is not held twice, and \
          what it does not hold comes from the disk. For servers to whose block cache nearly all memory is given. File systems that cannot do it \
          are read in the usual way. Basalt's own; read at the start.",
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

/// Kind of a block's checksum.
pub const CHECKSUM_ALGORITHM: TextSetting = TextSetting {
    key: "hbase.hstore.checksum.algorithm",
    default: "CRC32C",
    legal: Some("NULL, CRC32 or CRC32C"),
    is_legal: |text| ChecksumType::parse(text).is_some(),
    doc: "Checksum of the blocks of store files: NULL (none), CRC32 or CRC32C.",
};

/// Hash of Bloom filters.
pub const HASH_TYPE: TextSetting = TextSetting {
    key: "hbase.hash.type",
    default: "murmur",
    legal: Some("jenkins, murmur or murmur3"),
    is_legal: |text| HashType::parse(text).is_some(),
    doc: "Hash of the Bloom filters of new store files: jenkins, murmur or murmur3.",
};

/// Version of the files' format.
pub const FORMAT_VERSION: Setting<u32> = Setting {
    key: "hfile.format.version",
    default: 3,
    min: 3,
    max: 3,
    unit: "",
    doc: "Version of the format of new store files. As in HBase 2 there is one to choose from; files of version 2 are read.",
};

/// How hard Zstandard tries.
pub const ZSTD_LEVEL: Setting<i32> = Setting {
    key: "hbase.io.compress.zstd.level",
    default: 3,
    min: -131_072,
    max: 22,
    unit: "",
    doc: "Level of Zstandard in new store files. Higher ones take less room and more time to write, and from 20 on much memory; below 0 the other way \
          round. io.compression.codec.zstd.level counts where this is not given.",
};

/// The same under Hadoop's key.
pub const ZSTD_LEVEL_OF_HADOOP: Setting<i32> = Setting {
    key: "io.compression.codec.zstd.level",
    default: 3,
    min: -131_072,
    max: 22,
    unit: "",
    doc: "Counts where hbase.io.compress.zstd.level is not given.",
};

/// Where a dictionary is.
pub const ZSTD_DICTIONARY: TextSetting = TextSetting::any(
    crate::codec::DICTIONARY_KEY,
    "",
    "File with a Zstandard dictionary, as a rule said by a table or family; its blocks are packed with it, as HBase's bundled codec does \
     (hbase.io.compress.zstd.codec = org.apache.hadoop.hbase.io.compress.zstd.ZstdCodec), and cannot be read without: it must stay as \
     long as a file that was written with it. A path on the file system of hbase.rootdir; in a cluster below hbase.rootdir. resource: is \
     not there, for there is no class path.",
);

/// Bytes that a dictionary may have.
pub const DICTIONARY_MAX_SIZE: Setting<u64> = Setting {
    key: "hbase.io.compress.dictionary.max.size",
    default: 10 << 20,
    min: 1,
    max: 1 << 30,
    unit: "bytes",
    doc: "A file of more bytes is not taken for a dictionary. Each that a store uses is in memory, once for all stores and once for each thread \
          that unpacks blocks.",
};

/// `hbase.fs.reader.warn.time.ms`.
pub const SLOW_READ_MS: Setting<i64> = Setting {
    key: "hbase.fs.reader.warn.time.ms",
    default: -1,
    min: -1,
    max: i64::MAX,
    unit: "ms",
    doc: "Reads of store files that take longer are counted as slow (fsSlowReadsCount). -1: none is.",
};

/// Every row.
pub const ALL: &[&dyn SettingRow] = &[
    &INDEX_BLOCK_MAX_SIZE,
    &INDEX_BLOCK_MIN_ENTRIES,
    &BLOOM_ERROR_RATE,
    &BLOOM_BLOCK_SIZE,
    &BYTES_PER_CHECKSUM,
    &DIRECT_READS,
    &CHECKSUM_ALGORITHM,
    &HASH_TYPE,
    &FORMAT_VERSION,
    &ZSTD_LEVEL,
    &ZSTD_LEVEL_OF_HADOOP,
    &ZSTD_DICTIONARY,
    &DICTIONARY_MAX_SIZE,
    &SLOW_READ_MS,
];

impl WriterOptions {
    /// The defaults, as far as `config` does not say otherwise. What a family decides (codec, encoding, block size, Bloom
    /// type) is the caller's to set.
    pub fn from_config(config: &Config) -> WriterOptions {
        let checksum = config.text(CHECKSUM_ALGORITHM.key).and_then(ChecksumType::parse);
        let bloom_hash = config.text(HASH_TYPE.key).and_then(HashType::parse);
        WriterOptions {
            index_block_size_bytes: config.get(&INDEX_BLOCK_MAX_SIZE),
            index_min_entries: config.get(&INDEX_BLOCK_MIN_ENTRIES),
            bloom_error_rate: config.get(&BLOOM_ERROR_RATE),
            bloom_block_size_bytes: config.get(&BLOOM_BLOCK_SIZE),
            bytes_per_checksum: config.get(&BYTES_PER_CHECKSUM),
            checksum: checksum.unwrap_or(ChecksumType::Crc32c),
            bloom_hash: bloom_hash.unwrap_or(HashType::Murmur),
            format_version: config.get(&FORMAT_VERSION),
            zstd_level: match config.is_set(ZSTD_LEVEL.key) {
                true => config.get(&ZSTD_LEVEL),
                false => config.get(&ZSTD_LEVEL_OF_HADOOP),
            },
            ..WriterOptions::default()
        }
    }
}
