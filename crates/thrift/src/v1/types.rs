//! The types of `Hbase.thrift`, line by line.

use crate::wire::{enums, field_type, field_value, field_write, read_fields, structs};
use bytes::Bytes;
use std::collections::BTreeMap;

enums! {
    TThriftServerType {
        ONE = 1,
        TWO = 2,
    }
}

structs! {
    AlreadyExists {
        1 def message: String,
    }
    IOError {
        1 def message: String,
        2 def can_retry: bool,
    }
    IllegalArgument {
        1 def message: String,
    }
    BatchMutation {
        1 def row: Bytes,
        2 def mutations: Vec<Mutation>,
    }
    ColumnDescriptor {
        1 def name: Bytes,
        2 def max_versions: i32 = 3,
        3 def compression: String = "NONE".to_owned(),
        4 def in_memory: bool,
        5 def bloom_filter_type: String = "NONE".to_owned(),
        6 def bloom_filter_vector_size: i32,
        7 def bloom_filter_nb_hashes: i32,
        8 def block_cache_enabled: bool,
        9 def time_to_live: i32 = i32::MAX,
    }
    Mutation {
        1 def is_delete: bool,
        2 def column: Bytes,
        3 opt value: Bytes,
        4 def write_to_wal: bool = true,
    }
    TAppend {
        1 def table: Bytes,
        2 def row: Bytes,
        3 def columns: Vec<Bytes>,
        4 def values: Vec<Bytes>,
    }
    TCell {
        1 def value: Bytes,
        2 def timestamp: i64,
    }
    TColumn {
        1 def column_name: Bytes,
        2 def cell: TCell,
    }
    TIncrement {
        1 def table: Bytes,
        2 def row: Bytes,
        3 def column: Bytes,
        4 def ammount: i64,
    }
    TRegionInfo {
        1 def start_key: Bytes,
        2 def end_key: Bytes,
        3 def id: i64,
        4 def name: Bytes,
        5 def version: i8,
        6 def server_name: Bytes,
        7 def port: i32,
    }
    TRowResult {
        1 def row: Bytes,
        2 opt columns: BTreeMap<Bytes, TCell>,
        3 opt sorted_columns: Vec<TColumn>,
    }
    TScan {
        1 opt start_row: Bytes,
        2 opt stop_row: Bytes,
        3 opt timestamp: i64,
        4 opt columns: Vec<Bytes>,
        5 opt caching: i32,
        6 opt filter_string: Bytes,
        7 opt batch_size: i32,
        8 opt sort_columns: bool,
        9 opt reversed: bool,
        10 opt cache_blocks: bool,
    }
}
