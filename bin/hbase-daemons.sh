#!/usr/bin/env bash
# Runs hbase-daemon.sh on every host of its kind: hbase-daemons.sh [--config DIR] [--hosts FILE] (start|stop|restart|status) COMMAND [ARGUMENTS].
# zookeeper goes to the ensemble's hosts, master-backup to those of backup masters, everything else to those of region servers. The directory of
# these scripts and the configuration's are to be the same on all of them. Read: as regionservers.sh.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
usage="Usage: hbase-daemons.sh [--config DIR] [--hosts FILE] (start|stop|restart|status) COMMAND [ARGUMENTS]"
conf=${HBASE_CONF_DIR:-conf}
hosts=()
while [ $# -gt 0 ]; do
  case $1 in
    --config) conf=${2:?--config needs a directory after it}; shift 2 ;;
    --hosts) hosts=(--hosts "${2:?--hosts needs a file after it}"); shift 2 ;;
    # Who keeps a daemon running is systemd's business.
    --autostart-window-size | --autostart-window-retry-limit) shift 2 ;;
    --help | -h) echo "$usage"; exit 0 ;;
    *) break ;;
  esac
done
if [ $# -lt 2 ]; then
  echo "$usage" >&2
  exit 1
fi
daemon=("$here/hbase-daemon.sh" --config "$conf" "$@")
case $2 in
  zookeeper) exec "$here/zookeepers.sh" --config "$conf" "${daemon[@]}" ;;
  master-backup) exec "$here/master-backup.sh" --config "$conf" "${daemon[@]}" ;;
  *) exec "$here/regionservers.sh" --config "$conf" ${hosts[@]+"${hosts[@]}"} "${daemon[@]}" ;;
esac
