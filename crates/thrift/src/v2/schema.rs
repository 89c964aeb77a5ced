//! Descriptors. Follows: `ThriftUtilities`' `columnFamilyDescriptorFromThrift`, `tableDescriptorFromThrift` and their reverses.

use super::types::*;
use crate::fault::Outcome;
use bytes::Bytes;
use model::{
    BloomType, Compression, DataBlockEncoding, Durability, FamilyDescriptor, KeepDeletedCells, TableDescriptor,
    TableName,
};

/// A family: what the client says over HBase's defaults.
pub(super) fn family(from: &TColumnFamilyDescriptor) -> Outcome<FamilyDescriptor> {
    model::name::check_family(&from.name)?;
    let mut family = FamilyDescriptor::new(from.name.clone());
    for (key, value) in from.attributes.iter().flatten() {
        family.attributes.insert(key.clone(), value.clone());
    }
    family.configuration.extend(from.configuration.clone().unwrap_or_default());
    let encoding = from.data_block_encoding.map(|encoding| format!("{encoding:?}"));
    let texts = [
        ("BLOCKSIZE", from.block_size.map(|v| v.to_string())),
        ("BLOOMFILTER", from.bloomn_filter_type.map(|v| format!("{v:?}"))),
        ("COMPRESSION", from.compression_type.map(|v| format!("{v:?}"))),
        ("DFS_REPLICATION", from.dfs_replication.map(|v| v.to_string())),
        ("DATA_BLOCK_ENCODING", encoding),
        ("KEEP_DELETED_CELLS", from.keep_deleted_cells.map(|v| format!("{v:?}"))),
        ("VERSIONS", from.max_versions.map(|v| v.to_string())),
        ("MIN_VERSIONS", from.min_versions.map(|v| v.to_string())),
        ("REPLICATION_SCOPE", from.scope.map(|v| v.to_string())),
        ("TTL", from.time_to_live.map(|v| v.to_string())),
        ("BLOCKCACHE", from.block_cache_enabled.map(|v| v.to_string())),
        ("CACHE_BLOOMS_ON_WRITE", from.cache_blooms_on_write.map(|v| v.to_string())),
        ("CACHE_DATA_ON_WRITE", from.cache_data_on_write.map(|v| v.to_string())),
        ("CACHE_INDEX_ON_WRITE", from.cache_indexes_on_write.map(|v| v.to_string())),
        ("COMPRESS_TAGS", from.compress_tags.map(|v| v.to_string())),
        ("EVICT_BLOCKS_ON_CLOSE", from.evict_blocks_on_close.map(|v| v.to_string())),
        ("IN_MEMORY", from.in_memory.map(|v| v.to_string())),
    ];
    for (key, text) in texts {
        if let Some(text) = text {
            family = family.with(key, text);
        }
    }
    Ok(family)
}

/// A table.
pub(super) fn table(from: &TTableDescriptor, name: TableName) -> Outcome<TableDescriptor> {
    let families = from.columns.iter().flatten().map(family).collect::<Outcome<Vec<_>>>()?;
    let mut table = TableDescriptor::new(name, families);
    for (key, value) in from.attributes.iter().flatten() {
        table.attributes.insert(key.clone(), value.clone());
    }
    if let Some(durability) = from.durability {
        table.attributes.insert(Bytes::from_static(b"DURABILITY"), Bytes::from(format!("{durability:?}")));
    }
    Ok(table)
}

fn flag(family: &FamilyDescriptor, key: &str) -> bool {
    family.attributes.get(key.as_bytes()).is_some_and(|value| value.eq_ignore_ascii_case(b"true"))
}

