#!/usr/bin/env bash
# More masters of a cluster on this machine, which wait as backups: local-master-backup.sh [--config DIR] (start|stop|restart|foreground_start)
# OFFSET... The ports of one are 16000 and 16010, or those of HBASE_MASTER_BASE_PORT and HBASE_MASTER_INFO_BASE_PORT, and its offset.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
usage="Usage: local-master-backup.sh [--config DIR] (start|stop|restart|foreground_start) OFFSET..."
config=()
while [ $# -gt 0 ]; do
  case $1 in
    --config) config=(--config "${2:?--config needs a directory after it}"); shift 2 ;;
    --help | -h) echo "$usage"; exit 0 ;;
    *) break ;;
  esac
done
if [ $# -lt 2 ]; then
  echo "$usage" >&2
  exit 1
fi
what=$1
shift
ended=0
for offset in "$@"; do
  case $offset in
    '' | *[!0-9]*) echo "local-master-backup.sh: $offset is no offset: a number is" >&2; exit 1 ;;
  esac
  HBASE_IDENT_STRING="${HBASE_IDENT_STRING:-${USER:-basalt}}-$offset" "$here/hbase-daemon.sh" ${config[@]+"${config[@]}"} "$what" master --backup \
    -D "hbase.master.port=$((${HBASE_MASTER_BASE_PORT:-16000} + offset))" \
    -D "hbase.master.info.port=$((${HBASE_MASTER_INFO_BASE_PORT:-16010} + offset))" || ended=1
done
exit "$ended"
