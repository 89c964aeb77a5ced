#!/usr/bin/env bash
# Moves a region server's regions away, and stops it: graceful_stop.sh [--config DIR] [-e] [--restart [--reload]] [--thrift] [--rest] [-n]
# [--maxthreads N] [--movetimeout S] [--designatedfile FILE] HOST. Where there is no other server, as in a standalone process, the regions stay: the
# server is stopped as it is, flushed by its own stop. What runs on another host is started there by ssh. Read: HBASE_SSH_OPTS.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
usage="Usage: graceful_stop.sh [--config DIR] [-d] [-e] [--restart [--reload]] [--thrift] [--rest] [-n|--noack] [--maxthreads N] [--movetimeout S] [--designatedfile FILE] [-nob|--nob] HOST"
config=()
restart=no
failfast=no
reload=no
balance=yes
gateways=()
mover=()
host=
while [ $# -gt 0 ]; do
  case $1 in
    --config) config=(--config "${2:?--config needs a directory after it}"); shift 2 ;;
    --restart) restart=yes; shift ;;
    -e | --failfast) failfast=yes; shift ;;
    --reload) reload=yes; shift ;;
    --thrift) gateways+=(thrift); shift ;;
    --rest) gateways+=(rest); shift ;;
    --debug | -d) set -x; shift ;;
    -n | --noack) mover+=(--noack); shift ;;
    # The balancer is left as it is.
    -nob | --nob) balance=no; shift ;;
    --maxthreads) mover+=(--maxthreads "${2:?--maxthreads needs a number after it}"); shift 2 ;;
    --movetimeout) mover+=(--timeout "${2:?--movetimeout needs seconds after it}"); shift 2 ;;
    --designatedfile) mover+=(--designatedfile "${2:?--designatedfile needs a file after it}"); shift 2 ;;
    --help | -h) echo "$usage"; exit 0 ;;
    -*) echo "graceful_stop.sh: $1 is no option" >&2; echo "$usage" >&2; exit 1 ;;
    *) host=$1; shift ;;
  esac
done
if [ -z "$host" ]; then
  echo "$usage" >&2
  exit 1
fi

shell() {
  "$here/hbase" "${config[@]}" shell -n "$@"
}

# Every server that is alive, one a line: host,port,startcode.
servers() {
  shell --json -e list_liveservers | sed -n 's/^{"SERVERNAME":"\(.*\)"}$/\1/p'
}

server=$(servers | grep "^$host," | head -n 1 || true)
if [ -z "$server" ]; then
  echo "graceful_stop.sh: no server of this name is alive: $host" >&2
  exit 1
fi
others=$(servers | grep -cv "^$server$" || true)
balancer=

# hbase-daemon.sh on the server's host.
daemon() {
  case $host in
    localhost | "$(hostname)" | "$(hostname -f 2>/dev/null || hostname)") "$here/hbase-daemon.sh" "${config[@]}" "$@" ;;
    # shellcheck disable=SC2029,SC2086 # options; the words are for the other side
    *) ssh ${HBASE_SSH_OPTS:-} "$host" "$here/hbase-daemon.sh" "${config[@]}" "$@" ;;
  esac
}

# Moves its regions away, or back.
move() {
  port=$(echo "$server" | cut -d, -f2)
  "$here/hbase" "${config[@]}" regionmover --regionserverhost "$host:$port" --operation "$1" ${mover[@]+"${mover[@]}"}
}

if [ "$others" -gt 0 ]; then
  if [ "$balance" = yes ]; then balancer=$(shell -e "print balance_switch(false)" | tail -n 1); fi
  echo "Moving the regions of $server to $others other servers"
  if ! move unload; then
    echo "graceful_stop.sh: the regions of $server could not be moved" >&2
    if [ "$failfast" = yes ]; then exit 1; fi
  fi
fi
for gateway in ${gateways[@]+"${gateways[@]}"}; do daemon stop "$gateway" || true; done
echo "Stopping $server"
shell -e "stop_regionserver '$server'"
if [ "$restart" = yes ]; then
  if [ "$others" -gt 0 ]; then
    daemon restart regionserver
  else
    "$here/hbase-daemon.sh" "${config[@]}" restart master
  fi
  until servers | grep -q "^$host,"; do sleep 0.2; done
  for gateway in ${gateways[@]+"${gateways[@]}"}; do daemon start "$gateway"; done
  if [ "$others" -gt 0 ] && [ "$reload" = yes ]; then move load; fi
fi
case $balancer in
  *true*) shell -e "balance_switch true" ;;
esac
