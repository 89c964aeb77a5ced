# Every line must succeed: with -n the first error ends the shell. `crates/basalt/tests/shell.rs` runs it and looks at what is printed.

def expect(what, wanted)
  raise "#{what.inspect} instead of #{wanted.inspect}" unless what == wanted
end

whoami
processlist
table_help
status 'simple'
status 'detailed'
status 'replication'
help 'create'

t = create 'adm', { NAME => 'f', VERSIONS => 3 }, SPLITS => ['m']
t.put 'a', 'f:q', 'v1'
t.put 'z', 'f:q', 'v2'
expect t.count, 2
expect t.name, 'adm'
expect t.get_all_columns, ['f:']
get_table('adm').scan
alter_async 'adm', NAME => 'f', VERSIONS => 4
alter_status 'adm'
clone_table_schema 'adm', 'adm_copy'
expect get_splits('adm_copy'), ['m']
expect list('adm.*'), ['adm', 'adm_copy']
expect list_enabled_tables.include?('adm'), true
disable 'adm_copy'
expect list_disabled_tables, ['adm_copy']
show_filters
desc 'adm'

flush 'adm'
flush 'adm', 'f'
compact 'adm'
major_compact 'adm', 'f'
expect %w[NONE MINOR MAJOR MAJOR_AND_MINOR].include?(compaction_state('adm')), true
clear_block_cache 'adm'
list_liveservers
list_deadservers
list_unknownservers
list_decommissioned_regionservers

expect balance_switch(false), true
expect balancer_enabled, false
balance_switch true
balancer 'dry_run'
was = normalizer_enabled
normalizer_switch was
normalize TABLE_NAME => 'adm'
catalogjanitor_switch catalogjanitor_enabled
catalogjanitor_run
cleaner_chore_switch cleaner_chore_enabled
cleaner_chore_run
snapshot_cleanup_switch snapshot_cleanup_enabled
splitormerge_switch 'SPLIT', splitormerge_enabled('SPLIT')
expect is_in_maintenance_mode, false
update_all_config

snapshot 'adm', 'adm_s'
snapshot 'adm', 'adm_s2', SKIP_FLUSH => true
expect list_snapshots('adm_s.*'), ['adm_s', 'adm_s2']
expect list_table_snapshots('adm'), ['adm_s', 'adm_s2']
clone_snapshot 'adm_s', 'adm_clone'
expect get_table('adm_clone').count, 2
deleteall 'adm', 'a'
disable 'adm'
restore_snapshot 'adm_s'
enable 'adm'
expect t.count, 2
delete_snapshot 'adm_s2'
delete_snapshot 'adm_s'
expect list_snapshots, []
puts 'all done'
