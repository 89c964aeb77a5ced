#!/usr/bin/env bash
# Restarts a cluster without its going down: rolling-restart.sh [--config DIR] [--rs-only] [--master-only] [--graceful] [--maxthreads N] [--noack]
# [--movetimeout S]. First the backup masters and the master of this host, then one region server after the other, each by ssh to its host; with
# --graceful its regions are moved away before and back behind. The directory of these scripts and the configuration's are to be the same on all
# hosts. Read: HBASE_CONF_DIR, HBASE_SSH_OPTS, HBASE_BACKUP_MASTERS.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
usage="Usage: rolling-restart.sh [--config DIR] [--rs-only] [--master-only] [--graceful] [--maxthreads N] [--noack] [--movetimeout S]"
conf=${HBASE_CONF_DIR:-conf}
servers=yes
masters=yes
options=()
defines=()
while [ $# -gt 0 ]; do
  case $1 in
    --config) conf=${2:?--config needs a directory after it}; shift 2 ;;
    --rs-only | -r) masters=no; shift ;;
    --master-only) servers=no; shift ;;
    --graceful) options+=(--graceful); shift ;;
    --maxthreads) options+=(--maxthreads "${2:?--maxthreads needs a number after it}"); shift 2 ;;
    --noack) options+=(--noack); shift ;;
    # How long one region's move may take.
    --movetimeout) defines+=(-D "hbase.move.wait.max=${2:?--movetimeout needs seconds after it}"); shift 2 ;;
    --help | -h) echo "$usage"; exit 0 ;;
    *) echo "rolling-restart.sh: $1 is no option" >&2; echo "$usage" >&2; exit 1 ;;
  esac
done
if [ "$servers$masters" = nono ]; then
  echo "rolling-restart.sh: --rs-only and --master-only leave nothing to restart" >&2
  exit 1
fi
if [ "$masters" = yes ]; then
  # The backups first: one of them is there when the active one goes.
  "$here/hbase-daemons.sh" --config "$conf" restart master-backup
  "$here/hbase-daemon.sh" --config "$conf" restart master
fi
if [ "$servers" = yes ]; then
  restart="ssh ${HBASE_SSH_OPTS:-} {host} $(printf '%q' "$here/hbase-daemon.sh") --config $(printf '%q' "$conf") restart regionserver"
  "$here/hbase" --config "$conf" ${defines[@]+"${defines[@]}"} admin rolling-restart ${options[@]+"${options[@]}"} --command "$restart"
fi
