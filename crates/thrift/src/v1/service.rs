//! The service `Hbase` of `Hbase.thrift`: numbers, names and types of arguments, line by line.

use super::Handler;
use super::types::*;
use crate::wire::{field_value, read_fields, service};
use bytes::Bytes;
use std::collections::BTreeMap;

type Attributes = BTreeMap<Bytes, Bytes>;

service! { Handler {
    append = "append"(1 def append: TAppend);
    atomic_increment = "atomicIncrement"(
        1 def table_name: Bytes, 2 def row: Bytes, 3 def column: Bytes, 4 def value: i64
    );
    check_and_put = "checkAndPut"(
        1 def table_name: Bytes, 2 def row: Bytes, 3 def column: Bytes, 5 opt value: Bytes,
        6 def mput: Mutation, 7 opt attributes: Attributes
    );
    compact = "compact"(1 def table_name_or_region_name: Bytes);
    create_table = "createTable"(1 def table_name: Bytes, 2 def column_families: Vec<ColumnDescriptor>);
    delete_all = "deleteAll"(
        1 def table_name: Bytes, 2 def row: Bytes, 3 def column: Bytes, 4 opt attributes: Attributes
    );
    delete_all_row = "deleteAllRow"(1 def table_name: Bytes, 2 def row: Bytes, 3 opt attributes: Attributes);
    delete_all_row_ts = "deleteAllRowTs"(
        1 def table_name: Bytes, 2 def row: Bytes, 3 def timestamp: i64, 4 opt attributes: Attributes
    );
    delete_all_ts = "deleteAllTs"(
        1 def table_name: Bytes, 2 def row: Bytes, 3 def column: Bytes, 4 def timestamp: i64,
        5 opt attributes: Attributes
    );
    delete_table = "deleteTable"(1 def table_name: Bytes);
    disable_table = "disableTable"(1 def table_name: Bytes);
    enable_table = "enableTable"(1 def table_name: Bytes);
    get = "get"(1 def table_name: Bytes, 2 def row: Bytes, 3 def column: Bytes, 4 opt attributes: Attributes);
    get_cluster_id = "getClusterId"();
    get_column_descriptors = "getColumnDescriptors"(1 def table_name: Bytes);
    get_region_info = "getRegionInfo"(1 def row: Bytes);
    get_row = "getRow"(1 def table_name: Bytes, 2 def row: Bytes, 3 opt attributes: Attributes);
    get_row_ts = "getRowTs"(
        1 def table_name: Bytes, 2 def row: Bytes, 3 def timestamp: i64, 4 opt attributes: Attributes
    );
    get_row_with_columns = "getRowWithColumns"(
        1 def table_name: Bytes, 2 def row: Bytes, 3 opt columns: Vec<Bytes>, 4 opt attributes: Attributes
    );
    get_row_with_columns_ts = "getRowWithColumnsTs"(
        1 def table_name: Bytes, 2 def row: Bytes, 3 opt columns: Vec<Bytes>, 4 def timestamp: i64,
        5 opt attributes: Attributes
    );
    get_rows = "getRows"(1 def table_name: Bytes, 2 def rows: Vec<Bytes>, 3 opt attributes: Attributes);
    get_rows_ts = "getRowsTs"(
        1 def table_name: Bytes, 2 def rows: Vec<Bytes>, 3 def timestamp: i64, 4 opt attributes: Attributes
    );
    get_rows_with_columns = "getRowsWithColumns"(
        1 def table_name: Bytes, 2 def rows: Vec<Bytes>, 3 opt columns: Vec<Bytes>, 4 opt attributes: Attributes
    );
    get_rows_with_columns_ts = "getRowsWithColumnsTs"(
        1 def table_name: Bytes, 2 def rows: Vec<Bytes>, 3 opt columns: Vec<Bytes>, 4 def timestamp: i64,
        5 opt attributes: Attributes
    );
    get_table_names = "getTableNames"();
    get_table_names_with_is_table_enabled = "getTableNamesWithIsTableEnabled"();
    get_table_regions = "getTableRegions"(1 def table_name: Bytes);
    get_thrift_server_type = "getThriftServerType"();
    get_ver = "getVer"(
        1 def table_name: Bytes, 2 def row: Bytes, 3 def column: Bytes, 4 def num_versions: i32,
        5 opt attributes: Attributes
    );
    get_ver_ts = "getVerTs"(
        1 def table_name: Bytes, 2 def row: Bytes, 3 def column: Bytes, 4 def timestamp: i64,
        5 def num_versions: i32, 6 opt attributes: Attributes
    );
    increment = "increment"(1 def increment: TIncrement);
    increment_rows = "incrementRows"(1 def increments: Vec<TIncrement>);
    is_table_enabled = "isTableEnabled"(1 def table_name: Bytes);
    major_compact = "majorCompact"(1 def table_name_or_region_name: Bytes);
    mutate_row = "mutateRow"(
        1 def table_name: Bytes, 2 def row: Bytes, 3 def mutations: Vec<Mutation>, 4 opt attributes: Attributes
    );
    mutate_row_ts = "mutateRowTs"(
        1 def table_name: Bytes, 2 def row: Bytes, 3 def mutations: Vec<Mutation>, 4 def timestamp: i64,
        5 opt attributes: Attributes
    );
    mutate_rows = "mutateRows"(
        1 def table_name: Bytes, 2 def row_batches: Vec<BatchMutation>, 3 opt attributes: Attributes
    );
    mutate_rows_ts = "mutateRowsTs"(
        1 def table_name: Bytes, 2 def row_batches: Vec<BatchMutation>, 3 def timestamp: i64,
        4 opt attributes: Attributes
    );
    scanner_close = "scannerClose"(1 def id: i32);
    scanner_get = "scannerGet"(1 def id: i32);
    scanner_get_list = "scannerGetList"(1 def id: i32, 2 def nb_rows: i32);
    scanner_open = "scannerOpen"(
        1 def table_name: Bytes, 2 def start_row: Bytes, 3 def columns: Vec<Bytes>, 4 opt attributes: Attributes
    );
    scanner_open_ts = "scannerOpenTs"(
        1 def table_name: Bytes, 2 def start_row: Bytes, 3 def columns: Vec<Bytes>, 4 def timestamp: i64,
        5 opt attributes: Attributes
    );
    scanner_open_with_prefix = "scannerOpenWithPrefix"(
        1 def table_name: Bytes, 2 def start_and_prefix: Bytes, 3 def columns: Vec<Bytes>,
        4 opt attributes: Attributes
    );
    scanner_open_with_scan = "scannerOpenWithScan"(
        1 def table_name: Bytes, 2 def scan: TScan, 3 opt attributes: Attributes
    );
    scanner_open_with_stop = "scannerOpenWithStop"(
        1 def table_name: Bytes, 2 def start_row: Bytes, 3 def stop_row: Bytes, 4 def columns: Vec<Bytes>,
        5 opt attributes: Attributes
    );
    scanner_open_with_stop_ts = "scannerOpenWithStopTs"(
        1 def table_name: Bytes, 2 def start_row: Bytes, 3 def stop_row: Bytes, 4 def columns: Vec<Bytes>,
        5 def timestamp: i64, 6 opt attributes: Attributes
    );
} }
