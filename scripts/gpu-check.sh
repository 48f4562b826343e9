#!/usr/bin/env bash
# Runs what only a GPU can answer, and writes the answers as JSON: scripts/gpu-check.sh [OPTION...], tests/gpu/README.md
#   --sim              over the simulated driver, which tests the check itself
#   --prebuilt FOLDER  a build folder, or one that --pack has made; otherwise builds in build/ what is needed
#   --pack FOLDER      copies what a machine without a build needs, and runs nothing
#   --full  --out FILE  --only REGEX  --skip REGEX  --seconds N  --raw FOLDER  --python FILE  --list: see tests/gpu/check.py
# Exit status: 0 nothing failed, 1 something did, 2 usage, 77 there is no device.
set -eu
. "$(dirname "$0")/steps.sh"

# A machine may have no other Python than that of its frameworks.
if ! command -v python3 >/dev/null; then
  for python in /opt/*/.venv/bin/python3; do PATH=$PATH:$(dirname "$python"); done
fi

for argument in "$@"; do
  case $argument in
    --prebuilt | --prebuilt=* | -h | --help) exec python3 -B "$root/tests/gpu/check.py" "$@" ;;
  esac
done
"$root/scripts/setup.sh" --build-only
mkdir -p "$root/build"
build_release gpu_check >"$root/build/build.log" 2>&1 || die "gpu-check: the build failed; see build/build.log"
exec python3 -B "$root/tests/gpu/check.py" --prebuilt "$root/build" "$@"
