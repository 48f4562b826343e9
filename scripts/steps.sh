# The steps that the scripts beside this file share; sourced, never run. Sets $root and $jobs.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=$(nproc 2>/dev/null || echo 2)
needed_cmake=3.25

# The cmake that setup.sh puts into build/tools where the distribution's is too old.
use_own_tools() {
  if [ -x "$root/build/tools/bin/cmake" ]; then PATH=$root/build/tools/bin:$PATH; fi
}
use_own_tools

say() { echo "$*" >&2; }
die() {
  say "$*"
  exit 1
}

cmake_version() { cmake --version | sed -n '1s/[^0-9]*//p'; }
cmake_is_new_enough() { printf '%s\n' "$needed_cmake" "$(cmake_version)" | sort -CV; }

# Warnings are errors with the compiler that the tree is kept clean for; a newer one may know more of them.
warnings_as_errors() {
  case $("${CXX:-g++}" -dumpversion 2>/dev/null) in
    12*) echo ON ;;
    *) echo OFF ;;
  esac
}

# A cache of compilations takes its word for what a source includes from the compiler, so that a miss costs no second
# reading, and is told that headers may be precompiled.
export CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
launcher() {
  if command -v ccache >/dev/null; then echo "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"; fi
}

# build_release [TARGET]: the Release build in build/, which every script uses; everything where no target is named.
build_release() {
  cmake -S "$root" -B "$root/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DRATION_TOGETHER=tests "-DRATION_WERROR=$(warnings_as_errors)" \
    $(launcher) >"$root/build/configure.log" 2>&1 || {
    cat "$root/build/configure.log" >&2
    die "build: the configuration failed"
  }
  cmake --build "$root/build" -j "$jobs" ${1:+--target "$1"}
}

# The pinned Python client of the tests, in build/venv. Where no package index answers (3) its test skips.
python_client() {
  local status=0
  "$root/tests/python_env.sh" "$1" || status=$?
  [ $status = 3 ] || return $status
  say "python client: its test is left out"
}

# run_step NAME COMMAND...: says what runs and how long it took; ends the script where it fails.
run_step() {
  local name=$1 started=$SECONDS
  shift
  say "== $name"
  "$@" || die "== $name: FAILED"
  say "== $name: ok ($((SECONDS - started)) s)"
}

# One seed for every property test of a run, printed, so that a failure can be repeated: RC_PARAMS=seed=N scripts/test.sh
seed_tests() {
  export RC_PARAMS=${RC_PARAMS:-seed=$((RANDOM * 32768 + RANDOM))}
  say "random tests: RC_PARAMS=$RC_PARAMS"
}
