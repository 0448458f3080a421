#!/bin/sh
# Runs each fuzz target, or the targets named as arguments, for FUZZ_SECONDS seconds (30). New inputs are kept in
# build/fuzz/corpus, failing inputs in build/fuzz/findings. Fails if any target finds something.
set -u
cd "$(dirname "$0")/.." || exit 1
seconds="${FUZZ_SECONDS:-30}"
all="safetensors config tokenizer tiktoken template tool_calls reasoning radix_tree prefix_file scheduler request http frame"
[ -x build/fuzz/fuzz_grammar ] && all="$all grammar"  # of a build with xgrammar
targets="${*:-$all}"
failed=""
for target in $targets; do
  case "$target" in
    tokenizer|tiktoken) dictionary=tokenizer ;;
    template) dictionary=jinja ;;
    request) dictionary=request ;;
    tool_calls|reasoning) dictionary=tool_calls ;;
    radix_tree|prefix_file|scheduler|http|frame) dictionary="" ;;
    *) dictionary=json ;;
  esac
  corpus="build/fuzz/corpus/$target"
  findings="build/fuzz/findings/$target"
  mkdir -p "$corpus" "$findings"
  echo "fuzz_$target: $seconds s"
  log="build/fuzz/$target.log"
  "build/fuzz/fuzz_$target" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -max_len=8192 \
    ${dictionary:+-dict="fuzz/dict/$dictionary.dict"} -artifact_prefix="$findings/" -print_final_stats=1 \
    "$corpus" "fuzz/corpus/$target" >"$log" 2>&1
  status=$?
  grep -E '(DONE|number_of_executed_units|average_exec_per_sec|slowest_unit_time_sec|peak_rss_mb)' "$log"
  if [ "$status" != 0 ]; then
    tail -n 60 "$log"
    failed="$failed $target"
  fi
done
[ -z "$failed" ] && exit 0
echo "FOUND SOMETHING:$failed; the inputs are in build/fuzz/findings"
exit 1
