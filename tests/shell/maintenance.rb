# Tables and snapshots by the handful: what an administrator does once in a while. Every line must succeed: with -n the first error ends the
# shell. `crates/basalt/tests/shell.rs` runs it, answers its questions, and holds what is printed against HBase's shapes, which are those of
# `lib/shell/commands/*.rb` in hbase-shell 2.4.17 (disable_all.rb, delete_all_snapshot.rb, delete_table_snapshots.rb, ...).

def expect(what, wanted)
  raise "#{what.inspect} instead of #{wanted.inspect}" unless what == wanted
end

create 'mnt_a', 'f', SPLITS => ['m']
create 'mnt_b', 'f'
put 'mnt_a', 'a', 'f:q', 'v1'
put 'mnt_a', 'z', 'f:q', 'v2'

# Many at once, after a question.
disable_all 'mnt_.*'
expect is_disabled('mnt_a'), true
enable_all 'mnt_.*'
expect is_enabled('mnt_b'), true
disable_all 'mnt_b'
expect is_enabled('mnt_b'), true
drop_all 'none_.*'
snapshot 'mnt_a', 'snap_1'
snapshot 'mnt_a', 'snap_2'
snapshot 'mnt_b', 'snap_3'
delete_table_snapshots 'mnt_a', 'snap_1'
expect list_snapshots.sort, ['snap_2', 'snap_3']
delete_all_snapshot 'snap.*'
expect list_snapshots, []
change_sft 'mnt_b', 'FILE'
change_sft 'mnt_b', 'f', 'DEFAULT'
change_sft_all 'mnt_b.*', 'DEFAULT'

# Sizes, switches, what is replicated.
list_quota_table_sizes
list_quota_snapshots
list_snapshot_sizes
enable_table_replication 'mnt_b'
list_replicated_tables
disable_table_replication 'mnt_b'
disable_rpc_throttle
enable_rpc_throttle
list_security_capabilities
tools
disable_all 'mnt_.*'
drop_all 'mnt_.*'
expect list('mnt_.*'), []
puts 'all done'
exit 3
