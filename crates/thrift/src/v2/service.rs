//! The service `THBaseService` of `hbase.thrift`: numbers, names and types of arguments, line by line.

use super::Handler;
use super::types::*;
use crate::wire::{Set, field_value, read_fields, service};
use bytes::Bytes;

service! { Handler {
    add_column_family = "addColumnFamily"(1 req table_name: TTableName, 2 req column: TColumnFamilyDescriptor);
    append = "append"(1 req table: Bytes, 2 req tappend: TAppend);
    check_and_delete = "checkAndDelete"(
        1 req table: Bytes, 2 req row: Bytes, 3 req family: Bytes, 4 req qualifier: Bytes, 5 opt value: Bytes,
        6 req tdelete: TDelete
    );
    check_and_mutate = "checkAndMutate"(
        1 req table: Bytes, 2 req row: Bytes, 3 req family: Bytes, 4 req qualifier: Bytes,
        5 req compare_op: TCompareOp, 6 opt value: Bytes, 7 req row_mutations: TRowMutations
    );
    check_and_put = "checkAndPut"(
        1 req table: Bytes, 2 req row: Bytes, 3 req family: Bytes, 4 req qualifier: Bytes, 5 opt value: Bytes,
        6 req tput: TPut
    );
    clear_slow_log_responses = "clearSlowLogResponses"(1 opt server_names: Set<TServerName>);
    close_scanner = "closeScanner"(1 req scanner_id: i32);
    create_namespace = "createNamespace"(1 req namespace_desc: TNamespaceDescriptor);
    create_table = "createTable"(1 req desc: TTableDescriptor, 2 opt split_keys: Vec<Bytes>);
    delete_column_family = "deleteColumnFamily"(1 req table_name: TTableName, 2 req column: Bytes);
    delete_multiple = "deleteMultiple"(1 req table: Bytes, 2 req tdeletes: Vec<TDelete>);
    delete_namespace = "deleteNamespace"(1 req name: String);
    delete_single = "deleteSingle"(1 req table: Bytes, 2 req tdelete: TDelete);
    delete_table = "deleteTable"(1 req table_name: TTableName);
    disable_table = "disableTable"(1 req table_name: TTableName);
    enable_table = "enableTable"(1 req table_name: TTableName);
    exists = "exists"(1 req table: Bytes, 2 req tget: TGet);
    exists_all = "existsAll"(1 req table: Bytes, 2 req tgets: Vec<TGet>);
    get = "get"(1 req table: Bytes, 2 req tget: TGet);
    get_all_region_locations = "getAllRegionLocations"(1 req table: Bytes);
    get_cluster_id = "getClusterId"();
    get_multiple = "getMultiple"(1 req table: Bytes, 2 req tgets: Vec<TGet>);
    get_namespace_descriptor = "getNamespaceDescriptor"(1 req name: String);
    get_region_location = "getRegionLocation"(1 req table: Bytes, 2 req row: Bytes, 3 opt reload: bool);
    get_scanner_results = "getScannerResults"(1 req table: Bytes, 2 req tscan: TScan, 3 def num_rows: i32 = 1);
    get_scanner_rows = "getScannerRows"(1 req scanner_id: i32, 2 def num_rows: i32 = 1);
    get_slow_log_responses = "getSlowLogResponses"(
        1 opt server_names: Set<TServerName>, 2 opt log_query_filter: TLogQueryFilter
    );
    get_table_descriptor = "getTableDescriptor"(1 req table: TTableName);
    get_table_descriptors = "getTableDescriptors"(1 req tables: Vec<TTableName>);
    get_table_descriptors_by_namespace = "getTableDescriptorsByNamespace"(1 req name: String);
    get_table_descriptors_by_pattern = "getTableDescriptorsByPattern"(
        1 opt regex: String, 2 req include_sys_tables: bool
    );
    get_table_names_by_namespace = "getTableNamesByNamespace"(1 req name: String);
    get_table_names_by_pattern = "getTableNamesByPattern"(1 opt regex: String, 2 req include_sys_tables: bool);
    get_thrift_server_type = "getThriftServerType"();
    increment = "increment"(1 req table: Bytes, 2 req tincrement: TIncrement);
    is_table_available = "isTableAvailable"(1 req table_name: TTableName);
    is_table_available_with_split = "isTableAvailableWithSplit"(
        1 req table_name: TTableName, 2 opt split_keys: Vec<Bytes>
    );
    is_table_disabled = "isTableDisabled"(1 req table_name: TTableName);
    is_table_enabled = "isTableEnabled"(1 req table_name: TTableName);
    list_namespace_descriptors = "listNamespaceDescriptors"();
    list_namespaces = "listNamespaces"();
    modify_column_family = "modifyColumnFamily"(
        1 req table_name: TTableName, 2 req column: TColumnFamilyDescriptor
    );
    modify_namespace = "modifyNamespace"(1 req namespace_desc: TNamespaceDescriptor);
    modify_table = "modifyTable"(1 req desc: TTableDescriptor);
    mutate_row = "mutateRow"(1 req table: Bytes, 2 req trow_mutations: TRowMutations);
    open_scanner = "openScanner"(1 req table: Bytes, 2 req tscan: TScan);
    put = "put"(1 req table: Bytes, 2 req tput: TPut);
    put_multiple = "putMultiple"(1 req table: Bytes, 2 req tputs: Vec<TPut>);
    table_exists = "tableExists"(1 opt table_name: TTableName);
    truncate_table = "truncateTable"(1 req table_name: TTableName, 2 req preserve_splits: bool);
} }
