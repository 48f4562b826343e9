#!/usr/bin/env bash
# Runs what only a GPU can answer, and writes the answers as JSON: scripts/gpu-check.sh [OPTION...], tests/gpu/README.md
# --help lists the options. Without --prebuilt FOLDER it first builds in build/ what is needed, but not for a mistake,
# --help or --list. gpu-check.sh --build, alone, builds only.
# Exit status: 0 nothing failed, 1 something did, 2 usage, 3 the build failed, 77 there is no device.
set -eu
. "$(dirname "$0")/steps.sh"

if [ "$*" = --build ]; then
  "$root/scripts/setup.sh" --build-only
  mkdir -p "$root/build"
  build_release gpu_check >"$root/build/build.log" 2>&1 || die "gpu-check: the build failed; see build/build.log"
  exit
fi

# A machine may have no other Python than that of its frameworks.
if ! command -v python3 >/dev/null; then
  for python in /opt/*/.venv/bin/python3; do PATH=$PATH:$(dirname "$python"); done
fi
command -v python3 >/dev/null || "$root/scripts/setup.sh" --build-only || exit 3
exec python3 -B "$root/tests/gpu/check.py" "$@"
