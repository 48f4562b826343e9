#!/usr/bin/env bash
# Prints the cost of Ration as one table, compared with yardsticks of the same run:
#   scripts/bench.sh [--strict] [--traces FOLDER] [--packaged LIBRARY] [--smoke] [--built FOLDER] [OUTPUT_FOLDER]
# A figure over its bound is marked `over`; with --strict the exit status is then 1. --traces adds the smallest arena of each
# *.trace and *.trace.xz in FOLDER. --packaged measures the libration.so of a package beside this
# build's. --smoke prints every row after minimal measurements, without meaningful figures. --built
# uses an existing build. Writes bench_*.json, replay_*.json and table.json to OUTPUT_FOLDER (default: build/bench).
set -eu
. "$(dirname "$0")/steps.sh"

strict='' smoke=no traces='' build='' output=''
while [ $# -gt 0 ]; do
  case $1 in
    --strict) strict=--strict ;;
    --smoke) smoke=yes ;;
    --traces | --built | --packaged)
      [ $# -gt 1 ] || die "bench: $1 needs a path"
      case $1 in
        --traces) traces=$2 ;;
        --built) build=$2 ;;
        --packaged)
          [ -r "$2" ] || die "bench: $2 cannot be read"
          RATION_BENCH_PACKAGED=$(realpath "$2")
          export RATION_BENCH_PACKAGED
          ;;
      esac
      shift
      ;;
    -*) die "bench: unknown option '$1' (see the head of scripts/bench.sh)" ;;
    *) output=$1 ;;
  esac
  shift
done
[ -z "$traces" ] || [ -d "$traces" ] || die "bench: $traces is not a folder"

if [ -z "$build" ]; then
  build=$root/build
  "$root/scripts/setup.sh" --build-only
  mkdir -p "$build"
  build_release >"$build/build.log" 2>&1 || die "bench: the build failed; see build/build.log"
fi
output=${output:-$build/bench}
mkdir -p "$output"
rm -f "$output"/bench_*.json "$output"/replay_*.json "$output"/table.json

# The table is made from the JSON files; the text output repeats them.
rounds=() seconds=0.2
if [ $smoke = yes ]; then rounds=(--rounds 1) seconds=0.001; fi
for bench in alone threads ledger pool start dlsym hook copy log; do
  say "bench: $bench"
  "$build/tests/bench/bench_$bench" --json "$output/bench_$bench.json" "${rounds[@]}" >"$output/text"
done
say "bench: parts"
"$build/tests/bench/bench_parts" --benchmark_min_time=$seconds --benchmark_out="$output/bench_parts.json" \
  --benchmark_out_format=json >"$output/text" 2>&1
for trace in ${traces:+"$traces"/*.trace "$traces"/*.trace.xz}; do
  [ -f "$trace" ] || continue
  name=$(basename "${trace%.xz}" .trace)
  say "bench: replay of $name"
  case $trace in
    *.xz) xz -dc "$trace" >"$output/trace" ;;
    *) cp "$trace" "$output/trace" ;;
  esac
  "$build/bin/pool_replay" --trace "$output/trace" --find-min --json >"$output/replay_$name.json"
done
rm -f "$output/trace"
[ -z "$traces" ] || compgen -G "$output/replay_*.json" >"$output/text" || die "bench: no trace in $traces"
rm -f "$output/text"
"$root/tests/bench/table.py" $strict "$output"
