//! Help for replication peers.

use super::Texts;

pub(super) const TEXTS: Texts = &[
    (
        "add_peer",
        "\
Adds a peer that edits are replicated to: by its CLUSTER_KEY (quorum:port:/base-node), or by an ENDPOINT_CLASSNAME with CONFIG and DATA
of its own. With NAMESPACES or TABLE_CFS only what these name is replicated. It is enabled unless STATE says DISABLED.

  hbase> add_peer '1', CLUSTER_KEY => 'server1.cie.com:2181:/hbase'
  hbase> add_peer '1', CLUSTER_KEY => 'server1.cie.com:2181:/hbase', STATE => 'DISABLED'
  hbase> add_peer '2', CLUSTER_KEY => 'zk1,zk2,zk3:2182:/hbase-prod', TABLE_CFS => { 'table1' => [], 'ns2:table2' => ['cf1'] }
  hbase> add_peer '3', CLUSTER_KEY => 'zk1,zk2,zk3:2182:/hbase-prod', NAMESPACES => ['ns1', 'ns2']
  hbase> add_peer '4', CLUSTER_KEY => 'zk1,zk2,zk3:2182:/hbase-prod', NAMESPACES => ['ns1'], SERIAL => true
  hbase> add_peer '5', ENDPOINT_CLASSNAME => 'org.example.Endpoint', DATA => { 'key1' => 1 }, CONFIG => { 'config1' => 'value1' }
",
    ),
    (
        "append_peer_exclude_namespaces",
        "\
Adds namespaces to those that a peer does not get.

  hbase> append_peer_exclude_namespaces '2', ['ns1', 'ns2']
",
    ),
    (
        "append_peer_exclude_tableCFs",
        "\
Adds tables, or families of them, to those that a peer does not get.

  hbase> append_peer_exclude_tableCFs '2', { 'table1' => [], 'ns2:table2' => ['cfA', 'cfB'] }
",
    ),
    (
        "append_peer_namespaces",
        "\
Adds namespaces to those that a peer gets.

  hbase> append_peer_namespaces '2', ['ns1', 'ns2']
",
    ),
    (
        "append_peer_tableCFs",
        "\
Adds tables, or families of them, to those that a peer gets.

  hbase> append_peer_tableCFs '2', { 'ns1:table4' => ['cfA', 'cfB'] }
",
    ),
    (
        "get_peer_config",
        "\
A peer's cluster key, endpoint and configuration.

  hbase> get_peer_config '1'
",
    ),
    (
        "list_peer_configs",
        "\
The same of every peer.

  hbase> list_peer_configs
",
    ),
    (
        "peer_modification_enabled",
        "\
Whether peers may be added, changed and removed.

  hbase> peer_modification_enabled
",
    ),
    (
        "peer_modification_switch",
        "\
Lets peers be added, changed and removed, or not; how it stood before. With a second true it waits until what is under way has ended.

  hbase> peer_modification_switch true
  hbase> peer_modification_switch false, true
",
    ),
    (
        "remove_peer_exclude_namespaces",
        "\
Takes namespaces from those that a peer does not get.

  hbase> remove_peer_exclude_namespaces '2', ['ns1', 'ns2']
",
    ),
    (
        "remove_peer_exclude_tableCFs",
        "\
Takes tables, or families of them, from those that a peer does not get.

  hbase> remove_peer_exclude_tableCFs '2', { 'table1' => [], 'ns2:table2' => ['cfA', 'cfB'] }
",
    ),
    (
        "remove_peer_namespaces",
        "\
Takes namespaces from those that a peer gets.

  hbase> remove_peer_namespaces '2', ['ns1', 'ns2']
",
    ),
    (
        "remove_peer_tableCFs",
        "\
Takes tables, or families of them, from those that a peer gets.

  hbase> remove_peer_tableCFs '2', { 'table1' => [], 'ns1:table2' => ['cfA'] }
",
    ),
    (
        "set_peer_bandwidth",
        "\
Bytes in a second that each server may send to a peer; 0, or nothing, for any number.

  hbase> set_peer_bandwidth '1', 1048576
  hbase> set_peer_bandwidth '1'
",
    ),
    (
        "set_peer_exclude_namespaces",
        "\
The namespaces that a peer, which gets everything else, does not get; an empty list for none.

  hbase> set_peer_exclude_namespaces '2', ['ns1', 'ns2']
  hbase> set_peer_exclude_namespaces '2', []
",
    ),
    (
        "set_peer_exclude_tableCFs",
        "\
The tables, or families of them, that a peer, which gets everything else, does not get; an empty hash for none.

  hbase> set_peer_exclude_tableCFs '2', { 'ns1:table1' => [], 'ns2:table2' => ['cf1', 'cf2'] }
  hbase> set_peer_exclude_tableCFs '2', {}
",
    ),
    (
        "set_peer_namespaces",
        "\
The namespaces that a peer gets.

  hbase> set_peer_namespaces '2', ['ns1', 'ns2']
  hbase> set_peer_namespaces '2', []
",
    ),
    (
        "set_peer_replicate_all",
        "\
Whether a peer gets every replicated table, or only those that its lists name.

  hbase> set_peer_replicate_all '1', true
  hbase> set_peer_replicate_all '1', false
",
    ),
    (
        "set_peer_serial",
        "\
Whether a peer gets the edits of a region in their order, also across moves of the region.

  hbase> set_peer_serial '1', true
",
    ),
    (
        "set_peer_tableCFs",
        "\
The tables, or families of them, that a peer gets.

  hbase> set_peer_tableCFs '2', { 'ns1:table1' => [], 'ns2:table2' => ['cf1', 'cf2'] }
  hbase> set_peer_tableCFs '2', {}
",
    ),
    (
        "show_peer_tableCFs",
        "\
The tables and families that a peer gets.

  hbase> show_peer_tableCFs '1'
",
    ),
    (
        "update_peer_config",
        "\
Sets entries of a peer's CONFIG and DATA; others stay.

  hbase> update_peer_config '1', DATA => { 'key1' => 1 }
  hbase> update_peer_config '1', CONFIG => { 'config1' => 'value1', 'config2' => 'value2' }
",
    ),
];
