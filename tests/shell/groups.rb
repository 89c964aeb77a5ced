# Groups of region servers on a server of its own, with the endpoint switched on; SERVER is its host and port. What is refused is told and
# passed over. crates/basalt/tests/shell.rs has the answers, by number.
create_namespace 'ns'
create 'ns:t', 'f'
add_rsgroup 'g'
list_rsgroups
list_rsgroups '^g'
get_rsgroup 'default'
get_server_rsgroup 'SERVER'
get_table_rsgroup 'ns:t'
get_namespace_rsgroup 'ns'
alter_namespace 'ns', {METHOD => 'set', 'hbase.rsgroup.name' => 'g'}
get_namespace_rsgroup 'ns'
add_rsgroup 'g'
remove_rsgroup 'g'
get_rsgroup 'no'
get_table_rsgroup 'no'
get_server_rsgroup 'no:1'
move_servers_rsgroup 'g', ['SERVER']
move_tables_rsgroup 'g', ['ns:t']
move_servers_tables_rsgroup 'g', ['SERVER'], ['ns:t']
move_namespaces_rsgroup 'default', ['ns']
get_namespace_rsgroup 'ns'
move_namespaces_rsgroup 'default', ['none']
move_servers_namespaces_rsgroup 'g', ['SERVER'], ['ns']
balance_rsgroup 'default'
alter_rsgroup_config 'g', {METHOD => 'set', 'a' => 1, 'b' => 'x'}, {METHOD => 'unset', NAME => 'b'}
show_rsgroup_config 'g'
alter_rsgroup_config 'g', {METHOD => 'put', 'a' => 1}
alter_rsgroup_config 'default', {METHOD => 'set', 'a' => 1}
update_rsgroup_config 'default'
update_rsgroup_config 'no'
remove_servers_rsgroup ['SERVER']
rename_rsgroup 'g', 'h'
remove_rsgroup 'h'
list_rsgroups '^[gh]'
