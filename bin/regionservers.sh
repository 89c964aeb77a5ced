#!/usr/bin/env bash
# Runs a command on every host of a list: regionservers.sh [--config DIR] [--hosts FILE] COMMAND [ARGUMENTS]. The list is FILE, or that of
# HBASE_REGIONSERVERS, or regionservers in the configuration's directory: a host in each line. Read: HBASE_CONF_DIR, HBASE_SSH_OPTS,
# HBASE_SLAVE_PARALLEL (false: one after the other), HBASE_SLAVE_SLEEP (seconds between two). A list of localhost alone needs no ssh.
# Ends with 1 where the command failed on one of them.
set -euo pipefail

usage="Usage: regionservers.sh [--config DIR] [--hosts FILE] COMMAND [ARGUMENTS]"
conf=${HBASE_CONF_DIR:-conf}
list=${HBASE_REGIONSERVERS:-}
while [ $# -gt 0 ]; do
  case $1 in
    --config) conf=${2:?--config needs a directory after it}; shift 2 ;;
    --hosts) list=${2:?--hosts needs a file after it}; shift 2 ;;
    --help | -h) echo "$usage"; exit 0 ;;
    *) break ;;
  esac
done
if [ $# -eq 0 ]; then
  echo "$usage" >&2
  exit 1
fi
list=${list:-$conf/regionservers}
if ! [ -f "$list" ]; then
  echo "regionservers.sh: there is no list of hosts $list" >&2
  exit 1
fi
hosts=$(sed -e 's/#.*//' "$list" | xargs)

# Each argument as one word, for the shell there.
words=
for argument in "$@"; do words="$words $(printf '%q' "$argument")"; done

# Under every line the host that said it.
run() {
  local host=$1 code=0
  if [ "$hosts" = localhost ]; then
    "${command[@]}" 2>&1 | sed "s/^/$host: /" || code=$?
  else
    # shellcheck disable=SC2086 # options, and words that are quoted above
    ssh ${HBASE_SSH_OPTS:-} "$host" "${words# }" 2>&1 </dev/null | sed "s/^/$host: /" || code=$?
  fi
  return "$code"
}

command=("$@")
ended=0
running=()
for host in $hosts; do
  if [ "${HBASE_SLAVE_PARALLEL:-true}" = true ]; then
    run "$host" &
    running+=($!)
  else
    run "$host" || ended=1
  fi
  if [ -n "${HBASE_SLAVE_SLEEP:-}" ]; then sleep "$HBASE_SLAVE_SLEEP"; fi
done
for one in "${running[@]}"; do wait "$one" || ended=1; done
exit "$ended"
