# Regions and servers, by the names of two regions of table `reg` (first, second), of one of table `reg2` by its whole name (other) and of a
# server (server), which `crates/basalt/tests/shell.rs` finds out and puts before this. Every line must succeed. What is printed has HBase's
# shapes, those of `lib/shell/commands/*.rb` in hbase-shell 2.4.17 (rit.rb, list_procedures.rb, list_locks.rb, compaction_switch.rb, ...).

def expect(what, wanted)
  raise "#{what.inspect} instead of #{wanted.inspect}" unless what == wanted
end

expect count('reg'), 2
unassign first
assign first
move second
move second, server
close_region first
assign first
rit
expect count('reg'), 2
merge_region [first, second]
expect get_splits('reg'), []
expect count('reg'), 2
truncate_region other
expect count('reg2'), 0

compaction_switch true
compact_rs server
compact_rs server, true
clear_compaction_queues server
wal_roll server
hlog_roll server
update_config server
decommission_regionservers server
list_decommissioned_regionservers
recommission_regionserver server
clear_deadservers
flush_master_store
hbck_chore_run
list_procedures
list_locks
puts 'all done'
