#!/bin/sh
# install_packages.sh PURPOSE…: installs what tools/packages.txt lists for these purposes (build, grammar, mpi, test, browser, acceptance, lint, fuzz) and the
# machine lacks. Does nothing, fast, when all of it is there.
set -eu
list="$(dirname "$0")/packages.txt"
missing=""
for purpose in "$@"; do
  for package in $(sed -n "s/^$purpose //p" "$list"); do
    status="$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)"
    [ "$status" = installed ] || missing="$missing $package"
  done
done
[ -z "$missing" ] && exit 0

echo "Installing Debian packages:$missing" >&2
as_root=""
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "Run as root, or install these packages yourself." >&2; exit 1; }
  as_root=sudo
fi
$as_root apt-get update -q >&2
# shellcheck disable=SC2086  # a list of words
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -q --no-install-recommends $missing >&2
