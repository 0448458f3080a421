#!/bin/sh
# Fails if an object compiled for one instruction set (target_<isa>.cc) defines a symbol that another
# file could define too: the linker keeps one copy for every processor, perhaps this one.
#   usage: check_isa_symbols.sh LIBRARY
set -eu
members=$(ar t "$1" | grep '^target_.*\.o$' || true)
if [ -z "$members" ]; then
  echo "$1: expected objects of target_<isa>.cc, found none" >&2
  exit 1
fi
status=0
for member in $members; do
  isa=$(echo "$member" | sed 's/^target_\([a-z0-9]*\).*/\1/')
  # Upper-case types, and u, are visible outside the object; W, V and u are the ones merged.
  shared=$(nm -C --defined-only "$1" 2>/dev/null |
    sed -n "/^$member:/,/^\$/p" |
    grep -E '^[0-9a-f]+ [A-Zu] ' |
    grep -viE " [DRB] latte::cpu::k$isa\$" || true)
  if [ -n "$shared" ]; then
    printf '%s: only latte::cpu::k… may be visible outside it, found\n%s\n' "$member" "$shared" >&2
    status=1
  fi
done
exit $status
