#!/usr/bin/env bash
# What exporting and importing a table costs, with Basalt's tools and with HBase's local job, against the same server and in turn: export-import.sh
# [ROWS]. A row is some 1 KB; 1,048,576 of them, a GB, unless given. Prints wall time and time of cores of each tool's process.
# Read: BASALT (target/release/basalt), LAB (where `cargo xtask interop` keeps HBase's jars), ROUNDS (2). On a machine that does nothing else.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
basalt=${BASALT:-$here/target/release/basalt}
rows=${1:-1048576}
work=$(mktemp -d)
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$basalt" -D "hbase.rootdir=$work/data" -D "hbase.zookeeper.property.clientPort=$port" -D hbase.master.port=0 -D hbase.regionserver.port=0 \
  -D hbase.master.info.port=-1 --ready-file "$work/ready" >"$work/server.log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
until [ -e "$work/ready" ]; do
  if ! kill -0 "$server" 2>/dev/null; then
    cat "$work/server.log" >&2
    exit 1
  fi
  sleep 0.1
done

ours() { "$basalt" -D "hbase.zookeeper.property.clientPort=$port" "$@" >"$work/out" 2>&1 || { cat "$work/out" >&2; exit 1; }; }
job() {
  local class=$1
  shift
  ZK=127.0.0.1:$port CLIENT_CONF=$work/client bash "$here/tests/interop/real-hbase/job.sh" "org.apache.hadoop.hbase.mapreduce.$class" "$@" \
    >"$work/out" 2>&1 || { tail -n 30 "$work/out" >&2; exit 1; }
}

TIMEFORMAT='%R %U %S'
# The name of a line, then what is timed.
timed() {
  local name=$1
  shift
  { time "$@"; } 2>"$work/time"
  tail -n 1 "$work/time" | awk -v name="$name" '{ printf "%-16s %8.2f s wall %8.2f s of cores\n", name, $1, $2 + $3 }'
}

# Four regions to read from; what is imported goes into one.
ours pe --nomapred --table=from --rows="$rows" --presplit=4 --valueSize=1000 sequentialWrite 1
ours shell -n -e "flush 'from'" -e "major_compact 'from'"
for round in $(seq "${ROUNDS:-2}"); do
  for who in ours java; do
    ours shell -n -e "create 'to-$who-$round', 'info0'"
    case $who in
      ours)
        timed "basalt export" ours export from "$work/ours-$round"
        timed "basalt import" ours import "to-$who-$round" "$work/ours-$round"
        ;;
      java)
        timed "java Export" job Export from "file://$work/java-$round"
        timed "java Import" job Import "to-$who-$round" "file://$work/java-$round"
        ;;
    esac
    ours shell -n -e "disable 'to-$who-$round'" -e "drop 'to-$who-$round'"
    du -sb "$work/$who-$round" | awk '{ printf "%-16s %8.0f MB\n", "", $1 / 1000000 }'
    rm -rf "$work/${who:?}-$round"
  done
done
