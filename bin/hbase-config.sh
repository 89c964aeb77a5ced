# Sets `basalt` to the binary: $BASALT, one beside this file, one in target/release, one on the PATH; and has what the scripts beside it share, which
# source it.
bin=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
basalt=${BASALT:-}
for candidate in "$bin/basalt" "$bin/../target/release/basalt" "$(command -v basalt || true)"; do
  if [ -z "$basalt" ] && [ -x "$candidate" ]; then basalt=$candidate; fi
done
if [ -z "$basalt" ]; then
  echo "$(basename "$0"): no basalt in $bin, in target/release, or on the PATH; set BASALT to the binary" >&2
  exit 1
fi

# Whether the settings, with these options of the binary, say that a cluster's parts are processes of their own.
is_distributed() {
  [ "$("$basalt" "$@" config get hbase.cluster.distributed)" = true ]
}

# Whether a process runs. One that has ended and waits for its parent to notice does not.
runs() {
  local line
  kill -0 "$1" 2>/dev/null || return 1
  if { read -r line <"/proc/$1/stat"; } 2>/dev/null; then
    case ${line##*) } in Z*) return 1 ;; esac
  fi
}
