//! Help for the group `dml`.

use super::Texts;

pub(super) const TEXTS: Texts = &[
    ("append", "\
Appends to a cell's value, and shows what it is then.

  hbase> append 't', 'r', 'f:q', 'more'
  hbase> append 't', 'r', 'f:q', 'more', ATTRIBUTES => {'key' => 'value'}
"),
    ("count", "\
Counts rows by reading them; tells every thousandth, or as INTERVAL says.

  hbase> count 't'
  hbase> count 't', INTERVAL => 100000
  hbase> count 't', CACHE => 1000, COLUMNS => ['f:q'], STARTROW => 'a', STOPROW => 'b'
"),
    ("delete", "\
Deletes the newest version of a cell, or the version of a time.

  hbase> delete 't', 'r', 'f:q'
  hbase> delete 't', 'r', 'f:q', 1700000000000
"),
    ("deleteall", "\
Deletes a row, a family or column of it, up to a time; or in all rows with a prefix.

  hbase> deleteall 't', 'r'
  hbase> deleteall 't', 'r', 'f:q'
  hbase> deleteall 't', 'r', 'f:q', 1700000000000
  hbase> deleteall 't', {ROWPREFIXFILTER => 'prefix', CACHE => 100}
"),
    ("get", "\
Reads a row, or some columns of it. A column may name how its values are shown: toStringBinary, toString, toLong, toInt, toShort,
toDouble, toFloat, toBoolean, toHex.

  hbase> get 't', 'r'
  hbase> get 't', 'r', 'f:a', 'f:b'
  hbase> get 't', 'r', {COLUMN => ['f:a', 'f:n:toLong'], VERSIONS => 3, TIMERANGE => [0, 1700000000000]}
  hbase> get 't', 'r', {FILTER => \"ValueFilter(=, 'binary:v')\"}
  hbase> get 't', 'r', {FORMATTER => 'toString'}
"),
    ("get_counter", "\
The number in a cell that incr counts in.

  hbase> get_counter 't', 'r', 'f:n'
"),
    ("get_splits", "\
The keys at which a table is split.

  hbase> get_splits 't'
"),
    ("incr", "\
Adds to the number in a cell: 1, or another one.

  hbase> incr 't', 'r', 'f:n'
  hbase> incr 't', 'r', 'f:n', 10
  hbase> incr 't', 'r', 'f:n', 10, {ATTRIBUTES => {'key' => 'value'}}
"),
    ("put", "\
Writes a cell, under the server's time or another one.

  hbase> put 't', 'r', 'f:q', 'v'
  hbase> put 't', 'r', 'f:q', 'v', 1700000000000
  hbase> put 't', 'r', 'f:q', 'v', {ATTRIBUTES => {'key' => 'value'}, TTL => 60000}
"),
    ("scan", "\
Reads rows in their order.

  hbase> scan 't'
  hbase> scan 'hbase:meta', {COLUMNS => 'info:regioninfo'}
  hbase> scan 't', {COLUMNS => ['f:a', 'f:n:toLong'], LIMIT => 10, STARTROW => 'a', STOPROW => 'b'}
  hbase> scan 't', {ROWPREFIXFILTER => 'user1', REVERSED => true}
  hbase> scan 't', {FILTER => \"PrefixFilter('r') AND QualifierFilter(>=, 'binary:x')\"}
  hbase> scan 't', {RAW => true, VERSIONS => 10}
  hbase> scan 't', {ALL_METRICS => true}
"),
    ("truncate", "\
Empties a table. It has one region then.

  hbase> truncate 't'
"),
    ("truncate_preserve", "\
Empties a table and keeps its splits.

  hbase> truncate_preserve 't'
"),
];
