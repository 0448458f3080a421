#!/bin/sh
# get_xgrammar.sh FOLDER: fetches xgrammar from PyPI, compiles it, and installs the library and its headers under FOLDER.
# Does nothing if they are there. About two minutes on two cores. Third-party code under Apache-2.0.
set -eu
version=0.2.8
hash=8305646fd2b319d6c3003f51a1665e54cbbe9cba1fb636bc41d0b46434ccbb80
mkdir -p "$1"
folder="$(cd "$1" && pwd)"
stamp="$folder/installed"
if [ "$(cat "$stamp" 2>/dev/null || true)" = "$version $hash" ]; then
  exit 0
fi

echo "Fetching and compiling xgrammar $version, for about $((4 / $(nproc) + 1)) minutes" >&2
work="$folder/work"
rm -rf "$work" "$stamp"
mkdir -p "$work/build"
trap 'rm -rf "$work"' EXIT
# Its hash is compared before anything of it runs, and CMake builds it without Python's build tools, which are not pinned.
archive="$("$(dirname "$0")/fetch_archive.py" xgrammar "$version" "$hash" "$work")"
tar -xzf "$archive" -C "$work"

# The sources read this file first; their own turns the Python bindings on, whatever the command line says.
echo "set(XGRAMMAR_BUILD_PYTHON_BINDINGS OFF)" >"$work/build/config.cmake"
# Messages go to Latte (src/grammar/xgrammar_log.cc), not to stderr. Without link-time optimisation any compiler can link it.
flags="-Wno-error -fno-lto -DXGRAMMAR_LOG_CUSTOMIZE=1"
cmake -S "$work/xgrammar-$version" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS="$flags" \
  -DCMAKE_INSTALL_PREFIX="$folder" -DCMAKE_INSTALL_LIBDIR=lib >"$work/configure.log"
cmake --build "$work/build" >"$work/build.log" || { tail -n 40 "$work/build.log" >&2; exit 1; }
cmake --install "$work/build" >/dev/null
cp "$work/xgrammar-$version/LICENSE" "$work/xgrammar-$version/NOTICE" "$folder/"
echo "$version $hash" >"$stamp"
