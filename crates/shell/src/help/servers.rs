//! Help for servers in and out of service, procedures, quotas, security, store file trackers and replication.

use super::Texts;

pub(super) const TEXTS: Texts = &[
    (
        "change_sft",
        "\
Has a table, or one family, track its store files in another way.

  hbase> change_sft 't', 'FILE'
  hbase> change_sft 't', 'f', 'FILE'
",
    ),
    (
        "change_sft_all",
        "\
Has all tables whose names match, or a family of each, track their store files in another way; asks first.

  hbase> change_sft_all 't.*', 'FILE'
  hbase> change_sft_all 'ns:.*', 'f', 'FILE'
",
    ),
    (
        "clear_compaction_queues",
        "\
Empties a server's queues of compactions: 'long', 'short', or both.

  hbase> clear_compaction_queues 'host187.example.com,60020,1289493121758'
  hbase> clear_compaction_queues 'host187.example.com,60020,1289493121758', ['long', 'short']
",
    ),
    (
        "clear_deadservers",
        "\
Has the master forget dead servers: all, or those that are named.

  hbase> clear_deadservers
  hbase> clear_deadservers 'host187.example.com,60020,1289493121758'
",
    ),
    (
        "compaction_switch",
        "\
Lets servers compact or not: all, or those that are named; how each stood before.

  hbase> compaction_switch true
  hbase> compaction_switch false, 'host2,60020,1289493121758'
",
    ),
    (
        "decommission_regionservers",
        "\
Lets servers get no more regions; with true their regions are moved away.

  hbase> decommission_regionservers 'server'
  hbase> decommission_regionservers ['server1', 'server2'], true
",
    ),
    (
        "disable_exceed_throttle_quota",
        "\
Forbids requests to take what others leave of a server's quota.

  hbase> disable_exceed_throttle_quota
",
    ),
    (
        "disable_peer",
        "\
Stops replication to a peer; what is written meanwhile is kept for it.

  hbase> disable_peer '1'
",
    ),
    (
        "disable_rpc_throttle",
        "\
Has servers not heed quotas of requests; how it stood before.

  hbase> disable_rpc_throttle
",
    ),
    (
        "disable_table_replication",
        "\
Replicates a table's families no more.

  hbase> disable_table_replication 't'
",
    ),
    (
        "enable_exceed_throttle_quota",
        "\
Allows requests to take what others leave of a server's quota.

  hbase> enable_exceed_throttle_quota
",
    ),
    (
        "enable_peer",
        "\
Starts replication to a peer again.

  hbase> enable_peer '1'
",
    ),
    (
        "enable_rpc_throttle",
        "\
Has servers heed quotas of requests; how it stood before.

  hbase> enable_rpc_throttle
",
    ),
    (
        "enable_table_replication",
        "\
Replicates all families of a table.

  hbase> enable_table_replication 't'
",
    ),
    (
        "flush_master_store",
        "\
Writes what the master's own store has in memory into a file.

  hbase> flush_master_store
",
    ),
    (
        "list_locks",
        "\
Locks that procedures of the master hold.

  hbase> list_locks
",
    ),
    (
        "list_peers",
        "\
Peers that are replicated to.

  hbase> list_peers
",
    ),
    (
        "list_procedures",
        "\
Procedures of the master.

  hbase> list_procedures
",
    ),
    (
        "list_replicated_tables",
        "\
Tables and families that are replicated.

  hbase> list_replicated_tables
  hbase> list_replicated_tables 'abc.*'
",
    ),
    (
        "list_security_capabilities",
        "\
What of HBase's security the cluster has.

  hbase> list_security_capabilities
",
    ),
    (
        "recommission_regionserver",
        "\
Lets a server have regions again, at once those that are named.

  hbase> recommission_regionserver 'server'
  hbase> recommission_regionserver 'server', ['ENCODED_REGIONNAME']
",
    ),
    (
        "remove_peer",
        "\
Deletes a peer.

  hbase> remove_peer '1'
",
    ),
    (
        "rit",
        "\
Regions in transition.

  hbase> rit
",
    ),
    (
        "truncate_region",
        "\
Empties one region.

  hbase> truncate_region 'ENCODED_REGIONNAME'
",
    ),
];
