# A session with the real HBase shell. What it prints, times aside, is compared with expected.txt, which the real HBase
# 2.6.4 made (`UPDATE_EXPECT=1 cargo xtask interop --against hbase shell` makes it again).

# `refused { ... }` prints the class and the first line of the error that a command must end with.
def refused
  yield
  puts 'NOT REFUSED'
rescue => e
  cause = e.respond_to?(:cause) && e.cause ? e.cause : e
  puts "refused: #{cause.class.name.split('::').last}: #{cause.message.to_s.lines.first.to_s.strip[0, 100]}"
end

puts '--- create, list, exists'
create 'sh_t', { NAME => 'f', VERSIONS => 3 }, 'g'
list 'sh_t.*'
exists 'sh_t'
exists 'sh_none'
is_enabled 'sh_t'
refused { create 'sh_t', 'f' }
describe 'sh_t'

puts '--- put, get'
put 'sh_t', 'r1', 'f:a', 'v1', 100
put 'sh_t', 'r1', 'f:a', 'v2', 200
put 'sh_t', 'r1', 'f:b', 'w1', 100
put 'sh_t', 'r1', 'g:c', 'x1', 100
put 'sh_t', 'r2', 'f:a', "\x00\xFFbin", 100
put 'sh_t', 'r3', 'f:a', 'v3', 300
get 'sh_t', 'r1'
get 'sh_t', 'r1', 'f:a'
get 'sh_t', 'r1', { COLUMN => 'f:a', VERSIONS => 3 }
get 'sh_t', 'r1', { COLUMN => ['f:a', 'g:c'], TIMERANGE => [0, 150] }
get 'sh_t', 'nothing'
refused { put 'sh_t', 'r1', 'nope:a', 'v' }
refused { get 'sh_none', 'r1' }

puts '--- scan'
scan 'sh_t'
scan 'sh_t', { COLUMNS => ['f:a'], LIMIT => 2, STARTROW => 'r1' }
scan 'sh_t', { REVERSED => true }
scan 'sh_t', { FILTER => "PrefixFilter('r1') AND QualifierFilter(=, 'binary:b')" }
scan 'sh_t', { VERSIONS => 10, RAW => true }
scan 'sh_t', { ROWPREFIXFILTER => 'r2' }

puts '--- count, incr, append, counters'
count 'sh_t'
count 'sh_t', INTERVAL => 2, CACHE => 1
incr 'sh_t', 'c', 'f:n'
incr 'sh_t', 'c', 'f:n', 10
get_counter 'sh_t', 'c', 'f:n'
append 'sh_t', 'r3', 'f:a', '-more'
get 'sh_t', 'r3', { COLUMN => 'f:a', FORMATTER => 'toString' } do |row| end

puts '--- delete, deleteall'
delete 'sh_t', 'r1', 'f:a', 200
get 'sh_t', 'r1', { COLUMN => 'f:a', VERSIONS => 3 }
deleteall 'sh_t', 'r1', 'f:b'
get 'sh_t', 'r1'
deleteall 'sh_t', 'r1'
get 'sh_t', 'r1'
deleteall 'sh_t', { ROWPREFIXFILTER => 'r' }
count 'sh_t'

puts '--- alter'
alter 'sh_t', { NAME => 'f', VERSIONS => 5 }
alter 'sh_t', { NAME => 'h', TTL => 86400, COMPRESSION => 'GZ', BLOOMFILTER => 'ROWCOL' }
alter 'sh_t', 'delete' => 'g'
alter 'sh_t', MAX_FILESIZE => '134217728'
describe 'sh_t'
refused { alter 'sh_t', 'delete' => 'nope' }

puts '--- flush, compact'
put 'sh_t', 'r1', 'f:a', 'v1', 100
flush 'sh_t'
major_compact 'sh_t'
get 'sh_t', 'r1'

puts '--- disable, enable, truncate, drop'
refused { drop 'sh_t' }
disable 'sh_t'
is_disabled 'sh_t'
refused { put 'sh_t', 'r1', 'f:a', 'v1' }
enable 'sh_t'
get 'sh_t', 'r1'
truncate 'sh_t'
count 'sh_t'
disable 'sh_t'
drop 'sh_t'
exists 'sh_t'
refused { drop 'sh_t' }

puts '--- namespaces'
create_namespace 'sh_ns', { 'owner' => 'me' }
describe_namespace 'sh_ns'
list_namespace 'sh_ns'
create 'sh_ns:t', 'f'
list_namespace_tables 'sh_ns'
refused { drop_namespace 'sh_ns' }
disable 'sh_ns:t'
drop 'sh_ns:t'
alter_namespace 'sh_ns', { METHOD => 'set', 'owner' => 'you' }
describe_namespace 'sh_ns'
drop_namespace 'sh_ns'
list_namespace 'sh_ns'

puts '--- regions'
create 'sh_s', 'f', SPLITS => ['h', 'p']
get_splits 'sh_s'
locate_region 'sh_s', 'k'
list_regions 'sh_s', '', ['REGION_NAME', 'START_KEY', 'END_KEY']
put 'sh_s', 'a', 'f:q', '1', 1
put 'sh_s', 'i', 'f:q', '2', 1
put 'sh_s', 'z', 'f:q', '3', 1
scan 'sh_s'
count 'sh_s'
truncate_preserve 'sh_s'
get_splits 'sh_s'
count 'sh_s'
disable 'sh_s'
drop 'sh_s'

puts '--- cluster'
status
balancer_enabled
version
