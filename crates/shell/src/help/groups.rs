//! Help for groups of region servers.

use super::Texts;

pub(super) const TEXTS: Texts = &[
    (
        "add_rsgroup",
        "\
Makes a group of region servers, which has no servers and no tables yet. Groups are on when hbase.coprocessor.master.classes of the master
names org.apache.hadoop.hbase.rsgroup.RSGroupAdminEndpoint.

  hbase> add_rsgroup 'my_group'
",
    ),
    (
        "alter_rsgroup_config",
        "\
Sets or takes away what is configured for a group.

  hbase> alter_rsgroup_config 'my_group', {METHOD => 'set', 'PROPERTY_NAME' => 'PROPERTY_VALUE'}
  hbase> alter_rsgroup_config 'my_group', {METHOD => 'unset', NAME => 'PROPERTY_NAME'}
",
    ),
    (
        "balance_rsgroup",
        "\
Evens the regions of a group out over its servers; regions of its tables that are elsewhere are brought back.

  hbase> balance_rsgroup 'my_group'
",
    ),
    (
        "get_namespace_rsgroup",
        "\
The group in which tables of a namespace are made; nothing where that is the group default.

  hbase> get_namespace_rsgroup 'ns1'
",
    ),
    (
        "get_rsgroup",
        "\
The servers and tables of a group.

  hbase> get_rsgroup 'default'
",
    ),
    (
        "get_server_rsgroup",
        "\
The group of a region server.

  hbase> get_server_rsgroup 'server1:16020'
",
    ),
    (
        "get_table_rsgroup",
        "\
The group of a table.

  hbase> get_table_rsgroup 'myTable'
",
    ),
    (
        "list_rsgroups",
        "\
Every group with its servers and tables, or those whose names match.

  hbase> list_rsgroups
  hbase> list_rsgroups 'abc.*'
",
    ),
    (
        "move_namespaces_rsgroup",
        "\
Moves the tables of namespaces to a group, and has new tables of these namespaces made there.

  hbase> move_namespaces_rsgroup 'dest', ['ns1', 'ns2']
",
    ),
    (
        "move_servers_namespaces_rsgroup",
        "\
Moves region servers, and the tables of namespaces, from the one group that has them to another.

  hbase> move_servers_namespaces_rsgroup 'dest', ['server1:16020', 'server2:16020'], ['ns1', 'ns2']
",
    ),
    (
        "move_servers_rsgroup",
        "\
Moves region servers from one group to another. Regions of other groups that they have go back to the group that the servers leave.

  hbase> move_servers_rsgroup 'dest', ['server1:16020', 'server2:16020']
",
    ),
    (
        "move_servers_tables_rsgroup",
        "\
Moves region servers and tables from the one group that has them to another.

  hbase> move_servers_tables_rsgroup 'dest', ['server1:16020', 'server2:16020'], ['table1', 'table2']
",
    ),
    (
        "move_tables_rsgroup",
        "\
Moves tables to a group, and their regions to its servers.

  hbase> move_tables_rsgroup 'dest', ['table1', 'table2']
",
    ),
    (
        "remove_rsgroup",
        "\
Removes a group that has no servers and no tables, and that no namespace names.

  hbase> remove_rsgroup 'my_group'
",
    ),
    (
        "remove_servers_rsgroup",
        "\
Takes region servers out of their groups that come back no more: not those that are online (unless they are decommissioned), and not those
on the list of dead servers.

  hbase> remove_servers_rsgroup ['server1:16020', 'server2:16020']
",
    ),
    (
        "rename_rsgroup",
        "\
Gives a group another name.

  hbase> rename_rsgroup 'old_name', 'new_name'
",
    ),
    (
        "show_rsgroup_config",
        "\
What is configured for a group.

  hbase> show_rsgroup_config 'my_group'
",
    ),
    (
        "update_rsgroup_config",
        "\
Has the servers of a group read their configuration files again; what may change while they run does.

  hbase> update_rsgroup_config 'my_group'
",
    ),
];
