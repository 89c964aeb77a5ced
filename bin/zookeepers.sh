#!/usr/bin/env bash
# Runs a command on every host of the ZooKeeper ensemble: zookeepers.sh [--config DIR] COMMAND [ARGUMENTS]. The hosts are those of
# hbase.zookeeper.quorum; nothing is done where HBASE_MANAGES_ZK is not true. Read: as regionservers.sh.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
usage="Usage: zookeepers.sh [--config DIR] COMMAND [ARGUMENTS]"
conf=${HBASE_CONF_DIR:-conf}
while [ $# -gt 0 ]; do
  case $1 in
    --config) conf=${2:?--config needs a directory after it}; shift 2 ;;
    --help | -h) echo "$usage"; exit 0 ;;
    *) break ;;
  esac
done
if [ $# -eq 0 ]; then
  echo "$usage" >&2
  exit 1
fi
if [ "${HBASE_MANAGES_ZK:-true}" != true ]; then exit 0; fi
list=$(mktemp)
trap 'rm -f "$list"' EXIT
quorum=$("$here/hbase" --config "$conf" config get hbase.zookeeper.quorum)
echo "$quorum" | tr ',' '\n' | sed -e 's/:.*//' >"$list"
"$here/regionservers.sh" --config "$conf" --hosts "$list" "$@"
