//! Help for the groups `tools` and `configuration`.

use super::Texts;

pub(super) const TEXTS: Texts = &[
    (
        "assign",
        "\
Has the master open a region, by its name, whole or encoded.

  hbase> assign 'ENCODED_REGIONNAME'
",
    ),
    (
        "balance_switch",
        "\
Lets the balancer run or not; how it stood before.

  hbase> balance_switch true
  hbase> balance_switch false
",
    ),
    (
        "balancer",
        "\
Runs the balancer: also while regions are in transition with 'ignore_rit', without moving any with 'dry_run'.

  hbase> balancer
  hbase> balancer 'ignore_rit'
  hbase> balancer 'dry_run'
",
    ),
    (
        "balancer_enabled",
        "\
Whether the balancer may run.

  hbase> balancer_enabled
",
    ),
    (
        "catalogjanitor_enabled",
        "\
Whether the catalog janitor may run.

  hbase> catalogjanitor_enabled
",
    ),
    (
        "catalogjanitor_run",
        "\
Runs the catalog janitor: it clears up after splits and merges.

  hbase> catalogjanitor_run
",
    ),
    (
        "catalogjanitor_switch",
        "\
Lets the catalog janitor run or not; how it stood before.

  hbase> catalogjanitor_switch true
",
    ),
    (
        "cleaner_chore_enabled",
        "\
Whether the cleaners may run.

  hbase> cleaner_chore_enabled
",
    ),
    (
        "cleaner_chore_run",
        "\
Runs the cleaners of archived files and old logs.

  hbase> cleaner_chore_run
",
    ),
    (
        "cleaner_chore_switch",
        "\
Lets the cleaners run or not; how it stood before.

  hbase> cleaner_chore_switch true
",
    ),
    (
        "clear_block_cache",
        "\
Has every server forget the cached blocks of a table.

  hbase> clear_block_cache 't'
",
    ),
    (
        "compact",
        "\
Asks for a compaction of a table, a region or a server's regions, of one family if one is named. Does not wait.

  hbase> compact 't'
  hbase> compact 't', 'f'
  hbase> compact 'ENCODED_REGIONNAME'
",
    ),
    (
        "compact_rs",
        "\
Asks for a compaction of all regions of a server; a major one with true.

  hbase> compact_rs 'host187.example.com,60020'
  hbase> compact_rs 'host187.example.com,60020', true
",
    ),
    (
        "compaction_state",
        "\
Which compactions a table is in: NONE, MINOR, MAJOR, MAJOR_AND_MINOR.

  hbase> compaction_state 't'
",
    ),
    (
        "flush",
        "\
Writes what is in memory into files: of a table, a region or a server, of one family if one is named.

  hbase> flush 't'
  hbase> flush 't', 'f'
  hbase> flush 'ENCODED_REGIONNAME'
  hbase> flush 'host,port,startcode'
",
    ),
    (
        "hbck_chore_run",
        "\
Has the master compare its view of regions with files and servers.

  hbase> hbck_chore_run
",
    ),
    (
        "is_in_maintenance_mode",
        "\
Whether the master is in maintenance mode.

  hbase> is_in_maintenance_mode
",
    ),
    (
        "list_deadservers",
        "\
Region servers that have died.

  hbase> list_deadservers
",
    ),
    (
        "list_decommissioned_regionservers",
        "\
Region servers that get no more regions.

  hbase> list_decommissioned_regionservers
",
    ),
    (
        "list_liveservers",
        "\
Region servers that are alive.

  hbase> list_liveservers
",
    ),
    (
        "list_unknownservers",
        "\
Servers that regions are said to be on and that the master does not know.

  hbase> list_unknownservers
",
    ),
    (
        "major_compact",
        "\
Asks for a compaction of all files into one. Does not wait.

  hbase> major_compact 't'
  hbase> major_compact 't', 'f'
  hbase> major_compact 'ENCODED_REGIONNAME'
",
    ),
    (
        "merge_region",
        "\
Merges regions that are neighbours; with true also others.

  hbase> merge_region 'ENCODED_A', 'ENCODED_B'
  hbase> merge_region ['ENCODED_A', 'ENCODED_B'], true
",
    ),
    (
        "move",
        "\
Moves a region to a server, or where the balancer would have it.

  hbase> move 'ENCODED_REGIONNAME'
  hbase> move 'ENCODED_REGIONNAME', 'host187.example.com,60020,1289493121758'
",
    ),
    (
        "normalize",
        "\
Runs the normalizer over all tables, or over those that are named.

  hbase> normalize
  hbase> normalize TABLE_NAME => 't'
  hbase> normalize REGEX => 't.*'
",
    ),
    (
        "normalizer_enabled",
        "\
Whether the normalizer may run.

  hbase> normalizer_enabled
",
    ),
    (
        "normalizer_switch",
        "\
Lets the normalizer run or not; how it stood before.

  hbase> normalizer_switch true
",
    ),
    (
        "snapshot_cleanup_enabled",
        "\
Whether snapshots are deleted when their time is over.

  hbase> snapshot_cleanup_enabled
",
    ),
    (
        "snapshot_cleanup_switch",
        "\
Lets snapshots be deleted when their time is over, or not; how it stood before.

  hbase> snapshot_cleanup_switch true
",
    ),
    (
        "split",
        "\
Splits a table's regions or one region, at a key if one is given.

  hbase> split 't'
  hbase> split 't', 'key'
  hbase> split 'ENCODED_REGIONNAME', 'key'
",
    ),
    (
        "splitormerge_enabled",
        "\
Whether regions may be split, or merged.

  hbase> splitormerge_enabled 'SPLIT'
  hbase> splitormerge_enabled 'MERGE'
",
    ),
    (
        "splitormerge_switch",
        "\
Lets regions be split or merged, or not; how it stood before.

  hbase> splitormerge_switch 'SPLIT', false
",
    ),
    (
        "stop_master",
        "\
Stops the active master.

  hbase> stop_master
",
    ),
    (
        "stop_regionserver",
        "\
Stops a region server.

  hbase> stop_regionserver 'host187.example.com:60020'
",
    ),
    (
        "trace",
        "\
Begins and ends a span of traces; whether one is open. Nothing receives it, as in HBase's shell without a receiver.

  hbase> trace 'start'
  hbase> trace 'start', 'NAME'
  hbase> trace 'status'
  hbase> trace 'stop'
",
    ),
    (
        "unassign",
        "\
Has the master close a region.

  hbase> unassign 'ENCODED_REGIONNAME'
",
    ),
    (
        "update_all_config",
        "\
Has every server and master read its configuration anew.

  hbase> update_all_config
",
    ),
    (
        "update_config",
        "\
Has a server read its configuration anew.

  hbase> update_config 'host187.example.com,60020,1289493121758'
",
    ),
    (
        "wal_roll",
        "\
Has a server begin a new log file.

  hbase> wal_roll 'host187.example.com,60020,1289493121758'
",
    ),
];
