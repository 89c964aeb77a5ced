//! Help for the group `ddl`.

use super::Texts;

pub(super) const TEXTS: Texts = &[
    ("alter", "\
Changes a table: adds or changes families, deletes them, sets or unsets attributes. Regions are opened again; waits for that.

  hbase> alter 't', NAME => 'f', VERSIONS => 5
  hbase> alter 't', 'f1', {NAME => 'f2', IN_MEMORY => true}, {NAME => 'f3', TTL => '1 DAY'}
  hbase> alter 't', 'delete' => 'f1'
  hbase> alter 't', NAME => 'f1', METHOD => 'delete'
  hbase> alter 't', MAX_FILESIZE => '134217728'
  hbase> alter 't', CONFIGURATION => {'hbase.hregion.scan.loadColumnFamiliesOnDemand' => 'true'}
  hbase> alter 't', METHOD => 'table_att_unset', NAME => 'MAX_FILESIZE'
  hbase> alter 't', METHOD => 'table_conf_unset', NAME => 'hbase.hregion.majorcompaction'
  hbase> alter 't', 'coprocessor' => '|org.example.Observer|1001|arg1=1'
"),
    ("alter_async", "\
As alter, without telling how many regions have taken the change over; alter_status tells.

  hbase> alter_async 't', NAME => 'f', VERSIONS => 5
"),
    ("alter_status", "\
How many regions have taken over the last change of a table, until all have.

  hbase> alter_status 't'
"),
    ("clone_table_schema", "\
Makes an empty table like another one; with its splits unless the third argument is false.

  hbase> clone_table_schema 't', 'copy'
  hbase> clone_table_schema 't', 'copy', false
"),
    ("create", "\
Makes a table. Families are names or hashes with a NAME; other hashes are for the table.

  hbase> create 't', 'f1', 'f2'
  hbase> create 'ns:t', {NAME => 'f', VERSIONS => 3, TTL => 2592000, COMPRESSION => 'ZSTD', BLOOMFILTER => 'ROWCOL'}
  hbase> create 't', 'f', SPLITS => ['10', '20', '30']
  hbase> create 't', 'f', SPLITS_FILE => 'splits.txt'
  hbase> create 't', 'f', {NUMREGIONS => 15, SPLITALGO => 'HexStringSplit'}
  hbase> create 't', {NAME => 'f', CONFIGURATION => {'hbase.hstore.blockingStoreFiles' => '10'}}
  hbase> t = create 't', 'f'
"),
    ("describe", "\
A table's attributes and families.

  hbase> describe 't'
  hbase> desc 'ns:t'
"),
    ("disable", "\
Closes a table: nothing can be read or written until it is enabled.

  hbase> disable 't'
"),
    ("disable_all", "\
Disables the tables whose names match a regular expression, after asking.

  hbase> disable_all 't.*'
"),
    ("drop", "\
Deletes a disabled table with all that is in it.

  hbase> drop 't'
"),
    ("drop_all", "\
Drops the tables whose names match a regular expression, after asking. They must be disabled.

  hbase> drop_all 't.*'
"),
    ("enable", "\
Opens a disabled table.

  hbase> enable 't'
"),
    ("enable_all", "\
Enables the tables whose names match a regular expression, after asking.

  hbase> enable_all 't.*'
"),
    ("exists", "\
Whether there is a table of this name.

  hbase> exists 't'
"),
    ("get_table", "\
A table as a value: see table_help.

  hbase> t = get_table 't'
  hbase> t.scan
"),
    ("is_disabled", "\
Whether a table is disabled.

  hbase> is_disabled 't'
"),
    ("is_enabled", "\
Whether a table is enabled.

  hbase> is_enabled 't'
"),
    ("list", "\
Tables but HBase's own, or those whose names match a regular expression.

  hbase> list
  hbase> list 'abc.*'
  hbase> list 'ns:abc.*'
"),
    ("list_disabled_tables", "\
Tables that are disabled.

  hbase> list_disabled_tables
"),
    ("list_enabled_tables", "\
Tables that are enabled.

  hbase> list_enabled_tables
"),
    ("list_regions", "\
A table's regions: of a server (its name, or the beginning), below a locality, with some columns alone.

  hbase> list_regions 't'
  hbase> list_regions 't', 'host1.example.com'
  hbase> list_regions 't', {SERVER_NAME => 'host1', LOCALITY_THRESHOLD => 0.8}
  hbase> list_regions 't', '', ['SERVER_NAME', 'START_KEY']
"),
    ("locate_region", "\
The region that a row belongs to, and its server.

  hbase> locate_region 't', 'row'
"),
    ("show_filters", "\
The filters that the language of FILTER knows.

  hbase> show_filters
  hbase> scan 't', {FILTER => \"PrefixFilter('r') AND ValueFilter(=, 'binary:v')\"}
"),
];
