#!/usr/bin/env bash
# Moves a region server's regions away, and stops it: graceful_stop.sh [--config DIR] [-e] [--restart [--reload]] [-n] HOST.
# Where there is no other server, as in a standalone process, the regions stay: the server is stopped as it is, flushed by its own stop.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
usage="Usage: graceful_stop.sh [--config DIR] [-d] [-e] [--restart [--reload]] [--thrift] [--rest] [-n|--noack] [--maxthreads N] [--movetimeout S] HOST"
config=()
restart=no
failfast=no
host=
while [ $# -gt 0 ]; do
  case $1 in
    --config) config=(--config "${2:?--config needs a directory after it}"); shift 2 ;;
    --restart) restart=yes; shift ;;
    -e | --failfast) failfast=yes; shift ;;
    # The balancer is switched and regions are moved one by one in any case.
    --reload | --thrift | --rest | --debug | -d | -n | --noack | -nob | --nob | --designatedfile) shift ;;
    --maxthreads | --movetimeout) shift 2 ;;
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
if [ "$others" -gt 0 ]; then
  balancer=$(shell -e "print balance_switch(false)" | tail -n 1)
  echo "Moving the regions of $server to $others other servers"
  if ! shell -e "decommission_regionservers ['$server'], true"; then
    echo "graceful_stop.sh: the regions of $server could not be moved" >&2
    if [ "$failfast" = yes ]; then exit 1; fi
  fi
fi
echo "Stopping $server"
shell -e "stop_regionserver '$server'"
if [ "$restart" = yes ]; then
  "$here/hbase-daemon.sh" "${config[@]}" restart master
  until servers | grep -q "^$host,"; do sleep 0.2; done
  if [ "$others" -gt 0 ]; then
    shell -e "recommission_regionserver '$(servers | grep "^$host," | head -n 1)'"
  fi
fi
case $balancer in
  *true*) shell -e "balance_switch true" ;;
esac
