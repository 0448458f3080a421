#!/bin/sh
# Runs all lints, even after one has failed, and reports each.
cd "$(dirname "$0")/.." || exit 1
failed=0
check() {
  name="$1"; shift
  if "$@"; then echo "$name: ok"; else echo "$name: FAILED"; failed=1; fi
}
formatted() { git ls-files --cached --others --exclude-standard '*.h' '*.cc' '*.c' '*.cuh' '*.cu' | xargs clang-format --dry-run -Werror; }
check format formatted
check length python3 tools/check_length.py
check layers python3 tools/check_layers.py
check docs python3 tools/check_docs.py
check words python3 tools/check_words.py
exit $failed
