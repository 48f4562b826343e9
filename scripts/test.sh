#!/usr/bin/env bash
# Installs dependencies, builds in build/ and runs the quick tests: scripts/test.sh [ctest options]
set -eu
. "$(dirname "$0")/steps.sh"
"$root/scripts/setup.sh"
mkdir -p "$root/build"
run_step "build" build_release
run_step "python client" python_client "$root/build"
seed_tests
cd "$root/build"
exec ctest -L quick -j "$jobs" --timeout 300 --output-on-failure --no-tests=error "$@"
