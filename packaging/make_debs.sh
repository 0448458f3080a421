#!/bin/sh
# make_debs.sh OUT_FOLDER: builds latte, liblatteMAJOR.MINOR and liblatte-dev as Debian packages, for the system that this is. In build/package, like
# the wheel: what is compiled is the same but for one path. CMAKE_ARGS: more arguments for cmake.
set -eu
mkdir -p "$1"
out="$(cd "$1" && pwd)"
cd "$(dirname "$0")/.."
# The date of the change logs
SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}"
export SOURCE_DATE_EPOCH
xgrammar=OFF
[ -f build/xgrammar/installed ] && xgrammar=ON
# shellcheck disable=SC2086
cmake --preset package -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR="lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)" \
  -DCMAKE_SKIP_INSTALL_RPATH=ON -DLATTE_DEBIAN=ON -DLATTE_XGRAMMAR="$xgrammar" ${CMAKE_ARGS:-} >/dev/null
cmake --build --preset package
rm -f "$out"/*.deb
(cd build/package && cpack -G DEB -B "$out" >/dev/null)
rm -rf "$out/_CPack_Packages"
(cd "$out" && sha256sum -- *.deb >SHA256SUMS-deb)
ls -l "$out"/*.deb
