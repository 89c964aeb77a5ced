#!/usr/bin/env bash
# Runs a command of `hbase` in the background, and stops it: hbase-daemon.sh [--config DIR] (start|stop|restart|foreground_start|status) COMMAND
# [ARGUMENTS]. Read: HBASE_CONF_DIR, HBASE_PID_DIR and HBASE_LOG_DIR (the directory at hand where they are not set), HBASE_IDENT_STRING,
# HBASE_STOP_TIMEOUT (seconds; 1200), after which a process that does not end is killed.
set -euo pipefail

usage="Usage: hbase-daemon.sh [--config DIR] (start|stop|restart|foreground_start|status) COMMAND [ARGUMENTS]"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/hbase-config.sh"
config=()
if [ "${1:-}" = --config ]; then
  config=(--config "${2:?--config needs a directory after it}")
  shift 2
fi
if [ $# -lt 2 ]; then
  echo "$usage" >&2
  exit 1
fi
what=$1
command=$2
shift 2
name=hbase-${HBASE_IDENT_STRING:-${USER:-basalt}}-$command
pid_file=${HBASE_PID_DIR:-.}/$name.pid
log_file=${HBASE_LOG_DIR:-.}/$name.log

# What a server is started with; gateways take `start` as the server does.
run() {
  case $command in
    master | regionserver | rest | thrift | thrift2) exec "$here/hbase" "${config[@]}" "$command" start "$@" ;;
    *) exec "$here/hbase" "${config[@]}" "$command" "$@" ;;
  esac
}

is_running() {
  [ -f "$pid_file" ] && runs "$(cat "$pid_file")"
}

start() {
  if is_running; then
    echo "$command running as process $(cat "$pid_file"). Stop it first." >&2
    exit 1
  fi
  mkdir -p "$(dirname "$pid_file")" "$(dirname "$log_file")"
  echo "running $command, logging to $log_file"
  (run "$@") >>"$log_file" 2>&1 </dev/null &
  echo $! >"$pid_file"
  # One that cannot start, for a port that is taken say, ends at once.
  sleep 1
  if ! is_running; then
    rm -f "$pid_file"
    echo "hbase-daemon.sh: $command ended; the last lines of $log_file:" >&2
    tail -n 5 "$log_file" >&2
    exit 1
  fi
}

stop() {
  if ! [ -f "$pid_file" ]; then
    echo "no $command to stop because no pid file $pid_file" >&2
    exit 1
  fi
  pid=$(cat "$pid_file")
  if ! kill -TERM "$pid" 2>/dev/null; then
    echo "no $command to stop because kill -0 of pid $pid failed" >&2
    rm -f "$pid_file"
    exit 1
  fi
  echo "stopping $command"
  waited=0
  while runs "$pid"; do
    if [ "$waited" -ge $((${HBASE_STOP_TIMEOUT:-1200} * 10)) ]; then
      echo "hbase-daemon.sh: $command did not end within ${HBASE_STOP_TIMEOUT:-1200} s: killed" >&2
      kill -KILL "$pid" 2>/dev/null || true
      break
    fi
    sleep 0.1
    waited=$((waited + 1))
  done
  rm -f "$pid_file"
}

case $what in
  start) start "$@" ;;
  stop) stop ;;
  restart)
    if is_running; then stop; fi
    start "$@"
    ;;
  foreground_start) run "$@" ;;
  status)
    if is_running; then
      echo "$command is running as process $(cat "$pid_file")"
    else
      echo "$command is not running"
      exit 1
    fi
    ;;
  *)
    echo "$usage" >&2
    exit 1
    ;;
esac
