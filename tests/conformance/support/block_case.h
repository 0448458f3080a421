// Weights in blocks of GGUF files (tensor/weight_blocks.h), in guarded memory (guarded.h).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <random>
#include <vector>

#include "src/base/math.h"
#include "src/tensor/weight_blocks.h"
#include "tests/conformance/support/guarded.h"

namespace latte {

// A type, where its blocks have their f16 scale and the f16 that scales their minima (−1: none),
// and the largest numbers that those two are multiplied by.
struct BlockCase {
  DType dtype;
  int scale_at, min_at;
  float largest, largest_min;
};

inline constexpr BlockCase kBlockCases[] = {
    {DType::kQ4_0, 0, -1, 8, 0},        {DType::kQ4_1, 0, 2, 15, 1},
    {DType::kQ5_0, 0, -1, 16, 0},       {DType::kQ5_1, 0, 2, 31, 1},
    {DType::kQ8_0, 0, -1, 127, 0},      {DType::kQ2_K, 80, 82, 3 * 15, 15},
    {DType::kQ3_K, 108, -1, 4 * 32, 0}, {DType::kQ4_K, 0, 2, 15 * 63, 63},
    {DType::kQ5_K, 0, 2, 31 * 63, 63},  {DType::kQ6_K, 208, -1, 32 * 128, 0},
    {DType::kIQ4_NL, 0, -1, 127, 0},    {DType::kIQ4_XS, 0, -1, 127 * 32, 0},
    {DType::kMXFP4, -1, -1, 0, 0},
};

inline const BlockCase& CaseOf(DType dtype) {
  return *std::ranges::find(kBlockCases, dtype, &BlockCase::dtype);
}

// Scales as models have them, weights of up to 0.02; or zeros, negative, the smallest and largest
// ones too.
enum class BlockScales { kReal, kHostile };

// The f16 scale of a block, `largest` times which is up to 0.02.
inline uint16_t RandomBlockScale(float largest, BlockScales scales, std::mt19937& rng) {
  constexpr uint16_t kEdges[] = {0, 0x8000, 0x7bff, 0xfbff, 0x0001, 0x8001};
  if (scales == BlockScales::kHostile && rng() % 2 == 0) return kEdges[rng() % std::size(kEdges)];
  std::uniform_real_distribution<float> uniform(0.25f, 1.0f);
  const float scale = uniform(rng) * 0.02f / largest;
  return FloatToF16(scales == BlockScales::kHostile && rng() % 2 == 0 ? -scale : scale);
}

// Random codes and scales in the rows of a view.
inline void FillBlocks(const TensorView& t, BlockScales scales, std::mt19937& rng) {
  const BlockCase& c = CaseOf(t.dtype);
  const int64_t width = t.shape[static_cast<size_t>(t.rank - 1)];
  const int64_t bytes = SizeOf(t.dtype);
  for (int64_t row = 0; row < t.elements() / std::max<int64_t>(width, 1); ++row)
    for (int64_t i = 0; i < width; ++i) {
      std::byte* const block = t.NthRow(row) + i * bytes;
      for (int64_t at = 0; at < bytes; ++at) block[at] = static_cast<std::byte>(rng());
      const auto set = [&](int at, float largest) {
        const uint16_t bits = RandomBlockScale(largest, scales, rng);
        if (at >= 0) std::memcpy(block + at, &bits, sizeof(bits));
      };
      set(c.scale_at, c.largest);
      set(c.min_at, c.largest_min);
      if (t.dtype != DType::kMXFP4) continue;
      // 12 · 2^(e − 128) is up to 0.02; or from the smallest number to sums that f32 just holds.
      constexpr uint8_t kEdges[] = {0, 1, 127, 220};
      *block = static_cast<std::byte>(scales == BlockScales::kHostile ? kEdges[rng() % 4]
                                                                      : 112 + rng() % 7);
    }
}

// A weight [B, N, K] in blocks or plain numbers, and its values as plain f32. The rows are one
// element apart.
struct BlockWeight {
  BlockWeight(DType type, int64_t b, int64_t n, int64_t k, BlockScales scales, std::mt19937& rng)
      : w(type, {b, n, k / ValuesPerElement(type)}, /*row_padding=*/1, /*shift=*/1),
        values(DType::kF32, {b, n, k}),
        magnitude(DType::kF32, {b, n, k}) {
    IsPlain(type) ? FillRandom(w, rng) : FillBlocks(w, scales, rng);
    for (int64_t row = 0; row < b * n; ++row)
      for (int64_t i = 0; i < k; ++i) {
        const float value = InfoOf(type).load(w.view().NthRow(row), i);
        values.Ptr<float>()[row * k + i] = value;
        magnitude.Ptr<float>()[row * k + i] = std::abs(value);
      }
  }

  Guarded w;
  Tensor values, magnitude;
};

}  // namespace latte
