#!/usr/bin/env bash
# More region servers on this machine, each at ports of its own: local-regionservers.sh [--config DIR] (start|stop|restart|foreground_start)
# OFFSET... The ports of one are 16020 and 16030, or those of HBASE_RS_BASE_PORT and HBASE_RS_INFO_BASE_PORT, and its offset.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
usage="Usage: local-regionservers.sh [--config DIR] (start|stop|restart|foreground_start) OFFSET..."
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
    '' | *[!0-9]*) echo "local-regionservers.sh: $offset is no offset: a number is" >&2; exit 1 ;;
  esac
  HBASE_IDENT_STRING="${HBASE_IDENT_STRING:-${USER:-basalt}}-$offset" "$here/hbase-daemon.sh" ${config[@]+"${config[@]}"} "$what" regionserver \
    -D "hbase.regionserver.port=$((${HBASE_RS_BASE_PORT:-16020} + offset))" \
    -D "hbase.regionserver.info.port=$((${HBASE_RS_INFO_BASE_PORT:-16030} + offset))" || ended=1
done
exit "$ended"
