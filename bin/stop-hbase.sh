#!/usr/bin/env bash
# Stops the server that start-hbase.sh started, and waits until it has ended; where hbase.cluster.distributed is true, the whole cluster: its active
# master has the region servers stop, and backup masters are stopped on their hosts.
set -euo pipefail

if [ "${1:-}" = --config ]; then
  export HBASE_CONF_DIR=${2:?--config needs a directory after it}
  shift 2
fi
. "$(dirname "${BASH_SOURCE[0]}")/hbase-config.sh"
name=hbase-${HBASE_IDENT_STRING:-${USER:-basalt}}-master
pid_file=${HBASE_PID_DIR:-.}/$name.pid
ready_file=${HBASE_PID_DIR:-.}/$name.ready
if [ ! -f "$pid_file" ]; then
  echo "no hbase master found: there is no $pid_file" >&2
  exit 1
fi
pid=$(cat "$pid_file")
if is_distributed; then
  "$bin/hbase-daemons.sh" stop master-backup
  echo "stopping hbase"
  "$bin/hbase" master stop
  while runs "$pid"; do sleep 0.05; done
elif kill -TERM "$pid" 2>/dev/null; then
  echo "stopping hbase"
  while runs "$pid"; do sleep 0.05; done
else
  echo "no hbase master to stop because no process $pid is running" >&2
fi
rm -f "$pid_file" "$ready_file"
