#!/usr/bin/env bash
# gpu_check_test.sh BUILD DRIVER: bench/gpu_check/run.sh on the emulated driver. Its lines are JSON, and say that all is well; with a
# driver that fails they say what failed. Skipped without nvcc.
set -euo pipefail
build="$1"
driver="$2"
root="$(realpath "$(dirname "$0")/../..")"
command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ] || exit 77
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
"$root/packaging/bundle-cuda.sh" "$build" "$scratch/bundle"
LATTE_CUDA_DRIVER="$driver" "$root/bench/gpu_check/run.sh" "$scratch/bundle" "$scratch/lines" short || { cat "$scratch/lines"; exit 1; }
python3 - "$scratch/lines" <<'END'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert all(line["ok"] for line in lines), lines
cases = [line["case"] for line in lines]
for name in "ProbeMatrix", "tiny writes what the CPU writes", "v3-micro writes what the CPU writes", "tiny has the emulator's bytes":
    assert name in cases, (name, cases)
END
if LATTE_CUDA_DRIVER="$driver" LATTE_EMULATOR_FAIL_LAUNCH=2 "$root/bench/gpu_check/run.sh" "$scratch/bundle" "$scratch/failed" short; then
  echo "a driver whose second launch fails: expected exit code 1, found 0"
  exit 1
fi
grep -q '"case": "tiny runs", "ok": false.*unspecified launch failure' "$scratch/failed" || { cat "$scratch/failed"; exit 1; }
