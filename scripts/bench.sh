#!/usr/bin/env bash
# What Ration costs, against the same work without it in the same run: scripts/bench.sh [OUTPUT_FOLDER]
# Text on stdout; bench_*.json in the folder (build/bench by default).
set -eu
. "$(dirname "$0")/steps.sh"
"$root/scripts/setup.sh" --build-only
output=${1:-$root/build/bench}
mkdir -p "$root/build" "$output"
build_release >"$root/build/build.log" 2>&1 || die "bench: the build failed; see build/build.log"
for bench in start dlsym hook pool; do
  "$root/build/tests/bench/bench_$bench" --json "$output/bench_$bench.json"
done
"$root/build/tests/bench/bench_parts" --benchmark_out="$output/bench_parts.json" --benchmark_out_format=json
