# Sets `basalt` to the binary: $BASALT, one beside this file, one in target/release, one on the PATH. Sourced by the scripts beside it.
bin=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
basalt=${BASALT:-}
for candidate in "$bin/basalt" "$bin/../target/release/basalt" "$(command -v basalt || true)"; do
  if [ -z "$basalt" ] && [ -x "$candidate" ]; then basalt=$candidate; fi
done
if [ -z "$basalt" ]; then
  echo "$(basename "$0"): no basalt in $bin, in target/release, or on the PATH; set BASALT to the binary" >&2
  exit 1
fi
