//! The types of `hbase.thrift`, line by line.

use crate::wire::{enums, field_type, field_value, field_write, read_fields, structs};
use bytes::Bytes;
use std::collections::BTreeMap;

enums! {
    TBloomFilterType {
        NONE = 0,
        ROW = 1,
        ROWCOL = 2,
        ROWPREFIX_FIXED_LENGTH = 3,
    }
    TCompareOp {
        LESS = 0,
        LESS_OR_EQUAL = 1,
        EQUAL = 2,
        NOT_EQUAL = 3,
        GREATER_OR_EQUAL = 4,
        GREATER = 5,
        NO_OP = 6,
    }
    TCompressionAlgorithm {
        LZO = 0,
        GZ = 1,
        NONE = 2,
        SNAPPY = 3,
        LZ4 = 4,
        BZIP2 = 5,
        ZSTD = 6,
    }
    TConsistency {
        STRONG = 1,
        TIMELINE = 2,
    }
    TDataBlockEncoding {
        NONE = 0,
        PREFIX = 2,
        DIFF = 3,
        FAST_DIFF = 4,
        ROW_INDEX_V1 = 7,
    }
    TDeleteType {
        DELETE_COLUMN = 0,
        DELETE_COLUMNS = 1,
        DELETE_FAMILY = 2,
        DELETE_FAMILY_VERSION = 3,
    }
    TDurability {
        USE_DEFAULT = 0,
        SKIP_WAL = 1,
        ASYNC_WAL = 2,
        SYNC_WAL = 3,
        FSYNC_WAL = 4,
    }
    TFilterByOperator {
        AND = 0,
        OR = 1,
    }
    TKeepDeletedCells {
        FALSE = 0,
        TRUE = 1,
        TTL = 2,
    }
    TLogType {
        SLOW_LOG = 1,
        LARGE_LOG = 2,
    }
    TReadType {
        DEFAULT = 1,
        STREAM = 2,
        PREAD = 3,
    }
    TThriftServerType {
        ONE = 1,
        TWO = 2,
    }
}

