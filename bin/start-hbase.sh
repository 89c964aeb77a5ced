#!/usr/bin/env bash
# Starts the server in the background and waits until it serves. Where hbase.cluster.distributed is true, starts a cluster instead: the master here,
# region servers and backup masters on their hosts by ssh, as the files regionservers and backup-masters name them. ZooKeeper runs already.
# Read: HBASE_CONF_DIR, HBASE_PID_DIR and HBASE_LOG_DIR (the directory at hand where they are not set), HBASE_IDENT_STRING; and as regionservers.sh.
set -euo pipefail

if [ "${1:-}" = --config ]; then
  export HBASE_CONF_DIR=${2:?--config needs a directory after it}
  shift 2
fi
. "$(dirname "${BASH_SOURCE[0]}")/hbase-config.sh"
if is_distributed "$@"; then
  "$bin/hbase-daemon.sh" start master "$@"
  "$bin/hbase-daemons.sh" start regionserver
  exec "$bin/hbase-daemons.sh" start master-backup
fi
name=hbase-${HBASE_IDENT_STRING:-${USER:-basalt}}-master
pid_file=${HBASE_PID_DIR:-.}/$name.pid
ready_file=${HBASE_PID_DIR:-.}/$name.ready
log_file=${HBASE_LOG_DIR:-.}/$name.log

if [ -f "$pid_file" ] && runs "$(cat "$pid_file")"; then
  echo "master running as process $(cat "$pid_file"). Stop it first." >&2
  exit 1
fi
mkdir -p "$(dirname "$pid_file")" "$(dirname "$log_file")"
rm -f "$ready_file"
echo "running master, logging to $log_file"
nohup "$basalt" "$@" --ready-file "$ready_file" >>"$log_file" 2>&1 &
pid=$!
echo "$pid" >"$pid_file"
while [ ! -f "$ready_file" ]; do
  if ! runs "$pid"; then
    rm -f "$pid_file"
    echo "start-hbase.sh: the server ended before it served; the last lines of $log_file:" >&2
    tail -n 5 "$log_file" >&2
    exit 1
  fi
  sleep 0.05
done
