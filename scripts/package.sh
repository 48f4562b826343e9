#!/usr/bin/env bash
# Builds packages of Ration that need glibc 2.28 and nothing else: scripts/package.sh [--work FOLDER] [x86_64 | aarch64]...
# Writes for each machine (default: both) a wheel, a Debian package and a relocatable archive, with SHA256SUMS, into dist/.
# zig, from PyPI, is the compiler: its clang, and glibc's names as of 2.28. Static libraries and headers come from this
# distribution's packages for the machine. Two builds of one commit are the same, bit for bit, on one release of the
# distribution. --work: build there, and write into FOLDER/dist.
set -eu
. "$(dirname "$0")/steps.sh"

glibc=2.28
work=$root/build/package
dist=$root/dist
declare -A debian_machine=([x86_64]=amd64 [aarch64]=arm64)
# The shared libraries are named for CMake, which wants to see them; nothing is linked with them.
linked=(zlib1g-dev libzstd-dev libtinfo6 libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev)
packages=(libtinfo6 zlib1g-dev libzstd-dev libncurses-dev libdw-dev libelf-dev libfmt-dev libfmt9 libspdlog-dev
  nlohmann-json3-dev libcli11-dev libjs-dygraphs)

if [ "${1:-}" = --work ]; then
  mkdir -p "$2"
  work=$(cd "$2" && pwd)
  dist=$work/dist
  shift 2
