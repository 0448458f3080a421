// Sums and maxima over the lanes of a warp or a block, in one order: a tree over the lanes, then
// the warps from the first on. All lanes receive the result.
#pragma once

#include "src/kernels/cuda/words/device.cuh"

namespace latte::cuda {

inline constexpr int kWarp = 32;

LATTE_DEVICE float MinusInfinity() { return -__builtin_huge_valf(); }

LATTE_DEVICE int Lane() { return Thread() % kWarp; }
LATTE_DEVICE int Warp() { return Thread() / kWarp; }

LATTE_DEVICE float WarpSum(float v) {
  LATTE_UNROLL
  for (int mask = kWarp / 2; mask > 0; mask /= 2) v = Add(v, ShuffleXor(v, mask));
  return v;
}
LATTE_DEVICE float WarpMax(float v) {
  LATTE_UNROLL
  for (int mask = kWarp / 2; mask > 0; mask /= 2) v = Max(v, ShuffleXor(v, mask));
  return v;
}
LATTE_DEVICE int32_t WarpMax(int32_t v) {
  LATTE_UNROLL
  for (int mask = kWarp / 2; mask > 0; mask /= 2) {
    const int32_t other = ShuffleXor(v, mask);
    v = other > v ? other : v;
  }
  return v;
}
LATTE_DEVICE int32_t WarpSum(int32_t v) {
  LATTE_UNROLL
  for (int mask = kWarp / 2; mask > 0; mask /= 2) v += ShuffleXor(v, mask);
  return v;
}

// Shared memory of a reduction over a block: a word for each warp.
inline constexpr int kReductionBytes = 32 * 4;

// Requires: kReductionBytes at `scratch`. Waits for the block before and after.
template <class T>
LATTE_DEVICE T BlockSum(T v, SharedAddr scratch) {
  v = WarpSum(v);
  SyncThreads();  // the scratch may still be read
  if (Lane() == 0) StoreShared(scratch + 4 * static_cast<SharedAddr>(Warp()), v);
  SyncThreads();
  T sum = LoadShared<T>(scratch);
  for (int w = 1; w < Threads() / kWarp; ++w)
    sum = sum + LoadShared<T>(scratch + 4 * static_cast<SharedAddr>(w));
  return sum;
}
LATTE_DEVICE float BlockMax(float v, SharedAddr scratch) {
  v = WarpMax(v);
  SyncThreads();
  if (Lane() == 0) StoreShared(scratch + 4 * static_cast<SharedAddr>(Warp()), v);
  SyncThreads();
  float max = LoadShared<float>(scratch);
  for (int w = 1; w < Threads() / kWarp; ++w)
    max = Max(max, LoadShared<float>(scratch + 4 * static_cast<SharedAddr>(w)));
  return max;
}

}  // namespace latte::cuda
