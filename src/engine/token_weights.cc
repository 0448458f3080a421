#include "src/engine/token_weights.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

namespace latte {
namespace {

// Vectors of the compiler, 16 bytes: what every x86-64 processor has.
using F4 = float __attribute__((vector_size(16)));
using I4 = int32_t __attribute__((vector_size(16)));
using F2 = float __attribute__((vector_size(8)));
using D2 = double __attribute__((vector_size(16)));
using U2 = uint64_t __attribute__((vector_size(16)));

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
using Block = std::array<float, kLogitBlock>;

F4 Load(const float* z) {
  F4 x;
  std::memcpy(&x, z, sizeof(x));
  return x;
}

// f(first index, pointer to kLogitBlock logits, how many of them are the row's); those past its end
// are −inf.
template <class F>
void ForEachBlock(std::span<const float> logits, const F& f) {
  size_t first = 0;
  for (; first + kLogitBlock <= logits.size(); first += kLogitBlock)
    f(first, &logits[first], kLogitBlock);
  if (first == logits.size()) return;
  Block rest;
  rest.fill(kMinusInf);
  std::copy(logits.begin() + static_cast<int64_t>(first), logits.end(), rest.begin());
  f(first, rest.data(), logits.size() - first);
}

float BlockMax(const float* z, I4* nan) {
  F4 even = Load(z);
  F4 odd = Load(z + 4);
  for (size_t i = 0; i < kLogitBlock; i += 8) {
    const F4 x = Load(z + i);
    const F4 y = Load(z + i + 4);
    even = x > even ? x : even;
    odd = y > odd ? y : odd;
    *nan |= (x != x) | (y != y);
  }
  even = odd > even ? odd : even;
  return std::max(std::max(even[0], even[1]), std::max(even[2], even[3]));
}

// 2^x for −64 <= x <= 0: 2^n by the exponent's bits times 2^f by the first terms of its series
// around 0, |f| <= 1/2, which leave out 1.2e-7.
F4 Exp2(F4 x) {
  constexpr float kRound = 0x1.8p23f;  // adding it leaves an integer in the low bits
  const F4 shifted = x + kRound;
  const F4 f = x - (shifted - kRound);
  F4 y = 1.540353e-4f * f + 1.3333558e-3f;
  y = y * f + 9.6181291e-3f;
  y = y * f + 5.5504109e-2f;
  y = y * f + 2.4022651e-1f;
  y = y * f + 6.9314718e-1f;
  y = y * f + 1.0f;
  const I4 power = (std::bit_cast<I4>(shifted) << 23) + (127 << 23);
  return y * std::bit_cast<F4>(power);
}

// Adding it to a number below 2^12 rounds that to units of 2^−40, which the low bits then count.
constexpr double kRoundWeight = 0x1.8p12;
constexpr auto kRoundWeightBits = std::bit_cast<uint64_t>(kRoundWeight);

struct FourWeights {
  U2 low, high;
};

FourWeights Weights(F4 logits, const WeightScale& scale) {
  const F4 x = (logits - scale.max) * scale.scale;
  const I4 kept = x >= scale.cut;
  const F4 clamped = std::bit_cast<F4>(std::bit_cast<I4>(x) & kept);
  const F4 p = std::bit_cast<F4>(std::bit_cast<I4>(Exp2(clamped)) & kept);
  const F2 low = __builtin_shufflevector(p, p, 0, 1);
  const F2 high = __builtin_shufflevector(p, p, 2, 3);
  return {std::bit_cast<U2>(__builtin_convertvector(low, D2) + kRoundWeight) - kRoundWeightBits,
          std::bit_cast<U2>(__builtin_convertvector(high, D2) + kRoundWeight) - kRoundWeightBits};
}

}  // namespace

LogitScan ScanLogits(std::span<const float> logits) {
  LogitScan out;
  out.max = kMinusInf;
  out.block_max.resize((logits.size() + kLogitBlock - 1) / kLogitBlock);
  I4 nan = {};
  ForEachBlock(logits, [&](size_t first, const float* z, size_t) {
    const float max = BlockMax(z, &nan);
    out.block_max[first / kLogitBlock] = max;
    out.max = std::max(out.max, max);
  });
  out.nan = (nan[0] | nan[1] | nan[2] | nan[3]) != 0;
  return out;
}

WeightScale WeightScale::Of(float max, double temperature, double min_p) {
  // 2^−64 rounds to no weight, and is still a normal number.
  const double cut = min_p > 0 ? std::max(std::log2(min_p), -64.0) : -64.0;
  return {max, static_cast<float>(std::numbers::log2e / temperature), static_cast<float>(cut)};
}

uint64_t SumWeights(std::span<const float> logits, const WeightScale& scale) {
  U2 low = {};
  U2 high = {};
  ForEachBlock(logits, [&](size_t, const float* z, size_t) {
    for (size_t i = 0; i < kLogitBlock; i += 4) {
      const FourWeights w = Weights(Load(z + i), scale);
      low += w.low;
      high += w.high;
    }
  });
  return low[0] + low[1] + high[0] + high[1];
}

void ComputeWeights(std::span<const float> logits, const WeightScale& scale,
                    std::span<uint64_t> out) {
  ForEachBlock(logits, [&](size_t first, const float* z, size_t count) {
    std::array<uint64_t, kLogitBlock> block;
    for (size_t i = 0; i < kLogitBlock; i += 4) {
      const FourWeights w = Weights(Load(z + i), scale);
      std::memcpy(&block[i], &w, sizeof(w));
    }
    std::copy_n(block.begin(), count, out.begin() + static_cast<int64_t>(first));
  });
}

}  // namespace latte
