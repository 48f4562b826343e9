#!/usr/bin/env bash
# The checks that a change must pass: scripts/check.sh [--lint]
# --lint: format, layers, house rules with the links of documents, generated tables; builds nothing. Without it also exports,
# clang-tidy, and the quick tests, built by clang with AddressSanitizer and UndefinedBehaviorSanitizer (build-asan/) and by
# g++ with ThreadSanitizer (build-tsan/).
set -eu
. "$(dirname "$0")/steps.sh"
cd "$root"

lint=no
for argument in "$@"; do
  case $argument in
    --lint) lint=yes ;;
    *) die "check: unknown option '$argument' (known: --lint)" ;;
  esac
done

sources() { git ls-files --cached --others --exclude-standard -- "$@" | sort -u; }

# The .inc tables are laid out by hand: outside a declaration clang-format reads a pointer as a multiplication.
check_format() { sources '*.h' '*.cc' '*.c' | xargs clang-format --dry-run -Werror; }

# Each of these first proves, by its self-test, that it can fail.
check_layers() { scripts/check_layers.py --self-test && scripts/check_layers.py; }
check_exports() { scripts/check_exports.py --self-test && scripts/check_exports.py build; }
check_rules() { scripts/check_rules.py --self-test && scripts/check_rules.py; }

# Uses the compile commands of the asan build, which must exist.
check_tidy() { scripts/tidy.py build-asan "$jobs"; }

preset() {
  configure "$1" || return 1
  cmake --build --preset "$1" -j "$jobs" -- -k 0 && ctest --preset "$1" -j "$jobs"
}

[ $lint = yes ] || "$root/scripts/setup.sh"
mkdir -p build
run_step "format" check_format
run_step "layers" check_layers
run_step "house rules" check_rules
run_step "tables" scripts/tables.py --check
[ $lint = yes ] && exit 0
run_step "release build" build_release
run_step "exports" check_exports

seed_tests
run_step "asan" preset asan
run_step "clang-tidy" check_tidy
run_step "tsan" preset tsan
