#!/bin/sh
# Runs each fuzz target, or the targets named as arguments, for FUZZ_SECONDS seconds (30), as many at once as there are CPUs.
# New inputs are kept in build/fuzz/corpus, failing inputs in build/fuzz/findings. Fails if any target finds something.
set -u
cd "$(dirname "$0")/.." || exit 1
seconds="${FUZZ_SECONDS:-30}"
all="safetensors gguf config tokenizer tiktoken template tool_calls reasoning radix_tree prefix_file scheduler request http frame"
[ -x build/fuzz/fuzz_grammar ] && all="$all grammar"  # of a build with xgrammar
targets="${*:-$all}"

run_target() {
  target="$1"
  case "$target" in
    tokenizer|tiktoken) dictionary=tokenizer ;;
    template) dictionary=jinja ;;
    request) dictionary=request ;;
    tool_calls|reasoning) dictionary=tool_calls ;;
    gguf|radix_tree|prefix_file|scheduler|http|frame) dictionary="" ;;
    *) dictionary=json ;;
  esac
  memory=2048
  [ "$target" = grammar ] && memory=768
  [ "$target" = gguf ] && memory=1  # a small multiple of the longest input
  corpus="build/fuzz/corpus/$target"
  findings="build/fuzz/findings/$target"
  mkdir -p "$corpus" "$findings"
  log="build/fuzz/$target.log"
  "build/fuzz/fuzz_$target" -max_total_time="$seconds" -rss_limit_mb=2048 -malloc_limit_mb="$memory" -timeout=60 -max_len=8192 \
    ${dictionary:+-dict="fuzz/dict/$dictionary.dict"} -artifact_prefix="$findings/" -print_final_stats=1 \
    "$corpus" "fuzz/corpus/$target" >"$log" 2>&1
  echo "$?" >"build/fuzz/$target.status"
}

report_target() {
  target="$1"
  log="build/fuzz/$target.log"
  echo "fuzz_$target: $seconds s"
  grep -E '(DONE|number_of_executed_units|average_exec_per_sec|slowest_unit_time_sec|peak_rss_mb)' "$log"
  [ "$(cat "build/fuzz/$target.status" 2>/dev/null)" = 0 ] && return
  tail -n 60 "$log"
  failed="$failed $target"
}

# Batches of as many targets as CPUs.
failed=""
batch=""
count=0
finish_batch() {
  wait
  for target in $batch; do
    report_target "$target"
  done
  batch=""
  count=0
}
for target in $targets; do
  rm -f "build/fuzz/$target.status"
  run_target "$target" &
  batch="$batch $target"
  count=$((count + 1))
  [ "$count" -ge "$(nproc)" ] && finish_batch
done
finish_batch
[ -z "$failed" ] && exit 0
echo "FOUND SOMETHING:$failed; the inputs are in build/fuzz/findings"
exit 1
