#!/usr/bin/env bash
# Fuzzes the pool, pool_replay's readers and the reader of settings, SECONDS each: fuzz.sh BUILD_FOLDER SECONDS [libFuzzer option...]
# Findings are written to BUILD_FOLDER. Exit: 77 (skipped) without clang and its libFuzzer.
set -eu
[ $# -ge 2 ] || { echo "usage: fuzz.sh BUILD_FOLDER SECONDS [libFuzzer option...]" >&2; exit 2; }
build=$1 seconds=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)

command -v clang++ >/dev/null || { echo "fuzz: skipped: no clang++" >&2; exit 77; }
runtime=$(clang++ -print-file-name="libclang_rt.fuzzer-$(uname -m).a")
[ -e "$runtime" ] || runtime=$(clang++ -print-runtime-dir)/libclang_rt.fuzzer-$(uname -m).a
[ -e "$runtime" ] || { echo "fuzz: skipped: clang++ has no libFuzzer" >&2; exit 77; }

cmake -S "$here/../.." -B "$build" -G Ninja -DRATION_FUZZ=ON -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang >/dev/null
cmake --build "$build" --target libfuzzer_pool libfuzzer_trace libfuzzer_config

for target in pool trace config; do
  seeds=$here/corpus/$target
  found=$build/found_$target
  mkdir -p "$found"
  if [ $target = trace ]; then  # the repository has only text seeds
    for seed in "$seeds"/*; do xz --stdout "$seed" >"$found/$(basename "$seed").xz"; done
  fi
  most=$([ $target = pool ] && echo 1024 || echo 4096)  # bytes: the model compares every command with all live blocks
  echo "== $target, ${seconds} s"
  (cd "$build" && "bin/libfuzzer_$target" -max_total_time="$seconds" -max_len="$most" -timeout=20 -print_final_stats=1 "$@" \
    "$found" "$seeds")
done
