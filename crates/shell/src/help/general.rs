//! Help for the group `general`.

use super::Texts;

pub(super) const TEXTS: Texts = &[
    ("processlist", "\
What region servers are at: all, or one of the kinds general, handler, rpc, operation; then a host to look at alone.

  hbase> processlist
  hbase> processlist 'rpc'
  hbase> processlist 'all', 'host187.example.com'
"),
    ("status", "\
The cluster's state: in one line, or 'simple' by server, 'detailed' by region, 'tasks', 'replication' (and 'source' or 'sink').

  hbase> status
  hbase> status 'simple'
  hbase> status 'detailed'
  hbase> status 'replication', 'source'
"),
    ("table_help", "\
A table can be held in a variable; commands that take a table first are its methods then.

  hbase> t = create 't', 'f'
  hbase> t = get_table 't'
  hbase> t.put 'r', 'f:q', 'v'
  hbase> t.get 'r'
  hbase> t.scan
  hbase> t.count
  hbase> t.describe
  hbase> t.flush
  hbase> t.disable
  hbase> t.drop
"),
    ("version", "\
The version of HBase that this client speaks, and its own.

  hbase> version
"),
    ("whoami", "\
The user that calls are made as, and the user's groups.

  hbase> whoami
"),
];
