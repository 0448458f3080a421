#!/usr/bin/env bash
# bundle-cuda.sh BUILD OUT: packs the files that bench/gpu_check/run.sh needs in addition to a source tree, on a machine with a GPU and no packages:
# latte with its kernels and libraries, the emulated driver and the conformance tests. BUILD is a build folder with tests and
# -DLATTE_CUDA_KERNELS=ON. `tar cJf FILE -C OUT .` makes 11 MB of it.
set -euo pipefail
build="$(realpath "$1")"
out="$2"
root="$(realpath "$(dirname "$0")/..")"
rm -rf "$out"
mkdir -p "$out/lib"
for program in latte tests/conformance/conformance_test tests/cuda/driver/libcuda_emulated.so; do
  [ -e "$build/$program" ] || { echo "bundle-cuda.sh: no $build/$program" >&2; exit 2; }
  install -s "$build/$program" "$out/$(basename "$program")"
done
# Libraries but glibc's, which every system has.
ldd "$out/latte" "$out/conformance_test" | awk '/=> \// {print $3}' | sort -u |
  grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*|libresolv)\.so' | while read -r library; do
  cp -L "$library" "$out/lib/"
done
git -C "$root" rev-parse --short=12 HEAD >"$out/commit" 2>/dev/null || true
du -sh "$out" | cut -f1
