//! Help for what servers keep in memory about calls and the balancer, for nodes in ZooKeeper and for single regions.

use super::Texts;

pub(super) const TEXTS: Texts = &[
    (
        "clear_slowlog_responses",
        "\
Empties the lists of slow and large calls: of all servers, or of those that are named.

  hbase> clear_slowlog_responses
  hbase> clear_slowlog_responses ['SERVER_NAME1', 'SERVER_NAME2']
",
    ),
    (
        "get_balancer_decisions",
        "\
What the balancer decided last; at most 250 decisions, or as many as LIMIT says.

  hbase> get_balancer_decisions
  hbase> get_balancer_decisions LIMIT => 100
",
    ),
    (
        "get_balancer_rejections",
        "\
Why the balancer did nothing when it was asked; at most 250 times, or as many as LIMIT says.

  hbase> get_balancer_rejections
  hbase> get_balancer_rejections LIMIT => 100
",
    ),
    (
        "get_largelog_responses",
        "\
Calls with large answers that servers have kept: of all servers ('*') or of those that are named, at most 10 of each, or as many as LIMIT
says. REGION_NAME, TABLE_NAME, CLIENT_IP and USER choose among them: calls that one of these is true of, or all with FILTER_BY_OP => 'AND'.

  hbase> get_largelog_responses '*'
  hbase> get_largelog_responses '*', {'LIMIT' => 50}
  hbase> get_largelog_responses ['SERVER_NAME1'], {'TABLE_NAME' => 't1', 'CLIENT_IP' => '192.162.1.40', 'FILTER_BY_OP' => 'AND'}
",
    ),
    (
        "get_slowlog_responses",
        "\
Slow calls that servers have kept: of all servers ('*') or of those that are named, at most 10 of each, or as many as LIMIT says.
REGION_NAME, TABLE_NAME, CLIENT_IP and USER choose among them: calls that one of these is true of, or all with FILTER_BY_OP => 'AND'.

  hbase> get_slowlog_responses '*'
  hbase> get_slowlog_responses '*', {'LIMIT' => 50}
  hbase> get_slowlog_responses ['SERVER_NAME1'], {'REGION_NAME' => 'hbase:meta,,1'}
  hbase> get_slowlog_responses '*', {'USER' => 'bob', 'CLIENT_IP' => '192.162.1.40:60447', 'FILTER_BY_OP' => 'AND'}
",
    ),
    (
        "regioninfo",
        "\
What a region is, by its name, whole or encoded.

  hbase> regioninfo 'REGIONNAME'
  hbase> regioninfo 'ENCODED_REGIONNAME'
",
    ),
    (
        "zk_dump",
        "\
The cluster as ZooKeeper has it: master, servers, replication, and what each member of the quorum says about itself.

  hbase> zk_dump
",
    ),
];