fi
machines=("$@")
[ $# -gt 0 ] || machines=(x86_64 aarch64)
for machine in "${machines[@]}"; do
  [ -n "${debian_machine[$machine]:-}" ] || die "package: unknown machine '$machine' (known: x86_64, aarch64)"
done

zig=''
install_compiler() {
  if [ ! -x "$work/python/bin/python" ]; then python3 -m venv "$work/python"; fi
  "$work/python/bin/pip" --quiet install -r "$root/scripts/package/requirements.txt"
  zig=$("$work/python/bin/python" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')/zig
}

# write_tools MACHINE: the compilers, as CMake wants them.
write_tools() {
  local tools=$work/$1/tools tool
  mkdir -p "$tools"
  for tool in cc c++; do
    printf '#!/bin/sh\nexec "%s" %s -target %s-linux-gnu.%s -fno-sanitize=undefined "$@"\n' \
      "$zig" "$tool" "$1" "$glibc" >"$tools/$tool"
  done
  for tool in ar ranlib; do printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$zig" "$tool" >"$tools/$tool"; done
  chmod +x "$tools"/*
}

# fetch_libraries MACHINE: unpacks the packages into root/, with lists of their own, so that this machine's stay as they are.
fetch_libraries() {
  local folder=$work/$1 machine=${debian_machine[$1]} package options
  [ "$(cat "$folder/fetched" 2>/dev/null)" != "${packages[*]}" ] || return 0
  rm -rf "$folder/root" "$folder/debs"
  mkdir -p "$folder/root" "$folder/debs" "$folder/lists/partial" "$folder/archives/partial"
  options=(-qq -o "Dir::State::lists=$folder/lists" -o "Dir::Cache::archives=$folder/archives"
    -o "Dir::Cache::pkgcache=" -o "Dir::Cache::srcpkgcache=" -o Dir::State::status=/dev/null
    -o "APT::Architecture=$machine" -o "APT::Architectures=$machine" -o APT::Sandbox::User= -o Acquire::Retries=3)
  apt-get "${options[@]}" update || return 1
  (cd "$folder/debs" && apt-get "${options[@]}" download "${packages[@]}") || return 1
  for package in "$folder"/debs/*.deb; do dpkg -x "$package" "$folder/root" || return 1; done
  find "$folder/root" -name 'lib*.so*' ! -name 'libfmt*' -delete
  echo "${packages[*]}" >"$folder/fetched"
}

# The core is optimised as a whole: clang's pairs cost 5 % more than g++'s otherwise, and 5 % less of that with vectors of two.
compile() {
  local folder=$work/$1
  cmake -G Ninja -S "$root" -B "$folder/build" -DCMAKE_TOOLCHAIN_FILE="$root/scripts/package/toolchain.cmake" \
    -DRATION_PACKAGE_FOLDER="$folder" -DRATION_PACKAGE_MACHINE="$1" -DCMAKE_BUILD_TYPE=Release -DRATION_TESTS=OFF \
    -DRATION_HOST_COMMAND="$root/build/bin/ration" \
    -DCMAKE_C_FLAGS="-ffile-prefix-map=$root=." \
    -DCMAKE_CXX_FLAGS="-ffile-prefix-map=$root=. -ffile-prefix-map=$folder/root= -flto -fno-slp-vectorize" \
    -DCMAKE_SHARED_LINKER_FLAGS=-s -DCMAKE_EXE_LINKER_FLAGS="-s -pie" >"$folder/configure.log" 2>&1 || {
    cat "$folder/configure.log" >&2
    return 1
  }
  cmake --build "$folder/build" -j "$jobs" >"$folder/build.log" 2>&1 || {
    tail -50 "$folder/build.log" >&2
    return 1
  }
  rm -rf "$folder/stage"
  DESTDIR='' cmake --install "$folder/build" --prefix "$folder/stage/$archive-$1" >"$folder/install.log" || return 1
  local documents=$folder/stage/$archive-$1/share/doc/ration
  write_notices "$folder" >>"$documents/third_party_notices.txt"
}

# write_notices FOLDER: of what is linked statically.
write_notices() {
  local package
  for package in "${linked[@]}"; do
    printf '\n\n==== Debian package %s, linked statically\n\n' "$package"
    cat "$1/root/usr/share/doc/$package/copyright" || return 1
  done
  printf "\n\n==== LLVM's C++ library, unwinder and compiler runtime, linked statically\n\n"
  cat "$(dirname "$zig")/lib/libcxx/LICENSE.TXT" || return 1
  printf "\n\n==== zig's compiler runtime, linked statically\n\n"
  cat "$(dirname "$zig")/LICENSE"
}

# The command and the library load, and natively a limit is what it should be. Another machine's are run where qemu-user is
# installed, which cannot run what they start themselves.
try_out() {
  local stage=$work/$1/stage/$archive-$1
  if [ "$1" = "$(uname -m)" ]; then
    LD_PRELOAD=$stage/lib/libration.so "$stage/bin/ration" --version || return 1
    "$stage/bin/ration" env --sim 8GiB --limit 25% --json >"$work/$1/env.json" || return 1
    grep -q '"limit": 2147483648' "$work/$1/env.json" || return 1
  elif command -v "qemu-$1" >/dev/null; then
    "qemu-$1" -L "/usr/$1-linux-gnu" -E "LD_PRELOAD=$stage/lib/libration.so" "$stage/bin/ration" --version
  else
    say "package: no qemu-$1, so the archive of $1 was not run"
  fi
}

write_archive() {
  tar --sort=name --owner=0 --group=0 --numeric-owner --mode='u+w,go-w,a+rX' --mtime="@$SOURCE_DATE_EPOCH" --format=gnu \
    -C "$work/$1/stage" -cf - "$archive-$1" | xz -6 -T1 >"$dist/$archive-$1.tar.xz"
}

# A wheel holds no links, and a copy of a driver would be a second driver in its process: libraries that need the first one
# stand for the links.
write_forwarders() {
  local link target
  rm -rf "$work/$1/wheel"
  cp -a "$work/$1/stage/$archive-$1" "$work/$1/wheel"
  find "$work/$1/wheel" -type l -name '*.so' | while read -r link; do
    target=$(readlink "$link")
    rm "$link"
    "$work/$1/tools/cc" -shared -s -o "$link" -Wl,-soname,"$(basename "$link")" -Wl,--no-as-needed -L"$(dirname "$link")" \
      -l:"$target" -x c /dev/null || return 1
  done
}

write_wheel() {
  write_forwarders "$1" || return 1
  "$root/scripts/package/wheel.py" "$work/$1/wheel" "$root/shim/python/ration_gpu" "$version" "manylinux_2_28_$1" "$dist" || return 1
  "$work/python/bin/auditwheel" show "$dist/ration_gpu-$version-py3-none-manylinux_2_28_$1.whl" >"$work/$1/auditwheel.log" || return 1
  grep -q "manylinux_2_[0-9]*_$1" "$work/$1/auditwheel.log"
}

write_deb() {
  "$root/scripts/package/deb.py" "$work/$1/stage/$archive-$1" "$version" "${debian_machine[$1]}" "$work/$1/deb" "$dist"
}

"$root/scripts/setup.sh" --build-only
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
export SOURCE_DATE_EPOCH ZIG_GLOBAL_CACHE_DIR=$work/cache ZIG_LOCAL_CACHE_DIR=$work/cache
version=$(sed -n 's/^project(ration VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
archive=ration-$version
mkdir -p "$work" "$dist"
run_step "compiler" install_compiler
run_step "command that writes the manual" build_release ration
for machine in "${machines[@]}"; do
  rm -f "$dist/$archive-$machine.tar.xz" "$dist"/*"_$machine.whl" "$dist/"*"_${debian_machine[$machine]}.deb"
  run_step "libraries for $machine" fetch_libraries "$machine"
  write_tools "$machine"
  run_step "build for $machine" compile "$machine"
  run_step "needs of $machine" "$root/scripts/package/check_elf.py" "$work/$machine/stage"
  run_step "run for $machine" try_out "$machine"
  run_step "archive for $machine" write_archive "$machine"
  run_step "wheel for $machine" write_wheel "$machine"
  run_step "Debian package for $machine" write_deb "$machine"
done
(cd "$dist" && sha256sum -- *.whl *.deb *.tar.xz >SHA256SUMS)
cat "$dist/SHA256SUMS"
