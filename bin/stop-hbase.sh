#!/usr/bin/env bash
# Stops the server that start-hbase.sh started, and waits until it has ended.
set -euo pipefail

name=hbase-${HBASE_IDENT_STRING:-${USER:-basalt}}-master
pid_file=${HBASE_PID_DIR:-.}/$name.pid
ready_file=${HBASE_PID_DIR:-.}/$name.ready
if [ ! -f "$pid_file" ]; then
  echo "no hbase master found: there is no $pid_file" >&2
  exit 1
fi
pid=$(cat "$pid_file")
if kill -TERM "$pid" 2>/dev/null; then
  echo "stopping hbase"
  while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
else
  echo "no hbase master to stop because no process $pid is running" >&2
fi
rm -f "$pid_file" "$ready_file"
