# Steps that the scripts in this folder share; sourced, never run. Sets $root and $jobs.
# Build folders: build/ is the Release build, which every script uses; build-NAME/ is the preset NAME of CMakePresets.json.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=$(nproc 2>/dev/null || echo 2)
needed_cmake=3.25

# setup.sh installs a cmake into build/tools if the distribution's is too old.
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

# Warnings are errors only with g++ 12, for which the tree is kept free of them; newer versions warn about more.
warnings_as_errors() {
  case $("${CXX:-g++}" -dumpversion 2>/dev/null) in
    12*) echo ON ;;
    *) echo OFF ;;
  esac
}

# ccache: take the list of included files from the compiler, which avoids a second preprocessing on a miss, and allow
# precompiled headers.
export CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
launcher() {
  if command -v ccache >/dev/null; then echo "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"; fi
}

# configure PRESET [cmake option...]: the log is configure.log in the build folder, shown where it fails.
configure() {
  local preset=$1 folder=$root/build-$1
  [ "$preset" != release ] || folder=$root/build
  shift
  mkdir -p "$folder"
  cmake -S "$root" --preset "$preset" $(launcher) "$@" >"$folder/configure.log" 2>&1 || {
    cat "$folder/configure.log" >&2
    return 1
  }
}

# build_release [TARGET]: builds the target, or everything, in build/.
build_release() {
  configure release "-DRATION_WERROR=$(warnings_as_errors)" || die "build: the configuration failed"
  cmake --build "$root/build" -j "$jobs" ${1:+--target "$1"}
}

# Installs the pinned packages of the Python tests into build/venv. If no package index answers (status 3), those tests
# are skipped.
python_client() {
  local status=0
  "$root/tests/python_env.sh" "$1" || status=$?
  [ $status = 3 ] || return $status
  say "python client: not installed, its tests are skipped"
}

# run_step NAME COMMAND...: runs the command, reports its time, and ends the script if it fails.
run_step() {
  local name=$1 started=$SECONDS
  shift
  say "== $name"
  "$@" || die "== $name: FAILED"
  say "== $name: ok ($((SECONDS - started)) s)"
}

# One seed for all property tests of a run. It is printed, so that RC_PARAMS=seed=N scripts/test.sh repeats a failure.
seed_tests() {
  export RC_PARAMS=${RC_PARAMS:-seed=$((RANDOM * 32768 + RANDOM))}
  say "random tests: RC_PARAMS=$RC_PARAMS"
}