structs! {
    TIOError {
        1 opt message: String,
        2 opt can_retry: bool,
    }
    TIllegalArgument {
        1 opt message: String,
    }
    TAppend {
        1 req row: Bytes,
        2 req columns: Vec<TColumnValue>,
        3 opt attributes: BTreeMap<Bytes, Bytes>,
        4 opt durability: TDurability,
        5 opt cell_visibility: TCellVisibility,
        6 opt return_results: bool,
    }
    TAuthorization {
        1 opt labels: Vec<String>,
    }
    TCellVisibility {
        1 opt expression: String,
    }
    TColumn {
        1 req family: Bytes,
        2 opt qualifier: Bytes,
        3 opt timestamp: i64,
    }
    TColumnFamilyDescriptor {
        1 req name: Bytes,
        2 opt attributes: BTreeMap<Bytes, Bytes>,
        3 opt configuration: BTreeMap<String, String>,
        4 opt block_size: i32,
        5 opt bloomn_filter_type: TBloomFilterType,
        6 opt compression_type: TCompressionAlgorithm,
        7 opt dfs_replication: i16,
        8 opt data_block_encoding: TDataBlockEncoding,
        9 opt keep_deleted_cells: TKeepDeletedCells,
        10 opt max_versions: i32,
        11 opt min_versions: i32,
        12 opt scope: i32,
        13 opt time_to_live: i32,
        14 opt block_cache_enabled: bool,
        15 opt cache_blooms_on_write: bool,
        16 opt cache_data_on_write: bool,
        17 opt cache_indexes_on_write: bool,
        18 opt compress_tags: bool,
        19 opt evict_blocks_on_close: bool,
        20 opt in_memory: bool,
    }
    TColumnIncrement {
        1 req family: Bytes,
        2 req qualifier: Bytes,
        3 opt amount: i64 = 1,
    }
    TColumnValue {
        1 req family: Bytes,
        2 req qualifier: Bytes,
        3 req value: Bytes,
        4 opt timestamp: i64,
        5 opt tags: Bytes,
        6 opt cell_type: i8,
    }
    TDelete {
        1 req row: Bytes,
        2 opt columns: Vec<TColumn>,
        3 opt timestamp: i64,
        4 opt delete_type: TDeleteType = TDeleteType::DELETE_COLUMNS,
        6 opt attributes: BTreeMap<Bytes, Bytes>,
        7 opt durability: TDurability,
        8 opt cell_visibility: TCellVisibility,
    }
    TGet {
        1 req row: Bytes,
        2 opt columns: Vec<TColumn>,
        3 opt timestamp: i64,
        4 opt time_range: TTimeRange,
        5 opt max_versions: i32,
        6 opt filter_string: Bytes,
        7 opt attributes: BTreeMap<Bytes, Bytes>,
        8 opt authorizations: TAuthorization,
        9 opt consistency: TConsistency,
        10 opt target_replica_id: i32,
        11 opt cache_blocks: bool,
        12 opt store_limit: i32,
        13 opt store_offset: i32,
        14 opt existence_only: bool,
        15 opt filter_bytes: Bytes,
    }
    THRegionInfo {
        1 req region_id: i64,
        2 req table_name: Bytes,
        3 opt start_key: Bytes,
        4 opt end_key: Bytes,
        5 opt offline: bool,
        6 opt split: bool,
        7 opt replica_id: i32,
    }
    THRegionLocation {
        1 req server_name: TServerName,
        2 req region_info: THRegionInfo,
    }
    TIncrement {
        1 req row: Bytes,
        2 req columns: Vec<TColumnIncrement>,
        4 opt attributes: BTreeMap<Bytes, Bytes>,
        5 opt durability: TDurability,
        6 opt cell_visibility: TCellVisibility,
        7 opt return_results: bool,
    }
    TLogQueryFilter {
        1 opt region_name: String,
        2 opt client_address: String,
        3 opt table_name: String,
        4 opt user_name: String,
        5 opt limit: i32 = 10,
        6 opt log_type: TLogType = TLogType::SLOW_LOG,
        7 opt filter_by_operator: TFilterByOperator = TFilterByOperator::OR,
    }
    TNamespaceDescriptor {
        1 req name: String,
        2 opt configuration: BTreeMap<String, String>,
    }
    TOnlineLogRecord {
        1 req start_time: i64,
        2 req processing_time: i32,
        3 req queue_time: i32,
        4 req response_size: i64,
        5 req client_address: String,
        6 req server_class: String,
        7 req method_name: String,
        8 req call_details: String,
        9 req param: String,
        10 req user_name: String,
        11 req multi_gets_count: i32,
        12 req multi_mutations_count: i32,
        13 req multi_service_calls: i32,
        14 opt region_name: String,
        15 opt block_bytes_scanned: i64,
        16 opt fs_read_time: i64,
    }
    TPut {
        1 req row: Bytes,
        2 req column_values: Vec<TColumnValue>,
        3 opt timestamp: i64,
        5 opt attributes: BTreeMap<Bytes, Bytes>,
        6 opt durability: TDurability,
        7 opt cell_visibility: TCellVisibility,
    }
    TResult {
        1 opt row: Bytes,
        2 req column_values: Vec<TColumnValue>,
        3 opt stale: bool,
        4 opt partial: bool,
    }
    TRowMutations {
        1 req row: Bytes,
        2 req mutations: Vec<TMutation>,
    }
    TScan {
        1 opt start_row: Bytes,
        2 opt stop_row: Bytes,
        3 opt columns: Vec<TColumn>,
        4 opt caching: i32,
        5 opt max_versions: i32 = 1,
        6 opt time_range: TTimeRange,
        7 opt filter_string: Bytes,
        8 opt batch_size: i32,
        9 opt attributes: BTreeMap<Bytes, Bytes>,
        10 opt authorizations: TAuthorization,
        11 opt reversed: bool,
        12 opt cache_blocks: bool,
        13 opt col_fam_time_range_map: BTreeMap<Bytes, TTimeRange>,
        14 opt read_type: TReadType,
        15 opt limit: i32,
        16 opt consistency: TConsistency,
        17 opt target_replica_id: i32,
        18 opt filter_bytes: Bytes,
    }
    TServerName {
        1 req host_name: String,
        2 opt port: i32,
        3 opt start_code: i64,
    }
    TTableDescriptor {
        1 req table_name: TTableName,
        2 opt columns: Vec<TColumnFamilyDescriptor>,
        3 opt attributes: BTreeMap<Bytes, Bytes>,
        4 opt durability: TDurability,
    }
    TTableName {
        1 opt ns: Bytes,
        2 req qualifier: Bytes,
    }
    TTimeRange {
        1 req min_stamp: i64,
        2 req max_stamp: i64,
    }
    TMutation {
        1 opt put: TPut,
        2 opt delete_single: TDelete,
    }
}
