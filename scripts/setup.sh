#!/usr/bin/env bash
# Installs missing dependencies with apt: scripts/setup.sh [--build-only | --packages | --engines]
# Debian 12 and 13, Ubuntu 22.04 and 24.04. Needs no network and changes nothing if nothing is missing.
# --build-only: leaves out what only the tests need. --packages, --engines: also what those long tests need.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/steps.sh"

build_packages=(g++ cmake ninja-build pkg-config libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev libncurses-dev zlib1g-dev libzstd-dev libdw-dev catch2
  libbenchmark-dev librapidcheck-dev xz-utils python3 libjs-dygraphs)
test_packages=(git groff-base bash-completion python3-venv python3-fastjsonschema clang clang-format clang-tidy libjemalloc2
  ffmpeg gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-bad hashcat)  # tests/clients
# Tests that need these are skipped, with a message, if they are absent: aarch64 under emulation, musl programs, pages, manual
# pages, completions. ccache only makes rebuilds faster. clang's sanitizers were part of clang itself before they became a package.
optional_packages=(qemu-user g++-aarch64-linux-gnu musl-tools ccache libclang-rt-dev chromium mandoc zsh fish)
engine_packages=(slurm-wlm munge libslurm-dev podman crun systemd)
package_packages=(debootstrap lintian proot qemu-user binutils)

build_only=no
packages=no
engines=no
for argument in "$@"; do
  case $argument in
    --build-only) build_only=yes ;;
    --packages) packages=yes ;;
    --engines) engines=yes ;;
    *) die "setup: unknown option '$argument' (known: --build-only, --packages, --engines)" ;;
  esac
done

installed() { [ "$(dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null)" = 'ii ' ]; }
offered() { [ -n "$(apt-cache policy "$1" 2>/dev/null | grep 'Candidate: [^(]')" ]; }

missing_of() {
  local package
  for package in "$@"; do
    installed "$package" || echo "$package"
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "setup: not root and no sudo; as root: $*"
  fi
}

apt() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 "$@" </dev/null; }

# If the distribution's cmake is too old, a newer one is installed into build/tools, which steps.sh puts on the PATH.
newer_cmake() {
  cmake_is_new_enough && return 0
  say "setup: cmake $(cmake_version) is older than $needed_cmake: a newer one goes to build/tools"
  installed python3-venv || apt install --no-install-recommends python3-venv >/dev/null
  python3 -m venv "$root/build/tools"
  "$root/build/tools/bin/pip" --quiet install "cmake>=$needed_cmake,<4"
  use_own_tools
  cmake_is_new_enough || die "setup: no cmake of at least $needed_cmake could be installed"
}

# Where the distribution has no libjs-dygraphs (Ubuntu 22.04), an older dygraphs with the same interface comes from a wheel, into
# build/tools.
dygraphs=$root/build/tools/dygraphs
dygraphs_from_a_wheel() {
  say "setup: no libjs-dygraphs here: dygraphs of a wheel goes to build/tools"
  installed python3-pip || apt install --no-install-recommends python3-pip >/dev/null
  python3 -m pip --quiet install --no-deps --target "$dygraphs" dygraphs==0.0.14
}

# Optional packages are tried once for each checkout: if one cannot be installed, later runs stay silent and offline.
install_optional() {
  local asked=$root/build/.optional_packages wanted=() package
  [ "$(cat "$asked" 2>/dev/null)" = "${optional_packages[*]}" ] && return 0
  for package in $(missing_of "${optional_packages[@]}"); do
    if offered "$package"; then wanted+=("$package"); fi
  done
  if [ ${#wanted[@]} -gt 0 ]; then
    say "setup: installing, optional: ${wanted[*]}"
    apt install --no-install-recommends "${wanted[@]}" >/dev/null || say "setup: not installed; tests that need them are skipped"
  fi
  mkdir -p "$root/build" && echo "${optional_packages[*]}" >"$asked"
}

main() {
  command -v apt-get >/dev/null || die "setup: no apt-get here; install these by hand: ${build_packages[*]} ${test_packages[*]}"
  local wanted=("${build_packages[@]}") missing
  [ $build_only = yes ] || wanted+=("${test_packages[@]}")
  [ $packages = no ] || wanted+=("${package_packages[@]}")
  [ $engines = no ] || wanted+=("${engine_packages[@]}")
  [ ! -d "$dygraphs" ] || mapfile -t wanted < <(printf '%s\n' "${wanted[@]}" | grep -vx libjs-dygraphs)
  mapfile -t missing < <(missing_of "${wanted[@]}")
  if [ ${#missing[@]} -gt 0 ]; then
    say "setup: installing ${missing[*]}"
    apt update
    if [[ " ${missing[*]} " = *" libjs-dygraphs "* ]] && ! offered libjs-dygraphs; then
      dygraphs_from_a_wheel
      mapfile -t missing < <(printf '%s\n' "${missing[@]}" | grep -vx libjs-dygraphs)
    fi
    [ ${#missing[@]} -eq 0 ] || apt install --no-install-recommends "${missing[@]}" >/dev/null
  fi
  newer_cmake
  [ $build_only = yes ] || install_optional
  say "setup: all dependencies are installed"
}

main
