#!/bin/sh
# install_packages.sh PURPOSE…: installs what tools/packages.txt lists for these purposes (build, grammar, package, mpi, test, browser, acceptance, lint, fuzz) and the
# machine lacks. Does nothing, fast, when all of it is there. Without apt-get it names the packages, and fails only if a
# tool of the build is missing: CMake names libraries.
set -eu
list="$(dirname "$0")/packages.txt"

# of PURPOSE: its packages, "a|b" where there is a choice
of() {
  sed -n "s/^$1 //p" "$list"
}

without_apt() {
  absent=""
  for tool in cmake ninja pkg-config; do
    command -v "$tool" >/dev/null || absent="$absent $tool"
  done
  command -v "${CXX:-c++}" >/dev/null || absent="$absent ${CXX:-c++}"
  if [ -n "$absent" ] || [ ! -f "$(dirname "$0")/../build/release/build.ninja" ]; then
    echo "This system has no apt-get, so nothing is installed. Needed, by their names in Debian (docs/install.md has others):" >&2
    for purpose in "$@"; do
      echo "  $purpose: $(of "$purpose" | sed 's/|.*//' | tr '\n' ' ')" >&2
    done
  fi
  [ -z "$absent" ] && exit 0
  echo "Not found:$absent. Install them and run the same command again." >&2
  exit 1
}

is_installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null || true)" = installed ]
}

# one_of "a|b": the first that is installed; else the first that the system offers; else a
one_of() {
  names="$(echo "$1" | tr '|' ' ')"
  for name in $names; do
    is_installed "$name" && echo "$name" && return
  done
  for name in $names; do
    # A name that other packages only mention has no candidate.
    apt-cache policy "$name" 2>/dev/null | grep -q "Candidate: [^(]" && echo "$name" && return
  done
  echo "${1%%|*}"
}

missing_of() {
  for purpose in "$@"; do
    for choice in $(of "$purpose"); do
      package="$(one_of "$choice")"
      is_installed "$package" || printf ' %s' "$package"
    done
  done
}

command -v apt-get >/dev/null && command -v dpkg-query >/dev/null || without_apt "$@"
[ -z "$(missing_of "$@")" ] && exit 0

as_root=""
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "Packages are missing, and this user may not install them. Run as root:" >&2
    echo "  apt-get update && apt-get install -y --no-install-recommends$(missing_of "$@")" >&2
    exit 1
  fi
  as_root=sudo
fi
$as_root apt-get update -q >&2
missing="$(missing_of "$@")"  # with the new lists the choice may be another one
echo "Installing Debian packages:$missing" >&2
# shellcheck disable=SC2086  # a list of words
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -q --no-install-recommends $missing >&2
