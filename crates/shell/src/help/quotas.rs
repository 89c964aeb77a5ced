//! Help for quotas of requests and space.

use super::Texts;

pub(super) const TEXTS: Texts = &[
    (
        "list_quota_snapshots",
        "\
How tables stand to their quotas of space: as the table hbase:quota has it, or as one region server enforces it.

  hbase> list_quota_snapshots
  hbase> list_quota_snapshots({TABLE => 'table1'})
  hbase> list_quota_snapshots({NAMESPACE => 'org1'})
  hbase> list_quota_snapshots({REGIONSERVER => 'server1.domain,16020,1483482894742'})
",
    ),
    (
        "list_quota_table_sizes",
        "\
Bytes of each table as the master knows them for quotas of space.

  hbase> list_quota_table_sizes
",
    ),
    (
        "list_quotas",
        "\
Quotas: all, or those of users, tables and namespaces whose names match.

  hbase> list_quotas
  hbase> list_quotas USER => 'bob.*'
  hbase> list_quotas USER => 'bob.*', TABLE => 't1'
  hbase> list_quotas USER => 'bob.*', NAMESPACE => 'ns.*'
  hbase> list_quotas TABLE => 'myTable'
  hbase> list_quotas NAMESPACE => 'ns.*', LIMIT => 10
",
    ),
    (
        "list_snapshot_sizes",
        "\
Bytes that count to tables because of their snapshots.

  hbase> list_snapshot_sizes
",
    ),
    (
        "set_quota",
        "\
Sets or removes a quota: of requests for a user, a table, a namespace, a user in one of these, or all region servers together; of space
for a table or a namespace. Requests are limited by number (10req/sec), by size (10M/sec) or by units of capacity (10CU/sec), in a second,
minute, hour or day, all of them or with THROTTLE_TYPE those that READ or WRITE, at each server (SCOPE => MACHINE) or in the whole
cluster (SCOPE => CLUSTER). LIMIT => NONE removes.

  hbase> set_quota TYPE => THROTTLE, USER => 'u1', LIMIT => '10req/sec'
  hbase> set_quota TYPE => THROTTLE, THROTTLE_TYPE => READ, USER => 'u1', LIMIT => '10M/sec'
  hbase> set_quota TYPE => THROTTLE, USER => 'u1', TABLE => 't2', LIMIT => '5K/min'
  hbase> set_quota TYPE => THROTTLE, NAMESPACE => 'ns1', LIMIT => '10CU/sec', SCOPE => CLUSTER
  hbase> set_quota TYPE => THROTTLE, REGIONSERVER => 'all', LIMIT => '30000req/sec'
  hbase> set_quota TYPE => THROTTLE, THROTTLE_TYPE => READ_NUMBER, USER => 'u1', LIMIT => NONE
  hbase> set_quota TYPE => THROTTLE, TABLE => 't1', LIMIT => NONE
  hbase> set_quota USER => 'u1', GLOBAL_BYPASS => true
  hbase> set_quota TYPE => SPACE, TABLE => 't1', LIMIT => '1G', POLICY => NO_INSERTS
  hbase> set_quota TYPE => SPACE, NAMESPACE => 'ns1', LIMIT => '50T', POLICY => NO_WRITES
  hbase> set_quota TYPE => SPACE, TABLE => 't1', LIMIT => NONE
",
    ),
];
