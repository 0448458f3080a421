#!/bin/sh
# configure.sh PRESET [CMAKE_ARGUMENT…]: configures build/PRESET if it is new, if arguments are given, or if Open MPI, xgrammar
# or a library of the web page has come or gone since the last time. Otherwise does nothing, fast. Refuses a folder that was configured
# at another place, because a build there would write to that place. A new folder is configured without tests and with warnings as
# errors if DEVELOPER=ON.
set -eu
cd "$(dirname "$0")/.."
preset="$1"
shift
folder="build/$preset"
cache="$folder/CMakeCache.txt"
state="$folder/optional_parts.txt"

if [ -f "$cache" ]; then
  home="$(sed -n 's/^CMAKE_CACHEFILE_DIR:INTERNAL=//p' "$cache")"
  if ! [ "$home" -ef "$folder" ]; then
    echo "$folder belongs to $home: it was copied or moved, and a build would write there. Remove it (rm -r $folder) and run" \
      "the same command again." >&2
    exit 2
  fi
fi

xgrammar=OFF
[ -f build/xgrammar/installed ] && xgrammar=ON
now="mpi $(command -v mpicc || echo OFF)
xgrammar $xgrammar
page$(for folder in javascript/marked nodejs/prismjs javascript/katex; do [ ! -d "/usr/share/$folder" ] || printf ' %s' "$folder"; done)"
before="$(cat "$state" 2>/dev/null || true)"
if [ -f "$folder/build.ninja" ] && [ "$before" = "$now" ]; then
  [ $# = 0 ] || cmake --preset "$preset" "$@" >/dev/null
  exit 0
fi
if [ -f "$folder/build.ninja" ]; then
  cmake --preset "$preset" -U 'MPI_*' -DLATTE_XGRAMMAR="$xgrammar" "$@" >/dev/null
else
  cmake --preset "$preset" -DLATTE_BUILD_TESTS=OFF -DLATTE_DEVELOPER_MODE="${DEVELOPER:-OFF}" -DLATTE_XGRAMMAR="$xgrammar" "$@"
fi
printf '%s\n' "$now" >"$state"
