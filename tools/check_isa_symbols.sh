#!/bin/sh
# Fails if an object compiled for one instruction set (kernels/cpu/targets/<isa>.cc) defines
# a function that other files can see: the linker keeps one copy of an inline function, perhaps
# this one, for every processor.
#   usage: check_isa_symbols.sh LIBRARY
set -eu
members=$(ar t "$1" | grep -E '^(avx|amx)[0-9a-z_]*\.cc\.o$' || true)
if [ -z "$members" ]; then
  echo "$1: expected objects of files named <isa>.cc, found none" >&2
  exit 1
fi
status=0
for member in $members; do
  # T, W and i are functions visible outside the object: ordinary, weak and indirect ones.
  shared=$(nm -C --defined-only "$1" | sed -n "/^$member:/,/^\$/p" |
    grep -E '^[0-9a-f]+ [TWi] ' || true)
  if [ -n "$shared" ]; then
    printf '%s: expected no visible functions, found\n%s\n' "$member" "$shared" >&2
    status=1
  fi
done
exit $status
