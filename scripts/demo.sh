#!/usr/bin/env bash
# Runs two unmodified CUDA programs that share one GPU, each held to its limit; without a GPU, on a simulated one.
# The last line is `demo: ok …` or `demo: FAILED …`. The logs stay in build/demo/.
set -eu
. "$(dirname "$0")/steps.sh"
failed() {
  echo "demo: FAILED $*"
  exit 1
}
"$root/scripts/setup.sh" --build-only || failed "set-up"
mkdir -p "$root/build"
build_release share_one_gpu >"$root/build/build.log" 2>&1 || {
  tail -n 40 "$root/build/build.log" >&2
  failed "build"
}
exec "$root/examples/share_one_gpu/run.sh" "$root/build"
