//! Help for the groups `namespace` and `snapshots`.

use super::Texts;

pub(super) const TEXTS: Texts = &[
    (
        "alter_namespace",
        "\
Sets or unsets properties of a namespace.

  hbase> alter_namespace 'ns', {METHOD => 'set', 'PROPERTY' => 'value'}
  hbase> alter_namespace 'ns', {METHOD => 'unset', NAME => 'PROPERTY'}
",
    ),
    (
        "create_namespace",
        "\
Makes a namespace, with properties if some are given.

  hbase> create_namespace 'ns'
  hbase> create_namespace 'ns', {'PROPERTY' => 'value'}
",
    ),
    (
        "describe_namespace",
        "\
A namespace's properties.

  hbase> describe_namespace 'ns'
",
    ),
    (
        "drop_namespace",
        "\
Deletes a namespace that has no tables.

  hbase> drop_namespace 'ns'
",
    ),
    (
        "list_namespace",
        "\
Namespaces, or those whose names match a regular expression.

  hbase> list_namespace
  hbase> list_namespace 'abc.*'
",
    ),
    (
        "list_namespace_tables",
        "\
Tables of a namespace.

  hbase> list_namespace_tables 'ns'
",
    ),
    (
        "clone_snapshot",
        "\
Makes a table out of a snapshot; no data is copied.

  hbase> clone_snapshot 's', 'ns:t'
  hbase> clone_snapshot 's', 't', {RESTORE_ACL => true}
  hbase> clone_snapshot 's', 't', {CLONE_SFT => 'FILE'}
",
    ),
    (
        "delete_all_snapshot",
        "\
Deletes the snapshots whose names match a regular expression, after asking.

  hbase> delete_all_snapshot 's.*'
",
    ),
    (
        "delete_snapshot",
        "\
Deletes a snapshot.

  hbase> delete_snapshot 's'
",
    ),
    (
        "delete_table_snapshots",
        "\
Deletes the snapshots of tables, by regular expressions for tables and for snapshots, after asking.

  hbase> delete_table_snapshots 't'
  hbase> delete_table_snapshots 't.*', 's.*'
",
    ),
    (
        "list_snapshots",
        "\
Snapshots with their tables and times, or those whose names match a regular expression.

  hbase> list_snapshots
  hbase> list_snapshots 'abc.*'
",
    ),
    (
        "list_table_snapshots",
        "\
Snapshots of tables, by regular expressions for tables and for snapshots.

  hbase> list_table_snapshots 't'
  hbase> list_table_snapshots 't.*', 's.*'
",
    ),
    (
        "restore_snapshot",
        "\
Gives a disabled table the content that it had when the snapshot was taken.

  hbase> restore_snapshot 's'
  hbase> restore_snapshot 's', {RESTORE_ACL => true}
",
    ),
    (
        "snapshot",
        "\
Takes a snapshot of a table; what is in memory is flushed first unless SKIP_FLUSH says otherwise. TTL is in seconds.

  hbase> snapshot 't', 's'
  hbase> snapshot 't', 's', {SKIP_FLUSH => true}
  hbase> snapshot 't', 's', {TTL => 86400, MAX_FILESIZE => 21474836480}
",
    ),
];
