#!/usr/bin/env bash
# Creates a Python environment of the tests in BUILD_DIR/NAME and prints its interpreter:
# tests/python_env.sh BUILD_DIR [REQUIREMENTS NAME]
# It contains exactly the packages that REQUIREMENTS pins (tests/requirements.txt, in venv). If it is up to date, nothing changes
# and no network is needed. Exit status: 3 if no package index answers, 1 on any other failure.
set -eu
[ $# = 1 ] || [ $# = 3 ] || { echo "usage: python_env.sh BUILD_DIR [REQUIREMENTS NAME]" >&2; exit 2; }
requirements=${2:-$(cd "$(dirname "$0")" && pwd)/requirements.txt}
mkdir -p "$1"
environment=$(cd "$1" && pwd)/${3:-venv}
python=$environment/bin/python3

# Two tests may call this at once: the second one waits and finds the environment complete.
exec 9>"$environment.lock"
flock 9

# The installed list is copied into the environment last, so that a partial installation is never taken for a complete one.
if ! cmp -s "$requirements" "$environment/requirements.txt" || ! "$python" -c '' 2>/dev/null; then
  rm -rf "$environment"
  python3 -m venv "$environment" >&2 || { echo "python_env: python3 -m venv failed; is python3-venv installed?" >&2; exit 1; }
  pip() { "$environment/bin/pip" --quiet --disable-pip-version-check "$@" >&2; }
  if ! pip install --only-binary :all: -r "$requirements"; then
    # If the smallest package can be downloaded without a cache, the list is wrong; if not, there is no index.
    smallest=$(grep '^packaging==' "$requirements")
    if pip download --no-cache-dir --no-deps --dest "$environment" "$smallest"; then
      echo "python_env: the packages of $requirements cannot be installed" >&2
      exit 1
    fi
    echo "python_env: no package index answers" >&2
    exit 3
  fi
  cp "$requirements" "$environment/requirements.txt"
fi
echo "$python"