fn wire_family(from: &FamilyDescriptor) -> TColumnFamilyDescriptor {
    let replication = from.attributes.get(&b"DFS_REPLICATION"[..]);
    let replication = replication.and_then(|value| std::str::from_utf8(value).ok()?.parse().ok());
    let ttl_seconds = from.ttl_ms().and_then(|ms| i32::try_from(ms / 1000).ok()).unwrap_or(i32::MAX);
    TColumnFamilyDescriptor {
        name: from.name.clone(),
        attributes: Some(from.attributes.iter().map(|(key, value)| (key.clone(), value.clone())).collect()),
        configuration: (!from.configuration.is_empty()).then(|| from.configuration.clone()),
        block_size: Some(from.block_size_bytes() as i32),
        bloomn_filter_type: Some(match from.bloom_type() {
            BloomType::None => TBloomFilterType::NONE,
            BloomType::Row => TBloomFilterType::ROW,
            BloomType::RowCol => TBloomFilterType::ROWCOL,
            BloomType::RowPrefixFixedLength => TBloomFilterType::ROWPREFIX_FIXED_LENGTH,
        }),
        compression_type: Some(compression(from.compression())),
        dfs_replication: Some(replication.unwrap_or_default()),
        data_block_encoding: Some(match from.data_block_encoding() {
            DataBlockEncoding::Prefix => TDataBlockEncoding::PREFIX,
            DataBlockEncoding::Diff => TDataBlockEncoding::DIFF,
            DataBlockEncoding::FastDiff => TDataBlockEncoding::FAST_DIFF,
            DataBlockEncoding::RowIndexV1 => TDataBlockEncoding::ROW_INDEX_V1,
            DataBlockEncoding::None => TDataBlockEncoding::NONE,
        }),
        keep_deleted_cells: Some(match from.keep_deleted_cells() {
            KeepDeletedCells::False => TKeepDeletedCells::FALSE,
            KeepDeletedCells::True => TKeepDeletedCells::TRUE,
            KeepDeletedCells::Ttl => TKeepDeletedCells::TTL,
        }),
        max_versions: Some(from.max_versions() as i32),
        min_versions: Some(from.min_versions() as i32),
        scope: Some(from.replication_scope() as i32),
        time_to_live: Some(ttl_seconds),
        block_cache_enabled: Some(from.block_cache_enabled()),
        cache_blooms_on_write: Some(flag(from, "CACHE_BLOOMS_ON_WRITE")),
        cache_data_on_write: Some(from.cache_data_on_write()),
        cache_indexes_on_write: Some(flag(from, "CACHE_INDEX_ON_WRITE")),
        compress_tags: Some(from.compress_tags()),
        evict_blocks_on_close: Some(flag(from, "EVICT_BLOCKS_ON_CLOSE")),
        in_memory: Some(from.in_memory()),
    }
}

fn compression(from: Compression) -> TCompressionAlgorithm {
    match from.as_str() {
        "LZO" => TCompressionAlgorithm::LZO,
        "GZ" => TCompressionAlgorithm::GZ,
        "SNAPPY" => TCompressionAlgorithm::SNAPPY,
        "LZ4" => TCompressionAlgorithm::LZ4,
        "BZIP2" => TCompressionAlgorithm::BZIP2,
        "ZSTD" => TCompressionAlgorithm::ZSTD,
        _ => TCompressionAlgorithm::NONE,
    }
}

/// A table as clients see it.
pub(super) fn wire_table(from: &TableDescriptor, table_name: TTableName) -> TTableDescriptor {
    TTableDescriptor {
        table_name,
        columns: Some(from.families.values().map(wire_family).collect()),
        attributes: Some(from.attributes.iter().map(|(key, value)| (key.clone(), value.clone())).collect()),
        durability: Some(match from.declared_durability() {
            Durability::UseDefault => TDurability::USE_DEFAULT,
            Durability::SkipWal => TDurability::SKIP_WAL,
            Durability::AsyncWal => TDurability::ASYNC_WAL,
            Durability::SyncWal => TDurability::SYNC_WAL,
            Durability::FsyncWal => TDurability::FSYNC_WAL,
        }),
    }
}
