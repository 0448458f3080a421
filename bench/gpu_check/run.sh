#!/usr/bin/env bash
# run.sh BUNDLE [OUT [short]]: the first checks of Latte on an NVIDIA GPU, in order of what they tell in a minute. BUNDLE is a folder of
# packaging/bundle-cuda.sh. Writes lines of JSON to OUT (default: standard output) as soon as they are known, each with "part", "case" and
# "ok". Every part has its own time limit, and a part that fails does not stop the next. Needs bash, g++ and nvcc; nothing from a network.
# LATTE_CUDA_DRIVER: another driver library, such as the emulated one. short: without the conformance tests. Exit code 1 if anything failed.
set -u
bundle="$(realpath "$1")"
out="${2:-/dev/stdout}"
root="$(realpath "$(dirname "$0")/../..")"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
failed=0
export LD_LIBRARY_PATH="$bundle/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
emulated="$bundle/libcuda_emulated.so"
nvcc="$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)"

say() {  # say PART CASE OK [MORE]: one line
  printf '{"part": "%s", "case": "%s", "ok": %s%s}\n' "$1" "$2" "$3" "${4:-}" >>"$out"
  [ "$3" = true ] || failed=1
}
quoted() {  # the last words of a log, as the inside of a JSON string
  tail -c 300 "$1" | tr '\n"\\\t' "  ' " | tr -d '\000-\037'
}
check() {  # check SECONDS PART CASE COMMAND…: the command succeeds in time
  local limit="$1" part="$2" name="$3" started ok=true
  shift 3
  started="$(date +%s.%N)"
  timeout "$limit" "$@" >"$scratch/log" 2>&1 || ok=false
  local seconds
  seconds="$(echo "$(date +%s.%N) $started" | awk '{printf "%.2f", $1 - $2}')"
  if [ $ok = true ]; then say "$part" "$name" true ", \"seconds\": $seconds"; else
    say "$part" "$name" false ", \"seconds\": $seconds, \"log\": \"$(quoted "$scratch/log")\""
  fi
}

gpu="$(nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,memory.total --format=csv,noheader 2>/dev/null | head -1)"
say machine "${gpu:-no nvidia-smi}" true ", \"commit\": \"$(cat "$bundle/commit" 2>/dev/null)\""

# The words: a GPU writes the bits that the emulator writes.
check 60 words "probes compiled" "$nvcc" -std=c++20 -O3 --expt-relaxed-constexpr -I "$root" -gencode arch=compute_90,code=sm_90 \
  -gencode arch=compute_80,code=compute_80 -fatbin -o "$scratch/probes.fatbin" "$root/bench/gpu_check/probes.cu"
check 60 words "host program compiled" g++ -std=c++20 -O2 -I "$root" "$root/bench/gpu_check/words.cc" -o "$scratch/words" -ldl
LATTE_CUDA_DRIVER="$emulated" timeout 60 "$scratch/words" "$scratch/probes.fatbin" >"$scratch/expected" 2>"$scratch/log" ||
  say words "emulator" false ", \"log\": \"$(quoted "$scratch/log")\""
timeout 60 "$scratch/words" "$scratch/probes.fatbin" >"$scratch/found" 2>"$scratch/log" ||
  say words "probes run" false ", \"log\": \"$(quoted "$scratch/log")\""
for probe in $(cut -d' ' -f1 "$scratch/expected" | uniq); do
  wrong="$(diff <(grep "^$probe " "$scratch/expected") <(grep "^$probe " "$scratch/found") | grep -c '^<')"
  first="$(diff <(grep "^$probe " "$scratch/expected") <(grep "^$probe " "$scratch/found") | grep -m2 '^[<>]' | tr '\n' ' ' | tr -d '"\\')"
  [ "$wrong" = 0 ] && say words "$probe" true || say words "$probe" false ", \"lanes\": $wrong, \"first\": \"$first\""
done
[ -n "${LATTE_CUDA_DRIVER:-}" ] || timeout 60 "$scratch/words" --times "$scratch/probes.fatbin" 2>"$scratch/log" | tee -a "$out" >/dev/null

tokens=24 micro_tokens=16
[ "${3:-}" != short ] || tokens=4 micro_tokens=1
tiny="$root/models/tiny"
check 30 model "v3-micro is made" "$bundle/latte" synth "$scratch/v3-micro" --shape v3-micro --dtype fp8
# The CPU's text, in f32: rounding is too small to change a word of it.
same_text() {  # same_text NAME ARGUMENTS…
  local name="$1"
  shift
  "$bundle/latte" run "$@" --seed 0 --dtype f32 >"$scratch/cpu.txt" 2>/dev/null
  check 120 model "$name runs" sh -c '"$@" >"$0"' "$scratch/gpu.txt" "$bundle/latte" run "$@" --seed 0 --dtype f32 --device cuda
  check 5 model "$name writes what the CPU writes" cmp "$scratch/cpu.txt" "$scratch/gpu.txt"
}
# The emulator's log-probabilities, to the last digit: kernels use operations that have one result.
same_bytes() {  # same_bytes NAME ARGUMENTS…
  local name="$1"
  shift
  LATTE_CUDA_DRIVER="$emulated" timeout 120 "$bundle/latte" score "$@" --json --device cuda >"$scratch/emulated.json" 2>/dev/null
  check 60 bytes "$name is scored" sh -c '"$@" >"$0"' "$scratch/gpu.json" "$bundle/latte" score "$@" --json --device cuda
  check 5 bytes "$name has the emulator's bytes" cmp "$scratch/emulated.json" "$scratch/gpu.json"
}
same_text tiny "$tiny" -p "Once upon a time" -n "$tokens"
same_text tiny-sparse "$root/models/tiny-sparse" -p "The dog" -n "$tokens"
same_text v3-micro "$scratch/v3-micro" -p "a" -n "$micro_tokens"
same_bytes tiny "$tiny" -p "Once upon a time"
same_bytes v3-micro "$scratch/v3-micro" -p "a"

# Every kernel against the reference, on a part of the shapes.
export LATTE_CUDA_DRIVER="${LATTE_CUDA_DRIVER:-libcuda.so.1}"
if [ "${3:-}" != short ]; then
  for suite in 'Hand.*' 'MovesConformance.*' '*Norm*Conformance.*:Route*.*' 'Linear*.*' 'ExpertGemm.*' 'MlaDecode*.*' 'Mha*.*' 'IndexTopK.*'; do
    "$bundle/conformance_test" --gtest_list_tests --gtest_filter="$suite" | grep -q '^  ' ||
      say conformance "$suite" false ', "log": "no such tests"'
    check 45 conformance "$suite" "$bundle/conformance_test" --gtest_brief=1 --gtest_filter="$suite"
  done
fi
exit $failed
