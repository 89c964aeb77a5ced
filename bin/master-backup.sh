#!/usr/bin/env bash
# Runs a command on every host of a backup master: master-backup.sh [--config DIR] COMMAND [ARGUMENTS]. `master-backup` among the words becomes
# `master`, and --backup is put behind them. The hosts are those of HBASE_BACKUP_MASTERS, or of backup-masters in the configuration's directory;
# where there is no such file, there is nothing to do. Read: as regionservers.sh.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
usage="Usage: master-backup.sh [--config DIR] COMMAND [ARGUMENTS]"
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
list=${HBASE_BACKUP_MASTERS:-$conf/backup-masters}
if ! [ -f "$list" ]; then exit 0; fi
words=()
for word in "$@"; do
  case $word in
    master-backup) words+=(master) ;;
    *) words+=("$word") ;;
  esac
done
exec "$here/regionservers.sh" --config "$conf" --hosts "$list" "${words[@]}" --backup
