#!/usr/bin/env bash
# Starts the server in the background and waits until it serves.
# Read: HBASE_CONF_DIR, HBASE_PID_DIR and HBASE_LOG_DIR (the directory at hand where they are not set), HBASE_IDENT_STRING.
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/hbase-config.sh"
name=hbase-${HBASE_IDENT_STRING:-${USER:-basalt}}-master
pid_file=${HBASE_PID_DIR:-.}/$name.pid
ready_file=${HBASE_PID_DIR:-.}/$name.ready
log_file=${HBASE_LOG_DIR:-.}/$name.log

if [ -f "$pid_file" ] && kill -0 "$(cat "$pid_file")" 2>/dev/null; then
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
  if ! kill -0 "$pid" 2>/dev/null; then
    rm -f "$pid_file"
    echo "start-hbase.sh: the server ended before it served; the last lines of $log_file:" >&2
    tail -n 5 "$log_file" >&2
    exit 1
  fi
  sleep 0.05
done
