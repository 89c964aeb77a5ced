# Peers, quotas, logs of servers and of the balancer, nodes in ZooKeeper, filters by their constructors. Every line must succeed: with -n the
# first error ends the shell. `crates/basalt/tests/shell.rs` runs it against a server with quotas and looks at what is printed.

def expect(what, wanted)
  raise "#{what.inspect} instead of #{wanted.inspect}" unless what == wanted
end

# Runs what must fail, and gives its message.
def refused
  yield
  'NOT REFUSED'
rescue => e
  e.message
end

t = create 'ops', { NAME => 'f', VERSIONS => 3 }, 'g'
t.put 'a', 'f:q', 'v1'
t.put 'b', 'f:q', 'v2'
t.put 'b', 'f:z', 'v3'

# Filters.
f = SingleColumnValueFilter.new(Bytes.toBytes('f'), Bytes.toBytes('q'), CompareOperator::EQUAL, BinaryComparator.new(Bytes.toBytes('v2')))
f.setFilterIfMissing(true)
scan 'ops', FILTER => f
expect (count 'ops', FILTER => f), 1
list = org.apache.hadoop.hbase.filter.FilterList.new(FilterList::Operator::MUST_PASS_ONE)
list.addFilter(PrefixFilter.new(Bytes.toBytes('a')))
list.addFilter(RowFilter.new(CompareOperator::EQUAL, SubstringComparator.new('b')))
expect (count 'ops', FILTER => list), 2
expect (count 'ops', FILTER => PageFilter.new(1)), 1

# Peers.
add_peer '1', CLUSTER_KEY => 'zk1,zk2:2181:/hbase', STATE => 'DISABLED', CONFIG => { 'c1' => 'v1' }
add_peer '2', CLUSTER_KEY => 'zk3:2181:/hbase', TABLE_CFS => { 'ops' => ['f'], 'ns:u' => [] }, STATE => 'DISABLED'
expect get_peer_config('1')['Cluster Key'], 'zk1,zk2:2181:/hbase'
expect get_peer_config('1')['c1'], 'v1'
update_peer_config '1', CONFIG => { 'c2' => 'v2' }, DATA => { 'd' => 'x' }
expect get_peer_config('1')['c2'], 'v2'
expect list_peer_configs.keys.sort, ['1', '2']
append_peer_tableCFs '2', { 'ops' => ['g'] }
expect (show_peer_tableCFs '2').split(';').sort, ['default.ops:f,g', 'ns.u']
remove_peer_tableCFs '2', { 'ns:u' => [] }
expect (show_peer_tableCFs '2'), 'default.ops:f,g'
set_peer_tableCFs '2', { 'ops' => [] }
expect (show_peer_tableCFs '2'), 'default.ops'
set_peer_namespaces '2', ['ns1']
append_peer_namespaces '2', ['ns2']
remove_peer_namespaces '2', ['ns1']
set_peer_bandwidth '1', 1048576
set_peer_bandwidth '1'
set_peer_exclude_namespaces '1', ['ns3']
append_peer_exclude_namespaces '1', ['ns4']
remove_peer_exclude_namespaces '1', ['ns3']
set_peer_exclude_tableCFs '1', { 'ops' => ['f'] }
append_peer_exclude_tableCFs '1', { 'ops' => ['g'] }
remove_peer_exclude_tableCFs '1', { 'ops' => ['f', 'g'] }
set_peer_replicate_all '2', false
list_peers
was = peer_modification_enabled
expect (peer_modification_switch was), was
expect (refused { add_peer '1', CLUSTER_KEY => 'zk1:2181:/hbase' }).include?('1'), true
expect (refused { add_peer '3' }), 'Either ENDPOINT_CLASSNAME or CLUSTER_KEY must be specified.'
remove_peer '1'
remove_peer '2'

# Quotas.
set_quota TYPE => THROTTLE, USER => 'bob', LIMIT => '10M/sec'
set_quota TYPE => THROTTLE, USER => 'bob', TABLE => 'ops', THROTTLE_TYPE => READ, LIMIT => '100req/min'
set_quota TYPE => THROTTLE, TABLE => 'ops', LIMIT => '5000CU/hour'
set_quota TYPE => THROTTLE, NAMESPACE => 'default', LIMIT => '9G/day', SCOPE => CLUSTER
set_quota TYPE => THROTTLE, REGIONSERVER => 'all', LIMIT => '30000req/sec'
set_quota USER => 'alice', GLOBAL_BYPASS => true
expect (enable_exceed_throttle_quota), false
expect (disable_exceed_throttle_quota), true
expect (trace), false
expect (trace 'start', 'MySpan'), true
expect (trace 'start'), true
expect (trace 'status'), true
expect (trace 'stop'), false
list_quotas
expect (list_quotas USER => 'bob'), 2
expect (list_quotas USER => 'b.*', TABLE => 'ops'), 1
expect (list_quotas TABLE => 'ops'), 1
expect (list_quotas LIMIT => 2), 2
set_quota TYPE => THROTTLE, USER => 'bob', TABLE => 'ops', THROTTLE_TYPE => READ_NUMBER, LIMIT => NONE
expect (list_quotas USER => 'bob'), 1
set_quota TYPE => THROTTLE, USER => 'bob', LIMIT => NONE
expect (list_quotas USER => 'bob'), 0
set_quota TYPE => THROTTLE, TABLE => 'ops', LIMIT => NONE
set_quota TYPE => THROTTLE, NAMESPACE => 'default', LIMIT => NONE
set_quota TYPE => THROTTLE, REGIONSERVER => 'all', LIMIT => NONE
set_quota USER => 'alice', GLOBAL_BYPASS => false
expect list_quotas, 0
expect (refused { set_quota TYPE => THROTTLE, USER => 'bob', LIMIT => '10' }), 'Invalid throttle limit syntax'

# What servers keep in memory.
get_slowlog_responses '*'
get_slowlog_responses '*', { 'LIMIT' => 5, 'TABLE_NAME' => 'ops', 'FILTER_BY_OP' => 'AND' }
get_largelog_responses '*', { 'LIMIT' => 5 }
clear_slowlog_responses
# A master may keep none.
refused { get_balancer_decisions LIMIT => 10 }
refused { get_balancer_rejections }
zk_dump
regioninfo 'hbase:meta,,1'
puts 'all done'
