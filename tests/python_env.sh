#!/usr/bin/env bash
# Makes the Python environment of the tests: tests/python_env.sh BUILD_DIR puts it at BUILD_DIR/venv, with exactly what
# tests/requirements.txt pins. Does nothing, and needs no network, when that is already there. Prints its interpreter.
# Ends with 3 where no package index answers, 1 on any other failure.
set -eu
[ $# = 1 ] || { echo "usage: python_env.sh BUILD_DIR" >&2; exit 2; }
requirements=$(cd "$(dirname "$0")" && pwd)/requirements.txt
mkdir -p "$1"
environment=$(cd "$1" && pwd)/venv
python=$environment/bin/python3

# Two tests may ask at once; the second waits and finds the work done.
exec 9>"$environment.lock"
flock 9

# The list that was installed is kept beside it, written last: a broken installation is never taken for a whole one.
if ! cmp -s "$requirements" "$environment/requirements.txt" || ! "$python" -c '' 2>/dev/null; then
  rm -rf "$environment"
  python3 -m venv "$environment" >&2 || { echo "python_env: python3 -m venv failed; is python3-venv installed?" >&2; exit 1; }
  pip() { "$environment/bin/pip" --quiet --disable-pip-version-check "$@" >&2; }
  if ! pip install --only-binary :all: -r "$requirements"; then
    # Whether the smallest of them can be had, from no cache, tells a list that is wrong from an index that is not there.
    smallest=$(grep '^packaging==' "$requirements")
    if pip download --no-cache-dir --no-deps --dest "$environment" "$smallest"; then
      echo "python_env: the packages of tests/requirements.txt cannot be installed" >&2
      exit 1
    fi
    echo "python_env: no package index answers" >&2
    exit 3
  fi
  cp "$requirements" "$environment/requirements.txt"
fi
echo "$python"
